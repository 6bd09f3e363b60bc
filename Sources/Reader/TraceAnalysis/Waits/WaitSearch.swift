// The waits of a process. Where the kernel has reported switches, a wait is an off-CPU stretch, and the call that was innermost
// then shows what for. Where it has not, the calls that can do nothing but wait are the waits, as long as they took.
import CTraceLayout
import Presentation
import TraceFormat

package struct WaitSearch: Sendable {
    package let trace: TraceFile
    package let threads: [ThreadStates]
    /// Why the trace does not have when threads were off-CPU: then the waits are the lengths of calls. nil: it has.
    package let noSwitches: String?
    /// Times in which tasks of the agent worked for a thread that waited for them: by thread id, in the order of time.
    private let agentsWork: [UInt32: [Range<UInt64>]]
    /// Waits for those tasks, which are not the program's own.
    package private(set) var agentsWaits: (count: UInt64, ticks: UInt64) = (0, 0)
    /// Thread by thread, in the order of time.
    package internal(set) var waits: [Wait] = []
    /// Range of `waits` that belongs to each thread.
    private(set) var waitsOfThread: [Range<Int>] = []
    /// Off-CPU stretches of each thread and their reasons, in the order of time; without context switches, its calls that wait.
    private(set) var parts: [[Part]] = []
    /// Texts about what could not be found out, one line each.
    package private(set) var notes: [String] = []
    struct Part: BitwiseCopyable, Sendable {
        var begin: UInt64
        var end: UInt64
        var kind: WaitKind
        /// Index of the wait that it is of; nil: the agent had the thread wait.
        var wait: Int?
    }
    let functions: [WaitingFunction?]
    /// Library part of each function, by row.
    private let libraryParts: [LibraryPart]
    let samples: [UInt32: [KernelRecords.Sample]]
    /// The program's page faults in the window, with the index of the thread.
    let faults: [(thread: Int, fault: KernelRecords.PageFault)]
    /// Evidence of what the process's descriptors refer to, by number: from the calls that made them, from threads that were found waiting
    /// for them, and from the recorder's search for the peers of what somebody waits for.
    let knownDescriptors: [UInt64: [DescriptorUse.Evidence]]
    let opened: OpenedDescriptors
    let openPeers: [KernelRecords.Descriptor]
    /// Descriptors of waits on several at once (`poll` and its kin), by thread id.
    let polled: [UInt32: [KernelRecords.Polled]]
    private let priorities: [UInt32: [KernelRecords.Priority]]
    let table: FunctionNames
    private var unknownFunctions: [UInt32] = []

    /// A call that takes less can do so without having waited.
    static let leastCall = Nanoseconds(10_000)
    /// Bytes of the largest object of a function that runs something once: Swift's (lib/Threading/Linux.h).
    private static let mostOfOnce: UInt64 = 16
    /// From where a page has come to the moment that the kernel says so: 5 us are usual.
    static let longestArrival = Nanoseconds(100_000)
    /// A thread is looked at when it has been off-CPU for long, so that what it was found in is not another wait.
    private static let leastFound = Nanoseconds(5_000_000)
    /// A call with a time limit was woken when it ran again so soon.
    private static let promptness = Nanoseconds(1_000_000)

    package init(_ trace: TraceFile, workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil) {
        let records = KernelRecords(trace)
        self.trace = trace
        noSwitches = trace.noSwitches
        table = FunctionNames(trace.metadata)
        functions = WaitingFunction.all(table, of: basename(trace.program))
        libraryParts = WaitingFunction.parts(table, functions)
        let states = ThreadStates.all(trace, records)
        threads = states.filter { !$0.isAgents }
        agentsWork = Dictionary(grouping: states.filter { $0.isAgents && $0.by != nil }, by: { $0.by! }).mapValues { $0.map(\.life) }
        samples = records.samples
        opened = OpenedDescriptors(trace)
        openPeers = records.descriptors + opened.descriptors
        polled = records.polled
        priorities = records.priorities
        knownDescriptors = DescriptorUse.found(opened, records)
        faults = threads.enumerated().flatMap { index, thread in
            (records.faults[thread.tid] ?? []).filter {
                !$0.isOfAgent && thread.life.contains($0.at) && trace.window.touches($0.at, $0.at)
            }
            .map { (index, $0) }
        }
        if records.damagedRecords > 0 {
            notes.append("\(counted(records.damagedRecords, "damaged kernel record")) skipped")
        }
        if let lost = trace.metadata.kernel?.lost, lost > 0 {
            notes.append("\(counted(lost, "kernel record")) lost: some states are unknown")
        }
        progress.part(0, 0.5) {
            if noSwitches == nil { findStretches(records, workers, progress) } else { findCalls(workers, progress) }
        }
        progress.part(0.5, 0.65) { findDescriptors(workers: workers, progress: progress) }
        progress.part(0.65, 0.85) {
            findHolders(workers, progress)
            findLoaderLock(workers, progress)
        }
        progress.part(0.85, 1) { findSitesOfHolders(workers, progress) }
        findEnds()
    }

    /// How many threads of the program that the kernel has reported made no call that was recorded.
    package var silentThreads: Int { threads.count { $0.thread == nil } }

    /// As people call it; nil: no call.
    package func name(_ row: UInt32) -> String? {
        if row == 0 { return nil }
        let index = Int(row) - 1
        if index < table.rows.count { return table.rows[index].name }
        let unknown = index - table.rows.count
        return unknown < unknownFunctions.count ? FunctionNames.unknownName(unknownFunctions[unknown]) : nil
    }

    /// Name of the file that a function is in; nil unknown.
    func module(_ row: UInt32) -> String? {
        let index = Int(row) - 1
        return table.rows.indices.contains(index) && !table.rows[index].module.isEmpty ? table.rows[index].module : nil
    }

    /// The agent reads and writes files before the program's first call.
    func isOfAgent(_ wait: Wait) -> Bool {
        !wait.call.isKnown && trace.agentStart?.contains(wait.begin) == true && threads[wait.thread].tid == trace.header.pid
    }

    /// How the scheduler chose the thread, as it was last reported before that moment.
    func priority(_ thread: Int, at moment: UInt64) -> SchedulerPriority? {
        guard let all = priorities[threads[thread].tid] else { return nil }
        let next = bisect(all.count) { all[$0].at <= moment }
        return next > 0 ? all[next - 1].priority : nil
    }

    /// When the thread ran again after that.
    func late(_ thread: Int, after moment: UInt64) -> UInt64? { threads[thread].runs(after: moment).map { $0 - moment } }

    /// Sets a wait's kind and object to what its descriptor was found open on.
    mutating func settle(_ wait: Int, _ target: DescriptorUse.Evidence) {
        settle(wait, target.kind, target.object)
        waits[wait].isOpenOn = target.object != nil
    }
    mutating func settle(_ wait: Int, _ kind: WaitKind, _ object: String?) {
        waits[wait].kind = kind
        waits[wait].object = object ?? waits[wait].object
        let thread = waits[wait].thread
        for index in parts[thread].indices where parts[thread][index].wait == wait { parts[thread][index].kind = kind }
    }

    /// Index of each thread that has calls, by its number in the trace.
    var indexOfThread: [UInt32: Int] {
        Dictionary(
            threads.enumerated().compactMap { index, thread in thread.thread.map { ($0, index) } }, uniquingKeysWith: { first, _ in first })
    }

    /// Names of all functions of the table.
    var names: [String] { table.rows.map { $0.name } }

    func function(_ row: UInt32) -> WaitingFunction? { Int(row) < functions.count ? functions[Int(row)] : nil }

    func function(of call: OpenCall) -> WaitingFunction? {
        function(call.row).flatMap { $0.act == .waitsOrSignals && call.argument == noArgument ? nil : $0 }
    }

    /// Text for the reason of a wait that is not the program's own.
    static let forAgent = "for the agent"

    /// Returns what could not be found out and what is not shown of all processes, one line each.
    package static func notes(_ all: [WaitSearch]) -> [String] {
        let count = all.reduce(0) { $0 &+ $1.agentsWaits.count }
        let time = all.reduce(UInt64(0)) { $0 &+ $1.trace.timeScale.nanoseconds($1.agentsWaits.ticks).count }
        let losses = Losses(all.map { $0.trace }), missing = (losses.lost + losses.filtered).joined(separator: ", ")
        // One that has executed another program, or was killed, has all of its waits.
        let stopped = Losses(all.map { $0.trace }.filter { Int($0.header.state) == TRACE_STOPPED }).state
        return all.flatMap { $0.notes } + stopped
            + (missing.isEmpty ? [] : ["\(missing): what threads waited for in them is not known"])
            + (count == 0 ? [] : ["not shown: \(counted(count, "wait")) \(forAgent), \(readable(Nanoseconds(time)))"])
    }

    /// Returns why there are no switches, one line for each reason.
    static func missing(_ all: [WaitSearch]) -> [String] {
        all.compactMap { $0.noSwitches }.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// Threads that somebody may choose from, with their processes.
    var namedThreads: [(pid: UInt32, tid: UInt32, name: String)] { threads.map { (trace.header.pid, $0.tid, $0.name) } }

    /// "git", or "6 processes (10 traces)".
    static func title(_ all: [WaitSearch]) -> String {
        if all.count == 1 { return all[0].trace.processName }
        let processes = Set(all.map { $0.trace.header.pid }).count
        return counted(processes, "process", "processes") + (processes < all.count ? " (\(counted(all.count, "trace")))" : "")
    }

    // MARK: - Off-CPU

    private mutating func findStretches(_ records: KernelRecords, _ workers: Int, _ progress: ReadingProgress?) {
        let stretches = threads.map { thread in
            thread.stretches.filter { $0.state == .waiting || $0.state == .runnable }.flatMap { stretch in trace.window.parts(stretch) }
        }
        var moments: [UInt32: [UInt64]] = [:]
        for (index, thread) in threads.enumerated() {
            if let number = thread.thread { moments[number] = stretches[index].map { $0.begin } }
        }
        var open = OpenCalls.at(moments, in: trace, table, workers: workers, progress: progress)
        unknownFunctions = open.unknownFunctions
        lookOutwards(&open.calls, at: moments, workers, progress)
        let futexes = lookAroundFutexes(&open.calls, at: moments, workers, progress)
        for (index, thread) in threads.enumerated() {
            let first = waits.count, calls = thread.thread.flatMap { open.calls[$0] } ?? []
            let futexes = thread.thread.flatMap { futexes[$0] } ?? [:]
            parts.append([])
            for (number, part) in stretches[index].enumerated() {
                add(part, number < calls.count ? calls[number] : OpenCall(), futexes[number], of: index, records, first: first)
            }
            waitsOfThread.append(first..<waits.count)
        }
    }

    /// Replaces an innermost call that a library makes for another of its calls by that one, if it waits: `__lll_lock_wait` by the
    /// `pthread_mutex_lock` around it.
    private func lookOutwards(
        _ calls: inout [UInt32: [OpenCall]], at moments: [UInt32: [UInt64]], _ workers: Int, _ progress: ReadingProgress?
    ) {
        let parts = libraryParts
        for (thread, index, call) in self.calls(around: calls, at: moments, where: { $0.isSaidByCaller(parts) }, workers, progress)
        where function(of: call)?.kind != nil {
            calls[thread]![index] = call
        }
    }

    /// Replaces a futex call by the innermost call around it that waits, if that waits by futex calls: `syscall` by `g_cond_wait`. What
    /// is run once may wait for words of its own: then the word must be within the object.
    /// - Returns: by thread and index, the futex calls that say what their replacements do not: on which word
    private func lookAroundFutexes(
        _ calls: inout [UInt32: [OpenCall]], at moments: [UInt32: [UInt64]], _ workers: Int, _ progress: ReadingProgress?
    ) -> [UInt32: [Int: OpenCall]] {
        let functions = functions
        let around = self.calls(
            around: calls, at: moments,
            where: { call in
                guard Int(call.row) < functions.count, let function = functions[Int(call.row)] else { return false }
                return function.isFutexCall && call.argument != noArgument
            },
            passingOver: { call in
                guard Int(call.row) < functions.count, let function = functions[Int(call.row)] else { return true }
                return function.kind == nil || function.isFutexCall
            }, workers, progress)
        var futexes: [UInt32: [Int: OpenCall]] = [:]
        for (thread, index, call) in around {
            guard let function = function(of: call), function.waitsByFutexCall else { continue }
            let futex = calls[thread]![index]
            if function.act == .runs, call.argument == noArgument || futex.argument &- call.argument >= Self.mostOfOnce { continue }
            calls[thread]![index] = call
            if function.act == nil || call.argument == noArgument { futexes[thread, default: [:]][index] = futex }
        }
        return futexes
    }

    /// Finds the calls around those of which `isAsked` is true, not counting those to be passed over: for each its thread and index.
    private func calls(
        around calls: [UInt32: [OpenCall]], at moments: [UInt32: [UInt64]], where isAsked: @escaping @Sendable (OpenCall) -> Bool,
        passingOver isPassedOver: (@Sendable (OpenCall) -> Bool)? = nil, _ workers: Int, _ progress: ReadingProgress?
    ) -> [(thread: UInt32, index: Int, call: OpenCall)] {
        let asked = calls.compactMapValues { all -> [Int]? in
            let indices = all.indices.filter { isAsked(all[$0]) }
            return indices.isEmpty ? nil : indices
        }
        if asked.isEmpty { return [] }
        let around = OpenCalls.at(
            asked.reduce(into: [:]) { result, one in result[one.key] = one.value.map { moments[one.key]![$0] } }, in: trace, table,
            passingOver: isPassedOver ?? isAsked, workers: workers, progress: progress)
        return asked.flatMap { thread, indices in
            zip(indices, around.calls[thread] ?? []).map { (thread, $0, $1) }
        }
    }

    private mutating func add(
        _ part: ThreadStates.Stretch, _ call: OpenCall, _ futex: OpenCall?, of thread: Int, _ records: KernelRecords, first: Int
    ) {
        let length = part.end - part.begin
        var wait = Wait(
            thread: thread, begin: part.begin, end: part.end, duration: length, count: 1, kind: .processor, call: call, futex: futex)
        let page = part.state == .waiting ? self.page(at: part.end, after: part.begin, records.faults[threads[thread].tid] ?? []) : nil
        // In a call that waits, the agent's page fault is incidental.
        let isForAgentsPage = page?.isOfAgent == true && function(of: call)?.kind == nil
        if part.state == .waiting, isForAgent(part, threads[thread].tid) || isForAgentsPage {
            parts[thread].append(Part(begin: part.begin, end: part.end, kind: .other, wait: nil))
            agentsWaits.count += 1
            agentsWaits.ticks &+= part.end - part.begin
            return
        }
        if part.state == .waiting { explain(&wait, page, records) }
        // Woken too early, it waits again in the same call: extend the earlier wait.
        if let last = waits.indices.last, last >= first, wait.kind != .processor, function(of: call)?.kind != nil,
            let earlier = waits[first...].lastIndex(where: { $0.kind != .processor }), waits[earlier].call.isSame(as: call),
            waits[earlier].kind == wait.kind
        {
            waits[earlier].end = wait.end
            waits[earlier].duration += wait.duration
            waits[earlier].count += 1
            waits[earlier].object = waits[earlier].object ?? wait.object
            waits[earlier].futex = waits[earlier].futex ?? wait.futex
            parts[thread].append(Part(begin: part.begin, end: part.end, kind: wait.kind, wait: earlier))
        } else {
            parts[thread].append(Part(begin: part.begin, end: part.end, kind: wait.kind, wait: waits.count))
            waits.append(wait)
        }
    }

    private func isForAgent(_ part: ThreadStates.Stretch, _ tid: UInt32) -> Bool {
        guard let work = agentsWork[tid] else { return false }
        let next = bisect(work.count) { work[$0].upperBound < part.begin }
        return next < work.count && work[next].lowerBound <= part.end
    }

    /// Sets the kind and the object of a wait by the call that was open, by a page that came, and by what the thread was found in.
    private func explain(_ wait: inout Wait, _ page: KernelRecords.PageFault?, _ records: KernelRecords) {
        let tid = threads[wait.thread].tid, function = function(of: wait.call)
        let found = records.waits[tid].flatMap { all -> KernelRecords.FoundWait? in
            let index = bisect(all.count) { all[$0].at <= wait.end }
            let least = wait.begin &+ trace.timeScale.ticks(Self.leastFound)
            return index > 0 && all[index - 1].at >= least ? all[index - 1] : nil
        }.map { WaitEvidence($0, architecture: trace.header.elf_machine) }
        wait.kind = function?.kind ?? .other
        if let word = found?.word, let function, function.waitsByFutexCall, function.act != nil, wait.act.argument == noArgument {
            wait.futex = wait.call
            wait.futex!.argument = word
        }
        wait.object = wait.futex.flatMap { self.function($0.row)?.text($0.argument) } ?? function?.text(wait.call.argument)
        // What is run once may wait itself, by calls that are not recorded.
        if function?.act == .runs, page != nil || found.map({ $0.kind != .lock }) ?? false { wait.kind = .other }
        if let found, wait.kind.isOfDescriptors {
            // A call of the program's says more than the system call in it, but for what its descriptor is open on.
            if function?.kind == nil || function?.act == .runs {
                (wait.kind, wait.systemCall, wait.object) = (found.kind, found.systemCall, found.object ?? wait.object)
                // Others had begun to read the page, so that the fault is a minor one, which may be recorded.
                if found.isOfPage { wait.object = path(at: wait.end, records.faults[tid] ?? []) ?? wait.object }
            } else if found.kind.isOfDescriptors, found.kind != .other || found.object != nil {
                (wait.kind, wait.object) = (found.kind, found.object ?? wait.object)
                wait.isOpenOn = found.object != nil
            }
        }
        if let page, wait.kind == .other {
            wait.kind = .disk
            if !page.path.isEmpty { wait.object = page.path }
        }
    }

    /// The file of the page that came as a wait ended.
    private func path(at end: UInt64, _ faults: [KernelRecords.PageFault]) -> String? {
        let first = bisect(faults.count) { faults[$0].at < end }
        guard first < faults.count, faults[first].at <= end &+ trace.timeScale.ticks(Self.longestArrival) else { return nil }
        return faults[first].path.isEmpty ? nil : faults[first].path
    }

    /// The major fault whose page the thread waited for until then.
    private func page(at end: UInt64, after begin: UInt64, _ faults: [KernelRecords.PageFault]) -> KernelRecords.PageFault? {
        let last = end &+ trace.timeScale.ticks(Self.longestArrival)
        let first = bisect(faults.count) { faults[$0].at < begin }
        return faults[first...].prefix { $0.at <= last }.first { $0.isMajor }
    }

    // MARK: - Calls alone

    private mutating func findCalls(_ workers: Int, _ progress: ReadingProgress?) {
        let least = trace.timeScale.ticks(Self.leastCall), window = trace.window
        let found = ThreadCalls.all(
            in: trace.narrowed(to: .whole), table,
            functions.map { $0?.kind != nil && $0?.act != .waitsOrSignals && $0?.act != .runs }, workers: workers, progress: progress
        ) { $0.end >= $0.enter && $0.end - $0.enter >= least && window.touches($0.enter, $0.end) }
        if found == nil { notes.append("there are too many blocking calls to show them") }
        let calls = Dictionary(grouping: found ?? []) { $0.thread }
        for (index, thread) in threads.enumerated() {
            let first = waits.count
            for one in (thread.thread.flatMap { calls[$0] } ?? []).sorted(by: {
                ($0.call.enter, $1.call.depth) < ($1.call.enter, $0.call.depth)
            }) {
                let parts = window.parts(ThreadStates.Stretch(begin: one.call.enter, end: one.call.end, state: .waiting))
                // A call that waits in another: waitpid in system.
                guard let begin = parts.first?.begin, let end = parts.last?.end, waits.count == first || waits[waits.count - 1].end < end
                else { continue }
                let function = function(one.call.row)
                waits.append(
                    Wait(
                        thread: index, begin: begin, end: end, duration: window.length(from: begin, to: end),
                        kind: function?.kind ?? .other,
                        call: one.call, object: function?.text(one.call.argument)))
            }
            waitsOfThread.append(first..<waits.count)
            parts.append((first..<waits.count).map { Part(begin: waits[$0].begin, end: waits[$0].end, kind: waits[$0].kind, wait: $0) })
        }
    }

    // MARK: - Who

    private func key(_ wait: Wait) -> CallKey? {
        threads[wait.thread].thread.map { CallKey(thread: $0, row: wait.act.row, enter: wait.act.enter) }
    }

    private mutating func findHolders(_ workers: Int, _ progress: ReadingProgress?) {
        let isAct = functions.map { $0?.act != nil }
        let wanted = waits.indices.filter { index in
            let act = waits[index].act
            guard waits[index].kind != .processor, act.argument != noArgument, let function = function(act.row) else { return false }
            return function.act != nil && (function.act != .runs || waits[index].kind == .lock)
        }
        guard !wanted.isEmpty else { return }
        let functions = functions
        let awaited = Dictionary(grouping: wanted) { waits[$0].act.argument }.mapValues {
            $0.map { waits[$0].begin..<max(waits[$0].begin, waits[$0].end) }
        }
        let pairs = LockPairs(awaited, functions)
        // A lock may have been taken before the window.
        let whole = trace.narrowed(to: .whole)
        let found = ThreadCalls.onLocks(in: whole, table, isAct, pairs, workers: workers, progress: progress) { call in
            functions[Int(call.row)]?.act == .suspends || call.argument != noArgument && pairs.has(call.argument)
        }
        guard let (acts, takings) = found else {
            notes.append("the locks that threads waited for were taken too often to find who held them")
            return
        }
        var suspended: [UInt32: [Range<UInt64>]] = [:]
        for one in acts where functions[Int(one.call.row)]?.act == .suspends {
            suspended[one.thread, default: []].append(one.call.enter..<max(one.end, one.call.enter))
        }
        for thread in suspended.keys { suspended[thread]!.sort { $0.lowerBound < $1.lowerBound } }
        // A call that waits or signals, and waited, has signalled nobody; nor has one that waited run what others wait for.
        let waiting = Set(
            wanted.filter { [.waitsOrSignals, .runs].contains(function(waits[$0].act.row)?.act) }.compactMap { key(waits[$0]) })
        let others = acts.lazy.filter {
            pairs.has($0.call.argument)
                && !waiting.contains(CallKey(thread: $0.thread, row: $0.call.row, enter: $0.call.enter))
        }
        let histories = Dictionary(grouping: others) { $0.call.argument }.reduce(into: [UInt64: LockHistory]()) {
            $0[$1.key] = LockHistory($1.value, functions, suspended: suspended, takings: takings[$1.key] ?? [])
        }
        let indexOfThread = indexOfThread
        for index in wanted {
            guard let history = histories[waits[index].act.argument] else { continue }
            let wait = waits[index]
            waits[index] = named(wait, history, indexOfThread)
        }
    }

    private func named(_ wait: Wait, _ history: LockHistory, _ indexOfThread: [UInt32: Int]) -> Wait {
        guard let own = threads[wait.thread].thread, let function = function(wait.act.row) else { return wait }
        if function.act == .runs { return run(wait, history.runner(while: own, waitsFrom: wait.begin), indexOfThread) }
        var wait = wait
        let isTimed = self.function(wait.call.row)?.isTimed ?? function.isTimed
        if function.act != .suspends, let hold = history.holder(while: own, waitsFrom: wait.begin, to: wait.end),
            let thread = indexOfThread[hold.act.thread]
        {
            wait.holder = Wait.Holder(thread: thread, since: hold.from, until: hold.until, act: hold.act.call)
            wait.handovers = history.acquisitions(while: own, waitsFrom: wait.begin, to: wait.end)
        }
        let promptly = trace.timeScale.ticks(Self.promptness)
        if let release = history.release(
            for: own, waitingFrom: wait.begin, to: wait.end, alone: function.act == .waitsOrSignals ? promptly : nil),
            let thread = indexOfThread[release.thread]
        {
            let at = release.call.enter, late = late(wait.thread, after: at)
            if !isTimed || late ?? (wait.end - at) <= promptly {
                wait.waker = Wait.Waker(thread: thread, act: release.call, at: at, late: late)
            }
        }
        return wait
    }

    /// Who runs something once holds it to the end of that, and then wakes the others: a little before it returns.
    private func run(_ wait: Wait, _ runner: LockHistory.Hold?, _ indexOfThread: [UInt32: Int]) -> Wait {
        guard let runner, let thread = indexOfThread[runner.act.thread] else { return wait }
        var wait = wait
        wait.holder = Wait.Holder(thread: thread, since: runner.from, until: runner.until, act: runner.act.call)
        if runner.until != .max {
            let late = runner.until < wait.end ? wait.end - runner.until : nil
            wait.waker = Wait.Waker(thread: thread, act: runner.act.call, at: min(runner.until, wait.end), late: late)
        }
        return wait
    }

    /// Finds what the holders of locks were doing as others began to wait for them.
    private mutating func findSitesOfHolders(_ workers: Int, _ progress: ReadingProgress?) {
        var asked: [UInt32: [(moment: UInt64, wait: Int)]] = [:]
        for (index, wait) in waits.enumerated() {
            guard let holder = wait.holder, let thread = threads[holder.thread].thread else { continue }
            asked[thread, default: []].append((max(wait.begin, holder.since), index))
        }
        for thread in asked.keys { asked[thread]!.sort { $0.moment < $1.moment } }
        let isPassedOver = zip(functions, libraryParts).map { $0?.kind != nil || $0?.act != nil || $1 == .inner }
        let open = OpenCalls.at(
            asked.mapValues { $0.map { $0.moment } }, in: trace, table,
            passingOver: { Int($0.row) < isPassedOver.count && isPassedOver[Int($0.row)] }, workers: workers, progress: progress)
        for (thread, all) in asked {
            for (number, one) in all.enumerated() {
                if let call = open.calls[thread]?[number] { waits[one.wait].holder?.inside = call }
            }
        }
        if unknownFunctions.isEmpty { unknownFunctions = open.unknownFunctions }
    }

    /// Finds the thread whose end each join waited for: one that ended during the wait. If several did, it is the one that the call
    /// names; if that is not known, none.
    private mutating func findEnds() {
        let ends = threads.indices.compactMap { index -> (thread: Int, from: UInt64, to: UInt64)? in
            let recorded = threads[index].thread.flatMap { trace.metadata.threads[$0]?.ended?.raw }
            let seen = threads[index].hasEnded ? threads[index].life.upperBound : recorded
            return seen.map { (index, min(recorded ?? $0, $0), $0) }
        }
        for index in waits.indices where waits[index].kind == .join {
            let wait = waits[index]
            // The kernel says that it has ended after it has let go on who waits.
            let ended = ends.filter { $0.thread != wait.thread && $0.to >= wait.begin && $0.from <= wait.end }
            let byName = Dictionary(grouping: ended) { isNamed($0.thread, by: wait.call.argument) }
            let candidates = byName[true] ?? byName[nil] ?? []
            guard candidates.count == 1, let one = candidates.first else { continue }
            waits[index].waker = Wait.Waker(
                thread: one.thread, act: OpenCall(), at: one.from, late: late(wait.thread, after: one.from))
        }
    }

    /// nil: not known.
    private func isNamed(_ thread: Int, by handle: UInt64) -> Bool? {
        guard handle != noArgument, let number = threads[thread].thread else { return nil }
        return trace.metadata.threads[number]?.isNamed(by: handle)
    }
}

extension ThreadStates {
    /// The first moment after this one at which it has a CPU after having had none; nil unknown.
    fileprivate func runs(after moment: UInt64) -> UInt64? {
        var index = bisect(stretches.count) { stretches[$0].end <= moment }
        if index < stretches.count, stretches[index].state == .running { index += 1 }
        while index < stretches.count {
            if stretches[index].state == .running { return stretches[index].begin }
            if stretches[index].state == .unknown { return nil }
            index += 1
        }
        return nil
    }
}
