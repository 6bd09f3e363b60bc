"""PostgreSQL's regression and isolation tests, case by case: each suite against a server of its own, which runs traced, as its clients do."""
import glob
import os
import shutil

import said
from trial import Suite

# The newest that is installed, of those that Debian has had.
VERSION = max((int(path.split("/")[4]) for path in glob.glob("/usr/lib/postgresql/*/bin/postgres")), default=15)
HOME = f"/usr/lib/postgresql/{VERSION}"
DRIVERS = HOME + "/lib/pgxs/src/test"
# Some tests call C functions that only they need, or those of two modules that are installed.
MODULES = ("refint", "autoinc")
# Hundreds of processes have a trace each: the regression tests run in parts, each with as many of the schedule's groups as have at most
# this many tests.
MOST = 60
# Tests that other groups need to have run first, by the schedule's own comments.
BEFORE = ("test_setup", "create_index", "create_misc", "create_view", "create_am")


def build(directory):
    directory.run(["gcc", "-O2", "-fPIC", "-shared", f"-I/usr/include/postgresql/{VERSION}/server", os.path.join(directory.source, "src/test/regress/regress.c"), "-o", "regress.so"])


def parts(schedule):
    """Lists of groups, each a list of names."""
    with open(schedule) as file:
        groups = [line.split()[1:] for line in file if line.startswith("test:")]
    part = []
    for group in groups:
        if sum(map(len, part)) + len(group) > MOST:
            yield part
            part = []
        part.append(group)
    yield part


def driven(directory, folder, name, kind, schedule):
    """A test of this schedule, against a server of its own."""
    driver = "pg_regress" if kind == "regress" else "pg_isolation_regress"
    return said.test(directory, "pg_regress", name, [f"{DRIVERS}/{kind}/{driver}", "--temp-instance={tmp}/instance", f"--inputdir={folder}/{kind}", "--outputdir={tmp}", f"--bindir={HOME}/bin",
                                                 f"--dlpath={folder}", f"--schedule={schedule}", "--no-locale", "--encoding=UTF8"],
                     environment={"PGCTLTIMEOUT": "600"}, unprivileged=True, timeout=1800)


def tests(directory):
    """A server refuses to be root's, hence all that it reads has to be where others can."""
    folder = os.path.join(directory.readable, "postgresql")
    shutil.copytree(os.path.join(directory.source, "src/test"), folder, ignore=shutil.ignore_patterns("perl", "recovery", "ssl", "modules"), dirs_exist_ok=True)
    for path in (os.path.join(directory.folder, "regress.so"), *(f"{HOME}/lib/{name}.so" for name in MODULES)):
        shutil.copy(path, folder)
    for part in parts(folder + "/regress/parallel_schedule"):
        names = [name for group in part for name in group]
        before = [] if "test_setup" in names else [[name] for name in BEFORE if name not in names]
        schedule = os.path.join(folder, f"from_{names[0]}")
        with open(schedule, "w") as file:
            file.writelines(f"test: {' '.join(group)}\n" for group in before + part)
        yield driven(directory, folder, f"regress from {names[0]}", "regress", schedule)
    yield driven(directory, folder, "isolation", "isolation", folder + "/isolation/isolation_schedule")


suites = [Suite("postgresql", "PostgreSQL's regression and isolation tests", (
    (HOME + "/bin/postgres", "postgresql"), (f"/usr/include/postgresql/{VERSION}/server/postgres.h", f"postgresql-server-dev-{VERSION}"), ("gcc", "gcc"), ("dpkg-source", "dpkg-dev")),
    tests, build, source=f"postgresql-{VERSION}", version=(HOME + "/bin/postgres", "--version"))]
