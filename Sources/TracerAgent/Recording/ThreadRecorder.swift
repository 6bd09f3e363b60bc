// What the trampolines cannot do in a few instructions: begin a thread, open a chunk, find out which frames are dead.
// Runs on the agent's stack with all signals blocked, on the thread it belongs to.
import CSupport
import CTraceLayout

typealias Frame = UnsafeMutablePointer<frame_record>

struct ThreadRecorder {
    let state: UnsafeMutablePointer<thread_state>
    let unit: UnsafeMutablePointer<thread_unit>

    nonisolated(unsafe) private static var units: UnsafeMutablePointer<thread_unit>?
    nonisolated(unsafe) private static var lock = SpinLock()
    nonisolated(unsafe) private static var nextIndex: UInt32 = 0

    /// The recorder of the calling thread; a new thread is registered.
    init(_ state: UnsafeMutablePointer<thread_state>) {
        self.state = state
        unit = state.pointee.unit
        if unit.pointee.state == nil { begin() }
    }

    var isForeignOpen: Bool { unit.pointee.foreign_count > 0 }
    /// The innermost frame on the thread's own stack.
    var top: Frame {
        get { state.pointee.top == shadow ? unit.pointee.top : state.pointee.top }
        nonmutating set {
            if state.pointee.top == shadow { unit.pointee.top = newValue } else { state.pointee.top = newValue }
        }
    }
    private var shadow: Frame { frame(at: MemoryLayout<frame_record>.size) }
    private var base: Frame { frame(at: 0) }
    private func frame(at offset: Int) -> Frame {
        (UnsafeMutableRawPointer(unit) + offset).assumingMemoryBound(to: frame_record.self)
    }
    func isOwnStack(_ pointer: UInt64) -> Bool {
        pointer >= unit.pointee.stack_low && pointer < unit.pointee.stack_high
    }

    // MARK: - Begin and end

    private func begin() {
        unit.pointee.state = state
        base.pointee.stack_pointer = .max
        base.pointee.slot = UnsafeMutablePointer(bitPattern: UInt(SLOT_ELSEWHERE))
        base.pointee.remaining = agent.settings.maximumDepth == 0 ? UInt32(Int32.max) : agent.settings.maximumDepth
        shadow.pointee.stack_pointer = .max
        shadow.pointee.remaining = 1
        state.pointee.top = base
        let first = (MemoryLayout<thread_unit>.size &+ 127) & ~127
        addRecords(UnsafeMutableRawPointer(unit) + first, (Int(UNIT_BYTES) &- first) / Int(FRAME_BYTES))
        (unit.pointee.stack_low, unit.pointee.stack_high) = ThreadStack.bounds(isFirst: ThreadRecorder.units == nil)
        state.pointee.stack_low = unit.pointee.stack_low
        register()
    }

    /// Gives the thread its index and a record in the file. Again in a forked child, whose only thread it is.
    func register() {
        unit.pointee.tid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.gettid))
        unit.pointee.sequence = 0
        unit.pointee.chunk_bytes = UInt64(ChunkSize.first)
        state.pointee.minimum_ticks = agent.minimumTicks
        ThreadRecorder.lock.lock()
        ThreadRecorder.releaseDead(besides: self)
        unit.pointee.index = ThreadRecorder.nextIndex
        ThreadRecorder.nextIndex &+= 1
        unit.pointee.next = ThreadRecorder.units
        ThreadRecorder.units = unit
        ThreadRecorder.lock.unlock()
        Metadata.thread(unit.pointee.index, tid: unit.pointee.tid, ticks: Clock.ticks())
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
            if isDead && unit != new.unit && unit.pointee.foreign == nil {
                if let previous { previous.pointee.next = next } else { units = next }
                Metadata.thread(unit.pointee.index, tid: unit.pointee.tid, ticks: Clock.ticks(), ended: true)
                Ring.free(unit.pointee.ring_slot)
                release(unit)
            } else {
                previous = unit
            }
            place = next
        }
    }
    private static func release(_ unit: UnsafeMutablePointer<thread_unit>) {
        releaseMapping(unit.pointee.chunk, unit.pointee.chunk_bytes_mapped)
        withRetired(unit) { address, bytes in
            for n in 0..<Int(unit.pointee.retired_count) { releaseMapping(address[n], bytes[n]) }
        }
        Memory.release(UnsafeMutableRawPointer(unit) - Int(UNIT_STACK_BYTES), Int(UNIT_STACK_BYTES) &+ Int(UNIT_BYTES))
    }
    private static func releaseMapping(_ address: UnsafeMutableRawPointer?, _ bytes: UInt64) {
        if address != nil { Memory.release(address, Int(bytes)) }
    }
    private static func withRetired(_ unit: UnsafeMutablePointer<thread_unit>,
                                    _ body: (UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<UInt64>) -> Void) {
        body(tracer_retired_chunks(unit), tracer_retired_bytes(unit))
    }

    static func withUnit(of state: UnsafeMutablePointer<thread_state>?,
                         _ body: (UnsafeMutablePointer<thread_unit>) -> Void) {
        lock.lock()
        var place = units
        while let unit = place {
            if unit.pointee.state == state { body(unit) }
            place = unit.pointee.next
        }
        lock.unlock()
    }

    /// In a forked child: the other threads do not exist here.
    static func keepOnly(_ recorder: ThreadRecorder) {
        lock = SpinLock()
        foreignLock = SpinLock()
        Ring.reset()
        var place = units
        while let unit = place {
            place = unit.pointee.next
            if unit != recorder.unit && unit.pointee.foreign == nil { release(unit) }
        }
        units = nil
        nextIndex = 0
        recorder.detachChunk()
    }

    /// The mapped chunk belongs to another process. It stays mapped if an interrupted trampoline may write to it.
    private func detachChunk() {
        markElsewhere()
        if !isWritePending { ThreadRecorder.releaseMapping(unit.pointee.chunk, unit.pointee.chunk_bytes_mapped) }
        unit.pointee.chunk = nil
        state.pointee.chunk = nil
        state.pointee.cursor = nil
        state.pointee.limit = nil
        state.pointee.minimum_ticks = 0
        unit.pointee.ring_slot = 0
        unit.pointee.next = nil
    }

    // MARK: - Chunks

    private var isWritePending: Bool {
        if state.pointee.pending > 0 { return true }
        var frame = top
        while frame != base {
            if frame.pointee.slot == nil { return true }
            if UInt(bitPattern: frame.pointee.slot) == UInt(SLOT_ELSEWHERE) { return false }
            frame = frame.pointee.below
        }
        return false
    }

    /// The events of all open frames are in a chunk that this thread no longer writes.
    private func markElsewhere() {
        let elsewhere = UnsafeMutablePointer<UInt64>(bitPattern: UInt(SLOT_ELSEWHERE))
        var frame = top
        while frame != base {
            if frame.pointee.slot == elsewhere { return } // all below were marked before
            if frame.pointee.slot != nil { frame.pointee.slot = elsewhere }
            frame = frame.pointee.below
        }
    }

    static func closeChunk(of state: UnsafeMutablePointer<thread_state>) {
        guard state.pointee.unit != nil, let header = state.pointee.chunk else { return }
        let start = UInt64(UInt(bitPattern: header))
        let end = start &+ UInt64(header.pointee.byte_count)
        let cursor = UInt64(UInt(bitPattern: state.pointee.cursor))
        header.pointee.used_bytes = min(cursor, end) &- start
        header.pointee.flags |= UInt16(TRACE_CHUNK_CLOSED)
        nameThread(header)
    }
    /// PR_GET_NAME: sixteen bytes, NUL included.
    static func nameThread(_ header: UnsafeMutablePointer<trace_chunk_header>) {
        _ = withUnsafeMutablePointer(to: &header.pointee.thread_name) {
            SystemCall.call(SystemCall.prctl, 16, bits($0))
        }
    }

    /// A new chunk for this thread, with the frames that are open now. False: recording has stopped.
    private func openChunk() -> Bool {
        if !TraceFile.isWritable { return false }
        let (frames, stored) = countFrames()
        var bytes = Int(unit.pointee.chunk_bytes)
        while bytes < stored &* 64 { bytes = bytes &* 2 }
        let oldSlot = unit.pointee.ring_slot
        guard let (address, slot) = Ring.map(bytes) else { return false }
        ThreadRecorder.closeChunk(of: state)
        Ring.free(oldSlot)
        retireChunk()
        markElsewhere()
        unit.pointee.chunk = address
        unit.pointee.chunk_bytes_mapped = UInt64(bytes)
        unit.pointee.ring_slot = slot
        unit.pointee.chunk_bytes = UInt64(ChunkSize.next(after: bytes))
        let header = address.assumingMemoryBound(to: trace_chunk_header.self)
        header.pointee.kind = UInt16(TRACE_CHUNK_EVENTS)
        header.pointee.flags = stored < frames ? UInt16(TRACE_CHUNK_FRAMES_CUT) : 0
        header.pointee.byte_count = UInt32(bytes)
        let body = MemoryLayout<trace_chunk_header>.size &+ stored &* MemoryLayout<trace_open_frame>.size
        header.pointee.body_offset = UInt32(body)
        header.pointee.thread = unit.pointee.index
        header.pointee.tid = unit.pointee.tid
        header.pointee.sequence = unit.pointee.sequence
        unit.pointee.sequence &+= 1
        header.pointee.opened = Clock.sample()
        header.pointee.open_frames = UInt32(frames)
        header.pointee.stored_frames = UInt32(stored)
        header.pointee.generation = tracer_atomic_add(&TraceFile.header.pointee.generation, 1)
        ThreadRecorder.nameThread(header)
        storeFrames(address + MemoryLayout<trace_chunk_header>.size, stored)
        tracer_store_release_32(&header.pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
        TraceFile.header.pointee.last = header.pointee.opened
        state.pointee.chunk = header
        state.pointee.epoch = header.pointee.opened.ticks &>> UInt64(EVENT_EPOCH_BITS)
        state.pointee.cursor = (address + body).assumingMemoryBound(to: UInt64.self)
        state.pointee.limit = (address + (bytes &- ChunkSize.slack)).assumingMemoryBound(to: UInt64.self)
        return true
    }

    /// Unmaps the chunk that was written until now, unless a trampoline that a signal interrupted may have a word
    /// reserved in it.
    private func retireChunk() {
        guard let old = unit.pointee.chunk else { return }
        let isPending = isWritePending
        ThreadRecorder.withRetired(unit) { address, bytes in
            if isPending {
                // More than eight: the oldest is left mapped for good rather than taken from under somebody.
                let n = Int(unit.pointee.retired_count) & 7
                address[n] = old
                bytes[n] = unit.pointee.chunk_bytes_mapped
                if unit.pointee.retired_count < 8 { unit.pointee.retired_count &+= 1 }
            } else {
                for n in 0..<Int(unit.pointee.retired_count) { ThreadRecorder.releaseMapping(address[n], bytes[n]) }
                unit.pointee.retired_count = 0
                ThreadRecorder.releaseMapping(old, unit.pointee.chunk_bytes_mapped)
            }
        }
        unit.pointee.chunk = nil
    }

    private static let mostStoredFrames = 4096

    /// Open frames whose enter is in the file, and how many of them, the innermost, a chunk stores.
    private func countFrames() -> (all: Int, stored: Int) {
        var all = 0
        var frame = top
        while frame != base {
            if frame.pointee.slot != nil { all &+= 1 }
            frame = frame.pointee.below
        }
        all &+= Int(unit.pointee.foreign_count)
        return (all, min(all, ThreadRecorder.mostStoredFrames))
    }

    /// Both lists are ordered by time; merged from the newest backwards, so that the outermost comes first.
    private func storeFrames(_ place: UnsafeMutableRawPointer, _ count: Int) {
        let list = place.assumingMemoryBound(to: trace_open_frame.self)
        var own = top
        var foreign = unit.pointee.foreign
        var n = count
        while n > 0 {
            while own != base && own.pointee.slot == nil { own = own.pointee.below }
            let takesForeign = foreign != nil && (own == base || foreign!.pointee.enter_ticks > own.pointee.enter_ticks)
            guard let frame = takesForeign ? foreign : own == base ? nil : own else { break }
            n &-= 1
            list[n] = trace_open_frame(enter_ticks: frame.pointee.enter_ticks,
                                       function: Event(word: frame.pointee.head).function, flags: takesForeign ? 1 : 0)
            if takesForeign { foreign = frame.pointee.older } else { own = frame.pointee.below }
        }
    }

    // MARK: - Events

    /// Makes sure that `count` words fit before the clock is read.
    private func makeRoom(_ count: Int) -> Bool {
        if let limit = state.pointee.limit, let cursor = state.pointee.cursor, cursor + count <= limit { return true }
        return openChunk()
    }
    private func hasSlack(_ count: Int) -> Bool {
        guard let limit = state.pointee.limit, let cursor = state.pointee.cursor else { return false }
        return cursor + count <= limit + ChunkSize.slack / 8
    }
    /// Room for the words of one return, in the slack if need be: a return does not wait for a new chunk.
    func ensureSlack() {
        if !hasSlack(8) { _ = openChunk() }
    }
    /// Into the chunk, or the slack behind it. Where the word was written, or nil.
    @discardableResult
    func append(_ event: Event) -> UnsafeMutablePointer<UInt64>? {
        if !TraceFile.isWritable || !hasSlack(1) && !openChunk() { return nil }
        let place = state.pointee.cursor!
        place.pointee = event.word
        state.pointee.cursor = place + 1
        return place
    }
    private func appendEpoch(_ now: UInt64) {
        let epoch = now &>> UInt64(EVENT_EPOCH_BITS)
        if epoch == state.pointee.epoch { return }
        append(.control(.epoch, epoch))
        state.pointee.epoch = epoch
    }

    /// The enter event of a frame; its time is read here, after any chunk was opened.
    func writeEnter(_ frame: Frame) {
        guard makeRoom(2) else {
            frame.pointee.slot = UnsafeMutablePointer(bitPattern: UInt(SLOT_ELSEWHERE))
            TraceFile.drop()
            return
        }
        let now = Clock.ticks()
        appendEpoch(now)
        frame.pointee.enter_ticks = now
        frame.pointee.slot = append(.enter(Event(word: frame.pointee.head).function, at: Ticks(now)))
    }

    func writeInstant(_ function: UInt32) {
        if state.pointee.minimum_ticks > 0 {
            if makeRoom(1) { state.pointee.chunk.pointee.filtered_by_time &+= 1 }
            return
        }
        guard makeRoom(2) else { return TraceFile.drop() }
        let now = Clock.ticks()
        appendEpoch(now)
        append(.complete(function, from: Ticks(now), duration: 0)!)
    }

    /// The exit of a frame. While frames on other stacks are open, order does not say which one: its enter time does.
    func writeExit(_ frame: Frame, _ now: UInt64, _ wasForeign: Bool) {
        appendEpoch(now)
        if wasForeign || isForeignOpen { append(.control(.resume, frame.pointee.enter_ticks)) }
        append(.exit(Event(word: frame.pointee.head).function, at: Ticks(now)))
    }

    private func writeUnwound(_ count: UInt32, _ now: UInt64) {
        if count == 0 { return }
        appendEpoch(now)
        append(.unwound(count, at: Ticks(now)))
    }

    // MARK: - Frames

    private func addRecords(_ start: UnsafeMutableRawPointer, _ count: Int) {
        for n in 0..<count {
            let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
            frame.pointee.below = state.pointee.free
            state.pointee.free = frame
        }
    }
    private static let batchBytes = 65536

    func takeRecord() -> Frame? {
        if state.pointee.free == nil {
            guard let pages = Memory.pages(ThreadRecorder.batchBytes) else { return nil }
            addRecords(pages, ThreadRecorder.batchBytes / Int(FRAME_BYTES))
        }
        let frame = state.pointee.free!
        state.pointee.free = frame.pointee.below
        return frame
    }
    private func giveBack(_ frame: Frame) {
        frame.pointee.slot = nil
        frame.pointee.owner = nil
        frame.pointee.below = state.pointee.free
        state.pointee.free = frame
    }

    /// Closes the frames above that were left by longjmp, an exception or a thread's end, until `isAlive` says stop.
    func unwind(_ isAlive: (Frame) -> Bool) {
        var count: UInt32 = 0
        let now = Clock.ticks()
        while top != base && !isAlive(top) {
            let frame = top
            top = frame.pointee.below
            if frame.pointee.slot != nil { // otherwise its enter was never written
                if isForeignOpen {
                    appendEpoch(now)
                    append(.control(.resume, frame.pointee.enter_ticks))
                    append(.unwound(1, at: Ticks(now)))
                } else {
                    count &+= 1
                    if count == 16383 {
                        writeUnwound(count, now)
                        count = 0
                    }
                }
            }
            giveBack(frame)
        }
        writeUnwound(count, now)
    }

    // MARK: - Other stacks

    /// While a frame on another stack is open, every call and return takes the slow path: the order of returns is
    /// then no longer that of calls.
    private func arm() {
        if state.pointee.top == shadow { return }
        unit.pointee.top = state.pointee.top
        state.pointee.top = shadow
        state.pointee.stack_low = .max
    }
    func disarmIfPossible() {
        if isForeignOpen || state.pointee.top != shadow { return }
        state.pointee.top = unit.pointee.top
        state.pointee.stack_low = unit.pointee.stack_low
    }

    nonisolated(unsafe) private static var foreignLock = SpinLock()

    func linkForeign(_ frame: Frame) {
        arm()
        ThreadRecorder.foreignLock.lock()
        frame.pointee.owner = unit
        frame.pointee.older = unit.pointee.foreign
        frame.pointee.newer = nil
        unit.pointee.foreign?.pointee.newer = frame
        unit.pointee.foreign = frame
        unit.pointee.foreign_count &+= 1
        ThreadRecorder.foreignLock.unlock()
    }
    /// A coroutine may have moved: the list can be another thread's.
    func unlinkForeign(_ frame: Frame) {
        ThreadRecorder.foreignLock.lock()
        let owner = frame.pointee.owner!
        if let newer = frame.pointee.newer { newer.pointee.older = frame.pointee.older } else { owner.pointee.foreign = frame.pointee.older }
        frame.pointee.older?.pointee.newer = frame.pointee.newer
        owner.pointee.foreign_count &-= 1
        frame.pointee.owner = nil
        ThreadRecorder.foreignLock.unlock()
    }

    /// Frames on the signal stack are dead once the thread runs elsewhere and the kernel says that the signal stack
    /// is not in use (a handler left it by siglongjmp).
    func dropAbandonedSignalFrames() {
        guard isForeignOpen else { return }
        var stack = SignalStack()
        let result = withUnsafeMutablePointer(to: &stack) { SystemCall.call(SystemCall.sigaltstack, 0, bits($0)) }
        if result != 0 || stack.flags & 1 != 0 || stack.flags & 2 != 0 { return }
        let now = Clock.ticks()
        var place = unit.pointee.foreign
        while let frame = place {
            place = frame.pointee.older
            if frame.pointee.stack_pointer &- stack.start > stack.byteCount { continue }
            unlinkForeign(frame)
            appendEpoch(now)
            append(.control(.resume, frame.pointee.enter_ticks))
            append(.unwound(1, at: Ticks(now)))
            giveBack(frame)
        }
    }
    private struct SignalStack { // stack_t
        var start: UInt64 = 0
        var flags: Int32 = 0 // 1 in use, 2 disabled
        var padding: Int32 = 0
        var byteCount: UInt64 = 0
    }
}

enum ChunkSize {
    static let first = 16384, largest = 4 << 20
    /// Behind the limit of a chunk: room for words that were reserved when it was found to be full.
    static let slack = 512
    static func next(after bytes: Int) -> Int {
        agent.settings.ring ? Ring.chunkBytes : min(bytes &* 4, largest)
    }
}
