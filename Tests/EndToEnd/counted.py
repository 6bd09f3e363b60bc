"""Short functions that are called very often are counted, and one call in about a thousand is recorded (PassedCalls.swift): the number is the
program's own in every thread and process, whatever interrupts or ends it, and the readers say that its time is an estimate."""
import re
import subprocess

import build
import harness
import suite
from functions import Functions
from harness import Skipped, expect

BEGIN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile long field = 3;
FUNCTION static long hot(long n) { return field + n; }
FUNCTION static long warm(long n) { return field * n; }
FUNCTION static long looped(long n) { for (int i = 0; i < 3; i++) { n += field; __asm__ volatile("" : "+r"(n)); } return n; }
static volatile long sum;
#define TIMES(count, function) for (long i = 0; i < (count); i++) sum += function(i)
"""

SIMPLE = BEGIN + r"""
int main(void) {
    TIMES(500003, hot);
    TIMES(700001, looped);
    TIMES(1009, warm);
    TIMES(300007, hot);
}
"""

# As a server calls it: often, and most of the time it waits. The word is the number of rounds.
PACED = BEGIN + r"""
int main(int count, char **words) {
    for (long round = 0, rounds = atol(words[count - 1]); round < rounds; round++) {
        struct timespec pause = {0, 2000000};
        TIMES(50, hot);
        while (nanosleep(&pause, &pause)) {}
    }
}
"""

THREADS = BEGIN + r"""
enum { THREADS = 6, WAVES = 3 };
static void *run(void *number) {
    long count = 100000 + 7 * (long)number;
    TIMES(count, hot);
    TIMES(3, warm); /* fewer than the calls of one interval */
    TIMES(count / 2, looped);
    printf("%ld %ld %ld\n", (long)syscall(SYS_gettid), count, count / 2);
    return NULL;
}
int main(void) {
    pthread_t threads[THREADS];
    for (long wave = 0; wave < WAVES; wave++) {
        for (long n = 0; n < THREADS; n++) pthread_create(&threads[n], NULL, run, (void *)(wave * THREADS + n));
        for (long n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
    }
}
"""

# A handler calls the functions too, and forks; both processes go on where they were interrupted.
FORKS = BEGIN + r"""
static volatile long handled, forks, mostForks;
static __thread volatile long left; /* in a child: calls until it ends */
static pthread_t first;
static void handler(int number) {
    handled++;
    for (int i = 0; i < 50; i++) sum += hot(i) + looped(i);
    if (forks == mostForks) return;
    forks++;
    pid_t child = fork();
    if (child < 0) _exit(9);
    if (child) return;
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < 1000; i++) sum += hot(i) + looped(i);
    left = 5000;
}
static long work(long most) {
    for (long i = 0; i < most || left; i++) { /* a child may be forked shortly before the end */
        sum += hot(i);
        if (left && !--left) _exit(0);
    }
    return most;
}
static void *run(void *unused) {
    for (long i = 0; i < 3000000; i++) sum += warm(i);
    return unused;
}
int main(int count, char **words) {
    long threads = atol(words[2]), calls = 300000;
    mostForks = atol(words[1]);
    TIMES(300000, hot);
    TIMES(300000, looped);
    TIMES(300000, warm);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL); /* the handler runs on the main thread */
    pthread_t others[8];
    for (long n = 0; n < threads; n++) pthread_create(&others[n], NULL, run, NULL);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    struct itimerval often = {{0, 1500}, {0, 1500}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (forks < mostForks || handled < 20) calls += work(100000);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    for (long n = 0; n < threads; n++) pthread_join(others[n], NULL);
    int failed = 0, status;
    while (wait(&status) > 0) failed += status != 0;
    printf("hot %ld\nlooped %ld\nwarm %ld\nforks %ld\nfailed %d\n", calls + 50 * handled, 300000 + 50 * handled, 300000 + 3000000 * threads, (long)forks, failed);
}
"""

ENDS = BEGIN + r"""
int main(int count, char **words) {
    long calls = atol(words[1]);
    TIMES(calls, hot);
    printf("hot %ld\n", calls);
    fflush(stdout);
    if (!strcmp(words[2], "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(words[2], "exec")) execl("/proc/self/exe", words[0], "250007", "return", NULL);
    if (!strcmp(words[2], "_exit")) _exit(0);
    if (!strcmp(words[2], "vfork")) {
        pid_t child = vfork();
        if (!child) { TIMES(50000, hot); _exit(0); }
        waitpid(child, NULL, 0);
        TIMES(1000, hot);
        printf("more %d\n", 1000);
    }
    if (!strcmp(words[2], "fork")) {
        fflush(stdout);
        if (!fork()) { TIMES(70001, hot); return 0; }
        wait(NULL);
    }
    return 0;
}
"""

PLUGIN = r"""
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile long field = 3;
FUNCTION static long hot(long n) { return field + n; }
long run(long count) { long sum = 0; for (long i = 0; i < count; i++) sum += hot(i); return sum; }
"""
LOADS = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    long calls = 0;
    for (int n = 0; n < 4; n++) {
        void *plugin = dlopen(words[1], RTLD_NOW);
        if (!plugin) return puts(dlerror()), 1;
        long (*run)(long) = (long (*)(long))dlsym(plugin, "run");
        run(200000 + n);
        calls += 200000 + n;
        dlclose(plugin);
    }
    printf("hot %ld\n", calls);
}
"""


class Counted(Functions):
    def run_counting(self, program, *words, status=0, **variables):
        """The program's own counts, and its traces."""
        self.forget_traces()
        run = self.execute([program, *words], status=status, said=None, TRACER_FUNCTIONS="*", **variables)
        return {name: int(count) for name, count in (line.split() for line in run.stdout.decode().splitlines())}

    def only_counted(self, path):
        return {row["name"]: row["only_counted"] for row in self.json("report", path)["functions"] if row.get("only_counted")}


def calls_are_those_of_the_program(compiler, *options):
    def check(test):
        program = test.planned(build.DRIVERS[compiler][".c"], *options, source=SIMPLE, name="simple")
        test.execute([program], TRACER_FUNCTIONS="*")
        trace = test.checked_trace()
        expected = {"hot": 800010, "looped": 700001, "warm": 1009}
        found = {name: trace.count(name) for name in expected}
        expect(found == expected, f"{found}, the program made {expected}")
        counted = test.only_counted(trace.path)
        expect(set(counted) == {"hot", "looped"}, f"only counted: {counted}")
        recorded = {name: trace.recorded_count(name) for name in counted}
        expect(all(50000 < count < 300000 and counted[name] + count == expected[name] for name, count in recorded.items()),
               f"recorded {recorded}, counted {counted}")
    return check


def calls_of_threads_are_their_own(test):
    """Threads that begin at once and after one another, each with counters of its own, of which some functions are called a few times alone."""
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=THREADS, name="threads")
    run = test.execute([program], TRACER_FUNCTIONS="*")
    own = {int(tid): (int(hot), int(looped)) for tid, hot, looped in (line.split() for line in run.stdout.decode().splitlines())}
    trace = test.checked_trace()
    expect(trace.count("warm") == 3 * 18, f"warm {trace.count('warm')} times")
    wrong = []
    for thread in trace.threads.values():
        if thread.tid in own:
            found = tuple(trace.count_of_thread(name, thread) for name in ("hot", "looped"))
            if found != own[thread.tid]:
                wrong.append(f"thread {thread.tid}: {found}, it made {own[thread.tid]}")
    expect(not wrong and len(own) == 18, "; ".join(wrong))
    threads = {row["tid"]: row["calls"] for row in test.json("report", trace.path)["threads"]}
    expect(all(threads[tid] >= sum(calls) for tid, calls in own.items()), f"{threads}")


def forks_in_signal_handlers(threads, forks=100):
    """The parent's counts are its own: a child that goes on where its parent was interrupted adds to none of them, and has its own."""
    def check(test):
        program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=FORKS, name="forks")
        kept = test.run_counting(program, str(forks), str(threads))
        expect((kept.pop("forks"), kept.pop("failed")) == (forks, 0), f"children failed: {kept}")
        traces = harness.tracefile.read_all(test.traces)
        parents = {trace.header["pid"] for trace in traces}
        parent, = (trace for trace in traces if trace.header["parent_pid"] not in parents)
        found = {name: parent.count(name) for name in kept}
        expect(found == kept, f"the parent: {found}, it made {kept}")
        expect(len(traces) == forks + 1, f"{len(traces)} traces")
        anomalies = [text for trace in traces for text in trace.anomalies]
        expect(not anomalies, f"{len(anomalies)} anomalies: {anomalies[:3]}")
        # The call that the signal interrupted may have been counted before.
        counts = {(trace.count("hot"), trace.count("looped"), trace.count("warm")) for trace in traces if trace is not parent}
        wrong = [count for count in counts if not (5999 <= count[0] <= 6001 and count[1:] == (1000, 0))]
        expect(not wrong, f"children: {wrong[:5]}")
    return check


def counts_outlive_what_ends_the_process(test):
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=ENDS, name="ends")
    for how, status in (("kill", -9), ("_exit", 0), ("return", 0)):
        kept = test.run_counting(program, "600011", how, status=status)
        trace = test.checked_trace()
        expect(trace.count("hot") == kept["hot"] and test.only_counted(trace.path).keys() == {"hot"}, f"{how}: {trace.count('hot')}, {kept}")


def a_new_program_and_a_child_count_for_themselves(test):
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=ENDS, name="ends")
    for how, expected in (("exec", [250007, 600011]), ("fork", [70001, 600011])):
        if how == "exec" and harness.EMULATOR:  # it would execute the emulator
            continue
        test.forget_traces()
        test.execute([program, "600011", how], said=None, TRACER_FUNCTIONS="*")
        counts = sorted(trace.count("hot") for trace in test.checked_traces())
        expect(counts == expected, f"{how}: {counts}, expected {expected}")


def a_child_of_vfork_does_not_count_for_its_parent(test):
    if harness.EMULATOR:
        raise Skipped("qemu makes a fork of vfork")
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=ENDS, name="ends")
    test.run_counting(program, "600011", "vfork")
    trace = test.checked_trace()
    expect(trace.count("hot") == 601011, f"hot {trace.count('hot')} times, the parent made 601011 calls")


def calls_in_unloaded_modules_are_counted(test):
    plugin = test.planned(build.DRIVERS["gcc"][".c"], "-O2", "-shared", "-fPIC", source=PLUGIN, name="libplugin.so")
    program = test.build(build.DRIVERS["gcc"][".c"], "-O2", source=LOADS, name="loads")
    test.forget_traces()
    run = test.execute([program, plugin], TRACER_FUNCTIONS="libplugin.so!*")
    kept = int(run.stdout.decode().split()[1])
    trace = test.checked_trace()
    expect(trace.count("hot") == kept, f"hot {trace.count('hot')} times, the program made {kept} calls")


def every_reader_has_the_number_and_says_what_is_an_estimate(test):
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=SIMPLE, name="simple")
    test.execute([program], TRACER_FUNCTIONS="*")
    path = test.checked_trace().path
    report = test.json("report", path)
    row, = (row for row in report["functions"] if row["name"] == "hot")
    expect(row["calls"] == 800010 and "left_out" not in row and 0 < row["only_counted_error_ns"], f"{row}")
    expect(report["only_counted"] == sum(row.get("only_counted", 0) for row in report["functions"]), f"{report['only_counted']}")
    expect({(row["function"], row["counted"]) for row in test.json("info", path)["left_out"]} == {("hot", True), ("looped", True)}, "info")
    tree = test.json("tree", path)
    nodes = [node for node in tree["nodes"] if node["function"] >= 0 and tree["functions"][node["function"]]["name"] == "hot"]
    expect(sum(node["calls"] for node in nodes) == 800010 and all(node["calls_estimated"] for node in nodes), f"tree: {nodes}")
    for words, line in ((("report", path), r"800,010 +~\S+ \S+ ±.* hot "), (("report", path, "hot"), "^800,010 calls, total ~.* ±.*, self ~"),
                        (("tree", path), r"~800,010  hot|~800,010 .*hot"), (("callers", path, "hot"), "~800,010"), (("report", path), "record --keep-hot"),
                        (("report", path, "--by", "caller"), "~800,010"), (("info", path), "2 short functions suppressed")):
        text = test.tool(*words).stdout
        expect(re.search(line, text, re.M) and "≥" not in text, f"{' '.join(words)}: no {line!r}, or ≥: {text[-1500:]}")
    other = test.trace("other.trace")
    subprocess.run(["cp", path, other], check=True)
    diff = test.json("diff", path, other)
    row, = (row for row in diff["functions"] if row["name"] == "hot")
    expect(str(row).count("800010") >= 2, f"diff: {row}")
    rows = [(row["calls"], row["at_least"]) for row in test.json("coverage", path)["functions"] if row["name"] == "hot"]
    expect(rows == [(800010, False)], f"coverage: {rows}")


def what_a_server_calls_now_and_then_stays_recorded(test):
    """As many calls as make a function one that is called very often in a loop, in a program that waits for most of the time."""
    calls = 150_000
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=PACED, name="paced")
    test.execute([program, str(calls // 50)], TRACER_FUNCTIONS="*")
    trace = test.checked_trace()
    info = test.json("info", trace.path)
    recording, passed = calls * info["leaf_cost_ns"], info["duration_ns"]
    if recording * 1024 * 1.5 > passed:
        raise Skipped(f"recording {calls} calls takes {recording} of {passed} ns here")
    expect(trace.recorded_count("hot") == calls and not test.only_counted(trace.path), f"{trace.recorded_count('hot')} of {calls} recorded")


def a_ring_keeps_no_counts(test):
    program = test.planned(build.DRIVERS["gcc"][".c"], "-O2", source=SIMPLE, name="simple")
    test.execute([program], TRACER_FUNCTIONS="*", TRACER_MODE="ring", TRACER_MAXSIZE="64m")
    trace = test.checked_trace()
    text = test.tool("report", trace.path).stdout
    expect("≥" in text and not test.only_counted(trace.path) and not trace.counts, text)


MODES = {"slots": "*", "arm": "*"}


def tests():
    ways = {"gcc.O0": ("gcc", "-O0"), "gcc.O2": ("gcc", "-O2"), "gcc.Os": ("gcc", "-Os"), "clang.O2": ("clang", "-O2")}
    if harness.EMULATOR:
        ways = {"gcc.O2": ("gcc", "-O2")}
    found = {"calls_are_those_of_the_program." + name: calls_are_those_of_the_program(*way) for name, way in ways.items()}
    found["forks_in_signal_handlers.alone"] = forks_in_signal_handlers(0, 10 if harness.EMULATOR else 100)
    found["forks_in_signal_handlers.with_threads"] = forks_in_signal_handlers(2, 10 if harness.EMULATOR else 100)
    return [Counted("counted." + name, check) for name, check in found.items()] + suite.tests_of(__name__, Counted)
