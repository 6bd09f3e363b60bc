// Code that neither Swift nor assembly can express: a thread-local variable, and calls that the compiler must not see through.
#include "layout.h"

/// A thread that has not begun: every stack pointer is above its innermost frame, so the first call is slow.
static struct frame_record unborn;
static struct write_position unborn_position;

/// The initial image is copied into each new thread by the loader, after it has relocated these pointers.
__thread struct thread_state tracer_thread = {.top = &unborn, .position = &unborn_position};

uint64_t tracer_ready_contexts[READY_CONTEXTS];
struct label_state tracer_label_state[LABEL_KINDS];
struct label_area tracer_label_area;
uint64_t tracer_lazy_sink, tracer_patched_special;
#if defined(__x86_64__)
uint32_t tracer_lazy_components, tracer_lazy_bytes;
#endif
uint64_t tracer_closed_labels[2];
const uint32_t tracer_no_control = 0;
const uint32_t *tracer_control = &tracer_no_control;
uint32_t tracer_control_seen;
uint8_t *tracer_stub_blocks[STUB_BLOCKS];

struct function_hook tracer_no_function;
struct closed_functions tracer_closed_functions = {0, {&tracer_no_function}};
struct function_hook **tracer_instrumented = tracer_closed_functions.entries;
uint64_t tracer_instrumented_label;

/// Functions for Calibration, which call or are called a given number of times: nothing; some steps that wait for each other; and
/// nothing after a branch that no CPU can predict.
void tracer_some_work(void) {
    unsigned long x = 3;
#pragma clang loop unroll(disable)
    for (int n = 0; n < 16; n++) {
        x *= x + 3;
        __asm__ volatile("" : "+r"(x));
    }
}
void tracer_call_unforeseen(void (*function)(void), long count) {
    static uint32_t random = 1;
    for (; count > 0; count--) {
        random = random * 1664525 + 1013904223; // Knuth, TAOCP 2, 3.3.4, table 1
        if (random >> 31) __asm__ volatile("nop" ::: "memory");
        function();
        __asm__ volatile("" ::: "memory");
    }
}
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
