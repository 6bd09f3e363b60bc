// Where a full chunk is copied to. In full mode behind the last one, until TRACER_MAXSIZE; in ring mode, once that is
// reached, over the oldest copy.
import CSupport
import CTraceLayout

enum Ring {
    nonisolated(unsafe) private static var places = Table<UInt64>() // offsets, all of chunkBytes
    nonisolated(unsafe) private static var next = 0
    nonisolated(unsafe) private static var lock = SpinLock()

    /// A sixteenth of the limit: what a ring loses at its older end is at most that much.
    static var chunkBytes: Int { max(ChunkSize.first, min(ChunkSize.largest, Int(agent.settings.sizeLimit / 16))) & ~(agent.pageBytes &- 1) }

    static func reset() {
        lock = SpinLock()
        places.removeAll()
        next = 0
    }

    /// nil: recording has stopped.
    static func place(_ byteCount: Int) -> UInt64? {
        let isFull = TraceFile.wouldExceedLimit(byteCount)
        if !agent.settings.ring {
            if isFull {
                _ = TraceFile.stop(TRACE_STOP_LIMIT, 0)
                return nil
            }
            return TraceFile.reserve(byteCount)
        }
        lock.lock()
        defer { lock.unlock() }
        if isFull && places.count > 0 && byteCount == chunkBytes {
            defer { next = (next &+ 1) % places.count }
            return places[next]
        }
        let offset = TraceFile.reserve(byteCount)
        if byteCount == chunkBytes { _ = places.append(offset) }
        return offset
    }
}
