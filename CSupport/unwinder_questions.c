// Functions by which unwinders ask the loader for descriptions of code: _dl_find_object (glibc elf/dl-find_object.c; libgcc of gcc 12
// and later, libunwind of LLVM), or dl_iterate_phdr (before; libunwind). Both are called through slots. The slots of libunwind lead
// here, and where functions are patched those of libgcc too: the same answers, and others for relocated instructions, for landings and, to
// libunwind, for labels. Also called from signal handlers.
#include "layout.h"

/// struct dl_find_object of <dlfcn.h>, as it is on both architectures.
struct found_object {
    uint64_t flags;
    void *start, *end, *module;
    const void *frames; // PT_GNU_EH_FRAME
    uint64_t reserved[7];
};
static int (*real_find_object)(void *, struct found_object *);

static int find_object(void *address, struct found_object *found, enum unwinder unwinder) {
    int result = real_find_object(address, found);
    const void *label = unwinder == UNWINDER_GCC ? 0 : tracer_describe_label((uint64_t)address);
    if (label && result == 0) {
        found->frames = label;
        return 0;
    }
    if (result == 0 && !tracer_is_landing((uint64_t)address)) return result;
    struct original original;
    const void *frames = tracer_describe((uint64_t)address, unwinder, &original);
    // The rest as the function's own module has it.
    if (!frames || real_find_object((void *)original.address, found) != 0) return result;
    found->start = (void *)original.area->code;
    found->end = (void *)original.area->code_end;
    found->frames = frames;
    return 0;
}
static int find_object_gcc(void *address, struct found_object *found) { return find_object(address, found, UNWINDER_GCC); }
static int find_object_libunwind(void *address, struct found_object *found) { return find_object(address, found, UNWINDER_LIBUNWIND); }

uint64_t tracer_replace_find_object(uint64_t target, enum unwinder unwinder) {
    if (real_find_object && (uint64_t)real_find_object != target) return target;
    real_find_object = (int (*)(void *, struct found_object *))target;
    return unwinder == UNWINDER_LIBUNWIND ? (uint64_t)&find_object_libunwind : (uint64_t)&find_object_gcc;
}

struct segment { // Elf64_Phdr
    uint32_t type, flags;
    uint64_t offset, address, physical, file_bytes, memory_bytes, alignment;
};
struct module_info { // struct dl_phdr_info of <link.h>; `size` says how much of it there is
    uint64_t bias;
    const char *name;
    const struct segment *segments;
    uint16_t segment_count;
    uint64_t added, removed;
    uint64_t tls_module;
    void *tls;
};
enum { SEGMENTS_END = 26, PT_LOAD = 1, PT_GNU_EH_FRAME = 0x6474e550 };
typedef int (*module_callback)(struct module_info *, uint64_t size, void *data);
static int (*real_iterate)(module_callback, void *);

struct question {
    module_callback callback;
    void *data;
    uint64_t address; // address in relocated instructions, of a landing or of a label, until it is answered
    enum unwinder unwinder;
};

/// Before the first module of the loader's list, with its lock held, which guards what unwinders remember of this.
static int answer(struct question *question, const struct module_info *first, uint64_t size) {
    uint64_t address = question->address;
    question->address = 0;
    struct original original;
    const void *frames =
        tracer_is_label(address) ? tracer_describe_label(address) : tracer_describe(address, question->unwinder, &original);
    if (!frames || size < SEGMENTS_END) return 0;
    struct segment segments[2] = {
        {.type = PT_LOAD, .flags = 5, .address = address, .file_bytes = 1, .memory_bytes = 1, .alignment = 1},
        {.type = PT_GNU_EH_FRAME, .flags = 4, .address = (uint64_t)frames, .file_bytes = 20, .memory_bytes = 20, .alignment = 4}};
    struct module_info info = {.bias = 0, .name = "[tracer]", .segments = segments, .segment_count = 2};
    if (size >= offsetof(struct module_info, tls_module)) {
        info.added = first->added;
        info.removed = first->removed;
    }
    return question->callback(&info, size < sizeof info ? size : sizeof info, question->data);
}
static int each(struct module_info *module, uint64_t size, void *data) {
    struct question *question = data;
    if (question->address) {
        int result = answer(question, module, size);
        if (result) return result;
    }
    return question->callback(module, size, question->data);
}

/// The address that they ask for is in the first words of what they give their callback: of libgcc (struct unw_eh_callback_data) and nongnu
/// libunwind (struct dwarf_callback_data) it is the first one, of LLVM's (dl_iterate_cb_data) the third. Whichever word is one in relocated
/// instructions or of a label; if it were another one, their callback would not find its address in the segment that it is shown. After
/// libgcc's is a null pointer, the base for relative addresses, and after nongnu libunwind's one to what it is going to fill in.
static int iterate(module_callback callback, void *data, enum unwinder unwinder) {
    const uint64_t *words = data;
    for (int n = 0; n < 3 && words; n++) {
        int is_label = tracer_is_label(words[n]);
        if (!is_label && !tracer_is_relocated(words[n]) && !tracer_is_landing(words[n])) continue;
        if (unwinder == UNWINDER_UNKNOWN) unwinder = n == 0 && words[1] == 0 ? UNWINDER_GCC : UNWINDER_LIBUNWIND;
        if (is_label && unwinder == UNWINDER_GCC) break; // the image's own is for it
        struct question question = {callback, data, words[n], unwinder};
        return real_iterate(each, &question);
    }
    return real_iterate(callback, data);
}
static int iterate_gcc(module_callback callback, void *data) { return iterate(callback, data, UNWINDER_GCC); }
static int iterate_libunwind(module_callback callback, void *data) { return iterate(callback, data, UNWINDER_LIBUNWIND); }
static int iterate_unknown(module_callback callback, void *data) { return iterate(callback, data, UNWINDER_UNKNOWN); }

uint64_t tracer_replace_iterate(uint64_t target, enum unwinder unwinder) {
    static int (*const ours[])(module_callback, void *) = {iterate_gcc, iterate_libunwind, iterate_unknown};
    if (real_iterate && (uint64_t)real_iterate != target) return target;
    real_iterate = (int (*)(module_callback, void *))target;
    return (uint64_t)ours[unwinder];
}

/// For V8 (ReturnLocations.swift): of a location with a label, where the address is that the label stands for.
static uint64_t locate(uint64_t location) {
    uint64_t address = *(uint64_t *)location;
    return tracer_is_label(address) ? (uint64_t)tracer_label_return(address & -LABEL_BYTES) : location;
}
void tracer_answer_locations(uint64_t setter) { ((void (*)(uint64_t (*)(uint64_t)))setter)(locate); }
