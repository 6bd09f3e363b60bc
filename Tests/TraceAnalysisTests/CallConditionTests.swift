import Testing
import TraceAnalysis

@Suite struct CallConditionTests {
    private func recorded(_ text: String) throws -> RecordedPrototype { try #require(RecordedPrototype(text: text, machine: 62)) }

    @Test func aConditionIsReadAsItIsWritten() throws {
        let all: [(String, function: String?, CallSubject, CallCondition.Comparison, CallCondition.Operand)] = [
            ("size > 4096", nil, .argument("size"), .more, .number(4096)),
            (" size>=4K ", nil, .argument("size"), .atLeast, .number(4096)),
            ("n==-0x10", nil, .argument("n"), .equal, .number(-16)),
            ("n<=1M", nil, .argument("n"), .atMost, .number(1 << 20)),
            ("n!=2G", nil, .argument("n"), .notEqual, .number(2 << 30)),
            ("mode == 0755", nil, .argument("mode"), .equal, .number(493)),
            ("n == 0", nil, .argument("n"), .equal, .number(0)),
            ("at == NULL", nil, .argument("at"), .equal, .number(0)),
            ("size == 18446744073709551615", nil, .argument("size"), .equal, .number(Int128(UInt64.max))),
            (#"path ~ "/etc""#, nil, .argument("path"), .matches, .text(Array("/etc".utf8))),
            (#"s == "a\"\\\n\t\303\274\0x""#, nil, .argument("s"), .equal, .text(Array("a\"\\\n\tü\0x".utf8))),
            ("flags ~ O_CREAT | O_EXCL", nil, .argument("flags"), .matches, .names(["O_CREAT", "O_EXCL"])),
            ("open*(path!=\"\")", "open*", .argument("path"), .notEqual, .text([])),
            ("libc.so.6!read ( size < 1 )", "libc.so.6!read", .argument("size"), .less, .number(1)),
            ("open() < 0", "open", .result, .less, .number(0)),
            ("ns::f(result == 1)", "ns::f", .result, .equal, .number(1)),
            ("errno == ENOENT", nil, .errno, .equal, .names(["ENOENT"])),
        ]
        for (text, function, subject, comparison, operand) in all {
            let read = try CallCondition(text)
            #expect(
                read.function == function && read.subject == subject && read.comparison == comparison && read.operand == operand, "\(text)")
            #expect(read.text == text)
        }
    }

    @Test func whatIsWrongHasItsPlace() {
        for text in [
            "", "(", "1", "a", "a=", "a==", "a===1", "a==1x", "a==1K2", "a==\"", "a==\"\\", "f(", "f()", "f(a", "f(a>1", "f(a>1)x",
            "a>\"x\"", "a==|", "a==B|", "a==-", "a==0x",
        ] {
            #expect(throws: CallCondition.Problem.self, "\(text)") { try CallCondition(text) }
            do { _ = try CallCondition(text) } catch { #expect((1...text.count + 1).contains(error.position), "\(text): \(error)") }
        }
    }

    /// Every beginning of a condition, and each with a character too much, is read or refused: none ends the tool.
    @Test func noTextEndsTheReading() {
        for whole in [#"open(path ~ "a\101b")"#, "read(size >= 0x1fK)", "flags ~ A|B", "f() != -1"] {
            let characters = Array(whole)
            for count in 0...characters.count {
                for more in ["", "\"", "\\", "(", ")", "|", "=", "-", "9", "ü", "\u{301}"] {
                    _ = try? CallCondition(String(characters[..<count]) + more)
                }
            }
        }
    }

    @Test func whatIsNotKnownHoldsNothing() throws {
        for text in ["a == 0", "a != 0", "a < 1", "a > 1", "a ~ 1", #"a == "x""#, #"a != "x""#, #"a ~ "x""#] {
            let condition = try CallCondition(text)
            #expect(!condition.holds(.hidden, nil), "\(text)")
            if text.contains("\"") { #expect(!condition.holds(.unreadable(16), nil), "\(text)") }
        }
    }

    @Test func theEndOfAStringThatWasCutIsNotKnown() throws {
        let cut = ArgumentValue.string(Array("abc".utf8), .cut)
        for (text, holds) in [
            (#"a == "abc""#, false), (#"a != "abc""#, false), (#"a != "abcd""#, false), (#"a != "abx""#, true), (#"a != "ab""#, true),
            (#"a ~ "bc""#, true), (#"a ~ "cd""#, false), (#"a ~ "abc*""#, false), ("a != NULL", true), ("a == NULL", false),
        ] { #expect(try CallCondition(text).holds(cut, nil) == holds, "\(text)") }
    }

    @Test func namesOfFlagsAreTheirBits() throws {
        let own = try recorded(
            "f(with: access, how: colour, to: dirfd)\nflags access: READ=0/3 WRITE=1/3 CREATE=64 SYNC=0x101000 DSYNC=0x1000\nenum colour: RED=0 BLUE=-7"
        )
        func holds(_ text: String, _ with: UInt32, _ how: Int32 = 0, _ to: Int32 = -100) throws -> Bool {
            var bytes: [UInt8] = []
            for word in [with, UInt32(bitPattern: how), UInt32(bitPattern: to)] { withUnsafeBytes(of: word.littleEndian) { bytes += $0 } }
            let condition = try CallCondition(text)
            #expect(own.problem(condition) == nil)
            return own.holds(condition, NamedArguments(values: own.arguments(RecordedValues(program: 1, bytes: bytes))), nil)
        }
        for (text, with, wanted) in [
            ("with ~ READ", 64 as UInt32, true), ("with ~ READ", 65, false), ("with == READ", 64, false), ("with == READ|CREATE", 64, true),
            ("with ~ CREATE", 0x101041, true), ("with ~ DSYNC", 0x101000, true), ("with ~ SYNC", 0x1000, false),
            ("with == 0x80000000", 0x8000_0000, true),
            ("with ~ 0x80000040", 0x8000_0040, true), ("with != CREATE", 65, true),
        ] { #expect(try holds(text, with) == wanted, "\(text) of \(with)") }
        #expect(
            try holds("how == BLUE", 0, -7) && !holds("how == BLUE", 0) && holds("how < RED", 0, -7) && holds("how ~ RED", 0)
                && holds("how == 5", 0, 5))
        #expect(try holds("to == AT_FDCWD", 0) && holds("to < 0", 0) && !holds("to == AT_FDCWD", 0, 0, 3))
    }

    @Test func aConditionThatCannotHoldSaysWhy() throws {
        let own = try recorded("f(a: string, b: size_t, c: access, d: secret) -> int errno at -1\nflags access: READ=0/3 CREATE=64")
        for (text, word) in [
            ("a > 1", "quotes"), ("a == X", "quotes"), (#"b == "x""#, "no string"), ("b == X", "without names"), ("c == X", "READ, CREATE"),
            ("d == 1", "hidden"),
            ("errno == EWHAT", "EWHAT"), ("e == 1", "has no e"),
        ] {
            #expect(try own.problem(CallCondition(text))?.contains(word) == true, "\(text)")
        }
        for text in ["a == NULL", #"a ~ "x""#, "b > 1", "c == READ", "result < 0", "errno == ENOENT", "errno > 1"] {
            #expect(try own.problem(CallCondition(text)) == nil, "\(text)")
        }
    }

    @Test func numbersAreCountedByPowersOfTwo() {
        var sums = NumberSums()
        for number: Int128 in [0, 1, 2, 3, 4, 255, 256, -1, -4, Int128(UInt64.max)] { sums.add(number) }
        let bars = sums.histogram.filter { $0.calls > 0 }
        #expect(
            bars.map(\.range) == [-7 ... -4, -1 ... -1, 0...0, 1...1, 2...3, 4...7, 128...255, 256...511, (1 << 63)...Int128(UInt64.max)])
        #expect(bars.map(\.calls) == [1, 1, 1, 1, 2, 1, 1, 1, 1])
        #expect(zip(sums.histogram, sums.histogram.dropFirst()).allSatisfy { $0.range.upperBound + 1 == $1.range.lowerBound })
        #expect(sums.sum == 0 + 1 + 2 + 3 + 4 + 255 + 256 - 5 + Int128(UInt64.max) && sums.minimum == -4)
    }
}
