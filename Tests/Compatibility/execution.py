"""Runs a program's script once, bare or traced, and leaves no process behind."""
import contextlib
import glob
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "EndToEnd"))
import attaching

MOST_DISK = 3 << 30  # bytes of traces: the run is ended when there are more
SESSION = "COMPAT_SESSION"


@dataclass
class Outcome:
    status: int
    stdout: str
    stderr: str
    files: dict
    wall: float  # seconds
    cpu: float  # seconds of it and of the children it waited for
    fault: str = ""
    attaches: int = 0
    said: list = field(default_factory=list)  # how often it was attached to, and why not


def environment(cache, home):
    """Returns what a program may see of our environment: nothing that steers a loader, a sanitizer, Python or the tracer."""
    keep = {k: v for k, v in os.environ.items()
            if not k.startswith(("LD_", "TRACER_", "GLIBC_", "ASAN_", "TSAN_", "UBSAN_", "PYTHON", "PYENV", "XDG_", "DISPLAY", "WAYLAND",
                                 "DBUS_", "TMUX", "GIT_", "MAKE", "MFLAGS", "JAVA_TOOL", "NODE_", "SSH_"))}
    path = [p for p in keep.get("PATH", "").split(":") if p and "pyenv" not in p]
    for folder in ("/usr/sbin", "/sbin", "/usr/games", *sorted(glob.glob("/usr/lib/postgresql/*/bin"))):
        if folder not in path:
            path.append(folder)
    # rustc and cargo of rustup are found by these; HOME is the test's own folder.
    owner = os.path.expanduser("~")
    for variable, folder in (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")):
        if variable not in keep and os.path.isdir(os.path.join(owner, folder)):
            keep[variable] = os.path.join(owner, folder)
    keep.update(PATH=":".join(path), LC_ALL="C.UTF-8", LANG="C.UTF-8", TERM="xterm", TZ="UTC", HOME=home, TMPDIR=os.path.join(home, "tmp"),
                XDG_RUNTIME_DIR=os.path.join(home, "runtime"), PYTHON=os.path.join(cache, "python/bin/python3"), PYTHONDONTWRITEBYTECODE="1",
                SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED="0")
    return keep


def survivors(mark):
    """Processes of a run that are still there, whatever session they made for themselves."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if f"{SESSION}={mark}".encode() in file.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


def end(mark, group):
    """Asks, then kills. A server that was left running is a fault of the script, but must not disturb the next run."""
    left = survivors(mark)
    for how in (signal.SIGTERM, signal.SIGKILL):
        for pid in survivors(mark):
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass
        limit = time.monotonic() + 5
        while survivors(mark) and time.monotonic() < limit:
            time.sleep(0.02)
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    return left


def folder_bytes(path):
    total = 0
    for entry in os.scandir(path):
        try:
            total += entry.stat().st_blocks * 512
        except OSError:
            pass
    return total


def digests(where, globs):
    files = {}
    for pattern in globs:
        matches = sorted(p for p in glob.glob(os.path.join(where, pattern), recursive=True) if os.path.isfile(p))
        if not matches:
            files[pattern] = "nothing"
        for path in matches:
            with open(path, "rb") as file:
                files[os.path.relpath(path, where)] = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") \
                    else hashlib.sha256(file.read()).hexdigest()
    return files


def execute(script, where, settings, timeout, traces=None, limit="", outputs=()):
    """`where` holds cwd/. With `traces` the script and all that it starts run under the agent."""
    mark = uuid.uuid4().hex
    home = os.path.join(where, "cwd")
    for folder in ("tmp", "runtime"):
        os.makedirs(os.path.join(home, folder), mode=0o700, exist_ok=True)
    os.chmod(home, 0o755)  # servers that drop their privileges read in it
    variables = {**environment(settings.cache, home), SESSION: mark}
    if traces and not settings.attached:
        variables.update(LD_PRELOAD=settings.agent, TRACER_OUT=os.path.join(traces, "%e.%p.trace"))
        if settings.functions:
            more = os.path.join(os.path.dirname(settings.agent), "libtracer-labels.so")  # as `tracer record --functions` does
            variables.update(TRACER_FUNCTIONS="*!*", LD_PRELOAD=f"{settings.agent} {more}" if os.path.exists(more) else settings.agent)
        if settings.arguments:
            variables.update(TRACER_ARGUMENTS=settings.arguments)
        if settings.counts:
            variables.update(TRACER_MODE="counts")
        elif limit or settings.functions:
            variables.update(TRACER_MODE="ring", TRACER_MAXSIZE=limit or "64M")
    fault = ""
    with open(os.path.join(where, "stdout"), "w+b") as out, open(os.path.join(where, "stderr"), "w+b") as err:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        # The file, not `bash -c`: the script's text would be in every process list that a program prints.
        with open(os.path.join(where, "script"), "w") as file:
            file.write("set -e\n" + script)
        child = subprocess.Popen(["bash", os.path.join(where, "script")], cwd=home, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 start_new_session=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        finished = threading.Event()
        overrun = []

        def watch():
            while not finished.wait(0.5):
                if folder_bytes(traces) > MOST_DISK:
                    overrun.append(True)
                    os.killpg(child.pid, signal.SIGKILL)
                    return
        if traces:
            threading.Thread(target=watch, daemon=True).start()
        attached = attaching.Attaching(settings.tool, lambda: survivors(mark), traces, ["--functions", "*"] if settings.functions else []) \
            if traces and settings.attached else None
        with attached or contextlib.nullcontext():
            try:
                child.wait(timeout=timeout)
            except subprocess.TimeoutExpired:
                fault = f"still running after {timeout:.0f} s"
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        wall = time.monotonic() - began
        finished.set()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if overrun:
            fault = f"more than {MOST_DISK >> 30} GB of traces"
        end(mark, child.pid)
        out.seek(0), err.seek(0)
        text = [stream.read().decode(errors="backslashreplace") for stream in (out, err)]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The folder's name is a fresh one in each run of this script.
    text = [t.replace(where, "FOLDER") for t in text]
    outcome = Outcome(child.returncode, text[0], text[1], digests(home, outputs), wall, cpu, fault)
    if attached:
        outcome.fault, outcome.attaches, outcome.said = fault or attached.fault, attached.count, attached.said
    return outcome


def fresh(where, template):
    """cwd/ as `prepare` left it: the same path in all runs of a program, so that printed paths are equal."""
    home = os.path.join(where, "cwd")
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run(["cp", "-a", "--reflink=auto", template, home], check=True)
