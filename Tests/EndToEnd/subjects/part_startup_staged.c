// Start-up items on two threads, one of which waits for the other, and a stage that is run by an item.
#define _GNU_SOURCE
#include "part_startup.h"
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <tracer.h>

static sem_t logged;

/// Returns 1 if the main thread sleeps: it has nothing to do until "fonts" has ended.
static int main_sleeps(void) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) _exit(98);
    fclose(file);
    return strstr(line, ") S ") != NULL;
}

TRACER_STARTUP_ITEM(1, window, fonts, log) { stamp("window"); }
TRACER_STARTUP_ITEM(1, config) {
    stamp("config.begin");
    stamp("config.end");
}
TRACER_STARTUP_ITEM(1, log, config) {
    stamp("log");
    sem_post(&logged);
}
TRACER_STARTUP_POOL_ITEM(1, fonts, config) {
    while (sem_wait(&logged)) {}
    stamp("fonts.begin");
    while (!main_sleeps()) sched_yield();
    stamp("fonts.end");
}
TRACER_STARTUP_ITEM(1, outer, window) {
    stamp("outer.begin");
    tracer_run_startup(2);
    stamp("outer.end");
}
TRACER_STARTUP_ITEM(2, inner) {
    stamp("inner.begin");
    stamp("inner.end");
}
TRACER_STARTUP_ITEM(3, late) { stamp("late"); }

int main(void) {
    sem_init(&logged, 0, 0);
    tracer_run_startup(1);
    tracer_ready();
    tracer_run_startup(3);
    return 0;
}
