"""Reads the traces of one run with `tracer report --json`: whether each is valid, and how many calls it has."""
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field

NAME = re.compile(r"(.*)\.\d+(?:\.\d+)?\.trace$")


@dataclass
class Recording:
    files: int = 0
    calls: int = 0
    by_program: Counter = field(default_factory=Counter)
    patched: Counter = field(default_factory=Counter)  # program → most functions that one of its processes recorded by entry patches
    faults: list = field(default_factory=list)


def remove(path):
    """A process that was attached to and has children leaves a folder of traces."""
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def read(folder, tool, has_functions=False):
    """All traces of a folder, added up; they are deleted as they are read."""
    recording = Recording()
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        recording.files += 1
        done = subprocess.run([tool, "report", path, "--json"], capture_output=True, text=True, timeout=600)
        patched = recorded_functions(path, tool) if has_functions else 0
        remove(path)
        said = "".join(line for line in done.stderr.splitlines(True) if "not their calls (--mode counts)" not in line).strip()
        if done.returncode or said:
            # A process that was killed leaves a trace that is whole as far as it goes; anything said on stderr is damage.
            recording.faults.append(f"{name}: report says (status {done.returncode}): {said[:300]}")
            if done.returncode:
                continue
        try:
            shown = json.loads(done.stdout)
        except ValueError as error:
            recording.faults.append(f"{name}: report --json is not JSON: {error}")
            continue
        calls = sum(function["calls"] for function in shown["functions"])
        recording.calls += calls
        # Counts under the name it was started with and under its file's name: redis-server is a link to redis-check-rdb.
        for program in {os.path.basename(shown["program"]), NAME.sub(r"\1", name)}:
            recording.by_program[program] += calls
            recording.patched[program] = max(recording.patched[program], patched)
    return recording


def recorded_functions(path, tool):
    done = subprocess.run([tool, "info", path, "--json"], capture_output=True, text=True, timeout=600)
    flags = json.loads(done.stdout)["flags"] if done.returncode == 0 else []
    return next((int(found[1].replace(",", "")) for flag in flags if (found := re.match(r"([\d,]+) of [\d,]+ functions recorded", flag))), 0)
