"""Subjects: what their header comments ask for, and the commands that build it.

A subject is one source file. Lines at its top, after `//` or `#`, say how to build and run it:

    compilers: gcc clang        one test each (default gcc; `swiftc` for .swift, `sh` for a script)
    build: FLAGS                for the program and its libraries (default -O2)
    link: FLAGS                 for the program alone
    library: NAME [FLAGS]       this same file, compiled with -DLIB_NAME into libNAME.so, linked to the program
    library: NAME=FILE [FLAGS]  another file of this folder
    plugin: NAME[=FILE] [FLAGS] the same, not linked: the program opens or preloads it
    sources: FILE…              compiled into the program too
    variant: NAME[@COMPILER or @ARCHITECTURE] [FLAGS]  one test each, FLAGS added to the program and its libraries (`exe:` before
                                a flag: to the program alone)
    after: COMMAND              run in the build folder when all is built
    case: NAME [A=B …] [ARGS]   one test each, with this environment and these arguments
    env: A=B …                  environment of every case
    needs: THING…               avx, avx512f (CPU), tool:NAME, file:PATH, program:NAME, realtime (threads of such priority)
    status: N | signal N        how the program ends (default 0)
    tree: none REASON           no golden file
    says: N REASON              up to N lines of the agent on stderr, and calls dropped, are in order
    unsaid: REASON              calls dropped are in order, and the agent has no way to say so
    disorder: CASE… because REASON  these cases (`*`: all): signals come where the order of events says nothing, or calls end on
                                another thread; what is called how often is compared
    memory: unlimited           no address space limit (sanitizers)
    timeout: SECONDS            default 120: time is not what is tested, only that a program ends
    preload: A B                libraries around ours, `@` is the agent (default `@`)
    architecture: NAME REASON   for this one alone
    executes: CASE…             these cases (`*`: all) run other programs, or this one again: needs them to be for the
                                architecture that the tests run on, or a kernel that runs those of the other (binfmt_misc)
    native: CASE… because REASON these cases (`*`: all) ask for what an emulator of user programs does not do
    forks: CASE…                these cases (`*`: all) fork: an emulator must clear pages in the child (MADV_WIPEONFORK)
    untraced: REASON            the traced run must produce no trace
    modes: MODE… [for PATTERN…] its cases run in these modes, too (modes.py): all of them, or those whose name after the subject's
                                matches a pattern of the shell
    thorough: MODE… [for PATTERN…] because REASON  by scripts/test --all alone

{build} in any of them is the build folder, {source} the subjects folder.
"""
import fcntl
import fnmatch
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SUBJECTS = os.path.join(HERE, "subjects")
GOLDEN = os.path.join(HERE, "golden")
BUILD = os.path.join(ROOT, ".build", "subjects")
ARCHITECTURE = platform.machine()
SUFFIXES = (".c", ".cpp", ".swift", ".S", ".sh")
KEYS = {"compilers", "build", "link", "library", "plugin", "sources", "variant", "after", "case", "env", "needs",
        "status", "says", "unsaid", "disorder", "tree", "memory", "timeout", "preload", "untraced", "modes", "thorough", "architecture", "executes", "native", "forks"}


class BuildFailed(Exception):
    pass


@dataclass
class Case:
    """One subject, built one way, run one way."""
    name: str
    subject: "Subject"
    compiler: str
    variant: str
    flags: list
    case: str
    environment: dict
    arguments: list

    @property
    def folder(self):
        parts = [self.subject.name, self.compiler] + ([self.variant] if self.variant else [])
        return os.path.join(BUILD, ".".join(parts))


@dataclass
class Subject:
    path: str
    options: dict = field(default_factory=dict)

    @property
    def name(self):
        return os.path.splitext(os.path.basename(self.path))[0]

    def get(self, key, default=""):
        return self.options.get(key, [default])[-1]

    def all(self, key):
        return self.options.get(key, [])

    def modes(self):
        """Each mode that its header names, with why only --all runs it (or "") and with a test for cases."""
        for key in ("modes", "thorough"):
            for line in self.all(key):
                line, _, reason = line.partition(" because ")
                names, _, patterns = line.partition(" for ")
                for name in names.split():
                    yield name, reason, lambda case, patterns=patterns.split() or ["*"]: any(
                        fnmatch.fnmatchcase(case.name[len(self.name) + 1:], pattern) for pattern in patterns)

    def cases(self):
        suffix = os.path.splitext(self.path)[1]
        compilers = self.get("compilers", {".swift": "swiftc", ".sh": "sh"}.get(suffix, "gcc")).split()
        variants = [v.split(None, 1) for v in self.all("variant")] or [[""]]
        runs = self.all("case") or [""]
        for compiler in compilers:
            for variant in variants:
                name, _, only = variant[0].partition("@")
                if only and only not in (compiler, ARCHITECTURE):
                    continue
                variant = [name] + variant[1:]
                for run in runs:
                    words = shlex.split(run)
                    case, words = (words[0], words[1:]) if words else ("", [])
                    environment = dict(w.split("=", 1) for w in shlex.split(self.get("env")))
                    while words and re.match(r"^[A-Z_][A-Z_0-9]*=", words[0]):
                        key, value = words.pop(0).split("=", 1)
                        environment[key] = value
                    full_name = ".".join([self.name] + ([compiler] if len(compilers) > 1 else [])
                                    + [v for v in (variant[0], case) if v])
                    yield Case(full_name, self, compiler, variant[0], shlex.split(variant[1]) if len(variant) > 1 else [],
                               case, environment, words)


def load(path):
    subject = Subject(path)
    with open(path) as file:
        for line in file:
            match = re.match(r"^(?://|#) ?([a-z]+): *(.*?) *$", line)
            if match and match[1] in KEYS:
                subject.options.setdefault(match[1], []).append(match[2])
            elif not line.startswith(("//", "#!", "# ")) and line.strip() not in ("", "#"):
                break
    return subject


def subjects():
    names = sorted(n for n in os.listdir(SUBJECTS) if n.endswith(SUFFIXES) and not n.startswith("part_"))
    return [load(os.path.join(SUBJECTS, n)) for n in names]


# Before glibc 2.34 dlsym and its like are not in libc.so.6.
WITH_DL = "-Wl,--push-state,--as-needed,-ldl,--pop-state"
DRIVERS = {"gcc": {".c": "gcc", ".S": "gcc", ".cpp": "g++"},
           "clang": {".c": "clang", ".S": "clang", ".cpp": "clang++"},
           "swiftc": {".swift": "swiftc", ".c": "clang", ".S": "clang", ".cpp": "clang++"}}


# Names of options on the other architecture.
OPTIONS = {"aarch64": {"-mtls-dialect=gnu2": "-mtls-dialect=desc", "-mtls-dialect=gnu": "-mtls-dialect=trad",
                       "-fcf-protection=full": "-mbranch-protection=standard", "-Wl,-z,ibtplt": "-Wl,-z,pac-plt",
                       "-Wl,-z,ibt": "-Wl,-z,pac-plt"}}


def cross_compile(architecture):
    """From here on subjects are built for the other architecture, and those that Swift or a shell would run are missing."""
    global BUILD, ARCHITECTURE
    BUILD += "-" + architecture
    ARCHITECTURE = architecture
    for language in DRIVERS["gcc"]:
        DRIVERS["gcc"][language] = f"{architecture}-linux-gnu-{DRIVERS['gcc'][language]}"
        DRIVERS["clang"][language] += f" --target={architecture}-linux-gnu"


INSTRUMENT = "-finstrument-functions"


def instrument():
    """From here on C and C++ subjects and their libraries are built so that each function calls __cyg_profile_func_enter and _exit."""
    global BUILD
    BUILD += "-instrumented"
    for compiler in ("gcc", "clang"):
        for language in (".c", ".cpp"):
            DRIVERS[compiler][language] += " " + INSTRUMENT


def is_meant(case, key):
    """True when the subject's line of this key names the case."""
    return any(w == "*" or w == case.case for line in case.subject.all(key) for w in line.split(" because ")[0].split())


def commands(case):
    subject, folder = case.subject, case.folder
    common = shlex.split(subject.get("build", "-O" if case.compiler == "swiftc" else "-O2"))
    everywhere = [f for f in case.flags if not f.startswith("exe:")]
    alone = [f[4:] for f in case.flags if f.startswith("exe:")]
    options = OPTIONS.get(ARCHITECTURE, {})
    everywhere = [options.get(f, f) for f in everywhere]
    if ARCHITECTURE == "aarch64" and case.compiler == "clang":  # it knows descriptors alone, and no option for them
        everywhere = [f for f in everywhere if not f.startswith("-mtls-dialect=")]

    def final(words):
        return [w.replace("{build}", folder).replace("{source}", SUBJECTS) for w in words]

    result, linked = [], []
    for key in ("library", "plugin"):
        for line in subject.all(key):
            words = shlex.split(line)
            name, _, file = words[0].partition("=")
            source = os.path.join(SUBJECTS, file) if file else subject.path
            driver = DRIVERS[case.compiler][os.path.splitext(source)[1]]
            output = os.path.join(folder, f"lib{name}.so")
            if driver == "swiftc":
                result.append(final(["swiftc", "-emit-library", "-module-name", name, "-emit-module",
                                     "-emit-module-path", f"{folder}/{name}.swiftmodule", "-DLIB_" + name, source,
                                     "-o", output, "-I", folder] + common + everywhere + words[1:]))
            else:
                own = [] if driver != "swiftc" and case.compiler == "swiftc" else common + everywhere
                extra = ["-I", folder, "-L", folder]
                result.append(final(driver.split() + ["-g", "-shared", "-fPIC", f"-DLIB_{name}", "-I", SUBJECTS, source,
                                     "-o", output, f"-Wl,-soname,lib{name}.so"] + extra
                                    + (own or ["-O2"]) + words[1:] + [WITH_DL]))
            if key == "library":
                linked.append("-l" + name)
    output = os.path.join(folder, subject.name)
    sources = [subject.path] + [os.path.join(SUBJECTS, f) for f in subject.get("sources").split()]
    link = shlex.split(subject.get("link"))
    if case.compiler == "sh":
        result.append(["cp", subject.path, output])
        result.append(["chmod", "+x", output])
    elif case.compiler == "swiftc":
        result.append(final(["swiftc", subject.path, "-o", output, "-I", folder, "-L", folder, "-Xlinker", "-rpath",
                             "-Xlinker", "$ORIGIN"] + common + everywhere + alone + linked + link))
    else:
        driver = DRIVERS[case.compiler]["." + subject.path.rsplit(".", 1)[1]]
        result.append(final(driver.split() + ["-g", "-I", SUBJECTS] + sources + ["-o", output, "-L", folder]
                            + common + everywhere + alone + ["-Wl,-rpath,$ORIGIN"] + linked + link + ["-pthread", WITH_DL]))
    for line in subject.all("after"):
        result.append(["sh", "-c", final([line])[0]])
    return result


def case_of(name, part=""):
    """The first case of a subject, or of those with this part in their names."""
    return next(case for subject in subjects() if subject.name == name for case in subject.cases() if part in case.name)


def program_of(name, part=""):
    return build(case_of(name, part))


def build(case):
    """Builds when any command or source changed. Returns the program's path."""
    with open(case.folder + ".lock", "w") as lock:  # several workers may want the same program
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_locked(case)


def build_locked(case):
    todo = commands(case)
    digest = hashlib.sha256(repr(todo).encode())
    for name in sorted(os.listdir(SUBJECTS)):
        path = os.path.join(SUBJECTS, name)
        if path == case.subject.path or name.endswith(".h") or any(name in " ".join(c) for c in todo):
            with open(path, "rb") as file:
                digest.update(file.read())
    stamp = os.path.join(case.folder, ".built")
    program = os.path.join(case.folder, case.subject.name)
    try:
        with open(stamp) as file:
            if file.read() == digest.hexdigest():
                return program
    except OSError:
        pass
    shutil.rmtree(case.folder, ignore_errors=True)
    os.makedirs(case.folder)
    for command in todo:
        done = subprocess.run(command, cwd=case.folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise BuildFailed(f"{shlex.join(command)}\n{(done.stdout + done.stderr)[:1500]}")
    with open(stamp, "w") as file:
        file.write(digest.hexdigest())
    return program


def missing(case, cpu_flags):
    """Why this case cannot run here, or None."""
    architecture = case.subject.get("architecture").split()
    if architecture and architecture[0] != ARCHITECTURE:
        return f"for {architecture[0]} alone"
    if ARCHITECTURE != platform.machine():
        if case.compiler in ("swiftc", "sh"):
            return f"no Swift library for {ARCHITECTURE}" if case.compiler == "swiftc" else "runs programs of this machine"
        if is_meant(case, "native"):
            return "not under an emulator"
        if is_meant(case, "forks") and not harness.emulator_wipes():
            return "this emulator ignores MADV_WIPEONFORK (qemu before 8.0)"
        if case.compiler == "gcc" and set(case.flags) & {"-fno-plt", "exe:-fno-plt", "-DMIXED"}:
            return "gcc loads a slot once for several calls there; clang's variants test -fno-plt"
        if is_meant(case, "executes") and not os.path.exists(f"/proc/sys/fs/binfmt_misc/qemu-{ARCHITECTURE}"):
            return f"this kernel runs no programs of {ARCHITECTURE} (binfmt_misc)"
    for need in " ".join(case.subject.all("needs")).split() + [w for w in case.environment.pop("NEEDS", "").split(",") if w]:
        kind, _, value = need.partition(":")
        if kind == "tool":
            if not shutil.which(value):
                return f"{value} is not installed"
        elif need == "realtime":
            if subprocess.run(["chrt", "-f", "1", "true"], stderr=subprocess.DEVNULL).returncode:
                return "threads of real-time priority are not allowed here (CAP_SYS_NICE)"
        elif kind == "file":
            if not os.path.exists(value):
                return f"no {value}"
        elif need not in cpu_flags:
            return f"the CPU has no {need}"
    for tool in re.findall(r"-fuse-ld=(\w+)", " ".join(case.flags)):
        prefix = f"{ARCHITECTURE}-linux-gnu-" if ARCHITECTURE != platform.machine() and case.compiler == "gcc" else ""
        if not shutil.which(f"{prefix}ld.{tool}") and not (shutil.which(tool) and not prefix):
            return f"the linker {tool} is not installed"
    compiler = DRIVERS[case.compiler][".c"].split()[0] if case.compiler != "sh" else "sh"
    if not shutil.which(compiler):
        return f"{compiler} is not installed"
    return None
