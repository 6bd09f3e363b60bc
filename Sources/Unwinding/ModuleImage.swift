// The part of an ELF file that unwinding needs: its segments' addresses, and the bytes of .eh_frame_hdr and .eh_frame. It is read, not
// mapped: the file may be overwritten while it runs. Files are not to be trusted: every offset is checked against the bounds.
import ELF
import Glibc

package struct ModuleImage {
    package struct Segment {
        package var address, offset, fileBytes, memoryBytes: UInt64
        package var isExecutable: Bool
    }
    /// PT_LOAD, as they stand.
    package private(set) var segments: [Segment] = []
    /// From .eh_frame_hdr or .eh_frame, whichever comes first, to the end of what the file has of their segment; empty without.
    package private(set) var frames: [UInt8] = []
    /// Address of the first of these bytes, as linked.
    package private(set) var framesAddress: UInt64 = 0
    /// .eh_frame_hdr
    private(set) var tableAddress: UInt64 = 0

    private static let headerBytes = 64, programHeaderBytes = 56, mostHeaders = 1024, mostBytes = 256 << 20
    private static let load: UInt32 = 1, frameTable: UInt32 = 0x6474_e550 // PT_LOAD, PT_GNU_EH_FRAME

    /// nil: it is no ELF file of 64 bits.
    /// - Parameter read: `count` bytes from an offset; fewer where the file ends
    package init?(read: (_ offset: UInt64, _ count: Int) -> [UInt8]) {
        let header = read(0, Self.headerBytes)
        guard header.count == Self.headerBytes, header.starts(with: [0x7f, 0x45, 0x4c, 0x46, 2, 1]) else { return nil }
        let (start, size, count) = header.withUnsafeBytes {
            ($0.load(32, as: UInt64.self)!, Int($0.load(54, as: UInt16.self)!), Int($0.load(56, as: UInt16.self)!))
        }
        guard size == Self.programHeaderBytes, count <= Self.mostHeaders else { return nil }
        let headers = read(start, size * count)
        var table: UInt64?
        headers.withUnsafeBytes { bytes in
            for entry in stride(from: 0, through: bytes.count - size, by: size) {
                let type = bytes.load(entry, as: UInt32.self)!, flags = bytes.load(entry + 4, as: UInt32.self)!
                func word(_ offset: Int) -> UInt64 { bytes.load(entry + offset, as: UInt64.self)! }
                if type == Self.load {
                    segments.append(
                        Segment(
                            address: word(16), offset: word(8), fileBytes: word(32), memoryBytes: word(40),
                            isExecutable: flags & 1 != 0))
                } else if type == Self.frameTable {
                    table = word(16)
                }
            }
        }
        if let table { readFrames(table, read) }
    }

    private mutating func readFrames(_ table: UInt64, _ read: (UInt64, Int) -> [UInt8]) {
        guard let segment = segments.first(where: { table >= $0.address && table - $0.address < $0.fileBytes }) else { return }
        func bytes(from address: UInt64, _ most: Int) -> [UInt8] {
            read(segment.offset &+ (address - segment.address), Int(min(segment.fileBytes - (address - segment.address), UInt64(most))))
        }
        // Version, encodings of: the pointer to .eh_frame, the count, the table (LSB Core 5.0, 10.6.2). Linkers write this form alone.
        let header = bytes(from: table, 12)
        guard header.count == 12, header.starts(with: [1, 0x1b, 0x03, 0x3b]) else { return }
        let distance = header.withUnsafeBytes { Int64(Int32(bitPattern: $0.load(4, as: UInt32.self)!)) }
        let start = min(table, table &+ 4 &+ UInt64(bitPattern: distance))
        guard start >= segment.address else { return } // in another segment: no linker does that
        frames = bytes(from: start, Self.mostBytes)
        framesAddress = start
        tableAddress = table
    }

    /// Returns the load bias if the file is mapped so: an address in memory less the one as linked. nil: no segment has this offset.
    func bias(mappedAt address: UInt64, offset: UInt64) -> UInt64? {
        func holds(_ segment: Segment) -> Bool {
            let first = segment.offset & ~0xffff // pages are at most 64 KB
            return offset >= first && offset &- first < (segment.offset &- first) &+ segment.fileBytes
        }
        // Two segments may have one page of the file: what is asked for is code.
        guard let segment = segments.first(where: { $0.isExecutable && holds($0) }) ?? segments.first(where: holds) else { return nil }
        return address &- (segment.address &+ offset &- segment.offset)
    }

    /// The reserved area of the agent's library: the one segment that the file has nothing of.
    var emptySegment: Segment? { segments.first { $0.fileBytes == 0 && $0.memoryBytes > 0 } }
}
