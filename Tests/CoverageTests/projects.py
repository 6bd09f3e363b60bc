"""Real projects as Debian has their sources: how each is built with gcov's counters, and a session that it is used in."""
import os
import pathlib
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTED = "-O0 -g --coverage -fprofile-update=atomic"


class Project:
    package = ""  # Debian's source package
    program = ""  # within the sources
    environment = {}

    def build(self, source, run):
        """Builds the project with `run`, which takes a command and variables of its environment."""
        raise NotImplementedError

    def libraries(self, source):
        """Returns the libraries that the program opens later; their functions are recorded, too."""
        return []

    def session(self, work):
        """Yields the program's arguments, run by run; what it works on changes in between."""
        raise NotImplementedError


class Git(Project):
    package, program = "git", "git"
    environment = {"GIT_CONFIG_NOSYSTEM": "1", **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
                                                  for what, value in (("NAME", "demo"), ("EMAIL", "demo@localhost"))}}
    WITHOUT = [*(f"NO_{what}=1" for what in ("CURL", "EXPAT", "GETTEXT", "TCLTK", "PERL", "PYTHON", "OPENSSL")), "NO_REGEX=NeedsStartEnd"]
    COMMANDS = ["init -q .", "add .", "-c gc.auto=0 commit -q -m one", "diff", "-c gc.auto=0 commit -q -am two", "log -p", "blame f1", "branch side",
                "checkout -q side", "gc -q", "fsck", "grep 7"]

    def build(self, source, run):
        run("make", f"-j{os.cpu_count()}", "CFLAGS=" + COUNTED, "LDFLAGS=--coverage", *self.WITHOUT, "git")

    def session(self, work):
        for n in range(3):
            pathlib.Path(work, f"f{n}").write_text("\n".join(str(k) for k in range(n, 100)))
        for command in self.COMMANDS:
            if command == "diff":
                pathlib.Path(work, "f1").write_text("\n".join(str(k) for k in range(2, 90)))
            yield command.split()


class Python(Project):
    package, program = "python3.11", "python"
    environment = {"PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "1"}
    SCRIPTS = os.path.join(HERE, "python")

    def build(self, source, run):
        run("./configure", "--without-ensurepip", "CFLAGS=" + COUNTED, "LDFLAGS=--coverage")
        run("make", f"-j{os.cpu_count()}", "python", "sharedmods")

    def libraries(self, source):
        return sorted(str(path) for path in pathlib.Path(source, "build").glob("lib.*/*.so"))

    def session(self, work):
        for name in sorted(os.listdir(self.SCRIPTS)):
            if name.endswith(".py"):
                shutil.copy(os.path.join(self.SCRIPTS, name), work)
                yield [name]
        yield ["-m", "compileall", "-q", "."]
        yield ["-m", "json.tool", "--sort-keys", os.devnull]  # it is no JSON: the command fails
        yield ["-c", "print('open"]  # a syntax error
        yield ["-I", "-X", "importtime", "-m", "tokenize", "threads.py"]


class Ninja(Project):
    package, program = "ninja-build", "ninja"
    RULES = """\
pool one
  depth = 1
rule compile
  command = gcc -c -MMD -MF $out.d $in -o $out
  depfile = $out.d
  deps = gcc
  description = compile $in
rule link
  command = gcc @$out.rsp -o $out
  rspfile = $out.rsp
  rspfile_content = $in
  pool = one
rule make
  command = cmp -s $in $out || cp $in $out
  restat = 1
rule fail
  command = echo it fails; exit 3
build main.o: compile main.c || config.h
build other.o: compile other.c || config.h
build config.h: make config.in
build app: link main.o other.o
build broken: fail main.c
build all: phony app
default all
"""

    def build(self, source, run):
        run(sys.executable, "./configure.py", "--bootstrap", CXX="g++", CFLAGS=COUNTED, LDFLAGS="--coverage")

    def session(self, work):
        def write(name, text):
            pathlib.Path(work, name).write_text(text)
        write("build.ninja", self.RULES)
        write("config.in", "#define VALUE 1\n")
        write("main.c", '#include "config.h"\nint other(void);\nint main(void) { return other() - VALUE; }\n')
        write("other.c", '#include "config.h"\nint other(void) { return VALUE; }\n')
        yield ["-n", "-v"]
        yield ["-j2"]
        yield []  # nothing is left to do
        write("other.c", '#include "config.h"\nint other(void) { return 2 * VALUE; }\n')
        yield ["-d", "explain", "-d", "stats", "-v"]
        write("config.in", "#define VALUE 2\n")
        yield ["app"]
        yield ["-k", "0", "broken", "all"]
        for tool in ("graph", "targets all", "deps", "query app", "compdb compile", "commands app", "rules", "inputs app", "missingdeps", "recompact",
                     "clean other.o", "cleandead", "no-such-tool"):
            yield ["-t", *tool.split()]
        write("build.ninja", self.RULES.replace("build all: phony app", "build all: phony nothing"))
        yield []
        write("build.ninja", self.RULES + "build again: no_such_rule app\n")
        yield []
        yield ["-C", "/nonexistent"]
        yield ["--help"]


PROJECTS = {project.package: project for project in (Git(), Python(), Ninja())}
