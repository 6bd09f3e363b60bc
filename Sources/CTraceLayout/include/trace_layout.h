// The bytes of a trace file, declared once. The agent's assembly takes the event bits from here, its C and Swift
// and the reader take the structures. `docs/format.md` describes the same thing in prose; layout.c asserts it.
//
// Everything is little-endian, naturally aligned, and at a fixed offset. An all-zero word is never an event and an
// all-zero header is never a chunk, so that a file which ends in untouched pages reads as "nothing more".
#ifndef TRACE_LAYOUT_H
#define TRACE_LAYOUT_H

#define TRACE_VERSION 1
#define TRACE_HEADER_BYTES 4096
#define TRACE_CHUNK_MAGIC 0x4b484354 /* "TCHK" */
#define TRACE_CHUNK_ALIGNMENT 4096

// Event word. Bits 0-1 are the kind, 2-21 the function, 22-63 a time in ticks since the base in force; a complete call
// splits those 42 bits: 22-44 its start, 45-63 its duration. So an enter becomes a complete call by one addition.
#define EVENT_CONTROL 0
#define EVENT_ENTER 1
#define EVENT_EXIT 2
#define EVENT_COMPLETE 3
#define EVENT_KIND_BITS 2
#define EVENT_FUNCTION_SHIFT 2
#define EVENT_FUNCTION_BITS 20
#define EVENT_TIME_SHIFT 22
#define EVENT_TIME_BITS 42
#define EVENT_START_BITS 23 /* of a complete call; also the reach of a base for enters and complete calls */
#define EVENT_DURATION_SHIFT 45
#define EVENT_DURATION_BITS 19

// Control word: bits 2-7 say which, 8-63 are its payload.
#define CONTROL_KIND_SHIFT 2
#define CONTROL_PAYLOAD_SHIFT 8
#define CONTROL_PAYLOAD_BITS 56
#define CONTROL_BASE 1    /* payload: low 56 bits of the base, in ticks, for the words that follow */
#define CONTROL_RESUME 2  /* payload: low 56 bits of the enter time of the frame that the next word closes */
#define CONTROL_UNWOUND 3 /* payload: time since the base (42 bits) | count << 42: that many innermost frames were left */
#define CONTROL_LOST 4    /* payload: number of events that could not be written here */
#define CONTROL_MARK 5    /* payload: time since the base (42 bits) | mark << 42: a point that the program named */

#ifndef __ASSEMBLER__
#include <stdint.h>

enum { TRACE_CLOCK_TSC = 1, TRACE_CLOCK_CNTVCT = 2, TRACE_CLOCK_MONOTONIC = 3 };
enum { TRACE_RECORDING = 0, TRACE_FINISHED = 1, TRACE_STOPPED = 2 };
enum { TRACE_STOP_NONE = 0, TRACE_STOP_SPACE = 1, TRACE_STOP_LIMIT = 2, TRACE_STOP_FILE = 3, TRACE_STOP_MEMORY = 4,
       TRACE_STOP_CONFINED = 5 }; // the program was about to forbid itself system calls (seccomp)
enum { TRACE_MODE_FULL = 0, TRACE_MODE_RING = 1 };
enum { TRACE_FLAG_LATE = 1,        // some constructors had run before the agent was entered
       TRACE_FLAG_NO_HOOK = 2 };   // the loader's debugger hook was not as expected: later modules are seen late
enum { TRACE_CHUNK_EVENTS = 1, TRACE_CHUNK_METADATA = 2,
       TRACE_CHUNK_VOID = 3 }; // being copied: its size is right, its content is not there yet
enum { TRACE_CHUNK_CLOSED = 1, TRACE_CHUNK_FRAMES_CUT = 2 };

/// Two clocks read at one moment. Two such samples give the length of a tick.
struct trace_clock_sample {
    uint64_t ticks;
    uint64_t monotonic_ns;
};

/// The first page of the file. Mapped shared by the agent for as long as the process lives.
struct trace_file_header {
    uint8_t magic[8]; // "TRACER\x1a\n"
    uint32_t version;
    uint32_t header_bytes;
    uint32_t machine; // e_machine of the ELF header: 62 x86_64, 183 aarch64
    uint32_t page_bytes;
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t clock;
    uint32_t state;
    uint32_t stop_reason;
    uint32_t mode;
    uint64_t ticks_per_second; // nominal, 0 when it must be computed from the samples
    struct trace_clock_sample first; // agent start
    struct trace_clock_sample last;  // latest chunk opened, or the end
    uint64_t first_realtime_ns;
    uint64_t next_offset;     // where the next chunk goes: the only word that threads contend for
    uint64_t prepared_offset; // `tracer record` has allocated and touched the file up to here
    uint64_t size_limit;      // bytes, 0 none
    uint64_t dropped;         // calls that were made while nothing could be written
    uint64_t minimum_ticks;   // TRACER_MINMS in ticks
    uint32_t maximum_depth;   // 0 none
    uint32_t flags;
    uint64_t start_ticks;     // time the agent took before the program went on: from here …
    uint64_t started_ticks;   // … to here
    uint64_t leaf_cost_ticks; // calibrated cost of recording one leaf call, 0 unknown
    uint64_t process_start;   // starttime of /proc/self/stat: tells a reused pid from this process
    uint64_t generation;      // chunks opened so far, orders the chunks of a ring
    uint64_t session;         // of `tracer record`: the same in all processes of one run, 0 without
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
    uint32_t byte_count; // of the whole chunk
    uint32_t body_offset; // of the first event or record, from the start of the chunk
    uint32_t thread; // index, 0 for metadata
    uint32_t tid;
    uint64_t sequence; // of this thread's chunks, from 0; two with one number: the closed one is a copy, read that
    struct trace_clock_sample opened; // its ticks are the first base
    uint64_t used_bytes; // 0 while open; then the end of the last event from the start of the chunk
    uint64_t filtered_by_time;
    uint64_t filtered_by_depth;
    uint64_t dropped;
    uint32_t open_frames;   // frames open when it began …
    uint32_t stored_frames; // … of which this many, the innermost, are stored
    char thread_name[16];
    uint64_t generation;
    uint64_t reserved[2];
};

enum {
    TRACE_RECORD_TEXT = 1,
    TRACE_RECORD_MODULE = 2,
    TRACE_RECORD_FUNCTION = 3,
    TRACE_RECORD_THREAD = 4,
    TRACE_RECORD_THREAD_END = 5,
    TRACE_RECORD_MODULE_END = 6,
};
enum {
    TRACE_TEXT_PROGRAM = 1,     // path of the executable
    TRACE_TEXT_ARGUMENTS = 2,   // NUL after each
    TRACE_TEXT_DIRECTORY = 3,
    TRACE_TEXT_SETTINGS = 4,    // NAME=VALUE, NUL after each: the TRACER_ variables as they took effect
    TRACE_TEXT_MESSAGE = 5,     // what the agent had to say: one line
    TRACE_TEXT_ENVIRONMENT = 6, // LD_* and PATH-like names only, NUL after each; never secrets
};
enum { TRACE_FUNCTION_TAIL = 1 }; // entry is recorded, as a complete call of no length; exit is not

/// Every metadata record begins so. `type` is written last. Size is a multiple of 8 and includes this.
struct trace_record {
    uint16_t type;
    uint16_t key; // of a text
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
struct trace_function_record {
    struct trace_record record;
    uint32_t function; // 1 … 2^20-1
    uint32_t module;   // 0xffffffff: none
    uint64_t address;  // absolute
    uint32_t flags;
    uint32_t name_bytes; // name follows
};
struct trace_thread_record {
    struct trace_record record;
    uint32_t thread; // index from 0
    uint32_t tid;
    uint64_t ticks;
};
struct trace_module_end_record {
    struct trace_record record;
    uint32_t module;
    uint32_t reserved;
    uint64_t ticks;
};
#endif
#endif
