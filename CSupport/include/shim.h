// The private contract between the trampolines (asm), the C shim and the agent (Swift). Offsets that assembly uses
// are numbers here and asserted against the structures below, so that the three cannot drift apart.
#ifndef TRACER_SHIM_H
#define TRACER_SHIM_H

#include "trace_layout.h"

// struct frame_record: the first 64 bytes, one cache line, are what the fast path uses
#define FRAME_LABEL 0
#define FRAME_PLACE 8
#define FRAME_BELOW 16
#define FRAME_ABOVE 24
#define FRAME_SLOT 32
#define FRAME_ENTER 40
#define FRAME_FUNCTION 48
#define FRAME_TAILS 56
#define FRAME_LAST 60
#define LAST_STAND_IN 2 /* the record is no frame's: it stands in for the top while frames on other stacks are open */
#define FRAME_USE 64
#define USE_OPEN 1 /* 0: the record, of a frame on another stack, is free */
#define USE_FILLING_SPENT 2 /* open, and a word for its enter, if one is reserved, is in a chunk that is left alone */
#define USE_CLOSING_SPENT 3 /* so are the words for its end */
#define USE_ENDED 4 /* it has returned elsewhere, or while its lists were changing: its thread takes it back */
#define FRAME_SIGNAL 68
#define FRAME_OLDER 72
#define FRAME_BYTES 128

// A label: code for one address that calls return to, LABEL_BYTES from the next. FRAME_LABEL is its address and a flag.
#define LABEL_BYTES 16
#define LABEL_COUNT 65536
#define LABEL_TAIL 1 /* a tail call opened the frame: it ends with the one below */
#define LABEL_WATCHED 2 /* the return is for Swift, too */
/* From the label to what belongs to it: the return address, and the next label of the same one (ReturnLabels.swift). */
#define LABEL_RETURN 0x100000
#define LABEL_NEXT 0x100008
#define LABELS_TABLE 0 /* struct label_state */
#define LABELS_NEXT 8
#define LABELS_LIMIT 16
#define LABELS_FULL 24
#define LABEL_END 1 /* in the place of a return address: the end of the table */
#define LABEL_HASH 0x9e3779b1 /* odd; 2^32 over the golden ratio (Knuth, TAOCP 3, 6.4) */

// struct thread_unit
#define UNIT_STAND_IN 128
#define UNIT_TOP 256
#define UNIT_READY 264
#define UNIT_FOREIGN 272
#define UNIT_SIGNAL_FRAMES 280
#define UNIT_STACK_LOW 288
#define UNIT_STACK_HIGH 296
#define UNIT_SIGNAL_LOW 304
#define UNIT_SIGNAL_BYTES 312
#define UNIT_BUSY 320
#define UNIT_CHANGING 324
#define UNIT_PATIENCE 328
#define UNIT_LISTS 336
#define UNIT_TID 344
#define LIST_BITS 9 /* 2^9 lists of open frames on other stacks, by place: 4096 bytes */
#define LIST_HASH 0x4f1bbcdd
#define PATIENCE 16 /* calls on the own stack after the last frame elsewhere has ended, until the fast path is taken again */

// struct thread_state
#define THREAD_TOP 0
#define THREAD_HOT 8
#define THREAD_LOW 16
#define THREAD_UNIT 24

// struct thread_hot
#define HOT_CURSOR 0
#define HOT_LIMIT 8
#define HOT_BASE 16
#define HOT_CHUNK 24
#define HOT_MINIMUM 32
#define HOT_PENDING 40

// struct function_descriptor
#define FUNCTION_TARGET 0
#define FUNCTION_HEAD 8
#define FUNCTION_KIND 16
#define FUNCTION_INSTANT 24
#define FUNCTION_BYTES 32
#define KIND_CALL 0 /* entry and exit are recorded */
#define KIND_TAIL 1 /* entry only, then a jump with the caller's return address in place */
#define KIND_INSPECT 2 /* Swift looks at the arguments of each call and says call or tail */
#define KIND_ONCE 3 /* Swift looks at calls whose flag, the word at the first argument, is 0 */
#define KIND_START 4 /* __libc_start_main: its first argument, main, is exchanged for a stub */
#define KIND_LOAD 5 /* dlopen: its return is for Swift, too */
#define KIND_INITIALIZER 6 /* what the loader or libc calls: so is its return; no event, no place in the chain */

// struct process_page
#define PROCESS_ENABLED 0
#define PROCESS_ALIVE 4
#define PROCESS_DROPPING 8

// What the slow path finds around the place that a frame is known by: the caller's registers.
#if defined(__x86_64__) // the place is three pushes below the return address, which PLACE_RETURN reaches
#define PLACE_RETURN 24
#define SPILL_RSI 16 /* behind the return address of slow_call */
#define SPILL_RDI 24
#define SPILL_R11 56 /* r8 to r11 */
#define SPILL_RAX 64 /* arguments of the slow path */
#define SPILL_RDX 72
#define SPILL_RCX 80
#define SPILL_BYTES 128 /* then rbx, r12 to r15, rbp */
#define SPILL_FIRST SPILL_RDI
#define SPILL_SECOND SPILL_RSI
#define SPILL_THIRD -8
#define SPILL_FOURTH 0
#define LABEL_CALL_BYTES 3 /* from a label to where its call returns to */
#elif defined(__aarch64__) // likewise: x9, x10, x11 and the return address, which comes in x30
#define PLACE_RETURN 24
#define SPILL_X0 16 /* and x1 behind it, and so on */
#define SPILL_X2 32
#define SPILL_X4 48
#define SPILL_X6 64
#define SPILL_X8 80 /* x8, x12 */
#define SPILL_X13 96
#define SPILL_X15 112 /* x15, x17 */
#define SPILL_X18 128 /* x18, x16 */
#define SPILL_X16 120
#define SPILL_X9 144 /* and x10: arguments of the slow path */
#define SPILL_X19 224 /* to x28 */
#define SPILL_MASK 240 /* the program's signal mask */
#define SPILL_BYTES 256 /* then x29 and x30, side by side, as in any frame */
#define SPILL_FIRST SPILL_X0
#define SPILL_SECOND (SPILL_X0 - 8)
#define SPILL_THIRD SPILL_X2
#define SPILL_FOURTH (SPILL_X2 - 8)
#define LABEL_CALL_BYTES 4
#endif

// struct trace_chunk_header
#define CHUNK_FILTERED_TIME 56
#define CHUNK_FILTERED_DEPTH 64
#define CHUNK_DROPPED 72

#define SPAN_MARK 0
#define SPAN_BEGIN 1
#define SPAN_END 2
#define SPAN_NONE 3

// Stubs and descriptors lie in blocks: so many stubs, then their descriptors, which a stub reaches (aarch64: 1 MB). The
// first is in the library's own image.
#define STUB_BYTES 16
#define STUB_BLOCK 16384
#define STUB_BLOCK_BYTES 786432
#define STUB_BLOCKS 16
#define MAPPING_COUNT 16384 /* mappings of the file (mapping_faults.c) */
#define MAPPING_BYTES 262144
/// Tail calls in a row that are kept as nested frames. Beyond it an endless loop of them would eat memory.
#define TAIL_LIMIT 64
/// FRAME_SLOT: 0 while the frame is free or being filled; else the word after its enter event, or one of
#define SLOT_ELSEWHERE 2 /* in an earlier chunk */
#define SLOT_UNWRITTEN 4 /* nowhere yet: under the time filter an enter is written when something inside it is kept */
/// Added while a trampoline writes the end of the frame.
#define SLOT_CLOSING 1
/// Stands for the thread pointer's distance in `mov %fs:…` until the agent has patched the real one in (x86_64).
#define TLS_PLACEHOLDER 0x10000000
/// One mapping a thread: a page that fork wipes (struct thread_hot), the agent's stack, growing down from the unit,
/// and the unit itself with the first frame records.
#if defined(__aarch64__)
#define UNIT_WIPED_BYTES 65536 /* the largest page of the processor; untouched ones cost nothing */
#else
#define UNIT_WIPED_BYTES 4096
#endif
#define UNIT_STACK_BYTES 57344
#define UNIT_BYTES 8192

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct thread_unit;

/// One open traced call: what is known of its event. Where it returns to is in its label.
/// The records of a thread are links of one chain, made in advance: a call takes the record above the top, a return
/// makes the record below the top again. Neither link changes while the record is in use.
struct frame_record {
    uint64_t label; // and LABEL_TAIL, LABEL_WATCHED
    uint64_t place; // stack pointer at the stub's entry, less the registers that are spilled
    struct frame_record *below, *above; // above: NULL at the end of what is allocated, or of TRACER_MAXDEPTH
    uint64_t *slot;
    uint64_t enter_ticks;
    struct function_descriptor *function;
    uint32_t tails; // tail calls that led here, in a row; meaningful with LABEL_TAIL
    uint32_t last;  // 1: the deepest level that may be recorded; LAST_STAND_IN
    // Only for a frame on a stack that is not the thread's own.
    uint32_t use;       // USE_…, 0 free
    uint32_t on_signal_stack;
    struct frame_record *older; // of free records; of open ones, the next in the list of their place
    struct frame_record *next_ended; // of those that returned elsewhere
    struct thread_unit *owner; // whose record it is, for good. NULL: one of the thread's own stack
    uint32_t level; // 0 under the outermost frame
    uint32_t unused;
    uint64_t reserved[3];
};

/// Pages full of records of one thread; in the place of the first.
struct frame_batch {
    struct frame_batch *next;
    uint64_t byte_count;
};

/// Where events go. In a page that the kernel zeroes in a child (MADV_WIPEONFORK): there every chunk is full and no
/// call too short, so that the child's first event takes the slow path, and nothing of the parent's file is touched.
struct thread_hot {
    uint64_t *cursor; // next free word of the chunk
    uint64_t *limit;  // from here on the chunk is full; a few words of slack follow
    uint64_t base;    // ticks that event times count from
    struct trace_chunk_header *chunk;
    uint64_t minimum_ticks;
    uint64_t pending; // tail trampolines that have a word reserved and not written
    uint64_t unused[2];
};

/// Thread-local, initial-exec. A new thread's copy says only that everything is still to be done.
struct thread_state {
    struct frame_record *top; // innermost open frame
    struct thread_hot *hot;
    uint64_t low; // end of the thread's own stack; all ones: every call leaves the fast path
    struct thread_unit *unit; // also the top of the agent's stack for this thread
};

struct function_descriptor {
    const void *target;
    uint64_t head;    // of an enter event
    uint32_t kind;
    uint32_t function;
    uint64_t instant; // head of a complete event of no length
};

/// The kernel zeroes this page in a child (MADV_WIPEONFORK): that is how a fork is noticed, raw clone included.
struct process_page {
    uint32_t enabled;
    uint32_t alive;
    uint32_t dropping; // recording has stopped for want of something: calls are only counted
};

/// Everything of a thread that only the slow path needs.
struct thread_unit {
    struct frame_record base;     // under the outermost frame
    struct frame_record stand_in; // for the top, while calls on other stacks are open: nothing equals it
    struct frame_record *top;     // the real one then
    struct frame_record *ready;   // free records for frames on other stacks, for the trampolines to take
    uint64_t foreign_count;       // open frames on other stacks
    uint64_t signal_frames;       // of them, those on the signal stack
    uint64_t stack_low, stack_high; // of the thread's own stack
    uint64_t signal_low, signal_bytes; // the signal stack, when it was last asked for
    uint32_t busy;                // 1: a trampoline is changing any of these
    uint32_t is_changing;         // the program changes what SIGBUS does, see below
    int32_t patience;
    uint32_t reserved;
    struct frame_record **lists; // open frames on other stacks, by place
    uint32_t tid, index;
    struct frame_record *strays; // those that were opened while the trampolines were changing the lists
    struct frame_batch *foreign_batches; // all records for frames on other stacks …
    struct frame_record *free_foreign; // … free ones that only the slow path takes …
    struct frame_record *ended;        // … and those that were not taken out of their list when they ended
    struct thread_state *state;
    struct thread_hot *hot;
    struct thread_unit *next; // all units of the process
    void *chunk;          // what is mapped now …
    uint64_t chunk_bytes; // … its size …
    uint64_t chunk_offset; // … and where it lies in the file
    uint64_t sequence; // of the chunk that is open
    void *begin_record; // in the file, of this thread
    struct frame_batch *batches; // of records, but for those of frames on other stacks
    uint32_t copies_stack; // 1: a frame that was left has returned
    // While the program changes what SIGBUS does (`is_changing`): the open call, and when it began.
    struct frame_record *change;
    uint64_t change_ticks;
    struct frame_record *initializers; // innermost open one
    struct frame_record *load;         // innermost open dlopen
    struct trace_open_frame *spans;    // open ones, outermost first
    uint64_t span_count, span_capacity;
    uint64_t asked_ticks;  // of the latest dlopen that has not brought anything yet; 0 none
    uint64_t asked_place;  // where it was called
    uint32_t asked_caller; // module
    uint32_t unused;
    char asked_path[256];
};

/// What the trampolines know of labels. Of the process.
struct label_state {
    uint64_t *table; // by return address, open addressing; the word before the first is the mask of an offset. Empty: tracer_labels
    uint64_t next, limit; // the label that is taken next, and up to which one that may be done
    uint32_t is_full;     // 1: of calls from new places only the entry is recorded
};

#define AT(structure, field, offset) (offsetof(struct structure, field) == offset)
_Static_assert(sizeof(struct frame_record) == FRAME_BYTES && AT(frame_record, label, FRAME_LABEL) &&
               AT(frame_record, place, FRAME_PLACE) &&
               AT(frame_record, below, FRAME_BELOW) && AT(frame_record, above, FRAME_ABOVE) &&
               AT(frame_record, slot, FRAME_SLOT) && AT(frame_record, enter_ticks, FRAME_ENTER) &&
               AT(frame_record, function, FRAME_FUNCTION) && AT(frame_record, tails, FRAME_TAILS) &&
               AT(frame_record, last, FRAME_LAST) && AT(frame_record, use, FRAME_USE) &&
               AT(frame_record, on_signal_stack, FRAME_SIGNAL) && AT(frame_record, older, FRAME_OLDER), "frame record");
_Static_assert(AT(thread_unit, stand_in, UNIT_STAND_IN) && AT(thread_unit, top, UNIT_TOP) &&
               AT(thread_unit, ready, UNIT_READY) && AT(thread_unit, foreign_count, UNIT_FOREIGN) &&
               AT(thread_unit, signal_frames, UNIT_SIGNAL_FRAMES) && AT(thread_unit, stack_low, UNIT_STACK_LOW) &&
               AT(thread_unit, stack_high, UNIT_STACK_HIGH) && AT(thread_unit, signal_low, UNIT_SIGNAL_LOW) &&
               AT(thread_unit, signal_bytes, UNIT_SIGNAL_BYTES) && AT(thread_unit, busy, UNIT_BUSY) &&
               AT(thread_unit, is_changing, UNIT_CHANGING) && AT(thread_unit, patience, UNIT_PATIENCE) &&
               AT(thread_unit, lists, UNIT_LISTS) && AT(thread_unit, tid, UNIT_TID), "thread unit");
_Static_assert(AT(thread_state, top, THREAD_TOP) && AT(thread_state, hot, THREAD_HOT) &&
               AT(thread_state, low, THREAD_LOW) && AT(thread_state, unit, THREAD_UNIT), "thread state");
_Static_assert(AT(thread_hot, cursor, HOT_CURSOR) && AT(thread_hot, limit, HOT_LIMIT) &&
               AT(thread_hot, base, HOT_BASE) && AT(thread_hot, chunk, HOT_CHUNK) &&
               AT(thread_hot, minimum_ticks, HOT_MINIMUM) && AT(thread_hot, pending, HOT_PENDING), "thread hot");
_Static_assert(sizeof(struct function_descriptor) == FUNCTION_BYTES &&
               AT(function_descriptor, instant, FUNCTION_INSTANT), "function descriptor");
_Static_assert(STUB_BLOCK_BYTES == STUB_BLOCK * (STUB_BYTES + FUNCTION_BYTES), "stub block");
_Static_assert(AT(process_page, alive, PROCESS_ALIVE) && AT(process_page, dropping, PROCESS_DROPPING), "process page");
_Static_assert(AT(trace_chunk_header, filtered_by_time, CHUNK_FILTERED_TIME) &&
               AT(trace_chunk_header, filtered_by_depth, CHUNK_FILTERED_DEPTH) &&
               AT(trace_chunk_header, dropped, CHUNK_DROPPED), "trace chunk header");
_Static_assert(sizeof(struct thread_unit) + 32 * FRAME_BYTES <= UNIT_BYTES, "thread unit");

_Static_assert(AT(label_state, table, LABELS_TABLE) && AT(label_state, next, LABELS_NEXT) &&
               AT(label_state, limit, LABELS_LIMIT) && AT(label_state, is_full, LABELS_FULL), "label state");

extern __thread struct thread_state tracer_thread __attribute__((visibility("hidden"), tls_model("initial-exec")));
extern struct process_page tracer_process __attribute__((visibility("hidden")));

// Room in the image (trampoline.S). Labels, and LABEL_RETURN behind each what belongs to it; the first block of stubs.
extern uint8_t tracer_labels[] __attribute__((visibility("hidden")));
extern uint8_t tracer_room_stubs[] __attribute__((visibility("hidden")));
extern uint8_t tracer_room_mappings[] __attribute__((visibility("hidden")));
extern struct label_state tracer_label_state __attribute__((visibility("hidden")));
static inline struct label_state *tracer_label_room(void) { return &tracer_label_state; }
static inline uint64_t tracer_address_mappings(void) { return (uint64_t)tracer_room_mappings; }
static inline uint64_t tracer_address_labels(void) { return (uint64_t)tracer_labels; }
static inline void tracer_publish_label_table(uint64_t *table) {
    __atomic_store_n(&tracer_label_state.table, table, __ATOMIC_RELEASE);
}
static inline uint64_t *tracer_label_return(uint64_t label) { return (uint64_t *)(label + LABEL_RETURN); }
static inline uint64_t *tracer_label_next(uint64_t label) { return (uint64_t *)(label + LABEL_NEXT); }

extern uint8_t *tracer_stub_blocks[] __attribute__((visibility("hidden")));
static inline uint8_t *tracer_stub(long index) {
    return tracer_stub_blocks[index / STUB_BLOCK] + index % STUB_BLOCK * STUB_BYTES;
}
static inline struct function_descriptor *tracer_function(long index) {
    return (struct function_descriptor *)(tracer_stub_blocks[index / STUB_BLOCK] + STUB_BLOCK * STUB_BYTES) + index % STUB_BLOCK;
}
static inline uint8_t *tracer_room_stub_block(void) { return tracer_room_stubs; }
static inline void tracer_set_stub_block(long block, uint8_t *place) { tracer_stub_blocks[block] = place; }
/// Of a stub or a descriptor.
static inline long tracer_stub_index(const void *place) {
    for (long block = 0;; block++) {
        unsigned long distance = (unsigned long)((const uint8_t *)place - tracer_stub_blocks[block]);
        if (distance >= STUB_BLOCK_BYTES) continue;
        return block * STUB_BLOCK + (long)(distance < STUB_BLOCK * STUB_BYTES ? distance / STUB_BYTES
                                           : (distance - STUB_BLOCK * STUB_BYTES) / FUNCTION_BYTES);
    }
}

// Labels of the trampolines (arch/*/trampoline.S): never called from C or Swift, only pointed to. One set for each
// clock, with and without a time filter; on aarch64 also for what the processor can and where thread-local state is.
struct trampoline_set { uint64_t enter, special, returned; };
#if defined(__x86_64__)
#define TRAMPOLINE_LABELS(variant) \
    void tracer_enter_##variant(void) __attribute__((visibility("hidden"))); \
    void tracer_special_##variant(void) __attribute__((visibility("hidden"))); \
    void tracer_returned_##variant(void) __attribute__((visibility("hidden")));
TRAMPOLINE_LABELS(cycles)
TRAMPOLINE_LABELS(cycles_filtered)
TRAMPOLINE_LABELS(monotonic)
TRAMPOLINE_LABELS(monotonic_filtered)
#else
extern const struct trampoline_set tracer_trampoline_sets[] __attribute__((visibility("hidden")));
#endif
void tracer_loader_event(void) __attribute__((visibility("hidden")));
extern uint8_t tracer_code_begin[] __attribute__((visibility("hidden")));
extern uint8_t tracer_code_end[] __attribute__((visibility("hidden")));
extern int32_t tracer_tls_sites_begin[] __attribute__((visibility("hidden")));
extern int32_t tracer_tls_sites_end[] __attribute__((visibility("hidden")));

/// The kernel's own convention: a result in -4095 … -1 is minus an errno. Touches neither errno nor the stack.
long tracer_system_call(long number, long a, long b, long c, long d, long e, long f)
    __attribute__((visibility("hidden")));
/// Gives the thread its unit, as its first call would, also while nothing is recorded. The name is any, and not looked at.
void tracer_begin_thread(const char *name) __attribute__((visibility("hidden")));
/// For Calibration: a function that does nothing, and so many calls of a function.
void tracer_nothing(void) __attribute__((visibility("hidden")));
void tracer_call(void (*function)(void), long count) __attribute__((visibility("hidden")));
/// Calls an IFUNC resolver of a module that is relocated.
uint64_t tracer_call_resolver(uint64_t resolver) __attribute__((visibility("hidden")));

// Swift, called by the trampolines on the agent's stack with signals blocked.
// A null result means: record nothing, jump to the target with the caller's return address in place.
struct frame_record *tracer_slow_enter(struct thread_state *, struct function_descriptor *, uint64_t place,
                                       struct frame_record *unwritten) __attribute__((visibility("hidden")));
void tracer_slow_exit(struct thread_state *, uint64_t label, uint64_t place, uint64_t now_ticks)
    __attribute__((visibility("hidden")));
void tracer_slow_loader_event(struct thread_state *, uint64_t unused, uint64_t place) __attribute__((visibility("hidden")));
/// What tracer_mark, tracer_begin and tracer_end do; `kind` is SPAN_….
void tracer_slow_span(struct thread_state *, const char *name, uint64_t place, uint64_t kind)
    __attribute__((visibility("hidden")));
/// Swift, called by the constructor.
void tracer_agent_start(int count, char **arguments, char **environment) __attribute__((visibility("hidden")));
void tracer_agent_end(void) __attribute__((visibility("hidden")));

/// What the slow path blocks: all, and not SIGBUS while `tracer_mapping_fault` handles it.
extern uint64_t tracer_blocked_signals __attribute__((visibility("hidden")));
/// 1: the program has confined itself. Nothing of the agent makes a system call. Not in the page that a fork wipes.
extern uint32_t tracer_confined __attribute__((visibility("hidden")));
/// 1: a page of the file could not be had; recording must stop.
extern uint32_t tracer_mapping_lost __attribute__((visibility("hidden")));

// SIGBUS (mapping_faults.c)
#define BUS_SIGNAL 7
#define BUS_BIT (1ull << (BUS_SIGNAL - 1))
#define ACTION_DEFAULT 0
#define ACTION_IGNORE 1
#define ACTION_RESET 0x80000000ull
/// struct sigaction of the kernel (rt_sigaction; x86 and asm-generic alike).
struct kernel_action {
    uint64_t handler, flags, restorer, mask;
};
/// What the program wants of SIGBUS while our handler stands in for it.
extern struct kernel_action tracer_program_action __attribute__((visibility("hidden")));
static inline uint64_t *tracer_blocked(void) { return &tracer_blocked_signals; }
static inline uint32_t *tracer_confinement(void) { return &tracer_confined; }
static inline uint32_t *tracer_loss(void) { return &tracer_mapping_lost; }
static inline struct kernel_action *tracer_action(void) { return &tracer_program_action; }
void tracer_mapping_add(void *start, uint64_t byte_count) __attribute__((visibility("hidden")));
void tracer_mapping_remove(void *start) __attribute__((visibility("hidden")));
void tracer_mapping_fault(int, void *, void *) __attribute__((visibility("hidden")));
#if defined(__x86_64__)
void tracer_signal_return(void) __attribute__((visibility("hidden")));
static inline uint64_t tracer_address_signal_return(void) { return (uint64_t)&tracer_signal_return; }
#endif
static inline uint64_t tracer_address_mapping_fault(void) { return (uint64_t)&tracer_mapping_fault; }

// Lists of frames (backtraces.c): what the stub of such a function calls, in the place of its target. A second definition
// of one name keeps its own way: there is one original.
struct own_image {
    uint64_t low, high; // the library
};
uint64_t tracer_replace_backtrace(struct own_image, uint64_t target) __attribute__((visibility("hidden")));
/// libunwind's, which is made of its own functions: what captures a context, begins a cursor there, goes on, asks.
uint64_t tracer_replace_list(struct own_image, uint64_t target, uint64_t capture, uint64_t begin, uint64_t step, uint64_t get,
                             int address_register) __attribute__((visibility("hidden")));
#define CURSOR_KINDS 3
/// Of libunwind's cursors, of one kind: what goes to the next frame (`get` asks for a register there), and what asks.
uint64_t tracer_replace_step(struct own_image, uint64_t target, uint64_t get, int kind, int address_register)
    __attribute__((visibility("hidden")));
uint64_t tracer_replace_get(struct own_image, uint64_t target, int kind, int address_register)
    __attribute__((visibility("hidden")));
uint64_t tracer_replace_unwind_backtrace(struct own_image, uint64_t target, uint64_t get_ip)
    __attribute__((visibility("hidden")));

static inline struct thread_state *tracer_thread_state(void) { return &tracer_thread; }
static inline struct process_page *tracer_process_page(void) { return &tracer_process; }
static inline uint64_t tracer_address_loader_event(void) { return (uint64_t)&tracer_loader_event; }
/// The page-aligned code that holds the trampolines, and where in it thread-pointer distances stand: each entry is the
/// distance from itself to a 32-bit displacement (x86_64) or an instruction (aarch64).
static inline uint64_t tracer_code_low(void) { return (uint64_t)tracer_code_begin; }
static inline uint64_t tracer_code_high(void) { return (uint64_t)tracer_code_end; }
static inline int32_t *tracer_tls_sites(void) { return tracer_tls_sites_begin; }
static inline long tracer_tls_site_count(void) { return tracer_tls_sites_end - tracer_tls_sites_begin; }

// Places of links, which outlive the calls that Swift would make of them.
static inline struct frame_record **tracer_strays(struct thread_unit *unit) { return &unit->strays; }
static inline struct frame_record **tracer_older(struct frame_record *frame) { return &frame->older; }

// Arrays inside structures, which Swift sees as tuples.
static inline char *tracer_asked_path(struct thread_unit *unit) { return unit->asked_path; }
static inline char *tracer_thread_name(void *chunk) { return ((struct trace_chunk_header *)chunk)->thread_name; }

/// Hands out a range: the one word of the file that threads contend for. Relaxed: nothing is published by it.
static inline uint64_t tracer_atomic_add(uint64_t *word, uint64_t amount) {
    return __atomic_fetch_add(word, amount, __ATOMIC_RELAXED);
}
static inline void tracer_atomic_max(uint64_t *word, uint64_t value) {
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (now < value && !__atomic_compare_exchange_n(word, &now, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static inline uint64_t tracer_load_acquire(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline void tracer_store_release_16(uint16_t *word, uint16_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
static inline void tracer_store_release_32(uint32_t *word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
static inline void tracer_store_release_64(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
/// True when the lock was free. Acquire pairs with the release of tracer_unlock.
static inline int tracer_try_lock(uint32_t *lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0; }
static inline void tracer_unlock(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }
static inline void tracer_prefetch(const void *place) { __builtin_prefetch(place); }
static inline uint64_t tracer_thread_pointer(void) { return (uint64_t)__builtin_thread_pointer(); }

#if defined(__x86_64__)
#include "shim_x86_64.h"
#elif defined(__aarch64__)
#include "shim_aarch64.h"
#endif

// The loader's own view, <link.h>. Declared here because the agent includes no libc header.
struct loader_module { // struct link_map
    uint64_t bias;
    const char *name;
    const void *dynamic;
    struct loader_module *next, *previous;
};
struct loader_debug { // struct r_debug; `next` is there when version > 1 (glibc 2.35)
    int32_t version;
    struct loader_module *first;
    uint64_t hook;
    int32_t state; // 0 consistent, 1 adding, 2 deleting
    uint64_t loader_base;
    struct loader_debug *next;
};
extern struct loader_debug _r_debug __attribute__((weak));
static inline struct loader_debug *tracer_loader_debug(void) { return &_r_debug; }
#endif
#endif
