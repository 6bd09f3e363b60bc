// Somebody else cuts the trace while four threads make calls. The program goes on; the recording ends with one line.
// library: cut
// case: to_nothing nothing
// case: to_half half
// case: filtered TRACER_MINMS=0.001 nothing
// case: handler_owner owner
// case: in_child child
// case: at_once at_once
// forks: in_child
// says: 2 a trace that was cut is not recorded on
// untraced: the subject removes what it has cut
#include "subject.h"
long cut_step(long value);
#ifdef LIB_cut
EXPORT long cut_step(long value) { return value * 3 + 1; }
#else
static volatile int has_cut, seen;
static int started; // libc lets a thread begin with all signals blocked, and who blocks SIGBUS is killed
static void handler(int number) { seen += number == SIGBUS; }
static void *work(void *sum) {
    long value = 1;
    __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    for (long i = 0, after = 0; after < 200000; i++) {
        value = cut_step(value) & 0xffffff;
        if (has_cut) after++;
    }
    *(long *)sum = value & 0;
    return NULL;
}
/// A process apart does it. Bare there is nothing to cut.
static void with_traces(const char *command) {
    const char *output = getenv("TRACER_OUT");
    if (!output) return;
    char folder[4096], line[9000];
    snprintf(folder, sizeof folder, "%s", output);
    *strrchr(folder, '/') = 0;
    snprintf(line, sizeof line, "cd '%s' && %s", folder, command);
    unsetenv("LD_PRELOAD");
    CHECK(system(line) == 0);
}
static void cut_while_hot(const char *size) {
    char command[64];
    snprintf(command, sizeof command, "truncate -s %s *.trace", size);
    pthread_t threads[4];
    long sums[5] = {1, 1, 1, 1, 1};
    for (int i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, work, &sums[i]));
    while (__atomic_load_n(&started, __ATOMIC_RELAXED) < 4) sched_yield();
    for (int i = 0; i < 1000; i++) cut_step(i);
    with_traces(command);
    has_cut = 1;
    work(&sums[4]);
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
    for (int i = 0; i < 5; i++) CHECK(sums[i] == 0);
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *how = argv[1];
    if (!strcmp(how, "owner")) {
        CHECK(signal(SIGBUS, handler) == SIG_DFL);
        cut_while_hot("0");
        CHECK(seen == 0 && signal(SIGBUS, SIG_DFL) == handler);
    } else if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (child == 0) {
            cut_while_hot("0");
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        for (int i = 0; i < 1000; i++) cut_step(i);
    } else if (!strcmp(how, "at_once")) {
        with_traces("truncate -s 0 *.trace"); // and no call is made any more but those of the end
    } else cut_while_hot(!strcmp(how, "half") ? "40000" : "0");
    with_traces("rm -f *.trace");
    puts("went on");
    return 0;
}
#endif
