"""Installs what programs need: Debian's packages, and PyPI's into an environment of the cache."""
import os
import subprocess
import sys


def debian(names):
    """None when all is installed now, else why not."""
    if not names:
        return None
    if os.geteuid():
        return "only root can install packages"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet, timeout=600)
    done = subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600", *names],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=quiet, timeout=3600)
    return None if done.returncode == 0 else f"apt-get install {' '.join(names)} failed: {done.stdout.strip().splitlines()[-1:]}"


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
