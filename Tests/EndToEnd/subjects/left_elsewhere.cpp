// Calls on coroutines' stacks that nobody returns to: left by an exception, by longjmp, by setcontext, or with their whole coroutine. Each
// ends when it is left, so that what is called afterwards is not inside it.
// compilers: gcc clang
// library: left
// modes: functions instrumented call_sites arm arm_functions
#include "subject.h"
EXPORT void left_throw(int value);
EXPORT int left_around(void (*body)(void));
EXPORT int left_after(int value);
EXPORT void left_jump(jmp_buf *to);
EXPORT void left_switch(ucontext_t *to);
#ifdef LIB_left
void left_throw(int value) { throw value; }
int left_around(void (*body)(void)) { body(); OPAQUE(); return 1; }
int left_after(int value) { OPAQUE(); return value + 1; }
void left_jump(jmp_buf *to) { longjmp(*to, 1); }
void left_switch(ucontext_t *to) { setcontext(to); OPAQUE(); }
#else
namespace {
enum { STACK = 131072 };
char one[STACK], other[STACK], *mapped;
ucontext_t back, first, second, again;
void throws() { left_throw(7); }
struct Local { ~Local() { left_after(0); } };
void throws_through_a_destructor() { Local local; left_throw(8); }
NOINLINE int caught(void (*body)(void)) {
    try { return left_around(body); } catch (int value) { return value; }
}
void yields() { CHECK(!swapcontext(&first, &back)); left_after(4); }
// An exception, one that runs a destructor on its way, a jump, a context within the stack: each leaves one or two calls.
void ways() {
    CHECK(caught(throws) == 7 && left_after(1) == 2);
    CHECK(caught(throws_through_a_destructor) == 8 && left_after(1) == 2);
    jmp_buf here;
    if (!setjmp(here)) left_jump(&here);
    left_after(2);
    static volatile int turns;
    turns = 0;
    getcontext(&again);
    if (!turns++) left_switch(&again);
    left_after(3);
    left_around(yields); // while it waits another coroutine goes the same ways
    CHECK(!swapcontext(&first, &back));
}
void other_ways() {
    CHECK(caught(throws) == 7);
    left_after(5);
    CHECK(!swapcontext(&second, &back));
}
void abandoned() { CHECK(!swapcontext(&second, &back)); }
void abandons() { left_around(abandoned); }
void begin(ucontext_t *context, char *stack, void (*body)(void)) {
    context_on(context, stack, STACK, &back);
    makecontext(context, body, 0);
    CHECK(!swapcontext(&back, context));
}
}
int main() {
    begin(&first, one, ways);
    begin(&second, other, other_ways);
    CHECK(!swapcontext(&back, &first));
    // A coroutine that nobody continues; then another one gets its stack.
    begin(&second, other, abandons);
    begin(&second, other, other_ways);
    left_after(6);
    puts("left");
    return 0;
}
#endif
