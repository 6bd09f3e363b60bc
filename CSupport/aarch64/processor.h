// The part of layout.h that is aarch64's own.
#ifndef TRACER_AARCH64_H
#define TRACER_AARCH64_H

/// getauxval(3)'s words for what the CPU can do, kept by tracer_set_capabilities. Its layout is that of
/// __ifunc_arg_t (glibc sys/ifunc.h), the second argument of every IFUNC resolver.
struct tracer_capabilities {
    uint64_t byte_count, words[2];
};
extern struct tracer_capabilities tracer_capabilities __attribute__((visibility("hidden")));
static inline void tracer_set_capabilities(uint64_t first, uint64_t second) {
    tracer_capabilities.byte_count = sizeof tracer_capabilities;
    tracer_capabilities.words[0] = first;
    tracer_capabilities.words[1] = second;
}
#define CAPABILITY_ATOMICS (1 << 8) /* HWCAP_ATOMICS: the additions of ARMv8.1, LSE */

/// How far the state of a thread is from its thread pointer; and when that is too far for the offset of a load.
static inline uint64_t tracer_thread_distance(void) { return (uint64_t)&tracer_thread - (uint64_t)__builtin_thread_pointer(); }
static inline int tracer_thread_is_far(void) { return tracer_thread_distance() + sizeof(struct thread_state) > 4096 * 8; }
static inline struct trampoline_set tracer_trampolines(int filtered) {
    int atomics = (tracer_capabilities.words[0] & CAPABILITY_ATOMICS) != 0;
    return tracer_trampoline_sets[filtered + atomics * 2 + tracer_thread_is_far() * 4];
}
/// A patched function is entered as through a slot: x16 and x17 are free there, too.
static inline struct trampoline_set tracer_patched_trampolines(int filtered) { return tracer_trampolines(filtered); }
void tracer_monotonic_x10(void) __attribute__((visibility("hidden")));
void tracer_monotonic_x11(void) __attribute__((visibility("hidden")));
/// Returns the address of the routine that puts the time into register x10 or x11, by its number.
static inline uint64_t tracer_address_monotonic(uint32_t number) {
    return number == 10 ? (uint64_t)&tracer_monotonic_x10 : (uint64_t)&tracer_monotonic_x11;
}

/// Makes code that was just written visible to the fetching of instructions, on all cores (ARM ARM B2.7.4; the line
/// sizes are in CTR_EL0, whose IDC and DIC bits say when a step is not needed).
static inline void tracer_code_written(uint64_t start, uint64_t end) {
    uint64_t type;
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(type));
    uint64_t data_line = 4ul << (type >> 16 & 15), code_line = 4ul << (type & 15);
    if (!(type >> 28 & 1)) {
        for (uint64_t address = start & -data_line; address < end; address += data_line) {
            __asm__ volatile("dc cvau, %0" ::"r"(address) : "memory");
        }
    }
    __asm__ volatile("dsb ish" ::: "memory");
    if (!(type >> 29 & 1)) {
        for (uint64_t address = start & -code_line; address < end; address += code_line) {
            __asm__ volatile("ic ivau, %0" ::"r"(address) : "memory");
        }
        __asm__ volatile("dsb ish" ::: "memory");
    }
    __asm__ volatile("isb" ::: "memory");
}

static inline void tracer_prepare_lazy(void) {}
/// Between two looks at a word that another CPU is about to change.
static inline void tracer_pause(void) { __asm__ volatile("yield"); }
/// Valgrind's request 0x1001 (valgrind.h): on a real CPU the rotations are a whole turn, and the answer stays 0.
static inline int tracer_is_under_valgrind(void) {
    uint64_t request[6] = {0x1001};
    register uint64_t answer __asm__("x3") = 0;
    register uint64_t *arguments __asm__("x4") = request;
    __asm__ volatile("ror x12, x12, #3\n ror x12, x12, #13\n ror x12, x12, #51\n ror x12, x12, #61\n orr x10, x10, x10"
                     : "+r"(answer)
                     : "r"(arguments)
                     : "cc", "memory");
    return answer != 0;
}
/// The stack pointer of a jmp_buf, as glibc stores it (sysdeps/unix/sysv/linux/aarch64/pointer_guard.h).
static inline uint64_t tracer_unmangle(uint64_t word, uint64_t guard) { return word ^ guard; }
static inline uint64_t tracer_cycles(void) {
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}
/// Ticks per second, as the firmware has set it.
static inline uint64_t tracer_cycles_frequency(void) {
    uint64_t frequency;
    __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
    return frequency;
}
/// The generic timer runs at one rate in every power state, on every core (ARM ARM D11.1). Firmware that did not set
/// its rate did not set it up.
static inline int tracer_cycles_usable(void) { return tracer_cycles_frequency() != 0; }
#endif
