// Spends its time in short recorded calls, in long system calls, and in code that is not recorded. Prints the CPU time that the
// system calls took, and all of it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static char from[256], to[256], page[1 << 20];
static volatile size_t length = 16;
static volatile unsigned long sink;

static uint64_t used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

APART void copy(int n) {
    memcpy(to + (n & 64), from, length);
    __asm__ volatile("");
}
APART void work(int count) {
    for (int n = 0; n < count; n++) copy(n);
}
APART void spin(int count) {
    unsigned long x = sink;
    for (int n = 0; n < count; n++) x = x * 6364136223846793005u + 1;
    sink = x;
}
/// The kernel fills pages with zeros.
APART void pull(int file, int count) {
    for (int n = 0; n < count; n++)
        if (read(file, page, sizeof page) != sizeof page) abort();
}

int main(int count, char *arguments[]) {
    uint64_t inside = 0, begin = used();
    if (count > 1 && !strcmp(arguments[1], "copies")) work(20000000);
    if (count > 1 && !strcmp(arguments[1], "reads")) {
        int zero = open("/dev/zero", O_RDONLY);
        for (int round = 0; round < 40; round++) {
            uint64_t before = used();
            pull(zero, 150);
            inside += used() - before;
            spin(5000000);
        }
    }
    printf("%lu %lu\n", (unsigned long)inside, (unsigned long)(used() - begin));
    return 0;
}
