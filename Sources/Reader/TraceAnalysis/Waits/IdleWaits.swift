// Finds the waits in which a thread was idle: it waited for whatever came next, and nobody waited for the thread. docs/guide/waits.md has
// the rule for users.
import Presentation
import TraceFormat

extension WaitSearch {
    /// What brings work to a thread.
    private enum Source {
        /// An event, a connection, a signal: `poll`, `accept`, `sigwait` and similar.
        case event
        /// Another thread, by a condition variable or a semaphore.
        case condition
        /// The time.
        case sleep
    }

    /// Calls, recorded or of the kernel, that wait for a next thing to do and whose kind does not say so.
    private static let eventCalls: Set = [
        "accept", "accept4", "sigwait", "sigwaitinfo", "sigtimedwait", "sigsuspend", "pause", "rt_sigsuspend", "rt_sigtimedwait",
        "io_uring_enter", "io_getevents",
    ]
    /// Waits for conditions that are for other threads to come as far, not for work.
    private static let meetings: Set = ["pthread_barrier_wait", "dispatch_group_wait"]
    /// A thread that waits at a place so often comes back there.
    private static let leastReturns = 3
    /// A thread may be waited for so long, as when it is to end, and still count as idle.
    private static let shortlyAwaited = Nanoseconds(1_000_000)

    /// Sets `isIdle` of the waits of a run's processes, whose wakers are known.
    package static func findIdle(_ processes: inout [WaitSearch]) {
        let parents = Dictionary(
            processes.map { ($0.trace.header.pid, $0.trace.header.parent_pid) }, uniquingKeysWith: { first, _ in first })
        for process in processes.indices {
            for index in processes[process].waitsForWork(parents) { processes[process].waits[index].isIdle = true }
        }
        // A wait that is not idle makes those of the threads that it is for not idle either.
        while true {
            let awaited = AwaitedTimes(processes)
            let wrong = processes.indices.map { process in
                processes[process].waits.indices.filter {
                    processes[process].waits[$0].isIdle && processes[process].isAwaited($0, process: process, awaited)
                }
            }
            if wrong.allSatisfy(\.isEmpty) { return }
            for process in processes.indices {
                for index in wrong[process] { processes[process].waits[index].isIdle = false }
            }
        }
    }

    private func isAwaited(_ index: Int, process: Int, _ awaited: AwaitedTimes) -> Bool {
        let wait = waits[index]
        // What the thread waits from then on is only the scheduler's delay.
        let end = waker(of: wait).map { min(max($0, wait.begin), wait.end) } ?? wait.end
        let time = monotonic(wait.begin)..<max(monotonic(wait.begin), monotonic(end))
        let length = awaited.length(in: time, process: process, thread: wait.thread)
        return length > min(Self.shortlyAwaited.count, time.length / 2)
    }

    /// When somebody let the thread go on, in ticks; nil unknown.
    private func waker(of wait: Wait) -> UInt64? {
        wait.waker?.at ?? wait.otherProcess.map { wait.end - min(trace.timeScale.ticks($0.late), wait.end) }
    }

    // MARK: - Waits for work

    /// A place in one thread, or in all but the main thread together.
    private struct Place: Hashable {
        /// nil: of several threads.
        var thread: Int?
        var source: Source
        var row: UInt32
        var parent: UInt32
        var systemCall: String?
    }

    /// Indices of the waits by which their threads get work.
    /// - Parameter parents: of the run's processes
    private func waitsForWork(_ parents: [UInt32: UInt32]) -> [Int] {
        let locks = conditionsUsedAsLocks
        let sources = waits.map { wait in isOfLock(wait, locks) ? nil : source(of: wait) }
        func place(_ index: Int, alone: Bool) -> Place {
            let call = waits[index].call
            return Place(
                thread: alone ? waits[index].thread : nil, source: sources[index]!, row: call.row, parent: call.parent,
                systemCall: call.isKnown ? nil : waits[index].systemCall)
        }
        var returns: [Place: Int] = [:]
        for index in waits.indices where sources[index] != nil && !isMain(waits[index].thread) {
            returns[place(index, alone: false), default: 0] += 1
        }
        lazy var ready = readyTicks // reads the trace once more
        return threads.indices.flatMap { thread -> [Int] in
            let own = waitsOfThread[thread].filter { sources[$0] != nil }
            guard !own.isEmpty else { return [] }
            let inputs = inputs(of: thread, sources), isMain = isMain(thread)
            return Dictionary(grouping: own) { place($0, alone: true) }.flatMap { key, all -> [Int] in
                guard isOutermost(key.source, all, among: inputs) else { return [] }
                if isMain { return key.source == .event && all.count >= Self.leastReturns ? ofMain(all, parents, ready: ready) : [] }
                // A task of a pool may sleep once in each thread: that is none that a thread comes back to.
                let count = key.source == .sleep ? all.count : returns[place(all[0], alone: false)] ?? 0
                return count >= Self.leastReturns ? all : all.filter { isLast($0) }
            }
        }
    }

    /// The thread waited until its end, or was told to end.
    private func isLast(_ index: Int) -> Bool {
        let life = threads[waits[index].thread].life
        return waits[index].end >= life.upperBound - min(trace.timeScale.ticks(Self.shortlyAwaited), life.upperBound)
    }

    private func isMain(_ thread: Int) -> Bool { threads[thread].tid == trace.header.pid }

    private func source(of wait: Wait) -> Source? {
        guard wait.kind != .processor, wait.holder == nil, !isOfAgent(wait) else { return nil }
        let name = name(wait.call.row) ?? wait.systemCall ?? ""
        if wait.kind == .event || wait.kind == .timer || Self.eventCalls.contains(name) { return .event }
        if wait.kind == .sleep { return .sleep }
        let isMeeting =
            Self.meetings.contains(name) || name.hasSuffix("Barrier::wait")
            || self.name(wait.call.parent).map { Self.meetings.contains($0) } ?? false
        return wait.kind == .condition && !isMeeting ? .condition : nil
    }

    /// Objects of conditions whose waiters let each other go on, as those of Python's interpreter lock do.
    private var conditionsUsedAsLocks: Set<UInt64> {
        struct User: Hashable {
            var object: UInt64
            var thread: Int
        }
        let all = waits.filter { $0.kind == .condition && $0.call.argument != noArgument }
        let waiters = Set(all.map { User(object: $0.call.argument, thread: $0.thread) })
        return Set(
            all.filter { wait in
                wait.waker.map { waiters.contains(User(object: wait.call.argument, thread: $0.thread)) } ?? false
            }.map { $0.call.argument })
    }

    private func isOfLock(_ wait: Wait, _ locks: Set<UInt64>) -> Bool {
        wait.kind == .condition && wait.call.argument != noArgument && locks.contains(wait.call.argument)
    }

    // MARK: - The outermost

    /// A wait for something that another thread or process sends, in the order of time.
    private struct Input {
        var begin: UInt64
        var depth: UInt32
        var isCondition: Bool
    }

    private func inputs(of thread: Int, _ sources: [Source?]) -> [Input] {
        waitsOfThread[thread].compactMap { index in
            let wait = waits[index]
            guard sources[index] == .event || [.event, .timer, .condition, .pipe, .socket, .terminal].contains(wait.kind) else {
                return nil
            }
            return Input(begin: wait.begin, depth: wait.call.depth, isCondition: wait.kind == .condition)
        }
    }

    /// Between the first and the last of its waits at a place, a thread waits nowhere further out for something: what is further in, or
    /// beside a condition, may be the answer to a question of its own. It sleeps for work only if it does nothing else but run and read.
    private func isOutermost(_ source: Source, _ all: [Int], among inputs: [Input]) -> Bool {
        if source == .sleep {
            return (all[0]...all[all.count - 1]).count { ![.processor, .disk].contains(waits[$0].kind) } == all.count
        }
        let first = waits[all[0]].begin, last = waits[all[all.count - 1]].begin
        let depth = all.map { waits[$0].call.depth }.min() ?? 0
        var index = bisect(inputs.count) { inputs[$0].begin < first }
        while index < inputs.count, inputs[index].begin <= last {
            let input = inputs[index]
            if input.depth < depth { return false }
            if source == .condition, input.depth == depth, !input.isCondition { return false }
            index += 1
        }
        return true
    }

    // MARK: - The main thread

    /// Returns the main thread's waits at a place that began after it was ready, and that neither another thread of its process ended
    /// nor a process that it has started; none where those ended most, as far as it was seen who did: it waits for them.
    private func ofMain(_ all: [Int], _ parents: [UInt32: UInt32], ready: @autoclosure () -> UInt64?) -> [Int] {
        let own = Set(all.filter { waits[$0].waker != nil || waits[$0].otherProcess.map { isDescendant($0.pid, parents) } ?? false })
        let seen = all.count { waits[$0].waker != nil || waits[$0].otherProcess != nil || !members(of: waits[$0]).isEmpty }
        guard own.count * 2 <= seen, let ready = ready() else { return [] }
        return all.filter { waits[$0].begin >= ready && !own.contains($0) }
    }

    private func isDescendant(_ pid: UInt32, _ parents: [UInt32: UInt32]) -> Bool {
        var pid = pid, steps = 0 // a number may be used again: no chain is longer than there are processes
        while let parent = parents[pid], steps < parents.count {
            if parent == trace.header.pid { return true }
            (pid, steps) = (parent, steps + 1)
        }
        return false
    }

    /// When the process was ready, 0 for one that was forked and has executed nothing; nil: it was not.
    private var readyTicks: UInt64? {
        guard trace.metadata.start.phase(.agent) != nil else { return 0 }
        return StartStages(trace.narrowed(to: .whole)).all.first { $0.kind == "ready" }?.ticks.lowerBound
    }
}

/// The times in which a thread that was not idle waited for another: for what it held, or until it let the thread go on.
private struct AwaitedTimes {
    private struct Thread: Hashable {
        var process: Int
        var thread: Int
    }
    /// CLOCK_MONOTONIC: in order, none touches another.
    private var times: [Thread: [Range<Int64>]] = [:]

    init(_ processes: [WaitSearch]) {
        let processOfBegin = Dictionary(
            processes.enumerated().map { ($1.trace.header.first.monotonic_ns, $0) }, uniquingKeysWith: { first, _ in first })
        let processesOfPid = Dictionary(grouping: processes.indices) { processes[$0].trace.header.pid }
        for (process, search) in processes.enumerated() {
            // A process that waits for the end of another does not wait for a thread of it.
            for wait in search.waits where !wait.isIdle && wait.kind != .processor && wait.kind != .child {
                let begin = search.monotonic(wait.begin)
                func add(_ from: Int64, _ until: Int64, _ process: Int, _ thread: Int) {
                    if from < until { times[Thread(process: process, thread: thread), default: []].append(from..<until) }
                }
                if let holder = wait.holder {
                    let from = max(wait.begin, min(holder.since, wait.end)), until = max(min(wait.end, holder.until), from)
                    add(search.monotonic(from), search.monotonic(until), process, holder.thread)
                }
                if let waker = wait.waker {
                    add(begin, search.monotonic(min(waker.at, wait.end)), process, waker.thread)
                } else if let other = wait.otherProcess, let owner = processOfBegin[other.begun] {
                    let end = search.monotonic(wait.end) &- Int64(truncatingIfNeeded: other.late.count)
                    for thread in processes[owner].threads.indices where processes[owner].threads[thread].tid == other.tid {
                        add(begin, end, owner, thread)
                    }
                } else if wait.peers.count == 1, wait.kind != .event {
                    for owner in processesOfPid[wait.peers[0].pid] ?? [] {
                        for thread in processes[owner].threads.indices { add(begin, search.monotonic(wait.end), owner, thread) }
                    }
                }
            }
        }
        times = times.mapValues { all in
            all.sorted { $0.lowerBound < $1.lowerBound }.reduce(into: []) { merged, one in
                if let last = merged.last, one.lowerBound <= last.upperBound {
                    merged[merged.count - 1] = last.lowerBound..<max(last.upperBound, one.upperBound)
                } else {
                    merged.append(one)
                }
            }
        }
    }

    /// How long somebody waited for the thread in that time.
    func length(in time: Range<Int64>, process: Int, thread: Int) -> UInt64 {
        guard let all = times[Thread(process: process, thread: thread)] else { return 0 }
        var index = bisect(all.count) { all[$0].upperBound <= time.lowerBound }, length: UInt64 = 0
        while index < all.count, all[index].lowerBound < time.upperBound {
            length &+= all[index].clamped(to: time).length
            index += 1
        }
        return length
    }
}

extension Range<Int64> {
    /// Any two moments of a damaged trace are this far apart.
    fileprivate var length: UInt64 { UInt64(bitPattern: upperBound &- lowerBound) }
}

// MARK: - Sums

/// The idle waits of one thread in one call.
package struct IdleTotals: Sendable {
    let process: Int
    package let thread: Int
    package let kind: WaitKind
    let call: OpenCall
    let systemCall: String?
    package private(set) var waits = 0
    package private(set) var duration = Nanoseconds(0)

    private struct Key: Hashable {
        var process: Int
        var thread: Int
        var row: UInt32
        var caller: String?
        var systemCall: String?
    }

    private init(process: Int, _ wait: Wait) {
        (self.process, thread, kind, call) = (process, wait.thread, wait.kind, wait.call)
        systemCall = wait.call.isKnown ? nil : wait.systemCall
    }

    /// The longest first.
    static func all(_ waits: [(process: Int, wait: Int)], _ explanations: [WaitExplanation]) -> [IdleTotals] {
        var all: [Key: IdleTotals] = [:]
        for (process, index) in waits {
            let explanation = explanations[process], wait = explanation.search.waits[index]
            let key = Key(
                process: process, thread: wait.thread, row: wait.call.row, caller: explanation.site(of: wait.call),
                systemCall: wait.call.isKnown ? nil : wait.systemCall)
            all[key, default: IdleTotals(process: process, wait)].waits += 1
            all[key]!.duration.count &+= explanation.length(wait.duration).count
        }
        return all.values.sorted {
            ($0.duration, $1.process, $1.thread, $1.call.row) > ($1.duration, $0.process, $0.thread, $0.call.row)
        }
    }
}

struct IdleRow: Record {
    let explanation: WaitExplanation
    let totals: IdleTotals

    static let members = declare {
        Member("thread", "name", \.thread.name)
        Member("tid", \.thread.tid)
        Member("pid", \.explanation.search.trace.header.pid)
        Member("kind", \.totals.kind)
        Member("function", "the recorded call", \.name)
        Member("system_call", "where no recorded call shows what was waited for", \.totals.systemCall)
        Member("caller", "where that call was made: the line, with call sites, or the recorded function") {
            $0.explanation.site(of: $0.totals.call)
        }
        Member("waits", \.totals.waits)
        Member("duration_ns", \.totals.duration)
    }

    private var thread: ThreadStates { explanation.search.threads[totals.thread] }
    private var name: String? { explanation.search.name(totals.call.row) }
}
