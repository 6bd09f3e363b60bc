// The trend for other programs: commands with their series, the oldest first, and in each its stages.
import Foundation
import Presentation

package enum HistoryJSON {
    package static func object(_ all: [History.Series]) -> JSON {
        .object([("schema", .unsigned(1)), ("trends", .array(HistoryTrend.all(all).map(trend)))])
    }

    private static func trend(_ trend: HistoryTrend) -> JSON {
        let points = trend.stageNames.map { ($0, Dictionary(trend.points($0).map { ($0.index, $0) }) { first, _ in first }) }
        let series = trend.series.enumerated().map { index, one in
            JSON.object([
                ("time", .string(UTC(seconds: one.entry.time).text)), ("host", .string(one.entry.host)),
                ("revision", .string(one.entry.commit)), ("build", .string(one.entry.build)), ("runs", .unsigned(UInt64(one.entry.runs))),
                ("stages", .array(points.compactMap { name, points in points[index].map(stage) })),
            ])
        }
        return .object([
            ("program", .string(trend.program)), ("command", .string(trend.command)), ("settings", .string(trend.settings)),
            ("series", .array(series)),
        ])
    }

    private static func stage(_ point: HistoryTrend.Point) -> JSON {
        func nanoseconds(_ value: Double) -> JSON { .unsigned(UInt64(max(value, 0).rounded())) }
        return .object([
            ("name", .string(point.stage.name)), ("p50_ns", nanoseconds(point.stage.p50)), ("p90_ns", nanoseconds(point.stage.p90)),
            ("p95_ns", nanoseconds(point.stage.p95)), ("spread_ns", nanoseconds(point.stage.spread)),
            ("change", point.change.map { .number($0) } ?? .null), ("significant", point.isClear.map { .bool($0) } ?? .null),
        ])
    }
}
