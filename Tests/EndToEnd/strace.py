"""What `tracer replay` and `tracer files` say of real programs, against strace, which watches the same run.

strace runs the tool, which runs the program: so both see the same calls, with the same addresses, ports and timing. strace also sees what
libc and the loader do by themselves, and the agent's own calls.
"""
import codecs
import collections
import contextlib
import glob
import http.server
import json
import os
import pwd
import re
import shutil
import socket
import subprocess
import threading

import build
import suite
from harness import HANGS, Skipped, expect

# Functions of libc and the system call that each makes, and which parameter is which argument. `?` is not compared, and neither is what `…`
# stands for. `->`: the result is not the system call's, and only errno is compared.
FUNCTIONS = r"""
openat|openat64: openat(directory, path, flags, mode)
open|open64: openat(AT_FDCWD, path, flags, mode)
creat: creat(path, mode)
fopen|fopen64: openat(AT_FDCWD, path, …) ->
opendir: openat(AT_FDCWD, path, …) ->
read|__read: read(descriptor, buffer, count)
write|__write: write(descriptor, buffer, count)
pread|pread64: pread64(descriptor, buffer, count, offset)
pwrite|pwrite64: pwrite64(descriptor, buffer, count, offset)
readv: readv(descriptor, vector, count)
writev: writev(descriptor, vector, count)
close: close(descriptor)
lseek|lseek64: lseek(descriptor, offset, whence)
ftruncate|ftruncate64: ftruncate(descriptor, length)
fsync: fsync(descriptor)
dup: dup(descriptor)
dup2: dup2(descriptor, new)
pipe2: pipe2(descriptors, flags)
fcntl|fcntl64: fcntl(descriptor, command, argument)
ioctl: ioctl(descriptor, request, argument)
stat|stat64: newfstatat(AT_FDCWD, path, status, 0)
lstat|lstat64: newfstatat(AT_FDCWD, path, status, 0x100)
fstat|fstat64: newfstatat(descriptor, ?, status, …)
fstatat|fstatat64: newfstatat(directory, path, status, flags)
access: access(path, mode)
readlink: readlink(path, buffer, size)
getcwd: getcwd(buffer, size) ->
mkdir: mkdir(path, mode)
rmdir: rmdir(path)
chdir: chdir(path)
unlink: unlink(path)
rename: rename(old, new)
link: link(target, path)
chmod: chmod(path, mode)
umask: umask(mask)
socket: socket(domain, type, protocol)
socketpair: socketpair(domain, type, protocol, descriptors)
connect: connect(descriptor, address, length)
bind: bind(descriptor, address, length)
listen: listen(descriptor, backlog)
accept: accept(descriptor, address, length)
shutdown: shutdown(descriptor, how)
send: sendto(descriptor, buffer, count, flags, NULL, 0)
recv: recvfrom(descriptor, buffer, count, flags, NULL, NULL)
sendto: sendto(descriptor, buffer, count, flags, address, length)
recvfrom: recvfrom(descriptor, buffer, count, flags, address, length)
getsockopt: getsockopt(descriptor, level, option, value, length)
setsockopt: setsockopt(descriptor, level, option, value, length)
getsockname: getsockname(descriptor, address, length)
getpeername: getpeername(descriptor, address, length)
poll: poll(descriptors, count, timeout)
mmap|mmap64: mmap(address, length, protection, flags, descriptor, offset)
munmap: munmap(address, length)
mprotect: mprotect(address, length, protection)
kill: kill(pid, signal)
"""


def parse_functions():
    found = {}
    for line in FUNCTIONS.split("\n"):
        match = re.fullmatch(r"(\S+): (\w+)\((.*)\)( ->)?", line)
        if match:
            for name in match[1].split("|"):
                found[name] = match[2], match[3].split(", "), not match[4]
    return found


BY_NAME = parse_functions()
# As strace -y -X verbose prints it: numbers with their names in comments, descriptors with what they are open on.
SAID = re.compile(r"(\w+)\((.*)\) += (0x[0-9a-f]+|-?\d+)(.*)$")
Call = collections.namedtuple("Call", "name arguments result errno of")


def parts(text):
    """Arguments, split at commas that lie in nothing."""
    found, depth, begin = [], 0, 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|<[^<>]*>|[\[{(]|[\]})]|,', text):
        if match[0] in "[{(":
            depth += 1
        elif match[0] in "]})":
            depth -= 1
        elif match[0] == "," and depth == 0:
            found.append(text[begin:match.start()].strip())
            begin = match.end()
    return found + [text[begin:].strip()] if text[begin:].strip() else found


def strace_calls(path):
    found = []
    for line in suite.read(path).splitlines():
        match = SAID.match(line)
        if match:
            errno = re.match(r" (E[A-Z0-9]+) \(", match[4])
            of = re.match(r"<(.*)>", match[4])
            found.append(Call(match[1], parts(match[2]), int(match[3], 0), errno and errno[1], of and of[1]))
    return found


def plain(token):
    """Without what a descriptor is open on."""
    return token if token.startswith('"') else re.sub(r"(?<=[\d/])<[^<>]*>", "", token)


def number(token):
    """None where it is none. A leading 0 is octal; flags that strace splits are put together."""
    total = 0
    for part in re.sub(r"/\*.*?\*/", "", plain(token)).replace(" ", "").split("|"):
        match = re.fullmatch(r"(-?)(0x[0-9a-f]+|0[0-7]*|[1-9]\d*)", part)
        if not match:
            return 0 if part == "NULL" else None
        value = int(match[2], 16) if match[2].startswith("0x") else int(match[2], 8) if match[2].startswith("0") else int(match[2])
        total |= -value if match[1] else value
    return total


def names(token):
    """Names of flags or of a value, and numbers without a name."""
    found = []
    for part in re.findall(r"(?:[^|/]|/(?!\*)|/\*.*?\*/)+", plain(token)):
        comment = re.search(r"/\* (.*?) \*/", part)
        found += (comment[1] if comment else part).strip().split("|")
    return set(found)


def text_of(token):
    return codecs.decode(token[1:token.rindex('"')].encode(), "unicode_escape").encode("latin-1").decode(errors="replace")


def same_value(value, token):
    if value is None:
        return number(token) == 0
    if isinstance(value, int):
        # What a descriptor or an option is may be a number without a sign to one of them.
        return number(token) is not None and number(token) % 2**32 == value % 2**32 if abs(value) < 2**32 else number(token) == value
    if isinstance(value, dict):
        simple = re.sub(r'"[^"]*" /\* (?:htons|inet_addr)\("?(.*?)"?\) \*/', r"\1", token)
        simple = re.sub(r"(?:0x)?[0-9a-f]+ /\* (.*?) \*/", r"\1", simple)
        wanted = {name: found.strip('"') for name, found in re.findall(r'(\w+)=("[^"]*"|[^,}]*)', simple)}
        return {name: str(part) for name, part in value.items()} == wanted
    is_address = value.startswith("0x")
    if token.startswith('"'):
        return is_address or value == text_of(token)
    if token.startswith(("[", "{")):
        return is_address
    return number(token) == int(value, 16) if is_address else set(value.split("|")) <= names(token) | {str(number(token))} and names(token) <= set(value.split("|")) | {"0"}


def open_on(token):
    """What strace says that a descriptor is open on; None: it says nothing."""
    match = re.match(r"\d+<(.*)>(?:\(deleted\))?$", token)
    return match and match[1]


def is_same(ours, theirs):
    """A call of `replay --json`, and one of strace."""
    name, positions, has_result = BY_NAME[ours["name"]]
    if theirs.name != name or ours.get("errno") != theirs.errno:
        return False
    if has_result and "result" in ours and not same_value(ours["result"], hex(theirs.result) if theirs.result >= 0 else str(theirs.result)):
        return False
    said = {name: text.removesuffix(" (deleted)") for name, text in ours.get("open_on", {}).items()}
    if theirs.of and said.get("result", theirs.of) != theirs.of:
        return False
    values = ours["arguments"]
    is_whole = positions[-1] != "…"
    wanted = [position for position in positions if position != "…" and (position in values or not re.fullmatch("[a-z_]+", position))]
    if len(theirs.arguments) < len(wanted) or is_whole and len(theirs.arguments) != len(wanted):
        # Older system calls and newer ones differ in arguments that are 0.
        return False
    for position, token in zip(wanted, theirs.arguments):
        if position == "?":
            continue
        if position in values:
            if not same_value(values[position], token) or open_on(token) and said.get(position, open_on(token)) != open_on(token):
                return False
        elif position not in names(token) and number(token) != (None if position == "AT_FDCWD" else 0 if position == "NULL" else int(position, 0)):
            return False
    return True


def uses(calls, cwd):
    """What strace has of each path: opens, failed opens and look-ups, bytes read and written."""
    files = collections.defaultdict(collections.Counter)
    for call in calls:
        strings = [text_of(token) for token in call.arguments if token.startswith('"')]
        path = os.path.normpath(os.path.join(cwd, strings[0])) if strings else ""
        if call.name in ("open", "openat", "creat"):
            files[path]["failed_opens" if call.errno else "opened"] += 1
        elif call.name in ("newfstatat", "stat", "lstat", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "statx") and strings and strings[0]:
            files[path]["failed_look_ups"] += call.errno is not None
        elif call.name in ("read", "pread64", "readv", "write", "pwrite64", "writev") and call.result > 0:
            of = re.match(r"\d+<(.*)>$", call.arguments[0])
            if of:
                files[of[1]]["read_bytes" if "read" in call.name else "written_bytes"] += call.result
    return files


class Comparison(suite.Test):
    def compare(self, *command, least, cwd=None, more=(), **variables):
        """Records and watches a program; fails unless all calls of libc's functions, and all files in our folder, are as strace has them.

        `least`: calls that the program makes at least. `more`: functions to record besides, whose bytes strace sees as writes.
        """
        suite.need("strace", command[0])
        if build.ARCHITECTURE != "x86_64":
            raise Skipped("system calls are those of x86_64")
        folder = cwd or self.path("work")
        environment = self.environment(PYTHONDONTWRITEBYTECODE="1", XDG_CACHE_HOME=self.path("cache"), HOME=folder, CURL_HOME=folder, LC_ALL="C", **variables)
        bare = subprocess.run(command, cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=HANGS)
        record = [self.settings.tool, "record", "--quiet", "--force", "--no-states", "--files", "--arguments", ",".join([*BY_NAME, *more]), "-o", self.trace(), "--"]
        watch = ["strace", "-ff", "-y", "-s", "600", "-X", "verbose", "-o", self.path("said")]
        done = subprocess.run([*watch, *record, *command], cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=HANGS)
        logs = {int(path.rsplit(".", 1)[1]): strace_calls(path) for path in glob.glob(self.path("said.*"))}
        if not logs or "ptrace" in done.stderr or "invalid option" in done.stderr:
            raise Skipped(f"strace does not work here: {done.stderr[-200:]}")
        expect((done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr), f"{done.returncode}: {done.stderr}, bare {bare.stderr}")
        count = self.compare_calls(logs, least)
        files = self.compare_files(logs, folder)
        return f"{count} calls and {len(files)} files as strace has them"

    def compare_calls(self, logs, least):
        ours = collections.defaultdict(list)
        for line in self.tool("replay", "--json", self.trace()).stdout.splitlines():
            call = json.loads(line)
            if call["name"] in BY_NAME and call.get("arguments") is not None and call["module"] == "libc.so.6":
                ours[call["tid"]].append(call)
        named = {True: [], False: []}
        count = sum(map(len, ours.values()))
        expect(count >= least, f"only {count} calls are recorded")
        for tid, calls in ours.items():
            # Each must be among theirs, in this order.
            rest = iter(logs[tid])
            for call in calls:
                other = next((other for other in rest if is_same(call, other)), None)
                expect(other, f"strace does not have {call} behind those before it, but "
                       f"{[other for other in logs[tid] if other.name == BY_NAME[call['name']][0]][:40]}")
                if "descriptor" in call["arguments"] and open_on(other.arguments[0]):
                    named["descriptor" in call.get("open_on", {})].append((call["name"], other.arguments[0]))
        expect(len(named[True]) >= 9 * len(named[False]), f"of {len(named[True])} descriptors it is known what they are open on, of others not: {named[False][:9]}")
        return count

    def compare_files(self, logs, folder):
        theirs = collections.defaultdict(collections.Counter)
        for calls in logs.values():
            for path, use in uses(calls, folder).items():
                theirs[path].update(use)
        ours = {row["path"]: row for row in self.json("files", self.trace())["files"] if row["path"].startswith(folder)}
        for path, row in ours.items():
            got = {"opened": row["opens"] - row["failed_opens"], "failed_opens": row["failed_opens"], "failed_look_ups": row["failed_look_ups"],
                   "read_bytes": row["read_bytes"], "written_bytes": row["written_bytes"]}
            if not row["reads"] + row["writes"]:  # mapped, or used by stdio, whose calls are inside libc
                del got["read_bytes"], got["written_bytes"]
            expect(all(theirs[path][key] == value for key, value in got.items()), f"{path}: {got}, by strace {dict(theirs[path])}")
        missing = [path for path, use in theirs.items() if path.startswith(folder) and path not in ours and use["opened"]]
        expect(ours and not missing, f"{len(ours)} files of {folder}; without {missing[:5]}")
        return ours

    def prepare(self):
        os.mkdir(self.path("work"))
        suite.write(self.path("work/file"), "some text\n" * 20)


def the_comparison_finds_what_differs(test):
    """One call after another, with one thing wrong."""
    lines = test.write("lines", "\n".join((
        'openat(-100 /* AT_FDCWD */</tmp>, "a, b", 0x241 /* O_WRONLY|O_CREAT|O_TRUNC */, 0644) = 3</tmp/a, b>',
        'connect(3<socket:[1]>, {sa_family=0x2 /* AF_INET */, sin_port="\\x00\\x50" /* htons(80) */, sin_addr="\\x7f\\x00\\x00\\x01" /* inet_addr("127.0.0.1") */}, 16)'
        " = -1 EINPROGRESS (Operation now in progress)",
        'recvfrom(3<socket:[1]>, "text", 100, 0, NULL, NULL) = 4')))
    seen = strace_calls(lines)
    calls = [
        {"name": "open", "arguments": {"path": "a, b", "flags": "O_WRONLY|O_CREAT|O_TRUNC", "mode": 0o644}, "result": 3, "open_on": {"result": "/tmp/a, b"}},
        {"name": "connect", "open_on": {"descriptor": "socket:[1]"}, "arguments": {"descriptor": 3, "address": {"sa_family": "AF_INET", "sin_port": 80, "sin_addr": "127.0.0.1"}, "length": 16}, "result": -1,
         "errno": "EINPROGRESS"},
        {"name": "recv", "arguments": {"descriptor": 3, "buffer": "0x10", "count": 100, "flags": "0"}, "result": 4}]
    wrong = {"path": "a", "flags": "O_WRONLY|O_CREAT", "mode": 0o600, "descriptor": 4, "address": {"sa_family": "AF_INET", "sin_port": 81, "sin_addr": "127.0.0.1"}, "length": 17,
             "buffer": None, "count": 99, "result": 5, "errno": "EAGAIN"}
    for call, other in zip(calls, seen):
        expect(is_same(call, other), f"{call} is not {other}")
        for name in [*call["arguments"], "result", "errno"]:
            changed = {**call, "arguments": dict(call["arguments"])}
            (changed if name in ("result", "errno") else changed["arguments"])[name] = wrong[name] if name != "flags" or call["name"] == "open" else "MSG_PEEK"
            expect(not is_same(changed, other), f"{changed} is {other}")
        for name in call.get("open_on", {}):
            expect(not is_same({**call, "open_on": {name: "another"}}, other), f"{name} is open on another")


def cat(test):
    return test.compare("cat", test.path("work/file"), "/nonexistent", "file", least=10)


def wc(test):
    return test.compare("wc", "file", least=3)


def python(test):
    return test.compare("/usr/bin/python3", "-I", "-S", "-c", "import os\nopen('file').read()\nopen('file', 'rb').read(7)\n"
                 "for path in ('missing', '/nonexistent/file'):\n try: open(path)\n except OSError: pass\n"
                 "with open('new', 'w') as f: f.write('x' * 30)\n"
                 f"os.chdir({test.path('work')!r}); open('new').read(); os.unlink('new'); os.mkdir('folder', 0o711); os.rmdir('folder')", least=40)


def git(test):
    suite.need("git")
    folder = test.path("work/repository")
    os.mkdir(folder)
    environment = test.environment(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a",
                                   GIT_COMMITTER_EMAIL="a@b")
    for name in ("one", "two", "three"):
        suite.write(os.path.join(folder, name), name * 100)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"], ["status"]):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)
    return test.compare("git", "status", cwd=folder, least=50)


class Pages(http.server.BaseHTTPRequestHandler):
    """A page of 300,000 bytes, and what is sent, back."""
    def answer(self, content):
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.answer(b"x" * 300_000)

    def do_PUT(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *words):
        pass


def curl(test):
    """curl writes with fwrite, and each of its calls is one of write's: it writes more than the stream's buffer holds."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{server.server_port}"
        measured = test.compare("curl", "-s", "-o", "page", f"{at}/page", "--next", "-s", "-T", "file", "-o", "answer", f"{at}/put", least=40, more=["fwrite"])
        server.shutdown()
    expect(len(suite.read(test.path("work/page"))) == 300_000 and suite.read(test.path("work/answer")) == suite.read(test.path("work/file")), "curl has what was sent")
    return measured


@contextlib.contextmanager
def postgresql(folder):
    """A server on a free port of 127.0.0.1 that trusts everybody. Returns the port and the folder of its programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found or not os.path.exists(f"{found[-1]}/initdb"):
        raise Skipped("PostgreSQL is not installed")
    as_owner = []
    if os.geteuid() == 0:
        suite.need("runuser")
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            raise Skipped("there is no user postgres") from None
        as_owner = ["runuser", "-u", "postgres", "--"]
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"cwd": folder, "stdin": subprocess.DEVNULL, "env": {**os.environ, "LC_ALL": "C"}}
    data = os.path.join(folder, "data")
    try:
        done = subprocess.run([*as_owner, f"{found[-1]}/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"], capture_output=True, text=True, timeout=HANGS, **settings)
        expect(done.returncode == 0, f"initdb: {done.stderr[-300:]}")
        control = [*as_owner, f"{found[-1]}/pg_ctl", "-D", data, "-w", "-t", str(HANGS), "-l", os.path.join(folder, "log")]
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off -c shared_buffers=16MB"
        done = subprocess.run([*control, "-o", options, "start"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2 * HANGS, **settings)
        expect(done.returncode == 0, f"the server did not start: {suite.read(os.path.join(folder, 'log'))[-500:] if os.path.exists(os.path.join(folder, 'log')) else ''}")
        try:
            yield port, found[-1]
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=2 * HANGS, **settings)
    finally:
        if as_owner:
            subprocess.run(["chown", "-R", "root", folder], check=False)
        shutil.rmtree(data, ignore_errors=True)


def psql(test):
    """A script, its output, and a file that libpq itself reads and writes."""
    os.mkdir(test.path("server"))
    for path in (test.directory.path, test.made, test.path("server")):
        os.chmod(path, 0o755)
    with postgresql(test.path("server")) as (port, programs):
        if not os.path.exists(f"{programs}/psql"):
            raise Skipped("psql is not installed")
        suite.write(test.path("work/script"), "select 1, 'two';\n\\lo_import file\n\\lo_export :LASTOID copy\n\\lo_unlink :LASTOID\nselect nothing;\n")
        measured = test.compare(f"{programs}/psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-f", "script", "-o", "out", "postgres", least=60,
                     PGPASSFILE=test.path("work/pass"), PGSERVICEFILE=test.path("work/service"), PGSYSCONFDIR=test.path("work"))
        files = {os.path.basename(row["path"]): row for row in test.json("files", test.trace())["files"]}
        got = {name: (files[name]["read_bytes"], files[name]["written_bytes"]) for name in ("file", "copy")}
        expect(got == {"file": (200, 0), "copy": (0, 200)}, f"what libpq reads and writes: {got}")
    expect(suite.read(test.path("work/copy")) == suite.read(test.path("work/file")), "the copy is the file")
    return measured


MODES = {"slots": "*"}


def tests():
    return suite.tests_of(__name__, Comparison)
