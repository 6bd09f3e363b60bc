"""`tracer attach` at any moment: while libraries are loaded, processes forked and executed, threads begun and ended, memory allocated, signals
handled and stacks switched. The process's own checks hold, it ends as it would, says nothing, and every trace reads. An attach that does not
come about says why in a line."""
import itertools
import os
import random
import subprocess

import attached
import build
import harness
import suite
from harness import Failed, expect

SOURCE = os.path.join(build.SUBJECTS, "part_attach_storm.c")
PLUGIN = "long before(long);\nlong plug(long n) { return n + before(n); }\n"
ACTIVITIES = ["loads", "forks", "executes", "starts", "allocates", "signals", "switches", "jumps"]
WAYS = [[], ["--functions", "*"], ["--functions", "*", "--functions", "*!*"], ["--mode", "ring", "--max-size", "2M"]]
ATTACHES = 6  # --attaches: of each test
# What may be in the way of one that comes at a bad moment, and of the next one no more.
MOMENTS = ("is loading a library", "executes another program in this moment", "has it called exec", "has ended", "no process ", "it has only just begun")


class Storm(attached.Attached):
    def prepare(self):
        super().prepare()
        self.compile("libplug.so", "-O1", "-shared", "-fPIC", "-L.", "-lpart", source=PLUGIN, compiler=build.DRIVERS["gcc"][".c"])
        self.program = self.compile("storm", "-O1", "-g", "-pthread", SOURCE, "-L.", "-Wl,-rpath," + self.made, "-lpart", "-ldl", "-lrt",
                                    compiler=build.DRIVERS["gcc"][".c"])
        self.attaches = self.settings.attaches or ATTACHES
        self.failures = []

    def attach(self, pid, length, *options):
        """Returns whether it recorded; what it left is readable."""
        self.forget_traces()
        done = self.tool("attach", str(pid), "--for", f"{length}ms", "-o", self.trace(), *options, status=None)
        lines = done.stderr.splitlines()
        expect(all(line.startswith("tracer: ") for line in lines) and not done.stdout, f"{harness.describe(done.returncode)}: {done.stdout}{done.stderr}")
        left = os.path.exists(self.trace())
        expect(left == (done.returncode == 0), f"{harness.describe(done.returncode)}, {os.listdir(self.traces)}: {done.stderr}")
        if left:
            self.tool("info", self.trace())
            self.tool("report", self.trace())
            return True
        expect(done.returncode in (1, 2, 126) and len(lines) <= 4 and any(moment in lines[-1] for moment in MOMENTS),
               f"{harness.describe(done.returncode)}: {done.stderr}")
        self.failures.append(lines[-1])
        return False


def storm(test, *activities):
    """Attaches and lets go, while the threads go on; then the process ends by itself."""
    chance = random.Random(1)
    with test.running(*activities) as process:
        last, recorded = attached.asked(process), 0
        for way in itertools.islice(itertools.cycle(WAYS), test.attaches):
            recorded += test.attach(process.pid, chance.choice((1, 10, 50)), *way)
            if process.poll() is not None:
                raise Failed(f"{way}: {harness.describe(process.returncode)} {process.stderr.read()}")
            kept = attached.mappings(process.pid, test.traces)
            expect(not kept, f"{way}: {len(kept)} parts of a trace are mapped afterwards: {kept[:3]}")
            # Twice: a library may be loaded where another was when the list was made.
            changed = set(attached.changed_code(process.pid)) and set(attached.changed_code(process.pid))
            expect(not changed, f"{way}: code that is not as it was: {changed}")
            counts = attached.asked(process)
            while any(now == then for name, now, then in zip(ACTIVITIES, counts, last) if name in activities):  # hangs where a thread does
                counts = attached.asked(process)
            last = counts
        expect(recorded >= test.attaches / 2, f"{recorded} of {test.attaches}: {test.failures}")
        out, err = process.communicate("end\n", timeout=harness.HANGS)
        expect((process.returncode, out, err) == (0, "done\n", ""), f"{harness.describe(process.returncode)}: {out!r} {err!r}")
    return f"{recorded} of {test.attaches} attaches recorded" + "".join(f"; {line}" for line in test.failures[:3])


def all_at_once(test):
    return storm(test, *ACTIVITIES)


def while_libraries_are_loaded(test):
    return storm(test, "loads", "allocates")


def while_processes_are_forked_and_executed(test):
    return storm(test, "forks", "executes")


def while_threads_begin_and_end(test):
    return storm(test, "starts")


def while_signals_are_handled_and_stacks_switched(test):
    return storm(test, "signals", "switches", "jumps")


def while_it_executes_itself(test):
    """The process is another program from one moment to the next, and at the end none."""
    chance, recorded, attempts = random.Random(2), 0, 0
    while attempts < test.attaches:
        process = subprocess.Popen([test.program, "again", str(chance.choice((3, 10, 40, 150))), "20", *chance.choice(([], ["starts", "allocates"], ["signals", "loads"]))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=test.made, env=test.environment(), preexec_fn=harness.attachable)
        while process.poll() is None and attempts < test.attaches:
            recorded += test.attach(process.pid, chance.choice((1, 20)), *WAYS[attempts % len(WAYS)])
            attempts += 1
        out, err = process.communicate(timeout=harness.HANGS)
        expect((process.returncode, out, err) == (0, "done\n", ""), f"{harness.describe(process.returncode)}: {out!r} {err!r}")
    return f"{recorded} of {attempts} attaches recorded" + "".join(f"; {line}" for line in sorted({line.split(": ", 1)[1] for line in test.failures})[:5])


def tests():
    return suite.tests_of(__name__, Storm)


MODES = {"slots": "*"}
