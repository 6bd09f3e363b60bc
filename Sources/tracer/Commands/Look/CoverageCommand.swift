import ArgumentParser
import FunctionUse
import Glibc
import Presentation
import Symbols
import TraceAnalysis

struct CoverageCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "coverage",
        abstract: "Shows which functions were never called, in all traces together.",
        discussion: """
            For traces of every function (tracer record --functions '*'). A function that could not be recorded is \
            shown as unknown with the reason, not as never called. only from these: the functions that refer to it (by a \
            direct call or jump, its address or its name) were never called either. Recorded only through slots: of these \
            modules only calls from other modules were recorded. Lines and files need debug information.

            EXAMPLES
              tracer coverage app-1.trace app-2.trace
              tracer coverage app.trace --lcov out.info && genhtml -o html out.info
              tracer coverage app.trace --json | jq '.functions[] | select(.calls == 0)'
            """)

    @OptionGroup var trace: TraceArguments
    @Option(help: ArgumentHelp("Only modules that match.", valueName: "glob"))
    var module: String?
    @Option(help: ArgumentHelp("Write lcov's format: functions, and the lines where they begin.", valueName: "file"))
    var lcov: String?
    @Option(help: ArgumentHelp("Write a page.", valueName: "file"))
    var html: String?
    @Flag(help: "Replace files that are there.")
    var force = false
    @Option(help: "Rows of each list; 0 for none.")
    var top = 10
    @Flag(help: "Show one line per function.")
    var all = false
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if top < 0 { throw ValidationError("--top takes 0 (none) or a number of rows") }
    }

    func run() throws {
        let traces = try trace.open()
        let coverage = withProgress(traces) { progress in
            Coverage(traces, symbolizer: Symbolizer(), isWanted: isWanted, progress: progress)
        }
        if let module, coverage.modules.isEmpty {
            throw CommandFailure("no module of the traces matches \(module): tracer info lists them")
        }
        if let lcov {
            try writeFile(Lcov.text(coverage), to: lcov, replaces: force)
            let count = Lcov.withoutLine(coverage)
            if count > 0 { complain("\(lcov): skipped \(counted(count, "function")) without a line: they have no debug information") }
        }
        if let html { try writePage(CoveragePage.html(coverage, names: names.style), to: html, force: force) }
        if json || lcov == nil && html == nil {
            try display.output().show(coverage, json: json) { output in
                let width = names.style == .full ? nil : output.width
                try output.lines(coverage.lines(top: top, all: all, names: names.style, width: width, style: output.style))
            }
        }
        for complaint in coverage.complaints { complain(complaint) }
        let losses = Losses(traces), lacking = losses.lost + losses.filtered + losses.unrecorded
        if !lacking.isEmpty { complain("calls are missing from the traces: \(lacking.joined(separator: ", "))") }
        try finish(traces, ofCalls: false)
    }

    private func isWanted(_ name: String) -> Bool { module.map { fnmatch($0, name, 0) == 0 } ?? true }
}
