// Death by a signal: status and events survive. Also by abort, with a SIGABRT handler of the program's.
// library: dying
// case: segv 11
// case: kill 9
// case: term 15
// case: pipe 13
// case: abort 6
// case: fpe 8
// forks: *
// modes: functions counts instrumented call_sites
#include "subject.h"
void dying_call(int signal);
int dying_work(int value);
#ifdef LIB_dying
EXPORT int dying_work(int value) { return value + 1; }
EXPORT void dying_call(int signal) {
    dying_work(1);
    if (signal == SIGABRT) abort();
    if (signal == SIGSEGV) *(volatile int *)8 = 1;
    if (signal == SIGFPE) { volatile int zero = 0; zero = 1 / zero; }
    raise(signal);
}
#else
static void handler(int signal) { (void)signal; dying_work(3); }
int main(int argc, char **argv) {
    CHECK(argc == 2);
    int number = atoi(argv[1]);
    if (number == SIGABRT) signal(SIGABRT, handler);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) { dying_call(number); _exit(0); }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == number);
    puts("died as it should");
    return 0;
}
#endif
