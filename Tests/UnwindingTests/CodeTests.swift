import Glibc
import Testing

@testable import Unwinding

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
        let map = PerfMap(Array("1000 100 first\n2000 80 JS:~f /a b.js:1\n1080 10 second\nrubbish\n0x3000 0 empty\n2000 40 again\n".utf8))
        #expect(map.code(at: 0x1000)?.name == "first")
        #expect(map.code(at: 0x1080)?.name == "second")
        #expect(map.code(at: 0x108f)?.name == "second")
        #expect(map.code(at: 0x1090) == nil) // of the first, but the rest of it has been given up
        #expect(map.code(at: 0x2000)?.name == "again")
        #expect(map.code(at: 0x3000) == nil)
        #expect(PerfMap(Array("10 10 a name with blanks".utf8)).code(at: 0x18)?.name == "a name with blanks")
    }

    @Test func expressions() {
        func value(_ bytes: [UInt8], first: UInt64? = nil) -> UInt64? {
            bytes.withUnsafeBytes { bytes in
                Expression(bytes: bytes, range: 0..<bytes.count).value(
                    first: first, register: { $0 == 7 ? 0x1000 : $0 == 16 ? 0x402b : nil }, memory: { $0 == 0x1008 ? 77 : nil })
            }
        }
        // Of a linkage table: rsp + 8 + ((rip & 15) >= 11) * 8.
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
