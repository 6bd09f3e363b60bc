// The gate: new launches against a baseline. What is counted (libraries, constructors, relocations) fails as it is; what is
// timed fails only beyond its budget and beyond noise, on two occasions.
import ELF
import Foundation
import Presentation
import Statistics

package struct Finding: Equatable, Sendable {
    package enum Rule: String, CaseIterable, Sendable {
        case newLibrary = "new-library", newConstructor = "new-constructor", newItem = "new-item", slowerItem = "slower-item", stage
        case relocations, pageFaults = "page-faults", files
    }
    package var rule: Rule
    /// A busy machine may have made it: another series has to find it, too.
    package var isOfTime: Bool { [.stage, .slowerItem, .pageFaults].contains(rule) }
    /// Subject of the finding: a library, a constructor, a start-up item, a stage, a count.
    package var subject: String
    package var message: String

    package init(rule: Rule, subject: String, message: String) {
        self.rule = rule
        self.subject = subject
        self.message = message
    }
}

package struct Gate: Sendable {
    /// Significance level of the rank test for a stage. Two occasions must agree and exceed the budget, which makes false alarms far rarer.
    static let probability = 0.005

    package var baseline: Baseline
    /// How much slower this machine is now than when the baseline was made: 1 the same.
    package var slowdown: Double

    package init(_ baseline: Baseline, calibrationMs: Double) {
        self.baseline = baseline
        slowdown = baseline.machine.calibrationMs > 0 && calibrationMs > 0 ? calibrationMs / baseline.machine.calibrationMs : 1
    }

    /// Returns the causes of findings; those that explain most come first. With times that do not count, none that is only
    /// slower or faster.
    package func causes(_ profiles: [LaunchProfile], areTimesJudged: Bool = true) -> [Cause] {
        let causes = baseline.attribution(of: scaled(profiles)).causes
        return areTimesJudged ? causes : causes.filter { $0.change != .slower && $0.change != .faster }
    }

    /// As they would be at the speed that the machine had when the baseline was made.
    package func scaled(_ profiles: [LaunchProfile]) -> [LaunchProfile] {
        profiles.map { $0.mapped { $0.scaled(by: 1 / slowdown) } }
    }

    /// With times that do not count, no stage is judged, and a new constructor or item by the launch in which it took least.
    package func findings(_ profiles: [LaunchProfile], areTimesJudged: Bool = true) -> [Finding] {
        let now = LaunchSummary(profiles)
        return libraries(now) + constructors(now, areTimesJudged) + items(now, areTimesJudged)
            + (areTimesJudged ? stages(profiles, now) : [])
            + counts(now)
    }

    /// Returns changes that are reported but break no budget: start-up items that are gone.
    package func notes(_ profiles: [LaunchProfile]) -> [String] {
        let there = Set(LaunchSummary(profiles).items.map(\.key))
        return (baseline.items ?? []).filter { !there.contains($0.key) }.map {
            "start-up item \($0.name) of \($0.module) is gone (it took \(text($0.ms)))"
        }
    }

    private func libraries(_ now: LaunchSummary) -> [Finding] {
        let known = Set(baseline.libraries.map(\.name))
        return now.libraries.filter { !known.contains($0.name) }.map {
            Finding(rule: .newLibrary, subject: $0.name, message: "\($0.name) is newly loaded (\($0.relocations) relocations)")
        }
    }

    private func constructors(_ now: LaunchSummary, _ areTimesJudged: Bool) -> [Finding] {
        // One that was there, but too short to be listed, must not be taken for new because of noise: the limit is at least
        // twice `listedMs`.
        let limit = max(baseline.budgets.constructorMs, Baseline.listedMs * 2)
        let known = Set(baseline.constructors.map(\.key)).union(renumbered(now))
        return now.constructors.filter { !known.contains($0.key) }.compactMap { constructor in
            let time = milliseconds(areTimesJudged ? constructor.median : constructor.least)
            guard time / max(slowdown, 1) > limit else { return nil }
            let (module, name) = (constructor.key.module, constructor.key.name)
            return Finding(
                rule: .newConstructor, subject: "\(module)!\(name)",
                message:
                    "constructor \(name) of \(module) is new and takes \(areTimesJudged ? "" : "at least ")\(text(time)) (limit \(text(limit)))"
            )
        }
    }

    /// Constructors without a name that are not listed, and stand for ones that are listed and not there: another build has
    /// them elsewhere in their library. Each is taken for the one that took the time most like it.
    private func renumbered(_ now: LaunchSummary) -> Set<CallNode.Key> {
        let there = Set(now.constructors.map(\.key)), listed = Set(baseline.constructors.map(\.key))
        var candidates = now.constructors.filter { $0.key.isUnnamed && !listed.contains($0.key) }
        var renumbered: Set<CallNode.Key> = []
        for gone in baseline.constructors where gone.key.isUnnamed && !there.contains(gone.key) {
            func distance(_ index: Int) -> Double { abs(milliseconds(candidates[index].median) / slowdown - gone.ms) }
            let same = candidates.indices.filter { candidates[$0].key.withoutName == gone.key.withoutName }
            guard let nearest = same.min(by: { distance($0) < distance($1) }) else { continue }
            renumbered.insert(candidates.remove(at: nearest).key)
        }
        return renumbered
    }

    /// A baseline that an older tracer has made knows of no items.
    private func items(_ now: LaunchSummary, _ areTimesJudged: Bool) -> [Finding] {
        guard let listed = baseline.items else { return [] }
        let known = Dictionary(listed.map { ($0.key, $0) }) { first, _ in first }
        return now.items.compactMap { item in
            let (stage, name) = (item.key.module, item.key.name)
            guard let before = known[item.key] else {
                let time = milliseconds(areTimesJudged ? item.sample.median : item.sample.values[0])
                guard time / max(slowdown, 1) > baseline.budgets.itemMs else { return nil }
                return Finding(
                    rule: .newItem, subject: "\(stage): \(name)",
                    message:
                        "new item in \(stage): \(name), \(areTimesJudged ? "" : "at least ")\(text(time)) (limit \(text(baseline.budgets.itemMs)))"
                )
            }
            // As a stage, but the file has median and spread alone.
            let scaled = Sample(item.sample.values.map { $0 / 1e6 / slowdown })
            let budget = max(before.ms * (1 + baseline.budgets.stage), before.ms + baseline.budgets.stageMs)
            guard areTimesJudged, scaled.median > budget else { return nil }
            let runs = Sample(Baseline.quantiles(before, baseline.runs).map { $0 / 1e6 })
            if RankTest.probability(runs, scaled) >= Baseline.probability || Difference(runs, scaled).low + before.ms <= budget {
                return nil
            }
            return Finding(
                rule: .slowerItem, subject: "\(stage): \(name)",
                message: "item \(name) in \(stage) takes \(text(scaled.median)), the budget is \(text(budget)) (it was \(text(before.ms)))")
        }
    }

    /// A stage breaks its budget if the shortest that its launches may have been does.
    private func stages(_ profiles: [LaunchProfile], _ now: LaunchSummary) -> [Finding] {
        let shortest = LaunchSummary(profiles.map(\.shortest))
        return baseline.stages.compactMap { stage in
            guard let scaled = sample(stage, in: shortest), let median = sample(stage, in: now)?.median else { return nil }
            let budget = budget(stage)
            guard scaled.median > budget else { return nil }
            let before = Sample(stage.runsMs)
            // A budget below what was measured fails whatever the noise.
            if budget >= stage.p50Ms, RankTest.probability(before, scaled) >= Gate.probability { return nil }
            if budget >= stage.p50Ms, Difference(before, scaled).low + stage.p50Ms <= budget { return nil }
            return Finding(
                rule: .stage, subject: stage.name,
                message: "\(stage.name) takes \(text(median)), the budget is \(text(budget)) (it was \(text(stage.p50Ms)))")
        }
    }

    /// In milliseconds, as it would be at the speed of the machine then.
    private func sample(_ stage: Baseline.Stage, in summary: LaunchSummary) -> Sample? {
        summary.stages.first { $0.name == stage.name }.map { Sample($0.sample.values.map { $0 / 1e6 / slowdown }) }
    }

    /// Returns stages that break no budget for certain, and for which these launches leave it possible: on a machine that leaves so much open,
    /// that nothing was found says nothing.
    package func unclear(_ profiles: [LaunchProfile]) -> [String] {
        let now = LaunchSummary(profiles), longest = LaunchSummary(profiles.map(\.longest))
        let broken = Set(stages(profiles, now).map(\.subject))
        return baseline.stages.compactMap { stage in
            guard !broken.contains(stage.name), let scaled = sample(stage, in: now), let possible = sample(stage, in: longest) else {
                return nil
            }
            let budget = budget(stage), most = stage.p50Ms + Difference(Sample(stage.runsMs), possible).high
            guard most > budget else { return nil }
            return "\(stage.name) takes \(text(scaled.median)), or up to \(text(most)), and the budget is \(text(budget))"
        }
    }

    private func budget(_ stage: Baseline.Stage) -> Double {
        stage.budgetMs ?? max(stage.p50Ms * (1 + baseline.budgets.stage), stage.p50Ms + baseline.budgets.stageMs)
    }

    private func counts(_ now: LaunchSummary) -> [Finding] {
        var findings: [Finding] = []
        func check(_ rule: Finding.Rule, _ name: String, _ before: Int, _ after: Int, _ share: Double, least: Int, _ reasons: [String]) {
            guard after > before + max(Int(Double(before) * share), least) else { return }
            let why = reasons.isEmpty ? "" : ": " + reasons.prefix(3).joined(separator: ", ") + (reasons.count > 3 ? ", …" : "")
            findings.append(
                Finding(rule: rule, subject: name, message: "\(after) \(name), \(before) before (limit +\(percent(share)))\(why)"))
        }
        let known = Dictionary(baseline.libraries.map { ($0.name, $0.relocations) }) { $0 + $1 }
        let grown = now.libraries.map { (library: $0, more: $0.relocations - (known[$0.name] ?? 0)) }.filter { $0.more > 0 }
            .sorted { ($1.more, $0.library.name) < ($0.more, $1.library.name) }
        check(
            .relocations, "relocations", baseline.relocations, now.relocations, baseline.budgets.relocations, least: 16,
            grown.map { library, _ in
                if let before = known[library.name] { return "\(library.name) has \(library.relocations), \(before) before" }
                return "\(library.name) is new with \(library.relocations)"
            })
        let new = now.libraries.filter { known[$0.name] == nil }.map { "\($0.name) is new" }
        check(.pageFaults, "minor page faults", baseline.minorFaults, now.minorFaults, baseline.budgets.pageFaults, least: 32, new)
        check(.pageFaults, "major page faults", baseline.majorFaults, now.majorFaults, baseline.budgets.pageFaults, least: 32, new)
        if let before = baseline.files, let after = now.files {
            // Paths are not compared one by one: a folder has another name where it is tested.
            let change = FileChange(from: before, to: after)
            check(
                .files, "files used until ready", change.before, change.after, baseline.budgets.files, least: 4,
                change.new.map { "\(printable($0)) is new" })
        }
        return findings
    }

    private func text(_ milliseconds: Double) -> String { readable(nanoseconds: milliseconds * 1e6) }
}
