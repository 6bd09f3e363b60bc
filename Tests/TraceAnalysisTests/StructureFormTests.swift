import ELF
import Testing
import TraceAnalysis

@Suite struct StructureFormTests {
    private let text = "draw(p: {x: int @0, rest: {last: bool @0:3:1, kind: i8 @0:4:3, y: double @8} @8, name: text[4] @4}[24], n: int)"

    private func values(_ text: String, _ bytes: [UInt8]) throws -> [String] {
        let recorded = try #require(RecordedPrototype(text: text, machine: 62))
        return recorded.arguments(RecordedValues(program: 1, bytes: bytes)).map(\.value.text)
    }
    private func refusal(_ text: String) -> String {
        do {
            _ = try Prototypes(file: text, isRecorded: true)
            return "none"
        } catch { return error.reason }
    }

    @Test func membersAreReadWhereTheyLie() throws {
        let words: [UInt8] = [254, 255, 255, 255, 97, 98, 0, 99, 0b1110_1000, 9, 9, 9, 9, 9, 9, 9]
        let real = withUnsafeBytes(of: (1.5).bitPattern) { Array($0) }
        let shown = "{x=-2, rest={last=1, kind=-2, y=1.5}, name=\"ab\"}"
        #expect(try values(text, words + real + [7, 0, 0, 0]) == [shown, "7"])
        #expect(try values(text, words + real) == [shown])
        #expect(try values(text, words).isEmpty)
    }

    @Test func oneBehindAnAddressMayBeUnreadable() throws {
        let text = "draw(p: *{x: int @0, all: short[2] @4}[8])"
        #expect(try values(text, [8, 0, 1, 0, 0, 0, 2, 0, 3, 0]) == ["{x=1, all=[2, 3]}"])
        #expect(try values(text, [0, 0xc0, 16, 0, 0, 0, 0, 0, 0, 0]) == ["0x10?"])
        #expect(try values(text, [4, 0x80, 1, 0, 0, 0]) == ["<unavailable>"])
    }

    @Test func aTraceSaysItAsItIsRead() throws {
        let read = try #require(try Prototypes(file: text, isRecorded: true).prototypes.first)
        #expect(read.text == text)
        #expect(try Prototypes(file: read.text, isRecorded: true).prototypes.first == read)
    }

    @Test func conditionsAskForMembers() throws {
        let recorded = try #require(RecordedPrototype(text: text, machine: 62))
        for (condition, problem) in [
            ("p.x > 3", nil), ("p.rest.kind == 1", nil), ("p.name == \"ab\"", nil),
            ("p == 3", "p has several values: compare one of them, p.x"), ("p.nothing == 3", "draw has no p.nothing"),
            ("p.rest.y > 1", "p.rest.y is a floating-point number, which conditions do not compare"),
            ("p.name == 3", "p.name is a string: compare it with a text in quotes"),
        ] as [(String, String?)] {
            #expect(recorded.problem(try CallCondition(condition)) == problem, "\(condition)")
        }
        let words: [UInt8] = [4, 0, 0, 0, 97, 98, 0, 99] + [UInt8](repeating: 0, count: 16)
        let values = NamedArguments(values: recorded.arguments(RecordedValues(program: 1, bytes: words)))
        #expect(recorded.holds(try CallCondition("p.x > 3"), values, nil))
        #expect(!recorded.holds(try CallCondition("p.x > 4"), values, nil))
        #expect(recorded.holds(try CallCondition("p.name ~ \"b\""), values, nil))
        #expect(throws: PlannedTest.Problem.self) { try recorded.tests(try CallCondition("p.x > 3"), of: 0) }
    }

    @Test func whatIsWrittenWronglyIsRefused() {
        for (text, reason) in [
            ("f(p: {x: int}[8])", "@ is missing after the type of x, before }"),
            ("f(p: {x: int @0})", "[ is missing after the members, before the number of bytes, before )"),
            ("f(p: {x: int @0:9:1}[8])", "x has more than 64 bits"), ("f(p: {}[8])", "the name of a member is missing before }"),
            ("f(p: {a: {b: {c: {d: {e: {f: int @0} @0} @0} @0} @0} @0}[8])", "e is nested too deep"),
            ("f() -> {x: int @0}[8]", "structures as results are not recorded"),
            ("f(p: {x: *{y: int @0}[8] @0}[8])", "the type of the member x is missing before *"),
        ] {
            #expect(refusal(text) == reason, "\(text)")
        }
        do {
            _ = try Prototypes(file: text)
            Issue.record("a file of prototypes has a structure")
        } catch { #expect(error.reason == "p: only debug information says how a structure is passed: write the function's name alone") }
    }

    @Test func aMemberThatIsHiddenHidesTheWhole() throws {
        var read = try #require(try Prototypes(file: text, isRecorded: true).prototypes.first)
        read.hide { $0 == "last" }
        #expect(read.text == "draw(p: secret, n: int)")
    }
}
