// makecontext/swapcontext: a generator, one abandoned half-way, a context that ends and links to another, one resumed
// and finished on another thread.
// library: generate
// compilers: gcc clang
// modes: functions counts instrumented arm arm_old arm_instrumented arm_functions arm_counts
#include "subject.h"
int gen_next(int value);
int gen_body(int value, void (*yield)(int));
int gen_main(int value);
#ifdef LIB_generate
EXPORT int gen_next(int value) { return value * 3 + 1; }
EXPORT int gen_body(int value, void (*yield)(int)) {
    for (int i = 0; i < 10; i++) {
        value = gen_next(value) & 0xff;
        yield(value); // leaves while this call is open
    }
    return value;
}
EXPORT int gen_main(int value) { return gen_next(value) + 1; }
#else
enum { STACK = 64 * 1024 };
static ucontext_t caller, generator;
static char stacks[4][STACK];
static int current;
static void yield(int value) { current = value; swapcontext(&generator, &caller); }
static void body(int start) { current = 1000 + gen_body(start, yield); }
static void begin(int which, int start) {
    context_on(&generator, stacks[which], STACK, &caller);
    makecontext(&generator, (void (*)(void))body, 1, start);
}
static void *finish(void *sum) {
    for (int i = 0; i < 5; i++) {
        swapcontext(&caller, &generator);
        *(int *)sum += current;
        *(int *)sum += gen_main(i);
    }
    swapcontext(&caller, &generator); // the body ends here, on this thread
    CHECK(current >= 1000);
    return NULL;
}
int main(void) {
    int sum = 0;
    begin(0, 1);
    for (int i = 0; i < 10; i++) {
        swapcontext(&caller, &generator);
        sum += current + gen_main(i);
    }
    swapcontext(&caller, &generator);
    CHECK(current >= 1000);
    begin(1, 2); // abandoned half-way: its frames stay open for ever
    for (int i = 0; i < 3; i++) swapcontext(&caller, &generator);
    begin(2, 3);
    for (int i = 0; i < 5; i++) {
        swapcontext(&caller, &generator);
        sum += current;
    }
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, finish, &sum) && !pthread_join(thread, NULL));
    for (int i = 0; i < 20; i++) sum += gen_main(i);
    printf("%d\n", sum);
    return 0;
}
#endif
