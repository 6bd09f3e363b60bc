"""`tracer record` takes over the full chunks of the processes that it records (SpareChunks.swift, ChunkCollector.swift): no call is lost
or told twice, whoever is killed."""
import os
import select
import signal
import struct
import subprocess

import build
import harness
import suite
import tracefile
from harness import expect

SPARES_OFFSET, SPARES, SPARE = 1024, 128, struct.Struct("<2Q2I")
NONE, FREE, TAKEN, FULL, COPIED = range(5)


def spares(trace):
    return [spare for spare in SPARE.iter_unpack(trace.data[SPARES_OFFSET:SPARES_OFFSET + SPARES * SPARE.size]) if spare[2] != NONE]


class Collected(suite.Test):
    def start(self, threads, processes, more, options=(), before=()):
        program = build.program_of("filling")
        words = [self.settings.tool, "record", "--exclude", "sched_yield", *options, "-o", self.trace("%p.trace"), "--", *before, program, self.traces]
        return subprocess.Popen([*words, str(threads), str(processes), str(more)], cwd=self.made, env=self.environment(),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, running, given="x", status=0):
        out, err = running.communicate(given, timeout=harness.HANGS)
        expect(running.returncode == status, f"{harness.describe(running.returncode)}: {out[-300:]} {err[-500:]}")
        return {int(pid): int(calls) for pid, calls in (line.split() for line in out.splitlines())}

    def went_on(self, said, given):
        """What the program says when it has made more calls."""
        os.write(given.fileno(), b"x")
        pid, calls = said.readline().split()
        handle = os.pidfd_open(int(pid)) if os.path.exists(f"/proc/{pid}") else None
        expect(handle is None or select.select([handle], [], [], harness.HANGS)[0], "the program does not end")
        return {int(pid): int(calls)}

    def whole(self, made):
        """The traces of processes that made so many calls, each of which is there once."""
        traces = {trace.header["pid"]: trace for trace in tracefile.read_all(self.traces)}
        expect(traces.keys() == made.keys(), f"{sorted(traces)} recorded, {sorted(made)} ran")
        for pid, trace in traces.items():
            expect(not trace.anomalies, f"{trace.anomalies[:4]}")
            expect(trace.count("filled") == made[pid], f"{trace.count('filled')} of {made[pid]} calls of {pid}")
            faults = harness.cross_check(self.settings, trace)
            expect(not faults, f"{faults}")
        return list(traces.values())


def taken_over(threads, processes):
    def check(test):
        for trace in test.whole(test.ended(test.start(threads, processes, 0))):
            chunks, places = sum(len(found) for found in trace.by_thread.values()), len(spares(trace))
            expect(0 < places < chunks and trace.header["waits"] < chunks,
                   f"{chunks} chunks in {places} places, {trace.header['waits']} waits")
            shown = test.json("info", trace.path)
            expect(shown["agent_waits"] == trace.header["waits"] and shown["agent_wait_ns"] >= shown["longest_agent_wait_ns"] > 0, f"{shown}")
            expect(not shown["warnings"], f"{shown['warnings']}")
    return Collected(f"collected.by_{threads + 1}_threads_of_{processes + 1}_processes", check)


def a_killed_recorder_takes_nothing_along(test):
    """Its program fills all places, and then writes its chunks itself."""
    running = test.start(1, 0, 50, options=("--max-size", "16M")) # no more than sixteen places
    expect(running.stdout.readline() == "ready\n", "the program did not begin")
    running.send_signal(signal.SIGKILL)
    running.wait()
    trace, = test.whole(test.went_on(running.stdout, running.stdin))
    expect(trace.header["collected"] == 1 and all(state in (TAKEN, FULL, COPIED) for *_, state, _ in spares(trace)), "somebody took over more chunks")


def a_process_that_outlives_its_recorder_goes_on_alone(test):
    fifo = test.path("fifo")
    os.mkfifo(fifo)
    with open(fifo, "r+b", buffering=0) as given:
        script = f'"$@" < {fifo} & read line'
        running = test.start(1, 0, 50, before=("/bin/sh", "-c", script, "sh"))
        expect(running.stdout.readline() == "ready\n", "the program did not begin")
        os.write(running.stdin.fileno(), b"\n")
        expect(running.wait(harness.HANGS) == 0, "the recorder failed")
        made = test.went_on(running.stdout, given)
    (pid, calls), = made.items()
    trace, = [trace for trace in tracefile.read_all(test.traces) if trace.path.endswith(f"{pid}.2.trace")]
    expect(not trace.anomalies and trace.count("filled") == calls, f"{trace.count('filled')} of {calls} calls, {trace.anomalies[:4]}")
    expect(trace.header["collected"] == 0, "the process leaves its chunks to nobody")


def a_killed_program_loses_nothing(test):
    running = test.start(3, 0, 1_000_000)
    expect(running.stdout.readline() == "ready\n", "the program did not begin")
    os.write(running.stdin.fileno(), b"x")
    path = test.trace(os.listdir(test.traces)[0])
    before = os.path.getsize(path)
    while os.path.getsize(path) < before + (8 << 20):
        os.sched_yield()
    os.kill(int(os.path.basename(path).split(".")[0]), signal.SIGKILL)
    expect(running.wait(harness.HANGS) == 128 + signal.SIGKILL, running.stderr.read())
    trace, = tracefile.read_all(test.traces)
    expect(not trace.anomalies, f"{trace.anomalies[:4]}")
    faults = harness.cross_check(test.settings, trace)
    expect(not faults, f"{faults}")
    for thread, chunks in trace.by_thread.items():
        numbers = sorted(number for number, _, _ in chunks)
        expect(numbers == list(range(len(numbers))), f"chunks {[n for n in range(len(numbers)) if n not in numbers][:4]} of thread {thread} are missing")


def a_ring_stays_within_its_size(test):
    limit = 4 << 20
    made = test.ended(test.start(1, 0, 0, options=("--mode", "ring", "--max-size", str(limit))))
    trace, = tracefile.read_all(test.traces)
    expect(not trace.anomalies and spares(trace), f"{trace.anomalies[:4]}")
    expect(len(trace.data) <= limit + (1 << 18), f"{len(trace.data)} bytes, the limit is {limit}")  # the kernel's events are added
    calls, whole = trace.count("filled"), sum(made.values())
    expect(limit // 16 <= calls * 8 and calls <= whole, f"{calls} of {whole} calls")
    faults = harness.cross_check(test.settings, trace)
    expect(not faults, f"{faults}")


def a_ring_keeps_its_youngest_chunks_when_the_recorder_is_late(test):
    """The recorder stands still while the program writes over its ring thirty times."""
    running = test.start(0, 0, 200, options=("--mode", "ring", "--max-size", "1M"))
    expect(running.stdout.readline() == "ready\n", "the program did not begin")
    path = test.trace(os.listdir(test.traces)[0])
    while any(state in (FULL, COPIED) for *_, state, _ in spares(tracefile.Trace(path))):
        os.sched_yield()
    running.send_signal(signal.SIGSTOP)
    test.went_on(running.stdout, running.stdin)
    running.send_signal(signal.SIGCONT)
    expect(running.wait(harness.HANGS) == 0, "the recorder failed")
    trace, = tracefile.read_all(test.traces)
    expect(not trace.anomalies, f"{trace.anomalies[:4]}")
    numbers = sorted(number for number, _, _ in trace.by_thread[0])
    expect(len(numbers) > 4 and numbers == list(range(numbers[0], numbers[-1] + 1)), f"chunks {numbers} are left")
    faults = harness.cross_check(test.settings, trace)
    expect(not faults, f"{faults}")
    expect(test.json("report", path)["threads"][0]["span_ns"], "own code is not known")


def tests():
    return [taken_over(0, 0), taken_over(3, 0), taken_over(1, 3), *suite.tests_of(__name__, Collected)]
