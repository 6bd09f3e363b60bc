"""Bad settings and a bad environment: the program's output and status stay, one line on stderr says what is wrong."""
import os
import resource
import shutil
import stat
import struct
import subprocess
from dataclasses import dataclass, field

import build
import harness
import suite
from harness import Skipped, expect


@dataclass
class BadInput(suite.Test):
    name: str
    variables: dict = field(default_factory=dict)  # {traces} is the folder of the traces
    mentions: tuple = ()                          # words, one line on stderr each
    calls: "tuple[int, int | None] | None" = (15000, 15000)  # calls of steady_both; None: no trace is asked for
    arguments: tuple = ("5000",)
    limits: tuple = ()
    memory: int = 16 * harness.GIGABYTE
    wrap: str = ""                                # a shell script around "$@", for mounts
    before: object = None
    inspect: object = None
    lines: "tuple[int, int] | None" = None        # how many lines, when `mentions` does not say
    needs_root: bool = False
    tools: tuple = ()
    checks_bare = True

    def prepare(self):
        if self.needs_root and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
            raise Skipped("no permission to mount a file system in a namespace of our own")
        for tool in self.tools:
            if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin"):
                raise Skipped(f"{tool} is not installed")

    def judge(self):
        argv = [build.program_of("steady"), *self.arguments]
        options = dict(memory=self.memory, limits=self.limits)
        bare = harness.execute(argv, self.directory.fresh(), self.environment(TRACES=self.traces), **options)
        expect(bare.status == 7, f"bare: {harness.describe(bare.status)}, expected status 7: {bare.stderr[-300:]}")
        if self.settings.bare_only:
            return
        if self.before:
            self.before(self)
        environment = self.traced_environment(**{"TRACES": self.traces, **{k: v.replace("{traces}", self.traces) for k, v in self.variables.items()}})
        if self.wrap:  # the shell and its helpers are not what is tested: the preload begins with the program
            preload = environment.pop("LD_PRELOAD")
            argv = ["unshare", "-m", "sh", "-c", self.wrap.replace("RUN", f'env LD_PRELOAD={preload} "$@"'), "sh", *argv]
        traced = harness.execute(argv, self.directory.fresh(), environment, **options)
        faults = []
        if traced.status != bare.status:
            faults.append(f"ended with {harness.describe(traced.status)}, bare with {harness.describe(bare.status)}")
        if traced.stdout != bare.stdout:
            faults.append(harness.difference("stdout", bare.stdout, traced.stdout))
        own = bare.stderr.decode().splitlines()
        said = [line for line in traced.stderr.decode(errors="replace").splitlines() if line not in own]
        if any(line not in traced.stderr.decode(errors="replace").splitlines() for line in own):
            faults.append("the program's own line on stderr is gone")
        low, high = self.lines or (len(self.mentions), len(self.mentions))
        if not low <= len(said) <= high:
            faults.append(f"{len(said)} lines on stderr, expected {low}{'' if low == high else f' to {high}'}: {said[:4]}")
        for word in self.mentions:
            if not any(word in line for line in said):
                faults.append(f"no line mentions {word}: {said[:4]}")
        if self.calls is not None:
            traces, wrong = harness.check_traces(self.settings, self.directory)
            faults += [w for w in wrong if "dropped" not in w]
            calls = sum(t.count("steady_both") for t in traces)
            low, high = self.calls
            if calls < low or (high is not None and calls > high):
                faults.append(f"{calls} calls of steady_both recorded, expected {low} to {high}")
            if not traces:
                faults.append("no trace")
        if self.inspect:
            faults += self.inspect(self)
        expect(not faults, "\n".join(faults))


def a_link(test):
    os.symlink(test.write("victim", "precious"), test.trace("link.trace"))


def victim_is_whole(test):
    return [] if suite.read(test.path("victim")) == "precious" else ["the trace was written through a symbolic link"]


def has_one_reason(test):
    """What the agent says on stderr is what the tool says of the trace."""
    path, = (test.trace(name) for name in os.listdir(test.traces))
    info = test.json("info", path)
    return [] if "file size limit" in (info["stop_reason"] or "") else [f"stopped for another reason: {info['state']}, {info['stop_reason']}"]


def only_mine(test):
    modes = {n: stat.S_IMODE(os.stat(test.trace(n)).st_mode) for n in os.listdir(test.traces)}
    return [f"{n} has mode {mode:o}" for n, mode in modes.items() if mode != 0o600]


def change_string_bytes(path, change):
    """Changes DT_STRSZ, which the loader does not look at, of the program's own file: (address, offset and bytes of the table) → bytes."""
    data = bytearray(suite.read_bytes(path))
    table, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    headers = [struct.unpack_from("<2I6Q", data, table + 56 * n) for n in range(count)]
    loads = [header for header in headers if header[0] == 1]
    offset, size = next((header[2], header[5]) for header in headers if header[0] == 2)
    entries = {struct.unpack_from("<Q", data, at)[0]: at for at in range(offset, offset + size, 16)}
    strings, = struct.unpack_from("<Q", data, entries[5] + 8)
    place = next(strings - load[3] + load[2] for load in loads if load[3] <= strings < load[3] + load[5])
    before, = struct.unpack_from("<Q", data, entries[10] + 8)
    struct.pack_into("<Q", data, entries[10] + 8, change(data, place, before))
    suite.write(path, bytes(data), 0o755)


# What the size of the string table is made.
STRING_TABLES = {
    "without_its_nul": lambda data, place, size: size - 1,
    "that_ends_in_a_name": lambda data, place, size: data.index(b"rand\0", place) - place + 2,
    "of_one_byte": lambda data, place, size: 1,
    "beyond_its_segment": lambda data, place, size: 1 << 40,
    "of_no_byte": lambda data, place, size: 0,
}


def string_table(name, change):
    """The program runs as alone, and what it calls is recorded by its name."""
    def check(test):
        program = test.compile("p", "-O1", source="#include <stdio.h>\n#include <stdlib.h>\n"
                               "int main(void) { int s = 0; for (int n = 0; n < 6; n++) s += rand() % 2; return s; }\n")
        bare = subprocess.run([program], check=False).returncode
        change_string_bytes(program, change)
        expect(subprocess.run([program], check=False).returncode == bare, "the loader does not take it")
        test.execute([program], status=bare)
        found = test.checked_trace().count("rand")
        expect(found == 6, f"{found} calls of rand")
        report = test.json("report", test.trace(os.listdir(test.traces)[0]))
        expect(sum(row["calls"] for row in report["functions"] if row["name"] == "rand") == 6, report["functions"])
    return suite.Test("bad_input.string_table_" + name, check)


def tests():
    bad = [("TRACER_MAXDEPTH", "deep"), ("TRACER_MAXDEPTH", "-1"), ("TRACER_MAXDEPTH", "99999999999999999999"),
           ("TRACER_MINMS", "fast"), ("TRACER_MINMS", "1.2.3"), ("TRACER_MAXSIZE", "lots"), ("TRACER_MODE", "sideways"),
           ("TRACER_CHILDREN", "perhaps"), ("TRACER_START", "soon")]
    found = [BadInput(f"bad_input.value.{name}={value}", {name: value}, (name,)) for name, value in bad]
    found += [
        BadInput("bad_input.two_values", {"TRACER_MAXDEPTH": "x", "TRACER_MODE": "y"}, ("TRACER_MAXDEPTH", "TRACER_MODE")),
        BadInput("bad_input.empty_values", {"TRACER_MAXDEPTH": "", "TRACER_EXCLUDE": "", "TRACER_MINMS": ""}, lines=(0, 2)),
        BadInput("bad_input.missing_directory", {"TRACER_OUT": "/nonexistent/directory/x.%p.trace"}, ("/nonexistent/directory",), calls=None),
        BadInput("bad_input.name_is_a_directory", {"TRACER_OUT": "{traces}"}, lines=(1, 1), calls=None),
        BadInput("bad_input.name_too_long", {"TRACER_OUT": "/tmp/" + "x" * 6000}, lines=(1, 1), calls=None),
        BadInput("bad_input.unknown_placeholder", {"TRACER_OUT": "{traces}/a%q%%.%p.trace"}, lines=(0, 1)),
        BadInput("bad_input.symbolic_link", {"TRACER_OUT": "{traces}/link.trace"}, lines=(0, 1), calls=None,
                 before=a_link, inspect=victim_is_whole),
        BadInput("bad_input.mode_0600", inspect=only_mine),
        BadInput("bad_input.relative_name", {"TRACER_OUT": "../traces/here.trace"}),
        # The limits leave the program's own files alone, which are small.
        BadInput("bad_input.file_size_limit_64k", lines=(1, 1), calls=(0, 15000), arguments=("50000",),
                 limits=((resource.RLIMIT_FSIZE, 65536),)),
        BadInput("bad_input.file_size_limit_6m", mentions=("file size limit reached",), calls=(1, 900000), arguments=("300000",),
                 limits=((resource.RLIMIT_FSIZE, 6 << 20),), inspect=has_one_reason),
        BadInput("bad_input.address_space_2g", memory=2 << 30),
        BadInput("bad_input.address_space_80m", memory=80 << 20, lines=(0, 1), calls=(0, None)),
        BadInput("bad_input.file_deleted", {"MIDWAY": "unlink"}, lines=(0, 1), calls=None),
        BadInput("bad_input.file_truncated", {"MIDWAY": "truncate"}, lines=(1, 1), calls=None, arguments=("50000",)),
        BadInput("bad_input.maximum_size", {"TRACER_MAXSIZE": "1"}, lines=(0, 1), calls=(0, None), arguments=("50000",)),
        BadInput("bad_input.full_tmpfs", {"TRACER_OUT": "/mnt/%e.%p.trace"}, lines=(1, 1), calls=(0, None), needs_root=True,
                 arguments=("100000",),
                 wrap='mount -t tmpfs -o size=1m none /mnt; RUN; s=$?; cp /mnt/*.trace "$TRACES"/ 2>/dev/null; exit $s'),
        BadInput("bad_input.tiny_tmpfs", {"TRACER_OUT": "/mnt/%e.%p.trace"}, lines=(1, 1), calls=None, needs_root=True,
                 wrap="mount -t tmpfs -o size=8k none /mnt; RUN"),
        BadInput("bad_input.tmpfs_filled_by_another", {"TRACER_OUT": "/mnt/%e.%p.trace"}, lines=(1, 1), calls=None, needs_root=True,
                 arguments=("300000",),
                 wrap="mount -t tmpfs -o size=16m none /mnt; head -c 14m /dev/zero > /mnt/filler; RUN"),
        # File systems of 6 MB in a file: ext4 reserves blocks for the trace, ext2 cannot, and its zeros are written.
        *(BadInput(f"bad_input.full_{kind}", {"TRACER_OUT": "/mnt/%e.%p.trace"}, ("no space",), calls=(1, 899999), needs_root=True,
                   arguments=("300000",), tools=(f"mkfs.{kind}",),
                   wrap=f'head -c 6m /dev/zero > disk; mkfs.{kind} -q disk && mount -o loop disk /mnt || exit 90; RUN; s=$?; '
                        'cp /mnt/*.trace "$TRACES"/; exit $s')
          for kind in ("ext4", "ext2")),
        BadInput("bad_input.read_only_directory", {"TRACER_OUT": "/mnt/%e.%p.trace"}, ("/mnt",), calls=None, needs_root=True,
                 wrap="mount -t tmpfs -o ro none /mnt; RUN"),
    ]
    return found + [string_table(name, change) for name, change in STRING_TABLES.items()]
