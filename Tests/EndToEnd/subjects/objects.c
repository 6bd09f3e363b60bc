// Functions that wait, or let another thread go on: each call is recorded with its object, whichever path of the agent it takes. The
// objects lie at addresses that are the same in each run.
// build: -O2 -pthread
// library: through -pthread
// variant: plt
// variant: noplt -fno-plt
// variant: lazy exe:-Wl,-z,lazy
// case: kinds kinds
// case: many many 120000
// case: many_with_sites TRACER_CALLSITES=1 many 60000
// case: threads threads 4000
// case: filtered TRACER_MINMS=3 filtered
// case: below_depth TRACER_MAXDEPTH=2 deep 100
// case: by_tail_calls tails 3000
// case: other_stack stack 3000
// case: other_stack_limited TRACER_MAXDEPTH=3 stack 100
// case: signal_stack signals 500
// case: ring TRACER_MODE=ring TRACER_MAXSIZE=512K many_times 200000
// case: forked forked
// case: kernels_clock TRACER_CLOCK=monotonic many 2000
// forks: forked
// tree: none the subject counts its calls
#include "subject.h"
#ifdef LIB_through
EXPORT int through(pthread_mutex_t *lock) { return pthread_mutex_lock(lock); }
EXPORT int back(pthread_mutex_t *lock) { return pthread_mutex_unlock(lock); }
EXPORT int over(int (*call)(pthread_mutex_t *), pthread_mutex_t *lock) {
    int result = call(lock);
    OPAQUE();
    return result;
}
#else
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <threads.h>
#include "part_other_stack.h"
int through(pthread_mutex_t *), back(pthread_mutex_t *), over(int (*)(pthread_mutex_t *), pthread_mutex_t *);

static struct objects {
    pthread_mutex_t lock, locks[4];
    pthread_rwlock_t readers;
    pthread_spinlock_t spin;
    pthread_cond_t condition;
    sem_t semaphore;
    pthread_barrier_t barrier;
    pthread_once_t once;
    mtx_t plain;
    uint32_t word;
} *objects = (struct objects *)0x5a5a0000000;

static void used(const char *function, unsigned long object, unsigned long calls) {
    char name[96];
    snprintf(name, sizeof name, "%s(0x%lx)", function, object);
    counted(name, calls);
}
static void used_number(const char *function, int object, unsigned long calls) {
    char name[96];
    snprintf(name, sizeof name, "%s(%d)", function, object);
    counted(name, calls);
}
#define USED(function, object, calls) used(function, (unsigned long)&objects->object, calls)

static void nothing(void) {}
static void *waiter(void *unused) {
    (void)unused;
    pthread_barrier_wait(&objects->barrier);
    return NULL;
}
static void kinds(void) {
    CHECK(!pthread_mutex_lock(&objects->lock) && pthread_mutex_trylock(&objects->lock) == EBUSY && !pthread_mutex_unlock(&objects->lock));
    USED("pthread_mutex_lock", lock, 1), USED("pthread_mutex_trylock", lock, 1), USED("pthread_mutex_unlock", lock, 1);
    CHECK(!pthread_rwlock_rdlock(&objects->readers) && !pthread_rwlock_unlock(&objects->readers));
    CHECK(!pthread_rwlock_wrlock(&objects->readers) && !pthread_rwlock_unlock(&objects->readers));
    USED("pthread_rwlock_rdlock", readers, 1), USED("pthread_rwlock_wrlock", readers, 1), USED("pthread_rwlock_unlock", readers, 2);
    CHECK(!pthread_spin_lock(&objects->spin) && !pthread_spin_unlock(&objects->spin));
    USED("pthread_spin_lock", spin, 1), USED("pthread_spin_unlock", spin, 1);
    struct timespec past = {1, 0};
    CHECK(!pthread_mutex_lock(&objects->locks[0]));
    CHECK(pthread_cond_timedwait(&objects->condition, &objects->locks[0], &past) == ETIMEDOUT);
    CHECK(!pthread_cond_signal(&objects->condition) && !pthread_cond_broadcast(&objects->condition));
    USED("pthread_cond_timedwait", condition, 1), USED("pthread_cond_signal", condition, 1), USED("pthread_cond_broadcast", condition, 1);
    CHECK(!sem_post(&objects->semaphore) && !sem_wait(&objects->semaphore) && sem_trywait(&objects->semaphore));
    USED("sem_post", semaphore, 1), USED("sem_wait", semaphore, 1), USED("sem_trywait", semaphore, 1);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, waiter, NULL));
    pthread_barrier_wait(&objects->barrier);
    USED("pthread_barrier_wait", barrier, 2);
    CHECK(!pthread_join(thread, NULL));
    for (int n = 0; n < 3; n++) CHECK(!pthread_once(&objects->once, nothing));
    USED("pthread_once", once, 3);
    CHECK(mtx_lock(&objects->plain) == thrd_success && mtx_unlock(&objects->plain) == thrd_success);
    USED("mtx_lock", plain, 1), USED("mtx_unlock", plain, 1);
    // Among system calls by number, only futex has an object.
    for (int n = 0; n < 5; n++) CHECK(syscall(SYS_futex, &objects->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0);
    CHECK(syscall(SYS_getppid) > 0);
    USED("syscall", word, 5);
    int pipes[2], high = 51, epoll = epoll_create1(0);
    char byte = 'x';
    CHECK(!pipe(pipes) && dup2(pipes[0], 50) == 50 && dup2(pipes[1], high) == high && epoll >= 0 && dup2(epoll, 52) == 52);
    CHECK(write(high, &byte, 1) == 1 && read(50, &byte, 1) == 1);
    for (int n = 0; n < 20; n++) CHECK(read(-7, &byte, 1) < 0 && write(-8, &byte, 1) < 0);
    struct epoll_event event;
    CHECK(epoll_wait(52, &event, 1, 0) == 0 && !flock(50, LOCK_SH) && fcntl(50, F_GETFD) >= 0 && !close(50));
    used_number("write", high, 1), used_number("read", 50, 1), used_number("read", -7, 20), used_number("write", -8, 20);
    used_number("epoll_wait", 52, 1), used_number("flock", 50, 1), used_number("fcntl", 50, 1), used_number("close", 50, 1);
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK(waitpid(child, NULL, 0) == child && waitpid(-1, NULL, 0) < 0);
    siginfo_t information;
    CHECK(waitid(P_PID, 77, &information, WEXITED) < 0);
    used_number("waitpid", -1, 1), used_number("waitid", 77, 1);
}

static void work(int lock, long count) {
    for (long n = 0; n < count; n++) CHECK(!pthread_mutex_lock(&objects->locks[lock]) && !pthread_mutex_unlock(&objects->locks[lock]));
}
static void worked(int lock, unsigned long calls) {
    used("pthread_mutex_lock", (unsigned long)&objects->locks[lock], calls);
    used("pthread_mutex_unlock", (unsigned long)&objects->locks[lock], calls);
}
static long turns;
static void *thread_work(void *lock) {
    work((int)(long)lock, turns);
    return NULL;
}

static ucontext_t other, own;
static void on_stack(void) {
    for (long n = 0; n < turns; n++) {
        over(through, &objects->locks[1]);
        swapcontext(&other, &own);
        over(back, &objects->locks[1]);
    }
}
static void handler(int signal) {
    (void)signal;
    CHECK(!pthread_mutex_lock(&objects->locks[2]) && !pthread_mutex_unlock(&objects->locks[2]));
}

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    CHECK(mmap(objects, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)objects);
    CHECK(!pthread_mutex_init(&objects->lock, NULL) && !pthread_rwlock_init(&objects->readers, NULL) && !sem_init(&objects->semaphore, 0, 0));
    for (int n = 0; n < 4; n++) CHECK(!pthread_mutex_init(&objects->locks[n], NULL));
    CHECK(!pthread_spin_init(&objects->spin, 0) && !pthread_cond_init(&objects->condition, NULL));
    CHECK(!pthread_barrier_init(&objects->barrier, NULL, 2) && mtx_init(&objects->plain, mtx_plain) == thrd_success);
    const char *mode = argv[1];
    turns = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(mode, "kinds")) {
        kinds();
    } else if (!strcmp(mode, "many")) {
        work(0, turns);
        worked(0, (unsigned long)turns);
    } else if (!strcmp(mode, "many_times")) {
        work(0, turns);
    } else if (!strcmp(mode, "threads")) {
        pthread_t threads[4];
        for (long n = 0; n < 4; n++) CHECK(!pthread_create(&threads[n], NULL, thread_work, (void *)n));
        for (int n = 0; n < 4; n++) CHECK(!pthread_join(threads[n], NULL));
        for (int n = 0; n < 4; n++) worked(n, (unsigned long)turns);
    } else if (!strcmp(mode, "filtered")) {
        for (int n = 0; n < 3; n++) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += 20000000;
            if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
            CHECK(syscall(SYS_getppid) > 0);
            CHECK(sem_timedwait(&objects->semaphore, &until) < 0 && errno == ETIMEDOUT);
            struct timespec wait = {0, 20000000};
            CHECK(syscall(SYS_futex, &objects->word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0) < 0);
        }
        USED("sem_timedwait", semaphore, 3), USED("syscall", word, 3);
    } else if (!strcmp(mode, "deep")) {
        for (long n = 0; n < turns; n++) CHECK(!over(through, &objects->locks[0]) && !over(back, &objects->locks[0]));
    } else if (!strcmp(mode, "tails")) {
        for (long n = 0; n < turns; n++) CHECK(!through(&objects->locks[3]) && !back(&objects->locks[3]));
        worked(3, (unsigned long)turns);
    } else if (!strcmp(mode, "stack")) {
        on_other_stack(&other, &own, on_stack);
        for (long n = 0; n <= turns; n++) {
            CHECK(!swapcontext(&own, &other));
            work(0, 1);
        }
        if (turns > 1000) worked(1, (unsigned long)turns), worked(0, (unsigned long)turns + 1);
    } else if (!strcmp(mode, "signals")) {
        static char stack[65536];
        stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        CHECK(!sigaltstack(&alternate, NULL) && !sigaction(SIGUSR1, &action, NULL));
        for (long n = 0; n < turns; n++) {
            raise(SIGUSR1);
            work(0, 1);
        }
        worked(2, (unsigned long)turns), worked(0, (unsigned long)turns);
    } else if (!strcmp(mode, "forked")) {
        work(1, 10);
        pid_t child = fork();
        if (child == 0) {
            work(1, 10);
            _exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child);
        worked(1, 20);
    } else {
        CHECK(0);
    }
    puts("done");
    return 0;
}
#endif
