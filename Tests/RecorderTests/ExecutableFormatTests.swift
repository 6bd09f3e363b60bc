import Recorder
import Testing

func format(_ bytes: [UInt8]) -> ExecutableFormat {
    ExecutableFormat { offset, count in
        offset >= UInt64(bytes.count) ? [] : Array(bytes[Int(offset)...].prefix(count))
    }
}

@Suite struct ExecutableFormatTests {
    @Test func dynamicExecutableHasItsLoader() {
        #expect(format(elf()) == .elf(elfMachine: 62, loader: "/lib64/ld-linux-x86-64.so.2"))
        #expect(format(elf(type: 2, loader: "/l")) == .elf(elfMachine: 62, loader: "/l"))
        #expect(format(elf(elfMachine: 183, loader: nil)) == .elf(elfMachine: 183, loader: nil))
    }

    @Test func otherClassesAreToldApart() {
        var small = elf()
        small[4] = 1
        #expect(format(small) == .elf32)
        var big = elf()
        big[5] = 2
        #expect(format(big) == .elfOtherByteOrder)
        #expect(format(elf(type: 1)) == .damaged("its ELF type is 1, not a program"))
    }

    @Test func everyTruncationOfAnExecutableIsHandled() {
        let whole = elf()
        for length in 0..<whole.count {
            switch format(Array(whole[..<length])) {
            case .elf: Issue.record("cut at \(length) passed for whole")
            default: break
            }
        }
    }

    @Test func everySingleByteMayBeAnything() {
        let whole = elf()
        for index in whole.indices {
            for value: UInt8 in [0, 1, 0x7f, 0x80, 0xff] {
                var bytes = whole
                bytes[index] = value
                _ = format(bytes) // must return: nothing here may trap
            }
        }
    }

    @Test func scriptLineIsSplitAsLinuxDoes() {
        func script(_ text: String) -> ExecutableFormat { format(Array(text.utf8)) }
        #expect(script("#!/bin/sh\necho") == .script(interpreter: "/bin/sh", argument: nil))
        #expect(script("#! \t/bin/sh  -e -u \t\n") == .script(interpreter: "/bin/sh", argument: "-e -u"))
        #expect(script("#!/bin/sh") == .script(interpreter: "/bin/sh", argument: nil))
        #expect(script("#!\n") == .damaged("its #! line names no interpreter"))
        #expect(script("#!/" + String(repeating: "x", count: 300)) == .damaged("its #! line is longer than 256 bytes"))
    }

    @Test func textIsNotTakenForOtherBytes() {
        #expect(format(Array("echo hi\n".utf8)) == .text)
        #expect(format([]) == .text)
        #expect(format([0xca, 0xfe, 0, 0, 1]) == .unknown)
    }
}
