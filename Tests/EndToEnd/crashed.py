"""`tracer report --crash`: what each thread of a process was doing when it ended: the calls that were open, and the last ones."""
import signal

import suite
from harness import expect

SOURCE = """
    #include <pthread.h>
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    #define PLAIN __attribute__((noinline))
    static volatile int ready;
    PLAIN void step(int n) { __asm__ volatile("" :: "r"(n)); }
    PLAIN void waits(void) { ready = 1; pause(); __asm__ volatile(""); }
    static void *other(void *unused) { waits(); return unused; }
    PLAIN void inner(const char *how) {
        for (int n = 0; n < 500; n++) step(n);
        if (how[0] == 'a') abort();
        if (how[0] == 's') *(volatile int *)0 = 1;
        if (how[0] == 'k') kill(getpid(), SIGKILL);
        __asm__ volatile("");
    }
    PLAIN void outer(const char *how) { inner(how); __asm__ volatile(""); }
    PLAIN int deep(int n) { if (n == 0) abort(); int result = deep(n - 1); __asm__ volatile(""); return result; }
    int main(int argc, char **argv) {
        pthread_t thread;
        if (argc < 2) return 1;
        if (pthread_create(&thread, NULL, other, NULL)) return 1;
        while (!ready) {}
        if (argv[1][0] == 'd') deep(1000);
        outer(argv[1]);
        return 0;
    }"""


class Crashed(suite.Test):
    def prepare(self):
        self.program = self.compile("crashing", "-O1", "-fno-optimize-sibling-calls", "-pthread", self.write("crashing.c", SOURCE))

    def ended(self, how, status, *options):
        self.tool("record", "--functions", "*", *options, "--force", "-o", self.trace(), "--", self.program, how, status=128 + status if status else 0)
        return self.json("report", self.trace(), "--crash")


def innermost(thread):
    return [call["name"] for call in thread["open"]]


def ends_with_a_signal(how, number):
    def check(test):
        for options in ((), ("--mode", "ring", "--max-size", "256K"), ("--keep", "5s")):
            found = test.ended(how, number, *options)
            expect(f"signal {int(number)}" in found["ended"], found["ended"])
            main, other = sorted(found["threads"], key=lambda thread: thread["tid"])
            opened = innermost(main)
            expect(opened[:3] == ["main", "outer", "inner"], f"{how}: {opened}")
            expect("waits" in innermost(other), f"{innermost(other)}")
            expect(found["threads"][0]["tid"] == main["tid"], "the thread that waits comes first")
            last = [call["name"] for call in main["last"]]
            expect(len(last) == 100 and last.count("step") >= 90, f"{len(last)} calls, {last.count('step')} steps")
            times = [call["time_ns"] for call in main["last"]]
            expect(times == sorted(times), "the last calls are not in order")
            told = test.tool("report", test.trace(), "--crash").stdout
            expect(told.count("thread ") == 2 and "inner()" in told and f"signal {int(number)}" in told, told[:1000])
    return Crashed(f"crashed.ends_with_a_signal.{how}", check)


def a_deep_stack_is_cut(test):
    found = test.ended("deep", signal.SIGABRT)
    main = next(thread for thread in found["threads"] if thread["open"][-1]["name"] != "pause" and "waits" not in innermost(thread))
    expect(len(main["open"]) == 64 and main["hidden"] > 900, f"{len(main['open'])} open, {main['hidden']} hidden")


def a_process_that_ended_well_has_none_open(test):
    found = test.ended("x", 0)
    main = next(thread for thread in found["threads"] if "waits" not in innermost(thread))
    expect(len(main["last"]) == 100, f"{len(main['last'])} calls")
    done = test.tool("report", test.trace(), "--crash", "--by", "module", status=2)
    expect("--crash" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def tests():
    return [ends_with_a_signal("abort", signal.SIGABRT), ends_with_a_signal("segv", signal.SIGSEGV), ends_with_a_signal("kill", signal.SIGKILL),
            *suite.tests_of(__name__, Crashed)]
