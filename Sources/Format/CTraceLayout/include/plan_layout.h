// The plan of a module, declared once: what `tracer plan` found of each function, and what an agent needs to patch its entry.
// docs/internals/entry-patches.md describes it in prose. One file for each module: a header, functions in the order of their addresses,
// fixups, call sites, bytes (relocated instructions and where they come from), keys of names, and names. Little-endian; 0 is in what is
// not used.
// The names are last, with a checksum of their own: who wants all functions of a module need not read them.
//
// Every index and offset is checked by whoever reads the file (TraceFormat/PlanContent.swift); nothing in it is a pointer, and a
// reader needs no memory of its own.
#ifndef PLAN_LAYOUT_H
#define PLAN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define PLAN_MAGIC 0x726372746e616c70 /* "plantrcr" */
#define PLAN_VERSION 3
#define PLAN_RULES 20 /* one more whenever the same module would get another plan */
#define PLAN_MOST_BYTES (1 << 29)
#define PLAN_MOST_FUNCTIONS (1 << 22)
#define PLAN_CHECKSUM_OFFSET 24
#define PLAN_RELOCATED_MOST_BYTES 128 /* most bytes of one function's relocated instructions */
#define PLAN_MOST_INSTRUCTIONS 7  /* most relocated instructions of one function */

struct plan_file {
    uint64_t magic;
    uint32_t version;
    uint32_t rules;
    uint64_t byte_count;      // size of the file
    uint64_t checksum;        // checksum of everything before the names but this word
    uint64_t identity[3];     // NT_GNU_BUILD_ID, up to twenty bytes and zeros, its length in the upper half of the last word; length
                              // 0: a hash of the file's device and inode
    uint64_t module_bytes;    // size and time of change of the module's file
    int64_t changed_seconds;
    uint32_t changed_nanoseconds;
    uint32_t elf_machine;     // e_machine
    uint64_t debug_file;      // a hash of size and time of the separate debug file that names came from, 0: none
    uint64_t base;            // addresses are relative to this one: the lowest of its segments, as linked
    uint32_t options;         // PLAN_OPTION_…
    uint32_t function_count;
    uint32_t fixup_count;
    uint32_t functions, fixups, bytes, bytes_count, names, names_count; // offsets in the file, and bytes
    uint32_t keys, key_count; // offset; PLAN_NAME_… of each name, in the order of the functions
    uint32_t sites, site_count; // offset of plan_site, by function and then by address
    uint32_t unused;
    uint64_t names_checksum;  // checksum of everything from `names` on
};

enum { PLAN_OPTION_TRAPS = 1 };

enum plan_tactic {
    PLAN_NONE,
    PLAN_NOPS,
    PLAN_JUMP5,
    PLAN_JUMP2,
    PLAN_WORD,
    PLAN_TRAP,
    PLAN_WHOLE,
    PLAN_CALLS,
    PLAN_NEIGHBOUR,
    PLAN_TACTICS
};

// The plan of a function. The bytes [patch, patch + replaced) from its address are overwritten. Its relocated instructions do what they
// did, and go on at `resume`. PLAN_WHOLE: they are all of the function's, each as far from the first as the original. PLAN_CALLS: nothing is
// replaced (`replaced` is 0), its call sites lead to its stub, and its relocated instructions are a jump to its first byte. PLAN_NEIGHBOUR: its landing is among
// instructions that are relocated for another function, whose bytes have to be replaced as well, and to stay so.
struct plan_function {
    uint32_t address; // relative to base
    uint32_t byte_count;
    uint32_t names; // offset in names: name_count texts, each with a zero after it; the first is shown
    uint32_t relocated; // offset in bytes: relocated_count of code, then instruction_count of plan_instruction
    uint32_t fixup; // its first one
    uint32_t landing; // jump2: address of the five bytes of padding that hold the long jump, relative to base; neighbour: of those of
    // another function, which is the last that begins before them
    uint8_t tactic;
    uint8_t reason; // why the tactic is PLAN_NONE
    uint8_t name_count;
    uint8_t patch; // 4 after an endbr64; 9 after that and a call of __fentry__
    uint8_t replaced;
    uint8_t resume; // offset from its address
    uint8_t relocated_count;
    uint8_t instruction_count; // 0: its instructions stand as the originals do, from `patch` on
    uint8_t fixup_count;
    uint8_t flags; // PLAN_FUNCTION_…
    uint8_t original[6]; // the bytes that are overwritten
    uint8_t landing_original[5];
    uint8_t linked; // offset in the relocated instructions from which its call's return address is set (stack or x30); 0: no call
    uint16_t starts; // x86-64: bit k: an instruction begins k bytes after `patch`, up to `resume` and that included
};

enum {
    PLAN_FUNCTION_SIGNED = 1, // aarch64: paciasp stands before the patch, so x30 is signed there
    PLAN_FUNCTION_RELOCATED_END = 2, // the relocated instructions go on nowhere: the last one leaves the function
    PLAN_FUNCTION_LEAF = 4, // it runs no code but its own
    PLAN_FUNCTION_RESOLVER = 8, // the loader calls it while modules are relocated, at the start before the agent is there
    PLAN_FUNCTION_BOUNDED = 16, // no call of it runs an instruction twice, nor code that is not known: no call is long
    PLAN_FUNCTION_WAITS = 32, // it makes system calls, pauses or locks, or leads to what does, by direct calls
    PLAN_FUNCTION_OBJECT = 64, // its first argument is what its callers wait for, or wake others for: RustWaits.swift
    PLAN_FUNCTION_HELD =
        128, // PLAN_CALLS: it may be called from elsewhere than its sites: its address is taken, or exported, or bytes that
    // are no known code may call it
};

// A name's key, a uint32_t: enough for the agent to see that the name is not one that it treats specially.
#define PLAN_NAME_HASH 0x3fffffffu /* the lowest bits of DT_GNU_HASH's hash */
#define PLAN_NAME_OF_RUNTIME 0x40000000u /* begins with "_dl_", or with "__", but not as what compilers make for static objects */
#define PLAN_NAME_OF_CONTEXTS 0x80000000u /* has "jmp" or "context" in it, small or capital */

// One original instruction and its copy, which begins at `relocated` among the relocated instructions and ends where the next begins.
struct plan_instruction {
    uint8_t relocated; // from the first byte of the relocated instructions
    uint8_t original; // from the function's address
};

// A direct call of a function of PLAN_CALLS, or a jump to it from another one: the 32 bits that hold the distance (x86-64), or the instruction
// (aarch64).
struct plan_site {
    uint32_t function; // its number
    uint32_t word; // relative to base
};

// A word of the relocated instructions that depends on where they lie. `target` is relative to base.
enum plan_fixup_kind {
    PLAN_RELATIVE32, // 32 bits: target less the address of the relocated instructions + end
    PLAN_LOW32, // the lower half of target's address
    PLAN_HIGH32, // the upper half
    PLAN_BRANCH26, // aarch64: b, bl
    PLAN_PAGE21, // adrp: target's page less that of the relocated instructions + offset
    PLAN_LOW12, // add: target's offset in its page
    PLAN_LOAD12_4, // ldr of 4 bytes: the same, by four
    PLAN_LOAD12_8, // and of 8
    PLAN_STUB32, // PLAN_RELATIVE32 of a function of PLAN_CALLS: to its stub, if it has one
    PLAN_STUB26, // the same of PLAN_BRANCH26
    PLAN_FIXUP_KINDS
};
struct plan_fixup {
    int32_t target;
    uint8_t offset;
    uint8_t end;
    uint8_t kind;
    uint8_t unused;
};

/// Mixes two numbers into one. Device and inode mixed are the identity of a file without build-id.
static inline uint64_t plan_mix(uint64_t a, uint64_t b) {
    uint64_t product = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return product ^ product >> 32;
}

_Static_assert(sizeof(struct plan_file) == 160 && offsetof(struct plan_file, checksum) == PLAN_CHECKSUM_OFFSET &&
                   sizeof(struct plan_function) == 48 && sizeof(struct plan_fixup) == 8 && sizeof(struct plan_instruction) == 2 &&
                   sizeof(struct plan_site) == 8,
               "plan");
#endif
