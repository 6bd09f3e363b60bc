// Threads end by a return, by pthread_exit and by being cancelled while they wait, and the process goes on for a while: the calls that they
// leave ended with them (ends.py compares them with main's sleeps).
// library: ends -pthread
// link: -pthread
// modes: functions counts call_sites
#include "subject.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
EXPORT void ends_sleep(long nanoseconds);
EXPORT void ends_pause(void);
EXPORT void ends_exit(void);
EXPORT void ends_wait(sem_t *begun);
#ifdef LIB_ends
static void sleep_for(long nanoseconds) {
    struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}
void ends_sleep(long nanoseconds) { sleep_for(nanoseconds); }
void ends_pause(void) { sleep_for(10000000); }
void ends_exit(void) {
    ends_pause();
    pthread_exit(NULL);
}
void ends_wait(sem_t *begun) {
    sem_post(begun);
    for (;;) pause();
}
#else
static sem_t begun;
static void *returning(void *unused) { ends_pause(); return unused; }
static void *exiting(void *unused) { ends_exit(); return unused; }
static void *waiting(void *unused) { ends_wait(&begun); return unused; }
int main(void) {
    pthread_t thread;
    CHECK(!sem_init(&begun, 0, 0));
    CHECK(!pthread_create(&thread, NULL, returning, NULL) && !pthread_join(thread, NULL));
    CHECK(!pthread_create(&thread, NULL, exiting, NULL) && !pthread_join(thread, NULL));
    ends_sleep(300000000);
    CHECK(!pthread_create(&thread, NULL, waiting, NULL) && !sem_wait(&begun));
    ends_sleep(300000000);
    CHECK(!pthread_cancel(thread) && !pthread_join(thread, NULL));
    ends_sleep(300000000);
    puts("all have ended");
    return 0;
}
#endif
