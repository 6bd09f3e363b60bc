"""Every export is opened in the program that it is for, and the figures found there are held against `tracer report`.

The traces: a large synthetic one whose ticks are nanoseconds, so that sums must agree to the nanosecond, and real ones
(python3, git, a program of four threads), where the rounding of each moment to a nanosecond may show: at most one for
each call. Perfetto's importer drops silently what it does not like, so that everything is counted.

Perfetto's trace processor runs offline by `perfetto-query` (node, and two packages of PyPI), which lies beside the
repository in shared/tools or where PERFETTO_QUERY says; go and callgrind_annotate are Debian's. A test whose consumer
is not there is skipped, with the reason.
"""
import collections
import csv
import fcntl
import functools
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest

from kernel_account import kernel_reports
from recorded_programs import PYTHON, ROOT, TOOL, new_folder, preloaded, run, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(ROOT, "Tests/EndToEnd"))
import tracefile

PERFETTO = os.environ.get("PERFETTO_QUERY", os.path.join(ROOT, "../shared/tools/perfetto-query"))
LIMIT = 600  # seconds, on a machine that has other things to do
FORMATS = ["perfetto", "chrome", "speedscope", "folded", "pprof", "callgrind", "csv"]


def tracer(*arguments, status=0, **options):
    ended = subprocess.run([TOOL, *arguments], capture_output=True, timeout=LIMIT, **options)
    if status is not None and ended.returncode != status:
        raise AssertionError(f"tracer {' '.join(arguments)}: status {ended.returncode}\n{ended.stderr.decode(errors='replace')}")
    return ended


def figures(command, trace):
    return json.loads(tracer(command, "--json", trace).stdout)


@functools.cache
def compiled(name, *options):
    program = os.path.join(scratch(), name)
    run("gcc", "-O1", "-pthread", *options, "-o", program, os.path.join(HERE, name + ".c"))
    return program


def named(name):
    return os.path.join(scratch(), name)


def generated(name, *size):
    run(os.path.join(ROOT, ".build/release/generate-trace"), named(name), *size)
    return named(name)


def recorded(name, command, *arguments, options=("--no-children",)):
    """With what the kernel reports where it does."""
    tracer("record", "--quiet", "--force", *options, "-o", named(name), "--", command, *arguments)
    return named(name)


class AllTraces:
    """Each is made when a test first asks for it."""

    @functools.cached_property
    def synthetic(self):
        return generated("synthetic.trace", "4", "4", "3")

    @functools.cached_property
    def threads(self):
        return preloaded(named("threads.trace"), compiled("threads"))

    @functools.cached_property
    def python(self):
        return preloaded(named("python.trace"), PYTHON, "-c", "import json; print(len(json.dumps(list(range(500)))))")

    @functools.cached_property
    def git(self):
        return preloaded(named("git.trace"), "git", "--version")

    @property
    def real(self):
        return [self.threads, self.python, self.git]

    @functools.cached_property
    def marked(self):
        runner = os.path.join(ROOT, "Sources/Program/CTracerAPI/tracer_startup.c")
        return preloaded(named("marked.trace"), compiled("marked", "-I", os.path.join(ROOT, "CSupport/include"), runner))

    @functools.cached_property
    def switched(self):
        return recorded("switched.trace", compiled("threads"))

    @functools.cached_property
    def waiting(self):
        """A thread waits for a lock and is let go on; there are samples."""
        return recorded("waiting.trace", compiled("waiting"), options=("--no-children", "--sample"))

    @functools.cached_property
    def valued(self):
        """Calls with their arguments, results and errno; some fail, some have calls inside, some are of another thread."""
        script = ("import os, threading\nopen('/etc/passwd').read()\ntry: open('/nonexistent, \"quoted\"')\nexcept OSError: pass\n"
                  "t = threading.Thread(target=lambda: os.stat('/etc/group'))\nt.start(); t.join()")
        return recorded("valued.trace", PYTHON, "-I", "-S", "-c", script, options=("--no-children", "--cache", "--arguments", "*open*,read,close,*stat*,lseek*,malloc,free,write,pthread_create"))

    @functools.cached_property
    def feeding(self):
        """A process waits for a pipe that its child writes to, and for the child: as long as the recorder needs to look at who waits."""
        for milliseconds in ("100", "1000", "10000", "60000"):
            path = recorded(f"feeding.{milliseconds}.run", compiled("feeding"), milliseconds, options=())
            if {"pipe", "child"} <= {wait["kind"] for wait in figures("waits", path)["waits"]}:
                break
        return path


Traces = AllTraces()


@functools.cache
def report_of(trace):
    """{(name, module): (calls, self)}; symbols that have one name together, as an export shows them."""
    result = collections.defaultdict(lambda: [0, 0])
    report = figures("report", trace)
    for function in report["functions"]:
        row = result[function["name"], function["module"]]
        row[0] += function["calls"]
        row[1] += function["self_ns"]
    own = {("(own code)", module["name"]): (0, module["own_ns"]) for module in report["modules"] if module["own_ns"]}
    return {key: tuple(value) for key, value in result.items()}, own


@functools.cache
def trees(trace):
    return tracefile.Trace(trace).trees()


class ExportTest(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.directory = new_folder()
        self.addCleanup(shutil.rmtree, self.directory, True)

    def export(self, format, *traces, options=()):
        output = os.path.join(self.directory, os.path.basename(traces[0]) + "." + format)
        tracer("export", *traces, "--format", format, "-o", output, *options)
        return output

    def report(self, trace, has_own_code=True):
        functions, own = report_of(trace)
        return {**functions, **own} if has_own_code else functions

    @staticmethod
    def endings(trace):
        """How many calls were running at the end, and how many were left without returning. A thread that ended has
        left what was open."""
        other = trees(trace)
        info = figures("info", trace)
        running = sum(thread["open_frames"] for thread in info["threads"] if thread["ended_ns"] is None)
        return running, sum(other.unwound.values()) + sum(other.open.values()) - running

    def assertAgree(self, found, trace, rounding=0, has_own_code=False):
        """`found` is like a report; self times may differ by `rounding` nanoseconds for each call of the trace."""
        expected = self.report(trace, has_own_code)
        self.assertEqual({key: calls for key, (calls, _) in found.items()}, {key: calls for key, (calls, _) in expected.items()})
        allowed = rounding * sum(calls for calls, _ in expected.values())
        for key, (calls, time) in expected.items():
            self.assertLessEqual(abs(found[key][1] - time), allowed if rounding else 0, f"{key}: {found[key][1]} instead of {time} ns")


class Independent(ExportTest):
    def test_the_report_counts_what_an_independent_reader_counts(self):
        for trace in [Traces.synthetic, *Traces.real]:
            other = trees(trace)
            self.assertEqual(other.anomalies, [])
            self.assertEqual(sum(calls for calls, _ in self.report(trace).values()), sum(other.calls.values()))


@unittest.skipUnless(os.path.exists(PERFETTO) and shutil.which("node"), "no perfetto-query (PERFETTO_QUERY) or no node")
class Perfetto(ExportTest):
    is_installed = False
    HEALTH = "select name, value from stats where value > 0 and (severity != 'info' or name like '%error%' or name like '%drop%')"
    SELF = """
        with timed as (select id, parent_id, name, category, dur as length from slice),
        below as (select parent_id, sum(length) as length from timed where parent_id is not null group by parent_id)
        select name, category, count(*) as calls, sum(timed.length - ifnull(below.length, 0)) as self
        from timed left join below on below.parent_id = timed.id
        where category not in ('tracer', 'mark', 'start', 'initializer') group by name, category"""
    RUNNING = "select count(*) as n from slice join args using (arg_set_id) where args.string_value like 'still running at the end'"

    def query(self, path, *queries):
        with open(PERFETTO) as file:
            if not Perfetto.is_installed:
                fcntl.flock(file, fcntl.LOCK_EX)  # the first use installs packages, which two workers must not do at once
            ended = subprocess.run([PERFETTO, path, *[" ".join(query.split()) for query in queries]], capture_output=True, timeout=LIMIT, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        Perfetto.is_installed = True
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def check(self, path, trace, rounding):
        rows, running, health, unnamed, unfinished = self.query(
            path, self.SELF, self.RUNNING, self.HEALTH, "select count(*) as n from slice where name is null or name = ''",
            "select count(*) as n from slice where dur = -1 and category != 'initializer'")
        self.assertEqual(health, [])
        self.assertEqual(unnamed, [{"n": 0}])
        self.assertEqual(unfinished, [{"n": 0}])
        self.assertEqual(running, [{"n": self.endings(trace)[0]}])
        self.assertAgree({(row["name"], row["category"]): (row["calls"], row["self"]) for row in rows}, trace, rounding)

    def test_a_synthetic_trace_has_every_slice_and_every_nanosecond(self):
        self.check(self.export("perfetto", Traces.synthetic), Traces.synthetic, 0)

    def test_a_trace_of_threads_has_every_slice(self):
        self.check(self.export("perfetto", Traces.threads), Traces.threads, 1)

    def test_a_trace_of_python_has_every_slice(self):
        self.check(self.export("perfetto", Traces.python), Traces.python, 1)

    def test_a_trace_of_git_has_every_slice(self):
        self.check(self.export("perfetto", Traces.git), Traces.git, 1)

    def test_the_importer_of_chrome_json_finds_the_same(self):
        self.check(self.export("chrome", Traces.threads), Traces.threads, 1)

    def test_processes_and_threads_have_their_names_and_places_on_one_clock(self):
        output = self.export("perfetto", Traces.threads, Traces.git)
        threads, order = self.query(
            output,
            "select distinct process.name as process, thread.name as thread, thread.tid as tid from thread_track join thread using (utid) join process using (upid)",
            "select process.name as process, min(slice.ts) as start from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid) group by process.name order by start")
        found = {(row["process"], row["thread"], row["tid"]) for row in threads}
        expected = set()
        for trace, name in [(Traces.threads, "threads"), (Traces.git, "git")]:
            for thread in figures("report", trace)["threads"]:
                expected.add((name, thread["name"], thread["tid"]))
        self.assertEqual(found, expected)
        self.assertIn("sorter", {thread for _, thread, _ in found})
        # In the order they were recorded in: each when a test first asked for it.
        recorded_in_order = sorted([(Traces.threads, "threads"), (Traces.git, "git")], key=lambda one: os.stat(one[0]).st_mtime_ns)
        self.assertEqual([row["process"] for row in order], [name for _, name in recorded_in_order])

    def test_a_frame_left_by_pthread_exit_says_so(self):
        rows, = self.query(self.export("perfetto", Traces.threads),
                           "select slice.name as name from slice join args using (arg_set_id) where args.string_value like 'unwound%'")
        self.assertIn("qsort", {row["name"] for row in rows})

    def test_the_states_of_threads_are_those_of_tracer_threads(self):
        report = json.loads(tracer("threads", "--json", "--no-stages", Traces.switched).stdout)
        if not kernel_reports():
            self.skipTest("the kernel does not report switches here")
        self.assertIsNone(report["missing"])
        rows, wrong = self.query(
            self.export("perfetto", Traces.switched),
            "select tid, state, sum(dur) as ns from thread_state join thread using (utid) where dur > 0 group by tid, state",
            "select name from stats where severity = 'error' and value > 0 or name like 'generic_task%' and value > 0")
        self.assertEqual(wrong, [])
        found = {(row["tid"], row["state"]): row["ns"] for row in rows}
        for thread in report["threads"]:
            for state, key in (("Running", "running_ns"), ("R", "runnable_ns"), ("S", "waiting_ns")):
                self.assertAlmostEqual(found.get((thread["tid"], state), 0), thread[key], delta=1000, msg=(thread, state))

    def test_of_chosen_threads_there_are_their_slices_and_states_alone(self):
        report = figures("report", Traces.switched)
        others = {thread["tid"] for thread in report["threads"]} - {report["pid"]}
        self.assertGreater(len(others), 2)
        slices, states, wrong = self.query(
            self.export("perfetto", Traces.switched, options=("--thread", "main")),
            "select distinct tid from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)",
            "select distinct tid from thread_state join thread using (utid) where dur > 0",
            "select name from stats where severity = 'error' and value > 0")
        self.assertEqual(wrong, [])
        self.assertIn(report["pid"], {row["tid"] for row in slices})
        self.assertEqual({row["tid"] for row in slices + states} & others, set())

    @unittest.skipUnless(kernel_reports(), "the kernel does not report samples here")
    def test_samples_have_the_stacks_and_the_shares_of_tracer_samples(self):
        report = figures("samples", Traces.waiting)
        self.assertGreater(report["samples"], 0)
        leaves, threads, wrong = self.query(
            self.export("perfetto", Traces.waiting),
            """select frame.name as name, mapping.name as module, count(*) as n from perf_sample
               join stack_profile_callsite site on site.id = perf_sample.callsite_id join stack_profile_frame frame on frame.id = site.frame_id
               join stack_profile_mapping mapping on mapping.id = frame.mapping group by frame.name, mapping.name""",
            "select thread.tid as tid, count(*) as n from perf_sample join thread using (utid) group by tid", self.HEALTH)
        self.assertEqual(wrong, [])
        own = {(function["name"], function["module"]): round(function["self_share"] * report["samples"]) for function in report["functions"]}
        # The importer joins the parts of a mapping's path, each after a slash.
        self.assertEqual({(row["name"], row["module"].removeprefix("/")): row["n"] for row in leaves}, {key: count for key, count in own.items() if count})
        self.assertEqual({row["tid"]: row["n"] for row in threads}, {thread["tid"]: thread["samples"] for thread in report["threads"]})

    @unittest.skipUnless(kernel_reports(), "the kernel does not report switches here")
    def test_waits_have_a_lane_and_an_arrow_from_the_waker(self):
        waits = json.loads(tracer("waits", "--json", "--top", "0", Traces.waiting).stdout)["waits"]
        lanes, arrows, wrong = self.query(
            self.export("perfetto", Traces.waiting),
            """select thread.tid as tid, slice.name as kind, slice.ts as ts, slice.dur as ns from slice join thread_track on thread_track.id = slice.track_id
               join thread using (utid) where slice.category = 'wait' and slice.depth = 0""",
            """select source.name as act, source.ts as at, below.name as woken, wait.name as kind, wait.ts as ts, wait.dur as ns from flow
               join slice source on source.id = flow.slice_out join slice below on below.id = flow.slice_in join slice wait on wait.id = below.parent_id""",
            self.HEALTH)
        self.assertEqual(wrong, [])
        self.assertEqual(sorted((row["tid"], row["kind"]) for row in lanes), sorted((wait["tid"], wait["kind"]) for wait in waits))
        lengths = [wait["end_ns"] - wait["start_ns"] for wait in waits]
        for one, other in zip(sorted(row["ns"] for row in lanes), sorted(lengths)):
            self.assertAlmostEqual(one, other, delta=2)
        inside = [wait for wait in waits if wait["waker"] and wait["start_ns"] <= wait["waker"]["at_ns"] < wait["end_ns"]]
        self.assertTrue(any(wait["kind"] == "lock" for wait in inside)) # main lets go of it only when the other has come for it
        self.assertEqual(sorted(row["kind"] for row in arrows), sorted(wait["kind"] for wait in inside))
        for row in arrows:
            self.assertTrue(row["act"].startswith("wakes ") and row["woken"].startswith("woken by "), row)
            self.assertTrue(row["ts"] <= row["at"] < row["ts"] + row["ns"], row)

    @unittest.skipUnless(kernel_reports(), "the kernel does not report switches here")
    def test_an_arrow_leads_from_another_process_that_wrote_or_ended(self):
        arrows, wrong = self.query(
            self.export("perfetto", Traces.feeding),
            """select wait.name as kind, waits.upid as waits, acts.upid as acts, source.ts as at, wait.ts as ts, wait.dur as ns from flow
               join slice source on source.id = flow.slice_out join slice below on below.id = flow.slice_in join slice wait on wait.id = below.parent_id
               join thread_track on thread_track.id = wait.track_id join thread waits using (utid)
               join thread_track acting on acting.id = source.track_id join thread acts on acts.utid = acting.utid""",
            self.HEALTH)
        self.assertEqual(wrong, [])
        for kind in ("pipe", "child"):
            self.assertTrue(any(row["kind"] == kind and row["waits"] != row["acts"] for row in arrows), (kind, arrows))
        for row in arrows:
            self.assertTrue(row["ts"] <= row["at"] < row["ts"] + row["ns"], row)

    def test_marks_are_instants_in_the_spans_they_were_made_in(self):
        marks, spans, calls = self.query(
            self.export("perfetto", Traces.marked),
            """select mark.name as name, mark.dur as dur, span.name as span from slice mark left join slice span on span.id = mark.parent_id
               where mark.category = 'mark' order by mark.ts""",
            "select name, dur > 0 as lasts from slice where category = 'span'",
            """select count(*) as n from slice puts join slice span on span.id = puts.parent_id where puts.name = 'puts' and span.category = 'span'""")
        inside = {"name": "inside", "dur": 0, "span": "round"}
        self.assertEqual(marks, [{"name": "ready", "dur": 0, "span": None}, inside, inside, inside, {"name": "done", "dur": 0, "span": None}])
        self.assertEqual(spans, [{"name": "startup item config (stage 1)", "lasts": 1}] + [{"name": "round", "lasts": 1}] * 3)
        self.assertEqual(calls, [{"n": 3}])

    def test_the_stages_of_the_start_follow_each_other_and_main_has_all_marks(self):
        stages, outside, moments = self.query(
            self.export("perfetto", Traces.marked),
            "select name, ts, dur from slice where category = 'start' and dur > 0 order by ts",
            """select count(*) as n from slice mark, slice main where mark.category = 'mark' and main.category = 'start' and main.name = 'main'
               and not (mark.ts between main.ts and main.ts + main.dur)""",
            "select name from slice where category = 'start' and dur = 0 order by ts")
        self.assertEqual([stage["name"] for stage in stages if stage["name"] not in ("exec", "loader")],
                         ["process created", "tracer's own start", "initializers", "main", "after main", "exit"])
        for stage, following in zip(stages, stages[1:]):
            self.assertEqual(stage["ts"] + stage["dur"], following["ts"], stage["name"])
        self.assertEqual(outside, [{"n": 0}])
        self.assertIn({"name": "ready: the program's mark"}, moments)


class Chrome(ExportTest):
    def figures(self, path):
        events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
        def nanoseconds(microseconds):
            return round(microseconds * 1000)
        found = collections.defaultdict(lambda: [0, 0])
        stacks = collections.defaultdict(list)
        end = max(nanoseconds(event["ts"]) for event in events if "ts" in event)
        latest = {}
        for event in events:
            if event["ph"] == "M" or event.get("cat") in ("tracer", "mark"):
                continue
            thread, time = (event["pid"], event["tid"]), nanoseconds(event["ts"])
            self.assertGreaterEqual(time, latest.get(thread, time))
            latest[thread] = time + nanoseconds(event.get("dur", 0))
            stack = stacks[thread]
            key = event.get("name"), event.get("cat")
            if event["ph"] == "B":
                found[key][0] += 1
                stack.append((key, time))
            elif event["ph"] == "E":
                key, start = stack.pop()
                self.add(found, stack, key, time - start)
            elif event["ph"] == "X":
                found[key][0] += 1
                self.add(found, stack, key, nanoseconds(event["dur"]))
            else:
                self.assertEqual(event["ph"], "i")
                found[key][0] += 1
        for stack in stacks.values():
            while stack:
                key, start = stack.pop()
                self.add(found, stack, key, end - start)
        return {key: tuple(value) for key, value in found.items()}

    @staticmethod
    def add(found, stack, key, length):
        found[key][1] += length
        if stack:
            found[stack[-1][0]][1] -= length

    def test_json_has_every_call_and_every_nanosecond(self):
        self.assertAgree(self.figures(self.export("chrome", Traces.synthetic)), Traces.synthetic)

    def test_real_traces(self):
        for trace in Traces.real:
            with self.subTest(os.path.basename(trace)):
                self.assertAgree(self.figures(self.export("chrome", trace)), trace, 1)

    def test_marks_are_instants_in_the_spans_they_were_made_in(self):
        events = json.loads(pathlib.Path(self.export("chrome", Traces.marked)).read_text())["traceEvents"]
        found, open_spans = [], []
        for event in sorted((event for event in events if "ts" in event and event.get("cat") != "tracer"), key=lambda event: event["ts"]):
            if event["ph"] == "B":
                open_spans.append((event["name"], event["cat"]))
            elif event["ph"] == "E":
                open_spans.pop()
            elif event["ph"] == "i" and event["cat"] == "mark":
                self.assertEqual(event["s"], "t") # scope: its thread
                found.append((event["name"], open_spans[-1] if open_spans else None))
        inside = ("inside", ("round", "span"))
        self.assertEqual(found, [("ready", None), inside, inside, inside, ("done", None)])


def text_of(name, value):
    """A value of `replay --json` as tables show it; strings without quotes."""
    if isinstance(value, dict):
        return "?"
    return "NULL" if value is None else (f"0{value:o}" if value else "0") if name == "mode" and isinstance(value, int) else str(value)


def valued_calls():
    """How often each call with values was made: its name, arguments, result and errno as texts."""
    calls = [json.loads(line) for line in tracer("replay", "--json", Traces.valued).stdout.splitlines()]
    found = collections.Counter(
        (call["name"], *sorted((name, text_of(name, value)) for name, value in call.get("arguments", {}).items()),
         *((key, text_of(key, call[key])) for key in ("errno", "result") if key in call))
        for call in calls if "arguments" in call or "result" in call)
    assert len(found) > 100 and any(("errno", "ENOENT") in call for call in found) and any('/nonexistent, "quoted"' in str(call) for call in found), found
    return found


class Values(ExportTest):
    """Arguments, results and errno, as `replay` has them."""
    def assertSame(self, found):
        wanted = valued_calls()
        self.assertEqual(len(list((found - wanted).elements())), 0, list((found - wanted))[:3])
        self.assertEqual(len(list((wanted - found).elements())), 0, list((wanted - found))[:3])

    def test_chrome_has_them_as_args(self):
        open_calls, found = collections.defaultdict(list), collections.Counter()

        def end(name, values):
            arguments = sorted((key, text_of(key, value)) for key, value in values.items() if key not in ("began", "ended", "result", "errno"))
            if arguments or "result" in values:
                found[(name, *arguments, *((key, text_of(key, values[key])) for key in ("errno", "result") if key in values))] += 1
        with open(self.export("chrome", Traces.valued)) as file:
            events = json.load(file)["traceEvents"]
        for event in events:
            if event["ph"] == "B":
                open_calls[event["tid"]].append((event["name"], event.get("args", {})))
            elif event["ph"] == "E":
                name, values = open_calls[event["tid"]].pop()
                end(name, {**values, **event.get("args", {})})
            elif event["ph"] == "X" or event["ph"] == "i" and "args" in event and event["cat"] != "tracer":
                end(event["name"], event.get("args", {}))
        self.assertSame(found)

    def test_csv_has_them_in_columns(self):
        found = collections.Counter()
        with open(self.export("csv", Traces.valued), newline="") as file:
            for row in csv.DictReader(file):
                self.assertNotIn(None, row.values())
                if row["arguments"] or row["result"]:
                    arguments = sorted((name, text_of(name, value)) for name, value in json.loads(row["arguments"] or "{}").items())
                    found[(row["function"], *arguments, *((key, row[key]) for key in ("errno", "result") if row[key]))] += 1
        self.assertSame(found)

    def test_a_window_has_those_of_its_calls(self):
        with open(self.export("csv", Traces.valued), newline="") as file:
            whole = {(row["tid"], row["start_ns"], row["function"]): row["arguments"] for row in csv.DictReader(file)}
        starts = sorted(int(start) for _, start, _ in whole)  # a fifth of the calls: on a busy machine a fifth of the time may have none
        first, last = (f"{starts[len(starts) * part // 10] / 1e9:.9f}" for part in (4, 6))
        with open(self.export("csv", Traces.valued, options=("--force", "--from", first, "--to", last)), newline="") as file:
            part = [row for row in csv.DictReader(file) if row["ended"] != "part"]
        self.assertGreater(len(part), 10)
        for row in part:
            self.assertEqual(row["arguments"], whole[row["tid"], row["start_ns"], row["function"]])

    @unittest.skipUnless(os.path.exists(PERFETTO) and shutil.which("node"), "no perfetto-query (PERFETTO_QUERY) or no node")
    def test_perfetto_has_them_as_args(self):
        rows, health = Perfetto.query(
            self, self.export("perfetto", Traces.valued),
            """select s.id as id, s.name as name, a.flat_key as key, a.string_value as text, a.int_value as number from slice s join args a
            using(arg_set_id) where a.flat_key glob 'debug.*' and s.category != 'tracer' order by s.id""", Perfetto.HEALTH)
        self.assertEqual(health, [])
        slices, names = collections.defaultdict(dict), {name for name, *_ in valued_calls()}
        for row in (row for row in rows if row["name"] in names):  # initializers and waits have args of their own
            slices[row["id"], row["name"]][row["key"].removeprefix("debug.")] = row["text"] if row["text"] is not None else str(row["number"])
        found = collections.Counter()
        for (_, name), values in slices.items():
            arguments = sorted((key, value) for key, value in values.items() if key not in ("began", "ended", "result", "errno"))
            if arguments or "result" in values:
                found[(name, *arguments, *((key, values[key]) for key in ("errno", "result") if key in values))] += 1
        self.assertSame(found)


class Speedscope(ExportTest):
    def figures(self, path):
        """Checks the file against https://www.speedscope.app/file-format-schema.json and what its importer demands:
        events in order of time, each C for the frame that was opened last."""
        whole = json.loads(pathlib.Path(path).read_text())
        self.assertEqual(whole["$schema"], "https://www.speedscope.app/file-format-schema.json")
        self.assertLessEqual(set(whole), {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"})
        self.assertEqual(set(whole["shared"]), {"frames"})
        frames = whole["shared"]["frames"]
        for frame in frames:
            self.assertIsInstance(frame["name"], str)
            self.assertLessEqual(set(frame), {"name", "file", "line", "col"})
        found = collections.defaultdict(lambda: [0, 0])
        for profile in whole["profiles"]:
            self.assertEqual(set(profile), {"type", "name", "unit", "startValue", "endValue", "events"})
            self.assertEqual((profile["type"], profile["unit"]), ("evented", "nanoseconds"))
            stack, now = [], profile["startValue"]
            for event in profile["events"]:
                self.assertEqual(set(event), {"type", "frame", "at"})
                self.assertIn(event["frame"], range(len(frames)))
                self.assertGreaterEqual(event["at"], now)
                now = event["at"]
                if event["type"] == "O":
                    found[event["frame"]][0] += 1
                    stack.append((event["frame"], now))
                else:
                    self.assertEqual(event["type"], "C")
                    frame, start = stack.pop()
                    self.assertEqual(frame, event["frame"])
                    found[frame][1] += now - start
                    if stack:
                        found[stack[-1][0]][1] -= now - start
            self.assertEqual(stack, [])
            self.assertLessEqual(now, profile["endValue"])
        result = collections.defaultdict(lambda: (0, 0))
        self.notes = collections.Counter()
        for number, (calls, time) in found.items():
            name, module = frames[number]["name"], frames[number].get("file")
            if module is None:
                self.notes[name] += calls
                continue
            key = name.removesuffix(" [entered]"), module
            result[key] = (result[key][0] + calls, result[key][1] + time)
        return dict(result)

    def test_events_nest_and_have_every_nanosecond(self):
        self.assertAgree(self.figures(self.export("speedscope", Traces.synthetic)), Traces.synthetic)

    def test_real_traces(self):
        for trace in Traces.real:
            with self.subTest(os.path.basename(trace)):
                self.assertAgree(self.figures(self.export("speedscope", trace)), trace, 1)
                found = self.notes["[still running at the end]"], self.notes["[unwound: left without returning]"]
                self.assertEqual(found, self.endings(trace))

    def test_marks_are_frames_of_no_length_in_the_spans_they_were_made_in(self):
        whole = json.loads(pathlib.Path(self.export("speedscope", Traces.marked)).read_text())
        names = [frame["name"] for frame in whole["shared"]["frames"]]
        found, stack = [], []
        for event in whole["profiles"][0]["events"]:
            name = names[event["frame"]]
            if event["type"] == "C":
                self.assertEqual(stack.pop()[0], name)
                if found and found[-1][:2] == (name, None):
                    found[-1] = name, event["at"] - found[-1][2], found[-1][3]
                continue
            if name.removesuffix(" [entered]") in ("ready", "inside", "done"):
                found.append((name, None, event["at"], stack[-1][0] if stack else None))
            stack.append((name, event["at"]))
        inside = ("inside [entered]", 0, "round")
        self.assertEqual(found, [("ready [entered]", 0, None), inside, inside, inside, ("done [entered]", 0, None)])


class CSV(ExportTest):
    def test_every_call_is_a_row(self):
        for trace, rounding in [(Traces.synthetic, 0), *((trace, 1) for trace in Traces.real)]:
            with self.subTest(os.path.basename(trace)), open(self.export("csv", trace), newline="") as file:
                found = collections.defaultdict(lambda: [0, 0])
                endings = collections.Counter()
                for row in csv.DictReader(file):
                    endings[row["ended"]] += 1
                    found[row["function"], row["module"]][0] += 1
                    found[row["function"], row["module"]][1] += int(row["self_ns"] or 0)
                self.assertAgree({key: tuple(value) for key, value in found.items()}, trace, rounding)
                self.assertEqual((endings["open"], endings["unwound"]), self.endings(trace))
                self.assertEqual(endings["entered"], sum(trees(trace).tail.values()))

    def rows(self, *options):
        with open(self.export("csv", Traces.threads, options=("--force", *options)), newline="") as file:
            return list(csv.DictReader(file))

    def test_of_chosen_threads_there_are_their_rows_alone(self):
        whole = self.rows()
        tids = {row["tid"] for row in whole}
        self.assertGreater(len(tids), 3)
        for tid in tids:
            self.assertEqual(self.rows("--thread", tid), [row for row in whole if row["tid"] == tid])
        self.assertEqual(self.rows("--thread", "sort*"), [row for row in whole if row["thread"].startswith("sort")])


def without_file(name):
    """Calls of dlopen that brought a file are a function each, dlopen(libplug.so); in a report they are one row."""
    return re.sub(r"(dlm?open)\([^()]*\)$", r"\1", name)


def without_module(name):
    """A name that several modules have ends with the module in callgrind's format: main (git)."""
    return re.sub(r" \([^ ()]*\)$", "", name)


class HostileNames(ExportTest):
    """Functions whose names end rows, scripts and fields, and speak to the terminal: from a plan, and from the program's file."""
    NAMES = {"first": "\033[31mred", "second": "line1\nline2", "third": "</script><script>alert(1)</script>", "fourth": 'quote"\u0301,\u202etext'}

    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        program = os.path.join(cls.folder, "p")
        source = "".join(f"__attribute__((noinline)) int {name}(int n) {{ return n + rand() % 2; }}\n" for name in cls.NAMES)
        with open(program + ".c", "w") as file:
            file.write("#include <stdlib.h>\n" + source + "int main(void) { return " + " + ".join(f"{name}(1)" for name in cls.NAMES) + " < 0; }\n")
        run("gcc", "-O1", "-o", program, program + ".c")
        run("objcopy", *[f"--redefine-sym={name}={other}" for name, other in cls.NAMES.items()], program)
        cls.trace, cls.program = os.path.join(cls.folder, "t.trace"), program
        run(TOOL, "record", "--quiet", "--functions", "*", "-o", cls.trace, "--", program)

    def outputs(self, cache):
        """What each command prints or writes, by its words."""
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "TRACER_CACHE": "on"}
        for words in [["report", "--top", "0"], ["report", "--csv"], ["report", "--json"], ["tree", "--min-share", "0"], ["callers", "*red*"],
                      ["replay"], ["coverage", "--all"], ["report", "--by", "caller", "--top", "0"]]:
            command = [words[0], self.trace, *words[1:]]
            yield words, tracer(*command, env=environment).stdout
        yield ["plan"], tracer("plan", self.program, "--all", env=environment).stdout
        for format in ["chrome", "speedscope", "folded", "callgrind", "csv"]:
            output = os.path.join(self.folder, "out")
            tracer("export", self.trace, "--format", format, "--force", "-o", output, env=environment)
            yield ["export", format], pathlib.Path(output).read_bytes()
        page = os.path.join(self.folder, "page.html")
        tracer("view", self.trace, "-o", page, "--force", env=environment)
        yield ["view"], pathlib.Path(page).read_bytes()

    def test_no_output_has_what_names_must_not_have(self):
        self.assertTrue(self.NAMES)
        for cache in [os.path.join(scratch(), "cache"), self.folder]: # with the plan, and without
            seen = 0
            for words, output in self.outputs(cache):
                with self.subTest(" ".join(words), cache=cache):
                    text = output.decode()
                    self.assertNotRegex(text, r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
                    self.assertNotRegex(text, r"(?m)^line2|line1$", "a name is one row's")
                    if words == ["view"]:
                        self.assertNotIn("<script>alert", text)
                    seen += "line1\ufffdline2" in text
            self.assertGreater(seen, 8, "the names are there")

    def test_paths_are_shown_without_what_they_must_not_have(self):
        folder = os.path.join(self.folder, "folder\033[32m\nline2")
        os.mkdir(folder)
        program, trace = shutil.copy(self.program, os.path.join(folder, "p\033[35m\nline2")), os.path.join(folder, "t.trace")
        run(TOOL, "record", "--quiet", "-o", trace, "--", program)
        for words in [["info", trace], ["report", trace], ["libs", trace], ["startup", trace], ["diff", trace, trace], ["plan", program]]:
            with self.subTest(words[0]):
                text = tracer(*words).stdout.decode()
                self.assertNotRegex(text, r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
                self.assertNotRegex(text, r"(?m)^line2")
                if words[0] != "startup": # its text does not name the program
                    self.assertIn("p\ufffd[35m\ufffdline2", text)

    def test_rows_are_whole(self):
        folded = pathlib.Path(self.export("folded", self.trace)).read_text()
        self.assertTrue(all(re.search(r" [0-9]+$", line) for line in folded.splitlines()))
        with open(self.export("csv", self.trace), newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})
        self.assertIn('quote"\u0301,\ufffdtext', [row[rows[0].index("function")] for row in rows])


class Folded(ExportTest):
    def stacks(self, path):
        with open(path) as file:
            for line in file:
                stack, _, weight = line.rstrip("\n").rpartition(" ")
                yield stack.split(";"), int(weight)

    def test_self_times_add_up_to_the_nanosecond(self):
        for trace in [Traces.synthetic, *Traces.real]:
            with self.subTest(os.path.basename(trace)):
                found = collections.Counter()
                for stack, weight in self.stacks(self.export("folded", trace)):
                    self.assertGreater(len(stack), 2) # process, thread, function
                    found[without_file(stack[-1])] += weight
                times = {f"{module}`{name}".replace(";", ":"): time for (name, module), (_, time) in self.report(trace).items() if time > 0}
                self.assertEqual(dict(found), times)

    def test_a_total_is_what_a_path_and_all_below_it_took(self):
        own, below = collections.Counter(), collections.Counter()
        for stack, weight in self.stacks(self.export("folded", Traces.threads)):
            for length in range(3, len(stack) + 1):
                below[tuple(stack[:length])] += weight
        for stack, weight in self.stacks(self.export("folded", Traces.threads, options=["--weight", "total", "--force"])):
            own[tuple(stack)] += weight
        self.assertEqual(set(own), set(below))
        for stack, weight in own.items(): # each function of each path is rounded by itself
            self.assertLessEqual(abs(weight - below[stack]), len(own), stack)


@unittest.skipUnless(shutil.which("go"), "no go")
class Pprof(ExportTest):
    def pprof(self, *arguments):
        environment = dict(os.environ, PPROF_TMPDIR=self.directory, HOME=self.directory)
        ended = subprocess.run(["go", "tool", "pprof", *arguments], capture_output=True, text=True, timeout=LIMIT, env=environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_samples_add_up_to_the_nanosecond(self):
        for trace in [Traces.synthetic, *Traces.real]:
            with self.subTest(os.path.basename(trace)):
                raw = self.pprof("-raw", self.export("pprof", trace))
                head, rest = raw.split("Locations\n")
                locations, mappings = rest.split("Mappings\n")
                self.assertIn("calls/count time/nanoseconds", head)
                modules = {}
                for number, path in re.findall(r"^(\d+): \S+/\S+/\S+ (\S*)", mappings, re.MULTILINE):
                    modules[number] = os.path.basename(path)
                functions = {}
                for line in locations.splitlines():
                    number, module, name = re.fullmatch(r"\s*(\d+): 0x0 (?:M=(\d+) )?(.*?) :0(?::0)? s=0(?:\(.*\))?", line).groups()
                    # The synthetic trace has no module for its program.
                    program = "synthetic" if name == "(own code)" else "?"
                    functions[number] = without_file(name), modules[module] if module else program
                found = collections.defaultdict(lambda: [0, 0])
                states = "running/nanoseconds waiting/nanoseconds runnable/nanoseconds" in head
                self.assertEqual(states, "self_running_ns" in figures("report", trace)["functions"][0])
                for calls, time, parts, leaf in re.findall(r"^\s*(\d+)\s+(-?\d+)((?: +-?\d+)*): (\d+)", head, re.MULTILINE):
                    found[functions[leaf]][0] += int(calls)
                    found[functions[leaf]][1] += int(time)
                    if states:
                        self.assertEqual(sum(map(int, parts.split())), int(time), parts)
                self.assertAgree({key: tuple(value) for key, value in found.items()}, trace, has_own_code=True)
                used = {module for _, module in self.report(trace)} # pprof drops the others
                build_ids = {module["build_id"] for module in figures("info", trace)["modules"]
                             if module["build_id"] and os.path.basename(module["path"]) in used}
                for build_id in build_ids:
                    self.assertIn(build_id, mappings)

    def test_pprof_shows_calls_and_threads(self):
        output = self.export("pprof", Traces.threads)
        top = self.pprof("-top", "-nodefraction=0", "-sample_index=calls", output)
        calls = {}
        for (name, _), (count, _) in self.report(Traces.threads).items():
            calls[name] = calls.get(name, 0) + count
        self.assertRegex(top, rf"(?m)^\s*{calls['qsort']}\s.* qsort$")
        self.assertIn("sorter", self.pprof("-tags", output))


@unittest.skipUnless(shutil.which("callgrind_annotate"), "no callgrind_annotate (valgrind)")
class Callgrind(ExportTest):
    def annotate(self, path, *options):
        ended = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", *options, path], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def annotated(self, path, *options):
        """{(name, module): time}. A name that several modules have ends with its module."""
        found = {}
        for time, name, module in re.findall(r"^ *(-?[\d,]+)  \?\?\?:(.*) \[(.*)\]$", self.annotate(path, *options), re.MULTILINE):
            found[without_module(name), module] = int(time.replace(",", ""))
        return found

    def test_callgrind_annotate_finds_every_nanosecond_and_every_call(self):
        for trace in [Traces.synthetic, *Traces.real]:
            with self.subTest(os.path.basename(trace)):
                path = self.export("callgrind", trace)
                found = collections.Counter()
                for (name, module), time in self.annotated(path).items():
                    found[without_file(name), module] += time
                expected = {key: time for key, (_, time) in self.report(trace).items()}
                self.assertEqual({key: time for key, time in found.items() if time}, {key: time for key, time in expected.items() if time})
                total = re.search(r"^ *([\d,]+)  PROGRAM TOTALS$", self.annotate(path), re.MULTILINE)[1]
                self.assertEqual(int(total.replace(",", "")), sum(expected.values()))
                calls = collections.Counter()
                names, callee = {}, None
                with open(path) as file:
                    for line in file:
                        match = re.match(r"c?fn=\((\d+)\)(?: (.*))?$", line)
                        if match:
                            names[match[1]] = without_module(match[2]) if match[2] else names[match[1]]
                            callee = names[match[1]]
                        elif line.startswith("calls="):
                            calls[without_file(callee)] += int(line[6:].split()[0])
                counts = collections.Counter()
                for (name, _), (count, _) in self.report(trace).items():
                    counts[name] += count
                self.assertEqual(calls.pop("(own code)"), len([t for t in figures("report", trace)["threads"] if t["own_ns"]]))
                counts.pop("(own code)")
                self.assertEqual(calls, counts)

    def test_each_call_is_below_its_caller(self):
        """The calls of one function from another are those that an independent reader finds; from a thread's title, all others."""
        for trace in Traces.real:
            with self.subTest(os.path.basename(trace)), open(self.export("callgrind", trace)) as file:
                found, names, caller = collections.Counter(), {}, None
                for line in file:
                    match = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line)
                    if match:
                        name = names.setdefault(match[2], match[3] and without_module(match[3]))
                        caller, callee = (caller, name) if match[1] else (name, None)
                    elif line.startswith("calls=") and ": thread " not in caller:
                        found[without_file(caller), without_file(callee)] += int(line[6:].split()[0])
                expected = collections.Counter((node.name, call.name) for node in tracefile.Trace(trace).trees().nodes() for call in node.children)
                self.assertTrue(expected)
                self.assertEqual(found, expected)

    def test_callers_are_shown(self):
        self.assertRegex(self.annotate(self.export("callgrind", Traces.threads), "--tree=caller"), r"< .*thread sorter")

    def test_recursion_is_inclusive_once(self):
        """The inclusive time of a function that calls itself, directly or by way of another one, is its total in the report."""
        trace, program = named("turns.trace"), compiled("turns", "-fno-optimize-sibling-calls", "-fno-inline")
        run(TOOL, "record", "--quiet", "--force", "--no-children", "--functions", "*", "-o", trace, "--", program)
        rows = figures("report", trace)["functions"]
        totals, calls = {row["name"]: row["total_ns"] for row in rows}, {row["name"]: row["calls"] for row in rows}
        self.assertEqual({name: calls[name] for name in ["itself", "ping", "pong"]}, {"itself": 30, "ping": 20, "pong": 20})
        path = self.export("callgrind", trace)
        inclusive = {name: time for (name, _), time in self.annotated(path, "--inclusive=yes").items()}
        for name in ["main", "itself", "ping", "pong"]:
            # Both are rounded to nanoseconds: the tree's as the sum of what it consists of, once for each function.
            self.assertAlmostEqual(inclusive[name], totals[name], delta=len(rows), msg=name)
        self.assertLessEqual(max(inclusive.values()), sum(time for _, time in self.report(trace).values()))

    def test_processes_of_several_programs_keep_their_own_code_apart(self):
        trace = recorded("shell.run", "/bin/sh", "-c", "/bin/true; /bin/cat /dev/null; :", options=())
        own = {module["name"]: module["own_ns"] for module in figures("report", trace)["modules"] if module["own_ns"]}
        self.assertGreater(len(own), 1)
        found = {module: time for (name, module), time in self.annotated(self.export("callgrind", trace)).items() if name == "(own code)"}
        self.assertEqual(found, own)


class Output(ExportTest):
    def path(self, name="out"):
        return os.path.join(self.directory, name)

    def refused(self, *arguments, status, saying, **options):
        ended = tracer("export", *arguments, status=status, **options)
        self.assertEqual(ended.stdout, b"")
        self.assertRegex(ended.stderr.decode(), saying)
        return ended

    def test_an_unknown_format_names_the_known_ones(self):
        error = self.refused(Traces.git, "--format", "svg", status=2, saying="svg").stderr.decode()
        for format in FORMATS:
            self.assertIn(format, error)

    def test_what_exists_is_kept_without_force(self):
        for name in ["out", "link"]:
            pathlib.Path(self.path()).write_text("mine")
            if name == "link" and not os.path.islink(self.path("link")):
                os.symlink("out", self.path("link"))
            error = self.refused(Traces.git, "--format", "csv", "-o", self.path(name), status=2, saying="exists.*--force")
            self.assertEqual(len(error.stderr.splitlines()), 1)
            self.assertEqual(pathlib.Path(self.path()).read_text(), "mine")
            tracer("export", Traces.git, "--format", "csv", "-o", self.path(name), "--force")
            self.assertTrue(pathlib.Path(self.path()).read_text().startswith("process,"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(sorted(os.listdir(self.directory)), ["link", "out"])

    def test_without_a_name_it_is_the_traces_own(self):
        ended = tracer("export", Traces.git, "--format", "folded", cwd=self.directory)
        self.assertEqual(os.listdir(self.directory), ["git.folded"])
        self.assertIn(b"git.folded", ended.stderr)
        self.assertEqual(ended.stdout, b"")

    def test_a_directory_is_refused(self):
        for options in [[], ["--force"]]:
            self.refused(Traces.git, "--format", "csv", "-o", self.directory, *options, status=2, saying="directory")
        self.refused(Traces.git, "--format", "csv", "-o", self.path("none/out"), status=1, saying="No such file")

    def test_a_device_is_written_and_stays_one(self):
        tracer("export", Traces.git, "--format", "csv", "-o", "/dev/null", "--force")
        self.assertFalse(os.path.isfile("/dev/null"))
        self.refused(Traces.git, "--format", "csv", "-o", "/dev/full", status=1, saying="No space left")

    def test_a_file_that_may_not_grow_leaves_nothing_and_spoils_nothing(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for format in ["perfetto", "chrome", "speedscope", "csv"]:
            with self.subTest(format):
                self.refused(Traces.synthetic, "--format", format, "-o", self.path(), status=1, saying="cannot write .*File too large", preexec_fn=limit)
                self.assertEqual(os.listdir(self.directory), [])
        pathlib.Path(self.path()).write_text("mine")
        self.refused(Traces.synthetic, "--format", "csv", "-o", self.path(), "--force", status=1, saying="cannot write", preexec_fn=limit)
        self.assertEqual(os.listdir(self.directory), ["out"])
        self.assertEqual(pathlib.Path(self.path()).read_text(), "mine")

    def test_ctrl_c_leaves_nothing(self):
        large = generated("large.trace", "64", "1", "0")
        # A shell without job control starts what is in the background with the signal ignored, and that is inherited.
        process = subprocess.Popen([TOOL, "export", large, "--format", "chrome", "-o", self.path()], stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        while not os.listdir(self.directory):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT), -signal.SIGINT)
        self.assertEqual(os.listdir(self.directory), [])
        os.unlink(large)

    def test_an_ignored_hangup_does_not_end_it(self):
        process = subprocess.Popen([TOOL, "export", Traces.synthetic, "--format", "chrome", "-o", self.path()],
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        while not os.listdir(self.directory):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(LIMIT), 0)
        self.assertEqual(os.listdir(self.directory), ["out"])

    def test_a_pipe_whose_reader_has_gone_ends_it_quietly(self):
        process = subprocess.Popen([TOOL, "export", Traces.synthetic, "--format", "csv", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertIn(process.wait(LIMIT), (-signal.SIGPIPE, 128 + signal.SIGPIPE))

    def test_standard_output_is_the_same_as_the_file(self):
        for format in FORMATS:
            with self.subTest(format), open(self.export(format, Traces.git), "rb") as file:
                self.assertEqual(tracer("export", Traces.git, "--format", format, "-o", "-").stdout, file.read())

    def test_of_a_cut_trace_the_good_part_is_exported_and_the_rest_is_said(self):
        cut = self.path("cut.trace")
        pathlib.Path(cut).write_bytes(pathlib.Path(Traces.synthetic).read_bytes()[:2_500_000])
        for format in FORMATS:
            with self.subTest(format):
                ended = tracer("export", cut, "--format", format, "-o", self.path(format), status=1)
                self.assertRegex(ended.stderr.decode(), "cut")
                self.assertGreater(os.path.getsize(self.path(format)), 1000)

    def test_what_is_no_trace_is_said_before_a_file_is_made(self):
        self.refused(__file__, "--format", "csv", "-o", self.path(), status=1, saying="not a trace")
        self.assertEqual(os.listdir(self.directory), [])


class Open(ExportTest):
    def serve(self, interrupt=signal.SIG_DFL):
        process = subprocess.Popen([TOOL, "open", Traces.git, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, interrupt))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()
        match = re.fullmatch(r"https://ui\.perfetto\.dev/#!/\?url=http://127\.0\.0\.1:(\d+)(/\S+)", address)
        self.assertTrue(match, address)
        return process, int(match[1]), match[2]

    def ask(self, port, method, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        self.addCleanup(connection.close)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()

    def test_the_viewer_may_fetch_the_trace_and_nobody_else(self):
        process, port, path = self.serve()
        expected = pathlib.Path(self.export("perfetto", Traces.git)).read_bytes()
        for _ in range(2):
            response, body = self.ask(port, "GET", path, Origin="https://ui.perfetto.dev")
            self.assertEqual((response.status, body), (200, expected))
            self.assertEqual(response.getheader("Access-Control-Allow-Origin"), "https://ui.perfetto.dev")
        response, body = self.ask(port, "HEAD", path)
        self.assertEqual((response.status, response.getheader("Content-Length")), (200, str(len(expected))))
        self.assertEqual(self.ask(port, "OPTIONS", path)[0].status, 204)
        self.assertEqual(self.ask(port, "GET", "/etc/passwd")[0].status, 404)
        self.assertRegex(path, "^/[0-9a-f]{32}/[^/]+$")
        self.assertEqual(self.ask(port, "GET", "/" + path.split("/")[2])[0].status, 404)
        self.assertNotEqual(self.serve()[2].split("/")[1], path.split("/")[1])
        self.assertEqual(self.ask(port, "POST", path)[0].status, 405)
        self.assertEqual(self.ask(port, "GET", path, Host="evil.example:%d" % port)[0].status, 421)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT), 0)

    def test_ctrl_c_ends_it_however_early_it_comes(self):
        for _ in range(20):
            process, _, _ = self.serve()
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(LIMIT), 0)

    def test_an_ignored_ctrl_c_does_not_end_it(self):
        process, port, path = self.serve(interrupt=signal.SIG_IGN)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ask(port, "GET", path)[0].status, 200)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT), 0)

    def test_a_port_that_is_taken_is_said(self):
        _, port, _ = self.serve()
        ended = tracer("open", Traces.git, "--port", str(port), status=1)
        self.assertRegex(ended.stderr.decode(), f"port {port}.*another")
