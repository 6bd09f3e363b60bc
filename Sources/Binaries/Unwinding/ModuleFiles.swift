// The files that processes run, each read once.
import Glibc

package final class ModuleFiles {
    private var known: [String: (version: FileVersion, module: UnwindModule?)] = [:]

    private lazy var vdso = UnwindModule.ofVDSO()

    package init() {}

    /// nil: the mapping is of no file, or of none that describes its code; or another one has that path now.
    /// - Parameter inode: of what is mapped, 0 unknown
    func module(at path: String, inode: UInt64 = 0) -> UnwindModule? {
        if path == UnwindModule.vdsoPath { return vdso }
        var status = stat()
        guard path.utf8.first == UInt8(ascii: "/"), stat(path, &status) == 0, inode == 0 || inode == UInt64(status.st_ino) else {
            return nil
        }
        let version = FileVersion(status)
        if let known = known[path], known.version == version { return known.module }
        let module = UnwindModule(path: path)
        known[path] = (version, module)
        return module
    }
}

struct FileVersion: Equatable {
    private let device: UInt64, inode: UInt64, changed: Int, changedPart: Int, size: Int

    init(_ status: stat) {
        (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int(status.st_size))
        (changed, changedPart) = (Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec))
    }
}
