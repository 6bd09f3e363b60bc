// The x86_64 trampolines. docs/trampoline.md tells the story; this is the summary.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's descriptor in r11 and
// jumps here. The trampoline pops the caller's return address into a frame record, *calls* the function, and on
// return pushes the address back: the CPU's return predictor stays balanced and stack arguments stay where they are.
//
//      on entry                      while the function runs            frame record (rbx)
//      s+8  stack arguments          S    stack arguments               FRAME_RETURN   return address
//      s    return address           S-8  address of `returned`         FRAME_SAVED    caller's rbx
//      s-16 …-96 spills (SPILL_*)         …                             FRAME_STACK    S
//      s-128 end of the red zone
//
// S = s + 8 is the CFA of the caller's call and of the trampoline's own: our frame has size zero.
//
// Registers. At a PLT call only r11 and the flags are free (System V psABI 3.2.1; Swift's preserve_most runtime
// calls demand the same on return), so everything else is spilled, below rsp: at a call nothing of the caller lives
// there, and a signal handler leaves 128 bytes alone (psABI 3.2.2). No vector register is touched on the fast path.
//
// Signals. A handler may run traced code between any two instructions. Hence: take a record by loading the head,
// then storing the next head, then filling it; give it back after everything was read from it; reserve a word of the
// chunk with one xadd (no lock: the other party is a handler on this very thread); a record whose slot is 0 says
// that a word may be reserved for it in a chunk that must therefore stay mapped.
#if defined(__x86_64__)
#include "../../include/shim.h"

#define SYS_mmap 9
#define SYS_rt_sigprocmask 14
#define SYS_clock_gettime 228
#define SIG_SETMASK 2
#define KIND_BIT_EXIT 63
#define KIND_BIT_ENTER 62
#define TIME_SHIFT (64 - EVENT_TIME_BITS)

    .section .rodata
    .p2align 3
all_signals: .quad -1
one_tail:    .quad 1 << 32

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

// Runs a Swift function on the agent's stack with all signals blocked.
// In: rbp = traced stack pointer; every caller-saved general register is spilled below it.
// Out: r8 = result, 0 also when no stack could be had; rsp = rbp again. General registers but rbx, rbp, r12-r15 are
// garbage. The agent is built for baseline x86-64: xmm0-15 are all that it can change of the vector state.
// Arguments: rdi = thread, rsi = \second, rdx = \third, rcx = \fourth, given as operands that survive a system call.
.macro SLOW_CALL function, second, third, fourth
    movl $SYS_rt_sigprocmask, %eax
    movl $SIG_SETMASK, %edi
    leaq all_signals(%rip), %rsi
    movq tracer_thread@gottpoff(%rip), %rdx
    addq %fs:0, %rdx
    addq $THREAD_MASK, %rdx
    movl $8, %r10d
    syscall
    movq tracer_thread@gottpoff(%rip), %rdi
    movq %fs:THREAD_UNIT(%rdi), %rax
    testq %rax, %rax
    jnz 901f
    // A thread's first slow path: its unit and stack in one mapping, private, so that a fork copies it.
    xorl %edi, %edi
    movl $(UNIT_STACK_BYTES + UNIT_BYTES), %esi
    movl $3, %edx                       // PROT_READ | PROT_WRITE
    movl $0x4022, %r10d                 // MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    movq $-1, %r8
    xorl %r9d, %r9d
    movl $SYS_mmap, %eax
    syscall
    xorl %r8d, %r8d
    cmpq $-4096, %rax
    ja 902f
    addq $UNIT_STACK_BYTES, %rax
    movq tracer_thread@gottpoff(%rip), %rdi
    movq %rax, %fs:THREAD_UNIT(%rdi)
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
    movq %rdi, -SPILL_RDI(%rsp)
    movq %r10, -SPILL_R10(%rsp)
    movq %r8, -SPILL_R8(%rsp)
    movq %r9, -SPILL_R9(%rsp)
    movq %r11, -SPILL_R11(%rsp)
    movq %rbp, -SPILL_RBP(%rsp)
    movq %rsp, %rbp
.endm
.macro RELOAD_AFTER_SLOW_CALL
    movq -SPILL_RDI(%rsp), %rdi
    movq -SPILL_R10(%rsp), %r10
    movq -SPILL_R8(%rsp), %r8
    movq -SPILL_R9(%rsp), %r9
    movq -SPILL_R11(%rsp), %r11
    movq -SPILL_RBP(%rsp), %rbp
.endm

.macro TRAMPOLINE clock
    .text
    .p2align 6
    .globl tracer_enter_\clock, tracer_returned_\clock
    .hidden tracer_enter_\clock, tracer_returned_\clock
    .type tracer_enter_\clock, @function
tracer_enter_\clock:
    .cfi_startproc
    movq %rax, -SPILL_RAX(%rsp)         // al counts vector registers of a variadic call
    movq %rdx, -SPILL_RDX(%rsp)
    movq %rcx, -SPILL_RCX(%rsp)
    movq %rsi, -SPILL_RSI(%rsp)
    movq tracer_thread@gottpoff(%rip), %rcx
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je 20f
    movq %fs:THREAD_TOP(%rcx), %rax
    leaq 8(%rsp), %rdx
    cmpq FRAME_STACK(%rax), %rdx        // stacks grow down: a nested frame lies below its caller's
    jae 21f
    cmpq %fs:THREAD_STACK_LOW(%rcx), %rdx
    jb 30f
    movl FRAME_REMAINING(%rax), %esi    // and no tails
10: testl %esi, %esi
    jz 22f
    decq %rsi
    cmpq $0, FUNCTION_HEAD(%r11)
    je 23f
    movq %rbx, -SPILL_RBX(%rsp)
    .cfi_offset %rbx, -8 - SPILL_RBX
    movq %fs:THREAD_FREE(%rcx), %rbx
    testq %rbx, %rbx
    jz 31f
    movq FRAME_BELOW(%rbx), %rdx
    movq %rdx, %fs:THREAD_FREE(%rcx)
    movq %rsi, FRAME_REMAINING(%rbx)    // and FRAME_TAILS
    movq %rax, FRAME_BELOW(%rbx)
    leaq 8(%rsp), %rax
    movq %rax, FRAME_STACK(%rbx)
    movq -SPILL_RBX(%rsp), %rax
    movq %rax, FRAME_SAVED(%rbx)
    movq (%rsp), %rax
    movq %rax, FRAME_RETURN(%rbx)
    movq FUNCTION_HEAD(%r11), %rsi
    movq %rsi, FRAME_HEAD(%rbx)
    movq %rbx, %fs:THREAD_TOP(%rcx)
    READ_CLOCK_\clock
    movq %rax, FRAME_ENTER(%rbx)
    movq %rax, %rdx
    shrq $EVENT_EPOCH_BITS, %rdx
    cmpq %fs:THREAD_EPOCH(%rcx), %rdx
    jne 32f
    movl $8, %edx
    xaddq %rdx, %fs:THREAD_CURSOR(%rcx)
    cmpq %fs:THREAD_LIMIT(%rcx), %rdx
    jae 32f
    shlq $TIME_SHIFT, %rax
    shrq $TIME_SHIFT, %rax
    orq %rsi, %rax
    movq %rax, (%rdx)
    movq %rdx, FRAME_SLOT(%rbx)
11: movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    movq -SPILL_RCX(%rsp), %rcx
    movq -SPILL_RSI(%rsp), %rsi
    addq $8, %rsp
    .cfi_endproc

    // The frame of size zero. Its CFA is its caller's, so the unwinder must be told by other means that they differ:
    // a *signal frame* does that. But the caller of a signal frame is looked up at its exact pc, which is past the
    // call; hence the expressions yield return address - 1. (libgcc unwind-dw2.c, uw_frame_state_for.)
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 0
    // DW_CFA_val_expression rip: *(rbx + FRAME_RETURN) - 1 = breg3 FRAME_RETURN, deref, const1s -1, plus
    .cfi_escape 0x16, 16, 6, 0x73, FRAME_RETURN, 0x06, 0x09, 0xff, 0x22
    // DW_CFA_expression rbx: saved at rbx + FRAME_SAVED = breg3 FRAME_SAVED
    .cfi_escape 0x10, 3, 2, 0x73, FRAME_SAVED
    callq *FUNCTION_TARGET(%r11)
tracer_returned_\clock:
    movq %rax, -SPILL_RAX(%rsp)
    movq %rdx, -SPILL_RDX(%rsp)
    movq %rcx, -SPILL_RCX(%rsp)
    movq %r10, -SPILL_R10(%rsp)
    READ_CLOCK_\clock
    movq tracer_thread@gottpoff(%rip), %r10
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je 60f
    cmpq %fs:THREAD_TOP(%r10), %rbx
    jne 60f
    movq FRAME_SLOT(%rbx), %rcx
    movq $0, FRAME_SLOT(%rbx)           // until released: its chunk must stay mapped
    movq FRAME_ENTER(%rbx), %rdx
    movq %rax, %r11
    subq %rdx, %r11
    cmpq %fs:THREAD_MINIMUM(%r10), %r11
    jb 50f
    leaq 8(%rcx), %rax
    cmpq %fs:THREAD_CURSOR(%r10), %rax  // its enter is the last event: the call becomes one word
    jne 51f
    cmpq $(1 << EVENT_DURATION_BITS), %r11
    jae 51f
    movq %rdx, %rax
    shrq $EVENT_EPOCH_BITS, %rax
    cmpq %fs:THREAD_EPOCH(%r10), %rax
    jne 51f
    shlq $(64 - EVENT_EPOCH_BITS), %rdx
    shrq $TIME_SHIFT, %rdx
    orq %r11, %rdx
    orq FRAME_HEAD(%rbx), %rdx
    btsq $KIND_BIT_EXIT, %rdx           // enter 01 becomes complete 11
    movq %rdx, (%rcx)
41: movq FRAME_BELOW(%rbx), %rax
    movq %rax, %fs:THREAD_TOP(%r10)
42: movq FRAME_RETURN(%rbx), %r11
    movq FRAME_SAVED(%rbx), %rcx
    // From here the record may be reused by a handler: the registers hold the truth.
    // val_expression rip: breg11 -1; register rbx: rcx
    .cfi_escape 0x16, 16, 2, 0x7b, 0x7f
    .cfi_register %rbx, %rcx
    movq %fs:THREAD_FREE(%r10), %rax
    movq %rax, FRAME_BELOW(%rbx)
    movq %rbx, %fs:THREAD_FREE(%r10)
    movq %rcx, %rbx
    .cfi_same_value %rbx
    movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    movq -SPILL_RCX(%rsp), %rcx
    movq -SPILL_R10(%rsp), %r10
    pushq %r11
    .cfi_def_cfa_offset 8
    retq
    .cfi_def_cfa_offset 0
    .cfi_escape 0x16, 16, 6, 0x73, FRAME_RETURN, 0x06, 0x09, 0xff, 0x22
    .cfi_escape 0x10, 3, 2, 0x73, FRAME_SAVED

50: // Shorter than the filter: un-written. Its children were shorter still and are gone already; if something else
    // stands behind it (a handler's call, an epoch), its word becomes a hole.
    leaq 8(%rcx), %rax
    cmpq $SLOT_ELSEWHERE, %rcx
    jbe 51f
    movq $0, (%rcx)
    cmpxchgq %rcx, %fs:THREAD_CURSOR(%r10)
    movq %fs:THREAD_CHUNK(%r10), %rax
    incq CHUNK_FILTERED_TIME(%rax)
    jmp 41b

51: leaq (%rdx, %r11), %rax             // now
    movq %rax, %rdx
    shrq $EVENT_EPOCH_BITS, %rdx
    cmpq %fs:THREAD_EPOCH(%r10), %rdx
    jne 60f
    movl $8, %ecx
    xaddq %rcx, %fs:THREAD_CURSOR(%r10)
    cmpq %fs:THREAD_LIMIT(%r10), %rcx
    jae 60f
    shlq $TIME_SHIFT, %rax
    shrq $TIME_SHIFT, %rax
    orq FRAME_HEAD(%rbx), %rax
    btrq $KIND_BIT_ENTER, %rax          // enter 01 becomes exit 10
    btsq $KIND_BIT_EXIT, %rax
    movq %rax, (%rcx)
    jmp 41b

60: // rax = now. Frames above this one are dead, or it lies on another stack, or the chunk is full, or we are a child.
    movq %rsi, -SPILL_RSI(%rsp)
    movq -SPILL_R10(%rsp), %r10
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 0
    .cfi_offset %rbp, -SPILL_RBP
    movq %rax, -SPILL_RBX(%rbp)
    SLOW_CALL tracer_slow_exit, %rbx, -SPILL_RBX(%rbp), %rbp
    RELOAD_AFTER_SLOW_CALL
    .cfi_def_cfa %rsp, 0
    .cfi_restore %rbp
    movq -SPILL_RSI(%rsp), %rsi
    movq tracer_thread@gottpoff(%rip), %r10
    jmp 42b
    .cfi_endproc

    // Off the fast path.
    .cfi_startproc
20: // Not recording: stopped, or a child that fork has just made.
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je 30f
    cmpl $0, tracer_process+PROCESS_DROPPING(%rip)
    je 24f
    movq %fs:THREAD_CHUNK(%rcx), %rax
    testq %rax, %rax
    jz 24f
    incq CHUNK_DROPPED(%rax)
    jmp 24f

21: // Not below the innermost open frame. Equal, and the return address ours: a tail call of that frame's function.
    // Otherwise frames were left by longjmp or an exception, or this is another stack.
    jne 30f
    leaq tracer_returned_\clock(%rip), %rsi
    cmpq %rsi, (%rsp)
    jne 30f
    movq FRAME_REMAINING(%rax), %rsi
    addq one_tail(%rip), %rsi
    movq %rsi, %rdx
    shrq $32, %rdx
    cmpl $TAIL_LIMIT, %edx
    jb 10b
    jmp 30f

22: // Beyond the depth limit: no record, no clock.
    movq %fs:THREAD_CHUNK(%rcx), %rax
    incq CHUNK_FILTERED_DEPTH(%rax)
24: movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    movq -SPILL_RCX(%rsp), %rcx
    movq -SPILL_RSI(%rsp), %rsi
    jmpq *FUNCTION_TARGET(%r11)

23: // A function that must see its real caller, or returns twice: entry only.
    cmpl $KIND_TAIL, FUNCTION_KIND(%r11)
    jne 30f
    cmpq $0, %fs:THREAD_MINIMUM(%rcx)
    jne 25f
    incq %fs:THREAD_PENDING(%rcx)
    READ_CLOCK_\clock
    movq %rax, %rdx
    shrq $EVENT_EPOCH_BITS, %rdx
    cmpq %fs:THREAD_EPOCH(%rcx), %rdx
    jne 26f
    movl $8, %edx
    xaddq %rdx, %fs:THREAD_CURSOR(%rcx)
    cmpq %fs:THREAD_LIMIT(%rcx), %rdx
    jae 26f
    shlq $(64 - EVENT_EPOCH_BITS), %rax
    shrq $TIME_SHIFT, %rax
    orq FUNCTION_INSTANT(%r11), %rax
    movq %rax, (%rdx)
    decq %fs:THREAD_PENDING(%rcx)
    jmp 24b
25: movq %fs:THREAD_CHUNK(%rcx), %rax   // it has no length: always below the time filter
    incq CHUNK_FILTERED_TIME(%rax)
    jmp 24b
26: decq %fs:THREAD_PENDING(%rcx)
    jmp 30f

    .cfi_offset %rbx, -8 - SPILL_RBX
31: movq -SPILL_RBX(%rsp), %rbx         // no free record
    .cfi_restore %rbx
30: movq %rbx, -SPILL_RBX(%rsp)
    .cfi_offset %rbx, -8 - SPILL_RBX
    xorl %ebx, %ebx
32: // rbx = the record whose event is still to be written, or 0: everything is.
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    SLOW_CALL tracer_slow_enter, -SPILL_R11(%rbp), %rbp, %rbx
    .cfi_def_cfa %rsp, 8
    testq %r8, %r8
    jz 33f
    movq %r8, %rbx
    RELOAD_AFTER_SLOW_CALL
    .cfi_restore %rbp
    jmp 11b
33: RELOAD_AFTER_SLOW_CALL
    movq -SPILL_RBX(%rsp), %rbx
    .cfi_restore %rbx
    jmp 24b
    .cfi_endproc
    .size tracer_enter_\clock, . - tracer_enter_\clock
.endm

TRAMPOLINE cycles
TRAMPOLINE monotonic

// Stands in for the loader's debugger hook, _dl_debug_state: called with the loader's lock held.
    .globl tracer_loader_event
    .hidden tracer_loader_event
    .type tracer_loader_event, @function
tracer_loader_event:
    .cfi_startproc
    movq %rax, -SPILL_RAX(%rsp)
    movq %rdx, -SPILL_RDX(%rsp)
    movq %rcx, -SPILL_RCX(%rsp)
    movq %rsi, -SPILL_RSI(%rsp)
    SPILL_FOR_SLOW_CALL
    .cfi_def_cfa %rbp, 8
    .cfi_offset %rbp, -8 - SPILL_RBP
    SLOW_CALL tracer_slow_loader_event, %rbp, %rbp, %rbp
    RELOAD_AFTER_SLOW_CALL
    .cfi_def_cfa %rsp, 8
    .cfi_restore %rbp
    movq -SPILL_RAX(%rsp), %rax
    movq -SPILL_RDX(%rsp), %rdx
    movq -SPILL_RCX(%rsp), %rcx
    movq -SPILL_RSI(%rsp), %rsi
    retq
    .cfi_endproc
    .size tracer_loader_event, . - tracer_loader_event

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
memcpy:
    movq %rdi, %rax
    movq %rdx, %rcx
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
    .p2align 16
    .globl tracer_stubs, tracer_functions, tracer_process
    .hidden tracer_stubs, tracer_functions, tracer_process
    .type tracer_stubs, @object
tracer_stubs: .zero STUB_COUNT * STUB_BYTES
    .size tracer_stubs, STUB_COUNT * STUB_BYTES
    .type tracer_functions, @object
tracer_functions: .zero STUB_COUNT * FUNCTION_BYTES
    .size tracer_functions, STUB_COUNT * FUNCTION_BYTES
    .type tracer_process, @object
tracer_process: .zero 65536
    .size tracer_process, 65536

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
