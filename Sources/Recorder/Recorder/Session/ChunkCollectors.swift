// Takes over full chunks of the processes of a run.
import CTraceLayout
import Glibc

struct ChunkCollectors {
    private struct Process {
        /// 0: it counts in another namespace.
        var pid: pid_t
        var header: TraceHeader
        var collector: ChunkCollector
        /// When it is to be looked at: CLOCK_MONOTONIC.
        var due: UInt64 = 0
    }
    /// Living processes, as far as they are known. One that executes another program begins another file.
    private var processes: [Process] = []
    /// A descriptor each: a quarter of those that the recorder may have. Processes beyond write their chunks themselves.
    private let most: Int

    init() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        most = Int(clamping: min(limit.rlim_cur / 4, 256))
    }

    /// The process begins to leave its full chunks to us.
    mutating func add(_ header: TraceHeader) {
        let state = header.current, pid = pid_t(bitPattern: state.pid)
        let countsHere = state.pid_namespace != 0 && state.pid_namespace == ProcessStatus.ownNamespace
        let isFull = processes.count >= most
        processes.removeAll { countsHere && $0.pid == pid || isFull && ProcessStatus.isGone($0.pid) }
        guard processes.count < most else { return }
        processes.append(Process(pid: countsHere ? pid : 0, header: header, collector: ChunkCollector(header)))
        header.set(collected: true)
    }

    /// Looks at those whose turn it is. Returns after how many nanoseconds the next one is due.
    mutating func look() -> UInt64 {
        let now = clockTime()
        for n in processes.indices where processes[n].due <= now { processes[n].due = now + processes[n].collector.look() }
        // Who has been idle for long may be gone.
        processes.removeAll { $0.due >= now + ChunkCollector.mostNanoseconds && ProcessStatus.isGone($0.pid) }
        return processes.reduce(PreparationPlan.idleNanoseconds) { min($0, $1.due - now) }
    }

    /// Processes that go on write their chunks themselves from now on.
    mutating func end() {
        for process in processes { process.header.set(collected: false) }
        processes = []
    }
}
