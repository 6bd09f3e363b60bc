"""Results as the table of docs/measurements/programs.md: a row for each program, a column for each system."""
import subprocess
import time

import build


def agent_commit():
    done = subprocess.run(["git", "-C", build.ROOT, "-c", f"safe.directory={build.ROOT}", "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def cell(result):
    if result is None or result.verdict == "skipped":
        return f"not run: {result.detail}" if result and result.detail else "-"
    return " ".join(filter(None, [result.version or result.note, "same" if result.verdict == "same" else f"**{result.verdict}**"]))


def markdown(results):
    ran = [r for r in results if r.program != "all"]
    systems = {r.system: r.root for r in ran}
    names = list(dict.fromkeys(r.program for r in ran))
    by_run = {(r.system, r.program): r for r in ran}
    same = sum(r.verdict == "same" for r in ran)
    lines = [f"{same} of {sum(r.verdict != 'skipped' for r in ran)} runs gave the same result on {time.strftime('%Y-%m-%d')}, agent {agent_commit()}.", "",
             "| program | " + " | ".join(root.title for root in systems.values()) + " |",
             "|---|" + "---|" * len(systems),
             "| glibc | " + " | ".join(root.glibc for root in systems.values()) + " |"]
    lines += [f"| {name} | " + " | ".join(cell(by_run.get((system, name))) for system in systems) + " |" for name in names]
    left = [f"- {r.system}: {r.detail}" for r in results if r.program == "all"]
    return "\n".join(lines + (["", "Not run:", "", *left] if left else [])) + "\n"
