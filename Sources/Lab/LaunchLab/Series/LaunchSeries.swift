// Many launches of one program, or of two in turn, under the same conditions. Every n-th is made without the agent and
// timed from outside, so that what the agent adds is known and can be taken out.
import Presentation
import Statistics

package struct LaunchSeries {
    private let plan: LaunchPlan
    private let subjects: [LaunchSubject]
    private let runner: LaunchRunner
    private var random: SplitMix
    package private(set) var watch = MachineWatch()
    /// Called before each traced launch, and at the end, with the number of these launches done and their total.
    package var progress: (Int, Int) -> Void = { _, _ in }

    package init(_ plan: LaunchPlan, _ subjects: [LaunchSubject]) {
        self.plan = plan
        self.subjects = subjects
        runner = LaunchRunner(plan)
        random = SplitMix(seed: plan.seed)
    }

    /// A result for each subject, in their order. Throws when a launch fails or never becomes ready.
    package mutating func run() throws -> [LaunchResult] {
        var results = subjects.map { _ in LaunchResult() }
        var files: [ColdFiles] = []
        for (index, subject) in subjects.enumerated() {
            let pilot = try runner.pilot(subject)
            results[index].endPoint = pilot.endPoint
            results[index].readyReason = pilot.reason
            files.append(ColdFiles(pilot.files))
            for _ in 0..<plan.warmUps where plan.cold == .no {
                _ = try runner.launch(subject, results[index].endPoint, .trace, ColdFiles([]))
            }
        }
        let all = plan.runs * subjects.count
        var done = 0
        for round in 0..<plan.runs {
            for index in subjects.indices.shuffled(using: &random) {
                progress(done, all)
                try measure(index, .trace, &results[index], files[index])
                if plan.untracedEvery > 0, (round + 1) % plan.untracedEvery == 0, results[index].endPoint != .insideOnly {
                    try measure(index, .nothing, &results[index], files[index])
                }
                done += 1
            }
        }
        progress(all, all)
        if plan.cold != .no {
            // One more cold launch shows what such a launch reads in: nothing runs after it but its own end.
            for index in subjects.indices {
                _ = try runner.launch(subjects[index], results[index].endPoint, .nothing, files[index])
                results[index].pageIns = files[index].cached()
            }
        }
        for (subject, result) in zip(subjects, results) { try refuseWildTimes(result, subject) }
        return results
    }

    private func refuseWildTimes(_ result: LaunchResult, _ subject: LaunchSubject) throws {
        guard let (early, late) = result.wildTimes(swing: watch.swing) else { return }
        let advice: String
        if result.isLastQuarterCalm {
            advice = "does it wait for something else? prepare that with --setup, or choose another moment with --ready SYMBOL"
        } else if plan.bearsDisturbance {
            return
        } else {
            let again = result.disturbed.count
            advice =
                "machine too noisy (\(again + result.disturbedKept) of \(result.launches + again) launches disturbed): measure again when it is idle"
        }
        throw LaunchProblem(
            "\(subject.command.text) is ready at very different times: a quarter of its launches within \(readable(nanoseconds: early)), another after \(readable(nanoseconds: late)); \(advice)"
        )
    }

    /// One launch that counts. A disturbed one is made again, as often as there are launches in all.
    private mutating func measure(_ index: Int, _ question: LaunchQuestion, _ result: inout LaunchResult, _ files: ColdFiles) throws {
        while true {
            watch.launchBegins()
            let launch = try runner.launch(subjects[index], result.endPoint, question, files)
            let disturbance = watch.launchEnded(hiddenWait: launch.hiddenWait, length: launch.length)
            if let profile = launch.profile { result.allTotals.append(Double(profile.total)) }
            if let reason = disturbance {
                if result.disturbed.count < plan.runs {
                    result.disturbed.append(reason)
                    continue
                }
                result.disturbedKept += 1
            }
            result.add(launch)
            if let drop = launch.drop { result.drops.append(drop) }
            result.faultComplaint = launch.faultComplaint ?? result.faultComplaint
            if let profile = launch.profile {
                result.profiles.append(profile)
            } else {
                result.untracedTotals.append(Double(launch.length))
            }
            return
        }
    }
}
