// The aarch64 trampolines. docs/trampoline.md tells the story; this is the summary. Labels and order are those of
// arch/x86_64/trampoline.S.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's descriptor in x17 and
// branches here. The trampoline keeps the caller's return address, which is in x30, in a frame record, *calls* the
// function, and on return loads the address again: the predictor of returns stays balanced, as would a guarded control
// stack, and stack arguments stay where they are.
//
//      on entry                  in the trampoline            while the function runs    frame record (x19)
//      s  stack arguments        s     stack arguments        s  stack arguments         FRAME_RETURN  return address
//                                s-16  caller's x9, x10                                  FRAME_SAVED   caller's x19
//                                      = place                                           FRAME_PLACE   s - 16
//
// s is the CFA of the caller's call and of the trampoline's own: our frame has size zero while the function runs.
//
// Registers. At a PLT call only x16, x17 and the flags are free: AAPCS64 6.1.1 frees x9-x15 too, but the preserve_most
// convention, which Swift's retain and release use on this processor, does not. There is no red zone, so two more are
// had by a push that is undone before the call; x30 and x19 are free as soon as the record holds them. On return x16,
// x17 and x30 are free. No vector register is touched on the fast path.
//
// Signals. As on x86_64: a record becomes the top before it is filled; it is left only after everything was read from
// it; a word of the chunk is reserved in one indivisible step (an atomic add where the processor has one, else a pair
// of exclusive accesses, which an exception breaks up), after the clock was read and before the base is looked at.
//
// Memory order. What is written here is read by this thread, by its signal handlers, and by other processes after this
// one was stopped or has ended: program order is enough for all three, so nothing here is ordered against other cores.
//
// No `bti` landing pads: nothing of this library is in guarded pages, and what is called is called as the PLT would,
// by `blr`, or by `br` through x16, which both satisfy a `bti c`.
#if defined(__aarch64__)
#include "../../include/shim.h"

#define SYS_mmap 222
#define SYS_rt_sigprocmask 135
#define SYS_clock_gettime 113
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#define NANOSECONDS_LOW 0xca00 /* of 1000000000 */
#define NANOSECONDS_HIGH 0x3b9a

    .arch armv8-a
    .arch_extension lse // in the variants of that name alone

    .section .tls_sites, "a"
    .p2align 2
    .globl tracer_tls_sites_begin, tracer_tls_sites_end
    .hidden tracer_tls_sites_begin, tracer_tls_sites_end
tracer_tls_sites_begin:
    .section .data.rel.ro, "aw"
    .p2align 3
    .globl tracer_trampoline_sets
    .hidden tracer_trampoline_sets
tracer_trampoline_sets:

// The thread's state is at a distance from the thread pointer that is fixed once the process runs and unknown when
// the library is linked. The agent writes it into the offsets of these instructions before the first call. They reach
// 32 KB; behind larger thread-local variables of the program the `far` variants add the rest.
.macro TLS instruction:vararg
    \instruction
771:
    .pushsection .tls_sites
    .long 771b - 4 - .
    .popsection
.endm
.macro THREAD register, far
    mrs \register, tpidr_el0
    .if \far
    TLS add \register, \register, #0, lsl #12
    .endif
.endm
// Address of the thread's state, by the loader's own word for the distance.
.macro THREAD_STATE register, scratch
    mrs \register, tpidr_el0
    adrp \scratch, :gottprel:tracer_thread
    ldr \scratch, [\scratch, #:gottprel_lo12:tracer_thread]
    add \register, \register, \scratch
.endm
.macro PROCESS word, address, field
    adrp \address, tracer_process
    add \address, \address, :lo12:tracer_process
    ldr \word, [\address, #\field]
.endm

.macro CONFINED word, address
    adrp \address, tracer_confined
    ldr \word, [\address, #:lo12:tracer_confined]
.endm

.macro READ_CLOCK_cycles time
    mrs \time, cntvct_el0
.endm
// The kernel's own system call: it cannot fail. It leaves all registers but x0 as they are.
.macro READ_CLOCK_monotonic time
    stp x0, x1, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    str x8, [sp, #16]
    mov x0, #1                          // CLOCK_MONOTONIC
    add x1, sp, #32
    mov x8, #SYS_clock_gettime
    svc #0
    ldp x0, x1, [sp, #32]
    mov x8, #NANOSECONDS_LOW
    movk x8, #NANOSECONDS_HIGH, lsl #16
    madd \time, x0, x8, x1
    ldr x8, [sp, #16]
    ldp x0, x1, [sp], #48
    .cfi_adjust_cfa_offset -48
.endm

// old = *place; *place += bytes, in one step as far as this thread's signal handlers can see.
.macro RESERVE lse, old, place, scratch, status, bytes=8
    .if \lse
    mov \old, #\bytes
    ldadd \old, \old, [\place]
    .else
772: ldxr \old, [\place]
    add \scratch, \old, #\bytes
    stxr \status, \scratch, [\place]
    cbnz \status, 772b
    .endif
.endm
// old = *place; *place = 1, likewise. A 32-bit word.
.macro TAKE lse, old, place, status
    .if \lse
    mov \status, #1
    swp \status, \old, [\place]
    .else
772: ldxr \old, [\place]
    cbnz \old, 773f
    mov \old, #1
    stxr \status, \old, [\place]
    cbnz \status, 772b
    mov \old, #0
773:
    .endif
.endm
// place[offset] += by, likewise. `place` is spent.
.macro COUNT lse, place, offset, scratch, status, by=1
    add \place, \place, #\offset
    .if \lse
    mov \scratch, #\by
    stadd \scratch, [\place]
    .else
772: ldxr \scratch, [\place]
    add \scratch, \scratch, #\by
    stxr \status, \scratch, [\place]
    cbnz \status, 772b
    .endif
.endm

// The caller's registers, below its stack pointer; x9 and x10 are there already. x29 = sp = place - SPILL_BYTES, where
// the caller's x29 and return address stand side by side, as in any frame.
// In the place of x16, which is spent, stands what the slow path is told: the place, or the time of a return.
.macro SPILL_FOR_SLOW_CALL
    mov x16, sp
    sub sp, sp, #SPILL_BYTES
    .cfi_adjust_cfa_offset SPILL_BYTES
    stp x0, x1, [sp, #SPILL_BYTES - SPILL_X0]
    stp x2, x3, [sp, #SPILL_BYTES - SPILL_X2]
    stp x4, x5, [sp, #SPILL_BYTES - SPILL_X4]
    stp x6, x7, [sp, #SPILL_BYTES - SPILL_X6]
    stp x8, x11, [sp, #SPILL_BYTES - SPILL_X8]
    stp x12, x13, [sp, #SPILL_BYTES - SPILL_X12]
    stp x14, x15, [sp, #SPILL_BYTES - SPILL_X14]
    stp x16, x17, [sp, #SPILL_BYTES - SPILL_X16]
    stp x18, x19, [sp, #SPILL_BYTES - SPILL_X18]
    stp x29, x30, [sp]
    mov x29, sp
    .cfi_def_cfa x29, SPILL_BYTES + 16
    .cfi_offset x29, -SPILL_BYTES - 16
    .cfi_offset x30, -SPILL_BYTES - 8
.endm
// All but x19. sp = place again, the return address in x30.
.macro RELOAD_AFTER_SLOW_CALL
    ldp x0, x1, [sp, #SPILL_BYTES - SPILL_X0]
    ldp x2, x3, [sp, #SPILL_BYTES - SPILL_X2]
    ldp x4, x5, [sp, #SPILL_BYTES - SPILL_X4]
    ldp x6, x7, [sp, #SPILL_BYTES - SPILL_X6]
    ldp x8, x11, [sp, #SPILL_BYTES - SPILL_X8]
    ldp x12, x13, [sp, #SPILL_BYTES - SPILL_X12]
    ldp x14, x15, [sp, #SPILL_BYTES - SPILL_X14]
    ldr x17, [sp, #SPILL_BYTES - SPILL_X17]
    ldr x18, [sp, #SPILL_BYTES - SPILL_X18]
    ldp x29, x30, [sp]
    .cfi_def_cfa sp, SPILL_BYTES + 16
    .cfi_same_value x29
    add sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset 16
.endm

// Runs a Swift function on the agent's stack with all signals blocked (SIGBUS stays as the program has it).
// In: x29 as SPILL_FOR_SLOW_CALL leaves it; x19 survives. Out: x0 = result, 0 also when no stack could be had; sp = x29
// again; every other register that a call may change is garbage.
// Arguments: x0 = thread, x1 = \second, an instruction that loads it from what survives a system call, x2 = what was
// spilled for x16, x3 = x19.
.macro SLOW_CALL function, second:vararg
    mov x0, #SIG_BLOCK
    adrp x1, tracer_blocked_signals
    add x1, x1, :lo12:tracer_blocked_signals
    THREAD_STATE x2, x3
    add x2, x2, #THREAD_MASK
    mov x3, #8
    mov x8, #SYS_rt_sigprocmask
    svc #0
    THREAD_STATE x9, x10
    ldr x0, [x9, #THREAD_UNIT]
    cbnz x0, 901f
    // A thread's first slow path: its wiped page, stack and unit in one private mapping, which a fork copies.
    mov x1, #(UNIT_WIPED_BYTES + UNIT_STACK_BYTES + UNIT_BYTES) & 0xffff
    movk x1, #(UNIT_WIPED_BYTES + UNIT_STACK_BYTES + UNIT_BYTES) >> 16, lsl #16
    mov x2, #3                          // PROT_READ | PROT_WRITE
    mov x3, #0x4022                     // MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    mov x4, #-1
    mov x5, #0
    mov x8, #SYS_mmap
    svc #0
    cmn x0, #4095                       // -4095 … -1: minus an errno
    mov x1, x0
    mov x0, #0
    b.hs 902f
    mov x0, #(UNIT_WIPED_BYTES + UNIT_STACK_BYTES) & 0xffff
    movk x0, #(UNIT_WIPED_BYTES + UNIT_STACK_BYTES) >> 16, lsl #16
    add x0, x1, x0
    THREAD_STATE x9, x10
    str x0, [x9, #THREAD_UNIT]
901:
    mov sp, x0
    bl save_vectors
    THREAD_STATE x0, x3
    \second
    ldr x2, [x29, #SPILL_BYTES - SPILL_X16]
    mov x3, x19
    bl \function
    bl restore_vectors
    mov sp, x29
902:
    str x0, [x29, #SPILL_BYTES - SPILL_X16]
    mov x0, #SIG_SETMASK
    THREAD_STATE x1, x3
    add x1, x1, #THREAD_MASK
    mov x2, #0
    mov x3, #8
    mov x8, #SYS_rt_sigprocmask
    svc #0
    ldr x0, [x29, #SPILL_BYTES - SPILL_X16]
.endm

// Ends in a jump to the function as if nothing had been there. x17 = descriptor, sp = place.
.macro PASS
    ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    ldr x16, [x17, #FUNCTION_TARGET]
    br x16
    .cfi_def_cfa_offset 16
.endm
// DW_CFA_expression x19 and x30: saved at x19 + FRAME_SAVED, FRAME_RETURN = breg19 offset
.macro CFI_X19_IN_RECORD
    .cfi_escape 0x10, 19, 2, 0x83, FRAME_SAVED
.endm
.macro CFI_X30_IN_RECORD
    .cfi_escape 0x10, 30, 2, 0x83, FRAME_RETURN
.endm
// DW_CFA_val_expression x30: *(x19 + FRAME_RETURN) - 1 = breg19 FRAME_RETURN, deref, const1s -1, plus
.macro CFI_X30_IN_RECORD_MINUS_ONE
    .cfi_escape 0x16, 30, 6, 0x83, FRAME_RETURN, 0x06, 0x09, 0xff, 0x22
.endm

// The enter word at x30 + `offset` becomes a complete call.
.macro COMPLETE_CALL word, offset, duration
    ldur \word, [x30, #\offset]
    add \word, \word, #(EVENT_COMPLETE - EVENT_ENTER)
    add \word, \word, \duration, lsl #EVENT_DURATION_SHIFT
    stur \word, [x30, #\offset]
.endm
// The exit word of the frame in x19. `time` counts from the base.
.macro EXIT_WORD word, time
    ldr \word, [x19, #FRAME_FUNCTION]
    ldr \word, [\word, #FUNCTION_HEAD]
    eor \word, \word, #(EVENT_ENTER ^ EVENT_EXIT)
    orr \word, \word, \time, lsl #EVENT_TIME_SHIFT
.endm

// clock: which READ_CLOCK. filtered: TRACER_MINMS is in force; then an enter is not written when it happens but when
// something inside it is kept, so that a call which is not kept never touches the chunk. lse: the processor has atomic
// additions. far: the thread's state is more than 32 KB from the thread pointer.
.macro TRAMPOLINE variant, clock, filtered, lse, far
    .pushsection .data.rel.ro
    .quad tracer_enter_\variant, tracer_special_\variant, tracer_returned_\variant, tracer_watched_\variant
    .popsection
    .section .text.trampolines, "ax"
    .p2align 6
    .globl tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant, tracer_watched_\variant
    .hidden tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant, tracer_watched_\variant
    .type tracer_enter_\variant, %function
tracer_enter_\variant:
    .cfi_startproc
    stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr x10, [x9, #FRAME_PLACE]
    cmp sp, x10                         // stacks grow down: a nested frame lies below its caller's
    b.hs 21f
    TLS ldr x10, [x16, #THREAD_LOW]
    cmp sp, x10
    b.lo 21f
10: ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, 22f
    TLS str x9, [x16, #THREAD_TOP]
11: stp x30, x19, [x9, #FRAME_RETURN]
    mov x19, x9
    CFI_X19_IN_RECORD
    CFI_X30_IN_RECORD
    mov x10, sp
    str x10, [x19, #FRAME_PLACE]
    READ_CLOCK_\clock x9
    stp x9, x17, [x19, #FRAME_ENTER]
    .if \filtered
    mov x9, #SLOT_UNWRITTEN
    str x9, [x19, #FRAME_SLOT]
    ldr x16, [x17, #FUNCTION_TARGET]
    .else
    TLS ldr x16, [x16, #THREAD_HOT]
    RESERVE \lse, x10, x16, x30, w17
    .ifeq \lse
    ldr x17, [x19, #FRAME_FUNCTION]
    .endif
    ldp x30, x16, [x16, #HOT_LIMIT]     // limit, base
    cmp x10, x30
    b.hs 32f
    sub x9, x9, x16
    cmp x9, #(1 << (EVENT_START_BITS - 12)), lsl #12
    b.hs 32f
    ldp x16, x30, [x17, #FUNCTION_TARGET] // target, head
    orr x9, x30, x9, lsl #EVENT_TIME_SHIFT
    str x9, [x10], #8
    str x10, [x19, #FRAME_SLOT]
    .endif
    ldp x9, x10, [sp], #16
    .cfi_endproc

    // The frame of size zero. Its CFA is its caller's, so the unwinder must be told by other means that they differ:
    // a *signal frame* does that. But the caller of a signal frame is looked up at its exact pc, which is past the
    // call; hence the expressions yield return address - 1. (libgcc unwind-dw2.c, uw_frame_state_for.)
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa sp, 0
    CFI_X30_IN_RECORD_MINUS_ONE
    CFI_X19_IN_RECORD
12: blr x16
tracer_returned_\variant:
    READ_CLOCK_\clock x16
    THREAD x17, \far
    TLS ldr x30, [x17, #THREAD_TOP]
    cmp x30, x19
    b.ne 60f
    ldr x30, [x19, #FRAME_ENTER]
    sub x16, x16, x30
    .if \filtered
    TLS ldr x17, [x17, #THREAD_HOT]
    ldr x30, [x17, #HOT_MINIMUM]
    cmp x16, x30
    b.hs 61f
    ldr x17, [x17, #HOT_CHUNK]
    cbz x17, 61f
    str xzr, [x19, #FRAME_SLOT]
    COUNT \lse, x17, CHUNK_FILTERED_TIME, x30, w16
    .else
    ldr x30, [x19, #FRAME_SLOT]
    add x30, x30, #SLOT_CLOSING
    str x30, [x19, #FRAME_SLOT]
    TLS ldr x17, [x17, #THREAD_HOT]
    ldr x17, [x17, #HOT_CURSOR]
    sub x17, x17, x30
    cmn x17, #SLOT_CLOSING              // its enter is the last event: the call becomes one word
    b.ne 51f
    cmp x16, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs 51f
    COMPLETE_CALL x17, -8 - SLOT_CLOSING, x16
    .endif
41: ldr x17, [x19, #FRAME_BELOW]
    .ifeq \filtered
    str xzr, [x19, #FRAME_SLOT]
    .endif
    ldp x30, x19, [x19, #FRAME_RETURN]
    .cfi_same_value x19
    // val_expression x30: x30 - 1 = breg30 0, const1s -1, plus
    .cfi_escape 0x16, 30, 5, 0x8e, 0, 0x09, 0xff, 0x22
    THREAD x16, \far
    TLS str x17, [x16, #THREAD_TOP]     // from here on a handler may reuse the record
    ret
    CFI_X30_IN_RECORD_MINUS_ONE
    CFI_X19_IN_RECORD

    .ifeq \filtered
51: // Not one word: an exit event. x30 = slot + closing, x16 = duration.
    ldr x17, [x19, #FRAME_ENTER]
    add x16, x16, x17                   // now
    cmp x30, #(SLOT_ELSEWHERE + SLOT_CLOSING)
    b.lo 62f                            // its enter could not be written
    stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_HOT]
    RESERVE \lse, x30, x17, x9, w10
    ldp x9, x10, [x17, #HOT_LIMIT]      // limit, base
    cmp x30, x9
    b.hs 53f
    sub x17, x16, x10
    lsr x9, x17, #EVENT_TIME_BITS
    cbnz x9, 53f
    EXIT_WORD x9, x17
    str x9, [x30]
    ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    b 41b
    .cfi_def_cfa_offset 16
53: ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
62: mov x17, #SLOT_ELSEWHERE
    str x17, [x19, #FRAME_SLOT]
    b 60f
    .endif

13: // A function whose return Swift is told of. Its record may be off the thread's chain.
    blr x16
tracer_watched_\variant:
    READ_CLOCK_\clock x16
    b 65f

61: ldr x17, [x19, #FRAME_ENTER]
    add x16, x16, x17
60: // x16 = now. Frames above this one are dead, or it lies on another stack, or the chunk is full, or it is time to
    // write what the filter held back, or we are a child.
    .ifeq \filtered
    THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_TOP]
    ldr w17, [x17, #FRAME_LAST]
    cmp w17, #LAST_STAND_IN
    b.eq 80f
    .endif
65: CONFINED w17, x17
    cbz w17, 64f
    // No system call may be made, and nothing is recorded any more: no record is reused, and top may stay.
    .cfi_remember_state
    ldp x30, x19, [x19, #FRAME_RETURN]
    .cfi_same_value x19
    .cfi_escape 0x16, 30, 5, 0x8e, 0, 0x09, 0xff, 0x22 // x30 - 1
    ret
    .cfi_restore_state
64: stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    sub sp, sp, #SPILL_BYTES            // SPILL_FOR_SLOW_CALL with what the record holds for x19 and x30
    .cfi_adjust_cfa_offset SPILL_BYTES
    stp x0, x1, [sp, #SPILL_BYTES - SPILL_X0]
    stp x2, x3, [sp, #SPILL_BYTES - SPILL_X2]
    stp x4, x5, [sp, #SPILL_BYTES - SPILL_X4]
    stp x6, x7, [sp, #SPILL_BYTES - SPILL_X6]
    stp x8, x11, [sp, #SPILL_BYTES - SPILL_X8]
    stp x12, x13, [sp, #SPILL_BYTES - SPILL_X12]
    stp x14, x15, [sp, #SPILL_BYTES - SPILL_X14]
    str x16, [sp, #SPILL_BYTES - SPILL_X16]
    // Once Swift has closed the frame and signals are open again, a handler may reuse the record.
    ldp x30, x17, [x19, #FRAME_RETURN]
    stp x18, x17, [sp, #SPILL_BYTES - SPILL_X18]
    stp x29, x30, [sp]
    mov x29, sp
    .cfi_def_cfa x29, SPILL_BYTES + 16
    .cfi_offset x29, -SPILL_BYTES - 16
    .cfi_offset x19, -16 - SPILL_X19
    .cfi_escape 0x16, 30, 6, 0x8d, 8, 0x06, 0x09, 0xff, 0x22 // *(x29 + 8) - 1
    SLOW_CALL tracer_slow_exit, mov x1, x19
    ldr x19, [sp, #SPILL_BYTES - SPILL_X19]
    .cfi_same_value x19
    RELOAD_AFTER_SLOW_CALL
    .cfi_escape 0x16, 30, 5, 0x8e, 0, 0x09, 0xff, 0x22 // x30 - 1
    ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    ret

    .ifeq \filtered
    CFI_X30_IN_RECORD_MINUS_ONE
    CFI_X19_IN_RECORD
80: // Frames on other stacks are open, so the order of ends says nothing: RESUME and an exit, if not one word. x16 = now.
    stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_UNIT]
    ldr w30, [x17, #UNIT_CHANGING]
    cbnz w30, 88f
    add x17, x17, #UNIT_BUSY
    TAKE \lse, w30, x17, w9
    sub x17, x17, #UNIT_BUSY
    cbnz w30, 88f
    THREAD x9, \far
    TLS ldr x9, [x9, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_STAND_IN
    b.ne 87f
    ldr x30, [x19, #FRAME_SLOT]
    cmp x30, #SLOT_ELSEWHERE
    b.eq 81f
    cmp x30, #SLOT_LEFT
    b.ls 87f
81: ldr x9, [x19, #FRAME_OWNER]
    cmp x9, x17
    b.ne 82f
    ldr w9, [x19, #FRAME_SIGNAL]
    cbz w9, 83f
    b 87f
82: ldr x9, [x17, #UNIT_TOP]
    cmp x9, x19
    b.ne 87f
83: add x9, x30, #SLOT_CLOSING
    str x9, [x19, #FRAME_SLOT]
    THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_HOT]
    ldr x9, [x17, #HOT_CURSOR]
    cmp x9, x30                         // its enter is the last event: one word, as on the fast path
    b.ne 89f
    ldr x9, [x19, #FRAME_ENTER]
    sub x9, x16, x9
    cmp x9, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs 89f
    COMPLETE_CALL x10, -8, x9
    b 90f
89: RESERVE \lse, x30, x17, x9, w10, 16
    ldp x9, x10, [x17, #HOT_LIMIT]      // limit, base
    cmp x30, x9
    b.hs 86f
    sub x9, x16, x10
    lsr x10, x9, #EVENT_TIME_BITS
    cbnz x10, 86f
    ldr x10, [x19, #FRAME_ENTER]
    lsl x10, x10, #CONTROL_PAYLOAD_SHIFT
    orr x10, x10, #(CONTROL_RESUME << CONTROL_KIND_SHIFT)
    str x10, [x30]                      // alone it says nothing: the next word is empty
    EXIT_WORD x10, x9
    str x10, [x30, #8]
90: THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_UNIT]
    str xzr, [x19, #FRAME_SLOT]
    ldr x9, [x19, #FRAME_OWNER]
    cmp x9, x17
    .cfi_remember_state
    b.eq 84f
    .cfi_remember_state
    ldr x9, [x19, #FRAME_BELOW]
    ldp x30, x19, [x19, #FRAME_RETURN]
    .cfi_same_value x19
    .cfi_escape 0x16, 30, 5, 0x8e, 0, 0x09, 0xff, 0x22 // x30 - 1
    str x9, [x17, #UNIT_TOP]            // from here on a handler may reuse the record
    b 85f
    .cfi_restore_state
84: str wzr, [x19, #FRAME_USE]
    ldr x9, [x17, #UNIT_READY]
    str x9, [x19, #FRAME_OLDER]
    str x19, [x17, #UNIT_READY]
    COUNT \lse, x17, UNIT_FOREIGN, x9, w10, -1
    THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_UNIT]
    ldp x30, x19, [x19, #FRAME_RETURN]
    .cfi_same_value x19
    .cfi_escape 0x16, 30, 5, 0x8e, 0, 0x09, 0xff, 0x22 // x30 - 1
85: ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    str wzr, [x17, #UNIT_BUSY]          // … and this one
    ret
    .cfi_restore_state
86: mov x17, #SLOT_ELSEWHERE
    str x17, [x19, #FRAME_SLOT]
    THREAD x17, \far
    TLS ldr x17, [x17, #THREAD_UNIT]
87: str wzr, [x17, #UNIT_BUSY]
88: ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    b 65b
    .endif
    .cfi_endproc

    // Off the fast path. x17 = descriptor, x16 = thread, x9 = top, sp = place.
    .cfi_startproc
    .cfi_def_cfa_offset 16
21: // Not below the innermost open frame, or the stack is marked as nobody's.
    PROCESS w10, x10, PROCESS_ALIVE
    cbz w10, 28f                        // a child that fork has just made
    PROCESS w10, x10, PROCESS_ENABLED
    cbz w10, 24f
    .ifeq \filtered
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_STAND_IN
    b.eq 70f
    .endif
    ldr x10, [x9, #FRAME_PLACE]
    cmp sp, x10
    b.ne 30f
    // Equal, and the return address is ours: a tail call of that frame's function. (A function that has called
    // something must have put its return address on the stack first, so an equal place means nothing else.)
    adr x10, tracer_returned_\variant
    cmp x30, x10
    b.ne 30f
    ldr x10, [x9, #FRAME_BELOW]
    ldr x10, [x10, #FRAME_PLACE]
    cmp sp, x10
    mov w16, #0
    b.ne 27f
    ldr w16, [x9, #FRAME_TAILS]
27: add w16, w16, #1
    cmp w16, #TAIL_LIMIT
    b.hs 30f
    ldr x10, [x9, #FRAME_ABOVE]
    cbz x10, 22f
    str w16, [x10, #FRAME_TAILS]
    THREAD x16, \far
    b 10b

    .ifeq \filtered
70: // Frames on other stacks are open. Who comes here while the unit is busy takes the slow path, and that takes none
    // of the records which are ready.
    TLS ldr x16, [x16, #THREAD_UNIT]
    ldr w10, [x16, #UNIT_CHANGING]
    cbnz w10, 30f
    add x16, x16, #UNIT_BUSY
    TAKE \lse, w10, x16, w9             // one step: a handler may switch to a context that was interrupted in here
    sub x16, x16, #UNIT_BUSY
    cbnz w10, 30f
    THREAD x9, \far
    TLS ldr x9, [x9, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_STAND_IN             // still: from now on it stays
    b.ne 73f
    ldr x10, [x16, #UNIT_STACK_LOW]
    cmp sp, x10
    b.lo 71f
    ldr x10, [x16, #UNIT_STACK_HIGH]
    cmp sp, x10
    b.hs 71f
    ldr x10, [x16, #UNIT_SIGNAL_FRAMES] // left by a handler that jumped here?
    cbnz x10, 73f
    ldr x10, [x16, #UNIT_FOREIGN]
    cbnz x10, 74f
    ldr w10, [x16, #UNIT_PATIENCE]
    subs w10, w10, #1
    str w10, [x16, #UNIT_PATIENCE]
    b.mi 73f
74: ldr x9, [x16, #UNIT_TOP]
    ldr x10, [x9, #FRAME_PLACE]
    cmp sp, x10
    b.hs 73f
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, 73f
    str x9, [x16, #UNIT_TOP]
    b 72f
71: mov x10, sp
    ldr x9, [x16, #UNIT_SIGNAL_LOW]
    sub x10, x10, x9
    ldr x9, [x16, #UNIT_SIGNAL_BYTES]
    cmp x10, x9
    b.lo 73f
    ldr x9, [x16, #UNIT_READY]
    cbz x9, 73f
    ldr x10, [x9, #FRAME_OLDER]
    str x10, [x16, #UNIT_READY]
    mov w10, #USE_OPEN
    str w10, [x9, #FRAME_USE]
    mov w10, #PATIENCE
    str w10, [x16, #UNIT_PATIENCE]
    str x17, [x9, #FRAME_FUNCTION]
    COUNT \lse, x16, UNIT_FOREIGN, x10, w17
    ldr x17, [x9, #FRAME_FUNCTION]
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_UNIT]
72: str wzr, [x16, #UNIT_BUSY]
    THREAD x16, \far
    b 11b
73: str wzr, [x16, #UNIT_BUSY]
    b 30f
    .endif

22: // No record above: the end of the chain, or of TRACER_MAXDEPTH.
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cbz w10, 30f
    TLS ldr x9, [x16, #THREAD_HOT]
    ldr x9, [x9, #HOT_CHUNK]
    cbz x9, 30f
    COUNT \lse, x9, CHUNK_FILTERED_DEPTH, x10, w16
23: PASS

24: // Not recording.
    PROCESS w10, x10, PROCESS_DROPPING
    cbz w10, 23b
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_HOT]
    ldr x9, [x9, #HOT_CHUNK]
    cbz x9, 23b
    COUNT \lse, x9, CHUNK_DROPPED, x10, w16
    b 23b

    // A function that must see its real caller, or returns twice: entry only. Or one that Swift looks at.
    .cfi_def_cfa_offset 0
tracer_special_\variant:
    stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    ldr w9, [x17, #FUNCTION_KIND]
    cmp w9, #KIND_TAIL
    b.ne 37f
    THREAD x16, \far
    TLS ldr x10, [x16, #THREAD_LOW]
    cmp sp, x10
    b.lo 29f
    TLS ldr x9, [x16, #THREAD_TOP]
31: ldr x10, [x9, #FRAME_ABOVE]
    cbz x10, 22b
    .if \filtered
    TLS ldr x9, [x16, #THREAD_HOT]
    ldr x9, [x9, #HOT_CHUNK]            // it has no length: always below the filter
    cbz x9, 30f
    COUNT \lse, x9, CHUNK_FILTERED_TIME, x10, w16
    b 23b
    .else
    stp x0, x1, [sp, #-16]!
    .cfi_def_cfa_offset 32
    TLS ldr x16, [x16, #THREAD_HOT]
    ldr x9, [x16, #HOT_PENDING]
    add x9, x9, #1
    str x9, [x16, #HOT_PENDING]
    READ_CLOCK_\clock x9
    RESERVE \lse, x10, x16, x0, w1
    ldp x0, x1, [x16, #HOT_LIMIT]       // limit, base
    cmp x10, x0
    b.hs 26f
    sub x9, x9, x1
    cmp x9, #(1 << (EVENT_START_BITS - 12)), lsl #12
    b.hs 26f
    ldr x0, [x17, #FUNCTION_INSTANT]
    orr x9, x0, x9, lsl #EVENT_TIME_SHIFT
    str x9, [x10]
    ldr x9, [x16, #HOT_PENDING]
    sub x9, x9, #1
    str x9, [x16, #HOT_PENDING]
    ldp x0, x1, [sp], #16
    .cfi_def_cfa_offset 16
    b 23b
    .cfi_def_cfa_offset 32
26: ldr x9, [x16, #HOT_PENDING]
    sub x9, x9, #1
    str x9, [x16, #HOT_PENDING]
    ldp x0, x1, [sp], #16
    .cfi_def_cfa_offset 16
    b 30f
    .endif
37: cmp w9, #KIND_CALL                  // looked at once, and no longer
    b.eq 36f
    cmp w9, #KIND_ONCE
    b.ne 28f
    ldr w10, [x0]                       // the flag: somebody has begun it, or all is done
    cbz w10, 28f
36: ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    b tracer_enter_\variant
    .cfi_def_cfa_offset 16
29: PROCESS w10, x10, PROCESS_ALIVE
    cbz w10, 28f
    PROCESS w10, x10, PROCESS_ENABLED
    cbz w10, 24b
    .ifeq \filtered
    // The stand-in has a record above when there is no limit of depth.
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_STAND_IN
    b.ne 30f
    ldr x10, [x9, #FRAME_ABOVE]
    cbz x10, 30f
    TLS ldr x10, [x16, #THREAD_UNIT]
    ldr w10, [x10, #UNIT_CHANGING]
    cbz w10, 31b
    .endif
    b 30f
28: CONFINED w10, x10                   // a system call of ours could be forbidden
    cbnz w10, 23b

30: // Everything is still to be done.
    SPILL_FOR_SLOW_CALL
    .cfi_offset x19, -16 - SPILL_X19
    mov x19, #0
    .ifeq \filtered
    b 33f
    .cfi_def_cfa sp, 16
    .cfi_same_value x29
    CFI_X19_IN_RECORD
    CFI_X30_IN_RECORD
32: // x19 = the record, which is the top and lacks its event.
    ldr x30, [x19, #FRAME_RETURN]
    .cfi_same_value x30
    ldr x17, [x19, #FRAME_FUNCTION]
    SPILL_FOR_SLOW_CALL
    ldr x16, [x19, #FRAME_SAVED]
    str x16, [sp, #SPILL_BYTES - SPILL_X19]
    .cfi_offset x19, -16 - SPILL_X19
33:
    .endif
    SLOW_CALL tracer_slow_enter, ldr x1, [x29, #SPILL_BYTES - SPILL_X17]
    cbnz x19, 35f
    mov x19, x0
35: cbz x19, 34f
    .cfi_remember_state
    CFI_X19_IN_RECORD
    RELOAD_AFTER_SLOW_CALL
    ldr x16, [x17, #FUNCTION_TARGET]
    ldr w9, [x17, #FUNCTION_KIND]
    cmp w9, #KIND_WATCHED
    ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    b.hs 13b
    b 12b
34: .cfi_restore_state
    ldr x19, [sp, #SPILL_BYTES - SPILL_X19]
    .cfi_same_value x19
    RELOAD_AFTER_SLOW_CALL
    .cfi_same_value x30
    PASS
    .cfi_endproc
    .size tracer_enter_\variant, . - tracer_enter_\variant
.endm

    .section .text.trampolines, "ax"
    .p2align 16 // the largest page: these are made writable for a moment, and nothing else
    .globl tracer_code_begin, tracer_code_end
    .hidden tracer_code_begin, tracer_code_end
tracer_code_begin:
// In the order of tracer_trampolines (shim.h).
TRAMPOLINE cycles, cycles, 0, 0, 0
TRAMPOLINE monotonic, monotonic, 0, 0, 0
TRAMPOLINE cycles_filtered, cycles, 1, 0, 0
TRAMPOLINE monotonic_filtered, monotonic, 1, 0, 0
TRAMPOLINE cycles_lse, cycles, 0, 1, 0
TRAMPOLINE monotonic_lse, monotonic, 0, 1, 0
TRAMPOLINE cycles_filtered_lse, cycles, 1, 1, 0
TRAMPOLINE monotonic_filtered_lse, monotonic, 1, 1, 0
TRAMPOLINE cycles_far, cycles, 0, 0, 1
TRAMPOLINE monotonic_far, monotonic, 0, 0, 1
TRAMPOLINE cycles_filtered_far, cycles, 1, 0, 1
TRAMPOLINE monotonic_filtered_far, monotonic, 1, 0, 1
TRAMPOLINE cycles_lse_far, cycles, 0, 1, 1
TRAMPOLINE monotonic_lse_far, monotonic, 0, 1, 1
TRAMPOLINE cycles_filtered_lse_far, cycles, 1, 1, 1
TRAMPOLINE monotonic_filtered_lse_far, monotonic, 1, 1, 1
    .p2align 16
tracer_code_end:
    .section .tls_sites
tracer_tls_sites_end:
    .text

// What Swift may change of the vector state: it is compiled for armv8-a, which knows no SVE. A call of the base
// procedure call standard carries nothing in the upper parts of the SVE registers and in the predicates (AAPCS64
// 6.1.3), every system call discards them anyway (kernel, Documentation/arch/arm64/sve.rst), and functions that do use
// them (STO_AARCH64_VARIANT_PCS) are never traced. q8-q31 carry nothing either but for the lower halves of q8-q15,
// which Swift keeps; all are saved, for functions that promise more than they must.
save_vectors:
    sub sp, sp, #528
    stp q0, q1, [sp, #0]
    stp q2, q3, [sp, #32]
    stp q4, q5, [sp, #64]
    stp q6, q7, [sp, #96]
    stp q8, q9, [sp, #128]
    stp q10, q11, [sp, #160]
    stp q12, q13, [sp, #192]
    stp q14, q15, [sp, #224]
    stp q16, q17, [sp, #256]
    stp q18, q19, [sp, #288]
    stp q20, q21, [sp, #320]
    stp q22, q23, [sp, #352]
    stp q24, q25, [sp, #384]
    stp q26, q27, [sp, #416]
    stp q28, q29, [sp, #448]
    stp q30, q31, [sp, #480]
    mrs x9, fpsr
    str x9, [sp, #512]
    ret
// Keeps x0.
restore_vectors:
    ldr x9, [sp, #512]
    msr fpsr, x9
    ldp q0, q1, [sp, #0]
    ldp q2, q3, [sp, #32]
    ldp q4, q5, [sp, #64]
    ldp q6, q7, [sp, #96]
    ldp q8, q9, [sp, #128]
    ldp q10, q11, [sp, #160]
    ldp q12, q13, [sp, #192]
    ldp q14, q15, [sp, #224]
    ldp q16, q17, [sp, #256]
    ldp q18, q19, [sp, #288]
    ldp q20, q21, [sp, #320]
    ldp q22, q23, [sp, #352]
    ldp q24, q25, [sp, #384]
    ldp q26, q27, [sp, #416]
    ldp q28, q29, [sp, #448]
    ldp q30, q31, [sp, #480]
    add sp, sp, #528
    ret

// Stands in for the loader's debugger hook, _dl_debug_state: called with the loader's lock held.
    .globl tracer_loader_event
    .hidden tracer_loader_event
    .type tracer_loader_event, %function
tracer_loader_event:
    .cfi_startproc
    CONFINED w16, x16
    cbz w16, 1f
    ret
1:
    stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    SPILL_FOR_SLOW_CALL
    SLOW_CALL tracer_slow_loader_event, mov x1, x29
    RELOAD_AFTER_SLOW_CALL
    .cfi_same_value x30
    ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size tracer_loader_event, . - tracer_loader_event

// void tracer_mark(name), tracer_begin(name), tracer_end(name): like a call through a stub, on the agent's stack.
.macro SPAN name, kind
    .globl \name
    .type \name, %function
\name:
    .cfi_startproc
    mov x17, #\kind
    b span
    .cfi_endproc
    .size \name, . - \name
.endm
SPAN tracer_mark, SPAN_MARK
SPAN tracer_begin, SPAN_BEGIN
SPAN tracer_end, SPAN_END
    .hidden tracer_begin_thread
SPAN tracer_begin_thread, SPAN_NONE
    .type span, %function
span:
    .cfi_startproc
    CONFINED w16, x16
    cbz w16, 1f
    ret
1:  stp x9, x10, [sp, #-16]!
    .cfi_def_cfa_offset 16
    SPILL_FOR_SLOW_CALL
    str x17, [sp, #SPILL_BYTES - SPILL_X16]
    SLOW_CALL tracer_slow_span, ldr x1, [x29, #SPILL_BYTES - SPILL_X0]
    RELOAD_AFTER_SLOW_CALL
    .cfi_same_value x30
    ldp x9, x10, [sp], #16
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size span, . - span

// long tracer_system_call(number, a, b, c, d, e, f)
    .globl tracer_system_call
    .hidden tracer_system_call
    .type tracer_system_call, %function
tracer_system_call:
    .cfi_startproc
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    ret
    .cfi_endproc
    .size tracer_system_call, . - tracer_system_call

// The compiler calls these by name. Libc's are chosen at run time and may use SVE.
    .globl memcpy, memmove, memset, memcmp, strlen
    .hidden memcpy, memmove, memset, memcmp, strlen
    .type strlen, %function
    .type memcpy, %function
    .type memmove, %function
    .type memset, %function
    .type memcmp, %function
memmove:
    sub x3, x0, x1
    cmp x3, x2                          // unsigned: destination inside the source
    b.lo 5f
memcpy:
    mov x3, x0
1:  subs x2, x2, #16
    b.lo 2f
    ldp x4, x5, [x1], #16
    stp x4, x5, [x3], #16
    b 1b
2:  tbz x2, #3, 3f                      // what is left, plus a multiple of 16
    ldr x4, [x1], #8
    str x4, [x3], #8
3:  ands x2, x2, #7
    b.eq 9f
4:  ldrb w4, [x1], #1
    strb w4, [x3], #1
    subs x2, x2, #1
    b.ne 4b
9:  ret
5:  cbz x2, 9b
6:  sub x2, x2, #1
    ldrb w4, [x1, x2]
    strb w4, [x0, x2]
    cbnz x2, 6b
    ret
memset:
    mov x3, x0
    and x1, x1, #255
    mov x4, #0x0101010101010101
    mul x1, x1, x4
1:  subs x2, x2, #16
    b.lo 2f
    stp x1, x1, [x3], #16
    b 1b
2:  ands x2, x2, #15
    b.eq 9b
3:  strb w1, [x3], #1
    subs x2, x2, #1
    b.ne 3b
    ret
strlen:
    mov x1, x0
    mov x0, #0
1:  ldrb w2, [x1, x0]
    cbz w2, 9b
    add x0, x0, #1
    b 1b
memcmp:
    mov x3, x0
    mov x0, #0
1:  cbz x2, 9b
    ldrb w4, [x3], #1
    ldrb w5, [x1], #1
    subs w0, w4, w5
    b.ne 9b
    sub x2, x2, #1
    b 1b

// Stubs and descriptors: room inside the library's own image, so that a stub reaches the trampolines with one branch
// and its descriptor with one `adr` (1 MB): they lie in blocks of 16,384 stubs and then their descriptors. Untouched
// pages cost nothing.
    .bss
    .p2align 16
    .globl tracer_stubs, tracer_process
    .hidden tracer_stubs, tracer_process
    .type tracer_stubs, %object
tracer_stubs: .zero STUB_COUNT * (STUB_BYTES + FUNCTION_BYTES)
    .size tracer_stubs, STUB_COUNT * (STUB_BYTES + FUNCTION_BYTES)
    .type tracer_process, %object
tracer_process: .zero 65536
    .size tracer_process, 65536

// The stubs are written at run time; this is their unwind description: a return address in x30, nothing else.
    .section .eh_frame, "a", %progbits
    .p2align 3
cie:
    .long cie_end - cie - 4
    .long 0
    .byte 1
    .asciz "zR"
    .uleb128 4
    .sleb128 -8
    .byte 30
    .uleb128 1
    .byte 0x1b                          // DW_EH_PE_pcrel | DW_EH_PE_sdata4
    .byte 0x0c, 31, 0                   // DW_CFA_def_cfa sp, 0
    .p2align 3
cie_end:
    .long fde_end - fde
fde:
    .long fde - cie
    .long tracer_stubs - .
    .long STUB_COUNT * (STUB_BYTES + FUNCTION_BYTES)
    .uleb128 0
    .p2align 3
fde_end:
#endif
    .section .note.GNU-stack, "", %progbits
