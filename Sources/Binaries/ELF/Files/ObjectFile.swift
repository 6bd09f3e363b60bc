// An ELF file on this machine, opened for reading.
import CElfutils
import Glibc

/// Size and time of the last write of a file: by these a file without a build-id is known again.
package struct FileStamp: Hashable, Sendable {
    package var byteCount: UInt64
    package var seconds: Int64
    package var nanoseconds: UInt32

    package init(byteCount: UInt64, seconds: Int64, nanoseconds: UInt32) {
        (self.byteCount, self.seconds, self.nanoseconds) = (byteCount, seconds, nanoseconds)
    }
}

/// Not for use by two threads at once.
package final class ObjectFile {
    let path: String
    private let descriptor: Int32
    let elf: OpaquePointer
    let header: GElf_Ehdr
    package let stamp: FileStamp

    /// nil when there is no such file, or it is not an ELF file of 64 bits. Never waits for a FIFO or a device.
    package init?(path: String) {
        _ = elf_version(UInt32(EV_CURRENT))
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        var header = GElf_Ehdr()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let elf = elf_begin(descriptor, ELF_C_READ_MMAP, nil)
        else {
            close(descriptor)
            return nil
        }
        guard elf_kind(elf) == ELF_K_ELF, gelf_getclass(elf) == Int32(ELFCLASS64), gelf_getehdr(elf, &header) != nil else {
            elf_end(elf)
            close(descriptor)
            return nil
        }
        self.path = path
        self.descriptor = descriptor
        self.elf = elf
        self.header = header
        stamp = FileStamp(
            byteCount: UInt64(status.st_size), seconds: Int64(status.st_mtim.tv_sec), nanoseconds: UInt32(status.st_mtim.tv_nsec))
    }

    deinit {
        elf_end(elf)
        close(descriptor)
    }

    /// GNU build-id note, empty without one.
    package lazy var buildID: [UInt8] = {
        var bytes: UnsafeRawPointer?
        let count = dwelf_elf_gnu_build_id(elf, &bytes)
        guard count > 0, count <= 64, let bytes else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: count)) // lies in the file's own data
    }()

    /// The whole file; empty when it cannot be read.
    lazy var bytes: UnsafeRawBufferPointer = {
        var count = 0
        let start = elf_rawfile(elf, &count)
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
    }()

    /// Empty for a file of the other byte order.
    lazy var programHeaders: [ProgramHeader] = {
        let file = bytes
        func read(_ offset: UInt64, _ count: Int) -> [UInt8] {
            offset < UInt64(file.count) ? Array(file[Int(offset)...].prefix(count)) : []
        }
        return (try? FileHeader(read(0, FileHeader.bytes)).programHeaders(read)) ?? []
    }()

    /// Bytes from the lowest to the highest address of its load segments.
    package var span: UInt64? {
        let loads = programHeaders.filter { $0.kind == .load }
        guard let low = loads.map({ $0.address }).min(), let high = loads.map({ $0.address &+ $0.byteCount }).max(), high > low
        else { return nil }
        return high - low
    }

    /// The sections in order. Files may have none.
    func forEachSection(_ body: (OpaquePointer, GElf_Shdr) -> Void) {
        var section: OpaquePointer?
        while let next = elf_nextscn(elf, section) {
            var header = GElf_Shdr()
            if gelf_getshdr(next, &header) != nil { body(next, header) }
            section = next
        }
    }

    package func hasSection(_ name: String) -> Bool {
        var names = 0, isThere = false
        guard elf_getshdrstrndx(elf, &names) == 0 else { return false }
        forEachSection { _, header in
            if let found = elf_strptr(elf, names, Int(header.sh_name)), String(cString: found) == name { isThere = true }
        }
        return isThere
    }

    /// Returns the name of the loaded section that holds `address` (as linked); nil: none does.
    package func sectionName(at address: UInt64) -> String? {
        var names = 0, found: String?
        guard elf_getshdrstrndx(elf, &names) == 0 else { return nil }
        forEachSection { _, header in
            guard header.sh_flags & UInt64(SHF_ALLOC) != 0, address >= header.sh_addr, address - header.sh_addr < header.sh_size,
                let name = elf_strptr(elf, names, Int(header.sh_name))
            else { return }
            found = found ?? printable(name)
        }
        return found
    }

    func section(at index: Int) -> GElf_Shdr? {
        var header = GElf_Shdr()
        guard let section = elf_getscn(elf, index), gelf_getshdr(section, &header) != nil else { return nil }
        return header
    }
}
