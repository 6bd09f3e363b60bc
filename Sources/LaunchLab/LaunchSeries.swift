// Many launches of one program, or of two in turn, under the same conditions. Every n-th is made without the agent and
// timed from outside, so that what the agent adds is known and can be taken out.
import CLaunch
import Foundation
import Glibc
import Recorder
import Symbols
import TraceAnalysis

public struct LaunchPlan: Sendable {
    public enum Cold: Sendable { case no, files, everything }

    public var runs = 20
    public var warmUps = 2
    /// One launch without the agent after so many with it.
    public var untracedEvery = 4
    public var cold = Cold.no
    public var controls = LaunchControls()
    /// Shell commands before and after each launch.
    public var setup: String?, teardown: String?
    public var readySymbol: String?
    /// Decides the order of two programs.
    public var seed: UInt64 = 0
    /// What is counted is wanted even when the machine did not calm down and times say nothing.
    public var bearsDisturbance = false
    public init() {}
}

/// What was measured of one program.
public struct LaunchResult: Sendable {
    public var profiles: [LaunchProfile] = []
    /// From exec to the same end point, seen from outside, nanoseconds: of the traced launches and of those without the agent.
    public var tracedTotals: [Double] = []
    public var untracedTotals: [Double] = []
    /// Launches that were made again because the machine was disturbed, and why.
    public var disturbed: [String] = []
    /// Disturbed too, and counted all the same: the machine did not calm down.
    public var disturbedKept = 0
    /// Not too many were disturbed for their times to say something of the program.
    public var isCalm: Bool { disturbedKept * 4 <= launches }
    /// Those that count.
    public var launches: Int { profiles.count + untracedTotals.count }
    /// Of every traced launch, those made again too: nanoseconds.
    public var allTotals: [Double] = []
    public var endPoint = EndPoint.exit
    public var readyReason = ""
    public var involuntarySwitches: [Int] = []
    public var drops: [ColdFiles.Drop] = []
    public var pageIns: [ColdFiles.PageIn] = []
    /// Why the page-in map is not there, or not whole.
    public var faultComplaint: String?
    /// A quarter of the launches are ready within `early`, another not before `late`, and no speed that the machine changed by
    /// (`swing`) explains it: a median of launches that have nothing to do with one another says nothing. Those that were
    /// made again are looked at as well: a long one is likelier to be disturbed, and a program that is ready early or late
    /// would seem to be early always.
    func wildTimes(swing: Double) -> (early: Double, late: Double)? {
        let totals = Sample(allTotals), early = totals.quantile(0.25), late = totals.quantile(0.75)
        guard totals.count >= 5, late > early * LaunchResult.wildest * swing, late - early > 2_000_000 else { return nil }
        return (early, late)
    }
    /// How many times as long as the first quarter of the launches the last one may take.
    static let wildest = 3.0

    public var pageInMap: PageInMap? {
        let faults = profiles.compactMap(\.diskFaults)
        return faults.isEmpty ? nil : PageInMap(faults, stages: LaunchSummary(profiles).stages.map(\.name))
    }

    public var untraced: Sample { Sample(untracedTotals) }
    /// What the agent adds to a launch, beyond the work of its own that it takes out by itself: nanoseconds; nil when no
    /// launch was made without it. On a noisy machine the two may differ by more than recording can cost: what is beyond
    /// `costliestCall` for each call is noise. 0 when the difference is within it.
    public var overhead: Double? {
        guard !untracedTotals.isEmpty, !profiles.isEmpty else { return nil }
        let difference = Difference(untraced, Sample(profiles.map { Double($0.total) }))
        return min(max(difference.medians, 0), calls * LaunchResult.costliestCall)
    }
    /// Nanoseconds. A recorded call costs some 30 (docs/performance.md), several times that while caches are cold.
    static let costliestCall = 200.0

    /// Overhead for each traced call; nil when no launch was made without the agent.
    public var callCost: Double? {
        guard let overhead else { return nil }
        return overhead / max(calls, 1)
    }
    private var calls: Double { Sample(profiles.map { Double($0.tree.tracedCalls) }).median }

    /// Of two programs that were launched in turn: one agent, one machine, one cost.
    public static func callCost(_ first: LaunchResult, _ second: LaunchResult) -> Double {
        let known = [first, second].filter { $0.overhead != nil }
        return known.reduce(0) { $0 + $1.overhead! } / max(known.reduce(0) { $0 + $1.calls }, 1)
    }

    /// The launches as they would have been without the agent: each traced call has cost the same.
    public func corrected(callCost: Double) -> [LaunchProfile] {
        guard callCost > 0 else { return profiles }
        return profiles.map { profile in
            var profile = profile
            profile.tree = profile.tree.without(callCost: callCost, insideShare: profile.insideShare)
            return profile
        }
    }
    public var corrected: [LaunchProfile] { corrected(callCost: callCost ?? 0) }
}

public struct LaunchSeries {
    private let plan: LaunchPlan
    private let subjects: [LaunchSubject]
    private let symbolizer = Symbolizer()
    private var random: SplitMix
    public private(set) var watch = MachineWatch()
    /// Told before each launch: how many are done, of how many.
    public var progress: (Int, Int) -> Void = { _, _ in }

    public init(_ plan: LaunchPlan, _ subjects: [LaunchSubject]) {
        self.plan = plan
        self.subjects = subjects
        random = SplitMix(seed: plan.seed)
    }

    /// A result for each subject, in their order. Throws when a launch fails or never becomes ready.
    public mutating func run() throws -> [LaunchResult] {
        var results = subjects.map { _ in LaunchResult() }
        var files: [ColdFiles] = []
        for (index, subject) in subjects.enumerated() {
            let pilot = try self.pilot(subject)
            results[index].endPoint = pilot.endPoint
            results[index].readyReason = pilot.reason
            files.append(ColdFiles(pilot.files))
            for _ in 0..<plan.warmUps where plan.cold == .no {
                _ = try launch(subject, results[index].endPoint, isTraced: true, ColdFiles([]))
            }
        }
        let all = plan.runs * subjects.count
        var done = 0
        for round in 0..<plan.runs {
            for index in subjects.indices.shuffled(using: &random) {
                progress(done, all)
                try measure(index, isTraced: true, &results[index], files[index])
                if plan.untracedEvery > 0, (round + 1) % plan.untracedEvery == 0, results[index].endPoint != .insideOnly {
                    try measure(index, isTraced: false, &results[index], files[index])
                }
                done += 1
            }
        }
        progress(all, all)
        if plan.cold != .no {
            // What a launch from cold has read in: of the last one, which nothing has run after but its own end.
            for index in subjects.indices {
                _ = try launch(subjects[index], results[index].endPoint, isTraced: false, files[index])
                results[index].pageIns = files[index].cached()
            }
        }
        for (subject, result) in zip(subjects, results) { try refuseWildTimes(result, subject) }
        return results
    }

    private func refuseWildTimes(_ result: LaunchResult, _ subject: LaunchSubject) throws {
        guard let (early, late) = result.wildTimes(swing: watch.swing) else { return }
        let advice: String
        if result.isCalm {
            advice = "does it wait for something else? --setup may prepare that, --ready SYMBOL tells another moment"
        } else if plan.bearsDisturbance {
            return
        } else {
            advice = "the machine did not calm down (\(result.disturbedKept) of \(result.launches) launches were disturbed): measure when it does less"
        }
        throw LaunchProblem("\(subject.command.text) is ready at wildly different times: a quarter of its launches within \(LaunchText.text(early)), another after \(LaunchText.text(late)); \(advice)")
    }

    /// One launch that counts. A disturbed one is made again, as often as there are launches in all.
    private mutating func measure(_ index: Int, isTraced: Bool, _ result: inout LaunchResult, _ files: ColdFiles) throws {
        while true {
            watch.launchBegins()
            let launch = try self.launch(subjects[index], result.endPoint, isTraced: isTraced, files)
            let disturbance = watch.launchEnded()
            if let profile = launch.profile { result.allTotals.append(Double(profile.total)) }
            if let reason = disturbance {
                if result.disturbed.count < plan.runs {
                    result.disturbed.append(reason)
                    continue
                }
                result.disturbedKept += 1
            }
            result.involuntarySwitches.append(launch.usage.involuntarySwitches)
            if let drop = launch.drop { result.drops.append(drop) }
            result.faultComplaint = launch.faultComplaint ?? result.faultComplaint
            if let profile = launch.profile {
                result.profiles.append(profile)
                result.tracedTotals.append(Double(launch.total))
            } else {
                result.untracedTotals.append(Double(launch.total))
            }
            return
        }
    }

    // MARK: - One launch

    private struct Launch {
        /// From exec to the end point, seen from outside, nanoseconds.
        var total: UInt64
        var profile: LaunchProfile?
        var usage: LaunchedProcess.Usage
        var drop: ColdFiles.Drop?
        var faultComplaint: String?
    }

    private func launch(_ subject: LaunchSubject, _ endPoint: EndPoint, isTraced: Bool, _ files: ColdFiles) throws -> Launch {
        try shell(plan.setup, "--setup")
        var drop: ColdFiles.Drop?
        switch plan.cold {
        case .no: break
        case .files: drop = files.drop()
        case .everything:
            let error = ColdFiles.dropEverything()
            if error != 0 { throw LaunchProblem("the caches of the machine cannot be dropped: \(String(cString: strerror(error))); --cold without --drop-caches needs no privilege") }
        }
        if isTraced { subject.removeTraces() }
        let calls = plan.controls.runsToExit ? EndPoint.exit.calls : endPoint.calls
        var process = try LaunchedProcess(
            path: subject.path, arguments: subject.arguments, environment: isTraced ? subject.traced : subject.bare,
            watched: calls, controls: plan.controls, watchesFaults: isTraced && plan.cold != .no)
        defer { _ = process.diskFaults() } // closes them
        let deadline = process.execTime + UInt64(plan.controls.timeout * 1e9)
        let waiting = process.wait(for: calls, until: deadline, done: endPoint == .insideOnly ? isReady(subject, process.pid) : { nil })
        let usage: LaunchedProcess.Usage?
        var moment: UInt64
        switch waiting {
        case .reached(let at):
            moment = at
            let ends = plan.controls.runsToExit || endPoint == .exit
            usage = ends ? process.waitForEnd(milliseconds: 10_000) ?? process.end() : process.end()
            if ends, let usage, usage.status != 0 { throw failed(subject, usage.status) }
        case .ended(let status):
            _ = process.waitForEnd(milliseconds: 1000)
            if status != 0 { throw failed(subject, status) }
            throw LaunchProblem("\(subject.command.text) ended before it was ready (\(endPoint.rawValue)), as it was in the first launch: it does not start the same way each time; --to-exit measures to its end")
        case .timedOut:
            _ = process.end()
            throw notReady(subject)
        }
        guard let usage else { throw LaunchProblem("\(subject.command.text) cannot be ended: process \(process.pid) stays") }
        try shell(plan.teardown, "--teardown")
        if moment < process.execTime { moment = process.execTime }
        var profile: LaunchProfile?
        var complaint: String?
        if isTraced {
            var faults: [DiskFaults.Moment]?
            switch process.diskFaults() {
            case .known(let all, let lost):
                faults = all
                if lost > 0 { complaint = "\(lost) notes of page faults were lost" }
            case .unknown(let reason): complaint = "the kernel does not tell of single page faults (perf_event_open: \(reason))"
            case nil: break
            }
            profile = try LaunchReader.profile(try trace(of: process, subject), symbolizer, readySymbol: plan.readySymbol,
                                               exit: plan.controls.runsToExit || endPoint == .exit ? moment - process.execTime : nil, faults: faults)
            subject.removeTraces()
        }
        return Launch(total: moment - process.execTime, profile: profile, usage: usage, drop: drop, faultComplaint: complaint)
    }

    private func notReady(_ subject: LaunchSubject) -> LaunchProblem {
        LaunchProblem("""
            \(subject.command.text) was not ready within \(plan.controls.timeout) s (what processes that it starts do does not count): \
            --timeout gives it longer, --ready SYMBOL tells what ready is, --to-exit measures to its end
            """)
    }
    private func failed(_ subject: LaunchSubject, _ status: Int32) -> LaunchProblem {
        LaunchProblem("\(subject.command.text) failed with status \(status): launches are measured of a command that succeeds; run it by hand to see why")
    }

    private func trace(of process: LaunchedProcess, _ subject: LaunchSubject) throws -> TraceFile {
        guard let path = subject.trace(of: process.pid) else {
            throw LaunchProblem("\(subject.command.text) left no trace: is it statically linked, or does it clear its environment?")
        }
        do {
            return try TraceFile(path: path)
        } catch {
            throw LaunchProblem("\(error)")
        }
    }

    /// For a moment that only the agent sees: asks its trace.
    private func isReady(_ subject: LaunchSubject, _ pid: pid_t) -> () -> UInt64? {
        var next: UInt64 = 0
        return { [symbol = plan.readySymbol] in
            let now = LaunchedProcess.now()
            guard now >= next else { return nil }
            defer { next = LaunchedProcess.now() + 2_000_000 }
            guard let path = subject.trace(of: pid), TraceFile.isReady(path: path, symbol: symbol) else { return nil }
            return now
        }
    }

    private func shell(_ command: String?, _ option: String) throws {
        guard let command else { return }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardOutput = FileHandle.standardError
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 {
            throw LaunchProblem("\(option) '\(command)' failed with status \(process.terminationStatus)")
        }
    }

    // MARK: - The first launch

    private struct Pilot {
        var endPoint: EndPoint
        var reason: String
        var files: [String]
    }

    /// Tells what "ready" is for this program, and which files it opens. Counts for nothing.
    private func pilot(_ subject: LaunchSubject) throws -> Pilot {
        try shell(plan.setup, "--setup")
        subject.removeTraces()
        var files: [String] = [subject.path]
        let interesting = UInt32(LAUNCH_LISTEN | LAUNCH_OUTPUT | LAUNCH_EXIT)
        var process = try LaunchedProcess(
            path: subject.path, arguments: subject.arguments, environment: subject.traced,
            watched: interesting | UInt32(LAUNCH_FILES), controls: plan.controls)
        let deadline = process.execTime + UInt64(plan.controls.timeout * 1e9)
        let opened: (String) -> Void = { files.append($0) }
        // A server says something before it listens; a tool says something and ends. So after the first output there is
        // a little more time to listen, or to end.
        let asked = plan.readySymbol == nil ? { nil } : isReady(subject, process.pid)
        var waiting = process.wait(for: interesting & ~UInt32(LAUNCH_EXIT) , until: deadline, done: asked, opened: opened)
        if case .reached(let at) = waiting, plan.readySymbol == nil {
            let patience = min(max((at - process.execTime) * 5, 1_000_000_000), 5_000_000_000)
            waiting = process.wait(for: UInt32(LAUNCH_LISTEN), until: min(at + patience, deadline), opened: opened)
        }
        let hasEnded: Bool
        if case .ended(let status) = waiting {
            _ = process.waitForEnd(milliseconds: 1000)
            if status != 0 { throw failed(subject, status) }
            hasEnded = true
        } else {
            _ = process.end()
            hasEnded = false
        }
        try shell(plan.teardown, "--teardown")
        let trace = try trace(of: process, subject)
        let timeline = try LaunchReader.timeline(trace, symbolizer, readySymbol: plan.readySymbol)
        subject.removeTraces()
        guard case .ready(let moment) = timeline.outcome else {
            if let note = timeline.notes.first(where: { $0.hasPrefix("not ready") }) { throw LaunchProblem(note) }
            if hasEnded { // it returned from main, or called exit
                return Pilot(endPoint: .exit, reason: "end of the program", files: files)
            }
            throw notReady(subject)
        }
        files += timeline.libraries.map(\.path)
        files.removeAll { $0.hasSuffix("/libtracer.so") } // the agent is not part of what is measured
        return Pilot(endPoint: LaunchReader.endPoint(of: moment, hasEnded: hasEnded), reason: moment.text, files: files)
    }
}
