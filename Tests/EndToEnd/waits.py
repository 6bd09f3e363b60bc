"""`tracer waits`, `threads` and `samples` on real processes: what each wait was for, who held and who woke, against what the program knows
of itself. Each also says how long it waited; the machine may have given it no CPU meanwhile, so that lengths are judged in one of a
few runs, causes in each."""
import os
import struct
import subprocess
import sys

import build
import suite
import tracefile
from harness import Failed, Skipped, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

ATTEMPTS = 5
SHARE = 0.05
PINNING = 0.3  # for a read past the page cache, which pins its destination pages before it waits
LATE = 2_000_000  # ns: what the scheduler counts as such when it wakes a thread, and is the end of a wait here


class Waits(suite.Test):
    """Builds a subject, and records one run of it."""

    def subject(self, name, *flags):
        return self.compile(name, "-O1", "-g", "-pthread", os.path.join(build.SUBJECTS, f"part_{name}.c"), *flags)

    def record(self, program, *options):
        return self.tool("record", "--quiet", "--force", *options, "-o", self.trace(), "--", program).stdout


# Case, as the program names it → function and kind of the wait.
CASES = {
    "lock": ("pthread_mutex_lock", "lock"), "chain": ("pthread_mutex_lock", "lock"), "condition": ("pthread_cond_wait", "condition"),
    "semaphore": ("sem_wait", "condition"), "pipe": ("read", "pipe"), "join": ("pthread_join", "join"), "joined": ("pthread_join", "join"),
    "futex": ("syscall", "lock"), "sleep": ("nanosleep", "sleep"),
    "child": ("waitpid", "child"), "disk": ("pread", "disk"), "fed": ("read", "pipe"), "starved": ("read", "pipe"), "sent": ("recv", "socket"),
    "hung": ("read", "socket"), "polled": ("poll", "event"), "notified": ("epoll_wait", "event"), "inversion": ("pthread_mutex_lock", "lock"),
}
BY_THE_KERNEL = {"pipe": "write", "fed": "write", "sent": "send", "starved": None, "hung": None, "polled": "write", "notified": "write"}  # who woke it, by which call; None: by its end


def each_wait_has_its_cause(test, options=(), has_switches=True):
    if has_switches and not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    program = test.subject("waits")
    for attempt in range(ATTEMPTS):
        lines = test.record(program, "--exclude", "clock_gettime", *options).splitlines()
        noted = [(name, int(tid), int(length), int(address, 16) if address != "(nil)" else 0, int(other))
                for name, tid, length, address, other in (line.split() for line in lines)]
        found = test.json("waits", test.trace())["waits"]
        expect([wait["duration_ns"] for wait in found] == sorted((wait["duration_ns"] for wait in found), reverse=True), "not the longest first")
        faults = [fault for case in noted if case[0] in CASES for fault in check_wait(case, noted, found, has_switches)]
        if has_switches:
            faults += check_cpu(noted, test.json("threads", test.trace())["threads"])
        if not faults:
            return
        if all(fault.startswith("length: ") for fault in faults) and attempt + 1 < ATTEMPTS:
            continue
        raise Failed("\n".join(faults))


def check_wait(case, noted, found, has_switches):
    name, tid, length, address, other = case
    function, kind = CASES[name]
    if name == "futex" and not has_switches:
        return []  # a call that takes long need not have waited
    found = [wait for wait in found if wait["tid"] == tid and (wait["function"] or "").removesuffix("64") == function]
    if name in ("lock", "chain", "condition", "semaphore", "inversion", "futex"):
        found = [wait for wait in found if wait["object"] == hex(address)]
        found = [wait for wait in found if (wait["holder"] or {}).get("tid") == other] or found  # one lock, several times
    if name == "child":  # a feeder's end may take longer on a busy machine
        found = [wait for wait in found if wait["object"] == f"process {address}"] or found
    if name in BY_THE_KERNEL and has_switches:
        woken = [wait for wait in found if (wait["waker"] or {}).get("tid") == other and wait["waker"]["function"] == BY_THE_KERNEL[name]]
        if not woken:
            return [f"{name}: no wait in {function} that {other} ended by {BY_THE_KERNEL[name]}: {found}"]
        found = woken
    elif name in BY_THE_KERNEL:
        found = sorted((wait for wait in found if wait["kind"] == kind), key=lambda wait: abs(wait["duration_ns"] - length))
    if name in ("join", "joined"):
        found = [wait for wait in found if wait["waker"] and wait["waker"]["tid"] == other] if has_switches else found
    if not found:  # on a busy machine it may come so late that nobody is to be waited for any more
        return [f"{'length: ' if length < 1_000_000 else ''}{name}: no wait in {function}"]
    wait = found[0]  # the longest, if one thread joins several times
    faults = []
    if wait["kind"] != kind:
        faults.append(f"{name}: is called {wait['kind']}")
    if name in ("lock", "chain", "inversion") and (wait["holder"] or {}).get("tid") != other:
        faults.append(f"{name}: held by {wait['holder']}, not by {other}")
    ran_late = name == "futex" and not other  # it need not be shown who woke it
    if name in ("lock", "chain", "condition", "semaphore", "futex") and not ran_late and (wait["waker"] or {}).get("tid") != other:
        faults.append(f"{name}: woken by {wait['waker']}, not by {other}")
    if name == "chain":
        last = next(case[4] for case in noted if case[0] == "chained")
        links = [link for link in wait["chain"] if link["tid"] == other and link["kind"] == "lock"]
        if not links or not any(link["object"] == hex(next(case[3] for case in noted if case[0] == "chained")) for link in links):
            faults.append(f"chain: {other} waited for {last}, the chain is {wait['chain']}")
    if name == "inversion" and has_switches:
        holder = wait["holder"] or {}
        inversion = holder.get("inversion") or {}
        if holder.get("preempted_ns") == 0:
            faults.append("length: inversion: the holder was not preempted")
        elif inversion.get("holder") != "idle" or not inversion.get("waiter", "").startswith("nice "):
            faults.append(f"inversion: {wait['holder']}")
    what = "socket:[" if name in ("sent", "hung") else "eventfd, descriptor " if name == "notified" else "pipe:["
    if name in ("polled", "notified") and not has_switches:
        what = ""  # nobody has looked which descriptors these are
    if name in BY_THE_KERNEL and not (wait["object"] or "").startswith(what):
        faults.append(f"{name}: waited for {wait['object']}")
    if name == "disk" and length < 1_000_000:
        return faults  # it had the bytes somewhere nearer
    if name == "child" and wait["object"] != f"process {address}":
        faults.append(f"child: waited for {wait['object']}")
    if name == "child" and has_switches and (wait["waker"] or {}).get("tid") != address:
        faults.append(f"child: woken by {wait['waker']}, not by the end of {address}")
    if abs(wait["duration_ns"] - length) > (PINNING if name == "disk" else SHARE) * length and not (name in ("join", "joined") and not has_switches):
        faults.append(f"length: {name}: {wait['duration_ns']} ns, the program measured {length}")
    return faults


def check_cpu(noted, threads):
    """Threads that compute, two more than there are CPUs, against the scheduler's own account."""
    faults = []
    for name, tid, delay, _, _ in noted:
        if name != "processor" or not delay:
            continue
        # A thread that was woken, by the agent's task perhaps, has no CPU by this account, and by the switches waits until it runs.
        [(runnable, waiting)] = [(thread["runnable_ns"], thread["waiting_ns"]) for thread in threads if thread["tid"] == tid]
        slack = max(SHARE * delay, LATE)
        if not runnable - slack <= delay <= runnable + waiting + slack:
            faults.append(f"length: {tid} had no CPU for {runnable} ns and waited for {waiting}, the scheduler says {delay}")
    return faults


def a_descriptor_is_what_its_call_made(test):
    """However short a wait is, and whichever number a descriptor has: its kind, what it waits for, and who let it go on."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    kinds = {"socket": "socket", "terminal": "terminal", "timer": "timer", "event": "event", "polled": "event", "registered": "event"}
    lines = [line.split(" ", 4) for line in test.record(test.subject("descriptors")).splitlines()]
    expect([line[0] for line in lines][-4:] == ["reused", "closed", "received", "inherited"], f"the program said {lines}")
    waits = sorted(test.json("waits", test.trace())["waits"], key=lambda wait: wait["start_ns"])
    faults = []
    for name, waiter, waker, function, object in lines:
        found = [wait for wait in waits if wait["tid"] == int(waiter) and wait["function"] == function and wait["kind"] != "processor"]
        if not found:
            faults.append(f"{name}: no wait in {function}")
            continue
        wait = found[0]  # one case after the other
        waits.remove(wait)
        said = wait["kind"], wait["object"], (wait["waker"] or {}).get("tid", 0)
        kind = kinds.get(name, "pipe")
        if name == "received":  # as far as somebody has looked
            right = [("pipe", object, int(waker)), ("pipe", object, 0), ("other", f"descriptor {wait['object'].split()[-1]}", 0)]
        elif name == "polled":  # likewise
            right = [(kind, None, 0), (kind, wait["object"], int(waker))]
        elif name == "registered":
            right = [(kind, object, 0), (kind, wait["object"], int(waker))]
        else:
            right = [(kind, "eventfd, descriptor" if name == "event" else object, int(waker))]
            said = (said[0], said[1].rsplit(" ", 1)[0] if name == "event" else said[1], said[2])
        if said not in right:
            faults.append(f"{name}: {said}, the program knows {right}")
    expect(not faults, "\n".join(faults))


CLOSES = """
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static int pair[2];
static void *closes(void *x) { usleep(30000); close(pair[1]); return x; }
int main(void) {
    char byte;
    int pipes[2];
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        pipe(pipes);
        int child = fork();
        if (!child) {
            close(pipes[0]);
            dup2(pipes[1], 100), close(pipes[1]);
            usleep(60000);
            FILE *out = fdopen(100, "w");
            fprintf(out, "x"), fflush(out);
            usleep(60000);
            if (is_closed) close(100);
            usleep(60000);
            _exit(0);
        }
        close(pipes[1]);
        printf("written %d\\n", child), fflush(stdout);
        read(pipes[0], &byte, 1);
        printf("%s %d\\n", is_closed ? "closed" : "ended", child), fflush(stdout);
        read(pipes[0], &byte, 1);
        close(pipes[0]);
        waitpid(child, 0, 0);
    }
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int child = fork();
    if (!child) {
        close(pair[0]);
        usleep(90000);
        send(pair[1], "x", 1, 0);
        usleep(30000);
        _exit(0);
    }
    pthread_t thread;
    pthread_create(&thread, 0, closes, 0);
    printf("sent %d\\n", child), fflush(stdout);
    recv(pair[0], &byte, 1, 0);
    pthread_join(thread, 0);
    waitpid(child, 0, 0);
    return 0;
}
"""


def a_copy_that_is_closed_wakes_nobody(test):
    """As long as another descriptor is open on that side of a pipe or a socket."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    said = [line.split() for line in test.record(test.compile("closes", "-O1", "-pthread", source=CLOSES)).splitlines()]
    waits = sorted((wait for wait in test.json("waits", test.trace())["waits"]
                    if wait["function"] in ("read", "recv") and wait["duration_ns"] > LEAST), key=lambda wait: wait["start_ns"])
    expect([name for name, _ in said] == ["written", "ended", "written", "closed", "sent"], f"the program said {said}")
    if len(waits) != len(said):
        raise Skipped(f"this machine is too busy: {len(waits)} waits")
    wakers = {"written": None, "ended": (None,), "closed": ("close",), "sent": ("send",)}
    for (name, child), wait in zip(said, waits):
        waker = wait["waker"]
        found = waker and (waker["tid"], waker["function"])
        right = wakers[name] and (int(child), *wakers[name])
        expect(found == right, f"{name}: {found}, the program knows {right}: {wait}")


def files_are_told_by_their_paths(test):
    """Files that are read from the disk, each for less than a millisecond, with numbers that are used again at once."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    test.record(test.subject("cold_files"))
    waits = [wait for wait in test.json("waits", test.trace())["waits"] if wait["function"] == "read" and wait["kind"] != "processor"]
    if not waits:
        raise Skipped("this file system reads without waiting")
    files = {os.path.realpath(test.path(name)) for name in os.listdir(test.made) if name.startswith("cold-")}
    wrong = [(wait["kind"], wait["object"]) for wait in waits if wait["kind"] != "disk" or wait["object"] not in files]
    expect(not wrong, f"{len(wrong)} of {len(waits)} waits for files: {wrong[:3]}")
    expect(len({wait["object"] for wait in waits}) == len(waits), "two waits for one file, which is read once")
    return f"{len(waits)} waits for {len(files)} files"


def the_loaders_lock_has_a_holder(test):
    """A dlopen waits until another thread's has run a constructor: held by that thread and its library, and no reason to open less."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    program = test.compile("loader_lock", "-O1", "-g", "-pthread", "-rdynamic", os.path.join(build.SUBJECTS, "part_loader_lock.c"), "-ldl")
    slow = test.compile("slow.so", "-O1", "-shared", "-fPIC", os.path.join(build.SUBJECTS, "part_loader_lock_library.c"))
    quick = test.compile("quick.so", "-O1", "-shared", "-fPIC", source="int quick(void) { return 1; }")
    out = test.tool("record", "--quiet", "--force", "-o", test.trace(), "--", program, slow, quick).stdout
    main, other, length = (int(word) for word in out.split())
    waits = [wait for wait in test.json("waits", test.trace())["waits"] if wait["tid"] == main and wait["function"] == "dlopen"]
    expect(waits, "no wait in dlopen")
    wait = max(waits, key=lambda wait: wait["duration_ns"])
    expect((wait["kind"], wait["object"]) == ("lock", "the loader's lock"), f"{wait['kind']}: {wait['object']}")
    expect((wait["holder"] or {}).get("tid") == other and wait["holder"]["library"] == slow, f"held by {wait['holder']}, not by {other}")
    expect((wait["waker"] or {}).get("tid") == other and wait["waker"]["function"] == "dlopen", f"woken by {wait['waker']}")
    expect([link["kind"] for link in wait["chain"]][:1] == ["sleep"], f"the holder's own waits: {wait['chain']}")
    expect(29_000_000 < wait["duration_ns"] <= length, f"{wait['duration_ns']} ns, the program measured {length}")
    start = test.json("startup", test.trace())
    [load] = [load for load in start["dlopens"] if load["path"] == quick]
    expect(load["lock_holder"] == "slow.so" and 29_000_000 < load["lock_wait_ns"] <= load["total_ns"], f"{load}")
    wrong = [advice for advice in start["advice"] if "quick.so" in advice["text"] and advice["saving_ns"] > load["total_ns"] - load["lock_wait_ns"]]
    expect(not wrong, f"advice: {wrong}")


LEAST = 5_000_000  # ns


def longest(test, noted, functions, object=None):
    """Returns for each noted (case, thread, nanoseconds, …) the longest wait of the thread in the case's functions. Raises LookupError
    if a thread has fewer waits than cases: a busy machine lets it come late. `object`: index of what the program says it waited for."""
    waits = [wait for wait in test.json("waits", test.trace())["waits"]
             if wait["duration_ns"] >= LEAST and wait["kind"] not in ("processor", "join") and not wait["is_of_agent"]]
    origin = monotonic_origin(test.trace())
    for tid in {case[1] for case in noted}:
        if sum(wait["tid"] == int(tid) for wait in waits) < sum(case[1] == tid for case in noted):
            raise LookupError(f"{tid} hardly waited")
    found = []
    for case in noted:
        of_case = [wait for wait in waits if wait["tid"] == int(case[1]) and any(name in (wait["function"] or "") for name in functions[case[0]])
                   and wait["duration_ns"] <= int(case[2]) and (object is None or case[object] in ("(nil)", wait["object"]))]
        expect(of_case, f"{case}: no wait in {functions[case[0]]}: {waits}")
        wait = max(of_case, key=lambda wait: wait["duration_ns"])
        waits.remove(wait)
        if wait["holder"]:
            wait["holder"]["since_ns"] += origin
        found.append((case, wait))
    return found


def in_attempts(attempt):
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except LookupError as error:
            last = error
    raise Skipped(f"this machine is too busy: {last}")


def monotonic_origin(path):
    """CLOCK_MONOTONIC from which times of the trace count: docs/reference/format.md, `first`."""
    with open(path, "rb") as file:
        return struct.unpack_from("<Q", file.read(72), 64)[0]


def what_is_done_once_is_held_by_who_does_it(test):
    """Two threads wait for a third that initializes a variable of C++, or runs a function once."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    program = test.compile("once", "-O1", "-g", "-pthread", os.path.join(build.SUBJECTS, "part_once.cpp"), compiler="g++")
    ends = {"guard": "__cxa_guard_release", "once": "pthread_once", "call_once": "pthread_once"}
    functions = {"guard": ["__cxa_guard_acquire"], "once": ["pthread_once"], "call_once": ["pthread_once"]}

    def attempt():
        noted = [line.split() for line in test.record(program).splitlines()]
        expect(len(noted) == 6, f"the program said {noted}")
        faults = []
        for case, wait in longest(test, noted, functions, object=3):
            name, _, _, _, other, since = case
            holder, waker = wait["holder"] or {}, wait["waker"] or {}
            if wait["kind"] != "lock":
                faults.append(f"{name} is called {wait['kind']}")
            if holder.get("tid") != int(other) or holder["since_ns"] > int(since):
                faults.append(f"{name}: held by {holder}, the program says {other} since {since}")
            if (waker.get("tid"), waker.get("function")) != (int(other), ends[name]):
                faults.append(f"{name}: woken by {waker}, the program says {other}")
        expect(not faults, "\n".join(faults))

    in_attempts(attempt)


def waits_of_rust_are_told_by_its_functions(test):
    """The kind, who runs what others wait for, and who woke them, where functions are recorded; without them nothing is invented."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    suite.need("rustc")
    program = test.path("parked")
    done = subprocess.run(["rustc", "--edition", "2021", "-O", "-g", os.path.join(build.SUBJECTS, "part_parked.rs"), "-o", program], cwd=test.made,
                          capture_output=True, text=True)
    expect(not done.returncode, f"does not build: {done.stderr[-1000:]}")
    functions = {"mutex": ["lock_contended"], "read": ["read_contended"], "write": ["write_contended"], "once": ["Once>::call"], "cell": ["Once>::call"],
                 "park": ["park"], "channel": ["park"], "condvar": ["Condvar>::wait"]}
    functions = {name: [*names, *(old.replace(">", "") for old in names)] for name, names in functions.items()}

    def attempt():
        noted = [line.split() for line in test.record(program, "--functions", "*").splitlines()]
        expect([case[0] for case in noted] == list(functions), f"the program said {noted}")
        faults = []
        for (name, _, _, other), wait in longest(test, noted, functions):
            holder, waker = (wait["holder"] or {}).get("tid"), (wait["waker"] or {}).get("tid")
            kind = "condition" if name in ("park", "channel", "condvar") else "lock"
            if wait["kind"] != kind:
                faults.append(f"{name} is called {wait['kind']}")
            if holder != (int(other) if name in ("once", "cell") else None):
                faults.append(f"{name}: held by {wait['holder']}, the program says {other}")
            # A parked thread's word is known to who looks at it alone.
            if waker != int(other) and not (name in ("park", "channel") and wait["object"] is None and waker is None):
                faults.append(f"{name}: woken by {wait['waker']}, the program says {other}")
        expect(not faults, "\n".join(faults))

    in_attempts(attempt)
    test.record(program)
    invented = [wait for wait in test.json("waits", test.trace())["waits"] if wait["holder"] or wait["waker"] and wait["kind"] != "join"]
    expect(not invented, f"without its functions: {invented[:2]}")


def futexes_are_told_by_the_library_that_makes_them(test, name, package, compiler, functions, kinds):
    """A library's lock or condition waits by a system call of its own: told as what the program called, and woken on the same word."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    suite.need("pkg-config")
    words = subprocess.run(["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True)
    if words.returncode:
        raise Skipped(f"{package} is not installed")
    program = test.compile(name, "-O1", "-g", "-fPIC", os.path.join(build.SUBJECTS, f"part_waits_{name}"), *words.stdout.split(), compiler=compiler)

    def attempt():
        noted = [line.split() for line in test.record(program).splitlines()]
        expect([case[0] for case in noted] == list(functions), f"the program said {noted}")
        faults = []
        for (case, _, _, object, other), wait in longest(test, noted, functions):
            holder, waker = (wait["holder"] or {}).get("tid"), (wait["waker"] or {}).get("tid")
            if wait["kind"] != kinds.get(case, "condition"):
                faults.append(f"{case} is called {wait['kind']}")
            if object not in ("(nil)", wait["object"]):
                faults.append(f"{case}: waited for {wait['object']}, the program says {object}")
            if waker != int(other) or holder != (int(other) if case == "once" else None):
                faults.append(f"{case}: held by {wait['holder']}, woken by {wait['waker']}, the program says {other}")
        expect(not faults, "\n".join(faults))

    in_attempts(attempt)


def glib_waits_in_its_own_functions(test):
    futexes_are_told_by_the_library_that_makes_them(
        test, "glib.c", "glib-2.0", "gcc",
        {"mutex": ["g_mutex_lock"], "condition": ["g_cond_wait"], "queue": ["g_async_queue_pop"], "once": ["g_once_init_enter"]},
        {"mutex": "lock", "once": "lock"})


def qt_waits_in_its_own_functions(test):
    futexes_are_told_by_the_library_that_makes_them(
        test, "qt.cpp", "Qt6Core", "g++",
        {"mutex": ["lockInternal", "QMutex::lock"], "condition": ["pthread_cond_wait"], "semaphore": ["QSemaphore::acquire"]}, {"mutex": "lock"})


def pages_that_are_being_read_are_waits_for_the_disk(test):
    """A page that a thread touches while it is being read is no major fault: a wait for the disk as far as somebody has looked."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    program, found = test.subject("read_ahead"), 0
    for option in ("--minor-faults", "--states"):
        path = os.path.realpath(test.path("read")) if option == "--minor-faults" else None
        lines = test.record(program, option).splitlines()
        waits, origin = test.json("waits", test.trace())["waits"], monotonic_origin(test.trace())
        for length, begin in (map(int, line.split()) for line in lines):
            within = [wait for wait in waits if wait["kind"] != "processor" and begin <= origin + wait["start_ns"] <= begin + length]
            long = [wait for wait in within if wait["duration_ns"] >= 10_000_000]
            wrong = [wait for wait in within if (wait["kind"], wait["object"]) not in (("disk", path), ("disk", None), ("other", None))]
            expect(not wrong, f"{option}: a page that was touched: {wrong}")
            right = [wait for wait in long if (wait["kind"], wait["object"]) == ("disk", path)]
            expect(len(right) >= len([wait for wait in long if wait["kind"] == "disk"]), f"{option}: {long}, the program touched {path}")
            found += len(right)
    if not found:
        raise Skipped("the disk is too fast, or nobody has looked in time")
    return f"{found} waits"


def being_preempted_is_no_wait(test):
    """A constructor that computes beside busy loops: what it could have run and did not is neither a wait of its own nor a saving."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    program, cpu = test.subject("preempted"), max(os.sched_getaffinity(0))
    loop = f"import os; os.sched_setaffinity(0, {{{cpu}}}); print(flush=True)\nwhile True: pass"
    rivals = [subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for rival in rivals:
            rival.stdout.readline()
        out = test.tool("record", "--quiet", "--force", "-o", test.trace(), "--", program, env=test.environment(ON_CPU=str(cpu))).stdout
    finally:
        for rival in rivals:
            rival.kill()
            rival.wait()
            rival.stdout.close()
    ran, delayed = (int(word) for word in out.split())
    expect(delayed > ran / 2, f"beside two busy loops it ran {ran} ns and was kept from it for {delayed} ns alone")
    start = test.json("startup", test.trace())
    [run] = [run for run in start["constructors"] if run["name"] == "compute"]
    slack = SHARE * delayed + LATE
    expect(abs(run["runnable_ns"] - delayed) <= slack and run["waiting_ns"] <= slack, f"{run}: it could have run {delayed} ns more")
    [advice] = [advice for advice in start["advice"] if "compute" in advice["text"]]
    # What the loops delay after a page came from the disk is a wait of the constructor in which that was.
    others = sum(other["self_ns"] - (other["runnable_ns"] or 0) for other in start["constructors"]
                 if other["module"] == run["module"] and other is not run)
    expect("wait" not in advice["text"] and advice["saving_ns"] <= ran + slack + others, f"it ran {ran} ns, the others {others}: {advice}")


def idle_threads_are_those_that_nobody_waits_for(test):
    """Each way in which a thread waits is idle, or is not, as the program says."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    lines = [line.split() for line in test.record(test.subject("idle")).splitlines()]
    found = test.json("waits", test.trace())
    faults, seen = [], set()
    for tid, function, state in lines:
        waits = [wait for wait in found["waits"] if wait["tid"] == int(tid) and wait["function"] == function and wait["kind"] != "processor"]
        long = [wait for wait in waits if wait["duration_ns"] > 1_000_000]
        wrong = [wait for wait in long if wait["is_idle"] != (state == "idle")]
        if wrong:
            faults.append(f"{len(wrong)} of {len(long)} waits of {tid} in {function} are not {state}: {wrong[0]}")
        seen |= {(function, state)} if long else set()
    expect(not faults, "\n".join(faults))
    expect(seen == {(function, state) for _, function, state in lines}, f"no waits but of {seen}")
    idle = [wait for wait in found["waits"] if wait["is_idle"]]
    expect({wait["tid"] for wait in idle} == {int(tid) for tid, _, state in lines if state == "idle"}, "other threads are idle")
    for row in found["idle"]:
        own = [wait["duration_ns"] for wait in idle if (wait["tid"], wait["function"], wait["caller"]) == (row["tid"], row["function"], row["caller"])]
        expect((len(own), sum(own)) == (row["waits"], row["duration_ns"]), f"{row}: its waits are {own}")
    expect(sum(row["waits"] for row in found["idle"]) == len(idle), "the idle waits do not add up")


def stacks_are_those_in_which_threads_wait(test, flags, *options):
    """Against backtrace() in the function that is about to wait, frame by frame; and what waits in several places, in none but the right one."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    program = test.compile("wait_stacks", "-O2", "-g", "-pthread", "-fno-ipa-icf", *flags, os.path.join(build.SUBJECTS, "part_wait_stacks.cpp"), compiler="g++")

    def attempt(milliseconds):
        out = test.tool("record", "--quiet", "--force", *options, "-o", test.trace(), "--", program, str(milliseconds)).stdout
        lines = [line.split() for line in out.splitlines()]
        trace, waits = tracefile.Trace(test.trace()), test.json("waits", test.trace())["waits"]
        stacks = [(stack, [address for address in stack.addresses if address != CALL]) for stack in trace.wait_stacks]
        agent = [module for module in trace.modules.values() if os.path.basename(module.path) == "libtracer.so"]
        # On a busy machine the agent waits, too: for a page, or for another thread's list of mappings.
        stacks = [(stack, own) for stack, own in stacks if not any(module.low <= address < module.high for address in own[:1] for module in agent)]
        expect(not trace.anomalies, f"{trace.anomalies}")
        expect(not any(stack.flags & ~tracefile.SAMPLE_WHOLE for stack in trace.wait_stacks), "unknown flags")
        missing = [name for kind, name, *words in lines if kind == "wait" and not check_stack(name, words, stacks, waits)]
        naps = [(int(begin), int(end), int(place, 16)) for kind, begin, end, place in (line[:4] for line in lines) if kind == "nap"]
        [napper] = {stack.tid for stack, _ in stacks for begin, end, place in naps if begin <= stack.ns <= end and place in stack.addresses} or {None}
        seen = set()
        for stack, addresses in stacks:
            if stack.tid != napper:
                continue
            within = [place for begin, end, place in naps if begin <= stack.ns <= end]
            if not within:
                continue  # a page that it waited for between two naps
            [place] = within
            expect({place} == {one for _, _, one in naps} & set(addresses), f"a nap in {place:#x} has the stack {addresses}")
            seen.add(place)
        if missing or len(seen) < 2:
            raise LookupError(f"nobody has looked at {missing}, {len(seen)} places")
        shown = test.tool("waits", test.trace(), "--top", "0", "--full-names", "--depth", "3").stdout
        expect("    stack: " in shown and " ← … " in shown, f"{shown}")

    for milliseconds in (300, 1000, 3000, 10_000):
        try:
            return attempt(milliseconds)
        except LookupError as error:
            last = error
    raise Skipped(f"this machine is too busy: {last}")


CALL = 1  # docs/reference/format.md: a recorded call is open here


def check_stack(name, words, stacks, waits):
    """False: there is no stack of the thread in which it waited as it says."""
    tid, end, known = int(words[0]), words[1], [int(word, 16) for word in words[2:]]
    own = [(stack, addresses) for stack, addresses in stacks if stack.tid == tid]
    for stack, addresses in own:
        # The program asked a few instructions before it waited, and libc is further in. A handler's caller was interrupted: one more.
        inner = len(addresses) - len(known)
        expect(inner >= 0 and all(found - wanted in (0, 1) for found, wanted in zip(addresses[inner + 1:], known[1:])), f"{name}: {stack}, not {words}")
        expect(0 <= addresses[inner] - known[0] < 256, f"{name}: {stack} begins elsewhere than {words}")
        expect(end == "any" or bool(stack.flags & tracefile.SAMPLE_WHOLE) == (end == "whole"), f"{name}: is {end}: {stack}")
    found = [wait["stack"] for wait in waits if wait["tid"] == tid and wait["stack"] and not wait["stack"]["frames"][0]["module"].startswith("libtracer.so")]
    expect(len(found) <= len(own), f"{name}: {len(found)} stacks are shown of {len(own)}")
    for stack in found:
        expect(end == "any" or stack["is_whole"] == (end == "whole"), f"{name}: {stack}")
        names = [frame["name"].split("(")[0] for frame in stack["frames"]]
        deep = [f"{name}_{part}" for part in ("inner", "middle", "middle", "middle", "middle", "outer")] if name != "own_call" else ["own_call"]
        first = names.index(deep[0])
        expect(names[first:first + len(deep)] == deep, f"{name}: {names}")
        between = {name for name, frame in zip(names[:first], stack["frames"]) if not frame["module"].startswith(("libc", "libstdc++"))}
        expect(between <= {"wait_for_pipe", "wait_for_condition", "std::condition_variable::wait"}, f"{name}: {stack}")
        if name == "switched":
            expect(names[first + len(deep):] == ["other_stack", "__start_context"], f"{name}: {names}")
        if end == "whole":
            expect("start" in names and names[-1].startswith(("clone", "__clone")), f"{name}: {names}")
    return bool(found)


def context_switches_are_the_kernels(test):
    """As the kernel counts them, and who ran instead: the thread on the same CPU, never one on another."""
    if not kernel_reports():
        raise Skipped("the kernel does not report switches here")
    cpus = sorted(os.sched_getaffinity(0))
    program = test.subject("switches")
    out = test.tool("record", "--quiet", "--force", "-o", test.trace(), "--", program, *map(str, [cpus[0], cpus[0], cpus[-1]])).stdout
    known = {int(tid): (int(voluntary), int(involuntary)) for tid, voluntary, involuntary in (line.split() for line in out.splitlines())}
    first, second, elsewhere = known
    switches = test.json("waits", test.trace())["switches"]
    threads = {thread["tid"]: thread for thread in switches["threads"]}
    for tid, counts in known.items():
        # After it has asked the kernel, it ends.
        late = [threads[tid][key] - count for key, count in zip(("voluntary", "involuntary"), counts)]
        expect(all(0 <= more <= 3 for more in late), f"{tid}: {threads[tid]}, the kernel counts {counts}")
    for thread in [*threads.values(), switches]:
        ran = sum(rival["duration_ns"] for rival in thread["ran_instead"])
        expect(ran + thread["others_ns"] == thread["runnable_ns"], f"{thread}: who ran instead does not add up")
    rivals = {tid: {rival["tid"]: rival["duration_ns"] for rival in threads[tid]["ran_instead"]} for tid in known}
    expect(second in rivals[first] or first in rivals[second], f"{first} and {second} shared a CPU: {rivals}")
    if cpus[0] != cpus[-1]:
        # A thread begins on any CPU, before its creator tells it which is its own, and until then all but do nothing.
        shared = rivals[first].get(second, 0) + rivals[second].get(first, 0)
        crossed = sum(rivals[one].get(elsewhere, 0) + rivals[elsewhere].get(one, 0) for one in (first, second))
        expect(crossed <= shared / 10, f"another CPU's: {rivals}")


def shares_of_samples_are_the_programs(test):
    """Each part's share of the samples is its share of the CPU time, by the program's own clock."""
    if not kernel_reports():
        raise Skipped("the kernel does not report samples here")
    program = test.subject("shares", "-fno-optimize-sibling-calls")
    for attempt in range(ATTEMPTS):
        out = test.record(program, "--sample=2000").split()
        known = {name: int(nanoseconds) for name, nanoseconds in zip(out[::2], out[1::2])}
        whole = sum(known.values())
        samples = test.json("samples", test.trace())
        expect(samples["samples"] > 200, f"only {samples['samples']} samples")
        faults = []
        for name, nanoseconds in known.items():
            [share] = [function["total_share"] for function in samples["functions"] if function["name"] == name] or [0]
            if abs(share - nanoseconds / whole) > 0.03:
                faults.append(f"{name} has {share:.3f} of the samples and {nanoseconds / whole:.3f} of the time")
        if not faults:
            return
    raise Failed("\n".join(faults))


def tests():
    ways = {"": {}, ".call_sites": {"options": ["--call-sites"]}, ".within_the_c_library": {"options": ["--functions", "lib*!*"]},
            ".without_the_kernel": {"options": ["--no-states"], "has_switches": False}}
    stacks = {"": ([],), ".frame_pointers": (["-fno-omit-frame-pointer"],), ".functions": ([], "--functions", "*")}
    return [Waits("waits.each_wait_has_its_cause" + name, lambda test, way=way: each_wait_has_its_cause(test, **way)) for name, way in ways.items()] \
        + [Waits("waits.stacks_are_those_in_which_threads_wait" + name, lambda test, way=way: stacks_are_those_in_which_threads_wait(test, *way))
           for name, way in stacks.items()] \
        + suite.tests_of(__name__, Waits)
