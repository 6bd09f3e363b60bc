// Constructors one after the other: what each has used of a CPU, by its own clock.
#include <stdio.h>
#include <time.h>

static long inside[64];

static long used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}
static void work(int n) {
    long begin = used();
    while (used() - begin < n % 4 * 5000) {}
    inside[n] = used() - begin;
}
#define ONE(n) \
    __attribute__((constructor)) static void row_##n(void) { work(0##n); }
#define EIGHT(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7)
EIGHT(0) EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4) EIGHT(5) EIGHT(6) EIGHT(7)

int main(void) {
    for (int n = 0; n < 64; n++) printf("row_%o%o %ld\n", n / 8, n % 8, inside[n]);
    return 0;
}
