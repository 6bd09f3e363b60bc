// Finding and opening the trace that a command is about.
import Glibc
import TraceAnalysis

/// Opens a trace; one that cannot be read at all ends the command with one line and status 1.
func openTrace(_ path: String) throws -> TraceFile {
    do {
        return try TraceFile(path: path)
    } catch let error as TraceError {
        throw CommandFailure(message: error.description)
    }
}

/// Names of the regular files *.trace in a directory.
func traceNames(in directory: String) throws -> [String] {
    guard let listing = opendir(directory) else {
        throw CommandFailure(message: "cannot read \(directory == "." ? "the current directory" : directory): \(String(cString: strerror(errno)))")
    }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        var status = stat()
        if name.hasSuffix(".trace"), fstatat(dirfd(listing), name, &status, 0) == 0, status.st_mode & S_IFMT == S_IFREG {
            names.append(name)
        }
    }
    return names
}

/// The newest *.trace of the current directory.
func newestTrace() throws -> String {
    var newest: (name: String, seconds: Int, nanoseconds: Int)?
    for name in try traceNames(in: ".") {
        var status = stat()
        guard stat(name, &status) == 0 else { continue }
        let time = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        if let known = newest, (known.seconds, known.nanoseconds, known.name) > (time.0, time.1, name) { continue }
        newest = (name, time.0, time.1)
    }
    guard let newest else {
        throw CommandFailure(message: "no *.trace in this directory: name a file, or record one with `tracer record -- PROGRAM`")
    }
    complain("reading \(newest.name)")
    return newest.name
}

/// After the good part was shown: says on stderr what is missing and ends with status 1 if anything is.
func finish(_ trace: TraceFile) throws { try finish([trace]) }

func finish(_ traces: [TraceFile]) throws {
    for trace in traces { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
    if traces.contains(where: { !$0.warnings.isEmpty }) { throw CommandFailure(message: "") }
}
