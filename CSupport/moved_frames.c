// Descriptions of moved code for unwinders, made when one asks: of the one instruction that it asks for.
//
// Each is that of a frame of size zero, between the one that was interrupted there and the function: every register is what it is, and
// the "return address" is the instruction of the function that this one stands for. There the unwinder goes on with the function's own
// description, and with its exception handlers. The frame is a signal frame, so that it is looked up at this very address and not
// at the one before (libgcc/unwind-dw2.c, uw_frame_state_for).
//
// DWARF 5, 6.4; for .eh_frame and .eh_frame_hdr: Linux Standard Base, Core, 10.6.
#include "layout.h"

enum { DW_EH_PE_absptr = 0, DW_EH_PE_udata4 = 3, DW_EH_PE_pcrel_sdata4 = 0x1b, DW_EH_PE_datarel_sdata4 = 0x3b };
enum { DW_CFA_offset = 0x80, DW_CFA_def_cfa_sf = 0x12, DW_CFA_val_expression = 0x16, DW_OP_addr = 3, DW_OP_breg0 = 0x70 };
#if defined(__x86_64__)
enum { SP = 7, SCRATCH = 11, RETURN = 16, INSTRUCTION = 1 }; // psABI, figure 3.36
#else
// x30 is the function's own, so the address is where libgcc has it for signal frames (__LIBGCC_DWARF_ALT_FRAME_RETURN_COLUMN__).
enum { SP = 31, SCRATCH = 0, RETURN = 96, INSTRUCTION = 4 };
#endif

struct description {
    uint64_t claimed; // KEY, by who fills it in; 0: free
    uint64_t ready;   // KEY: all below is
    struct __attribute__((packed)) {
        uint8_t version, frames_encoding, count_encoding, table_encoding;
        int32_t frames; // from itself
        uint32_t count;
        int32_t address, entry; // from `version`
    } header;
    struct __attribute__((packed)) {
        uint32_t length;
        uint32_t id;
        uint8_t version;
        char augmentation[4];
        uint8_t code_factor, data_factor, return_column, augmentation_bytes, address_encoding;
        uint8_t nops[2];
    } common;
    struct __attribute__((packed)) {
        uint32_t length;
        uint32_t common; // back from itself
        uint64_t address, byte_count;
        uint8_t augmentation_bytes;
        uint8_t program[39]; // nops at its end
    } entry;
    uint32_t end;
};
_Static_assert(sizeof(struct description) == DESCRIPTION_BYTES && offsetof(struct description, header) % 4 == 0 &&
                   sizeof((struct description *)0)->common % 4 == 0 && sizeof((struct description *)0)->entry % 8 == 0,
               "description");
#define KEY(address, unwinder) ((address) << 1 | (uint64_t)(unwinder))

static void fill(struct description *description, uint64_t address, enum unwinder unwinder, const struct original *original) {
    uint8_t *header = (uint8_t *)&description->header, *common = (uint8_t *)&description->common, *entry = (uint8_t *)&description->entry;
    description->header.version = 1;
    description->header.frames_encoding = DW_EH_PE_pcrel_sdata4;
    description->header.count_encoding = DW_EH_PE_udata4;
    description->header.table_encoding = DW_EH_PE_datarel_sdata4;
    description->header.frames = (int32_t)(common - (uint8_t *)&description->header.frames);
    description->header.count = 1;
    description->header.address = (int32_t)(int64_t)(address - (uint64_t)header);
    description->header.entry = (int32_t)(entry - header);

    description->common.length = sizeof description->common - 4;
    description->common.version = 1;
    description->common.augmentation[0] = 'z';
    description->common.augmentation[1] = 'R';
    description->common.augmentation[2] = 'S';
    description->common.code_factor = 1;
    description->common.data_factor = 0x78; // -8
    description->common.return_column = RETURN;
    description->common.augmentation_bytes = 1;
    description->common.address_encoding = DW_EH_PE_absptr;

    description->entry.length = sizeof description->entry - 4;
    description->entry.common = (uint32_t)((uint8_t *)&description->entry.common - common);
    description->entry.address = address;
    description->entry.byte_count = INSTRUCTION;
    uint8_t *program = description->entry.program;
    // libgcc tells frames apart by their CFA, less one if what it has passed is a signal frame (uw_identify_context), and both this one and
    // the function's are reached from one: so the CFA is a word lower than the stack pointer that is told beside it. libunwind goes by the
    // CFA alone for a stack pointer, whatever is told (dwarf/Gparser.c, apply_reg_state), and does not compare it.
    int above = original->pushed - (unwinder == UNWINDER_GCC ? 8 : 0);
    *program++ = DW_CFA_def_cfa_sf;
    *program++ = SP;
    *program++ = (uint8_t)(above / -8) & 0x7f;
    *program++ = DW_CFA_val_expression;
    *program++ = SP;
    *program++ = 2;
    *program++ = DW_OP_breg0 + SP;
    *program++ = original->pushed;
    if (original->holds_scratch) {
        *program++ = DW_CFA_offset | SCRATCH;
        *program++ = (uint8_t)(above / 8); // where the stack pointer is
    }
    *program++ = DW_CFA_val_expression;
    *program++ = RETURN;
    *program++ = 9;
    *program++ = DW_OP_addr;
    for (int n = 0; n < 8; n++) *program++ = (uint8_t)(original->address >> 8 * n);
}

const void *tracer_describe(uint64_t address, enum unwinder unwinder, struct original *original) {
    *original = tracer_original(address);
    struct moved_area *area = original->area;
    if (!area || area->descriptions_count == 0) return 0;
    uint64_t key = KEY(address, unwinder), start = key * 0x9e3779b97f4a7c15u >> 32;
    for (uint64_t n = 0; n < 32; n++) {
        struct description *description = area->descriptions + ((start + n) & (area->descriptions_count - 1));
        uint64_t now = __atomic_load_n(&description->claimed, __ATOMIC_RELAXED);
        if (now == 0 && __atomic_compare_exchange_n(&description->claimed, &now, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            fill(description, address, unwinder, original);
            __atomic_store_n(&description->ready, key, __ATOMIC_RELEASE);
            return &description->header;
        }
        // One that is being filled in, perhaps by whom we have interrupted, is not waited for: there may be two of an address.
        if (now == key && __atomic_load_n(&description->ready, __ATOMIC_ACQUIRE) == key) return &description->header;
    }
    return 0;
}
