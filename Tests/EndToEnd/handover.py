"""`tracer record` informs the agent when it called execve, and only the image that it started believes it."""
import os

import suite
import tracefile
from harness import expect


def believed_by(believer, *command):
    def check(test):
        test.tool("record", "--quiet", "-o", test.trace("%p.trace"), *command)
        traces = tracefile.read_all(test.traces)
        believers = [trace for trace in traces if "exec" in trace.phases]
        expect([os.path.basename(trace.text(1).decode()) for trace in believers] == [os.path.basename(os.path.realpath(believer))],
               f"{[trace.program for trace in believers]} of {[trace.program for trace in traces]} have the moment of exec")
        moment, began = believers[0].phases["exec"][1], believers[0].header["first_monotonic_ns"]
        expect(began - 60_000_000_000 < moment < began, f"exec {began - moment} ns before the agent")
    return check


def tests():
    return [suite.Test("handover." + name, check) for name, check in (
        ("started", believed_by("/bin/true", "/bin/true")),
        ("exec_again", believed_by("/bin/sh", "/bin/sh", "-c", "exec /bin/true")),
        ("child", believed_by("/bin/sh", "/bin/sh", "-c", "/bin/true; :")))]
