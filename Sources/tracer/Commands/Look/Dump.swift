// tracer dump: every word of the file, for those who debug the recorder or write a reader of their own.
import ArgumentParser
import Presentation
import TraceAnalysis
import TraceFormat

struct Dump: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows every event, one line each.",
        usage: "tracer dump [options] [FILE]",
        discussion: """
            Columns: offset in the file, thread, seconds since the start, kind, function and the fields of the kind.

            EXAMPLES
              tracer dump app.trace
              tracer dump app.trace --json
            """)

    @OptionGroup var trace: TraceArgument
    @OptionGroup var display: DisplayOptions

    @Flag(help: "One JSON object per line, times in ticks and nanoseconds.")
    var json = false
    /// The name that --json had before 0.3; it goes with 0.4.
    @Flag(help: .hidden)
    var jsonLines = false

    func run() throws {
        let trace = try trace.open()
        let table = FunctionNames(trace.metadata)
        let output = display.output()
        try trace.dump(table) { [isJSON = json || jsonLines] event in
            try output.line(isJSON ? event.json(trace, table) : event.line(trace, table))
        }
        try output.finish()
        try finish(trace, ofCalls: false)
    }
}
