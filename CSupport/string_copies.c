// Strings that a program passes, copied without a fault. An address may lead nowhere, and another thread may unmap what is there now. A
// handler of SIGSEGV could catch that only where the thread does not block SIGSEGV and the handler is still in place, and both are for the
// kernel to say, at the price of a system call each; a fault while it is blocked ends the process (kernel/signal.c,
// force_sig_info_to_task). So memory is read by the agent only where no fault can be: in the part of the thread's own stack that is in use,
// and in segments that last as long as the process. All else the kernel copies (process_vm_readv(2)). It fails where an instruction would
// fault, and reads no memory of devices.
#include "string_copies.h"
#include "layout.h"
#include "scalar.h"

#if defined(__x86_64__)
enum { SYS_process_vm_readv = 310 };
#elif defined(__aarch64__)
enum { SYS_process_vm_readv = 270 };
#endif
enum { PAGE_BYTES = 4096, PAGES = 256 }; // the least that may be unmapped, also where pages are larger

uint32_t tracer_copied_process;

static struct range {
    uint64_t low, high;
} ranges[LASTING_RANGES];
static uint32_t range_count;
/// Numbers of pages in the ranges that were read once: each is where its lowest bits say.
static uint64_t known_pages[PAGES];

void tracer_add_lasting_range(uint64_t low, uint64_t high) {
    if (range_count == LASTING_RANGES) return;
    ranges[range_count] = (struct range){low / PAGE_BYTES * PAGE_BYTES, high}; // whole pages are mapped
    __atomic_store_n(&range_count, range_count + 1, __ATOMIC_RELEASE);
}

/// The page has just been read: if it stays, it is known from now on.
SCALAR static void keep(uint64_t address) {
    uint64_t page = address / PAGE_BYTES, start = page * PAGE_BYTES;
    uint32_t count = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (uint32_t n = 0; n < count; n++) {
        if (start < ranges[n].low || start >= ranges[n].high) continue;
        __atomic_store_n(&known_pages[page % PAGES], page, __ATOMIC_RELAXED);
        return;
    }
}

/// Returns how many bytes can be read from there on without a fault, as far as this is known.
SCALAR static inline uint64_t readable(uint64_t address, uint64_t stack_pointer) {
    uint64_t page = address / PAGE_BYTES;
    if (page && __atomic_load_n(&known_pages[page % PAGES], __ATOMIC_RELAXED) == page) return PAGE_BYTES - address % PAGE_BYTES;
    const struct thread_context *context = tracer_thread.context;
    // The bounds are all ones where the thread's own stack is not known, or no stack pointer shows which stack this is.
    if (stack_pointer < context->stack_low || context->stack_high == ~0ull) return 0;
    return address >= stack_pointer && address < context->stack_high ? context->stack_high - address : 0;
}

/// Returns the number of bytes up to and with a zero byte, of at most so many that can be read; 0: there is none among them.
SCALAR static inline unsigned length(uint64_t from, unsigned most) {
    const uint64_t ones = 0x0101010101010101;
    unsigned count = 0;
    for (; most - count >= 8; count += 8) {
        uint64_t word, zero;
        __builtin_memcpy(&word, (const void *)(from + count), 8);
        zero = (word - ones) & ~word & ones << 7; // the lowest bit that is set is that of the first zero byte
        if (zero) return count + (unsigned)__builtin_ctzll(zero) / 8 + 1;
    }
    while (count < most)
        if (((const volatile uint8_t *)from)[count++] == 0) return count;
    return 0;
}

SCALAR unsigned tracer_string_in_place(uint64_t from, unsigned most, uint64_t stack_pointer) {
    uint64_t known = readable(from, stack_pointer);
    return length(from, known < most ? (unsigned)known : most);
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
        uint64_t here = from + count, known = readable(here, stack_pointer), page = PAGE_BYTES - here % PAGE_BYTES;
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
