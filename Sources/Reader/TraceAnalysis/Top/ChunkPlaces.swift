// Finds the chunks of a file that grows: each part of it is walked once, and then only those places are looked at again where another chunk
// may appear, or the one that is there may be closed.
import CTraceLayout
import TraceFormat

struct ChunkPlaces {
    /// The file has been walked up to here.
    private var end = UInt64(TRACE_HEADER_BYTES)
    /// Places that are looked at again, with their sizes.
    private var open: [UInt64: UInt64] = [:]
    /// Ranges without a header. One may come: of space that a thread has just reserved, or of a row of first chunks.
    private var gaps: [Range<UInt64>] = []
    /// Chunks that threads fill in turn, by their offsets (`trace_spare`).
    private var spares: [UInt64: UInt64] = [:]
    private var found: [Chunk] = []
    /// Names of threads, as the latest chunk has them.
    private(set) var threadNames: [UInt32: (sequence: UInt64, name: String)] = [:]
    /// The last look may not have found every chunk: a full one was on its way from where it was filled to where it belongs, and may
    /// have been in neither place, or not all gaps were searched.
    private(set) var mayMissChunks = false
    private let isRing: Bool
    private static let page = UInt64(TRACE_CHUNK_ALIGNMENT)
    /// As much of the gaps is searched at a time.
    private static let mostGapBytes: UInt64 = 16 << 20

    init(isRing: Bool) { self.isRing = isRing }

    /// Returns the chunks that are new or may have changed, in no order.
    /// - Parameters:
    ///   - page: the first page of the file as it is now
    ///   - nextOffset: what the page says of the end of the chunks
    mutating func look(_ file: InputFile, _ page: borrowing ByteBuffer, nextOffset: UInt64, mayChange: Bool) -> [Chunk] {
        found = []
        noteSpares(page, mayChange: mayChange)
        lookAgain(file)
        searchGaps(file)
        // A damaged header, or that of a file which nobody writes any more, does not say where the chunks end.
        let fileEnd = mayChange && nextOffset > 0 ? min(file.byteCount, nextOffset) : file.byteCount
        end = max(end, walk(file, from: end, to: fileEnd))
        return found
    }

    private mutating func noteSpares(_ page: borrowing ByteBuffer, mayChange: Bool) {
        mayMissChunks = false
        for number in 0..<Int(TRACE_SPARES) {
            let offset = Int(TRACE_SPARES_OFFSET) + number * MemoryLayout<trace_spare>.stride
            guard let spare = page.load(trace_spare.self, at: offset), spare.byte_count != 0 else { return }
            if spare.state == UInt32(TRACE_SPARE_FULL) || spare.state == UInt32(TRACE_SPARE_COPIED) { mayMissChunks = true }
            guard mayChange, spare.offset >= UInt64(TRACE_HEADER_BYTES), spare.offset % Self.page == 0,
                UInt64(spare.byte_count) % Self.page == 0
            else { continue }
            if spares.updateValue(UInt64(spare.byte_count), forKey: spare.offset) == nil, spare.offset < end {
                open[spare.offset] = UInt64(spare.byte_count)
            }
        }
    }

    private mutating func lookAgain(_ file: InputFile) {
        var buffer = ByteBuffer(capacity: ChunkWalk.headerBytes)
        for (offset, byteCount) in open {
            guard let chunk = header(file, at: offset, &buffer), chunk.byteCount <= byteCount || spares[offset] == nil else { continue }
            note(chunk, buffer)
            if isFinal(chunk) { open[offset] = nil }
        }
    }

    /// Nothing of the chunk will change, nor will another one lie there.
    private func isFinal(_ chunk: Chunk) -> Bool { chunk.isClosed && !chunk.isVoid && !isRing && spares[chunk.offset] == nil }

    private func header(_ file: InputFile, at offset: UInt64, _ buffer: inout ByteBuffer) -> Chunk? {
        file.read(ChunkWalk.headerBytes, at: offset, into: &buffer)
        var missing: UInt64 = 0
        return buffer.count < ChunkWalk.headerBytes
            ? nil : ChunkWalk.chunk(in: buffer, at: offset, fileEnd: max(file.byteCount, offset), missing: &missing)
    }

    private mutating func note(_ chunk: Chunk, _ buffer: borrowing ByteBuffer) {
        if chunk.isVoid { return }
        found.append(chunk)
        guard !chunk.isMetadata, threadNames[chunk.thread].map({ $0.sequence <= chunk.sequence }) ?? true else { return }
        let name = ChunkWalk.threadName(in: buffer)
        if !name.isEmpty { threadNames[chunk.thread] = (chunk.sequence, name) }
    }

    private mutating func searchGaps(_ file: InputFile) {
        var left = Self.mostGapBytes
        let all = gaps
        gaps = []
        for gap in all {
            let length = gap.upperBound - gap.lowerBound
            guard length <= left || left == Self.mostGapBytes else {
                gaps.append(gap)
                mayMissChunks = true
                continue
            }
            left -= min(length, left)
            _ = walk(file, from: gap.lowerBound, to: gap.upperBound)
        }
    }

    /// Returns where it ended.
    private mutating func walk(_ file: InputFile, from start: UInt64, to limit: UInt64) -> UInt64 {
        var offset = start, buffer = ByteBuffer(capacity: ChunkWalk.headerBytes)
        while offset < limit {
            if let chunk = header(file, at: offset, &buffer) {
                note(chunk, buffer)
                if !isFinal(chunk) { open[offset] = max(spares[offset] ?? 0, chunk.byteCount) }
                offset += open[offset] ?? chunk.byteCount
            } else if let byteCount = spares[offset] {
                open[offset] = byteCount
                offset += byteCount
            } else {
                let next = nextHeader(file, after: offset, limit)
                gaps.append(offset..<next)
                offset = next
            }
        }
        return offset
    }

    /// Returns the next page that begins as a chunk does, or the limit.
    private func nextHeader(_ file: InputFile, after start: UInt64, _ limit: UInt64) -> UInt64 {
        var offset = start + Self.page, buffer = ByteBuffer(capacity: 64 * Int(Self.page))
        while offset < limit {
            file.read(Int(min(64 * Self.page, limit - offset)), at: offset, into: &buffer)
            if buffer.count == 0 { return limit }
            for position in stride(from: 0, to: buffer.count, by: Int(Self.page)) {
                let place = offset + UInt64(position)
                if spares[place] != nil || buffer.load(UInt32.self, at: position) == UInt32(TRACE_CHUNK_MAGIC) { return place }
            }
            offset += (UInt64(buffer.count) + Self.page - 1) & ~(Self.page - 1)
            offset = max(offset, file.endOfHole(at: offset) & ~(Self.page - 1))
        }
        return limit
    }
}
