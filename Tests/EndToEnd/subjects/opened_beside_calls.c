// A thread opens libraries with thousands of functions, and dozens of libraries, while others make calls that the agent
// looks at one by one: what it knows of functions and modules grows under them.
// compilers: gcc
// plugin: many=part_many.c -O0
// plugin: little
// after: mkdir -p copies && for n in 0 1 2 3; do cp libmany.so copies/libmany$n.so; done && for n in $(seq 60); do cp liblittle.so copies/liblittle$n.so; done
// link: -ldl -lpthread
// env: BUILD={build}
// case: functions functions
// case: modules modules
// tree: none threads run side by side; the subject counts its calls
#include "subject.h"
#ifdef LIB_little
EXPORT int little(int value) { OPAQUE(); return value + 1; }
EXPORT int little_calls(int value) { return little(value); }
#else
static volatile int over;
static void *caller(void *unused) {
    while (!over) {
        CHECK(syscall(SYS_getpid) == getpid());
    }
    return unused;
}
static int opened(const char *name, int number, const char *function, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%d.so", getenv("BUILD"), name, number);
    void *library = dlopen(path, flags);
    int (*called)(int) = library ? (int (*)(int))dlsym(library, function) : NULL;
    CHECK(called);
    return called(1);
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK(!pthread_create(&threads[i], NULL, caller, NULL));
    if (!strcmp(argv[1], "functions")) {
        for (int n = 0; n < 4; n++) CHECK(opened("copies/libmany", n, "many_calls", n & 1 ? RTLD_LAZY : RTLD_NOW) == 10000);
        counted("many_1234", 4);
        counted("many_9999", 4);
    } else {
        for (int n = 1; n <= 60; n++) CHECK(opened("copies/liblittle", n, "little_calls", n & 1 ? RTLD_LAZY : RTLD_NOW) == 2);
        counted("little", 60);
    }
    over = 1;
    for (int i = 0; i < 2; i++) CHECK(!pthread_join(threads[i], NULL));
    printf("%s over\n", argv[1]);
    return 0;
}
#endif
