// fork (both sides go on), fork from several threads, of a thread that has made no call before, vfork and exec (also from two threads at once), raw clone,
// posix_spawn with an environment of its own, system, popen, exec from a thread other than main.
// compilers: gcc
// library: side
// link: -ldl
// case: fork fork
// case: fork_threads fork_threads
// case: fork_open fork_open
// case: raw_clone raw_clone
// case: unseen_thread unseen_thread
// case: vfork vfork
// case: vfork_threads vfork_threads
// case: vfork_writes vfork_writes
// case: spawn spawn
// case: system system
// case: popen popen
// case: exec_thread exec_thread
// case: exec_self exec_self
// case: fork_exec_loop fork_exec_loop
// forks: *
// native: fork_threads unseen_thread because qemu sometimes stops for ever in a fork of a process with threads
// executes: spawn system popen exec_thread exec_self fork_exec_loop vfork vfork_threads
// modes: functions counts instrumented arm
#include "subject.h"
#include <spawn.h>
int side_parent(int value);
int side_child(int value);
int side_wrap(int (*body)(int), int value);
#ifdef LIB_side
EXPORT int side_parent(int value) { return value + 1; }
EXPORT int side_child(int value) { return value + 2; }
EXPORT int side_wrap(int (*body)(int), int value) { int result = body(value); OPAQUE(); return result + 1; }
#else
extern char **environ;
static int wait_for(pid_t pid) {
    int status;
    pid_t got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {}
    CHECK(got == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static void parents(int n) { for (int i = 0; i < n; i++) CHECK(side_parent(i) == i + 1); }
static void children(int n) { for (int i = 0; i < n; i++) CHECK(side_child(i) == i + 2); }
static void fork_once(void) {
    parents(100);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        children(200);
        exit(7);
    }
    parents(100);
    CHECK(wait_for(pid) == 7);
}
static int forking(int value) { // fork while a traced call is open: it returns on both sides
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        children(10);
        return -value;
    }
    CHECK(wait_for(pid) == 9);
    parents(10);
    return value;
}
static void *fork_thread(void *unused) {
    for (int i = 0; i < 5; i++) fork_once();
    return unused;
}
static void *vfork_thread(void *unused) {
    for (int i = 0; i < 10; i++) {
        parents(3);
        pid_t pid = vfork();
        CHECK(pid >= 0);
        if (!pid) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(98);
        }
        CHECK(wait_for(pid) == 0);
        parents(3);
    }
    return unused;
}
static void on_threads(void *(*body)(void *), int count) {
    pthread_t threads[8];
    for (int i = 0; i < count; i++) CHECK(!pthread_create(&threads[i], NULL, body, NULL));
    for (int i = 0; i < count; i++) CHECK(!pthread_join(threads[i], NULL));
}
/// Straight to the kernel: no call that is recorded.
static long system_call(long number, long a, long b, long c, long d) {
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return result;
#else
    register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = 0;
    register long x8 __asm__("x8") = number;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8) : "memory");
    return x0;
#endif
}
/// The first that the agent sees of it is in the child, when another thread of the parent has begun since.
static int go[2];
static volatile int is_cloned;
static void *unseen_body(void *status) {
    long pid = system_call(SYS_clone, SIGCHLD, 0, 0, 0);
    if (pid == 0) {
        char byte;
        while (system_call(SYS_read, go[0], (long)&byte, 1, 0) == -EINTR) {}
        children(20);
        system_call(SYS_exit_group, 5, 0, 0, 0);
    }
    is_cloned = 1;
    while (system_call(SYS_wait4, pid, (long)status, 0, 0) == -EINTR) {}
    return status;
}
static void *later_body(void *unused) {
    parents(10);
    return unused;
}
static void *exec_body(void *self) {
    parents(5);
    execl(self, self, "exec_done", (char *)NULL);
    _exit(97);
}
int main(int argc, char **argv) {
    CHECK(argc >= 2);
    const char *mode = argv[1];
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(mode, "fork")) fork_once();
    else if (!strcmp(mode, "fork_threads")) on_threads(fork_thread, 4);
    else if (!strcmp(mode, "fork_open")) {
        int result = side_wrap(forking, 20);
        if (result == -19) { children(5); _exit(9); }
        CHECK(result == 21);
    } else if (!strcmp(mode, "raw_clone")) {
        parents(10);
        long pid = syscall(SYS_clone, (long)SIGCHLD, 0, 0, 0, 0);
        CHECK(pid >= 0);
        if (!pid) {
            children(20);
            syscall(SYS_exit_group, 5);
        }
        parents(10);
        CHECK(wait_for((pid_t)pid) == 5);
    } else if (!strcmp(mode, "unseen_thread")) {
        int status = 0;
        pthread_t thread;
        parents(20);
        CHECK(!pipe(go) && !pthread_create(&thread, NULL, unseen_body, &status));
        while (!is_cloned) sched_yield();
        on_threads(later_body, 1);
        CHECK(write(go[1], "", 1) == 1 && !pthread_join(thread, NULL));
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    } else if (!strcmp(mode, "vfork")) vfork_thread(NULL);
    else if (!strcmp(mode, "vfork_threads")) on_threads(vfork_thread, 2);
    else if (!strcmp(mode, "vfork_writes")) {
        // Makes calls between vfork and exec, as glibc's own posix_spawn does; the standard does not allow it.
        volatile int shared = 0;
        pid_t pid = vfork();
        CHECK(pid >= 0);
        if (!pid) {
            for (int i = 0; i < 50; i++) side_child(i);
            shared = 77;
            _exit(3);
        }
        CHECK(shared == 77);
        parents(10);
        CHECK(wait_for(pid) == 3);
    } else if (!strcmp(mode, "spawn")) {
        char *arguments[] = {"env", NULL}, *own[] = {"ONLY=this", NULL};
        pid_t pid;
        CHECK(!posix_spawn(&pid, "/usr/bin/env", NULL, NULL, arguments, own));
        CHECK(wait_for(pid) == 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, "spawned", O_WRONLY | O_CREAT, 0600);
        char *echo[] = {"echo", "into a file", NULL};
        CHECK(!posix_spawnp(&pid, "echo", &actions, NULL, echo, environ));
        CHECK(wait_for(pid) == 0 && !access("spawned", R_OK));
        parents(10);
    } else if (!strcmp(mode, "system")) {
        CHECK(system("echo from the shell; exit 3") == 3 << 8);
        parents(10);
    } else if (!strcmp(mode, "popen")) {
        FILE *pipe = popen("echo one; echo two | cat", "r");
        char line[64];
        while (fgets(line, sizeof line, pipe)) fputs(line, stdout);
        CHECK(pclose(pipe) == 0);
        parents(10);
    } else if (!strcmp(mode, "exec_thread")) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, exec_body, argv[0]));
        pthread_join(thread, NULL);
        CHECK(!"exec failed");
    } else if (!strcmp(mode, "exec_self")) exec_body(argv[0]);
    else if (!strcmp(mode, "exec_done")) children(8);
    else if (!strcmp(mode, "fork_exec_loop")) {
        for (int i = 0; i < 20; i++) {
            pid_t pid = fork();
            CHECK(pid >= 0);
            if (!pid) {
                children(1);
                execl("/bin/true", "true", (char *)NULL);
                _exit(98);
            }
            CHECK(wait_for(pid) == 0);
        }
        parents(10);
    }
    printf("%s over\n", mode);
    return 0;
}
#endif
