"""Programs in clean root file systems of Debian's suites, bare and traced; one test for each suite (run.py says what is compared)."""
import os
import shutil
import subprocess

import pytest
from once import ROOT, once

pytestmark = pytest.mark.distributions
SUITES = ["bullseye", "bookworm", "trixie", "sid"]
BETWEEN = pytest.mark.thorough("the oldest glibc and the newest run for aarch64; those between run for x86_64")
ARM_SUITES = [pytest.param(suite, marks=[] if suite in (SUITES[0], SUITES[-1]) else BETWEEN) for suite in SUITES]
LIMIT = 5400


def run(suite, *options):
    done = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "Tests/Distributions/run.py"), "--only", suite, "--jobs", "1", *options], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LIMIT)
    if done.returncode and " 0 different, 0 broken" in done.stdout:  # nothing ran at all
        pytest.skip(done.stdout.strip().splitlines()[0])
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.parametrize("suite", SUITES)
def test_programs_do_the_same(suite):
    run(suite, "--quick")


@pytest.mark.parametrize("suite", [pytest.param(suite, marks=[] if suite == SUITES[0] else pytest.mark.thorough("the oldest runs always")) for suite in SUITES])
def test_programs_do_the_same_with_their_arguments_recorded(suite):
    run(suite, "--quick", "--arguments")


@pytest.mark.arm
@pytest.mark.parametrize("suite", ARM_SUITES)
def test_programs_for_arm_do_the_same(suite):
    if not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("no cross compiler for aarch64")
    once("agent-aarch64", [os.path.join(ROOT, "scripts/build"), "--arch", "aarch64"])
    run(suite, "--arch", "aarch64", "--quick")


@pytest.mark.packages
@pytest.mark.parametrize("suite", SUITES)
def test_packages_record_and_report_when_installed(suite):
    once("packages", [os.path.join(ROOT, "scripts/package")])
    run(suite, "--packages")


@pytest.mark.thorough("compiles hundreds of subjects, and starts large programs, in each of the systems")
@pytest.mark.parametrize("suite", SUITES)
def test_all_programs_and_subjects_do_the_same(suite):
    run(suite)
