"""Suites of tests, and how a test is judged: bare, then traced, and again if that made a difference."""
from dataclasses import dataclass, field

MOST_RUNS = 3  # runs of each kind, if the first traced run differs
FEW = 30  # cases of a test that are repeated by themselves

SAME, DIFFERS, FAILS_BARE, VARIES_BARE, SKIPPED = "same", "differs", "fails bare", "varies bare", "skipped"
NOT_REACHED = "not reached"


class Unavailable(Exception):
    """A suite cannot run here; the text says why."""


@dataclass
class Suite:
    """`build(directory)` makes what it needs, once; `tests(directory)` are its tests, the version being what `version` prints, else that of the source.

    needs: pairs of what must be there (a command, a path with wildcards) and the package that brings it.
    """
    name: str
    about: str
    needs: tuple
    tests: object
    build: object = None
    source: str = ""  # Debian's source package, unpacked in directory.source before it is built
    programs: str = ""  # pattern of what it is built from in programs/
    version: tuple = ()


@dataclass
class Test:
    """A command that is run in a folder of its own, unless `where` says otherwise. Words may hold {tmp}, that folder."""
    name: str
    command: list
    environment: dict = field(default_factory=dict)
    where: str = ""
    timeout: float = 60  # seconds, of the bare run; only ends what hangs
    status: int = 0
    output: bool = False  # what it writes to stdout must be the same, too
    unprivileged: bool = False  # when started by root: run as an ordinary user
    limits: tuple = ()  # pairs of a resource and its limit
    cannot_run: object = None  # function of a bare Run: why this test says nothing here, or ""
    # With cases, each of them has an outcome: lines of JSON in the file {cases}. A command for some of them: narrowed(names).
    cases: bool = False
    narrowed: object = None


@dataclass
class Result:
    """The result of a test, or of one of its cases."""
    suite: str
    name: str
    verdict: str
    bare: list = field(default_factory=list)
    traced: list = field(default_factory=list)
    reason: str = ""  # why it was skipped
    said: list = field(default_factory=list)  # the agent's lines
    detail: str = ""  # the end of what it wrote, where it differed or failed

    @property
    def different(self):
        return sum(outcome != self.bare[0] for outcome in self.traced)

    @property
    def both(self):
        """The bare outcome, and the traced ones that differ from it; with output only if one of them has the same status."""
        others = list(dict.fromkeys(outcome for outcome in self.traced if outcome != self.bare[0]))
        status, states = self.bare[0].split(", output ")[0], dict.fromkeys(outcome.split(", output ")[0] for outcome in others)
        return (self.bare[0], ", ".join(others)) if status in states else (status, ", ".join(states))

    def described(self):
        if self.verdict == DIFFERS:
            return f"differs {self.different} of {len(self.traced)}: {' → '.join(self.both)}"
        if self.verdict == FAILS_BARE:
            return f"fails bare: {self.bare[0]}"
        if self.verdict == VARIES_BARE:
            return "varies bare: " + " / ".join(dict.fromkeys(self.bare))
        return f"skipped: {self.reason}" if self.verdict == SKIPPED else SAME


def judge(suite, test, execute):
    """Results of a test: one, or one for each of its cases. `execute(test, command, traced, first)` gives a Run."""
    first = execute(test, test.command, False, None)
    reason = test.cannot_run(first) if test.cannot_run else ""
    if reason:
        return [Result(suite, test.name, SKIPPED, reason=reason)]
    results, counted = {}, []
    for name, outcome in first.outcomes.items():
        if outcome.startswith("skipped"):
            results[name] = Result(suite, name, SKIPPED, reason=outcome.removeprefix("skipped").lstrip(": "))
        else:
            results[name] = Result(suite, name, SAME if passes(test, name, outcome) else FAILS_BARE, [outcome])
            results[name].detail = first.end if results[name].verdict == FAILS_BARE else ""
            counted += [name] if results[name].verdict == SAME else []
    if not counted:
        return list(results.values())
    suspects = counted
    command = test.command
    while suspects:
        traced = execute(test, command, True, first)
        for name in suspects:
            result, outcome = results[name], traced.outcomes.get(name, NOT_REACHED)
            result.traced.append(outcome)
            result.said += [line for line in traced.said if line not in result.said]
            if outcome != result.bare[0]:
                result.verdict, result.detail = DIFFERS, result.detail or traced.detail(first)
        suspects = [name for name in suspects if results[name].verdict == DIFFERS]
        if not suspects or len(results[suspects[0]].traced) == MOST_RUNS:
            break
        if test.narrowed and len(suspects) <= FEW:
            # Without the test as a whole, which is one of its cases and ends the same way.
            command = test.narrowed([name for name in suspects if name != test.name]) if suspects != [test.name] else test.command
        bare = execute(test, command, False, first)
        for name in suspects:
            result, outcome = results[name], bare.outcomes.get(name, NOT_REACHED)
            result.bare.append(outcome)
            if outcome != result.bare[0]:
                result.verdict = VARIES_BARE
        suspects = [name for name in suspects if results[name].verdict == DIFFERS]
    return list(results.values())


def passes(test, name, outcome):
    if test.cases and name != test.name:
        return outcome in ("ok", "expected failure")
    return outcome.split(",")[0] == f"status {test.status}"
