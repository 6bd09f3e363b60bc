// A process that gives things up after it has begun: chroot, dropped privileges, a seccomp filter that forbids what the
// program itself does not use (open, mmap of files, openat), an empty mount of nothing it can write to. It goes on.
// library: inside
// case: chroot chroot
// case: unprivileged unprivileged
// case: seccomp seccomp
// case: seccomp_kills seccomp_kills
// case: seccomp_child seccomp_child
// case: seccomp_inside seccomp_inside
// case: chdir chdir
// forks: seccomp_child seccomp_inside
// says: 1 files and memory may be out of reach: recording stops, the program goes on
// tree: none the subject counts what it can know; a filter may end the recording
#include "subject.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
int inside(int value);
int inside_open(int value, void (*callback)(void));
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
EXPORT int inside_open(int value, void (*callback)(void)) { callback(); OPAQUE(); return value + 1; }
#else
enum { BEFORE = 100, AFTER = 300000 }; // enough afterwards for several chunks
static unsigned long work(unsigned long n) {
    unsigned long wrong = 0;
    for (unsigned long i = 0; i < n; i++) wrong += inside((int)i) != (int)i + 1;
    return wrong;
}
static void filter(int kills) {
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
    CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole));
    if (!kills) CHECK(open("/etc/passwd", O_RDONLY) < 0 && errno == EPERM);
}
static jmp_buf back;
static void filter_and_jump(void) {
    filter(1);
    longjmp(back, 1);
}
static void filter_and_fork(void) {
    if (!setjmp(back)) inside_open(1, filter_and_jump); // leaves a frame that the next return finds
    CHECK(work(1000) == 0);
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); // fork, where not every processor has one; looked at call by call
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
    if (strcmp(mode, "chdir")) counted_between("inside", BEFORE, BEFORE + AFTER);
    else counted("inside", BEFORE + AFTER);
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
        static char room[65536]; // calls are open on a stack that is not the thread's own
        stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
        struct sigaction action = {.sa_handler = on_signal_stack, .sa_flags = SA_ONSTACK};
        CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
    } else filter(!strcmp(mode, "seccomp_kills"));
    CHECK(work(AFTER) == 0);
    puts("went on");
    fflush(stdout);
    return 0;
}
#endif
