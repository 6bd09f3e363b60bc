// The part of shim.h that is x86_64's own.
#ifndef TRACER_SHIM_X86_64_H
#define TRACER_SHIM_X86_64_H

#define TRAMPOLINE_SET(variant) \
    (struct trampoline_set){(uint64_t)&tracer_enter_##variant, (uint64_t)&tracer_special_##variant, \
                            (uint64_t)&tracer_returned_##variant}
static inline struct trampoline_set tracer_trampolines(int monotonic, int filtered) {
    return monotonic ? filtered ? TRAMPOLINE_SET(monotonic_filtered) : TRAMPOLINE_SET(monotonic)
                     : filtered ? TRAMPOLINE_SET(cycles_filtered) : TRAMPOLINE_SET(cycles);
}

#include <cpuid.h>
typedef uint8_t tracer_bytes __attribute__((vector_size(16)));
typedef char tracer_flags __attribute__((vector_size(16)));
typedef uint8_t tracer_bytes_anywhere __attribute__((vector_size(16), aligned(1)));
/// Which of 64 bytes are ff and followed by 15 or 25 (or 05 or 35: the bits by which they differ are not looked at).
/// 65 bytes are read. Nearly always none: that is asked of all at once, in the fewest instructions.
static inline uint64_t tracer_call_candidates(const void *text) {
    tracer_bytes both[4];
    __builtin_prefetch((const char *)text + 2048); // the processor's own prefetching ends at each page
    for (int n = 0; n < 4; n++) {
        tracer_bytes first = *(const tracer_bytes_anywhere *)((const char *)text + n * 16);
        tracer_bytes second = *(const tracer_bytes_anywhere *)((const char *)text + n * 16 + 1);
        both[n] = ((second & 0xcf) ^ 0xfa) & first; // ff: both are right
    }
    tracer_bytes most = __builtin_elementwise_max(__builtin_elementwise_max(both[0], both[1]),
                                                  __builtin_elementwise_max(both[2], both[3]));
    if (!__builtin_ia32_pmovmskb128((tracer_flags)(most == 0xff))) return 0;
    uint64_t hits = 0;
    for (int n = 0; n < 4; n++) {
        hits |= (uint64_t)(uint16_t)__builtin_ia32_pmovmskb128((tracer_flags)(both[n] == 0xff)) << (n * 16);
    }
    return hits;
}
typedef int32_t tracer_words __attribute__((vector_size(16)));
typedef uint32_t tracer_distances __attribute__((vector_size(16)));
typedef uint32_t tracer_distances_anywhere __attribute__((vector_size(16), aligned(1)));
/// At which of the next sixteen offsets p is (32 bits of the text at p) + first + p below `range`, in 32 bits? 19 bytes are
/// read. In range means: above `least`, as signed numbers, once they are moved so that the range ends at the largest one.
static inline uint32_t tracer_references(const void *text, uint32_t first, uint32_t range) {
    const tracer_distances places = {0, 4, 8, 12};
    int32_t least = (int32_t)(0x7fffffffu - range);
    tracer_words found[4];
    for (int k = 0; k < 4; k++) {
        tracer_distances distance = *(const tracer_distances_anywhere *)((const char *)text + k);
        found[k] = (tracer_words)(distance + (places + (first + (uint32_t)k + 0x80000000u - range))) > least;
    }
    tracer_words any = found[0] | found[1] | found[2] | found[3];
    if (!__builtin_ia32_pmovmskb128((tracer_flags)any)) return 0;
    uint32_t hits = 0;
    for (int k = 0; k < 4; k++) {
        for (int n = 0; n < 4; n++) hits |= (uint32_t)(found[k][n] & 1) << (4 * n + k);
    }
    return hits;
}
static inline uint64_t tracer_cycles(void) { return __builtin_ia32_rdtsc(); }
/// CPUID.80000007H:EDX[8]: the counter runs at one rate in every power state, on every core.
static inline int tracer_cycles_usable(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 256);
}
/// Ticks per second where the processor says so (leaf 15H), else 0.
static inline uint64_t tracer_cycles_frequency(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(0x15, &a, &b, &c, &d) || !a || !b || !c) return 0;
    return (uint64_t)c * b / a;
}
#endif
