// The file that libtracer-audit.so writes to. The directory may be anybody's to write in, so the file is made here, under a name that
// nobody can foresee, and kept open: the library takes what stands at the name only if it is this very file.
import Glibc

package final class LoaderNotes {
    let path: String
    private let file: Int32
    private var identity = stat()
    private var isRenamed = false

    init(directory: String) throws(Refusal) {
        path = directory + "/.tracer-loader." + String(UInt64.random(in: 1 << 60...UInt64.max), radix: 16)
        file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0, fstat(file, &identity) == 0 else {
            throw .cannotRun("cannot create \(path): \(String(cString: strerror(errno)))")
        }
    }

    deinit {
        if !isRenamed, isInPlace { unlink(path) }
        close(file)
    }

    /// As audit.c reads it.
    var setting: String { "\(getpid()):\(identity.st_dev):\(identity.st_ino):\(path)" }

    /// True if the name still refers to this file.
    private var isInPlace: Bool {
        var now = stat()
        return lstat(path, &now) == 0 && now.st_dev == identity.st_dev && now.st_ino == identity.st_ino
    }

    /// Gives the file its name beside a trace. False: the library has written nothing, or somebody has taken the file away.
    package func move(to name: String) -> Bool {
        fstat(file, &identity)
        isRenamed = identity.st_size > 0 && isInPlace && rename(path, name) == 0
        return isRenamed
    }
}
