import ArgumentParser
import Glibc
import Presentation
import TraceAnalysis

extension ExportFormat: ExpressibleByArgument {}
extension ExportWeight: ExpressibleByArgument {}

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Writes traces in a format for other programs.",
        usage: "tracer export [options] --format FORMAT [FILE …]",
        discussion: """
            perfetto    ui.perfetto.dev; the most complete, also for large traces
            chrome      chrome://tracing and many others: JSON
            speedscope  www.speedscope.app
            folded      flamegraph.pl, inferno: one line per stack
            pprof       go tool pprof -http=: FILE
            callgrind   kcachegrind, callgrind_annotate
            csv         one row per call, for spreadsheets and databases

            The processes of a run, or several traces, are exported together. tracer open shows a trace in Perfetto without a file; \
            tracer view has a flame graph that needs no other program.

            EXAMPLES
              tracer export app.trace --format perfetto
              tracer export app.trace --format folded -o - | flamegraph.pl > app.svg
              tracer export tracer.make.4711 --format perfetto
              tracer export app.trace --format perfetto --from 1.2 --to 1.5
              tracer export app.trace --format folded --thread main
            """)

    @OptionGroup var traces: TraceArguments

    @Option(help: "perfetto, chrome, speedscope, folded, pprof, callgrind or csv.")
    var format: ExportFormat

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Where to write; - is standard output. Default: the name of the run or the first trace, with the format's extension, in this directory.",
            valueName: "file"))
    var output: String?

    @Flag(help: "Overwrite the output if it exists, and write it even if the disk seems too full.")
    var force = false

    @Option(help: "folded: self or total time of each stack.")
    var weight: ExportWeight = .selfTime

    @OptionGroup var time: TimeOption
    @OptionGroup var threads: ThreadOption
    @OptionGroup var window: WindowOptions
    @OptionGroup var shortest: ShortestCall

    func validate() throws {
        if time.time != .wall, !format.isSum {
            throw ValidationError(
                "--time applies to folded, pprof and callgrind: \(format.rawValue) has each call with its beginning and end")
        }
    }

    func run() throws {
        let traces = try threads.narrow(window.narrow(traces.open(), least: shortest.least))
        try time.check(traces)
        let path = output ?? ExportCommand.defaultName(self.traces.name(traces), format)
        let export = Export(traces, time: time.time)
        try warn(of: export.estimatedByteCount(format), path)
        let file = try ExportOutput(path, force: force, isBinary: format.isBinary)
        try file.writing { try export.write(format, weight: weight, to: $0) }
        if path != "-" { complain("wrote \(path), \(readable(byteCount: file.byteCount))") }
        reportLosses(traces)
        for trace in traces { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
        if traces.contains(where: { !$0.warnings.isEmpty }) { throw ExitCode(1) }
    }

    /// Warns before an export of more than a gigabyte; without --force, throws when the disk cannot hold it.
    private func warn(of byteCount: UInt64, _ path: String) throws {
        guard byteCount > 1 << 30 else { return }
        let size = "~\(readable(byteCount: byteCount))"
        if path != "-", !force, let free = freeByteCount(besides: path), free < byteCount {
            throw CommandFailure(
                "\(path) would take \(size), but only \(readable(byteCount: free)) are free: --from and --to export a part, "
                    + "--format perfetto takes the least, --force tries anyway")
        }
        complain("\(path == "-" ? "the output" : path) will take \(size): --from and --to export a part")
    }

    /// Returns the free bytes of the file system that the file will be in; nil when nobody knows.
    private func freeByteCount(besides path: String) -> UInt64? {
        let folder = path.contains("/") ? String(path[..<path.lastIndex(of: "/")!]) + "/" : "."
        var status = statvfs()
        return statvfs(folder, &status) == 0 ? UInt64(status.f_bavail) &* UInt64(status.f_frsize) : nil
    }

    static func defaultName(_ path: String, _ format: ExportFormat) -> String {
        let name = basename(path)
        return (name.hasSuffix(".trace") ? String(name.dropLast(6)) : name) + format.suffix
    }
}
