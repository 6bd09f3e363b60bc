"""Defects that the tests must find: each is a patch beside this file, and scripts/planted plants it in a copy of the tree.

A patch begins with a sentence that says what the defect is, and lines `found by: NODEID` that name the tests which find it.
"""
import glob
import os
import pathlib
import re
import subprocess

import pytest
from once import ROOT, once

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = sorted(pathlib.Path(path).stem for path in glob.glob(os.path.join(HERE, "*.patch")))
LIMIT = 7200  # seconds; a hang, on a machine that has other things to do, too


def tests_of(name):
    return re.findall(r"^found by: (.+)$", pathlib.Path(HERE, name + ".patch").read_text(encoding="utf-8").partition("diff --git ")[0], re.M)


@pytest.mark.sources
@pytest.mark.parametrize("name", NAMES)
def test_each_defect_can_be_planted(name):
    done = subprocess.run(["git", "apply", "--check", os.path.join(HERE, name + ".patch")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.sources
def test_each_names_a_test_that_runs_by_default():
    """Asked for by their files: of tests that are asked for by their own names pytest runs the thorough ones, too."""
    named = {test: name for name in NAMES for test in tests_of(name)}
    assert [name for name in NAMES if not tests_of(name)] == []
    files = sorted({test.partition("::")[0] for test in named})
    assert [path for path in files if not os.path.exists(os.path.join(ROOT, path))] == []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "--collect-only", "-q", *files], cwd=ROOT, env=environment, capture_output=True,
                          text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-3000:]
    collected = set(done.stdout.splitlines())
    assert {test: name for test, name in named.items() if test not in collected} == {}


@pytest.mark.xdist_group("planted")
@pytest.mark.thorough("builds and tests the project once for each defect")
@pytest.mark.parametrize("name", NAMES)
def test_each_defect_is_found(name):
    planted = os.path.join(ROOT, "scripts/planted")
    once("planted-unpatched", [planted, "--unpatched"], limit=LIMIT)
    done = subprocess.run([planted, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout
