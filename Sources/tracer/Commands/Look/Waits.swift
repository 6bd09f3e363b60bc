import ArgumentParser
import Presentation
import TraceAnalysis

extension WaitKind: ExpressibleByArgument {}

struct Waits: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the longest waits: for what, held by whom, woken by whom.",
        discussion: """
            A wait lasts from when a thread blocked until it had a CPU again; the call that was open shows what it waited for. \
            held by: the thread that held the lock, since when, and the function it was in. woken by: the last thread that \
            released the lock, or signalled the condition, before the waiting thread ran again. Without the kernel's \
            context switches, a wait is the length of a blocking call. idle: threads that waited for work, while nobody waited for \
            them. at: since the start of the trace; negative before the \
            agent started. processor: the thread could run, but had no CPU. at once: threads that waited for the lock together. stack: \
            where a thread was found that waited for 10 ms or more, each function called by the next; … stands for unknown frames.

            EXAMPLES
              tracer waits app.trace
              tracer waits app.trace --kind lock --thread main
              tracer waits app.trace --from 1.2 --to 1.5 --min 1ms
              tracer waits app.trace --json
            """)

    @OptionGroup var trace: RunArgument
    @OptionGroup var rows: RowOption
    @Option(name: .customLong("min"), help: ArgumentHelp("Only waits of at least this length: 5ms, 0.005 (seconds).", valueName: "time"))
    var least: TimeLength?
    @Option(help: ArgumentHelp("Only waits of this kind.", valueName: WaitKind.allCases.map(\.rawValue).joined(separator: "|")))
    var kind: WaitKind?
    @OptionGroup var thread: ThreadOption
    @Flag(name: .customLong("idle"), help: "Idle threads' waits, too: those for work, while nobody waits for the thread.")
    var withIdle = false
    @Option(help: "Frames to show of each stack; 0 for all.")
    var depth = WaitReport.usualFrames
    @Flag(help: "One JSON object.")
    var json = false
    @Flag(help: "The rows as CSV: the columns are those members of a row of --json that are numbers or texts.")
    var csv = false
    @OptionGroup var window: WindowOptions
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of frames") }
        if json, csv { throw ValidationError("--json and --csv are two formats: choose one") }
    }

    func run() throws {
        let run = try trace.open()
        let (traces, window) = try window.narrowRun(trace.choice.open(run), least: nil)
        let choice = WaitChoice(least: least?.nanoseconds, kind: kind, threads: thread.pattern, withIdle: withIdle)
        let report = withProgress(basename(run.path)) { WaitReport(traces, window: window, choice, progress: $0) }
        try thread.check(report.threads, in: traces)
        try display.output().show(WaitOutput(report, limit: rows.count ?? 0), json: json, csv: csv ? "waits" : nil) { output in
            let width = names.fullNames ? nil : output.width
            try output.lines(report.lines(limit: rows.count ?? 30, deepest: depth, width: width, names: names.style, style: output.style))
        }
        try finish(traces, ofCalls: false)
    }
}
