#!/usr/bin/env python3
"""Call sites (TRACER_CALLSITES): each call with the line that it was made from, against what the program itself has counted; by the
independent decoder with addr2line, and by the tool."""
import json
import os
import re
import shutil
import subprocess

import build
import harness
import tracefile
from harness import Failed, Skipped, expect

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


class Case:
    def __init__(self, name, check):
        self.name, self.check = "call_sites." + name, check

    def run(self, settings):
        if settings.bare_only:
            return None
        self.settings = settings
        self.prefix = "aarch64-linux-gnu-" if harness.EMULATOR else ""
        if not shutil.which(self.prefix + "gcc") or not shutil.which(self.prefix + "addr2line"):
            raise Skipped(f"no {self.prefix}gcc")
        self.directory = harness.Directory(self.name, settings.keep)
        self.made = os.path.join(self.directory.path, "made")
        os.mkdir(self.made)
        try:
            self.directory.fresh()
            return self.check(self)
        finally:
            self.directory.done()

    def compile(self, name, text, *options):
        source = os.path.join(self.made, re.sub(r"^lib(.*)\.so$", r"\1", name) + ".c")
        with open(os.path.join(self.made, "note.h"), "w") as file:
            file.write(NOTE_H)
        with open(source, "w") as file:
            file.write(text)
        path = os.path.join(self.made, name)
        shared = ["-shared", "-fPIC"] if name.endswith(".so") else []
        done = subprocess.run([self.prefix + "gcc", *shared, source, "-o", path, "-pthread", f"-Wl,-rpath,{self.made}", *options], capture_output=True, text=True)
        expect(not done.returncode, f"does not build: {done.stderr[-400:]}")
        return path

    def subject(self, *options):
        library = self.compile("libnote.so", LIBRARY, "-O2", "-g", *options)
        plugins = [self.compile(f"lib{name}.so", PLUGIN.replace("LINES", str(n)).replace("plugged(long n) {", "plugged(long n) {" + "\n" * n), "-O2", "-g", library)
                   for n, name in enumerate(("first", "second"))]
        return [self.compile("program", MAIN, "-O2", "-g", library, "-ldl"), *plugins]

    def traced(self, argv, **variables):
        for name in os.listdir(self.directory.traces):
            os.unlink(os.path.join(self.directory.traces, name))
        environment = harness.traced_environment(self.settings, {**harness.passed_on(os.environ), **variables}, self.directory)
        run = harness.execute(argv, self.directory.fresh(), environment)
        expect(not run.status and not run.stderr, f"{harness.describe(run.status)}: {run.stderr[-300:].decode(errors='replace')}")
        traces, faults = harness.check_traces(self.settings, self.directory)
        expect(not faults, "\n".join(faults))
        return run.stdout.decode(), traces

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

    def tool(self, *words):
        done = subprocess.run([self.settings.tool, *words], capture_output=True, text=True, timeout=harness.HANGS)
        expect(not done.returncode, f"tracer {' '.join(words)}: {done.stderr[-300:]}")
        return done.stdout


def sites_of(rows):
    counts = {}
    for row in rows:
        site = row.get("site")
        key = row["name"], f"{site['file']}:{site['line']}" if site else "unknown:0"
        counts[key] = counts.get(key, 0) + row["calls"]
    return counts


def noted(text):
    return {(name, site): int(count) for name, site, count in (line.split() for line in text.splitlines())}


def differences(expected, counts, names):
    return [f"{name} from {site}: {counts.get((name, site), 0)}, expected {expected.get((name, site), 0)}"
            for name, site in sorted(set(expected) | {key for key in counts if key[0] in names})
            if counts.get((name, site), 0) != expected.get((name, site), 0)]


def counts_are_those_of_the_program(variables, *options, without=(), filtered=False):
    def check(case):
        out, (trace,) = case.traced([*case.subject(*options), "x"], TRACER_CALLSITES="1", **variables)
        expect(trace.header["flags"] & tracefile.CALL_SITES, "the header does not say that there are call sites")
        expected = {key: count for key, count in noted(out).items() if key[0] not in without}
        names = {name for name, _ in expected}
        counts = {(name, site): count for name in names for site, count in case.lines(trace, name).items()}
        if filtered:  # calls of no measurable length
            few = {key: count for key, count in expected.items() if not count - trace.filtered_by_time <= counts.get(key, 0) <= count}
            expect(not few and not counts.keys() - expected.keys(), f"at most {trace.filtered_by_time} fewer than {few}: {counts}")
            expected = counts
        wrong = differences(expected, counts, names)
        expect(not wrong, "decoder: " + "; ".join(wrong))
        if case.settings.tool and os.path.exists(case.settings.tool):
            rows = json.loads(case.tool("report", trace.path, "--by", "site", "--json"))["functions"]
            wrong = differences(expected, sites_of(rows), names)
            expect(not wrong, "report: " + "; ".join(wrong))
            rows = json.loads(case.tool("callers", trace.path, "far", "--sites", "--json"))["sites"]
            wrong = differences({key: count for key, count in expected.items() if key[0] == "far"}, sites_of(rows), {"far"})
            expect(not wrong, "callers: " + "; ".join(wrong))
    return check


def functions_have_call_sites_too(case):
    if harness.EMULATOR:
        raise Skipped("plans are made here")
    program = case.subject()
    harness.plan(case.settings, program[0], case.made)
    out, (trace,) = case.traced([*program, "x"], TRACER_CALLSITES="1", TRACER_FUNCTIONS="*!far:*!down:*!many", TRACER_KEEPHOT="on")
    expected = noted(out)
    counts = {(name, site): count for name in ("far", "down") for site, count in case.lines(trace, name).items()}
    wrong = differences({key: count for key, count in expected.items() if key[0] in ("far", "down")}, counts, {"far", "down"})
    expect(not wrong, "; ".join(wrong))
    callers = sorted(case.lines(trace, "many").values())
    if callers != [1, 2]:
        raise Failed(f"many, which no slot leads to, from {case.lines(trace, 'many')}")


def processes_are_added_up(case):
    out, traces = case.traced([*case.subject(), "f"], TRACER_CALLSITES="1")
    child, parent = out[:out.index("\n", out.rindex(" 25\n"))].splitlines(), None
    half = len(child)
    parent = noted("\n".join(out.splitlines()[half:]))
    site = next(key for key, count in noted("\n".join(child)).items() if count == 25)
    expected = {**{key: count for key, count in parent.items() if key[0] == "far"}, site: 25}
    rows = json.loads(case.tool("report", case.directory.traces, "--by", "site", "--json", "--filter", "far"))["functions"]
    wrong = differences(expected, sites_of(rows), {"far"})
    expect(not wrong, "; ".join(wrong))
    pid = max(trace.header["pid"] for trace in traces)
    rows = json.loads(case.tool("report", case.directory.traces, "--process", str(pid), "--by", "site", "--json", "--filter", "far"))["functions"]
    expect(sites_of(rows) == {site: 25}, f"of the child alone: {sites_of(rows)}")


def windows_add_up(case):
    _, (trace,) = case.traced([*case.subject(), "x"], TRACER_CALLSITES="1")

    def counted(*window):
        return sites_of(json.loads(case.tool("report", trace.path, "--by", "site", "--json", "--filter", "far", *window))["functions"])
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


def what_a_ring_has_begun_with_is_known(case):
    _, (trace,) = case.traced([*case.subject(), "x"], TRACER_CALLSITES="1", TRACER_MODE="ring", TRACER_MAXSIZE="512K")
    first = min(sequence for chunks in trace.by_thread.values() for sequence, _, chunk in chunks if chunk["tid"] == trace.header["pid"])
    expect(first != 0, "the ring has overwritten nothing")
    rows = json.loads(case.tool("report", trace.path, "--by", "site", "--json", "--filter", "outer"))["functions"]
    expect(len(rows) <= 1 and (not rows or rows[0]["site"] and rows[0]["site"]["function"] == "main"),
           f"outer, whose enter is overwritten: {rows}")


def more_sites_than_labels(case):
    library = case.compile("libnote.so", LIBRARY, "-O2")
    program = case.compile("crowd", CROWD, library)
    environment = harness.traced_environment(case.settings, {**harness.passed_on(os.environ), "TRACER_CALLSITES": "1"}, case.directory)
    run = harness.execute([program], case.directory.fresh(), environment)
    expect(not run.status and b"call sites" in run.stderr, f"{harness.describe(run.status)}: {run.stderr[-300:]}")
    trace, = tracefile.read_all(case.directory.traces)
    counts = trace.counts_by_site("far")
    expect(len(counts) == 70000 and set(counts.values()) == {1}, f"{len(counts)} sites, {sum(counts.values())} calls")


def names_and_lines(case):
    """With DWARF, with that in a file apart, with symbols alone, and with nothing but the unwinder's table."""
    argv = case.subject()
    program = argv[0]
    symbols = subprocess.run([case.prefix + "nm", program], capture_output=True, text=True, check=True).stdout
    many = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" t many"))
    whole = case.made + "/whole"
    shutil.copy(program, whole)

    def sites(trace):
        return [row["site"] for row in json.loads(case.tool("callers", trace.path, "far", "--sites", "--json"))["sites"] if row["calls"] in (150, 2100)]  # the third loop may be unrolled

    _, (trace,) = case.traced([*argv, "x"], TRACER_CALLSITES="1")
    found = sites(trace)
    expect(len(found) == 2 and all((site["function"], site["module"], site["file"]) == ("many", "program", "program.c") for site in found),
           f"with DWARF: {found}")
    text = case.tool("report", trace.path, "--by", "site", "--filter", "far")
    expect(re.search(rf" far +many, program\.c:{found[0]['line']} \(program\)", text), f"as text:\n{text}")
    objcopy, strip = case.prefix + "objcopy", case.prefix + "strip"
    for name, commands, wanted in (
            ("a file apart", [[objcopy, "--only-keep-debug", whole, program + ".debug"], [strip, "-o", program, whole], [objcopy, "--add-gnu-debuglink=" + program + ".debug", program]],
             ("many", "program.c")),
            ("symbols", [[strip, "-g", "-o", program, whole], ["rm", program + ".debug"]], ("many", None)),
            ("nothing", [[strip, "-o", program, whole]], (f"program+{many:#x}", None))):
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, cwd=case.made)
        found = sites(trace)
        expect(len(found) == 2 and all((site["function"], site["file"]) == wanted for site in found), f"with {name}: {found}")


def a_trace_without_says_what_to_do(case):
    _, (trace,) = case.traced([*case.subject(), "x"])
    for words in (("report", trace.path, "--by", "site"), ("callers", trace.path, "far", "--sites")):
        done = subprocess.run([case.settings.tool, *words], capture_output=True, text=True)
        expect(done.returncode == 1 and done.stderr.count("\n") == 1 and "record --call-sites" in done.stderr,
               f"tracer {' '.join(words)}: status {done.returncode}: {done.stderr}")
    counts = trace.counts_by_site("far")
    expect(list(counts) == [(None, 0)] and not trace.header["flags"] & tracefile.CALL_SITES, f"recorded without being asked for: {counts}")


MODES = {"slots": "*", "arm_call_sites": "counts* more_sites*"}


def tests():
    ways = {"plain": ({},), "monotonic": ({"TRACER_CLOCK": "monotonic"},), "filtered": ({"TRACER_MINMS": "0.000001"},), "no_plt": ({}, "-fno-plt")}
    found = [Case("counts_are_those_of_the_program." + name, counts_are_those_of_the_program(*way, without=("_setjmp",) if name == "filtered" else (), filtered=name == "filtered"))
             for name, way in ways.items()] + [Case(more_sites_than_labels.__name__, more_sites_than_labels)]
    of_the_tool = (functions_have_call_sites_too, processes_are_added_up, windows_add_up, what_a_ring_has_begun_with_is_known, names_and_lines,
                   a_trace_without_says_what_to_do)
    return found if build.ARCHITECTURE == "aarch64" else found + [Case(check.__name__, check) for check in of_the_tool]
