// The program sees the same descriptors, signal dispositions, environment, limits, threads and working directory as
// without the agent.
// case: seen seen
// case: none_left none_left
// native: none_left because an emulator does not know the mapping without a descriptor
// tree: none what is compared is the output
// modes: arm
#include "subject.h"
#include <dirent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
extern char **environ;
static void *body(void *unused) { return unused; }
/// Threads and calls go on.
static int none_left(void) {
    pthread_t thread;
    struct rlimit limit = {3, 3};
    for (int i = 3; i < 64; i++) close(i);
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
    for (int i = 0; i < 20; i++) CHECK(!pthread_create(&thread, NULL, body, NULL) && !pthread_join(thread, NULL));
    for (long i = 0; i < 300000; i++) CHECK(getpid() > 1); // more than a chunk
    puts("without descriptors");
    return 0;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (!strcmp(argv[1], "none_left")) return none_left();
    int pipes[2];
    printf("open %d ", open("/dev/null", O_RDONLY));
    printf("dup %d ", dup(1));
    CHECK(!pipe(pipes));
    printf("pipe %d %d socket %d\n", pipes[0], pipes[1], socket(AF_UNIX, SOCK_STREAM, 0));
    DIR *list = opendir("/proc/self/fd");
    int highest = 0, count = 0;
    for (struct dirent *entry; (entry = readdir(list)); count++)
        if (atoi(entry->d_name) > highest) highest = atoi(entry->d_name);
    closedir(list);
    printf("%d descriptors, highest %d\n", count - 2, highest);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;
        if (!sigaction(i, NULL, &action) && action.sa_handler != SIG_DFL) printf("signal %d is handled\n", i);
    }
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int i = 1; i < NSIG; i++) if (sigismember(&blocked, i) == 1) printf("signal %d is blocked\n", i);
    stack_t stack;
    CHECK(!sigaltstack(NULL, &stack));
    printf("alternate stack: flags %d\n", stack.ss_flags);
    list = opendir("/proc/self/task");
    for (count = 0; readdir(list); count++) {}
    closedir(list);
    printf("%d tasks, umask %o, errno %d\n", count - 2, umask(0), errno);
    struct rlimit limit;
    for (int i = 0; i < RLIM_NLIMITS; i++) CHECK(!getrlimit(i, &limit));
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "TRACER_OUT=", 11)) puts(*e);
    list = opendir(".");
    for (count = 0; readdir(list); count++) {}
    closedir(list);
    printf("%d files here\n", count - 2);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, body, NULL) && !pthread_join(thread, NULL));
    return 0;
}
