#!/usr/bin/env python3
"""How long a page as large as pages get takes to stand: `tracer view` of a small program, its data replaced by 100,000 frames,
60,000 slices and 18,000 functions, 10 MB. Figures, no test: docs/internals/page.md has them."""
import json
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from browser import Browser
from recorded_programs import preloaded, tracer

FRAMES, SLICES, FUNCTIONS, LANES, BANDS, LENGTH = 120_000, 60_000, 18_000, 8, 6_500, 10**13


def tree(numbers):
    """In preorder; each frame's time and number of frames are shared among up to four below it."""
    columns = {key: [] for key in ("depth", "fn", "calls", "total", "self", "flags")}
    waiting = [(0, LENGTH, FRAMES)]
    while waiting:
        depth, time, frames = waiting.pop()
        below, shares = [], [numbers.random() for _ in range(min(frames - 1, numbers.randrange(1, 5)))] if depth < 60 else []
        for share in shares:
            below.append((depth + 1, int(time * share / sum(shares) / 1.05), max(1, int((frames - 1) * share / sum(shares)))))
        row = depth, numbers.randrange(FUNCTIONS) if depth else -1, numbers.randrange(1, 10**5), time, time - sum(b[1] for b in below), 0
        for key, value in zip(columns, row):
            columns[key].append(value)
        waiting += reversed(below)
    return {**columns, "names": ["main 1"]}


def lane(name, numbers):
    count = SLICES // LANES
    slices, bands = [], []
    for n in range(count):
        slices += [LENGTH * n // count, int(LENGTH / count * numbers.random()), numbers.randrange(FUNCTIONS), numbers.randrange(12)]
    for n in range(BANDS):
        bands += [LENGTH * n // BANDS, LENGTH // BANDS, numbers.randrange(12), round(numbers.random(), 3)]
    return {"name": name, "tid": 1, "isMain": False, "process": "", "begin": 0, "end": LENGTH, "own": 10**9, "stages": [], "calls": 10**7, "levels": 12, "deeper": 0,
            "short": 10**7, "slices": slices, "dense": bands}


def write(path, folder):
    small = os.path.join(folder, "small.html")
    tracer("view", preloaded(os.path.join(folder, "run.trace"), "true"), "-o", small)
    page = pathlib.Path(small).read_text(encoding="utf-8")
    start = page.index("<script>const DATA = ") + len("<script>const DATA = ")
    end = page.index(";</script>", start)
    data, numbers = json.loads(page[start:end]), random.Random(1)
    data["functions"] = [[f"space_{n % 97}::Class_{n % 1009}::method_{n}(std::vector<int> const&, unsigned long)", f"lib_{n % 40}.so.{n % 7}"]
                         for n in range(FUNCTIONS)]
    data["tree"], data["duration"] = tree(numbers), LENGTH
    data["threads"] = [lane(f"thread {n}", numbers) for n in range(LANES)]
    data["table"] = [[n, *(numbers.randrange(10**digits) for digits in (6, 12, 11, 10, 8, 9))] for n in range(FUNCTIONS)]
    pathlib.Path(path).write_text(page[:start] + json.dumps(data, separators=(",", ":")) + page[end:], encoding="utf-8")
    print(f"{os.path.getsize(path) / 1e6:.1f} MB, {len(data['tree']['fn']):,} frames")


def main():
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        write(page, folder)
        browser = Browser()
        stands = []
        for _ in range(10):
            browser.open(page)
            stands.append(browser.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
        print(f"stands after {min(stands):.0f} ms, median {sorted(stands)[len(stands) // 2]:.0f} ms")
        for what, action in (("search", "(s => { s.value = 'method_7'; s.dispatchEvent(new Event('input')); })(document.getElementById('search'))"),
                             ("timeline", "document.getElementById('tab-line').click()"), ("table", "document.getElementById('tab-table').click()"),
                             ("a selection of all", "dispatchEvent(new KeyboardEvent('keydown', { key: '2' })); dispatchEvent(new KeyboardEvent('keydown', { key: 'v' }))"),
                             ("callers and callees", "document.getElementById('tab-around').click()"),
                             ("flame graph", "document.getElementById('tab-flame').click()")):
            took = browser.evaluate(f"(() => {{ const start = performance.now(); {action}; return performance.now() - start; }})()")
            browser.settle()
            print(f"{what}: {took:.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
