// Where a thread writes its events. The chunk is mapped from the file, so that nothing is lost when the process is
// killed. Growing a mapped file costs a page fault every 512 events; so a chunk that is full is copied to the end of
// the file with one write (a third of the cost), cleared, and written again: it stays mapped and in the cache. Young
// threads, which may never fill one, begin with a small chunk that simply stays where it is.
import CSupport
import CTraceLayout

enum ChunkSize {
    static let largest = 256 << 10
    static var first: Int { max(16384, agent.pageBytes) } // a mapping begins on a page of the file
    /// Behind the limit of a chunk: room for words that are reserved when it is found to be full, and for returns.
    static let slack = 512
    static let headerBytes = MemoryLayout<trace_chunk_header>.size

    static func next(after bytes: Int) -> Int { agent.settings.ring ? Ring.chunkBytes : min(bytes &* 4, largest) }
}

extension ThreadRecorder {
    private static let mostStoredFrames = 4096

    /// The chunk is closed and a new one is open. False: recording has stopped.
    func openChunk() -> Bool {
        if !TraceFile.isWritable { return false }
        let isPending = isWritePending
        if isPending { settleFrames() }
        let (frames, stored) = countFrames()
        guard let address = nextPlace(holding: stored, isPending) else { return false }
        markElsewhere()
        let header = address.assumingMemoryBound(to: trace_chunk_header.self)
        header.pointee.kind = UInt16(TRACE_CHUNK_EVENTS)
        header.pointee.flags = (stored < frames ? UInt16(TRACE_CHUNK_FRAMES_CUT) : 0) | (isPending ? UInt16(TRACE_CHUNK_UNSETTLED) : 0)
        header.pointee.byte_count = UInt32(unit.pointee.chunk_bytes)
        let body = ChunkSize.headerBytes &+ stored &* MemoryLayout<trace_open_frame>.size
        header.pointee.body_offset = UInt32(body)
        header.pointee.thread = unit.pointee.index
        header.pointee.tid = unit.pointee.tid
        header.pointee.sequence = unit.pointee.sequence
        header.pointee.opened = Clock.sample()
        let missing = storeFrames(address + ChunkSize.headerBytes, stored)
        header.pointee.open_frames = UInt32(frames &- missing)
        header.pointee.stored_frames = UInt32(stored &- missing)
        header.pointee.generation = tracer_atomic_add(&TraceFile.header.pointee.generation, 1)
        ThreadRecorder.nameThread(header)
        tracer_store_release_32(&header.pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
        TraceFile.header.pointee.last = header.pointee.opened
        hot.pointee.chunk = header
        hot.pointee.base = header.pointee.opened.ticks
        hot.pointee.cursor = (address + body).assumingMemoryBound(to: UInt64.self)
        hot.pointee.limit = (address + (Int(unit.pointee.chunk_bytes) &- ChunkSize.slack)).assumingMemoryBound(to: UInt64.self)
        return true
    }

    /// Cleared memory for the next chunk: the one that was just copied out, or a larger one.
    private func nextPlace(holding frames: Int, _ isPending: Bool) -> UnsafeMutableRawPointer? {
        let needed = frames &* 64 &+ ChunkSize.first / 2
        if let old = unit.pointee.chunk {
            let bytes = Int(unit.pointee.chunk_bytes)
            // A word may be reserved in it by a trampoline that a signal interrupted: then it is left as it is.
            let isSteady = bytes >= (agent.settings.ring ? Ring.chunkBytes : ChunkSize.largest) && bytes >= needed
            if isSteady && !isPending {
                guard copyOut(old) else { return nil }
                TraceFile.clearChunk(old, bytes)
                unit.pointee.sequence &+= 1
                return old
            }
        }
        var bytes = unit.pointee.chunk == nil && !agent.settings.ring ? ChunkSize.first
                                                                      : ChunkSize.next(after: Int(unit.pointee.chunk_bytes))
        while bytes < needed { bytes = bytes &* 2 }
        if TraceFile.wouldExceedLimit(bytes) && !agent.settings.ring {
            TraceFile.stop(TRACE_STOP_LIMIT, 0)
            return nil
        }
        guard let (address, offset) = TraceFile.map(bytes, over: Ring.take(bytes)) else { return nil }
        if let old = unit.pointee.chunk {
            let oldBytes = Int(unit.pointee.chunk_bytes), oldOffset = unit.pointee.chunk_offset
            ThreadRecorder.nameThread(old.assumingMemoryBound(to: trace_chunk_header.self))
            ThreadRecorder.closeChunk(of: unit)
            unit.pointee.sequence &+= 1
            setChunk(address, offset, bytes)
            if !isPending {
                TraceFile.unmap(old, oldBytes)
                Ring.give(oldOffset, UInt64(oldBytes))
            }
        } else {
            setChunk(address, offset, bytes)
        }
        return address
    }

    /// Under the lock of the units: `rename` writes a name into the chunk of another thread.
    private func setChunk(_ address: UnsafeMutableRawPointer, _ offset: UInt64, _ bytes: Int) {
        ThreadRecorder.lock.lock()
        unit.pointee.chunk = address
        unit.pointee.chunk_offset = offset
        unit.pointee.chunk_bytes = UInt64(bytes)
        ThreadRecorder.lock.unlock()
    }

    /// Writes the full chunk behind everything else, or over the oldest one of a ring, marked as closed.
    private func copyOut(_ chunk: UnsafeMutableRawPointer) -> Bool {
        var header = chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee
        let end = min(UInt64(UInt(bitPattern: hot.pointee.cursor)) &- UInt64(UInt(bitPattern: chunk)), unit.pointee.chunk_bytes)
        header.used_bytes = end
        header.flags |= UInt16(TRACE_CHUNK_CLOSED)
        ThreadRecorder.nameThread(&header)
        let bytes = Int(unit.pointee.chunk_bytes)
        guard let offset = Ring.place(bytes) else { return false }
        let used = Memory.wholePages(Int(end))
        header.byte_count = UInt32(agent.settings.ring ? bytes : used)
        return TraceFile.write(chunk, used, header, at: offset)
    }

    /// The end of a chunk that stays where it is; its thread may have ended.
    static func closeChunk(of unit: UnsafeMutablePointer<thread_unit>) {
        guard let chunk = unit.pointee.chunk else { return }
        let header = chunk.assumingMemoryBound(to: trace_chunk_header.self)
        guard let cursor = unit.pointee.hot.pointee.cursor else { return }
        header.pointee.used_bytes = min(UInt64(UInt(bitPattern: cursor)) &- UInt64(UInt(bitPattern: chunk)), unit.pointee.chunk_bytes)
        header.pointee.flags |= UInt16(TRACE_CHUNK_CLOSED)
    }
    /// The calling thread's name. PR_GET_NAME: sixteen bytes, NUL included.
    static func nameThread(_ header: UnsafeMutablePointer<trace_chunk_header>) {
        _ = withUnsafeMutablePointer(to: &header.pointee.thread_name) {
            SystemCall.call(SystemCall.prctl, 16, bits($0))
        }
    }

    /// True when a trampoline of this thread that a signal interrupted may have a word reserved in the chunk.
    var isWritePending: Bool {
        if hot.pointee.pending > 0 || isForeignPending { return true }
        var frame = top
        while frame != base {
            if frame.isFilling || frame.isClosing { return true }
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
        settleForeign()
    }
    func settle(_ frame: Frame) {
        if frame.isFilling {
            if frame.pointee.function != nil && isOpenInFile(frame) { frame.setElsewhere() }
        } else if frame.isClosing && !frame.isElsewhere && !isOpenInFile(frame) {
            frame.pointee.slot = nil
        }
    }

    /// The enters of all open frames are in a chunk that is no longer written.
    func markElsewhere() {
        markForeignElsewhere()
        var frame = top
        while frame != base {
            if frame.isElsewhere { return }
            if frame.isWritten { frame.setElsewhere() }
            frame = frame.pointee.below
        }
    }

    /// Open frames whose enter is in the file, and how many of them, the innermost, a chunk stores.
    private func countFrames() -> (all: Int, stored: Int) {
        var all = countForeign() &+ Int(unit.pointee.span_count)
        var frame = top
        while frame != base {
            if frame.isWritten { all &+= 1 }
            frame = frame.pointee.below
        }
        return (all, min(all, ThreadRecorder.mostStoredFrames))
    }

    /// The three lists are ordered by time; merged from the newest backwards, so that the outermost comes first. What
    /// is taken from the list itself is never behind what is put there. Returns how many fewer there are than were counted:
    /// a coroutine's frame may have returned on another thread since.
    private func storeFrames(_ place: UnsafeMutableRawPointer, _ count: Int) -> Int {
        let list = place.assumingMemoryBound(to: trace_open_frame.self)
        var own = top
        var foreign = storeForeign(list, atMost: count)
        var span = Int(unit.pointee.span_count) &- 1
        var n = count
        while n > 0 {
            while own != base && !own.isWritten { own = own.pointee.below }
            let ownTicks = own == base ? 0 : own.pointee.enter_ticks
            let foreignTicks = foreign == 0 ? 0 : list[foreign &- 1].enter_ticks
            if span < 0 && foreign == 0 && own == base { break }
            n &-= 1
            if span >= 0 && unit.pointee.spans[span].enter_ticks > max(ownTicks, foreignTicks) {
                list[n] = unit.pointee.spans[span]
                span &-= 1
            } else if foreign > 0 && (own == base || foreignTicks > ownTicks) {
                foreign &-= 1
                list[n] = list[foreign]
            } else {
                list[n] = trace_open_frame(enter_ticks: own.pointee.enter_ticks, function: own.function, flags: 0)
                own = own.pointee.below
            }
        }
        if n > 0 { for place in n..<count { list[place &- n] = list[place] } }
        return n
    }
}
