import ArgumentParser
import Glibc
import Presentation
import TraceAnalysis
import TraceFormat

extension FileReport.Order: ExpressibleByArgument {}

struct Files: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows which files were used: by whom, how often, how much was read and written, and how long it took.",
        discussion: """
            A row a path, of all processes of the run, made of the calls of libc's functions for files that record keeps with their \
            arguments, unless it is given --no-files. What libc and the loader do by themselves is not seen. Descriptors are followed \
            through dup, fork and exec; pipes and sockets are left out. from: disk if a thread had to wait in a read, cache if none had.

            EXAMPLES
              tracer files app.trace
              tracer files app.trace --path '/etc/*' --sort first
              tracer files app.trace --sort bytes --top 10
              tracer files app.trace --json
            """)

    @OptionGroup var trace: RunArgument
    @Option(help: ArgumentHelp("Order of the rows.", valueName: "order"))
    var sort: FileReport.Order = .time
    @Option(help: ArgumentHelp("Only files whose path matches; repeatable.", valueName: "glob"))
    var path: [String] = []
    @Option(help: ArgumentHelp("Number of rows; 0 for all. Default: 30, all of --json and --csv.", valueName: "number"))
    var top: Int?
    @Flag(help: "One JSON object.")
    var json = false
    @Flag(help: "The rows as CSV: the columns are those members of a row of --json that are numbers or texts.")
    var csv = false
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if json, csv { throw ValidationError("--json and --csv are two formats: choose one") }
        if let top, top < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
    }

    func run() throws {
        let run = try trace.open(), traces = try trace.choice.open(run)
        let report = withProgress(basename(run.path)) { FileReport(traces, progress: $0) }
        if let reason = report.noFiles {
            if traces.allSatisfy(\.hasCountsAlone) {
                throw CommandFailure("no files in \(run.path): it has only which functions were called (--mode counts)")
            }
            throw CommandFailure("no files in \(run.path): \(reason)")
        }
        let globs = path
        let output = FileOutput(report, order: sort, limit: top ?? (json || csv ? 0 : 30)) { path in
            globs.isEmpty || globs.contains { fnmatch($0, path, 0) == 0 }
        }
        try display.output().show(output, json: json, csv: csv ? "files" : nil) { to in
            try to.lines(output.lines(width: to.width, style: to.style))
        }
        try finish(traces)
    }
}
