// Used by every subject: the headers that several need, a check that ends the program, and the count of calls that the test compares
// with the trace.
#ifndef SUBJECT_H
#define SUBJECT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __cplusplus
#define EXPORT extern "C" __attribute__((visibility("default"), noinline))
#else
#define EXPORT __attribute__((visibility("default"), noinline))
#endif
#define NOINLINE __attribute__((noinline))
// Keeps a function from being found to be pure, cloned or folded, without a call or a memory access.
#define OPAQUE() __asm__ volatile("" ::: "memory")

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
            _exit(99);                                                                       \
        }                                                                                    \
    } while (0)

/// Says that `name` was called between `low` and `high` times in this process.
static inline void counted_between(const char *name, unsigned long low, unsigned long high) {
    const char *path = getenv("SUBJECT_COUNTS");
    if (!path) return;
    char line[128];
    int length = snprintf(line, sizeof line, "%s %lu %lu\n", name, low, high);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    CHECK(file >= 0);
    CHECK(write(file, line, (size_t)length) == length);
    close(file);
}
static inline void counted(const char *name, unsigned long calls) { counted_between(name, calls, calls); }

/// Prepares a context for makecontext: it will run on this stack, and `next` after it.
static inline void context_on(ucontext_t *context, void *stack, size_t bytes, ucontext_t *next) {
    CHECK(!getcontext(context));
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = bytes;
    context->uc_link = next;
}

/// Private memory that is of no file.
static inline long anonymous_kilobytes(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    CHECK(file);
    char line[256];
    long kilobytes = -1;
    while (fgets(line, sizeof line, file)) if (sscanf(line, "Anonymous: %ld", &kilobytes) == 1) break;
    fclose(file);
    CHECK(kilobytes >= 0);
    return kilobytes;
}
#endif
