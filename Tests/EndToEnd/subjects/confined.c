// A process that gives things up after it has begun: chroot, dropped privileges, a seccomp filter that forbids what the
// program itself does not use (open, mmap of files, openat), an empty mount of nothing it can write to. It goes on.
// library: inside
// plugin: ending -nostartfiles
// link: -ldl
// env: BUILD={build}
// case: chroot chroot
// case: unprivileged unprivileged
// case: seccomp seccomp
// case: seccomp_kills seccomp_kills
// case: seccomp_child seccomp_child
// case: seccomp_inside seccomp_inside
// case: chdir chdir
// case: strict strict
// case: seccomp_off TRACER_START=off seccomp_kills
// case: seccomp_excluded TRACER_EXCLUDE=libc.so* seccomp_kills
// case: seccomp_included TRACER_INCLUDE=libinside.so seccomp_kills
// case: seccomp_by_number seccomp_by_number
// case: control_by_number control_by_number
// case: stopped seccomp_stopped
// case: no_counter no_counter
// case: no_counter_by_number no_counter_by_number
// case: no_counter_off TRACER_START=off no_counter
// case: no_counter_monotonic TRACER_CLOCK=monotonic no_counter
// case: dispatched dispatched
// case: dispatched_excluded TRACER_EXCLUDE=libc.so* dispatched
// case: questions questions
// case: destructor destructor
// case: lists_frames lists_frames
// forks: seccomp_child seccomp_inside
// native: strict seccomp_off seccomp_excluded seccomp_included stopped seccomp_by_number control_by_number no_counter no_counter_by_number no_counter_off no_counter_monotonic dispatched dispatched_excluded questions destructor lists_frames because it does without seccomp, the counter's lock and dispatch
// says: 1 files and memory may be out of reach: recording stops, the program goes on
// tree: none the subject counts what it can know; a filter may end the recording
#include "subject.h"
#include <execinfo.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
extern void tracer_stop(void) __attribute__((weak));
int inside(int value);
int inside_open(int value, void (*callback)(void));
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
EXPORT int inside_open(int value, void (*callback)(void)) { callback(); OPAQUE(); return value + 1; }
#elif defined LIB_ending // a destructor, and no constructor
__attribute__((destructor)) static void ended(void) { CHECK(write(STDOUT_FILENO, "ended\n", 6) == 6); }
EXPORT int ending(int value) { return value + 1; }
#else
enum { BEFORE = 100, AFTER = 300000 }; // enough afterwards for several chunks
static unsigned long work(unsigned long n) {
    unsigned long wrong = 0;
    for (unsigned long i = 0; i < n; i++) wrong += inside((int)i) != (int)i + 1;
    return wrong;
}
enum { BY_CONTROL, BY_NUMBER, CONTROL_BY_NUMBER };
static void filter_by(int kills, int way) {
    // Anything but these is refused with EPERM; a tracer that needs more must stop by itself and let the program be.
    static const int allowed[] = {SYS_write, SYS_read, SYS_exit_group, SYS_exit, SYS_rt_sigreturn, SYS_brk, SYS_fstat,
                                  SYS_newfstatat, SYS_futex, SYS_munmap, SYS_close, SYS_clone, SYS_wait4, SYS_openat};
    struct sock_filter program[64];
    int n = 0;

    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i + 1 < sizeof allowed / sizeof *allowed; i++) {
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog whole = {(unsigned short)n, program};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (way == BY_CONTROL) CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole));
    if (way == BY_NUMBER) CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole));
    if (way == CONTROL_BY_NUMBER) CHECK(!syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0));
    if (!kills) CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == EPERM);
}
static void filter(int kills) { filter_by(kills, BY_CONTROL); }

/// Nothing but read, write, exit and sigreturn.
static void strict(void) {
    CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    CHECK(work(AFTER) == 0);
    CHECK(write(STDOUT_FILENO, "went on\n", 8) == 8);
    syscall(SYS_exit, 0);
}
/// From a call that is open: it ends, and so does the program, with the counter forbidden.
static int counter_by_number;
static void forbid_counter(void) {
    int state = 0;
    if (prctl(PR_GET_TSC, &state)) return; // aarch64 before Linux 6.12
    if (counter_by_number) CHECK(!syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
    else CHECK(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    CHECK(!prctl(PR_GET_TSC, &state) && state == PR_TSC_SIGSEGV);
}
/// System calls come as signals, but for those of the C library: the handler must see none.
static volatile sig_atomic_t dispatched;
static volatile char selector; // SYSCALL_DISPATCH_FILTER_ALLOW
static void on_dispatch(int number) {
    (void)number;
    selector = 0;
    dispatched++;
}
static void dispatch(void) {
    struct sigaction action = {.sa_handler = on_dispatch};
    CHECK(!sigaction(SIGSYS, &action, NULL));
    CHECK(!prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0L, 0L, &selector));
    selector = 1; // from here on
    CHECK(work(AFTER) == 0);
    selector = 0;
    CHECK(dispatched == 0);
    selector = 1;
    getppid();
    CHECK(dispatched == 1 && selector == 0); // it works
}
/// Makes calls that only ask: they end no recording.
static void ask(void) {
    unsigned action = SECCOMP_RET_ERRNO;
    int state = 0;
    CHECK(!syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1);
    CHECK(prctl(PR_GET_SECCOMP) == 0);
#if defined __x86_64__
    CHECK(!prctl(PR_GET_TSC, &state) && !prctl(PR_SET_TSC, PR_TSC_ENABLE));
#endif
    (void)state;
    prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0L, 0L, 0L); // an old kernel has none
}
/// A list of frames, ours among them, after memory is out of reach.
static void filter_and_list(void) {
    void *before[64], *after[64];
    int count = backtrace(before, 64);
    filter(1);
    CHECK(backtrace(after, 64) == count && count > 3 && after[count - 1] == before[count - 1]);
    CHECK(backtrace(after, 2) == 2);
}
static jmp_buf back;
static void filter_and_jump(void) {
    filter(1);
    longjmp(back, 1);
}
static void filter_and_fork(void) {
    if (!setjmp(back)) inside_open(1, filter_and_jump); // leaves a frame that the next return finds
    CHECK(work(1000) == 0);
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); // fork, where not every architecture has one; looked at call by call
    CHECK(child >= 0);
    CHECK(work(1000) == 0);
    if (!setjmp(back) && child == 0) longjmp(back, 1);
    if (child == 0) return; // through calls that were open in the parent
    int status = 1;
    CHECK(syscall(SYS_wait4, child, &status, 0, NULL) == child && status == 0);
}
static void on_signal_stack(int number) { (void)number; inside_open(2, filter_and_fork); }
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *mode = argv[1];
    printf("%s\n", mode);
    fflush(stdout);
    // Counted beforehand: afterwards the file may be out of reach.
    const char *start = getenv("TRACER_START");
    int isOff = start && !strcmp(start, "off");
    const char *clock = getenv("TRACER_CLOCK"); // not affected when the counter is locked
    if (!strcmp(mode, "chdir") || !strcmp(mode, "questions") || clock) counted("inside", BEFORE + AFTER);
    else counted_between("inside", isOff ? 0 : BEFORE, isOff ? 0 : BEFORE + AFTER);
    CHECK(work(BEFORE) == 0);
    if (!strcmp(mode, "chroot")) {
        CHECK(!mkdir("jail", 0700));
        if (chroot("jail")) CHECK(errno == EPERM);
        CHECK(!chdir("/"));
    } else if (!strcmp(mode, "unprivileged")) {
        if (geteuid() == 0) CHECK(!setgid(65534) && !setuid(65534));
    } else if (!strcmp(mode, "chdir")) CHECK(!chdir("/"));
    else if (!strcmp(mode, "seccomp_child")) CHECK(inside_open(3, filter_and_fork) == 4);
    else if (!strcmp(mode, "seccomp_inside")) {
        static char buffer[65536]; // calls are open on a stack that is not the thread's own
        stack_t stack = {.ss_sp = buffer, .ss_size = sizeof buffer};
        struct sigaction action = {.sa_handler = on_signal_stack, .sa_flags = SA_ONSTACK};
        CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
    } else if (!strcmp(mode, "seccomp_stopped")) {
        if (tracer_stop) tracer_stop();
        filter(1);
    } else if (!strcmp(mode, "strict")) strict();
    else if (!strcmp(mode, "seccomp_by_number")) filter_by(1, BY_NUMBER);
    else if (!strcmp(mode, "control_by_number")) filter_by(1, CONTROL_BY_NUMBER);
    else if (!strncmp(mode, "no_counter", 10)) {
        counter_by_number = !strcmp(mode, "no_counter_by_number");
        CHECK(inside_open(4, forbid_counter) == 5);
    } else if (!strcmp(mode, "dispatched")) CHECK(inside_open(5, dispatch) == 6);
    else if (!strcmp(mode, "questions")) ask();
    else if (!strcmp(mode, "destructor")) {
        char path[4096];
        snprintf(path, sizeof path, "%s/libending.so", getenv("BUILD"));
        CHECK(dlopen(path, RTLD_NOW));
        filter(1);
    }
    else if (!strcmp(mode, "lists_frames")) CHECK(inside_open(6, filter_and_list) == 7);
    else filter(!strcmp(mode, "seccomp_kills"));
    CHECK(work(AFTER) == 0);
    puts("went on");
    fflush(stdout);
    return 0;
}
#endif
