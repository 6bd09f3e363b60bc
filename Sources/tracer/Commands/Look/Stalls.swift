import ArgumentParser
import Presentation
import TraceAnalysis
import TraceFormat

struct Stalls: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the turns of an event loop that took long, and what they were in.",
        discussion: """
            A turn is the time from the return of the loop's wait (poll, epoll_wait, select, io_uring and others, also within \
            g_main_loop_run, uv_run and so on) to the next one. running, waiting, runnable: what the thread did meanwhile. own code: no \
            recorded call that the turn made was open. in: the heaviest path of recorded calls, with the time of the outermost and the \
            innermost. Waits for something else in a callback are a part of the turn. The last turn counts, too, if the process ended in it.

            EXAMPLES
              tracer stalls app.trace
              tracer stalls app.trace --min 16ms --top 5
              tracer stalls app.trace --thread '*' --from 1.2 --to 1.5
              tracer stalls app.trace --json
            """)

    @OptionGroup var trace: RunArgument
    @OptionGroup var rows: RowOption
    @Option(
        name: .customLong("min"),
        help: ArgumentHelp("Turns of this length or more: 16ms, 0.016 (seconds). Default: 100ms.", valueName: "time"))
    var least: TimeLength?
    @OptionGroup var threads: ThreadOption
    @Flag(help: "One JSON object.")
    var json = false
    @Flag(help: "The rows as CSV: the columns are those members of a row of --json that are numbers or texts.")
    var csv = false
    @OptionGroup var window: WindowOptions
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if json, csv { throw ValidationError("--json and --csv are two formats: choose one") }
    }

    func run() throws {
        let run = try trace.open()
        let (traces, window) = try window.narrowRun(trace.choice.open(run), least: nil)
        try threads.check(traces.flatMap { trace in trace.threads.map { (trace.header.pid, $0.tid, $0.name) } }, in: traces)
        let limit = rows.count ?? (json || csv ? 0 : 30), pattern = threads.pattern ?? ThreadPattern("main")
        let report = reading(traces, window, pattern, limit, run.path)
        if let reason = report.noLoop { throw noLoop(reason, of: pattern, traces, run.path) }
        try display.output().show(report, json: json, csv: csv ? "stalls" : nil) { output in
            try output.lines(report.lines(width: names.fullNames ? nil : output.width, names: names.style, style: output.style))
        }
        try finish(traces)
    }

    private func reading(_ traces: [TraceFile], _ window: RunWindow?, _ threads: ThreadPattern, _ limit: Int, _ path: String) -> StallReport
    {
        withProgress(basename(path)) {
            StallReport(
                traces, window: window, threads: threads, least: least?.nanoseconds ?? StallReport.usualLeast, limit: limit, progress: $0)
        }
    }

    /// Says where else there is a loop, or what was left out of the recording.
    private func noLoop(_ reason: String, of threads: ThreadPattern, _ traces: [TraceFile], _ path: String) -> CommandFailure {
        let text = "no event loop on thread \"\(threads.text)\" of \(path): \(reason)"
        if traces.allSatisfy(\.hasCountsAlone) { return CommandFailure("\(text): it has only which functions were called (--mode counts)") }
        let others = threads.text == "*" ? [] : reading(traces, nil, ThreadPattern("*"), 1, path).titles
        if !others.isEmpty { return CommandFailure("\(text); other threads have one, \(listed(others, most: 3)): --thread '*'") }
        let filters = [Variables.include.name, Variables.exclude.name, Variables.minimumTime.name, Variables.maximumDepth.name].map(
            \.description)
        let used = filters.filter { name in traces.contains { !["", "0"].contains($0.setting(name) ?? "") } }
        return CommandFailure(text + (used.isEmpty ? "" : "; \(listed(used, most: 3)) left calls out as this was recorded"))
    }
}
