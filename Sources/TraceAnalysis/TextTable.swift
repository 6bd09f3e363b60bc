// Aligned columns, and colour where the reader is a terminal.

/// Colours, or none.
public struct TextStyle: Sendable {
    public var isColoured: Bool
    public init(isColoured: Bool) { self.isColoured = isColoured }

    public func bold(_ text: String) -> String { paint("1", text) }
    public func dim(_ text: String) -> String { paint("2", text) }
    public func alarm(_ text: String) -> String { paint("33", text) }

    private func paint(_ code: String, _ text: String) -> String {
        isColoured ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
    }
}

package struct TextTable {
    private let header: [String]
    private let leftAligned: Set<Int>
    private var rows: [[String]] = []

    package init(_ header: [String], leftAligned: Set<Int>) {
        self.header = header
        self.leftAligned = leftAligned
    }

    package mutating func add(_ row: [String]) { rows.append(row) }

    /// - Parameter width: columns of the terminal: where they do not suffice, the widest texts are shortened; nil: lines
    ///   may be of any length
    package func lines(_ style: TextStyle, width: Int? = nil) -> [String] {
        // A name of 200 characters must not push every module off the screen: it overruns its column alone.
        var widths = header.map { $0.count }
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], min(cell.count, 48)) }
        }
        guard let width else { return [style.dim(line(header, widths))] + rows.map { line($0, widths) } }
        for row in rows { // here the columns take what there is
            for column in leftAligned { widths[column] = max(widths[column], row[column].count) }
        }
        var excess = widths.reduce(0, +) + 2 * (widths.count - 1) - width
        while excess > 0, let widest = leftAligned.filter({ widths[$0] > 12 }).max(by: { widths[$0] < widths[$1] }) {
            widths[widest] -= 1
            excess -= 1
        }
        let cut = rows.map { row in row.enumerated().map { leftAligned.contains($0) ? shortened($1, widths[$0]) : $1 } }
        return [style.dim(line(header, widths))] + cut.map { line($0, widths) }
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (column, cell) in cells.enumerated() {
            let fill = String(repeating: " ", count: max(widths[column] - cell.count, 0))
            if column > 0 { line += "  " }
            line += leftAligned.contains(column) ? cell + (column == cells.count - 1 ? "" : fill) : fill + cell
        }
        return line
    }
}

/// At most so many characters, with an ellipsis where some are missing.
func shortened(_ text: String, _ width: Int) -> String {
    text.count <= width ? text : String(text.prefix(max(width - 1, 0))) + "…"
}
