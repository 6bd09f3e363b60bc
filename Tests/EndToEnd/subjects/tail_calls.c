// Tail calls through the PLT, recursion 100,000 deep, mutual recursion across two libraries.
// compilers: gcc clang
// library: first -Wl,--allow-shlib-undefined
// library: second -L{build} -lfirst -Wl,-z,lazy
// modes: functions counts instrumented call_sites arm
// modes: arm_instrumented arm_functions arm_counts arm_call_sites arm_large_pages for gcc
// thorough: arm_instrumented arm_functions arm_counts arm_call_sites arm_large_pages for clang because what these modes change does not depend on the compiler
#include "subject.h"
unsigned long even(unsigned long n, unsigned long sum);
unsigned long odd(unsigned long n, unsigned long sum);
unsigned long deep(unsigned long n);
unsigned long deeper(unsigned long n);
unsigned long ping(unsigned long n);
unsigned long pong(unsigned long n);
unsigned long outer_tail(unsigned long n);
unsigned long last(unsigned long n);
#ifdef LIB_first
// Each is a jump: the machine stack does not grow, however many are made.
EXPORT unsigned long even(unsigned long n, unsigned long sum) { return n ? odd(n - 1, sum + n) : sum; }
EXPORT unsigned long deep(unsigned long n) { // gcc calls a function's own self without a slot: two that alternate
    unsigned long below = n ? deeper(n - 1) : 0;
    OPAQUE();
    return below + n;
}
EXPORT unsigned long deeper(unsigned long n) {
    unsigned long below = n ? deep(n - 1) : 0;
    OPAQUE();
    return below + n;
}
EXPORT unsigned long ping(unsigned long n) {
    unsigned long below = n ? pong(n - 1) : 0;
    OPAQUE();
    return below + 1;
}
EXPORT unsigned long last(unsigned long n) { return n * 3; }
EXPORT unsigned long outer_tail(unsigned long n) { return last(n + 1); }
#elif defined LIB_second
EXPORT unsigned long odd(unsigned long n, unsigned long sum) { return n ? even(n - 1, sum + n) : sum; }
EXPORT unsigned long pong(unsigned long n) {
    unsigned long below = n ? ping(n - 1) : 0;
    OPAQUE();
    return below + 2;
}
#else
int main(void) {
    CHECK(outer_tail(4) == 15);
    CHECK(outer_tail(5) == 18);
    printf("%lu\n", even(50000, 0));
    printf("%lu\n", deep(100000));
    printf("%lu\n", ping(20000));
    CHECK(last(1) == 3);
    return 0;
}
#endif
