// Rounding mode, MXCSR flags, x87 control word and errno, before and after calls and across threads.
// compilers: gcc clang
// library: modes
// build: -O2 -frounding-math
// link: -lm
// architecture: x86_64 its registers and instructions
#include "subject.h"
#include <fenv.h>
#include <math.h>
int read_errno(void);
void write_errno(int value);
int callee_rounding(void);
double callee_divide(double a, double b);
#ifdef LIB_modes
EXPORT int read_errno(void) { return errno; }
EXPORT void write_errno(int value) { errno = value; }
EXPORT int callee_rounding(void) {
    unsigned mxcsr;
    unsigned short word;
    __asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(mxcsr), "=m"(word));
    return (int)(mxcsr >> 13 & 3) << 8 | (word >> 10 & 3);
}
EXPORT double callee_divide(double a, double b) { return a / b; }
#else
static volatile double one = 1, three = 3, zero = 0;
static void *all(void *unused) {
    errno = 4711;
    CHECK(read_errno() == 4711); // the thread's first traced call
    CHECK(errno == 4711);
    write_errno(42);
    CHECK(errno == 42);
    static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    double results[4];
    for (int i = 0; i < 4; i++) {
        CHECK(!fesetround(modes[i]));
        CHECK(callee_rounding() == (i << 8 | i));
        results[i] = callee_divide(one, three);
        CHECK(fegetround() == modes[i]);
    }
    CHECK(results[1] == results[3] && results[2] > results[1]);
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    CHECK(isinf(callee_divide(one, zero)));
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO); // the agent adds no flag (inexact), and drops none
    for (int i = 0; i < 100; i++) read_errno();
    CHECK(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO);
    CHECK(errno == 42);
    return unused;
}
int main(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, all, NULL) && !pthread_join(thread, NULL));
    all(NULL);
    puts("modes kept");
    return 0;
}
#endif
