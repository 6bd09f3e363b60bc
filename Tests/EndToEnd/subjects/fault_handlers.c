// SIGSEGV, SIGFPE, SIGILL and SIGBUS handlers that the program owns: repaired, left by siglongjmp out of traced frames,
// and a stack overflow caught on an alternate stack. SIGTRAP is the program's too.
// compilers: gcc clang
// library: fault
// native: * because an emulator does not bound the stack that overflows
#include "subject.h"
#if defined(__x86_64__)
#define TRAP() __asm__ volatile("int3")
#else
#define TRAP() raise(SIGTRAP) // after a breakpoint of aarch64 the handler would have to step over it
#endif
#include <sys/resource.h>
int fault_read(volatile int *address);
int fault_outer(volatile int *address);
void fault_note(void);
#ifdef LIB_fault
EXPORT int fault_read(volatile int *address) { int value = *address; OPAQUE(); return value + 1; }
EXPORT int fault_outer(volatile int *address) { int value = fault_read(address); OPAQUE(); return value + 1; }
EXPORT void fault_note(void) { OPAQUE(); }
#else
static sigjmp_buf back;
static char *page;
static volatile int mode, faults, signals[65];
static void handler(int signal, siginfo_t *info, void *context) {
    faults++;
    signals[signal]++;
    fault_note();
    if (signal == SIGSEGV && mode == 0) { // repair and go on inside the traced call
        CHECK(info->si_addr == page);
        CHECK(!mprotect(page, 4096, PROT_READ | PROT_WRITE));
        *(int *)page = 40;
    } else if (signal == SIGTRAP) {
        (void)context;
    } else siglongjmp(back, 1);
}
static NOINLINE int overflow(int depth) {
    volatile char buffer[1024];
    buffer[0] = (char)depth;
    return overflow(depth + 1) + buffer[0];
}
int main(void) {
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    CHECK(!sigaltstack(&alternate, NULL));
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK(!sigaction(SIGSEGV, &action, NULL) && !sigaction(SIGBUS, &action, NULL) && !sigaction(SIGFPE, &action, NULL)
          && !sigaction(SIGILL, &action, NULL) && !sigaction(SIGTRAP, &action, NULL));
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    for (int i = 0; i < 10; i++) {
        CHECK(fault_outer((int *)page) == 42);
        CHECK(!mprotect(page, 4096, PROT_NONE));
    }
    mode = 1;
    for (volatile int i = 0; i < 10; i++)
        if (!sigsetjmp(back, 1)) { fault_outer((int *)page); CHECK(0); }
    fault_note(); // on the main stack: proves that the frames left by the handlers are dead
    if (!sigsetjmp(back, 1)) { __builtin_trap(); }
    for (int i = 0; i < 3; i++) TRAP();
    struct rlimit small = {1 << 20, RLIM_INFINITY};
    CHECK(!setrlimit(RLIMIT_STACK, &small));
    if (!sigsetjmp(back, 1)) CHECK(overflow(0) == -1);
    fault_note();
    struct sigaction now;
    CHECK(!sigaction(SIGSEGV, NULL, &now) && now.sa_sigaction == handler && now.sa_flags & SA_ONSTACK);
    CHECK(!sigaction(SIGBUS, NULL, &now) && now.sa_sigaction == handler);
    printf("%d faults: %d segv %d ill %d trap\n", faults, signals[SIGSEGV], signals[SIGILL], signals[SIGTRAP]);
    return 0;
}
#endif
