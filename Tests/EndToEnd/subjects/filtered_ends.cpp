// Under a time filter a call that took long is kept, however it ended: by return, by exception, by longjmp, with its thread, with its
// process. The short ones are counted, however they ended.
// library: long -pthread
// link: -pthread
// forks: *
// executes: *
// env: TRACER_MINMS=2
// modes: call_sites arm
#include "subject.h"
EXPORT void long_busy(int how);
EXPORT void long_quick(int how);
EXPORT void long_jump(jmp_buf *to);
enum { RETURNS, THROWS, ENDS_THREAD, ABORTS, IS_KILLED, FAULTS, EXITS, EXECUTES };
#ifdef LIB_long
static void work() { // busy until the clock says so, without sleeping: sure to last
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 5000000);
}
static void leave(int how) {
    char path[] = "/proc/self/exe", run[] = "executed", *arguments[] = {run, run, nullptr};
    switch (how) {
    case THROWS: throw how;
    case ENDS_THREAD: pthread_exit(nullptr);
    case ABORTS: abort();
    case IS_KILLED: kill(getpid(), SIGKILL); pause();
    case FAULTS: *(volatile int *)8 = 1; break;
    case EXITS: _exit(3);
    case EXECUTES: execv(path, arguments);
    }
}
void long_busy(int how) { work(); leave(how); }
void long_quick(int how) { leave(how); }
void long_jump(jmp_buf *to) { work(); longjmp(*to, 1); }
#else
static void *thread(void *unused) {
    long_busy(ENDS_THREAD);
    return unused;
}
static int child(int how) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        long_busy(how);
        _exit(98);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}
int main(int count, char **) {
    if (count > 1) return 5;
    int caught = 0;
    for (int i = 0; i < 6; i++) try { long_busy(i % 2); } catch (int) { caught++; }
    for (int i = 0; i < 1000; i++) try { long_quick(i % 2); } catch (int) { caught++; }
    jmp_buf here;
    if (!setjmp(here)) long_jump(&here);
    for (int i = 0; i < 4; i++) {
        pthread_t id;
        CHECK(!pthread_create(&id, nullptr, thread, nullptr) && !pthread_join(id, nullptr));
    }
    CHECK(child(ABORTS) == SIGABRT && child(IS_KILLED) == SIGKILL && child(FAULTS) == SIGSEGV && child(EXITS) == 3 && child(EXECUTES) == 5);
    counted("long_busy", 15);
    counted("long_jump", 1);
    printf("caught %d\n", caught);
    return 0;
}
#endif
