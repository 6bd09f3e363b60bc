"""`tracer control`: a process that is recorded stops, goes on, and keeps less, by words in its file; it takes note at its next call."""
import contextlib
import os
import re
import signal
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
        for _ in range(5):
            for wish, state in (("stop", "recording     off"), ("start", "recording     on")):
                test.control(wish)
                while state not in test.control("status").stdout:
                    os.sched_yield()
        asked(process)
    trace, = test.traces_read()
    expect([on for _, on in trace.switched] == [False, True] * 5, f"{len(trace.switched)} switches")
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


SIGNALLED = """
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static volatile long handled;
    static void note(int number) { handled++; }
    int main(void) {
        setvbuf(stdout, NULL, _IOLBF, 0);
        char line[16];
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        while (fgets(line, sizeof line, stdin)) {
            if (line[0] == 'e') break;
            if (line[0] == 'h') signal(SIGUSR2, note);
            if (line[0] == 'r') raise(SIGUSR2);
            if (line[0] == 'w') { // blocked, and waited for
                int number;
                sigprocmask(SIG_BLOCK, &set, NULL);
                kill(getpid(), SIGUSR2);
                if (!sigwait(&set, &number)) handled += 100;
                sigprocmask(SIG_UNBLOCK, &set, NULL);
            }
            for (int n = 0; line[0] == 'c' && n < 100; n++) strtol("12", NULL, 10);
            printf("%ld\\n", handled);
        }
        return 0;
    }"""


def a_signal_to_the_tool_means_what_the_user_has_said(test):
    """The program gets none of them, whether it ignores, handles, blocks or waits for the signal, and those that it is sent are its own."""
    program, wanted = test.compile("signalled", "-O1", "-fno-builtin", source=SIGNALLED), {}

    def told(tool, pattern):
        """What the tool has said by now, once it says this."""
        while not re.search(pattern, "".join(lines)):
            lines.append(tool.stderr.readline())
            expect(lines[-1], f"it has ended: {lines}")

    lines = []
    words = ["record", "--keep", "60s", "--signal", "USR2=snapshot", "--signal", "SIGUSR1=stop", "--signal", "RTMIN+3=start", "-o", test.trace(), "--", program]
    tool = subprocess.Popen([test.settings.tool, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=test.made,
                            env=test.environment())
    try:
        asked(tool)
        test.pid = next(int(name.split(".")[-2]) for name in os.listdir(test.trace()) if name.endswith(".trace"))
        for count, command in enumerate("nhrw"):  # the default action would end the program
            wanted[command] = asked(tool, command)
            while "".join(lines).count("snapshot: tracer report") <= count:  # on a busy machine the tool may not know of the process yet
                said = "".join(lines).count("snapshot: ")
                tool.send_signal(signal.SIGUSR2)
                told(tool, rf"(?s)(snapshot: .*){{{said + 1}}}")
        expect(wanted == {"n": 0, "h": 0, "r": 1, "w": 101}, f"{wanted}")
        tool.send_signal(signal.SIGUSR1)
        while "recording     off" not in test.control("status").stdout:
            asked(tool, "n")
        asked(tool)
        tool.send_signal(signal.SIGRTMIN + 3)
        while "recording     on" not in test.control("status").stdout:
            asked(tool, "n")
        expect(asked(tool) == 101, "the program was signalled")
        out, err = tool.communicate("e\n", timeout=harness.HANGS)
        expect(tool.returncode == 0, f"{harness.describe(tool.returncode)}: {out}{err}")
    finally:
        tool.kill()
        tool.wait()
    trace, = [trace for trace in test.traces_read() if ".snapshot." not in trace.path]
    expect(recorded(trace) == 200, f"{recorded(trace)} of 200 calls")
    found = [tracefile.Trace(path) for path in re.findall(r"snapshot: tracer report (\S+)", "".join(lines))]
    expect(len(found) == 4 and all(".asked." in snapshot.path for snapshot in found), f"{lines}")
    for snapshot in found:
        snapshot.trees()
        expect(not snapshot.anomalies and recorded(snapshot) == 100, f"{snapshot.path}: {recorded(snapshot)} calls, {snapshot.anomalies[:4]}")


def signals_that_others_send_have_no_meaning(test):
    for text, said in (("TERM=snapshot", "choose USR1"), ("INT=stop", "choose USR1"), ("USR1", "give a signal and what it means"), ("USR1=kill", "give a signal"),
                       ("RTMIN+31=stop", "choose USR1"), ("CHLD=stop", "choose USR1")):
        done = test.tool("record", "--signal", text, "--", "true", status=2)
        expect(said in done.stderr and done.stderr.count("\n") == 1, f"{text}: {done.stderr}")
    done = test.tool("record", "--signal", "USR1=stop", "--signal", "SIGUSR1=start", "--", "true", status=2)
    expect("has a meaning already" in done.stderr, done.stderr)


SETS = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <time.h>
    #include "tracer.h"
    #define PLAIN __attribute__((noinline))
    PLAIN void tick(void) { __asm__ volatile(""); }
    PLAIN int deep(int n) { __asm__ volatile(""); if (n == 0) return 0; int result = deep(n - 1); __asm__ volatile("" : "+r"(result)); return result + 1; }
    PLAIN void brief(void) { __asm__ volatile(""); }
    PLAIN void lasting(long us) { clock_t end = clock() + us * (CLOCKS_PER_SEC / 1000000); while (clock() < end) {} }
    /* A thread takes note within 2^21 ticks in which it makes calls. */
    static void call_for_long(void) { clock_t end = clock() + CLOCKS_PER_SEC / 50; while (clock() < end) tick(); }
    int main(void) {
        static const unsigned depths[] = {1000, 4, 8, 300, 2, 5};
        int answers = 0;
        /* A call between two reads of a coarse clock lasts 0 ns, which is shorter than the 1 ns that the recording began with. */
        tracer_set(TRACER_MINIMUM, 0);
        for (int n = 0; n < 6; n++) {
            answers += tracer_set(TRACER_DEPTH, depths[n]);
            call_for_long();
            for (int k = 0; k < 3; k++) if (deep(200) != 200) return 1;
        }
        answers += tracer_set(TRACER_DEPTH, 0) + tracer_set((enum tracer_setting)3, 1);
        tracer_set(TRACER_DEPTH, 1000);
        call_for_long();
        for (int n = 0; n < 4; n++) {
            answers += tracer_set(TRACER_MINIMUM, n & 1 ? 1000000 : 0);
            for (int k = 0; k < 50; k++) brief();
            lasting(3000);
        }
        printf("%d\\n", answers);
        return 0;
    }"""


def the_program_sets_its_shortest_call_and_its_depth(test):
    program = test.compile("sets", "-O1", "-fno-optimize-sibling-calls", "-I" + os.path.join(build.ROOT, "CSupport", "include"), source=SETS)
    options = "--functions", "*", "--keep-hot", "--force", "--no-files", "-o", test.trace()
    done = test.tool("record", *options, "--max-depth", "1000", "--min-ms", "0.000001", "--", program)
    expect(done.stdout == "10\n", done.stdout)
    trace, = test.traces_read()
    # main is the first level.
    expect(trace.count("deep") == 3 * (201 + 3 + 7 + 201 + 1 + 4), f"{trace.count('deep')} calls of deep")
    expect(trace.count("brief") == 100 and trace.count("lasting") == 4, f"{trace.count('brief')} and {trace.count('lasting')} calls")
    done = test.tool("record", *options, "--", program)
    expect(done.stdout == "0\n", done.stdout)
    trace, = test.traces_read()
    expect(trace.count("deep") == 18 * 201 and trace.count("brief") == 200, f"{trace.count('deep')} and {trace.count('brief')} calls")
    bare = subprocess.run([program], capture_output=True, text=True, check=True)
    expect(bare.stdout == "0\n", bare.stdout)


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
