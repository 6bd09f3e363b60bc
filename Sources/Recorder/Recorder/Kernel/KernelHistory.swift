// Kernel events of all processes of a run, sorted to the images that they are about.
import CRecorder
import CTraceLayout
import Glibc
import Unwinding

package struct KernelHistory {
    private final class Process {
        let pid: pid_t
        var images: [ImageHistory]
        var files: MappedFiles
        var threads: Set<pid_t>
        /// As they were last reported, by thread.
        var priorities: [pid_t: ThreadPriority] = [:]
        /// Threads of a process that was there before which were waiting when they were looked at, and when that was: unless the kernel has reported
        /// another change before, they had been since they last ran.
        var foundWaiting: [pid_t: UInt64] = [:]
        /// When one of its threads was looked at before its wait was long.
        var earlyLook: UInt64 = 0
        /// The process that began it, and which of its threads.
        private(set) weak var parent: Process?
        let parentPid: pid_t
        let by: pid_t

        init(_ pid: pid_t, begun: UInt64, parent: Process? = nil, by: pid_t = 0) {
            self.pid = pid
            self.parent = parent
            parentPid = parent?.pid ?? 0
            self.by = by
            files = parent?.files ?? MappedFiles()
            images = [ImageHistory(begun: begun, parent: parentPid)]
            threads = [pid]
        }

        var image: ImageHistory {
            get { images[images.count - 1] }
            _modify { yield &images[images.count - 1] }
        }
    }
    private struct Thread {
        var tid: pid_t
        var process: Process
        /// Since when it has been off-CPU, waiting; 0: it is not, or was looked at.
        var waits: UInt64
        /// It was found waiting, and its stack was not looked at yet.
        var isStackDue = false
    }
    /// CPU time that something may take: `first`, and one part in `share` of the time since it was first asked for.
    private struct Budget {
        let first: UInt64, share: UInt64
        private var begun: UInt64 = 0, spent: UInt64 = 0

        init(first: UInt64, share: UInt64) { (self.first, self.share) = (first, share) }

        mutating func isLeft(_ now: UInt64) -> Bool {
            if begun == 0 { begun = now }
            return spent <= first + (now - begun) / share
        }
        mutating func spend(since before: UInt64) { spent += KernelWatch.ownTime - before }
    }

    private let storage: KernelStorage
    /// Live processes by pid, and finished ones whose pid may have been reused.
    private var processes: [pid_t: Process] = [:]
    private var over: [pid_t: [ImageHistory]] = [:]
    /// Threads whose switches have been seen; the index of each by thread id; and a likely index by the last bits of that.
    private var threads: [Thread] = []
    private var indices: [pid_t: Int] = [:]
    private var likelyIndices = [Int](repeating: -1, count: 1024)
    private(set) var lost: UInt64 = 0

    /// Processes that have executed a program and were not looked at since.
    private var executed: Set<pid_t> = []
    /// Objects whose peers have been looked for, and when they may be again.
    private var nextSearch: [String: UInt64] = [:]
    /// For searches for peers and priorities, and for stacks of threads that wait.
    private var searches = Budget(first: 50_000_000, share: 50), stacks = Budget(first: 50_000_000, share: 100)

    /// A wait is looked at when it has lasted `longWait`, at most `mostLooks` at one time.
    private static let longWait: UInt64 = 10_000_000, mostLooks = 16
    /// Also sample a few shorter waits, at most one per process per 50 ms, to learn what its descriptors refer to.
    private static let betweenEarlyLooks: UInt64 = 50_000_000, mostEarlyLooks = 4
    /// Peers can change: repeat the search after `peersHold`, or after `noPeersHold` if none was found. The waiter may be in its next wait
    /// already, for an object whose peer is held by a child that is not known of yet.
    private static let peersHold: UInt64 = 1_000_000_000, noPeersHold: UInt64 = 5_000_000
    /// CPU time limit of each step of a search.
    private static let atOnce: UInt64 = 5_000_000
    private static let mostKnown = 4096

    /// - Parameters:
    ///   - begun: CLOCK_MONOTONIC, of a process that was there before; 0: its first exec is still to come
    ///   - threads: those that it has; empty: the first alone
    package init(root: pid_t, begun: UInt64 = 0, threads: Set<pid_t> = [], _ storage: KernelStorage) {
        self.storage = storage
        let process = Process(root, begun: begun)
        processes[root] = process
        if begun == 0 { return }
        process.threads.formUnion(threads)
        for tid in threads.sorted() {
            guard let facts = ProcessFacts(path: "/proc/\(root)/task/\(tid)/status") else { continue }
            process.image.add(task: TRACE_TASK_NAMED, tid: tid, name: facts.name, at: begun, storage)
            guard "SD".contains(facts.state), let index = index(of: tid, in: root) else { continue }
            let now = clockTime()
            process.foundWaiting[tid] = now
            self.threads[index].waits = now
        }
        for map in ProcessMaps(pid: root) where map.name.hasPrefix("/") {
            process.files.add(
                .init(addresses: map.start..<map.end, offset: map.offset, path: map.name, inode: map.inode, isCode: map.isExecutable))
        }
        executed.insert(root) // nobody has seen what its standard streams are
    }

    /// In the order of their times, as what follows.
    package mutating func add(switched kind: UInt16, _ origin: KernelRecord.Origin) {
        guard let index = index(of: origin.tid, in: origin.pid) else { return }
        let process = threads[index].process
        if !process.foundWaiting.isEmpty, let found = process.foundWaiting.removeValue(forKey: origin.tid), found < origin.nanoseconds {
            addWait(of: origin.tid, at: found, to: process)
        }
        threads[index].process.image.add(
            trace_switch(ns: origin.nanoseconds, tid: UInt32(bitPattern: origin.tid), cpu: origin.cpu, kind: kind), storage)
        threads[index].waits = Int(kind) == TRACE_SWITCH_WAITS ? origin.nanoseconds : 0
        threads[index].isStackDue = false
    }

    private func addWait(of tid: pid_t, at found: UInt64, to process: Process) {
        process.image.add(trace_switch(ns: found, tid: UInt32(bitPattern: tid), cpu: 0, kind: UInt16(TRACE_SWITCH_WAITS)), storage)
    }
    /// Adds the waits of threads of which the kernel has reported nothing: they last.
    private func addWaits(of process: Process) {
        for (tid, found) in process.foundWaiting.sorted(by: { $0.key < $1.key }) { addWait(of: tid, at: found, to: process) }
        process.foundWaiting = [:]
    }

    package mutating func add(_ record: KernelRecord, _ origin: KernelRecord.Origin) {
        let pid = origin.pid, tid = origin.tid, now = origin.nanoseconds
        if case .began(_, let parent, let by) = record, pid != parent { begin(process: pid, from: parent, by, at: now) }
        if case .named(TRACE_AGENT_TASK, isExec: false) = record, pid == tid { adopt(pid) }
        if case .lost(let count) = record { lost += count }
        guard let process = processes[pid] else { return }
        switch record {
        case .began(let child, _, let by):
            process.threads.insert(child)
            process.image.add(task: TRACE_TASK_BEGAN, tid: child, by: by, at: now, storage)
        case .ended:
            forget(tid)
            process.image.add(task: TRACE_TASK_ENDED, tid: tid, at: now, storage)
            process.threads.remove(tid)
            if process.pid != pid { processes[pid] = nil }
            if process.threads.isEmpty { end(process, at: now) }
        case .named(let name, let isExec):
            if isExec { exec(process, tid, name, at: now) }
            process.image.add(task: TRACE_TASK_NAMED, tid: tid, name: name, at: now, storage)
        case .mapped(let mapping):
            process.files.add(mapping)
            process.image.map(mapping)
        case .fault(let address, _, let isMajor) where storage.isOfTextFaults:
            guard let path = process.files.code(at: address) else { break }
            process.image.add(TextFault(nanoseconds: now, path: path, isMajor: isMajor))
        case .fault(let address, let code, let isMajor):
            process.image.add(
                isMajor ? TRACE_FAULT_MAJOR : TRACE_FAULT_MINOR, address: address, code: code, file: process.files.fileOffset(of: address),
                origin,
                storage)
        case .unwound(let frames, let isWhole, let isInKernel):
            let flags = (isWhole ? TRACE_SAMPLE_WHOLE : 0) | (isInKernel ? TRACE_SAMPLE_KERNEL : 0)
            process.image.add(sample: frames, flags: flags, origin, storage)
        case .sample, .lost: break
        }
    }

    /// Names of code that the process made while it ran.
    mutating func add(_ code: [MadeCode.Code], of pid: pid_t) {
        // It may be over by now, but no other has its id yet: no other was reported.
        guard let process = processes[pid] else {
            if let last = over[pid]?.indices.last {
                for one in code { over[pid]![last].add(one, storage) }
                over[pid]![last].end(storage)
            }
            return
        }
        for one in code { process.image.add(one, storage) }
    }

    /// Threads that have waited for long by now are looked at, each once a wait. False when nobody waits who was not.
    /// - Parameter unwinder: of their stacks; nil: these are not wanted
    mutating func lookAtWaits(_ now: UInt64, _ unwinder: SampleUnwinder?) -> Bool {
        lookAtExecuted(now)
        var looks = 0, earlyLooks = 0, isAnybodyLeft = false, waiting: [pid_t: Set<String>] = [:]
        for index in threads.indices where threads[index].waits != 0 {
            let thread = threads[index], process = thread.process
            guard thread.waits + Self.longWait <= now, looks < Self.mostLooks else {
                isAnybodyLeft = true
                guard earlyLooks < Self.mostEarlyLooks, process.earlyLook + Self.betweenEarlyLooks <= now else { continue }
                earlyLooks += 1
                process.earlyLook = now
                if let snapshot = WaitSnapshot(pid: process.pid, tid: thread.tid), !snapshot.object.isEmpty {
                    process.image.add(snapshot, storage)
                }
                continue
            }
            looks += 1
            threads[index].waits = 0
            guard let snapshot = WaitSnapshot(pid: process.pid, tid: thread.tid) else { continue }
            process.image.add(snapshot, storage)
            threads[index].isStackDue = unwinder != nil
            waiting[process.pid, default: []].formUnion(snapshot.objectsWithPeers)
        }
        if !waiting.isEmpty { lookAround(waiting, now) }
        if let unwinder, !lookAtStacks(now, unwinder) { isAnybodyLeft = true }
        return isAnybodyLeft
    }

    /// False when there is no time for all of them now: they are looked at later, if they still wait then.
    private mutating func lookAtStacks(_ now: UInt64, _ unwinder: SampleUnwinder) -> Bool {
        for index in threads.indices where threads[index].isStackDue {
            guard stacks.isLeft(now) else { return false }
            let before = KernelWatch.ownTime, thread = threads[index]
            threads[index].isStackDue = false
            if let stack = WaitStack(pid: thread.process.pid, tid: thread.tid, unwinder) { thread.process.image.add(stack, storage) }
            stacks.spend(since: before)
        }
        return true
    }

    /// Adds what programs have as their standard input and outputs: no call of theirs made these.
    private mutating func lookAtExecuted(_ now: UInt64) {
        guard !executed.isEmpty, searches.isLeft(now) else { return }
        let before = KernelWatch.ownTime
        for pid in executed {
            for one in OpenPeer.standard(of: pid) { processes[pid]?.image.add(one, at: clockTime(), storage) }
            if KernelWatch.ownTime >= before + Self.atOnce { break }
        }
        executed = []
        searches.spend(since: before)
    }

    /// Adds what explains long waits: who holds the peers of what is waited for, and the priorities of threads.
    /// - Parameter waiting: by process, what its threads wait for
    private mutating func lookAround(_ waiting: [pid_t: Set<String>], _ now: UInt64) {
        guard searches.isLeft(now) else { return }
        let before = KernelWatch.ownTime
        defer { searches.spend(since: before) }
        for pid in waiting.keys { addPriorities(pid, now) }
        var asked: [String: String] = [:]
        for (pid, objects) in waiting {
            for object in objects where asked[object] == nil && nextSearch[object] ?? 0 <= now {
                if KernelWatch.ownTime >= before + Self.atOnce { break }
                asked[object] = OpenPeer.peer(of: object, of: pid)
            }
        }
        if asked.isEmpty { return }
        // Processes that wait come first, and the others if there is time for them.
        let all = Array(waiting.keys) + processes.keys.filter { waiting[$0] == nil }
        let found = OpenPeer.all(of: asked, in: all, until: KernelWatch.ownTime + Self.atOnce)
        for peer in found { processes[peer.pid]?.image.add(peer, at: clockTime(), storage) }
        if nextSearch.count >= Self.mostKnown { nextSearch = [:] }
        for (object, peer) in asked {
            let known = found.filter { $0.object == (peer.isEmpty ? object : peer) }
            // Who waits at a pipe has one end of it.
            let isKnown = peer.isEmpty ? known.reduce(0) { $0 | $1.access } == TRACE_ACCESS_READ | TRACE_ACCESS_WRITE : !known.isEmpty
            nextSearch[object] = now + (isKnown ? Self.peersHold : Self.noPeersHold)
        }
    }

    private mutating func addPriorities(_ pid: pid_t, _ now: UInt64) {
        guard let process = processes[pid] else { return }
        let found = ThreadPriority.all(of: pid)
        for (tid, priority) in found where process.priorities[tid] != priority {
            process.image.add(priority, of: tid, at: clockTime(), storage)
        }
        process.priorities = found
    }

    /// What there is of a process's image by now; nil: nothing.
    /// - Parameter moment: CLOCK_MONOTONIC, when it had begun
    package mutating func image(of pid: pid_t, at moment: UInt64) -> ImageHistory? {
        if let process = processes[pid], process.pid == pid {
            addWaits(of: process)
            process.image.end(storage)
            if let found = process.images.last(where: { $0.begun <= moment }) { return found }
        }
        return over[pid]?.last { $0.begun <= moment }
    }

    /// No more comes. What there is of each process id, the oldest first.
    /// - Parameter kernel: what its functions are called; asked for only where a sample was in one
    package mutating func end(_ kernel: () -> KernelSymbols? = { KernelSymbols() }) -> [pid_t: [ImageHistory]] {
        for (pid, process) in processes where process.pid == pid { end(process, at: nil) }
        nameKernelFunctions(kernel)
        return over
    }

    private mutating func nameKernelFunctions(_ find: () -> KernelSymbols?) {
        guard over.values.contains(where: { $0.contains { !$0.kernelAddresses.isEmpty } }), let kernel = find() else { return }
        for (pid, images) in over {
            for index in images.indices where !images[index].kernelAddresses.isEmpty {
                for function in kernel.functions(holding: images[index].kernelAddresses) { over[pid]![index].add(function, storage) }
                over[pid]![index].end(storage)
            }
        }
    }

    // MARK: - Threads

    private mutating func index(of tid: pid_t, in pid: pid_t) -> Int? {
        let slot = Int(tid) & (likelyIndices.count - 1), likely = likelyIndices[slot]
        if likely >= 0, likely < threads.count, threads[likely].tid == tid, threads[likely].process.pid == pid { return likely }
        guard let process = processes[pid] else { return nil }
        if indices[tid] == nil {
            indices[tid] = threads.count
            threads.append(Thread(tid: tid, process: process, waits: 0))
        }
        let index = indices[tid]!
        threads[index].process = process
        likelyIndices[slot] = index
        return index
    }

    private mutating func forget(_ tid: pid_t) {
        guard let index = indices.removeValue(forKey: tid) else { return }
        threads.swapAt(index, threads.count - 1)
        threads.removeLast()
        if index < threads.count { indices[threads[index].tid] = index }
    }

    // MARK: - Processes

    private mutating func begin(process pid: pid_t, from parent: pid_t, _ by: pid_t, at now: UInt64) {
        if let earlier = processes[pid], earlier.pid == pid { end(earlier, at: now) } // its end was lost
        processes[pid] = Process(pid, begun: now, parent: processes[parent], by: by)
    }

    /// A task of the agent's that is a process beside the program (FileJob.swift) belongs to the program, as one that is a thread.
    private mutating func adopt(_ pid: pid_t) {
        guard let process = processes[pid], process.pid == pid, let parent = process.parent, processes[parent.pid] === parent else {
            return
        }
        forget(pid)
        processes[pid] = parent
        parent.threads.insert(pid)
        parent.image.add(task: TRACE_TASK_BEGAN, tid: pid, by: process.by, at: process.image.begun, storage)
    }

    /// Only the thread that called exec survives, and its tid becomes the pid.
    private mutating func exec(_ process: Process, _ tid: pid_t, _ name: String, at now: UInt64) {
        for tid in process.threads where tid != process.pid { forget(tid) }
        addWaits(of: process)
        process.files = MappedFiles()
        process.threads = [process.pid]
        executed.insert(process.pid)
        process.image.add(task: TRACE_TASK_EXECUTED, tid: tid, name: name, at: now, storage)
        process.image.ended = now
        process.image.end(storage)
        process.images.append(ImageHistory(begun: now, parent: process.parentPid, program: ExecutedProgram(name: name)))
    }

    private mutating func end(_ process: Process, at now: UInt64?) {
        for tid in process.threads { forget(tid) }
        processes[process.pid] = nil
        addWaits(of: process)
        process.image.ended = now
        process.image.lookAtProgram(of: process.pid)
        process.image.end(storage)
        over[process.pid, default: []] += process.images
    }
}
