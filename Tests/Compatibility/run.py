#!/usr/bin/env python3
"""Real programs in realistic use, bare and under the agent: the same output and status, calls recorded, slowdown.

    scripts/compat [--only NAME]… [--family NAME]… [--list] [--install] [--quick] [--markdown FILE] [--stored]
                   [--functions | --counts] [--arguments] [--attached] [--runs N] [--keep]

Programs that need something which is not on the machine are skipped, with the reason; --install takes Debian's packages
and PyPI's first. Every run is of all of a program's processes: a server and its clients alike. Slowdown is the median
of the traced runs over that of the bare ones, taken in turn: `wall` by the clock, `cpu` by CPU time of what was
waited for. It is shown, never judged. Traces go to a scratch folder and are deleted as soon as they are read.
With --functions every function of every module is recorded (TRACER_FUNCTIONS='*!*'): a traced run that is not judged shows which
modules there are, their plans are made, and then it runs as above, into a ring of 64 MB for each process. How many functions of the
program were recorded stands in the table; a program of which there is none has not passed. --counts: the same, and only which of them were called.
With --arguments calls of functions whose prototypes are built in are recorded with their arguments and results. With --attached
the agent is not there from the start: `tracer attach` takes up each process for 200 ms, one after the other and again and again.
Status 1 when a program behaved differently, or none ran.
"""
import argparse
import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "EndToEnd")]
import arguments_plan
import comparison
import execution
import families
import packages
import table


@dataclass
class Settings:
    agent: str
    tool: str
    cache: str
    scratch: str
    runs: int
    keep: bool
    commit: str
    functions: bool = False
    counts: bool = False  # record only which functions were called
    attached: bool = False  # processes are attached to while they run
    arguments: str = ""  # path of the plan by which arguments and results are recorded; "": they are not


def commit():
    """Returns the commit of the sources, marked if they have changed since; "unknown" if git cannot say."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def programs():
    found = []
    for module in sorted(name for _, name, _ in pkgutil.iter_modules(families.__path__)):
        for program in importlib.import_module("families." + module).programs():
            program.family = module
            found.append(program)
    return found


def options(arguments):
    parser = argparse.ArgumentParser(prog="scripts/compat", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="this program; may be given again")
    parser.add_argument("--family", action="append", metavar="NAME", help="the programs of families/NAME.py")
    parser.add_argument("--quick", action="store_true", help="ten programs that are installed anyhow, once each")
    parser.add_argument("--list", action="store_true", help="name the programs and what they need, run nothing")
    parser.add_argument("--install", action="store_true", help="install what is missing (Debian, PyPI)")
    parser.add_argument("--markdown", metavar="FILE", help="write the table for docs/measurements/programs.md there; - is stdout")
    parser.add_argument("--stored", action="store_true", help="run nothing: show what was found when each program was run last")
    parser.add_argument("--commit", metavar="NAME", help="what the agent under test is called in the table (default: this checkout's commit)")
    parser.add_argument("--functions", action="store_true", help="every function of every module is recorded, not the calls of slots alone")
    parser.add_argument("--counts", action="store_true", help="of every function of every module is recorded whether it was called (TRACER_MODE=counts)")
    parser.add_argument("--arguments", action="store_true", help="with arguments and results of all functions whose prototypes are built in (record --arguments '*')")
    parser.add_argument("--attached", action="store_true", help="attach to each process while it runs, again and again (with --functions: to all of its functions)")
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="bare and traced runs of each; default: the program's own number")
    parser.add_argument("--keep", action="store_true", help="keep each program's folder")
    parser.add_argument("--cache", default=os.path.expanduser("~/.cache/tracer-compat"), metavar="DIRECTORY", help="PyPI packages (default %(default)s)")
    parser.add_argument("--scratch", default="/tmp", metavar="DIRECTORY", help="where programs run and traces are written (default %(default)s)")
    parser.add_argument("--agent", default=os.path.join(ROOT, ".build/release/libtracer.so"), metavar="FILE")
    parser.add_argument("--tool", default=os.path.join(ROOT, ".build/release/tracer"), metavar="FILE")
    return parser.parse_args(arguments)


def chosen(given):
    every = programs()
    unknown = (set(given.only or ()) - {p.name for p in every}) | (set(given.family or ()) - {p.family for p in every})
    if unknown:
        print(f"compat: no program or family {', '.join(sorted(unknown))}; --list names them", file=sys.stderr)
        sys.exit(2)
    return [p for p in every if (not given.only and not given.family and (not given.quick or p.quick)) or p.name in (given.only or ()) or p.family in (given.family or ())]


def provide(wanted, given, path):
    """Installs what is wanted and missing; {program: reason} of what cannot run."""
    missing = {p.name: p.missing(path) for p in wanted}
    if given.install:
        names = sorted({package for lack in missing.values() for _, package in lack if package})
        if names:
            print(f"installing {' '.join(names)}", flush=True)
            for reason in packages.debian_each(names):
                print(f"compat: {reason}", file=sys.stderr)
        missing = {p.name: p.missing(path) for p in wanted}
    reasons = {name: "needs " + ", ".join(f"{what} (package {package})" if package else what for what, package in lack) for name, lack in missing.items() if lack}
    for program in wanted:
        if program.python and program.name not in reasons:
            if reason := packages.python(given.cache, program.python.split(), given.install):
                reasons[program.name] = reason
    return reasons


def main(arguments):
    given = options(arguments)
    wanted = chosen(given)
    path = execution.environment(given.cache, "/")["PATH"]
    if given.list:
        for program in wanted:
            lack = program.missing(path)
            print(f"{program.name:26} {program.family:12} " + ("missing: " + ", ".join(what for what, _ in lack) if lack else program.needs or "-"))
        return 0
    if given.stored:
        return finish([r for r in (load(p, given) for p in wanted) if r], given)
    for what in (given.agent, given.tool):
        if not os.path.exists(what):
            print(f"compat: no {what}: run scripts/build first", file=sys.stderr)
            return 2
    os.makedirs(given.cache, exist_ok=True)
    settings = Settings(os.path.abspath(given.agent), os.path.abspath(given.tool), given.cache, given.scratch, given.runs or (1 if given.quick else 0), given.keep,
                        given.commit or commit(), given.functions or given.counts, given.counts, given.attached,
                        arguments_plan.made(os.path.abspath(given.tool), given.cache) if given.arguments else "")
    reasons = provide(wanted, given, path)
    results = []
    for program in wanted:
        result = comparison.Result(program.name, program.family, skipped=reasons[program.name]) if program.name in reasons \
            else comparison.compare(program, settings)
        results.append(result)
        if not result.skipped and not (settings.functions or settings.arguments or settings.attached):
            store(result, given)
        print(table.line(result), flush=True)
    return finish(results, given)


def stored_name(name, given):
    return os.path.join(given.cache, "results", name.replace("/", "_"))


def store(result, given):
    os.makedirs(os.path.join(given.cache, "results"), exist_ok=True)
    with open(stored_name(result.name, given), "wb") as file:
        pickle.dump(result, file)


def load(program, given):
    try:
        with open(stored_name(program.name, given), "rb") as file:
            return pickle.load(file)
    except OSError:
        return None


def finish(results, given):
    ran = [r for r in results if not r.skipped]
    failed = [r for r in ran if not r.passed and not r.known]
    if given.stored:
        for result in results:
            print(table.line(result))
    print(f"{len(ran) - len(failed)} passed, {len(failed)} failed, {len(results) - len(ran)} skipped")
    if given.markdown:
        with open("/dev/stdout" if given.markdown == "-" else given.markdown, "w") as file:
            file.write(table.markdown(results))
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
