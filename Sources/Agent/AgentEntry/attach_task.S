// A thread that `tracer attach` makes in a process begins here (Sources/Recorder/Recorder/Attach). It has no
// thread-local storage of its own, nobody waits for it, and it takes its stack away with it: it ends well also when the tool is gone.
// In a process that may map nothing any more (RLIMIT_AS, vm.max_map_count) the task that detaches has a stack that was
// reserved when it was attached to, tracer_detach_stack, of which it gives back the pages.
//
//      x86-64          aarch64
//      rdi             x0          argument
//      rbx, r12        x19, x20    stack, and its bytes: whole pages
//
// It gives itself an empty table of descriptors (close_range(2) with CLOSE_RANGE_UNSHARE from the first one on, Linux 5.9: nothing is
// copied, and nothing of the program's is closed): a file that is open in the program's for a moment is inherited by a child that is
// forked in it.
#define SYS_close_range 436
#define CLOSE_RANGE_UNSHARE 2
#define MADV_DONTNEED 4
#define READ_WRITE 3 // PROT_READ, PROT_WRITE
#define RESERVED 0x4022 // MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE
#include "../../Format/CTraceLayout/include/trace_layout.h" // TRACE_DETACH_STACK_BYTES
#if defined(__x86_64__)
#define SYS_mmap 9
#define SYS_munmap 11
#define SYS_madvise 28
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
.macro RESERVE_STACK
    cmpq $0, .Ldetach_stack(%rip)
    jne 3f
    movq %rdi, %r13
    xorl %edi, %edi
    movl $TRACE_DETACH_STACK_BYTES, %esi
    movl $READ_WRITE, %edx
    movl $RESERVED, %r10d
    movq $-1, %r8
    xorl %r9d, %r9d
    movl $SYS_mmap, %eax
    syscall
    movq %r13, %rdi
    testq %rax, %rax
    js 3f
    movq %rax, .Ldetach_stack(%rip)
3:
.endm
    .text
    .globl tracer_attach_task
    .type tracer_attach_task, @function
    .p2align 4
tracer_attach_task:
    .cfi_startproc
    .cfi_undefined rip // nobody has called it
    LEAVE_TABLE
    RESERVE_STACK
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
    movl $MADV_DONTNEED, %edx // munmap has two arguments
    movl $SYS_munmap, %eax
    cmpq .Ldetach_stack(%rip), %rdi
    jne 2f
    movl $SYS_madvise, %eax
2:  syscall
    xorl %edi, %edi
    movl $SYS_exit, %eax
    syscall
    .cfi_endproc
    .size tracer_detach_task, . - tracer_detach_task

#elif defined(__aarch64__)
#define SYS_exit 93
#define SYS_munmap 215
#define SYS_mmap 222
#define SYS_madvise 233

.macro LEAVE_TABLE
    mov x21, x0
    mov x0, #0
    mov w1, #-1
    mov x2, #CLOSE_RANGE_UNSHARE
    mov x8, #SYS_close_range
    svc #0
    mov x0, x21
.endm
.macro RESERVE_STACK
    adrp x9, .Ldetach_stack
    ldr x10, [x9, :lo12:.Ldetach_stack]
    cbnz x10, 3f
    mov x21, x0
    mov x0, #0
    mov x1, #TRACE_DETACH_STACK_BYTES
    mov x2, #READ_WRITE
    mov x3, #RESERVED
    mov x4, #-1
    mov x5, #0
    mov x8, #SYS_mmap
    svc #0
    tbnz x0, #63, 4f
    adrp x9, .Ldetach_stack
    str x0, [x9, :lo12:.Ldetach_stack]
4:  mov x0, x21
3:
.endm
    .text
    .globl tracer_attach_task
    .type tracer_attach_task, %function
    .p2align 4
tracer_attach_task:
    .cfi_startproc
    .cfi_undefined x30
    LEAVE_TABLE
    RESERVE_STACK
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
    mov x2, #MADV_DONTNEED // munmap has two arguments
    mov x8, #SYS_munmap
    adrp x3, .Ldetach_stack
    ldr x3, [x3, :lo12:.Ldetach_stack]
    cmp x0, x3
    b.ne 2f
    mov x8, #SYS_madvise
2:  svc #0
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

// Reserved by the first task that attaches; 0: there was no memory. Not in here: collectors take what a library can write to for roots.
    .globl tracer_detach_stack
    .type tracer_detach_stack, %object
    .size tracer_detach_stack, 8
    .p2align 3
tracer_detach_stack:
.Ldetach_stack:
    .zero 8

    .section .note.GNU-stack, "", %progbits
