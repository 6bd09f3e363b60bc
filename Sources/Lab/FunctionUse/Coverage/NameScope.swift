// The class, namespace or Swift module of a function, from its demangled name: demo::Shape for demo::Shape::area() const.

package enum NameScope {
    /// Empty: nothing.
    package static func of(_ name: String, symbol: String) -> String {
        if name.hasPrefix("-[") || name.hasPrefix("+[") { return String(name.dropFirst(2).prefix { $0 != " " && $0 != "(" }) }
        if symbol.hasPrefix("$s") || symbol.hasPrefix("$S") || symbol.hasPrefix("$e") { return swift(name) }
        return symbol.hasPrefix("_Z") || symbol.hasPrefix("_R") ? cPlusPlus(Array(name.utf8)) : ""
    }

    /// C++ and Rust: up to the last :: of the name, which the list of parameters ends and a result may stand before.
    private static func cPlusPlus(_ name: [UInt8]) -> String {
        func follows(_ text: StaticString, _ offset: Int) -> Bool {
            name.count - offset >= text.utf8CodeUnitCount && text.withUTF8Buffer { name[offset...].starts(with: $0) }
        }
        func isPartOfName(_ byte: UInt8) -> Bool {
            byte == UInt8(ascii: "_") || byte >= 0x30 && byte <= 0x39 || byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7a
        }
        var start = 0, end = 0, offset = 0, depth = 0
        reading: while offset < name.count {
            switch name[offset] {
            case UInt8(ascii: "(") where depth == 0:
                guard follows("(anonymous namespace)", offset) else { break reading }
                offset += 20
            case UInt8(ascii: "o") where depth == 0 && follows("operator", offset) && (offset == 0 || !isPartOfName(name[offset - 1])):
                if offset + 8 >= name.count || !isPartOfName(name[offset + 8]) { break reading }
            case UInt8(ascii: "<"), UInt8(ascii: "{"), UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ">") where offset > 0 && name[offset - 1] == UInt8(ascii: "-"): break
            case UInt8(ascii: ">"), UInt8(ascii: "}"), UInt8(ascii: ")"): depth -= 1
            case UInt8(ascii: " ") where depth == 0: (start, end) = (offset + 1, offset + 1)
            case UInt8(ascii: ":") where depth == 0 && follows("::", offset):
                end = offset
                offset += 1
            default: break
            }
            offset += 1
        }
        return end > start ? String(decoding: name[start..<end], as: UTF8.self) : ""
    }

    /// Swift: up to the last dot before the parameters; of a closure that of the function it is in, of a witness its type.
    private static func swift(_ name: String) -> String {
        var text = withoutModules(name)
        if let range = text.firstRange(of: " in conformance ") { return type(text[range.upperBound...]) }
        if let range = text.ranges(of: "> of ").last, text.contains("specialization <") { text = text[range.upperBound...] }
        if let range = text.prefix(while: { $0 != "(" }).firstRange(of: " for ") { // metadata of a type
            let named = type(text[range.upperBound...].trimmingPrefix("type "))
            if named.contains(".") { return named }
        }
        if let range = text.ranges(of: " in ").last { text = text[range.upperBound...] }
        for kind in [" infix(", " prefix(", " postfix("] {
            if let range = text.firstRange(of: kind) { text = text[..<range.lowerBound] }
        }
        var parts = declared(text).split(separator: ".")
        let accessors = ["getter", "setter", "modify", "read", "unsafeAddressor", "unsafeMutableAddressor", "willset", "didset"]
        if let last = parts.last, accessors.contains(String(last)) { parts.removeLast() }
        return parts.dropLast().joined(separator: ".")
    }

    /// `(extension in App):` goes, and `(Hidden in _8A2B)` of what is private to a file is Hidden.
    private static func withoutModules(_ name: String) -> Substring {
        let parts = name.split(separator: "(", omittingEmptySubsequences: false)
        var text = parts.first ?? ""
        for part in parts.dropFirst() {
            if let mark = part.firstRange(of: " in _"), let close = part.firstIndex(of: ")"), close > mark.upperBound,
                part[mark.upperBound..<close].allSatisfy({ $0.isHexDigit })
            {
                text += part[..<mark.lowerBound] + part[part.index(after: close)...]
            } else if part.hasPrefix("extension in "), let end = part.firstRange(of: "):") {
                text += part[end.upperBound...]
            } else {
                text += "(" + part
            }
        }
        return text
    }

    /// Returns the declared name, without generic arguments: the last word before parameters or a type.
    private static func declared(_ text: Substring) -> String {
        var depth = 0, word = "", isOver = false
        for character in text {
            switch character {
            case "<": depth += 1
            case ">" where depth > 0: depth -= 1
            case _ where depth > 0: break
            case "(", ":": return word
            case " ": isOver = true
            default:
                if isOver { (word, isOver) = ("", false) }
                word.append(character)
            }
        }
        return word
    }

    private static func type(_ text: Substring) -> String {
        let end = text.firstRange(of: " : ")?.lowerBound ?? text.firstRange(of: " and conformance")?.lowerBound ?? text.endIndex
        return declared(text[..<end])
    }
}
