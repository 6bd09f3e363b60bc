// libtracer-audit.so: notes when the loader looks for, maps and has relocated each object (rtld-audit(7)). `tracer startup
// --loader` preloads it with LD_AUDIT and reads what it wrote; see LoaderAudit.swift for the lines.
//
// An audit library lives in a namespace of its own. One that needs libc brings a second libc into the process, so this one
// needs nothing: raw system calls, and no calls besides. It defines no la_symbind, so the loader binds calls as ever.
// The loader calls it under its own lock, one at a time.
#define _GNU_SOURCE
#include "loader_notes.h"
#include <asm/stat.h>
#include <link.h>
#include <stdint.h>
#include <time.h>

#if defined __x86_64__
enum {
    SYS_write = 1,
    SYS_close = 3,
    SYS_fstat = 5,
    SYS_getpid = 39,
    SYS_getppid = 110,
    SYS_clock_gettime = 228,
    SYS_openat = 257,
    SYS_prlimit64 = 302,
    NO_FOLLOW = 0400000
};

static long call(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
#elif defined __aarch64__
enum {
    SYS_write = 64,
    SYS_close = 57,
    SYS_fstat = 80,
    SYS_getpid = 172,
    SYS_getppid = 173,
    SYS_clock_gettime = 113,
    SYS_openat = 56,
    SYS_prlimit64 = 261,
    NO_FOLLOW = 0100000
};

static long call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#endif

enum { OPEN_FLAGS = 01 | 0400 | 02000 | 04000 | 02000000 | NO_FOLLOW }; // O_WRONLY, O_NOCTTY, O_APPEND, O_NONBLOCK, O_CLOEXEC
enum { AT_DIRECTORY = -100, FILE_SIZE_LIMIT = 1 };

/// The file, as the recorder has created it: nothing is created here, and nothing else that stands at its name is written to.
static const char *output;
static uint64_t output_device, output_inode;
static char lines[32 << 10];
static uint32_t used;

/// The recorder keeps its file open, so that no other file gets these numbers. A longer one than the limit is a SIGXFSZ.
static int may_append(long file) {
    struct stat now;
    struct {
        uint64_t soft, hard;
    } limit = {UINT64_MAX, UINT64_MAX};
    if (call(SYS_fstat, file, (long)&now, 0, 0) || now.st_dev != output_device || now.st_ino != output_inode) return 0;
    call(SYS_prlimit64, 0, FILE_SIZE_LIMIT, 0, (long)&limit);
    return (uint64_t)now.st_size + used <= limit.soft;
}

static void flush(void) {
    if (!output || !used) return;
    long file = call(SYS_openat, AT_DIRECTORY, (long)output, OPEN_FLAGS, 0);
    if (file >= 0) {
        if (may_append(file)) call(SYS_write, file, (long)lines, used, 0); // on failure the file ends early, and the reader sees that
        call(SYS_close, file, 0, 0, 0);
    }
    used = 0;
}

static void put(char letter) {
    if (used < sizeof lines) lines[used++] = letter;
}

static void put_number(uint64_t value) {
    char digits[20];
    int count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count) put(digits[--count]);
}

/// A line: what happened, when, and a number or a name.
static void note(char what, uint64_t number, const char *name) {
    if (!output) return;
    struct timespec now = {0, 0};
    call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0);
    uint32_t length = 0;
    while (name && name[length] && length < 4096) length++;
    if (used + length + 64 > sizeof lines) flush();
    put(what), put(' '), put_number((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec), put(' ');
    if (name)
        for (uint32_t i = 0; i < length; i++) put(name[i] == '\n' ? '?' : name[i]);
    else put_number(number);
    put('\n');
}

static uint64_t read_number(const char **text) {
    uint64_t number = 0;
    while (**text >= '0' && **text <= '9') number = number * 10 + (uint64_t)(*(*text)++ - '0');
    if (**text == ':') ++*text;
    return number;
}

/// See loader_notes.h. Only the process that PID has started: what that starts inherits the variable.
static void read_setting(const char *value) {
    uint64_t parent = read_number(&value);
    output_device = read_number(&value);
    output_inode = read_number(&value);
    if (*value == '/' && parent == (uint64_t)call(SYS_getppid, 0, 0, 0, 0)) output = value;
}

/// A setuid program, or one with capabilities of its own, must not be steered: AT_SECURE of the auxiliary vector, which lies after
/// the environment. Where the loader has taken variables out of that, more than one zero ends it (glibc, elf/dl-environ.c).
static int is_secure(char **environment) {
    while (*environment) environment++;
    while (!*environment) environment++;
    for (const ElfW(auxv_t) *entry = (void *)environment; entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_SECURE) return entry->a_un.a_val != 0;
    return 1;
}

// The loader runs an audit library's constructors before it asks for la_version, with main's arguments.
__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    (void)count, (void)arguments;
    static const char name[] = LOADER_NOTES_VARIABLE "=";
    if (!environment || is_secure(environment)) return;
    for (; *environment; environment++) {
        uint32_t i = 0;
        while (name[i] && (*environment)[i] == name[i]) i++;
        if (!name[i]) read_setting(*environment + i);
    }
}

__attribute__((visibility("default"))) unsigned int la_version(unsigned int version) {
    note('V', (uint64_t)call(SYS_getpid, 0, 0, 0, 0), 0);
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

__attribute__((visibility("default"))) char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag) {
    (void)cookie;
    if (flag == LA_SER_ORIG) note('S', 0, name);
    return (char *)name;
}

__attribute__((visibility("default"))) unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    (void)cookie;
    if (space == LM_ID_BASE) note('O', 0, map->l_name);
    return 0; // no symbol bindings to or from it are of interest
}

/// All of the start is relocated: that was the last of it. What the program loads later, its threads, its forked children and
/// the limits that it may have set itself by then are no matter of ours.
__attribute__((visibility("default"))) void la_activity(uintptr_t *cookie, unsigned int flag) {
    (void)cookie;
    note('A', flag, 0);
    if (flag != LA_ACT_CONSISTENT) return;
    flush();
    output = 0;
}
