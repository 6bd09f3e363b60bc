#!/usr/bin/env python3
"""Calls that are open when their thread or process ends last until then, in every reader; and the tool says how the process ended.

Lengths are compared with those of other calls in the same trace, never with a clock: a machine may be busy."""
import csv
import io
import json
import os
import re
import subprocess
import sys

import build
import harness
import impossible
from harness import Skipped, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402


class Recorded:
    """One recorded run, and what the tool says of it."""

    def __init__(self, settings, name):
        self.settings, self.directory = settings, harness.Directory(name, settings.keep)
        self.trace = os.path.join(self.directory.traces, "app.trace")
        self.environment = harness.passed_on(os.environ)

    def program(self, subject):
        return build.build(next(case for known in build.subjects() if known.name == subject for case in known.cases()))

    def start(self, options, command, **streams):
        self.directory.fresh()
        return subprocess.Popen([self.settings.tool, "record", "--quiet", "--force", *options, "-o", self.trace, "--", *command],
                                cwd=self.directory.path, env=self.environment, stderr=subprocess.PIPE, **streams)

    def record(self, options, *command, status=0):
        running = self.start(options, command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        _, said = running.communicate(timeout=harness.HANGS)
        expect(running.returncode == status, f"{harness.describe(running.returncode)}: {said[-300:]}")

    def text(self, *arguments):
        done = subprocess.run([self.settings.tool, *arguments], capture_output=True, text=True, timeout=harness.HANGS, env=self.environment)
        expect(done.returncode == 0, f"tracer {' '.join(arguments)}: {harness.describe(done.returncode)}: {done.stderr[-300:]}")
        return done.stdout

    def json(self, command, *arguments):
        return json.loads(self.text(command, self.trace, "--json", *arguments))

    def process(self):
        return self.json("report")["processes"][0]

    def headline(self):
        return self.text("report", self.trace).splitlines()[0]

    def consistent(self, name):
        known = impossible.known(name)
        figures = impossible.read(self.settings.tool, self.trace, self.environment)
        found = [fault for fault in impossible.contradictions(figures) if fault[0] not in known]
        expect(not found, f"contradictions: {found[:4]}")


# Calls of a function: [(beginning, length, how it ended)] in ns of the trace; from a format that has no beginnings, 0.
def replayed(recorded, name):
    lines = [json.loads(line) for line in recorded.text("replay", recorded.trace, "--json").splitlines()]
    return [(line["time_ns"], line["duration_ns"], line["ended"]) for line in lines if line["name"] == name]


def listed(recorded, name):
    rows = csv.DictReader(io.StringIO(recorded.text("export", recorded.trace, "--format", "csv", "-o", "-"), newline=""))
    return [(int(row["start_ns"]), int(row["duration_ns"]), row["ended"]) for row in rows if row["function"] == name]


def in_tree(recorded, name):
    tree = recorded.json("tree")
    return [(0, node["total_ns"], "open" if node["open"] else "unwound" if node["unwound"] else "returned") for node in tree["nodes"]
            if node["function"] >= 0 and tree["functions"][node["function"]]["name"] == name]


def in_chrome(recorded, name):
    found, open_calls = [], {}
    for event in json.loads(recorded.text("export", recorded.trace, "--format", "chrome", "-o", "-"))["traceEvents"]:
        calls = open_calls.setdefault(event.get("tid"), [])
        if event["ph"] == "X" and event["name"] == name:
            found.append((round(event["ts"] * 1000), round(event["dur"] * 1000), "returned"))
        elif event["ph"] == "B":
            calls.append(event)
        elif event["ph"] == "E":
            begin = calls.pop()
            if begin["name"] == name:
                how = {"still": "open", "unwound:": "unwound"}.get(event.get("args", {}).get("ended", "").split(" ")[0], "returned")
                found.append((round(begin["ts"] * 1000), round((event["ts"] - begin["ts"]) * 1000), how))
    expect(not any(open_calls.values()), "slices without an end")
    return found


def in_speedscope(recorded, name):
    whole = json.loads(recorded.text("export", recorded.trace, "--format", "speedscope", "-o", "-"))
    frames, found = [frame["name"] for frame in whole["shared"]["frames"]], []
    for profile in whole["profiles"]:
        stack = []
        for event in profile["events"]:
            if event["type"] == "O":
                stack.append(event)
            else:
                begin = stack.pop()
                if frames[begin["frame"]] == name:
                    found.append((begin["at"], event["at"] - begin["at"], None))
    return found


READERS = {"replay": replayed, "csv": listed, "tree": in_tree, "chrome": in_chrome, "speedscope": in_speedscope}
ROUNDING = 2000  # ns: chrome has microseconds with three decimals


def lengths(recorded, name):
    """The calls of a function, of which all readers say the same: how long each took, and how it ended."""
    found = {reader: read(recorded, name) for reader, read in READERS.items()}
    ours = sorted(call[1:] for call in found["replay"])
    for reader, calls in found.items():
        theirs = sorted(((length, how) for _, length, how in calls), key=lambda call: call[0])
        if len(theirs) < len(ours) and reader == "tree":  # calls of one path together
            same = abs(sum(length for length, _ in theirs) - sum(length for length, _ in ours)) <= ROUNDING
        else:
            same = len(theirs) == len(ours) and all(abs(one[0] - other[0]) <= ROUNDING and other[1] in (one[1], None) for one, other in zip(ours, theirs))
        expect(same, f"{name}: {theirs} by {reader}, {ours} by replay")
    row, = [row for row in recorded.json("report")["functions"] if row["name"] == name]
    expect(abs(row["total_ns"] - sum(length for length, _ in ours)) <= ROUNDING, f"{name}: {row['total_ns']} ns by report, {ours}")
    folded = [line.rsplit(" ", 1) for line in recorded.text("export", recorded.trace, "--format", "folded", "-o", "-").splitlines()]
    innermost = sum(int(weight) for stack, weight in folded if stack.endswith("`" + name))
    expect(innermost == row["self_ns"], f"{name}: self {row['self_ns']} ns by report, {innermost} ns in the flame graph")
    return ours


def only(recorded, name):
    (length, how), = lengths(recorded, name)
    return length, how


def deadlock_lasts_until_the_process_is_killed(recorded, name, *options):
    recorded.record(options, recorded.program("deadlock"), status=143)
    slept, how = only(recorded, "dead_sleep")
    expect(how == "returned" and slept >= 300_000_000, f"main slept {slept} ns, {how}")
    for function in "dead_save", "dead_click":
        length, how = only(recorded, function)
        expect(length >= slept and how == "open", f"{function} took {length} ns, {how}; main slept for {slept} ns meanwhile")
    locks = [length for length, how in lengths(recorded, "pthread_mutex_lock") if how == "open"]
    least = slept // 2  # a thread may have lost its CPU just before it asked for its second lock
    expect(len(locks) == 2 and min(locks) >= least, f"locks waited for: {locks}; main slept for {slept} ns meanwhile")
    report = recorded.json("report")
    expect(report["duration_ns"] >= max(locks), f"{report['duration_ns']} ns in all, a call of {max(locks)} ns")
    process = recorded.process()
    expect((process["status"], process["ended"], process["signal"]) == (143, "killed", 15), process)
    expect(recorded.headline().endswith("killed by signal 15 (SIGTERM)"), recorded.headline())
    if not options and kernel_reports():
        waits = sorted(wait["duration_ns"] for wait in recorded.json("waits")["waits"] if wait["kind"] == "lock" and wait["function"] == "pthread_mutex_lock")
        expect(len(waits) >= 2 and waits[-2] >= least and waits[-1] <= max(locks) + ROUNDING, f"waits {waits}, calls {locks}")
    recorded.consistent(name)


def deadlock_lasts_until_now(recorded, name):
    running = recorded.start((), [recorded.program("deadlock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        expect(running.stdout.readline() == b"ready\n", "not ready")
        seen = []
        for _ in range(2):
            report = recorded.json("report")
            expect(report["processes"][0]["ended"] == "running", report["processes"][0])
            rows = {row["name"]: row["total_ns"] for row in report["functions"]}
            expect(rows["dead_save"] >= rows["dead_sleep"] <= rows["dead_click"] <= report["duration_ns"], rows)
            seen.append(rows["dead_save"])
        expect(seen[1] > seen[0], f"no later than before: {seen}")
        expect(recorded.headline().endswith("still running"), recorded.headline())
    finally:
        running.communicate(timeout=harness.HANGS)
    length, how = only(recorded, "dead_save")
    expect(length > seen[1] and how == "open" and recorded.process()["ended"] == "killed", f"{length} ns, {how}; {seen[1]} ns before")


def calls_end_with_their_threads(recorded, name, *options):
    recorded.record(options, recorded.program("thread_ends"))
    sleeps = sorted((start, length) for start, length, _ in replayed(recorded, "ends_sleep"))
    expect(len(sleeps) == 3, sleeps)
    middle = [start + length // 2 for start, length in sleeps]

    def end(function):
        only(recorded, function)
        (start, length, how), = replayed(recorded, function)
        expect(how == "unwound", f"{function}: {how}")
        return start + length
    pauses = [length for length, _ in lengths(recorded, "ends_pause")]
    length, _ = only(recorded, "ends_exit")
    expect(min(pauses) <= length and end("ends_exit") < middle[0], f"ends_exit took {length} ns, until {end('ends_exit')}; main slept at {sleeps}")
    expect(end("pthread_exit") < middle[0], "pthread_exit lasted until the process went on")
    expect(end("ends_wait") < middle[2], f"ends_wait lasted until {end('ends_wait')}; main slept at {sleeps}")
    if not options and kernel_reports():  # otherwise nobody knows
        expect(end("ends_wait") > middle[1], f"ends_wait lasted until {end('ends_wait')}; main slept at {sleeps}")
    recorded.consistent(name)


def how_a_process_ended_is_said(recorded, name):
    for command, status, ended, signal, words in (
            ("exit 3", 3, "exited", None, "exit status 3"), ("exit 143", 143, "exited", None, "exit status 143"),
            ("kill -9 $$", 137, "killed", 9, "killed by signal 9 (SIGKILL)"), ("kill -ABRT $$", 134, "killed", 6, "killed by signal 6 (SIGABRT)")):
        recorded.record((), "/bin/sh", "-c", command, status=status)
        process = recorded.process()
        expect((process["status"], process["ended"], process["signal"]) == (status, ended, signal), process)
        expect(recorded.headline().endswith(words), recorded.headline())
    recorded.record((), "/bin/true")
    expect(recorded.headline().endswith(" 0 dropped") and recorded.process()["ended"] == "exited", recorded.headline())
    if kernel_reports():
        # The other program is not recorded: its environment lacks the agent.
        recorded.record((), "/bin/sh", "-c", "LD_PRELOAD= exec sleep 0")
        expect(recorded.headline().endswith("executed sleep") and recorded.process()["ended"] == "executed", recorded.headline())


def a_traces_length_is_that_of_its_process(recorded, name):
    """A program that makes no call for most of its time, and is killed."""
    recorded.record((), recorded.program("deadlock"), status=143)
    info = recorded.text("info", recorded.trace)
    expect(re.search(r"^exit status +143: killed by signal 15 \(SIGTERM\)$", info, re.M), info[:600])
    half = recorded.json("report", "--from", "50%")
    rows = {row["name"]: row["total_ns"] for row in half["functions"]}
    window = half["window"]["length_ns"]
    for function in "dead_save", "dead_click":
        expect(abs(rows[function] - window) <= window // 10, f"{function}: {rows[function]} ns of the second half, {window} ns")


class Test:
    def __init__(self, check, *options, name=None):
        self.name, self.check, self.options = "ends." + (name or check.__name__), check, options

    def run(self, settings):
        if settings.bare_only:
            return
        if not os.path.exists(settings.tool):
            raise Skipped("no tool")
        recorded = Recorded(settings, self.name)
        try:
            self.check(recorded, self.name, *self.options)
        finally:
            recorded.directory.done()


def tests():
    return [
        Test(deadlock_lasts_until_the_process_is_killed),
        Test(deadlock_lasts_until_the_process_is_killed, "--no-states", name="deadlock_lasts_until_the_process_is_killed.without_the_kernel"),
        Test(deadlock_lasts_until_now),
        Test(calls_end_with_their_threads),
        Test(calls_end_with_their_threads, "--no-states", name="calls_end_with_their_threads.without_the_kernel"),
        Test(how_a_process_ended_is_said),
        Test(a_traces_length_is_that_of_its_process),
    ]
