// Waits for GLib's locks, which are futexes, one after the other. A line for each: case, thread that waited, nanoseconds, the object, the
// thread that let it go on.
#define _GNU_SOURCE
#include <glib.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static guint64 now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (guint64)time.tv_sec * 1000000000 + (guint64)time.tv_nsec;
}
static int tid(void) { return (int)syscall(SYS_gettid); }

static GMutex mutex;
static GCond condition;
static GAsyncQueue *queue;
static gsize initialized;
static int isDone, other;
static atomic_int begun;

static void work(void) {
    other = tid();
    atomic_store(&begun, 1);
    for (guint64 begin = now(); now() - begin < 30000000;);
}
static gpointer hold(gpointer nothing) {
    g_mutex_lock(&mutex);
    work();
    g_mutex_unlock(&mutex);
    return nothing;
}
static void lock(void) {
    g_mutex_lock(&mutex);
    g_mutex_unlock(&mutex);
}
static gpointer signalLater(gpointer nothing) {
    work();
    g_mutex_lock(&mutex);
    isDone = 1;
    g_cond_signal(&condition);
    g_mutex_unlock(&mutex);
    return nothing;
}
static void await(void) {
    g_mutex_lock(&mutex);
    while (!isDone) g_cond_wait(&condition, &mutex);
    g_mutex_unlock(&mutex);
}
static gpointer push(gpointer nothing) {
    work();
    g_async_queue_push(queue, &mutex);
    return nothing;
}
static void pop(void) { g_async_queue_pop(queue); }
static gpointer initialize(gpointer nothing) {
    if (g_once_init_enter(&initialized)) {
        work();
        g_once_init_leave(&initialized, 1);
    }
    return nothing;
}
static void use(void) { initialize(0); }

int main(void) {
    struct {
        const char *name;
        GThreadFunc other;
        void (*waits)(void);
        void *object;
    } cases[] = {{"mutex", hold, lock, &mutex}, {"condition", signalLater, await, 0}, {"queue", push, pop, 0}, {"once", initialize, use, &initialized}};
    queue = g_async_queue_new();
    for (unsigned n = 0; n < G_N_ELEMENTS(cases); n++) {
        GThread *thread = g_thread_new(cases[n].name, cases[n].other, 0);
        while (!atomic_exchange(&begun, 0));
        guint64 begin = now();
        cases[n].waits();
        printf("%s %d %lu %p %d\n", cases[n].name, tid(), (unsigned long)(now() - begin), cases[n].object, other);
        g_thread_join(thread);
    }
    return 0;
}
