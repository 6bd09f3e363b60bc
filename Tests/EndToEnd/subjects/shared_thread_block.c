// A task that shares its parent's memory and thread block and runs at the same time, on a stack of its own (clone(2) with
// CLONE_VM, without CLONE_SETTLS: LeakSanitizer's). Both call from very many call sites, so that the agent has work to do in both.
// The task's own calls are not recorded: there is no thread that they would belong to.
// build: -O1 -fno-toplevel-reorder
// library: shared
// tree: none the subject counts its calls
// native: * because the emulator gives each task a CPU of its own, and clone without CLONE_THREAD makes a process
#include "subject.h"
void shared_called(unsigned long *count);
#define TEN(x) x x x x x x x x x x
#define THOUSAND(x) TEN(TEN(TEN(x)))
#ifdef LIB_shared
EXPORT void shared_called(unsigned long *count) { ++*count; }
#else
static __attribute__((noinline)) void own(unsigned long *count) { THOUSAND(shared_called(count);) THOUSAND(shared_called(count);) }
static __attribute__((noinline)) void other(unsigned long *count) { THOUSAND(shared_called(count);) THOUSAND(shared_called(count);) }
static unsigned long counts[2];
static volatile int is_running;
static int task(void *unused) {
    (void)unused;
    is_running = 1;
    for (int n = 0; n < 20; n++) other(&counts[1]);
    return 0;
}
int main(void) {
    size_t bytes = 1 << 20;
    char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    for (int round = 0; round < 5; round++) {
        is_running = 0;
        pid_t pid = clone(task, stack + bytes, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
        CHECK(pid > 0);
        while (!is_running) {}
        for (int n = 0; n < 20; n++) own(&counts[0]);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    counted("shared_called", counts[0]);
    printf("%lu and %lu calls\n", counts[0], counts[1]);
    return 0;
}
#endif
