"""What the suites share: a test calls a function of its suite, with a directory of its own and with what most of them do there."""
import contextlib
import inspect
import json
import os
import shutil
import subprocess
import sys

import harness
from harness import Skipped, expect


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skipped(f"{tool} is not installed")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content, mode=None):
    """Writes text or bytes and returns the path."""
    with open(path, "wb") if isinstance(content, bytes) else open(path, "w", encoding="utf-8") as file:
        file.write(content)
    if mode is not None:
        os.chmod(path, mode)
    return path


class Test:
    """`check` gets the test, and may return what it has measured."""
    checks_bare = False  # True: there is something to check where programs run bare alone

    def __init__(self, name, check):
        self.name, self.check = name, check

    def run(self, settings):
        if settings.bare_only and not self.checks_bare:
            return None
        self.settings, self.directory = settings, harness.Directory(self.name, settings.keep)
        self.traces, self.made = self.directory.traces, os.path.join(self.directory.path, "made")
        try:
            self.directory.fresh()
            os.mkdir(self.made)
            os.chmod(self.made, 0o777)
            self.prepare()
            return self.judge()
        finally:
            self.directory.done()

    def prepare(self):
        """What every test of a suite begins with."""

    def judge(self):
        return self.check(self)

    def path(self, name):
        """A file beside the traces, of the test's own."""
        return os.path.join(self.made, name)

    def write(self, name, content, mode=None):
        return write(self.path(name), content, mode)

    def trace(self, name="a.trace"):
        return os.path.join(self.traces, name)

    def compile(self, name, *words, source=None, compiler="gcc", **options):
        """Builds a file from those among the words, or from `source`: in C, or in the compiler's C++."""
        need(compiler)
        given = [] if source is None else ["-x", "c++" if "++" in compiler else "c", "-", "-x", "none"]
        done = subprocess.run([compiler, *given, *words, "-o", self.path(name)], input=source, cwd=self.made, capture_output=True, text=True,
                              timeout=harness.HANGS, **options)
        expect(not done.returncode, f"does not build: {name}: {done.stderr[-1000:]}")
        return self.path(name)

    def environment(self, **variables):
        return {**harness.passed_on(os.environ), **variables}

    def traced_environment(self, **variables):
        """Under the agent, unless programs run bare alone."""
        whole = self.environment()
        return {**(whole if self.settings.bare_only else harness.traced_environment(self.settings, whole, self.directory)), **variables}

    def execute(self, argv, status=0, said=b"", **variables):
        """Runs a program under the agent; fails unless it ends so and writes just this to stderr (None: anything)."""
        run = harness.execute(argv, self.directory.fresh(), self.traced_environment(**variables))
        expect(run.status == status and said in (None, run.stderr), f"{harness.describe(run.status)}: {run.stdout[-300:]} {run.stderr[-500:]}")
        return run

    @contextlib.contextmanager
    def waiting(self, program, ready=b"waiting\n", rest=b"went on 300\n", **variables):
        """A program that says when it is ready, goes on when it has read a byte, says the rest and ends."""
        running = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.made,
                                   env=self.traced_environment(**variables), preexec_fn=harness.attachable)
        try:
            expect(running.stdout.readline() == ready, "the program did not start")
            yield running
            out, err = running.communicate(b"x", timeout=harness.HANGS)
            expect((running.returncode, out, err) == (0, rest, b""), f"afterwards: {harness.describe(running.returncode)}, {out!r}, {err!r}")
        finally:
            if running.poll() is None:
                running.kill()
                running.wait()

    def tool(self, *words, status=0, **options):
        """Runs the tool; fails when it ends otherwise (None: anyhow)."""
        settings = dict(cwd=self.made, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.HANGS)
        done = subprocess.run([self.settings.tool, *words], **{**settings, **options})
        expect(status in (None, done.returncode), f"tracer {' '.join(words)}: {harness.describe(done.returncode)}: {done.stderr[-500:]}")
        return done

    def json(self, *words, **options):
        return json.loads(self.tool(*words, "--json", **options).stdout)

    def forget_traces(self):
        shutil.rmtree(self.traces)
        os.mkdir(self.traces)
        os.chmod(self.traces, 0o1777)

    def checked_traces(self, **options):
        traces, faults = harness.check_traces(self.settings, self.directory, **options)
        expect(not faults, "\n".join(faults))
        return traces

    def checked_trace(self):
        traces = self.checked_traces()
        expect(len(traces) == 1, f"{len(traces)} traces: {[trace.path for trace in traces]}")
        return traces[0]


def tests_of(module, kind=Test):
    """A test for each function of a suite whose one parameter is `test`. `module`: the suite's __name__."""
    suite = module.removeprefix("end_to_end_")  # conftest.py's name of it
    return [kind(f"{suite}.{name}", check) for name, check in vars(sys.modules[module]).items()
            if inspect.isfunction(check) and check.__module__ == module and list(inspect.signature(check).parameters) == ["test"]]
