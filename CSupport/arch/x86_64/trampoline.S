// The x86_64 trampolines. docs/trampoline.md tells the story; this is the summary.
//
// A slot (.got.plt, or .got of -fno-plt code) points to a stub, the stub puts the function's descriptor in r11 and jumps
// here. Each address that calls return to has a *label*: 16 bytes of code that call the function and, on return, come back
// here. The trampoline jumps to the label of its caller's return address. So the word in the return slot says where to
// return to, whatever happens to stacks, threads and records: return addresses are neither kept on the side nor lost.
//
//      on entry                  at the place                  while the function runs
//      s+8  stack arguments      s      return address, then   S    stack arguments
//      s    return address              the label              S-8  in the label: its `call` has pushed it
//                                s-24   rcx, rdx, rax
//                                       = place
//
// S = s + 8 is the CFA of the caller's call and of the label's own: its frame has size zero.
//
// Registers. At a PLT call only r11 and the flags are free (System V psABI 3.2.1; Swift's preserve_most runtime calls
// demand the same on return). Three more are pushed, not spilled into the red zone: whoever looks for pointers in the
// registers and on the stack of a thread finds all that the program has. No callee-saved register is touched while a
// signal can be delivered, and no vector register on the fast path.
//
// Signals. A handler may run traced code between any two instructions. Hence: a record becomes the top *before* it is
// filled, and is empty until then (its slot is 0, which says so to the slow path); it is left only after everything was
// read from it; a word of the chunk is reserved with one xadd (no lock: the other party is a handler on this very thread),
// after the clock was read and before the base is looked at, so that a base which a handler sets in between is noticed.
#if defined(__x86_64__)
#include "../../include/shim.h"

#define SYS_mmap 9
#define SYS_rt_sigprocmask 14
#define SYS_clock_gettime 228
#define SYS_gettid 186
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

.macro PUSH register
    pushq \register
    .cfi_adjust_cfa_offset 8
.endm
.macro POP register
    popq \register
    .cfi_adjust_cfa_offset -8
.endm

// Time in rax; rdx is clobbered, nothing else.
.macro READ_CLOCK_cycles
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
.endm
// Where the cycle counter is not usable the kernel's own system call is: it cannot fail, and needs no stack of ours.
.macro READ_CLOCK_monotonic
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
.endm

// To the place: the three registers that the trampolines work with.
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
// Ends in a jump to the function as if nothing had been there.
.macro PASS
    RELOAD
    jmpq *FUNCTION_TARGET(%r11)
.endm

// Runs a Swift function on the agent's stack with all signals blocked: function(thread, rcx, place, rax). Out: rcx = result.
.macro SLOW_CALL function
    leaq \function(%rip), %rdx
    call slow_call
.endm

// The label of the return address in rax, the address itself in rdx. Elsewhere when it has none yet. The table is reached by
// one word, so that it can be exchanged for a larger one; its mask stands before it.
.macro FIND_LABEL none
    movq tracer_label_state+LABELS_TABLE(%rip), %rdx
    movl PLACE_RETURN(%rsp), %eax
    imull $LABEL_HASH, %eax, %eax
    andl -8(%rdx), %eax
    movq (%rdx, %rax), %rax
    movq PLACE_RETURN(%rsp), %rdx
    cmpq %rdx, LABEL_RETURN(%rax)
    jne \none
.endm

// At the place, with so much pushed below: said again where the code above does not run on.
.macro CFI_AT_PLACE pushed=0
    .cfi_def_cfa_offset PLACE_RETURN + 8 + \pushed
.endm
// Return address: what LABEL_RETURN after the label in the return slot says. Of a word between the label and its end.
// DW_CFA_val_expression rip: lit8, minus, deref, const1s -16, and, plus_uconst LABEL_RETURN, deref
.macro CFI_RETURN_OF_LABEL
    .cfi_escape 0x16, 16, 11, 0x38, 0x1c, 0x06, 0x09, 0xf0, 0x1a, 0x23, 0x80, 0x80, 0x40, 0x06
.endm
.macro CFI_RETURN_ON_STACK
    .cfi_offset 16, -8
.endm

// The enter event of the record in rcx, which is the top and otherwise filled. The clock first, then a word, then its time.
.macro WRITE_ENTER clock, filtered, slow
    READ_CLOCK_\clock
    movq %rax, FRAME_ENTER(%rcx)
    .if \filtered
    movq $SLOT_UNWRITTEN, FRAME_SLOT(%rcx)
    .else
    TLS movq IN_TLS(THREAD_HOT), %r11
    movl $8, %edx
    xaddq %rdx, HOT_CURSOR(%r11)
    cmpq HOT_LIMIT(%r11), %rdx
    jae \slow
    subq HOT_BASE(%r11), %rax
    cmpq $(1 << EVENT_START_BITS), %rax
    jae \slow
    shlq $EVENT_TIME_SHIFT, %rax
    movq FRAME_FUNCTION(%rcx), %r11
    orq FUNCTION_HEAD(%r11), %rax
    movq %rax, (%rdx)
    addq $8, %rdx
    movq %rdx, FRAME_SLOT(%rcx)
    .endif
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

// Writes the end of the frame in rcx, which is the top. rax = now. `exit`: it is not one word. `slow`: rax = now again.
.macro WRITE_END filtered, exit, slow
    subq FRAME_ENTER(%rcx), %rax
    .if \filtered
    TLS movq IN_TLS(THREAD_HOT), %rdx
    cmpq HOT_MINIMUM(%rdx), %rax
    jae \slow
    movq HOT_CHUNK(%rdx), %rdx
    testq %rdx, %rdx
    jz \slow
    incq CHUNK_FILTERED_TIME(%rdx)
    .else
    movq FRAME_SLOT(%rcx), %rdx
    leaq SLOT_CLOSING(%rdx), %r11
    movq %r11, FRAME_SLOT(%rcx)
    TLS movq IN_TLS(THREAD_HOT), %r11
    cmpq %rdx, HOT_CURSOR(%r11)         // its enter is the last event: the call becomes one word
    jne \exit
    cmpq $(1 << EVENT_DURATION_BITS), %rax
    jae \exit
    COMPLETE_CALL %rdx, %rax
    .endif
.endm
// Not one word: an exit event. rdx = slot, rax = duration, r11 = hot. `slow`: rax = duration again.
.macro WRITE_EXIT done, slow
    cmpq $SLOT_ELSEWHERE, %rdx
    jb \slow                            // its enter could not be written
    addq FRAME_ENTER(%rcx), %rax
    movl $8, %edx
    xaddq %rdx, HOT_CURSOR(%r11)
    cmpq HOT_LIMIT(%r11), %rdx
    jae 901f
    subq HOT_BASE(%r11), %rax
    movq %rax, %r11
    shrq $EVENT_TIME_BITS, %r11
    jnz 902f
    EXIT_WORD %rax, %r11
    movq %rax, (%rdx)
    jmp \done
902: TLS movq IN_TLS(THREAD_HOT), %r11
    addq HOT_BASE(%r11), %rax
901: subq FRAME_ENTER(%rcx), %rax
    jmp \slow
.endm
// The record in rcx is given up: everything was read from it.
.macro GIVE_UP
    movq FRAME_BELOW(%rcx), %rdx
    movq $0, FRAME_SLOT(%rcx)
    TLS movq %rdx, IN_TLS(THREAD_TOP)   // from here on a handler may reuse the record
.endm

// Where in the table of frames on other stacks a place is: the address of its list in \list. \place is kept.
.macro FIND_LIST unit, place, list
    movq \place, \list
    shrq $4, \list
    imulq $LIST_HASH, \list, \list
    shrq $(64 - LIST_BITS), \list
    shlq $3, \list
    addq UNIT_LISTS(\unit), \list
.endm

// clock: which READ_CLOCK. filtered: TRACER_MINMS is in force; then an enter is not written when it happens but when
// something inside it is kept, so that a call which is not kept never touches the chunk.
.macro TRAMPOLINE variant, clock, filtered
    .section .text.trampolines, "ax"
    .p2align 6
    .globl tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant
    .hidden tracer_enter_\variant, tracer_returned_\variant, tracer_special_\variant
    .type tracer_enter_\variant, @function
tracer_enter_\variant:
    .cfi_startproc
    SPILL
16: TLS movq IN_TLS(THREAD_TOP), %rcx
    cmpq FRAME_PLACE(%rcx), %rsp        // stacks grow down: a nested frame lies below its caller's
    jae 21f
    TLS cmpq IN_TLS(THREAD_LOW), %rsp
    jb 21f
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz 22f
    FIND_LABEL 14f
15: TLS movq %rcx, IN_TLS(THREAD_TOP)
11: movq %rsp, FRAME_PLACE(%rcx)
    movq %r11, FRAME_FUNCTION(%rcx)
    movq %rax, FRAME_LABEL(%rcx)
    movq %rax, PLACE_RETURN(%rsp)
    CFI_RETURN_OF_LABEL
    WRITE_ENTER \clock, \filtered, 32f
12: RELOAD
    leaq 8(%rsp), %rsp
    .cfi_adjust_cfa_offset -8
    jmpq *-8(%rsp)                      // the label: it calls FUNCTION_TARGET(%r11) and comes back to:
    .size tracer_enter_\variant, . - tracer_enter_\variant

    .type tracer_returned_\variant, @function
tracer_returned_\variant:               // r11 = label
    pushq LABEL_RETURN(%r11)
    .cfi_adjust_cfa_offset 8
    CFI_RETURN_ON_STACK
    SPILL
    .ifc \clock, monotonic
    cmpl $0, tracer_confined(%rip)      // its system call could be forbidden
    jne 42f
    .endif
43: TLS movq IN_TLS(THREAD_TOP), %rcx
    cmpq %rsp, FRAME_PLACE(%rcx)
    jne 60f
    cmpq %r11, FRAME_LABEL(%rcx)
    jne 60f
    READ_CLOCK_\clock
    WRITE_END \filtered, 51f, 61f
41: GIVE_UP
42: RELOAD
    retq
    CFI_AT_PLACE

    .ifeq \filtered
51: WRITE_EXIT 41b, 62f
62: movq $SLOT_ELSEWHERE, FRAME_SLOT(%rcx)
    .endif
61: addq FRAME_ENTER(%rcx), %rax
    movq FRAME_LABEL(%rcx), %r11
    andq $-LABEL_BYTES, %r11
    jmp 67f

60: // r11 = label, rcx = top. The top is not the frame that returns, or not it alone.
    .ifeq \filtered
    cmpl $LAST_STAND_IN, FRAME_LAST(%rcx)
    je 80f
    .endif
    cmpq %rsp, FRAME_PLACE(%rcx)
    jne 65f
    leaq LABEL_TAIL(%r11), %rdx
    cmpq %rdx, FRAME_LABEL(%rcx)
    jne 65f
    // A frame that a tail call opened: it ends, and then the one below, whose function made that call.
    READ_CLOCK_\clock
    WRITE_END \filtered, 52f, 61b
66: movq FRAME_LABEL(%rcx), %r11
    andq $-LABEL_BYTES, %r11
    GIVE_UP
    jmp 43b
    .ifeq \filtered
52: WRITE_EXIT 66b, 62b
    .endif

65: // For Swift: frames above are dead, or it lies on another stack, or the chunk is full, or it is time to write what the
    // filter held back, or somebody wants to know of the return, or we are a child.
    cmpl $0, tracer_confined(%rip)      // neither a system call may be made nor the clock be read
    jne 42b
    READ_CLOCK_\clock
67: movq %r11, %rcx
    SLOW_CALL tracer_slow_exit
    jmp 42b

    .ifeq \filtered
    CFI_AT_PLACE
80: // Frames on other stacks are open, so the order of ends says nothing: RESUME and an exit, if not one word.
    PUSH %rsi
    PUSH %rdi
    READ_CLOCK_\clock
    TLS movq IN_TLS(THREAD_UNIT), %rdx
    cmpl $0, UNIT_CHANGING(%rdx)
    jne 88f
    btsl $0, UNIT_BUSY(%rdx)
    jc 88f
    TLS movq IN_TLS(THREAD_TOP), %rcx
    cmpl $LAST_STAND_IN, FRAME_LAST(%rcx)
    jne 87f
    leaq 16(%rsp), %rdi
    xorl %esi, %esi
    movq UNIT_TOP(%rdx), %rcx
    cmpq %rdi, FRAME_PLACE(%rcx)
    jne 81f
    cmpq %r11, FRAME_LABEL(%rcx)
    je 83f
81: FIND_LIST %rdx, %rdi, %rsi          // rsi: the word that points to the record
82: movq (%rsi), %rcx
    testq %rcx, %rcx
    jz 87f
    cmpq %rdi, FRAME_PLACE(%rcx)
    jne 85f
    cmpq %r11, FRAME_LABEL(%rcx)
    je 84f
85: leaq FRAME_OLDER(%rcx), %rsi
    jmp 82b
84: cmpl $USE_OPEN, FRAME_USE(%rcx)
    jne 87f
    cmpl $0, FRAME_SIGNAL(%rcx)
    jne 87f
83: movq FRAME_SLOT(%rcx), %rdi
    cmpq $SLOT_ELSEWHERE, %rdi
    je 89f
    cmpq $SLOT_UNWRITTEN, %rdi
    jbe 87f
89: orq $SLOT_CLOSING, FRAME_SLOT(%rcx)
    TLS movq IN_TLS(THREAD_HOT), %rdx
    cmpq %rdi, HOT_CURSOR(%rdx)         // its enter is the last event: one word, as on the fast path
    jne 90f
    movq %rax, %r11
    subq FRAME_ENTER(%rcx), %r11
    cmpq $(1 << EVENT_DURATION_BITS), %r11
    jae 90f
    COMPLETE_CALL %rdi, %r11
    jmp 91f
90: movl $16, %r11d
    xaddq %r11, HOT_CURSOR(%rdx)
    cmpq HOT_LIMIT(%rdx), %r11
    jae 86f
    movq %rax, %rdi
    subq HOT_BASE(%rdx), %rdi
    movq %rdi, %rdx
    shrq $EVENT_TIME_BITS, %rdx
    jnz 86f
    movq FRAME_ENTER(%rcx), %rdx
    shlq $CONTROL_PAYLOAD_SHIFT, %rdx
    orq $(CONTROL_RESUME << CONTROL_KIND_SHIFT), %rdx
    movq %rdx, (%r11)                   // alone it says nothing: the next word is empty
    EXIT_WORD %rdi, %rdx
    movq %rdi, 8(%r11)
91: TLS movq IN_TLS(THREAD_UNIT), %rdx
    movq $0, FRAME_SLOT(%rcx)
    testq %rsi, %rsi
    jnz 92f
    movq FRAME_BELOW(%rcx), %rdi
    movq %rdi, UNIT_TOP(%rdx)           // from here on a handler may reuse the record
    jmp 93f
92: movq FRAME_OLDER(%rcx), %rdi
    movq %rdi, (%rsi)
    movl $0, FRAME_USE(%rcx)
    decq UNIT_FOREIGN(%rdx)
    movq UNIT_READY(%rdx), %rdi
    movq %rdi, FRAME_OLDER(%rcx)
    movq %rcx, UNIT_READY(%rdx)
93: movl $0, UNIT_BUSY(%rdx)            // … and this one
    POP %rdi
    POP %rsi
    jmp 42b
    CFI_AT_PLACE 16
86: movq $SLOT_ELSEWHERE, FRAME_SLOT(%rcx)
    movq FRAME_LABEL(%rcx), %r11
    andq $-LABEL_BYTES, %r11
    TLS movq IN_TLS(THREAD_UNIT), %rdx
87: movl $0, UNIT_BUSY(%rdx)
88: POP %rdi
    POP %rsi
    jmp 65b
    .endif
    .size tracer_returned_\variant, . - tracer_returned_\variant

    // Off the fast path of entry. r11 = descriptor.
    CFI_AT_PLACE
14: // Its return address has no label where the table is looked at first. rdx = return address, rcx = record to take.
    PUSH %r11
    movq tracer_label_state+LABELS_TABLE(%rip), %rax
    imull $LABEL_HASH, %edx, %r11d
    andl -8(%rax), %r11d
    addq %rax, %r11
17: movq (%r11), %rax
    cmpq %rdx, LABEL_RETURN(%rax)
    je 19f
    cmpq $LABEL_END, LABEL_RETURN(%rax)
    jbe 18f
    addq $8, %r11
    jmp 17b
18: je 20f                              // the end of the table
    leaq tracer_labels(%rip), %rax
    subq %rdx, %rax
    negq %rax
    cmpq $(LABEL_COUNT * LABEL_BYTES), %rax
    jb 20f                              // a tail call of a function whose frame is not the top: for Swift
    movq tracer_label_state+LABELS_NEXT(%rip), %rax
    cmpq tracer_label_state+LABELS_LIMIT(%rip), %rax
    jae 20f
    movl $LABEL_BYTES, %eax
    lock xaddq %rax, tracer_label_state+LABELS_NEXT(%rip)
    cmpq tracer_label_state+LABELS_LIMIT(%rip), %rax
    jae 20f
    movq %rdx, LABEL_RETURN(%rax)
    // Another thread may take the entry first, or exchange the table: then this label is found by nobody else.
    movq %rax, %rdx
    leaq tracer_labels(%rip), %rax
    lock cmpxchgq %rdx, (%r11)
    movq %rdx, %rax
19: .cfi_remember_state
    POP %r11
    jmp 15b
    CFI_AT_PLACE 8
20: POP %r11
    cmpl $0, tracer_label_state+LABELS_FULL(%rip)
    jne 38f
    jmp 30f

21: // Not below the innermost open frame, or the stack is marked as nobody's. rcx = top.
    cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je 28f                              // a child that fork has just made
    cmpl $0, tracer_process+PROCESS_ENABLED(%rip)
    je 24f
    .ifeq \filtered
    cmpl $LAST_STAND_IN, FRAME_LAST(%rcx)
    je 70f
    .endif
    cmpq FRAME_PLACE(%rcx), %rsp
    jne 30f
    // Equal, and the return address is in the frame's label: a tail call of that frame's function. The label has called,
    // and is returned to once: this is a jump.
    movq FRAME_LABEL(%rcx), %rax
    andq $-LABEL_BYTES, %rax
    leaq LABEL_CALL_BYTES(%rax), %rdx
    cmpq %rdx, PLACE_RETURN(%rsp)
    jne 30f
    xorl %edx, %edx
    testl $LABEL_TAIL, FRAME_LABEL(%rcx)
    jz 27f
    movl FRAME_TAILS(%rcx), %edx
27: incl %edx
    cmpl $TAIL_LIMIT, %edx
    jae 30f
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz 22f
    TLS movq %rcx, IN_TLS(THREAD_TOP)
    movq %rsp, FRAME_PLACE(%rcx)
    movq %r11, FRAME_FUNCTION(%rcx)
    addq $LABEL_TAIL, %rax
    movq %rax, FRAME_LABEL(%rcx)
    movl %edx, FRAME_TAILS(%rcx)
    WRITE_ENTER \clock, \filtered, 31f
    jmp 23f

    .ifeq \filtered
70: // Frames on other stacks are open. Who comes here while the unit is busy takes the slow path, and that takes none
    // of the records which are ready.
    FIND_LABEL 30f
    PUSH %rsi
    PUSH %rdi
    movq %rax, %rsi
    leaq 16(%rsp), %rdi
    TLS movq IN_TLS(THREAD_UNIT), %rax
    cmpl $0, UNIT_CHANGING(%rax)
    jne 75f
    btsl $0, UNIT_BUSY(%rax)            // one step: a handler may switch to a context that was interrupted in here
    jc 75f
    TLS movq IN_TLS(THREAD_TOP), %rcx
    cmpl $LAST_STAND_IN, FRAME_LAST(%rcx) // still: from now on it stays
    jne 73f
    cmpq UNIT_STACK_LOW(%rax), %rdi
    jb 71f
    cmpq UNIT_STACK_HIGH(%rax), %rdi
    jae 71f
    cmpq $0, UNIT_SIGNAL_FRAMES(%rax)   // left by a handler that jumped here?
    jne 73f
    cmpq $0, UNIT_FOREIGN(%rax)
    jne 74f
    decl UNIT_PATIENCE(%rax)
    js 73f
74: movq UNIT_TOP(%rax), %rcx
    cmpq FRAME_PLACE(%rcx), %rdi
    jae 73f
    movq FRAME_ABOVE(%rcx), %rcx
    testq %rcx, %rcx
    jz 73f
    movq %rcx, UNIT_TOP(%rax)
    jmp 72f
71: movq %rdi, %rdx
    subq UNIT_SIGNAL_LOW(%rax), %rdx
    cmpq UNIT_SIGNAL_BYTES(%rax), %rdx
    jb 73f
    cmpq $0, UNIT_READY(%rax)
    je 73f
    FIND_LIST %rax, %rdi, %rdx
    movq (%rdx), %rcx
76: testq %rcx, %rcx
    jz 77f
    cmpq %rdi, FRAME_PLACE(%rcx)
    jne 78f
    cmpq %rsi, FRAME_LABEL(%rcx)
    je 73f                              // one of the two is dead, or the program copies its stacks
78: movq FRAME_OLDER(%rcx), %rcx
    jmp 76b
77: movq UNIT_READY(%rax), %rcx
    movq %rdi, FRAME_PLACE(%rcx)
    movq %rsi, FRAME_LABEL(%rcx)
    movq FRAME_OLDER(%rcx), %rdi
    movq %rdi, UNIT_READY(%rax)
    movq (%rdx), %rdi
    movq %rdi, FRAME_OLDER(%rcx)
    movl $USE_OPEN, FRAME_USE(%rcx)
    movl $PATIENCE, UNIT_PATIENCE(%rax)
    incq UNIT_FOREIGN(%rax)
    movq %rcx, (%rdx)
72: movl $0, UNIT_BUSY(%rax)
    movq %rsi, %rax
    POP %rdi
    POP %rsi
    jmp 11b
    CFI_AT_PLACE 16
73: movl $0, UNIT_BUSY(%rax)
75: POP %rdi
    POP %rsi
    jmp 30f
    .endif

    CFI_AT_PLACE
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

    CFI_AT_PLACE
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
    .cfi_def_cfa_offset 8
    .type tracer_special_\variant, @function
tracer_special_\variant:
    SPILL
    cmpl $KIND_TAIL, FUNCTION_KIND(%r11)
    jne 37f
    movq PLACE_RETURN(%rsp), %rax
    leaq tracer_labels(%rip), %rdx
    subq %rdx, %rax
    cmpq $(LABEL_COUNT * LABEL_BYTES), %rax
    jb 28f                              // reached by a tail call: its caller is not in the return slot
    TLS cmpq IN_TLS(THREAD_LOW), %rsp
    jb 29f
    TLS movq IN_TLS(THREAD_TOP), %rax
39: cmpq $0, FRAME_ABOVE(%rax)
    je 22b
38: // An entry of no length.
    .if \filtered
    TLS movq IN_TLS(THREAD_HOT), %rax
    movq HOT_CHUNK(%rax), %rax          // it has no length: always below the filter
    testq %rax, %rax
    jz 30f
    incq CHUNK_FILTERED_TIME(%rax)
    jmp 23b
    .else
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
    jmp 23b
26: decq HOT_PENDING(%rcx)
    jmp 30f
    .endif
37: cmpl $KIND_CALL, FUNCTION_KIND(%r11) // looked at once, and no longer
    je 16b
    cmpl $KIND_ONCE, FUNCTION_KIND(%r11)
    jne 28f
    cmpl $0, (%rdi)                     // the flag: somebody has begun it, or all is done
    jne 16b
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
    je 39b
    .endif
    jmp 30f
28: cmpl $0, tracer_confined(%rip)      // a system call of ours could be forbidden
    jne 23b

30: // Everything is still to be done.
    xorl %eax, %eax
    jmp 33f
    .ifeq \filtered
32: // rcx = the record, which is the top and lacks its event. The slot holds its label already.
    CFI_RETURN_OF_LABEL
    movq PLACE_RETURN(%rsp), %rax
    movq LABEL_RETURN(%rax), %rax
    movq %rax, PLACE_RETURN(%rsp)
    CFI_RETURN_ON_STACK
31: movq FRAME_FUNCTION(%rcx), %r11
    movq %rcx, %rax
    .endif
33: movq %r11, %rcx
    SLOW_CALL tracer_slow_enter
    testq %rcx, %rcx
    jz 23b
    movq FRAME_LABEL(%rcx), %rax
    testl $LABEL_TAIL, %eax
    jnz 23b
    andq $-LABEL_BYTES, %rax
    movq %rax, PLACE_RETURN(%rsp)
    CFI_RETURN_OF_LABEL
    jmp 12b
    .cfi_endproc
    .size tracer_special_\variant, . - tracer_special_\variant
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

// From the place. rdx = function; rcx and rax, whose own values are at the place, are its arguments. All registers but rcx
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
    movq %fs:THREAD_UNIT(%rdi), %rax
    testq %rax, %rax
    jz 4f
    // Another task may run with this thread's block (clone(2) with CLONE_VM and without CLONE_SETTLS: LeakSanitizer's), on a
    // stack of its own and at the same time: nothing of the unit is its own. A child of vfork is on this stack, and alone.
    leaq SPILL_BYTES(%rbp), %rdx
    cmpq UNIT_STACK_LOW(%rax), %rdx
    jb 3f
    cmpq UNIT_STACK_HIGH(%rax), %rdx
    jb 1f
3:  cmpl $0, tracer_process+PROCESS_ALIVE(%rip)
    je 1f                               // a child that fork has just made
    movq %rax, %r9
    movl $SYS_gettid, %eax
    syscall
    xorl %r8d, %r8d
    cmpl UNIT_TID(%r9), %eax
    jne 2f
    movq %r9, %rax
    jmp 1f
4:  // A thread's first slow path: its wiped page, stack and unit in one private mapping, which a fork copies.
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
    ja 2f
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
1:  leaq -256(%rax), %rsp
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
2:  movq %rbp, %rsp
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
    SPILL
    SLOW_CALL tracer_slow_loader_event
    RELOAD
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
1:  SPILL
    movq %rdi, %rcx
    movq %r11, %rax
    SLOW_CALL tracer_slow_span
    RELOAD
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

// Room in the library's own image, where unwinders look for what they find on a stack: labels, what belongs to them at a
// fixed distance, and the first stubs and descriptors. It is in no writable segment, so that nobody looks for pointers in
// it; the agent makes pages of it writable or executable when it needs them. Untouched pages cost nothing.
    .section .room, "a", @nobits
    .p2align 16
    .globl tracer_labels, tracer_room_stubs, tracer_room_mappings
    .hidden tracer_labels, tracer_room_stubs, tracer_room_mappings
    .type tracer_labels, @object
tracer_labels:
    // A frame of size zero. Its CFA is its caller's, so the unwinder must be told by other means that they differ: a
    // *signal frame* does that. But the caller of a signal frame is looked up at its exact pc, which is past the call;
    // hence the expression yields the return address - 1. (libgcc unwind-dw2.c, uw_frame_state_for.)
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa %rsp, 0
    // As CFI_RETURN_OF_LABEL, then const1s -1, plus.
    .cfi_escape 0x16, 16, 14, 0x38, 0x1c, 0x06, 0x09, 0xf0, 0x1a, 0x23, 0x80, 0x80, 0x40, 0x06, 0x09, 0xff, 0x22
    .zero LABEL_COUNT * LABEL_BYTES
    .cfi_endproc
    .size tracer_labels, LABEL_COUNT * LABEL_BYTES
    .zero LABEL_COUNT * LABEL_BYTES     // LABEL_RETURN and LABEL_NEXT of each
    .type tracer_room_stubs, @object
tracer_room_stubs:
    // A return address on top, nothing else.
    .cfi_startproc
    .zero STUB_BLOCK_BYTES
    .cfi_endproc
    .size tracer_room_stubs, STUB_BLOCK_BYTES
    .type tracer_room_mappings, @object
tracer_room_mappings:
    .zero MAPPING_BYTES
    .size tracer_room_mappings, MAPPING_BYTES
    .if LABEL_RETURN != LABEL_COUNT * LABEL_BYTES
    .error "the expressions of CFI_RETURN_OF_LABEL hold LABEL_RETURN"
    .endif

    .bss
    .p2align 12
    .globl tracer_process
    .hidden tracer_process
    .type tracer_process, @object
tracer_process: .zero 4096
    .size tracer_process, 4096
#endif
    .section .note.GNU-stack, "", @progbits
