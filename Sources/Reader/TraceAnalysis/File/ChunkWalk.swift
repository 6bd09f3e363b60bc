// Finds the chunks of a file. They lie back to back from offset 4096, each on a 4096 boundary. Where a header should
// be and none is, the chunk was not finished or its space is being used anew (a magic of zero, and anything after it),
// or the file is damaged: the walk then goes on page by page until it meets a header again.
import CTraceLayout
import ELF
import TraceFormat

/// Header of a chunk, validated: offsets in order, sizes within the chunk and the file.
package struct Chunk: Sendable {
    var offset: UInt64
    var byteCount: UInt64
    /// From the start of the chunk, both multiples of 8: where events or records begin and where reading them ends.
    var bodyOffset: Int
    var endOffset: Int
    var isMetadata: Bool
    var isVoid: Bool
    package var isClosed: Bool
    /// True if the chunk alone does not say which calls are open where it begins: the stack was deeper than the frames that it stores, or
    /// it is unsettled.
    var isCut: Bool
    /// A word of the chunk before may be younger than the list of open frames.
    var isUnsettled: Bool
    /// The call sites of the open frames follow their list.
    var hasSites: Bool
    var thread: UInt32
    var tid: UInt32
    var sequence: UInt64
    var opened: trace_clock_sample
    /// Ticks from which the times in it count: those of `opened`, as they are in the file.
    var base: UInt64
    var openFrames: Int
    var storedFrames: Int
    var filteredByTime: UInt64
    var filteredByDepth: UInt64
    var filteredByCondition: UInt64
    var dropped: UInt64
    /// Calls that were made and are not kept, as was asked for.
    var filtered: UInt64 { filteredByTime &+ filteredByDepth &+ filteredByCondition }

    func even(_ scale: TimeScale) -> Chunk {
        var copy = self
        copy.opened.ticks = scale.even(base)
        return copy
    }
}

struct ChunkWalk {
    private(set) var chunks: [Chunk] = []
    private(set) var threadNames: [UInt32: (sequence: UInt64, name: String)] = [:]
    /// Bytes where a header should have been and was not: no magic yet, or something else.
    private(set) var unwrittenBytes: UInt64 = 0
    private(set) var damagedBytes: UInt64 = 0
    /// Bytes that headers promise beyond the end of the file.
    private(set) var missingBytes: UInt64 = 0
    /// Offset at which the chunks end, by their headers.
    private(set) var end = UInt64(TRACE_HEADER_BYTES)

    static let page = UInt64(TRACE_CHUNK_ALIGNMENT)
    static let headerBytes = MemoryLayout<trace_chunk_header>.size

    /// - Parameters:
    ///   - start: where the chunks begin that are asked for
    ///   - isGrowing: the file is being written. A thread copies a chunk after everything else before it begins the
    ///     next at the same offset: who has read the number of the next finds the copy only by looking once more.
    init(_ file: InputFile, from start: UInt64 = UInt64(TRACE_HEADER_BYTES), isGrowing: Bool = false) {
        end = start
        walk(file, to: file.byteCount)
        guard isGrowing else { return }
        for _ in 0..<Self.mostWalks {
            let known = self
            (unwrittenBytes, damagedBytes, missingBytes) = countsAtEnd
            walk(file, to: min(file.byteCount, Self.nextOffset(file)))
            if chunks.count == known.chunks.count {
                self = known
                break
            }
        }
    }

    /// A walk over what was added during the last one is shorter than that by orders of magnitude.
    private static let mostWalks = 8
    private var countsAtEnd: (UInt64, UInt64, UInt64) = (0, 0, 0)

    /// Returns the offset of the next chunk to be written, by the file's header at this moment; 0 if that cannot be read.
    private static func nextOffset(_ file: InputFile) -> UInt64 {
        var buffer = ByteBuffer(capacity: MemoryLayout<trace_file_header>.size)
        file.read(MemoryLayout<trace_file_header>.size, at: 0, into: &buffer)
        return buffer.load(trace_file_header.self, at: 0)?.next_offset ?? 0
    }

    /// From `end` on.
    private mutating func walk(_ file: InputFile, to fileEnd: UInt64) {
        var buffer = ByteBuffer(capacity: Self.headerBytes)
        var offset = end
        var trailingZeros: UInt64 = 0
        while offset < fileEnd {
            file.read(Self.headerBytes, at: offset, into: &buffer)
            if buffer.count < Self.headerBytes { // cut inside a header, or inside zeros
                if !buffer.isZero(at: 0, byteCount: buffer.count) { missingBytes += UInt64(Self.headerBytes - buffer.count) }
                break
            }
            if let chunk = Self.chunk(in: buffer, at: offset, fileEnd: fileEnd, missing: &missingBytes) {
                unwrittenBytes += trailingZeros // zeros with a chunk after them
                trailingZeros = 0
                if !chunk.isVoid { // a copy that was never finished
                    note(buffer, chunk)
                    chunks.append(chunk)
                }
                offset += chunk.byteCount
                end = offset
                countsAtEnd = (unwrittenBytes, damagedBytes, missingBytes)
            } else {
                offset = skip(from: offset, to: fileEnd, file, zeros: &trailingZeros)
            }
        }
    }

    /// Steps over pages until one begins with a chunk's magic.
    private mutating func skip(from start: UInt64, to fileEnd: UInt64, _ file: InputFile, zeros: inout UInt64) -> UInt64 {
        var buffer = ByteBuffer(capacity: 64 * Int(Self.page))
        var offset = start
        var isUnwritten = true
        while offset < fileEnd {
            file.read(64 * Int(Self.page), at: offset, into: &buffer)
            if buffer.count == 0 { return fileEnd }
            for position in stride(from: 0, to: buffer.count, by: Int(Self.page)) {
                // The page where we began is known to hold no valid header, whatever its magic.
                if offset + UInt64(position) != start,
                    buffer.load(UInt32.self, at: position) == UInt32(TRACE_CHUNK_MAGIC)
                {
                    return offset + UInt64(position)
                }
                let byteCount = UInt64(min(buffer.count - position, Int(Self.page)))
                if offset + UInt64(position) == start { isUnwritten = buffer.load(UInt32.self, at: position) ?? 0 == 0 }
                if isUnwritten || buffer.isZero(at: position, byteCount: Int(Self.page)) {
                    zeros += byteCount
                } else {
                    damagedBytes += byteCount
                }
            }
            offset += UInt64(buffer.count)
            // After its used part the file may have a hole of a gigabyte.
            let next = min(file.endOfHole(at: offset) & ~(Self.page - 1), fileEnd)
            if next > offset {
                zeros += next - offset
                offset = next
            }
        }
        return fileEnd
    }

    private mutating func note(_ buffer: borrowing ByteBuffer, _ chunk: Chunk) {
        guard !chunk.isMetadata else { return }
        let name = Self.threadName(in: buffer)
        if let known = threadNames[chunk.thread], known.sequence > chunk.sequence || name.isEmpty { return }
        threadNames[chunk.thread] = (chunk.sequence, name)
    }

    static func threadName(in buffer: borrowing ByteBuffer) -> String {
        printable(buffer.bytes(at: MemoryLayout<trace_chunk_header>.offset(of: \.thread_name)!, byteCount: 16).prefix { $0 != 0 })
    }

    /// nil when there is no header, or none that can be believed.
    static func chunk(
        in buffer: borrowing ByteBuffer, at offset: UInt64, fileEnd: UInt64,
        missing: inout UInt64
    ) -> Chunk? {
        guard let header = buffer.load(trace_chunk_header.self, at: 0), header.magic == UInt32(TRACE_CHUNK_MAGIC),
            header.kind >= UInt16(TRACE_CHUNK_EVENTS) && header.kind <= UInt16(TRACE_CHUNK_VOID)
        else { return nil }
        let byteCount = UInt64(header.byte_count), body = UInt64(header.body_offset), used = header.used_bytes
        let framesEnd =
            UInt64(headerBytes)
            + UInt64(header.stored_frames) * UInt64(MemoryLayout<trace_open_frame>.size)
        guard byteCount >= page, byteCount % page == 0, body % 8 == 0, body >= framesEnd, body <= byteCount,
            used <= byteCount
        else { return nil }
        let isClosed = header.flags & UInt16(TRACE_CHUNK_CLOSED) != 0 && used >= body
        let wanted = isClosed ? used : byteCount
        let present = fileEnd - offset
        let end = min(wanted, present)
        let isVoid = header.kind == UInt16(TRACE_CHUNK_VOID)
        if wanted > present && !isVoid { missing += wanted - present }
        return Chunk(
            offset: offset, byteCount: byteCount, bodyOffset: Int(body), endOffset: max(Int(body), Int(end & ~7)),
            isMetadata: header.kind == UInt16(TRACE_CHUNK_METADATA), isVoid: isVoid, isClosed: isClosed,
            isCut: header.flags & UInt16(TRACE_CHUNK_FRAMES_CUT | TRACE_CHUNK_UNSETTLED) != 0 || header.stored_frames < header.open_frames,
            isUnsettled: header.flags & UInt16(TRACE_CHUNK_UNSETTLED) != 0, hasSites: header.flags & UInt16(TRACE_CHUNK_SITES) != 0,
            thread: header.thread, tid: header.tid, sequence: header.sequence, opened: header.opened, base: header.opened.ticks,
            openFrames: Int(max(header.open_frames, header.stored_frames)), storedFrames: Int(header.stored_frames),
            filteredByTime: header.filtered_by_time, filteredByDepth: header.filtered_by_depth,
            filteredByCondition: header.filtered_by_condition, dropped: header.dropped)
    }
}
