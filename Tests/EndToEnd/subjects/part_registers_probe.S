// probe: stores every register as it finds it into probe_seen, loads those that may carry a result from probe_give.
#include "part_registers.h"
    .text
    .globl probe
    .type probe, @function
probe:
    .cfi_startproc
    mov %rdi, saved_rdi(%rip)
    mov seen(%rip), %rdi
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
    mov saved_rdi(%rip), %rax
    mov %rax, RDI(%rdi)
    mov 8(%rsp), %rax
    mov %rax, STACK(%rdi)
    mov 16(%rsp), %rax
    mov %rax, STACK+8(%rdi)
    mov 24(%rsp), %rax
    mov %rax, STACK+16(%rdi)
    mov %rsp, STACK+24(%rdi)
    stmxcsr MXCSR(%rdi)
    fnstcw FCW(%rdi)
    fnstenv ENVIRONMENT(%rdi)
    EACH_VECTOR(STORE_VECTOR)
    EACH_MASK(STORE_MASK)
    // results
    mov give(%rip), %rdi
    EACH_VECTOR(LOAD_VECTOR)
    EACH_MASK(LOAD_MASK)
    ldmxcsr MXCSR(%rdi)
    fldcw FCW(%rdi)
    fldt ST+16(%rdi)
    fldt ST(%rdi)
    mov RAX(%rdi), %rax
    mov RCX(%rdi), %rcx
    mov RDX(%rdi), %rdx
    mov R8(%rdi), %r8
    mov R12(%rdi), %r12
    mov R14(%rdi), %r14
    ret
    .cfi_endproc
    .size probe, .-probe
    .globl probe_states // (give, seen): where the next calls take their results from and store what they saw
    .type probe_states, @function
probe_states:
    .cfi_startproc
    mov %rdi, give(%rip)
    mov %rsi, seen(%rip)
    ret
    .cfi_endproc
    .size probe_states, .-probe_states
    .local seen, give, saved_rdi
    .comm seen, 8, 8
    .comm give, 8, 8
    .comm saved_rdi, 8, 8
    .section .note.GNU-stack,"",@progbits
