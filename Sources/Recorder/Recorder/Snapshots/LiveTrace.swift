// A trace file that its process is writing, read so that what is read was all there at one moment. Nobody is stopped for it: each
// part is read, and then it is looked whether it has changed meanwhile. Chunks are announced by their header and taken back by it, and whatever
// is not whole yet is not announced (docs/reference/format.md).
import CTraceLayout
import Glibc

package struct LiveTrace {
    let file: Int32

    struct Place {
        var offset: UInt64
        var header: trace_chunk_header
        var isMetadata: Bool { header.kind == UInt16(TRACE_CHUNK_METADATA) }
    }
    struct Contents {
        var header: trace_chunk_header
        /// All of the chunk that is in use, its header as well.
        var bytes: [UInt8]
    }

    private static let page = UInt64(TRACE_CHUNK_ALIGNMENT), headerBytes = MemoryLayout<trace_chunk_header>.size
    private static let mostBytes: UInt32 = 1 << 30
    /// As often a chunk is read that changes while it is.
    private static let mostTries = 8

    /// The file's header at this moment; nil: it cannot be read.
    var header: trace_file_header? {
        var header = trace_file_header()
        let size = MemoryLayout<trace_file_header>.size
        return pread(file, &header, size, 0) == size ? header : nil
    }

    // MARK: - Where chunks are

    /// Chunks with a valid header, in the order of the file.
    func chunks() -> [Place] {
        var info = stat(), found: [Place] = []
        guard fstat(file, &info) == 0, let header else { return [] }
        let end = min(UInt64(max(info.st_size, 0)), header.next_offset)
        var offset = UInt64(TRACE_HEADER_BYTES)
        while offset < end {
            guard let chunk = chunk(at: offset) else {
                offset = nextMagic(after: offset, before: end)
                continue
            }
            if chunk.kind != UInt16(TRACE_CHUNK_VOID) { found.append(Place(offset: offset, header: chunk)) }
            offset += UInt64(chunk.byte_count)
        }
        return found
    }
    /// Chunks that threads fill in turn, and those that wait to be copied.
    func spareOffsets() -> [UInt64] {
        var spares = [trace_spare](repeating: trace_spare(), count: Int(TRACE_SPARES))
        let bytes = MemoryLayout<trace_spare>.stride * spares.count
        guard pread(file, &spares, bytes, off_t(TRACE_SPARES_OFFSET)) == bytes else { return [] }
        return spares.filter { $0.byte_count != 0 && $0.state >= UInt32(TRACE_SPARE_TAKEN) && $0.offset % Self.page == 0 }.map(\.offset)
    }

    func chunk(at offset: UInt64) -> trace_chunk_header? {
        var chunk = trace_chunk_header()
        guard pread(file, &chunk, Self.headerBytes, off_t(offset)) == Self.headerBytes, chunk.magic == UInt32(TRACE_CHUNK_MAGIC),
            chunk.kind >= UInt16(TRACE_CHUNK_EVENTS), chunk.kind <= UInt16(TRACE_CHUNK_VOID), chunk.byte_count >= UInt32(Self.page),
            chunk.byte_count <= Self.mostBytes, UInt64(chunk.byte_count) % Self.page == 0, Int(chunk.body_offset) >= Self.headerBytes,
            chunk.body_offset <= chunk.byte_count, chunk.body_offset % 8 == 0, chunk.used_bytes <= UInt64(chunk.byte_count)
        else { return nil }
        return chunk
    }

    private func nextMagic(after start: UInt64, before end: UInt64) -> UInt64 {
        var pages = [UInt8](repeating: 0, count: 64 * Int(Self.page)), offset = start + Self.page
        while offset < end {
            // What is prepared and not used is a hole, of up to a gigabyte.
            let data = lseek(file, off_t(offset), 3) // SEEK_DATA, include/uapi/linux/fs.h
            guard data >= 0 else { return end }
            offset = max(offset, UInt64(data) / Self.page * Self.page)
            let got = pread(file, &pages, pages.count, off_t(offset))
            guard got > 0 else { return end }
            for position in stride(from: 0, to: got - 3, by: Int(Self.page)) {
                let magic = pages.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position, as: UInt32.self) }
                if magic == UInt32(TRACE_CHUNK_MAGIC) { return offset + UInt64(position) }
            }
            offset += UInt64(pages.count)
        }
        return end
    }

    // MARK: - What is in them

    /// A chunk of events: a closed one as it is, of an open one what was there at some moment since the call. nil: there is none any more.
    func events(at offset: UInt64) -> Contents? {
        for _ in 0..<Self.mostTries {
            guard let before = chunk(at: offset), before.kind == UInt16(TRACE_CHUNK_EVENTS) else { return nil }
            let isClosed = before.flags & UInt16(TRACE_CHUNK_CLOSED) != 0 && before.used_bytes >= UInt64(before.body_offset)
            let byteCount = isClosed ? before.used_bytes : UInt64(before.byte_count)
            guard let first = bytes(Int(byteCount), at: offset) else { return nil }
            if isClosed {
                // Who takes it back, or copies another one there, changes the header first.
                if let after = chunk(at: offset), Self.isSame(before, after) { return Contents(header: before, bytes: first) }
                continue
            }
            guard let second = bytes(Int(byteCount), at: offset), let after = chunk(at: offset), Self.isSame(before, after) else {
                continue
            }
            // What was the same both times was there in between. Whatever has changed is at the end: an enter becomes a complete call, or is taken
            // back, only while it is the last word.
            let end = Self.commonEnd(first, second, from: Int(before.body_offset))
            return Contents(header: before, bytes: Array(first[..<end]))
        }
        return nil
    }

    /// Records of a chunk of metadata, those that were being written left out. nil: it is none any more.
    func records(at offset: UInt64) -> Contents? {
        for _ in 0..<Self.mostTries {
            guard let before = chunk(at: offset), before.kind == UInt16(TRACE_CHUNK_METADATA),
                var first = bytes(Int(before.byte_count), at: offset), let second = bytes(Int(before.byte_count), at: offset)
            else { return nil }
            guard let after = chunk(at: offset), Self.isSame(before, after) else { continue }
            let end = Self.settle(&first, second, from: Int(before.body_offset))
            return Contents(header: before, bytes: Array(first[..<end]))
        }
        return nil
    }

    /// A ring writes a few records anew, and some are counters: of the others that have changed none stays. Returns where records end.
    private static func settle(_ first: inout [UInt8], _ second: [UInt8], from start: Int) -> Int {
        var offset = start
        first.withUnsafeMutableBytes { first in
            second.withUnsafeBytes { second in
                while offset + MemoryLayout<trace_record>.size <= first.count {
                    let record = first.loadUnaligned(fromByteOffset: offset, as: trace_record.self), count = Int(record.byte_count)
                    guard record.type != 0, count >= MemoryLayout<trace_record>.size, count % 8 == 0, count <= first.count - offset else {
                        break
                    }
                    let isCounter = record.type == UInt16(TRACE_RECORD_PASSED)
                    if !isCounter, memcmp(first.baseAddress! + offset, second.baseAddress! + offset, count) != 0 {
                        first.storeBytes(of: UInt16(TRACE_RECORD_REPLACED), toByteOffset: offset, as: UInt16.self) // its type, the first field
                    }
                    offset += count
                }
            }
        }
        return offset
    }

    private static func isSame(_ one: trace_chunk_header, _ other: trace_chunk_header) -> Bool {
        one.kind == other.kind && one.flags == other.flags && one.thread == other.thread && one.sequence == other.sequence
            && one.opened.ticks == other.opened.ticks && one.used_bytes == other.used_bytes
    }
    /// Returns where the words begin to differ, or the last word that is not 0 ends.
    private static func commonEnd(_ first: [UInt8], _ second: [UInt8], from start: Int) -> Int {
        first.withUnsafeBytes { first in
            second.withUnsafeBytes { second in
                var offset = start, end = start
                while offset + 8 <= first.count {
                    let word = first.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                    if word != second.loadUnaligned(fromByteOffset: offset, as: UInt64.self) { break }
                    offset += 8
                    if word != 0 { end = offset }
                }
                return end
            }
        }
    }

    private func bytes(_ count: Int, at offset: UInt64) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            var done = 0
            while done < count {
                let got = pread(file, buffer.baseAddress! + done, count - done, off_t(offset) + off_t(done))
                if got < 0, errno == EINTR { continue }
                if got <= 0 { break }
                done += got
            }
            filled = done
        }
        return bytes.count == count ? bytes : nil
    }
}
