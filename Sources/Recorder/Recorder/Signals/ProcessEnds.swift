// How those processes of a run ended that are not our children. Their parents learn it; since Linux 6.15 the kernel reports it, too, to
// who holds a descriptor of the process, once it has been waited for (PIDFD_GET_INFO, include/uapi/linux/pidfd.h).
import CRecorder
import Glibc

final class ProcessEnds {
    /// Descriptors by process id, which is not reused before the process was waited for.
    private var descriptors: [pid_t: Int32] = [:]
    private var exits: [pid_t: ProcessExit] = [:]
    /// A share of the descriptors that a process may have, usually 1,024.
    private static let mostDescriptors = 512

    deinit { for descriptor in descriptors.values { close(descriptor) } }

    /// The process is there, or was until a moment ago. Who was waited for already cannot be asked any more.
    func watch(_ pid: pid_t) {
        look()
        guard descriptors[pid] == nil, descriptors.count < Self.mostDescriptors else { return }
        exits[pid] = nil // from an earlier process with the same id
        let descriptor = recorder_open_process(pid)
        if descriptor >= 0 { descriptors[pid] = descriptor }
    }

    /// Signals the processes of the run that are watched, and returns them. Their descriptors stand for them also when others have their
    /// ids by now.
    @discardableResult
    func signal(_ number: Int32, andContinue: Bool = false, session: UInt64, except known: Set<pid_t> = []) -> [pid_t] {
        descriptors.compactMap { pid, descriptor in
            guard !known.contains(pid), LivingSessions.isPart(pid, of: session) else { return nil }
            _ = recorder_signal_process(descriptor, number)
            if andContinue { _ = recorder_signal_process(descriptor, SIGCONT) }
            return pid
        }
    }

    /// Waits until these have ended, at most until then (CLOCK_MONOTONIC). Returns false if one has not.
    func wait(for pids: Set<pid_t>, until end: UInt64) -> Bool {
        for pid in pids {
            guard let descriptor = descriptors[pid] else { continue }
            var pidfd = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            while poll(&pidfd, 1, Int32((end - min(clockTime(), end) + 999_999) / 1_000_000)) < 0, errno == EINTR {}
            if pidfd.revents == 0 { return false }
        }
        return true
    }

    /// As it was when somebody last looked; nil when it is not known.
    func exit(of pid: pid_t) -> ProcessExit? { exits[pid] }

    /// Who has been waited for since?
    func look() {
        for (pid, descriptor) in descriptors {
            var status: Int32 = 0
            guard recorder_process_end(descriptor, &status) != 0 else { continue }
            if case .ended(let exit) = RunningProgram.Change(waitStatus: status) { exits[pid] = exit }
            close(descriptor)
            descriptors[pid] = nil
        }
    }
}
