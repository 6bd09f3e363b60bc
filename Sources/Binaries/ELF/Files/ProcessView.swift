// The file system as a process has it. Another one than ours: in a container, after chroot(2), in a service with a /tmp of its own.
import Glibc

package struct ProcessView: Sendable {
    /// Name here of the root that the process has; nil: its files have the same names here.
    package let root: String?
    /// The kernel writes names of files as whoever reads them has them, as far as there are any: those of a process after chroot(2) begin
    /// with this.
    private let prefix: String

    package init(of pid: pid_t) {
        let place = Self.link("/proc/\(pid)/root")
        prefix = place.map { $0 == "/" ? "" : $0 } ?? ""
        let isOurs = pid == getpid() || place == nil || prefix.isEmpty && Self.link("/proc/self/ns/mnt") == Self.link("/proc/\(pid)/ns/mnt")
        root = isOurs ? nil : "/proc/\(pid)/root"
    }

    /// - Parameter prefix: what names that the kernel writes begin with here; empty: nothing
    package init(root: String?, prefix: String) {
        self.root = root
        self.prefix = prefix
    }

    /// A name in /proc/PID/maps or of a link there, as a name here: `stat` says if it is that file. What is no name of a file stays as it is.
    package func path(of name: String) -> String {
        guard let root, name.hasPrefix("/"), !name.hasPrefix("/memfd:") else { return name }
        return root + (name == prefix || name.hasPrefix(prefix + "/") ? String(name.dropFirst(prefix.utf8.count)) : name)
    }

    /// Name here of the file of a process's program; nil: it may not be known.
    package static func program(of pid: pid_t) -> String? { link("/proc/\(pid)/exe").map { ProcessView(of: pid).path(of: $0) } }

    private static func link(_ path: String) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }
}
