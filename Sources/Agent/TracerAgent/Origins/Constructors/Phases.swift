// The stages of a start that the agent can distinguish. The first three are over when it begins: it infers their times, with an error.
import CSupport
import CTraceLayout

enum Phases {
    /// From the process that started the program.
    nonisolated(unsafe) static var execTime: UInt64?

    /// The agent is entered; its clock is chosen.
    static func begin(_ agentTicks: UInt64, _ process: trace_usage) {
        let now = Clock.monotonic()
        let created = ProcessBirth.estimate(now)
        if let created { write(TRACE_PHASE_CREATED, trace_usage(), 0, monotonic: created.monotonic, error: created.error) }
        var age = created.map { now &- $0.monotonic &+ $0.error }
        if let exec = execTime, exec <= now {
            write(TRACE_PHASE_EXEC, trace_usage(), 0, monotonic: exec)
            age = now &- exec
        }
        if let loader = LoaderStart.find(before: agentTicks, age: age) { write(TRACE_PHASE_LOADER, trace_usage().at(loader, own: 0), 0) }
        write(TRACE_PHASE_AGENT, process.at(agentTicks, own: 0), 0)
    }

    @discardableResult
    private static func write(
        _ which: some BinaryInteger, _ usage: trace_usage, _ thread: UInt32,
        monotonic: UInt64 = 0, error: UInt64 = 0
    ) -> UnsafeMutableRawPointer? {
        var fixed = trace_phase_record()
        fixed.usage = usage
        fixed.monotonic_ns = monotonic
        fixed.error_ns = error
        fixed.thread = thread
        return MetadataWriter.append(Int(TRACE_RECORD_PHASE), UInt16(truncatingIfNeeded: which), fixed)
    }

    /// Records a phase that begins when this is done: the agent has been at work since `entered`.
    static func write(_ which: some BinaryInteger, _ recorder: ThreadRecorder, _ usage: trace_usage, since entered: UInt64) {
        guard let address = write(which, usage, recorder.context.pointee.index) else { return }
        let now = Clock.ticks()
        let record = address.assumingMemoryBound(to: trace_phase_record.self)
        record.pointee.usage.own_ticks = OwnWork.add(since: entered, until: now)
        record.pointee.usage.ticks = now
    }
    /// The agent's own destructor runs.
    static func exit() {
        let now = Clock.ticks()
        if !TraceOutput.isWritable { return }
        let thread = tracer_thread_state().pointee.context?.pointee.index ?? 0
        write(TRACE_PHASE_EXIT, trace_usage.process().at(now, own: OwnWork.ticks), thread)
    }
    /// Records a phase that began at `now`.
    static func write(_ which: some BinaryInteger, _ recorder: ThreadRecorder, _ usage: trace_usage, at now: UInt64) {
        if !TraceOutput.isWritable { return }
        write(which, usage.at(now, own: OwnWork.ticks), recorder.context.pointee.index)
        OwnWork.add(since: now, until: Clock.ticks())
    }
}

/// When the process was created. The kernel says so in units of 10 ms (proc_pid_stat(5), starttime, since boot). It was not
/// later than now less the time that it has run or waited for a CPU, which /proc/self/schedstat counts in ns.
enum ProcessBirth {
    static func estimate(_ now: UInt64) -> (monotonic: UInt64, error: UInt64)? {
        guard let starttime = field(StaticString("/proc/self/stat"), 22, after: 0x29) else { return nil }
        let bootNow = Clock.nanoseconds(ClockNumber.boot)
        let born = starttime &* 10_000_000 // USER_HZ is 100 on every architecture that the agent knows
        if born > bootNow { return nil }
        let oldest = bootNow &- born
        var youngest = oldest > 10_000_000 ? oldest &- 10_000_000 : 0
        let ran = field(StaticString("/proc/self/schedstat"), 1, after: 0, count: 2) ?? 0
        if ran > youngest { youngest = min(ran, oldest) }
        // CLOCK_MONOTONIC may have begun later than the process: the machine was asleep.
        return youngest > now ? nil : (now &- youngest, oldest &- youngest)
    }

    /// The number in a field, counted from 1, of a file of one line, or the sum of some fields. What stands up to the last `mark` counts as
    /// two fields: a program's name in parentheses may hold anything.
    private static func field(_ path: StaticString, _ wanted: Int, after mark: UInt8, count fields: Int = 1) -> UInt64? {
        var buffer = InlineArray<1024, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        return span.withUnsafeMutableBufferPointer { bytes in
            let count = KernelText.read(path, bytes.baseAddress!, 1023)
            if count <= 0 { return nil }
            var n = 0, field = 1
            if mark != 0 {
                for index in 0..<count where bytes[index] == mark { n = index &+ 2 }
                field = 3
            }
            while field < wanted && n < count {
                if bytes[n] == 0x20 { field &+= 1 }
                n &+= 1
            }
            if n >= count || bytes[n] < 0x30 || bytes[n] > 0x39 { return nil }
            var sum: UInt64 = 0
            for _ in 0..<fields {
                var number: UInt64 = 0
                while n < count && bytes[n] >= 0x30 && bytes[n] <= 0x39 {
                    number = number &* 10 &+ UInt64(bytes[n] &- 0x30)
                    n &+= 1
                }
                sum &+= number
                n &+= 1
            }
            return sum
        }
    }
}
