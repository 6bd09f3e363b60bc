// Programs without the agent among the processes of a run, from /proc, where the kernel reports no exec. A process is found if it lives
// until somebody looks: what is short is missed, and nothing is said of it.
import CTraceLayout
import Glibc

package struct UnrecordedProgram: Equatable, Sendable {
    package var pid: pid_t
    /// 0 unknown.
    package var parent: pid_t
    /// CLOCK_MONOTONIC: when it was executed, or seen.
    package var at: UInt64
    /// The executable; where that is not known, the kernel's name of the program.
    package var path: String
    /// TRACE_UNRECORDED_.
    package var reason: Int

    package init(pid: pid_t, parent: pid_t, at nanoseconds: UInt64, path: String, reason: Int) {
        (self.pid, self.parent, at, self.path, self.reason) = (pid, parent, nanoseconds, path, reason)
    }
}

package struct ProcessSurvey {
    private struct Process {
        var parent: pid_t
        /// Identifies it among all with its id.
        let started: Substring
        var program = ""
        /// What is to be known of the program is known.
        var isSettled = false
        var isUnrecorded = false
    }

    private var processes: [pid_t: Process] = [:]
    package private(set) var found: [UnrecordedProgram] = []
    private let root: pid_t
    private var nextLook: UInt64 = 0
    private var interval = Self.shortest

    /// Short while processes begin. Looking takes at most one part in `share` of the time.
    private static let shortest: UInt64 = 5_000_000, longest: UInt64 = 100_000_000, share: UInt64 = 20

    package init(root: pid_t) { self.root = root }

    /// Does what is due. Nanoseconds until something is due again.
    mutating func look() -> UInt64 {
        let now = clockTime()
        guard now >= nextLook else { return nextLook - now }
        let isNew = lookNow()
        let after = clockTime()
        interval = isNew ? Self.shortest : min(interval * 2, Self.longest)
        nextLook = after + max(interval, (after - now) * Self.share)
        return nextLook - after
    }

    /// Returns true if there is a process, or a program, that was not there before.
    @discardableResult package mutating func lookNow() -> Bool {
        var isNew = false, waiting = [(pid: root, parent: pid_t(0))] + processes.map { ($0.key, $0.value.parent) }, seen: Set<pid_t> = []
        while let (pid, parent) = waiting.popLast() {
            guard seen.insert(pid).inserted else { continue }
            guard let status = Status(pid) else {
                processes[pid] = nil
                continue
            }
            if processes[pid]?.started != status.started { processes[pid] = Process(parent: parent, started: status.started) }
            if lookAtProgram(of: pid, status) { isNew = true }
            for tid in ProcessStatus.numbers(in: "/proc/\(pid)/task") {
                // Documentation/filesystems/proc.rst, 3.7. A zombie's children have another parent.
                let children = ProcessStatus.text("/proc/\(pid)/task/\(tid)/children") ?? ""
                for child in children.split(separator: " ") { if let child = pid_t(child) { waiting.append((child, pid)) } }
            }
        }
        return isNew
    }

    private mutating func lookAtProgram(of pid: pid_t, _ status: Status) -> Bool {
        guard var process = processes[pid] else { return false }
        defer { processes[pid] = process }
        var link = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(pid)/exe", &link, link.count)
        let path = String(decoding: link.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // Who has other rights than we do not see the link of. It is between two programs, or has none any more, if there is none.
        guard count > 0 || errno == EACCES || errno == EPERM else { return false }
        let name = count > 0 ? path : status.name
        let isNew = process.program != name
        if isNew { (process.program, process.isSettled, process.isUnrecorded) = (name, false, false) }
        if process.isSettled { return isNew }
        var program = ExecutedProgram(name: status.name)
        if count > 0 {
            guard let maps = ProcessStatus.text("/proc/\(pid)/maps"), !maps.isEmpty else { return isNew }
            program = ExecutedProgram(name: status.name, path: path, files: Self.files(maps))
            if program.hasAgent { process.isSettled = true }
        } else {
            program.isPrivileged = ProcessStatus.hasTakenIdentity(pid)
        }
        guard !process.isSettled, let reason = program.reasonUnrecorded(hasEnded: false, openPath: "/proc/\(pid)/exe") else { return isNew }
        process.isSettled = true
        // A copy of a process that is not recorded either is no other program.
        if processes[process.parent]?.program == name, processes[process.parent]?.isUnrecorded == true { return isNew }
        process.isUnrecorded = true
        found.append(UnrecordedProgram(pid: pid, parent: process.parent, at: clockTime(), path: name, reason: reason))
        return isNew
    }

    /// Paths of the mapped files. proc(5): address, permissions, offset, device, inode, path.
    private static func files(_ maps: String) -> Set<String> {
        Set(
            maps.split(separator: "\n").compactMap { line in
                let fields = line.split(separator: " ", maxSplits: 5)
                guard fields.count == 6 else { return nil }
                let path = fields[5].drop { $0 == " " }
                return path.hasPrefix("/") ? String(path) : nil
            })
    }

    /// A process that has not ended. proc(5): pid (comm) state ppid …, the time of its start as the 22nd.
    private struct Status {
        var name: String
        var started: Substring

        init?(_ pid: pid_t) {
            guard let text = ProcessStatus.text("/proc/\(pid)/stat"), let open = text.firstIndex(of: "("),
                let close = text.lastIndex(of: ")"), open < close
            else { return nil }
            let fields = text[text.index(after: close)...].split(separator: " ")
            guard fields.count > 19, let state = fields.first, !["Z", "X", "x"].contains(state) else { return nil }
            name = String(text[text.index(after: open)..<close])
            started = fields[19]
        }
    }
}
