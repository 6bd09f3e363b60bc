// C++ names as people write them: std::string for a template of three arguments, and containers without the arguments that they have by
// default; or, on request, every template without its arguments. Names that would then be the same stay longer.

/// How names of functions are spelt in a text.
package enum NameStyle: Sendable {
    /// As the demangler has them.
    case full
    /// As people write them.
    case usual
    /// Likewise, and templates as std::vector<…>.
    case short
}

package struct ShortNames: Sendable {
    private let names: [String: String]

    package init(_ whole: some Sequence<String>, _ style: NameStyle = .usual) {
        let all = Set(whole)
        switch style {
        case .full: names = [:]
        case .usual: names = Self.distinct(all, shortName) { $0 }
        case .short:
            let usual = Self.distinct(all, shortName) { $0 }
            names = Self.distinct(all) {
                withoutTemplateArguments(shortName($0))
            } otherwise: {
                usual[$0] ?? $0
            }
        }
    }

    /// Returns each name's new spelling if no two share it, else `otherwise`. Names that do not change are omitted.
    private static func distinct(
        _ all: Set<String>, _ spelling: (String) -> String, otherwise: (String) -> String
    ) -> [String: String] {
        var short: [String: String] = [:], owners: [String: Int] = [:]
        for name in all {
            let text = spelling(name)
            short[name] = text
            owners[text, default: 0] += 1
        }
        return short.reduce(into: [:]) { names, pair in
            // The short name of one function may be the whole name of another.
            let isOwn = owners[pair.value] == 1 && (pair.value == pair.key || !all.contains(pair.value))
            let name = isOwn ? pair.value : otherwise(pair.key)
            if name != pair.key { names[pair.key] = name }
        }
    }

    package subscript(name: String) -> String { names[name] ?? name }
}

/// Every list of template arguments as <…>; a Rust name that begins with one, <T as Trait>::f, keeps the outermost.
func withoutTemplateArguments(_ name: String) -> String {
    guard name.contains("<") else { return name }
    var text = TemplateText(name.utf8, isCollapsed: true)
    guard let short = text.read(within: false, depth: 0) else { return name }
    return String(decoding: short, as: UTF8.self)
}

/// As above, of one name alone.
package func shortName(_ name: String) -> String {
    guard name.contains("std::") else { return name }
    var text = TemplateText(name.utf8)
    guard let short = text.read(within: false, depth: 0) else { return name }
    return String(decoding: short, as: UTF8.self)
}

/// A demangled name, read from left to right with what is between its brackets.
private struct TemplateText {
    private let bytes: [UInt8]
    private var offset = 0

    /// Arguments are omitted.
    private let isCollapsed: Bool

    private static let deepest = 100

    init(_ bytes: some Sequence<UInt8>, isCollapsed: Bool = false) {
        self.bytes = Array(bytes)
        self.isCollapsed = isCollapsed
    }

    private func follows(_ text: StaticString) -> Bool {
        bytes.count - offset >= text.utf8CodeUnitCount
            && text.withUTF8Buffer { text in text.indices.allSatisfy { text[$0] == bytes[offset + $0] } }
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }

    /// Up to the end or, within a list of arguments, to its next comma or end. nil where brackets do not match.
    mutating func read(within isArgument: Bool, depth: Int) -> [UInt8]? {
        guard depth < Self.deepest else { return nil }
        var result: [UInt8] = [], open = 0
        while offset < bytes.count {
            let byte = bytes[offset]
            if isArgument, open == 0, byte == UInt8(ascii: ",") || byte == UInt8(ascii: ">") { return result }
            switch byte {
            case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"): open += 1
            case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"):
                open -= 1
                if open < 0 { return nil }
            case UInt8(ascii: "-") where follows("->"):
                result += [byte]
                offset += 1
            case UInt8(ascii: "o") where follows("operator") && !(result.last.map(Self.isPartOfName) ?? false):
                result += "operator".utf8
                offset += 8
                let symbols: [StaticString] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">", ","]
                if let symbol = symbols.first(where: { follows($0) }) {
                    symbol.withUTF8Buffer { result += $0 }
                    offset += symbol.utf8CodeUnitCount
                }
                continue
            case UInt8(ascii: "s") where !(result.last.map { Self.isPartOfName($0) || $0 == UInt8(ascii: ":") } ?? false):
                // Inline namespaces of libstdc++ and libc++: nobody writes them.
                for inner in ["std::__cxx11::", "std::__1::"] as [StaticString] where follows(inner) {
                    result += "std::".utf8
                    offset += inner.utf8CodeUnitCount
                }
                if offset < bytes.count, bytes[offset] != byte { continue }
            case UInt8(ascii: "<"):
                guard let arguments = readArguments(depth: depth) else { return nil }
                close(&result, arguments)
                continue
            default: break
            }
            result.append(bytes[offset])
            offset += 1
        }
        return isArgument || open != 0 ? nil : result
    }

    private mutating func readArguments(depth: Int) -> [[UInt8]]? {
        var arguments: [[UInt8]] = []
        repeat {
            offset += 1 // skip "<" or ","
            if offset < bytes.count, bytes[offset] == UInt8(ascii: " ") { offset += 1 }
            guard var argument = read(within: true, depth: depth + 1), offset < bytes.count else { return nil }
            while argument.last == UInt8(ascii: " ") { argument.removeLast() }
            arguments.append(argument)
        } while bytes[offset] == UInt8(ascii: ",")
        offset += 1
        return arguments
    }

    /// Writes a template's arguments after its name, or another name for both.
    private mutating func close(_ result: inout [UInt8], _ all: [[UInt8]]) {
        let nameStart = (result.lastIndex { !Self.isPartOfName($0) && $0 != UInt8(ascii: ":") } ?? -1) + 1
        let name = String(decoding: result[nameStart...], as: UTF8.self)
        let isOperator = result.last == UInt8(ascii: " ") && String(decoding: result.suffix(12), as: UTF8.self).contains("operator")
        if isCollapsed, !name.isEmpty || isOperator {
            result += "<…>".utf8
            return
        }
        var arguments = all.map { String(decoding: $0, as: UTF8.self) }
        if name.hasPrefix("std::") {
            while arguments.count > 1, isDefault(arguments[arguments.count - 1], of: arguments) { arguments.removeLast() }
            if let alias = Self.alias(name, arguments) {
                result.removeSubrange(nameStart...)
                result += alias.utf8
                // Its constructor and destructor are called as it is.
                let inner = Array(name.dropFirst(5).utf8)
                for tilde in ["", "~"] {
                    let wanted = Array("::\(tilde)".utf8) + inner
                    guard bytes[offset...].starts(with: wanted),
                        !(offset + wanted.count < bytes.count && Self.isPartOfName(bytes[offset + wanted.count]))
                    else { continue }
                    result += "::\(tilde)\(alias.dropFirst(5))".utf8
                    offset += wanted.count
                    break
                }
                return
            }
        }
        result += "<\(arguments.joined(separator: ", "))>".utf8
    }

    private func isDefault(_ argument: String, of arguments: [String]) -> Bool {
        let first = arguments[0]
        for wrapper in ["less", "hash", "equal_to", "default_delete", "char_traits", "allocator"]
        where argument == "std::\(wrapper)<\(first)>" {
            return true
        }
        if argument == "std::deque<\(first)>" || argument == "std::vector<\(first)>" { return true } // for queue, stack, priority_queue
        return arguments.count > 2 && argument == "std::allocator<std::pair<\(first) const, \(arguments[1])>>"
    }

    /// std::string and its kin.
    private static func alias(_ name: String, _ arguments: [String]) -> String? {
        guard arguments.count == 1, name.hasPrefix("std::basic_") else { return nil }
        let inner = name.dropFirst(11)
        let isText = inner == "string" || inner == "string_view"
        let known = [
            "ios", "streambuf", "istream", "ostream", "iostream", "stringbuf", "istringstream", "ostringstream", "stringstream", "filebuf",
            "ifstream", "ofstream", "fstream",
        ]
        guard isText || known.contains(String(inner)) else { return nil }
        switch arguments[0] {
        case "char": return "std::" + inner
        case "wchar_t": return "std::w" + inner
        case "char8_t" where isText: return "std::u8" + inner
        case "char16_t" where isText: return "std::u16" + inner
        case "char32_t" where isText: return "std::u32" + inner
        default: return nil
        }
    }
}
