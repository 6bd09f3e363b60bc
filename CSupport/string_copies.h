// Copies of strings that a program passes (string_copies.c).
#ifndef TRACER_STRING_COPIES_H
#define TRACER_STRING_COPIES_H

#include "layout.h"
#include "scalar.h"

/// Segments that are kept, at most: two for each of 256 libraries.
#define LASTING_RANGES 512

/// Copies a string with the zero byte at its end, or its first `most` bytes, as far as it can be read. Returns the number of bytes copied;
/// the last one is 0 if all of it is there. `stack_pointer`: of the program, where the call was made. Changes neither errno nor a vector
/// register, and may be called in a signal handler and on any stack.
unsigned tracer_copy_string(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer) __attribute__((visibility("hidden")));

/// The same of bytes that no zero ends.
unsigned tracer_copy_bytes(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer) __attribute__((visibility("hidden")));

enum { KNOWN_PAGE_BYTES = 4096, KNOWN_PAGES = 256 }; // the least that may be unmapped, also where pages are larger
/// Numbers of pages that last and were read once: each is where its lowest bits say.
extern uint64_t tracer_known_pages[KNOWN_PAGES] __attribute__((visibility("hidden")));

/// Returns how many bytes can be read from there on without a fault, also later in this call, as far as this is known. As
/// `tracer_copy_string` otherwise.
SCALAR static inline uint64_t tracer_readable(uint64_t address, uint64_t stack_pointer) {
    uint64_t page = address / KNOWN_PAGE_BYTES;
    if (page && __atomic_load_n(&tracer_known_pages[page % KNOWN_PAGES], __ATOMIC_RELAXED) == page)
        return KNOWN_PAGE_BYTES - address % KNOWN_PAGE_BYTES;
    const struct thread_context *context = tracer_thread.context;
    // The bounds are all ones where the thread's own stack is not known, or no stack pointer shows which stack this is.
    if (stack_pointer < context->stack_low || context->stack_high == ~0ull) return 0;
    return address >= stack_pointer && address < context->stack_high ? context->stack_high - address : 0;
}

/// Bytes behind a string that can be read, too: whoever has the string reads eight bytes at once from each of them.
#define TEXT_SLACK 8

/// Returns the number of bytes of a string, with the zero byte, that can be read where it is, and TEXT_SLACK more: no fault is possible, also
/// later in this call. 0: that is not known, or it has more than `most`. As `tracer_copy_string` otherwise.
SCALAR static inline unsigned tracer_string_in_place(uint64_t from, unsigned most, uint64_t stack_pointer) {
    const uint64_t ones = 0x0101010101010101;
    uint64_t known = tracer_readable(from, stack_pointer);
    if (known <= TEXT_SLACK) return 0;
    if (known - TEXT_SLACK < most) most = (unsigned)(known - TEXT_SLACK);
    for (unsigned count = 0; count < most; count += 8) {
        uint64_t word, zero;
        __builtin_memcpy(&word, (const void *)(from + count), 8);
        zero = (word - ones) & ~word & ones << 7; // the lowest bit that is set is that of the first zero byte
        if (zero) {
            count += (unsigned)__builtin_ctzll(zero) / 8 + 1;
            return count <= most ? count : 0;
        }
    }
    return 0;
}

/// Memory that is there for the life of the process, and never written to: a segment of a module that is never unloaded. Called with the
/// lock of the module table held.
void tracer_add_lasting_range(uint64_t low, uint64_t high) __attribute__((visibility("hidden")));

/// Process whose memory the kernel is asked to copy: this one. 0: it is not asked, since a filter of system calls is in force.
extern uint32_t tracer_copied_process __attribute__((visibility("hidden")));
static inline void tracer_set_copied_process(uint32_t process) { tracer_copied_process = process; }
#endif
