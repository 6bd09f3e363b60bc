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
        if !whole.isEmpty {
            section(
                "Never called in \(counted(traces.count, "trace")), by module",
                table("module", whole.map { ($0.name, $0.sums) }, width, style))
            section(
                "By source file", table("file", files.prefix(top).map { ($0.name, $0.sums) }, width, style))
            section(
                "By class or namespace", table("class or namespace", scopes.prefix(top).map { ($0.name, $0.sums) }, width, style))
            section("The largest that were never called", functions(neverCalled.prefix(top), short, width, style))
        }
        if !slots.isEmpty { section("Recorded only through slots", slotTable(slots, width, style)) }
        if !unknown.isEmpty { section("Not known whether they were called", reasons(short)) }
        if all { section("All functions", functions((whole.isEmpty ? slots : whole).flatMap { $0.functions }, short, width, style)) }
        return lines
    }

    private func table(_ title: String, _ rows: [(String, CoverageSums)], _ width: Int?, _ style: TextStyle) -> [String] {
        guard !rows.isEmpty else { return [] }
        var table = TextTable(
            ["never called", "bytes", "share", "only from these", "bytes", "called", "unknown", title], leftAligned: [7])
        for (name, sums) in rows {
            table.add([
                grouped(sums.neverCalled), grouped(sums.neverCalledBytes), sums.neverCalledShare.map { percent($0) } ?? "-",
                grouped(sums.onlyFromUncalled), grouped(sums.onlyFromUncalledBytes), grouped(sums.called), grouped(sums.unknown), name,
            ])
        }
        return table.lines(style, width: width)
    }

    private func slotTable(_ modules: [CoveredModule], _ width: Int?, _ style: TextStyle) -> [String] {
        var table = TextTable(["called", "never through a slot", "module"], leftAligned: [2])
        for module in modules {
            let sums = module.sums
            table.add([grouped(sums.called), grouped(sums.neverCalled), module.name])
        }
        return table.lines(style, width: width)
    }

    private func functions(_ functions: some Sequence<CoveredFunction>, _ short: ShortNames, _ width: Int?, _ style: TextStyle) -> [String]
    {
        var table = TextTable(["calls", "bytes", "function", "module", "line"], leftAligned: [2, 3, 4], names: [2]), isEmpty = true
        for function in functions {
            isEmpty = false
            let calls = function.reason != nil && function.calls == 0 ? "?" : (function.isLeast ? "≥" : "") + grouped(function.calls)
            table.add([
                calls, grouped(function.byteCount), short[function.name], function.module,
                function.source.map { "\($0.fileName):\($0.line)" } ?? "",
            ])
        }
        return isEmpty ? [] : table.lines(style, width: width)
    }

    private func reasons(_ short: ShortNames) -> [String] {
        unknown.map { each in
            let examples =
                each.examples.map { shortened(short[$0], 40) }.joined(separator: ", ") + (each.functions > each.examples.count ? ", …" : "")
            return "\(leftFilled(grouped(each.functions), 9))  \(each.module): \(each.reason.text) \(examples)"
        }
    }
}
