// Argument plans as the trampolines' C code has them (call_values.c).
#ifndef TRACER_VALUE_PROGRAMS_H
#define TRACER_VALUE_PROGRAMS_H

#include "arguments_layout.h"
#include "layout.h"
#include "scalar.h"

#define VALUE_BYTES (VALUE_WORDS * ARGUMENTS_DATA_BYTES)
/// DATA words of so many bytes of values; the last ones are in the word after them.
#define DATA_WORDS(bytes) (((bytes) + ARGUMENTS_DATA_BYTES - 1 - VALUE_TAIL) / ARGUMENTS_DATA_BYTES)
#define VALUE_TEXTS 4 /* strings of one call, at most */

/// Bytes of a value that a DATA or VALUES word has: a word of the caller's registers or stack, shifted up and then down, so that they are in
/// their place, and those beyond them are gone. Those before them are, too, but for what the word's kind, or its lower half, replaces.
struct value_piece {
    int16_t offset; // distance of the word from the stack pointer that the frame is known by
    uint8_t up; // in bits; with PIECE_ENDS
    uint8_t down; // likewise
};
_Static_assert(VALUE_TAIL == CONTROL_VALUES_TAIL_BYTES && CONTROL_PAYLOAD_SHIFT + CONTROL_VALUES_TAIL_SHIFT == 32, "VALUES");

/// The place of one argument.
struct value_step {
    int16_t offset; // as that of a piece
    uint8_t bytes; // how many of the value count; 0: it is a string
    uint8_t vector; // it is in the vector register of this number less 1, and not in memory; 0: it is
};

/// A program, by its number less 1.
struct value_program {
    const struct value_piece
        *pieces; // all its values, the last of its VALUES word; 0: one is a string or in a vector register, or there are tests
    uint64_t head, result_head; // the VALUES word of a call, without its last bytes; the RESULT word, if the call has not failed
    uint64_t mask; // bytes of a single value that is a piece
    uint64_t result_mask; // bytes of the result; 0: it is in the first vector register
    int16_t only; // if there is one value: the offset of its word, or 0
    uint8_t reserved, result_reserved; // bytes of the words of a call with pieces; of the end of one that has not failed, with its exit
    uint8_t result_bytes; // 0: the result is not recorded
    uint8_t result_check; // C writes a result that is this under the mask: RESULT_IS_MINUS_ONE, RESULT_IS_ZERO
    uint8_t test_count; // number of tests of its arguments, which are numbers
    uint8_t count; // number of operations, without that of the result
    uint8_t words; // DATA words of their values; with strings: at least; more than VALUE_WORDS: the trampolines leave it to Swift
    uint8_t text_count; // number of strings among the operations; more than VALUE_TEXTS: as above
    uint8_t failure; // ARGUMENTS_FAILS_
    uint8_t fixed_bytes; // bytes of the values, without those of the strings and their addresses
    uint32_t steps; // index of the first of `count` steps
    uint32_t tests; // offset in the plan
    uint8_t
        begins_with_text; // its first value is the only string, and the others, two at most, have eight bytes at most; none is in a vector
    uint8_t space; // words before the enter that a result takes which has not failed; 0: none is recorded, or it is a string
    uint8_t result_is_text; // the result is a char *, or RESULT_IS_SWIFTS
    uint8_t unused;
};
_Static_assert(sizeof(struct value_program) == PROGRAM_BYTES && AT(value_program, pieces, PROGRAM_PIECES) &&
                   AT(value_program, head, PROGRAM_HEAD) && AT(value_program, result_head, PROGRAM_RESULT_HEAD) &&
                   AT(value_program, mask, PROGRAM_MASK) && AT(value_program, result_mask, PROGRAM_RESULT_MASK) &&
                   AT(value_program, only, PROGRAM_ONLY) && AT(value_program, reserved, PROGRAM_RESERVED) &&
                   AT(value_program, result_reserved, PROGRAM_RESULT_RESERVED) && AT(value_program, result_bytes, PROGRAM_RESULT_BYTES) &&
                   AT(value_program, result_check, PROGRAM_RESULT_CHECK) && AT(value_program, test_count, PROGRAM_TESTS) &&
                   AT(value_program, words, PROGRAM_WORDS) && AT(value_program, space, PROGRAM_SPACE),
               "program");
_Static_assert(sizeof(struct value_piece) == PIECE_BYTES && AT(value_piece, offset, PIECE_OFFSET) && AT(value_piece, up, PIECE_UP) &&
                   AT(value_piece, down, PIECE_DOWN) && VALUE_WORD_BYTES == ARGUMENTS_DATA_BYTES,
               "piece");
extern const struct value_program *tracer_value_programs __attribute__((visibility("hidden")));
extern const struct value_step *tracer_value_steps __attribute__((visibility("hidden")));
extern const uint8_t *tracer_value_plan __attribute__((visibility("hidden"))); // struct arguments_file
/// The recording clock is the kernel's, which trampolines ask by a call.
extern uint32_t tracer_reads_kernel_clock __attribute__((visibility("hidden")));
/// Distance from the thread pointer to the thread's errno; 0: libc's is not known.
extern uint64_t tracer_errno_distance __attribute__((visibility("hidden")));
static inline void tracer_set_value_programs(const struct value_program *programs, const struct value_step *steps, const void *plan,
                                             uint32_t reads_kernel_clock) {
    tracer_value_plan = plan;
    tracer_value_steps = steps;
    tracer_reads_kernel_clock = reads_kernel_clock;
    tracer_value_programs = programs;
}
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

/// True if the arguments of a frame fulfil all tests of them. Below 0: not, the call was counted, and its frame is to be taken off; 0: not,
/// and Swift must do it.
int tracer_fulfils(const struct frame_record *frame) __attribute__((visibility("hidden")));
/// Write the enter, or the exit, of a frame whose function has FUNCTION_HAS_VALUES, at this time of the recording clock; its tests are
/// fulfilled. Called by the trampolines, also in signal handlers. 0: Swift must do it; nothing is changed then but reserved words that
/// stay empty.
int tracer_write_arguments(struct frame_record *frame, uint64_t now) __attribute__((visibility("hidden")));
int tracer_write_result(struct frame_record *frame, uint64_t now) __attribute__((visibility("hidden")));
/// The first two, where assembly does not do what can be done in pieces.
int tracer_write_enter(struct frame_record *frame, uint64_t now) __attribute__((visibility("hidden")));
#endif
