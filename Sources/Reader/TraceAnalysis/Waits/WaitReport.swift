// The waits of all processes of a run, longest first, and the locks that were waited for.
import Presentation
import Symbols
import TraceFormat

package struct WaitChoice: Sendable {
    /// Shorter ones are not reported.
    package var least: Nanoseconds?
    package var kind: WaitKind?
    /// nil: all threads.
    package var threads: ThreadPattern?
    /// Idle waits count as the others do.
    package var withIdle: Bool
    package init(least: Nanoseconds? = nil, kind: WaitKind? = nil, threads: ThreadPattern? = nil, withIdle: Bool = false) {
        self.least = least
        self.kind = kind
        self.threads = threads
        self.withIdle = withIdle
    }
}

package struct WaitReport {
    let processes: [WaitSearch]
    let window: RunWindow?
    /// Index of the process, and of the wait there: longest first.
    let order: [(process: Int, wait: Int)]
    /// The waits that the tables have: all but idle ones or, if they were asked for, all.
    let busy: [(process: Int, wait: Int)]
    /// Idle waits by thread and call, the longest first; also where `busy` has them.
    package let idle: [IdleTotals]
    /// The longest waited for first.
    let locks: [LockTotals]
    /// Context switches of the threads that were chosen.
    let switches: ContextSwitches
    /// Major page faults by process: pages that were not in memory.
    let pages: [[PageWait]]
    /// Minor page faults of all processes, by stage and file; empty if they were not recorded, or the choice names a kind.
    let minorFaults: [PageTotals]
    /// Explanations by process. Their times count from the start of the earliest trace.
    let explanations: [WaitExplanation]

    package init(
        _ traces: [TraceFile], window: RunWindow? = nil, _ choice: WaitChoice = WaitChoice(), workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        var processes = progress.part(0, 0.9) {
            progress.each(traces, weight: \.usedByteCount) { WaitSearch($0, workers: workers, progress: progress) }
        }
        WaitSearch.findWakers(&processes, workers: workers)
        WaitSearch.findIdle(&processes)
        let symbolizer = Symbolizer()
        let origin = traces.map { $0.header.first.monotonic_ns }.min() ?? 0
        let explanations = processes.map { WaitExplanation($0, symbolizer, origin: origin) }
        self.processes = processes
        self.explanations = explanations
        self.window = window
        order = self.processes.indices.flatMap { [processes] process -> [(process: Int, wait: Int, length: UInt64)] in
            let search = processes[process], scale = search.trace.timeScale
            return search.waits.indices.lazy.filter { search.isChosen($0, choice) }.map {
                ($0, scale.nanoseconds(search.waits[$0].duration))
            }
            .map { (process, $0.0, $0.1.count) }
        }.sorted { ($0.length, $1.process, $1.wait) > ($1.length, $0.process, $0.wait) }.map { ($0.process, $0.wait) }
        busy = choice.withIdle ? order : order.filter { [processes] in !processes[$0.process].waits[$0.wait].isIdle }
        idle = IdleTotals.all(order.filter { [processes] in processes[$0.process].waits[$0.wait].isIdle }, explanations)
        locks = Self.locks(busy, processes, explanations)
        switches = ContextSwitches(processes, choice)
        pages = processes.map { search in
            search.pageWaits(symbolizer).filter { search.isChosen(thread: $0.thread, choice) && choice.kind ?? .disk == .disk }
        }
        minorFaults =
            choice.kind != nil
            ? []
            : processes.enumerated().flatMap { process, search in
                PageTotals.all(search.minorFaults().filter { search.isChosen(thread: $0.thread, choice) }, process: process)
            }
    }

    /// All threads of the processes, also those that were not chosen.
    package var threads: [(pid: UInt32, tid: UInt32, name: String)] { processes.flatMap { $0.namedThreads } }

    private static func locks(_ order: [(process: Int, wait: Int)], _ processes: [WaitSearch], _ explanations: [WaitExplanation])
        -> [LockTotals]
    {
        struct Key: Hashable {
            var process: Int
            var object: UInt64
        }
        var waits: [Key: [Wait]] = [:]
        for (process, index) in order {
            let search = processes[process], wait = search.waits[index]
            guard wait.kind != .processor, wait.call.argument != noArgument,
                [.acquires, .mayAcquire].contains(search.function(wait.call.row)?.act)
            else { continue }
            waits[Key(process: process, object: wait.call.argument), default: []].append(wait)
        }
        return waits.map { key, all in
            let explanation = explanations[key.process]
            return LockTotals(
                all, process: key.process, object: "0x" + String(key.object, radix: 16), site: { explanation.site(of: $0) },
                heldIn: { explanation.site(of: $0) })
        }.sorted { ($0.duration, $1.process, $1.object) > ($1.duration, $0.process, $0.object) }
    }

    var missing: [String] { WaitSearch.missing(processes) }
}

extension WaitSearch {
    func isChosen(thread: Int, _ choice: WaitChoice) -> Bool {
        choice.threads?.matches(tid: threads[thread].tid, pid: trace.header.pid, name: threads[thread].name) ?? true
    }

    fileprivate func isChosen(_ index: Int, _ choice: WaitChoice) -> Bool {
        let wait = waits[index]
        return trace.timeScale.nanoseconds(wait.duration) >= choice.least ?? Nanoseconds(0) && wait.kind == choice.kind ?? wait.kind
            && isChosen(thread: wait.thread, choice)
    }
}
