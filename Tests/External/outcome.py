"""Results as lines, as JSON, and as the tables of docs/measurements/test-suites.md."""
import collections
import datetime
import json
import os

import runs  # noqa: F401  finds Tests/Compatibility's modules
import table
from trial import DIFFERS, FAILS_BARE, SAME, SKIPPED, VARIES_BARE, Result

VERDICTS = (SAME, DIFFERS, FAILS_BARE, VARIES_BARE, SKIPPED)


class Outcome:
    """The outcome of a whole run; written after each test, so that an interrupted run keeps its results."""

    def __init__(self, path, agent, way=""):
        """`way`: what was recorded besides calls through slots."""
        self.path = path
        self.head = {"agent": agent, "way": way, "date": datetime.date.today().isoformat(), "machine": table.machine()}
        self.suites = {}  # name: {"version", "skipped", "results"}

    def begin(self, suite, version):
        self.suites[suite.name] = {"about": suite.about, "version": version, "skipped": "", "results": []}

    def end(self, suite, functions):
        """`functions`: the most that one process recorded by themselves."""
        self.suites[suite.name]["functions"] = functions
        self.write()

    def skip(self, suite, reason):
        self.suites.setdefault(suite.name, {"about": suite.about, "version": "", "results": []})["skipped"] = reason
        self.write()

    def add(self, results):
        for result in results:
            self.suites[result.suite]["results"].append(result)
        self.write()

    def write(self):
        if not self.path:
            return
        content = {**self.head, "suites": {name: {**suite, "results": [
            {key: value for key, value in (("name", r.name), ("verdict", r.verdict), ("bare", r.bare), ("traced", r.traced), ("reason", r.reason), ("agent said", r.said),
                                           ("detail", r.detail if r.verdict in (DIFFERS, FAILS_BARE) else "")) if value} for r in suite["results"]]}
            for name, suite in self.suites.items()}}
        store(content, self.path)

    def load(self, path):
        """Adds the suites that a file has, in place of those of the same name."""
        with open(path) as file:
            content = json.load(file)
        self.head = {key: content.get(key, "") for key in self.head}
        for name, suite in content["suites"].items():
            self.suites[name] = {**suite, "results": [
                Result(name, r["name"], r["verdict"], r.get("bare", []), r.get("traced", []), r.get("reason", ""), r.get("agent said", []), r.get("detail", ""))
                for r in suite["results"]]}

    def counts(self, name):
        return collections.Counter(result.verdict for result in self.suites[name]["results"])

    def different(self):
        return [result for suite in self.suites.values() for result in suite["results"] if result.verdict == DIFFERS]

    def compared(self):
        return sum(self.counts(name)[SAME] + self.counts(name)[DIFFERS] for name in self.suites)

    def changes(self, other):
        """Lines that say what differs no more and what differs now, of the tests that both have compared."""
        def compared(outcome):
            return {(r.suite, r.name): r for suite in outcome.suites.values() for r in suite["results"] if r.verdict in (SAME, DIFFERS)}
        before, now = compared(other), compared(self)
        both = [key for key in now if key in before]
        gone = [key for key in both if before[key].verdict == DIFFERS and now[key].verdict == SAME]
        new = [key for key in both if before[key].verdict == SAME and now[key].verdict == DIFFERS]
        left = sum(before[key].verdict == now[key].verdict == DIFFERS for key in both)
        lines = [f"Of {len(both)} tests that {other.head['agent']} ran, too: {len(gone)} differ no more, {len(new)} differ now, {left} still do; "
                 f"{len(before) - len(both)} of those that were compared then were not now."]
        return lines + [f"  no more: {suite}: {name}" for suite, name in gone] + [f"  now: {suite}: {name}: {now[suite, name].described()}" for suite, name in new]

    def markdown(self):
        ran = {name: suite for name, suite in self.suites.items() if not suite["skipped"]}
        every = any(suite.get("functions") for suite in ran.values())
        lines = [f"{self.compared():,} tests of {len(ran)} suites, each bare and under the agent{', ' * bool(self.head['way'])}{self.head['way']}: {len(self.different())} differ. "
                 f"{self.head['date']}, agent {self.head['agent']}; {self.head['machine']}."]
        if ran:
            lines += ["", "| suite | version | same | differ | fail bare | vary bare | cannot run here |" + " functions |" * every, "|---|---|" + "---:|" * (5 + every)]
        for name, suite in ran.items():
            counts = self.counts(name)
            lines.append(f"| {suite['about']} | {suite['version']} | " + " | ".join(f"{counts[verdict]:,}" for verdict in VERDICTS)
                         + f" | {suite.get('functions') or 0:,}" * every + " |")
        if self.different():
            lines += ["", "| suite | test | bare | under the agent | of the runs |", "|---|---|---|---|---:|"]
            for result in self.different():
                lines.append(f"| {result.suite} | " + " | ".join(cell(text) for text in (result.name, *result.both)) + f" | {result.different} of {len(result.traced)} |")
        skipped = [f"- {suite['about']}: {suite['skipped']}" for suite in self.suites.values() if suite["skipped"]]
        if skipped:
            lines += ["", "Not run:", "", *skipped]
        return "\n".join(lines) + "\n"


def store(content, path):
    """Writes JSON; who reads it meanwhile has the old or the new."""
    with open(path + ".part", "w") as file:
        json.dump(content, file, indent=1)
    os.replace(path + ".part", path)


def finished(outcome, given, interrupted, changes=""):
    """Writes and prints the tables. Returns the status of the command."""
    text = outcome.markdown()
    if given.markdown:
        with open(given.markdown, "w") as file:
            file.write(text)
    print("\n" + text + changes + f"\nevery outcome: {given.results}")
    if interrupted:
        return 130
    return 1 if outcome.different() or not outcome.compared() else 0


def cell(text):
    return text.replace("|", "/").replace("\n", " ")[:160]


def line(result):
    text = f"  {result.name:40} {result.described()}"
    if result.verdict == DIFFERS:
        text += "".join("\n      " + each for each in result.detail.splitlines()[:16])
    return text
