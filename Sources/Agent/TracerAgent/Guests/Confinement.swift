// Abilities that the agent needs and that a process can give up: before it does, recording ends for good. It ends in the whole process,
// also if the kernel confines only one thread: the threads and processes that this thread starts inherit the confinement, and the first
// thing that the agent does in them is a system call. Without one the agent cannot know which thread has started a thread: libc starts
// some by itself (timer_create with SIGEV_THREAD, mq_notify, aio_read), and runtimes by system calls of their own. For a child that runs
// in this memory while its parent waits, see SharedMemory.swift.
import CSupport
import CTraceLayout

enum Confinement: UInt32 { // TRACE_STOP_…
    /// A filter may kill the process for a system call that only the agent makes (seccomp(2)).
    case seccomp = 5
    /// rdtsc raises SIGSEGV (PR_SET_TSC, prctl(2); on aarch64 reading CNTVCT).
    case counter = 6
    /// A system call from outside a range of addresses raises SIGSYS, which the program's handler takes for its own
    /// (PR_SET_SYSCALL_USER_DISPATCH: Wine).
    case dispatch = 7

    var text: StaticString {
        switch self {
        case .seccomp: "the program confines itself with seccomp"
        case .counter: "the program disables the cycle counter (PR_SET_TSC)"
        case .dispatch: "the program intercepts its own system calls (PR_SET_SYSCALL_USER_DISPATCH)"
        }
    }

    /// prctl's arguments (include/uapi/linux/prctl.h).
    static func ofControl(_ option: UInt64, _ value: UInt64, _ argument: UInt64) -> Confinement? {
        switch Int(Int32(truncatingIfNeeded: option)) {
        case Control.setFilters: // SECCOMP_MODE_STRICT, or SECCOMP_MODE_FILTER with its filter
            return value == 1 || value == 2 && argument != 0 ? .seccomp : nil
        case Control.setCounter: // PR_TSC_SIGSEGV
            return value == 2 && Clock.source != UInt32(TRACE_CLOCK_MONOTONIC) ? .counter : nil
        case Control.setDispatch: return value != 0 ? .dispatch : nil // but for PR_SYS_DISPATCH_OFF
        default: return nil
        }
    }
    /// seccomp's operation and its last argument. Operations other than SECCOMP_SET_MODE_STRICT and SECCOMP_SET_MODE_FILTER only ask, and
    /// a call without a filter asks whether the kernel has filters.
    static func ofSeccomp(_ operation: UInt64, _ argument: UInt64) -> Confinement? {
        let operation = UInt32(truncatingIfNeeded: operation)
        return operation == 0 || operation == 1 && argument != 0 ? .seccomp : nil
    }

    /// PR_TSC_SIGSEGV outlasts exec: then the counter must not be read even once.
    static var counterIsForbidden: Bool {
        var state: UInt32 = 0
        return withUnsafeMutablePointer(to: &state) {
            SystemCall.call(SystemCall.prctl, Control.getCounter, bits($0)) == 0 && $0.pointee == 2
        }
    }
}
