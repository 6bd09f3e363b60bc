// Thread-local variables of more than 32 KB lie before the agent's: on aarch64 its state is then farther from the thread
// pointer than the offset of a load reaches. Ordinary calls, a tail call, a function that is an entry only, another stack.
// library: far
// link: -lpthread
// case: plain
// case: kernels_clock TRACER_CLOCK=monotonic
// case: filtered TRACER_MINMS=0.000001
// tree: none the subject counts its calls
// modes: functions arm arm_old
#include "subject.h"
#include "part_other_stack.h"
long far_leaf(long value);
long far_outer(long value);
long far_tail(long value);
void far_around(void (*body)(void));
#ifdef LIB_far
EXPORT long far_leaf(long value) { OPAQUE(); return value + 1; }
EXPORT long far_outer(long value) { long r = far_leaf(value); OPAQUE(); return r + far_leaf(r); }
EXPORT long far_tail(long value) { OPAQUE(); return far_leaf(value + 1); }
EXPORT void far_around(void (*body)(void)) { body(); OPAQUE(); }
#else
static __thread volatile char large[100000];
static ucontext_t own_context, other_context;
static void calls(void) {
    jmp_buf buffer;
    large[0] = large[sizeof large - 1] = 1;
    for (long i = 0; i < 100; i++) {
        CHECK(far_leaf(i) == i + 1);
        CHECK(far_outer(i) == 2 * i + 3);
        CHECK(far_tail(i) == i + 2);
        CHECK(!setjmp(buffer));
    }
    CHECK(large[0] == 1 && large[1] == 0 && large[sizeof large - 1] == 1);
}
static void elsewhere(void) {
    calls();
    CHECK(!swapcontext(&other_context, &own_context));
    calls();
}
static void other_body(void) { far_around(elsewhere); CHECK(!swapcontext(&other_context, &own_context)); }
static void *thread(void *unused) { calls(); return unused; }
int main(void) {
    pthread_t id;
    calls();
    CHECK(!pthread_create(&id, NULL, thread, NULL) && !pthread_join(id, NULL));
    on_other_stack(&other_context, &own_context, other_body);
    CHECK(!swapcontext(&own_context, &other_context));
    calls(); // while a frame on the other stack is open
    CHECK(!swapcontext(&own_context, &other_context));
    const int hides = getenv("TRACER_MINMS") != NULL; // a call shorter than a step of the clock
    counted_between("far_leaf", hides ? 0 : 5 * 400, 5 * 400);
    counted_between("far_outer", hides ? 0 : 5 * 100, 5 * 100);
    counted_between("far_tail", hides ? 0 : 5 * 100, 5 * 100);
    counted_between("far_around", hides ? 0 : 1, 1);
    return 0;
}
#endif
