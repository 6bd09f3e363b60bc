// A thread of real-time priority and an ordinary one share a CPU and what the agent must lock. The first one wakes at any
// moment, also when the other has the lock. If it spun, or let others of its kind run first, the other one could never give the
// lock back: until the kernel takes the CPU from the first, which has used 0.95 seconds of it by then.
// case: inheritance shared
// case: plain plain
// executes: plain
// native: plain because it does without seccomp
// says: 1 the program confines itself before it runs itself again
// needs: realtime
// tree: none the subject counts its calls
// modes: functions
#include "subject.h"
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
enum { RESTING = 300, ROUNDS = 1000, MOST_MILLISECONDS = 500 };
static sem_t resting, go_on;
static volatile int is_over;
static unsigned long names;
/// Each resting thread is one more that the agent looks at when a thread is given a name.
static void *rest(void *unused) {
    sem_post(&resting);
    while (sem_wait(&go_on)) {}
    return unused;
}
static void name_it(const char *name) {
    CHECK(!pthread_setname_np(pthread_self(), name));
    __atomic_fetch_add(&names, 1, __ATOMIC_RELAXED);
}
static void *ordinary(void *unused) {
    while (!is_over) name_it("ordinary");
    return unused;
}
static void *urgent(void *unused) {
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec often = {{0, 70000}, {0, 70000}};
    struct timespec used;
    CHECK(timer >= 0 && !timerfd_settime(timer, 0, &often, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        unsigned long times;
        CHECK(read(timer, &times, sizeof times) == sizeof times);
        name_it("urgent");
        CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used));
        CHECK(used.tv_sec == 0 && used.tv_nsec < MOST_MILLISECONDS * 1000000L);
    }
    close(timer);
    is_over = 1;
    return unused;
}
/// A system whose futexes know no inheritance of priority, as some kernels and emulators do not.
static void without_inheritance(char *program) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (unsigned)FUTEX_CMD_MASK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_LOCK_PI, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_UNLOCK_PI, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    execl(program, program, "filtered", (char *)NULL);
    CHECK(!"executed");
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (!strcmp(argv[1], "plain")) without_inheritance(argv[0]);
    if (!strcmp(argv[1], "filtered")) CHECK(syscall(SYS_futex, &names, FUTEX_LOCK_PI_PRIVATE, 0, NULL) == -1 && errno == ENOSYS);
    cpu_set_t set;
    CHECK(!sched_getaffinity(0, sizeof set, &set));
    int first = 0;
    while (!CPU_ISSET(first, &set)) first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    CHECK(!sched_setaffinity(0, sizeof set, &set));
    CHECK(!sem_init(&resting, 0, 0) && !sem_init(&go_on, 0, 0));
    pthread_t threads[RESTING], two[2];
    pthread_attr_t attributes;
    CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, 65536));
    for (int n = 0; n < RESTING; n++) CHECK(!pthread_create(&threads[n], &attributes, rest, NULL));
    for (int n = 0; n < RESTING; n++) CHECK(!sem_wait(&resting));
    CHECK(!pthread_create(&two[0], NULL, ordinary, NULL));
    struct sched_param priority = {.sched_priority = 10};
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    CHECK(!pthread_attr_setschedparam(&attributes, &priority));
    CHECK(!pthread_create(&two[1], &attributes, urgent, NULL));
    for (int n = 0; n < 2; n++) CHECK(!pthread_join(two[n], NULL));
    for (int n = 0; n < RESTING; n++) sem_post(&go_on);
    for (int n = 0; n < RESTING; n++) CHECK(!pthread_join(threads[n], NULL));
    counted("pthread_setname_np", names);
    puts("over");
    return 0;
}
