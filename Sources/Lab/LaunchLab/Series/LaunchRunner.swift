// One launch: prepared, made, watched until its end point, ended, and read.
import Foundation
import Glibc
import Presentation
import Recorder
import Symbols
import TraceAnalysis

/// Results of one launch.
struct MeasuredLaunch {
    /// The end point, seen from outside.
    var moment: LaunchMoment
    /// Waiting for a CPU that could not be taken out of the launch's times, nanoseconds; nil: the kernel does not say how long it was.
    var hiddenWait: UInt64?
    var profile: LaunchProfile?
    /// Nanoseconds, without waiting for a CPU.
    var length: UInt64 { profile.map { UInt64(max($0.total, 0)) } ?? moment.net }
    var usage: LaunchedProcess.Usage
    var drop: ColdFiles.Drop?
    var faultComplaint: String?
    /// Until the end point.
    var textFaults: [TextFault] = []
    /// Bytes of the program's text used until the end point, or why they are not known; nil: not asked for, or it ended before.
    var touched: Result<UInt64, TouchedText.Problem>?
}

/// A further measurement of a launch, besides its time and resource usage.
enum LaunchQuestion {
    case nothing
    /// The agent's recording; and the kernel's: when threads run and wait, and which pages come from disk.
    case trace
    /// Page faults at code, as the kernel reports them.
    case textFaults
    /// The pages of the program's text that the CPU has used.
    case touchedText
}

struct LaunchRunner {
    let plan: LaunchPlan
    let symbolizer = Symbolizer()

    init(_ plan: LaunchPlan) { self.plan = plan }

    func launch(_ subject: LaunchSubject, _ endPoint: EndPoint, _ question: LaunchQuestion, _ files: ColdFiles) throws -> MeasuredLaunch {
        let isTraced = question == .trace
        try shell(plan.setup, "--setup")
        var drop: ColdFiles.Drop?
        switch plan.cold {
        case .no: break
        case .files: drop = files.drop()
        case .everything:
            let error = ColdFiles.dropEverything()
            if error != 0 {
                throw LaunchProblem(
                    "cannot drop the system's caches: \(String(cString: strerror(error))); --cold without --drop-caches needs no privilege"
                )
            }
        }
        if isTraced { subject.removeTraces() }
        let calls = plan.controls.runsToExit ? EndPoint.exit.calls : endPoint.calls
        var process = try LaunchedProcess(
            subject, environment: isTraced ? subject.traced : subject.bare, watched: calls, controls: plan.controls, question: question)
        defer { process.kernel?.stop() }
        let deadline = process.execTime + UInt64(plan.controls.timeout * 1e9)
        var touched: Result<UInt64, TouchedText.Problem>?
        let waiting = process.wait(
            for: calls, until: deadline, done: endPoint == .insideOnly ? isReady(subject, process.pid) : nil,
            reached: { _ in if question == .touchedText { touched = TouchedText.byteCount(of: process) } })
        let usage: LaunchedProcess.Usage?
        let moment: LaunchMoment
        switch waiting {
        case .reached(let at):
            moment = at
            let ends = plan.controls.runsToExit || endPoint == .exit
            usage = ends ? process.waitForEnd(milliseconds: 10_000) ?? process.end() : process.end()
            if ends, let usage, usage.status != 0 { throw failed(subject, usage.status) }
        case .ended(let status):
            let end = process.moment(clockTime())
            usage = process.waitForEnd(milliseconds: 1000)
            if status != 0 { throw failed(subject, status) }
            // It may have been ready, and have ended before anybody asked its trace again.
            guard endPoint == .insideOnly, isReady(subject, process.pid)() != nil else {
                throw LaunchProblem(
                    "\(subject.command.text) ended before it was ready (\(endPoint.rawValue)) as in the first launch: its launches differ; use --to-exit to measure to its end"
                )
            }
            moment = end
        case .timedOut:
            _ = process.end()
            throw notReady(subject)
        }
        guard let usage else { throw LaunchProblem("\(subject.command.text) cannot be killed: process \(process.pid) is still running") }
        try shell(plan.teardown, "--teardown")
        var profile: LaunchProfile?
        var complaint: String?
        if isTraced {
            let trace = try trace(of: process, subject)
            complaint = plan.cold == .no ? nil : trace.noSwitches.map { "no page-in map: \($0)" }
            profile = try LaunchReader.profile(
                trace, symbolizer, readySymbol: plan.readySymbol, end: moment,
                isToExit: plan.controls.runsToExit || endPoint == .exit, isCold: plan.cold != .no)
            subject.removeTraces()
        }
        return MeasuredLaunch(
            moment: moment, hiddenWait: profile.map { $0.hiddenWait } ?? moment.cpuWait.map { _ in moment.othersWait }, profile: profile,
            usage: usage,
            drop: drop, faultComplaint: complaint,
            textFaults: question == .textFaults ? try textFaults(of: process, until: moment.heard) : [], touched: touched)
    }

    private func textFaults(of process: LaunchedProcess, until moment: UInt64) throws -> [TextFault] {
        guard let result = process.kernel?.endOfTextFaults(of: process.pid) else { return [] }
        let grant = KernelGrant(result.grant)
        if grant.granted.isDisjoint(with: .minorFaults), let refusal = grant.refusal { throw LaunchProblem("page faults \(refusal)") }
        guard grant.lost == 0 else {
            throw LaunchProblem(
                "page faults: \(counted(grant.lost, "kernel record")) lost: is the machine busy, or perf_event_mlock_kb too small?")
        }
        return result.faults.filter { $0.nanoseconds <= moment }
    }

    func notReady(_ subject: LaunchSubject) -> LaunchProblem {
        LaunchProblem(
            """
            \(subject.command.text) was not ready within \(plan.controls.timeout) s (its child processes do not count): \
            --timeout allows more time, --ready SYMBOL defines when it is ready, --to-exit measures to its end
            """)
    }
    func failed(_ subject: LaunchSubject, _ status: Int32) -> LaunchProblem {
        LaunchProblem(
            "\(subject.command.text) failed with status \(status): only commands that succeed can be measured; run it by hand to see why"
        )
    }

    func trace(of process: LaunchedProcess, _ subject: LaunchSubject) throws -> TraceFile {
        guard let path = subject.trace(of: process.pid) else {
            throw LaunchProblem("\(subject.command.text) left no trace: is it statically linked, or does it clear its environment?")
        }
        if let kernel = process.kernel { _ = KernelAppendix(kernel).write(wholeStartTo: path) }
        do {
            return try TraceFile(path: path)
        } catch {
            throw LaunchProblem("\(error)")
        }
    }

    /// For a moment that only the agent sees: asks its trace.
    func isReady(_ subject: LaunchSubject, _ pid: pid_t) -> () -> UInt64? {
        var next: UInt64 = 0
        return { [symbol = plan.readySymbol] in
            let now = clockTime()
            guard now >= next else { return nil }
            defer { next = clockTime() + 2_000_000 }
            guard let path = subject.trace(of: pid), TraceFile.isReady(path: path, symbol: symbol) else { return nil }
            return now
        }
    }

    func shell(_ command: String?, _ option: String) throws {
        guard let command else { return }
        let status = try Subprocess.shell(command)
        if status != 0 { throw LaunchProblem("\(option) '\(command)' failed with status \(status)") }
    }
}
