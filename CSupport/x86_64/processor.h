// The part of layout.h that is x86_64's own.
#ifndef TRACER_X86_64_H
#define TRACER_X86_64_H

static inline struct trampoline_set tracer_trampolines(int filtered) { return tracer_trampoline_sets[filtered]; }
static inline struct trampoline_set tracer_patched_trampolines(int filtered) { return tracer_trampoline_sets[2 + filtered]; }
void tracer_monotonic(void) __attribute__((visibility("hidden")));
static inline uint64_t tracer_address_monotonic(void) { return (uint64_t)&tracer_monotonic; }

#include <cpuid.h>
typedef uint8_t tracer_bytes __attribute__((vector_size(16)));
typedef char tracer_flags __attribute__((vector_size(16)));
typedef uint8_t tracer_bytes_anywhere __attribute__((vector_size(16), aligned(1)));
/// Returns a mask of which of 64 bytes are ff followed by 15 or 25 (or 05 or 35: the bits in which they differ are ignored). Reads 65
/// bytes. Nearly always there are none: all are tested at once, in the fewest instructions.
static inline uint64_t tracer_call_candidates(const void *text) {
    tracer_bytes both[4];
    __builtin_prefetch((const char *)text + 2048); // the CPU's own prefetching ends at each page
    for (int n = 0; n < 4; n++) {
        tracer_bytes first = *(const tracer_bytes_anywhere *)((const char *)text + n * 16);
        tracer_bytes second = *(const tracer_bytes_anywhere *)((const char *)text + n * 16 + 1);
        both[n] = ((second & 0xcf) ^ 0xfa) & first; // ff: both are right
    }
    tracer_bytes most = __builtin_elementwise_max(__builtin_elementwise_max(both[0], both[1]), __builtin_elementwise_max(both[2], both[3]));
    if (!__builtin_ia32_pmovmskb128((tracer_flags)(most == 0xff))) return 0;
    uint64_t hits = 0;
    for (int n = 0; n < 4; n++) { hits |= (uint64_t)(uint16_t)__builtin_ia32_pmovmskb128((tracer_flags)(both[n] == 0xff)) << (n * 16); }
    return hits;
}
typedef int32_t tracer_words __attribute__((vector_size(16)));
typedef uint32_t tracer_distances __attribute__((vector_size(16)));
typedef uint32_t tracer_distances_anywhere __attribute__((vector_size(16), aligned(1)));
/// At which of the next sixteen offsets p is (32 bits of the text at p) + first + p below `range`, in 32 bits? 19 bytes are
/// read. In range means: above `least`, as signed numbers, once they are shifted so that the range ends at the largest one.
static inline uint32_t tracer_references(const void *text, uint32_t first, uint32_t range) {
    const tracer_distances offsets = {0, 4, 8, 12};
    int32_t least = (int32_t)(0x7fffffffu - range);
    tracer_words found[4];
    for (int k = 0; k < 4; k++) {
        tracer_distances distance = *(const tracer_distances_anywhere *)((const char *)text + k);
        found[k] = (tracer_words)(distance + (offsets + (first + (uint32_t)k + 0x80000000u - range))) > least;
    }
    tracer_words any = found[0] | found[1] | found[2] | found[3];
    if (!__builtin_ia32_pmovmskb128((tracer_flags)any)) return 0;
    uint32_t hits = 0;
    for (int k = 0; k < 4; k++) {
        for (int n = 0; n < 4; n++) hits |= (uint32_t)(found[k][n] & 1) << (4 * n + k);
    }
    return hits;
}
/// How tracer_lazy saves vector registers: which components of the extended state (Intel SDM volume 1, 13.1), and the space that
/// they take in the standard format, a multiple of 64. No component: fxsave.
extern uint32_t tracer_lazy_components, tracer_lazy_bytes __attribute__((visibility("hidden")));
static inline void tracer_prepare_lazy(void) {
    unsigned a, b, c, d, bytes = 576; // the legacy part and the header
    tracer_lazy_bytes = 512;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    tracer_lazy_components = a & 0xee; // SSE, AVX, bounds, AVX-512: what calls pass arguments in
    for (unsigned n = 2; n < 8; n++) {
        unsigned size, offset;
        if (!(tracer_lazy_components & 1u << n) || !__get_cpuid_count(13, n, &size, &offset, &c, &d)) continue;
        if (offset + size > bytes) bytes = offset + size;
    }
    tracer_lazy_bytes = (bytes + 63) & ~63u;
}
/// Between two looks at a word that another CPU is about to change.
static inline void tracer_pause(void) { __builtin_ia32_pause(); }
/// Valgrind's request 0x1001 (valgrind.h): on a real CPU the rotations are a whole turn, and the answer stays 0.
static inline int tracer_is_under_valgrind(void) {
    uint64_t request[6] = {0x1001}, answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n rolq $13, %%rdi\n rolq $61, %%rdi\n rolq $51, %%rdi\n xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(request)
                     : "cc", "memory");
    return answer != 0;
}
/// Do nothing here: code is fetched as it was written, and no resolver needs to be passed what the CPU can do.
static inline void tracer_code_written(uint64_t start, uint64_t end) { (void)start, (void)end; }
static inline void tracer_set_capabilities(uint64_t first, uint64_t second) { (void)first, (void)second; }
/// The stack pointer of a jmp_buf, as glibc stores it (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h; the word of struct
/// tcbhead_t is part of no ABI, and has been there since 2.4).
static inline uint64_t tracer_unmangle(uint64_t word, uint64_t guard) {
    (void)guard;
    __asm__("rorq $17, %0\n xorq %%fs:0x30, %0" : "+r"(word) : : "cc");
    return word;
}
static inline uint64_t tracer_cycles(void) { return __builtin_ia32_rdtsc(); }
/// CPUID.80000007H:EDX[8]: the counter runs at one rate in every power state, on every core.
static inline int tracer_cycles_usable(void) {
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 256);
}
/// Ticks per second where the CPU says so (leaf 15H), else 0.
static inline uint64_t tracer_cycles_frequency(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(0x15, &a, &b, &c, &d) || !a || !b || !c) return 0;
    return (uint64_t)c * b / a;
}
#endif
