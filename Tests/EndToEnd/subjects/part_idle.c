// Threads that wait for work, and threads that others wait for. Writes "TID FUNCTION idle|busy" for each way in which a thread waits.
#define _GNU_SOURCE
#include <pthread.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 3, TASKS = 6, ROUNDS = 4, MS = 1000000 };

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, held[ROUNDS];
static pthread_cond_t given = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int tasks, results, is_over, events[2];
static sem_t is_held;
static pid_t workers[WORKERS], reader, ticker, holder;

static void nap(long ns) {
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

/// Main waits for what it does.
static void *work(void *id) {
    *(pid_t *)id = gettid();
    pthread_mutex_lock(&queue);
    for (;;) {
        while (!tasks && !is_over) pthread_cond_wait(&given, &queue);
        if (!tasks) break;
        tasks--;
        pthread_mutex_unlock(&queue);
        usleep(20000);
        pthread_mutex_lock(&queue);
        results++;
        pthread_cond_signal(&done);
    }
    pthread_mutex_unlock(&queue);
    return NULL;
}

static void *read_events(void *unused) {
    reader = gettid();
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, events[0], &event);
    char byte = 0;
    while (byte != 'q') {
        if (epoll_wait(set, &event, 1, -1) != 1 || read(events[0], &byte, 1) != 1) exit(1);
    }
    return unused;
}

static void *tick(void *unused) {
    ticker = gettid();
    for (int n = 0; n < 10; n++) nap(10 * MS);
    return unused;
}

/// It sleeps with a lock that main wants, each time with another one.
static void *hold(void *unused) {
    holder = gettid();
    for (int n = 0; n < ROUNDS; n++) {
        pthread_mutex_lock(&held[n]);
        sem_post(&is_held);
        nap(100 * MS);
        pthread_mutex_unlock(&held[n]);
    }
    return unused;
}

int main(void) {
    if (pipe(events) || sem_init(&is_held, 0, 0)) return 1;
    for (int n = 0; n < ROUNDS; n++) pthread_mutex_init(&held[n], NULL);
    pthread_t pool[WORKERS], other[3];
    for (int n = 0; n < WORKERS; n++) pthread_create(&pool[n], NULL, work, &workers[n]);
    pthread_create(&other[0], NULL, read_events, NULL);
    pthread_create(&other[1], NULL, tick, NULL);
    pthread_detach(other[1]);
    for (int n = 0; n < ROUNDS; n++) { // it is not ready yet
        struct timeval time = {0, 20000};
        select(0, NULL, NULL, NULL, &time);
        if (write(events[1], "e", 1) != 1) return 1;
    }
    pthread_create(&other[2], NULL, hold, NULL);
    for (int n = 0; n < ROUNDS; n++) {
        sem_wait(&is_held);
        pthread_mutex_lock(&held[n]);
        pthread_mutex_unlock(&held[n]);
    }
    for (int n = 0; n < TASKS; n++) {
        pthread_mutex_lock(&queue);
        tasks++;
        pthread_cond_signal(&given);
        while (results <= n) pthread_cond_wait(&done, &queue);
        pthread_mutex_unlock(&queue);
    }
    for (int n = 0; n < WORKERS; n++) printf("%d pthread_cond_wait idle\n%d usleep busy\n", workers[n], workers[n]);
    printf("%d epoll_wait idle\n%d nanosleep idle\n%d nanosleep busy\n", reader, ticker, holder);
    pid_t main = getpid();
    printf("%d select busy\n%d pthread_mutex_lock busy\n%d pthread_cond_wait busy\n%d poll idle\n", main, main, main, main);
    fflush(stdout);
    for (int n = 0; n < ROUNDS; n++) poll(NULL, 0, 20);
    pthread_mutex_lock(&queue);
    is_over = 1;
    pthread_cond_broadcast(&given);
    pthread_mutex_unlock(&queue);
    if (write(events[1], "q", 1) != 1) return 1;
    for (int n = 0; n < WORKERS; n++) pthread_join(pool[n], NULL);
    pthread_join(other[0], NULL);
    pthread_join(other[2], NULL);
    return 0;
}
