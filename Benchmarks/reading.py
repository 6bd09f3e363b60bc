"""`scripts/bench --analysis`: how fast traces are read and exported.

A trace of generate-trace is read by each command in turn, several rounds, all rows taking turns; the median counts, in
calls a second of elapsed time. Output goes to /dev/null, so that the disk is not what is measured; the size of an
export is counted through a pipe once.
"""
import os
import statistics
import subprocess
import tempfile
import time

MEGABYTES = 256  # a trace of 32 million leaf calls
# name, what is run on the trace, the least million calls a second, the most bytes a call
ROWS = [
    ("report", ["report"], 30, None),
    ("waits", ["waits"], 10, None),  # at most three times as long as report
    ("threads", ["threads"], 10, None),
    ("tree", ["tree"], 30, None),
    ("diff", ["diff", "TRACE"], 30, None),  # with itself: each side counts
    ("view", ["view", "-o", "-"], 3.4, None),  # ten million calls in three seconds
    ("folded", ["export", "--format", "folded", "-o", "-"], 30, None),
    ("pprof", ["export", "--format", "pprof", "-o", "-"], None, None),
    ("callgrind", ["export", "--format", "callgrind", "-o", "-"], None, None),
    ("perfetto", ["export", "--format", "perfetto", "-o", "-"], 8, 20),
    ("chrome", ["export", "--format", "chrome", "-o", "-"], None, None),
    ("speedscope", ["export", "--format", "speedscope", "-o", "-"], None, None),
    ("csv", ["export", "--format", "csv", "-o", "-"], None, None),
]
NAMES = [row[0] for row in ROWS]


def measure(build, directory, quick, count, only):
    """[(row, million calls a second, bytes a call or None)], calls in the trace."""
    tool, generate = os.path.join(build, "tracer"), os.path.join(build, "generate-trace")
    rows = [row for row in ROWS if not only or row[0] in only]
    with tempfile.TemporaryDirectory(prefix="bench-analysis-", dir=directory) as scratch:
        trace = os.path.join(scratch, "synthetic.trace")
        made = subprocess.run([generate, trace, str(MEGABYTES // (16 if quick else 1)), "2", "0"], check=True, capture_output=True, text=True)
        calls = int(made.stdout.split()[0])
        times = {row[0]: [] for row in rows}
        for _ in range(count or (1 if quick else 5)):
            for name, arguments, _, _ in rows:
                before = time.monotonic()
                words = [trace if word == "TRACE" else word for word in arguments[1:]]
                subprocess.run([tool, arguments[0], trace, *words], check=True, stdout=subprocess.DEVNULL)
                times[name].append((time.monotonic() - before) / (1 + words.count(trace)))
        result = []
        for row in rows:
            size = None
            if row[3]:
                pipe = subprocess.Popen([tool, row[1][0], trace, *row[1][1:]], stdout=subprocess.PIPE)
                size = sum(len(part) for part in iter(lambda: pipe.stdout.read(1 << 20), b"")) / calls
                pipe.wait()
            result.append((row, calls / statistics.median(times[row[0]]) / 1e6, size))
        return result, calls


def main(build, directory, quick, count, only):
    load = os.getloadavg()[0]
    result, calls = measure(build, directory, quick, count, only)
    over = 0
    print("| | million calls/s | at least | bytes/call | at most | |\n|---|---:|---:|---:|---:|---|")
    for (name, _, least, most), speed, size in result:
        missed = (least is not None and speed < least) or (most is not None and size > most)
        over += missed
        word = "" if least is None else "missed" if missed else "holds"
        print(f"| {name} | {speed:.1f} | {least or ''} | {'' if size is None else f'{size:.1f}'} | {most or ''} | {word} |")
    print(f"\n{calls / 1e6:.1f} million leaf calls of two threads; {os.cpu_count()} CPUs; load before {load:.1f}")
    return 1 if over else 0
