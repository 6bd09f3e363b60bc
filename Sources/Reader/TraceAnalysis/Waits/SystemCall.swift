// System calls in which a thread may be found waiting: what their names are, by the numbers of the trace's architecture.
import Glibc

enum SystemCall {
    /// nil for one that is not known to wait.
    static func name(_ number: Int32, architecture: UInt32) -> String? {
        switch Int32(architecture) {
        case 62: x86[number] ?? both[number]
        case 183: arm[number] ?? both[number]
        default: nil
        }
    }

    /// System calls since Linux 5.1 (2019), whose numbers are the same on all architectures.
    private static let both: [Int32: String] = [424: "pidfd_send_signal", 441: "epoll_pwait2", 449: "futex_waitv", 455: "futex_wait"]

    private static let x86: [Int32: String] = [
        0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat", 7: "poll", 9: "mmap", 11: "munmap", 17: "pread",
        18: "pwrite", 19: "readv", 20: "writev", 23: "select", 26: "msync", 34: "pause", 35: "nanosleep", 40: "sendfile", 42: "connect",
        43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 58: "vfork", 61: "wait4", 65: "semop", 69: "msgsnd",
        70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 78: "getdents",
        82: "rename", 83: "mkdir", 84: "rmdir", 87: "unlink", 128: "sigtimedwait", 130: "sigsuspend", 162: "sync", 202: "futex",
        217: "getdents64", 220: "semtimedop", 230: "clock_nanosleep", 232: "epoll_wait", 242: "mq_timedsend", 243: "mq_timedreceive",
        247: "waitid", 257: "openat", 262: "fstatat", 263: "unlinkat", 264: "renameat", 270: "pselect", 271: "ppoll", 275: "splice",
        277: "sync_file_range", 281: "epoll_pwait", 285: "fallocate", 288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg",
        306: "syncfs", 307: "sendmmsg", 316: "renameat2", 326: "copy_file_range", 332: "statx",
    ]
    private static let arm: [Int32: String] = [
        22: "epoll_pwait", 25: "fcntl", 32: "flock", 35: "unlinkat", 38: "renameat", 45: "truncate", 46: "ftruncate", 47: "fallocate",
        56: "openat", 57: "close", 61: "getdents64", 63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread", 68: "pwrite",
        69: "preadv", 70: "pwritev", 71: "sendfile", 72: "pselect", 73: "ppoll", 76: "splice", 79: "fstatat", 80: "fstat", 81: "sync",
        82: "fsync", 83: "fdatasync", 84: "sync_file_range", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep",
        133: "sigsuspend", 137: "sigtimedwait", 182: "mq_timedsend", 183: "mq_timedreceive", 188: "msgrcv", 189: "msgsnd",
        192: "semtimedop", 193: "semop", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg",
        215: "munmap", 222: "mmap", 227: "msync", 242: "accept4", 243: "recvmmsg", 260: "wait4", 267: "syncfs", 269: "sendmmsg",
        276: "renameat2", 285: "copy_file_range", 291: "statx",
    ]
}
