// call_probe (the program) and probe (a library) of registers_aarch64.c. Layout of struct state: x0-x30, sp; q0-q31;
// fpcr, fpsr; four words that are passed on the stack.
#define VECTORS 256
#define FPCR 768
#define STACK 784

    .macro vectors operation, base
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    \operation q\n, [\base, #VECTORS + 16 * \n]
    .endr
    .endm
    .macro general operation, base
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    \operation x\n, [\base, #8 * \n]
    .endr
    .endm
    .macro results operation, base
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 20, 21, 22
    \operation x\n, [\base, #8 * \n]
    .endr
    .endm
    .text
#ifdef PROBE
    .globl probe
    .type probe, %function
probe:
    .cfi_startproc
    bti c
    adrp x16, seen
    ldr x16, [x16, #:lo12:seen]
    general str, x16
    mov x17, sp
    str x17, [x16, #248]
    vectors str, x16
    mrs x17, fpcr
    str x17, [x16, #FPCR]
    mrs x17, fpsr
    str x17, [x16, #FPCR + 8]
    ldr x17, [sp]
    str x17, [x16, #STACK]
    ldr x17, [sp, #8]
    str x17, [x16, #STACK + 8]
    ldr x17, [sp, #16]
    str x17, [x16, #STACK + 16]
    ldr x17, [sp, #24]
    str x17, [x16, #STACK + 24]
    adrp x16, give
    ldr x16, [x16, #:lo12:give]
    ldr x17, [x16, #FPCR]
    msr fpcr, x17
    ldr x17, [x16, #FPCR + 8]
    msr fpsr, x17
    vectors ldr, x16
    results ldr, x16
    ret
    .cfi_endproc
    .size probe, . - probe
    .globl probe_states // (give, seen): where the next calls take their results from and store what they saw
    .type probe_states, %function
probe_states:
    .cfi_startproc
    bti c
    adrp x2, give
    str x0, [x2, #:lo12:give]
    adrp x2, seen
    str x1, [x2, #:lo12:seen]
    ret
    .cfi_endproc
    .size probe_states, . - probe_states
    .local seen, give
    .comm seen, 8, 8
    .comm give, 8, 8
#else
// void call_probe(const struct state *in, struct state *out): loads every register from `in`, calls probe through its
// slot with four words on the stack, stores every register to `out`.
    .globl call_probe
    .type call_probe, %function
call_probe:
    .cfi_startproc
    paciasp
    .cfi_negate_ra_state
    stp x29, x30, [sp, #-208]!
    .cfi_def_cfa_offset 208
    .cfi_offset 29, -208
    .cfi_offset 30, -200
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mrs x2, fpcr
    mrs x3, fpsr
    stp x2, x3, [sp, #160]
    stp x1, x18, [sp, #176]
    sub sp, sp, #32
    .cfi_adjust_cfa_offset 32
    mov x16, x0
    .irp n, 0, 8, 16, 24
    ldr x17, [x16, #STACK + \n]
    str x17, [sp, #\n]
    .endr
    vectors ldr, x16
    ldr x17, [x16, #FPCR]
    msr fpcr, x17
    ldr x17, [x16, #FPCR + 8]
    msr fpsr, x17
    general ldr, x16
#ifdef NO_PLT
    adrp x16, :got:probe
    ldr x16, [x16, #:got_lo12:probe]
    blr x16
#else
    bl probe
#endif
    ldr x16, [sp, #32 + 176]
    general str, x16
    mov x17, sp
    str x17, [x16, #248]
    vectors str, x16
    mrs x17, fpcr
    str x17, [x16, #FPCR]
    mrs x17, fpsr
    str x17, [x16, #FPCR + 8]
    add sp, sp, #32
    .cfi_adjust_cfa_offset -32
    ldr x18, [sp, #184]
    ldp x2, x3, [sp, #160]
    msr fpcr, x2
    msr fpsr, x3
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp x29, x30, [sp], #208
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    autiasp
    .cfi_negate_ra_state
    ret
    .cfi_endproc
    .size call_probe, . - call_probe
#endif
    .section .note.GNU-stack, "", %progbits
    .section .note.gnu.property, "a" // BTI and PAC
    .p2align 3
    .word 4, 16, 5
    .asciz "GNU"
    .word 0xc0000000, 4, 3, 0
