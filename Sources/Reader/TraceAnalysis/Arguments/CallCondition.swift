// A condition on an argument, the result or errno of a call: `size > 4096`, `path ~ "/etc"`, `open(path == "/etc/passwd")`, `open() < 0`,
// `errno == ENOENT`. docs/guide/arguments.md describes the grammar. Nothing here knows a trace: what a condition means for a call's values
// is in ConditionTest.swift.

/// What a call may be asked about.
package enum CallSubject: Hashable, Sendable {
    /// A parameter's name in the prototype.
    case argument(String)
    case result, errno

    package init(_ name: String) {
        switch name {
        case "result": self = .result
        case "errno": self = .errno
        default: self = .argument(name)
        }
    }
    package var name: String {
        switch self {
        case .argument(let name): name
        case .result: "result"
        case .errno: "errno"
        }
    }
}

package struct CallCondition: Equatable, Sendable {
    /// Operators that begin with another one come before it.
    package enum Comparison: String, CaseIterable, Sendable {
        case equal = "==", notEqual = "!=", atMost = "<=", atLeast = ">=", less = "<", more = ">", matches = "~"
    }
    package enum Operand: Equatable, Sendable {
        case number(Int128)
        /// Names of an enumeration's values, or of flags, all of which are meant.
        case names([String])
        case text([UInt8])
    }
    package struct Problem: Error, Equatable {
        /// Character at which something else is expected, from 1 on.
        package var position: Int
        package var expected: String
        package var message: String { "\(expected) is expected at character \(position)" }
    }

    /// A glob of functions, the only ones that it speaks of; nil: of all that have the subject.
    package let function: String?
    package let subject: CallSubject
    package let comparison: Comparison
    package let operand: Operand
    /// As it was written.
    package let text: String
    /// The same without the function.
    package var textOfValue: String {
        guard let function else { return text }
        let rest = text.drop { $0.isWhitespace }.dropFirst(function.count).drop { $0.isWhitespace }
        let inner = rest.dropFirst() // "("
        if let first = inner.first(where: { !$0.isWhitespace }), first == ")" {
            return "result " + inner.drop { $0 != ")" }.dropFirst().drop { $0.isWhitespace }
        }
        return String(inner.prefix(upTo: inner.lastIndex(of: ")") ?? inner.endIndex))
    }

    package init(_ text: String) throws(Problem) {
        var parser = ConditionParser(text)
        self.text = text
        let word = try parser.word("the name of an argument or a function")
        if parser.take("(") {
            function = word
            if parser.take(")") {
                subject = .result
                (comparison, operand) = try parser.comparison()
            } else {
                subject = CallSubject(try parser.name("the name of an argument, or `)`"))
                (comparison, operand) = try parser.comparison()
                if !parser.take(")") { throw parser.problem("`)`") }
            }
        } else {
            function = nil
            guard ConditionParser.isName(word) else { throw Problem(position: 1, expected: "the name of an argument, or `result`") }
            subject = CallSubject(word)
            (comparison, operand) = try parser.comparison()
        }
        if !parser.isAtEnd { throw parser.problem("the end") }
    }
}

/// Reads a condition from left to right.
private struct ConditionParser {
    private let text: [Character]
    private var next = 0

    init(_ text: String) {
        self.text = Array(text)
        skipBlanks()
    }

    private var character: Character? { next < text.count ? text[next] : nil }
    var isAtEnd: Bool { next == text.count }
    func problem(_ expected: String) -> CallCondition.Problem { CallCondition.Problem(position: next + 1, expected: expected) }

    private mutating func skipBlanks() { while next < text.count, text[next].isWhitespace { next += 1 } }

    mutating func take(_ wanted: String) -> Bool {
        let wanted = Array(wanted)
        guard text[next...].starts(with: wanted) else { return false }
        next += wanted.count
        skipBlanks()
        return true
    }

    /// A name, or a glob of functions, which may have a module before `!`.
    mutating func word(_ what: String) throws(CallCondition.Problem) -> String {
        let begin = next
        while let character, !character.isWhitespace, !"()\"=<>~".contains(character) {
            if character == "!", next + 1 < text.count, text[next + 1] == "=" { break }
            next += isArrow ? 2 : 1
        }
        if begin == next { throw problem(what) }
        defer { skipBlanks() }
        return String(text[begin..<next])
    }

    /// A member of what a pointer points to follows.
    private var isArrow: Bool { character == "-" && next + 1 < text.count && text[next + 1] == ">" }

    /// Or a path to a member.
    static func isName(_ word: String) -> Bool {
        let word = word.split(separator: "->", omittingEmptySubsequences: false).joined(separator: "_")
        return word.first?.isNumber == false && word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_.$".contains($0)) }
    }

    mutating func name(_ what: String) throws(CallCondition.Problem) -> String {
        let begin = next
        while let character, isArrow || Self.isName("_" + String(character)) { next += isArrow ? 2 : 1 }
        let name = String(text[begin..<next])
        if !Self.isName(name) {
            next = begin
            throw problem(what)
        }
        skipBlanks()
        return name
    }

    mutating func comparison() throws(CallCondition.Problem) -> (CallCondition.Comparison, CallCondition.Operand) {
        let begin = next
        guard let comparison = CallCondition.Comparison.allCases.first(where: { take($0.rawValue) }) else {
            throw problem("one of == != < <= > >= ~")
        }
        let operand = try operand()
        if case .text = operand, ![.equal, .notEqual, .matches].contains(comparison) {
            throw CallCondition.Problem(position: begin + 1, expected: "== or != or ~, which compare strings,")
        }
        return (comparison, operand)
    }

    private mutating func operand() throws(CallCondition.Problem) -> CallCondition.Operand {
        defer { skipBlanks() }
        guard let character else { throw problem("a number, a name or a \"string\"") }
        if character == "\"" { return .text(try string()) }
        if character == "-" || character.isASCII && character.isNumber { return .number(try number()) }
        var names = [try name("a number, a name or a \"string\"")]
        while take("|") { names.append(try name("a name")) }
        return names == ["NULL"] ? .number(0) : .names(names)
    }

    /// As in C: 4096, -1, 0x1000, 0755; K, M and G after it are 1024, its square and its cube.
    private mutating func number() throws(CallCondition.Problem) -> Int128 {
        let isNegative = character == "-"
        if isNegative { next += 1 }
        var radix = 10
        if character == "0", next + 1 < text.count {
            if text[next + 1] == "x" || text[next + 1] == "X" {
                radix = 16
                next += 2
            } else if text[next + 1].isASCII, text[next + 1].isNumber {
                radix = 8
                next += 1
            }
        }
        let begin = next
        while let character, character.isASCII, character.isHexDigit { next += 1 }
        guard var value = UInt64(String(text[begin..<next]), radix: radix).map({ Int128($0) }) else {
            next = begin
            throw problem("a number of up to 64 bits")
        }
        if let factor = character.flatMap({ Self.factors[$0] }) {
            next += 1
            value *= factor
        }
        if let character, Self.isName("_" + String(character)) { throw problem("K, M, G or the end of the number") }
        return isNegative ? -value : value
    }
    private static let factors: [Character: Int128] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]

    /// A string literal of C, as values are shown.
    private mutating func string() throws(CallCondition.Problem) -> [UInt8] {
        var bytes: [UInt8] = []
        next += 1
        while let character {
            next += 1
            if character == "\"" { return bytes }
            guard character == "\\", let escaped = self.character else {
                bytes += Array(String(character).utf8)
                continue
            }
            next += 1
            switch escaped {
            case "n": bytes.append(0x0a)
            case "t": bytes.append(0x09)
            case "r": bytes.append(0x0d)
            case _ where Self.octal(escaped) != nil:
                var value = Self.octal(escaped)!, digits = 1
                while digits < 3, let digit = self.character.flatMap(Self.octal) {
                    value = value * 8 + digit
                    digits += 1
                    next += 1
                }
                bytes.append(UInt8(truncatingIfNeeded: value))
            default: bytes += Array(String(escaped).utf8)
            }
        }
        throw problem("a quote that ends the string")
    }
    private static func octal(_ character: Character) -> Int? {
        character.isASCII ? character.wholeNumberValue.flatMap { $0 < 8 ? $0 : nil } : nil
    }
}
