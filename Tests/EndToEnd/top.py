"""`tracer top`: what it shows of a process while it runs is what the process counts itself, whatever is written in between, and what it shows
of a finished trace is what `report` says. The screen, its keys, and the terminal afterwards: in tmux."""
import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time

import build
import counted
import harness
import late
import suite
from harness import Skipped, describe, expect

SOURCE = os.path.join(build.SUBJECTS, "part_top.c")
COLUMNS, ROWS = 110, 30


class Top(suite.Test):
    def prepare(self):
        self.compile("libpart.so", "-O1", "-shared", "-fPIC", "-fexceptions", source=late.LIBRARY, compiler=build.DRIVERS["gcc"][".c"])
        self.program = self.compile("subject", "-O1", "-g", "-pthread", SOURCE, "-L.", "-Wl,-rpath," + self.made, "-lpart")

    @contextlib.contextmanager
    def recorded(self, *options, program=None):
        """The program under `tracer record`; `pid` is its own id, `file` what it is recorded to."""
        tool = subprocess.Popen([self.settings.tool, "record", "--quiet", "--force", *options, "-o", self.trace(), "--", *(program or [self.program])],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.made, env=self.environment())
        try:
            yield tool
        finally:
            tool.kill()
            tool.communicate()

    def running(self, **variables):
        """The program under the agent, without `tracer record`."""
        return subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.made,
                                env=self.traced_environment(**variables))

    @contextlib.contextmanager
    def watched(self, target, *options):
        """`tracer top --json` beside it, from when it has begun. Its lines are in `lines` afterwards: it ends by itself. `shows` waits for one."""
        tool = subprocess.Popen([self.settings.tool, "top", str(target), "--json", "--interval", "100ms", *options], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.made, env=self.environment())
        try:
            tool.lines, lines = [], queue.SimpleQueue()

            def read():
                for line in tool.stdout:
                    lines.put(json.loads(line))
                lines.put(None)

            threading.Thread(target=read, daemon=True).start()
            tool.shows = lambda: tool.lines.append(lines.get(timeout=harness.HANGS))
            tool.shows()
            yield tool
            while (line := lines.get(timeout=harness.HANGS)) is not None:
                tool.lines.append(line)
            status, err = tool.wait(timeout=harness.HANGS), tool.stderr.read()
            expect((status, err) == (0, ""), f"top: {describe(status)}: {err}")
        finally:
            tool.kill()
            tool.wait()

    def rows(self, command, *options):
        answer = self.json(*command, *options)
        return answer, {(row["name"], row["symbol"], row["module"]): row for row in answer["rows" if command[0] == "top" else "functions"]}

    def agrees(self, *options, trace=None):
        """`top` of a finished trace says what `report` says, row by row."""
        path = trace or self.trace()
        (whole, rows), (report, expected) = self.rows(["top", path, "--once"], *options), self.rows(["report", path])
        own = [key for key in rows if key[0] == "(own code)"]
        shown = {key: row for key, row in rows.items() if key not in own}
        expect(shown.keys() == expected.keys(), f"{sorted(shown.keys() ^ expected.keys())[:6]}")
        for key, row in shown.items():
            other = expected[key]
            for mine, theirs in (("calls", "calls"), ("total_ns", "total_ns"), ("self_ns", "self_ns"), ("longest_ns", "max_ns"), ("p50_ns", "p50_ns"),
                                 ("p99_ns", "p99_ns"), ("p50_error_ns", "p50_error_ns")):
                expect(row[mine] == other[theirs], f"{key}: {mine} is {row[mine]}, of report {other[theirs]}")
            for name in ("only_counted", "only_counted_ns", "left_out"):
                expect(row.get(name) == other.get(name), f"{key}: {name} is {row.get(name)}, of report {other.get(name)}")
        for name in ("calls", "only_counted", "filtered", "dropped"):
            expect(whole[name] == report[name], f"{name}: {whole[name]}, of report {report[name]}")
        expect(whole["length_ns"] == report["duration_ns"], f"length: {whole['length_ns']}, of report {report['duration_ns']}")
        if len(report["processes"]) == 1:
            own_ns = sum(module["own_ns"] for module in report["modules"])
            expect(abs(whole["own_ns"] - own_ns) <= 4 * whole["threads"], f"own code: {whole['own_ns']}, of report {own_ns}")
        return whole


def ask(process, line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    words = process.stdout.readline().split()
    expect(words, f"no answer to {line}: {process.poll()}")
    return dict(zip(words[::2], map(int, words[1::2])))


def finish(process, status=0):
    out, err = process.communicate("end 0\n", timeout=harness.HANGS)
    expect((process.returncode, out, err) == (status, "", ""), f"{describe(process.returncode)}: {out!r} {err!r}")


def sums(lines):
    """Calls of each function over all intervals."""
    found = {}
    for line in lines:
        for row in line["rows"]:
            found[row["name"]] = found.get(row["name"], 0) + row["calls"]
    return found


def check_sums(lines, known, *, per_interval=True):
    found = sums(lines)
    for line in lines:
        expect(line["missing_chunks"] == line["skipped_events"] == line["dropped"] == 0, f"losses: {line}")
        if per_interval:
            expect(line["calls"] == sum(row["calls"] for row in line["rows"]), f"{line['calls']} calls, of rows {sum(row['calls'] for row in line['rows'])}")
    for name, calls in known.items():
        expect(found.get(name) == calls, f"{name}: {found.get(name)} in all intervals, {calls} made")


def finds_the_files_of_a_run(test):
    """A process id names it, the directory while it is written, and the trace that it becomes."""
    with test.recorded() as process:
        ask(process, "work 10")
        for target in (pid_of(process), test.trace()):
            with test.watched(target, "--once") as tool:
                pass
            expect(len(tool.lines) == 1 and not tool.lines[0]["is_over"], f"{tool.lines}")
        finish(process)
    test.agrees()


def pid_of(tool):
    """The only child of `tracer record` whose executable is not the tool's."""
    end = time.monotonic() + harness.HANGS
    while time.monotonic() < end:
        with open(f"/proc/{tool.pid}/task/{tool.pid}/children") as file:
            for pid in file.read().split():
                with contextlib.suppress(OSError):
                    if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "subject":
                        return int(pid)
    raise harness.Failed("the program did not start")


def counts_each_call_once(test):
    """Over many intervals, beside the recorder, which moves full chunks: the sums are the program's own."""
    with test.recorded() as process:
        ask(process, "work 1000")  # not shown
        with test.watched(pid_of(process)) as tool:
            known = {}
            for count in (1, 400_003, 400_003, 400_003, 40_000, 7):
                for name, calls in ask(process, f"work {count}").items():
                    known[name] = known.get(name, 0) + calls
                for _ in range(2):  # the second has read all that was before: no more than what one step makes can overtake it
                    tool.shows()
            known["calls_back"] += ask(process, "jump 5000")["calls_back"]
            finish(process)
        check_sums(tool.lines, known)
        expect(tool.lines[-1]["is_over"], "the end is not said")
        once = sum(known.values())
        expect(len(tool.lines) > 2 and once > 1e6, f"{len(tool.lines)} intervals")
    test.agrees()


def counts_what_threads_copy_themselves(test):
    """Without `tracer record` each thread copies its full chunk, and goes on in the same place."""
    process = test.running()
    try:
        ask(process, "work 1")
        with test.watched(process.pid) as tool:
            known = ask(process, "work 2000003")
            finish(process)
        check_sums(tool.lines, known)
    finally:
        process.kill()
        process.communicate()


def counts_calls_of_signal_handlers(test):
    with test.recorded() as process:
        ask(process, "work 1")
        with test.watched(pid_of(process)) as tool:
            known = ask(process, "signals 700")
            finish(process)
        check_sums(tool.lines, known)


def counts_calls_that_are_only_counted(test):
    test.compile("hot", "-O1", "-g", "-pthread", source=counted.BEGIN + r"""
int main(void) {
    char line[16];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) && line[0] == 'g') {
        TIMES(400003, hot);
        TIMES(300001, looped);
        puts("hot 400003 looped 300001");
    }
}
""", compiler=build.DRIVERS["gcc"][".c"])
    with test.recorded("--functions", "hot!*", program=[test.path("hot")]) as process:
        first = ask(process, "g")  # not shown
        with test.watched(test.trace()) as tool:
            known = ask(process, "g")
            expect(known == first, f"{known}")
            process.communicate("", timeout=harness.HANGS)
        check_sums(tool.lines, known)
        expect(sum(line["only_counted"] for line in tool.lines) > 1000, "nothing was only counted")
    test.agrees()


def says_what_a_ring_has_overwritten(test):
    """Sums are never above what was made; what is not in them is said."""
    with test.recorded("--mode", "ring", "--max-size", "1M") as process:
        ask(process, "work 1")
        with test.watched(pid_of(process)) as tool:
            known = ask(process, "work 3000000")
            finish(process)
        found = sums(tool.lines)
        expect(found["before"] <= known["before"], f"{found['before']} of {known['before']}")
        expect(found["before"] == known["before"] or any(line["missing_chunks"] + line["skipped_events"] for line in tool.lines), "a gap is not said")
    test.agrees()


def takes_back_what_a_time_filter_does(test):
    with test.recorded("--min-ms", "0.05") as process:
        ask(process, "work 1")
        with test.watched(pid_of(process), "--cumulative") as tool:
            known = ask(process, "work 200000")
            finish(process)
        last, report = tool.lines[-1], test.json("report", test.trace())
        for row in last["rows"]:
            expect(row["open"] < 20, f"calls that were taken back are open: {row}")
        expect(report["calls"] >= last["calls"], f"{last['calls']} calls, of report {report['calls']}")
        expect(last["calls"] + last["filtered"] <= report["calls"] + report["filtered"], f"{last['calls']} + {last['filtered']}")
        expect(last["filtered"] >= known["before"] * 0.9, f"{last['filtered']} filtered")
    test.agrees()


def shows_what_is_open(test):
    """A hang: what each thread is in, and for how long, though nothing is written any more."""
    with test.recorded() as process:
        expect(process.stdin.write("wait 0\n") and not process.stdin.flush() and process.stdout.readline() == "waiting\n", "it did not begin")
        pid = pid_of(process)
        with test.watched(pid, "-n", "2") as tool:
            pass
        for line in tool.lines:
            rows = {row["name"]: row for row in line["rows"]}
            expect(rows["poll"]["open"] == 1 and rows["poll"]["total_ns"] > 0.5 * line["length_ns"], f"poll: {rows['poll']}")
            expect(rows["poll"]["oldest_ns"] > 0 and rows["poll"]["calls"] == 0, f"poll: {rows['poll']}")
        expect(tool.lines[0]["rows"] != tool.lines[1]["rows"], "its age does not grow")
        threads = test.json("top", str(pid), "--once", "--by", "thread")["rows"]
        expect("poll" in [row.get("in") for row in threads] and len(threads) == 2, f"{threads}")
        finish(process)


def agrees_with_report(test):
    """Deep recursion, jumps, many threads; filters; a process that was killed."""
    for options in ((), ("--min-ms", "0.001"), ("--max-depth", "2"), ("--functions", "subject!*:libpart.so!*"), ("--mode", "ring", "--max-size", "512K")):
        with test.recorded(*options) as process:
            for line in ("deep 3000", "jump 200", "work 30001", "work 3"):
                ask(process, line)
            process.communicate("end 0\n", timeout=harness.HANGS)
        test.agrees()
    with test.recorded() as process:
        ask(process, "work 1000")
        process.stdin.write("wait 0\n")
        process.stdin.flush()
        process.stdout.readline()
        os.kill(pid_of(process), signal.SIGKILL)
        process.communicate(timeout=harness.HANGS)
    test.agrees()


def agrees_with_report_on_subjects(test):
    """Programs that do what is hard to follow: coroutines that move between threads, exceptions, handlers, threads that end, children."""
    for name in ("coroutines", "moving_coroutines", "exceptions", "signal_storm", "threads", "thread_ends", "ended_threads", "daemon"):
        case = build.case_of(name)
        program = build.build(case)
        test.forget_traces()
        harness.execute([program, *case.arguments], test.directory.fresh(), test.traced_environment(**case.environment))
        for trace in sorted(os.listdir(test.traces)):
            test.agrees(trace=test.trace(trace))


def ends_with_the_process(test):
    with test.recorded() as process:
        ask(process, "work 10")
        with test.watched(pid_of(process)) as tool:
            os.kill(pid_of(process), signal.SIGKILL)
        expect(tool.lines[-1]["is_over"] and tool.lines[-1]["processes"][0]["state"] == "ended", f"{tool.lines[-1]['processes']}")
        process.communicate(timeout=harness.HANGS)


def refuses_in_one_line(test):
    def refused(said, *words, status=1):
        done = test.tool("top", *words, status=status)
        expect(said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{words}: {done.stderr!r}")
    process = subprocess.Popen(["sleep", "1000"])
    try:
        refused("is not being recorded: tracer top", str(process.pid), "--once")
    finally:
        process.kill()
        process.wait()
    refused("no process", str(process.pid), status=2)
    refused("is not a trace", test.write("text.trace", "no trace at all\n"))
    refused("is empty", test.write("empty.trace", ""))
    refused("--attach takes the id", "text.trace", "--attach", status=2)
    refused("need --attach", str(os.getpid()), "--min-ms", "1", status=2)
    refused("--interval takes", str(os.getpid()), "--interval", "1ms", status=2)
    test.execute([test.program], TRACER_OUT=test.trace("b.trace"))
    with open(test.trace("b.trace"), "r+b") as file:
        file.truncate(100)
    refused("truncated", test.trace("b.trace"))


def attaches_for_as_long_as_it_shows(test):
    forbidden = harness.attaching_is_forbidden()
    if forbidden:
        raise Skipped(forbidden)
    process = subprocess.Popen([test.program, "tick"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=test.made, env=test.environment(), preexec_fn=harness.attachable)
    folder = test.path("tmp")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    try:
        ask(process, "work 100")
        for count in (20_000, 30_000):
            tool = subprocess.Popen([test.settings.tool, "top", str(process.pid), "--attach", "--json", "--interval", "200ms"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=test.made, env=test.environment(TMPDIR=folder))
            lines = [json.loads(tool.stdout.readline())]
            known = ask(process, f"work {count}")
            while sums(lines).get("before", 0) < known["before"]:
                lines.append(json.loads(tool.stdout.readline()))
            tool.send_signal(signal.SIGINT)
            out, err = tool.communicate(timeout=harness.HANGS)
            expect((tool.returncode, err) == (0, ""), f"{describe(tool.returncode)}: {err}")
            check_sums(lines + [json.loads(line) for line in out.splitlines()], known)
            expect(os.listdir(folder) == [], f"left: {os.listdir(folder)}")
        refused = test.tool("top", str(process.pid), "--once", status=1)
        expect("not being recorded" in refused.stderr, refused.stderr)
        finish(process)
    finally:
        process.kill()
        process.communicate()


# In a terminal.

class Terminal:
    """A shell in tmux, with a server of its own."""
    def __init__(self, test):
        suite.need("tmux")
        self.test, self.socket = test, test.path("tmux")
        self.tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "env", "-i", *(f"{key}={value}" for key, value in self.variables().items()), "bash", "--norc")
        self.shows("ready$")

    def variables(self):
        return {**self.test.environment(), "TERM": "screen", "PS1": "ready$ ", "TOP": self.test.settings.tool, "NO_COLOR": "1"}

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *words], capture_output=True, text=True, timeout=harness.HANGS,
                              cwd=self.test.made, env=self.test.environment())
        expect(not done.returncode, f"tmux {words}: {done.stderr}")
        return done.stdout

    def type(self, text, *keys):
        self.tmux("send-keys", "-l", text) if text else None
        if keys:
            self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p").splitlines()

    def shows(self, *texts, without=()):
        """Waits until the screen has these texts, and returns its lines."""
        end = time.monotonic() + harness.HANGS
        while True:
            lines = self.screen()
            whole = "\n".join(lines)
            if all(text in whole for text in texts) and not any(text in whole for text in without):
                return lines
            expect(time.monotonic() < end, f"never shown: {texts} without {without}:\n{whole}")

    def prompts(self):
        """Waits until the shell waits for a command: what is typed before belongs to the tool, or is thrown away with its terminal modes."""
        end = time.monotonic() + harness.HANGS
        while not [line.rstrip() for line in self.screen() if line.strip()][-1:] == ["ready$"]:
            expect(time.monotonic() < end, "no prompt:\n" + "\n".join(self.screen()))

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


@contextlib.contextmanager
def terminal(of):
    shell = Terminal(of)
    try:
        yield shell
    finally:
        shell.end()


@contextlib.contextmanager
def busy(of):
    """The program at work, as long as it is watched."""
    with of.recorded() as process:
        process.stdin.write("work 100000000\n")
        process.stdin.flush()
        yield process


def order(lines):
    """Names of the functions that are shown, from above."""
    start = next(n for n, line in enumerate(lines) if "calls/s" in line and "function" in line) + 1
    return [line.split()[-2] if len(line.split()) > 1 else "" for line in lines[start:] if line.strip() and "|" not in line]


def has_keys_for_orders_and_groups(test):
    with terminal(test) as shell, busy(test) as process:
        shell.type(f"$TOP top {pid_of(process)} --interval 200ms", "Enter")
        first = shell.shows("calls/s", "libpart.so", "before", "sorted by self")
        expect(len(first) == ROWS and "q quit" in first[-1] or "sorted by" in first[-1], f"{first[-1]}")
        # In place: what is shown now is not below what was shown before.
        for key, said in (("c", "calls"), ("t", "total"), ("p", "p50"), ("9", "p99"), ("l", "longest"), ("o", "open"), ("n", "name"), ("s", "self")):
            shell.type(key)
            lines = shell.shows(f"sorted by {said}", "calls/s")
            expect(sum("calls/s" in line and "function" in line for line in lines) == 1, "\n".join(lines))
        shell.type("n")
        names = order(shell.shows("sorted by name", "own code)", "before", "calls_back"))  # an interval in which it has run
        expect(names[0] == "code)" and names[1:] == sorted(names[1:]) and len(names) > 2, f"{names}")
        shell.type("T")
        shell.shows("thread", "tid", "subject")
        shell.type("m")
        shell.shows("libpart.so", without=("calls_back",))
        shell.type("f")
        shell.shows("calls_back")
        shell.type("a")
        shell.shows("since the beginning")
        shell.type("a")
        shell.shows("calls_back", without=("since the beginning",))
        shell.type(" ")
        paused = shell.shows("paused")
        expect(shell.shows("paused")[0] == paused[0], "the figures of a paused screen change")
        shell.type(" ")
        shell.shows("calls/s", without=("paused",))
        shell.type("/")
        shell.shows("filter:")
        shell.type("befo", "Enter")
        lines = shell.shows("only befo", without=("calls_back",))
        expect(order(lines) == ["before"], f"{order(lines)}")
        shell.type("/", "C-h", "C-h", "C-h", "C-h", "Enter")
        shell.shows("calls_back", without=("only befo",))
        shell.type("h")
        shell.shows("Any key goes back")
        shell.type("h")
        shell.shows("calls_back", without=("Any key",))
        shell.type("q")
        shell.shows("ready$", without=("calls/s",))


def leaves_the_terminal_as_it_was(test):
    """However it ends, and while it is suspended."""
    with terminal(test) as shell, busy(test) as process:
        command = f"$TOP top {pid_of(process)} --interval 200ms"
        shell.type("stty -g > before", "Enter")
        def is_as_before(said=""):
            shell.prompts()
            shell.type("clear; stty -g | cmp - before && echo sa''me", "Enter")
            shell.shows("same", said)
        shell.type(command, "Enter")
        shell.shows("sorted by self", "before")
        shell.type("", "C-c")
        is_as_before()
        shell.type(command, "Enter")
        shell.shows("sorted by self", "before")
        shell.type("", "C-z")
        shell.shows("Stopped")
        is_as_before()
        shell.type("fg", "Enter")
        shell.shows("sorted by self", "before")
        shell.type("q")
        is_as_before()
        for end in ("TERM", "HUP", "SEGV"):
            shell.type(f"({command}; echo ended $?)", "Enter")
            shell.shows("sorted by self", "before")
            subprocess.run(["pkill", "-" + end, "-f", f"^{test.settings.tool} top {pid_of(process)}"], check=True)
            shell.shows("ended")
            is_as_before()


def fits_the_terminal(test):
    with terminal(test) as shell, busy(test) as process:
        shell.type(f"$TOP top {pid_of(process)} --interval 200ms", "Enter")
        shell.shows("sorted by self", "before", "oldest")
        for width, height in ((60, 12), (40, 8), (120, 40)):
            shell.tmux("resize-window", "-x", str(width), "-y", str(height))
            end = time.monotonic() + harness.HANGS
            while True:
                lines = shell.screen()
                if len(lines) == height and "sorted by" in lines[-1] and all(len(line) <= width for line in lines) and any("before" in line for line in lines):
                    break
                expect(time.monotonic() < end, "\n".join(lines))
        shell.type("q")
        shell.shows("ready$")


def shows_the_end_of_the_process(test):
    with terminal(test) as shell, test.recorded() as process:
        ask(process, "work 1")
        shell.type(f"$TOP top {pid_of(process)} --interval 200ms; echo status $?", "Enter")
        shell.shows("sorted by self")
        known = ask(process, "work 20000")
        shell.type("a")
        finish(process)
        shell.shows("has ended", "before")
        shell.type("q")
        lines = shell.shows("status 0", "has ended", "before")
        expect(known["before"] > 0 and lines, "")


def tests():
    return suite.tests_of(__name__, Top)
