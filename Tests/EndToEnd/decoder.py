"""tracefile.py and golden.py on traces made here word by word: what they accept, and that they notice what is wrong."""
import gzip
import json
import os
import struct

import golden
import harness
import suite
import tracefile as t
from harness import Skipped, expect

BASE = 5_000_000_000_000
NAMES = ["outer", "inner", "setjmp"]
LAYOUT = t.LAYOUTS[2]


def call(kind, function, time):
    return kind | function << t.FUNCTION_SHIFT | time << LAYOUT.time_shift


def enter(function, time):
    return call(t.ENTER, function, time)


def leave(function, time):
    return call(t.EXIT, function, time)


def complete(function, start, duration):
    return t.COMPLETE | function << t.FUNCTION_SHIFT | start << LAYOUT.time_shift | duration << LAYOUT.duration_shift


def control(which, payload):
    return which << t.CONTROL_SHIFT | payload << t.PAYLOAD_SHIFT


def unwound(count, time):
    return control(t.UNWOUND, time | count << LAYOUT.count_shift)


def chunk(kind, thread, sequence, body, frames=(), flags=0, opened=BASE):
    head = b"".join(t.OPEN_FRAME.pack(enter, function, 0) for enter, function in frames)
    offset = t.CHUNK.size + len(head)
    size = (offset + len(body) + 4095) // 4096 * 4096
    header = t.CHUNK.pack(t.CHUNK_MAGIC, kind, flags, size, offset, thread, 100 + thread, sequence, opened, 0, offset + len(body),
                          0, 0, 0, len(frames), len(frames), b"t", 0, 0, 0)
    return (header + head + body).ljust(size, b"\0")


def trace(*chunks, **header):
    fields = {**dict.fromkeys(t.HEADER_FIELDS, 0), "magic": t.MAGIC, "version": 2, "header_bytes": 4096, "pid": 100, "state": 1, **header}
    records = b""
    for index, name in enumerate(NAMES, 1):
        text = name.encode().ljust((len(name) + 7) // 8 * 8, b"\0")
        records += struct.pack("<HHIIIQII", 3, 0, 32 + len(text), index, 0xFFFFFFFF, 0, t.ENTRY_ONLY if name == "setjmp" else 0,
                               len(name)) + text
    return t.HEADER.pack(*fields.values()).ljust(4096, b"\0") + chunk(2, 0, 0, records) + b"".join(chunks)


def events(*words):
    return struct.pack(f"<{len(words)}Q", *words)


def first(*words):
    """The first chunk of the first thread."""
    return chunk(1, 0, 0, events(*words))


BY_MOMENT = "calls outer 1 @timely\ncalls outer 0 @late\nthread main\n  outer @timely\n  inner\n"
FAR = 1 << 40  # ticks: a base that lies ahead
CASES = {
    "complete_inside_enter_and_exit": (
        [first(enter(1, 10), 0, complete(2, 20, 5), complete(2, 30, 5), leave(1, 50))], "thread main\n  outer\n    inner x2\n", None),
    "another_base": (
        [first(enter(1, 10), control(t.BASE, (BASE + FAR) & t.PAYLOAD_MASK), complete(2, 1, 5), leave(1, 9))],
        "thread main\n  outer\n    inner\n", None),
    "unwound_frames": (
        [first(enter(1, 10), enter(2, 11), unwound(2, 20), complete(3, 21, 0))],
        "unwound inner 1\nthread main\n  outer (unwound)\n    inner (unwound)\n  setjmp (tail)\n", None),
    "resumed_out_of_order": (
        [first(enter(1, 10), enter(2, 11), control(t.RESUME, BASE + 10), leave(1, 20))],
        "open inner 1\nopen outer 0\nthread main\n  outer\n    inner (open)\n", None),
    "resumed_of_two_of_one_moment": (
        [first(enter(1, 10), enter(2, 10), control(t.RESUME, BASE + 10), leave(1, 20))],
        "open inner 1\nopen outer 0\nthread main\n  outer\n    inner (open)\n", None),
    "stored_in_another_order_of_one_moment": (
        [chunk(1, 0, 0, events(enter(1, 10), enter(2, 10)), flags=t.CLOSED),
         chunk(1, 0, 1, events(leave(1, 20), leave(2, 21)), [(BASE + 10, 2), (BASE + 10, 1)], opened=BASE + 15)],
        "thread main\n  outer\n    inner\n", None),
    "closed_by_another_thread_two_of_one_moment": (
        [first(enter(1, 10), enter(2, 10)),
         chunk(1, 1, 0, events(control(t.RESUME, BASE + 10), leave(1, 20), control(t.RESUME, BASE + 10), leave(2, 21)))],
        "open inner 0\nopen outer 0\nthread main\n  outer\n    inner\n", None),
    "closed_by_another_thread": (
        [first(enter(1, 10)), chunk(1, 1, 0, events(control(t.RESUME, BASE + 10), leave(1, 20)))],
        "open outer 0\nthread main\n  outer\n", None),
    "closed_by_another_thread_before_the_next_chunk": (
        [chunk(1, 0, 0, events(enter(1, 10), enter(2, 11)), flags=t.CLOSED),
         chunk(1, 1, 0, events(control(t.RESUME, BASE + 11), leave(2, 20))),
         chunk(1, 0, 1, events(leave(1, 5)), [(BASE + 10, 1)], opened=BASE + 25)], "open inner 0\nthread main\n  outer\n    inner\n", None),
    "two_chunks": (
        [chunk(1, 0, 0, events(enter(1, 10)), flags=t.CLOSED), chunk(1, 0, 1, events(leave(1, 20)), [(BASE + 10, 1)], opened=BASE + 15)],
        "thread main\n  outer\n", None),
    "an_unsettled_list": (
        [chunk(1, 0, 0, events(enter(1, 10), enter(2, 12)), flags=t.CLOSED),
         chunk(1, 0, 1, events(leave(2, 5), leave(1, 20)), [(BASE + 10, 1)], t.UNSETTLED, opened=BASE + 15)],
        "thread main\n  outer\n    inner\n", None),
    "two_chunks_of_one_number": (
        [first(enter(1, 10)), chunk(1, 0, 0, events(enter(1, 10), leave(1, 20)), flags=t.CLOSED)],
        "open outer 0\nthread main\n  outer\n", None),
    "killed_while_a_chunk_was_cleared": ([bytes(8192) + b"\x23" * 8192, first(complete(1, 5, 1))], "thread main\n  outer\n", None),
    "deep_recursion": (
        [first(*[enter(1, i) for i in range(5000)], *[leave(1, 5000 + i) for i in range(5000)])],
        "depth 5000\nthread main\n  outer ^5000\n", None),
    "what_holds_where_the_agent_came_late": ([first(complete(2, 5, 1))], BY_MOMENT, None, golden.LATE),
    "what_holds_where_the_agent_came_first": ([first(complete(1, 5, 1), complete(2, 7, 1))], BY_MOMENT, None),
    # These must be noticed: the words are the anomaly's, or the difference's.
    "exit_of_another_function": ([first(enter(1, 10), leave(2, 20))], "", "is innermost"),
    "exit_without_enter": ([first(leave(2, 20))], "", "nothing is open"),
    "child_before_its_caller": ([first(enter(1, 10), complete(2, 5, 1))], "", "before its caller"),
    "neither_a_chunk_nor_space": ([b"\x23" * 4096, first(complete(1, 5, 1))], "", "magic"),
    "undeclared_function": ([first(complete(9, 5, 1))], "", "never declared"),
    "missing_chunk": ([first(complete(1, 5, 1)), chunk(1, 0, 2, events(complete(1, 5, 1)))], "", "follows"),
    "frames_differ_between_chunks": ([first(enter(1, 10)), chunk(1, 0, 1, events(complete(2, 5, 1)))], "", "frames are open"),
    "frames_differ_though_another_was_closed_by_a_thread": (
        [chunk(1, 0, 0, events(enter(1, 10), enter(2, 11)), flags=t.CLOSED),
         chunk(1, 1, 0, events(control(t.RESUME, BASE + 11), leave(2, 20))), chunk(1, 0, 1, events(), opened=BASE + 25)],
        "", "frames are open"),
    "late_and_a_call_that_was_before_the_agent": ([first(complete(1, 5, 1), complete(2, 7, 1))], BY_MOMENT, "recorded 1", golden.LATE),
    "a_call_less_and_not_late": ([first(complete(2, 5, 1))], BY_MOMENT, "recorded 0"),
    "one_call_less": ([first(complete(2, 5, 1))], "thread main\n  inner x2\n", "not expected"),
    "one_call_more": ([first(complete(2, 5, 1), complete(2, 7, 1))], "calls inner 1\n", "recorded 2"),
    "other_nesting": ([first(complete(1, 5, 1), complete(2, 7, 1))], "thread main\n  outer\n    inner\n", "not expected"),
    "thread_not_expected": (
        [first(complete(1, 5, 1)), chunk(1, 1, 0, events(complete(1, 7, 1)))], "thread main\n  outer\n", "not expected"),
    "open_instead_of_returned": ([first(enter(1, 10))], "thread main\n  outer\n", "not expected"),
}


class Decoder(suite.Test):
    checks_bare = True


def decodes(chunks, expected, noticed, flags=0):
    def check(test):
        suite.write(test.trace("x.trace"), trace(*chunks, flags=flags))
        traces = t.read_all(test.traces)
        faults = traces[0].anomalies + golden.compare(golden.parse(expected), traces)
        expect(noticed is not None or not faults, "\n".join(faults))
        expect(noticed is None or any(noticed in fault for fault in faults), f"nothing says {noticed!r}: {faults}")
    return check


FIRST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "version1")


def reads_version_1(name):
    """A trace of version 1: both readers, and the tool says what it said when this was the version of the day."""
    def check(test):
        if not os.path.exists(test.settings.tool):
            raise Skipped("no tool")
        path = suite.write(test.trace(name + ".trace"), gzip.decompress(suite.read_bytes(os.path.join(FIRST, name + ".trace.gz"))))
        trace = t.Trace(path).trees()
        faults = trace.anomalies + harness.cross_check(test.settings, trace, "decoder.version_1." + name)
        expected = json.loads(suite.read(os.path.join(FIRST, name + ".json")))
        shown = harness.report(test.settings, path)
        found = sorted([f["symbol"], f["module"], f["calls"], f["total_ns"], f["self_ns"]] for f in shown["functions"])
        if [shown["calls"], shown["duration_ns"], found] != [expected["calls"], expected["duration_ns"], expected["functions"]]:
            faults.append(f"report says {found}, expected {expected['functions']}")
        expect(not faults, "\n".join(faults))
    return check


def tests():
    first = sorted(name.removesuffix(".trace.gz") for name in os.listdir(FIRST) if name.endswith(".gz"))
    return [Decoder("decoder." + name, decodes(*case)) for name, case in CASES.items()] + [Decoder("decoder.version_1." + name, reads_version_1(name)) for name in first]
