// A trace as it lies on disk: the header, where the chunks are, and what the metadata says. Events are not read here.
import CTraceLayout
import Presentation
import TraceFormat

package struct TraceFile: Sendable {
    package let path: String
    package let header: trace_file_header
    package let metadata: Metadata
    package let timeScale: TimeScale
    /// One line each: what is missing or damaged. The rest was read.
    package let warnings: [String]

    let file: InputFile
    /// Event chunks of each thread that is shown, in the thread's own order.
    package internal(set) var chunksOfThread: [[Chunk]]
    /// The same of the other threads, set by `only(_:)`.
    var otherChunks: [[Chunk]] = []
    /// Offset of the chunks' end when the file was walked; it may have grown since.
    let chunksEnd: UInt64
    let threadNames: [UInt32: String]
    /// When the calls end that threads leave open.
    package internal(set) var ends: ThreadEnds
    /// nil: the trace does not say, and the process is not alive.
    package let processEnd: ProcessEnd?
    /// The command line as ps(1) shows it now; nil: the process is not alive.
    let livingTitle: String?
    package let chunkCount: Int
    /// In the order in which they were written.
    let metadataChunks: [Chunk]
    package let byteCount: UInt64
    /// The part of the trace that readers report, set by `narrowed(to:)`.
    package internal(set) var window = TimeWindow.whole
    /// The threads that readers report, set by `only(_:)`; nil: all.
    package internal(set) var chosen: ThreadPattern?
    /// The window for adding up calls. A forked process has frames from its parent; their time before its birth is not its own.
    var lifetime: TimeWindow {
        // In a ring the first remaining chunk may be any of the thread's.
        let mayBeForked = chunksOfThread.contains { $0.first.map { $0.storedFrames > 0 } ?? false }
        return mayBeForked ? window.intersection(firstTicks.raw..<UInt64.max) : window
    }

    /// Reads everything but the events. Throws `TraceError` when nothing at all can be read.
    /// - Parameter rates: those of the run that it belongs to
    package init(path: String, rates: ClockRates = ClockRates()) throws { try self.init(InputFile(path: path), rates: rates) }

    /// The same of a file that is open: it may have another name by now.
    init(_ file: InputFile, rates: ClockRates = ClockRates()) throws {
        let header = try Self.readHeader(file)
        let walk = ChunkWalk(file, isGrowing: header.state == UInt32(TRACE_RECORDING))
        chunksEnd = walk.end
        path = file.path
        self.file = file
        self.header = header
        byteCount = file.byteCount
        // A ring writes some of them anew, so a younger one may lie before an older one.
        metadataChunks = walk.chunks.filter { $0.isMetadata }.sorted { ($0.opened.ticks, $0.offset) < ($1.opened.ticks, $1.offset) }
        var metadata = Metadata(file, metadataChunks, machine: header.elf_machine)
        let own = TimeScale(
            clock: header.clock, ticksPerSecond: header.ticks_per_second,
            samples: Self.samples(header, walk.chunks), certain: metadata.clockSamples.filter { $0.ticks > header.first.ticks })
        let scale = rates.scale(own, header)
        if let correction = scale.correction { metadata.stretch(correction) }
        self.metadata = metadata
        timeScale = scale
        threadNames = walk.threadNames.mapValues { $0.name }
        chunksOfThread = Dictionary(grouping: walk.chunks.lazy.filter { !$0.isMetadata }, by: { $0.thread })
            .sorted { $0.key < $1.key }.map { Self.inOrder($0.value).map { $0.even(scale) } }
        chunkCount = chunksOfThread.reduce(metadataChunks.count) { $0 + $1.count }
        let mayRun = header.state == UInt32(TRACE_RECORDING) && header.ended_ns == 0 && header.exit_status == 0
        let now = mayRun ? LivingProcess.now(header, file) : nil
        livingTitle = now == nil ? nil : LivingProcess.commandLine(header)
        ends = ThreadEnds(header, metadata, chunksOfThread, scale, now: now)
        processEnd = ProcessEnd(header, metadata, isRunning: now != nil)
        warnings = Self.warnings(header, walk, metadata, timeScale, byteCount: byteCount)
    }

    /// Keeps what is known of the process, without what memory grows with.
    mutating func forgetChunks() { chunksOfThread = [] }

    static func readHeader(_ file: InputFile) throws -> trace_file_header {
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

    /// Returns the clock samples from which the length of a tick is measured. If the agent looks for changes of it itself (then it also
    /// records the boot id), these are the two farthest apart: in between, a thread that was switched out or single-stepped read its two
    /// clocks at two moments.
    private static func samples(_ header: trace_file_header, _ chunks: [Chunk]) -> [trace_clock_sample] {
        let all = [header.last] + chunks.map { $0.opened }
        let isWatched = header.boot != 0 || header.pid_namespace != 0
        return [header.first] + (isWatched ? all.max { $0.ticks < $1.ticks }.map { [$0] } ?? [] : all)
    }

    /// Returns the chunks of one thread in its order, whatever their order in the file. A thread writes at one offset and copies each full
    /// chunk to the end of the file. A kill between copying and reuse leaves two with one number: the closed one is the copy.
    private static func inOrder(_ chunks: [Chunk]) -> [Chunk] {
        var result: [Chunk] = []
        for chunk in chunks.sorted(by: { ($0.sequence, $0.isClosed ? 0 : 1, $0.offset) < ($1.sequence, $1.isClosed ? 0 : 1, $1.offset) })
        where result.last?.sequence != chunk.sequence {
            result.append(chunk)
        }
        return result
    }

    private static func warnings(
        _ header: trace_file_header, _ walk: ChunkWalk, _ metadata: Metadata,
        _ scale: TimeScale, byteCount: UInt64
    ) -> [String] {
        var warnings: [String] = []
        if byteCount < UInt64(TRACE_HEADER_BYTES) {
            warnings.append("the file is truncated after \(byteCount) bytes: it has no events")
        } else if walk.missingBytes > 0 {
            warnings.append("the file is truncated: at least \(walk.missingBytes) bytes are missing at its end")
        } else if byteCount < header.extended_offset {
            warnings.append("the file is truncated: it has \(byteCount) of \(header.extended_offset) bytes")
        }
        if walk.damagedBytes > 0 {
            warnings.append("\(walk.damagedBytes) damaged bytes were skipped")
        }
        if metadata.damagedRecords > 0 {
            warnings.append("\(metadata.damagedRecords) damaged metadata records were skipped")
        }
        if !scale.isKnown, !walk.chunks.isEmpty {
            warnings.append("the length of a tick is not in the file: times are shown as if it were a nanosecond")
        }
        if scale.rates.count > 1 {
            warnings.append(
                "the rate of the cycle counter changed \(counted(UInt64(scale.rates.count - 1), "time")): times are fitted piece by "
                    + "piece, and inexact around each change (did the machine sleep or migrate? \(Variables.clock.name)=monotonic records without that counter)"
            )
        }
        return warnings
    }

    /// Calls that were made while nothing could be written.
    package var lostCalls: UInt64 {
        chunksOfThread.reduce(header.dropped) { $0 &+ $1.reduce(0) { $0 &+ $1.dropped } }
    }

    /// The thread's name as it was last seen, "" when none was recorded.
    package func threadName(_ thread: UInt32) -> String { threadNames[thread] ?? "" }

    package var program: String { metadata.texts[TRACE_TEXT_PROGRAM]?.first ?? "?" }
    package var firstTicks: Ticks { Ticks(header.first.ticks) }
    /// Ticks in which the agent started, before the program went on; nil where it has not noted them.
    package var agentStart: Range<UInt64>? {
        let from = timeScale.even(header.start_ticks), to = timeScale.even(header.started_ticks)
        return header.start_ticks > 0 && from < to ? from..<to : nil
    }
    /// True if it says how its program started: not that of a forked process, nor one that began when the program already ran.
    package var hasStart: Bool { metadata.start.phase(.agent) != nil }
    /// Recording began when the program already ran.
    package var isOfRunning: Bool { header.flags & UInt32(TRACE_FLAG_NO_START) != 0 }
    package var metadataChunkCount: Int { metadataChunks.count }
    /// A moment of CLOCK_MONOTONIC on the recording clock.
    package func ticks(monotonic: UInt64) -> Ticks { Ticks(timeScale.ticks(monotonic: monotonic, since: header.first)) }
    package var isRing: Bool { header.mode == UInt32(TRACE_MODE_RING) }
    /// It says which functions were called, and has no calls.
    package var hasCountsAlone: Bool { header.mode == UInt32(TRACE_MODE_COUNTS) }
    /// True if threads may be writing to it, or were when they were killed.
    var mayChange: Bool { header.state == UInt32(TRACE_RECORDING) }
}

let TRACE_HEADER_BYTES_INT = Int(TRACE_HEADER_BYTES)

/// Last component of a path; the path itself when there is none.
package func basename(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    return name.isEmpty ? path : name
}
