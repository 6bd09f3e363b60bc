// The aarch64 trampolines. docs/trampoline.md tells the story; this is the summary. Labels and order are those of
// arch/x86_64/trampoline.S.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's descriptor in x17 and
// branches here. Each address that calls return to has a *label*: 16 bytes of code that call the function and, on return,
// come back here. The trampoline jumps to the label of the return address in x30. So what the function finds in x30 says
// where to return to, whatever happens to stacks, threads and records: return addresses are neither kept on the side nor
// lost. Calls and returns stay balanced, for the predictor of returns as for a guarded control stack.
//
//      on entry                  at the place                  while the function runs
//      s    stack arguments      s      stack arguments        s    stack arguments
//      x30  return address       s-8    x30                    x30  in the label: its `blr` has put it there
//                                s-32   x9, x10, x11
//                                       = place
//
// s is the CFA of the caller's call and of the label's own: its frame has size zero.
//
// Registers. At a PLT call only x16, x17 and the flags are free: AAPCS64 6.1.1 frees x9-x15 too, but the preserve_most
// convention, which Swift's retain and release use on this processor, does not. On return x30 is free too. There is no red
// zone: three more and x30 are pushed, and popped before the function runs. No callee-saved register is touched while a
// signal can be delivered, and no vector register on the fast path.
//
// Signals. As on x86_64: a record becomes the top before it is filled; it is left only after everything was read from
// it; a word of the chunk is reserved in one indivisible step (an atomic add where the processor has one, else a pair
// of exclusive accesses, which an exception breaks up), after the clock was read and before the base is looked at.
//
// Memory order. Of what is written here only labels are read by other threads: the return address of a label is stored
// before the label can be found (release), and who finds it reads by addresses that depend on what was found. Everything
// else is read by this thread, by its signal handlers, and by other processes after this one was stopped or has ended:
// program order is enough for all three.
//
// No `bti` landing pads: nothing of this library is in guarded pages, and what is called is called as the PLT would,
// by `blr`, or by `br` through x16, which both satisfy a `bti c`.
#if defined(__aarch64__)
#include "../../include/shim.h"

#define SYS_mmap 222
#define SYS_rt_sigprocmask 135
#define SYS_clock_gettime 113
#define SYS_gettid 178
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

// old = *place; *place += bytes, in one step. Registers by their numbers; without LSE `scratch` is spent.
.macro RESERVE lse, old, place, scratch, bytes=8
    .if \lse
    mov x\old, #\bytes
    ldadd x\old, x\old, [x\place]
    .else
772: ldxr x\old, [x\place]
    add x\scratch, x\old, #\bytes
    stxr w\old, x\scratch, [x\place]
    cbnz w\old, 772b
    sub x\old, x\scratch, #\bytes
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

// To the place: the registers that the trampolines work with, and the return address.
.macro SPILL
    stp x9, x10, [sp, #-(PLACE_RETURN + 8)]!
    .cfi_adjust_cfa_offset PLACE_RETURN + 8
    stp x11, x30, [sp, #PLACE_RETURN - 8]
    .cfi_offset x30, -8
.endm
.macro RELOAD
    ldp x11, x30, [sp, #PLACE_RETURN - 8]
    .cfi_restore x30
    ldp x9, x10, [sp], #PLACE_RETURN + 8
    .cfi_adjust_cfa_offset -(PLACE_RETURN + 8)
.endm
// Ends in a jump to the function as if nothing had been there. x17 = descriptor.
.macro PASS
    RELOAD
    ldr x16, [x17, #FUNCTION_TARGET]
    br x16
.endm
.macro PUSH first, second
    stp \first, \second, [sp, #-16]!
    .cfi_adjust_cfa_offset 16
.endm
.macro POP first, second
    ldp \first, \second, [sp], #16
    .cfi_adjust_cfa_offset -16
.endm

// Runs a Swift function on the agent's stack with all signals blocked: function(thread, x9, place, x10). Out: x9 = result.
.macro SLOW_CALL function
    adrp x16, \function
    add x16, x16, :lo12:\function
    bl slow_call
.endm

// The word of the table where the search for the return address in x30 begins, in \entry. \table and \scratch are spent. The
// table is reached by one word, so that it can be exchanged for a larger one; its mask stands before it.
.macro LABEL_ENTRY entry, table, scratch
    adrp x\table, tracer_label_state+LABELS_TABLE
    ldr x\table, [x\table, #:lo12:tracer_label_state+LABELS_TABLE]
    mov w\entry, #LABEL_HASH & 0xffff
    movk w\entry, #LABEL_HASH >> 16, lsl #16
    mul w\entry, w30, w\entry
    ldur w\scratch, [x\table, #-8]
    and w\entry, w\entry, w\scratch
    add x\entry, x\table, x\entry
.endm
// to = what belongs to a label.
.macro LOAD_RETURN to, label
    add \to, \label, #LABEL_RETURN
    ldr \to, [\to]
.endm
// The label of the return address in x30, in x10. Elsewhere when it has none yet. x11 and x16 are spent.
.macro FIND_LABEL none
    LABEL_ENTRY 10, 11, 16
    ldr x10, [x10]
    LOAD_RETURN x11, x10
    cmp x11, x30
    b.ne \none
.endm

// At the place, with so much pushed below: said again where the code above does not run on.
.macro CFI_AT_PLACE pushed=0
    .cfi_def_cfa_offset PLACE_RETURN + 8 + \pushed
    .cfi_offset x30, -8
.endm
// Return address: what LABEL_RETURN after the label in x30, or x17, says.
// DW_CFA_val_expression x30: breg30 0 (breg17 0), plus_uconst LABEL_RETURN, deref
.macro CFI_RETURN_OF_X30
    .cfi_escape 0x16, 30, 7, 0x8e, 0, 0x23, 0x80, 0x80, 0x40, 0x06
.endm
.macro CFI_RETURN_OF_X17
    .cfi_escape 0x16, 30, 7, 0x81, 0, 0x23, 0x80, 0x80, 0x40, 0x06
.endm

// The enter event of the record in x9, which is the top, and has label and place. The clock first, then a word, then its
// time. In and out: x10 = label, x17 = descriptor, which it stores; x16 = thread. Out: x11, x16 and x30 are spent.
.macro WRITE_ENTER clock, filtered, lse, slow
    READ_CLOCK_\clock x11
    stp x11, x17, [x9, #FRAME_ENTER]
    .if \filtered
    mov x11, #SLOT_UNWRITTEN
    str x11, [x9, #FRAME_SLOT]
    .else
    TLS ldr x16, [x16, #THREAD_HOT]
    RESERVE \lse, 30, 16, 17
    ldp x17, x16, [x16, #HOT_LIMIT]     // limit, base
    cmp x30, x17
    b.hs \slow
    sub x11, x11, x16
    cmp x11, #(1 << (EVENT_START_BITS - 12)), lsl #12
    b.hs \slow
    ldr x17, [x9, #FRAME_FUNCTION]
    ldr x16, [x17, #FUNCTION_HEAD]
    orr x11, x16, x11, lsl #EVENT_TIME_SHIFT
    str x11, [x30], #8
    str x30, [x9, #FRAME_SLOT]
    .endif
.endm

// The enter word before `slot` becomes a complete call.
.macro COMPLETE_CALL slot, duration, word
    ldur \word, [\slot, #-8]
    add \word, \word, #(EVENT_COMPLETE - EVENT_ENTER)
    add \word, \word, \duration, lsl #EVENT_DURATION_SHIFT
    stur \word, [\slot, #-8]
.endm
// The exit word of the frame in x9. `time` counts from the base.
.macro EXIT_WORD word, time
    ldr \word, [x9, #FRAME_FUNCTION]
    ldr \word, [\word, #FUNCTION_HEAD]
    eor \word, \word, #(EVENT_ENTER ^ EVENT_EXIT)
    orr \word, \word, \time, lsl #EVENT_TIME_SHIFT
.endm

// Writes the end of the frame in x9, which is the top. x10 = now, x16 = thread, which is kept; x11, x17 and x30 are spent.
// `exit`: it is not one word. Both others leave with x10 = duration.
.macro WRITE_END filtered, lse, exit, slow
    ldr x11, [x9, #FRAME_ENTER]
    sub x10, x10, x11
    .if \filtered
    TLS ldr x11, [x16, #THREAD_HOT]
    ldr x30, [x11, #HOT_MINIMUM]
    cmp x10, x30
    b.hs \slow
    ldr x11, [x11, #HOT_CHUNK]
    cbz x11, \slow
    COUNT \lse, x11, CHUNK_FILTERED_TIME, x30, w17
    .else
    ldr x11, [x9, #FRAME_SLOT]
    add x30, x11, #SLOT_CLOSING
    str x30, [x9, #FRAME_SLOT]
    TLS ldr x17, [x16, #THREAD_HOT]
    ldr x30, [x17, #HOT_CURSOR]
    cmp x30, x11                        // its enter is the last event: the call becomes one word
    b.ne \exit
    cmp x10, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs \exit
    COMPLETE_CALL x11, x10, x30
    .endif
.endm
// Not one word: an exit event. x11 = slot, x10 = duration, x17 = hot. `slow`: x10 = duration again.
.macro WRITE_EXIT lse, done, slow
    cmp x11, #SLOT_ELSEWHERE
    b.lo \slow                          // its enter could not be written
    ldr x11, [x9, #FRAME_ENTER]
    add x10, x10, x11
    RESERVE \lse, 11, 17, 30
    ldp x30, x17, [x17, #HOT_LIMIT]     // limit, base
    cmp x11, x30
    b.hs 901f
    sub x17, x10, x17
    lsr x30, x17, #EVENT_TIME_BITS
    cbnz x30, 901f
    EXIT_WORD x30, x17
    str x30, [x11]
    b \done
901: ldr x11, [x9, #FRAME_ENTER]
    sub x10, x10, x11
    b \slow
.endm
// The record in x9 is given up: everything was read from it. x16 = thread.
.macro GIVE_UP
    ldr x11, [x9, #FRAME_BELOW]
    str xzr, [x9, #FRAME_SLOT]
    TLS str x11, [x16, #THREAD_TOP]     // from here on a handler may reuse the record
.endm

// Where in the table of frames on other stacks a place is: the address of its list in \list. \place is kept.
.macro FIND_LIST unit, place, list, scratch
    mov w\list, #LIST_HASH & 0xffff
    movk w\list, #LIST_HASH >> 16, lsl #16
    lsr x\scratch, x\place, #4
    mul x\list, x\list, x\scratch
    lsr x\list, x\list, #(64 - LIST_BITS)
    ldr x\scratch, [x\unit, #UNIT_LISTS]
    add x\list, x\scratch, x\list, lsl #3
.endm

// clock: which READ_CLOCK. filtered: TRACER_MINMS is in force; then an enter is not written when it happens but when
// something inside it is kept, so that a call which is not kept never touches the chunk. lse: the processor has atomic
// additions. far: the thread's state is more than 32 KB from the thread pointer.
.macro TRAMPOLINE variant, clock, filtered, lse, far
    .pushsection .data.rel.ro
    .quad tracer_enter_\variant, tracer_special_\variant, tracer_returned_\variant
    .popsection
    .section .text.trampolines, "ax"
    .p2align 6
    .globl tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant
    .hidden tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant
    .type tracer_enter_\variant, %function
tracer_enter_\variant:
    .cfi_startproc
    SPILL
16: THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr x10, [x9, #FRAME_PLACE]
    cmp sp, x10                         // stacks grow down: a nested frame lies below its caller's
    b.hs 21f
    TLS ldr x10, [x16, #THREAD_LOW]
    cmp sp, x10
    b.lo 21f
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, 22f
    FIND_LABEL 14f
15: THREAD x16, \far
    TLS str x9, [x16, #THREAD_TOP]
11: mov x11, sp
    stp x10, x11, [x9, #FRAME_LABEL]
    WRITE_ENTER \clock, \filtered, \lse, 32f
12: ldr x16, [x17, #FUNCTION_TARGET]
    mov x30, x10
    CFI_RETURN_OF_X30
    ldr x11, [sp, #PLACE_RETURN - 8]
    ldp x9, x10, [sp], #PLACE_RETURN + 8
    .cfi_def_cfa_offset 0
    br x30                              // the label: it calls x16 and comes back to:
    .size tracer_enter_\variant, . - tracer_enter_\variant

    .type tracer_returned_\variant, %function
tracer_returned_\variant:               // x17 = label
    CFI_RETURN_OF_X17
    LOAD_RETURN x30, x17
    .cfi_restore x30
    SPILL
    .ifc \clock, monotonic
    CONFINED w10, x10                   // its system call could be forbidden
    cbnz w10, 42f
    .endif
    THREAD x16, \far
43: TLS ldr x9, [x16, #THREAD_TOP]
    ldp x10, x11, [x9, #FRAME_LABEL]
    cmp sp, x11
    b.ne 60f
    cmp x10, x17
    b.ne 60f
    READ_CLOCK_\clock x10
    WRITE_END \filtered, \lse, 51f, 61f
41: GIVE_UP
42: RELOAD
    ret
    CFI_AT_PLACE

    .ifeq \filtered
51: WRITE_EXIT \lse, 41b, 62f
62: mov x11, #SLOT_ELSEWHERE
    str x11, [x9, #FRAME_SLOT]
    .endif
61: ldr x11, [x9, #FRAME_ENTER]
    add x10, x10, x11
    ldr x17, [x9, #FRAME_LABEL]
    and x17, x17, #-LABEL_BYTES
    b 67f

60: // x17 = label, x9 = top, x10 = its label, x16 = thread. The top is not the frame that returns, or not it alone.
    .ifeq \filtered
    ldr w11, [x9, #FRAME_LAST]
    cmp w11, #LAST_STAND_IN
    b.eq 80f
    .endif
    ldr x11, [x9, #FRAME_PLACE]
    cmp sp, x11
    b.ne 65f
    add x11, x17, #LABEL_TAIL
    cmp x10, x11
    b.ne 65f
    // A frame that a tail call opened: it ends, and then the one below, whose function made that call.
    READ_CLOCK_\clock x10
    WRITE_END \filtered, \lse, 52f, 61b
66: ldr x17, [x9, #FRAME_LABEL]
    and x17, x17, #-LABEL_BYTES
    GIVE_UP
    b 43b
    .ifeq \filtered
52: WRITE_EXIT \lse, 66b, 62b
    .endif

65: // For Swift: frames above are dead, or it lies on another stack, or the chunk is full, or it is time to write what the
    // filter held back, or somebody wants to know of the return, or we are a child.
    CONFINED w10, x10                   // neither a system call may be made nor the clock be read
    cbnz w10, 42b
    READ_CLOCK_\clock x10
67: mov x9, x17
    SLOW_CALL tracer_slow_exit
    b 42b

    .ifeq \filtered
    CFI_AT_PLACE
80: // Frames on other stacks are open, so the order of ends says nothing: RESUME and an exit, if not one word.
    PUSH x12, x13
    READ_CLOCK_\clock x10
    TLS ldr x16, [x16, #THREAD_UNIT]
    ldr w11, [x16, #UNIT_CHANGING]
    cbnz w11, 88f
    add x11, x16, #UNIT_BUSY
    TAKE \lse, w30, x11, w9
    cbnz w30, 88f
    THREAD x9, \far
    TLS ldr x9, [x9, #THREAD_TOP]
    ldr w11, [x9, #FRAME_LAST]
    cmp w11, #LAST_STAND_IN
    b.ne 87f
    add x13, sp, #16
    mov x12, #0
    ldr x9, [x16, #UNIT_TOP]
    ldp x11, x30, [x9, #FRAME_LABEL]    // label, place
    cmp x30, x13
    b.ne 81f
    cmp x11, x17
    b.eq 83f
81: FIND_LIST 16, 13, 12, 11            // x12: the word that points to the record
82: ldr x9, [x12]
    cbz x9, 87f
    ldp x11, x30, [x9, #FRAME_LABEL]
    cmp x30, x13
    b.ne 85f
    cmp x11, x17
    b.eq 84f
85: add x12, x9, #FRAME_OLDER
    b 82b
84: ldr w11, [x9, #FRAME_USE]
    cmp w11, #USE_OPEN
    b.ne 87f
    ldr w11, [x9, #FRAME_SIGNAL]
    cbnz w11, 87f
83: ldr x13, [x9, #FRAME_SLOT]
    cmp x13, #SLOT_ELSEWHERE
    b.eq 89f
    cmp x13, #SLOT_UNWRITTEN
    b.ls 87f
89: orr x11, x13, #SLOT_CLOSING
    str x11, [x9, #FRAME_SLOT]
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_HOT]
    ldr x11, [x16, #HOT_CURSOR]
    cmp x11, x13                        // its enter is the last event: one word, as on the fast path
    b.ne 90f
    ldr x11, [x9, #FRAME_ENTER]
    sub x11, x10, x11
    cmp x11, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs 90f
    COMPLETE_CALL x13, x11, x30
    b 91f
90: RESERVE \lse, 13, 16, 30, 16
    ldp x30, x11, [x16, #HOT_LIMIT]     // limit, base
    cmp x13, x30
    b.hs 86f
    sub x11, x10, x11
    lsr x30, x11, #EVENT_TIME_BITS
    cbnz x30, 86f
    ldr x30, [x9, #FRAME_ENTER]
    lsl x30, x30, #CONTROL_PAYLOAD_SHIFT
    orr x30, x30, #(CONTROL_RESUME << CONTROL_KIND_SHIFT)
    str x30, [x13]                      // alone it says nothing: the next word is empty
    EXIT_WORD x30, x11
    str x30, [x13, #8]
91: THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_UNIT]
    str xzr, [x9, #FRAME_SLOT]
    cbnz x12, 92f
    ldr x11, [x9, #FRAME_BELOW]
    str x11, [x16, #UNIT_TOP]           // from here on a handler may reuse the record
    b 93f
92: ldr x11, [x9, #FRAME_OLDER]
    str x11, [x12]
    str wzr, [x9, #FRAME_USE]
    COUNT \lse, x16, UNIT_FOREIGN, x11, w30, -1
    sub x16, x16, #UNIT_FOREIGN
    ldr x11, [x16, #UNIT_READY]
    str x11, [x9, #FRAME_OLDER]
    str x9, [x16, #UNIT_READY]
93: str wzr, [x16, #UNIT_BUSY]          // … and this one
    POP x12, x13
    b 42b
    CFI_AT_PLACE 16
86: mov x11, #SLOT_ELSEWHERE
    str x11, [x9, #FRAME_SLOT]
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_UNIT]
87: str wzr, [x16, #UNIT_BUSY]
88: POP x12, x13
    b 65b
    .endif
    .size tracer_returned_\variant, . - tracer_returned_\variant

    // Off the fast path of entry. x17 = descriptor, x30 = return address.
    CFI_AT_PLACE
14: // It has no label where the table is looked at first. x9 = record to take.
    PUSH x12, x17
    LABEL_ENTRY 11, 10, 16
17: ldr x10, [x11]
    LOAD_RETURN x16, x10
    cmp x16, x30
    b.eq 19f
    cmp x16, #LABEL_END
    b.ls 18f
    add x11, x11, #8
    b 17b
18: b.eq 20f                            // the end of the table
    adrp x12, tracer_labels
    sub x16, x30, x12
    cmp x16, #(LABEL_COUNT * LABEL_BYTES)
    b.lo 20f                            // a tail call of a function whose frame is not the top: for Swift
    adrp x16, tracer_label_state
    add x16, x16, :lo12:tracer_label_state
    ldp x10, x17, [x16, #LABELS_NEXT]   // next, limit
    cmp x10, x17
    b.hs 20f
    add x16, x16, #LABELS_NEXT
    RESERVE \lse, 10, 16, 17, LABEL_BYTES
    ldr x17, [x16, #LABELS_LIMIT - LABELS_NEXT]
    cmp x10, x17
    b.hs 20f
    add x17, x10, #LABEL_RETURN
    str x30, [x17]
    // Another thread may take the entry first, or exchange the table: then this label is found by nobody else.
    .if \lse
    casl x12, x10, [x11]
    .else
772: ldxr x17, [x11]
    cmp x17, x12
    b.ne 773f
    stlxr w17, x10, [x11]
    cbnz w17, 772b
773:
    .endif
19: .cfi_remember_state
    POP x12, x17
    b 15b
    .cfi_restore_state
20: POP x12, x17
    adrp x10, tracer_label_state
    add x10, x10, :lo12:tracer_label_state
    ldr w10, [x10, #LABELS_FULL]
    cbnz w10, 38f
    b 30f

21: // Not below the innermost open frame, or the stack is marked as nobody's. x9 = top.
    PROCESS w10, x10, PROCESS_ALIVE
    cbz w10, 28f                        // a child that fork has just made
    PROCESS w10, x10, PROCESS_ENABLED
    cbz w10, 24f
    .ifeq \filtered
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_STAND_IN
    b.eq 70f
    .endif
    ldp x10, x11, [x9, #FRAME_LABEL]    // label, place
    cmp sp, x11
    b.ne 30f
    // Equal, and the return address is in the frame's label: a tail call of that frame's function. The label has called,
    // and is returned to once: this is a jump. (Equal alone proves nothing on this processor: Swift's mayShare.)
    and x11, x10, #-LABEL_BYTES
    add x16, x11, #LABEL_CALL_BYTES
    cmp x30, x16
    b.ne 30f
    mov w16, #0
    tbz x10, #0, 27f                    // LABEL_TAIL
    ldr w16, [x9, #FRAME_TAILS]
27: add w16, w16, #1
    cmp w16, #TAIL_LIMIT
    b.hs 30f
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, 22f
    add x10, x11, #LABEL_TAIL
    mov w11, w16
    THREAD x16, \far
    TLS str x9, [x16, #THREAD_TOP]
    str w11, [x9, #FRAME_TAILS]
    mov x11, sp
    stp x10, x11, [x9, #FRAME_LABEL]
    WRITE_ENTER \clock, \filtered, \lse, 32f
    b 23f

    .ifeq \filtered
70: // Frames on other stacks are open. Who comes here while the unit is busy takes the slow path, and that takes none
    // of the records which are ready.
    FIND_LABEL 30f
    PUSH x12, x13
    mov x12, x10
    add x13, sp, #16
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_UNIT]
    ldr w10, [x16, #UNIT_CHANGING]
    cbnz w10, 75f
    add x11, x16, #UNIT_BUSY
    TAKE \lse, w10, x11, w9             // one step: a handler may switch to a context that was interrupted in here
    cbnz w10, 75f
    THREAD x9, \far
    TLS ldr x9, [x9, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_STAND_IN             // still: from now on it stays
    b.ne 73f
    ldr x10, [x16, #UNIT_STACK_LOW]
    cmp x13, x10
    b.lo 71f
    ldr x10, [x16, #UNIT_STACK_HIGH]
    cmp x13, x10
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
    cmp x13, x10
    b.hs 73f
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, 73f
    str x9, [x16, #UNIT_TOP]
    b 72f
71: ldp x9, x11, [x16, #UNIT_SIGNAL_LOW] // low, bytes
    sub x10, x13, x9
    cmp x10, x11
    b.lo 73f
    ldr x9, [x16, #UNIT_READY]
    cbz x9, 73f
    FIND_LIST 16, 13, 11, 10
    ldr x9, [x11]
76: cbz x9, 77f
    ldp x10, x30, [x9, #FRAME_LABEL]    // label, place
    cmp x30, x13
    b.ne 78f
    cmp x10, x12
    b.eq 73f                            // one of the two is dead, or the program copies its stacks
78: ldr x9, [x9, #FRAME_OLDER]
    b 76b
77: ldr x9, [x16, #UNIT_READY]
    stp x12, x13, [x9, #FRAME_LABEL]
    ldr x10, [x9, #FRAME_OLDER]
    str x10, [x16, #UNIT_READY]
    ldr x10, [x11]
    str x10, [x9, #FRAME_OLDER]
    mov w10, #USE_OPEN
    str w10, [x9, #FRAME_USE]
    mov w10, #PATIENCE
    str w10, [x16, #UNIT_PATIENCE]
    COUNT \lse, x16, UNIT_FOREIGN, x10, w30
    sub x16, x16, #UNIT_FOREIGN
    str x9, [x11]
72: str wzr, [x16, #UNIT_BUSY]
    mov x10, x12
    THREAD x16, \far
    POP x12, x13
    b 11b
    CFI_AT_PLACE 16
73: str wzr, [x16, #UNIT_BUSY]
75: POP x12, x13
    b 30f
    .endif

    CFI_AT_PLACE
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

    CFI_AT_PLACE
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
    .cfi_restore x30
    .type tracer_special_\variant, %function
tracer_special_\variant:
    SPILL
    ldr w9, [x17, #FUNCTION_KIND]
    cmp w9, #KIND_TAIL
    b.ne 37f
    adrp x10, tracer_labels
    sub x10, x30, x10
    cmp x10, #(LABEL_COUNT * LABEL_BYTES)
    b.lo 28f                            // reached by a tail call: its caller is not in x30
    THREAD x16, \far
    TLS ldr x10, [x16, #THREAD_LOW]
    cmp sp, x10
    b.lo 29f
    TLS ldr x9, [x16, #THREAD_TOP]
39: ldr x10, [x9, #FRAME_ABOVE]
    cbz x10, 22b
38: // An entry of no length.
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_HOT]
    .if \filtered
    ldr x9, [x16, #HOT_CHUNK]           // it has no length: always below the filter
    cbz x9, 30f
    COUNT \lse, x9, CHUNK_FILTERED_TIME, x10, w16
    b 23b
    .else
    ldr x9, [x16, #HOT_PENDING]
    add x9, x9, #1
    str x9, [x16, #HOT_PENDING]
    READ_CLOCK_\clock x9
    RESERVE \lse, 10, 16, 11
    ldp x11, x30, [x16, #HOT_LIMIT]     // limit, base
    cmp x10, x11
    b.hs 26f
    sub x9, x9, x30
    cmp x9, #(1 << (EVENT_START_BITS - 12)), lsl #12
    b.hs 26f
    ldr x11, [x17, #FUNCTION_INSTANT]
    orr x9, x11, x9, lsl #EVENT_TIME_SHIFT
    str x9, [x10]
    ldr x9, [x16, #HOT_PENDING]
    sub x9, x9, #1
    str x9, [x16, #HOT_PENDING]
    b 23b
26: ldr x9, [x16, #HOT_PENDING]
    sub x9, x9, #1
    str x9, [x16, #HOT_PENDING]
    b 30f
    .endif
37: cmp w9, #KIND_CALL                  // looked at once, and no longer
    b.eq 16b
    cmp w9, #KIND_ONCE
    b.ne 28f
    ldr w10, [x0]                       // the flag: somebody has begun it, or all is done
    cbnz w10, 16b
    b 28f
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
    cbz w10, 39b
    .endif
    b 30f
28: CONFINED w10, x10                   // a system call of ours could be forbidden
    cbnz w10, 23b

30: // Everything is still to be done.
    mov x10, #0
    .ifeq \filtered
    b 33f
32: // x9 = the record, which is the top and lacks its event.
    ldr x17, [x9, #FRAME_FUNCTION]
    mov x10, x9
    .endif
33: mov x9, x17
    SLOW_CALL tracer_slow_enter
    cbz x9, 23b
    ldr x10, [x9, #FRAME_LABEL]
    tbnz x10, #0, 23b                   // LABEL_TAIL
    and x10, x10, #-LABEL_BYTES
    b 12b
    .cfi_endproc
    .size tracer_special_\variant, . - tracer_special_\variant
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

// From the place. x16 = function; x9 and x10, whose own values are at the place, are its arguments. All registers but x9-x11,
// x16 and x30 are as they were; x9 = result, 0 also when no stack could be had. SIGBUS stays as the program has it. Signals
// are blocked before a callee-saved register changes, and open again after all are right; their values are on the thread's
// own stack meanwhile, where they can be seen.
    .type slow_call, %function
slow_call:
    .cfi_startproc
    sub sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset SPILL_BYTES
    stp x0, x1, [sp, #SPILL_BYTES - SPILL_X0]
    stp x2, x3, [sp, #SPILL_BYTES - SPILL_X2]
    stp x4, x5, [sp, #SPILL_BYTES - SPILL_X4]
    stp x6, x7, [sp, #SPILL_BYTES - SPILL_X6]
    stp x8, x12, [sp, #SPILL_BYTES - SPILL_X8]
    stp x13, x14, [sp, #SPILL_BYTES - SPILL_X13]
    stp x15, x17, [sp, #SPILL_BYTES - SPILL_X15]
    stp x18, x16, [sp, #SPILL_BYTES - SPILL_X18]
    stp x9, x10, [sp, #SPILL_BYTES - SPILL_X9]
    stp x19, x20, [sp, #SPILL_BYTES - SPILL_X19]
    stp x21, x22, [sp, #SPILL_BYTES - SPILL_X19 + 16]
    stp x23, x24, [sp, #SPILL_BYTES - SPILL_X19 + 32]
    stp x25, x26, [sp, #SPILL_BYTES - SPILL_X19 + 48]
    stp x27, x28, [sp, #SPILL_BYTES - SPILL_X19 + 64]
    stp x29, x30, [sp]
    .cfi_rel_offset x30, 8
    mov x0, #SIG_BLOCK
    adrp x1, tracer_blocked_signals
    add x1, x1, :lo12:tracer_blocked_signals
    add x2, sp, #SPILL_BYTES - SPILL_MASK
    mov x3, #8
    mov x8, #SYS_rt_sigprocmask
    svc #0
    .cfi_rel_offset x29, 0
    mov x29, sp
    .cfi_def_cfa_register x29
    THREAD_STATE x9, x10
    ldr x0, [x9, #THREAD_UNIT]
    cbz x0, 4f
    // Another task may run with this thread's block (clone(2) with CLONE_VM and without CLONE_SETTLS: LeakSanitizer's), on a
    // stack of its own and at the same time: nothing of the unit is its own. A child of vfork is on this stack, and alone.
    add x1, x29, #SPILL_BYTES
    ldp x2, x3, [x0, #UNIT_STACK_LOW]   // and UNIT_STACK_HIGH
    cmp x1, x2
    b.lo 3f
    cmp x1, x3
    b.lo 1f
3:  PROCESS w1, x2, PROCESS_ALIVE
    cbz w1, 1f                          // a child that fork has just made
    mov x10, x0
    mov x8, #SYS_gettid
    svc #0
    mov x9, #0
    ldr w1, [x10, #UNIT_TID]
    cmp w0, w1
    b.ne 2f
    mov x0, x10
    b 1f
4:  // A thread's first slow path: its wiped page, stack and unit in one private mapping, which a fork copies.
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
    mov x9, #0
    b.hs 2f
    mov x0, #(UNIT_WIPED_BYTES + UNIT_STACK_BYTES) & 0xffff
    movk x0, #(UNIT_WIPED_BYTES + UNIT_STACK_BYTES) >> 16, lsl #16
    add x0, x1, x0
    THREAD_STATE x9, x10
    str x0, [x9, #THREAD_UNIT]
1:  mov sp, x0
    bl save_vectors
    THREAD_STATE x0, x3
    ldp x1, x3, [x29, #SPILL_BYTES - SPILL_X9]
    add x2, x29, #SPILL_BYTES
    ldr x16, [x29, #SPILL_BYTES - SPILL_X16]
    blr x16
    bl restore_vectors
    mov x9, x0
2:  mov sp, x29
    .cfi_def_cfa_register sp
    ldr x29, [sp]
    .cfi_restore x29
    mov x0, #SIG_SETMASK
    add x1, sp, #SPILL_BYTES - SPILL_MASK
    mov x2, #0
    mov x3, #8
    mov x8, #SYS_rt_sigprocmask
    svc #0
    ldp x0, x1, [sp, #SPILL_BYTES - SPILL_X0]
    ldp x2, x3, [sp, #SPILL_BYTES - SPILL_X2]
    ldp x4, x5, [sp, #SPILL_BYTES - SPILL_X4]
    ldp x6, x7, [sp, #SPILL_BYTES - SPILL_X6]
    ldp x8, x12, [sp, #SPILL_BYTES - SPILL_X8]
    ldp x13, x14, [sp, #SPILL_BYTES - SPILL_X13]
    ldp x15, x17, [sp, #SPILL_BYTES - SPILL_X15]
    ldr x18, [sp, #SPILL_BYTES - SPILL_X18]
    ldr x30, [sp, #8]
    .cfi_restore x30
    add sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size slow_call, . - slow_call

// Stands in for the loader's debugger hook, _dl_debug_state: called with the loader's lock held.
    .globl tracer_loader_event
    .hidden tracer_loader_event
    .type tracer_loader_event, %function
tracer_loader_event:
    .cfi_startproc
    CONFINED w16, x16
    cbz w16, 1f
    ret
1:  SPILL
    SLOW_CALL tracer_slow_loader_event
    RELOAD
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
1:  SPILL
    mov x9, x0
    mov x10, x17
    SLOW_CALL tracer_slow_span
    RELOAD
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

// Room in the library's own image, where unwinders look for what they find on a stack: labels, what belongs to them at a
// fixed distance, and the first stubs and descriptors, which a stub reaches with one `adr` (1 MB). It is in no writable
// segment, so that nobody looks for pointers in it; the agent makes pages of it writable or executable when it needs them.
// Untouched pages cost nothing.
    .section .room, "a", %nobits
    // More than the largest page: the linker begins a segment, and does not add this to the writable one, where a page is
    // left out before it.
    .p2align 20
    .globl tracer_labels, tracer_room_stubs, tracer_room_mappings
    .hidden tracer_labels, tracer_room_stubs, tracer_room_mappings
    .type tracer_labels, %object
tracer_labels:
    // A frame of size zero. Its CFA is its caller's, so the unwinder must be told by other means that they differ: a
    // *signal frame* does that. But the caller of a signal frame is looked up at its exact pc, which is past the call;
    // hence the expression yields the return address - 1. (libgcc unwind-dw2.c, uw_frame_state_for.)
    //
    // x30 is what an unwinder has read where the function keeps it. A function that signs return addresses keeps a signed
    // one, of which libgcc strips the signature only for itself: so the expression leaves out the bits above an address.
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa sp, 0
    // DW_CFA_val_expression x30: breg30 0, const8u 0x0000fffffffffff0, and, plus_uconst LABEL_RETURN, deref, const1s -1, plus
    .cfi_escape 0x16, 30, 20, 0x8e, 0, 0x0e, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x1a, \
        0x23, 0x80, 0x80, 0x40, 0x06, 0x09, 0xff, 0x22
    .zero LABEL_COUNT * LABEL_BYTES
    .cfi_endproc
    .size tracer_labels, LABEL_COUNT * LABEL_BYTES
    .zero LABEL_COUNT * LABEL_BYTES     // LABEL_RETURN and LABEL_NEXT of each
    .type tracer_room_stubs, %object
tracer_room_stubs:
    // A return address in x30, nothing else.
    .cfi_startproc
    .zero STUB_BLOCK_BYTES
    .cfi_endproc
    .size tracer_room_stubs, STUB_BLOCK_BYTES
    .type tracer_room_mappings, %object
tracer_room_mappings:
    .zero MAPPING_BYTES
    .size tracer_room_mappings, MAPPING_BYTES
    .if LABEL_RETURN != LABEL_COUNT * LABEL_BYTES
    .error "the expressions of CFI_RETURN_OF_LABEL hold LABEL_RETURN"
    .endif

    .bss
    .p2align 16
    .globl tracer_process
    .hidden tracer_process
    .type tracer_process, %object
tracer_process: .zero 65536
    .size tracer_process, 65536
#endif
    .section .note.GNU-stack, "", %progbits
