// Spends its time in two functions, of which one is inlined into its caller and the other calls the program back from a library. Prints
// the CPU time that each took.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t used(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static volatile unsigned long sink;
static inline __attribute__((always_inline)) void inlined(long rounds) {
    unsigned long x = sink;
    for (long n = 0; n < rounds; n++) x = x * 6364136223846793005u + 1;
    sink = x;
}
__attribute__((noinline)) static void thirty(void) { inlined(3000000); }

/// libc calls it: within a traced call.
static int compare(const void *one, const void *other) {
    unsigned long x = sink;
    for (int n = 0; n < 350000; n++) x = x * 2862933555777941757u + 3;
    sink = x;
    return (*(const int *)one > *(const int *)other) - (*(const int *)one < *(const int *)other);
}
__attribute__((noinline)) static void seventy(void) {
    int some[8] = {3, 1, 2, 5, 4, 8, 7, 6};
    qsort(some, 8, sizeof *some, compare);
}

int main(void) {
    uint64_t first = 0, second = 0;
    for (int round = 0; round < 60; round++) {
        uint64_t begin = used();
        thirty();
        uint64_t middle = used();
        seventy();
        first += middle - begin, second += used() - middle;
    }
    printf("thirty %lu seventy %lu\n", (unsigned long)first, (unsigned long)second);
    return 0;
}
