// The argument plan, declared once: of which functions a process records arguments and results, and how these are read. `tracer record
// --arguments` writes it, and the agent reads the file whose path TRACER_ARGUMENTS has. One file: a header, functions in the order of
// their hashes, operations, and texts. Little-endian; offsets count from the beginning of the file, and whoever reads it checks them.
#ifndef ARGUMENTS_LAYOUT_H
#define ARGUMENTS_LAYOUT_H

#include <stdint.h>

#define ARGUMENTS_MAGIC 0x7261677472636172 /* "racrtgar" */
#define ARGUMENTS_VERSION 1
#define ARGUMENTS_MOST_BYTES (1 << 24)
#define ARGUMENTS_MOST_FUNCTIONS 65535 /* a function's number, from 1 on, is its program in the trace (ARGUMENTS) */
#define ARGUMENTS_MOST_SOURCES 32
#define ARGUMENTS_STRING_BYTES 512 /* a longer string is cut */
#define ARGUMENTS_DATA_BYTES 7 /* bytes of values in a DATA word */
#define ARGUMENTS_MOST_WORDS 255 /* DATA words of one call's arguments */

struct arguments_file {
    uint64_t magic;
    uint32_t version;
    uint32_t function_count;
    uint32_t byte_count; // size of the file
    uint32_t unused;
};
struct arguments_function {
    uint32_t hash; // hash of its name, as DT_GNU_HASH has it, with the bits of PLAN_NAME_HASH alone
    uint32_t name, name_bytes;
    uint32_t text, text_bytes; // what a PROTOTYPE record says
    uint32_t operations, operation_count;
    uint32_t home; // ARGUMENTS_OF_
};
enum {
    ARGUMENTS_OF_ANY = 0,  // whichever module defines it
    ARGUMENTS_OF_LIBC = 1, // the C library's function of that name
};
/// Reads one value. In the order of a call's arguments; that of the result is the last.
struct arguments_operation {
    uint8_t kind; // ARGUMENTS_
    uint8_t source; // number among the integer and pointer arguments, from 0 on
    uint8_t bytes; // 1, 2, 4 or 8: how many of the value count
    uint8_t failure; // ARGUMENTS_FAILS_: the result with which errno is read, too
};
enum {
    ARGUMENTS_VALUE = 1,  // the bytes themselves
    ARGUMENTS_STRING = 2, // what a char * points to: a uint16_t, ARGUMENTS_TEXT_ above its length, and its bytes
    ARGUMENTS_RESULT = 3, // the bytes themselves, and an int, errno, if the call has failed
};
enum { ARGUMENTS_FAILS_NEVER = 0, ARGUMENTS_FAILS_MINUS_ONE = 1, ARGUMENTS_FAILS_ZERO = 2 };
#define ARGUMENTS_TEXT_SHIFT 14
enum {
    ARGUMENTS_TEXT_WHOLE = 0,
    ARGUMENTS_TEXT_CUT = 1, // it is longer
    ARGUMENTS_TEXT_BROKEN = 2, // what comes after these bytes, and is not the end, could not be read
    ARGUMENTS_TEXT_UNREAD = 3, // nothing could be read: its address follows, a uint64_t; 0: a null pointer
};
#endif
