// IFUNC in the program and in a library, called through slots and through pointers; libc's own string functions are.
// compilers: gcc clang
// library: choose
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// variant: nopie exe:-no-pie exe:-fno-pie
// variant: noplt@gcc -fno-plt
// modes: functions arm
#include "subject.h"
long chosen(long value);
long chosen_inside(long value);
#ifdef LIB_choose
static long chosen_impl(long value) { return value * 11; }
static long (*resolve_chosen(void))(long) { return chosen_impl; }
EXPORT long chosen(long value) __attribute__((ifunc("resolve_chosen")));
EXPORT long chosen_inside(long value) { long r = chosen(value); OPAQUE(); return r + 1; }
#else
static long own_impl(long value) { return value * 13; }
__attribute__((used)) static long (*resolve_own(void))(long) { return own_impl; }
long own(long value) __attribute__((ifunc("resolve_own")));
int main(void) {
    long sum = 0;
    for (int i = 0; i < 10; i++) sum += chosen(i) + own(i);
    for (int i = 0; i < 5; i++) sum += chosen_inside(i);
    char a[64], b[64];
    memset(a, 'x', sizeof a);
    memcpy(b, a, sizeof a);
    CHECK(!memcmp(a, b, sizeof a) && memchr(b, 'x', 1) == b);
    a[63] = 0;
    CHECK(strlen(a) == 63 && !strchr(a, 'y'));
    printf("%ld\n", sum);
    return 0;
}
#endif
