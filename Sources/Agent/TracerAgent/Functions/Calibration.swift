// Cost of recording a call on this machine at this moment, measured once as the agent starts: an empty function is called directly and
// through a stub of its own, whose events go to memory that is not the file's. A reader subtracts the cost (`--correct`). An
// out-of-order CPU hides a part of it behind what a program waits for, so two other kinds of calls say how wrong that may be.
// With the kernel's clock, whose readings take ten times as long, a quarter of the rounds.
import CSupport
import CTraceLayout

enum Calibration {
    private static let calls = 32
    /// With its call site.
    private static var wordsOfCall: Int { Trampolines.recordsSites ? 2 : 1 }

    private typealias Function = @convention(c) () -> Void
    private typealias Loop = @convention(c) (Function?, Int) -> Void

    /// On the thread that starts the agent, before recording is on. Under a time filter nothing is measured: which calls
    /// were filtered in which caller is not known, so that nothing could be subtracted. What stays unknown is 0.
    static func run() {
        var hook: UnsafeMutablePointer<function_hook>?
        guard !Limits.hasTimeFilter, let stub = FunctionTable.calibrationStub(&hook), let hook,
            let scratch = Memory.pages(Memory.pageBytes)
        else { return }
        defer { Memory.release(scratch, Memory.pageBytes) }
        tracer_begin_thread(UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self))
        let state = tracer_thread_state()!
        guard let context = state.pointee.context, context.pointee.state != nil else { return }
        let recorder = ThreadRecorder(state), position = recorder.position
        let kept = position.pointee
        position.pointee.chunk = scratch.assumingMemoryBound(to: trace_chunk_header.self)
        position.pointee.limit = (scratch + (Memory.pageBytes &- ChunkSize.slack)).assumingMemoryBound(to: UInt64.self)
        state.pointee.low = context.pointee.stack_low // the fast path, though recording is off
        defer {
            recorder.restoreLow()
            position.pointee = kept
        }
        let words = (scratch + ChunkSize.headerBytes).assumingMemoryBound(to: UInt64.self)
        let rounds = Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) ? 4 : 16
        @inline(never) func measure(_ function: @escaping Function, _ loop: Loop, isLeast: Bool = false) -> TimedCalls? {
            hook.pointee.target = unsafeBitCast(function, to: UnsafeRawPointer.self)
            return time(function, stub, loop, rounds, isLeast, position, words)
        }
        guard let empty = measure(tracer_nothing, tracer_call, isLeast: true), var cost = RecordingCost(empty) else { return }
        if let working = measure(tracer_some_work, tracer_call) { cost.compare(working) }
        if let unforeseen = measure(tracer_nothing, tracer_call_unforeseen) { cost.compare(unforeseen) }
        cost.compare(stepOfClock: stepOfClock(), calls: UInt64(calls))
        TraceOutput.cost = TraceOutput.Cost(
            leaf: perCall(cost.whole), inside: perCall(cost.inside), leafError: UInt32(truncatingIfNeeded: max(cost.wholeError, 1)),
            insideError: UInt32(truncatingIfNeeded: max(cost.insideError, 1)))
    }

    /// The least of some rounds each; or, where luck has a part in how long one is, the middle one.
    @inline(never) private static func time(
        _ function: Function, _ stub: Function, _ loop: Loop, _ rounds: Int, _ isLeast: Bool,
        _ position: UnsafeMutablePointer<write_position>, _ words: UnsafeMutablePointer<UInt64>
    ) -> TimedCalls? {
        var bare = Rounds(), traced = Rounds(), recorded = Rounds()
        for _ in 0..<rounds {
            let direct = time(function, loop)
            position.pointee.cursor = words
            position.pointee.base = Clock.ticks()
            let through = time(stub, loop)
            // A call that took the slow path, as all do where the stack is not known, wrote nothing.
            if position.pointee.cursor == words { return nil }
            // In a round that was interrupted for long, one call is two words: the next round.
            guard position.pointee.cursor == words + calls &* wordsOfCall, let lengths = lengths(words) else { continue }
            bare.add(direct)
            traced.add(through)
            recorded.add(lengths)
        }
        if bare.count == 0 { return nil }
        let chosen = isLeast ? 0 : bare.count / 2
        return TimedCalls(bare: bare[chosen], traced: traced[chosen], lengths: recorded[chosen])
    }

    /// In order.
    private struct Rounds {
        private var times = InlineArray<16, UInt64>(repeating: 0)
        private(set) var count = 0
        subscript(_ index: Int) -> UInt64 { times[index] }

        @inline(never) mutating func add(_ time: UInt64) {
            if count == 16 { return }
            var index = count
            while index > 0 && times[index &- 1] > time {
                times[index] = times[index &- 1]
                index &-= 1
            }
            times[index] = time
            count &+= 1
        }
    }

    @inline(never) private static func time(_ function: Function, _ loop: Loop) -> UInt64 {
        let before = Clock.ticks()
        loop(function, calls)
        return Clock.ticks() &- before
    }

    /// Returns the step of the clock: the greatest common divisor of some intervals, in ticks.
    private static func stepOfClock() -> UInt64 {
        var step: UInt64 = 0, before = Clock.ticks()
        for _ in 0..<16 {
            let now = Clock.ticks()
            var (a, b) = (step, now &- before)
            while b != 0 { (a, b) = (b, a % b) } // Euclid
            step = a
            before = now
        }
        return step
    }

    /// Returns the sum of the durations of all calls of a round, in ticks; nil when one of the words is no call.
    private static func lengths(_ words: UnsafeMutablePointer<UInt64>) -> UInt64? {
        var sum: UInt64 = 0
        for index in 0..<calls {
            let event = Event(word: words[(index &+ 1) &* wordsOfCall &- 1])
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
