// Entry points by which the loader enters libtracer.so and leaves it. A target of its own, since SwiftPM makes a file called
// libtracer.so only for an executable product, and links that as instructed when its main module is C (Package.swift).
#include "../../../CSupport/layout.h"

/// 1, written into the tool's copy of the file before it is loaded: the constructor does nothing, and tracer_attach is called later. In a
/// section that has a place in the file.
__attribute__((visibility("default"), section(".data"))) volatile uint32_t tracer_load_mode = 0;

// With `-z initfirst` this runs before libc's own initializer: no errno, no stdio, no getenv. The loader passes what
// main will get (glibc elf/dl-init.c, call_init).
__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    if (tracer_load_mode) tracer_agent_await(count, arguments);
    else tracer_agent_start(count, arguments, environment);
}

// Who calls exit, or one of ours (tracer.h), may have a stack pointer that is no multiple of 16, and Swift spills vectors there: C
// realigns it (Package.swift, -mstackrealign), unless a call is its last instruction.
#define ALIGNED_CALL(function) \
    function(); \
    __asm__ volatile("")

__attribute__((destructor)) static void end(void) { ALIGNED_CALL(tracer_agent_end); }
__attribute__((visibility("default"))) void tracer_start(void) { ALIGNED_CALL(tracer_agent_resume); }
__attribute__((visibility("default"))) void tracer_stop(void) { ALIGNED_CALL(tracer_agent_pause); }
__attribute__((visibility("default"))) void tracer_flush(void) { ALIGNED_CALL(tracer_agent_flush); }
__attribute__((visibility("default"))) int tracer_set(int setting, unsigned long long value) {
    int result = tracer_agent_set(setting, value);
    __asm__ volatile("");
    return result;
}

// For `tracer attach`, on a task of its own with every signal blocked (clone(2): CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD,
// CLONE_SYSVSEM), at least 128 KB of stack, and with the thread block of a thread that runs on: nothing in there touches that, and no lock of
// libc's or the loader's is taken. Threads run on, and call through slots. Both return enum trace_attach_result (trace_layout.h).

/// Begins to record. `settings`: texts NAME=value of TRACER_… variables, a NUL after each, the last one empty; copied.
__attribute__((visibility("default"))) int tracer_attach(const char *settings) {
    int result = tracer_agent_attach(settings);
    __asm__ volatile("");
    return result;
}
/// Ends recording: slots and the loader's hook are as they were before, and the trace is complete. Code that may still be returned through
/// stays mapped, and a later tracer_attach uses it again.
__attribute__((visibility("default"))) int tracer_detach(void) {
    int result = tracer_agent_detach();
    __asm__ volatile("");
    return result;
}
