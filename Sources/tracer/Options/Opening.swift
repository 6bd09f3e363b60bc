// Finding and opening the traces that a command is about.
import ArgumentParser
import ELF
import Glibc
import Presentation
import Symbols
import TraceAnalysis

/// Opens a trace; one that cannot be read at all ends the command with one line and status 1.
func openTrace(_ path: String) throws -> TraceFile { try orFail { try TraceFile(path: path) } }

/// Opens what the paths name together; without any, the newest trace or run of the current directory.
func openRun(_ paths: [String]) throws -> TraceRun {
    if paths.isEmpty { return try openRun([try newestTrace()]) }
    if paths.count == 1, isDirectory(existing(paths[0])) {
        do {
            return try newestRun(in: existing(paths[0]))
        } catch {
            // It has become a file while we looked.
            guard !isDirectory(existing(paths[0])) else { throw error }
        }
    }
    var files: [String] = []
    for path in paths.map({ existing($0) }) {
        if isDirectory(path) { files += try newestRun(in: path).files.map { $0.path } } else { files.append(path) }
    }
    let run = TraceRun(path: paths[0], files: files)
    // One that was named is not skipped.
    if let problem = run.unreadable.first { throw CommandFailure(problem) }
    return run
}

func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
}

/// A run that was one process is a directory while it is recorded, and then NAME.trace.
private func existing(_ path: String) -> String {
    let name = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    var status = stat()
    if stat(name + ".trace", &status) == 0, stat(path, &status) != 0 || isDirectory(path) && ((try? traceNames(in: path)) ?? []).isEmpty {
        return name + ".trace"
    }
    return path
}

// MARK: - Directories

func directoryNames(_ directory: String) throws -> [String] {
    guard let names = entryNames(in: directory) else {
        throw CommandFailure("cannot read \(directory == "." ? "the current directory" : directory): \(String(cString: strerror(errno)))")
    }
    return names.sorted()
}

private func path(_ name: String, in directory: String) -> String {
    directory == "." ? name : directory.hasSuffix("/") ? directory + name : directory + "/" + name
}

/// Names of the regular files *.trace in a directory.
func traceNames(in directory: String) throws -> [String] {
    try directoryNames(directory).filter { name in
        var status = stat()
        return name.hasSuffix(".trace") && stat(path(name, in: directory), &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }
}

/// Names of the directories that `tracer record` may have made: tracer.NAME.PID, or as the user called a run, NAME.trace.
func runNames(in directory: String) throws -> [String] {
    try directoryNames(directory).filter { ($0.hasPrefix("tracer.") || $0.hasSuffix(".trace")) && isDirectory(path($0, in: directory)) }
}

/// All runs of a directory, in the order in which they began: the directories in it, and its files by what they say they belong to. What
/// cannot be read is skipped with a message.
func runs(in directory: String) throws -> [TraceRun] {
    var runs: [TraceRun] = []
    let own = TraceRun(path: directory, files: try traceNames(in: directory).map { path($0, in: directory) })
    for problem in own.unreadable { complain("\(problem); skipped") }
    var sessions: [UInt64] = []
    for file in own.files where !sessions.contains(file.header.session) {
        sessions.append(file.header.session)
        runs.append(own.only { $0.header.session == file.header.session })
    }
    for name in try runNames(in: directory) {
        let runPath = path(name, in: directory)
        let run = TraceRun(path: runPath, files: try traceNames(in: runPath).map { path($0, in: runPath) })
        for problem in run.unreadable { complain("\(problem); skipped") }
        if !run.files.isEmpty { runs.append(run) }
    }
    return runs.sorted { ($0.startedAt, $0.path) < ($1.startedAt, $1.path) }
}

/// Opens the run of the directory that began last, and says how many traces of others are skipped.
private func newestRun(in directory: String) throws -> TraceRun {
    let runs = try runs(in: directory)
    guard let newest = runs.last else {
        throw CommandFailure("no readable trace in \(directory): name a file, or record one with `tracer record -- PROGRAM`")
    }
    let others = runs.dropLast().reduce(0) { $0 + $1.files.count }
    if others > 0 { complain("skipped \(counted(others, "trace")) of other runs in \(directory): name files to see them together") }
    return newest
}

/// The newest *.trace, or directory of a run, of the current directory.
func newestTrace() throws -> String {
    var candidates = try traceNames(in: ".").map { (file: $0, name: $0) }
    for name in try runNames(in: ".") { candidates += ((try? traceNames(in: name)) ?? []).map { (file: name + "/" + $0, name: name) } }
    let dated = candidates.compactMap { file, name -> (Int, Int, String)? in
        var status = stat()
        return stat(file, &status) == 0 ? (status.st_mtim.tv_sec, status.st_mtim.tv_nsec, name) : nil
    }
    guard let newest = dated.max(by: { $0 < $1 })?.2 else {
        throw CommandFailure("no *.trace in this directory: name a file, or record one with `tracer record -- PROGRAM`")
    }
    complain("reading \(newest)")
    return newest
}

/// Says what the traces do not have of what their programs did, for output that has no place for it.
func reportLosses(_ traces: [TraceFile]) {
    sayNameless()
    for trace in traces where !trace.losses.isEmpty { complain("\(trace.path): \(trace.losses.joined(separator: ", "))") }
}

/// Says what the trace of an interpreter does not show. On stderr, since it is no part of the answer.
func sayInterpreter(_ traces: [TraceFile]) {
    if let hint = traces.lazy.compactMap({ $0.interpreterHint }).first { complain(hint) }
}

/// Functions that go by their addresses, since what has their names is not on this machine, and files that were not asked for theirs.
func sayNameless() {
    // Plans of modules with a build-id are found for ever, and have all names there are.
    var changed = ChangedFiles.shared.modules.filter { $0.buildID.isEmpty }
    for (module, count) in RecordedNames.shared.missing {
        let identity = module.buildID.isEmpty ? "" : " (build-id \(hexadecimal(module.buildID)))"
        let functions = "\(counted(count, "function")) of \(basename(module.path)) are shown by address"
        if changed.remove(module) != nil {
            complain("\(functions): \(module.path) was written again after it was traced, and the plan of the traced one was not found")
        } else {
            complain("\(functions): neither \(module.path)\(identity) nor its plan was found")
        }
    }
    for module in changed.sorted(by: { $0.path < $1.path }) {
        complain("\(module.path) is not the file that was traced any more: names and lines that the trace lacks are not shown")
    }
}

/// After the good part was shown: says on stderr what is missing and ends with status 1 if anything is.
/// - Parameter ofCalls: it was of calls, which a trace of counts alone has none of
func finish(_ trace: TraceFile, ofCalls: Bool = true) throws { try finish([trace], ofCalls: ofCalls) }

func finish(_ traces: [TraceFile], ofCalls: Bool = true) throws {
    sayNameless()
    if ofCalls, let counts = traces.first(where: \.hasCountsAlone) {
        complain(
            "\(counts.path) has only which functions were called, not their calls (--mode counts): use tracer coverage \(shellWord(counts.path))"
        )
    }
    for trace in traces { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
    if traces.contains(where: { !$0.warnings.isEmpty }) { throw ExitCode(1) }
}

func finish(_ run: RunSummary, ofCalls: Bool = true) throws {
    if let only = run.only { return try finish(only, ofCalls: ofCalls) }
    sayNameless()
    for warning in run.warnings { complain(warning) }
    if !run.warnings.isEmpty { throw ExitCode(1) }
}
