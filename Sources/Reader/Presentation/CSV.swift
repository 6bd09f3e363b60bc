/// RFC 4180.
package enum CSV {
    /// In quotes where it needs them: with a comma, a quote or the end of a line in it.
    package static func field(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == 0x2c || $0 == 0x22 || $0 == 0x0a || $0 == 0x0d }) else { return text }
        // A quote with an accent is one Character, and is a quote to who reads it.
        return "\"" + text.unicodeScalars.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\""
    }

    /// Returns the rows that an output has in the list of this key: a line with the names of the columns, then one for each row. The
    /// columns are the members that are numbers, texts or flags, of inner objects as "site.line"; what is null or missing is empty.
    package static func lines<Output: Record>(_ output: Output, of key: String) -> [String] {
        guard case .object(let members) = Output.form, case .array(let row)? = members.first(where: { $0.key == key })?.form,
            case .object(let values) = output.json, case .array(let rows)? = values.first(where: { $0.0 == key })?.1
        else { preconditionFailure("\(key) is no list of \(Output.self)") }
        let columns = row.columns([])
        return [columns.map { field($0.joined(separator: ".")) }.joined(separator: ",")]
            + rows.map { row in columns.map { field(row.text(at: $0[...])) }.joined(separator: ",") }
    }
}

extension JSONForm {
    /// Paths of keys to all members that are neither lists nor objects.
    fileprivate func columns(_ path: [String]) -> [[String]] {
        switch self {
        case .array, .file: []
        case .nullable(let form): form.columns(path)
        case .object(let members): members.flatMap { $0.form.columns(path + [$0.key]) }
        default: [path]
        }
    }
}

extension JSON {
    /// The text of a number or a string, without quotes; empty where there is none.
    fileprivate func text(at path: ArraySlice<String>) -> String {
        guard let key = path.first else {
            return switch self {
            case .null: ""
            case .string(let text): text
            default: text(lines: 0)
            }
        }
        guard case .object(let members) = self, let value = members.first(where: { $0.0 == key })?.1 else { return "" }
        return value.text(at: path.dropFirst())
    }
}
