// What `tracer record` does with full chunks, of a process that these tests stand for.
import CTraceLayout
import Glibc
import Testing

import Recorder

@Suite struct CollectorTests {
    let scratch = Scratch()
    static let chunkBytes = 65536, used = 40000
    static let offset: UInt64 = 4096, destination: UInt64 = 4096 + 65536

    /// A trace with one chunk, closed and full of 7, that is to be taken over. `given`: the states of spares before it, whose chunks are elsewhere.
    func trace(
        after given: [Int] = [],
        mode: Int = TRACE_MODE_FULL, state: Int = TRACE_SPARE_FULL, limit: UInt64 = 1 << 30, next: UInt64? = nil,
        change: (inout trace_spare, inout trace_chunk_header) -> Void = { _, _ in }
    ) throws -> TraceHeader {
        var chunk = trace_chunk_header()
        chunk.magic = UInt32(TRACE_CHUNK_MAGIC)
        chunk.kind = UInt16(TRACE_CHUNK_EVENTS)
        chunk.flags = UInt16(TRACE_CHUNK_CLOSED)
        chunk.byte_count = UInt32(Self.chunkBytes)
        chunk.body_offset = 128
        chunk.used_bytes = UInt64(Self.used)
        var spare = trace_spare()
        spare.offset = Self.offset
        spare.destination = Self.destination
        spare.byte_count = UInt32(Self.chunkBytes)
        change(&spare, &chunk)
        var bytes = emptyTrace {
            $0.mode = UInt32(mode)
            $0.page_bytes = 4096
            $0.size_limit = limit
            $0.next_offset = next ?? Self.destination + UInt64(Self.chunkBytes)
        }
        spare.state = UInt32(state)
        let spares = given.map { trace_spare(offset: 0, destination: 0, state: UInt32($0), byte_count: spare.byte_count) } + [spare]
        spares.withUnsafeBytes { bytes.replaceSubrange(Int(TRACE_SPARES_OFFSET)..<Int(TRACE_SPARES_OFFSET) + $0.count, with: $0) }
        let body = [UInt8](repeating: 7, count: Self.used - 128)
        bytes += withUnsafeBytes(of: chunk) { Array($0) } + body + [UInt8](repeating: 0, count: Self.chunkBytes - Self.used)
        return try #require(TraceHeader(path: scratch.write("t", bytes)))
    }

    func chunk(_ header: TraceHeader, at offset: UInt64) -> trace_chunk_header {
        var chunk = trace_chunk_header()
        pread(header.file, &chunk, MemoryLayout<trace_chunk_header>.size, off_t(offset))
        return chunk
    }
    func bytes(_ header: TraceHeader, _ range: Range<UInt64>) -> [UInt8] {
        var bytes = [UInt8](repeating: 1, count: range.count)
        return pread(header.file, &bytes, bytes.count, off_t(range.lowerBound)) == bytes.count ? bytes : []
    }

    @Test func aFullChunkIsCopiedClearedAndFree() throws {
        let header = try trace()
        var collector = ChunkCollector(header)
        #expect(collector.look() == PreparationPlan.busyNanoseconds)
        let copy = chunk(header, at: Self.destination)
        #expect(copy.magic == UInt32(TRACE_CHUNK_MAGIC) && copy.kind == UInt16(TRACE_CHUNK_EVENTS) && copy.used_bytes == UInt64(Self.used))
        #expect(copy.byte_count == 40960) // its used pages
        let body = bytes(header, Self.destination + 128..<Self.destination + 40960)
        #expect(body.prefix(Self.used - 128).allSatisfy { $0 == 7 } && body.dropFirst(Self.used - 128).allSatisfy { $0 == 0 })
        #expect(bytes(header, Self.offset..<Self.destination).allSatisfy { $0 == 0 })
        #expect(byteCount(header.file) % 4096 == 0)
        let spare = try #require(header.spare(0))
        #expect(spare.state == UInt32(TRACE_SPARE_FREE) && spare.byte_count == UInt32(Self.chunkBytes) && spare.offset == Self.offset)
        #expect(collector.look() > PreparationPlan.busyNanoseconds)
    }

    @Test func aPlaceThatWasGivenUpHidesNoLaterOne() throws {
        let header = try trace(after: [TRACE_SPARE_TAKEN, TRACE_SPARE_NONE])
        var collector = ChunkCollector(header)
        _ = collector.look()
        #expect([0, 1, 2].map { header.spare($0)?.state } == [TRACE_SPARE_TAKEN, TRACE_SPARE_NONE, TRACE_SPARE_FREE].map { UInt32($0) })
        #expect(header.spare(3)?.state == nil && header.hasSpares)
    }

    @Test func inARingACopyIsAsLongAsTheChunk() throws {
        let header = try trace(mode: TRACE_MODE_RING)
        var collector = ChunkCollector(header)
        _ = collector.look()
        #expect(chunk(header, at: Self.destination).byte_count == UInt32(Self.chunkBytes))
    }

    @Test(arguments: [TRACE_SPARE_FREE, TRACE_SPARE_TAKEN, TRACE_SPARE_COPIED, 5]) func onlyFullChunksAreTouched(state: Int) throws {
        let header = try trace(state: state)
        var collector = ChunkCollector(header)
        _ = collector.look()
        #expect(header.spare(0)?.state == UInt32(state))
        #expect(chunk(header, at: Self.offset).magic == UInt32(TRACE_CHUNK_MAGIC))
        #expect(UInt64(byteCount(header.file)) == Self.destination)
    }

    /// The traced program may have written over the first page.
    @Test(arguments: 0..<10) func whatCannotBeTrueIsLeftAlone(number: Int) throws {
        let header = try trace { spare, chunk in
            switch number {
            case 0: spare.offset = 0 // the header's page
            case 1: spare.destination = 0
            case 2: spare.destination = Self.destination + 8
            case 3: spare.destination = .max
            case 4: spare.offset = 1 << 40
            case 5: chunk.used_bytes = .max
            case 6: chunk.used_bytes = UInt64(Self.chunkBytes) + 1
            case 7: chunk.byte_count = .max
            case 8: chunk.flags = 0 // a thread may still write to it
            default: chunk.kind = UInt16(TRACE_CHUNK_METADATA)
            }
        }
        let before = bytes(header, 0..<Self.destination)
        var collector = ChunkCollector(header)
        _ = collector.look()
        #expect(bytes(header, 0..<Self.destination) == before && UInt64(byteCount(header.file)) == Self.destination)
    }

    @Test func afterTheEndAnEmptyChunkSaysSo() throws {
        let header = try trace()
        var collector = ChunkCollector(header)
        _ = collector.look()
        collector.end()
        let empty = chunk(header, at: Self.offset)
        #expect(empty.magic == UInt32(TRACE_CHUNK_MAGIC) && empty.kind == UInt16(TRACE_CHUNK_VOID))
        #expect(empty.byte_count == UInt32(Self.chunkBytes) && empty.used_bytes == 0)
        #expect(chunk(header, at: Self.destination).used_bytes == UInt64(Self.used))
    }

    @Test(arguments: [TRACE_MODE_FULL, TRACE_MODE_RING]) func whatIsFullAtTheEndOfARingIsPutOverAnOlderChunk(mode: Int) throws {
        let header = try trace(mode: mode)
        var collector = ChunkCollector(header)
        collector.end()
        let kinds = [chunk(header, at: Self.offset).kind, chunk(header, at: Self.destination).kind]
        #expect(kinds == (mode == TRACE_MODE_RING ? [TRACE_CHUNK_VOID, TRACE_CHUNK_EVENTS] : [TRACE_CHUNK_EVENTS, 0]).map { UInt16($0) })
    }

    @Test func aQuarterOfTheFileIsMadeAheadAndGoneAtTheEnd() throws {
        let next: UInt64 = 9 << 18, size: UInt64 = 256 << 10
        let header = try trace(state: TRACE_SPARE_TAKEN, limit: 0, next: next)
        var collector = ChunkCollector(header)
        for _ in 0..<2 {
            _ = collector.look()
            let made = [1, 2].compactMap { header.spare($0) }
            #expect(made.map { $0.state } == [TRACE_SPARE_FREE, TRACE_SPARE_FREE].map { UInt32($0) })
            #expect(made.map { $0.offset } == [next, next + size] && made.allSatisfy { $0.byte_count == UInt32(size) })
            #expect(header.spare(3) == nil && header.nextOffset == next + 2 * size && UInt64(byteCount(header.file)) == next + 2 * size)
        }
        collector.end()
        #expect(header.nextOffset == next)
    }

    @Test func noneIsMadeInAFileOfLimitedSize() throws {
        let header = try trace(state: TRACE_SPARE_TAKEN, next: 9 << 18)
        var collector = ChunkCollector(header)
        _ = collector.look()
        #expect(header.spare(1) == nil)
    }

    @Test func whoCutsTheFileHurtsNobody() throws {
        let header = try trace()
        var collector = ChunkCollector(header)
        truncate(header.path, 0)
        _ = collector.look()
        collector.end()
        #expect(byteCount(header.file) == 0)
    }
}
