#!/usr/bin/env python3
"""impossible.py on figures that the tool gives of a trace made here: it finds nothing, and then what is changed for the purpose."""
import copy
import os

import build
import decoder
import harness
import impossible
import programs
import tracefile as t
from harness import Failed, Skipped


def nested():
    """outer from 10 to 100, in it inner twice; then a thread of one call, outer."""
    first = [decoder.call(t.ENTER, 1, 10), decoder.complete(2, 20, 5), decoder.complete(2, 30, 7), decoder.call(t.EXIT, 1, 100)]
    end = {"last_ticks": decoder.BASE + 1000, "last_monotonic_ns": decoder.BASE + 1000}
    return decoder.trace(decoder.chunk(1, 0, 0, decoder.events(*first)), decoder.chunk(1, 1, 0, decoder.events(decoder.complete(1, 300, 50))),
                         clock=3, first_ticks=decoder.BASE, first_monotonic_ns=decoder.BASE, **end)


def row(figures, name):
    return next(row for row in figures.report["functions"] if row["name"] == name)


def node(figures, name):
    return next(node for node, found, _ in impossible.nodes(figures) if found == name)


def change(figures, name, **fields):
    """Changes a row of the CSV export."""
    call = next(call for call in figures.calls if call.function == name)
    for field, value in fields.items():
        setattr(call, field, value)


# Rule → changes, each of which breaks it.
PLANTED = {
    "self_below_zero": [lambda f: row(f, "outer").update(self_ns=-41_000_000_000), lambda f: node(f, "inner").update(self_ns=-40),
                        lambda f: change(f, "inner", own=-40)],
    "self_above_total": [lambda f: row(f, "inner").update(self_ns=500), lambda f: node(f, "outer").update(self_ns=500)],
    "longest_above_total": [lambda f: row(f, "inner").update(max_ns=900), lambda f: node(f, "inner").update(max_ns=900)],
    "longer_than_the_process": [lambda f: f.report.update(duration_ns=50), lambda f: change(f, "outer", length=2000)],
    "thread_longer_than_the_process": [lambda f: f.tree["processes"][0].update(duration_ns=20),
                                       lambda f: f.report["threads"][0].update(span_ns=8_000_000_000, own_ns=0)],
    "own_code_above_thread": [lambda f: f.report["threads"][0].update(own_ns=2000)],
    "self_above_the_threads": [lambda f: row(f, "inner").update(self_ns=2000)],
    "children_above_caller": [lambda f: node(f, "inner").update(total_ns=900)],
    "counts_differ": [lambda f: row(f, "inner").update(calls=3), lambda f: f.tree["roots"][0].update(calls=9), lambda f: setattr(f, "rows", 2),
                      lambda f: f.report["processes"][0].update(calls=0)],
    "sums_differ": [lambda f: node(f, "inner").update(self_ns=1), lambda f: row(f, "inner").update(self_ns=11)],
    "outside_its_caller": [lambda f: (setattr(f, "interleaves", True), change(f, "inner", own=2000)),
                           lambda f: change(f, "inner", start=200), lambda f: change(f, "inner", start=5),
                           lambda f: change(f, "outer", length=12)],
    "after_the_end": [lambda f: change(f, "outer", length=54000)],
}


def figures_of(settings, trace):
    """What the tool says of a trace, without a contradiction in it."""
    if not os.path.exists(settings.tool):
        raise Skipped("no tool")
    directory = harness.Directory("contradictions", settings.keep)
    try:
        path = os.path.join(directory.traces, "x.trace")
        with open(path, "wb") as file:
            file.write(trace)
        figures = impossible.read(settings.tool, path, harness.passed_on(os.environ))
        if found := impossible.contradictions(figures):
            raise Failed(f"the tool contradicts itself: {found}")
        return figures
    finally:
        directory.done()


class Planted:
    def __init__(self, rule):
        self.rule, self.name = rule, "contradictions.planted." + rule

    def run(self, settings):
        figures = figures_of(settings, nested())
        for number, plant in enumerate(PLANTED[self.rule]):
            changed = copy.deepcopy(figures)
            plant(changed)
            if self.rule not in {rule for rule, _ in impossible.contradictions(changed)}:
                raise Failed(f"change {number} is not found")


def two_chunks(before, after, *open_frames):
    """The second was opened at 64. `after` counts from 0, as `before` does."""
    return (decoder.chunk(1, 0, 0, decoder.events(*before), flags=t.CLOSED),
            decoder.chunk(1, 0, 1, decoder.events(decoder.control(t.BASE, decoder.BASE & t.PAYLOAD_MASK), *after),
                          [(decoder.BASE + at, function) for at, function in open_frames], opened=decoder.BASE + 64))


# Traces that contradicted themselves. In the first a signal came between the clock of a call and its word: what its handler called has the
# earlier word.
FREE = {
    "a_late_call": [decoder.first(decoder.enter(1, 10), decoder.complete(2, 20, 40), decoder.enter(1, 12), decoder.leave(1, 70), decoder.leave(1, 75))],
    "a_late_call_that_goes_on_in_the_next_chunk": two_chunks(
        [decoder.enter(1, 10), decoder.complete(2, 20, 40), decoder.enter(2, 12)], [decoder.leave(2, 70), decoder.leave(1, 75)], (10, 1), (12, 2)),
    "a_late_call_above_one_of_its_function": [decoder.first(decoder.enter(1, 20), decoder.enter(1, 15), decoder.leave(1, 40), decoder.leave(1, 41))],
    "a_late_call_above_one_of_its_function_in_two_chunks": two_chunks(
        [decoder.enter(1, 20), decoder.enter(1, 15)], [decoder.leave(1, 70), decoder.leave(1, 71)], (20, 1), (15, 1)),
    "a_late_call_as_the_first_of_a_chunk": two_chunks(
        [decoder.enter(1, 10), decoder.complete(2, 12, 50)], [decoder.complete(2, 14, 46), decoder.leave(1, 70)], (10, 1)),
    "a_late_call_that_calls_as_the_first_of_a_chunk": two_chunks(
        [decoder.enter(1, 10), decoder.complete(2, 12, 50)],
        [decoder.enter(1, 14), decoder.complete(2, 66, 1), decoder.leave(1, 68), decoder.leave(1, 70)], (10, 1)),
    "a_call_of_the_parent_process": [decoder.chunk(1, 0, 0, decoder.events(decoder.complete(2, 20, 40), decoder.leave(1, 70)), [(decoder.BASE - 1000, 1)])],
}


class Free:
    def __init__(self, which):
        self.which, self.name = which, "contradictions.none_in." + which

    def run(self, settings):
        figures_of(settings, decoder.trace(
            *FREE[self.which], clock=3, first_ticks=decoder.BASE, first_monotonic_ns=decoder.BASE, last_ticks=decoder.BASE + 76,
            last_monotonic_ns=decoder.BASE + 76))


class List:
    """Each row of contradictions.txt is of some test, names rules, and has a reason; a row of another test excuses nothing."""
    name = "contradictions.the_list_is_in_order"

    def run(self, settings):
        names = {os.path.splitext(name)[0] for folder in (build.SUBJECTS, build.HERE) for name in os.listdir(folder)}
        names |= {"program-" + test.name for test in programs.tests()}
        for pattern, rules, reason in impossible.listed():
            if not any(name.startswith(pattern.rstrip("*")) for name in names):
                raise Failed(f"{pattern}: no such test")
            if not reason or set(rules) - set(impossible.RULES):
                raise Failed(f"{pattern}: {rules}, {reason!r}")
        directory = harness.Directory("contradictions", settings.keep)
        try:
            path = os.path.join(directory.path, "list.txt")
            with open(path, "w") as file:
                file.write("# a comment\n\ncoroutines*  nesting  they take turns\n")
            if impossible.known("coroutines.gcc", path) != set(impossible.GROUPS["nesting"]) or impossible.known("threads.at_once", path):
                raise Failed("the list is misread")
        finally:
            directory.done()


def tests():
    return [Planted(rule) for rule in impossible.RULES] + [Free(which) for which in FREE] + [List()]
