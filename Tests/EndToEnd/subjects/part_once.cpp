// Waits for what another thread does once: initializes a local static variable, or runs a function. A line for each: case, thread that
// waited, nanoseconds, the object (0: not known here), the thread that did it, and when it began, on CLOCK_MONOTONIC.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>

static uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return uint64_t(time.tv_sec) * 1000000000 + uint64_t(time.tv_nsec);
}
static int tid() { return int(syscall(SYS_gettid)); }

static pthread_barrier_t begun;
static int other;
static uint64_t since;
static void work() {
    since = now();
    other = tid();
    pthread_barrier_wait(&begun);
    for (uint64_t begin = now(); now() - begin < 30000000;);
}

struct Slow {
    Slow() { work(); }
};
__attribute__((noinline)) static void initialize() { static Slow slow; }
static pthread_once_t once = PTHREAD_ONCE_INIT;
static std::once_flag flag;
static void runOnce() { pthread_once(&once, work); }
static void callOnce() { std::call_once(flag, work); }

struct Case {
    const char *name;
    void (*run)();
    const void *object;
};
static void say(const Case &one, uint64_t begin) {
    uint64_t end = now();
    char line[200];
    int count = snprintf(line, sizeof line, "%s %d %lu %p %d %lu\n", one.name, tid(), (unsigned long)(end - begin), one.object, other, (unsigned long)since);
    if (write(1, line, size_t(count)) != count) _exit(1);
}
static void *runFirst(void *one) {
    static_cast<const Case *>(one)->run();
    return nullptr;
}
static void *runToo(void *one) {
    pthread_barrier_wait(&begun);
    uint64_t begin = now();
    static_cast<const Case *>(one)->run();
    say(*static_cast<const Case *>(one), begin);
    return nullptr;
}

int main() {
    Case cases[] = {{"guard", initialize, nullptr}, {"once", runOnce, &once}, {"call_once", callOnce, &flag}};
    pthread_barrier_init(&begun, nullptr, 3);
    for (Case &one : cases) {
        pthread_t first, second;
        pthread_create(&first, nullptr, runFirst, &one);
        pthread_create(&second, nullptr, runToo, &one);
        runToo(&one);
        pthread_join(first, nullptr);
        pthread_join(second, nullptr);
    }
    return 0;
}
