// Functions with a calling convention of their own (AAPCS64, "Vector PCS": v8-v23 are the caller's, whole) are left alone:
// the symbol's reference marks them or, if it does not, its definition. Functions that they call are traced.
// architecture: aarch64 the other has no such mark
// library: variant
// variant: lazy
// variant: now -Wl,-z,now
// compilers: gcc clang
// after: python3 {source}/part_unmark_variant.py {build}/variant_convention unmarked
// modes: arm arm_old arm_functions
#include "subject.h"
typedef long lanes __attribute__((vector_size(16)));
#define VECTOR_CALL __attribute__((aarch64_vector_pcs))
long ordinary(long value);
VECTOR_CALL lanes marked(lanes a, long value);
VECTOR_CALL lanes unmarked(lanes a, long value);
#ifdef LIB_variant
EXPORT long ordinary(long value) { OPAQUE(); return value + 1; }
EXPORT VECTOR_CALL lanes marked(lanes a, long value) { return a + ordinary(value); }
EXPORT VECTOR_CALL lanes unmarked(lanes a, long value) { return a * 3 + value; }
#else
/// Four vectors are live across each call: in registers, since this convention keeps sixteen.
static NOINLINE void run(int rounds) {
    lanes kept[5], sum = {0, 0};
    for (int i = 0; i < 5; i++) kept[i] = (lanes){0x0101010101010101L * i, ~(0x1010101010101010L * i)};
    long total = 0;
    lanes a = kept[1], b = kept[2], c = kept[3], d = kept[4];
    for (int n = 0; n < rounds; n++) {
        __asm__ volatile("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d));
        sum = marked(sum, n);
        __asm__ volatile("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d));
        sum = unmarked(sum, n);
        __asm__ volatile("" : "+w"(a), "+w"(b), "+w"(c), "+w"(d));
        total = (total + n + 1) * 3 + n;
    }
    CHECK(sum[0] == total && sum[1] == total);
    CHECK(a[0] == kept[1][0] && a[1] == kept[1][1] && b[0] == kept[2][0] && b[1] == kept[2][1]);
    CHECK(c[0] == kept[3][0] && c[1] == kept[3][1] && d[0] == kept[4][0] && d[1] == kept[4][1]);
}
int main(void) {
    run(20);
    printf("%ld\n", ordinary(1));
    return 0;
}
#endif
