// Takes over full chunks of the processes of a run.
import CTraceLayout
import Glibc

struct ChunkCollectors {
    /// Living processes, as far as they are known. One that executes another program begins another file.
    private var collectors: [(pid: pid_t, header: TraceHeader, collector: ChunkCollector)] = []
    /// A descriptor each. Processes beyond write their chunks themselves.
    private static let most = 256

    /// The process begins to leave its full chunks to us.
    mutating func add(_ header: TraceHeader) {
        let state = header.current, pid = pid_t(bitPattern: state.pid)
        let countsHere = state.pid_namespace != 0 && state.pid_namespace == ProcessStatus.ownNamespace
        if countsHere { collectors.removeAll { $0.pid == pid } }
        if collectors.count == Self.most { collectors.removeAll { $0.pid != 0 && ProcessStatus.isGone($0.pid) } }
        guard collectors.count < Self.most else { return }
        collectors.append((countsHere ? pid : 0, header, ChunkCollector(header)))
        header.set(collected: true)
    }

    /// One look at each. Returns after how many nanoseconds the next one is due.
    mutating func look() -> UInt64 {
        var due = PreparationPlan.idleNanoseconds
        for n in collectors.indices { due = min(due, collectors[n].collector.look()) }
        return due
    }

    /// Processes that go on write their chunks themselves from now on.
    mutating func end() {
        for (_, header, _) in collectors { header.set(collected: false) }
        collectors = []
    }
}
