// N calls made, N recorded: one thread, four threads at once, a fork in the middle, nested with a min-time filter off.
// library: exact
// compilers: gcc clang
// case: one_thread 1 250000
// case: four_threads 4 60000
// case: twelve_threads 12 10000
// tree: none the subject counts its calls
// forks: *
// native: four_threads twelve_threads because qemu sometimes stops for ever in a fork of a process with threads
#include "subject.h"
long exact_leaf(long value);
long exact_parent(long value);
#ifdef LIB_exact
EXPORT long exact_leaf(long value) { return value + 1; }
EXPORT long exact_parent(long value) { long r = exact_leaf(value); OPAQUE(); return exact_leaf(r) + 1; }
#else
static long calls;
static void *body(void *unused) {
    for (long i = 0; i < calls; i++)
        CHECK(i % 10 == 0 ? exact_parent(i) == i + 3 : exact_leaf(i) == i + 1);
    return unused;
}
static void threads(int count) {
    pthread_t thread[16];
    for (int i = 1; i < count; i++) CHECK(!pthread_create(&thread[i], NULL, body, NULL));
    body(NULL);
    for (int i = 1; i < count; i++) CHECK(!pthread_join(thread[i], NULL));
}
int main(int argc, char **argv) {
    CHECK(argc == 3);
    int count = atoi(argv[1]);
    calls = atol(argv[2]);
    threads(count);
    long before = calls;
    calls = 5000;
    pid_t pid = fork();
    CHECK(pid >= 0);
    threads(count); // both sides
    if (!pid) _exit(0);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    long parents = count * (before + 2 * calls) / 10, leaves = count * (before + 2 * calls) - parents + 2 * parents;
    counted("exact_parent", (unsigned long)parents);
    counted("exact_leaf", (unsigned long)leaves);
    puts("counted");
    return 0;
}
#endif
