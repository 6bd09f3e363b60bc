"""The packages that scripts/package makes: what is in them, what it needs of a system, and that it works from there.

Makes them first, in .build/package, unless TRACER_PACKAGES says where some are. In a root file system that holds nothing but
the archive, glibc and a program the tool must record and report; scripts/distributions does it in whole systems.
"""
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest

import pytest
from once import ROOT, once

MAKE = os.path.join(ROOT, "scripts/package")
LIMIT = 3600  # seconds; it compiles everything when scripts/build has not done it before
GIVEN = os.environ.get("TRACER_PACKAGES")

pytestmark = pytest.mark.xdist_group("packages")  # made once, for all tests of this file

COMMANDS = ["record", "startup", "report", "tree", "diff", "info"]  # some that have manual pages
FILES = {"bin/tracer": 0o755, "lib/libtracer.so": 0o755, "lib/libtracer-audit.so": 0o755, "lib/libtracer-labels.so": 0o755, "include/tracer.h": 0o644,
         "share/tracer/tracer_startup.c": 0o644,
         "share/bash-completion/completions/tracer": 0o644, "share/fish/vendor_completions.d/tracer.fish": 0o644,
         "share/doc/tracer/copyright": 0o644, "share/doc/tracer/changelog.gz": 0o644}

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (int i = 0; i < 100; i++) free(malloc(i));
    return puts("done") < 0;
}
"""


def setUpModule():
    global SCRATCH, PACKAGES, VERSION, ARCHIVE, DEB, TREE, DEB_TREE
    SCRATCH = tempfile.mkdtemp(prefix="package-tests-")
    PACKAGES = os.path.abspath(GIVEN or os.path.join(ROOT, ".build/package"))
    if not GIVEN:
        glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
        newest = re.search(r"newest_for_tool=([\d.]+)", pathlib.Path(MAKE).read_text()).group(1)
        if [int(part) for part in glibc.split(".")] > [int(part) for part in newest.split(".")]:
            raise unittest.SkipTest(f"packages are made with glibc {newest} or older, and here is {glibc}")
        once("packages", [MAKE], limit=LIMIT)
    with open(os.path.join(ROOT, "Sources/Format/CTraceLayout/include/version.h")) as header:
        VERSION = re.search(r'#define TRACER_VERSION "(.*)"', header.read()).group(1)
    ARCHIVE = os.path.join(PACKAGES, f"tracer-{VERSION}-linux-x86_64.tar.gz")
    DEB = os.path.join(PACKAGES, f"tracer_{VERSION}_amd64.deb")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(SCRATCH)
    TREE = os.path.join(SCRATCH, f"tracer-{VERSION}-linux-x86_64")
    subprocess.run(["dpkg-deb", "--extract", DEB, os.path.join(SCRATCH, "deb")], check=True)
    DEB_TREE = os.path.join(SCRATCH, "deb/usr")


def tearDownModule():
    shutil.rmtree(SCRATCH)


def output(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=300, **options).stdout


def deb_members():
    """Yields the members of the Debian package's tree, and of its control archive."""
    for part in ["--fsys-tarfile", "--ctrl-tarfile"]:
        data = subprocess.run(["dpkg-deb", part, DEB], check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            yield archive.getmembers()


def members():
    with tarfile.open(ARCHIVE) as archive:
        yield archive.getmembers()
    yield from deb_members()


def read(*path):
    return pathlib.Path(*path).read_bytes()


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path)))


def glibc(path):
    """The newest version of glibc's symbols that it uses."""
    versions = re.findall(r"GLIBC_(\d+(?:\.\d+)+)", output("readelf", "-VW", path))
    return max((tuple(map(int, version.split("."))) for version in versions), default=(0,))


def digests(directory):
    return {name: hashlib.sha256(read(directory, name)).hexdigest() for name in sorted(os.listdir(directory))}


class Contents(unittest.TestCase):
    def test_both_have_every_file(self):
        for tree in [TREE, DEB_TREE]:
            for name, mode in FILES.items():
                with self.subTest(tree=tree, file=name):
                    self.assertGreater(os.path.getsize(os.path.join(tree, name)), 0)
                    self.assertEqual(os.stat(os.path.join(tree, name)).st_mode & 0o7777, mode)
        # zsh looks in one folder for local completions, and in another for those of Debian's packages.
        self.assertTrue(read(TREE, "share/zsh/site-functions/_tracer").startswith(b"#compdef tracer"))
        self.assertTrue(read(DEB_TREE, "share/zsh/vendor-completions/_tracer").startswith(b"#compdef tracer"))

    def test_a_shell_completes_the_program_after_two_dashes(self):
        script = """source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            _tracer_or_program tracer "${COMP_WORDS[COMP_CWORD]}" "" && printf '%s\\n' "${COMPREPLY[@]}" """

        def completed(*words):
            file = os.path.join(TREE, "share/bash-completion/completions/tracer")
            return output("bash", "--norc", "-c", script, "bash", file, "tracer", *words).split("\n")

        self.assertIn("--max-depth", completed("record", "--max"))
        self.assertIn("env", completed("record", "--max-depth", "3", "--", "env"))
        self.assertIn("/etc/passwd", completed("record", "--", "ls", "/etc/passw"))
        self.assertNotIn("--max-depth", completed("record", "--", "ls", "--max"))
        self.assertIn(b"_tracer_program", read(TREE, "share/zsh/site-functions/_tracer"))
        self.assertIn(b"__tracer_complete_program", read(TREE, "share/fish/vendor_completions.d/tracer.fish"))

    def test_they_have_the_same_files(self):
        for name in ["bin/tracer", "lib/libtracer.so", "lib/libtracer-audit.so", "lib/libtracer-labels.so", "include/tracer.h", "share/doc/tracer/copyright"]:
            self.assertEqual(read(TREE, name), read(DEB_TREE, name), name)
        pages = sorted(os.listdir(os.path.join(TREE, "share/man/man1")))
        self.assertEqual([page + ".gz" for page in pages], sorted(os.listdir(os.path.join(DEB_TREE, "share/man/man1"))))
        for page in pages:
            self.assertEqual(read(TREE, "share/man/man1", page), gzip.decompress(read(DEB_TREE, "share/man/man1", page + ".gz")))

    def test_everything_is_roots_and_of_the_time_of_the_commit(self):
        for archive in members():
            self.assertEqual({(member.uid, member.gid, member.uname, member.gname) for member in archive}, {(0, 0, "root", "root")})
            self.assertEqual(len({member.mtime for member in archive}), 1)
            for member in archive:
                self.assertFalse(member.mode & 0o7022, f"{member.name} can be written by others, or is setuid")

    def test_checksums_are_of_every_file(self):
        with tarfile.open(fileobj=io.BytesIO(subprocess.run(["dpkg-deb", "--ctrl-tarfile", DEB], check=True, stdout=subprocess.PIPE).stdout)) as control:
            lines = control.extractfile("./md5sums").read().decode().splitlines()
        sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
        files = {os.path.relpath(os.path.join(folder, name), os.path.dirname(DEB_TREE)) for folder, _, names in os.walk(DEB_TREE) for name in names}
        self.assertEqual(set(sums), files)
        for name, digest in sums.items():
            self.assertEqual(hashlib.md5(read(os.path.dirname(DEB_TREE), name)).hexdigest(), digest, name)

    def test_everything_linked_in_has_a_licence(self):
        listed = re.findall(r"^    (\S+) ", read(TREE, "share/doc/tracer/copyright").decode(), re.M)
        for name in ["swift", "icu", "swift-argument-parser", "hdrhistogram-swift", "libiberty-dev", "libdw-dev", "libsqlite3-dev"]:
            self.assertIn(name, listed)
        self.assertTrue([name for name in listed if name.startswith("libstdc++")])
        self.assertTrue([name for name in listed if name.startswith("libzydis")])
        for name in listed:
            text = read(TREE, "share/doc/tracer/licences", name).decode()
            self.assertGreater(len(text), 500, name)
            for other in re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text):
                self.assertTrue(os.path.exists(os.path.join(TREE, "share/doc/tracer/licences", other)), f"{name} refers to {other}")


class Needs(unittest.TestCase):
    def test_the_tool_needs_glibc_alone_and_not_a_newer_one_than_debian_12s(self):
        tool = os.path.join(TREE, "bin/tracer")
        self.assertLessEqual(needed(tool), {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"})
        self.assertLessEqual(glibc(tool), (2, 36))

    def test_the_agent_needs_libc_alone_and_not_a_newer_one_than_2_28(self):
        agent = os.path.join(TREE, "lib/libtracer.so")
        self.assertEqual(needed(agent), {"libc.so.6"})
        self.assertLessEqual(glibc(agent), (2, 28))

    def test_the_decoder_needs_libc_alone_and_not_a_newer_one(self):
        for tree in [TREE, DEB_TREE]:
            [name] = os.listdir(os.path.join(tree, "lib/tracer"))
            self.assertRegex(name, r"^libZydis\.so\.\d+\.\d+$")
            library = os.path.join(tree, "lib/tracer", name)
            self.assertIn(f"[{name}]", output("readelf", "-dW", library))
            self.assertEqual(needed(library), {"libc.so.6"})
            self.assertLessEqual(glibc(library), (2, 36))

    def test_the_audit_library_needs_nothing(self):
        self.assertEqual(needed(os.path.join(TREE, "lib/libtracer-audit.so")), set())
        self.assertEqual(needed(os.path.join(TREE, "lib/libtracer-labels.so")), set())

    def test_dpkg_knows_what_is_needed(self):
        found = glibc(os.path.join(TREE, "bin/tracer"))
        self.assertEqual(output("dpkg-deb", "--field", DEB, "Depends").strip(), f"libc6 (>= {'.'.join(map(str, found))})")
        self.assertEqual(output("dpkg-deb", "--field", DEB, "Version").strip(), VERSION)
        self.assertEqual(output("dpkg-deb", "--field", DEB, "Architecture").strip(), "amd64")

    def test_nothing_points_to_the_machine_that_built_it(self):
        swift = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("swiftc") or "/opt/swift/usr/bin/swiftc")))
        for folder, _, names in os.walk(TREE):
            for name in names:
                path = os.path.join(folder, name)
                for prefix in [ROOT, swift]:
                    self.assertNotIn((prefix + "/").encode(), read(path), f"{path} names {prefix}")
        for name in ["bin/tracer", "lib/libtracer.so", "lib/libtracer-audit.so", "lib/libtracer-labels.so"]:
            self.assertNotRegex(output("readelf", "-dW", os.path.join(TREE, name)), r"\((RPATH|RUNPATH)\)")


class Use(unittest.TestCase):
    def test_version_shows_the_commit_and_its_day(self):
        said = output(os.path.join(TREE, "bin/tracer"), "--version").strip()
        self.assertRegex(said, rf"^tracer {re.escape(VERSION)} \([0-9a-f]{{8}}, \d{{4}}-\d\d-\d\d(, modified)?\)$")
        commit = re.search(r"\(([0-9a-f]{8})", said).group(1)
        named = re.search(r"^tracer (\S+), from commit ([0-9a-f]{40})$", read(TREE, "share/doc/tracer/copyright").decode(), re.M)
        self.assertEqual((named.group(1), named.group(2)[:8]), (VERSION, commit))
        if not GIVEN:
            self.assertEqual(commit, output("git", "-C", ROOT, "rev-parse", "HEAD")[:8])

    def test_manual_pages_show_the_version_and_the_day(self):
        day = re.search(r"\d{4}-\d\d-\d\d", output(os.path.join(TREE, "bin/tracer"), "--version")).group()
        for page in ["tracer"] + [f"tracer-{command}" for command in COMMANDS]:
            first = read(TREE, "share/man/man1", page + ".1").decode().splitlines()[0]
            self.assertEqual(first, f'.TH {page.upper()} 1 "{day}" "tracer {VERSION}" "tracer"')

    def test_it_records_and_reports_with_glibc_alone(self):
        """In a root file system with the archive, glibc's loader, libc and libm, the program, and nothing else."""
        root = os.path.join(SCRATCH, "root")
        shutil.copytree(TREE, os.path.join(root, "tracer"))
        for folder in ["proc", "tmp", "dev", "lib64"]:
            os.mkdir(os.path.join(root, folder))
        source = os.path.join(SCRATCH, "program.c")
        pathlib.Path(source).write_text(PROGRAM)
        subprocess.run(["gcc", "-O0", "-fno-builtin", "-o", os.path.join(root, "program"), source], check=True)
        loader = re.search(r"interpreter: (\S+)\]", output("readelf", "-lW", os.path.join(root, "program"))).group(1)
        shutil.copy(loader, os.path.join(root, "lib64"))
        libraries = output("ldd", os.path.join(TREE, "bin/tracer"))
        for path in re.findall(r"=> (/\S+)", libraries):
            os.makedirs(os.path.join(root, os.path.dirname(path).lstrip("/")), exist_ok=True)
            shutil.copy(path, os.path.join(root, path.lstrip("/")))

        def inside(*command):
            return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", f"--root={root}", "--mount-proc", *command],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, env={})

        alone = inside("/program")
        if alone.returncode != 0:
            self.skipTest(f"no root file system of one's own here: {alone.stderr.strip()}")
        done = inside("/tracer/bin/tracer", "record", "-o", "/tmp/trace", "--", "/program")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        report = inside("/tracer/bin/tracer", "report", "/tmp/trace")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertRegex(report.stdout, r"(?m)^ *100 .* malloc +libc\.so\.6$")
        self.assertRegex(report.stdout, r"(?m)^ *1 .* puts +libc\.so\.6$")
        export = inside("/tracer/bin/tracer", "export", "/tmp/trace", "--format", "perfetto", "-o", "/tmp/out")
        self.assertEqual(export.returncode, 0, export.stderr)
        # The decoder that the package brings; without it one line says what is missing.
        plan = inside("/tracer/bin/tracer", "plan", "/program")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertRegex(plan.stdout, r"jump5.* refused +module\n")
        shutil.rmtree(os.path.join(root, "tracer/lib/tracer"))
        plan = inside("/tracer/bin/tracer", "plan", "/program")
        self.assertEqual((plan.returncode, plan.stdout, plan.stderr.count("\n")), (1, "", 1))
        self.assertRegex(plan.stderr, r"^tracer: .*libZydis\.so\.\d+\.\d+ was not found: install libzydis\d")


@unittest.skipIf(GIVEN, "TRACER_PACKAGES: they are not made here")
class Making(unittest.TestCase):
    @pytest.mark.thorough("links and packs everything once more; a change of what goes into the packages is seen in them")
    def test_again_they_are_the_same_bytes(self):
        again = os.path.join(SCRATCH, "again")
        subprocess.run([MAKE, again], check=True, timeout=LIMIT, stdout=sys.stderr)
        first = digests(PACKAGES)
        for name, digest in digests(again).items():
            self.assertEqual(digest, first[name], name)

    def test_interrupted_they_are_not_there(self):
        folder = os.path.join(SCRATCH, "interrupted")
        made = subprocess.Popen([MAKE, folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        # Everything is compiled then; linking and packing begin.
        for line in made.stderr:
            if "Build complete!" in line:
                break
        os.killpg(made.pid, signal.SIGINT)
        made.stderr.read()
        self.assertEqual(made.wait(timeout=LIMIT), 130)
        self.assertEqual(os.listdir(folder), [])

    def test_wrong_use_is_an_error(self):
        for arguments in [["--what"], ["one", "two"]]:
            done = subprocess.run([MAKE, *arguments], text=True, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"\Apackage: .*\n\Z")
