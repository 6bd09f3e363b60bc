"""Compilers with calling conventions of their own, as they are installed: what they make runs the same bare and traced, and the
tool says what is not recorded."""
import os
import subprocess

import build
import harness
import suite
from harness import Skipped, expect

HASKELL = r"""
import qualified Data.Map as Map
import Control.Exception
import Control.Concurrent
main = do
  let squares = Map.fromList [(i, i * i) | i <- [1 .. 2000 :: Int]]
  print (sum (Map.elems squares))
  result <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
  print result
  done <- newEmptyMVar
  mapM_ (\n -> forkIO (putMVar done (length (show (product [1 .. n :: Integer]))))) [100, 200, 300]
  mapM (const (takeMVar done)) [1 .. 3] >>= print . sum
"""
OCAML = r"""
let rec depth n = if n = 0 then 0 else 1 + depth (n - 1)
let () =
  let list = List.init 100000 (fun i -> (i, string_of_int i)) in
  let table = Hashtbl.create 10 in
  List.iter (fun (number, text) -> Hashtbl.replace table text number) list;
  (try ignore (Hashtbl.find table "none") with Not_found -> print_endline "not found");
  Gc.full_major ();
  Printf.printf "%d %d %.3f\n%!" (Hashtbl.length table) (depth 10000)
    (List.fold_left (fun sum (i, _) -> sum +. sqrt (float i) +. exp (-. float i)) 0. list)
"""
OCAML_HOST = "let () = Dynlink.allow_unsafe_modules true; Dynlink.loadfile Sys.argv.(1); print_endline \"host\"\n"
GO = r"""
package main
func sum(a, b, c, d, e, f, g, h, i, j int) int { return a + b + c + d + e + f + g + h + i + j }
func deep(n int) int { if n == 0 { return 0 }; return 1 + deep(n - 1) }
func main() {
	counts := map[int]string{}
	for i := 0; i < 10000; i++ { counts[i] = string(rune(65 + i % 26)) }
	results := make(chan int)
	for i := 0; i < 4; i++ { go func() { results <- deep(20000) }() }
	total := 0
	for i := 0; i < 4; i++ { total += <-results }
	println(len(counts), total, sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
}
"""
# In place of the first line.
CGO = r"""
package main
// #include <stdlib.h>
// static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
// static int least(int *values, int count) { qsort(values, count, sizeof *values, compare); return values[0]; }
import "C"
func init() { values := []C.int{3, 1, 2}; if C.least(&values[0], 3) != 1 { panic("not sorted") } }
"""
GCCGO = r"""
package main
import ("errors"; "fmt"; "sort"; "sync")
func main() {
	var group sync.WaitGroup
	results := make([]int, 8)
	for n := range results {
		group.Add(1)
		go func(n int) { defer group.Done(); for i := 0; i <= n * 1000; i++ { results[n] += i } }(n)
	}
	group.Wait()
	sort.Sort(sort.Reverse(sort.IntSlice(results)))
	defer func() { fmt.Println("recovered", recover()) }()
	fmt.Println(results, fmt.Errorf("wrapped %w", errors.New("error")))
	var none map[string]int
	none["x"] = 1
}
"""


OWN = "its own calling conventions"


class Language(suite.Test):
    """`script` builds ./program, and what it needs, in the current folder. `has_own_code`: it has functions that follow no convention of C's,
    whether or not it calls other modules so, which is `is_foreign`."""
    checks_bare = True

    def __init__(self, name, tool, files, script, argv=("./program",), is_foreign=True, has_own_code=None, file=None):
        super().__init__("conventions." + name, None)
        self.compiler, self.files, self.script, self.argv, self.is_foreign, self.file = tool, files, script, argv, is_foreign, file
        self.has_own_code = is_foreign if has_own_code is None else has_own_code

    def prepare(self):
        if build.ARCHITECTURE != os.uname().machine:
            raise Skipped("compilers of this machine")
        suite.need(self.compiler)
        if self.file and not os.path.exists(self.file):
            raise Skipped(f"no {self.file}")
        for name, text in self.files.items():
            self.write(name, text)
        done = subprocess.run(["sh", "-e", "-c", self.script], cwd=self.made, capture_output=True, text=True, timeout=600, env=self.environment(HOME=self.made))
        expect(not done.returncode, f"does not build:\n{(done.stdout + done.stderr)[-1500:]}")

    def judge(self):
        argv = [self.path(word[2:]) if word.startswith("./") else word for word in self.argv]
        bare = harness.execute(argv, self.directory.fresh(), self.environment(), memory=0)
        expect(not bare.status, f"bare: {harness.describe(bare.status)}\n{bare.stderr[-600:].decode(errors='replace')}")
        if self.settings.bare_only:
            return
        traced = harness.execute(argv, self.directory.fresh(), self.traced_environment(), memory=0)
        faults = harness.same(bare, traced)
        traces, wrong = harness.check_traces(self.settings, self.directory)
        faults += wrong
        if not traces:
            faults.append("no trace was written")
        if self.settings.tool and traces:
            lines = [line for trace in traces for line in self.tool("info", trace.path).stdout.splitlines() if OWN in line]
            if bool(lines) != self.is_foreign:
                faults.append(f"the tool says {lines}")
            faults += self.recorded(argv) + self.with_functions(argv, bare)
        expect(not faults, "\n".join(faults))

    def recorded(self, argv):
        """`tracer record` says it in one line. It takes the agent beside it."""
        run = self.tool("record", "-o", self.path("recorded.trace"), "--", *argv, status=None)
        lines = [line for line in run.stderr.splitlines() if OWN in line]
        return [] if len(lines) == self.is_foreign and not run.returncode else [f"record: status {run.returncode}, {lines}\n{run.stderr[-500:]}"]

    def with_functions(self, argv, bare):
        """The same with every function that can be: code that looks return addresses up, or has none, is left alone, and a line says so."""
        run = self.tool("record", "--functions", "*!*", "-o", self.path("functions.trace"), "--", *argv, status=None, text=False,
                        env=self.environment(XDG_CACHE_HOME=self.path("plans")))
        own = [line for line in run.stderr.splitlines(keepends=True) if line.startswith(b"tracer: ")]
        others = b"".join(line for line in run.stderr.splitlines(keepends=True) if line not in own)
        if (run.returncode, run.stdout, others) != (bare.status, bare.stdout, bare.stderr):
            return [f"record --functions '*!*': {harness.describe(run.returncode)}\n{run.stderr[:600].decode(errors='replace')}"]
        is_said = any(b" are not recorded: it is " in line for line in own)
        return [] if is_said == self.has_own_code else [f"record --functions '*!*' says {own}"]


def tests():
    caml = "/usr/lib/ocaml"
    go = "export GO111MODULE=off GOCACHE=$PWD/cache GOPATH=$PWD/path GOFLAGS=\n"
    shared_go = ("root=$(go env GOROOT); mkdir goroot; for part in $root/*; do ln -s $part goroot/; done\n"
                 "rm goroot/pkg; mkdir goroot/pkg; for part in $root/pkg/*; do ln -s $part goroot/pkg/; done; rm -f goroot/pkg/*_dynlink\n"
                 "export GOROOT=$PWD/goroot GO111MODULE=off GOCACHE=$PWD/cache GOPATH=$PWD/path GOFLAGS=\n"
                 "go install -buildmode=shared runtime sync/atomic; go build -linkshared -o program main.go\n")
    return [
        Language("ghc_dynamic", "ghc", {"main.hs": HASKELL}, "ghc -v0 -dynamic -o program main.hs"),
        Language("ghc_itself", "ghc", {}, "true", argv=("ghc", "--version")),
        Language("ghc_static", "ghc", {"main.hs": HASKELL}, "ghc -v0 -o program main.hs", is_foreign=False),
        Language("ocaml_static", "ocamlopt", {"main.ml": OCAML}, "ocamlopt -o program main.ml", is_foreign=False, has_own_code=True),
        Language("ocaml_bytecode", "ocamlc", {"main.ml": OCAML}, "ocamlc -o program main.ml", is_foreign=False),
        Language("ocaml_plugin", "ocamlopt", {"plug.ml": OCAML, "host.ml": OCAML_HOST},
                 "ocamlopt -shared -o plug.cmxs plug.ml; ocamlopt -o program dynlink.cmxa host.ml", argv=("./program", "./plug.cmxs")),
        # The compiler's own way to a shared run-time system needs a static one of that name.
        Language("ocaml_shared_runtime", "ocamlopt", {"main.ml": OCAML},
                 "ocamlopt -c main.ml; ocamlopt -dstartup -o unused main.cmx; as -o startup.o unused.startup.s; root=$(ocamlopt -where)\n"
                 "gcc -Wl,-E -o program startup.o main.o $root/std_exit.o $root/stdlib.a -L$root -lasmrun_shared -Wl,-rpath,$root -lm -ldl",
                 file=caml + "/libasmrun_shared.so"),
        Language("go_pie", "go", {"main.go": GO}, go + "go build -buildmode=pie -o program main.go", is_foreign=False, has_own_code=True),
        Language("go_cgo", "go", {"main.go": GO.replace("package main", CGO)}, go + "CGO_ENABLED=1 go build -o program main.go", is_foreign=False, has_own_code=True),
        Language("go_linkshared", "go", {"main.go": GO}, shared_go),
        Language("gccgo", "gccgo-12", {"main.go": GCCGO}, "gccgo-12 -o program main.go", is_foreign=False),
    ]
