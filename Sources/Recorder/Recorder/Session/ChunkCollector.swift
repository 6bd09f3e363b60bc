// Takes over the full chunks of one process: copies each to where the process says, clears it, and lets it have it again (SpareChunks.swift
// of the agent). So the process makes no system call for them. What is in the file says what is to be done, and it is believed as far
// as it can be: a place outside of the file, or a chunk that is not closed, is left alone.
import CRecorder
import CTraceLayout
import Glibc

package struct ChunkCollector {
    private let header: TraceHeader
    private let isRing: Bool
    private let pageBytes: UInt64
    private var buffer: [UInt8] = []
    private var zeros: [UInt8] = []
    /// The file cannot be written: the process finds no free chunk, writes its own, and says why it cannot.
    private var hasGivenUp = false
    private var interval = PreparationPlan.busyNanoseconds

    private static let mostBytes = 1 << 20
    private static let headerBytes = MemoryLayout<trace_chunk_header>.size
    /// Its `TRACE_SPARES` chunks last longer at the fastest that a thread can record.
    private static let mostNanoseconds: UInt64 = 20_000_000

    package init(_ header: TraceHeader) {
        self.header = header
        let state = header.current
        isRing = state.mode == UInt32(TRACE_MODE_RING)
        pageBytes = max(UInt64(state.page_bytes), UInt64(TRACE_CHUNK_ALIGNMENT))
    }

    /// One look. Returns after how many nanoseconds the next one is due.
    package mutating func look() -> UInt64 {
        var known = 0, collected = 0
        for n in 0..<Int(TRACE_SPARES) {
            guard !hasGivenUp, let spare = header.spare(n), spare.state != UInt32(TRACE_SPARE_NONE) else { break }
            known += 1
            guard spare.state == UInt32(TRACE_SPARE_FULL), collect(spare) else { continue }
            header.freeSpare(n, spare)
            collected += 1
        }
        if collected > 0 {
            interval = PreparationPlan.busyNanoseconds
        } else {
            interval = min(interval * 2, known > 0 ? Self.mostNanoseconds : PreparationPlan.idleNanoseconds)
        }
        return interval
    }

    /// The header says "void" until what follows it is there, as the agent writes its chunks: a reader never sees one without the other.
    private mutating func collect(_ spare: trace_spare) -> Bool {
        guard var chunk = closedChunk(at: spare.offset), Self.isPlace(spare.destination) else { return false }
        if buffer.isEmpty { (buffer, zeros) = ([UInt8](repeating: 0, count: Self.mostBytes), [UInt8](repeating: 0, count: Self.mostBytes)) }
        let kind = chunk.kind, place = spare.destination, size = chunk.byte_count
        let used = min(UInt32(chunk.used_bytes.roundedUp(to: pageBytes)), size) // as far as the file must reach
        guard pread(header.file, &buffer, Int(used), off_t(spare.offset)) == Int(used) else { return false }
        if !isRing { chunk.byte_count = used }
        chunk.kind = UInt16(TRACE_CHUNK_VOID)
        var isWritten = write(&chunk, Self.headerBytes, at: place)
        isWritten = isWritten && write(&buffer, Self.headerBytes..<Int(used), at: place)
        chunk.kind = kind
        isWritten = isWritten && write(&chunk, Self.headerBytes, at: place)
        isWritten = isWritten && write(&zeros, 0..<Int(size), at: spare.offset) // the magic is the first to go
        hasGivenUp = !isWritten
        return isWritten
    }
    private func write(_ bytes: UnsafeRawPointer, _ count: Int, at offset: UInt64) -> Bool { write(bytes, 0..<count, at: offset) }
    /// `range` of `bytes`, to the same distance from `offset`.
    private func write(_ bytes: UnsafeRawPointer, _ range: Range<Int>, at offset: UInt64) -> Bool {
        var range = range
        while !range.isEmpty {
            let result = pwrite(header.file, bytes + range.lowerBound, range.count, off_t(offset) + off_t(range.lowerBound))
            if result < 0, errno == EINTR { continue }
            if result <= 0 { return false }
            range = range.lowerBound + result..<range.upperBound
        }
        return true
    }

    /// nil: there is none, or a thread may still write to it.
    private func closedChunk(at offset: UInt64) -> trace_chunk_header? {
        var chunk = trace_chunk_header()
        guard Self.isPlace(offset), pread(header.file, &chunk, Self.headerBytes, off_t(offset)) == Self.headerBytes,
            chunk.magic == UInt32(TRACE_CHUNK_MAGIC), chunk.kind == UInt16(TRACE_CHUNK_EVENTS),
            chunk.flags & UInt16(TRACE_CHUNK_CLOSED) != 0, chunk.byte_count <= Self.mostBytes,
            chunk.used_bytes >= Self.headerBytes, chunk.used_bytes <= chunk.byte_count
        else { return nil }
        return chunk
    }
    private static func isPlace(_ offset: UInt64) -> Bool {
        offset >= UInt64(TRACE_HEADER_BYTES) && offset <= TraceHeader.mostBytes && offset % UInt64(TRACE_CHUNK_ALIGNMENT) == 0
    }

    /// The process has ended: an empty chunk says so to a reader, and takes no space on the disk.
    package func end() {
        for n in 0..<Int(TRACE_SPARES) {
            guard let spare = header.spare(n), spare.state == UInt32(TRACE_SPARE_FREE), Self.isPlace(spare.offset) else { continue }
            var chunk = trace_chunk_header()
            chunk.magic = UInt32(TRACE_CHUNK_MAGIC)
            chunk.kind = UInt16(TRACE_CHUNK_VOID)
            chunk.byte_count = spare.byte_count
            chunk.body_offset = UInt32(Self.headerBytes)
            let page = UInt64(TRACE_CHUNK_ALIGNMENT)
            guard write(&chunk, Self.headerBytes, at: spare.offset), UInt64(spare.byte_count) > page else { continue }
            recorder_release(header.file, spare.offset + page, UInt64(spare.byte_count) - page)
        }
    }
}
