"""Arguments and results (record --arguments): what a program passes and gets, against what it prints itself; pointers that lead nowhere."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess

import build
import harness
import suite
import tracefile
from harness import Skipped, expect

PROTOTYPES = r"""
# What the subject calls.
enum colour: RED=0 GREEN=1 BLUE=-7
flags options: A=0/3 B=1/3 C=2/3 D=4 E=24 F=8
take_chars(a: char, b: uchar, c: bool) -> char
take_shorts(a: short, b: ushort) -> short
take_ints(a: int, b: uint, c: i32, d: u32) -> int
take_longs(a: long, b: ulong, c: size_t, d: ssize_t) -> long
take_many(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: long, j: char, k: ushort, l: u64) -> u64
take_wide(a: long, b: long, c: long, d: long, e: long, f: long, g: long, h: long, i: long, j: long) -> long
take_pointer(a: pointer) -> pointer
take_string(a: string) -> int
take_strings(a: string, n: int, b: string)
take_text(a: string, n: int, c: short) -> int
take_word(a: string, n: u64)
take_char(a: string, n: uchar) -> int errno
take_names(c: colour, o: options, only_d: int when o has D E, only_red: int when c is RED, m: octal, h: hex4) -> colour
take_nothing()
fails(with: int) -> int errno
fails_long(with: int) -> long errno
fails_null(with: int) -> pointer errno at 0
is_error(number: int) -> error
"""
LIBRARY = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include "values.h"
#define OPAQUE() __asm__ volatile("" ::: "memory")
// Or a compiler that sees both sides does not pass it.
#define USED(value) __asm__ volatile("" ::"r"(value))
APART signed char take_chars(signed char a, unsigned char b, _Bool c) { OPAQUE(); return a - b + c; }
APART short take_shorts(short a, unsigned short b) { OPAQUE(); return a + b; }
APART int take_ints(int a, unsigned b, int32_t c, uint32_t d) { OPAQUE(); return a + (int)b + c + (int)d; }
APART long take_longs(long a, unsigned long b, size_t c, ssize_t d) { OPAQUE(); return a ^ (long)b ^ (long)c ^ d; }
APART uint64_t take_many(int a, int b, int c, int d, int e, int f, int g, int h, long i, signed char j, unsigned short k, uint64_t l) {
    OPAQUE();
    return (uint64_t)(a + b + c + d + e + f + g + h + i + j + k) + l;
}
APART long take_wide(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) { OPAQUE(); return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j; }
APART void *take_pointer(void *a) { OPAQUE(); return a; }
APART int take_string(const char *a) { OPAQUE(); return a && (uintptr_t)a > 65536 ? (int)strlen(a) : -1; }
APART void take_strings(const char *a, int n, const char *b) { USED(a); USED(n); USED(b); }
APART int take_text(const char *a, int n, short c) { USED(a); return n + c; }
APART void take_word(const char *a, uint64_t n) { USED(a); USED(n); }
APART int take_char(const char *a, unsigned char n) { USED(a); errno = 2; return n & 1 ? -1 : n; }
const char edges[8192] __attribute__((aligned(4096))) = {[0 ... 4094] = 'e', [4096 ... 8190] = 'f'};
APART int take_names(int c, unsigned o, int d, int red, unsigned m, unsigned h) { USED(c); USED(o); USED(d); USED(red); USED(m); USED(h); return c; }
APART void take_nothing(void) { OPAQUE(); }
APART int fails(int with) { OPAQUE(); errno = with; return with ? -1 : 5; }
APART long fails_long(int with) { OPAQUE(); errno = with; return with ? -1 : 1L << 40; }
APART void *fails_null(int with) { OPAQUE(); errno = with; return with ? 0 : (void *)0x1000; }
APART int is_error(int number) { OPAQUE(); return number; }
"""
HEADER = r"""
#include <stdint.h>
#include <sys/types.h>
#define APART __attribute__((noinline, noclone, visibility("default")))
signed char take_chars(signed char, unsigned char, _Bool);
short take_shorts(short, unsigned short);
int take_ints(int, unsigned, int32_t, uint32_t), take_string(const char *), take_names(int, unsigned, int, int, unsigned, unsigned), fails(int), is_error(int);
long take_longs(long, unsigned long, size_t, ssize_t), fails_long(int), take_wide(long, long, long, long, long, long, long, long, long, long);
uint64_t take_many(int, int, int, int, int, int, int, int, long, signed char, unsigned short, uint64_t);
void *take_pointer(void *), *fails_null(int);
void take_strings(const char *, int, const char *), take_nothing(void), take_word(const char *, uint64_t);
int take_text(const char *, int, short), take_char(const char *, unsigned char);
extern const char edges[8192];
"""
MAIN = r"""
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "values.h"
static char *text(char *to, const char *from) { // as tracer prints it
    char *end = to;
    size_t length = strlen(from);
    *end++ = '"';
    for (size_t n = 0; n < length && n < 512; n++) {
        if (from[n] == '\n') end += sprintf(end, "\\n");
        else if (from[n] == '\t') end += sprintf(end, "\\t");
        else if (from[n] == '"' || from[n] == '\\') end += sprintf(end, "\\%c", from[n]);
        else if ((unsigned char)from[n] < 32) end += sprintf(end, "\\%03o", from[n]);
        else *end++ = from[n];
    }
    end += sprintf(end, "\"%s", length > 512 ? "..." : "");
    return to;
}
static const char *number(int n) {
    static char buffer[16];
    sprintf(buffer, "%d", n);
    return n & 1 ? "-1 ENOENT" : buffer;
}
static const char *const texts[] = {"", "a", "seven c", "eight ch", "a path/with spaces", "tab\tline\nquote\"back\\slash\001", "gr\303\274n \342\202\254"};
static void words(long n) {
    printf("take_chars(%d, %d, %d) = %d\n", (signed char)n, (unsigned char)(n * 3), (int)(n & 1), (int)take_chars(n, n * 3, n & 1));
    printf("take_shorts(%d, %d) = %d\n", (short)(n * 321), (unsigned short)(n * 999), (int)take_shorts(n * 321, n * 999));
    printf("take_ints(%d, %u, %d, %u) = %d\n", (int)(n * 77777), (unsigned)(n * 1234567), (int)-n, (unsigned)-n,
           take_ints(n * 77777, n * 1234567, -n, -n));
    printf("take_longs(%ld, %lu, %zu, %zd) = %ld\n", n << 40, ~(unsigned long)n, (size_t)n * n, (ssize_t)(LONG_MIN + n),
           take_longs(n << 40, ~(unsigned long)n, (size_t)n * n, LONG_MIN + n));
    printf("take_many(%d, -2, 3, -4, 5, -6, 7, %d, %ld, %d, %d, %" PRIu64 ") = %" PRIu64 "\n", (int)n, (int)-n, n << 33, (signed char)-n,
           (unsigned short)~n, ~(uint64_t)0 - n, take_many(n, -2, 3, -4, 5, -6, 7, -n, n << 33, -n, ~n, ~(uint64_t)0 - n));
    void *pointer = (void *)(uintptr_t)(n * 0x123456789abcdef);
    if (pointer) printf("take_pointer(%p) = %p\n", pointer, take_pointer(pointer));
}
int main(void) {
    static char buffer[4096];
    const long numbers[] = {0, 1, -1, 5, 127, 128, 255, 32767, 65535, 1L << 31, INT_MIN, LONG_MAX};
    for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) words(numbers[n]);
    take_pointer(0);
    printf("take_pointer(NULL) = NULL\n");
    for (unsigned n = 0; n < sizeof texts / sizeof *texts; n++) printf("take_string(%s) = %d\n", text(buffer, texts[n]), take_string(texts[n]));
    for (long n = 1; n < 100000; n *= 7)
        printf("take_wide(%ld, %ld, %ld, %ld, %ld, %ld, %ld, %ld, %ld, %ld) = %ld\n", n, -n, n << 8, ~n, n << 50, n * n, 0L, -1L, n + 3, LONG_MIN + n,
               take_wide(n, -n, n << 8, ~n, n << 50, n * n, 0, -1, n + 3, LONG_MIN + n));
    for (int n = 0; n < 520; n += n < 130 ? 1 : 29) {
        char *long_text = malloc(n + 1), own[600];
        for (int k = 0; k < n; k++) own[k] = long_text[k] = 'a' + (n + k) % 26;
        own[n] = long_text[n] = 0;
        printf("take_string(%s) = %d\n", text(buffer, long_text), take_string(long_text));
        printf("take_string(%s) = %d\n", text(buffer, own), take_string(own));
        if (n < 130) { // a string that is written from where it is, with others of all widths behind it
            printf("take_text(%s, %d, %d) = %d\n", text(buffer, own), -n, n * 300 - 32000, take_text(own, -n, n * 300 - 32000));
            printf("take_word(%s, %" PRIu64 ")\n", text(buffer, own), ~(uint64_t)n << 7), take_word(own, ~(uint64_t)n << 7);
            printf("take_char(%s, %d) = %s\n", text(buffer, own), n, number(n)), take_char(own, n);
        }
        if (n < 100) {
            take_strings(long_text, n, own);
            printf("take_strings(%s, %d, ", text(buffer, long_text), n);
            printf("%s)\n", text(buffer, own));
        }
        free(long_text);
    }
    for (int n = 0; n < 60; n++) { // up to the last byte of a page that lasts; the next one is not the string's
        printf("take_string(%s) = %d\n", text(buffer, edges + 4095 - n), take_string(edges + 4095 - n));
        printf("take_text(%s, 7, 8) = 15\n", text(buffer, edges + 4095 - n)), take_text(edges + 4095 - n, 7, 8);
    }
    take_string(0);
    printf("take_string(NULL) = -1\n");
    take_string((char *)16);
    printf("take_string(0x10?) = -1\n");
    take_strings("one", 2, "three");
    printf("take_strings(\"one\", 2, \"three\")\n");
    printf("take_names(GREEN, B|D, 9, 0755, 0xff) = GREEN\n"), take_names(1, 5, 9, 8, 0755, 255);
    printf("take_names(RED, A|E, 9, 8, 0, NULL) = RED\n"), take_names(0, 24, 9, 8, 0, 0);
    printf("take_names(BLUE, C|F|0x100, 01, 0xdeadbeef) = BLUE\n"), take_names(-7, 0x10a, 9, 8, 1, 0xdeadbeef);
    printf("take_names(77, A, 0, 0x1) = 77\n"), take_names(77, 0, 0, 0, 0, 1);
    take_nothing();
    printf("take_nothing()\n");
    for (int n = 0; n < 4; n++) {
        const char *const names[] = {0, "EPERM", "ENOENT", "ESRCH"};
        errno = 99;
        fails(n);
        if (n) printf("fails(%d) = -1 %s\n", n, names[n]); else printf("fails(0) = 5\n");
        if (errno != n) return 3; // the agent has changed it
        fails_long(n);
        if (n) printf("fails_long(%d) = -1 %s\n", n, names[n]); else printf("fails_long(0) = 1099511627776\n");
        fails_null(n);
        if (n) printf("fails_null(%d) = NULL %s\n", n, names[n]); else printf("fails_null(0) = 0x1000\n");
        is_error(n);
        if (n) printf("is_error(%d) = %s\n", n, names[n]); else printf("is_error(0) = 0\n");
    }
    return 0;
}
"""
def driver(compiler):
    return build.DRIVERS[compiler][".c"].split()[0]


OURS = ("take_", "fails", "is_error")


class Arguments(suite.Test):
    def plan(self, *lists, prototypes=None, more=()):
        """The file that tells the agent what to record, as `record` makes it. Returns its path."""
        options = [word for text in lists for word in ("--arguments", text)] + list(more)
        if prototypes:
            options += ["--prototypes", self.write("prototypes", prototypes)]
        said = self.tool("record", "--force", "--quiet", "--no-states", "-o", self.path("plan.trace"), *options, "--", "env").stdout
        return re.search(r"^TRACER_ARGUMENTS=(.*)$", said, re.MULTILINE)[1]

    def lines(self, path, ours=OURS):
        """Calls as `replay` shows them, in the order of their beginnings, without what descriptors are open on (strace.py looks at that)."""
        text = re.sub(r"(?<=[(\d ]\d|[^\w]\d)<(?:/|pipe:|socket:|anon_inode:)[^<>]*>", "", self.tool("replay", path, "--depth", "0").stdout)
        calls = [re.match(r" *-?[\d.]+ {2} *(?:[\d.]+ [a-z]+|entered)? +(\S.*?) \[[^\]]*\]", line) for line in text.splitlines()]
        return [call[1] for call in calls if call and call[1].startswith(ours)]

    def compare(self, run, path):
        said = run.stdout.decode().splitlines()
        if build.ARCHITECTURE == "aarch64":  # the emulator has no process_vm_readv: strings that are not on the stack are there by their addresses
            said = [re.sub(r'"(\\.|[^"\\])*"(\.\.\.)?', "STRING", line).replace("0x10?", "STRING") for line in said]
        found = self.lines(path)
        if build.ARCHITECTURE == "aarch64":
            found = [re.sub(r"0x[0-9a-f]+\?", "STRING", line) for line in found]
            texts = r'("(\\.|[^"\\])*"(\.\.\.)?|0x10)'
            fit = [re.fullmatch(re.escape(line).replace("STRING", texts), own) for line, own in zip(found, run.stdout.decode().replace("0x10?", "0x10").splitlines())]
            found = [normal if does else line for line, normal, does in zip(found, said, fit)] + found[len(fit):]
        different = [(a, b) for a, b in zip(said, found) if a != b]
        expect(said == found, f"{len(said)} calls, {len(found)} in the trace; the first that differ: {different[:3]}")


def values(compiler, optimization, *options, apart=True, **variables):
    def values_are_what_the_program_says(test):
        test.write("values.h", HEADER)
        if apart:
            test.compile("libvalues.so", optimization, "-shared", "-fPIC", f"-I{test.made}", source=LIBRARY, compiler=driver(compiler))
            program = test.compile("values", optimization, f"-I{test.made}", "-L.", "-lvalues", "-Wl,-rpath,$ORIGIN", *options, source=MAIN, compiler=driver(compiler))
        else:
            program = test.compile("values", optimization, f"-I{test.made}", *options, source=MAIN + LIBRARY, compiler=driver(compiler))
            harness.plan(test.settings, program, test.made)
        path = test.plan("take_*,fails*,is_error", prototypes=PROTOTYPES)
        run = test.execute([program], TRACER_ARGUMENTS=path, **variables)
        trace = test.checked_trace()
        test.compare(run, trace.path)
        counted = sum(node.name.startswith(OURS) and node.arguments is not None for node in trace.nodes())
        expect(counted == len(run.stdout.splitlines()), f"the independent decoder has the arguments of {counted} calls")
    return values_are_what_the_program_says


FAULTS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "values.h"
static long page;
static volatile int faults, stop;
static void handler(int number) { (void)number; faults++; _exit(5); }
static void passed(const char *text) { take_strings(text, 1, text); }
static void on_signal(int number) { (void)number; passed("on the signal stack"); passed((char *)24); }
static char *pages(int count, int protection) { return mmap(0, count * page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void once(void) {
    char *two = pages(2, PROT_READ | PROT_WRITE);
    munmap(two + page, page);
    memset(two, 'x', page);
    two[page - 1] = 0, passed(two + page - 6);   // ends with the page
    two[page - 1] = 'y', passed(two + page - 6); // does not end
    passed(two + page);
    passed(pages(1, PROT_NONE));
    passed((char *)0), passed((char *)1), passed((char *)-1), passed((char *)0x8000000000000000), passed((char *)0x00ff000000000000);
    two = pages(2, PROT_READ | PROT_WRITE);
    memset(two, 'z', 2 * page);
    two[page + 3] = 0, passed(two + page - 4); // across two pages
}
static char *moving;
static void *mover(void *unused) {
    while (!stop) {
        char *here = mmap(moving, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (here != moving) abort();
        strcpy(here + page - 8, "steady");
        munmap(here, page);
    }
    return unused;
}
int main(int count, char **arguments) {
    page = sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigset_t all;
    sigfillset(&all);
    int number[] = {SIGSEGV, SIGBUS};
    for (int n = 0; n < 2; n++) {
        if (!strcmp(arguments[1], "handled")) sigaction(number[n], &action, 0);
        if (!strcmp(arguments[1], "ignored")) signal(number[n], SIG_IGN);
    }
    if (!strcmp(arguments[1], "blocked")) sigprocmask(SIG_BLOCK, &all, 0);
    once();
    stack_t stack = {.ss_sp = malloc(8192), .ss_size = 8192};
    sigaltstack(&stack, 0);
    struct sigaction usual = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &usual, 0);
    if (strcmp(arguments[1], "blocked")) raise(SIGUSR1);
    if (count > 2) {
        moving = pages(1, PROT_READ | PROT_WRITE);
        pthread_t thread;
        pthread_create(&thread, 0, mover, 0);
        for (long n = atol(arguments[2]); n; n--) take_string_unread(moving + page - 8);
        stop = 1;
        pthread_join(thread, 0);
    }
    printf("%d\n", faults);
    return 0;
}
"""
NO_FAULT = "APART void take_string_unread(const char *a) { USED(a); }\n"


def faulty(case):
    case.write("values.h", HEADER + "void take_string_unread(const char *);\n")
    case.compile("libvalues.so", "-O2", "-shared", "-fPIC", f"-I{case.made}", source=LIBRARY + NO_FAULT, compiler=driver("gcc"))
    return case.compile("faults", "-O2", f"-I{case.made}", "-L.", "-lvalues", "-lpthread", "-Wl,-rpath,$ORIGIN", source=FAULTS, compiler=driver("gcc"))


def pointers_that_lead_nowhere_hurt_nobody(test):
    program = faulty(test)
    path = test.plan("take_strings", prototypes=PROTOTYPES)
    for disposition in ("handled", "blocked", "ignored", "default"):
        test.forget_traces()
        run = test.execute([program, disposition], TRACER_ARGUMENTS=path)
        expect(run.stdout == b"0\n", f"SIGSEGV {disposition}: {run.stdout}")
        found = [re.sub(r"0x[0-9a-f]+\?", "?", line) for line in test.lines(test.checked_trace().path)]
        texts = ['"xxxxx"', '"xxxxxy"?', "?", "?", "NULL", "?", "?", "?", "?", '"zzzzzzz"'] + ([] if disposition == "blocked" else ['"on the signal stack"', "?"])
        if build.ARCHITECTURE == "aarch64":
            texts = ["NULL" if text == "NULL" else "?" for text in texts]
        wanted = [f"take_strings({text}, 1, {text})" for text in texts]
        expect(found == wanted, f"SIGSEGV {disposition}: {[pair for pair in zip(wanted, found) if pair[0] != pair[1]][:3]}, {len(found)} calls")


SUBJECTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "subjects")


def stepped(*words, **variables):
    def a_signal_at_every_instruction_changes_nothing(test):
        """subjects/single_step.c, with the arguments and results of the calls that are stepped through and of those that the handler makes."""
        if build.ARCHITECTURE != "x86_64":
            raise Skipped("the subject knows the registers of x86_64")
        source = os.path.join(SUBJECTS, "single_step.c")
        test.compile("libstepped.so", "-O2", "-shared", "-fPIC", "-DLIB_stepped", f"-I{SUBJECTS}", source)
        program = test.compile("stepped", "-O2", f"-I{SUBJECTS}", source, "-L.", "-lstepped", "-pthread", "-Wl,-z,now", "-Wl,-rpath,$ORIGIN")
        path = test.plan("step_inner(value: long) -> long, step_outer(value: long) -> long errno, step_handler()")
        run = test.execute([program, *words], TRACER_ARGUMENTS=path, **variables)
        # The debugger has a trace, too, of no calls of ours.
        traces = [trace for trace in test.checked_traces() if trace.count("step_inner")]
        expect(len(traces) == 1, f"{len(traces)} traces have the calls")
        trace, = traces
        for name, (low, high) in run.counts.items():
            expect(low <= trace.count(name) <= high, f"{trace.count(name)} calls of {name}, the program counted {low} to {high}")
        added = {"step_inner": lambda value: value + 1, "step_outer": lambda value: 2 * value + 2}
        calls = 0
        for node in trace.nodes():
            if node.name not in added or node.mark:
                continue
            calls += 1
            expect(node.arguments is not None and node.result is not None, f"{node.name} lacks its arguments or its result: {node.arguments}, {node.result}")
            value, result = (struct.unpack_from("<q", data[1])[0] for data in (node.arguments, node.result))
            expect(value in (1, 2, 3, 41, 42, 43) and result == added[node.name](value), f"{node.name}({value}) = {result}")
        expect(calls > 200, f"only {calls} calls")
    return a_signal_at_every_instruction_changes_nothing


def unmapped(calls):
    def pages_that_another_thread_unmaps_are_read_whole_or_not_at_all(test):
        program = faulty(test)
        path = test.plan("take_string_unread(a: string)")
        for disposition in ("handled", "blocked"):
            test.forget_traces()
            run = test.execute([program, disposition, str(calls)], TRACER_ARGUMENTS=path)
            expect(run.stdout == b"0\n", f"SIGSEGV {disposition}: {run.stdout}")
            path_of_trace, = (os.path.join(test.traces, name) for name in os.listdir(test.traces))
            found = [re.sub(r"0x[0-9a-f]+\?", "?", line) for line in test.lines(path_of_trace, ("take_string_unread",))]
            expect(len(found) == calls, f"{len(found)} calls")
            # A new page is empty until the other thread has written to it.
            others = set(found) - {f"take_string_unread({text})" for text in ('"steady"', "?", '""', '"s"', '"st"', '"ste"', '"stea"', '"stead"')}
            expect(not others, f"SIGSEGV {disposition}: {sorted(others)[:3]}")
    return pages_that_another_thread_unmaps_are_read_whole_or_not_at_all


def strings_are_read_wherever_they_lie(test):
    """On stacks, in segments that last and in such that are unmapped, at ends of pages, in memory that was readable before and is no longer."""
    program = faulty_places(test)
    run = test.execute([program, "an argument"], TRACER_ARGUMENTS=test.plan("take_string_unread(a: string)"))
    expect(run.stdout == b"0 faults, 3 of its own\n", f"{run.stdout}")
    found = [re.sub(r"0x[0-9a-f]+\?", "?", line)[len("take_string_unread("):-1] for line in test.lines(test.checked_trace().path, ("take_string_unread",))]
    once = ['"of the program"', '"of a library"', '"on the stack"', '"on the heap"', '"an argument"', '"of a library that goes"']
    wanted = once * 3 + ["?", '"of a library that goes"', "?", '"in a coroutine"', '"now readable"', "?", '"now readable"', "?", "?", '"to the end"', '"on a thread"']
    expect(found == wanted, f"{len(found)} strings; the first that differ: {[pair for pair in zip(wanted, found) if pair[0] != pair[1]][:3]}")


PLACES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "values.h"
extern const char in_library[];
static volatile int faults, own;
static char *page;
static void repair(int number, siginfo_t *information, void *context) {
    (void)number, (void)context;
    faults += information->si_addr != page;
    own++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
static void *thread(void *unused) {
    char text[] = "on a thread";
    take_string_unread(text);
    return unused;
}
static ucontext_t outer, inner;
static void coroutine(void) {
    char text[] = "in a coroutine";
    take_string_unread(text);
}
int main(int count, char **arguments) {
    (void)count;
    struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO}, now;
    sigaction(SIGSEGV, &action, 0);
    char text[] = "on the stack", *heap = strdup("on the heap");
    void *library = dlopen(PASSING, RTLD_NOW);
    const char *passing = dlsym(library, "passing");
    for (int n = 0; n < 3; n++) {
        take_string_unread("of the program"), take_string_unread(in_library), take_string_unread(text), take_string_unread(heap);
        take_string_unread(arguments[1]), take_string_unread(passing);
    }
    dlclose(library);
    take_string_unread(passing);
    library = dlopen(PASSING, RTLD_NOW);
    take_string_unread(dlsym(library, "passing"));
    passing = dlsym(library, "passing");
    dlclose(library);
    take_string_unread(passing);
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    pthread_join(other, 0);
    getcontext(&inner);
    inner.uc_stack.ss_sp = malloc(65536), inner.uc_stack.ss_size = 65536, inner.uc_link = &outer;
    makecontext(&inner, coroutine, 0);
    swapcontext(&outer, &inner);
    page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    for (int n = 0; n < 2; n++) { // the program's own fault, which its handler repairs, and a string there before that
        strcpy(page, "now readable");
        take_string_unread(page);
        mprotect(page, 4096, PROT_NONE);
        take_string_unread(page);
        *(volatile char *)page;
        if (*(volatile char *)page != 'n') return 3;
    }
    mprotect(page, 4096, PROT_NONE);
    take_string_unread(page);
    *(volatile char *)page;
    strcpy(page + 4096 - 11, "to the end");
    take_string_unread(page + 4096 - 11);
    sigaction(SIGSEGV, 0, &now);
    if (now.sa_sigaction != repair || (now.sa_flags & ~0x04000000) != SA_SIGINFO) return 4;
    printf("%d faults, %d of its own\n", faults, own);
    return 0;
}
"""


def faulty_places(case):
    case.write("values.h", HEADER + "void take_string_unread(const char *);\n")
    case.compile("libvalues.so", "-O2", "-shared", "-fPIC", f"-I{case.made}", source=LIBRARY + NO_FAULT + 'const char in_library[] = "of a library";\n', compiler=driver("gcc"))
    case.compile("libpassing.so", "-shared", "-fPIC", source='const char passing[] = "of a library that goes";\n', compiler=driver("gcc"))
    return case.compile("places", "-O2", f"-I{case.made}", f'-DPASSING="{case.path("libpassing.so")}"', "-L.", "-lvalues", "-lpthread", "-ldl", "-Wl,-rpath,$ORIGIN",
                        source=PLACES, compiler=driver("gcc"))


def a_filter_of_system_calls_leaves_addresses(test):
    """A filter that was there before the program may end it for a system call that it does not know: none is tried."""
    test.write("values.h", HEADER)
    test.compile("libvalues.so", "-O2", "-shared", "-fPIC", f"-I{test.made}", source=LIBRARY)
    program = test.compile("program", f"-I{test.made}", "-L.", "-lvalues", "-Wl,-rpath,$ORIGIN", source='#include "values.h"\nint main(void) { return take_string("text") - 4; }')
    confined = test.compile("confined", source=r"""
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int count, char **arguments) {
            struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog filter = {sizeof code / sizeof *code, code};
            (void)count;
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
            execv(arguments[1], arguments + 1);
            return 9;
        }""")
    run = subprocess.run([confined, program], env=test.traced_environment(TRACER_ARGUMENTS=test.plan("take_string(a: string) -> int")), cwd=test.made, capture_output=True, text=True)
    # The agent is in the wrapper, too: it records nothing once the filter is there.
    said = "tracer: strings are recorded by their addresses alone: a filter of system calls is in force\n"
    expect(run.returncode == 0 and said in run.stderr, f"{harness.describe(run.returncode)}: {run.stderr}")
    path, = (os.path.join(test.traces, name) for name in os.listdir(test.traces) if name.startswith("program"))
    lines = test.lines(path)
    expect(len(lines) == 1 and re.fullmatch(r"take_string\(0x[0-9a-f]+\?\) = 4", lines[0]), f"{lines}")


def what_a_killed_process_leaves_is_readable_at_every_word(test):
    """Zeros from each word on: what is there then is said, and nothing else."""
    test.write("values.h", HEADER)
    test.compile("libvalues.so", "-O2", "-shared", "-fPIC", f"-I{test.made}", source=LIBRARY)
    program = test.compile("killed", f"-I{test.made}", "-L.", "-lvalues", "-Wl,-rpath,$ORIGIN", source=r"""
        #include <signal.h>
        #include "values.h"
        int main(void) {
            take_ints(1, 2, 3, 4), take_string("a string of some length"), take_nothing(), fails(2), take_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
            take_strings("one", 2, "three"), take_longs(-1, 2, 3, 4), raise(SIGKILL);
            return 0;
        }""")
    run = test.execute([program], status=-signal.SIGKILL, TRACER_ARGUMENTS=test.plan("take_*,fails*", prototypes=PROTOTYPES))
    expect(not run.stderr, f"{run.stderr}")
    trace = test.checked_trace()
    whole = test.lines(trace.path)
    expect(whole == ["take_ints(1, 2, 3, 4) = 10", 'take_string("a string of some length") = 23', "take_nothing()", "fails(2) = -1 ENOENT",
                     "take_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) = 78", 'take_strings("one", 2, "three")', f"take_longs(-1, 2, 3, 4) = {-1 ^ 2 ^ 3 ^ 4}"], f"{whole}")
    data = bytearray(suite.read_bytes(trace.path))
    (offset, chunk), = ((offset, chunk) for offset, chunk in trace.chunks if chunk["kind"] == 1)
    start, end = offset + chunk["body_offset"], offset + chunk["byte_count"]
    used = next(at for at in range(end - 8, start, -8) if data[at:at + 8] != bytes(8)) + 8
    expect((used - start) // 8 > 40, f"{(used - start) // 8} words")
    # A call that is cut before its last word is not there; one that failed, whose errno is with its exit, has no result if it is cut before that.
    without = [line.split(" = ")[0] for line in whole]
    for cut in range(start, used, 8):
        path = suite.write(test.path("cut.trace"), bytes(data[:cut]) + bytes(end - cut) + bytes(data[end:]))
        decoded = tracefile.Trace(path)
        expect(not decoded.anomalies, f"word {(cut - start) // 8}: {decoded.anomalies[:2]}")
        found = test.lines(path)
        expect(len(found) <= len(whole) and all(line in (a, b) for line, a, b in zip(found, whole, without)), f"word {(cut - start) // 8}: {found}")


def a_call_takes_no_more_words_than_its_values_need(test):
    test.write("values.h", HEADER)
    test.compile("libvalues.so", "-O2", "-shared", "-fPIC", f"-I{test.made}", source=LIBRARY, compiler=driver("gcc"))
    program = test.compile("program", "-O2", f"-I{test.made}", "-L.", "-lvalues", "-Wl,-rpath,$ORIGIN", compiler=driver("gcc"), source=r"""
        #include "values.h"
        int main(int count, char **words) {
            for (int n = 0; n < 1000; n++) switch (words[1][5]) {
                case 'i': take_ints(n, 2, 3, 4); break;
                case 'l': take_longs(n, 2, 3, 4); break;
                case 'w': take_word("a string of 20 bytes", n); break;
                default: is_error(n);
                }
            return count != 2;
        }""")
    # Seven bytes in a DATA word, four in the word that says whose they are, likewise of the result, and one word for the call.
    for name, most in {"take_ints": 2 + 1 + 1 + 1, "take_longs": 4 + 1 + 1 + 1 + 1, "take_word": 4 + 1 + 1, "is_error": 1 + 1 + 1}.items():
        test.forget_traces()
        test.execute([program, name], TRACER_ARGUMENTS=test.plan(name, prototypes=PROTOTYPES))
        trace = test.checked_trace()
        expect(trace.count(name) == 1000 and all(node.arguments and (node.result or name == "take_word") for node in trace.nodes() if node.name == name), f"{trace.count(name)} calls of {name}")
        words = sum(any(trace.data[at:at + 8]) for offset, chunk in trace.chunks if chunk["kind"] == 1
                    for at in range(offset + chunk["body_offset"], offset + chunk["byte_count"], 8))
        # A base now and then; a call that was interrupted for long ends with a word of its own.
        expect(words < (most + 0.2) * 1000, f"{words / 1000} words a call of {name}, not {most}")


def a_trace_needs_nothing_but_itself(test):
    test.write("values.h", HEADER)
    test.compile("libvalues.so", "-O2", "-shared", "-fPIC", f"-I{test.made}", source=LIBRARY)
    program = test.compile("program", f"-I{test.made}", "-L.", "-lvalues", "-Wl,-rpath,$ORIGIN", source='#include "values.h"\nint main(void) { take_names(1, 5, 9, 8, 0755, 255); return 0; }')
    prototypes = test.write("mine", PROTOTYPES)
    home = test.environment(XDG_CACHE_HOME=test.path("cache"))
    test.tool("record", "--quiet", "-o", test.path("a.trace"), "--arguments", "take_names", "--prototypes", prototypes, "--", program, env=home)
    shutil.rmtree(test.path("cache"))
    os.unlink(prototypes)
    expect(test.lines(test.path("a.trace")) == ["take_names(GREEN, B|D, 9, 0755, 0xff) = GREEN"], f"{test.lines(test.path('a.trace'))}")
    # The user's own file is found without asking.
    os.makedirs(test.path("config/tracer"))
    test.write("config/tracer/prototypes", "library any\ntake_names(mine: int) -> int\n")
    test.tool("record", "--quiet", "-o", test.path("b.trace"), "--arguments", "take_names", "--", program, env={**home, "XDG_CONFIG_HOME": test.path("config")})
    expect(test.lines(test.path("b.trace")) == ["take_names(1) = 1"], f"{test.lines(test.path('b.trace'))}")
    objects = [json.loads(line) for line in test.tool("replay", "--json", test.path("b.trace")).stdout.splitlines()]
    call, = (line for line in objects if line["name"] == "take_names")
    expect(call["arguments"] == {"mine": 1} and call["result"] == 1 and "errno" not in call and call["module"] == "libvalues.so", f"{call}")


def functions_of_well_known_libraries_are_known_by_name(test):
    """As the library's of the name: a function of the program's own that is called so is another."""
    if not os.path.exists("/usr/bin/python3"):
        raise Skipped("no python3 of the distribution")
    script = test.write("script.py", r"""
import hashlib, sqlite3, zlib
base = sqlite3.connect(":memory:")
base.execute("CREATE TABLE made (number INTEGER)")
base.execute("INSERT INTO made VALUES (?)", (4711,))
print(base.execute("SELECT number FROM made").fetchall())
zlib.crc32(b"some bytes"), zlib.decompress(zlib.compress(b"more bytes" * 100))
hashlib.sha256(b"text").digest()
""")
    test.tool("record", "--quiet", "--no-files", "-o", test.path("a.trace"), "--arguments", "sqlite3_*,*flate*,crc32,EVP_*", "--", "/usr/bin/python3", script)
    lines = re.sub(r"0x[0-9a-f]+", "AT", "\n".join(test.lines(test.path("a.trace"), ("sqlite3_", "deflate", "inflate", "crc32", "EVP_"))))
    for wanted in (r'sqlite3_open_v2\(":memory:", AT, SQLITE_OPEN_READWRITE\|SQLITE_OPEN_CREATE.*, NULL\) = SQLITE_OK$', r'sqlite3_prepare_v[23]\(AT, "INSERT INTO made VALUES \(\?\)", .*\) = SQLITE_OK$',
                   r"sqlite3_bind_int64\(AT, 1, 4711\) = SQLITE_OK$", r"sqlite3_step\(AT\) = SQLITE_ROW$", r"sqlite3_step\(AT\) = SQLITE_DONE$", r"sqlite3_column_int64\(AT, 0\) = 4711$",
                   r"deflate\(AT, Z_FINISH\) = Z_STREAM_END$", r"inflate\(AT, Z_[A-Z_]+\) = Z_STREAM_END$", r"crc32\((AT|NULL|0), AT, 10\) = AT$"):
        expect(re.search(wanted, lines, re.M), f"nothing is {wanted}: {lines[:3000]}")
    # libcrypto is linked in one way or another.
    expect("EVP_" in lines, f"no function of libcrypto: {lines[-500:]}")
    test.compile("libown.so", "-shared", "-fPIC", "-Wl,-soname,libown.so", source="double compress(double x) { return x / 2; }\nint sqlite3_step(double x) { return x > 1; }")
    program = test.compile("program", "-L.", "-lown", "-Wl,-rpath,$ORIGIN", source="double compress(double); int sqlite3_step(double);\nint main(void) { return compress(3) + sqlite3_step(0.5) != 1.5; }")
    test.tool("record", "--quiet", "--no-files", "-o", test.path("b.trace"), "--arguments", "compress,sqlite3_*", "--", program)
    calls = [json.loads(line) for line in test.tool("replay", "--json", test.path("b.trace")).stdout.splitlines()]
    found = [(call["name"], "arguments" in call or "result" in call) for call in calls if call["name"] in ("compress", "sqlite3_step")]
    expect(found == [("compress", False), ("sqlite3_step", False)], f"{found}")
    # A library's own prototypes may be the user's, too.
    mine = test.write("mine", "library libown\ncompress(x: double) -> double\nlibrary libother\nsqlite3_step(x: double) -> int\n")
    test.tool("record", "--quiet", "--no-files", "-o", test.path("c.trace"), "--prototypes", mine, "--arguments", "compress,sqlite3_step", "--", program)
    expect(test.lines(test.path("c.trace"), ("compress", "sqlite3_step")) == ["compress(3.0) = 1.5", "sqlite3_step()"], f"{test.lines(test.path('c.trace'), ('compress', 'sqlite3_step'))}")


def programs_that_are_executed_are_named(test):
    """Their functions are called by the agent's own, which may give the program another environment."""
    program = test.compile("program", source=r"""
        #include <spawn.h>
        #include <stddef.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        int main(void) {
            char *words[] = {"true", "word", NULL};
            pid_t child;
            execve("/nowhere/true", words, environ);
            execvp("/nowhere/either", words);
            if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) || waitpid(child, NULL, 0) != child) return 1;
            execv("/bin/true", words);
            return 2;
        }""")
    test.tool("record", "--quiet", "--no-children", "-o", test.path("a.trace"), "--arguments", "exec*,posix_spawn*", "--", program)
    trace = next(os.path.join(test.path("a.trace"), name) for name in os.listdir(test.path("a.trace")) if name.startswith("program."))
    lines = [re.sub(r"0x[0-9a-f]+", "AT", line) for line in test.lines(trace, ("exec", "posix_spawn"))]
    expect(lines[:3] == ['execve("/nowhere/true", AT, AT) = -1 ENOENT', 'execvp("/nowhere/either", AT) = -1 ENOENT', 'posix_spawn(AT, "/bin/true", NULL, NULL, AT, AT) = 0']
           and len(lines) == 4 and lines[3].startswith('execv("/bin/true", AT)'), f"{lines}")


def what_is_hidden_is_not_in_the_file(test):
    test.write("values.h", HEADER)
    test.compile("liblogin.so", "-shared", "-fPIC", source=r"""
        int login(const char *user, const char *password) { return user[0] + password[0]; }
        int fetch(const char *url, const char *session, int n) { return url[0] + session[0] + n; }""")
    program = test.compile("program", "-L.", "-llogin", "-Wl,-rpath,$ORIGIN", source=r"""
        #include <stdlib.h>
        int login(const char *, const char *), fetch(const char *, const char *, int);
        int main(void) { setenv("NAME", "value-kept-back", 1); return login("somebody", "hunter-kept-back") + fetch("https", "session-kept-back", 4711) < 0; }""")
    path = test.plan("login(user: string, password: string) -> int", "fetch(url: string, session: string, n: int) -> int,setenv", more=["--hide", "sess*,n"])
    test.execute([program], TRACER_ARGUMENTS=path)
    trace = test.checked_trace()
    expect(test.lines(trace.path, ("login", "fetch", "setenv")) == [
        'setenv("NAME", <hidden>, 1) = 0', f'login("somebody", <hidden>) = {ord("s") + ord("h")}',
        f'fetch("https", <hidden>, <hidden>) = {ord("h") + ord("s") + 4711}'], f"{test.lines(trace.path, ('login', 'fetch', 'setenv'))}")
    data = suite.read_bytes(trace.path)
    words = [struct.unpack_from("<Q", data, at)[0] for at in range(0, len(data) & ~7, 8)]
    # DATA words have seven bytes, and VALUES the last four.
    values = b"".join((word >> 8).to_bytes(7, "little") if word & 0xff == 0x1c else (word >> 32).to_bytes(4, "little") for word in words if word & 0xff in (0x1c, 0x24))
    expect(b"somebody" in values and b"kept-back" not in values and b"kept-back" not in data, "a hidden value is in the file")


def a_malformed_prototype_is_one_clear_line(test):
    for text, wanted in (("nobody_knows", "no prototype is known by this name"), ("zzz*", "no prototype is known"), ("f(a: strin)", "there is no type strin"),
                         ("f(a", ") is missing"), ("f(a,,b)", "the name of a parameter is missing before ,"), ("f(a, a)", "two parameters are called a"),
                         ("f(a) ->", "a type is missing at the end"), ("f(a) -> bytes[a]", "nothing counts the bytes of a result"), ("f(a) -> int errno at 7", "at the result -1 or 0"),
                         ("f(x: int when y has Z)", "y is no earlier parameter"), ("f(a) b", "b after the end"), ("f(a; b)", "; means nothing"), ("", "name at least one function"),
                         ("1f()", "the name of a function is missing"), ("f(" + ", ".join(f"a{n}" for n in range(31)) + ")", "more than 30 parameters")):
        said = test.tool("record", "--arguments", text, "--", "true", status=2).stderr
        expect(said.count("\n") == 1 and wanted in said and said.startswith("tracer: "), f"--arguments {text!r}: {said}")
    for text, wanted in (("f(a: int\n", ":1: "), ("# x\n\nlibrary m\n", ":3: library m"), ("enum x A=1\n", ":1: enum needs a name and a colon"),
                         ("flags x: A\n", ":1: A: a value is"), ("f(a: int) \\", ":1: the last line ends in a backslash")):
        said = test.tool("record", "--arguments", "open", "--prototypes", test.write("bad", text), "--", "true", status=2).stderr
        expect(said.count("\n") == 1 and wanted in said, f"{text!r}: {said}")
    for words in (["--no-files", "--hide", "path"], ["--prototypes", "file"]):
        expect("needs --arguments" in test.tool("record", *words, "--", "true", status=2).stderr, f"{words} alone is accepted")


def a_damaged_plan_is_not_believed(test):
    """Each byte of it changed, or what is after it cut off: the agent says that it is damaged, or goes by what it says; the program runs."""
    path = test.plan("open,close")
    good, bad = suite.read_bytes(path), 0
    program = test.compile("program", source="#include <fcntl.h>\n#include <unistd.h>\nint main(void) { return close(open(\"/dev/null\", O_RDONLY)); }")
    kinds = [good[:count] for count in (0, 10, 24, 50, len(good) - 1)] + [good + b"x"]
    kinds += [good[:at] + bytes([good[at] ^ 0xff]) + good[at + 1:] for at in range(0, 24 + 2 * 32 + 40)]
    for content in kinds:
        os.chmod(test.write("plan", content), 0o600)
        run = harness.execute([program], test.directory.fresh(), test.traced_environment(TRACER_ARGUMENTS=test.path("plan")))
        bad += b"is missing, damaged, or another user's" in run.stderr
        expect(run.status == 0, f"{harness.describe(run.status)}: {run.stderr}")
        test.forget_traces()
    expect(bad > 40, f"only {bad} of {len(kinds)} damaged plans were refused")
    # One that nobody has asked for may be gone, but not be damaged without a word.
    for content, said in ((None, b""), (good[:-1], b"is missing, damaged, or another user's"), (good, b"")):
        path = test.path("default-plan")
        if content:
            os.chmod(test.write("default-plan", content), 0o600)
        run = harness.execute([program], test.directory.fresh(), test.traced_environment(TRACER_ARGUMENTS=path))
        expect(run.status == 0 and (said in run.stderr and run.stderr.count(b"\n") == 1 if said else not run.stderr), f"{said}: {run.stderr}")
        test.forget_traces()


MODES = {"slots": "*", "arm": "values.gcc* pointers* words*", "arm_functions": "values.gcc*"}


def tests():
    cases = {}
    for compiler in ("gcc", "clang"):
        for optimization in ("-O0", "-O2", "-Os"):
            cases[f"{compiler}{optimization}"] = values(compiler, optimization)
            cases[f"{compiler}{optimization}.functions"] = values(compiler, optimization, apart=False, TRACER_FUNCTIONS="*")
    cases["gcc-O2.noplt"] = values("gcc", "-O2", "-fno-plt")
    cases["gcc-O2.sites"] = values("gcc", "-O2", TRACER_CALLSITES="1")
    cases["gcc-O2.monotonic"] = values("gcc", "-O2", TRACER_CLOCK="monotonic")
    cases["gcc-O2.filtered"] = values("gcc", "-O2", TRACER_MINMS="0.000001")
    if build.ARCHITECTURE == "aarch64":
        cases = {name: check for name, check in cases.items() if name.startswith("gcc") and "noplt" not in name}
    found = [Arguments(f"argument_values.values.{name}", check) for name, check in cases.items()]
    if build.ARCHITECTURE == "aarch64":
        return found + [Arguments("argument_values.pointers", pointers_that_lead_nowhere_hurt_nobody), Arguments("argument_values.words", a_call_takes_no_more_words_than_its_values_need)]
    found += [Arguments(f"argument_values.stepped.{name}", check) for name, check in {
        "signal": stepped("signal"), "first_call": stepped("first_call"), "unwind": stepped("unwind"), "signal_on_other_stack": stepped("signal", "other"),
        "signal_while_other_is_open": stepped("signal", "beside"), "monotonic": stepped("signal", TRACER_CLOCK="monotonic")}.items()]
    found.append(Arguments("argument_values.unmapped", unmapped(200_000)))
    return found + suite.tests_of(__name__, Arguments)
