// The code of one ELF file as it will lie in memory.
import CElfutils
import Glibc

/// Not for use by two threads at once, but for `bytes` and what was taken from it.
public final class CodeFile {
    public struct Section: Sendable {
        public var name: String
        public var type: UInt32
        public var flags: UInt64
        public var address: UInt64
        public var offset: Int
        public var byteCount: Int
    }
    public enum Refusal: Error { case noFile(Int32), noELF }

    let file: ObjectFile
    /// Separate debug files.
    private(set) var others: [ObjectFile] = []
    /// Dwfl that has unpacked .gnu_debugdata.
    var miniDebug: OpaquePointer?
    public let bytes: UnsafeRawBufferPointer
    public let content: SegmentContent
    public let sections: [Section]
    public var path: String { file.path }
    public var elfMachine: UInt16 { file.header.e_machine }
    public var type: UInt16 { file.header.e_type }
    public var entry: UInt64 { file.header.e_entry }
    public var buildID: [UInt8] { file.buildID }
    public let status: stat
    /// Status of the separate debug file; nil: there is none.
    public private(set) var debugStatus: stat?

    /// - Parameter debugDirectories: where separate debug files are looked for
    public init(path: String, debugDirectories: [String] = ["/usr/lib/debug"]) throws(Refusal) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .noFile(errno) }
        guard let file = ObjectFile(path: path) else {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            if descriptor < 0 { throw .noFile(errno) }
            close(descriptor)
            throw .noELF
        }
        self.file = file
        self.status = status
        bytes = file.bytes
        let count = UInt64(bytes.count)
        guard count > 0 else { throw .noELF }
        func within(_ offset: UInt64, _ wanted: UInt64) -> Int { offset >= count ? 0 : Int(min(wanted, count - offset)) }
        let loads = file.programHeaders.filter {
            $0.kind == .load && $0.address &+ $0.byteCount >= $0.address && $0.address &+ $0.byteCount < 1 << 62
        }
        let segments = loads.map {
            Segment(
                address: $0.address, byteCount: $0.byteCount, offset: Int(clamping: $0.offset),
                fileByteCount: within($0.offset, min($0.fileByteCount, $0.byteCount)), isExecutable: $0.isExecutable)
        }
        content = SegmentContent(bytes, segments.sorted { $0.address < $1.address })
        var sections: [Section] = [], namesIndex = 0
        if elf_getshdrstrndx(file.elf, &namesIndex) == 0 {
            file.forEachSection { _, header in
                if header.sh_addr >= 1 << 62 { return } // damaged: its end could not be computed
                let name = elf_strptr(file.elf, namesIndex, Int(header.sh_name)).map { String(cString: $0) } ?? ""
                let isEmpty = header.sh_type == UInt32(SHT_NOBITS)
                sections.append(
                    Section(
                        name: name, type: header.sh_type, flags: header.sh_flags, address: header.sh_addr,
                        offset: Int(clamping: header.sh_offset), byteCount: isEmpty ? 0 : within(header.sh_offset, header.sh_size)))
            }
        }
        self.sections = sections
        if let found = DebugFiles(directories: debugDirectories).debugFile(of: file) {
            others.append(found)
            var status = stat()
            if stat(found.path, &status) == 0 { debugStatus = status }
        }
    }

    deinit { if let miniDebug { dwfl_end(miniDebug) } }

    /// The file has debug information, or its separate debug file has.
    package var hasDebugInformation: Bool { ([file] + others).contains { $0.hasSection(".debug_info") || $0.hasSection(".zdebug_info") } }

    public func section(_ name: String) -> Section? { sections.first { $0.name == name } }

    public func bytes(of section: Section) -> UnsafeRawBufferPointer {
        section.byteCount == 0
            ? UnsafeRawBufferPointer(start: nil, count: 0)
            : UnsafeRawBufferPointer(rebasing: bytes[section.offset..<section.offset + section.byteCount])
    }

    package func programHeaders(_ kind: ProgramHeader.Kind) -> [ProgramHeader] { file.programHeaders.filter { $0.kind == kind } }

    /// Tags (DT_…) and values of the dynamic section; of a damaged one the first 4096.
    package var dynamicEntries: [(tag: UInt64, value: UInt64)] {
        var entries: [(tag: UInt64, value: UInt64)] = []
        for header in programHeaders(.dynamic) {
            let bytes = content.bytes(at: header.address)
            for index in 0..<min(bytes.count / 16, 4096) {
                guard let tag = bytes.load(index * 16, as: UInt64.self), let value = bytes.load(index * 16 + 8, as: UInt64.self), tag != 0
                else { break }
                entries.append((tag, value))
            }
        }
        return entries
    }
}
