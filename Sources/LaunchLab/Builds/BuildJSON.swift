// Two builds side by side as the JSON object of `tracer order --check --json` (docs/schemas/order-check.json).
import Presentation
import Statistics

package enum BuildJSON {
    package static func object(_ comparison: BuildComparison, _ series: BuildSeries, runs: Int) -> JSON {
        .object([
            ("schema", .unsigned(1)), ("old", .string(comparison.old.command.text)), ("new", .string(comparison.new.command.text)),
            ("ready", .string(series.readyReason)), ("runs", .unsigned(UInt64(runs))),
            ("disturbed", .unsigned(UInt64(comparison.old.disturbed + comparison.new.disturbed))),
            ("disturbed_kept", .unsigned(UInt64(comparison.old.disturbedKept + comparison.new.disturbedKept))),
            ("machine_noise", .number(series.watch.noise)),
            ("touched_problem", (comparison.old.touchProblem ?? comparison.new.touchProblem).map { .string($0) } ?? .null),
            ("figures", .array(comparison.rows.map(object))),
        ])
    }

    private static func object(_ row: BuildComparison.Row) -> JSON {
        let (place, file): (String, JSON) =
            switch row.figure.place {
            case .all: ("all", .null)
            case .program: ("program", .null)
            case .library(let name): ("library", .string(name))
            }
        return .object([
            ("figure", .string(row.figure.kind.rawValue)), ("unit", .string(row.figure.unit.rawValue)),
            ("start", .string(row.figure.isCold ? "cold" : "warm")), ("place", .string(place)), ("file", file),
            ("old", .number(row.old.median)), ("new", .number(row.new.median)),
            ("difference", .number(row.difference.medians)), ("low", .number(row.difference.low)), ("high", .number(row.difference.high)),
            ("significant", .bool(row.difference.isSignificant)), ("probability", .number(row.difference.probability)),
            ("old_values", .array(row.old.values.map { .number($0) })), ("new_values", .array(row.new.values.map { .number($0) })),
        ])
    }
}
