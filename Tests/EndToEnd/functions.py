"""Functions that are recorded by their own first bytes (TRACER_FUNCTIONS): each call once, with the counts that the program itself
kept; programs of the distribution with every function of theirs and of their libraries, libc included; plans that do not fit."""
import csv
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

import build
import harness
import suite
from harness import Failed, Skipped, expect
from suite import read_bytes, write

COUNTS = r"""
#include <atomic>
#include <cstdio>
#include <setjmp.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#define COUNTED(name) static std::atomic<long> calls_##name; static struct at_##name { ~at_##name() { std::printf(#name " %ld\n", calls_##name.load()); } } print_##name
#define BEGIN(name) calls_##name++
#define FUNCTION __attribute__((noinline, noclone, used))
COUNTED(leaf); COUNTED(fibonacci); COUNTED(even); COUNTED(odd); COUNTED(thrower); COUNTED(jumper); COUNTED(of_thread); COUNTED(many);
extern "C" {
volatile long sink;
FUNCTION static long leaf(long n) { BEGIN(leaf); asm volatile(""); return n * 3 + 1; }
FUNCTION long fibonacci(long n) { BEGIN(fibonacci); if (n < 2) return n; long left = fibonacci(n - 1); asm volatile("" : "+r"(left)); long right = fibonacci(n - 2); asm volatile("" : "+r"(right)); return left + right; }
FUNCTION long odd(long n);
FUNCTION long even(long n) { BEGIN(even); return n ? odd(n - 1) : 1; }
FUNCTION long odd(long n) { BEGIN(odd); return n ? even(n - 1) : 0; }
FUNCTION static void thrower(long n) { BEGIN(thrower); if (n == 0) throw std::runtime_error("thrown"); thrower(n - 1); asm volatile(""); }
static jmp_buf saved;
FUNCTION static void jumper(long n) { BEGIN(jumper); if (n == 0) longjmp(saved, 1); jumper(n - 1); asm volatile(""); }
FUNCTION static double many(long a, long b, long c, long d, long e, long f, long g, double x, double y) { BEGIN(many); return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + x * y; }
FUNCTION static void of_thread(long n) { BEGIN(of_thread); for (long i = 0; i < n; i++) sink = leaf(i); }
}
int main() {
    long sum = 0;
    for (long i = 0; i < 3000; i++) sum += leaf(i);
    sum += fibonacci(15) + even(1001) + odd(70);
    for (int i = 0; i < 20; i++) try { thrower(i); } catch (const std::exception &problem) { sum += std::string(problem.what()).size(); }
    for (volatile int i = 0; i < 20; i++) if (!setjmp(saved)) jumper(i);
    for (int i = 0; i < 100; i++) sum += (long)many(i, 2, 3, 4, 5, 6, 7, 0.5, i);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(of_thread, 500);
    for (auto &thread : threads) thread.join();
    std::printf("sum %ld\n", sum);
}
"""
NAMES = ("leaf", "fibonacci", "even", "odd", "thrower", "jumper", "of_thread", "many")


# Functions that compilers generate in unusual ways: each is counted, and says whether it worked.
KINDS = r"""
#include <alloca.h>
#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define FUNCTION __attribute__((noinline, noclone, used))
#define KINDS(K) K(interpret) K(switched) K(nested) K(returned_to) K(left) K(of_stack) K(of_length) K(summed) K(summed_from) K(large) K(pair) \
    K(doubles) K(wide) K(product) K(ordered) K(turned) K(further) K(aligned) K(many) K(huge) K(flagged) K(leaf)
#define COUNTER(name) static long calls_##name;
KINDS(COUNTER)
#define BEGIN(name) calls_##name++
#define CHECK(x) do { if (!(x)) { printf("%d: not so: %s\n", __LINE__, #x); exit(9); } } while (0)
static volatile long sink;
FUNCTION static long leaf(long n) { BEGIN(leaf); return n ^ sink; }

/* Jumps to computed addresses, and by a table; the first statement is a target. */
FUNCTION static long interpret(const unsigned char *code, long value) {
    static const void *const targets[] = {&&add, &&twice, &&negate, &&loop, &&stop};
    BEGIN(interpret);
    long turns = 3;
    goto *targets[*code];
add: value += 5; goto *targets[*++code];
twice: value = leaf(value) * 2; goto *targets[*++code];
negate: value = -value; goto *targets[*++code];
loop: if (--turns) { code -= 2; goto *targets[*code]; } goto *targets[*++code];
stop: return value;
}
FUNCTION static int switched(int n) {
    BEGIN(switched);
    switch (n) { case 0: return 7; case 1: return (int)leaf(3); case 2: return 12; case 3: return n * n; case 4: return -1; case 5: return 44; case 6: return 3;
    case 7: return n << 3; default: return 0; }
}
FUNCTION static long applied(long (*function)(long), long n) { return function(n) + function(n + 1); }
#ifdef __clang__
static long chain;
FUNCTION static long nested(long n) { BEGIN(nested); chain += n; return chain; }
FUNCTION static long nests(long start) { chain = start; return applied(nested, 2) + chain; }
#else
FUNCTION static long nests(long start) {
    long chain = start;
    FUNCTION long nested(long n) { BEGIN(nested); chain += n; return chain; }
    return applied(nested, 2) + chain;
}
#endif
static jmp_buf saved;
FUNCTION __attribute__((noreturn)) static void left(int n) { BEGIN(left); if (n) left(n - 1); longjmp(saved, 3); }
FUNCTION static int returned_to(int n) {
    BEGIN(returned_to);
    volatile int turns = 0;
    int value = setjmp(saved);
    if (turns++ < n) left(turns);
    return turns * 10 + value;
}
FUNCTION static long of_stack(int n) {
    BEGIN(of_stack);
    char *buffer = alloca(n), *more = alloca(n * 2);
    memset(buffer, 1, n); memset(more, 2, n * 2);
    return leaf(buffer[n - 1]) + more[2 * n - 1] + ((uintptr_t)more & 15);
}
FUNCTION static long of_length(int n) {
    BEGIN(of_length);
    long buffer[n][2];
    for (int i = 0; i < n; i++) buffer[i][0] = i, buffer[i][1] = leaf(i);
    long sum = 0;
    for (int i = 0; i < n; i++) sum += buffer[i][0] * buffer[n - 1 - i][1];
    return sum;
}
FUNCTION static double summed_from(int n, va_list list) { BEGIN(summed_from); double sum = 0; while (n--) sum += va_arg(list, int) * va_arg(list, double); return sum; }
FUNCTION static double summed(int n, ...) { BEGIN(summed); va_list list; va_start(list, n); double sum = summed_from(n, list); va_end(list); return sum; }
struct large { long word[9]; };
struct pair { long one, other; };
struct doubles { double one; float other; };
FUNCTION static struct large large(struct large from, int n) { BEGIN(large); for (int i = 0; i < 9; i++) from.word[i] += n * i; if (n) from = large(from, n - 1); from.word[8] += n; return from; }
FUNCTION static struct pair pair(struct pair from) { BEGIN(pair); return (struct pair){from.other, leaf(from.one)}; }
FUNCTION static struct doubles doubles(float x, double y) { BEGIN(doubles); return (struct doubles){y * 2, x + 1}; }
FUNCTION static long double wide(long double x, int n) { BEGIN(wide); return n ? wide(x, n - 1) * 1.5L : x; }
FUNCTION static double complex product(double complex x, double complex y) { BEGIN(product); return x * y + leaf(1); }
FUNCTION static __int128 huge(__int128 x, unsigned __int128 y) { BEGIN(huge); return x * (__int128)(y + leaf(0)); }
FUNCTION static int ordered(const void *one, const void *other) { BEGIN(ordered); return *(const int *)one - *(const int *)other; }
typedef long step(long, void *);
FUNCTION static long further(long n, void *next) { BEGIN(further); return n > 100 ? n : ((step *)next)(n + 3, (void *)further); }
FUNCTION static long turned(long n, void *next) { BEGIN(turned); return n > 100 ? -n : ((step *)next)(n * 2, (void *)turned); }
FUNCTION static long aligned(long n) {
    BEGIN(aligned);
    _Alignas(64) volatile long buffer[8];
    buffer[3] = n;
    return leaf(buffer[3]) + ((uintptr_t)buffer & 63);
}
FUNCTION static double many(char a, short b, int c, long d, float e, double f, long g, long h, long i, struct pair j, double k, double l, double m, double n, double o, double p, double q, struct large r) {
    BEGIN(many);
    return a + b + c + d + e + f + g + h + i + j.one - j.other + k + l + m + n + o + p + q + r.word[8];
}
FUNCTION static int flagged(unsigned a, unsigned b) { BEGIN(flagged); unsigned c; return __builtin_add_overflow(a, b, &c) ? (int)leaf(c) : -1; }
/* By the address that they return to: recorded or not, they find what they find bare. */
FUNCTION static void *returns_here(void) { return __builtin_return_address(0); }
FUNCTION static void *caller_returns(volatile char *buffer) { *buffer = 0; return __builtin_return_address(1); }
FUNCTION static void *asked(int n) { volatile char *buffer = alloca(n); void *found = caller_returns(buffer); *buffer = 1; return found; }
extern char __executable_start, etext;
static int is_own(void *address) { return (char *)address >= &__executable_start && (char *)address < &etext; }
int main(void) {
    CHECK(interpret((const unsigned char[]){0, 1, 2, 3, 4}, 1) == interpret((const unsigned char[]){0, 1, 2, 3, 4}, 1));
    for (int round = 0; round < 40; round++) {
        long sum = interpret((const unsigned char[]){0, 1, 2, 3, 4}, round);
        for (int n = -1; n < 9; n++) sum += switched(n);
        sum += nests(round) + returned_to(round % 4) + of_stack(round + 1) + of_length(round % 7 + 1);
        sum += (long)summed(round % 5, 1, 2.0, 3, 4.0, 5, 6.0, 7, 8.0, 9, 10.0);
        struct large whole = large((struct large){{1, 2, 3, 4, 5, 6, 7, 8, 9}}, 3);
        struct doubles both = doubles(round, 0.5);
        sum += whole.word[8] + pair((struct pair){round, 2}).other + (long)(both.one + both.other) + (long)wide(2, 4);
        sum += (long)creal(product(1 + 2 * I, round + I)) + (long)huge((__int128)round << 60, 3);
        int numbers[9] = {3, round, 9, 1, 7, 2, 8, 6, 5};
        qsort(numbers, 9, sizeof numbers[0], ordered);
        sum += numbers[4] + turned(round + 1, (void *)further) + aligned(round) + flagged(~0u, round);
        sum += (long)many(1, 2, 3, 4, 5, 6, 7, 8, 9, (struct pair){10, 11}, 1, 2, 3, 4, 5, 6, 7, whole);
        CHECK(is_own(returns_here()) && is_own(asked(round + 8)));
        printf("round %d: %ld\n", round, sum);
    }
#define PRINT(name) printf(#name " %ld\n", calls_##name);
    KINDS(PRINT)
}
"""
KINDS_NAMES = ("interpret", "switched", "nested", "returned_to", "left", "of_stack", "of_length", "summed", "summed_from", "large", "pair", "doubles", "wide", "product",
               "ordered", "turned", "further", "aligned", "many", "huge", "flagged", "leaf")


SIMPLE = """#include <stdio.h>
static __attribute__((noinline)) int inner(int x) { __asm__ volatile(""); return x * 3 + 1; }
static __attribute__((noinline)) int outer(int x) { __asm__ volatile(""); return inner(x) - 2; }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += outer(i);
    printf("%d\\n", sum);
    return 0;
}
"""


class Functions(suite.Test):
    def build(self, compiler, *options, source=COUNTS, name="counts"):
        return self.compile(name, *options, "-pthread", source=source, compiler=compiler)

    def planned(self, compiler, *options, **what):
        """A program with plans of it and its libraries."""
        program = self.build(compiler, *options, **what)
        self.plan(program)
        return program

    def traced(self, argv, functions, status=0, memory=16 * harness.GIGABYTE, **variables):
        """Bare, and under the agent with plans that are there: the same, but for lines of the agent, which are returned."""
        bare = harness.execute(argv, self.directory.fresh(), self.environment(), memory=memory)
        self.forget_traces()
        if functions:
            variables["TRACER_FUNCTIONS"] = functions
        run = harness.execute(argv, self.directory.fresh(), self.traced_environment(**variables), memory=memory)
        said = [line for line in run.stderr.decode(errors="replace").splitlines() if line.startswith("tracer: ")]
        harness.without_agents_lines(run, len(said))
        faults = harness.same(bare, run)
        expect(not faults, "\n".join(faults))
        expect(run.status == status, f"ended with {run.status}, not {status}")
        return run, said

    def counted(self, argv, functions, **variables):
        """Runs a program that prints how often its functions were called: these counts, and the trace. The agent says nothing."""
        run, said = self.traced(argv, functions, **variables)
        expect(not said, f"{said}")
        kept = dict(line.rsplit(None, 1) for line in run.stdout.decode().splitlines())
        return {name: int(count) for name, count in kept.items() if count.isdigit()}, self.checked_trace()

    def plan(self, program):
        harness.plan(self.settings, program, os.path.dirname(program))

    def patched(self, trace):
        """Fails where no function was recorded by itself: a filter that excludes all would look the same."""
        flags = self.json("info", trace.path)["flags"]
        expect(any(re.match(r"[1-9][\d,]* of [\d,]+ functions recorded", text) for text in flags), f"no function was recorded by itself: {flags}")

    def record(self, program, *words, **options):
        """`tracer record`, with a trace of the same name each time."""
        return self.tool("record", "--force", "-o", self.trace("r.trace"), *words, "--", program, **options)

    def calls_of(self, path, module, **options):
        """Symbol → calls, of a module's functions, by `report`."""
        return {function["symbol"]: function["calls"] for function in self.json("report", path, **options)["functions"] if function["module"] == module}


def expect_counts(kept, counts):
    wrong = [f"{name}: called {kept[name]} times, recorded {count}" for name, count in counts.items() if count != kept[name]]
    expect(not wrong, "; ".join(wrong))


def counts_are_those_of_the_program(compiler, *options):
    def check(test):
        kept, trace = test.counted([test.planned(compiler, *options)], "*")
        expect_counts(kept, {name: trace.count(name) for name in NAMES})
    return check


def instrumented(compiler, *options, planned=False, **settings):
    """-finstrument-functions: without a plan, through the calls that the compiler has put into each function; or both ways at once."""
    def check(test):
        make = test.planned if planned else test.build
        kept, trace = test.counted([make(compiler, "-finstrument-functions", *options)], "*" if planned else None, **settings)
        recorded = {name: trace.count(name) for name in NAMES}
        if most := int(settings.get("TRACER_MAXDEPTH", 0)):
            expect(0 < recorded["fibonacci"] < kept["fibonacci"] and trace.filtered_by_depth != 0 and trace.maximum_depth_seen <= most,
                   f"{recorded}, {trace.filtered_by_depth} filtered by depth, {trace.maximum_depth_seen} deep")
            return
        expect_counts(kept, recorded)
        # A call left by longjmp, or by an exception where the compiler does not say so (clang), has not returned.
        left = {name: count for name, count in ((name, trace.count(name, trace.unwound)) for name in NAMES) if count}
        most = {"jumper": kept["jumper"], **({"thrower": kept["thrower"]} if compiler == "clang++" else {})}
        expect(left.keys() <= most.keys() and left.get("jumper") == most["jumper"], f"left without returning: {left}, expected {most}")
    return check


# A function of an instrumented library that is called through a slot, one that is inlined there, and one that it calls itself.
INSTRUMENTED_LIBRARY = r"""
#ifdef LIBRARY
static inline __attribute__((always_inline)) long inlined(long n) { return n ^ 5; }
__attribute__((noinline, noclone, visibility("hidden"))) long inner(long n) { return n + 1; }
long outer(long n) { long m = inner(inlined(n)); __asm__ volatile("" : "+r"(m)); return m; }
#else
#include <stdio.h>
long outer(long n);
__attribute__((noinline, noclone)) static void last(long n) { static volatile long sink; sink = n; }
int main(void) { long sum = 0; for (long i = 0; i < 1000; i++) { sum += outer(i); last(sum); } printf("%ld\n", sum); return 0; }
#endif
"""


def an_instrumented_function_that_is_called_through_a_slot_counts_once(test):
    for compiler in ("gcc", "clang"):
        library = test.build(compiler, "-O2", "-DLIBRARY", "-shared", "-fPIC", "-finstrument-functions", source=INSTRUMENTED_LIBRARY, name="libouter.so")
        program = test.build(compiler, "-O2", "-finstrument-functions", "-Wl,--no-as-needed", library, source=INSTRUMENTED_LIBRARY, name=f"host_{compiler}")
        run, said = test.traced([program], None)
        expect(not said and not run.status, f"{said} {run}")
        trace = test.checked_traces()[-1]
        counts = {name: trace.count(name) for name in ("outer", "inner", "inlined", "last", "main")}
        expect(counts == {"outer": 1000, "inner": 1000, "inlined": 1000, "last": 1000, "main": 1} and not trace.unwound,
               f"{compiler}: {counts}, {trace.unwound} left")


def names_are_found_by_build_id(test):
    """In the plan when the program has been built again, in the program's file where there is no plan; with neither, addresses and a line."""
    program = test.planned("g++", "-O1")
    test.traced([program], "*")
    path, = (test.trace(name) for name in os.listdir(test.traces))

    def report(**variables):
        done = test.tool("report", path, "--json", env=test.environment(**variables))
        return {function["symbol"]: function["calls"] for function in json.loads(done.stdout)["functions"] if function["module"] == "counts"}, done.stderr

    whole, _ = report()
    expect("fibonacci" in whole, f"no fibonacci in {sorted(whole)}")
    nowhere = {"XDG_CACHE_HOME": test.path("no-cache")}
    expect(report(**nowhere) == (whole, ""), "the program's file gives other names than its plan")
    test.build("g++", "-O2", "-DANOTHER")  # in its place
    expect(report() == (whole, ""), "the plan is not asked when another program is in the place of the one that ran")
    found, said = report(**nowhere)
    expect(sorted(found.values()) == sorted(whole.values()) and all(name.startswith("0x") for name in found if name in whole and name != "main"),
           f"without plan and file: {found}")
    expect(said.count("are shown by address") == 1 and "counts" in said, f"nothing says so: {said}")


# Two functions that change places from one build to the next; the program has no build-id, as clang and lld leave it.
REBUILT = r"""
#include <stdio.h>
#include <stdlib.h>
#define FUNCTION __attribute__((noinline))
#ifdef FIRST
FUNCTION int apple(int v) { return v + rand() % 2; }
FUNCTION int lemon(int v) { return v - rand() % 2; }
#else
FUNCTION int lemon(int v) { return v - rand() % 2; }
FUNCTION int apple(int v) { return v + rand() % 2; }
#endif
int main(void) {
    int sum = 0;
    for (int n = 0; n < 100; n++) sum += apple(n);
    for (int n = 0; n < 7; n++) sum += lemon(n);
    printf("%d\n", sum);
    return 0;
}
"""


def names_are_found_by_size_and_time(test):
    """Without a build-id: in the plan of the very file that ran, in that file as long as it is there, and never in one that has taken its place."""
    options = ("-O1", "-g", "-Wl,--build-id=none")
    program = test.planned("gcc", *options, "-DFIRST", source=REBUILT, name="app")
    test.traced([program], "*")
    path, = (test.trace(name) for name in os.listdir(test.traces))
    before = os.stat(program)

    def report(**variables):
        done = test.tool("report", path, "--json", "--lines", env=test.environment(**variables))
        rows = [function for function in json.loads(done.stdout)["functions"] if function["module"] == "app"]
        return {row["symbol"]: row["calls"] for row in rows}, {row["symbol"]: row["line"] for row in rows}, done.stderr

    nowhere = {"XDG_CACHE_HOME": test.path("no-cache")}
    for variables in ({}, nowhere):
        calls, lines, said = report(**variables)
        expect((calls["apple"], calls["lemon"]) == (100, 7) and lines["apple"] and lines["lemon"] and not said, f"{calls}, {lines}, {said}")
    test.build("gcc", *options, source=REBUILT, name="app")  # in its place
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))  # a clock may be coarser than a build takes
    calls, lines, said = report()
    expect((calls["apple"], calls["lemon"]) == (100, 7) and not any(lines.values()) and "is not the file that was traced any more" in said,
           f"with the plan: {calls}, {lines}, {said}")
    calls, lines, said = report(**nowhere)
    expect({7, 100} <= set(calls.values()) and not {"apple", "lemon"} & calls.keys() and not any(lines.values())
           and said.count("was written again after it was traced") == 1, f"without the plan: {calls}, {lines}, {said}")


def a_plan_of_a_stripped_copy_hides_no_names(test):
    """Both have the same build-id, by which plans are kept."""
    program = test.build("gcc", "-O1", source=SIMPLE, name="simple")
    os.mkdir(test.path("copy"))
    copy = test.path("copy/simple")
    subprocess.run(["strip", "-o", copy, program], check=True)
    environment = test.environment(XDG_CACHE_HOME=test.path("own-cache"))
    for path, trace in ((program, test.path("r.trace")), (copy, test.path("copy.trace"))):
        test.tool("record", "--force", "-o", trace, "--functions", "*", "--", path, env=environment)
    found = test.calls_of(test.path("r.trace"), "simple", env=environment)
    expect({"inner", "outer", "main"} <= found.keys(), f"after a copy's plan was made: {found}")


def kinds_of_functions(compiler, *options):
    def check(test):
        program = test.planned(compiler, "-w", *options, source=KINDS, name="kinds")
        kept, trace = test.counted([program], "*!*")

        def recorded(name):  # gcc numbers nested functions: nested.0
            return sum(count for (function, module), count in trace.counts_by_name_and_module().items() if module == "kinds" and function.split(".")[0] == name)
        refused = {function["name"].split(".")[0]: function["reason"] for function in test.json("plan", program)["functions"] if function["tactic"] == "none"}
        expect_counts(kept, {name: recorded(name) for name in KINDS_NAMES if name not in refused})
        left = sorted(refused.keys() & set(KINDS_NAMES))
        expect(len(left) <= 2, "refused: " + ", ".join(f"{name} ({refused[name]})" for name in left))
        return f"refused: {', '.join(left)}" if left else ""
    return check


def time_filter_and_depth_apply(test):
    program = test.planned("g++", "-O1")
    test.traced([program], "*", TRACER_MAXDEPTH="1")
    trace = test.checked_trace()
    expect(trace.count("fibonacci") <= 1 and trace.filtered_by_depth,
           f"depth 1: fibonacci {trace.count('fibonacci')} times, {trace.filtered_by_depth} filtered")
    test.patched(trace)
    test.traced([program], "*", TRACER_MINMS="1000000")
    trace = test.checked_trace()
    test.patched(trace)
    expect(not trace.count("leaf") and trace.filtered_by_time,
           f"a filter of 1,000 s: leaf {trace.count('leaf')} times, {trace.filtered_by_time} filtered")


def only_what_is_chosen_is_patched(test):
    program = test.planned("g++", "-O1")
    kept, trace = test.counted([program], "fib*:counts!even")
    expect_counts({name: kept[name] if name in ("fibonacci", "even") else 0 for name in NAMES}, {name: trace.count(name) for name in NAMES})


def functions_go_by_their_addresses(*options):
    """As they are linked, whoever has a name and who has none, and however the digits are written."""
    def check(test):
        program = test.build("gcc", "-O1", *options, source=SIMPLE, name="simple")
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        inner, outer = (int(re.search(f"^([0-9a-f]+) t {name}$", symbols, re.M).group(1), 16) for name in ("inner", "outer"))
        for is_named in (True, False):
            if not is_named:  # with a build-id of its own, by which plans are kept
                program = test.build("gcc", "-O1", "-s", *options, source=SIMPLE, name="simple")
            harness.PLANNED.discard(program)
            test.plan(program)
            names = ("inner", "outer") if is_named else (f"{inner:#x}", f"{outer:#x}")
            for glob, expected, more in ((f"{inner:#x}", (10, 0), {}), (f"0x{inner:016X}", (10, 0), {}), (f"simple!{outer:#x}", (0, 10), {}),
                                         (f"{inner:#x}:sim*!{outer:#x}", (10, 10), {}), (f"nosuch!{inner:#x}", (0, 0), {}), (f"{inner + 1:#x}", (0, 0), {}),
                                         ("*", (0, 10), {"TRACER_EXCLUDE": f"{inner:#x}"}), ("*", (10, 0), {"TRACER_INCLUDE": f"simple!0x0{inner:x}"})):
                test.traced([program], glob, **more)
                trace = test.checked_trace()
                calls = test.calls_of(trace.path, "simple")
                expect(tuple(calls.get(name, 0) for name in names) == expected,
                       f"{glob} {more}, {'named' if is_named else 'stripped'}: {calls}, expected {dict(zip(names, expected))}")
    return check


def a_call_through_a_slot_counts_once(test):
    source = ('extern "C" { __attribute__((noinline)) long far(long n) { return n + 1; }\n'
              '__attribute__((noinline, used)) static long within(long n) { asm volatile("nop; nop; nop; nop"); return n; }\n'  # no slot leads to it
              'long twice(long n) { return within(far(far(n))); } }')
    library = test.build("g++", "-O1", "-shared", "-fPIC", source=source, name="libfar.so")
    main = 'extern "C" long far(long), twice(long); int main() { long s = 0; for (int i = 0; i < 10; i++) s += far(i) + twice(i); return s != 120; }'
    program = test.planned("g++", "-O1", library, "-Wl,-rpath," + test.made, source=main, name="near")
    _, said = test.traced([program], "libfar.so!*")
    trace = test.checked_trace()
    expect(not said and (trace.count("far"), trace.count("twice"), trace.count("within")) == (30, 10, 10),
           f"far {trace.count('far')} times, twice {trace.count('twice')}, within {trace.count('within')}; expected 30, 10 and 10; {said}")
    test.patched(trace)


SMALL = r"""
#include <stdio.h>
#include <stdlib.h>
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile long field = 3;
FUNCTION static long of_little(long n) { return field + n; }
FUNCTION static long of_more(long n) { for (int i = 0; i < 9; i++) { n = n * field + i; __asm__ volatile("" : "+r"(n)); } return n ^ field * n; }
FUNCTION static long to_another(long n) { return of_little(n); }
FUNCTION static long to_libc(long n) { return labs(n) + rand() % 1; }
FUNCTION static long by_pointer(long (*f)(long)) { return f(2) + 1; }
int main(void) { printf("%ld\n", of_little(1) + of_more(2) + to_another(3) + to_libc(4) + by_pointer(of_little)); }
"""


HOT = r"""
#include <stdio.h>
#include <unistd.h>
#include <sys/wait.h>
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile long field = 3;
FUNCTION static long short_one(long n) { return field + n; }
FUNCTION static long seldom(long n) { return field * n; }
FUNCTION static long work(long n) { for (int i = 0; i < 500; i++) { n = n * 31 + i; __asm__ volatile("" : "+r"(n)); } return n; }
int main(void) {
    unsigned long sum = 0;
    for (long i = 0; i < 400000; i++) sum += short_one(i);
    for (long i = 0; i < 1000; i++) sum += seldom(i);
    for (long i = 0; i < 120000; i++) sum += work(i);
    if (!fork()) { for (long i = 0; i < 1000; i++) sum += short_one(i) + seldom(i); _exit(0); }
    wait(NULL);
    printf("%lu\n", sum);
}
"""


def a_short_function_called_very_often_is_suppressed(test):
    """From some moment on: what was recorded until then stays, later calls are counted, and every reader says so (counted.py)."""
    program = test.planned("gcc", "-O2", source=HOT, name="hot")
    for keeps in (False, True):
        test.traced([program], "*", **({"TRACER_KEEPHOT": "on"} if keeps else {}))
        traces = test.checked_traces()
        parents = {trace.header["pid"] for trace in traces}
        traces.sort(key=lambda trace: trace.header["parent_pid"] in parents)
        calls = [{name: trace.count(name) for name in ("short_one", "seldom", "work")} for trace in traces]
        expect(calls == [{"short_one": 400000, "seldom": 1000, "work": 120000}, {"short_one": 1000, "seldom": 1000, "work": 0}], f"keeps {keeps}: {calls}")
        recorded = traces[0].recorded_count("short_one")
        # About 100,000 calls, and at most a chunk or two more; work is as often called, and long.
        expect(recorded == 400000 if keeps else 50000 < recorded < 300000, f"keeps {keeps}: {recorded} recorded calls of short_one")
        path = traces[0].path
        counted = {function["name"] for function in test.json("report", path)["functions"] if function.get("only_counted")}
        moments = [(each["function"], each["module"], each["after_ns"] > 0) for each in test.json("info", path)["left_out"]]
        expect((counted, moments) == ((set(), []) if keeps else ({"short_one"}, [("short_one", "hot", True)])), f"only counted: {counted}; {moments}")
        for arguments, line in ((("report", path), "record --keep-hot"), (("info", path), "1 short function suppressed after many calls: --keep-hot"),
                                (("replay", path, "--from", "99%"), "1 short function suppressed after many calls")):
            expect((line in test.tool(*arguments).stdout) != keeps, f"{arguments[0]}, keeps {keeps}: {line!r} {'is' if keeps else 'is not'} there")


ATTEMPTS = 5  # how long its calls take depends on what else the machine does
SLOW = r"""
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile long field = 3;
static long table[64];
static atomic_int word, spun, isHeld;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
FUNCTION static long accessor(long n) { return field + n; }
FUNCTION static long of_two(long n) { return accessor(n) + accessor(n + 1); }
FUNCTION static long get(long n) { if (n % 1000 == 0) for (int i = 0; i < 1000000; i++) field = 3; return field * n; }
FUNCTION static long miss(long n) { usleep(1000); return n; }
FUNCTION static long cached(long n) { return n % 1000 ? field + n : miss(n); }
FUNCTION static long summed(long n) { long s = 0; for (long i = 0; i < n; i++) { s += table[i & 63]; __asm__ volatile("" : "+r"(s)); } return s; }
FUNCTION static void lock(void) { int free = 0; if (!atomic_compare_exchange_strong(&word, &free, 1)) while (atomic_exchange(&word, 2)) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, NULL); }
FUNCTION static void unlock(void) { if (atomic_exchange(&word, 0) == 2) syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1); }
FUNCTION static void spin(void) { while (atomic_exchange(&spun, 1)) ; }
FUNCTION static void unspin(void) { atomic_store(&spun, 0); }
FUNCTION static long first_phase(void) { long s = 0; for (long i = 0; i < 2000000; i++) s += summed(2); return s; }
FUNCTION static long second_phase(double begin) { long n = 0; for (; now() - begin < 1.5; n++) table[1] += summed(100000); return n; }
static void *holder(void *unused) {
    lock();
    spin();
    atomic_store(&isHeld, 1);
    usleep(200000);
    unspin();
    usleep(200000);
    unlock();
    return unused;
}
int main(void) {
    long sum = 0;
    for (long i = 0; i < 400000; i++) sum += of_two(i);
    for (long i = 0; i < 400000; i++) sum += get(i);
    for (long i = 0; i < 400000; i++) sum += cached(i);
    for (long i = 0; i < 400000; i++) { lock(); unlock(); spin(); unspin(); }
    pthread_t thread;
    pthread_create(&thread, NULL, holder, NULL);
    while (!atomic_load(&isHeld)) usleep(1000);
    double begin = now();
    spin();
    double spun = now();
    unspin();
    lock();
    double locked = now();
    unlock();
    pthread_join(thread, NULL);
    sum += first_phase();
    double computing = now();
    sum += second_phase(computing);
    fprintf(stderr, "%ld\n", sum);
    printf("spin %.6f\nlock %.6f\nsummed %.6f\n", spun - begin, locked - spun, now() - computing);
}
"""


def long_and_waiting_calls_are_not_suppressed(test):
    """A function is short by the average of all its calls, and what may wait is never suppressed; a loop that becomes long is noticed."""
    program = test.planned("gcc", "-O2", "-pthread", source=SLOW, name="slow")
    for attempt in range(ATTEMPTS):
        try:
            return _suppressed_in(test, program)
        except Failed:
            if attempt + 1 == ATTEMPTS:
                raise


def _suppressed_in(test, program):
    test.forget_traces()
    said = test.execute([program], said=None, TRACER_FUNCTIONS="*").stdout.decode()
    took = {name: float(seconds) * 1e9 for name, seconds in (line.split() for line in said.splitlines())}
    trace = test.checked_trace()
    path = trace.path
    rows = {row["name"]: row for row in test.json("report", path)["functions"]}
    left_out = {name for name, row in rows.items() if row.get("only_counted")}
    # What only sets a lock free has neither a loop nor a call, and is never long.
    expect(left_out == {"accessor", "of_two", "summed", "unspin"}, f"suppressed: {left_out}")
    calls = {name: rows[name]["calls"] for name in ("get", "cached", "miss", "lock", "unlock", "spin")}
    expect(calls == {"get": 400000, "cached": 400000, "miss": 400, "lock": 400002, "unlock": 400002, "spin": 400002}, f"{calls}")
    # Each of the two took most of the time that the program measured; and a loop, from when it was noticed on.
    for name, part in (("spin", 0.9), ("lock", 0.9), ("summed", 0.5)):
        expect(rows[name]["total_ns"] > part * took[name], f"{name}: {rows[name]['total_ns']} ns recorded of {took[name]:.0f}")
    # Their callers' own time includes what is not recorded, in every reader.
    callers = {"main", "of_two", "first_phase", "second_phase", "holder"}  # the first call of a thread is recorded
    marked = {name for name, row in rows.items() if row.get("self_holds_left_out")}
    expect(marked == callers, f"callers of suppressed functions: {marked}")
    tree = test.json("tree", path)
    for key, names in (("calls_estimated", left_out), ("self_holds_left_out", callers)):
        found = {tree["functions"][node["function"]]["name"] for node in tree["nodes"] if node.get(key)}
        expect(found == names, f"tree, {key}: {found}")
    upward = test.json("callers", path, "accessor")["callers"]
    expect(all(node.get("calls_estimated") and not node.get("self_holds_left_out") for node in upward["nodes"] if node["parent"] >= 0),
           f"callers of accessor: {upward['nodes']}")
    table = csv.DictReader(test.tool("report", path, "--csv").stdout.splitlines())
    expect({row["name"] for row in table if row["self_holds_left_out"] == "true"} == callers, "report --csv has other callers")
    one = test.json("report", path, "second_phase")
    expect(one.get("self_holds_left_out") and not one.get("only_counted"), f"report second_phase: {one.get('self_holds_left_out')}")
    for words, line in ((("report", path), "≤ with the suppressed calls"), (("tree", path), "≤ with the suppressed calls"), (("tree", path), "~ short"),
                        (("report", path, "accessor"), "±"), (("callers", path, "accessor"), "~ short"), (("report", path, "--by", "caller"), "≤")):
        expect(line in test.tool(*words).stdout, f"{' '.join(words)}: no {line!r}")


def small_leaves_are_excluded_on_request(test):
    program = test.planned("gcc", "-O2", source=SMALL, name="small")
    sizes = {function["name"]: function["size"] for function in test.json("plan", program)["functions"]}
    for least in (0, sizes["of_little"], sizes["of_little"] + 1, 1000000):
        test.traced([program], "*", TRACER_MINSIZE=str(least))
        trace = test.checked_trace()
        called = {name for name in ("of_little", "of_more", "to_another", "to_libc", "by_pointer") if trace.count(name)}
        expected = {name for name in sizes if name in ("of_little", "of_more") and sizes[name] >= least} | {"to_another", "to_libc", "by_pointer"}
        expect(called == expected, f"{least}: recorded {sorted(called)}, expected {sorted(expected)}; {sizes}")
        test.patched(trace)
    said = test.tool("record", "--min-size", "few", "--", "true", status=2).stderr
    expect("give a whole number of bytes" in said, f"--min-size few: {said[-300:]}")


def record_says_when_it_cannot_make_plans(test):
    program = test.build("g++", "-O1")
    home = {"XDG_CACHE_HOME": test.path("empty")}
    for variables, options, why in (({"TRACER_CACHE": "off", **home}, [], "TRACER_CACHE=off turns it off"), (home, ["--no-cache"], "--no-cache turns it off"),
                                    ({"XDG_CACHE_HOME": "", "HOME": ""}, [], "neither XDG_CACHE_HOME nor HOME"), ({"TRACER_CACHE": "off", **home}, ["--cache"], None)):
        done = test.record(program, *options, "--functions", "*", env=test.environment(**variables))
        said = [line for line in done.stderr.splitlines() if "no plans are made, and functions without a plan are not recorded: plans are kept in the cache" in line]
        expect(len(said) == (why is not None) and (not why or why in said[0] and done.stderr.startswith(said[0])),
               f"{variables} {options}: {done.stderr[-400:]}")
        trace = test.checked_trace()
        expect((trace.count("fibonacci") > 0) == (why is None), f"{variables} {options}: fibonacci {trace.count('fibonacci')} times")
        os.unlink(test.trace("r.trace"))


def a_folded_function_has_all_its_names_and_its_line(test):
    if not shutil.which("ld.gold"):
        raise Skipped("no linker that folds functions (ld.gold)")
    source = ('struct A { int n; int get() const; }; struct B { int n; int get() const; };\n'
              '__attribute__((noinline)) int A::get() const { asm volatile(""); return n + 1; }\n'
              '__attribute__((noinline)) int B::get() const { asm volatile(""); return n + 1; }\n'
              'int main() { A a{1}; B b{2}; return a.get() + b.get() - 5; }\n')
    program = test.planned("g++", "-O1", "-g", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all", "-Wl,--build-id", source=source, name="folded")
    test.traced([program], "*")
    trace = test.checked_trace()

    def output(*words):
        return test.tool("report", trace.path, *words).stdout
    row, = (function for function in test.json("report", trace.path, "--lines")["functions"] if "::get()" in function["name"])
    expect({row["name"], *row.get("aliases", [])} == {"A::get() const", "B::get() const"} and row["calls"] == 2 and row["line"] in (2, 3),
           f"JSON: {row}")
    expect(f"{row['name']} +1 " in output() and f":{row['line']}" in output("--lines"), f"table: {output('--lines')}")
    alone = output(row["name"])
    expect(f"also, folded by the linker: {row['aliases'][0]}" in alone, f"of one function: {alone[:400]}")
    planned = test.json("plan", program, "--functions", "*get*")["functions"]
    expect(len(planned) == 1 and {planned[0]["name"], *planned[0]["aliases"]} == {"A::get() const", "B::get() const"},
           f"plan --json: {planned}")


def record_makes_the_plans(test):
    program = test.build("g++", "-O1")
    done = test.record(program, "--functions", "*", "--functions", "libstdc++.so.6!*")
    expect("functions recorded" in done.stderr, done.stderr[-400:])
    trace = test.checked_trace()
    kept = dict(line.split() for line in done.stdout.splitlines())
    expect(trace.count("fibonacci") == int(kept["fibonacci"]), f"fibonacci {trace.count('fibonacci')} times")
    flags = test.json("info", trace.path)["flags"]
    expect(any("functions recorded" in text for text in flags), f"info says nothing of it: {flags}")


def a_program_that_the_loader_starts_is_planned_and_named_as_itself(test):
    """ld.so PROGRAM: plans are the program's, and so are name and file in the trace."""
    program = test.build("gcc", "-O1", source=SIMPLE, name="simple")
    loader = subprocess.run(["readelf", "-p", ".interp", program], capture_output=True, text=True, check=True).stdout.split()[-1]
    environment = test.environment(XDG_CACHE_HOME=test.path("own-cache"))
    found = {}
    for name, command in (("itself", [program]), ("loaded", [loader, "--argv0", "other", program]),
                          ("near", [loader, "./" + os.path.basename(program)])):
        path = test.trace(name + ".trace")
        test.tool("record", "--force", "-o", path, "--functions", "*", "--", *command, env=environment, cwd=os.path.dirname(program))
        calls = test.calls_of(path, "simple", env=environment)
        found[name] = {function: calls.get(function) for function in ("inner", "outer", "main")}
        info = test.json("info", path)
        expect(os.path.samefile(info["program"], program), f"{name}: {info['program']}")
    expect(found["itself"]["inner"] and found["itself"] == found["loaded"] == found["near"], f"{found}")


def record_says_nothing_of_its_own_libraries(test):
    """libtracer-labels.so is preloaded as well, has no functions, and so no plan that anybody could make."""
    said = test.record("/bin/true", "--functions", "*!*").stderr
    expect("functions recorded" in said and "libtracer" not in said, said[-400:])


def calls_from_very_many_sites_have_their_durations(test):
    """More than libtracer.so alone has labels for: `tracer record` brings space for more. Without it, which starts no program for another architecture,
    the second library is preloaded by hand; there libtracer.so has more labels (65,534), and each call takes longer."""
    groups, each, rounds = (140, 500, 1) if harness.EMULATOR else (120, 500, 3)
    source = '#include <stdio.h>\n__attribute__((noinline)) static int leaf(int x) { __asm__ volatile("nop; nop; nop; nop; nop" : "+r"(x)); return x + 1; }\n'
    for group in range(groups):
        source += f"__attribute__((noinline)) static int group{group}(int x) {{\n" + '  x = leaf(x); __asm__ volatile("" : "+r"(x));\n' * each + "  return x;\n}\n"
    source += f"int main(void) {{\n  int x = 0;\n  for (int round = 0; round < {rounds}; round++) {{\n" + \
        "".join(f"    x = group{group}(x);\n" for group in range(groups)) + '  }\n  printf("%d\\n", x);\n  return 0;\n}\n'
    program = test.build(build.DRIVERS["gcc"][".c"], "-O1", source=source, name="many")
    for options in ((), ("--call-sites",)):
        test.forget_traces()
        if harness.EMULATOR:
            test.plan(program)
            settings = dataclasses.replace(test.settings, functions=True, call_sites=bool(options))
            run = harness.execute([program], test.directory.fresh(), harness.traced_environment(settings, test.environment(TRACER_KEEPHOT="on"), test.directory))
            status, out, said = run.status, run.stdout.decode(), run.stderr.decode(errors="replace")
        else:
            done = test.record(program, "--keep-hot", "--functions", "*", *options)
            status, out, said = done.returncode, done.stdout, done.stderr
        expect(not status and out == f"{groups * each * rounds}\n" and "without their duration" not in said,
               f"status {status}, {out[:80]!r}: {said[-400:]}")
        trace = test.checked_trace()
        expect(trace.count("leaf") == groups * each * rounds, f"leaf called {trace.count('leaf')} times")
        named = json.dumps(test.json("callers", trace.path, "leaf"))
        expect(all(f'"group{group}"' in named for group in range(groups)),  # an entry without a length has no caller of its own
               f"callers of leaf: {named[:400]}")


SCARCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#define CHECK(what) if (!(what)) { puts("cannot: " #what); return 77; } else (void)0
static char *reserve(size_t bytes) { return mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); }
/* LIBRARY REACH FREE FURTHER: opens it where, within REACH to both sides, FREE bytes are free, with FURTHER a megabyte that far after them, and no more. */
int main(int count, char **words) {
    CHECK(count == 5);
    size_t reach = strtoull(words[2], NULL, 0), left = strtoull(words[3], NULL, 0), further = strtoull(words[4], NULL, 0), span = 0, gap = 1 << 20;
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[16];
    int file = open(words[1], O_RDONLY);
    CHECK(read(file, &header, sizeof header) == sizeof header && header.e_phnum <= 16);
    CHECK(pread(file, segments, sizeof *segments * header.e_phnum, (off_t)header.e_phoff) == (ssize_t)(sizeof *segments * header.e_phnum));
    close(file);
    for (int n = 0; n < header.e_phnum; n++)
        if (segments[n].p_type == PT_LOAD) span = (segments[n].p_vaddr + segments[n].p_memsz + 65535) & ~65535ul;
    CHECK(span > gap && span < 2 << 20); /* in none of the gaps that are left to others; what is larger the kernel aligns for large pages */
    size_t bytes = 2 * reach + span + left;
    char *all = reserve(bytes), *hole = all + reach;
    CHECK(all != MAP_FAILED && !munmap(hole, span + left));
    int is_next = 0;
    for (int n = 0; n < 4096 && !is_next; n++) { /* until there is no other address for it */
        char *address = reserve(span);
        CHECK(address != MAP_FAILED);
        is_next = address >= hole && address < hole + span + left;
        if (is_next) CHECK(!munmap(address, span));
    }
    CHECK(is_next);
    for (size_t n = 1; n <= 8; n++) CHECK(!munmap(all + bytes - n * 2 * gap, gap) && !munmap(all + (2 * n - 1) * gap, gap));
    if (further) CHECK(!munmap(hole + span + left + further, gap));
    void *library = dlopen(words[1], RTLD_NOW);
    CHECK(library);
    int (*sum)(int) = (int (*)(int))dlsym(library, "sum");
    CHECK(sum && (char *)sum >= hole && (char *)sum < hole + span + left);
    printf("%d\n", sum(100));
    return 0;
}
"""
SCARCE_LIBRARY = r"""
char buffer[3 << 19];
__attribute__((noinline)) static int square(int x) { __asm__ volatile("" : "+r"(x)); buffer[x] = 1; return x * x; }
int sum(int n) { int result = 0; for (int i = 1; i <= n; i++) { result += square(i); __asm__ volatile("" : "+r"(result)); } return result; }
"""


def where_space_is_scarce(left, has_space, further=0):
    """Near a library that is opened: for stubs, but not for the megabyte of descriptions that unwinders are given of them; or not for these, either; or in
    a hole that steps of four megabytes pass over."""
    def check(test):
        compiler = build.DRIVERS["gcc"][".c"]
        library = test.build(compiler, "-O2", "-fPIC", "-shared", "-Wl,--build-id", "-Wl,-z,max-page-size=4096", source=SCARCE_LIBRARY, name="libscarce.so")
        program = test.planned(compiler, "-O2", "-ldl", source=SCARCE, name="scarce")
        reach = 0x90000000 if build.ARCHITECTURE == "x86_64" else 0x9000000
        argv = [program, library, hex(reach), hex(left), hex(further)]
        bare = harness.execute(argv, test.directory.fresh(), test.environment())
        if bare.status == 77:
            raise Skipped("here a library cannot be put into a hole: " + bare.stdout.decode().strip())
        run, said = test.traced(argv, "libscarce.so!*")
        expect(run.stdout == b"338350\n", f"said {run.stdout}")
        expect((not has_space or not said) and (has_space or len(said) == 1 and "no free address space for stubs near it" in said[0]),
               f"lines: {said}")
        trace = test.checked_trace()
        expect((trace.count("square"), trace.count("sum")) == ((100, 1) if has_space else (0, 0)),
               f"recorded: sum {trace.count('sum')} times, square {trace.count('square')} times")
    return check


LARGE = r"""
#include <stdio.h>
#include <sys/personality.h>
#include <unistd.h>
__asm__(".text\n.altmacro\n.macro one i\n.type many\\i,%function\nmany\\i: push %rbp\n mov %rsp, %rbp\n mov $\\i, %eax\n pop %rbp\n ret\n.size many\\i, .-many\\i\n.endm\n"
        ".set n, 0\n.rept 60000\n one %n\n .set n, n + 1\n.endr\n.noaltmacro\n");
int first(void) __asm__("many0");
int last(void) __asm__("many59999");
int main(int count, char **words) {
    if (count == 1) { // once more, with the heap right after the program
        personality(ADDR_NO_RANDOMIZE);
        execl(words[0], words[0], "again", NULL);
    }
    void *end = sbrk(0), *again;
    int megabytes = 0;
    while (megabytes < 1024 && sbrk(1 << 20) != (void *)-1) megabytes++;
    again = sbrk(0);
    printf("%d, %d %d\n", megabytes, first(), last());
    return (char *)again - (char *)end != (long)megabytes << 20;
}
"""


def the_heap_has_space(counts):
    def check(test):
        """In a program that is linked to a fixed address, the stubs of 60,000 functions are out of the growing heap's way."""
        if build.ARCHITECTURE != "x86_64":
            raise Skipped("a branch reaches 128 MB there: the heap has what is left of that")
        program = test.planned("gcc", "-O1", "-no-pie", source=LARGE, name="large")
        run, said = test.traced([program], "*", **({"TRACER_MODE": "counts"} if counts else {}))
        calls = sorted((trace.count("many0"), trace.count("many59999")) for trace in test.checked_traces())
        # A function that is only counted needs no stub.
        expect(run.stdout == b"1024, 0 59999\n" and (counts or calls == [(0, 0), (1, 1)]), f"{run.stdout}, {calls}, {said}")
    return check


GENERATES = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined __x86_64__
// sub $8, %rsp; lea -8(%rsp), %rax; mov %rax, (%rsi); call *%rdi; add $8, %rsp; ret
static const unsigned char code[] = {0x48, 0x83, 0xec, 8, 0x48, 0x8d, 0x44, 0x24, 0xf8, 0x48, 0x89, 6, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
enum { BACK = 14, REACH = 1 };
#else
// stp x29, x30, [sp, #-16]!; mov x29, sp; mov x2, sp; str x2, [x1]; blr x0; ldp x29, x30, [sp], #16; ret
static const unsigned code[] = {0xa9bf7bfd, 0x910003fd, 0x910003e2, 0xf9000022, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
enum { BACK = 20, REACH = 4 }; // words to where its callee keeps x30, at most
#endif
typedef void generated(int (*)(void), unsigned long *);
static unsigned long place, wanted;
static int found, called_by_main;
__attribute__((noinline)) static void look(void) {
    const volatile unsigned long *stack = (const unsigned long *)place;
    for (int n = 0; wanted && n < REACH; n++) {
        if (stack[-n] != wanted) continue;
        found++;
        return;
    }
}
__attribute__((noinline)) static int called(void) {
    look();
    __asm__ volatile("" ::: "memory");
    return 1;
}
static void *made(int way) {
    void *to, *writable;
    int all = PROT_READ | PROT_WRITE | PROT_EXEC, file = -1;
    if (way == 2) {
        file = memfd_create("code", 0);
        if (ftruncate(file, 4096)) abort();
    }
    to = mmap(NULL, 4096, way == 2 ? PROT_READ | PROT_EXEC : way == 1 ? all : PROT_READ | PROT_WRITE, way == 2 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    writable = way == 2 ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : to;
    if (to == MAP_FAILED || writable == MAP_FAILED) abort();
    memcpy(writable, code, sizeof code);
    if (way == 0 && mprotect(to, 4096, PROT_READ | PROT_EXEC)) abort();
    __builtin___clear_cache((char *)to, (char *)to + sizeof code);
    return to;
}
int main(int count, char **words) {
    called_by_main = called();
    generated *calls = (generated *)made(atoi(words[count - 1]));
    for (int n = 0; n < 100; n++) {
        wanted = (unsigned long)calls + BACK;
        calls(called, &place);
    }
    wanted = 0;
    called_by_main += called();
    printf("%d of 100, %d\n", found, called_by_main);
    return 0;
}
"""


def generated_code_finds_its_return_address(way):
    """Mono looks for its frames by such addresses, and conservative collectors for code that is still in use."""
    def check(test):
        program = test.planned(build.DRIVERS["gcc"][".c"], "-O1", "-fno-optimize-sibling-calls", source=GENERATES, name="generates")
        run, said = test.traced([program, str(way)], "*")
        expect(run.stdout == b"100 of 100, 2\n" and not said, f"{run.stdout}, {said}")
        trace = test.checked_trace()
        counts = {name: trace.count(name) for name in ("called", "look")}
        expect(counts == {"called": 102, "look": 102}, f"recorded {counts}")
        nodes, timed = [root for thread in trace.threads.values() for root in thread.roots], 0
        while nodes:
            node = nodes.pop()
            nodes += node.children
            timed += node.name == "called" and node.mark != "tail"
        expect(timed == 2, f"{timed} calls have a duration, of 2 that a module makes")
    return check


CHOSEN = """
static int asked;
int times_asked(void) { return asked; }
static int twice(int x) { return 2 * x; }
static int (*choose(void))(int) { asked++; return twice; }
int chosen(int x) __attribute__((ifunc("choose")));
"""
LATE = "int chosen(int x); int late(int x) { return chosen(x) + 1; }"
CHOOSING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int chosen(int x), times_asked(void);
int main(int count, char **words) {
    int first = chosen(20), before = times_asked();
    void *library = dlopen(words[count - 1], RTLD_NOW);
    int (*late)(int) = (int (*)(int))dlsym(library, "late"), (*same)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "chosen");
    printf("%d %d %d, asked %d times\\n", first, late(20), same(20), times_asked() - before);
    return 0;
}
"""


def a_resolver_is_recorded_when_the_loader_calls_it(test):
    """IFUNC: for a slot that is bound lazily, a library that is opened, and dlsym. The agent's own call at the start, to know what the slot will be
    bound to, is none of the program's."""
    compiler = build.DRIVERS["gcc"][".c"]
    library = test.build(compiler, "-O2", "-fPIC", "-shared", "-Wl,--build-id", source=CHOSEN, name="libchosen.so")
    late = test.build(compiler, "-O2", "-fPIC", "-shared", "-Wl,-z,now", "-Wl,--no-as-needed", library, source=LATE, name="liblate.so")
    program = test.planned(compiler, "-O2", "-fPIE", "-pie", "-Wl,-z,lazy", "-Wl,-rpath," + os.path.dirname(library), "-Wl,--no-as-needed", library, "-ldl", source=CHOOSING, name="choosing")
    run, said = test.traced([program, late], "libchosen.so!*")
    expect(not said and run.stdout == b"40 41 40, asked 2 times\n", f"lines {said}, output {run.stdout}")
    trace = test.checked_trace()
    counts = {name: trace.count(name) for name in ("choose", "chosen.resolver", "twice")}
    expect(counts == {"choose": 3, "chosen.resolver": 0, "twice": 3}, f"recorded {counts}")


def a_glob_that_means_nothing_is_said(test):
    program = test.build("g++", "-O1")
    for glob, line in (("nosuch", "no function has the name nosuch"), ("0x7", "no function begins at 0x7"), ("libnosuch.so!*", "is not linked with a library libnosuch.so"),
                       ("libc.so.6!nosuch", "no function has the name libc.so.6!nosuch"),
                       ("libc.so.6!strchr", "strchr is an IFUNC")):
        done = test.record(program, "--functions", glob)
        expect(sum(line in said for said in done.stderr.splitlines()) == 1 and "sum " in done.stdout, f"{glob}: {done.stderr[-400:]}")
        os.unlink(test.trace("r.trace"))


def a_glob_of_many_says_nothing_of_resolvers(test):
    said = test.record(test.build("g++", "-O1"), "--functions", "libc.so.6!str*").stderr
    expect("the loader chooses" not in said, said[-400:])


def a_plan_that_does_not_fit_is_refused(test):
    program = test.planned("g++", "-O1")
    folder = os.path.join(harness.CACHES, "tracer/plans")
    content = bytearray(read_bytes(program))
    # The same build-id, and another first instruction of a function: as after a repair by hand.
    symbol = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = next(int(line.split()[0], 16) for line in symbol.splitlines() if line.endswith(" T fibonacci"))
    # A PIE's first code segment lies in the file as in memory.
    content[address + (4 if content[address:address + 4] == b"\xf3\x0f\x1e\xfa" else 0)] ^= 0x01
    changed = test.write("changed", bytes(content), mode=0o755)
    run = harness.execute([changed], test.directory.fresh(), test.traced_environment(TRACER_FUNCTIONS="*"))  # it may well die of its changed instruction
    expect(b"its code differs from its plan" in run.stderr, f"changed code: nothing is said: {run.stderr[-300:]}")
    identity = next(line.split()[-1] for line in subprocess.run(["readelf", "-n", program], capture_output=True, text=True).stdout.splitlines() if "Build ID" in line)
    path = os.path.join(folder, identity + ".plan")
    plan = read_bytes(path)
    functions, names = (int.from_bytes(plan[at:at + 4], "little") for at in (108, 124))  # plan_layout.h
    expect(160 <= functions < names < len(plan) - 8, "the layout of plans has changed, and this test has not")

    def with_byte(at, value=None):
        return plan[:at] + bytes([plan[at] ^ 1 if value is None else value]) + plan[at + 1:]

    # Names are not read where all functions are wanted.
    unread, middle = "*", "*ibonacc*"
    for what, content, mode, line, globs in (
            ("damaged in the header", with_byte(60), 0o600, "damaged", (unread, middle)),
            ("damaged in the functions", with_byte(functions + 500), 0o600, "damaged", (unread, middle)),
            ("damaged just before the names", with_byte(names - 1), 0o600, "damaged", (unread, middle)),
            ("damaged in the names", with_byte(names + 3), 0o600, "damaged", (middle,)),
            ("damaged in the names, which are not read", with_byte(names + 3), 0o600, None, (unread,)),
            ("damaged in the last word", with_byte(len(plan) - 8), 0o600, "damaged", (middle,)),
            ("with another checksum of the names", with_byte(152), 0o600, "damaged", (unread, middle)),
            ("of an older version", with_byte(8, 1), 0o600, "damaged", (unread, middle)),
            ("of older rules", with_byte(12, 7), 0o600, "damaged", (unread, middle)),
            ("cut in the functions", plan[:names // 16 * 8], 0o600, "damaged", (unread, middle)),
            ("cut before the names", plan[:names], 0o600, "damaged", (unread, middle)),
            ("cut in the names", plan[:-8], 0o600, "damaged", (unread, middle)),
            ("cut in the header", plan[:80], 0o600, "damaged", (unread, middle)),
            ("longer", plan + bytes(8), 0o600, "damaged", (unread, middle)),
            ("empty", b"", 0o600, "no plan", (unread, middle)),
            ("of others' writing", plan, 0o666, "no plan", (unread, middle)),
            ("whole", plan, 0o600, None, (unread, middle))):
        for glob in globs:
            write(path, content, mode=mode)
            _, said = test.traced([program], glob)
            expect(len(said) == (1 if line else 0) and (not line or line in said[0]), f"{what}, {glob}: said {said}")
            write(path, plan, mode=0o600)  # whoever reads the trace has names from it
            trace = test.checked_trace()
            expect(bool(trace.count("fibonacci")) == (line is None),
                   f"{what}, {glob}: fibonacci was {'recorded' if line else 'not recorded'}")
    os.unlink(path)


PROGRAMS = {
    "sort": ["sort", "-r", "/etc/passwd"], "bash": ["bash", "-c", "for i in 1 2 3; do echo $i | sort; done; exit 5"], "git": ["git", "--version"],
    "python3": ["python3", "-S", "-c", "import json; print(json.dumps(sorted(i * i % 7 for i in range(50))))"],
    "perl": ["perl", "-e", "print join(',', map { $_ * 2 } 1 .. 9), qq(\\n)"], "openssl": ["openssl", "dgst", "-sha256", "/etc/passwd"],
    "sqlite3": ["sqlite3", ":memory:", "select sum(x * x), hex('a') from (select 1 x union select 2)"], "xz": ["xz", "-c", "/etc/passwd"],
    "tar": ["tar", "cf", "-", "/etc/passwd"], "sed": ["sed", "s/root/toor/", "/etc/passwd"],
}


def every_function_of(argv):
    def check(test):
        program = shutil.which(argv[0], path="/usr/bin:/bin")
        if not program:
            raise Skipped(f"no {argv[0]}")
        for planned in (program, "/usr/bin/sort"):
            harness.plan(test.settings, planned, test.made)
        test.traced([program, *argv[1:]], "*!*", status=5 if argv[0] == "bash" else 0)
        traces = test.checked_traces()
        inside = sum(count for trace in traces for (_, module), count in trace.counts_by_name_and_module().items()
                     if module == os.path.basename(os.path.realpath(program)))
        expect(inside, "none of its own functions was recorded")
        return f"{sum(sum(t.counts_by_name_and_module().values()) for t in traces):,} calls"
    return check


NODE = """const os = require('os');
let s = 0;
for (let i = 0; i < 300; i++) s += os.cpus().length > 0 ? 1 : 0;
for (let i = 0; i < 40000; i++) s += process.cwd().length > 0 ? 1 : 0;
for (let i = 0; i < 40000; i++) s += Buffer.from('abc' + i).toString('hex').length > 0 ? 1 : 0;
console.log(s, 'done');
"""


def names_its_own_functions(program):
    """True if the symbols of the program or of its library have the callback: Debian's node is stripped, and what its library exports is not it."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split()
    return any(b"10GetCPUInfo" in pathlib.Path(path).read_bytes() for path in [program, *(word for word in linked if "libnode" in word and word.startswith("/"))])


def callbacks_of_generated_code_are_recorded(test):
    """V8 collects while code that it has generated is inside a callback of node's: it finds its frames by the return address."""
    program = shutil.which("node", path="/usr/bin:/bin")
    if not program:
        raise Skipped("no node")
    harness.plan(test.settings, program, test.made)
    test.traced([program, "--max-semi-space-size=1", "-e", NODE], "*")
    # Tens of millions of calls, of which the decoder would make a tree of 5 GB.
    traces = test.checked_traces(walk=False)
    called = sum(function["calls"] for trace in traces for function in harness.report(test.settings, trace.path)["functions"] if "GetCPUInfo" in function["name"])
    if called < 300 and not names_its_own_functions(program):
        return f"the callbacks of this node have no names; {sum(harness.report(test.settings, trace.path)['calls'] for trace in traces)} calls"
    expect(called >= 300, f"node::os::GetCPUInfo was recorded {called} times, at least 300 expected")
    return f"{called} calls of a callback"


MODES = {"slots": "*", "arm": "*"}


def tests():
    scarce = {"space_is_scarce.for_descriptions": where_space_is_scarce(768 << 10, True), "space_is_scarce.for_stubs": where_space_is_scarce(0, False),
              "space_is_scarce.but_for_a_hole": where_space_is_scarce(0, True, 6 << 20),
              **{f"generated_code_finds_its_return_address.{name}": generated_code_finds_its_return_address(way)
                 for way, name in enumerate(("protected", "mapped", "shared"))},
              **{"the_heap_has_space." + name: the_heap_has_space(counts) for name, counts in (("recorded", False), ("counted", True))}}
    if harness.EMULATOR:
        checks = {check.__name__: check for check in (calls_from_very_many_sites_have_their_durations, a_resolver_is_recorded_when_the_loader_calls_it)}
        return [Functions("functions." + name, check) for name, check in {**scarce, **checks}.items()]
    ways = {"gcc.O0": ("g++", "-O0"), "gcc.O1": ("g++", "-O1"), "gcc.O2": ("g++", "-O2"), "gcc.O3": ("g++", "-O3"), "gcc.cf": ("g++", "-O2", "-fcf-protection"),
            "gcc.nops": ("g++", "-O2", "-fpatchable-function-entry=8"), "gcc.static": ("g++", "-O2", "-no-pie"), "clang.O2": ("clang++", "-O2"),
            "gcc.Os": ("g++", "-Os"), "gcc.frame": ("g++", "-O2", "-fno-omit-frame-pointer")}
    levels = ("O0", "O2", "O3", "Os")
    found = {
        **{"counts_are_those_of_the_program." + name: counts_are_those_of_the_program(*way) for name, way in ways.items()},
        **{f"instrumented.{compiler}.{level}": instrumented(compiler, "-" + level) for compiler in ("g++", "clang++") for level in levels},
        "instrumented.sites": instrumented("g++", "-O2", TRACER_CALLSITES="on"),
        "instrumented.kernels_clock": instrumented("g++", "-O2", TRACER_CLOCK="monotonic"),
        "instrumented.depth": instrumented("g++", "-O2", TRACER_MAXDEPTH="6"),
        "instrumented.with_a_plan": instrumented("g++", "-O2", planned=True),
        **{f"kinds_of_functions.{compiler}.{level}": kinds_of_functions(compiler, "-" + level) for compiler in ("gcc", "clang") for level in levels},
        "functions_go_by_their_addresses.pie": functions_go_by_their_addresses(), "functions_go_by_their_addresses.static": functions_go_by_their_addresses("-no-pie"),
        **{"every_function_of." + name: every_function_of(argv) for name, argv in PROGRAMS.items()}, **scarce}
    return [Functions("functions." + name, check) for name, check in found.items()] + suite.tests_of(__name__, Functions)
