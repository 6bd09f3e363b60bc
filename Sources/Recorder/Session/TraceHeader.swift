// The first page of a trace file that a process may be writing: the recorder reads it, and writes a few words of it.
import CTraceLayout
import Glibc
import Synchronization

/// Pointer arithmetic on the mapped page is here and nowhere else.
package final class TraceHeader {
    package let file: Int32
    package let path: String
    private let page: UnsafeMutableRawPointer

    /// nil when the file is not, or not yet, a trace of this version, or cannot be opened for writing.
    package init?(path: String) {
        let file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        var info = stat()
        guard fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_size >= off_t(TRACE_HEADER_BYTES),
            let page = mmap(nil, Int(TRACE_HEADER_BYTES), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
            page != MAP_FAILED
        else {
            close(file)
            return nil
        }
        self.file = file
        self.path = path
        self.page = page
        // The initialiser may still leave: deinit closes and unmaps from here on.
        guard current.hasMagic, current.version == TRACE_VERSION else { return nil }
    }

    deinit {
        munmap(page, Int(TRACE_HEADER_BYTES))
        close(file)
    }

    /// A copy; words that change are each read whole, not all at one moment.
    package var current: trace_file_header { page.load(as: trace_file_header.self) }

    var nextOffset: UInt64 { atomic(\.next_offset).pointee.load(ordering: .relaxed) }

    /// Released: who sees it also finds the file allocated up to there.
    func publish(preparedOffset: UInt64) { atomic(\.prepared_offset).pointee.store(preparedOffset, ordering: .releasing) }

    /// Only when the process has ended.
    func set(nextOffset: UInt64) { atomic(\.next_offset).pointee.store(nextOffset, ordering: .relaxed) }
    /// A range behind all others, as threads of the process take theirs.
    func reserve(_ byteCount: UInt64) -> UInt64 { atomic(\.next_offset).pointee.add(byteCount, ordering: .relaxed).oldValue }
    /// As a shell tells it. Only when the process has ended.
    func set(exitStatus: Int32) {
        atomic(\.exit_status).pointee.store(UInt64(TRACE_EXIT_KNOWN) | UInt64(UInt32(bitPattern: exitStatus)), ordering: .relaxed)
    }
    /// The file was made shorter: nothing of it is missing. Only when the process has ended.
    func limit(extendedOffset: UInt64) {
        let word = atomic(\.extended_offset)
        if word.pointee.load(ordering: .relaxed) > extendedOffset { word.pointee.store(extendedOffset, ordering: .relaxed) }
    }

    /// Sound: the page stays mapped as long as self, the field lies in it and is aligned (layout.c asserts its offset),
    /// Atomic<UInt64> has the layout of UInt64, and the other side, too, uses atomic instructions on it.
    private func atomic(_ field: PartialKeyPath<trace_file_header>) -> UnsafeMutablePointer<Atomic<UInt64>> {
        (page + MemoryLayout<trace_file_header>.offset(of: field)!).assumingMemoryBound(to: Atomic<UInt64>.self)
    }
}

extension trace_file_header {
    var hasMagic: Bool {
        withUnsafeBytes(of: magic) { $0.elementsEqual([0x54, 0x52, 0x41, 0x43, 0x45, 0x52, 0x1a, 0x0a]) }
    }
}
