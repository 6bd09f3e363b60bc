"""Installs what programs need: Debian's packages, and PyPI's into an environment of the cache."""
import os
import shutil
import subprocess
import sys


def as_root():
    """The words before a command that needs root; None where nobody here can have it."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and (sys.stderr.isatty() or subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0):
        return ["sudo"]
    return None


def debian(names):
    """None when all is installed now, else why not."""
    if not names:
        return None
    install = ["apt-get", "install", "--no-install-recommends", *names]
    root = as_root()
    if root is None:
        return f"only root can install packages; let an administrator run: apt-get update && {' '.join(install)}"
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive"]
    wait = ["-o", "DPkg::Lock::Timeout=600"]  # a just started machine may be busy with upgrades of its own
    subprocess.run([*root, *quiet, "apt-get", "update", "-qq", *wait], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=1200)
    done = subprocess.run([*root, *quiet, *install, "-y", "-qq", *wait], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600)
    return None if done.returncode == 0 else f"{' '.join(install)} failed: {(done.stdout.strip().splitlines() or [''])[-1]}"


def debian_each(names):
    """All at once, or, where one of them is not among this system's packages, one at a time; why some were not installed."""
    return [] if not debian(names) else [reason for name in names if (reason := debian([name]))]


def python(cache, names, install):
    """None when the cache's Python has these packages now, else why not."""
    folder = os.path.join(cache, "python")
    interpreter = os.path.join(folder, "bin/python3")
    stamps = [os.path.join(folder, ".has-" + name) for name in names]
    if all(os.path.exists(stamp) for stamp in stamps) and os.path.exists(interpreter):
        return None
    if not install:
        return f"{' '.join(names)} of PyPI not installed; --install does it"
    if not os.path.exists(interpreter):
        done = subprocess.run([os.path.realpath(sys.executable), "-m", "venv", folder], capture_output=True, text=True, timeout=600)
        if done.returncode:
            return f"no virtual environment: {(done.stderr or done.stdout).strip()[-200:]}"
    done = subprocess.run([interpreter, "-m", "pip", "install", "-q", *names], capture_output=True, text=True, timeout=1800)
    if done.returncode:
        return f"pip install {' '.join(names)} failed: {done.stderr.strip()[-200:]}"
    for stamp in stamps:
        with open(stamp, "w"):
            pass
    return None
