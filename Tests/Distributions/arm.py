"""Debian's own programs for arm64 of each suite, with the suite's loader and libc, under qemu: bare and traced.

The packages are only unpacked: none of their programs can be run here to set them up. The commands are those of
Tests/EndToEnd/arm_programs.py that every suite has; they do not start others.
"""
import glob
import hashlib
import os
import pathlib
import shutil

import arm_programs
import comparison
import harness
import roots

PACKAGES = "base-files bash coreutils git libc6 libc-bin mawk openssl perl-base python3-minimal sed sqlite3 tar xz-utils".split()
QUICK = ("bash", "git_diff", "iconv", "openssl_dgst", "perl", "python3", "sort", "sqlite3")


class Command:
    def __init__(self, program):
        self.name, self.program, self.quick = program.name, program, program.name in QUICK

    def packages_in(self, _):
        return PACKAGES

    def run(self, root, settings):
        result = comparison.Result(root.name, self.name)
        name = os.path.basename(self.program.argv[0]).replace("3.11", "3.*[0-9]")
        found = [path for folder in ("usr/bin", "bin") for path in glob.glob(os.path.join(root.path, folder, name))]
        if not found:
            return result.became("BROKEN", f"{root.path} has no {name}")
        with settings.scratch(root.name, self.name) as scratch:
            traces = os.path.join(scratch, "traces")
            os.mkdir(traces)

            def run(kind):
                where = fresh(scratch, self.program.files)
                environment = harness.passed_on(os.environ)
                if kind == "traced":
                    environment.update(comparison.TRACED, LD_PRELOAD=settings.agent, TRACER_OUT=os.path.join(traces, "%e.%p.trace"))
                ended = harness.execute([*emulator(root.path), found[0], *self.program.argv[1:]], scratch, environment, timeout=300, memory=0)
                for written in self.program.results:
                    path = os.path.join(where, written)
                    if os.path.exists(path):
                        ended.stdout += f"{written}: {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()}\n".encode()
                return ended
            return comparison.compare(result, run, self.program.status, traces, ["*"])


def fresh(scratch, files):
    where = os.path.join(scratch, "cwd")
    shutil.rmtree(where, ignore_errors=True)
    os.mkdir(where)
    for name, text in files.items():
        pathlib.Path(where, name).write_text(text)
    return where


def emulator(root):
    harness.emulate("aarch64", "max", root)
    words, harness.EMULATOR[:] = list(harness.EMULATOR), []  # each system has a root of its own
    return words


class Emulated(comparison.Programs):
    kind, root_options = "arm64", {"variant": "extract", "architecture": "arm64"}

    def __init__(self, given):
        if said := roots.missing_tools((emulator("/")[0], "qemu-user-static")):
            raise SystemExit(said)
        # cc1 is of one suite's gcc; ls sees a folder that is partly of the root and partly of this machine.
        commands = [Command(program) for program in arm_programs.programs() if program.name not in ("cc1", "ls")]
        super().__init__(given, [command for command in commands if command.quick or not given.quick])
