// The page faults of a program for which something had to be read from disk: perf_event_open(2), one event for each
// processor, that notes every major fault with its address, and every mapping, so that the address is a place in a file.
#define _GNU_SOURCE
#include "claunch.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 64 }; // of each processor's ring: below what perf_event_mlock_kb lets everybody have

struct ring {
    int event;
    struct perf_event_mmap_page *control;
};

struct mapping {
    uint64_t time, address, length, offset;
    const char *path;
};

struct launch_faults {
    pid_t pid;
    uint64_t page;
    int ring_count;
    struct ring *rings;
    char **copies; // of the rings' records, into which paths point
    struct mapping *mappings;
    size_t mapping_count, mapping_room;
    struct launch_fault *faults;
    size_t fault_count, fault_room;
    uint64_t lost;
};

static int open_event(pid_t pid, int processor, int with_kernel) {
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
        .sample_id_all = 1,
        .disabled = 1,
        .enable_on_exec = 1,
        .inherit = 1,
        .mmap = 1,
        .mmap_data = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .exclude_hv = 1,
        .exclude_kernel = !with_kernel,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, pid, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

int launch_faults_open(pid_t pid, struct launch_faults **result) {
    *result = 0;
    int processors = (int)sysconf(_SC_NPROCESSORS_CONF);
    struct launch_faults *faults = calloc(1, sizeof *faults);
    if (!faults) return ENOMEM;
    faults->pid = pid;
    faults->page = (uint64_t)sysconf(_SC_PAGESIZE);
    faults->rings = calloc((size_t)processors, sizeof *faults->rings);
    faults->copies = calloc((size_t)processors, sizeof *faults->copies);
    int error = faults->rings && faults->copies ? 0 : ENOMEM;
    // The kernel, too, touches the program's pages, while it loads it; with perf_event_paranoid 2 only root learns of that.
    int with_kernel = 1;
    for (int processor = 0; processor < processors && !error; processor++) {
        int event = open_event(pid, processor, with_kernel);
        if (event < 0 && (errno == EACCES || errno == EPERM) && with_kernel) event = open_event(pid, processor, with_kernel = 0);
        if (event < 0 && errno == ENODEV) continue; // switched off
        void *view = event < 0 ? MAP_FAILED : mmap(0, (1 + PAGES) * faults->page, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        if (view == MAP_FAILED) {
            error = errno;
            if (event >= 0) close(event);
            break;
        }
        faults->rings[faults->ring_count++] = (struct ring){.event = event, .control = view};
    }
    if (error) {
        launch_faults_close(faults);
        return error;
    }
    *result = faults;
    return 0;
}

/// Room for one more at the end of an array; 0 without memory.
static void *grown(void **array, size_t *count, size_t *room, size_t size) {
    if (*count == *room) {
        size_t wanted = *room ? *room * 2 : 256;
        void *larger = realloc(*array, wanted * size);
        if (!larger) return 0;
        *array = larger;
        *room = wanted;
    }
    return (char *)*array + (*count)++ * size;
}

static uint64_t word(const char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void read_record(struct launch_faults *faults, const struct perf_event_header *header) {
    const char *body = (const char *)(header + 1), *end = (const char *)header + header->size;
    switch (header->type) {
    case PERF_RECORD_LOST:
        if (end - body >= 16) faults->lost += word(body + 8);
        break;
    case PERF_RECORD_MMAP: { // pid, tid; address; length; offset; path; and of sample_id_all: pid, tid; time
        if (end - body < 8 + 3 * 8 + 8 + 16 || (pid_t)(uint32_t)word(body) != faults->pid) break;
        struct mapping *mapping = grown((void **)&faults->mappings, &faults->mapping_count, &faults->mapping_room, sizeof *mapping);
        if (mapping)
            *mapping = (struct mapping){
                .time = word(end - 8), .address = word(body + 8), .length = word(body + 16), .offset = word(body + 24), .path = body + 32};
        break;
    }
    case PERF_RECORD_SAMPLE: { // pid, tid; time; address
        if (end - body < 24 || (pid_t)(uint32_t)word(body) != faults->pid) break;
        struct launch_fault *fault = grown((void **)&faults->faults, &faults->fault_count, &faults->fault_room, sizeof *fault);
        if (fault) *fault = (struct launch_fault){.time_ns = word(body + 8), .offset = word(body + 16), .path = ""};
        break;
    }
    default: break;
    }
}

static void read_ring(struct launch_faults *faults, int number) {
    struct perf_event_mmap_page *control = faults->rings[number].control;
    uint64_t room = PAGES * faults->page, head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE), tail = control->data_tail;
    uint64_t count = head - tail;
    if (count == 0 || count > room) return;
    // In one piece, aligned as records are: they go around the ring's end.
    char *copy = malloc(count);
    if (!copy) return;
    const char *data = (const char *)control + faults->page;
    uint64_t first = tail % room, before_end = count < room - first ? count : room - first;
    memcpy(copy, data + first, before_end);
    memcpy(copy + before_end, data, count - before_end);
    __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
    free(faults->copies[number]);
    faults->copies[number] = copy;
    for (uint64_t at = 0; at + sizeof(struct perf_event_header) <= count;) {
        const struct perf_event_header *header = (const void *)(copy + at);
        if (header->size < sizeof *header || at + header->size > count) break;
        read_record(faults, header);
        at += header->size;
    }
}

static int by_time_of_fault(const void *a, const void *b) {
    uint64_t x = ((const struct launch_fault *)a)->time_ns, y = ((const struct launch_fault *)b)->time_ns;
    return x < y ? -1 : x > y;
}

static int by_time_of_mapping(const void *a, const void *b) {
    uint64_t x = ((const struct mapping *)a)->time, y = ((const struct mapping *)b)->time;
    return x < y ? -1 : x > y;
}

const struct launch_fault *launch_faults_read(struct launch_faults *faults, size_t *count, uint64_t *lost) {
    for (int i = 0; i < faults->ring_count; i++) read_ring(faults, i);
    if (faults->fault_count) qsort(faults->faults, faults->fault_count, sizeof *faults->faults, by_time_of_fault);
    if (faults->mapping_count) qsort(faults->mappings, faults->mapping_count, sizeof *faults->mappings, by_time_of_mapping);
    for (size_t i = 0; i < faults->fault_count; i++) {
        struct launch_fault *fault = &faults->faults[i];
        uint64_t address = fault->offset;
        fault->offset = 0;
        // The last mapping that was made there before.
        for (size_t j = 0; j < faults->mapping_count && faults->mappings[j].time <= fault->time_ns; j++) {
            const struct mapping *mapping = &faults->mappings[j];
            if (address < mapping->address || address - mapping->address >= mapping->length) continue;
            fault->path = mapping->path;
            fault->offset = (address - mapping->address + mapping->offset) / faults->page * faults->page;
        }
    }
    *count = faults->fault_count;
    *lost = faults->lost;
    return faults->faults;
}

void launch_faults_close(struct launch_faults *faults) {
    if (!faults) return;
    for (int i = 0; i < faults->ring_count; i++) {
        munmap(faults->rings[i].control, (1 + PAGES) * faults->page);
        close(faults->rings[i].event);
        free(faults->copies[i]);
    }
    free(faults->rings);
    free(faults->copies);
    free(faults->mappings);
    free(faults->faults);
    free(faults);
}
