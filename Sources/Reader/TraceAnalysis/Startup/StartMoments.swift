// The moments between which the stages of a start lie: from the start records, and the first calls that show when the program was ready.
// What was called in between is not counted, so that this takes a fraction of the time of a `StartupTimeline`.
import CTraceLayout
import Presentation
import TraceFormat

struct StartMoments {
    let trace: TraceFile
    let firsts: FirstCalls
    let ready: ReadyMoments
    /// The phase in which the start begins.
    let first: Phase
    let agent: Phase
    /// nil: main was not called before `end`.
    let main: Phase?
    let clock: StartupClock
    let traceEnd: Ticks
    /// Ready, or where the trace ends.
    let end: Ticks
    /// The program that became this one by exec, where it began the start.
    let earlierProgram: String?

    init(_ trace: TraceFile, _ options: StartupTimeline.Options = .init()) throws(StartupError) {
        let records = trace.metadata.start
        guard let agent = records.phase(.agent) else { throw .noStart(trace) }
        self.trace = trace
        self.agent = agent
        firsts = FirstCalls(trace, symbol: options.readySymbol)
        var ready = ReadyMoments(trace, symbol: options.readySymbol, firsts: firsts)
        ready.add(options.processes, symbol: options.readySymbol)
        self.ready = ready
        traceEnd = TraceEnd(trace).ticks
        let end = max(ready.candidates.first?.ticks ?? records.phase(.exit)?.usage.ticks ?? traceEnd, agent.usage.ticks)
        self.end = end
        first = Self.first(trace, before: agent, after: options.earlier)
        earlierProgram = first.kind == .exec ? options.earlier?.name : nil
        clock = StartupClock(trace, origin: trace.ticks(of: first), cpuWaits: options.cpuWaits)
        main = records.phase(.main).flatMap { $0.usage.ticks <= end ? $0 : nil }
    }

    var outcome: StartupTimeline.Outcome { ready.candidates.first.map { .ready($0) } ?? .neverReady }
    /// From the first known moment to `end`.
    var total: Nanoseconds { clock.since(end) }
    /// Libraries that were there at the start.
    var libraryCount: Int {
        let executable = trace.metadata.executable
        return trace.metadata.start.moduleDetails.values.count {
            $0.load == nil && $0.module != executable && trace.metadata.modules[$0.module] != nil
        }
    }

    /// Returns the phase in which the timeline begins: exec as `tracer` saw it, else the earliest that is known.
    private static func first(_ trace: TraceFile, before agent: Phase, after earlier: StartupTimeline.EarlierProgram?) -> Phase {
        let records = trace.metadata.start
        if let exec = records.phase(.exec), trace.ticks(of: exec) <= agent.usage.ticks { return exec }
        if let earlier {
            let exec = Phase(kind: .exec, usage: Usage(trace_usage()), monotonic: earlier.exec, error: Nanoseconds(0), thread: agent.thread)
            if trace.ticks(of: exec) <= agent.usage.ticks { return exec }
        }
        let next = records.phase(.loader).flatMap { $0.usage.ticks <= agent.usage.ticks ? $0 : nil } ?? agent
        guard var created = records.phase(.created), let latest = created.monotonic else { return next }
        // It is known as "at the latest then"; it was before the loader in any case.
        let bound = Int64(clamping: trace.header.first.monotonic_ns) &+ trace.nanosecondsSinceStart(next)
        let surplus = Int64(clamping: latest.count) &- bound
        if surplus > 0 {
            created.monotonic = Nanoseconds(UInt64(clamping: bound))
            created.error = Nanoseconds(created.error.count > UInt64(surplus) ? created.error.count - UInt64(surplus) : 0)
        }
        return created
    }
}

extension Metadata {
    /// The executable: the first module that was there at the start.
    var executable: UInt32? { modules.keys.min() }
}
