// Code that runs before main and after it: in which order, inside what, for how long, and which of it never returns.
// compilers: gcc clang
// library: two -Wl,-init,two_old_init -Wl,-fini,two_old_fini
// plugin: outer=part_initializers.c -DOUTER -ldl
// plugin: inner=part_initializers.c -DINNER
// link: -ldl -Wl,--no-as-needed
// env: BUILD={build}
// variant: pie
// variant: nopie exe:-no-pie exe:-fno-pie
// variant: now -Wl,-z,now
// case: order order
// case: exits exits
// case: forks forks
// case: waits waits
// case: recursive recursive
// forks: forks
#include "subject.h"
int two_value(void);
#ifdef LIB_two
static int value;
EXPORT int two_value(void) { return value; }
__attribute__((constructor)) static void two_first(void) { value += 1; OPAQUE(); }
__attribute__((constructor)) static void two_second(void) { value += 10; OPAQUE(); }
__attribute__((destructor)) static void two_last(void) { value += 1000; }
EXPORT void two_old_init(void) { value += 100; }
EXPORT void two_old_fini(void) { CHECK(value >= 1111); }
#else
static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
/// Between the end of the constructor before and the beginning of the one after it lies the one in the middle, and what
/// it reads itself lies in it: so bounds of its time are known, whatever the machine does meanwhile.
static struct { uint64_t before, cpu_before, inside, cpu_inside; } spun, slept;
static void bounds(const char *name, uint64_t before, uint64_t cpu_before, uint64_t inside, uint64_t cpu_inside) {
    char key[64];
    snprintf(key, sizeof key, "ns:%s", name);
    counted_between(key, inside, now(CLOCK_MONOTONIC) - before);
    snprintf(key, sizeof key, "cpu:%s", name);
    counted_between(key, cpu_inside, now(CLOCK_THREAD_CPUTIME_ID) - cpu_before);
}
static void preinit(int count, char **arguments, char **environment) {
    CHECK(count == 2 && arguments[1] && environment);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(int, char **, char **) = preinit;
__attribute__((constructor(201))) static void before_spins(void) {
    spun.before = now(CLOCK_MONOTONIC), spun.cpu_before = now(CLOCK_THREAD_CPUTIME_ID);
}
__attribute__((constructor(202))) static void spins(void) {
    uint64_t begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    while (now(CLOCK_THREAD_CPUTIME_ID) - cpu < 5000000) {}
    spun.cpu_inside = now(CLOCK_THREAD_CPUTIME_ID) - cpu, spun.inside = now(CLOCK_MONOTONIC) - begin;
}
__attribute__((constructor(203))) static void before_sleeps(void) {
    bounds("spins", spun.before, spun.cpu_before, spun.inside, spun.cpu_inside);
    slept.before = now(CLOCK_MONOTONIC), slept.cpu_before = now(CLOCK_THREAD_CPUTIME_ID);
}
__attribute__((constructor(204))) static void sleeps(void) {
    uint64_t begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    slept.cpu_inside = now(CLOCK_THREAD_CPUTIME_ID) - cpu, slept.inside = now(CLOCK_MONOTONIC) - begin;
}
__attribute__((constructor(205))) static void after_sleeps(void) {
    bounds("sleeps", slept.before, slept.cpu_before, slept.inside, slept.cpu_inside);
}
static void *thread(void *unused) {
    CHECK(two_value() == 111);
    return unused;
}
__attribute__((constructor(206))) static void does(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "exits")) exit(0);
    if (!strcmp(what, "forks")) {
        pid_t child = fork();
        if (child == 0) return; // both go on to main
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    if (!strcmp(what, "waits")) {
        pthread_t other;
        CHECK(!pthread_create(&other, NULL, thread, NULL) && !pthread_join(other, NULL));
    }
}
__attribute__((destructor(204))) static void early_end(void) { OPAQUE(); }
__attribute__((destructor(203))) static void late_end(void) { CHECK(two_value() == 111); }
int main(int count, char **arguments) {
    static int rounds;
    CHECK(count == 2 && two_value() == 111);
    if (!strcmp(arguments[1], "recursive") && rounds++ < 3) {
        int (*volatile again)(int, char **) = main;
        return again(count, arguments);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/libouter.so", getenv("BUILD"));
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library);
    CHECK(!dlclose(library));
    library = dlopen(path, RTLD_NOW);
    CHECK(library && dlsym(library, "outer_value") && !dlclose(library));
    puts("main");
    return 0;
}
#endif
