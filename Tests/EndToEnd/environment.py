"""Nothing of the tool's is in the program: under each command that starts one, and each option that adds to what is recorded, it has the
descriptors, environment, limits, signals, tasks, working directory and entries of that directory that it has when the shell starts it. The tool
itself is started with some that are out of the ordinary."""
import os
import resource
import signal
import subprocess

import harness
import suite
from harness import Skipped, expect
from suite import read

PROGRAM = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
static FILE *output;
static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void lines(const char *what, char **all, size_t count) {
    qsort(all, count, sizeof *all, compare);
    for (size_t n = 0; n < count; n++) fprintf(output, "%s\t%s\n", what, all[n]);
}
static void file(const char *what, const char *path, const char *keys) {
    char line[4096], key[64];
    FILE *from = fopen(path, "re");
    while (from && fgets(line, sizeof line, from))
        if (!keys || (sscanf(line, "%63[^:]", key) == 1 && strstr(keys, key))) fprintf(output, "%s\t%s", what, line);
    if (from) fclose(from);
}
static size_t entries(const char *path, char **names) {
    size_t count = 0;
    DIR *all = opendir(path);
    for (struct dirent *entry; (entry = readdir(all));)
        if (entry->d_name[0] != '.') names[count++] = strdup(entry->d_name);
    closedir(all);
    return count;
}
static void actions(void) {
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action)) continue; // the two that libc keeps
        fprintf(output, "action\t%d %s %x", number, action.sa_handler == SIG_DFL ? "default" : action.sa_handler == SIG_IGN ? "ignored" : "caught",
                (unsigned)action.sa_flags);
        for (int other = 1; other <= SIGRTMAX; other++)
            if (sigismember(&action.sa_mask, other) == 1) fprintf(output, " %d", other);
        putc('\n', output);
    }
}
int main(int argc, char **argv) {
    char *names[4096], path[4096], to[4096];
    size_t count = 0;
    if (argc != 2) return 2;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(all));) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(all)) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, to, sizeof to - 1);
        to[length < 0 ? 0 : length] = 0;
        if (atoi(entry->d_name) < 3) strcpy(to, "(the command's)");
        if (strchr(to, '[')) *strchr(to, '[') = 0; // the number of this pipe
        asprintf(&names[count++], "%s %s", entry->d_name, to);
    }
    closedir(all);
    output = fopen(argv[1], "we");
    lines("descriptor", names, count);
    lines("entry", names, entries(".", names));
    fprintf(output, "tasks\t%zu\n", entries("/proc/self/task", names));
    file("children", "/proc/thread-self/children", NULL);
    actions();
    for (count = 0; environ[count]; count++) names[count] = environ[count];
    lines("environment", names, count);
    file("limit", "/proc/self/limits", NULL);
    file("status", "/proc/self/status", "SigBlk SigIgn SigCgt SigPnd ShdPnd NoNewPrivs Seccomp Cpus_allowed_list Uid Gid Groups CapEff Threads Umask");
    fprintf(output, "process\tpersonality %x nice %d\n", personality(0xffffffff), getpriority(PRIO_PROCESS, 0));
    fprintf(output, "folder\t%s\n", getcwd(path, sizeof path));
    fclose(output);
    puts("done");
    return 0;
}
"""
# One thread fills chunk after chunk while the other one looks for what it has not begun: threads, and children of any kind.
LOOKS = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int done;
static void *calls(void *number) {
    for (long n = 0; n < (long)number; n++) getppid();
    done = 1;
    return 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    int threads = 0, children = 0, looks = 0;
    FILE *output = fopen(argv[1], "we");
    pthread_create(&thread, 0, calls, (void *)1000000);
    while (!done) {
        int here = 0;
        DIR *all = opendir("/proc/self/task");
        while (readdir(all)) here++;
        closedir(all);
        if (here - 2 > threads) threads = here - 2;
        children += waitpid(-1, 0, WNOHANG | __WALL) >= 0 || errno != ECHILD;
        looks++;
    }
    pthread_join(thread, 0);
    fprintf(output, "%d threads, %d children\n", threads, children);
    printf("%d looks\n", looks);
    return fclose(output);
}
"""
# Outside of the program's working directory, where they are by default, as the documentation says.
TRACE, BASELINE = "../a.trace", "../b.json"
GLOBS = ("*", "libc.so.6!str*", "*!*")
# Expected differences: the agent's handler of SIGBUS (docs/internals/process.md). Commands that start a program again and again put it
# into a process group, on one CPU, and observe its system calls with a filter: that is their purpose (docs/guide/launch-lab.md).
OURS = ("LD_PRELOAD=", "LD_AUDIT=", "TRACER_")
OWN_SIGNALS = 1 << signal.SIGBUS - 1
LAUNCHED = ("Seccomp", "NoNewPrivs", "Cpus_allowed_list")


def give():
    """Sets up what the tool, and with it the program, inherits: descriptors 5 and 9, SIGUSR2 ignored, SIGWINCH blocked."""
    read, write = os.pipe()
    os.dup2(read, 5)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 9)
    for number in {read, write} - {5, 9}:
        os.close(number)
    os.closerange(10, 64)
    for number in (5, 9):
        os.set_inheritable(number, True)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.umask(0o027)


def without_own(line):
    what, caught, mask = line.partition("SigCgt:\t")
    return f"{what}{caught}{int(mask, 16) & ~OWN_SIGNALS:x}" if caught else line


def is_expected(line, often):
    what, _, text = line.partition("\t")
    if what == "environment":
        return text.startswith(OURS)
    return what == "status" and often and text.startswith(LAUNCHED)


def leaves_nothing(command, often=False, before=None):
    """`often`: it starts the program several times. `before`: another command, of the same program."""
    def check(test):
        program = test.compile("prints", "-O1", source=PROGRAM)
        whole = {}
        commands = {"bare": (), **({"before": (test.settings.tool, *before)} if before else {}), "traced": (test.settings.tool, *command)}
        for name, words in commands.items():
            output = test.path(name)
            done = subprocess.run([*words, program, output], cwd=os.path.join(test.directory.path, "cwd"), preexec_fn=give, close_fds=False,
                                  env=test.environment(HOME=test.made, SURROUNDED="by tests"), stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=harness.HANGS)
            noisy = often and done.returncode == 2 and "machine too noisy" in done.stderr
            if noisy and name == "before":
                raise Skipped("there is no baseline of an idle machine: this one is busy")
            expect(os.path.exists(output) and (noisy or done.returncode in ((0, 1, 125) if before else (0,))),  # slower than the baseline; cannot be told
                   f"{name}: status {done.returncode}: {done.stderr[-500:]}")
            whole[name] = [without_own(line) for line in read(output).splitlines() if not is_expected(line, often)]
        more, less = ([line for line in whole[one] if line not in whole[other]] for one, other in (("traced", "bare"), ("bare", "traced")))
        expect(not more and not less, "\n".join(["only with tracer:", *more, "only without:", *less]))
    return check


def task_of_the_agent(test):
    """Under `tracer record`, the task that writes the trace of a program with threads is in none of the program's lists of tasks."""
    program, output, trace = test.compile("looks", "-O1", "-pthread", source=LOOKS), test.path("output"), test.path("a.trace")
    for command in ((program, output), ("sh", "-c", 'exec "$0" "$@"', program, output)):  # also after an exec
        done = test.tool("record", "--force", "-o", trace, "--", *command, env=test.environment(HOME=test.made))
        seen = read(output)
        os.unlink(output)
        size = sum(os.stat(os.path.join(folder, file)).st_size for folder, _, files in os.walk(test.made) for file in files if file.endswith(".trace"))
        expect(size >= 4 << 20, f"{size} bytes of trace: {done.stderr[-500:]}")
        expect(seen == "2 threads, 0 children\n", f"the program sees {seen}in {done.stdout}")


EXECUTES = r"""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
    const char *way = argv[argc - 2];
    struct rlimit limit = {(rlim_t)atol(argv[argc - 1]) << 10, (rlim_t)atol(argv[argc - 1]) << 10};
    char *words[] = {"cut", "-b1", "/dev/null", NULL};
    int status = 0;
    pid_t child;
    if (setrlimit(RLIMIT_AS, &limit)) return 2;
    if (!strcmp(way, "execv")) execv("/usr/bin/cut", words);
    if (!strcmp(way, "execlp")) execlp("cut", "cut", "-b1", "/dev/null", NULL);
    if (!strcmp(way, "execle")) execle("/usr/bin/cut", "cut", "-b1", "/dev/null", NULL, environ);
    if (!strcmp(way, "vfork")) {
        if ((child = vfork()) == 0) {
            execve("/usr/bin/cut", words, environ);
            _exit(3);
        }
        return waitpid(child, &status, 0) != child || status;
    }
    return posix_spawnp(&child, "cut", NULL, NULL, words, environ) || waitpid(child, &status, 0) != child || status;
}
"""


def programs_with_little_address_space(test):
    """A program that is executed under a limit has of it what it has without the agent. With enough of it, it is recorded."""
    program = test.compile("executes", "-O1", source=EXECUTES)
    ways = [[program, way] for way in ("execv", "execlp", "execle", "vfork", "spawn")] + [["sh", "-c", 'ulimit -v "$1"; /usr/bin/cut -b1 /dev/null', "sh"]]
    for kilobytes, isRecorded in ((5000, False), (20000, False), (40000, False), (400_000, True), (4_000_000, True)):
        for options in ((), ("--functions", "*!*")):
            for way in ways:
                # libc maps a stack for the child of posix_spawn, for which this process has no address space left.
                if way[-1] == "spawn" and not isRecorded:
                    continue
                test.forget_traces()
                done = test.tool("record", "--quiet", "--force", *options, "-o", test.trace("run"), "--", *way, str(kilobytes), env=test.environment(HOME=test.made))
                expect(not done.stdout and not done.stderr, f"{way}, {kilobytes} KB, {options}: {done.stdout}{done.stderr}")
                names = [name for _, _, files in os.walk(test.traces) for name in files]
                expect(any("cut" in name for name in names) == isRecorded, f"{way}, {kilobytes} KB, {options}: {names}")


def tests():
    once = {"record": ("record",), "startup": ("startup",), "loader": ("startup", "--loader"), "counts": ("record", "--mode", "counts", "--functions", "*"),
            "sampled": ("record", "--sample"), "no_children": ("record", "--no-children"), "no_cache": ("record", "--no-cache", "--functions", "*"),
            "call_sites": ("record", "--call-sites"), "arguments": ("record", "--arguments", "*", "--files"), "ring": ("record", "--mode", "ring"),
            "kept": ("record", "--keep", "1s"), "conditions": ("record", "--when", "fopen(path ~ \"x*\")"), "signals": ("record", "--signal", "USR1=snapshot"),
            "keep_agent": ("record", "--keep-agent"), "filtered": ("record", "--min-ms", "1", "--max-depth", "5"), "off": ("record", "--start", "off"),
            **{f"functions.{n}": ("record", "--functions", glob) for n, glob in enumerate(GLOBS)}}
    launch = ("launch", "--runs", "2", "--to-exit", "--")
    baseline = ("baseline", "--runs", "3", "--to-exit", "-o", BASELINE, "--")
    gate = ("check", BASELINE, "--runs", "3", "--to-exit", "--")
    step = ("bisect-step", "--build", "true", BASELINE, "--runs", "3", "--to-exit", "--")
    return [suite.Test("environment." + name, check) for name, check in (
        *((name, leaves_nothing((*command, "-o", TRACE, "--"))) for name, command in once.items()),
        ("launch", leaves_nothing(launch, often=True)), ("baseline", leaves_nothing(baseline, often=True)), ("task_of_the_agent", task_of_the_agent),
        ("programs_with_little_address_space", programs_with_little_address_space),
        ("check", leaves_nothing(gate, often=True, before=baseline)), ("bisect_step", leaves_nothing(step, often=True, before=baseline)))]
