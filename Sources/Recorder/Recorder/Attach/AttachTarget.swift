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
    /// The file system as the process has it.
    let view: ProcessView
    /// As it knows itself, and its trace: in its own pid namespace.
    let number: UInt32
    let memory: RemoteMemory
    let modules: ProcessModules
    /// The kernel's auxiliary vector (getauxval(3)): where the program, its loader and its random bytes are.
    private let auxiliaryVector: [UInt8]

    /// Throws a `Refusal` where the agent could not live in the process, or may not be brought there.
    package init(pid: pid_t) throws(Refusal) {
        guard let (status, vector) = Self.settled(pid) else { throw .usage("no process \(pid): give the id of one that runs (ps, pgrep)") }
        do throws(Refusal) {
            try self.init(pid, status, vector)
        } catch {
            // What could not be read was perhaps just going.
            throw ("ZXx".contains(status.state) ? nil : Self.change(pid, from: vector)) ?? error
        }
    }

    /// A process that calls exec shows nothing of itself for a moment, which may be long on a busy machine: while its main thread is a zombie that
    /// another thread is to replace (de_thread of fs/exec.c), and until its new memory has a program (load_elf_binary of fs/binfmt_elf.c). Whatever
    /// is asked of it then is refused, or empty. So it is waited for, unless what it is does not pass.
    /// - Parameter patience: nanoseconds
    private static func settled(_ pid: pid_t, patience: UInt64 = 1_000_000_000) -> (ProcessFacts, vector: [UInt8])? {
        let end = clockTime() + patience
        guard var facts = ProcessFacts(pid) else { return nil }
        while true {
            let vector = auxiliaryVector(pid), hasEnded = "ZXx".contains(facts.state), me = geteuid()
            let isSettled = !hasEnded && vector.contains { $0 != 0 }
            let isLasting =
                hasEnded && !hasOtherThreads(pid) || facts.threadGroup != pid || isKernels(pid)
                || me != 0 && facts.users.contains { $0 != me }
            if isSettled || isLasting || clockTime() >= end { return (facts, vector) }
            usleep(1000)
            facts = ProcessFacts(pid) ?? facts
        }
    }

    private static func hasOtherThreads(_ pid: pid_t) -> Bool { ProcessStatus.numbers(in: "/proc/\(pid)/task").count > 1 }

    /// A thread of it waits in exec(2): until all others have ended.
    private static func isExecuting(_ pid: pid_t) -> Bool {
        ProcessStatus.numbers(in: "/proc/\(pid)/task").contains { tid in
            let number = WaitSnapshot.line("/proc/\(pid)/task/\(tid)/syscall").flatMap { Int64($0.prefix { $0 != " " }) }
            return number.map { recorder_is_exec($0) != 0 } ?? false
        }
    }

    private init(_ pid: pid_t, _ status: ProcessFacts, _ vector: [UInt8]) throws(Refusal) {
        self.pid = pid
        auxiliaryVector = vector
        name = status.name
        (user, group) = (status.user, status.group)
        guard pid != getpid() else { throw .usage("\(pid) is tracer itself: give the id of the process to record") }
        guard status.threadGroup == pid else {
            throw .usage("\(pid) is a thread of process \(status.threadGroup): tracer attach \(status.threadGroup)")
        }
        guard !"ZXx".contains(status.state) else {
            guard Self.hasOtherThreads(pid) else { throw .cannotRun("process \(pid) has ended: its parent has not waited for it yet") }
            throw Self.isExecuting(pid)
                ? Self.replaced(pid)
                : .cannotRun(
                    "process \(pid) shows nothing of itself, since its main thread has ended (pthread_exit): start it under tracer record")
        }
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
        guard vector.isEmpty || vector.contains(where: { $0 != 0 }) else { throw Self.replaced(pid) } // still, as `settled` says
        view = ProcessView(of: pid)
        number = ProcessNumbers.innermostNumber(of: pid) ?? UInt32(pid)
        // The agent is loaded by a name there.
        if let root = view.root, access("\(root)/proc/\(number)/maps", F_OK) != 0 {
            throw .cannotRun(
                "process \(pid) has another view of the file system (a container, chroot), in which /proc is not mounted: run tracer inside of it"
            )
        }
        try Self.checkProgram(pid)
        guard let memory = RemoteMemory(pid) else { throw Self.refused(pid, errno) }
        self.memory = memory
        modules = try ProcessModules(pid: pid, memory)
    }

    /// Why what is known of the process is true no more; nil: it runs the program that was looked at. A stopped process may be led by these
    /// addresses only after it was asked: the moment before, it may have called exec.
    var change: Refusal? { Self.change(pid, from: auxiliaryVector) ?? (memory.isInUse ? nil : Self.replaced(pid)) }

    /// The same for one that is about to change: exec(2) and exit_group(2) first end all threads, which the tool may see before.
    /// - Parameter patience: nanoseconds
    func awaitChange(_ patience: UInt64 = 2_000_000_000) -> Refusal? {
        let end = clockTime() + patience
        while clockTime() < end {
            if let change { return change }
            usleep(1000)
        }
        return nil
    }

    private static func change(_ pid: pid_t, from vector: [UInt8]) -> Refusal? {
        if !ProcessStatus.isAlive(pid), !hasOtherThreads(pid) {
            return .cannotRun("process \(pid) has ended")
        }
        return auxiliaryVector(pid) == vector ? nil : replaced(pid)
    }
    private static func auxiliaryVector(_ pid: pid_t) -> [UInt8] { ProcessStatus.readAll("/proc/\(pid)/auxv") ?? [] }
    private static func replaced(_ pid: pid_t) -> Refusal {
        .cannotRun("process \(pid) executes another program in this moment, or ends: try again")
    }

    private static func checkProgram(_ pid: pid_t) throws(Refusal) {
        let file = open("/proc/\(pid)/exe", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            // proc(5): who may not trace a process may not follow this link.
            guard errno == ENOENT else { throw refused(pid, errno) }
            throw isKernels(pid)
                ? .cannotRun("process \(pid) is the kernel's own: it has no program") : .cannotRun("process \(pid) has ended") // it just does
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

    /// Field 9 of /proc/PID/stat (proc(5)), PF_KTHREAD of include/linux/sched.h.
    private static func isKernels(_ pid: pid_t) -> Bool {
        let fields = ProcessStatus.stat(of: pid)
        return fields.count > 6 && (UInt64(fields[6]) ?? 0) & 0x20_0000 != 0
    }

    /// Why this is refused to who could read the process's memory when it was looked at, and what helps.
    func refused(_ error: Int32) -> Refusal { awaitChange(1_000_000_000) ?? Self.refused(pid, error) }

    /// Why ptrace(2) was refused, and what helps.
    static func refused(_ pid: pid_t, _ error: Int32) -> Refusal {
        if !ProcessStatus.isAlive(pid) { return .cannotRun("process \(pid) has ended") }
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
