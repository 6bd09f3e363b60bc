#!/usr/bin/env python3
"""The storm (storm.cpp), for as long as wanted, with the agent in it.

One storm runs from the beginning to the end, in ring mode, beside the same storm without the agent: every minute a line
says how much private memory, how many descriptors and how much disk it has, and whether that grows. Storms of another
kind are started one after the other and killed with SIGKILL at random moments; the file of each is read by the tool
and by the independent decoder, and holds every call that the program says it had completed. So are files of children
that the storms forked. Ends with status 1 when anything of this fails.
"""
import argparse
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "Tests/EndToEnd"))
import tracefile  # noqa: E402

ACTIVITIES = ["exceptions", "longjmps", "forks", "dlopens"]
KINDS = ACTIVITIES + ["threads", "signals", "kills", "fibers"]
COUNTS = ["begun", "done", "threads", "signals", "exceptions", "longjmps", "forks", "dlopens", "handled", "quiet", "measured"]
RING = 64 << 20
DECODED = 24 << 20  # the decoder keeps calls as objects: larger files are left to the tool
WARM = 120  # seconds after which nothing grows any more
GROWTH = 1.05, 1 << 20  # what private memory may grow by from then on, besides what the bare storm's grows by
FIBER_RING = 16 << 20
FIBER_BLOCK = 50_000  # requests for each line of the server on coroutines
DEARER = 1.25  # what a request may cost at the end, as a multiple of its cost at the beginning, each against the bare server's
QUIET = 4 << 20  # bytes of the trace that may be mapped when one thread is left
HIDDEN = {"LD_PRELOAD"}


def build(folder):
    def run(*command):
        subprocess.run(command, check=True, cwd=folder, timeout=300)
    here = ["-I", HERE, "-L.", "-Wl,-rpath,$ORIGIN"]
    run("g++", "-O1", "-g", "-fPIC", "-shared", "-o", "libstorm.so", os.path.join(HERE, "storm_library.cpp"))
    for number in 1, 2, 3:
        run("gcc", "-O1", "-fPIC", "-shared", f"-DNUMBER={number}", "-o", f"storm_plugin{number}.so",
            os.path.join(HERE, "storm_plugin.c"), *here, "-lstorm")
    run("g++", "-O1", "-g", "-std=c++17", "-o", "fibers", os.path.join(HERE, "fibers.cpp"))
    run("g++", "-O1", "-g", "-std=c++17", "-o", "storm", os.path.join(HERE, "storm.cpp"), *here, "-lstorm", "-pthread")


class Storm:
    """One running storm and what it leaves."""

    def __init__(self, options, folder, name, seconds, threads, only, traced=True, settings=()):
        self.traced, self.name = traced, name
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        counts = os.path.join(self.folder, "counts")
        with open(counts, "wb") as file:
            file.write(bytes(4096))
        with open(counts, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 4096)
        environment = {k: v for k, v in os.environ.items() if k not in HIDDEN and not k.startswith("TRACER_")}
        if traced:
            environment.update(LD_PRELOAD=options.agent, TRACER_CACHE="off", TRACER_OUT=os.path.join(self.folder, "%e.%p.trace"), **dict(settings))
        self.errors = open(os.path.join(self.folder, "stderr"), "w+b")
        rate = 10000 if "signals" in only else 0
        self.process = subprocess.Popen(
            [os.path.join(folder, "storm"), counts, str(seconds), str(threads), str(rate)] + [a for a in ACTIVITIES if a in only],
            env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)

    def counts(self):
        return dict(zip(COUNTS, struct.unpack_from(f"<{len(COUNTS)}q", self.shared)))

    def release(self):
        """Lets it end, once it is quiet."""
        struct.pack_into("<q", self.shared, 8 * COUNTS.index("measured"), 1)

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()[-400:]

    def traces(self):
        own = f"storm.{self.process.pid}.trace"
        names = [n for n in os.listdir(self.folder) if n.endswith(".trace")]
        return os.path.join(self.folder, own), [os.path.join(self.folder, n) for n in names if n != own]

    def private_memory(self):
        """Bytes of memory that belong to the process alone: no file, so not the trace."""
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("Anonymous:"))

    def mapped_trace(self):
        """Bytes of its trace that it has mapped."""
        total = 0
        with open(f"/proc/{self.process.pid}/maps") as file:
            for line in file:
                if line.rstrip().endswith(".trace"):
                    low, high = line.split()[0].split("-")
                    total += int(high, 16) - int(low, 16)
        return total

    def descriptors(self):
        """(those of the program, the fewest of the agent's that were seen: a thread has one while it opens a chunk)"""
        folder, others, own = f"/proc/{self.process.pid}/fd", 0, 1 << 30
        for _ in range(10):
            names = []
            for name in os.listdir(folder):
                try:
                    names.append(os.readlink(os.path.join(folder, name)))
                except FileNotFoundError:
                    pass
            traces = sum(n.endswith(".trace") for n in names)
            others, own = len(names) - traces, min(own, traces)
            time.sleep(0.05)
        return others, own


class Checks:
    def __init__(self, options):
        self.options, self.failures, self.files, self.decoded = options, [], 0, 0

    def fail(self, text):
        self.failures.append(text)
        print("FAILED:", text, flush=True)

    def read(self, path, keep_name, calls=None):
        """The tool and, if the file is small, the decoder read it. `calls`: (done, begun) of storm_step, where known."""
        self.files += 1
        for command in ["info", "--json"], ["report", "--json"]:
            done = subprocess.run([self.options.tool, command[0], path, *command[1:]], capture_output=True, timeout=600)
            if done.returncode:
                self.fail(f"{keep_name}: tracer {command[0]}: status {done.returncode}: {done.stderr[-300:].decode(errors='replace')}")
                self.keep(path)
                return
        if os.path.getsize(path) > DECODED:
            return
        self.decoded += 1
        try:
            trace = tracefile.Trace(path).trees()
            anomalies = trace.anomalies
            steps = trace.count("storm_step")
        except Exception as error:
            anomalies, steps = [repr(error)], 0
        if anomalies:
            self.fail(f"{keep_name}: decoder: {anomalies[:3]}")
            self.keep(path)
        elif calls and steps < calls[0]:
            self.fail(f"{keep_name}: {calls[0]} calls were done, {steps} are in the file")
            self.keep(path)

    def keep(self, path):
        kept = os.path.join(self.options.keep, f"{len(self.failures)}.{os.path.basename(path)}")
        shutil.copy(path, kept)
        print(f"  kept as {kept}", flush=True)


class Fibers:
    """The server on coroutines (fibers.cpp), for the whole time, without the agent and in a ring."""

    def __init__(self, options, folder, seconds):
        self.folder = os.path.join(folder, "server")
        os.makedirs(self.folder)
        environment = {k: v for k, v in os.environ.items() if k not in HIDDEN and not k.startswith("TRACER_")}
        traced = {**environment, "LD_PRELOAD": options.agent, "TRACER_CACHE": "off", "TRACER_OUT": os.path.join(self.folder, "%e.%p.trace"),
                  "TRACER_MODE": "ring", "TRACER_MAXSIZE": str(FIBER_RING)}
        self.runs = {}
        for name, variables in ("bare", environment), ("traced", traced):
            with open(os.path.join(self.folder, name), "wb") as output:
                self.runs[name] = subprocess.Popen([os.path.join(folder, "fibers"), f"{seconds:.0f}s", str(FIBER_BLOCK)], env=variables,
                                                   cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output)
        self.disk = []

    def sample(self):
        trace = os.path.join(self.folder, f"fibers.{self.runs['traced'].pid}.trace")
        if os.path.exists(trace):
            self.disk.append(os.stat(trace).st_blocks * 512)

    def costs(self, name):
        """CPU time of a request in the second and the last fifth of the run, ns."""
        with open(os.path.join(self.folder, name)) as file:
            lines = [tuple(map(int, line.split())) for line in file]
        def cost(part):
            return (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])
        fifth = len(lines) // 5
        return (cost(lines[fifth:2 * fifth + 1]), cost(lines[-fifth - 1:]), lines[-1][0]) if fifth else None

    def judge(self, checks):
        for name, process in self.runs.items():
            if process.wait():
                checks.fail(f"fibers, {name}: status {process.returncode}")
                return
        bare, traced = self.costs("bare"), self.costs("traced")
        if not bare or not traced or len(self.disk) < 10:
            return
        early, late = traced[0] - bare[0], traced[1] - bare[1]
        print(f"fibers: {traced[2]:,} requests, of {traced[0]:,.0f} ns at first ({bare[0]:,.0f} bare) and {traced[1]:,.0f} at the end ({bare[1]:,.0f} bare); "
              f"ring of {megabytes(max(self.disk[len(self.disk) // 5:]))}", flush=True)
        if late > early * DEARER:
            checks.fail("a request on a coroutine costs more and more")
        if max(self.disk) > FIBER_RING * 1.5:
            checks.fail(f"the ring of the server on coroutines has {megabytes(max(self.disk))}")


def sweep(storm, checks, chance, most):
    """Checks some of the files that ended children of a storm left, and removes all of them."""
    _, others = storm.traces()
    ended = [p for p in others if not os.path.exists(f"/proc/{p.split('.')[-2]}")]
    for path in chance.sample(ended, min(most, len(ended))):
        checks.read(path, f"child of {storm.name}")
    for path in ended:
        os.unlink(path)


def kill_some(options, folder, checks, only, end, chance):
    """Storms that are killed, one after the other."""
    number = 0
    settings = [("TRACER_MODE", "full")], [("TRACER_MODE", "ring"), ("TRACER_MAXSIZE", "2M")]
    while time.monotonic() < end and not checks.failures:
        number += 1
        mode = settings[number % 2]
        threads = chance.choice((2, 20, 200))
        storm = Storm(options, folder, f"kill{number}", 3600, threads, only, settings=mode)
        target = chance.choice((0, 1, 50, 500, 5000))
        give_up = time.monotonic() + 60
        while storm.counts()["begun"] < target and storm.process.poll() is None and time.monotonic() < give_up:
            time.sleep(0)
        time.sleep(chance.random() * 0.3)  # any moment
        if storm.process.poll() is not None:
            checks.fail(f"{storm.name}: status {storm.process.returncode} by itself: {storm.said()}")
            return number
        storm.process.kill()
        storm.process.wait()
        counts = storm.counts()
        own, others = storm.traces()
        if os.path.exists(own):
            # Calls by signal handlers are not in `done`; they make the count in the file higher, never lower.
            checks.read(own, storm.name, (counts["done"], counts["begun"]) if mode is settings[0] else None)
        elif counts["done"]:
            checks.fail(f"{storm.name}: no file, though {counts['done']} calls were done")
        sweep(storm, checks, chance, 1)
        storm.errors.close()
        storm.shared.close()
        shutil.rmtree(storm.folder, ignore_errors=True)
    return number


def megabytes(count):
    return f"{count / (1 << 20):.1f} MB"


def soak(options, folder):
    only = set(options.only.split(",")) if options.only else set(KINDS)
    unknown = only - set(KINDS)
    if unknown:
        sys.exit(f"soak: {', '.join(sorted(unknown))} is none of {', '.join(KINDS)}")
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    chance = random.Random(seed)
    checks = Checks(options)
    build(folder)
    seconds = options.minutes * 60
    threads = options.threads if "threads" in only else 2
    print(f"soak: {options.minutes:g} min, {threads} threads, {', '.join(sorted(only))}, seed {seed}", flush=True)
    begun = time.monotonic()
    end = begun + seconds
    bare = Storm(options, folder, "bare", seconds, threads, only, traced=False)
    main = Storm(options, folder, "main", seconds, threads, only, settings=[("TRACER_MODE", "ring"), ("TRACER_MAXSIZE", str(RING))])
    killed = [0]
    killer = threading.Thread(target=lambda: killed.__setitem__(0, kill_some(options, folder, checks, only, end, random.Random(seed + 1))))
    if "kills" in only:
        killer.start()
    fibers = Fibers(options, folder, seconds) if "fibers" in only else None
    bare.release()
    samples, quiet = [], None
    shown = 0
    while main.process.poll() is None and time.monotonic() < end + 120:
        time.sleep(1)
        sweep(main, checks, chance, 1)
        if fibers:
            fibers.sample()
        if main.counts()["quiet"] and quiet is None:
            quiet = main.mapped_trace()
            main.release()
        minutes = int((time.monotonic() - begun) / 60)
        if minutes > shown and bare.process.poll() is None and main.process.poll() is None:
            shown = minutes
            try:
                sample = dict(at=time.monotonic() - begun, main=main.private_memory(), bare=bare.private_memory(), mapped=main.mapped_trace(),
                              descriptors=main.descriptors(), disk=os.path.getsize(main.traces()[0]))
            except (FileNotFoundError, ProcessLookupError, StopIteration):
                continue
            samples.append(sample)
            counts = main.counts()
            print(f"{minutes:3} min: private {megabytes(sample['main'])} (bare {megabytes(sample['bare'])}), trace mapped {megabytes(sample['mapped'])}, "
                  f"on disk {megabytes(sample['disk'])}, {sample['descriptors'][0]} descriptors and {sample['descriptors'][1]} of traces; "
                  + ", ".join(f"{counts[n]} {n}" for n in COUNTS if n not in ("begun", "handled", "quiet", "measured")) + f"; {checks.files} files read", flush=True)
    if "kills" in only:
        killer.join()
    for storm in main, bare:
        if storm.process.poll() is None:
            storm.process.kill()
            checks.fail(f"{storm.name}: did not end")
        if storm.process.wait() or storm.said() != "storm: done":
            checks.fail(f"{storm.name}: status {storm.process.returncode}: {storm.said()}")
    if os.path.exists(main.traces()[0]):
        checks.read(main.traces()[0], "main")
    judge(samples, checks)
    if fibers:
        fibers.judge(checks)
    # Only now: while threads live, it goes up and down with how many of them there are, and with what else the machine does.
    if quiet is None or quiet > QUIET:
        checks.fail("the storm never became quiet" if quiet is None else f"{megabytes(quiet)} of the trace stay mapped when the threads have ended")
    counts = main.counts()
    print(f"soak: {time.monotonic() - begun:.0f} s; " + ", ".join(f"{counts[n]} {n}" for n in COUNTS if n not in ("begun", "quiet", "measured"))
          + f"; {killed[0]} storms killed; {checks.files} files read, {checks.decoded} by the decoder too; "
          + (f"{len(checks.failures)} FAILED" if checks.failures else "nothing failed"), flush=True)
    return 1 if checks.failures else 0


def judge(samples, checks):
    """Nothing grows once the storm is under way: half of the samples after WARM against the other half."""
    warm = [s for s in samples if s["at"] >= WARM]
    if len(warm) < 4:
        return
    half = len(warm) // 2
    def highest(part, key):
        return max(key(s) for s in part)
    early, late = warm[:half], warm[half:]
    own = lambda s: s["main"] - s["bare"]
    if highest(late, own) > highest(early, own) * GROWTH[0] + GROWTH[1]:
        checks.fail(f"private memory of the agent grows: {megabytes(highest(early, own))}, later {megabytes(highest(late, own))}")
    for index, most in (0, 1), (1, 4):  # the program's own loop has one open or none; the agent's are all in passing
        if min(s["descriptors"][index] for s in late) > min(s["descriptors"][index] for s in early) + most:
            checks.fail("descriptors are left")
    # Chunks of living threads come on top of the limit.
    if highest(late, lambda s: s["disk"]) > highest(early, lambda s: s["disk"]) * GROWTH[0] + GROWTH[1]:
        checks.fail("the ring's file grows")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="examples:\n  scripts/soak\n  scripts/soak --minutes 3 --only threads,dlopens")
    parser.add_argument("--minutes", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--only", help=f"some of {', '.join(KINDS)}, separated by commas")
    parser.add_argument("--threads", type=int, default=200, help="at any time (default 200)")
    parser.add_argument("--seed", type=int, help="of the random moments; a new one each time by default")
    parser.add_argument("--agent", default=os.path.join(ROOT, ".build/release/libtracer.so"))
    parser.add_argument("--tool", default=os.path.join(ROOT, ".build/release/tracer"))
    parser.add_argument("--keep", default=tempfile.gettempdir(), help="where traces that failed a check are kept")
    options = parser.parse_args()
    os.makedirs(options.keep, exist_ok=True)
    options.agent, options.tool = os.path.abspath(options.agent), os.path.abspath(options.tool)
    folder = tempfile.mkdtemp(prefix="tracer-soak-")
    try:
        return soak(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
