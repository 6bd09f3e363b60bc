// The columns of a report's table: those of its grouping, as far as the terminal has space for them.
import Presentation

struct ReportColumns {
    let table: TextTable
    /// Titles of the columns that there is no space for.
    let hidden: [String]
    private let keys: [String]

    func isShown(_ key: String) -> Bool { keys.contains(key) }

    /// - Parameters:
    ///   - whole: self times of all functions and the programs' own code
    ///   - width: columns of the terminal, nil where lines may be of any length
    ///   - order: the figure that the rows are sorted by is never hidden
    init(
        _ rows: [FunctionSummary], of whole: Nanoseconds, _ grouping: ReportGrouping, isCorrected: Bool, _ nameStyle: NameStyle,
        _ locations: FunctionLocations?,
        width: Int?,
        by order: ReportOrder
    ) {
        let short = ShortNames(rows.flatMap { [$0.name, $0.caller ?? $0.site?.name ?? ""] }, nameStyle)
        let names = Self.names(grouping, hasLines: locations?.hasLines == true)
        let figures = Self.figures(grouping, isCorrected: isCorrected, hasRecording: rows.contains { $0.recordingShare != nil })
        func table(_ figures: [String]) -> TextTable {
            var columns = FunctionRow.columns(figures + names)
            if grouping == .module || grouping == .thread || grouping == .process {
                columns[columns.count - 1].title = grouping.rawValue
                columns[columns.count - 1].kind = grouping == .module ? .text : .name
                columns[columns.count - 1].cell = { $0.figures.name }
            }
            let marks = figures.contains("p50_ns")
            return TextTable(
                rows.map {
                    FunctionRow(figures: $0, locations: locations, whole: whole, short: { short[$0] }, isMarked: marks && $0.isSkewed)
                },
                columns)
        }
        // Figures give way before names are cut to where they say nothing.
        var shown = figures, hidden: [String] = []
        for (key, figure) in Self.dispensable {
            let least = key == "average" ? 0 : Self.widthOfNames // a distinct name is worth less than it
            guard let width, shown.contains(key), figure != order, !table(shown).isReadable(within: width, least: least) else { continue }
            shown.removeAll { $0 == key }
            hidden += FunctionRow.columns([key]).map(\.title)
        }
        // The shape is added only where all columns fit with names of up to 200 characters.
        if let width, hidden.isEmpty, shown.contains("p50_ns"), table(shown + ["shape"]).isReadable(within: width, least: 200) {
            shown.append("shape")
        }
        self.table = table(shown)
        self.hidden = hidden
        keys = shown
    }

    /// Columns that names keep, where they need as many.
    private static let widthOfNames = 24

    /// Figures that may be hidden, the least important first, and the order of rows that needs each.
    private static let dispensable: [(key: String, order: ReportOrder?)] = [
        ("recording_ns", nil), ("min_ns", .minimum), ("max_ns", .maximum), ("p99_ns", .percentile99), ("p50_ns", .median),
        ("average", .average),
    ]

    private static func figures(_ grouping: ReportGrouping, isCorrected: Bool, hasRecording: Bool) -> [String] {
        if grouping == .thread || grouping == .process { return ["calls", "total_ns"] }
        if isCorrected { return ["calls", "total_ns", "corrected_total_ns", "self_ns", "share", "corrected_self_ns"] }
        let hasPercentiles = grouping == .function || grouping == .site
        return ["calls", "total_ns", "self_ns", "share"] + (hasRecording ? ["recording_ns"] : []) + ["average", "min_ns"]
            + (hasPercentiles ? ["p50_ns", "p99_ns"] : []) + ["max_ns"]
    }

    private static func names(_ grouping: ReportGrouping, hasLines: Bool) -> [String] {
        let source = hasLines ? ["source"] : []
        return switch grouping {
        case .function: ["name", "module"] + source
        case .caller: ["caller", "name", "module"] + source
        case .site: ["name", "site"]
        case .module, .thread, .process: ["name"]
        }
    }
}
