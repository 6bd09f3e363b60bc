"""libffi's tests: each a program of its own, in the calling conventions that it is for. DejaGnu would only start them."""
import glob
import os
import pathlib
import platform

from sources import autotools, compiled
from suites.autotools import BUILDING
from trial import Suite, Test, Unavailable


def sources(directory):
    """(name, file, options) of each program."""
    for path in sorted(glob.glob(directory.source + "/testsuite/libffi.*/*.c*")):
        text = pathlib.Path(path).read_text(errors="replace")
        name = os.path.relpath(path, directory.source + "/testsuite").removeprefix("libffi.")
        if "dg-do run" not in text and "main" not in text:
            continue
        yield name, path, []
        if "ABI_NUM" in text and platform.machine() == "x86_64":
            yield name + " of Windows", path, ["-DABI_NUM=FFI_GNUW64", "-DABI_ATTR=__MSABI__"]


def program(directory, name):
    return os.path.join(directory.folder, "programs", name.replace("/", "-").replace(" ", "-"))


def build(directory):
    autotools(directory)
    os.makedirs(os.path.join(directory.folder, "programs"))
    library = library_folder(directory)

    def command(name, path, options):
        return ["g++" if path.endswith(".cc") else "gcc", "-O2", "-w", *options, f"-I{library}/../include", f"-I{directory.source}/include", f"-I{library}/..",
                f"-I{os.path.dirname(path)}", path, "-o", program(directory, name), f"-L{library}", "-lffi", "-lpthread"]

    with open(os.path.join(directory.folder, "log"), "a") as file:
        file.write("\n".join(filter(None, compiled([command(*one) for one in sources(directory)], directory.folder))))


def library_folder(directory):
    found = glob.glob(directory.source + "/**/.libs/libffi.so", recursive=True)
    if not found:
        raise Unavailable(f"no libffi.so was built in {directory.source}")
    return os.path.dirname(found[0])


def tests(directory):
    library = library_folder(directory)
    for name, path, _ in sources(directory):
        if os.path.exists(program(directory, name)):  # some are for other architectures
            # These print addresses; each line has to be there twice.
            twice = ["sh", "-c", '"$0" > {tmp}/lines && LC_ALL=C uniq -u {tmp}/lines'] if name.startswith("bhaible/") else []
            yield Test(name, [*twice, program(directory, name)], environment={"LD_LIBRARY_PATH": library}, output=True)


suites = [Suite("libffi", "libffi's own tests", BUILDING, tests, build, source="libffi")]
