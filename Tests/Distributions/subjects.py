"""The subjects of the end-to-end tests, compiled in the root by its own compiler and run there, bare and traced.

Tests/EndToEnd/run.py itself runs in the root, without the tool (which needs Swift's libraries): each trace is checked
by the independent decoder and against its golden file, not against `tracer report`. What needs clang, Swift, gdb or a
linker that is not there is skipped by run.py.
"""
import os
import re
import shutil
from dataclasses import dataclass, field

import build
import comparison
import roots

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)


@dataclass
class Subjects:
    name: str = "subjects"
    packages: list = field(default_factory=lambda: ["python3", "gcc", "g++", "libc6-dev", "binutils", "libjemalloc2", "libtcmalloc-minimal4"])
    quick: bool = False
    timeout: float = 3600

    def packages_in(self, suite):
        return self.packages

    def run(self, root, settings):
        with settings.scratch(root.name, self.name) as scratch:
            where = roots.place(scratch, "traced")
            project = os.path.join(where, "project")
            for folder in ("Tests/EndToEnd", "CSupport/include", "Sources/CTracerAPI"):
                shutil.copytree(os.path.join(build.ROOT, folder), os.path.join(project, folder), ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(settings.agent, os.path.join(where, "agent", "libtracer.so"))
            command = ["python3", "/tmp/project/Tests/EndToEnd/run.py", "--only", "subjects", "--jobs", "1", "--filter", settings.subjects,
                       "--agent", "/tmp/agent/libtracer.so", "--tool", ""]
            try:
                ended = roots.enter(root, where, command, timeout=self.timeout)
            except roots.Failed as failure:
                return comparison.Result(root.name, self.name, "BROKEN", str(failure))
        said = ended.stdout.decode(errors="replace")
        counted = COUNTS.search(said)
        if not counted or not int(counted[1]):
            return comparison.Result(root.name, self.name, "BROKEN", f"run.py ended with status {ended.status}\n{(said + ended.stderr.decode(errors='replace'))[-1500:]}")
        failures = re.findall(r"^FAIL .*(?:\n {7}.*)*", said, re.M)
        return comparison.Result(root.name, self.name, "DIFFERENT" if failures else "same", "\n".join(failures),
                               calls=0, note=f"{counted[1]} passed, {counted[2]} failed, {counted[3]} skipped")
