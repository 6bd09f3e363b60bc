// References for the tests of unwinding: samples of a program by perf_event_open(2), the stacks that other unwinders find for the same
// samples, and the stacks of a signal handler and of a thread that waits as libc's backtrace() has them.
#ifndef UNWINDING_TESTS_H
#define UNWINDING_TESTS_H
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

struct sampling_events {
    void *context;
    void (*exec)(void *, pid_t);
    void (*fork)(void *, pid_t parent, pid_t child);
    void (*map)(void *, pid_t, uint64_t address, uint64_t length, uint64_t offset, uint64_t inode, const char *path);
    void (*exit)(void *, pid_t);
    void (*sample)(void *, pid_t, pid_t thread, uint64_t ns, const uint64_t *registers, const void *stack, uint64_t stack_bytes);
};
/// Runs a program, and every process that it makes, and reports on it. Its output goes to /dev/null. An errno, or 0.
int sampling_run(char *const *arguments, uint64_t period_ns, uint32_t stack_bytes, uint64_t register_mask, const struct sampling_events *);

/// A sample as unwinders take it: the registers in DWARF's order, the next instruction last, and a copy of the stack from its pointer up.
struct stack_sample {
    const uint64_t *registers;
    int register_count;
    uint64_t stack_pointer, stack_bytes;
    const void *stack;
};
/// Another unwinder, to compare stacks with.
struct reference {
    const char *name;
    /// What it knows of a process that runs; 0: nothing.
    void *(*open)(pid_t);
    void (*close)(void *process);
    /// How many frames it finds, as struct trace_sample has them.
    int (*unwind)(void *process, const struct stack_sample *, uint64_t *frames, int most);
};
extern const struct reference libdwfl;
/// HP's, from libunwind-ptrace.so.0; its open gives 0 where that is not installed.
extern const struct reference libunwind;

/// A signal interrupts the caller, a few calls deep, some of them through linkage tables. What the handler was given and what backtrace() says there.
struct interrupted {
    uint64_t dwarf_registers[33]; // in DWARF's order, with the next instruction after the last
    uint8_t *stack; // from the handler's stack pointer, with space for this:
    uint64_t stack_bytes;
    uint64_t frames[64]; // from the interrupted instruction on
    int frame_count;
};
void interrupt(struct interrupted *, int depth);

/// A thread that waits to read from a pipe, a few calls deep, and what backtrace() said just before in the function which reads.
struct waiting {
    pid_t tid;
    uint64_t frames[64];
    int frame_count;
    pthread_t thread;
    int begins[2], ends[2];
};
/// 0: it has not begun. When this returns, the thread waits or will do so at once.
int waiting_begin(struct waiting *);
void waiting_end(struct waiting *);
#endif
