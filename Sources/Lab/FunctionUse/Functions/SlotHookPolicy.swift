// Names of functions that are not patched even where they could be: they are recorded where they are called through a slot. The agent's
// own table is Functions/SpecialFunction.swift; a test holds this one against it.

enum SlotHookPolicy {
    static func mayConcern(_ symbol: String) -> Bool {
        if symbol.hasPrefix("_dl_") || names.contains(symbol) { return true }
        let small = symbol.lowercased() // the agent also knows functions that capture their caller's context by their code
        return small.contains("jmp") || small.contains("context")
    }

    static let names: Set<String> = [
        "setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "unw_getcontext", "__unw_getcontext",
        "_Ux86_64_getcontext", "_Uaarch64_getcontext", "__go_getcontext", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk",
        "setcontext", "swapcontext", "vfork", "__vfork", "clone", "__clone", "makecontext", "dlsym", "dlvsym", "__libc_dlsym", "dlopen",
        "dlmopen", "syscall", "pthread_setname_np", "sigaction", "__sigaction", "signal", "bsd_signal", "sysv_signal", "__sysv_signal",
        "ssignal", "sigset", "sigignore", "siginterrupt", "backtrace", "_Unwind_Backtrace", "_Unwind_SetIP", "unw_backtrace",
        "unw_step", "__unw_step", "_ULx86_64_step", "_ULx86_64_set_reg", "_Ux86_64_step", "_Ux86_64_set_reg", "_ULaarch64_step",
        "_Uaarch64_step", "dladdr", "dladdr1", "_dl_find_object", "__libc_start_main", "swift_once", "pthread_once",
        "__pthread_once",
        "__cxa_guard_acquire", "write", "writev", "sd_notify", "sd_notifyf", "sd_pid_notify", "sd_pid_notifyf", "sd_pid_notify_with_fds",
        "wl_proxy_marshal", "wl_proxy_marshal_flags",
        "prctl", "setuid", "setgid", "seteuid", "setegid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
        "setgroups", "initgroups", "capset", "chroot", "pivot_root", "unshare", "setns", "sched_setattr", "_exit", "_Exit", "quick_exit",
        "execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat", "posix_spawn", "posix_spawnp",
        "mmap", "mmap64", "mprotect", "pkey_mprotect",
        "__tls_get_addr",
        "___tls_get_addr", "__morestack", "_mcount", "mcount", "__fentry__", "__cyg_profile_func_enter", "__cyg_profile_func_exit",
        "__gmon_start__", "_ITM_registerTMCloneTable", "_ITM_deregisterTMCloneTable", "__cxa_finalize", "__cxa_throw", "__cxa_rethrow",
        "__cxa_begin_catch", "_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow",
    ]
}
