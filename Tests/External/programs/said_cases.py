"""Turns what a test wrote into lines of cases.

    said_cases.py tap|redis|pg_regress|tap_numbers|tcltest|maxima CASES WRITTEN

A case has the name that is written, which stays the same where others come and go before it; of several alike, it has its number among them, too.
Tests that have numbers, thousands of a file, are cases in groups: a group's name says how many ran, and its outcome which of them failed.
"""
import collections
import json
import re
import sys

GROUP = 50  # tests that have nothing but a number
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


def named(kind):
    def cases(lines):
        seen = collections.Counter()
        for line in lines:
            case = kind(line)
            if case:
                seen[case[0]] += 1
                yield case[0] + f" {seen[case[0]]}" * (seen[case[0]] > 1), case[1]
    return cases


def group_of(number):
    first = (number - 1) // GROUP * GROUP + 1
    return f"{first}-{first + GROUP - 1}"


def tap_numbers(lines):
    """(group, number, outcome) of each, as the two below."""
    for line in lines:
        found = re.match(r"(not )?ok\b *(\d+)", line)
        if found:
            yield group_of(int(found[2])), found[2], tap(line)[1] if tap(line) else "ok" if not found[1] else "failed"


def tcltest(lines):
    """Yields (group, name, outcome). A failure is printed twice, before and after the reason."""
    failing = ""
    for line in lines:
        found = re.fullmatch(r"(\+\+\+\+|====) (\S+) (.*)", line)
        if not found:
            continue
        mark, name, text = found.groups()
        if mark == "====" and failing:
            failing = "" if failing == name and text == "FAILED" else failing
            continue
        failing = name if mark == "====" else ""
        yield name.rpartition(".")[0], name, "failed" if failing else "skipped" if text.startswith("SKIPPED") else "ok"


def maxima(lines):
    """Problems are counted here: some tests make it write numbers in another base."""
    count, is_open = 0, False
    for line in lines:
        if re.match(r"\*+ Problem [0-9]+", line):
            count, is_open = count + 1, True
        elif is_open and (found := re.search(r"^\.\.\. Which was correct|known error|expected error|(^This differed from the expected result|caused an error)", line)):
            is_open = False
            yield group_of(count), str(count), "failed" if found[1] else "ok"


def grouped(kind):
    def cases(lines):
        groups = {}
        for group, name, outcome in kind(lines):
            ran, failed = groups.setdefault(group, ([], []))
            ran += [name] if not outcome.startswith("skipped") else []
            failed += [name] if outcome == "failed" else []
        for group, (ran, failed) in groups.items():
            yield (f"{group} ({len(ran)})", "failed: " + " ".join(failed) if failed else "ok") if ran else (group, "skipped")
    return cases


KINDS = {"tap": named(tap), "redis": named(redis), "pg_regress": named(pg_regress), "tap_numbers": grouped(tap_numbers), "tcltest": grouped(tcltest), "maxima": grouped(maxima)}

if __name__ == "__main__":
    kind, written, said = sys.argv[1:]
    with open(written, "w") as file, open(said, errors="replace") as lines:
        file.writelines(json.dumps(case) + "\n" for case in KINDS[kind](COLOURS.sub("", line).strip() for line in lines))
