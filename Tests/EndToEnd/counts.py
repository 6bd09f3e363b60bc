"""Recording only which functions were called (TRACER_MODE=counts): exactly those are recorded, in threads, children and plugins; and the
first bytes of called functions are restored to those of the file, while threads run there."""
import platform
import re
import subprocess

import functions
import harness
import suite
from functions import Functions
from harness import expect

# Reports when the first bytes of its functions are those of its file again. Each thread goes through all of them, over and over, in an
# order of its own, and checks what they return.
MANY = r"""
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone, used))
#define ONE(n) FUNCTION long f##n(long x) { long y = x * 7 + n; if (y % 1000003 == 5) y += x / 3; return y ^ (y >> 3); }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(1) HUNDRED(2)
__asm__(".text\n.space 300000, 0xcc\n");
HUNDRED(3) HUNDRED(4)
#define NAME1(n) f##n,
#define NAMES10(n) NAME1(n##0) NAME1(n##1) NAME1(n##2) NAME1(n##3) NAME1(n##4) NAME1(n##5) NAME1(n##6) NAME1(n##7) NAME1(n##8) NAME1(n##9)
#define NAMES100(n) NAMES10(n##0) NAMES10(n##1) NAMES10(n##2) NAMES10(n##3) NAMES10(n##4) NAMES10(n##5) NAMES10(n##6) NAMES10(n##7) NAMES10(n##8) NAMES10(n##9)
static long (*const all[])(long) = {NAMES100(1) NAMES100(2) NAMES100(3) NAMES100(4)};
enum { COUNT = sizeof all / sizeof *all, BYTES = 5 };
static long expected(int n, long x) { long y = x * 7 + n + 100; if (y % 1000003 == 5) y += x / 3; return y ^ (y >> 3); }
static unsigned char file[COUNT][BYTES];
static unsigned long offsets[COUNT]; /* in the file */
static int first, last = COUNT; /* which of them are called */
static volatile int is_over;

static int read_file(struct dl_phdr_info *info, size_t size, void *nothing) {
    int source = open("/proc/self/exe", O_RDONLY);
    for (int n = 0; n < COUNT; n++)
        for (int k = 0; k < info->dlpi_phnum; k++) {
            const ElfW(Phdr) *part = info->dlpi_phdr + k;
            unsigned long at = (unsigned long)all[n] - info->dlpi_addr;
            if (part->p_type != PT_LOAD || at - part->p_vaddr >= part->p_filesz) continue;
            offsets[n] = part->p_offset + at - part->p_vaddr;
            if (pread(source, file[n], BYTES, offsets[n]) != BYTES) exit(8);
        }
    close(source);
    return 1;
}
static int replaced(int from, int to) {
    int count = 0;
    for (int n = from; n < to; n++) count += memcmp((void *)all[n], file[n], BYTES) != 0;
    return count;
}
/* Whoever looks for a function's module in /proc/self/maps finds it. */
static void check_names(void) {
    char own[4096], line[8192], name[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = 0;
    own[length < 0 ? 0 : length] = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long low, high, offset;
        char rights[8];
        int fields = sscanf(line, "%lx-%lx %7s %lx %*s %*s %4095s", &low, &high, rights, &offset, name);
        for (int n = 0; n < COUNT; n++)
            if ((unsigned long)all[n] - low < high - low) {
                found++;
                if (fields == 5 && !strcmp(name, own) && (unsigned long)all[n] - low + offset == offsets[n]) continue;
                printf("f%d is in %s", n + 100, line);
                fflush(stdout);
                _exit(9);
            }
    }
    fclose(maps);
    if (found != COUNT) { printf("%d functions are in the list of mappings\n", found); fflush(stdout); _exit(9); }
}
/* Whether the kernel still says so of its mapping: VmFlags in proc(5), smaps. */
static int is_locked(const void *address) {
    char line[8192];
    int is_inside = 0, found = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2) is_inside = (unsigned long)address - low < high - low;
        if (is_inside && !strncmp(line, "VmFlags:", 8)) found = strstr(line, " lo") != 0;
    }
    fclose(maps);
    return found;
}
FUNCTION static void call_all(unsigned step, long x) {
    unsigned count = last - first;
    for (unsigned k = 0; k < count; k++) {
        int n = first + (k * step + step) % count; /* `step` has no divisor in common with any count here */
        if (all[n](x) != expected(n, x)) { printf("f%d(%ld) is wrong\n", n + 100, x); fflush(stdout); _exit(9); }
    }
}
static void *thread(void *step) {
    for (long x = 0; !is_over; x++) call_all((unsigned)(long)step, x);
    return 0;
}
FUNCTION static void of_child(void) { first = 0; last = 50; for (long x = 0; x < 300; x++) call_all(7, x); }
int main(int argc, char **argv) {
    const char *way = argv[1];
    dl_iterate_phdr(read_file, 0);
    if (!strcmp(way, "some")) { /* of the even ones each once */
        for (int n = 0; n < COUNT; n += 2) all[n](n);
        return printf("some\n") != 5;
    }
    if (!strcmp(way, "limited") && setrlimit(RLIMIT_AS, &(struct rlimit){1ul << 33, 1ul << 33})) return 7;
    extern const char __ehdr_start[];
    const void *locked = !strcmp(way, "header_locked") ? (const void *)__ehdr_start : !strcmp(way, "code_locked") ? (const void *)all[0] : 0;
    if (locked && (mlock(locked, 1) || !is_locked(locked))) return 7;
    unsigned long page = sysconf(_SC_PAGESIZE), low = (unsigned long)all[0] & -page;
    if (!strcmp(way, "writable")) {
        if (mprotect((void *)low, 32768, PROT_READ | PROT_WRITE | PROT_EXEC)) return 7;
    }
    if (!strcmp(way, "child")) first = 50;
    pthread_t threads[3];
    static const long steps[] = {11, 13, 17};
    for (int n = 0; n < 3; n++) if (pthread_create(&threads[n], 0, thread, (void *)steps[n])) return 7;
    if (!strcmp(way, "limited") || locked) {
        for (long x = 0; x < 20000; x++) call_all(7, x); /* replaced for as long as the program runs */
    } else {
        int from = !strcmp(way, "writable") ? 200 : first; /* the block that is writable is left */
        for (long x = 0; replaced(from, COUNT); x++) call_all(7, x);
    }
    is_over = 1;
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    check_names();
    if (locked && !is_locked(locked)) { puts("it is not locked any more"); return 9; }
    if (!strcmp(way, "writable")) {
        unsigned char *code = (unsigned char *)all[0] + 5;
        *(volatile unsigned char *)code = *code;
    }
    if (!strcmp(way, "child")) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) { of_child(); _exit(0); }
        int status;
        if (waitpid(child, &status, 0) != child || status) return 6;
    }
    printf("%s\n", way);
    return 0;
}
"""
COUNT = 400

PLUGIN = r"""
#include <stdio.h>
__attribute__((noinline)) long inner(long x) { __asm__ volatile(""); return x * 3 + 1; }
long outer(long x) { long sum = 0; for (long n = 0; n < 3000; n++) sum += inner(x + n); return sum; }
"""
LOADS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile int is_over;
FUNCTION static long own(long x) { __asm__ volatile(""); return x + 1; }
static void *thread(void *nothing) { for (long x = 0; !is_over; x = own(x)); return nothing; }
int main(int argc, char **argv) {
    pthread_t other;
    if (pthread_create(&other, 0, thread, 0)) return 7;
    for (int turn = 0; turn < 300; turn++) {
        void *plugin = dlopen(argv[1], RTLD_NOW);
        if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 1;
        long (*outer)(long) = (long (*)(long))dlsym(plugin, "outer");
        if (outer(turn) != 3000l * (3 * turn + 1) + 3 * (2999l * 3000 / 2)) return 2;
        dlclose(plugin);
    }
    is_over = 1;
    pthread_join(other, 0);
    return puts("loaded and unloaded") < 0;
}
"""


def called(test, *paths):
    """Names of the functions of the program that were called, and of those that were not; and how `coverage` writes the calls."""
    rows = {function["name"]: function["calls"] for function in test.json("coverage", *paths)["functions"]}
    return {name for name, calls in rows.items() if calls}, {name for name, calls in rows.items() if calls == 0}, set(filter(None, rows.values()))


def recorded(test, argv, functions="*"):
    """The traces of a program, with no call in them."""
    test.traced(argv, functions, memory=0, TRACER_MODE="counts")  # under a memory limit the agent restores no bytes
    traces = test.checked_traces()
    for trace in traces:
        counts = trace.counts_by_name_and_module()
        expect(not sum(counts.values()), f"calls are recorded: {list(counts.items())[:5]}")
    return traces


def those_that_were_called(compiler, *options):
    def check(test):
        trace, = recorded(test, [test.planned(compiler, *options, source=MANY, name="many"), "some"])
        test.patched(trace)
        yes, no, calls = called(test, trace.path)
        expected, others = ({f"f{n + 100}" for n in range(first, COUNT, 2)} for first in (0, 1))
        expect(expected <= yes and not yes & others and others <= no and calls == {1},
               f"wrongly called {sorted(yes - expected)[:9]}, wrongly not {sorted(no & expected)[:9]}; calls {calls}")
    return check


def kinds_of_functions_are_seen(compiler, *options):
    """And work: the program checks itself."""
    def check(test):
        program = test.planned(compiler, *options, source=functions.KINDS, name="kinds")
        trace, = recorded(test, [program])
        yes = {name.split(".")[0] for name in called(test, trace.path)[0]}  # gcc calls a function within another NAME.0
        run = subprocess.run([program], capture_output=True, text=True)
        names = {line.split()[0] for line in run.stdout.splitlines() if len(line.split()) == 2 and line.split()[1].isdigit() and int(line.split()[1])}
        expect(names and names <= yes, f"not seen: {sorted(names - yes)} of {len(names)}")
    return check


def put_back(way, *options):
    def check(test):
        traces = recorded(test, [test.planned("gcc", *options, source=MANY, name="many"), way])
        missing = {f"f{n + 100}" for n in range(COUNT)} - called(test, *(trace.path for trace in traces))[0]
        expect(not missing, f"{len(missing)} are missing: {sorted(missing)[:9]}")
        if way == "child":
            child, = (trace for trace in traces if trace.header["parent_pid"] in {other.header["pid"] for other in traces})
            parent, = (trace for trace in traces if trace is not child)
            of_parent, _, _ = called(test, parent.path)
            expect(not {"of_child", "f100", "f149"} & of_parent and "f150" in of_parent,
                   f"of the parent: {sorted({'of_child', 'f100', 'f149', 'f150'} & of_parent)}")
    return check


def plugins_come_and_go(test):
    """While another thread has bytes put back; each time they come they are recorded as before."""
    plugin = test.planned("gcc", "-O1", "-shared", "-fPIC", source=PLUGIN, name="libplugin.so")
    program = test.planned("gcc", "-O1", "-ldl", source=LOADS, name="loads")
    trace, = recorded(test, [program, plugin], "*:libplugin.so!*")
    yes, _, _ = called(test, trace.path)
    expect({"own", "inner", "outer"} <= yes, f"called: {sorted(yes)}")


def nothing_is_recorded_without_functions(test):
    program = test.build("gcc", "-O1", source=MANY, name="many")
    _, said = test.traced([program, "some"], None, TRACER_MODE="counts")
    expect(said == ["tracer: TRACER_MODE=counts needs TRACER_FUNCTIONS, which selects the functions: nothing is recorded"], f"said: {said}")
    said = test.tool("record", "--mode", "counts", "--", program, "some", status=2).stderr
    expect("--mode counts needs --functions" in said, f"record: {said[-300:]}")


def record_says_how_many_were_called(test):
    program, path = test.build("gcc", "-O1", source=MANY, name="many"), test.trace("r.trace")
    said = test.tool("record", "-o", path, "--mode", "counts", "--functions", "*", "--", program, "some").stderr
    expect("functions called" in said and f"next: tracer coverage {path}" in said, said[-400:])
    said = test.tool("order", path, "-o", "-", status=1).stderr
    expect("record without --mode counts" in said, f"order: {said[-300:]}")
    for command in ("report", "tree", "replay"):
        said = test.tool(command, path, status=None).stderr
        expect("tracer coverage" in said, f"{command} does not say what the trace is for: {said[-300:]}")


def tests():
    if harness.EMULATOR:
        return []
    ways = {"gcc.O0": ("gcc", "-O0"), "gcc.O2": ("gcc", "-O2"), "gcc.nops": ("gcc", "-O2", "-fpatchable-function-entry=8"),
            "gcc.cf": ("gcc", "-O2", "-fcf-protection"), "clang.O2": ("clang", "-O2")}
    found = {**{"those_that_were_called." + name: those_that_were_called(*way) for name, way in ways.items()},
             **{f"kinds_of_functions_are_seen.{compiler}.{option}": kinds_of_functions_are_seen(compiler, "-" + option)
                for compiler in ("gcc", "clang") for option in ("O0", "O2")},
             **{"put_back.not_where_memory_is_" + way: put_back(way, "-O2") for way in ("limited", "header_locked", "code_locked")}}
    if tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (5, 14):  # an older kernel leaves them replaced
        threads = {"O1": ("-O1",), "O2": ("-O2",), "fixed": ("-O2", "-no-pie"), "nops": ("-O2", "-fpatchable-function-entry=8")}
        found |= {"put_back.while_threads_run." + name: put_back("threads", *options) for name, options in threads.items()}
        found |= {"put_back.and_in_a_child": put_back("child", "-O2"),
                  "put_back.not_where_code_is_writable": put_back("writable", "-O2", "-fno-toplevel-reorder")}
    return [Functions("counts." + name, check) for name, check in found.items()] + suite.tests_of(__name__, Functions)
