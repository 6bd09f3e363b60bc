import ArgumentParser
@preconcurrency import Glibc
import Presentation
import TraceAnalysis

struct Open: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves traces to the Perfetto viewer in your browser.",
        discussion: """
            Prints an address of ui.perfetto.dev to open in a browser on this machine. The viewer fetches the trace from \
            here; it stays on this machine. Ctrl-C ends.

            EXAMPLES
              tracer open app.trace
            """)

    @OptionGroup var traces: TraceArguments

    // The only port of this machine that the viewer's content security policy lets it fetch from.
    @Option(help: "Port; 0 is any free one. The viewer at ui.perfetto.dev fetches from 9001 only; other ports are for your own viewer.")
    var port: UInt16 = 9001

    func run() throws {
        let traces = try traces.open()
        let name = ExportCommand.defaultName(self.traces.name(traces), .perfetto).filter {
            $0.isASCII && ($0.isLetter || $0.isNumber || ".-_".contains($0))
        }
        let server = try LocalServer(port: port) // before the work: the port may be taken
        let path = LocalServer.secretPath() + name
        let file = try TemporaryExport()
        try Export(traces).write(.perfetto) { try file.write($0) }
        reportLosses(traces)
        for trace in traces { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
        onEndingSignals([SIGINT, SIGTERM]) { _ in _exit(0) }
        try Output.write("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:\(server.port)\(path)\n")
        complain("serving \(readable(byteCount: file.byteCount)) until Ctrl-C")
        server.serve(file.descriptor, byteCount: file.byteCount, at: path)
    }
}

/// A file without a name: nothing remains of it, however the tool ends.
final class TemporaryExport {
    let descriptor: Int32
    private(set) var byteCount: UInt64 = 0

    init() throws {
        let directory = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(directory)/tracer-XXXXXX".utf8CString)
        descriptor = mkstemp(&template)
        guard descriptor >= 0 else {
            throw CommandFailure("cannot write in \(directory): \(String(cString: strerror(errno))); set TMPDIR to another directory")
        }
        unlink(template)
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) throws {
        let error = writeAll(bytes, to: descriptor)
        if error != 0 {
            throw CommandFailure("cannot write the temporary export: \(systemReason(error)); set TMPDIR to another directory")
        }
        byteCount += UInt64(bytes.count)
    }
}
