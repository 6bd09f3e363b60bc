"""Commands of scripts/ that are tests by themselves: each passes when it ends with status 0."""
import collections
import glob
import os
import re
import subprocess

import pytest
import swift_tests
from once import ROOT

LIMIT = 3000  # seconds; a hang, on a machine that has other things to do, too


def run(*command):
    done = subprocess.run([os.path.join(ROOT, command[0]), *command[1:]], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT)
    assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-6000:]}"
    return done.stdout


@pytest.mark.sources
def test_sources_are_formatted():
    run("scripts/format", "--check")


@pytest.mark.unit
def test_each_test_of_swift_is_a_test_here():
    listed = subprocess.run([swift_tests.BUNDLE, "--testing-library", "swift-testing", "--list-tests"], check=True, capture_output=True, text=True).stdout
    of_swift = collections.Counter(re.findall(r"^(\w+)\.(?:.*/)?`?([^/`]+)`?\(.*\)$", listed, re.M))
    here = collections.Counter()
    for path in glob.glob(os.path.join(ROOT, "Tests/*Tests/**/*.swift"), recursive=True):
        module = os.path.relpath(path, os.path.join(ROOT, "Tests")).split(os.sep)[0]
        here.update((module, name) for _, name, _ in swift_tests.functions(path))
    assert sum(of_swift.values()) == len(listed.splitlines()) and here == of_swift


# The same inputs each time: what is found must be of the change. The reader's build takes minutes: Tests/MutatedTraceTests has inputs for
# the build that is there.
@pytest.mark.fuzz
@pytest.mark.xdist_group("fuzz")  # they are built in one folder, one after the other
@pytest.mark.parametrize("subject, runs", [("elf", 30000), ("plan", 5000)])
def test_hostile_input_ends_in_no_crash(subject, runs):
    run("scripts/fuzz", subject, "60", "-verbosity=0", "-seed=1", f"-runs={runs}")


@pytest.mark.fuzz
@pytest.mark.xdist_group("fuzz")
@pytest.mark.thorough("looks for new inputs, at random, for ten minutes each")
@pytest.mark.parametrize("subject", ["reader", "elf", "plan"])
def test_further_hostile_input_ends_in_no_crash(subject):
    run("scripts/fuzz", subject, "600", "-verbosity=0")


def test_the_benchmark_starts():
    run("scripts/bench", "--quick", "--only", "clocks", "--only", "bare")


@pytest.mark.alone("a storm of threads, signals and forks leaves nothing for others")
@pytest.mark.thorough("ten minutes; the subjects have each of its parts")
def test_a_storm_changes_nothing():
    run("scripts/soak", "--minutes", "10")
