// A function that keeps its return address in a register, as LLVM's outliner lets one, and calls through a slot: two calls
// are open at one stack pointer. And calls that are left by longjmp at that stack pointer, from a function that calls itself too.
// architecture: aarch64 a return address is always on the stack there
// library: kept -Wl,-z,now
// compilers: gcc clang
// modes: arm arm_old
#include "subject.h"
long kept(long value);
long leaf(long value);
void leave(jmp_buf target);
long again(int depth, jmp_buf target);
#ifdef LIB_kept
EXPORT long leaf(long value) { return value + 1; }
EXPORT void leave(jmp_buf target) { longjmp(target, 1); }
long again_by_slot(int depth, jmp_buf target) __asm__("again");
/// Left by what it calls, and goes on: the call that was left had the stack pointer of the next one.
EXPORT long again(int depth, jmp_buf target) {
    jmp_buf own;
    if (!depth) longjmp(target, 1);
    if (!setjmp(own)) again_by_slot(depth - 1, own);
    return leaf(depth);
}
__asm__(".globl kept\n.type kept, %function\n"
        "kept: mov x15, x30\nbl 1f\nbl 1f\nmov x30, x15\nret\n"
        "1: b leaf\n.size kept, . - kept");
#else
static NOINLINE void many(void) {
    jmp_buf buffer;
    for (volatile long n = 0; n < 2; n++) {
        CHECK(kept(n) == n + 2);
        if (!setjmp(buffer)) leave(buffer);
        CHECK(leaf(n) == n + 1);
        CHECK(again(2, buffer) == 3);
    }
}
int main(void) {
    many();
    puts("each to its caller");
    return 0;
}
#endif
