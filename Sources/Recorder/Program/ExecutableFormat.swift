// Determines from the first bytes of a file how the kernel would run it. Pure, and every read is checked: the file may be
// anything.
//
// ELF: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html; scripts: Linux, fs/binfmt_script.c.

/// How a file starts, as far as the recorder cares.
package enum ExecutableFormat: Equatable, Sendable {
    /// A 64-bit little-endian executable for some architecture. `loader` is its PT_INTERP, nil when it has none.
    case elf(elfMachine: UInt16, loader: String?)
    case elf32
    case elfOtherByteOrder
    /// "#!" and what follows: at most one argument, as Linux passes it.
    case script(interpreter: String, argument: String?)
    /// No magic number, but text: what execvp(3) gives to /bin/sh.
    case text
    case unknown
    /// Says ELF but is cut short, is not a program, or points outside itself.
    case damaged(String)
}

/// Reads at most `count` bytes at `offset`; fewer at the end of the file.
package typealias ReadBytes = (_ offset: UInt64, _ count: Int) -> [UInt8]

extension ExecutableFormat {
    /// BINPRM_BUF_SIZE: all that the kernel looks at.
    static let headBytes = 256

    package init(reading read: ReadBytes) {
        let head = read(0, ExecutableFormat.headBytes)
        if head.starts(with: [0x7f, 0x45, 0x4c, 0x46]) {
            self = ExecutableFormat.elf(head, read)
        } else if head.starts(with: [0x23, 0x21]) {
            self = ExecutableFormat.script(head)
        } else {
            // The shell's own test: a NUL in the first line means that it is not text.
            let line = head.prefix { $0 != 0x0a }
            self = head.isEmpty || !line.contains(0) ? .text : .unknown
        }
    }

    private static func elf(_ head: [UInt8], _ read: ReadBytes) -> ExecutableFormat {
        guard head.count >= 52 else { return .damaged("its ELF header is truncated") }
        switch head[4] {
        case 1: return .elf32
        case 2: break
        default: return .damaged("its ELF class is \(head[4])")
        }
        guard head[5] == 1 else { return .elfOtherByteOrder }
        guard head.count >= 64 else { return .damaged("its ELF header is truncated") }
        let type = head.word16(16)
        guard type == 2 || type == 3 else { return .damaged("its ELF type is \(type), not a program") }
        let tableOffset = head.word64(32)
        let entryBytes = Int(head.word16(54)), entryCount = Int(head.word16(56))
        guard entryBytes == 56 else { return .damaged("its program headers have \(entryBytes) bytes each") }
        let table = read(tableOffset, entryBytes * entryCount)
        guard table.count == entryBytes * entryCount else { return .damaged("its program headers lie outside the file") }
        for entry in stride(from: 0, to: table.count, by: entryBytes) where table.word32(entry) == 3 /* PT_INTERP */ {
            let offset = table.word64(entry + 8), bytes = table.word64(entry + 32)
            guard bytes > 1, bytes <= 4096 else { return .damaged("its PT_INTERP has \(bytes) bytes") }
            let path = read(offset, Int(bytes))
            guard path.count == Int(bytes) else { return .damaged("its PT_INTERP lies outside the file") }
            return .elf(elfMachine: head.word16(18), loader: String(decoding: path.prefix { $0 != 0 }, as: UTF8.self))
        }
        return .elf(elfMachine: head.word16(18), loader: nil)
    }

    private static func script(_ head: [UInt8]) -> ExecutableFormat {
        let line = head.dropFirst(2).prefix { $0 != 0x0a && $0 != 0 }
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let words = line.drop(while: isBlank)
        let interpreter = words.prefix { !isBlank($0) }
        guard !interpreter.isEmpty else { return .damaged("its #! line names no interpreter") }
        // A line longer than the kernel's buffer is cut: in the argument silently, in the interpreter with ENOEXEC.
        if interpreter.endIndex == head.endIndex, head.count == headBytes {
            return .damaged("its #! line is longer than \(headBytes) bytes")
        }
        var rest = words.dropFirst(interpreter.count).drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return .script(
            interpreter: String(decoding: interpreter, as: UTF8.self),
            argument: rest.isEmpty ? nil : String(decoding: rest, as: UTF8.self))
    }
}

extension [UInt8] {
    /// Little-endian; the caller has checked that the bytes are there (and an array traps if not).
    fileprivate func word16(_ at: Int) -> UInt16 { UInt16(self[at]) | UInt16(self[at + 1]) << 8 }
    fileprivate func word32(_ at: Int) -> UInt32 { UInt32(word16(at)) | UInt32(word16(at + 2)) << 16 }
    fileprivate func word64(_ at: Int) -> UInt64 { UInt64(word32(at)) | UInt64(word32(at + 4)) << 32 }
}
