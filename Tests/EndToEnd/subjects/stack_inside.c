// A signal stack, or the stack of a coroutine, is a variable on the thread's own stack: what runs there lies above the frames that
// it interrupts, which are not left by that.
// library: inside
// case: handler handler
// case: nested nested
// case: jump jump
// case: thread thread
// case: coroutine coroutine
// case: reused reused
// modes: functions counts instrumented call_sites
#include "subject.h"
long inside_leaf(long value);
long inside_outer(void (*callback)(void));
long inside_deep(void (*callback)(void));
#ifdef LIB_inside
EXPORT long inside_leaf(long value) { return value + 1; }
EXPORT long inside_outer(void (*callback)(void)) { callback(); OPAQUE(); return 1; }
EXPORT long inside_deep(void (*callback)(void)) { long result = inside_outer(callback); OPAQUE(); return result + 1; }
#else
enum { ROUNDS = 3, BYTES = 65536 };
static const char *how;
static sigjmp_buf back;
static int is(const char *what) { return !strcmp(how, what); }
static void second(int number) { CHECK(inside_leaf(number) == number + 1); }
static void work(void) { CHECK(inside_leaf(5) == 6); }
static void first(int number) {
    CHECK(inside_outer(work) == 1 && inside_leaf(number) == number + 1);
    if (is("nested")) CHECK(!raise(SIGUSR2) && inside_leaf(number) == number + 1);
    if (is("jump")) siglongjmp(back, 1);
}
static void interrupt(void) {
    CHECK(inside_leaf(1) == 2);
    CHECK(!raise(SIGUSR1));
    CHECK(inside_leaf(2) == 3);
}
static void on_signal_stack(void) {
    char buffer[BYTES];
    stack_t stack = {.ss_sp = buffer, .ss_size = sizeof buffer}, none = {.ss_flags = SS_DISABLE};
    struct sigaction action = {.sa_handler = first, .sa_flags = SA_ONSTACK};
    CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL));
    action.sa_handler = second;
    CHECK(!sigaction(SIGUSR2, &action, NULL));
    for (int n = 0; n < ROUNDS; n++) {
        if (!sigsetjmp(back, 1)) CHECK(inside_deep(interrupt) == 2);
        CHECK(inside_leaf(7) == 8);
    }
    CHECK(!sigaltstack(&none, NULL));
    OPAQUE();
}
static void *in_thread(void *unused) {
    on_signal_stack();
    return unused;
}
static ucontext_t caller, other;
static void coroutine(void) {
    for (;;) {
        CHECK(inside_outer(work) == 1);
        CHECK(!swapcontext(&other, &caller));
    }
}
static void resume(void) {
    CHECK(inside_leaf(1) == 2);
    CHECK(!swapcontext(&caller, &other));
    CHECK(inside_leaf(2) == 3);
}
static void on_coroutine(void) {
    char buffer[BYTES];
    context_on(&other, buffer, sizeof buffer, NULL);
    makecontext(&other, coroutine, 0);
    for (int n = 0; n < ROUNDS; n++) CHECK(inside_deep(resume) == 2);
    OPAQUE();
}
/// A former signal stack is an ordinary part of the stack again.
static void on_reused(void) {
    char buffer[BYTES];
    memset(buffer, 1, sizeof buffer);
    OPAQUE();
    for (int n = 0; n < ROUNDS; n++) {
        if (!sigsetjmp(back, 1)) CHECK(inside_deep(work) == 2);
        CHECK(inside_leaf(7) == 8);
    }
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    how = argv[1];
    if (is("thread")) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, in_thread, NULL) && !pthread_join(thread, NULL));
    } else if (is("coroutine")) on_coroutine();
    else on_signal_stack();
    if (is("reused")) on_reused();
    CHECK(inside_leaf(9) == 10);
    puts("over");
    return 0;
}
#endif
