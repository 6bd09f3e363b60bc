// Two threads wait for each other's mutex for ever; main sleeps for a while and, when its input ends, lets a signal end the process.
// The calls that wait lasted longer than main's sleep, which the trace has as well (ends.py).
// library: dead -pthread
// link: -pthread
// status: signal 15
// modes: functions counts call_sites
#include "subject.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
EXPORT void dead_save(void);
EXPORT void dead_click(void);
EXPORT int dead_locked(void);
EXPORT void dead_sleep(long nanoseconds);
#ifdef LIB_dead
static pthread_mutex_t document = PTHREAD_MUTEX_INITIALIZER, window = PTHREAD_MUTEX_INITIALIZER;
static int locked;
static void lock(pthread_mutex_t *first, pthread_mutex_t *second) {
    pthread_mutex_lock(first);
    __atomic_add_fetch(&locked, 1, __ATOMIC_SEQ_CST);
    while (dead_locked() < 2) sched_yield();
    pthread_mutex_lock(second);
}
void dead_save(void) { lock(&document, &window); }
void dead_click(void) { lock(&window, &document); }
int dead_locked(void) { return __atomic_load_n(&locked, __ATOMIC_SEQ_CST); }
void dead_sleep(long nanoseconds) {
    struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}
#else
static void *save(void *unused) { dead_save(); return unused; }
static void *click(void *unused) { dead_click(); return unused; }
int main(void) {
    pthread_t threads[2];
    CHECK(!pthread_create(&threads[0], NULL, save, NULL) && !pthread_create(&threads[1], NULL, click, NULL));
    while (dead_locked() < 2) sched_yield();
    dead_sleep(300000000);
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
    kill(getpid(), SIGTERM);
    for (;;) pause();
}
#endif
