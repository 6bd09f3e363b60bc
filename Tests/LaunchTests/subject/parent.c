// A program whose child does first what it does itself later: ends, listens, or writes to standard output. In between it sleeps SLEEP
// nanoseconds, which a launch that is timed up to its own call therefore lasts at least, however long it waits for a CPU (nanosleep(2)).
//
//     parent exit|thread|listen|output
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
    if (argc < 2) return 2;
    pid_t child = fork();
    if (child == 0) {
        act(argv[1]);
        _exit(0);
    }
    if (waitpid(child, 0, 0) != child) return 4;
    struct timespec rest = {.tv_nsec = SLEEP};
    nanosleep(&rest, 0);
    act(argv[1]);
    for (;;) pause();
}
