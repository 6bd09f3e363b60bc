#define _GNU_SOURCE
#include "claunch.h"
#include "inheritance.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW (1UL << 2) // Linux 4.17
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#if defined(__x86_64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now)) return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

// MARK: - The guard

/// The guard process reads here what is running; -1: there is no guard.
static int guard = -1;

/// 0 none.
static void notify_guard(pid_t group) {
    if (guard >= 0) send(guard, &group, sizeof group, MSG_NOSIGNAL); // fails when it was killed: nobody tidies up then
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *position) {
    (void)info, (void)kind, (void)position;
    remove(path);
    return 0;
}

static _Noreturn void stand_guard(int channel, const char *folder) {
    setsid(); // signals that end the tool at its terminal must not end this
    sigset_t every;
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, 0);
    dup2(channel, 0);
    syscall(SYS_close_range, 1u, ~0u, 0u); // nobody waits for the end of a pipe that it holds
    pid_t message, group = 0;
    while (read(0, &message, sizeof message) == sizeof message) group = message; // whole messages (SOCK_SEQPACKET, socket(2))
    if (group) kill(-group, SIGKILL);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

int launch_guard(const char *folder) {
    int channel[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel)) return errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(channel[1]);
        stand_guard(channel[0], folder);
    }
    int error = pid < 0 ? errno : 0;
    close(channel[0]);
    if (error) {
        close(channel[1]);
        return error;
    }
    if (guard >= 0) close(guard);
    guard = channel[1];
    return 0;
}

// MARK: - The filter

static const struct {
    int number;
    int call;
} watched_calls[] = {
    {SYS_listen, LAUNCH_LISTEN}, {SYS_accept, LAUNCH_LISTEN}, {SYS_accept4, LAUNCH_LISTEN},
    {SYS_write, LAUNCH_OUTPUT},  {SYS_writev, LAUNCH_OUTPUT}, {SYS_exit_group, LAUNCH_EXIT},
#ifdef SYS_open
    {SYS_open, LAUNCH_FILES},
#endif
    {SYS_openat, LAUNCH_FILES},  {SYS_openat2, LAUNCH_FILES}, {SYS_execve, LAUNCH_FILES},
};
enum { CALLS = sizeof watched_calls / sizeof *watched_calls };

static int call_of(int number) {
    for (int i = 0; i < CALLS; i++)
        if (watched_calls[i].number == number) return watched_calls[i].call;
    return 0;
}

/// In the child: the listener, or -errno.
static int install_filter(unsigned watched) {
    struct sock_filter code[8 + CALLS * 4];
    unsigned short n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); // a 32-bit program: not watched
    for (int i = 0; i < CALLS; i++) {
        if (!(watched & (unsigned)watched_calls[i].call)) continue;
        int is_output = watched_calls[i].call == LAUNCH_OUTPUT;
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)watched_calls[i].number, 0, is_output ? 3 : 1);
        if (is_output) { // only to descriptor 1; it is an int, so the low half decides
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STDOUT_FILENO, 0, 1);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = n, .filter = code};
    // Killable only: a signal must not interrupt a call that waits for us, since it could not be restarted unseen.
    // And without the mitigation of speculative stores that a filter brings before Linux 5.16, which would make the program slower.
    unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener < 0 && errno == EACCES) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    }
    if (listener < 0 && errno == EINVAL) // before Linux 5.19
        listener =
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
    return listener < 0 ? -errno : (int)listener;
}

// MARK: - The scheduler's account

static const struct launch_account unknown = {LAUNCH_UNKNOWN, LAUNCH_UNKNOWN};

/// From a file such as /proc/PID/schedstat (Linux, Documentation/scheduler/sched-stats.rst).
static struct launch_account read_account(int file) {
    char text[96], *rest;
    ssize_t length = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
    if (length <= 0) return unknown;
    text[length] = 0;
    struct launch_account account;
    account.ran_ns = strtoull(text, &rest, 10);
    account.delay_ns = strtoull(rest, 0, 10);
    return account;
}

static struct launch_account account_in(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct launch_account account = read_account(file);
    if (file >= 0) close(file);
    return account;
}

uint64_t launch_own_delay(void) { return account_in("/proc/thread-self/schedstat").delay_ns; }

static uint64_t difference(uint64_t after, uint64_t before) { return after > before ? after - before : 0; }

struct launch_account launch_account_since_exec(const struct launch_child *child) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/schedstat", child->pid);
    struct launch_account now = account_in(path), then = child->at_exec;
    if (now.delay_ns == LAUNCH_UNKNOWN || then.delay_ns == LAUNCH_UNKNOWN) return unknown;
    return (struct launch_account){difference(now.ran_ns, then.ran_ns), difference(now.delay_ns, then.delay_ns)};
}

uint64_t launch_cpu_time(const struct launch_child *child) {
    clockid_t clock;
    uint64_t used = clock_getcpuclockid(child->pid, &clock) ? 0 : clock_ns(clock);
    return difference(used, child->cpu_ns);
}

// MARK: - Starting

/// What the child and its parent have in common until exec, since they share their memory.
struct start {
    const char *path;
    char *const *arguments, *const *environment;
    const struct launch_options *options;
    int channel[2];            // the parent's end, and the child's
    atomic_int is_end_closed;  // the child's end, in this process
    int error;
    struct launch_child child; // as the child knows it
};

/// Sends one byte, with a descriptor if there is one.
static int send_descriptor(int channel, int descriptor) {
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = space, message.msg_controllen = sizeof space;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(channel, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/// 0 when the other side has gone; `descriptor` is -1 when it has sent none.
static int receive_descriptor(int channel, int *descriptor) {
    char space[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got;
    do got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    *descriptor = -1;
    if (got <= 0) return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return 1;
}

/// For the program, as its descriptor `to`, even if the tool has it under that number.
static int give(int from, int to) { return from == to ? fcntl(to, F_SETFD, 0) : dup2(from, to); }

/// No handler of the tool may run in a process that shares its memory.
static void forget_handlers(void) {
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction action;
        if (sigaction(signal, 0, &action) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
        action = (struct sigaction){.sa_handler = SIG_DFL};
        sigaction(signal, &action, 0);
    }
}

static _Noreturn void become(struct start *start) {
    const struct launch_options *options = start->options;
    int channel = start->channel[1];
    start->child.pid = getpid();
    close(start->channel[0]);
    forget_handlers();
    inheritance_restore();
    setpgid(0, 0);
    if (options->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)options->cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set)) goto failed;
    }
    if (options->fixed_addresses && personality(ADDR_NO_RANDOMIZE) < 0) goto failed;
    if (options->input >= 0 && give(options->input, 0) < 0) goto failed;
    if (options->output >= 0 && (give(options->output, 1) < 0 || give(options->output, 2) < 0)) goto failed;
    int account = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC), listener = -1;
    if (options->watched) {
        listener = install_filter(options->watched);
        if (listener < 0) {
            errno = -listener;
            goto failed;
        }
    }
    if (send_descriptor(channel, listener)) goto failed;
    if (listener >= 0) close(listener);
    char byte;
    while (read(channel, &byte, 1) < 0 && errno == EINTR); // the parent holds the listener now
    start->child.at_exec = read_account(account);
    start->child.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    start->child.exec_ns = inheritance_stamp_exec(start->environment, start->options->exec_time);
    execve(start->path, start->arguments, start->environment);
failed:
    start->error = errno;
    _exit(127);
}

/// The child's end is open in this process until it has been inherited, and until the child has said so or has gone.
static void close_end(struct start *start) {
    if (atomic_exchange(&start->is_end_closed, 1) == 0) close(start->channel[1]);
}

/// This thread is stopped, with the child on its stack and on its errno, until that has called execve or ended (vfork(2)). With fork, execve
/// would have to take down a copy of the tool's address space, in the time that is measured: with 20 MB `true` took 1.08 ms, not 0.65.
static void *spawn(void *context) {
    struct start *start = context;
    pid_t pid = vfork();
    if (pid == 0) become(start);
    if (pid < 0) start->error = errno;
    close_end(start);
    return 0;
}

/// Waits until the child has called execve, or has gone. Its execve may be among the calls that are reported.
static void await_exec(const struct launch_child *child, int channel) {
    for (;;) {
        // exec closes the child's end; so does its death.
        struct pollfd ends[2] = {{.fd = channel, .events = POLLIN}, {.fd = child->listener, .events = POLLIN}};
        if (poll(ends, child->listener >= 0 ? 2 : 1, -1) < 0) {
            if (errno == EINTR) continue;
            return;
        }
        char byte;
        if (ends[0].revents) {
            if (read(channel, &byte, 1) < 0 && errno == EINTR) continue;
            return;
        }
        if (ends[1].revents & POLLIN) {
            struct launch_report ignored;
            launch_next_report(child, &ignored);
        } else if (ends[1].revents) {
            return;
        }
    }
}

/// Without signals, which are for the tool's other threads.
static int begin_thread(pthread_t *thread, struct start *start) {
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &before);
    int error = pthread_create(thread, 0, spawn, start);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    return error;
}

int launch_spawn(const char *path, char *const arguments[], char *const environment[], const struct launch_options *options,
                 struct launch_child *child) {
    struct start start = {.path = path, .arguments = arguments, .environment = environment, .options = options, .child.pid = -1};
    *child = (struct launch_child){.pid = -1, .listener = -1, .end = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, start.channel)) return errno;
    pthread_t thread;
    int error = begin_thread(&thread, &start);
    if (!error) {
        int listener;
        if (receive_descriptor(start.channel[0], &listener)) {
            close_end(&start);
            child->pid = start.child.pid;
            child->listener = listener;
            setpgid(child->pid, child->pid); // both sides: whoever is first
            notify_guard(child->pid);
            if (options->prepare) options->prepare(child->pid, options->context);
            child->tool_delay_ns = launch_own_delay();
            if (send(start.channel[0], "", 1, MSG_NOSIGNAL) < 0) { /* it is gone, and its error is reported below */
            }
            await_exec(child, start.channel[0]);
        }
        pthread_join(thread, 0);
        child->pid = start.child.pid;
        child->exec_ns = start.child.exec_ns;
        child->cpu_ns = start.child.cpu_ns;
        child->at_exec = start.child.at_exec;
        error = start.error;
        if (!error && child->exec_ns == 0) error = ECHILD; // it was killed before
        if (error) {
            int status;
            while (child->pid > 0 && waitpid(child->pid, &status, 0) < 0 && errno == EINTR);
            notify_guard(0);
            if (child->listener >= 0) close(child->listener);
            child->listener = -1;
        } else {
            child->end = (int)syscall(SYS_pidfd_open, child->pid, 0);
        }
    } else {
        close_end(&start);
    }
    close(start.channel[0]);
    return error;
}

// MARK: - Reports

/// Reads a C string of another process; "" when it cannot be read.
static void read_string(pid_t thread, uint64_t address, char *text, size_t size) {
    size_t have = 0;
    while (have + 1 < size) {
        // To the end of a page at most: the next one may not be there.
        size_t count = 4096 - ((address + have) & 4095);
        if (count > size - 1 - have) count = size - 1 - have;
        struct iovec here = {.iov_base = text + have, .iov_len = count};
        struct iovec there = {.iov_base = (void *)(uintptr_t)(address + have), .iov_len = count};
        ssize_t got = process_vm_readv(thread, &here, 1, &there, 1, 0);
        if (got <= 0) break;
        if (memchr(text + have, 0, (size_t)got)) return;
        have += (size_t)got;
    }
    text[0] = 0;
}

static void read_path(const struct seccomp_notif *notice, char *path, size_t size) {
    pid_t thread = (pid_t)notice->pid;
    int number = notice->data.nr, directory = AT_FDCWD;
    uint64_t address = notice->data.args[0];
    if (number == SYS_openat || number == SYS_openat2) {
        directory = (int)notice->data.args[0];
        address = notice->data.args[1];
    }
    read_string(thread, address, path, size);
    if (path[0] == 0 || path[0] == '/') return;
    char link[64], base[4096], whole[8192];
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/%d/cwd", thread);
    else snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, directory);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length <= 0) {
        path[0] = 0;
        return;
    }
    base[length] = 0;
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    if (strlen(whole) < size) strcpy(path, whole);
    else path[0] = 0;
}

/// The filter is inherited, so that processes which the launched one starts report too. The thread waits for its answer
/// meanwhile and cannot go; only SIGKILL can take it away, and then nobody needs to know.
static int is_thread_of(pid_t process, pid_t thread) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d", process, thread);
    return thread == process || access(name, F_OK) == 0;
}

int launch_take_report(const struct launch_child *child, struct launch_report *report) {
    struct seccomp_notif notice = {0}; // the kernel insists on zeros
    if (ioctl(child->listener, SECCOMP_IOCTL_NOTIF_RECV, &notice)) return errno == ENOENT || errno == EINTR ? 0 : -1;
    report->time_ns = now_ns();
    report->id = notice.id;
    report->is_own = is_thread_of(child->pid, (pid_t)notice.pid);
    report->call = call_of(notice.data.nr);
    report->path[0] = 0;
    if (report->call == LAUNCH_FILES) read_path(&notice, report->path, sizeof report->path);
    return 1;
}

int launch_answer(const struct launch_child *child, const struct launch_report *report) {
    struct seccomp_notif_resp answer = {.id = report->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    return ioctl(child->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) ? 0 : 1;
}

int launch_next_report(const struct launch_child *child, struct launch_report *report) {
    int taken = launch_take_report(child, report);
    return taken == 1 ? launch_answer(child, report) : taken;
}

// MARK: - The end

int launch_wait(const struct launch_child *child, int limit_ms, int *status, struct rusage *usage) {
    uint64_t until = now_ns() + (uint64_t)limit_ms * 1000000u;
    int listener = child->listener;
    for (;;) {
        pid_t ended = wait4(child->pid, status, WNOHANG, usage);
        if (ended == child->pid) {
            notify_guard(0);
            return 1;
        }
        if (ended < 0 && errno != EINTR) return -1;
        uint64_t now = now_ns();
        if (now >= until) return 0;
        // Without a pidfd nothing tells that it has ended: look once a millisecond.
        int patience = child->end >= 0 ? (int)((until - now) / 1000000u) + 1 : 1;
        struct pollfd ends[2] = {{.fd = listener, .events = POLLIN}, {.fd = child->end, .events = POLLIN}};
        if (poll(ends, 2, patience) <= 0 || !ends[0].revents) continue;
        struct launch_report ignored;
        if (!(ends[0].revents & POLLIN) || launch_next_report(child, &ignored) < 0) listener = -1;
    }
}

int launch_end(const struct launch_child *child, int patience_ms, int *status, struct rusage *usage) {
    kill(-child->pid, SIGTERM);
    kill(-child->pid, SIGCONT);
    int ended = launch_wait(child, patience_ms, status, usage);
    if (ended == 0) {
        kill(-child->pid, SIGKILL);
        ended = launch_wait(child, 10000, status, usage);
    }
    kill(-child->pid, SIGKILL); // processes that it started and left behind
    return ended;
}

// MARK: - The machine

int launch_is_in_memory(int file) {
    struct statfs information;
    if (fstatfs(file, &information)) return 0;
    return information.f_type == TMPFS_MAGIC || information.f_type == RAMFS_MAGIC || information.f_type == HUGETLBFS_MAGIC;
}

uint64_t launch_calibration_ns(void) {
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 1000000; i++) { // a chain: its length does not depend on how clever the CPU is
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        __asm__ volatile("" : "+r"(x));
    }
    return clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}
