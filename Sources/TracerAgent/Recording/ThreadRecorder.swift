// What the trampolines cannot do in a few instructions: begin a thread, find out which frames are dead, write what is
// not one word. Runs on the agent's stack with all signals blocked, on the thread it belongs to.
import CSupport
import CTraceLayout

struct ThreadRecorder {
    let state: UnsafeMutablePointer<thread_state>
    let unit: UnsafeMutablePointer<thread_unit>

    nonisolated(unsafe) private static var units: UnsafeMutablePointer<thread_unit>?
    nonisolated(unsafe) static var lock = SpinLock()
    nonisolated(unsafe) private static var nextIndex: UInt32 = 0

    /// The recorder of the calling thread; a new thread is registered.
    init(_ state: UnsafeMutablePointer<thread_state>) {
        self.state = state
        unit = state.pointee.unit
        if unit.pointee.state == nil { begin() }
    }

    var hot: UnsafeMutablePointer<thread_hot> { unit.pointee.hot }
    var base: Frame { frame(at: 0) }
    var standIn: Frame { frame(at: Int(UNIT_STAND_IN)) }
    private func frame(at offset: Int) -> Frame {
        (UnsafeMutableRawPointer(unit) + offset).assumingMemoryBound(to: frame_record.self)
    }
    var isArmed: Bool { state.pointee.top == standIn }
    var isForeignOpen: Bool { unit.pointee.foreign_count > 0 }

    /// The innermost frame on the thread's own stack.
    var top: Frame {
        get { isArmed ? unit.pointee.top : state.pointee.top }
        nonmutating set { if isArmed { unit.pointee.top = newValue } else { state.pointee.top = newValue } }
    }
    func isOwnStack(_ pointer: UInt64) -> Bool {
        pointer >= unit.pointee.stack_low && pointer < unit.pointee.stack_high
    }

    // MARK: - Begin and end

    private static let mappingBytes = Int(UNIT_WIPED_BYTES) &+ Int(UNIT_STACK_BYTES) &+ Int(UNIT_BYTES)
    private var wipedPage: UnsafeMutableRawPointer {
        UnsafeMutableRawPointer(unit) - (Int(UNIT_STACK_BYTES) &+ Int(UNIT_WIPED_BYTES))
    }

    private func begin() {
        unit.pointee.state = state
        unit.pointee.hot = wipedPage.assumingMemoryBound(to: thread_hot.self)
        _ = SystemCall.call(SystemCall.madvise, bits(wipedPage), Int(UNIT_WIPED_BYTES), 18) // MADV_WIPEONFORK, see ForkWatch
        (unit.pointee.stack_low, unit.pointee.stack_high) = ThreadStack.bounds(isFirst: ThreadRecorder.units == nil)
        if StackCopying.isExpected { ThreadRecorder.distrustStack(of: unit) }
        base.pointee.place = unit.pointee.stack_high // a stack above the thread's own is not its own either
        base.setElsewhere()
        standIn.pointee.last = UInt32(LAST_STAND_IN)
        if agent.settings.maximumDepth == 0 { standIn.pointee.above = base } // asked for by calls that need no record
        state.pointee.top = base
        let first = (MemoryLayout<thread_unit>.size &+ 127) & ~127
        addRecords(UnsafeMutableRawPointer(unit) + first, (Int(UNIT_BYTES) &- first) / Int(FRAME_BYTES), above: base)
        register()
        state.pointee.hot = hot
    }

    /// Gives the thread its index and a record in the file. Again in a forked child, whose only thread it is.
    func register() {
        unit.pointee.tid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.gettid))
        unit.pointee.sequence = 0
        hot.pointee.minimum_ticks = agent.minimumTicks
        state.pointee.low = isArmed || tracer_process_page().pointee.enabled == 0 ? .max : unit.pointee.stack_low
        ThreadRecorder.lock.lock()
        ThreadRecorder.releaseDead(besides: self)
        unit.pointee.index = ThreadRecorder.nextIndex
        ThreadRecorder.nextIndex &+= 1
        unit.pointee.next = ThreadRecorder.units
        ThreadRecorder.units = unit
        ThreadRecorder.lock.unlock()
        ThreadRecords.begin(unit)
    }

    /// Nothing tells the agent that a thread ends. Its unit is found and released when a later one begins: the same
    /// thread block (glibc keeps and reuses stacks), the same tid, or, for a few at a time, a tid that is gone.
    private static func releaseDead(besides new: ThreadRecorder) {
        var place: UnsafeMutablePointer<thread_unit>? = units
        var previous: UnsafeMutablePointer<thread_unit>?
        var questions = 8
        while let unit = place {
            let next = unit.pointee.next
            var isDead = unit.pointee.state == new.state || unit.pointee.tid == new.unit.pointee.tid
            if !isDead && questions > 0 {
                questions &-= 1
                isDead = SystemCall.call(SystemCall.tgkill, Int(agent.pid), Int(unit.pointee.tid), 0) == -3
            }
            // Frames that migrated from it may still be open elsewhere: then its memory must stay.
            if isDead && unit != new.unit && !hasForeign(unit) {
                if let previous { previous.pointee.next = next } else { units = next }
                ThreadRecords.end(unit)
                closeChunk(of: unit)
                if unit.pointee.chunk != nil { Ring.give(unit.pointee.chunk_offset, unit.pointee.chunk_bytes) }
                release(unit)
            } else {
                previous = unit
            }
            place = next
        }
    }
    private static func release(_ unit: UnsafeMutablePointer<thread_unit>) {
        if let chunk = unit.pointee.chunk { TraceFile.unmap(chunk, Int(unit.pointee.chunk_bytes)) }
        releaseSpans(unit)
        release(unit.pointee.batches)
        release(unit.pointee.foreign_batches)
        if let lists = unit.pointee.lists { Memory.release(lists, ThreadRecorder.listBytes) }
        Memory.release(UnsafeMutableRawPointer(unit) - (Int(UNIT_STACK_BYTES) &+ Int(UNIT_WIPED_BYTES)), mappingBytes)
    }

    static func withUnits(_ body: (UnsafeMutablePointer<thread_unit>) -> Void) {
        lock.lock()
        var place = units
        while let unit = place {
            place = unit.pointee.next
            body(unit)
        }
        lock.unlock()
    }

    /// Every next call leaves the fast path and finds out there whether recording is on. `low` is one aligned word.
    static func leaveFastPath() { withUnits { $0.pointee.state.pointee.low = .max } }
    static func takeFastPath() {
        withUnits { unit in
            let standIn = (UnsafeMutableRawPointer(unit) + Int(UNIT_STAND_IN)).assumingMemoryBound(to: frame_record.self)
            // Another thread's top may change while this looks; a stack marked as nobody's is merely slower.
            if unit.pointee.foreign_count == 0 && unit.pointee.state.pointee.top != standIn {
                unit.pointee.state.pointee.low = unit.pointee.stack_low
            }
        }
    }

    /// In a forked child: the other threads do not exist here.
    static func keepOnly(_ recorder: ThreadRecorder) {
        lock = SpinLock()
        resetEnded()
        Ring.reset()
        var place = units
        while let unit = place {
            place = unit.pointee.next
            if unit != recorder.unit && !hasForeign(unit) { release(unit) }
        }
        units = nil
        nextIndex = 0
        recorder.detachChunk()
    }

    /// The mapped chunk belongs to another process. It stays mapped if an interrupted trampoline may write to it.
    private func detachChunk() {
        let isPending = isWritePending
        markElsewhere()
        if !isPending, let chunk = unit.pointee.chunk { TraceFile.unmap(chunk, Int(unit.pointee.chunk_bytes)) }
        unit.pointee.chunk = nil
        unit.pointee.chunk_bytes = 0
        unit.pointee.next = nil
    }

    // MARK: - Events

    /// Makes sure that `count` words fit before the clock is read.
    private func makeRoom(_ count: Int) -> Bool {
        if let limit = hot.pointee.limit, let cursor = hot.pointee.cursor, cursor + count <= limit { return true }
        return openChunk()
    }
    private func hasSlack(_ count: Int) -> Bool {
        guard let limit = hot.pointee.limit, let cursor = hot.pointee.cursor else { return false }
        return cursor + count <= limit + ChunkSize.slack / 8
    }
    /// Room for the words of one return, in the slack if need be: a return does not wait for a new chunk.
    func ensureSlack(_ count: Int = 8) {
        if !hasSlack(count) { _ = openChunk() }
    }
    /// Into the chunk, or the slack behind it. The place after the word, or nil.
    @discardableResult
    private func append(_ event: Event) -> UnsafeMutablePointer<UInt64>? {
        if !TraceFile.isWritable || !hasSlack(1) && !openChunk() { return nil }
        let place = hot.pointee.cursor!
        place.pointee = event.word
        hot.pointee.cursor = place + 1
        return place + 1
    }
    /// Ticks since the base; a new base is set first when they would not fit.
    private func time(_ ticks: UInt64, within reach: UInt64) -> UInt64 {
        if ticks &- hot.pointee.base >= reach {
            append(.control(.base, ticks))
            hot.pointee.base = ticks
        }
        return ticks &- hot.pointee.base
    }

    /// The enter event of a frame at the time that its record says. Nothing that was held back is below it.
    func appendEnter(_ frame: Frame) {
        let after = time(frame.pointee.enter_ticks, within: Event.startReach)
        frame.pointee.slot = append(.enter(frame.function, after: after))
        if frame.pointee.slot == nil { frame.setElsewhere() }
    }

    /// The enter of a frame that begins now: its clock is read here, after any chunk was opened.
    func begin(_ frame: Frame) {
        if isFiltered {
            frame.pointee.enter_ticks = Clock.ticks()
            return frame.setUnwritten()
        }
        if !makeRoom(2) {
            TraceFile.drop()
            frame.pointee.enter_ticks = Clock.ticks()
            return frame.setElsewhere()
        }
        frame.pointee.enter_ticks = Clock.ticks()
        appendEnter(frame)
    }
    private var isFiltered: Bool { agent.minimumTicks > 0 }

    /// Something inside these frames is kept: write their enters, outermost first.
    func writeHeldBack(upTo frame: Frame) {
        if !isFiltered { return }
        var count = 0
        var place = frame
        while place != base && !place.isWritten {
            count &+= 1
            place = place.pointee.below
        }
        while count > 0 {
            place = frame
            for _ in 1..<count { place = place.pointee.below }
            if place.isUnwritten { appendEnter(place) }
            count &-= 1
        }
    }

    /// `isKept`: also under a time filter, with the calls that it was made in.
    func writeInstant(_ function: UInt32, isKept: Bool = false) {
        if isKept { writeHeldBack(upTo: top) }
        guard makeRoom(2) else { return TraceFile.drop() }
        if isFiltered && !isKept {
            hot.pointee.chunk.pointee.filtered_by_time &+= 1
            return
        }
        append(.complete(function, after: time(Clock.ticks(), within: Event.startReach), duration: 0)!)
    }

    /// The beginning of a span: when, or 0 when it could not be written.
    func writeSpanEnter(_ function: UInt32) -> UInt64 {
        if !makeRoom(2) { return 0 }
        let now = Clock.ticks()
        return append(.enter(function, after: time(now, within: Event.startReach))) == nil ? 0 : now
    }
    func writeSpanExit(_ function: UInt32, entered: UInt64, _ now: UInt64) {
        let after = time(now, within: Event.timeReach)
        append(.control(.resume, entered))
        append(.exit(function, after: after))
    }

    /// The exit of a frame. While frames on other stacks are open, order does not say which one: its enter time does.
    func writeExit(_ frame: Frame, _ now: UInt64, _ wasForeign: Bool) {
        let after = time(now, within: Event.timeReach)
        if wasForeign || isForeignOpen { append(.control(.resume, frame.pointee.enter_ticks)) }
        append(.exit(frame.function, after: after))
    }
    @inline(never) func writeUnwound(_ frame: Frame, _ now: UInt64) {
        ensureSlack()
        let after = time(now, within: Event.timeReach)
        append(.control(.resume, frame.pointee.enter_ticks))
        append(.unwound(1, after: after))
    }
    private func writeUnwound(_ count: UInt32, _ now: UInt64) {
        if count > 0 { append(.unwound(count, after: time(now, within: Event.timeReach))) }
    }

    /// No return finds its frame any more, and none reads the clock. In the file they stay open.
    func forgetFrames() { state.pointee.top = base }

    // MARK: - Frames

    /// Links new records above the end of the chain; the last one that TRACER_MAXDEPTH admits is marked.
    private func addRecords(_ start: UnsafeMutableRawPointer, _ count: Int, above end: Frame) {
        var below = end
        for n in 0..<count {
            let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
            frame.pointee.level = below.pointee.level &+ 1
            if frame.pointee.level == agent.settings.maximumDepth { frame.pointee.last = 1 }
            frame.pointee.below = below
            below.pointee.above = frame
            below = frame
            if frame.pointee.last != 0 { break }
        }
    }
    static let batchBytes = 65536

    /// Room for so many records, in the list. nil: no memory.
    static func newBatch(_ byteCount: Int, _ list: inout UnsafeMutablePointer<frame_batch>?)
        -> (start: UnsafeMutableRawPointer, count: Int)? {
        guard let pages = Memory.pages(byteCount) else { return nil }
        let batch = pages.assumingMemoryBound(to: frame_batch.self)
        batch.pointee.byte_count = UInt64(byteCount)
        batch.pointee.next = list
        list = batch
        return (pages + Int(FRAME_BYTES), byteCount / Int(FRAME_BYTES) &- 1)
    }
    /// Of a thread that has ended and whose frames on other stacks have all returned.
    private static func release(_ batches: UnsafeMutablePointer<frame_batch>?) {
        var place = batches
        while let batch = place {
            place = batch.pointee.next
            Memory.release(batch, Int(batch.pointee.byte_count))
        }
    }

    /// The record above the top, from a new batch if need be. nil: no more levels, or no memory.
    private func recordAboveTop() -> Frame? {
        if top.pointee.above == nil && top.pointee.last == 0 {
            guard let (start, count) = ThreadRecorder.newBatch(ThreadRecorder.batchBytes, &unit.pointee.batches) else {
                TraceFile.drop()
                return nil
            }
            addRecords(start, count, above: top)
        }
        return top.pointee.above
    }
    func countBeyondDepth() {
        if hot.pointee.chunk != nil { hot.pointee.chunk.pointee.filtered_by_depth &+= 1 }
    }

    /// Opens a frame on the thread's own stack. nil: not recorded.
    func push(place: UInt64, tails: UInt32) -> Frame? {
        guard let frame = recordAboveTop() else {
            if top.pointee.last != 0 { countBeyondDepth() }
            return nil
        }
        frame.pointee.place = place
        frame.pointee.tails = tails
        frame.pointee.owner = nil
        return frame
    }

    /// Closes the frames above that were left by longjmp, an exception or a thread's end, until `isAlive` says stop.
    /// A record that is empty is being filled by a trampoline that a signal interrupted: alive.
    func unwind(_ isAlive: (Frame) -> Bool) {
        if top == base || isAlive(top) { return }
        var count: UInt32 = 0
        let now = Clock.ticks()
        ensureSlack()
        while top != base && !isAlive(top) {
            let frame = top
            if isOpenInFile(frame) {
                if isForeignOpen {
                    writeUnwound(frame, now)
                } else {
                    count &+= 1
                }
            }
            Loads.left(unit, frame)
            top = frame.pointee.below
            frame.pointee.slot = nil
            if count == 16383 {
                writeUnwound(count, now)
                count = 0
            }
        }
        writeUnwound(count, now)
    }

    /// Whether the file has the frame's enter and not its end. Of a frame whose trampoline was interrupted by a signal
    /// handler that never returned to it (siglongjmp), only the chunk can tell: the words are read backwards to the
    /// enter that has exactly its time, past whatever the handler wrote.
    func isOpenInFile(_ frame: Frame) -> Bool {
        if !frame.isFilling && !frame.isClosing { return frame.isWritten }
        guard !frame.isElsewhere, let chunk = unit.pointee.chunk, var place = hot.pointee.cursor,
              frame.pointee.enter_ticks >= hot.pointee.base else { return frame.isElsewhere }
        let first = (chunk + Int(hot.pointee.chunk.pointee.body_offset)).assumingMemoryBound(to: UInt64.self)
        let after = frame.pointee.enter_ticks &- hot.pointee.base
        let function = frame.function
        var closed = 0 // frames whose end was passed and whose enter was not
        while place > first {
            place -= 1
            let event = Event(word: place.pointee)
            switch event.kind {
            case .control:
                if event.controlKind == .base { return false } // other times before it
                if event.controlKind == .unwound { closed &+= Int(event.controlNumber) }
            case .exit:
                closed &+= 1
                let named = place > first ? Event(word: (place - 1).pointee) : event
                if named.kind == .control && named.controlKind == .resume
                    && named.payload == Event.control(.resume, frame.pointee.enter_ticks).payload { return false }
            case .complete:
                if event.start == after && event.function == function { return false }
            case .enter:
                if event.time == after && event.function == function { return closed == 0 }
                closed = max(closed &- 1, 0)
            }
        }
        return false
    }
}
