// A lock that sleeps. Held for short, never while traced code runs, always with signals blocked. But who holds it may lose its
// CPU to a thread of real-time priority that wants it: that one must neither spin, for then the holder never runs again,
// nor wait for all that is between their priorities. So the word is a futex with priority inheritance (futex(2), FUTEX_LOCK_PI):
// 0, or the number of the thread that holds it and FUTEX_WAITERS. Where there is no such futex (a kernel without
// CONFIG_FUTEX_PI, qemu before 7.0) the same word is one to wait on and wake.
import CSupport

struct Lock {
    /// While the modules of a start are bound and there is no other thread: nobody else uses anything of ours.
    nonisolated(unsafe) static var isAlone = false
    /// While a task runs in the agent that has another thread's block (Attach.swift).
    nonisolated(unsafe) static var asksKernel = false
    /// ThreadRecorder.session. A context of an earlier one, or one that is shared, may be in the hands of a child of vfork.
    nonisolated(unsafe) static var session: UInt32 = 0
    private var word: UInt32 = 0
    private static let waiters: UInt32 = 1 &<< 31 // FUTEX_WAITERS
    nonisolated(unsafe) private static var isPlain: UInt32 = 0

    /// An exchange waits for every store before it, which a start, with tens of thousands of functions, need not.
    @inline(never) mutating func lock() {
        if Lock.isAlone { return }
        let own = Lock.owner
        for _ in 0..<50 {
            if tracer_exchange(&word, 0, own) != 0 { return }
            tracer_pause()
        }
        while !(tracer_load_32(&Lock.isPlain) == 0 ? waitInheriting(own) : waitPlainly(own)) {}
    }

    /// True when the lock is ours now.
    mutating func tryLock() -> Bool {
        Lock.isAlone || tracer_exchange(&word, 0, Lock.owner) != 0
    }

    /// The number of this thread. A forked child has its parent's until it has begun anew: then there is no other thread.
    private static var owner: UInt32 {
        if !asksKernel, let context = tracer_thread_state().pointee.context, context.pointee.tid != 0, context.pointee.sharing == 0,
            context.pointee.session == session
        {
            return context.pointee.tid
        }
        return UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.gettid))
    }

    @inline(never) mutating func unlock() {
        let value = tracer_load_32(&word)
        if value == 0 { return } // it was not taken
        if value & Lock.waiters == 0 && tracer_exchange(&word, value, 0) != 0 { return }
        if tracer_load_32(&Lock.isPlain) == 0 && futex(Futex.unlockInheriting) == 0 { return }
        tracer_store_release_32(&word, 0)
        _ = futex(Futex.wake, 1)
    }

    /// True when the lock is ours.
    private mutating func waitInheriting(_ own: UInt32) -> Bool {
        let result = futex(Futex.lockInheriting)
        if result == 0 { return true }
        if result == -Failure.noSystemCall {
            tracer_store_release_32(&Lock.isPlain, 1)
        } else if result != -Failure.again && result != -Failure.interrupted {
            _ = SystemCall.call(SystemCall.sched_yield) // the kernel does not know the holder
        }
        return tracer_exchange(&word, 0, own) != 0
    }
    /// Who has waited takes it as one that others wait for, since nobody knows how many do.
    private mutating func waitPlainly(_ own: UInt32) -> Bool {
        let value = tracer_load_32(&word)
        if value == 0 { return tracer_exchange(&word, 0, own | Lock.waiters) != 0 }
        if value & Lock.waiters != 0 || tracer_exchange(&word, value, value | Lock.waiters) != 0 {
            _ = futex(Futex.wait, value | Lock.waiters)
        }
        return false
    }
    private mutating func futex(_ operation: Int, _ value: UInt32 = 0) -> Int {
        withUnsafeMutablePointer(to: &word) {
            SystemCall.call(SystemCall.futex, bits($0), operation | Futex.isPrivate, Int(value), 0) // for any time
        }
    }
}
