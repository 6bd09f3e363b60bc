"""Real programs in real use, with and without the agent: the same output, status and files; a valid trace with calls.

What differs between two bare runs is normalised, and the
reason stands beside it.
"""
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field

import build
import harness
import suite
from harness import Failed, Skipped, expect

WALK_BELOW = 2 << 20  # bytes: bigger traces are checked for structure and by the tool, not event by event in Python

RUNS_OF_ONE_THAT_VARIES = 4


@dataclass
class Program(suite.Test):
    name: str
    argv: list
    files: dict = field(default_factory=dict)
    stdin: bytes = b""
    normalise: object = staticmethod(lambda data: data)
    timeout: float = harness.HANGS
    memory: int = 16 * harness.GIGABYTE
    status: int = 0
    results: tuple = ()  # files that must be the same afterwards
    least_calls: int = 50
    python_module: str = ""
    confines: int = 0  # processes that may forbid themselves to write files: each then says so, and records no further
    checks_bare = True

    def prepare(self):
        program = self.argv[0]
        if not shutil.which(program, path=harness.passed_on(os.environ)["PATH"]):
            raise Skipped(f"{program} is not installed")
        if self.python_module and subprocess.run(["/usr/bin/python3", "-c", f"import {self.python_module}"], capture_output=True).returncode:
            raise Skipped(f"python3-{self.python_module} is not installed")

    def once(self, environment):
        where = self.directory.fresh()
        for name, text in self.files.items():
            suite.write(os.path.join(where, "cwd", name), text, mode=0o755)
        run = harness.execute(self.argv, where, {**environment, "HOME": os.path.join(where, "cwd")}, timeout=self.timeout,
                              memory=self.memory, stdin=self.stdin)
        made = {name: os.path.join(where, "cwd", name) for name in self.results}
        return run, {name: suite.read_bytes(path) for name, path in made.items() if os.path.exists(path)}

    def judge(self):
        bare, bare_files = self.once(self.environment())
        expect(bare.status == self.status, f"bare: {harness.describe(bare.status)}, expected {harness.describe(self.status)}\n"
               + (bare.stdout[-300:] + bare.stderr[-600:]).decode(errors="replace"))
        expect(len(bare_files) == len(self.results), f"bare: produced {sorted(bare_files)} of {sorted(self.results)}")
        if self.settings.bare_only:
            return
        traced, traced_files = self.once(self.traced_environment())
        stopped = self.confines and harness.without_agents_lines(traced, self.confines)
        faults = self.differences((bare, bare_files), (traced, traced_files))
        # A program that does not always do the same alone may do either.
        for _ in range(RUNS_OF_ONE_THAT_VARIES if faults else 0):
            faults = self.differences(self.once(self.environment()), (traced, traced_files))
            if not faults:
                break
        faults += self.check_traces(stopped)
        expect(not faults, "\n".join(faults))

    def differences(self, bare, traced):
        return harness.same(bare[0], traced[0], self.normalise) + [
            f"the file {name} differs" for name in self.results if bare[1].get(name) != traced[1].get(name)]

    def check_traces(self, stopped):
        traces, faults = harness.check_traces(self.settings, self.directory, walk=False, drops=stopped)
        calls = 0
        for trace in traces[:8]:
            if os.path.getsize(trace.path) < WALK_BELOW:
                calls += sum(trace.trees().calls.values())
                if trace.anomalies:
                    faults.append(f"{os.path.basename(trace.path)}: {len(trace.anomalies)} anomalies: " + "; ".join(trace.anomalies[:3]))
                faults += harness.cross_check(self.settings, trace, self.directory.name)
                continue
            try:
                calls += sum(f["calls"] for f in harness.report(self.settings, trace.path)["functions"])
            except Failed as failure:
                faults.append(str(failure))
        if not traces:
            faults.append("no trace was written")
        elif calls < self.least_calls:
            faults.append(f"{calls} calls recorded in {len(traces)} traces, at least {self.least_calls} expected")
        return faults


BASH = r"""
for i in 1 2 3; do (echo sub $i; (echo deeper $i | tr a-z A-Z)); done
x=$(seq 1 200 | sort -rn | head -3 | paste -sd,); echo "$x"
cat <(echo process substitution)
echo a b c | while read -r a b c; do echo "$c $b $a"; done
f() { local n=$1; ((n > 0)) && f $((n - 1)); return $n; }
f 50; echo "f returned $?"
trap 'echo trapped' EXIT
(exit 7) || echo "subshell $?"
sort <<< $'b\na' ; echo err >&2
sleep 0 & wait $!; echo "waited $?"
exit 3
"""
PYTHON = r"""
import ctypes, hashlib, json, sqlite3, ssl, subprocess, sys, tempfile, threading, zlib, decimal, multiprocessing
print(subprocess.run(["sh", "-c", "echo child; exit 4"], capture_output=True).stdout, sys.version_info[:2])
base = sqlite3.connect(":memory:")
base.execute("create table t(a, b)")
base.executemany("insert into t values(?, ?)", [(i, i * i) for i in range(2000)])
print(base.execute("select sum(b), count(*), max(a) from t where a % 3 = 0").fetchone())
context = ssl.create_default_context()
print(len(ssl.RAND_bytes(16)), context.verify_mode, hashlib.sha256(b"x" * 100000).hexdigest())
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
try: client.do_handshake()
except ssl.SSLWantReadError: print("hello is", len(outgoing.read()) > 100)
results = []
def work(n): results.append((n, zlib.crc32(json.dumps(list(range(n * 100))).encode())))
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(results))
print(decimal.Decimal(2).sqrt(), ctypes.CDLL(None).abs(-5))
callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))(lambda a, b: a[0] - b[0])
values = (ctypes.c_int * 8)(5, 3, 8, 1, 9, 2, 7, 4)
ctypes.CDLL(None).qsort(values, 8, 4, callback)
print(list(values))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(abs, range(-5, 5)))
    sys.exit(9)
"""
GREENLET = r"""
import greenlet, json, random, re, zlib
main = greenlet.getcurrent()
def deep(depth, number):
    if depth == 0: return main.switch(number)
    return sorted([3, 1, 2], key=lambda v: (deep(depth - 1, number), v)[1] if v == 3 else v)
def work(number):
    total = 0
    for i in range(10):
        total += zlib.crc32(json.dumps(list(range(i))).encode()) + len(re.findall("a", "banana" * i))
        deep(3, number)
        try: int("x" * i)
        except ValueError as error: total += len(str(error))
    return total
all = [greenlet.greenlet(work) for _ in range(100)]
for number, each in enumerate(all): each.switch(number)
random.seed(3)
alive, sums = set(range(100)), {}
while alive:
    number = random.choice(sorted(alive))
    result = all[number].switch(0)
    if all[number].dead: alive.discard(number); sums[number] = result
print(len(sums), sum(sums.values()))
"""
GEVENT = r"""
from gevent import monkey
monkey.patch_all()
import gevent, gevent.pool, gevent.server, hashlib, socket
def answer(connection, address):
    while data := connection.recv(1000): connection.sendall(hashlib.sha256(data).hexdigest().encode())
server = gevent.server.StreamServer(("127.0.0.1", 0), answer)
server.start()
def ask(number):
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        text = ""
        for i in range(5):
            connection.sendall(b"%d-%d" % (number, i))
            text += connection.recv(64).decode()
            gevent.sleep(0)
        return text
print(hashlib.sha256("".join(gevent.pool.Pool(20).map(ask, range(60))).encode()).hexdigest())
server.stop()
# Its threads look names up. One that the end of the interpreter overtakes says so, or not.
gevent.get_hub().threadpool.kill()
"""
PERL = r"""
use strict; use warnings;
my %count; $count{length $_}++ for map { "x" x ($_ % 17) } 1..5000;
print join(",", map { "$_=$count{$_}" } sort { $a <=> $b } keys %count), "\n";
my $text = join " ", map { sprintf "%05.2f", sqrt $_ } 1..50; $text =~ s/(\d+)\.(\d+)/$2.$1/g; print "$text\n";
eval { die { code => 42 } }; print "caught $@->{code}\n";
my $pid = fork; if (!$pid) { exec "echo", "from the child" } waitpid $pid, 0; print "status ", $? >> 8, "\n";
$SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select undef, undef, undef, 20; }; print "woken by $@";
print `echo backticks`; exit 5;
"""
CPP = r"""
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() {
    std::map<std::string, int> m; std::vector<int> v;
    for (int i = 0; i < 100; i++) { m[std::to_string(i % 7)]++; v.push_back((i * 37) % 101); }
    std::sort(v.begin(), v.end());
    try { throw std::runtime_error("thrown"); } catch (std::exception &e) { std::cout << e.what() << m.size() << v[3]; }
    std::cout << std::regex_replace(std::string("a1b22"), std::regex("[0-9]+"), "#") << "\n";
}
"""
C_SOURCE = "#include <stdio.h>\nint twice(int x) { return 2 * x; }\nint main(void) { printf(\"%d\\n\", twice(21)); return 0; }\n"
NODE = r"""
const { Worker, isMainThread, parentPort } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs'), child = require('child_process');
if (!isMainThread) { let s = 0; for (let i = 0; i < 1e5; i++) s += i; parentPort.postMessage(s); }
else {
  console.log(crypto.createHash('sha256').update('x'.repeat(1e5)).digest('hex'));
  console.log(zlib.gunzipSync(zlib.gzipSync(Buffer.from('text'.repeat(1000)))).length, child.execSync('echo child').toString());
  try { JSON.parse('{'); } catch (e) { console.log(e.name); }
  Promise.all([1, 2].map(() => new Promise((ok, no) => { const w = new Worker(__filename); w.on('message', ok); w.on('error', no); })))
    .then(r => { console.log(r); process.exitCode = 6; });
}
"""
JAVA = r"""
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class Main {
  public static void main(String[] a) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(4); List<Future<Integer>> all = new ArrayList<>();
    for (int i = 0; i < 20; i++) { final int n = i; all.add(pool.submit(() -> IntStream.range(0, 1000 * n).map(x -> x % 7).sum())); }
    int sum = 0; for (Future<Integer> f : all) sum += f.get(); pool.shutdown();
    try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("null pointer"); }
    System.out.println(sum); System.exit(8);
  }
}
"""
GIT = r"""
set -e
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
git init -q -b main repo; cd repo; git config user.email a@b.c; git config user.name n; git config gc.auto 0
for i in 1 2 3 4 5; do seq 1 $((i * 50)) > file$((i % 2)); git add -A; git commit -qm "commit $i"; done
git log --stat --format='%H %s'; git log -p -1 | tail -3; git checkout -qb side HEAD~2; echo x > other; git add other
git commit -qm side; git rebase -q main; git log --oneline | cat; git gc -q; git fsck; git clone -q . ../copy; ls ../copy
"""
MAKE = "all: a.txt b.txt c.txt\n\tcat a.txt b.txt c.txt > all.txt\n%.txt:\n\techo $@ | tr a-z A-Z > $@\n"
NUMBERS = re.compile(rb"[\d.]+")


def without_figures(data):
    """openssl speed: how often and how fast differs from run to run; the lines and their words do not."""
    return re.sub(rb" +", b" ", NUMBERS.sub(b"N", re.sub(rb"[\d.]+k\b", b"N", data)))


RUBY_EXTENSION = r"""
#include <ruby.h>
#include <string.h>
#if defined __x86_64__
#define HELD(name) register VALUE name __asm__("rbx")
#else
#define HELD(name) register VALUE name __asm__("x19")
#endif
/* What earlier calls have left on the stack points to nothing. */
static __attribute__((noinline)) void wipe(void) {
    char old[65536];
    memset(old, 0, sizeof old);
    __asm__ volatile("" :: "r"(old) : "memory");
}
static __attribute__((noinline)) int is_lost(VALUE string) {
    return RB_BUILTIN_TYPE(string) != T_STRING || RSTRING_LEN(string) != 8 || memcmp(RSTRING_PTR(string), "the held", 8);
}
/* A string that one register alone holds while others are made: under GC.stress each of them collects. */
static __attribute__((noinline)) int hold(void) {
    HELD(string) = rb_str_new("the held", 8);
    __asm__ volatile("" : "+r"(string));
    wipe();
    rb_str_new("other", 5);
    rb_str_new("another", 7);
    __asm__ volatile("" : "+r"(string));
    return is_lost(string);
}
static VALUE lost_of(VALUE self, VALUE count) {
    int lost = 0;
    for (int n = NUM2INT(count); n > 0; n--) lost += hold();
    return INT2NUM(lost);
}
void Init_held(void) { rb_define_global_function("lost_of", lost_of, 1); }
"""
RUBY = r"""
require "./held"
GC.stress = true
puts "lost #{lost_of(50)} of 50"
GC.stress = false
strings = (1..20).map { |n| "string #{n}" * n }
puts strings.join(" ").sum, strings.map(&:upcase).last[0, 9]
"""


ALLOCATES = r"""
#include <mcheck.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *takes(size_t size) { void *made = malloc(size); __asm__ volatile("" ::: "memory"); return made; }
int main(void) {
    mtrace();
    for (int i = 0; i < 20; i++) {
        void *made = realloc(takes(10 + i), 100);
        free(strdup("text"));
        if (i) free(made);
    }
    muntrace();
    return 0;
}
"""


@dataclass
class RubyExtension(Program):
    """Ruby's collector finds objects of an extension in C on the stack and in registers, and the extension's calls are
    recorded with their ends."""

    def prepare(self):
        suite.need("ruby")
        folders = subprocess.run(["ruby", "-rrbconfig", "-e", 'puts RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir")'],
                              capture_output=True, text=True).stdout.split()
        if len(folders) != 2 or not os.path.exists(os.path.join(folders[0], "ruby.h")):
            raise Skipped("the headers of ruby are not installed")
        library = self.compile("held.so", "-O2", "-w", "-shared", "-fPIC", *("-I" + folder for folder in folders), source=RUBY_EXTENSION)
        self.argv = ["ruby", "-I", self.made, "main.rb"]
        self.files = {"main.rb": RUBY.replace("./held", library)}

    def check_traces(self, stopped):
        faults = super().check_traces(stopped)
        made = [f for name in os.listdir(self.traces) for f in harness.report(self.settings, self.trace(name))["functions"] if f["symbol"] == "rb_str_new"]
        if sum(f["calls"] for f in made) < 150 or not sum(f["total_ns"] for f in made):
            faults.append(f"rb_str_new: {[(f['calls'], f['total_ns']) for f in made]} calls and nanoseconds; at least 150 expected, each with its end")
        return faults


def shell(name, script, **options):
    return Program(name, ["sh", "-c", script], **options)


def ex(*commands):
    return [word for command in commands for word in ("-ex", command)]


FRAMES = ["-x", os.path.join(harness.ROOT, "scripts/gdb-frames.py")]


class Gdb(suite.Test):
    """gdb stops inside traced calls: the stack is complete, also when it attaches, and the program goes on."""
    checks_bare = True

    def prepare(self):
        suite.need("gdb")

    def gdb(self, *words):
        done = subprocess.run(["gdb", "-batch", "-nx", *ex("set debuginfod enabled off", "set breakpoint pending on"), *words], capture_output=True,
                              text=True, env=self.environment(), timeout=600, cwd=self.made, stdin=subprocess.DEVNULL)
        return done.stdout + done.stderr

    def runs(self, program, *commands, words=()):
        """A program under gdb, and under the agent."""
        preload = [] if self.settings.bare_only else [f"set environment LD_PRELOAD={self.settings.agent}",
                                                      f"set environment TRACER_OUT={self.traces}/%e.%p.trace"]
        return self.gdb(*words, *ex("set startup-with-shell off", *preload, *commands), program)

    def waiting(self, *words, **options):
        if reason := harness.attaching_is_forbidden():
            raise Skipped(reason)
        return super().waiting(*words, **options)

    def attached(self, *words):
        """What gdb says while the subject `attached` waits inside a traced call for its standard input."""
        with self.waiting(build.program_of("attached")) as program:
            # Until it sleeps, it may not be inside read yet.
            while suite.read(f"/proc/{program.pid}/stat").rpartition(")")[2].split()[0] != "S":
                time.sleep(0.001)
            return self.gdb("-p", str(program.pid), *words)


def frames_of(text):
    return re.findall(r"^#\d+\s+(?:0x[0-9a-f]+ in )?([\w@.]+) \(", text, re.M)


def expect_frames(output, stack, *expected):
    own = [frame for frame in frames_of(stack) if frame.startswith(("walk_", "attached_")) or frame in ("main", "compare")]
    expect(own == list(expected), f"frames {own}, expected {expected}\n{output[-1500:]}")


def gdb_backtrace(test):
    output = test.runs(build.program_of("backtraces", ".gcc."), "break walk_inner", "run", "bt", "echo END\\n", "finish", "delete", "continue")
    expect_frames(output, output.split("Breakpoint 1, ")[-1].split("END")[0], "walk_inner", "walk_middle", "walk_outer", "main")
    expect("exited normally" in output, f"the program did not go on after `finish` and `continue`\n{output[-1500:]}")


def gdb_through_libc(test):
    output = test.runs(build.program_of("backtraces", ".gcc."), "break compare", "run", "bt")
    expect_frames(output, output.split("Breakpoint 1, ")[-1], "compare", "main")


def gdb_attach(test):
    output = test.attached(*ex("bt", "detach"))
    expect_frames(output, output, "attached_wait", "attached_outer", "main")


# The first instruction of the trampoline that reads %fs has the distance of the thread's state patched in.
MOVE = """import gdb
memory = gdb.selected_inferior()
word = lambda at: int.from_bytes(memory.read_memory(at, 8).tobytes(), 'little')
code = int(gdb.parse_and_eval('(long)&tracer_enter')) & (1 << 64) - 1
text = memory.read_memory(code, 64).tobytes()
at = text.index(bytes((0x64, 0x48, 0x8b, 0x0c, 0x25))) + 5
distance = int.from_bytes(text[at:at + 4], 'little', signed=True)
state = int(gdb.parse_and_eval('(unsigned long)$fs_base')) + distance
hot = word(state + 8)
# Modulo 2^64, as the trampoline reckons: a machine that has just started has not counted that far.
memory.write_memory(hot + 16, (word(hot + 16) - (1 << 43) & (1 << 64) - 1).to_bytes(8, 'little'))
print('moved')
"""


def gdb_hours_pass(test):
    """An open call, and its thread's base of time moved 2^43 ticks back: as if the program had slept for an hour. The
    return does not fit into a word of 42 bits, nor the next enter into 23: the agent sets another base."""
    if test.settings.bare_only:
        return
    if os.uname().machine != "x86_64":
        raise Skipped("the offset of a thread's state is read from x86_64 code")
    script = test.write("move.py", MOVE)
    with test.waiting(build.program_of("attached")) as program:
        output = test.gdb("-p", str(program.pid), "-x", script, *ex("detach"))
    expect("moved" in output, f"gdb did not move the base\n{output[-1500:]}")
    trace = test.checked_trace()
    calls, still_open = trace.count("attached_step"), trace.count("attached_wait", trace.open)
    expect(calls == 300 and not still_open, f"{calls} calls of attached_step, {still_open} of attached_wait still open")
    dump = test.tool("dump", trace.path).stdout
    expect(re.search(r" base *\n.* exit +read ", dump), "no base was set before the first return")
    spent = {f["name"]: f for f in harness.report(test.settings, trace.path)["functions"]}["attached_wait"]
    expect(0 < spent["total_ns"] < 600e9, f"attached_wait took {spent['total_ns']} ns: the times before and after do not meet")


def gdb_open_calls(test):
    """scripts/gdb-frames.py: the open calls of a live process, the same ones in its core file, and one on another stack."""
    if test.settings.bare_only:
        return
    core = test.path("core")
    live = test.attached(*FRAMES, *ex("tracer-frames", f"generate-core-file {core}", "detach"))
    dead = test.gdb(*FRAMES, *ex("thread apply all tracer-frames"), build.program_of("attached"), core)
    # The first call of gen_main: gen_body has yielded on a stack of its own.
    apart = test.runs(build.program_of("contexts"), "break gen_main", "run", "tracer-frames", words=FRAMES)
    inside = [("#0", "read", "attached_wait"), ("#1", "attached_wait", "attached_outer"), ("#2", "attached_outer", "main")]
    for what, output, expected in (("live", live, inside), ("core file", dead, inside),
                                   ("other stack", apart, [("#0", "gen_main", "main"), ("-", "gen_body", "body")])):
        calls = re.findall(r"^  (#\d+|-)  (?:__GI_|__libc_)?_*(\w+), called from (\w+)", output, re.M)
        expect(calls == expected, f"{what}: {calls}, expected {expected}\n{output[-1500:]}")


def gdb_full_chunk(test):
    """Returns fill a chunk while calls that it has are open: each is known from then on to be in an earlier one. An offset in the old one
    would be another event's as soon as the new chunk lies there."""
    if test.settings.bare_only:
        return
    looks = ["continue", "tracer-frames 3"] * 200
    output = test.runs(build.program_of("deep_turns"), "break turn_point", "run", *looks, words=FRAMES)
    looks = re.split(r"^thread \d+: ", output, flags=re.M)[1:]
    full = 0
    for known in looks:
        back = [int(words) for words in re.findall(r"its enter (-?\d+) words back", known)]
        full += known.count("in an earlier chunk")
        expect(back == sorted(back) and (not back or 0 < back[0] <= back[-1] <= 1 << 16), f"frames that are in no chunk\n{known}")
    expect(len(looks) >= 150 and full, f"{len(looks)} looks, {full} frames of a full chunk\n{output[-1500:]}")


FORKED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sum;
static volatile int status;
static pthread_t busy;
static void handler(int number) { for (int i = 0; i < 3000; i++) sum += strtol("7", NULL, 10); }
static void *work(void *unused) { for (;;) sum += strtol("12", NULL, 10); return unused; }
static void *interrupt(void *unused) { for (;;) { pthread_kill(busy, SIGUSR1); usleep(300); } return unused; }
__attribute__((noinline)) void checked(void) { __asm__ volatile("" ::: "memory"); }
int main(void) {
    pthread_t other;
    signal(SIGUSR1, handler);
    pthread_create(&busy, NULL, work, NULL);
    pthread_create(&other, NULL, interrupt, NULL);
    for (;;) {
        int now;
        pid_t child = fork();
        if (!child) _exit((int)strtol("3", NULL, 10));
        waitpid(child, &now, 0);
        status = now;
        checked();
    }
}
"""
# The busy thread is stopped where it keeps its full chunk, since a handler has interrupted a trampoline, and instructions later, while the first
# thread alone goes on and forks. Where the latter waits for a lock of the agent's that the former has, the former goes on first.
STOPS = """import os, re, signal, subprocess, threading
def run(*commands):
    for command in commands: gdb.execute(command)
run("handle all nostop noprint pass", "handle SIGINT stop nopass", "break checked", "run")
pid = gdb.selected_inferior().pid
base = next(line for line in open(f"/proc/{pid}/maps") if line.rstrip().endswith("/libtracer.so")).split()
names = subprocess.run(["nm", base[-1]], capture_output=True, text=True).stdout
keeps = int(next(line for line in names.splitlines() if "11keepPending" in line).split()[0], 16)
run("delete", f"break *{int(base[0].split('-')[0], 16) + keeps}", "continue")
stopped = gdb.selected_thread().num
run("finish", "delete", "break checked", "set scheduler-locking on")
for steps in (0, 3, 10, 30, 100, 300, 1000):
    run(f"thread {stopped}", *[f"stepi {steps}"] * (steps > 0), "thread 1")
    for _ in range(2):
        interruption = threading.Timer(10, os.kill, (pid, signal.SIGINT))
        interruption.start()
        run("continue")
        interruption.cancel()
        if gdb.selected_frame().name() != "checked": break
        print("ended with", int(gdb.parse_and_eval("status")), "after", steps)
run("kill")
"""


def gdb_forks_while_a_chunk_is_given_up(test):
    """A forked child finds the memory of another thread as it was in that moment, in the midst of what it did."""
    if test.settings.bare_only:
        return
    program = test.compile("forked", "-O1", "-g", "-pthread", source=FORKED, compiler=build.DRIVERS["gcc"][".c"])
    output = test.runs(program, "set environment TRACER_CHILDREN=off", f"source {test.write('stops.py', STOPS)}")
    ends = re.findall(r"^ended with (\d+) after (\d+)", output, re.M)
    expect(len(ends) >= 8 and {end for end, _ in ends} == {str(3 << 8)}, f"{ends}\n{output[-1500:]}")


def gdb_attach_again_and_again(test):
    """Four threads run; gdb attaches and detaches twenty times, or until it has found a recorded call: whole stacks each time, and nothing
    lost."""
    program = build.program_of("attached_threads")
    with test.waiting(program, b"running\n", b"went on\n", TRACER_MODE="ring", TRACER_MAXSIZE="8M") as running:
        once = ex(f"attach {running.pid}", "thread apply all bt", "detach", "echo END\\n")
        output, sessions = "", 0
        while sessions < 10 and "tireless_outer" not in output:  # a stop finds the threads anywhere
            output += test.gdb(*once * 20)
            sessions += 1
    looks = output.split("END\n")[:-1]
    expect(len(looks) == 20 * sessions, f"{len(looks)} looks\n{output[-1500:]}")
    inside = 0
    for look in looks:
        stacks = re.split(r"^Thread \d+ ", look, flags=re.M)[1:]
        # Each of the four may have a task that opens the trace for it.
        expect(5 <= len(stacks) <= 9, f"{len(stacks)} threads\n{look[-1500:]}")
        for stack in stacks:
            frames = [frame.split("@")[0] for frame in frames_of(stack)]
            if re.search(r"^#\d+ .*(\btracer_s\w+|\btracer_run_apart|\$e\w+) \(", stack, re.M):
                continue  # in the agent's own slow path, which has no unwind tables: docs/reference/compatibility.md
            inside += "tireless_outer" in frames
            expect(("main" in frames or "work" in frames) and "corrupt" not in stack and "previous frame" not in stack,
                   f"a stack that is not whole:\n{stack}")
            ours = [frame for frame in frames if frame in ("middle", "tireless_outer", "work")]
            expect("middle" not in ours or ours == ["middle", "tireless_outer", "work"], f"frames are missing:\n{stack}")
    expect(inside, "no look found a thread inside a traced call")


def tests():
    return [
        Program("bash_subshells_and_pipes", ["bash", "-c", BASH], status=3),
        Program("python3", ["/usr/bin/python3", "main.py"], {"main.py": PYTHON}, status=9),
        Program("python3_exception", ["/usr/bin/python3", "-c", "import nothing_of_this_name"], status=1),
        # These copy their stacks away and back.
        Program("python3_greenlet", ["/usr/bin/python3", "main.py"], {"main.py": GREENLET}, python_module="greenlet"),
        Program("python3_gevent", ["/usr/bin/python3", "main.py"], {"main.py": GEVENT}, python_module="gevent"),
        RubyExtension("ruby_extension_under_gc_stress", ["ruby"], timeout=300),
        shell("git", GIT),
        Program("perl", ["perl", "main.pl"], {"main.pl": PERL}, status=5),
        Program("gcc", ["gcc", "-O2", "-g", "main.c", "-o", "program"], {"main.c": C_SOURCE}, results=("program",)),
        Program("gxx", ["sh", "-c", "g++ -O1 -std=c++17 main.cpp -o program && ./program"], {"main.cpp": CPP},
                results=("program",)),
        Program("gcc_error", ["gcc", "-c", "main.c"], {"main.c": "int main( { return 0; }\n"}, status=1),
        Program("clang", ["clang", "-O2", "-c", "main.c", "-o", "main.o"], {"main.c": C_SOURCE}, results=("main.o",)),
        Program("openssl_version", ["openssl", "version", "-a"]),
        # openssl stops each measurement with SIGALRM by default.
        Program("openssl_speed", ["openssl", "speed", "-seconds", "1", "-bytes", "1024", "sha256"], normalise=without_figures),
        shell("openssl_use", "openssl enc -aes-256-cbc -pbkdf2 -k x -S 0011223344556677 -in main.c | openssl dgst -sha256; "
              "openssl genrsa 1024 2>/dev/null | openssl rsa -check -noout", files={"main.c": C_SOURCE * 100}),
        Program("ssh", ["ssh", "-V"]),
        shell("ssh_keygen", "ssh-keygen -q -t ed25519 -N '' -C c -f key && ssh-keygen -y -f key | cmp - key.pub", least_calls=20),
        Program("gdb_version", ["gdb", "--version"]),
        Program("node", ["node", "main.js"], {"main.js": NODE}, status=6, memory=0),
        Program("java", ["java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "Main.java"], {"Main.java": JAVA}, status=8, memory=0),
        Program("swiftc_version", ["swiftc", "--version"], memory=0),
        shell("tar_gzip", "seq 1 20000 > numbers; mkdir d; cp numbers d/a; cp numbers d/b; tar --mtime=@0 --sort=name -czf all.tgz d; "
              "tar -tzf all.tgz; mkdir x; tar -C x -xzf all.tgz; cmp x/d/a numbers && gzip -dc all.tgz | cksum"),
        shell("sort", "seq 1 50000 | sort -R --random-source=/dev/zero | sort -n --parallel=2 -S 1M | cksum"),
        shell("text_tools", "seq 1 3000 | awk '{s+=$1; print $1%7, s}' | sort -k1,1n -k2,2nr | sed -n '1~100p' | grep -c 1; "
              "find /etc -maxdepth 1 -name '*.conf' | sort | xargs -n 2 basename -a | md5sum; od -c /etc/passwd | head -2"),
        Program("make", ["make", "-j2", "-s"], {"Makefile": MAKE}, results=("all.txt",)),
        Program("sqlite3", ["sqlite3", "base.db", "create table t(a);insert into t values(1),(2);select sum(a) from t;"]),
        Program("vim", ["vim", "-u", "NONE", "-es", "-c", "%s/a/b/g", "-c", "wq", "text"], {"text": "banana\n" * 50},
                results=("text",)),
        Program("dash", ["dash", "-c", "i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; echo $i | cat; exit 2"], status=2),
        # The account of allocations names who makes them.
        shell("mtrace", "gcc -O1 -no-pie main.c -o main && MALLOC_TRACE=log LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}libc_malloc_debug.so.0 ./main && "
              "grep -c 'main:.*+ 0x' log && sed 's/ 0x[0-9a-f]*//' log", files={"main.c": ALLOCATES}),
        Program("env", ["env", "-i", "true"], least_calls=5),
        Program("timeout", ["timeout", "-s", "INT", "1", "sleep", "30"], status=124, least_calls=20),
        # xz since 5.6 confines itself by Landlock when it reads and writes nothing but its standard streams.
        Program("xz", ["sh", "-c", "seq 1 5000 | xz -T2 -c | xz -dc | cksum"], confines=2),
        Program("curl", ["curl", "-s", "file:///etc/passwd"]),
        # PAM's modules are opened by libpam; root needs no password, and su is not setuid to root itself.
        Program("su_through_pam", ["sh", "-c", "[ $(id -u) = 0 ] || exec echo only root may; su -s /bin/sh nobody -c 'id -un'"],
                least_calls=20),
        Program("strace", ["sh", "-c", "strace -f -o log seq 1 3; grep -c exited log"]),
        # Not -q: valgrind warns about stacks that appear from nowhere, such as that of the agent's slow path.
        Program("valgrind_stacks", ["valgrind", "--leak-check=no", "sort", "/etc/passwd"],
                memory=0, least_calls=5, normalise=lambda data: re.sub(rb"==\d+==", b"", data)),
        Program("valgrind", ["valgrind", "-q", "--error-exitcode=1", "seq", "1", "3"], memory=0, least_calls=5),
        *suite.tests_of(__name__, Gdb),
    ]
