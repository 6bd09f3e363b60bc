// How the scheduler chooses a thread (proc(5): stat).
import Glibc

package struct ThreadPriority: Equatable {
    /// SCHED_ of sched(7).
    package var policy: Int32
    package var nice: Int32
    /// Real-time priority under SCHED_FIFO and SCHED_RR; else 0.
    package var priority: UInt32

    /// Returns the priorities of at most `most` threads of the process, by thread id.
    package static func all(of pid: pid_t, atMost most: Int = 256) -> [pid_t: ThreadPriority] {
        var all: [pid_t: ThreadPriority] = [:]
        for tid in ProcessStatus.numbers(in: "/proc/\(pid)/task").prefix(most) {
            all[tid] = ProcessStatus.text("/proc/\(pid)/task/\(tid)/stat").flatMap { ThreadPriority(stat: $0) }
        }
        return all
    }

    /// The name, in parentheses, may hold anything; what follows begins with the third field.
    package init?(stat: String) {
        guard let close = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: close)...].split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard fields.count > 38, let nice = Int32(fields[16]), let priority = UInt32(fields[37]), let policy = Int32(fields[38]) else {
            return nil
        }
        (self.policy, self.nice, self.priority) = (policy, nice, priority)
    }
}
