// Parts of the launch lab that Swift cannot express: a child that reports certain system calls of its own accord, and what it
// touches. Runs in the tool, never in a traced program.
#pragma once
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/// System calls that a watched program reports before it makes them.
enum {
    LAUNCH_LISTEN = 1, // listen; accept and accept4, for a socket that was handed over listening
    LAUNCH_OUTPUT = 2, // write and writev to descriptor 1
    LAUNCH_EXIT = 4,   // exit_group
    LAUNCH_FILES = 8,  // open, openat, openat2, execve
};

struct launch_options {
    unsigned watched;
    int cpu;             // the only one it may run on, -1 any
    int fixed_addresses; // address space randomization off
    int input, output;   // descriptors for stdin, and for stdout and stderr; -1: as they are
    const char *exec_time; // the variable of the environment that says when execve was called (inheritance_stamp_exec)
    // Called with the process id, if it is not null, while the process waits to call execve.
    void (*prepare)(pid_t pid, void *context);
    void *context;
};

/// A time that the kernel does not tell (it has no CONFIG_SCHED_INFO).
#define LAUNCH_UNKNOWN UINT64_MAX

/// How long a thread ran, and how long it could have run and had no CPU, nanoseconds; both LAUNCH_UNKNOWN or none.
struct launch_account {
    uint64_t ran_ns, delay_ns;
};

struct launch_child {
    pid_t pid;              // also the id of a new process group
    int listener;           // receives its reports, -1 without `watched`
    int end;                // readable when the process has ended (pidfd_open(2)); -1 before Linux 5.3
    uint64_t exec_ns;       // CLOCK_MONOTONIC immediately before execve
    uint64_t cpu_ns;        // CPU time that the process had used by then
    struct launch_account at_exec;
    uint64_t tool_delay_ns; // launch_own_delay of the thread that called launch_spawn, before that
};

/// Starts a process that outlives the tool, however that ends: it kills what launch_spawn has started and nobody has waited for, and
/// removes the folder with all that is in it. One that was started before ends. 0 or errno.
int launch_guard(const char *folder);

/// Starts a program in a process group of its own. 0, or errno of what failed; then no child is left. As by vfork: the program does not
/// take longer to start because the tool is large.
/// The watch is a seccomp filter with user notification (seccomp_unotify(2)): no ptrace, so that debuggers may be
/// launched too, and no cost for any other call. Without CAP_SYS_ADMIN the child gets no_new_privs.
int launch_spawn(const char *path, char *const arguments[], char *const environment[], const struct launch_options *options,
                 struct launch_child *child);

struct launch_report {
    uint64_t time_ns; // CLOCK_MONOTONIC when the tool learned of it
    int is_own;       // made by the launched process, by whichever thread; not by one that it started
    int call;         // one bit of LAUNCH_
    uint64_t id;      // identifies the call, which waits
    char path[4096];  // LAUNCH_FILES only: as the program named it, made absolute; "" unknown
};

/// Takes one report; the call waits for launch_answer. 1 taken; 0 the caller vanished; -1 nobody is left to report.
int launch_take_report(const struct launch_child *child, struct launch_report *report);

/// Lets the call go on. 1, or 0: the caller vanished.
int launch_answer(const struct launch_child *child, const struct launch_report *report);

/// Both.
int launch_next_report(const struct launch_child *child, struct launch_report *report);

/// Waits for the child to end by itself; reports that arrive meanwhile are let through. 1 ended: its wait status and what
/// it used; 0 not within the limit; -1 there is no such child.
int launch_wait(const struct launch_child *child, int limit_ms, int *status, struct rusage *usage);

/// Ends what is left of the group: SIGTERM, and SIGKILL for who has not gone after `patience_ms`. As launch_wait.
int launch_end(const struct launch_child *child, int patience_ms, int *status, struct rusage *usage);

/// CPU time that the process has used since execve, all of its threads, nanoseconds. Until it has been waited for.
uint64_t launch_cpu_time(const struct launch_child *child);

/// The first thread's since execve. Until it has been waited for.
struct launch_account launch_account_since_exec(const struct launch_child *child);

/// How long the calling thread could have run and had no CPU, since it began, nanoseconds; LAUNCH_UNKNOWN.
uint64_t launch_own_delay(void);

/// Has the process, which has not called execve yet, stop when it has. 0 or errno.
int launch_stop_at_exec(pid_t pid);

/// Waits for that stop, maps all code of files that is there now (the program's and the loader's), clears the accessed bits of touched
/// pages, and lets the process go on. 0, or errno of what failed; it goes on in any case.
int launch_forget_touched(pid_t pid);

/// 1: an open file is of a file system that is memory, tmpfs, ramfs or hugetlbfs (statfs(2), linux/magic.h).
int launch_is_in_memory(int file);

/// CPU time for a fixed amount of arithmetic, nanoseconds: the same on a machine that is as fast, however many others use it.
uint64_t launch_calibration_ns(void);
