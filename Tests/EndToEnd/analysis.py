"""Checks the tool's analysis of a real trace: its merged tree against one from tracefile.py's decoder, and a caller's self time
with the cost of recording subtracted against its time in the same process without being recorded."""
import json
import os
import re
import shutil
import statistics

import harness
import suite
import tracefile
from harness import Skipped, expect

LIBRARY = """
void leaf(long n) { for (volatile long i = 0; i < n; i++) {} }
void inner(int n) { if (n > 0) inner(n - 1); else leaf(5); }
void outer(int n) { for (int i = 0; i < n; i++) { inner(i % 4); leaf(1); } }
"""
THREADS = """
#include <pthread.h>
void outer(int);
static void *run(void *n) { outer((int)(long)n); return 0; }
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, (void *)(500 + 3000 * i));
    outer(2000);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"""
ROUNDS = 40
COST_PARTS = 256  # parts per tick, docs/reference/format.md
# Each round is one call of a function of its own, with 1,000 calls below it, so that the tree distinguishes rounds. Between
# them the same work is done and timed without being recorded: with calls, and the called part alone. The unrecorded callee is
# reached through a pointer, as the recorded one is through the PLT.
PARENTS = """
#include <stdint.h>
#include <time.h>
#define INLINE static inline __attribute__((always_inline))
INLINE uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
#ifdef __x86_64__
#define DONE "lfence"
#else
#define DONE "isb"
#endif
/* A CPU has begun with what follows long before it is through with a piece of work, and reads the clock early: a caller's
   time is then in part its callee's. A piece that waits for its own end has a length, and only then is there a truth. */
INLINE uint64_t work(uint64_t x, int n) {
    for (int i = 0; i < n; i++) { x = x * 6364136223846793005u + 1; __asm__ volatile("" : "+r"(x)); }
    __asm__ volatile(DONE : "+r"(x) : : "memory");
    return x;
}
typedef uint64_t function(uint64_t);
uint64_t leaf(uint64_t x) { return work(x, 100); }
static uint64_t unrecorded_leaf(uint64_t x) { return work(x, 100); }
static function *volatile unrecorded = unrecorded_leaf;
static volatile uint64_t seed;
static __attribute__((noinline)) void with_calls(void) { uint64_t x = seed; for (int i = 0; i < 1000; i++) x = unrecorded(work(x, 32)); seed = x; }
static __attribute__((noinline)) void called_part(void) { uint64_t x = seed; for (int i = 0; i < 1000; i++) x = work(x, 100); seed = x; }
void round_of(int n, void (*recorded)(void), uint64_t *own) {
    uint64_t a = now();
    with_calls();
    uint64_t b = now();
    called_part();
    uint64_t c = now();
    recorded();
    own[n] = (b - a) - (c - b);
}
""" + "".join(f"void parent_{n}(void) {{ uint64_t x = seed; for (int i = 0; i < 1000; i++) x = leaf(work(x, 32)); seed = x; }}\n" for n in range(ROUNDS))
ROUNDS_OF_PARENTS = """
#include <stdint.h>
#include <stdio.h>
void round_of(int, void (*)(void), uint64_t *);
""" + "".join(f"void parent_{n}(void); static void call_{n}(void) {{ parent_{n}(); }}\n" for n in range(ROUNDS)) + f"""
int main(void) {{
    static uint64_t own[{ROUNDS}];
    static void (*const calls[])(void) = {{ {", ".join(f"call_{n}" for n in range(ROUNDS))} }};
    for (int n = 0; n < {ROUNDS}; n++) round_of(n, calls[n], own);
    for (int n = 0; n < {ROUNDS}; n++) printf("%llu\\n", (unsigned long long)own[n]);
    return 0;
}}
"""

# Three shapes of calls, each made unrecorded (through pointers that no slot holds) and recorded in turn.
SHAPES_LIBRARY = """
#include <stdlib.h>
#include <string.h>
void nothing(void) { __asm__ volatile(""); }
void warm(void) { __asm__ volatile(""); }
long tiny(long x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
long parent(long x) { for (int i = 0; i < 10; i++) x += tiny(x); return x; }
static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
void sort(char **words, size_t count) { qsort(words, count, sizeof *words, compare); }
"""
SHAPES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
void nothing(void); void warm(void); long parent(long); void sort(char **, size_t);
static int (*clock_of)(clockid_t, struct timespec *);
static uint64_t now(void) { struct timespec t; clock_of(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void own_nothing(void) { __asm__ volatile(""); }
static __attribute__((noinline)) long own_tiny(long x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
static long (*volatile tiny_of)(long) = own_tiny;
static long own_parent(long x) { for (int i = 0; i < 10; i++) x += tiny_of(x); return x; }
static int (*volatile compare_of)(const char *, const char *);
static int own_compare(const void *a, const void *b) { return compare_of(*(char *const *)a, *(char *const *)b); }
static void (*sort_of)(void *, size_t, size_t, int (*)(const void *, const void *));
static void own_sort(char **words, size_t count) { sort_of(words, count, sizeof *words, own_compare); }
static void (*volatile nothings[2])(void) = {own_nothing, nothing};
static long (*volatile parents[2])(long) = {own_parent, parent};
static void (*volatile sorts[2])(char **, size_t) = {own_sort, sort};
static volatile long sink;
enum { ROUNDS = 12, WORDS = 100 };
static char text[WORDS][10], *words[WORDS];
static void mix(unsigned seed) {
    for (int i = 0; i < WORDS; i++) {
        unsigned x = (seed + i + 1) * 2654435761u;
        for (int k = 0; k < 9; k++, x = x / 7 + x * 31) text[i][k] = "abcdefghij"[x % 10];
        text[i][9] = 0;
        words[i] = text[i];
    }
}
int main(void) {
    clock_of = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_DEFAULT, "clock_gettime");
    compare_of = (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "strcmp");
    sort_of = (void (*)(void *, size_t, size_t, int (*)(const void *, const void *)))dlsym(RTLD_DEFAULT, "qsort");
    static uint64_t taken[ROUNDS][3][2];
    for (int i = 0; i < 11000; i++) warm(); // the thread has a chunk of full size, and the rounds fit into it
    for (int round = 0; round < ROUNDS; round++) for (int which = 0; which < 2; which++) {
        uint64_t a = now();
        if (which) for (int i = 0; i < 500; i++) nothing(); else for (int i = 0; i < 500; i++) nothings[0]();
        uint64_t b = now();
        if (which) for (int i = 0; i < 50; i++) sink += parent(i); else for (int i = 0; i < 50; i++) sink += parents[0](i);
        uint64_t c = now();
        mix(round);
        uint64_t d = now();
        if (which) sort(words, WORDS); else sorts[0](words, WORDS);
        uint64_t e = now();
        taken[round][0][which] = b - a;
        taken[round][1][which] = c - b;
        taken[round][2][which] = e - d;
    }
    for (int round = 0; round < ROUNDS; round++) for (int shape = 0; shape < 3; shape++)
        printf("%d %llu %llu\\n", shape, (unsigned long long)taken[round][shape][0], (unsigned long long)taken[round][shape][1]);
    return 0;
}
"""

# CLOCK_MONOTONIC leaps by 1,000 s, seen from this process: to a tracer the cycle counter has another rate just then, as where a
# machine slept or was migrated. Nobody counts on how long anything takes: each call is over when it has lasted so long.
# Either with two recorded calls in a microsecond, so that chunks are full within milliseconds, or with one in 5 ms.
LASTING = """
#include <stdint.h>
#include <time.h>
uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static uint64_t unrecorded(void) {
    struct timespec t;
    static int (*clock)(clockid_t, struct timespec *) = clock_gettime;
    clock(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void last(void) { for (uint64_t begin = NOW(); NOW() - begin < 5000000;) {} }
void before(void) { last(); }
void after(void) { last(); }
"""
LEAP = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
uint64_t now(void);
void before(void);
void after(void);
int main(void) {
    if (unshare(CLONE_NEWTIME) && unshare(CLONE_NEWUSER | CLONE_NEWTIME)) return 77;
    uint64_t taken[2] = {0, 0};
    for (int i = 0; i < 60; i++) { uint64_t begin = now(); before(); taken[0] += now() - begin; }
    const char leap[] = "monotonic 1000 0";
    int offsets = open("/proc/self/timens_offsets", O_WRONLY);
    if (offsets < 0 || write(offsets, leap, strlen(leap)) < 0) return 77;
    int other = open("/proc/self/ns/time_for_children", O_RDONLY);
    uint64_t leaps = now();
    if (other < 0 || setns(other, CLONE_NEWTIME)) return 77;
    struct timespec asleep = {0, 20000000}; // as a machine does that sleeps or is migrated
    nanosleep(&asleep, 0);
    if (now() - leaps < 1000000000000) return 77;
    for (int i = 0; i < 60; i++) { uint64_t begin = now(); after(); taken[1] += now() - begin; }
    printf("%llu %llu\\n", (unsigned long long)taken[0], (unsigned long long)taken[1]);
    return 0;
}
"""

# Spins and calls, in one thread and four, in a signal handler and in a forked child; each says how long it was not in a call, by clock
# reads that are no recorded calls. A thread begins and ends with a call: how long it had waited for a CPU before and what it does after,
# nobody knows.
OWN = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int (*volatile read_clock)(clockid_t, struct timespec *);
int (*clock_reader(void))(clockid_t, struct timespec *);
static uint64_t now(void) {
    struct timespec t;
    read_clock(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}
static void spin(int ms) { for (uint64_t begin = now(); now() - begin < ms * 1000000ull;) {} }
static uint64_t sleep_for(int ms) { uint64_t begin = now(); usleep(ms * 1000); return now() - begin; }
static volatile uint64_t in_handler;
static void handler(int unused) { (void)unused; spin(20); in_handler += sleep_for(10); }
struct times { uint64_t own, wall; };
static void *thread(void *times) {
    uint64_t begun = now(), called;
    usleep(1000);
    uint64_t begin = now();
    spin(60);
    called = sleep_for(30);
    spin(40);
    ((struct times *)times)->own = now() - begin - called;
    usleep(1000);
    ((struct times *)times)->wall = now() - begun;
    return times;
}
int main(void) {
    read_clock = clock_reader();
    uint64_t begin = now(), called = 0, t;
    struct times of[4];
    spin(80);
    called += sleep_for(40);
    signal(SIGUSR1, handler);
    t = now(); raise(SIGUSR1); called += now() - t;
    pthread_t ids[4];
    for (int i = 0; i < 4; i++) { t = now(); pthread_create(&ids[i], 0, thread, &of[i]); called += now() - t; }
    for (int i = 0; i < 4; i++) { t = now(); pthread_join(ids[i], 0); called += now() - t; }
    t = now();
    pid_t child = fork();
    if (!child) {
        uint64_t born = now();
        spin(70);
        uint64_t asleep = sleep_for(30);
        uint64_t wall = now() - born;
        printf("child %llu %llu\\n", (unsigned long long)(wall - asleep), (unsigned long long)wall);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, 0, 0);
    called += now() - t;
    spin(30);
    uint64_t wall = now() - begin;
    printf("main %llu %llu\\n", (unsigned long long)(wall - called), (unsigned long long)wall);
    for (int i = 0; i < 4; i++) printf("thread %llu %llu\\n", (unsigned long long)of[i].own, (unsigned long long)of[i].wall);
    return 0;
}
"""
CLOCK_READER = """
#include <time.h>
#include <dlfcn.h>
int (*clock_reader(void))(clockid_t, struct timespec *) { return (int (*)(clockid_t, struct timespec *))dlsym(RTLD_DEFAULT, "clock_gettime"); }
"""


class Analysis(suite.Test):
    def __init__(self, check, source, library=LIBRARY, level="-O0", way=""):
        super().__init__(f"analysis.{check.__name__}{way}", check)
        self.source, self.library, self.level = source, library, level

    def prepare(self):
        # Calls within the library go through its PLT too: they are what is recorded.
        library = self.compile("libanalysed.so", *self.level.split(), "-shared", "-fPIC", source=self.library)
        self.program = self.compile("program", "-O1", library, "-lpthread", source=self.source)

    def record(self, files=1, **variables):
        """(path of a trace, stdout)"""
        self.forget_traces()
        run = harness.execute([self.program], self.directory.path, self.traced_environment(**variables))
        if run.status == 77:
            raise Skipped("this kernel gives nobody here a clock of his own (time namespaces)")
        expect(run.status == 0, f"ended with {harness.describe(run.status)}: {run.stderr[-300:]!r}")
        names = os.listdir(self.traces)
        expect(len(names) == files, f"{len(names)} traces: {names}")
        return self.trace(names[0]), run.stdout

    def nanoseconds_of_tick(self, path):
        return 1e9 / self.json("info", path)["ticks_per_second"]


def tree_equals_the_decoders(test):
    path, _ = test.record()
    tree = test.json("tree", path)
    found = {}
    names = [(f["symbol"], f["module"]) for f in tree["functions"]]
    paths = []
    root = {r["node"]: r["tid"] for r in tree["roots"]}
    for index, node in enumerate(tree["nodes"]):
        if node["parent"] < 0:
            paths.append((root[index],))
            continue
        paths.append(paths[node["parent"]] + (names[node["function"]],))
        found[paths[-1]] = [node["calls"], node["open"], node["unwound"], node["total_ns"], node["self_ns"]]
    expected = {}
    trace = tracefile.read_all(test.traces)[0]
    scale, end = test.nanoseconds_of_tick(path), trace.header["last_ticks"]
    paths = {None: ()}
    for thread, above, node in calls_of(trace):
        function = trace.functions[node.function]
        over = paths[above] or (thread.tid,)
        here = paths[node] = over + ((function.name, os.path.basename(function.module.path) if function.module else "?"),)
        sums = expected.setdefault(here, [0, 0, 0, 0.0, 0.0])
        length = 0 if node.mark == "tail" else ((node.exit or end) - node.enter) * scale
        for index, more in enumerate((1, node.exit is None or node.mark == "open", node.mark == "unwound", length, length)):
            sums[index] += more
        if above:
            expected[over][4] -= length
    found = {here: sums for here, sums in found.items() if here[-1][0] != "(own code)"}  # has a test of its own
    expect(set(found) == set(expected),
           f"other paths: only in the tree {sorted(map(str, set(found) - set(expected)))[:5]}, only decoded {sorted(map(str, set(expected) - set(found)))[:5]}")
    for here, sums in expected.items():
        expect(found[here][0] == sums[0], f"{here}: {found[here][0]} calls, decoded {sums[0]}")
        # A call still open at the end ends where each reader places the end of the trace: times may differ.
        if sums[1] or found[here][1] or found[here][2] != sums[2]:
            continue
        for name, mine, other in (("total", found[here][3], sums[3]), ("self", found[here][4], sums[4])):
            expect(abs(mine - other) <= 2 + 1e-6 * abs(other), f"{here}: {name} {mine} ns, decoded {other:.1f} ns")
    expect(len(tree["roots"]) == 4 and any(len(here) > 3 for here in expected),
           f"{len(tree['roots'])} threads, or too few levels: the program did not do what it should")


def calls_of(trace):
    """(thread, the call's caller or None, the call), callers first."""
    for thread in trace.threads.values():
        stack = [(None, node) for node in thread.roots]
        while stack:
            above, node = stack.pop()
            yield thread, above, node
            stack += [(node, child) for child in node.children]


def a_window_has_the_decoders_part(test):
    """A stretch of the middle, and the moments of the slowest calls of one function, against calls cut by hand."""
    path, _ = test.record()
    trace, scale = tracefile.read_all(test.traces)[0], test.nanoseconds_of_tick(path)
    first, last = trace.header["first_ticks"], trace.header["last_ticks"]
    # (call, its caller, from, to), in ns since the beginning
    calls = [(node, above, (node.enter - first) * scale, ((node.exit or last) - first) * scale)
             for _, above, node in calls_of(trace) if node.mark != "tail"]
    names = {index: function.name for index, function in trace.functions.items()}
    leaves = sorted((call for call in calls if names[call[0].function] == "leaf" and call[0].exit), key=lambda c: c[0].enter - c[0].exit)
    # Enough calls that each of them took longer than all others.
    count = next(n for n in range(5, len(leaves)) if leaves[n - 1][3] - leaves[n - 1][2] > leaves[n][3] - leaves[n][2] + 2)
    slowest = leaves[:count]
    begins = sorted(begin for _, _, begin, _ in calls)
    middle = [begins[len(begins) * part // 10] for part in (3, 7)]
    stretch = ("--from", f"{middle[0] / 1e9:.9f}", "--to", f"{middle[1] / 1e9:.9f}")
    for arguments, moments in ((stretch, None), (("--around", "leaf", "--slowest", str(count)), [c[2:] for c in slowest])):
        report = test.json("report", path, *arguments)
        window = report["window"]
        if moments is None:
            expect(abs(window["from_ns"] - middle[0]) <= 10 and abs(window["to_ns"] - middle[1]) <= 10, f"{window}, asked for {middle}")
            moments = [(window["from_ns"], window["to_ns"])]
        expect(window["length_ns"] <= sum(b - a for a, b in moments) + 10, f"{window}: longer than {moments}")
        rounding = 3 * (1 + len(moments))  # moments are whole ticks, times whole nanoseconds
        least, most, own = {}, {}, {}
        for node, above, begin, end in calls:
            name = names[node.function]
            least[name] = least.get(name, 0) + any(begin == a or a + 2 < begin < b - 2 for a, b in moments)
            most[name] = most.get(name, 0) + any(a - 2 <= begin <= b + 2 for a, b in moments)
            part = sum(max(min(b, end) - max(a, begin), 0) for a, b in merged(moments))
            own[name] = own.get(name, 0) + part
            if above is not None:
                own[names[above.function]] = own.get(names[above.function], 0) - part
        found = {function["symbol"]: function for function in report["functions"]}
        for name in least:
            row = found.get(name, {"calls": 0, "self_ns": 0})
            expect(least[name] <= row["calls"] <= most[name],
                   f"{arguments}: {row['calls']} calls of {name}, decoded {least[name]} to {most[name]}")
            expect(abs(row["self_ns"] - own[name]) <= rounding * 20 + 1e-4 * abs(own[name]),
                   f"{arguments}: {name} itself {row['self_ns']} ns, decoded {own[name]:.1f} ns")
        expect(any(least.values()), f"{arguments}: no call begins there")


def merged(moments):
    result = []
    for begin, end in sorted(moments):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


def spread(values):
    """How far apart the middle half of them is, as a part of the median."""
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / middle


def correction_takes_out_what_recording_cost(test):
    """The tool subtracts the cost that the agent measured at its start, times the number of calls, and this brings a caller's
    self time nearer to its time without recording. How near depends on the CPU (a tight loop is measured, and the outer
    part of the cost is a clock read and a few stores, partly hidden by an out-of-order CPU): reported, not judged.

    A run counts when it was not disturbed: its rounds agree among themselves. The verdict is the median's of five runs that
    count, so that no lucky one passes the test and no unlucky one fails it."""
    kept, disturbed = [], 0
    while len(kept) < 5:
        path, out = test.record()
        truth = [int(line) for line in out.split()]
        tree = test.json("tree", path, "--correct")
        names = [function["symbol"] for function in tree["functions"]]
        nodes = {names[node["function"]]: node for node in tree["nodes"] if node["function"] >= 0}
        parents = [nodes[f"parent_{n}"] for n in range(ROUNDS)]
        expect(len(truth) == ROUNDS and all(node["calls"] == 1 for node in parents) and nodes["leaf"]["calls"] == 1000,
               "the program did not do what it should")
        header = tracefile.Trace(path).header
        scale = test.nanoseconds_of_tick(path) / COST_PARTS
        inside, outside = header["inside_cost"] * scale, (header["leaf_cost"] - header["inside_cost"]) * scale
        expect(header["leaf_cost"], "the agent measured no cost of recording")
        for node in parents:
            expected = min(1000 * outside + inside, node["self_ns"])
            expect(abs(node["self_cost_ns"] - expected) <= 1 + 1e-6 * expected,
                   f"subtracted {node['self_cost_ns']} ns, of 1,000 calls that cost their caller {outside:.2f} ns and one that takes {inside:.2f} ns")
        raw = [node["self_ns"] for node in parents]
        corrected = [node["self_ns"] - node["self_cost_ns"] for node in parents]
        if spread(truth) > 0.12 or spread(raw) > 0.12:
            disturbed += 1
            if disturbed > 60:
                raise Skipped("the machine does not calm down: no times can be judged")
            continue
        own = statistics.median(truth)
        kept.append((statistics.median(raw) / own, statistics.median(corrected) / own))
    raw, corrected = (statistics.median(run[which] for run in kept) for which in (0, 1))
    summary = f"self time over that without recording: {raw:.3f} as measured, {corrected:.3f} corrected; a call costs {inside + outside:.1f} ns, {outside:.1f} of it its caller"
    if abs(raw - 1) < 0.05:
        raise Skipped(f"recording hardly shows here, so that its correction proves nothing: {summary}")
    expect(abs(corrected - 1) < abs(raw - 1),
           f"correction leads away from the truth: {summary}; of each run " + ", ".join(f"{one:.2f} {other:.2f}" for one, other in kept))
    return summary


def corrected_times_are_within_their_error(test):
    """Corrected times of an empty function, of one with short calls inside, and of a sort are right to a tenth, or to the stated error.
    As above, the verdict is the median's of five undisturbed runs; sums are of all rounds."""
    names, kept, disturbed = ("nothing", "parent", "sort"), [], 0
    while len(kept) < 5:
        path, out = test.record()
        taken = [[], [], []]
        for shape, bare, recorded in (map(int, line.split()) for line in out.splitlines()):
            taken[shape].append((bare, recorded))
        if any(sum(times) > 1.25 * statistics.median(times) * len(times) for rounds in taken for times in zip(*rounds)):
            disturbed += 1
            if disturbed > 150:
                raise Skipped("the machine does not calm down: no times can be judged")
            continue
        rows = {row["symbol"]: row for row in test.json("report", path, "--correct")["functions"]}
        run = []
        for name, rounds in zip(names, taken):
            row, truth = rows[name], sum(bare for bare, _ in rounds)
            expect(row["p50_ns"] is not None and row["p99_ns"] is not None, f"{name} has no percentiles: {row}")
            value, error, most = (row[f"corrected_total_{what}"] for what in ("ns", "error_ns", "most_ns"))
            over = max(most / truth, 0)
            # An empty function is a part of what a loop of calls of it takes.
            off = 0 if value is None and name == "nothing" else max(truth - most, 0) if value is None else max(abs(value - truth) - error, 0)
            run.append((off / truth, row["total_ns"] / truth, None if value is None else value / truth, over))
        kept.append(run)
    summary = []
    for index, name in enumerate(names):
        off = statistics.median(run[index][0] for run in kept)
        raw, most = (statistics.median(run[index][which] for run in kept) for which in (1, 3))
        values = [run[index][2] for run in kept if run[index][2] is not None]
        summary.append(f"{name}: {raw:.2f} of the truth as measured, " + (f"{statistics.median(values):.2f} corrected, " if values else "") + f"at most {most:.2f}")
        expect(off <= 0.1, f"{name} is off by {off:.0%} of the truth beyond its error; {summary[-1]}; runs {[run[index] for run in kept]}")
    return "; ".join(summary)


def times_are_right_on_both_sides_of_a_leap_of_the_clock(test):
    path, out = test.record()
    trace = tracefile.Trace(path)
    if trace.header["clock"] == 3:
        raise Skipped("no cycle counter is used here")
    expect(len(trace.clock_samples) == 2, f"the agent noted {trace.clock_samples}")
    run = test.tool("report", path, "--json", "--top", "0", status=1)
    expect("the rate of the cycle counter changed" in run.stderr, f"nobody says that the clock leapt: {run.stderr[-300:]!r}")
    rows = {row["symbol"]: row for row in json.loads(run.stdout)["functions"]}
    for name, taken in zip(("before", "after"), map(int, out.split())):
        calls, total = rows[name]["calls"], rows[name]["total_ns"]
        expect(calls == 60 and 60 * 5_000_000 * 0.998 <= total <= taken * 1.002,
               f"{name}: {calls} calls, {total} ns; the program counted 60, {taken} ns")


UNDISTURBED_WITHIN = 12


def own_code_is_what_the_program_measured(test):
    """A thread that loses its CPU in the agent, between its call's end and the program's clock read, has that counted as own
    code and does not measure it: of some runs on a busy machine one is undisturbed."""
    for minimum in ("0", "0.5"):
        faults = ["never run"]
        for _ in range(UNDISTURBED_WITHIN):
            faults = faults and own_code_differs(test, minimum)
        expect(not faults, f"TRACER_MINMS={minimum}: " + "; ".join(faults))


def own_code_elsewhere(test, trace, own):
    """Every other reader of calls says what the report says, of each thread, but for a rounding."""
    def same(what, found):
        expect(not any(abs(found.get(tid, 0) - own[tid]) > 1 for tid in own), f"own code of {trace}: {what} {found}, report {own}")
    tree = test.json("tree", trace)
    number = [f["name"] for f in tree["functions"]].index("(own code)")
    root = {entry["node"]: entry["tid"] for entry in tree["roots"]}
    same("tree", {root[node["parent"]]: node["total_ns"] for node in tree["nodes"] if node["function"] == number})
    rows, top = {}, None
    for index, node in enumerate(tree["nodes"]):
        top = index if node["parent"] < 0 else top
        rows[root[top]] = rows.get(root[top], 0) + node["self_ns"]
    stacks = [line.rsplit(" ", 1) for line in test.tool("export", trace, "--format", "folded", "-o", "-").stdout.splitlines()]
    same("folded", {int(stack.split(";")[1].rsplit(" ", 1)[1]): int(ns) for stack, ns in stacks if stack.endswith(";program`(own code)")})
    difference = test.json("diff", trace, trace)
    for side in ("before", "after"):
        expect(abs(difference["own"][side]["self_ns"][0] - sum(own.values())) <= len(own),
               f"own code of {trace}: diff {difference['own']}, report {own}")
    expect(difference["before_ns"] == test.json("report", trace)["duration_ns"],
           f"{trace} ran for {difference['before_ns']} ns by diff")
    return rows


def own_code_differs(test, minimum):
    _, out = test.record(files=2, TRACER_MINMS=minimum)
    measured, walls = {}, {}
    for line in out.decode().splitlines():
        if line.strip():
            role, own, wall = line.split()
            measured.setdefault(role, []).append(int(own))
            walls.setdefault(role, []).append(int(wall))
    found, sums = {"thread": []}, {"thread": []}
    for name in os.listdir(test.traces):
        report = test.json("report", test.trace(name))
        threads = report["threads"]
        rows = own_code_elsewhere(test, test.trace(name), {thread["tid"]: thread["own_ns"] for thread in threads})
        for thread in threads:
            role = "thread" if thread["tid"] != report["pid"] else "main" if len(threads) > 1 else "child"
            found.setdefault(role, []).append(thread["own_ns"])
            sums.setdefault(role, []).append(rows[thread["tid"]])
            in_calls = thread["span_ns"] - thread["own_ns"]
            expect(thread["own_ns"] <= thread["span_ns"] and (thread["tid"] != report["pid"] or thread["span_ns"] <= report["duration_ns"]),
                   f"{thread} in {report['duration_ns']} ns, {in_calls} in calls")
        expect(abs(sum(thread["span_ns"] - thread["own_ns"] for thread in threads) - report["in_calls_ns"]) <= 10,
               f"{report['in_calls_ns']} ns in calls; of threads {threads}")
        expect(report["modules"] == [{"name": "program", "own_ns": sum(thread["own_ns"] for thread in threads)}],
               f"{report['modules']}; of threads {threads}")
    # All rows of a thread, own code and calls, are its wall time.
    return [f"rows of {role} add up to {rows} ns, in {wall} ns" for role, values in walls.items()
            for rows, wall in zip(sorted(sums[role]), sorted(values)) if not 0.99 * wall <= rows <= 1.01 * wall + 1_000_000] + [f"own code of {role} {own} ns, {true} ns measured" for role, values in measured.items()
            for own, true in zip(sorted(found[role]), sorted(values)) if not 0.97 * true <= own <= 1.03 * true + 1_000_000]


PLUGIN = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
__attribute__((constructor)) static void begin(void) {
    Dl_info own;
    if (dladdr((void *)begin, &own) && strstr(own.dli_fname, "outer")) dlopen("./inner.so", RTLD_NOW);
}
"""
HOST = """
#include <dlfcn.h>
int main(void) {
    for (int i = 0; i < 2; i++) if (!dlopen("./outer.so", RTLD_NOW) || !dlopen("./other.so", RTLD_NOW)) return 1; /* once for nothing */
    return dlopen("./none.so", RTLD_NOW) != 0;
}
"""


def a_call_of_dlopen_shows_its_file_in_every_view(test):
    for name in ("outer", "inner", "other"):
        shutil.copy(test.path("libanalysed.so"), os.path.join(test.directory.path, "cwd", name + ".so"))
    path, _ = test.record()

    folded = {tuple(re.findall(r"dlopen(?:\([^)]*\))?", line)) for line in test.tool("export", path, "--format", "folded", "-o", "-").stdout.splitlines() if "dlopen" in line}
    expected = {("dlopen(outer.so)",), ("dlopen(outer.so)", "dlopen(inner.so)"), ("dlopen(other.so)",), ("dlopen",)}
    expect(folded == expected, f"folded: {folded}, expected {expected}")
    tree = re.findall(r"(\d+) +(dlopen\S*) ", test.tool("tree", path, "--min-share", "0").stdout)
    expect(sorted(tree) == sorted([("1", "dlopen(outer.so)"), ("1", "dlopen(inner.so)"), ("1", "dlopen(other.so)"), ("3", "dlopen")]),
           f"tree: {tree}")
    page = test.path("page.html")
    test.tool("view", path, "-o", page)
    shown = set(re.findall(r'\["(dlopen[^"]*)"', suite.read(page)))
    expect(shown == {name for names in expected for name in names}, f"page: {shown}")
    names = {function["name"] for function in test.json("report", path)["functions"]}
    expect({name for name in names if name.startswith("dlopen")} == {"dlopen"}, "report has another row than dlopen")


def tests():
    leap = times_are_right_on_both_sides_of_a_leap_of_the_clock
    return [Analysis(leap, LEAP, LASTING, "-O0 -DNOW=now", ".busy"), Analysis(leap, LEAP, LASTING, "-O0 -DNOW=unrecorded", ".idle"),
            Analysis(own_code_is_what_the_program_measured, OWN, CLOCK_READER), Analysis(tree_equals_the_decoders, THREADS),
            Analysis(a_call_of_dlopen_shows_its_file_in_every_view, HOST, PLUGIN), Analysis(a_window_has_the_decoders_part, THREADS),
            Analysis(correction_takes_out_what_recording_cost, ROUNDS_OF_PARENTS, PARENTS, "-O1"),
            Analysis(corrected_times_are_within_their_error, SHAPES, SHAPES_LIBRARY, "-O1 -fno-builtin")]
