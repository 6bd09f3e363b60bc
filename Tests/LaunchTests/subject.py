"""Builds the program of Tests/LaunchTests/subject in variants: as it is, and with a regression planted."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "subject")
ROOT = os.path.dirname(os.path.dirname(HERE))
RUNNER = os.path.join(ROOT, "Sources/Program/CTracerAPI/tracer_startup.c")

#: Kinds of regression: the flags that make one of roughly that many microseconds, and the kind and name that must be the first
#: cause.
REGRESSIONS = {
    "constructor": (lambda us: [f"-DCONSTRUCTOR_MICROSECONDS={us}"], {("constructor", "work_init")}),
    "extra library": (lambda us: ["-DEXTRA_LIBRARY", f"-DEXTRA_MICROSECONDS={us}"], {("library", "libextra.so")}),
    "more calls": (lambda us: [f"-DWORK_CALLS={4 + us // 200}"], {("call", "work")}),
    "a lazy initializer": (lambda us: [f"-DLAZY_MICROSECONDS={us}"], {("lazy", "make_table")}),
    "a start-up item": (lambda us: [f"-DITEM_MICROSECONDS={us}"], {("item", "planted")}),
    "a slower start-up item": (lambda us: [f"-DSETTINGS_MICROSECONDS={us}"], {("item", "settings")}),
    "a lock held by another thread": (lambda us: [f"-DLOCK_MICROSECONDS={us}"], {("call", "pthread_mutex_lock")}),
    "a file read": (lambda us: [f"-DFILE_READS={us // 5}"], {("call", "read"), ("call", "open"), ("call", "open64")}),
}

#: Likewise, what the gate must find: its rule, and of what.
ITEMS = {
    "a start-up item": ("new-item", "stage 1: planted"),
    "a slower start-up item": ("slower-item", "stage 1: settings"),
    "a start-up item of the pool": ("new-item", "stage 1: planted_on_pool"),
}


def build(folder, flags=()):
    """The program's path. The files are called the same in every variant."""
    os.makedirs(folder, exist_ok=True)
    run = lambda *words: subprocess.run(words, check=True, cwd=folder)
    common = ["gcc", "-g", "-O1", "-Wall", "-Wextra", "-I", os.path.join(ROOT, "CSupport/include"), *flags]
    run(*common, "-fPIC", "-shared", "-Wl,-soname,libwork.so", "-o", "libwork.so", os.path.join(SOURCES, "work.c"))
    libraries = ["-lwork"]
    if "-DEXTRA_LIBRARY" in flags:
        run(*common, "-fPIC", "-shared", "-Wl,-soname,libextra.so", "-o", "libextra.so", os.path.join(SOURCES, "extra.c"), "-L.", "-lwork",
            "-Wl,-rpath,$ORIGIN")
        libraries = ["-lextra", "-lwork"]
    run(*common, "-pthread", "-o", "app", os.path.join(SOURCES, "app.c"), RUNNER, "-L.", *libraries, "-Wl,-rpath,$ORIGIN")
    return os.path.join(folder, "app")


PARENT_SLEEPS = 100_000_000  # nanoseconds


def parent(folder):
    """The program of subject/parent.c."""
    path = os.path.join(folder, "parent")
    subprocess.run(["gcc", "-g", "-O1", "-Wall", "-Wextra", "-pthread", f"-DSLEEP={PARENT_SLEEPS}", "-o", path, os.path.join(SOURCES, "parent.c")], check=True)
    return path


def planted(folder, kind, microseconds, base=()):
    flags, expected = REGRESSIONS[kind]
    return build(folder, [*base, *flags(microseconds)]), expected


def with_item(folder, kind, microseconds, base=()):
    flags = [f"-DPOOL_ITEM_MICROSECONDS={microseconds}"] if kind not in REGRESSIONS else REGRESSIONS[kind][0](microseconds)
    return build(folder, [*base, *flags]), ITEMS[kind]


if __name__ == "__main__":  # subject.py FOLDER FILE: with the flags that stand in the file, a line each
    with open(sys.argv[2], encoding="utf-8") as lines:
        build(sys.argv[1], [line for line in lines.read().splitlines() if line.startswith("-D")])
