"""Turns what a test wrote into lines of cases.

    said_cases.py tap|redis|pg_regress CASES WRITTEN

A case has the name that is written, which stays the same where others come and go before it; of several alike, it has its number among them, too.
"""
import collections
import json
import re
import sys

COLOURS = re.compile(r"\x1b\[[\d;]*m")


def tap(line):
    found = re.fullmatch(r"(not )?ok\b *\d* *(?:- )?(.*?)(?: - .*)?(?: *# *(skip|todo)\b *(.*))?", line, re.I)
    if not found:
        return None
    failed, name, directive, reason = found.groups()
    if directive and directive.lower() == "skip":
        return name, f"skipped: {reason}"
    return name, "ok" if not failed else "expected failure" if directive else "failed"


def redis(line):
    """After the name are milliseconds, or the file where it failed; one that is ignored says why."""
    found = re.fullmatch(r"\[(ok|err|ignore|exception)\]: (.*?)(?: \(\d+ ms\)| in tests/\S+\.tcl)?", line)
    if not found:
        return None
    state, name = found.groups()
    if state == "ignore":
        name, _, reason = name.rpartition(": ")
        return (name or reason), f"skipped: {reason}"
    return ("exception", f"failed: {name}") if state == "exception" else (name, "ok" if state == "ok" else "failed")


def pg_regress(line):
    found = re.fullmatch(r"(?:test )? *(\S+) +\.\.\. (ok|FAILED|failed \(ignored\)).*", line)
    return found and (found[1], "ok" if found[2] == "ok" else "failed")


def cases(kind, lines):
    seen = collections.Counter()
    for line in lines:
        case = kind(COLOURS.sub("", line).strip())
        if case:
            seen[case[0]] += 1
            yield case[0] + f" {seen[case[0]]}" * (seen[case[0]] > 1), case[1]


if __name__ == "__main__":
    kind, written, said = sys.argv[1:]
    with open(written, "w") as file, open(said, errors="replace") as lines:
        file.writelines(json.dumps(case) + "\n" for case in cases({"tap": tap, "redis": redis, "pg_regress": pg_regress}[kind], lines))
