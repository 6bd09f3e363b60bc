"""The agent may only do harmless things: it touches nobody else's file, honours no setting in a setuid program, and has no
page that is writable and executable at once."""
import ctypes
import os
import shutil
import stat
import subprocess

import build
import harness
import suite
import tracefile
from harness import Failed, Skipped, expect
from suite import need, read, read_bytes, write


class Security(suite.Test):
    """The program `steady`, and a run of it under the agent."""

    def prepare(self):
        self.program = build.program_of("steady")

    def traced(self, output, argv=None, **variables):
        run = harness.execute(argv or [self.program, "5000"], self.directory.path, self.traced_environment(TRACER_OUT=output, **variables))
        expect(argv is not None or run.status == 7 and run.stdout.strip(), f"the program: {harness.describe(run.status)}: {run.stderr[-300:]}")
        return run

    def startup(self, trace, *command):
        """A command under `tracer startup --loader`."""
        return self.tool("startup", "--loader", "-o", trace, "--", *command, status=None)


def said(run, word):
    lines = [line for line in run.stderr.decode(errors="replace").splitlines() if line.startswith("tracer: ")]
    expect(len(lines) == 1 and word in lines[0], f"expected one line with {word!r}: {lines}")


def expect_text(path, text):
    found = read(path)[:100]
    expect(found == text, f"{os.path.basename(path)} was changed: {found[:60]!r}")


def mode_is_0600_whatever_the_umask(test):
    before = os.umask(0)
    try:
        test.traced(test.trace())
    finally:
        os.umask(before)
    mode = stat.S_IMODE(os.stat(test.trace()).st_mode)
    expect(mode == 0o600, f"mode {mode:o}")


def refuses_a_symbolic_link(test):
    victim, link = test.write("victim", "precious"), test.trace()
    os.symlink(victim, link)
    said(test.traced(link), "symbolic link")
    expect_text(victim, "precious")


def does_not_create_what_a_dangling_link_names(test):
    victim, link = test.path("victim"), test.trace()
    os.symlink(victim, link)
    said(test.traced(link), "symbolic link")
    expect(not os.path.lexists(victim), "the file that the link names was created")


def does_not_follow_a_link_that_takes_the_name_later(test):
    victim = test.write("victim", "precious")
    run = test.traced(test.trace(), MIDWAY="replace", TRACES=test.traces, VICTIM=victim)
    said(run, "symbolic link")
    expect_text(victim, "precious")


def does_not_write_to_a_file_that_takes_the_name_later(test):
    victim = test.write("victim", "precious")
    run = test.traced(test.trace(), MIDWAY="exchange", TRACES=test.traces, VICTIM=victim)
    said(run, "the file is gone")
    expect_text(test.trace(), "precious")


def leaves_a_file_that_is_no_trace(test):
    victim = test.write("victim", "precious " * 100)
    said(test.traced(victim), "not a trace of tracer's")
    expect_text(victim, ("precious " * 100)[:100])


def takes_the_next_name_where_one_is_taken(test):
    """In /tmp anybody may put a file at a name that can be guessed: the program is recorded all the same."""
    path = test.trace()
    for obstacle in ("file", "link", "folder"):
        if obstacle == "file":
            write(path, "precious")
        elif obstacle == "link":
            os.symlink("/nowhere", path)
        else:
            os.mkdir(path)
        said(test.traced(path), "recording to ")
        others = [name for name in os.listdir(test.traces) if name != "a.trace"]
        expect(len(others) == 1 and others[0].startswith("a.") and tracefile.Trace(test.trace(others[0])).trees().count("steady_both") != 0,
               f"{obstacle}: {others}")
        os.unlink(test.trace(others[0]))
        os.rmdir(path) if obstacle == "folder" else os.unlink(path)


def leaves_the_trace_of_another_pid_namespace(test):
    """There a number says nothing of a process here."""
    path, first = test.trace(), test.path("first")
    space = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0 or subprocess.run([*space, "true"], stderr=subprocess.DEVNULL).returncode:
        raise Skipped("no pid namespace to be had")
    environment = test.traced_environment(TRACER_OUT=path)
    os.mkfifo(first)
    # Numbers begin at 1 there: that of a process here is none.
    living = subprocess.Popen(["sh", "-c", f"echo begun; read line < {first}"], env=environment, stdout=subprocess.PIPE)
    try:
        expect(living.stdout.readline() == b"begun\n", "sh did not begin")
        before = os.stat(path).st_ino
        there = subprocess.run([*space, test.program, "5000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=test.environment(LD_PRELOAD=environment["LD_PRELOAD"], TRACER_OUT=path))
        expect(there.returncode == 7 and os.stat(path).st_ino == before,
               f"status {there.returncode}, {there.stderr}, the trace of the living process was replaced: {os.stat(path).st_ino != before}")
    finally:
        write(first, "\n")
        living.wait()


def leaves_a_device_and_a_fifo(test):
    fifo = test.path("fifo")
    os.mkfifo(fifo)
    names = [fifo]
    try:
        os.mknod(test.path("null"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
        names.append(test.path("null"))
    except PermissionError:
        pass # only root has devices
    for name in names:
        before = os.stat(name)
        said(test.traced(name), "not a trace of tracer's")
        after = os.stat(name)
        expect((before.st_ino, before.st_mode) == (after.st_ino, after.st_mode), f"{os.path.basename(name)} was replaced")


def replaces_only_the_trace_of_a_process_that_is_gone(test):
    path = test.trace()
    test.traced(path)
    other = test.path("second name")
    os.link(path, other) # somebody kept it by another name
    before = os.stat(other)
    test.traced(path)
    after = os.stat(other)
    expect((before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) and os.stat(path).st_ino != after.st_ino,
           "the old trace was written over instead of being replaced")


def a_trace_holds_no_environment(test):
    word = "a-password-of-" + os.urandom(8).hex()
    test.traced(test.trace(), PASSWORD=word)
    test.traced(test.trace("b.trace"), argv=[test.program, "5000", word])
    found = {name: word.encode() in read_bytes(test.trace(name)) for name in ("a.trace", "b.trace")}
    expect(found == {"a.trace": False, "b.trace": True}, f"the environment, the command line: {found}")  # the second one: it would be found


def nothing_is_honoured_in_a_setuid_program(test):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skipped("only root can make a setuid program for somebody else, and setpriv runs it")
    # The loader drops our preload there. Linked to the library, the agent is in the process all the same.
    source = ("#include <stdio.h>\n#include <unistd.h>\nextern void tracer_start(void) __attribute__((weak));\n"
                         "int main(void) { if (!tracer_start) return 9; tracer_start(); puts(geteuid() == getuid() ? \"plain\" : \"setuid\"); return 0; }\n")
    library = shutil.copy(test.settings.agent, test.path("libtracer.so"))
    program = test.compile("s", "-Wl,--no-as-needed", library, f"-Wl,-rpath,{test.made}", source=source)
    for identity, text, traces in ((None, b"plain\n", 1), (2, b"setuid\n", 0)):
        if identity is not None:
            os.chown(program, identity, identity)
            os.chmod(program, 0o6755)
        run = harness.execute(["setpriv", "--reuid", "65534", "--clear-groups", program], test.directory.path,
                              test.environment(TRACER_OUT=test.trace("%e.trace")))
        if run.stdout != text:
            raise Skipped("programs are not setuid on this file system") if run.stdout == b"plain\n" \
                else Failed(f"{harness.describe(run.status)}: {run.stdout + run.stderr}")
        found = os.listdir(test.traces)
        expect(len(found) == traces and not run.stderr, f"{text}: {found}, {run.stderr}")
        for name in found:
            os.unlink(test.trace(name))


def never_asks_for_a_writable_and_executable_page(test):
    need("strace")
    case = build.case_of("dlopens", "reload")
    program, log = build.build(case), test.path("log")
    environment = test.traced_environment(**{k: v.replace("{build}", case.folder) for k, v in case.environment.items()})
    preload = environment.pop("LD_PRELOAD")
    run = harness.execute(["strace", "-f", "-o", log, "-e", "trace=mmap,mprotect,pkey_mprotect,mremap", "-E",
                           "LD_PRELOAD=" + preload, program, *[a.replace("{build}", case.folder) for a in case.arguments]],
                          test.directory.path, environment)
    expect(run.status == 0, f"strace: {harness.describe(run.status)}: {run.stderr[-300:]}")
    calls = read(log).splitlines()
    both = [line for line in calls if "PROT_WRITE" in line and "PROT_EXEC" in line]
    expect(not both and any("PROT_EXEC" in line and "mprotect" in line for line in calls),
           f"{len(both)} of {len(calls)} calls, the first: {both[:1]}")


def no_page_is_writable_and_executable(test):
    case = build.case_of("own_maps")
    program = build.build(case)
    run = test.traced(test.trace(), argv=[program, os.path.join(case.folder, "libplugged.so")])
    expect(run.status == 0 and run.stdout.endswith(b"\nlooked 4 times\n"), f"{harness.describe(run.status)}: {run.stdout + run.stderr}")


def says_once_that_it_may_make_no_code(test):
    case = build.case_of("no_new_code")
    program = build.build(case)
    early, late = "may not create executable memory", "may no longer create executable memory"
    for how in ("filter", "mdwe"):
        for when, said in (("now", [late]), ("fork", [late] * 2), ("exec", [early]), ("chain", [early] * 2)):
            run = test.traced(test.trace(), argv=[program, how, when, case.folder])
            lines = [line for line in run.stderr.decode().splitlines() if line.startswith("tracer: ")]
            expect(run.status == 0, f"{how} {when}: {harness.describe(run.status)}: {run.stderr[-300:]}")
            if how == "mdwe" and not lines and refuses_mdwe():
                raise Skipped("this kernel has no PR_SET_MDWE")
            expect(len(lines) == len(said) and all(part in line for part, line in zip(said, lines)), f"{how} {when}: {lines}")


def refuses_mdwe():
    return ctypes.CDLL(None).prctl(66, 0, 0, 0, 0) < 0 # PR_GET_MDWE


def read_only_relocations_are_read_only_again(test):
    """Pages of PT_GNU_RELRO that the loader protects in a bare run are protected in a traced one, in every module, after the start
    and after modules have come and gone."""
    case = build.case_of("no_new_code")
    build.build(case)
    source = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>
static int writable(unsigned long from, unsigned long to) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4352];
    unsigned long low, high;
    char mode[8];
    int found = 0;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &low, &high, mode) == 3 && low < to && high > from && mode[1] == 'w') found++;
    fclose(maps);
    return found;
}
static int look(struct dl_phdr_info *info, size_t size, void *when) {
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_GNU_RELRO) continue;
        unsigned long low = (info->dlpi_addr + h->p_vaddr) & -page, high = (info->dlpi_addr + h->p_vaddr + h->p_memsz) & -page;
        if (low < high) printf("%s %s %s\n", (char *)when, *info->dlpi_name ? info->dlpi_name : "program", writable(low, high) ? "writable" : "read-only");
    }
    return (void)size, 0;
}
int main(int count, char **arguments) {
    dl_iterate_phdr(look, "start");
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(arguments[1], i & 1 ? RTLD_NOW : RTLD_LAZY);
        if (!library) return 9;
        dl_iterate_phdr(look, "opened");
        dlclose(library);
    }
    return count - 2;
}
"""
    for flags in (["-Wl,-z,relro,-z,now"], ["-Wl,-z,relro,-z,lazy"]):
        argv = [test.compile("relro", *flags, "-ldl", source=source), os.path.join(case.folder, "liblater.so")]
        bare = harness.execute(argv, test.directory.path, test.environment())
        traced = test.traced(test.trace("%p.trace"), argv=argv)
        lines = traced.stdout.decode().splitlines()
        ours = [line for line in lines if test.settings.agent in line]
        expect(len(ours) == 4 and not any("writable" in line for line in ours), f"{flags}: of the agent itself: {ours}")
        others = "".join(line + "\n" for line in lines if line not in ours).encode()
        expect(not bare.status and not traced.status and others == bare.stdout,
               f"{flags}: {harness.difference('what is protected', bare.stdout, others)}")
        expect(bare.stdout.count(b"read-only") >= 8 and b"writable" not in bare.stdout,
               f"{flags}: the loader protected nothing to compare with: {bare.stdout[:400]}")
        expect(os.listdir(test.traces), "nothing was recorded")


# Before it becomes the program that `tracer startup --loader` is to start, the same process puts something else where the
# notes of the loader are to go. $1 is the file of somebody else, $2 says what; the rest is the program.
EXCHANGE = r"""#!/bin/bash
victim=$1 what=$2; shift 2
notes=/${TRACER_LOADER#*/}
case $what in
link) ln -sfn "$victim" "$notes";;
hard) ln -f "$victim" "$notes";;
moved) rm -f "$notes" && cp "$victim" "$notes";;
fifo) rm -f "$notes" && mkfifo "$notes";;
folder) rm -f "$notes" && mkdir "$notes";;
esac
exec "$@"
"""


def the_loaders_notes_go_to_their_own_file(test):
    ask = test.write("exchange", EXCHANGE, mode=0o755)
    victim = test.write("victim", "precious")
    for what in ("nothing", "link", "hard", "moved", "fifo", "folder"):
        trace = test.trace(f"{what}.trace")
        run = test.startup(trace, ask, victim, what, test.program, "5000")
        expect(run.returncode == 7 and run.stdout.strip(), f"{what}: {harness.describe(run.returncode)}: {run.stderr[-300:]}")
        expect_text(victim, "precious")
        paths = [os.path.join(folder, name) for folder, folders, names in os.walk(test.traces) for name in (*folders, *names)]
        found = {path: os.lstat(path) for path in paths}
        notes = [path for path in paths if path.endswith(".loader")]
        if what == "nothing":
            mode = stat.S_IMODE(found[notes[0]].st_mode) if notes else None
            expect(mode == 0o600 and "the loader audit was on" in run.stderr,
                   f"the audit does not work, or its file has mode {mode}: {run.stderr[-300:]}")
        elif notes or "the loader audit wrote nothing" not in run.stderr:
            raise Failed(f"{what}: {sorted(found)}: {run.stderr[-300:]}")
        for path in reversed(paths):
            os.rmdir(path) if stat.S_ISDIR(found[path].st_mode) else os.unlink(path)


def the_loaders_notes_end_with_the_start(test):
    """Later acts of the program do not affect the loader's notes: a filter that kills, a limit on files, forked children."""
    source = r"""
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments) {
    if (!dlopen(arguments[1], RTLD_NOW)) return 9;
    if (!fork()) _exit(!dlopen("libm.so.6", RTLD_NOW));
    int status;
    wait(&status);
    return (count - 2) | status;
}
"""
    case, trace = build.case_of("no_new_code"), test.trace("l.trace")
    build.build(case)
    run = test.startup(trace, test.compile("l", "-ldl", source=source), os.path.join(case.folder, "liblater.so"))
    notes, = (os.path.join(trace, name) for name in os.listdir(trace) if name.endswith(".loader"))
    lines = read(notes).splitlines()
    expect(not run.returncode and [line[0] for line in lines].count("V") == 1 and lines[-1].startswith("A ") and lines[-1].endswith(" 0"),
           f"{harness.describe(run.returncode)}: {lines[-3:]}")
    expect(not [line for line in lines if "liblater" in line or "libm.so" in line], f"notes of what was loaded later: {lines[-4:]}")
    # A file that may not grow: SIGXFSZ would end the program.
    run = subprocess.run(["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", "env", "TRACER_QUIET=1", test.settings.tool, "startup", "--loader", "-o", trace,
                          "--", test.program, "5000"], cwd=test.made, env=test.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                         timeout=harness.HANGS)
    expect(run.returncode == 7 and run.stdout.strip(), f"under a limit on files: {harness.describe(run.returncode)}: {run.stderr[-300:]}")


def tests():
    return suite.tests_of(__name__, Security)
