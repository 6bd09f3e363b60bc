"""Modes: in what environment a test runs. The default is `slots`; a subject's header and a suite's MODES name others.

A mode may change what `build` and `harness` hold for the whole process (the architecture, the compilers, the emulator). So a mode is
entered before the tests that run in it are listed, and again before each of them runs.
"""
import copy
import functools
import os
import platform
import shutil
from dataclasses import dataclass

import build
import harness
from once import once


@dataclass(frozen=True)
class Mode:
    """One way to build, run and record."""
    functions: bool = False  # every function of every module is recorded; trees and counts are not compared
    counts: bool = False  # only which functions were called is recorded (TRACER_MODE=counts)
    instrumented: bool = False  # subjects are built with -finstrument-functions
    call_sites: bool = False
    architecture: str = platform.machine()
    cpu: str = "max"  # what qemu plays; cortex-a57 has neither LSE nor SVE
    page: int = 0  # bytes that the emulator takes for a page, instead of the machine's

    @property
    def emulated(self):
        return self.architecture != platform.machine()


ARM = "aarch64"
MODES = {
    "slots": Mode(),
    "functions": Mode(functions=True),
    "counts": Mode(functions=True, counts=True),
    "instrumented": Mode(instrumented=True),
    "call_sites": Mode(call_sites=True),
    "arm": Mode(architecture=ARM),
    "arm_old": Mode(architecture=ARM, cpu="cortex-a57"),
    "arm_functions": Mode(architecture=ARM, functions=True),
    "arm_counts": Mode(architecture=ARM, functions=True, counts=True),
    "arm_instrumented": Mode(architecture=ARM, instrumented=True),
    "arm_call_sites": Mode(architecture=ARM, call_sites=True),
    # Kernels for aarch64 may have such pages, and what the agent maps of its file must begin on one.
    "arm_large_pages": Mode(architecture=ARM, page=65536),
}
NATIVE = {"BUILD": build.BUILD, "ARCHITECTURE": build.ARCHITECTURE, "DRIVERS": copy.deepcopy(build.DRIVERS)}


def enter(name):
    """Sets the process up for the mode and returns it. Starts nothing."""
    mode = MODES[name]
    build.BUILD, build.ARCHITECTURE, build.DRIVERS = NATIVE["BUILD"], NATIVE["ARCHITECTURE"], copy.deepcopy(NATIVE["DRIVERS"])
    harness.EMULATOR.clear()
    if mode.emulated:
        build.cross_compile(mode.architecture)
        harness.emulate(mode.architecture, mode.cpu, f"/usr/{mode.architecture}-linux-gnu")
        if mode.page:  # only the static emulators before 8.2 have it, and scripts/setup's newer one lacks it
            harness.EMULATOR[0] = shutil.which("qemu-aarch64-static") or harness.EMULATOR[0]
            harness.EMULATOR[1:1] = ["-p", str(mode.page)]
    if mode.instrumented:
        build.instrument()
    return mode


def settings(mode, given):
    """The harness's settings for tests in an entered mode; builds the agent for another architecture once a run."""
    os.makedirs(build.BUILD, exist_ok=True)
    agent = given.agent
    if mode.emulated:
        if reason := lacking(mode):
            raise harness.Skipped(reason)
        agent = os.path.join(build.ROOT, ".build", mode.architecture, "libtracer.so")
        once("agent-" + mode.architecture, [os.path.join(build.ROOT, "scripts/build"), "--arch", mode.architecture])
    return harness.Settings(agent, given.tool, given.bare, given.keep, mode.functions, given.moments, mode.instrumented, mode.counts, mode.call_sites,
                            given.attaches)


@functools.cache
def lacking(mode):
    """Why nothing can be emulated here, or None."""
    if not shutil.which(f"{mode.architecture}-linux-gnu-gcc"):
        return f"no cross compiler for {mode.architecture}"
    if not shutil.which(harness.EMULATOR[0]):
        return f"no emulator of {mode.architecture}"
    return page_of_the_emulator(mode) if mode.page else None


PAGE = """#include <stdio.h>
#include <sys/auxv.h>
int main(void) { printf("%lu", getauxval(AT_PAGESZ)); return 0; }
"""


def page_of_the_emulator(mode):
    found = harness.emulated(PAGE, tuple(harness.EMULATOR)).stdout
    return None if found == str(mode.page) else "this emulator has pages of the machine's size only (qemu from 8.2 on)"
