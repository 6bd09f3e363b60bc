// Start addresses of functions from .eh_frame_hdr, the sorted table by which an unwinder finds a function's description. Stripped files
// have it, too.
// Linux Standard Base Core Specification 5.0, 10.6.2.
import TraceFormat

package struct UnwindTable {
    private let starts: UnsafeRawBufferPointer // points into the bytes that `file` holds
    private let file: ObjectFile
    private let base: UInt64
    private let count: Int

    /// The form that linkers write: 32 bits each, relative to the header.
    private static let encoding: [UInt8] = [1, 0x1b, 0x03, 0x3b]
    private static let headerBytes = 12, rowBytes = 8

    package init?(_ file: ObjectFile) {
        let byteCount = UInt64(file.bytes.count)
        guard let header = file.programHeaders.first(where: { $0.kind == .frameIndex }), header.offset < byteCount,
            header.fileByteCount <= byteCount - header.offset, header.fileByteCount >= UInt64(Self.headerBytes)
        else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: file.bytes[Int(header.offset)..<Int(header.offset + header.fileByteCount)])
        guard bytes.prefix(4).elementsEqual(Self.encoding) else { return nil }
        let said = Int(bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self).littleEndian)
        count = min(said, (bytes.count - Self.headerBytes) / Self.rowBytes)
        starts = UnsafeRawBufferPointer(rebasing: bytes[Self.headerBytes...])
        base = header.address
        self.file = file
    }

    private func row(_ index: Int) -> UInt64 {
        base &+ UInt64(bitPattern: Int64(starts.loadUnaligned(fromByteOffset: index * Self.rowBytes, as: Int32.self).littleEndian))
    }

    /// Returns the nearest start of a function at or below `address` (as linked); nil: there is none.
    package func start(at address: UInt64) -> UInt64? {
        let next = bisect(count) { row($0) <= address }
        return next > 0 ? row(next - 1) : nil
    }
}
