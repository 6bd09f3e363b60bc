// One line on the program's standard error for each cause, and the same line in the trace.
import CSupport

enum Message {
    /// Messages go to the trace alone.
    nonisolated(unsafe) static var isQuiet = false
    /// Status of descriptor 2 when the agent began. A program may close it and open a file that gets the number: nothing of ours may
    /// land there.
    nonisolated(unsafe) private static var standardError: FileStatus?

    /// The agent has begun, and this process is recorded.
    nonisolated(unsafe) static var isRecording = false

    static func begin() { standardError = FileStatus(ofDescriptor: 2) }

    static func warn(_ parts: (inout TextBuffer) -> Void) {
        var buffer = InlineArray<1024, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        span.withUnsafeMutableBufferPointer { bytes in
            var line = TextBuffer(bytes.baseAddress!, capacity: 1024)
            line.append("tracer: ")
            parts(&line)
            tracer_record_message(line.start, line.count)
            if line.isFull { line.start[line.count &- 1] = 0x0a } else { line.append(0x0a) }
            if !isQuiet { print(CText(line.start), line.count) }
        }
    }

    /// The kernel makes nothing executable any more. As the agent starts that is the end of it, and said there. False.
    static func refuseCode() -> Bool {
        if codeIsRefused || !isRecording { return false }
        codeIsRefused = true
        warn {
            $0.append(
                "this process may no longer create executable memory (MDWE, SELinux execmem, vm.max_map_count): functions bound from ")
            $0.append("now on are not recorded, and calls from new call sites are recorded without their duration")
        }
        return false
    }
    nonisolated(unsafe) private(set) static var codeIsRefused = false

    /// One write, so that lines of several processes do not mix. A reader that has gone would raise SIGPIPE, a limit on
    /// the size of files (sshd's unprivileged part: 0) SIGXFSZ: both are blocked, and taken back when it was our write
    /// that raised them.
    private static func print(_ text: CText, _ count: Int) {
        guard let standardError, let now = FileStatus(ofDescriptor: 2), now == standardError else { return }
        let pipeSignal: UInt64 = 1 << 12, sizeSignal: UInt64 = 1 << 24
        var mask = pipeSignal | sizeSignal, old: UInt64 = 0, pending: UInt64 = 0
        withUnsafeMutablePointer(to: &mask) { mask in
            withUnsafeMutablePointer(to: &old) { old in
                withUnsafeMutablePointer(to: &pending) { pending in
                    _ = SystemCall.call(SystemCall.rt_sigprocmask, Action.block, bits(mask), bits(old), 8)
                    _ = SystemCall.call(SystemCall.rt_sigpending, bits(pending), 8)
                    let result = SystemCall.call(SystemCall.write, 2, bits(text), count)
                    let raised = result == -Failure.pipe ? pipeSignal : result == -Failure.tooBig ? sizeSignal : 0
                    if raised & ~pending.pointee != 0 {
                        var zero = Timespec()
                        mask.pointee = raised
                        withUnsafeMutablePointer(to: &zero) {
                            _ = SystemCall.call(SystemCall.rt_sigtimedwait, bits(mask), 0, bits($0), 8)
                        }
                    }
                    _ = SystemCall.call(SystemCall.rt_sigprocmask, Action.setMask, bits(old), 0, 8)
                }
            }
        }
    }
}
