// Work that the trampolines cannot do in a few instructions: begin a thread, find out which frames are dead, write what is not one
// word. Runs on the agent's stack with all signals blocked, on the thread it belongs to.
import CSupport
import CTraceLayout

struct ThreadRecorder {
    /// The calling thread's own. Nobody else looks there (struct thread_state says why).
    let state: UnsafeMutablePointer<thread_state>
    let context: UnsafeMutablePointer<thread_context>

    nonisolated(unsafe) static var lock = Lock()
    nonisolated(unsafe) private static var nextIndex: UInt32 = 0
    /// Number of the present file. A thread whose context has another one goes on in this one from its next slow path on.
    static var session: UInt32 { Lock.session }
    /// How many threads are just opening a chunk.
    nonisolated(unsafe) static var opening: UInt64 = 0

    /// The recorder of the calling thread; a new thread is registered.
    init(_ state: UnsafeMutablePointer<thread_state>) {
        self.state = state
        context = state.pointee.context
        if context.pointee.state == nil { begin() }
        goOn()
        if StackCopying.isExpected && context.pointee.copies_stack == 0 { distrustStack() }
    }

    /// The recorder of another thread, which has ended, or of none.
    init(_ state: UnsafeMutablePointer<thread_state>, _ context: ThreadContext) {
        self.state = state
        self.context = context
    }

    var position: UnsafeMutablePointer<write_position> { context.pointee.position }
    var base: Frame { frame(at: 0) }
    var alternateMode: Frame { frame(at: Int(CONTEXT_ALTERNATE_MODE)) }
    private func frame(at offset: Int) -> Frame {
        (UnsafeMutableRawPointer(context) + offset).assumingMemoryBound(to: frame_record.self)
    }
    var isInAlternateMode: Bool { state.pointee.top == alternateMode }
    var isAlternateOpen: Bool { context.pointee.alternate_count > 0 }

    /// The innermost frame on the thread's own stack.
    var top: Frame {
        get { isInAlternateMode ? context.pointee.top : state.pointee.top }
        nonmutating set { if isInAlternateMode { context.pointee.top = newValue } else { state.pointee.top = newValue } }
    }
    func isOwnStack(_ pointer: UInt64) -> Bool {
        pointer >= context.pointee.stack_low && pointer < context.pointee.stack_high
    }

    // MARK: - Begin and end

    private func begin() {
        context.pointee.state = state
        context.pointee.session = ThreadRecorder.session
        if context.pointee.position == nil { context.pointee.position = firstPosition() } // a context that was ready has one
        // A child of vfork that was made when no slot led here yet: what it has made is for its thread (renew).
        let isOfParent = Process.wasRunning && tracer_process_page().pointee.alive != 0 && !isInProcess
        if isOfParent {
            context.pointee.tid = 0
            context.pointee.session = ThreadRecorder.session &- 1
            (context.pointee.stack_low, context.pointee.stack_high) = (0, .max)
            state.pointee.low = .max
        } else {
            findStack()
        }
        base.setElsewhere()
        context.pointee.depth = Limits.maximumDepth
        alternateMode.pointee.last = UInt32(LAST_ALTERNATE_MODE)
        setChanging(false)
        state.pointee.top = base
        let first = (MemoryLayout<thread_context>.size &+ 127) & ~127
        addRecords(UnsafeMutableRawPointer(context) + first, (Int(CONTEXT_BYTES) &- first) / Int(FRAME_BYTES), above: base)
        // In a forked child the file is the parent's still, and another thread of the parent may have held its locks: becomeChild does it.
        if tracer_process_page().pointee.alive != 0 && !isOfParent { register() }
        state.pointee.position = position
    }
    private func findStack() {
        (context.pointee.stack_low, context.pointee.stack_high) = ThreadStack.bounds()
        base.pointee.stack_pointer = context.pointee.stack_high // a stack above the thread's own is not its own either
    }
    private var isInProcess: Bool { UInt64(truncatingIfNeeded: SystemCall.call(SystemCall.getpid)) == UInt64(Process.pid) }

    private func firstPosition() -> UnsafeMutablePointer<write_position> {
        if tracer_process_page().pointee.alive != 0 {
            ThreadRecorder.lock.lock()
            defer { ThreadRecorder.lock.unlock() }
            if let position = ContextPool.position() { return position }
            TraceOutput.stop(TRACE_STOP_MEMORY, Failure.memory)
        } else if let page = ContextPool.wipedPages(1) { // in a forked child another thread of the parent may have held the lock
            return page.assumingMemoryBound(to: write_position.self)
        }
        return ContextPool.noPosition
    }

    /// The agent is detached: nothing more goes into the file. Waits for threads that are just giving up a chunk, at most for seconds.
    static func awaitChunks() {
        tracer_fence() // TraceOutput.isWritable is false: who looks at it from now on opens none
        for _ in 0..<20_000 where tracer_load_acquire(&opening) != 0 { Memory.pause(100_000) }
    }
    /// Puts private memory in the place of chunks: a trampoline that was interrupted may still write there. A chunk is unmapped only by its
    /// thread, once its context has another one, under this lock. What no thread has is unmapped: it would be more with each detach.
    static func leaveChunks() {
        lock.lock()
        let isQuiet = tracer_load_acquire(&opening) == 0
        ThreadContexts.forAll {
            let pending = tracer_pending_chunks($0)!
            for n in 0..<Int($0.pointee.pending_chunk_count) {
                leaveFile(pending[n].address, pending[n].byte_count)
                pending[n].offset = 0
            }
            if let chunk = $0.pointee.chunk { leaveFile(chunk, $0.pointee.chunk_bytes) }
        }
        FirstChunks.leaveFile(isQuiet: isQuiet)
        SpareChunks.leaveFile(isQuiet: isQuiet)
        if isQuiet { leaveMappings() } // chunks that are in no list (keepPending)
        lock.unlock()
    }
    @inline(never) private static func leaveFile(_ chunk: UnsafeMutableRawPointer, _ byteCount: UInt64) {
        tracer_mapping_remove(chunk)
        Memory.replace(chunk, Int(byteCount))
    }
    /// The agent is attached again, to another file. Every thread's chunk is full for now, so that none goes on in the old one.
    static func beginSession() {
        lock.lock()
        Lock.session &+= 1
        nextIndex = 0
        Ring.forget()
        SpareChunks.forgetAll()
        ThreadRecords.forget()
        orphans?.pointee.session = session
        ThreadContexts.forAll { $0.pointee.position.pointee.limit = nil }
        lock.unlock()
    }
    /// The thread's first slow path since: its open frames are carried into the new file, as in a forked child.
    func goOn() {
        if context.pointee.session != ThreadRecorder.session && !isPassing { renew() }
    }
    @inline(never) private func renew() {
        // A forked child begins a file of its own (becomeChild), and another task that has the thread's block leaves its context alone.
        let isNew = context.pointee.tid == 0
        if tracer_process_page().pointee.alive == 0
            || (isNew ? !isInProcess : UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.gettid)) != context.pointee.tid)
        {
            return
        }
        context.pointee.session = ThreadRecorder.session
        if isNew { findStack() }
        let chunk = context.pointee.chunk, bytes = Int(context.pointee.chunk_bytes), isPending = isWritePending
        detachChunk()
        if let chunk { // memory of its own (leaveChunks)
            if isPending { keepPending(chunk, bytes, at: 0) } else { Memory.release(chunk, bytes) }
        }
        if !isPending { leavePendingChunks() }
        position.pointee = write_position(
            cursor: nil, limit: nil, base: 0, chunk: nil, minimum_ticks: 0, pending: position.pointee.pending,
            pending_stack: position.pointee.pending_stack, unused: 0)
        context.pointee.has_gap = 0
        register(isKnown: !isNew)
    }

    /// Shorter calls are not kept from now on. The process has the trampolines with a time filter.
    static func setMinimum(_ ticks: UInt64) {
        lock.lock()
        defer { lock.unlock() }
        Limits.minimumTicks = ticks
        TraceOutput.header.pointee.minimum_ticks = ticks
        ThreadContexts.forAll { $0.pointee.position.pointee.minimum_ticks = ticks }
    }

    /// Gives the thread its index and a record in the file. In a forked child, whose only thread it is, again or for the first time.
    func register(isKnown: Bool = false) {
        context.pointee.tid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.gettid))
        context.pointee.sequence = 0
        position.pointee.minimum_ticks = Limits.minimumTicks
        state.pointee.low = isInAlternateMode || tracer_process_page().pointee.enabled == 0 ? .max : context.pointee.stack_low
        ThreadRecorder.lock.lock()
        ThreadRecorder.releaseDead(besides: self)
        context.pointee.index = ThreadRecorder.nextIndex
        ThreadRecorder.nextIndex &+= 1
        if !isKnown { ThreadContexts.add(context) }
        if ThreadContexts.count > 1 { ContextPool.refill() }
        ThreadRecorder.lock.unlock()
        ThreadRecords.begin(context)
    }

    /// Nothing reports to the agent that a thread ends. Its context is found and released when a later one begins: the same
    /// thread block (glibc keeps and reuses stacks), or, for a few at a time in turn, a tid that is gone.
    private static func releaseDead(besides new: ThreadRecorder) {
        ThreadContexts.forEach(block: new.state) { releaseDead($0, new) }
        ThreadContexts.forFew(8) { releaseIfDead($0, new) }
    }
    /// The process exits: no later thread finds those that have ended, and their open calls would last until now.
    func releaseDead() {
        ThreadRecorder.lock.lock()
        ThreadContexts.forAll { ThreadRecorder.releaseIfDead($0, self) }
        ThreadRecorder.lock.unlock()
    }
    /// The same as the agent is detached.
    static func releaseAllDead() {
        lock.lock()
        ThreadContexts.forAll { releaseIfDead($0, nil) }
        lock.unlock()
    }
    private static func releaseIfDead(_ context: ThreadContext, _ other: ThreadRecorder?) {
        if SystemCall.call(SystemCall.tgkill, Int(Process.pid), Int(context.pointee.tid), 0) == -Failure.noProcess {
            releaseDead(context, other)
        }
    }
    @inline(never) private static func releaseDead(_ context: ThreadContext, _ other: ThreadRecorder?) {
        if context == other?.context || !adoptFrames(of: context) { return }
        ThreadContexts.remove(context)
        let isOwn = context.pointee.session == session
        if isOwn {
            ThreadRecords.end(context)
            closeChunk(of: context)
        }
        release(context, isOwn: isOwn)
    }
    /// `isOwn`: its chunk lies in this process's file, not in that of a parent.
    private static func release(_ context: ThreadContext, isOwn: Bool) {
        let chunk = context.pointee.chunk
        if let chunk { leaveChunk(chunk, Int(context.pointee.chunk_bytes), at: isOwn ? context.pointee.chunk_offset : nil) }
        for n in 0..<Int(context.pointee.pending_chunk_count) {
            // A thread that had just kept its chunk when another one forked has it twice (replaceChunk).
            let pending = tracer_pending_chunks(context)[n]
            if pending.address != chunk { leavePending(pending, isOwn: isOwn) }
        }
        releaseCounters(of: context)
        if context.pointee.span_capacity != 0 {
            Memory.release(context.pointee.spans, Int(context.pointee.span_capacity) &* MemoryLayout<trace_open_frame>.size)
        }
        release(context.pointee.batches)
        if context.pointee.alternate_batches != nil { KnownStacks.forgetFrames() }
        release(context.pointee.alternate_batches)
        Memory.release(context.pointee.lists, listBytes(context))
        ContextPool.give(context)
    }

    /// Calls it with the contexts of all threads, and with the one that is none's (OrphanFrames.swift).
    static func withContexts(_ body: (ThreadContext) -> Void) {
        lock.lock()
        var next = ThreadContexts.first
        while let context = next {
            next = context == orphans ? nil : context.pointee.next ?? orphans
            body(context)
        }
        lock.unlock()
    }

    /// In a forked child: the other threads do not exist here.
    static func keepOnly(_ recorder: ThreadRecorder) {
        lock = Lock()
        opening = 0
        resetEnded()
        Ring.becomeChild()
        FirstChunks.becomeChild()
        SpareChunks.leaveParents()
        KnownStacks.becomeChild()
        KnownStacks.forgetFrames()
        recorder.context.pointee.visitors = 0
        orphans?.pointee.visitors = 0
        var next = ThreadContexts.first
        while let context = next {
            next = context.pointee.next
            if context != recorder.context { release(context, isOwn: false) }
        }
        ThreadContexts.removeAll()
        nextIndex = 0
        SpareChunks.becomeChild(besides: recorder.context.pointee.chunk)
        recorder.context.pointee.session = session
        for n in 0..<Int(recorder.context.pointee.pending_chunk_count) { tracer_pending_chunks(recorder.context)[n].offset = 0 }
        recorder.detachChunk()
        recorder.stopCounting()
        leaveMappings()
    }

    /// Puts private memory in the place of the parent's chunks and counters: a trampoline that a signal interrupted, whose handler has forked,
    /// goes on here with an address in one of them. In the parent's file it would add to words that the parent adds to, too: a call
    /// completed twice is the enter of another function.
    @inline(never) private static func leaveMappings() {
        var number: UInt32 = 0, byteCount: UInt64 = 0
        let header = UInt64(UInt(bitPattern: TraceOutput.header))
        while true {
            let start = tracer_mapping_next(&number, &byteCount)
            guard let address = UnsafeMutableRawPointer(bitPattern: UInt(start)) else { return }
            if start == header || MetadataWriter.has(start) { continue } // read from until another file has its own
            leaveFile(address, byteCount)
        }
    }
    /// The mapped chunk belongs to another process.
    private func detachChunk() {
        markElsewhere(countOwn())
        context.pointee.chunk = nil
        context.pointee.chunk_bytes = 0
    }

    // MARK: - Events

    /// Makes sure that `count` words fit before the clock is read.
    private func reserveWords(_ count: Int) -> Bool {
        if let limit = position.pointee.limit, let cursor = position.pointee.cursor, cursor + count <= limit { return true }
        return openChunk()
    }
    private func hasSlack(_ count: Int) -> Bool {
        guard let limit = position.pointee.limit, let cursor = position.pointee.cursor else { return false }
        return cursor + count <= limit + ChunkSize.slack / 8
    }
    /// Space for the words of one return, in the slack if need be: a return does not wait for a new chunk.
    func ensureSlack(_ count: Int = 8) {
        if !hasSlack(count) { _ = openChunk() }
    }
    /// Into the chunk, or the slack after it. What is after the word, or nil.
    @discardableResult
    private func append(_ event: Event) -> UnsafeMutablePointer<UInt64>? {
        if !TraceOutput.isWritable || !hasSlack(1) && !openChunk() {
            context.pointee.has_gap = 1
            return nil
        }
        let word = position.pointee.cursor!
        word.pointee = event.word
        position.pointee.cursor = word + 1
        return word + 1
    }
    /// Ticks since the base; a new base is set first when they would not fit.
    private func time(_ ticks: UInt64, within reach: UInt64) -> UInt64 {
        if ticks &- position.pointee.base >= reach {
            ClockWatch.poll(ticks, since: position.pointee.base)
            append(.control(.base, ticks))
            position.pointee.base = ticks
        }
        return ticks &- position.pointee.base
    }

    /// The enter event of a frame at the time that its record says.
    @inline(never) func appendEnter(_ frame: Frame) {
        ensureSlack(4)
        let after = time(frame.pointee.enter_ticks, within: Event.startReach)
        appendEnter(frame, after: after)
    }
    /// `words`: those with the values of its arguments, which are before it.
    private func appendEnter(_ frame: Frame, after: UInt64, words: Int = 0) {
        appendSite(frame.site)
        let mayHaveObject =
            frame.pointee.function.pointee.argument & ~UInt8(FUNCTION_HAS_VALUES) != 0
            || frame.pointee.function.pointee.kind == UInt8(KIND_PATCHED_ARGUMENTS)
        let hasObject = mayHaveObject && frame.pointee.argument != 0
        if hasObject { appendObject(frame.pointee.argument) }
        let hasSite = Trampolines.recordsSites && frame.site != 0
        frame.pointee.words = UInt32(truncatingIfNeeded: 8 &+ (hasSite ? 8 : 0) &+ (hasObject ? 8 : 0) &+ words &* 8)
        frame.pointee.event = append(.enter(frame.function, after: after))
        if frame.pointee.event == nil { frame.setLost() }
    }

    /// Appends the call site of the next word's call; 0 unknown.
    private func appendSite(_ address: UInt64) {
        if Trampolines.recordsSites && address != 0 { append(.control(.site, address)) }
    }

    /// Appends what the call of the next word waits for, or whom it lets go on; 0: none.
    private func appendObject(_ word: UInt64) {
        if word != 0 { append(Event(word: word)) }
    }

    /// The enter of a frame that begins now: its clock is read here, after any chunk was opened.
    func begin(_ frame: Frame) {
        if !reserveWords(4) {
            TraceOutput.drop()
            frame.pointee.enter_ticks = Clock.ticks()
            return frame.setLost()
        }
        frame.pointee.enter_ticks = Clock.ticks()
        appendEnter(frame)
    }

    /// The same of a call whose arguments are recorded, by this program; 0: they are not. Its clock is read when they have been read.
    func begin(_ frame: Frame, _ program: UInt16, _ spills: Spills) {
        if program == 0 { return begin(frame) }
        ArgumentValues.read(program, spills) { values in
            let count = values.wordCount
            if !reserveWords(count &+ 6) { return begin(frame) } // counts it as dropped
            frame.pointee.enter_ticks = Clock.ticks()
            let after = time(frame.pointee.enter_ticks, within: Event.startReach)
            append(values, program, isResult: false)
            appendEnter(frame, after: after, words: count &+ 1)
            // A filter takes back more words than the trampolines know, also one whose time is set while the call is open.
            // Swift also ends a call whose result says whether it is kept.
            if ArgumentPlan.hasResult(program) || Trampolines.areFiltered { frame.pointee.label |= UInt64(LABEL_RESULT) }
        }
    }
    private func append(_ values: ArgumentValues, _ program: UInt16, isResult: Bool) {
        let count = values.wordCount
        for n in 0..<count { append(values.word(n)) }
        append(.values(UInt32(program), words: UInt32(truncatingIfNeeded: count), tail: values.tail, isResult: isResult))
    }

    /// Takes back the enter of a frame that ends now, if the time filter does not keep it: as the trampolines do (TAKE_BACK); or if its result does
    /// not fulfil a condition: that of a call which was left does not. False: its end must be written.
    /// `program`: what reads the result of the call, which has just returned; 0: there is none.
    func takeBack(_ frame: Frame, _ now: UInt64, resultOf program: UInt16 = 0) -> Bool {
        let isShort = now &- frame.pointee.enter_ticks < position.pointee.minimum_ticks
        if !isShort {
            if !ArgumentPlan.isTested(ArgumentPlan.program(of: frame.pointee.function), .keep, ofResult: true) { return false }
            if program != 0 && CallConditions.keep(program, Spills(frame.pointee.stack_pointer), hasReturned: true) { return false }
        }
        guard let end = frame.written, frame.pointee.owner == nil || frame.pointee.owner == context else { return false }
        let first = end - Int(frame.pointee.words / 8)
        var word = first
        while word < end {
            word.pointee = 0
            word += 1
        }
        if position.pointee.cursor == end { position.pointee.cursor = first }
        if isShort { position.pointee.chunk.pointee.filtered_by_time &+= 1 } else { countUnwanted() }
        return true
    }
    /// A call that does not fulfil its function's conditions.
    func countUnwanted() {
        if position.pointee.chunk != nil || openChunk() { position.pointee.chunk.pointee.filtered_by_condition &+= 1 }
    }

    /// What is written now lies within the open calls: they are kept, however short they are.
    func keepOpenFrames() {
        if !Limits.hasTimeFilter { return }
        var frame = top
        while frame != base && !frame.isElsewhere {
            if frame.written != nil && !frame.isClosing { frame.setElsewhere() }
            frame = frame.pointee.below
        }
        if isAlternateOpen { forEachAlternate { if $0.written != nil && !$0.isClosing { $0.setElsewhere() } } }
    }

    /// `isKept`: also under a time filter, with the calls that it was made in.
    @inline(never) func writeInstant(_ function: UInt32, from site: UInt64 = 0, of object: UInt64 = 0, isKept: Bool = false) {
        if isKept { keepOpenFrames() }
        guard reserveWords(4) else { return TraceOutput.drop() }
        if Limits.hasTimeFilter && !isKept {
            position.pointee.chunk.pointee.filtered_by_time &+= 1
            return
        }
        let after = time(Clock.ticks(), within: Event.startReach)
        appendSite(site)
        appendObject(object)
        append(.complete(function, after: after, duration: 0)!)
    }

    /// The next call of the function stands for so many that were counted. False: it could not be written.
    func writeSampled(_ function: UInt32, calls: UInt64) -> Bool { reserveWords(4) && append(.sampled(function, calls: calls)) != nil }

    /// The beginning of a span: when, or 0 when it could not be written.
    func writeSpanEnter(_ function: UInt32) -> UInt64 {
        if !reserveWords(2) { return 0 }
        let now = Clock.ticks()
        return append(.enter(function, after: time(now, within: Event.startReach))) == nil ? 0 : now
    }
    func writeSpanExit(_ function: UInt32, entered: UInt64, _ now: UInt64) {
        let after = time(now, within: Event.timeReach)
        append(.control(.resume, entered))
        append(.exit(function, after: after))
    }

    /// The exit of a frame. While frames on other stacks are open, order does not say which one: its enter time does.
    /// `program`: what reads the call's result; 0: nothing does.
    func writeExit(_ frame: Frame, _ now: UInt64, _ wasAlternate: Bool, _ program: UInt16 = 0) {
        if program != 0 && ArgumentPlan.hasResult(program) {
            ArgumentValues.readResult(program, of: frame, context) {
                ensureSlack($0.wordCount &+ 4) // in one chunk, as what comes after it
                let after = time(now, within: Event.timeReach)
                append($0, program, isResult: true)
                writeExit(frame, after: after, wasAlternate)
            }
        } else {
            writeExit(frame, after: time(now, within: Event.timeReach), wasAlternate)
        }
    }
    private func writeExit(_ frame: Frame, after: UInt64, _ wasAlternate: Bool) {
        if wasAlternate || isAlternateOpen { append(.control(.resume, frame.pointee.enter_ticks)) }
        append(.exit(frame.function, after: after))
    }
    @inline(never) func writeUnwound(_ frame: Frame, _ now: UInt64) {
        ensureSlack()
        if takeBack(frame, now) { return }
        let after = time(now, within: Event.timeReach)
        append(.control(.resume, frame.pointee.enter_ticks))
        append(.unwound(1, after: after))
        noteEnd(frame, now)
    }
    private func writeUnwound(_ count: UInt32, _ now: UInt64) {
        if count > 0 { append(.unwound(count, after: time(now, within: Event.timeReach))) }
    }

    /// A frame has returned on another thread, in whose events its end is.
    func writeDeparted(_ frame: Frame) {
        ensureSlack()
        let after = time(max(frame.pointee.departed, position.pointee.base), within: Event.timeReach)
        append(.control(.resume, frame.pointee.enter_ticks))
        append(.unwound(0, after: after))
    }

    /// No return finds its frame any more, and none reads the clock. In the file they stay open.
    func forgetFrames() { state.pointee.top = base }

    // MARK: - Frames

    /// Links new records above the end of the chain; the last one that `Limits.maximumDepth` admits is marked.
    private func addRecords(_ start: UnsafeMutableRawPointer, _ count: Int, above end: Frame) {
        var below = end
        for n in 0..<count {
            let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
            frame.pointee.level = below.pointee.level &+ 1
            if frame.pointee.level == Limits.maximumDepth { frame.pointee.last = 1 }
            frame.pointee.below = below
            below.pointee.above = frame
            below = frame
            if frame.pointee.last != 0 { break }
        }
    }

    /// Sets how many levels are recorded from now on, 1 or more; there was a limit before, too. Each thread takes note at its next slow path.
    static func setDepth(_ levels: UInt32) {
        Limits.maximumDepth = levels
        TraceOutput.header.pointee.maximum_depth = levels
    }
    @inline(__always) func takeDepth() { if context.pointee.depth != Limits.maximumDepth { limitChain() } }
    /// Cuts the chain where the depth ends, or links what was cut off. A call beyond the depth that is open stays so, and makes no recorded one.
    @inline(never) private func limitChain() {
        let most = Limits.maximumDepth
        context.pointee.depth = most
        var next: Frame? = base
        while let frame = next {
            next = frame.pointee.above ?? recordCutOff(from: frame)
            let isDeepest = frame.pointee.level >= most
            frame.pointee.last = isDeepest ? 1 : 0
            frame.pointee.above = isDeepest ? nil : next
        }
        // A record in use may be in a batch to which no link leads any more.
        var frame = top
        while frame != base {
            let isDeepest = frame.pointee.level >= most
            frame.pointee.last = isDeepest ? 1 : 0
            if isDeepest { frame.pointee.above = nil }
            frame = frame.pointee.below
        }
    }
    /// The record after one in memory, if it was the next of the chain. nil: another batch has it, or none.
    private func recordCutOff(from frame: Frame) -> Frame? {
        let candidate = frame + 1, end = UnsafeMutableRawPointer(candidate + 1)
        func isIn(_ start: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
            UnsafeMutableRawPointer(frame) >= start && end <= start + byteCount
        }
        var isThere = frame != base && isIn(UnsafeMutableRawPointer(context), Int(CONTEXT_BYTES)), batch = context.pointee.batches
        while !isThere, let one = batch {
            isThere = isIn(UnsafeMutableRawPointer(one), Int(one.pointee.byte_count))
            batch = one.pointee.next
        }
        return isThere && candidate.pointee.below == frame ? candidate : nil
    }
    static let batchBytes = 65536

    /// Space for `byteCount` bytes of records, in the list. nil: no memory.
    static func newBatch(_ byteCount: Int, _ list: inout UnsafeMutablePointer<frame_batch>?)
        -> (start: UnsafeMutableRawPointer, count: Int)?
    {
        guard let pages = Memory.pages(byteCount) else { return nil }
        let batch = pages.assumingMemoryBound(to: frame_batch.self)
        batch.pointee.byte_count = UInt64(byteCount)
        batch.pointee.next = list
        list = batch
        return (pages + Int(FRAME_BYTES), byteCount / Int(FRAME_BYTES) &- 1)
    }
    /// Releases the records of a thread that has ended and whose frames on other stacks have all returned.
    private static func release(_ batches: UnsafeMutablePointer<frame_batch>?) {
        var next = batches
        while let batch = next {
            next = batch.pointee.next
            Memory.release(batch, Int(batch.pointee.byte_count))
        }
    }

    /// The record above the top, from a new batch if need be. nil: no more levels, or no memory.
    private func recordAboveTop() -> Frame? {
        if top.pointee.above == nil && top.pointee.last == 0 {
            guard let (start, count) = ThreadRecorder.newBatch(ThreadRecorder.batchBytes, &context.pointee.batches) else {
                TraceOutput.drop()
                return nil
            }
            addRecords(start, count, above: top)
        }
        return top.pointee.above
    }
    func countBeyondDepth() {
        if position.pointee.chunk != nil { position.pointee.chunk.pointee.filtered_by_depth &+= 1 }
    }

    /// Opens a frame on the thread's own stack. nil: not recorded.
    func push(_ stackPointer: UInt64, tails: UInt32) -> Frame? {
        guard let frame = recordAboveTop() else {
            if top.pointee.last != 0 { countBeyondDepth() }
            return nil
        }
        frame.pointee.stack_pointer = stackPointer
        frame.pointee.tails = tails
        frame.pointee.owner = nil
        return frame
    }

    /// Closes the frames above that were left by longjmp, an exception or a thread's end, until `isAlive` says stop.
    @inline(__always) func unwind(_ isAlive: (Frame) -> Bool) {
        var frame = top
        while frame != base && !isAlive(frame) { frame = frame.pointee.below }
        if frame != top { unwind(to: frame) }
    }
    @inline(never) private func unwind(to alive: Frame) {
        var count: UInt32 = 0
        let now = Clock.ticks()
        ensureSlack()
        while top != alive {
            let frame = top
            if isOpenInFile(frame) && !takeBack(frame, now) {
                if isAlternateOpen {
                    writeUnwound(frame, now)
                } else {
                    count &+= 1
                    noteEnd(frame, now)
                }
            }
            if context.pointee.load == frame { context.pointee.load = frame.outerLoad }
            top = frame.pointee.below
            frame.giveUp()
            if count == 16383 {
                writeUnwound(count, now)
                count = 0
            }
        }
        writeUnwound(count, now)
    }

    /// Returns true if the file has the frame's enter and not its end. For a frame whose trampoline was interrupted by a signal handler
    /// that never returned to it (siglongjmp), only the chunk can show it: the words are read backwards to its enter, past whatever the
    /// handler wrote. Of a frame that is being filled the enter is the one that has exactly its time.
    @inline(never) func isOpenInFile(_ frame: Frame) -> Bool {
        if !frame.isFilling && !frame.isClosing { return frame.isWritten }
        guard !frame.isElsewhere, let chunk = context.pointee.chunk, var word = position.pointee.cursor,
            frame.pointee.enter_ticks >= position.pointee.chunk.pointee.opened.ticks
        else { return frame.isElsewhere }
        let first = (chunk + Int(position.pointee.chunk.pointee.body_offset)).assumingMemoryBound(to: UInt64.self)
        let enter = frame.written.map { $0 - 1 }
        var base = position.pointee.base
        func isEnter(_ word: UnsafeMutablePointer<UInt64>, after time: UInt64) -> Bool {
            if let enter { return word == enter }
            return frame.pointee.enter_ticks >= base && time == frame.pointee.enter_ticks &- base
        }
        let function = frame.function
        var closed = 0 // frames whose end was passed and whose enter was not
        while word > first {
            word -= 1
            let event = Event(word: word.pointee)
            switch event.kind {
            case .control:
                if event.controlKind == .base { // the handler may have set it
                    if enter == nil && frame.pointee.enter_ticks >= base { return false } // what is before it is older
                    base = self.base(before: word, from: first)
                }
                if event.controlKind == .unwound { closed &+= Int(event.controlNumber) }
            case .exit:
                closed &+= 1
                let named = word > first ? Event(word: (word - 1).pointee) : event
                if named.kind == .control && named.controlKind == .resume
                    && named.payload == Event.control(.resume, frame.pointee.enter_ticks).payload
                {
                    return false
                }
            case .complete:
                if isEnter(word, after: event.start) && event.function == function { return false }
            case .enter:
                if isEnter(word, after: event.time) && event.function == function { return closed == 0 }
                closed = max(closed &- 1, 0)
            }
        }
        return false
    }
    /// The base that words before a BASE word count from.
    @inline(never) private func base(before latest: UnsafeMutablePointer<UInt64>, from first: UnsafeMutablePointer<UInt64>) -> UInt64 {
        let opened = position.pointee.chunk.pointee.opened.ticks
        var word = latest
        while word > first {
            word -= 1
            let event = Event(word: word.pointee)
            if event.kind == .control && event.controlKind == .base { return completed(event.payload, near: Ticks(opened)).raw }
        }
        return opened
    }
}
