// void call_probe(const struct state *in, struct state *out): loads every register from `in`, calls probe through its
// slot with three words on the stack, stores every register to `out`.
#include "part_registers.h"
    .text
    .globl call_probe
    .type call_probe, @function
call_probe:
    .cfi_startproc
    push %rbp
    .cfi_adjust_cfa_offset 8
    push %rbx
    .cfi_adjust_cfa_offset 8
    push %r12
    .cfi_adjust_cfa_offset 8
    push %r13
    .cfi_adjust_cfa_offset 8
    push %r14
    .cfi_adjust_cfa_offset 8
    push %r15
    .cfi_adjust_cfa_offset 8
    sub $56, %rsp           // 0: three words for the callee; 24 out; 32 saved rdi; 40 saved mxcsr, 44 saved fcw
    .cfi_adjust_cfa_offset 56
    mov %rsi, 24(%rsp)
    stmxcsr 40(%rsp)
    fnstcw 44(%rsp)
    mov STACK(%rdi), %rax
    mov %rax, (%rsp)
    mov STACK+8(%rdi), %rax
    mov %rax, 8(%rsp)
    mov STACK+16(%rdi), %rax
    mov %rax, 16(%rsp)
    EACH_VECTOR(LOAD_VECTOR)
    EACH_MASK(LOAD_MASK)
    ldmxcsr MXCSR(%rdi)
    fldcw FCW(%rdi)
    mov RAX(%rdi), %rax
    mov RBX(%rdi), %rbx
    mov RCX(%rdi), %rcx
    mov RDX(%rdi), %rdx
    mov RSI(%rdi), %rsi
    mov RBP(%rdi), %rbp
    mov R8(%rdi), %r8
    mov R9(%rdi), %r9
    mov R10(%rdi), %r10
    mov R11(%rdi), %r11
    mov R12(%rdi), %r12
    mov R13(%rdi), %r13
    mov R14(%rdi), %r14
    mov R15(%rdi), %r15
    mov RDI(%rdi), %rdi
#ifdef NO_PLT
    call *probe@GOTPCREL(%rip)
#else
    call probe@PLT
#endif
    mov %rdi, 32(%rsp)
    mov 24(%rsp), %rdi
    mov %rax, RAX(%rdi)
    pushfq
    .cfi_adjust_cfa_offset 8
    pop %rax
    .cfi_adjust_cfa_offset -8
    mov %rax, FLAGS(%rdi)
    mov %rbx, RBX(%rdi)
    mov %rcx, RCX(%rdi)
    mov %rdx, RDX(%rdi)
    mov %rsi, RSI(%rdi)
    mov %rbp, RBP(%rdi)
    mov %r8, R8(%rdi)
    mov %r9, R9(%rdi)
    mov %r10, R10(%rdi)
    mov %r11, R11(%rdi)
    mov %r12, R12(%rdi)
    mov %r13, R13(%rdi)
    mov %r14, R14(%rdi)
    mov %r15, R15(%rdi)
    mov 32(%rsp), %rax
    mov %rax, RDI(%rdi)
    mov %rsp, STACK+24(%rdi)
    stmxcsr MXCSR(%rdi)
    fnstcw FCW(%rdi)
    fstpt ST(%rdi)
    fstpt ST+16(%rdi)
    fnstenv ENVIRONMENT(%rdi)
    EACH_VECTOR(STORE_VECTOR)
    EACH_MASK(STORE_MASK)
    fldcw 44(%rsp)
    ldmxcsr 40(%rsp)
#if LEVEL > 0
    vzeroupper
#endif
    add $56, %rsp
    .cfi_adjust_cfa_offset -56
    pop %r15
    .cfi_adjust_cfa_offset -8
    pop %r14
    .cfi_adjust_cfa_offset -8
    pop %r13
    .cfi_adjust_cfa_offset -8
    pop %r12
    .cfi_adjust_cfa_offset -8
    pop %rbx
    .cfi_adjust_cfa_offset -8
    pop %rbp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size call_probe, .-call_probe
    .section .note.GNU-stack,"",@progbits
