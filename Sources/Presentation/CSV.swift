/// RFC 4180.
package enum CSV {
    /// In quotes where it needs them: with a comma, a quote or the end of a line in it.
    package static func field(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x2c || $0 == 0x22 || $0 == 0x0a || $0 == 0x0d }) else { return text }
        return "\"" + text.replacing("\"", with: "\"\"") + "\""
    }
}
