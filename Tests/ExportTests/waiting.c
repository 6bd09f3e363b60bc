// A thread waits for a lock, which main lets go of once it sees it wait, whatever the machine does meanwhile; and both compute.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t waiter;
static volatile unsigned long sink;

__attribute__((noinline)) static void compute(long times) {
    for (unsigned long n = 0; n < (unsigned long)times * 1000000; n++) sink = sink * 31 + n;
}

static void *take(void *unused) {
    waiter = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    compute(200);
    return unused;
}

/// In the lock's futex, off-CPU: state S of proc(5), and in no other system call than that one.
static int sleeps(void) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)waiter);
    FILE *file = fopen(path, "r");
    if (!file) abort();
    int found = fgets(line, sizeof line, file) && strtol(line, NULL, 10) == SYS_futex && line[0] != 'r';
    fclose(file);
    return found;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&lock);
    if (pthread_create(&thread, NULL, take, NULL)) return 1;
    while (!waiter || !sleeps()) compute(1);
    pthread_mutex_unlock(&lock);
    return pthread_join(thread, NULL);
}
