// Descriptions of relocated instructions for unwinders, made when one asks: of the one instruction that it asks for.
//
// Each is that of a frame of size zero, between the one that was interrupted there and the function: every register is what it is, and
// the "return address" is the instruction of the function that this one stands for. There the unwinder goes on with the function's own
// description, and with its exception handlers. The frame is a signal frame, so that it is looked up at this very address and not
// at the one before (libgcc/unwind-dw2.c, uw_frame_state_for).
#include "layout.h"

#if defined(__x86_64__)
enum { SP = 7, SCRATCH = 11, RETURN = 16, INSTRUCTION = 1 }; // psABI, figure 3.36
#else
// x30 is the function's own, so the address is where libgcc has it for signal frames (__LIBGCC_DWARF_ALT_FRAME_RETURN_COLUMN__).
enum { SP = 31, SCRATCH = 0, RETURN = 96, INSTRUCTION = 4 };
#endif

static struct frame_rules rules(uint64_t address, enum unwinder unwinder, const struct original *original) {
    struct frame_rules rules = {.address = address, .bytes = INSTRUCTION, .return_column = RETURN, .is_signal_frame = 1};
    // libgcc distinguishes frames by their CFA, less one if what it has passed is a signal frame (uw_identify_context), and both this one
    // and the function's are reached from one: so the CFA is a word lower than the stack pointer that is given beside it. libunwind goes by
    // the CFA alone for a stack pointer, whatever is given (dwarf/Gparser.c, apply_reg_state), and does not compare it.
    int above = original->pushed - (unwinder == UNWINDER_GCC ? 8 : 0);
    tracer_add_rule(&rules, DW_CFA_def_cfa_sf);
    tracer_add_rule(&rules, SP);
    tracer_add_rule(&rules, (uint8_t)(above / -8) & 0x7f);
    tracer_add_rule(&rules, DW_CFA_val_expression);
    tracer_add_rule(&rules, SP);
    tracer_add_rule(&rules, 2);
    tracer_add_rule(&rules, DW_OP_breg0 + SP);
    tracer_add_rule(&rules, original->pushed);
    if (original->holds_scratch) {
        tracer_add_rule(&rules, DW_CFA_offset | SCRATCH);
        tracer_add_rule(&rules, (uint8_t)(above / 8)); // at the stack pointer
    }
    tracer_add_rule(&rules, DW_CFA_val_expression);
    tracer_add_rule(&rules, RETURN);
    tracer_add_rule(&rules, 9);
    tracer_add_rule_address(&rules, original->address);
    return rules;
}

const void *tracer_describe(uint64_t address, enum unwinder unwinder, struct original *original) {
    *original = tracer_original(address);
    if (!original->area) return 0;
    struct frame_rules found = rules(address, unwinder, original);
    struct description_table table = {original->area->descriptions, original->area->descriptions_count};
    return tracer_describe_frame(table, address << 1 | (uint64_t)unwinder, &found);
}
