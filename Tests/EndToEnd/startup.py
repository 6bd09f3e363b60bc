"""`tracer startup` and `tracer libs` on real processes. Times are compared with moments that the process took itself by the
same clock, before and after the thing in question: nothing here depends on how soon a process is woken."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import build
import golden
import harness
import suite
import tracefile
from harness import Skipped, expect
from suite import need, read, read_bytes

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

TOLERANCE = 50_000  # ns: two clocks that are each calibrated against the other


class Startup(suite.Test):
    """A build of the subject, and the traces of one test."""

    def prepare(self):
        need("g++")
        self.stamps_path = os.path.join(self.directory.path, "stamps")

    def compile(self, name, *words, source=None, compiler="gcc"):
        """A C file of the subjects, or a text in C."""
        words = [os.path.join(build.SUBJECTS, word) if word.startswith("part_") else word for word in words]
        return super().compile(name, "-O1", "-g", *words, "-I", os.path.join(build.ROOT, "CSupport/include"), f"-Wl,-rpath,{self.made}",
                               f"-L{self.made}", source=source, compiler=compiler)

    def program(self, *flags):
        shared = ["-shared", "-fPIC"]
        self.compile("libslow.so", "part_startup_slow.c", *shared)
        self.compile("libglobals.so", "part_startup_globals.cpp", *shared, compiler="g++")
        self.compile("libunused.so", "part_startup_unused.c", *shared)
        self.compile("libinner.so", "part_startup_plugin.c", *shared, "-DINNER")
        self.compile("libouter.so", "part_startup_plugin.c", *shared)
        return self.compile("app", "part_startup.c", *flags, "-Wl,--no-as-needed", "-lslow", "-lglobals", "-lunused")

    def environment(self, **variables):
        return super().environment(STAMPS=self.stamps_path, **variables)

    def start(self, command, *options, status=0, out=None, **variables):
        """Runs a program under `tracer startup`; it must end so and write this. The trace is at self.start_trace."""
        self.start_trace = self.trace("app.trace")
        for path in (self.start_trace, self.start_trace + ".loader", self.stamps_path):
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
        done = self.tool("startup", "-o", self.start_trace, *options, "--", *command, status=status, env=self.environment(**variables))
        expect(out in (None, done.stdout), f"stdout {done.stdout}, stderr {done.stderr}")
        return done

    def timeline(self, *options):
        return self.json("startup", self.start_trace, *options)

    def page(self):
        """The data of the page of tracer view."""
        html = self.path("page.html")
        self.tool("view", self.start_trace, "--force", "-o", html)
        text = read(html)
        return json.JSONDecoder().raw_decode(text, text.index("{", text.index("DATA = ")))[0]

    def loader_is_seen(self):
        """The loader notes its start by the cycle counter, which a machine may not let the agent use."""
        path = self.start_trace
        return self.json("info", os.path.join(path, sorted(os.listdir(path))[0]) if os.path.isdir(path) else path)["clock"] == "tsc"

    def stamps(self):
        return {name: (int(wall), int(cpu)) for name, wall, cpu in (line.split() for line in read(self.stamps_path).splitlines())}


def constructor(timeline, name):
    found = [c for c in timeline["constructors"] if c["name"] == name]
    expect(len(found) == 1, f"{name}: {len(found)} constructors of this name in {[c['name'] for c in timeline['constructors']]}")
    return found[0]


def check_sum(timeline):
    own, tracer = (sum(phase[key] for phase in timeline["phases"]) for key in ("duration_ns", "tracer_ns"))
    expect(abs(own - timeline["program_ns"]) <= 20, f"stages are {own} ns, the program's time is {timeline['program_ns']}")
    expect(abs(tracer - timeline["tracer_ns"]) <= 20, f"the tracer's time in the stages is {tracer} ns, all of it is {timeline['tracer_ns']}")
    expect(timeline["program_ns"] + timeline["tracer_ns"] == timeline["total_ns"], f"{timeline['program_ns']}, {timeline['tracer_ns']}")
    for one, other in zip(timeline["phases"], timeline["phases"][1:]):
        expect(other["start_ns"] >= one["start_ns"] + one["duration_ns"] - 20, f"{other['name']} begins before {one['name']} ends")


def stages_add_up_to_wall_time(test):
    program = test.program()
    for _ in range(10):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        test.start([program, "serve"], status=5, out="served\n")
        timeline, stamps = test.timeline(), test.stamps()
        check_sum(timeline)
        begin = timeline["begin_monotonic_ns"]
        at = {phase["kind"]: begin + phase["start_ns"] for phase in timeline["phases"]}
        ready = begin + timeline["total_ns"]
        expect(all(phase["exact"] for phase in timeline["phases"]), f"not exact: {timeline['phases']}")
        expect(before < begin < stamps["slow.begin"][0], "exec is not between the start of the tool and the first constructor")
        expect(timeline["ready"]["reason"] == "listen", f"ready: {timeline['ready']}")
        expect(stamps["listen.before"][0] - TOLERANCE <= ready <= stamps["listen.after"][0] + TOLERANCE,
               f"ready at {ready}, but listen was called between {stamps['listen.before'][0]} and {stamps['listen.after'][0]}")
        expect(at["library_constructors"] <= stamps["slow.begin"][0] + TOLERANCE, "constructors begin too late")
        expect(stamps["spin.end"][0] - TOLERANCE <= at["executable_constructors"] <= stamps["own"][0] + TOLERANCE, "the executable's own")
        expect(stamps["own"][0] - TOLERANCE <= at["main"] <= stamps["main"][0] + TOLERANCE, "main")


def sleeping_and_computing_are_told_apart(test):
    test.start([test.program(), "print"])
    timeline, stamps = test.timeline(), test.stamps()
    for name in ("slow", "spin"):
        run = constructor(timeline, name + "_init")
        wall = stamps[name + ".end"][0] - stamps[name + ".begin"][0]
        cpu = stamps[name + ".end"][1] - stamps[name + ".begin"][1]
        # The constructor's own measurement lies inside the reported time, and excludes writing two lines of stamps.
        expect(run["total_ns"] >= wall - TOLERANCE, f"{name}: {run['total_ns']} ns, it measured {wall}")
        expect(run["cpu_ns"] >= cpu - TOLERANCE, f"{name}: {run['cpu_ns']} ns of CPU time, it measured {cpu}")
        expect(run["self_ns"] == run["total_ns"], f"{name}: nothing runs inside it")
    slow, spin = constructor(timeline, "slow_init"), constructor(timeline, "spin_init")
    expect(slow["cpu_ns"] < 2_500_000 <= slow["total_ns"] / 2, f"a sleep of 5 ms: {slow}")
    expect(spin["cpu_ns"] >= 5_000_000, f"5 ms of computing: {spin}")


def a_row_of_constructors_has_its_cpu_time(test):
    """Between two of them the agent does not ask the kernel for the time."""
    program = test.compile("row", "part_startup_row.c")
    least = {} # constructor → least CPU time of all runs that was reported beyond what it measured, in ns
    for _ in range(5):
        measured = {name: int(used) for name, used in (line.split() for line in test.start([program]).stdout.splitlines())}
        runs = [c for c in test.timeline()["constructors"] if c["name"].startswith("row_")]
        expect(len(runs) == 64, f"{len(runs)} constructors: {runs}")
        for run in runs[1:]: # the first one touches the program's pages
            name, further = run["name"], run["cpu_ns"] - measured[run["name"]]
            expect(further >= -500, f"{name}: {run['cpu_ns']} ns of CPU time, it measured {measured[name]}")
            least[name] = min(least.get(name, further), further)
        # CPU time between two constructors belongs to neither, and is not longer than the time that passed.
        trace, = tracefile.read_all(test.traces)
        row = [i for i in trace.initializers.values() if i.end and golden.name_of(trace, i.address, i.module).startswith("row_")]
        scale = golden.nanoseconds_of_tick(trace)
        for one, other in zip(row, row[1:]):
            used, passed = other.begin.cpu_ns - one.end.cpu_ns, (other.begin.ticks - one.end.ticks) * scale
            expect(0 < used <= passed + 500, f"between two constructors {used} ns of CPU time, of {passed:.0f} ns")
    # An interrupt between the constructor's reading and the agent's is in its time, too, but not in each run.
    for name, further in least.items():
        expect(further <= TOLERANCE, f"{name}: in each run at least {further} ns of CPU time more than it measured")


def constructors_have_names_files_and_order(test):
    program = test.program()
    test.start([program, "print"])
    timeline = test.timeline()
    slow, spin = constructor(timeline, "slow_init"), constructor(timeline, "spin_init")
    expect(slow["order"] < spin["order"] < constructor(timeline, "own_init")["order"], "not in the order in which they ran")
    for run, text in ((slow, "static void slow_init"), (spin, "static void spin_init")):
        lines = read(os.path.join(build.SUBJECTS, "part_startup_slow.c")).splitlines()
        line = 1 + [text in line for line in lines].index(True)
        expect((run["file"], run["line"]) == ("part_startup_slow.c", line), f"{run['name']} at {run['file']}:{run['line']}, is in line {line}")
        expect(run["module"] == "libslow.so", run["module"])
    made = constructor(timeline, "static initializers of part_startup_globals.cpp")
    expect(made["globals"] == ["inner::first", "second"], f"globals {made['globals']}")
    finalizers = [f["name"] for f in timeline["finalizers"]]
    expect("slow_fini" in finalizers, f"finalizers {finalizers}")
    table = test.tool("startup", test.start_trace, "--top", "100").stdout
    expect("slow_init (part_startup_slow.c:" in table, table)
    expect("makes inner::first, second" in table, table)
    subprocess.run(["strip", "libslow.so"], cwd=test.made, check=True)
    test.start([program, "print"])
    offset = [c for c in test.timeline()["constructors"] if c["name"].startswith("libslow.so+0x")]
    expect(len(offset) >= 2, "a stripped library's constructors are module and offset")


def a_replaced_library_is_not_asked_for_names(test):
    test.start([test.program(), "print"])
    test.compile("libslow.so", "part_startup_unused.c", "-shared", "-fPIC")
    names = {c["name"] for c in test.timeline()["constructors"] if c["module"] == "libslow.so"}
    expect(all(name.startswith("libslow.so+0x") for name in names), f"named after another file: {names}")


def nested_dlopens_are_split(test):
    test.start([test.program(), "plugin"])
    timeline = test.timeline()
    outer, inner = constructor(timeline, "outer_init"), constructor(timeline, "inner_init")
    loads = {os.path.basename(load["path"]): load for load in timeline["dlopens"]}
    expect({"libouter.so", "libinner.so"} <= set(loads), f"loads {list(loads)}")
    expect(inner["total_ns"] >= 3_000_000 and outer["total_ns"] >= inner["total_ns"] + 2_000_000, f"{outer} {inner}")
    expect(outer["self_ns"] <= outer["total_ns"] - loads["libinner.so"]["total_ns"] + TOLERANCE, f"the inner load is in the outer's self time: {outer}")
    expect(loads["libouter.so"]["constructors_ns"] >= outer["total_ns"] - 1000, f"{loads}")
    expect(loads["libouter.so"]["caller"] == "app" and loads["libinner.so"]["caller"] == "libouter.so", f"callers {loads}")
    expect(loads["libinner.so"]["constructor"] == "outer_init", f"{loads['libinner.so']}")
    for load in loads.values():
        expect(abs(load["load_ns"] + load["constructors_ns"] - load["total_ns"]) <= 2, f"parts do not add up: {load}")


def items_have_the_moments_that_they_took_themselves(test):
    program = test.compile("staged", "part_startup_staged.c", os.path.join(build.ROOT, "Sources/Program/CTracerAPI/tracer_startup.c"), "-pthread")
    said = test.start([program], "--items").stderr
    timeline, stamps = test.timeline(), test.stamps()
    items = {item["name"]: item for item in timeline["items"]}
    expect(list(items) == ["config", "log", "fonts", "window", "outer", "inner"] or list(items) == ["config", "fonts", "log", "window", "outer", "inner"],
           f"items {list(items)}: in the order in which they began, those until ready")
    begin = timeline["begin_monotonic_ns"]
    for name, item in items.items():
        for stamp in (name, name + ".begin", name + ".end"):
            if stamp in stamps:
                at = stamps[stamp][0] - begin
                end = item["start_ns"] + item["total_ns"] + item["tracer_ns"]
                expect(item["start_ns"] - TOLERANCE <= at <= end + TOLERANCE, f"{stamp} at {at} is not in {item}")
    expect({name: item["after"] for name, item in items.items()} == {"config": [], "log": ["config"], "fonts": ["config"],
           "window": ["fonts", "log"], "outer": ["window"], "inner": []}, f"after: {items}")
    expect({item["stage"] for item in items.values()} == {1, 2} and all(item["ended"] for item in items.values()), f"{items}")
    expect([name for name, item in items.items() if not item["main_thread"]] == ["fonts"], f"threads: {items}")
    expect(items["window"]["waited_for"] == "fonts" and items["window"]["waited_ns"] > 0, f"{items['window']}")
    expect(items["log"]["waited_for"] is None and items["outer"]["waited_for"] is None, f"{items}")
    expect(items["outer"]["own_ns"] <= items["outer"]["total_ns"] - items["inner"]["total_ns"] + 2, f"inner is in outer's own time: {items}")
    expect(not timeline["spans"], f"spans: {timeline['spans']}")
    for table in (said, test.tool("startup", test.start_trace, "--items").stdout):
        rows = {line.split()[1]: line for line in table.splitlines() if line.lstrip()[:2] in ("1 ", "2 ")}
        expect(set(rows) == set(items) and rows["window"].endswith(" for fonts"), table)
    expect("Start-up items, by own time" in test.tool("startup", test.start_trace).stdout, "not in the timeline")
    test.start([test.program(), "print"])
    expect("no start-up item began before ready" in test.tool("startup", test.start_trace, "--items").stdout, "a program without items")


def lazy_initializers_are_named(test):
    test.start([test.program(), "print"])
    lazy = [run for run in test.timeline()["lazy"] if "lazy" in run["name"]]
    expect(len(lazy) == 1, f"{lazy}")
    expect(lazy[0]["name"] == "lazy_value::lazy" and lazy[0]["module"] == "libglobals.so", f"{lazy[0]}")
    expect(lazy[0]["means"] == "__cxa_guard_acquire" and lazy[0]["duration_ns"] > 100_000, f"{lazy[0]}")


def how_far_it_came(mode, status, where, stage):
    def check(test):
        said = test.start([test.program(), mode], status=status).stderr
        expect(where in said, f"\"{where}\" is not in\n{said}")
        timeline = test.timeline()
        expect(timeline["ready"] is None or mode == "print", f"ready: {timeline['ready']}")
        expect(timeline["phases"][-1]["kind"] == stage and timeline["phases"][-1]["cut"], f"{timeline['phases'][-1]}")
        check_sum(timeline)
    return check


def an_unknown_ready_symbol_is_said(test):
    said = test.start([test.program(), "print"], "--ready", "no_such_function", out="words\n").stderr
    expect("not ready: there is no function no_such_function in this trace" in said and "never ready" in said, said)
    expect(test.timeline()["ready"]["reason"] == "output", "without --ready the first output counts")


def the_ready_symbol_counts(test):
    test.start([test.program(), "serve"], "--ready", "bind", status=5)
    timeline, listening = test.timeline("--ready", "bind"), test.timeline("--ready", "listen")
    expect(timeline["ready"]["reason"] == "symbol", f"{timeline['ready']}")
    expect(timeline["total_ns"] < listening["total_ns"], "bind comes before listen")


def the_programs_mark_comes_before_everything(test):
    test.start([test.program(), "ready"], out="first words\n")
    timeline, stamps = test.timeline(), test.stamps()
    expect(timeline["ready"]["reason"] == "mark", f"{timeline['ready']}")
    ready = timeline["begin_monotonic_ns"] + timeline["total_ns"]
    expect(stamps["ready.before"][0] - TOLERANCE <= ready <= stamps["ready.after"][0] + TOLERANCE, "at another time")
    expect([mark["name"] for mark in timeline["marks"]] == ["halfway", "ready"], f"{timeline['marks']}")
    expect([other["reason"] for other in timeline["ready"]["others"]][0] == "output", f"{timeline['ready']}")


def stop_at_ready_ends_a_server(*arguments):
    """A program that was ended on request has no warning on its page."""
    def check(test):
        said = test.start([test.program(), "serve", "on", *arguments], "--stop-at-ready").stderr
        expect("first listen" in said, said)
        page = test.page()
        expect(page["losses"] == [], f"{page['losses']}")
        expect(f"killed by signal {9 if arguments else 15} " in page["facts"], page["facts"])
    return check


def the_headline_is_the_programs_own_time(test):
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    said = test.start([test.program(), "print"], out="words\n").stderr
    timeline = test.timeline()
    shown = re.search(r"^exec → ready +([\d.]+) (\w+)  \(", said, re.MULTILINE)
    expect(abs(float(shown[1]) * units[shown[2]] - timeline["program_ns"]) <= 0.001 * timeline["program_ns"], f"{shown[0]}, {timeline['program_ns']} ns")
    expect(0 < timeline["tracer_ns"] and re.search(r"^tracer's own time +[\d.]+ \w+  not in the lines above: ", said, re.MULTILINE), said)


def the_agents_start_is_its_own_on_the_page(test):
    """Each stage has the time on the page that it has in the table; what is drawn longer says so."""
    test.start([test.program(), "print"], out="words\n")
    timeline, stages = test.timeline(), test.page()["startup"]["stages"]
    start = [stage for stage in stages if stage["name"] == "tracer's own start"]
    expect(len(start) == 1 and start[0]["tracer"] == start[0]["length"], f"{start}")
    cost = test.json("info", test.start_trace)["start_cost_ns"]
    expect(abs(start[0]["length"] - cost) <= 2, f"{start[0]['length']} ns on the page, {cost} by info")
    for phase in timeline["phases"]:
        drawn = sum(stage["length"] - stage["tracer"] for stage in stages if stage["name"] == phase["name"])
        expect(abs(drawn - phase["duration_ns"]) <= 20, f"{phase['name']}: {drawn} ns on the page, {phase['duration_ns']} in the table")


def loader_audit_separates_mapping_from_relocating(test):
    said = test.start([test.program(), "serve"], "--loader", status=5, out="served\n").stderr
    expect("the loader audit was on" in said, said)
    timeline = test.timeline()
    kinds = [phase["kind"] for phase in timeline["phases"]]
    expect(kinds[:3] == (["exec", "load", "relocate"] if test.loader_is_seen() else ["load", "relocate", "library_constructors"]), f"{kinds}")
    check_sum(timeline)
    mapped = [os.path.basename(library["path"]) for library in timeline["loader_audit"]]
    expect({"libslow.so", "libglobals.so", "libunused.so", "libc.so.6"} <= set(mapped), f"{mapped}")
    expect(not [n for n in os.listdir(test.traces) if n.startswith(".")], "a file is left over")


def without_the_tool_the_beginning_is_an_estimate(test):
    program = test.program()
    test.start_trace = test.trace("bare.trace")
    harness.execute([program, "print"], test.directory.path, test.environment(LD_PRELOAD=test.settings.agent, TRACER_OUT=test.start_trace))
    timeline, stamps = test.timeline(), test.stamps()
    check_sum(timeline)
    expect(not timeline["phases"][0]["exact"] and timeline["begin_error_ns"] > 0, f"{timeline['phases'][0]}")
    expect(timeline["begin_monotonic_ns"] - timeline["begin_error_ns"] < stamps["slow.begin"][0], "it begins too late")


def a_script_that_ends_in_exec_is_part_of_the_start(test):
    script = test.write("wrapper", '#!/bin/sh\ni=0\nwhile [ $i -lt 500000 ]; do i=$((i+1)); done\nexec "$1" serve\n', mode=0o755)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    said = test.start([script, test.program()], "--json", status=5, out="served\n").stderr
    timeline, _ = json.JSONDecoder().raw_decode(said, said.index("{\n"))  # what the tool says around it is no JSON
    check_sum(timeline)
    first, stamps = timeline["phases"][0], test.stamps()
    name = f"exec of {os.path.basename(os.path.realpath('/bin/sh'))}"
    expect(first["exact"] and (first["kind"] == "exec" and first["name"] == f"{name} → loader" if test.loader_is_seen()
                               else first["kind"] == "load" and first["name"].startswith(f"{name}, map and relocate ")), f"{first}")
    expect(before < timeline["begin_monotonic_ns"] < stamps["slow.begin"][0], "exec is not between the start of the tool and the first constructor")
    ready = timeline["begin_monotonic_ns"] + timeline["total_ns"]
    expect(stamps["listen.before"][0] - TOLERANCE <= ready <= stamps["listen.after"][0] + TOLERANCE, "ready at another time")
    expect(test.timeline()["total_ns"] == timeline["total_ns"], "the run says something else later")
    # Its trace alone does not say when the script began.
    test.start_trace, = (os.path.join(test.start_trace, name) for name in os.listdir(test.start_trace) if name.startswith("app."))
    alone = test.timeline()
    expect(not alone["phases"][0]["exact"], f"{alone['phases'][0]}")
    expect("another program started this one, or ran before it" in test.tool("startup", test.start_trace).stdout, "the note")
    table = test.start([script, test.program()], status=5).stderr
    expect(re.search(r"\d +m?s  \w+ ran first and became app by exec: start \S*/app itself\n", table), table)


def waiting_for_a_thread_is_not_taken_for_working(test):
    source = ('#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic void *rest(void *x) { usleep(50000); return x; }\n'
              'int main(void) { pthread_t t; pthread_create(&t, 0, rest, 0); pthread_join(t, 0); puts("done"); return 0; }\n')
    said = test.start([test.compile("waits", "-pthread", source=source)]).stderr
    expect("pthread_join [libc.so.6]: main waits there for another thread" in said, said)


def advice_names_the_path_with_the_time_in_it(test):
    """Nine parts of ten of what `spin` takes are below `parse`."""
    library = ('void spin(long n) { for (volatile long i = 0; i < n; i++) ; }\nvoid parse(void) { spin(90000000); }\n'
               'void load(void) { parse(); }\nvoid other(void) { spin(10000000); }\n')
    test.compile("libwork.so", "-shared", "-fPIC", "-O0", source=library)
    program = test.compile("works", "-lwork", source='#include <stdio.h>\nvoid load(void), other(void);\nint main(void) { load(); other(); puts("x"); return 0; }\n')
    said = test.start([program], out="x\n").stderr
    shown = re.search(r"spin \[libwork.so\], called 2 times between main and ready, ([\d.]+)% of it below main > load > parse$", said, re.MULTILINE)
    expect(shown, said)
    expect(50 <= float(shown[1]) < 100, shown[0])


def own_code_is_looked_at_as_calls_are(test):
    """What the program does outside of its recorded calls: it computes, and it waits by a system call of its own."""
    program = test.compile("computes", "part_startup_own_code.c")
    ran = int(test.start([program]).stdout)
    own = [one for one in test.timeline()["advice"] if "own code" in one["text"]]
    [runs] = [one for one in own if "--functions" in one["text"]]
    expect(runs["saving_ns"] >= ran * 0.9, f"it ran {ran} ns: {runs}")
    if kernel_reports():
        [sleeps] = [one for one in own if "sleeping" in one["text"]]
        expect(sleeps["saving_ns"] >= 80_000_000 - TOLERANCE and runs["saving_ns"] < 2 * ran, f"it ran {ran} ns: {own}")
    test.tool("record", "--quiet", "--force", "--functions", "*", "-o", test.start_trace, "--", program)
    said = [one["text"] for one in test.timeline()["advice"]]
    expect(not any("--functions" in text for text in said), f"{said}")


def a_forked_child_that_listens_makes_the_program_ready(test):
    """The moment that the child itself notes; and with --stop-at-ready nobody is left."""
    program = test.compile("forks", "part_startup_forks.c")
    stops = ({}, {"PARENT_ENDS": "1"}, {"STUBBORN": "1"}, {"STUBBORN": "1", "PARENT_ENDS": "1"}, {"STARTS_MORE": "1"})
    for options, settings in (([], {}), *((["--stop-at-ready"], settings) for settings in stops)):
        # Returns when nobody has its standard error any more.
        said = test.start([program], *options, **{"UNTIL_KILLED": "1" if options else "", "PARENT_LISTENS": "", "PARENT_ENDS": "", **settings}).stderr
        timeline, stamps = test.timeline(), test.stamps()
        child = stamps["child"][0]
        expect((timeline["ready"]["reason"], timeline["ready"]["pid"]) == ("listen", child), f"{timeline['ready']}, child {child}")
        expect(f"main → ready (first listen, in process {child}, forks)" in said, said)
        ready = timeline["begin_monotonic_ns"] + timeline["total_ns"]
        expect(stamps["listen.before"][0] - TOLERANCE <= ready <= stamps["listen.after"][0] + TOLERANCE, f"{ready}: {stamps}")
        check_sum(timeline)


def a_launchers_child_makes_it_ready_and_its_own_call_comes_first(test):
    server = test.program()
    test.start(["/bin/sh", "-c", f"{server} serve; exit 3"], status=3)
    timeline, stamps = test.timeline(), test.stamps()
    ready = timeline["begin_monotonic_ns"] + timeline["total_ns"]
    expect(timeline["ready"]["reason"] == "listen" and timeline["ready"]["pid"] != timeline["pid"], f"{timeline['ready']}")
    expect(stamps["listen.before"][0] - TOLERANCE <= ready <= stamps["listen.after"][0] + TOLERANCE, f"{ready}: {stamps}")
    # Whoever listens itself, before or after its children, is ready then.
    test.start([test.compile("forks", "part_startup_forks.c")], UNTIL_KILLED="", PARENT_LISTENS="1", PARENT_ENDS="")
    expect((test.timeline()["ready"]["reason"], test.timeline()["ready"]["pid"]) == ("listen", None), f"{test.timeline()['ready']}")


def a_committed_wayland_surface_is_the_first_frame(test):
    """A request of another number, or of another interface, is none."""
    test.compile("libwayland-client.so.0", "part_startup_wayland.c", "-shared", "-fPIC", "-DLIBRARY", "-Wl,-soname,libwayland-client.so.0")
    client = test.compile("client", "part_startup_wayland.c", "-l:libwayland-client.so.0")
    test.start([client])
    timeline, stamps = test.timeline(), test.stamps()
    expect(timeline["ready"]["reason"] == "frame" and "wl_surface_commit" in timeline["ready"]["text"], f"{timeline['ready']}")
    ready = timeline["begin_monotonic_ns"] + timeline["total_ns"]
    expect(stamps["commit.before"][0] - TOLERANCE <= ready <= stamps["commit.after"][0] + TOLERANCE, f"{ready}: {stamps}")


def a_static_program_is_refused(test):
    for flag in ("-static", "-static-pie"):
        said = test.start([test.compile("alone", flag, source="int main(void) { return 0; }\n")], status=126).stderr
        expect("statically linked" in said and "link it dynamically" in said and said.count("\n") == 1, f"{flag}: {said}")


def initializers_are_seen_when_recording_starts_later(test):
    said = test.start([test.program(), "print"], TRACER_START="off").stderr
    timeline = test.timeline()
    check_sum(timeline)
    expect(constructor(timeline, "spin_init")["cpu_ns"] >= 5_000_000 and constructor(timeline, "own_init")["calls"] == 0, "constructors")
    expect([phase["kind"] for phase in timeline["phases"]][-1] == "main", f"{timeline['phases']}")
    expect("note: TRACER_START=off: calls made before" in said, said)


def what_a_filter_may_hide_is_said(test):
    program = test.program()
    note = "filtered calls out, possibly the one that makes the program ready"
    for variable, value in (("TRACER_INCLUDE", "nothing*"), ("TRACER_EXCLUDE", "*"), ("TRACER_MAXDEPTH", "1"), ("TRACER_MINMS", "10000")):
        said = test.start([program, "never"], status=None, **{variable: value}).stderr
        expect(f"note: {variable} {note}" in said, f"{variable}: {said}")
    said = test.start([program, "never"], status=None).stderr
    expect(note not in said, said)


def a_failure_is_not_passed_off_as_a_start(test):
    for name, text, status, is_said in (("complains", '#include <stdio.h>\nint main(void) { fputs("no\\n", stderr); return 3; }\n', 3, True),
                                        ("speaks", '#include <stdio.h>\nint main(void) { puts("yes"); return 0; }\n', 0, False)):
        said = test.start([test.compile(name, source=text)], status=status).stderr
        expect(("note: it ended with status 3: if that is a failure" in said) == is_said, f"{name}: {said}")
    said = test.start([test.program(), "serve"], status=5).stderr
    expect("it ended with status" not in said, f"a server that has listened was ready: {said}")


def a_constructor_of_another_thread_has_its_own_figures(test):
    plug = ('#include <stdlib.h>\n#include <string.h>\n__attribute__((constructor)) static void plug_init(void) '
            '{ char *buffer = malloc(8 << 20); memset(buffer, 1, 8 << 20); free(buffer); }\n')
    opens = ('#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n'
             'static void *open_it(void *x) { if (!dlopen("libplug.so", RTLD_NOW)) abort(); return x; }\n'
             'int main(void) { pthread_t t; pthread_create(&t, 0, open_it, 0); pthread_join(t, 0); puts("x"); return 0; }\n')
    test.compile("libplug.so", "-shared", "-fPIC", "-O0", source=plug)
    test.start([test.compile("opens", "-pthread", source=opens)])
    timeline = test.timeline()
    run = constructor(timeline, "plug_init")
    pages = (8 << 20) // os.sysconf("SC_PAGESIZE")
    expect(run["thread"] != timeline["pid"], f"it ran in the main thread: {run}")
    # A few huge pages would do.
    huge = "[never]" not in open("/sys/kernel/mm/transparent_hugepage/enabled").read() if os.path.exists("/sys/kernel/mm/transparent_hugepage/enabled") else False
    expect(run["minor_faults"] >= (1 if huge else pages) and 0 < run["cpu_ns"] <= run["total_ns"] + TOLERANCE, f"{run}")


def libraries_that_nothing_uses_are_named(test):
    test.start([test.program(), "print"])
    report = test.json("libs", test.start_trace)
    libraries = {library["name"]: library for library in report["libraries"]}
    expect("libunused.so" in report["unused_by_program"], f"{report['unused_by_program']}")
    expect(not {"libslow.so", "libglobals.so", "libc.so.6"} & set(report["unused_by_program"]), f"{report['unused_by_program']}")
    expect(libraries["libslow.so"]["needed_by"] == ["app"] and libraries["libslow.so"]["calls"] >= 1, f"{libraries['libslow.so']}")
    text = test.tool("libs", test.start_trace).stdout
    expect("libunused.so, by app" in text, text)


def a_library_that_another_one_uses_is_not_called_unused(test):
    """The program names libbase.so for libmid.so, which uses it and does not name it: left out, the program does not start."""
    test.compile("libbase.so", "-shared", "-fPIC", source="int base(void) { return 1; }\n")
    test.compile("libidle.so", "-shared", "-fPIC", source="int idle(void) { return 1; }\n")
    middle, main = "int base(void); int middle(void) { return base(); }\n", "int middle(void); int main(void) { return middle() - 1; }\n"
    test.compile("libmid.so", "-shared", "-fPIC", source=middle)
    libraries = ("-lmid", "-lbase", "-lidle")
    test.start([test.compile("held", "-Wl,--no-as-needed", *libraries, source=main)])
    report, text = test.json("libs", test.start_trace), test.tool("libs", test.start_trace).stdout
    expect("libidle.so" in report["unused_by_program"] and "libbase.so" not in report["unused_by_program"], f"{report['unused_by_program']}")
    expect(report["program_needs_for_others"] == [{"library": "libbase.so", "users": ["libmid.so"], "dependents": ["libmid.so"]}],
           f"{report['program_needs_for_others']}")
    expect("libbase.so, by held for libmid.so" in text and "link with -Wl,--as-needed" not in text, text)
    for linker in ("gold", "lld"):
        if not shutil.which("ld." + linker):
            continue
        program = test.compile("held_" + linker, f"-fuse-ld={linker}", "-Wl,--as-needed", *libraries, source=main)
        ended = subprocess.run([program], capture_output=True, text=True)
        expect(ended.returncode == 127 and "undefined symbol: base" in ended.stderr, f"{linker} keeps it: {ended}")
    # Named by the one that uses it, it is neither.
    test.compile("libmid.so", "-shared", "-fPIC", "-lbase", source=middle)
    test.start([test.compile("free", "-Wl,--no-as-needed", *libraries, source=main)])
    report, text = test.json("libs", test.start_trace), test.tool("libs", test.start_trace).stdout
    expect("libbase.so" not in report["unused_by_program"] and report["program_needs_for_others"][0]["dependents"] == [], f"{report}")
    expect("libbase.so, by" not in text and "link with -Wl,--as-needed" in text, text)


def what_dlsym_may_have_found_is_not_said_to_be_unused(test):
    """The program names libidle.so and finds its function by name: without the link there is none."""
    test.compile("libidle.so", "-shared", "-fPIC", source="int idle(void) { return 1; }\n")
    source = "#include <dlfcn.h>\nint main(void) { return dlsym(RTLD_DEFAULT, \"idle\") == 0; }\n"
    test.start([test.compile("seeker", "-D_GNU_SOURCE", "-Wl,--no-as-needed", "-lidle", source=source)])
    report, text = test.json("libs", test.start_trace), test.tool("libs", test.start_trace).stdout
    expect("libidle.so" in report["unused_by_program"] and report["name_lookups"] == 1, f"{report['unused_by_program']}, {report['name_lookups']}")
    expect("1 call of dlsym may have found what they have" in text and "--as-needed" not in text, text)
    expect("unless dlsym looks for what it has" in test.tool("startup", test.start_trace).stdout, "startup advises against the link")


def symbols_of_two_libraries_are_named(test):
    twice = "int twice(void) { return N; } int USER(void) { return twice(); }\n"
    main = "int first(void), second(void); int main(void) { return first() + second() == 2 ? 0 : 1; }\n"
    for number, (name, user) in enumerate((("libone.so", "first"), ("libtwo.so", "second")), 1):
        test.compile(name, "-shared", "-fPIC", f"-DN={number}", f"-DUSER={user}", "-fno-ipa-icf", "-fno-inline", source=twice)
    test.start([test.compile("twice", "-lone", "-ltwo", source=main)])
    report = test.json("libs", test.start_trace)
    expect([(d["taken"], d["passed_over"], d["users"], d["symbols"]) for d in report["duplicates"] if "libone.so" == d["taken"]]
           == [("libone.so", "libtwo.so", ["libtwo.so"], ["twice"])], f"{report['duplicates']}")


def constructors_before_the_agent_are_said(test):
    """As with libpthread before glibc 2.34: the loader initializes the last library first that asks for it."""
    program = test.program()
    test.start([program])
    expect(not any("before the agent" in note for note in test.timeline()["notes"]), "said where the agent came first")
    test.compile("libunused.so", "part_startup_unused.c", "-shared", "-fPIC", "-Wl,-z,initfirst")
    test.start([program])
    expect(any("before the agent" in note for note in test.timeline()["notes"]), f"not said: {test.timeline()['notes']}")


def an_unknown_loader_loses_its_hook_and_nothing_else(test):
    """One whose hook is followed by code: what the agent would write there does not fit."""
    if os.uname().machine != "x86_64":
        raise Skipped("one instruction is replaced on this architecture, and nothing after it")
    program = test.program()
    interpreter = re.search(r"interpreter: (.*)]", subprocess.check_output(["readelf", "-lW", program], text=True))[1]
    symbols = subprocess.check_output(["readelf", "--dyn-syms", "-W", interpreter], text=True)
    hook = int(re.search(r"([0-9a-f]+) +\d+ FUNC +GLOBAL +DEFAULT +\d+ _dl_debug_state@", symbols)[1], 16)
    segments = subprocess.check_output(["readelf", "-lW", interpreter], text=True)
    for offset, address, size in re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", segments):
        if 0 <= hook - int(address, 16) < int(size, 16):
            position = hook - int(address, 16) + int(offset, 16)
    loader = bytearray(read_bytes(interpreter))
    position = loader.index(0xc3, position) + 1 # the byte after `ret`
    loader[position] = 0x55 # push %rbp
    other = test.write("ld-other.so", bytes(loader), mode=0o755)
    for flags, is_seen in (((), True), ((f"-Wl,--dynamic-linker={other}",), False)):
        test.start([test.program(*flags), "plugin"])
        timeline = test.timeline()
        expect(bool(timeline["dlopens"]) == is_seen, f"{flags}: {timeline['dlopens']}")
        expect(any("noticed late" in note for note in timeline["notes"]) != is_seen, f"{flags}: {timeline['notes']}")


def a_trace_of_no_start_is_refused(test):
    path = test.write("x.trace", "no trace at all")
    for arguments, status in ((["startup", path], 1), (["startup"], 2), (["startup", path, "--", "true"], 2), (["startup", path, "--stop-at-ready"], 2),
                              (["startup", "--", "/nowhere/at/all"], 127), (["libs", path], 1)):
        test.tool(*arguments, status=status)


def tests():
    named = {
        "exit_in_a_constructor": how_far_it_came("early", 3, "exit was called in own_init (part_startup.c:", "executable_constructors"),
        "death_in_a_constructor": how_far_it_came("die", 128 + signal.SIGSEGV, "in own_init (part_startup.c:", "executable_constructors"),
        "death_in_main": how_far_it_came("kill", 128 + signal.SIGKILL, "in main, still running or killed", "main"),
        "stop_at_ready": stop_at_ready_ends_a_server(),
        "stop_at_ready_of_one_that_ignores_sigterm": stop_at_ready_ends_a_server("deaf"),
    }
    return suite.tests_of(__name__, Startup) + [Startup("startup." + name, check) for name, check in named.items()]
