// Short functions that are called very often, by several threads: with every function recorded they lead past the recorder from some
// moment on. Two find a pattern in every register each time, and their callers do so after them; one of the two has a loop, so that
// the agent looks at it every 1,024 calls.
// compilers: gcc clang
// tree: none its calls are its own
// modes: functions arm_functions
#include "subject.h"
void probe_often(long calls);
void probe_watched_often(long calls);
#if defined(__x86_64__)
__asm__(".macro each instruction, after:vararg\n"
        " .irp name, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r13, r14, r15\n"
        " number = number + 3\n \\instruction $number, %\\name\n \\after\n .endr\n.endm\n"
        ".text\n");
// Calls `probe`, which ends in `loop`.
#define PROBE(probe, loop) __asm__( \
        ".type " probe ", @function\n" probe ":\n number = 0x100\n each cmpq, jne .Lother_" probe "\n" loop " ret\n" \
        ".Lother_" probe ":\n ud2\n.size " probe ", . - " probe "\n" \
        ".globl " probe "_often\n.type " probe "_often, @function\n" probe "_often:\n" \
        " push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rax\n mov %rdi, %r12\n" \
        ".Lagain_" probe ":\n number = 0x100\n each movq\n call " probe "\n number = 0x100\n each cmpq, jne .Lother_" probe "\n" \
        " dec %r12\n jnz .Lagain_" probe "\n" \
        " pop %rax\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n.size " probe "_often, . - " probe "_often\n")
#define LOOP "1: jc 1b\n" /* never taken: it follows a comparison with an equal */
#else
__asm__(".macro each instruction, after:vararg\n"
        " .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25, 26, 27\n"
        " \\instruction x\\n, #(0x100 + 3 * \\n)\n \\after\n .endr\n.endm\n"
        ".text\n");
#define PROBE(probe, loop) __asm__( \
        ".type " probe ", %function\n" probe ":\n each cmp, b.ne .Lother_" probe "\n" loop " ret\n" \
        ".Lother_" probe ":\n brk #0\n.size " probe ", . - " probe "\n" \
        ".globl " probe "_often\n.type " probe "_often, %function\n" probe "_often:\n" \
        " stp x29, x30, [sp, #-112]!\n mov x29, sp\n stp x19, x20, [sp, #16]\n stp x21, x22, [sp, #32]\n stp x23, x24, [sp, #48]\n" \
        " stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n mov x28, x0\n" \
        ".Lagain_" probe ":\n each mov\n bl " probe "\n each cmp, b.ne .Lother_" probe "\n subs x28, x28, #1\n b.ne .Lagain_" probe "\n" \
        " ldp x19, x20, [sp, #16]\n ldp x21, x22, [sp, #32]\n ldp x23, x24, [sp, #48]\n ldp x25, x26, [sp, #64]\n ldp x27, x28, [sp, #80]\n" \
        " ldp x29, x30, [sp], #112\n ret\n.size " probe "_often, . - " probe "_often\n")
#define LOOP "1: b.lo 1b\n"
#endif
PROBE("probe", "");
PROBE("probe_watched", LOOP);
static volatile long field = 3;
static NOINLINE long accessor(long n) { OPAQUE(); return field + n; }
static NOINLINE long of_two(long n) { OPAQUE(); return accessor(n) + accessor(n + 1); }
enum { CALLS = 150000, THREADS = 3 };
static void *run(void *sum) {
    for (long i = 0; i < CALLS; i++) *(long *)sum += of_two(i);
    probe_often(CALLS);
    probe_watched_often(CALLS);
    return NULL;
}
int main(void) {
    pthread_t threads[THREADS];
    long sums[THREADS] = {0}, sum = 0;
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, run, &sums[i]));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
    for (int i = 0; i < THREADS; i++) sum += sums[i];
    printf("%ld\n", sum);
    return 0;
}
