// The layout of a trace file, declared once. The agent's assembly uses the event bits; its C and Swift code and the
// reader use the structures. `docs/reference/format.md` describes the same layout in prose; layout.c asserts it.
//
// All values are little-endian, naturally aligned, and at fixed offsets. An all-zero word is never an event and an
// all-zero header is never a chunk, so a file that ends in untouched pages simply ends there.
#ifndef TRACE_LAYOUT_H
#define TRACE_LAYOUT_H

#define TRACE_VERSION 2
#define TRACE_HEADER_BYTES 4096
#define TRACE_COST_PARTS 256 /* parts per tick: the unit of leaf_cost and inside_cost */
#define TRACE_CHUNK_MAGIC 0x4b484354 /* "TCHK" */
#define TRACE_CHUNK_ALIGNMENT 4096

// Event word. Bits 0-1 are the kind, 2-25 the function, 26-63 a time in ticks since the base in force. A complete call
// splits those 38 bits: 26-46 its start, 47-63 its duration. So one addition turns an enter into a complete call.
#define EVENT_ENTER 1
#define EVENT_EXIT 2
#define EVENT_COMPLETE 3
#define EVENT_KIND_BITS 2
#define EVENT_FUNCTION_SHIFT 2
#define EVENT_FUNCTION_BITS 24
#define EVENT_TIME_SHIFT 26
#define EVENT_TIME_BITS 38
#define EVENT_START_BITS 21 /* start of a complete call; an enter, too, is less than 2^21 ticks after its base */
#define EVENT_DURATION_SHIFT 47
#define EVENT_DURATION_BITS 17
// Widths in format version 1.
#define EVENT_1_FUNCTION_BITS 20
#define EVENT_1_START_BITS 23

// Control word: bits 2-7 are its kind (ControlKind in Event.swift), 8-63 its payload.
#define CONTROL_KIND_SHIFT 2
#define CONTROL_PAYLOAD_SHIFT 8
#define CONTROL_PAYLOAD_BITS 56
#define CONTROL_RESUME 2 /* RESUME, SITE and ARGUMENT are the kinds that trampolines write */
#define CONTROL_SITE 4
#define CONTROL_ARGUMENT 5
#define CONTROL_DATA 7
#define CONTROL_ARGUMENTS 8 /* what older agents wrote */
#define CONTROL_VALUES 9
#define CONTROL_RESULT 10
// The payload of ARGUMENTS: a program, above it how many DATA words it has, and a bit for a result.
#define CONTROL_ARGUMENTS_COUNT_SHIFT 24
#define CONTROL_ARGUMENTS_RESULT_SHIFT 32
// The payload of VALUES and RESULT: a program, how many DATA words it has, and in the upper half of the word the last four bytes.
#define CONTROL_VALUES_COUNT_SHIFT 16
#define CONTROL_VALUES_TAIL_SHIFT 24
#define CONTROL_VALUES_TAIL_BYTES 4

#define TRACE_PASSED_BYTES 8192 /* size of a chunk with one PASSED record, which has … */
#define TRACE_PASSED_COUNTERS 1006 /* … so many counters of a thread */

// Reserved as the process is attached to, for the task that detaches: a multiple of all sizes of pages.
#define TRACE_DETACH_STACK_BYTES 0x30000

#ifndef __ASSEMBLER__
#include <stdint.h>

enum { TRACE_CLOCK_TSC = 1, TRACE_CLOCK_CNTVCT = 2, TRACE_CLOCK_MONOTONIC = 3 };
enum { TRACE_RECORDING = 0, TRACE_FINISHED = 1, TRACE_STOPPED = 2 };
enum {
    TRACE_STOP_NONE = 0,
    TRACE_STOP_SPACE = 1,
    TRACE_STOP_LIMIT = 2,
    TRACE_STOP_FILE = 3,
    TRACE_STOP_MEMORY = 4,
    TRACE_STOP_CONFINED = 5,    // the program was about to restrict its system calls (seccomp) …
    TRACE_STOP_NO_COUNTER = 6,  // … to forbid reading the cycle counter (PR_SET_TSC) …
    TRACE_STOP_DISPATCH = 7,    // … or to get its system calls as signals (PR_SET_SYSCALL_USER_DISPATCH)
    TRACE_STOP_OUT_OF_REACH = 8, // the program may no longer open the file, and the space allocated in it is used up
    TRACE_STOP_FILE_SIZE = 9,    // RLIMIT_FSIZE
    TRACE_STOP_QUOTA = 10        // the disk quota
};
/// Results of tracer_attach and tracer_detach (CSupport/layout.h).
enum trace_attach_result {
    TRACE_ATTACH_DONE = 0,
    TRACE_ATTACH_RECORDING = 1,    // the process is recorded already, or was started with the agent
    TRACE_ATTACH_NO_MEMORY = 2,
    TRACE_ATTACH_NO_FILE = 3,      // the trace cannot be created
    TRACE_ATTACH_NO_CODE = 4,      // the process may not create executable memory
    TRACE_ATTACH_NO_WIPE = 5,      // the kernel has no MADV_WIPEONFORK (Linux 4.14)
    TRACE_ATTACH_LOADER = 6,       // the loader's hook is not as expected, or a thread has been loading a library for seconds
    TRACE_ATTACH_SETTINGS = 7,     // call sites, depth or clock differ from those of the first time; or too many arguments and triggers
    TRACE_ATTACH_CHILD = 8,        // the process was forked from one that had been attached to
    TRACE_ATTACH_CONFINED = 9,     // the process has restricted its system calls
    TRACE_ATTACH_NAMESPACE = 10,   // the library is in a namespace of its own (dlmopen), or was not loaded to be attached
    TRACE_ATTACH_NOT_ATTACHED = 11, // there is nothing to detach from
    TRACE_ATTACH_CODE_LEFT = 12     // detached, but the code of some functions could not be put back
};
#define TRACE_EXIT_KNOWN 0x100000000ull  // in exit_status
#define TRACE_EXIT_SIGNAL 0x200000000ull // likewise: a signal ended the process, it did not exit with 128 + n itself
enum { TRACE_MODE_FULL = 0, TRACE_MODE_RING = 1, TRACE_MODE_COUNTS = 2 };
enum {
    TRACE_FLAG_LATE = 1,        // some constructors ran before the agent was entered
    TRACE_FLAG_NO_HOOK = 2,     // the loader's debugger hook was not as expected: later modules are noticed late
    TRACE_FLAG_FOREIGN = 8,     // modules of GHC, OCaml or Go were not recorded: they have their own calling conventions
    TRACE_FLAG_NAMESPACE = 16, // modules of a dlmopen namespace were not recorded: its unwinder would fail
    TRACE_FLAG_CALL_SITES = 32, // call sites were recorded
    TRACE_FLAG_UNREADABLE = 64, // calls of a module whose dynamic section contradicts itself were not recorded
    TRACE_FLAG_NO_START = 128,  // the program already ran when the agent began: recording begins at started_ticks
    TRACE_FLAG_SNAPSHOT = 256,  // a copy, made while the process was recorded further. By whoever made it
    TRACE_FLAG_FILTERED = 512   // the time below which calls are not kept may be changed: the process has the trampolines for it
};
enum {
    TRACE_CHUNK_EVENTS = 1,
    TRACE_CHUNK_METADATA = 2,
    TRACE_CHUNK_VOID = 3 // being copied: its size is valid, its content is not there yet
};
enum {
    TRACE_CHUNK_CLOSED = 1,
    TRACE_CHUNK_FRAMES_CUT = 2,
    TRACE_CHUNK_UNSETTLED = 4, // a word of the previous chunk may be later than this chunk's list of open frames
    TRACE_CHUNK_SITES = 8      // the call sites of the open frames follow their list, a uint64_t each
};

/// Two clocks read at the same moment. Two such samples give the length of a tick.
struct trace_clock_sample {
    uint64_t ticks;
    uint64_t monotonic_ns;
};

/// A call that was as a trigger says, or tracer_snapshot: somebody wants to keep what the file has of it. Of the newest
/// TRACE_REQUESTS the process writes one each at TRACE_REQUESTS_OFFSET of the first page, in turn.
struct trace_request {
    uint64_t begin_ticks;
    uint64_t end_ticks;
    uint32_t thread;
    uint32_t function; // for tracer_snapshot a mark, for TRACE_REQUEST_ENDED a signal
    uint32_t trigger;  // its index in TRACER_TRIGGERS, with TRACE_REQUEST_STALL or _EXCEPTION; or TRACE_REQUEST_OWN, or _ENDED
    uint32_t number;   // the low bits of its number, from 1; written last, and 0 meanwhile
};
#define TRACE_REQUESTS_OFFSET 512
#define TRACE_REQUESTS 16
#define TRACE_REQUEST_OWN 0xffffffffu /* tracer_snapshot */
#define TRACE_REQUEST_INDEX 0xffu
#define TRACE_REQUEST_STALL 0x100u     /* a turn of the main thread's event loop, until this call of the function that it waits in */
#define TRACE_REQUEST_EXCEPTION 0x200u /* an exception was raised by this call */
#define TRACE_REQUEST_ENDED 0x400u     /* a signal has ended the process. Only in a copy: who recorded the process has seen it */

/// The first page of the file. The agent keeps it mapped (MAP_SHARED) for the life of the process.
struct trace_file_header {
    uint8_t magic[8]; // "TRACER\x1a\n"
    uint32_t version;
    uint32_t header_bytes;
    uint32_t elf_machine; // e_machine of the ELF header: 62 x86_64, 183 aarch64
    uint32_t page_bytes;
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t clock;
    uint32_t state;
    uint32_t stop_reason;
    uint32_t mode;
    uint64_t ticks_per_second; // nominal; 0: compute it from the samples
    struct trace_clock_sample first; // agent start
    struct trace_clock_sample last;  // latest chunk opened, or the end
    uint64_t first_realtime_ns;
    uint64_t next_offset;     // offset of the next chunk: threads reserve theirs by an atomic add
    uint64_t prepared_offset; // `tracer record` has allocated and touched the file up to here
    uint64_t size_limit;      // bytes, 0 none
    uint64_t dropped;         // calls made while nothing could be written, including those of unrecorded children
    uint64_t minimum_ticks;   // shorter calls are not kept
    uint32_t maximum_depth;   // 0 none
    uint32_t flags;
    uint64_t start_ticks;     // start of the agent's own start-up …
    uint64_t started_ticks;   // … and its end
    uint32_t leaf_cost;       // cost of recording a leaf call, in 1/TRACE_COST_PARTS ticks; 0 unknown …
    uint32_t inside_cost;     // … and the part of it between the call's two clock reads, which its length includes
    uint64_t exit_status;     // TRACE_EXIT_KNOWN and how the process ended: status, or 128 + signal; 0 unknown
    uint64_t collected;       // 1: `tracer record` takes over full chunks (trace_spare). Earlier agents counted their chunks here
    uint64_t session;         // set by `tracer record`: the same in all processes of a run; 0 without `tracer record`
    uint64_t extended_offset; // the agent has used the file up to here; 0 unknown
    uint64_t boot;            // first half of the system's boot_id (proc(5)), 0 unknown
    uint64_t pid_namespace;   // inode of the pid namespace that `pid` belongs to (namespaces(7)), 0 unknown
    uint64_t unrecorded_children; // forked children for which no file could be made
    uint32_t leaf_error;      // relative error of leaf_cost, in 1/256; 0 unknown …
    uint32_t inside_error;    // … and of inside_cost
    uint64_t stopped_ticks;   // state 2: nothing is recorded from then on; 0 unknown
    uint64_t ended_ns;        // CLOCK_MONOTONIC when the process ended or executed another program; 0 unknown. By `tracer record`
    uint64_t waits;           // how often a thread waited until the agent had space for its events …
    uint64_t waited_ticks;    // … how long in all …
    uint64_t longest_wait;    // … and at most, in ticks
    uint64_t requests;        // how many trace_request there have been
    uint64_t watched;         // how many functions have a trigger
    // The next two are a copy's (TRACE_FLAG_SNAPSHOT):
    struct trace_request request; // what it was made for; all 0: it was asked for from outside
    uint64_t complete_ticks;  // nothing is missing from here on, of any thread; 0: nothing at all
    // Wishes from outside (`tracer control`), and what the process has taken note of:
    uint32_t control;         // counts what was wanted; written after the next two
    uint32_t controlled;      // the process has done what was wanted up to this number
    uint32_t wanted;          // TRACE_WANTED_…
    uint32_t is_on;           // 1: calls are recorded, 0: tracer_stop or TRACER_START=off
    uint64_t wanted_minimum;  // nanoseconds: shorter calls are not kept
    uint64_t wanted_names;    // offset of a chunk with one CHOICE record: which functions are recorded from now on
    uint32_t left_functions;  // how many functions that record their calls themselves are left out by it …
    uint32_t left_slots;      // … and how many slots lead past their stubs
    uint32_t refused;         // the number in `controlled` up to which functions could not be chosen
    uint32_t reserved;
};
enum { TRACE_WANTED_ON = 1, TRACE_WANTED_OFF = 2, TRACE_WANTED_MINIMUM = 4, TRACE_WANTED_NAMES = 8 };

// Chunks that threads fill in turn, where somebody else copies full ones to where they belong (docs/internals/file.md). An array of them
// at TRACE_SPARES_OFFSET of the first page, which the process and `tracer record` have mapped.
#define TRACE_SPARES_OFFSET 1024
#define TRACE_SPARES 128
#define TRACE_SPARE_BYTES 262144 /* each has so many; in a ring it has as many as the ring's other chunks (ChunkSize.swift) */
enum {
    TRACE_SPARE_NONE = 0,
    TRACE_SPARE_FREE = 1, // empty; the process may take it
    TRACE_SPARE_TAKEN = 2, // the process writes to it
    TRACE_SPARE_FULL = 3, // closed; to be copied to `destination`, cleared, and then free. Until that begins the process may take it back
    TRACE_SPARE_COPIED = 4, // being copied and cleared; the process leaves it alone
};
struct trace_spare {
    uint64_t offset;      // the chunk lies there in the file
    uint64_t destination; // while full: where it is to be. In a ring there is space for the chunk, otherwise for its used pages
    uint32_t state;       // written last
    uint32_t byte_count;  // size of the chunk
};

/// A frame that was open when the chunk began.
struct trace_open_frame {
    uint64_t enter_ticks;
    uint32_t function;
    uint32_t flags; // 1: on a stack that is not the thread's own (signal stack, coroutine)
};

/// Begins on a TRACE_CHUNK_ALIGNMENT boundary. Open frames follow, outermost first, then events or records.
struct trace_chunk_header {
    uint32_t magic; // written last
    uint16_t kind;
    uint16_t flags;
    uint32_t byte_count; // size of the whole chunk
    uint32_t body_offset; // offset of the first event or record from the start of the chunk
    uint32_t thread; // index, 0 for metadata
    uint32_t tid;
    uint64_t sequence; // number of the chunk in its thread, from 0; if two have the same number, read the closed one
    struct trace_clock_sample opened; // its ticks are the first base
    uint64_t used_bytes; // 0 while open; then the end of the last event, from the start of the chunk
    uint64_t filtered_by_time;
    uint64_t filtered_by_depth;
    uint64_t dropped;
    uint32_t open_frames;   // frames open when the chunk began …
    uint32_t stored_frames; // … and the number of those that are stored: the innermost
    char thread_name[16];
    uint64_t unused;   // earlier agents numbered all chunks here
    uint64_t filtered_by_condition;
    uint64_t reserved;
};

enum {
    TRACE_RECORD_TEXT = 1,
    TRACE_RECORD_MODULE = 2,
    TRACE_RECORD_FUNCTION = 3,
    TRACE_RECORD_THREAD = 4,
    TRACE_RECORD_THREAD_END = 5,
    TRACE_RECORD_MODULE_END = 6,
    // How the process started. A forked child does not inherit these, down to ONCE: they describe the process that was started.
    TRACE_RECORD_PHASE = 7,
    TRACE_RECORD_INITIALIZER = 8,
    TRACE_RECORD_INITIALIZER_END = 9,
    TRACE_RECORD_READY = 10,
    TRACE_RECORD_LOAD = 11,
    TRACE_RECORD_LOAD_END = 12,
    TRACE_RECORD_ONCE = 13,
    TRACE_RECORD_MODULE_DETAIL = 14,
    TRACE_RECORD_BINDING = 15,
    TRACE_RECORD_CLOCK = 16,
    TRACE_RECORD_PATCHED = 17,
    TRACE_RECORD_SUPPRESSED = 18,
    TRACE_RECORD_FUNCTIONS = 19,
    // Kernel events of the process, written by `tracer record`, never by the agent. No child inherits them.
    TRACE_RECORD_KERNEL = 20,
    TRACE_RECORD_SWITCHES = 21,
    TRACE_RECORD_TASK = 22,
    TRACE_RECORD_PAGE_FAULT = 23,
    TRACE_RECORD_WAIT = 24,
    TRACE_RECORD_SAMPLES = 25,
    TRACE_RECORD_CODE_NAME = 26,
    TRACE_RECORD_DESCRIPTOR = 27,
    TRACE_RECORD_PRIORITY = 28,
    TRACE_RECORD_POLLED = 29,
    // Likewise, in one trace of a run.
    TRACE_RECORD_UNRECORDED = 30,
    TRACE_RECORD_KERNEL_NAME = 31,
    TRACE_RECORD_WAIT_STACKS = 32, // a trace_samples_record
    TRACE_RECORD_MODULE_FILE = 40, // written by the agent
    // Descriptors, written by the agent as their calls return. A forked child inherits those that were not replaced by then.
    TRACE_RECORD_OPENED = 41,
    TRACE_RECORD_PASSED = 42, // written by the agent, in a chunk of its own
    TRACE_RECORD_PROTOTYPE = 43, // written by the agent
    TRACE_RECORD_SWITCHED = 44,  // likewise
    TRACE_RECORD_CHOICE = 45,    // written by the agent, and by who controls it
    TRACE_RECORD_REPLACED = 0xffff, // skipped: another record is being written over it
};
enum { // phases of the process
    TRACE_PHASE_CREATED = 1,       // the process was created: a fork that exec followed soon. An estimate
    TRACE_PHASE_EXEC = 2,          // execve of the program was called
    TRACE_PHASE_LOADER = 3,        // the dynamic loader's first instructions
    TRACE_PHASE_AGENT = 4,         // the agent: everything is relocated, no initializer has run
    TRACE_PHASE_MAIN = 5,          // main was called …
    TRACE_PHASE_MAIN_RETURNED = 6, // … and returned
    TRACE_PHASE_EXIT = 7,          // the agent's own destructor: exit was called earlier
};
enum { // kinds of initializer; the last two are finalizers
    TRACE_INITIALIZER_PREINIT_ARRAY = 1,
    TRACE_INITIALIZER_INIT = 2,
    TRACE_INITIALIZER_INIT_ARRAY = 3,
    TRACE_INITIALIZER_FINI = 4,
    TRACE_INITIALIZER_FINI_ARRAY = 5,
};
enum { TRACE_INITIALIZER_RETURNED = 0, TRACE_INITIALIZER_LEFT = 1 }; // LEFT: by an exception or longjmp, earlier than its record
enum { // events that made the program ready: the first of each
    TRACE_READY_SYMBOL = 1, // a call of a function that TRACER_READY names
    TRACE_READY_MARK = 2,   // tracer_ready(), or a mark named "ready"
    TRACE_READY_NOTIFY = 3, // sd_notify or a similar call with READY=1
    TRACE_READY_OUTPUT = 4, // a write to standard output or a terminal
    TRACE_READY_FRAME = 5,  // a Wayland surface was committed: a window, or a part of one, has a picture
};
enum { // flags of a module's details
    TRACE_MODULE_LAZY = 1,       // jump slots were not bound when it was loaded
    TRACE_MODULE_SEARCHED = 2,   // its text was searched for GLOB_DAT slots that are used only for calls …
    TRACE_MODULE_REMEMBERED = 4, // … or an earlier process had searched it, and the result was cached
};
enum { // events that the kernel was asked to report
    TRACE_KERNEL_SWITCHES = 1,     // context switches, and beginnings and ends of threads
    TRACE_KERNEL_MAJOR_FAULTS = 2, // page faults that read from disk
    TRACE_KERNEL_MINOR_FAULTS = 4, // page faults for pages in memory
    TRACE_KERNEL_SAMPLES = 8,      // stacks
    TRACE_KERNEL_INSIDE = 16,      // also page faults that the kernel makes itself, in system calls
    TRACE_KERNEL_STACKS = 32,      // samples in the kernel, too, with its stack
};
enum { // context switches of a thread
    TRACE_SWITCH_IN = 1,        // switched in: it runs from here on
    TRACE_SWITCH_WAITS = 2,     // switched out: it waits for something
    TRACE_SWITCH_PREEMPTED = 3, // switched out although it could have gone on
};
enum { TRACE_TASK_BEGAN = 1, TRACE_TASK_ENDED = 2, TRACE_TASK_NAMED = 3, TRACE_TASK_EXECUTED = 4 };
#define TRACE_AGENT_TASK "libtracer" /* name of the agent's own tasks */
enum { // why a program is not recorded
    TRACE_UNRECORDED_UNKNOWN = 0,
    TRACE_UNRECORDED_STATIC = 1,     // nothing can be preloaded into a static program …
    TRACE_UNRECORDED_GO = 2,         // … such as Go's linker makes
    TRACE_UNRECORDED_MUSL = 3,       // it uses musl …
    TRACE_UNRECORDED_LOADER = 4,     // … or has another loader than the GNU C library's
    TRACE_UNRECORDED_MACHINE = 5,    // for another CPU architecture, or 32-bit
    TRACE_UNRECORDED_PRIVILEGED = 6, // set-user-ID, set-group-ID, file capabilities: the loader ignores LD_PRELOAD
    TRACE_UNRECORDED_HIDDEN = 7,     // the same, or its file may not be read: the kernel reports nothing of either
    TRACE_UNRECORDED_PRELOAD = 8,    // LD_PRELOAD was removed or replaced
    TRACE_UNRECORDED_NO_FILE = 9,    // the agent was loaded and made no file
    TRACE_UNRECORDED_ELSEWHERE = 10, // its trace is not in the run: another `tracer record`'s, or removed
};
enum { TRACE_FAULT_MAJOR = 1, TRACE_FAULT_MINOR = 2 };
enum { TRACE_ACCESS_READ = 1, TRACE_ACCESS_WRITE = 2 }; // access modes of a file descriptor
enum { // also in the key of an OPENED record
    TRACE_OPENED_PIPE = 4,     // a pipe, with a name or without
    TRACE_OPENED_REPLACED = 8, // a later record has the same descriptor
};
// Values in place of an address in a sample. CALL: the agent's return label was here, so the stack continues with the caller of a
// call that is open in the trace. UNKNOWN: the address could not be determined.
#define TRACE_SAMPLE_UNKNOWN 0
#define TRACE_SAMPLE_CALL 1
#define TRACE_KERNEL_ADDRESS 0x8000000000000000ull /* set in each address of the kernel, in none of a process */
enum { // flags of a sample
    TRACE_SAMPLE_WHOLE = 1,  // its last address is the thread's outermost frame
    TRACE_SAMPLE_KERNEL = 2, // the thread was in the kernel: its addresses, which have TRACE_KERNEL_ADDRESS, come first
};
#define TRACE_NONE 0xffffffffu /* no module, no initializer, no load */
enum {
    TRACE_TEXT_PROGRAM = 1,     // path of the executable
    TRACE_TEXT_ARGUMENTS = 2,   // NUL after each
    TRACE_TEXT_DIRECTORY = 3,
    TRACE_TEXT_SETTINGS = 4,    // NAME=VALUE, NUL after each: the TRACER_ variables as they took effect
    TRACE_TEXT_MESSAGE = 5,     // a message of the agent: one line
    TRACE_TEXT_CALLED = 6,      // path that was executed: a link to the program, or a script
    TRACE_TEXT_TITLE = 7,       // command line that the program has written over its own
};
enum {
    TRACE_FUNCTION_ENTRY_ONLY = 1,  // its entry is recorded, as a complete call of length zero; its exit is not
    TRACE_FUNCTION_SPAN = 2,  // not a function: tracer_begin and tracer_end with this name
    TRACE_FUNCTION_MARK = 4   // not a function: tracer_mark with this name; ENTRY_ONLY is set, too
};
// Also in a function's flags: number, from 1, of the argument recorded before each call (ARGUMENT); 0 none.
#define TRACE_FUNCTION_ARGUMENT_SHIFT 8
#define TRACE_FUNCTION_ARGUMENT_BITS 3
#define TRACE_FUNCTION_ARGUMENT_IS_INT 2048 /* it is an int (a file descriptor or a process id): ignore the bits above its 32 */
// And how its calls make file descriptors, each of which has an OPENED record; 0: they make none.
#define TRACE_FUNCTION_OPENS_SHIFT 12
#define TRACE_FUNCTION_OPENS_BITS 3
enum {
    TRACE_OPENS_RESULT = 1,      // the result is one
    TRACE_OPENS_FIRST_PAIR = 2,  // the first argument points to two
    TRACE_OPENS_FOURTH_PAIR = 3, // … the fourth
    TRACE_OPENS_STREAM = 4,      // the result is a FILE, which has one
    TRACE_OPENS_FOLDER = 5,      // … a DIR
};

/// The start of every metadata record. `type` is written last. byte_count is a multiple of 8 and includes this structure.
struct trace_record {
    uint16_t type;
    uint16_t key; // TRACE_TEXT_ in a text; the other records below say what theirs is
    uint32_t byte_count;
};
struct trace_text_record {
    struct trace_record record;
    uint32_t text_bytes;
    uint32_t reserved; // text follows
};
struct trace_module_record {
    struct trace_record record;
    uint32_t module; // index from 0
    uint32_t path_bytes;
    uint64_t load_bias;
    uint64_t low_address, high_address; // [low, high) of its load segments, absolute
    uint64_t loaded_ticks;
    uint32_t build_id_bytes;
    uint8_t build_id[20]; // path follows
};
/// The file of a module that has no build-id, as it was when the module was found: another one may take its place.
struct trace_module_file_record {
    struct trace_record record;
    uint32_t module;
    uint32_t written_nanoseconds; // time of the last write
    int64_t written_seconds;
    uint64_t byte_count;
    uint64_t file; // a hash of its device and inode, by which its plan is named (plan_mix)
};
struct trace_function_record {
    struct trace_record record;
    uint32_t function; // 1 … 2^EVENT_FUNCTION_BITS - 1
    uint32_t module;   // 0xffffffff: none
    uint64_t address;  // absolute
    uint32_t flags;
    uint32_t name_bytes; // name follows; 0: it is in the module's file
};
/// Functions of a module that have no record of their own, with consecutive ids. Their names are in the module's file.
struct trace_functions_record {
    struct trace_record record;
    uint32_t first;  // id of the first
    uint32_t module;
    uint32_t count;
    uint32_t reserved; // then `count` times a uint32_t: the function's offset from the module's low_address; 0: not called (yet)
};
/// A function's prototype, as a line of a file of prototypes, and after it the enumerations that it names, a line each (docs/reference/prototypes.md).
struct trace_prototype_record {
    struct trace_record record;
    uint32_t program; // as in ARGUMENTS words
    uint32_t text_bytes; // text follows
};
struct trace_thread_record {
    struct trace_record record;
    uint32_t thread; // index from 0
    uint32_t tid;
    uint64_t ticks;
};
struct trace_thread_begin_record { // older agents wrote it without the last field
    struct trace_thread_record thread;
    uint64_t cpu_ns; // CPU time of the thread up to then
};
struct trace_thread_pointer_record { // older agents wrote it without the last field
    struct trace_thread_begin_record begin;
    uint64_t
        pointer; // thread pointer of thread-local storage (%fs, TPIDR_EL0): the structure that pthread_t points to begins or ends there
};
/// The rate of the recording clock has changed: one sample before the change and one after it, a record each.
struct trace_clock_record {
    struct trace_record record;
    struct trace_clock_sample sample;
};
/// Recording was switched on (key 1) or off (key 0) then, or was off when it began.
struct trace_switched_record {
    struct trace_record record;
    uint64_t ticks;
};
/// A choice among the functions whose calls could be recorded: those that the lists admit, in the form of TRACER_FUNCTIONS, TRACER_INCLUDE and
/// TRACER_EXCLUDE. Key 1: from `ticks` on, by the agent. Key 0: somebody outside wants it, in a chunk of its own. The lists follow.
struct trace_choice_record {
    struct trace_record record;
    uint64_t ticks;
    uint32_t functions_bytes; // a list of 0 bytes is none
    uint32_t include_bytes;
    uint32_t exclude_bytes;
    uint32_t reserved;
};
#define TRACE_CHOICE_BYTES 65536 /* most bytes of such a chunk */
struct trace_module_end_record {
    struct trace_record record;
    uint32_t module;
    uint32_t reserved;
    uint64_t ticks;
};

/// Resources that a thread (in a phase: the process) had used up to a moment. Subtract two to get the use in between.
struct trace_usage {
    uint64_t ticks;
    uint64_t own_ticks; // running total, over the whole process, of the agent's own work on modules and initializers
    uint64_t cpu_ns;
    uint32_t minor_faults, major_faults;
};
struct trace_phase_record { // key: which
    struct trace_record record;
    struct trace_usage usage; // 0 where unknown: all of CREATED and EXEC, and all but the ticks of LOADER
    uint64_t monotonic_ns; // time of CREATED and EXEC; 0 in others
    uint64_t error_ns; // it happened at most this much earlier; 0: exact
    uint32_t thread, reserved;
};
struct trace_initializer_record { // key: kind
    struct trace_record record;
    uint32_t initializer; // from 0, in the order they began
    uint32_t parent; // the one during which it ran, on the same thread, or TRACE_NONE
    uint32_t module;
    uint32_t index; // in its array
    uint32_t thread;
    uint32_t load; // the TRACE_RECORD_LOAD that runs it, or TRACE_NONE
    uint64_t address; // absolute
    struct trace_usage usage;
};
struct trace_initializer_end_record { // key: how
    struct trace_record record;
    uint32_t initializer;
    uint32_t thread;
    struct trace_usage usage;
};
struct trace_ready_record { // key: reason
    struct trace_record record;
    uint32_t function; // the function that was called, 0 none
    uint32_t thread;
    uint64_t ticks; // the call began
};
/// A dlopen that brought new modules, or a load made inside libc.
struct trace_load_record {
    struct trace_record record;
    uint32_t load; // from 1; 0 stands for the modules loaded at the start
    uint32_t thread;
    uint32_t caller_module; // TRACE_NONE: not known
    uint32_t initializer; // the initializer during which dlopen was called, or TRACE_NONE
    uint64_t begin_ticks; // dlopen was called; 0: not known
    uint64_t opened_ticks; // the loader began to add modules; 0: not known
    struct trace_usage mapped; // all are mapped (and relocated, if the loader reports them only then: glibc from 2.41 on)
    uint32_t path_bytes, reserved; // the path that dlopen was given, which follows
};
struct trace_load_end_record {
    struct trace_record record;
    uint32_t load;
    uint32_t reserved;
    struct trace_usage usage; // dlopen returned
};
/// A call of swift_once, pthread_once or __cxa_guard_acquire that found its work not done yet.
struct trace_once_record {
    struct trace_record record;
    uint32_t function; // the once-function
    uint32_t thread;
    uint64_t ticks; // just before the call's own enter
    uint64_t code; // the function it was given, 0 none
    uint64_t token; // address of the once flag or guard variable
};
struct trace_module_detail_record {
    struct trace_record record;
    uint32_t module;
    uint32_t load; // the load that brought it, 0: loaded at the start
    uint32_t relative_relocations; // DT_RELACOUNT
    uint32_t relr_bytes; // DT_RELRSZ: compact relative relocations
    uint32_t symbol_relocations; // in DT_RELA: each needs a symbol lookup
    uint32_t other_relocations; // in DT_RELA: neither relative nor by symbol
    uint32_t jump_slots; // in DT_JMPREL
    uint32_t flags;
    uint64_t mapped_bytes; // size of its load segments
    uint32_t soname_bytes;
    uint32_t needed_bytes; // DT_SONAME, then the names of DT_NEEDED in order, NUL after each, follow
};
/// Number of a module's functions that TRACER_FUNCTIONS selects, and of those that record their calls by an entry patch.
struct trace_patched_record {
    struct trace_record record;
    uint32_t module;
    uint32_t functions;
    uint32_t patched;
    uint32_t running; // 0: before any of its code ran; else while threads ran it, and one less than this are left for that reason
};
/// From this moment on the function is suppressed (hot): not all its calls are recorded, because they are short and very many. Those that
/// are not are counted.
struct trace_suppressed_record {
    struct trace_record record;
    uint32_t function;
    uint32_t counter; // number of its counter in PASSED records, from 1; 0: they are not counted
    uint64_t ticks;
};

/// Calls of a thread that were counted and not recorded. The thread adds to the counters as it calls; a forked child has records of its own.
struct trace_passed_record {
    struct trace_record record;
    uint32_t thread;
    uint32_t count; // then `count` times a uint64_t: that of counter 1, 2, …
};

/// Kernel events that `tracer record` requested for this process. Absent: none were requested (LD_PRELOAD alone). All times here and in
/// the records below are CLOCK_MONOTONIC; thread and process ids are those of the recorder's pid namespace.
struct trace_kernel_record {
    struct trace_record record;
    uint32_t asked; // TRACE_KERNEL_ bits
    uint32_t granted; // the bits that were granted; the others were refused, with …
    uint32_t error; // … this errno; 0 none
    int32_t paranoid; // kernel.perf_event_paranoid then; INT32_MIN unknown
    uint64_t from_ns; // kernel events begin here …
    uint64_t until_ns; // … and end here
    uint64_t lost; // records lost because a buffer was full, in all processes of the run
    uint64_t period_ns; // CPU time from one sample to the next; 0 no samples
};
struct trace_switch {
    uint64_t ns;
    uint32_t tid;
    uint16_t cpu;
    uint16_t kind; // TRACE_SWITCH_
};
/// In order of time, within a record and from one record to the next.
struct trace_switches_record {
    struct trace_record record;
    uint32_t count;
    uint32_t reserved; // then `count` times a struct trace_switch
};
struct trace_task_record { // key: what, TRACE_TASK_
    struct trace_record record;
    uint64_t ns;
    uint32_t tid;
    uint32_t by; // BEGAN: the thread that started it
    char name[16]; // NAMED: the new name; EXECUTED: that of the program; NUL-padded
};
struct trace_page_fault_record { // key: TRACE_FAULT_
    struct trace_record record;
    uint64_t ns; // when the page was available; a thread that had to wait for it was switched out before
    uint32_t tid;
    uint32_t path_bytes;
    uint64_t address;
    uint64_t code; // the instruction that accessed it; 0 unknown: the kernel itself
    uint64_t offset; // in the file whose path follows; 0 if there is none
};
/// A wait snapshot: what a thread was found in while it was off-CPU for long.
struct trace_wait_record {
    struct trace_record record;
    uint64_t ns; // when it was found
    uint32_t tid;
    int32_t system_call; // its number; -1: none (a page fault)
    uint64_t arguments[2];
    uint32_t function_bytes; // kernel function (wchan in proc(5)), empty: unknown …
    uint32_t object_bytes; // … and the object that the first argument refers to, if it is a file descriptor; the texts follow
};
/// The object that a file descriptor of the process refers to: one that a thread of the run waited for, or its peer; or, when the program
/// was just executed, its standard input or an output.
struct trace_descriptor_record { // key: TRACE_ACCESS_ bits
    struct trace_record record;
    uint64_t ns; // when it was read
    int32_t descriptor;
    uint32_t object_bytes; // "pipe:[4711]", "socket:[4712]", or a path …
    uint32_t peer_bytes; // … and the peer of a socket, empty: unknown; the texts follow
    uint32_t reserved;
};
/// A file descriptor that a call has made, and what it refers to.
struct trace_opened_record { // key: TRACE_ACCESS_ and TRACE_OPENED_ bits
    struct trace_record record;
    uint64_t ticks; // the call returned
    uint32_t thread;
    int32_t descriptor;
    int32_t pair; // the other one that the call made; -1 none
    uint32_t object_bytes; // as /proc/self/fd shows it, empty: unknown; the text follows
    uint64_t stream; // address of its FILE or DIR, 0 none: fclose and closedir are given that
    uint64_t own_ticks; // as of a usage, with the agent's work for this record
};
/// Scheduling policy and priority of a thread, read when it or another thread of its process was found waiting.
struct trace_priority_record {
    struct trace_record record;
    uint64_t ns;
    uint32_t tid;
    int32_t policy; // SCHED_ constant of sched(7)
    int32_t nice;
    uint32_t priority; // for SCHED_FIFO and SCHED_RR
};
/// One of the file descriptors that a thread was found waiting for at once, in poll(2), select(2), epoll_wait(2) or a similar call.
/// Each has a record, all with the same time.
struct trace_polled_record { // key: TRACE_ACCESS_ bits, what it waits to do
    struct trace_record record;
    uint64_t ns;
    uint32_t tid;
    int32_t descriptor;
    uint32_t object_bytes; // the object it refers to; the text follows
    uint32_t reserved;
};
/// One stack, innermost first.
struct trace_sample {
    uint64_t ns;
    uint32_t tid;
    uint16_t count;
    uint16_t flags; // then `count` times a uint64_t: a code address (a return address from the second on), or TRACE_SAMPLE_…
};
/// SAMPLES: taken by CPU time. WAIT_STACKS: of threads that were off-CPU for long, when they were looked at; every address is one that a call
/// returns to: the first is where the system call does, or one more than the instruction that waits for a page.
struct trace_samples_record {
    struct trace_record record;
    uint32_t count; // number of struct trace_sample that follow, each with its addresses after it
    uint32_t reserved;
};

/// CODE_NAME: name that a compiler gave to code that the process generated at run time and that is in no file.
/// KERNEL_NAME: a function of the kernel that a sample has met, as /proc/kallsyms names it.
struct trace_code_name_record {
    struct trace_record record;
    uint64_t address;
    uint64_t code_bytes;
    uint32_t name_bytes, reserved; // name follows
};

/// A program that a process of the run executed and that has no trace.
struct trace_unrecorded_record { // key: why, TRACE_UNRECORDED_
    struct trace_record record;
    uint64_t ns; // CLOCK_MONOTONIC: when it was executed, or, without kernel events, found
    uint32_t pid;
    uint32_t parent; // process id of its parent, 0 unknown
    uint32_t count; // number of processes that executed it; of more than one, `ns`, `pid` and `parent` are the first one's
    uint32_t path_bytes; // its executable, or the name that the kernel gives it (15 characters); the text follows
};

/// Relocations of a module by the module they resolve to, a record per pair. A lazily bound slot counts for the module it would resolve to.
struct trace_binding_record {
    struct trace_record record;
    uint32_t module; // the module that has the relocations …
    uint32_t to_module; // … and the one they resolve to
    uint32_t calls; // jump slots
    uint32_t addresses; // other relocations that name a symbol
};
#endif
#endif
