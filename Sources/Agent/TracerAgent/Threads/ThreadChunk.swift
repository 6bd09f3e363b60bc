// The chunk to which a thread writes its events. It is mapped from the file, so that nothing is lost when the process is killed.
// Growing a mapped file costs a page fault every 512 events; so a chunk that is full is copied to the end of the file with one write (a
// third of the cost), cleared, and written again: it stays mapped and in the cache. Under `tracer record` the thread does not wait even
// for that: the recorder takes the chunk over, and the thread goes on in another one (SpareChunks.swift). Young threads, which may never fill one, begin with
// a small chunk that simply stays where it is; in a ring, whose chunks are overwritten by age, it is moved into the larger one.
//
// A chunk's size depends on nothing that the program does: the open frames that it stores take at most a quarter of it, and those of
// a deeper stack are left out, outermost first. What a chunk costs must not depend on the depth either, or a deep recursion would cost
// its square: only the frames that are new since the last chunk are looked at (`countOwn`).
import CSupport
import CTraceLayout

extension ThreadRecorder {
    private static var frameBytes: Int { MemoryLayout<trace_open_frame>.size &+ (Trampolines.recordsSites ? 8 : 0) }
    private static var mostStoredFrames: Int { ChunkSize.largest / 4 / frameBytes }

    /// The chunk is closed and a new one is open. False: recording has stopped.
    func openChunk() -> Bool {
        _ = tracer_atomic_add(&ThreadRecorder.opening, 1)
        tracer_fence() // before it looks: see awaitChunks
        defer { _ = tracer_atomic_add(&ThreadRecorder.opening, .max) }
        return TraceOutput.isWritable && context.pointee.session == ThreadRecorder.session && openNextChunk()
    }
    @inline(never) private func openNextChunk() -> Bool {
        let isPending = isWritePending
        if isPending {
            settleFrames()
        } else {
            leavePendingChunks()
            if growChunk() { return true }
        }
        let own = countOwn(), frames = own &+ countAlternate() &+ Int(context.pointee.span_count)
        let stored = min(frames, ThreadRecorder.mostStoredFrames)
        guard let address = nextChunkAddress(holding: stored, isPending) else { return false }
        if context.pointee.has_gap != 0 { // for the reader it is a chunk that is missing: what is open now the new one says
            context.pointee.sequence &+= 1
            context.pointee.has_gap = 0
        }
        markElsewhere(own)
        let header = address.assumingMemoryBound(to: trace_chunk_header.self)
        header.pointee.kind = UInt16(TRACE_CHUNK_EVENTS)
        header.pointee.flags = (stored < frames ? UInt16(TRACE_CHUNK_FRAMES_CUT) : 0) | (isPending ? UInt16(TRACE_CHUNK_UNSETTLED) : 0)
        header.pointee.byte_count = UInt32(context.pointee.chunk_bytes)
        let body = ChunkSize.headerBytes &+ stored &* ThreadRecorder.frameBytes
        header.pointee.body_offset = UInt32(body)
        header.pointee.thread = context.pointee.index
        header.pointee.tid = context.pointee.tid
        header.pointee.sequence = context.pointee.sequence
        header.pointee.opened = Clock.sample()
        // A thread that fills chunks faster than it needs another base looks nowhere else.
        ClockWatch.poll(header.pointee.opened.ticks, since: header.pointee.opened.ticks)
        let missing = storeFrames(address + ChunkSize.headerBytes, stored)
        if Trampolines.recordsSites {
            header.pointee.flags |= UInt16(TRACE_CHUNK_SITES)
            storeSites(after: address + ChunkSize.headerBytes, stored &- missing)
        }
        header.pointee.open_frames = UInt32(frames &- missing)
        header.pointee.stored_frames = UInt32(stored &- missing)
        ThreadRecorder.nameThread(header)
        tracer_store_release_32(&header.pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
        TraceOutput.note(time: header.pointee.opened)
        position.pointee.chunk = header
        position.pointee.base = header.pointee.opened.ticks
        position.pointee.cursor = (address + body).assumingMemoryBound(to: UInt64.self)
        position.pointee.limit = (address + (Int(context.pointee.chunk_bytes) &- ChunkSize.slack)).assumingMemoryBound(to: UInt64.self)
        return true
    }

    /// Once, when it is given up: who could not have another one comes again.
    private func lookAtChunk() {
        guard let chunk = context.pointee.chunk, let cursor = position.pointee.cursor else { return }
        let end = chunk + Int(ThreadRecorder.usedBytes(chunk, until: cursor, context))
        tracer_chunk_full(chunk.assumingMemoryBound(to: trace_chunk_header.self), end.assumingMemoryBound(to: UInt64.self), context)
    }

    /// Cleared memory for the next chunk: the one that was just copied out, or a larger one.
    private func nextChunkAddress(holding frames: Int, _ isPending: Bool) -> UnsafeMutableRawPointer? {
        // A word may be reserved in it by a trampoline that a signal interrupted: then it is left as it is.
        let size = Int(context.pointee.chunk_bytes)
        if let old = context.pointee.chunk, !isPending, size >= ChunkSize.largest || mayGrowIntoSpare(size) {
            if let (address, offset) = SpareChunks.take() {
                replaceChunk(old, by: address, offset, ChunkSize.largest, isPending)
                return address
            }
            if size >= ChunkSize.largest {
                guard copyOut(old) else { return nil }
                lookAtChunk()
                TraceSpace.clearChunk(old, size)
                context.pointee.sequence &+= 1
                return old
            }
        }
        var bytes = context.pointee.chunk == nil ? ChunkSize.first : ChunkSize.next(after: Int(context.pointee.chunk_bytes))
        while bytes < frames &* 4 &* ThreadRecorder.frameBytes && bytes < ChunkSize.largest { bytes = ChunkSize.next(after: bytes) }
        if TraceSpace.wouldExceedLimit(bytes) && !Limits.isRing {
            TraceOutput.stop(TRACE_STOP_LIMIT, 0)
            return nil
        }
        guard let (address, offset) = mapChunk(bytes) else { return nil }
        if let old = context.pointee.chunk {
            replaceChunk(old, by: address, offset, bytes, isPending)
        } else {
            setChunk(address, offset, bytes)
        }
        return address
    }
    /// In a ring the thread's chunk of full size begins with what is in its first (growChunk).
    private func mayGrowIntoSpare(_ size: Int) -> Bool { !Limits.isRing && ChunkSize.next(after: size) == ChunkSize.largest }
    private func replaceChunk(
        _ old: UnsafeMutableRawPointer, by address: UnsafeMutableRawPointer, _ offset: UInt64, _ bytes: Int, _ isPending: Bool
    ) {
        let oldBytes = Int(context.pointee.chunk_bytes), oldOffset = context.pointee.chunk_offset
        lookAtChunk()
        ThreadRecorder.nameThread(old.assumingMemoryBound(to: trace_chunk_header.self))
        ThreadRecorder.closeChunk(of: context)
        context.pointee.sequence &+= 1
        if isPending { keepPending(old, oldBytes, at: oldOffset) }
        setChunk(address, offset, bytes)
        if !isPending { ThreadRecorder.leaveChunk(old, oldBytes, at: oldOffset) }
    }

    /// A trampoline that a signal has interrupted may still write to the chunk: it stays mapped, and where it is, until no trampoline of the thread
    /// is interrupted. Those that are too many stay for as long as the file is recorded to: a handler runs on and on.
    @inline(never) func keepPending(_ chunk: UnsafeMutableRawPointer, _ bytes: Int, at offset: UInt64) {
        SpareChunks.forget(chunk)
        ThreadRecorder.lock.lock()
        defer { ThreadRecorder.lock.unlock() }
        let count = context.pointee.pending_chunk_count
        if count == UInt64(PENDING_CHUNKS) { return }
        tracer_pending_chunks(context)[Int(count)] = pending_chunk(address: chunk, byte_count: UInt64(bytes), offset: offset)
        context.pointee.pending_chunk_count = count &+ 1
    }
    /// Precondition: no write is pending.
    @inline(never) func leavePendingChunks() {
        while context.pointee.pending_chunk_count != 0 {
            ThreadRecorder.lock.lock() // else a task that detaches might put memory where the chunk was
            context.pointee.pending_chunk_count &-= 1
            let chunk = tracer_pending_chunks(context)[Int(context.pointee.pending_chunk_count)]
            ThreadRecorder.lock.unlock()
            ThreadRecorder.leavePending(chunk)
        }
    }
    @inline(never) static func leavePending(_ chunk: pending_chunk, isOwn: Bool = true) {
        leaveChunk(chunk.address, Int(chunk.byte_count), at: isOwn && chunk.offset != 0 ? chunk.offset : nil)
    }

    private func mapChunk(_ bytes: Int) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        if bytes == ChunkSize.first,
            let chunk = FirstChunks.take(threads: ThreadContexts.count, isOfFirst: context.pointee.index == 0)
        {
            return chunk
        }
        return Ring.map(bytes)
    }
    /// The chunk is not written to any more. It is mapped no longer than others that were mapped with it. `isEmpty`: it has been cleared.
    /// `offset`: a ring may write over it.
    static func leaveChunk(_ chunk: UnsafeMutableRawPointer, _ bytes: Int, isEmpty: Bool = false, at offset: UInt64? = nil) {
        if SpareChunks.give(chunk) { return }
        let thread = chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee.thread
        if bytes != ChunkSize.first || !FirstChunks.leave(chunk, isEmpty: isEmpty) { TraceSpace.unmap(chunk, bytes) }
        if let offset { Ring.give(offset, UInt64(bytes), of: thread) }
    }

    /// In a ring, a thread's first chunk becomes the beginning of a larger one: left alone among larger ones that are overwritten, it
    /// would be a chunk before a gap. False: it is none, or there is no larger one to be had. Precondition: no write is pending.
    private func growChunk() -> Bool {
        let oldBytes = Int(context.pointee.chunk_bytes), bytes = ChunkSize.largest
        guard Limits.isRing, context.pointee.has_gap == 0, let old = context.pointee.chunk, oldBytes < bytes,
            let (new, offset) = mapChunk(bytes)
        else { return false }
        let headerBytes = ChunkSize.headerBytes, used = Int(ThreadRecorder.usedBytes(old, until: position.pointee.cursor, context))
        var head = old.assumingMemoryBound(to: trace_chunk_header.self).pointee
        head.magic = 0
        head.byte_count = UInt32(bytes)
        new.copyMemory(from: &head, byteCount: headerBytes)
        (new + headerBytes).copyMemory(from: old + headerBytes, byteCount: used &- headerBytes)
        moveEvents(bits(new) &- bits(old), from: bits(old), oldBytes)
        // A reader takes the closed one of two chunks with one sequence number.
        ThreadRecorder.closeChunk(of: context)
        let header = new.assumingMemoryBound(to: trace_chunk_header.self)
        tracer_store_release_32(&header.pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
        setChunk(new, offset, bytes)
        TraceSpace.clearChunk(old, oldBytes)
        ThreadRecorder.leaveChunk(old, oldBytes, isEmpty: true)
        position.pointee.chunk = header
        position.pointee.cursor = (new + used).assumingMemoryBound(to: UInt64.self)
        position.pointee.limit = (new + (bytes &- ChunkSize.slack)).assumingMemoryBound(to: UInt64.self)
        return true
    }
    /// The words of open frames that are in the chunk now lie so far from where they were.
    private func moveEvents(_ distance: Int, from start: Int, _ byteCount: Int) {
        moveAlternateEvents(distance, from: start, byteCount)
        var frame = top
        while frame != base && !isSettled(frame) {
            frame.moveEvent(distance, from: start, byteCount)
            frame = frame.pointee.below
        }
    }

    /// Under the lock of the contexts: `rename` writes a name into the chunk of another thread.
    private func setChunk(_ address: UnsafeMutableRawPointer, _ offset: UInt64, _ bytes: Int) {
        ThreadRecorder.lock.lock()
        context.pointee.chunk = address
        context.pointee.chunk_offset = offset
        context.pointee.chunk_bytes = UInt64(bytes)
        ThreadRecorder.lock.unlock()
    }

    /// Writes the full chunk after everything else, or over the oldest one of a ring, marked as closed.
    private func copyOut(_ chunk: UnsafeMutableRawPointer) -> Bool {
        var header = chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee
        let end = ThreadRecorder.usedBytes(chunk, until: position.pointee.cursor, context)
        header.used_bytes = end
        header.flags |= UInt16(TRACE_CHUNK_CLOSED)
        ThreadRecorder.nameThread(&header)
        let bytes = Int(context.pointee.chunk_bytes)
        guard TraceSpace.mayHaveSpace(), let offset = Ring.offset(bytes) else { return false }
        let used = Memory.wholePages(Int(end))
        header.byte_count = UInt32(Limits.isRing ? bytes : used)
        let begun = Clock.ticks()
        let written = TraceSpace.write(chunk, used, header, at: offset)
        TraceOutput.noteWait(since: begun)
        Ring.give(offset, UInt64(bytes), of: header.thread)
        if written == .nothing && !Limits.isRing { TraceSpace.giveBack(offset, bytes) } // a ring writes over it when it is its turn
        return written == .all
    }

    /// The cursor of a chunk that is full lies after it.
    private static func usedBytes(_ chunk: UnsafeMutableRawPointer, until cursor: UnsafeMutablePointer<UInt64>?, _ context: ThreadContext)
        -> UInt64
    {
        min(UInt64(UInt(bitPattern: cursor)) &- UInt64(UInt(bitPattern: chunk)), context.pointee.chunk_bytes)
    }

    /// The end of a chunk that stays where it is; its thread may have ended.
    static func closeChunk(of context: ThreadContext) {
        guard let chunk = context.pointee.chunk else { return }
        let header = chunk.assumingMemoryBound(to: trace_chunk_header.self)
        guard let cursor = context.pointee.position.pointee.cursor else { return }
        header.pointee.used_bytes = usedBytes(chunk, until: cursor, context)
        header.pointee.flags |= UInt16(TRACE_CHUNK_CLOSED)
    }

    /// The calling thread's name: sixteen bytes, NUL included.
    static func nameThread(_ header: UnsafeMutablePointer<trace_chunk_header>) {
        _ = withUnsafeMutablePointer(to: &header.pointee.thread_name) {
            SystemCall.call(SystemCall.prctl, Control.getName, bits($0))
        }
    }

    /// A call is made at `stackPointer`: an entry-only trampoline that a signal interrupted further in is left for good, and all that came upon
    /// it (siglongjmp).
    @inline(never) func forgetLeftEntries(at stackPointer: UInt64) {
        if position.pointee.pending == 0 { return }
        let outermost = position.pointee.pending_stack
        // 0: one goes on in a forked child, which a handler has made upon it, and whose count began anew.
        if outermost != 0
            && (outermost > stackPointer || !isOwnStack(outermost) || !isOwnStack(stackPointer) || isInsideSignalStack(stackPointer))
        {
            return
        }
        position.pointee.pending = 0
        position.pointee.pending_stack = 0
    }
    /// True when a trampoline of this thread that a signal interrupted may have a word reserved in the chunk.
    var isWritePending: Bool {
        if position.pointee.pending > 0 || isAlternatePending { return true }
        var frame = top
        while frame != base {
            if frame.isFilling && !frame.isJustTaken || frame.isClosing { return true }
            if frame.isElsewhere { return false } // nor any below
            frame = frame.pointee.below
        }
        return false
    }

    /// Frames whose trampoline a signal interrupted, as the chunk has them: open from the moment that their enter is there
    /// until their end is. A word that is reserved, and written after this, cannot be known of: TRACE_CHUNK_UNSETTLED.
    private func settleFrames() {
        var frame = top
        while frame != base {
            settle(frame)
            frame = frame.pointee.below
        }
        settleAlternate()
    }
    func settle(_ frame: Frame) {
        if frame.isFilling {
            if frame.pointee.function != nil && isOpenInFile(frame) { frame.setElsewhere() }
        } else if frame.isClosing && !frame.isElsewhere && !isOpenInFile(frame) {
            frame.pointee.event = nil
        }
    }

    /// The enters of all open frames are in a chunk that is no longer written. `own`: as `countOwn` says.
    func markElsewhere(_ own: Int) {
        markAlternateElsewhere()
        var frame = top, left = own
        while frame != base && !isSettled(frame) {
            if frame.isWritten {
                if !frame.isElsewhere { frame.setElsewhere() }
                frame.pointee.settled = UInt32(truncatingIfNeeded: left)
                frame.pointee.settled_ticks = frame.pointee.enter_ticks
                left &-= 1
            }
            frame = frame.pointee.below
        }
    }

    /// True if the record says how many frames up to this one are in the file. They stay open as long as it is, but where stacks are
    /// copied. A record that was used again since has another enter time.
    private func isSettled(_ frame: Frame) -> Bool {
        frame.isElsewhere && frame.pointee.settled_ticks == frame.pointee.enter_ticks && context.pointee.copies_stack == 0
    }

    /// The number of open frames on the thread's own stack whose enter is in the file.
    func countOwn() -> Int {
        var frame = top, count = 0
        while frame != base {
            if isSettled(frame) { return count &+ Int(frame.pointee.settled) }
            if frame.isWritten { count &+= 1 }
            frame = frame.pointee.below
        }
        return count
    }

    /// The three lists are ordered by time; merged from the newest backwards, so that the outermost comes first. What
    /// is taken from the list itself is never after what is put there. Returns how many fewer there are than were counted:
    /// a coroutine's frame may have returned on another thread since.
    private func storeFrames(_ start: UnsafeMutableRawPointer, _ count: Int) -> Int {
        let list = start.assumingMemoryBound(to: trace_open_frame.self)
        var own = top
        var alternate = storeAlternate(list, atMost: count)
        var span = Int(context.pointee.span_count) &- 1
        var n = count
        while n > 0 {
            while own != base && !own.isWritten { own = own.pointee.below }
            let ownTicks = own == base ? 0 : own.pointee.enter_ticks
            let alternateTicks = alternate == 0 ? 0 : list[alternate &- 1].enter_ticks
            if span < 0 && alternate == 0 && own == base { break }
            n &-= 1
            if span >= 0 && context.pointee.spans[span].enter_ticks > max(ownTicks, alternateTicks) {
                list[n] = context.pointee.spans[span]
                span &-= 1
            } else if alternate > 0 && (own == base || alternateTicks > ownTicks) {
                alternate &-= 1
                list[n] = list[alternate]
            } else {
                list[n] = trace_open_frame(enter_ticks: own.pointee.enter_ticks, function: own.function, flags: own.siteTag)
                own = own.pointee.below
            }
        }
        if n > 0 { for index in n..<count { list[index &- n] = list[index] } }
        return n
    }

    /// The tags of stored frames become the addresses that they stand for, after them.
    private func storeSites(after start: UnsafeMutableRawPointer, _ count: Int) {
        let list = start.assumingMemoryBound(to: trace_open_frame.self)
        let sites = UnsafeMutableRawPointer(list + count).assumingMemoryBound(to: UInt64.self)
        for n in 0..<count {
            sites[n] = ReturnLabels.returnAddress(tag: list[n].flags &>> 8)
            list[n].flags &= 0xff
        }
    }
}
