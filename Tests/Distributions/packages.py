"""The packages of scripts/package, installed in clean roots that have no Swift and no library that the tool is built with."""
import glob
import os
import re
import shutil

import comparison
import roots

# A user's first steps. The program's own output and status come through, and the trace has its calls.
USE = r"""
tracer --version
tracer record -o one.trace -- python3 -c 'print("traced"); raise SystemExit(3)' || echo "status $?"
tracer info one.trace >info
tracer report one.trace >rows
head -3 rows
tracer report --json one.trace | python3 -c '
import json, sys
report = json.load(sys.stdin)
calls = sum(f["calls"] for f in report["functions"])
assert calls > 1000, calls
print("thousands of calls")'
tracer record --quiet -o two.trace -- sh -c 'sort --version >first'
tracer export one.trace --format csv -o calls.csv
[ "$(wc -l <calls.csv)" -gt 1000 ]
"""
# The settings with which the root was made keep manual pages out.
DEB = r"""
set -e
rm -f /etc/dpkg/dpkg.cfg.d/99mmdebstrap
dpkg -i /tmp/agent/*.deb >log 2>&1 || { cat log; exit 1; }
wrong=$(dpkg --verify tracer)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
""" + USE + r"""
dpkg -r tracer >log 2>&1 || { cat log; exit 1; }
hash -r
if command -v tracer; then echo "left behind: $(command -v tracer)"; exit 1; fi
"""
TARBALL = "set -e\nmkdir /opt/tracer\ntar -xzf /tmp/agent/*.tar.gz -C /opt/tracer\n" + r"""
tool=$(find /opt/tracer -path '*/bin/tracer' | head -1)
[ -n "$tool" ] || { echo "no bin/tracer in it"; find /opt/tracer | head; exit 1; }
PATH=${tool%/tracer}:$PATH
""" + USE
# The system is older than the tool is for.
AGENT = "set -e\nmkdir /opt/tracer\ntar -xzf /tmp/agent/*.tar.gz -C /opt/tracer\n" + r"""
agent=$(find /opt/tracer -name libtracer.so | head -1)
[ -n "$agent" ] || { echo "no libtracer.so in it"; find /opt/tracer | head; exit 1; }
LD_PRELOAD=$agent TRACER_QUIET=on TRACER_OUT=/tmp/traces/%e.%p.trace python3 -c 'print("traced"); raise SystemExit(3)' || echo "status $?"
"""
EXPECTED = re.compile(rb"^traced\nstatus 3$", re.M)


class Way:
    """One way to install one package."""

    def __init__(self, name, pattern, script, suites):
        self.name, self.pattern, self.script, self.suites = name, pattern, script, suites

    def packages_in(self, _):
        return ["python3"]

    def run(self, root, settings):
        result = comparison.Result(root.name, self.name)
        if root.name.split("-")[0] not in self.suites:
            return result.became("skipped", f"for {', '.join(self.suites)}")
        found = glob.glob(os.path.join(settings.given.packages, self.pattern))
        if len(found) != 1:
            return result.became("BROKEN", f"{len(found)} files {os.path.join(settings.given.packages, self.pattern)}, one is wanted: run scripts/package first")
        with settings.scratch(root.name, self.name) as scratch:
            where = roots.scratch_folder(scratch, "package")
            shutil.copy(found[0], os.path.join(where, "agent"))
            change = os.path.join(scratch, "change")
            os.mkdir(change)
            try:
                ended = roots.enter(root, where, ["/bin/sh", "-c", self.script], change=change)
            except roots.Failed as failure:
                return result.became("BROKEN", str(failure))
            recorded = comparison.recording.read(os.path.join(where, "traces"), ["python3*"]) if self.script is AGENT else None
        said = (ended.stdout + ended.stderr).decode(errors="replace")
        result.note = os.path.basename(found[0])
        if ended.status or not EXPECTED.search(ended.stdout):
            return result.became("DIFFERENT", f"status {ended.status}\n{said[-1500:]}")
        return result.became("DIFFERENT", "\n".join(recorded.faults)) if recorded and recorded.faults else result


class Installed(comparison.Programs):
    kind = "clean"

    def __init__(self, given):
        today = ("bookworm", "trixie", "sid")
        super().__init__(given, [Way("deb", "tracer_*_amd64.deb", DEB, today), Way("tarball", "tracer-*-linux-x86_64.tar.gz", TARBALL, today),
                                 Way("agent alone", "tracer-*-linux-x86_64.tar.gz", AGENT, ("bullseye",))])
