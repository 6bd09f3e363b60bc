// Which functions a GLOB means: of the function, of its module, or "module!function" of both.
import Glibc

public struct FunctionPattern: Sendable {
    private let text: String
    private let hasModule: Bool

    public init(_ text: String) {
        self.text = text
        hasModule = text.contains("!")
    }

    /// `symbol` as in the file; `name` for people, where what is between the function's parentheses may be left out.
    public func matches(name: String, symbol: String, module: String) -> Bool {
        let plain = Self.withoutArguments(name)
        if hasModule { return [name, symbol, plain].contains { Self.matches(text, module + "!" + $0) } }
        return [name, symbol, plain, module].contains { Self.matches(text, $0) }
    }

    public func matches(_ function: CallTree.Function) -> Bool {
        matches(name: function.name, symbol: function.symbol, module: function.module)
    }

    private static func matches(_ pattern: String, _ text: String) -> Bool { fnmatch(pattern, text, 0) == 0 }

    /// "demo::add(int, int) const" is demo::add.
    static func withoutArguments(_ name: String) -> String {
        name.hasPrefix("(") ? name : String(name.prefix { $0 != "(" })
    }
}

extension CallTree {
    /// Which functions the pattern means. One that is a whole name means that name alone.
    public func functions(matching pattern: FunctionPattern) -> Set<Int> {
        Set(functions.indices.filter { pattern.matches(functions[$0]) })
    }
}
