// backtrace() and _Unwind_Backtrace() walk through recorded frames to the end, and would show the trampolines between
// them: a program that counts or prints its frames would see us. Their slots lead here instead, and what is ours is omitted.
// The same holds for libunwind's own list (unw_backtrace) and its way to go from frame to frame (unw_step, of nongnu libunwind and of
// LLVM's). Other functions of an unwinder are not concerned: exceptions pass through frames that nobody looks at. But nongnu libunwind must
// be helped where it goes on at another address.
#include "layout.h"

#if defined(__x86_64__)
enum { SYS_mmap = 9, SYS_munmap = 11 };
#elif defined(__aarch64__)
enum { SYS_mmap = 222, SYS_munmap = 215 };
#endif
enum { MOST_FRAMES = 1 << 16 };

static struct own_image own;
static uint64_t real_backtrace, real_unwind_backtrace, real_get_ip;

/// True for addresses in the agent's libraries and in instructions that it has relocated: what these stand for is the next frame
/// (relocated_frames.c).
static int is_own(uint64_t address) {
    return address - own.low < own.high - own.low || tracer_is_label(address) || tracer_is_relocated(address);
}

/// Interrupted on the way from a function's first byte to its stub: the next frame is the function's.
static int leads_to(void *frame, void *next) {
    return tracer_is_landing((uint64_t)frame) && tracer_original((uint64_t)frame).address == (uint64_t)next;
}

/// An address above a label is one less than it was on the stack; of aarch64, where it is a multiple of 4, but for what signal handlers
/// return to (trampoline.S, CFI_OF_LABELS).
static uint64_t as_on_stack(uint64_t address) {
#if defined(__aarch64__)
    return (address + 3) & ~3ull;
#else
    return address + 1;
#endif
}

/// `found` without our frames, in `frames`.
static int without_own(void **frames, int size, void **found, int count) {
    int kept = 0;
    for (int n = 0; n < count && kept < size; n++) {
        if (is_own((uint64_t)found[n]) || n + 1 < count && leads_to(found[n], found[n + 1])) continue;
        frames[kept++] = n > 0 && tracer_is_label((uint64_t)found[n - 1]) ? (void *)as_on_stack((uint64_t)found[n]) : found[n];
    }
    return kept;
}

/// After the program has confined itself no memory is asked for, and no more of ours comes onto the stack.
__attribute__((noinline)) static int list_confined(int (*real)(void **, int), void **frames, int size) {
    void *found[192];
    int capacity = (int)(sizeof found / sizeof *found), count = real(found, capacity);
    int kept = without_own(frames, size, found, count);
    if (kept == size || count < capacity) return kept;
    return without_own(frames, size, frames, real(frames, size));
}

static int list_frames(void **frames, int size) {
    int (*real)(void **, int) = (int (*)(void **, int))real_backtrace;
    if (size <= 0) return real(frames, size);
    if (__atomic_load_n(&tracer_confined, __ATOMIC_ACQUIRE)) return list_confined(real, frames, size);
    // Space for ours, in memory of our own: the stack may be a signal stack.
    for (int capacity = size < MOST_FRAMES ? 2 * size + 64 : size;; capacity *= 2) {
        long bytes = (long)capacity * 8;
        long address = tracer_system_call(SYS_mmap, 0, bytes, 3, 0x22, -1, 0);
        if (address < 0 && address > -4096) return without_own(frames, size, frames, real(frames, size));
        int count = real((void **)address, capacity);
        int kept = without_own(frames, size, (void **)address, count);
        tracer_system_call(SYS_munmap, address, bytes, 0, 0, 0, 0);
        if (kept == size || count < capacity || capacity >= MOST_FRAMES) return kept;
    }
}

typedef int (*frame_callback)(void *context, void *argument); // _Unwind_Trace_Fn
struct walk {
    frame_callback callback;
    void *argument;
};
static int each(void *context, void *argument) {
    struct walk *walk = argument;
    if (is_own(((uint64_t (*)(void *))real_get_ip)(context))) return 0; // _URC_NO_REASON: go on
    return walk->callback(context, walk->argument);
}
static int walk_frames(frame_callback callback, void *argument) {
    struct walk walk = {callback, argument};
    return ((int (*)(frame_callback, void *))real_unwind_backtrace)(each, &walk);
}

uint64_t tracer_replace_backtrace(struct own_image image, uint64_t target) {
    own = image;
    if (real_backtrace && real_backtrace != target) return target;
    real_backtrace = target;
    return (uint64_t)&list_frames;
}

// libunwind: a cursor goes from frame to frame, and is asked for the address of the one it is at.
typedef int (*cursor_step)(void *cursor);
typedef int (*cursor_register)(void *cursor, int number, uint64_t *value);
static struct {
    cursor_step step;
    cursor_register get;
    int address; // the register that stands for it
} unwinders[CURSOR_KINDS];

__attribute__((noinline)) static int step_by(int kind, void *cursor) {
    for (;;) {
        uint64_t address = 0;
        int result = unwinders[kind].step(cursor);
        if (result <= 0 || unwinders[kind].get(cursor, unwinders[kind].address, &address) || !is_own(address)) return result;
    }
}

// nongnu libunwind goes on at another address (_Unwind_SetIP, by which a personality routine names its landing pad; unw_set_reg) by
// writing it to where it has read the return address: to the stack. What a label stands for is no location but a value, and it writes to
// that address all the same (dwarf_put in include/tdep-x86_64/libunwind_i.h). So for the time of that call the cursor has a location.
enum { CURSOR_WORDS = 64, LOCATION_VALUE = 4 }; // the locations are within 42; DWARF_LOC_TYPE_VAL

/// In the cursor: the location { address, LOCATION_VALUE }. Null: there is none, or more than one.
__attribute__((noinline)) static uint64_t *valued(uint64_t *cursor, uint64_t address) {
    uint64_t *found = 0;
    for (int n = 0; n < CURSOR_WORDS; n++) {
        if (cursor[n] != address || cursor[n + 1] != LOCATION_VALUE) continue;
        if (found) return 0;
        found = cursor + n;
    }
    return found;
}
struct saved_location {
    uint64_t *location;
    uint64_t word;
};
static void give(struct saved_location *saved, uint64_t *cursor, uint64_t address) {
    saved->location = valued(cursor, address);
    if (!saved->location) return;
    saved->location[0] = (uint64_t)&saved->word;
    saved->location[1] = 0; // DWARF_LOC_TYPE_MEM
}
static void take(const struct saved_location *saved) {
    if (!saved->location) return;
    saved->location[0] = saved->word;
    saved->location[1] = LOCATION_VALUE;
}

static struct {
    uint64_t (*get)(void *context);
    void (*set)(void *context, uint64_t address);
} landing;
static void set_landing(void *context, uint64_t address) {
    uint64_t now = landing.get(context);
    struct saved_location saved = {.word = now};
    give(&saved, context, now); // the cursor is the first of struct _Unwind_Context (src/unwind/unwind-internal.h)
    landing.set(context, address);
    take(&saved);
}

typedef int (*cursor_write)(void *cursor, int number, uint64_t value);
static struct {
    cursor_write set;
    cursor_register get;
    int address;
} writers[WRITER_KINDS];
__attribute__((noinline)) static int set_by(int kind, void *cursor, int number, uint64_t value) {
    struct saved_location saved = {0};
    if (number == writers[kind].address && !writers[kind].get(cursor, number, &saved.word)) give(&saved, cursor, saved.word);
    int result = writers[kind].set(cursor, number, value);
    take(&saved);
    return result;
}
static int set_0(void *cursor, int number, uint64_t value) { return set_by(0, cursor, number, value); }
static int set_1(void *cursor, int number, uint64_t value) { return set_by(1, cursor, number, value); }
_Static_assert(WRITER_KINDS == 2, "kinds of nongnu libunwind's cursors");

/// unw_backtrace, by steps. Its own fast way takes a frame with the mark of a signal handler's for one that the kernel has made.
static struct {
    int (*capture)(void *context), (*begin)(void *cursor, void *context);
} lister;
static int list_by_steps(void **frames, int size) {
    _Alignas(16) uint64_t context[128], cursor[128]; // unw_context_t, unw_cursor_t: 968 and 1016 bytes
    int count = 0;
    if (lister.capture(context) || lister.begin(cursor, context)) return 0;
    while (step_by(0, cursor) > 0 && count < size) {
        uint64_t address;
        if (unwinders[0].get(cursor, unwinders[0].address, &address)) break;
        frames[count++] = (void *)address;
    }
    return count;
}
static int step_0(void *cursor) { return step_by(0, cursor); }
static int step_1(void *cursor) { return step_by(1, cursor); }
static int step_2(void *cursor) { return step_by(2, cursor); }
_Static_assert(CURSOR_KINDS == 3, "kinds of cursors");

/// dladdr and dladdr1 say of a label, after whose call a function returns, what they would of the address that it stands for. Who asks
/// for the byte before that has one in the call.
static int (*real_questions[2])(uint64_t, void *, void *, int);
static uint64_t as_program(uint64_t address) {
    uint64_t label = address & -LABEL_BYTES;
    return tracer_is_label(address) ? *tracer_label_return(label) - (address - label < LABEL_CALL_BYTES) : address;
}
static int ask_module(uint64_t address, void *found) { return real_questions[1](as_program(address), found, 0, 0); }
static int ask_module_more(uint64_t address, void *found, void *more, int flags) {
    return real_questions[0](as_program(address), found, more, flags);
}
uint64_t tracer_replace_module_question(uint64_t target, int has_more) {
    if (real_questions[!has_more] && (uint64_t)real_questions[!has_more] != target) return target;
    real_questions[!has_more] = (int (*)(uint64_t, void *, void *, int))target;
    return has_more ? (uint64_t)&ask_module_more : (uint64_t)&ask_module;
}

uint64_t tracer_replace_step(struct own_image image, uint64_t target, uint64_t get, int kind, int address) {
    static int (*const ours[])(void *) = {step_0, step_1, step_2};
    own = image;
    if (unwinders[kind].step && unwinders[kind].step != (cursor_step)target) return target;
    unwinders[kind].get = (cursor_register)get;
    unwinders[kind].address = address;
    unwinders[kind].step = (cursor_step)target;
    return (uint64_t)ours[kind];
}
uint64_t tracer_replace_unwind_backtrace(struct own_image image, uint64_t target, uint64_t get_ip) {
    own = image;
    if (real_unwind_backtrace && real_unwind_backtrace != target) return target;
    real_get_ip = get_ip;
    real_unwind_backtrace = target;
    return (uint64_t)&walk_frames;
}
uint64_t tracer_replace_list(struct own_image image, uint64_t target, uint64_t capture, uint64_t begin, uint64_t step, uint64_t get,
                             int address) {
    if (lister.capture && lister.capture != (int (*)(void *))capture) return target;
    lister.capture = (int (*)(void *))capture;
    lister.begin = (int (*)(void *, void *))begin;
    return tracer_replace_step(image, step, get, 0, address) == step ? target : (uint64_t)&list_by_steps;
}
uint64_t tracer_replace_landing(uint64_t target, uint64_t get) {
    if (landing.set && landing.set != (void (*)(void *, uint64_t))target) return target;
    landing.get = (uint64_t (*)(void *))get;
    landing.set = (void (*)(void *, uint64_t))target;
    return (uint64_t)&set_landing;
}
uint64_t tracer_replace_set(uint64_t target, uint64_t get, int kind, int address) {
    static const cursor_write ours[] = {set_0, set_1};
    if (writers[kind].set && writers[kind].set != (cursor_write)target) return target;
    writers[kind].get = (cursor_register)get;
    writers[kind].address = address;
    writers[kind].set = (cursor_write)target;
    return (uint64_t)ours[kind];
}
