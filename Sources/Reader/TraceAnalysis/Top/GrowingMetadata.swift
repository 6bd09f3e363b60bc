// The records of a trace that is being written: read once each, as they come, but for the few that change in place.
import CTraceLayout
import Symbols
import TraceFormat

struct GrowingMetadata: RecordReader {
    private(set) var metadata: Metadata
    var damagedRecords = 0

    private struct Piece {
        var chunk: Chunk
        /// Offset in the chunk of the next record; nil: no more are read.
        var next: Int?
    }
    /// Metadata chunks, by their offsets.
    private var pieces: [UInt64: Piece] = [:]

    /// A FUNCTIONS record: an offset for each of these functions, which stays 0 until the function is called.
    private struct Batch {
        var first: UInt32
        var count: UInt32
        var module: UInt32
        /// Place of the offsets in the file.
        var place: UInt64
    }
    private var batches: [Batch] = []
    private var namedFunctions: [UInt32: Function] = [:]

    /// A PASSED record: the counters of one thread.
    private struct Counters {
        var thread: UInt32
        var count: Int
        var place: UInt64
    }
    private var counters: [UInt64: Counters] = [:]

    /// Offset in the file of the buffer that is being read.
    private var bufferPlace: UInt64 = 0

    init(machine: UInt32) { metadata = Metadata(machine: machine) }

    /// Takes note of a metadata chunk, as its header is now.
    mutating func follow(_ chunk: Chunk) {
        // A ring begins some of them anew.
        if let known = pieces[chunk.offset], known.chunk.opened.ticks == chunk.opened.ticks { return }
        pieces[chunk.offset] = Piece(chunk: chunk, next: chunk.bodyOffset)
    }

    /// Reads the records that have come. A record's type is written last, so a record is there as a whole or not at all.
    mutating func read(_ file: InputFile) {
        let growing = pieces.values.filter { $0.next != nil }.sorted {
            ($0.chunk.opened.ticks, $0.chunk.offset) < ($1.chunk.opened.ticks, $1.chunk.offset)
        }
        var buffer = ByteBuffer(capacity: 4096)
        for piece in growing {
            guard let next = piece.next, next + 8 <= piece.chunk.endOffset else { continue }
            bufferPlace = piece.chunk.offset + UInt64(next)
            file.read(8, at: bufferPlace, into: &buffer)
            guard let record = buffer.load(trace_record.self, at: 0), record.type != 0 else { continue }
            file.read(min(piece.chunk.endOffset - next, Self.largestPiece), at: bufferPlace, into: &buffer)
            let end = readRecords(buffer).map { next + $0 }
            pieces[piece.chunk.offset]?.next = end
        }
    }
    private static let largestPiece = 64 << 20

    mutating func read(_ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord) {
        switch Int(record.type) {
        case TRACE_RECORD_FUNCTIONS:
            let size = MemoryLayout<trace_functions_record>.size
            let fixed = try body(trace_functions_record.self, buffer, offset, byteCount)
            guard fixed.first > 0, fixed.first < Event.functionReach, fixed.count <= Event.functionReach - fixed.first,
                Int(fixed.count) <= (byteCount - size) / 4
            else { throw DamagedRecord() }
            batches.append(
                Batch(first: fixed.first, count: fixed.count, module: fixed.module, place: bufferPlace + UInt64(offset + size)))
        case TRACE_RECORD_PASSED:
            let size = MemoryLayout<trace_passed_record>.size
            let fixed = try body(trace_passed_record.self, buffer, offset, byteCount)
            guard Int(fixed.count) <= (byteCount - size) / 8 else { throw DamagedRecord() }
            let place = bufferPlace + UInt64(offset + size)
            counters[place] = Counters(thread: fixed.thread, count: Int(fixed.count), place: place)
        default: try metadata.read(record, buffer, offset, byteCount)
        }
    }

    /// Returns what is known of a function by now.
    mutating func function(_ id: UInt32, _ file: InputFile) -> Function? {
        if let known = metadata.functions[id] ?? namedFunctions[id] { return known }
        guard let batch = batches.last(where: { $0.first <= id && id - $0.first < $0.count }), let module = metadata.modules[batch.module]
        else { return nil }
        var buffer = ByteBuffer(capacity: 16)
        file.read(4, at: batch.place + UInt64(id - batch.first) * 4, into: &buffer)
        guard let offset = buffer.load(UInt32.self, at: 0), offset != 0 else { return nil }
        let address = module.addresses.lowerBound &+ UInt64(offset), linked = address &- module.loadBias
        let name = RecordedNames.shared.names(of: [linked], in: module.identity)?[0]
        let function = Function(
            id: id, module: batch.module, address: address, isEntryOnly: false, isSpan: false, isMark: false,
            rawName: name ?? "0x" + String(linked, radix: 16), isThereByCall: true)
        namedFunctions[id] = function
        return function
    }

    /// Calls that each thread has counted and not recorded until now, by function id.
    func passedCalls(_ file: InputFile) -> [UInt32: [UInt32: UInt64]] {
        guard let most = metadata.counters.keys.max() else { return [:] }
        var all: [UInt32: [UInt32: UInt64]] = [:], buffer = ByteBuffer(capacity: 8192)
        for counters in counters.values {
            file.read(min(counters.count, Int(most)) * 8, at: counters.place, into: &buffer)
            for (number, function) in metadata.counters {
                guard number > 0, let calls = buffer.load(UInt64.self, at: (Int(number) - 1) * 8), calls != 0 else { continue }
                all[counters.thread, default: [:]][function, default: 0] &+= calls
            }
        }
        return all
    }
}
