#!/usr/bin/env python3
"""GCC's execution tests (gcc.c-torture) with every function recorded: each program behaves as it does bare.

    scripts/compat --torture [--count N] [--filter REGEX] [--way WAY]… [--jobs N] [--agent FILE] [--tool FILE]
                             [--results FILE] [--markdown FILE] [--verbose] [--keep]

The programs are in Debian's source package of the installed gcc, which comes from where the system's packages come from. Each is built
with gcc -O0, -O2, -O3 and clang -O2, planned, and run bare and with every function of its own and of its libraries recorded
(TRACER_FUNCTIONS='*!*'): exit status or signal, and output. What is not built, or fails bare, is skipped and counted. Where the
outcomes differ, both are run again, up to three times. A run that recorded none of the program's own functions is no success. Status 1
when a program differed, recorded nothing, or none ran; interrupted, it says what it has found so far (130).
"""
import argparse
import collections
import concurrent.futures
import json
import multiprocessing.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import asdict, dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "Tests/EndToEnd")]
import runs
import sources
import table  # in Tests/Compatibility
import tracefile
from outcome import finished, store
from trial import DIFFERS, FAILS_BARE, SAME, VARIES_BARE, Test, Unavailable, judge

# Makes clang accept what gcc 12 accepts with a warning.
OLD_C = ("-Wno-implicit-function-declaration", "-Wno-implicit-int", "-Wno-int-conversion", "-Wno-incompatible-function-pointer-types")
WAYS = {"gcc -O0": ("gcc", "-O0"), "gcc -O2": ("gcc", "-O2"), "gcc -O3": ("gcc", "-O3"), "clang -O2": ("clang", "-O2", *OLD_C)}
WITHIN = r"gcc/testsuite/gcc\.c-torture/execute/(.*)"
# Options of builtins.exp and ieee.exp, without their -fno-ipa-ra: values in scratch registers are to be tested.
BUILTINS = ("-fno-tree-dse", "-fno-tree-loop-distribute-patterns", "-fno-tracer", "-fno-inline-functions")
NOT_BUILT, NOTHING_RECORDED, DAMAGED = "not built", "nothing recorded", "trace damaged"
WRONG = (DIFFERS, NOTHING_RECORDED, DAMAGED)
VERDICTS = (SAME, *WRONG, NOT_BUILT, FAILS_BARE, VARIES_BARE)
LONGEST = 20  # seconds, of a bare run


@dataclass
class Outcome:
    program: str
    way: str
    verdict: str
    said: str = ""  # why it was skipped, what differed
    agent_said: list = field(default_factory=list)
    functions: int = 0  # functions of the program in its plan
    patched: int = 0
    refused: dict = field(default_factory=dict)  # reason: number
    calls: int = 0  # calls of its own functions
    library_calls: int = 0


def options(arguments):
    parser = argparse.ArgumentParser(prog="scripts/compat --torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=0, metavar="N", help="N programs from all over the suite; default: all")
    parser.add_argument("--filter", metavar="REGEX", default="", help="programs whose name matches")
    parser.add_argument("--way", action="append", choices=list(WAYS), help="only built so; may be given again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="how many at once (default: %(default)s)")
    runs.add_options(parser, "torture", "docs/measurements/functions.md")
    return parser.parse_args(arguments)


def unpacked(cache, name="torture", within=WITHIN):
    """(version, folder) of a suite, out of the archive within the archive that Debian's package of gcc is: what matches, by its first group."""
    compiler = sources.printed("gcc", "-dumpversion").split(".")[0]
    if not compiler:
        raise Unavailable("no gcc")
    version, description = sources.fetched("gcc-" + compiler, cache, lambda text: print(f"gcc: {text}", flush=True))
    folder = os.path.join(cache, name, version)
    if not os.path.isdir(folder):
        print("gcc: unpacking its tests", flush=True)
        part = tempfile.mkdtemp(prefix="part-", dir=os.makedirs(os.path.dirname(folder), exist_ok=True) or os.path.dirname(folder))
        try:
            for name in sorted(os.listdir(os.path.dirname(description))):
                if ".orig.tar" in name:
                    with tarfile.open(os.path.join(os.path.dirname(description), name)) as archive:
                        unpack(archive, part, within)
            if not os.listdir(part):
                raise Unavailable(f"the source package of gcc-{compiler} has no {within}")
            os.rename(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return version, folder


def unpack(archive, folder, within=WITHIN):
    for member in archive:
        found = re.search(within, member.name)
        if member.isfile() and re.search(r"\.tar\.\w+$", member.name):
            with tarfile.open(fileobj=archive.extractfile(member), mode="r|*") as inner:
                unpack(inner, folder, within)
        elif member.isfile() and found:
            path = os.path.join(folder, found[1])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                shutil.copyfileobj(archive.extractfile(member), file)


def programs(folder, given):
    """Names: those of execute/, ieee/ and builtins/, whose programs have a library of their own beside them."""
    found = []
    for group in ("", "ieee", "builtins"):
        names = sorted(os.listdir(os.path.join(folder, group)))
        found += [os.path.join(group, name[:-2]) for name in names
                  if name.endswith(".c") and not name.endswith("-lib.c") and (group != "builtins" or name[:-2] + "-lib.c" in names)]
    found = [name for name in found if re.search(given.filter, name)]
    if given.count and given.count < len(found):
        found = [found[index * len(found) // given.count] for index in range(given.count)]
    return found


def wanted_options(text):
    """Returns the compiler options that a program asks for (dg-options of DejaGnu), without those for some architectures only."""
    words = []
    for options, rest in re.findall(r'\{\s*dg-(?:additional-)?options\s+"([^"]*)"([^\n]*)', text):
        if "target" not in rest:
            words += options.split()
    return words


class Worker:
    """Runs programs one after the other; each process has one."""

    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.runner = runs.Runner(given.agent, given.cache, given.scratch, given.keep)
        self.built = os.path.join(self.runner.folder, "built")
        self.plans = os.path.join(self.runner.folder, "plans")
        os.mkdir(self.built)
        os.mkdir(self.plans, 0o700)
        self.environment = {**sources.clean(), "XDG_CACHE_HOME": self.plans}
        self.libraries = self.plan_libraries()

    def plan_libraries(self):
        """libc and libm, whose plans stay while those of the programs go."""
        path = os.path.join(self.built, "libraries")
        subprocess.run(["gcc", "-x", "c", "-", "-o", path, "-Wl,--no-as-needed", "-lm"], input=b"int main(void) { return 0; }", check=True)
        linked = [word for word in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.split() if word.startswith("/")]
        self.plan([os.path.realpath(word) for word in linked])
        os.unlink(path)
        return set(os.listdir(self.planned()))

    def planned(self):
        return os.path.join(self.plans, "tracer/plans")

    def plan(self, paths):
        """{path: its functions}"""
        done = subprocess.run([self.given.tool, "plan", *paths, "--json"], capture_output=True, text=True, env=self.environment, stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode:
            raise RuntimeError(f"tracer plan {' '.join(paths)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        functions = {path: [] for path in paths}
        for function in json.loads(done.stdout)["functions"]:
            functions[function["module"]].append(function)
        return functions

    def build(self, program, way):
        """(path, "") or ("", why not)."""
        source = os.path.join(self.folder, program + ".c")
        with open(source, errors="replace") as file:
            asked = wanted_options(file.read())
        files = [source]
        if program.startswith("ieee/"):
            asked.append("-fno-inline")
        if program.startswith("builtins/"):
            asked += BUILTINS if way.startswith("gcc") else ()
            files += [os.path.join(self.folder, program + "-lib.c"), os.path.join(self.folder, "builtins/lib/main.c")]
        path = os.path.join(self.built, f"{os.path.basename(program)}-{way.replace(' ', '')}")
        try:
            done = subprocess.run([*WAYS[way], "-w", *asked, *files, "-o", path, "-Wl,--build-id", "-Wl,--as-needed", "-lm"], capture_output=True, text=True, errors="replace",
                                  cwd=self.built, env=sources.clean(), stdin=subprocess.DEVNULL, timeout=120)
        except subprocess.TimeoutExpired:
            return "", "the compiler does not end"
        return (path, "") if done.returncode == 0 else ("", next((line for line in done.stderr.splitlines() if "error" in line or "undefined" in line), done.stderr[-200:]))

    def run(self, program):
        ways = self.given.way or list(WAYS)
        outcomes, paths = [], {}
        for way in ways:
            path, reason = self.build(program, way)
            if path:
                paths[way] = path
            else:
                outcomes.append(Outcome(program, way, NOT_BUILT, reason[-200:]))
        if paths:
            planned = self.plan(list(paths.values()))
            outcomes += [self.compare(program, way, path, planned[path]) for way, path in paths.items()]
        for path in paths.values():
            os.unlink(path)
        for name in set(os.listdir(self.planned())) - self.libraries:
            os.unlink(os.path.join(self.planned(), name))
        return outcomes

    def compare(self, program, way, path, functions):
        test = Test(program, [path], timeout=LONGEST, output=True, environment={"TRACER_FUNCTIONS": "*!*", "XDG_CACHE_HOME": self.plans})
        result, = judge("torture", test, self.runner.execute)
        refused = collections.Counter(function["reason"] for function in functions if function["tactic"] == "none")
        outcome = Outcome(program, way, result.verdict, "" if result.verdict == SAME else result.described() + "\n" + result.detail, result.said,
                          len(functions), len(functions) - refused.total(), dict(refused))
        if result.verdict == SAME:
            self.count(outcome, os.path.basename(path), any(function["name"] == "main" and function["tactic"] != "none" for function in functions))
        return outcome

    def count(self, outcome, module, main_is_patched):
        """The calls of the traced run, out of its traces. What compilers add to each program is called, too: `main` is not theirs."""
        mains = 0
        try:
            traces = tracefile.read_all(self.runner.traces, lambda _: False)
        except tracefile.Damaged as damage:
            outcome.verdict, outcome.said = DAMAGED, str(damage)
            return
        anomalies = [text for trace in traces for text in trace.anomalies]
        for trace in traces:
            for (name, where), calls in trace.counts_by_name_and_module().items():
                if where == module:
                    outcome.calls += calls
                    mains += name == "main"
                else:
                    outcome.library_calls += calls
        if anomalies:
            outcome.verdict, outcome.said = DAMAGED, f"{len(anomalies)} anomalies: {'; '.join(anomalies[:3])}"
        elif not (mains if main_is_patched else outcome.calls):
            outcome.verdict = NOTHING_RECORDED


worker = None


def begin(given, folder):
    global worker
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # whoever started us says what is to be
    worker = Worker(given, folder)
    multiprocessing.util.Finalize(None, worker.runner.close, exitpriority=1)


def interrupt(*_):
    raise KeyboardInterrupt


def run_one(program):
    return worker.run(program)


class Results:
    def __init__(self, version, path, agent):
        self.path, self.outcomes = path, []
        self.head = {"gcc": version, "agent": agent, "machine": table.machine()}

    def write(self):
        store({**self.head, "outcomes": [asdict(outcome) for outcome in self.outcomes]}, self.path)

    def of(self, way):
        return [outcome for outcome in self.outcomes if outcome.way == way]

    def different(self):
        return [outcome for outcome in self.outcomes if outcome.verdict in WRONG]

    def compared(self):
        return [outcome for outcome in self.outcomes if outcome.verdict in (SAME, *WRONG)]

    def markdown(self):
        count = len({outcome.program for outcome in self.outcomes})
        lines = [f"{count:,} programs of gcc {self.head['gcc']}, {len(self.compared()):,} builds compared, {len(self.different())} differ; agent {self.head['agent']}; "
                 f"{self.head['machine']}.", "",
                 "| | " + " | ".join(VERDICTS) + " | functions | patched | their calls recorded | of libraries |", "|---|" + "---:|" * (len(VERDICTS) + 4)]
        for way in WAYS:
            outcomes = self.of(way)
            if not outcomes:
                continue
            counts = collections.Counter(outcome.verdict for outcome in outcomes)
            ran = [outcome for outcome in outcomes if outcome in self.compared()]
            functions, patched = sum(o.functions for o in ran), sum(o.patched for o in ran)
            lines.append(f"| {way} | " + " | ".join(f"{counts[verdict]:,}" for verdict in VERDICTS)
                         + f" | {functions:,} | {100 * patched / max(functions, 1):.1f}% | {sum(o.calls for o in ran):,} | {sum(o.library_calls for o in ran):,} |")
        refused = collections.Counter()
        for outcome in self.compared():
            refused.update(outcome.refused)
        if refused:
            lines += ["", "Refused:", "", *(f"- {number:,}: {reason}" for reason, number in refused.most_common())]
        return "\n".join(lines) + "\n"


def line(outcome):
    text = f"  {outcome.program:40} {outcome.way:9} {outcome.verdict}"
    if outcome.said:
        text += "".join("\n      " + each for each in outcome.said.splitlines()[:12])
    return text + "".join("\n      the agent said: " + said for said in outcome.agent_said)


def main(arguments):
    given = options(arguments)
    for path in (given.agent, given.tool):
        if not os.path.exists(path):
            print(f"compat: no {path}: run scripts/build first", file=sys.stderr)
            return 2
    os.makedirs(given.cache, exist_ok=True)
    os.makedirs(os.path.dirname(os.path.abspath(given.results)), exist_ok=True)
    try:
        version, folder = unpacked(given.cache)
    except Unavailable as reason:
        print(f"compat: {reason}", file=sys.stderr)
        return 2
    found = programs(folder, given)
    if not found:
        print(f"compat: no program matches {given.filter}", file=sys.stderr)
        return 2
    agent = sources.printed("git", "-C", ROOT, "describe", "--always", "--dirty") or "unknown"
    results, interrupted = Results(version, given.results, agent), False
    print(f"gcc {version}: {len(found)} programs", flush=True)
    pool = concurrent.futures.ProcessPoolExecutor(given.jobs, initializer=begin, initargs=(given, folder))
    for number in (signal.SIGINT, signal.SIGTERM):  # what is started in the background ignores one of them
        signal.signal(number, interrupt)
    waiting = {pool.submit(run_one, program): program for program in found}
    try:
        for done in concurrent.futures.as_completed(waiting):
            results.outcomes += done.result()
            for outcome in done.result():
                if given.verbose or outcome.verdict in WRONG or outcome.agent_said:
                    print(line(outcome), flush=True)
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted; so far:")
    finally:
        pool.shutdown(cancel_futures=True)
    results.outcomes.sort(key=lambda outcome: (outcome.program, outcome.way))
    results.write()
    return finished(results, given, interrupted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
