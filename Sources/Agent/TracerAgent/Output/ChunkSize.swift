// How long chunks are.
import CSupport
import CTraceLayout

enum ChunkSize {
    static let largest = 256 << 10
    static var first: Int { max(16384, Memory.pageBytes) } // a mapping begins on a page of the file
    /// Space after the limit of a chunk, in bytes: for words that are reserved when it is found to be full, and for returns.
    static let slack = 512
    static let headerBytes = MemoryLayout<trace_chunk_header>.size

    static func next(after bytes: Int) -> Int { Limits.isRing ? Ring.chunkBytes : min(bytes &* 4, largest) }
}
