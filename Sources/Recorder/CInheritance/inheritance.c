#define _GNU_SOURCE
#include "inheritance.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4 // Linux 5.11
#endif

// The tool, Foundation and the parser of the command line change these.
static const int signals[] = {SIGPIPE, SIGXFSZ, SIGCHLD};
enum { SIGNALS = sizeof signals / sizeof *signals, DESCRIPTORS = 1 << 16 }; // beyond, all count as inherited
static struct sigaction actions[SIGNALS];
static sigset_t mask;
static uint8_t inherited[DESCRIPTORS / 8]; // a bit for each descriptor
static int is_known;

static int is_inherited(unsigned number) { return inherited[number / 8] >> number % 8 & 1; }

/// Before main and before other libraries have threads.
__attribute__((constructor)) static void save(void) {
    sigprocmask(SIG_SETMASK, 0, &mask);
    for (int n = 0; n < SIGNALS; n++) sigaction(signals[n], 0, &actions[n]);
    DIR *all = opendir("/proc/self/fd");
    if (!all) return;
    for (struct dirent *entry; (entry = readdir(all));) {
        int number = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && number != dirfd(all) && number < DESCRIPTORS) inherited[number / 8] |= (uint8_t)(1 << number % 8);
    }
    closedir(all);
    is_known = 1;
}

static void close_by_exec(unsigned first, unsigned last) {
    if (syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) == 0) return;
    for (unsigned number = first; number <= last; number++) fcntl((int)number, F_SETFD, FD_CLOEXEC);
}

void inheritance_restore(void) {
    for (int n = 0; n < SIGNALS; n++) sigaction(signals[n], &actions[n], 0);
    sigprocmask(SIG_SETMASK, &mask, 0);
    for (unsigned first = 0, end; is_known && first < DESCRIPTORS; first = end) {
        for (end = first; end < DESCRIPTORS && is_inherited(end) == is_inherited(first);) end++;
        if (!is_inherited(first)) close_by_exec(first, end - 1);
    }
}

static int is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Over the digits that end there. Returns where they begin.
static char *write_number(char *start, char *end, uint64_t number) {
    for (; end > start && is_digit(end[-1]); number /= 10) *--end = (char)('0' + number % 10);
    return end;
}

uint64_t inheritance_stamp_exec(char *const environment[], const char *name) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    size_t length = strlen(name);
    for (char *const *entry = environment; *entry; entry++) {
        if (strncmp(*entry, name, length) || (*entry)[length] != '=') continue;
        char *value = *entry + length + 1;
        char *dash = write_number(value, value + strlen(value), (uint64_t)getpid()) - 1;
        if (dash > value && *dash == '-') write_number(value, dash, nanoseconds);
    }
    return nanoseconds;
}
