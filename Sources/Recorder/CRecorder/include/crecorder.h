// Parts of `tracer record` that Swift cannot express: a child that starts with exactly the signal state the tool was
// started with, and a process that does nothing but show which signals its group was sent. Runs in the tool, never in
// a traced program.
#pragma once
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/// Architecture of what runs here: its e_machine (ELF gABI, chapter 4) and its name.
#if defined(__x86_64__)
#define RECORDER_ARCHITECTURE 62
#define RECORDER_ARCHITECTURE_NAME "x86_64"
#elif defined(__aarch64__)
#define RECORDER_ARCHITECTURE 183
#define RECORDER_ARCHITECTURE_NAME "aarch64"
#endif

/// Blocks `waited` and ignores SIGPIPE and SIGXFSZ (a full pipe or a file limit must end neither the tool nor, with
/// it, the program's summary). What was inherited was saved before main and comes back in the child.
void recorder_take_signals(const sigset_t *waited);

/// A directory that is named by the process id of the program.
struct recorder_directory {
    /// Path, but for the number at its end.
    const char *start;
    /// The entry of the environment, NAME= and so on, that is to name it: what comes before the number and what after it.
    const char *variable;
    const char *ending;
    /// How many such names were taken: from 1 on, '.' and this plus one is at the end of the name. Negative: minus the errno of mkdir.
    int attempt;
};

/// A directory for this user alone: what lies in it is believed. 0 or errno.
int recorder_make_directory(const char *path);

/// Opens a folder below `root`, which is the root for links and `..` on the way (openat2(2), RESOLVE_IN_ROOT, Linux 5.6). Minus errno on failure.
int recorder_open_folder(int root, const char *path);

/// Starts `path` with the signal mask, dispositions and descriptors that the tool inherited. posix_spawn would do but for one thing: it can
/// reset a disposition to its default, not to "ignored".
/// If the variable `exec_time` of the environment is digits, '-' and digits, these become CLOCK_MONOTONIC in nanoseconds and
/// the child's process id, just before it calls execve: where the time of the new program begins.
/// `directory`, when it is not null, is made before that. On failure there is none.
/// `prepare`, when it is not null, is called with the child's process id while that waits to call execve.
/// On failure returns errno of pipe, fork, mkdir or execve; 0 and *pid otherwise.
int recorder_spawn(const char *path, char *const arguments[], char *environment[], const char *exec_time,
                   struct recorder_directory *directory, void (*prepare)(pid_t, void *), void *context, pid_t *pid);

/// Exchanges the files or directories at two names. 0 or errno.
int recorder_exchange(const char *one, const char *other);

/// Starts a process in our process group that blocks every signal and sleeps: what is pending there was sent to the
/// group, what is not was meant for us alone. It ends with the tool. -1 when it could not be started.
pid_t recorder_start_witness(void);

/// The CPU's counter, in which agents count time, and its number in a trace.
#if defined(__x86_64__)
#define RECORDER_CYCLE_CLOCK 1 /* TRACE_CLOCK_TSC */
#else
#define RECORDER_CYCLE_CLOCK 2 /* TRACE_CLOCK_CNTVCT */
#endif
static inline uint64_t recorder_cycles(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
}

/// A word of a mapped file, whole, where somebody may cut the file meanwhile: 0, or EFAULT when that has happened. Adding and storing
/// release, loading acquires, changing does both. Takes SIGBUS; one that is not of these comes to who had it before.
int recorder_load(const uint64_t *word, uint64_t *value);
int recorder_store(uint64_t *word, uint64_t value);
int recorder_add(uint64_t *word, uint64_t increment, uint64_t *before);
/// Changes it if it is `old`; `before` is then `old`, too.
int recorder_change(uint64_t *word, uint64_t old, uint64_t new_value, uint64_t *before);

/// MADV_POPULATE_WRITE over [offset, offset + bytes) of the file: allocates and faults it in without writing
/// to it. 0 or errno.
int recorder_fault_in(int file, uint64_t offset, uint64_t bytes);

/// fallocate(2), mode 0. 0 or errno.
int recorder_allocate(int file, uint64_t offset, uint64_t bytes);
/// A hole in place of that range (fallocate(2), FALLOC_FL_PUNCH_HOLE), on file systems that have holes.
void recorder_release(int file, uint64_t offset, uint64_t bytes);

/// A descriptor that is readable when one of the signals is pending. -1 when there is none to be had.
int recorder_signal_descriptor(const sigset_t *signals);

/// Until one of the descriptors is readable, or the time is over. -1 is none.
void recorder_await(int one, int other, const struct timespec *timeout);

/// A descriptor of the process, also of one that has ended and is still to be waited for. -1 when it is gone, or the kernel is older
/// than 5.3.
int recorder_open_process(pid_t pid);

/// Signals the process of such a descriptor. 0, or -1 with errno.
int recorder_signal_process(int process, int signal);

/// 0 while its parent has not waited for the process. Then 1, and wait(2)'s status word; or -1 when the kernel cannot report it (before
/// 6.15).
int recorder_process_end(int process, int *status);

/// Returns 1 if no_new_privs is set, else 0: set-user-ID bits then do nothing.
int recorder_no_new_privileges(void);

/// 1: an open file is of an overlay file system, whose inode numbers are not those of the mapped files
/// (Documentation/filesystems/overlayfs.rst, inode properties).
int recorder_is_overlay(int file);

/// Raw `security.capability` of an open file: its length, or -1.
ssize_t recorder_file_capabilities(int file, void *buffer, size_t size);

/// A Unix socket that is found by the number of a run: its name is abstract (unix(7)), so it lies in no file system and is gone with whoever has it.
/// -1 when there is none to be had.
int recorder_listen(uint64_t session);
/// Accepts a connection of this user, or of root, and closes those of others. It waits for no byte longer than a few seconds. -1: there is none.
int recorder_accept(int listener);
/// Connects to whoever listens for the run, if that is this user, root, or `owner`. -1: there is nobody.
int recorder_connect(uint64_t session, uid_t owner);
