/* Functions by pointers and tables, threads, a forked child, one that is called very often and is short. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int compare_up(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int compare_down(const void *a, const void *b) { return -compare_up(a, b); }
static int compare_none(const void *a, const void *b) { return a == b; }

static int (*const order[])(const void *, const void *) = {compare_up, compare_down, compare_none};

static volatile int sink;
__attribute__((noinline)) static void tiny(int value) { sink = value; }
__attribute__((noinline)) static int leaf(int value) { return value ^ 5; }
__attribute__((noinline)) static int middle(int value) { return leaf(value) + 1; }
int reserve(int value) { return middle(value); }

static void *run(void *argument) {
    int *numbers = argument;
    qsort(numbers, 16, sizeof *numbers, order[numbers[0] % 2]);
    return NULL;
}

static void in_the_child(void) { tiny(1); }

int main(int argc, char **argv) {
    int numbers[2][16];
    pthread_t threads[2];
    for (int t = 0; t < 2; t++) {
        for (int n = 0; n < 16; n++) numbers[t][n] = (n * 7 + t) % 16 + (argc > 1 ? 0 : 2);
        pthread_create(&threads[t], NULL, run, numbers[t]);
    }
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    for (int n = 0; n < (argc > 1 && strcmp(argv[1], "often") == 0 ? 400000 : 40); n++) tiny(n);
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        fflush(stdout);
        if (fork() == 0) {
            in_the_child();
            exit(0); /* gcov's counters are written then */
        }
        wait(NULL);
    }
    if (argc > 7) sink = reserve(argc);
    printf("%d %d\n", numbers[0][0], numbers[1][15]);
    return 0;
}
