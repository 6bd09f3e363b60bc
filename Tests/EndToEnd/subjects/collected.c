// Boehm's conservative collector frees what no register and no word of a stack points to. Each object here is held by one
// callee-saved register while the collector, or a function that calls it back, is called through a slot.
// build: -O2
// link: -lgc
// needs: file:/usr/include/gc.h
// tree: none the calls have no length
#include "subject.h"
#include <gc.h>
#include <search.h>
#if defined __x86_64__
#define HELD(name) register void *name __asm__("rbx")
#elif defined __aarch64__
#define HELD(name) register void *name __asm__("x19")
#endif
static void *links[100];
static int compare(const void *a, const void *b) {
    GC_gcollect();
    return *(const int *)a - *(const int *)b;
}
/// What earlier calls have left on the stack points to nothing.
static __attribute__((noinline)) void wipe(void) {
    char old[65536];
    memset(old, 0, sizeof old);
    __asm__ volatile("" :: "r"(old) : "memory");
}
static __attribute__((noinline)) void hold(int n, void (*call)(void)) {
    HELD(object) = GC_MALLOC(64);
    GC_general_register_disappearing_link(&links[n], object);
    links[n] = (void *)GC_HIDE_POINTER(object);
    __asm__ volatile("" : "+r"(object));
    wipe();
    call ? call() : GC_gcollect();
    __asm__ volatile("" : "+r"(object));
}
static __attribute__((noinline)) void called_back(void) {
    int numbers[2] = {2, 1}, wanted = 1;
    size_t count = 2;
    CHECK(lfind(&wanted, numbers, &count, sizeof *numbers, compare));
}
int main(void) {
    int lost[2] = {0};
    GC_INIT();
    for (int round = 0; round < 2; round++) {
        for (int n = 0; n < 100; n++) {
            hold(n, round ? called_back : NULL);
            lost[round] += !links[n];
        }
    }
    printf("lost %d of 100, and %d of 100 in a callback\n", lost[0], lost[1]);
    return 0;
}
