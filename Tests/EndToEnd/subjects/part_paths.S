// The library's part (-DPATHS): functions that return in ways of their own, or more than once. The program's part: their
// callers in assembly, which know of it.
    .macro function name
    .globl \name
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm
    .text
#if defined __x86_64__
    .macro save_all
    .irp register, rbp, rbx, r12, r13, r14, r15
    push %\register
    .endr
    .endm
    .macro load_all
    .irp register, r15, r14, r13, r12, rbx, rbp
    pop %\register
    .endr
    .endm
#ifdef PATHS
// long path_mark(struct jump_point *), void path_resume(struct jump_point *, long): setjmp and longjmp.
    function path_mark
    mov %rbx, (%rdi)
    mov %rbp, 8(%rdi)
    mov %r12, 16(%rdi)
    mov %r13, 24(%rdi)
    mov %r14, 32(%rdi)
    mov %r15, 40(%rdi)
    lea 8(%rsp), %rax
    mov %rax, 48(%rdi)
    mov (%rsp), %rax
    mov %rax, 56(%rdi)
    xor %eax, %eax
    ret
    end path_mark
    function path_resume
    mov (%rdi), %rbx
    mov 8(%rdi), %rbp
    mov 16(%rdi), %r12
    mov 24(%rdi), %r13
    mov 32(%rdi), %r14
    mov 40(%rdi), %r15
    mov 48(%rdi), %rsp
    mov %rsi, %rax
    jmp *56(%rdi)
    end path_resume
// void path_switch(void **save, void *to): goes on where another stack was left, or begins there.
    function path_switch
    save_all
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    load_all
    ret
    end path_switch
// void path_exchange(void *(*exchange)(void *), void *scratch): what exchange, on the scratch stack, says is the stack
// pointer from then on.
    function path_exchange
    save_all
    mov %rdi, %rax
    mov %rsp, %rdi
    mov %rsi, %rsp
    call *%rax
    mov %rax, %rsp
    load_all
    ret
    end path_exchange
    function path_popped // its return address leaves the stack at once, and its slot is written over
    lea 1(%rdi), %rax
    pop %rcx
    push %rax
    push %rdi
    pop %rdi
    pop %rax
    jmp *%rcx
    end path_popped
    function path_pushed // and goes back to another slot
    lea 2(%rdi), %rax
    pop %rcx
    sub $64, %rsp
    mov %rcx, (%rsp)
    mov (%rsp), %rdx
    movq $0, (%rsp)
    add $64, %rsp
    push %rdx
    ret
    end path_pushed
    function path_spoils
    lea 3(%rdi), %rax
    mov $-1, %rbx
    mov $-2, %rbp
    mov $-3, %r12
    mov $-4, %r13
    mov $-5, %r14
    mov $-6, %r15
    ret
    end path_spoils
    function path_beyond // returns for its caller, path_between
    lea 4(%rdi), %rax
    add $16, %rsp
    ret
    end path_beyond
    function path_between
    sub $8, %rsp
    call path_beyond@PLT
    ud2
    end path_between
#else
    function call_spoils
    save_all
    sub $8, %rsp
    call path_spoils@PLT
    add $8, %rsp
    load_all
    ret
    end call_spoils
    function path_start
    mov %r12, %rdi
    call path_main
    ud2
    end path_start
#endif
#else
    .macro save_all
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    .endm
    .macro load_all
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    .endm
#ifdef PATHS
    function path_mark
    stp x19, x20, [x0]
    stp x21, x22, [x0, #16]
    stp x23, x24, [x0, #32]
    stp x25, x26, [x0, #48]
    stp x27, x28, [x0, #64]
    mov x1, sp
    stp x29, x30, [x0, #80]
    str x1, [x0, #96]
    mov x0, #0
    ret
    end path_mark
    function path_resume
    ldp x19, x20, [x0]
    ldp x21, x22, [x0, #16]
    ldp x23, x24, [x0, #32]
    ldp x25, x26, [x0, #48]
    ldp x27, x28, [x0, #64]
    ldp x29, x30, [x0, #80]
    ldr x2, [x0, #96]
    mov sp, x2
    mov x0, x1
    ret
    end path_resume
    function path_switch
    save_all
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    load_all
    ret
    end path_switch
    function path_exchange
    save_all
    mov x9, x0
    mov x0, sp
    mov sp, x1
    blr x9
    mov sp, x0
    load_all
    ret
    end path_exchange
    function path_popped // x30 holds something else when it returns
    add x0, x0, #1
    mov x9, x30
    mov x30, #1
    br x9
    end path_popped
    function path_pushed
    add x0, x0, #2
    str x30, [sp, #-16]!
    mov x30, #1
    ldr x9, [sp], #16
    ret x9
    end path_pushed
    function path_spoils
    add x0, x0, #3
    .irp n, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    mov x\n, #-\n
    .endr
    ret
    end path_spoils
    function path_beyond
    add x0, x0, #4
    ldp x29, x30, [sp], #16
    ret
    end path_beyond
    function path_between
    stp x29, x30, [sp, #-16]!
    bl path_beyond
    brk #0
    end path_between
#else
    function call_spoils
    stp x29, x30, [sp, #-96]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    bl path_spoils
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp x29, x30, [sp], #96
    ret
    end call_spoils
    function path_start
    mov x0, x20
    bl path_main
    brk #0
    end path_start
#endif
#endif
    .section .note.GNU-stack, "", %progbits
