// The trend on a terminal: a row for each series, a column for each stage.
import Foundation
import TraceAnalysis

public enum HistoryText {
    public static func table(_ all: [History.Series], style: TextStyle) -> String {
        var lines: [String] = []
        for (program, series) in Dictionary(grouping: all, by: \.entry.program).sorted(by: { $0.key < $1.key }) {
            var names: [String] = []
            for stage in series.flatMap(\.stages).sorted(by: { $0.position < $1.position }) where !names.contains(stage.name) { names.append(stage.name) }
            lines.append(style.bold(program) + "   medians; the change is against the series above")
            var table = TextTable(["when (UTC)", "commit", "n"] + names.flatMap { $0 == Baseline.wholeLaunch ? [$0, ""] : [short($0)] } + ["settings"], leftAligned: [0, 1, names.count + 4])
            var before: Double?
            for one in series {
                var row = [String(HistoryExport.timestamp(one.entry.time).prefix(16)), one.entry.commit, String(one.entry.runs)]
                for name in names {
                    let stage = one.stages.first { $0.name == name }
                    row.append(stage.map { readable(Nanoseconds(UInt64(max($0.p50, 0)))) } ?? "–")
                    guard name == Baseline.wholeLaunch else { continue }
                    let change = stage.flatMap { now in before.map { $0 > 0 ? now.p50 / $0 - 1 : 0 } }
                    row.append(change.map { ($0 < 0 ? "−" : "+") + percent(abs($0)) } ?? "")
                    before = stage?.p50 ?? before
                }
                table.add(row + [one.entry.settings])
            }
            lines += table.lines(style) + [""]
        }
        return lines.joined(separator: "\n")
    }

    /// A heading no wider than what stands below it.
    private static func short(_ stage: String) -> String {
        switch stage {
        case "map and relocate libraries": "libraries"
        case "constructors of libraries": "constructors"
        case "constructors of the executable": "own constr."
        default: stage
        }
    }
}
