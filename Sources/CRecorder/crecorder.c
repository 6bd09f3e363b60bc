#define _GNU_SOURCE
#include "crecorder.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const int changed_signals[] = {SIGPIPE, SIGXFSZ, SIGCHLD};
enum { CHANGED = sizeof changed_signals / sizeof *changed_signals };
static struct sigaction inherited_actions[CHANGED];
static sigset_t inherited_mask;

// Before main: the command line's own set-up touches SIGPIPE.
__attribute__((constructor)) static void save_inherited_signals(void) {
    sigprocmask(SIG_SETMASK, 0, &inherited_mask);
    for (int i = 0; i < CHANGED; i++)
        sigaction(changed_signals[i], 0, &inherited_actions[i]);
}

void recorder_take_signals(const sigset_t *waited) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
    sigaction(SIGPIPE, &ignore, 0);
    sigaction(SIGXFSZ, &ignore, 0);
    sigaction(SIGCHLD, &standard, 0); // inherited as ignored, the kernel would reap the program and its status
    sigprocmask(SIG_BLOCK, waited, 0);
}

// The agent cannot know when its image was started: it is told, as late as that can be written (docs/format.md, PHASE).
// In the place of a value of the right length, since a child of a program with threads must not allocate.
static void write_exec_time(char *const environment[]) {
    static const char name[] = "TRACER_EXEC=";
    for (char *const *entry = environment; *entry; entry++) {
        if (strncmp(*entry, name, sizeof name - 1) || strlen(*entry) != sizeof name - 1 + 29) continue;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t number = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        char *value = *entry + sizeof name - 1;
        for (int place = 17; place >= 0; place--, number /= 10) value[place] = (char)('0' + number % 10);
        number = (uint64_t)getpid();
        for (int place = 28; place >= 19; place--, number /= 10) value[place] = (char)('0' + number % 10);
    }
}

int recorder_spawn(const char *path, char *const arguments[], char *const environment[], pid_t *pid) {
    int failure[2];
    if (pipe2(failure, O_CLOEXEC)) return errno;
    // A program started with a closed stdin, stdout or stderr must find it closed: the pipe has to lie above them.
    for (int end = 0; end < 2; end++)
        if (failure[end] <= 2) {
            int moved = fcntl(failure[end], F_DUPFD_CLOEXEC, 3);
            if (moved < 0) return errno;
            close(failure[end]);
            failure[end] = moved;
        }
    pid_t child = fork();
    if (child < 0) {
        int error = errno;
        close(failure[0]), close(failure[1]);
        return error;
    }
    if (child == 0) {
        for (int i = 0; i < CHANGED; i++)
            sigaction(changed_signals[i], &inherited_actions[i], 0);
        sigprocmask(SIG_SETMASK, &inherited_mask, 0);
        write_exec_time(environment);
        execve(path, arguments, environment);
        int error = errno;
        if (write(failure[1], &error, sizeof error) < 0) _exit(125);
        _exit(126);
    }
    close(failure[1]);
    int error = 0;
    ssize_t got;
    do got = read(failure[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
    close(failure[0]);
    if (got > 0) {
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

int recorder_fault_in(int file, uint64_t offset, uint64_t bytes) {
    void *view = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    if (view == MAP_FAILED) return errno;
    int error = madvise(view, bytes, MADV_POPULATE_WRITE) ? errno : 0;
    munmap(view, bytes);
    return error;
}

int recorder_allocate(int file, uint64_t offset, uint64_t bytes) {
    return fallocate(file, 0, (off_t)offset, (off_t)bytes) ? errno : 0;
}

int recorder_no_new_privileges(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }

ssize_t recorder_file_capabilities(int file, void *buffer, size_t size) {
    return fgetxattr(file, "security.capability", buffer, size);
}
