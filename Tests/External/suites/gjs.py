"""GNOME's JavaScript: calls into libraries by libffi and back, exceptions in between, a just-in-time compiler, a debugger, by its installed tests."""
import glob
import os
import re
import shlex

import said
from trial import Suite

FOLDER = "/usr/share/installed-tests/gjs"


def tests(directory):
    for path in sorted(glob.glob(FOLDER + "/*.test")):
        with open(path) as file:
            command = shlex.split(re.search(r"^Exec=(.*)", file.read(), re.M)[1])
        # A bus and a display of its own for each, where a test wants them.
        yield said.test(directory, "tap", os.path.basename(path).removesuffix(".test"), ["dbus-run-session", "--", *command], timeout=300)


suites = [Suite("gjs", "gjs's installed tests", ((FOLDER, "gjs-tests"), ("gjs", "gjs"), ("dbus-run-session", "dbus-daemon")), tests, version=("gjs", "--version"))]
