"""What is not recorded is said: programs that a run executes without the agent, each with its reason, in `record`'s summary, `info` and
`report`; and nothing is said of what is recorded, or not known. --keep-agent gives programs the agent back, and changes nothing else."""
import os
import shutil
import subprocess
import sys
import time

import build
import harness
import suite
import tracefile
from harness import Skipped, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports, refusing  # noqa: E402

CALLS = 100
PROGRAM = f"#include <unistd.h>\nint main(void) {{ for (int n = 0; n < {CALLS}; n++) getppid(); return 0; }}\n"
# Waits for the end of its input. With an argument its name has changed, as that of a server whose title is its state.
WAITS = """#include <stdio.h>
#include <sys/prctl.h>
int main(int count, char **words) { if (count > 1) prctl(PR_SET_NAME, words[1]); puts("ready"); fflush(stdout); return getchar() != EOF; }
"""
GO = "package main\nfunc main() {}\n"


class Unrecorded(suite.Test):
    def record(self, *words, run="run", status=0):
        """What the summary says."""
        return self.tool("record", "--force", "-o", self.trace(run), *words, status=status).stderr

    def expect_found(self, said, wanted, run="run"):
        """Each reason with the names and counts of its programs: in the summary, in every reader, and to the independent decoder."""
        text = ", ".join(f"{reason} ({names})" for reason, names in wanted.items())
        lines = [line.removeprefix("tracer: ") for line in said.splitlines() if "not recorded" in line]
        if not wanted:
            expect(not lines, lines)
        else:
            expect(len(lines) == 1 and lines[0].endswith("not recorded: " + text), f"{lines}, expected {text}")
        path = self.trace(run)
        info, report = self.json("info", path), self.json("report", path)
        rows = info["unrecorded"]
        expect(report["unrecorded"] == rows, f"{report['unrecorded']}, info: {rows}")
        total = sum(row["processes"] for row in rows)
        said_of = [self.tool(*words).stdout for words in (("report", path, "--by", "process"), ("report", path), ("info", path))]
        if wanted:
            expect(lines[0] == f"{total} process{'es' if total > 1 else ''} not recorded: {text}", lines)
            expect(lines[0] in said_of[0].splitlines(), said_of[0])
            expect(lines[0].split(":")[0] in said_of[1].splitlines()[0], said_of[1].splitlines()[0])
            expect(f"{total}: {text}" in said_of[2], said_of[2])
        else:
            expect(not any("not recorded" in one for one in said_of) and not rows, f"{rows}: {said_of}")
        decoded = [one for trace in decoded_traces(path) for one in trace.unrecorded]
        expect(sorted((one.pid, one.path, one.count) for one in decoded) == sorted((row["pid"], row["program"], row["processes"]) for row in rows),
               f"{decoded}, the tool: {rows}")
        expect(len({one.holder for one in decoded}) <= 1, "several traces have them")
        return rows

    def programs(self):
        """Programs by the reason why a shell that is recorded cannot have them recorded."""
        made = {"static": self.compile("h-static", "-O1", "-static", source=PROGRAM)}
        if shutil.which("go"):
            source = self.write("empty.go", GO)
            done = subprocess.run(["go", "build", "-o", self.path("h-go"), source], env={**self.environment(), "CGO_ENABLED": "0", "HOME": self.made},
                                  capture_output=True, timeout=harness.HANGS)
            if not done.returncode:
                made["static (Go)"] = self.path("h-go")
        return made

    def loader(self, name):
        """The loader by another name, which is what makes another loader of it."""
        with open("/bin/true", "rb") as file:
            data = file.read()
        start = data.index(b"/ld-linux-")
        start = data.rindex(b"\0", 0, start) + 1
        return shutil.copy(data[start:data.index(b"\0", start)].decode(), self.path(name))


def decoded_traces(path):
    """The traces of a run, which may be a file, by the decoder that shares no code with the tool."""
    return tracefile.read_all(path) if os.path.isdir(path) else [tracefile.Trace(path)]


def needs_kernel():
    if not kernel_reports():
        raise Skipped("the kernel does not report here what processes do")


def a_program_that_cannot_load_the_agent(test):
    needs_kernel()
    made = test.programs()
    words = "; ".join([*made.values(), made["static"]])
    said = test.record("sh", "-c", words + "; :")
    rows = test.expect_found(said, {reason: os.path.basename(path) + (" ×2" if reason == "static" else "") for reason, path in made.items()})
    expect([row["program"] for row in rows] == [*made.values(), made["static"]], rows)
    shell, = test.json("report", test.trace("run"))["processes"]
    expect({row["ppid"] for row in rows} == {shell["pid"]} and shell["pid"] not in {row["pid"] for row in rows}, rows)


def another_loader(test):
    """Its path alone makes it one, so it would load the agent: env takes that away."""
    needs_kernel()
    made = {reason: test.compile(name, "-O1", f"-Wl,--dynamic-linker={test.loader(loader)}", source=PROGRAM)
            for reason, name, loader in (("musl", "h-musl", "ld-musl-x86_64.so.1"), ("another loader", "h-other", "linker64"))}
    said = test.record("sh", "-c", "; ".join(f"env -i {path}" for path in made.values()))
    test.expect_found(said, {reason: os.path.basename(path) for reason, path in made.items()})


def another_environment(test):
    needs_kernel()
    program = test.compile("p", "-O1", source=PROGRAM)
    for words in (("env", "LD_PRELOAD=libm.so.6", program), ("env", "-i", program), ("sh", "-c", f"LD_PRELOAD= exec {program}")):
        said = test.record(*words)
        rows = test.expect_found(said, {"another LD_PRELOAD or none": "p"})
        process, = test.json("report", test.trace("run"))["processes"]
        expect((process["ended"], process["pid"], process["status"]) == ("executed", rows[0]["pid"], 0), process)


def a_program_with_rights_of_its_own(test):
    needs_kernel()
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("only root can make a setuid program for somebody else, and setpriv runs it")
    program = test.compile("h-setuid", "-O1", source="#include <unistd.h>\nint main(void) { return geteuid() == getuid(); }\n")
    os.chown(program, 2, 2)
    os.chmod(program, 0o4755)
    nobody = ("setpriv", "--reuid", "65534", "--clear-groups")
    if subprocess.run([*nobody, program]).returncode:
        raise Skipped("programs are not setuid on this file system")
    for path, reason in ((os.environ["PATH"], "setuid or not readable"), (test.made + ":" + os.environ["PATH"], "setuid")):
        done = subprocess.run([*nobody, test.settings.tool, "record", "--force", "-o", test.trace("run"), "sh", "-c", program + "; :"],
                              env=test.environment(PATH=path), cwd=test.made, capture_output=True, text=True, timeout=harness.HANGS)
        if "kernel events" in done.stderr:
            raise Skipped("the kernel reports nothing to an ordinary user")
        expect(done.returncode == 0, done.stderr)
        test.expect_found(done.stderr, {reason: "h-setuid"})


def a_file_that_could_not_be_created(test):
    """The agent of a child that may not write to the run's directory."""
    needs_kernel()
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("only root can change to another user")
    program = test.compile("p", "-O1", source=PROGRAM)
    said = test.record("setpriv", "--reuid", "65534", "--clear-groups", program)
    test.expect_found(said, {"no trace file was created": "p"})


def nothing_is_said_of_what_is_recorded(test):
    script = "ls / >/dev/null; ls / | cat >/dev/null; exec /bin/sh -c 'true; exec /bin/true'"
    for options in ((), ("--no-states",)):
        said = test.record(*options, "sh", "-c", script)
        test.expect_found(said, {})
        said = test.record(*options, "/usr/bin/perl", "-e", "if (!fork) { my @x = stat('/'); exit 3 } wait; system('/bin/true; :')")
        test.expect_found(said, {})
    program = test.compile("h-static", "-O1", "-static", source=PROGRAM)
    test.expect_found(test.record("--no-children", "sh", "-c", program + "; :"), {})


def a_recorder_below_has_its_own(test):
    needs_kernel()
    inner = f"{test.settings.tool} record --quiet -o {test.trace('inner')} /bin/true; :"
    test.expect_found(test.record("sh", "-c", inner), {"trace elsewhere or removed": "true"})


def a_trace_that_the_program_removes_is_missed(test):
    needs_kernel()
    said = test.record("sh", "-c", f"/bin/true; rm {test.trace('run')}/true.*; :")
    test.expect_found(said, {"trace elsewhere or removed": "true"})


def without_the_kernel(test):
    """What lives until the recorder has looked at it is found; of what does not, nothing is said."""
    waiting, short = test.compile("h-waits", "-O1", "-static", source=WAITS), test.compile("h-short", "-O1", "-static", source=PROGRAM)
    dynamic = test.compile("waits", "-O1", source=WAITS)
    refuses = refusing(test.path("refusing"), "EACCES")
    for prefix, options in (((), ("--no-states",)), ((refuses,), ())):
        for words, wanted in ((f"{short}; {waiting} title", {"static": "h-waits"}), (f"exec env -i {dynamic}", {"another LD_PRELOAD or none": "waits"})):
            command = [*prefix, test.settings.tool, "record", "--force", "-o", test.trace("run"), *options, "sh", "-c", words]
            running = subprocess.Popen(command, cwd=test.made, env=test.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            expect(running.stdout.readline() == "ready\n", "the program did not start")
            wait_for_looks(running.pid)
            _, said = running.communicate(timeout=harness.HANGS)
            test.expect_found(said, wanted)


def wait_for_looks(recorder):
    """Returns when the recorder has woken often enough, with pauses as long as the longest between two of its looks at the processes
    (ProcessSurvey.swift): it wakes for other reasons, too, and looks then if a look is due."""
    def waits():
        with open(f"/proc/{recorder}/status", encoding="utf-8") as file:
            return int(next(line for line in file if line.startswith("voluntary_ctxt_switches")).split()[1])
    for _ in range(8):
        before, began = waits(), time.monotonic()
        while waits() < before + 2 or time.monotonic() < began + 0.1:
            os.sched_yield()


# Each of these executes the program with the words "NAME A=1 B=2" and this environment, in a child of fork or of vfork.
EXECUTES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *own[] = {"A=1", "B=2", 0};
static int by(const char *name, const char *path, char **words) {
    int pid, is_spawn = !strncmp(name, "posix", 5), file = open(path, O_RDONLY | O_CLOEXEC);
    if (is_spawn) {
        if (strcmp(name, "posix_spawn") ? posix_spawnp(&pid, path, 0, 0, words, own) : posix_spawn(&pid, path, 0, 0, words, own)) return 1;
        return waitpid(pid, 0, 0) != pid;
    }
    environ = own;
    if (!strcmp(name, "execve")) execve(path, words, own);
    if (!strcmp(name, "execv")) execv(path, words);
    if (!strcmp(name, "execvp")) execvp(path, words);
    if (!strcmp(name, "execvpe")) execvpe(path, words, own);
    if (!strcmp(name, "execl")) execl(path, words[0], "prints", (char *)0);
    if (!strcmp(name, "execlp")) execlp(path, words[0], "prints", (char *)0);
    if (!strcmp(name, "execle")) execle(path, words[0], "prints", (char *)0, own);
    if (!strcmp(name, "fexecve")) fexecve(file, words, own);
    if (!strcmp(name, "execveat")) execveat(AT_FDCWD, path, words, own, 0);
    return 1;
}
int main(int count, char **words) {
    if (count == 2) { // what is executed
        getppid();
        for (char **entry = environ; *entry; entry++)
            if (strncmp(*entry, "TRACER_", 7) && strncmp(*entry, "LD_PRELOAD=", 11)) printf("%s ", *entry);
        printf("%s\n", getenv("LD_PRELOAD") ? "with the agent" : "alone");
        return 0;
    }
    char *inner[] = {words[0], "prints", 0};
    for (int n = 2; n < count; n++) {
        printf("%s: ", words[n]);
        fflush(stdout);
        int status;
        if (!strncmp(words[n], "posix", 5)) {
            if (by(words[n], words[0], inner)) return 1;
            continue;
        }
        pid_t child = words[1][0] == 'v' ? vfork() : fork();
        if (!child) _exit(by(words[n], words[0], inner));
        if (waitpid(child, &status, 0) != child || status) return 2;
    }
    errno = 0;
    execl("/does/not/exist", "x", (char *)0);
    printf("%s\n", strerror(errno));
    return 0;
}
"""
FUNCTIONS = "execve execv execvp execvpe execl execlp execle fexecve execveat posix_spawn posix_spawnp".split()


def the_agent_is_kept(test):
    """A program has the environment that it was given, and no more; with --keep-agent it also has the agent, and is recorded."""
    try:
        program = test.compile("executes", "-O1", source=EXECUTES)
    except harness.Failed:
        program = test.compile("executes", "-O1", source=EXECUTES.replace('execveat(AT_FDCWD, path, words, own, 0)', 'execve(path, words, own)'))
    for way in "fork", "vfork":
        bare = subprocess.run([program, way, *FUNCTIONS], capture_output=True, text=True, timeout=harness.HANGS)
        lines = bare.stdout.splitlines()
        expect(bare.returncode == 0 and lines[0] == "execve: A=1 B=2 alone" and len(lines) == len(FUNCTIONS) + 1, bare)
        for options, is_kept in (((), False), (("--keep-agent",), True), (("--keep-agent", "--exclude", "exec*"), True),
                                 (("--keep-agent", "--functions", "*!*"), True)):
            done = test.tool("record", "--force", "-o", test.trace("run"), *options, program, way, *FUNCTIONS)
            wanted = bare.stdout.replace("alone", "with the agent") if is_kept else bare.stdout
            expect(done.stdout == wanted, harness.difference("stdout", wanted.encode(), done.stdout.encode()))
            inner = [trace for trace in decoded_traces(test.trace("run")) if trace.text(2).split(b"\0")[1:2] == [b"prints"]]
            counts = [trace.count("getppid") for trace in inner]
            expect(len(counts) == (len(FUNCTIONS) if is_kept else 0) and set(counts) <= {1}, f"{options}, {way}: {counts}")
            if not is_kept and kernel_reports():
                test.expect_found(done.stderr, {"another LD_PRELOAD or none": f"executes ×{len(FUNCTIONS)}"})


def another_preload_stays_with_the_agent_before_it(test):
    library = test.compile("mine.so", "-shared", "-fPIC", source="#include <stdio.h>\n__attribute__((constructor)) static void begin(void) "
                           "{ puts(\"mine\"); fflush(stdout); }\n")
    program = test.compile("p", "-O1", source="#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv(\"LD_PRELOAD\")); return 0; }\n")
    done = test.tool("record", "--keep-agent", "-o", test.trace("run"), "env", f"LD_PRELOAD={library}", program)
    first, second = done.stdout.splitlines()
    expect(first == "mine" and second.endswith("/libtracer.so:" + library), done.stdout)
    test.expect_found(done.stderr, {})


def tests():
    return suite.tests_of(__name__, Unrecorded)
