"""`tracer control PID filter --functions`, `--include`, `--exclude`: which functions are recorded is changed while they are called. What is left out
is not recorded, everything else is, call by call, and the program notices nothing."""
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

SOURCE = os.path.join(build.SUBJECTS, "part_chosen.c")
LIBRARY = """
    int part_one(int n) { __asm__ volatile("" : "+r"(n)); return n + 10; }
    int part_two(int n) { __asm__ volatile("" : "+r"(n)); return n + 20; }"""
LATER = """
    int part_one(int n);
    __attribute__((noinline, visibility("hidden"))) int inner(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
    int outer(int n) { return inner(n) + part_one(0); }"""
NAMES = "alpha_one", "alpha_two", "beta", "part_one", "part_two"
ALL = dict(zip(NAMES, (200, 100, 100, 100, 100)))  # alpha_two calls alpha_one


class Chosen(suite.Test):
    def prepare(self):
        self.compile("libpart.so", "-O1", "-shared", "-fPIC", "-Wl,-soname,libpart.so", source=LIBRARY)
        self.compile("liblater.so", "-O1", "-shared", "-fPIC", source=LATER)
        self.programs = {
            binding: self.compile("chosen_" + binding, "-O1", "-fno-optimize-sibling-calls", "-pthread", SOURCE, "-L.", "-Wl,-rpath," + self.made, "-lpart", "-ldl",
                                  "-Wl,-z," + binding) for binding in ("lazy", "now")}

    def begin(self, *words):
        return subprocess.Popen([*words, os.path.join(self.made, "liblater.so")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=self.made, env=self.environment(), preexec_fn=harness.attachable)

    @contextlib.contextmanager
    def running(self, *options, binding="now"):
        """Under `tracer record`."""
        process = self.begin(self.settings.tool, "record", "--no-states", *options, "--force", "-o", self.trace(), "--", self.programs[binding])
        try:
            asked(process, "n")
            self.pid = next(int(name.split(".")[-2]) for name in os.listdir(self.trace()) if name.endswith(".trace"))
            yield process
            self.ends_well(process)
        finally:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def attached(self, process, *options):
        tool = subprocess.Popen([self.settings.tool, "attach", str(process.pid), "--no-states", "-o", self.trace(), "--force", *options], stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, cwd=self.made, env=self.environment())
        try:
            said = tool.stderr.readline()
            expect("recording" in said, said)
            self.pid = process.pid
            yield
            tool.send_signal(signal.SIGINT)
            _, said = tool.communicate(timeout=harness.HANGS)
            expect(tool.returncode == 0, f"{harness.describe(tool.returncode)}: {said}")
        finally:
            tool.kill()
            tool.wait()

    def ends_well(self, process):
        out, err = process.communicate("e\n", timeout=harness.HANGS)
        expect(process.returncode == 0 and out == "", f"{harness.describe(process.returncode)}: {out}{err}")

    def chosen(self, process, *words, status=0):
        """The process makes calls until it has taken note. Returns what the tool says."""
        tool = subprocess.Popen([self.settings.tool, "control", str(self.pid), "filter", *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                cwd=self.made, env=self.environment())
        try:
            while tool.poll() is None:
                asked(process, "h")
            _, said = tool.communicate(timeout=harness.HANGS)
        finally:
            tool.kill()
            tool.wait()
        expect(tool.returncode == status and said.count("\n") == 1 and "called nothing" not in said, f"{harness.describe(tool.returncode)}: {said}")
        return said

    def own_trace(self):
        path = self.trace()
        if os.path.isdir(path):
            path = os.path.join(path, next(name for name in os.listdir(path) if name.endswith(f".{self.pid}.trace")))
        trace = tracefile.Trace(path)
        trace.trees()
        expect(not trace.anomalies, f"{path}: {trace.anomalies[:4]}")
        faults = harness.cross_check(self.settings, trace)
        expect(not faults, f"{path}: {faults[:4]}")
        return trace


def asked(process, word="c"):
    process.stdin.write(word + "\n")
    process.stdin.flush()
    answer = process.stdout.readline().split()
    expect(len(answer) == 2 and answer[1] == "0" and (word != "c" or answer[0] == "100"), f"{word}: {answer}")


def counts(trace):
    return {name: trace.count(name) for name in NAMES}


STEPS = [  # words, and what of ALL is recorded afterwards; by `tick` it takes note of the next
    (("--functions", "alpha*:tick"), {"beta": 0}), (("--exclude", "alpha_one:part_t*"), {"alpha_one": 0, "part_two": 0}),
    (("--include", "beta:tick", "--include", "libpart.so!part_one"), {"alpha_one": 0, "alpha_two": 0, "part_two": 0}),
    (("--functions", "*two", "--functions", "tick", "--exclude", "libpart*"), {"alpha_one": 0, "beta": 0, "part_one": 0, "part_two": 0}), (("--exclude", ""), {}),
]


def go_through_steps(test, process):
    """Returns how often each function must have been recorded."""
    wanted = dict(ALL)
    asked(process)
    for words, changed in STEPS:
        said = test.chosen(process, *words)
        expect(("leaves out" in said) == bool(changed) and ("records all functions" in said) != bool(changed), f"{words}: {said}")
        asked(process)
        for name in NAMES:
            wanted[name] += {**ALL, **changed}[name]
    return wanted


def check_choices(trace):
    expect([lists for _, *lists in trace.choices] == [["alpha*:tick", "", ""], ["", "", "alpha_one:part_t*"], ["", "beta:tick:libpart.so!part_one", ""], ["*two:tick", "", "libpart*"],
                                                      ["", "", ""]], f"{trace.choices}")


def what_is_left_out_is_not_recorded_and_comes_back(test):
    for binding in test.programs:
        for options in (("--functions", "*"), ("--functions", "*", "--keep-hot", "--call-sites"), ("--functions", "*", "--mode", "ring", "--min-ms", "0.000001")):
            with test.running(*options, binding=binding) as process:
                wanted = go_through_steps(test, process)
            trace = test.own_trace()
            filtered = trace.filtered_by_time
            expect(counts(trace) == wanted or filtered and sum(counts(trace).values()) + filtered >= sum(wanted.values()), f"{binding} {options}: {counts(trace)}, not {wanted}")
            check_choices(trace)


def slots_alone_are_left_out_too(test):
    for binding in test.programs:
        with test.running(binding=binding) as process:
            asked(process)
            test.chosen(process, "--exclude", "part_one")
            asked(process)
            test.chosen(process, "--include", "part_one")
            asked(process)
        found = counts(test.own_trace())
        expect(found["part_one"] == 200 and found["part_two"] == 200, f"{binding}: {found}")


def functions_of_an_attached_process_are_chosen_too(test):
    """And all of them are there again the next time; afterwards its code is as it was."""
    forbidden = harness.attaching_is_forbidden()
    if forbidden:
        raise harness.Skipped(forbidden)
    for binding, program in test.programs.items():
        process = test.begin(program)
        try:
            for _ in range(2):
                with test.attached(process, "--functions", "*"):
                    wanted = go_through_steps(test, process)
                    test.chosen(process, "--exclude", "beta:part_one")
                trace = test.own_trace()
                found = counts(trace)
                # The jump of one or the other may find no free address.
                left = [name for name in found if name[0] in "ab" and found[name] == 0]
                expect(len(left) < 2 and all(found[name] == wanted[name] for name in NAMES if name not in left), f"{binding}: {found}, not {wanted}")
                asked(process)
            test.ends_well(process)
        finally:
            process.kill()
            process.wait()


def threads_go_on_calling_meanwhile(test):
    with test.running("--functions", "*", "--mode", "ring") as process:
        asked(process, "w")
        for turn in range(5):
            for words, _ in STEPS:
                test.chosen(process, *words)
        asked(process, "n")
    trace = test.own_trace()
    expect(len(trace.choices) == 25, f"{len(trace.choices)} choices")


def a_library_that_comes_later_is_chosen_from_as_well(test):
    test.tool("plan", "liblater.so")
    with test.running("--functions", "*", "--functions", "liblater.so!*") as process:
        asked(process, "l")
        test.chosen(process, "--exclude", "inner:part_one")
        asked(process, "l")
        test.chosen(process, "--exclude", "")
        asked(process, "l")
    trace = test.own_trace()
    found = [trace.count(name) for name in ("outer", "inner", "part_one")]
    expect(found == [300, 200, 200], f"{found}")


def children_begin_with_what_their_parent_records(test):
    with test.running("--functions", "*") as process:
        test.chosen(process, "--exclude", "beta:part_two")
        asked(process, "f")
    child, = [trace for trace in tracefile.read_all(test.trace()) if trace.header["pid"] != test.pid]
    expect(not child.anomalies and counts(child) == {**ALL, "beta": 0, "part_two": 0}, f"{counts(child)}, {child.anomalies[:4]}")
    expect(child.header["left_functions"] == 1 and child.header["left_slots"] >= 1 and len(child.choices) == 1, f"{child.header}")


def a_function_with_a_trigger_stays(test):
    with test.running("--functions", "*", "--keep", "60s", "--when", "beta > 3600s", "--when", "part_one > 3600s") as process:
        test.chosen(process, "--exclude", "*")
        asked(process)
    found = counts(test.own_trace())
    expect(found == {**dict.fromkeys(NAMES, 0), "beta": 100, "part_one": 100}, f"{found}")


def it_is_said_that_functions_were_left_out(test):
    with test.running("--functions", "*") as process:
        said = test.chosen(process, "--functions", "alpha*", "--exclude", "part*")
        left = re.search(r"leaves out (\d+) functions? and (\d+) slots?", said)
        expect(left and int(left[2]) >= 2, said)
        told = test.tool("control", str(test.pid), "status").stdout
        expect(f"functions     {left[0]}" in told, told)
    trace = test.own_trace()
    told = test.tool("info", trace.path).stdout
    expect("on only some functions were recorded: --functions 'alpha*' --exclude 'part*' (tracer control)" in told, told)
    told = test.tool("report", trace.path).stdout
    expect("which functions were recorded was changed meanwhile: tracer info says when" in told, told)
    told = test.tool("coverage", trace.path, status=None)
    expect("beta" not in told.stdout.split("never called")[0] or "may have been called then" in told.stdout, told.stdout)


def what_cannot_be_chosen_is_said_in_one_line(test):
    with test.running("--functions", "*", "--mode", "counts") as process:
        said = test.tool("control", str(test.pid), "filter", "--exclude", "x", status=126).stderr
        expect("--mode counts" in said and said.count("\n") == 1, said)
        said = test.tool("control", str(test.pid), "stop", "--exclude", "x", status=2).stderr
        expect("--exclude is for filter" in said and said.count("\n") == 1, said)
        said = test.tool("control", str(test.pid), "filter", status=2).stderr
        expect("or --functions, --include or --exclude" in said and said.count("\n") == 1, said)
        asked(process)
    with test.running("--functions", "*") as process:
        said = test.tool("control", str(test.pid), "filter", "--exclude", "x" * 70000, status=2).stderr
        expect("give fewer" in said and said.count("\n") == 1, said)
        asked(process)


def tests():
    return suite.tests_of(__name__, Chosen)
