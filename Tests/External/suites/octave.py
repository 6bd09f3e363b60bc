"""Octave's built-in tests: C++ exceptions through an interpreter, callbacks from Fortran and C, other processes, evaluated file by file."""
import glob
import os

from trial import Suite, Test

FOLDER = "/usr/share/octave/*"
EVERY = 20  # files that are run, of all of them: most compute


def tests(directory):
    # The tests of etc/tests/fixed want to be started in folders of their own.
    for folder in sorted(glob.glob(FOLDER + "/m/*/") + glob.glob(FOLDER + "/etc/tests/lib*/")):
        yield Test(os.path.basename(folder[:-1]), ["octave-cli", "--no-gui", "--no-init-file", directory.program("octave.m"), "{cases}", folder[:-1], str(EVERY)],
                   cases=True, timeout=900)


suites = [Suite("octave", "Octave's built-in tests", (("octave-cli", "octave"),), tests, version=("octave-cli", "--version"))]
