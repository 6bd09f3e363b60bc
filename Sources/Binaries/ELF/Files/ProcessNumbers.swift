// Numbers of processes count in a pid namespace each (pid_namespaces(7)): those that a trace has are of the namespace of its process.
import Glibc

package enum ProcessNumbers {
    /// The inode of a process's pid namespace, by which traces know it; 0 unknown, or not for us.
    package static func namespace(of process: String = "self") -> UInt64 {
        var info = stat()
        return stat("/proc/\(process)/ns/pid", &info) == 0 ? UInt64(info.st_ino) : 0
    }

    /// Returns the number here of the process that has this one in that namespace; nil: there is none that can be seen from here. A
    /// namespace is visible from those around it.
    package static func number(of pid: UInt32, in wanted: UInt64) -> pid_t? {
        guard wanted != 0 else { return nil }
        if wanted == namespace() { return pid_t(bitPattern: pid) }
        return (entryNames(in: "/proc") ?? []).lazy.compactMap { pid_t($0) }.first { number in
            namespace(of: String(number)) == wanted && innermostNumber(of: number) == pid
        }
    }

    /// proc_pid_status(5), NSpid: its numbers in the namespaces from this one inwards.
    package static func innermostNumber(of pid: pid_t) -> UInt32? {
        let file = open("/proc/\(pid)/status", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4096) // the line is among the first
        let count = read(file, &bytes, bytes.count)
        let lines = bytes.prefix(max(count, 0)).split(separator: UInt8(ascii: "\n"))
        guard let line = lines.first(where: { $0.starts(with: Array("NSpid:".utf8)) }),
            let last = line.split(whereSeparator: { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }).last
        else { return nil }
        return UInt32(String(decoding: last, as: UTF8.self))
    }
}
