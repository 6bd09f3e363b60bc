// tracer_mark, tracer_begin, tracer_end and tracer_snapshot (tracer.h): names that the program gives to moments and to stretches of its
// time. A name becomes a function of its own, so that a span stands in the call tree like a call, and a mark like an entry
// without exit. Spans have no frame records: nothing of theirs is on the stack. Open ones are in a list of their thread,
// which each new chunk stores among its open frames.
import CSupport
import CTraceLayout

enum Spans {
    static let longestName = 1023

    static func add(_ recorder: ThreadRecorder, _ name: CText, _ kind: UInt64) {
        let isSnapshot = kind == UInt64(SPAN_SNAPSHOT), isMark = kind == UInt64(SPAN_MARK) || isSnapshot
        if kind == UInt64(SPAN_MARK) && equal(name, literal: "ready") { Ready.record(UInt32(TRACE_READY_MARK), 0, recorder) }
        if tracer_process_page().pointee.enabled == 0 && kind != UInt64(SPAN_END) { return }
        guard
            let id = FunctionTable.named(
                Name(name, atMost: longestName),
                flags: isMark ? TRACE_FUNCTION_ENTRY_ONLY | TRACE_FUNCTION_MARK : TRACE_FUNCTION_SPAN)
        else { return TraceOutput.drop() }
        switch kind {
        case UInt64(SPAN_MARK): recorder.writeInstant(id, isKept: true)
        case UInt64(SPAN_SNAPSHOT):
            let now = Clock.ticks()
            recorder.writeInstant(id, isKept: true)
            Triggers.post(now, Clock.ticks(), recorder.context.pointee.index, id, TRACE_REQUEST_OWN)
        case UInt64(SPAN_BEGIN): recorder.beginSpan(id)
        default: recorder.endSpan(id)
        }
    }
}

extension ThreadRecorder {
    private var spans: UnsafeMutablePointer<trace_open_frame>? { context.pointee.spans }

    func beginSpan(_ id: UInt32) {
        if context.pointee.span_count == context.pointee.span_capacity && !growSpans() { return TraceOutput.drop() }
        keepOpenFrames()
        let now = writeSpanEnter(id)
        if now == 0 { return TraceOutput.drop() }
        spans![Int(context.pointee.span_count)] = trace_open_frame(enter_ticks: now, function: id, flags: 0)
        context.pointee.span_count &+= 1
    }

    /// Ends the innermost open span of this name. A name without an open span is ignored.
    func endSpan(_ id: UInt32) {
        var n = Int(context.pointee.span_count) &- 1
        while n >= 0 && spans![n].function != id { n &-= 1 }
        if n < 0 { return }
        let now = Clock.ticks()
        ensureSlack()
        // RESUME names the span: it need not be the innermost thing that is open.
        writeSpanExit(id, entered: spans![n].enter_ticks, now)
        for index in n..<(Int(context.pointee.span_count) &- 1) { spans![index] = spans![index &+ 1] }
        context.pointee.span_count &-= 1
    }

    private func growSpans() -> Bool {
        let old = Int(context.pointee.span_capacity) &* MemoryLayout<trace_open_frame>.size
        let wanted = max(4096, old &* 2)
        if wanted > 1 << 20 { return false }
        let result =
            old == 0
            ? SystemCall.call(SystemCall.mmap, 0, wanted, Memory.readWrite, Mapping.pages, -1, 0)
            : SystemCall.call(SystemCall.mremap, Int(bitPattern: spans), old, wanted, Mapping.mayMove)
        if failed(result) { return false }
        context.pointee.spans = UnsafeMutablePointer(bitPattern: result)
        context.pointee.span_capacity = UInt64(wanted / MemoryLayout<trace_open_frame>.size)
        return true
    }
}
