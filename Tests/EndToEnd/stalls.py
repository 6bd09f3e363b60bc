"""`tracer stalls` on event loops that know their own turns, and on Python's asyncio. What is compared is counts, order, causes, and which
turn contains which moment; never how long something took."""
import os
import re
import sys

import build
import suite
import tracefile
from harness import Skipped, describe, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

MS = 1_000_000
TURNS = 24
# Turn, by the order of its planted length → the functions that it is in, and the least of its time on a CPU.
PLANTED = {17: (["handles", "parses", "computes"], 80 * MS), 5: (["handles", "parses", "computes"], 30 * MS)}
KILLED = -9
SLACK = 4 * MS  # interrupts, and what the hypervisor takes, are in a thread's CPU time and are no state of its own (states.py)


class Stalls(suite.Test):
    def subject(self):
        return self.compile("stalls", "-O1", "-g", "-pthread", os.path.join(build.SUBJECTS, "part_stalls.c"))

    def record(self, how, *options, status=0):
        """Returns what the program says of its turns: number, beginning and end of the callback, in ns of the trace."""
        done = self.tool("record", "--quiet", "--force", "--functions", "stalls!*", *options, "-o", self.trace(), "--", self.subject(), how, status=None)
        expect(done.returncode == (status if status >= 0 else 128 - status), f"{how}: {describe(done.returncode)}: {done.stderr[-300:]}")
        first = tracefile.Trace(self.trace()).header["first_monotonic_ns"]
        lines = [line.split() for line in done.stdout.splitlines()]
        return [(int(words[1]), int(words[2]) - first, int(words[3]) - first) for words in lines if words[0] == "turn"]

    def stalls(self, *options):
        found = self.json("stalls", self.trace(), *options)
        lengths = [stall["duration_ns"] for stall in found["stalls"]]
        expect(lengths == sorted(lengths, reverse=True), f"not the longest first: {lengths}")
        expect(len(lengths) == found["count"] == sum(loop["stalls"] for loop in found["loops"]), f"counts: {found['loops']}, {found['count']}")
        for stall in found["stalls"]:
            states = [stall[state + "_ns"] for state in ("running", "waiting", "runnable", "unknown")]
            expect(None in states or abs(sum(states) - stall["duration_ns"]) <= 4, f"states {states} of {stall['duration_ns']}")
            expect(stall["own_ns"] + sum(step["total_ns"] for step in stall["path"][:1]) <= stall["duration_ns"] + 2, f"path: {stall}")
        return found


def only(found):
    loop, = found["loops"]
    return loop


def by_time(found):
    return sorted(found["stalls"], key=lambda stall: stall["start_ns"])


def check_turns(found, known):
    """Each turn contains the callback that ran in it, and nothing of the next."""
    turns = by_time(found)[:len(known)]
    for stall, (number, begin, end), following in zip(turns, known, [*known[1:], None]):
        until = stall["start_ns"] + stall["duration_ns"]
        expect(stall["start_ns"] <= begin and end <= until and (not following or until <= following[1]),
               f"turn {number}: {begin} to {end}, and {stall['start_ns']} to {until} by stalls")
    return {number: stall for stall, (number, _, _) in zip(turns, known)}


def every_turn_contains_what_the_program_did_in_it(test):
    known = test.record("plain")
    found = test.stalls("--min", "0")
    loop = only(found)
    expect(loop["functions"] == ["epoll_wait"] and loop["waits"] == TURNS + 1, f"loop: {loop}")
    expect([loop["turns"], len(known), found["count"]] == [TURNS + 1, TURNS, TURNS + 1], f"turns: {loop}")
    turns = check_turns(found, known)
    expect([stall["ended"] for stall in by_time(found)] == ["wait"] * TURNS + ["left"], "how the turns ended")
    for number, (names, least) in PLANTED.items():
        path = [step["function"] for step in turns[number]["path"]]
        expect(path[:3] == names, f"turn {number}: {path}")
        expect(turns[number]["path"][2]["total_ns"] >= least, f"turn {number}: {turns[number]['path']}")
        expect(turns[number]["running_ns"] is None or turns[number]["running_ns"] >= least - SLACK, f"turn {number}: {turns[number]['running_ns']} running")
    slow = test.stalls("--min", "30ms")["stalls"]
    expect({17, 5} <= {number for number, stall in turns.items() if any(stall["start_ns"] == one["start_ns"] for one in slow)}, f"slow: {slow}")
    expect(len(slow) == sum(stall["duration_ns"] >= 30 * MS for stall in found["stalls"]), "stalls of 30 ms")


def a_wait_in_a_callback_is_said_and_ends_no_turn(test):
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    known = test.record("plain")
    found = test.stalls("--min", "0")
    turns = check_turns(found, known)
    asked, locked = turns[9], turns[13]
    expect([step["function"] for step in asked["path"]][:3] == ["handles", "asks", "poll"], f"path: {asked['path']}")
    expect(asked["waits"] and asked["waits"][0]["function"] == "poll" and asked["waiting_ns"] >= 19 * MS, f"asks: {asked}")
    named = [wait for wait in locked["waits"] if wait["kind"] in ("lock", "join")]
    expect(named, f"locks: {locked['waits']}")
    text = test.tool("stalls", test.trace(), "--min", "0", "--top", "0").stdout
    expect("waited" in text and "poll() in asks" in text, text[-2000:])


def the_turn_that_a_killed_process_was_in_is_a_stall(test):
    known = test.record("hang", status=KILLED)
    found = test.stalls("--min", "0")
    last = by_time(found)[-1]
    expect(len(known) == 21 and found["count"] == 22, f"{found['count']} turns")
    expect(last["ended"] == "open" and [step["function"] for step in last["path"]][:2] == ["handles", "parses"], f"last: {last}")
    expect("it had not ended (killed by signal 9 (SIGKILL))" in test.tool("stalls", test.trace(), "--min", "0", "--top", "0").stdout, "text")


def a_turn_ends_with_exit(test):
    known = test.record("exit", status=3)
    found = test.stalls("--min", "0")
    last = by_time(found)[-1]
    expect(len(known) == 21 and found["count"] == 22, f"{found['count']} turns")
    expect(last["ended"] == "exit" and [step["function"] for step in last["path"]][:2] == ["handles", "parses"], f"last: {last}")


def a_busy_loop_has_a_turn_for_each_call(test):
    test.record("busy")
    found = test.stalls("--min", "30ms")
    loop = only(found)
    expect(loop["waits"] == 20_000 and loop["turns"] == 20_000 and loop["functions"] == ["poll"], f"loop: {loop}")
    expect(any([step["function"] for step in stall["path"]][:2] == ["parses", "computes"] for stall in found["stalls"]), f"{found['stalls']}")


def loops_of_other_threads_are_shown_when_they_are_asked_for(test):
    test.record("threads")
    said = test.tool("stalls", test.trace(), status=1).stderr
    expect('no event loop on thread "main"' in said and "works/" in said and "--thread '*'" in said and len(said.splitlines()) == 1, said)
    found = test.stalls("--thread", "*", "--min", "0")
    expect(sorted(loop["waits"] for loop in found["loops"]) == [9, 13, 17], f"loops: {found['loops']}")
    one = test.stalls("--thread", str(found["loops"][0]["tid"]), "--min", "0")
    expect(one["loops"] == found["loops"][:1], f"one thread: {one['loops']}")
    text = test.tool("stalls", test.trace(), "--thread", "works", "--min", "0").stdout
    expect("3 threads with event loops: " in text, text[:500])


def what_has_no_loop_or_left_it_out_is_said_in_a_line(test):
    test.record("plain", "--exclude", "epoll_wait:poll")
    said = test.tool("stalls", test.trace(), status=1).stderr
    expect("poll, epoll_wait, select" in said and "TRACER_EXCLUDE left calls out" in said and len(said.splitlines()) == 1, said)
    test.tool("record", "--quiet", "--force", "-o", test.trace(), "--", "true")
    said = test.tool("stalls", test.trace(), status=1).stderr
    expect("no event loop" in said and "TRACER_" not in said and len(said.splitlines()) == 1, said)
    said = test.tool("stalls", test.trace(), "--thread", "nobody", status=1).stderr
    expect('no thread "nobody"' in said and len(said.splitlines()) == 1, said)


def a_minimum_time_that_hides_waits_is_said(test):
    test.record("busy", "--min-ms", "1")
    done = test.tool("stalls", test.trace(), status=None)
    # In ticks, whose length is measured: 1 ms, 999.990 us.
    expect(re.search(r"calls shorter than (1(\.00\d)? ms|999\.\d+ us)", done.stdout + done.stderr) or "TRACER_MINMS left calls out" in done.stderr, done.stdout + done.stderr)


def turns_of_a_window_have_their_whole_length(test):
    test.record("plain")
    whole = test.stalls("--min", "0")
    slow = whole["stalls"][0]
    middle = (slow["start_ns"] + slow["duration_ns"] // 2) / 1e9
    part = test.stalls("--min", "0", "--from", f"{middle:.9f}", "--to", f"{middle:.9f}")
    expect([stall["start_ns"] for stall in part["stalls"]] == [slow["start_ns"]] and part["stalls"][0]["duration_ns"] == slow["duration_ns"], f"{part}")
    around = test.stalls("--min", "0", "--around", "asks")
    expect([[step["function"] for step in stall["path"]][:2] for stall in around["stalls"]] == [["handles", "asks"]], f"around: {around['stalls']}")


ASYNCIO = """
import asyncio, time
def busy(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
async def main():
    for turn in range(12):
        await asyncio.sleep(0)
        if turn in (3, 8):
            busy(0.03 if turn == 3 else 0.09)
asyncio.run(main())
"""


def asyncio_has_a_loop_with_the_planted_turns(test):
    suite.need("/usr/bin/python3")
    script = test.write("program.py", ASYNCIO)
    test.tool("record", "--quiet", "--force", "-o", test.trace(), "--", "/usr/bin/python3", script)
    found = test.stalls("--min", "30ms")
    loop = only(found)
    expect("epoll_wait" in loop["functions"] and loop["turns"] >= 12, f"loop: {loop}")
    expect(len(found["stalls"]) >= 2, f"stalls: {found['stalls']}")
    running = [stall["running_ns"] for stall in found["stalls"]]
    expect(None in running or (sorted(running)[-1] >= 90 * MS - SLACK and sorted(running)[-2] >= 30 * MS - SLACK), f"running: {running}")


def tests():
    return suite.tests_of(__name__, Stalls)
