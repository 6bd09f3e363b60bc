// Says that this tool, and no other, records a process by attaching to it: a name among the abstract ones of unix(7), which is free again
// when the tool has ended, however it did.
import Glibc

final class AttachClaim {
    private let socket: Int32

    /// Throws a `Refusal` where another tool has it.
    init(_ pid: pid_t) throws(Refusal) {
        // An id may be given again: with the time of its start (field 22 of /proc/PID/stat, proc(5)) it is this process.
        let fields = ProcessStatus.stat(of: pid)
        guard fields.count > 19 else { throw .cannotRun("process \(pid) has ended") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array("\0tracer attach \(pid) \(fields[19])".utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + name.count)
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, length) }
        }
        guard result == 0 || errno != EADDRINUSE else {
            close(socket)
            throw .cannotRun("process \(pid) is being recorded by another tracer attach: end that first")
        }
    }

    deinit { close(socket) }
}
