// The main thread opens a library while another thread opens one whose constructor waits for just that. What the program knows goes to
// standard output: the main thread, the other one, and how long the main thread's dlopen took.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int begun, other;
__attribute__((visibility("default"))) void constructorBegins(void) { begun = 1; }

static void *openSlowly(void *path) {
    other = (int)syscall(SYS_gettid);
    return dlopen(path, RTLD_NOW);
}

int main(int argc, char **argv) {
    pthread_t thread;
    struct timespec before, after;
    if (argc < 3 || pthread_create(&thread, 0, openSlowly, argv[1])) return 1;
    while (!begun);
    clock_gettime(CLOCK_MONOTONIC, &before);
    void *library = dlopen(argv[2], RTLD_NOW);
    clock_gettime(CLOCK_MONOTONIC, &after);
    void *slow;
    pthread_join(thread, &slow);
    printf("%d %d %ld\n", (int)syscall(SYS_gettid), other,
           (after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec);
    return !library || !slow;
}
