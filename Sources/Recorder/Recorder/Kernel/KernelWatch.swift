// Has the kernel report when the threads of a program, and of all it starts, run and wait, and which pages come from disk. A thread of the
// tool takes it from the rings while the program runs. Nothing of it is inside the traced processes.
import CRecorder
import CTraceLayout
import Glibc
import Synchronization
import Unwinding

package final class KernelWatch: @unchecked Sendable { // the thread alone has what changes, until `end` has waited for it
    private let grant: KernelAccount.Grant
    private let spool: KernelSpool
    private var rings: [recorder_ring]
    private var history: KernelHistory
    private var buffer: UnsafeMutableRawBufferPointer
    /// Read, and not older than the last look but one: a ring that was looked at before may still bring something from before them.
    private var pending: [Pending] = []
    /// Records that are no switches, by `Pending.number`.
    private var records: [Int: KernelRecord] = [:]
    private var recordCount = 0
    private var thread: pthread_t?
    private let wake: Int32
    private let isEnding = Atomic<Bool>(false)
    /// What another thread asks (`excerpt`).
    private let question = Mutex<Question?>(nil)
    /// One asks after the other.
    private let asking = Mutex<Void>(())
    /// Readable once it is answered.
    private let answered: Int32
    private struct Question {
        let pid: pid_t
        let moment: UInt64, since: UInt64
        var answer: KernelExcerpt?
        var isAnswered = false
    }

    /// nil: nothing is reported, or page faults at code alone.
    private let unwinder: SampleUnwinder?
    private let interval: Int32
    /// The process was there before.
    private let isOfRunning: Bool

    private static let ringBytes: UInt64 = 512 << 10, mostInterval: Int32 = 80
    /// A stack is copied up to here: 99.6 % of gdb's are not deeper, and all of python's.
    private static let stackBytes: UInt32 = 16 << 10

    /// The process has not called exec yet; what is reported begins there. Or it runs: then from now on.
    /// - Parameters:
    ///   - samplePeriod: nanoseconds of CPU time, 0: no samples
    ///   - minorFaults: those whose page was in memory, too
    init(pid: pid_t, isRunning: Bool = false, samplePeriod: UInt64 = 0, minorFaults: Bool = false, _ storage: KernelStorage) {
        var opened: [recorder_ring] = [], error: Int32 = 0
        let begun = isRunning ? clockTime() : 0
        isOfRunning = isRunning
        var requests = recorder_kernel_requests(
            begins_at_once: isRunning ? 1 : 0, with_kernel: 1, with_minor_faults: minorFaults ? 1 : 0, sample_period: samplePeriod,
            sample_registers: SampleUnwinder.registerMask, sample_stack: Self.stackBytes,
            data_bytes: samplePeriod == 0 ? Self.ringBytes : Self.ringBytes * 2)
        for cpu in Self.cpus {
            var ring = recorder_ring()
            error = recorder_ring_open(pid, cpu, &requests, &ring)
            if error == EACCES || error == EPERM, requests.with_kernel != 0 {
                requests.with_kernel = 0
                error = recorder_ring_open(pid, cpu, &requests, &ring)
            }
            if error == ENODEV { continue } // switched off
            if error != 0 { break }
            requests.data_bytes = ring.data_bytes
            opened.append(ring)
        }
        if error == ENODEV { error = 0 }
        var threads: Set<pid_t> = [pid]
        if error == 0, isRunning { error = Self.join(&opened, &requests, pid, &threads) }
        if error != 0 {
            for n in opened.indices { recorder_ring_close(&opened[n]) }
            opened = []
        }
        var asked = TRACE_KERNEL_SWITCHES | TRACE_KERNEL_MAJOR_FAULTS | (samplePeriod == 0 ? 0 : TRACE_KERNEL_SAMPLES)
        if minorFaults { asked |= TRACE_KERNEL_MINOR_FAULTS }
        if !opened.isEmpty, requests.with_kernel != 0 { // nobody misses it where it is refused
            asked |= TRACE_KERNEL_INSIDE | (samplePeriod == 0 ? 0 : TRACE_KERNEL_STACKS)
        }
        grant = .init(asked: asked, granted: opened.isEmpty ? 0 : asked, error: error, period: samplePeriod)
        unwinder = opened.isEmpty || storage.isOfTextFaults ? nil : SampleUnwinder(hasSamples: samplePeriod != 0)
        interval = samplePeriod == 0 ? 10 : 5 // ms: a stack is unwound best while what it was made of is still there
        rings = opened
        spool = storage.spool
        history = KernelHistory(root: pid, begun: begun, threads: threads, storage)
        buffer = .allocate(byteCount: Int(requests.data_bytes), alignment: 8)
        wake = recorder_make_wake()
        answered = recorder_make_wake()
        if !rings.isEmpty { thread = ToolThread.begin { self.drain() } }
    }

    deinit {
        for n in rings.indices { recorder_ring_close(&rings[n]) }
        for descriptor in [wake, answered] where descriptor >= 0 { close(descriptor) }
        buffer.deallocate()
    }

    /// The kernel reports what processes do.
    package var isReporting: Bool { grant.granted != 0 }

    /// Watches a single process, whose trace lies in the directory.
    package convenience init(pid: pid_t, directory: String) {
        self.init(pid: pid, KernelStorage(spool: KernelSpool(directory: directory), mostBytes: .max, keepsEnd: false))
    }

    /// Watches the page faults at code of a single process, and nothing else.
    package convenience init(textFaultsOf pid: pid_t) {
        self.init(
            pid: pid, minorFaults: true,
            KernelStorage(spool: KernelSpool(directory: "/tmp"), mostBytes: 0, keepsEnd: false, isOfTextFaults: true))
    }

    /// No more is taken; what came of page faults at code.
    package func endOfTextFaults(of pid: pid_t) -> TextFaults {
        let account = end()
        return TextFaults(faults: (account.images[pid] ?? []).flatMap(\.textFaults), grant: account.record)
    }

    /// No more is taken. Once or more.
    package func stop() {
        isEnding.store(true, ordering: .releasing)
        recorder_wake(wake)
        if let thread { pthread_join(thread, nil) }
        thread = nil
    }

    func end() -> KernelAccount {
        stop()
        return account(history.end())
    }
    private func account(_ images: [pid_t: [ImageHistory]]) -> KernelAccount {
        let paranoid = ProcessStatus.number("/proc/sys/kernel/perf_event_paranoid").flatMap { Int32(exactly: $0) }
        return KernelAccount(grant: grant, paranoid: paranoid, lost: history.lost, images: images, spool: spool)
    }

    /// What was reported of a process up to now. Any thread may ask, until `stop`. Waits for the watch's own thread. nil: nothing was, or that thread gets no processor.
    /// - Parameters:
    ///   - moment: CLOCK_MONOTONIC, when its image had begun
    ///   - since: as KernelExcerpt has it
    func excerpt(of pid: pid_t, at moment: UInt64, since: UInt64) -> KernelExcerpt? {
        asking.withLock { _ in ask(Question(pid: pid, moment: moment, since: since)) }
    }
    private func ask(_ asked: Question) -> KernelExcerpt? {
        guard isReporting, thread != nil else { return nil }
        recorder_take_wake(answered)
        question.withLock { $0 = asked }
        recorder_wake(wake)
        var answer = pollfd(fd: answered, events: Int16(POLLIN), revents: 0)
        poll(&answer, 1, Self.patience)
        return question.withLock { asked in
            defer { asked = nil }
            return asked?.answer
        }
    }
    private static let patience: Int32 = 500, settling: UInt32 = 1000 // ms; us
    private func answerQuestion() {
        guard let asked = question.withLock({ $0 }), !asked.isAnswered else { return }
        // What a processor is just writing is there, too, when it has had time to.
        let now = clockTime()
        usleep(Self.settling)
        _ = takeAll()
        deliver(olderThan: now)
        let record = account([:]).record
        let answer = history.image(of: asked.pid, at: asked.moment).map {
            KernelExcerpt($0, since: asked.since, until: now, record, spool)
        }
        question.withLock { latest in
            guard latest?.pid == asked.pid, latest?.since == asked.since else { return } // who asked has waited for too long
            latest?.answer = answer
            latest?.isAnswered = true
        }
        recorder_wake(answered)
    }

    /// CPUs on which the tool may run, and so what it starts.
    static var cpus: [Int32] {
        var numbers = [Int32](repeating: 0, count: 1024)
        let count = recorder_cpus(&numbers, numbers.count)
        return Array(numbers[..<count])
    }

    // MARK: - A process that runs

    /// Opens events of all other threads of the process. Who is begun meanwhile by a thread that has one inherits it, and only the rings say so:
    /// whoever has come and is not said to have inherited is looked after in the next round. The kernel lists a thread before it says so, and has it run
    /// only afterwards (kernel/fork.c, copy_process, perf_event_fork; wake_up_new_task): of one that has not run yet nothing is known. 0 or errno.
    private static func join(
        _ rings: inout [recorder_ring], _ requests: inout recorder_kernel_requests, _ pid: pid_t, _ threads: inout Set<pid_t>
    ) -> Int32 {
        for round in 0... {
            let new = Set(ProcessStatus.numbers(in: "/proc/\(pid)/task")).subtracting(threads)
            // One that gets no processor for so long inherits nothing more.
            let known = round < Self.mostRounds ? new.filter { ProcessStatus.hasRun($0, of: pid) } : new
            for n in rings.indices { threads.formUnion(begun(in: rings[n])) }
            let missed = known.subtracting(threads)
            if missed.isEmpty {
                if new.subtracting(threads).isEmpty { return 0 }
                usleep(Self.roundPause)
            }
            for tid in missed {
                threads.insert(tid)
                for n in rings.indices {
                    let error = recorder_ring_join(tid, &requests, &rings[n])
                    if error == ESRCH { break }
                    if error != 0 { return error }
                }
            }
        }
        return 0
    }
    private static let mostRounds = 100, roundPause: UInt32 = 1000 // us
    /// Threads whose beginning is reported in the ring, which stays as it is.
    private static func begun(in ring: recorder_ring) -> [pid_t] {
        var bytes = [UInt8](repeating: 0, count: Int(ring.data_bytes)), found: [pid_t] = [], ring = ring
        let count = recorder_ring_look(&ring, &bytes)
        bytes.withUnsafeBytes { all in
            var rest = UnsafeRawBufferPointer(rebasing: all[..<count])
            while let (record, byteCount) = KernelRecord.read(rest, ring) {
                if let (record, _) = record, case .began(let child, _, _) = record { found.append(child) }
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(byteCount))
            }
        }
        return found
    }

    // MARK: - The thread

    private func drain() {
        var wait = interval, last: UInt64 = 0
        while true {
            recorder_take_wake(wake) // before it is looked what for
            let isLast = isEnding.load(ordering: .acquiring)
            answerQuestion()
            let now = clockTime()
            let isNew = takeAll()
            deliver(olderThan: isLast ? .max : last)
            if isLast {
                if let unwinder { for (pid, code) in unwinder.end() { history.add(code, of: pid) } }
                return
            }
            let isAnybodyWaiting = history.lookAtWaits(now, unwinder)
            last = now
            wait = isNew || isAnybodyWaiting ? interval : min(wait * 2, Self.mostInterval)
            if recorder_rings_await(rings, rings.count, wake, wait) != 0, !isEnding.load(ordering: .acquiring) {
                // Everybody has gone: only the end is waited for. Or only the thread whose events the rings are of.
                var end = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
                poll(&end, 1, isOfRunning ? wait : -1)
            }
        }
    }

    /// Small, since there may be a million in a second.
    private struct Pending {
        var origin: KernelRecord.Origin
        /// Kind of switch, TRACE_SWITCH_; 0: the record is in `records`.
        var switched: UInt16
        /// In the order in which they were read.
        var number: Int
    }

    /// False when there was nothing.
    private func takeAll() -> Bool {
        let before = pending.count
        for n in rings.indices {
            let count = recorder_ring_take(&rings[n], buffer.baseAddress)
            var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            while !rest.isEmpty {
                recordCount += 1
                if let (kind, origin) = KernelRecord.readSwitch(rest, rings[n]) {
                    pending.append(Pending(origin: origin, switched: kind, number: recordCount))
                    rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(KernelRecord.switchBytes))
                    continue
                }
                guard let (record, byteCount) = KernelRecord.read(rest, rings[n]) else { break }
                if let (record, origin) = record {
                    records[recordCount] = record
                    pending.append(Pending(origin: origin, switched: 0, number: recordCount))
                }
                rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(byteCount))
            }
        }
        if let unwinder { unwind(from: before, unwinder) }
        return pending.count > before
    }

    /// Samples become frames before the code, and the frames' own memory, have changed.
    private func unwind(from first: Int, _ unwinder: SampleUnwinder) {
        let new = pending[first...].filter { $0.switched == 0 }.sorted {
            ($0.origin.nanoseconds, $0.number) < ($1.origin.nanoseconds, $1.number)
        }
        for one in new {
            let pid = one.origin.pid
            switch records[one.number] {
            case .named(_, isExec: true): unwinder.exec(pid)
            case .began(_, let parent, _): unwinder.fork(parent: parent, child: pid)
            case .mapped(let mapping) where mapping.isCode:
                unwinder.map(
                    pid, address: mapping.addresses.lowerBound, length: mapping.addresses.upperBound - mapping.addresses.lowerBound,
                    offset: mapping.offset, path: mapping.path, inode: mapping.inode)
            case .ended where one.origin.tid == pid: history.add(unwinder.exit(pid), of: pid)
            case .sample(let stack) where !stack.registers.isEmpty:
                let (frames, isWhole) = stack.registers.withUnsafeBufferPointer { registers in
                    stack.bytes.withUnsafeBytes { unwinder.sample(pid, registers: registers, stack: $0) }
                }
                records[one.number] = .unwound(stack.kernel + frames, isWhole: isWhole, isInKernel: !stack.kernel.isEmpty)
            case .sample(let stack) where !stack.kernel.isEmpty: // its memory is gone, or not there yet
                records[one.number] = .unwound(stack.kernel, isWhole: false, isInKernel: true)
            default: break
            }
        }
    }

    /// All of one moment in the order in which they were read. (What each ring brings is in order already, which the sort makes use of.)
    private func deliver(olderThan limit: UInt64) {
        pending.sort { ($0.origin.nanoseconds, $0.number) < ($1.origin.nanoseconds, $1.number) }
        var ready = 0
        while ready < pending.count, pending[ready].origin.nanoseconds < limit {
            let one = pending[ready]
            ready += 1
            if one.switched != 0 {
                history.add(switched: one.switched, one.origin)
            } else if let record = records.removeValue(forKey: one.number) {
                history.add(record, one.origin)
            }
        }
        pending.removeFirst(ready)
    }

    /// CPU time used by this thread, in nanoseconds.
    static var ownTime: UInt64 { clockTime(CLOCK_THREAD_CPUTIME_ID) }
}
