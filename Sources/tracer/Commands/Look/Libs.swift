import ArgumentParser
import Symbols
import TraceAnalysis

struct Libs: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the libraries of a program: who needs them, what they cost, which are not used.",
        discussion: """
            look-ups: symbols that the loader had to find when it loaded the library. calls: recorded calls of \
            its functions. Symbols that two libraries define are read from the files on this machine, if they are still \
            the traced ones.

            EXAMPLES
              tracer libs app.trace
              tracer libs app.trace --json
            """)

    @OptionGroup var trace: TraceArgument

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
        let trace = try trace.open()
        let report = try orFail { try LibraryReport(trace, symbolizer: Symbolizer()) }
        try Output().show(report, json: json) { try $0.write(report.table(width: $0.width, style: $0.style)) }
        try finish(trace, ofCalls: false)
    }
}
