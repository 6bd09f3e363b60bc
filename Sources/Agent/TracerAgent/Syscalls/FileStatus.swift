// Status of a file from stat(2), in struct stat as the kernel lays it out (arch/x86/include/uapi/asm/stat.h,
// include/uapi/asm-generic/stat.h).
import CSupport

struct FileStatus {
    private var words = InlineArray<18, UInt64>(repeating: 0)

    /// Status of the file itself, even if it is a link. nil: there is none, or it cannot be seen.
    init?(at path: CText) {
        if FileStatus.failure(at: path, follows: false, &self) != 0 { return nil }
    }
    /// Status of what the path leads to in the end.
    init?(of path: StaticString) { self.init(following: path.utf8Start) }
    init?(following path: CText) {
        if FileStatus.failure(at: path, follows: true, &self) != 0 { return nil }
    }
    init?(ofDescriptor descriptor: Int) {
        let result = withUnsafeMutablePointer(to: &words) { SystemCall.call(SystemCall.fstat, descriptor, bits($0)) }
        if result != 0 { return nil }
    }
    init() {}

    /// 0 and the status, or an errno.
    static func failure(at path: CText, follows: Bool, _ status: inout FileStatus) -> Int {
        let noFollow = 0x100 // AT_SYMLINK_NOFOLLOW
        return -withUnsafeMutablePointer(to: &status.words) {
            SystemCall.call(SystemCall.newfstatat, SystemCall.currentDirectory, bits(path), bits($0), follows ? 0 : noFollow)
        }
    }

    private var mode: UInt32 { Architecture.mode(words[2], words[3]) }
    private var owner: Int { Architecture.owner(words[2], words[3]) }
    var links: UInt64 { Architecture.links(words[2], words[3]) }
    var inode: UInt64 { words[1] }
    var byteCount: Int { Int(truncatingIfNeeded: words[6]) }
    var device: UInt64 { words[0] }
    var writtenNanoseconds: UInt32 { UInt32(truncatingIfNeeded: words[12]) }
    var writtenSeconds: Int { Int(truncatingIfNeeded: words[11]) }
    var changedSeconds: Int { Int(truncatingIfNeeded: words[13]) } // the inode, too: nobody can set this one
    /// Device, inode, size and the times of the last write and change.
    var identity: InlineArray<7, UInt64> { [words[0], words[1], words[6], words[11], words[12], words[13], words[14]] }

    /// st_mode's kinds, inode(7).
    var isRegular: Bool { mode & 0o170000 == 0o100000 }
    var isSymbolicLink: Bool { mode & 0o170000 == 0o120000 }
    /// … that nobody else may write to.
    func isFolder(of user: Int) -> Bool { mode & 0o170022 == 0o040000 && owner == user }
    func isFile(of user: Int) -> Bool { mode & 0o170022 == 0o100000 && owner == user }

    /// The same file, by whatever name.
    static func == (a: FileStatus, b: FileStatus) -> Bool { a.words[0] == b.words[0] && a.words[1] == b.words[1] }
}
