// Kernel events of a program and all it starts: perf_event_open(2), an event or a few for each CPU, whose records lie in a
// ring that is shared with us. In C for struct perf_event_attr, which is bit-fields. Runs in the tool, never in a traced program.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// Events of one CPU, and the ring that they share.
struct recorder_ring {
    int event;          // major page faults, and all that is reported without being counted; -1: none
    int *threads;       // events of the other threads of a process that was there before: they report to the same ring
    size_t thread_count;
    int minor, sampler; // minor page faults, and stacks: to the same ring; -1: none
    int cpu;
    int has_kernel_stacks; // each sample also has the stack of the kernel, empty outside of it
    void *control;
    uint64_t data_bytes; // capacity of the ring; a power of two
};

/// Bytes of a PERF_RECORD_SAMPLE after its header: instruction; pid, tid; time; address. A minor fault also has the period. A stack has in
/// place of it: ABI, registers; byte count, stack, how much of it there was; without either it is two words longer than a major fault.
/// With `has_kernel_stacks` the kernel's stack comes before these: a count, and so many addresses, the innermost first.
enum { RECORDER_MAJOR_FAULT_BYTES = 32, RECORDER_MINOR_FAULT_BYTES = 40, RECORDER_LEAST_STACK_BYTES = 48 };

/// Events to ask for. Times are CLOCK_MONOTONIC.
struct recorder_kernel_requests {
    int begins_at_once;      // not at the next exec
    int with_kernel;         // also page faults that the kernel makes itself, in system calls, and samples in the kernel
    int with_minor_faults;   // each of them
    uint64_t sample_period;  // ns of CPU time; 0: no samples
    uint64_t sample_registers; // as in perf_event_attr.sample_regs_user
    uint32_t sample_stack;   // bytes; a multiple of 8
    uint64_t data_bytes;     // capacity of each ring: a power of two, pages; it is halved until it may be locked
};

/// Opens the events of the thread, and of all that it will begin, from its next exec on, or from now on. `ring->data_bytes` is what could be had.
/// 0 or errno: EACCES and EPERM where the system forbids it (kernel.perf_event_paranoid, seccomp), ENODEV where the CPU is off.
int recorder_ring_open(pid_t pid, int cpu, const struct recorder_kernel_requests *requests, struct recorder_ring *ring);

/// Copies what is new, in one piece, to `bytes`, which has space for `data_bytes`, and frees its space in the ring.
size_t recorder_ring_take(struct recorder_ring *ring, void *bytes);
/// The same, and leaves it there.
size_t recorder_ring_look(struct recorder_ring *ring, void *bytes);

/// The same of another thread of the process, whose records go to the ring that one has. 0 or errno: ESRCH where it is gone.
int recorder_ring_join(pid_t tid, const struct recorder_kernel_requests *requests, struct recorder_ring *ring);

void recorder_ring_close(struct recorder_ring *ring);

/// Waits until a ring is half full, `wake` is readable or the time is over. 1: all processes of the events are gone.
int recorder_rings_await(const struct recorder_ring *rings, size_t count, int wake, int milliseconds);

/// A descriptor to wake one who waits, and waking him.
int recorder_make_wake(void);
void recorder_wake(int wake);
/// It is not readable any more, until the next time.
void recorder_take_wake(int wake);

/// Returns 1 if the first argument of this system call is a descriptor, else 0.
int recorder_takes_descriptor(int system_call);

/// Determines if a system call waits for several descriptors, and where those are: RECORDER_POLL by its first two arguments, an array of
/// struct pollfd and its length; RECORDER_SELECT by its first three, the bit count and two bit sets; RECORDER_EPOLL by the first, a
/// descriptor.
enum { RECORDER_NO_SET, RECORDER_POLL, RECORDER_SELECT, RECORDER_EPOLL };
int recorder_waits_for_set(int system_call);

/// Reads another process's memory. 0: not all of it, or we may not (process_vm_readv(2)); else 1.
int recorder_read_memory(int pid, uint64_t address, void *bytes, size_t byte_count);

/// The inode of the Unix socket that this one is connected to; 0 where it is none or not connected, or the kernel does not report it
/// (sock_diag(7)). Looks only into the caller's network namespace.
uint32_t recorder_unix_peer(uint32_t inode);

/// Numbers of the CPUs on which the caller may run, in order; how many there are.
size_t recorder_cpus(int *numbers, size_t capacity);
