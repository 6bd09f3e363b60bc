// A thread of another process that has been stopped where it holds no lock of libc's, and is made to call something before it goes on as if
// nothing had happened: ptrace(2). Calls of functions return to an instruction that makes a system call, which is not made: no breakpoint is
// needed, whose SIGTRAP would end a program that blocks it, nor memory that is both written and executed.
import CRecorder
import Glibc

struct LedThread {
    enum Failure: Error {
        /// It ended, or its process.
        case isGone
        /// A call of the kernel's was refused, with this errno.
        case refused(Int32)
        /// A function has waited for so long that it was given up before it had done anything.
        case isLocked
    }

    let tid: pid_t
    private let target: AttachTarget
    /// As it will go on.
    private let registers: recorder_registers
    private let vectors: recorder_vectors
    private let mask: UInt64
    /// The kernel is to begin an interrupted system call again.
    private let restarts: Bool
    private let stoppedAt: UInt64

    /// It has stopped: on its way into a system call, which will be made again (`isEntered`), or elsewhere. From here on no signal reaches it.
    init(_ tid: pid_t, of target: AttachTarget, _ registers: recorder_registers, isEntered: Bool, stoppedAt: UInt64) throws(Failure) {
        self.tid = tid
        self.target = target
        self.stoppedAt = stoppedAt
        var registers = registers, vectors = recorder_vectors(), mask: UInt64 = 0
        try Self.check(recorder_tracee_vectors(tid, &vectors))
        try Self.check(recorder_tracee_mask(tid, &mask))
        try Self.check(recorder_tracee_set_mask(tid, .max))
        self.vectors = vectors
        self.mask = mask
        restarts = !isEntered
        if isEntered {
            var skipped = registers
            try Self.check(recorder_tracee_skip(tid, &skipped))
            _ = recorder_call_again(&registers, 1)
        }
        self.registers = registers
        if isEntered { try reach(RECORDER_LEAVES) }
    }

    private static func check(_ error: Int32) throws(Failure) {
        if error == ESRCH { throw .isGone }
        if error != 0 { throw .refused(error) }
    }

    /// Lets it go on to its next stop of this kind. Signals that have been on their way are passed on when they are delivered.
    /// - Parameter isStopped: else it is running, and only waited for
    @discardableResult
    private func reach(
        _ kind: recorder_stop_kind, or other: recorder_stop_kind? = nil, isStopped: Bool = true, until end: UInt64 = .max
    ) throws(Failure) -> recorder_stop {
        var signal: Int32 = 0, goesOn = isStopped
        while true {
            if goesOn { try Self.check(recorder_tracee_resume(tid, kind == RECORDER_INTERRUPTED ? 0 : 1, signal)) }
            let stop = recorder_tracee_wait(tid, 10_000_000)
            goesOn = stop.kind != RECORDER_RUNS.rawValue
            signal = stop.signal
            switch UInt32(stop.kind) {
            case kind.rawValue, other?.rawValue: return stop
            case RECORDER_GONE.rawValue: throw .isGone
            case RECORDER_RUNS.rawValue where clockTime() > end: return stop
            default: continue
            }
        }
    }

    private func current() throws(Failure) -> recorder_registers {
        var registers = recorder_registers()
        try Self.check(recorder_tracee_registers(tid, &registers))
        return registers
    }

    // MARK: - Calls

    /// Returns what the kernel returns: from -4095 up it is an errno.
    func systemCall(_ number: Int, _ arguments: UInt64...) throws(Failure) -> Int64 {
        try begin(number, arguments)
        try reach(RECORDER_LEAVES)
        return Int64(bitPattern: withUnsafePointer(to: try current()) { recorder_result($0) })
    }

    private func begin(_ number: Int, _ arguments: [UInt64]) throws(Failure) {
        var call = registers
        let words = arguments + [UInt64](repeating: 0, count: 6 - arguments.count)
        recorder_set_system_call(&call, target.modules.callInstruction, Int64(number), words)
        try Self.check(recorder_tracee_set_registers(tid, &call))
        try reach(RECORDER_ENTERS)
    }

    /// Calls a function on a stack that ends at `stack`. Gives up when it waits for a lock before it has made any other system call but for
    /// memory: it has no lock of its own yet.
    func call(_ function: UInt64, _ arguments: [UInt64], stack: UInt64, patience: UInt64 = 2_000_000_000) throws(Failure) -> UInt64 {
        let back = target.modules.callInstruction, end = clockTime() + patience
        var call = registers, locks = 0
        recorder_set_call(&call, function, back, stack, arguments)
        let top = recorder_stack_pointer(&call)
        guard RECORDER_RETURNS_BY_STACK == 0 || target.memory.write(back, at: top) else { throw .refused(EFAULT) }
        try Self.check(recorder_tracee_set_registers(tid, &call))
        while true {
            guard try reach(RECORDER_ENTERS, until: locks > 0 ? end : .max).kind == RECORDER_ENTERS.rawValue else { break }
            var now = try current()
            let pc = recorder_program_counter(&now)
            if pc == back &+ UInt64(RECORDER_CALL_BYTES), recorder_stack_pointer(&now) >= top {
                let result = recorder_returned(&now)
                try Self.check(recorder_tracee_skip(tid, &now))
                try reach(RECORDER_LEAVES)
                return result
            }
            let number = recorder_system_call(&now)
            if locks >= 0, recorder_is_memory(number) == 0 { locks = recorder_is_lock(number) != 0 ? locks + 1 : -1 }
            guard try reach(RECORDER_LEAVES, until: locks > 0 ? end : .max).kind == RECORDER_LEAVES.rawValue else { break }
        }
        try Self.check(recorder_tracee_interrupt(tid))
        // It stops on its way out of the call that is interrupted, and that is its only stop.
        try reach(RECORDER_INTERRUPTED, or: RECORDER_LEAVES, isStopped: false)
        throw .isLocked
    }

    /// Begins a thread that runs a function of Sources/Agent/AgentEntry/attach_task.S, on a stack of whole pages. It is let go at once. Returns its id.
    func begin(task function: UInt64, _ argument: UInt64, stack: UInt64, stackBytes: UInt64) throws(Failure) -> pid_t {
        try begin(RECORDER_CLONE, [UInt64(RECORDER_TASK_FLAGS), stack &+ stackBytes])
        try Self.check(recorder_tracee_follow(tid, 1))
        let child = try reach(RECORDER_CLONES, or: RECORDER_LEAVES).child // without a child it has failed
        var isReleased = false
        defer { if child > 0, !isReleased { _ = recorder_tracee_release(child, 0) } }
        try Self.check(recorder_tracee_follow(tid, 0))
        if child > 0 { try reach(RECORDER_LEAVES) }
        let result = Int64(bitPattern: withUnsafePointer(to: try current()) { recorder_result($0) })
        guard child > 0, result > 0 else { throw .refused(Int32(clamping: -result)) }
        // However long it takes: nobody else knows where it has to begin.
        var stop = recorder_tracee_wait(child, 1_000_000_000)
        while stop.kind == RECORDER_RUNS.rawValue { stop = recorder_tracee_wait(child, 1_000_000_000) }
        guard stop.kind == RECORDER_INTERRUPTED.rawValue else { throw .isGone }
        var registers = recorder_registers()
        try Self.check(recorder_tracee_registers(child, &registers))
        recorder_set_task(&registers, function, argument, stack, stackBytes)
        try Self.check(recorder_tracee_set_registers(child, &registers))
        isReleased = true
        try Self.check(recorder_tracee_release(child, 0))
        return child
    }

    /// It could not go on, since it was killed: nothing of it is left, so that exec(2) in another thread goes on.
    func forget() { _ = recorder_tracee_release(tid, 0) }

    /// It goes on where it was. Returns for how many nanoseconds it has stood still.
    @discardableResult
    func goOn() throws(Failure) -> UInt64 {
        var registers = registers, vectors = vectors
        try Self.check(recorder_tracee_set_vectors(tid, &vectors))
        try Self.check(recorder_tracee_set_registers(tid, &registers))
        try Self.check(recorder_tracee_set_mask(tid, mask))
        if restarts {
            // On the way out of a stop like the first one the kernel looks at what the call has returned (kernel/entry/common.c).
            try Self.check(recorder_tracee_interrupt(tid))
            try reach(RECORDER_INTERRUPTED)
        }
        try Self.check(recorder_tracee_release(tid, 0))
        return clockTime() - stoppedAt
    }
}
