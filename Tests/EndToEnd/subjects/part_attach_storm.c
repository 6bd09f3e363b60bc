// tree: none
// A process to attach to at any moment: threads that do what a hook is most easily caught in, check what comes of it, and count. Its arguments
// say which of them it has; `again MS` executes itself every so often. It answers a line on its standard input by its counts, and ends well
// after the line `end`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(condition) do { if (!(condition)) fail(#condition, __LINE__); } while (0)
#define APART __attribute__((noinline, noclone))

long before(long), after(long), deep(long), calls_back(long (*)(long), long); // libpart.so

static void fail(const char *what, int line) {
    fprintf(stderr, "%d: not so: %s, errno %d\n", line, what, errno);
    abort();
}

static volatile int is_over;
static volatile int is_leaving; // for another program, or for good, while threads run: the kernel lets them begin no others then

// A function of the program's own, for which there is no slot.
static APART long own(long n) {
    __asm__ volatile("" : "+r"(n));
    return n > 0 ? own(n - 1) + 1 : 0;
}
static APART void step(long n) {
    CHECK(before(n) == n + 1 && own(n & 7) == (n & 7) && after(n) == n + 2);
    CHECK(deep(n & 15) == (n & 15));
}

// MARK: - What the threads do: once each time, with a number that rises

static void loads(long n) {
    void *library = dlopen("./libplug.so", n & 1 ? RTLD_NOW : RTLD_LAZY);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    long (*plug)(long) = (long (*)(long))dlsym(library, "plug");
    CHECK(plug && plug(n) == n * 2 + 1);
    CHECK(!dlclose(library));
    usleep(500);
}

static void await(pid_t child, int status) {
    int found = 0;
    while (waitpid(child, &found, 0) < 0) CHECK(errno == EINTR);
    if (WIFEXITED(found) && WEXITSTATUS(found) == status) return;
    fprintf(stderr, "a child ended with wait status %x, expected exit %d\n", found, status);
    abort();
}
static void forks(long n) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        for (long k = 0; k < 30; k++) step(n + k);
        free(malloc(1000 + (size_t)n % 1000));
        _exit(before(40));
    }
    await(child, 41);
    usleep(2000);
}
static void executes(long n) {
    pid_t child = vfork();
    CHECK(child >= 0);
    if (!child) {
        if (n & 1) execl("/proc/self/exe", "executed", (char *)0);
        else execl("/bin/sh", "sh", "-c", "exit 43", (char *)0);
        _exit(1);
    }
    await(child, 43);
    usleep(2000);
}

static pthread_key_t key;
static _Atomic long ended;
static void end_of_thread(void *value) {
    CHECK(before((long)value) == (long)value + 1);
    ended++;
}
static void *short_lived(void *value) {
    CHECK(!pthread_setspecific(key, value));
    step((long)value);
    if ((long)value & 1) pthread_exit((void *)own(5));
    return (void *)own(5);
}
static void starts(long n) {
    pthread_t threads[4];
    void *result;
    for (long k = 0; k < 4; k++) {
        int error = pthread_create(&threads[k], 0, short_lived, (void *)(4 * n + k + 1));
        while (error == EAGAIN && is_leaving) pause();
        CHECK(!error);
    }
    for (int k = 0; k < 4; k++) CHECK(!pthread_join(threads[k], &result) && (long)result == 5);
}

static void allocates(long n) {
    enum { BLOCKS = 64 };
    static __thread unsigned char *blocks[BLOCKS];
    static __thread size_t sizes[BLOCKS];
    for (int k = 0; k < 200; k++) {
        unsigned place = (unsigned)(n * 31 + k * 7) % BLOCKS;
        unsigned char mark = (unsigned char)place;
        if (blocks[place]) CHECK(blocks[place][0] == mark && blocks[place][sizes[place] - 1] == mark);
        size_t size = 1 + (size_t)(n * 7919 + k * 104729) % (k % 50 ? 3000 : 300000);
        if (k & 1) {
            free(blocks[place]);
            blocks[place] = malloc(size);
        } else {
            blocks[place] = realloc(blocks[place], size);
        }
        CHECK(blocks[place]);
        sizes[place] = size;
        blocks[place][0] = blocks[place][size - 1] = mark;
    }
    if (n % 100 == 0) malloc_trim(0);
}

static __thread volatile long handled; // signals of this thread, on its alternate stack
static __thread char *alternate;
static __thread sigjmp_buf way_out;
static __thread volatile int wants_out;
static void handle(int number) {
    char here;
    int error = errno;
    CHECK(number == SIGRTMIN && &here >= alternate && &here < alternate + 65536);
    step(handled);
    handled++;
    errno = error;
    if (wants_out) siglongjmp(way_out, 1);
}
static timer_t begin_signals(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    struct itimerspec times = {{0, 300000}, {0, 300000}};
    timer_t timer;
    stack_t stack = {.ss_sp = alternate = malloc(65536), .ss_size = 65536};
    CHECK(alternate && !sigaltstack(&stack, 0));
    CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &times, 0));
    return timer;
}
// In calls, in computing, in waits: and some of the handlers never return.
static void is_interrupted(long n) {
    static __thread int has_begun;
    if (!has_begun) has_begun = 1, begin_signals();
    long last = handled;
    for (long k = 0; handled < last + 3; k++) step(n + k);
    last = handled;
    while (handled < last + 2) own(20);
    if (n % 4) return;
    if (!sigsetjmp(way_out, 1)) {
        wants_out = 1;
        for (long k = 0;; k++) step(k);
    }
    wants_out = 0;
}

static __thread ucontext_t here, there[2];
static __thread long turns;
static long switches(long number) {
    swapcontext(&there[number], number ? &here : &there[1]);
    return number + 1;
}
static void coroutine(int number) {
    for (;;) {
        step(turns);
        turns++;
        CHECK(calls_back(switches, number) == number + 2);
    }
}
static void switches_stacks(long n) {
    static __thread int has_begun;
    for (volatile int k = 0; k < 2 && !has_begun; k++) {
        CHECK(!getcontext(&there[k]));
        there[k].uc_stack.ss_sp = malloc(65536);
        there[k].uc_stack.ss_size = 65536;
        makecontext(&there[k], (void (*)(void))coroutine, 1, k);
    }
    has_begun = 1;
    for (int k = 0; k < 50; k++) {
        long last = turns;
        CHECK(!swapcontext(&here, &there[0]) && turns == last + 2);
    }
    step(n);
}

static void jumps(long n) {
    static __thread jmp_buf place;
    volatile long kept = n;
    if (!setjmp(place)) {
        step(n);
        longjmp(place, 1);
    }
    CHECK(kept == n);
    step(n);
}

// MARK: -

static struct activity { const char *name; void (*once)(long); int threads; _Atomic long count; } activities[] = {
    {"loads", loads, 1, 0}, {"forks", forks, 1, 0}, {"executes", executes, 1, 0}, {"starts", starts, 1, 0}, {"allocates", allocates, 2, 0},
    {"signals", is_interrupted, 2, 0}, {"switches", switches_stacks, 1, 0}, {"jumps", jumps, 1, 0},
};
enum { ACTIVITIES = sizeof activities / sizeof *activities };

static void *work(void *given) {
    struct activity *activity = given;
    for (long n = 0; !is_over; n++) {
        activity->once(n);
        activity->count++;
    }
    return 0;
}
static void last_words(void) {
    CHECK(before(1) == 2);
    printf("done\n");
}

int main(int count, char **words) {
    if (!strcmp(words[0], "executed")) return (int)before(42);
    pthread_t threads[16];
    int started = 0;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK(!sigaction(SIGRTMIN, &action, 0) && !pthread_key_create(&key, end_of_thread) && !atexit(last_words));
    for (int n = 1; n < count; n++)
        for (int k = 0; k < ACTIVITIES; k++)
            for (int t = 0; t < activities[k].threads && !strcmp(words[n], activities[k].name); t++)
                CHECK(!pthread_create(&threads[started++], 0, work, &activities[k]));
    if (count > 3 && !strcmp(words[1], "again")) {
        // again MS COUNT …: COUNT times one after the other, and then to the end.
        char left[24];
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += atol(words[2]) * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        for (struct timespec now = {0}; now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec);) {
            step(now.tv_nsec);
            clock_gettime(CLOCK_MONOTONIC, &now);
        }
        is_leaving = 1;
        if (atol(words[3]) == 0) return 0;
        snprintf(left, sizeof left, "%ld", atol(words[3]) - 1);
        words[3] = left;
        execv("/proc/self/exe", words);
        fail("execv", __LINE__);
    }
    char line[64];
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n")) {
        for (int k = 0; k < ACTIVITIES; k++) printf("%ld ", (long)activities[k].count);
        printf("\n");
        fflush(stdout);
    }
    is_over = 1;
    for (int n = 0; n < started; n++) CHECK(!pthread_join(threads[n], 0));
    CHECK(ended == 4 * activities[3].count);
    return 0;
}
