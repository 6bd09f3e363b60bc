// A constructor that only computes, on a CPU that others want, too. What the scheduler says of it goes to standard output (proc(5),
// schedstat): how long it ran, and how long it could have run and did not.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned long ran, delayed;

static void account(unsigned long *on, unsigned long *off) {
    FILE *file = fopen("/proc/self/schedstat", "r");
    if (!file || fscanf(file, "%lu %lu", on, off) != 2) exit(1);
    fclose(file);
}

/// Sooner: it waits until the scheduler has moved it.
__attribute__((constructor(101))) static void move(void) {
    const char *cpu = getenv("ON_CPU");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu ? atoi(cpu) : 0, &one);
    if (sched_setaffinity(0, sizeof one, &one)) exit(1);
}

__attribute__((constructor)) static void compute(void) {
    unsigned long on, off;
    account(&on, &off);
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (volatile int n = 0; n < 1000000; n++) {}
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 60000000);
    account(&ran, &delayed);
    ran -= on, delayed -= off;
}

int main(void) {
    printf("%lu %lu\n", ran, delayed);
    return 0;
}
