"""Programs built and recorded in folders of their own, and what the tool says of them, with a cache that is not the user's."""
import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(ROOT, ".build/release/tracer")
AGENT = os.path.join(ROOT, ".build/release/libtracer.so")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
LIMIT = 300  # seconds, on a machine that has other things to do


@functools.cache
def scratch():
    """This process has one folder, which goes with it."""
    folder = tempfile.mkdtemp(prefix="tracer-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def new_folder():
    return tempfile.mkdtemp(dir=scratch())


def run(*command, folder=None, status=0, **variables):
    """`status` is the one that it must end with, or several of them."""
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(scratch(), "cache"), "TRACER_CACHE": "on", **variables}
    os.makedirs(environment["XDG_CACHE_HOME"], mode=0o700, exist_ok=True)
    ended = subprocess.run(command, cwd=folder or scratch(), capture_output=True, text=True, timeout=LIMIT, env=environment)
    if ended.returncode not in (status if isinstance(status, tuple) else (status,)):
        raise AssertionError(f"{' '.join(command)}: status {ended.returncode}\n{ended.stderr[-2000:]}")
    return ended


def tracer(*arguments, **options):
    return run(TOOL, *arguments, **options)


def figures(command, *arguments, **options):
    """Returns what a command prints as JSON."""
    return json.loads(tracer(command, *arguments, "--json", **options).stdout)


def record(trace, program, *arguments, folder, options=("--functions", "*")):
    return tracer("record", "--quiet", "--force", *options, "-o", trace, "--", "./" + program, *arguments, folder=folder)


def preloaded(trace, *command):
    """The agent alone records it, without what the kernel reports. Returns the trace."""
    run(*command, LD_PRELOAD=AGENT, TRACER_OUT=trace, TRACER_CHILDREN="0", TRACER_CACHE="off")
    return trace
