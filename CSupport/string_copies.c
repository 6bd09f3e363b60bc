// Strings that a program passes, copied without a fault. An address may lead nowhere, and another thread may unmap what is there now. A
// handler of SIGSEGV could catch that only where the thread does not block SIGSEGV and the handler is still in place, and both are for the
// kernel to say, at the price of a system call each; a fault while it is blocked ends the process (kernel/signal.c,
// force_sig_info_to_task). So memory is read by the agent only where no fault can be: in the part of the thread's own stack that is in use,
// and in segments that last as long as the process. All else the kernel copies (process_vm_readv(2)). It fails where an instruction would
// fault, and reads no memory of devices.
#include "string_copies.h"

#if defined(__x86_64__)
enum { SYS_process_vm_readv = 310 };
#elif defined(__aarch64__)
enum { SYS_process_vm_readv = 270 };
#endif

uint32_t tracer_copied_process;

static struct range {
    uint64_t low, high;
} ranges[LASTING_RANGES];
static uint32_t range_count;
uint64_t tracer_known_pages[KNOWN_PAGES];

void tracer_add_lasting_range(uint64_t low, uint64_t high) {
    if (range_count == LASTING_RANGES) return;
    ranges[range_count] = (struct range){low / KNOWN_PAGE_BYTES * KNOWN_PAGE_BYTES, high}; // whole pages are mapped
    __atomic_store_n(&range_count, range_count + 1, __ATOMIC_RELEASE);
}

/// The page has just been read: if it stays, it is known from now on.
SCALAR static void keep(uint64_t address) {
    uint64_t page = address / KNOWN_PAGE_BYTES, start = page * KNOWN_PAGE_BYTES;
    uint32_t count = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (uint32_t n = 0; n < count; n++) {
        if (start < ranges[n].low || start >= ranges[n].high) continue;
        __atomic_store_n(&tracer_known_pages[page % KNOWN_PAGES], page, __ATOMIC_RELAXED);
        return;
    }
}

/// Copies what can be read, up to and with the zero byte that ends a string, or `most` bytes. Returns how many.
SCALAR static inline unsigned copy_readable(uint8_t *to, uint64_t from, unsigned most, int is_string) {
    for (unsigned n = 0; n < most; n++) {
        to[n] = ((const volatile uint8_t *)from)[n];
        if (is_string && to[n] == 0) return n + 1;
    }
    return most;
}

/// The same by the kernel, within a page.
SCALAR static inline unsigned copy_unknown(uint8_t *to, uint64_t from, unsigned most, int is_string) {
    uint64_t local[2] = {(uint64_t)to, most}, remote[2] = {from, most}; // struct iovec
    if (!tracer_copied_process || __atomic_load_n(&tracer_confined, __ATOMIC_RELAXED)) return 0;
    long found = tracer_system_call(SYS_process_vm_readv, tracer_copied_process, (long)local, 1, (long)remote, 1, 0);
    if (found <= 0) return 0;
    keep(from);
    for (unsigned n = 0; is_string && n < (unsigned)found; n++)
        if (to[n] == 0) return n + 1;
    return (unsigned)found;
}

SCALAR static inline unsigned copy(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer, int is_string) {
    unsigned count = 0;
    while (count < most && from) {
        uint64_t here = from + count, known = tracer_readable(here, stack_pointer), page = KNOWN_PAGE_BYTES - here % KNOWN_PAGE_BYTES;
        unsigned wanted = most - count;
        if (wanted > (known ? known : page)) wanted = (unsigned)(known ? known : page);
        // What lies behind a string's end, on another page, is not touched.
        unsigned found = known ? copy_readable(to + count, here, wanted, is_string) : copy_unknown(to + count, here, wanted, is_string);
        count += found;
        if (found < wanted || (is_string && to[count - 1] == 0)) break;
    }
    return count;
}

SCALAR unsigned tracer_copy_string(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer) {
    return copy(to, from, most, stack_pointer, 1);
}
SCALAR unsigned tracer_copy_bytes(uint8_t *to, uint64_t from, unsigned most, uint64_t stack_pointer) {
    return copy(to, from, most, stack_pointer, 0);
}
