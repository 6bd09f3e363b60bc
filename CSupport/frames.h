// Threads, open calls and labels, as the trampolines (asm), C and the agent (Swift) know them. Offsets that assembly uses are numbers
// here and asserted against the structures below, so that the three cannot drift apart.
#ifndef TRACER_FRAMES_H
#define TRACER_FRAMES_H

#include "trace_layout.h"

// struct frame_record: the first 64 bytes, one cache line, are what the fast path uses
#define FRAME_LABEL 0
#define FRAME_STACK_POINTER 8
#define FRAME_BELOW 16
#define FRAME_ABOVE 24
#define FRAME_EVENT 32
#define FRAME_ENTER 40
#define FRAME_FUNCTION 48
#define FRAME_TAILS 56
#define FRAME_LAST 60
#define LAST_CHILD 3 /* the record that stands in for the top while a child of vfork runs: everything passes */
#define LAST_ALTERNATE_MODE 2 /* the record is no frame's: it stands in for the top while frames on other stacks are open */
#define FRAME_USE 64
#define USE_OPEN 1 /* 0: the record, of a frame on another stack, is free */
#define USE_FILLING_SPENT 2 /* open, and a word for its enter, if one is reserved, is in a chunk that is left alone */
#define USE_CLOSING_SPENT 3 /* likewise for the words of its end */
#define USE_ENDED 4 /* it has returned elsewhere, or while its lists were changing: its thread takes it back */
#define FRAME_SIGNAL 68
#define FRAME_OLDER 72
#define FRAME_WORDS 100
#define FRAME_BYTES 128

// A label: code for one address that calls return to, LABEL_BYTES from the next. FRAME_LABEL is its address and a flag.
#define LABEL_BYTES 16
#define LABEL_COUNT 65536
#define LABEL_TAIL 1 /* a tail call opened the frame: it ends with the one below */
#define LABEL_WATCHED 2 /* the return is for Swift, too */
#define LABEL_RESULT 8 /* the return is for Swift, which records the result */
#define LABEL_LOST 4 /* the enter could not be written: nor is the end. With LABEL_WATCHED */
/* From the label to what belongs to it: the return address, and the next label of the same one (ReturnLabels.swift). */
#define LABEL_RETURN 0x100000
#define LABEL_NEXT 0x100008
/* Labels come in blocks: LABEL_BLOCK_CODE bytes of code, and as many of what belongs to them. */
#define LABEL_BLOCK_CODE LABEL_RETURN
#define LABEL_LIBRARY_BLOCKS 16 /* blocks in libtracer-labels.so (Sources/Agent/LabelLibrary); libtracer.so has one */
#define LABEL_LIBRARY_SLOT_BLOCKS 2 /* how many of them are for calls through slots, where functions are patched */
#define LABEL_LIBRARY_VERSION 1
#define AREA_LOW 0 /* struct label_area */
#define AREA_SPAN 8
#define LABELS_TABLE 0 /* struct label_state */
#define LABELS_NEXT 8
#define LABELS_LIMIT 16
#define LABELS_FULL 24
#define LABELS_BYTES 56
/* In the place of a return address: an empty entry of the table, and its end. Not 0, which is below the first frame of a stack. */
#define LABEL_EMPTY 1
#define LABEL_END 2
#define LABEL_HASH 0x9e3779b1 /* odd; 2^32 over the golden ratio (Knuth, TAOCP 3, 6.4) */

// struct thread_context
#define CONTEXT_ALTERNATE_MODE 128
#define CONTEXT_TOP 256
#define CONTEXT_READY 264
#define CONTEXT_ALTERNATE 272
#define CONTEXT_SIGNAL_FRAMES 280
#define CONTEXT_STACK_LOW 288
#define CONTEXT_STACK_HIGH 296
#define CONTEXT_SIGNAL_LOW 304
#define CONTEXT_SIGNAL_BYTES 312
#define CONTEXT_BUSY 320
#define CONTEXT_CHANGING 324
#define CHANGING_ACTION 1 /* the program is changing SIGBUS's action */
#define CHANGING_SHARED 2 /* a child may run in this memory */
#define CHANGING_DEPARTED 4 /* a frame of this thread has returned on another one */
#define CHANGING_COUNTED 8 /* calls on other stacks are counted against a depth limit */
#define CONTEXT_PATIENCE 328
#define CONTEXT_SHARING 332
#define SHARING_SUSPENDED 1 /* a child may run in this memory and with this context while its parent, the context's thread, waits */
#define SHARING_CONCURRENT 2 /* … at the same time: it is asked each time who it is */
#define CHILDREN 8
#define THROWS 8
#define CONTEXT_LISTS 336
#define CONTEXT_TID 344
#define CONTEXT_LIST_MASK 352
#define LIST_BITS 9 /* 2^9 lists of open frames on other stacks, by stack pointer, at first: 4096 bytes … */
#define MOST_LIST_BITS 15 /* … and this many when there are very many frames */
#define LIST_HASH 0x4f1bbcdd
#define PATIENCE 16 /* calls on the own stack after the last frame elsewhere has ended, until the fast path is taken again */

// struct thread_state
#define THREAD_TOP 0
#define THREAD_POSITION 8
#define THREAD_LOW 16
#define THREAD_CONTEXT 24
#define THREAD_PASSES 32
#define THREAD_COUNTS 48
#define PASSES_RECORDED -0x40000000 /* below: the thread records its calls of counted functions, since it may not count them */

// struct write_position
#define POSITION_CURSOR 0
#define POSITION_LIMIT 8
#define POSITION_BASE 16
#define POSITION_CHUNK 24
#define POSITION_MINIMUM 32
#define POSITION_PENDING 40
#define POSITION_PENDING_STACK 48

// Caller's registers, as the slow path finds them around the stack pointer that a frame is known by.
#if defined(__x86_64__) // three pushes below the return address, which RETURN_SLOT reaches
#define RETURN_SLOT 24
#define SPILL_RSI 24 /* after the return address of slow_call, and a word */
#define SPILL_RDI 32
#define SPILL_R11 64 /* r8 to r11 */
#define SPILL_LAZY SPILL_R11
#define SPILL_RAX 72 /* arguments of the slow path */
#define SPILL_RDX 80
#define SPILL_RCX 88
#define SPILL_BYTES 136 /* then rbx, r12 to r15, rbp */
#define SAVED_VECTORS_BYTES 256 /* xmm0 to xmm15, at the top of the agent's stack while a slow path runs */
#define SPILL_FIRST SPILL_RDI
#define SPILL_SECOND SPILL_RSI
#define SPILL_THIRD -8
#define SPILL_FOURTH 0
#define SPILL_FIFTH 40 /* r9 after it */
#define ARGUMENT_REGISTERS 6 /* psABI 3.2.3; later arguments are words on the stack */
#define LABEL_CALL_BYTES 3 /* 4 for patched functions */
#define LABEL_KINDS 2 /* one for calls through slots, one for patched functions, which keep r11 */
#define LABEL_SLOT_COUNT 16384 /* for calls through slots, where functions are patched; those have the rest, two each */
#elif defined(__aarch64__) // likewise: x9, x10, x11 and the return address, which comes in x30
#define RETURN_SLOT 24
#define SPILL_X0 16 /* and x1 after it, and so on */
#define SPILL_X2 32
#define SPILL_X4 48
#define SPILL_X6 64
#define SPILL_X8 80 /* x8, x12 */
#define SPILL_X13 96
#define SPILL_X15 112 /* x15, x17 */
#define SPILL_LAZY 104
#define SPILL_X18 128 /* x18, x16 */
#define SPILL_X16 120
#define SPILL_X9 144 /* and x10: arguments of the slow path */
#define SPILL_X19 224 /* to x28 */
#define SPILL_MASK 240 /* the program's signal mask */
#define SPILL_BYTES 256 /* then x29 and x30, side by side, as in any frame */
#define SAVED_VECTORS_BYTES 528 /* q0 to q31 and fpsr, at the top of the agent's stack while a slow path runs */
#define SPILL_FIRST SPILL_X0
#define SPILL_SECOND (SPILL_X0 - 8)
#define SPILL_THIRD SPILL_X2
#define SPILL_FOURTH (SPILL_X2 - 8)
#define ARGUMENT_REGISTERS 8 /* AAPCS64 6.8.2 */
#define LABEL_CALL_BYTES 4
#define LABEL_SLOT_COUNT LABEL_COUNT
#define LABEL_KINDS 1 /* x16 and x17 are free at any call (AAPCS64 6.1.1): patched functions have no labels of their own */
#endif

/// Distance by which a frame that its function's own instrumentation opened is distinguished: its stack pointer lies this far above that
/// of the calls that the function makes from there, and below that of the function's own call, since frames are multiples of 16 bytes.
/// No other frame has such a stack pointer.
#define INSTRUMENTED_ABOVE 8
#define INSTRUMENTED_ABOVE_BIT 3

/// Tail calls in a row that are kept as nested frames. Beyond it an endless loop of them would eat memory.
#define TAIL_LIMIT 64
/// FRAME_EVENT: 0 while the frame is free or being filled; else the word after its enter event, or one of
#define FRAME_ELSEWHERE 2 /* in an earlier chunk */
#define FRAME_UNWRITTEN 4 /* nowhere: it could not be written, or is about to be, by the slow path */
/// Added while a trampoline writes the end of the frame.
#define FRAME_CLOSING 1
/// Memory of a thread: the agent's stack, growing down from the context, and the context itself with the first frame records; and,
/// elsewhere (ContextPool.swift), a page that fork wipes (struct write_position).
#define CONTEXT_STACK_BYTES 57344
#define CONTEXT_BYTES 8192
#define READY_CONTEXTS 8 /* contexts for future threads, for the trampolines to take */

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct function_hook;
struct thread_context;

/// One open recorded call: what is known of its event. Where it returns to is in its label.
/// The records of a thread are links of one chain, made in advance: a call takes the record above the top, a return
/// makes the record below the top again. Neither link changes while the record is in use.
struct frame_record {
    uint64_t label; // and LABEL_TAIL, LABEL_WATCHED, LABEL_LOST
    uint64_t stack_pointer; // at the stub's entry, less the registers that are spilled; 0 in a free record of the chain
    struct frame_record *below, *above; // above: NULL at the end of what is allocated, or of TRACER_MAXDEPTH
    uint64_t *event;
    uint64_t enter_ticks;
    struct function_hook *function;
    uint32_t tails; // tail calls that led here, in a row; meaningful with LABEL_TAIL
    uint32_t last;  // 1: the deepest level that may be recorded; LAST_ALTERNATE_MODE
    // Only for a frame on a stack that is not the thread's own.
    uint32_t use;       // USE_…, 0 free
    union {
        uint32_t on_signal_stack;
        uint32_t settled; // how many frames on the thread's own stack up to this one have their enter in an earlier chunk
    };
    struct frame_record *older; // next free record; in an open one, the next in the list of its stack pointer
    union {
        struct frame_record *next_ended; // next record whose frame returned elsewhere
        uint64_t settled_ticks; // enter_ticks of a frame on the thread's own stack when `settled` was counted (ThreadChunk.swift)
    };
    struct thread_context *owner; // the owner, for good. NULL: it is one of the thread's own stack
    uint32_t level; // 0 under the outermost frame
    uint32_t words; // bytes of the words of its enter, which a time filter may take back; without one, only where the slow path wrote them
    union {
        uint64_t reserved[2];
        uint64_t departed; // when it returned on another thread than its owner; 0: its owner need not know. Only once it has ended
    };
    uint64_t argument; // the word that says the call's object, 0 none; of a function with one, and meaningful until its enter is written
};

/// Pages full of records of one thread; in the place of the first.
struct frame_batch {
    struct frame_batch *next;
    uint64_t byte_count;
};

/// Position at which events are written, in a page that the kernel zeroes in a child (MADV_WIPEONFORK): there every chunk is full and
/// no call too short, so that the child's first event takes the slow path, and nothing of the parent's file is touched.
struct write_position {
    uint64_t *cursor; // next free word of the chunk
    uint64_t *limit; // from here on the chunk is full; a few words of slack follow
    uint64_t base; // ticks that event times count from
    struct trace_chunk_header *chunk;
    uint64_t minimum_ticks;
    uint64_t pending; // entry-only trampolines that have a word reserved and not written …
    uint64_t pending_stack; // … and at least the stack pointer of the outermost; 0 where there is none
    uint64_t unused;
};

/// Thread-local, initial-exec. A new thread's copy says only that everything is still to be done.
struct thread_state {
    struct frame_record *top; // innermost open frame
    struct write_position *position;
    uint64_t low; // end of the thread's own stack; all ones: every call leaves the fast path. Only its thread writes here: where
    // it lies may be unmapped, or used for something else, once the thread has ended
    struct thread_context *context; // also the top of the agent's stack for this thread
    int64_t passes; // how many more calls of suppressed functions pass before Swift looks at one (PassedCalls.swift, HotFunctions.swift)
    uint64_t passes_ticks; // when it looked last; 0 never
    uint8_t *counts; // the thread's counters; not NULL where `passes` is positive. Once set it stays for the thread's life
};

/// A call that raises an exception or lets one go on, on another stack; it never returns.
struct throwing_call {
    struct frame_record *frame; // used for another call since, if that began at another time
    uint64_t enter_ticks, exception;
    uint64_t is_first; // 1: it raises the exception, 0: it lets it go on after a destructor has run
};

/// A chunk that was full while a signal had interrupted a trampoline, which may have a word reserved there.
#define PENDING_CHUNKS 16
struct pending_chunk {
    void *address;
    uint64_t byte_count;
    uint64_t offset; // 0: it lies in no file any more, or in another process's
};

/// Everything of a thread that only the slow path needs.
struct thread_context {
    struct frame_record base; // under the outermost frame
    struct frame_record alternate_mode; // for the top, while calls on other stacks are open: nothing equals it
    struct frame_record *top; // the real one then
    struct frame_record *ready; // free records for frames on other stacks, for the trampolines to take
    uint64_t alternate_count; // open frames on other stacks
    uint64_t signal_frames; // how many of them are on the signal stack
    uint64_t stack_low, stack_high; // bounds of the thread's own stack
    uint64_t signal_low, signal_bytes; // the signal stack, when it was last asked for
    uint32_t busy; // 1: a trampoline is changing any of these
    uint32_t is_changing; // CHANGING_…: not for the trampolines
    int32_t patience;
    uint32_t sharing; // SHARING_…
    struct frame_record **lists; // open frames on other stacks, by stack pointer
    uint32_t tid, index;
    uint32_t list_mask; // one less than there are lists
    uint32_t depth; // levels that its chain of frames has at most; 0: no limit
    struct frame_record *unsorted; // frames that were opened while the trampolines were changing the lists
    struct frame_batch *alternate_batches; // all records for frames on other stacks …
    struct frame_record *free_alternate; // … free ones that only the slow path takes …
    struct frame_record *ended; // … and those that were not taken out of their list when they ended
    struct thread_state *state;
    struct write_position *position;
    struct thread_context *next, *previous; // all contexts of the process (ThreadContexts.swift)
    struct thread_context *same_block; // the next one in the same chain
    void *chunk; // the mapped chunk …
    uint64_t chunk_bytes; // … its size …
    uint64_t chunk_offset; // … and where it lies in the file
    uint64_t sequence; // sequence number of the open chunk
    void *begin_record; // in the file, of this thread
    struct frame_batch *batches; // frame records, except those for frames on other stacks
    uint32_t copies_stack; // 1: a frame that was left has returned
    uint32_t spent_count; // frames on other stacks with USE_…_SPENT, when a chunk was opened last
    // While the program changes what SIGBUS does: the open call, and when it began.
    struct frame_record *change;
    uint64_t change_ticks;
    struct frame_record *initializers; // innermost open one
    struct frame_record *load; // innermost open dlopen
    struct trace_open_frame *spans; // open ones, outermost first
    uint64_t span_count, span_capacity;
    uint64_t asked_ticks; // when the latest dlopen that has not brought anything yet was called; 0 none
    uint64_t asked_stack_pointer; // stack pointer of that call
    uint32_t asked_caller; // module
    uint32_t has_gap; // 1: words were lost since the chunk was full, for want of another
    char asked_path[256];
    struct frame_record child; // LAST_CHILD
    struct frame_record *sharing_calls; // open ones of vfork and its kind, innermost first
    uint32_t children[CHILDREN]; // ids of the children that run concurrently
    uint32_t unknown_children, looks; // how many more; how often was looked whether they live
    uint64_t visitors; // other threads that have one of its frames on other stacks in their hands
    uint32_t looks_at_all, preemptions, waits; // HotFunctions.swift: the beginning of the measuring, and the thread's switches
    uint32_t session; // number of the file that the thread's chunk is in: each attach begins one (ThreadRecorder.swift)
    uint64_t cpu_ticks, cpu_ns; // when an initializer ended: the moment, in ticks, and the thread's CPU time then, in nanoseconds
    struct throwing_call throws[THROWS]; // the latest calls that threw while frames on other stacks were open …
    uint64_t throw_count; // … and how many there have been: the next one is at this number modulo THROWS
    uint64_t caught; // exception that was caught last
    uint64_t look_at; // number of open frames on other stacks at which those that were left are looked for
    // PassedCalls.swift: the chunk with the thread's counters, what each was when a call of its function was sampled last, and the state of a
    // generator of random numbers.
    void *passed_chunk;
    uint64_t *passed_marks;
    uint64_t random, interval; // `interval`: calls that passed from one sample to the next
    struct pending_chunk pending_chunks[PENDING_CHUNKS];
    uint64_t pending_chunk_count;
};

/// Address range of the labels, from the first one to the end of the last block.
struct label_area {
    uint64_t low, span;
};

/// Description of the label library, libtracer-labels.so.
struct label_library {
    uint32_t version, block_count;
    int64_t distance; // to the first label, from here
};

/// Labels of one kind (calls through slots, or patched functions) in this process, for the trampolines.
struct label_state {
    uint64_t *table; // labels by return address, open addressing; the word before the first is the offset mask. Empty: the first label.
    // While recording is off this is a table without free entries: who finds no label asks why
    uint64_t next, limit; // the label that is taken next, and up to which one that may be done
    uint32_t is_full; // 1: of calls from new call sites only the entry is recorded
    // For Swift alone (ReturnLabels.swift):
    uint32_t table_count;
    uint64_t written; // the code of those below is there
    uint64_t free; // labels of code that is no longer mapped, linked by LABEL_NEXT
    uint64_t *open_table; // as `table` while recording is on
};

#define AT(structure, field, offset) (offsetof(struct structure, field) == offset)
_Static_assert(sizeof(struct frame_record) == FRAME_BYTES && AT(frame_record, label, FRAME_LABEL) &&
                   AT(frame_record, stack_pointer, FRAME_STACK_POINTER) && AT(frame_record, below, FRAME_BELOW) &&
                   AT(frame_record, above, FRAME_ABOVE) && AT(frame_record, event, FRAME_EVENT) &&
                   AT(frame_record, enter_ticks, FRAME_ENTER) && AT(frame_record, function, FRAME_FUNCTION) &&
                   AT(frame_record, tails, FRAME_TAILS) && AT(frame_record, last, FRAME_LAST) && AT(frame_record, use, FRAME_USE) &&
                   AT(frame_record, on_signal_stack, FRAME_SIGNAL) && AT(frame_record, older, FRAME_OLDER) &&
                   AT(frame_record, words, FRAME_WORDS),
               "frame record");
_Static_assert(AT(thread_context, alternate_mode, CONTEXT_ALTERNATE_MODE) && AT(thread_context, top, CONTEXT_TOP) &&
                   AT(thread_context, ready, CONTEXT_READY) && AT(thread_context, alternate_count, CONTEXT_ALTERNATE) &&
                   AT(thread_context, signal_frames, CONTEXT_SIGNAL_FRAMES) && AT(thread_context, stack_low, CONTEXT_STACK_LOW) &&
                   AT(thread_context, stack_high, CONTEXT_STACK_HIGH) && AT(thread_context, signal_low, CONTEXT_SIGNAL_LOW) &&
                   AT(thread_context, signal_bytes, CONTEXT_SIGNAL_BYTES) && AT(thread_context, busy, CONTEXT_BUSY) &&
                   AT(thread_context, is_changing, CONTEXT_CHANGING) && AT(thread_context, patience, CONTEXT_PATIENCE) &&
                   AT(thread_context, sharing, CONTEXT_SHARING) && AT(thread_context, lists, CONTEXT_LISTS) &&
                   AT(thread_context, list_mask, CONTEXT_LIST_MASK) && AT(thread_context, tid, CONTEXT_TID),
               "thread context");
_Static_assert(AT(thread_state, top, THREAD_TOP) && AT(thread_state, position, THREAD_POSITION) && AT(thread_state, low, THREAD_LOW) &&
                   AT(thread_state, context, THREAD_CONTEXT) && AT(thread_state, passes, THREAD_PASSES) &&
                   AT(thread_state, counts, THREAD_COUNTS),
               "thread state");
_Static_assert(AT(write_position, cursor, POSITION_CURSOR) && AT(write_position, limit, POSITION_LIMIT) &&
                   AT(write_position, base, POSITION_BASE) && AT(write_position, chunk, POSITION_CHUNK) &&
                   AT(write_position, minimum_ticks, POSITION_MINIMUM) && AT(write_position, pending, POSITION_PENDING) &&
                   AT(write_position, pending_stack, POSITION_PENDING_STACK),
               "write position");
_Static_assert(sizeof(struct thread_context) + 32 * FRAME_BYTES <= CONTEXT_BYTES, "thread context");

_Static_assert(AT(label_state, table, LABELS_TABLE) && AT(label_state, next, LABELS_NEXT) && AT(label_state, limit, LABELS_LIMIT) &&
                   AT(label_state, is_full, LABELS_FULL) && sizeof(struct label_state) == LABELS_BYTES,
               "label state");
_Static_assert(AT(label_area, low, AREA_LOW) && AT(label_area, span, AREA_SPAN), "label area");
_Static_assert(LABEL_COUNT *LABEL_BYTES == LABEL_BLOCK_CODE, "libtracer.so has one block");
_Static_assert(LABEL_LIBRARY_BLOCKS * 2 * LABEL_BLOCK_CODE / LABEL_BYTES <= 1 << 24,
               "the index of a label is in the upper three bytes of trace_open_frame.flags (Frame.swift, siteTag)");

/// Contexts of threads to come, or 0; a thread's first slow path takes one (ContextPool.swift).
extern uint64_t tracer_ready_contexts[READY_CONTEXTS] __attribute__((visibility("hidden")));
extern __thread struct thread_state tracer_thread __attribute__((visibility("hidden"), tls_model("initial-exec")));
static inline struct thread_state *tracer_thread_state(void) { return &tracer_thread; }
static inline uint64_t tracer_thread_pointer(void) { return (uint64_t)__builtin_thread_pointer(); }

// Addresses of links, which outlive the calls that Swift would make of them.
static inline struct frame_record **tracer_unsorted(struct thread_context *context) { return &context->unsorted; }
static inline struct thread_context **tracer_same_block(struct thread_context *context) { return &context->same_block; }
static inline struct frame_record **tracer_older(struct frame_record *frame) { return &frame->older; }

// Arrays inside structures, which Swift sees as tuples.
static inline uint64_t *tracer_ready_context(int number) { return &tracer_ready_contexts[number]; }
static inline struct frame_record *tracer_child(struct thread_context *context) { return &context->child; }
static inline uint32_t *tracer_children(struct thread_context *context) { return context->children; }
static inline uint32_t *tracer_changing(struct thread_context *context) { return &context->is_changing; }
static inline struct throwing_call *tracer_throws(struct thread_context *context) { return context->throws; }
static inline struct pending_chunk *tracer_pending_chunks(struct thread_context *context) { return context->pending_chunks; }
static inline char *tracer_asked_path(struct thread_context *context) { return context->asked_path; }
#endif
#endif
