"""Figures that cannot be: what readers of the tool say of one trace must not contradict itself.

RULES has them by their names. `contradictions` looks for them in what `report`, `tree` and the CSV export say; harness.py does so with every
trace that it checks. Known ones are listed with their reasons in contradictions.txt: of which tests, which rules.
"""
import collections
import csv
import fnmatch
import io
import json
import os
import re
import subprocess
from dataclasses import dataclass

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contradictions.txt")
COUNTS = 2  # mode of a trace that has no calls
MOST_ROWS = 20_000  # calls of a trace whose calls are looked at one by one
ROUNDING = 2  # ns: a beginning and a length, each rounded


class Unreadable(Exception):
    pass


class Call:
    """A row of the CSV export that has a length and belongs to the thread that it is listed for."""
    __slots__ = "thread", "depth", "start", "length", "own", "function"

    def __init__(self, pid, tid, depth, start, length, own, function):
        self.thread, self.function = (pid, tid), function
        self.depth, self.start, self.length, self.own = int(depth), int(start), int(length), int(own)

    def __str__(self):
        return f"{self.function} at {self.start}"


@dataclass
class Figures:
    """What three readers say. A trace that has no calls has no tree, and one with very many no rows; one whose process is alive has neither,
    since each reader would see another moment."""
    report: dict
    tree: "dict | None" = None
    calls: "list | None" = None  # in the order in which they end
    rows: int = 0  # rows of the export that are calls
    interleaves: bool = False  # some calls go on when one ends that was called before them: coroutines


def read(tool, path, environment, report=None, has_calls=True, interleaves=False):
    def output(*arguments):
        done = subprocess.run([tool, *arguments], capture_output=True, timeout=120, env=environment)
        if done.returncode:
            raise Unreadable(f"tracer {arguments[0]}: status {done.returncode}: {done.stderr.decode(errors='replace').strip()[-300:]}")
        return done.stdout.decode(errors="replace")
    figures = Figures(report or json.loads(output("report", path, "--json")), interleaves=interleaves)
    if has_calls and not any(process["ended"] == "running" for process in figures.report["processes"]):
        figures.tree = json.loads(output("tree", path, "--json"))
        if figures.report["calls"] <= MOST_ROWS:
            read_calls(figures, output("export", path, "--format", "csv", "-o", "-"))
    return figures


def read_calls(figures, text):
    figures.calls = []
    rows = csv.reader(io.StringIO(text, newline=""))
    if next(rows) != COLUMNS:
        raise Unreadable(f"tracer export: other columns than {COLUMNS}")
    for _, pid, _, tid, depth, start, length, own, ended, function, *_ in rows:
        figures.rows += ended in ENDINGS
        if length and ended != "returned here":
            figures.calls.append(Call(pid, tid, depth, start, length, own, function))


COLUMNS = ["process", "pid", "thread", "tid", "depth", "start_ns", "duration_ns", "self_ns", "ended", "function", "module", "arguments", "result", "errno"]
ENDINGS = {"returned", "unwound", "lost", "open", "part", "entered", "returned elsewhere"}


def contradictions(figures):
    """[(rule, what contradicts it)]"""
    return [(name, text) for name, rule in RULES.items() for text in rule(figures)]


def known(test, path=LIST):
    """Names of the rules that this test is known to break."""
    return {rule for pattern, rules, _ in listed(path) if fnmatch.fnmatchcase(test, pattern) for rule in rules}


def listed(path=LIST):
    """[(pattern of tests, rules, reason)]"""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                pattern, names, reason = re.split(r"\s{2,}", line.strip(), maxsplit=2)
                rows.append((pattern, [rule for name in names.split(",") for rule in GROUPS.get(name, [name])], reason))
    return rows


# -- What the readers say, in one form -----------------------------------------------------------------------------------------

def times(figures):
    """(reader, what it is of, self, total, longest call or None): functions of the report, nodes of the tree, single calls."""
    for row in figures.report["functions"]:
        yield "report", row["name"], row["self_ns"], row["total_ns"], row["max_ns"]
    for node, name, _ in nodes(figures):
        yield "tree", name, node["self_ns"], node["total_ns"], node["max_ns"]
    for call in figures.calls or []:
        yield "csv", call, call.own, call.length, call.length


def nodes(figures):
    """(node, name, key of the function) without the roots."""
    if figures.tree:
        functions = [(function["name"], (function["symbol"] or function["name"], function["module"])) for function in figures.tree["functions"]]
        for node in figures.tree["nodes"]:
            if node["function"] >= 0:
                yield node, *functions[node["function"]]


def children(figures):
    """(node or root, name, its children)"""
    if figures.tree:
        below = [[] for _ in figures.tree["nodes"]]
        for node in figures.tree["nodes"]:
            if node["parent"] >= 0:
                below[node["parent"]].append(node)
        functions = figures.tree["functions"]
        for node, those in zip(figures.tree["nodes"], below):
            yield node, functions[node["function"]]["name"] if node["function"] >= 0 else "a thread", those


# -- The rules -----------------------------------------------------------------------------------------------------------------

def self_below_zero(figures):
    return [f"{reader}: {of}: self {own} ns" for reader, of, own, _, _ in times(figures) if own < -ROUNDING]


def self_above_total(figures):
    return [f"{reader}: {of}: self {own} ns, total {total} ns" for reader, of, own, total, _ in times(figures) if own > total + ROUNDING]


def longest_above_total(figures):
    return [f"{reader}: {of}: a call of {longest} ns, total {total} ns" for reader, of, _, total, longest in times(figures)
            if longest is not None and longest > total + ROUNDING]


def longer_than_the_process(figures):
    duration = figures.report["duration_ns"]
    return [f"{reader}: {of}: a call of {longest} ns in a process of {duration} ns" for reader, of, _, _, longest in times(figures)
            if longest is not None and longest > duration + ROUNDING]


def thread_longer_than_the_process(figures):
    found = [f"thread {thread['tid']} ran for {thread['span_ns']} ns in a process of {figures.report['duration_ns']} ns"
             for thread in figures.report["threads"] if thread["span_ns"] is not None and thread["span_ns"] > figures.report["duration_ns"] + ROUNDING]
    if figures.tree:
        for root in figures.tree["roots"]:
            node, process = figures.tree["nodes"][root["node"]], figures.tree["processes"][root["process"]]
            rounding = ROUNDING + len(figures.tree["nodes"])  # each node's total is rounded
            if node["total_ns"] > process["duration_ns"] + rounding:
                found.append(f"thread {root['tid']}: {node['total_ns']} ns in a process of {process['duration_ns']} ns")
    return found


def own_code_above_thread(figures):
    return [f"thread {thread['tid']}: {thread['own_ns']} ns of own code in {thread['span_ns']} ns" for thread in figures.report["threads"]
            if thread["span_ns"] is not None and thread["own_ns"] > thread["span_ns"] + ROUNDING]


def self_above_the_threads(figures):
    """What all functions have of their own lies in some thread's time."""
    functions, threads = figures.report["functions"], figures.report["threads"]
    if not all(thread["span_ns"] is not None for thread in threads):
        return []
    own, spans = sum(row["self_ns"] for row in functions), sum(thread["span_ns"] for thread in threads)
    return [f"{own} ns of self in {spans} ns of threads"] if own > spans + ROUNDING * (len(functions) + len(threads)) else []


def children_above_caller(figures):
    return [f"{name}: {node['total_ns']} ns, what it calls {sum(child['total_ns'] for child in those)} ns" for node, name, those in children(figures)
            if sum(child["total_ns"] for child in those) > node["total_ns"] + ROUNDING + len(those)]


def counts_differ(figures):
    count, found = figures.report["calls"], []
    sums = {"functions": sum(row["calls"] for row in figures.report["functions"]), "threads": sum(row["calls"] for row in figures.report["threads"]),
            "processes": sum(row["calls"] for row in figures.report["processes"])}
    if figures.tree:
        sums["roots of the tree"] = sum(root["calls"] for root in figures.tree["roots"])
        sums["nodes of the tree"] = sum(node["calls"] for node, _, _ in nodes(figures))
    found += [f"{count} calls, of all {what} {total}" for what, total in sums.items() if total != count]
    if figures.calls is not None and figures.rows < count - figures.report["only_counted"]:
        found.append(f"{count} calls, {figures.rows} rows in the CSV export")
    return found


def sums_differ(figures):
    """Each function's calls and self time are the same in the report and, summed up, in the tree."""
    if not figures.tree:
        return []
    ours, theirs, names = (collections.defaultdict(kind) for kind in (collections.Counter, collections.Counter, set))
    for row in figures.report["functions"]:
        sums = ours[row["symbol"] or row["name"], row["module"]]
        sums["calls"] += row["calls"]
        sums["self"] += row["self_ns"]
    for node, name, key in nodes(figures):
        if name == "(further paths)":
            return []  # more paths than a tree has
        if name != "(own code)":
            sums = theirs[key]
            sums["calls"] += node["calls"]
            sums["self"] += node["self_ns"]
            names[key].add(name)

    def same(key):
        # A dlopen has a name for each file in the tree, whose times are rounded one by one.
        return ours[key]["calls"] == theirs[key]["calls"] and abs(ours[key]["self"] - theirs[key]["self"]) <= max(len(names[key]) - 1, 0)
    return [f"{key[0]} in {key[1]}: {dict(ours[key])} in the report, {dict(theirs[key])} in the tree"
            for key in sorted({*ours, *theirs}) if not same(key)]


def outside_its_caller(figures):
    """A call begins and ends while its caller is open, and takes no longer. Rows come in the order in which calls end. Coroutines wait in
    calls, which then last while others are made; of those the own times of all must not be more than there is."""
    found, thread, pending = [], None, {}
    if figures.interleaves:
        return own_times_above_the_process(figures)
    for call in figures.calls or []:
        if call.thread != thread:
            thread, pending = call.thread, {}
        depth, start, length = call.depth, call.start, call.length
        first, last, time, count = pending.pop(depth + 1, (start, start, 0, 0))
        if first < start - ROUNDING or last > start + length + ROUNDING or time > length + ROUNDING * (count + 1):
            found.append(f"{call} took {length} ns; what it called took {time} ns, from {first} to {last}")
        first, last, time, count = pending.get(depth, (start, start, 0, 0))
        pending[depth] = min(first, start), max(last, start + length), time + length, count + 1
    return found


def own_times_above_the_process(figures):
    own, duration = {}, figures.report["duration_ns"]
    for call in figures.calls or []:
        time, count = own.get(call.thread, (0, 0))
        own[call.thread] = time + call.own, count + 1
    return [f"the calls of thread {tid} have {time} ns of their own in a process of {duration} ns" for (_, tid), (time, count) in own.items()
            if time > duration + ROUNDING * count]


def after_the_end(figures):
    duration = figures.report["duration_ns"]
    return [f"{call} took {call.length} ns in a process of {duration} ns" for call in figures.calls or []
            if call.start + call.length > duration + ROUNDING]


RULES = {rule.__name__: rule for rule in (
    self_below_zero, self_above_total, longest_above_total, longer_than_the_process, thread_longer_than_the_process, own_code_above_thread,
    self_above_the_threads, children_above_caller, counts_differ, sums_differ, outside_its_caller, after_the_end)}
# Names for several rules in the list.
GROUPS = {"nesting": ["self_below_zero", "self_above_total", "children_above_caller", "outside_its_caller"]}
