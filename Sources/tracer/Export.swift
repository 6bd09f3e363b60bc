// tracer export: a trace for the viewers that people have open already.
import ArgumentParser
import TraceAnalysis

extension ExportFormat: ExpressibleByArgument {}
extension ExportWeight: ExpressibleByArgument {}

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes traces in a format that other programs read.",
        discussion: """
            perfetto    ui.perfetto.dev; the fullest, and for large traces (see also: tracer open)
            chrome      chrome://tracing and many others: JSON
            speedscope  www.speedscope.app
            folded      flamegraph.pl, inferno: a line for each stack
            pprof       go tool pprof -http=: FILE
            callgrind   kcachegrind, callgrind_annotate
            csv         a row for each call, for spreadsheets and databases

            Several traces (the processes of one run) become one picture.

              tracer export app.trace --format perfetto
              tracer export app.trace --format folded -o - | flamegraph.pl > app.svg
              tracer export *.trace --format perfetto -o run.pftrace
            """)

    @Argument(help: "The traces.", completion: .file(extensions: ["trace"]))
    var files: [String]

    @Option(help: "perfetto, chrome, speedscope, folded, pprof, callgrind or csv.")
    var format: ExportFormat

    @Option(name: .shortAndLong, help: ArgumentHelp("Where to write; - is standard output. Default: the name of the first trace, with the format's ending, in this directory.", valueName: "file"))
    var output: String?

    @Flag(help: "Overwrites the output if it exists.")
    var force = false

    @Option(help: "folded: self or total time of each stack.")
    var weight: ExportWeight = .selfTime

    func validate() throws {
        if files.isEmpty { throw ValidationError("name a trace") }
    }

    func run() throws {
        let traces = try files.map { try openTrace($0) }
        let path = output ?? ExportCommand.defaultName(files[0], format)
        let file = try ExportOutput(path, force: force, isBinary: format.isBinary)
        let export = Export(traces)
        try file.writing { try export.write(format, weight: weight, to: $0) }
        if path != "-" { complain("wrote \(path), \(readable(byteCount: file.byteCount))") }
        for trace in traces { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
        if traces.contains(where: { !$0.warnings.isEmpty }) { throw CommandFailure(message: "") }
    }

    static func defaultName(_ path: String, _ format: ExportFormat) -> String {
        let name = basename(path)
        return (name.hasSuffix(".trace") ? String(name.dropLast(6)) : name) + format.suffix
    }
}
