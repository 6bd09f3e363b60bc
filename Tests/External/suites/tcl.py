"""Tcl's own tests, file by file: coroutines, threads, notifiers, pipes, sockets, extensions that are loaded and unloaded."""
import glob
import os
import shutil

import said
from trial import Suite

# These compute for minutes, and call nothing but themselves.
OMITTED = ("reg", "regexp", "regexpComp")
THREAD = "/usr/lib/tcltk/*/thread2*"


def build(directory):
    """With libtcl as a library, and the commands that only the tests need."""
    unix = os.path.join(directory.source, "unix")
    directory.run(["./configure", "--enable-shared", "--enable-threads"], where=unix)
    directory.run(["make", "-j2", "all", "tcltest"], where=unix)


def readable(directory):
    """A copy for nobody, with what tests find next to the program: many run only for who is not root."""
    folder = os.path.join(directory.readable, "tcl")
    for part in ("library", "tests"):
        shutil.copytree(os.path.join(directory.source, part), os.path.join(folder, part), dirs_exist_ok=True)
    os.makedirs(folder + "/unix/dltest", exist_ok=True)
    for path in [*glob.glob(directory.source + "/unix/lib*.so"), *glob.glob(directory.source + "/unix/dltest/*.so"), directory.source + "/unix/tcltest"]:
        shutil.copy(path, os.path.join(folder, os.path.relpath(path, directory.source)))
    return folder


def tests(directory):
    folder = readable(directory)
    # No folder of root's in PATH: a program that is nowhere would be one that may not be started.
    environment = {"LD_LIBRARY_PATH": folder + "/unix", "TCL_LIBRARY": folder + "/library", "TCLLIBPATH": " ".join(os.path.dirname(path) for path in glob.glob(THREAD)),
                   "PATH": "/usr/local/bin:/usr/bin:/bin"}
    for path in sorted(glob.glob(folder + "/tests/*.test")):
        name = os.path.basename(path).removesuffix(".test")
        if name not in OMITTED:
            yield said.test(directory, "tcltest", name, [folder + "/unix/tcltest", path, "-verbose", "pse"], environment=environment, unprivileged=True, timeout=600)


suites = [Suite("tcl", "Tcl's own tests", (("gcc", "gcc"), ("make", "make"), ("dpkg-source", "dpkg-dev"), (THREAD, "tcl-thread")), tests, build, source="tcl8.6")]
