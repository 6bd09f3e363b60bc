// What a function's arguments and its result are: the form in which `--arguments`, files of prototypes and traces have it.
// docs/reference/prototypes.md describes it.

import ELF

/// Type of an argument or a result, as it lies in a register.
package indirect enum ArgumentType: Equatable, Sendable {
    package enum Style: Sendable {
        case decimal, octal, hexadecimal
        /// Only the lowest bit counts: the others of a Bool of Swift may be anything.
        case bit
    }
    case integer(bytes: Int, isSigned: Bool, Style)
    /// A descriptor of a folder, or AT_FDCWD.
    case folder
    case pointer
    /// A char *, whose text is recorded.
    case string
    /// Another string, which is recorded with its text, too.
    case text(TextForm)
    /// What a char *[] has before its null pointer.
    case strings
    /// What a struct timespec * points to, or a struct timeval *.
    case time(isMicroseconds: Bool)
    /// What a struct sockaddr * points to, as many bytes as another parameter says.
    case socketAddress(count: String)
    /// 0, or the number of an error (errno(3)).
    case error
    /// float or double.
    case floatingPoint(bytes: Int)
    /// One of an enumeration's values, or a sum of them.
    case named(String, bytes: Int, isSigned: Bool)
    /// A structure that is passed by value; as a member, one within it.
    case structure(StructureForm)
    /// A member that is an array.
    case array(ArgumentType, count: Int)
    /// A member that is an array of char: a string, up to a zero byte.
    case characters(Int)
    /// It is not recorded.
    case secret
    /// Something that is passed and not shown: a structure, a long double.
    case opaque
    /// The compiler has removed it, or it is not known where it is.
    case unavailable

    /// Bytes of the value that count; 0: it is not recorded.
    var byteCount: Int {
        switch self {
        case .integer(let bytes, _, _), .floatingPoint(let bytes), .named(_, let bytes, _): bytes
        case .folder, .error: 4
        case .pointer, .string, .text, .strings, .time, .socketAddress: 8
        case .structure(let form): form.byteCount
        case .array(let element, let count): element.byteCount * count
        case .characters(let count): count
        case .secret, .opaque, .unavailable: 0
        }
    }

    /// Only debug information says how it is passed.
    var isDescribed: Bool {
        switch self {
        case .text(.described), .structure: true
        default: false
        }
    }
    var isText: Bool {
        switch self {
        case .string, .text: true
        default: false
        }
    }
    /// The parameter that says how many bytes it has.
    var count: String? {
        switch self {
        case .text(.bytes(let count)), .socketAddress(let count): count
        default: nil
        }
    }
    /// A number that can say how many bytes a parameter points to.
    var isCount: Bool {
        switch self {
        case .integer, .named: true
        default: false
        }
    }
    var isFloatingPoint: Bool { if case .floatingPoint = self { true } else { false } }

    /// Types by their names in a prototype.
    static let byName: [String: ArgumentType] = {
        func all(_ names: String, _ bytes: Int, _ isSigned: Bool, _ style: Style = .decimal) -> [(String, ArgumentType)] {
            names.split(separator: " ").map { (String($0), .integer(bytes: bytes, isSigned: isSigned, style)) }
        }
        let integers =
            all("i8 int8_t schar char", 1, true) + all("u8 uint8_t uchar bool", 1, false)
            + all("i16 int16_t short", 2, true) + all("u16 uint16_t ushort", 2, false)
            + all("i32 int32_t int fd pid_t", 4, true) + all("u32 uint32_t uint unsigned uid_t gid_t socklen_t", 4, false)
            + all("i64 int64_t long longlong ssize_t off_t time_t intptr_t ptrdiff_t", 8, true)
            + all("u64 uint64_t ulong ulonglong size_t uintptr_t", 8, false)
            + all("mode_t octal", 4, false, .octal) + all("hex4", 4, false, .hexadecimal) + all("hex", 8, false, .hexadecimal)
            + all("bit", 1, false, .bit)
        let others: [(String, ArgumentType)] = [
            ("dirfd", .folder), ("pointer", .pointer), ("string", .string), ("error", .error), ("secret", .secret),
            ("std_string", .text(.standard)), ("string_view", .text(.view)), ("str", .text(.slice)), ("swift_string", .text(.swift)),
            ("text", .text(.described)), ("strings", .strings), ("timespec", .time(isMicroseconds: false)),
            ("timeval", .time(isMicroseconds: true)),
            ("float", .floatingPoint(bytes: 4)), ("double", .floatingPoint(bytes: 8)), ("opaque", .opaque), ("unavailable", .unavailable),
        ]
        return Dictionary(uniqueKeysWithValues: integers + others)
    }()
}

/// Kinds of strings that are no `char *`.
package enum TextForm: Equatable, Sendable {
    /// Bytes that another parameter counts.
    case bytes(count: String)
    /// Bytes that the call writes, as many as its result says.
    case filled
    /// A std::string of libstdc++, by its address.
    case standard
    /// A std::string_view of libstdc++, by value.
    case view
    /// A &str of Rust: its address and length are two arguments.
    case slice
    /// A String of Swift, which is two arguments.
    case swift
    /// A string whose place the debug information has said.
    case described

    var isOfTwoWords: Bool {
        switch self {
        case .view, .slice, .swift: true
        case .bytes, .filled, .standard, .described: false
        }
    }
}

package struct Prototype: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        package var name: String
        var typeName: String
        package var type: ArgumentType
        /// The call has it only if another argument has one of these values, or, of flags, all bits of one.
        var condition: Condition?
        /// nil: it follows from the types of all parameters.
        var place: ValuePlace?
        /// Its name is a path to a member of what a parameter points to.
        var isMember = false
        var path: MemberPath? { isMember ? MemberPath(name) : nil }
    }
    struct Condition: Equatable, Sendable {
        var parameter: String
        var areFlags: Bool
        var values: [String]
    }
    package struct Result: Equatable, Sendable {
        var typeName: String
        package var type: ArgumentType
        var failure: Failure
        /// The place of a string; nil: it follows from the type.
        var place: ValuePlace?

        func hasFailed(_ number: Int64) -> Bool { failure == .minusOne && number == -1 || failure == .zero && number == 0 }
    }
    /// The result that says that errno has the reason.
    package enum Failure: UInt8, Sendable { case never = 0, minusOne = 1, zero = 2 }

    package static let mostParameters = 30

    /// Returns true if a function, a parameter, an enumeration or its value can have this name.
    static func isName(_ text: String) -> Bool {
        text.utf8.first.map { !(0x30...0x39).contains($0) } == true && text.allSatisfy { PrototypeParser.isNameCharacter($0) }
    }

    /// It chooses parameters and members of a function by their names: debug information says where they are.
    var isSelection: Bool { parameters.contains(where: \.isMember) }

    /// Functions that have it.
    package var names: [String]
    /// The library that must define the function.
    package enum Library: Equatable, Sendable {
        case any, libc
        /// One with this DT_SONAME, up to ".so".
        case named(String)
    }
    package var library: Library
    package var parameters: [Parameter]
    package var result: Result?

    /// As a file of prototypes has it, on one line.
    package var text: String {
        var text = names.joined(separator: "|") + "("
        text +=
            parameters.map { parameter in
                let condition = parameter.condition.map {
                    " when \($0.parameter) \($0.areFlags ? "has" : "is") \($0.values.joined(separator: " "))"
                }
                return "\(parameter.name): \(parameter.typeName)" + (condition ?? "")
            }.joined(separator: ", ") + ")"
        guard let result else { return text }
        text += " -> " + result.typeName
        switch result.failure {
        case .never: break
        case .minusOne: text += " errno at -1"
        case .zero: text += " errno at 0"
        }
        return text
    }

    /// Names of the enumerations that its types are, and those of members.
    var enumerations: Set<String> {
        var names: Set<String> = []
        func add(_ type: ArgumentType) {
            if case .named(let name, _, _) = type { names.insert(name) }
            if case .array(let element, _) = type { add(element) }
            if case .structure(let form) = type { for field in form.fields { add(field.type) } }
        }
        for parameter in parameters { add(parameter.type) }
        if let result { add(result.type) }
        return names
    }

    /// Hides these parameters: their values are not recorded. A structure is hidden as a whole if one of its members is meant.
    package mutating func hide(_ isHidden: (String) -> Bool) {
        func isMeant(_ parameter: Parameter) -> Bool {
            if isHidden(parameter.name) { return true }
            guard case .structure(let form) = parameter.type else { return false }
            return form.contains { isHidden($0.name) }
        }
        for n in parameters.indices where isMeant(parameters[n]) {
            parameters[n].type = .secret
            parameters[n].typeName = "secret"
        }
    }
}

/// Names of values.
package struct Enumeration: Equatable, Sendable {
    struct Value: Equatable, Sendable {
        var name: String
        var number: Int64
        /// Bits of a flag that say whether it is set.
        var mask: Int64
    }
    var name: String
    /// Name of the only processor on which it is so; nil: on all.
    var machine: String?
    var areFlags: Bool
    /// The integer that has the values.
    struct Base: Equatable, Sendable {
        var bytes: Int
        var isSigned: Bool
        static let int = Base(bytes: 4, isSigned: true)
        var name: String { (isSigned ? "i" : "u") + String(bytes * 8) }
    }
    var base = Base.int
    var values: [Value]

    package var text: String {
        let form = base == .int ? "" : "(\(base.name))"
        let head = (areFlags ? "flags " : "enum ") + name + form + (machine.map { "@" + $0 } ?? "") + ":"
        return values.reduce(into: head) { text, value in
            text += " \(value.name)=\(value.number)" + (value.mask == value.number ? "" : "/\(value.mask)")
        }
    }

    /// Returns the text of a value. Bits without a name are a hexadecimal number.
    package func text(_ number: Int64) -> String {
        if !areFlags { return values.first { $0.number == number }?.name ?? String(number) }
        var left = number & 0xffff_ffff, names: [String] = []
        for value in values where number & value.mask == value.number && (value.number != 0 || value.mask != 0) {
            if value.mask == value.number, left & value.mask == 0 { continue } // part of a larger one
            names.append(value.name)
            left &= ~value.mask
        }
        if left != 0 { names.append("0x" + String(UInt64(bitPattern: left), radix: 16)) }
        return names.isEmpty ? "0" : names.joined(separator: "|")
    }
    func number(_ name: String) -> Int64? { values.first { $0.name == name }?.number }
}
