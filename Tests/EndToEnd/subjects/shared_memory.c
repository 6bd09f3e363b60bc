// Children that run in their parent's memory: of vfork, and of clone with CLONE_VM, which waits for them or not, on stacks of
// their own, which may be a variable of the parent's. Nothing of them is recorded, and what they do to themselves (limits, a
// root, a filter for system calls) does not end the parent's recording.
// library: side
// case: vfork vfork
// case: vfork_limits vfork_limits
// case: vfork_confined vfork_confined
// case: vfork_confined_monotonic TRACER_CLOCK=monotonic vfork_confined
// case: vfork_included TRACER_INCLUDE=libside.so vfork_confined
// case: vfork_filtered TRACER_MINMS=0.000001 vfork
// case: vfork_deep TRACER_MAXDEPTH=2 vfork_confined
// case: vfork_off TRACER_START=off vfork_confined
// case: vfork_coroutine vfork_coroutine
// case: vfork_handler vfork_handler
// case: vfork_asks vfork_asks
// case: waits waits
// case: waits_confined waits_confined
// case: waits_limits waits_limits
// case: goes_on goes_on
// case: threads threads
// native: * because the emulator makes processes with memory of their own
// tree: none the subject counts its calls
// modes: functions counts call_sites
// modes: instrumented for vfork vfork_[cdfhl]* waits* threads goes_on
#include "subject.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
long side_parent(long value);
long side_child(long value);
long side_open(long (*body)(long), long value);
#ifdef LIB_side
EXPORT long side_parent(long value) { return value + 1; }
EXPORT long side_child(long value) { return value + 2; }
EXPORT long side_open(long (*body)(long), long value) { long result = body(value); OPAQUE(); return result; }
#else
enum { FEW = 10, MANY = 100000, ROUNDS = 5 }; // many: several chunks
static volatile unsigned long parents, opened;
static void parent(long n) {
    for (long i = 0; i < n; i++) CHECK(side_parent(i) == i + 1);
    __atomic_fetch_add(&parents, (unsigned long)n, __ATOMIC_RELAXED);
}
static void children(long n) {
    for (long i = 0; i < n; i++)
        if (side_child(i) != i + 2) _exit(98);
}
static void wait_for(pid_t pid, int expected) {
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status)) fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}
/// Everything that could stand in the way of a recording.
static void limit(void) {
    struct rlimit none = {0, 0}, little = {64 << 20, 64 << 20};
    if (setrlimit(RLIMIT_NOFILE, &none) || setrlimit(RLIMIT_FSIZE, &none) || setrlimit(RLIMIT_AS, &little)) _exit(97);
    if (!geteuid() && chroot("/proc/self")) _exit(96);
}
/// Only what the child uses itself: all else kills it.
static void confine(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) _exit(95);
}
static int look(void) { // how the program handles SIGBUS: not at all
    struct sigaction action;
    return sigaction(SIGBUS, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}
static const char *how;
static int is(const char *what) { return strstr(how, what) != NULL; }
static int task(void *unused) {
    (void)unused;
    children(FEW);
    if (is("confined")) confine();
    if (is("limits")) limit();
    if (!is("confined") && !look()) _exit(94);
    children(MANY / 10);
    _exit(7);
}
static void vfork_once(void) {
    pid_t pid = vfork();
    CHECK(pid >= 0);
    if (!pid) task(NULL);
    parent(FEW);
    wait_for(pid, 7);
}
static long vfork_inside(long value) {
    vfork_once();
    return value;
}
static void clone_once(int flags) {
    char stack[131072] __attribute__((aligned(16))); // within the parent's
    parent(FEW);
    pid_t pid = clone(task, stack + sizeof stack, CLONE_VM | flags | SIGCHLD, NULL);
    CHECK(pid > 0);
    parent(FEW);
    wait_for(pid, 7);
    parent(FEW);
    OPAQUE();
}
static long clone_inside(long flags) {
    clone_once((int)flags);
    return flags;
}
static ucontext_t caller, other;
static void on_other_stack(void) {
    parent(FEW);
    vfork_once();
    parent(FEW);
}
static jmp_buf back;
static void handler(int number) {
    (void)number;
    vfork_once();
}
static void *in_thread(void *unused) {
    for (int n = 0; n < ROUNDS; n++) vfork_once();
    return unused;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    how = argv[1];
    const char *start = getenv("TRACER_START"), *depth = getenv("TRACER_MAXDEPTH"), *filtered = getenv("TRACER_MINMS");
    parent(FEW);
    for (int n = 0; n < ROUNDS; n++) {
        if (is("coroutine")) {
            static char buffer[262144];
            context_on(&other, buffer, sizeof buffer, &caller);
            makecontext(&other, on_other_stack, 0);
            CHECK(!swapcontext(&caller, &other));
        } else if (is("handler")) {
            static char buffer[262144];
            stack_t stack = {.ss_sp = buffer, .ss_size = sizeof buffer};
            struct sigaction action = {.sa_handler = handler, .sa_flags = n % 2 ? SA_ONSTACK : 0};
            CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
            if (!sigsetjmp(back, 1)) siglongjmp(back, 1);
        } else if (is("asks")) {
            vfork_once();
            CHECK(look());
        } else if (is("waits")) {
            CHECK(side_open(clone_inside, CLONE_VFORK) == CLONE_VFORK);
            opened++;
        } else if (is("goes_on")) {
            CHECK(side_open(clone_inside, 0) == 0);
            opened++;
        } else if (is("threads")) {
            pthread_t threads[4];
            for (int k = 0; k < 4; k++) CHECK(!pthread_create(&threads[k], NULL, in_thread, NULL));
            for (int k = 0; k < 4; k++) CHECK(!pthread_join(threads[k], NULL));
        } else {
            CHECK(side_open(vfork_inside, n) == n);
            opened++;
        }
    }
    parent(MANY);
    if (start || depth || filtered) counted_between("side_parent", 0, start ? 0 : parents);
    else counted("side_parent", parents);
    if (!start) counted("side_open", opened);
    counted("side_child", 0);
    if (!start) counted("_exit", 0);
    puts("over");
    return 0;
}
#endif
