// A program that starts, in as many ways as it has arguments: serve, print, plugin, hang, die, early, ready.
#define _GNU_SOURCE
#include "part_startup.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include "tracer.h"

extern int slow_work(void), lazy_value(void);
static const char *mode = "";

__attribute__((constructor)) static void own_init(int count, char **arguments) {
    mode = count > 1 ? arguments[1] : "";
    stamp("own");
    if (!strcmp(mode, "early")) exit(3);
    if (!strcmp(mode, "die")) raise(SIGSEGV);
}

__attribute__((noinline)) static int serve(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address)) return 1;
    // Not between the two readings but in them: before and after the call.
    long long before = stamp_clock(CLOCK_MONOTONIC);
    if (listen(listener, 1)) return 1;
    long long after = stamp_clock(CLOCK_MONOTONIC);
    stamp_at("listen.before", before, 0);
    stamp_at("listen.after", after, 0);
    return 0;
}

int main(int count, char **arguments) {
    stamp("main");
    if (slow_work() < 0 || lazy_value() < 0) return 1;
    if (!strcmp(mode, "serve")) {
        if (serve()) return 1;
        if (count > 2 && !strcmp(arguments[2], "on")) {
            if (count > 3) signal(SIGTERM, SIG_IGN);
            for (;;) pause();
        }
        puts("served");
        return 5;
    }
    if (!strcmp(mode, "plugin")) {
        if (!dlopen("libouter.so", RTLD_NOW)) return 1;
        return 0;
    }
    if (!strcmp(mode, "kill")) raise(SIGKILL);
    if (!strcmp(mode, "ready")) {
        puts("first words");
        fflush(stdout);
        tracer_mark("halfway");
        stamp("ready.before");
        tracer_ready();
        stamp("ready.after");
        return 0;
    }
    if (!strcmp(mode, "print")) puts("words");
    return 0;
}
