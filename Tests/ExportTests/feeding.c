// Reads from a pipe that its child writes to, argv[1] milliseconds after it has seen it wait, and then waits for the child, which ends so, too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int milliseconds;

static void compute(void) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
}

/// The parent is in this system call, off-CPU (proc(5), syscall).
static int isIn(long call) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)getppid());
    FILE *file = fopen(path, "r");
    if (!file) abort();
    int found = fgets(line, sizeof line, file) && strtol(line, NULL, 10) == call && line[0] != 'r';
    fclose(file);
    return found;
}

int main(int argc, char *argv[]) {
    int ends[2];
    char byte;
    if (argc < 2 || pipe(ends)) return 1;
    milliseconds = atoi(argv[1]);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        while (!isIn(SYS_read));
        compute();
        if (write(ends[1], "", 1) != 1) abort();
        while (!isIn(SYS_wait4));
        compute();
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) return 1;
    return waitpid(child, NULL, 0) != child;
}
