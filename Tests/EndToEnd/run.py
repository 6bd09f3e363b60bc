#!/usr/bin/env python3
"""End-to-end tests: programs that do what a tracer must survive, with and without the agent.

    Tests/EndToEnd/run.py [--filter REGEX] [--list] [--keep] [--bare] [--jobs N]
                          [--agent libtracer.so] [--tool tracer] [--only subjects,agent_binary,agent_memory,programs,bad_input,security,scan_cache,durability,handover,runs,functions,counts,call_sites,startup,waits,decoder,analysis,arm_programs]

Each test runs a program bare, then under the agent, and compares stdout, stderr and exit status; the recorded calls
are compared with golden/NAME.tree (golden.py says how to read one), with the counts that the subject itself kept
(SUBJECT_COUNTS), and with what `tracer report --json` says. build.py describes the header of a subject.
"""
import argparse
import concurrent.futures
import importlib
import multiprocessing
import os
import re
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build
import golden
import harness
from harness import Failed, Outcome, Skipped

SUITES = ("subjects", "agent_binary", "agent_memory", "programs", "conventions", "bad_input", "security", "scan_cache", "durability", "losses", "costs", "handover", "runs", "functions", "counts", "call_sites", "startup", "waits", "decoder", "analysis", "arm_programs")


class SubjectTest:
    def __init__(self, case):
        self.case, self.name = case, case.name

    def run(self, settings):
        case = self.case
        reason = build.missing(case, harness.processor_flags())
        if reason:
            raise Skipped(reason)
        expected, source = self.golden()
        try:
            program = build.build(case)
        except build.BuildFailed as failure:
            lacking = re.search(r"cannot find (-l\S+)|cannot open \S*(libclang_rt\S+?)[:,]", str(failure))
            if harness.EMULATOR and lacking:
                raise Skipped(f"no {lacking[1] or lacking[2]} for {build.MACHINE}")
            raise Failed(f"does not build: {failure}")
        place = harness.Place(case.name, settings.keep)
        try:
            self.compare(settings, place, program, expected)
        finally:
            place.done()

    def golden(self):
        names = [self.case.name, ".".join([self.case.subject.name, self.case.compiler]), ".".join(filter(None, [self.case.subject.name, self.case.case])), self.case.subject.name]
        for name in names:
            path = os.path.join(build.GOLDEN, name + ".tree")
            if os.path.exists(path):
                with open(path) as file:
                    try:
                        return golden.parse(file.read()), path
                    except ValueError as error:
                        raise Failed(f"{os.path.basename(path)}: {error}")
        if self.case.subject.all("tree") or self.case.subject.all("untraced"):
            return golden.Golden(), None
        raise Failed("no golden file, and no `tree: none` with a reason")

    def compare(self, settings, place, program, expected):
        case, subject = self.case, self.case.subject
        words = subject.get("status", "0").split()
        status = -int(words[1]) if words[0] == "signal" else int(words[0])
        environment = {**harness.passed_on(os.environ), **{k: v.replace("{build}", case.folder) for k, v in case.environment.items()}}
        options = dict(timeout=float(subject.get("timeout", harness.HANGS)),
                       memory=0 if subject.get("memory") == "unlimited" or settings.counts else 16 * harness.GIGABYTE)
        argv = [program] + [a.replace("{build}", case.folder) for a in case.arguments]
        preload = subject.get("preload", "@").replace("{build}", case.folder)
        others = preload.replace("@", "").split()
        bare_environment = {**environment, "LD_PRELOAD": " ".join(others)} if others else environment
        try:
            bare = harness.execute(argv, place.fresh(), bare_environment, **options)
        except Failed:
            if not harness.EMULATOR:
                raise
            raise Skipped("the program alone does not end under the emulator")
        if bare.status != status and harness.EMULATOR:
            raise Skipped(f"the program alone does not run under the emulator: {harness.describe(bare.status)}")
        if bare.status != status and settings.instrumented:
            raise Skipped(f"the program alone does not run when it is instrumented: {harness.describe(bare.status)}")
        if bare.status != status:
            raise Failed(f"bare: {harness.describe(bare.status)}, expected {harness.describe(status)}\n"
                         + (bare.stdout[-400:] + bare.stderr[-800:]).decode(errors="replace"))
        if settings.bare_only:
            return
        if settings.functions:
            harness.plan(settings, program, case.folder)
        traced = harness.execute(argv, place.fresh(), harness.traced_environment(settings, environment, place, preload),
                                 **options)
        stopped = subject.all("says") and harness.without_agents_lines(traced, int(subject.get("says").split()[0]))
        faults = harness.same(bare, traced)
        traces, wrong = harness.check_traces(settings, place, lambda path: path.startswith(case.folder + "/"), drops=stopped or bool(subject.all("unsaid")),
                                            disorder=build.is_meant(case, "disorder"))
        faults += wrong
        if subject.all("untraced"):
            if traces:
                faults.append(f"{len(traces)} traces, none expected")
        elif not traces:
            faults.append("no trace was written")
        elif settings.instrumented:
            if not any(trace.addressed for trace in traces):
                faults.append("no function was recorded by its instrumentation")
        elif settings.functions:  # a way that patches nothing would pass all else
            if not any(patched for trace in traces for _, patched in trace.patched.values()):
                faults.append("no function was recorded by itself")
        else:  # the trees are of calls through slots
            for name, (low, high) in traced.counts.items():
                if ":" in name:  # a time, of the clock whose rate the trace states to one part in a thousand
                    recorded = golden.initializer_times(traces[0], name)
                    low, high = low * 0.999, high * 1.001
                elif name.endswith("+dropped"):  # of the functions, recorded or only counted; calls of others may be among these
                    recorded = sum(t.count(part) for t in traces for part in name.split("+")[:-1])
                    recorded += sum(t.dropped + t.filtered_by_time for t in traces)
                    high += 1000
                else:
                    recorded = sum(t.count(name) for t in traces)
                if not low <= recorded <= high:
                    faults.append(f"{name}: called {low}{'' if low == high else f' to {high}'} times, recorded {recorded}")
            if bare.counts.keys() != traced.counts.keys():
                faults.append(f"counts of {sorted(bare.counts)} bare, of {sorted(traced.counts)} traced")
            faults += golden.compare(expected, traces)
        if faults:
            raise Failed("\n".join(faults))


def collect(only):
    tests = []
    if "subjects" in only:
        for subject in build.subjects():
            tests += [SubjectTest(case) for case in subject.cases()]
    for suite in SUITES[1:]:
        if suite in only and os.path.exists(os.path.join(build.HERE, suite + ".py")):
            tests += importlib.import_module(suite).tests()
    return tests


def perform(index):
    test = TESTS[index]
    began = time.monotonic()
    try:
        outcome = Outcome("passed", test.run(SETTINGS) or "")  # what a test has measured and does not judge is told
    except Skipped as reason:
        outcome = Outcome("skipped", str(reason))
    except Failed as failure:
        outcome = Outcome("failed", str(failure))
    except Exception:
        outcome = Outcome("failed", traceback.format_exc())
    return index, outcome, time.monotonic() - began


def main(suites=SUITES):
    global TESTS, SETTINGS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="run the tests whose name matches this regular expression")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--keep", action="store_true", help="leave traces and outputs in the temporary folder")
    parser.add_argument("--bare", action="store_true", help="without the agent: only that the programs themselves work")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default=",".join(suites), help="suites, of " + ", ".join(SUITES))
    parser.add_argument("--moments", type=int, default=0, help="how often durability.kill_9 kills (default: some dozens)")
    parser.add_argument("--functions", action="store_true", help="record every function of every module; trees and counts are not compared")
    parser.add_argument("--counts", action="store_true", help="likewise, and only which functions were called (TRACER_MODE=counts)")
    parser.add_argument("--instrumented", action="store_true",
                        help="subjects are built with -finstrument-functions; trees and counts are not compared")
    parser.add_argument("--call-sites", action="store_true", help="record call sites; trees and counts are the same")
    parser.add_argument("--arch", choices=["aarch64"], help="test the agent of another machine, with qemu-user-static")
    parser.add_argument("--cpu", default="max", help="the processor that qemu plays (max; cortex-a57 has neither LSE nor SVE)")
    parser.add_argument("--agent")
    parser.add_argument("--tool", default=harness.Settings.tool, help="empty: without it, the independent decoder alone reads the traces")
    arguments = parser.parse_args()
    agent = harness.Settings.agent
    if arguments.arch and arguments.arch != build.MACHINE:
        build.cross_compile(arguments.arch)
        harness.emulate(arguments.arch, arguments.cpu, f"/usr/{arguments.arch}-linux-gnu")
        agent = os.path.join(build.ROOT, ".build", arguments.arch, "libtracer.so")
    if arguments.instrumented:
        build.instrument()
    arguments.agent = arguments.agent or agent
    TESTS = [t for t in collect(arguments.only.split(",")) if re.search(arguments.filter, t.name)]
    if arguments.list:
        print("\n".join(t.name for t in TESTS))
        return 0
    SETTINGS = harness.Settings(os.path.abspath(arguments.agent), arguments.tool and os.path.abspath(arguments.tool), arguments.bare, arguments.keep,
                                arguments.functions or arguments.counts, arguments.moments, arguments.instrumented, arguments.counts, arguments.call_sites)
    for path in () if arguments.bare else (SETTINGS.agent, SETTINGS.tool):
        if path and not os.path.exists(path):
            print(f"run.py: no {path}; build it (swift build -c release) or pass --bare", file=sys.stderr)
            return 2
    os.makedirs(build.BUILD, exist_ok=True)
    verdicts = {"passed": 0, "failed": 0, "skipped": 0}
    folders = {}  # tests that share a build folder go to one worker in a row: none builds under another's feet
    for index, test in enumerate(TESTS):
        folders.setdefault(test.case.folder if isinstance(test, SubjectTest) else test.name, []).append(index)
    # They take the list of tests over from this process, which from Python 3.14 on is not what happens by itself.
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("fork")) as pool:
        waiting = [pool.submit(perform_all, group) for group in folders.values()]
        for future in concurrent.futures.as_completed(waiting):
            for index, outcome, seconds in future.result():
                verdicts[outcome.verdict] += 1
                label = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}[outcome.verdict]
                detail = f"  ({outcome.text})" if outcome.text and outcome.verdict != "failed" else ""
                print(f"{label} {TESTS[index].name}  {seconds:.1f}s{detail}", flush=True)
                if outcome.verdict == "failed":
                    print("\n".join("       " + line for line in outcome.text.splitlines()), flush=True)
    print(f"{verdicts['passed']} passed, {verdicts['failed']} failed, {verdicts['skipped']} skipped")
    return 1 if verdicts["failed"] else 0


def perform_all(group):
    return [perform(index) for index in group]


if __name__ == "__main__":
    sys.exit(main())
