#!/usr/bin/env python3
"""`tracer view` in a headless Chromium: the page loads without a complaint or a look at the network, shows what the report
says, zooms, searches, sorts. With --screenshots FOLDER it leaves pictures."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
from browser import Browser  # noqa: E402

TOOL = os.path.join(ROOT, ".build/release/tracer")
AGENT = os.path.join(ROOT, ".build/release/libtracer.so")
LIMIT = 240
PICTURES = None


def record(folder, *command):
    trace = os.path.join(folder, "run.trace")
    subprocess.run(command, env={**os.environ, "LD_PRELOAD": AGENT, "TRACER_OUT": trace, "TRACER_CHILDREN": "0"}, check=True,
                   stdout=subprocess.DEVNULL, timeout=LIMIT)
    return trace


class ViewTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tracer-view-")
        cls.trace = record(cls.folder, "python3", "-c", "import json, threading\n"
                           "def work(): json.loads(json.dumps(list(range(20000))))\n"
                           "threads = [threading.Thread(target=work) for _ in range(3)]\n"
                           "[t.start() for t in threads]; [t.join() for t in threads]")
        cls.page = os.path.join(cls.folder, "page.html")
        subprocess.run([TOOL, "view", cls.trace, "-o", cls.page], check=True, timeout=LIMIT, stderr=subprocess.DEVNULL)
        cls.report = json.loads(subprocess.run([TOOL, "report", "--json", cls.trace], check=True, capture_output=True, timeout=LIMIT).stdout)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def setUp(self):
        signal.alarm(LIMIT)
        self.browser.complaints.clear()

    def tearDown(self):
        signal.alarm(0)
        self.assertEqual(self.browser.complaints, [])

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
        name = b"PyObject_Malloc"
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


if __name__ == "__main__":
    if "--screenshots" in sys.argv:
        place = sys.argv.index("--screenshots")
        PICTURES = os.path.abspath(sys.argv[place + 1])
        os.makedirs(PICTURES, exist_ok=True)
        del sys.argv[place:place + 2]
    if not shutil.which("chromium") and not shutil.which("chromium-browser") and not shutil.which("google-chrome"):
        sys.exit("chromium is missing: scripts/setup installs it")
    unittest.main()
