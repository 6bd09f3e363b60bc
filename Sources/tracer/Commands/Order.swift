// tracer order: in which order the linker should lay a program's functions.
import ArgumentParser
import FunctionUse
import Glibc
import Presentation
import Symbols
import TraceAnalysis

extension OrderFormat: ExpressibleByArgument {}

struct Order: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes in which order the linker should lay a program's functions: those that its start calls first.",
        discussion: """
            For traces of every function (tracer record --functions '*'). Functions that are called before the program is \
            ready come first, in the order of their first calls; then those that are called later, next to those that \
            call them; the rest is left to the linker. Build with -ffunction-sections (docs/order.md).

            EXAMPLES
              tracer order app.trace -o order.txt && cc -ffunction-sections *.c -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt
              tracer order app-*.trace -o order.ld --format ld.bfd-script
              tracer order app.trace --module 'libfoo*' -o order.txt
            """)

    @OptionGroup var trace: TraceArguments
    @Option(name: .shortAndLong, help: ArgumentHelp("The file to write; - is standard output.", valueName: "file"))
    var output: String
    @Option(help: ArgumentHelp("For which linker.", valueName: OrderFormat.allCases.map(\.rawValue).joined(separator: "|")))
    var format = OrderFormat.lld
    @Option(help: ArgumentHelp("Of this module. Default: the program itself.", valueName: "glob"))
    var module: String?
    @Option(help: ArgumentHelp("The program is ready at the first call of this function.", valueName: "symbol"))
    var ready: String?
    @Flag(help: "Replace a file that is there.")
    var force = false
    @OptionGroup var names: NameOptions

    func run() throws {
        let traces = try trace.open()
        let order: LayoutOrder
        do throws(LayoutOrder.Problem) {
            order = try LayoutOrder(
                traces, symbolizer: Symbolizer(), isWanted: module.map { glob in { fnmatch(glob, $0, 0) == 0 } }, ready: ready)
        } catch {
            throw CommandFailure(message: error.message)
        }
        guard !order.start.isEmpty || !order.later.isEmpty else {
            throw CommandFailure(
                message:
                    "no function of \(order.module.name) was called in the traces: record with tracer record --functions '\(module.map { $0 + "!" } ?? "")*'"
            )
        }
        let text = OrderFile.text(order, format), isStandard = output == "-"
        guard order.hasNames else {
            throw CommandFailure(
                message: "no function of \(order.module.name) that was called has a symbol: record a build that is not stripped")
        }
        if isStandard {
            var standard = Output()
            try standard.write(text)
            try standard.flush()
        } else {
            try writeFile(text, to: output, replaces: force)
        }
        var report = Output(isStandard ? STDERR_FILENO : STDOUT_FILENO)
        for line in order.lines(names: names.style, style: report.style) { try report.line(line) }
        if !isStandard { try report.line("\n\(output): \(format.usage(output))") }
        try report.flush()
        for complaint in order.complaints { complain(complaint) }
        try finish(traces)
    }
}
