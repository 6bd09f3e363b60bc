"""Clean root file systems: made once by mmdebstrap, kept in a cache, entered in name spaces of their own.

A root is whole when its folder has the final name: it is made beside it and renamed. Who makes one holds its lock alone,
who uses one shares it, so that two runs neither make one twice nor take one away from under the other.
"""
import contextlib
import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from harness import Failed, Run, Skipped

SUITES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13", "sid": "Debian sid"}
STAMP = "etc/tracer-root.json"  # in a root: what it was made with
APT_HELPER = "/usr/lib/apt/apt-helper"
# Files that no program needs here and that take long to unpack.
EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*")


@dataclass
class Root:
    name: str
    path: str
    packages: list
    made: str
    title: str = ""
    glibc: str = ""


# -- rights ---------------------------------------------------------------------------------------------------------------
def become_root():
    """Mounts, chroot and files of many owners need root: by sudo, or in a name space of users where the kernel gives one
    and the user has a range of ids. Returns when it is root; else starts this program again, or ends it."""
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"  # chroot is there
    if os.geteuid() == 0:
        return
    kept = [f"{name}={os.environ[name]}" for name in ("HOME", "PATH", "TMPDIR", "XDG_CACHE_HOME", "QEMU", "http_proxy", "https_proxy", "no_proxy")
            if name in os.environ]
    again = ["env", *kept, sys.executable, *sys.argv]
    for way in (["sudo", "-n"], ["unshare", "--map-root-user", "--map-auto", "--mount"]):
        if shutil.which(way[0]) and subprocess.run([*way, "true"], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0:
            os.execvp(way[0], [*way, *again])
    if shutil.which("sudo") and sys.stdin.isatty():
        os.execvp("sudo", ["sudo", *again])
    sys.exit("distributions: making and entering a root file system needs root: run it as root, allow this user sudo "
             "(it asks for a password, which needs a terminal), or give the user a range of ids in /etc/subuid and install uidmap")


def missing_tools(*needs):
    """A line for what is not installed, or None."""
    lacking = [f"{tool} (package {package})" for tool, package in needs if not (shutil.which(tool) or os.path.exists(tool))]
    return f"distributions: not installed: {', '.join(lacking)}" if lacking else None


# -- mirrors --------------------------------------------------------------------------------------------------------------
@functools.cache
def mirror(origin="Debian"):
    """The one that this machine's apt uses for its own system."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(CODENAME)|$(REPO_URI)", "Created-By: Packages"],
                          capture_output=True, text=True)
    for line in done.stdout.splitlines():
        found, suite, address = line.split("|")
        if found == origin and "-" not in suite:  # not its updates or security archive
            return address
    raise Skipped("apt knows no mirror of Debian here: run apt-get update, or give one by --mirror")


@functools.cache
def apt_options():
    """Proxies and the like: how this machine's apt reaches its mirrors."""
    done = subprocess.run(["apt-config", "dump"], capture_output=True, text=True)
    return [line for line in done.stdout.splitlines()
            if re.match(r"Acquire::(https?::|Check-|Retries|ForceIPv)", line) and not line.endswith('"";')]


def check_suite(address, suite):
    """Raises Skipped when the mirror does not have it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([APT_HELPER, "-o", "APT::Sandbox::User=root", "download-file", f"{address.rstrip('/')}/dists/{suite}/InRelease",
                               os.path.join(folder, "InRelease")], capture_output=True, text=True, timeout=120)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        if any("404" in line for line in said):
            raise Skipped(f"{address} has no {suite}")
        raise Failed(f"{address} does not answer for {suite}: {said[-1] if said else 'no reason was given'}")


# -- making ---------------------------------------------------------------------------------------------------------------
class Store:
    def __init__(self, folder, address=None, fresh=False, progress=print):
        self.folder, self.address, self.fresh, self.progress = folder, address, fresh, progress
        os.makedirs(folder, exist_ok=True)

    @contextlib.contextmanager
    def root(self, suite, packages, kind="", variant="essential", architecture=None):
        """A root of this suite that has at least these packages, for as long as the block runs."""
        name = "-".join(filter(None, [suite, kind]))
        with open(os.path.join(self.folder, name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            found = self.look(name, packages)
            if found is None:
                fcntl.flock(lock, fcntl.LOCK_EX)  # not a step: another may have made it meanwhile
                found = self.look(name, packages)
                if found is None:
                    self.make(name, suite, packages, variant, architecture)
                fcntl.flock(lock, fcntl.LOCK_SH)
                found = found or self.look(name, packages, new=True)
                if found is None:
                    raise Failed(f"the root {name} was replaced by another run; start again")
            yield found

    def look(self, name, packages, new=False):
        path = os.path.join(self.folder, name)
        try:
            with open(os.path.join(path, STAMP)) as file:
                stamp = json.load(file)
        except (OSError, ValueError):
            return None
        if not set(packages) <= set(stamp["packages"]) or (self.fresh and not new):
            return None
        return described(Root(name, path, stamp["packages"], stamp["made"]))

    def make(self, name, suite, packages, variant, architecture):
        if said := missing_tools(("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux"), (APT_HELPER, "apt")):
            raise Failed(said.removeprefix("distributions: "))
        address = self.address or mirror()
        check_suite(address, suite)
        began = time.monotonic()
        self.progress(f"{name}: making its root file system with {len(packages)} packages and what they need")
        path = os.path.join(self.folder, name)
        partial = path + ".partial"
        for old in (partial, path):
            remove(old)
        command = ["mmdebstrap", "--mode=root", f"--variant={variant}", "--include=" + ",".join(packages), "--dpkgopt=force-unsafe-io"]
        command += [f"--architectures={architecture}"] if architecture else []
        command += [f"--aptopt={option}" for option in apt_options()] + [f"--dpkgopt=path-exclude={glob}" for glob in EXCLUDED]
        done = subprocess.run([*APART, "--mount-proc", *command, suite, partial, "-"], input=f"deb {address} {suite} main\n", capture_output=True, text=True)
        if done.returncode:
            remove(partial)
            lines = [line for line in done.stderr.splitlines() if re.match(r"E: |dpkg: |W: .*(no longer|not found)| \S+ : ", line)] or done.stderr.splitlines()
            raise Failed(f"mmdebstrap made no {name} (status {done.returncode}):\n" + "\n".join(lines[-8:]))
        with open(os.path.join(partial, STAMP), "w") as file:
            json.dump({"packages": sorted(packages), "made": time.strftime("%Y-%m-%d"), "suite": suite}, file)
        os.rename(partial, path)
        self.progress(f"{name}: made in {time.monotonic() - began:.0f} s")


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        done = subprocess.run(["rm", "-rf", "--one-file-system", path], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{path} cannot be removed: {done.stderr.splitlines()[0]}")


@contextlib.contextmanager
def given_root(name, path):
    """An unpacked root or a tarball of one, as images of other distributions come."""
    if os.path.isdir(path):
        yield described(Root(name, os.path.realpath(path), [], ""))
        return
    with tempfile.TemporaryDirectory(prefix="tracer-root-") as folder:
        done = subprocess.run(["tar", "--numeric-owner", "-xpf", path, "-C", folder, "--exclude=./dev/*", "--exclude=dev/*"], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{path} is no tarball of a root file system: {done.stderr.strip().splitlines()[-1]}")
        os.chmod(folder, 0o755)
        yield described(Root(name, folder, [], ""))


def described(root):
    release = {}
    for name in ("etc/os-release", "usr/lib/os-release"):
        with contextlib.suppress(OSError), open(os.path.join(root.path, name)) as file:
            release = dict(line.rstrip().replace('"', "").split("=", 1) for line in file if "=" in line)
            break
    root.title = SUITES.get(root.name.split("-")[0]) or release.get("PRETTY_NAME", root.name)
    root.glibc = glibc(root.path)
    return root


def glibc(path):
    """Its version, as the file says it: it may be for another architecture."""
    for folder in ("lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib64", "usr/lib64"):
        with contextlib.suppress(OSError), open(os.path.join(path, folder, "libc.so.6"), "rb") as file:
            if match := re.search(rb"GNU C Library [^\n]*version (\d+\.\d+)", file.read()):
                return match[1].decode()
    return "?"


# A command after this prefix ends when this process ends, for whatever reason, with all of its children and mounts.
APART = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]


# -- entering -------------------------------------------------------------------------------------------------------------
# $1 is the root, which stays as it is: programs write to $2, their /tmp. With $3 it is a layer in memory that may change.
ENTER = r"""
root=$1 scratch=$2 change=$3; shift 3
if [ -n "$change" ]; then
    mount -t tmpfs none "$change"
    mkdir "$change/up" "$change/work" "$change/root"
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$change/up,workdir=$change/work" "$change/root"
    root=$change/root
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        if [ -e $file ]; then mkdir -p "$root${file%/*}"; rm -f "$root$file"; cp -L $file "$root$file"; fi
    done
else
    mount --bind "$root" "$root"
    mount -o remount,bind,ro "$root"
fi
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind "$scratch" "$root/tmp"
cd /
exec chroot "$root" /usr/bin/env -i -C /tmp/work "$@"
"""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp/home", "LC_ALL": "C.UTF-8",
               "TERM": "dumb", "TZ": "UTC", "XDG_RUNTIME_DIR": "/tmp/home"}


def scratch_folder(parent, name):
    """A folder that is /tmp of one run, under a name that says which."""
    path = os.path.join(parent, name)
    for folder in ("work", "home", "traces", "agent"):
        os.makedirs(os.path.join(path, folder))
    os.chmod(path, 0o1777), os.chmod(os.path.join(path, "home"), 0o700)
    return path


def enter(root, where, argv, environment=None, timeout=120, change=None, beside=None):
    """Runs a command there with nothing of this machine's environment. `change`: a folder, for a layer that may change. `beside`: returns
    a context manager for as long as it runs, given the id of the process that has all of it as its descendants."""
    words = [f"{name}={value}" for name, value in {**ENVIRONMENT, **(environment or {})}.items()]
    command = [*APART, "sh", "-euc", ENTER, "enter", root.path, where, change or "", *words, *argv]
    # To files: what a program leaves behind may hold its output open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        with beside(child.pid) if beside else contextlib.nullcontext():
            try:
                child.wait(timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                raise Failed(f"still running after {timeout} s")
        out.seek(0), err.seek(0)
        return Run(child.returncode, out.read(), err.read(), {})
