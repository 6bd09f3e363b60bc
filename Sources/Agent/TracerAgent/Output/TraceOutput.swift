// The file that this process writes: made with its header, given up, ended. Only its first page stays mapped; chunks are
// mapped by who uses them (TraceSpace.swift). No descriptor stays open: a program counts, closes and inherits descriptors.
import CSupport
import CTraceLayout

enum TraceOutput {
    /// Header of the file. In a forked child for which no file can be made: its parent's, in which what is lost is counted.
    nonisolated(unsafe) private(set) static var header: UnsafeMutablePointer<trace_file_header>!
    /// While the agent is detached: there a thread on its way through it still finds the last file's header, and then the next file's.
    nonisolated(unsafe) private static var place: UnsafeMutablePointer<trace_file_header>?
    nonisolated(unsafe) private(set) static var path: CText!
    nonisolated(unsafe) private static var status: FileStatus?
    nonisolated(unsafe) private static var root: FileStatus?
    nonisolated(unsafe) private static var mounts: FileStatus?
    nonisolated(unsafe) private(set) static var isOpen = false
    /// False once recording has stopped for want of something: `stop` said why.
    nonisolated(unsafe) private(set) static var isWritable = false
    /// Values for the header of every file of this process.
    nonisolated(unsafe) static var flags: UInt32 = 0
    nonisolated(unsafe) static var session: UInt64 = 0
    /// Cost of recording a call, as the header has it; 0 unknown (Calibration.swift).
    struct Cost {
        var leaf: UInt32 = 0, inside: UInt32 = 0, leafError: UInt32 = 0, insideError: UInt32 = 0
    }
    nonisolated(unsafe) static var cost = Cost()

    static func writeCost() {
        header.pointee.leaf_cost = cost.leaf
        header.pointee.inside_cost = cost.inside
        header.pointee.leaf_error = cost.leafError
        header.pointee.inside_error = cost.insideError
    }
    nonisolated(unsafe) private static var stopNumber = 0
    nonisolated(unsafe) private static var stopReported = false

    /// Creates the file and its header. False: one line was said, and nothing will be recorded.
    static func begin() -> Bool {
        var obstacle = 0, result = -Failure.exists, number = 0, rounds = 0
        while result == -Failure.exists {
            guard let name = TraceName.make(number) else { return false }
            path = name
            result = make()
            if result != -Failure.exists { break }
            switch TraceName.holder(of: path) {
            case .ended:
                _ = SystemCall.call(SystemCall.unlinkat, SystemCall.currentDirectory, bits(path), 0)
                result = make()
            case .process: break
            case .somethingElse(let reason):
                if obstacle == 0 { obstacle = reason }
            }
            // Another process may take the name that was found free: one of them gets it.
            rounds &+= 1
            if rounds == mostRounds { break }
            number = number < lastTriedInTurn ? number &+ 1 : TraceName.freeNumber(after: number)
        }
        if failed(result) { return refuse(obstacle == 0 ? -result : obstacle) }
        header = UnsafeMutablePointer(bitPattern: result)
        if let last = place {
            place = nil
            if Memory.move(header, Memory.pageBytes, to: UInt64(bits(last))) { header = last }
        }
        tracer_mapping_add(header, UInt64(TRACE_HEADER_BYTES))
        fillHeader()
        tracer_set_control(&header.pointee.control)
        isOpen = true
        isWritable = true
        stopReported = false
        root = FileStatus(of: "/")
        mounts = FileStatus(of: mountNamespace)
        if obstacle != 0 { warnOfOtherName(obstacle) }
        return true
    }
    /// Names up to this number are tried one after the other: an ended process may have one. Beyond, the first that is free is looked for.
    private static let lastTriedInTurn = 15
    /// As many processes as may begin in one directory under one name at the same time: the first processes of that many namespaces.
    private static let mostRounds = 4096
    private static let mountNamespace: StaticString = "/proc/self/ns/mnt"

    private static func make() -> Int {
        var job = FileJob(.create, at: 0, Memory.pageBytes)
        job.length = TraceSpace.firstLength
        job.written = Memory.wholePages(Int(TRACE_HEADER_BYTES)) &+ Memory.wholePages(MetadataWriter.firstPiece) &+ ChunkSize.first
        job.run()
        if !job.isOpened || job.result < 0 { return job.result }
        status = job.status
        TraceSpace.begin(anchor: job.anchor, length: max(job.length, UInt64(Memory.pageBytes)))
        return job.result
    }

    private static func refuse(_ number: Int) -> Bool {
        Message.warn {
            $0.append("cannot create ")
            $0.append(contentsOf: path)
            $0.append(": ")
            $0.append(Failure.text(number))
            $0.append("; set ")
            $0.append(Variables.output.name)
            $0.append(" to a path that can be written. The program runs unrecorded")
        }
        return false
    }
    private static func warnOfOtherName(_ number: Int) {
        Message.warn {
            $0.append("the name of the trace is taken (")
            $0.append(Failure.text(number))
            $0.append("): recording to ")
            $0.append(contentsOf: path)
        }
    }

    static func open(_ flags: Int) -> Int {
        SystemCall.call(SystemCall.openat, SystemCall.currentDirectory, bits(path), flags | Open.own, 0o600)
    }

    static func isOurs(_ found: FileStatus) -> Bool { status.map { $0 == found } ?? false }

    /// An errno when the file is no longer what its name leads to. A program that has changed its root directory or its
    /// mounts, or may no longer look there, sees nothing of it: then it is taken to be there.
    static func loss() -> Int? {
        var found = FileStatus()
        let number = FileStatus.failure(at: path, follows: false, &found)
        if number == 0 { return isOurs(found) ? nil : found.isSymbolicLink ? Failure.loop : Failure.noEntry }
        return number == Failure.noEntry && seesSameFiles ? number : nil
    }
    private static var seesSameFiles: Bool {
        guard let root, let now = FileStatus(of: "/"), root == now else { return false }
        guard let mounts else { return true }
        return FileStatus(of: mountNamespace).map { $0 == mounts } ?? false
    }

    private static let magic: StaticString = "TRACER\u{1a}\n"
    static func hasMagic(_ header: trace_file_header) -> Bool {
        var copy = header.magic
        return withUnsafeBytes(of: &copy) { bytes in
            for n in 0..<8 where bytes[n] != magic.utf8Start[n] { return false }
            return true
        }
    }

    private static func fillHeader() {
        header.pointee.version = UInt32(TRACE_VERSION)
        header.pointee.header_bytes = UInt32(TRACE_HEADER_BYTES)
        header.pointee.elf_machine = Architecture.elfNumber
        header.pointee.page_bytes = UInt32(Memory.pageBytes)
        header.pointee.pid = Process.pid
        header.pointee.parent_pid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.getppid))
        header.pointee.clock = Clock.source
        switch Limits.mode {
        case .full: header.pointee.mode = UInt32(TRACE_MODE_FULL)
        case .ring: header.pointee.mode = UInt32(TRACE_MODE_RING)
        case .counts: header.pointee.mode = UInt32(TRACE_MODE_COUNTS)
        }
        header.pointee.ticks_per_second = Clock.ticksPerSecond
        let (first, width) = Clock.measuredSample()
        header.pointee.first = first
        ClockWatch.begin(first, width)
        header.pointee.last = header.pointee.first
        header.pointee.first_realtime_ns = Clock.realtime()
        header.pointee.next_offset = UInt64(max(Int(TRACE_HEADER_BYTES), Memory.pageBytes))
        header.pointee.extended_offset = UInt64(TRACE_HEADER_BYTES)
        header.pointee.size_limit = Limits.fileBytes
        header.pointee.minimum_ticks = Limits.minimumTicks
        header.pointee.maximum_depth = Limits.maximumDepth
        writeCost()
        header.pointee.flags = flags
        header.pointee.session = session
        header.pointee.boot = TraceName.bootID()
        header.pointee.pid_namespace = TraceName.pidNamespace()
        withUnsafeMutableBytes(of: &header.pointee.magic) { bytes in
            for n in 0..<8 { bytes[n] = magic.utf8Start[n] }
        }
    }

    /// Recording ends here, the program goes on. Safe with any lock held: the line is said by `reportStop`.
    static func stop(_ reason: some BinaryInteger, _ number: Int) {
        if !isWritable { return }
        isWritable = false
        stopNumber = number
        header.pointee.stop_reason = UInt32(truncatingIfNeeded: reason)
        header.pointee.stopped_ticks = Clock.ticks()
        header.pointee.state = UInt32(TRACE_STOPPED)
        tracer_process_page().pointee.dropped = tracer_dropped_count(header)
        tracer_process_page().pointee.dropping = 1
        tracer_store_release_32(&tracer_process_page().pointee.enabled, 0)
    }

    /// From here on the agent makes no system call that the program might not be allowed.
    static var isConfined: Bool { tracer_confinement().pointee != 0 }

    /// Recording has stopped, and nothing has reported why.
    static var hasNewsOfStop: Bool { !isWritable && isOpen && !stopReported }
    /// Says it, once. No lock may be held.
    static func reportStop() {
        stopReported = true
        Message.warn {
            $0.append("recording stopped, ")
            if header.pointee.stop_reason == UInt32(TRACE_STOP_LIMIT) {
                $0.append(Variables.maximumSize.name)
                $0.append(" reached")
            } else if let confinement = Confinement(rawValue: header.pointee.stop_reason) {
                $0.append(confinement.text)
            } else {
                $0.append(
                    stopNumber == Failure.noEntry
                        ? "the file is gone"
                        : header.pointee.stop_reason == UInt32(TRACE_STOP_OUT_OF_REACH)
                            ? "the program dropped the privileges to open the file, and the space allocated in it is used up"
                            : Failure.text(stopNumber))
            }
            $0.append(": ")
            $0.append(contentsOf: path)
            $0.append(". The program continues; what was recorded so far is kept")
        }
    }

    /// Counts a call that could not be written. A recording that tracer_detach has ended loses nothing by what comes after.
    static func drop(_ count: UInt64 = 1) {
        if Process.isAttached && tracer_process_page().pointee.enabled == 0 && tracer_process_page().pointee.dropping == 0 { return }
        if let header { _ = tracer_atomic_add(&header.pointee.dropped, count) }
    }

    nonisolated(unsafe) private static var lastLock = Lock()
    /// The latest of both clocks. Two words, of one moment.
    static func note(time sample: trace_clock_sample) {
        lastLock.lock()
        if sample.ticks > header.pointee.last.ticks { header.pointee.last = sample }
        lastLock.unlock()
    }

    /// A thread has waited until there was space for its events.
    static func noteWait(since begun: UInt64) {
        let ticks = Clock.ticks() &- begun
        _ = tracer_atomic_add(&header.pointee.waits, 1)
        _ = tracer_atomic_add(&header.pointee.waited_ticks, ticks)
        tracer_atomic_max(&header.pointee.longest_wait, ticks)
    }

    /// A forked child lets go of its parent's file and begins its own. False: it is not recorded. What it calls counts as lost
    /// in its parent's file when it should have been.
    static func beginChild(isWanted: Bool) -> Bool {
        let parents = header
        lastLock = Lock() // another thread of the parent may have held it
        tracer_set_control(nil)
        isOpen = false
        isWritable = false
        TraceSpace.becomeChild()
        if isWanted && begin() {
            if let parents { TraceSpace.unmap(parents, Int(TRACE_HEADER_BYTES)) }
            return true
        }
        if isWanted, let parents {
            _ = tracer_atomic_add(&parents.pointee.unrecorded_children, 1)
            tracer_process_page().pointee.dropped = tracer_dropped_count(parents)
            tracer_process_page().pointee.dropping = 1
        }
        return false
    }

    /// Events are in the page cache as they are made. MS_ASYNC would do nothing (msync(2)), and waiting for the disk is not
    /// asked for: only what the header says of the time is not up to date.
    static func flush() {
        if isOpen { note(time: Clock.sample()) }
    }

    /// Nothing new goes into the file.
    static func close() { isWritable = false }
    /// The agent is detached: the file is complete, and nothing of it stays mapped. Threads that are on their way through the agent find
    /// memory where its header was.
    static func leave() {
        end()
        isOpen = false
        tracer_set_control(nil)
        TraceSpace.abandon()
        tracer_mapping_remove(header)
        if !Memory.makePrivate(header, Memory.pageBytes) { Memory.replace(header, Memory.pageBytes) }
        place = header
        tracer_store_release_32(&tracer_process_page().pointee.dropping, 0)
    }

    /// The orderly end. Other threads may still be writing: only what nobody has reserved is given back.
    static func end() {
        if !isOpen { return }
        note(time: Clock.sample())
        if header.pointee.state == UInt32(TRACE_RECORDING) {
            header.pointee.state = UInt32(TRACE_FINISHED)
        }
        if !isConfined { TraceSpace.cut() }
    }
}
