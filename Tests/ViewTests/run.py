#!/usr/bin/env python3
"""`tracer view` in a headless Chromium: the page loads without a complaint or a look at the network, shows what the report
says, zooms, searches, sorts. With --screenshots FOLDER it leaves pictures."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
from browser import LIMIT, Browser, BrowserTest  # noqa: E402

TOOL = os.path.join(ROOT, ".build/release/tracer")
AGENT = os.path.join(ROOT, ".build/release/libtracer.so")
PICTURES = None


def program(folder):
    """That of work.c."""
    for output, options in (("libwork.so", ["-shared", "-fPIC", "-DLIBRARY"]), ("work", ["-L.", "-lwork", "-Wl,-rpath,$ORIGIN"])):
        subprocess.run(["gcc", "-O1", "-g", "-pthread", os.path.join(HERE, "work.c"), "-o", output, *options], cwd=folder, check=True, timeout=LIMIT)
    return os.path.join(folder, "work")


def record(folder, *command):
    trace = os.path.join(folder, "run.trace")
    subprocess.run(command, env={**os.environ, "LD_PRELOAD": AGENT, "TRACER_OUT": trace, "TRACER_CHILDREN": "0"}, check=True,
                   stdout=subprocess.DEVNULL, timeout=LIMIT)
    return trace


class PageTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tracer-view-")
        cls.page = os.path.join(cls.folder, "page.html")
        cls.make()
        cls.browser = Browser()

    def open(self, hash=""):
        self.browser.open(self.page, hash)
        self.browser.settle()

    def picture(self, name):
        if PICTURES:
            self.browser.screenshot(os.path.join(PICTURES, name + ".png"))

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def painted(self, canvas):
        """How many colours a canvas shows: one when it is empty."""
        return self.browser.evaluate(
            f"(() => {{ const c = document.getElementById('{canvas}'), d = c.getContext('2d').getImageData(0, 0, c.width, Math.min(c.height, 600)).data,"
            " s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()")


class ViewTest(PageTest):
    @classmethod
    def make(cls):
        cls.trace = record(cls.folder, program(cls.folder))
        subprocess.run([TOOL, "view", cls.trace, "-o", cls.page], check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
        cls.report = json.loads(subprocess.run([TOOL, "report", "--json", cls.trace], check=True, capture_output=True, timeout=LIMIT).stdout)

    def test_page_is_one_file_without_links(self):
        html = pathlib.Path(self.page).read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(?:src|href)\s*=", html), [])
        self.assertNotIn("http://", html.replace("http://www.w3.org", ""))
        self.assertLess(os.path.getsize(self.page), 10_000_000)

    def test_flame_graph_zooms_in_by_click_and_out_by_escape(self):
        self.open()
        self.assertGreater(self.painted("flame"), 3)
        self.picture("flame")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#crumbs button').length"), 1)
        box = self.browser.evaluate("(() => { const b = document.getElementById('flame').getBoundingClientRect(); return [b.left, b.top]; })()")
        self.browser.click(box[0] + 60, box[1] + 30)  # the second row
        self.assertGreater(self.browser.evaluate("document.querySelectorAll('#crumbs button').length"), 2)
        self.assertIn("total", self.text("#flame-details"))
        self.picture("flame-zoomed")
        self.browser.key("0")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#crumbs button').length"), 1)

    def test_search_counts_calls_of_what_it_highlights(self):
        self.open()
        self.browser.key("/")
        name = max(self.report["functions"], key=lambda f: f["calls"])["name"]
        self.browser.type("^" + re.escape(name) + "$")
        calls = sum(f["calls"] for f in self.report["functions"] if f["name"] == name)
        self.assertIn(f"{calls:,} call", self.text("#matches"))
        self.picture("flame-search")
        self.browser.key("Escape")
        self.assertEqual(self.text("#matches"), "")
        self.browser.key("/")
        self.browser.type("([")  # no expression: taken as it stands
        self.assertEqual(self.text("#matches"), "no match")

    def test_table_has_the_figures_of_the_report(self):
        self.open("#table")
        self.picture("table")
        rows = self.browser.evaluate("DATA.table.map(r => [DATA.functions[r[0]][0], DATA.functions[r[0]][1], r[1], r[2], r[3]])")
        self.assertEqual(sorted((f["name"], f["module"], f["calls"], f["self_ns"]) for f in self.report["functions"]),
                         sorted((name, module, calls, own) for name, module, calls, _, own in rows))
        self.browser.evaluate("document.querySelectorAll('#table-head th')[4].click()")
        shown = self.browser.evaluate("document.querySelector('#table-body tr td:nth-child(5)').textContent.replaceAll(',', '')")
        self.assertEqual(int(shown), max(f["calls"] for f in self.report["functions"]))

    def test_tree_holds_every_call_once(self):
        self.open()
        calls = self.browser.evaluate("DATA.tree.calls.reduce((sum, n, i) => sum + (DATA.tree.depth[i] ? n : 0), 0)")
        self.assertEqual(calls, sum(f["calls"] for f in self.report["functions"]))

    def test_timeline_shows_threads_and_zooms(self):
        self.open("#timeline")
        self.picture("timeline")
        self.assertGreaterEqual(self.browser.evaluate("DATA.threads.length"), 4)
        self.assertGreater(self.painted("line"), 5)
        before = self.text("#line-range")
        self.browser.wheel(640, 300, -300)
        self.browser.settle()
        self.assertNotEqual(self.text("#line-range"), before)
        self.picture("timeline-zoomed")
        self.browser.key("0")
        self.browser.settle()
        self.assertEqual(self.text("#line-range"), before)

    def test_slices_of_a_level_do_not_overlap(self):
        self.open()
        overlaps = self.browser.evaluate("""DATA.threads.reduce((bad, t) => {
            const last = [];
            for (let i = 0; i < t.slices.length; i += 4) {
                const [at, length, , level] = t.slices.slice(i, i + 4);
                if (last[level] > at + 1) bad++;
                last[level] = at + length;
            }
            return bad; }, 0)""")
        self.assertEqual(overlaps, 0)

    def test_dark_theme_follows_the_system_and_the_key(self):
        self.open()
        self.assertEqual(self.browser.evaluate("document.documentElement.dataset.theme"), "light")
        self.browser.key("t")
        self.assertEqual(self.browser.evaluate("document.documentElement.dataset.theme"), "dark")
        self.picture("flame-dark")
        dark = Browser(dark=True)
        try:
            dark.open(self.page)
            self.assertEqual(dark.evaluate("document.documentElement.dataset.theme"), "dark")
        finally:
            dark.close()

    def test_names_from_the_program_are_text_and_never_markup(self):
        hostile = os.path.join(self.folder, "hostile.trace")
        data = pathlib.Path(self.trace).read_bytes()
        name = b"work_parse_text"
        self.assertIn(name, data)
        data = data.replace(name, b"</script><b>x&\"")
        pathlib.Path(hostile).write_bytes(data)
        page = hostile + ".html"
        subprocess.run([TOOL, "view", hostile, "-o", page], check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
        self.browser.open(page, "#table")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('b').length - document.querySelectorAll('#flame-details b').length"), 0)
        self.assertIn("</script><b>", " ".join(self.browser.evaluate("DATA.functions.map(f => f[0])")))

    def test_what_is_there_is_not_overwritten_unasked(self):
        done = subprocess.run([TOOL, "view", self.trace, "-o", self.page], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)

    def test_a_folder_that_is_not_there_is_told_in_the_systems_words(self):
        place = os.path.join(self.folder, "nowhere", "page.html")
        done = subprocess.run([TOOL, "view", self.trace, "-o", place], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stderr), (1, f"tracer: {place} cannot be written: No such file or directory\n"))


class DiffTest(PageTest):
    """One page of two traces: more is pressed after, and less is parsed."""
    @classmethod
    def make(cls):
        cls.program = program(cls.folder)
        cls.sides = [cls.record_of("before", "1", "12"), cls.record_of("after", "8", "2")]
        subprocess.run([TOOL, "diff", *cls.sides, "--html", cls.page], check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
        cls.diff = json.loads(subprocess.run([TOOL, "diff", *cls.sides, "--json"], check=True, capture_output=True, timeout=LIMIT).stdout)

    @classmethod
    def record_of(cls, name, *arguments):
        folder = os.path.join(cls.folder, name)
        os.mkdir(folder)
        return record(folder, cls.program, *arguments)

    def place_of(self, colour):
        """Where in the window the flame graph is strongest in this colour, of the frames below the first two rows, which are 20 high,
        beneath their text, and wide enough to be hit; how much."""
        return self.browser.evaluate("""(() => {
            const canvas = document.getElementById('flame'), box = canvas.getBoundingClientRect();
            const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let best = [0, 0, 0];
            const visible = Math.min(canvas.height, document.getElementById('flame-box').clientHeight - 5);
            const equal = (i, j) => d[i] === d[j] && d[i + 1] === d[j + 1] && d[i + 2] === d[j + 2];
            for (let y = 57; y < visible; y += 20) for (let x = 4; x < canvas.width - 4; x += 2) {
                const i = (y * canvas.width + x) * 4, strength = %s;
                if (d[i + 3] && strength > best[2] && equal(i, i - 12) && equal(i, i + 12)) best = [box.left + x, box.top + y, strength];
            }
            return best; })()""" % {"red": "d[i] - d[i + 2]", "blue": "d[i + 2] - d[i]"}[colour])

    def check_colours(self):
        for colour, sign in (("red", "(+"), ("blue", "(−")):
            x, y, strength = self.place_of(colour)
            # How strong depends on the largest difference, which on a busy machine may be anywhere; the sign does not.
            self.assertGreater(strength, 0, colour)
            self.browser.click(x, y)
            self.assertIn(sign, self.text("#flame-details"), colour)
            self.browser.key("0")

    def test_what_is_red_got_slower_and_what_is_blue_got_faster(self):
        self.open()
        self.picture("diff")
        self.check_colours()
        self.browser.key("t")
        self.picture("diff-dark")
        self.check_colours()

    def test_frames_have_the_calls_and_the_times_of_both_sides(self):
        self.open()
        sums = self.browser.evaluate("(() => { const T = DATA.tree, sums = [0, 0]; for (let i = 1; i < T.fn.length; i++) "
                                     "{ sums[0] += T.callsBefore[i]; sums[1] += T.calls[i]; } return [...sums, T.callsBefore[0], T.calls[0], T.before[0], T.total[0]]; })()")
        calls = [sum(path[side]["calls"][0] for path in self.diff["paths"]) for side in ("before", "after")]
        self.assertEqual(sums[:4], calls + calls)
        for whole, side in zip(sums[4:], ("before", "after")):
            self.assertEqual(whole, round(sum(path[side]["self_ns"][0] for path in self.diff["paths"])))
        # What is below a frame fits into it, also where it is gone on one side.
        self.assertEqual(self.browser.evaluate("""(() => {
            const T = DATA.tree, open = [], below = T.fn.map(() => 0);
            for (let i = 0; i < T.fn.length; i++) {
                while (open.length > T.depth[i]) open.pop();
                if (open.length) below[open[open.length - 1]] += T.width[i];
                open.push(i);
            }
            return T.fn.filter((_, i) => below[i] > T.width[i] + T.fn.length || T.width[i] + 1 < Math.max(T.total[i], T.before[i])).length; })()"""), 0)

    def test_table_begins_with_what_changed_most(self):
        self.open("#table")
        self.picture("diff-table")
        rows = self.browser.evaluate("[...document.querySelectorAll('#table-body tr')].map(r => r.firstChild.firstChild.textContent)")
        functions = {function["name"]: abs(function["difference_ns"]) for function in self.diff["functions"]}
        self.assertEqual(rows[0], max(functions, key=functions.get))
        self.assertEqual(len(rows), min(len(self.diff["functions"]), 1000))
        self.assertIn("one run on each side", self.text("#notes"))
        self.assertEqual(self.browser.evaluate("document.getElementById('tab-line').hidden"), True)

    def test_of_sets_of_runs_what_lies_within_the_noise_is_grey_and_says_so(self):
        page = os.path.join(self.folder, "sets.html")
        arguments = [f"--{side}={path}" for side, path in (("before", self.sides[0]), ("before", self.sides[1]), ("after", self.sides[1]), ("after", self.sides[0]))]
        subprocess.run([TOOL, "diff", *arguments, "--html", page], check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
        self.browser.open(page)
        self.browser.settle()
        for colour in ("red", "blue"):
            self.assertLess(self.place_of(colour)[2], 30, colour)
        box = self.browser.evaluate("(() => { const b = document.getElementById('flame').getBoundingClientRect(); return [b.left, b.top]; })()")
        self.browser.click(box[0] + 60, box[1] + 30)
        self.assertIn("within the noise", self.text("#flame-details"))

    def test_what_is_there_is_not_overwritten_unasked(self):
        done = subprocess.run([TOOL, "diff", *self.sides, "--html", self.page], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)


if __name__ == "__main__":
    if "--screenshots" in sys.argv:
        place = sys.argv.index("--screenshots")
        PICTURES = os.path.abspath(sys.argv[place + 1])
        os.makedirs(PICTURES, exist_ok=True)
        del sys.argv[place:place + 2]
    if not shutil.which("chromium") and not shutil.which("chromium-browser") and not shutil.which("google-chrome"):
        sys.exit("chromium is missing: scripts/setup installs it")
    unittest.main()
