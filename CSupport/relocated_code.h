// Relocated instructions: what stood in the place of a function's first bytes, and the stub before them
// (docs/internals/entry-patches.md). No module has them, so no unwinder finds a description there. They have none of their own either:
// relocated_code.c says of each which one of the function's it stands for, and the unwinder goes on there, as if it had come from there.
#ifndef TRACER_RELOCATED_CODE_H
#define TRACER_RELOCATED_CODE_H
#include "unwinder_questions.h"
#include <stdint.h>

struct function_hook;

#define RELOCATED_MOST_INSTRUCTIONS 7
/// Shape of relocated instructions that are not, one by one, as long as what they stand for.
struct relocated_shape {
    uint32_t function; // its number in the area
    uint8_t instruction_count;
    uint8_t linked; // as in struct plan_function
    struct relocated_instruction {
        uint8_t relocated, original; // as in struct plan_instruction, but from the first byte that was replaced
    } instructions[RELOCATED_MOST_INSTRUCTIONS];
};

/// A long jump to a function's stub, which its short jump leads to: among bytes of another function, or in padding.
struct relocated_landing {
    uint32_t address;  // from base
    uint32_t function; // its number in the area
};

/// Stubs, each with the relocated instructions after it, in order. Never given back: who was interrupted there may go on there much later.
struct relocated_area {
    struct relocated_area *next;
    uint64_t code, code_end;
    const struct function_hook *functions; // their targets are the relocated instructions
    uint64_t count;
    uint64_t base;
    const uint32_t *sites; // for each function, where bytes were replaced, from base; SITE_SIGNED
    const struct relocated_shape *shapes; // in order
    uint64_t shape_count;
    const struct relocated_landing *landings; // in order
    uint64_t landing_count;
    struct description *descriptions; // a table with open addressing, of descriptions_count, a power of two
    uint64_t descriptions_count;
};
#if defined(__x86_64__)
#define SITE_SIGNED 0 /* an address there may be odd */
#else
#define SITE_SIGNED 1 /* x30 was signed there */
#endif
/// Returns the size of the stub before relocated instructions, in bytes (Processor/EntryPatch….swift).
static inline uint64_t tracer_patch_stub_bytes(int is_signed) {
#if defined(__x86_64__)
    (void)is_signed;
    return 16;
#else
    return is_signed ? 24 : 20;
#endif
}

/// ModuleLock is held. All of it is filled in.
void tracer_add_relocated(struct relocated_area *) __attribute__((visibility("hidden")));

/// Original instruction that an instruction of a stub, a relocated one, or a landing stands for.
struct original {
    struct relocated_area *area; // null: the address is of none of these, or nobody can say
    uint64_t address; // the instruction of the function that is going to be executed, or is being
    uint8_t pushed; // bytes on the stack that are not there when the original is executed
    uint8_t holds_scratch; // r11 is the last of them
};
struct original tracer_original(uint64_t address) __attribute__((visibility("hidden")));
/// In a stub, or in relocated instructions.
int tracer_is_relocated(uint64_t address) __attribute__((visibility("hidden")));
/// The first byte of a landing, which a module has: a description of the loader's there is of something else, or there is none. It may also be what a
/// call returns to that never returns.
int tracer_is_landing(uint64_t address) __attribute__((visibility("hidden")));

/// An .eh_frame_hdr of one entry, for the instruction at `address`; null: there is no space, or it is not a relocated one. It stays as it
/// is.
const void *tracer_describe(uint64_t address, enum unwinder, struct original *) __attribute__((visibility("hidden")));

_Static_assert(sizeof(struct relocated_shape) == 20 && sizeof(struct relocated_area) == 104, "relocated code");
#endif
