// What selects functions on a command line: a GLOB of the function's name, of its module's, or of both as "module!function". A name that is
// no glob also means functions of this name in any namespace, class or type.
import Glibc
import Presentation

package struct FunctionPattern: Sendable {
    private let text: String
    /// Before "!"; nil without.
    private let module: String?
    /// After it.
    private let function: String
    private let isGlob: Bool
    /// As `--short-names` shows them: std::vector<…>.
    private let isOfShortNames: Bool

    package init(_ text: String) {
        self.text = text
        let bang = text.firstIndex(of: "!")
        module = bang.map { String(text[..<$0]) }
        function = bang.map { String(text[text.index(after: $0)...]) } ?? text
        isGlob = function.contains { "*?[".contains($0) }
        isOfShortNames = text.contains("<…>")
    }

    /// `symbol` as in the file; `name` for people, where what is between the function's parentheses may be omitted.
    package func matches(name: String, symbol: String, module: String) -> Bool {
        guard let own = self.module else { return matchesFunction(name, symbol) || Self.matches(text, module) }
        return Self.matches(own, module) && matchesFunction(name, symbol)
    }

    /// True if it matches a function of this symbol in some module.
    package func matches(symbol: String) -> Bool { Self.any([self], match: symbol) }

    /// True if one of them does. Demangling takes microseconds, and a large program has hundreds of thousands of symbols.
    static func any(_ patterns: [FunctionPattern], match symbol: String) -> Bool {
        if patterns.contains(where: { matches($0.function, symbol) }) { return true }
        guard isMangled(symbol) else { return false }
        let possible = patterns.filter { $0.mayBePart(of: symbol) }
        if possible.isEmpty { return false }
        let name = demangled(symbol)
        return name != symbol && possible.contains { $0.matchesFunction(name, symbol) }
    }

    private func matchesFunction(_ name: String, _ symbol: String) -> Bool {
        var names = [name, symbol, Self.withoutArguments(name)]
        let short = shortName(name) // as reports show it
        if short != name { names += [short, Self.withoutArguments(short)] }
        if isOfShortNames { names += [withoutTemplateArguments(short), Self.withoutArguments(withoutTemplateArguments(short))] }
        return names.contains { Self.matches(function, $0) } || isLast(of: name, symbol) || short != name && isLast(of: short, symbol)
    }

    private static func matches(_ pattern: String, _ text: String) -> Bool { fnmatch(pattern, text, 0) == 0 }

    // MARK: - Names of C++, Rust and Swift

    private static func isMangled(_ symbol: String) -> Bool {
        symbol.hasPrefix("_Z") || symbol.hasPrefix("_R") || isOfSwift(symbol)
    }
    private static func isOfSwift(_ symbol: String) -> Bool { ["$s", "$S", "$e", "_T0"].contains { symbol.hasPrefix($0) } }

    /// False: the symbol has not the last identifier of the name, which the manglings of C++ and Rust leave as it is. Saves demangling.
    private func mayBePart(of symbol: String) -> Bool {
        guard !isGlob, !Self.isOfSwift(symbol) else { return true }
        let last = function.split(separator: ":").last ?? ""
        guard last.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }) else { return true }
        return strstr(symbol, String(last)) != nil
    }

    /// The name without what encloses it, as `handle` and `Server::handle` are of net::Server::handle<int>(int) const.
    private func isLast(of name: String, _ symbol: String) -> Bool {
        guard !isGlob, name != symbol, !function.isEmpty else { return false }
        let isOfSwift = Self.isOfSwift(symbol)
        let head = isOfSwift ? Self.withoutArguments(name) : nameParts(name).head
        return [head, Self.withoutLastTemplate(head)].contains { head in
            if head == function { return true }
            // A template function has the type of its result before it.
            for separator in isOfSwift ? [".", " "] : ["::", " "] where head.hasSuffix(separator + function) {
                let outer = head.dropLast(function.count + separator.count)
                if outer.count(where: { $0 == "<" }) == outer.count(where: { $0 == ">" }) { return true }
            }
            return false
        }
    }

    /// "ns::f<int>" is ns::f, and "f[abi:cxx11]" f.
    private static func withoutLastTemplate(_ head: String) -> String {
        var head = Substring(head)
        if head.hasSuffix("]"), let tag = head.firstRange(of: "[abi:") { head = head[..<tag.lowerBound] }
        guard head.hasSuffix(">"), !head.hasSuffix("->") else { return String(head) }
        var depth = 0
        for index in head.indices.reversed() {
            if head[index] == ">" { depth += 1 }
            if head[index] == "<" { depth -= 1 }
            if depth == 0 { return String(head[..<index]) }
        }
        return String(head)
    }

    /// "demo::add(int, int) const" is demo::add.
    static func withoutArguments(_ name: String) -> String {
        name.hasPrefix("(") ? name : String(name.prefix { $0 != "(" })
    }

    // MARK: - Names that are not there

    /// The name that is most like the pattern: with the last identifier in its own, or one that differs in a letter or two. nil: there is none.
    package func nearest(_ names: some Sequence<String>) -> String? {
        let wanted = Self.identifier(function).lowercased()
        guard wanted.count > 2 else { return nil }
        let outer = String(function.dropLast(Self.identifier(function).count))
        var best: (distance: Int, isElsewhere: Int, name: String)?
        for name in names {
            let own = Self.identifier(nameParts(name).head).lowercased()
            let distance =
                own.contains(wanted)
                ? own.count - wanted.count : Self.distance(own, wanted, most: wanted.count < 6 ? 1 : 2).map { $0 + 1000 }
            guard let distance else { continue }
            let isElsewhere = outer.isEmpty || name.contains(outer) ? 0 : 1
            let isBetter = best.map {
                (distance, isElsewhere, name.count, name) < ($0.distance, $0.isElsewhere, $0.name.count, $0.name)
            }
            if isBetter ?? true { best = (distance, isElsewhere, name) }
        }
        return best?.name
    }

    private static func identifier(_ name: String) -> String {
        String(withoutLastTemplate(name).split { !($0.isLetter || $0.isNumber || $0 == "_") }.last ?? "")
    }

    /// Letters that differ, are missing or are too many (Levenshtein); nil: more than `most`.
    private static func distance(_ one: String, _ other: String, most: Int) -> Int? {
        let (a, b) = (Array(one.utf8), Array(other.utf8))
        guard abs(a.count - b.count) <= most else { return nil }
        var row = Array(0...b.count)
        for (n, letter) in a.enumerated() {
            var diagonal = row[0]
            row[0] = n + 1
            for k in b.indices {
                let next = min(row[k] + 1, row[k + 1] + 1, diagonal + (b[k] == letter ? 0 : 1))
                diagonal = row[k + 1]
                row[k + 1] = next
            }
        }
        return row[b.count] <= most ? row[b.count] : nil
    }
}
