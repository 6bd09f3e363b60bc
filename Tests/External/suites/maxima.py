"""Maxima's own tests, on GCL: a Lisp whose program is the image of its heap, with code in it that no linker has seen."""
import glob
import os

import said
from trial import Suite

FOLDER = "/usr/share/maxima/*/tests"
EVERY = 3  # files that are run, of all of them: they differ in what they compute more than in how


def tests(directory):
    for path in sorted(glob.glob(FOLDER + "/rtest*.mac"))[::EVERY]:
        name = os.path.basename(path).removesuffix(".mac")
        run = f'run_testsuite(tests = ["{name}"], display_all = true);'
        yield said.test(directory, "maxima", name, ["maxima", "--very-quiet", "--batch-string=" + run], timeout=600)


suites = [Suite("maxima", "Maxima's own tests, on GCL", (("maxima", "maxima"), (FOLDER, "maxima-test"), ("/usr/share/maxima/*/share", "maxima-share")), tests,
                version=("maxima", "--version"))]
