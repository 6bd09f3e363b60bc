// Work that needs a descriptor of the trace file. A descriptor in the program's table, be it for a microsecond, can be inherited by a
// child that another thread forks, can be closed by a thread that closes all it does not know, and its number is then the program's
// next file. And there may be none left. If there are other threads, a task of our own therefore does it: a clone(2) that shares memory
// and none of the descriptors, while the calling thread waits. If there is no other thread nobody can look, and the thread does it
// itself.
//
// The task of a process that `tracer record` has started is a process beside it, and the recorder's child: the program sees it neither
// among its threads nor among its children. Elsewhere that parent would be somebody who knows nothing of it, and the task is a thread.
import CSupport
import CTraceLayout

struct FileJob {
    enum Kind { case create, map, allocate, write, read, cut, other }
    var kind: Kind
    var offset: UInt64
    var byteCount: Int
    /// The file is to be made at least so long, by a hole where `kind` does not need it yet.
    var length: UInt64 = 0
    /// Bytes of a created file that will be used in any case.
    var written = 0
    /// The bytes of a chunk that is written, and the header to put before them.
    var bytes: UnsafeMutableRawPointer? = nil
    var header = trace_chunk_header()
    /// Work with other files, done with the task's descriptors instead of all that is said here of the trace.
    var work: (@convention(c) () -> Void)? = nil

    /// 0 or more, or minus an errno: the file could not be opened when `isOpened` says so.
    private(set) var result = 0
    private(set) var isOpened = false
    /// Status of a created file, and a mapping of its first page that is not to be touched.
    private(set) var status: FileStatus?
    private(set) var anchor = 0

    /// False: no fallocate(2) (FAT, NFS before 4.2). Some of these have no holes either, and would fill a gigabyte with zeros.
    nonisolated(unsafe) private(set) static var allocates = true
    /// Linux 5.9: an empty table of descriptors for the task, without a copy of the program's.
    nonisolated(unsafe) private static var emptiesTable = true

    /// `tracer record`, if it may be this process's parent; 0: it is not.
    nonisolated(unsafe) static var recorder: UInt64 = 0

    init(_ kind: Kind, at offset: UInt64, _ byteCount: Int) {
        self.kind = kind
        self.offset = offset
        self.byteCount = byteCount
    }

    mutating func run() {
        if !TraceSpace.isRealKernel { return perform() }
        if Process.isOnlyThread {
            perform()
            if isOpened || result != -Failure.descriptors { return }
        }
        if FileJob.emptiesTable {
            if !runApart(sharingTable: true) { return }
            if isOpened || result != -Failure.noSystemCall { return }
            FileJob.emptiesTable = false
        }
        _ = runApart(sharingTable: false)
    }

    /// False when there is no such task to be had; `result` says why.
    private mutating func runApart(sharingTable: Bool) -> Bool {
        result = 0
        isOpened = false
        // Not the caller's: at the end of the process it is the program's own, which may be as small as there is.
        guard let stack = Memory.pages(FileJob.stackBytes) else {
            result = -Failure.again
            return false
        }
        defer { Memory.release(stack, FileJob.stackBytes) }
        var running: UInt32 = 0, started = -Failure.invalid
        if FileJob.isRecordersChild { started = start(FileJob.sibling, sharingTable, &running, stack) }
        // The first process of a namespace has no siblings (clone(2), EINVAL).
        if failed(started) { started = start(FileJob.thread, sharingTable, &running, stack) }
        if failed(started) {
            result = started
            return false
        }
        FileJob.latestTask = started
        withUnsafeMutablePointer(to: &running) {
            while true {
                let number = tracer_load_32($0)
                if number == 0 { break }
                _ = SystemCall.call(SystemCall.futex, bits($0), Futex.wait, Int(number), 0)
            }
        }
        return true
    }
    private mutating func start(
        _ flags: Int, _ sharingTable: Bool, _ running: UnsafeMutablePointer<UInt32>, _ stack: UnsafeMutableRawPointer
    ) -> Int {
        withUnsafeMutablePointer(to: &self) {
            sharingTable
                ? tracer_run_apart(
                    { FileJob.performInEmptyTable($0!) }, $0, flags | Clone.files, running, stack + FileJob.stackBytes)
                : tracer_run_apart({ FileJob.performInCopiedTable($0!) }, $0, flags, running, stack + FileJob.stackBytes)
        }
    }
    private static let shared = Clone.memory | Clone.directories | Clone.parentNumber | Clone.clearNumber
    /// Not vfork: gdb takes that for another process.
    private static let thread = shared | Clone.handlers | Clone.thread | Clone.semaphores
    private static let sibling = shared | Clone.parent
    private static var isRecordersChild: Bool {
        recorder != 0 && UInt64(truncatingIfNeeded: SystemCall.call(SystemCall.getppid)) == recorder
    }
    private static let everyDescriptor = 0xffff_ffff
    private static let stackBytes = 65536 // the largest page of both architectures

    private static func performInEmptyTable(_ address: UnsafeMutableRawPointer) {
        let job = address.assumingMemoryBound(to: FileJob.self)
        nameTask()
        // CLOSE_RANGE_UNSHARE from the first one on: nothing is copied, and nothing of the program's is closed.
        if failed(SystemCall.call(SystemCall.closeRange, 0, everyDescriptor, 2)) {
            job.pointee.result = -Failure.noSystemCall
            return
        }
        job.pointee.perform()
    }
    private static func performInCopiedTable(_ address: UnsafeMutableRawPointer) {
        let job = address.assumingMemoryBound(to: FileJob.self)
        nameTask()
        job.pointee.perform()
        if job.pointee.isOpened || job.pointee.result != -Failure.descriptors { return }
        for number in 0..<8 { _ = SystemCall.call(SystemCall.close, number) } // in the copied table
        job.pointee.perform()
    }

    nonisolated(unsafe) private static var latestTask = 0
    /// The kernel reports a task's end before it takes it from the list of the process (kernel/exit.c, do_exit: exit_mm, exit_notify).
    /// In between it may have lost its processor to others, so who waits for long sleeps, a second in all.
    static func awaitEnd() {
        for turn in 0..<1_100 where latestTask > 0 {
            if failed(SystemCall.call(SystemCall.tgkill, Int(Process.pid), latestTask, 0)) { break }
            if turn < 100 { _ = SystemCall.call(SystemCall.sched_yield) } else { Memory.pause(1_000_000) }
        }
    }

    /// Who looks at threads from outside knows it for no thread of the program's.
    private static func nameTask() { _ = SystemCall.call(SystemCall.prctl, Control.setName, bits(agentTask.utf8Start)) }
    private static var agentTask: StaticString { "libtracer" } // TRACE_AGENT_TASK, of which Swift makes a String

    // MARK: - With the descriptor

    private mutating func perform() {
        if let work {
            isOpened = true
            return work()
        }
        let descriptor = TraceOutput.open(kind == .create ? Open.readWrite | Open.create | Open.exclusive : Open.readWrite)
        if failed(descriptor) {
            result = descriptor
            return
        }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        status = FileStatus(ofDescriptor: descriptor)
        guard let status, kind == .create || TraceOutput.isOurs(status) else {
            result = -Failure.noEntry
            return
        }
        isOpened = true
        switch kind {
        case .create: result = create(descriptor)
        case .map: result = map(descriptor)
        case .allocate: result = FileJob.extend(descriptor, to: offset &+ UInt64(byteCount), from: offset)
        case .write: result = write(descriptor)
        case .read: result = SystemCall.call(SystemCall.pread64, descriptor, bits(bytes!), byteCount, Int(offset))
        case .other: break
        case .cut: result = SystemCall.call(SystemCall.ftruncate, descriptor, Int(offset))
        }
        if kind == .write && result >= 0 && length > 0 { extendFile(descriptor) }
    }

    /// The header's page, allocated and mapped, and the file's length. An errno: as if the file had never been.
    private mutating func create(_ descriptor: Int) -> Int {
        var made = map(descriptor)
        if made > 0 {
            // The first store through a mapping into a page of which the file system knows nothing costs 40 us (ext4), a page that is
            // written 1, and a store then nothing of the kind. On a full disk it is as without.
            if UInt64(written) <= length { _ = FileJob.writeZeros(descriptor, from: 0, to: UInt64(written)) }
            anchor = SystemCall.call(SystemCall.mmap, 0, byteCount, Memory.none, Mapping.shared, descriptor, 0)
            if failed(anchor) {
                Memory.release(UnsafeMutableRawPointer(bitPattern: made), byteCount)
                made = anchor
            }
        }
        if failed(made) {
            _ = SystemCall.call(SystemCall.unlinkat, SystemCall.currentDirectory, bits(TraceOutput.path), 0)
        } else if SystemCall.call(SystemCall.ftruncate, descriptor, Int(length)) != 0 {
            length = UInt64(byteCount)
        }
        return made
    }

    private func map(_ descriptor: Int) -> Int {
        let extended = FileJob.extend(descriptor, to: offset &+ UInt64(byteCount), from: offset)
        if extended != 0 { return extended }
        return SystemCall.call(SystemCall.mmap, 0, byteCount, Memory.readWrite, Mapping.shared, descriptor, Int(offset))
    }

    /// A header that says "void", what follows it, then the true header, so that a reader never sees the one without the
    /// other and always knows the size.
    private mutating func write(_ descriptor: Int) -> Int {
        if offset &+ UInt64(byteCount) > FileJob.sizeLimit { return -Failure.tooBig }
        let headerBytes = MemoryLayout<trace_chunk_header>.size, kind = header.kind
        header.kind = UInt16(TRACE_CHUNK_VOID)
        var done = writeHeader(descriptor)
        if done == 0 {
            done = FileJob.writeAll(descriptor, bytes! + headerBytes, byteCount &- headerBytes, offset &+ UInt64(headerBytes))
        }
        header.kind = kind
        return done == 0 ? writeHeader(descriptor) : done
    }
    private mutating func writeHeader(_ descriptor: Int) -> Int {
        let offset = offset
        return withUnsafeMutablePointer(to: &header) {
            FileJob.writeAll(descriptor, $0, MemoryLayout<trace_chunk_header>.size, offset)
        }
    }

    /// The last page alone: what is before it stays a hole.
    private mutating func extendFile(_ descriptor: Int) {
        let page = UInt64(Memory.pageBytes)
        if length > FileJob.sizeLimit || length < page
            || failed(SystemCall.call(SystemCall.fallocate, descriptor, 0, Int(length &- page), Int(page)))
        {
            length = 0
        }
    }

    /// 0 or minus an errno. RLIMIT_FSIZE is asked first: to pass it raises SIGXFSZ, which would kill the program.
    static func extend(_ descriptor: Int, to end: UInt64, from start: UInt64) -> Int {
        if end > sizeLimit { return -Failure.tooBig }
        let result = SystemCall.call(SystemCall.fallocate, descriptor, 0, Int(start), Int(end &- start))
        if result != -Failure.notSupported && result != -Failure.noSystemCall { return result }
        allocates = false
        return writeZeros(descriptor, from: start, to: end) // written ranges have their blocks
    }
    private static func writeZeros(_ descriptor: Int, from start: UInt64, to end: UInt64) -> Int {
        var zeros = InlineArray<4096, UInt8>(repeating: 0)
        var span = zeros.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            var offset = start
            while offset < end {
                let done = writeAll(descriptor, UnsafeMutableRawPointer($0.baseAddress!), Int(min(4096, end &- offset)), offset)
                if done != 0 { return done }
                offset &+= min(4096, end &- offset)
            }
            return 0
        }
    }
    /// RLIMIT_FSIZE.
    static var sizeLimit: UInt64 { ResourceLimit.soft(ResourceLimit.fileBytes) }
    private static func writeAll(_ descriptor: Int, _ start: UnsafeMutableRawPointer, _ count: Int, _ offset: UInt64) -> Int {
        var done = 0
        while done < count {
            let result = SystemCall.call(SystemCall.pwrite64, descriptor, bits(start + done), count &- done, Int(offset) &+ done)
            if failed(result) || result == 0 { return result == 0 ? -Failure.space : result }
            done &+= result
        }
        return 0
    }
}
