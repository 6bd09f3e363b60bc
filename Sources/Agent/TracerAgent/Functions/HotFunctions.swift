// Functions that record their calls themselves, are called very often, and are so short that recording costs more than they do: an
// accessor would take ten times as long as without. "Very often" is a part of the time that passes: a server that runs for weeks calls each of
// its functions very often some day. They are suppressed: they lead past the recorder from some moment on, by one store
// of a word that their stubs read at each call. The file says when that was; until then all their calls are in it. Later ones are counted
// (PassedCalls.swift), and one in about a thousand is recorded as before. In a ring, which keeps no count of what it overwrites, they are
// neither.
//
// The time of calls that are only counted is in their caller's own. So it must be short.
// - One that may wait (PLAN_FUNCTION_WAITS: system calls, locks, pauses, or what leads to them) is never suppressed, nor one in whose call
//   a thread was found to have waited.
// - The average has all calls, of whatever kind, by their true lengths (HotCalls.swift).
// - One whose calls its code bounds (PLAN_FUNCTION_BOUNDED) stays suppressed. Any other, which has a loop or calls more, is watched: every
//   so many calls a thread looks at how long they took, and unless that was short, all in all, the function is recorded again for a while.
// - One for which there is no counter stays recorded.
import CSupport
import CTraceLayout

enum HotFunctions {
    /// TRACER_KEEPHOT.
    nonisolated(unsafe) static var areKept = Variables.keepsHot.standard

    /// About this many complete calls make a function a candidate: one word in `stride` is looked at when a thread's chunk is full. The
    /// stride is a prime, so that no loop of the program keeps step with it.
    private static let sampledCalls = 65_536, stride = 61
    private static let samples = UInt32(sampledCalls / stride)
    /// Number of a candidate's calls that are measured, one by one; fewer if it was suppressed before. If they do not come while `patience`
    /// chunks are filled, it is not called very often.
    private static let measuredCalls: UInt32 = 32_768, laterCalls: UInt32 = 8_192
    private static let patience: UInt32 = 64
    /// A call, measured with a clock read in it, is short if it takes less than this many times the cost of recording one.
    private static let shortness: UInt64 = 2
    /// A function is not suppressed if more than one call in this many is not one word: little would be gained.
    private static let severalPart: UInt32 = 16
    /// Nor if recording its calls takes less than one part in this many of the time that passes.
    private static let leastPart: UInt64 = 1024
    /// Calls of suppressed functions that a thread makes before it looks at the time that they took.
    private static let passes: UInt64 = 1024
    /// A watched function is recorded again after this many nanoseconds, then after twice as many, and so on.
    private static let firstPause: UInt64 = 100_000_000, mostDoublings: UInt64 = 7

    /// The sampled calls of one function.
    private struct Seen: BitwiseCopyable {
        var hook: UnsafeMutablePointer<function_hook>? // nil: it is not to be suppressed
        var calls: UInt32 = 0 // isCandidate: `ticks` is its index in `candidates`
        var ticks: UInt32 = 0

        static let isCandidate: UInt32 = .max
    }
    private enum State: UInt8 { case sampled, measured, suppressed }
    /// A function that was once measured.
    private struct Candidate: BitwiseCopyable {
        let hook: UnsafeMutablePointer<function_hook>
        var state = State.measured
        var isWatched: Bool
        var isSaid = false // the file says that it was suppressed
        var doublings: UInt8 = 0
        var sampledCalls: UInt32 = 0, sampledTicks: UInt32 = 0
        var calls: UInt32 = 0, several: UInt32 = 0
        var ticks: UInt64 = 0
        var begun: UInt64 = 0 // when measuring began, in ticks
        var chunks: UInt32 = 0
        var due: UInt64 = 0 // suppressed: from then on it may be recorded again, in ticks
        var counter: UInt32 = 0 // from 1 on, for good; 0: none yet
    }
    nonisolated(unsafe) private static var functions = Table<Seen>() // indexed by id; appended to with FunctionTable's lock held
    nonisolated(unsafe) private static var candidates = Table<Candidate>()
    nonisolated(unsafe) private static var counters: UInt32 = 0 // number of those that functions have
    /// Candidates that are being measured, and how often there was the first of them.
    nonisolated(unsafe) private static var measured = 0
    nonisolated(unsafe) private static var beginnings: UInt32 = 0
    nonisolated(unsafe) private static var lock = Lock()
    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }

    /// No function is suppressed, or recorded again, meanwhile.
    static func locked(_ body: () -> Void) {
        lock.lock()
        defer { lock.unlock() }
        body()
    }

    /// The function got this id. FunctionTable's lock is held.
    static func add(_ id: UInt32, _ hook: UnsafeMutablePointer<function_hook>, isBounded: Bool) {
        if areKept { return }
        while functions.count <= Int(id) { if !functions.append(Seen(hook: nil)) { return } }
        // Hooks are aligned: the lowest bit is free.
        functions.pointer(Int(id)).pointee.hook = isBounded ? hook : Self.watched(hook)
    }
    /// The id is of calls of a function of which the entry alone is recorded: they count as short ones, since nothing else is known of them.
    /// FunctionTable's lock is held.
    static func add(_ id: UInt32, entryOf function: UInt32) {
        if Int(function) >= functions.count { return }
        while functions.count <= Int(id) { if !functions.append(Seen(hook: nil)) { return } }
        functions.pointer(Int(id)).pointee.hook = functions[Int(function)].hook
    }
    private static func watched(_ hook: UnsafeMutablePointer<function_hook>) -> UnsafeMutablePointer<function_hook>? {
        UnsafeMutablePointer(bitPattern: UInt(bitPattern: hook) | 1)
    }

    // MARK: - Full chunks

    /// Signals are blocked. No word below `end` is written any more, but those that an interrupted trampoline has reserved.
    static func look(_ chunk: UnsafePointer<trace_chunk_header>, _ end: UnsafePointer<UInt64>, _ context: ThreadContext) {
        if functions.count == 0 { return }
        if let state = context.pointee.state { ThreadRecorder(state, context).resumeCounting() }
        let cost = UInt64(TraceOutput.cost.leaf)
        if cost == 0 { return } // not known, or a time filter omits what is short
        lock.lock()
        defer { lock.unlock() }
        measure(chunk, end, context, cost)
        sample(HotCalls.words(of: chunk), end, cost)
        // From here on.
        if measured > 0 && context.pointee.looks_at_all != beginnings { begin(context) }
    }

    private static func isShort(_ ticks: UInt64, _ calls: UInt64, _ cost: UInt64) -> Bool {
        ticks < UInt64(1) &<< 40 && ticks &* UInt64(TRACE_COST_PARTS) < calls &* cost &* shortness
    }

    private static func sample(_ words: UnsafePointer<UInt64>, _ end: UnsafePointer<UInt64>, _ cost: UInt64) {
        var word = words
        while word < end {
            let event = Event(word: word.pointee)
            word += stride
            if event.kind != .complete || Int(event.function) >= functions.count { continue }
            let function = functions.pointer(Int(event.function)), ticks = UInt32(truncatingIfNeeded: event.duration)
            guard let hook = function.pointee.hook else { continue }
            if function.pointee.calls == Seen.isCandidate {
                let candidate = candidates.pointer(Int(function.pointee.ticks))
                if candidate.pointee.state != .sampled { continue }
                if isOften(&candidate.pointee.sampledCalls, &candidate.pointee.sampledTicks, ticks, cost) { begin(candidate) }
            } else if isOften(&function.pointee.calls, &function.pointee.ticks, ticks, cost) {
                let bits = UInt(bitPattern: hook), index = candidates.count
                guard let hook = UnsafeMutablePointer<function_hook>(bitPattern: bits & ~1),
                    candidates.append(Candidate(hook: hook, isWatched: bits & 1 != 0))
                else { continue }
                function.pointee.calls = Seen.isCandidate
                function.pointee.ticks = UInt32(index)
                begin(candidates.pointer(index))
            }
        }
    }
    /// One more sampled call. True: there were many, and those that are one word are short.
    private static func isOften(_ calls: inout UInt32, _ sum: inout UInt32, _ ticks: UInt32, _ cost: UInt64) -> Bool {
        calls &+= 1
        sum &+= ticks // below 2^17 each
        if calls < samples { return false }
        defer {
            calls = 0
            sum = 0
        }
        return isShort(UInt64(sum), UInt64(samples), cost)
    }

    // MARK: - Candidates

    /// From the next chunk of each thread on.
    private static func begin(_ candidate: UnsafeMutablePointer<Candidate>) {
        candidate.pointee.state = .measured
        candidate.pointee.calls = 0
        candidate.pointee.several = 0
        candidate.pointee.ticks = 0
        candidate.pointee.begun = Clock.ticks()
        candidate.pointee.chunks = 0
        if measured == 0 { beginnings &+= 1 }
        measured &+= 1
    }
    private static func begin(_ context: ThreadContext) {
        context.pointee.looks_at_all = beginnings
        (context.pointee.preemptions, context.pointee.waits) = ThreadSwitches.count()
    }

    private static func candidate(_ function: UInt32) -> UnsafeMutablePointer<Candidate>? {
        if Int(function) >= functions.count { return nil }
        let seen = functions.pointer(Int(function))
        return seen.pointee.calls == Seen.isCandidate && seen.pointee.hook != nil ? candidates.pointer(Int(seen.pointee.ticks)) : nil
    }
    /// Returns true if calls of the function are measured.
    @inline(__always) static func isMeasured(_ function: UInt32) -> Bool { candidate(function)?.pointee.state == .measured }
    /// A call of a function that is measured. `isSeveral`: it is not one word.
    static func add(_ function: UInt32, ticks: UInt64, isSeveral: Bool) {
        guard let candidate = candidate(function) else { return }
        candidate.pointee.calls &+= 1
        if isSeveral { candidate.pointee.several &+= 1 }
        candidate.pointee.ticks &+= min(ticks, 1 &<< 40)
    }
    /// In a call of the function its thread has waited: it is recorded for good.
    static func keep(_ function: UInt32) {
        guard let candidate = candidate(function) else { return }
        if candidate.pointee.state == .measured { measured &-= 1 }
        candidate.pointee.state = .sampled
        functions.pointer(Int(function)).pointee.hook = nil
    }

    private static func measure(
        _ chunk: UnsafePointer<trace_chunk_header>, _ end: UnsafePointer<UInt64>, _ context: ThreadContext, _ cost: UInt64
    ) {
        if measured == 0 || context.pointee.looks_at_all != beginnings { return }
        let (preemptions, waits) = ThreadSwitches.count()
        var calls = HotCalls(
            preemptions: preemptions &- context.pointee.preemptions, hasWaited: waits != context.pointee.waits)
        (context.pointee.preemptions, context.pointee.waits) = (preemptions, waits)
        calls.add(chunk, until: end)
        for n in 0..<candidates.count where candidates[n].state == .measured { judge(candidates.pointer(n), cost) }
    }
    private static func judge(_ candidate: UnsafeMutablePointer<Candidate>, _ cost: UInt64) {
        candidate.pointee.chunks &+= 1
        let calls = candidate.pointee.calls
        if calls < (candidate.pointee.isSaid ? laterCalls : measuredCalls) {
            if candidate.pointee.chunks < patience { return }
            candidate.pointee.state = .sampled
        } else if candidate.pointee.several <= calls / severalPart && isShort(candidate.pointee.ticks, UInt64(calls), cost)
            && isCostly(UInt64(calls), since: candidate.pointee.begun, cost)
        {
            suppress(candidate)
        } else {
            candidate.pointee.state = .sampled
        }
        measured &-= 1
    }

    private static func isCostly(_ calls: UInt64, since begun: UInt64, _ cost: UInt64) -> Bool {
        Clock.ticks() &- begun < calls &* cost / UInt64(TRACE_COST_PARTS) &* leastPart
    }

    private static func suppress(_ candidate: UnsafeMutablePointer<Candidate>) {
        let now = Clock.ticks(), hook = candidate.pointee.hook
        candidate.pointee.state = .sampled
        if hook.pointee.instant == tracer_address_pass() { return } // it is left out meanwhile (GatedFunctions.swift)
        if hook.pointee.instant == Trampolines.patchedSet.pass_counted { return } // for its calls with an exit, or without
        if !candidate.pointee.isSaid {
            if !Limits.isRing && !giveCounter(candidate) { return }
            MetadataWriter.suppressed(hook.pointee.function, counter: candidate.pointee.counter, ticks: now)
        }
        candidate.pointee.state = .suppressed
        candidate.pointee.isSaid = true
        candidate.pointee.due = now &+ Clock.ticks(in: firstPause &<< min(UInt64(candidate.pointee.doublings), mostDoublings))
        if UInt64(candidate.pointee.doublings) < mostDoublings { candidate.pointee.doublings &+= 1 }
        let enter =
            candidate.pointee.counter != 0
            ? Trampolines.patchedSet.pass_counted
            : candidate.pointee.isWatched ? Trampolines.patchedSet.pass_checked : tracer_address_pass()
        tracer_store_release_64(&hook.pointee.instant, enter) // FUNCTION_ENTER
    }
    private static func giveCounter(_ candidate: UnsafeMutablePointer<Candidate>) -> Bool {
        if counters == UInt32(TRACE_PASSED_COUNTERS) { return false }
        candidate.pointee.hook.pointee.counter = UInt16(counters &* 8)
        counters &+= 1
        candidate.pointee.counter = counters
        return true
    }

    // MARK: - Suppressed functions

    enum Decision {
        case passes
        /// The trampoline records it: it is a sample, or its thread has no counters.
        case isOrdinary
        /// The slow path records it, as a call of any other function.
        case isRecorded
    }
    /// Decides on a call of a patched function that has left the fast path.
    static func decide(_ hook: UnsafeMutablePointer<function_hook>, _ recorder: ThreadRecorder) -> Decision {
        let enter = hook.pointee.instant, state = recorder.state
        if enter == Trampolines.patchedSet.pass_counted {
            // The thread came here before the function was suppressed, or nothing is recorded now.
            if state.pointee.passes >= 0 || tracer_process_page().pointee.enabled == 0 { return .isRecorded }
            let calls = recorder.context.pointee.interval
            recorder.sample(hook)
            // A short interval says little: the sample itself takes longer.
            resume(hook, state, after: calls >= ThreadRecorder.meanInterval / 2 ? calls : 0)
            return .isOrdinary
        }
        if enter != Trampolines.patchedSet.pass_checked { return .isRecorded }
        state.pointee.passes = Int64(passes)
        return resume(hook, state, after: passes) ? .isRecorded : .passes
    }

    /// A thread has made so many calls that passed, and this one is of the function. Returns true if it is recorded from now on.
    @discardableResult
    private static func resume(
        _ hook: UnsafeMutablePointer<function_hook>, _ state: UnsafeMutablePointer<thread_state>, after calls: UInt64
    ) -> Bool {
        let now = Clock.ticks(), before = state.pointee.passes_ticks
        state.pointee.passes_ticks = now
        // They were short even if the thread has done nothing else.
        if before == 0 || calls == 0 || isShort(now &- before, calls, UInt64(TraceOutput.cost.leaf)) { return false }
        lock.lock()
        defer { lock.unlock() }
        guard let candidate = candidate(hook.pointee.function), candidate.pointee.isWatched, candidate.pointee.state == .suppressed,
            now >= candidate.pointee.due, hook.pointee.instant != tracer_address_pass() // it is left out meanwhile
        else { return false }
        begin(candidate)
        tracer_store_release_64(&hook.pointee.instant, Trampolines.patchedSet.enter) // FUNCTION_ENTER
        return true
    }
}
