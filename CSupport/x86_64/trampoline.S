// The x86_64 trampolines. docs/internals/trampoline.md explains them; this is the summary.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's hook in r11 and jumps
// here. Each address that calls return to has a *label*: 16 bytes of code that call the function and, on return, come back
// here. The trampoline jumps to the label of its caller's return address. So the word in the return slot says where to
// return to, whatever happens to stacks, threads and records: return addresses are neither kept on the side nor lost.
//
//      on entry                  spilled                       while the function runs
//      s+8  stack arguments      s      return address, then   S    stack arguments
//      s    return address              the label              S-8  in the label: its `call` has pushed it
//                                s-24   rcx, rdx, rax
//                                       = the frame's stack pointer
//
// S = s + 8 is the CFA of the caller's call and of the label's own: its frame has size zero.
//
// Registers. At a PLT call only r11 and the flags are free (System V psABI 3.2.1; Swift's preserve_most runtime calls
// demand the same on return). Three more are pushed, not spilled into the red zone: whoever looks for pointers in the
// registers and on the stack of a thread finds all that the program has. No callee-saved register is touched while a
// signal can be delivered, and no vector register on the fast path.
//
// Signals. A handler may run traced code between any two instructions. Hence: a record becomes the top *before* it is
// filled, and is empty until then (its event is 0, which says so to the slow path); it is left only after everything was
// read from it; a word of the chunk is reserved with one xadd (no lock: the other party is a handler on this very thread),
// after the clock was read and before the base is looked at, so that a base which a handler sets in between is noticed.
#if defined(__x86_64__)
#include "../layout.h"

#define SYS_mmap 9
#define SYS_rt_sigaction 13
#define SYS_clone 56 /* fork 57, vfork 58 */
#define SYS_prctl 157
#define SYS_exit_group 231
#define SYS_seccomp 317
#define SYS_clone3 435
#define SYS_futex 202
// The numbers of SystemCall.changesIdentity, and sched_setattr.
#define IDENTITY_NUMBERS 105, 106, 113, 114, 116, 117, 119, 122, 123, 126, 155, 161, 272, 308, 446, 314
#define SYS_rt_sigprocmask 14
#define SYS_clock_gettime 228
#define SYS_gettid 186
#define VALGRIND_STACK_REGISTER 0x1501
#define SYS_rt_sigreturn 15
#define SIG_BLOCK 0
#define SIG_SETMASK 2
#define PAGE_SHIFT 12

#include "../patch_sites.h"

#define IN_TLS(field) %fs:(TLS_PLACEHOLDER + field)

.macro PUSH register
    pushq \register
    .cfi_adjust_cfa_offset 8
.endm
.macro POP register
    popq \register
    .cfi_adjust_cfa_offset -8
.endm

// Time in rax; rdx is clobbered, nothing else. Where the cycle counter is not usable the agent makes a call of
// tracer_monotonic of these instructions before the first call.
.macro READ_CLOCK
.Lclock\@:
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    .if . - .Lclock\@ != CLOCK_BYTES
    .error "Trampolines.patchClock writes over CLOCK_BYTES"
    .endif
    .pushsection .clock_sites
    .long .Lclock\@ - .
    .popsection
.endm

// Down to the frame's stack pointer: the three registers that the trampolines work with.
.macro SPILL
    PUSH %rax                           // al counts the vector registers of a variadic call
    PUSH %rdx
    PUSH %rcx
.endm
.macro RELOAD
    POP %rcx
    POP %rdx
    POP %rax
.endm

// patched: the call came through the function's own first bytes, and not through a slot. Then r11 is the program's like any other
// register, and it is spilled too, below the word that the frame is known by: that one is the same for both, since a
// function that was called in one way may make a tail call in the other.
#define BELOW(patched) (8 * (patched))
#define SLOT(patched) (RETURN_SLOT + BELOW(patched))(%rsp)

// A stub of a patched function has pushed r11.
.macro SPILL_ENTER patched
    .if \patched
    .cfi_adjust_cfa_offset 8
    PUSH %rdx
    PUSH %rcx
    movq 16(%rsp), %rdx
    movq %rax, 16(%rsp)
    PUSH %rdx
    .else
    SPILL
    .endif
.endm
.macro RELOAD_ALL patched
    .if \patched
    POP %r11
    .endif
    RELOAD
.endm
// For a patched function: leaves the target in the word below the return slot, with rsp at that word. Signal handlers' frames spare
// only the 128 bytes below the stack pointer.
.macro RELOAD_WITH_TARGET
    movq FUNCTION_TARGET(%r11), %rdx
    POP %r11
    POP %rcx
    movq 8(%rsp), %rax
    movq %rdx, 8(%rsp)
    POP %rdx
.endm
// Ends in a jump to the function as if nothing had been there.
.macro PASS patched
    .if \patched
    RELOAD_WITH_TARGET
    leaq 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    jmpq *-8(%rsp)
    .else
    RELOAD
    jmpq *FUNCTION_TARGET(%r11)
    .endif
.endm
// The frame's stack pointer, where rsp is not.
.macro STACK_POINTER to
    leaq BELOW(1)(%rsp), \to
.endm
// Into the record in rcx. Here and below rsp is the frame's stack pointer; `scratch` is spent where it is not.
.macro STORE_STACK_POINTER patched, scratch
    .if \patched
    STACK_POINTER \scratch
    movq \scratch, FRAME_STACK_POINTER(%rcx)
    .else
    movq %rsp, FRAME_STACK_POINTER(%rcx)
    .endif
.endm
.macro COMPARE_STACK_POINTER patched, with, scratch
    .if \patched
    STACK_POINTER \scratch
    cmpq \with, \scratch
    .else
    cmpq \with, %rsp
    .endif
.endm

// Runs a Swift function on the agent's stack with all signals blocked: function(thread, rcx, stack pointer, rax). Out: rcx = result.
// Below what is spilled it finds a word, as where r11 is spilled too.
.macro SLOW_CALL function, patched=0
    leaq \function(%rip), %rdx
    .if \patched
    call slow_call
    .else
    PUSH %r11
    call slow_call
    leaq 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    .endif
.endm

// Runs values_enter or values_exit below what is spilled, as SLOW_CALL does. ZF: Swift must do it. rax is spent.
.macro VALUES_CALL function, patched
    .if \patched
    call \function
    .else
    PUSH %r11
    call \function
    leaq 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    .endif
.endm

#define LABEL_STATE(patched, field) tracer_label_state + LABELS_BYTES * (patched) + field(%rip)

// The label of the return address in rax, the address itself in rdx. Elsewhere when it has none yet. The table is reached by
// one word, so that it can be exchanged for a larger one; its mask stands before it.
.macro FIND_LABEL patched, none
    movq LABEL_STATE(\patched, LABELS_TABLE), %rdx
    movl SLOT(\patched), %eax
    imull $LABEL_HASH, %eax, %eax
    andl -8(%rdx), %eax
    movq (%rdx, %rax), %rax
    movq SLOT(\patched), %rdx
    cmpq %rdx, LABEL_RETURN(%rax)
    jne \none
.endm

// Spilled, with `pushed` bytes pushed below: said again where the code above does not run on.
.macro CFI_SPILLED patched=0, pushed=0
    .cfi_def_cfa_offset RETURN_SLOT + 8 + BELOW(\patched) + \pushed
.endm
// Return address: what LABEL_RETURN after the label in the return slot says. Of a word between the label and its end.
// DW_CFA_val_expression rip: lit8, minus, deref, const1s -16, and, plus_uconst LABEL_RETURN, deref
.macro CFI_RETURN_OF_LABEL
    .cfi_escape 0x16, 16, 11, 0x38, 0x1c, 0x06, 0x09, 0xf0, 0x1a, 0x23, 0x80, 0x80, 0x40, 0x06
.endm
.macro CFI_RETURN_ON_STACK
    .cfi_offset 16, -8
.endm

// The enter word of the record in rcx. rax = time, r11 = position; out: r11 = hook. The instruction that says how much is reserved
// is five bytes long: space for a jump. sited, objected: with the words that say where the call is made from, and its object. filtered:
// the record says how many bytes they are, since they may be taken back.
.macro ENTER_WORD slow, sited=0, objected=0, filtered=0
    movl $(8 + 8 * \sited + 8 * \objected), %edx
    xaddq %rdx, POSITION_CURSOR(%r11)
    cmpq POSITION_LIMIT(%r11), %rdx
    jae \slow
    subq POSITION_BASE(%r11), %rax
    cmpq $(1 << EVENT_START_BITS), %rax
    jae \slow

    .if \sited
    movq FRAME_LABEL(%rcx), %r11
    movq LABEL_RETURN(%r11), %r11
    SITE_OF %r11
    movq %r11, (%rdx)                   // alone it says nothing: the next word is empty
    .endif
    .if \objected
    movq FRAME_FUNCTION(%rcx), %r11
    OBJECT_OF %r11
    movq %r11, (8 * \sited)(%rdx)      // likewise
    .endif
    shlq $EVENT_TIME_SHIFT, %rax
    movq FRAME_FUNCTION(%rcx), %r11
    orq FUNCTION_HEAD(%r11), %rax
    movq %rax, (8 * \sited + 8 * \objected)(%rdx)
    addq $(8 + 8 * \sited + 8 * \objected), %rdx
    .if \filtered
    movl $(8 + 8 * \sited + 8 * \objected), FRAME_WORDS(%rcx)
    .endif
    movq %rdx, FRAME_EVENT(%rcx)
.endm
// A hook becomes the word that says the call's object.
.macro OBJECT_OF function
    cmpb $2, FUNCTION_ARGUMENT(\function)
    movq %rdi, \function
    cmoveq %rsi, \function
    shlq $CONTROL_PAYLOAD_SHIFT, \function
    addq $(CONTROL_ARGUMENT << CONTROL_KIND_SHIFT), \function
.endm
// The function in r11 has calls with an object, and this is one: of system calls by number, futex. No patched function has them.
.macro IF_OBJECT patched, then
    cmpb $0, FUNCTION_ARGUMENT(%r11)
    .if \patched
    jne \then
    .else
    je .Lno_object\@
    cmpb $KIND_NUMBER, FUNCTION_KIND(%r11)
    jne \then
    cmpl $SYS_futex, %edi
    je \then
.Lno_object\@:
    .endif
.endm
// A return address becomes the word that says it.
.macro SITE_OF address
    shlq $CONTROL_PAYLOAD_SHIFT, \address
    addq $(CONTROL_SITE << CONTROL_KIND_SHIFT), \address
.endm

// The enter event of the record in rcx, which is the top and otherwise filled. The clock first, then a word, then its time.
.macro WRITE_ENTER filtered, slow, sited, objected=0
    READ_CLOCK
    movq %rax, FRAME_ENTER(%rcx)
    TLS movq IN_TLS(THREAD_POSITION), %r11
    .ifnb \sited
    SITED \sited
    .endif
    ENTER_WORD \slow, 0, \objected, \filtered
.endm

// The enter word before `slot` becomes a complete call by one addition. duration: a register, which is spent.
.macro COMPLETE_CALL slot, duration
    shlq $EVENT_DURATION_SHIFT, \duration
    orq $(EVENT_COMPLETE - EVENT_ENTER), \duration
    addq \duration, -8(\slot)
.endm
// time: ticks since the base; then the exit word of the frame in rcx.
.macro EXIT_WORD time, scratch
    shlq $EVENT_TIME_SHIFT, \time
    movq FRAME_FUNCTION(%rcx), \scratch
    orq FUNCTION_HEAD(\scratch), \time
    xorq $(EVENT_ENTER ^ EVENT_EXIT), \time
.endm

// Writes the end of the frame in rcx, which is the top. rax = now. `exit`: it is not one word. `short`: the filter does not keep it.
.macro WRITE_END filtered, exit, short
    subq FRAME_ENTER(%rcx), %rax
    movq FRAME_EVENT(%rcx), %rdx
    leaq FRAME_CLOSING(%rdx), %r11
    movq %r11, FRAME_EVENT(%rcx)
    TLS movq IN_TLS(THREAD_POSITION), %r11
    .if \filtered
    cmpq POSITION_MINIMUM(%r11), %rax
    jb \short
    .endif
    cmpq %rdx, POSITION_CURSOR(%r11)    // its enter is the last event: the call becomes one word
    jne \exit
    cmpq $(1 << EVENT_DURATION_BITS), %rax
    jae \exit
    COMPLETE_CALL %rdx, %rax
.endm
// Takes back the enter of a call that the filter does not keep: its words are cleared, since one that is reserved and not written must be 0;
// and given up if they are the last ones, in one step, since a handler may have added others. rdx = event, rax = duration, r11 = position. `exit`: the enter is in an earlier chunk.
.macro TAKE_BACK exit, done
    cmpq $FRAME_UNWRITTEN, %rdx
    jbe \exit
    movl FRAME_WORDS(%rcx), %eax
    movq $0, -8(%rdx)
    cmpl $8, %eax
    je .Lcleared\@
    movq $0, -16(%rdx)
    cmpl $16, %eax
    je .Lcleared\@
    movq $0, -24(%rdx)
.Lcleared\@:
    negq %rax
    addq %rdx, %rax
    xchgq %rax, %rdx
    cmpxchgq %rdx, POSITION_CURSOR(%r11)
    movq POSITION_CHUNK(%r11), %rdx
    incq CHUNK_FILTERED_TIME(%rdx)
    jmp \done
.endm
// Not one word: an exit event. rdx = event, rax = duration, r11 = position. `slow`: rax = duration again.
.macro WRITE_EXIT done, slow
    cmpq $FRAME_ELSEWHERE, %rdx
    jb \slow                            // its enter could not be written
    addq FRAME_ENTER(%rcx), %rax
    movl $8, %edx
    xaddq %rdx, POSITION_CURSOR(%r11)
    cmpq POSITION_LIMIT(%r11), %rdx
    jae .Lexit_misfit\@
    subq POSITION_BASE(%r11), %rax
    movq %rax, %r11
    shrq $EVENT_TIME_BITS, %r11
    jnz .Lexit_late\@
    EXIT_WORD %rax, %r11
    movq %rax, (%rdx)
    jmp \done
.Lexit_late\@:
    TLS movq IN_TLS(THREAD_POSITION), %r11
    addq POSITION_BASE(%r11), %rax
.Lexit_misfit\@:
    subq FRAME_ENTER(%rcx), %rax
    jmp \slow
.endm
// The record in rcx is given up: everything was read from it. Without a stack pointer, as it is now, it has no word reserved (isWritePending).
.macro GIVE_UP
    movq FRAME_BELOW(%rcx), %rdx
    movq $0, FRAME_EVENT(%rcx)
    movq $0, FRAME_STACK_POINTER(%rcx)
    TLS movq %rdx, IN_TLS(THREAD_TOP)   // from here on a handler may reuse the record
.endm

// The word of an entry-only trampoline is written, or is not going to be. rcx = position.
.macro INSTANT_DONE
    decq POSITION_PENDING(%rcx)
    jnz .Lnested\@
    movq $0, POSITION_PENDING_STACK(%rcx)
.Lnested\@:
.endm
// An entry of no length. rax = time, rcx = position, r11 = hook. A return address that is a label is no site.
.macro INSTANT_WORD patched, refused, sited=0
    movl $(8 + 8 * \sited), %edx
    xaddq %rdx, POSITION_CURSOR(%rcx)
    cmpq POSITION_LIMIT(%rcx), %rdx
    jae \refused
    subq POSITION_BASE(%rcx), %rax
    cmpq $(1 << EVENT_START_BITS), %rax
    jae \refused
    shlq $EVENT_TIME_SHIFT, %rax
    .if \patched
    orq FUNCTION_HEAD(%r11), %rax
    addq $(EVENT_COMPLETE - EVENT_ENTER), %rax
    .else
    orq FUNCTION_INSTANT(%r11), %rax
    .endif
    movq %rax, (8 * \sited)(%rdx)
    .if \sited
    movq SLOT(\patched), %rax
    PUSH %rcx
    movq %rax, %rcx
    subq tracer_label_area+AREA_LOW(%rip), %rcx
    cmpq tracer_label_area+AREA_SPAN(%rip), %rcx
    POP %rcx
    jb .Lno_site\@
    SITE_OF %rax
    movq %rax, (%rdx)
.Lno_site\@:
    .endif
.endm

// The list of frames on other stacks at a stack pointer: its address in \list. \stack_pointer is kept.
.macro FIND_LIST context, stack_pointer, list, list_low
    movq \stack_pointer, \list
    shrq $4, \list
    imull $LIST_HASH, \list_low, \list_low // its upper bits, to which all bits of the stack pointer have come
    shrl $(32 - MOST_LIST_BITS), \list_low
    andl CONTEXT_LIST_MASK(\context), \list_low
    shlq $3, \list
    addq CONTEXT_LISTS(\context), \list
.endm

// The record that a call takes, in rcx, and the label of its return address, in rax. Elsewhere when it is not as simple as that.
.macro FIND_RECORD variant, patched
    TLS movq IN_TLS(THREAD_TOP), %rcx
    COMPARE_STACK_POINTER \patched, FRAME_STACK_POINTER(%rcx), %rax // stacks grow down: a nested frame lies below its caller's
    jae .Lnot_below\variant
    .if \patched
    TLS cmpq IN_TLS(THREAD_LOW), %rax
    .else
    TLS cmpq IN_TLS(THREAD_LOW), %rsp
    .endif
    jb .Lnot_below\variant
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz .Lno_record\variant
    FIND_LABEL \patched, .Lno_label\variant
.endm
// Fills in what the return and unwinders need.
.macro FILL_RECORD patched
    STORE_STACK_POINTER \patched, %rdx
    movq %r11, FRAME_FUNCTION(%rcx)
    movq %rax, FRAME_LABEL(%rcx)
    movq %rax, SLOT(\patched)
    CFI_RETURN_OF_LABEL
.endm

// filtered: TRACER_MINMS is in force; then the enter of a call that was short is taken back when it ends.
.macro TRAMPOLINE variant, filtered, patched
    .pushsection .data.rel.ro
    .quad tracer_enter\variant, tracer_special\variant, tracer_returned\variant, tracer_returned_checked\variant, .Lend\variant
    .if \patched && !\filtered
    .quad tracer_pass_checked\variant, tracer_pass_counted\variant
    .else
    .quad 0, 0
    .endif
    .popsection
    .section .text.trampolines, "ax"
    .p2align 5 // both fit into one page
    .type tracer_enter\variant, @function
tracer_enter\variant:
    .cfi_startproc
    SPILL_ENTER \patched
.Lspilled\variant:
    FIND_RECORD \variant, \patched
.Lfound\variant:
    TLS movq %rcx, IN_TLS(THREAD_TOP)
.Ltaken\variant:
    FILL_RECORD \patched
    WRITE_ENTER \filtered, .Lunwritten\variant, .Lsited_enter\variant
.Lcall\variant:
    .if \patched
    RELOAD_WITH_TARGET                  // the label finds the target there
    leaq 16(%rsp), %rsp
    .cfi_adjust_cfa_offset -16
    .else
    RELOAD
    leaq 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    .endif
    jmpq *-8(%rsp)                      // the label: it calls FUNCTION_TARGET(%r11) and comes back to:
    .size tracer_enter\variant, . - tracer_enter\variant

    // r11 = label; patched: the program's r11 is in the word below the return slot. `checked`: where the clock is a system call,
    // which could be forbidden.
    .type tracer_returned_checked\variant, @function
tracer_returned_checked\variant:
    cmpl $0, tracer_confined(%rip)
    jne .Lreturn_confined\variant
    .size tracer_returned_checked\variant, . - tracer_returned_checked\variant
    .type tracer_returned\variant, @function
tracer_returned\variant:
    pushq LABEL_RETURN(%r11)
    .cfi_adjust_cfa_offset 8
    CFI_RETURN_ON_STACK
    .if \patched
    leaq -8(%rsp), %rsp                 // as from a stub
    .endif
    SPILL_ENTER \patched
.Lcompare_top\variant:
    TLS movq IN_TLS(THREAD_TOP), %rcx
    COMPARE_STACK_POINTER \patched, FRAME_STACK_POINTER(%rcx), %rax
    jne .Lother_top\variant
    cmpq %r11, FRAME_LABEL(%rcx)
    jne .Lother_top\variant
    READ_CLOCK
    WRITE_END \filtered, .Ltwo_words\variant, .Lshort\variant
.Lended\variant:
    GIVE_UP
.Lleave\variant:
    RELOAD_ALL \patched
    retq
    .cfi_def_cfa_offset 0
    CFI_RETURN_OF_LABEL
.Lreturn_confined\variant:
    pushq LABEL_RETURN(%r11)
    .cfi_adjust_cfa_offset 8
    CFI_RETURN_ON_STACK
    .if \patched
    movq -8(%rsp), %r11
    .endif
    retq
    CFI_SPILLED \patched

    .if \filtered
.Lshort\variant:
    TAKE_BACK .Ltwo_words\variant, .Lended\variant
    .endif
.Ltwo_words\variant:
    WRITE_EXIT .Lended\variant, .Llost_end\variant
.Llost_end\variant:
    andq $~FRAME_CLOSING, FRAME_EVENT(%rcx) // its end is Swift's to write
    jnz .Lslow_end\variant
    movq $FRAME_ELSEWHERE, FRAME_EVENT(%rcx)
.Lslow_end\variant:
    addq FRAME_ENTER(%rcx), %rax
    movq FRAME_LABEL(%rcx), %r11
    andq $-LABEL_BYTES, %r11
    jmp .Lrun_slow_exit\variant

.Lother_top\variant:
    // r11 = label, rcx = top. The top is not the frame that returns, or not it alone.
    .ifeq \filtered
    cmpl $LAST_ALTERNATE_MODE, FRAME_LAST(%rcx)
    je .Lalternate_exit\variant
    .endif
    COMPARE_STACK_POINTER \patched, FRAME_STACK_POINTER(%rcx), %rax
    jne .Lslow_exit\variant
    leaq LABEL_TAIL(%r11), %rdx
    cmpq %rdx, FRAME_LABEL(%rcx)
    .if \filtered
    jne .Lslow_exit\variant
    .else
    jne .Lresult\variant
    .endif
    // A frame that a tail call opened: it ends, and then the one below, whose function made that call.
    READ_CLOCK
    WRITE_END \filtered, .Ltail_two_words\variant, .Ltail_short\variant
.Ltail_ended\variant:
    movq FRAME_LABEL(%rcx), %r11
    andq $-LABEL_BYTES, %r11
    GIVE_UP
    jmp .Lcompare_top\variant
    .if \filtered
.Ltail_short\variant:
    TAKE_BACK .Ltail_two_words\variant, .Ltail_ended\variant
    .endif
.Ltail_two_words\variant:
    WRITE_EXIT .Ltail_ended\variant, .Llost_end\variant

    .ifeq \filtered
.Lresult\variant:
    // The top returns, and its result is recorded.
    leaq LABEL_RESULT(%r11), %rdx
    cmpq %rdx, FRAME_LABEL(%rcx)
    jne .Lslow_exit\variant
    READ_CLOCK
    VALUES_CALL values_exit, \patched
    jz .Lslow_exit\variant
    GIVE_UP
    jmp .Lleave\variant
    .endif

.Lslow_exit\variant:
    // For Swift: frames above are dead, or it lies on another stack, or the chunk is full, or somebody
    // wants to know of the return, or we are a child.
    cmpl $0, tracer_confined(%rip)      // neither a system call may be made nor the clock be read
    jne .Lleave\variant
    READ_CLOCK
.Lrun_slow_exit\variant:
    movq %r11, %rcx
    SLOW_CALL tracer_slow_exit, \patched
    jmp .Lleave\variant

    .ifeq \filtered
    CFI_SPILLED \patched
.Lalternate_exit\variant:
    // Frames on other stacks are open, so the order of ends says nothing: RESUME and an exit, if not one word.
    PUSH %rsi
    PUSH %rdi
    READ_CLOCK
    TLS movq IN_TLS(THREAD_CONTEXT), %rdx
    cmpl $0, CONTEXT_CHANGING(%rdx)
    jne .Lalternate_slow_exit\variant
    btsl $0, CONTEXT_BUSY(%rdx)
    jc .Lalternate_slow_exit\variant
    TLS movq IN_TLS(THREAD_TOP), %rcx
    cmpl $LAST_ALTERNATE_MODE, FRAME_LAST(%rcx)
    jne .Lalternate_unlock\variant
    leaq (16 + BELOW(\patched))(%rsp), %rdi
    xorl %esi, %esi
    movq CONTEXT_TOP(%rdx), %rcx
    cmpq %rdi, FRAME_STACK_POINTER(%rcx)
    jne .Lalternate_search\variant
    cmpq %r11, FRAME_LABEL(%rcx)
    je .Lalternate_found\variant
.Lalternate_search\variant:
    FIND_LIST %rdx, %rdi, %rsi, %esi    // rsi: the word that points to the record
.Lalternate_look\variant:
    movq (%rsi), %rcx
    testq %rcx, %rcx
    jz .Lalternate_unlock\variant
    cmpq %rdi, FRAME_STACK_POINTER(%rcx)
    jne .Lalternate_older\variant
    cmpq %r11, FRAME_LABEL(%rcx)
    je .Lalternate_listed\variant
.Lalternate_older\variant:
    leaq FRAME_OLDER(%rcx), %rsi
    jmp .Lalternate_look\variant
.Lalternate_listed\variant:
    cmpl $USE_OPEN, FRAME_USE(%rcx)
    jne .Lalternate_unlock\variant
    cmpl $0, FRAME_SIGNAL(%rcx)
    jne .Lalternate_unlock\variant
.Lalternate_found\variant:
    movq FRAME_EVENT(%rcx), %rdi
    cmpq $FRAME_ELSEWHERE, %rdi
    je .Lalternate_close\variant
    cmpq $FRAME_UNWRITTEN, %rdi
    jbe .Lalternate_unlock\variant
.Lalternate_close\variant:
    orq $FRAME_CLOSING, FRAME_EVENT(%rcx)
    TLS movq IN_TLS(THREAD_POSITION), %rdx
    cmpq %rdi, POSITION_CURSOR(%rdx)    // its enter is the last event: one word, as on the fast path
    jne .Lalternate_two_words\variant
    movq %rax, %r11
    subq FRAME_ENTER(%rcx), %r11
    cmpq $(1 << EVENT_DURATION_BITS), %r11
    jae .Lalternate_two_words\variant
    COMPLETE_CALL %rdi, %r11
    jmp .Lalternate_ended\variant
.Lalternate_two_words\variant:
    movl $16, %r11d
    xaddq %r11, POSITION_CURSOR(%rdx)
    cmpq POSITION_LIMIT(%rdx), %r11
    jae .Lalternate_full\variant
    movq %rax, %rdi
    subq POSITION_BASE(%rdx), %rdi
    movq %rdi, %rdx
    shrq $EVENT_TIME_BITS, %rdx
    jnz .Lalternate_full\variant
    movq FRAME_ENTER(%rcx), %rdx
    shlq $CONTROL_PAYLOAD_SHIFT, %rdx
    orq $(CONTROL_RESUME << CONTROL_KIND_SHIFT), %rdx
    movq %rdx, (%r11)                   // alone it says nothing: the next word is empty
    EXIT_WORD %rdi, %rdx
    movq %rdi, 8(%r11)
.Lalternate_ended\variant:
    TLS movq IN_TLS(THREAD_CONTEXT), %rdx
    movq $0, FRAME_EVENT(%rcx)
    testq %rsi, %rsi
    jnz .Lalternate_unlink\variant
    movq $0, FRAME_STACK_POINTER(%rcx)
    movq FRAME_BELOW(%rcx), %rdi
    movq %rdi, CONTEXT_TOP(%rdx)        // from here on a handler may reuse the record
    jmp .Lalternate_left\variant
.Lalternate_unlink\variant:
    movq FRAME_OLDER(%rcx), %rdi
    movq %rdi, (%rsi)
    movl $0, FRAME_USE(%rcx)
    decq CONTEXT_ALTERNATE(%rdx)
    movq CONTEXT_READY(%rdx), %rdi
    movq %rdi, FRAME_OLDER(%rcx)
    movq %rcx, CONTEXT_READY(%rdx)
.Lalternate_left\variant:
    movl $0, CONTEXT_BUSY(%rdx)         // … and this one
    POP %rdi
    POP %rsi
    jmp .Lleave\variant
    CFI_SPILLED \patched, 16
.Lalternate_full\variant:
    andq $~FRAME_CLOSING, FRAME_EVENT(%rcx)
    movq FRAME_LABEL(%rcx), %r11
    andq $-LABEL_BYTES, %r11
    TLS movq IN_TLS(THREAD_CONTEXT), %rdx
.Lalternate_unlock\variant:
    movl $0, CONTEXT_BUSY(%rdx)
.Lalternate_slow_exit\variant:
    POP %rdi
    POP %rsi
    jmp .Lslow_exit\variant
    .endif
    .size tracer_returned\variant, . - tracer_returned\variant

    // Off the fast path of entry. r11 = hook.
    CFI_SPILLED \patched
.Lno_label\variant:
    // Its return address has no label where the table is looked at first. rdx = return address, rcx = record to take.
    PUSH %r11
    movq LABEL_STATE(\patched, LABELS_TABLE), %rax
    imull $LABEL_HASH, %edx, %r11d
    andl -8(%rax), %r11d
    addq %rax, %r11
.Lprobe\variant:
    movq (%r11), %rax
    cmpq %rdx, LABEL_RETURN(%rax)
    je .Lprobed\variant
    cmpq $LABEL_END, LABEL_RETURN(%rax)
    jbe .Lvacant\variant
    addq $8, %r11
    jmp .Lprobe\variant
.Lvacant\variant:
    je .Llabel_refused\variant          // the end of the table
    testq %rdx, %rdx
    jz .Llabel_refused\variant          // the first function of a stack, which cannot return
    movq %rdx, %rax
    subq tracer_label_area+AREA_LOW(%rip), %rax
    cmpq tracer_label_area+AREA_SPAN(%rip), %rax
    jb .Llabel_refused\variant          // a tail call of a function whose frame is not the top: for Swift
    movq LABEL_STATE(\patched, LABELS_NEXT), %rax
    cmpq LABEL_STATE(\patched, LABELS_LIMIT), %rax
    jae .Llabel_refused\variant
    movl $(LABEL_BYTES << \patched), %eax
    lock xaddq %rax, LABEL_STATE(\patched, LABELS_NEXT)
    cmpq LABEL_STATE(\patched, LABELS_LIMIT), %rax
    jae .Llabel_refused\variant
    movq %rdx, LABEL_RETURN(%rax)
    // Another thread may take the entry first, or exchange the table: then this label is found by nobody else.
    movq %rax, %rdx
    movq tracer_label_area+AREA_LOW(%rip), %rax // content of an empty entry
    lock cmpxchgq %rdx, (%r11)
    movq %rdx, %rax
.Lprobed\variant:
    .cfi_remember_state
    POP %r11
    IF_OBJECT \patched, .Lobject_found\variant
    jmp .Lfound\variant
    CFI_SPILLED \patched, 8
.Llabel_refused\variant:
    POP %r11
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je .Lspecial_slow\variant
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip) // while recording is off no label is found
    je .Lnot_recording\variant
    cmpl $0, LABEL_STATE(\patched, LABELS_FULL)
    je .Lslow_enter\variant
    cmpb $0, FUNCTION_ARGUMENT(%r11)
    je .Linstant\variant
    jmp .Lslow_enter\variant

.Lnot_below\variant:
    // Not below the innermost open frame, or the stack is marked as unowned. rcx = top.
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je .Lspecial_slow\variant           // a child that fork has just made
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je .Lnot_recording\variant
    .ifeq \filtered
    cmpl $LAST_ALTERNATE_MODE, FRAME_LAST(%rcx)
    je .Lalternate_enter\variant
    .endif
    COMPARE_STACK_POINTER \patched, FRAME_STACK_POINTER(%rcx), %rax
    jne .Lslow_enter\variant
    // Equal, and the return address is in the frame's label: a tail call of that frame's function. The label has called,
    // and is returned to once: this is a jump.
    movq FRAME_LABEL(%rcx), %rax
    andq $-LABEL_BYTES, %rax
    movq SLOT(\patched), %rdx
    andq $-LABEL_BYTES, %rdx
    cmpq %rax, %rdx
    jne .Lslow_enter\variant
    xorl %edx, %edx
    testl $LABEL_TAIL, FRAME_LABEL(%rcx)
    jz .Lnext_tail\variant
    movl FRAME_TAILS(%rcx), %edx
.Lnext_tail\variant:
    incl %edx
    cmpl $TAIL_LIMIT, %edx
    jae .Lslow_enter\variant
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz .Lno_record\variant
    TLS movq %rcx, IN_TLS(THREAD_TOP)
    movl %edx, FRAME_TAILS(%rcx)
    STORE_STACK_POINTER \patched, %rdx
    movq %r11, FRAME_FUNCTION(%rcx)
    addq $LABEL_TAIL, %rax
    movq %rax, FRAME_LABEL(%rcx)
    IF_OBJECT \patched, .Lobject_tail\variant
    WRITE_ENTER \filtered, .Lunwritten_tail\variant
    jmp .Lpass\variant
.Lobject_tail\variant:
    .ifeq \filtered
    cmpb $0, FUNCTION_ARGUMENT(%r11)
    js .Lvalues_tail\variant
    .endif
    WRITE_ENTER \filtered, .Lunwritten_tail\variant, , 1
    jmp .Lpass\variant

    .ifeq \filtered
.Lalternate_enter\variant:
    // Frames on other stacks are open. Who comes here while the thread's context is busy takes the slow path, and
    // that takes none of the records which are ready.
    FIND_LABEL \patched, .Lslow_enter\variant
    PUSH %rsi
    PUSH %rdi
    movq %rax, %rsi
    leaq (16 + BELOW(\patched))(%rsp), %rdi
    TLS movq IN_TLS(THREAD_CONTEXT), %rax
    cmpl $0, CONTEXT_CHANGING(%rax)
    jne .Lalternate_slow_enter\variant
    btsl $0, CONTEXT_BUSY(%rax)         // one step: a handler may switch to a coroutine that was interrupted in here
    jc .Lalternate_slow_enter\variant
    TLS movq IN_TLS(THREAD_TOP), %rcx
    cmpl $LAST_ALTERNATE_MODE, FRAME_LAST(%rcx) // still: from now on it stays
    jne .Lenter_unlock\variant
    cmpq CONTEXT_STACK_LOW(%rax), %rdi
    jb .Lother_stack\variant
    cmpq CONTEXT_STACK_HIGH(%rax), %rdi
    jae .Lother_stack\variant
    cmpq $0, CONTEXT_SIGNAL_FRAMES(%rax) // left by a handler that jumped here?
    jne .Lenter_unlock\variant
    cmpq $0, CONTEXT_ALTERNATE(%rax)
    jne .Lown_stack\variant
    decl CONTEXT_PATIENCE(%rax)
    js .Lenter_unlock\variant
.Lown_stack\variant:
    movq CONTEXT_TOP(%rax), %rcx
    cmpq FRAME_STACK_POINTER(%rcx), %rdi
    jae .Lenter_unlock\variant
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz .Lenter_unlock\variant
    movq %rcx, CONTEXT_TOP(%rax)
    jmp .Lalternate_taken\variant
.Lother_stack\variant:
    movq %rdi, %rdx
    subq CONTEXT_SIGNAL_LOW(%rax), %rdx
    cmpq CONTEXT_SIGNAL_BYTES(%rax), %rdx
    jb .Lenter_unlock\variant
    cmpq $0, CONTEXT_READY(%rax)
    je .Lenter_unlock\variant
    FIND_LIST %rax, %rdi, %rdx, %edx
    movq (%rdx), %rcx
.Llook\variant:
    testq %rcx, %rcx
    jz .Ltake_ready\variant
    cmpq %rdi, FRAME_STACK_POINTER(%rcx)
    jne .Llook_older\variant
    cmpq %rsi, FRAME_LABEL(%rcx)
    je .Lenter_unlock\variant           // one of the two is dead, or the program copies its stacks
.Llook_older\variant:
    movq FRAME_OLDER(%rcx), %rcx
    jmp .Llook\variant
.Ltake_ready\variant:
    movq CONTEXT_READY(%rax), %rcx
    movq %rdi, FRAME_STACK_POINTER(%rcx)
    movq %rsi, FRAME_LABEL(%rcx)
    movq FRAME_OLDER(%rcx), %rdi
    movq %rdi, CONTEXT_READY(%rax)
    movq (%rdx), %rdi
    movq %rdi, FRAME_OLDER(%rcx)
    movl $USE_OPEN, FRAME_USE(%rcx)
    movl $PATIENCE, CONTEXT_PATIENCE(%rax)
    incq CONTEXT_ALTERNATE(%rax)
    movq %rcx, (%rdx)
.Lalternate_taken\variant:
    movl $0, CONTEXT_BUSY(%rax)
    movq %rsi, %rax
    POP %rdi
    POP %rsi
    IF_OBJECT \patched, .Lobject_taken\variant
    jmp .Ltaken\variant
    CFI_SPILLED \patched, 16
.Lenter_unlock\variant:
    movl $0, CONTEXT_BUSY(%rax)
.Lalternate_slow_enter\variant:
    POP %rdi
    POP %rsi
    jmp .Lslow_enter\variant
    .endif

    CFI_SPILLED \patched
.Lno_record\variant:
    // No record above: the end of the chain, or of TRACER_MAXDEPTH.
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpl $1, FRAME_LAST(%rax)
    jne .Lslow_enter\variant
    TLS movq IN_TLS(THREAD_POSITION), %rax
    movq POSITION_CHUNK(%rax), %rax
    testq %rax, %rax
    jz .Lslow_enter\variant
    incq CHUNK_FILTERED_DEPTH(%rax)
.Lpass\variant:
    PASS \patched

    CFI_SPILLED \patched
.Lnot_recording\variant:
    // Not recording. Somebody outside may want it now: Swift looks.
    movq tracer_control(%rip), %rax
    movl (%rax), %eax
    cmpl tracer_control_seen(%rip), %eax
    je .Loff\variant
    cmpl $0, tracer_confined(%rip)
    je .Lslow_enter\variant
.Loff\variant:
    cmpl $0, tracer_process+PROCESS_DROPPING(%rip)
    je .Lpass\variant
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpl $LAST_CHILD, FRAME_LAST(%rax)
    je .Lpass\variant
    TLS movq IN_TLS(THREAD_POSITION), %rax
    movq POSITION_CHUNK(%rax), %rax
    testq %rax, %rax
    jz .Lno_chunk\variant
    incq CHUNK_DROPPED(%rax)
    jmp .Lpass\variant
.Lno_chunk\variant:
    // A thread without a chunk: in the header of the file, which is of all threads.
    movq tracer_process+PROCESS_DROPPED(%rip), %rax
    lock incq (%rax)
    jmp .Lpass\variant

    // A function whose calls have an object; or one that must see its real caller, or returns twice: entry only; or one that Swift
    // looks at.
    .cfi_def_cfa_offset 8
    .type tracer_special\variant, @function
tracer_special\variant:
    .if \patched
    .cfi_def_cfa_offset 8
    SPILL_ENTER 1
    cmpb $0, FUNCTION_ARGUMENT(%r11)
    je .Lfirst_call\variant
    .else
    SPILL
    cmpb $KIND_CALL, FUNCTION_KIND(%r11)
    jne .Lspecial_kind\variant
    cmpb $0, FUNCTION_ARGUMENT(%r11)    // none: looked at once, and no longer
    je .Lspilled\variant
    .endif
.Lobject\variant:
    FIND_RECORD \variant, \patched
.Lobject_found\variant:
    TLS movq %rcx, IN_TLS(THREAD_TOP)
.Lobject_taken\variant:
    FILL_RECORD \patched
    .ifeq \filtered
    cmpb $0, FUNCTION_ARGUMENT(%r11)    // FUNCTION_HAS_VALUES is its sign
    js .Lvalues\variant
    .endif
    WRITE_ENTER \filtered, .Lunwritten\variant, .Lsited_object\variant, 1
    jmp .Lcall\variant
    .ifeq \filtered
.Lvalues\variant:
    VALUES_CALL values_enter, \patched
    jz .Lunwritten\variant
    jns .Lcall\variant
    // Not one of the calls that are wanted: the record, which is the top, is free again.
    movq FRAME_LABEL(%rcx), %rax
    movq LABEL_RETURN(%rax), %rax
    movq %rax, SLOT(\patched)
    CFI_RETURN_ON_STACK
.Lunwanted\variant:
    movq $0, FRAME_STACK_POINTER(%rcx)
    movq FRAME_BELOW(%rcx), %rax
    TLS movq %rax, IN_TLS(THREAD_TOP)
    jmp .Lpass\variant
    CFI_SPILLED \patched
    CFI_RETURN_ON_STACK
.Lvalues_tail\variant:
    VALUES_CALL values_enter, \patched
    jz .Lunwritten_tail\variant
    js .Lunwanted\variant
    jmp .Lpass\variant
    .endif
    CFI_SPILLED \patched
    CFI_RETURN_ON_STACK
    .if \patched
.Lfirst_call\variant:
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip) // Swift gives it a number
    je .Lspecial_disabled\variant
    jmp .Lspecial_slow\variant
    .else
.Lspecial_kind\variant:
    cmpb $KIND_ENTRY_ONLY, FUNCTION_KIND(%r11)
    jne .Lspecial_call\variant
    movq SLOT(\patched), %rax
    subq tracer_label_area+AREA_LOW(%rip), %rax
    cmpq tracer_label_area+AREA_SPAN(%rip), %rax
    jb .Lspecial_slow\variant           // reached by a tail call: its caller is not in the return slot
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je .Lspecial_disabled\variant
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpq $0, FRAME_ABOVE(%rax)
    je .Lno_record\variant
    .endif
.Linstant\variant:
    // An entry of no length.
    TLS movq IN_TLS(THREAD_POSITION), %rcx
    .if \filtered
    cmpq $0, POSITION_MINIMUM(%rcx)          // a process that is attached to comes here without a filter, too
    je .Lunfiltered\variant
    movq POSITION_CHUNK(%rcx), %rax          // it has no length: always below the filter
    testq %rax, %rax
    jz .Lslow_enter\variant
    incq CHUNK_FILTERED_TIME(%rax)
    jmp .Lpass\variant
.Lunfiltered\variant:
    .endif
    cmpq POSITION_PENDING_STACK(%rcx), %rsp // the outermost of those that are interrupted: a handler may leave it for good
    jbe .Lcounted\variant
    movq %rsp, POSITION_PENDING_STACK(%rcx)
.Lcounted\variant:
    incq POSITION_PENDING(%rcx)
    READ_CLOCK
    SITED .Lsited_instant\variant
    INSTANT_WORD \patched, .Linstant_refused\variant
.Linstant_written\variant:
    INSTANT_DONE
    jmp .Lpass\variant
.Linstant_refused\variant:
    INSTANT_DONE
    jmp .Lslow_enter\variant
    .ifeq \patched
.Lspecial_call\variant:
    cmpb $KIND_ONCE, FUNCTION_KIND(%r11)
    jne .Lspecial_number\variant
    cmpl $0, (%rdi)                     // the flag: somebody has begun it, or all is done
    jne .Lspecial_recorded\variant
    jmp .Lspecial_slow\variant
.Lspecial_apart\variant:
    cmpb $KIND_APART, FUNCTION_KIND(%r11)
    jne .Lspecial_slow\variant
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpl $LAST_ALTERNATE_MODE, FRAME_LAST(%rax)
    jne .Lspilled\variant
    jmp .Lspecial_slow\variant
.Lspecial_number\variant:
    cmpb $KIND_NUMBER, FUNCTION_KIND(%r11)
    jne .Lspecial_apart\variant
    leal -SYS_clone(%rdi), %eax         // clone, fork, vfork
    cmpl $2, %eax
    jbe .Lspecial_slow\variant
    .irp number, SYS_rt_sigaction, SYS_prctl, SYS_seccomp, SYS_clone3, SYS_exit_group, IDENTITY_NUMBERS
    cmpl $\number, %edi
    je .Lspecial_slow\variant
    .endr
    cmpl $0, FUNCTION_ID(%r11)
    je .Lpass\variant                   // only looked at, and not recorded
.Lspecial_recorded\variant:
    IF_OBJECT \patched, .Lobject\variant
    jmp .Lspilled\variant
    .endif
.Lspecial_disabled\variant:
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    jne .Lnot_recording\variant
.Lspecial_slow\variant:
    cmpl $0, tracer_confined(%rip)      // a system call of ours could be forbidden
    je .Lslow_enter\variant
    .ifeq \patched
    cmpb $KIND_INITIALIZER, FUNCTION_KIND(%r11)
    je .Lunrecorded\variant
    .endif
    cmpl $0, FUNCTION_ID(%r11)          // no id: no call that would be counted
    jne .Lnot_recording\variant
    jmp .Lpass\variant

.Lslow_enter\variant:
    // Everything is still to be done. But nothing for a child that runs in its parent's memory.
    TLS movq IN_TLS(THREAD_TOP), %rax
    cmpl $LAST_CHILD, FRAME_LAST(%rax)
    je .Lchild_top\variant
.Lnew_enter\variant:
    xorl %eax, %eax
    jmp .Lrun_slow_enter\variant
.Lchild_top\variant:
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    jne .Lpass\variant
    jmp .Lnew_enter\variant
.Lunwritten\variant:
    // rcx = the record, which is the top and lacks its event. The slot holds its label already.
    CFI_RETURN_OF_LABEL
    movq SLOT(\patched), %rax
    movq LABEL_RETURN(%rax), %rax
    movq %rax, SLOT(\patched)
    CFI_RETURN_ON_STACK
.Lunwritten_tail\variant:
    movq FRAME_FUNCTION(%rcx), %r11
    movq %rcx, %rax
.Lrun_slow_enter\variant:
    movq %r11, %rcx
    SLOW_CALL tracer_slow_enter, \patched
    testq %rcx, %rcx
    jz .Lunrecorded\variant
    .if \patched && !\filtered
    cmpq $SLOW_ORDINARY, %rcx
    je .Lspilled\variant
    .endif
    movq FRAME_LABEL(%rcx), %rax
    testl $LABEL_TAIL, %eax
    jnz .Lpass\variant
    andq $-LABEL_BYTES, %rax
    movq %rax, SLOT(\patched)
    CFI_RETURN_OF_LABEL
    jmp .Lcall\variant
    CFI_SPILLED \patched
    CFI_RETURN_ON_STACK
.Lunrecorded\variant:
    .if \patched
    jmp .Lpass\variant
    .else
    cmpq $0, FUNCTION_TARGET(%r11)
    jne .Lpass\variant
    movq FUNCTION_INSTANT(%r11), %r11   // an initializer: where its address is (InitializerStubs.swift)
    RELOAD
    jmpq *(%r11)
    .endif
    .cfi_endproc
    .size tracer_special\variant, . - tracer_special\variant
    .if \patched && !\filtered
    // As tracer_pass, and every so many calls of a thread to Swift, which looks at how long they took.
    .type tracer_pass_checked\variant, @function
tracer_pass_checked\variant:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    TLS decq IN_TLS(THREAD_PASSES)
    js tracer_special\variant
    PUSH FUNCTION_TARGET(%r11)
    movq 8(%rsp), %r11
    leaq 16(%rsp), %rsp
    .cfi_def_cfa_offset 8
    jmpq *-16(%rsp)
    .cfi_endproc
    .size tracer_pass_checked\variant, . - tracer_pass_checked\variant
    // As tracer_pass, and counts the call by one instruction, which no signal handler can divide: a fork in a handler would leave the child
    // with a value that was read in its parent. Every so many calls of a thread go to Swift, which has one of them recorded. A child that
    // fork has just made must not count into its parent's file, in which its counters still lie.
    .type tracer_pass_counted\variant, @function
tracer_pass_counted\variant:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    TLS decq IN_TLS(THREAD_PASSES)
    js .Lnot_passed\variant
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je tracer_special\variant
    PUSH %rax
    movzwl FUNCTION_COUNTER(%r11), %eax
    TLS addq IN_TLS(THREAD_COUNTS), %rax
    incq (%rax)
    movq FUNCTION_TARGET(%r11), %rax
    movq %rax, -8(%rsp)
    POP %rax
    popq %r11
    .cfi_def_cfa_offset 8
    jmpq *-24(%rsp)
    .cfi_def_cfa_offset 16
.Lnot_passed\variant:
    PUSH %rax
    TLS movq IN_TLS(THREAD_PASSES), %rax
    cmpq $PASSES_RECORDED, %rax
    POP %rax
    jl tracer_enter\variant
    jmp tracer_special\variant
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
// In the order of tracer_trampolines (processor.h). Only what is used is made writable. Two that one process may use share no page, since
// the second may be made writable while the first runs: those of slots and of patched functions, with a filter or without.
TRAMPOLINE , 0, 0
TRAMPOLINE _filtered, 1, 0
TRAMPOLINE _patched, 0, 1
TRAMPOLINE _patched_filtered, 1, 1
    .p2align PAGE_SHIFT

// With call sites: what a jump leads to from where one word would be reserved. It is not in the pages that are patched.
.macro SITED_WORDS variant, patched, filtered
    .section .text
    .type tracer_sited\variant, @function
tracer_sited\variant:
    .cfi_startproc
    CFI_SPILLED \patched
    CFI_RETURN_OF_LABEL
.Lsited_enter\variant:
    ENTER_WORD .Lunwritten\variant, 1, 0, \filtered
    jmp .Lcall\variant
.Lsited_object\variant:
    ENTER_WORD .Lunwritten\variant, 1, 1, \filtered
    jmp .Lcall\variant
    CFI_RETURN_ON_STACK
.Lsited_instant\variant:
    INSTANT_WORD \patched, .Linstant_refused\variant, 1
    jmp .Linstant_written\variant
    .cfi_endproc
    .size tracer_sited\variant, . - tracer_sited\variant
.endm
SITED_WORDS , 0, 0
SITED_WORDS _filtered, 0, 1
SITED_WORDS _patched, 1, 0
SITED_WORDS _patched_filtered, 1, 1
    END_OF_PATCH_SITES

// CLOCK_MONOTONIC in rax, in nanoseconds; all else is kept. By the kernel's own system call: it cannot fail, and needs no stack
// of ours.
    .globl tracer_monotonic
    .hidden tracer_monotonic
    .type tracer_monotonic, @function
tracer_monotonic:
    .cfi_startproc
    PUSH %rcx
    PUSH %r11
    PUSH %rdi
    PUSH %rsi
    movl $SYS_clock_gettime, %eax
    movl $1, %edi                       // CLOCK_MONOTONIC
    leaq -16(%rsp), %rsi
    syscall
    imulq $1000000000, -16(%rsp), %rax
    addq -8(%rsp), %rax
    POP %rsi
    POP %rdi
    POP %r11
    POP %rcx
    retq
    .cfi_endproc
    .size tracer_monotonic, . - tracer_monotonic

// Spilled. rdx = function; rcx and rax, whose own values are spilled, are its arguments. All registers but rcx
// are as they were; rcx = result, 0 also when no stack could be had. The agent is built for baseline x86-64: xmm0-15 are all
// that it can change of the vector state. SIGBUS stays as the program has it. Signals are blocked before a callee-saved
// register changes, and open again after all are right; their values are on the thread's own stack meanwhile, where they can
// be seen.
    .type slow_call, @function
slow_call:
    .cfi_startproc
    PUSH %rsi
    PUSH %rdi
    PUSH %r8
    PUSH %r9
    PUSH %r10
    PUSH %r11
    PUSH %rax
    PUSH %rdx
    PUSH %rcx
    PUSH %rbx
    PUSH %r12
    PUSH %r13
    PUSH %r14
    PUSH %r15
    PUSH %rbp
    movl $SYS_rt_sigprocmask, %eax
    movl $SIG_BLOCK, %edi
    leaq tracer_blocked_signals(%rip), %rsi
    leaq -8(%rsp), %rdx                 // the program's mask: in the red zone, and no handler comes
    movl $8, %r10d
    syscall
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq tracer_thread@gottpoff(%rip), %rdi
    movq %fs:THREAD_CONTEXT(%rdi), %rax
    testq %rax, %rax
    jz .Lfirst_slow_call
    // Another task may run with this thread's block (clone(2) with CLONE_VM and without CLONE_SETTLS: LeakSanitizer's), on a
    // stack of its own and at the same time: nothing of the thread's context is its own. A child of vfork is on this stack, and alone. Of
    // those that are seen to be made it is known (SharedMemory.swift).
    cmpl $SHARING_SUSPENDED, CONTEXT_SHARING(%rax)
    je .Lswitch_stack
    ja .Lwhose_context
    leaq SPILL_BYTES(%rbp), %rdx
    cmpq CONTEXT_STACK_LOW(%rax), %rdx
    jb .Lwhose_context
    cmpq CONTEXT_STACK_HIGH(%rax), %rdx
    jb .Lswitch_stack
.Lwhose_context:
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je .Lswitch_stack                   // a child that fork has just made
    movq %rax, %r9
    movl $SYS_gettid, %eax
    syscall
    xorl %r8d, %r8d
    cmpl CONTEXT_TID(%r9), %eax
    jne .Lrestore
    movq %r9, %rax
    jmp .Lswitch_stack
.Lfirst_slow_call:
    // A thread's first slow path: a context that is ready, or else one of its own, below it its stack, which a fork copies.
    leaq tracer_ready_contexts(%rip), %rdi
    movl $READY_CONTEXTS, %ecx
.Lnext_ready:
    xorl %r9d, %r9d
    xchgq %r9, (%rdi)
    testq %r9, %r9
    jnz .Lhas_context
    addq $8, %rdi
    decl %ecx
    jnz .Lnext_ready
    xorl %edi, %edi
    movl $(CONTEXT_STACK_BYTES + CONTEXT_BYTES), %esi
    movl $3, %edx                       // PROT_READ | PROT_WRITE
    movl $0x4022, %r10d                 // MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
    movq $-1, %r8
    xorl %r9d, %r9d
    movl $SYS_mmap, %eax
    syscall
    xorl %r8d, %r8d
    cmpq $-4096, %rax
    ja .Lrestore
    leaq CONTEXT_STACK_BYTES(%rax), %r9
.Lhas_context:
    xorl %r8d, %r8d
    movl $SYS_gettid, %eax
    syscall
    movl %eax, CONTEXT_TID(%r9)         // the owner, even if this call needs nothing of it, as __libc_start_main's
    movq %r9, %rax
    movq tracer_thread@gottpoff(%rip), %rdi
    movq %rax, %fs:THREAD_CONTEXT(%rdi)
    // Valgrind warns about a stack that was not registered (VALGRIND_STACK_REGISTER, valgrind.h: the request is in
    // memory at rax, its answer comes in rdx). To a real CPU this is nothing: the rotations are a whole turn.
    movq $VALGRIND_STACK_REGISTER, -48(%rax)
    leaq -CONTEXT_STACK_BYTES(%rax), %rdx
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
.Lswitch_stack:
    leaq -SAVED_VECTORS_BYTES(%rax), %rsp
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps %xmm\n, (\n * 16)(%rsp)
    .endr
    movq tracer_thread@gottpoff(%rip), %rdi
    addq %fs:0, %rdi
    movq (SPILL_BYTES - SPILL_RCX)(%rbp), %rsi
    leaq SPILL_BYTES(%rbp), %rdx
    movq (SPILL_BYTES - SPILL_RAX)(%rbp), %rcx
    call *(SPILL_BYTES - SPILL_RDX)(%rbp)
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movaps (\n * 16)(%rsp), %xmm\n
    .endr
    movq %rax, %r8
.Lrestore:
    movq %rbp, %rsp
    .cfi_def_cfa_register %rsp
    movq (%rsp), %rbp
    .cfi_restore %rbp
    movl $SYS_rt_sigprocmask, %eax
    movl $SIG_SETMASK, %edi
    leaq -8(%rsp), %rsi
    xorl %edx, %edx
    movl $8, %r10d
    syscall
    movq %r8, %rcx
    leaq (SPILL_BYTES - SPILL_R11)(%rsp), %rsp
    .cfi_adjust_cfa_offset -(SPILL_BYTES - SPILL_R11)
    POP %r11
    POP %r10
    POP %r9
    POP %r8
    POP %rdi
    POP %rsi
    retq
    .cfi_endproc
    .size slow_call, . - slow_call

// Arguments and results. The caller's registers are where slow_call has them. Two reads of the cycle counter take as long as all
// that stands between them one after the other, since it waits for what is before it: values are read before the clock is, beside
// the search for a record and a label, and in as short a chain of loads as can be.
.macro SPILL_ARGUMENTS
    PUSH %rsi
    PUSH %rdi
    PUSH %r8
    PUSH %r9
.endm
.macro RELOAD_ARGUMENTS
    POP %r9
    POP %r8
    POP %rdi
    POP %rsi
.endm
// Said again where the code above does not run on.
.macro CFI_ARGUMENTS_SPILLED below=0
    .cfi_def_cfa_offset 8 * 5 + \below
.endm
#define FROM_SPILLED(offset) (SPILL_FIFTH + 8 + offset)(%rsp) /* from the frame's stack pointer, after SPILL_ARGUMENTS */
// rdi = after the program of the function with this counter: they count from 1.
.macro FIND_PROGRAM function
    movzwl FUNCTION_COUNTER(\function), %edi
    shlq $PROGRAM_SHIFT, %rdi
    addq tracer_value_programs(%rip), %rdi
.endm
#define OF_PROGRAM(field) (field - PROGRAM_BYTES)(%rdi)
#define PIECES_BYTES (8 * (VALUE_WORDS + 2)) /* DATA words and VALUES; a multiple of 16 */
// The time into rax and the record in rcx. rdx is spent.
.macro READ_VALUES_CLOCK
    cmpl $0, tracer_reads_kernel_clock(%rip)
    je .Lcycles\@
    call tracer_monotonic
    jmp .Lclock_read\@
.Lcycles\@:
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
.Lclock_read\@:
    movq %rax, FRAME_ENTER(%rcx)
.endm
// As many bytes as the program's field says, by one step: rdx = the first word. rax = time, then since the base. scratch = position.
.macro RESERVE_VALUES field, bits, scratch, full
    movq tracer_thread@GOTTPOFF(%rip), \scratch
    movq %fs:THREAD_POSITION(\scratch), \scratch
    movzbl OF_PROGRAM(\field), %edx
    xaddq %rdx, POSITION_CURSOR(\scratch)
    cmpq POSITION_LIMIT(\scratch), %rdx
    jae \full
    subq POSITION_BASE(\scratch), %rax
    movq %rax, \scratch
    shrq $\bits, \scratch
    jnz \full
.endm
// value: of eight bytes. Writes the DATA word of the first seven; the value becomes what is left.
.macro WRITE_DATA value, to, scratch
    movq \value, \scratch
    shlq $CONTROL_PAYLOAD_SHIFT, \scratch
    orq $(CONTROL_DATA << CONTROL_KIND_SHIFT), \scratch
    movq \scratch, \to
    shrq $(8 * VALUE_WORD_BYTES), \value
.endm
// value: of up to eight bytes, spent. rdx = where its words are, then the last of them. It has a DATA word if the field is above `most`.
.macro WRITE_VALUE value, field, most, head, scratch
    cmpb $\most, OF_PROGRAM(\field)
    jbe .Lis_tail\@
    WRITE_DATA \value, (%rdx), \scratch
    addq $8, %rdx
.Lis_tail\@:
    shlq $(64 - 8 * VALUE_TAIL), \value
    orq OF_PROGRAM(\head), \value
    movq \value, (%rdx)
.endm

// Writes the enter of the record in rcx, at a time that is read here, with the values of its arguments. r11 = hook. All but rax, rdx and
// flags are as they were. ZF: it could not be done. SF: see tracer_fulfils.
    .type values_enter, @function
values_enter:
    .cfi_startproc
    SPILL_ARGUMENTS
    FIND_PROGRAM %r11
    cmpb $FUNCTION_HAS_VALUES, FUNCTION_ARGUMENT(%r11) // the calls have no object
    jne .Lin_no_pieces
    leaq FROM_SPILLED(0), %r9
    movswq OF_PROGRAM(PROGRAM_ONLY), %rsi
    testq %rsi, %rsi
    jz .Lseveral_values
    movq (%r9, %rsi), %r8
    andq OF_PROGRAM(PROGRAM_MASK), %r8
    READ_VALUES_CLOCK
    RESERVE_VALUES PROGRAM_RESERVED, EVENT_START_BITS, %r9, .Lvalues_refused
    WRITE_VALUE %r8, PROGRAM_WORDS, 0, PROGRAM_HEAD, %r9
    addq $8, %rdx
.Lvalues_written:
    cmpb $0, OF_PROGRAM(PROGRAM_RESULT_BYTES)
    je .Lhas_no_result
    // Space for the result, as leave_space (call_values.c) leaves it.
    cmpb $1, OF_PROGRAM(PROGRAM_SPACE)
    jb .Lhas_no_space
    je .Lresult_is_tail
    movq $(CONTROL_DATA << CONTROL_KIND_SHIFT), (%rdx)
    addq $8, %rdx
.Lresult_is_tail:
    movq OF_PROGRAM(PROGRAM_RESULT_HEAD), %rsi
    movq %rsi, (%rdx)
    addq $8, %rdx
.Lhas_no_space:
    orq $LABEL_RESULT, FRAME_LABEL(%rcx) // all of the word: who reads it soon is not given part of it by the store buffer
.Lhas_no_result:
    shlq $EVENT_TIME_SHIFT, %rax
    orq FUNCTION_HEAD(%r11), %rax
    movq %rax, (%rdx)
    addq $8, %rdx
    movq %rdx, FRAME_EVENT(%rcx)
    RELOAD_ARGUMENTS
    testq %rcx, %rcx
    retq
    CFI_ARGUMENTS_SPILLED
.Lvalues_refused:
    RELOAD_ARGUMENTS
    xorl %eax, %eax
    retq
    CFI_ARGUMENTS_SPILLED

    // The words are put together below the stack pointer that handlers spare, and copied once they are reserved. rdx = record.
.Lseveral_values:
    movq OF_PROGRAM(PROGRAM_PIECES), %rsi
    testq %rsi, %rsi
    jz .Lin_no_pieces
    leaq -PIECES_BYTES(%rsp), %rsp
    .cfi_adjust_cfa_offset PIECES_BYTES
    movq %rsp, %r8
    movq %rcx, %rdx
.Lnext_word:
    xorl %eax, %eax
.Lnext_piece:
    movswq PIECE_OFFSET(%rsi), %r11
    movzbl PIECE_UP(%rsi), %ecx
    movq (%r9, %r11), %r11
    shlq %cl, %r11
    movzbl PIECE_DOWN(%rsi), %ecx
    shrq %cl, %r11
    orq %r11, %rax
    addq $PIECE_BYTES, %rsi
    testb %cl, %cl                      // PIECE_ENDS is its sign, and no part of a shift
    jns .Lnext_piece
    // Bytes before a value that goes on in this word are in the place of the kind, or of all that is in the lower half.
    cmpb $0, (PIECE_UP - PIECE_BYTES)(%rsi) // likewise, of the VALUES word
    js .Llast_word
    movb $(CONTROL_DATA << CONTROL_KIND_SHIFT), %al
    movq %rax, (%r8)
    addq $8, %r8
    jmp .Lnext_word
.Llast_word:
    shrq $(64 - 8 * VALUE_TAIL), %rax
    shlq $(64 - 8 * VALUE_TAIL), %rax
    orq OF_PROGRAM(PROGRAM_HEAD), %rax
    movq %rax, (%r8)
    addq $8, %r8
    movq %rdx, %rcx
    READ_VALUES_CLOCK
    RESERVE_VALUES PROGRAM_RESERVED, EVENT_START_BITS, %r9, .Lcopy_refused
    movq %rsp, %rsi
.Lcopy_word:
    movq (%rsi), %r11
    movq %r11, (%rdx)
    addq $8, %rsi
    addq $8, %rdx
    cmpq %r8, %rsi
    jne .Lcopy_word
    movq FRAME_FUNCTION(%rcx), %r11
    leaq PIECES_BYTES(%rsp), %rsp
    .cfi_adjust_cfa_offset -PIECES_BYTES
    jmp .Lvalues_written
    CFI_ARGUMENTS_SPILLED PIECES_BYTES
.Lcopy_refused:
    movq FRAME_FUNCTION(%rcx), %r11
    leaq PIECES_BYTES(%rsp), %rsp
    .cfi_adjust_cfa_offset -PIECES_BYTES
    jmp .Lvalues_refused
    CFI_ARGUMENTS_SPILLED

    // For C: a call that is not wanted is let go before the clock is read.
.Lin_no_pieces:
    PUSH %r10
    PUSH %rcx
    cmpb $0, OF_PROGRAM(PROGRAM_TESTS)
    je .Lis_wanted
    movq %rcx, %rdi
    call tracer_fulfils
    testl %eax, %eax
    jle .Lin_c
    movq (%rsp), %rcx
.Lis_wanted:
    READ_VALUES_CLOCK
    movq %rcx, %rdi
    movq %rax, %rsi
    call tracer_write_arguments
    testl %eax, %eax
.Lin_c:
    POP %rcx
    POP %r10
    movq FRAME_FUNCTION(%rcx), %r11
    RELOAD_ARGUMENTS
    retq
    .cfi_endproc
    .size values_enter, . - values_enter

// Likewise the exit of the record in rcx, at the time in rax, with its result.
    .type values_exit, @function
values_exit:
    .cfi_startproc
    SPILL_ARGUMENTS
    movq FRAME_FUNCTION(%rcx), %rsi
    FIND_PROGRAM %rsi
    cmpq $FRAME_ELSEWHERE, FRAME_EVENT(%rcx)
    jb .Lvalues_refused                 // a frame of the same size
    cmpb $0, FUNCTION_ARGUMENT(%rsi)
    jns .Lvalues_refused
    movq FROM_SPILLED(RETURN_SLOT - 8), %r8
    andq OF_PROGRAM(PROGRAM_RESULT_MASK), %r8
    movzbl OF_PROGRAM(PROGRAM_RESULT_CHECK), %edx
    testl %edx, %edx
    jnz .Lmay_have_failed
.Lhas_not_failed:
    movq FRAME_EVENT(%rcx), %rdx
    orq $FRAME_CLOSING, FRAME_EVENT(%rcx)
    // As complete (call_values.c): no word has come after the enter, and before it is space for the result.
    movq tracer_thread@GOTTPOFF(%rip), %r9
    movq %fs:THREAD_POSITION(%r9), %r9
    cmpq %rdx, POSITION_CURSOR(%r9)
    jne .Lresult_apart
    movl -16(%rdx), %r9d
    cmpl OF_PROGRAM(PROGRAM_RESULT_HEAD), %r9d
    jne .Lresult_apart
    movq %rax, %r9
    subq FRAME_ENTER(%rcx), %r9
    cmpq $(1 << EVENT_DURATION_BITS), %r9
    jae .Lresult_apart
    cmpb $VALUE_TAIL, OF_PROGRAM(PROGRAM_RESULT_BYTES)
    jbe .Lis_result_tail
    WRITE_DATA %r8, -24(%rdx), %rsi
.Lis_result_tail:
    movl %r8d, -(8 + VALUE_TAIL)(%rdx)
    COMPLETE_CALL %rdx, %r9
    RELOAD_ARGUMENTS
    testq %rcx, %rcx
    retq
    CFI_ARGUMENTS_SPILLED
.Lresult_apart:
    RESERVE_VALUES PROGRAM_RESULT_RESERVED, EVENT_TIME_BITS, %r9, .Lend_refused
    shlq $EVENT_TIME_SHIFT, %rax
    orq FUNCTION_HEAD(%rsi), %rax
    xorq $(EVENT_ENTER ^ EVENT_EXIT), %rax
    WRITE_VALUE %r8, PROGRAM_RESULT_BYTES, VALUE_TAIL, PROGRAM_RESULT_HEAD, %r9
    movq %rax, 8(%rdx)
    RELOAD_ARGUMENTS
    testq %rcx, %rcx
    retq
    CFI_ARGUMENTS_SPILLED
.Lend_refused:
    andq $~FRAME_CLOSING, FRAME_EVENT(%rcx) // its end is Swift's to write
    jmp .Lvalues_refused
.Lmay_have_failed:
    cmpb $RESULT_IS_MINUS_ONE, %dl
    je .Lmay_be_minus_one
    testq %r8, %r8
    jnz .Lhas_not_failed
    jmp .Lexit_in_c
.Lmay_be_minus_one:
    cmpq OF_PROGRAM(PROGRAM_RESULT_MASK), %r8
    jne .Lhas_not_failed
.Lexit_in_c:
    PUSH %r10
    PUSH %r11
    PUSH %rcx
    PUSH %rdx
    movq %rcx, %rdi
    movq %rax, %rsi
    call tracer_write_result
    POP %rdx
    POP %rcx
    POP %r11
    POP %r10
    RELOAD_ARGUMENTS
    testl %eax, %eax
    retq
    .cfi_endproc
    .size values_exit, . - values_exit

// The stub of a patched function that is not recorded any more comes here (CalledFunctions.swift, HotFunctions.swift): its r11 is on the stack. Flags are
// kept, and the word that the jump reads is one that handlers' frames leave alone.
    .globl tracer_pass
    .hidden tracer_pass
    .type tracer_pass, @function
tracer_pass:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    PUSH FUNCTION_TARGET(%r11)
    movq 8(%rsp), %r11
    leaq 16(%rsp), %rsp
    .cfi_def_cfa_offset 8
    jmpq *-16(%rsp)
    .cfi_endproc
    .size tracer_pass, . - tracer_pass

// The same of a function that was called, whose first bytes are still to be put back (CalledFunctions.swift). Threads that count at once
// count one call: so what is compared is the sign.
    .globl tracer_pass_some
    .hidden tracer_pass_some
    .type tracer_pass_some, @function
tracer_pass_some:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    decq FUNCTION_HEAD(%r11)
    jns tracer_pass
    jmpq *tracer_patched_special(%rip)
    .cfi_endproc
    .size tracer_pass_some, . - tracer_pass_some

// A stub of a module's lazy slots comes here in the place of _dl_runtime_resolve: r11 = hook, on the stack the loader's
// own pointer to the module, the number of the slot, and the caller's return address. On the program's stack and with its signals,
// as there: what the loader calls is not for ours. Then as if the slot had held the stub of the target already.
    .globl tracer_lazy
    .hidden tracer_lazy
    .type tracer_lazy, @function
tracer_lazy:
    .cfi_startproc
    .cfi_def_cfa_offset 24
    cmpl $0, tracer_confined(%rip)
    je .Llazy_bind
    jmpq *FUNCTION_TARGET(%r11)
.Llazy_bind:
    PUSH %rbx
    .cfi_rel_offset %rbx, 0
    movq %rsp, %rbx
    .cfi_def_cfa_register %rbx
    subq $128, %rsp
    movq %rax, (%rsp)
    movl tracer_lazy_bytes(%rip), %eax
    subq %rax, %rsp
    movq -128(%rbx), %rax
    andq $-64, %rsp
    movq %rax, (%rsp)
    movq %rcx, 8(%rsp)
    movq %rdx, 16(%rsp)
    movq %rsi, 24(%rsp)
    movq %rdi, 32(%rsp)
    movq %r8, 40(%rsp)
    movq %r9, 48(%rsp)
    movq %r10, 56(%rsp)
    movq %r11, 64(%rsp)
    movl tracer_lazy_components(%rip), %eax
    xorl %edx, %edx
    testl %eax, %eax
    jz .Llazy_save_legacy
    .irp n, 0, 8, 16, 24, 32, 40, 48, 56
    movq %rdx, (128 + 512 + \n)(%rsp)   // the header
    .endr
    xsave 128(%rsp)
    jmp .Llazy_saved
.Llazy_save_legacy:
    fxsave 128(%rsp)
.Llazy_saved:
    movq 8(%rbx), %rdi
    movq 16(%rbx), %rsi
    addq FUNCTION_HEAD(%r11), %rsi
    callq *FUNCTION_INSTANT(%r11)
    movq %rax, 8(%rbx)                  // the target, in the place of the module
    movl tracer_lazy_components(%rip), %eax
    xorl %edx, %edx
    testl %eax, %eax
    jz .Llazy_restore_legacy
    xrstor 128(%rsp)
    jmp .Llazy_restored
.Llazy_restore_legacy:
    fxrstor 128(%rsp)
.Llazy_restored:
    movq (%rsp), %rax
    movq 8(%rsp), %rcx
    movq 16(%rsp), %rdx
    movq 24(%rsp), %rsi
    movq 32(%rsp), %rdi
    movq 40(%rsp), %r8
    movq 48(%rsp), %r9
    movq 56(%rsp), %r10
    movq 64(%rsp), %r11
    movq %rbx, %rsp
    .cfi_def_cfa_register %rsp
    POP %rbx
    .cfi_restore %rbx
    // The two words below the return address become the first that are spilled.
    PUSH %rcx
    movq 8(%rsp), %rcx
    movq %rdx, 8(%rsp)
    movq 16(%rsp), %rdx
    movq %rax, 16(%rsp)
    movq %rdx, %rax
    xchgq %rcx, %r11                    // rcx = hook, r11 = target, rax = number
    SLOW_CALL tracer_slow_bind
    testq %rcx, %rcx                    // no stack for it
    cmovnzq %rcx, %r11
    RELOAD
    jmpq *%r11
    .cfi_endproc
    .size tracer_lazy, . - tracer_lazy

// A child that runs in its parent's memory: nothing is done. rax is spent.
.macro RETURN_IN_CHILD done
    movq tracer_thread@gottpoff(%rip), %rax
    movq %fs:THREAD_TOP(%rax), %rax
    cmpl $LAST_CHILD, FRAME_LAST(%rax)
    je \done
.endm

// Stands in for the loader's debugger hook, _dl_debug_state: called with the loader's lock held.
    .globl tracer_loader_event
    .hidden tracer_loader_event
    .type tracer_loader_event, @function
tracer_loader_event:
    .cfi_startproc
    cmpl $0, tracer_confined(%rip)
    je .Lloader_event_heard
.Lloader_event_over:
    retq
.Lloader_event_heard:
    RETURN_IN_CHILD .Lloader_event_over
    SPILL
    SLOW_CALL tracer_slow_loader_event
    RELOAD
    retq
    .cfi_endproc
    .size tracer_loader_event, . - tracer_loader_event

// Return address of our signal handlers. Unwinders and gdb recognize it by exactly these bytes, not by a description of its own (libgcc
// i386/linux-unwind.h).
    .globl tracer_signal_return
    .hidden tracer_signal_return
    .type tracer_signal_return, @function
    nop
tracer_signal_return:
    movq $SYS_rt_sigreturn, %rax
    syscall
    .size tracer_signal_return, . - tracer_signal_return

// The rest of a C function, on the agent's stack as a call through a stub would be: function(thread, first argument, stack pointer,
// \second).
.macro SLOW_FUNCTION function, second
    cmpl $0, tracer_confined(%rip)
    je .Lheard\@
.Lover\@:
    retq
.Lheard\@:
    RETURN_IN_CHILD .Lover\@
    SPILL
    movq %rdi, %rcx
    movq \second, %rax
    SLOW_CALL \function
    RELOAD
    retq
.endm
// void tracer_mark(name), tracer_begin(name), tracer_end(name), tracer_snapshot(name).
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
SPAN tracer_snapshot, SPAN_SNAPSHOT
    .hidden tracer_begin_thread
SPAN tracer_begin_thread, SPAN_NONE
    .type span, @function
span:
    .cfi_startproc
    SLOW_FUNCTION tracer_slow_span, %r11
    .cfi_endproc
    .size span, . - span

// void __cyg_profile_func_enter(function, site) and …_exit: calls like any other, in which all registers but those that every function
// preserves are free. The thread's state is at the loader's own word for the distance. rdi = function, rsi = site, r9 = the distance,
// r10 = the stack pointer that its frame is known by.
.macro INSTRUMENTED_THREAD
    movq tracer_thread@gottpoff(%rip), %r9
    movq %fs:THREAD_TOP(%r9), %rcx
    leaq (INSTRUMENTED_ABOVE - RETURN_SLOT)(%rsp), %r10
.endm
// The hook of the function, in r11. Elsewhere when there is none.
.macro FIND_INSTRUMENTED none
    movq tracer_instrumented(%rip), %r8
    imull $LABEL_HASH, %edi, %eax
    shrl $12, %eax                      // functions lie at multiples of 16
    andl -8(%r8), %eax
.Lprobe_function\@:
    movq (%r8, %rax), %r11
    movq FUNCTION_TARGET(%r11), %rdx
    cmpq %rdi, %rdx
    je .Lfound_function\@
    testq %rdx, %rdx
    jz \none
    addq $8, %rax
    jmp .Lprobe_function\@
.Lfound_function\@:
.endm
// Recording is off, and this is no child that fork has just made, in which the page is empty.
.macro INSTRUMENTED_OFF passed
    movl tracer_process+PROCESS_ENABLED(%rip), %eax
    orl tracer_process+PROCESS_DROPPING(%rip), %eax
    jnz .Lon\@
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je .Lon\@
    movq tracer_control(%rip), %rax
    movl (%rax), %eax
    cmpl tracer_control_seen(%rip), %eax
    je \passed
    cmpl $0, tracer_confined(%rip)
    jne \passed
.Lon\@:
.endm
// The top is a frame that the function's own instrumentation has opened. Elsewhere when it is not.
.macro IS_INSTRUMENTED not
    movq tracer_instrumented_label(%rip), %rax
    cmpq %rax, FRAME_LABEL(%rcx)
    jne \not
    movq FRAME_FUNCTION(%rcx), %rax
    cmpq %rdi, FUNCTION_TARGET(%rax)
    jne \not
.endm
    .globl tracer_instrumented_enter, tracer_instrumented_exit
    .hidden tracer_instrumented_enter, tracer_instrumented_exit
    .type tracer_instrumented_enter, @function
tracer_instrumented_enter:
    .cfi_startproc
    FIND_INSTRUMENTED .Linstrumented_slow_enter
    cmpq $0, FUNCTION_INSTANT(%r11)
    jne .Linstrumented_passed
    INSTRUMENTED_THREAD
    cmpq FRAME_STACK_POINTER(%rcx), %r10
    ja .Linstrumented_slow_enter
    jne .Linstrumented_below
    cmpq FRAME_FUNCTION(%rcx), %r11     // at the same stack pointer: it was inlined there, or the top is dead
    je .Linstrumented_slow_enter
.Linstrumented_below:
    leaq -INSTRUMENTED_ABOVE(%r10), %rax
    cmpq %fs:THREAD_LOW(%r9), %rax
    jb .Linstrumented_slow_enter
    movq %rsi, %rax
    subq tracer_label_area+AREA_LOW(%rip), %rax
    cmpq tracer_label_area+AREA_SPAN(%rip), %rax
    jb .Linstrumented_hooked
.Linstrumented_new:
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz .Linstrumented_slow_enter
    movq %rcx, %fs:THREAD_TOP(%r9)
    movq %r10, FRAME_STACK_POINTER(%rcx)
    movq %r11, FRAME_FUNCTION(%rcx)
    movq tracer_instrumented_label(%rip), %rax
    movq %rax, FRAME_LABEL(%rcx)
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movq %rax, FRAME_ENTER(%rcx)
    movq %fs:THREAD_POSITION(%r9), %r11
    ENTER_WORD .Linstrumented_undo
.Linstrumented_passed:
    retq
.Linstrumented_hooked:
    // It returns to a label: its call is recorded already. If the top is that call's, but of another function, this one is inlined there.
    cmpq %rsi, FRAME_LABEL(%rcx)
    jne .Linstrumented_slow_enter
    movq FRAME_FUNCTION(%rcx), %rax
    cmpb $KIND_PATCHED, FUNCTION_KIND(%rax) // its target is relocated code
    je .Linstrumented_slow_enter
    cmpb $KIND_PATCHED_ARGUMENTS, FUNCTION_KIND(%rax)
    je .Linstrumented_slow_enter
    cmpq %rdi, FUNCTION_TARGET(%rax)
    jne .Linstrumented_new
    retq
.Linstrumented_undo:
    movq FRAME_BELOW(%rcx), %rdx
    movq $0, FRAME_EVENT(%rcx)
    movq $0, FRAME_STACK_POINTER(%rcx)
    movq %rdx, %fs:THREAD_TOP(%r9)
.Linstrumented_slow_enter:
    INSTRUMENTED_OFF .Linstrumented_passed
    SLOW_FUNCTION tracer_slow_instrumented_enter, %rsi
    .cfi_endproc
    .size tracer_instrumented_enter, . - tracer_instrumented_enter

    .type tracer_instrumented_exit, @function
tracer_instrumented_exit:
    .cfi_startproc
    INSTRUMENTED_THREAD
    movq tracer_instrumented(%rip), %r8
    cmpl $0, -8(%r8)
    je .Linstrumented_closed
    cmpq %r10, FRAME_STACK_POINTER(%rcx)
    jne .Linstrumented_other
    IS_INSTRUMENTED .Linstrumented_slow_exit
.Linstrumented_end:
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    subq FRAME_ENTER(%rcx), %rax
    movq FRAME_EVENT(%rcx), %rdx
    leaq FRAME_CLOSING(%rdx), %r11
    movq %r11, FRAME_EVENT(%rcx)
    movq %fs:THREAD_POSITION(%r9), %r8
    cmpq %rdx, POSITION_CURSOR(%r8)     // its enter is the last event: the call becomes one word
    jne .Linstrumented_two_words
    cmpq $(1 << EVENT_DURATION_BITS), %rax
    jae .Linstrumented_two_words
    COMPLETE_CALL %rdx, %rax
.Linstrumented_ended:
    movq FRAME_BELOW(%rcx), %rdx
    movq $0, FRAME_EVENT(%rcx)
    movq $0, FRAME_STACK_POINTER(%rcx)
    movq %rdx, %fs:THREAD_TOP(%r9)      // from here on a handler may reuse the record
    retq
.Linstrumented_two_words:
    cmpq $FRAME_ELSEWHERE, %rdx
    jb .Linstrumented_lost              // its enter could not be written
    addq FRAME_ENTER(%rcx), %rax
    movl $8, %edx
    xaddq %rdx, POSITION_CURSOR(%r8)
    cmpq POSITION_LIMIT(%r8), %rdx
    jae .Linstrumented_lost
    subq POSITION_BASE(%r8), %rax
    movq %rax, %r11
    shrq $EVENT_TIME_BITS, %r11
    jnz .Linstrumented_lost
    EXIT_WORD %rax, %r11
    movq %rax, (%rdx)
    jmp .Linstrumented_ended
.Linstrumented_lost:
    andq $~FRAME_CLOSING, FRAME_EVENT(%rcx) // its end is Swift's to write
    jnz .Linstrumented_slow_exit
    movq $FRAME_ELSEWHERE, FRAME_EVENT(%rcx)
    jmp .Linstrumented_slow_exit
.Linstrumented_other:
    jb .Linstrumented_tail
    // Its call is recorded by another frame, or not at all.
    cmpq %rsi, FRAME_LABEL(%rcx)
    jne .Linstrumented_suppressed
    movq FRAME_FUNCTION(%rcx), %rax
    cmpq %rdi, FUNCTION_TARGET(%rax)
    je .Linstrumented_passed
    jmp .Linstrumented_suppressed
.Linstrumented_tail:
    // The last thing that it does, a jump: then its own return address is on top, and of all that is below there its frame is the
    // outermost.
    cmpq (%rsp), %rsi
    jne .Linstrumented_suppressed
    IS_INSTRUMENTED .Linstrumented_suppressed
    movq FRAME_BELOW(%rcx), %rax
    cmpq FRAME_STACK_POINTER(%rax), %r10
    jb .Linstrumented_end
.Linstrumented_suppressed:
    FIND_INSTRUMENTED .Linstrumented_slow_exit
    cmpq $0, FUNCTION_INSTANT(%r11)
    jne .Linstrumented_passed
    jmp .Linstrumented_slow_exit
.Linstrumented_closed:
    // Nothing is recorded, perhaps for good: but what was begun before still ends.
    testb $INSTRUMENTED_ABOVE, FRAME_STACK_POINTER(%rcx)
    jnz .Linstrumented_slow_exit
    INSTRUMENTED_OFF .Linstrumented_passed
.Linstrumented_slow_exit:
    SLOW_FUNCTION tracer_slow_instrumented_exit, %rsi
    .cfi_endproc
    .size tracer_instrumented_exit, . - tracer_instrumented_exit

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

// long tracer_run_apart(body, argument, flags, running, stack)
    .globl tracer_run_apart
    .hidden tracer_run_apart
    .type tracer_run_apart, @function
tracer_run_apart:
    .cfi_startproc
    movq %rsi, %r9                      // the kernel leaves r8 and r9 as they are
    movq %r8, %rsi
    movq %rdi, %r8
    movq %rdx, %rdi
    movq %rcx, %rdx
    movq %rcx, %r10
    movl $56, %eax                      // clone
    syscall
    testq %rax, %rax
    jnz .Lrun_apart_parent
    .cfi_remember_state
    .cfi_undefined %rip
    xorl %ebp, %ebp
    movq %r9, %rdi
    callq *%r8
    xorl %edi, %edi
    movl $60, %eax                      // exit, of this task alone
    syscall
    ud2
    .cfi_restore_state
.Lrun_apart_parent:
    retq
    .cfi_endproc
    .size tracer_run_apart, . - tracer_run_apart

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
    jb .Lmove_down
memcpy:                                 // up to 128 bytes all is read before any is written
    movq %rdi, %rax
    cmpq $16, %rdx
    jb .Lcopy_short
    cmpq $64, %rdx
    ja .Lcopy_long
    movups (%rsi), %xmm0
    movups -16(%rsi, %rdx), %xmm1
    cmpq $32, %rdx
    jbe .Lcopy_ends
    movups 16(%rsi), %xmm2
    movups -32(%rsi, %rdx), %xmm3
    movups %xmm2, 16(%rdi)
    movups %xmm3, -32(%rdi, %rdx)
.Lcopy_ends:
    movups %xmm0, (%rdi)
    movups %xmm1, -16(%rdi, %rdx)
    retq
.Lcopy_short:
    cmpq $8, %rdx
    jb .Lcopy_few
    movq (%rsi), %rcx
    movq -8(%rsi, %rdx), %r8
    movq %rcx, (%rdi)
    movq %r8, -8(%rdi, %rdx)
    retq
.Lcopy_few:
    cmpq $4, %rdx
    jb .Lcopy_bytes
    movl (%rsi), %ecx
    movl -4(%rsi, %rdx), %r8d
    movl %ecx, (%rdi)
    movl %r8d, -4(%rdi, %rdx)
    retq
.Lcopy_long:
    cmpq $128, %rdx
    ja .Lcopy_bytes
    movups (%rsi), %xmm0
    movups 16(%rsi), %xmm1
    movups 32(%rsi), %xmm2
    movups 48(%rsi), %xmm3
    movups -64(%rsi, %rdx), %xmm4
    movups -48(%rsi, %rdx), %xmm5
    movups -32(%rsi, %rdx), %xmm6
    movups -16(%rsi, %rdx), %xmm7
    movups %xmm0, (%rdi)
    movups %xmm1, 16(%rdi)
    movups %xmm2, 32(%rdi)
    movups %xmm3, 48(%rdi)
    movups %xmm4, -64(%rdi, %rdx)
    movups %xmm5, -48(%rdi, %rdx)
    movups %xmm6, -32(%rdi, %rdx)
    movups %xmm7, -16(%rdi, %rdx)
    retq
.Lcopy_bytes:
    movq %rdx, %rcx
    rep movsb
    retq
.Lmove_down:
    movq %rdi, %rax
    testq %rdx, %rdx
    jz .Lmoved
.Lmove_down_byte:
    movb -1(%rsi, %rdx), %cl
    movb %cl, -1(%rdi, %rdx)
    decq %rdx
    jnz .Lmove_down_byte
.Lmoved:
    retq
memset:
    movq %rdi, %r8
    movl %esi, %eax
    movq %rdx, %rcx
    rep stosb
    movq %r8, %rax
    retq
strlen:
    xorl %eax, %eax
.Lstrlen_next:
    cmpb $0, (%rdi, %rax)
    je .Lstrlen_end
    incq %rax
    jmp .Lstrlen_next
.Lstrlen_end:
    retq
memcmp:
    xorl %eax, %eax
    testq %rdx, %rdx
    jz .Lcompared
.Lcompare_next:
    movzbl (%rdi), %eax
    movzbl (%rsi), %ecx
    subl %ecx, %eax
    jnz .Lcompared
    incq %rdi
    incq %rsi
    decq %rdx
    jnz .Lcompare_next
.Lcompared:
    retq

#include "labels.h"
#include "../reserved.h"
#endif
    .section .note.GNU-stack, "", @progbits
