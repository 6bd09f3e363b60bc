// How much of a trace file is used. The last part may be prepared, or reserved by a chunk that was never filled.
import CTraceLayout
import Glibc

package enum UsedEnd {
    /// Cuts the file there, and makes the chunk that is cut say its new size, so that no reader takes the cut for damage.
    /// The new size of the file.
    package static func cut(file: Int32, size: UInt64, nextOffset: UInt64) -> UInt64 {
        let (end, chunkOffset) = find(file: file, size: size, nextOffset: nextOffset)
        guard end < size else { return size }
        if let chunkOffset, let chunk = chunkHeader(file, chunkOffset), chunkOffset + UInt64(chunk.byte_count) > end {
            var bytes = UInt32(end - chunkOffset).littleEndian
            let field = MemoryLayout<trace_chunk_header>.offset(of: \.byte_count)!
            guard pwrite(file, &bytes, 4, off_t(chunkOffset) + off_t(field)) == 4 else { return size }
        }
        return ftruncate(file, off_t(end)) == 0 ? end : size
    }

    /// The end of the last byte that says something, rounded up to a page, and the chunk that it lies in. `size` is
    /// the file's. The process that wrote the file must have ended.
    package static func find(file: Int32, size: UInt64, nextOffset: UInt64) -> (end: UInt64, chunkOffset: UInt64?) {
        let header = UInt64(TRACE_HEADER_BYTES), alignment = UInt64(TRACE_CHUNK_ALIGNMENT)
        let limit = min(size, max(nextOffset, header))
        var offset = header, last: (offset: UInt64, chunk: trace_chunk_header)?
        while offset + UInt64(MemoryLayout<trace_chunk_header>.size) <= limit {
            guard let chunk = chunkHeader(file, offset), chunk.magic == TRACE_CHUNK_MAGIC,
                chunk.byte_count >= MemoryLayout<trace_chunk_header>.size
            else {
                offset += alignment // handed out, but its thread did not live to open it
                continue
            }
            last = (offset, chunk) // a chunk that was opened has at least its header in use
            offset += UInt64(chunk.byte_count).roundedUp(to: alignment)
        }
        guard let last else { return (header, nil) }
        let end = usedEnd(file, of: last.chunk, at: last.offset, size)
        return (min(size, end.roundedUp(to: alignment)), last.offset)
    }

    private static func usedEnd(_ file: Int32, of chunk: trace_chunk_header, at offset: UInt64, _ size: UInt64) -> UInt64 {
        let chunkEnd = min(offset + UInt64(chunk.byte_count), size)
        if chunk.used_bytes > 0, chunk.used_bytes <= chunk.byte_count { return min(offset + chunk.used_bytes, chunkEnd) }
        let end = lastWrittenByte(file, from: offset, to: chunkEnd)
        guard chunk.kind == UInt16(TRACE_CHUNK_METADATA) else { return end }
        return max(end, recordEnd(file, from: offset + UInt64(chunk.body_offset), to: chunkEnd, including: end))
    }

    /// The end of the record that the byte before `last` lies in: what it ends in may be zero, as counters are.
    private static func recordEnd(_ file: Int32, from start: UInt64, to end: UInt64, including last: UInt64) -> UInt64 {
        var offset = start, record = trace_record()
        let bytes = MemoryLayout<trace_record>.size
        while offset < last, offset + UInt64(bytes) <= end, pread(file, &record, bytes, off_t(offset)) == bytes {
            guard record.type != 0, record.byte_count >= bytes, UInt64(record.byte_count) <= end - offset else { break }
            offset += UInt64(record.byte_count)
        }
        return offset
    }

    /// Returns the end of the last nonzero byte of an open chunk: untouched bytes are zero, and an all-zero word is never an event.
    /// `end` when the file cannot be read.
    private static func lastWrittenByte(_ file: Int32, from start: UInt64, to end: UInt64) -> UInt64 {
        var window = [UInt8](repeating: 0, count: 64 << 10)
        var high = end
        while high > start {
            let low = high - min(high - start, UInt64(window.count))
            let got = pread(file, &window, Int(high - low), off_t(low))
            guard got == Int(high - low) else { return end } // unknown: keep it all
            if let last = window[..<got].lastIndex(where: { $0 != 0 }) { return low + UInt64(last) + 1 }
            high = low
        }
        return start
    }

    private static func chunkHeader(_ file: Int32, _ offset: UInt64) -> trace_chunk_header? {
        var chunk = trace_chunk_header()
        let bytes = MemoryLayout<trace_chunk_header>.size
        return pread(file, &chunk, bytes, off_t(offset)) == bytes ? chunk : nil
    }
}
