// What functions took by the program's own account, on a CPU that others may want, too. A line for each goes to standard output: its name,
// how long its calls took by the wall clock, how long by the clock of the thread's CPU time, and how often it was called. With TWICE in its
// environment two processes do the same.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RECORDED __attribute__((noinline, visibility("default")))

struct account {
    const char *name;
    long wall, cpu;
    int calls;
};

static long at(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void begin(struct account *account) {
    account->wall -= at(CLOCK_MONOTONIC);
    account->cpu -= at(CLOCK_THREAD_CPUTIME_ID);
    account->calls++;
}

static void end(struct account *account) {
    account->cpu += at(CLOCK_THREAD_CPUTIME_ID);
    account->wall += at(CLOCK_MONOTONIC);
}

/// For so long on a CPU, however long that takes.
static void burn(long nanoseconds) {
    long start = at(CLOCK_THREAD_CPUTIME_ID);
    while (at(CLOCK_THREAD_CPUTIME_ID) - start < nanoseconds) {
        for (volatile int n = 0; n < 20000; n++) {}
    }
}

static struct account computing = {"computes"}, sleeping = {"sleeps"}, doing_both = {"does_both"}, recursing = {"recurses"};

RECORDED void computes(void) {
    begin(&computing);
    burn(40000000);
    end(&computing);
}

RECORDED void sleeps(void) {
    begin(&sleeping);
    usleep(30000);
    end(&sleeping);
}

RECORDED void does_both(void) {
    begin(&doing_both);
    for (int n = 0; n < 4; n++) {
        burn(5000000);
        usleep(5000);
    }
    end(&doing_both);
}

RECORDED void recurses(int depth) {
    if (depth == 3) begin(&recursing);
    burn(4000000);
    usleep(3000);
    if (depth > 0) recurses(depth - 1);
    if (depth == 3) end(&recursing);
}

int main(void) {
    const char *cpu = getenv("ON_CPU");
    if (cpu) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(atoi(cpu), &one);
        if (sched_setaffinity(0, sizeof one, &one)) return 1;
    }
    pid_t child = getenv("TWICE") ? fork() : 0;
    if (child < 0) return 1;
    for (int n = 0; n < 2; n++) {
        computes();
        sleeps();
        does_both();
        recurses(3);
    }
    struct account *all[] = {&computing, &sleeping, &doing_both, &recursing};
    if (child && waitpid(child, NULL, 0) != child) return 1;
    for (int n = 0; n < 4; n++) printf("%s %ld %ld %d\n", all[n]->name, all[n]->wall, all[n]->cpu, all[n]->calls);
    return 0;
}
