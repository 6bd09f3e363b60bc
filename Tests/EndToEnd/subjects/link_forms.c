// The same calls in every form that a linker can give them: binding, RELRO, PLT flavours, relocation packing, linkers.
// compilers: gcc clang
// library: forms
// variant: default
// variant: lazy -Wl,-z,lazy
// variant: now -Wl,-z,now
// variant: full_relro -fuse-ld=bfd -Wl,-z,relro -Wl,-z,now
// variant: partial_relro -Wl,-z,relro -Wl,-z,lazy
// variant: no_relro -Wl,-z,norelro -Wl,-z,lazy
// variant: noplt@gcc -fno-plt -Wl,-z,now
// variant: noplt_lazy@gcc -fno-plt -Wl,-z,lazy
// variant: noplt_O0 -fno-plt -O0
// variant: noplt_hoisted@clang -fno-plt
// variant: mixed -DMIXED -Wl,-z,lazy
// variant: ibtplt -fuse-ld=bfd -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy
// variant: ibt_now -fuse-ld=bfd -fcf-protection=full -Wl,-z,ibt -Wl,-z,now
// variant: relr -fuse-ld=bfd -Wl,-z,pack-relative-relocs
// variant: noseparate -fuse-ld=bfd -Wl,-z,noseparate-code
// variant: separate -fuse-ld=bfd -Wl,-z,separate-code
// variant: nopie exe:-no-pie exe:-fno-pie -Wl,-z,lazy
// variant: nopie_now exe:-no-pie exe:-fno-pie -Wl,-z,now
// variant: sysv_hash -Wl,--hash-style=sysv
// variant: gnu_hash -Wl,--hash-style=gnu
// variant: stripped -s
// variant: O0 -O0
// variant: lld -fuse-ld=lld -Wl,-z,lazy
// variant: lld_now -fuse-ld=lld -Wl,-z,now
// variant: lld_noplt@gcc -fuse-ld=lld -fno-plt
// variant: gold -fuse-ld=gold -Wl,-z,lazy
// variant: gold_now -fuse-ld=gold -Wl,-z,now
// variant: mold -fuse-ld=mold -Wl,-z,lazy
// variant: mold_now -fuse-ld=mold -Wl,-z,now
// modes: functions
#include "subject.h"
#ifdef MIXED
#define NOPLT __attribute__((noplt))
#else
#define NOPLT
#endif
long form_leaf(long value);
long form_outer(long value);
long form_direct(long value) NOPLT;
double form_double(double value) NOPLT;
long form_pointers(void);
#ifdef LIB_forms
EXPORT long form_leaf(long value) { return value * 3; }
EXPORT long form_outer(long value) { long r = form_leaf(value); OPAQUE(); return r + 1; }
EXPORT long form_direct(long value) { return value + 2; }
EXPORT double form_double(double value) { return value * 0.5; }
static long a(void) { return 1; }
static long b(void) { return 2; }
static long (*const table[])(void) = {a, b, a, b, b}; // relative relocations
EXPORT long form_pointers(void) {
    long sum = 0;
    for (volatile int i = 0; i < 5; i++) sum += table[i]();
    return sum;
}
#else
__attribute__((constructor)) static void before_main(void) { CHECK(form_leaf(5) == 15); }
int main(void) {
    long sum = 0;
    for (int i = 0; i < 10; i++) sum += form_outer(i);
    for (int i = 0; i < 10; i++) sum += form_direct(i);
    for (int i = 0; i < 10; i++) sum += (long)form_double(i);
    sum += form_pointers();
    char text[32];
    snprintf(text, sizeof text, "%ld", sum);
    CHECK(strlen(text) == 3);
    puts(text);
    return 0;
}
#endif
