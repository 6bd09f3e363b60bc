// Coroutines under a time filter: calls are inside what they were called in, although they end in another order.
// library: turns
// env: TRACER_MINMS=2
// modes: call_sites arm
#include "subject.h"
EXPORT void turn_outer(void (*begin)(void), void (*go_on)(void));
EXPORT void turn_part(void (*leave)(void));
EXPORT void turn_inner(void (*leave)(void));
EXPORT void turn_work(void);
EXPORT void turn_quick(void);
#ifdef LIB_turns
void turn_quick(void) { OPAQUE(); }
void turn_work(void) { // busy until the clock says so, without sleeping: sure to last
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 5000000);
}
void turn_part(void (*leave)(void)) {
    turn_quick();
    leave();
    OPAQUE();
}
void turn_inner(void (*leave)(void)) {
    turn_part(leave);
    turn_work();
    OPAQUE();
}
void turn_outer(void (*begin)(void), void (*go_on)(void)) {
    begin();
    turn_work();
    go_on();
    OPAQUE();
}
#else
static ucontext_t back, self;
static char stack[65536];
static void leave(void) { CHECK(!swapcontext(&self, &back)); }
static void body(void) { turn_inner(leave); }
static void begin(void) {
    context_on(&self, stack, sizeof stack, &back);
    makecontext(&self, body, 0);
    CHECK(!swapcontext(&back, &self));
}
static void go_on(void) { CHECK(!swapcontext(&back, &self)); }
int main(void) {
    turn_outer(begin, go_on);
    puts("turns");
    return 0;
}
#endif
