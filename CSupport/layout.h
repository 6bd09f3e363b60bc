// The private contract between the trampolines (asm), C and the agent (Swift): functions and their stubs, the process, and who
// calls whom. Offsets that assembly uses are numbers here and asserted against the structures below.
#ifndef TRACER_LAYOUT_H
#define TRACER_LAYOUT_H

#include "frames.h"

// struct function_hook
#define FUNCTION_TARGET 0
#define FUNCTION_HEAD 8
#define FUNCTION_KIND 16
#define FUNCTION_ARGUMENT 17
#define FUNCTION_HAS_VALUES \
    0x80 /* in FUNCTION_ARGUMENT: its arguments are recorded, by the program that FUNCTION_COUNTER is (call_values.c) */
#define FUNCTION_COUNTER 18
#define FUNCTION_ID 20
#define FUNCTION_INSTANT 24
#define FUNCTION_ENTER 24 /* in a patched function's hook: where its stub goes */
#define FUNCTION_BYTES 32
#define KIND_CALL 0 /* entry and exit are recorded */
#define KIND_ENTRY_ONLY 1 /* entry only, then a jump with the caller's return address in place */
#define KIND_INSPECT 2 /* Swift looks at the arguments of each call and says call or entry only */
#define KIND_ONCE 3 /* Swift looks at calls whose flag, the word at the first argument, is 0 */
#define KIND_START 4 /* __libc_start_main: its first argument, main, is exchanged for a stub */
#define KIND_LOAD 5 /* dlopen: its return is for Swift, too */
#define KIND_NUMBER 7 /* syscall: Swift looks at the calls with a number that matters */
#define KIND_PATCHED 8 /* like KIND_CALL, of a function whose own first bytes lead here */
#define KIND_UNNAMED 9 /* the same before its first call: it has no id, but its module's index, and above it these bits */
#define UNNAMED_BOUNDED 0x80000000u /* PLAN_FUNCTION_BOUNDED */
#define UNNAMED_WAITS 0x40000000u /* PLAN_FUNCTION_WAITS */
#define KIND_APART 10 /* Swift looks at its calls while frames on other stacks are open */
#define KIND_OPENS 11 /* and TRACE_OPENS_ above it: the return, with a file descriptor, is for Swift, too */
#define KIND_ARGUMENTS 24 /* Swift records each call, with its arguments: FUNCTION_COUNTER is their program (ArgumentPlan.swift) */
#define KIND_PATCHED_ARGUMENTS 25 /* the same of a function whose own first bytes lead here */
#define KIND_INITIALIZER 6 /* called by the loader or libc, to which it returns; no event, no record in the chain */

// struct process_page
#define PROCESS_ENABLED 0
#define PROCESS_ALIVE 4
#define PROCESS_DROPPING 8
#define PROCESS_DROPPED 16

// struct trace_chunk_header
#define CHUNK_FILTERED_TIME 56
#define CHUNK_FILTERED_DEPTH 64
#define CHUNK_DROPPED 72

#define SLOW_ORDINARY 1 /* result of tracer_slow_enter that is no frame */

// struct value_program, struct value_piece
#define PROGRAM_PIECES 0
#define PROGRAM_HEAD 8
#define PROGRAM_RESULT_HEAD 16
#define PROGRAM_MASK 24
#define PROGRAM_RESULT_MASK 32
#define PROGRAM_ONLY 40
#define PROGRAM_RESERVED 42
#define PROGRAM_RESULT_RESERVED 43
#define PROGRAM_RESULT_BYTES 44
#define PROGRAM_RESULT_CHECK 45
#define PROGRAM_TESTS 46
#define PROGRAM_WORDS 48
#define PROGRAM_SPACE 61
#define PROGRAM_SHIFT 6
#define PROGRAM_BYTES (1 << PROGRAM_SHIFT)
#define PIECE_OFFSET 0
#define PIECE_UP 2
#define PIECE_DOWN 3
#define PIECE_BYTES 4
#define PIECE_ENDS 0x80 /* in PIECE_DOWN: its word; in PIECE_UP: the last word */
#define RESULT_IS_MINUS_ONE 1 /* in PROGRAM_RESULT_CHECK */
#define RESULT_IS_ZERO 2
#define RESULT_IS_SWIFTS 2 /* a string that only Swift reads */
#define VALUE_WORD_BYTES 7 /* ARGUMENTS_DATA_BYTES */
#define VALUE_WORDS 16 /* DATA words that the trampolines write, at most: they fit into the slack of a chunk */
#define VALUE_TAIL 4 /* CONTROL_VALUES_TAIL_BYTES, the upper half of the word that says whose they are */

#define SPAN_MARK 0
#define SPAN_BEGIN 1
#define SPAN_END 2
#define SPAN_NONE 3
#define SPAN_SNAPSHOT 4

// Stubs and hooks lie in blocks: a number of stubs, then their hooks, which a stub reaches (aarch64: 1 MB). The
// first is in the library's own image.
#define STUB_BYTES 16
#define STUB_BLOCK 16384
#define STUB_BLOCK_BYTES 786432
#define STUB_BLOCKS 16
#define MAPPING_COUNT 16384 /* mappings of the file (mapping_faults.c) */
#define MAPPING_BYTES 262144
/// Stands for the thread pointer's distance in `mov %fs:…` until the agent has patched the real one in (x86_64).
#define TLS_PLACEHOLDER 0x10000000
#define CLOCK_BYTES 9 /* size of the instructions that read the cycle counter (x86_64) */
#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>
#include "atomics.h"
#include "loader.h"
#include "relocated_code.h"
#include "scan_cache.h"

struct function_hook {
    const void *target;
    uint64_t head;    // head of an enter event; where only first calls count (CalledFunctions.swift): how many more calls are let by
    uint8_t kind;
    uint8_t argument; // number of the argument that its calls record, from 1; 0 none. In KIND_NUMBER: for calls of futex alone. And
                      // FUNCTION_HAS_VALUES
    uint16_t counter; // offset of a counted function's word in each thread's counters (THREAD_COUNTS); of a function whose arguments are
                      // recorded, their program
    uint32_t function;
    uint64_t instant; // head of a complete event of no length; FUNCTION_ENTER of a patched function
};

/// The kernel zeroes this page in a child (MADV_WIPEONFORK): that is how a fork is noticed, raw clone included.
struct process_page {
    uint32_t enabled;
    uint32_t alive;
    uint32_t dropping; // recording has stopped for want of something: calls are only counted
    uint64_t *dropped; // then set: where those of threads without a chunk are
};

_Static_assert(sizeof(struct function_hook) == FUNCTION_BYTES && AT(function_hook, instant, FUNCTION_INSTANT) &&
                   AT(function_hook, function, FUNCTION_ID) && AT(function_hook, kind, FUNCTION_KIND) &&
                   AT(function_hook, argument, FUNCTION_ARGUMENT) && AT(function_hook, counter, FUNCTION_COUNTER),
               "function hook");
_Static_assert(STUB_BLOCK_BYTES == STUB_BLOCK * (STUB_BYTES + FUNCTION_BYTES), "stub block");
_Static_assert(AT(process_page, alive, PROCESS_ALIVE) && AT(process_page, dropping, PROCESS_DROPPING) &&
                   AT(process_page, dropped, PROCESS_DROPPED),
               "process page");
_Static_assert(AT(trace_chunk_header, filtered_by_time, CHUNK_FILTERED_TIME) &&
                   AT(trace_chunk_header, filtered_by_depth, CHUNK_FILTERED_DEPTH) && AT(trace_chunk_header, dropped, CHUNK_DROPPED),
               "trace chunk header");
extern struct process_page tracer_process __attribute__((visibility("hidden")));
/// A word in which somebody outside counts what is wanted of the process (trace_file_header.control), or one that stays 0; and the number up to
/// which the process has looked. Read by the trampolines while recording is off, and by each slow path.
extern const uint32_t *tracer_control __attribute__((visibility("hidden")));
extern uint32_t tracer_control_seen __attribute__((visibility("hidden")));
extern const uint32_t tracer_no_control __attribute__((visibility("hidden")));
static inline void tracer_set_control(const uint32_t *word) {
    __atomic_store_n(&tracer_control, word ? word : &tracer_no_control, __ATOMIC_RELEASE);
    __atomic_store_n(&tracer_control_seen, word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0, __ATOMIC_RELEASE);
}
static inline _Bool tracer_has_control(void) {
    return __atomic_load_n(tracer_control, __ATOMIC_ACQUIRE) != __atomic_load_n(&tracer_control_seen, __ATOMIC_RELAXED);
}
/// Returns true if it is the caller who is to do what is wanted up to there.
static inline _Bool tracer_take_control(uint32_t *number) {
    uint32_t before = __atomic_load_n(&tracer_control_seen, __ATOMIC_RELAXED);
    *number = __atomic_load_n(tracer_control, __ATOMIC_ACQUIRE);
    return *number != before && __atomic_compare_exchange_n(&tracer_control_seen, &before, *number, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/// What is wanted up to there is to be done by who looks next.
static inline void tracer_leave_control(uint32_t number) { __atomic_store_n(&tracer_control_seen, number - 1, __ATOMIC_RELEASE); }

// Reserved area of the image (trampoline.S). Labels, and LABEL_RETURN after each what belongs to it; the first block of stubs.
extern uint8_t tracer_labels[] __attribute__((visibility("hidden")));
extern uint8_t tracer_reserved_stubs[] __attribute__((visibility("hidden")));
extern uint8_t tracer_reserved_mappings[] __attribute__((visibility("hidden")));
extern struct label_state tracer_label_state[LABEL_KINDS] __attribute__((visibility("hidden")));
static inline struct label_state *tracer_labels_of_kind(long kind) { return &tracer_label_state[kind]; }
static inline uint64_t tracer_address_mappings(void) { return (uint64_t)tracer_reserved_mappings; }
static inline uint64_t tracer_address_labels(void) { return (uint64_t)tracer_labels; }
extern struct label_area tracer_label_area __attribute__((visibility("hidden")));
static inline void tracer_set_label_area(uint64_t low, uint64_t span) { tracer_label_area = (struct label_area){low, span}; }
static inline uint64_t tracer_label_low(void) { return tracer_label_area.low; }
static inline uint64_t tracer_label_span(void) { return tracer_label_area.span; }
/// Label library, libtracer-labels.so; its address is null if that is not loaded.
extern const struct label_library tracer_more_labels __attribute__((weak, visibility("default")));
static inline const struct label_library *tracer_find_more_labels(void) { return &tracer_more_labels; }
static inline void tracer_publish_label_table(long kind, uint64_t *table) {
    __atomic_store_n(&tracer_label_state[kind].table, table, __ATOMIC_RELEASE);
}
/// A table in which nothing is found and nothing can be put: `end` is the label that stands for the end.
extern uint64_t tracer_closed_labels[2] __attribute__((visibility("hidden")));
static inline void tracer_close_label_table(long kind, uint64_t end) {
    tracer_closed_labels[1] = end; // after its mask, 0
    tracer_publish_label_table(kind, tracer_closed_labels + 1);
}
static inline uint64_t *tracer_label_return(uint64_t label) { return (uint64_t *)(label + LABEL_RETURN); }
static inline uint64_t *tracer_label_next(uint64_t label) { return (uint64_t *)(label + LABEL_NEXT); }

// Instrumented functions (-finstrument-functions, InstrumentedFunctions.swift): a table with open addressing, by address; its mask, in
// bytes, is in front of it. Empty entries lead to `tracer_no_function`, whose target is 0; at least INSTRUMENTED_SLACK of them are after
// the table. Mask 0: the trampolines find no function there, and all calls take the slow path. A function whose FUNCTION_INSTANT is not 0
// is not recorded.
#define INSTRUMENTED_SLACK 64
extern struct function_hook tracer_no_function __attribute__((visibility("hidden")));
extern struct function_hook **tracer_instrumented __attribute__((visibility("hidden")));
/// Label in the frames of instrumented functions: nothing returns to it.
extern uint64_t tracer_instrumented_label __attribute__((visibility("hidden")));
static inline struct function_hook *tracer_address_no_function(void) { return &tracer_no_function; }
extern struct closed_functions {
    uint64_t mask;
    struct function_hook *entries[1];
} tracer_closed_functions __attribute__((visibility("hidden")));
static inline struct function_hook **tracer_closed_instrumented(void) { return tracer_closed_functions.entries; }
static inline void tracer_publish_instrumented(struct function_hook **table) {
    __atomic_store_n(&tracer_instrumented, table, __ATOMIC_RELEASE);
}
static inline uint64_t *tracer_label_of_instrumented(void) { return &tracer_instrumented_label; }
/// In the place of libc's __cyg_profile_func_enter and its kin: the function, and where it returns to.
void tracer_instrumented_enter(void) __attribute__((visibility("hidden")));
void tracer_instrumented_exit(void) __attribute__((visibility("hidden")));
static inline uint64_t tracer_address_instrumented_enter(void) { return (uint64_t)&tracer_instrumented_enter; }
static inline uint64_t tracer_address_instrumented_exit(void) { return (uint64_t)&tracer_instrumented_exit; }

extern uint8_t *tracer_stub_blocks[] __attribute__((visibility("hidden")));
static inline uint8_t *tracer_stub(long index) { return tracer_stub_blocks[index / STUB_BLOCK] + index % STUB_BLOCK * STUB_BYTES; }
static inline struct function_hook *tracer_function(long index) {
    return (struct function_hook *)(tracer_stub_blocks[index / STUB_BLOCK] + STUB_BLOCK * STUB_BYTES) + index % STUB_BLOCK;
}
static inline uint8_t *tracer_reserved_stub_block(void) { return tracer_reserved_stubs; }
static inline void tracer_set_stub_block(long block, uint8_t *address) { tracer_stub_blocks[block] = address; }
/// Returns the index of a stub or of a hook.
static inline long tracer_stub_index(const void *address) {
    for (long block = 0;; block++) {
        unsigned long distance = (unsigned long)((const uint8_t *)address - tracer_stub_blocks[block]);
        if (distance >= STUB_BLOCK_BYTES) continue;
        return block * STUB_BLOCK +
               (long)(distance < STUB_BLOCK * STUB_BYTES ? distance / STUB_BYTES : (distance - STUB_BLOCK * STUB_BYTES) / FUNCTION_BYTES);
    }
}

/// Symbols of the trampolines (*/trampoline.S): never called from C or Swift, only pointed to. One set with and one without
/// a time filter; on aarch64 also for what the CPU can do and where thread-local state is. Its code goes from `enter` to `end`.
struct trampoline_set {
    uint64_t enter, special, returned, returned_checked, end, pass_checked, pass_counted; // the last two: 0 where no function is suppressed
};
extern const struct trampoline_set tracer_trampoline_sets[] __attribute__((visibility("hidden")));
void tracer_loader_event(void) __attribute__((visibility("hidden")));
/// In the place of the loader's function that binds a slot at its first call.
void tracer_lazy(void) __attribute__((visibility("hidden")));
void tracer_pass(void) __attribute__((visibility("hidden")));
void tracer_pass_some(void) __attribute__((visibility("hidden")));
extern uint64_t tracer_patched_special __attribute__((visibility("hidden")));
/// Word that the loader stores to in place of a slot.
extern uint64_t tracer_lazy_sink __attribute__((visibility("hidden")));
extern uint8_t tracer_code_begin[] __attribute__((visibility("hidden")));
extern int32_t tracer_tls_sites_begin[] __attribute__((visibility("hidden")));
extern int32_t tracer_tls_sites_end[] __attribute__((visibility("hidden")));
extern int32_t tracer_clock_sites_begin[] __attribute__((visibility("hidden")));
extern int32_t tracer_clock_sites_end[] __attribute__((visibility("hidden")));
extern int32_t tracer_site_words_begin[] __attribute__((visibility("hidden")));
extern int32_t tracer_site_words_end[] __attribute__((visibility("hidden")));

/// The kernel's own convention: a result in -4095 … -1 is minus an errno. Touches neither errno nor the stack.
long tracer_system_call(long number, long a, long b, long c, long d, long e, long f) __attribute__((visibility("hidden")));
/// Begins `body` in a task that shares what `flags` say (clone(2)), on the stack that ends at `stack`, a multiple of 16. With
/// CLONE_PARENT_SETTID and CLONE_CHILD_CLEARTID `running` is the task's id until it has ended, a futex that the kernel wakes.
/// The task's id, or minus an errno.
long tracer_run_apart(void (*body)(void *), void *argument, long flags, uint32_t *running, void *stack)
    __attribute__((visibility("hidden")));
/// Gives the thread its context, as its first call would, also while nothing is recorded. The name is any, and not looked at.
void tracer_begin_thread(const char *name) __attribute__((visibility("hidden")));
/// For Calibration: a function that does nothing, and `count` calls of a function.
void tracer_nothing(void) __attribute__((visibility("hidden")));
void tracer_call(void (*function)(void), long count) __attribute__((visibility("hidden")));
void tracer_some_work(void) __attribute__((visibility("hidden")));
void tracer_call_unforeseen(void (*function)(void), long count) __attribute__((visibility("hidden")));
/// Calls an IFUNC resolver of a module that is relocated.
uint64_t tracer_call_resolver(uint64_t resolver) __attribute__((visibility("hidden")));

// Swift, called by the trampolines on the agent's stack with signals blocked.
// A null result means: record nothing, jump to the target with the caller's return address in place. SLOW_ORDINARY: the trampoline records
// the call as any other, so that its two clock reads are as near to it.
struct frame_record *tracer_slow_enter(struct thread_state *, struct function_hook *, uint64_t stack_pointer,
                                       struct frame_record *unwritten) __attribute__((visibility("hidden")));
void tracer_slow_exit(struct thread_state *, uint64_t label, uint64_t stack_pointer, uint64_t now_ticks)
    __attribute__((visibility("hidden")));
/// Returns the address that the slot with this number leads to from now on, never 0.
uint64_t tracer_slow_bind(struct thread_state *, struct function_hook *, uint64_t stack_pointer, uint64_t slot)
    __attribute__((visibility("hidden")));
void tracer_slow_loader_event(struct thread_state *, uint64_t unused, uint64_t stack_pointer) __attribute__((visibility("hidden")));
/// Does the work of tracer_mark, tracer_begin, tracer_end and tracer_snapshot; `kind` is SPAN_….
void tracer_slow_span(struct thread_state *, const char *name, uint64_t stack_pointer, uint64_t kind) __attribute__((visibility("hidden")));
/// An instrumented function is called, or returns. `site`: the address that it returns to.
void tracer_slow_instrumented_enter(struct thread_state *, uint64_t function, uint64_t stack_pointer, uint64_t site)
    __attribute__((visibility("hidden")));
void tracer_slow_instrumented_exit(struct thread_state *, uint64_t function, uint64_t stack_pointer, uint64_t site)
    __attribute__((visibility("hidden")));

// Swift, called by Swift: lower layers call these, and Agent.swift, which knows all layers, implements them.
/// Puts a line of the agent's own into the trace, if there is one.
void tracer_record_message(const uint8_t *text, long byte_count) __attribute__((visibility("hidden")));
/// A thread gives up its chunk, whose words end at `end`. Signals are blocked.
void tracer_chunk_full(const struct trace_chunk_header *chunk, const uint64_t *end, struct thread_context *)
    __attribute__((visibility("hidden")));
uint64_t tracer_function_address(uint32_t function) __attribute__((visibility("hidden")));
/// Returns true if the address lies in the code of the function (aarch64).
_Bool tracer_function_contains(uint32_t function, uint64_t address) __attribute__((visibility("hidden")));
/// The thread has returned to this label at this stack pointer, and none of its frames did. False: nor has an initializer.
_Bool tracer_returned_apart(struct thread_state *, uint64_t label, uint64_t stack_pointer, uint64_t now_ticks)
    __attribute__((visibility("hidden")));
/// Number of the trigger of a function, from 1 on (Triggers.swift); 0: it has none.
uint8_t tracer_function_trigger(uint32_t function) __attribute__((visibility("hidden")));
/// A frame of KIND_LOAD is about to end.
void tracer_load_returned(struct thread_state *, struct frame_record *, uint64_t now_ticks) __attribute__((visibility("hidden")));

/// A function that has this trigger is called; its frame is not there yet.
void tracer_watched_called(uint32_t function, uint8_t trigger, uint32_t thread, uint32_t tid) __attribute__((visibility("hidden")));
/// A frame whose function may have a trigger has returned, or was left.
void tracer_watched_ended(struct frame_record *, uint32_t thread, uint64_t now_ticks) __attribute__((visibility("hidden")));
/// A frame of KIND_OPENS or above has returned.
void tracer_opened(struct frame_record *, uint32_t thread, uint64_t now_ticks) __attribute__((visibility("hidden")));

/// Swift, called by the constructor.
void tracer_agent_start(int count, char **arguments, char **environment) __attribute__((visibility("hidden")));
void tracer_agent_end(void) __attribute__((visibility("hidden")));
/// The same where the library is loaded to be attached to later: only notes what tracer_attach will need.
void tracer_agent_await(int count, char **arguments) __attribute__((visibility("hidden")));
int tracer_agent_attach(const char *settings) __attribute__((visibility("hidden")));
int tracer_agent_detach(void) __attribute__((visibility("hidden")));
void tracer_agent_resume(void) __attribute__((visibility("hidden")));
void tracer_agent_pause(void) __attribute__((visibility("hidden")));
void tracer_agent_flush(void) __attribute__((visibility("hidden")));
/// As tracer_set.
int tracer_agent_set(int setting, uint64_t value) __attribute__((visibility("hidden")));

/// Signals that the slow path blocks: all, but not SIGBUS while `tracer_mapping_fault` handles it.
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
/// The program's own action for SIGBUS while our handler stands in for it.
extern struct kernel_action tracer_program_action __attribute__((visibility("hidden")));
static inline uint64_t *tracer_blocked(void) { return &tracer_blocked_signals; }
static inline uint32_t *tracer_confinement(void) { return &tracer_confined; }
static inline uint32_t *tracer_loss(void) { return &tracer_mapping_lost; }
static inline struct kernel_action *tracer_action(void) { return &tracer_program_action; }
void tracer_mapping_add(void *start, uint64_t byte_count) __attribute__((visibility("hidden")));
void tracer_mapping_remove(void *start) __attribute__((visibility("hidden")));
/// Returns the start of the mapping with this number, or of the next one that there is; 0: none. The number becomes that of the one after it.
uint64_t tracer_mapping_next(uint32_t *number, uint64_t *byte_count) __attribute__((visibility("hidden")));
void tracer_mapping_fault(int, void *, void *) __attribute__((visibility("hidden")));
#if defined(__x86_64__)
void tracer_signal_return(void) __attribute__((visibility("hidden")));
static inline uint64_t tracer_address_signal_return(void) { return (uint64_t)&tracer_signal_return; }
#else // the kernel brings its own
static inline uint64_t tracer_address_signal_return(void) { return 0; }
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
/// `target` takes libunwind's cursors of one kind to the next frame; `get` asks for a register there.
uint64_t tracer_replace_step(struct own_image, uint64_t target, uint64_t get, int kind, int address_register)
    __attribute__((visibility("hidden")));
uint64_t tracer_replace_unwind_backtrace(struct own_image, uint64_t target, uint64_t get_ip) __attribute__((visibility("hidden")));
/// `target` is dladdr, or dladdr1, which has more arguments.
uint64_t tracer_replace_module_question(uint64_t target, int has_more) __attribute__((visibility("hidden")));
/// Calls V8's setter with the function that finds the location of a true return address (ReturnLocations.swift).
void tracer_answer_locations(uint64_t setter) __attribute__((visibility("hidden")));
/// `target` is _Unwind_SetIP of nongnu libunwind, and `get` its _Unwind_GetIP; then its unw_set_reg and unw_get_reg.
uint64_t tracer_replace_landing(uint64_t target, uint64_t get) __attribute__((visibility("hidden")));
#define WRITER_KINDS 2 /* for a process's own frames, and for any */
uint64_t tracer_replace_set(uint64_t target, uint64_t get, int kind, int address_register) __attribute__((visibility("hidden")));

// Functions that execute a program (executions.c).
/// Keeps what the environment that the process began with has of the agent's, in pages; without these nothing. 0: the agent is not in its LD_PRELOAD.
int tracer_keep_environment(char *const *given, void *(*pages)(long)) __attribute__((visibility("hidden")));
/// The address of libc's `environ`. Before the program calls anything.
void tracer_set_environment(uint64_t address) __attribute__((visibility("hidden")));
/// The number of such a function, by its name; -1: it is none.
int tracer_execution(const char *name) __attribute__((visibility("hidden")));
/// What the stub of one calls. `execve` and `execvpe` are those of the same library.
uint64_t tracer_replace_execution(int function, uint64_t target, uint64_t execve, uint64_t execvpe) __attribute__((visibility("hidden")));

static inline struct process_page *tracer_process_page(void) { return &tracer_process; }
static inline uint64_t tracer_address_loader_event(void) { return (uint64_t)&tracer_loader_event; }
static inline uint64_t tracer_address_lazy(void) { return (uint64_t)&tracer_lazy; }
/// FUNCTION_ENTER of a patched function that is not recorded any more.
static inline uint64_t tracer_address_pass(void) { return (uint64_t)&tracer_pass; }
/// The same, FUNCTION_HEAD times; then its calls go to `special`, which has been published by then.
static inline uint64_t tracer_address_pass_some(void) { return (uint64_t)&tracer_pass_some; }
static inline void tracer_publish_patched_special(uint64_t special) { tracer_patched_special = special; }
static inline uint64_t tracer_address_lazy_sink(void) { return (uint64_t)&tracer_lazy_sink; }
/// The trampolines begin here, in pages that hold nothing else.
static inline uint64_t tracer_code_low(void) { return (uint64_t)tracer_code_begin; }
/// Sites in the trampolines that hold the distance from the thread pointer, and sites that read the clock: each entry is the distance
/// from itself to a 32-bit displacement (x86_64) or an instruction.
static inline int32_t *tracer_tls_sites(void) { return tracer_tls_sites_begin; }
static inline long tracer_tls_site_count(void) { return tracer_tls_sites_end - tracer_tls_sites_begin; }
static inline int32_t *tracer_clock_sites(void) { return tracer_clock_sites_begin; }
static inline long tracer_clock_site_count(void) { return tracer_clock_sites_end - tracer_clock_sites_begin; }
/// Sites that are patched if call sites are recorded: pairs of an instruction and the target of the jump that replaces it.
static inline int32_t *tracer_site_words(void) { return tracer_site_words_begin; }
static inline long tracer_site_word_count(void) { return (tracer_site_words_end - tracer_site_words_begin) / 2; }

static inline uint64_t *tracer_dropped_count(struct trace_file_header *header) { return &header->dropped; }

static inline char *tracer_thread_name(void *chunk) { return ((struct trace_chunk_header *)chunk)->thread_name; }

#if defined(__x86_64__)
#include "x86_64/processor.h"
#elif defined(__aarch64__)
#include "aarch64/processor.h"
#endif

#endif
#endif
