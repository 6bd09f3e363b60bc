// A depth limit counts the calls of the stack that runs: neither those of coroutines that wait nor those that an exception has left.
// compilers: gcc clang
// library: levels
// case: two TRACER_MAXDEPTH=2
// modes: call_sites arm
#include "subject.h"
EXPORT void level_request(int number);
EXPORT void level_fail(int number);
EXPORT int level_step(void (*wait)(void));
EXPORT int level_leaf(int value);
EXPORT int level_below(int value);
#ifdef LIB_levels
int level_below(int value) { OPAQUE(); return value; }
int level_leaf(int value) { int below = level_below(value); OPAQUE(); return below; }
void level_fail(int number) { throw number; }
void level_request(int number) { if (number % 2) level_fail(number); OPAQUE(); }
int level_step(void (*wait)(void)) { wait(); return level_leaf(1); }
#else
namespace {
enum { COROUTINES = 12, REQUESTS = 10, STACK = 65536 };
ucontext_t back, contexts[COROUTINES], one;
char stacks[COROUTINES][STACK], stack[STACK];
int now;
void wait() { CHECK(!swapcontext(&contexts[now], &back)); }
void steps() { level_step(wait); }
void requests() {
    for (int i = 0; i < REQUESTS; i++) try { level_request(i); } catch (int) {}
}
void begin(ucontext_t *context, char *on, void (*body)(void)) {
    context_on(context, on, STACK, &back);
    makecontext(context, body, 0);
    CHECK(!swapcontext(&back, context));
}
}
int main() {
    begin(&one, stack, requests);
    for (now = 0; now < COROUTINES; now++) begin(&contexts[now], stacks[now], steps);
    for (now = 0; now < COROUTINES; now++) CHECK(!swapcontext(&back, &contexts[now]));
    puts("levels");
    return 0;
}
#endif
