import Glibc
import Testing
import Unwinding

@Suite struct CodeTests {
    @Test func aMappingReplacesWhatWasThere() {
        var space = AddressSpace()
        func add(_ range: Range<UInt64>, _ bias: UInt64) {
            space.add(AddressSpace.Mapping(start: range.lowerBound, end: range.upperBound, bias: bias, module: nil))
        }
        func bias(_ address: UInt64) -> UInt64? { space.mapping(at: address)?.bias }
        add(0x1000..<0x9000, 1)
        add(0x3000..<0x4000, 2)
        #expect([0xfff, 0x1000, 0x2fff, 0x3000, 0x3fff, 0x4000, 0x8fff, 0x9000].map(bias) == [nil, 1, 1, 2, 2, 1, 1, nil])
        add(0x2000..<0x5000, 3)
        #expect([0x1fff, 0x2000, 0x4fff, 0x5000].map(bias) == [1, 3, 3, 1])
        add(0..<0x10000, 4)
        #expect([0, 0x2000, 0xffff, 0x10000].map(bias) == [4, 4, 4, nil])
    }

    @Test func ofTwoLinesOfAMapTheLaterHolds() {
        let map = MadeCode(
            PerfMap.code(Array("1000 100 first\n2000 80 JS:~f /a b.js:1\n1080 10 second\nrubbish\n0x3000 0 empty\n2000 40 again\n".utf8)))
        #expect(map.code(at: 0x1000)?.name == "first")
        #expect(map.code(at: 0x1080)?.name == "second")
        #expect(map.code(at: 0x108f)?.name == "second")
        #expect(map.code(at: 0x1090) == nil) // within the first, but the rest of that has been given up
        #expect(map.code(at: 0x2000)?.name == "again")
        #expect(map.code(at: 0x3000) == nil)
        #expect(PerfMap.code(Array("10 10 a name with blanks".utf8)).first?.name == "a name with blanks")
    }

    /// As jitdump-specification.txt lays it out.
    private struct Dump {
        var bytes: [UInt8] = []
        mutating func add(_ value: some FixedWidthInteger) { withUnsafeBytes(of: value.littleEndian) { bytes += $0 } }
        init() {
            for half in [0x4a69_5444, 1, 40, 62, 0, 7] as [UInt32] { add(half) }
            for word in [1, 0] as [UInt64] { add(word) }
        }
        mutating func record(_ kind: UInt32, _ words: [UInt64], _ name: String? = nil, code: Int = 0) {
            let text: [UInt8] = name.map { Array($0.utf8) + [0] } ?? []
            add(kind)
            add(UInt32(16 + 8 + words.count * 8 + text.count + code))
            for word in [5, 7 << 32 | 7] + words { add(word as UInt64) }
            bytes += text + [UInt8](repeating: 0xc3, count: code)
        }
        var made: MadeCode {
            MadeCode(JitDump.code(byteCount: bytes.count) { offset, count in Array(bytes.dropFirst(offset).prefix(count)) })
        }
    }

    @Test func aDumpOfACompilersShowsWhatWasLoadedAndMoved() {
        var dump = Dump()
        dump.record(0, [0x1000, 0x1000, 0x80, 1], "first", code: 0x80)
        dump.record(4, [0, 0, 0], code: 24) // unwinding information
        dump.record(0, [0x1000, 0x1080, 0x80, 2], "LazyCompile:~f /a b.js:1", code: 5000)
        dump.record(1, [0x3000, 0x1000, 0x3000, 0x80, 1])
        dump.record(0, [0x1000, 0x1000, 0x40, 3], "in its place", code: 0x40)
        let made = dump.made
        #expect(
            [0x1000, 0x103f, 0x10ff, 0x3000].map { made.code(at: $0)?.name } == [
                "in its place", "in its place", "LazyCompile:~f /a b.js:1", "first",
            ])
        #expect(made.code(at: 0x3080) == nil)
    }

    @Test func aDumpThatIsCutOrWrongEndsWhereItIs() {
        var dump = Dump()
        dump.record(0, [0x1000, 0x1000, 0x80, 1], "first", code: 0x80)
        for count in 0..<dump.bytes.count {
            let bytes = dump.bytes.prefix(count)
            #expect(JitDump.code(byteCount: count) { Array(bytes.dropFirst($0).prefix($1)) }.count <= 1)
        }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            var bytes = dump.bytes
            for _ in 0..<4 { bytes[Int.random(in: 8..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random) }
            _ = JitDump.code(byteCount: bytes.count) { Array(bytes.dropFirst($0).prefix($1)) }
        }
    }

    @Test func expressions() {
        func value(_ bytes: [UInt8], first: UInt64? = nil) -> UInt64? {
            bytes.withUnsafeBytes { bytes in
                Expression(bytes: bytes, range: 0..<bytes.count).value(
                    first: first, register: { $0 == 7 ? 0x1000 : $0 == 16 ? 0x402b : nil }, memory: { $0 == 0x1008 ? 77 : nil })
            }
        }
        // The CFA expression of a PLT: rsp + 8 + ((rip & 15) >= 11) * 8.
        #expect(value([0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22]) == 0x1010)
        #expect(value([0x77, 8, 0x06]) == 77)
        #expect(value([0x77, 16, 0x06]) == nil)
        #expect(value([0x71, 0]) == nil)
        #expect(value([0x22]) == nil)
        #expect(value([0x0c, 1, 2]) == nil)
        #expect(value([0x2f, 0xfd, 0xff]) == nil) // around and around
        #expect(value([0x38, 0x1c], first: 0x20) == 0x18)
    }
}
