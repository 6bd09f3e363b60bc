"""scripts/compat --external and --torture find what differs, and nothing else: on suites made for the purpose, whose tests look for the
preloaded library themselves. Needs a C compiler; no build, no package."""
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from unittest import mock

from recorded_programs import LIMIT, new_folder

HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def modules_of(*folders):
    """Modules by their plain names, of these folders: other tests of this process have a `run` and a `table`, too."""
    path, names = sys.path[:], {path.stem for folder in folders for path in pathlib.Path(folder).glob("*.py")}
    others = {name: sys.modules.pop(name) for name in names - {__name__} if name in sys.modules}
    sys.path[:0] = folders
    try:
        yield
    finally:
        for name in names - {"torture", __name__}:  # the processes of torture find their functions by its name
            sys.modules.pop(name, None)
        sys.modules.update(others)
        sys.path[:] = path


with modules_of(HERE, *(os.path.join(os.path.dirname(HERE), name) for name in ("Compatibility", "EndToEnd"))):
    import plans
    import run
    import sources
    import suites.gcc
    import torture
    import trial
    from trial import Suite, Unavailable
    SUITES = run.every()


def shell(name, script, **more):
    return trial.Test(name, ["sh", "-c", script], **more)


def is_gone(pid):
    """Ended, or killed and about to end; whoever has inherited it may not have waited for it."""
    deadline = time.monotonic() + 60  # if it is not killed, it takes longer to end
    while time.monotonic() < deadline:
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def keep_signals(test):
    """Restores this process's signal handlers when the test has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        test.addCleanup(signal.signal, number, signal.getsignal(number))


TRACED = '[ -n "$LD_PRELOAD" ]'
# Counts the runs of a test in a file beside its own folder: $n is 1 in the first one.
COUNTED = "echo >> {counts}/{name}; n=$(wc -l < {counts}/{name}); "
CASES = r"""
for wanted in ${{*:-one two three}}; do
    outcome=ok
    case $wanted in
        two) {two} ;;
        three) {three} ;;
    esac
    echo "[\"$wanted\", \"$outcome\"]" >> {{cases}}
done
"""


class Runs(unittest.TestCase):
    def setUp(self):
        keep_signals(self)
        self.folder = new_folder()
        self.agent = os.path.join(self.folder, "libtracer.so")
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", self.agent], check=True)
        self.counts = os.path.join(self.folder, "counts")
        os.mkdir(self.counts)

    def counted(self, name, script, **more):
        return shell(name, COUNTED.replace("{counts}", self.counts).replace("{name}", name) + script, **more)

    def number(self, name):
        with open(os.path.join(self.counts, name)) as file:
            return len(file.readlines())

    def external(self, *suites, arguments=()):
        """(status, what is printed, results as JSON)."""
        results = os.path.join(self.folder, "results.json")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = run.main(["--agent", self.agent, "--commit", "made-up", "--cache", os.path.join(self.folder, "cache"), "--scratch", self.folder, "--results", results,
                               *arguments], list(suites))
        return status, out.getvalue(), json.loads(pathlib.Path(results).read_text())

    def verdicts(self, *tests, status=None):
        got, said, saved = self.external(Suite("made", "A made-up suite", (), lambda directory: tests))
        if status is not None:
            self.assertEqual(got, status, said)
        return {result["name"]: result for result in saved["suites"]["made"]["results"]}

    def test_a_test_that_passes_both_ways_is_the_same_and_runs_once_each(self):
        verdict = self.verdicts(self.counted("passes", "exit 0"), status=0)["passes"]
        self.assertEqual(verdict["verdict"], trial.SAME)
        self.assertEqual(self.number("passes"), 2)

    def test_a_test_that_fails_only_traced_differs_each_time(self):
        verdict = self.verdicts(shell("fails", f"{TRACED} && kill -SEGV $$; exit 0"), status=1)["fails"]
        self.assertEqual(verdict["verdict"], trial.DIFFERS)
        self.assertEqual(verdict["traced"], ["SIGSEGV"] * 3)
        self.assertEqual(verdict["bare"], ["status 0"] * 3)

    def test_a_test_that_fails_once_traced_differs_once_of_three(self):
        _, said, _ = self.external(Suite("made", "A made-up suite", (), lambda directory: [self.counted("rarely", "[ $n != 2 ]")]))
        self.assertIn("differs 1 of 3: status 0 → status 1", said)
        self.assertIn("| made | rarely | status 0 | status 1 | 1 of 3 |", said)

    def test_a_test_that_fails_bare_is_not_counted_and_not_run_traced(self):
        verdict = self.verdicts(self.counted("broken", "exit 3"), status=1)["broken"]
        self.assertEqual((verdict["verdict"], verdict["bare"]), (trial.FAILS_BARE, ["status 3"]))
        self.assertNotIn("traced", verdict)
        self.assertEqual(self.number("broken"), 1)

    def test_a_test_that_flaps_bare_is_not_held_against_the_agent(self):
        # The runs are bare, traced, bare: fails in the second and in the third.
        verdict = self.verdicts(self.counted("flaps", "[ $n = 1 ]"), shell("passes", "true"), status=0)["flaps"]
        self.assertEqual(verdict["verdict"], trial.VARIES_BARE)

    def test_what_cannot_run_is_skipped_with_its_reason(self):
        verdict = self.verdicts(shell("cannot", "echo no such device; exit 4", cannot_run=lambda run: run.stdout.strip()), status=1)["cannot"]
        self.assertEqual((verdict["verdict"], verdict["reason"]), (trial.SKIPPED, "no such device"))

    def test_another_output_counts_where_it_is_asked_for(self):
        script = f"{TRACED} && echo more; echo text"
        verdicts = self.verdicts(shell("output", script, output=True), shell("status", script))
        self.assertEqual((verdicts["output"]["verdict"], verdicts["status"]["verdict"]), (trial.DIFFERS, trial.SAME))
        self.assertIn("+more", verdicts["output"]["detail"])

    def test_another_status_can_be_the_expected_one(self):
        verdicts = self.verdicts(shell("leaks", "exit 23", status=23), shell("differs", f"{TRACED} && exit 0; exit 23", status=23))
        self.assertEqual((verdicts["leaks"]["verdict"], verdicts["differs"]["verdict"]), (trial.SAME, trial.DIFFERS))

    def test_a_test_that_never_ends_is_ended_with_all_that_it_started(self):
        # Bare, where the limit is the test's own: traced it has at least half a minute.
        pid = os.path.join(self.folder, "pid")
        for limit in (0.5, 5, 50):
            script = f"setsid sh -c 'echo $$ > {pid}.part; mv {pid}.part {pid}; while :; do sleep 100; done' & wait"
            verdict = self.verdicts(shell("hangs", script, timeout=limit))["hangs"]
            self.assertEqual(verdict["bare"], ["does not end"])
            if os.path.exists(pid):  # on a busy machine it may be ended before it has begun
                break
        self.assertTrue(is_gone(int(pathlib.Path(pid).read_text())))

    def test_lines_of_the_agent_are_kept_and_are_no_difference(self):
        verdict = self.verdicts(shell("says", f"{TRACED} && echo 'tracer: no more space'; echo text", output=True))["says"]
        self.assertEqual(verdict["verdict"], trial.SAME)

    def test_cases_are_judged_one_by_one_and_only_those_that_differ_are_repeated(self):
        def suite(two, three):
            script = CASES.format(two=two, three=three)
            command = ["bash", "-c", script, "cases"]
            return trial.Test("all", command, cases=True, narrowed=lambda names: command + [name.removeprefix("all: ") for name in names])
        script = f"{TRACED} && outcome=failed; echo two >> {self.counts}/two"
        verdicts = self.verdicts(suite(script, f"outcome=failed; echo three >> {self.counts}/three"), status=1)
        self.assertEqual({name: result["verdict"] for name, result in verdicts.items()},
                         {"all": trial.SAME, "all: one": trial.SAME, "all: two": trial.DIFFERS, "all: three": trial.FAILS_BARE})
        self.assertEqual((self.number("two"), self.number("three")), (6, 2))

    def test_cases_that_are_not_reached_differ(self):
        command = ["bash", "-c", CASES.format(two=f"{TRACED} && kill -ABRT $$", three=":"), "cases"]
        verdicts = self.verdicts(trial.Test("all", command, cases=True), status=1)
        self.assertEqual({name: result["verdict"] for name, result in verdicts.items()},
                         {"all": trial.DIFFERS, "all: one": trial.SAME, "all: two": trial.DIFFERS, "all: three": trial.DIFFERS})
        self.assertEqual(verdicts["all: three"]["traced"], [trial.NOT_REACHED] * 3)
        self.assertEqual(verdicts["all"]["traced"], ["SIGABRT"] * 3)

    def test_each_run_has_an_empty_folder(self):
        self.assertEqual(self.verdicts(shell("finds", "[ -z \"$(ls -A)\" ] && touch here ../there && [ ! -e ../../stdout.old ]"), status=0)["finds"]["verdict"], trial.SAME)

    def test_the_agent_records_in_a_ring_and_elsewhere_than_in_the_folder(self):
        script = f'{TRACED} || exit 0; [ "$TRACER_MODE" = ring ] && [ -n "$TRACER_MAXSIZE" ] && [ -d "$(dirname "$TRACER_OUT")" ] && case $TRACER_OUT in "$PWD"*) exit 1;; esac'
        self.assertEqual(self.verdicts(shell("sees", script), status=0)["sees"]["verdict"], trial.SAME)

    def test_a_missing_package_is_named_and_the_other_suites_run(self):
        status, said, saved = self.external(Suite("lacks", "Lacking", (("/no/such/file", "no-such-package"),), lambda directory: self.fail("was run")),
                                           Suite("made", "A made-up suite", (), lambda directory: [shell("passes", "true")]))
        self.assertEqual(status, 0)
        self.assertIn("no-such-package", saved["suites"]["lacks"]["skipped"])
        self.assertRegex(said, "Not run:\n\n- Lacking: needs no-such-package")

    def test_nothing_compared_is_a_failure(self):
        self.assertEqual(self.external(Suite("lacks", "Lacking", (("/no/such/file", "no-such-package"),), lambda directory: []))[0], 1)

    def test_a_suite_is_built_once_and_anew_when_building_was_interrupted(self):
        built = []

        def build(directory):
            pathlib.Path(directory.folder, "half").touch(exist_ok=False)
            built.append(directory.folder)
            if len(built) == 1:
                raise Unavailable("the compiler fails")
        suite = Suite("made", "A made-up suite", (), lambda directory: [shell("passes", "true")], build)
        self.assertEqual([self.external(suite)[0] for _ in range(3)], [1, 0, 0])
        self.assertEqual(len(built), 2)

    def test_only_and_filter_choose(self):
        suites = [Suite(name, name, (), lambda directory, name=name: [self.counted(name + test, "true") for test in "ab"]) for name in ("x", "y")]
        _, _, saved = self.external(*suites, arguments=("--only", "y", "--filter", "^y: yb$"))
        self.assertEqual({name: [r["name"] for r in suite["results"]] for name, suite in saved["suites"].items()}, {"y": ["yb"]})
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as end:
            self.external(*suites, arguments=("--only", "z"))
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(said.getvalue(), "compat: no suite z; there are: x y\n")

    def test_results_of_several_runs_are_shown_together(self):
        _, first, _ = self.external(Suite("one", "One", (), lambda directory: [shell("fails", f"! {TRACED}")]))
        path = os.path.join(self.folder, "one.json")
        os.rename(os.path.join(self.folder, "results.json"), path)
        _, second, _ = self.external(Suite("two", "Two", (), lambda directory: [shell("passes", "true")]))
        status, both, _ = self.external(arguments=("--stored", path, "--stored", os.path.join(self.folder, "results.json")))
        self.assertEqual(status, 1)
        for said in (first, second):
            rows = [row for row in said.splitlines() if row.startswith(("| One", "| Two", "| one"))]
            self.assertTrue(rows)
            for row in rows:
                self.assertIn(row, both.splitlines())

    def test_changes_since_other_results_are_reported(self):
        def suite(bad):
            return Suite("made", "Made", (), lambda directory: [shell(name, f"! {TRACED}" if name in bad else "true") for name in "abc"])
        self.external(suite("ab"))
        path = os.path.join(self.folder, "before.json")
        os.rename(os.path.join(self.folder, "results.json"), path)
        _, said, _ = self.external(suite("bc"), arguments=("--against", path))
        self.assertIn("Of 3 tests that made-up ran, too: 1 differ no more, 1 differ now, 1 still do; 0 of those", said)
        self.assertIn("  no more: made: a\n", said)
        self.assertIn("  now: made: c: differs 3 of 3: status 0 → status 1\n", said)

    def test_a_run_that_records_functions_is_made_again_with_the_plans_of_its_modules(self):
        tool, planned = os.path.join(self.folder, "tool"), os.path.join(self.folder, "planned")
        pathlib.Path(tool).write_text(f'#!/bin/sh\nshift\ncase "$*" in */cannot*) exit 1 ;; esac\nprintf "%s\\n" "$@" >> {planned}\n')
        os.chmod(tool, 0o755)
        there = [os.path.join(self.folder, name) for name in ("one.so", "cannot.so", "two.so")]
        for path in there:
            pathlib.Path(path).touch()
        script = f'{TRACED} || exit 0; [ "$TRACER_FUNCTIONS" = "*!*" ] && [ -d "$XDG_CACHE_HOME" ] && touch "$(dirname "$TRACER_OUT")/a.1.trace"'
        with mock.patch.object(plans.Plans, "modules", lambda self, path: {*there, "/no/such/module", "linux-vdso.so.1"}):
            status, said, saved = self.external(Suite("made", "A made-up suite", (), lambda directory: [self.counted("first", script), self.counted("second", script)]),
                                               arguments=("--functions", "--tool", tool))
        self.assertEqual(status, 0, said)
        self.assertIn("under the agent, with every function: 0 differ", said)
        self.assertEqual(pathlib.Path(planned).read_text().split(), [there[0], there[2]])
        self.assertEqual((self.number("first"), self.number("second")), (3, 2))

    def test_ended_it_reports_what_it_has_found_and_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.end_by(number, tempfile.mkdtemp(dir=self.folder))

    def end_by(self, number, folder):
        started, program = os.path.join(folder, "started"), os.path.join(folder, "program.py")
        results = os.path.join(folder, "results.json")
        pathlib.Path(program).write_text(f"""
import sys
sys.path.insert(0, {HERE!r})
import run
from trial import Suite, Test
tests = [Test("first", ["true"]), Test("second", ["sh", "-c", "echo $$ > {started}.part; mv {started}.part {started}; sleep 100"])]
sys.exit(run.main({["--agent", self.agent, "--scratch", folder, "--cache", folder, "--results", results]!r}, [Suite("made", "Made", (), lambda directory: tests)]))
""")
        child = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        while not os.path.exists(started) and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(number)
        said, errors = child.communicate(timeout=LIMIT)
        self.assertEqual((child.returncode, errors), (130, ""))
        self.assertIn("| Made |  | 1 | 0 | 0 | 0 | 0 |", said)
        self.assertEqual([r["name"] for r in json.loads(pathlib.Path(results).read_text())["suites"]["made"]["results"]], ["first"])
        self.assertTrue(is_gone(int(pathlib.Path(started).read_text())))
        self.assertEqual([name for name in os.listdir(folder) if name.startswith("external-")], [])


# Says of each module that main can be patched.
TOOL = """#!/usr/bin/env python3
import json, os, sys
os.makedirs(os.environ["XDG_CACHE_HOME"] + "/tracer/plans", exist_ok=True)
print(json.dumps({"functions": [{"name": "main", "module": path, "tactic": "jump5", "reason": None} for path in sys.argv[2:-1]]}))
"""


class Torture(unittest.TestCase):
    """With an agent that writes no trace: no program passes."""

    def setUp(self):
        keep_signals(self)

    def outcomes(self, agent, **programs):
        with tempfile.TemporaryDirectory() as folder:
            suite, tool, library = (os.path.join(folder, name) for name in ("suite", "tool", "libtracer.so"))
            for group in ("ieee", "builtins"):
                os.makedirs(os.path.join(suite, group))
            for name, text in programs.items():
                pathlib.Path(suite, name + ".c").write_text(text)
            pathlib.Path(tool).write_text(TOOL)
            os.chmod(tool, 0o755)
            subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=agent.encode(), check=True)
            out = io.StringIO()
            with contextlib.redirect_stdout(out), mock.patch.object(torture, "unpacked", lambda cache: ("1.0", suite)):
                status = torture.main(["--agent", library, "--tool", tool, "--cache", folder, "--scratch", folder, "--results", folder + "/results", "--way", "gcc -O2", "--jobs", "1"])
            outcomes = {outcome["program"]: outcome["verdict"] for outcome in json.loads(pathlib.Path(folder + "/results").read_text())["outcomes"]}
            self.assertEqual([name for name in os.listdir(folder) if name.startswith("external-")], [])
            return status, outcomes, out.getvalue()

    def test_a_run_that_records_nothing_is_no_success(self):
        status, outcomes, said = self.outcomes("", good="int main(void) { return 0; }", broken="int main(void) { return", bad="int main(void) { return 3; }")
        self.assertEqual((status, outcomes), (1, {"good": "nothing recorded", "broken": "not built", "bad": "fails bare"}))
        self.assertIn("1 builds compared, 1 differ", said)

    def test_a_program_that_ends_otherwise_differs(self):
        agent = "#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { _exit(7); }"
        status, outcomes, said = self.outcomes(agent, good="int main(void) { return 0; }")
        self.assertEqual((status, outcomes), (1, {"good": "differs"}))
        self.assertIn("status 0 → status 7", said)

    def test_only_what_fails_bare_is_no_success_either(self):
        self.assertEqual(self.outcomes("", bad="int main(void) { return 3; }")[0], 1)

    def test_options_of_all_architectures_are_taken(self):
        text = '/* { dg-options "-fwrapv -O1" } */\n/* { dg-additional-options "-mmmx" { target { i?86-*-* } } } */\n/* { dg-additional-options "-std=gnu89" } */'
        self.assertEqual(torture.wanted_options(text), ["-fwrapv", "-O1", "-std=gnu89"])

    def test_the_suite_is_found_in_an_archive_within_an_archive(self):
        def archive(file, mode, name, content):
            with tarfile.open(fileobj=file, mode=mode) as made:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                made.addfile(member, io.BytesIO(content))
        inner, outer = io.BytesIO(), io.BytesIO()
        archive(inner, "w:xz", "gcc-1/gcc/testsuite/gcc.c-torture/execute/ieee/a.c", b"int a;")
        archive(outer, "w:gz", "gcc/gcc-1.tar.xz", inner.getvalue())
        outer.seek(0)
        with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=outer) as opened:
            torture.unpack(opened, folder)
            self.assertEqual(pathlib.Path(folder, "ieee/a.c").read_text(), "int a;")


class Compiler(unittest.TestCase):
    def test_programs_that_run_are_chosen_and_all_of_those_about_stacks(self):
        texts = {"a.c": "/* { dg-do run } */", "b.c": "/* { dg-do run } */", "c.c": "/* { dg-do compile } */", "d.c": "/* { dg-do run } */ /* { dg-shouldfail "" } */",
                 "tls/e.c": "/* { dg-do run } */", "nested-1.c": "/* { dg-do run } */", "guality/f.c": "/* { dg-do run } */", "g.c": "int main(void);"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                path = os.path.join(folder, "gcc/testsuite/gcc.dg", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                pathlib.Path(path).write_text(text)
            chosen = {program.name for program in suites.gcc.programs(suites.gcc.Kind(("gcc/testsuite/gcc.dg",), every=2), folder)}
        self.assertEqual(chosen, {"gcc.dg/a.c", "gcc.dg/nested-1.c", "gcc.dg/tls/e.c"})

    def test_the_language_is_what_the_target_asks_for(self):
        for asked, language in (("c++11", []), ("c++20", ["-std=gnu++20"]), ("c++14_down", ["-std=gnu++14"]), ("c++2a", ["-std=gnu++2a"])):
            self.assertEqual(suites.gcc.standard("// { dg-do run { target " + asked + " } }"), language)


class Sources(unittest.TestCase):
    def test_source_packages_come_from_where_packages_come_from(self):
        one = "# comment\ndeb [arch=amd64] http://mirror.example/debian stable main\ndeb-src http://mirror.example/debian stable main\n"
        self.assertEqual(sources.with_sources(one, ".list"), "# comment\ndeb-src [arch=amd64] http://mirror.example/debian stable main\ndeb-src http://mirror.example/debian stable main\n")
        many = "Types: deb\nURIs: http://mirror.example/debian\nSuites: stable\n\nTypes: deb deb-src\nURIs: http://other.example\n"
        self.assertEqual(sources.with_sources(many, ".sources"), many.replace("Types: deb deb-src", "Types: deb-src").replace("Types: deb\n", "Types: deb-src\n"))

    def test_lines_of_frameworks_are_cases(self):
        for kind, lines, expected in (
                ("tap", ["1..5", "ok 1 /a", "not ok 2 - b - it said so", "ok 3 c # SKIP no such thing", "not ok 4 d # TODO", "ok 5 /a", "# ok 6 e"],
                 [["/a", "ok"], ["b", "failed"], ["c", "skipped: no such thing"], ["d", "expected failure"], ["/a 2", "ok"]]),
                ("redis", ["[\x1b[0;32;49mok\x1b[0m]: A (b) (12 ms)", "[err]: C in tests/unit/c.tcl", "[ignore]: D: not now", "[exception]: Executing E", "[ready]: 7"],
                 [["A (b)", "ok"], ["C", "failed"], ["D", "skipped: not now"], ["exception", "failed: Executing E"]]),
                ("pg_regress", ["test one                  ... ok          3 ms", "     two                  ... FAILED (test process exited with exit code 2)  9 ms", "parallel group (2 tests): "],
                 [["one", "ok"], ["two", "failed"]]),
                ("tap_numbers", ["ok 1", "not ok 2 - x", "ok 3 # skip no", "not ok 4 # TODO later", "ok 51 - y", "ok 101 # SKIP no"],
                 [["1-50 (3)", "failed: 2"], ["51-100 (1)", "ok"], ["101-150", "skipped"]]),
                ("tcltest", ["++++ a-1.1 PASSED", "==== a-1.2 it says FAILED", "==== Contents of test case:", "==== a-1.2 FAILED", "++++ a-2.1 SKIPPED: unix", "++++ a-3.1 PASSED"],
                 [["a-1 (2)", "failed: a-1.2"], ["a-2", "skipped"], ["a-3 (1)", "ok"]]),
                ("maxima", ["********************** Problem 1 ***************", "... Which was correct.", "**** Problem 2 (line 5) ***", "This differed from the expected result:"],
                 [["1-50 (2)", "failed: 2"]])):
            with tempfile.TemporaryDirectory() as folder:
                written, said = os.path.join(folder, "said"), os.path.join(folder, "cases")
                pathlib.Path(written).write_text("\n".join(lines))
                subprocess.run([sys.executable, os.path.join(HERE, "programs/said_cases.py"), kind, said, written], check=True)
                with open(said) as file:
                    self.assertEqual([json.loads(line) for line in file], expected, kind)

    def test_every_suite_says_what_it_is_and_what_it_needs(self):
        self.assertEqual(len({suite.name for suite in SUITES}), len(SUITES))
        for suite in SUITES:
            self.assertTrue(suite.about and suite.needs, suite.name)
            for what, package in suite.needs:
                self.assertRegex(package, r"^[a-z0-9][a-z0-9+.|-]+$", suite.name)
