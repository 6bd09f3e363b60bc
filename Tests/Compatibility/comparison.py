"""Runs one program bare and traced in turn and says what was not the same."""
import datetime
import difflib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import execution
import normal
import traces

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "EndToEnd"))
import tracefile


@dataclass
class Result:
    name: str
    family: str
    version: str = ""
    skipped: str = ""
    broken: str = ""  # the bare run fails or differs from itself: nothing can be said
    faults: list = field(default_factory=list)
    same_output: bool = True
    same_status: bool = True
    recording: traces.Recording = None
    ring: bool = False
    wall: tuple = ()  # medians, seconds: bare, traced
    cpu: tuple = ()
    said: list = field(default_factory=list)  # the agent's lines on stderr
    attached: list = field(default_factory=list)  # how often, and why not; a line each
    known: str = ""
    date: str = ""
    agent: str = ""  # its commit

    @property
    def passed(self):
        return not (self.skipped or self.broken or self.faults)


def differences(program, bare, traced):
    faults = []
    for stream in ("stdout", "stderr"):
        if stream in program.compare:
            one, other = program.clean(getattr(bare, stream)), program.clean(getattr(traced, stream))
            if one != other:
                lines = difflib.unified_diff(one.splitlines(), other.splitlines(), stream + " bare", stream + " traced", lineterm="", n=1)
                faults.append("\n".join(line[:300] for line in list(lines)[:30]))
    if bare.files != traced.files:
        faults.append("files differ: " + ", ".join(sorted(n for n in set(bare.files) | set(traced.files) if bare.files.get(n) != traced.files.get(n))))
    return faults


def version(program, settings):
    if not program.version:
        return ""
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, "tmp"))
        done = subprocess.run(["bash", "-c", program.version], capture_output=True, text=True, env=execution.environment(settings.cache, home),
                              timeout=60, stdin=subprocess.DEVNULL)
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return lines[0][:60] if lines else ""


def prepared(program, settings, where):
    """The folder that each run gets a copy of; text of what went wrong."""
    template = os.path.join(where, "template")
    home = os.path.join(where, "cwd")
    os.mkdir(home)
    for name, text in program.files.items():
        path = os.path.join(home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    if program.prepare:
        # Made under the path that the runs will see, since compilers and databases write it down.
        outcome = execution.execute(program.prepare, where, settings, timeout=900)
        if outcome.fault or outcome.status:
            return None, f"prepare: status {outcome.status} {outcome.fault}\n{outcome.stdout[-500:]}{outcome.stderr[-1500:]}"
    os.rename(home, template)
    return template, ""


def compare(program, settings):
    result = Result(program.name, program.family, known=program.known, ring=bool(program.limit), date=datetime.date.today().isoformat(), agent=settings.commit)
    where = tempfile.mkdtemp(prefix="compat-", dir=settings.scratch)
    os.chmod(where, 0o755)
    folder = os.path.join(where, "traces")
    os.mkdir(folder)
    os.chmod(folder, 0o1777)  # for servers that are another user by then
    try:
        result.version = version(program, settings)
        template, wrong = prepared(program, settings, where)
        if wrong:
            result.broken = wrong
            return result
        rounds(program, settings, where, template, folder, result)
    finally:
        if settings.keep:
            print(f"  kept: {where}")
        else:
            shutil.rmtree(where, ignore_errors=True)
    return result


def plan(settings, template, folder, once):
    """Plans of all modules that a traced run has loaded, into the home folder that each further run begins with."""
    once(True)
    modules = set()
    for name in os.listdir(folder):
        try:
            modules |= {module.path for module in tracefile.Trace(os.path.join(folder, name)).modules.values()}
        except tracefile.Damaged:
            pass  # its process was killed as it began; reported for the runs that are judged
        os.unlink(os.path.join(folder, name))
    paths = sorted(path for path in modules if path.startswith("/") and os.path.isfile(path))
    for at in range(0, len(paths), 20):  # libraries whose plan cannot be made are none of the others' business
        for words in (paths[at:at + 20],) if made(settings, template, paths[at:at + 20]) else ([path] for path in paths[at:at + 20]):
            made(settings, template, words)


def made(settings, template, paths):
    home = {**execution.environment(settings.cache, template), "XDG_CACHE_HOME": os.path.join(template, ".cache")}
    return subprocess.run([settings.tool, "plan", *paths], capture_output=True, env=home, stdin=subprocess.DEVNULL, timeout=900).returncode == 0


def rounds(program, settings, where, template, folder, result):
    """Bare and traced in turn. A bare run that differs from the first says that the program differs from itself."""
    def once(traced):
        execution.fresh(where, template)
        return execution.execute(program.run, where, settings, program.timeout * (4 if traced else 1), folder if traced else None, program.limit, program.outputs)

    def bare():
        outcome = once(False)
        runs[False].append(outcome)
        if outcome.fault or outcome.status != program.status:
            result.broken = f"bare: status {outcome.status}, expected {program.status} {outcome.fault}\n{outcome.stdout[-800:]}{outcome.stderr[-1500:]}"
        elif unstable := differences(program, runs[False][0], outcome):
            result.broken = "two bare runs differ:\n" + "\n".join(unstable)
        return not result.broken

    runs = {False: [], True: []}
    if settings.functions and not settings.attached:
        plan(settings, template, folder, once)
    for _ in range(settings.runs or program.runs):
        if not bare():
            return
        runs[True].append(once(True))
        result.faults = judge(program, settings, folder, runs[False][0], runs[True][-1], result)
        if result.faults:
            if len(runs[False]) == 1 and not result.same_output:
                bare()  # not a difference between bare and traced when bare runs differ as well
            break
    for name in ("wall", "cpu"):
        setattr(result, name, tuple(statistics.median(getattr(o, name) for o in runs[traced]) for traced in (False, True)))


def judge(program, settings, folder, bare, traced, result):
    """Faults of one traced run. Traces are read once and are deleted in any case."""
    faults = [traced.fault] if traced.fault else []
    if traced.status != bare.status:
        result.same_status = False
        faults.append(f"status {traced.status}, bare {bare.status}")
    if different := differences(program, bare, traced):
        result.same_output = False
        faults += different
    result.attached += traced.said
    if settings.attached and not traced.attaches and not faults:
        result.skipped = "ended before it was attached to: " + "; ".join(traced.said[1:])
    for line in normal.agent_lines(traced.stderr):
        said = re.sub(r"\.\d+\.trace", ".PID.trace", line.replace("FOLDER/traces/", ""))
        if said not in result.said:
            result.said.append(said)
    if not result.recording:
        result.recording = traces.read(folder, settings.tool, settings.functions)
        faults += result.recording.faults[:5]
        by_program = result.recording.by_program
        if settings.functions and not settings.attached:
            faults += [f"{name} recorded none of its functions by itself" for name in program.recorded_by()
                       if not any(result.recording.patched[each] for each in name.split("|"))]
        faults += [] if settings.counts or settings.attached else [f"{name} recorded no call; recorded: {', '.join(sorted(by_program))}" for name in program.recorded_by()
                   if not any(by_program[each] for each in name.split("|"))]
    for name in os.listdir(folder):
        traces.remove(os.path.join(folder, name))
    return faults
