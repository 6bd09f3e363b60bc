// The kernel's numbers by their names; what differs between architectures is in Architecture and SystemCall.

/// open(2)'s flags (include/uapi/asm-generic/fcntl.h).
enum Open {
    static let writeOnly = 1, readWrite = 2, create = 0o100, exclusive = 0o200, nonBlocking = 0o4000
    static let keepAccessTime = 0o1000000 // O_NOATIME
    static let closeOnExec = 0o2000000
    /// A file of ours is what its name says, and nobody inherits it.
    static let own = closeOnExec | Architecture.noFollow
}

/// mmap(2)'s flags and mremap(2)'s.
enum Mapping {
    static let shared = 1, mayMove = 1
    static let pages = 0x2 | 0x20 | 0x4000 // MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE
    static let fixed = 0x10, fixedNoReplace = 0x10_0000
    static let mayMoveTo = 3 // MREMAP_MAYMOVE, MREMAP_FIXED
    static let dontUnmap = 4 // Linux 5.7, for files 5.13
}

/// madvise(2).
enum Advice {
    static let dontNeed = 4
    static let wipeOnFork = 18 // Linux 4.14
    static let populateRead = 22 // Linux 5.14: one system call instead of a page fault every 64 KB
    static let hugePage = 14
    static let cold = 20 // Linux 5.4
    static let populateWrite = 23
}

/// prctl(2).
enum Control {
    static let setName = 15, getName = 16, getFilters = 21 /* PR_GET_SECCOMP */, setFilters = 22, getCounter = 25 /* PR_GET_TSC */,
        setCounter = 26
    static let setDispatch = 59 // PR_SET_SYSCALL_USER_DISPATCH
}

/// futex(2).
enum Futex {
    static let wait = 0, wake = 1, wakeOperation = 5, lockInheriting = 6, unlockInheriting = 7, isPrivate = 128
}

/// clone(2)'s flags.
enum Clone {
    static let memory = 0x100, directories = 0x200, files = 0x400, handlers = 0x800, vfork = 0x4000, parent = 0x8000, thread = 0x10000
    static let semaphores = 0x40000, threadBlock = 0x80000, parentNumber = 0x10_0000, clearNumber = 0x20_0000
}

/// clock_gettime(2).
enum ClockNumber {
    static let realtime = 0, monotonic = 1, process = 2, thread = 3, boot = 7
}

/// getrlimit(2).
enum ResourceLimit {
    static let fileBytes = 1, data = 2, stackBytes = 3, addressSpace = 9
    /// .max: none. `unknown` where the kernel does not say.
    static func soft(_ resource: Int, unknown: UInt64 = .max) -> UInt64 {
        var limit: (soft: UInt64, hard: UInt64) = (unknown, unknown)
        _ = withUnsafeMutablePointer(to: &limit) { SystemCall.call(SystemCall.prlimit64, 0, resource, 0, bits($0)) }
        return limit.soft
    }
}

/// sigprocmask(2)'s ways, sigaction(2)'s flags.
enum Action {
    static let block = 0, setMask = 2
    static let withInfo: UInt64 = 4
    /// SA_ONSTACK, SA_RESTART, SA_RESTORER. The last one means nothing where the kernel brings its own return.
    static let plain: UInt64 = 0x0800_0000 | 0x1000_0000 | 0x0400_0000
}
