"""Conditions on arguments and results at recording (record --when): the agent records the calls that `replay --where` chooses among all of them,
every other function's, and says how many it did not."""
import collections
import glob
import json
import os
import re
import struct

import argument_reports
import argument_values
import build
import harness
import suite
import tracefile
from harness import Skipped, expect

ROUNDS = "1500"
ARGUMENTS = "serve*,walk,fails,gives,takes,around,leaves,login"
CONDITIONS = [
    ("serve(size > 4096)",), ("serve(size>=4K)",), ("serve(size < 0x10)",), ("serve( size <= 010 )",), ("serve(size == 18446744073709551615)",),
    ("serve(size != 37)",), ("serve(offset == -5)",), ("serve(offset < 0)", "serve(size > 1K)"), ("serve*(size == 37)",),
    ("serve(size > 4K)", "serve_again(size > 200)"), ("serve*(size > 100)", "serve(size < 200)"), ("serve_again(size >= -1)",),
    ("serve(size >= -1)",), ("serve(size < -1)",), ("serve_again(size < 5000000000)",), ("serve_again(size != 5000000000)",),
    ("serve_again(size == 5000000000)",), ("serve_again(size ~ 3)",), ("serve(offset ~ -5)",), ("serve_again(size ~ 0x100000000)",),
    ('serve*(path == "/etc/passwd")',), ('serve*(path != "/etc/passwd")',), ('serve*(path ~ "/etc")',), ('serve*(path ~ "/etc/*")',),
    ('serve*(path ~ "*/lib?.so.?")',), ('serve*(path == "")',), (r'serve*(path == "a \"quoted\" one")',), ('serve*(path ~ "ü")',),
    ('serve*(path ~ "xxxxx")',), ('serve*(path ~ "x*x")',), ("serve*(path == NULL)",), ("serve*(path != NULL)",), ("serve(how == GREEN)",),
    ("serve(how != RED)",), ("serve(how < RED)",), ("serve(how == 12)",), ("serve(with == READ)",), ("serve(with == WRITE|CREATE)",),
    ("serve(with ~ CREATE)",), ("serve(with ~ WRITE | CREATE)",), ("serve(with ~ DSYNC)",), ("serve(with ~ SYNC)",), ("serve(with == 0x41)",),
    ("serve(with ~ 0x100000000)",), ("takes(at == NULL)",), ("takes(at > 0x1000)",), ("serve() < 0",), ("serve() == 2",), ("serve(result == -1)",),
    ("fails(errno == ENOENT)",), ("serve(errno == ENOENT)", "fails(number >= 2)"), ("fails(errno != ENOENT)",), ("gives() == ENOENT",),
    ("gives(errno == ENOENT)",), ("gives(errno != ENOENT)",), ("walk(depth == 3)",), ("walk(depth > 1)", "walk() < 2"), ("around(round == 1)",),
    ("leaves(size == 5)",), ("leaves() == 1",), ("serve(size > 4096)", "serve() < 0"),
]


class Conditions(argument_values.Arguments):
    def planned(self, conditions):
        return self.plan(ARGUMENTS, prototypes=argument_reports.PROTOTYPES, more=[word for condition in conditions for word in ("--when", condition)])

    def calls(self, path, *words):
        """Calls of our functions, by thread."""
        lines = [json.loads(line) for line in self.tool("replay", "--json", path, *words).stdout.splitlines()]
        threads = collections.defaultdict(list)
        for call in lines:
            if call["name"] in argument_reports.OURS:
                threads[call["tid"]].append({name: call.get(name) for name in ("name", "arguments", "result", "errno")})
        return threads

    def subject(self, apart):
        self.write("served.h", argument_reports.HEADER)
        words = [f"-I{self.made}", "-rdynamic", "-lpthread", "-Wl,-rpath,$ORIGIN"]
        if apart:
            self.compile("libserved.so", "-O1", "-shared", "-fPIC", f"-I{self.made}", source=argument_reports.LIBRARY, compiler=argument_values.driver("gcc"))
            return self.compile("served", "-O1", *words, "-L.", "-lserved", source=argument_reports.MAIN, compiler=argument_values.driver("gcc"))
        apart_of = "#pragma GCC optimize(\"no-optimize-sibling-calls\")\n"
        header = re.sub(r"^(?=int|long|void)", "__attribute__((noipa)) ", argument_reports.HEADER, flags=re.MULTILINE)
        self.write("served.h", header)
        program = self.compile("served", "-O1", *words, source=apart_of + argument_reports.MAIN + argument_reports.LIBRARY, compiler=argument_values.driver("gcc"))
        harness.plan(self.settings, program, self.made)
        return program


def spoken_of(conditions, calls):
    """Functions that some condition names and that have what it is about."""
    has = collections.defaultdict(set)
    for call in calls:
        has[call["name"]] |= set(call["arguments"] or {})
    names = set()
    for condition in conditions:
        function, subject = re.match(r"([^( ]+)\( *(\w*)", condition).groups()
        pattern = re.compile(function.replace("*", ".*") + "$")
        names |= {name for name in has if pattern.match(name) and (subject in ("", "result", "errno") or subject in has[name])}
    return names


def chosen(apart=True, conditions=CONDITIONS, **variables):
    def calls_are_those_that_the_reader_chooses(test):
        program = test.subject(apart)
        test.execute([program, ROUNDS], TRACER_ARGUMENTS=test.planned(()), **variables)
        kept = test.path("whole.trace")
        os.rename(test.checked_trace().path, kept)
        everything = test.calls(kept)
        for group in conditions:
            test.forget_traces()
            test.execute([program, ROUNDS], TRACER_ARGUMENTS=test.planned(group), **variables)
            trace = test.checked_trace()
            shown = test.calls(kept, *[word for condition in group for word in ("--where", condition)])
            found = test.calls(trace.path)
            names = spoken_of(group, [call for calls in everything.values() for call in calls])
            expect(names, f"{group} speaks of no function")
            wanted = {}
            for tid, calls in everything.items():
                left = iter(shown.get(tid, []))
                following = next(left, None)
                wanted[tid] = []
                for call in calls:
                    if call["name"] not in names:
                        wanted[tid].append(call)
                    elif call == following:
                        wanted[tid].append(call)
                        following = next(left, None)
                expect(following is None, f"{group}: the reader's calls are not among all: {following}")
            same = sorted(wanted.values(), key=len) == sorted(found.values(), key=len)
            if not same:
                pairs = [next(((a, b) for a, b in zip(one, other) if a != b), (len(one), len(other)))
                         for one, other in zip(sorted(wanted.values(), key=len), sorted(found.values(), key=len))]
                expect(False, f"{group}: wanted and recorded: {pairs}")
            missing = sum(len(calls) for calls in everything.values()) - sum(len(calls) for calls in found.values())
            expect(trace.filtered_by_condition == missing, f"{group}: {missing} calls are missing, {trace.filtered_by_condition} are said to be filtered")
            info = test.json("info", trace.path)
            expect(info["filtered_by_condition"] == missing, f"{info['filtered_by_condition']}")
            note = [text for text in test.tool("info", trace.path).stdout.splitlines() if "recorded only if their values were so" in text]
            expect(len(note) == 1 and all(name in note[0] for name in names), f"{group}: {note}")
    return calls_are_those_that_the_reader_chooses


def stepped(*words, **variables):
    def a_signal_at_every_instruction_changes_nothing(test):
        """subjects/single_step.c: also where a call turns out not to be wanted, and its record is given back."""
        if build.ARCHITECTURE != "x86_64":
            raise Skipped("the subject knows the registers of x86_64")
        source = os.path.join(argument_values.SUBJECTS, "single_step.c")
        test.compile("libstepped.so", "-O2", "-shared", "-fPIC", "-DLIB_stepped", f"-I{argument_values.SUBJECTS}", source)
        program = test.compile("stepped", "-O2", f"-I{argument_values.SUBJECTS}", source, "-L.", "-lstepped", "-pthread", "-Wl,-z,now", "-Wl,-rpath,$ORIGIN")
        path = test.plan("step_inner(value: long) -> long, step_outer(value: long) -> long errno, step_handler()",
                         more=("--when", "step_inner(value >= 42)", "--when", "step_outer(value > 2)"))
        run = test.execute([program, *words], TRACER_ARGUMENTS=path, **variables)
        traces = [trace for trace in test.checked_traces() if trace.filtered_by_condition]
        expect(len(traces) == 1, f"{len(traces)} traces have the calls")
        trace, = traces
        recorded = 0
        for name, least in (("step_inner", 42), ("step_outer", 3)):
            for node in trace.nodes():
                if node.name == name and node.arguments is not None:
                    recorded += 1
                    value = struct.unpack_from("<q", node.arguments[1])[0]
                    expect(value >= least, f"{name}({value}) is recorded")
        wanted = [run.counts["step_inner"], run.counts["step_outer"]]
        whole = trace.count("step_inner") + trace.count("step_outer") + trace.filtered_by_condition
        expect(sum(low for low, _ in wanted) <= whole <= sum(high for _, high in wanted), f"{whole} calls are recorded or filtered, {wanted} were made")
        low, high = run.counts.get("step_handler", (0, 0))
        expect(low <= trace.count("step_handler") <= high and trace.filtered_by_condition > 100, f"{trace.filtered_by_condition} were filtered")
    return a_signal_at_every_instruction_changes_nothing


def a_call_that_is_left_has_no_result(test):
    """longjmp out of it: no condition on its result holds, and the calls within it stay."""
    program = test.subject(True)
    test.execute([program, "64"], TRACER_ARGUMENTS=test.planned(("leaves() != 7",)))
    trace = test.checked_trace()
    expect(not trace.count("leaves") and trace.filtered_by_condition == 1 and trace.count("leave") == 1, f"{trace.filtered_by_condition}")


def a_trigger_is_a_condition_too(test):
    """record --keep: a snapshot of each call that fulfils it, and of no other."""
    program = test.subject(True)
    most = 16 # requests that may wait for the recorder
    for condition in ("serve_again(size == 160)", "fails(number == 2)", "fails(errno == EPERM)", 'serve_again(path ~ "passwd")', "leaves(size == 5)", "leaves() == 1"):
        for path in glob.glob(os.path.join(test.traces, "*")):
            os.unlink(path)
        test.tool("record", "--keep", "10s", "--snapshots", "1000", "--no-files", "--no-states", "-o", test.trace(), "--arguments", ARGUMENTS, "--prototypes",
                  test.write("prototypes", argument_reports.PROTOTYPES), "--when", condition, "--", program, "1500")
        snapshots = glob.glob(os.path.join(test.traces, "*.snapshot.trace"))
        every = [json.loads(line) for line in test.tool("replay", "--json", test.trace()).stdout.splitlines()]
        expect(collections.Counter(call["name"] for call in every)["serve"] == 3003, "a trigger's condition filters calls")
        name = condition.split("(")[0]
        # A call without a result has none that a condition could hold of, and `--where` of a function without one is refused.
        calls = [] if condition == "leaves() == 1" else test.tool("replay", "--json", test.trace(), "--where", condition).stdout.splitlines()
        expect(bool(calls) == (condition != "leaves() == 1"), f"{condition}: {len(calls)} calls")
        expect(len(snapshots) == len(calls) if len(calls) <= most else 0 < len(snapshots) <= len(calls), f"{condition}: {len(snapshots)} snapshots of {len(calls)} calls")
        for path in snapshots:
            trace = tracefile.Trace(path)
            trace.trees()
            asked = [node for node in trace.nodes() if node.name == name and node.enter == trace.header["begin_ticks"]]
            expect(len(asked) == 1 and not trace.anomalies, f"{path}: {len(asked)}, {trace.anomalies[:3]}, {trace.header['begin_ticks']}: {[node.enter for node in trace.nodes() if node.name == name][:10]}")


def what_cannot_be_asked_is_one_clear_line(test):
    prototypes = test.write("prototypes", argument_reports.PROTOTYPES)
    for condition, wanted in {
            "size > 4": "name the function, such as 'malloc(size > 4)'", "serve(size >> 4)": "a number, a name or a \"string\" is expected at character 13",
            "serve(colour == RED)": "serve has no colour", "nothing(size > 4)": "no prototype of nothing is known: give one, such as --arguments 'nothing(size: int)'",
            "libserved.so!serve(size > 4)": "the function's name alone, without a module", "serve(how == PINK)": "PINK is no value of how: RED, GREEN, BLUE",
            'login(password == "x")': "password is hidden", "serve(mode == 0644)": "mode is an argument of some calls only",
            'serve(path ~ "[a]*")': "a text with [ or \\ is compared by report and replay alone", "serve(path > NULL)": "path is a string: compare it with NULL by == or !=",
            "serve > 5ms": "--when with a time needs --keep", "serve": "give a function and how long its calls may take", "serve > x": "name the function"}.items():
        said = test.tool("record", "-o", test.path("never.trace"), "--arguments", "serve*,login", "--prototypes", prototypes, "--when", condition, "--", "true", status=None)
        expect(said.returncode == 2 and said.stderr.count("\n") == 1 and wanted in said.stderr, f"{condition}: {said.stderr}")
        expect(not os.path.exists(test.path("never.trace")), condition)


def a_function_of_the_program_needs_no_other_option(test):
    """Its own first bytes are patched for it, as for a trigger's time; those of libc need none."""
    source = "#include <stdlib.h>\n__attribute__((noipa)) int handle(int id) { void *volatile memory = malloc(id); free(memory); return id; }\nint main(void) { for (int n = 0; n < 100; n++) handle(n * 10); }\n"
    program = test.compile("own", "-O1", source=source)
    test.tool("record", "--no-states", "--no-files", "-o", test.path("own.trace"), "--arguments", "handle(id: int) -> int", "--when", "handle(id >= 900)", "--when", "malloc(size == 500)", "--", program)
    calls = [json.loads(line) for line in test.tool("replay", "--json", test.path("own.trace")).stdout.splitlines()]
    expect([call["arguments"]["id"] for call in calls if call["name"] == "handle"] == list(range(900, 1000, 10)), f"{calls[:3]}")
    expect([call["arguments"]["size"] for call in calls if call["name"] == "malloc"] == [500], "malloc")
    expect(sum(call["name"] == "free" for call in calls) == 100, "what has no condition is filtered")
    report = test.tool("report", test.path("own.trace")).stdout
    expect("recorded only if their values were so: handle: id >= 900; malloc: size == 500" in report, report)
    # With debug information it needs no prototype, either.
    program = test.compile("debugged", "-O1", "-g", source=source)
    test.tool("record", "--no-states", "--no-files", "-o", test.path("debugged.trace"), "--when", "handle(id >= 950)", "--", program)
    calls = [json.loads(line) for line in test.tool("replay", "--json", test.path("debugged.trace")).stdout.splitlines()]
    expect([call["arguments"]["id"] for call in calls if call["name"] == "handle"] == list(range(950, 1000, 10)), f"{calls[:3]}")
    said = test.tool("diff", test.path("own.trace"), test.path("own.trace")).stdout
    expect("different filters" not in said, said)


MODES = {"slots": "*", "arm": "chosen.trampolines"}


def tests():
    few = CONDITIONS[::6]
    cases = {"trampolines": chosen(), "sites": chosen(conditions=few, TRACER_CALLSITES="1"), "monotonic": chosen(conditions=few, TRACER_CLOCK="monotonic"),
             "functions": chosen(apart=False, conditions=few, TRACER_FUNCTIONS="serve*:walk:fails:gives:takes:around:leaves:login")}
    if build.ARCHITECTURE == "aarch64":
        return [Conditions("conditions.chosen.trampolines", chosen(conditions=[group for group in CONDITIONS if "path" not in group[0]][::4]))]
    found = [Conditions(f"conditions.chosen.{name}", check) for name, check in cases.items()]
    found += [Conditions(f"conditions.stepped.{name}", check) for name, check in {
        "signal": stepped("signal"), "first_call": stepped("first_call"), "unwind": stepped("unwind"), "signal_on_other_stack": stepped("signal", "other"),
        "signal_while_other_is_open": stepped("signal", "beside")}.items()]
    return found + suite.tests_of(__name__, Conditions)
