"""Runs a test of Wine's and appends what became of each of its checks to a file, line by line of its source.

    wine_cases.py FILE COMMAND…

A line that is checked several times has failed if it has once. What the test writes goes through a file: a pipe would stay
open as long as Wine's server does.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

path, *command = sys.argv[1:]
OUTCOMES = {"succeeded": "ok", "marked todo": "expected failure", "failed": "failed", "succeeded inside todo block": "unexpected success"}
WORST = list(OUTCOMES.values())

checks, last = {}, ""
with tempfile.TemporaryFile() as written:
    status = subprocess.run(command, stdout=written, env={**os.environ, "WINETEST_REPORT_SUCCESS": "1"}).returncode
    written.seek(0)
    for line in written:
        text = line.decode(errors="replace").rstrip()
        found = re.match(r"(?:[\da-f]+:)?(\w+\.c:\d+): Test (succeeded inside todo block|succeeded|marked todo|failed)", text)
        if found:
            outcome = OUTCOMES[found[2]]
            checks[found[1]] = max(checks.get(found[1], outcome), outcome, key=WORST.index)
            if outcome == "failed":
                print(text, file=sys.stderr)
        elif text:
            last = text
print(last, file=sys.stderr)
with open(path, "w") as file:
    for check in checks.items():
        file.write(json.dumps(check) + "\n")
sys.exit(status)
