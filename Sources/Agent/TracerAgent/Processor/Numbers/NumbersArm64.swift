// Numbers and layouts of the kernel, the linkers and glibc on this architecture.
#if arch(arm64)
import CTraceLayout

/// The kernel's generic table, include/uapi/asm-generic/unistd.h.
enum SystemCall {
    static let read = 63, write = 64, close = 57, mmap = 222, mprotect = 226, munmap = 215, brk = 214, ioctl = 29, mremap = 216
    static let madvise = 233, getpid = 172, ftruncate = 46, getcwd = 17, prctl = 167, gettid = 178, sched_yield = 124
    static let tgkill = 131, openat = 56, unlinkat = 35, readlinkat = 78, fallocate = 47, prlimit64 = 261
    static let clock_gettime = 113, fstat = 80, getppid = 173, kill = 129, sigaltstack = 132, pwrite64 = 68, pread64 = 67, seccomp = 277,
        getrusage = 165
    static let rt_sigaction = 134, rt_sigprocmask = 135, rt_sigpending = 136, rt_sigtimedwait = 137, futex = 98
    static let geteuid = 175, fcntl = 25, newfstatat = 79, mkdirat = 34, renameat = 38, fchmod = 52
    static let clone = 220, clone3 = 435, exit_group = 94, sched_setattr = 274, process_vm_readv = 270
    static let fork = clone, vfork = clone // no others

    /// setuid, setgid, setreuid, setregid, setgroups, setresuid, setresgid, setfsuid, setfsgid, capset, pivot_root, chroot,
    /// unshare, setns, landlock_restrict_self.
    static func changesIdentity(_ number: UInt64) -> Bool {
        switch number {
        case 143...147, 149, 151, 152, 159, 91, 41, 51, 97, 268, 446: true
        default: false
        }
    }
}

enum Architecture {
    static let name: StaticString = "aarch64"
    static let elfNumber: UInt32 = 183
    static let jumpSlot: UInt32 = 1026 // R_AARCH64_JUMP_SLOT
    static let globalData: UInt32 = 1025 // R_AARCH64_GLOB_DAT
    static let word: UInt32 = 257 // R_AARCH64_ABS64
    /// STO_AARCH64_VARIANT_PCS, in st_other. Linkers copy it from the definition to the reference, where the loader looks for it to
    /// bind such slots at once (AAELF64, "Symbol Table"; glibc sysdeps/aarch64/dl-machine.h, elf_machine_lazy_rel).
    /// DT_AARCH64_VARIANT_PCS says only that a module has some.
    static let variantConvention: UInt8 = 0x80
    /// Unit of the second argument of `_dl_fixup` (reloc_offset, elf/dl-runtime.h), in bytes: a byte.
    static let fixupUnit: UInt64 = 1

    static let cycleClock = UInt32(TRACE_CLOCK_CNTVCT)
    /// Ticks of it: 4 ms of a counter of 1 GHz, 0.2 s of one of 19.2 MHz.
    static let clockPause: Int64 = 1 << 22

    /// How far a branch in a stub reaches, of 128 MB.
    static let stubReach = 120 << 20
    /// A function that keeps its return address in a register has no return slot.
    static let returnsInRegister = true

    /// Bounds of struct pthread: it ends just below the thread pointer; thread-local variables follow, at most this many bytes.
    static let threadControlBlock: Int64 = -2048, mostAboveThread: UInt64 = 16 << 20
    /// A pthread_t lies so far below the thread pointer at most.
    static let mostBelowThread: UInt64 = 4096

    /// Word of a jmp_buf that holds the stack pointer: JB_SP (sysdeps/aarch64/jmpbuf-offsets.h).
    static let jumpStackPointer = 13
    /// Its offset in a ucontext_t: uc_mcontext.sp (sysdeps/unix/sysv/linux/aarch64/sys/ucontext.h).
    static let contextStackPointer: UInt64 = 176 &+ 32 &* 8
    /// glibc has the pointer guard in the loader: __pointer_chk_guard.
    static let guardIsInLoader = true

    static let noFollow = 0o100000 // O_NOFOLLOW
    /// Fields from the words of struct stat: include/uapi/asm-generic/stat.h.
    @inline(__always) static func links(_ third: UInt64, _ fourth: UInt64) -> UInt64 { third &>> 32 }
    @inline(__always) static func mode(_ third: UInt64, _ fourth: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: third) }
    @inline(__always) static func owner(_ third: UInt64, _ fourth: UInt64) -> Int { Int(fourth & 0xffff_ffff) }
}
#endif
