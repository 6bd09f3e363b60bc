"""What `report`, `tree`, `callers`, `diff` and `export` say of the time that functions were on a CPU, waited, or could have run, against the
program's own account of its CPU time and against `threads`. Judged within one run, so that it does not matter what else the machine does."""
import contextlib
import os
import subprocess
import sys

import build
import suite
from harness import Skipped, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

NAMES = ["computes", "sleeps", "does_both", "recurses"]
STATES = ["running", "waiting", "runnable"]
SHARE = 0.05
SLACK = 2_000_000  # ns: interrupts are in the thread's CPU time and in no switch


class States(suite.Test):
    def program(self):
        return self.compile("states", "-O1", "-g", os.path.join(build.SUBJECTS, "part_states.c"))

    def record(self, name="a.trace", cpu=None, options=(), **variables):
        """Runs the program, on one CPU perhaps. Returns by function how long it took, how long of that on a CPU, and how often it was called:
        all processes together."""
        if not kernel_reports():
            raise Skipped("the kernel does not report switches here")
        if cpu is not None:
            variables["ON_CPU"] = str(cpu)
        before = stolen()
        lines = self.tool("record", "--quiet", "--force", "--functions", "states!*", "--exclude", "clock_gettime", *options, "-o", self.trace(name),
                          "--", self.program(), env=self.environment(**variables)).stdout.splitlines()
        self.stolen = stolen() - before
        known = {}
        for name, *numbers in (line.split() for line in lines):
            known[name] = tuple(sum(pair) for pair in zip(known.get(name, (0, 0, 0)), map(int, numbers)))
        return known


def stolen():
    """Nanoseconds that the hypervisor has given others the CPUs so far: a thread that is switched in then does not run (proc(5), /proc/stat)."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def rivals(cpu, count):
    """Busy loops on a CPU."""
    loop = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    running = [subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for rival in running:
            rival.stdout.readline()
        yield
    finally:
        for rival in running:
            rival.kill()
            rival.wait()
            rival.stdout.close()


def functions(report):
    return {row["name"]: row for row in report["functions"]}


def check(report, known, stolen):
    """A report against what the program knows of itself."""
    rows = functions(report)
    for name, (wall, cpu, calls) in known.items():
        row = rows[name]
        total = {state: row[f"total_{state}_ns"] for state in STATES}
        slack = SHARE * cpu + SLACK + stolen
        expect(abs(total["running"] - cpu) <= slack, f"{name} ran {cpu} ns by its own clock: {total}")
        expect(abs(sum(total.values()) - wall) <= SHARE * wall + SLACK, f"{name} took {wall} ns by its own clock: {total}")
    for row in report["functions"]:
        for time in ("self", "total"):
            parts = [row[f"{time}_{state}_ns"] for state in STATES]
            expect(sum(parts) == row[f"{time}_ns"] and min(parts) >= -1, f"{row['name']}: {time} {row[f'{time}_ns']} is {parts}")


def a_function_has_its_own_cpu_time(test):
    known = test.record()
    report = test.json("report", test.trace())
    check(report, known, test.stolen)
    rows = functions(report)
    # It does nothing but sleep, and the other one nothing but compute.
    expect(rows["sleeps"]["total_waiting_ns"] > 50_000_000 and rows["computes"]["total_waiting_ns"] < SLACK, f"{rows['sleeps']} {rows['computes']}")


def running_time_is_without_the_time_of_others(test):
    """A program beside busy loops takes three times as long, and runs no longer."""
    cpu = max(os.sched_getaffinity(0))
    with rivals(cpu, 2):
        known = test.record(cpu=cpu)
    wall, ran, _ = known["computes"]
    expect(wall > 1.5 * ran, f"beside two busy loops it ran {ran} of {wall} ns")
    report = test.json("report", test.trace())
    check(report, known, test.stolen)
    text = test.tool("report", test.trace()).stdout
    expect("others had the CPUs: --time running leaves it out" in text, text[:500])
    rows = functions(report)
    for time in ("running", "waiting"):
        shown = test.json("report", test.trace(), "--time", time)
        expect(shown["time"] == time and report["time"] == "wall", shown["time"])
        for name, row in functions(shown).items():
            expect(row["self_ns"] == rows[name][f"self_{time}_ns"] and row["total_ns"] == rows[name][f"total_{time}_ns"], f"{time}: {row} {rows[name]}")
            expect(all(row[f"{kind}_{state}_ns"] == rows[name][f"{kind}_{state}_ns"] for kind in ("self", "total") for state in STATES), f"{row} {rows[name]}")
            if row["calls"] == 2 and row["name"] in NAMES:
                expect(row["min_ns"] + row["max_ns"] <= row["total_ns"] + 2 and row["max_ns"] <= row["total_ns"], f"{row}")
        order = [row["self_ns"] for row in shown["functions"]]
        expect(order == sorted(order, reverse=True) and "others had the CPUs" not in test.tool("report", test.trace(), "--time", time).stdout, f"{order}")
    # The same in every output that adds up.
    tree = test.json("tree", test.trace(), "--time", "running")
    callers = test.json("callers", test.trace(), "computes", "--time", "running")["callers"]
    for name in ("computes", "sleeps"):
        [node] = [node for node in tree["nodes"] if node["function"] >= 0 and tree["functions"][node["function"]]["name"] == name]
        expect(abs(node["total_ns"] - rows[name]["total_running_ns"]) <= 4, f"{node} {rows[name]}")
        # In a tree it is a sum of nanoseconds, in a report one of ticks.
        expect(abs(node["total_runnable_ns"] - rows[name]["total_runnable_ns"]) <= 4, f"{node} {rows[name]}")
    expect(abs(callers["nodes"][1]["total_ns"] - rows["computes"]["total_running_ns"]) <= 4, f"{callers['nodes'][1]}")
    test.tool("export", test.trace(), "--format", "folded", "--time", "running", "--force", "-o", test.path("folded"))
    with open(test.path("folded")) as lines:
        folded = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    whole = report["states"]["running_ns"]
    expect(abs(folded - whole) <= SHARE * whole, f"{folded} of {whole}")


def all_functions_have_what_their_threads_have(test):
    """In a window of time within main, where `threads` and `report` are of the same time."""
    test.record()
    report = test.json("report", test.trace())
    begin = report["duration_ns"] // 4
    window = ("--from", f"{begin}ns", "--to", f"{3 * begin}ns")
    report = test.json("report", test.trace(), *window)
    [thread] = [thread for thread in test.json("threads", test.trace(), *window)["threads"] if thread["tid"] == report["pid"]]
    for state in STATES:
        of_functions = sum(row[f"self_{state}_ns"] for row in report["functions"])
        expect(abs(of_functions - thread[f"{state}_ns"]) <= 1000, f"{state}: {of_functions} of functions, the thread has {thread}")
        expect(abs(report["states"][f"{state}_ns"] - thread[f"{state}_ns"]) <= 1000, f"{state}: {report['states']}, the thread has {thread}")


def other_programs_are_no_difference(test):
    cpu = max(os.sched_getaffinity(0))
    known = [test.record("before.trace", cpu=cpu)]
    with rivals(cpu, 2):
        known.append(test.record("after.trace", cpu=cpu))
    sides = test.trace("before.trace"), test.trace("after.trace")
    rows = [functions(test.json("report", side)) for side in sides]
    before, after = (of_side["burn"] for of_side in rows)
    # What the machine itself takes, a hypervisor's part of it, is in the time between two switches and not in the thread's own clock.
    taken = sum(abs(of_side[name]["total_running_ns"] - clocks[name][1]) for of_side, clocks in zip(rows, known) for name in NAMES)
    judged, wall = ([row for row in diff["functions"] if row["name"] == "burn"][0]["difference_ns"]
                    for diff in (test.json("diff", *sides), test.json("diff", *sides, "--time", "wall")))
    # It computes as long each time, by its own clock.
    expect(abs(judged) <= SHARE * before["self_running_ns"] + SLACK + taken, f"burn differs by {judged} ns: {before} {after}")
    expect(abs(wall - judged - (after["self_runnable_ns"] - before["self_runnable_ns"])) <= 10, f"{wall} by the wall clock, {judged}: {before} {after}")
    expect([test.json("diff", *sides, *words)["time"] for words in ((), ("--time", "wall"))] == ["running+waiting", "wall"], "judged by another time")
    expect("compared by     running and waiting; without " in test.tool("diff", *sides).stdout, "it does not say by what it compares")


def what_is_not_known_is_said(test):
    test.record(options=("--no-states",))
    expect("self_running_ns" not in test.json("report", test.trace())["functions"][0], "states out of nothing")
    for words in (["report"], ["report", "computes"], ["report", "--by", "process"], ["tree"], ["callers", "computes"], ["export", "--format", "pprof", "--force", "-o", test.path("p")]):
        said = test.tool(words[0], test.trace(), *words[1:], "--time", "running", status=1).stderr
        expect("has no context switches, so --time running is not known: " in said and said.count("\n") == 1, said)
    said = test.tool("report", test.trace(), "--time", "awake", status=2).stderr
    expect("'awake'" in said and "wall" in said, said)
    said = test.tool("tree", test.trace(), "--correct", "--time", "waiting", status=2).stderr
    expect("--correct takes recording out" in said, said)
    alone = test.json("report", test.trace(), "computes")
    expect("total_running_ns" not in alone and "running_ns" not in alone["slowest"][0], f"states out of nothing: {alone}")
    expect("waiting" not in test.tool("report", test.trace(), "computes").stdout, "states out of nothing")


def a_run_is_added_up(test):
    """Two processes: each function has the sums of both."""
    known = test.record("%p.trace", TWICE="1")
    report = test.json("report", os.path.dirname(test.trace()))
    expect(len(report["processes"]) == 2 and functions(report)["computes"]["calls"] == 4, f"{report['processes']}")
    check(report, known, test.stolen)
    running = functions(test.json("report", os.path.dirname(test.trace()), "--time", "running"))
    for name, row in functions(report).items():
        expect(running[name]["self_ns"] == row["self_running_ns"] and running[name]["total_ns"] == row["total_running_ns"], f"{row} {running[name]}")


def one_function_has_the_chosen_time(test):
    known = test.record()
    rows = functions(test.json("report", test.trace()))
    for name in NAMES:
        by_time = {time: test.json("report", test.trace(), name, "--time", time) for time in ("wall", "running", "waiting")}
        for time, report in by_time.items():
            whole = rows[name]["total_ns"] if time == "wall" else rows[name][f"total_{time}_ns"]
            # In a tree it is a sum of nanoseconds, in a report one of ticks.
            expect(report["time"] == time and abs(report["total_ns"] - whole) <= 4, f"{name} {time}: {report['total_ns']}, in the table {whole}")
            expect(all(abs(report[f"{kind}_{state}_ns"] - rows[name][f"{kind}_{state}_ns"]) <= 4 for kind in ("self", "total") for state in STATES), f"{report} {rows[name]}")
            order = [call["duration_ns"] if time == "wall" else call[f"{time}_ns"] for call in report["slowest"]]
            expect(order == sorted(order, reverse=True), f"{name} {time}: {order}")
            expect(all(sum(call[f"{state}_ns"] for state in STATES) == call["duration_ns"] for call in report["slowest"]), f"{report['slowest']}")
            expect(sum(bar["calls"] for bar in report["histogram"]) == rows[name]["calls"], f"{report['histogram']}")
        waiting = by_time["waiting"]
        expect(waiting["max_ns"] <= waiting["total_ns"] + 4 and known[name][2] <= waiting["calls"], f"{waiting}")
    text = test.tool("report", test.trace(), "sleeps", "--time", "waiting").stdout
    expect("time spent waiting only" in text and "how long the calls waited" in text and "total: running " in text, text)


def call_sites_and_processes_have_the_chosen_time(test):
    test.record("%p.trace", TWICE="1", options=("--call-sites",))
    run = os.path.dirname(test.trace())
    report = test.json("report", run)
    sites = test.json("report", run, "--by", "site")
    for time in ("running", "waiting"):
        shown = test.json("report", run, "--by", "site", "--time", time)
        expect(shown["time"] == time and len(shown["functions"]) == len(sites["functions"]), f"{time}: {len(shown['functions'])} rows")
        for name in NAMES:
            of_sites = sum(row["self_ns"] for row in shown["functions"] if row["name"] == name)
            expect(abs(of_sites - functions(report)[name][f"self_{time}_ns"]) <= 4, f"{name} {time}: {of_sites}")
        rows = test.json("callers", run, "computes", "--sites", "--time", time)["sites"]
        expect(abs(sum(row["total_ns"] for row in rows) - functions(report)["computes"][f"total_{time}_ns"]) <= 4, f"{rows}")
        expect(f"--time {time}" in test.tool("callers", run, "computes", "--sites", "--time", time).stdout, "it does not say which time")
    processes = test.json("report", run, "--by", "process")["processes"]
    for process in processes:
        expect(sum(process[f"in_calls_{state}_ns"] for state in STATES) == process["in_calls_ns"], f"{process}")
        expect(process["in_calls_waiting_ns"] > 50_000_000, f"each has slept twice: {process}")
    for state in STATES:
        expect(abs(sum(process[f"{state}_ns"] for process in processes) - report["states"][f"{state}_ns"]) <= 4, f"{state}: {processes} {report['states']}")
    text = test.tool("report", run, "--by", "process", "--time", "running").stdout
    expect("time on a CPU only" in text and "of threads" in text, text)


def tests():
    return suite.tests_of(__name__, States)
