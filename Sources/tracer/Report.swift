// tracer report: which functions, how often, how long.
import ArgumentParser
import TraceAnalysis

extension ReportOrder: ExpressibleByArgument {}
extension ReportGrouping: ExpressibleByArgument {}

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows which functions were called, how often and how long.",
        discussion: """
            total: from entry to exit; of a recursive function the outermost call only. self: without the traced calls \
            made from it. A call still running at the end counts up to there.

            tracer report app.trace --sort total --top 10
            tracer report app.trace --by module
            tracer report app.trace --by caller --filter 'libc.so.6!mem*'
            """)

    @OptionGroup var trace: TraceArgument

    @Option(help: ArgumentHelp("Rows: one for each function, module, caller and function, or thread.", valueName: "function|module|caller|thread"))
    var by = ReportGrouping.function

    @Option(help: ArgumentHelp("Only matching functions: NAME, MODULE or MODULE!NAME.", valueName: "glob"))
    var filter: String?

    @Option(help: "Order of the rows: self, total, calls, avg, min, max or name.")
    var sort: ReportOrder = .selfTime

    @Option(help: "Number of rows; 0 for all.")
    var top = 30

    @Flag(help: "One JSON object, with all rows.")
    var json = false

    @Flag(help: "Beside the times what they are without the agent's cost of recording, as it was measured in the same process.")
    var correct = false

    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if top < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
    }

    func run() throws {
        let trace = try trace.open()
        let pattern = filter.map { FunctionPattern($0) }
        // What is asked for least often is what takes a tree.
        var tree: CallTree?
        var summary: Summary
        if by == .function, !correct {
            summary = withProgress(trace) { Summary(trace, progress: $0) }
            if let pattern { summary.keep { pattern.matches(name: $0.name, symbol: $0.symbol, module: $0.module) } }
        } else {
            summary = Summary(trace, names: false)
            tree = withProgress(trace) { CallTree(trace, progress: $0) }
            if correct, !tree!.isCostKnown { throw CommandFailure(message: Tree.unknownCost([trace])) }
            summary.replaceRows(tree!.rows(by: by, pattern))
        }
        var output = display.output()
        if json {
            try output.line(summary.json(trace).text())
        } else {
            try output.write(summary.table(trace, by: sort, grouping: by, isCorrected: correct, top: top, width: output.width, style: output.style))
        }
        try output.finish()
        try finish(trace)
    }
}
