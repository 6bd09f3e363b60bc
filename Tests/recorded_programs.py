"""Programs built and recorded in folders of their own, by the tool that is tested, with a cache that is not the user's: for the tests of
what is made of traces of every function."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(ROOT, ".build/release/tracer")
if len(sys.argv) > 2 and sys.argv[1] == "--tool":
    TOOL = os.path.abspath(sys.argv[2])
    del sys.argv[1:3]
LIMIT = 300  # seconds, on a machine that has other things to do
SCRATCH = tempfile.mkdtemp(prefix="tracer-tests-")
atexit.register(shutil.rmtree, SCRATCH)


def run(*command, folder, status=0, **variables):
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(SCRATCH, "cache"), "TRACER_CACHE": "on", **variables}
    os.makedirs(environment["XDG_CACHE_HOME"], mode=0o700, exist_ok=True)
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, env=environment)
    if ended.returncode != status:
        raise AssertionError(f"{' '.join(command)}: status {ended.returncode}\n{ended.stderr[-2000:]}")
    return ended


def tracer(*arguments, folder, **options):
    return run(TOOL, *arguments, folder=folder, **options)


def new_folder():
    return tempfile.mkdtemp(dir=SCRATCH)


def record(trace, program, *arguments, folder, options=("--functions", "*")):
    return tracer("record", "--quiet", *options, "-o", trace, "--", "./" + program, *arguments, folder=folder)
