#!/usr/bin/env python3
"""Git, built from Debian's source package with --coverage, recorded with every function in a session of a dozen commands: is each function
called where gcov says so, and as often? By hand, since building it takes minutes: what docs/coverage.md says of it.

    python3 Tests/CoverageTests/project.py [FOLDER]     sources, build and traces stay there; default: ~/.cache/tracer/coverage
"""
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

FLAGS = ["CFLAGS=-O0 -g --coverage -fprofile-update=atomic", "LDFLAGS=--coverage", "NO_CURL=1", "NO_EXPAT=1", "NO_GETTEXT=1", "NO_TCLTK=1",
         "NO_PERL=1", "NO_PYTHON=1", "NO_OPENSSL=1", "NO_REGEX=NeedsStartEnd"]
SESSION = ["init -q .", "add .", "-c gc.auto=0 commit -q -m one", "diff", "-c gc.auto=0 commit -q -am two", "log -p", "blame f1", "branch side",
           "checkout -q side", "gc -q", "fsck", "grep 7"]


def build(folder):
    version, archive = sources.fetched("git", folder, print)
    source = os.path.join(folder, "source")
    if not os.path.exists(os.path.join(source, "git")):
        shutil.rmtree(source, ignore_errors=True)
        subprocess.run(["dpkg-source", "--no-check", "-x", archive, source], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "log"), "wb") as log:
            subprocess.run(["make", f"-j{os.cpu_count()}", *FLAGS, "git"], cwd=source, check=True, stdout=log, stderr=log)
    return version, source


def record(folder, source):
    for path in pathlib.Path(source).rglob("*.gcda"):
        path.unlink()
    work, traces = os.path.join(folder, "work"), os.path.join(folder, "traces")
    for place in (work, traces):
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
    environment = {**os.environ, "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "demo", f"GIT_{who}_EMAIL": "demo@localhost"}
    for n in range(3):
        pathlib.Path(work, f"f{n}").write_text("\n".join(str(k) for k in range(n, 100)))
    for n, words in enumerate(SESSION):
        if n == 3:
            pathlib.Path(work, "f1").write_text("\n".join(str(k) for k in range(2, 90)))
        subprocess.run([TOOL, "record", "--quiet", "--functions", "*", "-o", f"{traces}/{n}.trace", "--", os.path.join(source, "git"), *words.split()],
                       cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    paths = sorted(str(path) for path in pathlib.Path(traces).glob("*.trace"))
    done = subprocess.run([TOOL, "coverage", *paths, "--module", "git", "--json"], capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)


def counted(source):
    """(file, function) to gcov's count."""
    counts = collections.Counter()
    for note in pathlib.Path(source).rglob("*.gcda"):
        text = subprocess.run(["gcov", "--json-format", "--stdout", str(note)], cwd=source, capture_output=True, text=True).stdout
        for line in text.splitlines():
            for file in json.loads(line)["files"]:
                for function in file["functions"]:
                    counts[os.path.basename(file["file"]), function["name"]] += function["execution_count"]
    return counts


def main():
    folder = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.expanduser("~/.cache/tracer/coverage"))
    os.makedirs(folder, exist_ok=True)
    version, source = build(folder)
    account, counts = record(folder, source), counted(source)
    own = collections.defaultdict(list)
    for function in account["functions"]:
        for symbol in function["symbols"] if function["file"] else ():
            own[os.path.basename(function["file"]), re.sub(r"\.(isra|constprop|part)\..*", "", symbol)].append(function)
    differ, said = [], collections.Counter()
    for key, count in sorted(counts.items()):
        functions = own.get(key, [])
        calls = sum(function["calls"] or 0 for function in functions)
        isLeast = any(function["at_least"] for function in functions)
        if not functions or any(function["calls"] is None for function in functions):
            said["unknown or not in the file"] += 1
        elif (calls > 0) != (count > 0) or not isLeast and calls != count or calls > count:
            differ.append(f"{key[1]} of {key[0]}: {calls} calls, gcov {count}")
        else:
            said["never called" if count == 0 else "called, at least as often" if isLeast else "called, as often"] += 1
    print(f"git {version}: gcov has {len(counts)} functions of files that ran")
    for what, number in sorted(said.items()):
        print(f"{number:8}  {what}")
    print(f"{len(differ):8}  differ")
    for line in differ[:40]:
        print("          " + line)
    return 1 if differ or not said else 0


if __name__ == "__main__":
    sys.exit(main())
