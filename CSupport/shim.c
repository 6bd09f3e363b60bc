// What neither Swift nor assembly can say: a thread-local variable, and calls that the compiler must not see through.
#include "shim.h"

/// A thread that has not begun: every stack pointer is above its innermost frame, so the first call is slow.
static struct frame_record unborn;
static struct thread_hot unborn_hot;

/// The initial image is copied into each new thread by the loader, after it has relocated these pointers.
__thread struct thread_state tracer_thread = {.top = &unborn, .hot = &unborn_hot};

struct label_state tracer_label_state;
uint8_t *tracer_stub_blocks[STUB_BLOCKS];

/// What Calibration calls: nothing, as often as it is told, from one place.
void tracer_nothing(void) { __asm__ volatile(""); }
void tracer_call(void (*function)(void), long count) {
    for (; count > 0; count--) {
        function();
        __asm__ volatile("" ::: "memory");
    }
}

#if defined(__aarch64__)
struct tracer_capabilities tracer_capabilities;

/// glibc elf/dl-irel.h, elf_ifunc_invoke: the first word with the bit that says there is a second argument.
uint64_t tracer_call_resolver(uint64_t resolver) {
    return ((uint64_t (*)(uint64_t, const struct tracer_capabilities *))resolver)(tracer_capabilities.words[0] | 1ul << 62,
                                                                                   &tracer_capabilities);
}
#endif
