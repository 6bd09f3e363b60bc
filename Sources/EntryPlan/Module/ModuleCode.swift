// A module's memory as its file has it, by address.
import ELF

public enum Architecture: UInt16, Sendable {
    case x86 = 62, arm = 183 // EM_X86_64, EM_AARCH64
}

struct ModuleCode: @unchecked Sendable {
    let architecture: Architecture
    let bytes: UnsafeRawBufferPointer
    let segments: [CodeFile.Segment]
    /// From the start of the lowest executable segment to the end of the highest.
    let text: Range<UInt64>
    /// Page of the lowest segment's start; addresses in a plan are relative to it.
    let base: UInt64
    /// ET_EXEC: addresses in it are absolute.
    let isFixed: Bool
    private let executable: [CodeFile.Segment]

    /// nil: nothing of it is executable, or it is larger than addresses of 32 bits reach.
    init?(_ file: CodeFile, _ architecture: Architecture) {
        self.architecture = architecture
        bytes = file.bytes
        segments = file.segments
        executable = segments.filter { $0.isExecutable && $0.fileByteCount > 0 }
        guard let first = segments.first, let low = executable.first?.address, let last = executable.last else { return nil }
        text = low..<last.address + UInt64(last.fileByteCount)
        base = first.address & ~4095
        isFixed = file.type == 2
        guard text.upperBound - base < 1 << 31, text.upperBound > low else { return nil }
    }

    /// The bytes of the file from `address` to the end of its segment; empty where there are none.
    func content(at address: UInt64) -> UnsafeRawBufferPointer {
        for segment in segments where address >= segment.address && address - segment.address < UInt64(segment.fileByteCount) {
            let skipped = Int(address - segment.address)
            return UnsafeRawBufferPointer(rebasing: bytes[segment.offset + skipped..<segment.offset + segment.fileByteCount])
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// The same of code alone.
    func code(at address: UInt64) -> UnsafeRawBufferPointer {
        for segment in executable where address >= segment.address && address - segment.address < UInt64(segment.fileByteCount) {
            let skipped = Int(address - segment.address)
            return UnsafeRawBufferPointer(rebasing: bytes[segment.offset + skipped..<segment.offset + segment.fileByteCount])
        }
        return UnsafeRawBufferPointer(start: nil, count: 0)
    }

    func isCode(_ address: UInt64) -> Bool {
        executable.contains { address >= $0.address && address - $0.address < UInt64($0.fileByteCount) }
    }

    var dataSegments: [CodeFile.Segment] { segments.filter { !$0.isExecutable } }
}
