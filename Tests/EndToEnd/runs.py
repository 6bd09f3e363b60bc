"""`tracer record` leaves one thing: a file for one process, a directory for several, which every command reads as one, also while it
grows and whichever process is killed."""
import json
import os
import select
import shutil
import signal
import subprocess

import harness
import suite
import tracefile
from harness import Failed, Skipped, expect
from suite import read, write

# Says "ready" when it, or what it has become, is recorded; ends when its standard input does.
WAITS = ["/bin/sh", "-c", "echo ready; read line; exit 7"]


class Runs(suite.Test):
    def tool(self, *words, **options):
        return super().tool(*words, cwd=self.traces, **options)

    def record(self, *words, status=0):
        return self.tool("record", *words, status=status)

    def there(self):
        return sorted(os.listdir(self.traces))

    def only(self, ending=""):
        names = self.there()
        expect(len(names) == 1 and names[0].endswith(ending), f"not one thing: {names}")
        return names[0]

    def decoded(self, name):
        """Calls, by the decoder that shares no code with the tool."""
        return sum(sum(t.counts_by_name_and_module().values()) for t in tracefile.read_all(self.trace(name)))

    def start(self, *command):
        """`tracer record` of something that waits, which is recorded by now."""
        running = subprocess.Popen([self.settings.tool, "record", *command], cwd=self.traces, env=self.environment(),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if running.stdout.readline() != b"ready\n":
            raise Failed(f"not ready: {running.stderr.read()[-300:]}")
        return running


# The first process of a pid namespace: its number, 1, is there that of another one. Killed, or left behind, when it is recorded.
FIRST_OF_A_NAMESPACE = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    int ready[2];
    char byte;
    if ((unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID)) || pipe(ready)) return 77;
    pid_t child = fork();
    if (child == 0) {
        if (rand() == getppid()) puts("");
        write(ready[1], "r", 1);
        close(ready[1]);
        for (int n = 0; n < 3; n++) close(n);
        for (;;) pause();
    }
    close(ready[1]);
    if (child < 0 || read(ready[0], &byte, 1) != 1) return 77;
    if (!strcmp(words[1], "kill")) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    printf("%d\n", child);
    return 0;
}
"""


def a_process_of_a_pid_namespace_is_looked_for_there(test):
    """A process here that has the same number does not decide whether its file is still being written."""
    program = test.compile("first", source=FIRST_OF_A_NAMESPACE)
    if subprocess.run([program, "kill"], capture_output=True).returncode == 77:
        raise Skipped("no pid namespace of our own to be had")
    done = test.record("-o", "killed", "--", program, "kill")
    expect("still being written" not in done.stderr, f"a process that was killed: {done.stderr}")
    info = test.json("info", "killed")
    expect([p["ended"] for p in info["processes"]][1:] != ["running"], f"{info['processes']}")
    done = test.record("-o", "left", "--", program, "leave")
    try:
        expect("1 still being written" in done.stderr, f"a process that lives: {done.stderr}")
        expect([p["ended"] for p in test.json("info", "left")["processes"]][1:] == ["running"], "info does not find it")
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


# Three children that call themselves something: in their arguments, as PostgreSQL, nginx and sshd do, or by prctl.
TITLED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    char *end = words[count - 1] + strlen(words[count - 1]);
    for (int child = 0; child < 3; child++) {
        if (fork() == 0) {
            if (child < 2) {
                memset(words[0], 0, end - words[0]);
                snprintf(words[0], end - words[0], "boss: worker %d", child);
            } else {
                prctl(PR_SET_NAME, "painter");
            }
            return rand() == getppid();
        }
        wait(NULL);
    }
    return 0;
}
"""


def processes_have_the_names_that_they_give_themselves(test):
    program = test.compile("titled", source=TITLED)
    os.symlink(program, test.path("boss"))
    test.record("-o", "run", "--", test.path("boss"), "an argument that leaves space for a title")
    os.unlink(test.path("boss"))  # a trace may be read where there is no such link
    processes = test.json("report", "run")["processes"]
    expect([p["name"] for p in processes] == ["boss", "boss: worker 0", "boss: worker 1", "painter"], f"{processes}")
    expect([p["title"] for p in processes] == [None, "boss: worker 0", "boss: worker 1", None], f"{processes}")
    table = test.tool("report", "run", "--by", "process").stdout
    expect("boss: worker 0" in table and "boss: worker 1" in table, table)
    expect(test.json("report", "run", "--process", "painter")["processes"][0]["name"] == "painter", "it cannot be chosen")
    tree = test.tool("tree", "run").stdout
    expect("boss: worker 1 (pid" in tree and "painter (pid" in tree and "titled (pid" not in tree, tree)


def one_process_leaves_one_file(test):
    test.record("/bin/true")
    name = test.only(".trace")
    expect(name.startswith("tracer.true.") and os.path.isfile(test.trace(name)), name)
    report = test.json("report", name)
    expect([p["status"] for p in report["processes"]] == [0], report["processes"])
    expect(os.stat(test.trace(name)).st_blocks * 512 <= 64 << 10, "a short process takes more than 64 KB")


def what_make_starts_is_one_directory_with_all_its_calls(test):
    makefile = test.write("Makefile", "all: $(addprefix t,1 2 3 4 5 6 7 8)\nt%:\n\t@ls / | cat >/dev/null\n")
    test.record("make", "-s", "-j2", "-f", makefile)
    name = test.only()
    expect(name.startswith("tracer.make."), name)
    report, info = test.json("report", name), test.json("info", name)
    expect(report["calls"] == test.decoded(name), f"{report['calls']} calls, the files have {test.decoded(name)}")
    expect(report["calls"] == sum(p["calls"] for p in report["processes"]) == info["calls"], "the processes' calls are not the run's")
    expect(sum(f["calls"] for f in report["functions"]) == report["calls"], "the functions' calls are not the run's")
    programs = [os.path.basename(p["program"]) for p in report["processes"]]
    expect(programs.count("ls") == 8 and programs.count("cat") == 8 and programs[0] == "make", programs)
    root = report["processes"][0]
    expect(root["status"] == 0 and str(root["pid"]) == name.split(".")[-1], root)
    pids = {p["pid"] for p in report["processes"]}
    expect(all(p["ppid"] in pids for p in report["processes"][1:]), "a process without its parent")
    expect(all(set(p) >= {"pid", "ppid", "program", "calls", "duration_ns", "status"} for p in report["processes"]), "a member is missing")
    chosen = test.json("report", name, "--process", "l[s]")
    expect(len(chosen["processes"]) == 8 and 0 < chosen["calls"] < report["calls"], chosen["processes"])
    by_process = test.tool("report", name, "--by", "process").stdout
    _, _, table = by_process.partition("\n\n")  # below the headline, and what a busy machine adds to it
    expect(len(table.splitlines()) == 1 + len(report["processes"]), by_process)
    test.tool("report", name, "--process", "nobody", status=1)


def every_reader_takes_a_run(test):
    test.record("/bin/sh", "-c", "ls / | cat >/dev/null; ls / >/dev/null")
    name = test.only()
    calls = test.json("report", name)["calls"]
    tree = test.json("tree", name, "--by", "run")
    expect(sum(root["calls"] for root in tree["roots"]) == calls, "the tree's calls")
    expect(len(test.json("tree", name)["processes"]) >= 4, "the tree's processes")
    for form in ("perfetto", "chrome", "speedscope", "folded", "pprof", "callgrind", "csv"):
        test.tool("export", name, "--format", form, "-o", test.path("out." + form))
        expect(os.path.getsize(test.path("out." + form)) > 100, form)
    events = json.loads(read(test.path("out.chrome")))["traceEvents"]
    expect(len({e["pid"] for e in events}) == len(test.json("report", name)["processes"]), "a process track for each")
    rows = [line.split(",") for line in read(test.path("out.csv")).split("\n")[:-1]]
    expect(sum(row[8] in ("returned", "open", "unwound", "entered", "lost") for row in rows) >= calls, "rows of the table")
    test.tool("view", name, "-o", test.path("page.html"))
    expect("4 processes" in read(test.path("page.html")), "the page")
    expect("no function differs" in test.tool("diff", name, name).stdout, "a run differs from itself")
    test.tool("callers", name, "malloc")
    for reader in ("replay", "libs", "startup", "dump"):
        test.tool(reader, name)
        expect("--process" not in test.tool(reader, name, "--process", "cat").stderr, f"{reader} of one process")
        expect("; there is cat: tracer info " in test.tool(reader, name, "--process", "cta", status=1).stderr, f"{reader} suggests a process")
    expect(0 < test.json("report", name, "--thread", "main")["calls"] <= calls, "calls of main threads")
    test.tool("view", name, "--thread", "main", "--process", "cat", "-o", test.path("cat.html"))
    test.tool("export", name, "--thread", "main", "--process", "cat", "--format", "perfetto", "-o", test.path("cat.perfetto"))
    test.tool("diff", name, name, "--thread", "main", "--process", "cat")
    expect("no thread \"nobody\" in " in test.tool("samples", name, "--thread", "nobody", status=1).stderr, "a thread that is not there")
    # The newest of the directory, and the directory itself.
    expect(test.json("report")["calls"] == calls == test.json("report", ".")["calls"], "not found by itself")


def programs_of_one_process_are_one(test):
    test.record("/bin/sh", "-c", "exec /bin/sh -c 'exec ls / >/dev/null'")
    processes = test.json("report", test.only())["processes"]
    expect(len(processes) == 1 and len(processes[0]["images"]) == 3, processes)
    expect(os.path.basename(processes[0]["program"]) == "ls" and processes[0]["status"] == 0, processes)


def every_program_of_one_process_has_a_trace(test):
    """One name and one process id: as many traces as programs, in the order of their numbers."""
    count = 40
    program = test.compile("again", "-O1", source="#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(int c, char **v) { char t[16]; "
                           "int n = atoi(v[1]); snprintf(t, 16, \"%d\", n - 1); if (n > 0) execl(v[0], v[0], t, (char *)0); return 7; }\n")
    said = test.record(program, str(count), status=7).stderr
    expect(len(said.splitlines()) == 2, said)
    name = test.only()
    process, = test.json("report", name)["processes"]
    expect(len(process["images"]) == count + 1 and process["status"] == 7, process)
    expect([image["command"].split()[-1] for image in process["images"]] == [str(n) for n in range(count, -1, -1)], process["images"])
    numbers = [image["file"].split(".")[-2] for image in process["images"]]
    expect(numbers == [str(process["pid"]), *map(str, range(2, count + 2))], numbers)


def a_name_without_the_process_keeps_all_traces_of_a_run(test):
    test.record("-o", test.trace("%e.trace"), "/bin/sh", "-c", "ls / >/dev/null; ls / >/dev/null; ls / >/dev/null")
    expect(len(test.json("report", ".")["processes"]) == 4, test.there())


def first_processes_of_namespaces_have_a_trace_each(test):
    """All are process 1, and begin at the same time."""
    count = 40
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*namespace, "/bin/true"], capture_output=True).returncode:
        raise Skipped("no permission to make a namespace of processes")
    program = test.compile("one", "-O1", source="#include <unistd.h>\nint main(void) { for (int n = 0; n < 10; n++) getppid(); return getpid() != 1; }\n")
    said = test.record("/bin/sh", "-c", " ".join([f"{' '.join(namespace)} {program} &"] * count) + " wait").stderr
    name = test.only()
    traces = [trace for trace in tracefile.read_all(test.trace(name)) if trace.program == "one"]
    expect(len(traces) == count and {trace.header["pid"] for trace in traces} == {1} and "not recorded" not in said, f"{len(traces)} traces: {said}")
    expect([trace.count("getppid") for trace in traces] == [10] * count, "calls are missing")


def a_forked_process_is_another_one(test):
    test.record("/usr/bin/perl", "-e", "if (!fork) { my @x = stat('/'); exit 3 } wait; exit($? >> 8)", status=3)
    processes = test.json("report", test.only())["processes"]
    expect([p["ppid"] for p in processes][1:] == [processes[0]["pid"]], processes)
    expect([p["status"] for p in processes] in ([3, 3], [3, None]), processes)  # the child's is known only if the kernel was asked in time


def a_run_is_read_while_it_grows(test):
    running = test.start("/bin/sh", "-c", "ls / >/dev/null; echo ready; read line; ls / >/dev/null")
    try:
        before = test.json("report", test.only())
        expect(before["processes"][0]["status"] is None and before["calls"] > 0, before["processes"])
    finally:
        running.communicate(b"\n", timeout=harness.HANGS)
    after = test.json("report", test.only())
    expect(after["calls"] > before["calls"] and after["processes"][0]["status"] == 0, after["processes"])


def the_name_of_a_run_stays_good_when_it_becomes_a_file(test):
    running = test.start(*WAITS)
    name = test.only()
    test.tool("report", name)
    running.communicate(b"\n", timeout=harness.HANGS)
    expect(test.only() == name + ".trace", test.there())
    test.tool("report", name)


def a_killed_process_leaves_what_it_had(test):
    test.record("/bin/sh", "-c", "ls / >/dev/null; kill -9 $$", status=137)
    report = test.json("report", test.only())
    expect([p["status"] for p in report["processes"]] in ([137, 0], [137, None]), report["processes"])
    expect(report["calls"] == test.decoded(test.only()), "calls are missing")


def a_killed_recorder_leaves_a_run_that_can_be_read(test):
    running = test.start("/bin/sh", "-c", "ls / >/dev/null; echo ready; read line; ls / >/dev/null; exit 7")
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    name = test.only()
    pid = int(name.split(".")[-1])
    handle = os.pidfd_open(pid)
    before = test.json("report", name)
    running.stdin.close()
    expect(select.select([handle], [], [], harness.HANGS)[0], "the program does not end")
    os.close(handle)
    after = test.json("report", name)
    expect(before["calls"] < after["calls"] == test.decoded(name), f"{before['calls']}, {after['calls']} calls")
    expect(after["processes"][0]["status"] is None, "nobody learned how it ended")


def a_process_that_lives_on_keeps_its_file_in_place(test):
    # The second program waits for the end of a FIFO that this test holds open.
    fifo = test.path("fifo")
    os.mkfifo(fifo)
    hold = os.open(fifo, os.O_RDWR)
    try:
        test.record("/bin/sh", "-c", f"cat {fifo} >/dev/null 2>&1 & exit 0")
        name = test.only()
        expect(os.path.isdir(test.trace(name)), "its directory is gone")
        expect("being recorded" in test.tool("clean", name, "--yes", status=1).stderr, "it can be removed")
    finally:
        os.close(hold)


def the_wanted_name_is_that_of_the_file_or_the_directory(test):
    test.record("-o", "mine", "/bin/true")
    expect(os.path.isfile(test.trace(test.only())) and test.only() == "mine", test.there())
    test.record("--force", "-o", "mine", "/bin/sh", "-c", "ls / >/dev/null; ls / >/dev/null")  # in the place of the former one
    expect(os.path.isdir(test.trace(test.only())) and test.only() == "mine", test.there())
    several = test.json("report", "mine")
    expect(len(several["processes"]) == 3, several["processes"])
    test.record("--force", "-o", "mine", "/bin/sh", "-c", "ls / >/dev/null; :")
    expect(len(test.json("report", "mine")["processes"]) == 2, "files of the former run are left")
    test.record("--force", "-o", "mine", "/bin/true")
    expect(os.path.isfile(test.trace(test.only())), test.there())


def a_directory_of_something_else_is_left_alone(test):
    os.mkdir(test.trace("kept"))
    write(test.trace("kept/text"), "important")
    said = test.record("-o", "kept", "/bin/true", status=2).stderr
    expect("is not a finished run" in said and os.listdir(test.trace("kept")) == ["text"], said)


def a_wanted_template_still_gives_each_process_a_file(test):
    test.record("-o", "%e.%p.trace", "/bin/sh", "-c", "ls / >/dev/null; ls / >/dev/null")
    expect(sum(n.startswith("ls.") for n in test.there()) == 2 and len(test.there()) >= 3, test.there())
    report = test.json("report", ".")
    expect(len(report["processes"]) == 3, report["processes"])


def a_program_may_leave_its_directory(test):
    test.record("/bin/sh", "-c", "cd /; ls >/dev/null; cd /tmp; ls >/dev/null")
    expect(len(test.json("report", test.only())["processes"]) == 3, test.there())


def a_recorder_in_a_recorded_program_has_a_run_of_its_own(test):
    test.record("/bin/sh", "-c", f"{test.settings.tool} record --quiet /bin/sh -c 'ls / >/dev/null; ls / >/dev/null'; :")
    expect(len(test.there()) == 2 and all(n.startswith("tracer.sh.") for n in test.there()), test.there())
    for name in test.there():
        sessions = {t.header["session"] for t in tracefile.read_all(test.trace(name))}
        expect(len(sessions) == 1, f"{name} has traces of {len(sessions)} runs")


def the_summary_counts_all_processes(test):
    said = test.record("/bin/sh", "-c", "ls / >/dev/null; ls / >/dev/null").stderr
    calls = test.json("report", test.only())["calls"]
    expect(f"{calls:,} calls recorded" in said and "3 processes" in said, said)


def clean_removes_runs_and_nothing_else(test):
    test.record("/bin/true")
    test.record("/bin/sh", "-c", "ls / >/dev/null; :")
    test.record("-o", "named.trace", "/bin/true")
    mixed = test.trace("tracer.mixed.1")
    os.mkdir(mixed)
    for name, text in (("notes", "mine"), ("tracer.fake.2.trace", "no trace")):
        write(os.path.join(mixed if name == "notes" else test.traces, name), text)
    # Somebody's own folder, with a copy of a run in it.
    golden = test.trace("golden")
    os.mkdir(golden)
    shutil.copy(test.trace("named.trace"), os.path.join(golden, "before.trace"))
    before = test.there()
    expect("would remove 2 runs" in test.tool("clean", "--dry-run").stdout and test.there() == before, "a dry run removes")
    test.tool("clean", status=2)  # cannot ask
    expect("no run to remove" in test.tool("clean", "--older-than", "1h").stdout and test.there() == before, "young ones are removed")
    test.tool("clean", "--yes")
    expect(test.there() == ["golden", "named.trace", "tracer.fake.2.trace", "tracer.mixed.1"], test.there())
    os.utime(os.path.join(golden, "before.trace"), (0, 0))
    for path in (golden, golden + "/."):
        expect("no run to remove" in test.tool("clean", "--older-than", "1h", path).stdout, path)
    expect(os.listdir(golden) == ["before.trace"], os.listdir(golden))
    test.tool("clean", "--yes", "named.trace")
    test.tool("clean", "--yes", "tracer.mixed.1")
    expect(test.there() == ["golden", "tracer.fake.2.trace", "tracer.mixed.1"] and os.listdir(mixed) == ["notes"], test.there())


def tests():
    return suite.tests_of(__name__, Runs)
