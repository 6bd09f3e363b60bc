"""Figures that cannot be: what readers of the tool say of one trace must not contradict itself.

RULES has them by their names. `contradictions` looks for them in what `report`, `tree` and the CSV export say; harness.py does so with every
trace that it checks. Known ones are listed with their reasons in contradictions.txt: of which tests, which rules.
"""
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


@dataclass
class Figures:
    """What three readers say. A trace that has no calls has no tree, and one with very many no rows; one whose process is alive has neither,
    since each reader would see another moment."""
    report: dict
    tree: "dict | None" = None
    rows: "list | None" = None
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
            figures.rows = list(csv.DictReader(io.StringIO(output("export", path, "--format", "csv", "-o", "-"), newline="")))
    return figures


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

def rows(figures):
    """(name, self, total, longest call or None): functions of the report, nodes of the tree, single calls."""
    for row in figures.report["functions"]:
        yield f"report: {row['name']}", row["self_ns"], row["total_ns"], row["max_ns"]
    for node, name, _ in nodes(figures):
        yield f"tree: {name}", node["self_ns"], node["total_ns"], node["max_ns"]
    for row in calls(figures):
        yield f"csv: {row['function']} at {row['start_ns']}", int(row["self_ns"]), int(row["duration_ns"]), None


def nodes(figures):
    """(node, name, key of the function) without the roots."""
    if figures.tree:
        functions = figures.tree["functions"]
        for node in figures.tree["nodes"]:
            if node["function"] >= 0:
                function = functions[node["function"]]
                yield node, function["name"], (function["symbol"] or function["name"], function["module"])


def calls(figures):
    """Rows of calls that have a length and belong to the thread that they are listed for."""
    return [row for row in figures.rows or [] if row["duration_ns"] and row["ended"] != "returned here"]


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
    return [f"{name}: self {own} ns" for name, own, _, _ in rows(figures) if own < -ROUNDING]


def self_above_total(figures):
    return [f"{name}: self {own} ns, total {total} ns" for name, own, total, _ in rows(figures) if own > total + ROUNDING]


def longest_above_total(figures):
    return [f"{name}: a call of {longest} ns, total {total} ns" for name, _, total, longest in rows(figures)
            if longest is not None and longest > total + ROUNDING]


def longer_than_the_process(figures):
    duration = figures.report["duration_ns"]
    return [f"{name}: a call of {longest} ns in a process of {duration} ns" for name, _, _, longest in rows(figures)
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
    if figures.rows is not None and sum(row["ended"] in ENDINGS for row in figures.rows) < count:
        found.append(f"{count} calls, {len(figures.rows)} rows in the CSV export")
    return found


ENDINGS = "returned", "unwound", "lost", "open", "part", "entered", "returned elsewhere"


def sums_differ(figures):
    """Each function's calls and self time are the same in the report and, summed up, in the tree."""
    if not figures.tree:
        return []
    ours, theirs, names = {}, {}, {}
    for row in figures.report["functions"]:
        key = row["symbol"] or row["name"], row["module"]
        ours[key] = tuple(map(sum, zip(ours.get(key, (0, 0)), (row["calls"], row["self_ns"]))))
    if any(name == "(further paths)" for _, name, _ in nodes(figures)):
        return []  # more paths than a tree has
    for node, name, key in nodes(figures):
        if name != "(own code)":
            theirs[key] = tuple(map(sum, zip(theirs.get(key, (0, 0)), (node["calls"], node["self_ns"]))))
            names.setdefault(key, set()).add(name)

    def same(key):
        (calls, own), (others, theirs_own) = ours.get(key, (0, 0)), theirs.get(key, (0, 0))
        # A dlopen has a name for each file in the tree, whose times are rounded one by one.
        return calls == others and abs(own - theirs_own) <= max(len(names.get(key, ())) - 1, 0)
    return [f"{name} in {module}: (calls, self) {ours.get((name, module))} in the report, {theirs.get((name, module))} in the tree"
            for name, module in sorted({*ours, *theirs}) if not same((name, module))]


def outside_its_caller(figures):
    """A call begins and ends while its caller is open, and takes no longer. Rows come in the order in which calls end. Coroutines wait in
    calls, which then last while others are made; of those the own times of all must not be more than there is."""
    found, thread, pending = [], None, {}
    if figures.interleaves:
        return own_times_above_the_process(figures)
    for row in calls(figures):
        if (row["pid"], row["tid"]) != thread:
            thread, pending = (row["pid"], row["tid"]), {}
        depth, start, length = int(row["depth"]), int(row["start_ns"]), int(row["duration_ns"])
        first, last, time, count = pending.pop(depth + 1, (start, start, 0, 0))
        if first < start - ROUNDING or last > start + length + ROUNDING or time > length + ROUNDING * (count + 1):
            found.append(f"{row['function']} at {start} took {length} ns; what it called took {time} ns, from {first} to {last}")
        first, last, time, count = pending.get(depth, (start, start, 0, 0))
        pending[depth] = min(first, start), max(last, start + length), time + length, count + 1
    return found


def own_times_above_the_process(figures):
    own, duration = {}, figures.report["duration_ns"]
    for row in calls(figures):
        key = row["pid"], row["tid"]
        time, count = own.get(key, (0, 0))
        own[key] = time + int(row["self_ns"]), count + 1
    return [f"the calls of thread {tid} have {time} ns of their own in a process of {duration} ns" for (_, tid), (time, count) in own.items()
            if time > duration + ROUNDING * count]


def after_the_end(figures):
    duration = figures.report["duration_ns"]
    return [f"{row['function']} at {row['start_ns']} took {row['duration_ns']} ns in a process of {duration} ns" for row in calls(figures)
            if int(row["start_ns"]) + int(row["duration_ns"]) > duration + ROUNDING]


RULES = {rule.__name__: rule for rule in (
    self_below_zero, self_above_total, longest_above_total, longer_than_the_process, thread_longer_than_the_process, own_code_above_thread,
    children_above_caller, counts_differ, sums_differ, outside_its_caller, after_the_end)}
# Names for several rules in the list.
GROUPS = {"nesting": ["self_below_zero", "self_above_total", "children_above_caller", "outside_its_caller"]}
