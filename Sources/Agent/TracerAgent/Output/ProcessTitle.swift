// The title that a program gives itself: it writes over its arguments, which ps(1) then shows (setproctitle(3bsd); PostgreSQL, nginx,
// sshd). Read when the process ends.
import CSupport
import CTraceLayout

enum ProcessTitle {
    nonisolated(unsafe) private static var known: UInt64 = 0 // a hash of the command line; 0 none
    private static let most = 1024

    /// The command line as the process begins, NUL after each argument.
    static func note(_ text: CText, _ count: Int) { known = hash(text, min(count, most)) }

    /// Appends the title if it is another one than was known. The kernel shows the loader's command line where that was executed.
    static func write() {
        if known == 0 || Process.isStartedByLoader { return }
        var text = InlineArray<1024, UInt8>(repeating: 0)
        var span = text.mutableSpan
        span.withUnsafeMutableBufferPointer { bytes in
            let start = CText(bytes.baseAddress!), count = read(bytes.baseAddress!, most)
            if count <= 0 { return }
            let found = hash(start, count)
            if found == known { return }
            known = found
            MetadataWriter.text(UInt16(TRACE_TEXT_TITLE), start, count)
        }
    }

    /// The command line as the kernel shows it now, NUL after each argument.
    static func readCommandLine(into text: inout TextBuffer) { text.append { read($0, $1) } }
    private static func read(_ buffer: UnsafeMutablePointer<UInt8>, _ capacity: Int) -> Int {
        KernelText.read("/proc/self/cmdline", buffer, capacity)
    }

    /// FNV-1a. Never 0.
    private static func hash(_ text: CText, _ count: Int) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for n in 0..<count { hash = (hash ^ UInt64(text[n])) &* 0x100_0000_01b3 }
        return hash | 1
    }
}
