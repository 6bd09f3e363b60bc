// What a process can take from itself that the agent needs: recording ends before it does, for good. It is the whole process
// that stops recording, also where the kernel confines one thread only: threads that this one starts inherit it, and the
// first thing that the agent does in a new thread is a system call.
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
        case .counter: "the program forbids itself to read the cycle counter (PR_SET_TSC)"
        case .dispatch: "the program takes over its system calls (PR_SET_SYSCALL_USER_DISPATCH)"
        }
    }

    /// prctl's arguments (include/uapi/linux/prctl.h).
    static func ofControl(_ option: UInt64, _ value: UInt64, _ argument: UInt64) -> Confinement? {
        switch Int32(truncatingIfNeeded: option) {
        case 22: // PR_SET_SECCOMP: SECCOMP_MODE_STRICT, or SECCOMP_MODE_FILTER with its filter
            return value == 1 || value == 2 && argument != 0 ? .seccomp : nil
        case 26: // PR_SET_TSC: PR_TSC_SIGSEGV
            return value == 2 && agent.clock != UInt32(TRACE_CLOCK_MONOTONIC) ? .counter : nil
        case 59: return value != 0 ? .dispatch : nil // PR_SET_SYSCALL_USER_DISPATCH, but for PR_SYS_DISPATCH_OFF
        default: return nil
        }
    }
    /// seccomp's operation and its last argument. Others than SECCOMP_SET_MODE_STRICT and SECCOMP_SET_MODE_FILTER only ask;
    /// and who hands over no filter asks whether there are filters.
    static func ofSeccomp(_ operation: UInt64, _ argument: UInt64) -> Confinement? {
        let operation = UInt32(truncatingIfNeeded: operation)
        return operation == 0 || operation == 1 && argument != 0 ? .seccomp : nil
    }

    /// The calls that are open now still end in the chunk, which is a fresh one, so that none of them needs the slow path.
    /// The call itself is recorded by its entry. To be returned from the slow path: nothing of the call is the agent's.
    func endRecording(_ recorder: ThreadRecorder, _ descriptor: UnsafeMutablePointer<function_descriptor>) -> Frame? {
        let isRecording = tracer_process_page().pointee.enabled != 0
        if isRecording || recorder.hot.pointee.chunk != nil { _ = recorder.openChunk() }
        if isRecording && !SafetyHooks.isOne(descriptor) && recorder.top.pointee.last == 0 {
            recorder.writeInstant(descriptor.pointee.function)
        }
        TraceFile.stop(rawValue, 0)
        TraceFile.reportStop()
        MappingFaults.end()
        tracer_store_release_32(tracer_confinement(), 1)
        if self == .counter { recorder.forgetFrames() }
        return nil
    }

    /// PR_TSC_SIGSEGV outlasts exec: then the counter must not be read even once.
    static var counterIsForbidden: Bool {
        var state: UInt32 = 0
        return withUnsafeMutablePointer(to: &state) { SystemCall.call(SystemCall.prctl, 25, bits($0)) == 0 && $0.pointee == 2 } // PR_GET_TSC
    }
}
