// Looks whether the process that writes a trace is alive: only then do its calls last until now.
import CTraceLayout
import ELF
import Glibc

enum LivingProcess {
    /// Returns CLOCK_MONOTONIC if the process is alive at this moment and writes this file; nil: no, or that cannot be seen from here.
    static func now(_ header: trace_file_header, _ file: InputFile) -> UInt64? {
        guard header.boot != 0, header.boot == bootID, let pid = ProcessNumbers.number(of: header.pid, in: header.pid_namespace),
            let begun = begin(of: pid), hasMapped(pid, file)
        else { return nil }
        let now = time(CLOCK_MONOTONIC), asleep = time(CLOCK_BOOTTIME) &- now
        // Another process that was given the same id began later.
        return begun <= header.first.monotonic_ns &+ asleep ? now : nil
    }

    /// Returns false if the process has ended, whatever it has mapped.
    static func isAlive(_ header: trace_file_header) -> Bool {
        guard header.boot != 0, header.boot == bootID, let pid = ProcessNumbers.number(of: header.pid, in: header.pid_namespace),
            let begun = begin(of: pid)
        else { return false }
        return begun <= header.first.monotonic_ns &+ (time(CLOCK_BOOTTIME) &- time(CLOCK_MONOTONIC))
    }

    /// proc_pid_maps(5); nil: there is no process, or it may not be read.
    static func maps(of pid: pid_t) -> [UInt8]? { contents("/proc/\(pid)/maps") }

    static var monotonicTime: UInt64 { time(CLOCK_MONOTONIC) }

    /// As ps(1) shows it at this moment.
    static func commandLine(_ header: trace_file_header) -> String? {
        ProcessNumbers.number(of: header.pid, in: header.pid_namespace).flatMap { contents("/proc/\($0)/cmdline") }
            .map { TraceAnalysis.commandLine($0) }
    }

    private static func time(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(max(time.tv_sec, 0)) * 1_000_000_000 + UInt64(max(time.tv_nsec, 0))
    }

    /// When the process began: CLOCK_BOOTTIME, rounded down to 10 ms. nil: there is none, or it is a zombie.
    private static func begin(of pid: pid_t) -> UInt64? {
        // proc_pid_stat(5): pid (comm) state … starttime; comm may hold anything.
        guard let bytes = contents("/proc/\(pid)/stat"), let name = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = bytes[(name + 1)...].split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) }
        guard fields.count > 19, fields[0].allSatisfy({ !"ZXx".contains($0) }), let ticks = UInt64(fields[19]) else { return nil }
        return ticks.multipliedReportingOverflow(by: 10_000_000).partialValue // USER_HZ is 100
    }

    /// The agent keeps the first page of its file mapped until the process ends or executes another program.
    private static func hasMapped(_ pid: pid_t, _ file: InputFile) -> Bool {
        guard let inode = file.inode, let lines = contents("/proc/\(pid)/maps") else { return false }
        let number = Array(String(inode).utf8), path = Array((resolved(file.path) ?? file.path).utf8)
        // proc_pid_maps(5): addresses, permissions, offset, device, inode, path. Some file systems show other inodes there.
        return lines.split(separator: UInt8(ascii: "\n")).contains { line in
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            return fields.count == 6
                && (fields[4].elementsEqual(number) || fields[5].drop { $0 == UInt8(ascii: " ") }.elementsEqual(path))
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// As in the header of a trace: the first 16 digits of the kernel's random id (proc(5)). 0 unknown.
    private static let bootID: UInt64 = {
        let digits = String(decoding: contents("/proc/sys/kernel/random/boot_id") ?? [], as: UTF8.self).filter(\.isHexDigit).prefix(16)
        return digits.count == 16 ? UInt64(digits, radix: 16) ?? 0 : 0
    }()

    /// nil: there is no such file, or not for us. Files of /proc do not say how long they are.
    private static func contents(_ path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var all: [UInt8] = [], part = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let got = read(file, &part, part.count)
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return got < 0 && all.isEmpty ? nil : all }
            all += part[..<got]
        }
    }
}
