// setjmp and longjmp over many traced frames, a buffer reused, two interleaved, every spelling of the functions.
// compilers: gcc clang
// library: jump
// variant: plain
// variant: fortified -D_FORTIFY_SOURCE=2
// variant: noplt@gcc -fno-plt
// modes: functions counts instrumented call_sites arm arm_instrumented arm_call_sites
#include "subject.h"
void jump_down(int depth, jmp_buf target, int value);
void jump_down_also(int depth, jmp_buf target, int value);
void jump_leaf(void);
#ifdef LIB_jump
EXPORT void jump_leaf(void) { OPAQUE(); }
EXPORT void jump_down(int depth, jmp_buf target, int value) {
    if (!depth) longjmp(target, value);
    jump_down_also(depth - 1, target, value);
    OPAQUE();
}
EXPORT void jump_down_also(int depth, jmp_buf target, int value) {
    if (!depth) longjmp(target, value);
    jump_down(depth - 1, target, value);
    OPAQUE();
}
#else
static NOINLINE void many_frames(void) {
    jmp_buf buffer;
    volatile int returns = 0;
    int value = setjmp(buffer);
    if (value) returns++;
    if (returns < 10) jump_down(99, buffer, 7);
    CHECK(value == 7 && returns == 10);
    jump_leaf();
}
static NOINLINE void interleaved(void) {
    jmp_buf outer, inner;
    volatile int round = 0, seen = 0;
    if (setjmp(outer)) seen += 100;
    if (round < 5) {
        if (!setjmp(inner)) jump_down(3, inner, 1);
        seen++;
        round++;
        jump_down(2, outer, 1);
    }
    CHECK(seen == 505);
    jump_leaf();
}
static NOINLINE void with_masks(void) {
    sigjmp_buf buffer;
    volatile int count = 0;
    sigset_t set, now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (sigsetjmp(buffer, 1)) count++;
    sigprocmask(SIG_BLOCK, NULL, &now);
    CHECK(!sigismember(&now, SIGUSR1));
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (count < 5) siglongjmp(buffer, 1);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    if (_setjmp(buffer)) count++;
    if (count < 10) _longjmp(buffer, 1);
    CHECK(count == 10);
    jump_leaf();
}
static NOINLINE void contexts(void) {
    ucontext_t here;
    volatile int count = 0;
    CHECK(!getcontext(&here));
    count++;
    jump_leaf();
    if (count < 5) setcontext(&here);
    CHECK(count == 5);
}
int main(void) {
    many_frames();
    interleaved();
    with_masks();
    contexts();
    jump_leaf();
    puts("back each time");
    return 0;
}
#endif
