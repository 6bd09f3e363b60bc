// The first launch of a program, which tells how the others end and what they read.
import CLaunch
import TraceAnalysis

struct PilotLaunch {
    var endPoint: EndPoint
    var reason: String
    var files: [String]
}

extension LaunchRunner {
    /// Tells what "ready" is for this program, and which files it opens. Counts for nothing.
    func pilot(_ subject: LaunchSubject) throws -> PilotLaunch {
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
        var waiting = process.wait(for: interesting & ~UInt32(LAUNCH_EXIT), until: deadline, done: asked, opened: opened)
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
                return PilotLaunch(endPoint: .exit, reason: "end of the program", files: files)
            }
            throw notReady(subject)
        }
        files += timeline.libraries.map(\.path)
        files.removeAll { $0.hasSuffix("/libtracer.so") } // the agent is not part of what is measured
        return PilotLaunch(endPoint: LaunchReader.endPoint(of: moment, hasEnded: hasEnded), reason: moment.text, files: files)
    }
}
