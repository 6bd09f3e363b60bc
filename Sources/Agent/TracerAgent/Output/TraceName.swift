// Name of the trace file, and the holder of a name that is taken.
import CSupport
import CTraceLayout

enum TraceName {
    /// Variables.output.
    nonisolated(unsafe) static var template: CText?
    nonisolated(unsafe) private static var buffer: UnsafeMutablePointer<UInt8>!
    private static let capacity = 8192

    /// From the template; later attempts add the process id, if it is not there, and a number.
    /// nil: no memory. Valid until the next name is made.
    static func make(_ attempt: Int) -> CText? {
        if buffer == nil { buffer = Memory.pages(capacity)?.assumingMemoryBound(to: UInt8.self) }
        guard let buffer, let template else { return nil }
        var text = TextBuffer(buffer, capacity: capacity)
        if template[0] != 0x2f {
            text.append(contentsOf: Process.directory)
            text.append(0x2f)
        }
        var n = 0, hasPid = false
        while template[n] != 0 {
            if template[n] == 0x25 && template[n &+ 1] == 0x70 {
                hasPid = true
                text.append(decimal: UInt64(Process.pid))
                n &+= 2
            } else if template[n] == 0x25 && template[n &+ 1] == 0x65 {
                text.append(contentsOf: baseName(Process.program))
                n &+= 2
            } else {
                if template[n] == 0x25 && template[n &+ 1] == 0x25 { n &+= 1 }
                text.append(template[n])
                n &+= 1
            }
        }
        if attempt > 0 { addNumber(attempt, hasPid, &text) }
        return CText(buffer)
    }

    /// app.trace becomes app.4711.trace, app.4711.2.trace and so on.
    private static func addNumber(_ attempt: Int, _ hasPid: Bool, _ text: inout TextBuffer) {
        let hasExtension = text.removeSuffix(".trace")
        if !hasPid {
            text.append(0x2e)
            text.append(decimal: UInt64(Process.pid))
        }
        let number = hasPid ? attempt &+ 1 : attempt
        if number > 1 {
            text.append(0x2e)
            text.append(decimal: UInt64(number))
        }
        if hasExtension { text.append(".trace") }
    }

    /// Returns the first number after a taken one whose name nobody has. A process gets a name for each program that it executes, and other
    /// processes may have its id (after a reuse, or in another namespace): they take numbers in turn, so a few questions find the end.
    static func freeNumber(after number: Int) -> Int {
        var taken = number, free = number &+ 1
        while isTaken(free) && free &- number < 1 &<< 30 {
            taken = free
            free = free &+ (free &- number)
        }
        while free &- taken > 1 {
            let middle = taken &+ (free &- taken) / 2
            if isTaken(middle) { taken = middle } else { free = middle }
        }
        return free
    }
    @inline(never) private static func isTaken(_ number: Int) -> Bool {
        guard let path = make(number) else { return false }
        var status = FileStatus()
        return FileStatus.failure(at: path, follows: false, &status) == 0
    }

    // MARK: - A name that is taken

    enum Holder {
        case ended // the trace of a process that is gone: it is replaced
        case process // one that lives, or may, or is of this run, or this one before it called exec
        case somethingElse(Int) // and what the matter is with it, an errno
    }

    static func holder(of path: CText) -> Holder {
        let descriptor = SystemCall.call(SystemCall.openat, SystemCall.currentDirectory, bits(path), Open.nonBlocking | Open.own)
        if failed(descriptor) {
            // In the moment of a full table: unowned, as far as can be seen.
            return descriptor == -Failure.descriptors || descriptor == -Failure.fileTable ? .process : .somethingElse(-descriptor)
        }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        guard let status = FileStatus(ofDescriptor: descriptor), status.isRegular else { return .somethingElse(Failure.exists) } // a device or a FIFO reads as empty, too
        var old = trace_file_header()
        let size = MemoryLayout<trace_file_header>.size
        let count = withUnsafeMutablePointer(to: &old) { SystemCall.call(SystemCall.read, descriptor, bits($0), size) }
        if failed(count) { return .somethingElse(-count) }
        // A process that has made its file and not yet written to it; its name has its id, so that nobody else left it for us.
        if count == 0 { return namesProcess ? .process : .ended }
        if count < size || !TraceOutput.hasMagic(old) { return .somethingElse(Failure.exists) }
        let isOfThisRun = old.session != 0 && old.session == TraceOutput.session
        return !isOfThisRun && hasEnded(old) ? .ended : .process
    }
    /// The template has %p.
    private static var namesProcess: Bool {
        guard let template else { return false }
        var n = 0
        while template[n] != 0 {
            if template[n] == 0x25 {
                if template[n &+ 1] == 0x70 { return true }
                if template[n &+ 1] != 0 { n &+= 1 }
            }
            n &+= 1
        }
        return false
    }

    /// For certain only where its number counts: on this system, since it was booted, in this namespace.
    private static func hasEnded(_ old: trace_file_header) -> Bool {
        let isHere = old.boot != 0 && old.pid_namespace != 0 && old.boot == bootID() && old.pid_namespace == pidNamespace()
        return isHere && old.pid != Process.pid && SystemCall.call(SystemCall.kill, Int(old.pid), 0) == -Failure.noProcess
    }

    /// proc(5). 0 unknown.
    static func pidNamespace() -> UInt64 { FileStatus(of: "/proc/self/ns/pid")?.inode ?? 0 }

    /// The first half of the id that the kernel makes at random when it boots: hexadecimal, with hyphens. 0 unknown.
    static func bootID() -> UInt64 {
        var text = InlineArray<36, UInt8>(repeating: 0)
        var span = text.mutableSpan
        let count = span.withUnsafeMutableBufferPointer { KernelText.read("/proc/sys/kernel/random/boot_id", $0.baseAddress!, 36) }
        var id: UInt64 = 0, digits = 0
        for n in 0..<max(count, 0) where digits < 16 && text[n] != 0x2d {
            id = id &<< 4 | UInt64(text[n] & 0xf &+ (text[n] &>> 6) &* 9)
            digits &+= 1
        }
        return id
    }
}
