// What the kernel shows of a process, or of a thread.
import Glibc

/// Lines of /proc/PID/status (proc(5)).
struct ProcessFacts {
    var name = "", state: Character = "?"
    var threadGroup: pid_t = 0, tracer: pid_t = 0
    var user: uid_t = 0, group: gid_t = 0
    /// Real, effective, saved, file system's.
    var users: [uid_t] = []
    /// Seccomp mode 1 or 2.
    var isFiltered = false
    var hasShadowStack = false
    /// Signals, bit 0 for signal 1: of a thread, or of its process, that wait and are not blocked.
    var deliverable: UInt64 = 0

    init?(_ id: pid_t) { self.init(path: "/proc/\(id)/status") }

    init?(path: String) {
        guard let text = ProcessStatus.text(path) else { return nil }
        var pending: UInt64 = 0, blocked: UInt64 = 0
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            let words = parts[1].split(whereSeparator: \.isWhitespace)
            func set() -> UInt64 { words.first.flatMap { UInt64($0, radix: 16) } ?? 0 }
            switch parts[0] {
            case "Name": name = String(parts[1].drop(while: \.isWhitespace))
            case "State": state = words.first?.first ?? "?"
            case "Tgid": threadGroup = words.first.flatMap { pid_t($0) } ?? 0
            case "TracerPid": tracer = words.first.flatMap { pid_t($0) } ?? 0
            case "Uid":
                users = words.compactMap { uid_t($0) }
                user = users.last ?? 0
            case "Gid": group = words.last.flatMap { gid_t($0) } ?? 0
            case "Seccomp": isFiltered = words.first != "0"
            case "SigPnd", "ShdPnd": pending |= set()
            case "SigBlk": blocked = set()
            case "x86_Thread_features": hasShadowStack = words.contains("shstk")
            default: break
            }
        }
        deliverable = pending & ~blocked
    }
}
