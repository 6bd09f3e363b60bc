"""Counts the calls in each program's traces of a run, with the decoder that shares no code with the tool."""
import fnmatch
import os
from collections import Counter
from dataclasses import dataclass, field

import tracefile

# The low byte of an event word has its kind: those two that begin a call become 1, those that arguments or a result end with become 2.
KINDS = bytes(1 if byte & 3 in (tracefile.ENTER, tracefile.COMPLETE) else 2 if byte in (tracefile.VALUES << tracefile.CONTROL_SHIFT, tracefile.RESULT << tracefile.CONTROL_SHIFT) else 0 for byte in range(256))


@dataclass
class Recording:
    files: int = 0
    calls: int = 0
    values: int = 0  # calls with arguments, and results
    by_program: Counter = field(default_factory=Counter)
    faults: list = field(default_factory=list)


def calls(trace):
    """How many events begin a call, and how many end arguments or a result, read without building the tree: traces of programs at work are long."""
    total, values = 0, 0
    for _, chunk_list in sorted(trace.by_thread.items()):
        for _, offset, chunk in chunk_list:
            start = offset + chunk["body_offset"]
            end = min(offset + (chunk["used_bytes"] or chunk["byte_count"]), len(trace.data) & ~7)
            kinds = trace.data[start:end:8].translate(KINDS)
            total += kinds.count(1)
            values += kinds.count(2)
    return total, values


def read(folder, expected):
    """`expected`: globs of programs' names, each of which must have recorded something."""
    found = Recording()
    # A process that was attached to and has children leaves a folder.
    for path in sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names):
        name = os.path.basename(path)
        found.files += 1
        try:
            trace = tracefile.Trace(path)
        except tracefile.Damaged as damage:
            found.faults.append(f"not a trace: {damage}")
            continue
        if trace.anomalies:
            found.faults.append(f"{name}: {len(trace.anomalies)} anomalies: {'; '.join(trace.anomalies[:3])}")
        number, values = calls(trace)
        found.calls += number
        found.values += values
        found.by_program[name.rsplit(".", 2)[0]] += number
    for glob in expected:
        if not sum(number for program, number in found.by_program.items() if fnmatch.fnmatchcase(program, glob)):
            found.faults.append(f"no call of {glob} was recorded; there are traces of {', '.join(sorted(found.by_program)) or 'nothing'}")
    return found
