"""Functions of C++, Rust and Swift that are named as people read them, by `--arguments`, `--when` and `--where`, against what the program does."""
import collections
import glob
import json
import os
import subprocess

import suite
from harness import expect

SOURCE = r"""
#define APART __attribute__((noipa))
struct Request { int id; long size; };
namespace net {
struct Server {
    int port;
    APART int handle(int size) const { return size + port; }
};
APART int handle(const char *url) { return url[0]; }
APART int process(const Request *request) { return request->id; }
APART int process(int id) { return id; }
}
APART long handle(long size) { return size * 2; }
APART double handle(double ratio) { return ratio / 2; }
template <class T> APART T twice(T value) { return value + value; }
namespace { APART int hidden(int depth) { return depth; } }
namespace handle_things { APART int other(int size) { return size; } }
APART int handle_all(int size) { return size; }
int main(void) {
    net::Server server{1};
    for (int n = 0; n < 100; n++) {
        Request request{n, n * 10};
        server.handle(n), net::handle("url"), handle((long)n), handle(n / 2.0), twice(n), twice((long)n), hidden(n), handle_things::other(n), handle_all(n);
        net::process(&request), net::process(n);
    }
}
"""
SERVER, URL, LONG, RATIO = "net::Server::handle(int) const", "net::handle(char const*)", "handle(long)", "handle(double)"


class Named(suite.Test):
    def program(self, *options):
        return self.compile("program", "-O1", *options, source=SOURCE, compiler="g++")

    def record(self, program, *options, status=0):
        return self.tool("record", "--force", "--quiet", "--no-states", "--no-files", "-o", self.trace(), "--functions", "*", *options, "--", program, status=status)

    def calls(self, *options, trace=None):
        """Calls by function, with their arguments."""
        found = collections.defaultdict(list)
        for line in self.tool("replay", "--json", trace or self.trace(), *options).stdout.splitlines():
            call = json.loads(line)
            found[call["name"]].append(call.get("arguments"))
        return found

    def with_arguments(self, *options):
        return {name for name, calls in self.calls(*options).items() if any(call is not None for call in calls)}


def a_name_means_functions_of_any_namespace_and_class(test):
    program = test.program("-g")
    for name, wanted in {
            "net::Server::handle": {SERVER}, "Server::handle": {SERVER}, "net::handle": {URL}, "handle": {SERVER, URL, LONG, RATIO}, "handle(long)": None,
            "twice": {"int twice<int>(int)", "long twice<long>(long)"}, "twice<int>": {"int twice<int>(int)"}, "hidden": {"(anonymous namespace)::hidden(int)"},
            "net::*": {SERVER, URL, "net::process(Request const*)", "net::process(int)"}, "other": {"handle_things::other(int)"}, "_ZN3net6handleEPKc": {URL}}.items():
        done = test.record(program, "--arguments", name, status=None)
        if wanted is None:  # it is read as a prototype, with a parameter `long`
            expect(done.returncode == 2 and "several functions are called so" in done.stderr, done.stderr)
            continue
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        expect(test.with_arguments() == wanted, f"{name}: {test.with_arguments()}")
    test.record(program, "--arguments", "net::Server::handle,handle_all")
    expect([call["size"] for call in test.calls()[SERVER]] == list(range(100)), "the values of a member function")


def conditions_speak_of_those_that_have_the_parameter(test):
    program = test.program("-g")
    test.record(program, "--arguments", "handle")
    whole = {name: len(calls) for name, calls in test.calls().items()}
    for name, chosen in {"handle": {SERVER, LONG}, "net::Server::handle": {SERVER}, "Server::handle": {SERVER}}.items():
        found = test.calls("--where", f"{name}(size >= 90)")
        expect({name: [call["size"] for call in calls] for name, calls in found.items()} == {name: list(range(90, 100)) for name in chosen}, f"{name}: {found}")
    found = test.json("report", test.trace(), "--by", "argument:size", "--function", "Server::handle")
    expect(found["calls"] == 100 and len(found["values"]) == 100, f"{found['calls']}")
    for name, filtered in {"handle": {SERVER, LONG}, "net::Server::handle": {SERVER}}.items():
        test.record(program, "--when", f"{name}(size >= 90)")
        found = test.calls()
        for function, count in whole.items():
            calls = found[function]
            expect(len(calls) == (10 if function in filtered else count), f"{name}: {len(calls)} calls of {function}")
        for function in filtered:
            expect([call["size"] for call in found[function]] == list(range(90, 100)), f"{name}: {function}")


def a_condition_asks_for_a_snapshot(test):
    program = test.program("-g")
    test.record(program, "--keep", "10s", "--when", "net::Server::handle(size == 77)")
    snapshots = glob.glob(os.path.join(test.traces, "*.snapshot.trace"))
    expect(len(snapshots) == 1, f"{snapshots}")


def a_prototype_of_ones_own_has_the_name_too(test):
    program = test.program()
    test.record(program, "--arguments", "net::Server::handle(server: pointer, size: int) -> int")
    found = test.calls()
    expect([call["size"] for call in found[SERVER]] == list(range(100)) and test.with_arguments() == {SERVER}, f"{found[SERVER][:3]}")
    test.record(program, "--arguments", "net::handle(url: string) -> int", "--when", 'net::handle(url == "another")')
    expect(URL not in test.calls() and LONG in test.calls(), "a condition on it")
    # It goes before debug information, and may be in a file.
    given = test.write("prototypes", "Server::handle(server: pointer, size: int) -> int\n")
    test.record(test.program("-g"), "--prototypes", given, "--arguments", "Server::handle,handle_all")
    expect({tuple(call) for call in test.calls()[SERVER]} == {("server", "size")}, f"{test.calls()[SERVER][:2]}")
    expect({tuple(call) for call in test.calls()["handle_all(int)"]} == {("size",)}, f"{test.calls()['handle_all(int)'][:2]}")
    program = test.program()
    done = test.record(program, "--arguments", "handle(size: long) -> long", status=2)
    expect("several functions are called so" in done.stderr and LONG in done.stderr and "_Z" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def members_are_those_of_the_function_that_has_them(test):
    program = test.program("-g")
    test.record(program, "--arguments", "net::process(request->size, request->id)")
    found = test.calls()
    expect([call and call["request->size"] for call in found["net::process(Request const*)"]] == list(range(0, 1000, 10)), f"{found['net::process(Request const*)'][:3]}")
    expect(test.with_arguments() == {"net::process(Request const*)"}, f"{test.with_arguments()}")
    done = test.record(program, "--arguments", "net::process(request->weight)", status=2)
    expect("net::process(" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def what_is_not_there_has_a_hint(test):
    program = test.program("-g")
    test.record(program, "--arguments", "net::Server::handle,handle_all")
    for words, wanted in {
            ("--arguments", "net::Server::handel"): "; there is net::Server::handle(int) const", ("--arguments", "handle_al"): "; there is handle_all(int)",
            ("--arguments", "net::hande(url: string)"): "; there is ", ("--when", "Server::handel(size > 1)"): "no prototype of Server::handel is known; there is net::Server::handle(int) const",
            ("--when", "net::Server::handle(sise > 1)"): "net::Server::handle(int) const has no sise"}.items():
        done = test.tool("record", "--quiet", "-o", test.path("never.trace"), *words, "--", program, status=None)
        expect(done.returncode == 2 and wanted in done.stderr and done.stderr.count("\n") == 1, f"{words}: {done.stderr}")
    done = test.tool("replay", test.trace(), "--where", "handle_al(size > 1)", status=None)
    expect(done.returncode == 2 and "no call of handle_al is recorded with an argument size; there is handle_all(size)" in done.stderr, done.stderr)
    done = test.tool("replay", test.trace(), "--where", "handle(weight > 1)", status=None)
    expect(done.returncode == 2 and "net::Server::handle(this, size)" in done.stderr, done.stderr)


def names_of_rust_too(test):
    suite.need("rustc")
    test.write("program.rs", """
        mod net { pub mod server { #[inline(never)] pub fn handle(size: u64, port: u32) -> u64 { std::hint::black_box(size + port as u64) } } }
        #[inline(never)] fn handle(ratio: u64) -> u64 { std::hint::black_box(ratio) }
        fn main() { for n in 0..100 { std::hint::black_box(net::server::handle(std::hint::black_box(n), std::hint::black_box(7))); std::hint::black_box(handle(std::hint::black_box(n))); } }""")
    done = subprocess.run(["rustc", "-O", "-g", "-o", test.path("program"), test.path("program.rs")], cwd=test.made, capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    for name in ("net::server::handle", "program::net::server::handle", "server::handle"):
        test.record(test.path("program"), "--when", f"{name}(size >= 95)")
        found = test.calls()
        expect([call["size"] for call in found["program::net::server::handle"]] == [95, 96, 97, 98, 99] and len(found["program::handle"]) == 100, f"{name}: { {name: len(calls) for name, calls in found.items()} }")


def names_of_swift_too(test):
    suite.need("swiftc")
    test.write("program.swift", """
        struct Server { @inline(never) func handle(_ size: Int) -> Int { size &+ 1 } }
        @inline(never) func handle(_ ratio: Int) -> Int { ratio &* 2 }
        var sum = 0
        for n in 0..<100 { sum &+= Server().handle(n) &+ handle(n) }
        print(sum)""")
    done = subprocess.run(["swiftc", "-Onone", "-o", test.path("program"), test.path("program.swift")], cwd=test.made, capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    test.record(test.path("program"), "--arguments", "Server.handle(size: long) -> long", "--when", "Server.handle(size >= 95)")
    found = {name: calls for name, calls in test.calls().items() if "handle" in name}
    sizes = [call["size"] for name, calls in found.items() if "Server" in name for call in calls]
    expect(sizes == [95, 96, 97, 98, 99], f"{found}")


MODES = {"slots": "*"}


def tests():
    return suite.tests_of(__name__, Named)
