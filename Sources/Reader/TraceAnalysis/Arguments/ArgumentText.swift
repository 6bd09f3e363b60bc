// Arguments and results as text and as JSON.
import Presentation

extension ArgumentValue {
    /// As in C, where C has a form for it.
    package var text: String {
        switch self {
        case .integer(let value): String(value)
        case .unsigned(let value): String(value)
        case .descriptor(let number, let name): "\(number)<\(name)>"
        case .octal(let value): value == 0 ? "0" : "0" + String(value, radix: 8)
        case .address(0): "NULL"
        case .address(let value): "0x" + String(value, radix: 16)
        case .name(let name): name
        case .float(let value): value.description
        case .double(let value): value.description
        case .string(let bytes, .whole): Self.quoted(bytes)
        case .string(let bytes, .cut): Self.quoted(bytes) + "..."
        case .string(let bytes, .unreadable): Self.quoted(bytes) + "?"
        case .list(let values, let ending):
            "[" + (values.map(\.text) + (ending == .cut ? ["..."] : ending == .unreadable ? ["?"] : [])).joined(separator: ", ") + "]"
        case .structure(let fields): "{" + fields.map { "\($0.name)=\($0.value.text)" }.joined(separator: ", ") + "}"
        case .unreadable(let address), .beyond(let address): "0x" + String(address, radix: 16) + "?"
        case .hidden: "<hidden>"
        case .opaque: "{...}"
        case .unavailable: "<unavailable>"
        }
    }

    /// A C string literal; text in UTF-8 stays readable.
    private static func quoted(_ bytes: [UInt8]) -> String {
        var text = "\""
        let valid = String(validating: bytes, as: UTF8.self)
        for scalar in (valid ?? "").unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\" + String(scalar)
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\r": text += "\\r"
            case _ where scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format:
                for byte in String(scalar).utf8 { text += octal(byte) }
            default: text.unicodeScalars.append(scalar)
            }
        }
        if valid == nil {
            for byte in bytes {
                switch byte {
                case 0x22, 0x5c: text += "\\" + String(UnicodeScalar(byte))
                case 0x0a: text += "\\n"
                case 0x09: text += "\\t"
                case 0x0d: text += "\\r"
                case 0x20..<0x7f: text += String(UnicodeScalar(byte))
                default: text += octal(byte)
                }
            }
        }
        return text + "\""
    }
    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
    }
}

extension ArgumentValue: JSONValue {
    /// What it may be depends on the type of the argument.
    package static var form: JSONForm { .any }
    package var json: JSON {
        switch self {
        case .integer(let value), .descriptor(let value, _): .signed(value)
        case .unsigned(let value), .octal(let value): .unsigned(value)
        case .address(0): .null
        case .address, .name: .string(text)
        case .string(let bytes, .whole): .string(String(decoding: bytes, as: UTF8.self))
        case .string(let bytes, .cut): .object([("cut", .string(String(decoding: bytes, as: UTF8.self)))])
        case .string(let bytes, .unreadable): .object([("unreadable_after", .string(String(decoding: bytes, as: UTF8.self)))])
        case .list(let values, .whole): .array(values.map(\.json))
        case .list(let values, .cut): .object([("cut", .array(values.map(\.json)))])
        case .list(let values, .unreadable): .object([("unreadable_after", .array(values.map(\.json)))])
        case .structure(let fields): .object(fields.map { ($0.name, $0.value.json) })
        case .unreadable(let address), .beyond(let address): .object([("unreadable", .string("0x" + String(address, radix: 16)))])
        // JSON has no infinities, and nan is no number.
        case .float(let value): value.isFinite ? .number(Double(value.description) ?? Double(value)) : .string(text)
        case .double(let value): value.isFinite ? .number(value) : .string(text)
        case .hidden: .object([("hidden", .bool(true))])
        case .opaque: .object([("opaque", .bool(true))])
        case .unavailable: .object([("unavailable", .bool(true))])
        }
    }
}

/// Arguments of a call, as a JSON object.
package struct NamedArguments: JSONValue, Sendable {
    package var values: [(name: String, value: ArgumentValue)]

    package init(values: [(name: String, value: ArgumentValue)]) { self.values = values }

    package static var form: JSONForm { .values }
    package var json: JSON { .object(values.map { ($0.name, $0.value.json) }) }

    /// What descriptors among them are open on, by their names; nil: of none is it known.
    package var openOn: NamedArguments? {
        let known = values.compactMap { name, value -> (String, ArgumentValue)? in
            guard case .descriptor(_, let object) = value else { return nil }
            return (name, .string(Array(object.utf8), .whole))
        }
        return known.isEmpty ? nil : NamedArguments(values: known)
    }

    /// As between the parentheses of a call.
    package var text: String { values.map(\.value.text).joined(separator: ", ") }
}
