"""Snapshots: the last seconds of a ring, copied while it is recorded further. Every call that took longer than a trigger says has one, and no
other has; each is a trace by itself, in which the call is whole."""
import contextlib
import glob
import os
import re
import signal
import subprocess
import sys

import build
import crashed
import harness
import suite
import tracefile
from harness import expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

SOURCE = os.path.join(build.SUBJECTS, "part_served.c")
FLAG = 256
LIMIT_MS = 20


class Snapshots(suite.Test):
    def prepare(self):
        header = "-I" + os.path.join(build.ROOT, "CSupport", "include")
        self.compile("libserved.so", "-O1", header, "-shared", "-fPIC", "-DPART", SOURCE, "-Wl,-soname,libserved.so")
        self.served = self.compile("served", "-O1", "-g", "-pthread", header, SOURCE, "-L.", "-Wl,-rpath," + self.made, "-lserved")
        self.own = self.compile("own", "-O1", "-g", "-pthread", header, "-DOWN", SOURCE)

    @contextlib.contextmanager
    def running(self, program, *options, threads=0, status=0):
        """Under `tracer record`. Afterwards `tool.said` is what it said."""
        words = [self.settings.tool, "record", *options, "-o", self.trace(), "--", program, str(LIMIT_MS), str(threads)]
        tool = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.made,
                                env=self.environment())
        try:
            expect(tool.stdout.readline() == "ready\n", "the program did not begin")
            yield tool
            out, tool.said = tool.communicate("e\n", timeout=harness.HANGS)
            expect(tool.returncode == status, f"{harness.describe(tool.returncode)}: {out}{tool.said}")
        finally:
            tool.kill()
            tool.wait()

    def snapshots(self):
        found = [tracefile.Trace(path) for path in sorted(glob.glob(os.path.join(self.traces, "*.snapshot.trace")))]
        for trace in found:
            trace.trees()
            expect(trace.header["flags"] & FLAG and not trace.anomalies, f"{trace.path}: {trace.anomalies[:4]}")
        return found

    def own_trace(self):
        return next(os.path.join(self.trace(), name) for name in os.listdir(self.trace()) if name.endswith(".trace"))

    def check_reading(self, trace):
        """The reader says the same of it."""
        faults = harness.cross_check(self.settings, trace)
        expect(not faults, f"{trace.path}: {faults[:4]}")

    def check_request(self, trace, name="request"):
        """The call that it was taken for is there from beginning to end, and what it called."""
        header = trace.header
        call, = [node for node in trace.nodes() if node.name == name and node.enter == header["begin_ticks"]]
        expect(call.exit == header["end_ticks"] and not call.mark, f"{trace.path}: {call.enter} to {call.exit}, {call.mark}: {header['end_ticks']}")
        items = sum(child.name == "item" for child in call.children)
        expect(items == 40, f"{trace.path}: {items} of 40 calls in it")


def missed(said):
    """How many slow calls the recorder, if it was starved, says that it has not seen in time."""
    return sum(int(line.split()[2].replace(",", "")) for line in said.splitlines() if "came too fast" in line)


def asked(tool, text):
    tool.stdin.write(text + "\n")
    tool.stdin.flush()
    return [int(number) for number in tool.stdout.readline().split()]


def each_slow_call_has_one(program, threads):
    def check(test):
        options = ("--when", f"request > {LIMIT_MS}ms", "--snapshots", "1000", "--functions", "item", *(("--max-size", "2M") if threads else ()))
        with test.running(getattr(test, program), "--keep", "60s", *options, threads=threads) as tool:
            surely, perhaps = asked(tool, "r400")
        found = test.snapshots()
        expect(0 < surely <= len(found) + missed(tool.said) <= perhaps, f"{len(found)} snapshots: {surely} calls were slow, {perhaps} perhaps\n{tool.said}")
        for trace in found:
            test.check_request(trace)
            expect("request-" in os.path.basename(trace.path), trace.path)
        test.check_reading(found[-1])
        if threads == 0:  # nothing was overwritten: all that came before is there
            expect(found[-1].header["complete_ticks"] == 0, f"complete from {found[-1].header['complete_ticks']} on")
            told = test.tool("info", found[-1].path).stdout
            expect("snapshot: request took" in told and "copied while it was being recorded" in told, told)
    return Snapshots(f"snapshots.each_slow_call_has_one.{program}.{threads}", check)


def a_running_process_gets_them_too(test):
    forbidden = harness.attaching_is_forbidden()
    if forbidden:
        raise harness.Skipped(forbidden)
    process = subprocess.Popen([test.served, str(LIMIT_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=test.made,
                               env=test.environment(), preexec_fn=harness.attachable)
    try:
        expect(process.stdout.readline() == "ready\n", "the program did not begin")
        for number in range(2):
            words = ["attach", str(process.pid), "--keep", "60s", "--when", f"request > {LIMIT_MS}ms", "--snapshots", "1000", "-o", test.trace(f"{number}.trace")]
            tool = subprocess.Popen([test.settings.tool, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=test.made,
                                    env=test.environment())
            try:
                said = tool.stderr.readline()
                expect("recording" in said, said)
                surely, perhaps = asked(process, "r200")
                tool.send_signal(signal.SIGINT)
                _, said = tool.communicate(timeout=harness.HANGS)
            finally:
                tool.kill()
                tool.wait()
            expect(tool.returncode == 0, f"{harness.describe(tool.returncode)}: {said}")
            found = test.snapshots()
            expect(0 < surely <= len(found) + missed(said) <= perhaps, f"{len(found)} snapshots: {surely} calls were slow, {perhaps} perhaps\n{said}")
            for trace in found:
                test.check_request(trace)
                os.unlink(trace.path)
        expect(process.communicate("e\n", timeout=harness.HANGS)[0] == "" and process.returncode == 0, f"{process.returncode}")
    finally:
        process.kill()
        process.wait()


def a_snapshot_says_when_threads_waited(test):
    """A slow request sleeps: the kernel's account of it is in the copy, of just its time."""
    if not kernel_reports():
        raise harness.Skipped("the kernel does not report switches here")
    with test.running(test.served, "--keep", "1s", "--when", f"request > {LIMIT_MS}ms", "--snapshots", "1000") as tool:
        asked(tool, "r100")
        asked(tool, "r100")
    found = test.snapshots()
    expect(found, tool.said)
    for trace in found:
        rows = {row["name"]: row for row in test.json("report", trace.path, "--around", "request", "--slowest", "1")["functions"]}
        slept = rows["nanosleep"]
        expect(slept["total_waiting_ns"] >= 0.9 * 1.5 * LIMIT_MS * 1e6 and slept["total_waiting_ns"] <= slept["total_ns"], f"{trace.path}: {slept}")
        expect(rows["request"]["total_running_ns"] > 0, f"{rows['request']}")


def one_that_is_asked_for_says_when_threads_waited(test):
    """The recorder tells the tool that takes it; where it does not know, there is nothing, and no line."""
    if not kernel_reports():
        raise harness.Skipped("the kernel does not report switches here")
    for options in ((), ("--no-states",)):
        with test.running(test.served, "--force", *options) as tool:
            asked(tool, "r100")
            asked(tool, "r100")
            pid = test.own_trace().split(".")[-2]
            for last in ((), ("--last", "20s")):
                path = test.path("asked.snapshot.trace")
                done = test.tool("control", pid, "snapshot", "-o", path, *last)
                expect(done.stderr.count("\n") == 1, done.stderr)
                rows = {row["name"]: row for row in test.json("report", path, "--around", "request", "--slowest", "1")["functions"]}
                slept, states = rows["nanosleep"], test.json("info", path)["kernel"]
                if options:
                    expect("total_waiting_ns" not in slept or not slept["total_waiting_ns"], f"{slept}")
                else:
                    expect(slept["total_waiting_ns"] >= 0.9 * 1.5 * LIMIT_MS * 1e6 and slept["total_waiting_ns"] <= slept["total_ns"], f"{states}: {slept}")
                    expect(rows["request"]["total_running_ns"] > 0, f"{rows['request']}")
                os.unlink(path)


ASKS = """
import os, socket, struct, sys
if sys.argv[1] != "0": os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
connection = socket.socket(socket.AF_UNIX)
connection.connect("\\0tracer-%016x" % int(sys.argv[2]))
try:
    connection.sendall(struct.pack("<5Q", int.from_bytes(b"TRSTES01", "little"), os.stat("/proc/self/ns/pid").st_ino, int(sys.argv[3]), 1 << 62, 0))
    print(len(connection.makefile("rb").read()))  # to its end: the first bytes are a size
except (BrokenPipeError, ConnectionResetError): print(0)
"""


def no_other_user_is_told_when_threads_waited(test):
    if not kernel_reports() or os.geteuid():
        raise harness.Skipped("the kernel does not report switches here, or this is not root")
    with test.running(test.served) as tool:
        asked(tool, "r10")
        trace = tracefile.Trace(test.own_trace())
        told = [subprocess.run([sys.executable, "-c", ASKS, user, str(trace.header["session"]), str(trace.header["pid"])], capture_output=True, text=True,
                               timeout=harness.HANGS) for user in ("0", "65534")]
        expect(int(told[0].stdout) > 100 and told[1].stdout == "0\n", f"{told}")


def the_longest_are_kept(test):
    with test.running(test.served, "--keep", "60s", "--when", "request > 0ms", "--snapshots", "3") as tool:
        asked(tool, "r400")
    found = test.snapshots()
    lengths = sorted(trace.header["end_ticks"] - trace.header["begin_ticks"] for trace in found)
    whole = tracefile.Trace(test.trace())
    whole.trees()
    every = sorted(node.exit - node.enter for node in whole.nodes() if node.name == "request")
    expect(len(every) == 400 and len(found) == 3, f"{len(found)} snapshots of {len(every)} calls")
    said = [line for line in tool.said.splitlines() if "asked for a snapshot" in line or "came too fast" in line]
    passed = sum(int(word.replace(",", "")) for line in said for word in line.split() if word.replace(",", "").isdigit())
    expect(passed == 397, f"{passed} of 397 calls without a snapshot are told of: {tool.said}")
    if "came too fast" not in tool.said:
        expect(lengths == every[-3:], f"{lengths}, the longest calls took {every[-3:]}")


def the_program_asks_for_one(test):
    with test.running(test.served, "--keep", "60s") as tool:
        asked(tool, "r10")
        asked(tool, "s")
        asked(tool, "r10")
    trace, = test.snapshots()
    # It is taken a moment after the mark.
    expect(trace.count("asked for") == 1 and 10 <= trace.count("request") <= 20, f"{trace.count('asked for')}, {trace.count('request')} requests")
    expect("-asked for" not in trace.path and '"asked for"' in test.tool("info", trace.path).stdout, trace.path)


def a_program_that_is_killed_has_its_last(test):
    with test.running(test.own, "--keep", "60s", "--when", "request > 0ms", "--functions", "item", "--snapshots", "1000", status=128 + signal.SIGKILL) as tool:
        tool.stdin.write("k1\n")
        tool.stdin.flush()
    trace, = test.snapshots()
    test.check_request(trace)


def calls_that_are_left_have_one(test):
    """An exception leaves one, and longjmp."""
    source = test.write("left.cc", """
        #include <csetjmp>
        #include <stdexcept>
        static jmp_buf place;
        extern "C" __attribute__((noinline)) void thrower(bool leaves) { if (leaves) throw std::runtime_error("left"); __asm__ volatile(""); }
        extern "C" __attribute__((noinline)) void jumper(bool leaves) { if (leaves) longjmp(place, 1); __asm__ volatile(""); }
        int main() {
            for (int n = 0; n < 3; n++) { try { thrower(n == 1); } catch (const std::exception &) {} }
            for (volatile int n = 0; n < 3; n++) if (!setjmp(place)) jumper(n == 1);
            thrower(false);
        }""")
    program = test.compile("left", "-O1", source, compiler="g++")
    test.tool("record", "--keep", "60s", "--when", "thrower > 0ms", "--when", "jumper > 0ms", "--snapshots", "1000", "-o", test.trace(), "--", program)
    found = test.snapshots()
    names = sorted(trace.functions[trace.header["function"]].name for trace in found)
    expect(names == ["jumper"] * 3 + ["thrower"] * 4, f"{names}")


def a_ring_keeps_what_a_quiet_thread_did(test):
    """Another thread fills the ring many times; by its age alone the quiet one's would go."""
    source = test.write("quiet.c", """
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        __attribute__((noinline)) void quiet(void) { __asm__ volatile(""); }
        __attribute__((noinline)) void busy(void) { __asm__ volatile(""); }
        static void *work(void *count) { for (long n = (long)count; n > 0; n--) busy(); return NULL; }
        int main(void) {
            pthread_t thread;
            for (int n = 0; n < 100000; n++) quiet();
            if (pthread_create(&thread, NULL, work, (void *)3000000)) return 1;
            return pthread_join(thread, NULL);
        }""")
    program = test.compile("quiet", "-O1", "-pthread", source)
    limit = 4 << 20

    def quiet_calls(*options):
        test.tool("record", "--functions", "*", "--keep-hot", *options, "--max-size", str(limit), "--force", "-o", test.trace(), "--", program)
        trace = tracefile.Trace(test.trace())
        trace.trees()
        expect(not trace.anomalies and len(trace.data) < 2 * limit, f"{len(trace.data)} bytes, {trace.anomalies[:4]}")
        expect(trace.count("busy") < 3_000_000, "nothing was overwritten")
        return trace.count("quiet")
    kept = quiet_calls("--mode", "ring")
    expect(kept < 50_000, f"an ordinary ring has {kept} calls of the quiet thread: it was not filled")
    kept = quiet_calls("--keep", "3600s")
    expect(kept == 100_000, f"{kept} of 100,000 calls of the quiet thread are left")


def one_that_is_asked_for_from_outside_is_of_one_moment(test):
    """While threads fill a small ring as fast as they can."""
    with test.running(test.served, "--keep", "60s", "--max-size", "2M", threads=3) as tool:
        pid = int(test.own_trace().split(".")[-2])
        for number in range(10):
            asked(tool, "r20")
            path = test.path(f"{number}.snapshot.trace")
            test.tool("control", str(pid), "snapshot", "-o", path)
            trace = tracefile.Trace(path)
            trace.trees()
            expect(not trace.anomalies, f"{path}: {trace.anomalies[:4]}")
            begun = [node for node in trace.nodes() if node.name == "request" and not node.inherited]
            for call in begun:
                expect(sum(child.name == "item" for child in call.children) == 40 or call.mark or call.exit is None,
                       f"{path}: {len(call.children)} calls in a request")
            for thread in trace.threads.values():
                expect(thread.roots, f"{path}: nothing of thread {thread.tid}")
            test.check_reading(trace)


LOOP = r"""
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
static void turns(int count, int planned, int *longer) {
    struct pollfd none = {-1, 0, 0};
    double before = 0; /* the wait that a turn comes after */
    for (int n = 0; n < count; n++) {
        double wait = now();
        poll(&none, 1, 1);
        if (before && now() - before > 40) ++*longer; /* with both waits around it: longer than the turn */
        before = wait;
        if (planned && n % planned == planned - 1) usleep(60000);
        free(malloc(n));
    }
}
static void *other(void *unused) { int longer = 0; turns(20, 4, &longer); return unused; }
int main(void) {
    int longer = 0;
    usleep(60000); /* before the first turn */
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    turns(100, 25, &longer);
    poll(0, 0, 80); /* a long wait is no turn */
    pthread_join(thread, 0);
    printf("%d\n", longer);
    return 0;
}
"""


def a_long_turn_of_the_event_loop_has_one(test):
    """A turn of the main thread; its waits, however long, are none."""
    program = test.compile("loop", "-O1", "-pthread", source=LOOP)
    done = test.tool("record", "--keep", "20s", "--snapshots", "100", "--when", "stall > 40ms", "--no-states", "-o", test.trace(), "--", program)
    found = test.snapshots()
    # The last turn ends with another wait, which the program does not time. On a busy machine others may be long, too.
    expect(4 <= len(found) <= int(done.stdout) + 1, f"{len(found)} snapshots, {done.stdout} turns above 40 ms: {done.stderr}")
    for trace in found:
        expect("stall-" in trace.path, trace.path)
        test.check_reading(trace)
        said = test.tool("info", trace.path).stdout
        expect("a turn of the event loop took" in said and "until poll" in said, said)
        header = trace.header
        waits = [node for node in trace.nodes() if node.name == "poll" and node.exit == header["begin_ticks"]]
        expect(waits, f"{trace.path}: no wait ends where the turn begins")


THROWS = r"""
#include <stdexcept>
#include <stdio.h>
extern "C" __attribute__((noinline)) void serve(int n) {
    if (n % 100 == 7) throw std::runtime_error("seven");
}
int main() {
    int caught = 0;
    for (int n = 0; n < 500; n++) try { serve(n); } catch (const std::exception &) { caught++; }
    printf("%d\n", caught);
}
"""


def an_exception_has_one(test):
    program = test.compile("throws", "-O1", source=THROWS, compiler="g++")
    done = test.tool("record", "--keep", "20s", "--snapshots", "3", "--when", "exception", "--no-states", "-o", test.trace(), "--", program)
    expect(done.stdout == "5\n", done.stdout)
    found = test.snapshots()
    expect(len(found) == 3, f"{len(found)} snapshots: {done.stderr}")
    for trace in found:
        expect("exception-" in trace.path and "an exception was raised" in test.tool("info", trace.path).stdout, trace.path)
        test.check_reading(trace)
        expect(any(node.name == "_Unwind_RaiseException" for node in trace.nodes()), "the call is missing")


def a_process_that_a_signal_ends_has_one(test):
    """Its own crash, and its children's; and of a signal that is named."""
    program = test.compile("crashing", "-O1", "-fno-optimize-sibling-calls", "-pthread", test.write("crashing.c", crashed.SOURCE))
    some = ["--when", "crash", "--when", "inner > 3600s"]
    for options, words, status, name in [
        (some, [program, "s"], 128 + signal.SIGSEGV, "SIGSEGV"), (some, [program, "a"], 128 + signal.SIGABRT, "SIGABRT"),
        (some, [program, "k"], 128 + signal.SIGKILL, None), (["--when", "signal KILL"], [program, "k"], 128 + signal.SIGKILL, "SIGKILL"),
        (["--when", "signal sigterm"], [program, "s"], 128 + signal.SIGSEGV, None), (some, ["sh", "-c", f"{program} s; {program} a; true"], 0, "SIGSEGV SIGABRT"),
        (some, ["true"], 0, None),
    ]:
        done = test.tool("record", "--keep", "20s", *options, "--functions", "*", "--force", "-o", test.trace(), "--", *words, status=status)
        found = test.snapshots()
        expect(sorted(trace.path.split(".")[-3] for trace in found) == sorted((name or "").split()), f"{options} {words}: {[trace.path for trace in found]}\n{done.stderr}")
        for trace in found:
            number = int(getattr(signal, trace.path.split(".")[-3]))
            expect(f"snapshot: signal {number} has ended the process" in test.tool("info", trace.path).stdout, test.tool("info", trace.path).stdout)
            threads = sorted(test.json("report", trace.path, "--crash")["threads"], key=lambda thread: thread["tid"])
            opened = [[call["name"] for call in thread["open"]] for thread in threads]
            expect(opened[0][:3] == ["main", "outer", "inner"] and "waits" in opened[1], f"{opened}")
            os.unlink(trace.path)


def what_a_full_disk_does_not_take_is_said(test):
    """The disk has space for the ring and a snapshot or two: those that are there are whole, the others are counted."""
    disk, kept = test.path("disk"), test.path("kept")
    for folder in (disk, kept):
        os.makedirs(folder)
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", disk], capture_output=True).returncode:
        raise harness.Skipped("no permission to mount a file system in a namespace of our own")
    script = 'mount -t tmpfs -o size=$1 none "$2"; cd "$2"; kept=$3; shift 3; "$@"; ls -A > "$kept/names"; cp *.snapshot.trace "$kept" || :'
    for size, least in (("12M", 1), ("5M", 0)):
        words = ["record", "--keep", "60s", "--when", f"request > {LIMIT_MS}ms", "--snapshots", "1000", "--functions", "item", "--max-size", "4M", "--no-states",
                 "-o", os.path.join(disk, "a.trace"), "--", test.served, str(LIMIT_MS), "3"]
        done = subprocess.run(["unshare", "--mount", "sh", "-euc", script, "sh", size, disk, kept, test.settings.tool, *words], input="r400\ne\n",
                              capture_output=True, text=True, cwd=test.made, env=test.environment(), timeout=harness.HANGS)
        expect(done.returncode == 0, f"{harness.describe(done.returncode)}: {done.stderr}")
        surely, perhaps = (int(word) for word in done.stdout.splitlines()[1].split())
        names = suite.read(os.path.join(kept, "names")).split()
        expect(not [name for name in names if not name.endswith(".trace")], f"left: {names}")
        found = [tracefile.Trace(path) for path in sorted(glob.glob(os.path.join(kept, "*.snapshot.trace")))]
        for trace in found:
            trace.trees()
            expect(not trace.anomalies, f"{trace.path}: {trace.anomalies[:4]}")
            test.check_request(trace)
            os.unlink(trace.path)
        if "recording stopped, no space left on the device" in done.stderr:  # snapshots took the space before the ring had all of its own
            expect(re.search(r"lost: .* calls \(stopped: no space left on the device\)", done.stderr), done.stderr)
            continue
        said = re.search(r"lost: ([\d,]+) snapshots? could not be written: .*No space left on device", done.stderr)
        expect(said and "no call was as --when says" not in done.stderr, done.stderr)
        lost = int(said[1].replace(",", ""))
        expect(lost > 0 and least <= len(found) and surely <= len(found) + lost + missed(done.stderr) <= perhaps, f"{len(found)}, {surely} to {perhaps}: {done.stderr}")


def options_that_make_no_sense_are_refused(test):
    for options, said in [
        (("--when", "f > 5ms"), "--when with a time needs --keep"), (("--snapshots", "3"), "--snapshots needs --keep"), (("--after", "1s"), "--after needs --keep"),
        (("--keep", "5s", "--mode", "full"), "remove --mode full"), (("--keep", "0"), "--keep takes a time"), (("--keep", "x"), "keep"),
        (("--keep", "5s", "--when", "f"), "give a function and how long"), (("--keep", "5s", "--when", "f > 5"), "a time has a unit"),
        (("--keep", "5s", "--when", "> 5ms"), "give a function and how long"), (("--keep", "5s", "--snapshots", "0"), "1 to 1000"),
    ]:
        done = test.tool("record", *options, "--", "true", status=2)
        expect(said in done.stderr and done.stderr.count("\n") == 1, f"{options}: {done.stderr}")
    done = test.tool("record", "--keep", "5s", "--when", "no_such_function > 5ms", "-o", test.trace(), "--", "true")
    expect("no function was watched" in done.stderr, done.stderr)
    done = test.tool("record", "--force", "--keep", "5s", "--when", "stall > 1s", "-o", test.trace(), "--", "true")
    expect("no function that tells of stall could be recorded" in done.stderr and "no function was watched" not in done.stderr, done.stderr)


def tests():
    return [each_slow_call_has_one("served", 0), each_slow_call_has_one("own", 0), each_slow_call_has_one("served", 2), *suite.tests_of(__name__, Snapshots)]
