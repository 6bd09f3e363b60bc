"""Values of arguments and results added up (report --by argument:NAME, result, errno) and conditions on them (--where): against the calls
as `replay --json` has them, one by one, and against what the program says itself."""
import collections
import json
import re

import suite
from harness import expect

PROTOTYPES = r"""
library any
enum colour: RED=0 GREEN=1 BLUE=-7
flags access: READ=0/3 WRITE=1/3 BOTH=2/3 CREATE=64 SYNC=0x101000 DSYNC=0x1000
serve(path: string, size: size_t, offset: long, how: colour, with: access, mode: mode_t when with has CREATE) -> int errno
serve_again(path: string, size: int) -> long
walk(depth: int) -> int
fails(number: int) -> int errno
gives(number: int) -> error
takes(at: pointer)
around(round: int)
leaves(size: size_t) -> int
login(user: string, password: string)
"""
LIBRARY = r"""
#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include "served.h"
#define USED(value) __asm__ volatile("" ::"r"(value) : "memory")
int serve(const char *path, size_t size, long offset, int how, unsigned with, unsigned mode) {
    USED(path); USED(offset); USED(how); USED(with); USED(mode);
    errno = size % 5 == 0 ? ENOENT : size % 7 == 0 ? EACCES : 0;
    return errno ? -1 : (int)(size % 3);
}
long serve_again(const char *path, int size) { USED(path); return size - 10L; }
int walk(int depth) { return walk_on(depth); }
int fails(int number) { errno = number; return number ? -1 : 0; }
int gives(int number) { return number; }
void takes(void *at) { USED(at); }
void around(int round) { work(round); }
int leaves(size_t size) { USED(size); leave(); return 1; }
void login(const char *user, const char *password) { USED(user); USED(password); }
"""
HEADER = r"""
#include <stddef.h>
int serve(const char *, size_t, long, int, unsigned, unsigned), walk(int), walk_on(int), fails(int), gives(int), leaves(size_t);
long serve_again(const char *, int);
void takes(void *), around(int), work(int), leave(void), login(const char *, const char *);
"""
MAIN = r"""
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "served.h"
static const char *const paths[] = {"/etc/passwd", "/etc/group", "/usr/lib/libc.so.6", "", "a \"quoted\" one", "gr\303\274n", "/etc/passwd"};
static const int colours[] = {0, 1, -7, 12};
static const unsigned flags[] = {0, 1, 2, 64, 65, 0x101000, 0x1000 | 66, 3};
static long rounds;
static __thread jmp_buf place;
int walk_on(int depth) { return depth == 0 ? 0 : depth % 3 ? walk(depth - 1) : walk(depth - 1) + 1; }
void leave(void) { longjmp(place, 1); }
void work(int round) {
    for (long n = 0; n < rounds; n++) {
        serve(paths[n % 7], (size_t)n * 37 % 5000, n % 11 - 5, colours[n % 4], flags[n % 8], 0644);
        if (n % 16 == 0) serve_again(paths[n % 5], (int)(n % 300));
        if (n % 64 == 0) walk(round + (int)(n / 64) % 6);
    }
}
static void *thread(void *number) { around((int)(long)number); return 0; }
int main(int count, char **arguments) {
    (void)count;
    rounds = atol(arguments[1]);
    pthread_t other;
    pthread_create(&other, 0, thread, (void *)2);
    around(1);
    pthread_join(other, 0);
    for (int n = 0; n < 4; n++) fails(n), gives(n), takes((void *)(size_t)(n * 0x1000));
    serve((const char *)16, 1, 0, 0, 0, 0), serve(0, 1, 0, 0, 0, 0);
    char text[700];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    serve(text, (size_t)-1, -1, 0, 0, 0);
    if (!setjmp(place)) leaves(5);
    login("somebody", "secret");
    return 0;
}
"""
OURS = ("serve", "serve_again", "walk", "fails", "gives", "takes", "around", "leaves", "login")


def subject(test, rounds):
    """Returns the trace, and its calls as `replay --json` has them: those of our functions, each thread's in their order."""
    test.write("served.h", HEADER)
    test.compile("libserved.so", "-O1", "-shared", "-fPIC", f"-I{test.made}", source=LIBRARY)
    program = test.compile("served", "-O1", f"-I{test.made}", "-rdynamic", "-L.", "-lserved", "-lpthread", "-Wl,-rpath,$ORIGIN", source=MAIN)
    # A pointer to nowhere is not followed by what it is passed to.
    test.tool("record", "--quiet", "--no-states", "--no-children", "--no-files", "-o", test.path("a.trace"), "--arguments", "serve*,walk,fails,gives,takes,around,leaves,login",
              "--prototypes", test.write("prototypes", PROTOTYPES), "--", program, str(rounds))
    calls = [json.loads(line) for line in test.tool("replay", "--json", test.path("a.trace")).stdout.splitlines()]
    return test.path("a.trace"), [call for call in calls if call["name"] in OURS]


def key(value):
    return json.dumps(value, sort_keys=True)


def rows_of(calls, value_of):
    """Calls, total and the longest by value: what lies within another call of the same value, on its thread, counts once."""
    rows = collections.defaultdict(lambda: [0, 0, 0])
    open_calls = []
    for call in calls:
        length = call["duration_ns"]
        while open_calls and (open_calls[-1]["tid"] != call["tid"] or open_calls[-1]["depth"] >= call["depth"]):
            open_calls.pop()
        value = value_of(call)
        row = rows[value]
        row[0] += 1
        row[1] += 0 if any(value_of(outer) == value for outer in open_calls) else length
        row[2] = max(row[2], length)
        open_calls.append(call)
    return rows


def compare(test, trace, what, calls, value_of, *options):
    wanted = rows_of(calls, value_of)
    found = test.json("report", trace, "--by", what, *options)
    rows = {key(row["missing"] or ([row["value"], row["errno"]] if what == "result" else row["value"])): row for row in found["values"]}
    expect(set(rows) == set(wanted), f"{what}: {sorted(set(rows) ^ set(wanted))[:6]}")
    expect(found["calls"] == sum(row[0] for row in wanted.values()), f"{what}: {found['calls']} calls")
    for value, (count, total, longest) in wanted.items():
        row = rows[value]
        # Each call is rounded to nanoseconds by itself.
        expect(row["calls"] == count and abs(row["total_ns"] - total) <= count + 2 and abs(row["max_ns"] - longest) <= 1,
               f"{what} {value}: {row}, by replay {count} calls, {total} ns, at most {longest}")
        expect(row["self_ns"] <= row["total_ns"] + count, f"{what} {value}: {row}")
    return found


def argument(name):
    def value(call):
        values = call["arguments"]
        if name not in values:
            return key("absent")
        found = values[name]
        if isinstance(found, dict) and "unreadable" in found:
            return key("unreadable")
        return key("hidden" if found == {"hidden": True} else found)
    return value


def values_add_up_to_the_calls_that_replay_shows(test):
    trace, calls = subject(test, 30_000)
    served = [call for call in calls if call["name"].startswith("serve")]
    expect(len(served) > 60_000, f"{len(served)} calls")
    for name in ("path", "size", "how", "with", "offset", "mode"):
        having = [call for call in calls if call["name"] == "serve" or name in ("path", "size") and call["name"] in ("serve_again", "leaves")]
        having = [call for call in having if name != "path" or call["name"] != "leaves"]
        compare(test, trace, f"argument:{name}", having, argument(name))
        compare(test, trace, f"argument:{name}", [call for call in having if call["name"] == "serve"], argument(name), "--function", "serve")
    compare(test, trace, "argument:depth", [call for call in calls if call["name"] == "walk"], argument("depth"))
    compare(test, trace, "argument:round", [call for call in calls if call["name"] == "around"], argument("round"))
    compare(test, trace, "argument:password", [call for call in calls if call["name"] == "login"], argument("password"))

    def result(call):
        return key([call["result"], call.get("errno")]) if "result" in call else key("unrecorded")
    with_result = [call for call in calls if call["name"] not in ("takes", "around", "login")]
    compare(test, trace, "result", with_result, result)
    compare(test, trace, "result", [call for call in calls if call["name"] == "walk"], result, "--function", "walk")

    # All rows together are what the report, which adds up in another way, has of these functions.
    whole = {row["name"]: row for row in test.json("report", trace)["functions"]}
    for name, functions in {"round": ("around",), "depth": ("walk",), "path": ("serve", "serve_again"), "at": ("takes",)}.items():
        rows = test.json("report", trace, "--by", f"argument:{name}")["values"]
        for figure in ("calls", "self_ns") + (("total_ns",) if name != "depth" else ()):
            ours, theirs = sum(row[figure] for row in rows), sum(whole[function][figure] for function in functions)
            expect(abs(ours - theirs) <= (len(rows) + 2) * (figure != "calls"), f"{name}: {figure} {ours}, of the functions {theirs}")

    def errno(call):
        if "result" not in call:
            return key("unrecorded")
        name = call.get("errno") or (call["result"] if call["name"] == "gives" and call["result"] else None)
        return key(name or "no_error")
    compare(test, trace, "errno", [call for call in calls if call["name"] in ("serve", "fails", "gives")], errno)


def sums_of_numbers_are_exact(test):
    trace, calls = subject(test, 5000)
    for name in ("size", "offset", "depth"):
        numbers = sorted(call["arguments"][name] for call in calls if name in call["arguments"])
        found = test.json("report", trace, "--by", f"argument:{name}")["numbers"]

        def rank(percent):
            return numbers[max(-(-len(numbers) * percent // 100), 1) - 1]
        wanted = {"calls": len(numbers), "sum": sum(numbers), "min": numbers[0], "max": numbers[-1], "p50": rank(50), "p90": rank(90), "p99": rank(99)}
        got = {part: found[part] for part in wanted}
        if not -2**63 <= wanted["sum"] < 2**64:
            got["sum"] = wanted["sum"] = int(float(wanted["sum"]) - float(got["sum"]))
            wanted["sum"] = 0
        expect(got == wanted, f"{name}: {got}, wanted {wanted}")
        bars = found["histogram"]
        for bar in bars:
            expect(bar["calls"] == sum(bar["from"] <= number <= bar["to"] for number in numbers), f"{name}: {bar}")
        expect(sum(bar["calls"] for bar in bars) == len(numbers), f"{name}: {bars}")
        expect(all(before["to"] + 1 == bar["from"] for before, bar in zip(bars, bars[1:])), f"{name}: gaps between {bars}")
    # Descriptors, flags and addresses are no quantities.
    for name in ("with", "how", "mode", "at"):
        expect(test.json("report", trace, "--by", f"argument:{name}")["numbers"] is None, f"sums of {name}")
    text = test.tool("report", trace, "--by", "argument:size", "--function", "serve", "--top", "3", "--sort", "calls").stdout.splitlines()
    sizes = [call["arguments"]["size"] for call in calls if call["name"] == "serve"]
    expect(text[1] == f"size of serve: {len(sizes):,} calls, {len(set(sizes)):,} values", text[1])
    expect(text[2].startswith(f"sum {sum(sizes):,}, average ") and f"maximum {max(sizes):,}" in text[2], text[2])
    expect(re.search(r"^ +128 … +255 +#+ +[\d,]+ +[\d.]+%$", "\n".join(text), re.MULTILINE), f"no histogram: {text[3:8]}")
    expect(text[-1] == f"… {len(set(sizes)) - 3:,} more: --top 0", text[-1])


def conditions_choose_the_calls_that_they_say(test):
    trace, calls = subject(test, 3000)

    def has(name, hold, *functions):
        def test_of(call):
            value = call["arguments"].get(name)
            return (not functions or call["name"] in functions) and name in call["arguments"] and not isinstance(value, dict) and hold(value)
        return test_of

    def result(hold, *functions):
        return lambda call: (not functions or call["name"] in functions) and "result" in call and hold(call["result"])

    def number(hold):
        return lambda value: isinstance(value, int) and hold(value)

    def flags(*names):
        return lambda value: all(name in value.split("|") for name in names)

    def error(*names):
        return lambda call: (call.get("errno") or call.get("result") if call["name"] == "gives" else call.get("errno")) in names

    cases = {
        ("size > 4096",): has("size", number(lambda n: n > 4096)),
        ("size>=4K",): has("size", number(lambda n: n >= 4096)),
        ("size < 0x10",): has("size", number(lambda n: n < 16)),
        ("  size  <=  010 ",): has("size", number(lambda n: n <= 8)),
        ("size == 18446744073709551615",): has("size", number(lambda n: n == 2**64 - 1)),
        ("size != 37",): has("size", number(lambda n: n != 37)),
        ("offset == -5",): has("offset", number(lambda n: n == -5)),
        ("offset < 0", "size > 1K"): lambda call: has("offset", lambda n: n < 0)(call) and has("size", lambda n: n > 1024)(call),
        ("serve(size > 4K)",): has("size", number(lambda n: n > 4096), "serve"),
        ("serve*(size == 37)",): has("size", number(lambda n: n == 37), "serve", "serve_again"),
        ("libserved.so!serve(size == 37)",): has("size", number(lambda n: n == 37), "serve"),
        ("serve(size > 4K)", "serve_again(size > 200)"): lambda call: has("size", lambda n: n > 4096, "serve")(call) or has("size", lambda n: n > 200, "serve_again")(call),
        ("size > 100", "serve(size < 200)"): lambda call: has("size", lambda n: n > 100)(call) and (call["name"] != "serve" or call["arguments"]["size"] < 200),
        ('path == "/etc/passwd"',): has("path", lambda text: text == "/etc/passwd"),
        ('path != "/etc/passwd"',): lambda call: has("path", lambda text: text not in ("/etc/passwd", None))(call) or "cut" in (call["arguments"].get("path") or ""),
        ('path ~ "/etc"',): has("path", lambda text: text is not None and "/etc" in text),
        ('path ~ "/etc/*"',): has("path", lambda text: text is not None and text.startswith("/etc/")),
        ('path ~ "lib?.so.[0-9]"',): has("path", lambda text: False),
        ('path ~ "*/lib?.so.[0-9]"',): has("path", lambda text: text == "/usr/lib/libc.so.6"),
        ('path == ""',): has("path", lambda text: text == ""),
        (r'path == "a \"quoted\" one"',): has("path", lambda text: text == 'a "quoted" one'),
        (r'path == "gr\303\274n"',): has("path", lambda text: text == "grün"),
        ('path ~ "ü"',): has("path", lambda text: text == "grün"),
        ('path ~ "xxxxx"',): lambda call: "cut" in (call["arguments"].get("path") or ""),
        ("path == NULL",): has("path", lambda text: text is None),
        ("how == GREEN",): has("how", lambda name: name == "GREEN"),
        ("how != RED",): has("how", lambda name: name != "RED"),
        ("how < RED",): has("how", lambda name: name == "BLUE"),
        ("how == 12",): has("how", lambda name: name == 12),
        ("with == READ",): has("with", lambda name: name == "READ"),
        ("with == WRITE|CREATE",): has("with", lambda name: name == "WRITE|CREATE"),
        ("with ~ CREATE",): has("with", flags("CREATE")),
        ("with ~ WRITE | CREATE",): has("with", flags("WRITE", "CREATE")),
        ("with ~ DSYNC",): has("with", lambda name: "SYNC" in name),
        ("with ~ SYNC",): has("with", flags("SYNC")),
        ("with == 0x41",): has("with", lambda name: name == "WRITE|CREATE"),
        ("mode == 0644",): has("mode", lambda n: n == 0o644),
        ("at == NULL",): lambda call: call["name"] == "takes" and call["arguments"]["at"] is None,
        ("at > 0x1000",): lambda call: call["name"] == "takes" and int(call["arguments"]["at"] or "0", 16) > 0x1000,
        ("serve() < 0",): result(lambda n: n < 0, "serve"),
        ("serve() == 2",): result(lambda n: n == 2, "serve"),
        ("result == -1",): result(lambda n: n == -1),
        ("errno == ENOENT",): error("ENOENT"),
        ("errno != ENOENT",): error("EACCES", "EPERM", "ESRCH"),
        ("gives() == ENOENT",): lambda call: call["name"] == "gives" and call["result"] == "ENOENT",
        ("errno > 0", "fails(number >= 2)"): lambda call: error("EACCES", "EPERM", "ENOENT", "ESRCH")(call) and (call["name"] != "fails" or call["arguments"]["number"] >= 2),
    }
    for conditions, holds in cases.items():
        options = [word for condition in conditions for word in ("--where", condition)]
        wanted = [call for call in calls if holds(call)]
        shown = [json.loads(line) for line in test.tool("replay", "--json", trace, *options).stdout.splitlines()]
        expect(shown == wanted, f"{conditions}: replay shows {len(shown)}, wanted are {len(wanted)}: {[call for call in shown if call not in wanted][:1]}")
        report = test.json("report", trace, *options)
        counts = {row["name"]: row["calls"] for row in report["functions"]}
        expect(counts == collections.Counter(call["name"] for call in wanted), f"{conditions}: {counts}")
        expect(report["where"] == list(conditions), f"{report['where']}")
        for row in report["functions"]:
            times = sorted(call["duration_ns"] for call in wanted if call["name"] == row["name"])
            expect(abs(row["min_ns"] - times[0]) <= 1 and abs(row["max_ns"] - times[-1]) <= 1, f"{conditions}: {row}")
    # A value's rows know of conditions, too.
    found = test.json("report", trace, "--by", "argument:path", "--where", "size > 1K")
    expect(found["calls"] == sum(has("size", lambda n: n > 1024)(call) for call in calls if "path" in call["arguments"]), f"{found['calls']} calls")


def windows_and_threads_narrow_values(test):
    trace, calls = subject(test, 20_000)
    tids = {call["tid"] for call in calls}
    expect(len(tids) == 2, f"{tids}")
    for tid in tids:
        compare(test, trace, "argument:path", [call for call in calls if call["name"] in ("serve", "serve_again") and call["tid"] == tid], argument("path"), "--thread", str(tid))
    ends = sorted(call["time_ns"] for call in calls)
    middle = ends[len(ends) // 2]
    served = [call for call in calls if call["name"] == "serve"]
    halves = [test.json("report", trace, "--by", "argument:how", "--function", "serve", *words)
              for words in (("--to", f"{middle}ns"), ("--from", f"{middle}ns"))]
    for half, wanted in zip(halves, ([call for call in served if call["time_ns"] < middle], [call for call in served if call["time_ns"] >= middle])):
        expect(abs(half["calls"] - len(wanted)) <= 2, f"{half['calls']} calls, {len(wanted)} by replay")
    expect(sum(half["calls"] for half in halves) == len(served), "the halves are not the whole")


def what_cannot_be_asked_is_one_clear_line(test):
    trace, _ = subject(test, 100)
    test.tool("record", "--quiet", "--no-states", "--no-files", "-o", test.path("plain.trace"), "--", "true")
    for condition, wanted in {
            "": "the name of an argument or a function is expected at character 1", "size": "one of == != < <= > >= ~ is expected at character 5",
            "size >": 'a number, a name or a "string" is expected at character 7', "size >> 4": 'a number, a name or a "string" is expected at character 7',
            "size > 4Q": "K, M, G or the end of the number is expected at character 9", "size > 4 K": "the end is expected at character 10",
            "size > 99999999999999999999": "a number of up to 64 bits is expected at character 8", 'path ~ "x': "a quote that ends the string is expected at character 10",
            'path < "x"': "== or != or ~, which compare strings, is expected at character 6", "open(size > 1": "`)` is expected at character 14",
            "open(size > 1) 2": "the end is expected at character 16", "open()": "one of == != < <= > >= ~ is expected at character 7",
            "with == A|": "a name is expected at character 11", "size = 4": "one of == != < <= > >= ~ is expected at character 6",
            "serve(1 > 2)": "the name of an argument, or `)` is expected at character 7", "size == 09": "a number of up to 64 bits is expected"}.items():
        for command in ("report", "replay"):
            said = test.tool(command, trace, "--where", condition, status=None)
            expect(said.returncode != 0 and not said.stdout and wanted in said.stderr.splitlines()[0], f"{command} --where {condition!r}: {said.stderr}")
    for words, wanted in {
            ("--where", "colour == RED"): "no call is recorded with an argument colour; there are around(round), fails(number), gives(number)",
            ("--where", "open(size > 4)"): "no call of open is recorded with an argument size",
            ("--where", "how == PINK"): "PINK is no value of how: RED, GREEN, BLUE", ("--where", "size == RED"): "size is a number, without names for its values",
            ("--where", "path > 4"): "path is a string: compare it with a text in quotes", ("--where", 'size == "4"'): "size is no string",
            ("--where", 'password == "x"'): "password is hidden", ("--by", "argument:colour"): "is recorded with an argument colour; there are ",
            ("--by", "argument:path", "--function", "walk"): "no call of walk in "}.items():
        said = test.tool("report", trace, *words, status=None)
        expect(said.returncode != 0 and not said.stdout and said.stderr.count("\n") == 1 and wanted in said.stderr, f"{words}: {said.stderr}")
    for words in (("--by", "argument:path"), ("--by", "result"), ("--where", "size > 4")):
        said = test.tool("report", test.path("plain.trace"), *words, status=None)
        expect(said.returncode != 0 and said.stderr.count("\n") == 1 and "record with tracer record --arguments" in said.stderr, f"{words}: {said.stderr}")
    for words, wanted in {("--by", "module", "--where", "size > 1"): "--where chooses calls", ("--by", "argument:path", "--correct"): "--correct applies to functions",
                          ("--by", "result", "--time", "running"): "--time running applies to all calls", ("--by", "argument:path", "--sort", "p50"): "--sort p50 applies",
                          ("--by", "arguments"): "argument:NAME", ("serve", "--where", "size > 1"): "--where shows a row a function"}.items():
        said = test.tool("report", trace, *words, status=None)
        expect(said.returncode != 0 and wanted in said.stderr, f"{words}: {said.stderr}")


MODES = {"slots": "*"}


def tests():
    return suite.tests_of(__name__)
