"""Runs a module of CPython's tests, or some of its methods, and appends the outcome of each to a file.

    cpython_cases.py FILE MODULE [ID]…

A line is written before a method and after it: of one that ends the process, the file says so.
"""
import json
import os
import sys
import unittest

path, module, *only = sys.argv[1:]
process = os.getpid()


def note(case, outcome):
    # Not in children that run on in here. Opened each time: tests count and close descriptors.
    if os.getpid() == process:
        with open(path, "a") as file:
            file.write(json.dumps([case, outcome]) + "\n")


def flat(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flat(each)
        else:
            yield each


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.failed = None
        note(test.id(), "not ended")

    def fail(self, test, error):
        self.failed = f"{'failed' if issubclass(error[0], test.failureException) else 'error'}: {error[0].__name__}"
        sys.stderr.write(f"{test.id()}: {''.join(self._exc_info_to_string(error, test).splitlines(True)[-3:])}\n")
        note(test.id(), self.failed)

    def addError(self, test, error):
        super().addError(test, error)
        self.fail(test, error)

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.fail(test, error)

    def addSkip(self, test, reason):
        note(test.id(), f"skipped: {reason}")

    def addExpectedFailure(self, test, error):
        note(test.id(), "expected failure")

    def addUnexpectedSuccess(self, test):
        note(test.id(), "unexpected success")

    def addSuccess(self, test):
        note(test.id(), "ok")


if __name__ == "__main__":
    from test import support
    support.use_resources = []
    support.verbose = 0
    del sys.argv[1:]
    try:
        found = list(flat(unittest.defaultTestLoader.loadTestsFromName("test." + module)))
    except unittest.SkipTest as reason:
        sys.exit(f"skipped: {reason}")
    unittest.TestSuite(test for test in found if not only or test.id() in only).run(Result())
