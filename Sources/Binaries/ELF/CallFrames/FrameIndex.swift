// .eh_frame_hdr: the sorted table by which an unwinder finds a function's description. Stripped files have it, too.
// Linux Standard Base Core Specification 5.0, 10.6.2.
import TraceFormat

/// Valid as long as its bytes.
package struct FrameIndex {
    private let bytes: UnsafeRawBufferPointer
    private let address: UInt64
    private let rowCount: Int
    /// Address of .eh_frame, as linked.
    package let framesAddress: UInt64

    package static let headerBytes = 12
    private static let rowBytes = 8

    /// nil: it does not say where .eh_frame is.
    /// - Parameter bytes: from its first one on, maybe more than it has
    package init?(_ bytes: UnsafeRawBufferPointer, address: UInt64) {
        var reader = DwarfReader(bytes, address: address)
        let version = reader.byte(), encodings = (reader.byte(), reader.byte(), reader.byte())
        guard version == 1, let framesAddress = reader.pointer(encodings.0) else { return nil }
        self.bytes = bytes
        self.address = address
        self.framesAddress = framesAddress
        // The form that linkers write: 32 bits each, the rows relative to the header.
        let said = encodings == (0x1b, 0x03, 0x3b) ? Int(reader.number(UInt32.self)) : 0
        rowCount = min(said, max(bytes.count - Self.headerBytes, 0) / Self.rowBytes)
    }

    package init?(_ file: ObjectFile) {
        let byteCount = UInt64(file.bytes.count)
        guard let header = file.programHeaders.first(where: { $0.kind == .frameIndex }), header.offset < byteCount,
            header.fileByteCount <= byteCount - header.offset
        else { return nil }
        let bytes = file.bytes[Int(header.offset)..<Int(header.offset + header.fileByteCount)]
        self.init(UnsafeRawBufferPointer(rebasing: bytes), address: header.address)
    }

    /// One of the two addresses of a row.
    private func row(_ index: Int, _ half: Int) -> UInt64 {
        let distance = bytes.load(Self.headerBytes + index * Self.rowBytes + half * 4, as: Int32.self) ?? 0
        return address &+ UInt64(bitPattern: Int64(distance))
    }

    private func lastRow(at address: UInt64) -> Int? {
        let next = bisect(rowCount) { row($0, 0) <= address }
        return next > 0 ? next - 1 : nil
    }

    /// Returns the nearest start of a function at or below `address` (as linked); nil: there is none.
    package func start(at address: UInt64) -> UInt64? { lastRow(at: address).map { row($0, 0) } }

    /// Returns the address of that function's description in .eh_frame.
    package func description(at address: UInt64) -> UInt64? { lastRow(at: address).map { row($0, 1) } }
}
