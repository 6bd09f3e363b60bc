// The part of an ELF file that unwinding needs: its segments' addresses, and the bytes of .eh_frame_hdr and .eh_frame. It is read, not
// mapped: the file may be overwritten while it runs. Files are not to be trusted: every offset is checked against the bounds.
import ELF

package struct ModuleImage {
    /// The loadable segments.
    package let segments: [ProgramHeader]
    /// From .eh_frame_hdr or .eh_frame, whichever comes first, to the end of what the file has of their segment; empty without.
    package private(set) var frames: [UInt8] = []
    /// Address of the first of these bytes, as linked.
    package private(set) var framesAddress: UInt64 = 0
    /// .eh_frame_hdr
    private(set) var tableAddress: UInt64 = 0

    private static let mostBytes = 256 << 20

    /// nil: it is no ELF file of 64 bits.
    package init?(read: ReadBytes) {
        guard let headers = try? FileHeader(read(0, FileHeader.bytes)).programHeaders(read) else { return nil }
        segments = headers.filter { $0.kind == .load }
        if let table = headers.last(where: { $0.kind == .frameIndex }) { readFrames(table.address, read) }
    }

    private mutating func readFrames(_ table: UInt64, _ read: ReadBytes) {
        guard let segment = segments.first(where: { table >= $0.address && table - $0.address < $0.fileByteCount }) else { return }
        func bytes(from address: UInt64, _ most: Int) -> [UInt8] {
            let skipped = address - segment.address
            return read(segment.offset &+ skipped, Int(min(segment.fileByteCount - skipped, UInt64(most))))
        }
        let header = bytes(from: table, FrameIndex.headerBytes)
        guard let entries = header.withUnsafeBytes({ FrameIndex($0, address: table)?.framesAddress }) else { return }
        let start = min(table, entries)
        guard start >= segment.address else { return } // in another segment: no linker does that
        frames = bytes(from: start, Self.mostBytes)
        framesAddress = start
        tableAddress = table
    }

    /// Returns the load bias if the file is mapped so: an address in memory less the one as linked. nil: no segment has this offset.
    func bias(mappedAt address: UInt64, offset: UInt64) -> UInt64? {
        func holds(_ segment: ProgramHeader) -> Bool {
            let first = segment.offset & ~0xffff // pages are at most 64 KB
            return offset >= first && offset &- first < (segment.offset &- first) &+ segment.fileByteCount
        }
        // Two segments may have one page of the file: what is asked for is code.
        guard let segment = segments.first(where: { $0.isExecutable && holds($0) }) ?? segments.first(where: holds) else { return nil }
        return address &- (segment.address &+ offset &- segment.offset)
    }

    /// The reserved area of the agent's library: the one segment that the file has nothing of.
    var emptySegment: ProgramHeader? { segments.first { $0.fileByteCount == 0 && $0.byteCount > 0 } }
}
