"""`tree` and `callers` with --show-arguments: against the calls as `replay` has them, one by one, and against the trees without the option."""
import collections
import json
import os
import re

import argument_reports
import suite
from argument_reports import OURS
from harness import expect


def paths(tree):
    """Nodes by root and path: a path is functions with their arguments; [] for all nodes of a path."""
    found = collections.defaultdict(list)
    functions = [(function["name"], function.get("arguments")) for function in tree["functions"]]
    path_of = {}
    root_of = {root["node"]: root["tid"] for root in tree["roots"]}
    for n, node in enumerate(tree["nodes"]):
        if node["parent"] < 0:
            path_of[n] = (root_of[n],)
            continue
        path_of[n] = (*path_of[node["parent"]], functions[node["function"]])
        found[path_of[n]].append(node)
    return found


def replayed(test, trace):
    """Calls of our functions by path, as `replay` has them: [calls, nanoseconds]. Addresses say nothing in a sum."""
    lines = [json.loads(line) for line in test.tool("replay", "--json", trace).stdout.splitlines()]
    texts = [line for line in test.tool("replay", "--depth", "0", trace).stdout.splitlines() if re.match(r" *-?\d+\.\d{9} {2}", line)]
    expect(len(lines) == len(texts), f"{len(lines)} objects, {len(texts)} lines")
    found = collections.defaultdict(lambda: [0, 0])
    path = []
    for call, text in zip(lines, texts):
        del path[call["depth"]:]
        arguments = None
        if call["name"] in OURS:
            match = re.search(re.escape(call["name"]) + r"\((.*)\)(?: = -?\w+(?: E\w+)?)? \[[^\]]*\](?:  \(.*\))?$", text)
            expect(match, f"{text}: not {call['name']}")
            arguments = re.sub("^0x[0-9a-f]+", "…", re.sub(r"^0x[0-9a-f]+\?", "?", match[1]))
        path.append((call["name"], arguments))
        if call["name"] in OURS:
            key = (call["tid"], *path)
            found[key][0] += 1
            found[key][1] += call["duration_ns"]
    return found


def same(test, trace, *options):
    """The rows of a function's arguments add up to its row without them."""
    whole, split = test.json("tree", trace, *options), test.json("tree", trace, "--show-arguments", *options)
    expect(not any("arguments" in function for function in whole["functions"]), "arguments without --show-arguments")

    def plain(tree):
        sums = collections.defaultdict(collections.Counter)
        for path, nodes in paths(tree).items():
            key = (path[0], *(name for name, _ in path[1:]))
            for node in nodes:
                sums[key].update({name: node[name] or 0 for name in ("calls", "total_ns", "self_ns", "open", "unwound", "cut", "migrated", "part")})
                sums[key]["nodes"] += 1
                sums[key]["max_ns"] = max(sums[key]["max_ns"], node["max_ns"] or 0)
        return sums
    one, other = plain(whole), plain(split)
    expect(set(one) == set(other), f"{len(one)} paths, {len(other)} with arguments: {sorted(set(one) ^ set(other), key=str)[:3]}")
    own, theirs = collections.Counter(), collections.Counter()
    for path, sums in one.items():
        count = other[path]["nodes"]
        for name in ("calls", "open", "unwound", "cut", "migrated", "part"):
            expect(sums[name] == other[path][name], f"{path}: {name} {sums[name]}, with arguments {other[path][name]}")
        # Each node is rounded to nanoseconds by itself.
        expect(abs(sums["total_ns"] - other[path]["total_ns"]) <= 2 * count + 1 and abs(sums["max_ns"] - other[path]["max_ns"]) <= 1,
               f"{path}: {dict(sums)}, with arguments {dict(other[path])}")
        own[path[-1]] += sums["self_ns"]
        theirs[path[-1]] += other[path]["self_ns"]
    expect(own == theirs, f"self times of functions: {[(name, own[name], theirs[name]) for name in own if own[name] != theirs[name]][:3]}")
    return split


def rows_are_those_of_the_calls(rounds):
    def check(test):
        trace, _ = argument_reports.subject(test, rounds)
        wanted = replayed(test, trace)
        found = {path: nodes for path, nodes in paths(same(test, trace)).items() if path[-1][0] in OURS}
        expect(set(found) == set(wanted), f"{len(found)} paths, {len(wanted)} by replay: {sorted(set(found) ^ set(wanted), key=str)[:4]}")
        for path, (calls, length) in wanted.items():
            node, = found[path]
            expect(node["calls"] == calls and abs(node["total_ns"] - length) <= calls + 2, f"{path}: {node}, by replay {calls} calls, {length} ns")
        return f"{len(wanted)} rows"
    return check


def what_is_over_the_limit_of_a_function_shares_rows(test):
    """`serve` alone has more different arguments than are told apart."""
    trace, calls = argument_reports.subject(test, 30_000)
    texts = collections.defaultdict(set)
    for call in calls:
        texts[call["name"]].add(argument_reports.key(call["arguments"]))
    split = same(test, trace)
    kept = collections.Counter(function["name"] for function in split["functions"] if function.get("arguments") not in (None, "other arguments"))
    expect(len(texts["serve"]) > 1 << 14 and kept["serve"] == 1 << 14 and kept["walk"] == len(texts["walk"]), f"{len(texts['serve'])} different: {kept}")
    others = [nodes[0]["calls"] for path, nodes in paths(split).items() if path[-1] == ("serve", "other arguments")]
    expect(sum(others) >= len(texts["serve"]) - (1 << 14), f"{others}")
    expect("serve(other arguments)" in test.tool("tree", trace, "--show-arguments").stdout, "the text says so")


def callers_of_calls_with_arguments(test):
    trace, calls = argument_reports.subject(test, 300)
    found = test.json("callers", trace, "walk", "--show-arguments")
    for kind in ("callers", "calls"):
        tree = found[kind]
        first = collections.Counter()
        for path, nodes in paths(tree).items():
            if len(path) == 2:
                first[path[1]] += nodes[0]["calls"]
        wanted = collections.Counter(("walk", str(call["arguments"]["depth"])) for call in calls if call["name"] == "walk")
        expect(kind == "calls" or first == wanted, f"{kind}: {first}, not {wanted}")
    text = test.tool("callers", trace, "serve", "--show-arguments", "--min-share", "0").stdout
    expect('serve("/etc/passwd", ' in text and "around(1)" in text and "around(2)" in text, text[:1000])
    test.tool("callers", trace, "serve", "--show-arguments", "--sites", status=2)


def text_has_a_line_for_each(test):
    test.write("file", "text")
    test.tool("record", "--quiet", "--no-states", "-o", test.path("a.trace"), "--", "cat", test.path("file"), test.path("file"), "/dev/null")
    text = test.tool("tree", test.path("a.trace"), "--show-arguments", "--min-share", "0").stdout
    line, = [line for line in text.splitlines() if f'open("{test.path("file")}", O_RDONLY)' in line or f'open64("{test.path("file")}", O_RDONLY)' in line]
    expect(re.search(r" 2  .*open", line), line)
    expect(re.search(r"\bread\(\d+, …, \d+\)", text) and re.search(r"\bstrrchr \[|\bsetlocale \[|\bexit \[|\bgetpagesize \[|\[libc", text), text)


def windows_and_states_agree_too(test):
    """In a window of time calls that begin before it are there without their arguments, since these are not read."""
    test.tool("record", "--quiet", "-o", test.path("b.trace"), "--files", "--", "/usr/bin/python3", "-I", "-S", "-c",
              "import os\nfor n in range(300):\n with open('/proc/self/stat') as f: f.read(n)\n os.path.exists('/nonexistent/' + str(n % 7))")
    for options in ([], ["--time", "running"], ["--time", "waiting"], ["--by", "process"]):
        same(test, test.path("b.trace"), *options)
    split = same(test, test.path("b.trace"), "--from", "30%", "--to", "80%")
    expect(any(function.get("arguments", "").startswith('"/proc/self/stat"') or "/proc/self/stat" in (function.get("arguments") or "") for function in split["functions"]),
           "calls in the window have arguments")


def a_ring_agrees_too(test):
    """Chunks lie in its file in another order than that of time, and the beginnings of calls may be gone."""
    test.tool("record", "--quiet", "--no-states", "--mode", "ring", "--max-size", "256K", "-o", test.path("c.trace"), "--files", "--", "/usr/bin/python3", "-I", "-S", "-c",
              "for n in range(20000):\n with open('/proc/self/stat') as f: f.read(n % 50)")
    expect(test.json("info", test.path("c.trace"))["mode"] == "ring", "no ring")
    split = same(test, test.path("c.trace"))
    expect(any("/proc/self/stat" in (function.get("arguments") or "") for function in split["functions"]), "no arguments")


def processes_of_a_run_share_rows(test):
    test.write("file", "text")
    test.tool("record", "--quiet", "--no-states", "-o", test.path("run"), "--", "sh", "-c", f"cat {test.path('file')}; cat {test.path('file')}; exit 0")
    tree = test.json("tree", test.path("run"), "--by", "run", "--show-arguments")
    rows = [(path[-1], nodes[0]["calls"]) for path, nodes in paths(tree).items() if path[-1][0].startswith("open") and test.path("file") in (path[-1][1] or "")]
    expect(len(rows) == 1 and rows[0][1] == 2, f"{rows}")


def a_trace_without_arguments_has_the_usual_tree(test):
    test.tool("record", "--quiet", "--no-states", "--no-files", "-o", test.path("a.trace"), "--", "cat", os.devnull)
    done = test.tool("tree", test.path("a.trace"), "--show-arguments")
    expect(done.stdout == test.tool("tree", test.path("a.trace")).stdout, "another tree")
    expect("has no arguments: record with tracer record --arguments" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


MODES = {"slots": "*"}


def tests():
    found = [suite.Test(f"argument_trees.rows.{rounds}", rows_are_those_of_the_calls(rounds)) for rounds in (100, 12_000)]
    return found + suite.tests_of(__name__)
