"""Expected trees: what they look like, and whether a trace agrees.

    # a comment                     to the end of the line
    calls parse 40                  40 calls of parse in all processes together; also 40.. (at least), 1..40
    unwound parse 3                 3 of them were left by a longjmp or an exception; likewise `open`, `tail`
    processes 2                     number of trace files
    depth 100001                    deepest nesting seen, agent's view of all slots; also with ..
    initializer name                the first process's initializers of the subject's own modules are these, in this order
    initializer name in outer       … during another; (open): it never came back, (left): by an exception or longjmp. The
                                    name may end in *; what the compiler's start-up files bring is omitted
    phases main exit no-main        the first process has these phases (- for a blank), and not those after no-;
                                    tsc:loader is expected where that clock is used
    ready output write              what made the first process ready, by the call of what (-: none); `ready none`
    load libx.so by prog in ctor    a dlopen of the first process that brought modules, in this order; `in` an initializer
    once pthread_once init          a once-function was given this to run
    hide destroy                    omit this function from the trees
    only outer inner                the trees show these functions and nothing else
    … @timely  … @late              a line of any kind that holds where the agent came before all constructors, or where the first
                                    process's trace says that it came after some (libpthread's are first before glibc 2.34)
    process                         what follows holds for the first process (then the second, …; `process x3`)
      state finished                recording, finished or stopped
      thread main                   tree of the first thread; `thread` for any other, `thread x1000` for many alike
        outer                       a call, its callees indented below
          inner x1000               1,000 times in a row, each time the same
          …                         anything here
        recurse ^100000             100,000 nested calls of itself
        thrower (unwound)           left without returning; also (open), (tail), (inherited)

A tree shows the functions of the subject's own modules and those it names; other calls (libc's, mostly) are taken
out and their callees move up. Threads without a shown call are ignored. The order of threads is free.
"""
import fnmatch
import functools
import os
import re
import subprocess
from dataclasses import dataclass, field

ANYTHING = "…"
CLOCKS = {"tsc": 1}


@dataclass
class Pattern:
    name: str
    low: int = 1
    high: "int | None" = 1
    nest: int = 1
    marks: frozenset = frozenset()
    children: list = field(default_factory=list)


@dataclass
class ExpectedThread:
    main: bool
    count: "tuple[int, int | None]"
    children: list = field(default_factory=list)


@dataclass
class ExpectedProcess:
    count: int = 1
    state: "str | None" = None
    threads: list = field(default_factory=list)


@dataclass
class Golden:
    assertions: list = field(default_factory=list)  # (verb, name or None, low, high)
    processes: list = field(default_factory=list)
    initializers: list = field(default_factory=list)  # (name, outer or None, mark)
    phases: list = field(default_factory=list)
    onces: list = field(default_factory=list)  # (function, code)
    ready: list = field(default_factory=list)  # (reason, function)
    loads: list = field(default_factory=list)  # (file, caller, initializer)
    hidden: set = field(default_factory=set)
    only: set = field(default_factory=set)
    named: set = field(default_factory=set)
    late: "Golden | None" = None  # what holds instead where the agent came late


def bounds(text):
    if ".." in text:
        low, high = text.split("..")
        return int(low or 0), int(high) if high else None
    return int(text), int(text)


def within(value, low, high):
    return low <= value and (high is None or value <= high)


WHEN = re.compile(r"\s+@(timely|late)$")
LINE = re.compile(r"^(?P<name>\S+?)(?:\s+x(?P<count>[\d.]+|\*))?(?:\s+\^(?P<nest>\d+))?(?P<marks>(?:\s+\(\w+\))*)$")


def parse(text, when="timely"):
    golden = Golden()
    if when == "timely" and re.search(r"@(timely|late)\b", text):
        golden.late = parse(text, "late")
    process, levels = None, []  # levels: (indentation, list that deeper lines go to)
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].rstrip()
        condition = WHEN.search(line)
        line = WHEN.sub("", line)
        if not line.strip() or condition and condition[1] != when:
            continue
        indent, words = len(line) - len(line.lstrip()), line.split()
        verb = words[0]
        in_tree = bool(levels) and indent > levels[0][0]
        if not in_tree:
            levels = []
            if verb in ("calls", "unwound", "open", "tail") and len(words) == 3:
                golden.assertions.append((verb, words[1], *bounds(words[2])))
            elif verb in ("processes", "depth") and len(words) == 2:
                golden.assertions.append((verb, None, *bounds(words[1])))
            elif verb == "initializer":
                mark = next((w.strip("()") for w in words if w.startswith("(")), "")
                golden.initializers.append((words[1], words[3] if words[2:3] == ["in"] else None, mark))
            elif verb == "phases":
                golden.phases += words[1:]
            elif verb == "ready":
                golden.ready.append(tuple(words[1:]))
            elif verb == "load":
                golden.loads.append((words[1], words[3], words[5] if len(words) > 5 else None))
            elif verb == "once":
                golden.onces.append((words[1], words[2]))
            elif verb == "hide":
                golden.hidden.update(words[1:])
            elif verb == "only":
                golden.only.update(words[1:])
            elif verb == "process":
                process = ExpectedProcess(int(words[1][1:]) if len(words) > 1 else 1)
                golden.processes.append(process)
            elif verb == "state":
                process.state = words[1]
            elif verb == "thread":
                if process is None:
                    process = ExpectedProcess()
                    golden.processes.append(process)
                count = [w for w in words[1:] if w.startswith("x")]
                thread = ExpectedThread("main" in words, bounds(count[0][1:]) if count else (1, 1))
                process.threads.append(thread)
                levels = [(indent, thread.children)]
            else:
                raise ValueError(f"line {number}: {raw!r}")
            continue
        while indent <= levels[-1][0]:
            levels.pop()
        if verb == ANYTHING:
            levels[-1][1].append(ANYTHING)
            continue
        match = LINE.match(line.strip())
        if not match:
            raise ValueError(f"line {number}: {raw!r}")
        count = match["count"]
        low, high = (1, None) if count == "*" else bounds(count) if count else (1, 1)
        pattern = Pattern(match["name"], low, high, int(match["nest"] or 1),
                          frozenset(re.findall(r"\((\w+)\)", match["marks"])))
        golden.named.add(pattern.name)
        levels[-1][1].append(pattern)
        levels.append((indent, pattern.children))
    return golden


class Forest:
    """Trees with equal neighbours counted and self-recursion counted, each distinct subtree kept once."""

    def __init__(self, shown):
        self.shown = shown
        self.table, self.nodes = {}, []

    def intern(self, name, marks, nest, children):
        if nest == 1 and len(children) == 1 and children[0][1] == 1:
            child_name, child_marks, child_nest, grandchildren = self.nodes[children[0][0]]
            if child_name == name and child_marks == marks:
                nest, children = child_nest + 1, grandchildren
        key = (name, marks, nest, children)
        if key not in self.table:
            self.table[key] = len(self.nodes)
            self.nodes.append(key)
        return self.table[key]

    def fold(self, roots):
        """Tuple of (subtree, count). Iterative: a recursion may be 100,000 deep."""
        result = []
        work = [(iter(roots), result, None)]
        while work:
            iterator, out, node = work[-1]
            child = next(iterator, None)
            if child is not None:
                work.append((iter(child.children), [] if self.shown(child) else out, child))
                continue
            work.pop()
            if node is None or not self.shown(node):
                continue
            marks = frozenset(m for m in (node.mark, "inherited" if node.inherited else "") if m)
            subtree = self.intern(node.name, marks, 1, tuple(map(tuple, out)))
            target = work[-1][1]
            if target and target[-1][0] == subtree:
                target[-1][1] += 1
            else:
                target.append([subtree, 1])
        return tuple(map(tuple, result))

    def matches(self, patterns, runs, i=0, j=0, used=0):
        """patterns[i:] against runs[j:], of which `used` of runs[j] are already taken."""
        if j < len(runs) and used == runs[j][1]:
            j, used = j + 1, 0
        if i == len(patterns):
            return j == len(runs)
        pattern = patterns[i]
        if pattern == ANYTHING:
            return any(self.matches(patterns, runs, i + 1, k, used if k == j else 0) for k in range(j, len(runs) + 1)) \
                or (j < len(runs) and any(self.matches(patterns, runs, i + 1, j, u) for u in range(used + 1, min(runs[j][1], used + 8))))
        taken = 0
        while True:
            if pattern.low <= taken and (pattern.high is None or taken <= pattern.high):
                more = j < len(runs) and self.agrees(pattern, runs[j][0]) and (pattern.high is None or taken < pattern.high)
                if (not more or pattern.low != pattern.high) and self.matches(patterns, runs, i + 1, j, used):
                    return True
            if j >= len(runs) or not self.agrees(pattern, runs[j][0]):
                return False
            step = runs[j][1] - used
            if pattern.high is not None:
                step = min(step, pattern.high - taken)
                if step <= 0:
                    return False
            taken, used = taken + step, used + step
            if used == runs[j][1]:
                j, used = j + 1, 0

    def agrees(self, pattern, subtree):
        name, marks, nest, children = self.nodes[subtree]
        return (name == pattern.name and marks == pattern.marks and nest == pattern.nest
                and self.matches(pattern.children, children))

    def show(self, runs, indent=4, budget=60):
        lines = []
        work = [(subtree, count, indent) for subtree, count in reversed(runs)]
        while work and len(lines) < budget:
            subtree, count, depth = work.pop()
            name, marks, nest, children = self.nodes[subtree]
            lines.append(" " * depth + name + (f" x{count}" if count > 1 else "") + (f" ^{nest}" if nest > 1 else "")
                         + "".join(f" ({m})" for m in sorted(marks)))
            work += [(s, c, depth + 2) for s, c in reversed(children)]
        return "\n".join(lines + ["    [more]"] * bool(work))


def fold_patterns(patterns):
    """`f` with the only child `f` is written `f ^2` by Forest; accept both spellings."""
    for pattern in patterns:
        if pattern == ANYTHING:
            continue
        fold_patterns(pattern.children)
        if len(pattern.children) == 1 and pattern.children[0] != ANYTHING:
            child = pattern.children[0]
            if (child.name, child.marks, child.low, child.high) == (pattern.name, pattern.marks, 1, 1):
                pattern.nest += child.nest
                pattern.children = child.children


def compare(golden, traces):
    """List of differences, empty when the traces are as expected."""
    if golden.late and traces and traces[0].header["flags"] & LATE:
        golden = golden.late
    faults = []
    for verb, name, low, high in golden.assertions:
        if verb == "processes":
            value = len(traces)
        elif verb == "depth":
            value = max((t.maximum_depth_seen for t in traces), default=0)
        else:
            value = sum(t.count(name, None if verb == "calls" else getattr(t, verb)) for t in traces)
        if not within(value, low, high):
            expected = low if low == high else f"{low}..{'' if high is None else high}"
            faults.append(f"{verb} {name or ''}: expected {expected}, recorded {value}")
    if traces:
        faults += compare_start(golden, traces[0])
    expected_processes = [p for p in golden.processes for _ in range(p.count)]
    if expected_processes and len(expected_processes) != len(traces):
        faults.append(f"expected {len(expected_processes)} processes, found {len(traces)}: "
                      + ", ".join(t.program for t in traces))

    def shown(node):
        if golden.only:
            return node.name in golden.only
        return (node.own or node.name in golden.named) and node.name not in golden.hidden

    for number, (process, trace) in enumerate(zip(expected_processes, traces), 1):
        where = f"process {number}" if len(traces) > 1 else "process"
        if process.state and trace.state != process.state:
            faults.append(f"{where}: state {trace.state}, expected {process.state}")
        if not process.threads:
            continue
        forest = Forest(shown)
        actual = []
        for thread in trace.threads.values():
            runs = forest.fold(thread.roots)
            if runs:
                actual.append((thread.tid == trace.header["pid"], runs))
        left = list(actual)
        for expected in process.threads:
            fold_patterns(expected.children)
            low, high = expected.count
            found = [a for a in left if a[0] == expected.main and forest.matches(expected.children, a[1])]
            if high is not None:
                found = found[:high]
            for a in found:
                left.remove(a)
            if len(found) < low and not (expected.main and not expected.children):
                faults.append(f"{where}: {len(found)} threads match, {low} expected:\n"
                              + "\n".join(show_patterns(expected.children)))
        for main, runs in left[:3]:
            faults.append(f"{where}: recorded{' in main' if main else ''}, and not expected:\n{forest.show(runs)}")
    return faults


CRT = {"_init", "_fini", "frame_dummy", "__do_global_dtors_aux", "register_tm_clones", "init", "fini"}


@functools.cache
def symbols(path):
    """Address -> name of a file's functions."""
    lines = subprocess.run(["nm", path], capture_output=True, text=True).stdout.splitlines()
    return {int(words[0], 16): words[2] for words in map(str.split, lines) if len(words) == 3 and words[1] in "tTwW"}


def name_of(trace, address, owner=None):
    """`owner`: its module, where that is known; where one was unloaded, another may be now."""
    for module in [owner] if owner else trace.modules.values():
        if module.low <= address < module.high and os.path.exists(module.path):
            return symbols(module.path).get(address - module.bias, "?")
    return "?"


def nanoseconds_of_tick(trace):
    first, last = trace.header["first_ticks"], trace.header["last_ticks"]
    return (trace.header["last_monotonic_ns"] - trace.header["first_monotonic_ns"]) / (last - first)


def initializer_times(trace, key):
    """Returns the total time (`ns:name`) or CPU time (`cpu:name`) of all initializers of that name in the trace, in nanoseconds."""
    kind, _, name = key.partition(":")
    scale = nanoseconds_of_tick(trace)
    total = 0
    for i in trace.initializers.values():
        if i.end and i.module and trace.own(i.module.path) and name_of(trace, i.address, i.module) == name:
            total += i.end.cpu_ns - i.begin.cpu_ns if kind == "cpu" else (i.end.ticks - i.begin.ticks) * scale
    return total


LATE = 1 # flag of the header: another library came before the agent, as libpthread does before glibc 2.34


def is_same(initializer, expected):
    return fnmatch.fnmatchcase(initializer[0], expected[0]) and initializer[1:] == expected[1:]


def compare_start(golden, trace):
    faults = []
    names = {i.number: name_of(trace, i.address, i.module) for i in trace.initializers.values()}
    if golden.initializers:
        actual = [(names[i.number], names.get(i.parent), "open" if i.end is None else "left" if i.left else "")
                  for i in trace.initializers.values() if i.module and trace.own(i.module.path) and names[i.number] not in CRT]
        expected = iter(golden.initializers)
        if trace.header["flags"] & LATE: # initializers that ran before the agent are missing
            same = all(any(is_same(a, e) for e in expected) for a in actual)
        else:
            same = len(actual) == len(golden.initializers) and all(is_same(a, e) for a, e in zip(actual, expected))
        if not same:
            faults.append("initializers, recorded and not as expected:\n" + "\n".join(
                f"    {name}" + (f" in {outer}" if outer else "") + (f" ({mark})" if mark else "") for name, outer, mark in actual))
    for phase in golden.phases:
        clock, _, phase = phase.rpartition(":")
        if clock and trace.header["clock"] != CLOCKS[clock]:
            continue
        wanted, name = not phase.startswith("no-"), phase.removeprefix("no-").replace("-", " ")
        if (name in trace.phases) != wanted:
            faults.append(f"phase {name}: {'missing' if wanted else 'not expected'}")
    if golden.ready:
        ready = [(reason, trace.functions[function].name if function else "-") for reason, function, _, _ in trace.ready]
        if ready != [r for r in golden.ready if r != ("none",)]:
            faults.append(f"ready: {ready}")
    if golden.loads:
        loads = [(os.path.basename(l.path), os.path.basename(l.caller.path) if l.caller else None, names.get(l.initializer))
                 for l in trace.loads.values()]
        if loads != golden.loads:
            faults.append(f"loads: {loads}")
        faults += [f"load {l.path}: in no order" for l in trace.loads.values()
                   if not (l.begin <= l.opened <= l.mapped.ticks <= l.end.ticks)]
    onces = [(trace.functions[function].name, name_of(trace, code)) for function, _, _, code, _ in trace.onces]
    for once in golden.onces:
        if onces.count(once) != 1:
            faults.append(f"once {once}: recorded {onces.count(once)} times, of {onces[:8]}")
    return faults


def show_patterns(patterns, indent=4):
    for pattern in patterns:
        if pattern == ANYTHING:
            yield " " * indent + ANYTHING
            continue
        many = "" if (pattern.low, pattern.high) == (1, 1) else \
            f" x{pattern.low}" if pattern.low == pattern.high else f" x{pattern.low}..{pattern.high or ''}"
        yield (" " * indent + pattern.name + many + (f" ^{pattern.nest}" if pattern.nest > 1 else "")
               + "".join(f" ({m})" for m in sorted(pattern.marks)))
        yield from show_patterns(pattern.children, indent + 2)
