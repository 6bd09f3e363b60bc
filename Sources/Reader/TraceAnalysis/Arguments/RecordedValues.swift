// The values of a call's arguments, or its result, as the trace has them.
import CTraceLayout
import Presentation

/// Content of the DATA words of one call, and what they are.
package struct RecordedValues: Sendable {
    package var program: UInt32
    package var bytes: [UInt8]

    package init(program: UInt32, bytes: [UInt8]) {
        self.program = program
        self.bytes = bytes
    }
}

/// What a VALUES, RESULT or ARGUMENTS word says: so many DATA words before it, and `tail`, are the arguments of the call of the next enter or
/// complete call, or the result of that of the next exit or complete call.
package struct AnnouncedValues: Sendable {
    package var program: UInt32
    package var words: Int
    /// Four bytes. nil: of an older agent.
    package var tail: UInt32?
    package var isResult: Bool

    package init(program: UInt32, words: Int, tail: UInt32? = nil, isResult: Bool) {
        (self.program, self.words, self.tail, self.isResult) = (program, words, tail, isResult)
    }
}

/// Collects DATA words until a word says whose they are.
package struct ArgumentWords {
    /// Most calls have no words; then nothing else is looked at.
    private var isEmpty = true
    private var data: [UInt64] = []
    private var call: RecordedValues?
    private var result: RecordedValues?

    package init() {}

    package mutating func add(_ payload: UInt64) {
        isEmpty = false
        if data.count < Int(ARGUMENTS_MOST_WORDS) { data.append(payload) }
    }
    /// A word that announces more values than there are says nothing.
    package mutating func announce(_ announced: AnnouncedValues) {
        isEmpty = false
        defer { data.removeAll(keepingCapacity: true) }
        guard announced.words <= data.count else { return }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(announced.words * Int(ARGUMENTS_DATA_BYTES) + Int(CONTROL_VALUES_TAIL_BYTES))
        for word in data.suffix(announced.words) {
            for n in 0..<Int(ARGUMENTS_DATA_BYTES) { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(n * 8))) }
        }
        if let tail = announced.tail {
            for n in 0..<Int(CONTROL_VALUES_TAIL_BYTES) { bytes.append(UInt8(truncatingIfNeeded: tail >> UInt32(n * 8))) }
        }
        let values = RecordedValues(program: announced.program, bytes: bytes)
        if announced.isResult { result = values } else { call = values }
    }
    mutating func clear() {
        if isEmpty { return }
        isEmpty = true
        data.removeAll(keepingCapacity: true)
        call = nil
        result = nil
    }
    /// What the next call or exit has.
    package mutating func take() -> (call: RecordedValues?, result: RecordedValues?) {
        if _fastPath(isEmpty) { return (nil, nil) }
        defer { clear() }
        return (call, result)
    }
}

/// One value.
package enum ArgumentValue: Hashable, Sendable {
    package enum Ending: Sendable { case whole, cut, unreadable }
    case integer(Int64)
    case unsigned(UInt64)
    case octal(UInt64)
    /// A descriptor, and what it is open on.
    case descriptor(Int64, String)
    case address(UInt64)
    /// A named value, or a sum of named flags.
    case name(String)
    case float(Float)
    case double(Double)
    case string([UInt8], Ending)
    case list([ArgumentValue], Ending)
    case structure([ArgumentField])
    /// A pointer to a string that could not be read.
    case unreadable(UInt64)
    /// A member of what lies at a pointer that could not be read.
    case beyond(UInt64)
    case hidden
    /// It was passed, and prototypes have no form for it.
    case opaque
    /// It was not passed, or it was not known where.
    case unavailable
}

/// A member of a structure.
package struct ArgumentField: Hashable, Sendable {
    var name: String
    var value: ArgumentValue
}

/// A prototype of a trace.
package struct RecordedPrototype: Sendable {
    package let prototype: Prototype
    private let enumerations: [String: Enumeration]
    /// Calls that do not fulfil these were not recorded (`record --when`).
    package let conditions: [String]
    /// Begins the line of one. Readers that know none skip it.
    static let conditionMark = "#when "
    /// Some parameter is there only with some values of another.
    private let hasConditions: Bool
    /// Some parameter has members, by whose paths they are asked for.
    private let hasStructures: Bool
    /// The parameter whose bytes the call writes.
    private let filled: String?

    /// - Parameter machine: its enumerations are those of this ELF e_machine. nil: the text is no prototype
    package init?(text: String, machine: UInt32) {
        guard let read = try? Prototypes(file: text, isRecorded: true), let first = read.prototypes.first, read.prototypes.count == 1 else {
            return nil
        }
        prototype = first
        conditions = text.split(separator: "\n").filter { $0.hasPrefix(Self.conditionMark) }.map {
            String($0.dropFirst(Self.conditionMark.count))
        }
        hasConditions = first.parameters.contains { $0.condition != nil }
        hasStructures = first.parameters.contains { if case .structure = $0.type { true } else { false } }
        filled = first.parameters.first { $0.type == .text(.filled) }?.name
        let name = machine == 62 ? "x86_64" : machine == 183 ? "aarch64" : ""
        enumerations = Dictionary(
            read.enumerations.filter { $0.machine == nil || $0.machine == name }.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
    }

    /// Returns the arguments of a call, by their names: as far as its bytes go, and without those that the call does not have.
    package func arguments(_ values: RecordedValues) -> [(name: String, value: ArgumentValue)] {
        var reader = ByteReader(values.bytes), all: [(name: String, value: ArgumentValue)] = [], numbers: [String: Int64] = [:]
        for parameter in prototype.parameters {
            if let value = Self.unread(parameter.type) {
                all.append((parameter.name, value))
                continue
            }
            var number: Int64?
            guard let value = value(parameter, &reader, &number) else { break }
            if hasConditions, let number { numbers[parameter.name] = number }
            if let condition = parameter.condition, !holds(condition, numbers) { continue }
            all.append((parameter.name, value))
        }
        return all
    }

    /// The same with what the call has written, which the words of its result have.
    package func arguments(_ values: RecordedValues, _ result: RecordedValues?) -> [(name: String, value: ArgumentValue)] {
        var all = arguments(values)
        guard let filled, let result, let n = all.firstIndex(where: { $0.name == filled }), let text = written(result) else { return all }
        all[n].value = text
        return all
    }
    /// nil: it is not known.
    private func written(_ result: RecordedValues) -> ArgumentValue? {
        var reader = ByteReader(result.bytes), number: Int64?
        guard let own = prototype.result, value(own.type, &reader, &number) != nil, let number else { return nil }
        if own.hasFailed(number), reader.integer(4) == nil { return nil }
        return reader.isBeyond ? nil : string(&reader)
    }

    /// Returns one of them; nil: the call does not have it.
    package func argument(_ name: String, _ values: RecordedValues, _ result: RecordedValues?) -> ArgumentValue? {
        if name == filled, let result, let text = written(result) { return text }
        return argument(name, values)
    }
    package func argument(_ name: String, _ values: RecordedValues) -> ArgumentValue? {
        if hasConditions || hasStructures { return arguments(values).value(name) }
        var reader = ByteReader(values.bytes)
        for parameter in prototype.parameters {
            var number: Int64?
            if let value = Self.unread(parameter.type) {
                if parameter.name == name { return value }
            } else if parameter.name == name {
                return value(parameter, &reader, &number)
            } else if value(parameter, &reader, &number) == nil {
                return nil
            }
        }
        return nil
    }

    /// What stands for a value that the trace does not have; nil: it has those of this type.
    private static func unread(_ type: ArgumentType) -> ArgumentValue? {
        switch type {
        case .secret: .hidden
        case .opaque: .opaque
        case .unavailable: .unavailable
        default: nil
        }
    }

    /// False: calls have the parameter only with some values of another.
    func isAlwaysPassed(_ name: String) -> Bool {
        !hasConditions || prototype.parameters.first { name == $0.name || name.hasPrefix($0.name + ".") }?.condition == nil
    }

    private func holds(_ condition: Prototype.Condition, _ numbers: [String: Int64]) -> Bool {
        guard let number = numbers[condition.parameter],
            let parameter = prototype.parameters.first(where: { $0.name == condition.parameter }),
            case .named(let name, _, _) = parameter.type, let enumeration = enumerations[name]
        else { return true }
        return condition.values.contains { value in
            guard let wanted = enumeration.number(value) else { return false }
            return condition.areFlags ? number & wanted == wanted : number == wanted
        }
    }

    /// Returns the result of a call, and errno's name if it has failed.
    package func result(_ values: RecordedValues) -> (value: ArgumentValue, errno: String?)? {
        guard let result = prototype.result else { return nil }
        var reader = ByteReader(values.bytes), number: Int64?
        guard let value = value(result.type, &reader, &number) else { return nil }
        if case .address(0) = value { number = 0 } // a string has none of its own
        guard let number, result.hasFailed(number), let errno = reader.integer(4), errno != 0 else { return (value, nil) }
        return (value, Self.errors.text(Int64(errno)))
    }
    private static let folders = Enumeration(
        name: "dirfd", machine: nil, areFlags: false, values: [Enumeration.Value(name: "AT_FDCWD", number: -100, mask: -100)])
    private static let errors = ArgumentChoice.builtIn.enumerations.first { $0.name == "errno" }!

    /// Names of a type's numbers; nil: it has none.
    func enumeration(_ type: ArgumentType) -> Enumeration? {
        switch type {
        case .named(let name, _, _): enumerations[name]
        case .error: Self.errors
        case .folder: Self.folders
        default: nil
        }
    }

    /// A member that is a number is recorded as strings are: it may be unreadable.
    private func value(_ parameter: Prototype.Parameter, _ reader: inout ByteReader, _ number: inout Int64?) -> ArgumentValue? {
        if !parameter.isMember { return value(parameter.type, &reader, &number) }
        if parameter.type.isText, !reader.isBeyond { return value(parameter.type, &reader, &number) }
        guard let head = reader.integer(2) else { return nil }
        if Int(head >> UInt64(ARGUMENTS_TEXT_SHIFT)) == Int(ARGUMENTS_TEXT_UNREAD) { return reader.integer(8).map { .beyond($0) } }
        guard let bytes = reader.bytes(Int(head & (1 << UInt64(ARGUMENTS_TEXT_SHIFT) - 1))) else { return nil }
        var own = ByteReader(bytes)
        return value(parameter.type, &own, &number) ?? .unavailable
    }

    /// nil: its bytes are not there.
    /// - Parameter number: gets the value's bits with their sign; nothing for a string
    private func value(_ type: ArgumentType, _ reader: inout ByteReader, _ number: inout Int64?) -> ArgumentValue? {
        switch type {
        case .text(.filled): break // its address
        case .string, .text: return string(&reader)
        case .strings: return strings(&reader)
        case .time, .socketAddress: return structure(type, &reader)
        case .structure(let form): return structure(form, &reader)
        default: break
        }
        guard let bits = reader.integer(type.byteCount) else { return nil }
        let unused = 64 - type.byteCount * 8, signed = Int64(bitPattern: bits << UInt64(unused)) >> Int64(unused)
        number = signed
        switch type {
        case .integer(_, let isSigned, .decimal): return isSigned ? .integer(signed) : .unsigned(bits)
        case .integer(_, _, .octal): return .octal(bits)
        case .integer(_, _, .bit):
            number = signed & 1
            return .unsigned(bits & 1)
        case .integer(_, _, .hexadecimal): return .address(bits)
        case .folder: return signed == -100 ? .name("AT_FDCWD") : .integer(signed)
        case .error: return signed == 0 ? .integer(0) : .name(Self.errors.text(signed))
        case .floatingPoint(4): return .float(Float(bitPattern: UInt32(bits)))
        case .floatingPoint: return .double(Double(bitPattern: bits))
        case .named(let name, _, let isSigned):
            let own = isSigned ? signed : Int64(bitPattern: bits), plain: ArgumentValue = isSigned ? .integer(signed) : .unsigned(bits)
            guard let enumeration = enumerations[name] else { return plain }
            if !enumeration.areFlags, !enumeration.values.contains(where: { $0.number == own }) { return plain }
            return .name(enumeration.text(enumeration.areFlags ? Int64(bitPattern: bits) : own))
        default: return .address(bits)
        }
    }

    private func strings(_ reader: inout ByteReader) -> ArgumentValue? {
        guard let head = reader.integer(2) else { return nil }
        let how = Int(head >> UInt64(ARGUMENTS_TEXT_SHIFT))
        if how == Int(ARGUMENTS_TEXT_UNREAD) { return reader.integer(8).map { $0 == 0 ? .address(0) : .unreadable($0) } }
        var all: [ArgumentValue] = []
        for _ in 0..<(head & (1 << UInt64(ARGUMENTS_TEXT_SHIFT) - 1)) {
            guard let string = string(&reader) else { return nil }
            all.append(string)
        }
        return .list(all, how == Int(ARGUMENTS_TEXT_WHOLE) ? .whole : how == Int(ARGUMENTS_TEXT_CUT) ? .cut : .unreadable)
    }

    /// The bytes of one are recorded as those of a string are.
    private func structure(_ type: ArgumentType, _ reader: inout ByteReader) -> ArgumentValue? {
        let recorded = string(&reader)
        guard case .string(let bytes, let ending)? = recorded else { return recorded } // nobody could read it
        var own = ByteReader(bytes)
        if case .time(let isMicroseconds) = type {
            guard ending == .whole, let seconds = own.integer(8), let rest = own.integer(8) else { return .unavailable }
            return .structure([
                ArgumentField(name: "tv_sec", value: .integer(Int64(bitPattern: seconds))),
                ArgumentField(name: isMicroseconds ? "tv_usec" : "tv_nsec", value: .integer(Int64(bitPattern: rest))),
            ])
        }
        return SocketAddress.value(bytes) ?? .unavailable
    }

    private func structure(_ form: StructureForm, _ reader: inout ByteReader) -> ArgumentValue? {
        if !form.isBehind { return reader.bytes(form.byteCount).map { members(form, $0[...]) } }
        let recorded = string(&reader)
        guard case .string(let bytes, let ending)? = recorded else { return recorded } // nobody could read it
        return ending == .whole ? members(form, bytes[...]) : .unavailable
    }
    private func members(_ form: StructureForm, _ bytes: ArraySlice<UInt8>) -> ArgumentValue {
        .structure(
            form.fields.map { field in
                let own = bytes.dropFirst(field.offset)
                if let value = Self.unread(field.type) { return ArgumentField(name: field.name, value: value) }
                if case .structure(let nested) = field.type { return ArgumentField(name: field.name, value: members(nested, own)) }
                if let value = elements(field.type, own) { return ArgumentField(name: field.name, value: value) }
                let value = field.bits.map { Self.bits($0, of: field.type, own) } ?? Array(own.prefix(field.type.byteCount))
                var reader = ByteReader(value), number: Int64?
                return ArgumentField(name: field.name, value: self.value(field.type, &reader, &number) ?? .unavailable)
            })
    }
    /// nil: it is no array.
    private func elements(_ type: ArgumentType, _ bytes: ArraySlice<UInt8>) -> ArgumentValue? {
        switch type {
        case .characters(let count): return .string(Array(bytes.prefix(count).prefix { $0 != 0 }), .whole)
        case .array(let element, let count):
            var reader = ByteReader(Array(bytes.prefix(type.byteCount))), number: Int64?
            return .list((0..<count).map { _ in value(element, &reader, &number) ?? .unavailable }, .whole)
        default: return nil
        }
    }
    /// A bit-field as it would be without its width.
    private static func bits(_ bits: StructureForm.Bits, of type: ArgumentType, _ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let word = bytes.prefix(8).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }, above = UInt64(64 - bits.shift - bits.count)
        let isSigned =
            switch type {
            case .integer(_, let isSigned, _), .named(_, _, let isSigned): isSigned
            default: false
            }
        let top = word << above, unused = UInt64(64 - bits.count)
        let number = isSigned ? UInt64(bitPattern: Int64(bitPattern: top) >> Int64(unused)) : top >> unused
        return (0..<type.byteCount).map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
    }

    private func string(_ reader: inout ByteReader) -> ArgumentValue? {
        guard let head = reader.integer(2) else { return nil }
        let length = Int(head & (1 << UInt64(ARGUMENTS_TEXT_SHIFT) - 1))
        switch Int(head >> UInt64(ARGUMENTS_TEXT_SHIFT)) {
        case Int(ARGUMENTS_TEXT_UNREAD): return reader.integer(8).map { $0 == 0 ? .address(0) : .unreadable($0) }
        case Int(ARGUMENTS_TEXT_WHOLE): return reader.bytes(length).map { .string($0, .whole) }
        case Int(ARGUMENTS_TEXT_CUT): return reader.bytes(length).map { .string($0, .cut) }
        default: return reader.bytes(length).map { .string($0, .unreadable) }
        }
    }
}

private struct ByteReader {
    private let bytes: [UInt8]
    private var next = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// What comes next could not be read, since what says where it is could not.
    var isBeyond: Bool {
        var next = self
        return next.integer(2) == UInt64(ARGUMENTS_TEXT_UNREAD) << UInt64(ARGUMENTS_TEXT_SHIFT) | UInt64(ARGUMENTS_TEXT_BEYOND)
    }

    mutating func integer(_ count: Int) -> UInt64? {
        guard bytes.count - next >= count else { return nil }
        defer { next += count }
        return (0..<count).reduce(0) { $0 | UInt64(bytes[next + $1]) << UInt64($1 * 8) }
    }
    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard bytes.count - next >= count else { return nil }
        defer { next += count }
        return Array(bytes[next..<next + count])
    }
}
