"""Debian's own programs for arm64, unpacked into a cache and run under the emulator: bare and traced, the same output,
status and files, a valid trace with calls.

    scripts/test Tests/EndToEnd/arm_programs.py

The commands do not fork: an emulator that ignores MADV_WIPEONFORK (qemu-user before 8.0) runs the agent of the child
on the parent's trace (docs/reference/compatibility.md, aarch64).
"""
import fcntl
import functools
import glob
import os
import shutil
import subprocess
from dataclasses import dataclass

import build
import harness
from harness import Skipped
from programs import Program
from suite import read, write

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tracer", "arm64")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITE = "bookworm"
# Packages of the programs that are run, and of the libraries they need; the loader and libc are of the same suite.
PACKAGES = """bash coreutils cpp-12 git mawk openssl perl-base python3.11-minimal sed sqlite3 tar xz-utils
libacl1 libattr1 libc-bin libc6 libcrypt1 libexpat1 libgcc-s1 libgmp10 libisl23 liblzma5 libmpc3 libmpfr6 libpcre2-8-0
libpython3.11-minimal libreadline8 libselinux1 libsqlite3-0 libssl3 libstdc++6 libtinfo6 libunwind8 libunwind-14 libzstd1 zlib1g""".split()


@functools.cache
def root():
    """The folder with the unpacked packages, or why there is none."""
    os.makedirs(CACHE, exist_ok=True)
    sysroot = os.path.join(CACHE, "root")
    with open(os.path.join(CACHE, "lock"), "w") as lock:  # several workers ask at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(sysroot, ".packages")
        if os.path.exists(done):
            if read(done).split() == PACKAGES:
                return sysroot, None
        for tool in ("apt-get", "dpkg-deb"):
            if not shutil.which(tool):
                return None, f"no {tool} to get arm64 packages with"
        if not os.path.exists(KEYRING):
            return None, f"no {KEYRING} to check Debian's packages with"
        mirror = debians_mirror()
        if not mirror:
            return None, "apt knows no mirror of Debian (apt-get update)"
        try:
            unpack(sysroot, mirror)
        except subprocess.SubprocessError as failure:
            said = getattr(failure, "stderr", b"") or b""
            return None, f"arm64 packages cannot be had: {(said.decode(errors='replace').splitlines() or [str(failure)])[-1]}"
        write(done, " ".join(PACKAGES))
        return sysroot, None


def debians_mirror():
    """From where this machine has its own packages; None when that is no Debian."""
    targets = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)"], capture_output=True, text=True).stdout
    for origin, codename, mirror in (line.split() for line in targets.splitlines() if len(line.split()) == 3):
        if origin == "Debian" and "-" not in codename:  # not the mirror of bookworm-security
            return mirror
    return None


def unpack(sysroot, mirror):
    """With lists, state and settings of its own: of this machine's apt only the mirror is read, and nothing is changed."""
    own = os.path.join(CACHE, "apt")
    for name in ("lists/partial", "archives/partial", "sources", "packages"):
        os.makedirs(os.path.join(own, name), exist_ok=True)
    write(os.path.join(own, "status"), "")
    write(os.path.join(own, "sources/debian.sources"), f"Types: deb\nURIs: {mirror}\nSuites: {SUITE}\nComponents: main\n"
          f"Architectures: arm64\nSigned-By: {KEYRING}\n")
    settings = write(os.path.join(own, "apt.conf"), f'APT::Architecture "arm64"; APT::Architectures {{ "arm64"; }}; APT::Sandbox::User "root";\n'
                     f'Dir::State "{own}"; Dir::State::status "{own}/status"; Dir::Cache "{own}";\n'
                     f'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "{own}/sources";\n'
                     'Acquire::Languages "none"; Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n')
    environment = {**os.environ, "APT_CONFIG": settings}

    def do(*argv, limit=600):
        subprocess.run(argv, check=True, capture_output=True, timeout=limit, env=environment, cwd=os.path.join(own, "packages"))
    do("apt-get", "-qq", "-o", "Acquire::Retries=2", "update")
    do("apt-get", "-qq", "-o", "Acquire::Retries=2", "download", *PACKAGES)
    shutil.rmtree(sysroot, ignore_errors=True)
    for package in sorted(glob.glob(os.path.join(own, "packages", "*.deb"))):
        do("dpkg-deb", "-x", package, sysroot)
        os.unlink(package)


@dataclass
class ArmProgram(Program):
    def run(self, settings):
        sysroot, reason = root()
        if reason:
            raise Skipped(reason)
        before = harness.EMULATOR[-1]
        harness.EMULATOR[-1] = sysroot
        try:
            super().run(settings)
        finally:
            harness.EMULATOR[-1] = before

    def prepare(self):
        self.argv = [os.path.join(harness.EMULATOR[-1], self.argv[0]), *self.argv[1:]]
        super().prepare()


@dataclass
class ArmUnwinder(ArmProgram):
    """A subject, built so that one of the root's libraries unwinds."""
    source: str = ""
    libraries: tuple = ()
    unwinder: str = ""

    def prepare(self):
        source = os.path.join(build.SUBJECTS, self.source)
        compiler = build.DRIVERS["gcc"][os.path.splitext(source)[1]]
        common = ["-O2", "-fexceptions", "-fno-optimize-sibling-calls", "-fPIC", "-I", build.SUBJECTS, source]
        for name in self.libraries:
            self.compile(f"lib{name}.so", *common, "-shared", "-DLIB_" + name, "-Wl,--allow-shlib-undefined", compiler=compiler)
        unwinder = os.path.join(harness.EMULATOR[-1], "usr/lib/aarch64-linux-gnu", self.unwinder)
        self.argv = [self.compile("program", *common, "-L", self.made, *("-l" + name for name in self.libraries), "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed",
                                  unwinder, "-Wl,--unresolved-symbols=ignore-in-shared-libs", compiler=compiler)]


LINES = "".join(f"{(n * 7919) % 1000:03} line {n} {'x' * (n % 13)}\n" for n in range(400))
BASH = r"""
declare -A seen; total=0
for ((n = 0; n < 300; n++)); do seen[k$((n % 17))]=$n; ((total += n)); done
[[ "abc-123" =~ ([a-z]+)-([0-9]+) ]] && echo "${BASH_REMATCH[2]} $total ${#seen[@]}"
while read -r word rest; do printf '%s|' "${word//0/o}"; done <lines; echo
exit 3
"""
C = """typedef struct { int left, right; } pair;
static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
int sum(const pair *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += gcd(p[i].left, p[i].right); return s; }
double scale(double x, int n) { while (n-- > 0) x *= 1.5; return x; }
"""
PYTHON = """import re, sys, zlib
words = re.findall(r"[a-z]+", open("lines").read())
print(len(words), {w: words.count(w) for w in sorted(set(words))})
print(zlib.crc32(repr(sorted(i * i % 97 for i in range(2000))).encode()))
try:
    [].pop()
except IndexError as error:
    print(type(error).__name__, error)
sys.exit(4)
"""
SQL = """create table t(a integer primary key, b text);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 500) insert into t select x, hex(x * x) from n;
create index i on t(b);
select count(*), sum(a), max(b), group_concat(substr(b, 1, 2)) from t where b like '3%';
"""


def programs():
    lines = {"lines": LINES}
    return [
        ArmProgram("bash", ["bin/bash", "script"], {"script": BASH, **lines}, status=3),
        ArmProgram("cc1", ["usr/lib/gcc/aarch64-linux-gnu/12/cc1", "-quiet", "-O2", "x.c", "-o", "x.s"], {"x.c": C},
                   results=("x.s",)),
        ArmProgram("git_diff", ["usr/bin/git", "diff", "--no-index", "--stat", "-p", "lines", "other"],
                   {"other": LINES.replace("x line", "y line").replace("1", "one", 40), **lines}, status=1),
        ArmProgram("git_hash_object", ["usr/bin/git", "hash-object", "lines", "lines"], lines),
        # A module of libc, found and loaded while it runs.
        ArmProgram("iconv", ["usr/bin/iconv", "-f", "UTF-8", "-t", "UTF-16", "lines", "-o", "coded"], lines, results=("coded",)),
        # Not a folder of the system: the emulator shows its own in its place, and entries of the one are not in the other.
        ArmProgram("ls", ["bin/ls", "-la", "--time-style=+"], {f"file{n}": LINES[:n] for n in range(40)}, least_calls=200),
        ArmProgram("mawk", ["usr/bin/mawk", '{ n[$3 % 10] += $1; s = s substr($4, 1, 1) } END { for (i = 0; i < 10; i++) print i, n[i]; print length(s) }',
                            "lines"], lines),
        ArmProgram("openssl_dgst", ["usr/bin/openssl", "dgst", "-sha512", "lines"], lines),
        ArmProgram("openssl_enc", ["usr/bin/openssl", "enc", "-aes-128-ctr", "-K", "00112233445566778899aabbccddeeff", "-iv",
                                   "0123456789abcdef0123456789abcdef", "-in", "lines", "-out", "sealed"], lines, results=("sealed",)),
        ArmProgram("perl", ["usr/bin/perl", "-e", r'open F, "lines"; while (<F>) { $n{$1}++ if /(\d\d) / } '
                            r'print join(",", map { "$_=$n{$_}" } sort keys %n), "\n"; eval { die "x\n" }; print $@; exit 5'],
                   lines, status=5),
        ArmProgram("python3", ["usr/bin/python3.11", "script.py"], {"script.py": PYTHON, **lines}, status=4),
        ArmProgram("sed", ["bin/sed", "-E", r"s/([0-9]+) (line)/\2 \1/; /x{9}/d; 5~3y/abc/ABC/", "lines"], lines),
        ArmProgram("sha256sum", ["usr/bin/sha256sum", "lines", "/usr/bin/sort"], lines),
        ArmProgram("sort", ["usr/bin/sort", "-k3,3nr", "-u", "lines"], lines, least_calls=300),
        ArmProgram("sqlite3", ["usr/bin/sqlite3", "-batch", "data.db", SQL]),
        ArmProgram("tar", ["bin/tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-cvf", "all.tar", "a", "b"],
                   {"a": LINES, "b": BASH}, results=("all.tar",)),
        ArmProgram("xz", ["usr/bin/xz", "-9", "-T1", "--keep", "lines"], lines, results=("lines.xz",), least_calls=20),
        # LLVM's keeps no x30 for the caller's frame; nongnu libunwind takes no value for a return address, and has no exceptions there.
        ArmUnwinder("exceptions_llvm", [], source="exceptions.cpp", libraries=("upper", "lower"), unwinder="libunwind.so.1"),
        ArmUnwinder("steps_hp", [], source="part_steps.c", libraries=("passed",), unwinder="libunwind.so.8", least_calls=10),
    ]


MODES = {"arm": "*"}


def tests():
    return programs()
