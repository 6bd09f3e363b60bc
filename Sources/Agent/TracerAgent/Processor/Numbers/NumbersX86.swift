// Numbers and layouts of the kernel, the linkers and glibc on this architecture.
#if arch(x86_64)
import CTraceLayout

/// arch/x86/entry/syscalls/syscall_64.tbl.
enum SystemCall {
    static let read = 0, write = 1, close = 3, mmap = 9, mprotect = 10, munmap = 11, brk = 12, ioctl = 16, mremap = 25
    static let madvise = 28, getpid = 39, ftruncate = 77, getcwd = 79, prctl = 157, gettid = 186, sched_yield = 24
    static let tgkill = 234, openat = 257, unlinkat = 263, readlinkat = 267, fallocate = 285, prlimit64 = 302
    static let clock_gettime = 228, fstat = 5, getppid = 110, kill = 62, sigaltstack = 131, pwrite64 = 18, pread64 = 17, seccomp = 317,
        getrusage = 98
    static let rt_sigaction = 13, rt_sigprocmask = 14, rt_sigpending = 127, rt_sigtimedwait = 128, futex = 202
    static let geteuid = 107, fcntl = 72, newfstatat = 262, mkdirat = 258, renameat = 264, fchmod = 91
    static let clone = 56, vfork = 58, clone3 = 435
    static let fork = 57, exit_group = 231, sched_setattr = 314, process_vm_readv = 310

    /// setuid, setgid, setreuid, setregid, setgroups, setresuid, setresgid, setfsuid, setfsgid, capset, pivot_root, chroot,
    /// unshare, setns, landlock_restrict_self.
    static func changesIdentity(_ number: UInt64) -> Bool {
        switch number {
        case 105, 106, 113, 114, 116, 117, 119, 122, 123, 126, 155, 161, 272, 308, 446: true
        default: false
        }
    }
}

enum Architecture {
    static let name: StaticString = "x86_64"
    static let elfNumber: UInt32 = 62
    static let jumpSlot: UInt32 = 7 // R_X86_64_JUMP_SLOT
    static let globalData: UInt32 = 6 // R_X86_64_GLOB_DAT
    static let word: UInt32 = 1 // R_X86_64_64
    /// In st_other: there is no such mark.
    static let variantConvention: UInt8 = 0
    /// Unit of the second argument of `_dl_fixup` (reloc_offset, sysdeps/x86_64/dl-runtime.h), in bytes: a relocation.
    static let fixupUnit: UInt64 = 24

    static let cycleClock = UInt32(TRACE_CLOCK_TSC)
    /// Ticks of it: some 50 ms.
    static let clockPause: Int64 = 1 << 27

    /// How far a jump in a stub reaches: it has 31 bits.
    static let stubReach = 1 << 30
    /// A call has a return slot of its own.
    static let returnsInRegister = false

    /// Bounds of struct pthread: it is at the thread pointer, and ends at most this far above it.
    static let threadControlBlock: Int64 = 16, mostAboveThread: UInt64 = 65536
    /// A pthread_t lies so far below the thread pointer at most.
    static let mostBelowThread: UInt64 = 0

    /// Word of a jmp_buf that holds the stack pointer: JB_RSP (sysdeps/x86_64/jmpbuf-offsets.h).
    static let jumpStackPointer = 6
    /// Its offset in a ucontext_t: uc_mcontext.gregs[REG_RSP] (sysdeps/unix/sysv/linux/x86/sys/ucontext.h).
    static let contextStackPointer: UInt64 = 40 &+ 15 &* 8
    /// glibc has the pointer guard in the thread control block.
    static let guardIsInLoader = false

    static let noFollow = 0o400000 // O_NOFOLLOW
    /// Fields from the words of struct stat: arch/x86/include/uapi/asm/stat.h.
    @inline(__always) static func links(_ third: UInt64, _ fourth: UInt64) -> UInt64 { third }
    @inline(__always) static func mode(_ third: UInt64, _ fourth: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: fourth) }
    @inline(__always) static func owner(_ third: UInt64, _ fourth: UInt64) -> Int { Int(fourth &>> 32) }
}
#endif
