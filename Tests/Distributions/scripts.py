"""The programs: scripts in programs/, which run in any distribution as they are.

Lines at a script's top say what it needs and what must come of it:

    packages: NAME…             Debian's, in every suite
    packages SUITE…: NAME…      in these suites besides
    records: GLOB…              programs that must have recorded calls, by the names of their files
    needs: COMMAND…             what a root that was given by path must have (default: the script's name)
    status: N                   of the script (default 0; 77: the machine lacks what it needs, and the last line says what)
    version: COMMAND            whose first number with a dot is the version
    quick                       part of --quick
    timeout: SECONDS            default 120
"""
import os
import re
import shlex
import shutil
from dataclasses import dataclass, field

import attaching
import comparison
import roots

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
VERSION = re.compile(r"\d+(?:\.\d+)+\w*")
VALUES = {"records": str.split, "needs": str.split, "status": int, "version": str, "timeout": float, "quick": lambda _: True}


@dataclass
class Script:
    name: str
    path: str
    packages: dict = field(default_factory=dict)  # suite, or "" → names
    records: list = field(default_factory=list)
    needs: list = field(default_factory=list)
    status: int = 0
    version: str = ""
    quick: bool = False
    timeout: float = 120

    def packages_in(self, suite):
        return sorted({name for key in ("", suite) for name in self.packages.get(key, [])})

    def run(self, root, settings):
        """Bare and traced, each in a folder of its own under the same path."""
        result = comparison.Result(root.name, self.name)
        with settings.scratch(root.name, self.name) as scratch:
            if lacking := self.lacking(root, scratch):
                return result.became("skipped", f"not installed there: {', '.join(lacking)}")
            result.version = self.printed_version(root, scratch)

            attached = []

            def attach_in(folder):
                def beside(pid):
                    attached.append(attaching.Attaching(settings.given.tool, lambda: attaching.descendants(pid), folder))
                    return attached[0]
                return beside

            def run(kind):
                where = roots.scratch_folder(scratch, kind)
                shutil.copy(self.path, os.path.join(where, "agent", "script"))
                shutil.copy(settings.agent, os.path.join(where, "agent", "libtracer.so"))
                if kind == "traced" and settings.given.attached:
                    return roots.enter(root, where, ["/bin/sh", "/tmp/agent/script"], {}, 4 * self.timeout, beside=attach_in(os.path.join(where, "traces")))
                variables = dict(comparison.TRACED) if kind == "traced" else {}
                if variables and settings.arguments:
                    shutil.copy(settings.arguments, os.path.join(where, "agent", "arguments"))
                    variables["TRACER_ARGUMENTS"] = "/tmp/agent/arguments"
                return roots.enter(root, where, ["/bin/sh", "/tmp/agent/script"], variables, self.timeout)
            traces = os.path.join(scratch, "traced", "traces")
            result = comparison.compare(result, run, self.status, traces, [] if settings.given.attached else self.records, bool(settings.arguments))
            for attaches in attached:
                if attaches.fault:
                    result.became("DIFFERENT", "\n".join(filter(None, [result.detail, attaches.fault])))
                elif result.verdict == "same" and not attaches.count:
                    result.became("skipped", "ended before it was attached to")
                result.note = "; ".join(attaches.said)
            return result

    def lacking(self, root, scratch):
        script = f'for n in {shlex.join(self.needs)}; do command -v "$n" >/dev/null || echo "$n"; done'
        ended = roots.enter(root, roots.scratch_folder(scratch, "needs"), ["/bin/sh", "-c", script])
        if ended.status:
            raise roots.Failed(f"{root.path} cannot be entered: {ended.stderr.decode(errors='replace').strip()}")
        return ended.stdout.decode().split()

    def printed_version(self, root, scratch):
        ended = roots.enter(root, roots.scratch_folder(scratch, "version"), ["/bin/sh", "-c", self.version])
        match = VERSION.search((ended.stdout or ended.stderr).decode(errors="replace"))
        return match[0] if match else "?"


def load(path):
    name = os.path.splitext(os.path.basename(path))[0]
    script = Script(name, path)
    with open(path) as file:
        for line in file:
            if not line.startswith("# "):
                break
            key, _, value = line[2:].strip().partition(": ")
            key, *suites = key.split()
            if key == "packages":
                for suite in suites or [""]:
                    script.packages.setdefault(suite, []).extend(value.split())
            elif key in VALUES:
                setattr(script, key, VALUES[key](value))
            else:
                raise ValueError(f"{path}: unknown line: {line.strip()}")
    script.needs = script.needs or [name]
    return script


def every():
    return [load(os.path.join(FOLDER, name)) for name in sorted(os.listdir(FOLDER)) if name.endswith(".sh")]
