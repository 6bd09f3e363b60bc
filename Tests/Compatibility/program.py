"""One real program in realistic use: what it needs, how it is prepared, what it runs, and what must be the same.

A program is data; the files in families/ declare them. `run` is a bash script. It runs in a fresh folder that holds a
copy of what `prepare` made there, bare and under the agent in turn. Everything that the script starts is traced with it,
bash included: servers, their clients, compilers and their passes.
"""
import os
import shutil
from dataclasses import dataclass, field

import normal

LIBRARIES = ("/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib")


@dataclass
class Program:
    name: str
    run: str
    # Words `command` or `command:package`; a command with a slash in it is a file, looked up in the folders of headers
    # and libraries unless it is absolute. The package is what --install takes from Debian.
    needs: str = ""
    python: str = ""  # PyPI packages, installed into the cache's own environment; $PYTHON is its interpreter
    prepare: str = ""  # bash, run once and bare: compiles, makes input, initialises data folders
    files: dict = field(default_factory=dict)
    version: str = ""  # a command whose first line of output has the version
    normalise: tuple = ()  # functions of text on both outputs, from normal.py, besides its `always`
    compare: str = "stdout stderr status"
    outputs: tuple = ()  # globs of files that must be there and be the same afterwards
    status: int = 0
    traced: str = ""  # programs (as in the name of their trace) that must have recorded calls; default: the first word of name
    limit: str = ""  # ring of this size for each process: programs that make hundreds of millions of calls
    timeout: float = 120
    runs: int = 3
    quick: bool = False  # part of --quick: needs nothing that is not installed anyhow, and takes a second
    # A difference that cannot be removed, or a run that cannot be traced: its cause, shown in the table.
    known: str = ""
    family: str = ""

    def missing(self, path):
        """[(what, package)] that is not on this machine."""
        words = [word.partition(":") for word in self.needs.split()]
        return [(what, package) for what, _, package in words if not found(what, path)]

    def recorded_by(self):
        return self.traced.split() if self.traced else [self.name.split()[0]]

    def clean(self, text):
        for step in self.normalise:
            text = step(text)
        return normal.always(text)


def found(what, path):
    if what.startswith("/"):
        return os.path.exists(what)
    if "/" in what:
        return any(os.path.exists(os.path.join(folder, what)) for folder in LIBRARIES)
    return shutil.which(what, path=path) is not None
