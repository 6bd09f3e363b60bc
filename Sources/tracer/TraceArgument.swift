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
    func open() throws -> [TraceFile] { try openTraces(files) }
}

func openTraces(_ paths: [String]) throws -> [TraceFile] {
    guard !paths.isEmpty else { return [try openTrace(try newestTrace())] }
    var traces: [TraceFile] = []
    for path in paths {
        if isDirectory(path) { traces += try newestRun(in: path) } else { traces.append(try openTrace(path)) }
    }
    return traces.sorted { ($0.header.first_realtime_ns, $0.path) < ($1.header.first_realtime_ns, $1.path) }
}

func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
}

/// Files that cannot be read are left out with a word.
func readableTraces(in directory: String) throws -> [TraceFile] {
    var traces: [TraceFile] = []
    for name in try traceNames(in: directory).sorted() {
        do {
            traces.append(try TraceFile(path: directory.hasSuffix("/") ? directory + name : directory + "/" + name))
        } catch let error as TraceError {
            complain("\(error.description); left out")
        }
    }
    if traces.isEmpty {
        throw CommandFailure(message: "no trace that can be read in \(directory): name a file, or record one with `tracer record -- PROGRAM`")
    }
    return traces
}

/// Of several runs the one that began last.
private func newestRun(in directory: String) throws -> [TraceFile] {
    let traces = try readableTraces(in: directory)
    let newest = traces.max { $0.header.first_realtime_ns < $1.header.first_realtime_ns }!
    // Without `tracer record` nothing says what belongs together.
    let run = traces.filter { $0.header.session == newest.header.session }
    if run.count < traces.count {
        complain("\(counted(UInt64(traces.count - run.count), "trace")) of other runs in \(directory) left out: name files to see them together")
    }
    return run
}
