// A running process that is to be recorded from now on: what can be learned from outside, before anything of it is touched.
import CRecorder
import ELF
import Glibc
import Unwinding

package struct AttachTarget {
    package let pid: pid_t
    /// As the kernel calls it: "redis-server".
    package let name: String
    /// The process makes its trace as this user.
    let user: uid_t, group: gid_t
    let memory: RemoteMemory
    let modules: ProcessModules

    /// Throws a `Refusal` where the agent could not live in the process, or may not be brought there.
    package init(pid: pid_t) throws(Refusal) {
        self.pid = pid
        guard let status = ProcessFacts(pid) else { throw .usage("no process \(pid): give the id of one that runs (ps, pgrep)") }
        name = status.name
        (user, group) = (status.user, status.group)
        guard pid != getpid() else { throw .usage("\(pid) is tracer itself: give the id of the process to record") }
        guard status.threadGroup == pid else {
            throw .usage("\(pid) is a thread of process \(status.threadGroup): tracer attach \(status.threadGroup)")
        }
        guard !"ZXx".contains(status.state) else { throw .cannotRun("process \(pid) has ended: its parent has not waited for it yet") }
        guard !"Tt".contains(status.state) else {
            throw .cannotRun("process \(pid) is stopped: continue it first (kill -CONT \(pid)), and attach then")
        }
        let me = geteuid()
        guard me == 0 || status.users.allSatisfy({ $0 == me }) else {
            throw .cannotRun("process \(pid) belongs to another user: attach as that user, or as root")
        }
        guard status.tracer == 0 else {
            throw .cannotRun("process \(pid) is traced by process \(status.tracer) (a debugger, strace?): end that first")
        }
        // A filter may be a thread's own (seccomp(2)).
        guard
            ProcessStatus.numbers(in: "/proc/\(pid)/task").allSatisfy({
                ProcessFacts(path: "/proc/\(pid)/task/\($0)/status")?.isFiltered != true
            })
        else {
            throw .cannotRun(
                "process \(pid) has a filter of system calls (seccomp), which may end it for what the agent does: start it under tracer record"
            )
        }
        guard !status.hasShadowStack else {
            throw .cannotRun(
                "process \(pid) has a shadow stack, which the agent's trampolines do not keep: start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"
            )
        }
        guard Self.link("/proc/self/ns/mnt") == Self.link("/proc/\(pid)/ns/mnt"), Self.link("/proc/\(pid)/root") == "/" else {
            throw .cannotRun("process \(pid) has another view of the file system (a container, chroot): run tracer inside of it")
        }
        try Self.checkProgram(pid)
        guard let memory = RemoteMemory(pid) else { throw Self.refused(pid, errno) }
        self.memory = memory
        modules = try ProcessModules(pid: pid, memory)
    }

    private static func link(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    private static func checkProgram(_ pid: pid_t) throws(Refusal) {
        let file = open("/proc/\(pid)/exe", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            // proc(5): who may not trace a process may not follow this link.
            throw errno == ENOENT ? .cannotRun("process \(pid) is the kernel's own: it has no program") : refused(pid, errno)
        }
        defer { close(file) }
        switch ExecutableFormat(reading: readBytes(of: file)) {
        case .elf(ExecTarget.ownArchitecture, let loader):
            guard let loader else {
                throw .cannotRun("process \(pid) is statically linked: nothing can be loaded into it; link it dynamically to record it")
            }
            guard !loader.contains("musl") else {
                throw .cannotRun(
                    "process \(pid) uses musl (\(loader)): the agent needs the GNU C library; build it against glibc to record it")
            }
        default: throw .cannotRun("process \(pid) is no \(ExecTarget.ownArchitectureName) program: tracer cannot record it")
        }
    }

    /// Why ptrace(2) was refused, and what helps.
    static func refused(_ pid: pid_t, _ error: Int32) -> Refusal {
        guard error == EPERM || error == EACCES else {
            return .cannotRun("process \(pid) cannot be attached to: \(String(cString: strerror(error)))")
        }
        // Documentation/admin-guide/LSM/Yama.rst
        switch ProcessStatus.number("/proc/sys/kernel/yama/ptrace_scope") {
        case 1 where geteuid() != 0, 2 where geteuid() != 0:
            return .cannotRun(
                "process \(pid) may not be attached to: this system lets only root attach (kernel.yama.ptrace_scope); use sudo, or sysctl kernel.yama.ptrace_scope=0"
            )
        case 3: return .cannotRun("process \(pid) may not be attached to: kernel.yama.ptrace_scope is 3, which only a restart undoes")
        default:
            return .cannotRun(
                "process \(pid) may not be attached to: it has changed its user, or has privileges that you have not; use sudo")
        }
    }
}

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
