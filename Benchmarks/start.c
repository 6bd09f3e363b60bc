// start COUNT NAME=VALUE… -- PROGRAM ARGS…: runs PROGRAM alternately as it is and with the variables added, COUNT times
// each, output discarded, and prints the median wall time of both in nanoseconds, as one line of JSON.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double run(char **command, char **environment) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status;
    double begin = now();
    if (posix_spawnp(&pid, command[0], &actions, 0, command, environment)) exit(127);
    waitpid(pid, &status, 0);
    double elapsed = now() - begin;
    posix_spawn_file_actions_destroy(&actions);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) exit(126);
    return elapsed;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    int count = argc > 3 ? atoi(argv[1]) : 0, separator = 2;
    while (separator < argc && strcmp(argv[separator], "--")) separator++;
    if (count < 1 || separator + 1 >= argc) return fprintf(stderr, "usage: start COUNT NAME=VALUE… -- PROGRAM ARGS…\n"), 2;
    int variables = 0;
    while (environ[variables]) variables++;
    char **with = calloc(variables + separator, sizeof *with);
    double *bare = calloc(count, sizeof *bare), *traced = calloc(count, sizeof *traced);
    if (!with || !bare || !traced) return 1;
    memcpy(with, environ, variables * sizeof *with);
    memcpy(with + variables, argv + 2, (separator - 2) * sizeof *with);
    run(argv + separator + 1, environ); // warm: page cache
    run(argv + separator + 1, with);
    for (int n = 0; n < count; n++) {
        bare[n] = run(argv + separator + 1, environ);
        traced[n] = run(argv + separator + 1, with);
    }
    qsort(bare, count, sizeof *bare, by_size);
    qsort(traced, count, sizeof *traced, by_size);
    printf("{\"bare\": %.0f, \"traced\": %.0f}\n", bare[count / 2], traced[count / 2]);
    return 0;
}
