// Recursions of many depths whose returns fill the chunk that their calls are in: a frame's offset in that chunk means nothing in the
// next chunk, though it may lie at the same address.
// compilers: gcc clang
// library: first -Wl,--allow-shlib-undefined
// modes: instrumented
#include "subject.h"
unsigned long deep(unsigned long n);
unsigned long deeper(unsigned long n);
#ifdef LIB_first
EXPORT unsigned long deep(unsigned long n) { // gcc calls a function's own self without a slot: two that alternate
    unsigned long below = n ? deeper(n - 1) : 0;
    if (n % 2000 == 0) __asm__ volatile("turn_point: nop"); // programs.gdb_full_chunk looks from here
    return below + n;
}
EXPORT unsigned long deeper(unsigned long n) {
    unsigned long below = n ? deep(n - 1) : 0;
    OPAQUE();
    return below + n;
}
#else
int main(void) {
    unsigned long sum = 0;
    for (unsigned long n = 0; n < 24; n++) sum += deep(16000 + n * 702);
    printf("%lu\n", sum);
    return 0;
}
#endif
