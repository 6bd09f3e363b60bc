#define _GNU_SOURCE
#include "crecorder.h"
#include "inheritance.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void recorder_take_signals(const sigset_t *waited) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &ignore, 0);
    sigaction(SIGXFSZ, &ignore, 0);
    sigaction(SIGCHLD, &standard, 0); // inherited as ignored, the kernel would reap the program and its status
    sigprocmask(SIG_BLOCK, waited, 0);
}

// False at the end.
static int read_number(int file, int *number) {
    ssize_t got;
    do got = read(file, number, sizeof *number);
    while (got < 0 && errno == EINTR);
    return got == sizeof *number;
}

int recorder_make_directory(const char *path) { return mkdir(path, 0700) ? errno : 0; }

int recorder_open_folder(int root, const char *path) {
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    int folder = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    return folder >= 0 ? folder : -errno;
}

// In the child: the directory's path is made in `path`, the variable that names it in `variable`.
// Returns how many names were taken, or minus errno.
static int make_numbered(const struct recorder_directory *directory, char path[PATH_MAX], char variable[2 * PATH_MAX]) {
    for (int attempt = 0; attempt < 100; attempt++) {
        char number[32];
        snprintf(number, sizeof number, attempt ? "%d.%d" : "%d", getpid(), attempt + 1);
        if (snprintf(path, PATH_MAX, "%s%s", directory->start, number) >= PATH_MAX) return -ENAMETOOLONG;
        int error = recorder_make_directory(path);
        if (error == EEXIST) continue;
        if (error) return -error;
        snprintf(variable, 2 * PATH_MAX, "%s%s%s", directory->variable, number, directory->ending);
        return attempt;
    }
    return -EEXIST;
}

static void replace_variable(char *environment[], char *variable) {
    size_t length = (size_t)(strchr(variable, '=') - variable) + 1;
    for (; *environment; environment++)
        if (!strncmp(*environment, variable, length)) *environment = variable;
}

/// A program started with a closed stdin, stdout or stderr must find it closed: the pipe has to lie above them. 0 or errno.
static int make_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC)) return errno;
    for (int end = 0; end < 2; end++)
        if (ends[end] <= 2) {
            int duplicate = fcntl(ends[end], F_DUPFD_CLOEXEC, 3);
            if (duplicate < 0) return errno;
            close(ends[end]);
            ends[end] = duplicate;
        }
    return 0;
}

int recorder_spawn(const char *path, char *const arguments[], char *environment[], const char *exec_time,
                   struct recorder_directory *directory, void (*prepare)(pid_t, void *), void *context, pid_t *pid) {
    int failure[2], gate[2];
    int error = make_pipe(failure);
    if (error) return error;
    if ((error = make_pipe(gate))) {
        close(failure[0]), close(failure[1]);
        return error;
    }
    pid_t child = fork();
    if (child < 0) {
        error = errno;
        close(failure[0]), close(failure[1]), close(gate[0]), close(gate[1]);
        return error;
    }
    if (child == 0) {
        close(gate[1]);
        inheritance_restore();
        char made[PATH_MAX] = "", variable[2 * PATH_MAX];
        if (directory) {
            int attempt = make_numbered(directory, made, variable);
            if (write(failure[1], &attempt, sizeof attempt) < 0 || attempt < 0) _exit(125);
            replace_variable(environment, variable);
        }
        char opened; // when the tool is gone, the program goes on
        while (read(gate[0], &opened, 1) < 0 && errno == EINTR);
        inheritance_stamp_exec(environment, exec_time);
        execve(path, arguments, environment);
        error = errno;
        if (directory) rmdir(made);
        if (write(failure[1], &error, sizeof error) < 0) _exit(125);
        _exit(126);
    }
    close(failure[1]);
    close(gate[0]);
    if (prepare) prepare(child, context);
    close(gate[1]);
    if (directory && !read_number(failure[0], &directory->attempt)) directory->attempt = -EIO;
    if (directory && directory->attempt < 0) error = -directory->attempt;
    else read_number(failure[0], &error);
    close(failure[0]);
    if (error) {
        while (waitpid(child, 0, 0) < 0 && errno == EINTR);
        return error;
    }
    *pid = child;
    return 0;
}

pid_t recorder_start_witness(void) {
    pid_t tool = getpid();
    pid_t witness = fork();
    if (witness != 0) return witness;
    sigset_t every;
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    syscall(SYS_close_range, 0u, ~0u, 0u); // it must not keep anybody's pipe open
    while (getppid() == tool) pause();
    _exit(0);
}

static _Thread_local sigjmp_buf *escape; // while a word is touched
static struct sigaction before_bus;

static void on_bus(int number) {
    if (escape) siglongjmp(*escape, 1);
    sigaction(number, &before_bus, 0); // the instruction faults again
}

static pthread_once_t bus = PTHREAD_ONCE_INIT;

static void take_bus(void) {
    struct sigaction action = {.sa_handler = on_bus, .sa_flags = SA_NODEFER}; // not blocked in the handler: siglongjmp restores no mask
    sigaction(SIGBUS, &action, &before_bus);
}

// The fences keep the compiler from moving the access out of the guarded part.
#define TOUCH(access) \
    pthread_once(&bus, take_bus); \
    sigjmp_buf resume; \
    if (sigsetjmp(resume, 0)) { \
        escape = 0; \
        return EFAULT; \
    } \
    escape = &resume; \
    __atomic_signal_fence(__ATOMIC_SEQ_CST); \
    access; \
    __atomic_signal_fence(__ATOMIC_SEQ_CST); \
    escape = 0; \
    return 0

int recorder_load(const uint64_t *word, uint64_t *value) { TOUCH(*value = __atomic_load_n(word, __ATOMIC_ACQUIRE)); }
int recorder_store(uint64_t *word, uint64_t value) { TOUCH(__atomic_store_n(word, value, __ATOMIC_RELEASE)); }
int recorder_add(uint64_t *word, uint64_t increment, uint64_t *before) {
    TOUCH(*before = __atomic_fetch_add(word, increment, __ATOMIC_RELEASE));
}
int recorder_change(uint64_t *word, uint64_t old, uint64_t new_value, uint64_t *before) {
    *before = old;
    TOUCH(__atomic_compare_exchange_n(word, before, new_value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

int recorder_fault_in(int file, uint64_t offset, uint64_t bytes) {
    void *view = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    if (view == MAP_FAILED) return errno;
    int error = madvise(view, bytes, MADV_POPULATE_WRITE) ? errno : 0;
    munmap(view, bytes);
    return error;
}

int recorder_allocate(int file, uint64_t offset, uint64_t bytes) { return fallocate(file, 0, (off_t)offset, (off_t)bytes) ? errno : 0; }

void recorder_release(int file, uint64_t offset, uint64_t bytes) {
    (void)!fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

int recorder_exchange(const char *one, const char *other) {
    return syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u /* RENAME_EXCHANGE */) ? errno : 0;
}

int recorder_signal_descriptor(const sigset_t *signals) { return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK); }

void recorder_await(int one, int other, const struct timespec *timeout) {
    struct pollfd sources[] = {{.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    ppoll(sources, 2, timeout, 0);
}

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

int recorder_open_process(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int recorder_signal_process(int process, int signal) { return (int)syscall(SYS_pidfd_send_signal, process, signal, NULL, 0); }

// As include/uapi/linux/pidfd.h has it since Linux 6.15; Debian's headers are older.
struct pidfd_information {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_information) == 64, "PIDFD_INFO_SIZE_VER0");
#define PIDFD_INFORMATION_EXIT (1u << 3)

int recorder_process_end(int process, int *status) {
    // POLLIN: it has ended; POLLHUP: and was waited for, since Linux 6.9. What came before is asked in vain.
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (poll(&end, 1, 0) != 1) return 0;
    struct pidfd_information information = {.mask = PIDFD_INFORMATION_EXIT};
    int error = ioctl(process, _IOWR(0xff, 11, struct pidfd_information), &information) ? errno : 0;
    if (error == ENOTTY || error == EINVAL) return -1;
    if (error || !(information.mask & PIDFD_INFORMATION_EXIT)) return end.revents & POLLHUP ? -1 : 0;
    *status = information.exit_code;
    return 1;
}

int recorder_no_new_privileges(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }

ssize_t recorder_file_capabilities(int file, void *buffer, size_t size) { return fgetxattr(file, "security.capability", buffer, size); }

int recorder_is_overlay(int file) {
    struct statfs information;
    return fstatfs(file, &information) == 0 && information.f_type == OVERLAYFS_SUPER_MAGIC;
}

// Any user may take or connect to an abstract name: who is at the other end is asked of the kernel (SO_PEERCRED, unix(7)).
static socklen_t name_socket(uint64_t session, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "tracer-%016llx", (unsigned long long)session);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int is_peer(int connection, uid_t other) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length)) return 0;
    return peer.uid == geteuid() || peer.uid == 0 || peer.uid == other;
}

static int checked(int connection, uid_t other) {
    struct timeval patience = {.tv_sec = 3};
    if (connection < 0) return -1;
    if (is_peer(connection, other) && !setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) &&
        !setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience))
        return connection;
    close(connection);
    return -1;
}

int recorder_listen(uint64_t session) {
    struct sockaddr_un address;
    socklen_t length = name_socket(session, &address);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0) return -1;
    if (!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 4)) return listener;
    close(listener);
    return -1;
}

int recorder_accept(int listener) { return checked(accept4(listener, 0, 0, SOCK_CLOEXEC), geteuid()); }

int recorder_connect(uint64_t session, uid_t owner) {
    struct sockaddr_un address;
    socklen_t length = name_socket(session, &address);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection >= 0 && connect(connection, (struct sockaddr *)&address, length)) {
        close(connection);
        return -1;
    }
    return checked(connection, owner);
}
