// Descriptors that calls of libc's functions make, recorded as they return with what they refer to: a look from outside comes too late
// for most. Nothing here can wait: the name is the kernel's own (fs/proc/base.c, do_proc_readlink), and F_GETPIPE_SZ asks no file system,
// as fstat might.
import CSupport
import CTraceLayout

enum OpenedDescriptors {
    /// The first call, and what all of them have cost, in ticks.
    nonisolated(unsafe) private static var begun: UInt64 = 0
    nonisolated(unsafe) private static var spent: UInt64 = 0
    /// Limits of that: `atFirst`, 5 to 17 ms, and one part in `share` of the time since. Whoever opens more files than that does not wait.
    private static let atFirst: UInt64 = 1 &<< 24, share: UInt64 = 50
    /// A call that takes longer was preempted.
    private static let most: UInt64 = 1 &<< 16

    /// Address of the latest record of each descriptor that children inherit, 0 none.
    nonisolated(unsafe) private static var latest = InlineArray<64, UInt64>(repeating: 0)

    /// In a forked child, whose records are others.
    static func becomeChild() {
        for n in 0..<latest.count { latest[n] = 0 }
    }

    /// Standard descriptors that the process began with: nobody else says what a child of vfork or posix_spawn was given.
    static func beginProcess() {
        let now = Clock.ticks()
        for descriptor in 0..<3 { record(Int32(descriptor), UInt32(TRACE_NONE), now) }
        OwnWork.add(since: now, until: Clock.ticks())
    }

    /// The call has a frame now: its return is watched, if that can be afforded.
    static func entered(_ frame: Frame, _ spills: Spills) {
        switch Int(frame.pointee.function.pointee.kind) &- Int(KIND_OPENS) {
        case Int(TRACE_OPENS_FIRST_PAIR): frame.pointee.reserved.0 = spills.firstArgument
        case Int(TRACE_OPENS_FOURTH_PAIR): frame.pointee.reserved.0 = spills.fourthArgument
        default: frame.pointee.reserved.0 = 0
        }
        let now = Clock.ticks()
        if begun == 0 { begun = now }
        if spent <= atFirst &+ (now &- begun) / share { frame.pointee.label |= UInt64(LABEL_WATCHED) }
    }

    static func returned(_ frame: Frame, _ thread: UInt32, _ now: UInt64) {
        if !TraceOutput.isWritable || frame.isLost { return }
        let result = Spills(frame.pointee.stack_pointer).result
        switch Int(frame.pointee.function.pointee.kind) &- Int(KIND_OPENS) {
        case Int(TRACE_OPENS_RESULT): record(Int32(truncatingIfNeeded: result), thread, now)
        case Int(TRACE_OPENS_STREAM): record(descriptor(result, at: 112), thread, now, stream: result) // glibc struct_FILE.h, _fileno
        case Int(TRACE_OPENS_FOLDER): record(descriptor(result, at: 0), thread, now, stream: result) // sysdeps/unix/sysv/linux/dirstream.h
        default:
            var pair: UInt64 = 0
            if UInt32(truncatingIfNeeded: result) != 0 || Memory.copyWord(from: frame.pair, to: &pair) != 8 { return }
            let first = Int32(truncatingIfNeeded: pair), second = Int32(truncatingIfNeeded: pair &>> 32)
            record(first, thread, now, with: second)
            record(second, thread, now, with: first)
        }
        let after = Clock.ticks()
        spent = spent &+ min(after &- now, most)
        OwnWork.add(since: now, until: after)
    }
    private static func descriptor(_ stream: UInt64, at offset: UInt64) -> Int32 {
        stream == 0 ? -1 : UnsafePointer<Int32>(bitPattern: UInt(stream &+ offset))!.pointee
    }

    @inline(never) private static func record(
        _ descriptor: Int32, _ thread: UInt32, _ now: UInt64, with pair: Int32 = -1, stream: UInt64 = 0
    ) {
        if descriptor < 0 { return }
        var fixed = trace_opened_record()
        fixed.ticks = now
        fixed.thread = thread
        fixed.descriptor = descriptor
        fixed.pair = pair
        fixed.stream = stream
        var buffer = InlineArray<1024, UInt8>(repeating: 0) // DescriptorLink.capacity
        var span = buffer.mutableSpan
        span.withUnsafeMutableBufferPointer { bytes in
            let link = bytes.baseAddress!, count = DescriptorLink.read(descriptor, into: link)
            fixed.object_bytes = UInt32(truncatingIfNeeded: count)
            let key = access(descriptor, count > 0 ? link[0] : 0)
            fixed.own_ticks = OwnWork.ticks &+ (Clock.ticks() &- now)
            keep(MetadataWriter.append(Int(TRACE_RECORD_OPENED), key, fixed, link, count, isPassing: true), descriptor)
        }
    }

    /// Whoever waits at a pipe waits for its other end: only there it matters which of the two this is.
    private static func access(_ descriptor: Int32, _ first: UInt8) -> UInt16 {
        let both = UInt16(TRACE_ACCESS_READ | TRACE_ACCESS_WRITE), getFlags = 3, getPipeSize = 1032 // fcntl(2)
        if first != 0x2f && first != 0x70 { return both } // a path, "pipe:[4711]"
        if failed(SystemCall.call(SystemCall.fcntl, Int(descriptor), getPipeSize)) { return both }
        let mode = SystemCall.call(SystemCall.fcntl, Int(descriptor), getFlags) & 3
        return UInt16(TRACE_OPENED_PIPE) | (mode == 0 ? UInt16(TRACE_ACCESS_READ) : mode == 1 ? UInt16(TRACE_ACCESS_WRITE) : both)
    }

    /// A child is to inherit one record of a descriptor. In a ring there is none to inherit, and a record's place is used again.
    private static func keep(_ record: UnsafeMutableRawPointer?, _ descriptor: Int32) {
        guard let record, !Limits.isRing else { return }
        let slot = Int(descriptor), isKept = slot < latest.count
        let replaced = isKept ? UnsafeMutableRawPointer(bitPattern: UInt(latest[slot])) : record
        replaced?.assumingMemoryBound(to: trace_record.self).pointee.key |= UInt16(TRACE_OPENED_REPLACED)
        if isKept { latest[slot] = UInt64(UInt(bitPattern: record)) }
    }
}
