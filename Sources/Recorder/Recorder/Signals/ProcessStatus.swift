// Facts about a process, from /proc.
import ELF
import Glibc

package enum ProcessStatus {
    /// Signals pending for the process as a whole, bit 0 for signal 1. nil when it is gone.
    static func pendingSignals(of pid: pid_t) -> UInt64? {
        guard let text = text("/proc/\(pid)/status"),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("ShdPnd:") })
        else { return nil }
        return UInt64(line.dropFirst(7).drop { $0 == "\t" || $0 == " " }, radix: 16)
    }

    /// It still runs; a zombie does not.
    static func isAlive(_ pid: pid_t) -> Bool { stat(of: pid).first.map { !["Z", "X", "x"].contains($0) } ?? false }

    /// Fields of /proc/PID/stat (proc(5)) from the third, its state, on; empty when it is gone. The second, its name, may hold anything, so
    /// they are counted from its last ')'.
    static func stat(of pid: pid_t) -> [Substring] {
        guard let text = text("/proc/\(pid)/stat"), let close = text.lastIndex(of: ")") else { return [] }
        return text[text.index(after: close)...].split(separator: " ")
    }

    /// False: the thread was made, and has not been given a processor yet (Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat: the third
    /// number counts how often it was). True where nobody knows.
    package static func hasRun(_ tid: pid_t, of pid: pid_t) -> Bool {
        let numbers = text("/proc/\(pid)/task/\(tid)/schedstat")?.split(whereSeparator: \.isWhitespace)
        return numbers?.count != 3 || numbers?[2] != "0"
    }

    /// No process has this id, not even one that is to be waited for.
    static func isGone(_ pid: pid_t) -> Bool { pid > 0 && kill(pid, 0) != 0 && errno == ESRCH }

    /// Its effective user or group is another than the real one, as that of a set-user-ID program. proc(5): real, effective, saved, file
    /// system's.
    package static func hasTakenIdentity(_ pid: pid_t) -> Bool {
        (text("/proc/\(pid)/status") ?? "").split(separator: "\n").contains { line in
            guard line.hasPrefix("Uid:") || line.hasPrefix("Gid:") else { return false }
            let ids = line.dropFirst(4).split(whereSeparator: \.isWhitespace)
            return ids.count >= 2 && ids[0] != ids[1]
        }
    }

    /// In which ids of processes count: the inode of its namespace (namespaces(7)), 0 unknown.
    package static var ownNamespace: UInt64 { ProcessNumbers.namespace() }

    /// Identifies this boot of the system: the first half of the kernel's random id (proc(5)), 0 unknown.
    package static var bootID: UInt64 {
        let digits = text("/proc/sys/kernel/random/boot_id")?.filter { $0.isHexDigit }.prefix(16) ?? ""
        return digits.count == 16 ? UInt64(digits, radix: 16) ?? 0 : 0
    }

    /// A file that holds one number.
    static func number(_ path: String) -> Int? { text(path).flatMap { Int($0.prefix { $0 != "\n" }) } }

    /// nil when there is no such file, or not for us, or it is longer than that. Files of /proc do not say how long they are.
    package static func readAll(_ path: String, atMost most: Int = .max) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var all: [UInt8] = [], part = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let got = read(file, &part, part.count)
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return got < 0 && all.isEmpty ? nil : all }
            all += part[..<got]
            if all.count > most { return nil }
        }
    }

    /// The same as a text.
    static func text(_ path: String, atMost most: Int = .max) -> String? {
        readAll(path, atMost: most).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The entries of a directory of /proc that are numbers: processes, threads, descriptors. None where it may not be read.
    static func numbers(in directory: String) -> [Int32] {
        (entryNames(in: directory) ?? []).compactMap { Int32($0) }
    }
}
