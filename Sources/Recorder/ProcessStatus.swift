// What /proc says of a process.
import Glibc

enum ProcessStatus {
    /// Signals pending for the process as a whole, bit 0 for signal 1. nil when it is gone.
    static func pendingSignals(of pid: pid_t) -> UInt64? {
        guard let text = read("/proc/\(pid)/status"),
              let line = text.split(separator: "\n").first(where: { $0.hasPrefix("ShdPnd:") }) else { return nil }
        return UInt64(line.dropFirst(7).drop { $0 == "\t" || $0 == " " }, radix: 16)
    }

    /// Ticks since boot, 0 when it is gone.
    static func startTime(of pid: pid_t) -> UInt64 { stat(of: pid)?.start ?? 0 }

    /// Whether the process that began at `start` (ticks since boot, 0 unknown) still runs; a zombie does not.
    static func isAlive(_ pid: pid_t, startedAt start: UInt64) -> Bool {
        guard let found = stat(of: pid), !"ZXx".contains(found.state) else { return false }
        return start == 0 || found.start == start
    }

    /// proc(5): pid (comm) state … field 22 is the start time. comm may hold anything, so count from its last ')'.
    private static func stat(of pid: pid_t) -> (state: Character, start: UInt64)? {
        guard let text = read("/proc/\(pid)/stat"), let close = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: close)...].split(separator: " ")
        guard fields.count > 19, let state = fields[0].first, let start = UInt64(fields[19]) else { return nil }
        return (state, start)
    }

    private static func read(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let got = Glibc.read(file, &bytes, bytes.count)
        guard got > 0 else { return nil }
        return String(decoding: bytes[..<got], as: UTF8.self)
    }
}
