// A thread that `tracer attach` makes in a process begins here (Sources/Recorder/Recorder/Attach). It has no
// thread-local storage of its own, nobody waits for it, and it takes its stack away with it: it ends well also when the tool is gone.
//
//      x86-64          aarch64
//      rdi             x0          argument
//      rbx, r12        x19, x20    stack, and its bytes
//
// It gives itself an empty table of descriptors (close_range(2) with CLOSE_RANGE_UNSHARE from the first one on, Linux 5.9: nothing is
// copied, and nothing of the program's is closed): a file that is open in the program's for a moment is inherited by a child that is
// forked in it.
#define SYS_close_range 436
#define CLOSE_RANGE_UNSHARE 2
#if defined(__x86_64__)
#define SYS_munmap 11
#define SYS_exit 60

.macro LEAVE_TABLE
    movq %rdi, %r13
    xorl %edi, %edi
    movl $-1, %esi
    movl $CLOSE_RANGE_UNSHARE, %edx
    movl $SYS_close_range, %eax
    syscall
    movq %r13, %rdi
.endm
    .text
    .globl tracer_attach_task
    .type tracer_attach_task, @function
    .p2align 4
tracer_attach_task:
    .cfi_startproc
    .cfi_undefined rip // nobody has called it
    LEAVE_TABLE
    call tracer_attach
    jmp 1f
    .cfi_endproc
    .size tracer_attach_task, . - tracer_attach_task

    .globl tracer_detach_task
    .type tracer_detach_task, @function
    .p2align 4
tracer_detach_task:
    .cfi_startproc
    .cfi_undefined rip
    LEAVE_TABLE
    call tracer_detach
1:  movl %eax, .Lresult(%rip)
    movq %rbx, %rdi
    movq %r12, %rsi
    movl $SYS_munmap, %eax
    syscall
    xorl %edi, %edi
    movl $SYS_exit, %eax
    syscall
    .cfi_endproc
    .size tracer_detach_task, . - tracer_detach_task

#elif defined(__aarch64__)
#define SYS_exit 93
#define SYS_munmap 215

.macro LEAVE_TABLE
    mov x21, x0
    mov x0, #0
    mov w1, #-1
    mov x2, #CLOSE_RANGE_UNSHARE
    mov x8, #SYS_close_range
    svc #0
    mov x0, x21
.endm
    .text
    .globl tracer_attach_task
    .type tracer_attach_task, %function
    .p2align 4
tracer_attach_task:
    .cfi_startproc
    .cfi_undefined x30
    LEAVE_TABLE
    bl tracer_attach
    b 1f
    .cfi_endproc
    .size tracer_attach_task, . - tracer_attach_task

    .globl tracer_detach_task
    .type tracer_detach_task, %function
    .p2align 4
tracer_detach_task:
    .cfi_startproc
    .cfi_undefined x30
    LEAVE_TABLE
    bl tracer_detach
1:  adrp x1, .Lresult
    str w0, [x1, :lo12:.Lresult]
    mov x0, x19
    mov x1, x20
    mov x8, #SYS_munmap
    svc #0
    mov x0, #0
    mov x8, #SYS_exit
    svc #0
    .cfi_endproc
    .size tracer_detach_task, . - tracer_detach_task
#endif

// What the last one has returned, as the tool finds it.
    .bss
    .globl tracer_task_result
    .type tracer_task_result, %object
    .size tracer_task_result, 4
    .p2align 2
tracer_task_result:
.Lresult: // not by a name that others may define
    .zero 4

    .section .note.GNU-stack, "", %progbits
