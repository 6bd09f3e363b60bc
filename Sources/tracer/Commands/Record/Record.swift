import ArgumentParser
import Glibc
import Recorder
import TraceFormat

struct Record: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Starts a program under the agent and records its calls.",
        usage: "tracer record [options] [--] PROGRAM [ARGUMENT …]",
        discussion: """
            The program keeps its input, output and exit status (128 + n when signal n ended it). 126 and 127: it \
            could not be traced or started; 2: usage. Each option sets the environment variable named with it; a \
            variable that is already set applies when the option is not given.

            EXAMPLES
              tracer record -- ./app                   # calls between modules
              tracer record --functions '*' -- ./app   # every function of the program, too
              tracer record --functions '*parse*' -- ./app   # some, also of C++
              tracer record --min-ms 1ms --max-depth 20 -- ./app
              tracer record --sample -o app.trace -- ./app --serve
              tracer record --keep 5s --when 'handle_request > 50ms' -- ./server
            """)

    @Option(name: .shortAndLong, help: .setting(Variables.output, default: OutputTemplate.standard))
    var output: String?
    @Flag(help: "Overwrite an existing run with the name of --output.")
    var force = false
    @OptionGroup
    var calls: CallOptions
    @Option(help: .setting(Variables.functions))
    var functions: [String] = []
    @Option(help: .setting(Variables.minimumSize))
    var minSize: String?
    @Flag(help: .setting(Variables.keepsHot))
    var keepHot = false
    @OptionGroup
    var values: ArgumentOptions
    @Flag(
        inversion: .prefixedNo,
        help:
            "Record the arguments of calls that use files, for tracer files: by default those that open, read, write and close, with --files also the paths of stat and the like."
    )
    var files: Bool?
    @Option(help: .setting(Variables.mode))
    var mode: String?
    @OptionGroup
    var kept: KeepOptions
    @Flag(inversion: .prefixedNo, help: .setting(Variables.children))
    var children: Bool?
    @Flag(help: .setting(Variables.keepsAgent))
    var keepAgent = false
    @Flag(inversion: .prefixedNo, help: .setting(Variables.cache))
    var cache: Bool?
    @Flag(
        inversion: .prefixedNo,
        help:
            "Also record the kernel's context switches and page reads from disk; on by default with up to 32 CPUs."
    )
    var states: Bool?
    @Option(
        // Not .scanningForValue, which takes no value of --sample=5000 where another option comes after it.
        name: .long, defaultAsFlag: String(RecordOptions.usualSampleRate), parsing: .next,
        help: ArgumentHelp(
            "Also sample stacks, --sample=HZ times per second of CPU time; \(RecordOptions.usualSampleRate) without a number.",
            valueName: "hz"))
    var sample: String?
    @Flag(help: "Also record page faults whose page was in memory; tracer waits counts them by stage and file.")
    var minorFaults = false
    @Option(help: .setting(Variables.start))
    var start: String?
    @Flag(help: .setting(Variables.quiet))
    var quiet = false
    @Argument(parsing: .captureForPassthrough, help: ArgumentHelp("The program and its arguments.", valueName: "program"))
    var command: [String] = []

    /// The argument plan, and functions of the program that have conditions; nil: there is none.
    private func argumentPlan(for command: [String]) throws -> ArgumentPlans.Plan? {
        let conditions = try kept.conditions()
        if conditions.isEmpty { try values.check(mayHide: files != false) }
        let plans = ArgumentPlans(
            lists: values.arguments, prototypes: values.prototypes, hidden: values.hide,
            conditions: conditions, purpose: kept.keep == nil ? .keep : .trigger,
            files: files.map { $0 ? .all : .none } ?? (recordsFilesByDefault ? .cheap : .none), mayKeep: cache,
            program: .command(command), isQuiet: quiet)
        if !values.arguments.isEmpty || !conditions.isEmpty || files == true { return try plans.make() }
        // Nobody has asked for it: without a cache there is none.
        guard plans.files == .cheap, plans.hasFolder else { return nil }
        do {
            return try plans.make()
        } catch let failure as CommandFailure where failure.status == 2 {
            complain("calls that use files are recorded without their arguments: \(failure.message)") // the user's own prototypes are wrong
        } catch {} // it cannot be written, and nobody has asked for it
        return nil
    }
    /// False where the agent would record these calls by its slow path: it does so only if it is asked to.
    private var recordsFilesByDefault: Bool {
        calls.minMs == nil && !calls.callSites && mode == nil && kept.keep == nil && ArgumentPlans.isFreeByDefault
    }

    func run() throws {
        var command = command, sample = sample
        if let text = sample, Int(text) == nil, !CommandLine.arguments.contains("--sample=\(text)") {
            // Written apart, a number is its value and a program is not: record --sample ./app
            command.insert(text, at: 0)
            guard CommandLine.arguments.suffix(command.count) == command[...] else {
                throw CommandFailure("--sample \(text): write -- before the program if its options are also options of record", status: 2)
            }
            sample = String(RecordOptions.usualSampleRate)
        } else if command.first == "--" {
            command.removeFirst()
        } else if let first = command.first, first == "--help" || first == "-h" {
            throw CleanExit.helpRequest(self) // captured, as everything that is not an option above
        } else if let first = command.first, first.hasPrefix("-") {
            let reason = first == "-p" || first == "--pid" ? "tracer attach PID records a process that already runs; " : ""
            throw CommandFailure("record has no option \(first): \(reason)see tracer record --help", status: 2)
        }
        guard !command.isEmpty else {
            throw CommandFailure("record needs a program: tracer record [options] PROGRAM [ARGUMENT …]", status: 2)
        }
        var options = RecordOptions()
        options.output = output
        options.replaces = force
        calls.set(in: &options)
        options.signals = try kept.signals()
        _ = try kept.plan(mode: mode) // says what is wrong before modules are read
        let plan = try argumentPlan(for: command)
        let snapshots = try kept.plan(mode: mode, meant: plan?.meant ?? [:])
        let patterns = try kept.patterns(and: plan?.functions ?? [])
        let functions = functions + KeepOptions.functions(patterns, of: command[0], arguments: Array(command.dropFirst()))
        options.set(Variables.functions, functions)
        options.set(Variables.minimumSize, minSize)
        if keepHot { options.set(Variables.keepsHot, true) }
        options.set(Variables.arguments, plan?.path)
        options.set(Variables.mode, mode)
        if let snapshots { options.set(snapshots) }
        options.set(Variables.children, children)
        if keepAgent { options.set(Variables.keepsAgent, true) }
        options.set(Variables.cache, cache)
        options.set(Variables.start, start)
        if quiet { options.set(Variables.quiet, true) }
        options.states = states
        for option in [sample.map { _ in "--sample" }, minorFaults ? "--minor-faults" : nil].compactMap({ $0 }) where states == false {
            throw CommandFailure("\(option) needs --states: remove --no-states", status: 2)
        }
        options.minorFaults = minorFaults
        if let sample {
            guard let rate = Int(sample), RecordOptions.sampleRates.contains(rate) else {
                throw CommandFailure(
                    "--sample \(sample): give a number of samples per second, up to \(RecordOptions.sampleRates.upperBound)", status: 2)
            }
            options.samplesPerSecond = rate
        }
        options.gathersProcesses = true
        let result: RecordingResult = try orFail {
            var run = try RecordingRun(command: rawArguments(last: command.count), options: options)
            if !quiet { run.tell = { complain($0) } }
            if !functions.isEmpty {
                RecordingRun.prepare {
                    FunctionPlans(patterns: functions, mayKeep: cache).prepare(for: run.target.path, arguments: Array(command.dropFirst()))
                }
            }
            return try run.run()
        }
        if !quiet { RecordSummary(result).print() }
        throw ExitCode(result.status)
    }
}
