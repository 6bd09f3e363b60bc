// tree: none
// A process that is attached to: threads that wait in many ways and count what they should not see, threads that compute, and one that calls
// another module all the time. It answers on its standard output what is asked on its standard input: a word a line.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

long before(long), after(long);

static _Atomic long calls, interrupted, early, other, wrong, turns;
static _Atomic int is_over;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
enum { MS = 50 };
static const struct timespec length = {0, MS * 1000000};
static struct timespec at(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += length.tv_nsec;
    if (time.tv_nsec >= 1000000000) time.tv_sec++, time.tv_nsec -= 1000000000;
    return time;
}

// Each waits for MS, and returns 0, or -1 with errno.
static int sleeps(void) { return nanosleep(&length, 0); }
static int sleeps_until(void) {
    struct timespec end = at(CLOCK_MONOTONIC);
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, 0);
    return errno ? -1 : 0;
}
static int polls(void) { return poll(0, 0, MS); }
static int ppolls(void) { return ppoll(0, 0, &length, 0); }
static int selects(void) { return select(0, 0, 0, 0, &(struct timeval){0, MS * 1000}); }
static int epoll_waits(void) {
    static __thread int set = -1;
    struct epoll_event event;
    if (set < 0) set = epoll_create1(0);
    return epoll_wait(set, &event, 1, MS);
}
static int epoll_pwaits(void) {
    static __thread int set = -1;
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    if (set < 0) set = epoll_create1(0);
    return epoll_pwait(set, &event, 1, MS, &none);
}
static int ends_in(int result, int error) { return result < 0 && errno == error ? 0 : result < 0 ? -1 : 1; }
static int receives(void) {
    static int ends[2];
    if (!ends[0]) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, MS * 1000}, sizeof(struct timeval));
    }
    char byte;
    return ends_in((int)recv(ends[0], &byte, 1, 0), EAGAIN);
}
static int condition_waits(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec end = at(CLOCK_REALTIME);
    pthread_mutex_lock(&mutex);
    int result = pthread_cond_timedwait(&condition, &mutex, &end);
    pthread_mutex_unlock(&mutex);
    errno = result;
    return result == ETIMEDOUT ? 0 : -1;
}
static int semaphore_waits(void) {
    static sem_t semaphore;
    struct timespec end = at(CLOCK_REALTIME);
    return ends_in(sem_timedwait(&semaphore, &end), ETIMEDOUT);
}
static int signal_waits(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return ends_in(sigtimedwait(&set, 0, &length), EAGAIN);
}
static int child_waits(void) {
    pid_t child = fork();
    if (!child) {
        struct timespec rest = length;
        while (nanosleep(&rest, &rest)) {}
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) == child ? 0 : -1;
}
static int (*const waits[])(void) = {
    sleeps, sleeps_until, polls, ppolls, selects, epoll_waits, epoll_pwaits, receives, condition_waits, semaphore_waits, signal_waits,
    child_waits,
};
enum { WAITS = sizeof waits / sizeof *waits };

static void *wait_on(void *given) {
    int (*wait)(void) = given;
    while (!is_over) {
        double begin = now();
        int result = wait();
        if (result < 0 && errno == EINTR) interrupted++;
        else if (result) other++;
        else if (now() - begin < 0.001 * (MS - 2)) early++;
    }
    return 0;
}

// No system call, and everything in registers: integers, floating point, flags.
static void *compute(void *given) {
    (void)given;
    while (!is_over) {
        unsigned long a = 1, b = 0;
        double x = 1, y = 0;
        for (long n = 0; n < 3000000; n++) {
            a = a * 6364136223846793005ul + 1442695040888963407ul;
            b ^= a >> 7;
            x = x * 0.999999 + 0.5;
            y += x;
        }
        static _Atomic unsigned long sum;
        static _Atomic double total;
        if (!sum) sum = a ^ b, total = x + y;
        else if (sum != (a ^ b) || total != x + y) wrong++;
        turns++;
    }
    return 0;
}

// A function of the program's own, for which there is no slot.
static __attribute__((noinline)) long own(long n) {
    __asm__ volatile("");
    return n + 3;
}

// errno is its own: what is written to it stays between two calls that do not fail.
static void *call(void *given) {
    int out = *(int *)given;
    for (long n = 0; !is_over; n++) {
        errno = 1000;
        if (before(n) != n + 1 || own(n) != n + 3 || after(n) != n + 2) wrong++;
        calls++;
        static jmp_buf place; // a function that returns twice is recorded by its entry alone
        if (n % 256 == 0 && setjmp(place)) other++;
        if (n % 256 == 0 && write(out, "", 1) != 1) other++;
        if (errno != 1000) wrong++;
    }
    return 0;
}
static void *drain(void *given) {
    char bytes[64];
    while (read(*(int *)given, bytes, sizeof bytes) > 0) {}
    return 0;
}

// Its constructor waits.
static void *load(void *given) {
    (void)given;
    if (!dlopen("./libslow.so", RTLD_NOW)) wrong++;
    return 0;
}

int main(int count, char **words) {
    int computes = 0, busy = 0, loads = 0;
    for (int n = 1; n < count; n++) {
        if (!strcmp(words[n], "computes")) computes = 1;
        if (!strcmp(words[n], "busy")) busy = 1;
        if (!strcmp(words[n], "loads")) loads = 1;
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    pthread_t thread;
    static int ends[2];
    if (computes) return compute(0) != 0; // all that there is
    if (pipe(ends)) return 1;
    for (int n = 0; n < WAITS && !busy; n++) pthread_create(&thread, 0, wait_on, (void *)waits[n]);
    pthread_create(&thread, 0, drain, &ends[0]);
    pthread_create(&thread, 0, call, &ends[1]);
    if (busy) pthread_create(&thread, 0, compute, 0);
    if (loads) pthread_create(&thread, 0, load, 0);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (!strcmp(line, "fork\n")) {
            pid_t child = fork();
            if (!child) {
                for (long n = 0; getppid() != 1; n++) {
                    if (before(n) != n + 1) _exit(1);
                    usleep(100);
                }
                _exit(0);
            }
            printf("%d\n", child);
        } else if (!strcmp(line, "exec\n")) {
            execl("/bin/sleep", "sleep", "100", (char *)0);
        } else if (!strcmp(line, "end\n")) {
            break;
        } else {
            printf("%ld %ld %ld %ld %ld\n", (long)calls, (long)interrupted, (long)early, (long)other, (long)wrong);
        }
        fflush(stdout);
    }
    is_over = 1;
    printf("%ld %ld %ld %ld\n", (long)interrupted, (long)early, (long)other, (long)wrong);
    fflush(stdout);
    _exit(0);
}
