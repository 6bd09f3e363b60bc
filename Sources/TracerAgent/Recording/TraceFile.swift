// The file that this process writes. Only its first page stays mapped; chunks are mapped by who uses them. No
// descriptor stays open: a program counts, closes and inherits descriptors, so the file is opened by name for each
// chunk (a few microseconds per megabyte) and closed again.
import CSupport
import CTraceLayout

enum TraceFile {
    nonisolated(unsafe) static var header: UnsafeMutablePointer<trace_file_header>!
    nonisolated(unsafe) private(set) static var path: CText!
    nonisolated(unsafe) private static var pathRoom: UnsafeMutablePointer<UInt8>!
    nonisolated(unsafe) private static var device: UInt64 = 0
    nonisolated(unsafe) private static var inode: UInt64 = 0
    nonisolated(unsafe) static var isOpen = false
    /// False once recording has stopped for want of something: `stop` said why.
    nonisolated(unsafe) static var isWritable = false
    nonisolated(unsafe) private static var stopNumber = 0
    nonisolated(unsafe) private static var stopReported = false

    private static let pathCapacity = 8192
    #if arch(x86_64)
    private static let noFollow = 0o400000
    #elseif arch(arm64)
    private static let noFollow = 0o100000
    #endif
    private static let openFlags = 0o2000000 | noFollow // O_CLOEXEC | O_NOFOLLOW
    private static let readWrite = 2, create = 0o100, exclusive = 0o200, nonBlocking = 0o4000
    private static let currentDirectory = -100 // AT_FDCWD

    /// Creates the file and its header. False: one line was said, and nothing will be recorded.
    static func begin() -> Bool {
        isOpen = false
        isWritable = false
        stopReported = false
        if pathRoom == nil {
            guard let room = Memory.pages(pathCapacity) else { return false }
            pathRoom = room.assumingMemoryBound(to: UInt8.self)
        }
        var result = -Failure.exists
        for attempt in 0..<16 where result == -Failure.exists {
            buildPath(attempt)
            result = open(create | exclusive | readWrite)
            if result != -Failure.exists { break }
            switch standing() {
            case .stale:
                _ = SystemCall.call(SystemCall.unlinkat, currentDirectory, bits(path), 0)
                result = open(create | exclusive | readWrite)
            case .inUse: continue
            case .foreign(let reason): return refuse(-reason)
            }
        }
        if failed(result) { return refuse(result) }
        let mapped = firstPage(result)
        if let found = identity(ofDescriptor: result) { (device, inode) = found }
        _ = SystemCall.call(SystemCall.close, result)
        if failed(mapped) {
            _ = SystemCall.call(SystemCall.unlinkat, currentDirectory, bits(path), 0)
            return refuse(mapped)
        }
        header = UnsafeMutablePointer(bitPattern: mapped)
        tracer_mapping_add(header, UInt64(TRACE_HEADER_BYTES))
        fillHeader()
        isOpen = true
        isWritable = true
        return true
    }

    private static func refuse(_ result: Int) -> Bool {
        Message.say {
            $0.append("cannot create ")
            $0.append(contentsOf: path)
            $0.append(": ")
            $0.append(Failure.text(-result))
            $0.append("; set TRACER_OUT to a place that can be written. The program runs unrecorded")
        }
        return false
    }

    /// Allocates and maps page 0; the result is its address or minus an errno.
    private static func firstPage(_ descriptor: Int) -> Int {
        let allocated = extend(descriptor, to: UInt64(TRACE_HEADER_BYTES), from: 0)
        if allocated != 0 { return allocated }
        return SystemCall.call(SystemCall.mmap, 0, Int(TRACE_HEADER_BYTES), Memory.readWrite, 1, descriptor, 0)
    }

    private static func open(_ flags: Int) -> Int {
        SystemCall.call(SystemCall.openat, currentDirectory, bits(path), flags | openFlags, 0o600)
    }

    /// From the template; later attempts add the process id, if it is not there, and a number.
    private static func buildPath(_ attempt: Int) {
        var text = TextBuffer(pathRoom, capacity: pathCapacity)
        var isDefault: CText? = agent.settings.output
        let template: CText = isDefault ?? CText(StaticString("tracer.%e.%p.trace").utf8Start)
        isDefault = nil
        if template[0] != 0x2f {
            text.append(contentsOf: agent.directory)
            text.append(0x2f)
        }
        var n = 0, hasPid = false
        while template[n] != 0 {
            if template[n] == 0x25 && template[n &+ 1] == 0x70 {
                hasPid = true
                text.append(decimal: UInt64(agent.pid))
                n &+= 2
            } else if template[n] == 0x25 && template[n &+ 1] == 0x65 {
                text.append(contentsOf: baseName(agent.program))
                n &+= 2
            } else {
                if template[n] == 0x25 && template[n &+ 1] == 0x25 { n &+= 1 }
                text.append(template[n])
                n &+= 1
            }
        }
        if attempt > 0 { addNumber(attempt, hasPid, &text) }
        path = CText(pathRoom)
    }

    /// app.trace becomes app.4711.trace, app.4711.2.trace and so on.
    private static func addNumber(_ attempt: Int, _ hasPid: Bool, _ text: inout TextBuffer) {
        let hasExtension = text.removeSuffix(".trace")
        if !hasPid {
            text.append(0x2e)
            text.append(decimal: UInt64(agent.pid))
        }
        let number = hasPid ? attempt &+ 1 : attempt
        if number > 1 {
            text.append(0x2e)
            text.append(decimal: UInt64(number))
        }
        if hasExtension { text.append(".trace") }
    }

    private enum Standing {
        case stale // the trace of a process that is gone: it is replaced
        case inUse // of one that lives, or of this one before it called exec: we take another name
        case foreign(Int)
    }

    /// What stands at `path`.
    private static func standing() -> Standing {
        let descriptor = open(nonBlocking)
        if failed(descriptor) { return .foreign(-descriptor) }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        if !isOrdinary(descriptor) { return .foreign(Failure.exists) } // a device or a FIFO reads as empty, too
        var old = trace_file_header()
        let size = MemoryLayout<trace_file_header>.size
        let count = withUnsafeMutablePointer(to: &old) { SystemCall.call(SystemCall.read, descriptor, bits($0), size) }
        if failed(count) { return .foreign(-count) }
        if count == 0 { return .stale }
        if count < size || !hasMagic(old) { return .foreign(Failure.exists) }
        let isGone = old.pid != agent.pid && SystemCall.call(SystemCall.kill, Int(old.pid), 0) == -3
        return isGone ? .stale : .inUse
    }

    /// st_mode of struct stat says that it is a regular file (inode(7)).
    private static func isOrdinary(_ descriptor: Int) -> Bool {
        var stat = InlineArray<32, UInt64>(repeating: 0)
        var span = stat.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            #if arch(x86_64)
            let place = 3 // after st_nlink
            #elseif arch(arm64)
            let place = 2
            #endif
            return SystemCall.call(SystemCall.fstat, descriptor, bits($0.baseAddress)) == 0 && $0[place] & 0o170000 == 0o100000
        }
    }

    private static let magic: StaticString = "TRACER\u{1a}\n"
    private static func hasMagic(_ header: trace_file_header) -> Bool {
        var copy = header.magic
        return withUnsafeBytes(of: &copy) { bytes in
            for n in 0..<8 where bytes[n] != magic.utf8Start[n] { return false }
            return true
        }
    }

    private static func fillHeader() {
        header.pointee.version = UInt32(TRACE_VERSION)
        header.pointee.header_bytes = UInt32(TRACE_HEADER_BYTES)
        header.pointee.machine = Machine.elfNumber
        header.pointee.page_bytes = UInt32(agent.pageBytes)
        header.pointee.pid = agent.pid
        header.pointee.parent_pid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.getppid))
        header.pointee.clock = agent.clock
        header.pointee.mode = agent.settings.ring ? UInt32(TRACE_MODE_RING) : UInt32(TRACE_MODE_FULL)
        header.pointee.ticks_per_second = agent.ticksPerSecond
        header.pointee.first = Clock.sample()
        header.pointee.last = header.pointee.first
        header.pointee.first_realtime_ns = Clock.realtime()
        header.pointee.next_offset = UInt64(max(Int(TRACE_HEADER_BYTES), agent.pageBytes))
        header.pointee.extended_offset = UInt64(TRACE_HEADER_BYTES)
        header.pointee.size_limit = agent.settings.sizeLimit
        header.pointee.minimum_ticks = agent.minimumTicks
        header.pointee.maximum_depth = agent.settings.maximumDepth
        header.pointee.leaf_cost = agent.leafCost
        header.pointee.inside_cost = agent.insideCost
        header.pointee.flags = agent.flags
        header.pointee.session = agent.settings.session
        withUnsafeMutableBytes(of: &header.pointee.magic) { bytes in
            for n in 0..<8 { bytes[n] = magic.utf8Start[n] }
        }
    }

    // MARK: - Chunks

    /// A range of the file that nobody else gets.
    static func reserve(_ byteCount: Int) -> UInt64 {
        tracer_atomic_add(&header.pointee.next_offset, UInt64(byteCount))
    }

    /// True when `byteCount` more would pass TRACER_MAXSIZE.
    static func wouldExceedLimit(_ byteCount: Int) -> Bool {
        let limit = agent.settings.sizeLimit
        return limit != 0 && header.pointee.next_offset &+ UInt64(byteCount) > limit
    }

    /// A range, allocated on disk (so that a full disk cannot raise SIGBUS later) and mapped: a new one, or the one at
    /// `old`, which a ring writes over and which is cleared first. nil: recording has stopped.
    static func map(_ byteCount: Int, over old: UInt64? = nil) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        if !isWritable { return nil }
        let offset = old ?? reserve(byteCount)
        let descriptor = reopen()
        if failed(descriptor) { return nil }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        if old == nil && offset &+ UInt64(byteCount) > tracer_load_acquire(&header.pointee.prepared_offset) {
            let result = extend(descriptor, to: offset &+ UInt64(byteCount), from: offset)
            if result != 0 {
                stop(TRACE_STOP_SPACE, -result)
                return nil
            }
            noteLength(offset &+ UInt64(byteCount))
        }
        let address = SystemCall.call(SystemCall.mmap, 0, byteCount, Memory.readWrite, 1, descriptor, Int(offset))
        if failed(address) {
            stop(TRACE_STOP_MEMORY, -address)
            return nil
        }
        tracer_mapping_add(UnsafeMutableRawPointer(bitPattern: address), UInt64(byteCount))
        let start = UnsafeMutableRawPointer(bitPattern: address)!
        Memory.populate(start, byteCount)
        if old != nil { clearChunk(start, byteCount) }
        return (start, offset)
    }

    /// The magic first: from there on nothing of it is read.
    static func clearChunk(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int) {
        tracer_store_release_32(&chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee.magic, 0)
        (chunk + 4).initializeMemory(as: UInt8.self, repeating: 0, count: byteCount &- 4)
    }

    static func unmap(_ address: UnsafeMutableRawPointer, _ byteCount: Int) {
        tracer_mapping_remove(address)
        Memory.release(address, byteCount)
    }

    /// Writes a closed chunk: a header that says "void", what follows it, then the true header, so that a reader never
    /// sees the one without the other and always knows the size. False: recording has stopped.
    static func write(_ chunk: UnsafeMutableRawPointer, _ byteCount: Int, _ header: trace_chunk_header,
                      at offset: UInt64) -> Bool {
        if !isWritable { return false }
        let descriptor = reopen()
        if failed(descriptor) { return false }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        let headerBytes = MemoryLayout<trace_chunk_header>.size
        let end = offset &+ UInt64(byteCount)
        if end > fileSizeLimit() {
            stop(TRACE_STOP_SPACE, Failure.tooBig)
            return false
        }
        var head = header
        head.kind = UInt16(TRACE_CHUNK_VOID)
        let isOpen = withUnsafeMutablePointer(to: &head) { writeAll(descriptor, $0, headerBytes, offset) }
            && writeAll(descriptor, chunk + headerBytes, byteCount &- headerBytes, offset &+ UInt64(headerBytes))
        head.kind = header.kind
        guard isOpen, withUnsafeMutablePointer(to: &head, { writeAll(descriptor, $0, headerBytes, offset) }) else { return false }
        noteLength(end)
        return true
    }
    private static func writeAll(_ descriptor: Int, _ start: UnsafeMutableRawPointer, _ count: Int, _ offset: UInt64) -> Bool {
        var done = 0
        while done < count {
            let result = SystemCall.call(SystemCall.pwrite64, descriptor, bits(start + done), count &- done, Int(offset) &+ done)
            if failed(result) || result == 0 {
                stop(TRACE_STOP_SPACE, result == 0 ? Failure.space : -result)
                return false
            }
            done &+= result
        }
        return true
    }

    /// The file by its name, if it is still the same file.
    private static func reopen() -> Int {
        let descriptor = open(readWrite)
        if failed(descriptor) {
            stop(TRACE_STOP_FILE, -descriptor)
            return descriptor
        }
        if let (nowDevice, nowInode) = identity(ofDescriptor: descriptor), nowDevice == device, nowInode == inode {
            return descriptor
        }
        _ = SystemCall.call(SystemCall.close, descriptor)
        stop(TRACE_STOP_FILE, Failure.noEntry)
        return -Failure.noEntry
    }

    private static func fileSizeLimit() -> UInt64 {
        var limit: (soft: UInt64, hard: UInt64) = (.max, .max)
        _ = withUnsafeMutablePointer(to: &limit) { SystemCall.call(SystemCall.prlimit64, 0, 1, 0, bits($0)) }
        return limit.soft
    }

    /// 0 or minus an errno. RLIMIT_FSIZE is asked first: to pass it raises SIGXFSZ, which would kill the program.
    private static func extend(_ descriptor: Int, to end: UInt64, from start: UInt64) -> Int {
        if end > fileSizeLimit() { return -Failure.tooBig }
        let result = SystemCall.call(SystemCall.fallocate, descriptor, 0, Int(start), Int(end &- start))
        if result != -Failure.notSupported && result != -Failure.noSystemCall { return result }
        return writeZeros(descriptor, from: start, to: end)
    }
    /// Space is taken before the file is made longer, and a thread may be killed in between: so `next_offset` does not
    /// tell whether a file was cut.
    private static func noteLength(_ end: UInt64) {
        tracer_atomic_max(&header.pointee.extended_offset, end)
    }
    /// No fallocate on this file system: what is written has its blocks.
    private static func writeZeros(_ descriptor: Int, from start: UInt64, to end: UInt64) -> Int {
        var zeros = InlineArray<4096, UInt8>(repeating: 0)
        var span = zeros.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            var place = start
            while place < end {
                let result = SystemCall.call(SystemCall.pwrite64, descriptor, bits($0.baseAddress),
                                             Int(min(4096, end &- place)), Int(place))
                if failed(result) { return result }
                if result == 0 { return -Failure.space }
                place &+= UInt64(result)
            }
            return 0
        }
    }

    /// Recording ends here, the program goes on. Safe with any lock held: the line is said by `reportStop`.
    static func stop(_ reason: some BinaryInteger, _ number: Int) {
        if !isWritable { return }
        isWritable = false
        stopNumber = number
        header.pointee.stop_reason = UInt32(truncatingIfNeeded: reason)
        header.pointee.state = UInt32(TRACE_STOPPED)
        tracer_process_page().pointee.dropping = 1
        tracer_store_release_32(&tracer_process_page().pointee.enabled, 0)
    }

    /// From here on the agent makes no system call that the program might not be allowed.
    static var isConfined: Bool { tracer_confinement().pointee != 0 }

    /// Says once why recording stopped. No lock may be held.
    static func reportStop() {
        if isWritable || !isOpen || stopReported { return }
        stopReported = true
        ThreadRecorder.leaveFastPath()
        Message.say {
            $0.append("recording stopped, ")
            if header.pointee.stop_reason == UInt32(TRACE_STOP_LIMIT) {
                $0.append("TRACER_MAXSIZE reached")
            } else if let confinement = Confinement(rawValue: header.pointee.stop_reason) {
                $0.append(confinement.text)
            } else {
                $0.append(stopNumber == Failure.noEntry ? "the file is gone" : Failure.text(stopNumber))
            }
            $0.append(": ")
            $0.append(contentsOf: path)
            $0.append(". The program goes on; what was recorded until now is kept")
        }
    }

    /// Counts a call that could not be written.
    static func drop(_ count: UInt64 = 1) {
        if isOpen { _ = tracer_atomic_add(&header.pointee.dropped, count) }
    }

    /// A forked child lets go of its parent's file.
    static func abandon() {
        if isOpen { unmap(header, Int(TRACE_HEADER_BYTES)) }
        isOpen = false
        isWritable = false
    }

    /// Events are in the page cache as they are made. MS_ASYNC would do nothing (msync(2)), and waiting for the disk is not
    /// asked for: only what the header says of the time is behind.
    static func flush() {
        if isOpen { header.pointee.last = Clock.sample() }
    }

    /// The orderly end. Other threads may still be writing: only what nobody has reserved is given back.
    static func end() {
        if !isOpen { return }
        header.pointee.last = Clock.sample()
        if header.pointee.state == UInt32(TRACE_RECORDING) {
            header.pointee.state = UInt32(TRACE_FINISHED)
        }
    }
}
