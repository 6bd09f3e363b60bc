"""Set-up that all tests share under pytest: markers, the order of groups, tests that need the machine to themselves, and a run's summary.

Tests that belong together are a group of pytest-xdist, which one worker runs in a row: a class with its own setUpClass, a subject in one
mode, a module of Swift. Groups go by how long they took in the last run, longest first, so that the workers end together.
"""
import collections
import fcntl
import json
import os
import signal
import sys

import pytest

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "EndToEnd"))
import harness
import modes
import swift_tests
from once import ROOT

os.environ["TRACER_CACHE"] = "off"  # the user's own is left alone; tests of it have another
os.environ["PYTHONUNBUFFERED"] = "1"
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
TIMES = os.path.join(ROOT, ".build", "test-times.json")  # times of the last run here: nodeid → seconds
KNOWN_TIMES = os.path.join(ROOT, "Tests", "times.json")  # times of long tests, for a first run: --write-times
LONG = 3  # seconds
MARKS = {
    "alone(reason)": "needs the machine to itself: nothing runs beside it",
    "thorough(reason)": "only scripts/test --all runs it",
    "unit": "Swift's tests of one module each",
    "fuzz": "libFuzzer, the same inputs each time",
    "distributions": "programs in clean root file systems of other distributions",
    "packages": "what scripts/package makes",
    "documents": "what documents show, name and promise",
    "sources": "what needs no build: format, arrows, messages",
}
# A shell without job control starts what runs beside it with these ignored, and nohup does; tests send them.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_addoption(parser):
    parser.addoption("--thorough", action="store_true", help="also what only scripts/test --all runs")
    parser.addoption("--write-times", action="store_true", help="leave the times of long tests in Tests/times.json, for machines where none have run")
    group = parser.getgroup("end-to-end tests")
    group.addoption("--bare", action="store_true", help="without the agent: only that the programs themselves work")
    group.addoption("--keep", action="store_true", help="leave traces and outputs in the temporary folder")
    group.addoption("--agent", default=harness.Settings.agent, help="libtracer.so of another build")
    group.addoption("--tool", default=harness.Settings.tool, help="tracer of another build; empty: the independent decoder alone reads the traces")
    group.addoption("--moments", type=int, default=0, help="how often durability kills (default: some dozens)")
    group.addoption("--attaches", type=int, default=0, help="how often tests of attached and attach_storm attach (default: 40, 6)")


def pytest_configure(config):
    for mark, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    if not config.pluginmanager.hasplugin("xdist"):
        config.addinivalue_line("markers", "xdist_group(name): tests that one worker of pytest-xdist runs in a row")
    for mode in modes.MODES:
        config.addinivalue_line("markers", f"{mode}: end-to-end tests in this mode (Tests/EndToEnd/modes.py)")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary(config), "summary-of-tracer")


if hasattr(pytest, "version_tuple"):
    def pytest_collect_file(file_path, parent):
        return swift_tests.collector(file_path, parent, path=file_path)
else:  # Debian 11's, which knows no paths of pathlib
    def pytest_collect_file(path, parent):
        return swift_tests.collector(path, parent, fspath=path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    deselected = {item for item in items if is_deselected(item, config)}
    if deselected:
        config.hook.pytest_deselected(items=list(deselected))
        items[:] = [item for item in items if item not in deselected]
    for item in items:
        group = own_class(item)
        if group and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(group))
    times = Times()
    groups = collections.Counter()
    for item in items:
        groups[group_of(item)] += times.of(item.nodeid)
    # Tests of a group stay in their order, and in a row.
    items.sort(key=lambda item: (item.get_closest_marker("alone") is not None, -groups[group_of(item)], group_of(item)))


def is_deselected(item, config):
    """True for thorough tests, unless they are asked for; and for other modes of one that is asked for by its name."""
    if item.nodeid in config.args:
        return False
    plain, bracket, _ = item.nodeid.rpartition("[")
    if bracket and plain in config.args and getattr(item, "mode", None):
        return True
    return bool(item.get_closest_marker("thorough")) and not config.option.thorough


def own_class(item):
    """The class whose setUpClass serves several tests, as a group's name."""
    setup = getattr(getattr(item, "cls", None), "setUpClass", None)
    if setup is None or setup.__func__.__qualname__ == "TestCase.setUpClass":
        return None
    return f"{os.path.basename(str(item.fspath))}:{item.cls.__name__}"


def group_of(item):
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark else item.nodeid


class Times:
    """How long tests took: here in the last run, or what the repository knows."""

    def __init__(self):
        self.last, self.known = load(TIMES), load(KNOWN_TIMES)

    def of(self, nodeid):
        if nodeid in self.last:
            return self.last[nodeid]
        return self.known.get(nodeid, 0.3)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def store(path, times):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(times, file, indent=0, sort_keys=True)
        file.write("\n")
    os.rename(path + ".new", path)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Tests share the machine; one that is marked `alone` waits until it has it."""
    os.makedirs(os.path.join(ROOT, ".build"), exist_ok=True)
    with open(os.path.join(ROOT, ".build", "test-machine.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH)
        yield


class Summary:
    """Counts outcomes, keeps the times, and ends a run with what failed, how to run that again, and a line of totals."""

    def __init__(self, config):
        self.config, self.outcomes, self.seconds, self.measured = config, {}, collections.Counter(), []

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.rpartition("@")[0] if "@" in report.nodeid.rpartition("]")[2] else report.nodeid
        self.seconds[name] += report.duration
        if report.failed or self.outcomes.get(name) != "failed" and (report.when == "call" or report.skipped):
            if report.failed:
                print(f"\nFAILED {name}", flush=True)
            self.outcomes[name] = report.outcome
        if report.when == "call":
            self.measured += [(name, text) for key, text in report.user_properties if key == "measured"]

    def pytest_terminal_summary(self, terminalreporter):
        if self.config.option.verbose:
            for name, text in self.measured:
                terminalreporter.write_line(f"measured: {name}: {text}")
        failed = [name for name, outcome in self.outcomes.items() if outcome == "failed"]
        if failed:
            terminalreporter.write_sep("=", "what failed, by itself again")
        for name in failed:
            terminalreporter.write_line(f"scripts/test '{name}'")
        self.keep_times()

    def keep_times(self):
        times = {**load(TIMES), **{name: round(seconds, 2) for name, seconds in self.seconds.items()}}
        store(TIMES, times)
        if self.config.option.write_times:
            store(KNOWN_TIMES, {name: round(seconds) for name, seconds in times.items() if seconds >= LONG})

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        counted = collections.Counter(self.outcomes.values())
        print(f"{counted['passed']} passed, {counted['failed']} failed, {counted['skipped']} skipped")
