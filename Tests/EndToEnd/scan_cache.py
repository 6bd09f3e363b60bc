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

import build
import harness
import suite
import tracefile
from harness import Failed, Skipped, expect
from suite import read, read_bytes, write

MAGIC, VERSION, MOST_BYTES, MOST_MODULES = int.from_bytes(b"scanfile", "little"), 1, 262144, 1024
LAZY, SEARCHED, REMEMBERED = 1, 2, 4  # flags of a module's details
WORD = (1 << 64) - 1
SEED = 0x9e3779b97f4a7c15
SAID = b"the same whoever has searched\n"  # the program's output


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
        data = read_bytes(path)
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


class ScanCache(suite.Test):
    """A folder of caches of its own, and a program that has something to remember."""
    variant = ".id."

    def prepare(self):
        self.caches = os.path.join(self.directory.path, "caches")
        os.mkdir(self.caches, 0o700)
        self.folder = os.path.join(self.caches, "tracer")
        self.file = os.path.join(self.folder, f"scans.{build.ARCHITECTURE}")
        self.case = build.case_of("remembered_slots", self.variant)
        try:
            program = build.build(self.case)
        except build.BuildFailed as failure:
            raise Failed(f"does not build: {failure}")
        self.program = [program, *(a.replace("{build}", self.case.folder) for a in self.case.arguments)]

    def variables(self, **more):
        """The environment under the agent, less those that are None."""
        whole = self.traced_environment(**{"XDG_CACHE_HOME": self.caches, **more})
        return {name: value for name, value in whole.items() if value is not None}

    def calls_of(self, argv=None, **variables):
        """(calls, modules that were searched, modules that were remembered) of the first process."""
        trace = self.record(argv or self.program, self.variables(**variables))
        expect(not trace.anomalies, f"{trace.anomalies[:3]}")

        def modules(flag):
            return {os.path.basename(trace.modules[n].path) for n, flags in trace.details.items() if flags & flag}
        return trace.counts_by_name_and_module(), modules(SEARCHED), modules(REMEMBERED)

    def record(self, argv, environment):
        self.forget_traces()
        run = harness.execute(argv, self.directory.fresh(), environment)
        expect(not run.status and not run.stderr and run.stdout == SAID, f"{harness.describe(run.status)}: {(run.stdout + run.stderr)[-500:]}")
        traces = tracefile.read_all(self.traces)
        expect(len(traces) == 1, f"{len(traces)} traces")
        return traces[0]

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
        calls, searched, remembered = self.calls_of(TRACER_CACHE="off")
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
                content = read_bytes(path) if stat.S_ISREG(status.st_mode) else None
                found[path] = (status.st_mode, status.st_uid, status.st_ino, content)
        return found


def the_same_calls_cold_and_warm(test):
    calls = test.alone()
    expect(not test.look(), "TRACER_CACHE=off left a file")
    before = os.umask(0o077)
    os.umask(0)
    try:
        test.expect_searched(calls, *test.calls_of())
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (test.folder, test.file)]
    expect(modes == [0o700, 0o600] and sorted(os.listdir(test.folder)) == [os.path.basename(test.file)],
           f"{[oct(mode) for mode in modes]}, {os.listdir(test.folder)}")
    first = CacheFile(test.file)
    expect(len(first.rows) >= 3 and sum(bool(row.bits) for row in first.rows) >= 2, f"{len(first.rows)} modules")
    was = test.look()
    test.expect_remembered(calls, *test.calls_of())
    expect(test.look() == was, "the file was written again")


def by_the_home_folder(test):
    calls = test.alone()
    home = test.path("home")
    os.mkdir(home, 0o700)
    test.expect_searched(calls, *test.calls_of(XDG_CACHE_HOME=None, HOME=home))
    expect(not os.listdir(home), f"made in a home without a folder of caches: {os.listdir(home)}")
    os.mkdir(os.path.join(home, ".cache"), 0o700)
    for variables in ({"XDG_CACHE_HOME": None}, {"XDG_CACHE_HOME": "relative"}):
        test.calls_of(HOME=home, **variables)
        test.expect_remembered(calls, *test.calls_of(HOME=home, **variables))
        shutil.rmtree(os.path.join(home, ".cache/tracer"))
    test.expect_searched(calls, *test.calls_of(XDG_CACHE_HOME=None, HOME=None))
    expect(not test.look(), f"found {test.look()}")


def an_executable_without_build_id_by_its_file(test):
    calls = test.alone()
    name = os.path.basename(test.program[0])
    path = test.path(name)
    shutil.copy(test.program[0], path)
    for library in ("libremembered.so", "liblater.so"):
        shutil.copy(os.path.join(test.case.folder, library), test.made)
    argv = [path, *test.program[1:]]
    # A file that has just been written is not cached; for how long depends on the kernel's clock.
    while True:
        young = time.time() - os.stat(path).st_ctime < 1
        _, _, remembered = test.calls_of(argv)
        if name in remembered:
            expect(not young, "remembered within a second of its last change")
            break
    now, searched, remembered = test.calls_of(argv)
    expect(name in remembered, "forgotten")
    test.expect_calls(calls, now)
    if not harness.EMULATOR:  # started by the loader, which is /proc/self/exe then
        loader = re.search(r"interpreter: ([^]]+)", subprocess.run(["readelf", "-lW", path], capture_output=True, text=True).stdout)[1]
        names = {name, os.path.basename(os.path.realpath(loader)), os.path.basename(loader)}
        for _ in range(2):
            found, searched, remembered = test.calls_of([loader, *argv])
            expect(searched & names and not remembered & names, f"{loader} {name}: searched {searched}, remembered {remembered}")
    os.utime(path)
    _, searched, remembered = test.calls_of(argv)
    expect(name in searched, "remembered, though the file has changed")


def damaged_files(test):
    calls = test.alone()
    test.calls_of()
    good = read_bytes(test.file)
    cache = CacheFile(test.file)
    damaged = [b"", good[:1], good[:63], good[:64], good[:100], good[:-1], good[:-8], good + bytes(8), bytes(len(good)), b"\xff" * len(good),
               os.urandom(4096), good + bytes(MOST_BYTES)]
    for n in (0, 8, 12, 16, 40, 44, 48, 56):
        damaged.append(good[:n] + bytes([good[n] ^ 1]) + good[n + 1:])
    cache.agent = bytes(24)
    damaged.append(cache.packed())
    for n, data in enumerate(damaged):
        write(test.file, data, mode=0o600)
        test.expect_searched(calls, *test.calls_of())
        expect({row.identity for row in CacheFile(test.file).rows} == {row.identity for row in cache.rows},
               f"damage {n} was not repaired")
    # In one row, or in its bits: that one is searched again, the others are not.
    offsets = [64 + 64 * n + 8 * k for n in range(len(cache.rows)) for k in (0, 3, 4, 5, 6, 7)] + list(range(64 + 64 * len(cache.rows), len(good), 8))
    for offset in offsets[::max(1, len(offsets) // 24)]:
        write(test.file, good[:offset] + bytes([good[offset] ^ 0x10]) + good[offset + 1:])
        found, _, remembered = test.calls_of()
        test.expect_calls(calls, found)
        expect(remembered, f"one flipped bit at {offset} made everything forgotten")


def paths_that_are_not_ones_own(test):
    calls = test.alone()
    test.calls_of()
    good = CacheFile(test.file).packed()
    other = test.path("other")

    def start_over():
        for path in (test.caches, other):
            if os.path.islink(path) or os.path.isfile(path):
                os.unlink(path)
            elif os.path.exists(path):
                shutil.rmtree(path)
        os.mkdir(test.caches, 0o700)
        os.mkdir(test.folder, 0o700)
        write(test.file, good, mode=0o600)
    def replaced(path, make):
        def prepare():
            os.rename(path, other)
            make(path)
        return prepare
    def owned(path):
        return lambda: os.chown(path, 65533, 65533)

    start_over()
    test.expect_remembered(calls, *test.calls_of())
    # (what is wrong, does the folder stay as it is)
    cases = [("the file is a link", replaced(test.file, lambda path: os.symlink(other, path)), False),
             ("the file is a FIFO", replaced(test.file, os.mkfifo), False),
             ("others may write to the file", lambda: os.chmod(test.file, 0o622), False),
             ("the group may write to the file", lambda: os.chmod(test.file, 0o660), False),
             ("the file is a folder", replaced(test.file, os.mkdir), True),
             ("the folder is a link", replaced(test.folder, lambda path: os.symlink(other, path)), True),
             ("the folder is a file", replaced(test.folder, lambda path: open(path, "w").close()), True),
             ("others may write to the folder", lambda: os.chmod(test.folder, 0o777), True),
             ("there is no folder of caches", lambda: shutil.rmtree(test.caches), True),
             ("the folder of caches is a file", lambda: (shutil.rmtree(test.caches), open(test.caches, "w").close()), True)]
    if os.geteuid() == 0 and not harness.EMULATOR:
        cases += [("the file is another user's", owned(test.file), False),
                  ("the folder is another user's", owned(test.folder), True),
                  ("all is another user's", lambda: [owned(path)() for path in (test.file, test.folder, test.caches)], True),
                  ("the folder of caches is another user's, and empty", lambda: (shutil.rmtree(test.folder), owned(test.caches)()), True)]
    for what, prepare, stays in cases:
        start_over()
        prepare()
        before = test.look()
        try:
            test.expect_searched(calls, *test.calls_of())
        except Failed as failure:
            raise Failed(f"{what}: {failure}")
        expect(not stays or test.look() == before, f"{what}: {test.look()}")
        if os.path.isfile(other):
            expect(read_bytes(other) == good, f"{what}: what a link led to was changed")


def others_write_to_the_folder_of_caches(test):
    calls = test.alone()
    os.chmod(test.caches, 0o1777)  # XDG_CACHE_HOME=/tmp
    test.expect_searched(calls, *test.calls_of())
    expect(not test.look(), f"{list(test.look())}")


def a_folder_that_cannot_be_written(test):
    calls = test.alone()
    os.mkdir(test.folder, 0o500)
    if os.geteuid() != 0:
        return test.expect_searched(calls, *test.calls_of())
    if harness.EMULATOR or not shutil.which("setpriv"):
        raise Skipped("root writes everywhere, and there is no setpriv")
    for path in (test.caches, test.folder):
        os.chown(path, 65533, 65533)
    nobody = ["setpriv", "--reuid", "65533", "--clear-groups", "env", "LD_PRELOAD=" + test.variables()["LD_PRELOAD"]]
    test.expect_searched(calls, *test.calls_of([*nobody, *test.program], LD_PRELOAD=None))
    os.chmod(test.folder, 0o700)  # the same user, where it may: so it was the mode that kept it from writing
    test.calls_of([*nobody, *test.program], LD_PRELOAD=None)
    test.expect_remembered(calls, *test.calls_of([*nobody, *test.program], LD_PRELOAD=None))


def a_full_disk(test):
    if harness.EMULATOR:
        raise Skipped("the shell that fills it is of this machine")
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        raise Skipped("no permission to mount a file system in a namespace of our own")
    calls = test.alone()
    report = test.path("report")
    script = (f"mount -t tmpfs -o size=8k,mode=700 none '{test.caches}' && cd '{test.caches}' && mkdir -m 700 tracer"
              " && { cat /dev/zero > full 2>/dev/null; cd - >/dev/null; \"$@\"; status=$?; "
              f"ls -A '{test.folder}' > '{report}'; exit $status; }}")
    # The shells are not traced: only what comes last has the agent.
    preload = test.variables()["LD_PRELOAD"]
    argv = ["unshare", "-m", "sh", "-c", script, "sh", "env", "LD_PRELOAD=" + preload, *test.program]
    trace = test.record(argv, test.variables(LD_PRELOAD=None))
    test.expect_calls(calls, trace.counts_by_name_and_module())
    expect(not read(report), f"left in the folder: {read(report)}")


def many_at_once(test):
    calls = test.alone()
    for traces in ("first", "second"):
        where = test.path(traces)
        os.mkdir(where)
        environment = test.variables(TRACER_OUT=os.path.join(where, "%p.trace"))
        running = [subprocess.Popen(harness.EMULATOR + test.program, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for _ in range(20)]
        for process in running:
            said, _ = process.communicate(timeout=harness.HANGS)
            expect(not process.returncode and said == SAID, f"{harness.describe(process.returncode)}: {said[-300:]}")
        for trace in tracefile.read_all(where):
            test.expect_calls(calls, trace.counts_by_name_and_module())
        CacheFile(test.file)
        expect(os.listdir(test.folder) == [os.path.basename(test.file)], f"left behind: {os.listdir(test.folder)}")
    test.calls_of()
    test.expect_remembered(calls, *test.calls_of())


def one_that_was_killed_while_it_wrote(test):
    calls = test.alone()
    os.mkdir(test.folder, 0o700)
    half = test.file + ".new"
    write(half, "half")
    test.expect_searched(calls, *test.calls_of())
    expect(read(half) == "half" and not os.path.exists(test.file), "what another process writes was touched")
    hour = time.time() - 3600
    os.utime(half, (hour, hour))
    test.expect_searched(calls, *test.calls_of())
    expect(not os.path.exists(half), "what nobody will finish is still there")
    test.calls_of()
    test.expect_remembered(calls, *test.calls_of())


def bounded(test):
    calls = test.alone()
    test.calls_of()
    cache = CacheFile(test.file)
    own = cache.rows
    for bits, count in ((b"", MOST_MODULES), (b"\1" * 2048, 90)):
        # Old ones, and young ones without which the file would not be full.
        cache.rows = [Row(os.urandom(24), 1, 2, len(bits) * 8 or 5, 1 + n % 7, bits) for n in range(count)]
        cache.generation = 7
        write(test.file, cache.packed())
        test.expect_searched(calls, *test.calls_of())
        after = CacheFile(test.file)
        kept = {row.identity: row for row in after.rows}
        lost = [row for row in cache.rows if row.identity not in kept]
        expect({row.identity for row in own} <= kept.keys() and after.generation > 7, "what was just found is not there")
        expect((bits != b"" or lost) and not any(row.generation > min(r.generation for r in kept.values()) for row in lost),
               f"{len(lost)} lost, of generations {sorted({row.generation for row in lost})}; kept {len(kept)}")
        test.expect_remembered(calls, *test.calls_of())


def no_descriptor_stays(test):
    if harness.EMULATOR:
        raise Skipped("the emulator has descriptors of its own")
    for what in ("cold", "warm", "refused"):
        if what == "refused":
            os.chmod(test.file, 0o622)
        bare = harness.execute(["ls", "/proc/self/fd"], test.directory.fresh(), test.variables(LD_PRELOAD=None))
        traced = harness.execute(["ls", "/proc/self/fd"], test.directory.fresh(), test.variables())
        faults = harness.same(bare, traced)
        expect(not faults, f"{what}: " + "\n".join(faults))
        expect(os.path.exists(test.file), "nothing was remembered of ls")


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


def not_in_a_filter(test):
    if harness.EMULATOR:
        raise Skipped("the emulator has no filters")
    calls = test.alone()
    filtered = test.compile("filter", source="#define _GNU_SOURCE\n" + SECCOMP)
    test.calls_of()
    was = test.look()
    test.forget_traces()
    environment = test.variables()
    preload = environment.pop("LD_PRELOAD")
    run = harness.execute([filtered, "/usr/bin/env", "LD_PRELOAD=" + preload, *test.program], test.directory.fresh(), environment)
    if run.status == 77:
        raise Skipped("this kernel has no filters")
    expect(not run.status, f"{harness.describe(run.status)}: {run.stderr[-300:]}")
    trace, = tracefile.read_all(test.traces)
    expect(not any(flags & REMEMBERED for flags in trace.details.values()) and test.look() == was,
           "the file was used in a filter")
    test.expect_calls(calls, trace.counts_by_name_and_module())


def tests():
    found = suite.tests_of(__name__, ScanCache)
    for test in found:
        if test.check is an_executable_without_build_id_by_its_file:
            test.variant = ".none."
    return found
