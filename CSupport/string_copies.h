// Copies of strings that a program passes (string_copies.c).
#ifndef TRACER_STRING_COPIES_H
#define TRACER_STRING_COPIES_H

#include <stdint.h>

/// Segments that are kept, at most: two for each of 256 libraries.
#define LASTING_RANGES 512

/// Copies a string with the zero byte at its end, or its first `most` bytes, as far as it can be read. Returns the number of bytes copied;
/// the last one is 0 if all of it is there. `stack_pointer`: of the program, where the call was made. Changes neither errno nor a vector
/// register, and may be called in a signal handler and on any stack.
unsigned tracer_copy_string(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer) __attribute__((visibility("hidden")));

/// The same of bytes that no zero ends.
unsigned tracer_copy_bytes(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer) __attribute__((visibility("hidden")));

/// Returns the number of bytes of a string, with the zero byte, that can be read where it is: no fault is possible, also later in this call.
/// 0: that is not known, or it has more than `most`. As `tracer_copy_string` otherwise.
unsigned tracer_string_in_place(uint64_t from, unsigned most, uint64_t stack_pointer) __attribute__((visibility("hidden")));

/// Memory that is there for the life of the process, and never written to: a segment of a module that is never unloaded. Called with the
/// lock of the module table held.
void tracer_add_lasting_range(uint64_t low, uint64_t high) __attribute__((visibility("hidden")));

/// Process whose memory the kernel is asked to copy: this one. 0: it is not asked, since a filter of system calls is in force.
extern uint32_t tracer_copied_process __attribute__((visibility("hidden")));
static inline void tracer_set_copied_process(uint32_t process) { tracer_copied_process = process; }
#endif
