"""Work that one run of the tests does once, whichever of its processes comes first."""
import fcntl
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Named by pytest-xdist; without it, each process is a run of its own.
RUN = os.path.join(ROOT, ".build", "test-run", os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid()))


def once(name, command, limit=2400):
    """Runs the command unless it was run before in this run; fails each time when it failed."""
    os.makedirs(RUN, exist_ok=True)
    path = os.path.join(RUN, name)
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit)
            with open(path + ".new", "w") as file:
                file.write(f"{done.returncode}\n{done.stdout}")
            os.rename(path + ".new", path)
        with open(path) as file:
            status, _, output = file.read().partition("\n")
    if status != "0":
        raise RuntimeError(f"{' '.join(command)}: status {status}\n{output[-3000:]}")
    return output
