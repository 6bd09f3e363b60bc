// Aligned columns.

package struct TextTable {
    private let header: [String]
    private let leftAligned: Set<Int>
    private var rows: [[String]] = []
    /// Columns of names of functions, which are cut in the middle.
    private let ofNames: Set<Int>

    package init(_ header: [String], leftAligned: Set<Int>, names: Set<Int> = []) {
        self.header = header
        self.leftAligned = leftAligned
        ofNames = names
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
        widths = self.widths(within: width)
        let cut = cut(widths), alike = alike(cut)
        // A row that would look like another when cut is not cut, and overruns its column.
        return [style.dim(line(header, widths))] + cut.indices.map { line(alike.contains($0) ? rows[$0] : cut[$0], widths) }
    }

    /// True if lines are no longer than `width` columns, rows can be distinguished by their texts, and names have `least` columns or all
    /// they need.
    package func isReadable(within width: Int, least: Int) -> Bool {
        let widths = widths(within: width)
        let needed = ofNames.map { column in min(least, rows.map { $0[column].count }.max() ?? 0) - widths[column] }.max() ?? 0
        let isFitting = widths.reduce(0, +) + 2 * (widths.count - 1) <= width
        return isFitting && needed <= 0 && alike(cut(widths)).isEmpty
    }

    /// Rows whose texts are those of another, and are not without being cut.
    private func alike(_ cut: [[String]]) -> Set<Int> {
        func texts(_ row: [String]) -> [String] { leftAligned.sorted().map { row[$0] } }
        let groups = Dictionary(grouping: cut.indices) { texts(cut[$0]) }
        return Set(groups.values.lazy.filter { group in Set(group.map { texts(rows[$0]) }).count > 1 }.joined())
    }

    private func cut(_ widths: [Int]) -> [[String]] {
        rows.map { row in
            row.enumerated().map { column, cell in
                ofNames.contains(column)
                    ? cutName(cell, widths[column]) : leftAligned.contains(column) ? shortened(cell, widths[column]) : cell
            }
        }
    }

    /// Returns the widths of the full texts, with the widest columns of text shrunk, down to 12, until a line fits.
    private func widths(within width: Int) -> [Int] {
        var widths = header.map { $0.count }
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
        }
        var excess = widths.reduce(0, +) + 2 * (widths.count - 1) - width
        while excess > 0, let widest = leftAligned.filter({ widths[$0] > 12 }).max(by: { widths[$0] < widths[$1] }) {
            widths[widest] -= 1
            excess -= 1
        }
        return widths
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

/// At most `width` characters, with an ellipsis where some are missing.
package func shortened(_ text: String, _ width: Int) -> String {
    text.count <= width ? text : String(text.prefix(max(width - 1, 0))) + "…"
}

/// The text in lines of at most `width` characters, broken at spaces; lines after the first are indented. One line where `width` is nil.
/// A word that is longer than a line stays whole, with what follows.
package func wrapped(_ text: String, width: Int?, indentation: Int) -> [String] {
    guard let width else { return [text] }
    var lines: [String] = [], rest = text
    while rest.count > width {
        let words = rest.drop { $0 == " " }
        guard let space = rest.prefix(width + 1).lastIndex(of: " "), space > words.startIndex else { break }
        var line = String(rest[..<space])
        while line.last == " " { line.removeLast() }
        lines.append(line)
        rest = String(repeating: " ", count: indentation) + rest[space...].drop { $0 == " " }
    }
    return lines + [rest]
}

package func leftFilled(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
}

package func rightFilled(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(width - text.count, 0))
}
