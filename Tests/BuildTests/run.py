#!/usr/bin/env python3
"""However it is built, libtracer.so is the same file, and needs nothing but libc.

Tests/BuildTests/run.py [--rounds N] [--seed N]: builds in random order, in the ways that people build, and compares the
agent after each. Every way occurs once when N is not given. The tree's own .build is used; sources are touched, not changed.
"""
import argparse
import hashlib
import os
import random
import re
import signal
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
AGENT = os.path.join(ROOT, ".build/release/libtracer.so")
SWIFT = ["swift", "build", "--build-system", "native"]
LIMIT = 1200


def run(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def edit(path):
    os.utime(os.path.join(ROOT, path))


def edited(path):
    edit(path)
    run("scripts/build")


def interrupted():
    """Ctrl-C while something is compiled."""
    edit("Sources/TracerAgent/Agent.swift")
    edit("CSupport/state.c")
    build = subprocess.Popen(["scripts/build"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True)
    for line in build.stdout:
        if "Compiling" in line:
            os.killpg(build.pid, signal.SIGINT)
    build.wait(timeout=LIMIT)
    run("scripts/build")


WAYS = {
    "scripts/build": lambda: run("scripts/build"),
    "swift build -c release": lambda: run("swift", "build", "-c", "release"),
    "the tool alone": lambda: run(*SWIFT, "-c", "release", "--product", "tracer"),
    "the agent alone": lambda: run(*SWIFT, "-c", "release", "--product", "libtracer.so"),
    "an edited file of the agent": lambda: edited("Sources/TracerAgent/Settings.swift"),
    "an edited file in C": lambda: edited("CSupport/backtraces.c"),
    "an edited file of the tool": lambda: edited("Sources/tracer/Tracer.swift"),
    "an edited manifest": lambda: edited("Package.swift"),
    "an interrupted build": interrupted,
    "swift build of the tests": lambda: run(*SWIFT, "--build-tests"),
}


def digest():
    with open(AGENT, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def needed():
    text = subprocess.run(["readelf", "-dW", AGENT], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, help="so many builds, of all ways")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    options = options.parse_args()
    order = random.Random(options.seed)
    ways = order.choices(list(WAYS), k=options.rounds) if options.rounds else order.sample(list(WAYS), k=len(WAYS))
    print(f"seed {options.seed}")
    run("scripts/build")
    first = digest()
    print(f"{first}  libtracer.so")
    passed = failed = 0
    for way in ways:
        WAYS[way]()
        libraries = needed()
        if digest() == first and libraries == ["libc.so.6"]:
            passed += 1
            print(f"ok   {way}", flush=True)
        else:
            failed += 1
            print(f"FAIL {way}: {digest()}, {os.path.getsize(AGENT)} bytes, needs {', '.join(libraries)}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
