// The argument plan, declared once: of which functions a process records arguments and results, and how these are read. `tracer record
// --arguments` writes it, and the agent reads the file whose path TRACER_ARGUMENTS has. One file: a header, functions in the order of
// their hashes, operations, and texts. Little-endian; offsets count from the beginning of the file, and whoever reads it checks them.
#ifndef ARGUMENTS_LAYOUT_H
#define ARGUMENTS_LAYOUT_H

#include <stdint.h>

#define ARGUMENTS_MAGIC 0x7261677472636172 /* "racrtgar" */
#define ARGUMENTS_VERSION 4
#define ARGUMENTS_MOST_BYTES (1 << 24)
#define ARGUMENTS_MOST_FUNCTIONS 65535 /* a function's number, from 1 on, is its program in the trace (ARGUMENTS) */
#define ARGUMENTS_MOST_SOURCES 32
#define ARGUMENTS_STRING_BYTES 512 /* a longer string is cut */
#define ARGUMENTS_DATA_BYTES 7 /* bytes of values in a DATA word */
#define ARGUMENTS_MOST_WORDS 255 /* DATA words of one call's arguments */
#define ARGUMENTS_MOST_TESTS 64 /* most of one function */
#define ARGUMENTS_MOST_STEPS 3
#define ARGUMENTS_WINDOW_BYTES 32 /* most of an object that has a pointer and a length: both are read at once */

struct arguments_file {
    uint64_t magic;
    uint32_t version;
    uint32_t function_count;
    uint32_t byte_count; // size of the file
    uint32_t purpose; // ARGUMENTS_TESTS_
    uint32_t notes; // to the end of the file: what the tool has said as it made the plan, lines of text; the agent does not read it
    uint32_t unused;
};
/// What the functions' tests decide.
enum {
    ARGUMENTS_TESTS_KEEP = 0,    // the call is recorded, or not
    ARGUMENTS_TESTS_TRIGGER = 1, // it asks for a snapshot, or not (Variables.triggers)
};
struct arguments_function {
    uint32_t hash; // hash of its name, as DT_GNU_HASH has it, with the bits of PLAN_NAME_HASH alone
    uint32_t name, name_bytes;
    uint32_t text, text_bytes; // what a PROTOTYPE record says
    uint32_t operations, operation_count;
    uint32_t home; // ARGUMENTS_OF_
    uint32_t tests, test_count; // all must hold
    uint64_t module;  // ARGUMENTS_OF_MODULE: which (arguments_module_id); ARGUMENTS_OF_LIBRARY: the library (arguments_library_id)
    uint64_t address; // the same: of the function, as linked
};
enum {
    ARGUMENTS_OF_ANY = 0,    // whichever module defines it
    ARGUMENTS_OF_LIBC = 1,   // the C library's function of that name
    ARGUMENTS_OF_MODULE = 2, // the function at this address of one module alone: its debug information has said so
    ARGUMENTS_OF_LIBRARY = 3, // the function of that name in a library of this name
};
/// A hash of a library's name: its DT_SONAME up to ".so".
static inline uint64_t arguments_library_id(const char *soname) {
    uint64_t hash = 5381;
    for (; *soname && !(soname[0] == '.' && soname[1] == 's' && soname[2] == 'o'); soname++) hash = hash * 33 + (uint8_t)*soname;
    return hash;
}
/// A hash of a module's build-id: its first twenty bytes, the rest zeros, as two numbers of 64 bits and one of 32. A module without one has
/// a hash of its file instead (FileStatus.contentHash).
static inline uint64_t arguments_module_id(uint64_t first, uint64_t second, uint32_t third) {
    return first ^ (second * 0x9e3779b97f4a7c15) ^ third;
}

/// Reads one value. In the order of a call's arguments; that of the result is the last.
struct arguments_operation {
    uint8_t kind; // ARGUMENTS_
    uint8_t source; // number among the registers for integers and pointers, from 0 on; beyond the last the words of the stack. Or below
    uint8_t bytes; // 1, 2, 4 or 8: how many of the value count
    uint8_t failure; // ARGUMENTS_FAILS_: the result with which errno is read, too
    // 0: the source is the value. Otherwise it is an address: each step but the last one goes on to the pointer at an offset from there, and
    // the value is at the last offset.
    uint8_t step_count;
    uint8_t length; // ARGUMENTS_LENGTH_: of ARGUMENTS_COUNTED, and of an ARGUMENTS_VALUE whose bytes the call fills
    uint8_t length_source; // as source
    uint8_t length_bytes; // as bytes
    uint16_t steps[ARGUMENTS_MOST_STEPS];
    uint16_t length_offset; // ARGUMENTS_LENGTH_BESIDE: where the last step begins, the length is at this offset
};
enum {
    ARGUMENTS_VALUE = 1, // the bytes themselves
    ARGUMENTS_STRING = 2, // what a char * points to: a uint16_t, ARGUMENTS_TEXT_ above its length, and its bytes
    // A result: the bytes themselves, and an int, errno, if the call has failed; in the first register of its kind. One that is a string is another
    // kind, from ARGUMENTS_FROM_RESULT.
    ARGUMENTS_RESULT = 3,
    // Other strings, written as ARGUMENTS_STRING is. They have no end of their own, and zero bytes may be in them.
    ARGUMENTS_COUNTED = 4, // the value is a pointer to it
    ARGUMENTS_LIBCXX = 5, // the value, in memory, is a std::string of libc++ (include/string, __rep, without the alternate layout)
    // A String of Swift, two words (stdlib/public/core/StringObject.swift): source and length_source, or in memory.
    ARGUMENTS_SWIFT = 6,
    ARGUMENTS_BYTES = 7, // the value, in memory, is `length_offset` bytes
    // What a char *[] has before its null pointer: a uint16_t, ARGUMENTS_TEXT_ above the number of its strings, and each as ARGUMENTS_STRING
    // is written; its address, if none can be read.
    ARGUMENTS_STRINGS = 8,
};
#define ARGUMENTS_MOST_STRINGS 32 /* most of an array; more are cut */
enum {
    ARGUMENTS_LENGTH_UNSIGNED = 1, // in length_source
    ARGUMENTS_LENGTH_SIGNED = 2, // the same; below 0, it is none
    ARGUMENTS_LENGTH_BESIDE = 3, // 8 bytes in the object that has the pointer
    ARGUMENTS_LENGTH_RESULT = 4, // the call's result: what the value points to is recorded with it, as a string; of one value of a call
};
/// What a call's value must be (`tracer record --when`). A value that is not known, of a string that could not be read, say, is not.
struct arguments_test {
    uint64_t number; // what it is compared with; as wide as 8 bytes with its sign
    uint64_t mask; // ARGUMENTS_IS_BITS
    uint32_t text, text_bytes; // what a string is compared with
    uint8_t operation; // index of the operation that reads the value
    uint8_t is; // ARGUMENTS_IS_
    uint8_t is_errno; // errno is meant; the operation is the result's
    uint8_t bytes; // width of the number
    uint8_t is_signed;
    uint8_t unused[3];
};
enum {
    ARGUMENTS_IS_EQUAL = 1,
    ARGUMENTS_IS_NOT = 2,
    ARGUMENTS_IS_LESS = 3,
    ARGUMENTS_IS_MORE = 4,
    ARGUMENTS_IS_AT_MOST = 5,
    ARGUMENTS_IS_AT_LEAST = 6,
    ARGUMENTS_IS_BITS = 7, // the bits of the mask are the number
    ARGUMENTS_IS_NEVER = 8, // no number is: it has not as many bits
    ARGUMENTS_IS_TEXT = 9, // from here on of strings: the same bytes
    ARGUMENTS_IS_OTHER_TEXT = 10,
    ARGUMENTS_IS_WITH_TEXT = 11, // it is anywhere in it
    ARGUMENTS_IS_LIKE = 12, // a glob of the whole: * and ?
};

/// Sources that are no registers for integers, and a number from 0 on: a vector register (psABI 3.2.3, AAPCS64 6.1.2); a word of the stack,
/// above the return address; at the return, the first or second register that results are in.
enum { ARGUMENTS_FROM_VECTOR = 0x40, ARGUMENTS_FROM_STACK = 0x80, ARGUMENTS_FROM_RESULT = 0xc0 };
#define ARGUMENTS_RESULT_REGISTERS 2
#define ARGUMENTS_VECTORS 8
enum { ARGUMENTS_FAILS_NEVER = 0, ARGUMENTS_FAILS_MINUS_ONE = 1, ARGUMENTS_FAILS_ZERO = 2 };
#define ARGUMENTS_TEXT_SHIFT 14
#define ARGUMENTS_TEXT_BEYOND 1
enum {
    ARGUMENTS_TEXT_WHOLE = 0,
    ARGUMENTS_TEXT_CUT = 1, // it is longer
    ARGUMENTS_TEXT_BROKEN = 2, // what comes after these bytes, and is not the end, could not be read
    // Nothing could be read: its address follows, a uint64_t; 0: a null pointer. With ARGUMENTS_TEXT_BEYOND for a length, the address is that
    // of what was to say where it is.
    ARGUMENTS_TEXT_UNREAD = 3,
};
#endif
