// JSON in the order that it was put together in, with whole numbers exact (RFC 8259).

package enum JSON: Sendable {
    case null
    case bool(Bool)
    case unsigned(UInt64)
    case signed(Int64)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])

    /// Members of the outermost levels each on a line, as far as `lines` deep.
    package func text(lines: Int = 2) -> String {
        var text = ""
        write(to: &text, lines: lines, indent: "")
        return text
    }

    private func write(to text: inout String, lines: Int, indent: String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .unsigned(let value): text += String(value)
        case .signed(let value): text += String(value)
        case .number(let value): text += value.isFinite ? String(value) : "null"
        case .string(let value): Self.quote(value, to: &text)
        case .array(let values):
            Self.enclose("[", "]", values, &text, lines, indent) { $0.write(to: &$1, lines: lines - 1, indent: $2) }
        case .object(let members):
            Self.enclose("{", "}", members, &text, lines, indent) { member, text, indent in
                Self.quote(member.0, to: &text)
                text += ": "
                member.1.write(to: &text, lines: lines - 1, indent: indent)
            }
        }
    }

    private static func enclose<T>(
        _ open: String, _ close: String, _ values: [T], _ text: inout String, _ lines: Int,
        _ indent: String, _ body: (T, inout String, String) -> Void
    ) {
        let isBroken = lines > 0 && !values.isEmpty
        let inner = indent + "  "
        text += open
        for (index, value) in values.enumerated() {
            if index > 0 { text += isBroken ? "," : ", " }
            if isBroken { text += "\n" + inner }
            body(value, &text, inner)
        }
        if isBroken { text += "\n" + indent }
        text += close
    }

    private static func quote(_ value: String, to text: inout String) {
        text += "\""
        defer { text += "\"" }
        if value.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            text += value
            return
        }
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case _ where scalar.value < 0x20: text += "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
