// In the program, `hold` fills registers with patterns and calls one of the `call_…` functions, which calls through a slot.
// The library (-DCALLEE) has the callees: none changes a register that belongs to its caller, and each says how far
// the call is, so that an observer knows at every instruction what must be where.
#include "part_held.h"

    .macro function name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
#ifdef __aarch64__
    bti c
#endif
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm

#if defined __x86_64__
    .macro enter_frame
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    .endm
    .macro leave_frame
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    .endm
    .macro slot_call name
#ifdef NO_PLT
    call *\name@GOTPCREL(%rip)
#else
    call \name@PLT
#endif
    .endm
    .macro slot_jump name
#ifdef NO_PLT
    jmp *\name@GOTPCREL(%rip)
#else
    jmp \name@PLT
#endif
    .endm
#else
    .macro enter_frame
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    .endm
    .macro leave_frame
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    .endm
    .macro slot_load name
    adrp x16, :got:\name
    ldr x16, [x16, #:got_lo12:\name]
    .endm
    .macro slot_call name
#ifdef NO_PLT
    slot_load \name
    blr x16
#else
    bl \name
#endif
    .endm
    .macro slot_jump name
#ifdef NO_PLT
    slot_load \name
    br x16
#else
    b \name
#endif
    .endm
#endif

    .text
#ifdef CALLEE
    .macro in_callee // nothing is in the arguments' registers from here on
#if defined __x86_64__
    mov held_state(%rip), %r11
    movl $PHASE_CALLEE, HELD_PHASE(%r11)
    mov HELD_SPIN(%r11), %eax
1:  sub $1, %eax
    jnz 1b
#else
    adrp x16, held_state
    ldr x16, [x16, #:lo12:held_state]
    mov w17, #PHASE_CALLEE
    str w17, [x16, #HELD_PHASE]
    ldr w17, [x16, #HELD_SPIN]
1:  subs w17, w17, #1
    b.ne 1b
#endif
    .endm
    .macro give_results
#if defined __x86_64__
    mov held_state(%rip), %r11
    mov HELD_RESULTS(%r11), %rax
    mov HELD_RESULTS+8(%r11), %rdx
    mov HELD_RESULTS+16(%r11), %rcx
    mov HELD_RESULTS+24(%r11), %r8
    movl $PHASE_RESULTS, HELD_PHASE(%r11)
#else
    adrp x16, held_state
    ldr x16, [x16, #:lo12:held_state]
    ldp x0, x1, [x16, #HELD_RESULTS]
    mov w17, #PHASE_RESULTS
    str w17, [x16, #HELD_PHASE]
#endif
    ret
    .endm

    function held_at // (struct held *)
#if defined __x86_64__
    mov %rdi, held_state(%rip)
#else
    adrp x1, held_state
    str x0, [x1, #:lo12:held_state]
#endif
    ret
    end held_at

    function held_leaf
    in_callee
    give_results
    end held_leaf

    function held_inner
    in_callee
    ret
    end held_inner

    function held_outer
    in_callee
    enter_frame
    slot_call held_inner
    leave_frame
    give_results
    end held_outer

    function held_tail
    slot_jump held_outer
    end held_tail

    function held_around // (void (*)(void))
    enter_frame
#if defined __x86_64__
    call *%rdi
#else
    blr x0
#endif
    leave_frame
    ret
    end held_around

    .local held_state
    .comm held_state, 8, 8
#else
// void hold(void)
    function hold
#if defined __x86_64__
    .irp register, rbp, rbx, r12, r13, r14, r15
    push %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endr
    enter_frame
    mov held+HELD_SAVED(%rip), %rbx
    mov held+HELD_SAVED+8(%rip), %rbp
    mov held+HELD_SAVED+16(%rip), %r12
    mov held+HELD_SAVED+24(%rip), %r13
    mov held+HELD_SAVED+32(%rip), %r14
    mov held+HELD_SAVED+40(%rip), %r15
    mov held+HELD_ARGUMENTS(%rip), %rdi
    mov held+HELD_ARGUMENTS+8(%rip), %rsi
    mov held+HELD_ARGUMENTS+16(%rip), %rdx
    mov held+HELD_ARGUMENTS+24(%rip), %rcx
    mov held+HELD_ARGUMENTS+32(%rip), %r8
    mov held+HELD_ARGUMENTS+40(%rip), %r9
    mov held+HELD_ARGUMENTS+48(%rip), %r10
    mov held+HELD_ARGUMENTS+56(%rip), %rax
    movl $PHASE_ARGUMENTS, held+HELD_PHASE(%rip)
    call *held+HELD_TARGET(%rip)
    movl $PHASE_NONE, held+HELD_PHASE(%rip)
    mov %rax, held+HELD_OUT(%rip)
    mov %rdx, held+HELD_OUT+8(%rip)
    mov %rcx, held+HELD_OUT+16(%rip)
    mov %r8, held+HELD_OUT+24(%rip)
    mov %rbx, held+HELD_OUT_SAVED(%rip)
    mov %rbp, held+HELD_OUT_SAVED+8(%rip)
    mov %r12, held+HELD_OUT_SAVED+16(%rip)
    mov %r13, held+HELD_OUT_SAVED+24(%rip)
    mov %r14, held+HELD_OUT_SAVED+32(%rip)
    mov %r15, held+HELD_OUT_SAVED+40(%rip)
    leave_frame
    .irp register, r15, r14, r13, r12, rbx, rbp
    pop %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endr
#else
    stp x29, x30, [sp, #-96]!
    .cfi_def_cfa_offset 96
    .cfi_offset 29, -96
    .cfi_offset 30, -88
    stp x19, x20, [sp, #16]
    .cfi_offset 19, -80
    .cfi_offset 20, -72
    stp x21, x22, [sp, #32]
    .cfi_offset 21, -64
    .cfi_offset 22, -56
    stp x23, x24, [sp, #48]
    .cfi_offset 23, -48
    .cfi_offset 24, -40
    stp x25, x26, [sp, #64]
    .cfi_offset 25, -32
    .cfi_offset 26, -24
    stp x27, x28, [sp, #80]
    .cfi_offset 27, -16
    .cfi_offset 28, -8
    adrp x16, held
    add x16, x16, #:lo12:held
    ldp x19, x20, [x16, #HELD_SAVED]
    ldp x21, x22, [x16, #HELD_SAVED + 16]
    ldp x23, x24, [x16, #HELD_SAVED + 32]
    ldp x25, x26, [x16, #HELD_SAVED + 48]
    ldp x27, x28, [x16, #HELD_SAVED + 64]
    ldr x29, [x16, #HELD_SAVED + 80]
    ldp x0, x1, [x16, #HELD_ARGUMENTS]
    ldp x2, x3, [x16, #HELD_ARGUMENTS + 16]
    ldp x4, x5, [x16, #HELD_ARGUMENTS + 32]
    ldp x6, x7, [x16, #HELD_ARGUMENTS + 48]
    ldr x8, [x16, #HELD_ARGUMENTS + 64]
    mov w17, #PHASE_ARGUMENTS
    str w17, [x16, #HELD_PHASE]
    ldr x16, [x16, #HELD_TARGET]
    blr x16
    adrp x16, held
    add x16, x16, #:lo12:held
    str wzr, [x16, #HELD_PHASE]
    stp x0, x1, [x16, #HELD_OUT]
    stp x19, x20, [x16, #HELD_OUT_SAVED]
    stp x21, x22, [x16, #HELD_OUT_SAVED + 16]
    stp x23, x24, [x16, #HELD_OUT_SAVED + 32]
    stp x25, x26, [x16, #HELD_OUT_SAVED + 48]
    stp x27, x28, [x16, #HELD_OUT_SAVED + 64]
    str x29, [x16, #HELD_OUT_SAVED + 80]
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp x29, x30, [sp], #96
    .cfi_def_cfa_offset 0
#endif
    ret
    end hold

    .irp name, held_leaf, held_outer, held_tail, dlopen, syscall
    function call_\name
    enter_frame
    slot_call \name
    leave_frame
    ret
    end call_\name
    .endr

    function jump_held_leaf
    slot_jump held_leaf
    end jump_held_leaf

// Many call sites of the same function, 32 bytes apart.
    .globl sites
    .type sites, %function
    .p2align 5
sites:
    .cfi_startproc
    .rept SITES
    .p2align 5
    enter_frame
    slot_call held_leaf
    leave_frame
    ret
    .endr
    end sites
#endif
    .section .note.GNU-stack, "", %progbits
