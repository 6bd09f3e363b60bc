"""`tracer coverage`, held against what it does not know: gcov's counts of the same runs of the same builds.

- Gcov: programs of C++ and C, built with --coverage in two ways and recorded with every function: each function that gcov has is there
  and was called as often, in one run and in several together.
- Reached: which functions are only led to by such as were never called.
- Unknown: what a filter excluded or a plan refused is never said to be uncalled.
- Modules: libraries, versions of one, files that are gone, traces without functions.
- Outputs: lcov reads the tracefile, the page is whole, mistakes end in one line.
"""
import collections
import html.parser
import json
import os
import pathlib
import re
import shutil
import unittest

from recorded_programs import ROOT, new_folder, record, run, tracer

HERE = os.path.dirname(os.path.abspath(__file__))


def compiled(name, *options, folder=None):
    """Builds name.cc and its kin; returns the folder, one of their own unless it is given."""
    folder = folder or new_folder()
    sources = {"shapes": ["shapes.cc", "main.cc"], "sorting": ["sorting.c"]}[name]
    for file in [*sources, "shapes.hh"]:
        shutil.copy(os.path.join(HERE, file), folder)
    run("g++" if name == "shapes" else "gcc", "-g", *options, *sources, "-o", name, "-pthread", folder=folder)
    return folder


def coverage(*traces, folder, options=()):
    return json.loads(tracer("coverage", *traces, "--json", *options, folder=folder).stdout)


def own(account, module):
    return [function for function in account["functions"] if function["module"] == module]


def by_name(account, module):
    """Functions by their names without parameters."""
    return {re.sub(r"\(.*", "", function["name"]): function for function in own(account, module)}


def gcov(folder):
    """(file, symbol) to how often it was called, of all runs since the build."""
    counts = collections.Counter()
    notes = sorted(name for name in os.listdir(folder) if name.endswith(".gcda"))
    for note in notes:
        text = run("gcov", "--json-format", "--stdout", note, folder=folder).stdout
        for line in text.splitlines():
            for file in json.loads(line)["files"]:
                for function in file["functions"]:
                    counts[os.path.basename(file["file"]), function["name"]] += function["execution_count"]
    return counts


class Gcov(unittest.TestCase):
    BUILDS = {"O0": ["-O0"], "O2": ["-O2", "-fno-inline"]}
    RUNS = {
        "shapes": [["square"], ["circle", "none"], []],
        "sorting": [[], ["other"], ["fork"]],
    }

    def agree(self, account, module, counts, traces):
        own_counts, symbols = {}, set()
        for function in own(account, module):
            if function["file"]:
                file = os.path.basename(function["file"])
                for symbol in function["symbols"]:
                    # A clone of the compiler's counts for what it was made of.
                    plain = re.sub(r"\.(isra|constprop|part|cold)\..*", "", symbol)
                    symbols.add(plain)
                    own_counts.setdefault((file, plain), {})[function["symbols"][0]] = function
        compared = 0
        for (file, symbol), count in counts.items():
            functions = own_counts.get((file, symbol))
            if functions is None:
                # A template's file is, for the lines of its code, that of the template.
                functions = next((found for (_, other), found in own_counts.items() if other == symbol), None)
            if functions is None:
                self.assertEqual(count, 0, f"{symbol} has no code, and gcov has seen {count} calls of it")
                continue
            compared += 1
            functions = list(functions.values())
            self.assertTrue(all(function["reason"] is None for function in functions), functions)
            if any(function["at_least"] for function in functions):
                self.assertLessEqual(sum(function["calls"] for function in functions), count)
                self.assertGreater(count, 0)
            else:
                self.assertEqual(sum(function["calls"] for function in functions), count, f"{symbol} of {file}, {traces}")
        return compared

    def test_functions(self):
        for name, runs in self.RUNS.items():
            for build, options in self.BUILDS.items():
                with self.subTest(name=name, build=build):
                    folder = compiled(name, *options, "--coverage", "-fprofile-update=atomic")
                    traces = []
                    for number, arguments in enumerate(runs):
                        traces.append(f"{number}.trace")
                        record(traces[-1], name, *arguments, folder=folder)
                        if number == 0:
                            account = coverage(traces[0], folder=folder)
                            self.assertGreater(self.agree(account, name, gcov(folder), traces), 8)
                    account = coverage(*traces, folder=folder)
                    self.assertGreater(self.agree(account, name, gcov(folder), traces), 8)
                    module = next(one for one in account["modules"] if one["name"] == name)
                    functions = own(account, name)
                    self.assertEqual(module["recorded"], "functions")
                    self.assertEqual(module["never_called"], sum(f["calls"] == 0 for f in functions))
                    self.assertEqual(module["never_called_bytes"], sum(f["size"] for f in functions if f["calls"] == 0))
                    self.assertEqual(module["unknown"], sum(f["calls"] is None for f in functions))
                    self.assertEqual([f["name"] for f in functions if f["calls"] is None], ["_start"])

    def test_short_function_that_is_called_very_often(self):
        folder = compiled("sorting", "-O2", "--coverage", "-fprofile-update=atomic")
        record("often.trace", "sorting", "often", folder=folder)
        counts = gcov(folder)
        self.assertEqual(counts["sorting.c", "tiny"], 400000)
        account = coverage("often.trace", folder=folder)
        tiny = by_name(account, "sorting")["tiny"]
        self.assertTrue(0 < tiny["calls"] <= 400000)
        self.assertEqual(tiny["at_least"], tiny["calls"] < 400000)
        self.agree(account, "sorting", counts, ["often.trace"])


class Reached(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        for name in ("shapes", "sorting"):
            compiled(name, "-O0", folder=cls.folder)
            record(name + ".trace", name, "square", folder=cls.folder)

    def only(self, name):
        account = coverage(name + ".trace", folder=self.folder)
        found = {}
        for function in own(account, name):
            if function["calls"] == 0:
                found[re.sub(r"\(.*", "", function["name"].replace("(anonymous namespace)::", ""))] = function["only_from_uncalled"]
            else:
                self.assertIsNone(function["only_from_uncalled"], function)
        return found

    def test_chains_of_calls(self):
        only = self.only("shapes")
        self.assertEqual(only["shapes::forgotten"], False)  # sum would call it
        self.assertEqual((only["shapes::inner"], only["shapes::innermost"]), (True, True))
        self.assertEqual(only["shapes::Circle::area"], False)  # in a table of virtual functions
        self.assertEqual(only["shapes::Circle::Circle"], False)  # made calls it for another argument
        self.assertEqual(only["shapes::tried"], False)
        self.assertEqual(only["helper"], True)  # in main.cc: tried calls it
        only = self.only("sorting")
        self.assertEqual((only["reserve"], only["middle"], only["leaf"]), (False, True, True))
        self.assertEqual(only["compare_none"], False)  # its address lies in a table

    def test_executable_at_a_fixed_address(self):
        folder = compiled("sorting", "-O2", "-fno-inline", "-no-pie")
        record("fixed.trace", "sorting", folder=folder)
        account = by_name(coverage("fixed.trace", folder=folder), "sorting")
        self.assertEqual([account[name]["only_from_uncalled"] for name in ("reserve", "middle", "leaf", "compare_none")], [False, True, True, False])

    def test_stripped(self):
        folder = compiled("sorting", "-O0")
        run("strip", "sorting", folder=folder)
        record("stripped.trace", "sorting", folder=folder)
        functions = own(coverage("stripped.trace", folder=folder), "sorting")
        self.assertTrue(any(f["calls"] for f in functions) and any(f["calls"] == 0 for f in functions))
        self.assertTrue(all(f["name"].startswith("0x") for f in functions if not f["symbols"]))


class Unknown(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = compiled("shapes", "-O0")
        record("whole.trace", "shapes", "square", folder=cls.folder)

    def account(self, *options, traces=("some.trace",)):
        record("some.trace", "shapes", "square", folder=self.folder, options=options)
        return by_name(coverage(*traces, folder=self.folder), "shapes")

    def test_by_name(self):
        functions = self.account("--functions", "*sum*:*count*", "--functions", "main")
        self.assertEqual(functions["main"]["calls"], 1)
        self.assertEqual(functions["shapes::sum"]["calls"], 1)
        self.assertIsNone(functions["shapes::forgotten"]["calls"])
        self.assertIn("--functions", functions["shapes::forgotten"]["reason"])

    def test_excluded(self):
        functions = self.account("--functions", "*", "--exclude", "*forgotten*")
        self.assertIsNone(functions["shapes::forgotten"]["calls"])
        self.assertEqual(functions["shapes::tried"]["calls"], 0)
        functions = self.account("--functions", "*", "--include", "*forgotten*")
        self.assertEqual(functions["shapes::forgotten"]["calls"], 0)
        self.assertIsNone(functions["shapes::tried"]["calls"])

    def test_small(self):
        functions = self.account("--functions", "*", "--min-size", "1000")
        self.assertIsNone(functions["shapes::helper"]["calls"])
        self.assertIn("--min-size", functions["shapes::helper"]["reason"])
        self.assertEqual(functions["shapes::sum"]["calls"], 1)  # it calls others: it is recorded whatever its size

    def test_time_filter_and_depth(self):
        # A call that a filter drops still counts as called.
        whole = by_name(coverage("whole.trace", folder=self.folder), "shapes")
        for options in (("--min-ms", "100000"), ("--max-depth", "1")):
            functions = self.account("--functions", "*", *options)
            self.assertEqual({n for n, f in functions.items() if f["calls"] == 0}, {n for n, f in whole.items() if f["calls"] == 0}, options)
            self.assertTrue(functions["shapes::sum"]["calls"] >= 1)
            self.assertTrue(functions["shapes::sum"]["at_least"])
            self.assertEqual(tracer("coverage", "some.trace", folder=self.folder).stderr.count("calls are missing"), 1)

    def test_resolvers(self):
        # The loader calls them before anybody could record it.
        pathlib.Path(self.folder, "chosen.c").write_text(
            "static int twice(int x) { return 2 * x; }\nstatic int (*choose(void))(int) { return twice; }\n"
            'int chosen(int) __attribute__((ifunc("choose")));\nint main(void) { return chosen(0); }\n')
        run("gcc", "-O0", "chosen.c", "-o", "chosen", folder=self.folder)
        record("chosen.trace", "chosen", folder=self.folder, options=("--functions", "*"))
        functions = by_name(coverage("chosen.trace", folder=self.folder), "chosen")
        self.assertEqual(functions["twice"]["calls"], 1)
        self.assertIsNone(functions["choose"]["calls"])
        self.assertIn("IFUNC", functions["choose"]["reason"])

    def test_in_one_of_the_traces(self):
        functions = self.account("--functions", "main", traces=("whole.trace", "some.trace"))
        self.assertEqual(functions["shapes::sum"]["calls"], 1)
        self.assertIsNone(functions["shapes::forgotten"]["calls"])
        functions = self.account(traces=("whole.trace", "some.trace"))  # without --functions
        self.assertIsNone(functions["shapes::forgotten"]["calls"])
        self.assertIn("slots", functions["shapes::forgotten"]["reason"])

    def test_program_that_begins_to_record_by_itself(self):
        functions = self.account("--functions", "*", "--start", "off")
        self.assertTrue(all(f["calls"] is None for n, f in functions.items() if n.startswith("shapes::")), functions)

    def test_functions_of_libc(self):
        # Functions recorded at their slots are distinguished by the trace's number of patched functions.
        record("libc.trace", "shapes", folder=self.folder, options=("--functions", "*!*"))
        account = coverage("libc.trace", folder=self.folder)
        libc = [f for f in account["functions"] if f["module"].startswith("libc.so")]
        names = {name: f for f in libc for name in f["symbols"]}
        self.assertIsNone(names["setjmp" if "setjmp" in names else "_setjmp"]["calls"])
        self.assertEqual(names["qsort"]["calls"], 0)
        self.assertGreater(names["malloc"]["calls"], 0)
        self.assertFalse([one for one in account["unknown"] if "a plan that differs" in one["reason"]], account["unknown"])

    def test_of_several_names_one_is_shown(self):
        pathlib.Path(self.folder, "names.c").write_text(
            "#include <inttypes.h>\n#include <stdlib.h>\nint main(int n, char **words) "
            "{ return strtol(words[0], 0, 10) + strtoimax(words[0], 0, 10) + strtoll(words[0], 0, 10); }\n")
        run("gcc", "-O0", "names.c", "-o", "names", folder=self.folder)
        record("names.trace", "names", folder=self.folder)
        for _ in range(5):  # as often as it may come out otherwise
            functions = [f["name"] for f in coverage("names.trace", folder=self.folder)["functions"] if f["name"].startswith("strto")]
            self.assertEqual(functions, ["strtoimax"])

    def test_table_of_what_goes_by_slots(self):
        def names(text):
            return set(re.findall(r'"(\w+)"', text))
        agent, tool = (pathlib.Path(ROOT, "Sources", path).read_text(encoding="utf-8") for path in (
            "Agent/TracerAgent/Functions/SpecialFunction.swift", "Lab/FunctionUse/Functions/SlotHookPolicy.swift"))
        known = set(re.findall(r'\.init\(name: "(\w+)", policy: \.(?!record)\w+\)', agent))
        self.assertGreater(len(known), 50)
        self.assertEqual(known - names(tool[tool.index("static let names"):]), set())


class Modules(unittest.TestCase):
    def library(self, folder, body):
        pathlib.Path(folder, "one.c").write_text(body)
        run("gcc", "-g", "-shared", "-fPIC", "-Wl,--build-id", "one.c", "-o", "libone.so", folder=folder)

    def program(self):
        folder = new_folder()
        self.library(folder, "int one(int n) { return n; } int two(int n) { return n * 2; }\n")
        pathlib.Path(folder, "use.c").write_text("int one(int); int two(int);\n"
                                                 "int main(int argc, char **argv) { return argc > 1 ? two(0) : one(0); }\n")
        run("gcc", "-g", "use.c", "-o", "use", "-L.", "-lone", "-Wl,-rpath,$ORIGIN", folder=folder)
        return folder

    def test_library(self):
        folder = self.program()
        record("a.trace", "use", folder=folder, options=("--functions", "*", "--functions", "libone.so!*"))
        functions = by_name(coverage("a.trace", folder=folder, options=("--module", "libone*")), "libone.so")
        self.assertEqual((functions["one"]["calls"], functions["two"]["calls"]), (1, 0))
        self.assertEqual(functions["two"]["only_from_uncalled"], False)  # other modules may call it
        done = tracer("coverage", "a.trace", "--module", "nothing", folder=folder, status=1)
        self.assertIn("no module of the traces matches nothing", done.stderr)

    def test_several_versions(self):
        folder = self.program()
        options = ("--functions", "*", "--functions", "libone.so!*")
        record("a.trace", "use", folder=folder, options=options)
        self.library(folder, "int one(int n) { return n + 0; } int more(int n) { return n - 1; } int two(int n) { return more(n) + 1; }\n")
        record("b.trace", "use", "x", folder=folder, options=options)
        done = tracer("coverage", "a.trace", "b.trace", "--json", folder=folder)
        account = json.loads(done.stdout)
        self.assertEqual(len(re.findall(r"2 versions of libone\.so", done.stderr)), 1, done.stderr)
        names = [one["name"] for one in account["modules"] if one["name"].startswith("libone.so")]
        self.assertEqual(len(names), 2)
        now = next(name for name in names if "more" in by_name(account, name))
        old = next(name for name in names if name != now)
        self.assertEqual({n: f["calls"] for n, f in by_name(account, now).items() if n in ("one", "two", "more")}, {"one": 0, "two": 1, "more": 1})
        # Its file is not here any more: what was called is shown, and nothing of the rest.
        functions = by_name(account, old)
        self.assertEqual((functions["one"]["calls"], "two" in functions), (1, False))
        self.assertEqual(len(re.findall(r"libone\.so.* was not found", done.stderr)), 1, done.stderr)
        self.assertEqual(by_name(account, "use")["main"]["calls"], 2)

    def test_library_calls_alone(self):
        folder = self.program()
        record("a.trace", "use", folder=folder, options=())
        done = tracer("coverage", "a.trace", folder=folder)
        self.assertEqual(len(re.findall("only library calls were recorded", done.stderr)), 1)
        account = coverage("a.trace", folder=folder)
        functions = by_name(account, "libone.so")
        self.assertEqual((functions["one"]["calls"], functions["two"]["calls"]), (1, 0))
        # They may have been called within their module.
        self.assertTrue(functions["one"]["at_least"] and functions["two"]["at_least"])
        self.assertEqual({one["recorded"] for one in account["modules"]}, {"slots"})
        self.assertEqual((account["files"], account["scopes"]), ([], []))

    def test_run_of_several_processes(self):
        folder = compiled("sorting", "-O0")
        record("run", "sorting", "fork", folder=folder)
        functions = by_name(coverage("run", folder=folder), "sorting")
        self.assertEqual((functions["main"]["calls"], functions["in_the_child"]["calls"], functions["tiny"]["calls"]), (1, 1, 41))
        # The child has an end of its own, and what its parent called is not what it has called.
        self.assertEqual([name for name, function in functions.items() if function["at_least"]], [])
        child = next(name for name in sorted(os.listdir(os.path.join(folder, "run")))
                     if by_name(coverage(os.path.join("run", name), folder=folder), "sorting")["in_the_child"]["calls"])
        alone = by_name(coverage(os.path.join("run", child), folder=folder), "sorting")
        self.assertEqual((alone["main"]["calls"], alone["tiny"]["calls"]), (0, 1))


    def test_children_of_vfork(self):
        folder = new_folder()
        pathlib.Path(folder, "vforks.c").write_text("""#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>
static void in_the_child(void) { _exit(3); }
int main(int argc, char **argv) {
    for (int n = 1; n < argc; n++) {
        if (vfork() == 0) in_the_child();
        wait(NULL);
    }
}
""")
        run("gcc", "-g", "-O0", "vforks.c", "-o", "vforks", folder=folder)
        for arguments, words in (((), 0), (("a",), 1), (("a", "b"), 1)):
            record("vforks.trace", "vforks", *arguments, folder=folder)
            done = tracer("coverage", "vforks.trace", folder=folder)
            said = re.findall(r"calls made in (\d+) child(?:ren)? of vfork are not recorded", done.stderr)
            self.assertEqual(said, [str(len(arguments))] * words)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows, self.scopes = [], 0, 0

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        self.rows += tag == "tr" and ("class", "never") in attributes
        self.scopes += tag == "tr" and ("class", "scope") in attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = compiled("shapes", "-O0")
        record("a.trace", "shapes", "square", folder=cls.folder)
        cls.account = coverage("a.trace", folder=cls.folder)
        cls.functions = own(cls.account, "shapes")

    def test_lcov(self):
        tracer("coverage", "a.trace", "--lcov", "out.info", folder=self.folder)
        placed = [f for f in self.functions if f["file"] and f["calls"] is not None]
        called = sum(f["calls"] > 0 for f in placed)
        summary = run("lcov", "--summary", "out.info", folder=self.folder)
        self.assertIn(f"({called} of {len(placed)} functions)", summary.stdout + summary.stderr)
        run("genhtml", "--quiet", "--output-directory", "pages", "out.info", folder=self.folder)
        done = tracer("coverage", "a.trace", "--lcov", "out.info", folder=self.folder, status=2)
        self.assertIn("--force", done.stderr)
        tracer("coverage", "a.trace", "--lcov", "out.info", "--force", folder=self.folder)

    def test_page(self):
        tracer("coverage", "a.trace", "--html", "out.html", folder=self.folder)
        page = Page()
        text = pathlib.Path(self.folder, "out.html").read_text(encoding="utf-8")
        page.feed(text)
        self.assertEqual(page.open, [])
        self.assertEqual(page.rows, sum(f["calls"] == 0 for f in self.functions))
        self.assertEqual(page.scopes, len(self.account["scopes"]))
        self.assertTrue("<td>shapes::(anonymous namespace)::Circle</td>" in text)
        self.assertNotIn("{{", text)

    def test_tables(self):
        text = tracer("coverage", "a.trace", "--top", "3", folder=self.folder).stdout
        rows = [line for line in text.splitlines() if line.endswith(" shapes")]
        self.assertEqual(int(rows[0].split()[0].replace(",", "")), sum(f["calls"] == 0 for f in self.functions))
        self.assertIn("By source file", text)
        self.assertIn("_start", text)
        every = tracer("coverage", "a.trace", "--all", folder=self.folder).stdout
        listed = every[every.index("All functions"):].splitlines()[2:]
        self.assertEqual(len(listed), len(self.functions))

    def test_classes(self):
        uncalled, bytes = collections.Counter(), collections.Counter()
        for function in self.functions:
            if function["calls"] == 0 and function["scope"]:
                uncalled[function["scope"]] += 1
                bytes[function["scope"]] += function["size"]
        self.assertEqual({one["name"]: one["never_called"] for one in self.account["scopes"]}, uncalled)
        self.assertEqual({one["name"]: one["never_called_bytes"] for one in self.account["scopes"]}, bytes)
        names = by_name(self.account, "shapes")
        self.assertEqual([names[name]["scope"] for name in ("main", "shapes::sum", "shapes::Shape::Shape")], [None, "shapes", "shapes::Shape"])
        text = tracer("coverage", "a.trace", folder=self.folder).stdout
        rows = text[text.index("By class or namespace"):].split("\n\n")[0].splitlines()[2:]
        self.assertEqual([row.split("  ")[-1] for row in rows], [one["name"] for one in self.account["scopes"]][:len(rows)])

    def test_mistakes(self):
        for arguments, status, words in ((["none.trace"], 1, "none.trace"), (["a.trace", "--top", "-1"], 2, "--top")):
            done = tracer("coverage", *arguments, folder=self.folder, status=status)
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
            self.assertIn(words, done.stderr)
