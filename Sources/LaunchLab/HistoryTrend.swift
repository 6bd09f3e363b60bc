// The series that may be compared with one another: of one command, launched under the same conditions.
import Foundation

public struct HistoryTrend: Sendable {
    public let program: String
    public let command: String
    public let settings: String
    /// The oldest first.
    public let series: [History.Series]

    /// By program, command and settings.
    public static func all(_ series: [History.Series]) -> [HistoryTrend] {
        struct Key: Hashable { var program: String, command: String, settings: String }
        return Dictionary(grouping: series) { Key(program: $0.entry.program, command: $0.entry.command, settings: $0.entry.settings) }
            .map { HistoryTrend(program: $0.program, command: $0.command, settings: $0.settings, series: $1) }
            .sorted { ($0.program, $0.command, $0.settings) < ($1.program, $1.command, $1.settings) }
    }

    /// In the order of the launch, the whole launch first.
    var stageNames: [String] {
        var names: [String] = []
        for stage in series.flatMap(\.stages).sorted(by: { $0.position < $1.position }) where !names.contains(stage.name) { names.append(stage.name) }
        return names
    }

    struct Point {
        var index: Int
        var entry: HistoryEntry
        var stage: HistoryStage
        /// Share of the series before; nil: there is none, or it took no time.
        var change: Double?
        /// The change is larger than what the middle half of the launches spread over, then and now.
        var isClear: Bool
    }

    func points(_ name: String) -> [Point] {
        var before: HistoryStage?
        return series.enumerated().compactMap { index, one in
            guard let stage = one.stages.first(where: { $0.name == name }) else { return nil }
            defer { before = stage }
            let change = before.flatMap { $0.p50 > 0 ? stage.p50 / $0.p50 - 1 : nil }
            let isClear = before.map { abs(stage.p50 - $0.p50) > max(stage.spread, $0.spread) && abs(stage.p50 - $0.p50) > 0.02 * $0.p50 } ?? false
            return Point(index: index, entry: one.entry, stage: stage, change: change, isClear: isClear)
        }
    }
}

/// "+12 %", "−0.4 %".
func signedPercent(_ share: Double) -> String { (share < 0 ? "−" : "+") + percent(abs(share)) }
