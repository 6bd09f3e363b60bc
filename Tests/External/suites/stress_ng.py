"""stress-ng, one stressor at a time, verifying what it does. As a user who cannot stop a CPU or set the clock."""
import re
import resource

from sources import printed
from trial import Suite, Test

OPERATIONS = 1000
SECONDS = 1  # whichever comes first
# Bytes: some stressors take what there is, of memory and of the disk.
LIMITS = ((resource.RLIMIT_DATA, 4 << 30), (resource.RLIMIT_FSIZE, 64 << 20))

# These have thousands of processes, and each takes disk space as long as there is some: others on the machine would notice.
OMITTED = ("forkheavy", "resources")


def why_not(run):
    said = run.stdout + run.stderr
    if "No stress workers invoked" in said or "skipped" in said:
        found = re.search(r"(?:stressor will be skipped|skipped|disabled|skipping)[^\n]*", said)
        return found[0][:120] if found else "it does nothing here"
    return ""


def tests(directory):
    for name in printed("stress-ng", "--stressors").split():
        if name in OMITTED:
            continue
        yield Test(name, ["stress-ng", f"--{name}", "1", f"--{name}-ops", str(OPERATIONS), "--verify", "--timeout", f"{SECONDS}s", "--temp-path", "{tmp}"],
                   unprivileged=True, limits=LIMITS, cannot_run=why_not, timeout=60)


suites = [Suite("stress-ng", "stress-ng, stressor by stressor, with --verify", (("stress-ng", "stress-ng"),), tests, version=("stress-ng", "--version"))]
