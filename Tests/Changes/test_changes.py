"""Tests/changes.py knows what tests each file of the repository, and names nothing that is not there."""
import glob
import os
import subprocess

import changes
import pytest
from once import ROOT

pytestmark = pytest.mark.sources


def files():
    return subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def test_each_file_has_tests():
    assert [path for path in files() if not changes.of(path)] == []


def test_each_row_is_of_some_file():
    assert [row for row in changes.ROWS if not any(path.startswith(row) for path in files())] == []


def test_each_test_that_is_named_is_there():
    named = {target for path in files() for target in changes.of(path)} | set(changes.ALWAYS)
    assert [target for target in sorted(named) if not os.path.exists(os.path.join(ROOT, target.partition("::")[0]))] == []


def test_each_folder_of_tests_is_chosen_by_some_source():
    chosen = {target.split("/")[1].partition(".")[0] for path in files() if not path.startswith("Tests/") for target in changes.of(path) if "/" in target}
    folders = {path.split(os.sep)[-2] for path in glob.glob(os.path.join(ROOT, "Tests", "*", "test_*.py"))}
    assert folders - chosen <= {"Changes"}


def test_what_lies_within_another_choice_is_not_named_twice():
    assert "Tests/EndToEnd" in changes.tests(["CSupport/state.c", "Sources/Recorder/Recorder/Recorder.swift"])
    assert not [target for target in changes.tests(["CSupport/state.c", "Sources/Reader/TraceAnalysis/x.swift"]) if target.startswith("Tests/EndToEnd/")]


def test_no_change_chooses_nothing():
    assert changes.tests([]) == []


def test_a_subject_chooses_itself_and_the_checks_of_sources():
    assert changes.tests(["Tests/EndToEnd/subjects/threads.c"]) == sorted(["Tests/EndToEnd/subjects/threads.c", *changes.ALWAYS])
