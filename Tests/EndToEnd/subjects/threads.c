// Thread life: 1,000 short-lived ones, destructors of thread-specific data that make traced calls, pthread_exit,
// a detached thread that still runs at exit, names, a barrier of many at once.
// library: life
// compilers: gcc clang
// case: short_lived short_lived
// case: destructors destructors
// case: detached detached
// case: at_once at_once
// case: small_stack small_stack
// case: atexit atexit
// modes: functions counts instrumented call_sites
// modes: arm arm_old arm_instrumented arm_functions arm_counts arm_call_sites arm_large_pages for gcc.*
#include "subject.h"
#include <limits.h>
int life_work(int value);
void life_destroy(void);
void life_exit(void);
#ifdef LIB_life
EXPORT int life_work(int value) { return value + 1; }
EXPORT void life_destroy(void) { OPAQUE(); }
EXPORT void life_exit(void) { OPAQUE(); }
#else
static _Atomic int finished, started;
static pthread_key_t keys[3];
static _Thread_local int rounds;
static void destroy(void *value) {
    life_destroy();
    if (rounds++ < 3) pthread_setspecific(keys[0], value); // once more: the last thing that a thread runs
}
static void *shortest(void *argument) { return (void *)(long)life_work((int)(long)argument); }
static void *with_keys(void *argument) {
    for (int i = 0; i < 3; i++) CHECK(!pthread_setspecific(keys[i], argument));
    life_work(1);
    if ((long)argument & 1) pthread_exit(argument);
    return argument;
}
static void *forever(void *unused) {
    for (;;) { life_work(3); started = 1; }
    return unused;
}
static pthread_barrier_t barrier;
static void *together(void *unused) {
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 500; i++) CHECK(life_work(i) == i + 1);
    finished++;
    return unused;
}
static void at_exit(void) { life_exit(); }
__attribute__((destructor)) static void at_unload(void) { life_exit(); }
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *mode = argv[1];
    pthread_t thread, many[64];
    void *result;
    if (!strcmp(mode, "short_lived")) {
        for (long i = 0; i < 1000; i++) {
            CHECK(!pthread_create(&thread, NULL, shortest, (void *)i) && !pthread_join(thread, &result));
            CHECK(result == (void *)(i + 1));
        }
    } else if (!strcmp(mode, "destructors")) {
        for (int i = 0; i < 3; i++) CHECK(!pthread_key_create(&keys[i], destroy));
        for (long i = 1; i <= 10; i++) {
            CHECK(!pthread_create(&thread, NULL, with_keys, (void *)i) && !pthread_join(thread, &result));
            CHECK(result == (void *)i);
        }
    } else if (!strcmp(mode, "detached")) {
        CHECK(!pthread_create(&thread, NULL, forever, NULL) && !pthread_detach(thread));
        while (!started) sched_yield();
    } else if (!strcmp(mode, "at_once")) {
        pthread_barrier_init(&barrier, NULL, 64);
        for (int i = 0; i < 64; i++) CHECK(!pthread_create(&many[i], NULL, together, NULL));
        for (int i = 0; i < 64; i++) CHECK(!pthread_join(many[i], NULL));
        CHECK(finished == 64);
    } else if (!strcmp(mode, "small_stack")) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        CHECK(!pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN));
        for (long i = 0; i < 50; i++) {
            CHECK(!pthread_create(&thread, &attributes, shortest, (void *)i) && !pthread_join(thread, &result));
            CHECK(result == (void *)(i + 1));
        }
    } else if (!strcmp(mode, "atexit")) {
        for (int i = 0; i < 40; i++) atexit(at_exit);
    }
    printf("%s over\n", mode);
    return 0;
}
#endif
