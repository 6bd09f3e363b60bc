// A start of registered pieces: docs/guide/startup-items.md.
#include <time.h>
#include <tracer.h>

static void work(int milliseconds) { // uses the CPU for so long
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
}

TRACER_STARTUP_ITEM(1, window, fonts, database) { work(5); }
TRACER_STARTUP_ITEM(1, config) { work(2); }
TRACER_STARTUP_ITEM(1, database, config) { work(8); }
TRACER_STARTUP_POOL_ITEM(1, fonts, config) { work(30); }
TRACER_STARTUP_ITEM(2, updates) { work(20); }

int main(void) {
    tracer_run_startup(1);
    tracer_ready();
    tracer_run_startup(2);
    return 0;
}
