"""The programs of a run, and the result of one of them in one system."""
import re
from dataclasses import dataclass

import harness
import recording

TRACED = {"LD_PRELOAD": "/tmp/agent/libtracer.so", "TRACER_OUT": "/tmp/traces/%e.%p.trace", "TRACER_QUIET": "on"}


class Programs:
    """What a run is about. A root is made with all that its programs want: --filter makes none anew."""
    kind, root_options = "", {}

    def __init__(self, given, wanted):
        self.wanted, self.programs = wanted, [program for program in wanted if re.search(given.filter, program.name)]

    def packages(self, suite):
        return sorted({name for program in self.wanted for name in program.packages_in(suite)})


@dataclass
class Result:
    system: str
    program: str
    verdict: str = "same"  # or DIFFERENT; BROKEN, by itself, without the agent; skipped
    detail: str = ""
    version: str = ""
    calls: int = 0
    values: int = 0
    traces: int = 0
    note: str = ""

    def line(self):
        text = f"{self.system:14} {self.program:12} {self.verdict}"
        if self.verdict == "skipped":
            return f"{text}: {self.detail}"
        values = f", {self.values:,} times arguments or a result" if self.values else ""
        said = self.note or (f"{self.calls:,} calls{values} in {self.traces} traces" if self.traces else "")
        return " ".join(filter(None, [text, said, f"({self.version})" if self.version else ""])) \
            + "".join(f"\n    {line}" for line in self.detail.splitlines())

    def became(self, verdict, detail):
        self.verdict, self.detail = verdict, detail
        return self


CANNOT_RUN = 77  # a script's status where the machine lacks what it needs, as automake's tests have it; what it writes last is the reason


def compare(result, run, status, traces, records, has_values=False):
    """`run` is called with "bare" and with "traced"; the bare one must end with `status`. `has_values`: arguments must have been recorded."""
    kind = "bare"
    try:
        bare = run(kind)
        if bare.status == CANNOT_RUN:
            return result.became("skipped", bare.stdout.decode(errors="replace").strip().rpartition("\n")[2])
        if bare.status != status:
            said = (bare.stdout + bare.stderr)[-1000:].decode(errors="replace").strip()
            return result.became("BROKEN", f"bare: {harness.describe(bare.status)}, expected status {status}\n{said}")
        kind = "traced"
        traced = run(kind)
    except harness.Failed as failure:
        return result.became("BROKEN" if kind == "bare" else "DIFFERENT", f"{kind}: {failure}")
    found = recording.read(traces, records)
    result.calls, result.values, result.traces = found.calls, found.values, found.files
    if has_values and not found.values:
        found.faults.append("no arguments were recorded")
    faults = harness.same(bare, traced) + found.faults
    return result.became("DIFFERENT", "\n".join(faults)) if faults else result
