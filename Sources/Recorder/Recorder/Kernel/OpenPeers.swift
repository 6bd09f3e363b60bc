// Descriptors of a run's processes that are open on an object or on its peer: for a pipe whoever has it open as well, for a socket the
// one that it is connected to (proc(5): fd, fdinfo, net/tcp; sock_diag(7)).
import CRecorder
import CTraceLayout
import Glibc

package struct OpenPeer: Equatable {
    package var pid: pid_t
    package var descriptor: Int32
    /// TRACE_ACCESS_ bits.
    package var access: Int
    package var object: String
    /// Socket that it is connected to, where it is known; else empty.
    package var peer = ""

    /// Returns what a descriptor is open on; nil: nothing, or we may not read it.
    package static func object(_ descriptor: Int32, of pid: pid_t) -> String? {
        var link = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(pid)/fd/\(descriptor)", &link, link.count)
        return count > 0 ? String(decoding: link[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    /// Finds the objects and their peers in as many processes as can be looked through until KernelWatch.ownTime exceeds `limit`.
    /// - Parameters:
    ///   - objects: each with the peer that it has, as far as it is a socket
    package static func all(of objects: [String: String], in processes: some Sequence<pid_t>, until limit: UInt64) -> [OpenPeer] {
        let peers = Dictionary(
            objects.lazy.filter { !$0.value.isEmpty }.map { ($0.value, $0.key) }, uniquingKeysWith: { first, _ in first })
        var found: [OpenPeer] = []
        for pid in processes {
            for descriptor in ProcessStatus.numbers(in: "/proc/\(pid)/fd") {
                guard let object = object(descriptor, of: pid), let peer = objects[object] ?? peers[object],
                    let access = access(descriptor, of: pid)
                else { continue }
                found.append(OpenPeer(pid: pid, descriptor: descriptor, access: access, object: object, peer: peer))
            }
            if KernelWatch.ownTime > limit { break }
        }
        return found
    }

    /// Returns what a program that was just executed has as its standard input and outputs. Not files: a pipe with a name looks like one.
    static func standard(of pid: pid_t) -> [OpenPeer] {
        (Int32(0)...2).compactMap { descriptor in
            guard let object = object(descriptor, of: pid), !object.hasPrefix("/") || object.hasPrefix("/dev/"),
                let access = access(descriptor, of: pid)
            else { return nil }
            return OpenPeer(pid: pid, descriptor: descriptor, access: access, object: object)
        }
    }

    /// "flags:	0100001", octal, as open(2) has them.
    private static func access(_ descriptor: Int32, of pid: pid_t) -> Int? {
        let lines = ProcessStatus.text("/proc/\(pid)/fdinfo/\(descriptor)")?.split(separator: "\n") ?? []
        for line in lines where line.hasPrefix("flags:") {
            guard let flags = Int32(line.dropFirst(6).drop { $0 == "\t" || $0 == " " }, radix: 8) else { return nil }
            switch flags & O_ACCMODE {
            case O_RDONLY: return TRACE_ACCESS_READ
            case O_WRONLY: return TRACE_ACCESS_WRITE
            default: return TRACE_ACCESS_READ | TRACE_ACCESS_WRITE
            }
        }
        return nil
    }
}

// MARK: - Sockets

extension OpenPeer {
    /// Returns the socket that "socket:[4712]" of a process is connected to, in the same form; empty where none is known.
    package static func peer(of object: String, of pid: pid_t) -> String {
        guard let inode = inode(object) else { return "" }
        let unix = recorder_unix_peer(inode)
        if unix != 0 { return "socket:[\(unix)]" }
        return tcpPeer(of: inode, pid).map { "socket:[\($0)]" } ?? ""
    }

    private static func inode(_ object: String) -> UInt32? {
        object.hasPrefix("socket:[") && object.hasSuffix("]") ? UInt32(object.dropFirst(8).dropLast()) : nil
    }

    /// The connection whose ends are the same the other way round, in the process's network.
    private static func tcpPeer(of inode: UInt32, _ pid: pid_t) -> UInt32? {
        let all = ["tcp", "tcp6"].flatMap { connections("/proc/\(pid)/net/\($0)") }
        guard let own = all.first(where: { $0.inode == inode }) else { return nil }
        return all.first { $0.local == own.remote && $0.remote == own.local && $0.inode != 0 }?.inode
    }

    package struct Connection: Equatable {
        package var local: String, remote: String
        package var inode: UInt32

        package init(local: String, remote: String, inode: UInt32) {
            self.local = local
            self.remote = remote
            self.inode = inode
        }
    }

    /// proc_net_tcp.rst: number, local and remote address as ADDRESS:PORT in hexadecimal, state, …, the inode as the tenth.
    package static func connection(_ line: Substring) -> Connection? {
        let fields = line.split(separator: " ")
        guard fields.count >= 10, let inode = UInt32(fields[9]) else { return nil }
        return Connection(local: address(fields[1]), remote: address(fields[2]), inode: inode)
    }

    private static func connections(_ path: String) -> [Connection] {
        (ProcessStatus.text(path) ?? "").split(separator: "\n").dropFirst().compactMap { connection($0) }
    }

    /// A socket of IPv6 that talks to one of IPv4 has its address mapped (RFC 4291, 2.5.5.2), here in words of the machine's order.
    private static func address(_ text: Substring) -> String {
        let mapped = ["0000000000000000FFFF0000", "00000000000000000000FFFF"]
        return mapped.contains { text.hasPrefix($0) } && text.utf8.count > 32 ? String(text.dropFirst(24)) : String(text)
    }
}
