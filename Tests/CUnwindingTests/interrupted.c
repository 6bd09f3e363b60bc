#define _GNU_SOURCE
#include "unwinding_tests.h"
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static struct interrupted *result;

static uint64_t stack_end(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return (uint64_t)low + size;
}

static void handler(int number, siginfo_t *info, void *data) {
    (void)number, (void)info;
    ucontext_t *context = data;
    void *frames[128];
    int count = backtrace(frames, 128), first = 0;
#ifdef __x86_64__
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int n = 0; n < 17; n++) result->dwarf_registers[n] = (uint64_t)context->uc_mcontext.gregs[order[n]];
    uint64_t stack_pointer = result->dwarf_registers[7], pc = result->dwarf_registers[16];
#else
    memcpy(result->dwarf_registers, context->uc_mcontext.regs, 31 * 8);
    uint64_t stack_pointer = result->dwarf_registers[31] = context->uc_mcontext.sp,
             pc = result->dwarf_registers[32] = context->uc_mcontext.pc;
#endif
    while (first < count && (uint64_t)frames[first] != pc) first++;
    result->frame_count = 0;
    for (int n = first; n < count && result->frame_count < 64; n++) result->frames[result->frame_count++] = (uint64_t)frames[n];
    uint64_t available = stack_end() - stack_pointer;
    if (available < result->stack_bytes) result->stack_bytes = available;
    memcpy(result->stack, (void *)stack_pointer, result->stack_bytes);
}

__attribute__((noinline)) static int descend(int depth) {
    volatile char buffer[64 + (depth % 3) * 32]; // frames of no constant size
    buffer[0] = (char)depth;
    if (depth > 0) return descend(depth - 1) + buffer[0];
    raise(SIGUSR2);
    return buffer[0];
}

static int depth_wanted;
static int compare(const void *a, const void *b) {
    if (depth_wanted >= 0) descend(depth_wanted);
    depth_wanted = -1;
    return *(const int *)a - *(const int *)b;
}

void interrupt(struct interrupted *into, int depth) {
    int numbers[] = {2, 1};
    void *warm[1];
    backtrace(warm, 1); // loads libgcc
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, old;
    sigset_t wanted, blocked; // a thread of libdispatch takes no signals
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR2);
    result = into;
    result->frame_count = 0;
    sigaction(SIGUSR2, &action, &old);
    pthread_sigmask(SIG_UNBLOCK, &wanted, &blocked);
    depth_wanted = depth;
    qsort(numbers, 2, sizeof *numbers, compare); // through a library that calls back
    pthread_sigmask(SIG_SETMASK, &blocked, 0);
    sigaction(SIGUSR2, &old, 0);
}
