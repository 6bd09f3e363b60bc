// The meaning of a condition for the values of a call. What is not known holds no condition, not even `!=`: values that were not recorded or
// are hidden, strings that could not be read, the end of one that was cut.
import Glibc

extension CallCondition {
    /// - Parameter enumeration: names of the value's numbers; nil: it has none
    package func holds(_ value: ArgumentValue, _ enumeration: Enumeration?) -> Bool {
        if case .string(let bytes, let ending) = value { return holds(bytes, isWhole: ending == .whole) }
        guard let number = value.number(enumeration) else { return false }
        switch operand {
        case .text: return false
        case .number(let wanted): return holds(number, wanted, enumeration, bits: [(wanted, wanted)])
        case .names(let names):
            let values = names.map { enumeration?.value($0) }
            guard !values.contains(where: { $0 == nil }) else { return false }
            let wanted = values.reduce(Int128(0)) { $0 | Int128($1!.number) }
            return holds(number, wanted, enumeration, bits: values.map { (Int128($0!.number), Int128($0!.mask)) })
        }
    }

    /// - Parameter bits: for `~`: what each name's bits have to be
    private func holds(_ number: Int128, _ wanted: Int128, _ enumeration: Enumeration?, bits: [(number: Int128, mask: Int128)]) -> Bool {
        switch comparison {
        case .equal: number == wanted
        case .notEqual: number != wanted
        case .less: number < wanted
        case .more: number > wanted
        case .atMost: number <= wanted
        case .atLeast: number >= wanted
        case .matches: enumeration?.areFlags == false ? number == wanted : bits.allSatisfy { number & $0.mask == $0.number }
        }
    }

    /// - Parameter isWhole: false: the string goes on, unknown how
    private func holds(_ bytes: [UInt8], isWhole: Bool) -> Bool {
        switch (operand, comparison) {
        case (.number(0), .notEqual): true // it is not NULL
        case (.text(let wanted), .equal): isWhole && bytes == wanted
        case (.text(let wanted), .notEqual): isWhole ? bytes != wanted : !wanted.starts(with: bytes)
        case (.text(let wanted), .matches): Self.matches(wanted, bytes, isWhole: isWhole)
        default: false
        }
    }

    /// A text without `*`, `?` and `[` lies anywhere in the string; one with them is a glob of the whole (fnmatch(3)).
    private static func matches(_ wanted: [UInt8], _ bytes: [UInt8], isWhole: Bool) -> Bool {
        if wanted.contains(where: { "*?[".utf8.contains($0) }) {
            let pattern = wanted.filter { $0 != 0 }.map { CChar(bitPattern: $0) } + [0]
            return isWhole && fnmatch(pattern, bytes.map { CChar(bitPattern: $0) } + [0], 0) == 0
        }
        guard wanted.count <= bytes.count else { return false }
        return (0...bytes.count - wanted.count).contains { bytes[$0..<$0 + wanted.count].elementsEqual(wanted) }
    }
}

extension ArgumentValue {
    /// Its number; nil: it is a string, or not known.
    func number(_ enumeration: Enumeration?) -> Int128? {
        switch self {
        case .integer(let value), .descriptor(let value, _): Int128(value)
        case .unsigned(let value), .octal(let value), .address(let value), .unreadable(let value): Int128(value)
        case .name(let text): enumeration?.number(ofText: text).map { Int128($0) }
        case .string, .list, .structure, .beyond, .float, .double, .hidden, .opaque, .unavailable: nil
        }
    }
}

extension Enumeration {
    func value(_ name: String) -> Value? { values.first { $0.name == name } }

    /// Returns the number whose text this is.
    func number(ofText text: String) -> Int64? {
        guard areFlags else { return number(text) ?? Int64(text) }
        return text.split(separator: "|").reduce(0 as Int64?) { sum, part in
            let bits = number(String(part)) ?? (part.hasPrefix("0x") ? Int64(part.dropFirst(2), radix: 16) : Int64(part))
            return sum.flatMap { sum in bits.map { sum | $0 } }
        }
    }
}

extension RecordedPrototype {
    /// True if calls have what is asked about.
    package func has(_ subject: CallSubject) -> Bool {
        subject == .errno ? prototype.result.map { $0.failure != .never || $0.type == .error } ?? false : type(subject) != nil
    }

    private func isMember(_ subject: CallSubject) -> Bool {
        prototype.parameters.contains { $0.isMember && subject == .argument($0.name) }
    }
    func type(_ subject: CallSubject) -> ArgumentType? {
        switch subject {
        case .argument(let name): prototype.named(name)?.type
        case .result: prototype.result?.type
        case .errno: .error
        }
    }
    private func enumeration(_ subject: CallSubject) -> Enumeration? { type(subject).flatMap(enumeration) }

    /// True if sums and percentiles of its values say something: those of descriptors and ids do not.
    package func isQuantity(_ subject: CallSubject) -> Bool {
        guard case .integer(_, _, .decimal) = type(subject) else { return false }
        let name =
            switch subject {
            case .argument(let name): prototype.named(name)?.typeName
            case .result, .errno: prototype.result?.typeName
            }
        return !["fd", "pid_t", "uid_t", "gid_t", "bool", "char", "schar", "uchar"].contains(name ?? "")
    }

    /// Why the condition cannot hold for any call; nil: it may.
    package func problem(_ condition: CallCondition) -> String? {
        let name = condition.subject.name
        guard let type = type(condition.subject) else { return "\(prototype.names[0]) has no \(name)" }
        switch (type, condition.operand) {
        case (.secret, _): return "\(name) is hidden: its values are not recorded"
        case (.opaque, _), (.unavailable, _): return "the values of \(name) are not recorded"
        case (.structure(let form), _):
            let example = form.fields.first.map { ": compare one of them, \(name).\($0.name)" } ?? ""
            return "\(name) has several values\(example)"
        case (.characters, .text): return nil
        case (.characters, _): return "\(name) is a string: compare it with a text in quotes"
        case (.strings, _), (.time, _), (.socketAddress, _), (.array, _):
            return "\(name) has several values, which conditions do not compare"
        case (.floatingPoint, _): return "\(name) is a floating-point number, which conditions do not compare"
        case (.text, .number(0)) where isMember(condition.subject): return "\(name) is a string: compare it with a text in quotes"
        case (.string, .text), (.string, .number(0)), (.text, .text), (.text, .number(0)): return nil
        case (.string, _), (.text, _): return "\(name) is a string: compare it with a text in quotes"
        case (_, .text): return "\(name) is no string: compare it with a number or a name"
        case (_, .number): return nil
        case (_, .names(let names)):
            guard let enumeration = enumeration(type) else { return "\(name) is a number, without names for its values" }
            guard let unknown = names.first(where: { enumeration.value($0) == nil }) else { return nil }
            let known = enumeration.values.map(\.name)
            return "\(unknown) is no value of \(name): " + known.prefix(12).joined(separator: ", ") + (known.count > 12 ? ", …" : "")
        }
    }

    /// True if a call's values fulfil the condition.
    package func holds(_ condition: CallCondition, _ arguments: NamedArguments?, _ result: (value: ArgumentValue, errno: String?)?) -> Bool
    {
        guard let value = value(condition.subject, arguments, result) else { return false }
        return condition.holds(value, enumeration(condition.subject))
    }

    /// The value that a call has; nil: none, or none is recorded.
    private func value(
        _ subject: CallSubject, _ arguments: NamedArguments?, _ result: (value: ArgumentValue, errno: String?)?
    ) -> ArgumentValue? {
        switch subject {
        case .argument(let name): arguments?.values.value(name)
        case .result: result?.value
        case .errno: result.flatMap { errno($0) }
        }
    }

    /// The name of the error for which the call failed; nil: it did not.
    package func errno(_ result: (value: ArgumentValue, errno: String?)) -> ArgumentValue? {
        if let name = result.errno { return .name(name) }
        if prototype.result?.type == .error, result.value != .integer(0) { return result.value }
        return nil
    }
}
