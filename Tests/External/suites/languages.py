"""Compilers whose code follows conventions of its own, where its modules call each other through slots."""
import os
import shutil

from sources import printed
from trial import Suite, Test


def test(directory, name, *command, **more):
    return Test(name, [word.replace("{build}", directory.folder) for word in command], output=True, **more)


def ghc(directory):
    directory.run(["ghc", "-v0", "-dynamic", "-outputdir", directory.folder, directory.program("run.hs"), "-o", os.path.join(directory.folder, "run")])
    directory.run(["ghc", "-v0", "-dynamic", "-threaded", "-outputdir", directory.folder, "-fforce-recomp", directory.program("run.hs"), "-o", os.path.join(directory.folder, "threaded")])


def ghc_tests(directory):
    yield test(directory, "ghc --version", "ghc", "--version")
    yield test(directory, "ghc -dynamic", "{build}/run")
    yield test(directory, "ghc -dynamic -threaded", "{build}/threaded")


def ocaml(directory):
    for name in ("plugin.ml", "host.ml", "embed.c"):
        shutil.copy(directory.program("ocaml", name), directory.folder)
    runtime = printed("ocamlc", "-where")
    directory.run(["ocamlopt", "-shared", "plugin.ml", "-o", "plugin.cmxs"])
    directory.run(["ocamlopt", "-I", "+dynlink", "dynlink.cmxa", "host.ml", "-o", "host"])
    directory.run(["ocamlopt", "-output-complete-obj", "-runtime-variant", "_pic", "plugin.ml", "-o", "libplugin.so"])
    directory.run(["gcc", "-I" + runtime, "embed.c", "-o", "embedded", "-L.", "-lplugin", "-Wl,-rpath," + directory.folder])
    directory.run(["ocamlopt", "-output-obj", "plugin.ml", "-o", "runs_plugin.o"])
    directory.run(["gcc", "-I" + runtime, "embed.c", "runs_plugin.o", "-o", "shared", "-L" + runtime, "-Wl,-rpath," + runtime, "-lasmrun_shared", "-lm", "-ldl"])


def ocaml_tests(directory):
    yield test(directory, "natdynlink", "{build}/host", "{build}/plugin.cmxs")
    yield test(directory, "in a library of its own", "{build}/embedded")
    yield test(directory, "shared runtime", "{build}/shared")


def go(directory):
    environment = {name: os.path.join(directory.folder, name) for name in ("GOPATH", "GOCACHE")} | {"GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    packages = os.path.join(directory.folder, "pkg")
    directory.run(["go", "install", "-buildmode=shared", "-pkgdir", packages, "std"], environment=environment)
    directory.run(["go", "build", "-linkshared", "-pkgdir", packages, "-o", os.path.join(directory.folder, "linkshared"), directory.program("run.go")], environment=environment)
    directory.run(["go", "build", "-buildmode=pie", "-o", os.path.join(directory.folder, "pie"), directory.program("run.go")], environment=environment)


def go_tests(directory):
    yield test(directory, "-linkshared", "{build}/linkshared", status=2)
    yield test(directory, "-buildmode=pie", "{build}/pie", status=2)


def gccgo(directory):
    compiler = "gccgo" if shutil.which("gccgo") else GCCGO
    directory.run([compiler, "-O2", directory.program("run.go"), "-o", os.path.join(directory.folder, "shared")])
    directory.run([compiler, "-O2", "-static-libgo", directory.program("run.go"), "-o", os.path.join(directory.folder, "static")])


# The release's own is the package gccgo; without it the versioned one will do.
GCCGO = next((f"gccgo-{n}" for n in range(20, 8, -1) if shutil.which(f"gccgo-{n}")), "gccgo")

suites = [
    Suite("ghc", "GHC -dynamic", (("ghc", "ghc"),), ghc_tests, ghc, programs="run.hs", version=("ghc", "--numeric-version")),
    Suite("ocaml", "OCaml's natdynlink and shared runtime", (("ocamlopt", "ocaml-nox"), ("gcc", "gcc")), ocaml_tests, ocaml, programs="ocaml/*", version=("ocamlopt", "-version")),
    Suite("go", "Go -linkshared", (("go", "golang-go"), ("gcc", "gcc")), go_tests, go, programs="run.go", version=("go", "version")),
    Suite("gccgo", "gccgo", ((GCCGO, "gccgo"),), lambda directory: (test(directory, name, "{build}/" + name, status=2) for name in ("shared", "static")), gccgo, programs="run.go",
          version=(GCCGO, "-dumpfullversion")),
]
