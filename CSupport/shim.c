// The three things that neither Swift nor assembly can say: a thread-local variable, the constructor and destructor
// attributes, and which of them run first.
#include "shim.h"

/// A thread that has not begun: every stack pointer is above its innermost frame, so the first call is slow.
static struct frame_record unborn;
static struct thread_hot unborn_hot;

/// The initial image is copied into each new thread by the loader, after it has relocated these pointers.
__thread struct thread_state tracer_thread = {.top = &unborn, .hot = &unborn_hot};

// With `-z initfirst` this runs before libc's own initializer: no errno, no stdio, no getenv. The loader passes what
// main will get (glibc elf/dl-init.c, call_init).
__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    tracer_agent_start(count, arguments, environment);
}

__attribute__((destructor)) static void end(void) { tracer_agent_end(); }
