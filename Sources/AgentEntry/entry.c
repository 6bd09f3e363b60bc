// Where the loader enters libtracer.so and leaves it. A target of its own, since SwiftPM makes a file called libtracer.so of
// an executable product only, and links that as it is told when its main module is C (Package.swift).
#include "../../CSupport/layout.h"

// With `-z initfirst` this runs before libc's own initializer: no errno, no stdio, no getenv. The loader passes what
// main will get (glibc elf/dl-init.c, call_init).
__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    tracer_agent_start(count, arguments, environment);
}

__attribute__((destructor)) static void end(void) { tracer_agent_end(); }
