"""`tracer attach`: a process that runs is recorded, let go, and recorded again. Its threads notice nothing: no call is interrupted or ends
early, errno and registers stay; what is recorded lies between what the process has counted before and after."""
import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import build
import harness
import late
import suite
import tracefile
from harness import Skipped, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

SOURCE = os.path.join(build.SUBJECTS, "part_attached.c")
ROUNDS = 40  # --attaches
LATE = 25_000  # microseconds, beyond the time for which a thread stood still


class Attached(suite.Test):
    def prepare(self):
        forbidden = harness.attaching_is_forbidden()
        if forbidden:
            raise Skipped(forbidden)
        self.compile("libpart.so", "-O1", "-shared", "-fPIC", source=late.LIBRARY, compiler=build.DRIVERS["gcc"][".c"])
        self.program = self.compile("attached", "-O1", "-g", "-pthread", SOURCE, "-L.", "-Wl,-rpath," + self.made, "-lpart", "-ldl")

    @contextlib.contextmanager
    def running(self, *words, program=None, **options):
        process = subprocess.Popen([program or self.program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=self.made, env=self.environment(), preexec_fn=harness.attachable, **options)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def ends_well(self, process):
        out, err = process.communicate("end\n", timeout=harness.HANGS)
        expect((process.returncode, out, err) == (0, "0 0 0 0\n", ""), f"{harness.describe(process.returncode)}: {out!r} {err!r}")

    def own_trace(self, process):
        """In a directory, if its children have some, too."""
        path = self.trace()
        if os.path.isdir(path):
            path = os.path.join(path, next(name for name in os.listdir(path) if name.endswith(f".{process.pid}.trace")))
        return tracefile.Trace(path)

    @contextlib.contextmanager
    def attached(self, pid, *options, status=0):
        """While it records. The tool is told to end by SIGINT. Afterwards `tool.said` is what it said, and `tool.waited` for how
        many microseconds it could have run and had no processor."""
        tool = subprocess.Popen([self.settings.tool, "attach", str(pid), "-o", self.trace(), "--force", *options], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.made, env=self.environment())
        try:
            tool.said = tool.stderr.readline()
            expect("recording" in tool.said, f"{tool.said}{'' if tool.poll() is None else tool.stderr.read()}")
            yield tool
            with contextlib.suppress(ProcessLookupError):
                tool.send_signal(signal.SIGINT)
            with contextlib.suppress(ChildProcessError):  # a test has waited for it
                os.waitid(os.P_PID, tool.pid, os.WEXITED | os.WNOWAIT)
                with open(f"/proc/{tool.pid}/schedstat") as file:  # a zombie still has it
                    tool.waited = int(file.read().split()[1]) / 1000
            out, err = tool.communicate(timeout=harness.HANGS)
            tool.said += err
            expect((tool.returncode, out) == (status, ""), f"{harness.describe(tool.returncode)}: {out}{tool.said}")
        finally:
            tool.kill()
            tool.wait()


def asked(process, word="count"):
    process.stdin.write(word + "\n")
    process.stdin.flush()
    return [int(number) for number in process.stdout.readline().split()]


def goes_on(process, more):
    """While it calls so often. Returns its count before and after."""
    begun = last = asked(process)[0]
    while last < begun + more:
        last = asked(process)[0]
    return begun, last


def descriptors(pid):
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add((name, os.readlink(f"/proc/{pid}/fd/{name}")))
    return found


def mappings(pid, folder):
    """Lines of its map of files in a folder."""
    return [line for line in suite.read(f"/proc/{pid}/maps").splitlines() if folder in line]


def changed_code(pid):
    """Returns the files whose code in the process is not theirs. The loader's hook keeps a jump in the padding behind its return (start.md)."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \S+ +(/.*)", line)
            if not match or "memfd:" in match[4] or "/ld-linux" in match[4]:
                continue
            low, high, offset = (int(match[n], 16) for n in (1, 2, 3))
            memory.seek(low)
            try:
                code = memory.read(high - low)
            except OSError:  # a library that has been closed since
                continue
            with open(match[4], "rb") as file:
                file.seek(offset)
                kept = file.read(high - low)
            if code[:len(kept)] != kept:
                found.append(match[4])
    return found


def stood_still(said):
    """Returns for how long a thread did at most, in microseconds."""
    number, unit = re.search(r"at most ([\d.]+) (ns|us|ms|s)$", said, re.M).groups()
    return float(number) * {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[unit]


def lets_threads_wait_and_compute_undisturbed(test):
    undisturbed(test)


def lets_threads_wait_and_compute_while_their_functions_are_recorded(test):
    """All functions of the program and of every library, libc's included: their code changes while the threads run it."""
    undisturbed(test, "--functions", "*", "--functions", "*!*")


def undisturbed(test, *options):
    with test.running() as process:
        counts, stood = asked(process), 0
        before = {entry for entry in descriptors(process.pid) if "pipe" in entry[1] or "null" in entry[1]}
        for n in range(test.settings.attaches or ROUNDS):
            first = asked(process)[0]
            with test.attached(process.pid, *options) as tool:
                begun, last = goes_on(process, 500)
            expect(not changed_code(process.pid), f"code that is not as it was: {changed_code(process.pid)}")
            expect(" 0 filtered, 0 dropped" in tool.said, tool.said)
            counts = asked(process)
            expect(counts[1:3] + counts[4:] == [0, 0, 0, 0], f"interrupted, early, late, other, wrong, the last other: {counts[1:]}")
            # A wait may have been under way since the attach before.
            # A thread stands still as well until the tool has noticed that it has stopped.
            stood, before_that = stood_still(tool.said) + tool.waited, stood
            expect(counts[3] < max(stood, before_that) + LATE, f"late by {counts[3]} us, where nobody stood still for more than {max(stood, before_that)}")
            after = descriptors(process.pid)
            expect(before <= after and not [entry for entry in after if "memfd" in entry[1] or entry[1].endswith(".trace")], f"{sorted(after)}")
            rows = {row["name"]: row["calls"] for row in test.json("report", test.trace())["functions"]}
            for name in ("before", "after", "own")[:3 if options else 2]:
                # One call may have been under way when recording began.
                expect(last - begun - 1 <= rows[name] <= counts[0] - first + 1, f"{name}: {rows[name]} of {last - begun} to {counts[0] - first}")
            for name in () if options else ("write", "_setjmp"):  # libc calls its functions in other ways, too
                # Slots change one after the other, and on a busy machine long after: each is judged by itself.
                expect((last - begun) // 256 - 1 <= rows.get(name, 0) <= (counts[0] - first) // 256 + 2, f"{name}: {last - begun} to {counts[0] - first}, {rows}")
            expect(test.own_trace(process).header["flags"] & tracefile.NO_START, "it says that it saw the start")
        test.ends_well(process)


def records_a_process_that_computes(test):
    """There is no call that is recorded, no system call, and nothing that ends early: it must go on with all registers as they were."""
    with test.running("busy") as process:
        for _ in range(4):
            with test.attached(process.pid, "--max-size", "1M", "--mode", "ring"):
                asked(process)
        test.ends_well(process)
    with test.running("computes") as process:
        for _ in range(2):
            with test.attached(process.pid) as tool:
                pass
            expect(" 0 calls recorded" in tool.said, tool.said)
        expect(process.poll() is None, harness.describe(process.returncode or 0))


def records_a_process_that_waits_for_input_in_stdio(test):
    """Its only thread holds the lock of stdin while it waits."""
    source = test.write("lines.c", """
        #include <stdio.h>
        #include <stdlib.h>
        int main(void) {
            char line[64];
            setvbuf(stdout, NULL, _IOLBF, 0);
            while (fgets(line, sizeof line, stdin)) printf("%ld\\n", strtol(line, NULL, 10) + 1);
            return 0;
        }""")
    program = test.compile("lines", "-O1", source)
    with test.running(program=program) as process:
        for number in range(3):
            with test.attached(process.pid):
                expect(asked(process, str(number)) == [number + 1], "the answer is wrong")
                expect(asked(process, "41") == [42], "the answer is wrong")
            trace = tracefile.Trace(test.trace())
            trace.trees()
            called = trace.count("strtol") + trace.count("__isoc23_strtol")
            expect(not trace.anomalies and called == 2, f"{called} calls, {trace.anomalies[:4]}")
        out, err = process.communicate("1\n", timeout=harness.HANGS)
        expect((process.returncode, out, err) == (0, "2\n", ""), f"{harness.describe(process.returncode)}: {out!r} {err!r}")


def ends_after_the_given_time(test):
    with test.running("busy") as process:
        done = test.tool("attach", str(process.pid), "--for", "200ms", "-o", test.trace())
        expect("calls recorded" in done.stderr, done.stderr)
        expect("a.trace exists" in test.tool("attach", str(process.pid), "--for", "1s", "-o", test.trace(), status=2).stderr, "it wrote over a trace")
        names = []
        for _ in range(2):
            test.tool("attach", str(process.pid), "--for", "50ms", "--quiet")
            names = sorted(name for name in os.listdir(test.made) if name.startswith(f"tracer.attached.{process.pid}"))
        expect(names == [f"tracer.attached.{process.pid}.2.trace", f"tracer.attached.{process.pid}.trace"], f"{names}")
        test.ends_well(process)


def keeps_what_an_ended_process_leaves(test):
    with test.running("busy") as process:
        with test.attached(process.pid) as tool:
            begun, last = goes_on(process, 300)
            process.kill()
            process.wait()
            tool.wait(timeout=harness.HANGS)
        expect(f"process {process.pid} has ended" in tool.said, tool.said)
        rows = {row["name"]: row["calls"] for row in test.json("report", test.trace())["functions"]}
        expect(rows["before"] >= last - begun - 1, f"{rows}, {last - begun}")  # as above


def goes_on_where_a_killed_tool_has_left_off(test):
    with test.running("busy") as process:
        tool = subprocess.Popen([test.settings.tool, "attach", str(process.pid), "--functions", "*", "-o", test.trace("first.trace")], stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, cwd=test.made, env=test.environment())
        expect("recording" in tool.stderr.readline(), "it did not begin")
        begun, last = goes_on(process, 300)
        tool.kill()
        tool.communicate()
        expect(changed_code(process.pid), "no function's code has changed")
        with test.attached(process.pid):
            goes_on(process, 300)
        expect(not changed_code(process.pid), "code that is not as it was")
        for name, least in (("first.trace", last - begun - 1), ("a.trace", 299)):  # as above
            rows = {row["name"]: row["calls"] for row in test.json("report", test.trace(name))["functions"]}
            expect(rows["before"] >= least and (rows.get("own", 0) >= least) == (name == "first.trace"), f"{name}: {rows}, {least}")
        test.ends_well(process)


def lets_go_of_a_process_that_may_map_nothing_more(test):
    """RLIMIT_AS is reached while it is recorded: by the program, or by what the agent has mapped."""
    for options in (), ("--functions", "*", "--functions", "libc.so.6!*"):
        with test.running() as process:
            with test.attached(process.pid, *options):
                goes_on(process, 1000)
                pages = int(suite.read(f"/proc/{process.pid}/statm").split()[0])
                resource.prlimit(process.pid, resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.RLIM_INFINITY))
                goes_on(process, 1000)
            left = mappings(process.pid, ".trace")
            expect(not left, f"{options}: {left}")
            expect(not changed_code(process.pid), f"{options}: the code of {changed_code(process.pid)} is not the file's")
            goes_on(process, 1000)
            test.ends_well(process)


FULL = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define FUNCTION __attribute__((noinline, noclone, used))
static volatile long calls;
FUNCTION static long step(long n) { calls += n; return calls; }
int main(void) {
    char line[16];
    const size_t most = 70000, page = 4096;
    char *all = mmap(NULL, most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n")) {
        /* Every other page is a mapping of its own, until there may be no more (vm.max_map_count). */
        if (!strcmp(line, "fill\n")) for (size_t n = 0; n < most && !mprotect(all + n * page, page, PROT_READ); n += 2);
        if (!strcmp(line, "clear\n")) mprotect(all, most * page, PROT_NONE);
        for (int n = 0; n < 1000; n++) step(1);
        printf("%ld\n", calls);
    }
    return 0;
}
"""


def says_that_code_is_not_put_back_where_there_may_be_no_more_mappings(test):
    test.compile("full", "-O1", source=FULL, compiler=build.DRIVERS["gcc"][".c"])
    options = "--functions", "*", "--functions", "libc.so.6!*"
    with test.running(program=test.path("full")) as process:
        with test.attached(process.pid, *options) as tool:
            asked(process, "go")
            asked(process, "fill")
        expect(bool(changed_code(process.pid)) == ("still lead through the agent" in tool.said), f"{changed_code(process.pid)}: {tool.said}")
        asked(process, "clear")
        with test.attached(process.pid, *options) as tool:
            asked(process, "go")
        expect(not changed_code(process.pid) and "still lead" not in tool.said, f"{changed_code(process.pid)}: {tool.said}")
        expect(asked(process, "go") == [5000], "calls of the program")
        out, err = process.communicate("end\n", timeout=harness.HANGS)
        expect((process.returncode, out, err) == (0, "", ""), f"{harness.describe(process.returncode)}: {out!r} {err!r}")


def uses_what_it_has_made_for_other_functions_again(test):
    """The addresses to which an instruction can jump are few, and stay taken."""
    everything = "--functions", "*", "--functions", "*!*"
    with test.running("busy") as process:
        taken, counts = [], []
        for options in [everything, ("--functions", "own"), ("--functions", "*!before"), *[everything, ("--functions", "own")] * 3, everything]:
            with test.attached(process.pid, *options) as tool:
                begun, last = goes_on(process, 300)
            expect(not changed_code(process.pid), f"{options}: code that is not as it was: {changed_code(process.pid)}")
            rows = {row["name"]: row["calls"] for row in test.json("report", test.trace())["functions"]}
            wanted = {"own": "own" in options or options == everything, "setjmp": False}
            expect(all((rows.get(name, 0) >= last - begun - 1) == is_wanted for name, is_wanted in wanted.items()), f"{options}: {rows}, {last - begun}")
            maps = [line.split() for line in suite.read(f"/proc/{process.pid}/maps").splitlines()]
            taken.append((sum(line[1] == "r-xp" for line in maps), len(maps)))
            counts += re.findall(r"([\d,]+) of [\d,]+ functions recorded", tool.said) if options == everything else []
        expect(len(set(counts)) == 1, f"functions {counts}")
        expect(all(code <= taken[0][0] and every <= taken[0][1] + 50 for code, every in taken), f"mappings of code, and all: {taken}")
        test.ends_well(process)


def opens_no_file_in_the_table_of_the_program(test):
    """But for the library, the first time, by the thread that is led to dlopen."""
    with test.running("busy") as process:
        with test.attached(process.pid):
            goes_on(process, 300)
        asked(process, "watch")
        for options in [("--functions", "*", "--functions", "*!*"), (), ("--functions", "own")] * 5:
            with test.attached(process.pid, *options):
                goes_on(process, 100)
        test.ends_well(process)


def gives_up_where_a_library_is_being_loaded(test):
    """A constructor of it waits, with the loader's lock: who is led to dlopen waits for that, and is put back to where it was."""
    test.compile("libslow.so", "-shared", "-fPIC", source="#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void slow(void)"
                 " { char byte; close(open(\"begun\", O_WRONLY)); int end = open(\"end\", O_RDONLY); (void)!read(end, &byte, 1); close(end); }\n")
    for name in ("begun", "end"):
        os.mkfifo(test.path(name))
    earlier = test.path("earlier.trace")
    test.tool("record", "--no-states", "-o", earlier, "--", "true")
    content = suite.read_bytes(earlier)
    with test.running("busy", "loads") as process:
        os.close(os.open(test.path("begun"), os.O_RDONLY))
        test.tool("attach", str(process.pid), "--for", "1s", "--force", "-o", earlier, status=126)
        expect(suite.read_bytes(earlier) == content, "an earlier trace is gone")
        expect([name for name in os.listdir(test.made) if name.startswith("earlier")] == ["earlier.trace"], f"{os.listdir(test.made)}")
        done = test.tool("attach", str(process.pid), "--for", "1s", "-o", test.trace(), status=126)
        expect("is loading a library, and waits in it: try again" in done.stderr, done.stderr)
        expect(not os.path.exists(test.trace()), "a trace is left")
        begun, last = goes_on(process, 300)
        expect(last > begun, "it stands still")
        os.close(os.open(test.path("end"), os.O_WRONLY))
        with test.attached(process.pid):
            goes_on(process, 300)
        test.ends_well(process)


def values_of(test, name, wanted, step=1):
    """Returns the first argument of the calls of a function of the program, after comparing them: they were made one after the other with a number
    that is so much higher each time, and return so much more."""
    calls = [json.loads(line) for line in test.tool("replay", "--json", test.trace()).stdout.splitlines()]
    calls = [call for call in calls if call["name"] == name and call.get("module") == wanted[0]]
    with_values = [call for call in calls if "arguments" in call]
    numbers = [call["arguments"]["n"] for call in with_values]
    expect(len(with_values) in (0, len(calls)), f"{len(with_values)} of {len(calls)} calls of {name} have arguments")
    expect(numbers == list(range(numbers[0], numbers[-1] + 1, step)) if numbers else True, f"{name}: {numbers[:20]}")
    # The last one may be open.
    expect(all(call["result"] == call["arguments"]["n"] + wanted[1] for call in with_values[:-1]), f"{name}: {[call for call in with_values if 'result' not in call][:3]}")
    return numbers


def records_arguments_and_results(test):
    """Prototypes are one's own, the tool's, and of debug information; other ones each time, none, and earlier ones again."""
    before, own, after = "before(n: long) -> long", ("--functions", "own", "--arguments", "own"), "after(n: long) -> long"
    functions = {"before": ("libpart.so", 1), "own": ("attached", 3), "after": ("libpart.so", 2)}
    with test.running("busy") as process:
        for options, wanted in [((), ()), (("--arguments", before), {"before"}), (own, {"own"}), (("--arguments", after + ",write"), {"after", "write"}),
                                ((), ()), (("--arguments", before), {"before"}), (own + ("--arguments", before), {"own", "before"}), (own, {"own"}), (("--files",), {"write"})]:
            with test.attached(process.pid, "--mode", "ring", "--max-size", "512K", *options) as tool:
                _, last = goes_on(process, 1000)
            latest = asked(process)[0]
            expect(" 0 dropped" in tool.said, tool.said)
            for name, function in functions.items():
                numbers = values_of(test, name, function)
                expect(bool(numbers) == (name in wanted), f"{options}: {name} has values {numbers[:3]}")
                # As above.
                expect(not numbers or last - 1 <= numbers[-1] <= latest and len(numbers) > 100, f"{options}: {numbers[:1]} to {numbers[-1:]}, {last} to {latest}")
            written = {line["arguments"]["count"] for line in map(json.loads, test.tool("replay", "--json", test.trace()).stdout.splitlines())
                       if line["name"] == "write" and "arguments" in line}
            expect(written == ({1} if "write" in wanted else set()), f"{options}: {written}")
            trace = test.own_trace(process)
            trace.trees()
            expect(not trace.anomalies, f"{options}: {trace.anomalies[:4]}")
        test.ends_well(process)


LAST_BITS = "flags last_bits: ODD=1/1 ROUND=0/131071\nlibrary any\n" + "".join(f"{name}(n: last_bits) -> long\n" for name in ("before", "after"))


def records_calls_with_certain_values_alone(test):
    with test.running("busy") as process:
        for _ in range(2):
            with test.attached(process.pid, "--arguments", "before", "--prototypes", test.write("prototypes", LAST_BITS), "--when", "before(n ~ ODD)",
                               "--include", "before"):
                begun, last = goes_on(process, 1000)
            trace = test.own_trace(process)
            trace.trees()
            calls = [json.loads(line) for line in test.tool("replay", "--json", test.trace()).stdout.splitlines()]
            numbers = [call["result"] - 1 for call in calls if call["name"] == "before" and "result" in call]
            expect(numbers == list(range(numbers[0] | 1, numbers[-1] + 1, 2)) and numbers[0] <= begun + 2 and last - 3 <= numbers[-1], f"{numbers[:5]} to {numbers[-5:]}")
            skipped = trace.filtered_by_condition
            expect(not trace.anomalies and abs(skipped - len(numbers)) <= 2, f"{skipped} left out, {len(numbers)} recorded, {trace.anomalies[:4]}")
        test.ends_well(process)


def copies_what_it_keeps_for_a_call_with_certain_values(test):
    """Each time another condition decides."""
    with test.running("busy") as process:
        for name, more in (("before", 1), ("after", 2), ("before", 1)):
            options = "--arguments", name, "--prototypes", test.write("prototypes", LAST_BITS), "--when", f"{name}(n ~ ROUND)", "--snapshots", "1000"
            with test.attached(process.pid, "--keep", "10s", "--max-size", "512K", *options) as tool:
                begun, last = goes_on(process, 400_000)
            latest = asked(process)[0]
            found = sorted(entry for entry in os.listdir(test.traces) if entry.endswith(".snapshot.trace"))
            surely, perhaps = [len(range(-(-low // 131072), -(-high // 131072))) for low, high in ((begun, last), (begun, latest))]
            expect(0 < surely <= len(found) <= perhaps + 1, f"{len(found)} snapshots, {begun} to {last} to {latest}\n{tool.said}")
            numbers = set()
            for path in (os.path.join(test.traces, entry) for entry in found):
                expect(f".{name}-" in path, path)
                trace = tracefile.Trace(path)
                trace.trees()
                calls = [json.loads(line) for line in test.tool("replay", "--json", path).stdout.splitlines()]
                last_call = [call for call in calls if call["name"] == name and "result" in call and (call["result"] - more) % 131072 == 0][-1]
                numbers.add(last_call["result"] - more)
                os.unlink(path)
            expect(len(numbers) == len(found), f"{numbers} of {len(found)} snapshots")
        test.ends_well(process)


def on_a_processor(pid):
    """For how long each thread has been there, in ns, and how often (Documentation/scheduler/sched-stats.rst)."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile, as the agent's do
            found[int(tid)] = [int(number) for number in suite.read(f"/proc/{pid}/task/{tid}/schedstat").split()]
    return found


def stolen():
    """Nanoseconds in which the host had taken the processors of a virtual machine away: of all of them, since it began."""
    return int(suite.read("/proc/stat").split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def says_when_threads_ran_and_waited(test):
    """As the kernel has it: threads that were there before, and one that begins meanwhile."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    with test.running("busy") as process:
        for options in ((), ("--functions", "own")):
            outer, taken = on_a_processor(process.pid), stolen()
            with test.attached(process.pid, "--mode", "ring", "--max-size", "64M", *options):
                goes_on(process, 1000)
                begun, (new,) = on_a_processor(process.pid), asked(process, "start")
                goes_on(process, 2_000_000)
                asked(process, "stop")
                ended = on_a_processor(process.pid)
            after, taken = on_a_processor(process.pid), stolen() - taken
            threads = {thread["tid"]: thread for thread in test.json("threads", test.trace())["threads"]}
            for tid in outer.keys() & begun.keys() & ended.keys() & after.keys():
                inside, around = (last[tid][0] - first[tid][0] for first, last in ((begun, ended), (outer, after)))
                # A thread that is on a processor at the end of it has not been there yet for the kernel's number. Of a switch itself, that number has
                # what comes after the choice of the next thread (kernel/sched/core.c, __schedule), and the account does not: up to 16 us on a virtual EPYC.
                # The account has what the host takes of a thread's time, and that number has not (update_rq_clock_task).
                if tid in threads:
                    running = threads[tid]["running_ns"]
                    switching = (ended[tid][2] - begun[tid][2]) * 50e3
                    expect(inside * 0.9 - 20e6 - switching <= running <= around * 1.1 + 20e6 + taken,
                           f"{tid}: {running} ns, {inside} to {around}, {taken} stolen: {threads[tid]}")
                else:
                    expect(inside < 100e6, f"{tid} ran for {inside} ns, and nothing says so")
            busy = [tid for tid in begun.keys() & ended.keys() if ended[tid][0] - begun[tid][0] > 50e6]
            expect(busy and set(busy) <= threads.keys(), f"{busy} of {sorted(threads)}")
            expect(threads[process.pid]["waiting_ns"] > threads[process.pid]["running_ns"], f"{threads[process.pid]}")
            expect(new in threads and threads[new]["running_ns"] > 0, f"{new} of {sorted(threads)}")
            rows = {row["name"]: row for row in test.json("report", test.trace())["functions"]}
            expect(rows["before"]["total_running_ns"] > 0, f"{rows['before']}")
        test.ends_well(process)


def says_when_threads_ran_in_a_snapshot_that_is_asked_for(test):
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    with test.running("busy") as process:
        with test.attached(process.pid):
            (new,) = asked(process, "start")
            goes_on(process, 1000)
            copy = test.path("asked.snapshot.trace")
            test.tool("control", str(process.pid), "snapshot", "-o", copy)
            states = {thread["tid"]: thread for thread in test.json("threads", copy)["threads"]}
            expect(new in states and states[new]["running_ns"] > 0, f"{new} of {states}")
            asked(process, "stop")
        test.ends_well(process)


def lends_its_plans_to_a_process_of_another_user(test):
    """It believes no files but that user's own."""
    if os.geteuid() != 0:
        raise Skipped("only root may attach to a process of another user")
    os.chmod(os.path.dirname(test.made), 0o755)
    with test.running("busy", user=12345, group=12345) as process:
        with test.attached(process.pid, "--functions", "*", "--arguments", "before(n: long) -> long"):
            begun, last = goes_on(process, 300)
        rows = {row["name"]: row["calls"] for row in test.json("report", test.trace())["functions"]}
        expect(rows.get("own", 0) >= last - begun - 1, f"{rows}, {last - begun}")  # as above
        expect(len(values_of(test, "before", ("libpart.so", 1))) >= last - begun - 1, "it has no arguments")
        expect(os.stat(test.trace()).st_uid == os.geteuid(), "the trace is that user's")
        with test.attached(process.pid):  # in the place of the first
            goes_on(process, 300)
        left = [name for name in os.listdir("/tmp") if name.startswith("tracer-plans.")]
        expect(not left, f"left: {left}")
        test.ends_well(process)


# Another root, with a /tmp of its own in which the folder of the test is ($2), and in a pid namespace of its own with the right /proc ($3).
ANOTHER_ROOT = r"""
root=$1 made=$2 proc=$3; shift 3
mount --make-rprivate /
mount --rbind / "$root"
mount -t tmpfs none "$root/tmp"
mkdir -p "$root$made"
mount --bind "$made" "$root$made"
mount -t "$proc" none "$root/proc"
exec chroot "$root" "$@"
"""


@contextlib.contextmanager
def running_elsewhere(test, *words):
    """Under unshare(1). Yields it, and the id here of the program."""
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        raise Skipped("no permission to make namespaces")
    with test.running(*words, program="unshare") as process:
        end, pid, name = time.monotonic() + harness.HANGS, 0, ""
        while name != "attached":
            expect(time.monotonic() < end and process.poll() is None, f"it did not start: {process.poll()}")
            with contextlib.suppress(OSError, ValueError):  # what sets it up may just have ended
                pid = process.pid
                while children := suite.read(f"/proc/{pid}/task/{pid}/children"):
                    pid = int(children)
                name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        yield process, pid


def another_root(test, proc="proc"):
    root = test.path("root")
    os.makedirs(root, exist_ok=True)
    return ["--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", ANOTHER_ROOT, "sh", root, test.made, proc, test.program, "busy"]


def records_a_process_with_another_root(test):
    """As of a container: also its numbers are others, and it sees neither the trace's folder nor the tool's plans."""
    with running_elsewhere(test, *another_root(test)) as (process, pid):
        is_recorded_elsewhere(test, process, pid)


def records_a_process_with_mounts_of_its_own(test):
    """As of a service with a /tmp of its own."""
    words = ["--mount", "sh", "-euc", 'mount -t tmpfs none /var/tmp; exec "$@"', "sh", test.program, "busy"]
    with running_elsewhere(test, *words) as (process, pid):
        is_recorded_elsewhere(test, process, pid)


def is_recorded_elsewhere(test, process, pid):
    for _ in range(2):
        first = asked(process)[0]
        with test.attached(pid, "--functions", "*", "--arguments", "before(n: long) -> long"):
            begun, last = goes_on(process, 500)
            expect(re.search("^  recording +on$", test.tool("control", str(pid), "status").stdout, re.M), "another tool does not find its trace")
        counts = asked(process)
        report = test.json("report", test.trace())
        rows = {row["name"]: row["calls"] for row in report["functions"]}
        for name in ("before", "after", "own"):  # one call may have been under way when recording began
            expect(last - begun - 1 <= rows.get(name, 0) <= counts[0] - first + 1, f"{name}: {rows.get(name)} of {last - begun} to {counts[0] - first}")
        expect(len(values_of(test, "before", ("libpart.so", 1))) >= last - begun - 1, "it has no arguments")
        left = [name for name in os.listdir(f"/proc/{pid}/root/tmp") if name.startswith(f"tracer.{pid}.")]
        expect(not left, f"left: {left}")
    test.ends_well(process)


def keeps_what_a_process_with_another_root_leaves(test):
    """Its root is gone with it."""
    with running_elsewhere(test, *another_root(test)) as (process, pid):
        with test.attached(pid) as tool:
            begun, last = goes_on(process, 300)
            os.kill(pid, signal.SIGKILL)
            tool.wait(timeout=harness.HANGS)
        expect("has ended" in tool.said, tool.said)
        rows = {row["name"]: row["calls"] for row in test.json("report", test.trace())["functions"]}
        expect(rows.get("before", 0) >= last - begun - 1, f"{rows}")


def refuses_a_process_with_another_root_that_has_no_proc(test):
    with running_elsewhere(test, *another_root(test, "tmpfs")) as (process, pid):
        said = test.tool("attach", str(pid), "--for", "1s", status=126).stderr
        expect("in which /proc is not mounted" in said and said.count("\n") == 1, said)
        test.ends_well(process)


def says_when_another_program_was_executed(test):
    with test.running("busy") as process:
        with test.attached(process.pid) as tool:
            process.stdin.write("exec\n")
            process.stdin.flush()
            tool.wait(timeout=harness.HANGS)
        expect("has executed another program" in tool.said, tool.said)


def says_that_another_program_is_just_being_executed(test):
    """A thread calls exec. It waits until all others have ended: the main one is a zombie meanwhile, and another has not been waited for by us, who
    trace it (ptrace(2))."""
    program = test.compile("replaced", "-O1", "-pthread", source="""
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *wait_for_nothing(void *given) {
    printf("%ld\\n", (long)syscall(SYS_gettid));
    fflush(stdout);
    for (;;) pause();
    return given;
}
static void *replace(void *path) {
    getchar();
    execl(path, path, "replaced", NULL);
    return path;
}
int main(int count, char **words) {
    pthread_t thread;
    if (count == 1) {
        pthread_create(&thread, NULL, wait_for_nothing, NULL);
        pthread_create(&thread, NULL, replace, words[0]);
    } else {
        puts("replaced");
        fflush(stdout);
    }
    for (;;) pause();
}
""")
    with test.running(program=program) as process:
        thread = int(process.stdout.readline())
        traced(thread)
        process.stdin.write("\n")
        process.stdin.flush()
        while "State:\tZ" not in suite.read(f"/proc/{process.pid}/status"):
            pass
        said = test.tool("attach", str(process.pid), "--for", "1s", "-o", test.trace(), status=126).stderr
        expect("executes another program in this moment" in said and said.count("\n") == 1, said)
        os.waitpid(thread, 0x40000000)  # __WALL
        expect(process.stdout.readline() == "replaced\n", "it has not executed the other program")
        with test.attached(process.pid):
            pass


def traced(thread):
    """The thread that calls this traces it: PTRACE_SEIZE."""
    if ctypes.CDLL(None, use_errno=True).ptrace(0x4206, ctypes.c_int(thread), ctypes.c_void_p(0), ctypes.c_void_p(0)) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def lets_go_of_forked_children_too(test):
    with test.running("busy") as process:
        with test.attached(process.pid, "--functions", "*") as tool:
            child, = asked(process, "fork")
            while not any(os.path.isdir(test.trace()) and f".{child}.trace" in name for name in os.listdir(test.trace())):
                asked(process)
            expect(changed_code(child), "no function's code has changed")
        found = changed_code(child), changed_code(process.pid)
        expect(found == ([], []), f"code that is not as it was: {found}; {tool.said}")
        expect("2 processes" in tool.said and "still being written" not in tool.said, tool.said)
        test.ends_well(process)


def refuses_what_it_cannot_record(test):
    def refused(pid, reason, status=126):
        said = test.tool("attach", str(pid), "--for", "1s", status=status).stderr
        expect(reason in said and said.count("\n") == 1, said)

    refused(4194304, "no process 4194304", status=2)
    with test.running("busy") as process:
        asked(process)
        thread = next(int(name) for name in os.listdir(f"/proc/{process.pid}/task") if int(name) != process.pid)
        refused(thread, f"is a thread of process {process.pid}", status=2)
        os.kill(process.pid, signal.SIGSTOP)
        while not os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG):
            pass
        refused(process.pid, "is stopped")
        os.kill(process.pid, signal.SIGCONT)
        with test.attached(process.pid):
            refused(process.pid, "is being recorded by another tracer attach")
        test.ends_well(process)
    if "kthreadd" in suite.read("/proc/2/comm"):
        refused(2, "is the kernel's own" if os.geteuid() == 0 else "belongs to another user")
    static = test.compile("static", "-static", "-O1", source="#include <unistd.h>\nint main(void) { for (;;) pause(); }")
    with test.running(program=static) as process:
        refused(process.pid, "statically linked")
    headless = test.compile("headless", "-O1", "-pthread", source="#include <pthread.h>\n#include <unistd.h>\nstatic void *wait(void *given) { for (;;) pause(); return"
                            " given; }\nint main(void) { pthread_t thread; pthread_create(&thread, 0, wait, 0); pthread_exit(0); }")
    with test.running(program=headless) as process:
        while "State:\tZ" not in suite.read(f"/proc/{process.pid}/status"):
            pass
        refused(process.pid, "its main thread has ended")
    traces = [name for name in os.listdir(test.made) if name.startswith("tracer.")]
    expect(not traces, f"left: {traces}")


def tests():
    return suite.tests_of(__name__, Attached)


MODES = {"slots": "*"}
