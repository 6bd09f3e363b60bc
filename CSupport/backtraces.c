// backtrace() and _Unwind_Backtrace() walk through traced frames to the end, and would show the trampolines between
// them: a program that counts or prints its frames would see us. Their slots lead here instead, and what is ours is left
// out. Other functions of an unwinder are not concerned: exceptions pass through frames that nobody looks at.
#include "shim.h"

#if defined(__x86_64__)
enum { SYS_mmap = 9, SYS_munmap = 11 };
#elif defined(__aarch64__)
enum { SYS_mmap = 222, SYS_munmap = 215 };
#endif
enum { MOST_FRAMES = 1 << 16 };

static struct own_image own;
static uint64_t real_backtrace, real_unwind_backtrace, real_get_ip;

static int is_label(uint64_t address) { return address - (uint64_t)tracer_labels < LABEL_COUNT * LABEL_BYTES; }
static int is_own(uint64_t address) { return address - own.low < own.high - own.low; }

/// `found` without our frames, in `frames`. The address above a label is one less than it was on the stack
/// (trampoline.S, .room).
static int without_own(void **frames, int size, void **found, int count) {
    int kept = 0;
    for (int n = 0; n < count && kept < size; n++) {
        if (is_own((uint64_t)found[n])) continue;
        frames[kept++] = (char *)found[n] + (n > 0 && is_label((uint64_t)found[n - 1]));
    }
    return kept;
}

static int list_frames(void **frames, int size) {
    int (*real)(void **, int) = (int (*)(void **, int))real_backtrace;
    if (size <= 0) return real(frames, size);
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
uint64_t tracer_replace_unwind_backtrace(struct own_image image, uint64_t target, uint64_t get_ip) {
    own = image;
    if (real_unwind_backtrace && real_unwind_backtrace != target) return target;
    real_get_ip = get_ip;
    real_unwind_backtrace = target;
    return (uint64_t)&walk_frames;
}
