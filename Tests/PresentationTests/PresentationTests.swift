// Tests each formatter with the values at which its format changes.
import Foundation
import Presentation
import Testing

struct DurationTests {
    @Test(
        arguments: [
            (0, "0 ns"), (999, "999 ns"), (1000, "1.000 us"), (1_234_567, "1.234 ms"), (2_005_000_000, "2.005 s"),
            (7_200_000_000_000, "7200.000 s"),
        ] as [(UInt64, String)])
    func unitsFit(time: UInt64, text: String) { #expect(readable(Nanoseconds(time)) == text) }

    @Test(
        arguments: [
            (0, "0 ns", "+0 ns"), (0.4, "0 ns", "+0 ns"), (-0.4, "0 ns", "+0 ns"), (999.6, "1.000 us", "+1.000 us"),
            (-12, "-12 ns", "-12 ns"),
            (-1_500_000, "-1.500 ms", "-1.500 ms"), (.infinity, "18446744073.709 s", "+18446744073.709 s"), (.nan, "0 ns", "+0 ns"),
        ] as [(Double, String, String)])
    func differencesHaveASign(nanoseconds: Double, text: String, difference: String) {
        #expect(readable(nanoseconds: nanoseconds) == text)
        #expect(readable(difference: nanoseconds) == difference)
    }

    @Test func theSignedKeepTheirs() {
        #expect(readable(signed: -1000) == "-1.000 us")
        #expect(readable(signed: .min) == "-9223372036.854 s")
    }

    @Test(
        arguments: [0, 9, 10, 999, 1000, 1001, 999_999, 1_000_000, 1_234_567, 999_999_999, 1_000_000_000, 12_345_678_901, .max] as [UInt64])
    func bytesOfALineAreThoseOfTheStrings(count: UInt64) {
        func text(_ body: (inout [UInt8]) -> Void) -> String {
            var bytes = Array("before ".utf8)
            body(&bytes)
            return String(decoding: bytes.dropFirst(7), as: UTF8.self)
        }
        #expect(text { $0.append(count) } == String(count))
        #expect(text { $0.append(Nanoseconds(count)) } == readable(Nanoseconds(count)))
        #expect(text { $0.append(column: Nanoseconds(count)) } == column(readable(Nanoseconds(count))))
        #expect(text { $0.append(seconds: Nanoseconds(count)) } == secondsText(Nanoseconds(count)))
        #expect(Double(secondsText(Nanoseconds(count))) == Double(count) / 1e9)
        let aligned = text {
            $0.append(count); $0.align(from: 7, width: 15)
        }
        #expect(aligned == String(repeating: " ", count: max(15 - String(count).count, 0)) + String(count))
    }
}

struct NumberTests {
    @Test func countsAreGrouped() {
        #expect([0, 999, 1000, 1_234_567, -1000].map { grouped($0) } == ["0", "999", "1,000", "1,234,567", "-1,000"])
        #expect(grouped(UInt64.max) == "18,446,744,073,709,551,615")
        #expect(counted(1, "call") == "1 call" && counted(0, "call") == "0 calls" && counted(2, "launch", "launches") == "2 launches")
    }

    @Test(
        arguments: [
            (0, "0.0%", "+0.0%"), (1, "100.0%", "+100.0%"), (0.0003, "<0.1%", "+0.0%"), (0.0006, "0.1%", "+0.1%"),
            (0.12345, "12.3%", "+12.3%"),
            (-0.0003, "0.0%", "+0.0%"), (-0.055, "-5.5%", "-5.5%"), (14.8, "1480.0%", "+1480.0%"), (.nan, "-", "+-"),
            (.infinity, "-", "+-"),
        ] as [(Double, String, String)])
    func sharesHaveOneDecimal(share: Double, text: String, difference: String) {
        #expect(percent(share) == text)
        if share.isFinite { #expect(percent(difference: share) == difference) }
    }

    @Test func aShareOfNothingIsNone() {
        #expect(percent(1, of: 0) == "-" && percent(1, of: 8) == "12.5%" && percent(1, of: 10_000) == "<0.1%")
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KB"), (1536, "1.5 KB"), (5 << 20, "5.0 MB"), (3 << 30, "3.0 GB"),
            (5 << 40, "5120.0 GB"),
        ] as [(UInt64, String)])
    func sizesHaveAUnitThatFits(bytes: UInt64, text: String) { #expect(readable(byteCount: bytes) == text) }
}

struct QuotingTests {
    @Test(arguments: [
        ("plain", "plain"), ("a,b", "\"a,b\""), ("say \"no\"", "\"say \"\"no\"\"\""), ("two\nlines", "\"two\nlines\""),
        ("two\r\nlines", "\"two\r\nlines\""), ("a\"\u{301},b", "\"a\"\"\u{301},b\""),
    ])
    func fieldsOfCSVAreQuotedWhereTheyMustBe(text: String, field: String) { #expect(CSV.field(text) == field) }

    @Test func textForXMLIsWellFormed() throws {
        #expect(XML.escaped("a<b>&\"c\"\n\t\u{1b}") == "a&lt;b&gt;&amp;&quot;c&quot;\n\t")
    }

    /// Held against the shell itself.
    @Test(arguments: [
        "", "plain", "two words", "it's", "$HOME", "a\nb", "*", "größe", "a\u{a0}b", "-n", "\\", "\"", "~root", "#", "'\u{301}; echo no",
    ])
    func wordsComeBackFromAShell(word: String) throws {
        let shell = Process(), pipe = Pipe()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", "printf '[%s]' \(shellWord(word))"]
        shell.standardOutput = pipe
        try shell.run()
        #expect(String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) == "[\(word)]")
        shell.waitUntilExit()
    }

    @Test func plainWordsStayAsTheyAre() {
        #expect(shellCommand(["./app", "--to=a,b", "größe", "two words"]) == "./app --to=a,b größe 'two words'")
    }
}

struct CalendarTests {
    @Test(arguments: [0, 951_782_399, 951_782_400, 1_700_000_000, 1_709_164_800, 4_102_444_799, 16_725_225_600] as [UInt64])
    func momentsAreThoseOfTheCLibrary(seconds: UInt64) {
        var time = time_t(seconds), parts = tm()
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 32)
        strftime(&text, text.count, "%Y-%m-%d %H:%M:%S", &parts)
        let expected = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #expect(UTC(seconds: Double(seconds) + 0.9).text == expected)
        #expect(UTC(nanoseconds: seconds * 1_000_000_000 + 7_999_999).iso8601 == expected.replacing(" ", with: "T") + ".007Z")
    }
}

struct JSONTests {
    private struct Inner: Record {
        var zebra: Int64, apple: Double?
        var list: [UInt32]

        static let members = declare {
            Member("zebra", \.zebra)
            Member.optional("apple") { $0.apple }
            Member("list", "not sorted", \.list)
        }
    }
    private struct Outer: Record {
        enum Kind: String, JSONChoice { case first, second }
        var name: String, isOn: Bool, kind: Kind, rows: [Inner], share: Double, none: Nanoseconds?

        static let members = declare {
            Member("name", \.name)
            Member("is_on", \.isOn)
            Member("kind", \.kind)
            Member("rows", \.rows)
            Member("share", \.share)
            Member("none", \.none)
        }
    }
    private let row = Outer(
        name: "a \"b\"\u{1}", isOn: true, kind: .first,
        rows: [Inner(zebra: -1, apple: nil, list: [1, 2]), Inner(zebra: 2, apple: 0.5, list: [])], share: 1, none: nil)

    @Test func membersKeepTheirOrderAndWhatIsNilIsOmitted() {
        #expect(
            row.json.text(lines: 0) == """
                {"name": "a \\"b\\"\\u0001", "is_on": true, "kind": "first", \
                "rows": [{"zebra": -1, "list": [1, 2]}, {"zebra": 2, "apple": 0.5, "list": []}], "share": 1.0, "none": null}
                """)
    }

    @Test func theSchemaHasTheSameMembers() {
        #expect(
            Inner.form.schema(title: "inner").text(lines: 0) == """
                {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "inner", "type": "object", "properties": \
                {"zebra": {"type": "integer"}, "apple": {"type": "number"}, "list": {"description": "not sorted", "type": "array", \
                "items": {"type": "integer", "minimum": 0}}}, "required": ["zebra", "list"], "additionalProperties": false}
                """)
        let whole = Outer.form.schema(title: "outer").text(lines: 0)
        #expect(
            whole.contains(#""kind": {"enum": ["first", "second"]}"#)
                && whole.contains(#""none": {"type": ["integer", "null"], "minimum": 0}"#))
    }

    @Test func linesOfCSVHaveWhatIsNeitherAListNorAnObject() {
        #expect(CSV.lines(row, of: "rows") == ["zebra,apple", "-1,", "2,0.5"])
    }

    @Test func aValueAloneIsOneToo() {
        #expect("text".json.text() == "\"text\"" && ([1, 2] as [Int]).json.text(lines: 0) == "[1, 2]")
    }
}

struct EditDistanceTests {
    @Test(arguments: [
        ("", "", 0), ("a", "", 1), ("", "ab", 2), ("report", "repotr", 1), ("view", "veiw", 1), ("tree", "three", 1),
        ("kitten", "sitting", 3),
    ])
    func countsWhatHasToChange(one: String, other: String, distance: Int) {
        #expect(one.editDistance(to: other) == distance)
        #expect(other.editDistance(to: one) == distance)
    }

    @Test func aMisspeltWordIsTheOneThatItIsMostLike() {
        #expect(["record", "report", "replay"].nearest(to: "repotr") == "report")
        #expect(["record", "report", "replay"].nearest(to: "serach") == nil)
    }
}

struct WrappingTests {
    @Test func linesBreakAtSpacesAndALongWordStaysWhole() {
        #expect(wrapped("  ab cd ef", width: 7, indentation: 4) == ["  ab cd", "    ef"])
        #expect(wrapped("ab cd", width: nil, indentation: 4) == ["ab cd"] && wrapped("ab cd", width: 5, indentation: 4) == ["ab cd"])
        #expect(wrapped("abcdef gh", width: 3, indentation: 1) == ["abcdef gh"] && wrapped("    ", width: 2, indentation: 1) == ["    "])
    }
}
