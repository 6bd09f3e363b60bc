// Entry points by which the loader enters libtracer.so and leaves it. A target of its own, since SwiftPM makes a file called
// libtracer.so only for an executable product, and links that as instructed when its main module is C (Package.swift).
#include "../../../CSupport/layout.h"

// With `-z initfirst` this runs before libc's own initializer: no errno, no stdio, no getenv. The loader passes what
// main will get (glibc elf/dl-init.c, call_init).
__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    tracer_agent_start(count, arguments, environment);
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
