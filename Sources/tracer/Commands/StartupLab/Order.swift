import ArgumentParser
import FunctionUse
import Glibc
import LaunchLab
import Presentation
import Symbols
import TraceAnalysis

extension OrderFormat: ExpressibleByArgument {}

struct Order: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a function order for the linker, with the functions called during start-up first.",
        usage: """
            tracer order [options] [FILE …] -o ORDER
            tracer order --check --old PROGRAM --new PROGRAM [options] [-- ARGUMENT …]
            """,
        discussion: """
            For traces of every function (tracer record --functions '*'). Functions that are called before the program is \
            ready come first, in the order of their first calls; then those that are called later, next to their \
            callers; the rest is left to the linker. Build with -ffunction-sections (docs/guide/order.md).

            With --check two builds are launched alternately, without the agent, with the arguments after --. The table \
            compares page faults of text by library, touched text, and time until ready, warm and from disk, each with an \
            interval.

            EXAMPLES
              tracer order app.trace -o order.txt
              cc -ffunction-sections *.c -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt
              tracer order app-*.trace -o order.ld --format ld.bfd-script
              tracer order app.trace --module 'libfoo*' -o order.txt
              tracer order --check --old ./app.old --new ./app -- --serve
            """)

    @OptionGroup var trace: TraceArguments
    @Option(name: .shortAndLong, help: ArgumentHelp("The file to write; - is standard output.", valueName: "file"))
    var output: String?
    @Option(
        help: ArgumentHelp(
            "The linker to write for. (default: lld)", valueName: OrderFormat.allCases.map(\.rawValue).joined(separator: "|")))
    var format: OrderFormat?
    @Option(help: ArgumentHelp("The module to order. Default: the program itself.", valueName: "glob"))
    var module: String?
    @Option(help: ArgumentHelp("The program is ready at the first call of this function.", valueName: "symbol"))
    var ready: String?
    @Flag(help: "Replace a file that is there.")
    var force = false
    @Flag(help: "One JSON object; with -o in addition to the file.")
    var json = false
    @OptionGroup var builds: BuildOptions
    @OptionGroup var names: NameOptions

    func validate() throws {
        if builds.check {
            let given: [(String, Bool)] = [
                ("traces", !trace.files.isEmpty), ("--process", trace.choice.process != nil), ("-o", output != nil),
                ("--format", format != nil),
                ("--module", module != nil), ("--ready", ready != nil), ("--force", force),
            ]
            if let first = given.first(where: \.1) {
                throw ValidationError("--check launches programs and makes no order: \(first.0) cannot be combined with it")
            }
        } else if output == nil, !json {
            throw ValidationError("missing -o FILE, the file for the order; - is standard output")
        } else if output == "-", json {
            throw ValidationError("--json and -o - both write to standard output: give -o FILE")
        }
    }

    func run() throws {
        if builds.check { return try check() }
        let traces = try trace.open()
        if let counts = traces.first(where: \.hasCountsAlone) {
            throw CommandFailure("\(counts.path) has which functions were called, but not when: record without --mode counts")
        }
        let order = try orFail {
            try LayoutOrder(traces, symbolizer: Symbolizer(), isWanted: module.map { glob in { fnmatch(glob, $0, 0) == 0 } }, ready: ready)
        }
        guard !order.start.isEmpty || !order.later.isEmpty else {
            throw CommandFailure(
                "no function of \(order.module.name) was called in the traces: record with tracer record --functions '\(module.map { $0 + "!" } ?? "")*'"
            )
        }
        let format = format ?? .lld, text = OrderFile.text(order, format), isStandard = output == "-"
        guard order.hasNames else {
            throw CommandFailure("no function of \(order.module.name) that was called has a symbol: record a build that is not stripped")
        }
        if isStandard {
            try Output.write(text)
        } else if let output {
            try writeFile(text, to: output, replaces: force)
        }
        try Output(isStandard ? STDERR_FILENO : STDOUT_FILENO).show(order, json: json) { report in
            try report.lines(order.lines(names: names.style, style: report.style))
            if let output, !isStandard { try report.line("\n\(output): \(format.usage(output))") }
        }
        for complaint in order.complaints { complain(complaint) }
        try finish(traces)
    }

    private func check() throws {
        try builds.compare { comparison, series, runs in
            try Output().show(BuildOutput(comparison, series, runs: runs), json: json) {
                try $0.lines(BuildText(series, runs: runs, style: $0.style).lines(comparison))
            }
        }
    }
}
