// caller WHAT CALLS [THREADS]: makes CALLS calls in each thread and prints what one cost, as one line of JSON.
//   leaf    bench_leaf          from main's loop, depth 1
//   parent  bench_parent        which calls bench_leaf: CALLS pairs
//   deep    bench_leaf          from inside bench_repeat, depth 2
//   own     own_leaf            of this program itself, depth 1
//   own-deep own_leaf           from inside own_repeat, depth 2
//   own-short own_short         of four bytes without padding, which a plan records by its call sites (aarch64: as own_leaf)
//   object  dispatch_semaphore_signal, as leaf: recorded with its object
//   four    bench_four, of four integers, as leaf
//   literal, heap  bench_text, of 20 bytes of this program, or of the heap
//   elsewhere bench_leaf      on a stack of its own (makecontext)
//   memory  bench_leaf, then the resident bytes of this process but for mapped *.trace files
// Calls are made in slices and the median slice counts, so that a slice in which the CPU was taken away does not.
// The cost of two clock reads is measured in the same process and in the same way, after the calls.
#define _GNU_SOURCE
#include "library.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#if defined __x86_64__
#include <x86intrin.h>
static inline uint64_t read_clock(void) { return __rdtsc(); }
#elif defined __aarch64__
static inline uint64_t read_clock(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#endif

static const char *what;
static unsigned long calls;
static volatile unsigned long sink;
static char *heap;
static pthread_barrier_t start_line;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static unsigned long __attribute__((noinline)) own_leaf(unsigned long x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}
static unsigned long __attribute__((noinline)) own_repeat(unsigned long count) {
    unsigned long x = 0;
    for (unsigned long n = 0; n < count; n++) x = own_leaf(x);
    return x;
}

unsigned long own_short(unsigned long x);
#if defined(__x86_64__)
#define CROWD(name) ".type " name ", @function\n" name ":\n.rept 60\n lea 1(%rax), %eax\n.endr\n ret\n.size " name ", . - " name "\n"
__asm__(".text\n" CROWD(
    "before_short") ".type own_short, @function\nown_short:\n mov %rdi, %rax\n ret\n.size own_short, . - own_short\n" CROWD("after_short"));
#else
unsigned long __attribute__((noinline)) own_short(unsigned long x) { return x; }
#endif

static void make_calls(unsigned long count) {
    unsigned long x = 0;
    if (!strcmp(what, "parent"))
        for (unsigned long n = 0; n < count; n++) x = bench_parent(x);
    else if (!strcmp(what, "deep")) x = bench_repeat(count);
    else if (!strcmp(what, "own-deep")) x = own_repeat(count);
    else if (!strcmp(what, "four"))
        for (unsigned long n = 0; n < count; n++) x = (unsigned long)bench_four((int)x, 2, 3, (int)n);
    else if (!strcmp(what, "object"))
        for (unsigned long n = 0; n < count; n++) x = dispatch_semaphore_signal(x);
    else if (!strcmp(what, "literal") || !strcmp(what, "heap")) {
        const char *text = what[0] == 'h' ? heap : "twenty bytes of text";
        for (unsigned long n = 0; n < count; n++) bench_text(text);
    } else if (!strcmp(what, "own-short"))
        for (unsigned long n = 0; n < count; n++) x = own_short(x);
    else if (!strcmp(what, "own"))
        for (unsigned long n = 0; n < count; n++) x = own_leaf(x);
    else
        for (unsigned long n = 0; n < count; n++) x = bench_leaf(x);
    sink = x;
}

enum { SLICES = 21 };
struct span {
    double begin, end, slices[SLICES];
};

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values) {
    qsort(values, SLICES, sizeof *values, by_size);
    return values[SLICES / 2];
}

static void *run(void *result) {
    struct span *span = result;
    make_calls(1000); // the first call of a thread binds the slot and sets the thread up
    pthread_barrier_wait(&start_line);
    span->begin = now();
    double last = span->begin;
    for (int slice = 0; slice < SLICES; slice++) {
        make_calls(calls / SLICES);
        span->end = now();
        span->slices[slice] = (span->end - last) / (calls / SLICES);
        last = span->end;
    }
    return 0;
}

static ucontext_t here, there;
static struct span *elsewhere;
static void begin_elsewhere(void) { run(elsewhere); }
static void run_elsewhere(struct span *span) {
    static char stack[1 << 18];
    elsewhere = span;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, begin_elsewhere, 0);
    swapcontext(&here, &there);
}

static double two_clock_reads(void) {
    double slices[SLICES];
    for (int slice = 0; slice < SLICES; slice++) {
        uint64_t sum = 0;
        double begin = now();
        for (int n = 0; n < 100000; n++) {
            uint64_t first = read_clock();
            sum += read_clock() - first;
        }
        slices[slice] = (now() - begin) / 100000;
        sink += sum;
    }
    return median(slices);
}

static long resident_bytes(void) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    if (!maps) return -1;
    char line[8192];
    long total = 0, kilobytes;
    int counts = 0;
    while (fgets(line, sizeof line, maps)) {
        size_t length = strlen(line);
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2) counts = length < 8 || strcmp(line + length - 7, ".trace\n");
        else if (counts && sscanf(line, "Rss: %ld kB", &kilobytes) == 1) total += kilobytes * 1024;
    }
    fclose(maps);
    return total;
}

int main(int argc, char **argv) {
    heap = strdup("twenty bytes of text");
    if (argc < 3) return fprintf(stderr, "usage: caller leaf|parent|deep|own|own-deep|object|elsewhere|memory CALLS [THREADS]\n"), 2;
    what = argv[1];
    calls = strtoul(argv[2], 0, 10);
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    if (threads < 1 || threads > 64 || calls < SLICES) return 2;
    pthread_barrier_init(&start_line, 0, threads);
    pthread_t ids[64];
    struct span spans[64];
    for (int n = 1; n < threads; n++)
        if (pthread_create(&ids[n], 0, run, &spans[n])) return perror("pthread_create"), 1;
    if (strcmp(what, "elsewhere")) run(&spans[0]);
    else run_elsewhere(&spans[0]);
    struct span all = spans[0];
    for (int n = 1; n < threads; n++) {
        pthread_join(ids[n], 0);
        if (spans[n].begin < all.begin) all.begin = spans[n].begin;
        if (spans[n].end > all.end) all.end = spans[n].end;
    }
    double elapsed = all.end - all.begin;
    long resident = strcmp(what, "memory") ? 0 : resident_bytes();
    printf("{\"ns\": %.3f, \"clocks\": %.3f, \"per_second\": %.0f, \"resident\": %ld}\n", median(spans[0].slices), two_clock_reads(),
           threads * (calls / SLICES * SLICES) / elapsed * 1e9, resident);
    return 0;
}
