// A coroutine whose stack lies above that of its thread: entered while no call of the thread is open, resumed while one
// is, and ended in another order.
// library: above
// compilers: gcc clang
// modes: functions counts instrumented call_sites
#include "subject.h"
long above_leaf(long value);
long above_step(long value, void (*callback)(void));
long above_thread(long value, void (*callback)(void));
#ifdef LIB_above
EXPORT long above_leaf(long value) { OPAQUE(); return value * 3 + 1; }
EXPORT long above_step(long value, void (*callback)(void)) { callback(); OPAQUE(); return value + 1; }
EXPORT long above_thread(long value, void (*callback)(void)) { callback(); OPAQUE(); return value + 2; }
#else
enum { STACK = 64 * 1024 };
static ucontext_t own, other;
static char *stack;
static long total;
static void to_own(void) { CHECK(!swapcontext(&other, &own)); }
static void to_other(void) { CHECK(!swapcontext(&own, &other)); }
static void leaf(void) { total += above_leaf(3); }
static void body(void) {
    total += above_step(1, to_own); // resumed inside above_thread, which is then still open
    total += above_step(2, leaf);
    for (;;) to_own();
}
static void *run(void *unused) {
    CHECK((char *)&unused < stack);
    context_on(&other, stack, STACK, NULL);
    makecontext(&other, body, 0);
    to_other();
    total += above_thread(5, to_other);
    return unused;
}
int main(void) {
    stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    pthread_t thread; // the kernel maps downwards: its stack is below
    CHECK(!pthread_create(&thread, NULL, run, NULL) && !pthread_join(thread, NULL));
    printf("%ld\n", total);
    return 0;
}
#endif
