// The space of the trace file: who gets which range, how long the file is, and how a range is mapped and written.
//
// The file is always longer than what is used, by a hole (up to `fileLength`). A range in it is mapped without a descriptor: mremap(2)
// of an old size of 0 maps the file of a shared mapping once more, here that of `anchor`, and MADV_POPULATE_WRITE has the
// file system allocate its pages, or say that it cannot. So the file can be recorded to when it can no longer be opened,
// because the program has given up its privileges or changed its root directory. Only to make it longer, once in a while,
// and to write a full chunk, which costs a fifth of mapping new pages, it is opened by name (FileJob.swift).
import CSupport
import CTraceLayout

enum TraceSpace {
    /// The file's first page, not to be touched: what is to be mapped without a descriptor is derived from it.
    nonisolated(unsafe) private static var anchor = 0
    /// The file is at least so long.
    nonisolated(unsafe) private static var fileLength: UInt64 = 0
    nonisolated(unsafe) private static var lock = Lock()
    /// The file is being cut, or was.
    nonisolated(unsafe) private static var isEnding = false
    /// False: this kernel has no MADV_POPULATE_WRITE (Linux 5.14), and pages are allocated by fallocate(2).
    nonisolated(unsafe) private static var populates = true
    /// False: an emulator of user programs (qemu, valgrind). It takes any advice, does not know what mremap(2) does with an old size of 0,
    /// and knows threads only as libc makes them.
    nonisolated(unsafe) private(set) static var isRealKernel = true
    /// True if something that may come back was lacking when space was last asked for: memory, tasks, a full table of files. The next
    /// `patience` requests are refused.
    nonisolated(unsafe) private static var isWanting = false
    nonisolated(unsafe) private static var patience = 0
    private static let mostPatience = 1000
    /// 1: a thread tries it. Of ranges that are reserved at the same time only the last could be given back.
    nonisolated(unsafe) private static var isTried: UInt32 = 0

    private static let leastAhead: UInt64 = 128 << 10, mostAhead: UInt64 = 64 << 20
    /// Bytes that a program that gives up privileges may still record.
    private static let farAhead: UInt64 = 1 << 30

    /// The file has just been made, and is this process's alone.
    static func begin(anchor mapped: Int, length: UInt64) {
        anchor = mapped
        fileLength = length
        isEnding = false
        settle(isWanting: false)
        isRealKernel =
            SystemCall.call(SystemCall.madvise, anchor, Memory.pageBytes, 0x7fff_ffff) == -Failure.invalid
            && tracer_is_under_valgrind() == 0
    }
    /// The hole at the beginning: no more than the file may have.
    static var firstLength: UInt64 {
        ahead(of: UInt64(TRACE_HEADER_BYTES), by: leastAhead)
    }

    /// In a forked child: another thread of the parent may have held the lock.
    static func becomeChild() {
        lock = Lock()
        abandon()
    }
    static func abandon() {
        Memory.release(UnsafeMutableRawPointer(bitPattern: anchor), Memory.pageBytes)
        anchor = 0
        fileLength = 0
    }

    // MARK: - Ranges

    /// A range of the file that nobody else gets. Mappings begin and end on a page.
    static func reserve(_ byteCount: Int) -> UInt64 {
        tracer_atomic_add(&TraceOutput.header.pointee.next_offset, UInt64(Memory.wholePages(byteCount)))
    }

    /// A range that nothing was put into, unless the next one is taken: while the file cannot be had, each attempt would make it longer.
    static func giveBack(_ offset: UInt64, _ byteCount: Int) {
        let end = offset &+ UInt64(Memory.wholePages(byteCount))
        _ = tracer_exchange_64(&TraceOutput.header.pointee.next_offset, end, offset)
    }

    /// True when `byteCount` more would pass the size limit.
    static func wouldExceedLimit(_ byteCount: Int) -> Bool {
        let limit = Limits.fileBytes
        return limit != 0 && TraceOutput.header.pointee.next_offset &+ UInt64(byteCount) > limit
    }

    /// A range, allocated on disk (so that a full disk cannot raise SIGBUS later) and mapped: a new one, or the one at
    /// `old`, which a ring writes over and which is cleared first. nil: recording has stopped, or it cannot be had now.
    static func map(_ byteCount: Int, over old: UInt64? = nil) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        if !mayHaveSpace() { return nil }
        let offset = old ?? reserve(byteCount)
        guard let start = map(offset, byteCount) else {
            if old == nil { giveBack(offset, byteCount) }
            return nil
        }
        if old != nil { clearChunk(start, byteCount) }
        return (start, offset)
    }
    private static func map(_ offset: UInt64, _ byteCount: Int) -> UnsafeMutableRawPointer? {
        let result = mapped(offset, byteCount)
        if failed(result) {
            giveUp(result)
            return nil
        }
        settle(isWanting: false)
        tracer_mapping_add(UnsafeMutableRawPointer(bitPattern: result), UInt64(byteCount))
        return UnsafeMutableRawPointer(bitPattern: result)
    }

    /// A range that `tracer record` has reserved and allocated. As in one that it has prepared, pages come one by one, as they are touched: all
    /// at once they take 8 to 12 us each (ext4). nil: it cannot be had.
    static func mapAllocated(_ offset: UInt64, _ byteCount: Int) -> UnsafeMutableRawPointer? {
        if !TraceOutput.isWritable || !isRealKernel || TraceOutput.loss() != nil { return nil }
        let result = mapAgain(offset, byteCount)
        if failed(result) { return nil }
        tracer_mapping_add(UnsafeMutableRawPointer(bitPattern: result), UInt64(byteCount))
        return UnsafeMutableRawPointer(bitPattern: result)
    }

    private static func mapped(_ offset: UInt64, _ byteCount: Int) -> Int {
        if let gone = TraceOutput.loss() { return -gone }
        let end = offset &+ UInt64(byteCount)
        tracer_fence() // the range is taken before the file's length is looked at: see cut
        var result = extendFile(to: end)
        if result == 0 && isRealKernel && isPrepared(end) { return mapAgain(offset, byteCount) }
        if result == 0 && populates && isRealKernel {
            result = mapAgain(offset, byteCount)
            if !failed(result) {
                let error = Memory.populate(UnsafeMutableRawPointer(bitPattern: result)!, byteCount)
                if error == 0 { return result }
                if error == -Failure.invalid { populates = false }
                Memory.release(UnsafeMutableRawPointer(bitPattern: result), byteCount)
            }
        }
        // Allocating shows what is wrong with the disk.
        var job = FileJob(.map, at: offset, byteCount)
        job.run()
        if job.isOpened {
            if job.result < 0 { return job.result }
            noteLength(end)
            if !isPrepared(end) { Memory.populate(UnsafeMutableRawPointer(bitPattern: job.result)!, byteCount) }
            return job.result
        }
        // It cannot be opened. Without MADV_POPULATE_WRITE nobody promises these pages; see MappingFaults.
        if !populates && isRealKernel && end <= fileLength { return mapAgain(offset, byteCount) }
        return job.result
    }

    /// A range of the file that is there already, without a descriptor; its address or minus an errno.
    private static func mapAgain(_ offset: UInt64, _ byteCount: Int) -> Int {
        let whole = SystemCall.call(SystemCall.mremap, anchor, 0, Int(offset) &+ byteCount, Mapping.mayMove)
        if failed(whole) { return whole }
        if offset > 0 { Memory.release(UnsafeMutableRawPointer(bitPattern: whole), Int(offset)) }
        let start = whole &+ Int(offset)
        let result = SystemCall.call(SystemCall.mprotect, start, byteCount, Memory.readWrite)
        if failed(result) {
            Memory.release(UnsafeMutableRawPointer(bitPattern: start), byteCount)
            return result
        }
        return start
    }

    /// True if pages of memory can be exchanged for the file's.
    static var canMapOver: Bool { isRealKernel && populates }
    /// Memory that holds a whole chunk becomes the file's, at the same address. False: it is memory as before, and written or lost.
    static func mapOver(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
        if !mayHaveSpace() { return false }
        let offset = reserve(byteCount), header = chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee
        let written = write(chunk, byteCount, header, at: offset)
        if written == .nothing { giveBack(offset, byteCount) }
        if written != .all { return false }
        let result = mapAgain(offset, byteCount)
        guard !failed(result), let pages = UnsafeMutableRawPointer(bitPattern: result) else { return false }
        if !Memory.move(pages, byteCount, to: UInt64(bits(chunk))) {
            Memory.release(pages, byteCount)
            return false
        }
        tracer_mapping_add(chunk, UInt64(byteCount))
        return true
    }

    /// The magic first: from there on nothing of it is read.
    static func clearChunk(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int) {
        tracer_store_release_32(&chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee.magic, 0)
        (chunk + 4).initializeMemory(as: UInt8.self, repeating: 0, count: byteCount &- 4)
    }

    @inline(never) static func unmap(_ address: UnsafeMutableRawPointer, _ byteCount: Int) {
        tracer_mapping_remove(address)
        Memory.release(address, byteCount)
    }

    /// How much of a chunk came into its range; less than all: recording has stopped, or it cannot be done now.
    enum Written { case all, part, nothing }
    /// Writes a closed chunk, for which there may be space.
    static func write(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int, _ header: trace_chunk_header, at offset: UInt64) -> Written {
        let end = offset &+ UInt64(byteCount)
        var job = FileJob(.write, at: offset, byteCount)
        job.bytes = chunk
        job.header = header
        if end > fileLength && !isPrepared(end) { job.length = ahead(of: end, by: ahead(of: end)) }
        job.run()
        tracer_fence() // order: the chunk is written, in a range taken before, and then what cut sets is looked at
        if isEnding { // it may have been cut off: once more, when the cut is over
            lock.lock()
            job.length = 0
            job.run()
            lock.unlock()
        }
        if job.isOpened && job.result >= 0 {
            settle(isWanting: false)
            noteLength(end)
            lengthen(to: max(end, job.length))
            return .all
        }
        if job.isOpened {
            giveUp(job.result)
            return .part
        }
        return copy(chunk, byteCount, header, at: offset) ? .all : .nothing
    }

    /// The same through a mapping, for a file that cannot be opened.
    private static func copy(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int, _ header: trace_chunk_header, at offset: UInt64) -> Bool {
        guard let address = map(offset, byteCount) else { return false }
        clearChunk(address, byteCount)
        let headerBytes = MemoryLayout<trace_chunk_header>.size
        var head = header
        head.magic = 0
        address.copyMemory(from: &head, byteCount: headerBytes)
        (address + headerBytes).copyMemory(from: chunk + headerBytes, byteCount: byteCount &- headerBytes)
        tracer_store_release_32(&address.assumingMemoryBound(to: trace_chunk_header.self).pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
        unmap(address, byteCount)
        noteLength(offset &+ UInt64(byteCount))
        return true
    }

    // MARK: - Length

    private static func isPrepared(_ end: UInt64) -> Bool { end <= tracer_load_acquire(&TraceOutput.header.pointee.prepared_offset) }

    /// 0 when the file reaches there, or minus an errno.
    private static func extendFile(to end: UInt64) -> Int {
        if end <= fileLength || isPrepared(end) { return 0 }
        lock.lock()
        defer { lock.unlock() }
        if end <= fileLength || isPrepared(end) { return 0 }
        return grow(to: ahead(of: end, by: ahead(of: end)), atLeast: end)
    }
    /// Lock held.
    private static func grow(to length: UInt64, atLeast end: UInt64) -> Int {
        var job = FileJob(.allocate, at: length &- UInt64(Memory.pageBytes), Memory.pageBytes)
        job.run()
        if job.isOpened && job.result != 0 && length > end { // a full disk may have what is needed now
            job = FileJob(.allocate, at: end &- UInt64(Memory.pageBytes), Memory.pageBytes)
            job.run()
            if job.isOpened && job.result == 0 { fileLength = end }
        } else if job.isOpened && job.result == 0 {
            fileLength = length
        }
        return job.result
    }
    private static func lengthen(to length: UInt64) {
        if length <= fileLength { return }
        lock.lock()
        fileLength = max(fileLength, length)
        lock.unlock()
    }

    private static func ahead(of end: UInt64) -> UInt64 { min(max(end, leastAhead), mostAhead) }
    /// Whole pages, within the size limit and RLIMIT_FSIZE.
    private static func ahead(of end: UInt64, by bytes: UInt64) -> UInt64 {
        let page = UInt64(Memory.pageBytes)
        var length = FileJob.allocates ? end &+ bytes : end
        if Limits.fileBytes != 0 { length = min(length, Limits.fileBytes) }
        length = min(length, FileJob.sizeLimit) & ~(page &- 1)
        return max(length, (end &+ page &- 1) & ~(page &- 1))
    }

    /// The program is about to give up what lets the agent open the file.
    static func reachFarAhead() {
        if !TraceOutput.isWritable || anchor == 0 { return }
        let used = TraceOutput.header.pointee.next_offset
        if fileLength >= used &+ farAhead / 2 { return }
        lock.lock()
        _ = grow(to: ahead(of: used, by: farAhead), atLeast: ahead(of: used, by: ahead(of: used)))
        lock.unlock()
    }

    /// At the end: what nobody has reserved is given back. Not where `tracer record` prepares the file: it cuts it itself.
    /// Who reserves a range from now on finds no space and waits for the lock; who is writing writes once more.
    static func cut() {
        if anchor == 0 || tracer_load_acquire(&TraceOutput.header.pointee.prepared_offset) != 0 { return }
        lock.lock()
        defer { lock.unlock() }
        let length = fileLength
        isEnding = true
        fileLength = 0
        tracer_fence()
        let used = TraceOutput.header.pointee.next_offset // more than the file has, where that was refused
        if used >= length { return }
        var job = FileJob(.cut, at: used, 0)
        job.run()
    }

    /// Space is taken before the file is used there, and a thread may be killed in between: so `next_offset` does not
    /// show whether a file was cut.
    private static func noteLength(_ end: UInt64) {
        tracer_atomic_max(&TraceOutput.header.pointee.extended_offset, end)
    }

    // MARK: - Failure

    /// False: recording has stopped, or just now there was none. Asked before a range is reserved.
    static func mayHaveSpace() -> Bool {
        if !TraceOutput.isWritable { return false }
        if !isWanting { return true }
        patience &-= 1 // threads do so beside each other, and may pass 0
        if patience > 0 { return false }
        patience = mostPatience
        return tracer_exchange(&isTried, 0, 1) != 0
    }
    private static func settle(isWanting wanting: Bool) {
        isWanting = wanting
        if isTried != 0 { tracer_store_release_32(&isTried, 0) }
    }

    /// Handles a failure: one that passes is waited for; any other ends the recording.
    private static func giveUp(_ result: Int) {
        switch -result {
        case Failure.again, Failure.fileTable, Failure.descriptors, Failure.interrupted:
            patience = mostPatience
            settle(isWanting: true)
        case Failure.noEntry, Failure.loop: TraceOutput.stop(TRACE_STOP_FILE, -result)
        case Failure.memory: TraceOutput.stop(TRACE_STOP_MEMORY, -result)
        case Failure.access, Failure.permitted, Failure.notDirectory: TraceOutput.stop(TRACE_STOP_OUT_OF_REACH, -result)
        case Failure.tooBig: TraceOutput.stop(TRACE_STOP_FILE_SIZE, -result)
        case Failure.quota: TraceOutput.stop(TRACE_STOP_QUOTA, -result)
        case Failure.space: TraceOutput.stop(TRACE_STOP_SPACE, -result)
        default: TraceOutput.stop(TRACE_STOP_FILE, -result)
        }
    }
}
