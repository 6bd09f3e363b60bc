"""End-to-end tests for pytest: programs that do what a tracer must survive, with and without the agent.

Each case of a subject (subjects/, build.py) is a test in the mode `slots` and in those that its header names; each suite (a module with
`tests()`) has its own, in the modes that its MODES names with the tests that run in them. modes.py says what a mode is.
"""
import fnmatch
import importlib.util
import os
import sys

import build
import harness
import modes
import pytest
from subject_test import SubjectTest


def collector(file, parent, **location):
    folder, name = os.path.split(str(file))
    if folder == build.SUBJECTS and name.endswith(build.SUFFIXES) and not name.startswith("part_"):
        return Subject.from_parent(parent, **location)
    if folder == build.HERE and name.endswith(".py") and "\ndef tests():" in open(str(file), encoding="utf-8").read():
        return Suite.from_parent(parent, **location)
    return None


if hasattr(pytest, "version_tuple"):
    def pytest_collect_file(file_path, parent):
        return collector(file_path, parent, path=file_path)
else:  # Debian 11's, which knows no paths of pathlib
    def pytest_collect_file(path, parent):
        return collector(path, parent, fspath=path)


class Collector(pytest.File):
    def listed(self, mode, tests, thorough=""):
        """One item for each test, by the name after that of the file."""
        stem = os.path.splitext(os.path.basename(str(self.fspath)))[0]
        for test in tests:
            name = test.name[len(stem) + 1:] if test.name.startswith(stem + ".") else test.name
            item = EndToEnd.from_parent(self, name=name if mode == "slots" else f"{name}[{mode}]")
            item.test, item.mode = test, mode
            item.add_marker(mode)
            item.add_marker(pytest.mark.xdist_group(f"{stem}-{mode}"))
            if thorough:
                item.add_marker(pytest.mark.thorough(thorough))
            yield item


class Subject(Collector):
    def collect(self):
        subject = build.load(str(self.fspath))
        listed = set()  # a case that two lines of the header name runs as the first says
        for mode, thorough, chosen in [("slots", "", lambda case: True), *subject.modes()]:
            modes.enter(mode)
            cases = [case for case in subject.cases() if chosen(case) and (case.name, mode) not in listed]
            listed |= {(case.name, mode) for case in cases}
            yield from self.listed(mode, [SubjectTest(case) for case in cases], thorough)


class Suite(Collector):
    def collect(self):
        name = os.path.splitext(os.path.basename(str(self.fspath)))[0]
        # Other folders have modules of the same names.
        specification = importlib.util.spec_from_file_location("end_to_end_" + name, str(self.fspath))
        suite = sys.modules[specification.name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(suite)
        for mode, pattern in getattr(suite, "MODES", {"slots": "*"}).items():
            modes.enter(mode)
            stem = name + "."
            yield from self.listed(mode, [test for test in suite.tests() if any(
                fnmatch.fnmatchcase(test.name[len(stem):] if test.name.startswith(stem) else test.name, part) for part in pattern.split())])


class EndToEnd(pytest.Item):
    def runtest(self):
        try:
            settings = modes.settings(modes.enter(self.mode), self.config.option)
            measured = self.test.run(settings)  # what a test has measured and does not judge
        except harness.Skipped as reason:
            pytest.skip(str(reason))
        if measured:
            self.user_properties.append(("measured", measured))

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(harness.Failed) else super().repr_failure(excinfo)

    def reportinfo(self):
        return self.fspath, None, self.name
