#define _GNU_SOURCE
#include "unwinding_tests.h"
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct process {
    Dwfl *dwfl;
    const struct stack_sample *sample;
    uint64_t *frames;
    int count, most;
    pid_t pid;
};

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread) {
    (void)dwfl;
    if (*thread) return 0;
    *thread = context;
    return ((struct process *)context)->pid;
}
static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *context) {
    (void)dwfl;
    const struct stack_sample *sample = ((struct process *)context)->sample;
    if (address < sample->stack_pointer || address - sample->stack_pointer + 8 > sample->stack_bytes) return false;
    memcpy(result, (const char *)sample->stack + (address - sample->stack_pointer), 8);
    return true;
}
static bool set_registers(Dwfl_Thread *thread, void *context) {
    const struct stack_sample *sample = ((struct process *)context)->sample;
    Dwarf_Word words[33];
    int last = sample->register_count - 1;
    for (int n = 0; n <= last; n++) words[n] = sample->registers[n];
    dwfl_thread_state_register_pc(thread, words[last]);
#ifdef __x86_64__
    return dwfl_thread_state_registers(thread, 0, 17, words);
#else
    return dwfl_thread_state_registers(thread, 0, 32, words);
#endif
}
static const Dwfl_Thread_Callbacks threads = {
    .next_thread = next_thread, .memory_read = read_memory, .set_initial_registers = set_registers};
static const Dwfl_Callbacks modules = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo};

static void close_process(void *process) {
    struct process *self = process;
    if (self->dwfl) dwfl_end(self->dwfl);
    free(self);
}
static void *open_process(pid_t pid) {
    struct process *self = calloc(1, sizeof *self);
    self->pid = pid;
    self->dwfl = dwfl_begin(&modules);
    if (self->dwfl && !dwfl_linux_proc_report(self->dwfl, pid) && !dwfl_report_end(self->dwfl, 0, 0) &&
        dwfl_attach_state(self->dwfl, 0, pid, &threads, self))
        return self;
    close_process(self);
    return 0;
}

static int add(Dwfl_Frame *frame, void *context) {
    struct process *self = context;
    Dwarf_Addr pc;
    bool isExact;
    if (!dwfl_frame_pc(frame, &pc, &isExact) || self->count == self->most) return DWARF_CB_ABORT;
    self->frames[self->count] = pc + (isExact && self->count > 0);
    self->count++;
    return DWARF_CB_OK;
}
static int unwind(void *process, const struct stack_sample *sample, uint64_t *frames, int most) {
    struct process *self = process;
    self->sample = sample, self->frames = frames, self->most = most, self->count = 0;
    dwfl_getthread_frames(self->dwfl, self->pid, add, self);
    return self->count;
}

const struct reference libdwfl = {"libdwfl", open_process, close_process, unwind};
