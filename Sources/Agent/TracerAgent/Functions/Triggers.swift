// Functions whose calls ask for a snapshot if they are long, have certain values, or tell of another event (Variables.triggers). Such a function
// is recorded by Swift at each call, and its return is for Swift, too, so that no other function pays for it. A call that is as its trigger
// says posts a request in the file's first page (trace_request). Who records the program looks there, and copies what the file has.
import CSupport
import CTraceLayout

enum Triggers {
    /// Longer calls ask for a snapshot: ticks, of each trigger. 0: all that fulfil the function's conditions (CallConditions.swift).
    nonisolated(unsafe) private static var limits = InlineArray<32, UInt64>(repeating: 0)

    nonisolated(unsafe) private static var events = InlineArray<32, TriggerList.Event>(repeating: .call)

    /// Once the clock is known.
    static func begin() {
        _ = TriggerList.forEach { n, pattern, _, nanoseconds in
            events[n] = TriggerList.Event(pattern: pattern)
            limits[n] = nanoseconds == 0 ? 0 : max(Clock.ticks(in: nanoseconds), 1)
            return false
        }
    }

    /// A function has its trigger.
    static func noteWatched() {
        CallChoice.noteWatched()
        _ = tracer_atomic_add(&TraceOutput.header.pointee.watched, 1)
    }
    /// Another file has begun.
    static func describe() { TraceOutput.header.pointee.watched = CallChoice.watched }

    /// Index of the main thread, and when it returned from the function that its event loop waits in; 0: it is in there, or not known.
    nonisolated(unsafe) private static var mainThread: UInt32 = .max
    nonisolated(unsafe) private static var turnBegan: UInt64 = 0
    /// Recording begins, again or in a forked child.
    static func forgetTurn() { turnBegan = 0 }

    /// A watched function is called.
    static func began(_ function: UInt32, _ trigger: UInt8, _ thread: UInt32, _ tid: UInt32) {
        let index = UInt32(trigger) &- 1, event = events[Int(index)]
        if event == .call { return }
        let now = Clock.ticks()
        if event == .exception { return post(now, now, thread, function, index | event.rawValue) }
        if tid != UInt32(Process.pid) { return }
        mainThread = thread
        if turnBegan != 0 && now &- turnBegan > limits[Int(index)] { post(turnBegan, now, thread, function, index | event.rawValue) }
        turnBegan = 0
    }

    /// A call of a watched function has returned, or was left.
    static func ended(_ frame: Frame, _ thread: UInt32, _ now: UInt64) {
        let number = tracer_function_trigger(frame.function)
        if number == 0 { return }
        let limit = limits[Int(number) &- 1]
        if events[Int(number) &- 1] != .call {
            if thread == mainThread { turnBegan = now }
            return
        }
        if limit != 0 && now &- frame.pointee.enter_ticks <= limit { return }
        post(frame.pointee.enter_ticks, now, thread, frame.function, UInt32(number) &- 1)
    }

    /// May be called by several threads, and by a signal handler that interrupts it: the number is written last.
    static func post(_ begin: UInt64, _ end: UInt64, _ thread: UInt32, _ function: UInt32, _ trigger: UInt32) {
        guard TraceOutput.isWritable, let header = TraceOutput.header else { return }
        let number = tracer_atomic_add(&header.pointee.requests, 1)
        let first = (UnsafeMutableRawPointer(header) + Int(TRACE_REQUESTS_OFFSET)).assumingMemoryBound(to: trace_request.self)
        let request = first + Int(number % UInt64(TRACE_REQUESTS))
        tracer_store_release_32(&request.pointee.number, 0)
        tracer_fence()
        request.pointee.begin_ticks = begin
        request.pointee.end_ticks = end
        request.pointee.thread = thread
        request.pointee.function = function
        request.pointee.trigger = trigger
        tracer_store_release_32(&request.pointee.number, UInt32(truncatingIfNeeded: number &+ 1))
    }
}
