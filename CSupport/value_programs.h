// Argument plans as the trampolines' C code has them (call_values.c).
#ifndef TRACER_VALUE_PROGRAMS_H
#define TRACER_VALUE_PROGRAMS_H

#include "arguments_layout.h"
#include "layout.h"
#include "scalar.h"

/// Words of values that the trampolines write, at most: they fit into the slack of a chunk.
#define VALUE_WORDS 16
#define VALUE_BYTES (VALUE_WORDS * ARGUMENTS_DATA_BYTES)
#define VALUE_TEXTS 4 /* strings of one call, at most */

/// A program, by its number less 1.
struct value_program {
    const struct arguments_operation *operations;
    uint8_t count; // number of operations, without that of the result
    uint8_t words; // DATA words of their values; with strings: at least; more than VALUE_WORDS: the trampolines leave it to Swift
    uint8_t text_count; // number of strings among the operations; more than VALUE_TEXTS: as above
    uint8_t result_bytes; // 0: the result is not recorded
    uint8_t failure; // ARGUMENTS_FAILS_
    uint8_t has_vector_result; // the result is in the first vector register
    uint8_t test_count; // number of tests of its arguments, which are numbers
    const struct arguments_test *tests;
};
extern const struct value_program *tracer_value_programs __attribute__((visibility("hidden")));
/// Distance from the thread pointer to the thread's errno; 0: libc's is not known.
extern uint64_t tracer_errno_distance __attribute__((visibility("hidden")));
static inline void tracer_set_value_programs(const struct value_program *programs) { tracer_value_programs = programs; }
static inline void tracer_set_errno_distance(uint64_t distance) { tracer_errno_distance = distance; }
static inline uint64_t tracer_get_errno_distance(void) { return tracer_errno_distance; }

/// True if the word of an argument or a result fulfils a test of a number.
SCALAR static inline int tracer_number_fulfils(const struct arguments_test *test, uint64_t word) {
    unsigned unused = 64 - 8 * test->bytes;
    uint64_t shifted = word << unused, value = test->is_signed ? (uint64_t)((int64_t)shifted >> unused) : shifted >> unused;
    uint64_t bias = test->is_signed ? 1ull << 63 : 0, left = value ^ bias,
             right = test->number ^ bias; // in the order of their unsigned words
    switch (test->is) {
    case ARGUMENTS_IS_EQUAL: return left == right;
    case ARGUMENTS_IS_NOT: return left != right;
    case ARGUMENTS_IS_LESS: return left < right;
    case ARGUMENTS_IS_MORE: return left > right;
    case ARGUMENTS_IS_AT_MOST: return left <= right;
    case ARGUMENTS_IS_AT_LEAST: return left >= right;
    case ARGUMENTS_IS_BITS: return (value & test->mask) == test->number;
    default: return 0;
    }
}

/// Write the enter, or the exit, of a frame whose function has FUNCTION_HAS_VALUES, at this time of the recording clock. Called by the
/// trampolines, also in signal handlers. 0: Swift must do it; nothing is changed then but reserved words that stay empty. Below 0: the
/// arguments do not fulfil the function's tests; the call was counted, and its frame is to be taken off.
int tracer_write_arguments(struct frame_record *frame, uint64_t now) __attribute__((visibility("hidden")));
int tracer_write_result(struct frame_record *frame, uint64_t now) __attribute__((visibility("hidden")));
#endif
