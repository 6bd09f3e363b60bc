// Functions that an ordinary trampoline would disturb: one table, with a reason for each group. HookPolicy.swift decides what follows.
import CSupport
import CTraceLayout

struct SpecialFunction {
    let name: StaticString
    let policy: HookPolicy

    /// Functions are patched in this process, so unwinders are to learn of relocated instructions (UnwinderQuestions.swift).
    nonisolated(unsafe) static var answersUnwinders = false

    /// Filter of the hashes that occur, which recognizes most ordinary names by one word.
    nonisolated(unsafe) private static var filter = InlineArray<64, UInt64>(repeating: 0)

    /// Open addressing, by the same hashes: the index in `known`, which has half as many, from 1 on; 0: none.
    nonisolated(unsafe) private static var buckets = InlineArray<256, UInt8>(repeating: 0)

    static func begin() {
        for n in 0..<known.count {
            let hash = gnuHash(known[n].name.utf8Start)
            expect(hash)
            var bucket = Int(hash & 255)
            while buckets[bucket] != 0 { bucket = (bucket &+ 1) & 255 }
            buckets[bucket] = UInt8(truncatingIfNeeded: n &+ 1)
        }
        CallObjects.begin { expect($0) }
    }
    /// All of them: for plans, which have keys in place of names. Where functions are patched, open addressing; 0: none.
    nonisolated(unsafe) private static var hashes: UnsafeMutablePointer<UInt32>?
    private static let hashCount: UInt32 = 1024
    static func beginKeys() {
        if hashes != nil { return }
        hashes = Memory.pages(Int(hashCount) &* MemoryLayout<UInt32>.size)?.assumingMemoryBound(to: UInt32.self)
        guard let hashes else { return }
        func keep(_ hash: UInt32) { hashes[bucket(of: hash & PLAN_NAME_HASH, in: hashes)] = hash & PLAN_NAME_HASH }
        for n in 0..<known.count { keep(gnuHash(known[n].name.utf8Start)) }
        CallObjects.forEachHash(keep)
    }
    /// Returns the bucket that the key is in, or would be.
    private static func bucket(of key: UInt32, in hashes: UnsafeMutablePointer<UInt32>) -> Int {
        var bucket = Int(key & (hashCount &- 1))
        while hashes[bucket] != 0 && hashes[bucket] != key { bucket = (bucket &+ 1) & Int(hashCount &- 1) }
        return bucket
    }
    private static func isKept(_ key: UInt32) -> Bool { hashes.map { $0[bucket(of: key, in: $0)] == key } ?? true }
    private static func expect(_ hash: UInt32) { filter[Int(hash &>> 6 & 63)] |= 1 &<< UInt64(hash & 63) }

    /// Returns true if a name that begins and hashes like this (PLAN_NAME_…) may be one that is not ordinary.
    @inline(__always) static func mayBe(_ key: UInt32) -> Bool {
        key & PLAN_NAME_OF_RUNTIME != 0 || filter[Int(key &>> 6 & 63)] &>> UInt64(key & 63) & 1 != 0 && isKept(key & PLAN_NAME_HASH)
    }

    /// Returns the hook policy that the table has for this name.
    @inline(__always) static func policy(of name: Name) -> HookPolicy {
        let hash = name.gnuHash
        if filter[Int(hash &>> 6 & 63)] &>> UInt64(hash & 63) & 1 == 0 { return .record }
        var bucket = Int(hash & 255)
        while buckets[bucket] != 0 {
            let index = Int(buckets[bucket]) &- 1
            if equal(name.text, literal: known[index].name) { return known[index].policy }
            bucket = (bucket &+ 1) & 255
        }
        return .record
    }

    static let known: InlineArray<_, SpecialFunction> = [
        // Return twice: the second return would find a frame record that was given back.
        .init(name: "setjmp", policy: .entryOnly),
        .init(name: "_setjmp", policy: .entryOnly),
        .init(name: "__setjmp", policy: .entryOnly),
        .init(name: "sigsetjmp", policy: .entryOnly),
        .init(name: "__sigsetjmp", policy: .entryOnly),
        .init(name: "getcontext", policy: .entryOnly),
        // These, too, capture their caller's context, for code that unwinds from there or returns to it. Where their code can be read, it
        // shows the same (Processor/ContextCapture.swift).
        .init(name: "unw_getcontext", policy: .entryOnly), // LLVM's libunwind, and nongnu libunwind by the name of the architecture
        .init(name: "__unw_getcontext", policy: .entryOnly),
        .init(name: "_Ux86_64_getcontext", policy: .entryOnly),
        .init(name: "_Uaarch64_getcontext", policy: .entryOnly),
        .init(name: "__go_getcontext", policy: .entryOnly), // gccgo, for its goroutines
        // Never return, or return on another stack: the frame would only be closed as unwound later.
        .init(name: "longjmp", policy: .jump),
        .init(name: "_longjmp", policy: .jump),
        .init(name: "siglongjmp", policy: .jump),
        .init(name: "__longjmp_chk", policy: .jump),
        .init(name: "setcontext", policy: .contextJump),
        .init(name: "swapcontext", policy: .entryOnly),
        // C++ exceptions: they leave frames.
        .init(name: "__cxa_throw", policy: .throwing),
        .init(name: "__cxa_rethrow", policy: .rethrowing),
        .init(name: "__cxa_begin_catch", policy: .catching),
        .init(name: "_Unwind_RaiseException", policy: .raising),
        .init(name: "_Unwind_Resume_or_Rethrow", policy: .raising),
        .init(name: "_Unwind_Resume", policy: .resuming),
        // The child returns first, on the parent's stack and in its memory; that of clone begins on a stack of its own.
        .init(name: "vfork", policy: .vfork),
        .init(name: "__vfork", policy: .vfork),
        .init(name: "clone", policy: .clone),
        .init(name: "__clone", policy: .clone),
        .init(name: "makecontext", policy: .makeContext),
        // Ask who called them (glibc dlfcn: RTLD_NEXT, the caller's scope and namespace).
        .init(name: "dlsym", policy: .entryOnly),
        .init(name: "dlvsym", policy: .entryOnly),
        .init(name: "__libc_dlsym", policy: .entryOnly),
        .init(name: "dlopen", policy: .dlopen),
        .init(name: "dlmopen", policy: .entryOnly),
        // vfork and clone by number.
        .init(name: "syscall", policy: .systemCall),
        .init(name: "pthread_setname_np", policy: .threadName),
        // The action for SIGBUS that they report must be the program's, not ours (MappingFaults).
        .init(name: "sigaction", policy: .signalAction),
        .init(name: "__sigaction", policy: .signalAction),
        .init(name: "signal", policy: .signalAction),
        .init(name: "bsd_signal", policy: .signalAction),
        .init(name: "sysv_signal", policy: .signalAction),
        .init(name: "__sysv_signal", policy: .signalAction),
        .init(name: "ssignal", policy: .signalAction),
        .init(name: "sigset", policy: .signalAction),
        .init(name: "sigignore", policy: .signalAction),
        .init(name: "siginterrupt", policy: .signalAction),
        // They would show the trampolines.
        .init(name: "backtrace", policy: .frameLister),
        .init(name: "_Unwind_Backtrace", policy: .frameLister),
        .init(name: "_Unwind_SetIP", policy: .frameLister),
        .init(name: "unw_backtrace", policy: .frameLister),
        .init(name: "unw_step", policy: .frameLister),
        .init(name: "__unw_step", policy: .frameLister),
        .init(name: "_ULx86_64_step", policy: .frameLister),
        .init(name: "_ULx86_64_set_reg", policy: .frameLister),
        .init(name: "_Ux86_64_step", policy: .frameLister),
        .init(name: "_Ux86_64_set_reg", policy: .frameLister),
        .init(name: "_ULaarch64_step", policy: .frameLister),
        .init(name: "_Uaarch64_step", policy: .frameLister),
        // They would find that a label is the agent's.
        .init(name: "dladdr", policy: .frameLister),
        .init(name: "dladdr1", policy: .frameLister),
        // Unwinders find descriptions of code by it.
        .init(name: "_dl_find_object", policy: .unwinderQuery),
        .init(name: "__libc_start_main", policy: .start),
        // The function that they run, once, is an argument.
        .init(name: "swift_once", policy: .once),
        .init(name: "pthread_once", policy: .once),
        .init(name: "__pthread_once", policy: .once),
        .init(name: "__cxa_guard_acquire", policy: .once),
        // May show that the program is ready.
        .init(name: "write", policy: .output),
        .init(name: "writev", policy: .output),
        .init(name: "sd_notify", policy: .notify),
        .init(name: "sd_notifyf", policy: .notify),
        .init(name: "sd_pid_notify", policy: .notifyOfPid),
        .init(name: "sd_pid_notifyf", policy: .notifyOfPid),
        .init(name: "sd_pid_notify_with_fds", policy: .notifyOfPid),
        // wl_surface_commit is an inline function of the header: it calls one of these.
        .init(name: "wl_proxy_marshal", policy: .waylandRequest),
        .init(name: "wl_proxy_marshal_flags", policy: .waylandRequest),
        // PR_SET_SECCOMP.
        .init(name: "prctl", policy: .confinement),
        // After them the trace may be out of reach (TraceSpace.swift).
        .init(name: "setuid", policy: .identity),
        .init(name: "setgid", policy: .identity),
        .init(name: "seteuid", policy: .identity),
        .init(name: "setegid", policy: .identity),
        .init(name: "setreuid", policy: .identity),
        .init(name: "setregid", policy: .identity),
        .init(name: "setresuid", policy: .identity),
        .init(name: "setresgid", policy: .identity),
        .init(name: "setfsuid", policy: .identity),
        .init(name: "setfsgid", policy: .identity),
        .init(name: "setgroups", policy: .identity),
        .init(name: "initgroups", policy: .identity),
        .init(name: "capset", policy: .identity),
        .init(name: "chroot", policy: .identity),
        .init(name: "pivot_root", policy: .identity),
        .init(name: "unshare", policy: .identity),
        .init(name: "setns", policy: .identity),
        .init(name: "sched_setattr", policy: .identity), // glibc 2.41
        // The program that they execute has the agent if there is room for it.
        .init(name: "execve", policy: .execution),
        .init(name: "execv", policy: .execution),
        .init(name: "execvp", policy: .execution),
        .init(name: "execvpe", policy: .execution),
        .init(name: "execl", policy: .execution),
        .init(name: "execlp", policy: .execution),
        .init(name: "execle", policy: .execution),
        .init(name: "fexecve", policy: .execution),
        .init(name: "execveat", policy: .execution),
        .init(name: "posix_spawn", policy: .execution),
        .init(name: "posix_spawnp", policy: .execution),
        // They make code at run time (GeneratedCode.swift).
        .init(name: "mmap", policy: .mapping),
        .init(name: "mmap64", policy: .mapping),
        .init(name: "mprotect", policy: .mapping),
        .init(name: "pkey_mprotect", policy: .mapping),
        // End the process without the agent's destructor.
        .init(name: "_exit", policy: .ending),
        .init(name: "_Exit", policy: .ending),
        .init(name: "quick_exit", policy: .ending),
        // Own calling conventions: they may keep more registers than the psABI asks for.
        .init(name: "__tls_get_addr", policy: .none),
        .init(name: "___tls_get_addr", policy: .none),
        .init(name: "__morestack", policy: .none),
        .init(name: "_mcount", policy: .none),
        .init(name: "mcount", policy: .none),
        .init(name: "__fentry__", policy: .none),
        // Called by each function of a program that was built so, with its own address.
        .init(name: "__cyg_profile_func_enter", policy: .instrumentation),
        .init(name: "__cyg_profile_func_exit", policy: .instrumentation),
        // The start-up code's own hooks, usually absent; nothing to learn from them.
        .init(name: "__gmon_start__", policy: .none),
        .init(name: "_ITM_registerTMCloneTable", policy: .none),
        .init(name: "_ITM_deregisterTMCloneTable", policy: .none),
        .init(name: "__cxa_finalize", policy: .none),
    ]
}
