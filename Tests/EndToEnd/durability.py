#!/usr/bin/env python3
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
import tracefile
from harness import Failed, expect


class Killed:
    """A program that counts in shared memory is killed when its counter passes a random number: at any instruction."""

    def __init__(self, threads, repetitions):
        self.name = f"durability.kill_9.{threads}_threads"
        self.threads, self.repetitions = threads, repetitions

    def run(self, settings):
        case = next(c for s in build.subjects() if s.name == "durable" for c in s.cases())
        program = build.build(case)
        directory = harness.Directory("durable", settings.keep)
        seed = random.randrange(1 << 30)
        try:
            repetitions = settings.moments // 2 if settings.moments else self.repetitions
            for repetition in range(repetitions if not settings.bare_only else 2):
                self.once(settings, directory, program, random.Random(seed + repetition), f"seed {seed + repetition}")
                for name in os.listdir(directory.traces):
                    os.unlink(os.path.join(directory.traces, name))
        finally:
            directory.done()

    def once(self, settings, directory, program, chance, which):
        directory.fresh()
        environment = harness.passed_on(os.environ)
        if not settings.bare_only:
            environment = harness.traced_environment(settings, environment, directory)
        path = os.path.join(directory.path, "progress")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        target = chance.choice((1, 10, 1000, 20000, 120000)) + chance.randrange(5000)
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 4096) as shared:
            child = subprocess.Popen([program, path, str(self.threads)], env=environment, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, cwd=directory.path)
            give_up = time.monotonic() + harness.HANGS
            while struct.unpack_from("<Q", shared, 8)[0] < target:
                if child.poll() is not None or time.monotonic() > give_up:
                    child.kill()
                    raise Failed(f"{which}: ended by itself: {harness.describe(child.wait())}: {child.stderr.read()[-300:]}")
                os.sched_yield()
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stderr.close()
            pairs = [struct.unpack_from("<2Q", shared, 64 * i) for i in range(self.threads)]
        if settings.bare_only:
            return
        traces = tracefile.read_all(directory.traces)
        expect(len(traces) == 1, f"{which}: {len(traces)} traces")
        trace = traces[0]
        expect(not trace.anomalies, f"{which}: {trace.anomalies[:4]}")
        expect(trace.state == "recording", f"{which}: state {trace.state}")
        begun, done = sum(b for b, _ in pairs), sum(d for _, d in pairs)
        calls, still_open = trace.count("durable_step"), trace.count("durable_step", trace.open)
        expect(done <= calls <= begun, f"{which}: {done} calls done, {begun} begun, {calls} recorded")
        # A call that was done has its exit, but for one whose return the program has not noted yet.
        expect(calls - still_open <= begun and still_open <= self.threads, f"{which}: {still_open} calls open in {self.threads} threads")
        faults = harness.cross_check(settings, trace)
        expect(not faults, f"{which}: {faults}")


class Ring:
    """A thousand threads, one after the other, and a ring: what ended threads left is written over."""
    name = "durability.ring_stays_within_its_size"
    limit = 1 << 20

    def run(self, settings):
        if settings.bare_only:
            return
        program = build.build(next(c for s in build.subjects() if s.name == "threads" for c in s.cases()))
        directory = harness.Directory("ring", settings.keep)
        try:
            done = harness.execute([program, "short_lived"], directory.fresh(), environment={
                **harness.traced_environment(settings, harness.passed_on(os.environ), directory),
                "TRACER_MODE": "ring", "TRACER_MAXSIZE": str(self.limit)})
            expect(not done.status and not done.stderr, f"{harness.describe(done.status)}: {done.stderr[-300:]}")
            trace = tracefile.read_all(directory.traces)[0]
            expect(not trace.anomalies, f"{trace.anomalies[:4]}")
            expect(len(trace.data) <= self.limit + (1 << 16),  # a metadata chunk may begin just below the limit
                   f"{len(trace.data)} bytes, the limit is {self.limit}")
            # The youngest threads are there, and main, which has joined them.
            seen = [r for t in trace.threads.values() for r in t.roots if r.name == "life_work"]
            expect(10 <= len(seen) <= 1000 and max(t.index for t in trace.threads.values()) == 1000,
                   f"{len(seen)} threads are in the file, the youngest is {max(trace.threads)}")
            faults = harness.cross_check(settings, trace)
            expect(not faults, f"{faults}")
        finally:
            directory.done()


class Youngest:
    """A thread that goes round a ring once and a half: its last chunks are there, none of them missing."""
    name = "durability.ring_keeps_the_youngest"
    limit, rounds = 1 << 20, 16000

    def run(self, settings):
        if settings.bare_only:
            return
        program = build.build(next(c for s in build.subjects() if s.name == "steady" for c in s.cases()))
        directory = harness.Directory("youngest", settings.keep)
        try:
            done = harness.execute([program, str(self.rounds)], directory.fresh(), environment={
                **harness.traced_environment(settings, harness.passed_on(os.environ), directory),
                "TRACER_MODE": "ring", "TRACER_MAXSIZE": str(self.limit)})
            expect(done.status == 7, f"{harness.describe(done.status)}: {done.stderr[-300:]}")
            trace = tracefile.read_all(directory.traces)[0]
            # Smaller chunks, with which threads begin, stay where they are.
            numbers = {}
            for _, chunk in trace.chunks:
                if chunk["kind"] == 1 and chunk["byte_count"] == self.limit // 16:
                    numbers.setdefault(chunk["thread"], []).append(chunk["sequence"])
            expect(not all(0 in found for found in numbers.values()), f"the ring has overwritten nothing: {numbers}")
            for thread, found in numbers.items():
                expect(sorted(found) == list(range(min(found), min(found) + len(found))), f"thread {thread} has the chunks {sorted(found)}")
        finally:
            directory.done()


class Damaged:
    """The tool on files that are cut, altered, empty, of another version, not traces: never a crash, never silence."""
    name = "durability.damaged_files"

    def run(self, settings):
        if settings.bare_only:
            return
        case = next(c for s in build.subjects() if s.name == "steady" for c in s.cases())
        program = build.build(case)
        directory = harness.Directory("damaged", settings.keep)
        try:
            harness.execute([program, "3000"], directory.fresh(), harness.traced_environment(settings, harness.passed_on(os.environ), directory))
            names = os.listdir(directory.traces)
            expect(len(names) == 1, f"{len(names)} traces")
            with open(os.path.join(directory.traces, names[0]), "rb") as file:
                whole = file.read()
            victim = os.path.join(directory.path, "victim.trace")
            chance = random.Random(20240601)
            # Most of a chunk is untouched zero pages: cut where something is.
            used = len(whole.rstrip(b"\0"))
            cuts = [0, 1, 7, 8, 100, 191, 192, 4095, 4096, 4097, 4224] + [chance.randrange(used) for _ in range(25)]
            for cut in cuts:
                self.expect(settings, victim, whole[:cut], f"cut at {cut}", (1,) if cut < 4096 else (0, 1))
            for _ in range(25):
                at = chance.randrange(used)
                self.expect(settings, victim, whole[:at] + bytes(chance.randrange(256) for _ in range(16)) + whole[at + 16:],
                            f"16 bytes altered at {at}", (0, 1))
            self.expect(settings, victim, whole[:8] + struct.pack("<I", 99) + whole[12:], "version 99", (1,), "99")
            self.expect(settings, victim, b"#!/bin/sh\nexit 0\n" * 500, "a shell script", (1,))
            self.expect(settings, victim, bytes(100000), "zeros", (1,))
        finally:
            directory.done()

    def expect(self, settings, path, data, what, statuses, mention=None):
        with open(path, "wb") as file:
            file.write(data)
        done = subprocess.run([settings.tool, "report", path, "--json"], capture_output=True, timeout=harness.HANGS)
        expect(done.returncode in statuses,
               f"{what}: {harness.describe(done.returncode)}, expected {statuses}: {done.stderr[-300:].decode(errors='replace')}")
        expect(not done.returncode or done.stderr.strip(), f"{what}: refused without a word")
        expect(not mention or mention in done.stderr.decode(errors="replace"),
               f"{what}: the error does not mention {mention}: {done.stderr.decode(errors='replace')}")


class StillWritten:
    """`report` on the file of a program that is running: the calls that are complete so far."""
    name = "durability.file_still_being_written"

    def run(self, settings):
        if settings.bare_only:
            return
        case = next(c for s in build.subjects() if s.name == "attached" for c in s.cases())
        program = build.build(case)
        directory = harness.Directory("growing", settings.keep)
        directory.fresh()
        try:
            child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory.path,
                                     env=harness.traced_environment(settings, harness.passed_on(os.environ), directory))
            try:
                expect(child.stdout.readline() == b"waiting\n", "the program did not start")
                path = os.path.join(directory.traces, os.listdir(directory.traces)[0])
                shown = harness.report(settings, path)
                expect(any(f["calls"] for f in shown["functions"]), "no call is reported while the program runs")
                child.stdin.write(b"x")
                child.stdin.close()
                child.stdout.read()
                expect(not child.wait(timeout=harness.HANGS), f"the program: {harness.describe(child.returncode)}")
                after = {f["name"]: f["calls"] for f in harness.report(settings, path)["functions"]}
                expect(after.get("attached_step") == 300,
                       f"attached_step: {after.get('attached_step')} calls in the finished file, expected 300")
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()
        finally:
            directory.done()


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
OWN_EXIT = {"own.c": "void quick_exit(int status) { (void)status; }", "caller.c": "void quick_exit(int); void call_own(void) { quick_exit(3); }"}


class Ended:
    """Who goes out by _exit has ended as one does by exit; a child in this memory that does so has not ended this process."""

    def __init__(self, way, *states, **variables):
        self.name = "_".join(["durability.ended_by", way.strip("_"), *(name.lower() for name in variables)])
        self.way, self.states, self.variables = way, states, variables

    def run(self, settings):
        if settings.bare_only:
            return
        directory = harness.Directory("ended", settings.keep)
        try:
            where = directory.fresh()
            with open(os.path.join(where, "ways.c"), "w", encoding="utf-8") as file:
                file.write(WAYS_OUT)
            for name, text in OWN_EXIT.items():
                with open(os.path.join(where, name), "w", encoding="utf-8") as file:
                    file.write(text)
            # Found before libc's where it is wanted alone.
            own = ["-Wl,--no-as-needed,-rpath,$ORIGIN", "-L.", "-lown"] if self.way == "own" else []
            for command in (["-shared", "-o", "libown.so", "own.c"], ["-o", "ways", "ways.c", "caller.c", *own, "-lpthread"]):
                subprocess.run(["gcc", "-O1", "-fPIC", "-fno-builtin", *command], cwd=where, check=True)
            environment = harness.traced_environment(settings, harness.passed_on(os.environ), directory)
            ended = harness.execute([os.path.join(where, "ways"), self.way], where, {**environment, **self.variables})
            expect(ended.status == (-9 if "recording" in self.states else 3) and not ended.stderr,
                   f"{harness.describe(ended.status)}: {ended.stderr}")
            traces = tracefile.read_all(directory.traces)
            expect(sorted(trace.state for trace in traces) == sorted(self.states),
                   f"states {[trace.state for trace in traces]}, expected {self.states}")
            for trace in traces:
                expect(not trace.anomalies, f"{trace.anomalies[:4]}")
        finally:
            directory.done()


def tests():
    ways = ("_exit", "_Exit", "quick_exit", "exit_group", "thread")
    return [*(Ended(way, "finished") for way in ways), Ended("_exit", "finished", TRACER_EXCLUDE="*"), Ended("_exit", "finished", TRACER_MINMS="1000"),
            Ended("exit_group", "finished", TRACER_EXCLUDE="*"), Ended("_exit", "finished", TRACER_START="off"),
            Ended("vfork", "recording"), Ended("own", "recording"), Ended("fork", "finished", "recording"),
            Killed(1, 25), Killed(4, 10), Ring(), Youngest(), Damaged(), StillWritten()]
