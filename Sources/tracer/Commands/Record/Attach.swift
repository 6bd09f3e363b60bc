import ArgumentParser
import Glibc
import Presentation
import Recorder
import TraceFormat

struct Attach: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Records the calls of a process that is already running.",
        discussion: """
            The process goes on, during and after: Ctrl-C, or the end of --for, takes back what was changed in it. Recorded are calls \
            between the program and its libraries, and between libraries; with --functions also calls within a module. No thread that \
            waits in a system call is interrupted where that could be noticed, and only one is stopped, for about as long as a dlopen takes.

            You must be allowed to trace the process: it is yours, and kernel.yama.ptrace_scope is 0; or you are root.

            EXAMPLES
              tracer attach 4711 --for 10s           # ten seconds of it
              tracer attach $(pgrep -o nginx)        # until Ctrl-C
              tracer attach 4711 --for 5s --functions '*'   # its own functions, too
              tracer attach 4711 --for 5s --arguments 'open*,connect'   # and values
              tracer attach 4711 --mode ring --max-size 64M   # until Ctrl-C; keeps the end
            """)

    @Argument(help: ArgumentHelp("The id of the process.", valueName: "pid"))
    var pid: Int32
    @Option(name: .customLong("for"), help: ArgumentHelp("Record for so long: 10s, 500ms. Default: until Ctrl-C.", valueName: "time"))
    var length: TimeLength?
    @Option(name: .shortAndLong, help: ArgumentHelp("Trace file; default tracer.PROGRAM.PID.trace.", valueName: "file"))
    var output: String?
    @Flag(help: "Overwrite an existing run with the name of --output.")
    var force = false
    @OptionGroup
    var calls: CallOptions
    @Option(help: .setting(Variables.functions))
    var functions: [String] = []
    @Option(help: .setting(Variables.minimumSize))
    var minSize: String?
    @OptionGroup
    var values: ArgumentOptions
    @Flag(help: "Record the arguments of calls that use files, for tracer files.")
    var files = false
    @Option(help: ArgumentHelp("full keeps everything, ring keeps the end. TRACER_MODE.", valueName: "full|ring"))
    var mode: String?
    @OptionGroup
    var kept: KeepOptions
    @Flag(
        inversion: .prefixedNo,
        help: "Also record the kernel's context switches and page reads from disk; on by default with up to 32 CPUs.")
    var states: Bool?
    @Flag(help: "Say nothing of what was recorded.")
    var quiet = false

    /// The argument plan, and functions of the program that have conditions; nil: there is none. Nobody is given one unasked, as in `record`:
    /// values of a process that is attached to are for the slow path.
    private func argumentPlan() throws -> ArgumentPlans.Plan? {
        let conditions = try kept.conditions()
        if conditions.isEmpty { try values.check(mayHide: files) }
        guard !values.arguments.isEmpty || !conditions.isEmpty || files else { return nil }
        _ = try orFail { try AttachTarget(pid: pid) } // its refusal says more than a plan that cannot be made
        return try ArgumentPlans(
            lists: values.arguments, prototypes: values.prototypes, hidden: values.hide, conditions: conditions,
            purpose: kept.keep == nil ? .keep : .trigger, files: files ? .all : .none, mayKeep: nil, program: .process(pid), isQuiet: quiet
        ).make()
    }

    func run() throws {
        if let length, length.nanoseconds.count == 0 { throw CommandFailure("--for takes a time above 0, such as 10s", status: 2) }
        if mode == "counts" {
            throw CommandFailure("--mode counts counts functions by their entries: start the program with tracer record", status: 2)
        }
        var options = RecordOptions()
        options.output = output
        options.replaces = force
        calls.set(in: &options)
        options.signals = try kept.signals()
        options.states = states
        options.set(Variables.minimumSize, minSize)
        options.set(Variables.mode, mode)
        _ = try kept.plan(mode: mode) // says what is wrong before modules are read
        let plan = try argumentPlan()
        if let snapshots = try kept.plan(mode: mode, meant: plan?.meant ?? [:]) { options.set(snapshots) }
        options.set(Variables.arguments, plan?.path)
        let functions = functions + KeepOptions.functions(try kept.patterns(and: plan?.functions ?? []), inProgram: "/proc/\(pid)/exe")
        options.set(Variables.functions, functions)
        options.set(Variables.quiet, true) // the process's stderr is not the user's
        let result: AttachedRun.Result = try orFail {
            var run = try AttachedRun(pid: pid, options: options, for: length?.nanoseconds.count)
            if !functions.isEmpty { FunctionPlans(patterns: functions, mayKeep: nil).prepare(for: pid) }
            if !quiet {
                let isEndless = length == nil
                run.tell = { complain($0) }
                run.whenBegun = { complain("recording \($0.name) (\($0.pid))\(isEndless ? "; Ctrl-C ends it" : "")") }
            }
            return try run.run()
        }
        if !quiet {
            switch result.end {
            case .detached: break
            case .programEnded: complain("process \(pid) has ended")
            case .programReplaced: complain("process \(pid) has executed another program, in which nothing is recorded")
            case .left: break
            }
            RecordSummary(result.recording).print()
            if result.leavesCode {
                complain(
                    "note: the code of some functions could not be put back, and they still lead through the agent: tracer attach \(pid) --for 1s, later, tries again"
                )
            }
            complain(
                "to attach and to let go, a thread stood still \(counted(result.stops.count, "time")), at most \(readable(Nanoseconds(result.stops.longest)))"
            )
        }
        if case .left(let reason) = result.end {
            throw CommandFailure("\(reason). It is still being recorded: tracer attach \(pid) --for 1s, later, ends that", status: 1)
        }
    }
}
