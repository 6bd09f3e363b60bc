// tree: none
// A process that is attached to: threads that wait in many ways and count what they should not see, threads that compute, and one that calls
// another module all the time. It answers on its standard output what is asked on its standard input: a word a line. To `count` it answers how
// many calls it has made; how many waits were interrupted, and how many ended early; by how many microseconds the latest was late since it was last
// asked; other errors; wrong results; and after such an error, 1000 times the number of the last wait that ended so, with its errno.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

long before(long), after(long);

static _Atomic long calls, interrupted, early, late, other, wrong, turns, looks, strange;
static _Atomic int is_over;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
enum { MS = 100 };
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
static int futex_waits(void) {
    static int word;
    return ends_in((int)syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, &length, 0, 0), ETIMEDOUT);
}
static int accepts(void) {
    static int listener = -1;
    if (listener < 0) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1)) return -1;
        setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, MS * 1000}, sizeof(struct timeval));
    }
    return ends_in(accept(listener, 0, 0), EAGAIN);
}
static int semaphores = -1; // System V's: they outlive the process unless it removes them
static int sets_of_semaphores_wait(void) {
    if (semaphores < 0) semaphores = semget(IPC_PRIVATE, 1, 0600);
    return ends_in(semtimedop(semaphores, &(struct sembuf){0, -1, 0}, 1, &length), EAGAIN);
}
static int events_of_aio(void) {
    static aio_context_t context;
    struct io_event event;
    if (!context && syscall(SYS_io_setup, 4, &context)) return -1;
    return (int)syscall(SYS_io_getevents, context, 1L, 1L, &event, &length);
}

// These end when somebody else writes.
static void *write_now_and_then(void *end) {
    while (!is_over) {
        struct timespec rest = length;
        while (nanosleep(&rest, &rest)) {}
        if (writev(*(int *)end, &(struct iovec){"12345678", 8}, 1) != 8) other++; // calls of write are counted
    }
    return 0;
}
static int reads(void) {
    static int ends[2];
    pthread_t thread;
    char bytes[8];
    if (!ends[0] && (pipe(ends) || pthread_create(&thread, 0, write_now_and_then, &ends[1]))) return -1;
    return read(ends[0], bytes, 8) == 8 ? 0 : -1;
}
static int receives_all(void) {
    static int ends[2];
    pthread_t thread;
    char bytes[16];
    if (!ends[0] && (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || pthread_create(&thread, 0, write_now_and_then, &ends[1]))) return -1;
    return recv(ends[0], bytes, 16, MSG_WAITALL) == 16 ? 0 : -1; // half of it comes before the other
}
static int watches_files(void) {
    static int watch = -1;
    if (watch < 0) {
        close(open("watched", O_CREAT | O_WRONLY, 0600));
        watch = inotify_init1(0);
        if (inotify_add_watch(watch, "watched", IN_OPEN) < 0) return -1;
    }
    pid_t child = fork();
    if (!child) {
        struct timespec rest = length;
        while (nanosleep(&rest, &rest)) {}
        _exit(open("watched", O_RDONLY) < 0);
    }
    char bytes[4096];
    int result = (int)read(watch, bytes, sizeof bytes), error = errno, status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    errno = error;
    return result > 0 ? 0 : -1;
}

// Waits with a timeout, which are not to end before it, nor much after; and others.
static const struct wait { int (*once)(void); int is_timed, may_be_early; } waits[] = {
    {sleeps, 1, 0}, {sleeps_until, 1, 0}, {polls, 1, 0}, {ppolls, 1, 0}, {selects, 1, 0}, {epoll_waits, 1, 0}, {epoll_pwaits, 1, 0}, {receives, 1, 0},
    {condition_waits, 1, 0}, {semaphore_waits, 1, 0}, {signal_waits, 1, 0}, {futex_waits, 1, 0}, {accepts, 1, 0}, {sets_of_semaphores_wait, 1, 0},
    {events_of_aio, 1, 0}, {child_waits, 0, 0}, {reads, 0, 1}, {receives_all, 0, 1}, {watches_files, 0, 0},
};
enum { WAITS = sizeof waits / sizeof *waits };

// For how long this thread could have run and had no processor, in seconds: nobody's fault (Documentation/scheduler/sched-stats.rst).
static double run_delay(void) {
    char text[100] = "";
    unsigned long delay = 0;
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, text, sizeof text - 1) <= 0 || sscanf(text, "%*u %lu", &delay) != 1) delay = 0;
    close(file);
    return 1e-9 * (double)delay;
}
// For how long the machine has not woken anybody, on each of its processors, in microseconds: one that is virtual may have none itself.
static _Atomic long stalled;
static void *watch_the_machine(void *given) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((int)(long)given, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    while (!is_over) {
        double begin = now(), delay = run_delay();
        nanosleep(&(struct timespec){0, 10000000}, 0);
        double excess = now() - begin - 0.010 - (run_delay() - delay);
        if (excess > 0.001) stalled += (long)(excess * 1e6);
    }
    return 0;
}

static void *wait_on(void *given) {
    const struct wait *wait = given;
    while (!is_over) {
        double begin = now(), delay = run_delay();
        long stalls = stalled;
        int result = wait->once();
        double took = now() - begin;
        if (result < 0 && errno == EINTR) interrupted++;
        else if (result) strange = 1000 * (wait - waits) + (result < 0 ? errno : 999), other++;
        else if (took < 0.001 * (MS - 2) && !wait->may_be_early) early++;
        long excess = (long)(1e6 * (took - 0.001 * MS - (run_delay() - delay)));
        if (!wait->is_timed || excess < 10000) continue;
        usleep(50000); // the threads that watch the machine have noticed
        excess -= stalled - stalls;
        for (long latest = late; excess > latest && !atomic_compare_exchange_weak(&late, &latest, excess);) {}
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

static int open_descriptors(void) {
    int found = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) found++;
    if (folder) closedir(folder);
    return found;
}
/// A descriptor that is there for a moment is inherited by a child that is forked in it: that is an error, too.
static void *watch_descriptors(void *unused) {
    for (int usual = open_descriptors(); !is_over; looks++)
        if (open_descriptors() != usual) other++;
    return unused;
}

static _Atomic int turning, turner;
static void *take_turns(void *unused) {
    turner = (int)syscall(SYS_gettid);
    for (long n = 0; turning; n++) {
        if (before(n) != n + 1) wrong++;
        if (n % 4096 == 0) usleep(1000);
    }
    return unused;
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
    for (int n = 0; n < WAITS && !busy; n++) pthread_create(&thread, 0, wait_on, (void *)&waits[n]);
    cpu_set_t processors;
    if (!busy && !sched_getaffinity(0, sizeof processors, &processors))
        for (long n = 0; n < CPU_SETSIZE; n++)
            if (CPU_ISSET(n, &processors)) pthread_create(&thread, 0, watch_the_machine, (void *)n);
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
        } else if (!strcmp(line, "start\n")) { // a thread that calls and rests in turns
            turning = 1;
            pthread_create(&thread, 0, take_turns, 0);
            while (!turner) sched_yield();
            printf("%d\n", turner);
        } else if (!strcmp(line, "stop\n")) {
            turning = 0;
            pthread_join(thread, 0);
            turner = 0;
            puts("0");
        } else if (!strcmp(line, "watch\n")) {
            pthread_create(&thread, 0, watch_descriptors, 0);
            while (!looks) sched_yield();
            puts("0");
        } else if (!strcmp(line, "end\n")) {
            break;
        } else {
            printf("%ld %ld %ld %ld %ld %ld", (long)calls, (long)interrupted, (long)early, atomic_exchange(&late, 0), (long)other, (long)wrong);
            printf(strange ? " %ld\n" : "\n", (long)strange);
        }
        fflush(stdout);
    }
    is_over = 1;
    printf("%ld %ld %ld %ld\n", (long)interrupted, (long)early, (long)other, (long)wrong);
    fflush(stdout);
    if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
    _exit(0);
}
