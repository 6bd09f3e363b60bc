import ArgumentParser
import Presentation
import Symbols
import TraceAnalysis

struct Samples: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows where CPU time went, also in code whose calls are not recorded: sampled stacks, merged with the calls.",
        discussion: """
            For traces of tracer record --sample. total: share of the thread's samples with the function in their stack, self: \
            with it innermost. … stands for unknown frames: a stack longer than the part that was copied continues after it with the \
            calls that were open. A line that begins with > is the only callee of the line above that gets a line.

            EXAMPLES
              tracer record --sample -- ./app
              tracer samples app.trace
              tracer samples app.trace --min-share 5% --thread main
              tracer samples app.trace --folded | flamegraph.pl > app.svg
              tracer samples app.trace --pprof app.pb.gz
            """)

    @OptionGroup var traces: TraceArguments

    @OptionGroup var least: ShareOption

    @Option(help: "Levels of the tree to show; 0 for all.")
    var depth = 0

    @Option(help: ArgumentHelp("One tree for each thread, process, or for the whole run.", valueName: "thread|process|run"))
    var by = Tree.Roots.thread

    @Flag(help: "One JSON object: the functions and their shares.")
    var json = false

    @Flag(help: "Folded stacks: one line per stack, with its number of samples.")
    var folded = false

    @Option(help: ArgumentHelp("Write a profile for pprof; - is standard output.", valueName: "file"))
    var pprof: String?

    @Flag(help: "Overwrite the profile if it exists.")
    var force = false

    @OptionGroup var threads: ThreadOption
    @OptionGroup var window: WindowOptions
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of levels") }
        if [json, folded, pprof != nil].count(where: { $0 }) > 1 { throw ValidationError("give one of --json, --folded and --pprof") }
    }

    func run() throws {
        let files = try threads.only(window.narrow(traces.open(), least: least.time)) // a thread may have samples and no calls
        let report = withProgress(files) { SampleReport(files, progress: $0) }
        if report.damagedRecords > 0 { complain("\(files[0].path): \(counted(report.damagedRecords, "damaged record")) skipped") }
        if report.samples == 0, threads.pattern != nil { try threads.check(files.flatMap { $0.sampledThreads }, in: files) }
        if report.samples == 0, !json { throw CommandFailure(noSamples(files)) }
        if let pprof {
            let file = try ExportOutput(pprof, force: force, isBinary: true)
            try file.writing { try report.writePprof(files, to: $0) }
            if pprof != "-" { complain("wrote \(pprof), \(readable(byteCount: file.byteCount))") }
        } else if folded {
            try ExportOutput("-", force: false, isBinary: false).writing { try report.writeFolded(to: $0) }
        } else {
            try display.output().show(report, json: json) { try show(report, $0) }
        }
        try finish(files, ofCalls: false)
    }

    private func noSamples(_ files: [TraceFile]) -> String {
        let kernel = files.lazy.compactMap { $0.metadata.kernel }.first
        if let kernel, kernel.asked.contains(.samples), let refusal = kernel.refusal { return "no samples in \(files[0].path): \(refusal)" }
        let isAsked = kernel?.asked.contains(.samples) == true
        let lost = files.reduce(UInt64(0)) { $0 &+ ($1.metadata.kernel?.lost ?? 0) }
        let which = threads.thread.map { " of thread \"\($0)\"" } ?? "", isPart = files.contains { !$0.window.isWhole }
        if isAsked, lost > 0 { return "no samples\(which) in \(files[0].path): the kernel lost \(counted(lost, "record"))" }
        if isAsked, isPart { return "no samples\(which) in this part of \(files[0].path): too little CPU time was used in it" }
        if isAsked, !which.isEmpty { return "no samples\(which) in \(files[0].path): it used too little CPU time" }
        return "no samples in \(files[0].path)"
            + (isAsked ? ": the program used too little CPU time" : ": record them with `tracer record --sample -- PROGRAM`")
    }

    private func show(_ report: SampleReport, _ output: Output) throws {
        let tree = by.merged(report.tree.named(names.style))
        let style = output.style, width = names.style == .full ? nil : output.width
        try output.line(style.bold(report.title))
        var process: Int?
        for root in tree.roots {
            if tree.processes.count > 1, root.process != process {
                process = root.process
                try output.line("")
                try output.line(
                    style.bold(root.process.map { tree.title(tree.processes[$0]) } ?? counted(tree.processes.count, "process", "processes"))
                )
            }
            try output.line("")
            try output.line(style.bold(report.title(root, in: tree)))
            try output.line(style.dim(SampleReport.columns))
            try SampleReport.lines(tree, root, least: least.share, deepest: depth, width: width, style) { try output.line($0) }
        }
    }
}
