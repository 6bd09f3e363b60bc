// What `tracer history --json` prints, and the rows of its table: commands with their series, the oldest first, and in each its stages.
import Presentation

package struct HistoryOutput {
    private let trends: [HistoryTrend]

    package init(_ all: [History.Series]) { trends = HistoryTrend.all(all) }
}

extension HistoryOutput: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("trends", \.trends)
    }
}

extension HistoryTrend: Record {
    package static let members = declare {
        Member("program", \.program)
        Member("command", \.command)
        Member("settings", \.settings)
        Member("series", "the oldest first", \.rows)
    }

    /// A series with its stages.
    struct Row {
        var entry: HistoryEntry
        /// In the order of `stageNames`; nil: the series has no such stage.
        var points: [Point?]
    }

    var rows: [Row] {
        let points = stageNames.map { Dictionary(self.points($0).map { ($0.index, $0) }) { first, _ in first } }
        return series.enumerated().map { index, one in Row(entry: one.entry, points: points.map { $0[index] }) }
    }
}

extension HistoryTrend.Row: Record {
    static let members = declare {
        Member("time") { UTC(seconds: $0.entry.time).text }.column("when (UTC)", .text) {
            String(UTC(seconds: $0.entry.time).text.prefix(16))
        }
        Member("host", \.entry.hostname)
        Member("revision", "git commit", \.entry.commit).column("commit", .text) { $0.entry.commit }
        Member("build", "build-id", \.entry.build)
        Member("runs", \.entry.runs).column("n") { String($0.entry.runs) }
        Member("stages") { $0.points.compactMap { $0 } }
    }
}

extension HistoryTrend.Point: Record {
    package static let members = declare {
        Member("name", \.stage.name)
        Member("p50_ns") { Nanoseconds(rounding: $0.stage.p50) }
        Member("p90_ns") { Nanoseconds(rounding: $0.stage.p90) }
        Member("p95_ns") { Nanoseconds(rounding: $0.stage.p95) }
        Member("spread_ns") { Nanoseconds(rounding: $0.stage.spread) }
        Member("change", "share of the previous series' median; null if there is no previous series", \.change)
        Member("significant", "by the rank test", \.isClear)
    }
}
