// A process that gives things up after it has begun: chroot, dropped privileges, a seccomp filter that forbids what the
// program itself does not use (open, mmap of files, openat), an empty mount of nothing it can write to. It goes on.
// library: inside
// case: chroot chroot
// case: unprivileged unprivileged
// case: seccomp seccomp
// case: seccomp_kills seccomp_kills
// case: chdir chdir
// says: 1 files and memory may be out of reach: recording stops, the program goes on
// tree: none the subject counts what it can know; a filter may end the recording
#include "subject.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
int inside(int value);
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
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
                                  SYS_newfstatat, SYS_futex, SYS_munmap, SYS_close, SYS_openat};
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
    else filter(!strcmp(mode, "seccomp_kills"));
    CHECK(work(AFTER) == 0);
    puts("went on");
    return 0;
}
#endif
