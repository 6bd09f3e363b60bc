"""LeakSanitizer and AddressSanitizer with its check for leaks, of gcc and clang: what they say of leaks, and their status."""
import os
import shutil

from sources import printed
from trial import Suite, Test, Unavailable

# Under a preloaded library gcc's shared runtime is not the first one, which it insists on.
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1:verify_asan_link_order=0", "LSAN_OPTIONS": "exitcode=23"}
KINDS = (("gcc", "leak", ()), ("gcc", "address", ()), ("gcc", "address static", ("-static-libasan",)),
         ("clang", "leak", ()), ("clang", "address", ()), ("clang", "address shared", ("-shared-libsan",)))


def file(directory, compiler, kind):
    return os.path.join(directory.folder, f"{compiler}-{kind.replace(' ', '-')}")


def build(directory):
    for compiler, kind, options in KINDS:
        if shutil.which(compiler):
            try:
                directory.run([compiler, "-O2", "-w", f"-fsanitize={kind.split()[0]}", *options, directory.program("leaks.c"), "-o", file(directory, compiler, kind)])
            except Unavailable:
                pass  # a compiler without that runtime: the others say what there is to say
    if not any(os.path.exists(file(directory, compiler, kind)) for compiler, kind, _ in KINDS):
        raise Unavailable("no compiler here has LeakSanitizer")


def tests(directory):
    for compiler, kind, options in KINDS:
        if not os.path.exists(file(directory, compiler, kind)):
            continue
        environment = dict(ENVIRONMENT)
        if "-shared-libsan" in options:
            environment["LD_LIBRARY_PATH"] = os.path.dirname(printed("clang", "-print-file-name=libclang_rt.asan-x86_64.so"))
        for argument, status in (("none", 0), ("leak", 23)):
            for thread in ((), ("thread",)):
                yield Test(", ".join((f"{compiler} {kind}", f"{'some' if status else 'none'} lost", *thread)), [file(directory, compiler, kind), argument, *thread],
                           environment=environment, status=status, output=True)


suites = [Suite("sanitizers", "LeakSanitizer and AddressSanitizer's check for leaks", (("gcc", "gcc"),), tests, build, programs="leaks.c", version=("gcc", "-dumpfullversion"))]
