#!/usr/bin/env python3
"""The tests that a change can break: scripts/test --changed asks for them.

    Tests/changes.py COMMIT     prints the files and folders of tests, one a line, for what differs from the commit

TABLE says it, by the longest path that a changed file begins with. Tests/Changes/test_changes.py holds it complete.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Cheap, and they look at every source.
ALWAYS = ["Tests/Scripts/test_scripts.py::test_sources_are_formatted", "Tests/Messages", "Tests/Arrows", "Tests/Comments"]
SETS = {
    "AGENT": ["Tests/EndToEnd", "Tests/BuildTests", "Tests/Distributions", "Tests/PlanTests", "Tests/CoverageTests", "Tests/Scripts"],
    "READER": ["Tests/TraceAnalysisTests", "Tests/MutatedTraceTests", "Tests/EndToEnd/analysis.py", "Tests/EndToEnd/decoder.py", "Tests/EndToEnd/runs.py", "Tests/EndToEnd/startup.py",
               "Tests/EndToEnd/samples.py", "Tests/EndToEnd/states.py", "Tests/EndToEnd/waits.py", "Tests/EndToEnd/stalls.py", "Tests/EndToEnd/crashed.py", "Tests/EndToEnd/top.py", "Tests/EndToEnd/files.py", "Tests/EndToEnd/strace.py", "Tests/EndToEnd/call_sites.py", "Tests/EndToEnd/argument_values.py", "Tests/EndToEnd/debug_prototypes.py", "Tests/EndToEnd/text_values.py", "Tests/EndToEnd/member_values.py", "Tests/EndToEnd/structure_values.py", "Tests/EndToEnd/argument_reports.py", "Tests/EndToEnd/argument_trees.py", "Tests/EndToEnd/function_names.py", "Tests/EndToEnd/conditions.py", "Tests/EndToEnd/ends.py", "Tests/EndToEnd/contradictions.py", "Tests/EndToEnd/large.py", "Tests/ExportTests", "Tests/JSONTests", "Tests/ViewTests", "Tests/Examples",
               "Tests/Scripts"],
    "RECORDER": ["Tests/RecorderTests", "Tests/RecordTests", "Tests/EndToEnd/handover.py", "Tests/EndToEnd/runs.py", "Tests/EndToEnd/startup.py",
                 "Tests/EndToEnd/samples.py", "Tests/EndToEnd/waits.py", "Tests/EndToEnd/ends.py", "Tests/EndToEnd/unrecorded.py", "Tests/EndToEnd/functions.py", "Tests/EndToEnd/environment.py", "Tests/EndToEnd/snapshots.py", "Tests/EndToEnd/controlled.py", "Tests/EndToEnd/chosen.py", "Tests/EndToEnd/attached.py", "Tests/EndToEnd/attach_storm.py", "Tests/JSONTests",
                 "Tests/Examples"],
    "LAB": ["Tests/LaunchLabTests", "Tests/LaunchTests", "Tests/EndToEnd/environment.py", "Tests/FleetTests", "Tests/ViewTests/test_history.py", "Tests/JSONTests"],
    "PLAN": ["Tests/PlanTests", "Tests/EndToEnd/functions.py", "Tests/EndToEnd/short_functions.py", "Tests/EndToEnd/neighbours.py", "Tests/EndToEnd/counts.py", "Tests/CoverageTests", "Tests/Scripts"],
    "USE": ["Tests/FunctionUseTests", "Tests/CoverageTests", "Tests/OrderTests"],
    "UNWINDING": ["Tests/UnwindingTests", "Tests/RecordTests", "Tests/EndToEnd/samples.py", "Tests/EndToEnd/waits.py"],
    "PAGE": ["Tests/PageTests", "Tests/TracePageTests", "Tests/ViewTests", "Tests/Scripts"],
    "DOCUMENTS": ["Tests/Examples"],
    "EVERYTHING": ["Tests"],
}
TABLE = """
    CSupport/                        AGENT
    Sources/Agent/                   AGENT
    Sources/Agent/LoaderAudit/       Tests/EndToEnd/startup.py Tests/EndToEnd/agent_binary.py
    Sources/Binaries/CDemangle/      READER
    Sources/Binaries/CElfutils/      EVERYTHING
    Sources/Binaries/CZydis/         PLAN UNWINDING
    Sources/Binaries/ELF/            READER RECORDER PLAN USE UNWINDING Tests/SymbolsTests
    Sources/Binaries/EntryPlan/      PLAN USE
    Sources/Binaries/Symbols/        READER PLAN USE Tests/SymbolsTests
    Sources/Binaries/Unwinding/      UNWINDING RECORDER
    Sources/Format/                  EVERYTHING
    Sources/Lab/                     LAB
    Sources/Lab/CCoveragePage/       USE
    Sources/Lab/FunctionUse/         USE
    Sources/Program/CTracerAPI/      AGENT Tests/TracerAPITests
    Sources/Program/TracerAPI/       Tests/TracerAPITests Tests/EndToEnd/startup.py
    Sources/Reader/CDeflate/         READER
    Sources/Reader/CPageFiles/       PAGE
    Sources/Reader/CPrototypes/      READER Tests/EndToEnd/argument_values.py Tests/EndToEnd/strace.py
    Sources/Reader/Presentation/     READER LAB Tests/PresentationTests Tests/PlanTests USE PAGE
    Sources/Reader/TraceAnalysis/    READER LAB USE
    Sources/Reader/TracePage/        PAGE
    Sources/Recorder/                RECORDER LAB
    Sources/tracer/                  READER RECORDER LAB PLAN USE PAGE
    Plugins/                     Tests/Packages
    Package.swift                EVERYTHING
    Benchmarks/                  Tests/Scripts Tests/Examples
    Fuzz/                        Tests/Scripts
    Fuzz/reading/                Tests/MutatedTraceTests
    Fuzz/corpus/reader/          Tests/MutatedTraceTests
    Containerfile                Tests/Packages
    docs/                        DOCUMENTS
    docs/schemas/                Tests/JSONTests
    docs/guide/fleet.md          Tests/FleetTests DOCUMENTS
    docs/reference/settings.md   Tests/RecorderTests Tests/RecordTests DOCUMENTS
    README.md                    DOCUMENTS
    CHANGELOG.md                 DOCUMENTS Tests/Packages
    CONTRIBUTING.md              DOCUMENTS
    SECURITY.md                  DOCUMENTS
    scripts/                     Tests/Scripts Tests/Examples
    scripts/build                EVERYTHING
    scripts/test                 EVERYTHING
    scripts/setup                EVERYTHING
    scripts/arrows               Tests/Arrows
    scripts/comments             Tests/Comments
    scripts/compat               Tests/External
    scripts/completions/         Tests/Packages
    scripts/cross-build          Tests/EndToEnd Tests/Distributions
    scripts/distributions        Tests/Distributions
    scripts/examples             Tests/Examples
    scripts/install              Tests/Packages
    scripts/messages             Tests/Messages
    scripts/manual               Tests/Packages
    scripts/package              Tests/Packages Tests/Distributions
    scripts/planted              Tests/Planted
    scripts/schemas              Tests/JSONTests
    Tests/conftest.py            EVERYTHING
    Tests/once.py                EVERYTHING
    Tests/changes.py             Tests/Changes
    Tests/swift_tests.py         EVERYTHING
    Tests/times.json             Tests/Changes
    Tests/recorded_programs.py   Tests/CoverageTests Tests/ExportTests Tests/FleetTests Tests/JSONTests Tests/LaunchTests Tests/OrderTests Tests/PlanTests Tests/RecordTests Tests/ViewTests
    Tests/launch_history.py      Tests/FleetTests Tests/ViewTests/test_history.py
    Tests/script_modules.py      Tests/Arrows Tests/Comments Tests/Examples Tests/JSONTests Tests/Messages Tests/Planted
    Tests/kernel_account.py      Tests/RecordTests Tests/OrderTests Tests/EndToEnd
    Tests/CUnwindingTests/       Tests/UnwindingTests Tests/RecorderTests
    Tests/unwind-program/        Tests/UnwindingTests
    Tests/UnwindingTesting/      Tests/UnwindingTests
    Tests/TraceTesting/          Tests/TraceAnalysisTests Tests/TracePageTests
    Tests/generate-trace/        Tests/ViewTests Tests/ExportTests
    Tests/cut-trace/             Tests/EndToEnd/durability.py
    Tests/Soak/                  Tests/Scripts Tests/EndToEnd/costs.py
    Tests/Compatibility/         Tests/External
    .ci/                         Tests/Changes
    .                            Tests/Scripts/test_scripts.py::test_sources_are_formatted
    pytest.ini                   EVERYTHING
    ruff.toml                    Tests/Scripts/test_scripts.py::test_sources_are_formatted
"""
ROWS = {row.split()[0]: row.split()[1:] for row in TABLE.split("\n") if row.strip()}


def of(path):
    """Returns the tests of a file; a test tests itself, and another file in a folder of tests belongs to those."""
    name = os.path.basename(path)
    if re.match(r"Tests/\w+/test_\w+\.py$|Tests/EndToEnd/subjects/", path):
        return [path] if not name.startswith("part_") and not name.endswith(".h") else ["Tests/EndToEnd/subjects"]
    row = max((row for row in ROWS if path.startswith(row)), key=len, default=None)
    if row is None or row == ".":
        folder = re.match(r"Tests/\w+", path)
        if folder and os.path.isdir(os.path.join(ROOT, folder[0])):
            return [folder[0]]
    return [target for word in ROWS.get(row, []) for target in SETS.get(word, [word])]


def changed(commit):
    """Files that differ from the commit, and those that git does not know yet."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(set(git("diff", "--name-only", commit) + git("ls-files", "--others", "--exclude-standard")))


def tests(paths):
    """Files and folders of tests, none of them within another; a file that is gone tests nothing."""
    if not paths:
        return []
    wanted = {target for path in paths for target in of(path)} | set(ALWAYS)
    wanted = {target for target in wanted if os.path.exists(os.path.join(ROOT, target.partition("::")[0]))}
    return sorted(target for target in wanted if not any(target != other and target.startswith((other + "/", other + "::")) for other in wanted))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(tests(changed(sys.argv[1]))))
