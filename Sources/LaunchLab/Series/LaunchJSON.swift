// A series of launches as the JSON object of `tracer launch --json`.
import Presentation
import Statistics
import TraceAnalysis

package enum LaunchJSON {
    package static let schema = "tracer.launch/1"

    package static func object(_ result: LaunchResult, _ command: LaunchCommand, _ watch: MachineWatch, comparison: LaunchComparison? = nil)
        -> JSON
    {
        let summary = LaunchSummary(result.corrected)
        var members: [(String, JSON)] = [
            ("schema", .string(schema)), ("command", .string(command.text)), ("ready", .string(result.readyReason)),
            ("runs", .unsigned(UInt64(result.profiles.count))), ("disturbed", .unsigned(UInt64(result.disturbed.count))),
            ("disturbed_kept", .unsigned(UInt64(result.disturbedKept))), ("machine_noise", .number(watch.noise)),
            ("stolen_ns", watch.allStolen.map { .unsigned($0) } ?? .null),
            ("involuntary_switches", .number(Sample(result.involuntarySwitches.map(Double.init)).median)),
            (
                "stages",
                .array(
                    summary.stages.map { stage in
                        .object([
                            ("name", .string(stage.name)), ("p50_ns", nanoseconds(stage.sample.median)),
                            ("p90_ns", nanoseconds(stage.sample.quantile(0.9))),
                            ("p95_ns", nanoseconds(stage.sample.quantile(0.95))), ("mean_ns", nanoseconds(stage.sample.mean)),
                            ("spread_ns", nanoseconds(stage.sample.spread)),
                        ])
                    })
            ),
            (
                "untraced",
                .object([
                    ("runs", .unsigned(UInt64(result.untraced.count))),
                    ("p50_ns", result.untraced.isEmpty ? .null : nanoseconds(result.untraced.median)),
                    ("overhead_ns", result.overhead.map(nanoseconds) ?? .null),
                ])
            ),
            (
                "libraries",
                .array(summary.libraries.map { .object([("name", .string($0.name)), ("relocations", .unsigned(UInt64($0.relocations)))]) })
            ),
            (
                "constructors",
                .array(
                    summary.constructors.map {
                        .object([("module", .string($0.key.module)), ("name", .string($0.key.name)), ("p50_ns", nanoseconds($0.median))])
                    })
            ),
            ("items", .array(summary.items.map(object))),
            ("page_faults", .object([("minor", .signed(Int64(summary.minorFaults))), ("major", .signed(Int64(summary.majorFaults)))])),
        ]
        if !result.pageIns.isEmpty {
            members.append(
                (
                    "read_from_disk",
                    .array(
                        result.pageIns.map { file in
                            .object([
                                ("path", .string(file.path)), ("bytes", .unsigned(file.bytes)),
                                (
                                    "ranges",
                                    .array(
                                        file.ranges.map {
                                            .array([.unsigned($0.offset), .unsigned($0.bytes)])
                                        })
                                ),
                            ])
                        })
                ))
        }
        if let map = result.pageInMap {
            members.append(
                (
                    "page_in_map",
                    .array(
                        map.places.map { place in
                            .object([
                                ("stage", .string(place.fault.stage)), ("path", .string(place.fault.path)),
                                ("offset", .unsigned(place.fault.offset)),
                                ("launches", .unsigned(UInt64(place.launches))),
                            ])
                        })
                ))
        }
        if let comparison { members.append(("comparison", object(comparison))) }
        return .object(members)
    }

    private static func object(_ comparison: LaunchComparison) -> JSON {
        .object([
            (
                "stages",
                .array(
                    comparison.stages.map { stage in
                        .object([
                            ("name", .string(stage.name)), ("difference_ns", nanoseconds(stage.difference.medians)),
                            ("low_ns", nanoseconds(stage.difference.low)),
                            ("high_ns", nanoseconds(stage.difference.high)), ("significant", .bool(stage.difference.isSignificant)),
                            ("probability", .number(stage.difference.probability)),
                        ])
                    })
            ),
            (
                "items",
                .array(
                    comparison.items.map { item in
                        .object([
                            ("stage", .string(item.key.module)), ("name", .string(item.key.name)),
                            ("difference_ns", nanoseconds(item.difference.medians)), ("low_ns", nanoseconds(item.difference.low)),
                            ("high_ns", nanoseconds(item.difference.high)), ("significant", .bool(item.difference.isSignificant)),
                            ("change", item.change.map { .string($0.rawValue) } ?? .null),
                        ])
                    })
            ),
            ("causes", .array(comparison.attribution.causes.map(object))),
            ("difference_ns", nanoseconds(comparison.attribution.difference)),
            ("unexplained_ns", nanoseconds(comparison.attribution.unexplained)),
        ])
    }

    private static func object(_ item: LaunchSummary.Item) -> JSON {
        .object([
            ("stage", .string(item.key.module)), ("name", .string(item.key.name)), ("p50_ns", nanoseconds(item.sample.median)),
            ("low_ns", nanoseconds(item.interval.lowerBound)), ("high_ns", nanoseconds(item.interval.upperBound)),
            ("p90_ns", nanoseconds(item.sample.quantile(0.9))), ("spread_ns", nanoseconds(item.sample.spread)),
        ])
    }

    static func object(_ cause: Cause) -> JSON {
        .object([
            ("kind", .string(cause.kind.rawValue)), ("name", .string(cause.name)), ("module", .string(cause.module)),
            ("difference_ns", nanoseconds(cause.difference)), ("share", .number((cause.share * 10000).rounded() / 10000)),
            ("change", .string(cause.change.rawValue)), ("path", .array(cause.path.map { .string($0) })),
            ("calls_before", .number(cause.callsBefore)), ("calls_after", .number(cause.callsAfter)),
            ("waiting", cause.waiting.map { .string($0) } ?? .null),
        ])
    }

    private static func nanoseconds(_ value: Double) -> JSON { .signed(Int64(value.rounded())) }
}
