"""kill -9 at random moments loses no completed call; the tool reads files that are cut, damaged or still growing."""
import mmap
import os
import random
import signal
import struct
import subprocess
import time

import build
import harness
import suite
import tracefile
from harness import Failed, expect
from suite import read_bytes


class Killed(suite.Test):
    """A program that counts in shared memory is killed when its counter passes a random number: at any instruction."""
    checks_bare = True

    def __init__(self, threads, repetitions):
        super().__init__(f"durability.kill_9.{threads}_threads", None)
        self.threads, self.repetitions = threads, repetitions

    def judge(self):
        program, seed = build.program_of("durable"), random.randrange(1 << 30)
        repetitions = 2 if self.settings.bare_only else self.settings.moments // 2 or self.repetitions
        for number in range(seed, seed + repetitions):
            try:
                self.once(program, random.Random(number))
            except Failed as failure:
                raise Failed(f"seed {number}: {failure}")
            self.forget_traces()

    def once(self, program, chance):
        path = self.write("progress", bytes(4096))
        target = chance.choice((1, 10, 1000, 20000, 120000)) + chance.randrange(5000)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as shared:
            child = subprocess.Popen([program, path, str(self.threads)], env=self.traced_environment(), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, cwd=self.made)
            give_up = time.monotonic() + harness.HANGS
            while struct.unpack_from("<Q", shared, 8)[0] < target:
                if child.poll() is not None or time.monotonic() > give_up:
                    child.kill()
                    raise Failed(f"ended by itself: {harness.describe(child.wait())}: {child.stderr.read()[-300:]}")
                os.sched_yield()
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stderr.close()
            pairs = [struct.unpack_from("<2Q", shared, 64 * i) for i in range(self.threads)]
        if self.settings.bare_only:
            return
        trace = self.checked_trace()
        expect(trace.state == "recording", f"state {trace.state}")
        begun, done = sum(b for b, _ in pairs), sum(d for _, d in pairs)
        calls, still_open = trace.count("durable_step"), trace.count("durable_step", trace.open)
        expect(done <= calls <= begun, f"{done} calls done, {begun} begun, {calls} recorded")
        # A call that was done has its exit, but for one whose return the program has not noted yet.
        expect(calls - still_open <= begun and still_open <= self.threads, f"{still_open} calls open in {self.threads} threads")


RING = 1 << 20  # bytes


def ring_stays_within_its_size(test):
    """A thousand threads, one after the other, and a ring: what ended threads left is written over."""
    test.execute([build.program_of("threads"), "short_lived"], TRACER_MODE="ring", TRACER_MAXSIZE=str(RING))
    trace = tracefile.read_all(test.traces)[0]
    expect(not trace.anomalies, f"{trace.anomalies[:4]}")
    expect(len(trace.data) <= RING + (1 << 16), f"{len(trace.data)} bytes, the limit is {RING}")  # a metadata chunk may begin just below it
    # The youngest threads are there, and main, which has joined them.
    seen = [r for t in trace.threads.values() for r in t.roots if r.name == "life_work"]
    expect(10 <= len(seen) <= 1000 and max(t.index for t in trace.threads.values()) == 1000,
           f"{len(seen)} threads are in the file, the youngest is {max(trace.threads)}")
    faults = harness.cross_check(test.settings, trace)
    expect(not faults, f"{faults}")


OPENINGS = """#include <fcntl.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 10000; i++) {
        int file = open("/dev/null", O_RDONLY);
        if (file < 0 || close(file)) return 1;
    }
    return 0;
}
"""


def ring_stays_within_its_size_when_files_are_opened(test):
    """Each call that opens one has a record beside the ring."""
    limit = 256 << 10
    test.execute([test.compile("program", "-O1", source=OPENINGS)], TRACER_MODE="ring", TRACER_MAXSIZE=str(limit))
    trace, = tracefile.read_all(test.traces)
    expect(not trace.anomalies and trace.count("open"), f"{trace.anomalies[:4]}")
    expect(len(trace.data) <= limit + (1 << 16), f"{len(trace.data):,} bytes, the limit is {limit:,}")


def ring_keeps_the_youngest(test):
    """A thread that goes round a ring once and a half: its last chunks are there, none of them missing."""
    test.execute([build.program_of("steady"), "16000"], status=7, said=None, TRACER_MODE="ring", TRACER_MAXSIZE=str(RING))
    trace = tracefile.read_all(test.traces)[0]
    # Smaller chunks, with which threads begin, stay where they are.
    numbers = {}
    for _, chunk in trace.chunks:
        if chunk["kind"] == 1 and chunk["byte_count"] == RING // 16:
            numbers.setdefault(chunk["thread"], []).append(chunk["sequence"])
    expect(not all(0 in found for found in numbers.values()), f"the ring has overwritten nothing: {numbers}")
    for thread, found in numbers.items():
        expect(sorted(found) == list(range(min(found), min(found) + len(found))), f"thread {thread} has the chunks {sorted(found)}")


def damaged_files(test):
    """The tool on files that are cut, altered, empty, of another version, not traces: never a crash, never silence."""
    test.execute([build.program_of("steady"), "3000"], status=7, said=None)
    names = os.listdir(test.traces)
    expect(len(names) == 1, f"{len(names)} traces")
    whole, chance = read_bytes(test.trace(names[0])), random.Random(20240601)
    # Most of a chunk is untouched zero pages: cut where something is.
    used = len(whole.rstrip(b"\0"))
    cuts = [0, 1, 7, 8, 100, 191, 192, 4095, 4096, 4097, 4224] + [chance.randrange(used) for _ in range(25)]
    for cut in cuts:
        expect_report(test, whole[:cut], f"cut at {cut}", (1,) if cut < 4096 else (0, 1))
    for _ in range(25):
        at = chance.randrange(used)
        altered = whole[:at] + bytes(chance.randrange(256) for _ in range(16)) + whole[at + 16:]
        expect_report(test, altered, f"16 bytes altered at {at}", (0, 1))
    expect_report(test, whole[:8] + struct.pack("<I", 99) + whole[12:], "version 99", (1,), "99")
    expect_report(test, b"#!/bin/sh\nexit 0\n" * 500, "a shell script", (1,))
    expect_report(test, bytes(100000), "zeros", (1,))


def expect_report(test, data, what, statuses, mention=""):
    done = test.tool("report", test.write("victim.trace", data), "--json", status=None, text=False)
    said = done.stderr.decode(errors="replace")
    expect(done.returncode in statuses, f"{what}: {harness.describe(done.returncode)}, expected {statuses}: {said[-300:]}")
    expect(not done.returncode or said.strip(), f"{what}: refused without a word")
    expect(mention in said, f"{what}: the error does not mention {mention}: {said}")


def file_still_being_written(test):
    """`report` on the file of a program that is running: the calls that are complete so far."""
    with test.waiting(build.program_of("attached")):
        path = test.trace(os.listdir(test.traces)[0])
        expect(any(f["calls"] for f in harness.report(test.settings, path)["functions"]), "no call is reported while the program runs")
    after = {f["name"]: f["calls"] for f in harness.report(test.settings, path)["functions"]}
    expect(after.get("attached_step") == 300, f"attached_step: {after.get('attached_step')} calls in the finished file, expected 300")


WAYS_OUT = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *end(void *status) { _exit(*(int *)status); }
void call_own(void);
int main(int argc, char **argv) {
    int status = 3;
    pthread_t thread;
    getppid();
    if (!strcmp(argv[1], "_exit")) _exit(3);
    if (!strcmp(argv[1], "_Exit")) _Exit(3);
    if (!strcmp(argv[1], "quick_exit")) quick_exit(3);
    if (!strcmp(argv[1], "exit_group")) syscall(SYS_exit_group, 3);
    if (!strcmp(argv[1], "own")) call_own();
    if (!strcmp(argv[1], "thread")) pthread_create(&thread, 0, end, &status), pthread_join(thread, 0);
    pid_t child = !strcmp(argv[1], "vfork") ? vfork() : !strcmp(argv[1], "fork") ? fork() : -1;
    if (child == 0) _exit(3);
    if (child > 0) waitpid(child, 0, 0);
    raise(SIGKILL);
}
"""

# A library's own function of the name, which is no end of anything.
OWN = "void quick_exit(int status) { (void)status; }"
CALLER = "void quick_exit(int); void call_own(void) { quick_exit(3); }"
FLAGS = ("-O1", "-fPIC", "-fno-builtin")


def ended(way, *states, **variables):
    """Who goes out by _exit has ended as one does by exit; a child in this memory that does so has not ended this process."""
    def check(test):
        # Found before libc's where it is wanted alone.
        own = test.compile("libown.so", *FLAGS, "-shared", source=OWN)
        wanted = ["-Wl,--no-as-needed,-rpath,$ORIGIN", own] if way == "own" else []
        sources = [test.write("ways.c", WAYS_OUT), test.write("caller.c", CALLER)]
        test.execute([test.compile("ways", *FLAGS, *sources, *wanted, "-lpthread"), way], status=-9 if "recording" in states else 3, **variables)
        traces = tracefile.read_all(test.traces)
        expect(sorted(trace.state for trace in traces) == sorted(states), f"states {[trace.state for trace in traces]}, expected {states}")
        anomalies = [anomaly for trace in traces for anomaly in trace.anomalies]
        expect(not anomalies, f"{anomalies[:4]}")
    return suite.Test("_".join(["durability.ended_by", way.strip("_"), *(name.lower() for name in variables)]), check)


def tests():
    ways = ("_exit", "_Exit", "quick_exit", "exit_group", "thread")
    return [*(ended(way, "finished") for way in ways), ended("_exit", "finished", TRACER_EXCLUDE="*"), ended("_exit", "finished", TRACER_MINMS="1000"),
            ended("exit_group", "finished", TRACER_EXCLUDE="*"), ended("_exit", "finished", TRACER_START="off"),
            ended("vfork", "recording"), ended("own", "recording"), ended("fork", "finished", "recording"),
            Killed(1, 25), Killed(4, 10), *suite.tests_of(__name__)]
