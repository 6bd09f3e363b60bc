"""The subjects of the end-to-end tests, compiled in the root by its own compiler and run there, bare and traced.

The end-to-end tests themselves run in the root with its pytest, without the tool (which is made for newer systems): each trace is
checked by the independent decoder and against its golden file, not against `tracer report`. What needs clang, Swift, gdb or a linker
that is not there is skipped by them.
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
    packages: list = field(default_factory=lambda: ["python3", "gcc", "g++", "libc6-dev", "binutils", "libjemalloc2", "libtcmalloc-minimal4", "libunwind8", "python3-pytest"])
    quick: bool = False
    timeout: float = 3600

    def packages_in(self, suite):
        return self.packages

    def run(self, root, settings):
        with settings.scratch(root.name, self.name) as scratch:
            where = roots.scratch_folder(scratch, "traced")
            project = os.path.join(where, "project")
            for folder in ("Tests/EndToEnd", "CSupport/include", "Sources/Program/CTracerAPI"):
                shutil.copytree(os.path.join(build.ROOT, folder), os.path.join(project, folder), ignore=shutil.ignore_patterns("__pycache__"))
            for file in ("pytest.ini", "Tests/conftest.py", "Tests/once.py", "Tests/swift_tests.py"):
                shutil.copy(os.path.join(build.ROOT, file), os.path.join(project, file))
            shutil.copy(settings.agent, os.path.join(where, "agent", "libtracer.so"))
            # The path comes first: by it an older pytest finds who declares the options.
            command = ["python3", "-m", "pytest", "/tmp/project/Tests/EndToEnd/subjects", "-q", "-m", "slots", "-k", settings.subjects,
                       "--agent=/tmp/agent/libtracer.so", "--tool="]
            try:
                ended = roots.enter(root, where, command, timeout=self.timeout)
            except roots.Failed as failure:
                return comparison.Result(root.name, self.name, "BROKEN", str(failure))
        said = ended.stdout.decode(errors="replace")
        counted = COUNTS.search(said)
        if not counted or not int(counted[1]):
            return comparison.Result(root.name, self.name, "BROKEN", f"pytest ended with status {ended.status}\n{(said + ended.stderr.decode(errors='replace'))[-1500:]}")
        failures = said[said.find("= FAILURES ="):][-6000:] if int(counted[2]) else ""
        return comparison.Result(root.name, self.name, "DIFFERENT" if failures else "same", failures, calls=0, note=f"{counted[1]} passed, {counted[2]} failed, {counted[3]} skipped")
