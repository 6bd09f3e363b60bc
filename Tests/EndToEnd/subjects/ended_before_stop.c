// Recording stops, and starts, after threads have ended: their former stacks, with their thread-local variables, are then
// unmapped, or hold what the program has put there. Calls made after a stop for lack of something are counted, including
// calls of threads that begin later.
// library: step
// case: api api
// case: limit TRACER_MAXSIZE=300K limit
// case: limit_filtered TRACER_MAXSIZE=300K TRACER_MINMS=0.000001 limit
// case: limit_monotonic TRACER_MAXSIZE=300K TRACER_CLOCK=monotonic limit
// case: renamed renamed
// case: file_size file_size
// case: coroutine TRACER_MAXSIZE=300K coroutine
// case: inspected TRACER_MAXSIZE=300K inspected
// says: 1 why recording stopped
// tree: none the subject counts its calls
#include "subject.h"
#include <sys/resource.h>
long ended_step(long value);
#ifdef LIB_step
EXPORT long ended_step(long value) { return value * 3 + 1; }
#else
extern void tracer_stop(void) __attribute__((weak));
extern void tracer_start(void) __attribute__((weak));
enum { THREADS = 4, BYTES = 1 << 20, FEW = 10, MANY = 100000, PATTERN = 0xa5 };
static unsigned long made;
static void work(long count) {
    for (long i = 0; i < count; i++) CHECK(ended_step(i) == i * 3 + 1);
    __atomic_fetch_add(&made, (unsigned long)count, __ATOMIC_RELAXED);
}
static void *thread_work(void *count) {
    work((long)count);
    return NULL;
}
static void in_threads(int how_many, long count) {
    pthread_t threads[THREADS];
    for (int n = 0; n < how_many; n++) CHECK(!pthread_create(&threads[n], NULL, thread_work, (void *)count));
    for (int n = 0; n < how_many; n++) CHECK(!pthread_join(threads[n], NULL));
}
/// The trace cannot be found by its name any more. Bare there is none.
static void rename_trace(void) {
    const char *output = getenv("TRACER_OUT"), *end = output ? strrchr(output, '/') : NULL;
    if (!end) return;
    char line[9000];
    snprintf(line, sizeof line, "cd '%.*s' && for trace in *.trace; do mv $trace kept.$trace; done", (int)(end - output), output);
    char *preload = getenv("LD_PRELOAD");
    unsetenv("LD_PRELOAD");
    CHECK(system(line) == 0);
    if (preload) setenv("LD_PRELOAD", preload, 1);
}
static ucontext_t caller, other;
static void on_other_stack(void) {
    work(FEW);
    work(MANY);
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *how = argv[1];
    pthread_t threads[THREADS];
    unsigned char *stacks[THREADS];
    work(FEW);
    for (int n = 0; n < THREADS; n++) {
        stacks[n] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(stacks[n] != MAP_FAILED);
        pthread_attr_t attributes;
        CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stacks[n], BYTES));
        CHECK(!pthread_create(&threads[n], &attributes, thread_work, (void *)FEW));
        pthread_attr_destroy(&attributes);
    }
    for (int n = 0; n < THREADS; n++) CHECK(!pthread_join(threads[n], NULL));
    for (int n = 0; n < THREADS; n++) {
        if (n % 2) CHECK(!munmap(stacks[n], BYTES));
        else memset(stacks[n], PATTERN, BYTES);
    }
    if (!strcmp(how, "api")) {
        if (tracer_stop) tracer_stop();
        unsigned long recorded = made;
        work(MANY);
        in_threads(THREADS, MANY);
        if (tracer_start) tracer_start();
        recorded += FEW * (THREADS + 1);
        work(FEW);
        in_threads(THREADS, FEW);
        if (tracer_stop) tracer_stop();
        work(FEW);
        counted("ended_step", recorded);
    } else if (!strcmp(how, "coroutine")) {
        static char buffer[262144];
        context_on(&other, buffer, sizeof buffer, &caller);
        makecontext(&other, on_other_stack, 0);
        CHECK(!swapcontext(&caller, &other));
    } else {
        if (!strcmp(how, "renamed")) rename_trace();
        if (!strcmp(how, "file_size")) {
            struct rlimit limit;
            CHECK(signal(SIGXFSZ, SIG_DFL) == SIG_DFL && !getrlimit(RLIMIT_FSIZE, &limit));
            limit.rlim_cur = 150000;
            CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
        }
        work(2 * MANY);
        in_threads(THREADS, FEW);
        in_threads(THREADS, MANY);
        work(FEW);
        if (!strcmp(how, "inspected")) {
            struct sigaction action; // the agent inspects each call of sigaction
            for (int n = 0; n < FEW * FEW; n++) CHECK(!sigaction(SIGUSR1, NULL, &action));
            counted("ended_step+sigaction+dropped", made + FEW * FEW);
        }
    }
    for (int n = 0; n < THREADS; n += 2) {
        for (int byte = 0; byte < BYTES; byte++) CHECK(stacks[n][byte] == PATTERN);
    }
    if (strcmp(how, "inspected") && strcmp(how, "api")) counted("ended_step+dropped", made);
    puts("went on");
    return 0;
}
#endif
