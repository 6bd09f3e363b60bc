#define _GNU_SOURCE
#include "unwinding_tests.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <libunwind-ptrace.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STRING(name) #name
#define LIBRARY_OF(architecture) "libunwind-" STRING(architecture) ".so.8"
#define FUNCTIONS(each) \
    each(unw_create_addr_space) each(unw_destroy_addr_space) each(unw_set_caching_policy) each(unw_init_remote) each(unw_step) \
        each(unw_get_reg) each(unw_is_signal_frame) each(_UPT_create) each(_UPT_destroy) each(_UPT_find_proc_info) \
            each(_UPT_put_unwind_info)
#define DECLARE(name) static __typeof__(name) *call_##name;
#define FIND(name) \
    if (!(call_##name = (__typeof__(name) *)dlsym(RTLD_DEFAULT, STRING(name)))) return false;
FUNCTIONS(DECLARE)

// Not linked: libunwind.so.8, which comes along, has a _Unwind_RaiseException of its own. libunwind-ptrace does not say what it needs.
static bool load(void) {
    if (!dlopen(LIBRARY_OF(UNW_TARGET), RTLD_NOW | RTLD_GLOBAL)) return false;
    if (!dlopen("libunwind-ptrace.so.0", RTLD_NOW | RTLD_GLOBAL)) return false;
    FUNCTIONS(FIND)
    return true;
}

enum { MOST_MAPPINGS = 4096 };
struct mapping {
    uint64_t start, end;
    const uint8_t *content;
};
struct process {
    unw_addr_space_t space;
    void *files; // what libunwind-ptrace knows of the process's
    struct mapping mappings[MOST_MAPPINGS];
    int mapping_count;
    const struct stack_sample *sample;
};

// Maps what the process has mapped of files: tables of frames and the code of signal frames are read there, without system calls.
static void map_files(struct process *self, pid_t pid) {
    char name[64], line[4352];
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *maps = fopen(name, "re");
    while (maps && fgets(line, sizeof line, maps) && self->mapping_count < MOST_MAPPINGS) {
        unsigned long start, end, offset;
        char rights[5];
        int path = 0;
        if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, rights, &offset, &path) < 4 || line[path] != '/' || rights[0] != 'r')
            continue;
        line[strcspn(line, "\n")] = 0;
        int file = open(line + path, O_RDONLY | O_CLOEXEC);
        void *content = file < 0 ? MAP_FAILED : mmap(0, end - start, PROT_READ, MAP_PRIVATE, file, (off_t)offset);
        if (file >= 0) close(file);
        if (content != MAP_FAILED) self->mappings[self->mapping_count++] = (struct mapping){start, end, content};
    }
    if (maps) fclose(maps);
}

static const struct process *current; // libunwind-ptrace hands its own argument to what reads memory
static const uint8_t *bytes(uint64_t address) {
    const struct stack_sample *sample = current->sample;
    if (address - sample->stack_pointer <= sample->stack_bytes - 8 && sample->stack_bytes >= 8)
        return (const uint8_t *)sample->stack + (address - sample->stack_pointer);
    int low = 0, high = current->mapping_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (current->mappings[middle].end <= address) low = middle + 1;
        else high = middle;
    }
    if (low == current->mapping_count || address < current->mappings[low].start || address + 8 > current->mappings[low].end) return 0;
    return current->mappings[low].content + (address - current->mappings[low].start);
}

static int find(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int wants_table, void *context) {
    (void)context;
    return call__UPT_find_proc_info(space, ip, info, wants_table, current->files);
}
static void put(unw_addr_space_t space, unw_proc_info_t *info, void *context) { call__UPT_put_unwind_info(space, info, context); }
static int list(unw_addr_space_t space, unw_word_t *address, void *context) {
    (void)space, (void)address, (void)context;
    return -UNW_ENOINFO;
}
static int memory(unw_addr_space_t space, unw_word_t address, unw_word_t *word, int writes, void *context) {
    (void)space, (void)context;
    const uint8_t *found = writes ? 0 : bytes(address);
    if (!found) return -UNW_EINVAL;
    memcpy(word, found, 8);
    return 0;
}
static int reg(unw_addr_space_t space, unw_regnum_t number, unw_word_t *word, int writes, void *context) {
    (void)space, (void)context;
    if (writes || number < 0 || number >= current->sample->register_count) return -UNW_EBADREG;
    *word = current->sample->registers[number];
    return 0;
}
static int no_float(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *word, int writes, void *context) {
    (void)space, (void)number, (void)word, (void)writes, (void)context;
    return -UNW_EBADREG;
}
static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context) {
    (void)space, (void)cursor, (void)context;
    return -UNW_EINVAL;
}
static int no_name(unw_addr_space_t space, unw_word_t address, char *name, size_t size, unw_word_t *offset, void *context) {
    (void)space, (void)address, (void)name, (void)size, (void)offset, (void)context;
    return -UNW_ENOINFO;
}

static void close_process(void *process) {
    struct process *self = process;
    for (int n = 0; n < self->mapping_count; n++)
        munmap((void *)self->mappings[n].content, self->mappings[n].end - self->mappings[n].start);
    if (self->space) call_unw_destroy_addr_space(self->space);
    if (self->files) call__UPT_destroy(self->files);
    free(self);
}
static void *open_process(pid_t pid) {
    static int is_loaded = -1;
    if (is_loaded < 0) is_loaded = load();
    if (!is_loaded) return 0;
    struct process *self = calloc(1, sizeof *self);
    map_files(self, pid);
    unw_accessors_t accessors = {find, put, list, memory, reg, no_float, no_resume, no_name};
    self->space = call_unw_create_addr_space(&accessors, 0);
    self->files = call__UPT_create(pid);
    if (self->mapping_count && self->space && self->files && !call_unw_set_caching_policy(self->space, UNW_CACHE_GLOBAL)) return self;
    close_process(self);
    return 0;
}

static int unwind(void *process, const struct stack_sample *sample, uint64_t *frames, int most) {
    struct process *self = process;
    unw_cursor_t cursor;
    int count = 0, state = 1;
    bool is_interrupted = false;
    current = self, self->sample = sample;
    if (call_unw_init_remote(&cursor, self->space, self)) return 0;
    while (state > 0 && count < most) {
        unw_word_t pc;
        if (call_unw_get_reg(&cursor, UNW_REG_IP, &pc) || !pc) break;
        frames[count++] = pc + is_interrupted;
        is_interrupted = call_unw_is_signal_frame(&cursor) > 0;
        state = call_unw_step(&cursor);
    }
    return count;
}

const struct reference libunwind = {"libunwind", open_process, close_process, unwind};
