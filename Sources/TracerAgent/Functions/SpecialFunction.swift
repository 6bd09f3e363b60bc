// Functions that an ordinary trampoline would disturb: one table, the reason beside each.
import CSupport
import CTraceLayout

enum Treatment: UInt8 {
    case ordinary // a traced call
    case untouched // the slot stays as it is
    case frames // a traced call of our own function, which calls the original (Backtraces.swift)
    case question // asked by an unwinder, which is told of moved code as well (UnwinderQuestions.swift)
    case tail // entry is recorded, then a jump: the function sees its real caller's return address
    case dlopen, systemCall, threadName, confinement, identity, ending, signalAction // looked at call by call (Inspection.swift)
    case instrumentation // the agent's own stands in for it (InstrumentedFunctions.swift)
    case makeContext // looked at for the stack that it is given (AlternateStacks.swift)
    case vfork, clone // their child runs in this memory (SharedMemory.swift)
    case start // libc's, which is given main
    case once // a once-function: looked at when its flag says that nothing is done yet
    case output, notify, notifyOfPid, ready // looked at until the program is ready (Ready.swift)

    var kind: UInt16 {
        switch self {
        case .ordinary, .untouched, .frames, .question: UInt16(KIND_CALL)
        case .tail: UInt16(KIND_TAIL)
        case .start: UInt16(KIND_START)
        case .once: UInt16(KIND_ONCE)
        case .dlopen: UInt16(KIND_LOAD)
        case .systemCall: UInt16(KIND_NUMBER)
        default: UInt16(KIND_INSPECT)
        }
    }
}

extension Treatment {
    /// Its calls may be recorded with what they wait for (CallObjects.swift).
    var mayHaveObject: Bool {
        switch self {
        case .ordinary, .once, .output, .ready, .systemCall: true
        default: false
        }
    }
}

struct SpecialFunction {
    let name: StaticString
    let treatment: Treatment

    /// Functions are patched in this process, so unwinders are to be told of moved code (UnwinderQuestions.swift).
    nonisolated(unsafe) static var answersUnwinders = false
    private static func isQuestion(_ name: Name) -> Bool { equal(name.text, literal: "_dl_find_object") }

    /// Filter of the hashes that occur, so that one look recognizes an ordinary name.
    nonisolated(unsafe) private static var filter = InlineArray<64, UInt64>(repeating: 0)

    /// Open addressing, by the same hashes: the place in `known`, which has half as many, from 1 on; 0: none.
    nonisolated(unsafe) private static var places = InlineArray<256, UInt8>(repeating: 0)

    static func begin() {
        for n in 0..<known.count {
            let hash = gnuHash(known[n].name.utf8Start)
            expect(hash)
            var place = Int(hash & 255)
            while places[place] != 0 { place = (place &+ 1) & 255 }
            places[place] = UInt8(truncatingIfNeeded: n &+ 1)
        }
        CallObjects.begin { expect($0) }
    }
    /// All of them: for plans, which have keys in place of names. Where functions are patched, open addressing; 0: none.
    nonisolated(unsafe) private static var hashes: UnsafeMutablePointer<UInt32>?
    private static let hashCount: UInt32 = 1024
    static func beginKeys() {
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

    /// Returns the treatment of the function of this name.
    static func treatment(of name: Name) -> Treatment {
        if name.text[0] == 0x5f { // an underscore
            if rest(of: name.text, after: "_dl_") != nil && !isQuestion(name) { return .untouched } // the loader's own
            if SanitizerRuntime.isInstrumentation(name.text) { return .untouched }
        }
        let hash = name.gnuHash
        if filter[Int(hash &>> 6 & 63)] &>> UInt64(hash & 63) & 1 == 0 { return .ordinary }
        var place = Int(hash & 255)
        while places[place] != 0 {
            let index = Int(places[place]) &- 1
            if equal(name.text, literal: known[index].name) { return known[index].treatment }
            place = (place &+ 1) & 255
        }
        return .ordinary
    }

    static let known: InlineArray<_, SpecialFunction> = [
        // Return twice: the second return would find a frame record that was given back.
        .init(name: "setjmp", treatment: .tail),
        .init(name: "_setjmp", treatment: .tail),
        .init(name: "__setjmp", treatment: .tail),
        .init(name: "sigsetjmp", treatment: .tail),
        .init(name: "__sigsetjmp", treatment: .tail),
        .init(name: "getcontext", treatment: .tail),
        // These capture their caller's context, too, for whoever unwinds from there or returns to it: known by their code as well
        // (Processor/ContextCapture.swift), where that can be read.
        .init(name: "unw_getcontext", treatment: .tail), // LLVM's libunwind, and that of HP by the name of the processor
        .init(name: "__unw_getcontext", treatment: .tail),
        .init(name: "_Ux86_64_getcontext", treatment: .tail),
        .init(name: "_Uaarch64_getcontext", treatment: .tail),
        .init(name: "__go_getcontext", treatment: .tail), // gccgo, for its goroutines
        // Never return, or return on another stack: the frame would only be closed as unwound later.
        .init(name: "longjmp", treatment: .tail),
        .init(name: "_longjmp", treatment: .tail),
        .init(name: "siglongjmp", treatment: .tail),
        .init(name: "__longjmp_chk", treatment: .tail),
        .init(name: "setcontext", treatment: .tail),
        .init(name: "swapcontext", treatment: .tail),
        // The child returns first, on the parent's stack and in its memory; that of clone begins on a stack of its own.
        .init(name: "vfork", treatment: .vfork),
        .init(name: "__vfork", treatment: .vfork),
        .init(name: "clone", treatment: .clone),
        .init(name: "__clone", treatment: .clone),
        .init(name: "makecontext", treatment: .makeContext),
        // Ask who called them (glibc dlfcn: RTLD_NEXT, the caller's scope and namespace).
        .init(name: "dlsym", treatment: .tail),
        .init(name: "dlvsym", treatment: .tail),
        .init(name: "__libc_dlsym", treatment: .tail),
        .init(name: "dlopen", treatment: .dlopen),
        .init(name: "dlmopen", treatment: .tail),
        // vfork and clone by number.
        .init(name: "syscall", treatment: .systemCall),
        .init(name: "pthread_setname_np", treatment: .threadName),
        // The action for SIGBUS that they report must be the program's, not ours (MappingFaults).
        .init(name: "sigaction", treatment: .signalAction),
        .init(name: "__sigaction", treatment: .signalAction),
        .init(name: "signal", treatment: .signalAction),
        .init(name: "bsd_signal", treatment: .signalAction),
        .init(name: "sysv_signal", treatment: .signalAction),
        .init(name: "__sysv_signal", treatment: .signalAction),
        .init(name: "ssignal", treatment: .signalAction),
        .init(name: "sigset", treatment: .signalAction),
        .init(name: "sigignore", treatment: .signalAction),
        .init(name: "siginterrupt", treatment: .signalAction),
        // They would show the trampolines.
        .init(name: "backtrace", treatment: .frames),
        .init(name: "_Unwind_Backtrace", treatment: .frames),
        .init(name: "_Unwind_SetIP", treatment: .frames),
        .init(name: "unw_backtrace", treatment: .frames),
        .init(name: "unw_step", treatment: .frames),
        .init(name: "__unw_step", treatment: .frames),
        .init(name: "_ULx86_64_step", treatment: .frames),
        .init(name: "_ULx86_64_set_reg", treatment: .frames),
        .init(name: "_Ux86_64_step", treatment: .frames),
        .init(name: "_Ux86_64_set_reg", treatment: .frames),
        .init(name: "_ULaarch64_step", treatment: .frames),
        .init(name: "_Uaarch64_step", treatment: .frames),
        // They would find that a label is the agent's.
        .init(name: "dladdr", treatment: .frames),
        .init(name: "dladdr1", treatment: .frames),
        // Unwinders find descriptions of code by it.
        .init(name: "_dl_find_object", treatment: .question),
        .init(name: "__libc_start_main", treatment: .start),
        // The function that they run, once, is an argument.
        .init(name: "swift_once", treatment: .once),
        .init(name: "pthread_once", treatment: .once),
        .init(name: "__pthread_once", treatment: .once),
        .init(name: "__cxa_guard_acquire", treatment: .once),
        // May tell that the program is ready.
        .init(name: "write", treatment: .output),
        .init(name: "writev", treatment: .output),
        .init(name: "sd_notify", treatment: .notify),
        .init(name: "sd_notifyf", treatment: .notify),
        .init(name: "sd_pid_notify", treatment: .notifyOfPid),
        .init(name: "sd_pid_notifyf", treatment: .notifyOfPid),
        .init(name: "sd_pid_notify_with_fds", treatment: .notifyOfPid),
        // PR_SET_SECCOMP.
        .init(name: "prctl", treatment: .confinement),
        // After them the trace may be out of reach (TraceSpace.swift).
        .init(name: "setuid", treatment: .identity),
        .init(name: "setgid", treatment: .identity),
        .init(name: "seteuid", treatment: .identity),
        .init(name: "setegid", treatment: .identity),
        .init(name: "setreuid", treatment: .identity),
        .init(name: "setregid", treatment: .identity),
        .init(name: "setresuid", treatment: .identity),
        .init(name: "setresgid", treatment: .identity),
        .init(name: "setfsuid", treatment: .identity),
        .init(name: "setfsgid", treatment: .identity),
        .init(name: "setgroups", treatment: .identity),
        .init(name: "initgroups", treatment: .identity),
        .init(name: "capset", treatment: .identity),
        .init(name: "chroot", treatment: .identity),
        .init(name: "pivot_root", treatment: .identity),
        .init(name: "unshare", treatment: .identity),
        .init(name: "setns", treatment: .identity),
        .init(name: "sched_setattr", treatment: .identity), // glibc 2.41
        // End the process without the agent's destructor.
        .init(name: "_exit", treatment: .ending),
        .init(name: "_Exit", treatment: .ending),
        .init(name: "quick_exit", treatment: .ending),
        // Own calling conventions: they may keep more registers than the psABI asks for.
        .init(name: "__tls_get_addr", treatment: .untouched),
        .init(name: "___tls_get_addr", treatment: .untouched),
        .init(name: "__morestack", treatment: .untouched),
        .init(name: "_mcount", treatment: .untouched),
        .init(name: "mcount", treatment: .untouched),
        .init(name: "__fentry__", treatment: .untouched),
        // Called by each function of a program that was built so, with its own address.
        .init(name: "__cyg_profile_func_enter", treatment: .instrumentation),
        .init(name: "__cyg_profile_func_exit", treatment: .instrumentation),
        // The start-up code's own hooks, usually absent; nothing to learn from them.
        .init(name: "__gmon_start__", treatment: .untouched),
        .init(name: "_ITM_registerTMCloneTable", treatment: .untouched),
        .init(name: "_ITM_deregisterTMCloneTable", treatment: .untouched),
        .init(name: "__cxa_finalize", treatment: .untouched),
    ]
}
