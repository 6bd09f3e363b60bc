"""Runs a test once, bare or traced, in a session and a folder of its own, and leaves no process behind."""
import difflib
import json
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import zlib
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(ROOT, "Tests", folder) for folder in ("Compatibility", "EndToEnd")]
import execution
import normal
import plans

# A user without rights, who has a name. The agent believes no plan of nobody's (65534): in a namespace everybody may be that user.
UNPRIVILEGED = next((user.pw_uid for user in pwd.getpwall() if user.pw_name == "daemon"), 65533)
MOST_DISK = 4 << 30  # bytes of traces of one run
MOST_LEARNING = 3  # times that a run is made again for modules that it loads only with the plans of others
# A ring: no test is longer for what it has recorded, and no disk fuller.
RECORDING = {"TRACER_MODE": "ring", "TRACER_MAXSIZE": "8M"}


def add_options(parser, name, document):
    """Options of each command that runs what others wrote: the agent, where things lie, what is shown and kept."""
    release = os.path.join(ROOT, ".build/release")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for option, standard, kind, what in (("--agent", os.path.join(release, "libtracer.so"), "FILE", "the agent"),
                                         ("--tool", os.path.join(release, "tracer"), "FILE", "what makes plans"),
                                         ("--results", os.path.join(ROOT, f".build/{name}.json"), "FILE", "every outcome as JSON"),
                                         ("--cache", os.path.join(cache, "tracer/external"), "DIRECTORY", "where suites are unpacked and built"),
                                         ("--scratch", "/tmp", "DIRECTORY", "where tests run and traces are written")):
        parser.add_argument(option, default=standard, metavar=kind, help=what + " (default: %(default)s)")
    parser.add_argument("--markdown", metavar="FILE", help=f"the tables for {document}; default: they end what is printed")
    parser.add_argument("--verbose", action="store_true", help="a line for every test, not only for those that are not the same")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the last test")


@dataclass
class Run:
    outcomes: dict  # name → outcome, for the test and its cases
    stdout: str
    stderr: str
    seconds: float

    @property
    def said(self):
        return normal.agent_lines(self.stderr)

    @property
    def end(self):
        """The beginning and the end of stderr: some tests print first what is wrong and then where, some the other way round."""
        lines = [line[:300] for line in self.stderr.splitlines()]
        return "\n".join(lines if len(lines) <= 12 else [*lines[:5], "…", *lines[-6:]])

    def detail(self, bare):
        """Returns the differences of stdout from a bare run's, and the end of stderr."""
        lines = [line for line in difflib.unified_diff(bare.stdout.splitlines(), self.stdout.splitlines(), "bare", "traced", lineterm="", n=0)]
        return "\n".join([line[:300] for line in lines[:12]] + [self.end])


class Runner:
    """A scratch folder with copies of the agent and the tool that anybody may read, and that no build changes meanwhile."""

    def __init__(self, agent, cache, scratch, keep=False, tool=None):
        """With a tool every function is recorded, too: of all modules that tests load."""
        self.cache, self.keep = cache, keep
        self.folder = tempfile.mkdtemp(prefix="external-", dir=scratch)
        os.chmod(self.folder, 0o755)
        self.preloaded = self.copy(agent, "libtracer.so")
        labels = os.path.join(os.path.dirname(agent), "libtracer-labels.so")
        if tool and os.path.exists(labels):  # as `tracer record --functions` has it
            self.preloaded += ":" + self.copy(labels, "libtracer-labels.so")
        self.traces = os.path.join(self.folder, "traces")
        self.plans = plans.Plans(self.copy(tool, "tracer"), os.path.join(self.folder, "plans")) if tool else None

    def copy(self, file, name):
        path = os.path.join(self.folder, name)
        shutil.copy(file, path)
        os.chmod(path, 0o755)
        return path

    def close(self):
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self):
        """An empty folder under the same path each time: paths that are printed are equal."""
        home = os.path.join(self.folder, "cwd")
        for path in (home, self.traces):
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path)
            os.chmod(path, 0o1777)
        return home

    def execute(self, test, command, traced, first):
        """A traced run that records every function is made again until there are plans of all modules that it loads."""
        user = UNPRIVILEGED if test.unprivileged and os.geteuid() == 0 else os.geteuid()
        run = self.once(test, command, traced, first, user)
        for _ in range(MOST_LEARNING if traced and self.plans else 0):
            if not self.plans.learn(self.traces, user):
                break
            run = self.once(test, command, traced, first, user)
        return run

    def once(self, test, command, traced, first, user):
        home = self.fresh()
        mark, cases = uuid.uuid4().hex, os.path.join(home, "cases.jsonl")
        tmp = os.path.join(home, "tmp")
        os.mkdir(tmp)
        os.chmod(tmp, 0o1777)
        fill = {"{tmp}": tmp, "{cases}": cases}
        variables = {**execution.environment(self.cache, home), **{k: filled(v, fill) for k, v in test.environment.items()}, execution.SESSION: mark}
        if self.plans:
            variables["XDG_CACHE_HOME"] = self.plans.cache(user)
        if traced:
            variables.update(RECORDING, **({"TRACER_FUNCTIONS": "*!*"} if self.plans else {}), LD_PRELOAD=self.preloaded, TRACER_OUT=os.path.join(self.traces, "%e.%p.trace"))
        # As long as may be on a machine with other things to do; a test that does not end traced would take all of it each time.
        limit = test.timeout if first is None else max(30, test.timeout, min(4 * test.timeout, 15 * first.seconds))
        identity = dict(user=user, group=user, extra_groups=[]) if user != os.geteuid() else {}

        # A signal that came while Popen runs would leave its child running: it waits until the child is known.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))

        def prepare():
            # A test run that was started in the background, or by nohup, ignores some of these.
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for which, value in ((resource.RLIMIT_CORE, 0), *test.limits):
                hard = resource.getrlimit(which)[1]
                resource.setrlimit(which, (value, hard))

        with open(os.path.join(self.folder, "stdout"), "w+b") as out, open(os.path.join(self.folder, "stderr"), "w+b") as err:
            began = time.monotonic()
            child = ended = None
            try:
                child = subprocess.Popen([filled(word, fill) for word in command], cwd=filled(test.where, fill) or tmp, env=variables,
                                         stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, preexec_fn=prepare, **identity)
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                ended = self.wait(child, began + limit)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                if child and child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
                if child:
                    execution.end(mark, child.pid)
            seconds = time.monotonic() - began
            out.seek(0), err.seek(0)
            stdout, stderr = (stream.read(4 << 20).decode(errors="backslashreplace").replace(self.folder, "FOLDER") for stream in (out, err))
        outcome = ended or described(child.returncode)
        if test.output and not ended:
            outcome += f", output {abbreviated(stdout)}"
        outcomes = {test.name: outcome}
        if test.cases:
            outcomes.update({f"{test.name}: {name}": value for name, value in read_cases(cases).items()})
        return Run(outcomes, stdout, stderr, seconds)

    def wait(self, child, deadline):
        """None when the child has ended by itself, else why it was ended."""
        pause = 0.002
        while child.poll() is None:
            if time.monotonic() > deadline:
                return "does not end"
            if pause == 0.5 and execution.folder_bytes(self.traces) > MOST_DISK:
                return f"more than {MOST_DISK >> 30} GB of traces"
            time.sleep(pause)
            pause = min(0.5, pause * 1.5)
        return None


def filled(text, fill):
    for name, value in fill.items():
        text = text.replace(name, value)
    return text


def abbreviated(text):
    text = normal.AGENT.sub("", text).strip()
    last = text.splitlines()[-1][:40] if text else ""
    return f"of {len(text)} characters (CRC {zlib.crc32(text.encode()):08x}): …{last}" if len(text) > 60 else repr(text)


def described(status):
    if status >= 0:
        return f"status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def read_cases(path):
    """{case: outcome}; the last line of each counts, and one that only started has not ended."""
    outcomes = {}
    try:
        with open(path) as file:
            for line in file:
                if line.endswith("\n"):
                    name, outcome = json.loads(line)
                    outcomes[name] = outcome
    except OSError:
        pass
    return outcomes


def first_match(pattern, text):
    found = re.search(pattern, text, re.M)
    return found[0].strip() if found else ""
