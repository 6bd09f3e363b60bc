import ArgumentParser
import Glibc
import Presentation
import TraceAnalysis

extension ReportOrder: ExpressibleByArgument {}
/// What a row stands for: something that the trace knows of every call, or a value of calls that were recorded with it.
enum RowSubject: ExpressibleByArgument, Equatable {
    case grouping(ReportGrouping)
    case value(CallSubject)

    init?(argument: String) {
        if let grouping = ReportGrouping(rawValue: argument) {
            self = .grouping(grouping)
        } else if argument == "result" || argument == "errno" {
            self = .value(CallSubject(argument))
        } else if argument.hasPrefix("argument:"), argument.count > 9 {
            self = .value(.argument(String(argument.dropFirst(9))))
        } else {
            return nil
        }
    }
    static var allValueStrings: [String] { ReportGrouping.allCases.map(\.rawValue) + ["argument:NAME", "result", "errno"] }
    var defaultValueDescription: String { text }
    var text: String {
        switch self {
        case .grouping(let grouping): grouping.rawValue
        case .value(.argument(let name)): "argument:" + name
        case .value(let subject): subject.name
        }
    }
}

struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows which functions were called, how often and for how long.",
        discussion: """
            total: from entry to exit; for a recursive function, only the outermost call. self: without the recorded calls \
            made from it. share: self, of the time of all threads together. ~recording: the part of self that recording took, \
            where it is above a tenth. (own code): what the program ran while no recorded call was open. A call still running \
            at the end counts up to there. In a time window (--from, --to, --around), total and self are what lies inside it, \
            also of calls that began before; calls are those that begin in it, and average to maximum those that end in it, \
            too. With --by caller, (thread) is code that is not recorded. With --time running or waiting all columns but \
            calls are of that time: of each call only what its thread was on a CPU, or waited. ~ stands before an estimate.

            EXAMPLES
              tracer report app.trace --sort total --top 10
              tracer report app.trace --by module
              tracer report tracer.make.4711 --by process
              tracer report tracer.make.4711 --process 'cc1*'
              tracer report app.trace --thread main
              tracer report app.trace --by caller --filter 'libc.so.6!mem*'
              # values of calls that were recorded with their arguments
              tracer report app.trace --by argument:path --function 'open*'
              tracer report app.trace --where 'size > 1M'
              # the calling lines (needs tracer record --call-sites)
              tracer report app.trace --by site
              # one function: how long its calls took, the slowest, callers, callees
              tracer report app.trace malloc
              tracer report app.trace --lines   # where each function is in its source
              # without the time in which other programs had the CPUs
              tracer report app.trace --time running
              tracer report app.trace --from 1.2 --to 40%
              tracer report app.trace --crash   # what each thread was doing at the end
              # what happened in the slow requests
              tracer report app.trace --around handle_request --min 5ms
            """)

    @OptionGroup var trace: RunArgument

    @Argument(
        help: ArgumentHelp(
            "Only this function, with the distribution of its times, its slowest calls, callers and callees: NAME or MODULE!NAME, or a glob.",
            valueName: "function"))
    var function: String?

    @Option(
        help: ArgumentHelp(
            "One row per function, module, caller and function, call site, thread, process; or per value of an argument, of the result, or of errno (needs tracer record --arguments).",
            valueName: "function|module|caller|site|thread|process|argument:NAME|result|errno"))
    var by = RowSubject.grouping(.function)

    @Option(
        name: [.long, .customLong("function")],
        help: ArgumentHelp("Only matching functions: NAME, MODULE or MODULE!NAME.", valueName: "glob"))
    var filter: String?

    @OptionGroup var conditions: ConditionOption

    @Option(help: "Order of the rows: self, total, calls, avg, min, p50, p99, max or name. Default: self; of values total.")
    var sort: ReportOrder?

    @Option(help: "Number of rows; 0 for all.")
    var top = 30

    @Flag(help: "One JSON object, with all rows.")
    var json = false

    @Flag(help: "The rows as CSV: the columns are those members of a row of --json that are numbers or texts.")
    var csv = false

    @Flag(help: "Instead: the open calls of each thread when the process ended, and its last 100 calls.")
    var crash = false

    @Flag(help: "Also show times without the agent's cost of recording, as measured in the same process.")
    var correct = false

    @Flag(help: "Also file and line of each function, from debug information (DWARF) in its file or in a separate one.")
    var lines = false

    @OptionGroup var time: TimeOption
    @OptionGroup var threads: ThreadOption
    @OptionGroup var window: WindowOptions
    @OptionGroup var shortest: ShortestCall
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if json, csv { throw ValidationError("--json and --csv are two formats: choose one") }
        if crash, csv || function != nil || filter != nil || lines || correct || by != .grouping(.function) || !window.isWhole {
            throw ValidationError("--crash shows the end of threads: it goes with --json, --thread and --process alone")
        }
        if csv, function != nil { throw ValidationError("--csv shows all functions: remove \(function!)") }
        if top < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
        if lines, by != .grouping(.function), by != .grouping(.caller) {
            throw ValidationError("--lines applies to functions, not to --by \(by.text)")
        }
        if correct, by == .grouping(.site) || ofValue != nil {
            throw ValidationError("--correct applies to functions, not to --by \(by.text)")
        }
        try time.checkCorrect(correct)
        if !conditions.conditions.isEmpty, ofValue == nil {
            if by != .grouping(.function) {
                throw ValidationError("--where chooses calls of functions, or of values: remove --by \(by.text)")
            }
            if correct { throw ValidationError("--correct applies to all calls of a function: remove it, or remove --where") }
        }
        if ofValue != nil || !conditions.conditions.isEmpty {
            if time.time != .wall {
                throw ValidationError("--time \(time.time.rawValue) applies to all calls of functions, not to --where or --by \(by.text)")
            }
            if ofValue != nil, sort == .median || sort == .percentile99 {
                throw ValidationError("--sort \(sort!.rawValue) applies to functions, not to --by \(by.text)")
            }
        }
        if by == .grouping(.process), filter != nil {
            throw ValidationError("--filter chooses functions; processes are chosen by --process")
        }
    }

    private var ofValue: CallSubject? { if case .value(let subject) = by { subject } else { nil } }

    func run() throws {
        // `report FUNCTION` is of the newest trace.
        if function == nil, let word = trace.file, !word.contains("/"), !word.hasSuffix(".trace"), access(word, F_OK) != 0,
            access(word + ".trace", F_OK) != 0 // a run that has become a file
        {
            return try report(word, of: openRun([]))
        }
        let run = try trace.open()
        if crash { return try reportEnd(of: run) }
        if let function { return try report(function, of: run) }
        switch by {
        case .grouping(let by): try report(run, by)
        case .value(let subject): try report(run, valuesOf: subject, filter)
        }
    }

    /// What threads were doing at the end.
    private func reportEnd(of run: TraceRun) throws {
        let traces = try threads.narrow(trace.choice.open(run))
        guard let first = traces.first else { throw CommandFailure("no trace in \(run.path)") }
        if traces.count > 1 {
            throw CommandFailure("--crash is of one process: add --process PID; tracer info \(shellWord(run.path)) lists them", status: 2)
        }
        let table = FunctionNames(first.metadata), calls = try LastCalls(first, table, DescriptorNames(first, table)),
            whole = RunSummary(traces, path: first.path, window: nil, names: false)
        try display.output().show(calls, json: json) { output in
            try output.line(output.style.bold(whole.headline))
            try calls.write(names: names.style, output.style) { try output.line($0) }
        }
        try finish(traces)
    }

    /// The calls of some functions by a value.
    private func report(_ run: TraceRun, valuesOf subject: CallSubject, _ functions: String?) throws {
        let (narrowed, window) = try window.narrowRun(trace.choice.open(run), least: shortest.least)
        let traces = try threads.narrow(narrowed)
        try conditions.check(traces)
        let report = withProgress(basename(run.path)) {
            ValueReport(traces, by: subject, of: functions.map { FunctionPattern($0) }, where: conditions.conditions, progress: $0)
        }
        if report.isEmpty { throw nothing(of: subject, functions, in: traces) }
        let whole = RunSummary(traces, path: run.path, window: window, names: false)
        let output = ValueOutput(whole, report, by: sort ?? .total)
        try display.output().show(output, json: json, csv: csv ? "values" : nil) { to in
            try to.lines(output.lines(top: top, width: names.style == .full ? nil : to.width, style: to.style))
        }
        try finish(traces)
    }

    private func nothing(of subject: CallSubject, _ functions: String?, in traces: [TraceFile]) -> CommandFailure {
        let prototypes = traces.flatMap(\.metadata.recordedPrototypes), path = traces.count == 1 ? traces[0].path : trace.file ?? "the run"
        let pattern = functions.map { FunctionPattern($0) }, function = functions.map { " of \($0)" } ?? ""
        let meant = prototypes.filter { $0.isMeant(by: pattern) }
        if meant.contains(where: { $0.has(subject) }) {
            return CommandFailure(
                "no call\(function) with \(subject.meaning) is among those that are asked for, by their conditions, threads or time")
        }
        let known = RecordedPrototype.known(meant.isEmpty ? prototypes : meant)
        return CommandFailure("no call\(function) in \(path) is recorded with \(subject.meaning)\(known)")
    }

    /// All of one function, in all processes.
    private func report(_ function: String, of run: TraceRun) throws {
        if let subject = ofValue, filter == nil { return try report(run, valuesOf: subject, function) }
        if !conditions.conditions.isEmpty {
            throw CommandFailure("--where shows a row a function: write --function \(shellWord(function)) for \(function)", status: 2)
        }
        if by != .grouping(.function) || filter != nil || correct {
            throw CommandFailure("--by, --filter and --correct apply to all functions: remove them, or remove \(function)", status: 2)
        }
        let (narrowed, window) = try window.narrowRun(trace.choice.open(run), least: shortest.least)
        let traces = try threads.narrow(narrowed)
        let path = traces.count == 1 ? traces[0].path : run.path
        try time.check(traces)
        let report = withProgress(basename(path)) { FunctionReport(traces, FunctionPattern(function), time: time.time, progress: $0) }
        guard let report else {
            let known = traces.lazy.compactMap { FunctionNames($0.metadata).nearest(to: function) }.first.map { "; there is \($0)" } ?? ""
            throw CommandFailure(
                "no call of \(function)\(threads.text) in \(path)\(known): a glob such as '*\(function)*' matches parts of names")
        }
        let locations = FunctionLocations(traces, lines: lines)
        try display.output().show(FunctionOutput(report, window, locations), json: json) { output in
            let title = RunSummary(traces, path: path, window: window, names: false).headline
            try report.lines(
                title: title, least: 0.01, width: output.width, names: names.style, locations: locations, style: output.style
            ) { try output.line($0) }
        }
        try finish(traces)
    }

    /// All functions, modules, call sites, threads or processes: a row each.
    private func report(_ run: TraceRun, _ by: ReportGrouping) throws {
        let pattern = filter.map { FunctionPattern($0) }
        let needsTree = correct || by == .module || by == .caller || by == .thread
        let hasNames = by == .function, asRun = run.files.count != 1 || trace.choice.process != nil || by == .process
        var whole: RunSummary, files: [TraceFile]?
        // The line about threads without a CPU needs no more than their sums.
        let states = !json && !csv && time.time == .wall ? .ofThreads : time.reading(isAsked: true)
        if time.time != .wall { try time.check(trace.choice.open(run)) }
        if window.isWhole, threads.pattern == nil {
            if shortest.least != nil { _ = try window.narrow([], least: shortest.least) }
            whole = try trace.choice.summary(run, asRun: asRun, names: hasNames, states: states)
        } else {
            let (narrowed, window) = try window.narrowRun(trace.choice.open(run), least: shortest.least)
            let traces = try threads.narrow(narrowed)
            files = traces
            whole = withProgress(basename(run.path)) {
                RunSummary(traces, path: run.path, window: window, asRun: asRun, names: hasNames, states: states, progress: $0)
            }
        }
        guard !whole.processes.isEmpty else { throw CommandFailure(whole.warnings.first ?? "no trace in \(run.path)") }
        let only = whole.only.map { [$0] }, isOfAll = conditions.conditions.isEmpty
        let advice = by == .function && filter == nil && isOfAll ? whole.exclusionAdvice : nil
        if !isOfAll {
            let files = try files ?? only ?? trace.choice.open(run)
            try conditions.check(files)
            let chosen = withProgress(basename(run.path)) {
                ChosenFunctions(files, of: pattern, where: conditions.conditions, progress: $0)
            }
            whole.choose(chosen, where: conditions.conditions)
        } else if needsTree {
            let files = try files ?? only ?? trace.choice.open(run), tree = reading(files, states: time.reading(isAsked: json || csv))
            if correct { try Tree.checkCost(of: tree, files) }
            if by == .function {
                whole.summary.correct(by: tree.rows(by: by))
            } else {
                whole.summary.replaceRows(tree.rows(by: by, pattern))
            }
        } else if by == .site {
            let files = try files ?? only ?? trace.choice.open(run)
            whole.summary.replaceRows(try reading(files, sitesOf: pattern, states: time.reading(isAsked: json || csv)).rows)
        }
        if by == .function, isOfAll, let pattern {
            whole.summary.keep { pattern.matches(name: $0.name, symbol: $0.symbol, module: $0.module) }
        }
        // For several traces this takes long, so only where lines are asked for.
        let locations = lines || only != nil ? FunctionLocations(try only ?? trace.choice.open(run), lines: lines) : nil
        let isOfProcesses = by == .process && !correct, rows = isOfProcesses ? "processes" : "functions"
        try display.output().show(ReportOutput(whole, locations, advice), json: json, csv: csv ? rows : nil) { output in
            let (width, style) = (output.width, output.style)
            try output.write(
                isOfProcesses
                    ? whole.processTable(by: sort ?? .selfTime, top: top, width: width, style: style)
                    : whole.table(
                        by: sort ?? .selfTime, grouping: by, isCorrected: correct, top: top, width: width, names: names.style,
                        locations: locations,
                        style: style))
            if let advice { try output.line(style.dim(advice.text)) }
        }
        if !json, !csv, isOfAll, let hint = whole.interpreterHint { complain(hint) }
        try finish(whole)
    }
}
