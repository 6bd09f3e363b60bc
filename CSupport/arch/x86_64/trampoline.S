// The x86_64 trampolines. docs/trampoline.md tells the story; this is the summary.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's descriptor in r11 and
// jumps here. The trampoline pops the caller's return address into a frame record, *calls* the function, and on
// return pushes the address back: the CPU's return predictor stays balanced and stack arguments stay where they are.
//
//      on entry                      while the function runs            frame record (rbx)
//      s+8  stack arguments          S    stack arguments               FRAME_RETURN   return address
//      s    return address           S-8  address of `returned`         FRAME_SAVED    caller's rbx
//      s-16 ...-96 spills (SPILL_*)       ...                           FRAME_PLACE    s - thread_hot.low
//      s-128 end of the red zone
//
// S = s + 8 is the CFA of the caller's call and of the trampoline's own: our frame has size zero.
//
// Registers. At a PLT call only r11 and the flags are free (System V psABI 3.2.1; Swift's preserve_most runtime
// calls demand the same on return), so everything else is spilled, below rsp: at a call nothing of the caller lives
// there, and a signal handler leaves 128 bytes alone (psABI 3.2.2). No vector register is touched on the fast path.
//
// Signals. A handler may run traced code between any two instructions. Hence: a record becomes the top *before* it is
// filled, and is empty until then (its slot is 0, which says so to the slow path); it is left only after everything
// was read from it; a word of the chunk is reserved with one xadd (no lock: the other party is a handler on this very
// thread), after the clock was read and before the base is looked at, so that a base which a handler sets in between
// is noticed.
#if defined(__x86_64__)
#include "../../include/shim.h"

#define SYS_mmap 9
#define SYS_rt_sigprocmask 14
#define SYS_clock_gettime 228
#define VALGRIND_STACK_REGISTER 0x1501
#define SYS_rt_sigreturn 15
#define SIG_BLOCK 0
#define SIG_SETMASK 2

    .section .tls_sites, "a"
    .p2align 2
    .globl tracer_tls_sites_begin, tracer_tls_sites_end
    .hidden tracer_tls_sites_begin, tracer_tls_sites_end
tracer_tls_sites_begin:

// The thread's state is at a distance from the thread pointer that is fixed once the process runs and unknown when
// the library is linked. The agent writes it into these instructions before the first call: one load less in each.
.macro TLS instruction:vararg
    \instruction
771:
    .pushsection .tls_sites
    .long 771b - 4 - .
    .popsection
.endm
#define IN_TLS(field) %fs:(TLS_PLACEHOLDER + field)

// Time in rax; rdx is clobbered, nothing else.
.macro READ_CLOCK_cycles
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
.endm
// Where the cycle counter is not usable the kernel's own system call is: it cannot fail, and needs no stack.
.macro READ_CLOCK_monotonic
    movq %rcx, -104(%rsp)
    movq %r11, -72(%rsp)
    movq %rdi, -80(%rsp)
    movq %rsi, -88(%rsp)
    movl $SYS_clock_gettime, %eax
    movl $1, %edi                       // CLOCK_MONOTONIC
    leaq -128(%rsp), %rsi
    syscall
    imulq $1000000000, -128(%rsp), %rax
    addq -120(%rsp), %rax
    movq -104(%rsp), %rcx
    movq -72(%rsp), %r11
    movq -80(%rsp), %rdi
    movq -88(%rsp), %rsi
.endm

// Runs a Swift function on the agent's stack with all signals blocked (SIGBUS stays as the program has it).
// In: rbp = traced stack pointer; every caller-saved general register is spilled below it.
// Out: r8 = result, 0 also when no stack could be had; rsp = rbp again. General registers but rbx, rbp, r12-r15 are
// garbage. The agent is built for baseline x86-64: xmm0-15 are all that it can change of the vector state.
// Arguments: rdi = thread, rsi = \second, rdx = \third, rcx = \fourth, given as operands that survive a system call.
.macro SLOW_CALL function, second, third, fourth
    movl $SYS_rt_sigprocmask, %eax
    movl $SIG_BLOCK, %edi
    leaq tracer_blocked_signals(%rip), %rsi
    movq tracer_thread@gottpoff(%rip), %rdx
    addq %fs:0, %rdx
    addq $THREAD_MASK, %rdx
    movl $8, %r10d
    syscall
    movq tracer_thread@gottpoff(%rip), %rdi
    movq %fs:THREAD_UNIT(%rdi), %rax
    testq %rax, %rax
    jnz 901f
    // A thread's first slow path: its wiped page, stack and unit in one private mapping, which a fork copies.
    xorl %edi, %edi
    movl $(UNIT_WIPED_BYTES + UNIT_STACK_BYTES + UNIT_BYTES), %esi
    movl $3, %edx                       // PROT_READ | PROT_WRITE
    movl $0x4022, %r10d                 // MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    movq $-1, %r8
    xorl %r9d, %r9d
    movl $SYS_mmap, %eax
    syscall
    xorl %r8d, %r8d
    cmpq $-4096, %rax
    ja 902f
    addq $(UNIT_WIPED_BYTES + UNIT_STACK_BYTES), %rax
    movq tracer_thread@gottpoff(%rip), %rdi
    movq %rax, %fs:THREAD_UNIT(%rdi)
    // Valgrind warns about a stack that it was not told of (VALGRIND_STACK_REGISTER, valgrind.h: the request is in
    // memory at rax, its answer comes in rdx). To a processor this is nothing: the rotations are a whole turn.
    movq $VALGRIND_STACK_REGISTER, -48(%rax)
    leaq -UNIT_STACK_BYTES(%rax), %rdx
    movq %rdx, -40(%rax)
    movq %rax, -32(%rax)
    leaq -48(%rax), %rax
    xorl %edx, %edx
    rolq $3, %rdi
    rolq $13, %rdi
    rolq $61, %rdi
    rolq $51, %rdi
    xchgq %rbx, %rbx
    leaq 48(%rax), %rax
901:
    leaq -256(%rax), %rsp
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps %xmm\n, (\n * 16)(%rsp)
    .endr
    movq \second, %rsi
    movq \third, %rdx
    movq \fourth, %rcx
    movq tracer_thread@gottpoff(%rip), %rdi
    addq %fs:0, %rdi
    call \function
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps (\n * 16)(%rsp), %xmm\n
    .endr
    movq %rbp, %rsp
    movq %rax, %r8
902:
    movl $SYS_rt_sigprocmask, %eax
    movl $SIG_SETMASK, %edi
    movq tracer_thread@gottpoff(%rip), %rsi
    addq %fs:0, %rsi
    addq $THREAD_MASK, %rsi
    xorl %edx, %edx
    movl $8, %r10d
    syscall
.endm

.macro SPILL_FOR_SLOW_CALL
    movq %rcx, -SPILL_RCX(%rsp)
    movq %rsi, -SPILL_RSI(%rsp)
    movq %rdi, -SPILL_RDI(%rsp)
    movq %r10, -SPILL_R10(%rsp)
    movq %r8, -SPILL_R8(%rsp)
    movq %r9, -SPILL_R9(%rsp)
    movq %r11, -SPILL_R11(%rsp)
    movq %rbp, -SPILL_RBP(%rsp)
    movq %rsp, %rbp
.endm
.macro RELOAD_AFTER_SLOW_CALL
    movq -SPILL_RCX(%rsp), %rcx
    movq -SPILL_RSI(%rsp), %rsi
    movq -SPILL_RDI(%rsp), %rdi
    movq -SPILL_R10(%rsp), %r10
    movq -SPILL_R8(%rsp), %r8
    movq -SPILL_R9(%rsp), %r9
    movq -SPILL_R11(%rsp), %r11
    movq -SPILL_RBP(%rsp), %rbp
.endm

// Ends in a jump to the function as if nothing had been there. Spills are relative to the entry's rsp.
.macro PASS
    movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    jmpq *FUNCTION_TARGET(%r11)
.endm
// DW_CFA_expression rbx: saved at rbx + FRAME_SAVED = breg3 FRAME_SAVED
.macro CFI_RBX_IN_RECORD
    .cfi_escape 0x10, 3, 2, 0x73, FRAME_SAVED
.endm

// The enter word before `slot` becomes a complete call by one addition. rax = duration.
.macro COMPLETE_CALL slot
    shlq $EVENT_DURATION_SHIFT, %rax
    orq $(EVENT_COMPLETE - EVENT_ENTER), %rax
    addq %rax, -8(\slot)
.endm
// rax = time since the base; then the exit word of the frame in rbx.
.macro EXIT_WORD scratch
    shlq $EVENT_TIME_SHIFT, %rax
    movq FRAME_FUNCTION(%rbx), \scratch
    orq FUNCTION_HEAD(\scratch), %rax
    xorq $(EVENT_ENTER ^ EVENT_EXIT), %rax
.endm

// clock: which READ_CLOCK. filtered: TRACER_MINMS is in force; then an enter is not written when it happens but when
// something inside it is kept, so that a call which is not kept never touches the chunk.
.macro TRAMPOLINE variant, clock, filtered
    .section .text.trampolines, "ax"
    .p2align 6
    .globl tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant, tracer_watched_\variant
    .hidden tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant, tracer_watched_\variant
    .type tracer_enter_\variant, @function
tracer_enter_\variant:
    .cfi_startproc
    movq %rax, -SPILL_RAX(%rsp)         // al counts vector registers of a variadic call
    movq %rdx, -SPILL_RDX(%rsp)
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpq FRAME_PLACE(%rax), %rsp        // stacks grow down: a nested frame lies below its caller's
    jae 21f
    TLS cmpq IN_TLS(THREAD_LOW), %rsp
    jb 21f
10: movq FRAME_ABOVE(%rax), %rax
    testq %rax, %rax
    jz 22f
    TLS movq %rax, IN_TLS(THREAD_TOP)
11: movq %rsp, FRAME_PLACE(%rax)
    movq %rbx, FRAME_SAVED(%rax)
    movq %rax, %rbx
    CFI_RBX_IN_RECORD
    movq %r11, FRAME_FUNCTION(%rbx)
    popq FRAME_RETURN(%rbx)
    .cfi_def_cfa_offset 0               // the return address is still at S-8
    READ_CLOCK_\clock
    movq %rax, FRAME_ENTER(%rbx)
    .if \filtered
    movq $SLOT_UNWRITTEN, FRAME_SLOT(%rbx)
    .else
    TLS movq IN_TLS(THREAD_HOT), %r11
    movl $8, %edx
    xaddq %rdx, HOT_CURSOR(%r11)
    cmpq HOT_LIMIT(%r11), %rdx
    jae 32f
    subq HOT_BASE(%r11), %rax
    cmpq $(1 << EVENT_START_BITS), %rax
    jae 32f
    shlq $EVENT_TIME_SHIFT, %rax
    movq FRAME_FUNCTION(%rbx), %r11
    orq FUNCTION_HEAD(%r11), %rax
    movq %rax, (%rdx)
    addq $8, %rdx
    movq %rdx, FRAME_SLOT(%rbx)
    .endif
    movq -8-SPILL_RAX(%rsp), %rax
    movq -8-SPILL_RDX(%rsp), %rdx
    .cfi_endproc

    // The frame of size zero. Its CFA is its caller's, so the unwinder must be told by other means that they differ:
    // a *signal frame* does that. But the caller of a signal frame is looked up at its exact pc, which is past the
    // call; hence the expressions yield return address - 1. (libgcc unwind-dw2.c, uw_frame_state_for.)
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 0
    // DW_CFA_val_expression rip: *(rbx + FRAME_RETURN) - 1 = breg3 FRAME_RETURN, deref, const1s -1, plus
    .cfi_escape 0x16, 16, 6, 0x73, FRAME_RETURN, 0x06, 0x09, 0xff, 0x22
    CFI_RBX_IN_RECORD
12: callq *FUNCTION_TARGET(%r11)
tracer_returned_\variant:
    movq %rax, -8-SPILL_RAX(%rsp)
    movq %rdx, -8-SPILL_RDX(%rsp)
    READ_CLOCK_\clock
    TLS cmpq %rbx, IN_TLS(THREAD_TOP)
    jne 60f
    subq FRAME_ENTER(%rbx), %rax
    .ifeq \filtered
    movq FRAME_SLOT(%rbx), %rdx
    leaq SLOT_CLOSING(%rdx), %r11
    movq %r11, FRAME_SLOT(%rbx)
    .endif
    TLS movq IN_TLS(THREAD_HOT), %r11
    .if \filtered
    cmpq HOT_MINIMUM(%r11), %rax
    jae 61f
    movq HOT_CHUNK(%r11), %r11
    testq %r11, %r11
    jz 61f
    movq $0, FRAME_SLOT(%rbx)
    incq CHUNK_FILTERED_TIME(%r11)
    .else
    cmpq %rdx, HOT_CURSOR(%r11)         // its enter is the last event: the call becomes one word
    jne 51f
    cmpq $(1 << EVENT_DURATION_BITS), %rax
    jae 51f
    COMPLETE_CALL %rdx
    .endif
41: pushq FRAME_RETURN(%rbx)
    .cfi_def_cfa_offset 8
    // val_expression rip: *rsp - 1 = breg7 0, deref, const1s -1, plus
    .cfi_escape 0x16, 16, 6, 0x77, 0, 0x06, 0x09, 0xff, 0x22
    .ifeq \filtered
    movq $0, FRAME_SLOT(%rbx)
    .endif
    movq FRAME_BELOW(%rbx), %r11
    movq FRAME_SAVED(%rbx), %rbx
    .cfi_same_value %rbx
    TLS movq %r11, IN_TLS(THREAD_TOP)   // from here on a handler may reuse the record
42: movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    retq
    .cfi_def_cfa_offset 0
    .cfi_escape 0x16, 16, 6, 0x73, FRAME_RETURN, 0x06, 0x09, 0xff, 0x22
    CFI_RBX_IN_RECORD

    .ifeq \filtered
51: // Not one word: an exit event. rdx = slot, rax = duration.
    addq FRAME_ENTER(%rbx), %rax
    cmpq $SLOT_ELSEWHERE, %rdx
    jb 62f                              // its enter could not be written
    TLS movq IN_TLS(THREAD_HOT), %r11
    movl $8, %edx
    xaddq %rdx, HOT_CURSOR(%r11)
    cmpq HOT_LIMIT(%r11), %rdx
    jae 62f
    subq HOT_BASE(%r11), %rax
    movq %rax, %r11
    shrq $EVENT_TIME_BITS, %r11
    jnz 63f
    EXIT_WORD %r11
    movq %rax, (%rdx)
    jmp 41b
63: TLS movq IN_TLS(THREAD_HOT), %r11
    addq HOT_BASE(%r11), %rax
62: movq $SLOT_ELSEWHERE, FRAME_SLOT(%rbx)
    jmp 60f
    .endif

13: // A function whose return Swift is told of. Its record may be off the thread's chain.
    callq *FUNCTION_TARGET(%r11)
tracer_watched_\variant:
    movq %rax, -8-SPILL_RAX(%rsp)
    movq %rdx, -8-SPILL_RDX(%rsp)
    READ_CLOCK_\clock
    jmp 65f

61: addq FRAME_ENTER(%rbx), %rax
60: // rax = now. Frames above this one are dead, or it lies on another stack, or the chunk is full, or it is time to
    // write what the filter held back, or we are a child. Spills: rax and rdx are there already.
    .ifeq \filtered
    TLS movq IN_TLS(THREAD_TOP), %rdx
    cmpl $LAST_STAND_IN, FRAME_LAST(%rdx)
    je 80f
    .endif
65: cmpl $0, tracer_confined(%rip)
    je 64f
    // No system call may be made, and nothing is recorded any more: no record is reused, and top may stay.
    .cfi_remember_state
    pushq FRAME_RETURN(%rbx)
    .cfi_def_cfa_offset 8
    .cfi_escape 0x16, 16, 6, 0x77, 0, 0x06, 0x09, 0xff, 0x22
    movq FRAME_SAVED(%rbx), %rbx
    .cfi_same_value %rbx
    jmp 42b
    .cfi_restore_state
64: leaq -8(%rsp), %rsp
    .cfi_def_cfa_offset 8
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    // Once Swift has closed the frame and signals are open again, a handler may reuse the record.
    movq FRAME_RETURN(%rbx), %r11
    movq %r11, (%rbp)
    movq FRAME_SAVED(%rbx), %r11
    movq %r11, -SPILL_R11(%rbp)
    .cfi_escape 0x16, 16, 6, 0x76, 0, 0x06, 0x09, 0xff, 0x22 // *rbp - 1
    .cfi_offset %rbx, -8 - SPILL_R11
    movq %rax, -SPILL_RBX(%rbp)
    SLOW_CALL tracer_slow_exit, %rbx, -SPILL_RBX(%rbp), %rbp
    RELOAD_AFTER_SLOW_CALL
    .cfi_def_cfa %rsp, 8
    .cfi_escape 0x16, 16, 6, 0x77, 0, 0x06, 0x09, 0xff, 0x22 // *rsp - 1
    .cfi_restore %rbp
    movq %r11, %rbx
    .cfi_same_value %rbx
    jmp 42b

    .ifeq \filtered
80: // Frames on other stacks are open, so the order of ends says nothing: RESUME and an exit, if not one word. rax = now.
    .cfi_def_cfa_offset 0
    .cfi_escape 0x16, 16, 6, 0x73, FRAME_RETURN, 0x06, 0x09, 0xff, 0x22
    CFI_RBX_IN_RECORD
    TLS movq IN_TLS(THREAD_UNIT), %rdx
    cmpl $0, UNIT_CHANGING(%rdx)
    jne 65b
    btsl $0, UNIT_BUSY(%rdx)
    jc 65b
    TLS movq IN_TLS(THREAD_TOP), %r11
    cmpl $LAST_STAND_IN, FRAME_LAST(%r11)
    jne 87f
    movq FRAME_SLOT(%rbx), %r11
    cmpq $SLOT_ELSEWHERE, %r11
    je 81f
    cmpq $SLOT_LEFT, %r11
    jbe 87f
81: cmpq %rdx, FRAME_OWNER(%rbx)
    jne 82f
    cmpl $0, FRAME_SIGNAL(%rbx)
    je 83f
    jmp 87f
82: cmpq %rbx, UNIT_TOP(%rdx)
    jne 87f
83: orq $SLOT_CLOSING, FRAME_SLOT(%rbx)
    movq %rax, -8-SPILL_RCX(%rsp)
    TLS movq IN_TLS(THREAD_HOT), %rdx
    cmpq %r11, HOT_CURSOR(%rdx)         // its enter is the last event: one word, as on the fast path
    jne 88f
    subq FRAME_ENTER(%rbx), %rax
    cmpq $(1 << EVENT_DURATION_BITS), %rax
    jae 89f
    COMPLETE_CALL %r11
    jmp 90f
89: movq -8-SPILL_RCX(%rsp), %rax
88: movl $16, %r11d
    xaddq %r11, HOT_CURSOR(%rdx)
    cmpq HOT_LIMIT(%rdx), %r11
    jae 86f
    subq HOT_BASE(%rdx), %rax
    movq %rax, %rdx
    shrq $EVENT_TIME_BITS, %rdx
    jnz 86f
    movq FRAME_ENTER(%rbx), %rdx
    shlq $CONTROL_PAYLOAD_SHIFT, %rdx
    orq $(CONTROL_RESUME << CONTROL_KIND_SHIFT), %rdx
    movq %rdx, (%r11)                   // alone it says nothing: the next word is empty
    EXIT_WORD %rdx
    movq %rax, 8(%r11)
90: TLS movq IN_TLS(THREAD_UNIT), %rdx
    .cfi_remember_state
    pushq FRAME_RETURN(%rbx)
    .cfi_def_cfa_offset 8
    .cfi_escape 0x16, 16, 6, 0x77, 0, 0x06, 0x09, 0xff, 0x22
    movq $0, FRAME_SLOT(%rbx)
    cmpq %rdx, FRAME_OWNER(%rbx)
    je 84f
    .cfi_remember_state
    movq FRAME_BELOW(%rbx), %rax
    movq FRAME_SAVED(%rbx), %rbx
    .cfi_same_value %rbx
    movq %rax, UNIT_TOP(%rdx)           // from here on a handler may reuse the record
    jmp 85f
    .cfi_restore_state
84: movl $0, FRAME_USE(%rbx)
    decq UNIT_FOREIGN(%rdx)
    movq UNIT_READY(%rdx), %rax
    movq %rax, FRAME_OLDER(%rbx)
    movq %rbx, UNIT_READY(%rdx)
    movq FRAME_SAVED(%rbx), %rbx
    .cfi_same_value %rbx
85: movl $0, UNIT_BUSY(%rdx)            // … and this one
    jmp 42b
    .cfi_restore_state
86: movq $SLOT_ELSEWHERE, FRAME_SLOT(%rbx)
    movq -8-SPILL_RCX(%rsp), %rax
    TLS movq IN_TLS(THREAD_UNIT), %rdx
87: movl $0, UNIT_BUSY(%rdx)
    jmp 65b
    .endif
    .cfi_endproc

    // Off the fast path. r11 = descriptor, rax = top.
    .cfi_startproc
21: // Not below the innermost open frame, or the stack is marked as nobody's.
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je 28f                              // a child that fork has just made
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je 24f
    .ifeq \filtered
    cmpl $LAST_STAND_IN, FRAME_LAST(%rax)
    je 70f
    .endif
    cmpq FRAME_PLACE(%rax), %rsp
    jne 30f
    // Equal, and the return address is ours: a tail call of that frame's function.
    leaq tracer_returned_\variant(%rip), %rdx
    cmpq %rdx, (%rsp)
    jne 30f
    movq FRAME_BELOW(%rax), %rdx
    cmpq %rsp, FRAME_PLACE(%rdx)
    movl $0, %edx
    jne 27f
    movl FRAME_TAILS(%rax), %edx
27: incl %edx
    cmpl $TAIL_LIMIT, %edx
    jae 30f
    movq FRAME_ABOVE(%rax), %rax
    testq %rax, %rax
    jz 22f
    movl %edx, FRAME_TAILS(%rax)
    TLS movq IN_TLS(THREAD_TOP), %rax
    jmp 10b

    .ifeq \filtered
70: // Frames on other stacks are open. Who comes here while the unit is busy takes the slow path, and that takes none
    // of the records which are ready.
    TLS movq IN_TLS(THREAD_UNIT), %rax
    cmpl $0, UNIT_CHANGING(%rax)
    jne 30f
    btsl $0, UNIT_BUSY(%rax)            // one step: a handler may switch to a context that was interrupted in here
    jc 30f
    TLS movq IN_TLS(THREAD_TOP), %rdx
    cmpl $LAST_STAND_IN, FRAME_LAST(%rdx) // still: from now on it stays
    jne 73f
    cmpq UNIT_STACK_LOW(%rax), %rsp
    jb 71f
    cmpq UNIT_STACK_HIGH(%rax), %rsp
    jae 71f
    cmpq $0, UNIT_SIGNAL_FRAMES(%rax)   // left by a handler that jumped here?
    jne 73f
    cmpq $0, UNIT_FOREIGN(%rax)
    jne 74f
    decl UNIT_PATIENCE(%rax)
    js 73f
74: movq UNIT_TOP(%rax), %rdx
    cmpq FRAME_PLACE(%rdx), %rsp
    jae 73f
    movq FRAME_ABOVE(%rdx), %rdx
    testq %rdx, %rdx
    jz 73f
    movq %rdx, UNIT_TOP(%rax)
    jmp 72f
71: movq %rsp, %rdx
    subq UNIT_SIGNAL_LOW(%rax), %rdx
    cmpq UNIT_SIGNAL_BYTES(%rax), %rdx
    jb 73f
    movq UNIT_READY(%rax), %rdx
    testq %rdx, %rdx
    jz 73f
    movq %r11, -SPILL_R11(%rsp)
    movq FRAME_OLDER(%rdx), %r11
    movq %r11, UNIT_READY(%rax)
    movq -SPILL_R11(%rsp), %r11
    movl $USE_OPEN, FRAME_USE(%rdx)
    movl $PATIENCE, UNIT_PATIENCE(%rax)
    incq UNIT_FOREIGN(%rax)
72: movl $0, UNIT_BUSY(%rax)
    movq %rdx, %rax
    jmp 11b
73: movl $0, UNIT_BUSY(%rax)
    jmp 30f
    .endif

22: // No record above: the end of the chain, or of TRACER_MAXDEPTH.
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpl $0, FRAME_LAST(%rax)
    je 30f
    TLS movq IN_TLS(THREAD_HOT), %rax
    movq HOT_CHUNK(%rax), %rax
    testq %rax, %rax
    jz 30f
    incq CHUNK_FILTERED_DEPTH(%rax)
23: PASS

24: // Not recording.
    cmpl $0, tracer_process+PROCESS_DROPPING(%rip)
    je 23b
    TLS movq IN_TLS(THREAD_HOT), %rax
    movq HOT_CHUNK(%rax), %rax
    testq %rax, %rax
    jz 23b
    incq CHUNK_DROPPED(%rax)
    jmp 23b

    // A function that must see its real caller, or returns twice: entry only. Or one that Swift looks at.
tracer_special_\variant:
    movq %rax, -SPILL_RAX(%rsp)
    movq %rdx, -SPILL_RDX(%rsp)
    cmpl $KIND_TAIL, FUNCTION_KIND(%r11)
    jne 37f
    TLS cmpq IN_TLS(THREAD_LOW), %rsp
    jb 29f
    TLS movq IN_TLS(THREAD_TOP), %rax
31: cmpq $0, FRAME_ABOVE(%rax)
    je 22b
    .if \filtered
    TLS movq IN_TLS(THREAD_HOT), %rax
    movq HOT_CHUNK(%rax), %rax          // it has no length: always below the filter
    testq %rax, %rax
    jz 30f
    incq CHUNK_FILTERED_TIME(%rax)
    jmp 23b
    .else
    movq %rcx, -SPILL_RCX(%rsp)
    TLS movq IN_TLS(THREAD_HOT), %rcx
    incq HOT_PENDING(%rcx)
    READ_CLOCK_\clock
    movl $8, %edx
    xaddq %rdx, HOT_CURSOR(%rcx)
    cmpq HOT_LIMIT(%rcx), %rdx
    jae 26f
    subq HOT_BASE(%rcx), %rax
    cmpq $(1 << EVENT_START_BITS), %rax
    jae 26f
    shlq $EVENT_TIME_SHIFT, %rax
    orq FUNCTION_INSTANT(%r11), %rax
    movq %rax, (%rdx)
    decq HOT_PENDING(%rcx)
    movq -SPILL_RCX(%rsp), %rcx
    jmp 23b
26: decq HOT_PENDING(%rcx)
    movq -SPILL_RCX(%rsp), %rcx
    jmp 30f
    .endif
37: cmpl $KIND_CALL, FUNCTION_KIND(%r11) // looked at once, and no longer
    je tracer_enter_\variant
    cmpl $KIND_ONCE, FUNCTION_KIND(%r11)
    jne 28f
    cmpl $0, (%rdi)                     // the flag: somebody has begun it, or all is done
    jne tracer_enter_\variant
    jmp 28f
29: cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je 28f
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je 24b
    .ifeq \filtered
    // The stand-in has a record above when there is no limit of depth.
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpl $LAST_STAND_IN, FRAME_LAST(%rax)
    jne 30f
    cmpq $0, FRAME_ABOVE(%rax)
    je 30f
    TLS movq IN_TLS(THREAD_UNIT), %rdx
    cmpl $0, UNIT_CHANGING(%rdx)
    je 31b
    .endif
    jmp 30f
28: cmpl $0, tracer_confined(%rip)      // a system call of ours could be forbidden
    jne 23b

30: // Everything is still to be done.
    movq %rbx, -SPILL_RBX(%rsp)
    .cfi_offset %rbx, -8 - SPILL_RBX
    xorl %ebx, %ebx
    .ifeq \filtered
    jmp 33f
    .cfi_def_cfa_offset 0
    CFI_RBX_IN_RECORD
32: // rbx = the record, which is the top and lacks its event; the return address was popped and is still there.
    leaq -8(%rsp), %rsp
    .cfi_def_cfa_offset 8
    movq FRAME_FUNCTION(%rbx), %r11
    movq FRAME_SAVED(%rbx), %rax
    movq %rax, -SPILL_RBX(%rsp)
    .cfi_offset %rbx, -8 - SPILL_RBX
33:
    .endif
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    SLOW_CALL tracer_slow_enter, -SPILL_R11(%rbp), %rbp, %rbx
    .cfi_def_cfa %rsp, 8
    testq %rbx, %rbx
    cmovzq %r8, %rbx
    testq %rbx, %rbx
    jz 34f
    CFI_RBX_IN_RECORD
    RELOAD_AFTER_SLOW_CALL
    .cfi_restore %rbp
    movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    leaq 8(%rsp), %rsp
    .cfi_def_cfa_offset 0
    cmpl $KIND_WATCHED, FUNCTION_KIND(%r11)
    jae 13b
    jmp 12b
34: .cfi_def_cfa_offset 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    .cfi_offset %rbx, -8 - SPILL_RBX
    RELOAD_AFTER_SLOW_CALL
    .cfi_restore %rbp
    movq -SPILL_RBX(%rsp), %rbx
    .cfi_restore %rbx
    PASS
    .cfi_endproc
    .size tracer_enter_\variant, . - tracer_enter_\variant
.endm

    .section .text.trampolines, "ax"
    .p2align 12
    .globl tracer_code_begin, tracer_code_end
    .hidden tracer_code_begin, tracer_code_end
tracer_code_begin:
TRAMPOLINE cycles, cycles, 0
TRAMPOLINE cycles_filtered, cycles, 1
TRAMPOLINE monotonic, monotonic, 0
TRAMPOLINE monotonic_filtered, monotonic, 1
    .p2align 12
tracer_code_end:
    .section .tls_sites
tracer_tls_sites_end:
    .text

// Stands in for the loader's debugger hook, _dl_debug_state: called with the loader's lock held.
    .globl tracer_loader_event
    .hidden tracer_loader_event
    .type tracer_loader_event, @function
tracer_loader_event:
    .cfi_startproc
    cmpl $0, tracer_confined(%rip)
    je 1f
    retq
1:
    movq %rax, -SPILL_RAX(%rsp)
    movq %rdx, -SPILL_RDX(%rsp)
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    SLOW_CALL tracer_slow_loader_event, %rbp, %rbp, %rbp
    RELOAD_AFTER_SLOW_CALL
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    retq
    .cfi_endproc
    .size tracer_loader_event, . - tracer_loader_event

// Where a handler of ours returns to. Unwinders and gdb know it by exactly these bytes, and by no description of its own
// (libgcc i386/linux-unwind.h).
    .globl tracer_signal_return
    .hidden tracer_signal_return
    .type tracer_signal_return, @function
    nop
tracer_signal_return:
    movq $SYS_rt_sigreturn, %rax
    syscall
    .size tracer_signal_return, . - tracer_signal_return

// void tracer_mark(name), tracer_begin(name), tracer_end(name): like a call through a stub, on the agent's stack.
.macro SPAN name, kind
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    movl $\kind, %r11d
    jmp span
    .cfi_endproc
    .size \name, . - \name
.endm
SPAN tracer_mark, SPAN_MARK
SPAN tracer_begin, SPAN_BEGIN
SPAN tracer_end, SPAN_END
    .hidden tracer_begin_thread
SPAN tracer_begin_thread, SPAN_NONE
    .type span, @function
span:
    .cfi_startproc
    cmpl $0, tracer_confined(%rip)
    je 1f
    retq
1:  movq %rax, -SPILL_RAX(%rsp)
    movq %rdx, -SPILL_RDX(%rsp)
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    SLOW_CALL tracer_slow_span, -SPILL_RDI(%rbp), -SPILL_R11(%rbp), %rbp
    RELOAD_AFTER_SLOW_CALL
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    retq
    .cfi_endproc
    .size span, . - span

// long tracer_system_call(number, a, b, c, d, e, f)
    .globl tracer_system_call
    .hidden tracer_system_call
    .type tracer_system_call, @function
tracer_system_call:
    .cfi_startproc
    movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    retq
    .cfi_endproc
    .size tracer_system_call, . - tracer_system_call

// uint64_t tracer_call_resolver(resolver): IFUNC resolvers take no arguments on x86_64 (psABI leaves it to libc).
    .globl tracer_call_resolver
    .hidden tracer_call_resolver
    .type tracer_call_resolver, @function
tracer_call_resolver:
    .cfi_startproc
    subq $8, %rsp
    .cfi_def_cfa_offset 16
    callq *%rdi
    addq $8, %rsp
    .cfi_def_cfa_offset 8
    retq
    .cfi_endproc
    .size tracer_call_resolver, . - tracer_call_resolver

// The compiler calls these by name; libc's use AVX, which the slow path does not save.
    .globl memcpy, memmove, memset, memcmp, strlen
    .hidden memcpy, memmove, memset, memcmp, strlen
    .type strlen, @function
    .type memcpy, @function
    .type memmove, @function
    .type memset, @function
    .type memcmp, @function
memmove:
    movq %rdi, %rax
    subq %rsi, %rax
    cmpq %rdx, %rax                     // unsigned: destination inside the source
    jb 1f
memcpy:                                 // up to 64 bytes all is read before any is written
    movq %rdi, %rax
    cmpq $16, %rdx
    jb 5f
    cmpq $64, %rdx
    ja 6f
    movups (%rsi), %xmm0
    movups -16(%rsi, %rdx), %xmm1
    cmpq $32, %rdx
    jbe 4f
    movups 16(%rsi), %xmm2
    movups -32(%rsi, %rdx), %xmm3
    movups %xmm2, 16(%rdi)
    movups %xmm3, -32(%rdi, %rdx)
4:  movups %xmm0, (%rdi)
    movups %xmm1, -16(%rdi, %rdx)
    retq
5:  cmpq $8, %rdx
    jb 6f
    movq (%rsi), %rcx
    movq -8(%rsi, %rdx), %r8
    movq %rcx, (%rdi)
    movq %r8, -8(%rdi, %rdx)
    retq
6:  movq %rdx, %rcx
    rep movsb
    retq
1:  movq %rdi, %rax
    testq %rdx, %rdx
    jz 3f
2:  movb -1(%rsi, %rdx), %cl
    movb %cl, -1(%rdi, %rdx)
    decq %rdx
    jnz 2b
3:  retq
memset:
    movq %rdi, %r8
    movl %esi, %eax
    movq %rdx, %rcx
    rep stosb
    movq %r8, %rax
    retq
strlen:
    xorl %eax, %eax
1:  cmpb $0, (%rdi, %rax)
    je 2f
    incq %rax
    jmp 1b
2:  retq
memcmp:
    xorl %eax, %eax
    testq %rdx, %rdx
    jz 2f
1:  movzbl (%rdi), %eax
    movzbl (%rsi), %ecx
    subl %ecx, %eax
    jnz 2f
    incq %rdi
    incq %rsi
    decq %rdx
    jnz 1b
2:  retq

// Stubs and descriptors: room inside the library's own image, so that a stub reaches the trampolines and its
// descriptor with 32-bit displacements. Untouched pages cost nothing.
    .bss
    .p2align 12
    .globl tracer_stubs, tracer_functions, tracer_process
    .hidden tracer_stubs, tracer_functions, tracer_process
    .type tracer_stubs, @object
tracer_stubs: .zero STUB_COUNT * STUB_BYTES
    .size tracer_stubs, STUB_COUNT * STUB_BYTES
    .type tracer_functions, @object
tracer_functions: .zero STUB_COUNT * FUNCTION_BYTES
    .size tracer_functions, STUB_COUNT * FUNCTION_BYTES
    .type tracer_process, @object
tracer_process: .zero 4096
    .size tracer_process, 4096

// The stubs are written at run time; this is their unwind description: a return address on top, nothing else.
    .section .eh_frame, "a", @unwind
    .p2align 3
cie:
    .long cie_end - cie - 4
    .long 0
    .byte 1
    .asciz "zR"
    .uleb128 1
    .sleb128 -8
    .byte 16
    .uleb128 1
    .byte 0x1b                          // DW_EH_PE_pcrel | DW_EH_PE_sdata4
    .byte 0x0c, 7, 8                    // DW_CFA_def_cfa rsp, 8
    .byte 0x90, 1                       // DW_CFA_offset rip, CFA-8
    .p2align 3
cie_end:
    .long fde_end - fde
fde:
    .long fde - cie
    .long tracer_stubs - .
    .long STUB_COUNT * STUB_BYTES
    .uleb128 0
    .p2align 3
fde_end:
#endif
    .section .note.GNU-stack, "", @progbits
