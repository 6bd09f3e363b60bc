// Finds live processes of a run that have no file yet: a forked one makes its own with its first recorded call, which may come late.
// /proc is asked: their environment says which run they belong to, or their memory map shows that the agent is in it.
import CTraceLayout
import Glibc
import TraceFormat

package enum LivingSessions {
    /// Returns true if a process may be alive that the program `root`, which has ended, or one of its children has started.
    package static func mayHaveAny(of session: UInt64, since root: pid_t) -> Bool {
        !look(for: session, since: root) { _ in false }
    }

    /// Processes that the program `root`, which has ended, and its children have started.
    static func processes(of session: UInt64, since root: pid_t) -> [pid_t] {
        var found: [pid_t] = []
        _ = look(for: session, since: root) {
            found.append($0)
            return true
        }
        return found
    }

    /// Calls `found` with each, until it returns false. Returns false if there may be more.
    private static func look(for session: UInt64, since root: pid_t, found: (pid_t) -> Bool) -> Bool {
        var looked = root
        // A process started while we look has a parent that we see, or a pid that is assigned meanwhile.
        for _ in 0..<100 {
            guard let last = lastProcess else { return false } // no /proc
            if last == looked { return true }
            for pid in numbers(after: looked, upTo: last) where isPart(pid, of: session) && !found(pid) { return false }
            looked = last
        }
        return false
    }

    /// Sessions of all processes whose environment can be read.
    package static var all: Set<UInt64> {
        Set(ProcessStatus.numbers(in: "/proc").compactMap { environment(of: $0).flatMap { self.session(in: $0) } })
    }

    static func isPart(_ pid: pid_t, of session: UInt64) -> Bool {
        guard let variables = environment(of: pid), !isAgents(pid) else { return false }
        if let found = self.session(in: variables) { return found == session }
        // Recorded by LD_PRELOAD alone: of no run.
        if variables.split(separator: 0).contains(where: { $0.starts(with: Array("LD_PRELOAD=".utf8)) }) { return false }
        // A program may have written over its environment, to show a title.
        let agent = Array("/libtracer.so".utf8)
        return (ProcessStatus.readAll("/proc/\(pid)/maps") ?? []).split(separator: 0x0a).contains {
            $0.suffix(agent.count).elementsEqual(agent)
        }
    }

    /// It shares the memory of a program that has ended, and is about to end as well (FileJob.swift).
    private static func isAgents(_ pid: pid_t) -> Bool {
        ProcessStatus.text("/proc/\(pid)/comm") == TRACE_AGENT_TASK + "\n"
    }

    /// Returns a process's environment; nil when it cannot be read. It is empty for a moment during exec: vfork's parent goes on when the
    /// new memory is in use, which gets its env_end later (fs/exec.c, exec_mmap; fs/binfmt_elf.c, create_elf_tables). It stays empty if the
    /// program was started without any.
    private static func environment(of pid: pid_t) -> [UInt8]? {
        var variables: [UInt8]?
        for _ in 0..<50 {
            variables = ProcessStatus.readAll("/proc/\(pid)/environ")
            guard let variables, variables.isEmpty, access("/proc/\(pid)/exe", F_OK) == 0 else { break } // a kernel thread has no program
            usleep(100)
        }
        return variables
    }

    private static func session(in environment: [UInt8]) -> UInt64? {
        let start = Array("\(Variables.session.name)=".utf8)
        for entry in environment.split(separator: 0) where entry.starts(with: start) {
            return Variables.session.read(String(decoding: entry.dropFirst(start.count), as: UTF8.self))?.number
        }
        return nil
    }

    /// The number that was given last in our namespace, to a process or a thread (proc(5), loadavg).
    private static var lastProcess: pid_t? {
        ProcessStatus.text("/proc/loadavg")?.split(whereSeparator: \.isWhitespace).last.flatMap { pid_t($0) }
    }

    /// Numbers start anew when they have reached their limit.
    private static func numbers(after first: pid_t, upTo last: pid_t) -> [pid_t] {
        if last > first, last - first < 1000 { return Array(first + 1...last) }
        return ProcessStatus.numbers(in: "/proc").filter { last > first ? $0 > first && $0 <= last : $0 > first || $0 <= last }
    }
}
