// Finds which pages of its text a process touches. The kernel also maps the neighbours of a page that a process faults on (fault-around),
// as touched ones on x86_64, so the mapped pages at the end say little. But the CPU itself sets an accessed bit in the page table
// for each page that it uses, and /proc/PID/clear_refs clears these bits (Linux, Documentation/filesystems/proc.rst): with all of the
// text mapped and the bits cleared before the first instruction, `Referenced` of /proc/PID/smaps is what the process has touched since.
#define _GNU_SOURCE
#include "claunch.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int launch_stop_at_exec(pid_t pid) { return ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) ? errno : 0; }

/// Opens /proc/PID/NAME (proc(5)). -1 and errno when it fails.
static int open_of(pid_t pid, const char *name, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return open(path, flags | O_CLOEXEC);
}

/// Reading a page maps it for the process that it is read from.
static int map_text(pid_t pid) {
    int memory = open_of(pid, "mem", O_RDONLY), list = open_of(pid, "maps", O_RDONLY);
    FILE *maps = list < 0 ? 0 : fdopen(list, "r");
    int error = memory < 0 || !maps ? errno : 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char line[8192];
    while (!error && fgets(line, sizeof line, maps)) {
        unsigned long start, end, inode;
        char access[5];
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, access, &inode) != 4 || access[2] != 'x' || inode == 0) continue;
        for (uint64_t address = start; !error && address < end; address += page) {
            char byte;
            if (pread(memory, &byte, 1, (off_t)address) < 0) error = errno;
        }
    }
    if (maps) fclose(maps);
    else if (list >= 0) close(list);
    if (memory >= 0) close(memory);
    return error;
}

static int forget(pid_t pid) {
    int notes = open_of(pid, "clear_refs", O_WRONLY);
    if (notes < 0) return errno;
    int error = write(notes, "1", 1) == 1 ? 0 : errno;
    close(notes);
    return error;
}

int launch_forget_touched(pid_t pid) {
    int status;
    pid_t stopped;
    do stopped = waitpid(pid, &status, __WALL);
    while (stopped < 0 && errno == EINTR);
    if (stopped != pid || !WIFSTOPPED(status)) return ESRCH;
    int error = status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8) ? 0 : EINTR;
    if (!error) error = map_text(pid);
    if (!error) error = forget(pid);
    if (ptrace(PTRACE_DETACH, pid, 0, 0) && !error) error = errno;
    return error;
}
