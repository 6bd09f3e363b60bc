// Resources that a thread or the process has used so far, and the agent's own share of them.
import CSupport
import CTraceLayout

/// The agent's work on modules and initializers: a running total of the process, in ticks. Only whole pieces of work are
/// added, at their outermost level, so that nothing counts twice.
enum OwnWork {
    nonisolated(unsafe) private static var total: UInt64 = 0

    static var ticks: UInt64 { tracer_load_acquire(&total) }
    /// The total with this piece, which ends now.
    @discardableResult
    static func add(since begin: UInt64, until now: UInt64) -> UInt64 {
        tracer_atomic_add(&total, now &- begin) &+ (now &- begin)
    }
}

extension trace_usage {
    private static let ofThread = 1 // RUSAGE_THREAD
    private static let ofProcess = 0 // RUSAGE_SELF

    /// CPU time comes from its clock: getrusage does not count what the thread has run since the last scheduler tick.
    private init(_ who: Int, cpu: UInt64) {
        self.init()
        cpu_ns = cpu
        var usage = InlineArray<18, UInt64>(repeating: 0) // struct rusage: ru_minflt and ru_majflt are its words 8 and 9
        var span = usage.mutableSpan
        span.withUnsafeMutableBufferPointer {
            _ = SystemCall.call(SystemCall.getrusage, who, bits($0.baseAddress))
            minor_faults = UInt32(truncatingIfNeeded: $0[8])
            major_faults = UInt32(truncatingIfNeeded: $0[9])
        }
    }
    static func thread() -> trace_usage { thread(cpu: Clock.ofThread()) }
    static func thread(cpu: UInt64) -> trace_usage { trace_usage(ofThread, cpu: cpu) }
    static func process() -> trace_usage { trace_usage(ofProcess, cpu: Clock.nanoseconds(ClockNumber.process)) }

    /// As of `ticks`, when the agent had worked `own`.
    func at(_ ticks: UInt64, own: UInt64) -> trace_usage {
        var copy = self
        copy.ticks = ticks
        copy.own_ticks = own
        return copy
    }
}
