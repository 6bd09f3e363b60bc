"""Node's tests of the installed node, file by file: V8's code is made while it runs, and its threads, signals and children are libuv's."""
import glob
import os
import re
import shutil

import runs
from trial import Suite, Test

# All of the first subjects, and of the rest one in EVERY: each is a start of node.
FIRST = re.compile(r"vm|worker|child-process|signal|napi|async-hooks")
EVERY = 100


def chosen(paths):
    first = [path for path in paths if FIRST.search(os.path.basename(path))]
    return first + [path for path in paths if path not in first][::EVERY]


def flags(path):
    with open(path, errors="replace") as file:
        return [flag for line in re.findall(r"^// Flags: (.*)", file.read(), re.M) for flag in line.split()]


def tests(directory):
    folder = os.path.join(directory.readable, "node")
    for part in ("common", "fixtures", "parallel"):
        shutil.copytree(os.path.join(directory.source, "test", part), os.path.join(folder, "test", part), symlinks=True, dirs_exist_ok=True)
    for path in chosen(sorted(path for path in glob.glob(folder + "/test/parallel/test-*") if path.endswith((".js", ".mjs")))):
        yield Test(os.path.basename(path).removeprefix("test-"), ["node", *flags(path), path], environment={"NODE_TEST_DIR": "{tmp}"}, where=folder, unprivileged=True, timeout=240,
                   cannot_run=lambda run: runs.first_match(r"(?<=^1..0 # Skipped: ).*", run.stdout))


suites = [Suite("node", "Node's tests of contexts, workers, children, signals, N-API and hooks, and a spread of the others", (("node", "nodejs"), ("dpkg-source", "dpkg-dev")), tests,
                source="nodejs", version=("node", "--version"))]
