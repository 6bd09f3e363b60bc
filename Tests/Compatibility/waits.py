#!/usr/bin/env python3
"""Waits of real programs of 5 ms or more, as tracer waits explains them, beside what perf sees at the same time.

    scripts/compat --waits [--only NAME]… [--count N] [--repository PATH] [--markdown]

Needs root, for perf record -e sched:sched_switch of the whole machine with the kernel's stacks, and what the programs need. Every wait
of 5 ms or more is compared: how long the thread had no CPU by the kernel's scheduler between the same two moments, in which state it
was (S sleeping, D disk, R preempted), what it waited for by the kernel functions that it waited in, and who woke it last, which for a lock
is who held it. Shown are a program's N longest waits, each of another call site, and all that differ. Status 1 when a length differs
by more than 2 % and 50 us, or tracer names another kind, another waker, which is not the kernel itself, or another holder than
perf does: in three recordings, since perf loses records, too. A wait that tracer calls `other` where perf sees what for is
shown as not known.
"""
import argparse
import bisect
import collections
import glob
import json
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, ".build/release/tracer")
LIMIT = 300
LEAST = 5_000_000  # ns

PYTHON = """
import concurrent.futures, subprocess, threading, time
def work(n): return sum(range(n))
with concurrent.futures.ProcessPoolExecutor(2) as pool: list(pool.map(work, [3_000_000] * 6))
lock = threading.Lock()
def hold():
    with lock: time.sleep(0.05)
threads = [threading.Thread(target=hold) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
subprocess.run(["sleep", "0.12"])
"""
# Requests, each served by a child that is forked for it and waits for the disk or a clock; the parent waits for its children.
FORKED = """
import os, socketserver, time
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        if self.rfile.readline() == b"end\\n": os.kill(os.getppid(), 2)
        time.sleep(0.03)
        self.wfile.write(b"done\\n")
class Server(socketserver.ForkingTCPServer):
    allow_reuse_address = True
try: Server(("127.0.0.1", 18091), Handler).serve_forever()
except KeyboardInterrupt: pass
"""
NGINX = """
daemon off; master_process off; pid nginx.pid; error_log error.log;
events {} http { access_log off; client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
server { listen 127.0.0.1:18089; root /usr/share/doc; autoindex on; } }
"""
# Name: what is recorded, after what, and what is done meanwhile; all by sh in an empty directory. $TRACER records.
PROGRAMS = {
    "python3": ("$TRACER python3 work.py", "", ""),
    "git clone, cold cache": (
        "$TRACER git clone -q --no-local $REPOSITORY clone", "sync; echo 3 > /proc/sys/vm/drop_caches", ""),
    "nginx under load": (
        "$TRACER nginx -p $PWD -c nginx.conf", "", "await 18089; ab -q -n 1000 -c 8 http://127.0.0.1:18089/ > ab.out; kill -QUIT $(cat nginx.pid)"),
    "PostgreSQL, pgbench": (
        "chmod 777 .; $TRACER setpriv --reuid=postgres --regid=postgres --clear-groups $PG/postgres -D base -p 18090 -k $PWD -c shared_buffers=32MB",
        "chmod 777 .; mkdir base; chown postgres: base; setpriv --reuid=postgres --regid=postgres --clear-groups $PG/initdb -D base -A trust -U postgres > init.out",
        "await 18090; export PGHOST=127.0.0.1 PGPORT=18090 PGUSER=postgres; pgbench -q -i -s 1 postgres 2> pgbench.err; "
        "pgbench -n -c 8 -j 2 -T 5 postgres > pgbench.out 2>&1 & sleep 3; "
        "psql -Atc \"select wait_event_type, wait_event, count(*) from pg_stat_activity where backend_type = 'client backend' group by 1, 2\" > activity; "
        "wait $!; kill -INT $(head -1 base/postmaster.pid)"),
    "file reads": ("$TRACER ./reads", "gcc -O1 -g $SUBJECTS/part_cold_files.c -o reads", ""),
    "file reads ahead": ("$TRACER ./ahead", "gcc -O1 -g $SUBJECTS/part_read_ahead.c -o ahead", ""),
    "loader's lock": (
        "$TRACER ./loads $PWD/slow.so $PWD/quick.so",
        "gcc -O1 -g -pthread -rdynamic $SUBJECTS/part_loader_lock.c -o loads; gcc -O1 -shared -fPIC $SUBJECTS/part_loader_lock_library.c -o slow.so; "
        "echo 'int quick(void) { return 1; }' | gcc -shared -fPIC -x c - -o quick.so", ""),
    "all kinds, pipe in a process": ("$TRACER ./kinds", "gcc -O1 -g -pthread $SUBJECTS/part_waits.c -o kinds", ""),
    "once, guards": ("$TRACER ./once", "g++ -O1 -g -pthread $SUBJECTS/part_once.cpp -o once", ""),
    "forked server": (
        "$TRACER python3 forked.py", "",
        "await 18091; for n in 1 2 3 4 5 6; do echo $n > /dev/tcp/127.0.0.1/18091; done; sleep 0.3; echo end > /dev/tcp/127.0.0.1/18091"),
    "Qt's locks": ("$TRACER ./qt", "g++ -std=c++17 -O1 -fPIC -g $SUBJECTS/part_waits_qt.cpp -o qt $(pkg-config --cflags --libs Qt6Core)", ""),
    "GLib's locks": ("$TRACER ./glib", "gcc -O1 -g $SUBJECTS/part_waits_glib.c -o glib $(pkg-config --cflags --libs glib-2.0)", ""),
    "speedcrunch (Qt), start": ("QT_QPA_PLATFORM=offscreen HOME=$PWD timeout -s INT 3 $TRACER speedcrunch", "sync; echo 3 > /proc/sys/vm/drop_caches", ""),
}
SHELL = 'await() { until (: < /dev/tcp/127.0.0.1/$1) 2> /dev/null; do sleep 0.1; done; }\nPG=$(ls -d /usr/lib/postgresql/*/bin | tail -1)\n'

# Kernel functions in which a thread waits → the kinds that this may be; the first that is in the stack, from the innermost one on.
KERNEL = [
    (re.compile(pattern), set(kinds.split())) for pattern, kinds in (
        (r"^futex_", "lock condition join"), (r"^(anon_)?pipe_(read|write)|wait_for_partner", "pipe"), (r"flock|posix_lock", "lock"),
        (r"^(unix_|tcp_|udp_|inet_|sk_wait|__skb_wait|skb_recv|sock_)", "socket"), (r"^(ep_poll|do_epoll|do_sys_poll|do_poll|do_select|core_sys_select)", "event pipe socket terminal timer"),
        (r"^(eventfd_|signalfd_|inotify_)", "event"), (r"^timerfd_", "timer"), (r"nanosleep", "sleep"), (r"^(do_wait|kernel_wait|kernel_clone|wait_for_vfork)", "child"),
        (r"^n_tty_", "terminal"), (r"^(io_schedule|folio_|filemap_|blk_|submit_bio_wait|jbd2_|ext4_|wait_on_buffer|__wait_on_buffer|bit_wait_io|rq_qos|balance_dirty)", "disk"),
    )]


class Scheduler:
    """Scheduler events as perf recorded them: when each thread was off-CPU, and which thread woke it."""

    def __init__(self, path):
        self.away, self.wakings = collections.defaultdict(list), collections.defaultdict(list)
        self.lost, out, names, stack = collections.defaultdict(list), {}, {}, []
        script = subprocess.Popen(["perf", "script", "-i", path, "--ns", "-F", "tid,time,event,trace,ip,sym"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        for line in script.stdout:
            if line.startswith("\t"):  # a frame of the event before it
                stack += line.split()[1:2]
                continue
            found = re.match(r"\s*(\d+)\s+(\d+)\.(\d+):\s+sched:(\w+): (.*)", line)
            if not found:
                continue
            tid, now = int(found[1]), int(found[2]) * 1_000_000_000 + int(found[3])
            if found[4] == "sched_switch":
                switch = re.search(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)", found[5])
                before, after = int(switch[2]), int(switch[5])
                names[before], names[after] = switch[1], switch[4]
                stack = []
                if before in out:  # it has run in between, as after a CPU's idle task: seen_cpus
                    self.lost[before].append((out[before][0], now))
                out[before] = now, switch[3], stack
                if after in out:
                    begin, state, functions = out.pop(after)
                    self.away[after].append((begin, now, state, functions))
            else:
                stack = []
                woken = re.search(r"pid=(\d+)", found[5])
                self.wakings[int(woken[1])].append((now, tid))
                if found[4] == "sched_wakeup_new":  # it has had no CPU yet
                    out[int(woken[1])] = now, "R", stack
        script.wait()
        for tid, (begin, *_) in out.items():
            self.lost[tid].append((begin, float("inf")))
        self.names = names

    def between(self, tid, begin, end):
        """Returns off-CPU nanoseconds, state and kernel functions of the longest part, and the thread that last woke it, with its name; and
        whether perf has lost a record of the thread."""
        all_of_it = self.away[tid]
        first = max(bisect.bisect_left(all_of_it, (begin,)) - 1, 0)
        length, states = 0, []
        for start, stop, state, functions in all_of_it[first:]:
            if start >= end:
                break
            part = min(stop, end) - max(start, begin)
            if part > 0:
                length += part
                states.append((part, state, functions))
        wakings = self.wakings[tid]
        last = bisect.bisect_right(wakings, (end, 1 << 30))
        waker = wakings[last - 1][1] if last and wakings[last - 1][0] >= begin else None
        _, state, functions = max(states, default=(0, "?", []))
        is_lost = any(start < end and begin < stop for start, stop in self.lost[tid])
        return length, state, functions, waker, self.names.get(waker, ""), is_lost


def kinds(state, functions):
    """Returns what the wait may be for by the kernel, and the function that says so; (None, None): it does not say."""
    if state.startswith("R"):
        return {"processor"}, state
    return next(((known, function) for function in functions for pattern, known in KERNEL if pattern.search(function)), (None, None))


def differences(wait, length, state, functions, waker, is_lost):
    """Returns what tracer says of a wait that perf saw otherwise, and what it does not know."""
    wrong, unknown = [], []
    mine, holder = wait["waker"] and wait["waker"]["tid"], wait["holder"] and wait["holder"]["tid"]
    if abs(length - wait["duration_ns"]) > max(0.02 * wait["duration_ns"], 50_000):
        if is_lost:
            return [], ["perf has lost a part of it"]
        wrong.append("length")
    may_be, function = kinds(state, functions)
    if may_be and wait["kind"] not in may_be:
        (unknown if wait["kind"] == "other" else wrong).append(f"kind: {' or '.join(sorted(may_be))} by {function}")
    if mine is not None and waker not in (mine, 0, None):
        wrong.append("waker")
    # Who let go of it last need not be who had it first.
    if wait["kind"] == "lock" and holder is not None and wait["handovers"] <= 1 and waker not in (holder, 0, None):
        wrong.append("holder")
    return wrong, unknown


def seen_cpus():
    """Returns the CPUs whose idle task perf has records of: in some virtual machines it lacks them for some CPUs, and misses what runs there
    next. A CPU that was not idle meanwhile counts as seen."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-a", "-e", "sched:sched_switch", "-o", data, "--", "sh", "-c",
                        "for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done"], check=True, stdout=subprocess.DEVNULL)
        script = subprocess.run(["perf", "script", "-i", data, "-F", "cpu,event,trace"], capture_output=True, text=True, check=True).stdout
    def cpus(which):
        return {int(found[1]) for found in re.finditer(rf"^\s*\[(\d+)\].* {which}_pid=0 ", script, re.M)}
    return os.sched_getaffinity(0) - (cpus("next") - cpus("prev"))


def record(name, directory, repository):
    command, before, meanwhile = PROGRAMS[name]
    pathlib.Path(directory, "work.py").write_text(PYTHON)
    pathlib.Path(directory, "forked.py").write_text(FORKED)
    pathlib.Path(directory, "nginx.conf").write_text(NGINX)
    trace, perf = os.path.join(directory, "run"), os.path.join(directory, "perf.data")
    environment = dict(os.environ, TRACER=f"{TOOL} record --quiet --max-size 256M -o {trace} --", XDG_CACHE_HOME=os.path.join(directory, "cache"),
                       REPOSITORY=repository, SUBJECTS=os.path.join(ROOT, "Tests/EndToEnd/subjects"))
    def shell(text, **options):
        return subprocess.Popen(["bash", "-c", SHELL + text], cwd=directory, env=environment, stdin=subprocess.DEVNULL, **options)
    if shell(before or ":").wait(LIMIT) != 0:
        sys.exit(f"{name}: its preparation failed")
    control, answer = (os.path.join(directory, name) for name in ("control", "answer"))
    for pipe in (control, answer):
        os.mkfifo(pipe)
    watching = subprocess.Popen(["perf", "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", "32M", "-g", "--kernel-callchains", "-e", "sched:sched_switch", "-e", "sched:sched_wakeup", "-e", "sched:sched_wakeup_new",
                                 "-D", "-1", f"--control=fifo:{control},{answer}", "-o", perf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    ask, answered = os.open(control, os.O_RDWR), os.open(answer, os.O_RDWR) # neither waits for perf to open its end
    os.write(ask, b"enable\n")
    while not select.select([answered], [], [], 1)[0]:
        if watching.poll() is not None:
            sys.exit(f"perf record ended with status {watching.returncode}")
    os.close(ask)
    os.close(answered)
    program = shell(command, stdout=subprocess.DEVNULL)
    other = shell(meanwhile or ":")
    other.wait(LIMIT)
    program.wait(LIMIT)
    watching.send_signal(signal.SIGINT)
    watching.wait(LIMIT)
    return trace, perf


def origin(trace):
    """CLOCK_MONOTONIC from which times of the run count: docs/reference/format.md, `first`."""
    def first(path):
        with open(path, "rb") as file:
            return struct.unpack_from("<Q", file.read(72), 64)[0]
    return min(first(path) for path in ([trace] if os.path.isfile(trace) else glob.glob(os.path.join(trace, "*.trace"))))


def compare(name, count, repository):
    directory = tempfile.mkdtemp(prefix="waits-", dir=os.path.join(ROOT, ".build"))
    try:
        trace, perf = record(name, directory, repository)
        begun, seen = origin(trace), Scheduler(perf)
        report = json.loads(subprocess.run([TOOL, "waits", "--json", trace], capture_output=True, check=True, timeout=LIMIT).stdout)
        if report["missing"]:
            sys.exit(report["missing"])
        rows, wrong, known, shown = [], 0, set(), 0
        for wait in report["waits"]:
            if wait["is_of_agent"] or wait["duration_ns"] < LEAST:
                continue
            length, state, functions, waker, waker_name, is_lost = seen.between(wait["tid"], begun + wait["start_ns"], begun + wait["end_ns"] + 20_000)
            differing, unknown = differences(wait, length, state, functions, waker, is_lost)
            wrong += bool(differing)
            # One of several threads with the same name that wait at the same call site is enough to show.
            key = wait["thread"], wait["function"] or wait["system_call"], wait["caller"]
            if not differing and not unknown and (key in known or shown >= count):
                continue
            shown += key not in known
            known.add(key)
            mine = wait["waker"] and wait["waker"]["tid"]
            where = "" if not wait["function"] else f"{wait['function']}({wait['object'] or ''})" + (f" in {wait['caller']}" if wait["caller"] else "")
            waker_text = mine and f"{wait['waker']['thread']}/{mine}"
            woken = "" if not mine else f"{waker_text} ended" if wait["kind"] in ("child", "join") else f"woken by {waker_text}"
            details = [f"held by {wait['holder']['thread']}/{wait['holder']['tid']}" if wait["holder"] else "", woken,
                       "peer: " + ", ".join(f"{peer['thread']}/{peer['pid']}" for peer in wait["other_ends"]) if wait["other_ends"] else ""]
            rows.append((name, f"{wait['duration_ns'] / 1e6:.3f} ms", wait["kind"], where or wait["system_call"] or wait["object"] or "-", ", ".join(filter(None, details)) or "-",
                         f"{length / 1e6:.3f} ms, {state}", f"{waker_name}/{waker}" if waker else "the kernel" if waker == 0 else "-",
                         ", ".join(["differs: " + text for text in differing] + ["not known: " + text for text in unknown])))
        compared = sum(not wait["is_of_agent"] and wait["duration_ns"] >= LEAST for wait in report["waits"])
        rows.append((name, "", "", f"{compared} waits of 5 ms or more, {wrong} differ", "", "", "", ""))
        activity = os.path.join(directory, "activity")
        if os.path.exists(activity):
            with open(activity) as file:
                rows.append((name, "", "", "pg_stat_activity after 3 s: " + "; ".join(file.read().split("\n")).strip("; "), "", "", "", ""))
        return rows, wrong
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PROGRAMS)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--repository", default=ROOT, help="what git clones, as it is; default: this one. A large one waits for the disk")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    seen = seen_cpus()
    if not seen:
        sys.exit("perf sees no CPU's idle task: nothing to compare with")
    if seen != os.sched_getaffinity(0):
        print(f"perf does not see what follows the idle task of each CPU: on {', '.join(map(str, sorted(seen)))} alone", file=sys.stderr)
        os.sched_setaffinity(0, seen)
    wrong, rows = 0, []
    for name in options.only or PROGRAMS:
        for _ in range(3):
            found, differing = compare(name, options.count, os.path.abspath(options.repository))
            if not differing:
                break
        wrong += differing
        rows += found
        if not options.markdown:
            for row in found:
                print("  ".join(row).rstrip(), flush=True)
    if options.markdown:
        print("| program | off-CPU | kind | waiting in | held by, woken by | perf: off, state | perf: woken by | |\n|---|---:|---|---|---|---:|---|---|")
        for row in rows:
            print("| " + " | ".join(row) + " |")
    sys.exit(1 if wrong else 0)


main()
