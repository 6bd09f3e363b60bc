// Vector arguments in registers 0-7 and on the stack, vector results, full width; the first calls of a thread.
// compilers: gcc clang
// library: wide
// variant: m128 -DBITS=128 -msse4.2
// variant: m256 -DBITS=256 -mavx2
// variant: m512 -DBITS=512 -mavx512f
// needs: avx2 avx512f
// architecture: x86_64 its registers and instructions
// modes: functions counts
#include "subject.h"
#include <immintrin.h>
typedef long vector __attribute__((vector_size(BITS / 8)));
vector wide_identity(vector);
vector wide_sum(vector, vector, vector, vector, vector, vector, vector, vector, vector, vector);
vector wide_variadic(int count, ...);
#ifdef LIB_wide
EXPORT vector wide_identity(vector a) { OPAQUE(); return a; }
EXPORT vector wide_sum(vector a, vector b, vector c, vector d, vector e, vector f, vector g, vector h, vector i, vector j) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}
EXPORT vector wide_variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    vector sum = {0};
    while (count--) sum = sum * 3 + va_arg(list, vector);
    va_end(list);
    return sum;
}
#else
enum { LANES = BITS / 64 };
static vector pattern(long seed) {
    vector v;
    for (int i = 0; i < LANES; i++) v[i] = seed * 0x0101010101010101L + i;
    return v;
}
static vector v[10]; // filled before, so that the first call of the thread is wide_sum
static void *all(void *unused) {
    vector sum = wide_sum(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]);
    vector same = wide_identity(v[9]);
    vector many = wide_variadic(9, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]);
    for (int i = 0; i < LANES; i++) {
        long expected = 0, chain = 0;
        for (int k = 0; k < 10; k++) expected += (k + 1) * v[k][i];
        for (int k = 0; k < 9; k++) chain = chain * 3 + v[k][i];
        CHECK(sum[i] == expected && same[i] == v[9][i] && many[i] == chain);
    }
    return unused;
}
int main(void) {
    for (int k = 0; k < 10; k++) v[k] = pattern(k + 1);
    all(NULL);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, all, NULL) && !pthread_join(thread, NULL));
    }
    printf("%d lanes\n", LANES);
    return 0;
}
#endif
