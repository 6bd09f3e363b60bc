// A trace of its own, with what a trace file that is being written has at this moment. The process and its recorder go on meanwhile; where they
// write over something that was to be copied, the copy says from when on nothing is missing.
//
// The order makes it one moment: first the chunks that threads write to, which takes a few microseconds each; then the closed ones before
// them; then the records, since whatever an event speaks of was recorded before it.
import CTraceLayout
import Glibc

package struct Snapshot {
    package enum Failure: Error {
        /// Somebody has cut or removed the trace.
        case unreadable
        /// An errno.
        case cannotWrite(Int32)

        package var text: String {
            switch self {
            case .unreadable: "the trace cannot be read"
            case .cannotWrite(let number): String(cString: strerror(number))
            }
        }
    }

    /// CLOCK_MONOTONIC: the last calls in it are of then.
    package private(set) var taken: UInt64 = 0
    /// Ticks of the trace from which on nothing is missing; 0: nothing at all, of what was asked for.
    package private(set) var completeTicks: UInt64 = 0
    package private(set) var bytes = UInt64(TRACE_HEADER_BYTES)

    private let source: LiveTrace
    private let output: Int32
    /// Chunks that end before are left out; 0: none.
    private let from: UInt64
    /// Opening times of the chunks that are there, of each thread by number.
    private var kept: [UInt32: [UInt64: UInt64]] = [:]
    /// Number of the chunk that each thread wrote to.
    private var last: [UInt32: UInt64] = [:]

    /// As often is looked for chunks that were moved meanwhile.
    private static let mostWalks = 4

    /// Copies what the file has of the time since `from` (ticks; 0: all of it) to a new file of that path, which is complete when it has its name.
    /// - Parameter request: what it is made for; nil: somebody asked for it from outside
    package static func take(
        of file: Int32, since from: UInt64, request: trace_request? = nil, to path: String
    ) throws(Failure) -> Snapshot {
        let part = path + ".part"
        unlink(part)
        let output = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw .cannotWrite(errno) }
        defer { close(output) }
        do throws(Failure) {
            var snapshot = Snapshot(LiveTrace(file: file), output, from)
            try snapshot.copy(request)
            guard rename(part, path) == 0 else { throw .cannotWrite(errno) }
            return snapshot
        } catch {
            unlink(part)
            throw error
        }
    }

    private init(_ source: LiveTrace, _ output: Int32, _ from: UInt64) {
        self.source = source
        self.output = output
        self.from = from
    }

    private mutating func copy(_ request: trace_request?) throws(Failure) {
        guard source.header != nil else { throw .unreadable }
        var places = source.chunks()
        try copyOpen(places)
        taken = clockTime()
        for walk in 0..<Self.mostWalks {
            let isWhole = try copyClosed(places)
            places = source.chunks()
            if isWhole, walk > 0 || areContiguous { break }
        }
        for place in places where place.isMetadata {
            if let records = source.records(at: place.offset) { try put(records, isClosed: false) }
        }
        findCompleteTicks()
        try writeHeader(request)
    }

    /// Chunks that threads write to, and closed ones that wait where threads fill theirs.
    private mutating func copyOpen(_ places: [LiveTrace.Place]) throws(Failure) {
        let open = places.filter { !$0.isMetadata && $0.header.flags & UInt16(TRACE_CHUNK_CLOSED) == 0 }.map(\.offset)
        // Meanwhile a thread may go on from one to another of the spare ones: of each thread the last that is found counts.
        let offsets = open + Set(source.spareOffsets()).subtracting(open).sorted()
        let chunks = offsets.compactMap { source.events(at: $0) }
        for chunk in chunks { last[chunk.header.thread] = max(last[chunk.header.thread] ?? 0, chunk.header.sequence) }
        for chunk in chunks {
            let thread = chunk.header.thread, number = chunk.header.sequence,
                isClosed = chunk.header.flags & UInt16(TRACE_CHUNK_CLOSED) != 0
            // One that its thread has left since is not whole: it is closed now.
            if kept[thread]?[number] != nil || !isClosed && number != last[thread] { continue }
            try put(chunk, isClosed: isClosed)
            kept[thread, default: [:]][number] = chunk.header.opened.ticks
        }
    }

    /// False: one that was there is not any more.
    private mutating func copyClosed(_ places: [LiveTrace.Place]) throws(Failure) -> Bool {
        var next: [UInt32: [(number: UInt64, opened: UInt64)]] = [:], isWhole = true
        for place in places where !place.isMetadata {
            next[place.header.thread, default: []].append((place.header.sequence, place.header.opened.ticks))
        }
        for (thread, numbers) in kept { next[thread, default: []] += numbers.map { ($0.key, $0.value) } }
        for thread in next.keys { next[thread]!.sort { $0.number < $1.number } }
        for place in places where !place.isMetadata && place.header.flags & UInt16(TRACE_CHUNK_CLOSED) != 0 {
            let thread = place.header.thread, number = place.header.sequence
            guard kept[thread]?[number] == nil, number < last[thread] ?? .max else { continue }
            // It lasts until the thread's next one begins.
            let end = next[thread]!.first { $0.number > number }?.opened
            if let end, end < from { continue }
            guard let chunk = source.events(at: place.offset), chunk.header.thread == thread, chunk.header.sequence == number else {
                isWhole = false
                continue
            }
            try put(chunk, isClosed: true)
            kept[thread, default: [:]][number] = chunk.header.opened.ticks
        }
        return isWhole
    }

    private var areContiguous: Bool {
        kept.values.allSatisfy { numbers in
            guard let first = numbers.keys.min(), let last = numbers.keys.max() else { return true }
            return last - first + 1 == numbers.count
        }
    }
    private mutating func findCompleteTicks() {
        for numbers in kept.values {
            guard var number = numbers.keys.max() else { continue }
            while number > 0, numbers[number - 1] != nil { number -= 1 }
            if number > 0, let opened = numbers[number], opened > from { completeTicks = max(completeTicks, opened) }
        }
    }

    // MARK: - Output

    private mutating func put(_ chunk: LiveTrace.Contents, isClosed: Bool) throws(Failure) {
        var header = chunk.header, bytes = chunk.bytes
        let alignment = Int(TRACE_CHUNK_ALIGNMENT), used = bytes.count
        bytes += [UInt8](repeating: 0, count: (alignment - used % alignment) % alignment)
        header.byte_count = UInt32(bytes.count)
        header.used_bytes = isClosed ? UInt64(used) : 0
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: header, as: trace_chunk_header.self) }
        try write(bytes, at: self.bytes)
        self.bytes += UInt64(bytes.count)
    }

    private mutating func writeHeader(_ request: trace_request?) throws(Failure) {
        guard var header = source.header else { throw .unreadable }
        header.flags |= UInt32(TRACE_FLAG_SNAPSHOT)
        header.state = header.state == UInt32(TRACE_STOPPED) ? header.state : UInt32(TRACE_FINISHED)
        header.next_offset = bytes
        header.extended_offset = bytes
        header.prepared_offset = 0
        header.collected = 0
        header.exit_status = 0
        header.ended_ns = taken
        header.requests = 0
        header.request = request ?? trace_request()
        header.complete_ticks = completeTicks
        var page = [UInt8](repeating: 0, count: Int(TRACE_HEADER_BYTES))
        page.withUnsafeMutableBytes { $0.storeBytes(of: header, as: trace_file_header.self) }
        try write(page, at: 0)
    }

    private func write(_ bytes: [UInt8], at offset: UInt64) throws(Failure) {
        let error = writeWhole(bytes, to: output, at: off_t(offset))
        guard error == 0 else { throw .cannotWrite(error) }
    }
}
