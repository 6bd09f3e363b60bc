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

struct TextTable {
    private let header: [String]
    private let leftAligned: Set<Int>
    private var rows: [[String]] = []

    init(_ header: [String], leftAligned: Set<Int>) {
        self.header = header
        self.leftAligned = leftAligned
    }

    mutating func add(_ row: [String]) { rows.append(row) }

    func lines(_ style: TextStyle) -> [String] {
        // A name of 200 characters must not push every module off the screen: it overruns its column alone.
        var widths = header.map { $0.count }
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], min(cell.count, 48)) }
        }
        return [style.dim(line(header, widths))] + rows.map { line($0, widths) }
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
