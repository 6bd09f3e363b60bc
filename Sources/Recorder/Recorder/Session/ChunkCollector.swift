// Takes over the full chunks of one process: copies each to where the process says, clears it, and lets it have it again (SpareChunks.swift
// of the agent). So the process makes no system call for them. What is in the file says what is to be done, and it is believed as far
// as it can be: a place outside of the file, or a chunk that is not closed, is left alone.
import CRecorder
import CTraceLayout
import Glibc

package struct ChunkCollector {
    private let header: TraceHeader
    private let isRing: Bool
    /// Chunks are made ahead: not in a file of limited size, nor where that has failed.
    private var makesSpares: Bool
    private let pageBytes: UInt64
    /// The file cannot be written: the process finds no free chunk, writes its own, and says why it cannot.
    private var hasGivenUp = false
    private var interval = PreparationPlan.busyNanoseconds

    private static let mostBytes = 1 << 20
    private static let spareBytes = UInt64(TRACE_SPARE_BYTES)
    /// As many are to be free, and no more than a quarter of the file, in which they may remain as holes. Whoever fills chunks may go on for
    /// long before we run again, on a busy machine or while the disk is slow.
    private static let mostFree: UInt64 = 32
    private static let headerBytes = MemoryLayout<trace_chunk_header>.size
    /// Its `TRACE_SPARES` chunks last longer at the fastest that a thread can record.
    static let mostNanoseconds: UInt64 = 20_000_000

    package init(_ header: TraceHeader) {
        self.header = header
        let state = header.current
        isRing = state.mode == UInt32(TRACE_MODE_RING)
        makesSpares = state.size_limit == 0
        pageBytes = max(UInt64(state.page_bytes), UInt64(TRACE_CHUNK_ALIGNMENT))
    }

    /// One look. Returns after how many nanoseconds the next one is due.
    package mutating func look() -> UInt64 {
        var known = 0, free = 0, collected = 0
        for n in 0..<Int(TRACE_SPARES) {
            guard !hasGivenUp, let found = header.spare(n) else { break }
            known += 1
            if found.state == UInt32(TRACE_SPARE_FREE) { free += 1 }
            guard let spare = header.takeFullSpare(n) else { continue }
            let isCollected = collect(spare)
            header.setSpare(n, spare, isCollected ? TRACE_SPARE_FREE : TRACE_SPARE_FULL)
            if isCollected { collected += 1 }
        }
        free += collected
        known += makeSpares(from: known, free: free)
        if collected > 0 {
            interval = PreparationPlan.busyNanoseconds
        } else {
            interval = min(interval * 2, known > 0 ? Self.mostNanoseconds : PreparationPlan.idleNanoseconds)
        }
        return interval
    }

    /// Chunks with these numbers, free, and allocated on the disk: a thread that takes one maps it, and waits for no page. All at once, since
    /// threads that touch a page of the file wait for fallocate(2). The process makes the first ones itself. Returns how many.
    private mutating func makeSpares(from known: Int, free: Int) -> Int {
        guard makesSpares, !hasGivenUp, known > 0, let used = header.nextOffset else { return 0 }
        let wanted = Int(min(used / 4 / Self.spareBytes, Self.mostFree)) - free
        let ours = (known..<Int(TRACE_SPARES)).prefix(max(wanted, 0)).prefix { header.beginSpare($0, byteCount: Self.spareBytes) }
        if ours.isEmpty { return 0 } // the process was faster
        var spare = trace_spare()
        spare.byte_count = UInt32(Self.spareBytes)
        let bytes = Self.spareBytes * UInt64(ours.count)
        guard let offset = header.reserve(bytes, isGone: false), recorder_allocate(header.file, offset, bytes) == 0 else {
            makesSpares = false // a full disk, or a file system that allocates nothing: the process makes its own
            for n in ours { header.setSpare(n, spare, TRACE_SPARE_NONE) }
            return 0
        }
        for (index, n) in ours.enumerated() {
            spare.offset = offset + UInt64(index) * Self.spareBytes
            header.setSpare(n, spare, TRACE_SPARE_FREE)
        }
        return ours.count
    }

    /// The header says "void" until what follows it is there, as the agent writes its chunks: a reader never sees one without the other.
    private mutating func collect(_ spare: trace_spare) -> Bool {
        guard var chunk = closedChunk(at: spare.offset), Self.isPlace(spare.destination) else { return false }
        let kind = chunk.kind, place = spare.destination, size = Int(chunk.byte_count)
        let used = min(Int(chunk.used_bytes.roundedUp(to: pageBytes)), size) // as far as the file must reach
        var bytes = [UInt8](unsafeUninitializedCapacity: size) { bytes, count in
            count = max(pread(header.file, bytes.baseAddress!, used, off_t(spare.offset)), 0)
        }
        guard bytes.count == used else { return false }
        if !isRing { chunk.byte_count = UInt32(used) }
        chunk.kind = UInt16(TRACE_CHUNK_VOID)
        var isWritten = write(chunk, at: place)
        isWritten =
            isWritten
            && bytes.withUnsafeBytes {
                header.write(UnsafeRawBufferPointer(rebasing: $0[Self.headerBytes...]), at: place + UInt64(Self.headerBytes))
            }
        chunk.kind = kind
        isWritten = isWritten && write(chunk, at: place)
        bytes = [UInt8](repeating: 0, count: size)
        isWritten = isWritten && bytes.withUnsafeBytes { header.write($0, at: spare.offset) } // the magic is the first to go
        hasGivenUp = !isWritten
        return isWritten
    }

    private func write(_ chunk: trace_chunk_header, at offset: UInt64) -> Bool {
        withUnsafeBytes(of: chunk) { header.write($0, at: offset) }
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

    /// The process has ended: an empty chunk says so to a reader, and takes no space on the disk; after all others it is taken off the file. A
    /// full one may stay where it is, but not in a ring, where an older one lies at its place.
    package mutating func end() {
        makesSpares = false
        if isRing { _ = look() }
        let spares = (0..<Int(TRACE_SPARES)).compactMap { header.spare($0) }
        let free = spares.filter { $0.state == UInt32(TRACE_SPARE_FREE) && Self.isPlace($0.offset) }
        // Nothing follows the last ones.
        var end = header.nextOffset ?? 0, left = free.sorted { $0.offset < $1.offset }
        while let last = left.last, last.offset + UInt64(last.byte_count) == end {
            end = last.offset
            left.removeLast()
        }
        if left.count < free.count { header.set(nextOffset: end) }
        for spare in left {
            var chunk = trace_chunk_header()
            chunk.magic = UInt32(TRACE_CHUNK_MAGIC)
            chunk.kind = UInt16(TRACE_CHUNK_VOID)
            chunk.byte_count = spare.byte_count
            chunk.body_offset = UInt32(Self.headerBytes)
            let page = UInt64(TRACE_CHUNK_ALIGNMENT)
            guard write(chunk, at: spare.offset), UInt64(spare.byte_count) > page else { continue }
            recorder_release(header.file, spare.offset + page, UInt64(spare.byte_count) - page)
        }
    }
}
