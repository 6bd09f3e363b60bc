// A server that gives up what let the agent open its file: another user, another root directory, mounts of its own; by
// libc's functions and by number, alone and beside other threads, in a child that was forked before. No call is lost.
// library: inside
// link: -lpthread
// case: user user
// case: user_by_number user_by_number
// case: user_excluded TRACER_EXCLUDE=libc.so* user
// case: user_off TRACER_START=off user
// case: user_ring TRACER_MODE=ring TRACER_MAXSIZE=64M user
// case: group_and_user group_and_user
// case: root_directory root_directory
// case: mounts mounts
// case: threads threads
// case: worker worker
// forks: worker
// native: * because an emulator does not know the mapping without a descriptor
// tree: none the subject counts its calls
#include "subject.h"
#include <grp.h>
#include <sys/mount.h>
#include <sys/stat.h>
extern void tracer_start(void) __attribute__((weak));
int inside(int value);
#ifdef LIB_inside
EXPORT int inside(int value) { return value + 1; }
#else
enum { CALLS = 300000, THREADS = 4, NOBODY = 65534 }; // several chunks of the file
static void work(void) {
    int wrong = 0;
    for (int i = 0; i < CALLS; i++) wrong += inside(i) != i + 1;
    CHECK(!wrong);
}
static void *body(void *unused) {
    work();
    return unused;
}
static void drop(const char *mode) {
    if (geteuid() != 0) return; // nothing to give up: the same calls, and nothing lost either
    if (!strcmp(mode, "user") || !strcmp(mode, "threads") || !strcmp(mode, "worker")) {
        CHECK(!setuid(NOBODY));
    } else if (!strcmp(mode, "user_by_number")) {
        CHECK(!syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY));
    } else if (!strcmp(mode, "group_and_user")) {
        CHECK(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) && !setresuid(NOBODY, NOBODY, NOBODY));
    } else if (!strcmp(mode, "root_directory")) {
        CHECK(!mkdir("jail", 0755) && !chroot("jail") && !chdir("/"));
    } else if (!strcmp(mode, "mounts")) {
        if (unshare(CLONE_NEWNS)) return; // a container may not
        CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) && !mount("none", "/tmp", "tmpfs", 0, NULL));
    } else {
        CHECK(0);
    }
}
int main(int count, char **arguments) {
    CHECK(count == 2);
    const char *mode = arguments[1];
    int threads = strcmp(mode, "threads") ? 0 : THREADS;
    if (tracer_start && getenv("TRACER_START")) tracer_start();
    counted("inside", CALLS * (threads + 1ul));
    if (!strcmp(mode, "worker")) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            drop(mode);
            work();
            return 0; // in order, as a worker ends
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && !status);
        puts("the worker has done its work");
        return 0;
    }
    drop(mode);
    pthread_t all[THREADS];
    for (int i = 0; i < threads; i++) CHECK(!pthread_create(&all[i], NULL, body, NULL));
    work();
    for (int i = 0; i < threads; i++) CHECK(!pthread_join(all[i], NULL));
    puts("done");
    return 0;
}
#endif
