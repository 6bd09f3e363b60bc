#!/usr/bin/env python3
"""What the tool makes of a real trace: its merged tree against one that tracefile.py's decoder makes."""
import json
import os
import subprocess
import sys

import harness
import tracefile
from harness import Failed

LIBRARY = """
void leaf(long n) { for (volatile long i = 0; i < n; i++) {} }
void inner(int n) { if (n > 0) inner(n - 1); else leaf(5); }
void outer(int n) { for (int i = 0; i < n; i++) { inner(i % 4); leaf(1); } }
"""
THREADS = """
#include <pthread.h>
void outer(int);
static void *run(void *n) { outer((int)(long)n); return 0; }
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, (void *)(500 + 3000 * i));
    outer(2000);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"""

class Analysis:
    def __init__(self, name, source, check):
        self.name, self.source, self.check = "analysis." + name, source, check

    def run(self, settings):
        if settings.bare_only:
            return
        place = harness.Place("analysis", settings.keep)
        try:
            where = place.fresh()
            for name, text in (("library.c", LIBRARY), ("program.c", self.source)):
                with open(os.path.join(where, name), "w", encoding="utf-8") as file:
                    file.write(text)
            # Calls within the library go through its PLT too: they are what is recorded.
            for command in ("gcc -O0 -shared -fPIC -o libanalysed.so library.c", "gcc -O1 -o program program.c -L. -lanalysed -lpthread -Wl,-rpath,$PWD"):
                subprocess.run(["sh", "-c", command], cwd=where, check=True)
            environment = harness.traced_environment(settings, harness.passed_on(os.environ), place)
            self.check(settings, place, environment)
        finally:
            place.done()

    @staticmethod
    def record(place, environment):
        for name in os.listdir(place.traces):
            os.unlink(os.path.join(place.traces, name))
        run = harness.execute([os.path.join(place.path, "program")], place.path, environment, timeout=120)
        if run.status != 0:
            raise Failed(f"ended with {harness.describe(run.status)}: {run.stderr[-300:]!r}")
        name, = os.listdir(place.traces)
        return os.path.join(place.traces, name)


def tool(settings, *arguments):
    run = subprocess.run([settings.tool, *arguments], capture_output=True, timeout=120, check=False)
    if run.returncode != 0:
        raise Failed(f"tracer {' '.join(arguments[:1])}: status {run.returncode}: {run.stderr[-300:]!r}")
    return json.loads(run.stdout)


def tree_equals_the_decoders(settings, place, environment):
    path = Analysis.record(place, environment)
    tree = tool(settings, "tree", path, "--json")
    found = {}
    names = [(f["symbol"], f["module"]) for f in tree["functions"]]
    paths = []
    root = {r["node"]: r["tid"] for r in tree["roots"]}
    for index, node in enumerate(tree["nodes"]):
        if node["parent"] < 0:
            paths.append((root[index],))
            continue
        paths.append(paths[node["parent"]] + (names[node["function"]],))
        found[paths[-1]] = [node["calls"], node["open"], node["unwound"], node["total_ns"], node["self_ns"]]
    expected = {}
    trace = tracefile.read_all(place.traces)[0]
    scale = tool(settings, "info", path, "--json")["ticks_per_second"] / 1e9
    end = trace.header["last_ticks"]
    for thread in trace.trees().threads.values():
        stack = [((thread.tid,), node) for node in thread.roots]
        while stack:
            above, node = stack.pop()
            function = trace.functions[node.function]
            here = above + ((function.name, os.path.basename(function.module.path) if function.module else "?"),)
            sums = expected.setdefault(here, [0, 0, 0, 0.0, 0.0])
            sums[0] += 1
            if node.exit is None or node.mark == "open":
                sums[1] += 1
            if node.mark == "unwound":
                sums[2] += 1
            length = 0 if node.mark == "tail" else (node.exit or end) - node.enter
            sums[3] += length / scale
            sums[4] += length / scale
            if len(above) > 1:
                expected[above][4] -= length / scale
            stack += [(here, child) for child in node.children]
    if set(found) != set(expected):
        raise Failed(f"other paths: only in the tree {sorted(map(str, set(found) - set(expected)))[:5]}, only decoded {sorted(map(str, set(expected) - set(found)))[:5]}")
    for here, sums in expected.items():
        if found[here][0] != sums[0]:
            raise Failed(f"{here}: {found[here][0]} calls, decoded {sums[0]}")
        # What is open at the end ends where each reader says that the trace does.
        if sums[1] or found[here][1] or found[here][2] != sums[2]:
            continue
        for name, mine, other in (("total", found[here][3], sums[3]), ("self", found[here][4], sums[4])):
            if abs(mine - other) > 2 + 1e-6 * abs(other):
                raise Failed(f"{here}: {name} {mine} ns, decoded {other:.1f} ns")
    if len(tree["roots"]) != 4 or not any(len(here) > 3 for here in expected):
        raise Failed(f"{len(tree['roots'])} threads, or too few levels: the program did not do what it should")


def tests():
    return [Analysis("tree_equals_the_decoders", THREADS, tree_equals_the_decoders)]


if __name__ == "__main__":
    import run
    sys.exit(run.main(("analysis",)))
