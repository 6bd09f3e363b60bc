// tree: none
// A process that is watched while it runs: what it calls it counts itself. It answers on its standard output what is asked on its standard
// input: a word and a number a line.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

long before(long), after(long), deep(long), calls_back(long (*)(long), long);

enum { THREADS = 3 };
static _Atomic long handled, begun;
static volatile long sum;
static jmp_buf left;

static void handler(int signal) {
    (void)signal;
    after(1);
    handled++;
}
static long jumps(long n) { longjmp(left, (int)n); }
static long once(long n) { return before(n); }

static void *works(void *count) {
    for (long n = 0; n < (long)count; n++) {
        sum += before(n);
        if (n % 16 == 0) sum += calls_back(once, n);
    }
    return NULL;
}
static void *waits(void *nothing) {
    begun++;
    poll(NULL, 0, -1);
    return nothing;
}

/// Somebody who can be led by `tracer attach`.
static void *ticks(void *nothing) {
    while (!usleep(2000));
    return nothing;
}

int main(int argc, char **argv) {
    char word[16];
    long count;
    pthread_t ticking;
    if (argc > 1 && !strcmp(argv[1], "tick")) pthread_create(&ticking, NULL, ticks, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (scanf("%15s %ld", word, &count) == 2) {
        if (!strcmp(word, "work")) {
            pthread_t threads[THREADS];
            for (int n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, works, (void *)count);
            works((void *)count);
            for (int n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
            long callbacks = (THREADS + 1) * ((count + 15) / 16);
            printf("before %ld calls_back %ld\n", (THREADS + 1) * count + callbacks, callbacks);
        } else if (!strcmp(word, "signals")) {
            signal(SIGPROF, handler);
            struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
            setitimer(ITIMER_PROF, &often, NULL);
            long n = 0;
            // A million calls a second, and not thirty: on a busy machine the one that watches would be overtaken, and say so.
            for (; handled < count; n++) {
                sum += before(n);
                for (volatile int own = 0; own < 500; own++) {}
            }
            setitimer(ITIMER_PROF, &never, NULL);
            printf("before %ld after %ld\n", n, (long)handled);
        } else if (!strcmp(word, "jump")) {
            for (volatile long n = 1; n <= count; n++)
                if (!setjmp(left)) calls_back(jumps, 1);
            printf("calls_back %ld\n", count);
        } else if (!strcmp(word, "deep")) {
            sum += deep(count);
            printf("deep %ld\n", count + 1);
        } else if (!strcmp(word, "wait")) {
            pthread_t thread;
            pthread_create(&thread, NULL, waits, NULL);
            while (!begun) usleep(1000);
            printf("waiting\n");
        } else {
            exit((int)count);
        }
    }
}
