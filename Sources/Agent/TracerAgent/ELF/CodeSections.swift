// The executable sections of a module's file. A linker that puts everything read-only into one segment makes most of
// that segment no code: of libLLVM's 102 MB half is. Section headers are not loaded, so they are read from the file,
// which must be the one that is mapped: the program headers are compared byte for byte.
import CSupport

struct CodeSections {
    private var starts = InlineArray<32, UInt64>(repeating: 0) // link-time addresses
    private var ends = InlineArray<32, UInt64>(repeating: 0)
    private var count = 0

    /// Smaller texts are read whole sooner than a file is opened.
    private static let worthwhile: UInt64 = 1 << 20

    /// nil: take the segments.
    init?(_ image: Image, at path: CText) {
        if image.high &- image.low < CodeSections.worthwhile { return nil }
        let descriptor = SystemCall.call(SystemCall.openat, SystemCall.currentDirectory, bits(path), Open.closeOnExec, 0)
        if failed(descriptor) { return nil }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        var header = ElfHeader()
        guard CodeSections.read(descriptor, 0, &header), header.magic == ElfHeader.magicWord,
            header.sectionHeaderBytes == 64, header.sectionHeaders != 0,
            CodeSections.matches(descriptor, header, image)
        else { return nil }
        var table = InlineArray<128, SectionHeader>(repeating: SectionHeader())
        let sectionCount = Int(header.sectionHeaderCount)
        guard sectionCount <= 128,
            CodeSections.read(descriptor, header.sectionHeaders, &table, sectionCount &* 64)
        else { return nil }
        for n in 0..<sectionCount {
            let section = table[n]
            if section.flags & SectionHeader.executable == 0 || section.type == SectionHeader.noBits { continue }
            let start = image.bias &+ section.address
            guard count < 32, image.isCode(start), image.contains(start, section.byteCount) else { return nil }
            starts[count] = section.address
            ends[count] = section.address &+ section.byteCount
            count &+= 1
        }
        if count == 0 { return nil }
    }

    func forEach(_ bias: UInt64, _ body: (UInt64, UInt64) -> Void) {
        for n in 0..<count { body(bias &+ starts[n], bias &+ ends[n]) }
    }

    private static func read<T: BitwiseCopyable>(
        _ descriptor: Int, _ offset: UInt64, _ value: inout T,
        _ byteCount: Int? = nil
    ) -> Bool {
        let size = byteCount ?? MemoryLayout<T>.size
        return withUnsafeMutablePointer(to: &value) {
            SystemCall.call(SystemCall.pread64, descriptor, bits($0), size, Int(truncatingIfNeeded: offset)) == size
        }
    }

    /// Returns true if the mapped image came from this file, as far as its program headers show.
    static func isFile(_ descriptor: Int, of image: Image) -> Bool {
        var header = ElfHeader()
        return read(descriptor, 0, &header) && header.magic == ElfHeader.magicWord && matches(descriptor, header, image)
    }
    private static func matches(_ descriptor: Int, _ header: ElfHeader, _ image: Image) -> Bool {
        let loaded = image.programHeaderBytes
        guard Int(header.programHeaderCount) &* 56 == loaded.count, loaded.count <= 4096 else { return false }
        var buffer = InlineArray<4096, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        return span.withUnsafeMutableBufferPointer { bytes in
            if SystemCall.call(
                SystemCall.pread64, descriptor, bits(bytes.baseAddress), loaded.count,
                Int(truncatingIfNeeded: header.programHeaders)) != loaded.count
            {
                return false
            }
            for n in 0..<loaded.count where bytes[n] != loaded[n] { return false }
            return true
        }
    }
}
