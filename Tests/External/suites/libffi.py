"""libffi's tests: each a program of its own, in the calling conventions that it is for. DejaGnu would only start them."""
import concurrent.futures
import glob
import os
import platform
import subprocess

from sources import autotools, clean
from suites.autotools import BUILDING
from trial import Suite, Test, Unavailable


def sources(place):
    """(name, file, options) of each program."""
    for path in sorted(glob.glob(place.source + "/testsuite/libffi.*/*.c*")):
        with open(path, errors="replace") as file:
            text = file.read()
        name = os.path.relpath(path, place.source + "/testsuite").removeprefix("libffi.")
        if "dg-do run" not in text and "main" not in text:
            continue
        yield name, path, []
        if "ABI_NUM" in text and platform.machine() == "x86_64":
            yield name + " of Windows", path, ["-DABI_NUM=FFI_GNUW64", "-DABI_ATTR=__MSABI__"]


def program(place, name):
    return os.path.join(place.folder, "programs", name.replace("/", "-").replace(" ", "-"))


def build(place):
    autotools(place)
    os.makedirs(os.path.join(place.folder, "programs"))
    library = library_folder(place)

    def compiled(one):
        name, path, options = one
        return subprocess.run(["g++" if path.endswith(".cc") else "gcc", "-O2", "-w", *options, f"-I{library}/../include", f"-I{place.source}/include", f"-I{library}/..",
                               f"-I{os.path.dirname(path)}", path, "-o", program(place, name), f"-L{library}", "-lffi", "-lpthread"],
                              capture_output=True, text=True, env=clean(), timeout=300)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        logs = [done.stderr for done in pool.map(compiled, list(sources(place))) if done.returncode]
    with open(os.path.join(place.folder, "log"), "a") as file:
        file.write("\n".join(logs))


def library_folder(place):
    found = glob.glob(place.source + "/**/.libs/libffi.so", recursive=True)
    if not found:
        raise Unavailable(f"no libffi.so was built in {place.source}")
    return os.path.dirname(found[0])


def tests(place):
    library = library_folder(place)
    for name, path, _ in sources(place):
        if os.path.exists(program(place, name)):  # some are for other architectures
            # These print addresses; each line has to be there twice.
            twice = ["sh", "-c", '"$0" > {tmp}/lines && LC_ALL=C uniq -u {tmp}/lines'] if name.startswith("bhaible/") else []
            yield Test(name, [*twice, program(place, name)], environment={"LD_LIBRARY_PATH": library}, output=True)


suites = [Suite("libffi", "libffi's own tests", BUILDING, tests, build, source="libffi")]
