// One line on the program's standard error for each cause, and the same line in the trace.
import CSupport

enum Message {
    /// Device and inode of descriptor 2 when the agent began. A program may close it and open a file that gets the
    /// number: nothing of ours may land there.
    nonisolated(unsafe) static var device: UInt64 = 0
    nonisolated(unsafe) static var inode: UInt64 = 0

    static func begin() {
        (device, inode) = identity(ofDescriptor: 2) ?? (0, 0)
    }

    static func say(_ parts: (inout TextBuffer) -> Void) {
        var room = InlineArray<1024, UInt8>(repeating: 0)
        var span = room.mutableSpan
        span.withUnsafeMutableBufferPointer { bytes in
            var line = TextBuffer(bytes.baseAddress!, capacity: 1024)
            line.append("tracer: ")
            parts(&line)
            if TraceFile.isOpen {
                Metadata.text(UInt16(TRACE_TEXT_MESSAGE), CText(line.start), line.count)
            }
            if line.isFull { line.start[line.count &- 1] = 0x0a } else { line.append(0x0a) }
            if !agent.settings.quiet { print(CText(line.start), line.count) }
        }
    }

    /// One write, so that lines of several processes do not mix. A reader that has gone would raise SIGPIPE, a limit on
    /// the size of files (sshd's unprivileged part: 0) SIGXFSZ: both are blocked, and taken back when it was our write
    /// that raised them.
    private static func print(_ text: CText, _ count: Int) {
        guard let (nowDevice, nowInode) = identity(ofDescriptor: 2), nowDevice == device, nowInode == inode,
              inode != 0 else { return }
        let pipeSignal: UInt64 = 1 << 12, sizeSignal: UInt64 = 1 << 24
        var mask = pipeSignal | sizeSignal, old: UInt64 = 0, pending: UInt64 = 0
        withUnsafeMutablePointer(to: &mask) { mask in
            withUnsafeMutablePointer(to: &old) { old in
                withUnsafeMutablePointer(to: &pending) { pending in
                    _ = SystemCall.call(SystemCall.rt_sigprocmask, 0, bits(mask), bits(old), 8)
                    _ = SystemCall.call(SystemCall.rt_sigpending, bits(pending), 8)
                    let result = SystemCall.call(SystemCall.write, 2, bits(text), count)
                    let raised = result == -32 ? pipeSignal : result == -27 ? sizeSignal : 0 // EPIPE, EFBIG
                    if raised & ~pending.pointee != 0 {
                        var zero = Timespec()
                        mask.pointee = raised
                        withUnsafeMutablePointer(to: &zero) {
                            _ = SystemCall.call(SystemCall.rt_sigtimedwait, bits(mask), 0, bits($0), 8)
                        }
                    }
                    _ = SystemCall.call(SystemCall.rt_sigprocmask, 2, bits(old), 0, 8)
                }
            }
        }
    }
}

/// Device and inode, from struct stat: st_dev and st_ino are its first two words (asm-generic and x86 alike).
func identity(ofDescriptor descriptor: Int) -> (device: UInt64, inode: UInt64)? {
    var stat = InlineArray<32, UInt64>(repeating: 0)
    var span = stat.mutableSpan
    return span.withUnsafeMutableBufferPointer {
        SystemCall.call(SystemCall.fstat, descriptor, bits($0.baseAddress)) == 0 ? ($0[0], $0[1]) : nil
    }
}
