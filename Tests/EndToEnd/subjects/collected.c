// Boehm's conservative collector frees what no register and no word of a stack points to. Each object here is held by one
// callee-saved register while the collector, or a function that calls it back, is called through a slot: none is lost, and
// the calls are recorded in full. What nothing holds is collected, since the agent keeps no copies where they are looked for.
// link: -lgc
// needs: file:/usr/include/gc.h
// variant: O0 -O0
// variant: O1 -O1
// variant: O2 -O2
// variant: Os -Os
#include "subject.h"
#include <gc.h>
#include <search.h>
static void *links[1000];
static int compare(const void *a, const void *b) {
    GC_gcollect();
    return *(const int *)a - *(const int *)b;
}
/// Clears pointers that earlier calls have left on the stack.
static NOINLINE void wipe(void) {
    char old[65536];
    memset(old, 0, sizeof old);
    __asm__ volatile("" :: "r"(old) : "memory");
}
static NOINLINE void remember(int n, void *object) {
    GC_general_register_disappearing_link(&links[n], object);
    links[n] = (void *)GC_HIDE_POINTER(object);
}
static NOINLINE void collect(void) { GC_gcollect(); }
static NOINLINE void called_back(void) {
    int numbers[2] = {2, 1}, wanted = 1;
    size_t count = 2;
    CHECK(lfind(&wanted, numbers, &count, sizeof *numbers, compare));
}
#define HOLD(name)                                                                                                       \
    static NOINLINE void hold_##name(int n, void (*call)(void)) {                                                        \
        register void *object __asm__(#name) = GC_MALLOC(64);                                                            \
        remember(n, object);                                                                                             \
        __asm__ volatile("" : "+r"(object));                                                                             \
        wipe();                                                                                                          \
        call();                                                                                                          \
        __asm__ volatile("" : "+r"(object));                                                                             \
    }
#define NAMED(name) {#name, hold_##name},
#if defined __x86_64__
#define EACH(DO) DO(rbx) DO(r12) DO(r13) DO(r14) DO(r15)
#elif defined __aarch64__
#define EACH(DO) DO(x19) DO(x20) DO(x21) DO(x22) DO(x23) DO(x24) DO(x25) DO(x26) DO(x27) DO(x28)
#endif
EACH(HOLD)
static const struct { const char *name; void (*hold)(int, void (*)(void)); } holders[] = {EACH(NAMED)};
static NOINLINE void drop(void) {
    for (int n = 0; n < 1000; n++) remember(n, GC_MALLOC(64));
}
int main(void) {
    unsigned long rounds = 0;
    GC_INIT();
    for (size_t k = 0; k < sizeof holders / sizeof *holders; k++) {
        int lost[2] = {0};
        for (int n = 0; n < 40; n++, rounds++) {
            holders[k].hold(n, collect);
            lost[0] += !links[n];
            holders[k].hold(n, called_back);
            lost[1] += !links[n];
        }
        printf("%s: lost %d of 40, and %d of 40 in a callback\n", holders[k].name, lost[0], lost[1]);
    }
    memset(links, 0, sizeof links);
    drop();
    wipe();
    GC_gcollect();
    int left = 0;
    for (int n = 0; n < 1000; n++) left += links[n] != NULL;
    puts(left < 50 ? "what nothing holds is collected" : "what nothing holds is kept");
    counted("lfind", rounds);
    counted("GC_gcollect", 3 * rounds + 1);
    counted("GC_malloc", 2 * rounds + 1000);
    return 0;
}
