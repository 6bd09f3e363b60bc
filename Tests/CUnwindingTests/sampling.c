#define _GNU_SOURCE
#include "unwinding_tests.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RING_PAGES = 64, MOST_CPUS = 64 };

struct entry {
    uint64_t ns;
    struct perf_event_header *record;
};
struct gathered {
    struct entry *entries;
    size_t count, capacity;
};

static int by_time(const void *a, const void *b) {
    uint64_t x = ((const struct entry *)a)->ns, y = ((const struct entry *)b)->ns;
    return (x > y) - (x < y);
}

static void gather(struct gathered *all, struct perf_event_mmap_page *ring, uint64_t bytes) {
    uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE), tail = ring->data_tail;
    const uint8_t *data = (const uint8_t *)ring + sysconf(_SC_PAGESIZE);
    while (tail < head) {
        struct perf_event_header header, *copy;
        for (size_t n = 0; n < sizeof header; n++) ((uint8_t *)&header)[n] = data[(tail + n) % bytes];
        copy = malloc(header.size);
        for (size_t n = 0; n < header.size; n++) ((uint8_t *)copy)[n] = data[(tail + n) % bytes];
        tail += header.size;
        if (all->count == all->capacity)
            all->entries = realloc(all->entries, (all->capacity = 2 * all->capacity + 64) * sizeof *all->entries);
        // sample_id_all: TID, TIME at the end; of a sample itself IP, TID, TIME.
        uint64_t ns =
            header.type == PERF_RECORD_SAMPLE ? *(uint64_t *)((uint8_t *)copy + 24) : *(uint64_t *)((uint8_t *)copy + header.size - 8);
        all->entries[all->count++] = (struct entry){ns, copy};
    }
    __atomic_store_n(&ring->data_tail, tail, __ATOMIC_RELEASE);
}

static void deliver(const struct sampling_events *events, const struct perf_event_header *record, int registers) {
    const uint8_t *body = (const uint8_t *)(record + 1);
    const uint32_t *ids = (const uint32_t *)body;
    switch (record->type) {
    case PERF_RECORD_COMM:
        if (record->misc & PERF_RECORD_MISC_COMM_EXEC) events->exec(events->context, (pid_t)ids[0]);
        break;
    case PERF_RECORD_FORK: events->fork(events->context, (pid_t)ids[1], (pid_t)ids[0]); break;
    case PERF_RECORD_EXIT:
        if (ids[0] == ids[2]) events->exit(events->context, (pid_t)ids[0]);
        break;
    case PERF_RECORD_MMAP2: {
        const uint64_t *words = (const uint64_t *)(body + 8);
        events->map(events->context, (pid_t)ids[0], words[0], words[1], words[2], words[4], (const char *)body + 64);
        break;
    }
    case PERF_RECORD_SAMPLE: {
        const uint64_t *words = (const uint64_t *)body; // ip, pid and tid, time, abi, registers, size, stack, size
        if (words[3] != PERF_SAMPLE_REGS_ABI_64) break;
        const uint64_t *stack = words + 4 + registers;
        uint64_t size = stack[0] ? *(const uint64_t *)((const uint8_t *)(stack + 1) + stack[0]) : 0;
        events->sample(events->context, (pid_t)(words[1] & 0xffffffff), (pid_t)(words[1] >> 32), words[2], words + 4, stack + 1, size);
        break;
    }
    }
}

int sampling_run(char *const *arguments, uint64_t period_ns, uint32_t stack_bytes, uint64_t mask, const struct sampling_events *events) {
    int gate[2], count = (int)sysconf(_SC_NPROCESSORS_ONLN), descriptors[MOST_CPUS], failure = 0;
    if (count > MOST_CPUS) count = MOST_CPUS;
    if (pipe2(gate, O_CLOEXEC)) return errno;
    pid_t child = fork();
    if (child == 0) {
        char go;
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0), dup2(null, 1), dup2(null, 2);
        close(gate[1]);
        if (read(gate[0], &go, 1) == 1) execvp(arguments[0], arguments);
        _exit(127);
    }
    close(gate[0]);
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_SW_CPU_CLOCK,
                                         .sample_period = period_ns,
                                         .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
                                                        PERF_SAMPLE_STACK_USER,
                                         .disabled = 1,
                                         .inherit = 1,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1,
                                         .enable_on_exec = 1,
                                         .mmap = 1,
                                         .mmap2 = 1,
                                         .comm = 1,
                                         .comm_exec = 1,
                                         .task = 1,
                                         .sample_id_all = 1,
                                         .use_clockid = 1,
                                         .clockid = CLOCK_MONOTONIC,
                                         .sample_regs_user = mask,
                                         .sample_stack_user = stack_bytes,
                                         .exclude_callchain_user = 1};
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (RING_PAGES + 1) * page;
    struct perf_event_mmap_page *rings[MOST_CPUS];
    for (int n = 0; n < count; n++) {
        descriptors[n] = (int)syscall(SYS_perf_event_open, &attributes, child, n, -1, PERF_FLAG_FD_CLOEXEC);
        rings[n] = descriptors[n] < 0 ? MAP_FAILED : mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[n], 0);
        if (rings[n] == MAP_FAILED && !failure) failure = errno;
    }
    if (!failure && write(gate[1], "g", 1) != 1) failure = errno;
    close(gate[1]);
    int isOver = 0;
    while (!isOver) {
        isOver = waitpid(child, 0, failure ? 0 : WNOHANG) != 0;
        struct gathered all = {0};
        for (int n = 0; n < count && !failure; n++) gather(&all, rings[n], RING_PAGES * page);
        qsort(all.entries, all.count, sizeof *all.entries, by_time);
        for (size_t n = 0; n < all.count; n++) {
            deliver(events, all.entries[n].record, __builtin_popcountll(mask));
            free(all.entries[n].record);
        }
        free(all.entries);
        if (!isOver) poll(0, 0, 2);
    }
    for (int n = 0; n < count; n++) {
        if (rings[n] != MAP_FAILED) munmap(rings[n], bytes);
        if (descriptors[n] >= 0) close(descriptors[n]);
    }
    return failure;
}
