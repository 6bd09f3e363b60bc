// The first page of a trace file that a process may be writing: the recorder reads it, and writes a few words of it.
import CRecorder
import CTraceLayout
import Glibc

/// No file is trusted: whoever may write to it may also cut it, at any moment. So it is read by pread(2). What has to be read or changed
/// whole while the process changes it, too, is mapped, of one's own files alone, and touched where a cut is survived (crecorder.h).
package final class TraceHeader {
    package let file: Int32
    package let path: String
    /// nil for a file of another user.
    private let page: UnsafeMutableRawPointer?

    /// Beyond this no trace reaches; a larger number in a header is damage.
    static let mostBytes: UInt64 = 1 << 46

    /// nil when the file is not, or not yet, a trace of this version, or cannot be opened for writing.
    package init?(path: String) {
        let file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        var info = stat()
        guard fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_size >= off_t(TRACE_HEADER_BYTES) else {
            close(file)
            return nil
        }
        var page: UnsafeMutableRawPointer?
        if info.st_uid == geteuid() {
            page = mmap(nil, Int(TRACE_HEADER_BYTES), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            guard page != MAP_FAILED else {
                close(file)
                return nil
            }
        }
        self.file = file
        self.path = path
        self.page = page
        // The initialiser may still leave: deinit closes and unmaps from here on.
        let header = current
        guard header.hasMagic, header.version == TRACE_VERSION else { return nil }
    }

    deinit {
        if let page { munmap(page, Int(TRACE_HEADER_BYTES)) }
        close(file)
    }

    /// A copy; words that change are not all of one moment. All zero when the file has been cut.
    package var current: trace_file_header {
        var header = trace_file_header()
        let size = MemoryLayout<trace_file_header>.size
        return pread(file, &header, size, 0) == size ? header : trace_file_header()
    }

    /// nil when it cannot be, in a file that was cut or damaged, or that is another user's.
    package var nextOffset: UInt64? {
        var value: UInt64 = 0
        guard let word = word(\.next_offset), recorder_load(word, &value) == 0, value <= Self.mostBytes else { return nil }
        return value
    }

    /// Released: who sees it also finds the file allocated up to there.
    package func publish(preparedOffset: UInt64) { if let word = word(\.prepared_offset) { recorder_store(word, preparedOffset) } }

    /// Says whether somebody takes over full chunks: the process asks for each that it has filled.
    func set(collected: Bool) { if let word = word(\.collected) { recorder_store(word, collected ? 1 : 0) } }

    /// The process's threads fill chunks in turn.
    package var hasSpares: Bool { spare(0) != nil }

    /// A chunk that threads fill in turn (trace_layout.h). nil: none has had this number so far, nor a higher one; or the file was cut, or is
    /// another user's.
    package func spare(_ n: Int) -> trace_spare? {
        var spare = trace_spare(), state: UInt64 = 0
        guard let words = spareWords(n), recorder_load(words + 2, &state) == 0, // the state first: who sees it finds the others
            state >> 32 != 0, recorder_load(words, &spare.offset) == 0, recorder_load(words + 1, &spare.destination) == 0
        else { return nil }
        spare.state = UInt32(truncatingIfNeeded: state)
        spare.byte_count = UInt32(truncatingIfNeeded: state >> 32)
        return spare
    }
    /// A full one, which is the recorder's from now on: as `setSpare` makes it. nil: it is not full, or the process has taken it back.
    func takeFullSpare(_ n: Int) -> trace_spare? {
        guard let found = spare(n), found.state == UInt32(TRACE_SPARE_FULL), let words = spareWords(n) else { return nil }
        let full = Self.stateWord(found, TRACE_SPARE_FULL)
        var before: UInt64 = 0
        guard recorder_change(words + 2, full, Self.stateWord(found, TRACE_SPARE_COPIED), &before) == 0, before == full else { return nil }
        return spare(n) // since it was found, the process may have filled it again, for another place
    }
    /// The first number that no chunk has had is the recorder's, which makes one. False: the process was faster.
    func beginSpare(_ n: Int, byteCount: UInt64) -> Bool {
        guard let words = spareWords(n) else { return false }
        var before: UInt64 = 0
        return recorder_change(words + 2, 0, UInt64(TRACE_SPARE_COPIED) | byteCount << 32, &before) == 0 && before == 0
    }
    /// Released: who sees that it is free finds the chunk empty.
    func setSpare(_ n: Int, _ spare: trace_spare, _ state: Int) {
        guard let words = spareWords(n) else { return }
        recorder_store(words, spare.offset)
        recorder_store(words + 2, Self.stateWord(spare, state))
    }
    private static func stateWord(_ spare: trace_spare, _ state: Int) -> UInt64 { UInt64(state) | UInt64(spare.byte_count) << 32 }
    /// Three words: offset, destination, and state with the size above it.
    private func spareWords(_ n: Int) -> UnsafeMutablePointer<UInt64>? {
        page.map { ($0 + Int(TRACE_SPARES_OFFSET) + n * MemoryLayout<trace_spare>.size).assumingMemoryBound(to: UInt64.self) }
    }

    /// The requests with the numbers after `seen` that the process has not written over, oldest first.
    func requests(after seen: UInt64, until count: UInt64) -> [trace_request] {
        var all = [trace_request](repeating: trace_request(), count: Int(TRACE_REQUESTS))
        let bytes = MemoryLayout<trace_request>.stride * all.count
        guard pread(file, &all, bytes, off_t(TRACE_REQUESTS_OFFSET)) == bytes, count > seen else { return [] }
        let first = max(seen, count > UInt64(TRACE_REQUESTS) ? count - UInt64(TRACE_REQUESTS) : 0)
        return (first..<count).compactMap { number in
            let request = all[Int(number % UInt64(TRACE_REQUESTS))]
            return request.number == UInt32(truncatingIfNeeded: number &+ 1) ? request : nil
        }
    }

    /// Only when the process has ended.
    package func set(nextOffset: UInt64) { set(\.next_offset, nextOffset) }
    /// Only when the process has ended.
    package func set(_ exit: ProcessExit) {
        var flags = UInt64(TRACE_EXIT_KNOWN)
        if case .killed = exit { flags |= UInt64(TRACE_EXIT_SIGNAL) }
        set(\.exit_status, flags | UInt64(UInt32(bitPattern: exit.status)))
    }
    /// CLOCK_MONOTONIC. Only when the process has ended, or executed another program.
    func set(ended: UInt64) { set(\.ended_ns, ended) }
    /// The file was made shorter: nothing of it is missing. Only when the process has ended.
    func limit(extendedOffset: UInt64) { if current.extended_offset > extendedOffset { set(\.extended_offset, extendedOffset) } }

    /// A range after all others, as threads of the process take theirs. nil when there is none to be had.
    /// - Parameter isGone: the process has ended
    package func reserve(_ byteCount: UInt64, isGone: Bool) -> UInt64? {
        var offset = current.next_offset
        if isGone {
            guard offset <= Self.mostBytes else { return nil }
            set(nextOffset: offset + byteCount)
        } else {
            guard nextOffset != nil, let word = word(\.next_offset), recorder_add(word, byteCount, &offset) == 0 else { return nil }
        }
        return offset <= Self.mostBytes ? offset : nil
    }

    /// Also of a file that is not mapped here: another user's.
    func write<Value: FixedWidthInteger>(_ value: Value, to field: PartialKeyPath<trace_file_header>) {
        var value = value.littleEndian
        pwrite(file, &value, MemoryLayout<Value>.size, off_t(MemoryLayout<trace_file_header>.offset(of: field)!))
    }

    private func set(_ field: PartialKeyPath<trace_file_header>, _ value: UInt64) {
        var info = stat(), value = value.littleEndian
        guard fstat(file, &info) == 0, info.st_size >= off_t(TRACE_HEADER_BYTES) else { return }
        pwrite(file, &value, MemoryLayout<UInt64>.size, off_t(MemoryLayout<trace_file_header>.offset(of: field)!))
    }

    /// Writes all of it there. False: the disk is full, or the file cannot be written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
        writeWhole(bytes, to: file, at: off_t(offset)) == 0
    }

    /// The field lies in the page and is aligned (layout.c asserts its offset).
    private func word(_ field: PartialKeyPath<trace_file_header>) -> UnsafeMutablePointer<UInt64>? {
        page.map { ($0 + MemoryLayout<trace_file_header>.offset(of: field)!).assumingMemoryBound(to: UInt64.self) }
    }
}
