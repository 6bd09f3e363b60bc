#define _GNU_SOURCE
#include "kernel_events.h"
#include <errno.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_PAGES = 4 };

/// Asks for no more in each record than is needed: the CPU is the ring's, and the length of a sample determines its event
/// (kernel_events.h). Both would go into each switch's record too, which makes it a tenth dearer.
static struct perf_event_attr attributes(const struct recorder_kernel_requests *requests) {
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(struct perf_event_attr),
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
        .sample_id_all = 1,
        .disabled = !requests->begins_at_once,
        .enable_on_exec = !requests->begins_at_once,
        .inherit = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .exclude_hv = 1,
        .exclude_kernel = 1,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(requests->data_bytes / 2),
    };
}

static int open_event(const struct perf_event_attr *attributes, pid_t pid, int cpu) {
    return (int)syscall(SYS_perf_event_open, attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/// One event carries all that is reported without being counted; each further one makes threads and forks dearer.
static int open_faults(pid_t pid, int cpu, const struct recorder_kernel_requests *requests) {
    struct perf_event_attr faults = attributes(requests);
    faults.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ;
    faults.sample_period = 1;
    faults.exclude_kernel = !requests->with_kernel;
    faults.context_switch = 1;
    faults.mmap2 = faults.mmap = faults.mmap_data = 1;
    faults.comm = faults.comm_exec = 1;
    faults.task = 1;
    return open_event(&faults, pid, cpu);
}

static int open_minor_faults(pid_t pid, int cpu, const struct recorder_kernel_requests *requests) {
    struct perf_event_attr faults = attributes(requests);
    faults.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    faults.sample_period = 1;
    faults.sample_type |= PERF_SAMPLE_PERIOD; // a word more, which is 1
    faults.exclude_kernel = !requests->with_kernel;
    return open_event(&faults, pid, cpu);
}

static int open_sampler(pid_t pid, int cpu, const struct recorder_kernel_requests *requests) {
    struct perf_event_attr clock = attributes(requests);
    clock.config = PERF_COUNT_SW_CPU_CLOCK;
    clock.sample_period = requests->sample_period;
    clock.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    clock.sample_regs_user = requests->sample_registers;
    clock.sample_stack_user = requests->sample_stack;
    clock.exclude_kernel = !requests->with_kernel;
    if (requests->with_kernel) clock.sample_type |= PERF_SAMPLE_CALLCHAIN;
    clock.exclude_callchain_user = 1; // SampleUnwinder finds it: the kernel follows frame pointers alone
    return open_event(&clock, pid, cpu);
}

/// Its records go to the ring. 0 or errno.
static int join(const struct recorder_ring *ring, int event) {
    return event < 0 || ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, ring->event) ? errno : 0;
}

int recorder_ring_open(pid_t pid, int cpu, const struct recorder_kernel_requests *requests, struct recorder_ring *ring) {
    *ring = (struct recorder_ring){.event = -1, .minor = -1, .sampler = -1, .cpu = cpu};
    ring->event = open_faults(pid, cpu, requests);
    if (ring->event < 0) return errno;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    // perf_event_mlock_kb and RLIMIT_MEMLOCK say how much of it there may be (EPERM), and nothing reports what is left of that.
    for (uint64_t bytes = requests->data_bytes; bytes >= LEAST_PAGES * page; bytes /= 2) {
        void *view = mmap(0, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->event, 0);
        if (view != MAP_FAILED) {
            ring->control = view;
            ring->data_bytes = bytes;
            break;
        }
        if (errno != EPERM && errno != ENOMEM) break;
    }
    int error = ring->control ? 0 : errno;
    if (!error && requests->with_minor_faults) error = join(ring, ring->minor = open_minor_faults(pid, cpu, requests));
    if (!error && requests->sample_period) error = join(ring, ring->sampler = open_sampler(pid, cpu, requests));
    ring->has_kernel_stacks = requests->with_kernel;
    if (error) recorder_ring_close(ring);
    return error;
}

int recorder_ring_join(pid_t tid, const struct recorder_kernel_requests *requests, struct recorder_ring *ring) {
    int *threads = realloc(ring->threads, (ring->thread_count + 1) * sizeof *threads);
    if (!threads) return ENOMEM;
    ring->threads = threads;
    int event = open_faults(tid, ring->cpu, requests);
    if (event < 0) return errno;
    int error = join(ring, event);
    if (error) close(event);
    else threads[ring->thread_count++] = event;
    return error;
}

void recorder_ring_close(struct recorder_ring *ring) {
    for (size_t i = 0; i < ring->thread_count; i++) close(ring->threads[i]);
    free(ring->threads);
    if (ring->control) munmap(ring->control, (uint64_t)sysconf(_SC_PAGESIZE) + ring->data_bytes);
    if (ring->sampler >= 0) close(ring->sampler);
    if (ring->minor >= 0) close(ring->minor);
    if (ring->event >= 0) close(ring->event);
    *ring = (struct recorder_ring){.event = -1, .minor = -1, .sampler = -1};
}

static size_t copy_new(const struct recorder_ring *ring, void *bytes, uint64_t *end) {
    struct perf_event_mmap_page *control = ring->control;
    uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE), tail = control->data_tail, count = head - tail;
    *end = head;
    if (count == 0 || count > ring->data_bytes) return 0;
    const char *data = (const char *)control + control->data_offset;
    uint64_t first = tail & (ring->data_bytes - 1), before_end = count < ring->data_bytes - first ? count : ring->data_bytes - first;
    memcpy(bytes, data + first, before_end);
    memcpy((char *)bytes + before_end, data, count - before_end);
    return count;
}
size_t recorder_ring_look(struct recorder_ring *ring, void *bytes) {
    uint64_t end;
    return copy_new(ring, bytes, &end);
}
size_t recorder_ring_take(struct recorder_ring *ring, void *bytes) {
    uint64_t end;
    size_t count = copy_new(ring, bytes, &end);
    if (count) __atomic_store_n(&((struct perf_event_mmap_page *)ring->control)->data_tail, end, __ATOMIC_RELEASE);
    return count;
}

int recorder_rings_await(const struct recorder_ring *rings, size_t count, int wake, int milliseconds) {
    struct pollfd sources[count + 1];
    for (size_t i = 0; i < count; i++) sources[i] = (struct pollfd){.fd = rings[i].event, .events = POLLIN};
    sources[count] = (struct pollfd){.fd = wake, .events = POLLIN};
    if (poll(sources, count + 1, milliseconds) <= 0) return 0;
    // perf_event_open(2): POLLHUP when the process, and all that have inherited the event, are gone.
    for (size_t i = 0; i < count; i++)
        if (!(sources[i].revents & POLLHUP)) return 0;
    return 1;
}

int recorder_make_wake(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void recorder_wake(int wake) { eventfd_write(wake, 1); }

void recorder_take_wake(int wake) {
    eventfd_t count;
    eventfd_read(wake, &count);
}

int recorder_takes_descriptor(int system_call) {
    static const int calls[] = {
        SYS_read,         SYS_write,       SYS_pread64,   SYS_pwrite64,  SYS_readv,   SYS_writev,   SYS_preadv,          SYS_pwritev,
        SYS_recvfrom,     SYS_recvmsg,     SYS_recvmmsg,  SYS_sendto,    SYS_sendmsg, SYS_sendmmsg, SYS_accept,          SYS_accept4,
        SYS_connect,      SYS_epoll_pwait, SYS_fsync,     SYS_fdatasync, SYS_flock,   SYS_fcntl,    SYS_ioctl,           SYS_sendfile,
        SYS_splice,       SYS_getdents64,  SYS_ftruncate, SYS_fallocate, SYS_fstat,   SYS_syncfs,   SYS_sync_file_range, SYS_close,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
        SYS_epoll_pwait2,
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == system_call) return 1;
    return 0;
}

int recorder_waits_for_set(int system_call) {
    switch (system_call) {
#ifdef SYS_poll
    case SYS_poll:
#endif
    case SYS_ppoll: return RECORDER_POLL;
#ifdef SYS_select
    case SYS_select:
#endif
    case SYS_pselect6: return RECORDER_SELECT;
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
    case SYS_epoll_pwait: return RECORDER_EPOLL;
    default: return RECORDER_NO_SET;
    }
}

int recorder_read_memory(int pid, uint64_t address, void *bytes, size_t byte_count) {
    struct iovec here = {bytes, byte_count}, there = {(void *)(uintptr_t)address, byte_count};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)byte_count;
}

uint32_t recorder_unix_peer(uint32_t inode) {
    struct {
        struct nlmsghdr head;
        struct unix_diag_req request;
    } question = {
        .head = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = AF_UNIX,
                    .udiag_states = UINT32_MAX,
                    .udiag_ino = inode,
                    .udiag_show = UDIAG_SHOW_PEER,
                    .udiag_cookie = {UINT32_MAX, UINT32_MAX}}, // whatever its cookie is
    };
    int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (sock < 0) return 0;
    _Alignas(struct nlmsghdr) char answer[1024];
    ssize_t count = -1;
    if (send(sock, &question, sizeof question, 0) == sizeof question) count = recv(sock, answer, sizeof answer, MSG_DONTWAIT);
    close(sock);
    const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
    if (count < (ssize_t)NLMSG_SPACE(sizeof(struct unix_diag_msg)) || !NLMSG_OK(head, (size_t)count)) return 0;
    if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY) return 0; // NLMSG_ERROR: there is no such socket
    const struct unix_diag_msg *message = NLMSG_DATA(head);
    const struct rtattr *attribute = (const struct rtattr *)(message + 1);
    for (int rest = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof *message)); RTA_OK(attribute, rest); attribute = RTA_NEXT(attribute, rest))
        if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) >= sizeof(uint32_t)) {
            uint32_t peer;
            memcpy(&peer, RTA_DATA(attribute), sizeof peer);
            return peer;
        }
    return 0;
}

size_t recorder_cpus(int *numbers, size_t capacity) {
    int possible = (int)sysconf(_SC_NPROCESSORS_CONF);
    cpu_set_t *set = CPU_ALLOC((size_t)possible + 1024); // the kernel may know of more than there are (sched_setaffinity(2))
    size_t bytes = CPU_ALLOC_SIZE((size_t)possible + 1024), count = 0;
    if (!set) return 0;
    CPU_ZERO_S(bytes, set);
    if (!sched_getaffinity(0, bytes, set))
        for (int number = 0; number < possible + 1024 && count < capacity; number++)
            if (CPU_ISSET_S((size_t)number, bytes, set)) numbers[count++] = number;
    CPU_FREE(set);
    return count;
}
