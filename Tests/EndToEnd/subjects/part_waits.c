// Waits of each kind, one after the other, each measured by the thread that waits; what it found goes to standard output, a line for each:
// case, thread that waited, nanoseconds, the object, the thread that it waited for.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
static int tid(void) { return (int)syscall(SYS_gettid); }

static void workFor(uint64_t length) {
    for (uint64_t begin = now(); now() - begin < length;);
}
/// As long as a wait is to take. It computes: a wait for a thread that sleeps would be a chain.
static void work(void) { workFor(30000000); }
/// The recorder looks for the peer, or who goes before whom, when a thread has waited for long.
static void workLong(void) { workFor(200000000); }

static pthread_mutex_t said = PTHREAD_MUTEX_INITIALIZER;
static void say(const char *name, uint64_t begin, const void *object, int other) {
    uint64_t end = now();
    char line[200];
    int count = snprintf(line, sizeof line, "%s %d %lu %p %d\n", name, tid(), (unsigned long)(end - begin), object, other);
    if (write(1, line, (size_t)count) != count) abort();
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER, third = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t begun;
static sem_t posted;
static int ends[2], other, last, isSignalled;

static void *hold(void *mutex) {
    other = tid();
    pthread_mutex_lock(mutex);
    pthread_barrier_wait(&begun);
    work();
    pthread_mutex_unlock(mutex);
    return 0;
}
static void *holdTheLast(void *nothing) {
    last = tid();
    pthread_mutex_lock(&third);
    pthread_barrier_wait(&begun);
    work();
    pthread_mutex_unlock(&third);
    return nothing;
}
static void *holdAndWait(void *nothing) {
    other = tid();
    pthread_mutex_lock(&second);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&third);
    pthread_mutex_unlock(&third);
    pthread_mutex_unlock(&second);
    return nothing;
}
static void *signalLater(void *nothing) {
    other = tid();
    pthread_barrier_wait(&begun);
    work();
    pthread_mutex_lock(&said);
    isSignalled = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&said);
    return nothing;
}
static void *writeLater(void *nothing) {
    other = tid();
    pthread_barrier_wait(&begun);
    workLong();
    if (write(ends[1], "", 1) != 1) abort();
    return nothing;
}
static void *notifyLater(void *nothing) {
    other = tid();
    pthread_barrier_wait(&begun);
    workLong();
    uint64_t more = 1;
    if (write(ends[1], &more, sizeof more) != sizeof more) abort();
    return nothing;
}
static void *postLater(void *nothing) {
    other = tid();
    pthread_barrier_wait(&begun);
    work();
    sem_post(&posted);
    return nothing;
}
static void *endLater(void *nothing) {
    other = tid();
    work();
    return nothing;
}
static _Atomic int word;
static uint64_t wokenAt;
static void *wakeLater(void *nothing) {
    other = tid();
    pthread_barrier_wait(&begun);
    work();
    wokenAt = now();
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
    return nothing;
}
static void *endSooner(void *nothing) {
    (void)tid(); // a call that is recorded
    workFor(10000000);
    return nothing;
}
static void *holdIdly(void *mutex) {
    other = tid();
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none);
    pthread_mutex_lock(mutex);
    pthread_barrier_wait(&begun);
    workLong();
    pthread_mutex_unlock(mutex);
    return 0;
}
static void *keepBusy(void *nothing) {
    workLong();
    return nothing;
}
/// Two more than there are CPUs for them.
static long keepersBusy(pthread_t threads[130]) {
    cpu_set_t cpus;
    long count = sched_getaffinity(0, sizeof cpus, &cpus) ? 128 : CPU_COUNT(&cpus) + 2;
    if (count > 130) count = 130;
    for (long n = 0; n < count; n++) pthread_create(&threads[n], 0, keepBusy, 0);
    return count;
}

/// A process that writes a byte after some time, and ends after some more.
static pid_t feeder(int descriptor, int unused, int isSocket) {
    pid_t child = fork();
    if (child) return child;
    close(unused);
    workLong();
    if ((isSocket ? send(descriptor, "", 1, 0) : write(descriptor, "", 1)) != 1) abort();
    workLong();
    _exit(0);
}

/// How long it could have run and did not, by the scheduler's own account (proc(5), schedstat).
static uint64_t delay(void) {
    char path[64];
    unsigned long ran, waited;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid());
    FILE *file = fopen(path, "r");
    int count = file ? fscanf(file, "%lu %lu", &ran, &waited) : 0;
    if (file) fclose(file);
    return count == 2 ? waited : 0;
}
static void *spin(void *nothing) {
    for (int round = 0; round < 4; round++) work();
    uint64_t waited = delay();
    say("processor", now() - waited, 0, 0);
    return nothing;
}

int main(void) {
    pthread_t one, two;
    pthread_barrier_init(&begun, 0, 2);
    pthread_create(&one, 0, hold, &first);
    pthread_barrier_wait(&begun);
    uint64_t begin = now();
    pthread_mutex_lock(&first);
    say("lock", begin, &first, other);
    pthread_mutex_unlock(&first);
    pthread_join(one, 0);

    pthread_barrier_destroy(&begun);
    pthread_barrier_init(&begun, 0, 3);
    pthread_create(&one, 0, holdTheLast, 0);
    pthread_create(&two, 0, holdAndWait, 0);
    pthread_barrier_wait(&begun);
    begin = now();
    pthread_mutex_lock(&second);
    say("chain", begin, &second, other);
    say("chained", begin, &third, last);
    pthread_mutex_unlock(&second);
    pthread_join(one, 0), pthread_join(two, 0);

    pthread_barrier_destroy(&begun);
    pthread_barrier_init(&begun, 0, 2);
    pthread_create(&one, 0, signalLater, 0);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&said);
    begin = now();
    while (!isSignalled) pthread_cond_wait(&condition, &said);
    say("condition", begin, &condition, other);
    pthread_mutex_unlock(&said);
    pthread_join(one, 0);

    sem_init(&posted, 0, 0);
    pthread_create(&one, 0, postLater, 0);
    pthread_barrier_wait(&begun);
    begin = now();
    sem_wait(&posted);
    say("semaphore", begin, &posted, other);
    pthread_join(one, 0);

    if (pipe(ends)) return 1;
    pthread_create(&one, 0, writeLater, 0);
    pthread_barrier_wait(&begun);
    begin = now();
    char byte;
    if (read(ends[0], &byte, 1) != 1) return 1;
    say("pipe", begin, (void *)(intptr_t)ends[0], other);
    pthread_join(one, 0);

    for (int isSocket = 0; isSocket < 2; isSocket++) {
        if (isSocket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) return 1;
        pid_t child = feeder(ends[1], ends[0], isSocket);
        close(ends[1]);
        begin = now();
        if ((isSocket ? recv(ends[0], &byte, 1, 0) : read(ends[0], &byte, 1)) != 1) return 1;
        say(isSocket ? "sent" : "fed", begin, (void *)(intptr_t)ends[0], child);
        begin = now();
        if (read(ends[0], &byte, 1) != 0) return 1;
        say(isSocket ? "hung" : "starved", begin, (void *)(intptr_t)ends[0], child);
        close(ends[0]);
        waitpid(child, 0, 0);
    }

    // poll: the second of two pipes is written to. epoll_wait: of a pipe and an eventfd, the eventfd is, by a thread of this process.
    int others[2];
    if (pipe(others) || pipe(ends)) return 1;
    pid_t writer = feeder(ends[1], ends[0], 0);
    close(ends[1]);
    struct pollfd both[2] = {{.fd = others[0], .events = POLLIN}, {.fd = ends[0], .events = POLLIN}};
    begin = now();
    if (poll(both, 2, -1) != 1) return 1;
    say("polled", begin, 0, writer);
    kill(writer, SIGKILL); // it would be the longest child
    waitpid(writer, 0, 0);
    close(ends[0]);
    ends[1] = eventfd(0, 0);
    int events = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    if (ends[1] < 0 || epoll_ctl(events, EPOLL_CTL_ADD, others[0], &event) || epoll_ctl(events, EPOLL_CTL_ADD, ends[1], &event)) return 1;
    pthread_create(&one, 0, notifyLater, 0);
    pthread_barrier_wait(&begun);
    begin = now();
    if (epoll_wait(events, &event, 1, -1) != 1) return 1;
    say("notified", begin, 0, other);
    pthread_join(one, 0);
    close(events), close(ends[1]), close(others[0]), close(others[1]);

    pthread_t keepers[130];
    pthread_create(&one, 0, holdIdly, &first);
    pthread_barrier_wait(&begun);
    long busy = keepersBusy(keepers);
    begin = now();
    pthread_mutex_lock(&first);
    say("inversion", begin, &first, other);
    pthread_mutex_unlock(&first);
    for (long n = 0; n < busy; n++) pthread_join(keepers[n], 0);
    pthread_join(one, 0);

    pthread_create(&one, 0, endLater, 0);
    begin = now();
    pthread_join(one, 0);
    say("join", begin, (void *)one, other);

    // Joins the first of two threads that end meanwhile.
    pthread_t sooner;
    pthread_create(&one, 0, endLater, 0);
    pthread_create(&sooner, 0, endSooner, 0);
    begin = now();
    pthread_join(one, 0);
    say("joined", begin, (void *)one, other);
    pthread_join(sooner, 0);

    pthread_create(&one, 0, wakeLater, 0);
    pthread_barrier_wait(&begun);
    begin = now();
    while (!word) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, (void *)0);
    // Such a call may have a time limit: who woke it is shown where it ran within 1 ms.
    say("futex", begin, &word, now() - wokenAt < 1000000 ? other : 0);
    pthread_join(one, 0);

    struct timespec length = {.tv_nsec = 30000000};
    begin = now();
    nanosleep(&length, 0);
    say("sleep", begin, 0, 0);

    pid_t child = fork();
    if (child == 0) {
        work();
        _exit(0);
    }
    begin = now();
    waitpid(child, 0, 0);
    say("child", begin, (void *)(intptr_t)child, 0);

    // Past the page cache: nothing but the disk's own time. Not every file system can.
    enum { BYTES = 16 << 20 };
    char *bytes = aligned_alloc(4096, BYTES);
    memset(bytes, 1, BYTES);
    int cold = open("cold", O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (cold >= 0 && pwrite(cold, bytes, BYTES, 0) == BYTES && fsync(cold) == 0) {
        begin = now();
        if (pread(cold, bytes, BYTES, 0) != BYTES) return 1;
        say("disk", begin, (void *)(intptr_t)cold, 0);
    }
    if (cold >= 0) unlink("cold"), close(cold);

    pthread_t spinners[130];
    long count = sysconf(_SC_NPROCESSORS_ONLN) + 2;
    if (count > 130) count = 130;
    for (long n = 0; n < count; n++) pthread_create(&spinners[n], 0, spin, 0);
    for (long n = 0; n < count; n++) pthread_join(spinners[n], 0);
    return 0;
}
