// The trace that a running process is writing.
import CTraceLayout
import ELF
import Glibc

package enum TracedProcess {
    package enum Answer: Sendable {
        case trace(String)
        /// There is no process of this id.
        case absent
        /// It belongs to somebody else.
        case forbidden
        case notRecorded
    }

    /// The agent keeps the first page of its file mapped as long as it records.
    package static func trace(of pid: pid_t) -> Answer {
        if kill(pid, 0) != 0, errno == ESRCH { return .absent }
        guard let maps = LivingProcess.maps(of: pid) else { return errno == ENOENT ? .absent : .forbidden }
        let view = ProcessView(of: pid)
        var seen: Set<String> = []
        for line in maps.split(separator: UInt8(ascii: "\n")) {
            // proc_pid_maps(5): addresses, permissions, offset, device, inode, path.
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
            guard fields.count == 6, fields[1].last == UInt8(ascii: "s") else { continue }
            let path = String(decoding: fields[5].drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
            guard path.hasPrefix("/"), !path.hasPrefix("/memfd:"), !path.hasPrefix("/dev/"), seen.insert(path).inserted else { continue }
            let range = String(decoding: fields[0], as: UTF8.self)
            // The file has a name here, or one in the process's view of the file system, or none any more (proc(5), map_files).
            for candidate in [path, view.path(of: path), "/proc/\(pid)/map_files/\(range)"] where isTrace(candidate, of: pid) {
                return .trace(candidate)
            }
        }
        return .notRecorded
    }

    private static func isTrace(_ path: String, of pid: pid_t) -> Bool {
        guard let file = try? InputFile(path: path), let header = try? TraceFile.readHeader(file) else { return false }
        return header.state == UInt32(TRACE_RECORDING) && ProcessNumbers.number(of: header.pid, in: header.pid_namespace) == pid
    }
}
