"""Programs of gcc's tests of C and C++, and of its libraries for OpenMP and transactional memory, each built as its head asks for. DejaGnu would only start them."""
import glob
import os
import pathlib
import platform
import re
from typing import NamedTuple

import torture
from sources import compiled
from trial import Suite, Test, Unavailable

WITHIN = r"(gcc/testsuite/(?:gcc\.dg|g\+\+\.dg|c-c\+\+-common)/.*|(?:libgomp|libitm)/.*\.(?:[chC]|cc|map))$"
# Suites have thousands of programs: all that have to do with stacks, threads, exceptions and calls through pointers are taken, and one in
# `every` of the others.
WHOLE = r"/(stackalign|tls|eh|coroutines)/|cleanup|nest|tramp|jmp|nonlocal|thread|sig[^n]|apply|va-?arg|alloca|unwind|split|tail-?call|sibcall|ifunc|thunk|constructor|backtrace|cxa|instrument"
# Tests that run gdb, need profiles of an earlier run or modules, or report errors by a runtime of their own (the suite sanitizers has
# those).
OMITTED = r"/(guality|asan|hwasan|tsan|ubsan|gcov|modules|tree-prof|debug)/"


class Kind(NamedTuple):
    folders: tuple
    options: tuple = ()
    every: int = 1
    any_runs: bool = False  # also what does not say that it is to be run


KINDS = {
    "gcc.dg": Kind(("gcc/testsuite/gcc.dg", "gcc/testsuite/c-c++-common"), every=2),
    "g++.dg": Kind(("gcc/testsuite/g++.dg",)),
    "libgomp": Kind(("libgomp/testsuite/libgomp.c", "libgomp/testsuite/libgomp.c++", "libgomp/testsuite/libgomp.c-c++-common"), ("-fopenmp",), 2, True),
    "libitm": Kind(("libitm/testsuite/libitm.c", "libitm/testsuite/libitm.c++"), ("-fgnu-tm",), any_runs=True),
}
BY_FOLDER = {"coroutines": ("-std=gnu++20", "-fcoroutines"), "gomp": ("-fopenmp",), "tm": ("-fgnu-tm",),
             "stackalign": ("-mstackrealign", "-mforce-drap") if platform.machine() == "x86_64" else ()}


class Program(NamedTuple):
    name: str
    path: str
    text: str


def programs(kind, root):
    """The programs that are to run and to end well."""
    found = []
    for folder in kind.folders:
        for path in sorted(glob.glob(f"{root}/{folder}/**/*.[cC]", recursive=True)):
            text = pathlib.Path(path).read_text(errors="replace")
            asked = re.search(r"dg-do\s+(\w+)", text)
            if (asked[1] == "run" if asked else kind.any_runs and "main" in text) and "dg-shouldfail" not in text and not re.search(OMITTED, path):
                found.append(Program(path.rpartition("/testsuite/")[2], path, text))
    others = [program for program in found if not re.search(WHOLE, program.name)]
    left = set(others) - set(others[::kind.every])
    return [program for program in found if program not in left]


def standard(text):
    """The language that a program of C++ says it is for, where that is not the compiler's own."""
    found = re.search(r"target[^}\n]*\bc\+\+(\w\w)(_down|_only)?", text)
    return [f"-std=gnu++{found[1]}"] if found and (found[2] or found[1] in ("20", "2a", "23", "2b")) else []


def file(directory, program):
    return os.path.join(directory.folder, "programs", re.sub(r"\W", "-", program.name))


def build(directory):
    kind = KINDS[directory.suite.name]
    root = torture.unpacked(directory.cache, "gcc", WITHIN)[1]
    os.makedirs(os.path.join(directory.folder, "programs"))

    def command(program):
        folder, beside = os.path.dirname(program.path), re.findall(r'dg-additional-sources\s+"([^"]*)"', program.text)
        plus = program.path.endswith(".C")
        options = [*(standard(program.text) if plus else ()), *kind.options, *(option for name in program.name.split("/") for option in BY_FOLDER.get(name, ()))]
        return ["g++" if plus else "gcc", "-O2", "-w", *options, *torture.wanted_options(program.text), f"-I{folder}", f"-I{root}/{directory.suite.name}", program.path,
                *(os.path.join(folder, name) for names in beside for name in names.split()), "-o", file(directory, program), "-Wl,--as-needed", "-lm", "-latomic", "-lpthread", "-ldl"]

    found = programs(kind, root)
    said = compiled(map(command, found), directory.folder)
    logs = [f"{program.name}: {text[:500]}\n" for program, text in zip(found, said) if text]
    pathlib.Path(directory.folder, "log").write_text("".join(logs) + f"{len(logs)} of {len(found)} are not built, most of them for other architectures\n")
    if len(logs) == len(found):
        raise Unavailable(f"nothing is built ({directory.folder}/log)")


def tests(directory):
    for program in programs(KINDS[directory.suite.name], torture.unpacked(directory.cache, "gcc", WITHIN)[1]):
        if os.path.exists(file(directory, program)):
            variables = dict(re.findall(r'dg-set-target-env-var\s+"?(\w+)"?\s+"([^"]*)"', program.text))
            yield Test(program.name, [file(directory, program)], environment=variables, output=True, timeout=120)


NEEDS, VERSION = (("gcc", "gcc"), ("g++", "g++"), ("dpkg-source", "dpkg-dev")), ("gcc", "-dumpfullversion")

suites = [
    Suite("gcc.dg", "gcc's programs in C that run: of stacks, threads and calls through pointers, and every second other one", NEEDS, tests, build, version=VERSION),
    Suite("g++.dg", "g++'s programs that run", NEEDS, tests, build, version=VERSION),
    Suite("libgomp", "libgomp's programs in C and C++, every second one", NEEDS, tests, build, version=VERSION),
    Suite("libitm", "libitm's own tests", NEEDS, tests, build, version=VERSION),
]
