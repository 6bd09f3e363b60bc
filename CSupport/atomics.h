// Loads and stores that other threads, and signal handlers, see in order.
#ifndef TRACER_ATOMICS_H
#define TRACER_ATOMICS_H
#include <stdint.h>

/// Relaxed: nothing is published by it.
static inline uint64_t tracer_atomic_add(uint64_t *word, uint64_t amount) { return __atomic_fetch_add(word, amount, __ATOMIC_RELAXED); }
static inline void tracer_atomic_or_32(uint32_t *word, uint32_t bits) { __atomic_fetch_or(word, bits, __ATOMIC_RELAXED); }
static inline void tracer_atomic_and_32(uint32_t *word, uint32_t bits) { __atomic_fetch_and(word, bits, __ATOMIC_RELAXED); }
/// Makes stores before it visible before any load after it.
static inline void tracer_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void tracer_atomic_max(uint64_t *word, uint64_t value) {
    uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (now < value && !__atomic_compare_exchange_n(word, &now, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static inline uint32_t tracer_load_acquire_32(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline uint64_t tracer_load_acquire(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static inline void tracer_store_release_8(uint8_t *word, uint8_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
static inline void tracer_store_release_16(uint16_t *word, uint16_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
static inline void tracer_store_release_32(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
static inline void tracer_store_release_64(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
static inline uint32_t tracer_load_32(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
/// 1 when the word was `old` and now is `new`. Relaxed: nothing is published by it.
static inline int tracer_exchange_64(uint64_t *word, uint64_t old, uint64_t new_value) {
    return __atomic_compare_exchange_n(word, &old, new_value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
/// Compare-and-exchange for locks: returns 1 if the word was `old` and is now `new_value`.
static inline int tracer_exchange(uint32_t *word, uint32_t old, uint32_t new_value) {
    return __atomic_compare_exchange_n(word, &old, new_value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
static inline void tracer_prefetch(const void *address) { __builtin_prefetch(address); }
#endif
