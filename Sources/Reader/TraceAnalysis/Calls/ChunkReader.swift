// Feeds chunks to a call stack.
import CTraceLayout
import TraceFormat

/// Buffers of one reader. Not for use by two threads at once.
struct ChunkReader: ~Copyable {
    private var source: Source
    private let chunksEnd: UInt64
    private let mayChange: Bool
    private let isRing: Bool
    private let scale: TimeScale
    private let version: UInt32
    private var frames = ByteBuffer(capacity: 4096)
    private var words = ByteBuffer(capacity: Self.pieceBytes)

    /// Fits a second-level cache beside the sums.
    static var pieceBytes: Int { 256 << 10 }

    /// The largest chunk that is held in memory. The agent's are smaller by far; a damaged header may say anything.
    static var mostHeldBytes: UInt64 { 16 << 20 }

    init(_ trace: TraceFile) {
        source = Source(trace.file)
        chunksEnd = trace.chunksEnd
        mayChange = trace.mayChange
        isRing = trace.isRing
        scale = trace.timeScale
        version = trace.header.version
    }

    /// The chunk to read instead of `chunk`: itself, or where its thread has copied it to since the file was walked.
    /// nil when it is gone. Asked for anew before each reading.
    mutating func settled(_ chunk: Chunk) -> Chunk? {
        source.heldOffset = nil
        // A closed chunk stays what it is, unless a ring has come round.
        guard mayChange, isRing || !chunk.isClosed, UInt64(chunk.endOffset) <= Self.mostHeldBytes else { return chunk }
        source.file.read(chunk.endOffset, at: chunk.offset, into: &source.held)
        if isStill(chunk) {
            source.heldOffset = chunk.offset
            return chunk
        }
        return ChunkWalk(source.file, from: chunksEnd).chunks.first {
            !$0.isMetadata && $0.thread == chunk.thread && $0.sequence == chunk.sequence && $0.isClosed
        }.map { $0.even(scale) }
    }

    /// Returns true if neither its thread nor a ring has begun another chunk in its place.
    private mutating func isStill(_ chunk: Chunk) -> Bool {
        source.file.read(ChunkWalk.headerBytes, at: chunk.offset, into: &frames)
        guard let header = frames.load(trace_chunk_header.self, at: 0) else { return false }
        return header.magic == UInt32(TRACE_CHUNK_MAGIC) && header.sequence == chunk.sequence
            && header.thread == chunk.thread
    }

    /// The frames that were open when the chunk began; fewer than announced when the file ends before.
    mutating func storedFrames(_ chunk: Chunk) -> [trace_open_frame] {
        guard chunk.storedFrames > 0 else { return [] }
        let stride = MemoryLayout<trace_open_frame>.stride
        let begin = chunk.offset + UInt64(ChunkWalk.headerBytes)
        let present = source.file.byteCount > begin ? Int(clamping: source.file.byteCount - begin) : 0 // no buffer beyond the file
        source.read(min(chunk.storedFrames * stride, present), of: chunk, at: ChunkWalk.headerBytes, into: &frames)
        var result: [trace_open_frame] = []
        for index in 0..<frames.count / stride {
            guard var frame = frames.load(trace_open_frame.self, at: index * stride) else { break }
            // An impossible id keeps its position in the stack, and sizes no table.
            if frame.function >= Event.functionReach { frame.function = 0 }
            frame.enter_ticks = scale.even(frame.enter_ticks)
            result.append(frame)
        }
        return result
    }

    /// Returns the call sites of these frames; empty if the chunk does not have them.
    mutating func storedSites(_ chunk: Chunk) -> [UInt64] {
        guard chunk.hasSites, chunk.storedFrames > 0 else { return [] }
        let at = ChunkWalk.headerBytes + chunk.storedFrames * MemoryLayout<trace_open_frame>.stride
        guard at + chunk.storedFrames * 8 <= chunk.bodyOffset, chunk.offset + UInt64(chunk.bodyOffset) <= source.file.byteCount else {
            return []
        }
        source.read(chunk.storedFrames * 8, of: chunk, at: at, into: &frames)
        return (0..<frames.count / 8).map { frames.load(UInt64.self, at: $0 * 8)! }
    }

    /// Decodes all events of `chunk` into `sink`. Returns the time of the latest, or when the chunk was opened; of a thread's first chunk,
    /// whose first event may have read its clock before, 0 when there are none.
    @inline(__always)
    mutating func read<Sink: EventSink & ~Copyable>(_ chunk: Chunk, into sink: inout Sink) -> UInt64 {
        var decoder = EventDecoder(opened: chunk.base, after: chunk.sequence == 0 ? 0 : chunk.opened.ticks, scale.correction)
        var position = chunk.bodyOffset
        while position < chunk.endOffset {
            let offset = chunk.offset + UInt64(position)
            source.read(min(Self.pieceBytes, chunk.endOffset - position), of: chunk, at: position, into: &words)
            let read = words.count & ~7
            if read == 0 { break } // the file has become shorter
            // A loop for each layout, in which all shifts are constants.
            words.withWords {
                if version == 1 {
                    decoder.decode($0, of: FirstEventLayout.self, at: offset, into: &sink)
                } else {
                    decoder.decode($0, of: CurrentEventLayout.self, at: offset, into: &sink)
                }
            }
            position += read
        }
        return decoder.latest
    }

    /// Reads a thread's chunks, in its order, up to a moment at which the calls that are still running end.
    @inline(__always)
    mutating func read<Sink: CallSink & ~Copyable>(
        _ chunks: [Chunk], until end: UInt64, into stack: inout CallStack<Sink>, progress: ReadingProgress? = nil
    ) {
        var latest: UInt64 = 0, previous: Chunk?
        for listed in chunks where listed.opened.ticks <= end {
            progress?.advance()
            guard let chunk = settled(listed) else { continue }
            stack.begin(chunk, storedFrames(chunk), after: previous, latest: latest, areCalls: true)
            previous = chunk
            latest = max(latest, read(chunk, into: &stack))
        }
        stack.closeAll(at: end, .open)
    }

    /// The file, but for a chunk that may change: that is held as it was at one moment.
    private struct Source: ~Copyable {
        let file: InputFile
        var held = ByteBuffer(capacity: 16)
        var heldOffset: UInt64?

        init(_ file: InputFile) { self.file = file }

        func read(_ byteCount: Int, of chunk: Chunk, at position: Int, into buffer: inout ByteBuffer) {
            if heldOffset == chunk.offset {
                buffer.copy(byteCount, at: position, of: held)
            } else {
                file.read(byteCount, at: chunk.offset + UInt64(position), into: &buffer)
            }
        }
    }
}
