// FILE, as commands take it: a trace, a run, or a directory of them.
import ArgumentParser
import Glibc
import Presentation
import TraceAnalysis

/// Option that chooses processes of a run.
struct ProcessChoice: ParsableArguments {
    @Option(help: ArgumentHelp("Only these processes of a run: a process id, or a glob for the program's name.", valueName: "pid|glob"))
    var process: String?

    private var isWanted: (@Sendable (TraceFile) -> Bool)? {
        guard let process else { return nil }
        return { trace in String(trace.header.pid) == process || Self.names(trace).contains { fnmatch(process, $0, 0) == 0 } }
    }

    /// A program that a symbolic link led to goes by both names, and a process by what it calls itself, too.
    private static func names(_ trace: TraceFile) -> [String] {
        [basename(trace.program)] + trace.arguments.prefix(1).map { basename($0) } + [trace.processName]
    }

    /// The traces that are wanted.
    func open(_ run: TraceRun) throws -> [TraceFile] {
        let traces = try orFail { try run.open() }
        return try choose(from: traces, in: run.path)
    }

    /// - Parameter path: what they are called together
    func choose(from traces: [TraceFile], in path: String) throws -> [TraceFile] {
        guard let isWanted else { return traces }
        let chosen = traces.filter(isWanted)
        if chosen.isEmpty { throw noProcess(in: path, of: traces) }
        return chosen
    }

    /// Sums up what the chosen processes did.
    func summary(_ run: TraceRun, asRun: Bool = false, names: Bool, states: StateReading = .nothing) throws -> RunSummary {
        let summary = withProgress(basename(run.path)) { progress in
            if let isWanted { return RunSummary(run, asRun: asRun, names: names, states: states, progress: progress, isWanted) }
            return RunSummary(run, asRun: asRun, names: names, states: states, progress: progress)
        }
        if process != nil, summary.processes.isEmpty { throw noProcess(in: run.path, of: (try? run.open()) ?? []) }
        return summary
    }

    private func noProcess(in path: String, of traces: [TraceFile]) -> CommandFailure {
        let text = process ?? "", names = Set(traces.flatMap { Self.names($0) })
        let meant = UInt32(text) != nil ? nil : names.filter { !text.isEmpty && $0.contains(text) }.min() ?? names.nearest(to: text)
        let known = meant.map { "; there is \($0)" } ?? ""
        return CommandFailure("no process \"\(text)\" in \(path)\(known): tracer info \(shellWord(path)) lists them")
    }
}

/// One run; the newest of the directory when none is named.
struct RunArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "A trace, or the directory of a run. Default: the newest *.trace or run in this directory.", valueName: "file"),
        completion: .file(extensions: ["trace"]))
    var file: String?
    @OptionGroup var choice: ProcessChoice

    func open() throws -> TraceRun { try openRun(file.map { [$0] } ?? []) }
}

/// One process; for a run, by default, the program that was started.
struct TraceArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The trace; for a run, that of the program itself. Default: the newest *.trace or run in this directory.", valueName: "file"),
        completion: .file(extensions: ["trace"]))
    var file: String?
    @OptionGroup var choice: ProcessChoice

    func open() throws -> TraceFile { try openProcess(file, choice) }
}

func openProcess(_ path: String?, _ choice: ProcessChoice) throws -> TraceFile { try openProcessInRun(path, choice).trace }

/// The same, with all traces of its run in the order in which they were begun.
func openProcessInRun(_ path: String?, _ choice: ProcessChoice) throws -> (trace: TraceFile, run: [TraceFile]) {
    let run = try openRun(path.map { [$0] } ?? []), traces = try orFail { try run.open() }
    let chosen = try choice.choose(from: traces, in: run.path)
    // The trace of what the first process became in the end.
    let trace = chosen.last { $0.header.pid == chosen[0].header.pid } ?? chosen[0]
    if chosen.count > 1 {
        complain(
            "\(run.path) has \(counted(chosen.count, "trace")); this is process \(trace.header.pid), \(trace.processName): choose another with --process"
        )
    }
    return (trace, traces)
}

/// Traces that are to be seen together.
struct TraceArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "Traces, or the directory of a run with all of its processes. Default: the newest *.trace or run in this directory.",
            valueName: "file"),
        completion: .file(extensions: ["trace"]))
    var files: [String] = []
    @OptionGroup var choice: ProcessChoice

    /// In the order in which they were begun.
    func open() throws -> [TraceFile] { try choice.open(openRun(files)) }

    /// Returns the name of an output that is made of them.
    func name(_ traces: [TraceFile]) -> String {
        let folders = Set(traces.map { String($0.path.dropLast(basename($0.path).count + 1)) })
        // The directory of a run; not one that files of it merely lie in.
        guard traces.count > 1, files.count <= 1, folders.count == 1, let folder = folders.first,
            !["", ".", ".."].contains(basename(folder))
        else { return traces[0].path }
        return folder
    }
}
