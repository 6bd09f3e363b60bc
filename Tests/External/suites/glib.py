"""GLib's tests as Debian installs them: main loops, threads, processes, signals, D-Bus, modules that are loaded while it runs."""
import configparser
import glob
import os
import shlex

import said
from trial import Suite, Test

FOLDER = "/usr/share/installed-tests/glib"
# A folder of the path that an ordinary user cannot search would be one error more than the tests expect.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}

# These only measure, for minutes.
OMITTED = ("performance", "performance-threaded")


def tests(directory):
    for path in sorted(glob.glob(FOLDER + "/*.test")):
        name = os.path.basename(path).removesuffix(".test")
        if name in OMITTED:
            continue
        description = configparser.RawConfigParser()
        description.read(path)
        command = shlex.split(description["Test"]["Exec"])
        more = dict(environment=ENVIRONMENT, timeout=600, unprivileged=True, cannot_run=lambda run: "it says so (status 77)" if "status 77" in run.outcomes.values() else "")
        yield said.test(directory, "tap", name, command, **more) if description["Test"].get("Output") == "TAP" else Test(name, command, **more)


suites = [Suite("glib", "GLib's installed tests", ((FOLDER + "/mainloop.test", "libglib2.0-tests"), ("dbus-run-session", "dbus-daemon")), tests,
                version=("dpkg-query", "-W", "-f", "${Version}\\n", "libglib2.0-tests"))]
