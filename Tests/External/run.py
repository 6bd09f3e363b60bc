#!/usr/bin/env python3
"""Suites that others wrote, test by test, bare and under the agent: where does the outcome differ?

    scripts/compat --external [--only SUITE]… [--filter REGEX] [--agent FILE] [--list] [--install]
                              [--functions [--tool FILE]] [--results FILE] [--markdown FILE] [--stored FILE]… [--against FILE]
                              [--verbose] [--keep]

Each test runs bare, then with the agent preloaded, with --functions so that it records every function of every module that a
test loads (TRACER_FUNCTIONS='*!*', with plans that are made on the way). Where the outcomes differ it runs again, up to three times each way: a
test that fails bare, or whose bare runs are not alike, is not held against the agent. Suites that have to be built are
built once, in the cache; Debian's source packages come from where the system's packages come from. What needs a package that
is not there is skipped and names it; --install installs those of the chosen suites. Status 1 when a test differed, or none
could be compared; interrupted, it says what it has found so far (130).
"""
import argparse
import glob
import importlib
import os
import pkgutil
import re
import shutil
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import runs
import suites as modules
from outcome import Outcome, finished, line
from sources import Directory, printed
from trial import SAME, SKIPPED, Unavailable, judge
import packages  # in Tests/Compatibility


def every():
    """All suites, the slow ones last."""
    found = [suite for _, name, _ in pkgutil.iter_modules(modules.__path__) for suite in importlib.import_module("suites." + name).suites]
    return sorted(found, key=lambda suite: (suite.name in ("cpython", "stress-ng"), suite.name))


def options(arguments):
    parser = argparse.ArgumentParser(prog="scripts/compat --external", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="SUITE", help="this suite; may be given again")
    parser.add_argument("--filter", metavar="REGEX", default="", help="tests whose SUITE: NAME matches")
    parser.add_argument("--functions", action="store_true", help="record every function of every module, too")
    parser.add_argument("--list", action="store_true", help="name the suites, what they need, and with --filter or --only their tests; run nothing")
    parser.add_argument("--install", action="store_true", help="install the packages that are missing")
    parser.add_argument("--commit", metavar="NAME", help="what the agent is called in the results (default: this checkout's commit)")
    parser.add_argument("--stored", action="append", metavar="FILE", help="run nothing: the tables of these results; given again, of all of them")
    parser.add_argument("--against", metavar="FILE", help="say what has changed since these results, of another agent")
    runs.add_options(parser, "external", "docs/measurements/test-suites.md")
    return parser.parse_args(arguments)


def is_there(what):
    return bool(glob.glob(what)) if what.startswith("/") else shutil.which(what, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


def missing(suite):
    """Returns the packages that are missing; `one|another` stands for several, any of which will do."""
    return [package for what, package in suite.needs if not is_there(what)]


def named(needed):
    return " ".join(package.replace("|", " or ") for package in needed)


def available_one(package):
    """Returns the one of several packages that this release has."""
    names = package.split("|")
    return next((name for name in names if len(names) > 1 and printed("apt-cache", "show", name)), names[0])


def chosen(given, available):
    names = [suite.name for suite in available]
    unknown = [name for name in given.only or () if name not in names]
    if unknown:
        fail(f"no suite {', '.join(unknown)}; there are: {' '.join(names)}")
    return [suite for suite in available if not given.only or suite.name in given.only]


def fail(text):
    print(f"compat: {text}", file=sys.stderr)
    sys.exit(2)


def install(wanted):
    lacking = sorted({available_one(package) for suite in wanted for package in missing(suite)})
    if lacking:
        print(f"installing {' '.join(lacking)}", flush=True)
        for reason in packages.debian_each(lacking):
            print(f"compat: {reason}", file=sys.stderr)


def commit(given):
    if given.commit:
        return given.commit
    if os.path.abspath(given.agent).startswith(ROOT + "/"):
        return printed("git", "-C", ROOT, "describe", "--always", "--dirty") or "unknown"
    return os.path.basename(given.agent)


def run_suite(suite, runner, outcome, given):
    lacking = missing(suite)
    if lacking:
        raise Unavailable(f"needs {named(lacking)} (apt-get install, or --install)")
    directory = Directory(suite, given.cache, runner.folder)
    directory.build(lambda text: print(f"{suite.name}: {text}", flush=True))
    version = (printed(*suite.version).splitlines() or [""])[0] if suite.version else directory.source_version
    version = runs.first_match(r"\d[\w.+~:-]*", version)
    outcome.begin(suite, version)
    print(f"{suite.name} {version}", flush=True)
    for test in suite.tests(directory):
        if given.filter and not re.search(given.filter, f"{suite.name}: {test.name}"):
            continue
        results = judge(suite.name, test, runner.execute)
        outcome.add(results)
        for result in results:
            if result.verdict != SAME and (result.verdict != SKIPPED or given.verbose) or given.verbose:
                print(line(result), flush=True)
    counts = outcome.counts(suite.name)
    recorded = ""
    if runner.plans:
        outcome.end(suite, runner.plans.recorded)
        recorded, runner.plans.recorded = f"; {runner.plans.recorded:,} functions recorded", 0
    print(f"{suite.name}: " + ", ".join(f"{number} {verdict}" for verdict, number in counts.items()) + recorded, flush=True)


def list_suites(wanted, given):
    for suite in wanted:
        lacking = missing(suite)
        print(f"{suite.name:12} {suite.about}" + (f"; needs {named(lacking)}" if lacking else ""))
        if (given.only or given.filter) and not lacking:
            directory = Directory(suite, given.cache, given.scratch)
            try:
                directory.build(lambda text: print(f"{suite.name}: {text}", file=sys.stderr, flush=True))
            except Unavailable as reason:
                print(f"  cannot be built: {reason}")
                continue
            for test in suite.tests(directory):
                if re.search(given.filter, f"{suite.name}: {test.name}"):
                    print(f"  {test.name}")


def main(arguments, available=None):
    given = options(arguments)
    wanted = chosen(given, available or every())
    if given.install:
        install(wanted)
    if given.list:
        list_suites(wanted, given)
        return 0
    if given.stored:
        outcome = loaded(given.stored)
        outcome.path = given.results
        outcome.write()
        return finish(outcome, given)
    for path in (given.agent, *([given.tool] if given.functions else [])):
        if not os.path.exists(path):
            fail(f"no {path}: run scripts/build first")
    os.makedirs(given.cache, exist_ok=True)
    os.makedirs(os.path.dirname(os.path.abspath(given.results)), exist_ok=True)
    outcome, interrupted = Outcome(given.results, commit(given), "with every function" if given.functions else ""), False
    runner = runs.Runner(given.agent, given.cache, given.scratch, given.keep, given.tool if given.functions else None)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        for suite in wanted:
            try:
                run_suite(suite, runner, outcome, given)
            except Unavailable as reason:
                print(f"{suite.name}: skipped: {reason}", flush=True)
                outcome.skip(suite, str(reason))
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted; so far:")
    finally:
        runner.close()
    return finish(outcome, given, interrupted)


def loaded(paths):
    outcome = Outcome("", "")
    for path in paths:
        try:
            outcome.load(path)
        except (OSError, ValueError, KeyError) as error:
            fail(f"{path} holds no results: {error}")
    return outcome


def finish(outcome, given, interrupted=False):
    changes = "\n" + "\n".join(outcome.changes(loaded([given.against]))) + "\n" if given.against else ""
    return finished(outcome, given, interrupted, changes)


def interrupt(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
