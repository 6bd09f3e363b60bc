// A program that may make no new code any more (MDWE; a filter as systemd's MemoryDenyWriteExecute is) goes on as without the agent:
// while it runs, with functions, return addresses and modules that come only then, in a child, and after exec.
// plugin: later
// library: known
// tree: none what is called after the change may be missing
// case: now.mdwe mdwe now {build}
// case: now.filter filter now {build}
// case: fork.mdwe mdwe fork {build}
// case: fork.filter filter fork {build}
// case: exec.mdwe mdwe exec {build}
// case: exec.filter filter exec {build}
// case: chain.mdwe mdwe chain {build}
// case: chain.filter filter chain {build}
// executes: exec.mdwe exec.filter chain.mdwe chain.filter
// native: * because what forbids code is the kernel's, and the emulator makes it
// says: 3 one line for each image that cannot be recorded
#include "subject.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#define FUNCTIONS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(a) F(b) F(c) F(d) F(e) F(f)
#define DECLARE(N) int known_##N(int);
FUNCTIONS(DECLARE)
// 4,096 of them, each with a call: more than there are stubs and labels in advance.
#define EIGHT(F, A) F(A##0) F(A##1) F(A##2) F(A##3) F(A##4) F(A##5) F(A##6) F(A##7)
#define SIXTY_FOUR(F, A) EIGHT(F, A##0) EIGHT(F, A##1) EIGHT(F, A##2) EIGHT(F, A##3) EIGHT(F, A##4) EIGHT(F, A##5) EIGHT(F, A##6) EIGHT(F, A##7)
#define MANY(F, A) SIXTY_FOUR(F, A##0) SIXTY_FOUR(F, A##1) SIXTY_FOUR(F, A##2) SIXTY_FOUR(F, A##3) SIXTY_FOUR(F, A##4) SIXTY_FOUR(F, A##5) SIXTY_FOUR(F, A##6) SIXTY_FOUR(F, A##7)
#define ALL(F) MANY(F, 0) MANY(F, 1) MANY(F, 2) MANY(F, 3) MANY(F, 4) MANY(F, 5) MANY(F, 6) MANY(F, 7)
#define DECLARE_LATER(N) int later_##N(int);
ALL(DECLARE_LATER)
int known_descend(int, int);

#if defined LIB_known
#define DEFINE(N) EXPORT int known_##N(int value) { OPAQUE(); return value + 1; }
FUNCTIONS(DEFINE)
EXPORT int known_descend(int depth, int value) { OPAQUE(); return depth ? known_descend(depth - 1, value) + 1 : known_0(value); }
#elif defined LIB_later
#define DEFINE(N) EXPORT int later_##N(int value) { OPAQUE(); return value + 1; }
ALL(DEFINE)
static int began, ended;
__attribute__((constructor)) static void begin(void) { began++; }
__attribute__((destructor)) static void end(void) { ended++; }
#define CALL(N) sum += later_##N(1);
EXPORT int later_all(void) { int sum = began; ALL(CALL) return sum; }
#else
static long plainly(long number, long a, long b, long c, long d, long e) { // no tracer sees it
#ifdef __x86_64__
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

static void forbid(const char *how) {
    if (!strcmp(how, "mdwe")) {
        // PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: Linux 6.3. An older kernel leaves the program as it is.
        long result = plainly(SYS_prctl, 65, 1, 0, 0, 0);
        CHECK(!result || result == -EINVAL);
        return;
    }
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {6, instructions};
    CHECK(!plainly(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!plainly(SYS_prctl, PR_SET_SECCOMP, 2, (long)&filter, 0, 0));
}

static int call_known(void) {
    int sum = 0;
#define CALL_KNOWN(N) sum += known_##N(1);
    for (int round = 0; round < 3; round++) { FUNCTIONS(CALL_KNOWN) }
    return sum;
}

static int call_later(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/liblater.so", folder);
    int sum = 0;
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library);
        int (*all)(void) = (int (*)(void))dlsym(library, "later_all");
        CHECK(all);
        sum += all();
        CHECK(!dlclose(library));
    }
    return sum;
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    const char *how = arguments[1], *when = arguments[2], *folder = arguments[3];
    if (!strcmp(when, "done")) {
        printf("after exec %d %d %d\n", call_known(), call_later(folder), known_descend(3000, 1));
        return 0;
    }
    printf("before %d\n", known_descend(10, 1));
    fflush(stdout);
    forbid(how);
    if (!strcmp(when, "exec") || !strcmp(when, "chain")) {
        int again = !strcmp(when, "chain");
        execl("/proc/self/exe", arguments[0], how, again ? "exec" : "done", folder, (char *)0);
        CHECK(0);
    }
    int child = !strcmp(when, "fork") ? fork() : 0;
    if (child) {
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    printf("after %d %d %d\n", call_known(), call_later(folder), known_descend(3000, 1));
    return 0;
}
#endif
