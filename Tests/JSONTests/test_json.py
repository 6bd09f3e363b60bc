"""Every JSON output of the tool against its schema in docs/schemas: of one process, of a run, of parts of the time. A schema allows no
member that it does not name, and names none without a reader of docs/reference/json.md having to guess."""
import csv
import json
import os
import pathlib
import re
import shutil
import unittest

from kernel_account import kernel_reports
from recorded_programs import ROOT, new_folder, run, tracer
from script_modules import load

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(ROOT, "docs/schemas")
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


def schema(name):
    return json.loads(pathlib.Path(SCHEMAS, name).read_text(encoding="utf-8"))


def faults(value, of, path="$"):
    """Returns the faults of a value under a schema. Knows the keywords of JSON Schema that the files here use; another one is a fault of the schema."""
    unknown = set(of) - {"$schema", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum", "minimum", "anyOf", "$ref"}
    if unknown:
        return [f"{path}: the schema says {sorted(unknown)}"]
    if "$ref" in of:
        return faults(value, schema(of["$ref"]), path)
    if "anyOf" in of:
        each = [faults(value, one, path) for one in of["anyOf"]]
        return [] if not all(each) else min(each, key=len)
    if "enum" in of:
        return [] if value in of["enum"] else [f"{path}: {value!r} is none of {of['enum']}"]
    if "type" not in of:  # any value
        return []
    kinds = of["type"] if isinstance(of["type"], list) else [of["type"]]
    fits = [kind for kind in kinds if isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)]
    if not fits:
        return [f"{path}: {str(value)[:60]} is no {' or '.join(kinds)}"]
    found = []
    if "minimum" in of and value is not None and value < of["minimum"]:
        found.append(f"{path}: {value} is less than {of['minimum']}")
    if isinstance(value, dict):
        found += [f"{path}: {key} is missing" for key in of.get("required", ()) if key not in value]
        for key, part in value.items() if "properties" in of else ():
            found += faults(part, of["properties"][key], f"{path}.{key}") if key in of["properties"] else [f"{path}: {key} is in no schema"]
    if isinstance(value, list):
        for index, part in enumerate(value):
            found += faults(part, of["items"], f"{path}[{index}]")
    return found


def named(of):
    """Every member that a schema names."""
    for key, part in of.get("properties", {}).items():
        yield key
        yield from named(part)
    for inner in [of["items"]] if "items" in of else of.get("anyOf", []):
        yield from named(inner)


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        run("g++", "-std=c++17", "-O1", "-g", "-pthread", "-Wno-deprecated", "-I", os.path.join(ROOT, "CSupport/include"), "-o", "program",
            os.path.join(HERE, "program.cc"), os.path.join(ROOT, "Sources/Program/CTracerAPI/tracer_startup.c"), "-ldl", folder=cls.folder)
        cls.tool("record", "--quiet", "--no-children", "-o", "one.trace", "--", "./program")
        cls.tool("record", "--quiet", "--no-children", "-o", "filtered.trace", "--min-ms", "0.001", "--max-depth", "2", "--max-size", "1M", "--", "./program")
        cls.tool("record", "--quiet", "-o", "run", "--", "./program")
        cls.tool("record", "--quiet", "--call-sites", "-o", "sites", "--", "./program")
        run("gcc", "-O1", "-o", "ticker", os.path.join(ROOT, "Tests/Examples/ticker.c"), folder=cls.folder)
        cls.tool("record", "--quiet", "-o", "loop.trace", "--", "./ticker")
        cls.tool("record", "--quiet", "--files", "--cache", "-o", "used.trace", "--", "cat", "/etc/passwd", "/etc/group")

    @classmethod
    def tool(cls, *arguments, status=0):
        return tracer(*arguments, folder=cls.folder, status=status, TRACER_CACHE="off", XDG_DATA_HOME=cls.folder, XDG_STATE_HOME=cls.folder,
                      HOME=cls.folder).stdout

    def check(self, name, *arguments, status=0, by_line=False):
        text = self.tool(*arguments, status=status)
        values = [json.loads(line) for line in text.splitlines()] if by_line else [json.loads(text)]
        self.assertTrue(values)
        for value in values:
            self.assertEqual(faults(value, schema(name + ".json"))[:5], [], f"tracer {' '.join(arguments)}")
        return values

    def test_report(self):
        whole, = self.check("report", "report", "one.trace", "--json")
        self.assertEqual(whole["calls"], sum(f["calls"] for f in whole["functions"]))
        self.assertEqual([p["pid"] for p in whole["processes"]], [whole["pid"]])
        for options in ((), ("--correct",), ("--by", "caller"), ("--by", "module"), ("--by", "thread"), ("--by", "process"), ("--filter", "m*"),
                        ("--from", "20%", "--to", "80%"), ("--around", "puts"), ("--thread", "main"), ("--thread", "main", "--by", "caller", "--to", "80%")):
            for trace in ("one.trace", "run"):
                self.check("report", "report", trace, "--json", *options)
        self.check("report", "report", "filtered.trace", "--json")
        placed, = self.check("report", "report", "one.trace", "--json", "--lines")
        self.assertEqual({row["name"] for row in placed["functions"]}, {row["name"] for row in whole["functions"]})
        self.assertTrue(all("file" in row for row in placed["functions"]))

    def test_report_of_values(self):
        for what in ("argument:path", "argument:descriptor", "argument:flags", "argument:count", "result", "errno"):
            for options in ((), ("--function", "libc*"), ("--from", "1%"), ("--thread", "main")):
                values, = self.check("values", "report", "used.trace", "--json", "--by", what, *options)
                self.assertEqual(values["calls"], sum(row["calls"] for row in values["values"]))
        self.check("values", "report", "used.trace", "--json", "--by", "result", "--where", 'path ~ "/etc/*"')
        chosen, = self.check("report", "report", "used.trace", "--json", "--where", 'path ~ "/etc/*"')
        self.assertEqual(chosen["where"], ['path ~ "/etc/*"'])
        self.assertTrue(chosen["functions"])

    def test_the_threads_of_a_report_add_up_to_the_whole(self):
        whole, = self.check("report", "report", "one.trace", "--json")
        parts = [self.check("report", "report", "one.trace", "--json", "--thread", str(thread["tid"]))[0] for thread in whole["threads"]]
        self.assertGreater(len(parts), 2)
        self.assertEqual({part["duration_ns"] for part in parts}, {whole["duration_ns"]})
        for part, thread in zip(parts, whole["threads"]):
            found, = part["threads"]
            self.assertAlmostEqual(found.pop("own_ns"), thread["own_ns"], delta=1)  # its rounding error goes to the next thread
            self.assertEqual(found, {key: value for key, value in thread.items() if key != "own_ns"})
        for key in ("calls", "events"):
            self.assertEqual(sum(part[key] for part in parts), whole[key], key)
        for name in ("malloc", "free"):
            self.assertEqual(sum(f["calls"] for part in parts for f in part["functions"] if f["name"] == name),
                             sum(f["calls"] for f in whole["functions"] if f["name"] == name), name)

    def test_csv_has_the_numbers_and_texts_of_the_same_rows(self):
        for command, key, *options in (("report", "functions"), ("report", "processes", "--by", "process"), ("report", "functions", "--by", "site"),
                                       ("threads", "threads"), ("waits", "waits"), ("stalls", "stalls", "--min", "0"), ("files", "files"), ("report", "values", "--by", "argument:path"), ("callers", "sites", "malloc", "--sites")):
            trace = "sites" if "site" in options or "--sites" in options else {"stalls": "loop.trace", "files": "used.trace", "values": "used.trace"}.get(key if key == "values" else command, "run")
            whole = json.loads(self.tool(command, trace, *options, "--json"))
            rows = list(csv.DictReader(self.tool(command, trace, *options, "--csv").splitlines()))
            self.assertEqual(len(rows), len(whole[key]), options)
            self.assertTrue(rows, options)
            for row, value in zip(rows, whole[key]):
                for column, text in row.items():
                    part = value
                    for name in column.split("."):
                        part = part.get(name) if isinstance(part, dict) else None
                    self.assertEqual(text, "" if part is None else part if isinstance(part, str) else json.dumps(part), (options, column))

    def test_report_of_a_run(self):
        report, = self.check("report", "report", "run", "--json")
        self.assertEqual(report["calls"], sum(process["calls"] for process in report["processes"]))
        self.assertEqual(len(report["processes"]), 3)
        self.assertEqual({p["ppid"] for p in report["processes"][1:]}, {report["processes"][0]["pid"]})
        self.assertEqual(report["processes"][0]["status"], 0)

    def test_report_of_one_function(self):
        for trace in ("one.trace", "run"):
            report, = self.check("function", "report", trace, "malloc", "--json")
            all_of_them, = self.check("report", "report", trace, "--json")
            row = next(f for f in all_of_them["functions"] if f["name"] == "malloc")
            self.assertEqual(report["calls"], row["calls"])
            for key in ("total_ns", "self_ns", "max_ns"):  # each process's figure is rounded by itself
                self.assertAlmostEqual(report[key], row[key], delta=3, msg=key)
            self.assertEqual(sum(bar["calls"] for bar in report["histogram"]), report["calls"])
            self.check("function", "report", trace, "m*", "--json", "--to", "99%")

    def test_a_window_of_a_run(self):
        whole, = self.check("report", "report", "run", "--json")
        parts = [self.check("report", "report", "run", "--json", *ends)[0] for ends in (("--to", "50%"), ("--from", "50%"))]
        self.assertEqual(sum(part["calls"] for part in parts), whole["calls"])
        self.assertEqual(parts[0]["window"]["to_ns"], parts[1]["window"]["from_ns"])
        self.assertEqual(parts[0]["window"]["from_ns"], 0)
        # Each part is rounded by itself.
        for name in ("wait", "puts", "malloc"):
            both = sum(f["self_ns"] for part in parts for f in part["functions"] if f["name"] == name)
            self.assertAlmostEqual(both, sum(f["self_ns"] for f in whole["functions"] if f["name"] == name), delta=20, msg=name)

    def test_tree_and_callers(self):
        for trace in ("one.trace", "run"):
            self.check("tree", "tree", trace, "--json")
            self.check("tree", "tree", trace, "--json", "--by", "run")
            self.check("tree", "tree", trace, "--json", "--from", "30%")
            self.check("callers", "callers", trace, "malloc", "--json")
            self.check("tree", "tree", trace, "--json", "--thread", "main")
            self.check("callers", "callers", trace, "malloc", "--json", "--thread", "main")
        self.check("function", "report", "one.trace", "malloc", "--json", "--thread", "main")

    def test_call_sites(self):
        report, = self.check("report", "report", "sites", "--by", "site", "--json")
        rows = [row for row in report["functions"] if row["name"] == "fork"]
        self.assertEqual([(row["site"]["function"], row["site"]["file"], row["calls"]) for row in rows], [("main", "program.cc", 1)] * 2)
        self.assertTrue(all("site" in row for row in report["functions"]))
        self.assertEqual(report["calls"], sum(row["calls"] for row in report["functions"]))
        sites, = self.check("sites", "callers", "sites", "fork", "--sites", "--json")
        self.assertEqual([row["site"] for row in sites["sites"]], [row["site"] for row in sorted(rows, key=lambda row: row["site"]["line"])])
        self.check("sites", "callers", "sites", "fork", "--sites", "--json", "--thread", "main")

    def test_diff(self):
        self.check("diff", "diff", "one.trace", "filtered.trace", "--json")
        self.check("diff", "diff", "one.trace", "filtered.trace", "--json", "--thread", "main")
        self.check("diff", "diff", "--before", "one.trace", "--before", "one.trace", "--after", "one.trace", "--after", "one.trace", "--correct", "--json")

    def test_info(self):
        self.check("info", "info", "one.trace", "--json")
        self.check("info", "info", "filtered.trace", "--json")
        self.check("info-run", "info", "run", "--json")

    def test_lines(self):
        self.check("replay", "replay", "one.trace", "--json", by_line=True)
        self.assertTrue(any("arguments" in line for line in self.check("replay", "replay", "used.trace", "--json", by_line=True)))
        self.check("dump", "dump", "one.trace", "--json", by_line=True)

    def test_start(self):
        self.check("startup", "startup", "one.trace", "--json")
        libs, = self.check("libs", "libs", "one.trace", "--json")
        calls = {library["name"]: library["calls"] for library in libs["libraries"]}
        self.assertTrue(all(len(library["functions"]) <= 3 for library in libs["few"]))
        self.assertEqual({library["library"]: sum(f["calls"] for f in library["functions"]) for library in libs["few"]},
                         {library["library"]: calls[library["library"]] for library in libs["few"]})

    def test_waits_and_threads(self):
        for trace in ("one.trace", "run"):
            waits, = self.check("waits", "waits", trace, "--json")
            lengths = [wait["duration_ns"] for wait in waits["waits"]]
            self.assertEqual(lengths, sorted(lengths, reverse=True))
            busy = [wait["duration_ns"] for wait in waits["waits"] if not wait["is_idle"]]
            self.assertEqual(sum(kind["waits"] for kind in waits["totals"].values()), len(busy))
            self.assertEqual(sum(kind["duration_ns"] for kind in waits["totals"].values()), sum(busy))
            self.assertEqual(sum(row["waits"] for row in waits["idle"]), len(lengths) - len(busy))
            placed = [wait for wait in waits["waits"] if not wait["is_idle"] and wait["kind"] != "processor"]
            self.assertEqual(sum(place["waits"] for place in waits["places"]), len(placed))
            threads, = self.check("threads", "threads", trace, "--json")
            for thread in threads["threads"]:
                self.assertAlmostEqual(thread["waiting_ns"], sum(thread["waits"].values()), delta=8)
            stalls, = self.check("stalls", "stalls", "loop.trace", "--json", "--min", "0")
            self.assertEqual((len(stalls["loops"]), len(stalls["stalls"])), (1, stalls["count"]))
            self.check("stalls", "stalls", "loop.trace", "--json", "--from", "20%", "--to", "80%")
            for by in ("function", "thread", "module"):
                shown, = self.check("top", "top", trace, "--once", "--json", "--by", by)
                self.assertTrue(shown["rows"] and shown["is_over"], by)
            files, = self.check("files", "files", "used.trace", "--json")
            self.assertLessEqual({"/etc/passwd", "/etc/group"}, {row["path"] for row in files["files"]})
            for options in (("--from", "20%", "--to", "80%"), ("--thread", "program")):
                self.check("waits", "waits", trace, "--json", *options)
                self.check("threads", "threads", trace, "--json", *options)

    def test_samples(self):
        # Also of a trace without.
        samples, = self.check("samples", "samples", "one.trace", "--json")
        self.assertEqual(samples["samples"], sum(thread["samples"] for thread in samples["threads"]))
        self.check("samples", "samples", "one.trace", "--json", "--thread", "main")

    def test_plan(self):
        self.check("plan", "plan", "./program", "--json")

    def test_coverage(self):
        slots, = self.check("coverage", "coverage", "one.trace", "run", "--json")
        self.assertEqual({module["recorded"] for module in slots["modules"]}, {"slots"})
        self.tool("record", "--quiet", "--no-children", "--cache", "--functions", "*", "-o", "functions.trace", "--", "./program")
        whole, = self.check("coverage", "coverage", "functions.trace", "--json")
        own, = [module for module in whole["modules"] if module["name"] == "program"]
        self.assertEqual(own["recorded"], "functions")
        for key, isMeant in (("called", lambda f: f["calls"]), ("never_called", lambda f: f["calls"] == 0), ("unknown", lambda f: f["calls"] is None)):
            self.assertEqual(own[key], sum(bool(isMeant(f)) for f in whole["functions"] if f["module"] == "program"))

    def test_order(self):
        self.tool("record", "--quiet", "--no-children", "--cache", "--functions", "*", "-o", "order.trace", "--", "./program")
        order, = self.check("order", "order", "order.trace", "--json", "-o", "order.txt")
        laid = [name for function in order["start"] + order["later"] for name in function["symbols"]]
        names = pathlib.Path(self.folder, "order.txt").read_text(encoding="utf-8").split()
        self.assertEqual([name for name in laid if name in names], names)
        self.assertEqual(sum(part["traces"] for part in order["readiness"]), order["traces"])

    @unittest.skipUnless(kernel_reports(), "the kernel does not report page faults here")
    def test_check_of_an_order(self):
        shutil.copy(os.path.join(self.folder, "program"), os.path.join(self.folder, "copy"))
        check, = self.check("order-check", "order", "--check", "--old", "./program", "--new", "./copy", "-n", "3", "--json")
        for row in check["figures"]:
            self.assertEqual((len(row["old_values"]), len(row["new_values"])), (3, 3), row)
        sums = [row for row in check["figures"] if row["place"] == "all"]
        self.assertEqual({row["start"] for row in sums}, {"warm", "cold"})

    def test_launches(self):
        # The lab refuses wildly different times, as a busy machine has, from five launches on: a series of two makes four at most.
        self.check("launch", "launch", "-n", "2", "--json", "--", "./program")
        self.check("launch", "launch", "-n", "2", "--vs", "./program", "--json", "--", "/bin/true")
        self.check("history", "history", "--json")
        self.tool("baseline", "-n", "2", "-o", "baseline.json", "--", "./program")
        # A machine that is too noisy to judge times has no verdict. A library that is not in the baseline is found on each.
        path = os.path.join(self.folder, "baseline.json")
        with open(path, encoding="utf-8") as file:
            baseline = json.load(file)
        baseline["libraries"].pop()
        with open(path, "w", encoding="utf-8") as file:
            json.dump(baseline, file)
        self.check("check", "check", "-n", "3", "baseline.json", "--format", "json", "--", "./program", status=1)


class Schemas(unittest.TestCase):
    def test_every_output_has_one_and_the_document_names_each(self):
        text = pathlib.Path(ROOT, "docs/reference/json.md").read_text(encoding="utf-8")
        linked = set(re.findall(r"\(\.\./schemas/([\w-]+\.json)\)", text))
        self.assertEqual(linked, set(os.listdir(SCHEMAS)))
        commands = {match for path in pathlib.Path(ROOT, "Sources/tracer/Commands").rglob("*.swift")
                    for match in re.findall(r'@Flag[^\n]*\n    var json', path.read_text(encoding="utf-8")) if match}
        self.assertTrue(commands)
        for path in pathlib.Path(ROOT, "Sources/tracer/Commands").rglob("*.swift"):
            source = path.read_text(encoding="utf-8")
            if re.search(r"^    var json(Lines)? = false", source, re.M):
                name = path.stem.removesuffix("Command").lower()
                self.assertIn(f"`tracer {name}", text, f"{path.name} has --json")

    def test_files_are_what_the_tool_prints(self):
        schemas = load("scripts/schemas")
        self.assertEqual(schemas.complaints(schemas.texts()), [])

    def test_schemas_say_no_more_than_is_checked(self):
        for name in os.listdir(SCHEMAS):
            of = schema(name)
            self.assertTrue(list(named(of)), name)
            self.assertEqual(set(of), {"$schema", "title", "type", "properties", "required", "additionalProperties"}, name)

    def test_the_check_can_fail(self):
        of = schema("report.json")
        good = {"from_ns": 1, "to_ns": 2, "moments": 1, "length_ns": 1}
        window = of["properties"]["window"]
        self.assertEqual(faults(good, window), [])
        self.assertEqual(faults(None, window), [])
        for bad in ({**good, "more": 1}, {**good, "to_ns": "2"}, {**good, "to_ns": -1}, {**good, "moments": True}, {**good, "moments": 1.5}, {"from_ns": 1}, [good]):
            self.assertTrue(faults(bad, window), bad)
