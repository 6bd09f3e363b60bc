// Nested functions with a static chain (r10, x18) passed through a library, alloca before a call, a callee that realigns.
// build: -O1
// library: chain
// link: -Wl,-z,execstack
// modes: functions arm
#include "subject.h"
#include <alloca.h>
long apply(long (*function)(long), long value);
long realigned(long value);
long chained(long value); // takes a static chain, as a Go or Pascal function would
#ifdef LIB_chain
EXPORT long apply(long (*function)(long), long value) { return function(value) + 1; }
EXPORT long realigned(long value) {
    _Alignas(128) volatile long local[16];
    CHECK(((uintptr_t)local & 127) == 0);
    local[3] = value;
    return local[3] * 2;
}
#if defined(__x86_64__)
__asm__(".globl chained\n.type chained,@function\nchained: lea (%r10,%rdi), %rax\nret\n.size chained,.-chained");
#else
__asm__(".globl chained\n.type chained,@function\nchained: add x0, x18, x0\nret\n.size chained,.-chained");
#endif
#else
long call_chained(long chain, long value);
#if defined(__x86_64__)
__asm__("call_chained:\n.cfi_startproc\nsub $8, %rsp\n.cfi_adjust_cfa_offset 8\nmov %rdi, %r10\nmov %rsi, %rdi\n"
        "call *chained@GOTPCREL(%rip)\nadd $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc");
#else
__asm__("call_chained:\n.cfi_startproc\nstp x29, x30, [sp, #-16]!\n.cfi_adjust_cfa_offset 16\nmov x18, x0\nmov x0, x1\n"
        "bl chained\nldp x29, x30, [sp], #16\n.cfi_adjust_cfa_offset -16\nret\n.cfi_endproc");
#endif
int main(void) {
    long offset = 1000;
    long nested(long value) { return offset += value; }
    for (long i = 1; i <= 10; i++) CHECK(apply(nested, i) == offset + 1);
    for (size_t n = 1; n < 3000; n += 501) {
        char *area = alloca(n);
        memset(area, 0x5a, n);
        CHECK(realigned((long)n) == (long)n * 2);
        for (size_t i = 0; i < n; i++) CHECK(area[i] == 0x5a);
    }
    for (long i = 0; i < 10; i++) CHECK(call_chained(5000 + i, i) == 5000 + 2 * i);
    printf("%ld\n", offset);
    return 0;
}
#endif
