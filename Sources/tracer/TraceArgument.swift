// FILE, as commands take it.
import ArgumentParser
import Glibc
import TraceAnalysis

/// One trace; the newest of the directory when none is named.
struct TraceArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("The trace. Default: the newest *.trace in this directory.", valueName: "file"),
              completion: .file(extensions: ["trace"]))
    var file: String?

    func open() throws -> TraceFile { try openTrace(try file ?? newestTrace()) }
}

/// Traces that are to be seen together.
struct TraceArguments: ParsableArguments {
    @Argument(help: ArgumentHelp("Traces, or a directory: all of the newest run in it. Default: the newest *.trace in this directory.", valueName: "file"),
              completion: .file(extensions: ["trace"]))
    var files: [String] = []

    /// In the order in which they were begun.
    func open() throws -> [TraceFile] {
        guard !files.isEmpty else { return [try openTrace(try newestTrace())] }
        var traces: [TraceFile] = []
        for file in files {
            if isDirectory(file) {
                traces += try newestRun(in: file)
            } else {
                traces.append(try openTrace(file))
            }
        }
        return traces.sorted { ($0.header.first_realtime_ns, $0.path) < ($1.header.first_realtime_ns, $1.path) }
    }

    private func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Of several runs the one that began last; files that cannot be read are left out with a word.
    private func newestRun(in directory: String) throws -> [TraceFile] {
        var traces: [TraceFile] = []
        let names = try traceNames(in: directory)
        for name in names.sorted() {
            do {
                traces.append(try TraceFile(path: directory.hasSuffix("/") ? directory + name : directory + "/" + name))
            } catch let error as TraceError {
                complain("\(error.description); left out")
            }
        }
        guard let newest = traces.max(by: { $0.header.first_realtime_ns < $1.header.first_realtime_ns }) else {
            throw CommandFailure(message: "no trace that can be read in \(directory): name a file, or record one with `tracer record -- PROGRAM`")
        }
        // Without `tracer record` nothing says what belongs together.
        let run = traces.filter { $0.header.session == newest.header.session }
        if run.count < traces.count {
            let others = traces.count - run.count
            complain("\(others) trace\(others == 1 ? "" : "s") of other runs in \(directory) left out: name files to see them together")
        }
        return run
    }
}
