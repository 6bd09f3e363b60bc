#define _GNU_SOURCE
#include "tracee.h"
#include <elf.h>
#include <errno.h>
#include <linux/ptrace.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// <sys/ptrace.h> and <linux/ptrace.h> cannot be included both.
long ptrace(int request, ...);

_Static_assert(sizeof(((struct recorder_registers *)0)->words) >= 34 * sizeof(uint64_t), "user_pt_regs");

static int done(long result) { return result < 0 ? errno : 0; }

int recorder_tracee_seize(pid_t thread) { return done(ptrace(PTRACE_SEIZE, thread, 0L, (long)PTRACE_O_TRACESYSGOOD)); }

int recorder_tracee_follow(pid_t thread, int follows) {
    return done(ptrace(PTRACE_SETOPTIONS, thread, 0L, (long)(PTRACE_O_TRACESYSGOOD | (follows ? PTRACE_O_TRACECLONE : 0))));
}

int recorder_tracee_interrupt(pid_t thread) { return done(ptrace(PTRACE_INTERRUPT, thread, 0L, 0L)); }

int recorder_tracee_resume(pid_t thread, int to_system_call, int signal) {
    return done(ptrace(to_system_call ? PTRACE_SYSCALL : PTRACE_CONT, thread, 0L, (long)signal));
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// ptrace(2): the event, if there is one, is above the signal.
static struct recorder_stop stop_of(pid_t thread, int status) {
    struct recorder_stop stop = {RECORDER_GONE, 0, 0};
    if (!WIFSTOPPED(status)) return stop;
    int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_STOP) {
        stop.kind = signal == SIGTRAP ? RECORDER_INTERRUPTED : RECORDER_HELD;
    } else if (event == PTRACE_EVENT_CLONE) {
        unsigned long child = 0;
        ptrace(PTRACE_GETEVENTMSG, thread, 0L, &child);
        stop.kind = RECORDER_CLONES;
        stop.child = (pid_t)child;
    } else if (signal == (SIGTRAP | 0x80)) {
        struct ptrace_syscall_info info = {0};
        long got = ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info);
        stop.kind = got > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY ? RECORDER_ENTERS : RECORDER_LEAVES;
    } else {
        stop.kind = RECORDER_SIGNAL;
        stop.signal = signal;
    }
    return stop;
}

struct recorder_stop recorder_tracee_wait(pid_t thread, uint64_t nanoseconds) {
    uint64_t end = now() + nanoseconds;
    // The kernel sends it at each stop. Blocked, it waits for us, so none is missed between looking and waiting.
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &stops, 0);
    for (;;) {
        int status = 0;
        pid_t got = waitpid(thread, &status, __WALL | WNOHANG);
        if (got == thread) return stop_of(thread, status);
        if (got < 0 && errno != EINTR) return (struct recorder_stop){RECORDER_GONE, 0, 0};
        uint64_t time = now();
        if (time >= end) return (struct recorder_stop){RECORDER_RUNS, 0, 0};
        struct timespec rest = {0, (long)(end - time < 5000000 ? end - time : 5000000)};
        sigtimedwait(&stops, 0, &rest);
    }
}

int recorder_tracee_release(pid_t thread, int signal) {
    int error = done(ptrace(PTRACE_DETACH, thread, 0L, (long)signal));
    // It was killed meanwhile. Another thread that calls exec waits until the tracer has waited for it (ptrace(2), execve(2) under ptrace).
    for (uint64_t end = now() + 2000000000; error == ESRCH && now() < end;) {
        struct recorder_stop stop = recorder_tracee_wait(thread, 100000000);
        if (stop.kind == RECORDER_GONE) break;
        if (stop.kind != RECORDER_RUNS) error = done(ptrace(PTRACE_DETACH, thread, 0L, (long)stop.signal));
    }
    return error;
}

static int transfer(int request, pid_t thread, uint64_t note, void *bytes, uint64_t *byte_count) {
    struct iovec range = {bytes, *byte_count};
    int error = done(ptrace(request, thread, (long)note, &range));
    *byte_count = range.iov_len;
    return error;
}

int recorder_tracee_registers(pid_t thread, struct recorder_registers *registers) {
    registers->byte_count = sizeof registers->words;
    return transfer(PTRACE_GETREGSET, thread, NT_PRSTATUS, registers->words, &registers->byte_count);
}

int recorder_tracee_set_registers(pid_t thread, const struct recorder_registers *registers) {
    uint64_t byte_count = registers->byte_count;
    return transfer(PTRACE_SETREGSET, thread, NT_PRSTATUS, (void *)registers->words, &byte_count);
}

#if defined(__aarch64__)
static const uint64_t vector_notes[] = {NT_ARM_SVE, NT_PRFPREG};
#else
static const uint64_t vector_notes[] = {NT_X86_XSTATE, NT_PRFPREG};
#endif

int recorder_tracee_vectors(pid_t thread, struct recorder_vectors *vectors) {
    int error = ENODEV;
    for (int n = 0; n < 2 && error; n++) {
        vectors->note = vector_notes[n];
        vectors->byte_count = sizeof vectors->bytes;
        error = transfer(PTRACE_GETREGSET, thread, vectors->note, vectors->bytes, &vectors->byte_count);
        if (!error && vectors->byte_count == sizeof vectors->bytes) error = ENOSPC; // perhaps not all
    }
    return error;
}

int recorder_tracee_set_vectors(pid_t thread, const struct recorder_vectors *vectors) {
    uint64_t byte_count = vectors->byte_count;
    return transfer(PTRACE_SETREGSET, thread, vectors->note, (void *)vectors->bytes, &byte_count);
}

int recorder_tracee_mask(pid_t thread, uint64_t *mask) { return done(ptrace(PTRACE_GETSIGMASK, thread, sizeof *mask, mask)); }

int recorder_tracee_set_mask(pid_t thread, uint64_t mask) { return done(ptrace(PTRACE_SETSIGMASK, thread, sizeof mask, &mask)); }

// PTRACE_GET_RSEQ_CONFIGURATION (Linux 5.13) says where the thread's struct rseq is; its rseq_cs is not 0 in a sequence, or until the kernel
// has next looked.
int recorder_tracee_may_be_in_sequence(pid_t thread, int memory) {
    struct {
        uint64_t address;
        uint32_t size, signature, flags, pad;
    } place = {0};
    if (ptrace(0x420f, thread, sizeof place, &place) < 0) return 1;
    if (!place.address) return 0;
    uint64_t sequence = 1;
    if (pread(memory, &sequence, sizeof sequence, (off_t)(place.address + 8)) != sizeof sequence) return 1;
    return sequence != 0;
}

// MARK: - Registers

#if defined(__x86_64__)

// As struct user_regs_struct (arch/x86/include/asm/user_64.h).
enum { R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, ORIG_RAX, RIP, CS, EFLAGS, RSP, SS };

uint32_t recorder_call_instruction(void) { return 0x050f; }

// sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c, RESTORE2: mov $15, %rax; syscall. Debuggers know it by these bytes, too.
const uint8_t *recorder_restorer(int *byte_count) {
    static const uint8_t bytes[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    *byte_count = sizeof bytes;
    return bytes;
}

uint64_t recorder_program_counter(const struct recorder_registers *registers) { return registers->words[RIP]; }
uint64_t recorder_stack_pointer(const struct recorder_registers *registers) { return registers->words[RSP]; }
uint64_t recorder_result(const struct recorder_registers *registers) { return registers->words[RAX]; }
uint64_t recorder_returned(const struct recorder_registers *registers) { return registers->words[ORIG_RAX]; }
int64_t recorder_system_call(const struct recorder_registers *registers) { return (int64_t)registers->words[ORIG_RAX]; }

int recorder_call_again(struct recorder_registers *registers, int is_entered) {
    (void)is_entered; // orig_rax and the arguments are there in both cases
    registers->words[RAX] = registers->words[ORIG_RAX];
    registers->words[ORIG_RAX] = (uint64_t)-1;
    registers->words[RIP] -= RECORDER_CALL_BYTES;
    return 1;
}

int recorder_tracee_skip(pid_t thread, struct recorder_registers *registers) {
    registers->words[ORIG_RAX] = (uint64_t)-1;
    return recorder_tracee_set_registers(thread, registers);
}

void recorder_set_system_call(struct recorder_registers *registers, uint64_t instruction, int64_t number, const uint64_t arguments[6]) {
    static const int places[] = {RDI, RSI, RDX, R10, R8, R9};
    for (int n = 0; n < 6; n++) registers->words[places[n]] = arguments[n];
    registers->words[RAX] = (uint64_t)number;
    registers->words[ORIG_RAX] = (uint64_t)-1; // the kernel begins nothing anew
    registers->words[RIP] = instruction;
}

void recorder_set_call(struct recorder_registers *registers, uint64_t function, uint64_t return_address, uint64_t stack,
                       const uint64_t arguments[2]) {
    (void)return_address;
    registers->words[RDI] = arguments[0];
    registers->words[RSI] = arguments[1];
    registers->words[RAX] = 0;
    registers->words[RBP] = 0;
    registers->words[ORIG_RAX] = (uint64_t)-1;
    registers->words[EFLAGS] &= ~0x400ul; // DF is clear at a call (psABI 3.2.1)
    registers->words[RSP] = (stack & ~15ul) - 8;
    registers->words[RIP] = function;
}

void recorder_set_task(struct recorder_registers *registers, uint64_t function, uint64_t argument, uint64_t stack, uint64_t stack_bytes) {
    recorder_set_call(registers, function, 0, stack + stack_bytes, (uint64_t[]){argument, 0});
    registers->words[RSP] += 8; // attach_task.S is entered, not called
    registers->words[RBX] = stack;
    registers->words[R12] = stack_bytes;
}

int recorder_sampled(const struct recorder_registers *registers, uint64_t sampled[33]) {
    static const int order[] = {RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, RIP, R8, R9, R10, R11, R12, R13, R14, R15};
    int count = sizeof order / sizeof *order;
    for (int n = 0; n < count; n++) sampled[n] = registers->words[order[n]];
    return count;
}

#elif defined(__aarch64__)

// As struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h).
enum { X0 = 0, X1 = 1, X8 = 8, X19 = 19, X20 = 20, FP = 29, LR = 30, SP = 31, PC = 32 };

uint32_t recorder_call_instruction(void) { return 0xd4000001; }

const uint8_t *recorder_restorer(int *byte_count) {
    *byte_count = 0;
    return 0;
}

uint64_t recorder_program_counter(const struct recorder_registers *registers) { return registers->words[PC]; }
uint64_t recorder_stack_pointer(const struct recorder_registers *registers) { return registers->words[SP]; }
uint64_t recorder_result(const struct recorder_registers *registers) { return registers->words[X0]; }
uint64_t recorder_returned(const struct recorder_registers *registers) { return registers->words[X0]; }
int64_t recorder_system_call(const struct recorder_registers *registers) { return (int64_t)registers->words[X8]; }

// The first argument of a call that has been interrupted is not to be had (orig_x0 is in no register set).
int recorder_call_again(struct recorder_registers *registers, int is_entered) {
    if (!is_entered) return 0;
    registers->words[PC] -= RECORDER_CALL_BYTES;
    return 1;
}

int recorder_tracee_skip(pid_t thread, struct recorder_registers *registers) {
    (void)registers;
    int none = -1;
    uint64_t byte_count = sizeof none;
    return transfer(PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &none, &byte_count);
}

void recorder_set_system_call(struct recorder_registers *registers, uint64_t instruction, int64_t number, const uint64_t arguments[6]) {
    for (int n = 0; n < 6; n++) registers->words[X0 + n] = arguments[n];
    registers->words[X8] = (uint64_t)number;
    registers->words[PC] = instruction;
}

void recorder_set_call(struct recorder_registers *registers, uint64_t function, uint64_t return_address, uint64_t stack,
                       const uint64_t arguments[2]) {
    registers->words[X0] = arguments[0];
    registers->words[X1] = arguments[1];
    registers->words[FP] = 0;
    registers->words[LR] = return_address;
    registers->words[SP] = stack & ~15ul;
    registers->words[PC] = function;
}

void recorder_set_task(struct recorder_registers *registers, uint64_t function, uint64_t argument, uint64_t stack, uint64_t stack_bytes) {
    recorder_set_call(registers, function, 0, stack + stack_bytes, (uint64_t[]){argument, 0});
    registers->words[X19] = stack;
    registers->words[X20] = stack_bytes;
}

int recorder_sampled(const struct recorder_registers *registers, uint64_t sampled[33]) {
    memcpy(sampled, registers->words, 33 * sizeof *sampled);
    return 33;
}

#endif

// MARK: - System calls

static int is_none(uint64_t milliseconds) { return (int32_t)milliseconds < 0; }

enum recorder_call_kind recorder_call_kind(int64_t number, const uint64_t arguments[6]) {
    switch (number) {
#if defined(__x86_64__)
    case SYS_poll: return is_none(arguments[2]) ? RECORDER_CALL_ENDLESS : RECORDER_CALL_RESUMED;
    case SYS_select: return arguments[4] ? RECORDER_CALL_RESUMED : RECORDER_CALL_ENDLESS;
    case SYS_epoll_wait: return is_none(arguments[3]) ? RECORDER_CALL_ENDLESS : RECORDER_CALL_TIMED;
    case SYS_pause: return RECORDER_CALL_ENDLESS;
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
#endif
    case SYS_getpid:
    case SYS_gettid:
    case SYS_getppid:
    case SYS_getuid:
    case SYS_sched_yield:
    case SYS_clock_gettime:
    case SYS_getrusage:
    case SYS_times:
    case SYS_newfstatat:
    case SYS_fstat:
    case SYS_lseek:
    case SYS_epoll_ctl:
    case SYS_setsockopt:
    case SYS_getsockopt:
    case SYS_shutdown:
    case SYS_timerfd_settime:
    case SYS_pread64:
    case SYS_pwrite64: return RECORDER_CALL_SHORT;
    case SYS_ppoll: return arguments[2] ? RECORDER_CALL_RESUMED : RECORDER_CALL_ENDLESS;
    case SYS_pselect6: return arguments[4] ? RECORDER_CALL_RESUMED : RECORDER_CALL_ENDLESS;
    case SYS_epoll_pwait: return is_none(arguments[3]) ? RECORDER_CALL_ENDLESS : RECORDER_CALL_TIMED;
    case SYS_epoll_pwait2: return arguments[3] ? RECORDER_CALL_TIMED : RECORDER_CALL_ENDLESS;
    case SYS_rt_sigtimedwait: return arguments[2] ? RECORDER_CALL_TIMED : RECORDER_CALL_ENDLESS;
    case SYS_wait4:
    case SYS_waitid: return RECORDER_CALL_ENDLESS;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall: return RECORDER_CALL_RESUMED;
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg: return RECORDER_CALL_PARTIAL; // interrupted, they return how much they have written
    case SYS_io_getevents: // fs/aio.c, do_io_getevents
    case SYS_io_pgetevents:
    case SYS_recvmmsg: return RECORDER_CALL_LATE;
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv:
    case SYS_io_uring_enter: return RECORDER_CALL_TIMED;
    case SYS_recvfrom: return arguments[3] & MSG_WAITALL ? RECORDER_CALL_PARTIAL : RECORDER_CALL_BY_DESCRIPTOR;
    case SYS_recvmsg: return arguments[2] & MSG_WAITALL ? RECORDER_CALL_PARTIAL : RECORDER_CALL_BY_DESCRIPTOR;
    case SYS_read:
    case SYS_readv:
    case SYS_accept:
    case SYS_accept4: return RECORDER_CALL_BY_DESCRIPTOR;
#if defined(__x86_64__)
    case SYS_open:
    case SYS_readlink:
    case SYS_getdents:
#endif
    case SYS_openat:
    case SYS_close:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_madvise:
    case SYS_brk:
    case SYS_readlinkat:
    case SYS_getdents64:
    case SYS_rt_sigprocmask:
    case SYS_rt_sigaction:
    case SYS_getrandom:
    case SYS_prctl:
    case SYS_uname:
    case SYS_sysinfo:
    case SYS_socket:
    case SYS_getsockname:
    case SYS_getpeername: return RECORDER_CALL_BRIEF;
    default: return RECORDER_CALL_OTHER;
    }
}

int recorder_is_lock(int64_t number) { return number == SYS_futex; }
int recorder_is_exec(int64_t number) { return number == SYS_execve || number == SYS_execveat; }

int recorder_is_memory(int64_t number) {
    return number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect || number == SYS_madvise || number == SYS_brk;
}

int recorder_waits_without_end(pid_t process, int descriptor) {
    int pidfd = (int)syscall(SYS_pidfd_open, process, 0), copy = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, descriptor, 0);
    if (pidfd >= 0) close(pidfd);
    if (copy < 0) return 0;
    int is_endless = 1;
    static const int options[] = {SO_RCVTIMEO, SO_SNDTIMEO};
    for (int n = 0; n < 2; n++) {
        struct timeval limit = {0};
        socklen_t bytes = sizeof limit;
        if (getsockopt(copy, SOL_SOCKET, options[n], &limit, &bytes) == 0) {
            if (limit.tv_sec || limit.tv_usec) is_endless = 0;
        } else if (errno != ENOTSOCK) {
            is_endless = 0;
        }
    }
    close(copy);
    return is_endless;
}

// The allocator reads /proc/sys/vm/overcommit_memory, and asks for the number of CPUs (malloc/arena.c, get_nprocs).
int recorder_is_libcs_call(int64_t number) {
    switch (number) {
    case SYS_read:
    case SYS_pread64:
    case SYS_lseek:
    case SYS_newfstatat:
    case SYS_fstat:
#if defined(__x86_64__)
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
#endif
    case SYS_sched_yield: return 1;
    default: return 0;
    }
}
