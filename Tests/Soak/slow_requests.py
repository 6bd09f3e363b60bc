#!/usr/bin/env python3
"""A server (slow_requests.c) under load for as long as wanted, whose clients make one request in a thousand slow, at random.

It is recorded with `--keep 5s --when 'handle_request > 50ms'`. Each of the slow requests must be in a snapshot of its own: all of its calls, and every
request of the five seconds before it, of all clients. No other request may have one. Requests of the half of the limit are as frequent as
ten of the slow ones. A snapshot that is right is removed. Ends with status 1 when anything of this fails.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIMIT, KEPT = 50_000_000, 5_000_000_000  # nanoseconds
CLIENTS = 4
READ_AFTER = 10  # seconds after it has appeared a snapshot is whole, and the clients know of its requests

Request = collections.namedtuple("Request", "steps sent answered inside around")  # times in nanoseconds of CLOCK_MONOTONIC


class Client(threading.Thread):
    """Sends one request after the other, some 50 in a second."""

    def __init__(self, number, path, chance, requests, ends):
        super().__init__()
        self.number, self.path, self.chance, self.requests, self.ends = number, path, chance, requests, ends

    def run(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.path)
            lines = server.makefile("r")
            name = self.number
            while time.monotonic() < self.ends:
                steps, kind = self.chance.randrange(2, 60), self.chance.random()
                pause = self.chance.randrange(60_000, 200_000) if kind < 0.001 else 25_000 if kind < 0.011 else 0
                sent = time.monotonic_ns()
                server.sendall(f"{name} {steps} {pause}\n".encode())
                told, inside, around = (int(word) for word in lines.readline().split())
                if told != name or inside < 0:
                    raise ValueError(f"request {name}: answer {told} {inside}")
                self.requests[name] = Request(steps, sent, time.monotonic_ns(), inside, around)
                name += CLIENTS
                time.sleep(self.chance.uniform(0.005, 0.035))


class Trial:
    def __init__(self, options, folder):
        self.options, self.folder, self.requests, self.failures, self.found = options, folder, {}, [], {}

    def fail(self, text):
        self.failures.append(text)
        print("FAILED:", text, flush=True)

    def tool(self, *words):
        done = subprocess.run([self.options.tool, *words], capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise ValueError(f"tracer {' '.join(words)}: status {done.returncode}: {done.stderr[-300:]}")
        return done.stdout

    def check(self, path):
        """A snapshot, and removes it if it is right."""
        before = len(self.failures)
        try:
            self.check_calls(path)
        except ValueError as error:
            self.fail(f"{path}: {error}")
        if len(self.failures) == before:
            os.unlink(path)
        else:
            shutil.copy(path, self.options.keep)

    def check_calls(self, path):
        info = json.loads(self.tool("info", "--json", path))
        cause = next(text for text in info["flags"] if text.startswith("snapshot: "))
        length, begun, thread = re.match(r"snapshot: handle_request took ([\d.]+) ms, from ([\d,.]+) s on, in thread (\d+)$", cause).groups()
        calls = [json.loads(line) for line in self.tool("replay", "--json", path).splitlines()]
        requests = {call["arguments"]["id"]: call for call in calls if call["name"] == "handle_request" and "arguments" in call}
        slow = [name for name, call in requests.items() if call["tid"] == int(thread) and abs(call["duration_ns"] / 1e6 - float(length)) < 0.001
                and abs(call["time_ns"] / 1e9 - float(begun.replace(",", ""))) < 0.001]
        if len(slow) != 1 or slow[0] in self.found:
            return self.fail(f"{path}: {cause}: requests {slow}, of which {[name for name in slow if name in self.found]} have one already")
        name, = slow
        self.found[name] = path
        call, request = requests[name], self.requests.get(name)
        if not request or request.around <= LIMIT or call["ended"] != "returned":
            return self.fail(f"{path}: {cause}: {call}, {request}")
        steps = collections.Counter()
        for one in calls:
            if one["tid"] == call["tid"] and call["time_ns"] <= one["time_ns"] <= call["time_ns"] + call["duration_ns"]:
                steps[one["name"]] += 1
        if steps["step"] != request.steps:
            self.fail(f"{path}: request {name}: {dict(steps)} in it of {request.steps}")
        # The others that were surely made in the time that it should have.
        since, until = request.answered - request.inside - KEPT, request.sent + request.inside
        wanted = {other for other, made in list(self.requests.items()) if made.sent >= since and made.answered <= until}
        lost = {other for other in wanted if requests.get(other, {}).get("ended") != "returned"}
        if lost:
            self.fail(f"{path}: request {name}: {len(lost)} of {len(wanted)} requests before it are missing: {sorted(lost)[:5]}")

    def run(self):
        subprocess.run(["gcc", "-O1", "-g", "-o", os.path.join(self.folder, "slow_requests"), os.path.join(HERE, "slow_requests.c"), "-pthread"], check=True)
        path = os.path.join(self.folder, "socket")
        words = ["record", "--keep", "5s", "--when", "handle_request > 50ms", "--snapshots", "1000", "--functions", "*",
                 "--arguments", "handle_request(id: long, steps: int, pause: int)", "-o", "run.trace", "--", "./slow_requests", path, str(CLIENTS)]
        said = os.path.join(self.folder, "said")
        with open(said, "w") as file:
            server = subprocess.Popen([self.options.tool, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        while not self.listens(path):
            if server.poll() is not None:
                sys.exit(open(said).read())
            time.sleep(0.01)
        ends = time.monotonic() + self.options.minutes * 60
        clients = [Client(n, path, random.Random(self.options.seed + n), self.requests, ends) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        seen, told = {}, time.monotonic()
        while any(client.is_alive() for client in clients):
            self.look(seen)
            if time.monotonic() >= told + 60:
                told += 60
                print(f"{self.summary()}, {os.getloadavg()[0]:.1f} load", flush=True)
            time.sleep(1)
        if server.wait(timeout=600):
            self.fail(f"status {server.returncode}")
        self.look(seen, 0)
        surely = {name for name, request in list(self.requests.items()) if request.inside > LIMIT}
        missing = sorted(surely - self.found.keys())
        text = open(said).read()
        if missing:
            self.fail(f"no snapshot of {len(missing)}: {[(name, self.requests[name]) for name in missing[:3]]}")
        for line in text.splitlines():
            if "snapshot: tracer report" not in line:
                print(line)
        print(self.summary())
        return 1 if self.failures else 0

    @staticmethod
    def listens(path):
        """A socket that listens has the flags __SO_ACCEPTCON (net/unix/af_unix.c, unix_seq_show)."""
        with open("/proc/net/unix") as file:
            return any(line.split()[-1] == path and line.split()[3] == "00010000" for line in file)

    def look(self, seen, age=READ_AFTER):
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.endswith(".snapshot.trace") and seen.setdefault(path, time.monotonic()) <= time.monotonic() - age:
                if path not in self.found.values():
                    self.check(path)

    def summary(self):
        made = list(self.requests.values())
        return (f"{len(made):,} requests, {sum(one.inside > LIMIT for one in made):,} slow, {len(self.found):,} with a snapshot that was checked, "
                f"{len(self.failures)} failures")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the random requests")
    parser.add_argument("--tool", default=os.path.join(ROOT, ".build/release/tracer"))
    parser.add_argument("--keep", default=tempfile.gettempdir(), help="where snapshots that failed a check are kept")
    options = parser.parse_args()
    options.tool, options.keep = os.path.abspath(options.tool), os.path.abspath(options.keep)
    folder = tempfile.mkdtemp(prefix="tracer-slow-")
    try:
        return Trial(options, folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
