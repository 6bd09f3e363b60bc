// Coroutines that a signal preempts at any instruction: the handler switches to the next one, which may end calls that
// began before those of the one it left. On a stack of their own each, with the main program's stack among them.
// library: work
// compilers: gcc clang
// tree: none the subject counts its calls
// disorder: * because a call may be left between its clock and its word, and taken up milliseconds later
// architecture: x86_64 qemu's signals come between blocks of instructions
#include "subject.h"
#include <sys/time.h>
long work_outer(long value);
long work_inner(long value);
#ifdef LIB_work
EXPORT long work_inner(long value) { return value * 3 + 1; }
EXPORT long work_outer(long value) {
    for (int i = 0; i < 3; i++) value = work_inner(value) & 0xffff;
    return value;
}
#else
enum { COUNT = 5, STACK = 256 * 1024, ROUNDS = 40000 };
static ucontext_t contexts[COUNT];
static char stacks[COUNT][STACK];
static volatile int current, alive = COUNT;
static volatile int done[COUNT];
static volatile unsigned long switches;

static void next(void) {
    int from = current, to = from;
    do to = (to + 1) % COUNT; while (done[to] && to != from);
    if (to == from) return;
    current = to;
    switches++;
    swapcontext(&contexts[from], &contexts[to]);
}
static void handler(int signal) {
    (void)signal;
    next();
}
/// swapcontext sets the mask before it switches stacks: every context is saved and taken up with the signal blocked.
static void signals(int how) {
    sigset_t all;
    sigfillset(&all);
    CHECK(!sigprocmask(how, &all, NULL));
}
static void body(int self) {
    signals(SIG_UNBLOCK);
    long value = self;
    for (int i = 0; i < ROUNDS; i++) value = work_outer(value);
    CHECK(value >= 0);
    signals(SIG_BLOCK);
    alive--;
    if (self) {
        done[self] = 1;
        next();
        CHECK(0);
    }
    while (alive) next();
}
int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK(!sigaction(SIGALRM, &action, NULL));
    signals(SIG_BLOCK);
    for (int i = 1; i < COUNT; i++) {
        context_on(&contexts[i], stacks[i], STACK, NULL);
        makecontext(&contexts[i], (void (*)(void))body, 1, i);
    }
    struct itimerval often = {{0, 100}, {0, 100}};
    CHECK(!setitimer(ITIMER_REAL, &often, NULL));
    body(0);
    CHECK(switches >= COUNT - 1);
    counted("work_outer", COUNT * (unsigned long)ROUNDS);
    counted("work_inner", COUNT * (unsigned long)ROUNDS * 3);
    puts("all have ended");
    return 0;
}
#endif
