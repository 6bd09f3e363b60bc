// The bytes of a file by their addresses as linked. Inlinable: a planner asks for each function, relocation and table of a module.

/// A loadable segment, as far as the file has it.
public struct Segment: Sendable {
    public var address: UInt64
    public var byteCount: UInt64
    public var offset: Int
    /// Number of its bytes that the file has, which may be shorter than its header says.
    public var fileByteCount: Int
    public var isExecutable: Bool
}

/// Valid as long as the file is open.
public struct SegmentContent: @unchecked Sendable {
    @usableFromInline let file: UnsafeRawBufferPointer
    /// Ascending by address.
    public let segments: [Segment]

    init(_ file: UnsafeRawBufferPointer, _ segments: [Segment]) { (self.file, self.segments) = (file, segments) }

    public func filter(_ isIncluded: (Segment) -> Bool) -> SegmentContent { SegmentContent(file, segments.filter(isIncluded)) }

    /// The bytes of the file from `address` to the end of its segment; empty where there are none.
    @inlinable public func bytes(at address: UInt64) -> UnsafeRawBufferPointer {
        for segment in segments where address >= segment.address && address - segment.address < UInt64(segment.fileByteCount) {
            let skipped = Int(address - segment.address)
            return UnsafeRawBufferPointer(rebasing: file[segment.offset + skipped..<segment.offset + segment.fileByteCount])
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    @inlinable public func contains(_ address: UInt64) -> Bool {
        segments.contains { address >= $0.address && address - $0.address < UInt64($0.fileByteCount) }
    }
}
