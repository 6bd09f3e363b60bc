// What somebody outside wants of the process, by words in its file's first page (`tracer control`). A thread that records looks there at
// each slow path, so at least every 2^21 ticks in which it makes calls; while recording is off, at each call. A process that calls
// nothing takes note of nothing, and has nothing to record.
import CSupport
import CTraceLayout

enum SessionControl {
    /// No lock is held, signals are blocked, and the process is no child that has its parent's file.
    @inline(__always) static func look() { if tracer_has_control() { take() } }

    @inline(never) private static func take() {
        var number: UInt32 = 0
        guard TraceOutput.isOpen, !TraceOutput.isConfined, tracer_take_control(&number), let header = TraceOutput.header else { return }
        let wanted = header.pointee.wanted
        if wanted & UInt32(TRACE_WANTED_NAMES) != 0 {
            switch ChosenCalls.take(header) {
            case .done: break
            case .refused: header.pointee.refused = number
            case .later: return tracer_leave_control(number)
            }
        }
        if wanted & UInt32(TRACE_WANTED_MINIMUM) != 0 { _ = setMinimum(header.pointee.wanted_minimum) }
        if wanted & UInt32(TRACE_WANTED_ON) != 0 { tracer_agent_resume() }
        if wanted & UInt32(TRACE_WANTED_OFF) != 0 { tracer_agent_pause() }
        tracer_store_release_32(&header.pointee.controlled, number)
    }

    /// The same by the program itself (tracer_set). False: it cannot be changed.
    static func set(_ setting: Int32, _ value: UInt64) -> Bool {
        switch setting {
        case 1: return setMinimum(value) // TRACER_MINIMUM (tracer.h)
        case 2 where Limits.maximumDepth != 0 && value > 0: // TRACER_DEPTH; frames on other stacks are counted from the start, or never
            ThreadRecorder.setDepth(UInt32(truncatingIfNeeded: min(value, UInt64(Int32.max))))
            return true
        default: return false
        }
    }
    private static func setMinimum(_ nanoseconds: UInt64) -> Bool {
        if TraceOutput.flags & UInt32(TRACE_FLAG_FILTERED) == 0 { return false }
        ThreadRecorder.setMinimum(nanoseconds == 0 ? 0 : Clock.ticks(in: nanoseconds))
        return true
    }

    /// For who looks from outside, and who reads the trace. Signals are blocked.
    static func note(isOn: Bool, isBeginning: Bool = false) {
        if isOn { Triggers.forgetTurn() }
        guard TraceOutput.isWritable, let header = TraceOutput.header else { return }
        let wasOn = header.pointee.is_on != 0
        header.pointee.is_on = isOn ? 1 : 0
        if isBeginning { ChosenCalls.describe(header) } // a forked child begins as its parent is
        if isOn == (wasOn || isBeginning) { return }
        MetadataWriter.append(
            Int(TRACE_RECORD_SWITCHED), isOn ? 1 : 0, trace_switched_record(record: trace_record(), ticks: Clock.ticks()), isPassing: true)
    }
}
