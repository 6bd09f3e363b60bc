// A GLOB that selects functions: by the function's name, by its module's, or by both as "module!function".
import Glibc

package struct FunctionPattern: Sendable {
    private let text: String
    private let hasModule: Bool
    /// As `--short-names` shows them: std::vector<…>.
    private let isOfShortNames: Bool

    package init(_ text: String) {
        self.text = text
        hasModule = text.contains("!")
        isOfShortNames = text.contains("<…>")
    }

    /// `symbol` as in the file; `name` for people, where what is between the function's parentheses may be omitted.
    package func matches(name: String, symbol: String, module: String) -> Bool {
        var names = [name, symbol, Self.withoutArguments(name)]
        let short = shortName(name) // as reports show it
        if short != name { names += [short, Self.withoutArguments(short)] }
        if isOfShortNames { names += [withoutTemplateArguments(short), Self.withoutArguments(withoutTemplateArguments(short))] }
        if hasModule { return names.contains { Self.matches(text, module + "!" + $0) } }
        return (names + [module]).contains { Self.matches(text, $0) }
    }

    /// True if it matches a function of this name in some module.
    func mayMatch(name: String) -> Bool {
        Self.matches(text.firstIndex(of: "!").map { String(text[text.index(after: $0)...]) } ?? text, name)
    }

    private static func matches(_ pattern: String, _ text: String) -> Bool { fnmatch(pattern, text, 0) == 0 }

    /// "demo::add(int, int) const" is demo::add.
    static func withoutArguments(_ name: String) -> String {
        name.hasPrefix("(") ? name : String(name.prefix { $0 != "(" })
    }
}
