"""`tracer order`: an order is what a program says itself of its first calls, and linkers lay functions as it says.

- Orders: first calls of all threads before the program is ready; then what is called together, the hottest first; several traces.
- Linkers: lld, gold, mold and bfd link the program again by the file, at -O0 and -O2: `nm -n` has the functions in that order, and it runs.
- Instrumented: builds with -finstrument-functions, and with guards of -fsanitize-coverage.
- Doubts: what a linker may not find, and why.
- Command: modules, builds, mistakes.
- Builds: `--check` of a program whose start calls functions that lie far apart, linked as it comes, in the order, and in a random one: page
  faults of text and text touched; moments of being ready; mistakes.
"""
import json
import os
import pathlib
import random
import re
import shutil
import unittest

import recorded_programs
from kernel_account import kernel_reports, refusing
from recorded_programs import new_folder, run, tracer

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ["start.cc", "other.cc"]


def built(*options, name="start", sources=SOURCES):
    folder = new_folder()
    for source in SOURCES:
        shutil.copy(os.path.join(HERE, source), folder)
    run("g++", "-g", *options, *sources, "-o", name, "-pthread", folder=folder)
    return folder


def record(trace, *arguments, program="start", **options):
    """Records the program. Returns the functions that it called, in the order of their first calls, as it prints them."""
    return recorded_programs.record(trace, program, *arguments, **options).stderr.split()


def ordered(*traces, folder, options=("--ready", "announce_ready")):
    return tracer("order", *traces, "-o", "-", *options, folder=folder).stdout.splitlines()


def laid(program, folder):
    """Names by address, those of one address in one set."""
    by_address = {}
    for line in run("nm", "-n", program, folder=folder).stdout.splitlines():
        found = re.match(r"([0-9a-f]+) [tTwW] (\S+)", line)
        if found:
            by_address.setdefault(int(found[1], 16), set()).add(found[2])
    return [names for _, names in sorted(by_address.items())]


class Orders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = built("-O0", "-ffunction-sections")

    def noted(self, order, said):
        return [name for name in order if name in said]

    def test_first_calls(self):
        said = record("a.trace", "files", "options", folder=self.folder)
        self.assertEqual(said, ["main", "open_files", "read_options", "in_a_thread", "connect_all", "announce_ready"])
        order = ordered("a.trace", folder=self.folder)
        self.assertEqual(self.noted(order, said), said)
        self.assertNotIn("never_needed", order)
        self.assertEqual(len(order), len(set(order)))
        constructor = next(n for n, name in enumerate(order) if name.startswith("_ZN5ThingC"))
        self.assertLess(constructor, order.index("announce_ready"))

    def test_later_calls(self):
        record("a.trace", folder=self.folder)
        order = ordered("a.trace", folder=self.folder)
        later = order[order.index("announce_ready") + 1:]
        self.assertEqual([name for name in later if "_work" in name or "_leaf" in name], ["hot_work", "hot_leaf", "warm_work", "warm_leaf"])
        self.assertEqual(later.index("hot_leaf"), later.index("hot_work") + 1)
        self.assertIn("say_goodbye", later)

    def test_without_an_end_of_the_start(self):
        # Then all of it is start, in the order of the first calls.
        record("a.trace", folder=self.folder)
        done = tracer("order", "a.trace", "-o", "-", "--ready", "not_there", folder=self.folder)
        order = done.stdout.splitlines()
        self.assertIn("not_there", done.stderr)
        self.assertEqual([n for n in order if "_work" in n or "_leaf" in n], ["warm_work", "warm_leaf", "hot_work", "hot_leaf"])

    def test_vote(self):
        record("1.trace", "options", "files", folder=self.folder)
        record("2.trace", "options", "files", "rare", folder=self.folder)
        record("3.trace", "files", "options", folder=self.folder)
        names = ("open_files", "read_options", "rarely_needed", "announce_ready")
        order = [name for name in ordered("1.trace", "2.trace", "3.trace", folder=self.folder) if name in names]
        self.assertEqual(order, ["read_options", "open_files", "announce_ready", "rarely_needed"])
        again = ordered("3.trace", "2.trace", "1.trace", folder=self.folder)
        self.assertEqual(again, ordered("1.trace", "2.trace", "3.trace", folder=self.folder))


class Linkers(unittest.TestCase):
    FORMATS = {"lld": "lld", "gold": "gold", "ld.bfd-script": "bfd", "mold": "mold"}

    def link(self, format, level, folder):
        """The program again, by order.txt: the options that `order` says."""
        flags = ["g++", f"-O{level}", "-fno-inline", "-ffunction-sections", "-pthread"]
        if format == "mold":
            run(*flags, "-c", *SOURCES, folder=folder)
            run("ld.bfd", "-r", "--force-group-allocation", "-T", "order.txt", "-o", "ordered.o", "start.o", "other.o", folder=folder)
            run("g++", "-pthread", "ordered.o", "-fuse-ld=mold", "-o", "new", folder=folder)
        else:
            option = {"lld": "--symbol-ordering-file=order.txt", "gold": "--section-ordering-file=order.txt", "ld.bfd-script": "-T,order.txt"}[format]
            run(*flags, *SOURCES, f"-fuse-ld={self.FORMATS[format]}", "-Wl," + option, "-o", "new", folder=folder)

    def check(self, level):
        folder = built(f"-O{level}", "-fno-inline", "-ffunction-sections")
        said = record("a.trace", "files", "options", folder=folder)
        wanted = ordered("a.trace", folder=folder)
        self.assertGreater(len(wanted), 10)
        before = [wanted.index(name) for names in laid("start", folder) for name in names if name in wanted]
        self.assertNotEqual(before, sorted(before))  # or the linker would have had nothing to do
        for format, linker in self.FORMATS.items():
            with self.subTest(linker=linker, level=level):
                done = tracer("order", "a.trace", "--ready", "announce_ready", "--format", format, "-o", "order.txt", "--force", folder=folder)
                self.assertIn(f"-fuse-ld={linker}", done.stdout)
                self.link(format, level, folder)
                layout = laid("new", folder)
                # note is a function of two files, of which a linker takes both.
                found = [min(wanted.index(name) for name in names if name in wanted) for names in layout if names & set(wanted) and "note" not in names]
                self.assertGreater(len(found), len(wanted) * 0.6)
                self.assertEqual(found, sorted(found), [sorted(names) for names in layout])
                first = next(n for n, names in enumerate(layout) if names & set(wanted))
                after = [n for n, names in enumerate(layout) if "never_needed" in names]
                between = layout[first:first + len(found)]
                self.assertTrue(after and not any("never_needed" in names for names in between))
                self.assertEqual(run("./new", "files", "options", folder=folder).stderr.split(), said)

    def test_without_optimization(self):
        self.check(0)

    def test_optimized(self):
        self.check(2)

    def test_library(self):
        folder = built("-O1", "-ffunction-sections", "-fPIC", "-shared", name="libwork.so", sources=["start.cc"])
        pathlib.Path(folder, "use.c").write_text("void open_files(void); void read_options(void);\n"
                                                 "int main(void) { open_files(); read_options(); return 0; }\n")
        run("gcc", "use.c", "-o", "use", "-L.", "-lwork", "-Wl,-rpath,$ORIGIN", folder=folder)
        record("a.trace", folder=folder, options=("--functions", "libwork.so!*"), program="use")
        order = ordered("a.trace", folder=folder, options=("--module", "libwork*"))
        self.assertEqual([name for name in order if name in ("open_files", "read_options", "main")], ["open_files", "read_options"])
        tracer("order", "a.trace", "--module", "libwork*", "-o", "order.txt", folder=folder)
        run("g++", "-O1", "-ffunction-sections", "-fPIC", "-shared", "start.cc", "-o", "libwork.so", "-fuse-ld=lld", "-Wl,--symbol-ordering-file=order.txt", folder=folder)
        flat = [name for names in laid("libwork.so", folder) for name in names]
        self.assertLess(flat.index("open_files"), flat.index("read_options"))
        self.assertLess(flat.index("read_options"), flat.index("main"))


class Instrumented(unittest.TestCase):
    """Builds whose functions say themselves that they are called."""
    SAID = ["main", "open_files", "read_options", "in_a_thread", "connect_all", "announce_ready"]
    LATER = ["hot_work", "hot_leaf", "warm_work", "warm_leaf"]
    GUARDED = ["-g", "-O0", "-ffunction-sections", "-fsanitize-coverage=trace-pc-guard,func"]

    def check(self, folder, *options, program="start"):
        self.assertEqual(record("a.trace", "files", "options", folder=folder, program=program, options=options), self.SAID)
        order = ordered("a.trace", folder=folder)
        self.assertEqual([name for name in order if name in self.SAID], self.SAID)
        self.assertEqual([name for name in order if name in self.LATER], self.LATER)
        self.assertNotIn("never_needed", order)

    def test_by_finstrument_functions(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                self.check(built(level, "-fno-inline", "-ffunction-sections", "-finstrument-functions"))

    def guarded(self, *options):
        if not shutil.which("clang++"):
            self.skipTest("clang is not installed")
        folder = built("-O0")
        pathlib.Path(folder, "guards.c").write_text("void __sanitizer_cov_trace_pc_guard_init(unsigned *start, unsigned *stop) {}\n"
                                                    "void __sanitizer_cov_trace_pc_guard(unsigned *guard) {}\n")
        run("clang", "-c", "guards.c", folder=folder)
        run("clang++", *self.GUARDED, *SOURCES, *options, "-o", "guarded", "-pthread", folder=folder)
        return folder

    def test_by_guards_with_the_runtime_that_clang_links(self):
        self.check(self.guarded(), "--functions", "*", program="guarded")

    def test_by_guards_that_do_nothing(self):
        self.check(self.guarded("-fno-sanitize-link-runtime", "guards.o"), "--functions", "*", program="guarded")


class Doubts(unittest.TestCase):
    def report(self, *options, ready="announce_ready", strips=False):
        folder = built(*options)
        if strips:
            run("strip", "start", folder=folder)
        record("a.trace", folder=folder)
        return tracer("order", "a.trace", "-o", "order.txt", *(["--ready", ready] if ready else []), folder=folder).stdout

    def test_sections(self):
        self.assertIn("share a section with others", self.report("-O0"))
        self.assertNotIn("share a section with others", self.report("-O0", "-ffunction-sections"))
        self.assertNotIn("share a section with others", self.report("-O2", "-ffunction-sections"))

    def test_without_debug_information(self):
        text = self.report("-O0", "-g0")
        self.assertIn("there is no debug information", text)
        self.assertNotIn("share a section with others", text)

    def test_stripped(self):
        self.assertIn("have no symbol", self.report("-O0", "-rdynamic", strips=True, ready=""))  # what it exports has
        folder = built("-O0")
        run("strip", "start", folder=folder)
        record("a.trace", folder=folder)
        done = tracer("order", "a.trace", "-o", "order.txt", folder=folder, status=1)
        self.assertIn("has a symbol", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(folder, "order.txt")))

    def test_folded(self):
        text = self.report("-O1", "-fno-inline", "-ffunction-sections", "-fuse-ld=gold", "-Wl,--icf=all")
        self.assertIn("folded by ICF", text)
        self.assertNotIn("folded by ICF", self.report("-O0", "-ffunction-sections"))

    def test_names(self):
        text = self.report("-O0", "-ffunction-sections")
        self.assertIn("share their name with another function", text)
        self.assertIn("start files", text)
        self.assertRegex(text, r"functions? of other modules were also called \(.*libc\.so")


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = built("-O0", "-ffunction-sections")
        record("a.trace", folder=cls.folder)

    def test_file(self):
        tracer("order", "a.trace", "-o", "one.txt", folder=self.folder)
        done = tracer("order", "a.trace", "-o", "one.txt", folder=self.folder, status=2)
        self.assertIn("--force", done.stderr)
        for arguments, status in ((["a.trace"], 2), (["a.trace", "-o", "x", "--format", "none"], 2), (["none.trace", "-o", "x"], 1),
                                  (["a.trace", "-o", "x", "--module", "none"], 1)):
            done = tracer("order", *arguments, folder=self.folder, status=status)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)

    def test_without_functions(self):
        record("slots.trace", folder=self.folder, options=())
        done = tracer("order", "slots.trace", "-o", "x", folder=self.folder, status=1)
        self.assertIn("--functions", done.stderr)

    def test_program_behind_a_wrapper(self):
        # Its plan is there since it was recorded before.
        tracer("record", "--quiet", "--functions", "*", "-o", "wrapped", "--", "env", "A=1", "sh", "-c", "exec ./start", folder=self.folder)
        self.assertIn("announce_ready", ordered("wrapped", folder=self.folder))

    def test_another_build(self):
        folder = built("-O0", "-ffunction-sections")
        record("a.trace", folder=folder)
        before = ordered("a.trace", folder=folder)
        run("g++", "-g", "-O1", *SOURCES, "-o", "start", "-pthread", folder=folder)
        record("b.trace", folder=folder)
        done = tracer("order", "a.trace", "b.trace", "-o", "-", "--ready", "announce_ready", folder=folder)
        self.assertIn("skipped 1 trace of another build of start", done.stderr)
        self.assertIn("was not found, or is another build", done.stderr)
        # Names of the first build's functions are in its plan.
        names = {name for name in done.stdout.splitlines()}
        self.assertTrue({"main", "announce_ready", "hot_work"} <= names & set(before))


def scattered():
    """A C program of 600 functions of 4 KB each. The start calls some that lie near each other, at ten addresses far apart; `serve` listens then,
    and calls all that it has."""
    groups = [[group * 60 + n for n in range(5)] for group in range(10)]
    lines = ["#include <string.h>", "#include <sys/socket.h>", "#include <unistd.h>"]
    lines += [f'__attribute__((noinline)) void f{n}(void) {{ __asm__ volatile(".skip 4096, 0x90"); }}' for n in range(600)]
    lines += ["void begin(void) { " + " ".join(f"f{n}();" for group in groups for n in group) + " }",
              "void serve(void) { " + " ".join(f"f{n}();" for n in range(600)) + " }",
              "int main(int argc, char **argv) {", "    begin();", '    if (argc > 1 && strcmp(argv[1], "fail") == 0) return 3;',
              '    if (argc > 1 && strcmp(argv[1], "crash") == 0) __builtin_trap();', '    if (argc > 1 && strcmp(argv[1], "serve") == 0) {',
              "        int opened = socket(AF_UNIX, SOCK_STREAM, 0);", "        listen(opened, 1); // fails, since it has no name: it was called",
              "        serve();", "        for (;;) pause();", "    }", "    return 0;", "}"]
    return "\n".join(lines) + "\n"


def linked(name, order, folder):
    pathlib.Path(folder, name + ".order").write_text("".join(function + "\n" for function in order))
    run("gcc", "scattered.o", "-o", name, "-fuse-ld=lld", f"-Wl,--symbol-ordering-file={name}.order", "-Wl,--no-warn-symbol-ordering", folder=folder)


@unittest.skipUnless(kernel_reports(), "the kernel does not report page faults here")
class Builds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        pathlib.Path(cls.folder, "scattered.c").write_text(scattered())
        run("gcc", "-O1", "-g", "-ffunction-sections", "-c", "scattered.c", folder=cls.folder)
        linked("default", [], cls.folder)
        record("a.trace", program="default", folder=cls.folder)
        linked("ordered", ordered("a.trace", folder=cls.folder, options=()), cls.folder)
        every = [f"f{n}" for n in range(600)]
        random.Random(1).shuffle(every)
        linked("random", every, cls.folder)

    def check(self, old, new, *options, launches="6"):
        done = tracer("order", "--check", "--old", "./" + old, "--new", "./" + new, "-n", launches, "--json", *options, folder=self.folder)
        return json.loads(done.stdout)

    def figure(self, check, kind, start="warm", scope="program"):
        row, = [row for row in check["figures"] if (row["figure"], row["start"], row["place"]) == (kind, start, scope)]
        return row

    def expect(self, row, sign):
        """Differs significantly: less of it if the sign is -1, more if it is 1."""
        self.assertGreater(row["new"] * sign, row["old"] * sign)
        self.assertGreater(min(row["low"] * sign, row["high"] * sign), 0)
        self.assertTrue(row["significant"], row)

    def test_ordered_build_faults_less_and_touches_less(self):
        # One launch for which the kernel reports other faults does not decide among so many.
        check = self.check("default", "ordered", launches="10")
        self.assertEqual(check["ready"], "end of the program")
        for start in ("warm", "cold"):
            self.expect(self.figure(check, "minor_text_faults", start), -1)
        touched = self.figure(check, "touched_text")
        self.expect(touched, -1)
        # The 50 functions of the start lie on 51 pages, and a few more are main's, the compiler's and those of linkage.
        self.assertGreaterEqual(touched["new"], 50 * 4096)
        self.assertLess(touched["new"], 60 * 4096)

    def test_random_build_faults_more_and_touches_more(self):
        check = self.check("default", "random")
        self.expect(self.figure(check, "minor_text_faults"), 1)
        self.expect(self.figure(check, "touched_text"), 1)

    def test_copy_touches_the_same(self):
        shutil.copy(os.path.join(self.folder, "default"), os.path.join(self.folder, "copy"))
        row = self.figure(self.check("default", "copy"), "touched_text")
        self.assertEqual((row["old_values"], row["significant"]), (row["new_values"], False))

    def test_start_ends_when_the_program_listens(self):
        check = self.check("default", "ordered", "--", "serve")
        self.assertEqual(check["ready"], "listening")
        for side in ("old", "new"):  # all functions together are 600 pages
            self.assertLess(self.figure(check, "touched_text")[side], 130 * 4096)

    def test_sums_are_of_all_files(self):
        check = self.check("default", "ordered")
        rows = [row for row in check["figures"] if (row["figure"], row["start"]) == ("minor_text_faults", "warm")]
        self.assertIn("libc.so.6", [row["file"] for row in rows])
        own = self.figure(check, "minor_text_faults")
        everything = self.figure(check, "minor_text_faults", scope="all")
        self.assertGreater(everything["old"], own["old"])
        self.assertEqual(sum(sum(row["old_values"]) for row in rows if row["place"] != "all"), sum(everything["old_values"]))

    def test_text(self):
        text = tracer("order", "--check", "--old", "./default", "--new", "./ordered", "-n", "6", folder=self.folder).stdout
        self.assertRegex(text, r"(?m)^minor faults of text .* fewer$")
        self.assertRegex(text, r"(?m)^text of the program touched .* less$")
        for line in ("Warm", "From disk", "old  ./default", "new  ./ordered"):
            self.assertIn(line + "\n", text)

    def test_commands_run_before_and_after_each_launch(self):
        self.check("default", "ordered", "--setup", "echo before >> said", "--teardown", "echo after >> said", launches="2")
        said = pathlib.Path(self.folder, "said").read_text().split()
        self.assertEqual(said, ["before", "after"] * (len(said) // 2))
        self.assertGreaterEqual(len(said), 2 * 2 * 2 * 5)

    def test_mistakes_take_one_line(self):
        folder = self.folder
        for name, text, mode in (("script", "#!/bin/sh\nexit 0\n", 0o755), ("data", "no program", 0o644)):
            pathlib.Path(folder, name).write_text(text)
            os.chmod(os.path.join(folder, name), mode)
        if not os.path.exists(os.path.join(folder, "other")):
            os.link(os.path.join(folder, "default"), os.path.join(folder, "other"))
        both = ["--old", "./default", "--new", "./ordered"]
        for arguments, status, said in (
                (["--check", "--old", "./default"], 2, "--new"), (["--check"], 2, "--old"), (["--old", "./default", "a.trace", "-o", "x"], 2, "--check"),
                (["a.trace", "-o", "x", "-n", "3"], 2, "-n"), (["a.trace", "-o", "x", "--", "word"], 2, "--check"),
                (["a.trace", "--check", *both], 2, "traces"), (["--check", *both, "-o", "x"], 2, "-o"), (["--check", *both, "--ready", "main"], 2, "--ready"),
                (["--check", *both, "-n", "0"], 2, "-n"), (["--check", *both, "--timeout", "0"], 2, "--timeout"), (["--check", *both, "--cpu", "-1"], 2, "--cpu"),
                (["--check", "--old", "./default", "--new", "./none"], 127, "./none"), (["--check", "--old", "./data", "--new", "./ordered"], 126, "executable"),
                (["--check", "--old", "./script", "--new", "./ordered"], 126, "script"), (["--check", "--old", "./default", "--new", "./other"], 2, "same file"),
                (["--check", *both, "--", "fail"], 2, "status 3"), (["--check", *both, "--", "crash"], 2, "status 13"),
                (["--check", *both, "--setup", "false"], 2, "--setup"), (["--check", *both, "--to-exit", "--timeout", "1", "--", "serve"], 2, "1.0 s"),
                (["a.trace", "-o", "-", "--json"], 2, "--json")):
            with self.subTest(arguments=arguments):
                done = tracer("order", *arguments, folder=folder, status=status)
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
                self.assertIn(said, done.stderr)

    def test_builds_that_are_ready_at_different_moments(self):
        folder = new_folder()
        for name, body in (("ends", "return 0;"), ("serves", "listen(socket(AF_UNIX, SOCK_STREAM, 0), 1); for (;;) pause();")):
            pathlib.Path(folder, name + ".c").write_text("#include <sys/socket.h>\n#include <unistd.h>\nint main(void) { " + body + " }\n")
            run("gcc", name + ".c", "-o", name, folder=folder)
        done = tracer("order", "--check", "--old", "./ends", "--new", "./serves", folder=folder, status=2)
        self.assertIn("end of the program and listening", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_kernel_that_does_not_report(self):
        refusing(os.path.join(self.folder, "refuses"), "EACCES")
        done = run("./refuses", recorded_programs.TOOL, "order", "--check", "--old", "./default", "--new", "./ordered", "-n", "2", folder=self.folder, status=2)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertIn("page faults not granted: Permission denied", done.stderr)
