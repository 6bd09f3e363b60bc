"""`scripts/bench --servers`: how long clients wait for a server, bare and recorded in several ways by turns.

Each server answers one request, sent over 20 connections by requests.c (PostgreSQL: pgbench), as fast as it can: so its CPU and the
clients' are busy, and whoever needs one besides is in somebody's way. The median round counts, and its ratio to bare of the same round.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
CONNECTIONS = 20
WAYS = ["bare", "excluded", "recorded", "ring", "preloaded"]
PERCENTILES = ["p50", "p99", "p99.9"]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def say(port, text):
    """Sends what sets the server up; the answer is not looked at."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass


class Server:
    owner = None  # the user whose processes they are; None: ours
    needs = ()

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()

    def set_up(self):
        """Before the first measurement of a run."""

    def measure(self, client, count):
        """Requests a second, then percentiles in microseconds."""
        done = subprocess.run([client, str(self.port), str(CONNECTIONS), str(count)], input=self.request, capture_output=True, timeout=300)
        if done.returncode:
            sys.exit(f"bench: {type(self).__name__}: {done.stderr.decode()}")
        rate, *times = map(int, done.stdout.split())
        return rate, [time / 1000 for time in times]


class Redis(Server):
    """LRANGE_300 of redis-benchmark."""
    needs = ("redis-server",)
    request, count = b"LRANGE mylist 0 299\r\n", 60000

    def command(self):
        return ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]

    def set_up(self):
        say(self.port, b"RPUSH mylist" + b" VXK" * 450 + b"\r\n")


class Memcached(Server):
    needs = ("memcached",)
    request, count = b"get key\r\n", 200000

    def command(self):
        return ["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-t", "2", *(["-u", "nobody"] if os.geteuid() == 0 else [])]

    def set_up(self):
        say(self.port, b"set key 0 0 1000\r\n" + b"x" * 1000 + b"\r\nquit\r\n")


class Nginx(Server):
    needs = ("nginx",)
    request, count = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", 100000

    def command(self):
        here = self.folder
        os.chmod(here, 0o755)  # the worker may be another user
        pathlib.Path(here, "index.html").write_text("<p>hello" * 200, encoding="ascii")
        places = " ".join(f"{name}_temp_path {here}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        pathlib.Path(here, "configuration").write_text(
            f"daemon off; worker_processes 1; pid {here}/pid; error_log {here}/errors; events {{}} http {{ access_log off; keepalive_requests "
            f"1000000000; {places} server {{ listen 127.0.0.1:{self.port}; root {here}; }} }}", encoding="ascii")
        return ["nginx", "-p", here, "-e", f"{here}/errors", "-c", f"{here}/configuration"]


class PostgreSQL(Server):
    """SELECT by primary key, as pgbench does it."""
    owner = "postgres" if os.geteuid() == 0 else None
    needs = ("pgbench",)
    count = 40000

    def __init__(self, folder):
        super().__init__(folder)
        self.programs = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        self.data = os.path.join(folder, "data")
        self.run([f"{self.programs}/initdb", "-D", self.data, "-A", "trust", "--no-sync"])
        self.is_filled = False

    def run(self, words, **options):
        return subprocess.run([*as_owner(self), *words], cwd=self.folder, capture_output=True, check=True, timeout=300, **options)

    def command(self):
        return [f"{self.programs}/postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder, "-c", "listen_addresses=127.0.0.1"]

    def set_up(self):
        if not self.is_filled:
            self.run(["pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-i", "-q", "postgres"])
        self.is_filled = True

    def measure(self, client, count):
        words = ["pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-n", "-S", "-M", "prepared", "-c", str(CONNECTIONS), "-l",
                 "--log-prefix", f"{self.folder}/times", "-t", str(count // CONNECTIONS), "postgres"]
        before = time.monotonic()
        self.run(words)
        seconds = time.monotonic() - before
        times = []
        for path in pathlib.Path(self.folder).glob("times.*"):
            times += [int(line.split()[2]) for line in path.read_text(encoding="ascii").splitlines()]
            path.unlink()
        times.sort()
        return len(times) / seconds, [times[len(times) * part // 1000] for part in (500, 990, 999)] + times[-1:]


SERVERS = {"redis": Redis, "memcached": Memcached, "nginx": Nginx, "postgresql": PostgreSQL}
NAMES = list(SERVERS)


def as_owner(server):
    return ["runuser", "-u", server.owner, "--"] if server.owner else []


@contextlib.contextmanager
def running(server, prefix, variables, folder):
    errors = tempfile.TemporaryFile()
    process = subprocess.Popen([*as_owner(server), *prefix, *server.command()], cwd=folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
    try:
        for _ in range(3000):
            if process.poll() is not None:
                errors.seek(0)
                sys.exit(f"bench: {server.command()[0]} ended with status {process.returncode}: {errors.read().decode()[-300:]}")
            try:
                socket.create_connection(("127.0.0.1", server.port)).close()
                break
            except OSError:
                time.sleep(0.01)
        server.set_up()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Measurement:
    def __init__(self, build, server, client, folder, count):
        self.tool, self.agent = os.path.join(build, "tracer"), os.path.join(build, "libtracer.so")
        self.server, self.client, self.folder, self.count = server, client, folder, count
        self.excluded = None
        self.rounds = {way: [] for way in WAYS}
        self.longest = {way: 0 for way in WAYS}

    def json(self, *words):
        return json.loads(subprocess.run([self.tool, *words, "--json"], capture_output=True, check=True, timeout=300).stdout)

    def propose(self):
        """What `report` says to leave out."""
        self.once("recorded", self.count)
        advice = self.json("report", self.traces)["exclusion"]
        self.excluded = advice and advice["exclude"]

    def once(self, way, count):
        self.traces = os.path.join(self.folder, "traces")
        if os.path.isfile(self.traces):
            os.unlink(self.traces)
        shutil.rmtree(self.traces, ignore_errors=True)
        prefix, variables = [], {}
        if way == "preloaded":
            os.mkdir(self.traces)
            os.chmod(self.traces, 0o1777)
            variables = {"LD_PRELOAD": self.agent, "TRACER_OUT": f"{self.traces}/%p.trace"}
        elif way != "bare":
            more = {"ring": ["--mode", "ring", "--max-size", "64M"], "excluded": ["--exclude", self.excluded]}
            prefix = [self.tool, "record", "--quiet", "-o", self.traces, *more.get(way, []), "--"]
        with running(self.server, prefix, variables, self.folder):
            result = self.server.measure(self.client, count)
        if way != "bare":
            infos = [self.traces] if os.path.isfile(self.traces) else sorted(pathlib.Path(self.traces).glob("*.trace"))
            longest = max((self.json("info", str(path))["longest_agent_wait_ns"] for path in infos), default=0)
            self.longest[way] = max(self.longest[way], longest / 1000)
        return result

    def round(self):
        for way in WAYS:
            if way != "excluded" or self.excluded:
                self.rounds[way].append(self.once(way, self.count))

    def lines(self, name):
        for way in WAYS:
            if not self.rounds[way]:
                continue
            cells = [f"{statistics.median(rate for rate, _ in self.rounds[way]):.0f}"]
            for n in range(len(PERCENTILES)):
                times = [times[n] for _, times in self.rounds[way]]
                ratio = statistics.median(time / bare[n] for time, (_, bare) in zip(times, self.rounds["bare"]))
                cells += [f"{statistics.median(times):.0f}", "" if way == "bare" else f"{ratio:.2f}"]
            label = f"{way} ({self.excluded})" if way == "excluded" else way
            yield f"| {name} | {label} | " + " | ".join(cells) + f" | {'' if way == 'bare' else f'{self.longest[way]:.0f}'} |"


def main(build, directory, quick, count, only):
    with tempfile.TemporaryDirectory(prefix="bench-servers-", dir=directory) as scratch:
        os.chmod(scratch, 0o755)
        client = os.path.join(scratch, "requests")
        subprocess.run([os.environ.get("CC", "gcc"), "-O2", "-o", client, os.path.join(HERE, "requests.c")], check=True)
        heads = " | ".join(f"{name}, us | × bare" for name in PERCENTILES)
        print(f"| server | | requests/s | {heads} | longest wait for the agent, us |\n|---|---|" + "---:|" * (2 + 2 * len(PERCENTILES)))
        for name in only or NAMES:
            kind, folder = SERVERS[name], os.path.join(scratch, name)
            if not all(shutil.which(program) for program in kind.needs):
                print(f"| {name} | not here: {', '.join(kind.needs)} |")
                continue
            os.mkdir(folder)
            if kind.owner:
                shutil.chown(folder, kind.owner)
            measurement = Measurement(build, kind(folder), client, folder, kind.count // (10 if quick else 1))
            measurement.propose()
            for _ in range(count or (1 if quick else 5)):
                measurement.round()
            print("\n".join(measurement.lines(name)), flush=True)
    print(f"\n{CONNECTIONS} connections; {os.cpu_count()} CPUs; load afterwards {os.getloadavg()[0]:.1f}")
    return 0
