// The account as tables.
import Presentation
import TraceAnalysis

extension Coverage {
    /// - Parameters:
    ///   - top: rows of each list
    ///   - all: each function in a line
    package func lines(top: Int, all: Bool, names: NameStyle, width: Int?, style: TextStyle) -> [String] {
        let whole = wholeModules, slots = modules.filter { $0.recording == .slots }
        let short = ShortNames(modules.flatMap { $0.functions.map { $0.name } }, names)
        var lines: [String] = []
        func section(_ title: String, _ rows: [String]) {
            if rows.isEmpty { return }
            if !lines.isEmpty { lines.append("") }
            lines += [style.bold(title)] + rows
        }
        func table<Row>(_ rows: [Row], _ columns: [Column<Row>]) -> [String] {
            rows.isEmpty ? [] : TextTable(rows, columns).lines(style, width: width)
        }
        func functions(_ functions: some Sequence<CoveredFunction>) -> [String] {
            table(
                functions.map { function in CoverageRow(function: function) { short[$0] } },
                CoverageRow.columns(["calls", "size", "name", "module", "line"]))
        }
        if !whole.isEmpty {
            section(
                "Never called in \(counted(traces.count, "trace")), by module",
                table(whole, CoveredModule.columns(Self.sums + ["name"])))
            section("By source file", table(Array(files.prefix(top)), Group.columns(Self.sums + ["name"])))
            section("By class or namespace", table(Array(scopes.prefix(top)), Group.columns(Self.sums + ["scope"])))
            section("The largest that were never called", functions(neverCalled.prefix(top)))
        }
        if !slots.isEmpty {
            section("Recorded only through slots", table(slots, CoveredModule.columns(["called", "never_through_slots", "name"])))
        }
        if !unknown.isEmpty { section("Not known whether they were called", reasons(short)) }
        if all { section("All functions", functions((whole.isEmpty ? slots : whole).flatMap { $0.functions })) }
        return lines
    }

    /// Columns of modules, source files and classes, but for their names.
    private static let sums = [
        "never_called", "never_called_bytes", "share", "only_from_uncalled", "only_from_uncalled_bytes", "called", "unknown",
    ]

    private func reasons(_ short: ShortNames) -> [String] {
        unknown.map { each in
            let examples =
                each.examples.map { shortened(short[$0], 40) }.joined(separator: ", ") + (each.functions > each.examples.count ? ", …" : "")
            return "\(leftFilled(grouped(each.functions), 9))  \(each.module): \(each.reason.text) \(examples)"
        }
    }
}
