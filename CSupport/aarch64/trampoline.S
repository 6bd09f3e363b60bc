// The aarch64 trampolines. docs/internals/trampoline.md explains them; this is the summary. Labels and order are those of
// x86_64/trampoline.S.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's hook in x17 and
// branches here. Each address that calls return to has a *label*: 16 bytes of code that call the function and, on return,
// come back here. The trampoline jumps to the label of the return address in x30. So what the function finds in x30 says
// where to return to, whatever happens to stacks, threads and records: return addresses are neither kept on the side nor
// lost. Calls and returns stay balanced, for the predictor of returns as for a guarded control stack.
//
//      on entry                  spilled                       while the function runs
//      s    stack arguments      s      stack arguments        s    stack arguments
//      x30  return address       s-8    x30                    x30  in the label: its `blr` has put it there
//                                s-32   x9, x10, x11
//                                       = the frame's stack pointer
//
// s is the CFA of the caller's call and of the label's own: its frame has size zero.
//
// Registers. At a PLT call only x16, x17 and the flags are free: AAPCS64 6.1.1 frees x9-x15 too, but the preserve_most
// convention, which Swift's retain and release use on this architecture, does not. On return x30 is free too. There is no red
// zone: three more and x30 are pushed, and popped before the function runs. No callee-saved register is touched while a
// signal can be delivered, and no vector register on the fast path.
//
// Signals. As on x86_64: a record becomes the top before it is filled; it is left only after everything was read from
// it; a word of the chunk is reserved in one indivisible step (an atomic add where the CPU has one, else a pair
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
#include "../layout.h"

#define SYS_mmap 222
#define SYS_rt_sigaction 134
#define SYS_prctl 167
#define SYS_clone 220
#define SYS_exit_group 94
#define SYS_seccomp 277
#define SYS_clone3 435
#define SYS_futex 98
// The numbers of SystemCall.changesIdentity, and sched_setattr.
#define IDENTITY_NUMBERS 143, 144, 145, 146, 147, 149, 151, 152, 159, 91, 41, 51, 97, 268, 446, 274
#define SYS_rt_sigprocmask 135
#define SYS_clock_gettime 113
#define SYS_gettid 178
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#define PAGE_SHIFT 16 /* for the largest pages that a kernel may have */
#define NANOSECONDS_LOW 0xca00 /* low 16 bits of 1000000000 */
#define NANOSECONDS_HIGH 0x3b9a

    .arch armv8-a
    .arch_extension lse // in the variants of that name alone
    .arch_extension sve // executed only if the CPU has it

#include "../patch_sites.h"

// TLS: the offsets of these instructions reach 32 KB; after larger thread-local variables of the program the `far` variants
// add the rest.
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

// Compares what is wanted from outside with what has been looked at: equal, there is nothing.
.macro HAS_CONTROL word, address, seen
    adrp \address, tracer_control
    ldr \address, [\address, #:lo12:tracer_control]
    ldr \word, [\address]
    adrp x16, tracer_control_seen
    ldr \seen, [x16, #:lo12:tracer_control_seen]
    cmp \word, \seen
.endm

.macro CONFINED word, address
    adrp \address, tracer_confined
    ldr \word, [\address, #:lo12:tracer_confined]
.endm

// time: x10 or x11. Where the cycle counter is not usable the agent makes a call of tracer_monotonic_\time of it before the
// first call: then x30 is spent.
.macro READ_CLOCK time
.Lclock\@:
    mrs \time, cntvct_el0
    .pushsection .clock_sites
    .long .Lclock\@ - .
    .popsection
.endm

// old = *word; *word += bytes, in one step. Registers by their numbers; without LSE `scratch` is spent.
.macro RESERVE lse, old, word, scratch, bytes=8
    .if \lse
    mov x\old, #\bytes
    ldadd x\old, x\old, [x\word]
    .else
.Lretry\@:
    ldxr x\old, [x\word]
    add x\scratch, x\old, #\bytes
    stxr w\old, x\scratch, [x\word]
    cbnz w\old, .Lretry\@
    sub x\old, x\scratch, #\bytes
    .endif
.endm
// old = *word; *word = 1, likewise. A 32-bit word.
.macro TAKE lse, old, word, status
    .if \lse
    mov \status, #1
    swp \status, \old, [\word]
    .else
.Lretry\@:
    ldxr \old, [\word]
    cbnz \old, .Ldone\@
    mov \old, #1
    stxr \status, \old, [\word]
    cbnz \status, .Lretry\@
    mov \old, #0
.Ldone\@:
    .endif
.endm
// word[offset] += by, likewise. `word` is spent.
.macro COUNT lse, word, offset, scratch, status, by=1
    add \word, \word, #\offset
    .if \lse
    mov \scratch, #\by
    stadd \scratch, [\word]
    .else
.Lretry\@:
    ldxr \scratch, [\word]
    add \scratch, \scratch, #\by
    stxr \status, \scratch, [\word]
    cbnz \status, .Lretry\@
    .endif
.endm

// Down to the frame's stack pointer: the registers that the trampolines work with, and the return address.
.macro SPILL
    stp x9, x10, [sp, #-(RETURN_SLOT + 8)]!
    .cfi_adjust_cfa_offset RETURN_SLOT + 8
    stp x11, x30, [sp, #RETURN_SLOT - 8]
    .cfi_offset x30, -8
.endm
.macro RELOAD
    ldp x11, x30, [sp, #RETURN_SLOT - 8]
    .cfi_restore x30
    ldp x9, x10, [sp], #RETURN_SLOT + 8
    .cfi_adjust_cfa_offset -(RETURN_SLOT + 8)
.endm
// Ends in a jump to the function as if nothing had been there. x17 = hook.
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

// Runs a Swift function on the agent's stack with all signals blocked: function(thread, x9, stack pointer, x10). Out: x9 = result.
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

// Spilled, with `pushed` bytes pushed below: said again where the code above does not run on.
.macro CFI_SPILLED pushed=0
    .cfi_def_cfa_offset RETURN_SLOT + 8 + \pushed
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

// The enter word of the record in x9. x10 = label, x11 = time, x16 = position; out: x17 = hook. sited, objected: with the words that
// say where the call is made from, and its object. filtered: the record says how many bytes they are, since they may be taken back.
.macro ENTER_WORD lse, slow, sited=0, objected=0, filtered=0
    RESERVE \lse, 30, 16, 17, 8 + 8 * \sited + 8 * \objected
    ldp x17, x16, [x16, #POSITION_LIMIT]     // limit, base
    cmp x30, x17
    b.hs \slow
    sub x11, x11, x16
    cmp x11, #(1 << (EVENT_START_BITS - 12)), lsl #12
    b.hs \slow
    .if \sited
    LOAD_RETURN x16, x10
    SITE_OF x16
    str x16, [x30], #8                  // alone it says nothing: the next word is empty
    .endif
    ldr x17, [x9, #FRAME_FUNCTION]
    .if \objected
    OBJECT_OF 16, x17
    str x16, [x30], #8                  // likewise
    .endif
    ldr x16, [x17, #FUNCTION_HEAD]
    orr x11, x16, x11, lsl #EVENT_TIME_SHIFT
    str x11, [x30], #8
    .if \filtered
    mov w16, #(8 + 8 * \sited + 8 * \objected)
    str w16, [x9, #FRAME_WORDS]
    .endif
    str x30, [x9, #FRAME_EVENT]
.endm
// to = the word that says the object of a call of the function.
.macro OBJECT_OF to, function
    ldrb w\to, [\function, #FUNCTION_ARGUMENT]
    cmp w\to, #2
    csel x\to, x1, x0, eq
    lsl x\to, x\to, #CONTROL_PAYLOAD_SHIFT
    add x\to, x\to, #(CONTROL_ARGUMENT << CONTROL_KIND_SHIFT)
.endm
// The function in x17 has calls with an object, and this is one: of system calls by number, futex. w11 is spent.
.macro IF_OBJECT then
    ldrb w11, [x17, #FUNCTION_ARGUMENT]
    cbz w11, .Lno_object\@
    ldrb w11, [x17, #FUNCTION_KIND]
    cmp w11, #KIND_NUMBER
    b.ne \then
    cmp w0, #SYS_futex
    b.eq \then
.Lno_object\@:
.endm
// A return address becomes the word that says it.
.macro SITE_OF address
    lsl \address, \address, #CONTROL_PAYLOAD_SHIFT
    add \address, \address, #(CONTROL_SITE << CONTROL_KIND_SHIFT)
.endm

// The enter event of the record in x9, which is the top, and has label and stack pointer. The clock first, then a word, then its
// time. In and out: x10 = label, x17 = hook, which it stores; x16 = thread. Out: x11, x16 and x30 are spent.
.macro WRITE_ENTER filtered, lse, slow, sited, objected=0
    READ_CLOCK x11
    stp x11, x17, [x9, #FRAME_ENTER]
    TLS ldr x16, [x16, #THREAD_POSITION]
    .ifnb \sited
    SITED \sited
    .endif
    ENTER_WORD \lse, \slow, 0, \objected, \filtered
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
// `exit`: it is not one word; `short`: the filter does not keep it. Both with x10 = duration.
.macro WRITE_END filtered, lse, exit, short
    ldr x11, [x9, #FRAME_ENTER]
    sub x10, x10, x11
    ldr x11, [x9, #FRAME_EVENT]
    add x30, x11, #FRAME_CLOSING
    str x30, [x9, #FRAME_EVENT]
    TLS ldr x17, [x16, #THREAD_POSITION]
    .if \filtered
    ldr x30, [x17, #POSITION_MINIMUM]
    cmp x10, x30
    b.lo \short
    .endif
    ldr x30, [x17, #POSITION_CURSOR]
    cmp x30, x11                        // its enter is the last event: the call becomes one word
    b.ne \exit
    cmp x10, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs \exit
    COMPLETE_CALL x11, x10, x30
.endm
// Takes back the enter of a call that the filter does not keep: its words are cleared, since one that is reserved and not written must be 0;
// and given up if they are the last ones, in one step, since a handler may have added others. x11 = event, x10 = duration, x17 = position. `exit`: the enter is in an earlier chunk.
.macro TAKE_BACK lse, exit, done
    cmp x11, #FRAME_UNWRITTEN
    b.ls \exit
    ldr w30, [x9, #FRAME_WORDS]
    stur xzr, [x11, #-8]
    cmp w30, #8
    b.eq .Lcleared\@
    stur xzr, [x11, #-16]
    cmp w30, #16
    b.eq .Lcleared\@
    stur xzr, [x11, #-24]
.Lcleared\@:
    sub x30, x11, x30
    .if \lse
    mov x10, x11
    cas x10, x30, [x17]                 // POSITION_CURSOR
    .else
.Lagain\@:
    ldxr x10, [x17]
    cmp x10, x11
    b.ne .Lnot_last\@
    stxr w10, x30, [x17]
    cbnz w10, .Lagain\@
.Lnot_last\@:
    .endif
    ldr x17, [x17, #POSITION_CHUNK]
    COUNT \lse, x17, CHUNK_FILTERED_TIME, x30, w10
    b \done
.endm
// Not one word: an exit event. x11 = event, x10 = duration, x17 = position. `slow`: x10 = duration again.
.macro WRITE_EXIT lse, done, slow
    cmp x11, #FRAME_ELSEWHERE
    b.lo \slow                          // its enter could not be written
    ldr x11, [x9, #FRAME_ENTER]
    add x10, x10, x11
    RESERVE \lse, 11, 17, 30
    ldp x30, x17, [x17, #POSITION_LIMIT]     // limit, base
    cmp x11, x30
    b.hs .Lexit_misfit\@
    sub x17, x10, x17
    lsr x30, x17, #EVENT_TIME_BITS
    cbnz x30, .Lexit_misfit\@
    EXIT_WORD x30, x17
    str x30, [x11]
    b \done
.Lexit_misfit\@:
    ldr x11, [x9, #FRAME_ENTER]
    sub x10, x10, x11
    b \slow
.endm
// The record in x9 is given up: everything was read from it. Without a stack pointer, as it is now, it has no word reserved
// (isWritePending). x16 = thread.
.macro GIVE_UP
    ldr x11, [x9, #FRAME_BELOW]
    str xzr, [x9, #FRAME_EVENT]
    str xzr, [x9, #FRAME_STACK_POINTER]
    TLS str x11, [x16, #THREAD_TOP]     // from here on a handler may reuse the record
.endm

// The word of an entry-only trampoline is written, or is not going to be. x16 = position.
.macro INSTANT_DONE
    ldr x9, [x16, #POSITION_PENDING]
    sub x9, x9, #1
    str x9, [x16, #POSITION_PENDING]
    cbnz x9, .Lnested\@
    str xzr, [x16, #POSITION_PENDING_STACK]
.Lnested\@:
.endm
// An entry of no length. x11 = time, x16 = position, x17 = hook. A return address that is a label is no site.
.macro INSTANT_WORD lse, refused, sited=0
    RESERVE \lse, 10, 16, 9, 8 + 8 * \sited
    ldp x9, x30, [x16, #POSITION_LIMIT]      // limit, base
    cmp x10, x9
    b.hs \refused
    sub x11, x11, x30
    cmp x11, #(1 << (EVENT_START_BITS - 12)), lsl #12
    b.hs \refused
    .if \sited
    ldr x30, [sp, #RETURN_SLOT]
    adrp x9, tracer_label_area
    ldr x9, [x9, #:lo12:tracer_label_area+AREA_LOW]
    sub x9, x30, x9
    adrp x30, tracer_label_area
    ldr x30, [x30, #:lo12:tracer_label_area+AREA_SPAN]
    cmp x9, x30
    ldr x30, [sp, #RETURN_SLOT]
    csel x30, xzr, x30, lo
    SITE_OF x30
    str x30, [x10], #8
    .endif
    ldr x9, [x17, #FUNCTION_INSTANT]
    orr x9, x9, x11, lsl #EVENT_TIME_SHIFT
    str x9, [x10]
.endm

// The list of frames on other stacks at a stack pointer: its address in \list. \stack_pointer is kept.
.macro FIND_LIST context, stack_pointer, list, scratch
    mov w\list, #LIST_HASH & 0xffff
    movk w\list, #LIST_HASH >> 16, lsl #16
    lsr x\scratch, x\stack_pointer, #4
    mul w\list, w\list, w\scratch     // its upper bits, to which all bits of the stack pointer have come
    lsr w\list, w\list, #(32 - MOST_LIST_BITS)
    ldr w\scratch, [x\context, #CONTEXT_LIST_MASK]
    and w\list, w\list, w\scratch
    ldr x\scratch, [x\context, #CONTEXT_LISTS]
    add x\list, x\scratch, x\list, lsl #3
.endm

// The record that a call takes, in x9, and the label of its return address, in x10; x16 = thread. Elsewhere when it is not as simple as
// that.
.macro FIND_RECORD variant, far
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr x10, [x9, #FRAME_STACK_POINTER]
    cmp sp, x10                         // stacks grow down: a nested frame lies below its caller's
    b.hs .Lnot_below\variant
    TLS ldr x10, [x16, #THREAD_LOW]
    cmp sp, x10
    b.lo .Lnot_below\variant
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, .Lno_record\variant
    FIND_LABEL .Lno_label\variant
.endm

// filtered: TRACER_MINMS is in force; then the enter of a call that was short is taken back when it ends. lse: the CPU has atomic additions. far: the thread's state is
// more than 32 KB from the thread pointer.
.macro TRAMPOLINE variant, filtered, lse, far
    .pushsection .data.rel.ro
    .quad tracer_enter\variant, tracer_special\variant, tracer_returned\variant, tracer_returned_checked\variant, .Lend\variant
    .if \filtered
    .quad 0, 0
    .else
    .quad tracer_pass_checked\variant, tracer_pass_counted\variant
    .endif
    .popsection
    .section .text.trampolines, "ax"
    .p2align 6
    .type tracer_enter\variant, %function
tracer_enter\variant:
    .cfi_startproc
    SPILL
.Lspilled\variant:
    FIND_RECORD \variant, \far
.Lfound\variant:
    THREAD x16, \far
    TLS str x9, [x16, #THREAD_TOP]
.Ltaken\variant:
    mov x11, sp
    stp x10, x11, [x9, #FRAME_LABEL]
    WRITE_ENTER \filtered, \lse, .Lunwritten\variant, .Lsited_enter\variant
.Lcall\variant:
    ldr x16, [x17, #FUNCTION_TARGET]
    mov x30, x10
    CFI_RETURN_OF_X30
    ldr x11, [sp, #RETURN_SLOT - 8]
    ldp x9, x10, [sp], #RETURN_SLOT + 8
    .cfi_def_cfa_offset 0
    br x30                              // the label: it calls x16 and comes back to:
    .size tracer_enter\variant, . - tracer_enter\variant

    // x17 = label. `checked`: where the clock is a system call, which could be forbidden.
    .type tracer_returned_checked\variant, %function
tracer_returned_checked\variant:
    CFI_RETURN_OF_X17
    CONFINED w16, x16
    cbnz w16, .Lreturn_confined\variant
    .size tracer_returned_checked\variant, . - tracer_returned_checked\variant
    .type tracer_returned\variant, %function
tracer_returned\variant:
    LOAD_RETURN x30, x17
    .cfi_restore x30
    SPILL
    THREAD x16, \far
.Lcompare_top\variant:
    TLS ldr x9, [x16, #THREAD_TOP]
    ldp x10, x11, [x9, #FRAME_LABEL]
    cmp sp, x11
    b.ne .Lother_top\variant
    cmp x10, x17
    b.ne .Lother_top\variant
    READ_CLOCK x10
    WRITE_END \filtered, \lse, .Ltwo_words\variant, .Lshort\variant
.Lended\variant:
    GIVE_UP
.Lleave\variant:
    RELOAD
    ret
    CFI_RETURN_OF_X17
.Lreturn_confined\variant:
    LOAD_RETURN x30, x17
    .cfi_restore x30
    ret
    CFI_SPILLED

    .if \filtered
.Lshort\variant:
    TAKE_BACK \lse, .Ltwo_words\variant, .Lended\variant
    .endif
.Ltwo_words\variant:
    WRITE_EXIT \lse, .Lended\variant, .Llost_end\variant
.Llost_end\variant:
    ldr x11, [x9, #FRAME_EVENT]
    mov x17, #FRAME_ELSEWHERE
    ands x11, x11, #~FRAME_CLOSING      // its end is Swift's to write
    csel x11, x17, x11, eq
    str x11, [x9, #FRAME_EVENT]
.Lslow_end\variant:
    ldr x11, [x9, #FRAME_ENTER]
    add x10, x10, x11
    ldr x17, [x9, #FRAME_LABEL]
    and x17, x17, #-LABEL_BYTES
    b .Lrun_slow_exit\variant

.Lother_top\variant:
    // x17 = label, x9 = top, x10 = its label, x16 = thread. The top is not the frame that returns, or not it alone.
    .ifeq \filtered
    ldr w11, [x9, #FRAME_LAST]
    cmp w11, #LAST_ALTERNATE_MODE
    b.eq .Lalternate_exit\variant
    .endif
    ldr x11, [x9, #FRAME_STACK_POINTER]
    cmp sp, x11
    b.ne .Lslow_exit\variant
    add x11, x17, #LABEL_TAIL
    cmp x10, x11
    .if \filtered
    b.ne .Lslow_exit\variant
    .else
    b.ne .Lresult\variant
    .endif
    // A frame that a tail call opened: it ends, and then the one below, whose function made that call.
    READ_CLOCK x10
    WRITE_END \filtered, \lse, .Ltail_two_words\variant, .Ltail_short\variant
.Ltail_ended\variant:
    ldr x17, [x9, #FRAME_LABEL]
    and x17, x17, #-LABEL_BYTES
    GIVE_UP
    b .Lcompare_top\variant
    .if \filtered
.Ltail_short\variant:
    TAKE_BACK \lse, .Ltail_two_words\variant, .Ltail_ended\variant
    .endif
.Ltail_two_words\variant:
    WRITE_EXIT \lse, .Ltail_ended\variant, .Llost_end\variant

    .ifeq \filtered
.Lresult\variant:
    // The top returns, and its result is recorded.
    add x11, x17, #LABEL_RESULT
    cmp x10, x11
    b.ne .Lslow_exit\variant
    READ_CLOCK x11
    bl values_exit
    cbz w11, .Lslow_exit\variant
    THREAD x16, \far
    GIVE_UP
    b .Lleave\variant
    .endif

.Lslow_exit\variant:
    // For Swift: frames above are dead, or it lies on another stack, or the chunk is full, or somebody
    // wants to know of the return, or we are a child.
    CONFINED w10, x10                   // neither a system call may be made nor the clock be read
    cbnz w10, .Lleave\variant
    READ_CLOCK x10
.Lrun_slow_exit\variant:
    mov x9, x17
    SLOW_CALL tracer_slow_exit
    b .Lleave\variant

    .ifeq \filtered
    CFI_SPILLED
.Lalternate_exit\variant:
    // Frames on other stacks are open, so the order of ends says nothing: RESUME and an exit, if not one word.
    PUSH x12, x13
    READ_CLOCK x10
    TLS ldr x16, [x16, #THREAD_CONTEXT]
    ldr w11, [x16, #CONTEXT_CHANGING]
    cbnz w11, .Lalternate_slow_exit\variant
    add x11, x16, #CONTEXT_BUSY
    TAKE \lse, w30, x11, w9
    cbnz w30, .Lalternate_slow_exit\variant
    THREAD x9, \far
    TLS ldr x9, [x9, #THREAD_TOP]
    ldr w11, [x9, #FRAME_LAST]
    cmp w11, #LAST_ALTERNATE_MODE
    b.ne .Lalternate_unlock\variant
    add x13, sp, #16
    mov x12, #0
    ldr x9, [x16, #CONTEXT_TOP]
    ldp x11, x30, [x9, #FRAME_LABEL]    // label, stack pointer
    cmp x30, x13
    b.ne .Lalternate_search\variant
    cmp x11, x17
    b.eq .Lalternate_found\variant
.Lalternate_search\variant:
    FIND_LIST 16, 13, 12, 11            // x12: the word that points to the record
.Lalternate_look\variant:
    ldr x9, [x12]
    cbz x9, .Lalternate_unlock\variant
    ldp x11, x30, [x9, #FRAME_LABEL]
    cmp x30, x13
    b.ne .Lalternate_older\variant
    cmp x11, x17
    b.eq .Lalternate_listed\variant
.Lalternate_older\variant:
    add x12, x9, #FRAME_OLDER
    b .Lalternate_look\variant
.Lalternate_listed\variant:
    ldr w11, [x9, #FRAME_USE]
    cmp w11, #USE_OPEN
    b.ne .Lalternate_unlock\variant
    ldr w11, [x9, #FRAME_SIGNAL]
    cbnz w11, .Lalternate_unlock\variant
.Lalternate_found\variant:
    ldr x13, [x9, #FRAME_EVENT]
    cmp x13, #FRAME_ELSEWHERE
    b.eq .Lalternate_close\variant
    cmp x13, #FRAME_UNWRITTEN
    b.ls .Lalternate_unlock\variant
.Lalternate_close\variant:
    orr x11, x13, #FRAME_CLOSING
    str x11, [x9, #FRAME_EVENT]
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_POSITION]
    ldr x11, [x16, #POSITION_CURSOR]
    cmp x11, x13                        // its enter is the last event: one word, as on the fast path
    b.ne .Lalternate_two_words\variant
    ldr x11, [x9, #FRAME_ENTER]
    sub x11, x10, x11
    cmp x11, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs .Lalternate_two_words\variant
    COMPLETE_CALL x13, x11, x30
    b .Lalternate_ended\variant
.Lalternate_two_words\variant:
    RESERVE \lse, 13, 16, 30, 16
    ldp x30, x11, [x16, #POSITION_LIMIT]     // limit, base
    cmp x13, x30
    b.hs .Lalternate_full\variant
    sub x11, x10, x11
    lsr x30, x11, #EVENT_TIME_BITS
    cbnz x30, .Lalternate_full\variant
    ldr x30, [x9, #FRAME_ENTER]
    lsl x30, x30, #CONTROL_PAYLOAD_SHIFT
    orr x30, x30, #(CONTROL_RESUME << CONTROL_KIND_SHIFT)
    str x30, [x13]                      // alone it says nothing: the next word is empty
    EXIT_WORD x30, x11
    str x30, [x13, #8]
.Lalternate_ended\variant:
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_CONTEXT]
    str xzr, [x9, #FRAME_EVENT]
    cbnz x12, .Lalternate_unlink\variant
    str xzr, [x9, #FRAME_STACK_POINTER]
    ldr x11, [x9, #FRAME_BELOW]
    str x11, [x16, #CONTEXT_TOP]        // from here on a handler may reuse the record
    b .Lalternate_left\variant
.Lalternate_unlink\variant:
    ldr x11, [x9, #FRAME_OLDER]
    str x11, [x12]
    str wzr, [x9, #FRAME_USE]
    COUNT \lse, x16, CONTEXT_ALTERNATE, x11, w30, -1
    sub x16, x16, #CONTEXT_ALTERNATE
    ldr x11, [x16, #CONTEXT_READY]
    str x11, [x9, #FRAME_OLDER]
    str x9, [x16, #CONTEXT_READY]
.Lalternate_left\variant:
    str wzr, [x16, #CONTEXT_BUSY]       // … and this one
    POP x12, x13
    b .Lleave\variant
    CFI_SPILLED 16
.Lalternate_full\variant:
    ldr x11, [x9, #FRAME_EVENT]
    and x11, x11, #~FRAME_CLOSING
    str x11, [x9, #FRAME_EVENT]
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_CONTEXT]
.Lalternate_unlock\variant:
    str wzr, [x16, #CONTEXT_BUSY]
.Lalternate_slow_exit\variant:
    POP x12, x13
    b .Lslow_exit\variant
    .endif
    .size tracer_returned\variant, . - tracer_returned\variant

    // Off the fast path of entry. x17 = hook, x30 = return address.
    CFI_SPILLED
.Lno_label\variant:
    // It has no label where the table is looked at first. x9 = record to take.
    PUSH x12, x17
    LABEL_ENTRY 11, 10, 16
.Lprobe\variant:
    ldr x10, [x11]
    LOAD_RETURN x16, x10
    cmp x16, x30
    b.eq .Lprobed\variant
    cmp x16, #LABEL_END
    b.ls .Lvacant\variant
    add x11, x11, #8
    b .Lprobe\variant
.Lvacant\variant:
    b.eq .Llabel_refused\variant        // the end of the table
    cbz x30, .Llabel_refused\variant    // the first function of a stack, which cannot return
    adrp x12, tracer_label_area
    add x12, x12, #:lo12:tracer_label_area
    ldp x12, x10, [x12]                 // low: what an empty entry has; span
    sub x16, x30, x12
    cmp x16, x10
    b.lo .Llabel_refused\variant        // a tail call of a function whose frame is not the top: for Swift
    adrp x16, tracer_label_state
    add x16, x16, :lo12:tracer_label_state
    ldp x10, x17, [x16, #LABELS_NEXT]   // next, limit
    cmp x10, x17
    b.hs .Llabel_refused\variant
    add x16, x16, #LABELS_NEXT
    RESERVE \lse, 10, 16, 17, LABEL_BYTES
    ldr x17, [x16, #LABELS_LIMIT - LABELS_NEXT]
    cmp x10, x17
    b.hs .Llabel_refused\variant
    add x17, x10, #LABEL_RETURN
    str x30, [x17]
    // Another thread may take the entry first, or exchange the table: then this label is found by nobody else.
    .if \lse
    casl x12, x10, [x11]
    .else
.Lclaim\variant:
    ldxr x17, [x11]
    cmp x17, x12
    b.ne .Lclaimed\variant
    stlxr w17, x10, [x11]
    cbnz w17, .Lclaim\variant
.Lclaimed\variant:
    .endif
.Lprobed\variant:
    .cfi_remember_state
    POP x12, x17
    IF_OBJECT .Lobject_found\variant
    b .Lfound\variant
    .cfi_restore_state
.Llabel_refused\variant:
    POP x12, x17
    PROCESS w10, x10, PROCESS_ALIVE
    cbz w10, .Lspecial_slow\variant
    PROCESS w10, x10, PROCESS_ENABLED   // while recording is off no label is found
    cbz w10, .Lnot_recording\variant
    adrp x10, tracer_label_state
    add x10, x10, :lo12:tracer_label_state
    ldr w10, [x10, #LABELS_FULL]
    cbz w10, .Lslow_enter\variant
    ldrb w10, [x17, #FUNCTION_ARGUMENT]
    cbz w10, .Linstant\variant
    b .Lslow_enter\variant

.Lnot_below\variant:
    // Not below the innermost open frame, or the stack is marked as unowned. x9 = top.
    PROCESS w10, x10, PROCESS_ALIVE
    cbz w10, .Lspecial_slow\variant     // a child that fork has just made
    PROCESS w10, x10, PROCESS_ENABLED
    cbz w10, .Lnot_recording\variant
    .ifeq \filtered
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_ALTERNATE_MODE
    b.eq .Lalternate_enter\variant
    .endif
    ldp x10, x11, [x9, #FRAME_LABEL]    // label, stack pointer
    cmp sp, x11
    b.ne .Lslow_enter\variant
    // Equal, and the return address is in the frame's label: a tail call of that frame's function. The label has called,
    // and is returned to once: this is a jump. (Equal alone proves nothing on this architecture: Swift's mayShare.)
    and x11, x10, #-LABEL_BYTES
    add x16, x11, #LABEL_CALL_BYTES
    cmp x30, x16
    b.ne .Lslow_enter\variant
    mov w16, #0
    tbz x10, #0, .Lnext_tail\variant    // LABEL_TAIL
    ldr w16, [x9, #FRAME_TAILS]
.Lnext_tail\variant:
    add w16, w16, #1
    cmp w16, #TAIL_LIMIT
    b.hs .Lslow_enter\variant
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, .Lno_record\variant
    add x10, x11, #LABEL_TAIL
    mov w11, w16
    THREAD x16, \far
    TLS str x9, [x16, #THREAD_TOP]
    str w11, [x9, #FRAME_TAILS]
    mov x11, sp
    stp x10, x11, [x9, #FRAME_LABEL]
    IF_OBJECT .Lobject_tail\variant
    WRITE_ENTER \filtered, \lse, .Lunwritten\variant
    b .Lpass\variant
.Lobject_tail\variant:
    .ifeq \filtered
    ldrb w11, [x17, #FUNCTION_ARGUMENT]
    tbnz w11, #7, .Lvalues_tail\variant
    .endif
    WRITE_ENTER \filtered, \lse, .Lunwritten\variant, , 1
    b .Lpass\variant
    .ifeq \filtered
.Lvalues_tail\variant:
    READ_CLOCK x11
    stp x11, x17, [x9, #FRAME_ENTER]
    bl values_enter
    cbz w11, .Lunwritten\variant
    tbnz w11, #31, .Lunwanted\variant
    b .Lpass\variant
    .endif

    .ifeq \filtered
.Lalternate_enter\variant:
    // Frames on other stacks are open. Who comes here while the thread's context is busy takes the slow path, and
    // that takes none of the records which are ready.
    FIND_LABEL .Lslow_enter\variant
    PUSH x12, x13
    mov x12, x10
    add x13, sp, #16
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_CONTEXT]
    ldr w10, [x16, #CONTEXT_CHANGING]
    cbnz w10, .Lalternate_slow_enter\variant
    add x11, x16, #CONTEXT_BUSY
    TAKE \lse, w10, x11, w9             // one step: a handler may switch to a coroutine that was interrupted in here
    cbnz w10, .Lalternate_slow_enter\variant
    THREAD x9, \far
    TLS ldr x9, [x9, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_ALTERNATE_MODE         // still: from now on it stays
    b.ne .Lenter_unlock\variant
    ldr x10, [x16, #CONTEXT_STACK_LOW]
    cmp x13, x10
    b.lo .Lother_stack\variant
    ldr x10, [x16, #CONTEXT_STACK_HIGH]
    cmp x13, x10
    b.hs .Lother_stack\variant
    ldr x10, [x16, #CONTEXT_SIGNAL_FRAMES] // left by a handler that jumped here?
    cbnz x10, .Lenter_unlock\variant
    ldr x10, [x16, #CONTEXT_ALTERNATE]
    cbnz x10, .Lown_stack\variant
    ldr w10, [x16, #CONTEXT_PATIENCE]
    subs w10, w10, #1
    str w10, [x16, #CONTEXT_PATIENCE]
    b.mi .Lenter_unlock\variant
.Lown_stack\variant:
    ldr x9, [x16, #CONTEXT_TOP]
    ldr x10, [x9, #FRAME_STACK_POINTER]
    cmp x13, x10
    b.hs .Lenter_unlock\variant
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, .Lenter_unlock\variant
    str x9, [x16, #CONTEXT_TOP]
    b .Lalternate_taken\variant
.Lother_stack\variant:
    ldp x9, x11, [x16, #CONTEXT_SIGNAL_LOW] // low, bytes
    sub x10, x13, x9
    cmp x10, x11
    b.lo .Lenter_unlock\variant
    ldr x9, [x16, #CONTEXT_READY]
    cbz x9, .Lenter_unlock\variant
    FIND_LIST 16, 13, 11, 10
    ldr x9, [x11]
.Llook\variant:
    cbz x9, .Ltake_ready\variant
    ldp x10, x30, [x9, #FRAME_LABEL]    // label, stack pointer
    cmp x30, x13
    b.ne .Llook_older\variant
    cmp x10, x12
    b.eq .Lenter_unlock\variant         // one of the two is dead, or the program copies its stacks
.Llook_older\variant:
    ldr x9, [x9, #FRAME_OLDER]
    b .Llook\variant
.Ltake_ready\variant:
    ldr x9, [x16, #CONTEXT_READY]
    stp x12, x13, [x9, #FRAME_LABEL]
    ldr x10, [x9, #FRAME_OLDER]
    str x10, [x16, #CONTEXT_READY]
    ldr x10, [x11]
    str x10, [x9, #FRAME_OLDER]
    mov w10, #USE_OPEN
    str w10, [x9, #FRAME_USE]
    mov w10, #PATIENCE
    str w10, [x16, #CONTEXT_PATIENCE]
    COUNT \lse, x16, CONTEXT_ALTERNATE, x10, w30
    sub x16, x16, #CONTEXT_ALTERNATE
    str x9, [x11]
.Lalternate_taken\variant:
    str wzr, [x16, #CONTEXT_BUSY]
    mov x10, x12
    THREAD x16, \far
    POP x12, x13
    IF_OBJECT .Lobject_taken\variant
    b .Ltaken\variant
    CFI_SPILLED 16
.Lenter_unlock\variant:
    str wzr, [x16, #CONTEXT_BUSY]
.Lalternate_slow_enter\variant:
    POP x12, x13
    b .Lslow_enter\variant
    .endif

    CFI_SPILLED
.Lno_record\variant:
    // No record above: the end of the chain, or of TRACER_MAXDEPTH.
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #1
    b.ne .Lslow_enter\variant
    TLS ldr x9, [x16, #THREAD_POSITION]
    ldr x9, [x9, #POSITION_CHUNK]
    cbz x9, .Lslow_enter\variant
    COUNT \lse, x9, CHUNK_FILTERED_DEPTH, x10, w16
.Lpass\variant:
    PASS

    CFI_SPILLED
.Lnot_recording\variant:
    // Not recording. Somebody outside may want it now: Swift looks.
    HAS_CONTROL w9, x9, w10
    b.eq .Loff\variant
    CONFINED w10, x10
    cbz w10, .Lslow_enter\variant
.Loff\variant:
    PROCESS w10, x10, PROCESS_DROPPING
    cbz w10, .Lpass\variant
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr w10, [x9, #FRAME_LAST]
    cmp w10, #LAST_CHILD
    b.eq .Lpass\variant
    TLS ldr x9, [x16, #THREAD_POSITION]
    ldr x9, [x9, #POSITION_CHUNK]
    cbz x9, .Lno_chunk\variant
    COUNT \lse, x9, CHUNK_DROPPED, x10, w16
    b .Lpass\variant
.Lno_chunk\variant:
    // A thread without a chunk: in the header of the file, which is of all threads.
    adrp x9, tracer_process
    ldr x9, [x9, #PROCESS_DROPPED]
    COUNT \lse, x9, 0, x10, w16
    b .Lpass\variant

    // A function whose calls have an object; or one that must see its real caller, or returns twice: entry only; or one that Swift
    // looks at.
    .cfi_def_cfa_offset 0
    .cfi_restore x30
    .type tracer_special\variant, %function
tracer_special\variant:
    SPILL
    ldrb w9, [x17, #FUNCTION_KIND]
    cmp w9, #KIND_CALL
    mov w10, #KIND_PATCHED
    ccmp w9, w10, #4, ne                // Z
    b.ne .Lspecial_kind\variant
    ldrb w10, [x17, #FUNCTION_ARGUMENT] // none: looked at once, and no longer; or it had no number, and another thread was faster
    cbz w10, .Lspilled\variant
.Lobject\variant:
    FIND_RECORD \variant, \far
.Lobject_found\variant:
    THREAD x16, \far
    TLS str x9, [x16, #THREAD_TOP]
.Lobject_taken\variant:
    mov x11, sp
    stp x10, x11, [x9, #FRAME_LABEL]
    .ifeq \filtered
    ldrb w11, [x17, #FUNCTION_ARGUMENT]
    tbnz w11, #7, .Lvalues\variant     // FUNCTION_HAS_VALUES
    .endif
    WRITE_ENTER \filtered, \lse, .Lunwritten\variant, .Lsited_object\variant, 1
    b .Lcall\variant
    .ifeq \filtered
.Lvalues\variant:
    READ_CLOCK x11
    stp x11, x17, [x9, #FRAME_ENTER]
    bl values_enter
    cbz w11, .Lunwritten\variant
    tbz w11, #31, .Lcall\variant
.Lunwanted\variant:
    // Not one of the calls that are wanted: the record, which is the top, is free again.
    str xzr, [x9, #FRAME_STACK_POINTER]
    ldr x11, [x9, #FRAME_BELOW]
    THREAD x16, \far
    TLS str x11, [x16, #THREAD_TOP]
    b .Lpass\variant
    .endif
.Lspecial_kind\variant:
    cmp w9, #KIND_ENTRY_ONLY
    b.ne .Lspecial_call\variant
    adrp x9, tracer_label_area
    add x9, x9, #:lo12:tracer_label_area
    ldp x10, x11, [x9]                  // low, span
    sub x10, x30, x10
    cmp x10, x11
    b.lo .Lspecial_slow\variant         // reached by a tail call: its caller is not in x30
    adrp x10, tracer_process
    ldr w10, [x10, #PROCESS_ENABLED]    // it begins a page
    cbz w10, .Lspecial_disabled\variant
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr x10, [x9, #FRAME_ABOVE]
    cbz x10, .Lno_record\variant
.Linstant\variant:
    // An entry of no length.
    THREAD x16, \far
    TLS ldr x16, [x16, #THREAD_POSITION]
    .if \filtered
    ldr x9, [x16, #POSITION_MINIMUM]
    cbz x9, .Lunfiltered\variant        // a process that is attached to comes here without a filter, too
    ldr x9, [x16, #POSITION_CHUNK]      // it has no length: always below the filter
    cbz x9, .Lslow_enter\variant
    COUNT \lse, x9, CHUNK_FILTERED_TIME, x10, w16
    b .Lpass\variant
.Lunfiltered\variant:
    .endif
    ldr x9, [x16, #POSITION_PENDING_STACK] // the outermost of those that are interrupted: a handler may leave it for good
    cmp sp, x9
    b.ls .Lcounted\variant
    mov x9, sp
    str x9, [x16, #POSITION_PENDING_STACK]
.Lcounted\variant:
    ldr x9, [x16, #POSITION_PENDING]
    add x9, x9, #1
    str x9, [x16, #POSITION_PENDING]
    READ_CLOCK x11
    SITED .Lsited_instant\variant
    INSTANT_WORD \lse, .Linstant_refused\variant
.Linstant_written\variant:
    INSTANT_DONE
    b .Lpass\variant
.Linstant_refused\variant:
    INSTANT_DONE
    b .Lslow_enter\variant
.Lspecial_call\variant:
    cmp w9, #KIND_ONCE
    b.ne .Lspecial_number\variant
    ldr w10, [x0]                       // the flag: somebody has begun it, or all is done
    cbnz w10, .Lspecial_recorded\variant
    b .Lspecial_slow\variant
.Lspecial_apart\variant:
    cmp w9, #KIND_APART
    b.ne .Lspecial_slow\variant
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_TOP]
    ldr w9, [x9, #FRAME_LAST]
    cmp w9, #LAST_ALTERNATE_MODE
    b.ne .Lspilled\variant
    b .Lspecial_slow\variant
.Lspecial_number\variant:
    cmp w9, #KIND_NUMBER
    b.ne .Lspecial_apart\variant
    .irp number, SYS_rt_sigaction, SYS_prctl, SYS_clone, SYS_seccomp, SYS_clone3, SYS_exit_group, IDENTITY_NUMBERS
    cmp w0, #\number
    b.eq .Lspecial_slow\variant
    .endr
    ldr w10, [x17, #FUNCTION_ID]
    cbz w10, .Lpass\variant             // only looked at, and not recorded
.Lspecial_recorded\variant:
    IF_OBJECT .Lobject\variant
    b .Lspilled\variant
.Lspecial_disabled\variant:
    PROCESS w10, x10, PROCESS_ALIVE
    cbnz w10, .Lnot_recording\variant
.Lspecial_slow\variant:
    CONFINED w10, x10                   // a system call of ours could be forbidden
    cbz w10, .Lslow_enter\variant
    ldrb w10, [x17, #FUNCTION_KIND]
    cmp w10, #KIND_INITIALIZER
    b.eq .Lunrecorded\variant
    ldr w10, [x17, #FUNCTION_ID]        // no id: no call that would be counted
    cbnz w10, .Lnot_recording\variant
    b .Lpass\variant

.Lslow_enter\variant:
    // Everything is still to be done. But nothing for a child that runs in its parent's memory.
    THREAD x16, \far
    TLS ldr x10, [x16, #THREAD_TOP]
    ldr w10, [x10, #FRAME_LAST]
    cmp w10, #LAST_CHILD
    b.ne .Lnew_enter\variant
    PROCESS w10, x10, PROCESS_ALIVE
    cbnz w10, .Lpass\variant
.Lnew_enter\variant:
    mov x10, #0
    b .Lrun_slow_enter\variant
.Lunwritten\variant:
    // x9 = the record, which is the top and lacks its event.
    ldr x17, [x9, #FRAME_FUNCTION]
    mov x10, x9
.Lrun_slow_enter\variant:
    mov x9, x17
    SLOW_CALL tracer_slow_enter
    cbz x9, .Lunrecorded\variant
    .ifeq \filtered
    cmp x9, #SLOW_ORDINARY
    b.ne .Lhas_frame\variant
    ldr x30, [sp, #RETURN_SLOT]         // the call of Swift has changed it
    b .Lspilled\variant
.Lhas_frame\variant:
    .endif
    ldr x10, [x9, #FRAME_LABEL]
    tbnz x10, #0, .Lpass\variant        // LABEL_TAIL
    and x10, x10, #-LABEL_BYTES
    b .Lcall\variant
.Lunrecorded\variant:
    ldr x16, [x17, #FUNCTION_TARGET]
    cbnz x16, .Lpass\variant
    ldr x17, [x17, #FUNCTION_INSTANT]   // an initializer: where its address is (InitializerStubs.swift)
    RELOAD
    ldr x16, [x17]
    br x16
    .cfi_endproc
    .size tracer_special\variant, . - tracer_special\variant
    .ifeq \filtered
    // As tracer_pass, and every so many calls of a thread to Swift, which looks at how long they took.
    .type tracer_pass_checked\variant, %function
tracer_pass_checked\variant:
    .cfi_startproc
    THREAD x16, \far
    str x17, [sp, #-16]!
    .cfi_def_cfa_offset 16
    TLS ldr x17, [x16, #THREAD_PASSES]
    subs x17, x17, #1
    TLS str x17, [x16, #THREAD_PASSES]
    ldr x17, [sp], #16
    .cfi_def_cfa_offset 0
    b.mi .Lpassed_slow\variant
    ldr x16, [x17, #FUNCTION_TARGET]
    br x16
    .cfi_endproc
    .size tracer_pass_checked\variant, . - tracer_pass_checked\variant
    // As tracer_pass, and counts the call in one step, as COUNT does: a signal handler between a load and its store could fork, and the child
    // store what was read in its parent. Every so many calls of a thread go to Swift, which has one of them recorded. A child that fork
    // has just made must not count into its parent's file, in which its counters still lie.
    .type tracer_pass_counted\variant, %function
tracer_pass_counted\variant:
    .cfi_startproc
    PUSH x9, x10
    THREAD x16, \far
    TLS ldr x9, [x16, #THREAD_PASSES]
    subs x9, x9, #1
    TLS str x9, [x16, #THREAD_PASSES]
    b.mi .Lnot_passed\variant
    PROCESS w10, x10, PROCESS_ENABLED
    cbz w10, .Lnot_counted\variant
    TLS ldr x9, [x16, #THREAD_COUNTS]
    ldrh w10, [x17, #FUNCTION_COUNTER]
    add x9, x9, x10
    COUNT \lse, x9, 0, x10, w16
    POP x9, x10
    ldr x16, [x17, #FUNCTION_TARGET]
    br x16
    .cfi_adjust_cfa_offset 16
.Lnot_passed\variant:
    mov x10, #PASSES_RECORDED
    cmp x9, x10
    POP x9, x10
    b.lt tracer_enter\variant
    b .Lpassed_slow\variant
    .cfi_adjust_cfa_offset 16
.Lnot_counted\variant:
    POP x9, x10
.Lpassed_slow\variant:
    // Not tracer_special, which takes a function that has a number for an ordinary one.
    SPILL
    PROCESS w10, x10, PROCESS_ENABLED
    cbz w10, .Lspecial_disabled\variant
    b .Lspecial_slow\variant
    .cfi_endproc
    .size tracer_pass_counted\variant, . - tracer_pass_counted\variant
    .endif
.Lend\variant:
.endm

    .section .text.trampolines, "ax"
    .p2align PAGE_SHIFT // these are made writable for a moment, and nothing else
    .globl tracer_code_begin
    .hidden tracer_code_begin
tracer_code_begin:
// In the order of tracer_trampolines (processor.h).
TRAMPOLINE , 0, 0, 0
TRAMPOLINE _filtered, 1, 0, 0
TRAMPOLINE _lse, 0, 1, 0
TRAMPOLINE _filtered_lse, 1, 1, 0
TRAMPOLINE _far, 0, 0, 1
TRAMPOLINE _filtered_far, 1, 0, 1
TRAMPOLINE _lse_far, 0, 1, 1
TRAMPOLINE _filtered_lse_far, 1, 1, 1
    .p2align PAGE_SHIFT

// With call sites: what a branch leads to from where one word would be reserved. It is not in the pages that are patched.
.macro SITED_WORDS variant, lse, filtered
    .section .text
    .type tracer_sited\variant, %function
tracer_sited\variant:
    .cfi_startproc
    CFI_SPILLED
.Lsited_enter\variant:
    ENTER_WORD \lse, .Lunwritten\variant, 1, 0, \filtered
    b .Lcall\variant
.Lsited_object\variant:
    ENTER_WORD \lse, .Lunwritten\variant, 1, 1, \filtered
    b .Lcall\variant
.Lsited_instant\variant:
    INSTANT_WORD \lse, .Linstant_refused\variant, 1
    b .Linstant_written\variant
    .cfi_endproc
    .size tracer_sited\variant, . - tracer_sited\variant
.endm
SITED_WORDS , 0, 0
SITED_WORDS _filtered, 0, 1
SITED_WORDS _lse, 1, 0
SITED_WORDS _filtered_lse, 1, 1
SITED_WORDS _far, 0, 0
SITED_WORDS _filtered_far, 0, 1
SITED_WORDS _lse_far, 1, 0
SITED_WORDS _filtered_lse_far, 1, 1
    END_OF_PATCH_SITES

// CLOCK_MONOTONIC in the register of that name, in nanoseconds; all else is kept. By the kernel's own system call: it cannot
// fail, and leaves all registers but x0 as they are.
.macro MONOTONIC time
    .globl tracer_monotonic_\time
    .hidden tracer_monotonic_\time
    .type tracer_monotonic_\time, %function
tracer_monotonic_\time:
    .cfi_startproc
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
    ret
    .cfi_endproc
    .size tracer_monotonic_\time, . - tracer_monotonic_\time
.endm
MONOTONIC x10
MONOTONIC x11

.macro VECTORS move
    \move q0, q1, [sp, #0]
    \move q2, q3, [sp, #32]
    \move q4, q5, [sp, #64]
    \move q6, q7, [sp, #96]
    \move q8, q9, [sp, #128]
    \move q10, q11, [sp, #160]
    \move q12, q13, [sp, #192]
    \move q14, q15, [sp, #224]
    \move q16, q17, [sp, #256]
    \move q18, q19, [sp, #288]
    \move q20, q21, [sp, #320]
    \move q22, q23, [sp, #352]
    \move q24, q25, [sp, #384]
    \move q26, q27, [sp, #416]
    \move q28, q29, [sp, #448]
    \move q30, q31, [sp, #480]
.endm
// Vector state that Swift may change: it is compiled for armv8-a, which knows no SVE. (SVE_REGISTERS keeps those registers.) q8-q31
// carry nothing over a call but for the lower halves of q8-q15, which Swift keeps; all are saved, for functions that promise more than
// they must.
save_vectors:
    sub sp, sp, #SAVED_VECTORS_BYTES
    VECTORS stp
    mrs x9, fpsr
    str x9, [sp, #512]
    ret
// Keeps x0.
restore_vectors:
    ldr x9, [sp, #512]
    msr fpsr, x9
    VECTORS ldp
    add sp, sp, #SAVED_VECTORS_BYTES
    ret

// State that SVE adds to q0-q31 (Arm ARM, A1.4.3), at sp. Every system call discards it (kernel, Documentation/arch/arm64/sve.rst), and
// so does a write to q0-q31. A call of the base standard carries nothing there (AAPCS64 6.1.3), but a caller knows what its own
// compiler has made of a local function (gcc's -fipa-ra), and such functions are patched. Changes x16.
#define SVE_BIT 22 // HWCAP_SVE (kernel, arch/arm64/include/uapi/asm/hwcap.h)
.macro SVE_REGISTERS move
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    \move z\n, [sp, #\n, mul vl]
    .endr
    addvl x16, sp, #31
    addvl x16, x16, #1
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    \move p\n, [x16, #\n, mul vl]
    .endr
.endm
.macro SVE_SPACE
    addvl sp, sp, #-32
    addpl sp, sp, #-16 // a predicate is an eighth of a vector, of 16 bytes at least: the stack pointer stays aligned
.endm
// Without, goes to the label. x16 is changed.
.macro UNLESS_SVE label
    adrp x16, tracer_capabilities
    add x16, x16, :lo12:tracer_capabilities
    ldr x16, [x16, #8] // AT_HWCAP
    tbz x16, #SVE_BIT, \label
.endm

// Registers that a call may change, except x9-x11, x16, x18 and x30.
.macro CALLERS_REGISTERS move
    \move x0, x1, [sp, #SPILL_BYTES - SPILL_X0]
    \move x2, x3, [sp, #SPILL_BYTES - SPILL_X2]
    \move x4, x5, [sp, #SPILL_BYTES - SPILL_X4]
    \move x6, x7, [sp, #SPILL_BYTES - SPILL_X6]
    \move x8, x12, [sp, #SPILL_BYTES - SPILL_X8]
    \move x13, x14, [sp, #SPILL_BYTES - SPILL_X13]
    \move x15, x17, [sp, #SPILL_BYTES - SPILL_X15]
.endm
// Spilled. x16 = function; x9 and x10, whose own values are spilled, are its arguments. All registers but x9-x11,
// x16 and x30 are as they were; x9 = result, 0 also when no stack could be had. SIGBUS stays as the program has it. Signals
// are blocked before a callee-saved register changes, and open again after all are right; their values are on the thread's
// own stack meanwhile, where they can be seen.
    .type slow_call, %function
slow_call:
    .cfi_startproc
    sub sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset SPILL_BYTES
    CALLERS_REGISTERS stp
    stp x18, x16, [sp, #SPILL_BYTES - SPILL_X18]
    stp x9, x10, [sp, #SPILL_BYTES - SPILL_X9]
    stp x19, x20, [sp, #SPILL_BYTES - SPILL_X19]
    stp x21, x22, [sp, #SPILL_BYTES - SPILL_X19 + 16]
    stp x23, x24, [sp, #SPILL_BYTES - SPILL_X19 + 32]
    stp x25, x26, [sp, #SPILL_BYTES - SPILL_X19 + 48]
    stp x27, x28, [sp, #SPILL_BYTES - SPILL_X19 + 64]
    stp x29, x30, [sp]
    .cfi_rel_offset x30, 8
    mov x17, sp
    .cfi_def_cfa_register x17
    UNLESS_SVE .Lsve_saved
    SVE_SPACE
    SVE_REGISTERS str
.Lsve_saved:
    mov x0, #SIG_BLOCK
    adrp x1, tracer_blocked_signals
    add x1, x1, :lo12:tracer_blocked_signals
    add x2, x17, #SPILL_BYTES - SPILL_MASK
    mov x3, #8
    mov x8, #SYS_rt_sigprocmask
    svc #0
    .cfi_rel_offset x29, 0
    mov x29, x17
    .cfi_def_cfa_register x29
    THREAD_STATE x9, x10
    ldr x0, [x9, #THREAD_CONTEXT]
    cbz x0, .Lfirst_slow_call
    // Another task may run with this thread's block (clone(2) with CLONE_VM and without CLONE_SETTLS: LeakSanitizer's), on a
    // stack of its own and at the same time: nothing of the thread's context is its own. A child of vfork is on this stack, and alone. Of
    // those that are seen to be made it is known (SharedMemory.swift).
    ldr w1, [x0, #CONTEXT_SHARING]
    cmp w1, #SHARING_SUSPENDED
    b.eq .Lswitch_stack
    b.hi .Lwhose_context
    add x1, x29, #SPILL_BYTES
    ldp x2, x3, [x0, #CONTEXT_STACK_LOW] // and CONTEXT_STACK_HIGH
    cmp x1, x2
    b.lo .Lwhose_context
    cmp x1, x3
    b.lo .Lswitch_stack
.Lwhose_context:
    PROCESS w1, x2, PROCESS_ALIVE
    cbz w1, .Lswitch_stack              // a child that fork has just made
    mov x10, x0
    mov x8, #SYS_gettid
    svc #0
    mov x9, #0
    ldr w1, [x10, #CONTEXT_TID]
    cmp w0, w1
    b.ne .Lrestore
    mov x0, x10
    b .Lswitch_stack
.Lfirst_slow_call:
    // A thread's first slow path: a context that is ready, or else one of its own, below it its stack, which a fork copies.
    adrp x10, tracer_ready_contexts
    add x10, x10, :lo12:tracer_ready_contexts
    mov w2, #READY_CONTEXTS
.Lnext_ready:
    ldaxr x11, [x10]
    cbz x11, .Lnot_ready
    stlxr w1, xzr, [x10]
    cbnz w1, .Lnext_ready
    b .Lhas_context
.Lnot_ready:
    add x10, x10, #8
    subs w2, w2, #1
    b.ne .Lnext_ready
    mov x1, #(CONTEXT_STACK_BYTES + CONTEXT_BYTES) & 0xffff
    movk x1, #(CONTEXT_STACK_BYTES + CONTEXT_BYTES) >> 16, lsl #16
    mov x2, #3                          // PROT_READ | PROT_WRITE
    mov x3, #0x4022                     // MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    mov x4, #-1
    mov x5, #0
    mov x8, #SYS_mmap
    svc #0
    cmn x0, #4095                       // -4095 … -1: minus an errno
    mov x1, x0
    mov x9, #0
    b.hs .Lrestore
    mov x0, #CONTEXT_STACK_BYTES & 0xffff
    movk x0, #CONTEXT_STACK_BYTES >> 16, lsl #16
    add x11, x1, x0
.Lhas_context:
    mov x8, #SYS_gettid
    svc #0
    str w0, [x11, #CONTEXT_TID]         // the owner, even if this call needs nothing of it, as __libc_start_main's
    mov x0, x11
    THREAD_STATE x9, x10
    str x0, [x9, #THREAD_CONTEXT]
.Lswitch_stack:
    mov sp, x0
    bl save_vectors
    THREAD_STATE x0, x3
    ldp x1, x3, [x29, #SPILL_BYTES - SPILL_X9]
    add x2, x29, #SPILL_BYTES
    ldr x16, [x29, #SPILL_BYTES - SPILL_X16]
    blr x16
    bl restore_vectors
    mov x9, x0
.Lrestore:
    mov x17, x29
    .cfi_def_cfa_register x17
    mov sp, x29
    UNLESS_SVE .Lrestore_mask
    SVE_SPACE
.Lrestore_mask:
    ldr x29, [x17]
    .cfi_restore x29
    mov x0, #SIG_SETMASK
    add x1, x17, #SPILL_BYTES - SPILL_MASK
    mov x2, #0
    mov x3, #8
    mov x8, #SYS_rt_sigprocmask
    svc #0
    UNLESS_SVE .Lsve_restored
    SVE_REGISTERS ldr
.Lsve_restored:
    mov sp, x17
    .cfi_def_cfa_register sp
    CALLERS_REGISTERS ldp
    ldr x18, [sp, #SPILL_BYTES - SPILL_X18]
    ldr x30, [sp, #8]
    .cfi_restore x30
    add sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size slow_call, . - slow_call

// The record in x9, at the time in x11: its enter, or its exit, with the values of its arguments or its result (call_values.c). The caller's
// registers are where slow_call has them, and all but x11, x16 and x30 are as they were. w11 = 0: it could not be done; below: see tracer_fulfils.
.macro VALUES name, function
    .type \name, %function
\name:
    .cfi_startproc
    sub sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset SPILL_BYTES
    CALLERS_REGISTERS stp
    str x18, [sp, #SPILL_BYTES - SPILL_X18]
    stp x9, x10, [sp, #SPILL_BYTES - SPILL_X9]
    stp x29, x30, [sp]
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x0, x9
    mov x1, x11
    bl \function
    mov w11, w0
    CALLERS_REGISTERS ldp
    ldr x18, [sp, #SPILL_BYTES - SPILL_X18]
    ldp x9, x10, [sp, #SPILL_BYTES - SPILL_X9]
    ldp x29, x30, [sp]
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, #SPILL_BYTES
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size \name, . - \name
.endm
VALUES values_enter, tracer_write_enter
VALUES values_exit, tracer_write_result

// The stub of a patched function that is not recorded any more comes here (CalledFunctions.swift, HotFunctions.swift): x17 = hook.
    .globl tracer_pass
    .hidden tracer_pass
    .type tracer_pass, %function
tracer_pass:
    .cfi_startproc
    ldr x16, [x17, #FUNCTION_TARGET]
    br x16
    .cfi_endproc
    .size tracer_pass, . - tracer_pass

// The same of a function that was called, whose first bytes are still to be put back (CalledFunctions.swift). Threads that count at once
// count one call: so what is compared is the sign.
    .globl tracer_pass_some
    .hidden tracer_pass_some
    .type tracer_pass_some, %function
tracer_pass_some:
    .cfi_startproc
    ldr x16, [x17, #FUNCTION_HEAD]
    sub x16, x16, #1
    str x16, [x17, #FUNCTION_HEAD]
    tbz x16, #63, tracer_pass
    adrp x16, tracer_patched_special
    ldr x16, [x16, #:lo12:tracer_patched_special]
    br x16
    .cfi_endproc
    .size tracer_pass_some, . - tracer_pass_some

#define LAZY_BYTES 224 /* x0 to x9, q0 to q7, x16, x17 */
.macro LAZY_ARGUMENTS move
    \move x6, x7, [sp, #16]
    \move x4, x5, [sp, #32]
    \move x2, x3, [sp, #48]
    \move x0, x1, [sp, #64]
    \move q0, q1, [sp, #80]
    \move q2, q3, [sp, #112]
    \move q4, q5, [sp, #144]
    \move q6, q7, [sp, #176]
.endm
// A stub of a module's lazy slots comes here in the place of _dl_runtime_resolve: x17 = hook, x16 = the third word of
// DT_PLTGOT, after the loader's own pointer to the module and before the slots; on the stack the address of the slot, and the
// caller's return address (AAELF64, "Dynamic linking"; glibc sysdeps/aarch64/dl-trampoline.S). On the program's stack and with its
// signals, as there: what the loader calls is not for ours. Then as if the slot had held the stub of the target already.
    .globl tracer_lazy
    .hidden tracer_lazy
    .type tracer_lazy, %function
tracer_lazy:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset x30, -8
    stp x8, x9, [sp, #-LAZY_BYTES]!
    .cfi_adjust_cfa_offset LAZY_BYTES
    CONFINED w9, x9
    cbnz w9, .Llazy_confined
    LAZY_ARGUMENTS stp
    stp x16, x17, [sp, #208]
    ldr x0, [x16, #-8]
    ldr x1, [sp, #LAZY_BYTES]
    sub x1, x1, x16                     // 8 for the first slot
    add x1, x1, x1, lsl #1
    sub x1, x1, #24                     // as far is its relocation from the first one
    ldr x9, [x17, #FUNCTION_HEAD]
    ldr x16, [x17, #FUNCTION_INSTANT]
    add x1, x1, x9
    blr x16
    mov x10, x0                         // the target
    ldp x16, x17, [sp, #208]
    ldr x11, [sp, #LAZY_BYTES]
    sub x11, x11, x16
    lsr x11, x11, #3
    sub x11, x11, #1                    // the number of the slot
    LAZY_ARGUMENTS ldp
    ldr x30, [sp, #LAZY_BYTES + 8]
    ldp x8, x9, [sp], #LAZY_BYTES
    .cfi_restore x30
    .cfi_adjust_cfa_offset -LAZY_BYTES
    add sp, sp, #16
    .cfi_adjust_cfa_offset -16
    SPILL
    mov x9, x17
    mov x17, x10
    mov x10, x11
    SLOW_CALL tracer_slow_bind          // keeps x17
    cmp x9, #0                          // no stack for it
    csel x17, x17, x9, eq
    RELOAD
    br x17
.Llazy_confined:
    .cfi_def_cfa_offset LAZY_BYTES + 16
    .cfi_offset x30, -8
    ldp x8, x9, [sp], #LAZY_BYTES
    .cfi_adjust_cfa_offset -LAZY_BYTES
    ldr x17, [x17, #FUNCTION_TARGET]
    br x17
    .cfi_endproc
    .size tracer_lazy, . - tracer_lazy

// A child that runs in its parent's memory: nothing is done. x16 and x17 are spent.
.macro RETURN_IN_CHILD done
    THREAD_STATE x16, x17
    ldr x16, [x16, #THREAD_TOP]
    ldr w16, [x16, #FRAME_LAST]
    cmp w16, #LAST_CHILD
    b.eq \done
.endm

// Stands in for the loader's debugger hook, _dl_debug_state: called with the loader's lock held.
    .globl tracer_loader_event
    .hidden tracer_loader_event
    .type tracer_loader_event, %function
tracer_loader_event:
    .cfi_startproc
    CONFINED w16, x16
    cbz w16, .Lloader_event_heard
.Lloader_event_over:
    ret
.Lloader_event_heard:
    RETURN_IN_CHILD .Lloader_event_over
    SPILL
    SLOW_CALL tracer_slow_loader_event
    RELOAD
    ret
    .cfi_endproc
    .size tracer_loader_event, . - tracer_loader_event

// The rest of a C function, on the agent's stack as a call through a stub would be: function(thread, first argument, stack pointer,
// \second).
.macro SLOW_FUNCTION function, second
    CONFINED w16, x16
    cbz w16, .Lheard\@
    ret
.Lheard\@:
    SPILL
    THREAD_STATE x9, x10
    ldr x9, [x9, #THREAD_TOP]
    ldr w9, [x9, #FRAME_LAST]
    cmp w9, #LAST_CHILD
    b.eq .Lin_child\@
    mov x9, x0
    mov x10, \second
    SLOW_CALL \function
.Lin_child\@:
    RELOAD
    ret
.endm
// void tracer_mark(name), tracer_begin(name), tracer_end(name), tracer_snapshot(name): like a call through a stub, on the agent's stack.
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
SPAN tracer_snapshot, SPAN_SNAPSHOT
    .hidden tracer_begin_thread
SPAN tracer_begin_thread, SPAN_NONE
    .type span, %function
span:
    .cfi_startproc
    SLOW_FUNCTION tracer_slow_span, x17
    .cfi_endproc
    .size span, . - span

// void __cyg_profile_func_enter(function, site) and …_exit: calls like any other, in which all registers but those that every function
// preserves are free. The thread's state is at the loader's own word for the distance. x0 = function, x1 = site, x16 = thread, x9 = top,
// x5 = the stack pointer that its frame is known by, x4 = that of the top. x12 keeps the return address.
.macro INSTRUMENTED_THREAD
    mov x12, x30
    .cfi_register x30, x12
    THREAD_STATE x16, x4
    ldr x9, [x16, #THREAD_TOP]
    ldr x4, [x9, #FRAME_STACK_POINTER]
    sub x5, sp, #(RETURN_SLOT + 8 - INSTRUMENTED_ABOVE)
.endm
// The hook of the function, in x17. Elsewhere when there is none.
.macro FIND_INSTRUMENTED none
    adrp x2, tracer_instrumented
    ldr x2, [x2, #:lo12:tracer_instrumented]
    mov w3, #LABEL_HASH & 0xffff
    movk w3, #LABEL_HASH >> 16, lsl #16
    mul w3, w0, w3
    ldur w6, [x2, #-8]
    and w3, w6, w3, lsr #12             // functions lie at multiples of 16
    add x2, x2, x3
.Lprobe_function\@:
    ldr x17, [x2], #8
    ldr x3, [x17, #FUNCTION_TARGET]
    cmp x3, x0
    b.eq .Lfound_function\@
    cbnz x3, .Lprobe_function\@
    b \none
.Lfound_function\@:
.endm
// Returns when recording is off, and this is no child that fork has just made, in which the page is empty.
.macro INSTRUMENTED_OFF
    PROCESS w2, x3, PROCESS_ENABLED
    ldr w4, [x3, #PROCESS_DROPPING]
    orr w2, w2, w4
    cbnz w2, .Lon\@
    ldr w2, [x3, #PROCESS_ALIVE]
    cbz w2, .Lon\@
    mov x2, x16                         // the thread
    HAS_CONTROL w3, x3, w4
    mov x16, x2
    b.eq .Loff\@
    CONFINED w2, x2
    cbz w2, .Lon\@
.Loff\@:
    ret x12
.Lon\@:
.endm
.macro INSTRUMENTED_SLOW function
    mov x30, x12
    .cfi_restore x30
    SLOW_FUNCTION \function, x1
.endm
// The top is a frame that the function's own instrumentation has opened. Elsewhere when it is not.
.macro IS_INSTRUMENTED not
    ldr x10, [x9, #FRAME_LABEL]
    adrp x11, tracer_instrumented_label
    ldr x11, [x11, #:lo12:tracer_instrumented_label]
    cmp x10, x11
    b.ne \not
    ldr x3, [x9, #FRAME_FUNCTION]
    ldr x3, [x3, #FUNCTION_TARGET]
    cmp x3, x0
    b.ne \not
.endm
    .globl tracer_instrumented_enter, tracer_instrumented_exit
    .hidden tracer_instrumented_enter, tracer_instrumented_exit
    .type tracer_instrumented_enter, %function
tracer_instrumented_enter:
    .cfi_startproc
    INSTRUMENTED_THREAD
    FIND_INSTRUMENTED .Linstrumented_slow_enter
    ldr x3, [x17, #FUNCTION_INSTANT]
    cbnz x3, .Linstrumented_passed
    cmp x5, x4
    b.hi .Linstrumented_slow_enter
    b.ne .Linstrumented_below
    ldr x3, [x9, #FRAME_FUNCTION]       // at the same stack pointer: it was inlined there, or the top is dead
    cmp x3, x17
    b.eq .Linstrumented_slow_enter
.Linstrumented_below:
    sub x3, x5, #INSTRUMENTED_ABOVE
    ldr x4, [x16, #THREAD_LOW]
    cmp x3, x4
    b.lo .Linstrumented_slow_enter
    adrp x3, tracer_label_area
    add x3, x3, #:lo12:tracer_label_area
    ldp x3, x4, [x3]                    // low, span
    sub x3, x1, x3
    cmp x3, x4
    b.lo .Linstrumented_hooked
.Linstrumented_new:
    ldr x9, [x9, #FRAME_ABOVE]
    cbz x9, .Linstrumented_slow_enter
    str x9, [x16, #THREAD_TOP]
    adrp x10, tracer_instrumented_label
    ldr x10, [x10, #:lo12:tracer_instrumented_label]
    stp x10, x5, [x9, #FRAME_LABEL]
    mrs x11, cntvct_el0
    stp x11, x17, [x9, #FRAME_ENTER]
    ldr x16, [x16, #THREAD_POSITION]
    ENTER_WORD 0, .Linstrumented_undo
.Linstrumented_passed:
    ret x12
.Linstrumented_hooked:
    // It returns to a label: its call is recorded already. If the top is that call's, but of another function, this one is inlined there.
    ldr x3, [x9, #FRAME_LABEL]
    cmp x3, x1
    b.ne .Linstrumented_slow_enter
    ldr x3, [x9, #FRAME_FUNCTION]
    ldrb w4, [x3, #FUNCTION_KIND]
    cmp w4, #KIND_PATCHED               // its target is relocated code
    b.eq .Linstrumented_slow_enter
    ldr x3, [x3, #FUNCTION_TARGET]
    cmp x3, x0
    b.ne .Linstrumented_new
    ret x12
.Linstrumented_undo:
    THREAD_STATE x16, x3
    ldr x11, [x9, #FRAME_BELOW]
    str xzr, [x9, #FRAME_EVENT]
    str xzr, [x9, #FRAME_STACK_POINTER]
    str x11, [x16, #THREAD_TOP]
.Linstrumented_slow_enter:
    INSTRUMENTED_OFF
    INSTRUMENTED_SLOW tracer_slow_instrumented_enter
    .cfi_endproc
    .size tracer_instrumented_enter, . - tracer_instrumented_enter

    .type tracer_instrumented_exit, %function
tracer_instrumented_exit:
    .cfi_startproc
    INSTRUMENTED_THREAD
    adrp x2, tracer_instrumented
    ldr x2, [x2, #:lo12:tracer_instrumented]
    ldur w2, [x2, #-8]
    cbz w2, .Linstrumented_closed
    cmp x4, x5
    b.ne .Linstrumented_other
    IS_INSTRUMENTED .Linstrumented_slow_exit
.Linstrumented_end:
    mrs x10, cntvct_el0
    ldr x11, [x9, #FRAME_ENTER]
    sub x10, x10, x11
    ldr x11, [x9, #FRAME_EVENT]
    add x30, x11, #FRAME_CLOSING
    str x30, [x9, #FRAME_EVENT]
    ldr x17, [x16, #THREAD_POSITION]
    ldr x30, [x17, #POSITION_CURSOR]
    cmp x30, x11                        // its enter is the last event: the call becomes one word
    b.ne .Linstrumented_two_words
    cmp x10, #(1 << (EVENT_DURATION_BITS - 12)), lsl #12
    b.hs .Linstrumented_two_words
    COMPLETE_CALL x11, x10, x30
.Linstrumented_ended:
    ldr x11, [x9, #FRAME_BELOW]
    str xzr, [x9, #FRAME_EVENT]
    str xzr, [x9, #FRAME_STACK_POINTER]
    str x11, [x16, #THREAD_TOP]         // from here on a handler may reuse the record
    ret x12
.Linstrumented_two_words:
    WRITE_EXIT 0, .Linstrumented_ended, .Linstrumented_lost
.Linstrumented_lost:
    ldr x11, [x9, #FRAME_EVENT]
    mov x17, #FRAME_ELSEWHERE
    ands x11, x11, #~FRAME_CLOSING      // its end is Swift's to write
    csel x11, x17, x11, eq
    str x11, [x9, #FRAME_EVENT]
    b .Linstrumented_slow_exit
.Linstrumented_other:
    b.lo .Linstrumented_tail
    // Its call is recorded by another frame, or not at all.
    ldr x3, [x9, #FRAME_LABEL]
    cmp x3, x1
    b.ne .Linstrumented_suppressed
    ldr x3, [x9, #FRAME_FUNCTION]
    ldr x3, [x3, #FUNCTION_TARGET]
    cmp x3, x0
    b.ne .Linstrumented_suppressed
    ret x12
.Linstrumented_tail:
    // The last thing that it does, a branch: then it is to return where we are, and of all that is below there its frame is the outermost.
    cmp x30, x1
    b.ne .Linstrumented_suppressed
    IS_INSTRUMENTED .Linstrumented_suppressed
    ldr x3, [x9, #FRAME_BELOW]
    ldr x3, [x3, #FRAME_STACK_POINTER]
    cmp x5, x3
    b.lo .Linstrumented_end
.Linstrumented_suppressed:
    FIND_INSTRUMENTED .Linstrumented_slow_exit
    ldr x3, [x17, #FUNCTION_INSTANT]
    cbz x3, .Linstrumented_slow_exit
    ret x12
.Linstrumented_closed:
    // Nothing is recorded, perhaps for good: but what was begun before still ends.
    tbnz x4, #INSTRUMENTED_ABOVE_BIT, .Linstrumented_slow_exit
    INSTRUMENTED_OFF
.Linstrumented_slow_exit:
    INSTRUMENTED_SLOW tracer_slow_instrumented_exit
    .cfi_endproc
    .size tracer_instrumented_exit, . - tracer_instrumented_exit

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

// long tracer_run_apart(body, argument, flags, running, stack)
    .globl tracer_run_apart
    .hidden tracer_run_apart
    .type tracer_run_apart, %function
tracer_run_apart:
    .cfi_startproc
    mov x5, x0                          // the kernel leaves all but x0 as they are
    mov x6, x1
    mov x0, x2
    mov x1, x4
    mov x2, x3
    mov x4, x3
    mov x3, xzr
    mov x8, #220                        // clone
    svc #0
    cbnz x0, .Lrun_apart_parent
    .cfi_remember_state
    .cfi_undefined x30
    mov x29, xzr
    mov x30, xzr
    mov x0, x6
    blr x5
    mov x0, xzr
    mov x8, #93                         // exit, of this task alone
    svc #0
    brk #1
    .cfi_restore_state
.Lrun_apart_parent:
    ret
    .cfi_endproc
    .size tracer_run_apart, . - tracer_run_apart

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
    b.lo .Lmove_down
memcpy:
    mov x3, x0
.Lcopy_16:
    subs x2, x2, #16
    b.lo .Lcopy_rest
    ldp x4, x5, [x1], #16
    stp x4, x5, [x3], #16
    b .Lcopy_16
.Lcopy_rest:
    tbz x2, #3, .Lcopy_bytes            // the bytes left, plus a multiple of 16
    ldr x4, [x1], #8
    str x4, [x3], #8
.Lcopy_bytes:
    ands x2, x2, #7
    b.eq .Lcopied
.Lcopy_byte:
    ldrb w4, [x1], #1
    strb w4, [x3], #1
    subs x2, x2, #1
    b.ne .Lcopy_byte
.Lcopied:
    ret
.Lmove_down:
    cbz x2, .Lcopied
.Lmove_down_byte:
    sub x2, x2, #1
    ldrb w4, [x1, x2]
    strb w4, [x0, x2]
    cbnz x2, .Lmove_down_byte
    ret
memset:
    mov x3, x0
    and x1, x1, #255
    mov x4, #0x0101010101010101
    mul x1, x1, x4
.Lset_16:
    subs x2, x2, #16
    b.lo .Lset_rest
    stp x1, x1, [x3], #16
    b .Lset_16
.Lset_rest:
    ands x2, x2, #15
    b.eq .Lcopied
.Lset_byte:
    strb w1, [x3], #1
    subs x2, x2, #1
    b.ne .Lset_byte
    ret
strlen:
    mov x1, x0
    mov x0, #0
.Lstrlen_next:
    ldrb w2, [x1, x0]
    cbz w2, .Lcopied
    add x0, x0, #1
    b .Lstrlen_next
memcmp:
    mov x3, x0
    mov x0, #0
.Lcompare_next:
    cbz x2, .Lcopied
    ldrb w4, [x3], #1
    ldrb w5, [x1], #1
    subs w0, w4, w5
    b.ne .Lcopied
    sub x2, x2, #1
    b .Lcompare_next

#include "labels.h"
#include "../reserved.h"
#endif
    .section .note.GNU-stack, "", %progbits
