#include "layout.h"

enum { DW_EH_PE_absptr = 0, DW_EH_PE_udata4 = 3, DW_EH_PE_pcrel_sdata4 = 0x1b, DW_EH_PE_datarel_sdata4 = 0x3b };

struct description {
    uint64_t claimed; // the key, by who fills it in; 0: free
    uint64_t ready;   // the key: all below is
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
        uint8_t rest[11]; // augmentation, factors, return column, what the augmentation says; nops at its end
    } common;
    struct __attribute__((packed)) {
        uint32_t length;
        uint32_t common; // back from itself
        uint64_t address, byte_count;
        uint8_t augmentation_bytes;
        uint8_t program[FRAME_PROGRAM_BYTES - 1]; // nops at its end
    } entry;
    uint32_t end;
    uint64_t word;
};
_Static_assert(sizeof(struct description) == DESCRIPTION_BYTES && offsetof(struct description, header) % 4 == 0 &&
                   sizeof((struct description *)0)->common % 4 == 0 && sizeof((struct description *)0)->entry % 8 == 0 &&
                   offsetof(struct description, end) == offsetof(struct description, entry) + sizeof((struct description *)0)->entry,
               "description");

enum { PROBES = 32 };

static int is_near(int64_t distance) { return distance == (int32_t)distance; }

static void fill(struct description *description, const struct frame_rules *rules) {
    uint8_t *header = (uint8_t *)&description->header, *common = (uint8_t *)&description->common, *entry = (uint8_t *)&description->entry;
    description->header.version = 1;
    description->header.frames_encoding = DW_EH_PE_pcrel_sdata4;
    description->header.count_encoding = DW_EH_PE_udata4;
    description->header.table_encoding = DW_EH_PE_datarel_sdata4;
    description->header.frames = (int32_t)(common - (uint8_t *)&description->header.frames);
    description->header.count = 1;
    description->header.address = (int32_t)(int64_t)(rules->address - (uint64_t)header);
    description->header.entry = (int32_t)(entry - header);

    description->common.length = sizeof description->common - 4;
    description->common.version = 1;
    uint8_t *rest = description->common.rest;
    *rest++ = 'z';
    *rest++ = 'R';
    if (rules->is_signal_frame) *rest++ = 'S';
    *rest++ = 0;
    *rest++ = 1;    // code alignment factor
    *rest++ = 0x78; // data alignment factor: -8
    *rest++ = rules->return_column;
    *rest++ = 1; // byte of augmentation
    *rest++ = DW_EH_PE_absptr;

    description->entry.length = sizeof description->entry - 4;
    description->entry.common = (uint32_t)((uint8_t *)&description->entry.common - common);
    description->entry.address = rules->address;
    description->entry.byte_count = rules->bytes;
    __builtin_memcpy(description->entry.program, rules->program, rules->program_bytes);
    description->word = rules->word;
    uint64_t *word = &description->word;
    if (rules->word_operand) __builtin_memcpy(description->entry.program + rules->word_operand, &word, sizeof word);
}

const void *tracer_describe_frame(struct description_table table, uint64_t key, const struct frame_rules *rules) {
    if (table.count == 0 || rules->program_bytes > sizeof((struct description *)0)->entry.program) return 0;
    uint64_t start = key * 0x9e3779b97f4a7c15u >> 32;
    for (uint64_t n = 0; n < PROBES && n < table.count; n++) {
        struct description *description = table.entries + ((start + n) & (table.count - 1));
        if (!is_near((int64_t)(rules->address - (uint64_t)&description->header))) return 0;
        uint64_t now = __atomic_load_n(&description->claimed, __ATOMIC_RELAXED);
        if (now == 0 && __atomic_compare_exchange_n(&description->claimed, &now, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            fill(description, rules);
            __atomic_store_n(&description->ready, key, __ATOMIC_RELEASE);
            return &description->header;
        }
        // One that is being filled in, perhaps by whom we have interrupted, is not waited for: there may be two of an address.
        if (now == key && __atomic_load_n(&description->ready, __ATOMIC_ACQUIRE) == key) return &description->header;
    }
    return 0;
}

#if defined(__aarch64__)
void tracer_change_word(struct description_table table, uint64_t key, uint64_t word) {
    uint64_t start = key * 0x9e3779b97f4a7c15u >> 32;
    for (uint64_t n = 0; n < PROBES && n < table.count; n++) {
        struct description *description = table.entries + ((start + n) & (table.count - 1));
        if (__atomic_load_n(&description->claimed, __ATOMIC_ACQUIRE) == key) __atomic_store_n(&description->word, word, __ATOMIC_RELAXED);
    }
}
#endif
