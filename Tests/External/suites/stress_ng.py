"""stress-ng, one stressor at a time, verifying what it does. As nobody, who cannot stop a processor or set the clock."""
import re
import resource

from sources import printed
from trial import Suite, Test

OPERATIONS = 1000
SECONDS = 1  # whichever comes first
MOST_DATA = 4 << 30  # bytes: some stressors take what there is


def why_not(run):
    said = run.stdout + run.stderr
    if "No stress workers invoked" in said or "skipped" in said:
        found = re.search(r"(?:stressor will be skipped|skipped|disabled|skipping)[^\n]*", said)
        return found[0][:120] if found else "it does nothing here"
    return ""


def tests(place):
    for name in printed("stress-ng", "--stressors").split():
        yield Test(name, ["stress-ng", f"--{name}", "1", f"--{name}-ops", str(OPERATIONS), "--verify", "--timeout", f"{SECONDS}s", "--temp-path", "{tmp}"],
                   unprivileged=True, limits=((resource.RLIMIT_DATA, MOST_DATA),), cannot_run=why_not, timeout=60)


suites = [Suite("stress-ng", "stress-ng, stressor by stressor, with --verify", (("stress-ng", "stress-ng"),), tests, version=("stress-ng", "--version"))]
