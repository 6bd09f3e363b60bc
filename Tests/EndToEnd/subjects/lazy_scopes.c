// Slots of modules that were opened later and are bound at their first call: each leads to the function that the loader finds
// then, keeps the target's module, and every call through it is recorded, the first one too.
// compilers: gcc clang
// plugin: first
// plugin: second
// plugin: caller -Wl,-z,lazy -L{build} -lsecond -Wl,-rpath,{build}
// plugin: deep -Wl,-z,lazy -DLIB_caller -L{build} -lsecond -Wl,-rpath,{build}
// plugin: inner -Wl,-z,lazy
// plugin: outer -Wl,-z,lazy -L{build} -linner -Wl,-rpath,{build}
// plugin: helper
// plugin: chosen -Wl,-z,lazy -L{build} -lhelper -Wl,-rpath,{build}
// plugin: chooser -Wl,-z,lazy -L{build} -lchosen -lhelper -Wl,-rpath,{build}
// plugin: many
// plugin: racer -Wl,-z,lazy -L{build} -lmany -Wl,-rpath,{build}
// plugin: ending -Wl,-z,lazy -L{build} -lmany -Wl,-rpath,{build}
// link: -ldl -lpthread -lm
// env: BUILD={build}
// variant: gnu
// variant: lld -fuse-ld=lld
// variant: mold -fuse-ld=mold
// case: order order
// case: local local
// case: deepbind deepbind
// case: later later
// case: kept kept
// case: arguments arguments
// case: resolver resolver
// case: missing missing
// case: namespace namespace
// case: reload reload
// case: threads threads
// case: destructor destructor
// case: forked forked
// forks: missing forked
// tree: none each call returns who was called, and the subject counts them
#include "subject.h"
struct large { long words[6]; };
struct pair { double a; long b; };
int foo(void);
int inner_asks(void);
int outer_value(void);
int helper(int value);
int chosen(int value);
long eight(long a, long b, long c, long d, long e, long f, long g, long h, double i, double j, double k, double l, double m,
           double n, double o, double p, double q);
struct large whole(int seed, double factor);
struct pair both(double a, long b);
double varied(int count, ...);
long double extended(long double value);
int nowhere(void);
#if defined __x86_64__
#define WIDE(bits, what) \
    typedef long vector_##bits __attribute__((vector_size(bits / 8))); \
    __attribute__((target(what))) vector_##bits wide_##bits(vector_##bits a, vector_##bits b, vector_##bits c);
WIDE(256, "avx2")
WIDE(512, "avx512f")
#endif
#define EACH_TEN(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3) DO(n##4) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9)
#define EACH(DO) EACH_TEN(DO, 1) EACH_TEN(DO, 2) EACH_TEN(DO, 3) EACH_TEN(DO, 4) EACH_TEN(DO, 5) EACH_TEN(DO, 6)
#define DECLARE(n) int raced_##n(int value);
EACH(DECLARE)
#if defined LIB_first
EXPORT int foo(void) { OPAQUE(); return 1; }
#elif defined LIB_second
EXPORT int foo(void) { OPAQUE(); return 2; }
EXPORT long eight(long a, long b, long c, long d, long e, long f, long g, long h, double i, double j, double k, double l, double m,
                  double n, double o, double p, double q) {
    OPAQUE();
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + (long)(9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p + 17 * q);
}
EXPORT struct large whole(int seed, double factor) {
    struct large result;
    for (int i = 0; i < 6; i++) result.words[i] = (long)(seed * factor) + i;
    return result;
}
EXPORT struct pair both(double a, long b) { OPAQUE(); return (struct pair){a * 2, b * 3}; }
EXPORT double varied(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    while (count--) sum = sum * 2 + va_arg(list, double);
    va_end(list);
    return sum;
}
EXPORT long double extended(long double value) { OPAQUE(); return value * 3; }
#if defined __x86_64__
EXPORT __attribute__((target("avx2"))) vector_256 wide_256(vector_256 a, vector_256 b, vector_256 c) { return a + 2 * b + 3 * c; }
EXPORT __attribute__((target("avx512f"))) vector_512 wide_512(vector_512 a, vector_512 b, vector_512 c) { return a + 2 * b + 3 * c; }
#endif
#elif defined LIB_caller
#if defined __x86_64__
#define CALL_WIDE(bits, what) \
    static __attribute__((target(what))) int call_wide_##bits(void) { \
        vector_##bits a, b, c; \
        for (int i = 0; i < bits / 64; i++) { a[i] = 3 + i; b[i] = 50 + i * i; c[i] = 700 - i; } \
        vector_##bits sum = wide_##bits(a, b, c); \
        for (int i = 0; i < bits / 64; i++) if (sum[i] != 3 + i + 2 * (50 + i * i) + 3 * (700 - i)) return 0; \
        return 1; \
    }
CALL_WIDE(256, "avx2")
CALL_WIDE(512, "avx512f")
#endif
EXPORT int call_foo(void) { int result = foo(); OPAQUE(); return result; }
EXPORT int call_nowhere(void) { return nowhere() + 1; }
EXPORT int call_all(void) {
    CHECK(eight(1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9) == 204 + 645);
    struct large large = whole(10, 1.5);
    for (int i = 0; i < 6; i++) CHECK(large.words[i] == 15 + i);
    struct pair pair = both(1.25, 7);
    CHECK(pair.a == 2.5 && pair.b == 21);
    CHECK(varied(9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 1013);
    CHECK(extended(1.5L) == 4.5L);
#if defined __x86_64__
    CHECK(!__builtin_cpu_supports("avx2") || call_wide_256());
    CHECK(!__builtin_cpu_supports("avx512f") || call_wide_512());
#endif
    return 0;
}
#elif defined LIB_inner
EXPORT int inner_asks(void) { return outer_value() + 100; } // whoever has it
#elif defined LIB_outer
EXPORT int outer_value(void) { OPAQUE(); return 5; }
EXPORT int outer_asks(void) { return inner_asks() + 1000; }
#elif defined LIB_helper
EXPORT int helper(int value) { OPAQUE(); return value + 1; }
#elif defined LIB_chosen // its resolver calls through a slot of its own
static int one(int value) { return value + 10; }
static int other(int value) { return value + 20; }
static int (*choose(void))(int) { return helper(1) == 2 ? other : one; }
EXPORT int chosen(int value) __attribute__((ifunc("choose")));
#elif defined LIB_chooser
EXPORT int call_chosen(int value) { return chosen(value) + helper(value); }
#elif defined LIB_many
#define DEFINE(n) EXPORT int raced_##n(int value) { OPAQUE(); return value + 1##n; }
EACH(DEFINE)
#elif defined LIB_racer
#define CALL(n) CHECK(raced_##n(round) == round + 1##n);
EXPORT void race(int round) { EACH(CALL) }
#elif defined LIB_ending
__attribute__((constructor)) static void begun(void) { CHECK(raced_10(1) == 111); }
__attribute__((destructor)) static void ended(void) { CHECK(raced_10(2) == 112 && raced_20(2) == 122); }
EXPORT int nothing(void) { return 0; }
#else
enum { THREADS = 4, ROUNDS = 200 };
static void *opened(const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/lib%s.so", getenv("BUILD"), name);
    void *library = dlopen(path, flags);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    return library;
}
static int called(void *library, const char *name) {
    int (*function)(int) = (int (*)(int))dlsym(library, name);
    CHECK(function);
    return function(1);
}
static pthread_barrier_t barrier;
static void (*race)(int);
static void *racer(void *unused) {
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < ROUNDS; i++) race(i);
    return unused;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    const char *mode = argv[1];
    if (!strcmp(mode, "order")) { // what was opened for all comes before the caller's own
        opened("first", RTLD_LAZY | RTLD_GLOBAL);
        void *caller = opened("caller", RTLD_LAZY);
        for (int i = 0; i < 3; i++) CHECK(called(caller, "call_foo") == 1);
        counted("foo", 3);
    } else if (!strcmp(mode, "local")) {
        opened("first", RTLD_LAZY);
        void *caller = opened("caller", RTLD_LAZY);
        for (int i = 0; i < 3; i++) CHECK(called(caller, "call_foo") == 2);
        counted("foo", 3);
    } else if (!strcmp(mode, "deepbind")) {
        opened("first", RTLD_LAZY | RTLD_GLOBAL);
        CHECK(called(opened("deep", RTLD_LAZY | RTLD_DEEPBIND), "call_foo") == 2);
        CHECK(called(opened("caller", RTLD_LAZY), "call_foo") == 1);
        counted("foo", 2);
    } else if (!strcmp(mode, "later")) { // at the first call, and not when the caller was opened
        void *caller = opened("caller", RTLD_LAZY);
        opened("first", RTLD_LAZY | RTLD_GLOBAL);
        for (int i = 0; i < 3; i++) CHECK(called(caller, "call_foo") == 1);
        counted("foo", 3);
    } else if (!strcmp(mode, "kept")) { // the loader notes that inner needs outer now
        void *outer = opened("outer", RTLD_LAZY);
        CHECK(called(outer, "outer_asks") == 1105);
        void *inner = opened("inner", RTLD_LAZY);
        CHECK(!dlclose(outer));
        CHECK(called(inner, "inner_asks") == 105);
        counted("outer_value", 2);
    } else if (!strcmp(mode, "arguments")) {
        void *caller = opened("caller", RTLD_LAZY);
        for (int i = 0; i < 2; i++) CHECK(called(caller, "call_all") == 0);
        counted("eight", 2);
        counted("whole", 2);
        counted("both", 2);
        counted("varied", 2);
        counted("extended", 2);
    } else if (!strcmp(mode, "resolver")) {
        void *chooser = opened("chooser", RTLD_LAZY);
        for (int i = 0; i < 3; i++) CHECK(called(chooser, "call_chosen") == 21 + 2);
        counted("chosen", 3);
    } else if (!strcmp(mode, "missing")) {
        int pipes[2], status;
        CHECK(!pipe(pipes));
        void *caller = opened("caller", RTLD_LAZY);
        pid_t child = fork();
        if (child == 0) {
            dup2(pipes[1], 2);
            called(caller, "call_nowhere");
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        char text[4096] = "";
        CHECK(read(pipes[0], text, sizeof text - 1) > 0);
        char *said = strstr(text, "libcaller.so");
        CHECK(said);
        printf("%d %s", WEXITSTATUS(status), said);
    } else if (!strcmp(mode, "namespace")) {
        opened("first", RTLD_LAZY | RTLD_GLOBAL);
        char path[4096];
        snprintf(path, sizeof path, "%s/libcaller.so", getenv("BUILD"));
        void *there = dlmopen(LM_ID_NEWLM, path, RTLD_LAZY);
        CHECK(there);
        for (int i = 0; i < 3; i++) CHECK(called(there, "call_foo") == 2);
        CHECK(called(opened("caller", RTLD_LAZY), "call_foo") == 1);
        // Before glibc 2.35 no unwinder would find its way there: such a module is left alone (docs/reference/compatibility.md, dlmopen).
        counted("foo", dlsym(RTLD_DEFAULT, "_dl_find_object") ? 4 : 1);
    } else if (!strcmp(mode, "reload")) {
        for (int i = 0; i < 500; i++) {
            void *caller = opened("caller", RTLD_LAZY);
            CHECK(called(caller, "call_foo") == 2 && called(caller, "call_foo") == 2 && !dlclose(caller));
        }
        counted("foo", 1000);
    } else if (!strcmp(mode, "threads")) {
        *(void **)&race = dlsym(opened("racer", RTLD_LAZY), "race");
        CHECK(race && !pthread_barrier_init(&barrier, NULL, THREADS));
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, racer, NULL));
        for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
#define COUNT(n) counted("raced_" #n, THREADS * ROUNDS);
        EACH(COUNT)
    } else if (!strcmp(mode, "destructor")) {
        void *ending = opened("ending", RTLD_LAZY);
        CHECK(!dlclose(ending));
        opened("ending", RTLD_LAZY); // left to the end of the program
        counted("raced_10", 4);
        counted("raced_20", 2);
    } else if (!strcmp(mode, "forked")) { // the first call is the child's
        void *caller = opened("caller", RTLD_LAZY);
        int status;
        pid_t child = fork();
        if (child == 0) _exit(called(caller, "call_foo") + called(caller, "call_foo"));
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
        CHECK(called(caller, "call_foo") == 2);
        counted("foo", 3);
    }
    printf("%s over\n", mode);
    return 0;
}
#endif
