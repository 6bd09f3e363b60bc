import ELF
import Testing
import TraceAnalysis

@Suite struct CallingStandardTests {
    private let x86: UInt16 = 62, arm: UInt16 = 183
    private typealias Place = CallingStandard.Place

    private let int = SourceType(.integer(isSigned: true), bytes: 4), double = SourceType(.floatingPoint(isExtended: false), bytes: 8)
    private let wide = SourceType(.integer(isSigned: true), bytes: 16), extended = SourceType(.floatingPoint(isExtended: true), bytes: 16)
    private func structure(_ bytes: Int, _ leaves: [(offset: Int, bytes: Int, kind: SourceType.LeafKind)]) -> SourceType {
        let own = leaves.map { SourceType.Leaf(offset: $0.offset, byteCount: $0.bytes, alignment: $0.bytes, kind: $0.kind) }
        return SourceType(.aggregate, bytes: bytes, alignment: own.map(\.alignment).max() ?? 1, leaves: own)
    }

    private func places(_ machine: UInt16, _ types: [SourceType], returning result: SourceType = SourceType(.void, bytes: 0)) throws
        -> [Place]
    {
        var standard = try #require(CallingStandard(machine: machine))
        standard.returns(result)
        return types.map { standard.place($0) }
    }

    @Test func otherProcessorsHaveNoStandardHere() { #expect(CallingStandard(machine: 243) == nil) }

    @Test func registersAreTakenByKindAndThenTheStack() throws {
        let types = [int, double, int, int, int, int, int, int, int, int, double]
        #expect(
            try places(x86, types) == [
                .one(.register(0)), .one(.vector(0)), .one(.register(1)), .one(.register(2)), .one(.register(3)), .one(.register(4)),
                .one(.register(5)), .one(.stack(0)), .one(.stack(1)), .one(.stack(2)), .one(.vector(1)),
            ])
        #expect(try places(arm, types).suffix(3) == [.one(.register(7)), .one(.stack(0)), .one(.vector(1))])
    }

    @Test func aStructureThatDoesNotFitLeavesTheRegistersToOthers() throws {
        let pair = structure(16, [(0, 8, .integer), (8, 8, .integer)])
        #expect(try places(x86, [int, int, int, int, int, pair, int]).suffix(2) == [.memory(word: 0), .one(.register(5))])
        // AAPCS64 C.13: no more registers after the first that does not fit.
        #expect(try places(arm, [int, int, int, int, int, int, int, pair, int]).suffix(2) == [.memory(word: 0), .one(.stack(2))])
    }

    @Test func wordsOfAStructureAreClassifiedEach() throws {
        let mixed = structure(16, [(0, 8, .floatingPoint), (8, 4, .integer)])
        #expect(
            try places(x86, [mixed, int, double]) == [
                .registers([.vector(0), .register(0)], bytes: 8), .one(.register(1)), .one(.vector(1)),
            ])
        #expect(try places(arm, [mixed, int, double]) == [.pair(.register(0), .register(1)), .one(.register(2)), .one(.vector(0))])
        let whole = structure(16, [(0, 8, .integer), (8, 8, .integer)])
        #expect(try places(x86, [int, whole, int]) == [.one(.register(0)), .pair(.register(1), .register(2)), .one(.register(3))])
        let floats = structure(12, [(0, 4, .floatingPoint), (4, 4, .floatingPoint), (8, 4, .floatingPoint)])
        #expect(try places(x86, [floats, double]) == [.registers([.vector(0), .vector(1)], bytes: 8), .one(.vector(2))])
        #expect(try places(arm, [floats, double]) == [.registers([.vector(0), .vector(1), .vector(2)], bytes: 4), .one(.vector(3))])
        let packed = SourceType(.aggregate, bytes: 9, alignment: 1, leaves: [.init(offset: 1, byteCount: 8, alignment: 8, kind: .integer)])
        #expect(try places(x86, [packed, int]) == [.memory(word: 0), .one(.register(0))])
    }

    @Test func largeStructuresAreOnTheStackOrBehindAPointer() throws {
        let large = structure(24, [(0, 8, .integer), (8, 8, .integer), (16, 8, .integer)])
        #expect(try places(x86, [large, int]) == [.memory(word: 0), .one(.register(0))])
        #expect(try places(arm, [large, int]) == [.one(.register(0)), .one(.register(1))])
        var copied = structure(4, [(0, 4, .integer)])
        copied.isByReference = true
        for machine in [x86, arm] { #expect(try places(machine, [copied, int]) == [.one(.register(0)), .one(.register(1))]) }
    }

    @Test func aResultInMemoryTakesTheFirstRegister() throws {
        let large = structure(24, [(0, 8, .integer), (8, 8, .integer), (16, 8, .integer)])
        #expect(try places(x86, [int], returning: large) == [.one(.register(1))])
        #expect(try places(arm, [int], returning: large) == [.one(.register(0))])
        for result in [extended, structure(16, [(0, 16, .extended)]), wide] {
            #expect(try places(x86, [int], returning: result) == [.one(.register(0))])
        }
    }

    @Test func sixteenBytesAreAligned() throws {
        #expect(try places(x86, [extended, int]) == [.memory(word: 0), .one(.register(0))])
        #expect(
            try places(x86, Array(repeating: int, count: 7) + [wide, int]).suffix(3) == [
                .one(.stack(0)), .memory(word: 2), .one(.stack(4)),
            ])
        #expect(try places(arm, [int, wide, int]) == [.one(.register(0)), .pair(.register(2), .register(3)), .one(.register(4))])
    }

    @Test func nothingIsSaidAfterAnUnknownType() throws {
        #expect(try places(x86, [int, .unknown, int, double]) == [.one(.register(0)), .unknown, .unknown, .unknown])
        #expect(try places(x86, [int], returning: .unknown) == [.unknown])
        #expect(try places(arm, [int], returning: .unknown) == [.one(.register(0))])
    }

    @Test func emptyClassesArePassedWhereTheStandardSaysSo() throws {
        let empty = structure(1, []), none = structure(0, [])
        #expect(try places(x86, [none, empty, int]) == [.nothing, .nothing, .one(.register(0))])
        #expect(try places(arm, [none, empty, int]) == [.nothing, .one(.register(0)), .one(.register(1))])
    }
}
