// The folder in which a process that has another view of the file system makes its traces. It lies in that view, and the tool has it open: it
// outlives the process and its root.
import CRecorder
import Glibc

final class Workplace: Sendable {
    /// Its name as the process has it, and here.
    let inner: String, path: String
    private let parent: Int32, folder: Int32, name: String

    /// Folders that a process may mostly write to; some services have but one of them.
    private static let places = ["/tmp", "/var/tmp", "/dev/shm", "/run"]

    /// Throws a `Refusal` where there is none for it.
    init(for target: AttachTarget, at root: String) throws(Refusal) {
        let top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard top >= 0 else { throw target.refused(errno) }
        defer { close(top) }
        for place in Self.places {
            // Links are followed as the process would: one of its own must not lead anywhere else.
            let parent = recorder_open_folder(top, String(place.dropFirst()))
            if parent < 0 { continue }
            let name = "tracer.\(target.pid).\(String(UInt32.random(in: 0...UInt32.max), radix: 36))"
            if mkdirat(parent, name, 0o700) == 0 {
                let folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                if folder >= 0, fchownat(parent, name, target.user, target.group, AT_SYMLINK_NOFOLLOW) == 0 {
                    (self.parent, self.folder, self.name) = (parent, folder, name)
                    inner = place + "/" + name
                    path = "/proc/self/fd/\(folder)"
                    return
                }
                if folder >= 0 { close(folder) }
                unlinkat(parent, name, AT_REMOVEDIR)
            }
            close(parent)
        }
        throw .cannotRun(
            "process \(target.pid) has another view of the file system (a container, chroot), in which there is no \(Self.places.joined(separator: ", ")) to write its trace to: run tracer inside of it"
        )
    }

    deinit {
        close(folder)
        close(parent)
    }

    /// Once nothing is in it.
    func remove() { unlinkat(parent, name, AT_REMOVEDIR) }

    /// Copies a file of it to a new one here. Returns errno, 0 when done.
    func copy(_ file: Int32, to path: String) -> Int32 {
        let copy = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard copy >= 0 else { return errno }
        defer { close(copy) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20), offset: off_t = 0
        while true {
            let count = pread(file, &bytes, bytes.count, offset)
            if count == 0 { return 0 }
            if count < 0, errno == EINTR { continue }
            let error = count < 0 ? errno : bytes.withUnsafeBytes { writeWhole(.init(rebasing: $0[..<count]), to: copy, at: offset) }
            guard error == 0 else {
                unlink(path)
                return error
            }
            offset += off_t(count)
        }
    }
}
