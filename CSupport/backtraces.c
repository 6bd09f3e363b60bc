// backtrace() and _Unwind_Backtrace() walk through traced frames to the end, and would show the trampolines between
// them: a program that counts or prints its frames would see us. Their slots lead here instead, and what is ours is left
// out. So do libunwind's own list (unw_backtrace) and its way to go from frame to frame (unw_step, of HP's and of LLVM's).
// Other functions of an unwinder are not concerned: exceptions pass through frames that nobody looks at.
#include "layout.h"

#if defined(__x86_64__)
enum { SYS_mmap = 9, SYS_munmap = 11 };
#elif defined(__aarch64__)
enum { SYS_mmap = 222, SYS_munmap = 215 };
#endif
enum { MOST_FRAMES = 1 << 16 };

static struct own_image own;
static uint64_t real_backtrace, real_unwind_backtrace, real_get_ip;

static int is_label(uint64_t address) { return address - tracer_label_area.low < tracer_label_area.span; }
/// Of the libraries, and the code that the agent has moved: what that stands for is the next frame (moved_frames.c).
static int is_own(uint64_t address) { return address - own.low < own.high - own.low || is_label(address) || tracer_is_moved(address); }

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
        if (is_own((uint64_t)found[n])) continue;
        frames[kept++] = n > 0 && is_label((uint64_t)found[n - 1]) ? (void *)as_on_stack((uint64_t)found[n]) : found[n];
    }
    return kept;
}

/// After the program has confined itself no memory is asked for, and no more of ours comes onto the stack.
__attribute__((noinline)) static int list_confined(int (*real)(void **, int), void **frames, int size) {
    void *found[192];
    int room = (int)(sizeof found / sizeof *found), count = real(found, room);
    int kept = without_own(frames, size, found, count);
    if (kept == size || count < room) return kept;
    return without_own(frames, size, frames, real(frames, size));
}

static int list_frames(void **frames, int size) {
    int (*real)(void **, int) = (int (*)(void **, int))real_backtrace;
    if (size <= 0) return real(frames, size);
    if (__atomic_load_n(&tracer_confined, __ATOMIC_ACQUIRE)) return list_confined(real, frames, size);
    // Room for ours, in memory of our own: the stack may be a signal stack.
    for (int room = size < MOST_FRAMES ? 2 * size + 64 : size;; room *= 2) {
        long bytes = (long)room * 8;
        long place = tracer_system_call(SYS_mmap, 0, bytes, 3, 0x22, -1, 0);
        if (place < 0 && place > -4096) return without_own(frames, size, frames, real(frames, size));
        int count = real((void **)place, room);
        int kept = without_own(frames, size, (void **)place, count);
        tracer_system_call(SYS_munmap, place, bytes, 0, 0, 0, 0);
        if (kept == size || count < room || room >= MOST_FRAMES) return kept;
    }
}

typedef int (*frame_callback)(void *context, void *argument); // _Unwind_Trace_Fn
struct walk {
    frame_callback callback;
    void *argument;
};
static int each(void *context, void *place) {
    struct walk *walk = place;
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
    cursor_register get, asked; // its own, and the one that the program calls
    int address; // the register that stands for it
} unwinders[CURSOR_KINDS];
/// Where a cursor has come to above a frame of ours: the address is one less there, too. By the cursor's place; what is
/// overwritten is only not corrected.
static struct {
    const void *cursor;
    uint64_t address;
} arrivals[64];
static unsigned arrival(const void *cursor) { return (unsigned)((uint64_t)cursor >> 4 ^ (uint64_t)cursor >> 10) & 63; }

static int step_by(int kind, void *cursor) {
    for (int passed = 0;;) {
        uint64_t address = 0;
        int result = unwinders[kind].step(cursor);
        if (result <= 0 || unwinders[kind].get(cursor, unwinders[kind].address, &address)) return result;
        if (!is_own(address)) {
            arrivals[arrival(cursor)].cursor = passed ? cursor : 0;
            arrivals[arrival(cursor)].address = address;
            return result;
        }
        passed = is_label(address);
    }
}
static int get_by(int kind, cursor_register get, void *cursor, int number, uint64_t *value) {
    int result = get(cursor, number, value);
    unsigned n = arrival(cursor);
    if (!result && number == unwinders[kind].address && arrivals[n].cursor == cursor && arrivals[n].address == *value)
        *value = as_on_stack(*value);
    return result;
}
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
        if (get_by(0, unwinders[0].get, cursor, unwinders[0].address, &address)) break;
        frames[count++] = (void *)address;
    }
    return count;
}
#define CURSOR_KIND(n) \
    static int step_##n(void *cursor) { return step_by(n, cursor); } \
    static int get_##n(void *cursor, int number, uint64_t *value) { return get_by(n, unwinders[n].asked, cursor, number, value); }
CURSOR_KIND(0)
CURSOR_KIND(1)
CURSOR_KIND(2)
_Static_assert(CURSOR_KINDS == 3, "kinds of cursors");

uint64_t tracer_replace_step(struct own_image image, uint64_t target, uint64_t get, int kind, int address) {
    static int (*const ours[])(void *) = {step_0, step_1, step_2};
    own = image;
    if (unwinders[kind].step && unwinders[kind].step != (cursor_step)target) return target;
    unwinders[kind].get = (cursor_register)get;
    unwinders[kind].address = address;
    unwinders[kind].step = (cursor_step)target;
    return (uint64_t)ours[kind];
}
uint64_t tracer_replace_get(struct own_image image, uint64_t target, int kind, int address) {
    static int (*const ours[])(void *, int, uint64_t *) = {get_0, get_1, get_2};
    own = image;
    if (unwinders[kind].asked && unwinders[kind].asked != (cursor_register)target) return target;
    unwinders[kind].address = address;
    unwinders[kind].asked = (cursor_register)target;
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
