// Every way in which a process ends: the events are there, the status is the program's.
// library: last
// case: return EXPECT=0 return
// case: exit EXPECT=3 exit
// case: underscore_exit EXPECT=4 _exit
// case: quick_exit EXPECT=5 quick_exit
// case: exit_group EXPECT=6 exit_group
// case: exit_in_thread EXPECT=7 thread
// case: exit_in_handler EXPECT=8 handler
// case: exit_in_call EXPECT=9 in_call
// tree: none the subject counts its calls
// forks: *
// modes: functions arm
#include "subject.h"
int last_call(int value);
void last_open(void (*function)(void));
#ifdef LIB_last
EXPORT int last_call(int value) { return value + 1; }
EXPORT void last_open(void (*function)(void)) { function(); OPAQUE(); }
#else
static void work(void) { for (int i = 0; i < 100; i++) CHECK(last_call(i) == i + 1); }
static void *exiting(void *unused) { work(); exit(7); return unused; }
static void on_signal(int unused) { (void)unused; last_call(1); _exit(8); }
static void leave(void) { work(); exit(9); }
static void run(const char *mode) {
    work();
    pthread_t thread;
    if (!strcmp(mode, "exit")) exit(3);
    if (!strcmp(mode, "_exit")) _exit(4);
    if (!strcmp(mode, "quick_exit")) quick_exit(5);
    if (!strcmp(mode, "exit_group")) syscall(SYS_exit_group, 6);
    if (!strcmp(mode, "thread")) { pthread_create(&thread, NULL, exiting, NULL); pthread_join(thread, NULL); }
    if (!strcmp(mode, "handler")) { signal(SIGUSR2, on_signal); raise(SIGUSR2); }
    if (!strcmp(mode, "in_call")) last_open(leave);
    exit(0);
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    puts("begin");
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) run(argv[1]);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == atoi(getenv("EXPECT")));
    counted("last_call", !strcmp(argv[1], "handler") ? 101 : !strcmp(argv[1], "thread") || !strcmp(argv[1], "in_call") ? 200 : 100);
    return 0;
}
#endif
