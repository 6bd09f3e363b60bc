// An event loop with slow turns. Writes, for each turn, its number and when its callback began and ended (CLOCK_MONOTONIC), which lies within
// the turn; then what it knows of itself. The first word says how the loop ends, or what it does beside:
//   plain   it is left, and main returns        hang    it is killed in a turn       exit   a turn calls exit
//   busy    it waits with a time limit of 0     threads each of three threads has a loop
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 24, MS = 1000000, BUSY = 20000 };

static long clock_of(clockid_t id) {
    struct timespec time;
    clock_gettime(id, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}
static long now(void) { return clock_of(CLOCK_MONOTONIC); }

/// Until the thread has had so much CPU time, whatever else the machine does.
__attribute__((noinline)) void computes(long ns) {
    for (long until = clock_of(CLOCK_THREAD_CPUTIME_ID) + ns; clock_of(CLOCK_THREAD_CPUTIME_ID) < until;) {}
}
__attribute__((noinline)) void parses(long ns) {
    computes(ns);
    __asm__ volatile("");
}
static int answer[2];
/// Nobody answers: a wait in a callback, which is a part of the turn.
__attribute__((noinline)) void asks(int ms) {
    struct pollfd one = {answer[0], POLLIN, 0};
    if (poll(&one, 1, ms)) abort();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;
static void *holds(void *nothing) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&taken);
    computes(40 * MS);
    pthread_mutex_unlock(&lock);
    return nothing;
}
/// The thread that has the lock computes.
__attribute__((noinline)) void locks(void) {
    pthread_t thread;
    pthread_create(&thread, 0, holds, 0);
    pthread_barrier_wait(&taken);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
}

static const char *how;
__attribute__((noinline)) void handles(int turn) {
    switch (turn) {
    case 5: parses(30 * MS); break;
    case 9: asks(20); break;
    case 13: locks(); break;
    case 17: parses(80 * MS); break;
    case 21:
        if (!strcmp(how, "hang")) {
            parses(30 * MS);
            kill(getpid(), SIGKILL);
        }
        if (!strcmp(how, "exit")) {
            parses(30 * MS);
            exit(3);
        }
        break;
    default: break;
    }
}

__attribute__((noinline)) void loops(int turns, int isMain) {
    int event = eventfd(0, 0), set = epoll_create1(0);
    struct epoll_event one = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, event, &one);
    for (int turn = 0; turn < turns; turn++) {
        uint64_t count = 1;
        if (write(event, &count, sizeof count) != sizeof count || epoll_wait(set, &one, 1, -1) != 1) abort();
        long begin = now();
        if (read(event, &count, sizeof count) != sizeof count) abort();
        if (isMain)
            handles(turn);
        else if (turn == 4)
            parses(10 * MS);
        long end = now();
        if (isMain) {
            printf("turn %d %ld %ld\n", turn, begin, end);
            fflush(stdout);
        }
    }
    // The last turn: what comes after its wait.
    if (epoll_wait(set, &one, 1, 0)) abort();
}

__attribute__((noinline)) void polls(int times) {
    struct pollfd one = {answer[0], POLLIN, 0};
    for (int n = 0; n < times; n++) {
        if (poll(&one, 1, 0)) abort();
        if (n == times / 2) parses(30 * MS);
    }
}

static void *works(void *turns) {
    pthread_setname_np(pthread_self(), "works");
    loops(*(int *)turns, 0);
    return 0;
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "plain";
    if (pipe(answer)) return 1;
    pthread_barrier_init(&taken, 0, 2);
    if (!strcmp(how, "busy")) {
        polls(BUSY);
        printf("turns %d\n", BUSY);
        return 0;
    }
    if (!strcmp(how, "threads")) {
        int turns[3] = {8, 12, 16};
        pthread_t threads[3];
        for (int n = 0; n < 3; n++) pthread_create(&threads[n], 0, works, &turns[n]);
        for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
        return 0;
    }
    loops(TURNS, 1);
    return 0;
}
