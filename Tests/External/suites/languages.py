"""Compilers whose code follows conventions of its own, where its modules call each other through slots."""
import os
import shutil

from sources import printed
from trial import Suite, Test


def test(place, name, *command, **more):
    return Test(name, [word.replace("{build}", place.folder) for word in command], output=True, **more)


def ghc(place):
    place.run(["ghc", "-v0", "-dynamic", "-outputdir", place.folder, place.program("run.hs"), "-o", os.path.join(place.folder, "run")])
    place.run(["ghc", "-v0", "-dynamic", "-threaded", "-outputdir", place.folder, "-fforce-recomp", place.program("run.hs"), "-o", os.path.join(place.folder, "threaded")])


def ghc_tests(place):
    yield test(place, "ghc --version", "ghc", "--version")
    yield test(place, "ghc -dynamic", "{build}/run")
    yield test(place, "ghc -dynamic -threaded", "{build}/threaded")


def ocaml(place):
    for name in ("plugin.ml", "host.ml", "embed.c"):
        shutil.copy(place.program("ocaml", name), place.folder)
    runtime = printed("ocamlc", "-where")
    place.run(["ocamlopt", "-shared", "plugin.ml", "-o", "plugin.cmxs"])
    place.run(["ocamlopt", "-I", "+dynlink", "dynlink.cmxa", "host.ml", "-o", "host"])
    place.run(["ocamlopt", "-output-complete-obj", "-runtime-variant", "_pic", "plugin.ml", "-o", "libplugin.so"])
    place.run(["gcc", "-I" + runtime, "embed.c", "-o", "embedded", "-L.", "-lplugin", "-Wl,-rpath," + place.folder])
    place.run(["ocamlopt", "-output-obj", "plugin.ml", "-o", "runs_plugin.o"])
    place.run(["gcc", "-I" + runtime, "embed.c", "runs_plugin.o", "-o", "shared", "-L" + runtime, "-Wl,-rpath," + runtime, "-lasmrun_shared", "-lm", "-ldl"])


def ocaml_tests(place):
    yield test(place, "natdynlink", "{build}/host", "{build}/plugin.cmxs")
    yield test(place, "in a library of its own", "{build}/embedded")
    yield test(place, "shared runtime", "{build}/shared")


def go(place):
    environment = {name: os.path.join(place.folder, name) for name in ("GOPATH", "GOCACHE")} | {"GO111MODULE": "off", "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    packages = os.path.join(place.folder, "pkg")
    place.run(["go", "install", "-buildmode=shared", "-pkgdir", packages, "std"], environment=environment)
    place.run(["go", "build", "-linkshared", "-pkgdir", packages, "-o", os.path.join(place.folder, "linkshared"), place.program("run.go")], environment=environment)
    place.run(["go", "build", "-buildmode=pie", "-o", os.path.join(place.folder, "pie"), place.program("run.go")], environment=environment)


def go_tests(place):
    yield test(place, "-linkshared", "{build}/linkshared", status=2)
    yield test(place, "-buildmode=pie", "{build}/pie", status=2)


def gccgo(place):
    compiler = "gccgo" if shutil.which("gccgo") else GCCGO
    place.run([compiler, "-O2", place.program("run.go"), "-o", os.path.join(place.folder, "shared")])
    place.run([compiler, "-O2", "-static-libgo", place.program("run.go"), "-o", os.path.join(place.folder, "static")])


# The release's own is the package gccgo; without it the versioned one will do.
GCCGO = next((f"gccgo-{n}" for n in range(20, 8, -1) if shutil.which(f"gccgo-{n}")), "gccgo")

suites = [
    Suite("ghc", "GHC -dynamic", (("ghc", "ghc"),), ghc_tests, ghc, programs="run.hs", version=("ghc", "--numeric-version")),
    Suite("ocaml", "OCaml's natdynlink and shared runtime", (("ocamlopt", "ocaml-nox"), ("gcc", "gcc")), ocaml_tests, ocaml, programs="ocaml/*", version=("ocamlopt", "-version")),
    Suite("go", "Go -linkshared", (("go", "golang-go"), ("gcc", "gcc")), go_tests, go, programs="run.go", version=("go", "version")),
    Suite("gccgo", "gccgo", ((GCCGO, "gccgo"),), lambda place: (test(place, name, "{build}/" + name, status=2) for name in ("shared", "static")), gccgo, programs="run.go",
          version=(GCCGO, "-dumpfullversion")),
]
