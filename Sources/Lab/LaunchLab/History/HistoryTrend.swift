// The series that may be compared with one another: of one command, launched under the same conditions.
import Foundation
import Statistics

package struct HistoryTrend: Sendable {
    package let program: String
    package let command: String
    package let settings: String
    /// The oldest first.
    package let series: [History.Series]

    /// Groups series by program, command and settings, and sorts the groups by these.
    package static func all(_ series: [History.Series]) -> [HistoryTrend] {
        struct Key: Hashable { var program: String, command: String, settings: String }
        return Dictionary(grouping: series) { Key(program: $0.entry.program, command: $0.entry.command, settings: $0.entry.settings) }
            .map { HistoryTrend(program: $0.program, command: $0.command, settings: $0.settings, series: $1) }
            .sorted { ($0.program, $0.command, $0.settings) < ($1.program, $1.command, $1.settings) }
    }

    /// In the order of the launch, the whole launch first.
    package var stageNames: [String] {
        var names: [String] = []
        for stage in series.flatMap(\.stages).sorted(by: { $0.position < $1.position }) where !names.contains(stage.name) {
            names.append(stage.name)
        }
        return names
    }

    package struct Point {
        package var index: Int
        package var entry: HistoryEntry
        package var stage: HistoryStage
        /// Share of the series before; nil: there is none, or it took no time.
        package var change: Double?
        /// As `launch` compares two programs: the rank test and the bootstrap call both series different. nil: there is none before, or
        /// one of the two was kept without what each launch took.
        package var isClear: Bool?
    }

    package func points(_ name: String) -> [Point] {
        var before: HistoryStage?
        return series.enumerated().compactMap { index, one in
            guard let stage = one.stages.first(where: { $0.name == name }) else { return nil }
            defer { before = stage }
            let change = before.flatMap { $0.p50 > 0 ? stage.p50 / $0.p50 - 1 : nil }
            let isClear = before.flatMap { isDifferent($0.sample, stage.sample) }
            return Point(index: index, entry: one.entry, stage: stage, change: change, isClear: isClear)
        }
    }

    private func isDifferent(_ first: Sample?, _ second: Sample?) -> Bool? {
        guard let first, let second else { return nil }
        // The cheaper test first: neither alone is enough.
        return RankTest.probability(first, second) < 1 - Difference.confidence && Difference(first, second).isSignificant
    }
}
