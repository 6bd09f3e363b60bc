// A library with two constructors, one that sleeps and one that computes, and one at exit.
#include "part_startup.h"
#include <errno.h>

static int work;

__attribute__((constructor(101))) static void slow_init(void) {
    stamp("slow.begin");
    struct timespec rest = {0, 5000000};
    while (nanosleep(&rest, &rest) && errno == EINTR);
    stamp("slow.end");
}

__attribute__((constructor(102))) static void spin_init(void) {
    stamp("spin.begin");
    long long end = stamp_clock(CLOCK_THREAD_CPUTIME_ID) + 5000000;
    while (stamp_clock(CLOCK_THREAD_CPUTIME_ID) < end) work++;
    stamp("spin.end");
}

__attribute__((destructor)) static void slow_fini(void) { stamp("fini"); }

int slow_work(void) { return work; }
