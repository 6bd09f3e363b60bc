// Modules with enough text that what is found in it is remembered for the next start: functions that are called alone, one whose
// address is taken, too, in the program, in its library, and in a library that is opened later.
// compilers: gcc
// build: -O2 -fno-plt -Wl,--build-id
// library: remembered
// plugin: later -L{build} -lremembered
// link: -ldl
// variant: id
// variant: none exe:-Wl,--build-id=none
// case: plain {build}/liblater.so
#include "subject.h"
typedef long (*function)(long);
long called(long value);
long both(long value);
function gets_both(void);
__asm__(".text\n.fill 300000, 4, 0\n"); // no instruction of it refers to anything
#ifndef LIB_remembered
/// In one place alone: where there are several, a compiler loads the slot once for all, and then it is a pointer.
static NOINLINE long calls(long value) {
    long result = called(value);
    OPAQUE();
    return result;
}
#endif
#ifdef LIB_remembered
EXPORT long called(long value) { return value + 1; }
EXPORT long both(long value) { return value + 2; }
EXPORT function gets_both(void) { return both; }
#elif defined LIB_later
EXPORT long later(long value);
EXPORT long later(long value) { return calls(value) + calls(value) + (gets_both() == both); }
#else
int main(int argc, char **argv) {
    (void)argc;
    function volatile taken = both;
    for (long n = 0; n < 3; n++) CHECK(calls(n) == n + 1);
    CHECK(both(1) == 3 && taken(1) == 3);
    CHECK(taken == gets_both());
    function later = (function)dlsym(dlopen(argv[1], RTLD_NOW), "later");
    CHECK(later(10) == 23);
    puts("the same whoever has searched");
    return 0;
}
#endif
