// Descriptions of frames that no file has: made when an unwinder asks for an address, and handed to it as an .eh_frame_hdr with one entry.
//
// DWARF 5, 6.4; for .eh_frame and .eh_frame_hdr: Linux Standard Base, Core, 10.6.
#ifndef TRACER_FRAME_DESCRIPTION_H
#define TRACER_FRAME_DESCRIPTION_H
#include <stdint.h>

#define DESCRIPTION_BYTES 128
/// A table with open addressing, of `count` entries, a power of two. An entry that is filled in stays as it is: unwinders keep pointers
/// into it.
struct description_table {
    struct description *entries;
    uint64_t count;
};

enum { DW_CFA_offset = 0x80, DW_CFA_def_cfa = 0x0c, DW_CFA_expression = 0x10, DW_CFA_def_cfa_sf = 0x12, DW_CFA_val_expression = 0x16 };
enum { DW_OP_addr = 3, DW_OP_deref = 6, DW_OP_const1s = 9, DW_OP_and = 0x1a, DW_OP_plus_uconst = 0x23, DW_OP_breg0 = 0x70 };

#define FRAME_PROGRAM_BYTES 32
struct frame_rules {
    uint64_t address, bytes; // the code that the rules describe
    uint8_t return_column;
    uint8_t is_signal_frame; // the caller is looked up at its very address, not at the one before
    uint8_t program_bytes;
    uint8_t program[FRAME_PROGRAM_BYTES]; // call frame instructions, with a data alignment factor of -8
    uint64_t word; // kept in the description …
    uint8_t word_operand; // … and its address in the program from here on; 0: none
};
static inline void tracer_add_rule(struct frame_rules *rules, uint8_t byte) { rules->program[rules->program_bytes++] = byte; }
static inline void tracer_add_rule_address(struct frame_rules *rules, uint64_t address) {
    tracer_add_rule(rules, DW_OP_addr);
    for (int n = 0; n < 8; n++) tracer_add_rule(rules, (uint8_t)(address >> 8 * n));
}

/// The description under this key, which is not 0; made by these rules when there is none. Null: there is no space for it, or it is out
/// of reach of the code (2 GB). May run in a signal handler: no lock, no memory, no system call.
const void *tracer_describe_frame(struct description_table, uint64_t key, const struct frame_rules *) __attribute__((visibility("hidden")));
/// The word of the descriptions under this key is another from now on. On aarch64 alone there are such.
void tracer_change_word(struct description_table, uint64_t key, uint64_t word) __attribute__((visibility("hidden")));
#endif
