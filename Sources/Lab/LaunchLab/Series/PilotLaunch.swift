// The first launch of a program, which determines how the others end and what they read.
import CLaunch
import TraceAnalysis

struct PilotLaunch {
    var endPoint: EndPoint
    var reason: String
    var files: [String]
}

extension LaunchRunner {
    /// Determines what "ready" is for this program, and which files it opens. Counts for nothing.
    func pilot(_ subject: LaunchSubject) throws -> PilotLaunch {
        try shell(plan.setup, "--setup")
        subject.removeTraces()
        var files: [String] = [subject.path]
        let interesting = UInt32(LAUNCH_LISTEN | LAUNCH_OUTPUT | LAUNCH_EXIT)
        var process = try LaunchedProcess(
            subject, environment: subject.traced, watched: interesting | UInt32(LAUNCH_FILES), controls: plan.controls)
        let deadline = process.execTime + UInt64(plan.controls.timeout * 1e9)
        let waiting: LaunchedProcess.Waiting
        if plan.readySymbol == nil {
            waiting = settled(process, until: deadline) { files.append($0) }.waiting
        } else {
            waiting = process.wait(
                for: interesting & ~UInt32(LAUNCH_EXIT), until: deadline, done: isReady(subject, process.pid), opened: { files.append($0) })
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
                return PilotLaunch(endPoint: .exit, reason: "end of the program", files: files)
            }
            throw notReady(subject)
        }
        files += timeline.libraries.map(\.path)
        files.removeAll { $0.hasSuffix("/libtracer.so") } // the agent is not part of what is measured
        return PilotLaunch(endPoint: LaunchReader.endPoint(of: moment, hasEnded: hasEnded), reason: moment.text, files: files)
    }

    /// The same from outside: of a launch without the agent, which sees no more than that the program listens, ends, or says something.
    func pilot(bare subject: LaunchSubject) throws -> PilotLaunch {
        try shell(plan.setup, "--setup")
        var files: [String] = [subject.path]
        let watched = UInt32(LAUNCH_LISTEN | LAUNCH_OUTPUT | LAUNCH_EXIT | LAUNCH_FILES)
        var process = try LaunchedProcess(subject, environment: subject.bare, watched: watched, controls: plan.controls)
        let deadline = process.execTime + UInt64(plan.controls.timeout * 1e9)
        let waiting: LaunchedProcess.Waiting
        var seen: UInt32 = 0
        if plan.controls.runsToExit {
            waiting = process.wait(for: 0, until: deadline, opened: { files.append($0) })
        } else {
            (waiting, seen) = settled(process, until: deadline) { files.append($0) }
        }
        defer { try? shell(plan.teardown, "--teardown") }
        switch waiting {
        case .ended(let status):
            _ = process.waitForEnd(milliseconds: 1000)
            if status != 0 { throw failed(subject, status) }
            return PilotLaunch(endPoint: .exit, reason: "end of the program", files: files)
        case .reached, .timedOut:
            _ = process.end()
            if seen & UInt32(LAUNCH_LISTEN) != 0 { return PilotLaunch(endPoint: .listen, reason: "listening", files: files) }
            if seen & UInt32(LAUNCH_OUTPUT) != 0 { return PilotLaunch(endPoint: .output, reason: "first output", files: files) }
            throw notReady(subject)
        }
    }

    /// A server says something before it listens; a tool says something and ends. So after the first output there is a little more time to
    /// listen, or to end.
    /// - Returns: also which of these calls there were, LAUNCH_ bits
    private func settled(
        _ process: LaunchedProcess, until deadline: UInt64, opened: (String) -> Void
    ) -> (waiting: LaunchedProcess.Waiting, seen: UInt32) {
        let listen = UInt32(LAUNCH_LISTEN)
        var seen: UInt32 = 0
        let first = process.wait(for: listen | UInt32(LAUNCH_OUTPUT), until: deadline, opened: opened, reached: { seen |= $0 })
        guard case .reached(let moment) = first else { return (first, seen) }
        let patience = min(max(moment.wall * 5, 1_000_000_000), 5_000_000_000)
        let waiting = process.wait(for: listen, until: min(moment.at + patience, deadline), opened: opened, reached: { seen |= $0 })
        return (waiting, seen)
    }
}
