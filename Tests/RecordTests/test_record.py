"""`tracer record` as its users meet it: statuses, signals, refusals, and the file it prepares.

The tool is copied beside a libtracer.so that does nothing, so that these tests are about the recorder alone; a small C program
plays the agent where a trace file is needed. No test waits by sleeping: programs say when they are ready.
"""
import os
import pathlib
import platform
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from kernel_account import kernel_reports, refusing
from recorded_programs import LIMIT, PYTHON, ROOT

HERE = os.path.dirname(os.path.abspath(__file__))

# Counts a signal, says "ready", and on each line of input says how often it came; ends at the end of input.
# Waits in select for its input and for signals at once: Python notes a signal that comes between two system calls, and the second waits.
COUNTER = """
import os, select, signal, sys
number, count = int(sys.argv[1]), 0
arrived, arrive = os.pipe()
os.set_blocking(arrive, False)
signal.set_wakeup_fd(arrive)
signal.signal(number, lambda *_: None)
os.write(1, b"ready\\n")
while True:
    ready = select.select([0, arrived], [], [])[0]
    if arrived in ready:
        for _ in os.read(arrived, 100):
            count += 1
            os.write(1, b"got\\n")
    elif not os.read(0, 100):
        break
    else:
        os.write(1, b"count %d\\n" % count)
"""


def setUpModule():
    global SCRATCH, TOOL, FAKE
    SCRATCH = tempfile.mkdtemp(prefix="record-tests-")
    TOOL = os.path.join(SCRATCH, "bin", "tracer")
    os.mkdir(os.path.dirname(TOOL))
    shutil.copy(os.path.join(ROOT, ".build/release/tracer"), TOOL)
    FAKE = build("fake_agent", os.path.join(HERE, "fake_agent.c"), "-I" + os.path.join(ROOT, "Sources/Format/CTraceLayout/include"))
    build("bin/libtracer.so", *AGENT)


# Does nothing, and says that it is an agent of the tool's version.
AGENT = [os.path.join(ROOT, "CSupport/version_note.c"), "-I" + os.path.join(ROOT, "Sources/Format/CTraceLayout/include"), "-shared", "-fPIC"]


def tearDownModule():
    shutil.rmtree(SCRATCH)


def build(name, source, *options):
    path = os.path.join(SCRATCH, name)
    subprocess.run(["gcc", "-O1", "-o", path, source, *options], check=True, timeout=LIMIT)
    return path


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(dir=SCRATCH)

        def give_up(*_):
            raise TimeoutError(f"not finished after {LIMIT} s")
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(LIMIT)
        self.addCleanup(signal.alarm, 0)

    def record(self, *arguments, **options):
        """With `status` it must end so."""
        options.setdefault("cwd", self.directory)
        data, status = options.pop("input", None), options.pop("status", None)
        # A group of its own in our session, so that a test that hangs can be ended with all that it started (and not a
        # session: the kernel does not stop the processes of an orphaned group).
        process = subprocess.Popen([TOOL, "record", *arguments], stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0, **options)
        try:
            out, err = process.communicate(data, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if status is not None:
            self.assertEqual(process.returncode, status, err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def write(self, name, content, mode=0o755):
        path = os.path.join(self.directory, name)
        pathlib.Path(path).write_bytes(content)
        os.chmod(path, mode)
        return path

    def refused(self, status, text, *arguments, **options):
        done = self.record(*arguments, **options)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(done.returncode, status, lines)
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("tracer: "), lines)
        self.assertIn(text, lines[0])
        self.assertEqual(done.stdout, b"")


class Statuses(RecordTest):
    def test_own_status_is_kept(self):
        for status in (0, 1, 2, 7, 126, 127, 255):
            self.assertEqual(self.record("sh", "-c", f"exit {status}").returncode, status)

    def test_signal_death_is_128_and_the_signal(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGHUP, signal.SIGPIPE):
            self.assertEqual(self.record("sh", "-c", f"ulimit -c 0; kill -{int(number)} $$").returncode, 128 + number)

    def test_usage_errors_are_2_and_nothing_starts(self):
        for options in (["--max-depth", "x"], ["--min-ms", "fast"], ["--max-size", "1"], ["--mode", "half"], ["--start", "x"],
                        ["--include", ""], ["-o", "no/such/t"], ["-o", "%q"]):
            self.refused(2, {"": "glob", "no/such/t": "no/such"}.get(options[1], options[1]), *options, "touch", "started")
            self.assertFalse(os.path.exists(os.path.join(self.directory, "started")))
        for value in ("0", "-1", "100000000", "often"):
            self.refused(2, f"--sample {value}: give a number", f"--sample={value}", "-o", "t", "touch", "started")
            self.assertFalse(os.path.exists(os.path.join(self.directory, "started")))
        bad = {**os.environ, "TRACER_MINMS": "abc"}
        self.refused(2, "TRACER_MINMS=abc: give milliseconds", "-o", "t", "touch", "started", env=bad)
        self.assertFalse(os.path.exists(os.path.join(self.directory, "started")))
        self.assertEqual(self.record("--min-ms", "1", "-o", "t", "true", env=bad).returncode, 0)
        self.refused(2, "--bogus", "--bogus", "true")
        self.refused(2, "needs a program")
        self.refused(2, "needs a program", "--")

    def test_help_is_help(self):
        done = self.record("--help")
        self.assertEqual(done.returncode, 0)
        with open(os.path.join(ROOT, "docs/reference/settings.md"), encoding="utf-8") as manual:
            rows = [line.split("|")[1:3] for line in manual if "| `TRACER_" in line]
        self.assertGreater(len(rows), 10)
        for options, variable in rows:
            if "of `startup`" not in options:
                self.assertIn(variable.strip(" `"), done.stdout.decode())
                for option in re.findall("--[a-z-]+", options):
                    self.assertIn(option, done.stdout.decode())

    def test_missing_program_is_127(self):
        self.refused(127, "not found in PATH", "no-such-program")
        self.refused(127, "No such file", "./no-such-program")

    def test_missing_agent_is_said(self):
        alone = os.path.join(self.directory, "tracer")
        shutil.copy(TOOL, alone)
        done = subprocess.run([alone, "record", "true"], cwd=self.directory, capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 126)
        self.assertIn(b"libtracer.so is neither in", done.stderr)

    def test_library_that_is_no_agent_of_this_tool_is_refused(self):
        folder = os.path.join(self.directory, "bin")
        os.mkdir(folder)
        tool, agent = shutil.copy(TOOL, folder), os.path.join(folder, "libtracer.so")
        empty, older = os.path.join(self.directory, "empty.c"), os.path.join(self.directory, "version.h")
        with open(empty, "w"), open(older, "w") as file, open(os.path.join(ROOT, "Sources/Format/CTraceLayout/include/version.h")) as header:
            file.write(re.sub(r'(#define TRACER_VERSION) .*', r'\1 "0.0.7"', header.read()))
        for expected, options in {
            "is not tracer's agent": [empty, "-shared", "-fPIC"],
            "is the agent of tracer 0.0.7": [AGENT[0], "-I" + self.directory, "-shared", "-fPIC"],
            "not built correctly: it needs libm.so.6": [*AGENT, "-Wl,--no-as-needed", "-lm"],
        }.items():
            build(agent, *options)
            done = subprocess.run([tool, "record", "touch", "started"], cwd=self.directory, capture_output=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 126, done)
            self.assertIn(expected.encode(), done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.directory, "started")))
        build(agent, *AGENT)
        done = subprocess.run([tool, "record", "touch", "started"], cwd=self.directory, capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done)
        self.assertTrue(os.path.exists(os.path.join(self.directory, "started")))


class Transparency(RecordTest):
    def test_streams_and_arguments_pass_as_bytes(self):
        data = bytes(range(256)) * 1000
        done = self.record("cat", input=data)
        self.assertEqual(done.stdout, data)
        done = self.record("--", "printf", "%s|", b"\xff\xfe", "--max-depth", "--", "")
        self.assertEqual(done.stdout, b"\xff\xfe|--max-depth|--||")

    def test_environment_differs_by_our_variables_only(self):
        variables = {**os.environb, b"ODD": b"\xff\x01", b"LD_PRELOAD": b""}
        bare = subprocess.run(["env", "-0"], env=variables, capture_output=True, timeout=LIMIT).stdout.split(b"\0")
        traced = self.record("--quiet", "env", "-0", env=variables).stdout.split(b"\0")
        ours = (b"LD_PRELOAD=", b"TRACER_OUT=", b"TRACER_SESSION=", b"TRACER_EXEC=", b"TRACER_QUIET=")
        ignored = (b"_=", b"PWD=", b"OLDPWD=")
        self.assertEqual([e for e in traced if not e.startswith(ours + ignored)],
                         [e for e in bare if not e.startswith(ours + ignored)])

    def test_options_reach_the_agent(self):
        before = time.monotonic_ns()
        done = self.record("-o", "x.%p", "--max-depth", "3", "--min-ms", ".5", "--include", "a*", "--include", "b", "--exclude", "c",
                           "--max-size", "64M", "--mode", "ring", "--no-children", "--no-cache", "--start", "off", "env", env={**os.environ, "LD_PRELOAD": ""})
        got = dict(line.split("=", 1) for line in done.stdout.decode().splitlines() if line.startswith(("TRACER_", "LD_PRELOAD=")))
        session, parent, namespace = got.pop("TRACER_SESSION").split("-")
        self.assertRegex(session, "^[0-9a-f]{16}$")
        self.assertTrue(int(parent) > 1)
        self.assertEqual(int(namespace), os.stat("/proc/self/ns/pid").st_ino)
        moment, pid = got.pop("TRACER_EXEC").split("-")
        self.assertTrue(before < int(moment) < time.monotonic_ns() and int(pid) > 1)
        self.assertEqual(got, {
            "LD_PRELOAD": os.path.join(os.path.realpath(SCRATCH), "bin/libtracer.so"), "TRACER_OUT": os.path.join(self.directory, "x.%p"),
            "TRACER_MAXDEPTH": "3", "TRACER_MINMS": ".5", "TRACER_INCLUDE": "a*:b", "TRACER_EXCLUDE": "c", "TRACER_MAXSIZE": "64M",
            "TRACER_MODE": "ring", "TRACER_CHILDREN": "off", "TRACER_CACHE": "off", "TRACER_START": "off"})

    def test_the_shortest_call_takes_units(self):
        for text, milliseconds in (("20us", "0.020000"), ("1.5ms", "1.500000"), ("2s", "2000.000000"), ("0.5", "0.5")):
            done = self.record("--quiet", "--min-ms", text, "env")
            self.assertIn("TRACER_MINMS=" + milliseconds, done.stdout.decode().splitlines())

    def test_session_names_the_parent_of_the_program(self):
        done = self.record("sh", "-c", "echo $PPID $(echo $TRACER_SESSION | cut -d- -f2)")
        first, second = done.stdout.split()
        self.assertEqual(first, second)

    def test_program_knows_when_exec_was_called(self):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        done = self.record("--quiet", sys.executable, "-c",
                           "import os, time; print(os.environ['TRACER_EXEC'], os.getpid(), time.clock_gettime_ns(time.CLOCK_MONOTONIC))")
        handed, pid, after = done.stdout.split()
        exec_time, exec_pid = handed.split(b"-")
        self.assertEqual(int(exec_pid), int(pid))
        self.assertTrue(before < int(exec_time) < int(after))

    def test_descriptors_are_the_callers(self):
        done = self.record("sh", "-c", "ls /proc/$$/fd; :")
        self.assertEqual(done.stdout.split(), [b"0", b"1", b"2"])

    def test_closed_standard_streams_stay_closed(self):
        program = [PYTHON, "-c", "import os; os.write(3, ' '.join(sorted(os.listdir('/proc/self/fd'))).encode())"]

        def opened(*command):
            return subprocess.run(["sh", "-c", 'exec "$@" 3>&1 <&- >&- 2>&-', "sh", *command], capture_output=True, timeout=LIMIT,
                                  cwd=self.directory).stdout
        self.assertEqual(opened(*program), b"0 3")  # 0 is the directory that is listed
        self.assertEqual(opened(TOOL, "record", "--quiet", *program), b"0 3")

    def test_signal_state_is_what_the_caller_gave(self):
        shows = ["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"]
        for ignored in ([], [signal.SIGINT], [signal.SIGCHLD], [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP]):
            def prepare():
                for number in (signal.SIGPIPE, signal.SIGXFSZ): # Python itself ignores them
                    signal.signal(number, signal.SIG_DFL)
                for number in ignored:
                    signal.signal(number, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
            bare = subprocess.run(shows, preexec_fn=prepare, restore_signals=False, capture_output=True, timeout=LIMIT)
            traced = self.record(*shows, preexec_fn=prepare, restore_signals=False)
            self.assertEqual(traced.stdout, bare.stdout)
            self.assertEqual(traced.returncode, 0)

    def test_text_without_a_magic_line_is_run_by_the_shell(self):
        path = self.write("text", b"echo $0 $1\n")
        self.assertEqual(self.record(path, "x").stdout.decode(), path + " x\n")

    def test_full_stderr_does_not_change_the_status(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, "record", "sh", "-c", "exit 5"], stderr=full, timeout=LIMIT, cwd=self.directory)
        self.assertEqual(done.returncode, 5)
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([TOOL, "record", "sh", "-c", "exit 5"], stderr=write, timeout=LIMIT, cwd=self.directory)
        os.close(write)
        self.assertEqual(done.returncode, 5)

    def test_file_limit_ends_neither_tool_nor_program(self):
        done = subprocess.run(["sh", "-c", f"ulimit -f 8; exec {TOOL} record {FAKE} file"], capture_output=True, timeout=LIMIT, cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)


class Refusals(RecordTest):
    SOURCE = b"int main(void) { return 0; }\n"

    def compiled(self, *options):
        source = self.write("program.c", self.SOURCE)
        path = os.path.join(self.directory, "program")
        subprocess.run(["gcc", "-o", path, source, *options], check=True, timeout=LIMIT)
        return path

    def test_static_program(self):
        for options in (["-static"], ["-static-pie"]):
            self.refused(126, "statically linked", self.compiled(*options))

    def test_script_of_a_static_interpreter(self):
        script = self.write("script", b"#!" + self.compiled("-static").encode() + b"\n")
        self.refused(126, "the interpreter of", script)

    def test_other_programs_the_agent_cannot_live_in(self):
        image = bytearray(pathlib.Path("/bin/true").read_bytes())
        other = bytearray(image)
        other[18:20] = struct.pack("<H", 183 if image[18] == 62 else 62)
        self.refused(126, "another CPU architecture", self.write("other", other))
        other = bytearray(image)
        other[4] = 1
        self.refused(126, "32-bit", self.write("small", other))
        self.refused(126, "cannot be executed", self.write("cut", image[:70]))
        self.refused(126, "interpreter in the #! line", self.write("lost", b"#!/no/such/thing\n"))
        self.refused(126, "not executable", self.write("data", image, 0o644))
        self.refused(126, "a directory", "/tmp")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to make such files")
    def test_privileged_programs_for_another_user(self):
        os.chmod(SCRATCH, 0o755)
        os.chmod(self.directory, 0o777)
        path = self.compiled()
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        self.assertEqual(self.record("--quiet", path, **nobody).returncode, 0)
        os.chmod(path, 0o4755)
        self.refused(126, "set-user-ID", path, **nobody)
        self.assertEqual(self.record(path).returncode, 0)  # root stays root
        os.chmod(path, 0o2755)
        self.refused(126, "set-group-ID", path, **nobody)
        os.chmod(path, 0o755)
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        self.refused(126, "file capabilities", path, **nobody)
        self.assertEqual(self.record(path).returncode, 0)
        os.removexattr(path, "security.capability")
        os.chmod(path, 0o711)
        self.refused(126, "cannot be read", path, **nobody)
        os.chmod(self.directory, 0o555)
        self.refused(2, "not writable", "true", **nobody)


class Signals(RecordTest):
    def start(self, number, **options):
        process = subprocess.Popen([TOOL, "record", PYTHON, "-c", COUNTER, str(int(number))], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.directory, **options)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def end(self, process):
        """With all that it started, should the test have failed; they are a group of their own."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def has_dealt_with(self, pid, number):
        """The tool waits for signals and files (ppoll), and this one is not among them."""
        with open(f"/proc/{pid}/status") as status:
            [bits] = [int(line.split()[1], 16) for line in status if line.startswith("ShdPnd:")]
        waits = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] == {"x86_64": "271", "aarch64": "73"}[os.uname().machine]
        return waits and not bits >> (number - 1) & 1

    def count(self, process):
        """How often the program was sent a signal, once another one, sent later, has come through as well."""
        self.assertEqual(process.stdout.readline(), b"got\n")
        out, err = process.communicate(b"\n", timeout=LIMIT)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(err.count(b"\n"), 1, err)  # the summary
        return out

    def test_signal_to_the_tool_reaches_the_program_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGWINCH):
            process = self.start(number, start_new_session=True)
            process.send_signal(number)
            self.assertEqual(self.count(process), b"count 1\n", number)

    def test_signal_to_the_group_reaches_the_program_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            process = self.start(number, start_new_session=True)
            for _ in range(3):
                os.killpg(process.pid, number)
                self.assertEqual(process.stdout.readline(), b"got\n")
            while not self.has_dealt_with(process.pid, number):
                os.sched_yield()  # two that come at once are one
            process.send_signal(number)  # and one for the tool alone
            self.assertEqual(self.count(process), b"count 4\n", number)

    def test_default_action_of_a_forwarded_signal_ends_the_program(self):
        process = subprocess.Popen([TOOL, "record", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.directory)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.terminate()
        self.assertEqual(process.wait(timeout=LIMIT), 128 + signal.SIGTERM)
        process.communicate()

    def test_alarm_that_was_set_for_the_program_reaches_it(self):
        perl = shutil.which("perl")
        if not perl:
            self.skipTest("perl is not here")
        for seconds in (1, 10, 100):  # until the tool is there before the alarm, which otherwise ends it as it would any program
            process = subprocess.Popen([perl, "-e", f"alarm {seconds}; exec @ARGV", TOOL, "record", "cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.directory)
            with process.stdin:  # cat has input for ever
                status = process.wait(timeout=LIMIT)
            if status != -signal.SIGALRM:
                break
        self.assertEqual(status, 128 + signal.SIGALRM)

    def test_no_thread_of_the_tool_takes_a_signal_from_the_run_loop(self):
        """Plans are made by several threads, which may be there for some seconds more."""
        process = subprocess.Popen([TOOL, "record", "--functions", "*!*", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   cwd=self.directory, env={**os.environ, "TRACER_CACHE": "on", "XDG_CACHE_HOME": self.directory})
        self.assertEqual(process.stdout.readline(), b"ready\n")
        others = [number for number in os.listdir(f"/proc/{process.pid}/task") if int(number) != process.pid]
        for number in others:
            try:
                with open(f"/proc/{process.pid}/task/{number}/status", encoding="utf-8") as file:
                    blocked = int(re.search(r"SigBlk:\s*(\w+)", file.read())[1], 16)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            for name in ("SIGCHLD", "SIGINT", "SIGTERM", "SIGTSTP", "SIGWINCH"):
                self.assertTrue(blocked >> (getattr(signal, name) - 1) & 1, f"thread {number} does not block {name}: {blocked:x}")
        process.stdin.close()
        self.assertEqual(process.wait(LIMIT), 0)
        process.stdout.close()
        if not others:
            self.skipTest("one CPU: no other thread makes plans")

    def test_program_that_others_stop_and_continue_does_not_stop_the_run(self):
        for number in ("STOP", "TSTP"):
            done = self.record("sh", "-c", f"(while ! grep -q '^State:.T' /proc/$$/status; do :; done; kill -CONT $$) & kill -{number} $$; wait; echo awake")
            self.assertEqual((done.returncode, done.stdout), (0, b"awake\n"))

    def test_nothing_is_left_behind(self):
        process = self.start(signal.SIGUSR1, start_new_session=True)
        group = process.pid
        process.communicate(timeout=LIMIT)
        with self.assertRaises(ProcessLookupError):
            os.killpg(group, 0)


class Terminal(RecordTest):
    """The tool in the foreground of a terminal of its own, as from an interactive shell."""

    def start(self, *command):
        pid, self.terminal = pty.fork()
        if pid == 0:
            try:
                self.be_the_shell(command)
            finally:
                os._exit(99)  # what goes wrong must not run the other tests here, too
        self.shell = pid
        self.text = b""
        self.addCleanup(self.finish)

    def be_the_shell(self, command):
        """The session's leader, with the tool as a job in the foreground."""
        os.chdir(self.directory)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execv(TOOL, [TOOL, "record", *command])
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                os.write(1, b"[status %d]\n" % os.waitstatus_to_exitcode(status))
                return
            os.tcsetpgrp(0, os.getpgrp())
            os.write(1, b"[stopped]\n")
            os.read(0, 100)  # "fg", a line
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)

    def finish(self):
        os.close(self.terminal)
        os.waitpid(self.shell, 0)

    def expect(self, text):
        while text not in self.text:
            ready, _, _ = select.select([self.terminal], [], [], LIMIT)
            self.assertTrue(ready, f"{text} did not come; so far: {self.text}")
            try:
                self.text += os.read(self.terminal, 4096)
            except OSError:
                self.fail(f"{text} did not come; all there was: {self.text}")
        self.text = self.text[self.text.index(text) + len(text):]

    def type(self, keys):
        os.write(self.terminal, keys)

    def test_interrupt_key_reaches_the_program_once(self):
        self.start(PYTHON, "-c", COUNTER, str(int(signal.SIGINT)))
        self.expect(b"ready")
        for _ in range(3):
            self.type(b"\x03")
            self.expect(b"got")
        self.type(b"\n")
        self.expect(b"count 3")
        self.type(b"\x04")
        self.expect(b"tracer: ")
        self.expect(b"[status 0]")

    def test_interrupted_program_ends_with_a_summary(self):
        self.start("sh", "-c", "echo ready; exec cat")
        self.expect(b"ready")
        self.type(b"\x03")
        self.expect(b"tracer: ")
        self.expect(b"[status 130]")

    def test_stop_key_stops_both_and_the_shell_continues_both(self):
        self.start("sh", "-c", "echo ready; exec cat")
        self.expect(b"ready")
        # The second key and those after it come as soon as the program runs again: the tool may still be at the first.
        for _ in range(20):
            self.type(b"\x1a")
            self.expect(b"[stopped]")
            self.type(b"f\n")
            self.type(b"hello\n")
            self.expect(b"hello\r\nhello")
        self.type(b"\x04")
        self.expect(b"[status 0]")

    def test_program_that_ignores_the_stop_key_is_not_stopped(self):
        self.start("sh", "-c", "trap '' TSTP; echo ready; exec cat")
        self.expect(b"ready")
        self.type(b"\x1a")
        self.type(b"on\n")
        self.expect(b"on\r\non")
        self.type(b"\x04")
        self.expect(b"[status 0]")


class Preparation(RecordTest):
    """How long files are: without what the kernel reports, which comes after it (States)."""

    def record(self, *arguments, **options):
        return super().record("--no-states", *arguments, **options)

    def files(self):
        return sorted(name for name in os.listdir(self.directory))

    def size(self, name):
        return os.stat(os.path.join(self.directory, name)).st_size

    def test_file_is_prepared_ahead_and_cut_to_what_was_used(self):
        done = self.record("-o", "t", FAKE, "file", "await", str(1 << 20), "take", "65536", "close", status=0)
        self.assertEqual(self.size("t"), 4096 + 32768)
        content = pathlib.Path(self.directory, "t").read_bytes()
        self.assertEqual(content[4096 + 128:], b"\x77" * (32768 - 128))
        self.assertEqual(struct.unpack_from("<Q", content, 96), (len(content),))  # next_offset
        self.assertIn(b"/t", done.stderr)

    def test_lead_follows_the_program(self):
        self.record("-o", "t", FAKE, "file", *["await", str(1 << 20), "take", str(1 << 20)] * 40, status=0)
        self.assertEqual(self.size("t"), 4096 + 39 * (1 << 20) + (1 << 19))  # open, so cut at its last word

    def test_killed_program_leaves_what_it_wrote(self):
        done = self.record("-o", "t.%p", FAKE, "file", "take", "65536", "await", str(1 << 20), "kill")
        self.assertEqual(done.returncode, 137)
        [name] = self.files()
        self.assertEqual(self.size(name), 4096 + 32768)

    def test_new_image_of_the_process_is_prepared_too(self):
        self.record("-o", "t.%e", FAKE, *f"file await 4096 take 8192 exec file await {1 << 20} take 16384".split(), status=0)
        self.assertEqual([(name, self.size(name)) for name in self.files()], [("t.fake_agent", 8192), ("t.image2", 4096 + 8192)])

    def test_file_of_another_process_is_not_touched(self):
        """A daemon that outlives the program keeps its file whole: it may be writing."""
        self.record("-o", "t.%p", "sh", "-c", f"{FAKE} file take 65536", status=0)
        [name] = self.files()
        self.assertEqual(self.size(name), 4096 + 65536)

    def test_files_of_other_sessions_are_left_alone(self):
        self.write("t.old", b"TRACER\x1a\n" + b"\1" + bytes(1 << 20), 0o644)
        self.write("t.dir", b"x", 0o600)
        os.mkfifo(os.path.join(self.directory, "t.fifo"))
        self.record("-o", "t.%p", FAKE, "file", "await", "4096", status=0)
        self.assertEqual(self.size("t.old"), 9 + (1 << 20))


class KernelRecords:
    """Kernel records of a trace's process image: those that follow KERNEL in its last chunks."""

    def __init__(self, path):
        self.path = path
        content = pathlib.Path(path).read_bytes()
        self.kernel, self.tasks, self.switches, self.waits, self.faults = None, [], [], [], []
        at = 4096
        while at + 128 <= len(content):
            magic, kind, _, count, body = struct.unpack_from("<IHHII", content, at)
            if magic == 0x4b484354 and kind == 2:
                self.read(content[at + body:at + count])
            at += count if magic == 0x4b484354 else 4096
        self.end = at

    def read(self, records):
        at = 0
        while at + 8 <= len(records):
            kind, key, count = struct.unpack_from("<HHI", records, at)
            if kind == 0:
                return
            assert count >= 8 and count % 8 == 0 and at + count <= len(records)
            body = records[at + 8:at + count]
            if kind == 20:
                assert self.kernel is None
                self.kernel = dict(zip(("asked", "granted", "error", "paranoid", "since", "until", "lost", "period"),
                                       struct.unpack("<IIIiQQQQ", body)))
            elif kind == 21:
                [n] = struct.unpack_from("<I", body)
                self.switches += [struct.unpack_from("<QIHH", body, 8 + 16 * i) for i in range(n)]
            elif kind == 22:
                time, tid, by, name = struct.unpack("<QII16s", body)
                self.tasks.append(({1: "began", 2: "ended", 3: "named", 4: "executed"}[key], tid, by, name.rstrip(b"\0").decode(), time))
            elif kind == 23:
                self.faults.append((key, *struct.unpack_from("<QI", body)))
            elif kind == 24:
                time, tid, number, first, second, function, obj = struct.unpack_from("<QIiQQII", body)
                self.waits.append((tid, number, body[40:40 + function].decode(), body[40 + function:40 + function + obj].decode()))
            at += count


class States(RecordTest):
    """When threads ran and waited, as the kernel reports it, after what the agent has written."""

    def recorded(self, name):
        path = os.path.join(self.directory, name)
        if os.path.isdir(path): # a process that records nothing lived on, and might have left a trace
            [file] = os.listdir(path)
            path = os.path.join(path, file)
        return KernelRecords(path)

    @unittest.skipUnless(kernel_reports(), "perf_event_open is not allowed here")
    def test_switches_of_the_program_are_in_its_trace(self):
        os.mkfifo(os.path.join(self.directory, "p"))
        self.record("-o", "t", "sh", "-c", f"sleep 0.1 > p & exec {FAKE} here file read p take 4096 close", status=0)
        recorded = self.recorded("t")
        self.assertEqual(recorded.kernel["granted"] & 3, 3)
        self.assertEqual((recorded.kernel["error"], recorded.kernel["lost"]), (0, 0))
        self.assertTrue(recorded.switches)  # it waited for the other process
        [ended] = [task for task in recorded.tasks if task[0] == "ended"]
        [named] = [task for task in recorded.tasks if task[0] == "named"]
        self.assertEqual(named[3], "fake_agent")
        self.assertTrue(all(recorded.kernel["since"] <= switch[0] <= ended[4] <= recorded.kernel["until"] for switch in recorded.switches))
        self.assertEqual([switch[0] for switch in recorded.switches], sorted(switch[0] for switch in recorded.switches))
        kinds = [switch[3] for switch in recorded.switches]
        self.assertTrue(all((one == 1) != (other == 1) for one, other in zip(kinds, kinds[1:])), kinds)  # in and out alternately
        size = os.stat(recorded.path).st_size
        self.assertEqual(recorded.end, size)
        self.assertEqual(struct.unpack_from("<Q", pathlib.Path(recorded.path).read_bytes(), 96), (size,))  # next_offset

    @unittest.skipUnless(kernel_reports(), "perf_event_open is not allowed here")
    def test_each_image_and_each_process_has_its_own(self):
        self.record("-o", "t.%p.%e", "sh", "-c", f"{FAKE} here file exec here file; exec {FAKE} here file", status=0)
        names = sorted(os.listdir(self.directory))
        self.assertEqual(sorted(name.rsplit(".", 1)[1] for name in names), ["fake_agent", "fake_agent", "image2"])
        for name in names:
            recorded, pid = self.recorded(name), int(name.split(".")[1])
            self.assertEqual({task[1] for task in recorded.tasks} | {switch[1] for switch in recorded.switches}, {pid}, name)
            ends = [task for task in recorded.tasks if task[0] == "ended"]
            hasGoneOn = name.endswith("fake_agent") and any(other.startswith(f"t.{pid}.image2") for other in names)
            self.assertEqual(len(ends), 0 if hasGoneOn else 1, name)

    @unittest.skipUnless(kernel_reports(), "perf_event_open is not allowed here")
    def test_a_long_wait_is_looked_at(self):
        read = {"x86_64": 0, "aarch64": 63}[platform.machine()]
        for seconds in (0.1, 1, 10): # the recorder may itself wait for a CPU
            os.mkfifo(os.path.join(self.directory, "p"))
            self.record("-o", f"t{seconds}", "sh", "-c", f"sleep {seconds} > p & exec {FAKE} here file read p", status=0)
            found = {(number, obj) for _, number, _, obj in self.recorded(f"t{seconds}").waits}
            os.remove(os.path.join(self.directory, "p"))
            if found:
                break
        self.assertEqual(found, {(read, os.path.join(self.directory, "p"))})

    @unittest.skipUnless(kernel_reports(), "perf_event_open is not allowed here")
    def test_minor_faults_are_in_it_on_request(self):
        for option, least in (("--states", 0), ("--minor-faults", 500)):
            self.record(option, "-o", "t" + option, FAKE, "here", "touch", "500", "file", status=0)
            recorded = self.recorded("t" + option)
            minor = [fault for fault in recorded.faults if fault[0] == 2]
            self.assertGreaterEqual(len(minor), least)
            self.assertEqual(bool(minor), least > 0)
            self.assertEqual((bool(recorded.kernel["asked"] & 4), bool(recorded.kernel["granted"] & 4)), (least > 0, least > 0))

    @unittest.skipUnless(kernel_reports(), "perf_event_open is not allowed here")
    def test_samples_are_as_dense_as_was_asked_for(self):
        for number, (words, period) in enumerate([
                (["--sample=5000", "-o", "t0"], 200_000), (["-o", "t1", "--sample=5000", "--"], 200_000), (["--sample", "4000", "-o", "t2"], 250_000),
                (["--sample", "-o", "t3"], 1_000_000), (["-o", "t4", "--sample", "--"], 1_000_000), (["-o", "t5", "--sample"], 1_000_000)]):
            self.record(*words, FAKE, "here", "file", status=0)
            self.assertEqual(self.recorded(f"t{number}").kernel["period"], period, words)

    def test_a_program_behind_sample_has_its_own_options(self):
        done = self.record("-o", "t", "--sample", "printf", "-%s", "one")
        self.assertEqual((done.returncode, done.stdout), (0, b"-one"), done.stderr)
        # These options may be the program's or the recorder's.
        self.refused(2, "--sample touch: write -- before", "--sample", "touch", "-o", "started")
        self.assertFalse(os.path.exists(os.path.join(self.directory, "started")))

    def test_minor_faults_need_what_no_states_turns_off(self):
        done = self.record("--no-states", "--minor-faults", "-o", "t", FAKE)
        self.assertEqual((done.returncode, os.path.exists(os.path.join(self.directory, "t"))), (2, False))
        self.assertIn(b"--minor-faults needs --states", done.stderr)

    def test_it_can_be_turned_off(self):
        self.record("--no-states", "-o", "t", FAKE, "here", "file", status=0)
        self.assertIsNone(self.recorded("t").kernel)

    def test_where_it_is_refused_the_trace_says_so_and_all_else_works(self):
        program = refusing(os.path.join(self.directory, "refusing"), "EPERM")
        done = subprocess.run([program, TOOL, "record", "-o", "t", FAKE, "here", "file", "exit", "3"], cwd=self.directory, capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 3, done.stderr)
        recorded = self.recorded("t")
        self.assertEqual((recorded.kernel["granted"], recorded.kernel["error"]), (0, 1))
        self.assertEqual((recorded.switches, recorded.tasks), ([], []))
        # In one line, with what to do.
        [line] = [line for line in done.stderr.decode().splitlines() if "not granted" in line]
        self.assertIn("switches, major faults not granted: Operation not permitted", line)
        self.assertTrue("sysctl kernel.perf_event_paranoid" in line or "--cap-add PERFMON" in line, line)

    @unittest.skipUnless(kernel_reports(), "perf_event_open is not allowed here")
    def test_of_what_is_granted_nothing_is_said(self):
        done = self.record("-o", "t", FAKE, "here", "file", status=0)
        self.assertNotIn("granted", done.stderr.decode())

    def test_the_program_sees_nothing_of_it(self):
        script = "ls /proc/self/fd; grep -E '^(Sig[^Q]|Threads)' /proc/self/status"
        bare = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(self.record("sh", "-c", script).stdout.split(), bare.stdout.split())


class OneThing(RecordTest):
    """The output of a run without -o."""

    def there(self):
        return sorted(os.listdir(self.directory))

    def test_one_process_leaves_one_file_prepared_ahead(self):
        done = self.record("--no-states", FAKE, "file", "await", str(1 << 20), "take", "65536", "close", status=0)
        [name] = self.there()
        self.assertRegex(name, r"^tracer\.fake_agent\.\d+\.trace$")
        self.assertEqual(os.stat(os.path.join(self.directory, name)).st_size, 4096 + 32768)
        self.assertIn(name.encode(), done.stderr)

    def test_several_processes_leave_one_directory(self):
        self.record("sh", "-c", f"{FAKE} file take 65536; {FAKE} file take 65536", status=0)
        [name] = self.there()
        self.assertRegex(name, r"^tracer\.sh\.\d+$")
        self.assertEqual(len(os.listdir(os.path.join(self.directory, name))), 2)

    @unittest.skipUnless([int(part) for part in re.findall(r"\d+", platform.release())[:2]] >= [6, 15], "PIDFD_GET_INFO came with Linux 6.15")
    def test_the_ends_of_all_processes_are_known(self):
        one = f"{FAKE} here file watched"
        self.record("-o", "t.%p", "sh", "-c", f"{one} exit 3; {one} kill; {one} exit 0; {one} exit 7", status=7)
        ends = []
        for name in self.there():
            ends.append(struct.unpack_from("<Q", pathlib.Path(self.directory, name).read_bytes(), 168)[0])
        signal = 1 << 33  # TRACE_EXIT_SIGNAL
        self.assertEqual(sorted(end - (1 << 32) for end in ends), [0, 3, 7, signal + 137])

    def test_what_records_nothing_leaves_nothing(self):
        self.assertEqual(self.record("true").returncode, 0)
        self.assertEqual(self.there(), [])

    def test_a_program_that_cannot_be_started_leaves_nothing(self):
        self.write("broken", b"\x7fELF" + bytes(60))
        self.record("./broken", status=126)
        self.record("-o", "wanted", "./broken", status=126)
        self.assertEqual(self.there(), ["broken"])

    def test_a_directory_is_its_users_alone(self):
        os.chmod(self.directory, 0o1777)
        for output in ([], ["-o", "wanted"]):
            self.record(*output, "sh", "-c", f"{FAKE} file; {FAKE} file", status=0)
            [name] = self.there()
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.directory, name)).st_mode), 0o700)
            shutil.rmtree(os.path.join(self.directory, name))

    def test_a_run_that_is_there_stays_unless_it_is_to_go(self):
        for script in (f"{FAKE} here file", f"{FAKE} here file; {FAKE} here file"):
            self.assertEqual(self.record("-o", "wanted.trace", "sh", "-c", script).returncode, 0)
            before = self.contents()
            self.refused(2, "wanted.trace exists: overwrite it with --force", "-o", "wanted.trace", "sh", "-c", script)
            self.assertEqual(self.contents(), before)
            self.record("--force", "-o", "wanted.trace", "sh", "-c", script, status=0)
            self.assertEqual(self.there(), ["wanted.trace"])
            self.assertNotEqual(self.contents(), before)
            self.assertEqual(self.record("--force", "-o", "wanted.trace", FAKE, "here", "file").returncode, 0)
            os.unlink(os.path.join(self.directory, "wanted.trace"))
        self.write("notes", b"mine")
        for force in ([], ["--force"]):
            self.refused(2, "is not a finished run", *force, "-o", "notes", FAKE, "file")
        self.assertEqual(self.there(), ["notes"])

    def contents(self):
        return {os.path.relpath(os.path.join(folder, name), self.directory): open(os.path.join(folder, name), "rb").read()
                for folder, _, names in os.walk(self.directory) for name in names}

    def test_exec_that_fails_in_the_child_leaves_no_directory(self):
        # Found to be a program, and refused by the kernel: its interpreter is a directory.
        self.write("odd", b"#!/\n")
        self.assertIn(self.record("./odd").returncode, (126, 127))
        self.assertEqual(self.there(), ["odd"])

    def test_percent_signs_of_the_directory_are_no_placeholders(self):
        where = os.path.join(self.directory, "a%p%%e")
        os.mkdir(where)
        done = self.record("sh", "-c", f"{FAKE} file; {FAKE} file; echo $TRACER_OUT", cwd=where, status=0)
        self.assertRegex(done.stdout.decode(), r"/a%%p%%%%e/tracer\.sh\.\d+/%e\.%p\.trace$")

