// A thread of another process that is led by ptrace(2): what Swift cannot call, and what differs between processors. All calls for a
// thread come from the same thread of the tool. Runs in the tool, never in a traced program.
#pragma once
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

/// What a thread is made to call.
enum {
    RECORDER_MMAP = SYS_mmap,
    RECORDER_MUNMAP = SYS_munmap,
    RECORDER_CLOSE = SYS_close,
    RECORDER_MEMFD_CREATE = SYS_memfd_create,
    RECORDER_CLONE = SYS_clone,
};
/// As pthread_create(3) has them, without thread-local storage: clone(2).
#define RECORDER_TASK_FLAGS 0x00050f00 /* VM, FS, FILES, SIGHAND, THREAD, SYSVSEM */

/// The general registers of a stopped thread, as NT_PRSTATUS has them.
struct recorder_registers {
    uint64_t words[34];
    uint64_t byte_count;
};
/// All others: NT_X86_XSTATE; NT_ARM_SVE or NT_PRFPREG.
struct recorder_vectors {
    uint64_t note, byte_count;
    uint8_t bytes[24 << 10];
};

enum recorder_stop_kind {
    RECORDER_RUNS, // it has not stopped
    RECORDER_GONE,
    RECORDER_INTERRUPTED, // as recorder_tracee_interrupt asked; or a new thread before its first instruction
    RECORDER_ENTERS,      // a system call
    RECORDER_LEAVES,      // a system call
    RECORDER_SIGNAL,      // one is about to be delivered
    RECORDER_HELD,        // SIGSTOP or its like has stopped it
    RECORDER_CLONES,
};
struct recorder_stop {
    int kind;
    /// RECORDER_SIGNAL: its number, to be passed on.
    int signal;
    /// RECORDER_CLONES: the new thread.
    pid_t child;
};

/// 0 or errno. The thread runs on. It is let go when the tool ends.
int recorder_tracee_seize(pid_t thread);
int recorder_tracee_interrupt(pid_t thread);
/// While it is stopped: threads that it makes from here on stop before their first instruction, and are traced, too.
int recorder_tracee_follow(pid_t thread, int follows);
/// The stopped thread goes on, to its next system call or without end. `signal`: 0, or the one that RECORDER_SIGNAL was about.
int recorder_tracee_resume(pid_t thread, int to_system_call, int signal);
/// The same, and it is let go.
int recorder_tracee_release(pid_t thread, int signal);
/// Waits for its next stop, for so many nanoseconds at most.
struct recorder_stop recorder_tracee_wait(pid_t thread, uint64_t nanoseconds);

int recorder_tracee_registers(pid_t thread, struct recorder_registers *registers);
int recorder_tracee_set_registers(pid_t thread, const struct recorder_registers *registers);
int recorder_tracee_vectors(pid_t thread, struct recorder_vectors *vectors);
int recorder_tracee_set_vectors(pid_t thread, const struct recorder_vectors *vectors);
int recorder_tracee_mask(pid_t thread, uint64_t *mask);
int recorder_tracee_set_mask(pid_t thread, uint64_t mask);
/// At RECORDER_ENTERS: the call is not made.
int recorder_tracee_skip(pid_t thread, struct recorder_registers *registers);
/// 1: the thread may be in a restartable sequence (rseq(2)), which another program counter would end; also where nobody can say.
int recorder_tracee_may_be_in_sequence(pid_t thread, int memory);

uint64_t recorder_program_counter(const struct recorder_registers *registers);
uint64_t recorder_stack_pointer(const struct recorder_registers *registers);
/// What a system call or a function has returned.
uint64_t recorder_result(const struct recorder_registers *registers);
/// At RECORDER_ENTERS of a system call whose number is what a function returned: that.
uint64_t recorder_returned(const struct recorder_registers *registers);
/// The system call that is entered, left, or was interrupted; -1: none.
int64_t recorder_system_call(const struct recorder_registers *registers);
/// At RECORDER_ENTERS; on x86-64 also where a call has been interrupted: going on makes the call from its beginning. 0: it cannot.
int recorder_call_again(struct recorder_registers *registers, int is_entered);
void recorder_set_system_call(struct recorder_registers *registers, uint64_t instruction, int64_t number, const uint64_t arguments[6]);
/// x86-64 has the address to return to on the stack: the caller writes it to where recorder_stack_pointer then says.
void recorder_set_call(struct recorder_registers *registers, uint64_t function, uint64_t return_address, uint64_t stack,
                       const uint64_t arguments[2]);
/// What Sources/Agent/AgentEntry/attach_task.S expects of a new thread.
void recorder_set_task(struct recorder_registers *registers, uint64_t function, uint64_t argument, uint64_t stack, uint64_t stack_bytes);
/// Registers in the order of perf_event_open(2)'s samples (Unwinding/Processor.swift). Their number.
int recorder_sampled(const struct recorder_registers *registers, uint64_t sampled[33]);

/// The instruction that makes a system call, and its bytes.
#if defined(__x86_64__)
#define RECORDER_CALL_BYTES 2 /* syscall */
#define RECORDER_RETURNS_BY_STACK 1 /* a call puts the address to return to on the stack */
#else
#define RECORDER_CALL_BYTES 4 /* svc #0 */
#define RECORDER_RETURNS_BY_STACK 0
#endif
uint32_t recorder_call_instruction(void);
/// What handlers of signals return to if libc has set them up; without bytes where that is in the vdso.
const uint8_t *recorder_restorer(int *byte_count);

/// Calls of which it is known that nobody makes them with a lock that dlopen(3) takes. What they are about says how long they may last.
enum recorder_call_kind {
    RECORDER_CALL_OTHER,
    RECORDER_CALL_BRIEF,   // it waits for nothing, or for a disk, but may be made with such a lock
    RECORDER_CALL_SHORT,   // it waits for nothing, or for a disk
    RECORDER_CALL_ENDLESS, // it waits without a limit, and begins anew unnoticed
    RECORDER_CALL_RESUMED, // it waits for a time; the kernel goes on with what is left (restart_syscall(2))
    RECORDER_CALL_TIMED,   // it waits, and would notice: it begins anew with all of its time
    RECORDER_CALL_PARTIAL, // it waits, and would notice: it ends with a part of its work
    RECORDER_CALL_LATE,    // as TIMED, and it says that it was interrupted also where its time was over
    RECORDER_CALL_BY_DESCRIPTOR, // endless or late, as its first argument has it
};
/// - Parameter arguments: as /proc/PID/syscall has them
enum recorder_call_kind recorder_call_kind(int64_t number, const uint64_t arguments[6]);
/// Calls that libc makes with a lock of the allocator's held as well.
int recorder_is_libcs_call(int64_t number);
/// It waits for a lock.
int recorder_is_lock(int64_t number);
/// It executes another program.
int recorder_is_exec(int64_t number);
/// It is about memory, as the allocator makes it.
int recorder_is_memory(int64_t number);
/// 1: calls that wait for this descriptor of a process never end for want of time (SO_RCVTIMEO, SO_SNDTIMEO); 0: they may.
int recorder_waits_without_end(pid_t process, int descriptor);
