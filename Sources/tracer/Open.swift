// tracer open: the Perfetto export where ui.perfetto.dev can fetch it.
import ArgumentParser
@preconcurrency import Glibc
import TraceAnalysis

struct Open: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves traces to the Perfetto viewer in your browser.",
        discussion: """
            Prints an address of ui.perfetto.dev to open in a browser on this machine. The viewer fetches the trace from \
            here; it stays on this machine. Ctrl-C ends.

              tracer open app.trace
            """)

    @Argument(help: "The traces.", completion: .file(extensions: ["trace"]))
    var files: [String]

    // The only port of this machine that the viewer's content security policy lets it fetch from.
    @Option(help: "0 for any that is free. The viewer at ui.perfetto.dev fetches from 9001 only; others are for one of your own.")
    var port: UInt16 = 9001

    func validate() throws {
        if files.isEmpty { throw ValidationError("name a trace") }
    }

    func run() throws {
        let traces = try files.map { try openTrace($0) }
        let name = ExportCommand.defaultName(files[0], .perfetto).filter { $0.isASCII && ($0.isLetter || $0.isNumber || ".-_".contains($0)) }
        let server = try LocalServer(port: port) // before the work: the port may be taken
        let file = try TemporaryExport()
        try Export(traces).write(.perfetto) { try file.write($0) }
        for trace in traces { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
        handle([SIGINT, SIGTERM]) { _ in _exit(0) }
        var output = Output()
        try output.line("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:\(server.port)/\(name)")
        try output.flush()
        complain("serving \(readable(byteCount: file.byteCount)) until Ctrl-C")
        server.serve(file.descriptor, byteCount: file.byteCount, at: "/" + name)
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
            throw CommandFailure(message: "cannot write in \(directory): \(String(cString: strerror(errno))); TMPDIR names another directory")
        }
        unlink(template)
    }

    deinit { close(descriptor) }

    func write(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let written = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else {
                throw CommandFailure(message: "cannot write the temporary export: \(String(cString: strerror(errno))); TMPDIR names another directory")
            }
            done += written
        }
        byteCount += UInt64(bytes.count)
    }
}
