/// Colours where the reader is a terminal, or none.
package struct TextStyle: Sendable {
    package var isColoured: Bool
    package init(isColoured: Bool) { self.isColoured = isColoured }

    package func bold(_ text: String) -> String { paint("1", text) }
    package func dim(_ text: String) -> String { paint("2", text) }
    package func alarm(_ text: String) -> String { paint("33", text) }

    private func paint(_ code: String, _ text: String) -> String {
        isColoured ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
    }
}
