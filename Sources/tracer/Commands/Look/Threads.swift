import ArgumentParser
import Presentation
import TraceAnalysis

struct Threads: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows how long each thread ran, was runnable and waited, and for what.",
        discussion: """
            running: on a CPU; in kernel: the part of running that samples did not find in the program's code. runnable: \
            ready to run, but without a CPU. waiting: by what the thread waited for: lock, condition, pipe, socket, \
            terminal, event, timer, disk, sleep, child, join, other. If the trace has the program's start, also stage by stage.

            EXAMPLES
              tracer threads app.trace
              tracer threads app.trace --from 1.2 --to 1.5
              tracer threads tracer.make.4711 --process 'cc1*' --json
            """)

    @OptionGroup var trace: RunArgument
    @OptionGroup var thread: ThreadOption
    @Flag(inversion: .prefixedNo, help: "Also show each stage of the start, if the trace has it.")
    var stages = true
    @Flag(help: "One JSON object.")
    var json = false
    @Flag(help: "The rows as CSV: the columns are those members of a row of --json that are numbers or texts.")
    var csv = false
    @OptionGroup var window: WindowOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if json, csv { throw ValidationError("--json and --csv are two formats: choose one") }
    }

    func run() throws {
        let run = try trace.open()
        let (traces, window) = try window.narrowRun(trace.choice.open(run), least: nil)
        let choice = WaitChoice(threads: thread.pattern)
        let report = withProgress(basename(run.path)) {
            ThreadReport(traces, window: window, choice, hasStages: stages, progress: $0)
        }
        try thread.check(report.threads, in: traces)
        try display.output().show(report, json: json, csv: csv ? "threads" : nil) {
            try $0.lines(report.lines(width: $0.width, style: $0.style))
        }
        try finish(traces, ofCalls: false)
    }
}
