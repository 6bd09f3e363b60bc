// The runtime libraries of AddressSanitizer and its relatives (compiler-rt's sanitizer_common). They ask who called
// them, for the stack of a report and to know a call site again (GET_CALLER_PC: __builtin_return_address), so they must
// see their real callers:
// - what compilers insert (`__tsan_write4`, `__asan_report_load8`) keeps its slots: HookPolicy.swift;
// - their interceptors (`malloc`, `memcpy`, `pthread_create`) are entry-only functions.
// And their own slots stay as they are. LeakSanitizer stops the world from a process that shares the memory *and the
// thread-local storage* of the thread that started it (sanitizer_stoptheworld_linux_libcdep.cpp: clone with CLONE_VM
// and without CLONE_SETTLS), while that thread waits: recorded calls of both would use one chain.
import CSupport

enum SanitizerRuntime {
    private static let libraries: InlineArray<_, StaticString> = [
        "libasan.", "libtsan.", "liblsan.", "libubsan.", "libhwasan.", // gcc
        "libclang_rt.",
    ]
    private static let functions: InlineArray<_, StaticString> = [
        "__asan_", "__tsan_", "__lsan_", "__ubsan_", "__hwasan_", "__msan_", "__sanitizer_",
    ]

    static func isLibrary(_ path: CText) -> Bool {
        let name = baseName(path)
        for n in 0..<libraries.count where rest(of: name, after: libraries[n]) != nil { return true }
        return false
    }

    /// Functions that a program calls if the runtime is linked into it.
    static let beginnings: InlineArray<_, StaticString> = ["__asan_init", "__tsan_init", "__msan_init", "__lsan_init", "__hwasan_init"]

    static func isInstrumentation(_ name: CText) -> Bool {
        for n in 0..<functions.count where rest(of: name, after: functions[n]) != nil { return true }
        return false
    }
}
