// Two threads that compete for one CPU, and one on another. Writes for each its thread id and the kernel's count of its voluntary and
// involuntary context switches (getrusage(2)).
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct competitor {
    pid_t tid;
    struct rusage usage;
};

static pthread_barrier_t begin;

static long cpu_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *compete(void *argument) {
    struct competitor *me = argument;
    me->tid = gettid();
    pthread_barrier_wait(&begin);
    for (int round = 1; round <= 4; round++) {
        while (cpu_time() < round * 20000000L) {}
        struct timespec time = {0, 1000000};
        nanosleep(&time, NULL);
    }
    getrusage(RUSAGE_THREAD, &me->usage);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4 || pthread_barrier_init(&begin, NULL, 3)) return 1;
    struct competitor all[3];
    pthread_t threads[3];
    for (int n = 0; n < 3; n++) {
        cpu_set_t cpu;
        CPU_ZERO(&cpu);
        CPU_SET(atoi(argv[n + 1]), &cpu);
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) || pthread_attr_setaffinity_np(&attributes, sizeof cpu, &cpu)) return 1;
        if (pthread_create(&threads[n], &attributes, compete, &all[n])) return 1;
    }
    for (int n = 0; n < 3; n++) pthread_join(threads[n], NULL);
    for (int n = 0; n < 3; n++) printf("%d %ld %ld\n", all[n].tid, all[n].usage.ru_nvcsw, all[n].usage.ru_nivcsw);
    return 0;
}
