#!/usr/bin/env python3
"""Programs in clean root file systems of several distributions, bare and under the agent: the same output and status,
and calls recorded.

    scripts/distributions [--quick] [--only SYSTEM]… [--root NAME=PATH]… [--filter REGEX] [--list] [--keep] [--fresh]
                          [--table FILE] [--arguments | --attached] [--arch aarch64] [--packages [DIRECTORY]]

Systems: Debian 11, 12, 13 and sid (bullseye, bookworm, trixie, sid), made by mmdebstrap from the mirror that this
machine's apt uses, and kept in a cache; one that this mirror does not have is skipped. Others (Ubuntu, Fedora) by --root:
an unpacked root file system, or a tarball of one; what is not installed there is skipped.
Runs as root, or makes itself root by sudo or a name space of users. Status 1 when anything differed or nothing ran.
"""
import argparse
import concurrent.futures
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "EndToEnd")]
import arguments_plan
import arm
import build
import comparison
import packages
import roots
import scripts
import subjects
import table


class Settings:
    """Settings that all runs share."""

    def __init__(self, given):
        self.given, self.agent, self.subjects = given, os.path.abspath(given.agent), given.subjects
        self.folder = tempfile.mkdtemp(prefix="tracer-distributions-")
        os.chmod(self.folder, 0o755)
        self.speech = threading.Lock()
        # Its path; "": no arguments are recorded.
        self.arguments = arguments_plan.made(given.tool, self.folder) if given.arguments else ""

    def say(self, text):
        with self.speech:
            print(text, flush=True)

    @contextlib.contextmanager
    def scratch(self, *names):
        path = tempfile.mkdtemp(prefix="-".join(names) + "-", dir=self.folder)
        os.chmod(path, 0o755)
        try:
            yield path
        finally:
            if not self.given.keep:
                shutil.rmtree(path, ignore_errors=True)

    def done(self):
        if self.given.keep:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def options(arguments):
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tracer", "distributions")
    parser = argparse.ArgumentParser(prog="scripts/distributions", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the programs that small roots have; a layer of scripts/test")
    parser.add_argument("--only", action="append", metavar="SYSTEM", help="this one of Debian's suites; may be given again")
    parser.add_argument("--root", action="append", default=[], metavar="NAME=PATH", help="another system, unpacked or as a tarball; with it Debian's only by --only")
    parser.add_argument("--filter", default="", metavar="REGEX", help="programs whose name it matches")
    parser.add_argument("--subjects", default="", metavar="NAMES", help="of the program `subjects`, those that this expression of pytest's -k chooses")
    parser.add_argument("--list", action="store_true", help="name systems, programs and their packages; run nothing")
    parser.add_argument("--keep", action="store_true", help="leave outputs and traces, and say where")
    parser.add_argument("--fresh", action="store_true", help="make the roots anew, with what the mirror has today")
    parser.add_argument("--table", metavar="FILE", help="write the table for docs/measurements/programs.md there; - is standard output")
    parser.add_argument("--arguments", action="store_true", help="record arguments and results of all functions whose prototypes are built in, as record --arguments '*'")
    parser.add_argument("--attached", action="store_true", help="attach to each process while it runs, from outside of its root, again and again")
    parser.add_argument("--arch", choices=["aarch64"], help="programs of Debian's arm64, under qemu")
    parser.add_argument("--packages", nargs="?", const=os.path.join(build.ROOT, ".build/package"), metavar="DIRECTORY",
                        help="install the packages of scripts/package in clean roots, record and report there (default: .build/package)")
    parser.add_argument("--mirror", metavar="URL", help="of Debian, where apt knows none")
    parser.add_argument("--cache", default=cache, metavar="DIRECTORY", help="where the roots are kept (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="systems at once (default %(default)s)")
    parser.add_argument("--agent", metavar="FILE", help="default: .build/release/libtracer.so, or that of --arch")
    given = parser.parse_args(arguments)
    given.only = given.only or ([] if given.root else list(roots.SUITES))
    if unknown := set(given.only) - set(roots.SUITES):
        parser.error(f"no system {', '.join(sorted(unknown))}; there are {', '.join(roots.SUITES)}, others by --root")
    given.roots = dict(root.partition("=")[::2] for root in given.root)
    for name, path in given.roots.items():
        if not os.path.exists(path):
            parser.error(f"--root {name}={path}: there is no such file or folder; write NAME=PATH")
    given.tool = os.path.join(build.ROOT, ".build/release/tracer")
    given.agent = given.agent or os.path.join(build.ROOT, ".build", given.arch or "release", "libtracer.so")
    return given


def every(given):
    """The subjects have settings of their own."""
    return [*scripts.every(), *([] if given.arguments or given.attached else [subjects.Subjects()])]


def test_system(suite, chosen, settings, store):
    results, path = [], settings.given.roots.get(suite)
    try:
        with roots.given_root(suite, path) if path else store.root(suite, chosen.packages(suite), chosen.kind, **chosen.root_options) as root:
            for program in chosen.programs:
                result = program.run(root, settings)
                result.root = root
                results.append(result)
                settings.say(result.line())
    except (roots.Skipped, roots.Failed) as reason:
        results.append(comparison.Result(suite, "all", "skipped" if isinstance(reason, roots.Skipped) else "BROKEN", str(reason)))
        settings.say(results[-1].line())
    return results


def main(arguments):
    given = options(arguments)
    if given.arch:
        chosen = arm.Emulated(given)
    elif given.packages:
        chosen = packages.Installed(given)
    else:
        chosen = comparison.Programs(given, [program for program in every(given) if program.quick or not given.quick])
    if given.list:
        for name in [*given.only, *given.roots]:
            print(f"{name}: {given.roots.get(name) or roots.SUITES[name]}")
        for program in chosen.programs:
            print(f"{program.name}: " + " ".join(sorted({name for suite in roots.SUITES for name in program.packages_in(suite)})))
        return 0
    if not chosen.programs:
        print(f"distributions: no program matches {given.filter}; --list names them", file=sys.stderr)
        return 2
    if not given.packages and not os.path.exists(given.agent):
        print(f"distributions: no {given.agent}: run scripts/build{f' --arch {given.arch}' if given.arch else ''} first", file=sys.stderr)
        return 2
    os.makedirs(given.cache, exist_ok=True)  # before it is root: the folders above it stay the user's
    roots.become_root()
    began = time.monotonic()
    settings = Settings(given)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: (settings.done(), os._exit(128 + number)))  # without waiting for the threads
    try:
        store = roots.Store(given.cache, given.mirror, given.fresh, settings.say)
        with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
            found = list(pool.map(lambda name: test_system(name, chosen, settings, store), [*given.only, *given.roots]))
    finally:
        settings.done()
    results = [result for system in found for result in system]
    if given.table == "-":
        print("\n" + table.markdown(results))
    elif given.table:
        with open(given.table, "w") as file:
            file.write(table.markdown(results))
    return summary(results, time.monotonic() - began)


def summary(results, seconds):
    counted = {verdict: sum(r.verdict == verdict for r in results) for verdict in ("same", "DIFFERENT", "BROKEN", "skipped")}
    ran = [r for r in results if r.program != "all"]
    print(f"\n{len({r.system for r in ran})} systems: {counted['same']} the same, {counted['DIFFERENT']} different, "
          f"{counted['BROKEN']} broken without the agent, {counted['skipped']} skipped; {seconds:.0f} s")
    for result in results:
        if result.verdict in ("DIFFERENT", "BROKEN"):
            print(f"  {result.verdict}: {result.system} {result.program}")
    return 1 if counted["DIFFERENT"] or counted["BROKEN"] or not counted["same"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
