#!/usr/bin/env python3
"""The longest waits of real programs, as tracer waits explains them, beside what perf sees at the same time.

    scripts/compat --waits [--only NAME]… [--count N] [--repository PATH] [--markdown]

Needs root, for perf record -e sched:sched_switch of the whole machine, and what the programs need. For each of a program's N longest
waits, each of another call site: how long the thread had no CPU by the kernel's scheduler between the same two moments, in which state it was
(S sleeping, D disk, R preempted), and who woke it last. Status 1 when a length differs by more than 2 % and 50 us, or tracer
names another waker than perf does, which is not the kernel itself: in three recordings, since perf loses records, too.
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
    "speedcrunch (Qt), start": ("QT_QPA_PLATFORM=offscreen HOME=$PWD timeout -s INT 3 $TRACER speedcrunch", "sync; echo 3 > /proc/sys/vm/drop_caches", ""),
}
SHELL = 'await() { until (: < /dev/tcp/127.0.0.1/$1) 2> /dev/null; do sleep 0.1; done; }\nPG=$(ls -d /usr/lib/postgresql/*/bin | tail -1)\n'


class Scheduler:
    """Scheduler events as perf recorded them: when each thread was off-CPU, and which thread woke it."""

    def __init__(self, path):
        self.away, self.wakings = collections.defaultdict(list), collections.defaultdict(list)
        out, names = {}, {}
        script = subprocess.Popen(["perf", "script", "-i", path, "--ns", "-F", "tid,time,event,trace"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        for line in script.stdout:
            found = re.match(r"\s*(\d+)\s+(\d+)\.(\d+):\s+sched:(\w+): (.*)", line)
            if not found:
                continue
            tid, now = int(found[1]), int(found[2]) * 1_000_000_000 + int(found[3])
            if found[4] == "sched_switch":
                switch = re.search(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)", found[5])
                before, after = int(switch[2]), int(switch[5])
                names[before], names[after] = switch[1], switch[4]
                out[before] = now, switch[3]
                if after in out:
                    begin, state = out.pop(after)
                    self.away[after].append((begin, now, state))
            else:
                woken = re.search(r"pid=(\d+)", found[5])
                self.wakings[int(woken[1])].append((now, tid))
        script.wait()
        self.names = names

    def between(self, tid, begin, end):
        """Returns off-CPU nanoseconds, the state of the longest part, and the thread that last woke it, with its name."""
        all_of_it = self.away[tid]
        first = max(bisect.bisect_left(all_of_it, (begin,)) - 1, 0)
        length, states = 0, []
        for start, stop, state in all_of_it[first:]:
            if start >= end:
                break
            part = min(stop, end) - max(start, begin)
            if part > 0:
                length += part
                states.append((part, state))
        wakings = self.wakings[tid]
        last = bisect.bisect_right(wakings, (end, 1 << 30))
        waker = wakings[last - 1][1] if last and wakings[last - 1][0] >= begin else None
        return length, max(states, default=(0, "?"))[1], waker, self.names.get(waker, "")


def seen_cpus():
    """Returns the CPUs whose idle task perf has records of: in some virtual machines it lacks them for some CPUs, and misses what runs there next."""
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        subprocess.run(["perf", "record", "-q", "-a", "-e", "sched:sched_switch", "-o", data, "--", "sh", "-c",
                        "for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done"], check=True, stdout=subprocess.DEVNULL)
        script = subprocess.run(["perf", "script", "-i", data, "-F", "tid,cpu"], capture_output=True, text=True, check=True).stdout
    return {int(found[1]) for found in re.finditer(r"^\s*0\s+\[(\d+)\]", script, re.M)} & os.sched_getaffinity(0)


def record(name, directory, repository):
    command, before, meanwhile = PROGRAMS[name]
    pathlib.Path(directory, "work.py").write_text(PYTHON)
    pathlib.Path(directory, "nginx.conf").write_text(NGINX)
    trace, perf = os.path.join(directory, "run"), os.path.join(directory, "perf.data")
    environment = dict(os.environ, TRACER=f"{TOOL} record --quiet --max-size 256M -o {trace} --", XDG_CACHE_HOME=os.path.join(directory, "cache"),
                       REPOSITORY=repository)
    def shell(text, **options):
        return subprocess.Popen(["bash", "-c", SHELL + text], cwd=directory, env=environment, stdin=subprocess.DEVNULL, **options)
    if shell(before or ":").wait(LIMIT) != 0:
        sys.exit(f"{name}: its preparation failed")
    control, answer = (os.path.join(directory, name) for name in ("control", "answer"))
    for pipe in (control, answer):
        os.mkfifo(pipe)
    watching = subprocess.Popen(["perf", "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", "8M", "-e", "sched:sched_switch", "-e", "sched:sched_wakeup",
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
        rows, wrong = [], 0
        # One of several threads with the same name that wait at the same call site is enough.
        chosen, known = [], set()
        for wait in report["waits"]:
            key = wait["thread"], wait["function"] or wait["system_call"], wait["caller"]
            if key not in known and not wait["is_of_agent"]:
                known.add(key)
                chosen.append(wait)
        for wait in chosen[:count]:
            length, state, waker, waker_name = seen.between(wait["tid"], begun + wait["start_ns"], begun + wait["end_ns"] + 20_000)
            mine = wait["waker"] and wait["waker"]["tid"]
            good = abs(length - wait["duration_ns"]) <= max(0.02 * wait["duration_ns"], 50_000) and (mine is None or waker in (mine, 0, None))
            wrong += not good
            where = "" if not wait["function"] else f"{wait['function']}({wait['object'] or ''})" + (f" in {wait['caller']}" if wait["caller"] else "")
            waker_text = mine and f"{wait['waker']['thread']}/{mine}"
            woken = "" if not mine else f"{waker_text} ended" if wait["kind"] in ("child", "join") else f"woken by {waker_text}"
            details = [f"held by {wait['holder']['thread']}" if wait["holder"] else "", woken,
                       "peer: " + ", ".join(f"{peer['thread']}/{peer['pid']}" for peer in wait["other_ends"]) if wait["other_ends"] else ""]
            rows.append((name, f"{wait['duration_ns'] / 1e6:.3f} ms", wait["kind"], where or wait["system_call"] or wait["object"] or "-", ", ".join(filter(None, details)) or "-",
                         f"{length / 1e6:.3f} ms, {state}", f"{waker_name}/{waker}" if waker else "the kernel" if waker == 0 else "-", "" if good else "differs"))
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
