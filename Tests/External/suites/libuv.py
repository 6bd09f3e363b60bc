"""libuv's tests, one by one, as its runner starts them: each in a process of its own, beside helpers that are servers."""
import os
import shutil

import runs
from sources import autotools, printed
from suites.autotools import BUILDING
from trial import Suite, Test

# On a machine with other things to do the runner's own limits of time are too short.
ENVIRONMENT = {"UV_TEST_TIMEOUT_MULTIPLIER": "20", "RES_OPTIONS": "attempts:0"}


def build(directory):
    directory.run(["sh", "autogen.sh"], where=directory.source)
    autotools(directory)
    directory.run(["make", "test/run-tests"], where=directory.source)


def tests(directory):
    """As a user for whom permissions count; the tests write beside their `test/fixtures`."""
    runner, fixtures, library = (os.path.join(directory.readable, name) for name in ("run-tests", "test", "lib"))
    shutil.copy(os.path.join(directory.source, "test/.libs/run-tests"), runner)
    shutil.copytree(os.path.join(directory.source, "test"), fixtures, ignore=shutil.ignore_patterns("*.o", "*.lo", ".libs"), dirs_exist_ok=True)
    os.makedirs(library, exist_ok=True)
    shutil.copy(os.path.join(directory.source, ".libs/libuv.so.1"), library)
    environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": library}
    for name in (line.split()[0] for line in printed("env", f"LD_LIBRARY_PATH={library}", "UV_RUN_AS_ROOT=1", runner, "--list").splitlines() if line.strip()):
        yield Test(name, ["sh", "-c", 'ln -s "$0" test && exec "$@"', fixtures, runner, name], environment=environment, unprivileged=True, timeout=300,
                   cannot_run=lambda run: runs.first_match(r"(?<=# SKIP ).*", run.stdout))


suites = [Suite("libuv", "libuv's own tests", BUILDING, tests, build, source="libuv1")]
