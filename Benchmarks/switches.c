// What it costs a program that the kernel reports when its threads run: computing, a pipe's round trip between two threads, and threads that
// begin and end. Prints the nanoseconds of each, the median of slices.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLICES = 21 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static volatile unsigned long sink;
static void compute(void) {
    unsigned long x = sink;
    for (int n = 0; n < 1000000; n++) x = x * 6364136223846793005u + 1;
    sink = x;
}

static int there[2], back[2];
static void *answer(void *nothing) {
    for (char byte; read(there[0], &byte, 1) == 1;)
        if (write(back[1], &byte, 1) != 1) break;
    return nothing;
}
static void pass(void) {
    char byte = 0;
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(1);
}

static void *nothing(void *argument) { return argument; }
static void begin_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0)) exit(1);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: switches compute|pipe|thread TIMES\n"), 2;
    void (*work)(void) = !strcmp(argv[1], "compute") ? compute : !strcmp(argv[1], "pipe") ? pass : begin_thread;
    long times = strtol(argv[2], 0, 10) / SLICES;
    pthread_t other;
    if (work == pass && (pipe(there) || pipe(back) || pthread_create(&other, 0, answer, 0))) return 1;
    double slices[SLICES];
    for (int slice = 0; slice < SLICES; slice++) {
        double begin = now();
        for (long n = 0; n < times; n++) work();
        slices[slice] = (now() - begin) / times;
    }
    qsort(slices, SLICES, sizeof *slices, by_size);
    printf("{\"ns\": %.1f}\n", slices[SLICES / 2]);
    if (work == pass) close(there[1]), pthread_join(other, 0);
    return 0;
}
