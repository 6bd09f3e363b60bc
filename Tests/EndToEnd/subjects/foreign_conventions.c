// Modules with calling conventions of their own, in the way of GHC, OCaml and Go: each imitates what a trampoline would break,
// and has what such modules are known by.
// compilers: gcc clang
// build: -O2 -Wl,--no-as-needed
// library: HScompiled
// library: HSrts
// library: camlplugin
// library: camlruntime
// library: gopackage -Wl,-z,now
// library: goprogram -Wl,-z,now
// variant: now -Wl,-z,now
// variant: lazy -Wl,-z,lazy
#include "subject.h"
#if defined __x86_64__
#define PLT "@PLT"
#elif defined __aarch64__
#define PLT ""
#endif
#define ASM(text) __asm__(".text\n" text ".section .note.GNU-stack, \"\"\n.text\n")
#define FUNCTION(name) ".globl " #name "\n.type " #name ", %function\n" #name ":\n"

#if defined LIB_HSrts // enters compiled code by a jump, with a stack of its own; what lies on the C stack is no return address
__attribute__((used, visibility("hidden"))) long imitation_stack[64];
#if defined __x86_64__
ASM(FUNCTION(stg_upd_frame_info) "jmp *(%rbp)\n"
    FUNCTION(rts_run) "pushq %rbx\npushq %rbp\npushq %r12\npushq %r14\npushq $0\n"
    "leaq imitation_stack+256(%rip), %rbp\nleaq 1f(%rip), %rax\nmovq %rax, (%rbp)\nmovq %rdi, %r14\n"
    "jmp imitation_sum_info" PLT "\n"
    "1: movq %rbx, %rax\naddq $8, %rsp\npopq %r14\npopq %r12\npopq %rbp\npopq %rbx\nret\n");
#elif defined __aarch64__
ASM(FUNCTION(stg_upd_frame_info) "ldr x16, [x20]\nbr x16\n"
    FUNCTION(rts_run) "stp x29, x30, [sp, #-48]!\nstp x20, x22, [sp, #16]\nstr x23, [sp, #32]\n"
    "adrp x20, imitation_stack+256\nadd x20, x20, :lo12:imitation_stack+256\nadr x9, 1f\nstr x9, [x20]\nmov x23, x0\nmov x30, #0\n"
    "b imitation_sum_info\n"
    "1: mov x0, x22\nldr x23, [sp, #32]\nldp x20, x22, [sp, #16]\nldp x29, x30, [sp], #48\nret\n");
#endif
EXPORT size_t rts_length(const char *text) { return strlen(text); }
#elif defined LIB_HScompiled
#if defined __x86_64__
ASM(FUNCTION(imitation_sum_info) "leaq (%r14, %rsi), %rbx\njmp stg_upd_frame_info" PLT "\n");
#elif defined __aarch64__
ASM(FUNCTION(imitation_sum_info) "add x22, x23, x1\nb stg_upd_frame_info\n");
#endif
#elif defined LIB_camlruntime // looks its caller's return address up, takes an argument in rbx
#if defined __x86_64__
ASM(".globl caml_system__code_begin\ncaml_system__code_begin:\n"
    FUNCTION(caml_call_gc) "xorl %eax, %eax\ncmpq (%rsp), %r12\njne 1f\nleaq 1(%rbx), %rax\n1: ret\n");
#elif defined __aarch64__
ASM(".globl caml_system__code_begin\ncaml_system__code_begin:\n"
    FUNCTION(caml_call_gc) "cmp x30, x21\ncsinc x0, xzr, x19, ne\nret\n");
#endif
EXPORT size_t caml_length(const char *text) { return strnlen(text, 100); }
#elif defined LIB_camlplugin
#if defined __x86_64__
ASM(".globl caml_shared_startup__code_begin\ncaml_shared_startup__code_begin:\n"
    FUNCTION(caml_plugin_run) "pushq %rbx\npushq %r12\nsubq $8, %rsp\nmovq %rdi, %rbx\nleaq 1f(%rip), %r12\ncall caml_call_gc" PLT "\n"
    "1: addq $8, %rsp\npopq %r12\npopq %rbx\nret\n");
#elif defined __aarch64__
ASM(".globl caml_shared_startup__code_begin\ncaml_shared_startup__code_begin:\n"
    FUNCTION(caml_plugin_run) "stp x29, x30, [sp, #-32]!\nstp x19, x21, [sp, #16]\nmov x19, x0\nadr x21, 1f\nbl caml_call_gc\n"
    "1: ldp x19, x21, [sp, #16]\nldp x29, x30, [sp], #32\nret\n");
#endif
#elif defined LIB_gopackage // nine arguments in registers; the stack is looked up, too
__asm__(".section .note.go.abihash, \"a\", %note\n.balign 4\n.long 4, 8, 2\n.asciz \"Go\\0\"\n.ascii \"abcdefgh\"\n");
#if defined __x86_64__
ASM(FUNCTION(go_sum) "addq %rbx, %rax\naddq %rcx, %rax\naddq %rdi, %rax\naddq %rsi, %rax\naddq %r8, %rax\naddq %r9, %rax\n"
    "addq %r10, %rax\naddq %r11, %rax\ncmpq (%rsp), %r12\nje 1f\nxorl %eax, %eax\n1: ret\n");
#elif defined __aarch64__
ASM(FUNCTION(go_sum) "add x0, x0, x1\nadd x0, x0, x9\nadd x0, x0, x15\ncmp x30, x21\ncsel x0, x0, xzr, eq\nret\n");
#endif
#elif defined LIB_goprogram
__asm__(".section .note.go.buildid, \"a\", %note\n.balign 4\n.long 4, 4, 4\n.asciz \"Go\\0\"\n.ascii \"abcd\"\n");
#if defined __x86_64__
ASM(FUNCTION(go_run) "pushq %rbx\npushq %r12\nsubq $8, %rsp\nmovq %rdi, %rax\nmovl $2, %ebx\nmovl $3, %ecx\nmovl $4, %edi\nmovl $5, %esi\n"
    "movl $6, %r8d\nmovl $7, %r9d\nmovl $8, %r10d\nmovl $9, %r11d\nleaq 1f(%rip), %r12\ncall go_sum" PLT "\n"
    "1: addq $8, %rsp\npopq %r12\npopq %rbx\nret\n");
#elif defined __aarch64__
ASM(FUNCTION(go_run) "stp x29, x30, [sp, #-32]!\nstr x21, [sp, #16]\nmov x1, #20\nmov x9, #10\nmov x15, #14\nadr x21, 1f\nbl go_sum\n"
    "1: ldr x21, [sp, #16]\nldp x29, x30, [sp], #32\nret\n");
#endif
#else
long rts_run(long a, long b), caml_plugin_run(long a), go_run(long a);
size_t rts_length(const char *text), caml_length(const char *text);
int main(void) {
    for (long n = 1; n < 4; n++) {
        printf("%ld %ld %ld\n", rts_run(n, 40), caml_plugin_run(n), go_run(n));
        printf("%zu %zu\n", rts_length("length"), caml_length("length"));
    }
    return 0;
}
#endif
