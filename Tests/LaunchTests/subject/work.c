// The library that the program calls, with a constructor of its own.
#include <time.h>

#ifndef CONSTRUCTOR_MICROSECONDS
#define CONSTRUCTOR_MICROSECONDS 500
#endif

/// CPU time, not wall time: a neighbour on the machine does not make it do less. The clock is read some times in ten
/// microseconds: were its calls most of what is recorded, what one of them seems to cost would decide what is left.
void spin(int microseconds) {
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        for (volatile int i = 0; i < 2000; i++) {}
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < microseconds);
}

void work(int microseconds) { spin(microseconds); }

__attribute__((constructor)) static void work_init(void) { spin(CONSTRUCTOR_MICROSECONDS); }
