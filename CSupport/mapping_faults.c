// SIGBUS from a page of the trace. The trace is mapped shared, so that kill -9 loses nothing; but when somebody else cuts
// the file, or a file system cannot keep its promise of space, the next store raises SIGBUS. This handler stands in for
// the program's own disposition and lets through what is not the agent's (docs/internals/process.md, *SIGBUS*). It runs on
// whatever stack the program has: C, a few words, and no lock.
#include "layout.h"

#if defined(__x86_64__)
enum {
    SYS_mmap = 9,
    SYS_rt_sigaction = 13,
    SYS_getpid = 39,
    SYS_gettid = 186,
    SYS_rt_sigqueueinfo = 129,
    SYS_rt_tgsigqueueinfo = 297,
    UCONTEXT_MASK = 296
}; // offsetof(ucontext_t, uc_sigmask)
#elif defined(__aarch64__)
enum {
    SYS_mmap = 222,
    SYS_rt_sigaction = 134,
    SYS_getpid = 172,
    SYS_gettid = 178,
    SYS_rt_sigqueueinfo = 138,
    SYS_rt_tgsigqueueinfo = 240,
    UCONTEXT_MASK = 40
};
#endif
#if defined(__clang__)
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALL // gcc makes one of it where it optimizes
#endif
enum { MEMORY_ERROR_NOTICED = 5, SENT_TO_THREAD = -6 }; // BUS_MCEERR_AO, SI_TKILL

struct signal_information { // siginfo_t
    int32_t number, error, code, padding;
    uint64_t address;
};

uint64_t tracer_blocked_signals = ~0ull;
uint32_t tracer_confined, tracer_mapping_lost;
struct kernel_action tracer_program_action;

/// Mappings of the file. The start is written last and cleared first.
struct mapping {
    uint64_t start, byte_count;
};
_Static_assert(sizeof(struct mapping) * MAPPING_COUNT == MAPPING_BYTES, "space for mappings");
#define mappings \
    ((struct mapping *)__builtin_assume_aligned(tracer_reserved_mappings, 16)) // in no segment that a collector would look through
static uint32_t mapping_count; // how many entries have ever been used

void tracer_mapping_add(void *start, uint64_t byte_count) {
    for (uint32_t n = 0; n < MAPPING_COUNT; n++) {
        uint64_t unused = 0;
        // 1 while the size is not there yet: no address of a mapping.
        if (mappings[n].start || !__atomic_compare_exchange_n(&mappings[n].start, &unused, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        mappings[n].byte_count = byte_count;
        __atomic_store_n(&mappings[n].start, (uint64_t)start, __ATOMIC_RELEASE);
        uint32_t count = __atomic_load_n(&mapping_count, __ATOMIC_RELAXED);
        while (count <= n && !__atomic_compare_exchange_n(&mapping_count, &count, n + 1, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
        return;
    }
}

void tracer_mapping_remove(void *start) {
    for (uint32_t n = 0; n < mapping_count; n++)
        if (mappings[n].start == (uint64_t)start) __atomic_store_n(&mappings[n].start, 0, __ATOMIC_RELEASE);
}

uint64_t tracer_mapping_next(uint32_t *number, uint64_t *byte_count) {
    while (*number < mapping_count) {
        struct mapping *mapping = &mappings[(*number)++];
        if (mapping->start <= 1) continue;
        *byte_count = mapping->byte_count;
        return mapping->start;
    }
    return 0;
}

/// Private memory in the place of the mapping that holds the address: what is written from here on is lost, and the next
/// slow path of any thread ends the recording. 0 when the address is none of ours.
static int replace_mapping(uint64_t address) {
    uint32_t count = __atomic_load_n(&mapping_count, __ATOMIC_ACQUIRE);
    for (uint32_t n = 0; n < count; n++) {
        uint64_t start = __atomic_load_n(&mappings[n].start, __ATOMIC_ACQUIRE);
        if (start <= 1 || address - start >= mappings[n].byte_count) continue;
        __atomic_store_n(&tracer_mapping_lost, 1, __ATOMIC_RELEASE);
        long result = tracer_system_call(SYS_mmap, (long)start, (long)mappings[n].byte_count, 3, 0x32, -1, 0);
        tracer_thread.low = ~0ull; // the next call looks
        return result == (long)start;
    }
    return 0;
}

static void set_action(const struct kernel_action *action) { tracer_system_call(SYS_rt_sigaction, BUS_SIGNAL, (long)action, 0, 8, 0, 0); }

/// The program's own has none any more. A function apart: what jumps to a handler may have no variable in memory.
__attribute__((noinline)) static void set_default(void) {
    struct kernel_action plain = tracer_program_action;
    plain.handler = ACTION_DEFAULT;
    set_action(&plain);
}

/// The signal once more, to be delivered when it is open again.
static void send_again(struct signal_information *information) {
    long process = tracer_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    if (information->code == SENT_TO_THREAD || information->code > 0) {
        information->code = SENT_TO_THREAD; // the kernel's own codes cannot be sent
        tracer_system_call(SYS_rt_tgsigqueueinfo, process, tracer_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0), BUS_SIGNAL, (long)information,
                           0, 0);
    } else {
        tracer_system_call(SYS_rt_sigqueueinfo, process, BUS_SIGNAL, (long)information, 0, 0, 0);
    }
}

void tracer_mapping_fault(int number, void *argument, void *context) {
    struct signal_information *information = argument;
    if (information->code > 0 && replace_mapping(information->address)) return;
    // libc never lets a program block 32 and 33: with these and all but SIGBUS blocked, it is the agent that runs.
    uint64_t *mask = (uint64_t *)((char *)context + UCONTEXT_MASK);
    const uint64_t internal = 3ull << 31;
    if (information->code <= 0 && (*mask & internal) == internal && !(*mask & BUS_BIT)) {
        *mask |= BUS_BIT; // until the end of the slow path, which restores the program's mask
        send_again(information);
        return;
    }
    uint64_t handler = tracer_program_action.handler;
    if (handler == ACTION_DEFAULT || tracer_program_action.flags & ACTION_RESET) set_default();
    if (handler == ACTION_DEFAULT) {
        // A fault happens again by itself. What was sent does not.
        if (information->code <= 0 || information->code == MEMORY_ERROR_NOTICED) send_again(information);
        return;
    }
    // The kernel has chosen the stack and the mask by the program's own flags. A jump: its handler finds what it would.
    TAIL_CALL return ((void (*)(int, void *, void *))handler)(number, argument, context);
}
