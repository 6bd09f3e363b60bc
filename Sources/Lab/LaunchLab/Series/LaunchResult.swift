// The results of a series, and the agent's share in them.
import Presentation
import Statistics

/// Measurements of one program.
package struct LaunchResult: Sendable {
    package var profiles: [LaunchProfile] = []
    /// From exec to the end point, seen from outside and without waiting for a CPU, nanoseconds: of the launches without the agent.
    package var untracedTotals: [Double] = []
    /// Launches that were made again because the machine was disturbed, and why.
    package var disturbed: [String] = []
    /// Disturbed too, and counted all the same: the machine did not calm down.
    package var disturbedKept = 0
    /// Not too many were disturbed for their times to say something of the program.
    package var isCalm: Bool { disturbedKept * 4 <= launches }
    /// Number of launches that count.
    package var launches: Int { profiles.count + untracedTotals.count }
    /// Times of all traced launches, also of those made again, nanoseconds.
    package var allTotals: [Double] = []
    package var endPoint = EndPoint.exit
    package var readyReason = ""
    package var involuntarySwitches: [Int] = []
    package var drops: [ColdFiles.Drop] = []
    package var pageIns: [ColdFiles.PageIn] = []
    /// Why the page-in map is not there, or not whole.
    package var faultComplaint: String?
    /// CPU time of all threads from exec to the end point, nanoseconds; none for an end point that is only seen from inside.
    package var tracedCPU: [Double] = [], untracedCPU: [Double] = []
    /// How long each launch that counts had no CPU and could have gone on, nanoseconds, in its times or not; none where nobody knows.
    package var cpuWaits: [Double] = []

    package init() {}

    mutating func add(_ launch: MeasuredLaunch) {
        involuntarySwitches.append(launch.usage.involuntarySwitches)
        if endPoint != .insideOnly {
            if let profile = launch.profile {
                tracedCPU.append(Double(launch.moment.cpu) - min(Double(profile.tracerTime), Double(launch.moment.cpu)))
            } else {
                untracedCPU.append(Double(launch.moment.cpu))
            }
        }
        if let profile = launch.profile {
            if let hidden = profile.hiddenWait { cpuWaits.append(Double(profile.cpuWait) + Double(hidden)) }
        } else if let wait = launch.moment.cpuWait {
            cpuWaits.append(Double(wait))
        }
    }

    /// Median CPU time of a launch: without the agent, if there are such launches. nil: not known.
    package var cpuTime: Double? {
        let sample = Sample(untracedCPU.isEmpty ? tracedCPU : untracedCPU)
        return sample.isEmpty ? nil : sample.median
    }
    /// Median time that a launch waited for a CPU; nil: not known.
    package var cpuWait: Double? { cpuWaits.isEmpty ? nil : Sample(cpuWaits).median }

    /// Others had the CPUs for so much of the launches that what is left of their times may be less exact than on an idle machine.
    package var isCrowded: Bool {
        guard let cpuWait, !profiles.isEmpty else { return false }
        return cpuWait > Sample(profiles.map { Double($0.total) }).median * LaunchResult.crowdedShare
    }
    static let crowdedShare = 0.1

    /// A quarter of the launches are ready within `early`, another not before `late`, and no speed that the machine changed by
    /// (`swing`) explains it: a median of launches that have nothing to do with one another says nothing. Those that were
    /// made again are looked at as well: a long one is likelier to be disturbed, and a program that is ready early or late
    /// would seem to be early always.
    package func wildTimes(swing: Double) -> (early: Double, late: Double)? {
        let totals = Sample(allTotals), early = totals.quantile(0.25), late = totals.quantile(0.75)
        guard totals.count >= 5, late > early * LaunchResult.wildest * swing, late - early > 2_000_000 else { return nil }
        return (early, late)
    }
    /// Fewer launches were disturbed, also of those made again, than the last quarter has: it shows what the program does.
    package var isLastQuarterCalm: Bool { (disturbed.count + disturbedKept) * 4 < allTotals.count }
    /// How many times as long as the first quarter of the launches the last one may take.
    static let wildest = 3.0

    package var pageInMap: PageInMap? {
        let faults = profiles.compactMap(\.diskFaults)
        return faults.isEmpty ? nil : PageInMap(faults, stages: LaunchSummary(profiles).stages.map(\.name))
    }

    package var untraced: Sample { Sample(untracedTotals) }
    /// Time that the agent adds to a launch, beyond its own work, which it subtracts itself: nanoseconds; nil when no launch
    /// was made without it. On a noisy machine the two may differ by more than recording can cost: anything beyond
    /// `costliestCall` for each call is noise. 0 when traced launches were no slower.
    package var overhead: Double? {
        guard !untracedTotals.isEmpty, !profiles.isEmpty else { return nil }
        let difference = Difference(untraced, Sample(profiles.map { Double($0.total) }))
        return min(max(difference.medians, 0), calls * LaunchResult.costliestCall)
    }
    /// Figures of one table that cannot all be true, a line each.
    package var contradictions: [String] {
        let launches = corrected
        let summary = LaunchSummary(launches), whole = summary.stages[0].sample
        func time(_ nanoseconds: Double) -> String { readable(nanoseconds: nanoseconds) }
        var lines = summary.stages.dropFirst().filter { $0.sample.median > whole.median * 1.01 + 1000 }.map {
            "the launch takes \(time(whole.median)), and its stage \($0.name) \(time($0.sample.median))"
        }
        // A disturbed launch is no measure of another one.
        if untraced.count >= 3, whole.count >= 3, disturbedKept == 0 {
            let difference = Difference(untraced, whole)
            let allowed = max(untraced.median * LaunchResult.tolerance, LaunchResult.leastDifference)
            if difference.isSignificant, min(abs(difference.low), abs(difference.high)) > allowed {
                lines.append(
                    "the launch takes \(time(whole.median)), and \(time(untraced.median)) without the agent, which is not explained by what the agent adds"
                )
            }
        }
        return lines
    }
    /// How far the two may be apart, of the one without the agent, and in nanoseconds: the loader maps and relocates the agent's library, too,
    /// which is in no time that the agent measures (docs/guide/launch-lab.md).
    static let tolerance = 0.1, leastDifference = 200_000.0

    /// Nanoseconds. A recorded call costs some 30 (docs/measurements/performance.md), several times that while caches are cold.
    package static let costliestCall = 200.0

    /// Overhead for each recorded call; nil when no launch was made without the agent.
    package var callCost: Double? {
        guard let overhead else { return nil }
        return overhead / max(calls, 1)
    }
    private var calls: Double { Sample(profiles.map { Double($0.tree.tracedCalls) }).median }

    /// Returns the overhead for each recorded call over two programs launched in turn, nanoseconds: one agent, one machine, one cost.
    package static func callCost(_ first: LaunchResult, _ second: LaunchResult) -> Double {
        let known = [first, second].filter { $0.overhead != nil }
        return known.reduce(0) { $0 + $1.overhead! } / max(known.reduce(0) { $0 + $1.calls }, 1)
    }

    /// The launches as they would have been without the agent: each recorded call has cost the same.
    package func corrected(callCost: Double) -> [LaunchProfile] {
        guard callCost > 0 else { return profiles }
        return profiles.map { profile in
            profile.mapped { $0.without(callCost: callCost, insideShare: profile.insideShare) }
        }
    }
    package var corrected: [LaunchProfile] { corrected(callCost: callCost ?? 0) }
}
