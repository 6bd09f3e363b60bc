// Four threads that call libc and each other's work, one of which ends by pthread_exit three calls deep; main leaves
// while the fourth still waits.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void *sorter(void *name) {
    if (name) pthread_setname_np(pthread_self(), name);
    for (int round = 0; round < 20; round++) {
        char *words[200];
        for (int i = 0; i < 200; i++) {
            words[i] = malloc(16);
            snprintf(words[i], 16, "%d", (i * 7919 + round) % 1000);
        }
        qsort(words, 200, sizeof *words, compare);
        for (int i = 0; i < 200; i++) free(words[i]);
    }
    return NULL;
}

static int leave(const void *a, const void *b) {
    (void)a, (void)b;
    pthread_exit(NULL);
}

static void *leaver(void *unused) {
    (void)unused;
    int numbers[2] = {2, 1};
    qsort(numbers, 2, sizeof *numbers, leave);
    return NULL;
}

static int ends[2];

static void *waiter(void *unused) {
    (void)unused;
    char byte;
    while (read(ends[0], &byte, 1) != 0) {}
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    if (pipe(ends) != 0) return 1;
    pthread_create(&threads[0], NULL, sorter, "sorter");
    pthread_create(&threads[1], NULL, sorter, NULL);
    pthread_create(&threads[2], NULL, leaver, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    // The agent notes who has ended when a new thread makes its first call: the waiter has, once the byte is gone.
    write(ends[1], "x", 1);
    pthread_create(&threads[3], NULL, waiter, NULL);
    for (int left = 1; left > 0;) ioctl(ends[0], FIONREAD, &left);
    puts("done");
    return 0;
}
