// Reads prototypes: of a file, of a trace, or one of a command line.
import ELF

package struct PrototypeError: Error {
    package var reason: String
    /// Line of the file, from 1 on.
    package var line: Int
}

/// What a file of prototypes says, or a trace.
package struct Prototypes: Sendable {
    package var prototypes: [Prototype] = []
    package var enumerations: [Enumeration] = []

    package init() {}

    /// - Parameters:
    ///   - known: enumerations of other files, which types may be, too
    ///   - isRecorded: a trace has it: debug information may have said where its strings are
    package init(file text: String, known: [Enumeration] = [], isRecorded: Bool = false) throws(PrototypeError) {
        var library = Prototype.Library.any, joined = "", first = 0
        var lines: [(text: String, number: Int)] = []
        for (n, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if joined.isEmpty { first = n + 1 }
            let trimmed = Self.trimmed(line)
            if trimmed.hasSuffix("\\") {
                joined += trimmed.dropLast() + " "
                continue
            }
            joined += trimmed
            if !joined.isEmpty, !joined.hasPrefix("#") { lines.append((joined, first)) }
            joined = ""
        }
        if !joined.isEmpty { throw PrototypeError(reason: "the last line ends in a backslash", line: first) }
        // Enumerations first: a prototype may come before those that it names.
        for (text, number) in lines where text.hasPrefix("enum ") || text.hasPrefix("flags ") {
            enumerations.append(try Self.enumeration(text, number))
        }
        let names = Dictionary((known + enumerations).map { ($0.name, $0.base) }, uniquingKeysWith: { $1 })
        for (text, number) in lines where !text.hasPrefix("enum ") && !text.hasPrefix("flags ") {
            if text.hasPrefix("library ") {
                switch text.dropFirst(8) {
                case "libc": library = .libc
                case "any": library = .any
                case let other:
                    guard other.hasPrefix("lib"), !other.contains(where: { " /".contains($0) }), !other.contains(".so") else {
                        throw PrototypeError(reason: "library \(other): libc, any, or a library's name up to .so, as libz", line: number)
                    }
                    library = .named(String(other))
                }
                continue
            }
            var parser = try PrototypeParser(text, names, number), prototype = try parser.prototype()
            if !isRecorded, let other = prototype.parameters.first(where: \.type.isDescribed) {
                let reason =
                    other.type == .text(.described)
                    ? "text is a string that debug information describes: write string, std_string, str, …"
                    : "only debug information says how a structure is passed: write the function's name alone"
                throw PrototypeError(reason: "\(other.name): \(reason)", line: number)
            }
            if !isRecorded, prototype.result?.type.isDescribed == true {
                throw PrototypeError(
                    reason: "text is a string that debug information describes: write -> string, std_string, str, …", line: number)
            }
            prototype.library = library
            prototypes.append(prototype)
        }
    }

    private static func trimmed(_ line: Substring) -> String {
        var line = line
        while let last = line.last, last.isWhitespace { line.removeLast() }
        return String(line.drop { $0.isWhitespace })
    }

    private static func enumeration(_ text: String, _ line: Int) throws(PrototypeError) -> Enumeration {
        let words = text.split(separator: " "), areFlags = words[0] == "flags"
        guard words.count > 1, words[1].hasSuffix(":") else {
            throw PrototypeError(reason: "\(words[0]) needs a name and a colon: \(words[0]) NAME: A=1 B=2", line: line)
        }
        var parts = words[1].dropLast().split(separator: "@", omittingEmptySubsequences: false), base = Enumeration.Base.int
        if parts[0].hasSuffix(")"), let start = parts[0].firstIndex(of: "(") {
            let form = parts[0][parts[0].index(after: start)...].dropLast()
            guard case .integer(let bytes, let isSigned, .decimal)? = ArgumentType.byName[String(form)] else {
                throw PrototypeError(reason: "\(form) is no integer, of which an enumeration could be made", line: line)
            }
            base = Enumeration.Base(bytes: bytes, isSigned: isSigned)
            parts[0] = parts[0][..<start]
        }
        guard let name = parts.first, !name.isEmpty, parts.count <= 2, ArgumentType.byName[String(name)] == nil else {
            throw PrototypeError(reason: "\(words[1].dropLast()) is no name for an enumeration", line: line)
        }
        var values: [Enumeration.Value] = []
        for word in words.dropFirst(2) {
            let sides = word.split(separator: "=", maxSplits: 1), numbers = sides.last?.split(separator: "/") ?? []
            guard sides.count == 2, let number = Self.number(numbers[0]), numbers.count <= 2,
                let mask = numbers.count == 2 ? Self.number(numbers[1]) : number
            else { throw PrototypeError(reason: "\(word): a value is NAME=NUMBER, or of flags NAME=NUMBER/MASK", line: line) }
            values.append(Enumeration.Value(name: String(sides[0]), number: number, mask: mask))
        }
        return Enumeration(
            name: String(name), machine: parts.count == 2 ? String(parts[1]) : nil, areFlags: areFlags, base: base,
            values: values)
    }
    static func number(_ text: Substring) -> Int64? {
        if text.hasPrefix("0x") { return Int64(text.dropFirst(2), radix: 16) }
        return Int64(text)
    }
}

/// Reads one prototype from left to right.
struct PrototypeParser {
    private var tokens: [Substring] = []
    private var next = 0
    /// Each with the integer that it is made of.
    private let enumerations: [String: Enumeration.Base]
    private let line: Int

    init(_ text: String, _ enumerations: [String: Enumeration.Base], _ line: Int) throws(PrototypeError) {
        self.enumerations = enumerations
        self.line = line
        var rest = Substring(text)
        while let first = rest.first {
            if first.isWhitespace {
                rest.removeFirst()
                continue
            }
            var count = rest.prefix { Self.isNameCharacter($0) }.count
            // A function of C++ or Rust may have names of namespaces before its own.
            while count > 0, rest.dropFirst(count).hasPrefix("::"), let next = rest.dropFirst(count + 2).first, Self.isNameCharacter(next) {
                count += 2 + rest.dropFirst(count + 2).prefix { Self.isNameCharacter($0) }.count
            }
            if count == 0, rest.hasPrefix("->") { count = 2 }
            if count == 0, rest.hasPrefix("-1") { count = 2 }
            if count == 0, "(),:|[]{}@*".contains(first) { count = 1 }
            guard count > 0 else { throw PrototypeError(reason: "\(first) means nothing in a prototype", line: line) }
            tokens.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
    }
    static func isNameCharacter(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber || "_.$".contains(character))
    }

    private var token: Substring? { next < tokens.count ? tokens[next] : nil }
    private mutating func take(_ wanted: String) -> Bool {
        if token != Substring(wanted) { return false }
        next += 1
        return true
    }
    private func fail(_ reason: String) -> PrototypeError { PrototypeError(reason: reason, line: line) }
    private mutating func need(_ wanted: String, _ place: String) throws(PrototypeError) {
        if !take(wanted) { throw fail("\(wanted) is missing \(place)" + (token.map { ", before \($0)" } ?? "")) }
    }
    private mutating func name(_ what: String, isScoped: Bool = false) throws(PrototypeError) -> String {
        guard let token, let first = token.first, Self.isNameCharacter(first), !first.isNumber, isScoped || !token.contains(":") else {
            throw fail("\(what) is missing" + (token.map { " before \($0)" } ?? " at the end"))
        }
        next += 1
        return String(token)
    }

    mutating func prototype() throws(PrototypeError) -> Prototype {
        var names = [try name("the name of a function", isScoped: true)]
        while take("|") { names.append(try name("the name of a function", isScoped: true)) }
        try need("(", "after \(names.last!)")
        var prototype = Prototype(names: names, library: .any, parameters: [], result: nil)
        if !take(")") {
            var omitted: [Int] = []
            repeat {
                let (parameter, hasType) = try parameter(prototype.parameters)
                if !hasType { omitted.append(prototype.parameters.count) }
                prototype.parameters.append(parameter)
            } while take(",")
            try need(")", "after the parameters of \(names[0])")
            // The debug information says what members are.
            if prototype.isSelection {
                for n in omitted { (prototype.parameters[n].typeName, prototype.parameters[n].type) = ("", .unavailable) }
            }
        }
        if take("->") { prototype.result = try result() }
        let filled = prototype.parameters.filter { $0.type == .text(.filled) }
        if let first = filled.first, filled.count > 1 || prototype.result?.type.isCount != true {
            throw fail("\(first.name): bytes[result] is one parameter of a function whose result is a number: `-> ssize_t`")
        }
        if let token { throw fail("\(token) after the end of the prototype of \(names[0])") }
        let words = prototype.parameters.map { if case .text(let form) = $0.type, form.isOfTwoWords { 2 } else { 1 } }
        if words.reduce(0, +) > Prototype.mostParameters { throw fail("\(names[0]) has more than 30 parameters") }
        for parameter in prototype.parameters {
            guard let count = parameter.type.count else { continue }
            guard prototype.isSelection || prototype.parameters.contains(where: { $0.name == count && $0.type.isCount }) else {
                throw fail("\(parameter.name): \(count) is no parameter with a number, which could say how many bytes there are")
            }
        }
        return prototype
    }

    /// - Returns: also whether its type is said
    private mutating func parameter(_ earlier: [Prototype.Parameter]) throws(PrototypeError) -> (Prototype.Parameter, Bool) {
        let name = try path()
        if earlier.contains(where: { $0.name == name }) { throw fail("two parameters are called \(name)") }
        var parameter = Prototype.Parameter(name: name, typeName: "int", type: ArgumentType.byName["int"]!)
        parameter.isMember = MemberPath(name) != nil
        let hasType = take(":")
        if hasType { (parameter.typeName, parameter.type) = try type() }
        if take("when") {
            let other = try self.name("the name of a parameter")
            guard let known = earlier.first(where: { $0.name == other }), case .named = known.type else {
                throw fail("\(name): \(other) is no earlier parameter with an enumeration for its type")
            }
            let areFlags = take("has")
            if !areFlags, !take("is") { throw fail("\(name): write `when \(other) has FLAG …` or `when \(other) is VALUE …`") }
            var values: [String] = []
            while let token, token != ",", token != ")" {
                values.append(String(token))
                next += 1
            }
            if values.isEmpty { throw fail("\(name): the values of \(other) are missing") }
            parameter.condition = Prototype.Condition(parameter: other, areFlags: areFlags, values: values)
        }
        return (parameter, hasType)
    }
    /// The name of a parameter, or of a member of what it points to: `request->uri.len`.
    private mutating func path() throws(PrototypeError) -> String {
        var path = try name("the name of a parameter")
        while take("->") { path += "->" + (try name("the name of a member")) }
        return path
    }

    /// The members of a structure, whose brace is taken, up to the brace at the end.
    private mutating func fields(_ depth: Int) throws(PrototypeError) -> [StructureForm.Field] {
        var fields: [StructureForm.Field] = []
        repeat {
            var field = StructureForm.Field(name: try name("the name of a member"), typeName: "", type: .opaque, offset: 0)
            try need(":", "after the member \(field.name)")
            if take("{") {
                if depth == StructureForm.deepest { throw fail("\(field.name) is nested too deep") }
                let form = StructureForm(fields: try self.fields(depth + 1), byteCount: 0, isBehind: false)
                (field.typeName, field.type) = (form.text, .structure(form))
            } else {
                if token == "*" { throw fail("the type of the member \(field.name) is missing before *") }
                (field.typeName, field.type) = try type()
                if take("[") {
                    let count = try count("the number of elements of \(field.name)")
                    try need("]", "after \(count)")
                    field.type = field.type == .text(.described) ? .characters(count) : .array(field.type, count: count)
                    field.typeName += "[\(count)]"
                }
            }
            try need("@", "after the type of \(field.name)")
            field.offset = try count("the offset of \(field.name)")
            if take(":") {
                let shift = try count("the first bit of \(field.name)")
                try need(":", "after the first bit of \(field.name)")
                field.bits = StructureForm.Bits(shift: shift, count: try count("the number of bits of \(field.name)"))
                if shift > 7 || !(1...64 - shift).contains(field.bits!.count) { throw fail("\(field.name) has more than 64 bits") }
            }
            fields.append(field)
        } while take(",") && fields.count < StructureForm.mostFields
        try need("}", "after the members")
        return fields
    }
    private mutating func count(_ what: String) throws(PrototypeError) -> Int {
        guard let token, let number = Int(token), (0..<4096).contains(number) else { throw fail("\(what) is missing") }
        next += 1
        return number
    }
    private mutating func structure(isBehind: Bool) throws(PrototypeError) -> (String, ArgumentType) {
        let fields = try fields(0)
        try need("[", "after the members, before the number of bytes")
        let form = StructureForm(fields: fields, byteCount: try count("the number of bytes"), isBehind: isBehind)
        try need("]", "after the number of bytes")
        return (form.text, .structure(form))
    }

    private mutating func type() throws(PrototypeError) -> (String, ArgumentType) {
        if take("{") { return try structure(isBehind: false) }
        if take("*") {
            try need("{", "after *")
            return try structure(isBehind: true)
        }
        let name = try name("a type")
        if name == "bytes" || name == "sockaddr" {
            try need("[", "after \(name): \(name)[n], where n is the parameter that counts its bytes")
            let count = try path()
            try need("]", "after \(count)")
            if name == "bytes", count == "result" { return ("bytes[result]", .text(.filled)) }
            return ("\(name)[\(count)]", name == "bytes" ? .text(.bytes(count: count)) : .socketAddress(count: count))
        }
        if let type = ArgumentType.byName[name] { return (name, type) }
        guard let base = enumerations[name] else {
            throw fail(
                "there is no type \(name): int, long, size_t, pointer, string, std_string, an enumeration, … (docs/reference/prototypes.md)"
            )
        }
        return (name, .named(name, bytes: base.bytes, isSigned: base.isSigned))
    }

    private mutating func result() throws(PrototypeError) -> Prototype.Result {
        let (name, type) = try type()
        switch type {
        case .text(.bytes), .text(.filled): throw fail("nothing counts the bytes of a result: its type is pointer")
        case .structure, .array, .characters: throw fail("structures as results are not recorded")
        case .strings, .time, .socketAddress: throw fail("what a result points to is not recorded: its type is pointer")
        default: break
        }
        if type.byteCount == 0 { throw fail("a result that is not recorded has no type: leave out `-> \(name)`") }
        var result = Prototype.Result(typeName: name, type: type, failure: .never)
        guard take("errno") else { return result }
        if case .text = type { throw fail("a result of type \(name) does not say failure: leave out `errno`") }
        if type.isFloatingPoint { throw fail("a result of type \(name) does not say failure: leave out `errno`") }
        result.failure = type == .pointer || type == .string ? .zero : .minusOne
        if take("at") {
            if take("0") {
                result.failure = .zero
            } else if take("-1") {
                result.failure = .minusOne
            } else {
                throw fail("errno is read at the result -1 or 0")
            }
        }
        return result
    }
}
