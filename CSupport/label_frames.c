// Descriptions of labels for nongnu libunwind and LLVM's. The image has one for all labels (reserved.h), made for libgcc: a frame of size
// zero with the mark of a signal handler's, of which the return address is given less 1. Neither can use that one.
//
// nongnu libunwind takes the mark for a frame that the kernel has made: unw_resume, with which each exception ends, returns to the program
// by sigreturn, from a frame that is not there (x86_64/Gos-linux.c, tdep_reuse_frame; Gresume.c). LLVM's does not keep x30 for the caller's
// frame (DwarfInstructions.hpp, stepWithDwarf), by which the image's finds the label on aarch64. Both find a frame's handler without
// comparing CFAs, as libgcc does; so here the frame has no mark, and the return address is as it is.
#include "layout.h"

#if defined(__x86_64__)
enum { SP = 7, RETURN = 16 }; // psABI, figure 3.36
/// One for all, since the label is in the return slot, below the stack pointer; a few if threads ask at once for the first time.
enum { ALL = 1, DESCRIPTIONS = 32 };
#else
enum { SP = 31, RETURN = 30, ALL = 0, DESCRIPTIONS = 2048 };
#endif
_Static_assert(LABEL_BYTES == 16, "labels begin at multiples of 16");

static struct {
    _Alignas(DESCRIPTION_BYTES) uint8_t bytes[DESCRIPTION_BYTES];
} buffer[DESCRIPTIONS];

static struct description_table table(void) { return (struct description_table){(struct description *)buffer, DESCRIPTIONS}; }

int tracer_is_label(uint64_t address) { return address - tracer_label_area.low < tracer_label_area.span; }

const void *tracer_describe_label(uint64_t address) {
    if (!tracer_is_label(address)) return 0;
    uint64_t label = address & -(uint64_t)LABEL_BYTES;
    struct frame_rules rules = {
        .address = ALL ? tracer_label_area.low : label, .bytes = ALL ? tracer_label_area.span : LABEL_BYTES, .return_column = RETURN};
    tracer_add_rule(&rules, DW_CFA_def_cfa);
    tracer_add_rule(&rules, SP);
    tracer_add_rule(&rules, 0);
    tracer_add_rule(&rules, ALL ? DW_CFA_val_expression : DW_CFA_expression);
    tracer_add_rule(&rules, RETURN);
#if defined(__x86_64__)
    static const uint8_t expression[] = {DW_OP_breg0 + SP,  0x78 /* -8 */, DW_OP_deref, DW_OP_const1s, 0xf0 /* -16 */, DW_OP_and,
                                         DW_OP_plus_uconst, 0x80,          0x80,        0x40,          DW_OP_deref};
    _Static_assert(LABEL_RETURN == 0x40 << 14, "as plus_uconst has it");
    tracer_add_rule(&rules, sizeof expression);
    for (unsigned n = 0; n < sizeof expression; n++) tracer_add_rule(&rules, expression[n]);
#else
    // nongnu libunwind knows no values on this architecture (include/libunwind_i.h), and may write to the address that it is given: so that
    // is a copy.
    rules.word = *tracer_label_return(label);
    tracer_add_rule(&rules, 9);
    rules.word_operand = rules.program_bytes + 1;
    tracer_add_rule_address(&rules, 0);
#endif
    const void *found = tracer_describe_frame(table(), rules.address, &rules);
    tracer_changed_label(label); // another word may have been written there
    return found;
}

void tracer_changed_label(uint64_t label) {
#if defined(__aarch64__)
    tracer_change_word(table(), label, *tracer_label_return(label));
#else
    (void)label;
#endif
}
