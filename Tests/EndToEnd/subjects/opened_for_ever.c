// A program may open and close its plugins for ever: the agent's memory does not grow with it. Two that take each other's
// place in turn, with constructors, destructors and calls of their own.
// compilers: gcc
// link: -ldl -Wl,-rpath,{build}
// plugin: first=opened_for_ever.c
// plugin: second=opened_for_ever.c
// case: ring TRACER_MODE=ring TRACER_MAXSIZE=1M
// case: full
// native: * because the memory of an emulator counts with that of the program
// tree: none what a ring keeps of that many loads is not known beforehand
// modes: instrumented
#include "subject.h"
#if defined(LIB_first) || defined(LIB_second)
static int lives;
__attribute__((constructor)) static void begin(void) { lives = atoi("1"); }
__attribute__((destructor)) static void end(void) { lives = atoi("0"); }
EXPORT int plugin_work(const char *text) { int length = (int)strlen(text); OPAQUE(); return length * lives; }
#else
static void open_and_close(int times) {
    for (int i = 0; i < times; i++) {
        void *library = dlopen(i & 1 ? "libfirst.so" : "libsecond.so", RTLD_NOW);
        CHECK(library);
        int (*work)(const char *) = (int (*)(const char *))dlsym(library, "plugin_work");
        CHECK(work && work("seven!!") == 7);
        CHECK(!dlclose(library));
    }
}
int main(void) {
    open_and_close(1000);
    long before = anonymous_kilobytes();
    open_and_close(3000);
    long grown = anonymous_kilobytes() - before;
    if (grown > 128) printf("private memory has grown by %ld KB\n", grown);
    puts("4000 times");
    return 0;
}
#endif
