// When a thread ran, could have run, and waited, as the kernel has seen it. What is not known is not counted.
import CTraceLayout
import Presentation
import TraceFormat

package struct ThreadStates: Sendable {
    package enum State: UInt8, BitwiseCopyable { case running, runnable, waiting, unknown }
    package struct Stretch: BitwiseCopyable, Equatable, Sendable {
        package var begin: UInt64
        package var end: UInt64
        package var state: State
        /// CPU that it runs on, or ran on last.
        var cpu: UInt16 = 0
    }

    package let tid: UInt32
    /// Its index in the trace; nil: it made no call that was recorded.
    package let thread: UInt32?
    package let name: String
    /// The thread that began it; nil unknown.
    let by: UInt32?
    let life: Range<UInt64>
    /// True if its end was seen.
    package let hasEnded: Bool
    /// In order, without gaps. Empty where the kernel did not report them.
    package let stretches: [Stretch]

    /// No thread of the program, but a task of the agent's that uses the file in its place (FileJob.swift).
    var isAgents: Bool { thread == nil && name == TRACE_AGENT_TASK }

    /// "settings/19299".
    package var title: String { "\(name.isEmpty ? "?" : name)/\(tid)" }

    /// All threads of a process, in the order in which they began.
    package static func all(_ trace: TraceFile, _ records: KernelRecords) -> [ThreadStates] {
        var lives: [UInt32: [Life]] = [:]
        let recorded = trace.recordedThreads
        let hasSwitches = trace.noSwitches == nil
        for tid in Set(recorded.map { $0.tid }).union(records.tasks.keys).union(hasSwitches ? Array(records.switches.keys) : []) {
            lives[tid] = Life.all(records.tasks[tid] ?? [], from: trace.beginOfStates(records))
        }
        for thread in recorded {
            // A thread id is used again when its thread has ended.
            let index = lives[thread.tid]!.lastIndex { $0.begin <= thread.from } ?? 0
            if lives[thread.tid]![index].thread == nil { lives[thread.tid]![index].thread = thread }
        }
        var states: [ThreadStates] = []
        for (tid, all) in lives {
            for life in all {
                let known = life.thread
                let begin = life.isKnown ? life.begin : known?.from ?? trace.firstTicks.raw
                let end = max(begin, life.end ?? records.span?.upperBound ?? known?.ended ?? .max)
                let name = known.map { trace.threadName($0.index) } ?? ""
                states.append(
                    ThreadStates(
                        tid: tid, thread: known?.index,
                        name: name.isEmpty ? life.name ?? life.by.flatMap { Self.name($0, at: life.begin, trace, records) } ?? "" : name,
                        by: life.by, life: begin..<end, hasEnded: life.end != nil,
                        stretches: hasSwitches
                            ? Self.stretches(
                                begin..<end, records.switches[tid] ?? [], isBegun: life.isBegun, hasEnded: life.end != nil,
                                isWhole: trace.metadata.kernel?.lost == 0, hasCalls: known != nil) : []))
            }
        }
        return states.sorted { ($0.life.lowerBound, $0.tid) < ($1.life.lowerBound, $1.tid) }
    }

    /// A thread is called as the one that begins it, until it is given a name.
    private static func name(_ tid: UInt32, at moment: UInt64, _ trace: TraceFile, _ records: KernelRecords) -> String? {
        let names = records.tasks[tid]?.filter { $0.kind == .named } ?? []
        if let last = names.last(where: { $0.at <= moment }) { return last.name }
        return names.isEmpty ? trace.recordedThreads.first { $0.tid == tid }.map { trace.threadName($0.index) } : nil
    }

    /// - Parameters:
    ///   - isWhole: no switch is missing
    ///   - hasCalls: it has recorded some, and so has run
    private static func stretches(
        _ life: Range<UInt64>, _ switches: [KernelRecords.Switch], isBegun: Bool, hasEnded: Bool, isWhole: Bool, hasCalls: Bool
    ) -> [Stretch] {
        var stretches: [Stretch] = [], since = life.lowerBound, last: KernelRecords.Switch.Kind?, cpu: UInt16 = 0
        func add(_ end: UInt64, _ state: State) {
            if end > since { stretches.append(Stretch(begin: since, end: end, state: state, cpu: cpu)) }
            since = max(since, end)
        }
        for one in switches where one.at >= life.lowerBound && one.at <= life.upperBound {
            if last == nil { cpu = one.cpu }
            switch (last, one.kind) {
            case (.waits, .runs): add(one.at, .waiting)
            case (.isPreempted, .runs): add(one.at, .runnable)
            case (.runs, .waits), (.runs, .isPreempted): add(one.at, .running)
            // Before its first one: it was there already, and ran; or it has just begun, and waits for a CPU.
            case (nil, .waits), (nil, .isPreempted): add(one.at, isWhole && !isBegun ? .running : .unknown)
            case (nil, .runs): add(one.at, isBegun ? .runnable : .unknown)
            default: add(one.at, .unknown) // one between the two is missing
            }
            last = one.kind
            cpu = one.cpu
        }
        switch last {
        case .runs: add(life.upperBound, .running)
        case .waits: add(life.upperBound, isWhole || hasEnded ? .waiting : .unknown)
        case .isPreempted: add(life.upperBound, isWhole || hasEnded ? .runnable : .unknown)
        // It was there already, had a CPU, and kept it.
        case nil: add(life.upperBound, isWhole && !isBegun && hasCalls ? .running : .unknown)
        }
        return stretches
    }

    /// How long it was so, in ticks, of the time that is asked for.
    package func time(_ state: State, in window: TimeWindow) -> UInt64 {
        stretches.reduce(0) { $1.state == state ? $0 &+ window.length(from: $1.begin, to: $1.end) : $0 }
    }
}

/// From a thread's beginning to its end.
private struct Life {
    var begin: UInt64
    /// Its beginning was seen.
    var isBegun: Bool
    /// The kernel has reported what happened in that time.
    var isKnown: Bool
    var end: UInt64?
    var name: String?
    var by: UInt32?
    var thread: RecordedThread?

    /// One after another, of one thread id.
    /// - Parameter begin: from when on the kernel has reported, nil: it has not
    static func all(_ tasks: [KernelRecords.Task], from begin: UInt64?) -> [Life] {
        let before = Life(begin: begin ?? 0, isBegun: false, isKnown: begin != nil)
        var lives: [Life] = []
        for task in tasks {
            switch task.kind {
            case .began:
                if let last = lives.indices.last, lives[last].end == nil { lives[last].end = task.at }
                lives.append(Life(begin: task.at, isBegun: true, isKnown: true, by: task.by))
            case .ended, .named:
                if lives.isEmpty { lives.append(before) }
                let last = lives.count - 1
                guard lives[last].end == nil else { continue }
                if task.kind == .ended { lives[last].end = task.at } else { lives[last].name = task.name }
            }
        }
        return lives.isEmpty ? [before] : lives
    }
}

/// A thread that has chunks.
struct RecordedThread: Sendable {
    var index: UInt32
    var tid: UInt32
    var from: UInt64
    var ended: UInt64?
}

extension TraceFile {
    /// From when on a thread that was there already is known to run: not before the program was executed.
    fileprivate func beginOfStates(_ records: KernelRecords) -> UInt64? {
        let exec = metadata.start.phase(.exec)?.monotonic.map { ticks(monotonic: $0.count).raw } ?? 0
        return records.span.map { min(max($0.lowerBound, exec), $0.upperBound) }
    }

    var recordedThreads: [RecordedThread] {
        chunksOfThread.compactMap { $0.first }.map { chunk in
            let life = metadata.threads[chunk.thread]
            return RecordedThread(
                index: chunk.thread, tid: chunk.tid, from: min(life?.started?.raw ?? .max, chunk.opened.ticks), ended: life?.ended?.raw)
        }
    }
}

extension TimeWindow {
    /// Returns the parts of a stretch that lie in the window.
    func parts(_ stretch: ThreadStates.Stretch) -> [ThreadStates.Stretch] {
        if isWhole { return [stretch] }
        return intersection(stretch.begin..<stretch.end).moments.filter { !$0.isEmpty }.map {
            ThreadStates.Stretch(begin: $0.lowerBound, end: $0.upperBound, state: stretch.state, cpu: stretch.cpu)
        }
    }
}
