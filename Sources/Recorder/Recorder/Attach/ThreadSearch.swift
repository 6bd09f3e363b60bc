// Finds a thread of a running process that can be led to dlopen(3): one that holds no lock of the loader's or an allocator's, and whose
// system call nobody notices to have been interrupted. Threads that are blocked in others are not touched.
import CRecorder
import Glibc
import Unwinding

struct ThreadSearch {
    private let target: AttachTarget
    private let unwinder = SampleUnwinder(hasSamples: false)
    /// Stops so far: of threads that were let go again.
    private(set) var stops = 0
    /// The longest of them, in nanoseconds.
    private(set) var longest: UInt64 = 0
    private var sightings: [pid_t: Sighting] = [:]
    /// Threads that got more signals than `mostSignals` when they were stopped: how long they had run by then, and when that was.
    private var disturbed: [pid_t: (ran: UInt64, at: UInt64)] = [:]
    /// A thread that has not come out of the kernel since it was to stop. Nobody else is stopped meanwhile.
    private var late: pid_t?

    /// A thread that runs is best, since it is on its way to a call. Who waits without end comes next; who waits for a time begins anew with
    /// what is left of it, if the kernel does that.
    private static let untilEndless: UInt64 = 500_000_000, untilResumed: UInt64 = 1_000_000_000, patience: UInt64 = 30_000_000_000
    /// System calls of one thread that are looked at, one after the other.
    private static let mostCalls = 200
    /// Signals of a thread that are passed on, each at a stop, before it is let go with the next one. Each stop takes time, in which a timer sends it
    /// another: a handler that leaves by siglongjmp(3) while the next signal is pending is interrupted on its own stack, and more often than the
    /// stack has room for if that does not end. `calm`: where signals come, it is stopped again after this time, not after `busy`.
    private static let mostSignals = 1, calm: UInt64 = 300_000, busy: UInt64 = 50_000_000
    /// Then it handles what has come by itself: until it has run for so long, or this time has passed.
    private static let undisturbed: UInt64 = 1_000_000, untilDisturbed: UInt64 = 200_000_000
    /// A stack is copied up to here to be unwound, and looked through up to here where that fails.
    private static let stackBytes = 64 << 10

    /// dlopen is to be called. Else only system calls are, which any place is right for.
    private let isForLoading: Bool

    init(_ target: AttachTarget, isForLoading: Bool) {
        self.target = target
        self.isForLoading = isForLoading
    }

    /// Returns a stopped thread. Throws a `Refusal` when none has come to such a place.
    mutating func find() throws(Refusal) -> LedThread {
        // What unwinding needs of the process's files is read now, while nobody stands still for it.
        if isForLoading { readModules() }
        let begin = clockTime()
        var looks = 0
        while clockTime() - begin < Self.patience {
            let threads = ProcessStatus.numbers(in: "/proc/\(target.pid)/task")
            if threads.isEmpty { throw .cannotRun("process \(target.pid) has ended") }
            let waited = clockTime() - begin
            letGo()
            // Another thread may be calling exec: it holds the lock that PTRACE_SEIZE takes (cred_guard_mutex, fs/exec.c), and waits until the tracer
            // has waited for all others.
            var isReadable = false, refusal: Int32 = 0
            for tid in threads where late == nil {
                guard let line = WaitSnapshot.line("/proc/\(target.pid)/task/\(tid)/syscall") else {
                    // Files of a thread that is ending are root's (task_dump_owner of fs/proc/base.c).
                    if errno == EPERM || errno == EACCES { refusal = errno }
                    continue
                }
                isReadable = true
                guard
                    line == "running" ? !handlesSignals(tid) && runsAlready(tid) : waited >= Self.untilEndless && mayInterrupt(line, waited)
                else {
                    if line != "running" { noteWait(tid, line) }
                    continue
                }
                if let thread = try stop(tid) { return thread }
                sightings[tid] = nil
            }
            if !isReadable, refusal != 0 { throw target.refused(refusal) }
            looks += 1
            if looks % 64 == 0, let change = target.change { throw change }
            // Who wakes for a moment only is missed by a look now and then.
            if looks % 64 == 0 { sched_yield() }
            if waited > Self.untilResumed { usleep(500) }
        }
        throw .cannotRun(
            "process \(target.pid): no thread came to a place where it can be led to load the agent within \(Self.patience / 1_000_000_000) s; try again, or start it with tracer record"
        )
    }

    /// It goes on if it has stopped since.
    private mutating func letGo() {
        guard let tid = late, case let stop = recorder_tracee_wait(tid, 1_000_000), stop.kind != RECORDER_RUNS.rawValue else { return }
        if stop.kind != RECORDER_GONE.rawValue { _ = recorder_tracee_release(tid, stop.signal) }
        late = nil
    }

    // MARK: - Who runs, and who waits

    /// When a thread was last looked at.
    private struct Sighting {
        /// It waited so; empty: it ran.
        var line = ""
        /// The system call in which it waits may say that it was interrupted though its time is over, or end with a part of its work.
        var isDoubtful = true
        /// How often it had been given a processor (Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat).
        var turns: Substring?
        /// CLOCK_MONOTONIC, since when it has run at each look.
        var runsSince: UInt64?
    }
    /// Who has a processor leaves the kernel within this time; of whom nothing is known, within the other.
    private static let wayOut: UInt64 = 200_000, wayOutUnknown: UInt64 = 2_000_000

    /// Says if a thread that is called running has left the system call that it waited in before: one whose time is over may not have been
    /// given a processor yet.
    private mutating func runsAlready(_ tid: pid_t) -> Bool {
        var last = sightings[tid] ?? Sighting(), now = clockTime()
        defer { sightings[tid] = last }
        if !last.isDoubtful { return true }
        guard let since = last.runsSince else {
            last.runsSince = now
            return false
        }
        now -= since
        if last.line.isEmpty { return now >= Self.wayOutUnknown }
        return now >= Self.wayOut && turns(tid) != last.turns
    }

    private mutating func noteWait(_ tid: pid_t, _ line: String) {
        if sightings[tid]?.line == line, sightings[tid]?.runsSince == nil { return }
        let call = call(line)
        let isDoubtful =
            [RECORDER_CALL_OTHER, RECORDER_CALL_BRIEF, RECORDER_CALL_PARTIAL, RECORDER_CALL_LATE, RECORDER_CALL_BY_DESCRIPTOR].contains(
                call.kind)
            && recorder_is_lock(call.number) == 0 && !isEndless(line) // the kernel goes on with futex(2) by itself
        sightings[tid] = Sighting(line: line, isDoubtful: isDoubtful, turns: isDoubtful ? turns(tid) : nil)
    }

    private func turns(_ tid: pid_t) -> Substring? { schedule(tid)?.last }
    private func hasRun(_ tid: pid_t) -> UInt64 { schedule(tid)?.first.flatMap { UInt64($0) } ?? 0 }
    private func schedule(_ tid: pid_t) -> [Substring]? {
        WaitSnapshot.line("/proc/\(target.pid)/task/\(tid)/schedstat")?.split(separator: " ")
    }

    private mutating func handlesSignals(_ tid: pid_t) -> Bool {
        guard let last = disturbed[tid] else { return false }
        if clockTime() - last.at < Self.untilDisturbed, hasRun(tid) < last.ran + Self.undisturbed { return true }
        disturbed[tid] = nil
        return false
    }

    /// - Parameter line: of a thread that waits, from /proc/PID/task/TID/syscall: number, six arguments, stack pointer, program counter
    private func call(_ line: String) -> (number: Int64, kind: recorder_call_kind, descriptor: UInt64) {
        let fields = line.split(separator: " ")
        let words = fields.dropFirst().compactMap { UInt64($0.dropFirst(2), radix: 16) }
        guard words.count == 8, let number = Int64(fields[0]) else { return (-1, RECORDER_CALL_OTHER, 0) }
        return (number, recorder_call_kind(number, Array(words[..<6])), words[0])
    }

    /// Without regard to how long it may last.
    private func kind(_ number: Int64) -> recorder_call_kind { recorder_call_kind(number, [UInt64](repeating: 0, count: 6)) }

    private func isEndless(_ line: String) -> Bool {
        let call = call(line)
        if call.kind == RECORDER_CALL_ENDLESS { return true }
        return call.kind == RECORDER_CALL_BY_DESCRIPTOR
            && recorder_waits_without_end(target.pid, Int32(truncatingIfNeeded: call.descriptor)) == 1
    }

    private func mayInterrupt(_ line: String, _ waited: UInt64) -> Bool {
        isEndless(line) || waited >= Self.untilResumed && call(line).kind == RECORDER_CALL_RESUMED
    }

    // MARK: - Stops

    /// nil: it is not where it would have to be, and runs on.
    private mutating func stop(_ tid: pid_t) throws(Refusal) -> LedThread? {
        var error = recorder_tracee_seize(tid)
        if error == EPERM {
            // A thread that has ended may not be traced (ptrace_attach of kernel/ptrace.c), and one that calls exec waits until all others have.
            usleep(1000)
            if target.change != nil { return nil }
            error = recorder_tracee_seize(tid)
            // Or another thread has its number by now, which calls exec and has not got as far as its new memory (de_thread of fs/exec.c). Who may
            // read the process's memory, as we do, may trace it: so a refusal that lasts is waited for.
            if error == EPERM, hasEnded(tid) || target.awaitChange() != nil { return nil }
        }
        if error == ESRCH { return nil }
        guard error == 0 else { throw target.refused(error) }
        stops += 1
        _ = recorder_tracee_interrupt(tid)
        var signals = 0, calls = 0
        while true {
            // Who computes makes no system call for long: it is stopped where it is.
            var stop = recorder_tracee_wait(tid, signals == 0 ? Self.busy : Self.calm)
            if stop.kind == RECORDER_RUNS.rawValue {
                _ = recorder_tracee_interrupt(tid)
                stop = recorder_tracee_wait(tid, 1_000_000_000)
                calls += 1
            }
            let begin = clockTime()
            defer { longest = max(longest, clockTime() - begin) }
            var registers = recorder_registers()
            switch UInt32(stop.kind) {
            case RECORDER_GONE.rawValue: return nil
            case RECORDER_SIGNAL.rawValue:
                // It is the program's own, and goes where it would have gone.
                signals += 1
                calls = max(calls, 1)
                guard signals > Self.mostSignals else {
                    _ = recorder_tracee_resume(tid, 1, stop.signal)
                    continue
                }
                disturbed[tid] = (hasRun(tid), clockTime())
                _ = recorder_tracee_release(tid, stop.signal)
                return nil
            case RECORDER_INTERRUPTED.rawValue, RECORDER_ENTERS.rawValue:
                guard recorder_tracee_registers(tid, &registers) == 0 else { return release(tid) }
            case RECORDER_RUNS.rawValue:
                late = tid
                return nil
            case RECORDER_LEAVES.rawValue:
                _ = recorder_tracee_resume(tid, 1, 0)
                continue
            default: return release(tid)
            }
            if stop.kind == RECORDER_ENTERS.rawValue {
                if isHarmless(tid, registers, isInCall: true), let led = lead(tid, registers, isEntered: true, begin) { return led }
                // What waits for nothing is made, and the next call looked at.
                let kind = kind(recorder_system_call(&registers))
                calls += 1
                guard kind == RECORDER_CALL_BRIEF || kind == RECORDER_CALL_SHORT, calls < Self.mostCalls,
                    recorder_tracee_resume(tid, 1, 0) == 0
                else { return release(tid) }
                continue
            }
            switch (recorder_system_call(&registers), Int64(bitPattern: recorder_result(&registers))) {
            case (0..., -516 ... -512): // ERESTARTSYS and its like (include/linux/errno.h): the kernel begins the call again, or goes on with it
                if isHarmless(tid, registers, isInCall: true), let led = lead(tid, registers, isEntered: false, begin) { return led }
            case (0..., Int64(-EINTR)):
                // It had only just begun, since the thread ran when it was looked at. Not where a signal is there that is to interrupt it.
                let facts = ProcessFacts(path: "/proc/\(target.pid)/task/\(tid)/status")
                guard ![RECORDER_CALL_OTHER, RECORDER_CALL_BRIEF].contains(kind(recorder_system_call(&registers))),
                    facts?.deliverable == 0, recorder_call_again(&registers, 0) != 0,
                    recorder_tracee_set_registers(tid, &registers) == 0, recorder_tracee_resume(tid, 1, 0) == 0
                else { break }
                continue
            default:
                if calls == 0 {
                    // To its next system call. It runs there by itself.
                    guard recorder_tracee_resume(tid, 1, 0) == 0 else { return release(tid) }
                    calls = 1
                    continue
                }
                if isHarmless(tid, registers, isInCall: false), let led = lead(tid, registers, isEntered: false, begin) { return led }
            }
            return release(tid)
        }
    }

    /// Whoever was stopped and is not led goes on, or is waited for if it was killed: exec(2) in another thread waits for that.
    private func release(_ tid: pid_t) -> LedThread? {
        _ = recorder_tracee_release(tid, 0)
        return nil
    }

    private func hasEnded(_ tid: pid_t) -> Bool {
        ProcessFacts(path: "/proc/\(target.pid)/task/\(tid)/status").map { "ZXx".contains($0.state) } ?? true
    }

    /// nil: it is gone, or has executed another program since the process was looked at.
    private func lead(_ tid: pid_t, _ registers: recorder_registers, isEntered: Bool, _ begin: UInt64) -> LedThread? {
        if target.change != nil { return nil }
        return try? LedThread(tid, of: target, registers, isEntered: isEntered, stoppedAt: begin)
    }

    // MARK: - Places

    private func readModules() {
        let nowhere = [UInt64](repeating: 0, count: Processor.current.sampleOrder.count)
        nowhere.withUnsafeBufferPointer {
            _ = unwinder.sample(target.pid, registers: $0, stack: UnsafeRawBufferPointer(start: nil, count: 0))
        }
    }

    /// Says if nobody on the thread's stack may hold a lock that dlopen takes: no code of the loader's, no allocator's, and no handler of a
    /// signal, which may have come at any moment. In libc, a system call's own function, and what is at the bottom of every stack.
    private func isHarmless(_ tid: pid_t, _ registers: recorder_registers, isInCall: Bool) -> Bool {
        var registers = registers
        let number = recorder_system_call(&registers)
        if !isForLoading { return isInCall || recorder_tracee_may_be_in_sequence(tid, target.memory.descriptor) == 0 }
        if isInCall {
            guard number >= 0, ![RECORDER_CALL_OTHER, RECORDER_CALL_BRIEF].contains(kind(number)) else { return false }
        } else if recorder_tracee_may_be_in_sequence(tid, target.memory.descriptor) != 0 {
            return false
        }
        let modules = target.modules, sp = recorder_stack_pointer(&registers)
        let stack = target.memory.bytes(sp, Self.stackBytes)
        var sampled = [UInt64](repeating: 0, count: 33)
        let count = Int(recorder_sampled(&registers, &sampled))
        let (frames, isWhole) = sampled[..<count].withUnsafeBufferPointer { words in
            stack.withUnsafeBytes { unwinder.sample(target.pid, registers: words, stack: $0) }
        }
        let doubtful = [modules.loader.range] + modules.allocators.map(\.range) + (modules.vdso.map { [$0] } ?? [])
        func isDoubtful(_ address: UInt64) -> Bool { address == modules.restorer || doubtful.contains { $0.contains(address) } }
        guard isWhole else {
            // No word of a stack that cannot be unwound may look like a return to one of these.
            guard isInCall, recorder_is_libcs_call(number) == 0 else { return false }
            return stack.withUnsafeBytes { bytes in
                !stride(from: 0, to: bytes.count - 7, by: 8).contains { isDoubtful(bytes.load(fromByteOffset: $0, as: UInt64.self)) }
            }
        }
        guard !frames.contains(where: isDoubtful) else { return false }
        let isLibcs = frames.map { modules.libc.range.contains($0) }
        // From the outermost: a thread begins in libc, a program in its own _start, which calls libc's __libc_start_main.
        let isProgram = isLibcs.count > 1 && isLibcs.last == false && isLibcs[isLibcs.count - 2]
        let inner = Array(isLibcs.dropLast(isProgram ? 1 : 0).reversed().drop { $0 }.reversed())
        if !isInCall { return !inner.contains(true) && inner.count > 0 }
        return recorder_is_libcs_call(number) == 0 || !inner.dropFirst().contains(true) && !inner.isEmpty || readsStream(tid)
    }

    /// The thread is in a read(2) of a pipe, a socket or a terminal: stdio's, say, with the lock of its FILE alone. What libc reads with a lock that dlopen
    /// takes are files of /proc and /sys (malloc/arena.c, arena_get2; get_nprocs).
    private func readsStream(_ tid: pid_t) -> Bool {
        var info = stat()
        guard let line = WaitSnapshot.line("/proc/\(target.pid)/task/\(tid)/syscall"), case let call = call(line),
            call.kind == RECORDER_CALL_BY_DESCRIPTOR, stat("/proc/\(target.pid)/fd/\(call.descriptor)", &info) == 0
        else { return false }
        switch info.st_mode & S_IFMT {
        case S_IFIFO, S_IFSOCK: return true
        // Documentation/admin-guide/devices.txt of Linux: virtual consoles and serial lines, the current terminal, pseudo-terminals.
        case S_IFCHR: return [4, 5].contains(info.st_rdev >> 8 & 0xff) || (136...143).contains(info.st_rdev >> 8 & 0xff)
        default: return false
        }
    }
}
