// The trend on a terminal: a table for each command, a row for each series, a column for each stage.
import Foundation
import Presentation
import TraceAnalysis

package enum HistoryText {
    package static func table(_ all: [History.Series], style: TextStyle) -> String {
        var lines: [String] = []
        for trend in HistoryTrend.all(all) {
            lines.append(
                style.bold(trend.command) + (trend.settings.isEmpty ? "" : "   " + trend.settings)
                    + "   medians; change from the series above, * if the rank test confirms it")
            let columns = HistoryTrend.Row.columns(["time", "revision", "runs"]) + Self.columns(trend.stageNames)
            lines += TextTable(trend.rows, columns).lines(style) + [""]
        }
        return lines.joined(separator: "\n")
    }

    /// The stages' medians, and the change of the whole launch.
    private static func columns(_ stages: [String]) -> [Column<HistoryTrend.Row>] {
        stages.enumerated().flatMap { index, name in
            let isWhole = name == LaunchSummary.wholeLaunch
            let median = Column<HistoryTrend.Row>(isWhole ? name : short(name)) { row in
                row.points[index].map { readable(nanoseconds: $0.stage.p50) } ?? "-"
            }
            let change = Column<HistoryTrend.Row>("") { row in
                guard let point = row.points[index], let change = point.change else { return "" }
                return percent(difference: change) + (point.isClear == true ? " *" : "  ")
            }
            return isWhole ? [median, change] : [median]
        }
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
