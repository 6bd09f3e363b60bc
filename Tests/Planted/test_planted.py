"""Defects that the tests must find: each is a patch beside this file, and scripts/planted plants it in a copy of the tree.

A patch begins with a sentence that says what the defect is, and lines `found by: NODEID` that name the tests which find it.
"""
import os
import subprocess

import pytest
from once import ROOT, once
from script_modules import load

planted = load("scripts/planted")
NAMES = planted.every()
LIMIT = 7200  # seconds; a hang, on a machine that has other things to do, too


@pytest.mark.sources
@pytest.mark.parametrize("name", NAMES)
def test_each_defect_can_be_planted(name):
    done = subprocess.run(["git", "apply", "--check", planted.Patch(name).path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.sources
def test_each_names_a_test_that_runs_by_default():
    """Asked for by their files: of tests that are asked for by their own names pytest runs the thorough ones, too."""
    named = {test: name for name in NAMES for test in planted.Patch(name).tests}
    assert [name for name in NAMES if not planted.Patch(name).tests] == []
    files = sorted({test.partition("::")[0] for test in named})
    assert [path for path in files if not os.path.exists(os.path.join(ROOT, path))] == []
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "--collect-only", "-q", *files], cwd=ROOT, env=planted.environment(),
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-3000:]
    collected = set(done.stdout.splitlines())
    assert {test: name for test, name in named.items() if test not in collected} == {}


@pytest.mark.xdist_group("planted")
@pytest.mark.thorough("builds and tests the project once for each defect")
@pytest.mark.parametrize("name", NAMES)
def test_each_defect_is_found(name):
    script = os.path.join(ROOT, "scripts/planted")
    once("planted-unpatched", [script, "--unpatched"], limit=LIMIT)
    done = subprocess.run([script, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout
