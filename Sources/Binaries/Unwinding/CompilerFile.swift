// A file in which a traced program says what code it has made. Anybody may put one there: a FIFO is not waited for, another user's is not
// believed.
import ELF
import Glibc

final class CompilerFile {
    private let descriptor: Int32
    private let read: ReadBytes
    let byteCount: Int

    init?(_ path: String) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        read = readBytes(of: descriptor)
        byteCount = Int(status.st_size)
    }

    deinit { close(descriptor) }

    /// Reads up to `count` bytes; fewer at the end of the file, or on an error.
    func bytes(at offset: Int, _ count: Int) -> [UInt8] { read(UInt64(offset), count) }
}
