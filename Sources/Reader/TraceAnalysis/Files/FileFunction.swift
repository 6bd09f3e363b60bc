// The functions of libc that use files, and what each does with one. Their arguments are found by the names of their parameters in
// prototypes.txt.
import TraceFormat

enum FileFunction: Sendable {
    /// `path`, relative to `directory`; the result is a descriptor, or a FILE or DIR.
    case open, openStream
    /// `descriptor` gets a FILE or DIR, the result.
    case adopt
    case close, closeStream
    case read, write, sync
    /// Result in elements of `size` bytes, of `stream`.
    case readStream, writeStream
    /// From `in` to `out`.
    case copy
    case map
    /// Asks about a path, or a descriptor.
    case lookUp
    /// Changes what is at a path, or at two.
    case change
    case duplicate, control
    case enterFolder

    private static let byName: [String: FileFunction] = {
        func all(_ function: FileFunction, _ names: String) -> [(String, FileFunction)] {
            names.split(separator: ",").map { (String($0), function) }
        }
        let groups =
            all(
                .open,
                "open,open64,__open,__open64,__open_2,__open64_2,openat,openat64,__openat_2,__openat64_2,creat,creat64,mkstemp,mkstemp64,mkostemp,mkostemp64"
            ) + all(.openStream, "fopen,fopen64,freopen,freopen64,opendir") + all(.adopt, "fdopen,fdopendir")
            + all(.close, "close,__close") + all(.closeStream, "fclose,closedir")
            + all(.read, "read,__read,__read_chk,pread,pread64,__pread64,__pread_chk,__pread64_chk,readv,preadv,preadv64")
            + all(.write, "write,__write,pwrite,pwrite64,__pwrite64,writev,pwritev,pwritev64") + all(.sync, "fsync,fdatasync,syncfs")
            + all(.readStream, "fread,__fread_chk") + all(.writeStream, "fwrite") + all(.copy, "sendfile,sendfile64,copy_file_range")
            + all(.map, "mmap,mmap64")
            + all(
                .lookUp,
                "stat,stat64,lstat,lstat64,fstat,fstat64,fstatat,fstatat64,__xstat,__xstat64,__lxstat,__lxstat64,__fxstat,__fxstat64,__fxstatat,__fxstatat64,statx,statfs,statfs64,access,euidaccess,eaccess,faccessat,readlink,__readlink_chk,readlinkat,realpath,__realpath_chk"
            )
            + all(
                .change,
                "unlink,remove,unlinkat,rename,renameat,renameat2,link,symlink,symlinkat,linkat,mkdir,mkdirat,rmdir,chmod,fchmod,fchmodat,chown,lchown,fchown,utimensat,truncate,truncate64,ftruncate,ftruncate64,fallocate,fallocate64"
            )
            + all(.duplicate, "dup,dup2,__dup2,dup3") + all(.control, "fcntl,fcntl64,__fcntl") + all(.enterFolder, "chdir,fchdir")
        return Dictionary(uniqueKeysWithValues: groups)
    }()

    /// Returns one entry per row; nil: the function is none of them, or another module's of that name.
    static func all(_ table: FunctionNames) -> [FileFunction?] {
        [nil] + table.rows.map { row in isLibc(row.module) ? byName[row.symbol] : nil }
    }
    static func isName(_ name: String) -> Bool { byName[name] != nil }
    private static func isLibc(_ module: String) -> Bool {
        ["libc.so", "libc-", "libc.musl", "libpthread", "ld-musl"].contains { module.hasPrefix($0) }
    }

    /// What its time is counted as.
    var kind: FileUse.Kind? {
        switch self {
        case .open, .openStream, .adopt, .close, .closeStream, .map: .open
        case .read, .readStream: .read
        case .write, .writeStream, .copy: .write
        case .sync: .sync
        case .lookUp: .lookUp
        case .change: .change
        case .duplicate, .control, .enterFolder: nil
        }
    }
}
