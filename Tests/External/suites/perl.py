"""Perl's own tests, file by file, against the installed perl: signals, processes, threads, exceptions, extensions in C."""
import glob
import os
import re

import said
from sources import printed
from trial import Suite

FOLDERS = ("t/base", "t/cmd", "t/comp", "t/io", "t/mro", "t/op", "t/opbasic", "t/re", "t/run", "t/uni", "lib", *(f"{name}/t" for name in (
    "cpan/File-Temp cpan/IO-Socket-IP cpan/IPC-SysV cpan/Scalar-List-Utils cpan/Socket cpan/autodie dist/Carp dist/IO dist/Storable dist/Thread-Queue dist/Time-HiRes "
    "dist/threads dist/threads-shared ext/B ext/File-Glob ext/Hash-Util-FieldHash ext/IPC-Open3 ext/POSIX ext/PerlIO-scalar ext/PerlIO-via ext/Pod-Html ext/re").split()))
# One in EVERY files of all of them, and those whose names speak of what an agent might disturb.
EVERY = 5
ALWAYS = re.compile(r"alarm|caller|die|exec|exit|fork|kill|lex_assign|magic|open|pipe|proc|sel|shm|sem|msg|sig|sleep|socket|sys|thread|time|wait|warn")
# These compute for minutes, or look at perl's own sources.
OMITTED = re.compile(r"uniprops|re_fold|fold_grind|pat_psycho|speed|stclass_threads|bigmem|cproto|charset|decomp")


def build(directory):
    """A tree as perl's own build has it, with links to what is installed in place of what it makes."""
    kept = os.path.join(directory.source, "lib")
    os.rename(kept, kept + ".source")
    os.mkdir(kept)
    # Folders that perl searches first are copied last, over the others.
    for path in printed("perl", "-e", 'print join "\\n", reverse grep m{^/usr/(lib|share)/}, @INC').splitlines():
        if re.search(r"/perl(-base|/[\d.]+)$", path) and os.path.isdir(path):
            directory.run(["cp", "-rs", "--remove-destination", os.path.realpath(path) + "/.", kept])
    directory.run(["sh", "-c", 'cd "$0.source" && find . -name "*.t" -exec cp --parents {} "$0" ";"', kept])
    os.symlink("/usr/bin/perl", os.path.join(directory.source, "t/perl"))


def switches(path):
    with open(path, errors="replace") as file:
        found = re.search(r"^#!.*\bperl.*\s-\w*([tT])", file.readline())
    return ["-" + found[1]] if found else []


def tests(directory):
    paths = [path for folder in FOLDERS for path in sorted(glob.glob(f"{directory.source}/{folder}/*.t"))]
    for path in [path for n, path in enumerate(paths) if (n % EVERY == 0 or ALWAYS.search(os.path.basename(path))) and not OMITTED.search(path)]:
        name = os.path.relpath(path, directory.source)
        parts = name.split("/")
        if parts[0] in ("t", "lib"):
            where, init = "t", [] if parts[1] in ("base", "comp", "run") else ["-I..", "-MTestInit" if parts[0] == "t" else "-MTestInit=U1"]
            script = os.path.relpath(name, "t")
        else:
            where, init, script = "/".join(parts[:2]), ["-I../..", "-MTestInit=U2T"], "/".join(parts[2:])
        command = [os.path.join(os.path.relpath("t", where), "perl"), *init, *switches(path), script]
        yield said.test(directory, "tap_numbers", name.removesuffix(".t"), command, where=os.path.join(directory.source, where), timeout=400)


suites = [Suite("perl", "Perl's own tests", (("perl", "perl"), ("dpkg-source", "dpkg-dev")), tests, build, source="perl")]
