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

    /// The whole launch first.
    package var stages: [Stage]
    package var attribution: Attribution

    package init(_ first: LaunchResult, _ second: LaunchResult) {
        let cost = LaunchResult.callCost(first, second)
        let profiles = (first.corrected(callCost: cost), second.corrected(callCost: cost))
        let before = LaunchSummary(profiles.0).stages, after = LaunchSummary(profiles.1).stages
        var names = after.map(\.name)
        for stage in before where !names.contains(stage.name) { names.append(stage.name) }
        let none = (Sample(first.profiles.map { _ in 0 }), Sample(second.profiles.map { _ in 0 }))
        stages = names.map { name in
            let a = before.first { $0.name == name }?.sample ?? none.0, b = after.first { $0.name == name }?.sample ?? none.1
            return Stage(name: name, first: a, second: b, difference: Difference(a, b))
        }
        attribution = CauseSearch.attribute(from: profiles.0, to: profiles.1)
    }
}
