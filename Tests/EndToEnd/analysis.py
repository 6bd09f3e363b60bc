#!/usr/bin/env python3
"""What the tool makes of a real trace: its merged tree against one that tracefile.py's decoder makes, and a caller's own time
without the cost of recording against what it took in the same process without being recorded."""
import json
import os
import statistics
import subprocess
import sys

import harness
import tracefile
from harness import Failed, Skipped

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
COST_PARTS = 256  # of a tick, docs/format.md
# Each round is one call of a function of its own, with 1,000 calls below it, so that the tree tells rounds apart. Between
# them the same work is done and timed without being recorded: with calls, and the called part alone. What calls is reached
# through a pointer as it is through the PLT.
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
/* A processor has begun with what follows long before it is through with a piece of work, and reads the clock early: a caller's
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


class Analysis:
    def __init__(self, name, source, check, library=LIBRARY, level="-O0"):
        self.name, self.source, self.check, self.library, self.level = "analysis." + name, source, check, library, level

    def run(self, settings):
        if settings.bare_only:
            return
        place = harness.Place("analysis", settings.keep)
        try:
            where = place.fresh()
            for name, text in (("library.c", self.library), ("program.c", self.source)):
                with open(os.path.join(where, name), "w", encoding="utf-8") as file:
                    file.write(text)
            # Calls within the library go through its PLT too: they are what is recorded.
            for command in (f"gcc {self.level} -shared -fPIC -o libanalysed.so library.c", "gcc -O1 -o program program.c -L. -lanalysed -lpthread -Wl,-rpath,$PWD"):
                subprocess.run(["sh", "-c", command], cwd=where, check=True)
            environment = harness.traced_environment(settings, harness.passed_on(os.environ), place)
            return self.check(settings, place, environment)
        finally:
            place.done()

    @staticmethod
    def record(place, environment):
        for name in os.listdir(place.traces):
            os.unlink(os.path.join(place.traces, name))
        run = harness.execute([os.path.join(place.path, "program")], place.path, environment, timeout=120)
        if run.status != 0:
            raise Failed(f"ended with {harness.describe(run.status)}: {run.stderr[-300:]!r}")
        name, = os.listdir(place.traces)
        return os.path.join(place.traces, name), run.stdout


def tool(settings, *arguments):
    run = subprocess.run([settings.tool, *arguments], capture_output=True, timeout=120, check=False)
    if run.returncode != 0:
        raise Failed(f"tracer {' '.join(arguments[:1])}: status {run.returncode}: {run.stderr[-300:]!r}")
    return json.loads(run.stdout)


def tree_equals_the_decoders(settings, place, environment):
    path, _ = Analysis.record(place, environment)
    tree = tool(settings, "tree", path, "--json")
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
    trace = tracefile.read_all(place.traces)[0]
    scale = tool(settings, "info", path, "--json")["ticks_per_second"] / 1e9
    end = trace.header["last_ticks"]
    for thread in trace.trees().threads.values():
        stack = [((thread.tid,), node) for node in thread.roots]
        while stack:
            above, node = stack.pop()
            function = trace.functions[node.function]
            here = above + ((function.name, os.path.basename(function.module.path) if function.module else "?"),)
            sums = expected.setdefault(here, [0, 0, 0, 0.0, 0.0])
            sums[0] += 1
            if node.exit is None or node.mark == "open":
                sums[1] += 1
            if node.mark == "unwound":
                sums[2] += 1
            length = 0 if node.mark == "tail" else (node.exit or end) - node.enter
            sums[3] += length / scale
            sums[4] += length / scale
            if len(above) > 1:
                expected[above][4] -= length / scale
            stack += [(here, child) for child in node.children]
    if set(found) != set(expected):
        raise Failed(f"other paths: only in the tree {sorted(map(str, set(found) - set(expected)))[:5]}, only decoded {sorted(map(str, set(expected) - set(found)))[:5]}")
    for here, sums in expected.items():
        if found[here][0] != sums[0]:
            raise Failed(f"{here}: {found[here][0]} calls, decoded {sums[0]}")
        # What is open at the end ends where each reader says that the trace does.
        if sums[1] or found[here][1] or found[here][2] != sums[2]:
            continue
        for name, mine, other in (("total", found[here][3], sums[3]), ("self", found[here][4], sums[4])):
            if abs(mine - other) > 2 + 1e-6 * abs(other):
                raise Failed(f"{here}: {name} {mine} ns, decoded {other:.1f} ns")
    if len(tree["roots"]) != 4 or not any(len(here) > 3 for here in expected):
        raise Failed(f"{len(tree['roots'])} threads, or too few levels: the program did not do what it should")


def spread(values):
    """How far apart the middle half of them is, as a part of the median."""
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / middle


def correction_takes_out_what_recording_cost(settings, place, environment):
    """What is subtracted is what the agent measured as it started, times the calls; and it brings a caller's own time nearer to
    what it is without recording. How near depends on the processor (a tight loop is measured, and the outer part of the cost is
    a clock read and a few stores, of which an out-of-order processor hides a part): that is told, and not judged.

    A run counts when it was not disturbed: its rounds agree among themselves. The verdict is the median's of five runs that
    count, so that no lucky one passes the test and no unlucky one fails it."""
    kept, disturbed = [], 0
    while len(kept) < 5:
        path, out = Analysis.record(place, environment)
        truth = [int(line) for line in out.split()]
        tree = tool(settings, "tree", path, "--json", "--correct")
        names = [function["symbol"] for function in tree["functions"]]
        nodes = {names[node["function"]]: node for node in tree["nodes"] if node["function"] >= 0}
        parents = [nodes[f"parent_{n}"] for n in range(ROUNDS)]
        if len(truth) != ROUNDS or any(node["calls"] != 1 for node in parents) or nodes["leaf"]["calls"] != 1000:
            raise Failed("the program did not do what it should")
        header = tracefile.Trace(path).header
        scale = 1e9 / tool(settings, "info", path, "--json")["ticks_per_second"] / COST_PARTS
        inside, outside = header["inside_cost"] * scale, (header["leaf_cost"] - header["inside_cost"]) * scale
        if not header["leaf_cost"]:
            raise Failed("the agent measured no cost of recording")
        for node in parents:
            expected = min(1000 * outside + inside, node["self_ns"])
            if abs(node["self_cost_ns"] - expected) > 1 + 1e-6 * expected:
                raise Failed(f"subtracted {node['self_cost_ns']} ns, of 1,000 calls that cost their caller {outside:.2f} ns and one that takes {inside:.2f} ns")
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
    told = f"self time over that without recording: {raw:.3f} as measured, {corrected:.3f} corrected; a call costs {inside + outside:.1f} ns, {outside:.1f} of it its caller"
    if abs(raw - 1) < 0.05:
        raise Skipped(f"recording hardly shows here, so that its correction proves nothing: {told}")
    if abs(corrected - 1) >= abs(raw - 1):
        raise Failed(f"correction leads away from the truth: {told}; of each run "
                     + ", ".join(f"{one:.2f} {other:.2f}" for one, other in kept))
    return told


def tests():
    return [Analysis("tree_equals_the_decoders", THREADS, tree_equals_the_decoders),
            Analysis("correction_takes_out_what_recording_cost", ROUNDS_OF_PARENTS,
                     correction_takes_out_what_recording_cost, PARENTS, "-O1")]


if __name__ == "__main__":
    import run
    sys.exit(run.main(("analysis",)))
