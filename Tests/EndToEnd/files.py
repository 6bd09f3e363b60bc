"""`tracer files`, compared with what the program did."""
import json
import os
import subprocess

import suite
from harness import expect

SOURCE = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#define CHECK(what) do { if (!(what)) { perror(#what); exit(9); } } while (0)
static char buffer[8192];
static int file;
static void *reader(void *unused) { CHECK(pread(file, buffer, 4, 0) == 4); return unused; }
int main(int count, char **arguments) {
    CHECK(count == 2 && !chdir(arguments[1]));
    CHECK((file = open("one", O_CREAT | O_RDWR | O_TRUNC, 0600)) >= 0);
    CHECK(write(file, buffer, 100) == 100 && pwrite(file, buffer, 50, 100) == 50 && !fsync(file));
    int again = dup(file), moved = fcntl(file, F_DUPFD, 20);
    CHECK(again >= 0 && moved >= 20 && lseek(again, 0, SEEK_SET) == 0);
    CHECK(read(again, buffer, 30) == 30 && read(moved, buffer, 1000) == 120 && read(file, buffer, 10) == 0);
    struct iovec parts[2] = {{buffer, 5}, {buffer + 5, 6}};
    CHECK(preadv(again, parts, 2, 0) == 11 && !close(again) && read(again, buffer, 1) == -1);
    pthread_t threads[3];
    for (int n = 0; n < 3; n++) CHECK(!pthread_create(&threads[n], 0, reader, 0));
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    // The number is used again, by another file.
    int other = open("./two", O_CREAT | O_WRONLY, 0600);
    CHECK(other == again && write(other, buffer, 7) == 7 && dup2(other, 30) == 30 && !close(other) && write(30, buffer, 8) == 8);
    CHECK(open("missing", O_RDONLY) < 0 && open("missing", O_RDONLY) < 0 && access("missing", F_OK) < 0);
    struct stat status;
    CHECK(!stat("one", &status) && !lstat(".//one", &status) && !fstat(file, &status));
    int ends[2];
    CHECK(!pipe(ends) && write(ends[1], buffer, 10) == 10 && read(ends[0], buffer, 10) == 10);
    FILE *stream = fopen("three", "w");
    CHECK(stream && fputs("text", stream) >= 0 && !fclose(stream));
    CHECK(!fopen("nothing/here", "r"));
    void *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(mapped != MAP_FAILED && mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    CHECK(!mkdir("folder", 0700) && !rename("three", "folder/four") && !unlink("folder/four"));
    DIR *folder = opendir("folder");
    CHECK(folder && !closedir(folder));
    int directory = open("folder", O_RDONLY | O_DIRECTORY);
    int inner = openat(directory, "inner", O_CREAT | O_RDWR, 0600);
    CHECK(inner >= 0 && write(inner, buffer, 3) == 3 && !close(inner));
    pid_t child = fork();
    if (!child) {
        CHECK(pread(file, buffer, 9, 0) == 9 && !chdir("folder"));
        int own = open("inner", O_RDONLY);
        CHECK(own >= 0 && read(own, buffer, 100) == 3);
        _exit(0);
    }
    int ended;
    CHECK(waitpid(child, &ended, 0) == child && ended == 0 && !rmdir("folder") == 0);
    return 0;
}
"""


def rows(test, path, *options):
    found = json.loads(test.tool("files", path, "--json", *options).stdout)
    return found, {row["path"]: row for row in found["files"]}


class Files(suite.Test):
    def record(self, *command, options=(), cwd=None):
        environment = self.environment(PYTHONDONTWRITEBYTECODE="1", XDG_CACHE_HOME=self.path("cache"))
        done = subprocess.run([self.settings.tool, "record", "--force", "--quiet", "-o", self.path("a.trace"), *options, "--", *command], cwd=cwd or self.made,
                              env=environment, capture_output=True, text=True)
        expect(done.returncode == 0, f"{done.returncode}: {done.stderr}")
        return self.path("a.trace")


def figures_are_what_the_program_did(test):
    program = test.compile("uses", "-O1", "-pthread", source=SOURCE)
    folder = os.path.join(test.made, "work")
    os.mkdir(folder)
    found, files = rows(test, test.record(program, folder, options=["--files"]))

    def row(name):
        expect(f"{folder}/{name}" in files, f"no {name} among {sorted(files)}")
        return files[f"{folder}/{name}"]

    def check(name, **wanted):
        got = {key: row(name)[key] for key in wanted}
        expect(got == wanted, f"{name}: {got}, not {wanted}")
    check("one", opens=1, failed_opens=0, writes=2, written_bytes=150, reads=4 + 3 + 1, read_bytes=30 + 120 + 0 + 11 + 12 + 9, syncs=1, look_ups=3, failed_look_ups=0,
          maps=1, mapped_bytes=4096, threads=5, processes=2, error=None)
    check("two", opens=1, writes=2, written_bytes=15, reads=0, read_bytes=0)
    check("missing", opens=2, failed_opens=2, look_ups=1, failed_look_ups=1, error="ENOENT", opened_by_pid=None)
    check("three", opens=1, failed_opens=0, changes=1)
    check("nothing/here", opens=1, failed_opens=1, error="ENOENT")
    check("folder/four", changes=2, opens=0)
    check("folder", changes=2, opens=2, failed_opens=0)
    check("folder/inner", opens=2, writes=1, written_bytes=3, reads=1, read_bytes=3, processes=2)
    expect(found["other_calls"] >= 2, f"{found['other_calls']} calls on the pipe")
    # One read is made on a descriptor that is closed.
    expect(found["unknown_calls"] <= 1, f"{found['unknown_calls']} calls on unknown descriptors")
    totals = {key: sum(row[key] for row in found["files"]) for key in ("opens", "failed_opens", "look_ups", "failed_look_ups", "read_bytes", "written_bytes", "time_ns")}
    expect(all(found[key] == value for key, value in totals.items()), f"{totals} in the rows")
    for one in found["files"]:
        parts = sum(one[key] for key in ("open_ns", "read_ns", "write_ns", "sync_ns", "look_up_ns", "change_ns"))
        expect(one["time_ns"] == parts and one["first_ns"] <= one["last_ns"], f"{one['path']}: {parts} of {one['time_ns']} ns, {one['first_ns']} to {one['last_ns']}")
    _, chosen = rows(test, test.path("a.trace"), "--path", "*/two", "--path", "*inner")
    expect(sorted(os.path.basename(path) for path in chosen) == ["inner", "two"], f"{sorted(chosen)}")
    ordered = [row["path"] for row in rows(test, test.path("a.trace"), "--sort", "first")[0]["files"]]
    expect(ordered.index(f"{folder}/one") < ordered.index(f"{folder}/two") < ordered.index(f"{folder}/folder/inner"), f"{ordered}")
    text = test.tool("files", test.path("a.trace"), "--sort", "bytes", "--top", "1").stdout
    expect("/work/one" in text and "/work/two" not in text, text)


def record_keeps_paths_of_look_ups_if_asked(test):
    program = test.compile("uses", "-O1", "-pthread", source=SOURCE)
    for n, (options, paths, status) in enumerate((([], 0, 0), (["--files"], 5, 0), (["--no-files"], 0, 1), (["--min-ms", "1us"], 0, 1))):
        folder = os.path.join(test.made, str(n))
        os.mkdir(folder)
        path = test.record(program, folder, options=options)
        if status:
            done = test.tool("files", path, status=status)
            expect("record with --files" in done.stderr and done.stderr.count("\n") == 1, f"{options}: {done.stderr}")
            continue
        found, files = rows(test, path)
        expect(files[f"{folder}/one"]["written_bytes"] == 150 and files[f"{folder}/missing"]["failed_opens"] == 2, f"{options}: {files.keys()}")
        # One is an fstat, which needs no path.
        expect((found["look_ups"], found["look_ups_without_path"]) == ((4, 0) if paths else (1, 3)), f"{options}: {found['look_ups']}, {found['look_ups_without_path']}")


def a_child_has_what_it_was_given(test):
    """A shell's redirection is followed to the program that it executes; a child whose output is a pipe does not write to its parent's file."""
    suite.need("/usr/bin/python3", "cat")
    test.write("file", "some text\n" * 20)
    script = "import subprocess; print(len(subprocess.run(['cat', 'file'], stdout=subprocess.PIPE).stdout), flush=True)"
    path = test.record("sh", "-c", f'exec > log; cat file file; /usr/bin/python3 -I -S -c "{script}"')
    expect(suite.read(test.path("log")) == "some text\n" * 40 + "200\n", suite.read(test.path("log"))[-20:])
    _, files = rows(test, path)
    log, file = files[test.path("log")], files[test.path("file")]
    expect((log["written_bytes"], log["processes"]) == (404, 3), f"{log}") # the shell, which opens it, cat and Python
    expect((file["opens"], file["read_bytes"], file["processes"]) == (3, 600, 2), f"{file}")


def who_opened_it_is_the_function_that_called(test):
    test.compile("libopener.so", "-O1", "-shared", "-fPIC", source="""
        #include <fcntl.h>
        #include <unistd.h>
        __attribute__((noinline)) int opener(const char *path) { int file = open(path, O_RDONLY); close(file); return file > 0; }
        int reopener(const char *path) { int file = open(path, O_RDONLY); close(file); return file > 0; }""")
    program = test.compile("opens", "-L.", "-lopener", "-Wl,-rpath,$ORIGIN", source="""
        int opener(const char *), reopener(const char *);
        int main(void) { return !(opener("/etc/passwd") && reopener("/etc/passwd") && reopener("/etc/group")); }""")
    _, files = rows(test, test.record(program))
    got = {path: (row["opened_by"], row["opened_by_module"], row["opens"]) for path, row in files.items() if path.startswith("/etc/")}
    expect(got == {"/etc/passwd": ("opener", "libopener.so", 2), "/etc/group": ("reopener", "libopener.so", 1)}, f"{got}")


STARTS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static char buffer[100];
static void use(const char *path, int bytes) {
    int file = open(path, O_RDONLY);
    if (file >= 0 && read(file, buffer, bytes) == bytes) close(file);
}
int main(int count, char **arguments) {
    if (count != 4) return 9;
    use(arguments[1], 40), use(arguments[2], 10), use(arguments[2], 20), use("/nonexistent/before", 1);
    puts("ready"), fflush(stdout);
    use(arguments[1], 30), use(arguments[3], 50), use("/nonexistent/after", 1);
    return 0;
}
"""


def a_start_has_its_files(test):
    """Calls that begin before the program is ready, and no others."""
    program = test.compile("starts", "-O1", source=STARTS)
    paths = [test.write(name, "x" * 100) for name in ("one", "two", "three")]
    test.tool("startup", "-o", test.trace(), "--", program, *paths)
    found = test.json("startup", test.trace())
    rows = {row["path"]: row for row in found["files"] if row["path"].startswith((test.made, "/nonexistent"))}
    figures = {path: [row[name] for name in ("opens", "failed_opens", "read_bytes")] for path, row in rows.items()}
    expect(figures == {paths[0]: [1, 0, 40], paths[1]: [2, 0, 30], "/nonexistent/before": [1, 1, 0]}, f"{figures}")
    text = test.tool("startup", test.trace()).stdout
    expect("Files used before ready" in text and paths[0] in text and paths[2] not in text.split("Files used before ready")[1], text)
    whole = test.json("files", test.trace())["files"]
    expect({row["path"]: row["read_bytes"] for row in whole if row["path"] in paths} == dict(zip(paths, (70, 30, 50))), "tracer files has all")
    test.tool("record", "--no-files", "--quiet", "--no-states", "-o", test.path("without.trace"), "--", program, *paths)
    without = test.json("startup", test.path("without.trace"))
    expect(without["files"] is None and "Files used" not in test.tool("startup", test.path("without.trace")).stdout, f"{without['files']}")


MODES = {"slots": "*"}


def tests():
    return suite.tests_of(__name__, Files)
