// The records of metadata chunks, one after another. Each says its own size; one that cannot be believed ends its chunk, since nothing
// says where the next begins.
import CTraceLayout

protocol RecordReader {
    var damagedRecords: Int { get set }
    /// Records of `byteCount` bytes come next.
    mutating func begin(byteCount: Int)
    mutating func read(_ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord)
}

/// A record contradicts itself.
struct DamagedRecord: Error {}

extension RecordReader {
    mutating func begin(byteCount: Int) {}

    mutating func readRecords(of file: InputFile, _ chunks: [Chunk]) {
        let largestChunk = 64 << 20
        var buffer = ByteBuffer(capacity: 64 << 10)
        for chunk in chunks {
            let byteCount = min(chunk.endOffset - chunk.bodyOffset, largestChunk)
            if byteCount < chunk.endOffset - chunk.bodyOffset { damagedRecords += 1 }
            file.read(byteCount, at: chunk.offset + UInt64(chunk.bodyOffset), into: &buffer)
            readRecords(buffer)
        }
    }

    /// Returns the offset of the next record, which is not there yet; nil where a record cannot be believed.
    @discardableResult
    mutating func readRecords(_ buffer: borrowing ByteBuffer) -> Int? {
        var offset = 0
        begin(byteCount: buffer.count)
        while let record = buffer.load(trace_record.self, at: offset), record.type != 0 {
            let byteCount = Int(record.byte_count)
            do throws(DamagedRecord) {
                guard byteCount >= 8, byteCount % 8 == 0, byteCount <= buffer.count - offset else { throw DamagedRecord() }
                try read(record, buffer, offset, byteCount)
            } catch {
                damagedRecords += 1
                return nil
            }
            offset += byteCount
        }
        return offset
    }

    /// The fixed part of a record.
    func body<T: BitwiseCopyable>(
        _ type: T.Type, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int
    ) throws(DamagedRecord) -> T {
        guard byteCount >= MemoryLayout<T>.size, let body = buffer.load(T.self, at: offset) else { throw DamagedRecord() }
        return body
    }

    /// Each sample of a SAMPLES record, with the offset of its addresses in the buffer.
    static func forEachSample(
        _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int, _ body: (trace_sample, _ addresses: Int) -> Void
    ) throws(DamagedRecord) {
        var position = MemoryLayout<trace_samples_record>.size
        guard byteCount >= position, let fixed = buffer.load(trace_samples_record.self, at: offset) else { throw DamagedRecord() }
        let size = MemoryLayout<trace_sample>.size
        for _ in 0..<fixed.count {
            guard position + size <= byteCount, let sample = buffer.load(trace_sample.self, at: offset + position),
                Int(sample.count) <= (byteCount - position - size) / 8
            else { throw DamagedRecord() }
            body(sample, offset + position + size)
            position += size + Int(sample.count) * 8
        }
    }

    /// Returns the bytes after the fixed part, `length` of them or `longest`.
    func tail<T: BitwiseCopyable>(
        _ fixed: T, _ length: UInt32, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int, _ longest: Int
    ) throws(DamagedRecord) -> [UInt8] {
        guard Int(length) <= byteCount - MemoryLayout<T>.size else { throw DamagedRecord() }
        return buffer.bytes(at: offset + MemoryLayout<T>.size, byteCount: min(Int(length), longest))
    }
}
