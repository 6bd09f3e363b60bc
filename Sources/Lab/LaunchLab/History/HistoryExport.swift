// The history for other databases: a row for each stage of each series, as CSV (RFC 4180) or as a JSON object a line.
import Foundation
import Presentation
import TraceAnalysis

package enum HistoryExport {
    package enum Format: String, CaseIterable, Sendable { case csv, ndjson }

    /// Columns in the order of the CSV; docs/guide/fleet.md describes them.
    static func row(_ series: History.Series, _ stage: HistoryStage) -> [(String, JSON)] {
        let entry = series.entry
        func nanoseconds(_ value: Double) -> JSON { .unsigned(UInt64(max(value, 0).rounded())) }
        return [
            ("time", .string(UTC(seconds: entry.time).text)), ("series", .unsigned(UInt64(entry.id ?? 0))),
            ("host", .string(entry.hostname)),
            ("machine", .string(entry.cpu)), ("program", .string(entry.program)), ("command", .string(entry.command)),
            ("build", .string(entry.build)), ("revision", .string(entry.commit)), ("settings", .string(entry.settings)),
            ("ready", .string(entry.ready)), ("runs", .unsigned(UInt64(entry.runs))), ("disturbed", .unsigned(UInt64(entry.disturbed))),
            ("libraries", .unsigned(UInt64(entry.libraries))), ("relocations", .unsigned(UInt64(entry.relocations))),
            ("minor_faults", .unsigned(UInt64(entry.minorFaults))), ("major_faults", .unsigned(UInt64(entry.majorFaults))),
            ("overhead_ns", entry.overhead.map { .signed(Int64($0.rounded())) } ?? .null),
            ("position", .unsigned(UInt64(stage.position))), ("stage", .string(stage.name)),
            ("p50_ns", nanoseconds(stage.p50)), ("p90_ns", nanoseconds(stage.p90)), ("p95_ns", nanoseconds(stage.p95)),
            ("spread_ns", nanoseconds(stage.spread)),
        ]
    }

    package static func text(_ all: [History.Series], _ format: Format) -> String {
        var text = ""
        for series in all {
            for stage in series.stages {
                let row = row(series, stage)
                if format == .csv, text.isEmpty { text = row.map(\.0).joined(separator: ",") + "\n" }
                text += format == .csv ? row.map { field($0.1) }.joined(separator: ",") + "\n" : JSON.object(row).text(lines: 0) + "\n"
            }
        }
        return text
    }

    private static func field(_ value: JSON) -> String {
        guard case .string(let text) = value else {
            if case .null = value { return "" }
            return value.text(lines: 0)
        }
        return CSV.field(text)
    }
}
