// The trend on a terminal: a table for each command, a row for each series, a column for each stage.
import Foundation
import TraceAnalysis

public enum HistoryText {
    public static func table(_ all: [History.Series], style: TextStyle) -> String {
        var lines: [String] = []
        for trend in HistoryTrend.all(all) {
            let names = trend.stageNames
            lines.append(style.bold(trend.command) + (trend.settings.isEmpty ? "" : "   " + trend.settings) + "   medians; the change is against the series above, * when it is larger than the spread")
            var table = TextTable(["when (UTC)", "commit", "n"] + names.flatMap { $0 == Baseline.wholeLaunch ? [$0, ""] : [short($0)] }, leftAligned: [0, 1])
            let points = names.map { Dictionary(trend.points($0).map { ($0.index, $0) }) { first, _ in first } }
            for (index, one) in trend.series.enumerated() {
                var row = [String(HistoryExport.timestamp(one.entry.time).prefix(16)), one.entry.commit, String(one.entry.runs)]
                for (name, points) in zip(names, points) {
                    let point = points[index]
                    row.append(point.map { readable(Nanoseconds(UInt64(max($0.stage.p50, 0)))) } ?? "–")
                    guard name == Baseline.wholeLaunch else { continue }
                    row.append(point?.change.map { signedPercent($0) + (point!.isClear ? " *" : "  ") } ?? "")
                }
                table.add(row)
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
