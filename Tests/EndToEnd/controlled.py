"""`tracer control`: a process that is recorded stops, goes on, and keeps less, by words in its file; it takes note at its next call."""
import contextlib
import os
import subprocess

import build
import harness
import suite
import tracefile
from harness import expect

SOURCE = os.path.join(build.SUBJECTS, "part_controlled.c")
LATER = "it takes note at its next call"


class Controlled(suite.Test):
    def prepare(self):
        self.program = self.compile("controlled", "-O1", "-pthread", "-fno-builtin", SOURCE)

    @contextlib.contextmanager
    def running(self, *options, agent=False):
        """Under `tracer record`, or with the agent alone."""
        words = [self.program] if agent else [self.settings.tool, "record", *options, "-o", self.trace(), "--", self.program]
        environment = self.traced_environment(**{name: value for name, value in (option.split("=") for option in options)}) if agent else self.environment()
        started = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.made, env=environment)
        try:
            asked(started, "n")
            self.pid = started.pid if agent else next(int(name.split(".")[-2]) for name in os.listdir(self.trace()) if name.endswith(".trace"))
            yield started
            out, err = started.communicate("e\n", timeout=harness.HANGS)
            expect(started.returncode == 0, f"{harness.describe(started.returncode)}: {out}{err}")
        finally:
            started.kill()
            started.wait()

    def control(self, *words, status=0):
        return self.tool("control", str(self.pid), *words, status=status)

    def traces_read(self):
        found = tracefile.read_all(self.trace() if os.path.isdir(self.trace()) else self.traces)
        for trace in found:
            expect(not trace.anomalies, f"{trace.path}: {trace.anomalies[:4]}")
        return found


def asked(process, word="c"):
    process.stdin.write(word + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def recorded(trace, name="strtol"):
    """The library's function may have several names."""
    return sum(trace.count(one) for one in (name, "__isoc23_" + name))


def starts_and_stops(test):
    with test.running("--start", "off") as process:
        asked(process)
        expect("off" in test.control("status").stdout, "the status says nothing of it")
        said = test.control("start").stderr
        expect(LATER in said or "recording" in said, said)
        asked(process)
        asked(process)
        expect("recording     on" in test.control("status").stdout, test.control("status").stdout)
        test.control("stop")
        asked(process)
        expect("off" in test.control("status").stdout, "the status says nothing of it")
        test.control("start")
        asked(process)
    trace, = test.traces_read()
    # Whoever has it stop is heard at the next call, which may be recorded.
    expect(300 <= recorded(trace) <= 301, f"{recorded(trace)} of 300 calls")
    expect([on for _, on in trace.switched] == [False, True, False, True], f"{trace.switched}")
    faults = harness.cross_check(test.settings, trace)
    expect(not faults, f"{faults}")
    told = test.tool("report", trace.path).stdout
    expect("recording was off for" in told and "2 times" in told, told)


def a_thread_that_calls_hears_of_it_at_once(test):
    with test.running() as process:
        asked(process, "w")
        for _ in range(20):
            for wish, state in (("stop", "recording     off"), ("start", "recording     on")):
                test.control(wish)
                while state not in test.control("status").stdout:
                    os.sched_yield()
        asked(process)
    trace, = test.traces_read()
    expect([on for _, on in trace.switched] == [False, True] * 20, f"{len(trace.switched)} switches")
    expect(recorded(trace) == 100, f"{recorded(trace)} of 100 calls")


def the_agent_alone_is_controlled_too(test):
    with test.running("TRACER_START=off", agent=True) as process:
        asked(process)
        test.control("start")
        asked(process)
    trace, = test.traces_read()
    expect(recorded(trace) == 100, f"{recorded(trace)} of 100 calls")


def the_trace_may_have_any_name(test):
    with test.running("TRACER_START=off", "TRACER_OUT=" + test.trace("calls.out"), agent=True) as process:
        asked(process)
        test.control("start")
        asked(process)
    trace = tracefile.Trace(test.trace("calls.out"))
    trace.trees()
    expect(not trace.anomalies and recorded(trace) == 100, f"{recorded(trace)} of 100 calls, {trace.anomalies[:4]}")


def children_begin_as_their_parent_is_now(test):
    with test.running("--start", "off") as process:
        asked(process, "f")
        test.control("start")
        asked(process)
        asked(process, "f")
        test.control("stop")
        asked(process)
        asked(process, "f")
    counts = sorted(recorded(trace) for trace in test.traces_read() if trace.header["pid"] != test.pid)
    # The third forks without having heard of anything else than its parent, which was told to stop.
    expect(counts in ([100], [0, 100], [0, 0, 100]), f"the children recorded {counts} calls")


def the_shortest_call_is_changed(test):
    with test.running("--min-ms", "0.000001", "--exclude", "sched_yield") as process:
        asked(process)
        test.control("filter", "--min-ms", "10s")
        asked(process)
        asked(process)
        told = test.control("status").stdout
        expect("shortest call 10.0" in told or "shortest call 9.99" in told, told)
        test.control("filter", "--min-ms", "0")
        asked(process)
    trace, = test.traces_read()
    expect(200 <= recorded(trace) <= 202, f"{recorded(trace)} of 200 calls")
    expect(198 <= trace.filtered_by_time <= 230, f"{trace.filtered_by_time} calls were too short")


def what_cannot_be_done_is_said_in_one_line(test):
    with test.running() as process:
        asked(process)
        for words, said in [(("filter", "--min-ms", "5ms"), "without --min-ms")]:
            done = test.control(*words, status=126)
            expect(said in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        for words, said in [(("filter",), "needs --min-ms"), (("stop", "--min-ms", "5ms"), "--min-ms is for filter"), (("start", "-o", "x"), "--output is for snapshot")]:
            done = test.control(*words, status=2)
            expect(said in done.stderr and done.stderr.count("\n") == 1, done.stderr)
        done = test.control("snapshot", "-o", test.program, status=2)
        expect("exists" in done.stderr, done.stderr)
    done = test.tool("control", str(os.getpid()), "status", status=126)
    expect("tracer attach" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def tests():
    return suite.tests_of(__name__, Controlled)
