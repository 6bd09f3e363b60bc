#define _GNU_SOURCE
#include "unwinding_tests.h"
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

struct reference {
    Dwfl *dwfl;
    const uint64_t *registers;
    int register_count;
    uint64_t stack_pointer, stack_bytes;
    const uint8_t *stack;
    uint64_t *frames;
    int count, most;
    pid_t pid;
};

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread) {
    (void)dwfl;
    if (*thread) return 0;
    *thread = context;
    return ((struct reference *)context)->pid;
}
static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *context) {
    (void)dwfl;
    struct reference *self = context;
    if (address < self->stack_pointer || address - self->stack_pointer + 8 > self->stack_bytes) return false;
    memcpy(result, self->stack + (address - self->stack_pointer), 8);
    return true;
}
static bool set_registers(Dwfl_Thread *thread, void *context) {
    struct reference *self = context;
    Dwarf_Word words[33];
    for (int n = 0; n < self->register_count - 1; n++) words[n] = self->registers[n];
    dwfl_thread_state_register_pc(thread, self->registers[self->register_count - 1]);
#ifdef __x86_64__
    words[16] = self->registers[16];
    return dwfl_thread_state_registers(thread, 0, 17, words);
#else
    return dwfl_thread_state_registers(thread, 0, 32, words);
#endif
}
static const Dwfl_Thread_Callbacks threads = {
    .next_thread = next_thread, .memory_read = read_memory, .set_initial_registers = set_registers};
static const Dwfl_Callbacks modules = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo};

struct reference *reference_of_process(pid_t pid) {
    struct reference *self = calloc(1, sizeof *self);
    self->pid = pid;
    self->dwfl = dwfl_begin(&modules);
    if (!self->dwfl || dwfl_linux_proc_report(self->dwfl, pid) || dwfl_report_end(self->dwfl, 0, 0) ||
        !dwfl_attach_state(self->dwfl, 0, pid, &threads, self)) {
        reference_free(self);
        return 0;
    }
    return self;
}
void reference_free(struct reference *self) {
    if (self->dwfl) dwfl_end(self->dwfl);
    free(self);
}

static int add(Dwfl_Frame *frame, void *context) {
    struct reference *self = context;
    Dwarf_Addr pc;
    bool isExact;
    if (!dwfl_frame_pc(frame, &pc, &isExact) || self->count == self->most) return DWARF_CB_ABORT;
    self->frames[self->count] = pc + (isExact && self->count > 0);
    self->count++;
    return DWARF_CB_OK;
}
int reference_stack(struct reference *self, const uint64_t *registers, int register_count, uint64_t stack_pointer, const void *stack,
                    uint64_t stack_bytes, uint64_t *frames, int most) {
    self->registers = registers, self->register_count = register_count;
    self->stack_pointer = stack_pointer, self->stack = stack, self->stack_bytes = stack_bytes;
    self->frames = frames, self->most = most, self->count = 0;
    dwfl_getthread_frames(self->dwfl, self->pid, add, self);
    return self->count > 0 ? self->count : -1;
}
