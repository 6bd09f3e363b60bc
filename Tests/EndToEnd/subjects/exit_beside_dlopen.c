// exit() runs finalizers while another thread is inside dlopen, at the worst moment: what it opens is mapped, and not relocated.
// glibc until 2.40 runs them without the loader's lock; with later ones there is no such moment.
// compilers: gcc
// plugin: early
// plugin: holder
// plugin: held -L{build} -lholder -Wl,-rpath,{build}
// link: -ldl -lpthread
// env: BUILD={build}
// timeout: 30
// tree: none the order of threads is the subject's own matter
#include "subject.h"
enum { RELOCATING = 100, FINALIZED = 102, CONSTRUCTED = 104, EXITING = 106 }; // pipes: this number and one more
#ifdef LIB_holder
// Relocated before what needs it. Its resolver runs then, when nothing of libc may be called.
static long call(long number, long a, const void *b, long c) {
#if defined __x86_64__
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = (long)b, x2 __asm__("x2") = c;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}
static int value(void) { return 7; }
static int (*choose(void))(void) {
    static int isCalled;
    char byte = 0;
    if (isCalled++) return value; // each slot and pointer asks
    call(SYS_write, RELOCATING + 1, &byte, 1);
    call(SYS_read, FINALIZED, &byte, 1);
    return value;
}
EXPORT int chosen(void) __attribute__((ifunc("choose")));
int (*held_pointer)(void) = chosen;
#elif defined LIB_held
int chosen(void);
EXPORT int held(int value) { OPAQUE(); return value + 1; }
static int begun;
static void notify(void) { char byte = 0; CHECK(write(CONSTRUCTED + 1, &byte, 1) == 1); }
__attribute__((constructor)) static void first(void) { begun = held(1); }
__attribute__((constructor)) static void second(void) {
    CHECK(begun == 2 && chosen() == 7);
    notify();
}
#elif defined LIB_early
EXPORT int early(int value) { OPAQUE(); return value + 1; }
#include <gnu/libc-version.h>
static int waits(void) { return strtod(gnu_get_libc_version(), NULL) < 2.405; }
__attribute__((destructor(200))) static void ends(void) { // runs first
    char byte = 0;
    CHECK(early(1) == 2);
    CHECK(write(EXITING + 1, &byte, 1) == 1);
    if (waits()) CHECK(read(RELOCATING, &byte, 1) == 1);
}
__attribute__((destructor(101))) static void ended(void) {
    char byte = 0;
    CHECK(write(FINALIZED + 1, &byte, 1) == 1);
    if (waits()) CHECK(read(CONSTRUCTED, &byte, 1) == 1); // all is well there
    CHECK(write(1, "finalized\n", 10) == 10);
}
#else
static void *opened(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("BUILD"), name);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library);
    return library;
}
static void *opener(void *unused) {
    char byte = 0;
    CHECK(read(EXITING, &byte, 1) == 1);
    opened("libheld.so");
    for (;;) pause();
    return unused;
}
int main(void) {
    const int pipes[] = {RELOCATING, FINALIZED, CONSTRUCTED, EXITING};
    for (int i = 0; i < 4; i++) {
        int both[2];
        CHECK(!pipe(both) && dup2(both[0], pipes[i]) >= 0 && dup2(both[1], pipes[i] + 1) >= 0);
    }
    opened("libearly.so");
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, opener, NULL));
    puts("exit");
    counted("early", 1);
    exit(0);
}
#endif
