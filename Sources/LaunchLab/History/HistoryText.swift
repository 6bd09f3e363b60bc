// The trend on a terminal: a table for each command, a row for each series, a column for each stage.
import Foundation
import Presentation
import TraceAnalysis

package enum HistoryText {
    package static func table(_ all: [History.Series], style: TextStyle) -> String {
        var lines: [String] = []
        for trend in HistoryTrend.all(all) {
            let names = trend.stageNames
            lines.append(
                style.bold(trend.command) + (trend.settings.isEmpty ? "" : "   " + trend.settings)
                    + "   medians; change from the series above, * if the rank test confirms it")
            var table = TextTable(
                ["when (UTC)", "commit", "n"] + names.flatMap { $0 == LaunchSummary.wholeLaunch ? [$0, ""] : [short($0)] },
                leftAligned: [0, 1])
            let points = names.map { Dictionary(trend.points($0).map { ($0.index, $0) }) { first, _ in first } }
            for (index, one) in trend.series.enumerated() {
                var row = [String(UTC(seconds: one.entry.time).text.prefix(16)), one.entry.commit, String(one.entry.runs)]
                for (name, points) in zip(names, points) {
                    let point = points[index]
                    row.append(point.map { readable(nanoseconds: $0.stage.p50) } ?? "-")
                    guard name == LaunchSummary.wholeLaunch else { continue }
                    row.append(point?.change.map { percent(difference: $0) + (point!.isClear == true ? " *" : "  ") } ?? "")
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
        case _ where LaunchReader.isLoading(stage): "libraries"
        case "constructors of libraries": "constructors"
        case "constructors of the executable": "own constr."
        default: stage
        }
    }
}
