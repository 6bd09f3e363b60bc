import ArgumentParser
import Glibc
import Presentation
import Recorder
import Symbols
import TraceAnalysis
import TraceFormat

struct Startup: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows where the time goes from exec until a program is ready.",
        usage: """
            tracer startup [options] -- PROGRAM [ARGUMENT …]
            tracer startup [options] FILE
            """,
        discussion: """
            Runs the program under the agent, or reads a trace, and shows the stages of its start, every constructor, \
            lazy initializer and dlopen before it was ready, and what to look at first. The program keeps its input, \
            output and exit status; the table goes to standard error when it has ended. Its first line is the program's own time, \
            which the stages add up to; the tracer's own time is a line of its own.

            The program is ready at the first of these that applies: a call of the function that --ready names; the program's mark \
            "ready" (tracer.h); sd_notify with READY=1; the first call of listen or accept; the first frame that EGL, \
            GLX, Vulkan, X11 or Wayland show; the first output to standard output or a terminal; the return of main. All but the last two also count in a process that the program has \
            started: a server that forks, a launcher.

            EXAMPLES
              tracer startup -- python3 -c 'import json'
              tracer startup --ready listen --stop-at-ready -- nginx -g 'daemon off;'
              tracer startup app.trace --json
            """)

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Trace file to write; %p is the pid, %e the program. \(Variables.output.name), default \(OutputTemplate.standard).",
            valueName: "file"))
    var output: String?
    @Option(help: ArgumentHelp("The program is ready at the first call of this function.", valueName: "symbol"))
    var ready: String?
    @Flag(help: "End the program when it is ready: SIGTERM, and SIGKILL two seconds later.")
    var stopAtReady = false
    @Flag(help: "Also time how the loader finds, maps and relocates each library (LD_AUDIT); that makes it slower.")
    var loader = false
    @Flag(help: "Show the start-up items instead (TRACER_STARTUP_ITEM of tracer.h): thread, time, what each waited for.")
    var items = false
    @Option(help: "Rows of each list; 0 for none.")
    var top = 10
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var choice: ProcessChoice
    @Argument(help: "A trace, or the directory of a run.", completion: .file(extensions: ["trace"]))
    var file: String?
    @Argument(parsing: .postTerminator, help: ArgumentHelp("After --: the program and its arguments.", valueName: "program"))
    var command: [String] = []

    func validate() throws {
        if top < 0 { throw ValidationError("--top takes 0 (none) or a number of rows") }
        if let ready, ready.isEmpty { throw ValidationError("--ready takes the name of a function") }
        if file == nil, command.isEmpty {
            throw ValidationError("startup needs a trace, or a program after --: tracer startup -- PROGRAM [ARGUMENT …]")
        }
        if let file, command.isEmpty, Tracer.isProgram(file) {
            throw ValidationError("\(file) is a program, not a trace: tracer startup -- \(file)")
        }
        if let file, !command.isEmpty {
            throw ValidationError("startup takes a trace or a program, not both: \(file) is before --")
        }
        if !command.isEmpty, choice.process != nil {
            throw ValidationError("--process needs a trace or the directory of a run: tracer startup [options] FILE")
        }
        if file != nil, stopAtReady || loader || output != nil {
            throw ValidationError(
                "\(stopAtReady ? "--stop-at-ready" : loader ? "--loader" : "--output") needs a program to run: tracer startup [options] -- PROGRAM [ARGUMENT …]"
            )
        }
    }

    func run() throws {
        guard let file else { return try runProgram() }
        let (trace, run) = try openProcessInRun(file, choice)
        let first = run.first { $0.header.pid == trace.header.pid && $0.path != trace.path && $0.firstTicks < trace.firstTicks }
        try show(trace, trace.startedProcesses(in: run), in: Output(), after: first)
        try finish(trace)
    }

    /// The finished run, and what the loader audit wrote.
    private func record() throws -> (RecordingResult, audit: LoaderNotes?) {
        var options = RecordOptions()
        options.output = output
        options.set(Variables.ready, ready)
        options.set(Variables.children, true) // one of them may be what becomes ready
        options.set(Variables.arguments, ArgumentPlans.ofFiles)
        options.gathersProcesses = true
        options.replaces = true
        return try orFail {
            var run = try RecordingRun(command: rawArguments(last: command.count), options: options)
            let audit = loader ? try run.auditLoader() : nil
            if stopAtReady { run.stopCondition = { [ready] in TraceFile.isReady(path: $0, symbol: ready, isProgram: $1) } }
            return (try run.run(), audit)
        }
    }

    private func runProgram() throws {
        let (result, audit) = try record()
        guard let main = result.files.last(where: \.isRoot) ?? result.files.first else {
            complain("no trace was written: the agent was not loaded, or could not write it (see its message above)")
            throw ExitCode(result.status)
        }
        if let audit, !audit.move(to: main.path + LoaderAudit.suffix) {
            complain("the loader audit wrote nothing: LD_AUDIT was ignored, or its file could not be written")
        }
        do {
            // The processes of a run share one rate of the clock.
            let path = result.path ?? main.path, run = try orFail { try openRun([path]).open() }
            let trace = try run.first { $0.path == main.path } ?? openTrace(main.path)
            let first = run.first { $0.header.pid == trace.header.pid && $0.path != trace.path }
            try show(
                trace, trace.startedProcesses(in: run), in: Output(STDERR_FILENO), after: first,
                status: result.wasStopped ? nil : result.status)
            for warning in trace.warnings { complain("\(trace.path): \(warning)") }
            let what = result.files.count > 1 ? "the traces of \(counted(result.files.count, "process", "processes"))" : "the trace"
            complain("\(path): \(what), for tracer startup, report, replay")
        } catch let failure as CommandFailure {
            complain(failure.message)
        } catch is ExitCode {} // nobody reads the table; the program's status is what counts
        // Ended by us, on request: that is no failure of the program.
        throw ExitCode(result.wasStopped ? 0 : result.status)
    }

    /// - Parameters:
    ///   - processes: those that it has started
    ///   - first: the program that became this one by exec
    ///   - status: how it ended
    private func show(
        _ trace: TraceFile, _ processes: [TraceFile], in output: Output, after first: TraceFile? = nil, status: Int32? = nil
    ) throws {
        let symbolizer = Symbolizer()
        var timeline = try orFail {
            try StartupTimeline(
                trace, symbolizer: symbolizer,
                options: .init(
                    readySymbol: ready, loader: LoaderAudit(of: trace), earlier: first.flatMap { StartupTimeline.EarlierProgram($0) },
                    processes: processes, exitStatus: status))
        }
        timeline.addStates(trace)
        timeline.addFiles(trace)
        timeline.addPlaces(trace, symbolizer)
        try output.show(timeline, json: json) {
            try $0.write(items ? timeline.itemTable(style: $0.style) : timeline.table(top: top, width: $0.width, style: $0.style))
        }
    }
}
