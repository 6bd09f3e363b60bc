// What recording a call costs on this machine at this moment, measured once as the agent starts: an empty function is
// called directly and through a stub of its own, whose events go to memory that is not the file's. A reader subtracts
// it (`--correct`). 20 µs; with the kernel's clock, whose readings are ten times as long, a quarter of the rounds.
import CSupport
import CTraceLayout

enum Calibration {
    private static let calls = 32

    /// On the thread that starts the agent, before recording is on. Under a time filter nothing is measured: which calls
    /// were left out of whom is not known, so that nothing could be subtracted. 0 unknown.
    static func run() -> (leaf: UInt32, inside: UInt32) {
        guard agent.minimumTicks == 0, let stub = FunctionTable.calibrationStub(), let scratch = Memory.pages(agent.pageBytes) else { return (0, 0) }
        defer { Memory.release(scratch, agent.pageBytes) }
        tracer_begin_thread(UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self))
        let state = tracer_thread_state()!
        guard let unit = state.pointee.unit, unit.pointee.state != nil else { return (0, 0) }
        let recorder = ThreadRecorder(state), hot = recorder.hot
        let kept = hot.pointee
        let words = (scratch + ChunkSize.headerBytes).assumingMemoryBound(to: UInt64.self)
        hot.pointee.chunk = scratch.assumingMemoryBound(to: trace_chunk_header.self)
        hot.pointee.limit = (scratch + (agent.pageBytes &- ChunkSize.slack)).assumingMemoryBound(to: UInt64.self)
        state.pointee.low = unit.pointee.stack_low // the fast path, though recording is off
        defer {
            recorder.restoreLow()
            hot.pointee = kept
        }
        var bare = UInt64.max, traced = UInt64.max, inside = UInt64.max
        for _ in 0..<(agent.clock == UInt32(TRACE_CLOCK_MONOTONIC) ? 4 : 16) {
            let direct = time(tracer_nothing)
            hot.pointee.cursor = words
            hot.pointee.base = Clock.ticks()
            let through = time(stub)
            // A call that took the slow path, as all do where the stack is not known, wrote nothing.
            if hot.pointee.cursor == words { return (0, 0) }
            // In a round that was interrupted for long, one call is two words: the next round.
            guard hot.pointee.cursor == words + calls, let lengths = lengths(words) else { continue }
            bare = min(bare, direct)
            traced = min(traced, through)
            inside = min(inside, lengths)
        }
        return traced == .max || traced <= bare ? (0, 0) : (perCall(traced &- bare), perCall(min(inside, traced &- bare)))
    }

    private static func time(_ function: @convention(c) () -> Void) -> UInt64 {
        let before = Clock.ticks()
        tracer_call(function, calls)
        return Clock.ticks() &- before
    }

    /// Of all calls of a round together; nil when one of the words is no call.
    private static func lengths(_ words: UnsafeMutablePointer<UInt64>) -> UInt64? {
        var sum: UInt64 = 0
        for index in 0..<calls {
            let event = Event(word: words[index])
            if event.kind != .complete { return nil }
            sum &+= event.duration
        }
        return sum
    }

    /// In parts of a tick: on aarch64 a tick may be as long as a call.
    private static func perCall(_ ticks: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: min(ticks &* UInt64(TRACE_COST_PARTS) / UInt64(calls), UInt64(UInt32.max)))
    }
}
