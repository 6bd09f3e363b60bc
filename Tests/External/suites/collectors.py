"""Runtimes with collectors that look at stacks and registers."""
import os

from trial import Suite, Test

def runs(*command, times=3, **more):
    """A collector's findings depend on where it starts: each command runs a few times, numbered in its name."""
    def tests(directory):
        words = [word.replace("{build}", directory.folder).replace("{programs}", os.path.dirname(directory.program("x"))) for word in command]
        for n in range(1, times + 1):
            yield Test(f"{os.path.basename(words[-1])} {n}", words, output=True, timeout=120, **more)
    return tests


def mono(directory):
    directory.run(["mcs", "-out:" + os.path.join(directory.folder, "collect.exe"), directory.program("mono.cs")])


def gdc(directory):
    for name, option in (("shared", "-shared-libphobos"), ("static", "-static-libphobos")):
        directory.run(["gdc", "-O2", option, directory.program("collector.d"), "-o", os.path.join(directory.folder, name)])


def d(directory):
    for name in ("shared", "static"):
        yield from runs("{build}/" + name)(directory)


suites = [
    Suite("guile", "Guile, on Boehm's collector", (("guile", "guile-3.0"),), runs("guile", "--no-auto-compile", "{programs}/guile.scm"), version=("guile", "--version")),
    Suite("mono", "Mono's SGen", (("mcs", "mono-mcs"), ("mono", "mono-runtime")), runs("mono", "{build}/collect.exe"), mono, programs="mono.cs", version=("mono", "--version")),
    Suite("jsc", "JavaScriptCore", (("jsc", "libjavascriptcoregtk-4.0-bin|libjavascriptcoregtk-4.1-bin|libjavascriptcoregtk-6.0-bin"),), runs("jsc", "{programs}/collect.js"),
          version=("dpkg-query", "-W", "-f", "${Version}\\n", "libjavascriptcoregtk-*-bin")),
    Suite("d", "D's collector", (("gdc", "gdc"),), d, gdc, programs="collector.d", version=("gdc", "-dumpfullversion")),
]
