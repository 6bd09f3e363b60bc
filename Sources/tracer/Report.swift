// tracer report: which functions, how often, how long.
import ArgumentParser
import TraceAnalysis

extension ReportOrder: ExpressibleByArgument {}

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows which functions were called, how often and how long.",
        discussion: """
            total: from entry to exit; of a recursive function the outermost call only. self: without the traced calls \
            made from it. A call still running at the end counts up to there.
            """)

    @OptionGroup var trace: TraceArgument

    @Option(help: "Order of the rows: self, total, calls, avg, min, max or name.")
    var sort: ReportOrder = .selfTime

    @Option(help: "Number of rows; 0 for all.")
    var top = 30

    @Flag(help: "One JSON object, with all functions.")
    var json = false

    func validate() throws {
        if top < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
    }

    func run() throws {
        let trace = try trace.open()
        let summary = Summary(trace)
        var output = Output()
        if json {
            try output.line(summary.json(trace).text())
        } else {
            try output.write(summary.table(trace, by: sort, top: top, style: output.style))
        }
        try output.flush()
        try finish(trace)
    }
}
