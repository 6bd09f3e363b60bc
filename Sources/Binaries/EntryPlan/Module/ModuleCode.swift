// A module's memory as its file has it, by address.
import ELF

public enum Architecture: UInt16, Sendable {
    case x86 = 62, arm = 183 // EM_X86_64, EM_AARCH64
}

struct ModuleCode: Sendable {
    let architecture: Architecture
    /// From the start of the lowest executable segment to the end of the highest.
    let text: Range<UInt64>
    /// Page of the lowest segment's start; addresses in a plan are relative to it.
    let base: UInt64
    /// ET_EXEC: addresses in it are absolute.
    let isFixed: Bool
    private let all, executable: SegmentContent

    /// nil: nothing of it is executable, or it is larger than addresses of 32 bits reach.
    init?(_ file: CodeFile, _ architecture: Architecture) {
        self.architecture = architecture
        all = file.content
        executable = all.filter { $0.isExecutable && $0.fileByteCount > 0 }
        guard let first = all.segments.first, let low = executable.segments.first?.address, let last = executable.segments.last
        else { return nil }
        text = low..<last.address + UInt64(last.fileByteCount)
        base = first.address & ~4095
        isFixed = file.type == 2
        guard text.upperBound - base < 1 << 31, text.upperBound > low else { return nil }
    }

    /// The bytes of the file from `address` to the end of its segment; empty where there are none.
    func content(at address: UInt64) -> UnsafeRawBufferPointer { all.bytes(at: address) }

    /// The same of code alone.
    func code(at address: UInt64) -> UnsafeRawBufferPointer { executable.bytes(at: address) }

    func isCode(_ address: UInt64) -> Bool { executable.contains(address) }

    var dataSegments: [Segment] { all.segments.filter { !$0.isExecutable } }
}
