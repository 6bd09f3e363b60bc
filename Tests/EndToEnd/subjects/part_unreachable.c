// Makes calls that cannot be recorded (losses.py): in a child that is forked when no file can be made any more, and in a
// process that gives up its privileges unseen, when its file is full.
#include "subject.h"
#include <sys/prctl.h>
int inside(int value);
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
#else
enum { CALLS = 300000, NOBODY = 65534 };
static void work(long calls) {
    int wrong = 0;
    for (int i = 0; i < calls; i++) wrong += inside(i) != i + 1;
    CHECK(!wrong);
}
static long unseen(long number, long a, long b, long c) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}
int main(int count, char **arguments) {
    CHECK(count == 2);
    if (!strcmp(arguments[1], "child")) {
        if (!geteuid()) CHECK(!setuid(NOBODY));
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            work(CALLS);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && !status);
    } else if (!strcmp(arguments[1], "landlock")) { // as xz 5.8 does: from here on no file may be opened (landlock(7))
        struct { unsigned long files; } rules = {(1 << 13) - 1};
        long domain = syscall(444, &rules, sizeof rules, 0); // landlock_create_ruleset
        if (domain < 0) {
            puts("no landlock");
            return 0;
        }
        CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !syscall(446, domain, 0)); // landlock_restrict_self
        work(2 * CALLS);
    } else {
        if (!geteuid()) CHECK(!unseen(SYS_setresuid, NOBODY, NOBODY, NOBODY));
        work(20 * CALLS);
    }
    puts("done");
    return 0;
}
#endif
