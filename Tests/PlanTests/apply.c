// Applies plans to the modules of a process as an agent would, but for recording: each entry jumps to code that counts and goes on
// with the relocated instructions. Preloaded by run.py; the program must behave as without. PLANS names a file with a line for each
// module: its path, and its plan's. On exit says how many functions were patched and how many entered, in the file COUNTS.
#define _GNU_SOURCE
#include "plan_layout.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char lines[1 << 16];
static unsigned long patched, areas;
static struct {
    unsigned char *start;
    unsigned long count;
} area[64];

static void die(const char *why) {
    fprintf(stderr, "apply: %s\n", why);
    _exit(99);
}

#ifdef __aarch64__
static void put_bits(unsigned char *at, uint32_t mask, uint32_t bits) {
    uint32_t word;
    memcpy(&word, at, 4);
    word = (word & ~mask) | (bits & mask);
    memcpy(at, &word, 4);
}

static void branch(unsigned char *at, const unsigned char *to) {
    long distance = to - at;
    if (distance < -(1l << 27) || distance >= 1l << 27) die("a branch out of reach");
    put_bits(at, 0x3ffffff, (uint32_t)(distance >> 2));
}

static void page(unsigned char *at, const unsigned char *to) {
    long distance = ((long)to >> 12) - ((long)at >> 12);
    if (distance < -(1l << 20) || distance >= 1l << 20) die("a page out of reach");
    put_bits(at, 0x60ffffe0, (uint32_t)(distance & 3) << 29 | (uint32_t)(distance >> 2 & 0x7ffff) << 5);
}
#else
static void put32(unsigned char *at, int64_t value, int is_signed) {
    if (is_signed && value != (int32_t)value) die("out of reach");
    int32_t word = (int32_t)value;
    memcpy(at, &word, 4);
}

static void jump(unsigned char *from, const unsigned char *to) {
    from[0] = 0xe9;
    put32(from + 1, to - (from + 5), 1);
}
#endif
#ifdef __aarch64__
#define REACH 0x7000000ul
#define STUB 192
#else
#define REACH 0x7f000000ul
#define STUB 192
#endif

static unsigned char *near(uintptr_t low, uintptr_t high, size_t bytes) {
    for (uintptr_t at = (low & ~0xffffful) - bytes - 0x100000; at > 0x10000 && high - at < REACH; at -= 0x400000) {
        void *got = mmap((void *)at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != MAP_FAILED) return got;
    }
    for (uintptr_t at = (high + 0xffffful) & ~0xffffful; at + bytes - low < REACH; at += 0x400000) {
        void *got = mmap((void *)at, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != MAP_FAILED) return got;
    }
    die("no space near by");
    return NULL;
}

/// The stub of a function of tactic calls, else `target`.
static unsigned char *stub_of(const struct plan_file *header, unsigned char *target, unsigned char *base, unsigned char *stubs) {
    const struct plan_function *functions = (const void *)((const char *)header + header->functions);
    for (uint32_t n = 0; n < header->function_count; n++)
        if (base + functions[n].address == target && functions[n].tactic == PLAN_CALLS) return stubs + n * STUB + 8;
    return target;
}

static void redirect(const struct plan_file *header, unsigned char *base, unsigned char *stubs) {
    const struct plan_function *functions = (const void *)((const char *)header + header->functions);
    const struct plan_site *sites = (const void *)((const char *)header + header->sites);
    for (uint32_t n = 0; n < header->site_count; n++) {
        unsigned char *word = base + sites[n].word, *target = base + functions[sites[n].function].address;
        unsigned char *stub = stubs + sites[n].function * STUB + 8;
        int32_t found;
        memcpy(&found, word, 4);
#ifdef __aarch64__
        if (((int64_t)found << 38 >> 36) != target - word) die("a site that leads elsewhere");
        branch(word, stub);
#else
        if (word + 4 + found != target) die("a site that leads elsewhere");
        put32(word, stub - (word + 4), 1);
#endif
    }
}

static void apply(const char *path, uintptr_t bias, uintptr_t low, uintptr_t high) {
    int file = open(path, O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status)) die("a plan is not there");
    const char *plan = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    const struct plan_file *header = (const void *)plan;
    const struct plan_function *functions = (const void *)(plan + header->functions);
    const struct plan_fixup *fixups = (const void *)(plan + header->fixups);
    const unsigned char *bytes = (const void *)(plan + header->bytes);
    unsigned char *base = (unsigned char *)bias + header->base;
    size_t capacity = ((size_t)header->function_count * STUB + 4095) & ~4095ul;
    unsigned char *stubs = near(low, high, capacity);
    area[areas].start = stubs;
    area[areas++].count = header->function_count;
    if (mprotect((void *)low, high - low, PROT_READ | PROT_WRITE | PROT_EXEC)) die("mprotect");
    for (uint32_t n = 0; n < header->function_count; n++) { // before any of them changes
        const struct plan_function *f = functions + n;
        if (f->tactic != PLAN_NONE && memcmp(base + f->address + f->patch, f->original, f->replaced)) die("other bytes than the plan's");
    }
    redirect(header, base, stubs);
    for (uint32_t n = 0; n < header->function_count; n++) {
        const struct plan_function *f = functions + n;
        if (f->tactic == PLAN_NONE) continue;
        unsigned char *site = base + f->address + f->patch, *stub = stubs + n * STUB, *relocated = stub + 16;
#ifdef __aarch64__
        // Counted in x17, which is free at a function's entry but for -fipa-ra: so it is kept, and x16.
        static const uint32_t count[] = {0xa9bf47f0, 0x10ffff90, 0xb9400211, 0x11000631, 0xb9000211, 0xa8c147f0};
        // stp x16, x17, [sp, #-16]!; adr x16, count; ldr w17, [x16]; add w17, w17, #1; str w17, [x16]; ldp x16, x17, [sp], #16
        memcpy(stub + 8, count, sizeof count);
        put_bits(stub + 12, 0x60ffffe0, (uint32_t)((-12 & 3) << 29) | ((uint32_t)(-12 >> 2) & 0x7ffff) << 5);
        unsigned char *start = stub + 8 + sizeof count;
        int is_signed = f->flags & PLAN_FUNCTION_SIGNED;
        if (is_signed) memcpy(start, "\xbf\x23\x03\xd5\x3f\x23\x03\xd5", 8); // autiasp; paciasp
        relocated = start + (is_signed ? 8 : 0);
        memcpy(relocated, bytes + f->relocated, f->relocated_count);
        for (uint32_t k = 0; k < f->fixup_count; k++) {
            const struct plan_fixup *fix = fixups + f->fixup + k;
            unsigned char *target = base + fix->target, *at = relocated + fix->offset;
            switch (fix->kind) {
            case PLAN_STUB26: branch(at, stub_of(header, target, base, stubs)); break;
            case PLAN_BRANCH26: branch(at, target); break;
            case PLAN_PAGE21: page(at, target); break;
            case PLAN_LOW12: put_bits(at, 0x3ffc00, (uint32_t)((uintptr_t)target & 0xfff) << 10); break;
            case PLAN_LOAD12_4: put_bits(at, 0x3ffc00, (uint32_t)((uintptr_t)target & 0xfff) >> 2 << 10); break;
            case PLAN_LOAD12_8: put_bits(at, 0x3ffc00, (uint32_t)((uintptr_t)target & 0xfff) >> 3 << 10); break;
            default: die("a fixup of another architecture");
            }
        }
        if (f->tactic != PLAN_CALLS) {
            put_bits(site, ~0u, 0x14000000);
            branch(site, stub + 8);
        }
#else
        memcpy(stub + 8, "\xff\x05\xf2\xff\xff\xff\xeb", 7); // incl count(%rip); jmp relocated
        stub[15] = 0;
        memcpy(relocated, bytes + f->relocated, f->relocated_count);
        for (uint32_t k = 0; k < f->fixup_count; k++) {
            const struct plan_fixup *fix = fixups + f->fixup + k;
            unsigned char *target = base + fix->target;
            switch (fix->kind) {
            case PLAN_STUB32: put32(relocated + fix->offset, stub_of(header, target, base, stubs) - (relocated + fix->end), 1); break;
            case PLAN_RELATIVE32: put32(relocated + fix->offset, target - (relocated + fix->end), 1); break;
            case PLAN_LOW32: put32(relocated + fix->offset, (int64_t)(uintptr_t)target, 0); break;
            case PLAN_HIGH32: put32(relocated + fix->offset, (int64_t)((uintptr_t)target >> 32), 0); break;
            default: die("a fixup of another architecture");
            }
        }
        if (!f->relocated_count) jump(relocated, base + f->address + f->resume); // nops, calls
        unsigned char *entry = site;
        if (f->tactic == PLAN_JUMP2 || f->tactic == PLAN_NEIGHBOUR) {
            unsigned char *landing = base + f->landing;
            if (memcmp(landing, f->landing_original, 5)) die("another landing than the plan's");
            int distance = landing - (site + 2);
            if (distance != (signed char)distance) die("a landing out of reach");
            site[0] = 0xeb;
            site[1] = (unsigned char)distance;
            entry = landing;
        }
        if (f->tactic != PLAN_CALLS) jump(entry, stub + 8);
#endif
        patched++;
    }
    __builtin___clear_cache((char *)low, (char *)high);
    __builtin___clear_cache((char *)stubs, (char *)stubs + capacity);
}

static int module(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    char own[4096];
    const char *name = info->dlpi_name;
    if (!*name) {
        ssize_t count = readlink("/proc/self/exe", own, sizeof own - 1);
        if (count < 0) return 0;
        own[count] = 0;
        name = own;
    }
    char path[4096];
    if (!realpath(name, path)) snprintf(path, sizeof path, "%s", name); // under qemu, whose files lie elsewhere
    for (char *line = lines; *line; line += strlen(line) + 1) {
        char *plan = strchr(line, ' ');
        if (!plan) continue;
        size_t length = plan - line;
        if ((strncmp(line, path, length) || path[length]) && (strncmp(line, name, length) || name[length])) continue;
        uintptr_t low = ~0ul, high = 0;
        for (int n = 0; n < info->dlpi_phnum; n++) {
            const ElfW(Phdr) *segment = info->dlpi_phdr + n;
            if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
            uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & ~4095ul, end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
            if (start < low) low = start;
            if (end > high) high = end;
        }
        apply(plan + 1, info->dlpi_addr, low, (high + 4095) & ~4095ul);
        return 0;
    }
    return 0;
}

#define COUNTS_BYTES 128
static int owner;
static char *counts;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PLANS");
    int file = path ? open(path, O_RDONLY) : -1;
    ssize_t count = file < 0 ? -1 : read(file, lines, sizeof lines - 2);
    if (count < 0) return;
    close(file);
    for (ssize_t n = 0; n < count; n++)
        if (lines[n] == '\n') lines[n] = 0;
    owner = getpid();
    // Opened now: at its end a program may have forbidden itself to open anything (xz, by Landlock).
    path = getenv("COUNTS");
    file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0 && !ftruncate(file, COUNTS_BYTES)) counts = mmap(NULL, COUNTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    dl_iterate_phdr(module, NULL);
}

__attribute__((destructor)) static void end(void) {
    if (!counts || counts == MAP_FAILED || owner != getpid()) return;
    unsigned long entered = 0, calls = 0;
    for (unsigned long a = 0; a < areas; a++)
        for (unsigned long n = 0; n < area[a].count; n++) {
            uint32_t count;
            memcpy(&count, area[a].start + n * STUB, 4);
            entered += count != 0;
            calls += count;
        }
    snprintf(counts, COUNTS_BYTES, "%lu %lu %lu\n", patched, entered, calls);
}
