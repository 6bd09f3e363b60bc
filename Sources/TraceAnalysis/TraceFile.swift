// A trace as it lies on disk: the header, where the chunks are, and what the metadata says. Events are not read here.
import CTraceLayout
import TraceFormat

public struct TraceFile: Sendable {
    public let path: String
    public let header: trace_file_header
    public let metadata: Metadata
    public let timeScale: TimeScale
    /// One line each: what is missing or damaged. The rest was read.
    public let warnings: [String]

    let file: InputFile
    /// Event chunks of each thread, in the thread's own order.
    let chunksOfThread: [[Chunk]]
    /// Where the chunks ended when they were looked for; the file may have grown since.
    let chunksEnd: UInt64
    let threadNames: [UInt32: String]
    /// Clock at the opening of the latest chunk or at the file's last sample, whichever is later.
    let lastSample: Ticks
    public let chunkCount: Int
    public let metadataChunkCount: Int
    public let byteCount: UInt64

    /// Reads everything but the events. Throws `TraceError` when nothing at all can be read.
    public init(path: String) throws {
        let file = try InputFile(path: path)
        let header = try Self.readHeader(file)
        let walk = ChunkWalk(file, isGrowing: header.state == UInt32(TRACE_RECORDING))
        chunksEnd = walk.end
        self.path = path
        self.file = file
        self.header = header
        byteCount = file.byteCount
        metadataChunkCount = walk.chunks.count { $0.isMetadata }
        // A ring writes some of them anew, so a younger one may lie before an older one.
        metadata = Metadata(file, walk.chunks.filter { $0.isMetadata }
            .sorted { ($0.opened.ticks, $0.offset) < ($1.opened.ticks, $1.offset) })
        timeScale = TimeScale(clock: header.clock, ticksPerSecond: header.ticks_per_second,
                              samples: [header.first, header.last] + walk.chunks.map { $0.opened })
        lastSample = Ticks(max(header.last.ticks, header.first.ticks))
        threadNames = walk.threadNames.mapValues { $0.name }
        chunksOfThread = Dictionary(grouping: walk.chunks.lazy.filter { !$0.isMetadata }, by: { $0.thread })
            .sorted { $0.key < $1.key }.map { Self.inOrder($0.value) }
        chunkCount = chunksOfThread.reduce(metadataChunkCount) { $0 + $1.count }
        warnings = Self.warnings(header, walk, metadata, timeScale, byteCount: byteCount)
    }

    private static func readHeader(_ file: InputFile) throws -> trace_file_header {
        var buffer = ByteBuffer(capacity: TRACE_HEADER_BYTES_INT)
        file.read(TRACE_HEADER_BYTES_INT, at: 0, into: &buffer)
        guard buffer.count > 0 else { throw TraceError.empty(file.path) }
        let magic = Array("TRACER\u{1a}\n".utf8)
        if buffer.count >= 8, buffer.isZero(at: 0, byteCount: buffer.count) { throw TraceError.empty(file.path) }
        guard buffer.bytes(at: 0, byteCount: magic.count).elementsEqual(magic.prefix(buffer.count)) else {
            throw TraceError.notATrace(file.path)
        }
        guard let version = buffer.load(UInt32.self, at: 8) else {
            throw TraceError.cutInHeader(file.path, byteCount: UInt64(buffer.count))
        }
        let known = UInt32(TRACE_VERSION)
        if version != known, version.byteSwapped <= 0xffff, version > 0xffff { throw TraceError.otherByteOrder(file.path) }
        guard version != 0 else { throw TraceError.notATrace(file.path) }
        guard version <= known else { throw TraceError.newerVersion(file.path, found: version, known: known) }
        guard let header = buffer.load(trace_file_header.self, at: 0) else {
            throw TraceError.cutInHeader(file.path, byteCount: UInt64(buffer.count))
        }
        return header
    }

    /// Chunks of one thread in its order, whichever way they lie. A thread writes in one place; what is full is copied
    /// to the end of the file. Of two with one number, which a kill between the two steps leaves, the copy is the one
    /// that is closed.
    private static func inOrder(_ chunks: [Chunk]) -> [Chunk] {
        var result: [Chunk] = []
        for chunk in chunks.sorted(by: { ($0.sequence, $0.isClosed ? 0 : 1, $0.offset) < ($1.sequence, $1.isClosed ? 0 : 1, $1.offset) })
        where result.last?.sequence != chunk.sequence {
            result.append(chunk)
        }
        return result
    }

    private static func warnings(_ header: trace_file_header, _ walk: ChunkWalk, _ metadata: Metadata,
                                 _ scale: TimeScale, byteCount: UInt64) -> [String] {
        var warnings: [String] = []
        if byteCount < UInt64(TRACE_HEADER_BYTES) {
            warnings.append("the file is cut after \(byteCount) bytes: it holds no events")
        } else if walk.missingBytes > 0 {
            warnings.append("the file is cut: at least \(walk.missingBytes) bytes are missing at its end")
        } else if byteCount < header.extended_offset {
            warnings.append("the file is cut: it has \(byteCount) of \(header.extended_offset) bytes")
        }
        if walk.damagedBytes > 0 {
            warnings.append("\(walk.damagedBytes) bytes are damaged and were passed over")
        }
        if metadata.damagedRecords > 0 {
            warnings.append("\(metadata.damagedRecords) metadata records are damaged and were passed over")
        }
        if !scale.isKnown, !walk.chunks.isEmpty {
            warnings.append("the file does not tell the length of a tick: times are shown as if it were a nanosecond")
        }
        return warnings
    }

    /// The thread's name as it was last seen, "" when none was recorded.
    public func threadName(_ thread: UInt32) -> String { threadNames[thread] ?? "" }

    public var program: String { metadata.texts[TRACE_TEXT_PROGRAM]?.first ?? "?" }
    public var firstTicks: Ticks { Ticks(header.first.ticks) }
    public var isRing: Bool { header.mode == UInt32(TRACE_MODE_RING) }
    /// Whether threads may be writing to it; or were, when they were killed.
    var mayChange: Bool { header.state == UInt32(TRACE_RECORDING) }
}

let TRACE_HEADER_BYTES_INT = Int(TRACE_HEADER_BYTES)

/// Last component of a path; the path itself when there is none.
public func basename(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    return name.isEmpty ? path : name
}
