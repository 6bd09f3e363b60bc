// Touches the last page of a file of which all is being read already: no major fault. A line for each such touch that took 20 ms or more:
// nanoseconds, and when it began on CLOCK_MONOTONIC.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 256 << 20, STEP = 1 << 20, ROUNDS = 4 };

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
static long majorFaults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_majflt;
}

int main(void) {
    int file = open("read", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char *bytes = malloc(STEP);
    for (int n = 0; n < BYTES / STEP; n++) {
        memset(bytes, n + 1, STEP);
        if (write(file, bytes, STEP) != STEP) return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) return 1;
        volatile char *map = mmap(0, BYTES, PROT_READ, MAP_SHARED, file, 0);
        if (map == MAP_FAILED) return 1;
        // The kernel reads about as much by each call (mm/readahead.c, force_page_cache_ra).
        for (int at = 0; at < BYTES; at += STEP) madvise((char *)map + at, STEP, MADV_WILLNEED);
        long before = majorFaults();
        uint64_t begin = now();
        (void)map[BYTES - 1];
        uint64_t end = now();
        if (end - begin >= 20000000 && majorFaults() == before) printf("%lu %lu\n", (unsigned long)(end - begin), (unsigned long)begin);
        munmap((void *)map, BYTES);
    }
    unlink("read");
    return 0;
}
