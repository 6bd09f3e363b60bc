// Four threads make calls inside calls until something comes on standard input. programs.py attaches gdb to it, again
// and again. They print what they computed, which depends only on how many rounds that makes even.
// library: tireless
#include "subject.h"
long tireless_inner(long value);
long tireless_outer(long value, long (*callback)(long));
#ifdef LIB_tireless
EXPORT long tireless_inner(long value) { return value * 3 + 1; }
EXPORT long tireless_outer(long value, long (*callback)(long)) { long r = callback(value); OPAQUE(); return r + 1; }
#else
static volatile int stop;
static NOINLINE long middle(long value) { long r = tireless_inner(value); OPAQUE(); return r; }
static void *work(void *rounds) {
    long wrong = 0;
    while (!stop)
        for (long i = 0; i < 1000; i++, ++*(long *)rounds) wrong += tireless_outer(i, middle) != i * 3 + 2;
    return (void *)wrong;
}
int main(void) {
    pthread_t threads[4];
    long rounds[4] = {0};
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, work, &rounds[i]));
    puts("running");
    char c;
    CHECK(read(0, &c, 1) >= 0);
    stop = 1;
    unsigned long sum = 0;
    for (int i = 0; i < 4; i++) {
        void *wrong;
        CHECK(!pthread_join(threads[i], &wrong) && !wrong);
        sum += (unsigned long)rounds[i];
    }
    counted("tireless_outer", sum);
    counted("tireless_inner", sum);
    puts("went on");
    return 0;
}
#endif
