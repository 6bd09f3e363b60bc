// Functions in assembly that capture the context of their caller, under names that nobody knows: what they store is the caller's
// own return address and stack pointer, and to bring it back returns to the caller. Prologues and addresses of locals are no such.
// compilers: gcc clang
// library: captures
// variant: now -Wl,-z,now
// variant: lazy -Wl,-z,lazy
// variant: no_plt@gcc -fno-plt
#include "subject.h"
struct context { uintptr_t pc, stack, saved[12]; };
int own_captureContext(struct context *), disguised_setjmp(struct context *), far_context(struct context *);
int longest_jmp(struct context *), popped_context(struct context *);
void own_restoreContext(struct context *, int) __attribute__((noreturn));
long plain_context(long *, long), linked_context(uintptr_t **), calls_context(uintptr_t *);
#ifdef LIB_captures
#define FUNCTION(name) ".globl " #name "\n.type " #name ", %function\n.balign 16\n" #name ":\n"
#if defined __x86_64__
#define SAVE "movq %rbx, 16(%rdi)\nmovq %rbp, 24(%rdi)\nmovq %r12, 32(%rdi)\nmovq %r13, 40(%rdi)\nmovq %r14, 48(%rdi)\nmovq %r15, 56(%rdi)\n"
#define STORE "movq (%rsp), %rax\nmovq %rax, (%rdi)\nleaq 8(%rsp), %rax\nmovq %rax, 8(%rdi)\n"
__asm__(".text\n"
    FUNCTION(own_captureContext) "endbr64\n" SAVE STORE "xorl %eax, %eax\nret\n"
    // The address is disguised as setjmp does it, after vector stores and a jump.
    FUNCTION(disguised_setjmp) SAVE "jmp 1f\nint3\n1: movaps %xmm0, -24(%rsp)\nstmxcsr 72(%rdi)\nfnstcw 76(%rdi)\n"
    "leaq 8(%rsp), %rdx\nmovq %rdx, 8(%rdi)\nmovq (%rsp), %rax\nxorq $-1, %rax\nrolq $17, %rax\nmovq %rax, 80(%rdi)\n"
    "rorq $17, %rax\nnotq %rax\nmovq %rax, (%rdi)\nxorl %eax, %eax\nret\n"
    // Captured after a prologue, through another register.
    FUNCTION(far_context) "pushq %rbx\nsubq $32, %rsp\nleaq 8(%rdi), %rbx\nmovq %r12, 24(%rbx)\nmovq %r13, 32(%rbx)\nmovq %r14, 40(%rbx)\n"
    "movq %r15, 48(%rbx)\nmovq %rbp, 16(%rbx)\nmovq 32(%rsp), %rax\nmovq %rax, 8(%rbx)\nleaq 48(%rsp), %rcx\nmovq %rcx, (%rbx)\n"
    "movq 40(%rsp), %rcx\nmovq %rcx, -8(%rbx)\naddq $32, %rsp\npopq %rbx\nxorl %eax, %eax\nret\n"
    FUNCTION(longest_jmp) "testq %rdi, %rdi\nje 1f\n" SAVE STORE "1: xorl %eax, %eax\nret\n"
    FUNCTION(popped_context) SAVE "popq %rdx\nmovq %rdx, (%rdi)\nmovq %rsp, 8(%rdi)\npushq %rdx\nxorl %eax, %eax\nret\n"
    FUNCTION(own_restoreContext) "movl %esi, %eax\nmovq 16(%rdi), %rbx\nmovq 24(%rdi), %rbp\nmovq 32(%rdi), %r12\nmovq 40(%rdi), %r13\n"
    "movq 48(%rdi), %r14\nmovq 56(%rdi), %r15\nmovq 8(%rdi), %rsp\njmpq *(%rdi)\n"
    ".section .note.GNU-stack, \"\"\n.text\n");
#elif defined __aarch64__
#define SAVE "stp x19, x20, [x0, #16]\nstp x21, x22, [x0, #32]\nstp x23, x24, [x0, #48]\nstp x25, x26, [x0, #64]\nstp x27, x28, [x0, #80]\nstr x29, [x0, #96]\n"
__asm__(".text\n"
    FUNCTION(own_captureContext) "hint #34\n" SAVE "mov x9, sp\nstp x30, x9, [x0]\nmov w0, #0\nret\n"
    FUNCTION(disguised_setjmp) SAVE "b 1f\n.inst 0\n1: mov x9, sp\nstr x9, [x0, #8]\nstr d8, [x0, #104]\neor x10, x30, x9\nstr x10, [x0, #104]\n"
    "eor x10, x10, x9\nstr x10, [x0]\nmov w0, #0\nret\n"
    FUNCTION(far_context) "stp x29, x30, [sp, #-16]!\nadd x9, x0, #8\nstp x19, x20, [x9, #8]\nstp x21, x22, [x9, #24]\nstp x23, x24, [x9, #40]\n"
    "stp x25, x26, [x9, #56]\nstp x27, x28, [x9, #72]\nstr x29, [x9, #88]\nadd x10, sp, #16\nstr x10, [x9]\nstr x30, [x0]\n"
    "ldp x29, x30, [sp], #16\nmov w0, #0\nret\n"
    FUNCTION(longest_jmp) "cbz x0, 1f\n" SAVE "mov x9, sp\nstp x30, x9, [x0]\n1: mov w0, #0\nret\n"
    FUNCTION(popped_context) SAVE "mov x9, x30\nmov x10, x0\nstr x9, [x10]\nmov x9, sp\nstr x9, [x10, #8]\nmov w0, #0\nret\n"
    FUNCTION(own_restoreContext) "mov x16, x0\nmov w0, w1\nldp x19, x20, [x16, #16]\nldp x21, x22, [x16, #32]\nldp x23, x24, [x16, #48]\n"
    "ldp x25, x26, [x16, #64]\nldp x27, x28, [x16, #80]\nldr x29, [x16, #96]\nldp x30, x9, [x16]\nmov sp, x9\nret\n"
    ".section .note.GNU-stack, \"\"\n.text\n");
#endif
EXPORT long plain_context(long *sum, long value) { return *sum += value; }
/// The address of a local, as lists on the stack hand it out.
EXPORT long linked_context(uintptr_t **list) {
    volatile uintptr_t local[3] = {1, 2, 3};
    *list = (uintptr_t *)local;
    OPAQUE();
    long sum = (long)((*list)[0] + (*list)[2]);
    *list = NULL;
    return sum;
}
EXPORT long calls_context(uintptr_t *pc) {
    long sum = plain_context((long *)pc, 2);
    OPAQUE();
    return sum + 1;
}
#else
/// The address is that of code of this program, after the call, and the stack pointer lies in this frame's neighbourhood.
static void look(const char *name, struct context *context, int count) {
    Dl_info info, own;
    int isOwn = dladdr((void *)context->pc, &info) && dladdr((void *)look, &own) && info.dli_fbase == own.dli_fbase;
    intptr_t distance = (intptr_t)__builtin_frame_address(0) - (intptr_t)context->stack;
    printf("%s %d: %s, %s\n", name, count, isOwn ? "own" : "other", distance < 4096 && distance > -4096 ? "near" : "far");
}
#define TRY(function)                                                                        \
    static NOINLINE void try_##function(void) {                                              \
        static struct context context;                                                       \
        static volatile int count;                                                           \
        int result = function(&context);                                                     \
        CHECK(result == count);                                                              \
        look(#function, &context, count);                                                    \
        if (count < 3) own_restoreContext(&context, ++count);                                \
    }
TRY(own_captureContext) TRY(disguised_setjmp) TRY(far_context) TRY(longest_jmp) TRY(popped_context)
int main(void) {
    try_own_captureContext();
    try_disguised_setjmp();
    try_far_context();
    try_longest_jmp();
    try_popped_context();
    long sum = 1;
    uintptr_t *list, pc = 1;
    CHECK(plain_context(&sum, 4) == 5 && linked_context(&list) == 4 && calls_context(&pc) == 4);
    return 0;
}
#endif
