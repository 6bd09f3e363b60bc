// A program whose start-up is made of known pieces: constructors, a library's functions, start-up items, a lock, a file. It says that it
// is ready by its first output, and then waits to be ended, as a server does. What a planted regression changes is set by
// the compiler's -D.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tracer.h>
#include <unistd.h>

void work(int microseconds);
void spin(int microseconds);
#ifdef EXTRA_LIBRARY
void extra(void);
#endif

#ifndef WORK_CALLS
#define WORK_CALLS 4
#endif
#ifndef LOCK_MICROSECONDS
#define LOCK_MICROSECONDS 0
#endif
#ifndef LAZY_MICROSECONDS
#define LAZY_MICROSECONDS 100
#endif
#ifndef SETTINGS_MICROSECONDS
#define SETTINGS_MICROSECONDS 200
#endif
#ifndef BASE_MICROSECONDS
#define BASE_MICROSECONDS 0
#endif
#ifndef FILE_READS
#define FILE_READS 0
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

static void *holder(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    if (LOCK_MICROSECONDS) usleep(LOCK_MICROSECONDS);
    pthread_mutex_unlock(&lock);
    return unused;
}

TRACER_STARTUP_ITEM(1, settings) { spin(SETTINGS_MICROSECONDS); }
#ifndef WITHOUT_CACHE
TRACER_STARTUP_ITEM(1, cache, settings) { spin(100); }
#endif
#ifdef ITEM_MICROSECONDS
TRACER_STARTUP_ITEM(1, planted, settings) { spin(ITEM_MICROSECONDS); }
#endif
#ifdef POOL_ITEM_MICROSECONDS
TRACER_STARTUP_POOL_ITEM(1, planted_on_pool, settings) { spin(POOL_ITEM_MICROSECONDS); }
#endif

static void make_table(void) { spin(LAZY_MICROSECONDS); }

/// Two launches at once, two `milliseconds` later, and so on. The file counts them.
static void wait_as_it_pleases(const char *path, int milliseconds) {
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, "x", 1) != 1) exit(4);
    if (lseek(file, 0, SEEK_CUR) % 4 >= 2) usleep(milliseconds * 1000u);
    close(file);
}

static void read_settings(const char *path) {
    static char buffer[1 << 16];
    for (int i = 0; i < FILE_READS; i++) {
        int file = open(path, O_RDONLY);
        if (file < 0) exit(3);
        while (read(file, buffer, sizeof buffer) > 0) {}
        close(file);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "--fail")) return 7;
    if (argc > 1 && !strcmp(argv[1], "--never"))
        for (;;) pause();
    if (argc > 3 && !strcmp(argv[1], "--wild")) wait_as_it_pleases(argv[2], atoi(argv[3]));
    if (BASE_MICROSECONDS) spin(BASE_MICROSECONDS);
    static pthread_once_t table = PTHREAD_ONCE_INIT;
    pthread_once(&table, make_table);
    tracer_run_startup(1);
    for (int i = 0; i < WORK_CALLS; i++) work(200);
    pthread_t thread;
    pthread_barrier_init(&held, 0, 2);
    pthread_create(&thread, 0, holder, 0);
    pthread_barrier_wait(&held);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    read_settings(argv[0]);
#ifdef EXTRA_LIBRARY
    extra();
#endif
    if (write(1, "ready\n", 6) != 6) return 2;
    if (argc > 1 && !strcmp(argv[1], "--exit")) return 0;
    for (;;) pause();
}
