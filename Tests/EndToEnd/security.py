#!/usr/bin/env python3
"""Where the trace goes and what it may do there: nobody else's file is touched, nothing is honoured in a setuid program,
no page is writable and executable at once."""
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from typing import Callable

import build
import harness
from harness import Failed, Skipped


class Ground:
    """A folder, the program `steady`, and a run of it under the agent."""

    def __init__(self, settings):
        self.settings = settings
        self.place = harness.Place("security", settings.keep)
        self.path = self.place.fresh()
        self.traces = self.place.traces
        self.program = build.build(next(c for s in build.subjects() if s.name == "steady" for c in s.cases()))

    def run(self, output, *extra, argv=None, **environment):
        whole = harness.traced_environment(self.settings, harness.passed_on(os.environ), self.place)
        whole.update(TRACER_OUT=output, **environment)
        run = harness.execute(argv or [self.program, "5000"], self.path, whole)
        if argv is None and (run.status != 7 or not run.stdout.strip()):
            raise Failed(f"the program: {harness.describe(run.status)}: {run.stderr[-300:]}")
        return run

    def said(self, run, word):
        lines = [line for line in run.stderr.decode(errors="replace").splitlines() if line.startswith("tracer: ")]
        if len(lines) != 1 or word not in lines[0]:
            raise Failed(f"expected one line with {word!r}: {lines}")

    def file(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "w") as file:
            file.write(text)
        return path


def expect(path, text):
    with open(path) as file:
        found = file.read(100)
    if found != text:
        raise Failed(f"{os.path.basename(path)} was changed: {found[:60]!r}")


def mode_is_0600_whatever_the_umask(ground):
    before = os.umask(0)
    try:
        ground.run(os.path.join(ground.traces, "a.trace"))
    finally:
        os.umask(before)
    mode = stat.S_IMODE(os.stat(os.path.join(ground.traces, "a.trace")).st_mode)
    if mode != 0o600:
        raise Failed(f"mode {mode:o}")


def refuses_a_symbolic_link(ground):
    victim, link = ground.file("victim", "precious"), os.path.join(ground.traces, "a.trace")
    os.symlink(victim, link)
    ground.said(ground.run(link), "symbolic link")
    expect(victim, "precious")


def does_not_create_what_a_dangling_link_names(ground):
    victim, link = os.path.join(ground.path, "victim"), os.path.join(ground.traces, "a.trace")
    os.symlink(victim, link)
    ground.said(ground.run(link), "symbolic link")
    if os.path.lexists(victim):
        raise Failed("the file that the link names was created")


def does_not_follow_a_link_that_takes_the_name_later(ground):
    victim = ground.file("victim", "precious")
    run = ground.run(os.path.join(ground.traces, "a.trace"), MIDWAY="replace", TRACES=ground.traces, VICTIM=victim)
    ground.said(run, "symbolic link")
    expect(victim, "precious")


def does_not_write_to_a_file_that_takes_the_name_later(ground):
    victim = ground.file("victim", "precious")
    run = ground.run(os.path.join(ground.traces, "a.trace"), MIDWAY="exchange", TRACES=ground.traces, VICTIM=victim)
    ground.said(run, "the file is gone")
    expect(os.path.join(ground.traces, "a.trace"), "precious")


def leaves_a_file_that_is_no_trace(ground):
    victim = ground.file("victim", "precious " * 100)
    ground.said(ground.run(victim), "not a trace of ours")
    expect(victim, ("precious " * 100)[:100])


def leaves_a_device_and_a_fifo(ground):
    fifo = os.path.join(ground.path, "fifo")
    os.mkfifo(fifo)
    names = [fifo]
    try:
        os.mknod(os.path.join(ground.path, "null"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
        names.append(os.path.join(ground.path, "null"))
    except PermissionError:
        pass # only root has devices
    for name in names:
        before = os.stat(name)
        ground.said(ground.run(name), "not a trace of ours")
        after = os.stat(name)
        if (before.st_ino, before.st_mode) != (after.st_ino, after.st_mode):
            raise Failed(f"{os.path.basename(name)} was replaced")


def replaces_only_the_trace_of_a_process_that_is_gone(ground):
    path = os.path.join(ground.traces, "a.trace")
    ground.run(path)
    other = os.path.join(ground.path, "second name")
    os.link(path, other) # somebody kept it by another name
    before = os.stat(other)
    ground.run(path)
    after = os.stat(other)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or os.stat(path).st_ino == after.st_ino:
        raise Failed("the old trace was written over instead of being replaced")


def nothing_is_honoured_in_a_setuid_program(ground):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("only root can make a setuid program for somebody else, and setpriv runs it")
    # The loader drops our preload there. Linked to the library, the agent is in the process all the same.
    source = ground.file("s.c", "#include <stdio.h>\n#include <unistd.h>\nextern void tracer_start(void) __attribute__((weak));\n"
                         "int main(void) { if (!tracer_start) return 9; tracer_start(); puts(geteuid() == getuid() ? \"plain\" : \"setuid\"); return 0; }\n")
    program = os.path.join(ground.path, "s")
    library = os.path.join(ground.path, "libtracer.so")
    shutil.copy(ground.settings.agent, library)
    subprocess.run(["gcc", source, "-o", program, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{ground.path}"], check=True)
    os.chmod(ground.path, 0o777)
    for identity, text, traces in ((None, b"plain\n", 1), (2, b"setuid\n", 0)):
        if identity is not None:
            os.chown(program, identity, identity)
            os.chmod(program, 0o6755)
        run = harness.execute(["setpriv", "--reuid", "65534", "--clear-groups", program], ground.path,
                              {**harness.passed_on(os.environ), "TRACER_OUT": os.path.join(ground.traces, "%e.trace")})
        if run.stdout != text:
            raise Skipped("programs are not setuid on this file system") if run.stdout == b"plain\n" \
                else Failed(f"{harness.describe(run.status)}: {run.stdout + run.stderr}")
        found = os.listdir(ground.traces)
        if len(found) != traces or run.stderr:
            raise Failed(f"{text}: {found}, {run.stderr}")
        for name in found:
            os.unlink(os.path.join(ground.traces, name))


def never_asks_for_a_writable_and_executable_page(ground):
    if not shutil.which("strace"):
        raise Skipped("strace is not installed")
    case = next(c for s in build.subjects() if s.name == "dlopens" for c in s.cases() if c.case == "reload")
    program = build.build(case)
    log = os.path.join(ground.path, "log")
    environment = harness.traced_environment(ground.settings, harness.passed_on(os.environ), ground.place)
    environment.update({k: v.replace("{build}", case.folder) for k, v in case.environment.items()})
    preload = environment.pop("LD_PRELOAD")
    run = harness.execute(["strace", "-f", "-o", log, "-e", "trace=mmap,mprotect,pkey_mprotect,mremap", "-E",
                           "LD_PRELOAD=" + preload, program, *[a.replace("{build}", case.folder) for a in case.arguments]],
                          ground.path, environment)
    if run.status != 0:
        raise Failed(f"strace: {harness.describe(run.status)}: {run.stderr[-300:]}")
    with open(log) as file:
        calls = file.read().splitlines()
    both = [line for line in calls if "PROT_WRITE" in line and "PROT_EXEC" in line]
    if both or not any("PROT_EXEC" in line and "mprotect" in line for line in calls):
        raise Failed(f"{len(both)} of {len(calls)} calls, the first: {both[:1]}")


def no_page_is_writable_and_executable(ground):
    case = next(c for s in build.subjects() if s.name == "own_maps" for c in s.cases())
    program = build.build(case)
    run = ground.run(os.path.join(ground.traces, "a.trace"), argv=[program, os.path.join(case.folder, "libplugged.so")])
    if run.status != 0 or not run.stdout.endswith(b"\nlooked 4 times\n"):
        raise Failed(f"{harness.describe(run.status)}: {run.stdout + run.stderr}")


@dataclass
class Security:
    name: str
    check: Callable

    def run(self, settings):
        if settings.bare_only:
            return
        ground = Ground(settings)
        try:
            self.check(ground)
        finally:
            ground.place.done()


def tests():
    return [Security("security." + check.__name__, check) for check in (
        mode_is_0600_whatever_the_umask, refuses_a_symbolic_link, does_not_create_what_a_dangling_link_names,
        does_not_follow_a_link_that_takes_the_name_later, does_not_write_to_a_file_that_takes_the_name_later,
        leaves_a_file_that_is_no_trace, leaves_a_device_and_a_fifo, replaces_only_the_trace_of_a_process_that_is_gone,
        nothing_is_honoured_in_a_setuid_program, never_asks_for_a_writable_and_executable_page,
        no_page_is_writable_and_executable)]


if __name__ == "__main__":
    import run
    sys.exit(run.main(("security",)))
