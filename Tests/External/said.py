"""Tests of frameworks that write a line for each case."""
from trial import Test

# The reader of the lines is started without the agent, after the test: it is not under test.
READ = '"$@" > {tmp}/said; status=$?; cat {tmp}/said; env -u LD_PRELOAD /usr/bin/python3 %s %s {cases} {tmp}/said; exit $status'


def test(directory, kind, name, command, **more):
    """The kind says what its lines look like: see said_cases.py."""
    return Test(name, ["sh", "-c", READ % (directory.readable_program("said_cases.py"), kind), "sh", *command], cases=True, **more)
