// Finds wakers in other processes of a run: children whose exit a thread waited for, and peers (Peers.swift).
import Presentation
import Symbols
import TraceFormat

extension WaitSearch {
    struct End {
        var name: String
        var pid: UInt32
        var parent: UInt32
        /// As those of Wait.OtherProcess.
        var begun: UInt64
        var thread: UInt32?
        /// CLOCK_MONOTONIC
        var at: Int64
    }

    /// Finds who woke threads that waited for other processes of the run.
    package static func findWakers(_ processes: inout [WaitSearch], workers: Int = TraceFile.cpuCount) {
        shareRate(&processes)
        let ends = Dictionary(grouping: processes.compactMap { $0.end }) { $0.parent }
        for process in processes.indices { processes[process].findChildren(ends[processes[process].trace.header.pid] ?? []) }
        findPeers(&processes, workers)
    }

    /// End of the process; nil: not seen. If it has executed another program, only that program's trace has the end.
    var end: End? {
        let pid = trace.header.pid
        guard let main = threads.last(where: { $0.tid == pid }), main.hasEnded,
            let last = threads.filter({ $0.hasEnded }).map({ $0.life.upperBound }).max()
        else { return nil }
        return End(
            name: main.name, pid: pid, parent: trace.header.parent_pid, begun: trace.header.first.monotonic_ns, thread: main.thread,
            at: monotonic(last))
    }

    /// CLOCK_MONOTONIC.
    func monotonic(_ ticks: UInt64) -> Int64 {
        Int64(truncatingIfNeeded: trace.header.first.monotonic_ns)
            &+ trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: ticks &- trace.firstTicks.raw))
    }

    /// CLOCK_MONOTONIC of a moment that the process itself has recorded.
    func monotonic(ofCall ticks: UInt64) -> Int64 {
        guard let rate = sharedRate else { return monotonic(ticks) }
        let since = Double(Int64(truncatingIfNeeded: ticks &- trace.firstTicks.raw)) * rate
        return Int64(truncatingIfNeeded: trace.header.first.monotonic_ns) &+ (Int64(exactly: since.rounded()) ?? 0)
    }

    /// Lets all processes have the rate of the one that was measured longest. A process that was killed may have two samples a millisecond
    /// apart: 100 ppm of error, which after 200 ms are more than a thread takes to wake up, so that it seemed to run before it was woken.
    private static func shareRate(_ processes: inout [WaitSearch]) {
        func isEven(_ trace: TraceFile) -> Bool { trace.timeScale.correction == nil && trace.header.boot != 0 }
        let measured = processes.map(\.trace).filter { isEven($0) && $0.timeScale.baseline > 0 }
        guard let best = measured.max(by: { $0.timeScale.baseline < $1.timeScale.baseline }) else { return }
        for index in processes.indices {
            let trace = processes[index].trace
            guard isEven(trace), trace.header.boot == best.header.boot, trace.header.clock == best.header.clock else { continue }
            processes[index].sharedRate = best.timeScale.nanosecondsPerTick
        }
    }

    /// Finds the child that ended during the wait: the one with the number waited for, or, of any child, the only one.
    private mutating func findChildren(_ ends: [End]) {
        guard !ends.isEmpty else { return }
        for (index, wait) in waits.enumerated() where wait.kind == .child && wait.waker == nil {
            let begin = monotonic(wait.begin), end = monotonic(wait.end)
            let isAny = function(wait.call.row)?.text(wait.call.argument) == nil
            let candidates = ends.filter { $0.at >= begin && $0.at <= end && (isAny || UInt64($0.pid) == wait.call.argument) }
            guard candidates.count == 1, let one = candidates.first else { continue }
            note(
                Wait.OtherProcess(
                    name: one.name, pid: one.pid, tid: one.pid, begun: one.begun, thread: one.thread,
                    late: Nanoseconds(UInt64(bitPattern: end &- one.at))),
                of: index)
        }
    }
}
