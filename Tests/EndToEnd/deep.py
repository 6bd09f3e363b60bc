"""Many calls that are open at a time: counts and times are exact, costs are in proportion to the calls, and a ring stays as large as was
asked for, however deep a stack once was and however many threads are idle."""
import csv
import os
import subprocess

import costs
import harness
import impossible
import suite
import tracefile
from harness import expect

# A recursion through a library, so many levels deep, in a thread with a stack for it, or there in a coroutine; then so many calls without any
# inside.
RECURSION = """#include <pthread.h>
#include <stdlib.h>
#include <tracer.h>
#include <ucontext.h>
long down(long n, long (*back)(long));
static long depth, after;
static long back(long n) {
    if (n == 0 && MARKS) tracer_mark("bottom");
    return down(n, back);
}
static void *go(void *unused) {
    long sum = depth ? down(depth, back) - depth : 0;
    for (long i = 0; i < after; i++) sum += down(0, back);
    return sum ? &depth : unused;
}
static ucontext_t thread_itself, coroutine;
static void *wrong_there;
static void go_there(void) {
    wrong_there = go(0);
    setcontext(&thread_itself);
}
static void *in_coroutine(void *unused) {
    getcontext(&coroutine);
    coroutine.uc_stack.ss_size = (1 << 20) + depth * 128, coroutine.uc_stack.ss_sp = malloc(coroutine.uc_stack.ss_size);
    makecontext(&coroutine, go_there, 0);
    swapcontext(&thread_itself, &coroutine);
    return wrong_there ? &depth : unused;
}
int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *wrong;
    depth = atol(argv[argc - 2]), after = atol(argv[argc - 1]);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (1 << 20) + depth * 128) || pthread_create(&thread, &attributes, COROUTINE ? in_coroutine : go, 0)) return 1;
    return pthread_join(thread, &wrong) || wrong;
}
"""
LIBRARY = "long down(long n, long (*back)(long)) { return n ? back(n - 1) + 1 : 0; }"
HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "CSupport", "include")
DEEP = 1_700_000   # levels; 2^20 are 1,048,576, and a tree has a million and a half
RING = 1 << 20     # bytes: its chunks have 64 KB
FIRST = 16 << 10   # a thread's first chunk
METADATA = 1 << 18  # may begin just below the limit


def recursion(test, marks=False, coroutine=False):
    library = test.compile("libdown.so", "-O1", "-shared", "-fPIC", source=LIBRARY)
    return test.compile("recursion", "-O1", f"-DMARKS={int(marks)}", f"-DCOROUTINE={int(coroutine)}", f"-I{HEADERS}", test.write("recursion.c", RECURSION), library,
                        "-Wl,-rpath,$ORIGIN", "-lpthread")


def more_than_a_million_open_calls_are_exact(test):
    test.execute([recursion(test), str(DEEP), "0"])
    path = test.trace(os.listdir(test.traces)[0])
    report = harness.report(test.settings, path)
    found = impossible.contradictions(impossible.Figures(report))
    expect(not found, f"contradictions: {found[:4]}")
    down = next(row for row in report["functions"] if row["name"] == "down")
    expect(down["calls"] == DEEP + 1, f"{down['calls']} calls of down, {DEEP + 1} made")
    expect(sum(row["self_ns"] for row in report["functions"]) <= sum(thread["span_ns"] for thread in report["threads"]) + len(report["functions"]),
           "functions ran for longer than the threads")
    by_caller = test.json("report", path, "--by", "caller")["functions"]
    ours = [row for row in by_caller if row["name"] in ("down", "(further paths)")]
    expect(sum(row["calls"] for row in ours) == DEEP + 1, "the tree has another number of calls")
    expect(abs(sum(row["self_ns"] for row in ours) - down["self_ns"]) <= len(ours), "the tree has another self time")
    lines = test.tool("tree", path, "--min-share", "0").stdout.splitlines()
    expect(any("down" in line and "levels" in line for line in lines) and any("(further paths)" in line for line in lines),
           f"the tree does not say that paths are one: {lines[:4]}")
    callers = test.tool("callers", path, "down").stdout
    expect("(further paths)" in callers, f"the callers do not say that levels are one: {callers[:300]}")
    rows = 0
    for row in read_rows(test, path):
        rows += row["function"] == "down"
        expect(0 <= int(row["self_ns"]) <= int(row["duration_ns"]) <= report["duration_ns"], f"{row}")
    expect(rows == DEEP + 1, f"{rows} calls of down in the CSV export")
    replayed = count_lines(test, "replay", path, "--top", "0")
    expect(replayed >= report["calls"], f"{replayed} lines of replay, {report['calls']} calls")


def read_rows(test, path):
    return csv.DictReader(lines_of(test, "export", path, "--format", "csv", "-o", "-"))


def count_lines(test, *words):
    return sum(1 for _ in lines_of(test, *words))


def lines_of(test, *words):
    """Hundreds of megabytes, as they come."""
    with subprocess.Popen([test.settings.tool, *words], stdout=subprocess.PIPE, text=True, env=test.environment(), cwd=test.made) as running:
        yield from running.stdout
    expect(not running.returncode, f"tracer {words[0]}: {harness.describe(running.returncode)}")


def costs_in_proportion(test, program, few, environment, what):
    """Instructions of twice as many levels are twice as many."""
    none, once, twice = (costs.instructions(test, environment, program, levels, 0) for levels in (0, few, 2 * few))
    each, later = (once - none) / few, (twice - once) / few
    expect(later <= 1.3 * each, f"{what}: {each:,.0f} instructions for each of {few:,} levels, {later:,.0f} for each of as many more")
    return f"{each:,.0f} instructions for each of {few:,} levels, {later:,.0f} for each of as many more"


def recursion_costs_in_proportion_to_its_levels(test):
    """With the smallest of chunks: each looks only at the frames that are new since the last one."""
    environment = test.traced_environment(TRACER_MODE="ring", TRACER_MAXSIZE="256K")
    return costs_in_proportion(test, recursion(test), 40_000, environment, "recording")


def recursion_costs_in_proportion_to_its_levels_on_a_coroutine(test):
    environment = test.traced_environment(TRACER_MODE="ring", TRACER_MAXSIZE="256K")
    return costs_in_proportion(test, recursion(test, coroutine=True), 40_000, environment, "recording on a coroutine")


def calls_held_back_cost_in_proportion_to_their_levels(test):
    """Under a time filter: the mark at the bottom keeps all calls that it is in."""
    return costs_in_proportion(test, recursion(test, marks=True), 5000, test.traced_environment(TRACER_MINMS="100000"), "the time filter")


def blocks(path):
    return os.stat(path).st_blocks * 512


def recorded_ring(test, argv, most):
    """The one trace; its size on disk is `most` at most."""
    test.execute(argv, TRACER_MODE="ring", TRACER_MAXSIZE=str(RING))
    trace = tracefile.read_all(test.traces)[0]
    expect(not trace.anomalies, f"{trace.anomalies[:4]}")
    size = max(blocks(trace.path), len(trace.data.rstrip(b"\0")))
    expect(size <= most, f"{size:,} bytes on disk, at most {most:,} expected")
    report = harness.report(test.settings, trace.path)
    found = impossible.contradictions(impossible.Figures(report))
    expect(not found, f"contradictions: {found[:4]}")
    spans = [thread["span_ns"] for thread in report["threads"]]
    if None not in spans:
        own = sum(row["self_ns"] for row in report["functions"])
        expect(own <= sum(spans) + len(report["functions"]), f"functions ran for {own:,} ns, the threads for {sum(spans):,}")
    return trace, f"{size:,} bytes"


def ring_stays_within_its_size_after_a_deep_stack(test):
    _, summary = recorded_ring(test, [recursion(test), "20000", "600000"], RING + METADATA)
    return summary


def ring_stays_within_its_size_in_a_deep_stack(test):
    """Calls of which a ring's chunks say nothing, since they cannot store all that are open, have no length, and no other call has theirs."""
    trace, summary = recorded_ring(test, [recursion(test), "150000", "0"], RING + METADATA)
    expect(all(0 < chunk["sequence"] or chunk["thread"] == 0 for _, chunk in trace.chunks if chunk["kind"] == 1), "the ring has overwritten nothing")
    return summary


def idle_threads_take_their_first_chunks_of_a_ring(test):
    idle = 200
    program = test.compile("threads", "-O1", "-lpthread", source=costs.THREADS)
    _, summary = recorded_ring(test, [program, str(idle), "0"], RING + METADATA + idle * FIRST)
    return summary


def threads_that_come_and_go_beside_idle_ones_take_no_more(test):
    idle = 40
    program = test.compile("threads", "-O1", "-lpthread", source=costs.THREADS)
    trace, summary = recorded_ring(test, [program, str(idle), "1500"], RING + METADATA + idle * FIRST)
    expect(max(trace.threads) > 1500, f"the youngest thread is {max(trace.threads)}")
    return summary


def tests():
    return suite.tests_of(__name__)
