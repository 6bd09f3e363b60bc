// Feeds chunks to a call stack.
import CTraceLayout
import TraceFormat

/// Buffers of one reader. Not for use by two threads at once.
struct ChunkReader: ~Copyable {
    private let file: InputFile
    private var frames = ByteBuffer(capacity: 4096)
    private var words = ByteBuffer(capacity: Self.pieceBytes)

    /// Fits a second-level cache beside the sums.
    static var pieceBytes: Int { 256 << 10 }

    init(_ file: InputFile) { self.file = file }

    /// Whether a ring that is being written has not given the chunk to somebody else since the file was walked.
    mutating func isStill(_ chunk: Chunk) -> Bool {
        file.read(ChunkWalk.headerBytes, at: chunk.offset, into: &frames)
        guard let header = frames.load(trace_chunk_header.self, at: 0) else { return false }
        return header.magic == UInt32(TRACE_CHUNK_MAGIC) && header.sequence == chunk.sequence
            && header.thread == chunk.thread
    }

    /// The frames that were open when the chunk began; fewer than announced when the file ends before.
    mutating func storedFrames(_ chunk: Chunk) -> [trace_open_frame] {
        guard chunk.storedFrames > 0 else { return [] }
        let stride = MemoryLayout<trace_open_frame>.stride
        let begin = chunk.offset + UInt64(ChunkWalk.headerBytes)
        let present = file.byteCount > begin ? Int(clamping: file.byteCount - begin) : 0 // no buffer beyond the file
        file.read(min(chunk.storedFrames * stride, present), at: begin, into: &frames)
        var result: [trace_open_frame] = []
        for index in 0 ..< frames.count / stride {
            guard var frame = frames.load(trace_open_frame.self, at: index * stride) else { break }
            // An impossible id keeps its place in the stack, and sizes no table.
            if frame.function >= 1 << UInt32(EVENT_FUNCTION_BITS) { frame.function = 0 }
            result.append(frame)
        }
        return result
    }

    /// Decodes all events of `chunk` into `sink`. Returns the time of the latest, 0 when there are none.
    @inline(__always)
    mutating func read<Sink: EventSink & ~Copyable>(_ chunk: Chunk, into sink: inout Sink) -> UInt64 {
        var decoder = EventDecoder(opened: chunk.opened.ticks)
        var position = chunk.bodyOffset
        while position < chunk.endOffset {
            let offset = chunk.offset + UInt64(position)
            file.read(min(Self.pieceBytes, chunk.endOffset - position), at: offset, into: &words)
            let read = words.count & ~7
            if read == 0 { break } // the file has become shorter
            words.withWords { decoder.decode($0, at: offset, into: &sink) }
            position += read
        }
        return decoder.latest
    }
}
