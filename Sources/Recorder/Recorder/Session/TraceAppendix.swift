// Metadata chunks that are put at the end of a trace when its process has ended: like the agent's own.
import CTraceLayout
import Glibc

extension TraceHeader {
    /// Appends records to what is there. False: not all was written, usually because the disk is full.
    /// - Parameter isGone: the process has ended
    func append(_ records: [UInt8], opened: trace_clock_sample, isGone: Bool) -> Bool {
        place(records, opened: opened, isGone: isGone) != nil
    }
    /// The same. Returns the offset of the chunk.
    func place(_ records: [UInt8], opened: trace_clock_sample, isGone: Bool) -> UInt64? {
        let headBytes = MemoryLayout<trace_chunk_header>.size, used = headBytes + records.count
        let byteCount = UInt64(used).roundedUp(to: UInt64(TRACE_CHUNK_ALIGNMENT))
        var chunk = trace_chunk_header()
        chunk.kind = UInt16(TRACE_CHUNK_METADATA)
        chunk.flags = UInt16(TRACE_CHUNK_CLOSED)
        chunk.byte_count = UInt32(byteCount)
        chunk.body_offset = UInt32(headBytes)
        chunk.opened = opened
        chunk.used_bytes = UInt64(used)
        var bytes = withUnsafeBytes(of: chunk) { Array($0) } + records
        bytes += repeatElement(0, count: Int(byteCount) - bytes.count)
        guard let offset = reserve(byteCount, isGone: isGone) else { return nil }
        guard bytes.withUnsafeBytes({ write($0, at: offset) }) else {
            if isGone { // otherwise a thread may have taken what comes after it: then this is a range that nobody has opened
                set(nextOffset: offset)
                ftruncate(file, off_t(offset))
            }
            return nil
        }
        // The magic last: the file may be being read.
        var magic = UInt32(TRACE_CHUNK_MAGIC)
        return pwrite(file, &magic, 4, off_t(offset)) == 4 ? offset : nil
    }
}
