// How a process started: one line of time from exec to ready, cut into stages that add up, with everything that ran before
// it was ready. Durations are without the agent's own work, which is shown separately; moments are as they were.
import CTraceLayout
import Presentation
import Symbols
import TraceFormat

package struct StartupTimeline: Sendable {
    package struct Options: Sendable {
        /// The function whose first call means that the program is ready.
        package var readySymbol: String?
        /// Log of the audit library, when it was on.
        package var loader: LoaderAudit?
        /// The program that the process ran first: a shell script, say, that ends in exec.
        package var earlier: EarlierProgram?
        /// Traces of the processes that it has started, by themselves or not: one of them may be what becomes ready.
        package var processes: [TraceFile]
        /// As a shell reports it, from whoever has waited for the process; a trace does not know it.
        package var exitStatus: Int32?
        /// When threads could have gone on and had no CPU, by their index: these times are in no duration but `total`.
        package var cpuWaits: [UInt32: TimeWindow]
        package init(
            readySymbol: String? = nil, loader: LoaderAudit? = nil, earlier: EarlierProgram? = nil, processes: [TraceFile] = [],
            exitStatus: Int32? = nil, cpuWaits: [UInt32: TimeWindow] = [:]
        ) {
            self.readySymbol = readySymbol
            self.loader = loader
            self.earlier = earlier
            self.processes = processes
            self.exitStatus = exitStatus
            self.cpuWaits = cpuWaits
        }
    }

    /// A program that became the traced one by exec.
    package struct EarlierProgram: Sendable {
        package var name: String
        /// When it was started itself.
        package var exec: Nanoseconds

        /// nil: its trace does not know when it was started.
        package init?(_ trace: TraceFile) {
            guard let exec = trace.metadata.start.phase(.exec)?.monotonic else { return nil }
            name = basename(trace.program)
            self.exec = exec
        }
    }

    /// The end of a stage, or of the whole start: how far it came.
    package enum Outcome: Sendable, Equatable {
        case ready(ReadyMoment)
        /// The trace ends before: the program ended, or was killed, there.
        case neverReady
    }

    package let program: String
    /// The program that ran in the process before and became this one by exec; the first stage has its time.
    package let earlierProgram: String?
    package let commandLine: String
    package let pid: UInt32
    /// Beginning of its time: exec, or the first moment that is known.
    package let origin: Ticks
    package internal(set) var stages: [StartupStage]
    /// In the order of time; none where the kernel did not report them.
    package internal(set) var mainWaits: [MainWait] = []
    /// When the main thread could have gone on and had no CPU, where that is in no duration.
    package let mainCPUWaits: TimeWindow
    package let outcome: Outcome
    /// Other moments that might have been taken for ready, in the order of time.
    package let otherMoments: [(moment: ReadyMoment, at: Nanoseconds)]
    /// CLOCK_MONOTONIC at its beginning.
    package let beginMonotonic: Nanoseconds
    /// From the first known moment to ready, or to the end of the trace; the agent's own work included.
    package let total: Nanoseconds
    /// The agent's own work in it.
    package let tracerTime: Nanoseconds
    /// The program's own: `total` without the agent's work, with `recordingTime`; and without the main thread's waits for a CPU where they
    /// are in no duration. The stages add up to it.
    package let programTime: Nanoseconds
    /// The agent's start, from the beginning of the timeline; nil: the trace does not say when it was, or it was not within.
    package let agentStart: Range<UInt64>?
    private let clock: StartupClock
    private let mainThread: UInt32
    /// Calls that the main thread made until then, and about what recording them took: it is in the stages and in what they are
    /// made of. A wait for a certain moment takes as long without it, so that nothing is subtracted from what was measured.
    package let recordedCalls: UInt64
    package let recordingTime: Nanoseconds
    /// How much earlier it may have begun; 0: known exactly.
    package let beginError: Nanoseconds
    /// Page faults of the process until main was called, or until the last phase that was noted if it was not.
    package let minorFaults: UInt32
    package let majorFaults: UInt32
    /// CPU time of the process up to there.
    package let cpu: Nanoseconds
    /// In the order in which they began; those that began before ready.
    package internal(set) var constructors: [ConstructorRun]
    /// At exit.
    package let finalizers: [ConstructorRun]
    package let libraries: [StartupLibrary]
    /// Calls of dlsym until then.
    let nameLookups: UInt64
    package internal(set) var loads: [LibraryLoad]
    package internal(set) var lazyInitializers: [LazyRun]
    package let items: [StartupItem]
    package let marks: [ProgramMark]
    /// Without those that are items.
    package let spans: [ProgramSpan]
    /// Until ready, the one that took longest first; nil: calls that use files were not recorded with their arguments.
    package internal(set) var files: [FileUse]?
    /// Functions called on the main thread between main and ready, by self time without the cost of recording, the most first.
    package internal(set) var functionsOfMain: [FunctionShare]
    /// nil: main was not called, or it is not known when.
    package internal(set) var ownCode: StartupOwnCode?
    package let loaderAudit: LoaderAudit?
    /// Notes for the reader, one line each.
    package let notes: [String]
    /// The last known activity, when it ended before main or ready.
    package let lastSeen: String?

    package init(
        _ trace: TraceFile, symbolizer: Symbolizer, options: Options = Options(), progress: ReadingProgress? = nil
    ) throws(StartupError) {
        let moments = try StartMoments(trace, options)
        let (first, agent, main) = (moments.first, moments.agent, moments.main)
        let (clock, end, taken, ready) = (moments.clock, moments.end, moments.ready.candidates.first, moments.ready)
        let records = trace.metadata.start, names = CodeNames(trace.metadata, symbolizer)
        let calls = StartupCalls(trace, until: end, main: main.map { ($0.usage.ticks, $0.thread) }, progress: progress)

        mainThread = main?.thread ?? agent.thread
        mainCPUWaits = options.cpuWaits[mainThread] ?? TimeWindow([])
        program = trace.program
        earlierProgram = moments.earlierProgram
        commandLine = trace.commandLine
        pid = trace.header.pid
        origin = clock.origin
        outcome = moments.outcome
        beginMonotonic =
            first.monotonic
            ?? Nanoseconds(UInt64(clamping: Int64(clamping: trace.header.first.monotonic_ns) &+ trace.nanosecondsSinceStart(first)))
        total = moments.total
        tracerTime = clock.scale.nanoseconds(clock.agentTicks(clock.origin, end))
        programTime = total.without(tracerTime).without(clock.scale.nanoseconds(mainCPUWaits.length(from: clock.origin.raw, to: end.raw)))
        self.clock = clock
        agentStart = trace.agentStart.flatMap { start in
            let from = clock.since(Ticks(start.lowerBound)).count, to = clock.since(Ticks(start.upperBound)).count
            return from < to ? from..<to : nil
        }
        beginError = first.error
        let lastUsage = main?.usage ?? Self.lastProcessUsage(records, before: end) ?? agent.usage
        minorFaults = lastUsage.minorFaults
        majorFaults = lastUsage.majorFaults
        cpu = lastUsage.cpu
        let context = StartupContext(trace: trace, clock: clock, names: names, calls: calls, end: end)
        recordedCalls = calls.calls(on: agent.thread, from: agent.usage.ticks, to: end)
        recordingTime = context.recording(recordedCalls)
        let runs = ConstructorRun.all(context)
        constructors = runs.filter { !$0.isFinalizer }
        finalizers = ConstructorRun.finalizers(context)
        loads = LibraryLoad.all(context, runs)
        libraries = StartupLibrary.all(context, runs)
        nameLookups = calls.lookups
        lazyInitializers = LazyRun.all(context)
        stages = StartupStage.all(moments, audit: options.loader)
        otherMoments = ready.candidates.dropFirst().filter { !$0.isSame(as: taken) }.map { ($0, clock.since($0.ticks)) }
            .sorted { $0.1 < $1.1 }
        items = StartupItem.all(context, mainThread: mainThread)
        marks = moments.firsts.marks.map { ProgramMark(name: $0.name, at: clock.since($0.ticks)) }
        spans = ProgramSpan.all(context)
        functionsOfMain = FunctionShare.all(context)
        let mainStage = stages.last.flatMap { $0.kind == .main ? $0 : nil },
            lazies = lazyInitializers.filter { [mainThread] in $0.thread == mainThread }
        ownCode = mainStage.map { StartupOwnCode($0, context, lazies) }
        loaderAudit = options.loader
        notes =
            Self.notes(trace, first: first, outcome: outcome, complaint: ready.complaint, earlier: earlierProgram, options)
            + Self.otherAgents(options.processes, clock.origin..<end, of: programTime)
        lastSeen = taken == nil ? Self.lastSeen(context, main: main, runs: runs, endOfTrace: moments.traceEnd) : nil
    }

    /// Finds where the functions that advice may name spent their time. Reads the main thread's calls once more.
    package mutating func addPlaces(_ trace: TraceFile, _ symbolizer: Symbolizer) {
        let advised = functionsOfMain.indices.prefix(Self.mostAdvised).filter { isWorthAdvice(functionsOfMain[$0].selfTime) }
        guard !advised.isEmpty else { return }
        let places = LaunchCalls.places(of: advised.map { functionsOfMain[$0].function }, trace, self, symbolizer)
        for index in advised { functionsOfMain[index].place = places[functionsOfMain[index].function] }
    }

    /// Returns how long the program had been at work at this moment since the beginning: `programTime` until then.
    package func programTime(at moment: Nanoseconds) -> Nanoseconds {
        clock.net(clock.origin, Ticks(clock.origin.raw &+ clock.scale.ticks(moment)), on: mainThread)
    }

    private static func lastProcessUsage(_ records: StartRecords, before end: Ticks) -> Usage? {
        records.phases.filter { $0.usage.ticks <= end && $0.usage.cpu.count > 0 }.max { $0.usage.ticks < $1.usage.ticks }?.usage
    }

    private static func notes(
        _ trace: TraceFile, first: Phase, outcome: Outcome, complaint: String?, earlier: String?,
        _ options: Options
    ) -> [String] {
        var notes: [String] = []
        if let complaint { notes.append("not ready: \(complaint)") }
        if first.kind != .exec {
            let why =
                trace.header.session == 0
                ? "tracer startup -- PROGRAM measures it exactly"
                : "another program started this one, or ran before it in its process"
            notes.append("start of the process estimated, within \(readable(first.error)): \(why)")
        } else if let earlier {
            notes.append("\(earlier) ran first and became this program by exec: the first stage includes its time")
        }
        notes += hidden(trace, outcome)
        notes += failure(outcome, options.exitStatus)
        if options.loader != nil { notes.append("the loader audit was on (--loader): it makes loading slower") }
        return notes + trace.flagTexts
    }

    /// A note on the agent's starts in the other processes. Whether the program waited for them meanwhile is not known, so that they are
    /// not subtracted.
    private static func otherAgents(_ processes: [TraceFile], _ time: Range<Ticks>, of whole: Nanoseconds) -> [String] {
        let ticks = processes.reduce(UInt64(0)) { sum, process in
            guard let start = process.agentStart?.clamped(to: time.lowerBound.raw..<time.upperBound.raw) else { return sum }
            return sum &+ (start.upperBound - start.lowerBound)
        }
        guard let work = processes.first.map({ $0.timeScale.nanoseconds(ticks) }), work.count > whole.count / 100 else { return [] }
        return [
            "\(counted(processes.count, "process", "processes")) that it started \(processes.count == 1 ? "was" : "were") recorded, too: the tracer's own start there, \(readable(work)) in all, may be in these times"
        ]
    }

    /// Notes on settings that may have hidden the call that makes the program ready.
    private static func hidden(_ trace: TraceFile, _ outcome: Outcome) -> [String] {
        var notes: [String] = []
        if trace.setting(Variables.start) == false {
            notes.append(
                "\(Variables.start.name)=off: calls made before the program turned recording on are not in the trace, so none of them can count as ready"
            )
        }
        let filters = [Variables.include.name, Variables.exclude.name, Variables.maximumDepth.name, Variables.minimumTime.name]
            .map(\.description).filter { trace.setting($0) ?? "0" != "0" }
        let isGuess =
            switch outcome {
            case .neverReady: true
            case .ready(let moment): moment.reason == .mainReturned || moment.reason == .exited
            }
        if isGuess && !filters.isEmpty {
            notes.append("\(filters.joined(separator: " and ")) filtered calls out, possibly the one that makes the program ready")
        }
        return notes
    }

    /// A program that only complains and ends is ready by its words or its end, too.
    private static func failure(_ outcome: Outcome, _ status: Int32?) -> [String] {
        guard let status, status != 0, !(129...192).contains(status), case .ready(let moment) = outcome else { return [] } // 128 + a signal
        switch moment.reason {
        case .output, .mainReturned, .exited:
            return ["it ended with status \(status): if that is a failure, these are the times of a failed start"]
        default: return []
        }
    }

    private static func lastSeen(_ context: StartupContext, main: Phase?, runs: [ConstructorRun], endOfTrace: Ticks) -> String {
        let records = context.trace.metadata.start
        if let running = runs.last(where: { !$0.isOver && !$0.isFinalizer }) {
            let location = "in \(running.name.name)\(running.name.sourceLocation.map { " (\($0))" } ?? "") of \(running.name.module)"
            return records.phase(.exit) == nil
                ? "\(location), a constructor that never returned" : "exit was called \(location), a constructor"
        }
        if let returned = records.phase(.mainReturned) {
            return "main returned after \(readable(context.clock.since(returned.usage.ticks)))"
        }
        if records.phase(.exit) != nil { return main == nil ? "exit was called before main" : "exit was called after main had begun" }
        return main == nil ? "before main" : "in main, still running or killed"
    }
}

extension ReadyMoment {
    fileprivate func isSame(as other: ReadyMoment?) -> Bool { other.map { $0.ticks == ticks && $0.key == key } ?? false }
}

extension TraceFile {
    /// When a phase was, on the recording clock; the agent did not see those before it and has them from another clock.
    func ticks(of phase: Phase) -> Ticks {
        phase.monotonic.map { ticks(monotonic: $0.count) } ?? phase.usage.ticks
    }
}

package enum StartupError: Error, CustomStringConvertible, Sendable {
    case notRecorded(String)
    case wasRunning(String)

    static func noStart(_ trace: TraceFile) -> StartupError { trace.isOfRunning ? .wasRunning(trace.path) : .notRecorded(trace.path) }

    package var description: String {
        switch self {
        case .wasRunning(let path): "\(path) has no start: recording began when the program already ran"
        case .notRecorded(let path):
            "\(path) has no data on how its program started: it is from a forked process, is truncated, or was recorded by an older agent"
        }
    }
}

/// Inputs from which the parts of a timeline are made.
struct StartupContext {
    let trace: TraceFile
    let clock: StartupClock
    let names: CodeNames
    let calls: StartupCalls
    /// Ready, or where the trace ends.
    let end: Ticks

    /// The call of dlopen; where that was not seen, the first thing that was seen of it.
    func begin(of load: Load) -> Ticks { load.begin ?? load.opened ?? load.mapped.ticks }

    /// dlopen's return; where that was not seen, the end of the last initializer that it ran.
    func end(of load: Load) -> Ticks {
        if let end = load.end { return end.ticks }
        let own = trace.metadata.start.initializers.lazy.filter { $0.load == load.number }
        return own.compactMap { $0.end?.usage.ticks }.reduce(load.mapped.ticks) { max($0, $1) }
    }

    /// Returns the estimated cost of recording `calls` calls; 0 if the agent could not measure it.
    func recording(_ calls: UInt64) -> Nanoseconds {
        Nanoseconds(UInt64(exactly: (Double(calls) * CallCost(trace).whole).rounded()) ?? .max) // a file may say anything
    }

    func moduleName(_ module: UInt32) -> String { trace.metadata.modules[module]?.name ?? "[module \(module)]" }
    func tid(_ thread: UInt32) -> UInt32 {
        trace.metadata.threads[thread]?.tid ?? trace.threads.first { $0.index == thread }?.tid ?? trace.header.pid
    }
    var executable: UInt32? { trace.metadata.executable }
}

package struct ProgramMark: Sendable {
    package var name: String
    package var at: Nanoseconds
}

package struct ProgramSpan: Sendable {
    package var name: String
    package var tid: UInt32
    package var at: Nanoseconds
    /// nil: not over when the program was ready.
    package var duration: Nanoseconds?

    static func all(_ context: StartupContext) -> [ProgramSpan] {
        context.calls.spans.compactMap { span in
            let name = context.trace.metadata.functions[span.function]?.rawName ?? "?"
            guard StartupItem.Registration(name) == nil else { return nil }
            return ProgramSpan(
                name: demangled(name), tid: context.tid(span.thread), at: context.clock.since(span.begin),
                duration: span.end.map { context.clock.wall(span.begin, $0) })
        }
    }
}

/// A function's own time on the main thread from main to ready.
package struct FunctionShare: Sendable {
    var function: UInt32
    package var name: String
    package var module: String
    package var calls: UInt64
    package var selfTime: Nanoseconds
    /// Estimated cost of recording it and the calls that it made, contained in `selfTime`.
    package var recording: Nanoseconds
    /// Part of `selfTime`; nil: the kernel has not reported it.
    package internal(set) var offCPU: OffCPUTime?
    /// nil: nobody has looked.
    package var place: LaunchCalls.Place?

    static func all(_ context: StartupContext) -> [FunctionShare] {
        let table = context.trace.metadata
        return context.calls.functionsOfMain.lazy.filter { $0.selfTicks > 0 && table.functions[$0.function]?.isSpan != true }.prefix(100)
            .map { time in
                let (name, module) = context.names.function(time.function)
                return FunctionShare(
                    function: time.function, name: name, module: module, calls: time.calls,
                    selfTime: context.clock.scale.nanoseconds(UInt64(time.selfTicks)),
                    recording: context.clock.scale.nanoseconds(UInt64(exactly: time.recordingTicks.rounded()) ?? 0))
            }
    }
}
