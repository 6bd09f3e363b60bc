#!/usr/bin/env python3
"""The agent caches the results of scanning code between starts (CSupport/scan_cache.h): the same calls are recorded with and
without the cache, whatever is in the file or in its place, and nothing is touched that is not the user's own."""
import os
import re
import shutil
import stat
import struct
import subprocess
import time
from dataclasses import dataclass
from typing import Callable

import build
import harness
import tracefile
from harness import Failed, Skipped, expect

MAGIC, VERSION, MOST_BYTES, MOST_MODULES = int.from_bytes(b"scanfile", "little"), 1, 262144, 1024
LAZY, SEARCHED, REMEMBERED = 1, 2, 4  # flags of a module's details
WORD = (1 << 64) - 1
SEED = 0x9e3779b97f4a7c15


def checksum(data, first=SEED):
    total = first ^ len(data)
    for word in struct.unpack(f"<{len(data) // 8}Q", data):
        product = (total ^ word) * 0xff51afd7ed558ccd & WORD
        total = product ^ product >> 32
    return total


@dataclass
class Row:
    identity: bytes
    layout: int
    low: int
    slots: int
    generation: int
    bits: bytes

    def packed(self, offset):
        fields = (self.identity, self.layout, self.low, self.slots)
        own = checksum(struct.pack("<24sQQIIIIQ", *fields, 0, self.generation, 0, bool(self.bits)))
        return struct.pack("<24sQQIIIIQ", *fields, offset, self.generation, 0, checksum(self.bits, own) if self.bits else own)


class CacheFile:
    """The file, read with nothing of the agent's. Raises Failed where it is not what it should be."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        magic, version, size, self.agent, count, self.generation, _, total = struct.unpack_from("<QII24sIIQQ", data)
        expect((magic, version, size, total) == (MAGIC, VERSION, len(data), checksum(data[:56])) and len(data) <= MOST_BYTES and count <= MOST_MODULES,
               f"not a cache: {data[:64].hex()} of {len(data)} bytes")
        self.rows = []
        for n in range(count):
            raw = data[64 + 64 * n:128 + 64 * n]
            identity, layout, low, slots, offset, generation, _, _ = struct.unpack("<24sQQIIIIQ", raw)
            row = Row(identity, layout, low, slots, generation, data[offset:offset + (slots + 63) // 64 * 8] if offset else b"")
            expect(row.packed(offset) == raw, f"row {n} of {count} is not whole")
            self.rows.append(row)
        expect([row.identity[:8][::-1] for row in self.rows] == sorted(row.identity[:8][::-1] for row in self.rows),
               "the rows are not in order")

    def packed(self):
        rows, bits, offset = b"", b"", 64 + 64 * len(self.rows)
        for row in sorted(self.rows, key=lambda row: row.identity[:8][::-1]):
            rows += row.packed(offset + len(bits) if row.bits else 0)
            bits += row.bits
        head = struct.pack("<QII24sIIQ", MAGIC, VERSION, offset + len(bits), self.agent, len(self.rows), self.generation, 0)
        return head + struct.pack("<Q", checksum(head)) + rows + bits


class Ground:
    """A folder of caches of its own, and a program that has something to remember."""

    def __init__(self, settings, variant=".id."):
        self.settings = settings
        self.directory = harness.Directory("scan_cache", settings.keep)
        self.caches = os.path.join(self.directory.path, "caches")
        os.mkdir(self.caches, 0o700)
        self.folder = os.path.join(self.caches, "tracer")
        self.file = os.path.join(self.folder, f"scans.{build.ARCHITECTURE}")
        self.case = next(c for s in build.subjects() if s.name == "remembered_slots" for c in s.cases() if variant in c.name)
        self.program = [build.build(self.case), *(a.replace("{build}", self.case.folder) for a in self.case.arguments)]

    def environment(self, **variables):
        whole = harness.traced_environment(self.settings, harness.passed_on(os.environ), self.directory)
        whole.update({"XDG_CACHE_HOME": self.caches, **variables})
        return {name: value for name, value in whole.items() if value is not None}

    def run(self, argv=None, **variables):
        """(calls, modules that were searched, modules that were remembered) of the first process."""
        self.forget_traces()
        run = harness.execute(argv or self.program, self.directory.fresh(), self.environment(**variables))
        expect(not run.status and not run.stderr and run.stdout == b"the same whoever has searched\n",
               f"{harness.describe(run.status)}: {(run.stdout + run.stderr)[-500:]}")
        traces = tracefile.read_all(self.directory.traces, lambda path: False)
        expect(len(traces) == 1 and not traces[0].anomalies, f"{len(traces)} traces: {[trace.anomalies[:3] for trace in traces]}")
        trace = traces[0]
        def modules(flag):
            return {os.path.basename(trace.modules[n].path) for n, detail in trace.details.items() if detail.flags & flag}
        return trace.counts_by_name_and_module(), modules(SEARCHED), modules(REMEMBERED)

    def forget_traces(self):
        shutil.rmtree(self.directory.traces)
        os.mkdir(self.directory.traces)
        os.chmod(self.directory.traces, 0o1777)

    @property
    def own(self):
        return {os.path.basename(self.program[0]), "libremembered.so", "liblater.so"}

    def expect_searched(self, calls, *result):
        """As without anything remembered."""
        found, searched, remembered = result
        expect(self.own <= searched and not remembered, f"searched {sorted(searched)}, remembered {sorted(remembered)}")
        self.expect_calls(calls, found)

    def expect_remembered(self, calls, *result):
        found, searched, remembered = result
        expect(self.own <= remembered and not searched & remembered, f"searched {sorted(searched)}, remembered {sorted(remembered)}")
        self.expect_calls(calls, found)

    def expect_calls(self, calls, found):
        different = [key for key in calls.keys() | found.keys() if calls.get(key) != found.get(key)]
        expect(not different, f"other calls: {[(key, calls.get(key), found.get(key)) for key in different[:5]]}")

    def alone(self):
        """The calls with nothing remembered."""
        calls, searched, remembered = self.run(TRACER_CACHE="off")
        self.expect_searched(calls, calls, searched, remembered)
        expect(any(name == "called" and count == 5 for (name, _), count in calls.items()),
               f"the program's own calls are not among them: {calls}")
        return calls

    def look(self):
        """All that is in the folder of caches."""
        found = {}
        for where, folders, files in os.walk(self.caches):
            for name in folders + files:
                path = os.path.join(where, name)
                status = os.lstat(path)
                content = None
                if stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        content = file.read()
                found[path] = (status.st_mode, status.st_uid, status.st_ino, content)
        return found


def the_same_calls_cold_and_warm(ground):
    calls = ground.alone()
    expect(not ground.look(), "TRACER_CACHE=off left a file")
    before = os.umask(0o077)
    os.umask(0)
    try:
        ground.expect_searched(calls, *ground.run())
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (ground.folder, ground.file)]
    expect(modes == [0o700, 0o600] and sorted(os.listdir(ground.folder)) == [os.path.basename(ground.file)],
           f"{[oct(mode) for mode in modes]}, {os.listdir(ground.folder)}")
    first = CacheFile(ground.file)
    expect(len(first.rows) >= 3 and sum(bool(row.bits) for row in first.rows) >= 2, f"{len(first.rows)} modules")
    was = ground.look()
    ground.expect_remembered(calls, *ground.run())
    expect(ground.look() == was, "the file was written again")


def by_the_home_folder(ground):
    calls = ground.alone()
    home = os.path.join(ground.directory.path, "home")
    os.mkdir(home, 0o700)
    ground.expect_searched(calls, *ground.run(XDG_CACHE_HOME=None, HOME=home))
    expect(not os.listdir(home), f"made in a home without a folder of caches: {os.listdir(home)}")
    os.mkdir(os.path.join(home, ".cache"), 0o700)
    for variables in ({"XDG_CACHE_HOME": None}, {"XDG_CACHE_HOME": "relative"}):
        ground.run(HOME=home, **variables)
        ground.expect_remembered(calls, *ground.run(HOME=home, **variables))
        shutil.rmtree(os.path.join(home, ".cache/tracer"))
    ground.expect_searched(calls, *ground.run(XDG_CACHE_HOME=None, HOME=None))
    expect(not ground.look(), f"found {ground.look()}")


def an_executable_without_build_id_by_its_file(ground):
    calls = ground.alone()
    name = os.path.basename(ground.program[0])
    path = os.path.join(ground.directory.path, name)
    shutil.copy(ground.program[0], path)
    for library in ("libremembered.so", "liblater.so"):
        shutil.copy(os.path.join(ground.case.folder, library), ground.directory.path)
    argv = [path, *ground.program[1:]]
    # A file that has just been written is not cached; for how long depends on the kernel's clock.
    while True:
        young = time.time() - os.stat(path).st_ctime < 1
        _, _, remembered = ground.run(argv)
        if name in remembered:
            expect(not young, "remembered within a second of its last change")
            break
    now, searched, remembered = ground.run(argv)
    expect(name in remembered, "forgotten")
    ground.expect_calls(calls, now)
    if not harness.EMULATOR:  # started by the loader, which is /proc/self/exe then
        loader = re.search(r"interpreter: ([^]]+)", subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout)[1]
        names = {name, os.path.basename(os.path.realpath(loader)), os.path.basename(loader)}
        for _ in range(2):
            found, searched, remembered = ground.run([loader, *argv])
            expect(searched & names and not remembered & names, f"{loader} {name}: searched {searched}, remembered {remembered}")
    os.utime(path)
    _, searched, remembered = ground.run(argv)
    expect(name in searched, "remembered, though the file has changed")


def damaged_files(ground):
    calls = ground.alone()
    ground.run()
    with open(ground.file, "rb") as file:
        good = file.read()
    cache = CacheFile(ground.file)
    damaged = [b"", good[:1], good[:63], good[:64], good[:100], good[:-1], good[:-8], good + bytes(8), bytes(len(good)), b"\xff" * len(good),
               os.urandom(4096), good + bytes(MOST_BYTES)]
    for n in (0, 8, 12, 16, 40, 44, 48, 56):
        damaged.append(good[:n] + bytes([good[n] ^ 1]) + good[n + 1:])
    cache.agent = bytes(24)
    damaged.append(cache.packed())
    for n, data in enumerate(damaged):
        with open(ground.file, "wb") as file:
            file.write(data)
        os.chmod(ground.file, 0o600)
        ground.expect_searched(calls, *ground.run())
        expect({row.identity for row in CacheFile(ground.file).rows} == {row.identity for row in cache.rows},
               f"damage {n} was not repaired")
    # In one row, or in its bits: that one is searched again, the others are not.
    offsets = [64 + 64 * n + 8 * k for n in range(len(cache.rows)) for k in (0, 3, 4, 5, 6, 7)] + list(range(64 + 64 * len(cache.rows), len(good), 8))
    for offset in offsets[::max(1, len(offsets) // 24)]:
        with open(ground.file, "wb") as file:
            file.write(good[:offset] + bytes([good[offset] ^ 0x10]) + good[offset + 1:])
        found, _, remembered = ground.run()
        ground.expect_calls(calls, found)
        expect(remembered, f"one flipped bit at {offset} made everything forgotten")


def places_that_are_not_ones_own(ground):
    calls = ground.alone()
    ground.run()
    good = CacheFile(ground.file).packed()
    other = os.path.join(ground.directory.path, "other")

    def start_over():
        for path in (ground.caches, other):
            if os.path.islink(path) or os.path.isfile(path):
                os.unlink(path)
            elif os.path.exists(path):
                shutil.rmtree(path)
        os.mkdir(ground.caches, 0o700)
        os.mkdir(ground.folder, 0o700)
        with open(ground.file, "wb") as file:
            file.write(good)
        os.chmod(ground.file, 0o600)
    def replaced(path, make):
        def prepare():
            os.rename(path, other)
            make(path)
        return prepare
    def owned(path):
        return lambda: os.chown(path, 65533, 65533)

    start_over()
    ground.expect_remembered(calls, *ground.run())
    # (what is wrong, does the folder stay as it is)
    cases = [("the file is a link", replaced(ground.file, lambda path: os.symlink(other, path)), False),
             ("the file is a FIFO", replaced(ground.file, os.mkfifo), False),
             ("others may write to the file", lambda: os.chmod(ground.file, 0o622), False),
             ("the group may write to the file", lambda: os.chmod(ground.file, 0o660), False),
             ("the file is a folder", replaced(ground.file, os.mkdir), True),
             ("the folder is a link", replaced(ground.folder, lambda path: os.symlink(other, path)), True),
             ("the folder is a file", replaced(ground.folder, lambda path: open(path, "w").close()), True),
             ("others may write to the folder", lambda: os.chmod(ground.folder, 0o777), True),
             ("there is no folder of caches", lambda: shutil.rmtree(ground.caches), True),
             ("the folder of caches is a file", lambda: (shutil.rmtree(ground.caches), open(ground.caches, "w").close()), True)]
    if os.geteuid() == 0 and not harness.EMULATOR:
        cases += [("the file is another user's", owned(ground.file), False),
                  ("the folder is another user's", owned(ground.folder), True),
                  ("all is another user's", lambda: [owned(path)() for path in (ground.file, ground.folder, ground.caches)], True),
                  ("the folder of caches is another user's, and empty", lambda: (shutil.rmtree(ground.folder), owned(ground.caches)()), True)]
    for what, prepare, stays in cases:
        start_over()
        prepare()
        before = ground.look()
        try:
            ground.expect_searched(calls, *ground.run())
        except Failed as failure:
            raise Failed(f"{what}: {failure}")
        expect(not stays or ground.look() == before, f"{what}: {ground.look()}")
        if os.path.isfile(other):
            with open(other, "rb") as file:
                expect(file.read() == good, f"{what}: what a link led to was changed")


def others_write_to_the_folder_of_caches(ground):
    calls = ground.alone()
    os.chmod(ground.caches, 0o1777)  # XDG_CACHE_HOME=/tmp
    ground.expect_searched(calls, *ground.run())
    expect(not ground.look(), f"{list(ground.look())}")


def a_folder_that_cannot_be_written(ground):
    calls = ground.alone()
    os.mkdir(ground.folder, 0o500)
    if os.geteuid() != 0:
        return ground.expect_searched(calls, *ground.run())
    if harness.EMULATOR or not shutil.which("setpriv"):
        raise Skipped("root writes everywhere, and there is no setpriv")
    for path in (ground.caches, ground.folder):
        os.chown(path, 65533, 65533)
    nobody = ["setpriv", "--reuid", "65533", "--clear-groups", "env", "LD_PRELOAD=" + ground.environment()["LD_PRELOAD"]]
    ground.expect_searched(calls, *ground.run([*nobody, *ground.program], LD_PRELOAD=None))
    os.chmod(ground.folder, 0o700)  # the same user, where it may: so it was the mode that kept it from writing
    ground.run([*nobody, *ground.program], LD_PRELOAD=None)
    ground.expect_remembered(calls, *ground.run([*nobody, *ground.program], LD_PRELOAD=None))


def a_full_disk(ground):
    if harness.EMULATOR:
        raise Skipped("the shell that fills it is of this machine")
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        raise Skipped("no permission to mount a file system in a namespace of our own")
    calls = ground.alone()
    report = os.path.join(ground.directory.path, "report")
    script = (f"mount -t tmpfs -o size=8k,mode=700 none '{ground.caches}' && cd '{ground.caches}' && mkdir -m 700 tracer"
              " && { cat /dev/zero > full 2>/dev/null; cd - >/dev/null; \"$@\"; status=$?; "
              f"ls -A '{ground.folder}' > '{report}'; exit $status; }}")
    # The shells are not traced: only what comes last has the agent.
    preload = ground.environment()["LD_PRELOAD"]
    argv = ["unshare", "-m", "sh", "-c", script, "sh", "env", "LD_PRELOAD=" + preload, *ground.program]
    ground.forget_traces()
    run = harness.execute(argv, ground.directory.fresh(), ground.environment(LD_PRELOAD=None))
    expect(not run.status and not run.stderr, f"{harness.describe(run.status)}: {run.stderr[-500:]}")
    trace, = tracefile.read_all(ground.directory.traces, lambda path: False)
    ground.expect_calls(calls, trace.counts_by_name_and_module())
    with open(report) as file:
        left = file.read()
    expect(not left, f"left in the folder: {left}")


def many_at_once(ground):
    calls = ground.alone()
    for traces in ("first", "second"):
        where = os.path.join(ground.directory.path, traces)
        os.mkdir(where)
        environment = ground.environment(TRACER_OUT=os.path.join(where, "%p.trace"))
        running = [subprocess.Popen(harness.EMULATOR + ground.program, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for _ in range(20)]
        for process in running:
            said, _ = process.communicate(timeout=harness.HANGS)
            expect(not process.returncode and said == b"the same whoever has searched\n",
                   f"{harness.describe(process.returncode)}: {said[-300:]}")
        for trace in tracefile.read_all(where, lambda path: False):
            ground.expect_calls(calls, trace.counts_by_name_and_module())
        CacheFile(ground.file)
        expect(os.listdir(ground.folder) == [os.path.basename(ground.file)], f"left behind: {os.listdir(ground.folder)}")
    ground.run()
    ground.expect_remembered(calls, *ground.run())


def one_that_was_killed_while_it_wrote(ground):
    calls = ground.alone()
    os.mkdir(ground.folder, 0o700)
    half = ground.file + ".new"
    with open(half, "wb") as file:
        file.write(b"half")
    ground.expect_searched(calls, *ground.run())
    with open(half, "rb") as file:
        expect(file.read() == b"half" and not os.path.exists(ground.file), "what another process writes was touched")
    hour = time.time() - 3600
    os.utime(half, (hour, hour))
    ground.expect_searched(calls, *ground.run())
    expect(not os.path.exists(half), "what nobody will finish is still there")
    ground.run()
    ground.expect_remembered(calls, *ground.run())


def bounded(ground):
    calls = ground.alone()
    ground.run()
    cache = CacheFile(ground.file)
    own = cache.rows
    for bits, count in ((b"", MOST_MODULES), (b"\1" * 2048, 90)):
        # Old ones, and young ones without which the file would not be full.
        cache.rows = [Row(os.urandom(24), 1, 2, len(bits) * 8 or 5, 1 + n % 7, bits) for n in range(count)]
        cache.generation = 7
        with open(ground.file, "wb") as file:
            file.write(cache.packed())
        ground.expect_searched(calls, *ground.run())
        after = CacheFile(ground.file)
        kept = {row.identity: row for row in after.rows}
        lost = [row for row in cache.rows if row.identity not in kept]
        expect({row.identity for row in own} <= kept.keys() and after.generation > 7, "what was just found is not there")
        expect((bits != b"" or lost) and not any(row.generation > min(r.generation for r in kept.values()) for row in lost),
               f"{len(lost)} lost, of generations {sorted({row.generation for row in lost})}; kept {len(kept)}")
        ground.expect_remembered(calls, *ground.run())


def no_descriptor_stays(ground):
    if harness.EMULATOR:
        raise Skipped("the emulator has descriptors of its own")
    for what in ("cold", "warm", "refused"):
        if what == "refused":
            os.chmod(ground.file, 0o622)
        bare = harness.execute(["ls", "/proc/self/fd"], ground.directory.fresh(), ground.environment(LD_PRELOAD=None))
        traced = harness.execute(["ls", "/proc/self/fd"], ground.directory.fresh(), ground.environment())
        faults = harness.same(bare, traced)
        expect(not faults, f"{what}: " + "\n".join(faults))
        expect(os.path.exists(ground.file), "nothing was remembered of ls")


SECCOMP = """#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &all};
    (void)argc;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 77;
    execve(argv[1], argv + 1, environ);
    return 78;
}
"""


def not_in_a_filter(ground):
    if harness.EMULATOR:
        raise Skipped("the emulator has no filters")
    calls = ground.alone()
    source, filtered = os.path.join(ground.directory.path, "filter.c"), os.path.join(ground.directory.path, "filter")
    with open(source, "w") as file:
        file.write("#define _GNU_SOURCE\n" + SECCOMP)
    subprocess.run(["gcc", source, "-o", filtered], check=True)
    ground.run()
    was = ground.look()
    ground.forget_traces()
    environment = ground.environment()
    preload = environment.pop("LD_PRELOAD")
    run = harness.execute([filtered, "/usr/bin/env", "LD_PRELOAD=" + preload, *ground.program], ground.directory.fresh(), environment)
    if run.status == 77:
        raise Skipped("this kernel has no filters")
    expect(not run.status, f"{harness.describe(run.status)}: {run.stderr[-300:]}")
    trace, = tracefile.read_all(ground.directory.traces, lambda path: False)
    expect(not any(detail.flags & REMEMBERED for detail in trace.details.values()) and ground.look() == was,
           "the file was used in a filter")
    ground.expect_calls(calls, trace.counts_by_name_and_module())


@dataclass
class ScanCache:
    name: str
    check: Callable
    variant: str = ".id."

    def run(self, settings):
        if settings.bare_only:
            return
        try:
            ground = Ground(settings, self.variant)
        except build.BuildFailed as failure:
            raise Failed(f"does not build: {failure}")
        try:
            self.check(ground)
        finally:
            ground.directory.done()


def tests():
    return [ScanCache("scan_cache." + check.__name__, check, ".none." if check is an_executable_without_build_id_by_its_file else ".id.") for check in (
        the_same_calls_cold_and_warm, by_the_home_folder, an_executable_without_build_id_by_its_file, damaged_files,
        places_that_are_not_ones_own, others_write_to_the_folder_of_caches, a_folder_that_cannot_be_written, a_full_disk, many_at_once,
        one_that_was_killed_while_it_wrote, bounded, no_descriptor_stays, not_in_a_filter)]
