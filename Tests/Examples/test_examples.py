"""scripts/examples fails when a document is wrong: on documents made for the purpose with a stand-in for the tool, and
on every line of every example of the real ones. Needs no build."""
import glob
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import unittest

import options as named
from documents import Document, Mistake
from recorded_programs import ROOT, new_folder
from shapes import Rules, differences, shape

TABLE = """\
app (pid 12), 45.174 ms, 1 thread, 94,515 calls, 0 dropped

 calls       total        self  function  module
25,517  792.585 us  792.585 us  memcpy    libc.so.6
     2    2.097 ms    2.094 ms  dlopen    libc.so.6""".split("\n")
ELSEWHERE = """\
app (pid 34567), 4.2 s, 8 threads, 1 call, 12 dropped

    calls    total     self  function   module
        1   12 ns    9.1 us  dlopen     libc.so.6
1,000,000  1.000 s  1.000 s  memcpy     libc.so.6
        7  1.000 s  1.000 s  something  libm.so.6""".split("\n")


def edited(lines, old, new):
    assert any(old in line for line in lines), old
    return [line.replace(old, new) for line in lines]


class Shapes(unittest.TestCase):
    def same(self, left, right):
        self.assertEqual(shape(left), shape(right))

    def differ(self, left, right):
        self.assertNotEqual(shape(left), shape(right))

    def test_figures_stand_for_each_other(self):
        self.same("  1 call, 3.1 us", "  1,204 calls, 12.25 ms")
        self.same("called once between", "called 1,204 times between")
        self.same("main → ready   2.1 ms  ████", "main → ready  88.1 ms")
        self.same("0.001323804  30.754 ms  3508 host", "0.007185753 125.883 ms  21084 host")  # the second time fills its column
        self.same("+3.1 us   2.1 %  new  a of libc.so.6", "−1.271 ms   -12 %  new  a of libc.so.6")
        self.same("python3.11  cpython-311-x86_64", "python3.13  cpython-313-x86_64")
        self.same("tracer: /tmp/demo/tracer.python3.14.trace: 3 calls, 12.0 KB", "tracer: /tmp/demo/tracer.python3.99214.trace: 1 call, 3.1 MB")
        self.same("started   2026-11-21T10:03:52.434Z", "started  2031-01-01T00:00:00.000Z")

    def test_words_units_and_columns_do_not(self):
        self.differ("total  self", "total  own")
        self.differ("total  self", "total self")
        self.differ("  3.1 us", "  3.1 µs")
        self.differ("  3 %", "  3%")
        self.same("12.5%  new", "<0.1%  new")
        self.same("exec → ready  1.800  s  (page faults 3)", "exec → ready  475.012 ms  (page faults 17)")
        self.same("12.5%  new", "-0.4%  new")
        self.differ("12 KB", "12 ms")
        self.same("4  3.1 us  * 12 ns  memcpy", "4  3.1 us    12 ns  memcpy")
        self.differ("stat64  libc.so.6", "stat  libc.so.6")
        self.differ("~3.1 ms", "3.1 ms")
        self.differ("3.1 ms", "3.1")

    def test_indentation_counts_where_it_is_kept(self):
        kept = Rules(keeps_indents=True)
        self.assertEqual(shape("  0.0024    7 us    a() [b]", kept), shape("  12.0024  917 us    a() [b]", kept))
        self.assertNotEqual(shape("  0.0024    7 us    a() [b]", kept), shape("  0.0024    7 us  a() [b]", kept))


class Comparison(unittest.TestCase):
    def test_other_figures_and_another_order_are_right(self):
        self.assertEqual(differences(TABLE, ELSEWHERE), [])

    def test_a_renamed_column(self):
        self.assertTrue(differences(edited(TABLE, "self", "own"), ELSEWHERE))
        self.assertTrue(differences(TABLE, edited(ELSEWHERE, "self", "own")))

    def test_a_column_that_is_gone(self):
        self.assertTrue(differences(TABLE, [re.sub(r"  libc.so.6|   module", "", line) for line in ELSEWHERE]))

    def test_a_row_that_is_not_printed(self):
        wrong = differences(edited(TABLE, "dlopen", "__libc_start_main"), ELSEWHERE)
        self.assertEqual(len(wrong), 1)
        self.assertIn("__libc_start_main", wrong[0])

    def test_a_row_may_be_among_those_of_another_command(self):
        self.assertTrue(differences(TABLE, ELSEWHERE[:-3]))
        self.assertEqual(differences(TABLE, ELSEWHERE[:-3], ELSEWHERE[-3:]), [])

    def test_a_whole_output_has_each_row_once_and_in_order(self):
        whole = Rules(is_whole=True)
        self.assertEqual(differences(["a  1 ms", "b  2 ms"], ["a  3 us", "b  4 us"], rules=whole), [])
        for printed in (["a  1 ms", "b  1 ms", "c  1 ms"], ["b  1 ms", "a  1 ms"], ["a  1 ms", "a  1 ms", "b  1 ms"]):
            self.assertTrue(differences(["a  1 ms", "b  1 ms"], printed, rules=whole), printed)

    def test_what_differs_between_machines_is_shown_and_used(self):
        self.assertEqual(differences(["ready: exit"], ["ready: first output"], rules=Rules(any_of=["(?<=ready: ).*"])), [])
        self.assertTrue(differences(["ready: exit"], ["ready: exit"], rules=Rules(any_of=["nothing like it"])))
        self.assertTrue(differences(["ready: exit"], ["done"], rules=Rules(any_of=[".*"])))
        self.assertEqual(differences(["3 faults, 2 from disk"], ["1 fault"], rules=Rules(may=[", \\d+ from disk"])), [])

    def test_another_form_excuses_a_row_only_where_it_is_printed(self):
        rules = Rules(instead=[("^all in one", "^first|^second")])
        document = ["first  1 ms", "second  2 ms", "third  1 ms"]
        self.assertEqual(differences(document, ["all in one  3 ms", "third  1 ms"], rules=rules), [])
        self.assertTrue(differences(document, ["first  1 ms", "third  1 ms"], rules=rules))
        self.assertTrue(differences(document, ["all in one  3 ms"], rules=rules))

    def test_the_sign_for_minus(self):
        self.assertTrue(differences(["change  −1.2 ms"], ["change  -3 ms"]))
        self.assertEqual(differences(["change  −1.2 ms"], ["change  +3 ms"]), [])

    def test_nothing_is_wrong(self):
        self.assertTrue(differences([], ELSEWHERE))
        self.assertTrue(differences(["…"], ELSEWHERE))


class Markers(unittest.TestCase):
    def blocks(self, text):
        return Document("x.md", text).blocks

    def test_blocks_and_what_excuses_them(self):
        self.assertTrue(self.blocks("a\n\n    tracer report FILE   # rows\n    scripts/test\n")[0].is_excused())
        self.assertFalse(self.blocks("a\n\n    tracer report FILE\n\n     calls  total\n")[0].is_excused())
        self.assertFalse(self.blocks("```\n calls  total\n```\n")[0].is_excused())
        self.assertFalse(self.blocks("    tracer: it was so\n")[0].is_excused())
        self.assertTrue(self.blocks("```sql\nSELECT 1\n```\n")[0].is_excused())
        self.assertTrue(self.blocks("    ┌──┐\n    │a │\n")[0].is_excused())
        self.assertTrue(self.blocks("<!-- no example: a layout -->\n\n    0  header\n")[0].is_excused())

    def test_a_marker_belongs_to_the_block_below_it(self):
        block, = self.blocks("<!-- example\nrun: tracer report |\n  head\nany: x\nany: y\n-->\n\n    a  b\n\n    c\n\ntext\n")
        self.assertEqual(block.marker, {"run": ["tracer report |\nhead"], "any": ["x", "y"]})
        self.assertEqual(block.lines, ["a  b", "", "c"])

    def test_mistakes(self):
        for text in ("<!-- example\nrun: a\n-->\n\ntext\n", "<!-- example\nrun: a\n-->\n", "<!-- example\n-->\n\n    a\n",
                     "<!-- example\nrum: a\n-->\n\n    a\n", "<!-- example\nrun: a\nany: (\n-->\n\n    a\n", "<!-- no example: -->\n\n    a\n",
                     "<!-- example\nrun: a\nrows: some\n-->\n\n    a\n", "<!-- example\nrun: a\n", "<!-- example\nrun: a\nor: b\n-->\n\n    a\n"):
            with self.assertRaises(Mistake, msg=text):
                Document("x.md", text)

    def test_replacing_keeps_what_surrounds(self):
        document = Document("x.md", "a\n\n<!-- example\nrun: b\n-->\n\n    c\n\n    d\n\ne\n")
        document.replace(document.blocks[0], ["1", "", "2", "3"])
        self.assertEqual(document.text(), "a\n\n<!-- example\nrun: b\n-->\n\n    1\n\n    2\n    3\n\ne\n")


class RealDocuments(unittest.TestCase):
    """An example that nothing can break shows nothing."""

    def examples(self):
        for path in [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True))]:
            yield from Document(path, pathlib.Path(path).read_text(encoding="utf-8")).examples()

    def test_there_are_some(self):
        self.assertGreater(len(list(self.examples())), 10)

    def test_no_line_can_change_its_words_unseen(self):
        for block in self.examples():
            rules = Rules.of(block.marker)
            self.assertEqual(differences(block.lines, block.lines, rules=rules), [], block.location)
            for number, line in enumerate(block.lines):
                words = [match.span() for match in re.finditer(r"[^\W\d_]{2,}", line)]
                if not words or line.strip() == "…":
                    continue
                seen = 0
                for begin, end in words:
                    changed = [*block.lines]
                    changed[number] = line[:begin] + "Xyzzy" + line[end:]
                    seen += bool(differences(changed, block.lines, rules=rules))
                self.assertGreater(seen, 0, f"{block.location}: {line}")

    def test_no_heading_can_lose_a_column_unseen(self):
        for block in self.examples():
            for number, line in enumerate(block.lines):
                cells = re.split(r"\s{2,}", line.strip())
                if len(cells) < 3 or re.search(r"\d", line.replace("p50", "").replace("p90", "").replace("p95", "")):
                    continue
                for cell in cells:
                    changed = [*block.lines]
                    changed[number] = line.replace(cell, "", 1)
                    self.assertTrue(differences(changed, block.lines, rules=Rules.of(block.marker)), f"{block.location}: {cell}")


class Benchmark(unittest.TestCase):
    def setUp(self):
        self.text = pathlib.Path(ROOT, "docs/measurements/performance.md").read_text(encoding="utf-8")

    def wrong(self, text):
        return [text for _, text in named.wrong_in_bench(ROOT, Document("docs/measurements/performance.md", text))]

    def test_the_tables_have_the_rows_of_the_script(self):
        self.assertEqual(self.wrong(self.text), [])

    def test_a_row_too_many_or_too_few(self):
        self.assertTrue(self.wrong(self.text.replace("| excluded |", "| omitted |")))
        self.assertTrue(self.wrong(self.text.replace("| `resident` |", "| `memory` |")))
        self.assertTrue(self.wrong(re.sub(r"\| folded .*\n", "", self.text)))
        self.assertTrue(self.wrong(self.text.replace("| two clock reads | limit |", "| limit |")))


HELP = {"command": {"commandName": "tracer", "arguments": [], "subcommands": [
    {"commandName": "report", "arguments": [
        {"kind": "option", "names": [{"kind": "long", "name": "by"}], "allValues": ["function", "module"]},
        {"kind": "flag", "names": [{"kind": "long", "name": "json"}]}]},
    {"commandName": "record", "arguments": [
        {"kind": "option", "names": [{"kind": "short", "name": "o"}, {"kind": "long", "name": "output"}], "abstract": "Trace file. TRACER_OUT."},
        {"kind": "option", "names": [{"kind": "long", "name": "mode"}], "abstract": "What it keeps. TRACER_MODE."}]},
    {"commandName": "history", "arguments": [], "subcommands": [
        {"commandName": "show", "arguments": [{"kind": "option", "names": [{"kind": "long", "name": "html"}]}]}]}]}}

STAND_IN = """#!/bin/sh
case $1 in
    --experimental-dump-help) cat "${0%/*}/help.json" ;;
    report) cat "${0%/*}/report" ;;
    info) printf 'setting         TRACER_OUT=/x/tracer.trace\\nsetting         TRACER_MODE=full\\n' ;;
esac
"""

DOCUMENT = """# A document

`tracer report --by module` and [itself](document.md):

<!-- machine -->
Figures: a machine.

<!-- example
run: tracer report
-->

""" + "\n".join("    " + line if line else "" for line in TABLE) + "\n"

SETTINGS = """
## Settings

| option | variable | value | default |
|---|---|---|---|
| `-o`, `--output` | `TRACER_OUT` | a file | `tracer.trace` |
| `--mode` | `TRACER_MODE` | `full`, or `ring` | `full` |
"""


class Script(unittest.TestCase):
    """scripts/examples from outside, with a stand-in for the tool."""

    def setUp(self):
        self.folder = new_folder()
        self.write("tracer", STAND_IN)
        os.chmod(os.path.join(self.folder, "tracer"), stat.S_IRWXU)
        self.write("help.json", json.dumps(HELP))
        self.write("libtracer.so", "TRACER_OUT= TRACER_MODE=")
        self.write("report", "\n".join(ELSEWHERE) + "\n")

    def write(self, name, text):
        pathlib.Path(self.folder, name).write_text(text, encoding="utf-8")

    def examples(self, document, *more):
        self.write("document.md", document)
        return subprocess.run([sys.executable, os.path.join(ROOT, "scripts/examples"), "--tool", os.path.join(self.folder, "tracer"),
                               os.path.join(self.folder, "document.md"), *more], capture_output=True, text=True, timeout=300)

    def passes(self, document):
        result = self.examples(document)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def fails(self, document, *texts):
        result = self.examples(document)
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        for text in texts:
            self.assertIn(text, result.stdout)

    def test_a_true_document(self):
        self.passes(DOCUMENT + SETTINGS)

    def test_a_renamed_column_in_the_document(self):
        self.fails(DOCUMENT.replace("self  function", "own  function"), "is not printed: calls", ":12:")

    def test_a_renamed_column_in_the_tool(self):
        self.write("report", "\n".join(edited(ELSEWHERE, "self", "own")))
        self.fails(DOCUMENT, "is not printed: calls")

    def test_a_row_that_the_tool_does_not_print(self):
        self.fails(DOCUMENT.replace("dlopen", "__libc_start_main"), "is not printed: 2    2.097 ms    2.094 ms  __libc_start_main")

    def test_a_tool_that_prints_nothing(self):
        self.write("report", "")
        self.fails(DOCUMENT, "is not printed: app (pid 12)")

    def test_a_tool_that_draws_boxes_would_let_blocks_escape(self):
        self.write("report", "\n".join([*ELSEWHERE, "├─ child"]))
        self.fails(DOCUMENT, "taken for a drawing")

    def test_an_unmarked_block(self):
        self.fails(DOCUMENT + "\ntext\n\n    1 call  recorded\n", "neither commands nor marked")

    def test_times_without_a_machine(self):
        self.fails(DOCUMENT.replace("<!-- machine -->\n", ""), "not on which machine")

    def test_names_that_are_not_there(self):
        self.fails(DOCUMENT + "\n`tracer reprot FILE`\n", "no command 'reprot'")
        self.fails(DOCUMENT + "\n`tracer report --bye module`\n", "tracer report has no option --bye")
        self.fails(DOCUMENT + "\n`tracer report --by modul`\n", "does not take 'modul'")
        self.fails(DOCUMENT + "\ntext\n\n    tracer report FILE --jsonn  # a row\n", "no option --jsonn")
        self.fails(DOCUMENT + "\nwith `--frobnicate` it does\n", "has the option --frobnicate")
        self.fails(DOCUMENT + "\n`scripts/frobnicate`\n", "there is no scripts/frobnicate")
        self.fails(DOCUMENT + "\n`scripts/examples --un" + "heard`\n", "scripts/examples has no option --un" + "heard")  # this file is read, too
        self.fails(DOCUMENT + "\n[there](nowhere.md)\n", "leads nowhere")
        self.passes(DOCUMENT + "\n`tracer history --html FILE`, `tracer record -o x -- ls --all`, `--json`, `scripts/examples --list`\n")

    def test_settings(self):
        self.fails(DOCUMENT + SETTINGS.replace("`--mode` |", "`--modes` |"), "no option --modes")
        self.fails(DOCUMENT + SETTINGS.replace("TRACER_MODE", "TRACER_OUT"), "lacks TRACER_MODE", "--mode of tracer record does not set TRACER_OUT")
        self.fails(DOCUMENT + SETTINGS.replace("| `full` |", "| `ring` |"), "TRACER_MODE is 'full' unless it is set, not 'ring'")
        self.write("libtracer.so", "TRACER_OUT=")
        self.fails(DOCUMENT + SETTINGS, "the agent knows no TRACER_MODE")

    def test_a_program_that_is_missing_is_said(self):
        result = self.examples(DOCUMENT.replace("run:", "needs: no-such-program\nrun:"))
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("skipped: ", result.stdout)
        self.assertIn("needs no-such-program", result.stdout)
        self.fails(DOCUMENT.replace("run:", "needs: no-such-program\nalso: echo nothing\nrun:"), "is not printed: app")

    def test_update_writes_what_is_printed(self):
        stale = DOCUMENT.replace("self  function", "own  function")
        result = self.examples(stale, "--update")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        written = pathlib.Path(self.folder, "document.md").read_text(encoding="utf-8")
        self.assertIn("    1,000,000  1.000 s  1.000 s  memcpy     libc.so.6\n", written)
        self.assertNotIn("own", written)
        self.assertNotIn("a machine", written)
        self.passes(written)

    def test_update_leaves_a_document_alone_when_a_program_is_missing(self):
        text = DOCUMENT.replace("run:", "needs: no-such-program\nrun:")
        result = self.examples(text, "--update")
        self.assertIn("not changed", result.stdout)
        self.assertEqual(pathlib.Path(self.folder, "document.md").read_text(encoding="utf-8"), text)
