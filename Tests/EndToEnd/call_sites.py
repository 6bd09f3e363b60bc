"""Call sites (TRACER_CALLSITES): each call with the line that it was made from, against what the program itself has counted; by the
independent decoder with addr2line, and by the tool."""
import os
import re
import shutil
import subprocess

import build
import harness
import suite
import tracefile
from harness import Skipped, expect

NOTE_H = r"""
void note(const char *function, const char *file, int line, long count);
#define SITE(function, count) note(function, __FILE__, __LINE__, count)
long far(long), through(long), tail(long), down(long), outer(long (*)(long), long);
#define APART __attribute__((noinline, noclone))
"""
LIBRARY = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "note.h"
static struct { char text[120]; long count; } noted[1000];
static int notedCount;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void note(const char *function, const char *file, int line, long count) {
    char text[120];
    snprintf(text, sizeof text, "%s %s:%d", function, strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line);
    pthread_mutex_lock(&lock);
    int n = 0;
    while (n < notedCount && strcmp(noted[n].text, text)) n++;
    if (n == notedCount) strcpy(noted[notedCount++].text, text);
    noted[n].count += count;
    pthread_mutex_unlock(&lock);
}
void say(void) { for (int n = 0; n < notedCount; n++) printf("%s %ld\n", noted[n].text, noted[n].count); }
long far(long n) { __asm__ volatile(""); return n + 1; }
long through(long n) { SITE("far", 1); n += far(n); return n + 1; }
long tail(long n) { return far(n); }
long again(long n) __asm__("down"); // through its slot
long down(long n) {
    if (n == 0) return 0;
    SITE("down", 1); n = again(n - 1);
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}
long outer(long (*inner)(long), long n) { long sum = inner(n); __asm__ volatile("" : "+r"(sum)); return sum + 1; }
"""
PLUGIN = r"""
#include "note.h"
long SPACE[1000];
long plugged(long n) {
    long sum = 0;
    SITE("far", n); for (long i = 0; i < n; i++) sum += far(i);
    return sum + LINES;
}
"""
MAIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "note.h"
void say(void);
APART static long many(void) {
    long sum = 0;
    SITE("far", 3); for (long i = 0; i < 3; i++) sum += far(i);
    SITE("far", 50); for (long i = 0; i < 50; i++) sum += far(i);
    SITE("far", 700); for (long i = 0; i < 700; i++) sum += far(i);
    return sum;
}
static void *of_thread(void *unused) { many(); return unused; }
APART static long inner(long n) {
    long sum = 0;
    SITE("far", n); for (long i = 0; i < n; i++) sum += far(i);
    return sum;
}
static void handler(int unused) { (void)unused; SITE("far", 1); far(1); __asm__ volatile(""); }
static ucontext_t here, there;
static void on_another_stack(void) {
    for (;;) {
        SITE("far", 10); for (long i = 0; i < 10; i++) far(i);
        swapcontext(&there, &here);
    }
}
static jmp_buf saved;
static void plug(const char *path, long n) {
    SITE("dlopen", 1); void *library = dlopen(path, RTLD_NOW);
    if (!library) { puts(dlerror()); exit(1); }
    ((long (*)(long))dlsym(library, "plugged"))(n);
    dlclose(library);
}
int main(int count, char **arguments) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, of_thread, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    many();
    SITE("through", 20); for (long i = 0; i < 20; i++) through(i);
    SITE("tail", 30); for (long i = 0; i < 30; i++) tail(i);
    note("far", "unknown", 0, 30);
    SITE("down", 1); down(100);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 5; i++) raise(SIGUSR1);
    getcontext(&there);
    there.uc_stack.ss_sp = malloc(1 << 16);
    there.uc_stack.ss_size = 1 << 16;
    makecontext(&there, on_another_stack, 0);
    for (int i = 0; i < 7; i++) swapcontext(&here, &there);
    for (volatile int i = 0; i < 4; i++) { SITE("_setjmp", 1); if (setjmp(saved)) abort(); }
    SITE("outer", 1); outer(inner, 100000);
    for (int round = 0; round < 4; round++) for (int n = 1; n < count - 1; n++) plug(arguments[n], 10 * n);
    if (*arguments[count - 1] == 'f') {
        fflush(stdout);
        if (fork() == 0) { SITE("far", 25); for (long i = 0; i < 25; i++) far(i); say(); exit(0); }
        wait(0);
    }
    say();
    return 0;
}
"""
# Every call from a site of its own, and more sites than there are labels.
CROWD = r"""
#include <stdio.h>
long far(long);
#if defined(__x86_64__)
__asm__(".text\ncrowd: subq $8, %rsp\n.rept 70000\ncall far@plt\n.endr\naddq $8, %rsp\nret\n");
#else
__asm__(".text\ncrowd: stp x29, x30, [sp, #-16]!\n.rept 70000\nbl far\n.endr\nldp x29, x30, [sp], #16\nret\n");
#endif
long crowd(long);
int main(void) { printf("%d\n", crowd(1) > 0); return 0; }
"""


class CallSites(suite.Test):
    def prepare(self):
        self.prefix = "aarch64-linux-gnu-" if harness.EMULATOR else ""
        suite.need(self.prefix + "gcc", self.prefix + "addr2line")

    def build(self, name, text, *options):
        self.write("note.h", NOTE_H)
        source = self.write(re.sub(r"^lib(.*)\.so$", r"\1", name) + ".c", text)
        shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
        return self.compile(name, *shared, source, "-pthread", f"-Wl,-rpath,{self.made}", *options, compiler=self.prefix + "gcc")

    def subject(self, *options):
        library = self.build("libnote.so", LIBRARY, "-O2", "-g", *options)
        plugins = [self.build(f"lib{name}.so", PLUGIN.replace("LINES", str(n)).replace("plugged(long n) {", "plugged(long n) {" + "\n" * n), "-O2", "-g", library)
                   for n, name in enumerate(("first", "second"))]
        return [self.build("program", MAIN, "-O2", "-g", library, "-ldl"), *plugins]

    def traced(self, last="x", options=(), **variables):
        """What the subject says, and its traces."""
        run = self.execute([*self.subject(*options), last], **variables)
        return run.stdout.decode(), self.checked_traces()

    def lines(self, trace, name):
        """File and line -> calls of functions of this name, by the decoder and addr2line."""
        paths = {os.path.basename(module.path): module.path for module in trace.modules.values()}
        counts = {}
        for (module, offset), count in trace.counts_by_site(name).items():
            site = "unknown:0"
            if offset:
                done = subprocess.run([self.prefix + "addr2line", "-e", paths.get(module, "/"), hex(offset - 1)], capture_output=True, text=True)
                site = os.path.basename(done.stdout.split()[0]) if done.stdout else f"{module}:?"
            counts[site] = counts.get(site, 0) + count
        return counts

    def report(self, path, *words):
        """Calls by function and site, by the tool."""
        return sites_of(self.json("report", path, "--by", "site", *words)["functions"])


def sites_of(rows):
    counts = {}
    for row in rows:
        site = row.get("site")
        key = row["name"], f"{site['file']}:{site['line']}" if site else "unknown:0"
        counts[key] = counts.get(key, 0) + row["calls"]
    return counts


def noted(text):
    return {(name, site): int(count) for name, site, count in (line.split() for line in text.splitlines())}


def expect_counts(reader, expected, counts, names):
    """Compares what a reader counts for functions with these names."""
    wrong = [f"{name} from {site}: {counts.get((name, site), 0)}, expected {expected.get((name, site), 0)}"
             for name, site in sorted(expected.keys() | counts.keys())
             if name in names and counts.get((name, site), 0) != expected.get((name, site), 0)]
    expect(not wrong, f"{reader}: " + "; ".join(wrong))


def counts_are_those_of_the_program(variables, *options, without=(), filtered=False):
    def check(test):
        out, (trace,) = test.traced(options=options, TRACER_CALLSITES="1", **variables)
        expect(trace.header["flags"] & tracefile.CALL_SITES, "the header does not say that there are call sites")
        expected = {key: count for key, count in noted(out).items() if key[0] not in without}
        names = {name for name, _ in expected}
        counts = {(name, site): count for name in names for site, count in test.lines(trace, name).items()}
        if filtered:  # calls of no measurable length
            few = {key: count for key, count in expected.items() if not count - trace.filtered_by_time <= counts.get(key, 0) <= count}
            expect(not few and not counts.keys() - expected.keys(), f"at most {trace.filtered_by_time} fewer than {few}: {counts}")
            expected = counts
        expect_counts("decoder", expected, counts, names)
        if test.settings.tool and os.path.exists(test.settings.tool):
            expect_counts("report", expected, test.report(trace.path), names)
            rows = test.json("callers", trace.path, "far", "--sites")["sites"]
            expect_counts("callers", expected, sites_of(rows), {"far"})
    return check


def functions_have_call_sites_too(test):
    if harness.EMULATOR:
        raise Skipped("plans are made here")
    harness.plan(test.settings, test.subject()[0], test.made)
    out, (trace,) = test.traced(TRACER_CALLSITES="1", TRACER_FUNCTIONS="*!far:*!down:*!many", TRACER_KEEPHOT="on")
    counts = {(name, site): count for name in ("far", "down") for site, count in test.lines(trace, name).items()}
    expect_counts("decoder", noted(out), counts, {"far", "down"})
    callers = test.lines(trace, "many")
    expect(sorted(callers.values()) == [1, 2], f"many, which no slot leads to, from {callers}")


def processes_are_added_up(test):
    out, traces = test.traced("f", TRACER_CALLSITES="1")
    end = out.index("\n", out.rindex(" 25\n")) + 1  # the child's lines end here
    site = next(key for key, count in noted(out[:end]).items() if count == 25)
    expect_counts("report", {**noted(out[end:]), site: 25}, test.report(test.traces, "--filter", "far"), {"far"})
    pid = max(trace.header["pid"] for trace in traces)
    alone = test.report(test.traces, "--process", str(pid), "--filter", "far")
    expect(alone == {site: 25}, f"of the child alone: {alone}")


def windows_add_up(test):
    _, (trace,) = test.traced(TRACER_CALLSITES="1")

    def counted(*window):
        return test.report(trace.path, "--filter", "far", *window)
    whole, low, high = counted(), 0, 100
    # The calls may lie anywhere in the time of a program that was given no CPU for most of it: look for a moment among them.
    for _ in range(20):
        middle = (low + high) / 2
        first = counted("--to", f"{middle}%")
        if len(first) not in (0, len(whole)):
            break
        low, high = (low, middle) if first else (middle, high)
    second = counted("--from", f"{middle}%")
    both = {key: first.get(key, 0) + second.get(key, 0) for key in whole}
    expect(both == whole and len(first) not in (0, len(whole)), f"whole {whole}, two parts {[first, second]}")


def what_a_ring_has_begun_with_is_known(test):
    _, (trace,) = test.traced(TRACER_CALLSITES="1", TRACER_MODE="ring", TRACER_MAXSIZE="512K")
    first = min(sequence for chunks in trace.by_thread.values() for sequence, _, chunk in chunks if chunk["tid"] == trace.header["pid"])
    expect(first != 0, "the ring has overwritten nothing")
    rows = test.json("report", trace.path, "--by", "site", "--filter", "outer")["functions"]
    expect(len(rows) <= 1 and (not rows or rows[0]["site"] and rows[0]["site"]["function"] == "main"),
           f"outer, whose enter is overwritten: {rows}")


def more_sites_than_labels(test):
    program = test.build("crowd", CROWD, test.build("libnote.so", LIBRARY, "-O2"))
    run = test.execute([program], said=None, TRACER_CALLSITES="1")
    expect(b"call sites" in run.stderr, f"{run.stderr[-300:]}")
    trace, = tracefile.read_all(test.traces)
    counts = trace.counts_by_site("far")
    expect(len(counts) == 70000 and set(counts.values()) == {1}, f"{len(counts)} sites, {sum(counts.values())} calls")


def names_and_lines(test):
    """With DWARF, with that in a file apart, with symbols alone, and with nothing but the unwinder's table."""
    _, (trace,) = test.traced(TRACER_CALLSITES="1")
    program = test.path("program")
    symbols = subprocess.run([test.prefix + "nm", program], capture_output=True, text=True, check=True).stdout
    many = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" t many"))
    whole = shutil.copy(program, test.path("whole"))

    def sites():
        rows = test.json("callers", trace.path, "far", "--sites")["sites"]
        return [row["site"] for row in rows if row["calls"] in (150, 2100)]  # the third loop may be unrolled
    found = sites()
    expect(len(found) == 2 and all((site["function"], site["module"], site["file"]) == ("many", "program", "program.c") for site in found),
           f"with DWARF: {found}")
    text = test.tool("report", trace.path, "--by", "site", "--filter", "far").stdout
    expect(re.search(rf" far +many, program\.c:{found[0]['line']} \(program\)", text), f"as text:\n{text}")
    objcopy, strip = test.prefix + "objcopy", test.prefix + "strip"
    for name, commands, wanted in (
            ("a file apart", [[objcopy, "--only-keep-debug", whole, program + ".debug"], [strip, "-o", program, whole], [objcopy, "--add-gnu-debuglink=" + program + ".debug", program]],
             ("many", "program.c")),
            ("symbols", [[strip, "-g", "-o", program, whole], ["rm", program + ".debug"]], ("many", None)),
            ("nothing", [[strip, "-o", program, whole]], (f"program+{many:#x}", None))):
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, cwd=test.made)
        found = sites()
        expect(len(found) == 2 and all((site["function"], site["file"]) == wanted for site in found), f"with {name}: {found}")


def a_trace_without_says_what_to_do(test):
    _, (trace,) = test.traced()
    for words in (("report", trace.path, "--by", "site"), ("callers", trace.path, "far", "--sites")):
        said = test.tool(*words, status=1).stderr
        expect(said.count("\n") == 1 and "record --call-sites" in said, f"tracer {' '.join(words)}: {said}")
    counts = trace.counts_by_site("far")
    expect(list(counts) == [(None, 0)] and not trace.header["flags"] & tracefile.CALL_SITES, f"recorded without being asked for: {counts}")


MODES = {"slots": "*", "arm_call_sites": "counts* more_sites*"}


def tests():
    counts = counts_are_those_of_the_program
    ways = {"plain": counts({}), "monotonic": counts({"TRACER_CLOCK": "monotonic"}), "no_plt": counts({}, "-fno-plt"),
            "filtered": counts({"TRACER_MINMS": "0.000001"}, without=("_setjmp",), filtered=True)}
    found = [CallSites(f"call_sites.{counts.__name__}.{name}", check) for name, check in ways.items()]
    others = suite.tests_of(__name__, CallSites)
    # Tests of the tool run for one architecture.
    return found + [test for test in others if build.ARCHITECTURE != "aarch64" or test.check is more_sites_than_labels]
