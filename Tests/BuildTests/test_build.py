"""However it is built, libtracer.so is the same file, and needs nothing but libc.

Builds in random order, in the ways that people build, and compares the agent after each with the one in .build/release. It does so
in a copy of the tree and of the finished build, which stands in the tree's place in a mount namespace of its own: paths are the same,
so that nothing is compiled that the way itself does not compile, and whoever uses .build/release meanwhile is not disturbed.

TRACER_SEED repeats an order; the seed is in what a failure says.
"""
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess

import pytest

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
AGENT = ".build/release/libtracer.so"
SWIFT = ["swift", "build", "--build-system", "native"]
LIMIT = 1200
# All of .build that builds use.
STATE = ["artifacts", "build.db", "checkouts", "plugin-tools.yaml", "plugins", "release", "release.yaml", "repositories",
         "workspace-state.json", os.path.join(f"{os.uname().machine}-unknown-linux-gnu", "release")]
# git's own folder stays the same; where .git is a file, as in a work tree, it names one elsewhere.
ENTER = 'mount --bind "$0/.git" "$1/.git" && mount --rbind "$1" "$0" && cd "$0" && shift && exec "$@"'


class Copy:
    """A copy of the tree and its build. Commands that run in it find it at the tree's own path."""

    def __init__(self, folder):
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout
        for name in listed.split("\0") + ["Package.resolved"] + [os.path.join(".build", name) for name in STATE]:
            if name and os.path.lexists(os.path.join(ROOT, name)):
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                subprocess.run(["cp", "-a", "--reflink=auto", os.path.join(ROOT, name), os.path.join(folder, name)], check=True)
        git = os.path.join(folder, ".git")
        if os.path.isdir(os.path.join(ROOT, ".git")):
            os.mkdir(git)
        else:
            open(git, "w").close()

    def command(self, *command):
        return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", ENTER, ROOT, self.folder, *command]

    def run(self, *command):
        done = subprocess.run(self.command(*command), capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"

    def edit(self, path):
        os.utime(os.path.join(self.folder, path))

    def edited(self, path):
        self.edit(path)
        self.run("scripts/build")

    def interrupted(self):
        """Ctrl-C while something is compiled."""
        self.edit("Sources/Agent/TracerAgent/Agent.swift")
        self.edit("CSupport/state.c")
        build = subprocess.Popen(self.command("scripts/build"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 start_new_session=True)
        for line in build.stdout:
            if "Compiling" in line:
                os.killpg(build.pid, signal.SIGINT)
        build.wait(timeout=LIMIT)
        self.run("scripts/build")

    def agent(self):
        """Digest and needed libraries."""
        path = os.path.join(self.folder, AGENT)
        with open(path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
        return digest, re.findall(r"\(NEEDED\).*\[(.*)\]", text)


WAYS = {
    "scripts/build": lambda copy: copy.run("scripts/build"),
    "swift build -c release": lambda copy: copy.run("swift", "build", "-c", "release"),
    "the tool alone": lambda copy: copy.run(*SWIFT, "-c", "release", "--product", "tracer"),
    "the agent alone": lambda copy: copy.run(*SWIFT, "-c", "release", "--product", "libtracer.so"),
    "an edited file of the tool": lambda copy: copy.edited("Sources/tracer/Tracer.swift"),
    "an edited manifest": lambda copy: copy.edited("Package.swift"),
    "an interrupted build": lambda copy: copy.interrupted(),
}
LONG_WAYS = {
    "with the tests": lambda copy: copy.run("scripts/build", "--build-tests"),
    "a debug build with the tests": lambda copy: copy.run(*SWIFT, "--build-tests"),
    "an edited file of the agent": lambda copy: copy.edited("Sources/Agent/TracerAgent/Settings.swift"),
    "an edited file in C": lambda copy: copy.edited("CSupport/backtraces.c"),
}


@pytest.fixture
def copy(tmp_path):
    entered = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, text=True)
    if entered.returncode:
        pytest.skip(f"no mount namespace of one's own here: {entered.stderr.strip()}")
    yield Copy(str(tmp_path / "tree"))
    shutil.rmtree(tmp_path / "tree")


def check(copy, ways):
    seed = int(os.environ.get("TRACER_SEED") or random.randrange(1 << 16))
    first = copy.agent()
    assert first[1] == ["libc.so.6"]
    done = []
    for way in random.Random(seed).sample(list(ways), k=len(ways)):
        ways[way](copy)
        done.append(way)
        assert copy.agent() == first, f"seed {seed}, after {'; '.join(done)}"


def test_the_agent_is_the_same_file_however_it_is_built(copy):
    check(copy, WAYS)


@pytest.mark.thorough("builds everything once more, in debug, and the agent twice more; an interrupted build compiles both kinds of its files")
def test_it_is_the_same_beside_a_debug_build(copy):
    check(copy, {**WAYS, **LONG_WAYS})
