#!/usr/bin/env python3
"""Real projects, built from Debian's source packages with --coverage and recorded with every function in sessions of a dozen commands and
more: is each function called where gcov says so, and as often? By hand, since building them takes minutes: docs/measurements/coverage.md.

    python3 Tests/CoverageTests/project.py [PROJECT…] [--cache FOLDER]

Projects are source packages of projects.py, without one all of them. In the folder (~/.cache/tracer/coverage) sources and builds stay, and
the traces, up to 3 GB, of a project of which something differs.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOOL = os.path.join(ROOT, ".build/release/tracer")
sys.path.insert(0, os.path.join(ROOT, "Tests/External"))
import sources
from projects import PROJECTS

LIMIT = 900  # seconds, of one run


class Built:
    """A project's sources, its program and what is recorded of it."""

    def __init__(self, project, cache):
        self.project = project
        self.version, self.archive = sources.fetched(project.package, cache, lambda what: print(f"{project.package}: {what}", flush=True))
        self.folder = os.path.join(cache, project.package)
        self.source = os.path.join(self.folder, "source")
        self.program = os.path.join(self.source, project.program)
        self.environment = {**sources.clean(), "HOME": self.folder, "XDG_CACHE_HOME": os.path.join(self.folder, "cache"), "TRACER_CACHE": "on",
                            **project.environment}

    def build(self):
        stamp = os.path.join(self.folder, "built")
        if sources.content(stamp) == self.version:
            return
        shutil.rmtree(self.source, ignore_errors=True)
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, "log"), "wb") as log:
            def run(*command, **variables):
                subprocess.run(command, cwd=self.source if os.path.exists(self.source) else self.folder, env={**sources.clean(), **variables}, check=True,
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            run("dpkg-source", "--no-check", "-x", self.archive, self.source)
            self.project.build(self.source, run)
        pathlib.Path(stamp).write_text(self.version)

    def tool(self, *arguments, **options):
        return subprocess.run([TOOL, *arguments], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, **options)

    def record(self):
        """The session's traces, each of one run with all of its processes."""
        for path in pathlib.Path(self.source).rglob("*.gcda"):
            path.unlink()
        work, traces = os.path.join(self.folder, "work"), os.path.join(self.folder, "traces")
        for folder in (work, traces):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        os.makedirs(self.environment["XDG_CACHE_HOME"], mode=0o700, exist_ok=True)
        libraries = self.project.libraries(self.source)
        if libraries:
            self.tool("plan", *libraries, check=True)
        functions = [word for glob in ["*", *(os.path.basename(path) + "!*" for path in libraries)] for word in ("--functions", glob)]
        paths = []
        for number, arguments in enumerate(self.project.session(work)):
            paths.append(os.path.join(traces, f"{number:02}.trace"))
            self.tool("record", "--quiet", "--no-states", "--keep-hot", *functions, "-o", paths[-1], "--", self.program, *arguments, cwd=work)
        return paths

    def account(self, traces):
        """Returns what `tracer coverage` reports of the functions in the project's own files."""
        done = self.tool("coverage", *traces, "--json")
        if done.returncode:
            raise SystemExit(done.stderr)
        print(done.stderr, end="")
        account = json.loads(done.stdout)
        own = {module["name"] for module in account["modules"] if module["path"].startswith(self.source + "/")}
        return [function for function in account["functions"] if function["module"] in own]

    def counts(self):
        """(file, function) to gcov's count, and to that of the function's first line, of the files that have run."""
        counts, lines = collections.Counter(), collections.Counter()
        for note in sorted(pathlib.Path(self.source).rglob("*.gcda")):
            text = subprocess.run(["gcov", "--json-format", "--stdout", str(note)], cwd=self.source, capture_output=True, text=True).stdout
            for line in text.splitlines():
                result = json.loads(line)
                for file in result["files"]:
                    path = os.path.normpath(os.path.join(result["current_working_directory"], file["file"]))
                    of_line = {(line.get("function_name"), line["line_number"]): line["count"] for line in file["lines"]}
                    for function in file["functions"]:
                        counts[path, function["name"]] += function["execution_count"]
                        lines[path, function["name"]] += of_line.get((function["name"], function["start_line"]), 0)
        return counts, lines


def compared(functions, counts, lines):
    """(what was found to how many functions, lines for those that differ)"""
    placed, named = collections.defaultdict(list), collections.defaultdict(list)
    for function in functions:
        # A clone of the compiler's counts for what it was made of.
        for symbol in {re.sub(r"\.(isra|constprop|part)\..*", "", symbol) for symbol in function["symbols"]}:
            named[symbol].append(function)
            if function["file"]:
                placed[os.path.normpath(function["file"]), symbol].append(function)
    found, differ = collections.Counter(), []
    for (path, symbol), count in sorted(counts.items()):
        # A template's file is, for the lines of its code, that of the template.
        same = placed.get((path, symbol)) or (named[symbol] if symbol.startswith("_Z") else [])
        calls, is_least = sum(function["calls"] or 0 for function in same), any(function["at_least"] for function in same)
        if not same and count == 0:
            found["never called, and not in the file"] += 1
        elif same and any(function["calls"] is None for function in same):
            found["unknown"] += 1
        elif calls == lines[path, symbol] < count:  # gcov also counts a function's computed gotos
            found["called, as often as its first line"] += 1
        elif not same or (calls > 0) != (count > 0) or calls > count or calls != count and not is_least:
            differ.append(f"{symbol} of {os.path.basename(path)}: {calls if same else 'not in the file, no'} calls, gcov {count}")
        else:
            found["never called" if count == 0 else "called, at least as often" if is_least else "called, as often"] += 1
    return found, differ


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help=", ".join(PROJECTS))
    parser.add_argument("--cache", default=os.path.expanduser("~/.cache/tracer/coverage"), metavar="FOLDER", help="default: %(default)s")
    given = parser.parse_args()
    unknown = [name for name in given.projects if name not in PROJECTS]
    if unknown:
        parser.error(f"no project {unknown[0]}: there are {', '.join(PROJECTS)}")
    is_good = True
    for name in given.projects or PROJECTS:
        built = Built(PROJECTS[name], os.path.abspath(given.cache))
        built.build()
        traces = built.record()
        found, differ = compared(built.account(traces), *built.counts())
        print(f"{name} {built.version}, {len(traces)} runs: gcov has {sum(found.values()) + len(differ):,} functions of files that ran")
        for what, number in [*sorted(found.items()), ("differ", len(differ))]:
            print(f"{number:8,}  {what}")
        for line in differ[:40]:
            print("          " + line)
        if not differ:
            shutil.rmtree(os.path.dirname(traces[0]))
        is_good = is_good and bool(found) and not differ
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
