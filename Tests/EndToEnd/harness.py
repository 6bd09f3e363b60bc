"""Runs a program bare and traced, and compares. What the tests of subjects, of real programs and of bad input share."""
import atexit
import ctypes
import difflib
import functools
import json
import os
import platform
import re
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

import impossible
import tracefile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GIGABYTE = 1 << 30
HANGS = 120  # seconds after which a program that takes one or two is taken to hang, on a machine that is slow or busy, too
CACHES = tempfile.mkdtemp(prefix="tracer-caches-")  # XDG_CACHE_HOME: what the agent remembers between starts is not put into the user's own
tracefile.PLANS = os.path.join(CACHES, "tracer/plans")
EMULATOR = []  # what runs a program for another architecture


def remove_caches(maker=os.getpid()):
    if os.getpid() == maker:
        shutil.rmtree(CACHES, ignore_errors=True)


atexit.register(remove_caches)


@dataclass
class Settings:
    agent: str = os.path.join(ROOT, ".build/release/libtracer.so")
    tool: str = os.path.join(ROOT, ".build/release/tracer")
    bare_only: bool = False
    keep: bool = False
    functions: bool = False  # every function of every module is recorded
    moments: int = 0  # at which durability.kill_9 kills, both together; 0: a few
    instrumented: bool = False  # subjects are built with -finstrument-functions
    counts: bool = False  # only which of these functions were called is recorded
    call_sites: bool = False  # calls are recorded with their call sites
    attaches: int = 0  # how often tests of attached and attach_storm attach; 0: 40 and 6 times


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


@dataclass
class Run:
    status: int  # negative: the signal
    stdout: bytes
    stderr: bytes
    counts: dict
    traces: str = ""


def passed_on(environment):
    """Returns what a program may see of our own environment: nothing that steers a loader, a sanitizer or the tracer."""
    keep = {k: v for k, v in environment.items()
            if not k.startswith(("LD_", "TRACER_", "GLIBC_", "ASAN_", "TSAN_", "UBSAN_", "PYTHON", "PYENV"))}
    keep.update(LC_ALL="C.UTF-8", TERM="dumb", TZ="UTC", XDG_CACHE_HOME=CACHES)
    keep["PATH"] = ":".join(p for p in keep.get("PATH", "").split(":") if "pyenv" not in p) or "/usr/bin:/bin"
    return keep


def execute(argv, where, environment, timeout=HANGS, memory=16 * GIGABYTE, stdin=b"", limits=()):
    """Runs in its own session; when time is up the whole of it is killed and the test fails."""
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 * GIGABYTE, 4 * GIGABYTE))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    argv = [*EMULATOR, *argv]
    counts_path = os.path.join(where, "counts")
    # Output goes to files: a daemon that outlives its parent must not hold a pipe that we wait on.
    with open(os.path.join(where, "stdout"), "w+b") as out, open(os.path.join(where, "stderr"), "w+b") as err:
        child = subprocess.Popen(argv, cwd=os.path.join(where, "cwd"), env={**environment, "SUBJECT_COUNTS": counts_path},
                                 stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=out, stderr=err,
                                 start_new_session=True, preexec_fn=prepare)
        try:
            child.communicate(stdin or None, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            err.seek(0)
            raise Failed(f"still running after {timeout} s: {' '.join(argv[:3])}\n{err.read()[-500:].decode(errors='replace')}")
        out.seek(0), err.seek(0)
        stdout, stderr = out.read(), err.read()
    counts = {}
    if os.path.exists(counts_path):
        with open(counts_path) as file:
            for line in file:
                name, low, *high = line.split()
                was = counts.get(name, (0, 0))
                counts[name] = (was[0] + int(low), was[1] + int(high[0] if high else low))
    return Run(child.returncode, stdout, stderr, counts)


class Directory:
    """A folder for one test: fresh `cwd` for each run under the same path, so that printed paths are equal."""

    def __init__(self, name, keep):
        self.name, self.path = name, tempfile.mkdtemp(prefix=f"tracer-{name}-")
        self.traces = os.path.join(self.path, "traces")
        os.mkdir(self.traces)
        os.chmod(self.path, 0o777), os.chmod(self.traces, 0o1777)
        self.keep = keep

    def fresh(self):
        for name in ("cwd", "stdout", "stderr", "counts"):
            path = os.path.join(self.path, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
        os.mkdir(os.path.join(self.path, "cwd"))
        os.chmod(os.path.join(self.path, "cwd"), 0o777)
        return self.path

    def done(self):
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)


def traced_environment(settings, environment, directory, preload="@"):
    libraries = " ".join(settings.agent if p == "@" else p for p in preload.split())
    if not EMULATOR and not has_counter():
        environment = {"TRACER_CLOCK": "monotonic", **environment}  # what the agent does there; some subjects ask for it
    if settings.functions:
        environment = {**environment, "TRACER_FUNCTIONS": "*!*", **({"TRACER_MODE": "counts"} if settings.counts else {})}
        more = os.path.join(os.path.dirname(settings.agent), "libtracer-labels.so")  # as `tracer record --functions` does
        if not settings.counts and os.path.exists(more):
            libraries += " " + more
    if settings.call_sites:
        environment = {"TRACER_CALLSITES": "1", **environment}
    return {**environment, "LD_PRELOAD": libraries, "TRACER_OUT": os.path.join(directory.traces, "%e.%p.trace")}


def plan(settings, program, folder):
    """Plans of a program, of what lies beside it and of what both are linked with."""
    modules = {os.path.realpath(program)}
    for path in (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    modules.add(os.path.realpath(path))
    for path in list(modules):
        done = subprocess.run(["ldd", path], capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": folder})
        modules |= {os.path.realpath(word) for word in done.stdout.split() if word.startswith("/") and os.path.exists(word)}
    if len(PLANNED) > 200:  # the oldest plans go from the cache
        PLANNED.clear()
    for path in sorted(modules):
        if path not in PLANNED:
            done = subprocess.run([settings.tool, "plan", path], capture_output=True, text=True, env=passed_on(os.environ))
            if done.returncode:
                raise Failed(f"no plan of {path}: {done.stderr[-300:]}")
            PLANNED.add(path)


PLANNED = set()  # modules that this process has made plans of


@functools.cache
def has_counter():
    """Returns True if the agent's clock is the CPU's cycle counter."""
    return platform.machine() != "x86_64" or "nonstop_tsc" in cpu_flags()


def attachable():
    """In a child before exec: whoever runs as we do may attach to it, also where Yama lets only parents (ptrace_scope 1)."""
    ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & (1 << 64) - 1), 0, 0, 0)  # PR_SET_PTRACER, any; without Yama it fails


def attaching_is_forbidden():
    """Why nobody here may attach a debugger to a program, or None."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            scope = int(file.read())
    except OSError:
        return None
    if scope == 3 or scope == 2 and os.geteuid() != 0:
        return f"this kernel lets nobody attach to a program (ptrace_scope {scope})"
    return None


def describe(status):
    return f"signal {-status}" if status < 0 else f"status {status}"


def difference(name, bare, traced):
    lines = difflib.unified_diff(bare.decode(errors="replace").splitlines(), traced.decode(errors="replace").splitlines(),
                                 f"{name} bare", f"{name} traced", lineterm="", n=1)
    return "\n".join(list(lines)[:24])


def same(bare, traced, normalise=lambda data: data):
    """Faults, each a text."""
    faults = []
    if bare.status != traced.status:
        faults.append(f"ended with {describe(traced.status)}, bare with {describe(bare.status)}")
    for stream in ("stdout", "stderr"):
        one, other = normalise(getattr(bare, stream)), normalise(getattr(traced, stream))
        if one != other:
            faults.append(difference(stream, one, other) or f"{stream} differs")
    return faults


def without_agents_lines(run, most):
    """Removes the agent's lines from the run's stderr, at most `most`, which say why it stopped recording. Returns True if there were any."""
    lines = run.stderr.splitlines(keepends=True)
    said = [line for line in lines if line.startswith(b"tracer: ")]
    if len(said) > most:
        raise Failed(f"{len(said)} lines of the agent on stderr, at most {most} expected: {said[:3]}")
    run.stderr = b"".join(line for line in lines if not line.startswith(b"tracer: "))
    return bool(said)


def wait_for_the_last(directory, longest=20):
    """Waits for processes that outlive the program (a sanitizer's llvm-symbolizer does): their files would grow between two readers."""
    end = time.monotonic() + longest
    for name in os.listdir(directory.traces):
        for pid in re.findall(r"\.(\d+)(?=\.)", name):  # some name has another number, that of the exec
            try:
                process = os.pidfd_open(int(pid))
            except OSError:  # it has ended
                continue
            if has_mapped(pid, os.path.join(directory.traces, name)):
                select.select([process], [], [], max(end - time.monotonic(), 0))  # readable when it ends (pidfd_open(2))
            os.close(process)


def has_mapped(pid, path):
    try:
        with open(f"/proc/{pid}/maps") as file:
            return any(line.rstrip("\n").endswith(path) for line in file)
    except OSError:
        return False


def check_traces(settings, directory, own=lambda path: False, walk=True, drops=False, disorder=False):
    """(traces, faults): each file is decoded, has no anomaly, and the Swift reader counts the same and does not contradict itself."""
    wait_for_the_last(directory)
    try:
        traces = tracefile.read_all(directory.traces, own, walk)
    except tracefile.Damaged as damage:
        return [], [f"not a trace: {damage}"]
    faults = []
    for trace in traces:
        name = os.path.basename(trace.path)
        other_processes = trace.begun & {other.header["pid"] for other in traces} - {trace.header["pid"]}
        if other_processes:
            faults.append(f"{name}: has threads of other processes: {sorted(other_processes)}")
        if trace.anomalies and not disorder:
            faults.append(f"{name}: {len(trace.anomalies)} anomalies: " + "; ".join(trace.anomalies[:4]))
        if (trace.header["stopped_ticks"] >= trace.header["first_ticks"]) != (trace.header["state"] == tracefile.STOPPED):
            faults.append(f"{name}: {tracefile.STATE_NAMES[trace.header['state']]}, stopped at {trace.header['stopped_ticks']}")
        if trace.dropped and not drops:
            faults.append(f"{name}: {trace.dropped} calls dropped")
        if walk:
            faults += cross_check(settings, trace, directory.name)
    return traces, faults


def report(settings, path):
    """The tool's own account of a trace, or a Failed."""
    # With the plans by which its functions were patched: they have their names.
    done = subprocess.run([settings.tool, "report", path, "--json"], capture_output=True, timeout=120,
                          env={**os.environ, "XDG_CACHE_HOME": CACHES})
    if done.returncode:
        raise Failed(f"tracer report: {describe(done.returncode)}: {done.stderr.decode(errors='replace').strip()}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise Failed(f"tracer report --json is not JSON: {error}")


def cross_check(settings, trace, test=""):
    """Faults of what the tool says of a trace. `test`: whose contradictions may be known."""
    if not os.path.exists(settings.tool):
        return []
    try:
        shown = report(settings, trace.path)
    except Failed as failure:
        return [str(failure)]
    counted = {}
    for function in shown["functions"]:
        module = function.get("module")
        key = (function["symbol"], os.path.basename(module) if module and module != "?" else None)  # "?": a name that the program gave
        counted[key] = counted.get(key, 0) + function["calls"]
    ours = {(name.encode(errors="surrogateescape").decode(errors="replace"), module): count
            for (name, module), count in trace.counts_by_name_and_module().items()}
    wrong = [f"{name} in {module}: report {counted.get((name, module), 0)}, decoder {ours.get((name, module), 0)}"
             for name, module in sorted(set(ours) | set(counted), key=str)
             if counted.get((name, module), 0) != ours.get((name, module), 0)]
    faults = [f"tracer report disagrees with the independent decoder in {len(wrong)} functions: " + "; ".join(wrong[:4])] if wrong else []
    return faults + contradictions(settings, trace, shown, test)


def contradictions(settings, trace, shown, test):
    """Faults: what the readers say that cannot be, but for what is known of this test. `shown`: what one of them has said already."""
    try:
        figures = impossible.read(settings.tool, trace.path, {**os.environ, "XDG_CACHE_HOME": CACHES}, shown, trace.header["mode"] != impossible.COUNTS,
                                  trace.interleaves)
    except impossible.Unreadable as reason:
        return [str(reason)]
    known = impossible.known(test)
    found = [f"{rule}: {text}" for rule, text in impossible.contradictions(figures) if rule not in known]
    return [f"{os.path.basename(trace.path)} contradicts itself {len(found)} times: " + "; ".join(found[:4])] if found else []


def emulate(architecture, cpu, root):
    """From here on programs are for another architecture, and `root` has its loader and libraries. The emulator must be a
    static one: it lives in the environment that the program will have, LD_PRELOAD included."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    newer = os.path.join(cache, "tracer/qemu", f"qemu-{architecture}")  # scripts/setup: where the system's is too old
    # Its addresses are the program's alone, as without an emulator: else what the emulator maps for itself lies between the program's
    # modules and near them, more of it on a busy machine, so that they are out of reach of each other and no address space is left beside
    # them.
    own_addresses = hex(8 * GIGABYTE)
    EMULATOR[:] = [os.environ.get("QEMU") or (newer if os.access(newer, os.X_OK) else f"qemu-{architecture}-static"),
                   "-cpu", cpu, "-R", own_addresses, "-L", root]


WIPES = """#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char *page = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status = madvise(page, 65536, 18 /* MADV_WIPEONFORK */);
    *page = 1;
    if (!fork()) _exit(*page);
    wait(&status);
    return WEXITSTATUS(status);
}
"""


def emulator_wipes():
    return emulated(WIPES, tuple(EMULATOR)).returncode == 0


@functools.cache
def emulated(source, emulator):
    """One run of a program under an emulator, with its output."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program")
        subprocess.run(["aarch64-linux-gnu-gcc", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
        return subprocess.run([*emulator, program], capture_output=True, text=True)


def cpu_flags():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.split(":", 1)[1].split())
    return set()
