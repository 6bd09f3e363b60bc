// Raw system calls. The agent runs before libc and inside signal handlers, so it asks the kernel itself; errno of the
// traced program is never touched. A result in -4095 ... -1 is minus an errno (syscall(2)).
import CSupport

enum SystemCall {
    #if arch(x86_64)
    static let read = 0, write = 1, close = 3, mmap = 9, mprotect = 10, munmap = 11, ioctl = 16, mremap = 25
    static let madvise = 28, getpid = 39, ftruncate = 77, getcwd = 79, prctl = 157, gettid = 186, sched_yield = 24
    static let tgkill = 234, openat = 257, unlinkat = 263, readlinkat = 267, fallocate = 285, prlimit64 = 302
    static let clock_gettime = 228, fstat = 5, getppid = 110, kill = 62, sigaltstack = 131, pwrite64 = 18, pread64 = 17, seccomp = 317, getrusage = 98
    static let rt_sigaction = 13, rt_sigprocmask = 14, rt_sigpending = 127, rt_sigtimedwait = 128, futex = 202
    #elseif arch(arm64) // the kernel's generic table, include/uapi/asm-generic/unistd.h
    static let read = 63, write = 64, close = 57, mmap = 222, mprotect = 226, munmap = 215, ioctl = 29, mremap = 216
    static let madvise = 233, getpid = 172, ftruncate = 46, getcwd = 17, prctl = 167, gettid = 178, sched_yield = 124
    static let tgkill = 131, openat = 56, unlinkat = 35, readlinkat = 78, fallocate = 47, prlimit64 = 261
    static let clock_gettime = 113, fstat = 80, getppid = 173, kill = 129, sigaltstack = 132, pwrite64 = 68, pread64 = 67, seccomp = 277, getrusage = 165
    static let rt_sigaction = 134, rt_sigprocmask = 135, rt_sigpending = 136, rt_sigtimedwait = 137, futex = 98
    #endif

    @inline(__always)
    static func call(_ number: Int, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0, _ e: Int = 0,
                     _ f: Int = 0) -> Int {
        tracer_system_call(number, a, b, c, d, e, f)
    }
}

@inline(__always) func bits(_ pointer: UnsafeRawPointer?) -> Int { Int(bitPattern: pointer) }
@inline(__always) func failed(_ result: Int) -> Bool { result < 0 && result > -4096 }

/// The errno values that a user can do something about.
enum Failure {
    static let noEntry = 2, access = 13, exists = 17, notDirectory = 20, fileTable = 23, descriptors = 24
    static let tooBig = 27, space = 28, readOnly = 30, loop = 40, notSupported = 95, quota = 122, noSystemCall = 38, address = 14
    static let cut = 4096 // of our own: above every errno

    static func text(_ number: Int) -> StaticString {
        switch number {
        case noEntry: "no such directory"
        case access, 1: "permission denied"
        case exists: "it exists and is not a trace of ours"
        case notDirectory: "a part of the path is not a directory"
        case 21: "it is a directory"
        case fileTable, descriptors: "no file descriptors left"
        case tooBig: "file size limit reached"
        case space: "no space left on the device"
        case readOnly: "read-only file system"
        case loop: "it is a symbolic link"
        case quota: "disk quota exceeded"
        case cut, address: "somebody cut the file, or its disk is full"
        case 12: "out of memory"
        case 36: "the name is too long"
        default: "the system refused"
        }
    }
}

enum Memory {
    static let readWrite = 3, readExecute = 5, readOnly = 1

    /// Zeroed private pages, or nil.
    static func pages(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        let result = SystemCall.call(SystemCall.mmap, 0, byteCount, readWrite, 0x4022, -1, 0)
        return failed(result) ? nil : UnsafeMutableRawPointer(bitPattern: result)
    }
    /// True when the word there may be read: a futex's value is compared before anything is waited for, and then not for long
    /// (kernel/futex/waitwake.c, futex_wait_setup). Valgrind, too, knows this call.
    static func isReadable(_ address: UInt64) -> Bool {
        var noTime: (Int, Int) = (0, 0)
        return withUnsafePointer(to: &noTime) {
            SystemCall.call(SystemCall.futex, Int(bitPattern: UInt(address)), 128, 0, bits($0)) != -Failure.address // FUTEX_WAIT_PRIVATE
        }
    }
    /// Adds nothing to the word there: 0 or more when it may be written to, -EFAULT when not. FUTEX_WAKE_OP with FUTEX_OP_ADD 0
    /// (futex(2)) writes to its second word before anything else; nobody waits for the first one, which is ours.
    static func tryWriting(_ address: UInt64) -> Int {
        var own: UInt32 = 0
        return withUnsafePointer(to: &own) {
            SystemCall.call(SystemCall.futex, bits($0), 128 | 5, 0, 0, Int(bitPattern: UInt(address)), 1 &<< 28)
        }
    }
    /// MADV_POPULATE_WRITE (Linux 5.14): all page faults at once. An old kernel refuses, and they come one by one.
    static func populate(_ address: UnsafeMutableRawPointer, _ byteCount: Int) {
        _ = SystemCall.call(SystemCall.madvise, bits(address), byteCount, 23)
    }
    static func release(_ address: UnsafeMutableRawPointer?, _ byteCount: Int) {
        _ = SystemCall.call(SystemCall.munmap, bits(address), byteCount)
    }
    /// Whole pages around the range. False when the kernel refuses.
    @discardableResult
    static func protect(_ address: UInt64, _ byteCount: UInt64, _ protection: Int) -> Bool {
        let page = UInt64(agent.pageBytes)
        let low = address & ~(page &- 1)
        let high = (address &+ byteCount &+ page &- 1) & ~(page &- 1)
        return SystemCall.call(SystemCall.mprotect, Int(bitPattern: UInt(low)), Int(high &- low), protection) == 0
    }
    /// Makes what was written here code. On aarch64 the fetching of instructions must be told. No other core can have
    /// fetched what stood here before: these pages were not executable then, or, at start, there was no other thread.
    static func protectCode(_ address: UInt64, _ byteCount: UInt64) -> Bool {
        #if arch(arm64)
        tracer_code_written(address, address &+ byteCount)
        #endif
        return protect(address, byteCount, readExecute)
    }
    /// The whole pages that hold so many bytes.
    static func wholePages(_ byteCount: Int) -> Int { (byteCount &+ agent.pageBytes &- 1) & ~(agent.pageBytes &- 1) }
}

struct Timespec { var seconds = 0, nanoseconds = 0 }

enum Clock {
    static func nanoseconds(_ clock: Int) -> UInt64 {
        var time = Timespec()
        _ = withUnsafeMutablePointer(to: &time) {
            SystemCall.call(SystemCall.clock_gettime, clock, bits($0))
        }
        return UInt64(time.seconds) &* 1_000_000_000 &+ UInt64(time.nanoseconds)
    }
    static func monotonic() -> UInt64 { nanoseconds(1) }
    static func realtime() -> UInt64 { nanoseconds(0) }

    /// The recording clock.
    @inline(__always) static func ticks() -> UInt64 {
        agent.clock == UInt32(TRACE_CLOCK_MONOTONIC) ? monotonic() : tracer_cycles()
    }
    /// Both clocks at one moment: the cheapest of three readings is the least disturbed one.
    static func sample() -> trace_clock_sample {
        var best = trace_clock_sample(ticks: 0, monotonic_ns: 0)
        var width = UInt64.max
        for _ in 0..<3 {
            let before = ticks()
            let time = monotonic()
            let after = ticks()
            if after &- before < width {
                width = after &- before
                best = trace_clock_sample(ticks: before &+ width / 2, monotonic_ns: time)
            }
        }
        return best
    }
}

/// Held for a few instructions, never while traced code runs, always with signals blocked.
struct SpinLock {
    var word: UInt32 = 0
    /// An exchange waits for every store before it, which a start, with tens of thousands of functions, need not.
    @inline(never) mutating func lock() {
        if agent.isAlone { return }
        while tracer_try_lock(&word) == 0 { _ = SystemCall.call(SystemCall.sched_yield) }
    }
    mutating func unlock() { tracer_unlock(&word) }
}
