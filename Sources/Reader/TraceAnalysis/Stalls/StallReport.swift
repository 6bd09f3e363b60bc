// The turns of event loops that took long: what each was in, and what its thread did meanwhile.
import Presentation
import Symbols
import TraceFormat

package struct StallReport {
    /// The turns of one thread's loops.
    package struct Loops: Sendable {
        /// Index among the traces.
        let process: Int
        package let thread: UInt32
        let tid: UInt32
        let name: String
        let pid: UInt32
        /// Names of the functions in which it waits, in alphabetical order.
        package let functions: [String]
        package let waits: Int
        package let lengths: WaitLengths
        package let stalls: Int

        var title: String { "\(name.isEmpty ? "?" : name)/\(tid)" }
    }

    /// A recorded call on the heaviest path of a turn, with all calls of the function on that path.
    struct Step: Sendable {
        var function: CallTree.Function
        var calls: UInt64
        var total: UInt64
        var selfTime: Int64
    }

    package struct Stall {
        let process: Int
        package let turn: LoopTurn
        package let length: Nanoseconds
        let tid: UInt32
        let name: String
        /// From the outermost call that the turn made.
        let path: [Step]
        /// No call that the turn made was open.
        let own: Nanoseconds
        /// nil: the kernel has reported of another thread of that id alone.
        let times: ThreadTimes?
        /// Indices of the thread's waits in the turn, the longest first; without those for a processor.
        let waits: [Int]

        var title: String { "\(name.isEmpty ? "?" : name)/\(tid)" }
    }

    package let traces: [TraceFile]
    let window: RunWindow?
    package let least: Nanoseconds
    /// The one with the most turns first.
    package let loops: [Loops]
    /// The longest first.
    package let stalls: [Stall]
    /// All, whether `stalls` has them or not.
    package let count: Int
    /// Explanations by process; empty where there are no stalls.
    let explanations: [WaitExplanation]
    private let unrecorded: UInt64
    private let lost: Int
    private let isTooMany: Bool

    /// The least length of a stall, unless another is asked for: from there on people notice, and asyncio's debug mode warns.
    package static let usualLeast = Nanoseconds(100_000_000)

    /// - Parameters:
    ///   - traces: of a run, narrowed to the window; a turn that the window touches counts as a whole
    ///   - least: turns of this length are stalls
    ///   - limit: of stalls to look into, 0 all
    package init(
        _ traces: [TraceFile], window: RunWindow? = nil, threads: ThreadPattern, least: Nanoseconds, limit: Int,
        workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil
    ) {
        self.traces = traces
        self.window = window
        self.least = least
        let tables = traces.map { FunctionNames($0.metadata) }
        let found = progress.part(0, 0.5) {
            progress.each(Array(zip(traces, tables)), weight: \.0.usedByteCount) {
                Found($0, $1, threads, workers: workers, progress: progress)
            }
        }
        unrecorded = found.reduce(0) { $0 &+ $1.unrecorded }
        lost = found.reduce(0) { sum, one in sum + one.threads.reduce(0) { $0 + $1.loops.lost } }
        isTooMany = found.contains(where: \.isTooMany)
        var loops: [Loops] = [], stalls: [(process: Int, turn: LoopTurn, length: Nanoseconds)] = []
        for (process, one) in found.enumerated() {
            let trace = traces[process]
            for thread in one.threads where thread.loops.waits > 0 {
                let turns =
                    trace.window.isWhole ? thread.loops.turns : thread.loops.turns.filter { trace.window.touches($0.begin, $0.end) }
                let lengths = turns.map { trace.timeScale.nanoseconds($0.end - $0.begin) }
                let slow = turns.indices.filter { lengths[$0] >= least }
                stalls += slow.map { (process, turns[$0], lengths[$0]) }
                loops.append(
                    Loops(
                        process: process, thread: thread.thread, tid: thread.tid, name: trace.threadName(thread.thread),
                        pid: trace.header.pid, functions: Set(thread.loops.rows.map { tables[process].rows[Int($0) - 1].name }).sorted(),
                        waits: thread.loops.waits, lengths: WaitLengths(lengths), stalls: slow.count))
            }
        }
        self.loops = loops.sorted { ($0.lengths.count, $1.process, $1.tid) > ($1.lengths.count, $0.process, $0.tid) }
        stalls.sort { ($0.length, $1.process, $1.turn.begin) > ($1.length, $0.process, $0.turn.begin) }
        count = stalls.count
        if limit > 0 { stalls.removeLast(max(stalls.count - limit, 0)) }
        guard !stalls.isEmpty else {
            (self.stalls, explanations) = ([], [])
            return
        }
        let shown = stalls
        let waits = progress.part(0.5, 0.9) {
            let narrowed = traces.indices.map { process in
                traces[process].narrowed(to: TimeWindow(shown.filter { $0.process == process }.map { $0.turn.begin..<$0.turn.end }))
            }
            return WaitReport(narrowed, WaitChoice(withIdle: true), workers: workers, progress: progress)
        }
        explanations = waits.explanations
        self.stalls = shown.map { process, turn, length in
            let tid = loops.first { $0.process == process && $0.thread == turn.thread }?.tid ?? 0
            return Stall(turn, length, tid: tid, traces[process], tables[process], waits.processes[process], process: process)
        }
    }

    /// One process's.
    private struct Found {
        var threads: [(thread: UInt32, tid: UInt32, loops: EventLoops)] = []
        var unrecorded: UInt64
        var isTooMany: Bool

        init(_ trace: TraceFile, _ table: FunctionNames, _ pattern: ThreadPattern, workers: Int, progress: ReadingProgress?) {
            // Turns have their whole length, whatever is shown.
            let whole = trace.narrowed(to: .whole).only(pattern)
            let functions = LoopFunction.all(table, of: basename(trace.program))
            let found = LoopWaits.all(in: whole, table, functions, workers: workers, progress: progress)
            (unrecorded, isTooMany) = (found.unrecorded, found.threads == nil)
            let ends = TraceEnd(trace), start = trace.metadata.start
            for chunks in whole.chunksOfThread {
                guard let first = chunks.first, let waits = found.threads?[first.thread] else { continue }
                let isMain = start.phase(.main)?.thread == first.thread && first.tid == trace.header.pid
                let holes = zip(chunks, chunks.dropFirst()).filter { $1.sequence != $0.sequence &+ 1 }.map { $1.opened.ticks }
                let loops = EventLoops(
                    waits, thread: first.thread, end: ends.end(of: first.thread),
                    returned: isMain ? start.phase(.mainReturned)?.usage.ticks.raw : nil, holes: holes)
                threads.append((first.thread, first.tid, loops))
            }
        }
    }

    /// Why there is none to show; nil: there is a loop.
    package var noLoop: String? {
        guard loops.isEmpty else { return nil }
        if isTooMany { return "there are too many calls of \(LoopFunction.waitsShown) to keep them: choose fewer threads with --thread" }
        let lost = Losses(traces).lost
        return "no call of \(LoopFunction.waitsShown) that a thread comes back to" + lost.map { ", \($0)" }.joined()
    }

    /// Titles of all threads with loops.
    package var titles: [String] { loops.map(\.title) }

    var missing: [String] {
        traces.compactMap(\.noSwitches).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// What is not known, one line each.
    var notes: [String] {
        var notes: [String] = []
        for time in Set(traces.compactMap(\.minimumTime)).sorted() {
            notes.append("calls shorter than \(readable(time)) are not recorded: a turn may be several, with shorter waits in between")
        }
        if unrecorded > 0 {
            notes.append(
                "\(counted(unrecorded, "wait")) \(unrecorded == 1 ? "was" : "were") counted and not recorded: a turn may be several, with such waits in between"
            )
        }
        if lost > 0 { notes.append("\(counted(lost, "turn")) left out: chunks are missing in \(lost == 1 ? "it" : "them")") }
        if isTooMany { notes.append("there are too many waits in event loops to show those of all processes") }
        let losses = Losses(traces), missing = (losses.lost + losses.filtered).joined(separator: ", ")
        if !missing.isEmpty { notes.append("not in the trace: \(missing)") }
        return notes + losses.state
    }
}

extension StallReport.Stall {
    fileprivate init(
        _ turn: LoopTurn, _ length: Nanoseconds, tid: UInt32, _ trace: TraceFile, _ table: FunctionNames, _ search: WaitSearch, process: Int
    ) {
        self.process = process
        self.turn = turn
        self.length = length
        let part = TimeWindow([turn.begin..<turn.end])
        self.tid = tid
        name = trace.threadName(turn.thread)
        let index = search.threads.firstIndex { $0.thread == turn.thread }
        times = index.map { ThreadTimes(search, $0, in: part) }
        waits = (index.map { search.waitsOfThread[$0] } ?? 0..<0).filter {
            let wait = search.waits[$0]
            return wait.kind != .processor && wait.begin >= turn.begin && wait.end <= turn.end
        }.sorted { (search.waits[$0].duration, $1) > (search.waits[$1].duration, $0) }
        let calls = CallTree(trace.narrowed(to: part).only([turn.thread]), table, workers: 1).callsOfTurn
        path = calls.heaviest
        own = Nanoseconds(length.count - min(calls.total, length.count))
    }
}

extension CallTree {
    /// The calls that the one thread made in the one moment of the tree's window, without those within others of them.
    fileprivate var callsOfTurn: (heaviest: [StallReport.Step], total: UInt64) {
        guard let root = roots.first else { return ([], 0) }
        var outermost: [Int] = [], open = [root.node], index = 0
        while index < open.count {
            for child in children(of: open[index]) where !functions[nodes[child].function].isOwnCode {
                // Calls that were open as the turn began are the loop's own functions: they have a part in it, and did not begin there.
                let wasOpen = nodes[child].part > nodes[child].calls
                if wasOpen { open.append(child) } else { outermost.append(child) }
            }
            index += 1
        }
        var steps: [StallReport.Step] = []
        var next = outermost.max { nodes[$0].total < nodes[$1].total }
        while let node = next {
            let one = nodes[node]
            steps.append(
                StallReport.Step(function: functions[one.function], calls: one.calls, total: one.total, selfTime: one.selfTime))
            // On, as long as one call has most of the time.
            next = children(of: node).max { nodes[$0].total < nodes[$1].total }.flatMap { nodes[$0].total >= one.total / 2 + 1 ? $0 : nil }
        }
        return (steps, outermost.reduce(0) { $0 &+ nodes[$1].total })
    }
}
