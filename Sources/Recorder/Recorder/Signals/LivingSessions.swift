// Finds live processes of a run that have no file yet: a forked one makes its own with its first recorded call, which may come late.
// /proc is asked: their environment says which run they belong to, or their memory map shows that the agent is in it.
import CTraceLayout
import Glibc
import TraceFormat
import Unwinding

package enum LivingSessions {
    /// Returns true if a process may be alive that the program `root`, which has ended, or one of its children has started.
    package static func mayHaveAny(of session: UInt64, since root: pid_t) -> Bool {
        !look(since: root) { pid in
            switch run(of: pid) {
            case .none: true
            case .known(let found): found != session
            case .unknown: false
            }
        }
    }

    /// Processes that the program `root`, which has ended, and its children have started, as far as they show that they are of this run.
    static func processes(of session: UInt64, since root: pid_t) -> [pid_t] {
        var found: [pid_t] = []
        _ = look(since: root) { pid in
            if isPart(pid, of: session) { found.append(pid) }
            return true
        }
        return found
    }

    /// Calls `body` with each process that was started since then, until it returns false. Returns false if there may be more.
    private static func look(since root: pid_t, body: (pid_t) -> Bool) -> Bool {
        var looked = root
        // A process started while we look has a parent that we see, or a pid that is assigned meanwhile.
        for _ in 0..<100 {
            guard let last = lastProcess else { return false } // no /proc
            if last == looked { return true }
            for pid in numbers(after: looked, upTo: last) where !body(pid) { return false }
            looked = last
        }
        return false
    }

    /// Sessions of all processes whose environment can be read.
    package static var all: Set<UInt64> {
        Set(ProcessStatus.numbers(in: "/proc").compactMap { environment(of: $0).flatMap { self.session(in: $0) } })
    }

    /// True if it shows that it is: who is not known to be of the run is never signalled.
    static func isPart(_ pid: pid_t, of session: UInt64) -> Bool {
        if case .known(let found) = run(of: pid) { found == session } else { false }
    }

    /// The run that a process belongs to. Unknown: the agent is in it, and nothing says for whom.
    private enum Run { case none, known(UInt64), unknown }
    private static func run(of pid: pid_t) -> Run {
        guard let variables = environment(of: pid), !isAgents(pid) else { return .none }
        if let session = session(in: variables) { return .known(session) }
        let maps = ProcessMaps(pid: pid)
        guard maps.contains(where: { $0.name.hasSuffix("/libtracer.so") }) else { return .none }
        // Its own trace or, in a forked child without one, its parent's.
        if let session = maps.lazy.compactMap({ $0.offset == 0 ? session(inTrace: $0.path) : nil }).first {
            return session == 0 ? .none : .known(session)
        }
        // It was recorded by LD_PRELOAD alone, or has loaded the agent itself. Or it has written over its environment, to show a title.
        return hasVariables(variables) ? .none : .unknown
    }

    private static func session(inTrace path: String) -> UInt64? {
        var info = Glibc.stat()
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil } // to open a device may do something
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var header = trace_file_header()
        let size = MemoryLayout<trace_file_header>.size
        return pread(file, &header, size, 0) == size && header.hasMagic && header.version == TRACE_VERSION ? header.session : nil
    }

    /// One NAME=VALUE is left.
    private static func hasVariables(_ environment: [UInt8]) -> Bool {
        environment.split(separator: 0).contains { entry in
            let name = entry.prefix { $0 != UInt8(ascii: "=") }
            return !name.isEmpty && name.count < entry.count && name.allSatisfy { $0 > 0x20 && $0 < 0x7f }
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
