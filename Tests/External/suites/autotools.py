"""Libraries that look at stacks and registers, by the tests that their authors ship."""
import os

from sources import autotools, behind_libtool, make_variable
from trial import Suite, Test

BUILDING = (("gcc", "gcc"), ("g++", "g++"), ("make", "make"), ("dpkg-source", "dpkg-dev"), ("autoreconf", "autoconf"), ("automake", "automake"), ("libtoolize", "libtool"))


def build(*options):
    def steps(directory):
        autotools(directory, *options)
        directory.run(["make", "check", "TESTS="], where=directory.source)
    return steps


def tests_in(subfolder, libraries):
    """Returns a generator of the tests of `make check`, each run by itself; automake's status for one that cannot run is 77."""
    def tests(directory):
        folder = os.path.join(directory.source, subfolder)
        path = ":".join(os.path.join(directory.source, library) for library in libraries)
        for name in make_variable(folder, "TESTS"):
            yield Test(name, [behind_libtool(folder, name)], where=folder, environment={"LD_LIBRARY_PATH": path, "srcdir": folder}, timeout=120,
                       cannot_run=lambda run: "it says so (status 77)" if "status 77" in run.outcomes.values() else "")
    return tests


suites = [
    Suite("libunwind", "libunwind's own tests", BUILDING, tests_in("tests", ("src/.libs", "tests/.libs")), build("--disable-documentation"), source="libunwind"),
    Suite("libgc", "Boehm's collector, its own tests", (*BUILDING, ("pkg-config", "pkg-config"), ("/usr/include/atomic_ops.h", "libatomic-ops-dev")),
          tests_in(".", (".libs",)), build(), source="libgc"),
    Suite("libsigsegv", "libsigsegv's own tests", BUILDING, tests_in("tests", ("src/.libs",)), build(), source="libsigsegv"),
]
