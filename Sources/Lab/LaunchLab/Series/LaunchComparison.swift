// Two programs launched in turn: stage by stage, and why.
import Foundation
import Statistics
import TraceAnalysis

package struct LaunchComparison: Sendable {
    package struct Stage: Sendable {
        package var name: String
        package var first: Sample, second: Sample
        package var difference: Difference
    }

    /// A start-up item that either program has; where it is missing it takes no time.
    package struct Item: Sendable {
        package var key: CallNode.Key
        package var first: Sample, second: Sample
        package var difference: Difference
        /// nil: none that can be distinguished from noise.
        package var change: Cause.Change?
    }

    /// The whole launch first.
    package var stages: [Stage]
    /// In the order of the second program, then what it no longer has.
    package var items: [Item]
    package var attribution: Attribution
    /// nil: it is not known which files one of them uses.
    package var files: FileChange?

    package init(_ first: LaunchResult, _ second: LaunchResult) {
        let cost = LaunchResult.callCost(first, second)
        let profiles = (first.corrected(callCost: cost), second.corrected(callCost: cost))
        let summaries = (LaunchSummary(profiles.0), LaunchSummary(profiles.1))
        let before = summaries.0.stages, after = summaries.1.stages
        var names = after.map(\.name)
        for stage in before where !names.contains(stage.name) { names.append(stage.name) }
        let none = (Sample(first.profiles.map { _ in 0 }), Sample(second.profiles.map { _ in 0 }))
        stages = names.map { name in
            let a = before.first { $0.name == name }?.sample ?? none.0, b = after.first { $0.name == name }?.sample ?? none.1
            return Stage(name: name, first: a, second: b, difference: Difference(a, b))
        }
        let known = (Self.samples(summaries.0), Self.samples(summaries.1))
        let keys = summaries.1.items.map(\.key) + summaries.0.items.map(\.key).filter { known.1[$0] == nil }
        items = keys.map { key in
            let a = known.0[key] ?? none.0, b = known.1[key] ?? none.1, difference = Difference(a, b)
            var change: Cause.Change? = difference.isSignificant ? difference.medians > 0 ? .slower : .faster : nil
            if known.0[key] == nil { change = .new } else if known.1[key] == nil { change = .gone }
            return Item(key: key, first: a, second: b, difference: difference, change: change)
        }
        attribution = CauseSearch.attribute(from: profiles.0, to: profiles.1)
        if let before = summaries.0.files, let after = summaries.1.files { files = FileChange(from: before, to: after) }
    }

    private static func samples(_ summary: LaunchSummary) -> [CallNode.Key: Sample] {
        Dictionary(summary.items.map { ($0.key, $0.sample) }) { first, _ in first }
    }
}
