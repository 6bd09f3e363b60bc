#!/usr/bin/env python3
"""`tracer record` informs the agent when it called execve, and only the image that it started believes it."""
import os
import subprocess

import harness
import tracefile
from harness import expect


class Handover:
    def __init__(self, name, command, believers):
        self.name, self.command, self.believers = "handover." + name, command, believers

    def run(self, settings):
        if settings.bare_only:
            return
        directory = harness.Directory(self.name, settings.keep)
        try:
            directory.fresh()
            done = subprocess.run([settings.tool, "record", "--quiet", "-o", os.path.join(directory.traces, "%p.trace"), *self.command],
                                  env=harness.passed_on(os.environ), timeout=120,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            expect(not done.returncode, f"status {done.returncode}: {done.stderr[-400:]}")
            traces = tracefile.read_all(directory.traces)
            believers = [os.path.basename(t.text(1).decode()) for t in traces if "exec" in t.phases]
            expect(believers == self.believers, f"{believers} of {[t.program for t in traces]} have the moment of exec")
            for trace in traces:
                if "exec" not in trace.phases:
                    continue
                moment, began = trace.phases["exec"][1], trace.header["first_monotonic_ns"]
                expect(began - 60_000_000_000 < moment < began, f"exec {began - moment} ns before the agent")
        finally:
            directory.done()


def tests():
    true = os.path.basename(os.path.realpath("/bin/true"))
    return [Handover("started", ["/bin/true"], [true]),
            Handover("exec_again", ["/bin/sh", "-c", "exec /bin/true"], [os.path.basename(os.path.realpath("/bin/sh"))]),
            Handover("child", ["/bin/sh", "-c", "/bin/true; :"], [os.path.basename(os.path.realpath("/bin/sh"))])]
