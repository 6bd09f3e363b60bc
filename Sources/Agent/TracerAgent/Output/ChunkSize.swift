// How long chunks are.
import CSupport
import CTraceLayout

enum ChunkSize {
    private static let most = Int(TRACE_SPARE_BYTES)
    /// What a thread that records much keeps. In a ring all copies of its chunks have this size.
    static var largest: Int { Limits.isRing ? Ring.chunkBytes : most }
    static var first: Int { max(16384, Memory.pageBytes) } // a mapping begins on a page of the file
    /// Space after the limit of a chunk, in bytes: for words that are reserved when it is found to be full, and for returns.
    static let slack = 512
    static let headerBytes = MemoryLayout<trace_chunk_header>.size

    static func next(after bytes: Int) -> Int { Limits.isRing ? largest : min(bytes &* 4, largest) }
    /// A sixteenth of a ring: what it loses at its older end is at most that much.
    static func ofRing(_ limit: UInt64) -> Int { max(first, min(most, Int(limit / 16))) & ~(Memory.pageBytes &- 1) }
}
