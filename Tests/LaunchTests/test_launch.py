"""`tracer launch`, `baseline`, `check`, `history` and `bisect-step` as a user types them, on a program whose start-up is known
(subject/): what a regression is called, which statuses come back, what is written and what is left alone. No time is
asserted; trials.py measures how often the lab is right."""
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest
import unittest.mock
import xml.dom.minidom

import pytest

import subject
from kernel_account import kernel_reports, refusing
from recorded_programs import ROOT, TOOL, new_folder

CPU = str(min(os.sched_getaffinity(0)))  # in a container CPU 0 may be another's


# No machine is too wild for a series of two: with those that are made again there are four, and from five on they are judged.


@functools.cache
def built(*flags):
    return subject.build(new_folder(), flags)


def variant(kind):
    """With a regression of 50 ms: more than what else a machine does hides at once. trials.py plants small ones."""
    flags, expected = subject.REGRESSIONS[kind]
    return built(*flags(50_000)), expected


def run_tool(folder, *words):
    return subprocess.run([TOOL, *words], cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("kind", subject.REGRESSIONS)
def test_planted_regression_is_named_first(tmp_path, kind):
    program, expected = variant(kind)
    named = []
    for _ in range(5):  # what else the machine does may make times wild for a while, or another cause larger
        done = run_tool(tmp_path, "launch", "-n", "3", "--untraced-every", "0", "--history", "", "--json", "--vs", built(), "--", program)
        if done.returncode == 2 and "very different times" in done.stderr:
            continue
        assert done.returncode == 0, done.stdout + done.stderr
        comparison = json.loads(done.stdout)["comparison"]
        causes = comparison["causes"]
        whole = sum(cause["difference_ns"] for cause in causes) + comparison["unexplained_ns"]
        assert abs(whole - comparison["difference_ns"]) <= len(causes) + 1
        named.append([(cause["kind"], cause["name"]) for cause in causes])
        if named[-1] and named[-1][0] in expected:
            break
    assert named and named[-1] and named[-1][0] in expected, named
    if kind == "a lock held by another thread" and kernel_reports():
        assert causes[0]["waiting"] == "waiting for a lock"


BURNS = r"""
#include <time.h>
static long long used(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000000000ll + used.tv_nsec;
}
int main(void) {
    long long begin = used(); /* of the process, which had some before exec */
    while (used() - begin < 400000000);
    return 0;
}
"""


@contextlib.contextmanager
def busy_cpu(loops):
    """With others on the launches' CPU: each of these tests is of what a program is charged with."""
    others = [subprocess.Popen(["taskset", "-c", CPU, "sh", "-c", "while :; do :; done"]) for _ in range(loops)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def kernel_accounts():
    """CONFIG_SCHED_INFO"""
    try:
        return int(pathlib.Path("/proc/self/schedstat").read_text().split()[2]) > 0
    except (FileNotFoundError, IndexError):
        return False


def burns(folder):
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", folder / "burns"], input=BURNS, text=True, check=True)


def test_waiting_for_a_cpu_is_no_part_of_the_timeout(tmp_path):
    burns(tmp_path)
    with busy_cpu(6):
        done = run_tool(tmp_path, "launch", "-n", "1", "--untraced-every", "0", "--timeout", "1", "--cpu", CPU, "--to-exit", "--history", "", "--", "./burns")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not kernel_reports() or not kernel_accounts(), reason="the kernel does not say who waits for a CPU")
def test_waiting_for_a_cpu_is_no_part_of_a_launch(tmp_path):
    burns(tmp_path)
    with busy_cpu(6):
        done = run_tool(tmp_path, "launch", "-n", "1", "--warm-up", "0", "--untraced-every", "1", "--cpu", CPU, "--to-exit", "--history", "", "--json", "--", "./burns")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    # It has a seventh of the CPU: what it waits is six times what it runs.
    assert result["cpu_ns"] >= 400_000_000
    for took in (result["stages"][0]["p50_ns"], result["untraced"]["p50_ns"]):
        assert 400_000_000 <= took < result["cpu_wait_ns"], result
    main = next(stage["p50_ns"] for stage in result["stages"] if stage["name"] == "main → ready")
    assert main < result["cpu_wait_ns"], result


WAITS_FOR_A_THREAD = r"""
#include <pthread.h>
#include <time.h>
static void *burn(void *unused) {
    struct timespec used;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 300000000);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, burn, 0);
    pthread_join(thread, 0);
    return 0;
}
"""


@pytest.mark.skipif(not kernel_reports() or not kernel_accounts(), reason="the kernel does not say who waits for a CPU")
def test_waiting_for_a_thread_without_a_cpu_is_no_part_of_a_launch(tmp_path):
    subprocess.run(["gcc", "-O1", "-pthread", "-x", "c", "-", "-o", tmp_path / "joins"], input=WAITS_FOR_A_THREAD, text=True, check=True)
    with busy_cpu(6):
        done = run_tool(tmp_path, "launch", "-n", "1", "--warm-up", "0", "--untraced-every", "0", "--cpu", CPU, "--to-exit", "--history", "", "--json", "--", "./joins")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert 300_000_000 <= result["stages"][0]["p50_ns"] < result["cpu_wait_ns"], result


@pytest.mark.skipif(not kernel_accounts(), reason="the kernel does not say who waits for a CPU")
@pytest.mark.parametrize("kernel", ["reports", "refuses"])
def test_an_unchanged_program_is_never_refused_on_a_busy_machine(tmp_path, kernel):
    """Budgets are those of every baseline. Without context switches the tool knows how long a launch had no CPU, not when."""
    if kernel == "reports" and not kernel_reports():
        pytest.skip("the kernel does not report context switches")
    program = built("-DBASE_MICROSECONDS=8000")
    prefix = ["nice"] + ([refusing(str(tmp_path / "refusing"), "EACCES")] if kernel == "refuses" else [])
    words = ["-n", "5", "--warm-up", "0", "--cpu", CPU]

    def run(*command, prefix=prefix):
        return subprocess.run([*prefix, TOOL, *command], cwd=tmp_path, capture_output=True, text=True, timeout=900)

    done = run("baseline", *words, "-o", "idle.json", "--", program, prefix=[])
    if done.returncode == 2 and "machine too noisy" in done.stderr:
        pytest.skip("there is no baseline of an idle machine: this one is busy by itself")
    assert done.returncode == 0, done.stderr
    with busy_cpu(3):
        done = run("check", *words, "idle.json", "--", program)
        assert done.returncode != 1, done.stdout + done.stderr
        if kernel == "refuses":
            assert done.returncode == 2, done.stdout + done.stderr
        if done.returncode == 2:
            assert "machine too noisy to tell" in done.stderr and done.stderr.count("\n") == 1, done.stderr
            step = run("bisect-step", *words, "idle.json", "--", program)
            assert step.returncode in (0, 125), step.stdout + step.stderr


def until(condition):
    """Waits until the condition holds, at most a minute: a busy machine takes long. Returns False if it does not."""
    for _ in range(6000):
        if condition():
            return True
        time.sleep(0.01)
    return False


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("command", [["launch", "--history", ""], ["baseline", "-o", "baseline.json"]], ids=["launch", "baseline"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_ends_the_launched_program_and_leaves_no_folder(tmp_path, command, number):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    started = tmp_path / "started"
    script = f"sleep 1000 & echo $! $$ >{started}.new; mv {started}.new {started}; wait"
    tool = subprocess.Popen([TOOL, *command, "--to-exit", "--", "sh", "-c", script], cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)},
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert until(started.exists)
    pids = started.read_text().split()
    assert len(os.listdir(temporary)) == 1 and all(map(is_running, pids))
    tool.send_signal(number)
    assert tool.wait(60) == -number
    assert until(lambda: not any(map(is_running, pids)))
    assert until(lambda: not os.listdir(temporary))
    assert sorted(os.listdir(tmp_path)) == ["started", "temporary"]


def test_it_goes_on_without_the_process_that_would_tidy_up(tmp_path):
    started, may_end = tmp_path / "started", tmp_path / "may_end"
    script = f"touch {started}; while [ ! -e {may_end} ]; do sleep 0.01; done"
    tool = subprocess.Popen([TOOL, "launch", "-n", "2", "--history", "", "--to-exit", "--", "sh", "-c", script], cwd=tmp_path,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert until(started.exists)
    children = [int(pid) for pid in pathlib.Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split()]
    [guard] = [pid for pid in children if os.getsid(pid) == pid]
    os.kill(guard, signal.SIGKILL)
    may_end.touch()
    assert tool.wait(120) in (0, 2)  # 2: its times differ too much


class LaunchTest(unittest.TestCase):
    CHECK = ("check", "-n", "2", "--warm-up", "0")

    def setUp(self):
        self.folder, self.app = new_folder(), built()

    def tracer(self, *words, status=0):
        done = run_tool(self.folder, *words)
        for _ in range(10):
            if done.returncode == status or "too noisy to tell" not in done.stderr:
                break
            done = run_tool(self.folder, *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def launch(self, *words):
        return json.loads(self.tracer("launch", "--history", "", "--json", *words).stdout)

    def baseline(self, path, *words):
        """The baseline is of what is counted: times of a busy machine break no budget."""
        self.tracer("baseline", "-n", "2", "--warm-up", "0", *words, "-o", path, "--", self.app)
        baseline = json.loads(pathlib.Path(path).read_text())
        baseline["budgets"].update(stage=20.0, stage_ms=1000.0, constructor_ms=10.0, item_ms=10.0, page_faults=5.0)
        pathlib.Path(path).write_text(json.dumps(baseline))
        return baseline

    def failure(self, *words, status=2):
        """One line that says what is wrong."""
        text = self.tracer(*words, status=status).stderr
        self.assertEqual(text.count("\n"), 1, text)
        return text

    def test_stages_add_up_to_the_launch_and_the_end_point_is_shown(self):
        result = self.launch("-n", "2", "--untraced-every", "2", "--", self.app)
        self.assertEqual(result["schema"], "tracer.launch/1")
        self.assertEqual(result["ready"], "first output")
        self.assertEqual(result["runs"], 2)
        # Without a cycle counter nobody knows when the loader began.
        names = [stage["name"].removeprefix("exec, ") for stage in result["stages"]]
        self.assertEqual(names[0], "launch")
        for name in ["map and relocate libraries", "constructors of libraries", "main → ready"]:
            self.assertIn(name, names)
        self.assertAlmostEqual(sum(s["mean_ns"] for s in result["stages"][1:]), result["stages"][0]["mean_ns"], delta=len(names))
        self.assertIn("libwork.so", [library["name"] for library in result["libraries"]])
        self.assertIn(("libwork.so", "work_init"), [(c["module"], c["name"]) for c in result["constructors"]])
        self.assertGreaterEqual(result["untraced"]["runs"], 1)

    def test_program_is_ended_when_it_is_ready_and_runs_to_its_end_when_asked(self):
        self.tracer("launch", "-n", "1", "--history", "", "--", self.app)  # waits for ever by itself
        result = self.launch("-n", "2", "--to-exit", "--", self.app, "--exit")
        self.assertIn("ready → exit", [stage["name"] for stage in result["stages"]])

    def test_a_program_may_end_right_behind_the_mark_that_says_it_is_ready(self):
        source, program = os.path.join(self.folder, "brief.c"), os.path.join(self.folder, "brief")
        pathlib.Path(source).write_text("#include <tracer.h>\nint main(void) { tracer_ready(); return 0; }\n")
        subprocess.run(["gcc", "-O1", "-I", os.path.join(ROOT, "CSupport/include"), "-o", program, source], check=True)
        for _ in range(2):
            result = self.launch("-n", "2", "--", program)
            self.assertEqual((result["ready"], result["runs"]), ("the program's mark", 2))

    def test_what_a_child_does_first_ends_no_launch(self):
        program = subject.parent(self.folder)
        for what, ready in [("exit", "exit"), ("thread", "exit"), ("listen", "first listen"), ("output", "first output")]:
            with self.subTest(what):
                result = self.launch("-n", "1", "--untraced-every", "1", "--warm-up", "0", "--", program, what)
                self.assertEqual(result["ready"], ready)
                self.assertGreaterEqual(result["untraced"]["p50_ns"], subject.PARENT_SLEEPS)

    def test_baseline_is_accepted_unchanged_and_refuses_a_new_library(self):
        path = os.path.join(self.folder, "startup.json")
        self.baseline(path)
        self.assertIn("within its budgets", self.tracer(*self.CHECK, path, "--", self.app).stdout)
        program, _ = variant("extra library")
        broken = self.tracer(*self.CHECK, path, "--", program, status=1).stdout
        self.assertIn("new-library: libextra.so", broken)
        self.assertIn("new-constructor: constructor extra_init of libextra.so", broken)
        self.assertIn("to accept it: tracer baseline", broken)
        # Budgets that somebody has set outlive a new baseline.
        self.tracer("baseline", "-n", "2", "-o", path, "--", program)
        self.assertEqual(json.loads(pathlib.Path(path).read_text())["budgets"]["stage"], 20.0)
        self.tracer(*self.CHECK, path, "--", program)

    @unittest.mock.patch.dict(os.environ, TRACER_CACHE="on", XDG_CACHE_HOME=new_folder())
    def test_files_used_until_ready_are_named_compared_and_gated(self):
        source, program = os.path.join(self.folder, "reader.c"), os.path.join(self.folder, "reader")
        pathlib.Path(source).write_text("""#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char path[4096], byte;
    for (int n = 0; n < atoi(argv[2]); n++) {
        snprintf(path, sizeof path, "%s/file-%02d", argv[1], n);
        int file = open(path, O_RDONLY);
        if (file < 0 || read(file, &byte, 1) < 0 || close(file)) return 1;
        snprintf(path, sizeof path, "%s/missing-%02d", argv[1], n);
        if (open(path, O_RDONLY) >= 0) return 1;
    }
    return argc != 3;
}
""")
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        paths = [os.path.join(self.folder, f"file-{n:02}") for n in range(30)]
        for path in paths:
            pathlib.Path(path).write_text("x")
        result = self.launch("-n", "3", "--", program, self.folder, "20")
        self.assertEqual([path for path in result["files"] if path.startswith(self.folder)], paths[:20])  # none that is missing
        count = len(result["files"])
        vs = ("-n", "3", "--vs", f"{program} {self.folder} 20")
        comparison = self.launch(*vs, "--", program, self.folder, "30")["comparison"]["files"]
        self.assertEqual((comparison["new"], comparison["gone"], comparison["after"] - comparison["before"]), (paths[20:], [], 10))
        text = self.tracer("launch", "--history", "", *vs, "--", program, self.folder, "18").stdout
        self.assertIn(f"Files used: 2 fewer ({count} → {count - 2}): {paths[18]}, {paths[19]}\n", text)
        self.assertNotIn("Files used:", self.tracer("launch", "--history", "", *vs, "--", program, self.folder, "20").stdout)

        baseline = os.path.join(self.folder, "files.json")
        self.app = program
        self.tracer("baseline", "-n", "2", "--warm-up", "0", "-o", baseline, "--", program, self.folder, "20")
        made = json.loads(pathlib.Path(baseline).read_text())
        self.assertEqual(len(made["files"]), count)
        made["budgets"].update(stage=20.0, stage_ms=1000.0, constructor_ms=10.0, item_ms=10.0, page_faults=50.0)
        pathlib.Path(baseline).write_text(json.dumps(made))
        self.tracer(*self.CHECK, baseline, "--", program, self.folder, "24")  # no more than four further ones: within the least
        broken = self.tracer(*self.CHECK, baseline, "--", program, self.folder, "30", status=1).stdout
        self.assertIn(f"files: {count + 10} files used until ready, {count} before (limit +10.0%): {paths[20]} is new, {paths[21]} is new", broken)
        made["budgets"]["files"] = 1.0
        pathlib.Path(baseline).write_text(json.dumps(made))
        self.tracer(*self.CHECK, baseline, "--", program, self.folder, "30")
        del made["files"]  # as an older tracer has made it
        del made["budgets"]["files"]
        pathlib.Path(baseline).write_text(json.dumps(made))
        self.tracer(*self.CHECK, baseline, "--", program, self.folder, "30")

    def test_a_broken_budget_is_reported_in_each_format(self):
        path = os.path.join(self.folder, "startup.json")
        self.baseline(path)
        program, _ = variant("extra library")
        junit = os.path.join(self.folder, "junit.xml")
        self.tracer(*self.CHECK, "--format", "junit", "-o", junit, path, "--", program, status=1)
        failures = xml.dom.minidom.parse(junit).getElementsByTagName("failure")
        self.assertGreaterEqual(len(failures), 2, pathlib.Path(junit).read_text())
        github = self.tracer(*self.CHECK, "--format", "github", path, "--", program, status=1).stdout
        self.assertTrue(github.startswith("::error file="), github)
        self.assertFalse(json.loads(self.tracer(*self.CHECK, "--format", "json", path, "--", program, status=1).stdout)["passed"])

    def test_items_are_listed_and_the_gate_names_what_became_of_them(self):
        result = self.launch("-n", "2", "--untraced-every", "0", "--", self.app)
        self.assertEqual([(item["stage"], item["name"]) for item in result["items"]], [("stage 1", "settings"), ("stage 1", "cache")])
        for item in result["items"]:
            self.assertTrue(item["low_ns"] <= item["p50_ns"] <= item["high_ns"], item)
        path = os.path.join(self.folder, "items.json")
        baseline = self.baseline(path)
        self.assertEqual([item["name"] for item in baseline["items"]], ["settings", "cache"])
        for kind in ("a start-up item", "a start-up item of the pool"):
            program, expected = subject.with_item(os.path.join(self.folder, kind.replace(" ", "-")), kind, 50_000)
            verdict = json.loads(self.tracer(*self.CHECK, "--format", "json", path, "--", program, status=1).stdout)
            self.assertEqual([(f["rule"], f["subject"]) for f in verdict["findings"]], [expected])
            self.assertRegex(verdict["findings"][0]["message"], r"^new item in stage 1: planted\w*, (at least )?[\d.]+ ms \(limit")
        without = built("-DWITHOUT_CACHE")
        self.assertRegex(self.tracer(*self.CHECK, path, "--", without).stdout, r"note: start-up item cache of stage 1 is gone \(it took ")
        # Two versions: what only one has is distinguished from what both have.
        table = self.launch("-n", "2", "--untraced-every", "0", "--vs", self.app, "--", without)
        self.assertEqual([(i["name"], i["change"]) for i in table["comparison"]["items"] if i["name"] == "cache"], [("cache", "gone")])
        # A baseline of an older tracer knows of no items, and of no budget for them.
        del baseline["items"], baseline["budgets"]["item_ms"]
        pathlib.Path(path).write_text(json.dumps(baseline))
        self.tracer(*self.CHECK, path, "--", program)

    def test_check_names_the_cause_and_how_to_accept_it(self):
        path = os.path.join(self.folder, "why.json")
        baseline = self.baseline(path, "--no-aslr")
        # Counted causes are reported on a busy machine, too; libwork.so is made a new library, so that something is found.
        baseline["libraries"] = [library for library in baseline["libraries"] if library["name"] != "libwork.so"]
        pathlib.Path(path).write_text(json.dumps(baseline))
        for planted, kind, name, change in [("more calls", "call", "work", "called more often"), ("extra library", "library", "libextra.so", "new")]:
            program, _ = variant(planted)
            # Times on a busy machine may speak for another call now and then; what is loaded is counted, and shown each time.
            calm = True
            for _ in range(8 if kind == "call" else 1):
                done = self.tracer("check", "-n", "2", "--warm-up", "0", "--no-aslr", "--format", "json", path, "--", program, status=1)
                verdict = json.loads(done.stdout)
                causes = [(c["kind"], c["name"], c["change"]) for c in verdict["causes"]]
                if (kind, name, change) in causes:
                    break
                calm = calm and "times are not checked" not in done.stderr
            if kind == "call" and (kind, name, change) not in causes and not calm:
                continue  # no time was judged, so that none had a cause
            self.assertIn((kind, name, change), causes)
            self.assertTrue([line for line in verdict["because"] if name in line], verdict)
            self.assertEqual(verdict["accept"], f"tracer baseline -n 2 --no-aslr -o {path} -- {program}")

    def test_launches_are_made_under_the_conditions_that_were_asked_for(self):
        log, seen = os.path.join(self.folder, "log"), os.path.join(self.folder, "seen")
        self.tracer("launch", "-n", "2", "--warm-up", "0", "--untraced-every", "1", "--history", "", "--setup", f"printf '<' >> {log}",
                    "--teardown", f"printf '>' >> {log}", "--", self.app)
        order = pathlib.Path(log).read_text()
        self.assertEqual(order, "<>" * (len(order) // 2))
        self.assertGreaterEqual(len(order) // 2, 5)  # a pilot, two traced, two without the agent
        self.tracer("launch", "-n", "1", "--to-exit", "--cpu", CPU, "--no-aslr", "--history", "", "--", "sh", "-c",
                    f"cat /proc/self/status /proc/self/personality > {seen}")
        status = pathlib.Path(seen).read_text()
        self.assertIn(f"Cpus_allowed_list:\t{CPU}\n", status)
        self.assertTrue(int(status.split()[-1], 16) & 0x40000, status)  # ADDR_NO_RANDOMIZE
        self.assertIn("--setup 'false' failed", self.failure("launch", "--setup", "false", "--history", "", "--", self.app))

    def test_bisect_step_separates_good_bad_and_untestable_commits(self):
        path = os.path.join(self.folder, "good.json")
        self.baseline(path)
        program, _ = variant("extra library")
        self.tracer("bisect-step", "-n", "2", "--build", "true", path, "--", self.app, status=0)
        self.tracer("bisect-step", "-n", "2", path, "--", program, status=1)
        self.tracer("bisect-step", "-n", "2", "--build", "false", path, "--", self.app, status=125)
        self.tracer("bisect-step", "-n", "2", path, "--", self.app, "--fail", status=125)
        self.tracer("bisect-step", "-n", "2", path + ".missing", "--", self.app, status=128)

    def test_cold_launches_say_what_was_read(self):
        result = self.launch("-n", "2", "--cold", "--", self.app)
        self.assertIn(self.app, [file["path"] for file in result["read_from_disk"]])
        # Present if the kernel lets us watch page faults. Each is in a stage of the launch, and none is the agent's.
        stages = [stage["name"] for stage in result["stages"]]
        for page in result.get("page_in_map", []):
            self.assertIn(page["stage"], stages)
            self.assertEqual(page["offset"] % 4096, 0)
            self.assertNotIn("libtracer", page["path"])

    def test_history_keeps_shows_and_draws(self):
        path = os.path.join(self.folder, "kept/history.sqlite")
        for _ in range(2):
            self.tracer("launch", "-n", "2", "--history", path, "--", self.app)
        shown = self.tracer("history", "--history", path).stdout
        self.assertEqual(len([line for line in shown.splitlines() if line[:2] == "20"]), 2)
        rows = [json.loads(line) for line in self.tracer("history", "export", "--history", path, "--format", "ndjson").stdout.splitlines()]
        self.assertEqual({row["series"] for row in rows}, {1, 2})
        chart = os.path.join(self.folder, "trend.html")
        self.tracer("history", "--history", path, "--html", chart)
        self.assertIn("<svg", pathlib.Path(chart).read_text(encoding="utf-8"))

    def refuses_wild_times(self, prepare, *words):
        """How far times may differ goes by how steady the machine is: a busy one needs longer waits."""
        for milliseconds in (500, 4_000, 20_000):
            prepare()
            counter = os.path.join(self.folder, f"launches.{milliseconds}")
            done = run_tool(self.folder, *words, "-n", "8", "--untraced-every", "0", "--warm-up", "0", "--", self.app, "--wild", counter, str(milliseconds))
            if done.returncode == 2:
                break
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("very different times", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_wildly_different_times_are_not_kept(self):
        history = pathlib.Path(self.folder, "wild.sqlite")
        self.refuses_wild_times(lambda: history.unlink(missing_ok=True), "launch", "--history", str(history))
        self.assertFalse(history.exists())

    def test_wildly_different_times_make_no_baseline(self):
        kept = pathlib.Path(self.folder, "kept.json")
        self.tracer("baseline", "-n", "2", "-o", str(kept), "--", self.app)
        before = kept.read_text()
        self.refuses_wild_times(lambda: kept.write_text(before), "baseline", "-o", str(kept))
        self.assertEqual(kept.read_text(), before)

    def test_bad_input_is_one_line_and_status_2(self):
        self.assertIn("failed with status 7", self.failure("launch", "-n", "2", "--history", "", "--", self.app, "--fail"))
        self.assertIn("not ready within", self.failure("launch", "-n", "2", "--timeout", "1", "--history", "", "--", self.app, "--never"))
        self.assertIn("--cpu 1023", self.failure("launch", "-n", "2", "--cpu", "1023", "--history", "", "--", self.app))
        kept = os.path.join(self.folder, "kept.json")
        self.tracer("baseline", "-n", "2", "-o", kept, "--", self.app)
        before = pathlib.Path(kept).read_text()
        self.assertIn("failed with status 7", self.failure("baseline", "-n", "2", "-o", kept, "--", self.app, "--fail"))
        self.assertEqual(pathlib.Path(kept).read_text(), before)
        self.assertIn(f"was made without options, but this check is with --cpu {CPU}", self.failure("check", "--cpu", CPU, kept, "--", self.app))
        pathlib.Path(kept).write_text(before.replace('"ready": "first output', '"ready": "first listen'))
        self.assertIn("is ready at first output", self.failure("check", "-n", "2", kept, "--", self.app))
        self.assertIn("no-such-program", self.failure("launch", "-n", "2", "--history", "", "--", "no-such-program", status=127))
        self.assertIn("--vs", self.failure("launch", "--vs", "'open", "--history", "", "--", self.app))
        path = os.path.join(self.folder, "other.json")
        self.tracer("baseline", "-n", "2", "-o", path, "--", self.app)
        kept = pathlib.Path(path).read_text()
        self.assertIn("is for app", self.failure("check", "-n", "2", path, "--", "/bin/true"))
        baseline = json.loads(kept)
        baseline["machine"]["architecture"] = "riscv64"
        pathlib.Path(path).write_text(json.dumps(baseline))
        self.assertIn("riscv64", self.failure("check", "-n", "2", path, "--", self.app))
        pathlib.Path(path).write_text("{")
        self.assertIn("not a baseline", self.failure("check", "-n", "2", path, "--", self.app))
        self.assertIn("nothing was overwritten", self.failure("baseline", "-n", "2", "-o", path, "--", self.app))
        self.assertEqual(pathlib.Path(path).read_text(), "{")
        self.assertIn("no launches are kept", self.failure("history", "--history", path + ".none", status=1))
