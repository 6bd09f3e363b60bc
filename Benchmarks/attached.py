"""`scripts/bench --attached`: servers under load, attached to again and again.

Each server runs twice: one is attached to, recorded for some seconds and let go, in turns with few functions and with all of them, while its
clients go on; the other is left alone. No request may fail, and no log may have an error. Once, requests are made only while it is recorded:
then the calls of one of its functions are what the server itself has counted. Before the first attach and after the last both are asked in
turns, and the ratio of how long their clients wait is compared.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

import servers

HERE = os.path.dirname(os.path.realpath(__file__))
EVERYTHING = ["--functions", "*", "--functions", "*!*", "--mode", "ring", "--max-size", "256M"]
SLICES = 5
PYTHON = """
import http.server, itertools, sys
count = itertools.count()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    def do_GET(self):
        n = next(count)
        body = (str(n) if self.path == "/count" else "hello " * 100).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    def handle_error(self, request, client):
        if not isinstance(sys.exc_info()[1], ConnectionError): super().handle_error(request, client) # the client was done
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
public class Served {
    public static void main(String[] words) throws Exception {
        AtomicLong count = new AtomicLong();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            long n = count.getAndIncrement();
            byte[] body = (exchange.getRequestURI().getPath().equals("/count") ? "" + n : "hello ".repeat(100)).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
"""


class Failure(Exception):
    pass


class Load:
    """What clients say: requests, and how long half of them and 99 % took at most, in us. A failed one raises Failure."""

    def __init__(self, requests, p50, p99):
        self.requests, self.p50, self.p99 = requests, p50, p99


def run(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, **options)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, words[:3]))}: status {done.returncode}: {(done.stderr or done.stdout)[-400:]}")
    return done


def wrk(port, seconds):
    out = run(["wrk", "-t1", "-c16", f"-d{seconds}s", "--timeout", "20s", "--latency", f"http://127.0.0.1:{port}/"]).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        raise Failure(out)
    def microseconds(share):
        found = re.search(rf"^ +{share}% +([\d.]+)(us|ms|s) *$", out, re.M)
        if not found:
            raise Failure(out)
        return float(found[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[found[2]]
    return Load(int(re.search(r"(\d+) requests in", out)[1]), microseconds(50), microseconds(99))


class Counting:
    """A server of one process, which says itself how many requests it has had. The question is one, too."""

    def made(self, before, after):
        """How many requests others have made between two questions."""
        return after - before - 1

    def attached(self, process):
        return process.pid

    def busy(self):
        """The process to attach to while clients are there."""
        return None


class Asked(Counting):
    """It is asked by HTTP."""
    needs = ("wrk",)
    path = "/count"

    def load(self, seconds):
        return wrk(self.port, seconds)

    def counted(self):
        """Requests before this one, which it counts, too."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.path}", timeout=60) as answer:
            return self.number(answer.read().decode())

    def number(self, text):
        return int(text)


class Nginx(Asked, servers.Nginx):
    needs = ("nginx", "wrk")
    function, each = "ngx_http_create_request", 1

    def command(self):
        words = super().command()
        path = pathlib.Path(self.folder, "configuration")
        user = "user www-data; " if os.geteuid() == 0 else "" # nobody is lent no plans
        path.write_text(user + path.read_text().replace(f"root {self.folder};", f"root {self.folder}; location /count {{ stub_status; }}"))
        return words

    def number(self, text):
        return int(text.splitlines()[2].split()[2]) - 1

    def attached(self, process):
        workers = []
        while not workers:
            workers = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return int(workers[0])

    def errors(self):
        text = pathlib.Path(self.folder, "errors").read_text()
        return [line for line in text.splitlines() if "[notice]" not in line]


class Python(Asked, servers.Server):
    needs = ("python3", "wrk")
    function, each = "send", 2 # head and body

    def command(self):
        path = pathlib.Path(self.folder, "served.py")
        path.write_text(PYTHON)
        return ["/usr/bin/python3", str(path), str(self.port)]


class Java(Asked, servers.Server):
    needs = ("java", "javac", "wrk")
    function, each = "Java_sun_nio_ch_FileDispatcherImpl_write0", 2
    options = ["--functions", "libnio.so!*"]

    def command(self):
        path = pathlib.Path(self.folder, "Served.java")
        if not path.exists():
            path.write_text(JAVA)
            run(["javac", str(path)])
        return ["java", "-Xmx256m", "-Dsun.net.httpserver.nodelay=true", "-cp", self.folder, "Served", str(self.port)]


class Redis(Counting, servers.Redis):
    needs = ("redis-server", "redis-benchmark")
    function, each = "call", 1
    rate = 20000

    def load(self, seconds):
        words = ["redis-benchmark", "-p", str(self.port), "-c", "20", "-n", str(int(self.rate * seconds)), "--csv", "LRANGE", "mylist", "0", "99"]
        begin = time.monotonic()
        done = run(words)
        if "rror" in done.stdout + done.stderr:
            raise Failure(done.stdout + done.stderr)
        cells = [cell.strip('"') for cell in done.stdout.splitlines()[-1].rsplit('","', 7)]
        requests = int(self.rate * seconds)
        self.rate = requests / (time.monotonic() - begin)
        return Load(requests, float(cells[4]) * 1000, float(cells[6]) * 1000)

    def counted(self):
        out = run(["redis-cli", "-p", str(self.port), "INFO", "commandstats"]).stdout
        return sum(map(int, re.findall(r"calls=(\d+)", out)))


class PostgreSQL(servers.PostgreSQL):
    needs = ("pgbench", "psql")
    function, each = "AtEOXact_PgStat", 1 # at each commit

    def command(self):
        return [*super().command(), "-c", "autovacuum=off"] # the database would count its transactions, too

    def psql(self, command, database="postgres"):
        return self.run(["psql", "-h", "127.0.0.1", "-p", str(self.port), "-Atq", "-c", command, database], text=True).stdout.strip()

    def load(self, seconds):
        words = ["pgbench", "-h", "127.0.0.1", "-p", str(self.port), "-n", "-S", "-M", "prepared", "-c", "10", "-l", "--log-prefix", f"{self.folder}/times",
                 "-T", str(seconds), "postgres"]
        done = self.run(words, text=True)
        if re.search(r"failed transactions: [1-9]", done.stdout) or "rror" in done.stderr:
            raise Failure(done.stdout + done.stderr)
        times = []
        for path in pathlib.Path(self.folder).glob("times.*"):
            times += [int(line.split()[2]) for line in path.read_text(encoding="ascii").splitlines()]
            path.unlink()
        times.sort()
        return Load(len(times), times[len(times) // 2], times[len(times) * 99 // 100])

    def attached(self, process):
        """A session that nobody else's requests go through."""
        self.psql("CREATE DATABASE counted")
        self.session = subprocess.Popen(["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", self.owner or os.environ["USER"], "-Atq", "counted"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        return int(self.ask("SELECT pg_backend_pid()"))

    def ask(self, command):
        self.session.stdin.write(command + ";\n")
        return self.session.stdout.readline().strip()

    def counted(self):
        # Reads a table: a session that does not counts its transactions later (pgstat_report_stat).
        self.ask("SELECT count(*) FROM pg_class, (SELECT pg_stat_force_next_flush()) AS flushed")
        for _ in range(100): # it tells its statistics once it is idle
            found = self.psql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'counted'")
            time.sleep(0.02)
        return int(found)

    def made(self, before, after):
        return after - before - 1

    def ask_often(self):
        for n in range(5000):
            if self.ask(f"SELECT {n}") != str(n):
                raise Failure("a wrong answer")

    def busy(self):
        """One of those that serve the load."""
        pid = ""
        while not pid:
            pid = self.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY pid DESC LIMIT 1")
        return int(pid)


SERVERS = {"nginx": Nginx, "redis": Redis, "postgresql": PostgreSQL, "python": Python, "java": Java}
NAMES = list(SERVERS)


class Turns:
    def __init__(self, build, folder, seconds):
        self.tool, self.folder, self.seconds, self.stops, self.calls = os.path.join(build, "tracer"), folder, seconds, [], 0
        self.trace = os.path.join(folder, "attached.trace")
        self.environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "caches")}

    def attach(self, pid, *options, until=None):
        """`until`: what is done while it records; nil: --for."""
        if os.path.isfile(self.trace):
            os.unlink(self.trace)
        shutil.rmtree(self.trace, ignore_errors=True)
        length = [] if until else ["--for", f"{self.seconds}s"]
        tool = subprocess.Popen([self.tool, "attach", str(pid), "-o", self.trace, "--force", *length, *options], env=self.environment, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, text=True)
        said = tool.stderr.readline()
        while "recording" not in said and tool.poll() is None:
            said += tool.stderr.readline()
        if until and tool.poll() is None:
            until()
            tool.send_signal(signal.SIGINT)
        said += tool.communicate(timeout=300)[1]
        stop = re.search(r"at most ([\d.]+) (ns|us|ms|s)$", said, re.M)
        if tool.returncode or not stop:
            raise Failure(said)
        self.stops.append(float(stop[1]) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[stop[2]])
        self.calls += int(re.search(r"([\d,]+) calls? recorded", said)[1].replace(",", ""))

    def count(self, function):
        out = run([self.tool, "report", self.trace, "--json"], env=self.environment).stdout
        return sum(row["calls"] for row in json.loads(out)["functions"] if row["name"] == function)

    def round(self, server, pid, options):
        """Returns the requests that were made meanwhile."""
        results = []
        def load():
            try:
                results.append(server.load(self.seconds + 6))
            except Exception as failure: # the thread that waits tells it, whatever it is
                results.append(failure)
        thread = threading.Thread(target=load)
        thread.start()
        time.sleep(1) # the load is there
        try:
            self.attach(server.busy() or pid, *options)
        finally:
            thread.join()
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0].requests


def compare(one, other):
    """Ratios of p50 and p99 of the one over the other's, both asked in turns."""
    ratios = []
    for n in range(SLICES):
        loads = {}
        for server in (one, other) if n % 2 else (other, one):
            loads[server] = server.load(2)
        ratios.append((loads[one].p50 / loads[other].p50, loads[one].p99 / loads[other].p99))
    return [statistics.median(ratio[n] for ratio in ratios) for n in (0, 1)]


def measure(kind, folder, build, rounds, seconds):
    with contextlib.ExitStack() as stack:
        pair = []
        for name in "attached", "alone":
            os.mkdir(os.path.join(folder, name))
            if kind.owner:
                shutil.chown(os.path.join(folder, name), kind.owner)
            server = kind(os.path.join(folder, name))
            pair.append((server, stack.enter_context(servers.running(server, [], {}, server.folder))))
        (server, process), (alone, _) = pair
        turns = Turns(build, folder, seconds)
        before = compare(server, alone)
        pid = server.attached(process)
        options = getattr(kind, "options", ["--functions", kind.function])
        requests = 0
        for n in range(rounds):
            requests += turns.round(server, pid, EVERYTHING if n % 2 else options)
        first = server.counted()
        turns.attach(pid, *options, until=getattr(server, "ask_often", lambda: server.load(2)))
        counted, own = turns.count(kind.function), server.made(first, server.counted())
        after = compare(server, alone)
        errors = getattr(server, "errors", list)()
        if process.poll() is not None:
            raise Failure("it has ended")
        if errors:
            raise Failure("in its log: " + "; ".join(errors[:3]))
        exact = f"{counted:,}" + (f" = {kind.each} ×" if kind.each > 1 else " =") + f" {own:,}"
        if counted != own * kind.each:
            exact += " (not so)"
        return (f"{rounds + 1} | {requests:,} | {turns.calls:,} | {exact} | {statistics.median(turns.stops):.1f} / {max(turns.stops):.1f} | "
                + " | ".join(f"{now:.2f} ({then:.2f})" for now, then in zip(after, before)))


def main(build, directory, quick, count, only):
    failed = False
    with tempfile.TemporaryDirectory(prefix="bench-attached-", dir=directory) as scratch:
        os.chmod(scratch, 0o755)
        print("| server | attaches | requests meanwhile | calls recorded | calls of one function = the server's own count | longest stop, ms: median / most "
              "| p50 of never attached, afterwards (before) | p99 |\n|---|" + "---:|" * 7)
        for name in only or NAMES:
            kind, folder = SERVERS[name], os.path.join(scratch, name)
            if not all(shutil.which(program) for program in kind.needs):
                print(f"| {name} | not here: {', '.join(kind.needs)} |")
                continue
            os.mkdir(folder)
            os.chmod(folder, 0o755)
            try:
                line = measure(kind, folder, build, count or (2 if quick else 50), 1 if quick else 10)
            except (Failure, subprocess.SubprocessError) as failure:
                failed, line = True, f"failed: {failure}"
            print(f"| {name} | {line} |", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{os.cpu_count()} CPUs; load afterwards {os.getloadavg()[0]:.1f}")
    return 1 if failed else 0
