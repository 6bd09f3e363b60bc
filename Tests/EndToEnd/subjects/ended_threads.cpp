// Threads that end leave no memory of the agent behind: not after deep calls, exceptions, or calls on another stack.
// compilers: gcc
// library: below -pthread
// link: -pthread
// case: all TRACER_MODE=ring TRACER_MAXSIZE=1M
// native: * because the memory of an emulator counts with that of the program
// tree: none what a ring keeps of that many threads is not known beforehand
// modes: instrumented
#include "subject.h"
extern "C" int below_down(int levels, int leaf);
#ifdef LIB_below
extern "C" EXPORT int below_down(int levels, int leaf) {
    if (levels == 0) {
        if (leaf) throw 7;
        return 1;
    }
    int result = below_down(levels - 1, leaf);
    OPAQUE();
    return result + 1;
}
#else
static void on_other_stack() { CHECK(below_down(3, 0) == 4); }
static void *work(void *) {
    CHECK(below_down(200, 0) == 201);
    try {
        below_down(40, 1);
        CHECK(false);
    } catch (int thrown) {
        CHECK(thrown == 7);
    }
    static __thread ucontext_t here, there;
    char *stack = (char *)malloc(65536);
    context_on(&there, stack, 65536, &here);
    makecontext(&there, on_other_stack, 0);
    CHECK(!swapcontext(&here, &there));
    free(stack);
    return NULL;
}
static void run(int threads) {
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, work, NULL) && !pthread_join(thread, NULL));
    }
}
int main() {
    run(50);
    long before = anonymous_kilobytes();
    run(400);
    long grown = anonymous_kilobytes() - before;
    if (grown > 512) printf("private memory has grown by %ld KB\n", grown);
    puts("450 threads");
    return 0;
}
#endif
