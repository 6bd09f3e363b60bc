// Ranges in the file for copies of full chunks and for the threads' own chunks. In full mode they follow the last one, until the size
// limit; in ring mode, once that is reached, they lie over the oldest copy or over what a thread that has ended left. The file is
// therefore as long as the limit says, and longer only while the chunks of living threads alone need more.
import CSupport
import CTraceLayout

enum Ring {
    /// Offsets of chunks that may be written over, all of chunkBytes: `queued` of them from `oldest` on, and round.
    nonisolated(unsafe) private static var freeChunks = Table<UInt64>()
    nonisolated(unsafe) private static var oldest = 0
    nonisolated(unsafe) private static var queued = 0
    nonisolated(unsafe) private static var lock = Lock()

    static var chunkBytes: Int { ChunkSize.ofRing(Limits.fileBytes) }

    /// In a forked child: another thread of the parent may have held the lock.
    static func becomeChild() {
        lock = Lock()
        forget()
    }
    /// Another file begins.
    static func forget() {
        lock.lock()
        defer { lock.unlock() }
        freeChunks.removeAll()
        oldest = 0
        queued = 0
    }

    /// Returns the offset for a copy. nil: recording has stopped.
    static func offset(_ byteCount: Int) -> UInt64? {
        if !Limits.isRing {
            if TraceSpace.wouldExceedLimit(byteCount) {
                TraceOutput.stop(TRACE_STOP_LIMIT, 0)
                return nil
            }
            return TraceSpace.reserve(byteCount)
        }
        lock.lock()
        defer { lock.unlock() }
        let offset = takeOldest(byteCount) ?? TraceSpace.reserve(byteCount)
        if byteCount == chunkBytes { append(offset) }
        return offset
    }

    /// An offset for a thread's own chunk, to be given back when the thread has ended. nil: take a new one.
    private static func take(_ byteCount: Int) -> UInt64? {
        if !Limits.isRing { return nil }
        lock.lock()
        defer { lock.unlock() }
        return takeOldest(byteCount)
    }

    /// A range for a thread's chunk, mapped and cleared: an old one of the ring, or a new one. nil: recording has stopped, or it cannot be had
    /// now. The thread has waited for it.
    static func map(_ byteCount: Int) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        let begun = Clock.ticks()
        defer { TraceOutput.noteWait(since: begun) }
        let old = take(byteCount)
        if let chunk = TraceSpace.map(byteCount, over: old) { return chunk }
        if let old { giveBack(old) }
        return nil
    }

    /// The chunk there belongs to no thread any more. It is the youngest of those that may be written over.
    static func give(_ offset: UInt64, _ byteCount: UInt64) {
        if !Limits.isRing || byteCount != UInt64(chunkBytes) { return }
        lock.lock()
        append(offset)
        lock.unlock()
    }

    /// Takes back an offset that could not be mapped: it is the oldest again.
    private static func giveBack(_ offset: UInt64) {
        lock.lock()
        if queued == freeChunks.count {
            append(offset)
        } else {
            oldest = oldest == 0 ? freeChunks.count &- 1 : oldest &- 1
            freeChunks[oldest] = offset
            queued &+= 1
        }
        lock.unlock()
    }

    private static func takeOldest(_ byteCount: Int) -> UInt64? {
        if byteCount != chunkBytes || !TraceSpace.wouldExceedLimit(byteCount) { return nil }
        var skipped: UInt64? // the recorder is copying to it: it stays the oldest, and the next one is taken
        for n in 0..<queued {
            let index = place(n), offset = freeChunks[index]
            if let skipped { freeChunks[index] = skipped }
            if SpareChunks.takeBack(for: offset) {
                oldest = place(1)
                queued &-= 1
                return offset
            }
            skipped = offset
        }
        if let skipped { freeChunks[oldest] = skipped } // all go round by one
        return nil
    }

    private static func append(_ offset: UInt64) {
        if queued == freeChunks.count {
            // Full: the new element goes before the oldest one, which moves up with all after it.
            guard freeChunks.append(0) else { return } // no memory: the offset is lost to the ring
            var n = freeChunks.count &- 1
            while n > oldest {
                freeChunks[n] = freeChunks[n &- 1]
                n &-= 1
            }
            freeChunks[oldest] = offset
            oldest = oldest &+ 1 == freeChunks.count ? 0 : oldest &+ 1
            queued &+= 1
            return
        }
        freeChunks[place(queued)] = offset
        queued &+= 1
    }
    /// The n-th element from the oldest on has this index.
    private static func place(_ n: Int) -> Int {
        let index = oldest &+ n
        return index < freeChunks.count ? index : index &- freeChunks.count
    }
}
