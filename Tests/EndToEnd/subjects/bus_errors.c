// SIGBUS is the program's: what it asks for and sets is what it gets, its own faults reach its own handler with its own
// mask, stack and siginfo, and its death is its own.
// library: bus
// case: own own
// case: once once
// case: default default
// case: raised raised
// case: sent sent
// case: ignored ignored
// case: spawned spawned
// case: waited waited
// forks: default raised sent
// native: waited because qemu 7.2 hangs there without the agent too
// executes: spawned
// tree: none the subject checks itself
// modes: instrumented
#include "subject.h"
long bus_step(long value);
int bus_touch(volatile char *address);
#ifdef LIB_bus
EXPORT long bus_step(long value) { return value * 3 + 1; }
EXPORT int bus_touch(volatile char *address) { int value = *address; OPAQUE(); return value; }
#else
static sigjmp_buf back;
static char alternate[65536];
static volatile char *page;
static volatile int seen, in_alternate, blocked, code;
static volatile long fault_address;
static void handler(int number, siginfo_t *info, void *context) {
    (void)context;
    char here;
    sigset_t mask;
    bus_step(1);
    CHECK(!sigprocmask(SIG_BLOCK, NULL, &mask));
    seen += number == SIGBUS;
    in_alternate = &here >= alternate && &here < alternate + sizeof alternate;
    blocked = sigismember(&mask, SIGUSR1) * 4 + sigismember(&mask, SIGBUS) * 2 + sigismember(&mask, SIGUSR2);
    code = info->si_code;
    fault_address = (long)info->si_addr;
    if (info->si_code > 0) siglongjmp(back, 1);
}
/// A mapping whose file has become shorter: the program's own fault.
static void own_fault(void) {
    char name[] = "/tmp/bus_errorsXXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && !unlink(name) && !ftruncate(file, 4096));
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(page != MAP_FAILED && !ftruncate(file, 0));
    close(file);
}
static void show(const char *what) {
    printf("%s: seen %d, alternate %d, blocked %d, code %d, at the page %d\n", what, seen, in_alternate, blocked, code, fault_address == (long)page);
    fflush(stdout);
}
static void check_is(void (*expected)(int, siginfo_t *, void *), int flags) {
    struct sigaction now;
    CHECK(!sigaction(SIGBUS, NULL, &now));
    CHECK((void *)now.sa_sigaction == (void *)expected);
    CHECK((now.sa_flags & ~0x04000000) == flags);
    for (int i = 0; i < 50; i++) bus_step(i);
}
static void *raise_in_thread(void *unused) { raise(SIGBUS); return unused; }
int main(int argc, char **argv) {
    CHECK(argc > 1);
    const char *how = argv[1];
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    CHECK(!sigaltstack(&stack, NULL));
    for (int i = 0; i < 100; i++) bus_step(i);
    if (!strcmp(how, "own")) {
        check_is((void *)SIG_DFL, 0);
        CHECK(!sigaction(SIGBUS, &action, &old) && old.sa_handler == SIG_DFL);
        own_fault();
        for (int i = 0; i < 3; i++) if (!sigsetjmp(back, 1)) { bus_touch(page); CHECK(0); }
        show("fault");
        check_is(handler, SA_SIGINFO | SA_ONSTACK);
        CHECK(!kill(getpid(), SIGBUS));
        CHECK(seen == 4);
        show("sent");
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
        sigemptyset(&action.sa_mask);
        CHECK(!sigaction(SIGBUS, &action, &old) && old.sa_sigaction == handler && sigismember(&old.sa_mask, SIGUSR1));
        if (!sigsetjmp(back, 1)) { bus_touch(page); CHECK(0); }
        show("not deferred");
        CHECK(signal(SIGBUS, SIG_DFL) == (void (*)(int))handler);
        check_is((void *)SIG_DFL, SA_RESTART);
        CHECK(signal(SIGBUS, SIG_IGN) == SIG_DFL && signal(SIGBUS, SIG_DFL) == SIG_IGN);
    } else if (!strcmp(how, "once")) {
        action.sa_flags |= SA_RESETHAND;
        CHECK(!sigaction(SIGBUS, &action, NULL));
        check_is(handler, SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
        CHECK(!raise(SIGBUS) && seen == 1);
        check_is((void *)SIG_DFL, SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
        show("once");
    } else if (!strcmp(how, "default") || !strcmp(how, "raised") || !strcmp(how, "sent") || !strcmp(how, "spawned")) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 100; i++) bus_step(i);
            if (how[0] == 'd') { own_fault(); bus_touch(page); }
            if (how[0] == 'r') {
                pthread_t thread;
                CHECK(!pthread_create(&thread, NULL, raise_in_thread, NULL) && !pthread_join(thread, NULL));
            }
            if (how[1] == 'e') { kill(getpid(), SIGBUS); for (;;) pause(); }
            // A child of vfork that puts everything back, as shells do; its parent's handler must not change.
            CHECK(!sigaction(SIGBUS, &action, NULL));
            for (int i = 0; i < 100; i++) bus_step(i);
            pid_t other = vfork();
            if (!other) {
                signal(SIGBUS, SIG_IGN);
                bus_step(1);
                signal(SIGBUS, SIG_IGN);
                execlp("sh", "sh", "-c", "grep SigIgn /proc/self/status | tail -c 4; kill -BUS $$; echo still here", NULL);
                _exit(98);
            }
            int status;
            CHECK(waitpid(other, &status, 0) == other && status == 0);
            check_is(handler, SA_SIGINFO | SA_ONSTACK);
            CHECK(!raise(SIGBUS) && seen == 1);
            _exit(17);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        printf("%s: signal %d status %d\n", how, WIFSIGNALED(status) ? WTERMSIG(status) : 0, WEXITSTATUS(status));
    } else if (!strcmp(how, "ignored")) {
        CHECK(signal(SIGBUS, SIG_IGN) == SIG_DFL);
        for (int i = 0; i < 100; i++) bus_step(i);
        CHECK(!raise(SIGBUS));
        CHECK(!system("kill -BUS $$; echo an ignored signal stays so"));
    } else if (!strcmp(how, "waited")) {
        // Blocked and waited for: no slow path may let it through or take it away from the thread that waits.
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGBUS);
        CHECK(!sigaction(SIGBUS, &action, NULL) && !sigprocmask(SIG_BLOCK, &set, NULL));
        CHECK(!kill(getpid(), SIGBUS));
        for (long i = 0; i < 200000; i++) bus_step(i);
        siginfo_t info;
        CHECK(sigwaitinfo(&set, &info) == SIGBUS && info.si_code == SI_USER && info.si_pid == getpid() && seen == 0);
        puts("waited for");
    }
    puts("went on");
    return 0;
}
#endif
