"""Swift's tests as tests of pytest: those of a module run in one process, and each has its own outcome.

Names come from the sources, outcomes from the event stream of Swift Testing (its JSON, version 0: a record for each test, then events
by the test's id). A test that the sources have and the stream has not fails; Tests/Scripts holds that the sources' names are all.
"""
import json
import os
import re
import subprocess
import tempfile

import pytest
from once import ROOT

BUNDLE = os.path.join(ROOT, ".build/release/tracerPackageTests.xctest")
LIMIT = 900  # seconds; a hang, on a machine that has other things to do, too
TYPE = re.compile(r"^(?:@Suite\b.*? )?(?:private |package |final )*(?:struct|class|enum|actor|extension) (\w+)")
FUNCTION = re.compile(r"\bfunc (?:`([^`]+)`|(\w+))")


def functions(path):
    """(suite or None, name, line of the attribute) of each test of a source file."""
    suite, attribute, found = None, None, []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if match := TYPE.match(line):
                suite = match[1]
            elif line.startswith("}"):
                suite = None
            if re.search(r"^\s*@Test\b", line):
                attribute = number
            if attribute and (match := FUNCTION.search(line)):
                found.append((suite, match[1] or match[2], attribute))
                attribute = None
    return found


def collector(file, parent, **location):
    return SwiftFile.from_parent(parent, **location) if re.search(r"/Tests/\w+Tests/.*\.swift$", str(file)) and functions(str(file)) else None


class SwiftFile(pytest.File):
    def collect(self):
        module = os.path.relpath(str(self.fspath), os.path.join(ROOT, "Tests")).split(os.sep)[0]
        for suite, name, line in functions(str(self.fspath)):
            item = SwiftTest.from_parent(self, name=f"{suite}.{name}" if suite else name)
            item.module, item.test, item.line = module, name, line
            item.add_marker("unit")
            item.add_marker(pytest.mark.xdist_group(module))
            yield item


class SwiftTest(pytest.Item):
    def runtest(self):
        if not os.path.exists(BUNDLE):
            pytest.fail(f"no {BUNDLE}: scripts/build --build-tests makes it", pytrace=False)
        outcomes = self.session.__dict__.setdefault("swift_outcomes", {})
        if self.module not in outcomes:
            outcomes[self.module] = run(self.module, [item for item in self.session.items if isinstance(item, SwiftTest) and item.module == self.module])
        outcome = outcomes[self.module].pop((os.path.basename(str(self.fspath)), self.line), None)
        if outcome is None:
            pytest.fail(outcomes[self.module].get("ended") or "Swift did not run it", pytrace=False)
        if outcome.skipped:
            pytest.skip(outcome.skipped)
        if outcome.issues or not outcome.ended:
            pytest.fail("\n".join(outcome.issues) or outcomes[self.module].get("ended") or "it did not end", pytrace=False)

    def reportinfo(self):
        return self.fspath, self.line - 1, self.name


class Outcome:
    def __init__(self):
        self.issues, self.ended, self.skipped = [], False, None


def run(module, items):
    """{(file, line): Outcome}, and under "ended" what the process said when it did not end well."""
    with tempfile.TemporaryDirectory() as folder:
        stream = os.path.join(folder, "events")
        chosen = [f"^{module}\\.(.*/)?{re.escape(item.test)}\\(" for item in items]
        command = [BUNDLE, "--testing-library", "swift-testing", "--event-stream-output-path", stream, "--event-stream-version", "0",
                   *(word for pattern in sorted(set(chosen)) for word in ("--filter", pattern))]
        with open(os.path.join(folder, "output"), "w+", errors="replace") as output:
            try:
                status = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, timeout=LIMIT).returncode
            except subprocess.TimeoutExpired:
                status = f"none after {LIMIT} s"
            output.seek(0)
            said = output.read()
        outcomes = read(stream)
    if status != 0 and not any(outcome.issues for outcome in outcomes.values()):
        outcomes["ended"] = f"{module}: status {status}\n{said[-3000:]}"
    return outcomes


def read(stream):
    tests, outcomes = {}, {}
    with open(stream, encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    for record in records:
        payload = record["payload"]
        if record["kind"] == "test" and payload["kind"] == "function":
            location = payload["sourceLocation"]
            tests[payload["id"]] = os.path.basename(location["fileID"]), location["line"]
        elif record["kind"] == "event" and payload.get("testID") in tests:
            note(payload, outcomes.setdefault(tests[payload["testID"]], Outcome()))
    return outcomes


def note(event, outcome):
    text = "\n".join(message["text"] for message in event.get("messages", []))
    if event["kind"] == "issueRecorded" and not event.get("issue", {}).get("isKnown"):
        outcome.issues.append(text)
    elif event["kind"] == "testEnded":
        outcome.ended = True
    elif event["kind"] == "testSkipped":
        outcome.skipped = text or "skipped"
