"""The cache in which suites are built, each with its version, and Debian's source packages in it."""
import concurrent.futures
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

from trial import Unavailable

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")


class Directory:
    """`folder` is the suite's own and lives as long as what it is made of is the same; `source` is the unpacked package."""

    def __init__(self, suite, cache, readable):
        self.suite, self.cache = suite, cache
        self.readable = readable  # a folder that any user can read, for as long as the suite runs
        self.source = self.source_version = ""
        # A suite is made from its recipe and from programs of ours.
        key = hashlib.sha256()
        for path in [sys.modules[suite.tests.__module__].__file__, *sorted(glob.glob(os.path.join(PROGRAMS, suite.programs)) if suite.programs else [])]:
            key.update(path.encode() + pathlib.Path(path).read_bytes())
        self.key = key.hexdigest()[:12]
        self.folder = os.path.join(cache, suite.name)

    def build(self, say):
        """Once for each version of the sources; what was interrupted is begun anew."""
        if self.suite.source:
            self.source_version, archive = fetched(self.suite.source, self.cache, say)
        stamp = os.path.join(self.folder, "built")
        made_of = f"{self.source_version} {self.key}\n"
        if self.suite.source:
            self.source = os.path.join(self.folder, "source")
        if content(stamp) == made_of:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        if self.suite.build or self.suite.source:
            say("building")
        if self.suite.source:
            self.run(["dpkg-source", "--no-check", "-x", archive, self.source], where=self.folder)
        if self.suite.build:
            self.suite.build(self)
        pathlib.Path(stamp).write_text(made_of)

    def run(self, command, where="", environment=None, timeout=1800):
        """A step of building; what it writes is the log."""
        log = os.path.join(self.folder, "log")
        with open(log, "a") as file:
            file.write("$ " + " ".join(command) + "\n")
            file.flush()
            done = subprocess.run(command, cwd=where or self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=timeout,
                                  env={**clean(), **(environment or {})})
        if done.returncode:
            with open(log, errors="replace") as file:
                said = [line.strip() for line in file if re.search(r"\berror\b|not found|No such", line, re.I)]
            raise Unavailable(f"{command[0]} fails: {said[-1][:200] if said else f'status {done.returncode}'} (all of it: {log})")

    def program(self, *names):
        return os.path.join(PROGRAMS, *names)

    def readable_program(self, name):
        """Returns a copy of a program that any user can read."""
        path = os.path.join(self.readable, name)
        shutil.copy(self.program(name), path)
        os.chmod(path, 0o644)
        return path


def content(path):
    """"" of a file that is not there."""
    return pathlib.Path(path).read_text() if os.path.exists(path) else ""


def clean():
    """Returns our environment without what would steer a build."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("LD_", "TRACER_", "MAKE", "MFLAGS", "PYTHON", "CFLAGS", "LDFLAGS"))}, "LC_ALL": "C.UTF-8"}


def compiled(commands, where):
    """Runs compilers beside each other. Returns what each has said if it failed, or "", in their order."""
    def said(command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=where, env=clean(), stdin=subprocess.DEVNULL, timeout=300)
        except subprocess.TimeoutExpired:
            return "the compiler does not end"
        return done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(said, commands))


def printed(*command):
    done = subprocess.run(command, capture_output=True, text=True, env=clean(), stdin=subprocess.DEVNULL, timeout=120)
    return done.stdout.strip() if done.returncode == 0 else ""


def with_sources(text, kind):
    """A list of apt's, of source packages instead of binary ones."""
    if kind == ".sources":
        return re.sub(r"^Types:.*", "Types: deb-src", text, flags=re.M)
    return "".join(dict.fromkeys(re.sub(r"^\s*deb(-src)?\s", "deb-src ", line) for line in text.splitlines(True)))


def apt(cache):
    """Words for apt-get: sources of what this system has packages of, apart from the system's own lists."""
    folder = os.path.join(cache, "apt")
    parts = os.path.join(folder, "parts")
    shutil.rmtree(parts, ignore_errors=True)
    os.makedirs(parts)
    os.makedirs(os.path.join(folder, "lists/partial"), exist_ok=True)
    for path in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list"), *glob.glob("/etc/apt/sources.list.d/*.sources")]:
        try:
            text = pathlib.Path(path).read_text()
        except OSError:
            continue
        pathlib.Path(parts, os.path.basename(path)).write_text(with_sources(text, os.path.splitext(path)[1]))
    return ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={parts}", "-o", f"Dir::State::lists={folder}/lists",
            "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "-o", "APT::Sandbox::User=root"]


def versions(command, name):
    """All that the lists have: a server may not have the newest any more, or not yet."""
    said = subprocess.run(["apt-cache", *(word for word in command[1:] if word != "-qq"), "showsrc", name], capture_output=True, text=True, timeout=60).stdout
    return re.findall(r"^Version: (\S+)", said, re.M)


def fetched(name, cache, say):
    """(version, .dsc) of a source package that the cache has, or has now."""
    folder = os.path.join(cache, "sources", name)
    done = os.path.join(folder, "fetched")
    if not os.path.exists(done):
        say("fetching its sources")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        command = apt(cache)
        # A source that cannot be reached, or has no source packages, is no matter while the one that is wanted can be.
        said = subprocess.run([*command, "update"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600).stderr
        for wanted in [name, *(f"{name}={version}" for version in versions(command, name))]:
            got = subprocess.run([*command, "--download-only", "source", wanted], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                 timeout=600)
            if got.returncode == 0 and glob.glob(folder + "/*.dsc"):
                break
            for part in glob.glob(folder + "/*.dsc"):
                os.unlink(part)
        else:
            errors = re.findall(r"^[EW]: (.*)", got.stderr + said, re.M)
            raise Unavailable(f"apt-get source {name} fails: {errors[0][:200] if errors else got.stderr.strip()[-200:]}")
        pathlib.Path(done).touch()
    archive = glob.glob(folder + "/*.dsc")[0]
    return os.path.basename(archive).removesuffix(".dsc").partition("_")[2], archive


def make_variable(folder, name):
    """Returns the value of a variable in the Makefile of a configured source package, as words."""
    rule = f"print-it:\n\t@echo $({name})\n"
    done = subprocess.run(["make", "-s", "-f", "Makefile", "-f", "-", "print-it"], cwd=folder, input=rule, capture_output=True, text=True, env=clean(), timeout=60)
    return done.stdout.split()


def behind_libtool(folder, name):
    """The program that libtool's script of that name starts: not another shell and a dozen of its tools under the agent."""
    for path in (f".libs/lt-{name}", f".libs/{name}"):
        if os.path.exists(os.path.join(folder, path)):
            return os.path.join(folder, path)
    return os.path.join(folder, name)


def autotools(directory, *options):
    """Configured and built with shared libraries: calls between them and programs cross slots."""
    if not os.path.exists(os.path.join(directory.source, "configure")):
        directory.run(["autoreconf", "-fi"], where=directory.source)
    directory.run(["./configure", "--enable-shared", "--disable-static", "CFLAGS=-O2 -g", *options], where=directory.source)
    directory.run(["make"], where=directory.source)
