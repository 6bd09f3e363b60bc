"""Programs built and recorded in folders of their own, by the tool that is tested, with a cache that is not the user's: for the tests of
what is made of traces of every function."""
import atexit
import functools
import os
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(ROOT, ".build/release/tracer")
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
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(scratch(), "cache"), "TRACER_CACHE": "on", **variables}
    os.makedirs(environment["XDG_CACHE_HOME"], mode=0o700, exist_ok=True)
    ended = subprocess.run(command, cwd=folder or scratch(), capture_output=True, text=True, timeout=LIMIT, env=environment)
    if ended.returncode != status:
        raise AssertionError(f"{' '.join(command)}: status {ended.returncode}\n{ended.stderr[-2000:]}")
    return ended


def tracer(*arguments, **options):
    return run(TOOL, *arguments, **options)


def record(trace, program, *arguments, folder, options=("--functions", "*")):
    return tracer("record", "--quiet", "--force", *options, "-o", trace, "--", "./" + program, *arguments, folder=folder)
