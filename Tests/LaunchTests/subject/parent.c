// A program whose child does first what it does itself 100 ms later: ends, listens, or writes to standard output. It
// writes to a file how many nanoseconds passed between the beginning of its main and that call, which a launch that is
// timed up to the call therefore lasts at least.
//
//     parent exit|thread|listen|output FILE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void *leave(void *unused) {
    _exit(0);
    return unused;
}

static void act(const char *what) {
    if (!strcmp(what, "listen")) {
        if (listen(socket(AF_UNIX, SOCK_STREAM, 0), 1)) {} // EINVAL, as it has no address: the call is what counts
    } else if (!strcmp(what, "output")) {
        if (write(1, "ready\n", 6) != 6) _exit(3);
    } else if (!strcmp(what, "thread")) { // exit_group by a thread that is not the first
        pthread_t thread;
        pthread_create(&thread, 0, leave, 0);
        pthread_join(thread, 0);
    } else {
        _exit(0);
    }
}

int main(int argc, char **argv) {
    long long begin = now();
    if (argc < 3) return 2;
    pid_t child = fork();
    if (child == 0) {
        act(argv[1]);
        _exit(0);
    }
    if (waitpid(child, 0, 0) != child) return 4;
    struct timespec rest = {.tv_nsec = 100000000};
    nanosleep(&rest, 0);
    FILE *file = fopen(argv[2], "w");
    if (!file) return 5;
    fprintf(file, "%lld\n", now() - begin);
    fclose(file);
    act(argv[1]);
    for (;;) pause();
}
