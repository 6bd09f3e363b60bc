// Depth, include, exclude and start settings: what is filtered or excluded is missing entirely, what stays is exact.
// library: filtered -Wl,--allow-shlib-undefined
// library: also=part_also.c
// case: depth TRACER_MAXDEPTH=2 run
// case: exclude_function TRACER_EXCLUDE=filter_inner run
// case: exclude_glob TRACER_EXCLUDE=filter_* run
// case: exclude_module TRACER_EXCLUDE=libalso.so run
// case: include_function TRACER_INCLUDE=filter_outer run
// case: start_off TRACER_START=off run
// case: min_time TRACER_MINMS=2 run
#include "subject.h"
int filter_outer(int value);
int filter_inner(int value);
int filter_slow(int milliseconds);
int also_call(int value);
#ifdef LIB_filtered
EXPORT int filter_inner(int value) { return also_call(value) + 1; }
EXPORT int filter_outer(int value) { int r = filter_inner(value); OPAQUE(); return r + 1; }
EXPORT int filter_slow(int milliseconds) { // busy until the clock says so, without sleeping: sure to last
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < milliseconds * 1000000L);
    return filter_inner(milliseconds);
}
#else
static void *body(void *unused) {
    for (int i = 0; i < 20; i++) CHECK(filter_outer(i) == i + 3);
    CHECK(filter_slow(5) == 7);
    return unused;
}
int main(void) { // on a thread of its own, where depth begins with 1
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, body, NULL) && !pthread_join(thread, NULL));
    puts("filtered");
    return 0;
}
#endif
