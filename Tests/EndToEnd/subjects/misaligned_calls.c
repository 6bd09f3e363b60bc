// Calls with a stack pointer that is 8 off 16, against the psABI: assembly and JITs make them, and most functions do not mind. Each is
// the last of its process or one of the agent's own, which must not mind either.
// build: -O1 -fno-omit-frame-pointer
// link: -Wl,-z,now -rdynamic
// case: exit exit
// case: leave _exit
// case: quick quick_exit
// case: own own
// case: at_exit at_exit
// tree: none it is about what the program finds
// architecture: x86_64 the other checks the stack pointer at each use
// modes: functions counts call_sites
#include "subject.h"
/// function(argument, second), with the stack pointer as it must not be.
static NOINLINE long call(void *function, long argument, long second) {
    long result;
    __asm__ volatile("mov %%rsp, %%rbx\n\t and $-16, %%rsp\n\t sub $136, %%rsp\n\t call *%3\n\t mov %%rbx, %%rsp"
                     : "=a"(result), "+D"(argument), "+S"(second)
                     : "r"(function)
                     : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}
/// The slot itself, so that the stub is called.
#define SLOT(name) ({ void *slot_; __asm__("mov " #name "@GOTPCREL(%%rip), %0" : "=r"(slot_)); slot_; })
static void last(void) { puts("the end"); fflush(stdout); }
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *what = argv[1];
    static const char *const own[] = {"tracer_stop", "tracer_start", "tracer_mark", "tracer_snapshot", "tracer_flush", "tracer_set"};
    for (size_t n = 0; !strcmp(what, "own") && n < sizeof own / sizeof *own; n++) {
        void *function = dlsym(RTLD_DEFAULT, own[n]);
        if (function) call(function, (long)"misaligned", 0);
    }
    if (!strcmp(what, "at_exit")) CHECK(!atexit(last));
    puts(what);
    fflush(stdout);
    if (!strcmp(what, "_exit")) call(SLOT(_exit), 0, 0);
    else if (!strcmp(what, "quick_exit")) call(SLOT(quick_exit), 0, 0);
    else __asm__ volatile("and $-16, %%rsp\n\t sub $136, %%rsp\n\t call exit@plt" ::"D"(0L) : "memory");
    return 1;
}
