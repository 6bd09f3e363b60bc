"""CPython's own tests of what an agent might disturb, method by method."""
import os

import runs
from sources import printed
from trial import Suite, Test

PYTHON = "/usr/bin/python3"
MODULES = ("test_signal test_fork1 test_posix test_threading test_subprocess test_ctypes test_faulthandler test_gdb test_asyncio test_ssl test_mmap "
           "test_resource").split()
VERSION = printed(PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])") if os.path.exists(PYTHON) else "3"


def tests(directory):
    script = directory.readable_program("cpython_cases.py")
    for module in MODULES:
        command = [PYTHON, script, "{cases}", module]
        yield Test(module, command, timeout=900, unprivileged=True, cases=True, cannot_run=lambda run: runs.first_match(r"(?<=^skipped: ).+", run.stderr),
                   narrowed=lambda names, command=command, module=module: command + [name.removeprefix(module + ": ") for name in names])


suites = [Suite("cpython", "CPython's tests of signals, processes, threads, ctypes, asyncio, TLS", (
    (PYTHON, "python3"), (f"/usr/lib/python{VERSION}/test/test_signal.py", f"libpython{VERSION}-testsuite")), tests, version=(PYTHON, "-V"))]
