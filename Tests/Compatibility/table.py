"""Results as lines on a terminal and as the table of docs/measurements/programs.md."""
import os
import platform


def ratio(pair):
    return f"{pair[1] / pair[0]:.2f}" if pair and pair[0] > 0.001 else "-"


def count(result):
    if not result.recording:
        return "-"
    return ("≥ " if result.ring else "") + f"{result.recording.calls:,}"


def yes(value):
    return "yes" if value else "NO"


def line(result):
    if result.skipped:
        return f"{result.name:26} skipped: {result.skipped}"
    if result.broken:
        return f"{result.name:26} CANNOT SAY: {result.broken}"
    text = (f"{result.name:26} output {yes(result.same_output):3}  status {yes(result.same_status):3}  {count(result):>13} calls  "
            f"{result.recording.files if result.recording else 0:4} traces  x{ratio(result.wall)} wall  x{ratio(result.cpu)} cpu")
    if result.recording and result.recording.patched:
        text += f"  {max(result.recording.patched.values()):,} functions"
    for said in result.attached:
        text += f"\n    {said}"
    for said in result.said:
        text += f"\n    the agent said: {said}"
    for fault in result.faults:
        text += "\n    " + fault.replace("\n", "\n    ")
    if result.known and result.faults:
        text += f"\n    known: {result.known}"
    return text


def machine():
    def field(path, name, separator, otherwise):
        with open(path) as file:
            return next((line.split(separator, 1)[1].strip().strip('"') for line in file if line.startswith(name)), otherwise)

    model = field("/proc/cpuinfo", "model name", ":", platform.machine())
    system = field("/etc/os-release", "PRETTY_NAME=", "=", "Linux")
    return f"{model}, {os.cpu_count()} CPUs, {system}, Linux {platform.release()}, glibc {platform.libc_ver()[1]}"


def markdown(results):
    ran = [r for r in results if not r.skipped and not r.broken]
    good = sum(r.passed for r in ran)
    dates, commits = sorted({r.date for r in ran}), sorted({r.agent for r in ran})
    has_functions = any(r.recording and any(r.recording.patched.values()) for r in ran)
    lines = [f"{good} of {len(ran)} programs behave the same under the agent. {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, agent {', '.join(commits)}; {machine()}.", "",
             "| program | version | same output | same status | calls | processes | slowdown, wall | slowdown, CPU time |"
             + (" functions recorded |" if has_functions else ""), "|---|---|---|---|---:|---:|---:|---:|" + ("---:|" if has_functions else "")]
    for r in ran:
        lines.append(f"| {r.name} | {r.version.replace('|', '/')} | {yes(r.same_output)} | {yes(r.same_status)} | {count(r)} "
                     f"| {r.recording.files if r.recording else 0} | {ratio(r.wall)} | {ratio(r.cpu)} |"
                     + (f" {max(r.recording.patched.values(), default=0):,} |" if has_functions and r.recording else ""))
    notes = [f"- **{r.name}**: {r.known}" for r in ran if r.known] \
        + [f"- **{r.name}**, line of the agent on stderr: `{said}`" for r in ran for said in r.said]
    left = [f"- {r.name}: {(r.skipped or r.broken).splitlines()[0][:200]}" for r in results if r.skipped or r.broken]
    if notes:
        lines += ["", *notes]
    if left:
        lines += ["", "Not run:", "", *left]
    return "\n".join(lines) + "\n"
