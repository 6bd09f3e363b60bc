// Finds wakers in other processes of a run: children whose exit a thread waited for, and peers (Peers.swift).
import Presentation
import Symbols
import TraceFormat

extension WaitSearch {
    struct End {
        var process: Wait.OtherProcess
        var parent: UInt32
        /// CLOCK_MONOTONIC
        var at: Int64
    }

    /// Finds who woke threads that waited for other processes of the run.
    package static func findWakers(_ processes: inout [WaitSearch], workers: Int = TraceFile.cpuCount) {
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
        let process = Wait.OtherProcess(
            name: main.name, pid: pid, tid: pid, begun: trace.header.first.monotonic_ns, thread: main.thread, function: nil,
            late: Nanoseconds(0))
        return End(process: process, parent: trace.header.parent_pid, at: monotonic(last))
    }

    /// CLOCK_MONOTONIC.
    func monotonic(_ ticks: UInt64) -> Int64 {
        Int64(truncatingIfNeeded: trace.header.first.monotonic_ns)
            &+ trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: ticks &- trace.firstTicks.raw))
    }

    /// Finds the child that ended during the wait: the one with the number waited for, or, of any child, the only one.
    private mutating func findChildren(_ ends: [End]) {
        guard !ends.isEmpty else { return }
        for (index, wait) in waits.enumerated() where wait.kind == .child && wait.waker == nil {
            let begin = monotonic(wait.begin), end = monotonic(wait.end)
            let isAny = function(wait.call.row)?.text(wait.call.argument) == nil
            let candidates = ends.filter { $0.at >= begin && $0.at <= end && (isAny || UInt64($0.process.pid) == wait.call.argument) }
            guard candidates.count == 1, let one = candidates.first else { continue }
            waits[index].otherProcess = one.process
            waits[index].otherProcess?.late = Nanoseconds(UInt64(bitPattern: end &- one.at))
        }
    }
}
