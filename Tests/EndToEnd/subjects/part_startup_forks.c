// A server that forks and listens in its child. UNTIL_KILLED: the child runs on. PARENT_LISTENS: so does the parent when the child has ended.
// PARENT_ENDS: it ends when the child listens, and leaves a daemon. STUBBORN: SIGTERM does not end the child. STARTS_MORE: the parent
// answers SIGTERM with another child that runs on.
#include "part_startup.h"
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void serve(const char *before, const char *after) {
    int server = socket(AF_INET, SOCK_STREAM, 0);
    stamp(before);
    if (listen(server, 5)) abort();
    stamp(after);
}

static void start_more(int signal) {
    if (fork() == 0) {
        for (;;) pause();
    }
    _exit(128 + signal);
}

int main(void) {
    int ready[2];
    if (getenv("STARTS_MORE")) signal(SIGTERM, start_more);
    if (pipe(ready)) abort();
    pid_t child = fork();
    if (child == 0) {
        signal(SIGTERM, getenv("STUBBORN") ? SIG_IGN : SIG_DFL);
        stamp_at("child", getpid(), 0);
        serve("listen.before", "listen.after");
        if (write(ready[1], "r", 1) != 1) abort();
        if (*getenv("UNTIL_KILLED")) {
            for (;;) pause();
        }
        _exit(0);
    }
    char answer;
    if (*getenv("PARENT_ENDS")) return read(ready[0], &answer, 1) != 1;
    while (waitpid(child, NULL, 0) < 0) {
    }
    if (*getenv("PARENT_LISTENS")) serve("parent.before", "parent.after");
    return 0;
}
