"""Calls that cannot be recorded are counted where somebody looks: in a file that is left, in the summary of `tracer record` over
all processes, in one line on standard error."""
import os
import re
import signal
import socket
import subprocess

import build
import harness
import suite
import tracefile
from harness import Failed, Skipped, expect
from suite import read, write

CALLS = 300000  # as in part_unreachable.c


class Losses(suite.Test):
    def prepare(self):
        if os.geteuid() != 0:
            raise Skipped("only root has something to give up")
        os.chmod(self.traces, 0o700)
        source = os.path.join(build.SUBJECTS, "part_unreachable.c")
        library = self.compile("libinside.so", "-O2", "-shared", "-fPIC", "-DLIB_inside", source)
        self.program = self.compile("unreachable", "-O2", source, library, f"-Wl,-rpath,{self.made}")

    def agent(self, mode):
        return self.ended([self.program, mode], self.traced_environment())

    def record(self, mode):
        return self.ended([self.settings.tool, "record", "-o", self.trace("%p.trace"), self.program, mode], self.environment())

    def ended(self, argv, environment):
        run = harness.execute(argv, self.directory.path, environment)
        if run.stdout == b"no landlock\n":
            raise Skipped("this kernel has no Landlock")
        expect(not run.status and run.stdout == b"done\n", f"the program: {harness.describe(run.status)}: {run.stdout + run.stderr}")
        return run.stderr.decode(errors="replace"), tracefile.read_all(self.traces)


def a_child_without_a_file(test):
    said, traces = test.record("child")
    expect(len(traces) == 1 and traces[0].header["unrecorded_children"] == 1,
           f"{[(t.path, t.header['unrecorded_children']) for t in traces]}")
    expect(traces[0].dropped >= CALLS, f"{traces[0].dropped} of the child's {CALLS} calls are counted")
    expect(re.search(r"lost: \S+: [0-9,]+ calls, and all calls of 1 forked process", said) and said.count("cannot create") == 1, said)


def used_up_space(test):
    said, traces = test.agent("space")
    expect(len(traces) == 1, f"{len(traces)} traces")
    there = traces[0].count("inside")
    expect(there != 0 and there + traces[0].dropped >= 20 * CALLS, f"{there} recorded and {traces[0].dropped} counted of {20 * CALLS}")
    expect(said.count("tracer: ") == 1 and "dropped the privileges to open the file" in said, said)


def a_landlock_domain_is_recorded_to_the_end(test):
    said, traces = test.agent("landlock")
    expect(not said and len(traces) == 1 and traces[0].count("inside") == 2 * CALLS and not traces[0].dropped,
           f"{[(t.count('inside'), t.dropped) for t in traces]} of {2 * CALLS}\n{said}")


NGINX = """worker_processes 2; pid {0}/pid; error_log {0}/log; daemon off; user nobody nogroup;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u;
        scgi_temp_path {0}/s; server {{ listen unix:{0}/socket; root {0}/www; }} }}
"""
REQUESTS = 400


def nginx_is_recorded_to_the_end(test):
    """Its master is root's, its workers become nobody's: each request is in a trace, in full and in ring mode."""
    suite.need("nginx")
    folder = test.directory.path
    os.mkdir(os.path.join(folder, "www"))
    write(os.path.join(folder, "www/index.html"), "hello\n")
    configuration, path = test.write("nginx.conf", NGINX.format(folder)), os.path.join(folder, "socket")
    for mode in ("full", "ring"):
        command = [test.settings.tool, "record", "-o", test.trace(mode + ".%p.trace"), "nginx", "-c", configuration]
        environment = test.environment(TRACER_MODE=mode, TRACER_MAXSIZE="64M")
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as server:
            try:
                for _ in range(REQUESTS):
                    answer = ask(path, server)
                    expect(b"200 OK" in answer and answer.endswith(b"hello\n"), f"{mode}: {answer!r}")
                os.kill(int(read(os.path.join(folder, "pid"))), signal.SIGQUIT)
                said = server.communicate(timeout=harness.HANGS)[1].decode(errors="replace")
            finally:
                if server.poll() is None:
                    os.killpg(server.pid, signal.SIGKILL)
        if os.path.exists(path):
            os.unlink(path)
        traces = [t for t in tracefile.read_all(test.traces) if os.path.basename(t.path).startswith(mode)]
        found = {name: sum(t.count(name) for t in traces) for name in ("writev", "recv")}
        dropped = sum(t.dropped for t in traces)
        expect(len(traces) == 3 and not dropped and min(found.values()) >= REQUESTS and "lost" not in said,
               f"{mode}: {len(traces)} traces, {dropped} dropped, {found}: {said}")


def ask(path, server):
    """One request, as soon as the server listens."""
    while True:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(harness.HANGS)
            try:
                client.connect(path)
            except (FileNotFoundError, ConnectionRefusedError):
                if server.poll() is not None:
                    raise Failed(f"nginx has ended: {server.stderr.read()}") from None
                continue
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b""
            while part := client.recv(4096):
                answer += part
            return answer


def tests():
    return suite.tests_of(__name__, Losses)
