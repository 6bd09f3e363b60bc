"""`tracer view` in a headless Chromium: the page loads without a complaint or a look at the network, shows what the report
says, zooms, searches, sorts. With TRACER_SCREENSHOTS=FOLDER it leaves pictures."""
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import unittest
import urllib.error
import urllib.request

from browser import LIMIT, BrowserTest
from kernel_account import kernel_reports
from recorded_programs import ROOT, TOOL, figures, new_folder, preloaded, run, tracer

HERE = os.path.dirname(os.path.abspath(__file__))
DROPPED = 120  # its offset in the header: docs/reference/format.md


def program(folder):
    """Builds work.c; returns the path of the program."""
    for output, options in (("libwork.so", ["-shared", "-fPIC", "-DLIBRARY"]), ("work", ["-L.", "-lwork", "-Wl,-rpath,$ORIGIN"])):
        run("gcc", "-O1", "-g", "-pthread", os.path.join(HERE, "work.c"), "-o", output, *options, folder=folder)
    return os.path.join(folder, "work")


class PageTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.page = os.path.join(cls.folder, "page.html")
        cls.make()
        super().setUpClass()

    @classmethod
    def record_work(cls, *arguments, name="run"):
        """Returns a trace of work.c."""
        return preloaded(os.path.join(cls.folder, name + ".trace"), program(cls.folder), *arguments)

    def open(self, hash=""):
        self.browser.open(self.page, hash)
        self.browser.settle()

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def painted(self, canvas):
        """How many colours a canvas shows: one when it is empty."""
        return self.browser.evaluate(
            f"(() => {{ const c = document.getElementById('{canvas}'), d = c.getContext('2d').getImageData(0, 0, c.width, Math.min(c.height, 600)).data,"
            " s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()")

    def seconds(self, text):
        number, unit = text.split(" ")
        return float(number.replace("−", "-")) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]

    def shown_times(self):
        """Begin and end of what the timeline shows, in seconds."""
        return [self.seconds(part) for part in self.text("#line-range").split(" (")[0].split(" to ")]

    def zoom(self, moment, length):
        """Turns the wheel until the timeline shows less than that length around the moment, in seconds."""
        for _ in range(60):
            left, width = self.browser.evaluate("(() => { const b = document.getElementById('line').getBoundingClientRect(); return [b.left, b.width]; })()")
            low, high = self.shown_times()
            if high - low < length:
                break
            self.browser.wheel(left + width * (moment - low) / (high - low), 200, -300)

    def hovered(self, wanted, having=""):
        """Returns a point of the timeline where the tip begins with `wanted` and has `having`, and the tip's text; None if there is none."""
        return self.browser.evaluate("""((wanted, having) => {
            const canvas = document.getElementById('line'), area = canvas.getBoundingClientRect(), tip = document.getElementById('tip');
            const bottom = document.getElementById('line-box').getBoundingClientRect().bottom;
            for (let y = area.top + 24; y < Math.min(area.bottom, bottom); y += 6) for (let x = area.left + 4; x < area.right - 4; x += 5) {
                canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: x, clientY: y }));
                if (tip.style.display === 'block' && tip.textContent.startsWith(wanted) && tip.textContent.includes(having)) return [x, y, tip.textContent];
            }
            return null; })(%s, %s)""" % (json.dumps(wanted), json.dumps(having)))


class ViewTest(PageTest):
    @classmethod
    def make(cls):
        cls.trace = cls.record_work()
        tracer("view", cls.trace, "-o", cls.page)
        cls.report = figures("report", cls.trace)

    def test_page_is_one_file_without_links(self):
        html = pathlib.Path(self.page).read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(?:src|href)\s*=", html), [])
        self.assertNotIn("http://", html.replace("http://www.w3.org", ""))
        self.assertLess(os.path.getsize(self.page), 10_000_000)

    def test_a_look_at_the_network_is_seen(self):
        page = os.path.join(self.folder, "looks.html")
        pathlib.Path(page).write_text("<html data-ready=yes><img src='http://127.0.0.1:9/look'>")
        self.browser.open(page)
        while len(self.browser.complaints) < 2:  # the request, and its failure
            self.browser.settle()
        self.assertIn("network: http://127.0.0.1:9/look", self.browser.complaints)
        self.browser.complaints.clear()

    def test_where_the_kernel_has_not_reported_there_is_nothing_of_it(self):
        self.open("#samples")
        self.assertEqual(self.browser.evaluate("[DATA.samples, ...DATA.threads.map(t => t.states)].filter(one => one !== null).length"), 0)
        self.browser.perform("document.getElementById('tab-table').click()")
        self.assertIn("Self time", self.text("#table-head"))
        self.assertNotIn("waiting", self.text("#table-head"))
        self.browser.perform("document.querySelector('#table-body tr').click()")
        self.assertNotIn("waiting", self.text("#table-details"))
        self.open("#samples")
        for name in ("tab-samples", "line-legend", "keys-samples"):
            self.assertTrue(self.browser.evaluate(f"document.getElementById('{name}').hidden"), name)
        self.assertTrue(self.browser.evaluate("document.getElementById('page-flame').classList.contains('on')"), "a view that is not there")

    def test_flame_graph_zooms_in_by_click_and_out_by_escape(self):
        self.open()
        self.assertGreater(self.painted("flame"), 3)
        self.picture("flame")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#flame-crumbs button').length"), 1)
        box = self.browser.evaluate("(() => { const b = document.getElementById('flame').getBoundingClientRect(); return [b.left, b.top]; })()")
        self.browser.click(box[0] + 60, box[1] + 30)  # the second row
        self.assertGreater(self.browser.evaluate("document.querySelectorAll('#flame-crumbs button').length"), 2)
        self.assertIn("total", self.text("#flame-details"))
        self.picture("flame-zoomed")
        self.browser.key("0")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#flame-crumbs button').length"), 1)

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
        own = [("(own code)", module["name"], 0, module["own_ns"]) for module in self.report["modules"] if module["own_ns"]]
        self.assertEqual(sorted([(f["name"], f["module"], f["calls"], f["self_ns"]) for f in self.report["functions"]] + own),
                         sorted((name, module, calls, own) for name, module, calls, _, own in rows))
        self.browser.evaluate("document.querySelectorAll('#table-head th:not(.passed)')[4].click()")
        shown = self.browser.evaluate("document.querySelectorAll('#table-body tr:first-child td:not(.passed)')[4].textContent.replaceAll(',', '')")
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
        self.assertNotEqual(self.text("#line-range"), before)
        self.picture("timeline-zoomed")
        self.browser.key("0")
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
        self.browser.appear(dark=True)
        self.open()
        self.assertEqual(self.browser.evaluate("document.documentElement.dataset.theme"), "dark")

    def test_names_from_the_program_are_text_and_never_markup(self):
        hostile = os.path.join(self.folder, "hostile.trace")
        data = pathlib.Path(self.trace).read_bytes()
        name = b"work_parse_text"
        self.assertIn(name, data)
        data = data.replace(name, b"</script><b>x&\"")
        pathlib.Path(hostile).write_bytes(data)
        page = hostile + ".html"
        tracer("view", hostile, "-o", page)
        self.browser.open(page, "#table")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('b').length - document.querySelectorAll('#flame-details b').length"), 0)
        self.assertIn("</script><b>", " ".join(self.browser.evaluate("DATA.functions.map(f => f[0])")))

    def test_what_is_there_is_not_overwritten_unasked(self):
        self.assertIn("--force", tracer("view", self.trace, "-o", self.page, status=2).stderr)

    def test_a_folder_that_is_not_there_is_reported_in_the_systems_words(self):
        path = os.path.join(self.folder, "nowhere", "page.html")
        done = tracer("view", self.trace, "-o", path, status=1)
        self.assertEqual(done.stderr, f"tracer: cannot create {path}: No such file or directory\n")

    def drag(self, x, y, to, shift=False):
        for kind, at, buttons in (("mousePressed", x, 1), ("mouseMoved", (x + to) / 2, 1), ("mouseMoved", to, 1), ("mouseReleased", to, 0)):
            self.browser.call("Input.dispatchMouseEvent", type=kind, x=at, y=y, button="none" if kind == "mouseMoved" else "left", buttons=buttons,
                              clickCount=0 if kind == "mouseMoved" else 1, modifiers=8 if shift else 0)
        self.browser.settle()

    def sums(self):
        """Function: its row of the selection's table."""
        rows = self.browser.evaluate("[...document.querySelectorAll('#line-details tbody tr')].map(r => [...r.querySelectorAll('td:not(.passed)')].map(c => c.textContent))")
        return {row[0].split("  ")[0]: row[1:] for row in rows}

    def test_a_selected_time_has_its_sums_by_function(self):
        self.open("#timeline")
        self.browser.key("v")
        sums = self.sums()
        self.picture("selection")
        calls = {f["name"]: f["calls"] for f in self.report["functions"]}
        for name in ("pthread_create", "work_parse_text"):
            self.assertEqual(int(sums[name][2]), calls[name], name)
        # A thread that has ended already is joined in no time: that call may be too short to be drawn.
        self.assertTrue(0 < int(sums["pthread_join"][2]) <= calls["pthread_join"])
        self.assertIn("(own code)", sums)
        self.assertIn("too short to be drawn", self.text("#line-details"))
        self.assertNotIn("p50", self.text("#line-details"))
        self.browser.key("Escape")
        self.assertEqual(self.sums(), {})
        box = self.browser.evaluate("(() => { const b = document.getElementById('line').getBoundingClientRect(); return [b.left, b.top, b.width]; })()")
        before = self.text("#line-range")
        # A tenth of the time around the longest call, wherever it lies: a busy machine may have run nothing in another tenth.
        begin, length = self.browser.evaluate("""DATA.threads.flatMap(t => Array.from({ length: t.slices.length / 4 }, (_, i) => [...t.slices.slice(i * 4, i * 4 + 4)]))
            .filter(s => DATA.functions[s[2]][0] !== '(own code)').sort((a, b) => b[1] - a[1])[0]""")[:2]
        low, high = self.shown_times()
        middle = min(max(((begin + length / 2) / 1e9 - low) / (high - low), 0.06), 0.94)
        self.drag(box[0] + box[2] * (middle - 0.05), box[1] + 8, box[0] + box[2] * (middle + 0.05))
        self.assertEqual(self.text("#line-range"), before)
        self.assertGreater(len(self.sums()), 0)
        self.drag(box[0] + box[2] * 0.2, box[1] + 100, box[0] + box[2] * 0.3, shift=True)
        self.assertEqual(self.text("#line-range"), before)
        self.drag(box[0] + box[2] * 0.2, box[1] + 100, box[0] + box[2] * 0.3)
        self.assertEqual(self.text("#line-range"), before, "of all the time there is nowhere to move to")

    def test_own_code_is_drawn_with_its_length(self):
        self.open("#timeline")
        own = self.browser.evaluate("""DATA.threads.flatMap((t, lane) => Array.from({ length: t.slices.length / 4 }, (_, i) => [lane, ...t.slices.slice(i * 4, i * 4 + 4)]))
            .filter(s => DATA.functions[s[3]][0] === '(own code)')""")
        self.assertTrue(own)
        self.assertEqual({slice[4] for slice in own}, {0})
        # Own code too short to be drawn one by one is in the sum of the thread, which is the report's.
        threads = self.browser.evaluate("DATA.threads.map(t => [t.tid, t.own])")
        for tid, ns in threads:
            reported = next(t["own_ns"] for t in self.report["threads"] if t["tid"] == tid)
            self.assertAlmostEqual(ns, reported, delta=1)  # the report carries what is rounded off from thread to thread
        longest = max(own, key=lambda slice: slice[2])
        self.browser.key("0")
        self.zoom((longest[1] + longest[2] / 2) / 1e9, 4 * longest[2] / 1e9)  # it is wide enough to be hit then
        found = self.hovered("(own code)\nwork\n")
        self.assertIsNotNone(found)
        self.browser.click(*found[:2])
        self.picture("own-code")
        self.assertIn("(own code)", self.text("#line-details"))
        self.assertIn("in all: ", self.text("#line-details"))

    def test_callers_and_callees_of_a_function(self):
        self.open("#table")
        self.browser.evaluate("[...document.querySelectorAll('#table-body tr')].find(r => r.textContent.startsWith('strtol')).click()")
        self.picture("table-details")
        details = self.text("#table-details")
        self.assertRegex(details, r"p50 .*p99 .*longest ")
        self.browser.perform("[...document.querySelectorAll('#table-details button')].find(b => b.textContent === 'Callers and callees').click()")
        self.picture("around")
        self.assertEqual(self.browser.evaluate("document.getElementById('around-name').value"), "strtol")
        self.assertIn("60,000 call", self.text("#around-facts"))
        for canvas in ("up", "down"):
            self.assertGreater(self.painted(canvas), 1, canvas)
        # Directly above the function is its caller: a click goes on to that.
        box = self.browser.evaluate("(() => { const b = document.getElementById('up').getBoundingClientRect(); return [b.left, b.bottom]; })()")
        self.browser.click(box[0] + 40, box[1] - 10)
        self.assertEqual(self.browser.evaluate("document.getElementById('around-name').value"), "work_parse_text")

    def test_threads_are_grouped_searched_and_hidden(self):
        self.open("#timeline")
        self.browser.key("h")
        rows = self.browser.evaluate("[...document.querySelectorAll('#threads-list label')].map(r => r.textContent)")
        self.assertTrue(any("work × 3" in row for row in rows), rows)
        self.assertEqual(len(rows), 5)
        self.picture("threads")
        self.browser.evaluate("(s => { s.value = DATA.threads[2].tid; s.dispatchEvent(new Event('input')); })(document.getElementById('threads-search'))")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#threads-list label').length"), 1)
        self.assertIn("3 threads not meant", self.text("#threads-list"))
        self.browser.perform("document.getElementById('threads-none').click()")
        self.assertIn("1 thread hidden", self.text("#line-state"))
        self.browser.key("v")
        self.assertIn("in 3 threads", self.text("#line-details"))
        self.browser.perform("document.getElementById('threads-all').click()")
        self.assertNotIn("hidden", self.text("#line-state"))

    def test_equal_threads_as_one_in_the_flame_graph(self):
        self.open()
        options = self.browser.evaluate("[...document.querySelectorAll('#root option')].map(o => o.textContent)")
        merged = next(n for n, text in enumerate(options) if text.startswith("work × 3"))
        self.browser.evaluate(f"(s => {{ s.value = {merged}; s.dispatchEvent(new Event('change')); }})(document.getElementById('root'))")
        self.picture("flame-merged")
        box = self.browser.evaluate("(() => { const b = document.getElementById('flame').getBoundingClientRect(); return [b.left, b.top]; })()")
        self.browser.click(box[0] + 60, box[1] + 10)
        self.assertIn("work × 3", self.text("#flame-details"))
        self.assertIn("all", self.text("#flame-crumbs"))

    def test_what_was_dropped_is_a_banner_in_every_view(self):
        lossy = os.path.join(self.folder, "lossy.trace")
        data = bytearray(pathlib.Path(self.trace).read_bytes())
        struct.pack_into("<Q", data, DROPPED, 128085)
        pathlib.Path(lossy).write_bytes(data)
        page = lossy + ".html"
        tracer("view", lossy, "-o", page)
        for hash in ("", "#timeline", "#table", "#around"):
            self.browser.open(page, hash)
            self.assertEqual(self.text("#losses"), "Not in this trace: 128,085 calls dropped")
            self.assertGreater(self.browser.evaluate("document.getElementById('losses').offsetHeight"), 10)
        self.picture("dropped")
        self.open()
        self.assertEqual(self.browser.evaluate("document.getElementById('losses').offsetHeight"), 0)


class Served:
    """Part of a test whose page comes from `tracer view --serve`."""
    @classmethod
    def make(cls):
        cls.record()
        cls.server = subprocess.Popen([TOOL, "view", "--serve", cls.trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.page = cls.address = cls.server.stdout.readline().strip()
        while json.loads(urllib.request.urlopen(cls.address + "progress?known=1").read()) < 1:
            pass  # it answers when there is something new

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGINT)
        cls.server.wait()
        cls.server.stdout.close()
        super().tearDownClass()


class ServedTest(Served, PageTest):
    """The page of `tracer view --serve`: it asks for what it does not have."""
    @classmethod
    def record(cls):
        cls.trace = cls.record_work()
        cls.report = figures("report", cls.trace)

    def status(self, address, method="GET", **fields):
        try:
            with urllib.request.urlopen(urllib.request.Request(address, method=method, headers=fields), timeout=LIMIT) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def test_only_who_knows_the_address_is_answered_and_only_get(self):
        self.assertRegex(self.address, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
        root = self.address.rsplit("/", 2)[0]
        self.assertEqual(self.status(self.address), 200)
        for path in ("/", "/" + "0" * 32 + "/", "/calls?from=0&to=9&lanes=0"):
            self.assertEqual(self.status(root + path), 404, path)
        for method in ("POST", "PUT", "OPTIONS", "DELETE", "HEAD"):
            self.assertEqual(self.status(self.address, method), 405, method)
        self.assertEqual(self.status(self.address, Host="example.org"), 421)
        for question in ("calls", "calls?from=9&to=9&lanes=0", "sums?from=0&to=-1&lanes=0", "sums?from=0&to=9&lanes=x", "sums?from=0&from=1&to=9&lanes=0",
                         "calls?from=0&to=99999999999999999999999&lanes=0"):
            self.assertEqual(self.status(self.address + question), 400, question)
        self.assertEqual(self.status(self.address + "../report"), 404)

    def test_nobody_listens_on_other_addresses(self):
        port = int(self.address.split(":")[2].split("/")[0])
        others = [line for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"]
        self.assertEqual([line.split()[1] for line in others], [f"0100007F:{port:04X}"])
        with self.assertRaises(OSError):
            socket.create_connection(("::1", port), timeout=5).close()

    def test_sums_are_those_of_the_report(self):
        self.open("#timeline")
        self.browser.key("v")
        self.browser.until("document.querySelectorAll('#line-details tbody tr').length > 0")
        rows = self.browser.evaluate("[...document.querySelectorAll('#line-details tbody tr')].map(r => [...r.querySelectorAll('td:not(.passed)')].map(c => c.textContent))")
        calls = {row[0].split("  ")[0]: int(row[3].replace(",", "") or 0) for row in rows}
        self.assertEqual(calls, {**{f["name"]: f["calls"] for f in self.report["functions"]}, "(own code)": 0})
        self.picture("served-sums")

    def test_zooming_loads_calls_in_place_of_bands(self):
        self.open("#timeline")
        bands = self.browser.evaluate("DATA.threads.filter(t => !t.isMain).flatMap(t => Array.from({ length: t.dense.length / 4 }, (_, i) => t.dense.slice(i * 4, i * 4 + 4)))")
        band = max(bands, key=lambda part: part[1] * part[3])
        self.zoom((band[0] + band[1] / 2) / 1e9, 2e-5)
        while not self.hovered("strtol\n"):  # the page asks some time after the last turn of the wheel
            self.browser.settle()
        self.picture("served-zoom")


class ArgumentTest(PageTest):
    """Calls that were recorded with their arguments."""
    @classmethod
    def make(cls):
        cls.trace = os.path.join(cls.folder, "run.trace")
        tracer("record", "--quiet", "--no-children", "--cache", "--arguments", "open*,read,close", "-o", cls.trace, "--", "cat", "/etc/passwd", "/nonexistent<b>", status=1)
        tracer("view", cls.trace, "-o", cls.page)

    def test_they_are_in_the_calls_that_are_drawn(self):
        self.open("#timeline")
        said = [(functions[slices[4 * n + 2]][0] + text, slices[4 * n], slices[4 * n + 1])
                for functions, slices, texts in self.browser.evaluate("DATA.threads.map(t => [DATA.functions, t.slices, t.said])") for n, text in zip(texts[::2], texts[1::2])]
        lines = [json.loads(line) for line in tracer("replay", "--json", self.trace).stdout.splitlines()]
        lengths = sorted(line["duration_ns"] for line in lines if "arguments" in line)
        self.assertEqual(sorted(length for _, _, length in said), lengths)
        self.assertTrue(any(re.fullmatch(r'open(64)?\("/nonexistent<b>", O_RDONLY\) = -1 ENOENT', text) for text, _, _ in said), said)
        self.browser.key("/")
        self.browser.type("passwd")
        # What descriptors are open on is found, too: the file's own open, and the calls that use it.
        with_it = sum("passwd" in text for text, _, _ in said)
        self.assertGreater(with_it, 1)
        self.assertEqual(self.text("#matches"), f"arguments of {with_it} drawn calls")
        self.picture("arguments")
        self.browser.key("Escape")
        start, length = next((start, length) for text, start, length in said if "ENOENT" in text)
        self.zoom((start + length / 2) / 1e9, length * 5 / 1e9)
        found = self.hovered("open", "/nonexistent<b>")
        self.assertIsNotNone(found)
        self.browser.click(*found[:2])
        self.assertIn('("/nonexistent<b>", O_RDONLY) = -1 ENOENT', self.text("#line-details"))

    def test_a_column_has_those_of_the_longest_call_of_each_function(self):
        lines = [json.loads(line) for line in tracer("replay", "--json", self.trace).stdout.splitlines()]
        texts = [line for line in tracer("replay", "--depth", "0", self.trace).stdout.splitlines() if re.match(r" *-?\d+\.\d{9} {2}", line)]
        longest = {}
        for line, text in zip(lines, texts):
            name = line["name"]
            if line["duration_ns"] is not None and line["duration_ns"] > longest.get(name, (-1, ""))[0]:
                longest[name] = line["duration_ns"], re.search(re.escape(name) + r"(\(.*) \[", text)[1] if "arguments" in line else ""
        self.open("#table")
        rows = dict(self.browser.evaluate("[...document.querySelectorAll('#table-body tr')].map(r => [r.querySelector('.name').firstChild.textContent, r.querySelector('.passed').textContent])"))
        self.assertEqual({name: rows[name] for name in longest}, {name: text for name, (_, text) in longest.items()})
        self.assertGreaterEqual(sum(bool(text) for text in rows.values()), 3)
        self.picture("arguments-table")
        self.browser.key("/")
        self.browser.type("passwd")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#table-body tr').length"), sum("passwd" in text for text in rows.values()))
        self.browser.key("Escape")
        self.open("#timeline")
        self.browser.key("v")
        self.browser.until("document.querySelectorAll('#line-details tbody tr').length > 0")
        rows = dict(self.browser.evaluate("[...document.querySelectorAll('#line-details tbody tr')].map(r => [r.querySelector('.name').firstChild.textContent, r.querySelector('.passed').textContent])"))
        self.assertEqual({name: rows[name] for name in longest if name in rows}, {name: text for name, (_, text) in longest.items() if name in rows})


class RunTest(PageTest):
    """Several processes on one page."""
    @classmethod
    def make(cls):
        program(cls.folder)
        cls.run_of = os.path.join(cls.folder, "tracer.sh.1")
        tracer("record", "--quiet", "-o", cls.run_of, "--", "sh", "-c", "./work 1 2; ./work; exit 0", folder=cls.folder)
        tracer("view", cls.run_of, "-o", cls.page)

    def test_processes_lie_where_they_were_with_the_stages_of_their_starts(self):
        self.open("#timeline")
        self.picture("run")
        stages = self.browser.evaluate("DATA.threads.filter(t => t.stages.length).map(t => [t.process.replace(/ \\d+$/, ''), t.stages.length])")
        self.assertEqual(sorted(name for name, _ in stages).count("work"), 2, stages)
        begins = self.browser.evaluate("DATA.threads.filter(t => t.process.startsWith('work')).map(t => [t.process, t.slices[0]])")
        self.assertGreater(len({begin for _, begin in begins}), 1)
        self.assertGreater(self.painted("line"), 5)


class DiffTest(PageTest):
    """One page of two traces: more is pressed after, and less is parsed."""
    @classmethod
    def make(cls):
        cls.sides = [cls.record_work("1", "12", name="before"), cls.record_work("8", "2", name="after")]
        tracer("diff", *cls.sides, "--html", cls.page)
        cls.diff = figures("diff", *cls.sides)

    def place_of(self, colour):
        """Returns the point in the window where the flame graph is strongest in this colour, and how strong. Searches frames below the
        first two rows, which are 20 high, beneath their text, and only frames wide enough to be hit."""
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
        # A frame's callees fit into it, also if it is gone on one side.
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
        tracer("diff", *arguments, "--html", page)
        self.browser.open(page)
        self.browser.settle()
        for colour in ("red", "blue"):
            self.assertLess(self.place_of(colour)[2], 30, colour)
        box = self.browser.evaluate("(() => { const b = document.getElementById('flame').getBoundingClientRect(); return [b.left, b.top]; })()")
        self.browser.click(box[0] + 60, box[1] + 30)
        self.assertIn("within the noise", self.text("#flame-details"))

    def test_what_is_there_is_not_overwritten_unasked(self):
        self.assertIn("--force", tracer("diff", *self.sides, "--html", self.page, status=2).stderr)


class OwnFunctions(PageTest):
    """The program's own functions, which no slot leads to. The picture of docs/guide/functions.md comes from here."""

    @classmethod
    def make(cls):
        program = os.path.join(cls.folder, "render")
        run("g++", "-O2", "-g", "-std=c++17", "-pthread", os.path.join(HERE, "render.cpp"), "-o", program)
        cls.trace = os.path.join(cls.folder, "render.trace")
        tracer("record", "-o", cls.trace, "--functions", "*", "--", program)
        tracer("view", cls.trace, "-o", cls.page)

    def test_own_functions_are_in_graph_and_table(self):
        self.open()
        self.assertGreater(self.painted("flame"), 3)
        calls = dict(self.browser.evaluate("DATA.table.map(r => [DATA.functions[r[0]][0], r[1]])"))
        self.assertEqual(calls["draw_row(Scene const&, Canvas&, int)"], 24)
        self.assertEqual(calls["void Scene::add<Sphere, Vector, double, double, double>(Vector, double, double, double)"], 5)
        self.assertEqual(calls["Sphere::hit(Ray const&) const"], 5 * calls["Floor::hit(Ray const&) const"])
        self.assertEqual(calls["Scene::nearest(Ray const&) const"], calls["Floor::hit(Ray const&) const"])
        # Shows the thread that draws the lower part.
        self.browser.perform("(() => { const s = document.querySelector('select'); s.selectedIndex = 2; s.dispatchEvent(new Event('change')); })()")
        self.assertGreater(self.painted("flame"), 3)
        self.browser.appear(height=380)
        self.browser.settle()
        self.picture("functions")


@unittest.skipUnless(kernel_reports(), "the kernel does not report switches and samples here")
class StatesTest(PageTest):
    """Kernel records of a program whose threads wait for each other, and which itself prints for which thread."""

    @classmethod
    def make(cls):
        cls.record()
        tracer("view", cls.trace, "-o", cls.page)

    @classmethod
    def record(cls):
        program = os.path.join(cls.folder, "waits")
        run("gcc", "-O1", "-g", "-pthread", "-o", program, os.path.join(ROOT, "Tests/EndToEnd/subjects/part_waits.c"))
        cls.trace = os.path.join(cls.folder, "waits.trace")
        done = tracer("record", "--quiet", "--sample", "--exclude", "clock_gettime", "-o", cls.trace, "--", program, folder=cls.folder)
        lines = [line.split() for line in done.stdout.splitlines()]
        # Case → the thread that waited, the address it waited for, and the thread it waited for.
        cls.cases = {name: (int(tid), address, int(other)) for name, tid, _, address, other in lines}

    def canvas(self):
        """The pixels of the timeline, as rows of numbers."""
        return self.browser.evaluate("""(() => {
            const c = document.getElementById('line'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, rows = [];
            for (let y = 0; y < c.height; y++) rows.push(Array.from({ length: c.width }, (_, x) => d.slice((y * c.width + x) * 4, (y * c.width + x) * 4 + 3).join()));
            return rows; })()""")

    def test_a_state_lane_is_drawn_and_its_legend_names_the_colours(self):
        self.open("#timeline")
        self.picture("states")
        legend = dict(self.browser.evaluate("[...document.querySelectorAll('#line-legend span')].map(s => [s.textContent, getComputedStyle(s.firstChild).backgroundColor])"))
        for kind in ("running", "lock", "condition", "descriptor", "join", "sleep", "child"):
            self.assertIn(kind, legend)
        rows = self.canvas()
        colours = [pixel for row in rows for pixel in row]
        waits, whole = figures("waits", self.trace)["waits"], self.browser.evaluate("DATA.duration")
        for kind in ("lock", "condition", "descriptor", "sleep"):
            # On a busy machine all else takes longer. A lane is some pixels high, and what is shorter than a pixel need not be seen.
            longest = max(wait["duration_ns"] for wait in waits if wait["kind"] == {"descriptor": "pipe"}.get(kind, kind))
            self.assertGreaterEqual(colours.count(re.sub(r"[^\d,]", "", legend[kind])), longest / whole * len(rows[0]) - 1, kind)
        self.browser.key("t")
        self.picture("states-dark")
        self.assertNotEqual(legend["lock"], self.browser.evaluate(
            "getComputedStyle([...document.querySelectorAll('#line-legend span')].find(s => s.textContent === 'lock').firstChild).backgroundColor"))

    STATES = [(of, key, state) for of in ("self", "total") for key, state in (("Running", "running"), ("Waiting", "waiting"), ("Runnable", "runnable"))]

    def test_the_table_has_what_functions_were_running_waiting_and_runnable(self):
        self.open("#table")
        self.picture("table-states")
        reported = {(f["name"], f["module"]): f for f in figures("report", self.trace)["functions"]}
        keys = ["fn", "calls", "total", "self", "maximum", "p50", "p99", "p50Error", "p99Error", *(of + key for of, key, _ in self.STATES)]
        rows = [dict(zip(["name", "module", *keys], row)) for row in self.browser.evaluate("DATA.table.map(row => [...DATA.functions[row[0]], ...row])")]
        self.assertEqual({(row["name"], row["module"]) for row in rows if row["name"] != "(own code)"}, set(reported))
        for row in rows:
            for of, key, state in self.STATES:
                if row["name"] != "(own code)":
                    self.assertEqual(row[of + key], reported[row["name"], row["module"]][f"{of}_{state}_ns"], row)
            for of in ("self", "total"):
                self.assertEqual(sum(row[of + key] for key in ("Running", "Waiting", "Runnable")), row[of], row)
        # Sorted by a click, as other columns.
        titles = self.browser.evaluate("[...document.querySelectorAll('#table-head th')].map(th => th.textContent)")
        column = titles.index("Total waiting")
        self.browser.perform(f"document.querySelectorAll('#table-head th')[{column}].click()")
        first = self.browser.evaluate("document.querySelector('#table-body tr').firstChild.firstChild.textContent")
        self.assertEqual(first, max(rows, key=lambda row: row["totalWaiting"])["name"])
        self.browser.perform("document.querySelector('#table-body tr').click()")
        self.assertRegex(self.text("#table-details"), r"total running .*, total waiting .*, total runnable .*; self running ")
        self.picture("table-states-chosen")

    def test_in_a_narrow_window_the_names_stay_while_the_figures_scroll(self):
        self.browser.appear(width=620)
        self.open("#table")
        self.picture("table-states-narrow")
        box = "document.querySelector('#page-table .scroll')"
        self.assertGreater(self.browser.evaluate(f"{box}.scrollWidth - {box}.clientWidth"), 0)
        self.browser.perform(f"{box}.scrollLeft = 10000")
        self.picture("table-states-scrolled")
        left, width = self.browser.evaluate("(() => { const b = document.querySelector('#table-body td').getBoundingClientRect(); return [b.left, b.width]; })()")
        self.assertEqual(left, 0)
        self.assertGreater(width, 90)

    def test_a_selected_time_has_the_states_of_its_functions(self):
        self.open("#timeline")
        self.browser.key("v")
        self.browser.until("document.querySelectorAll('#line-details tbody tr').length > 0")
        self.picture("selection-states")
        titles = self.browser.evaluate("[...document.querySelectorAll('#line-details th:not(.passed)')].map(th => th.textContent.replace('~', ''))")
        for title in ("Self running", "Self waiting", "Self runnable", "Total running", "Total waiting", "Total runnable"):
            self.assertIn(title, titles)
        rows = self.browser.evaluate("[...document.querySelectorAll('#line-details tbody tr')].map(r => [...r.querySelectorAll('td:not(.passed)')].map(c => c.textContent))")
        reported = {f["name"]: f for f in figures("report", self.trace)["functions"]}
        # The long waits are in the page call by call, in both kinds of it.
        for name, row in ((row[0].split("  ")[0], row) for row in rows):
            waited = reported[name]["total_waiting_ns"] / 1e9 if name in reported else 0
            if waited > 0.01:
                self.assertAlmostEqual(self.seconds(row[titles.index("Total waiting")]), waited, delta=0.1 * waited, msg=name)

    def test_hovering_says_what_a_thread_waits_for_who_holds_it_and_who_wakes_it(self):
        self.open("#timeline")
        _, address, other = self.cases["lock"]
        found = self.hovered("lock ", f"pthread_mutex_lock({address})")
        self.assertIsNotNone(found)
        self.assertRegex(found[2], rf"\nheld by waits/{other} since ")
        self.assertRegex(found[2], rf"\nwoken by pthread_mutex_unlock of waits/{other}, ran .* after it")
        _, address, other = self.cases["condition"]
        found = self.hovered("condition ", f"pthread_cond_wait({address})")
        self.assertRegex(found[2], rf"\nwoken by pthread_cond_signal of waits/{other}, ran .* after it")
        # The same is said by tracer waits.
        printed = tracer("waits", "--top", "0", self.trace).stdout
        for line in found[2].splitlines()[1:]:
            self.assertTrue(line in printed or line.startswith("one of "), line)

    def test_an_arrow_leads_from_who_woke_a_thread_to_it(self):
        self.open("#timeline")
        tid, address, other = self.cases["lock"]
        wait = self.browser.evaluate("""(address => DATA.threads.flatMap((thread, lane) => thread.states.waits.map(wait => ({ lane, ...wait })))
            .find(wait => wait.what.includes(address) && wait.waker !== null))(%s)""" % json.dumps(address))
        tids, duration = self.browser.evaluate("[DATA.threads.map(t => t.tid), DATA.duration]")
        self.assertEqual([tids[wait["lane"]], tids[wait["waker"]]], [tid, other])
        found = self.hovered("lock ", f"pthread_mutex_lock({address})")
        self.browser.settle()
        pointed = self.canvas()
        self.picture("arrow")
        self.browser.perform("document.getElementById('line').dispatchEvent(new MouseEvent('mouseleave'))")
        free = self.canvas()
        changed = [(x, y) for y, rows in enumerate(zip(pointed, free)) for x, (one, two) in enumerate(zip(*rows)) if one != two]
        left, top, width = self.browser.evaluate("(() => { const b = document.getElementById('line').getBoundingClientRect(); return [b.left, b.top, b.width]; })()")
        columns, rows = [x for x, _ in changed], [y for _, y in changed]
        self.assertGreater(min(columns), wait["woken"] / duration * width - 20)
        self.assertLess(max(columns), wait["ran"] / duration * width + 20)
        self.assertLess(abs(min(rows) - (found[1] - top)), 20, "it ends in the lane of who waited")
        self.assertGreater(max(rows) - min(rows), 30, "it comes from another lane")

    def test_a_click_on_a_wait_shows_it_and_selects_its_time(self):
        self.open("#timeline")
        _, address, other = self.cases["lock"]
        found = self.hovered("lock ", f"pthread_mutex_lock({address})")
        self.browser.click(*found[:2])
        self.assertIn(f"held by waits/{other} since ", self.text("#line-details"))
        self.picture("wait")
        self.browser.evaluate("[...document.querySelectorAll('#line-details button')].find(b => b.textContent === 'select this time').click()")
        self.browser.until("/lock \\d/.test(document.querySelector('#line-details').textContent)")  # a served page gets the sums later
        self.browser.perform("[...document.querySelectorAll('#line-details button')].find(b => b.textContent === 'samples').click()")
        self.picture("samples-selected")
        in_time = self.browser.evaluate("""((address) => {
            const { spans, waits } = DATA.threads.map(t => t.states).find(s => s.waits.some(w => w.what.includes(address) && w.waker !== null));
            const wait = waits.findIndex(w => w.what.includes(address)), at = spans.findIndex((value, i) => i %% 4 === 3 && value === wait) - 3, m = DATA.samples.moments;
            let sum = 0;
            for (let i = 0; i < m.length; i += 3) if (m[i] >= spans[at] && m[i] <= spans[at] + spans[at + 1]) sum += m[i + 2];
            return sum; })(%s)""" % json.dumps(address))
        self.assertTrue(self.text("#samples-of").startswith(f"{in_time} sample"), f"{in_time}: {self.text('#samples-of')}")
        self.browser.perform("document.getElementById('samples-all').click()")
        self.assertTrue(self.text("#samples-of").startswith(f"{figures('samples', self.trace)['samples']:,} sample"))

    def test_samples_have_the_shares_that_tracer_samples_has(self):
        self.open("#samples")
        self.picture("samples")
        reported = figures("samples", self.trace)
        tree = self.browser.evaluate("DATA.samples")
        functions = self.browser.evaluate("DATA.functions")
        own = [0] * len(tree["depth"])
        for node, count in zip(tree["moments"][1::3], tree["moments"][2::3]):
            own[node] += count
        self.assertEqual(sum(own), reported["samples"])
        path, sums, outermost = [], {}, {}
        for depth, fn, count in zip(tree["depth"], tree["fn"], own):
            path[depth:] = [fn]
            first = next((tuple(functions[one]) for one in path if one >= 0), None)
            outermost[first] = outermost.get(first, 0) + count
            for called in {one for one in path if one >= 0}:
                row = sums.setdefault(tuple(functions[called]), [0, 0])
                row[0] += count if called == fn else 0
                row[1] += count
        self.assertEqual({(f["name"], f["module"]): [f["self"], f["total"]] for f in reported["functions"]}, sums)
        # And so it says of the outermost functions.
        self.browser.perform("(s => { s.selectedIndex = [...s.options].findIndex(o => o.text === 'all threads as one'); s.dispatchEvent(new Event('change')); })(document.getElementById('samples-root'))")
        tips = self.browser.evaluate("""(() => {
            const canvas = document.getElementById('sampled'), area = canvas.getBoundingClientRect(), tips = new Set();
            for (const row of [0, 1]) for (let x = area.left + 2; x < area.right - 2; x += 3) {
                canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: x, clientY: area.top + row * 20 + 10 }));
                tips.add(document.getElementById('tip').textContent);
            }
            return [...tips]; })()""")
        self.assertTrue(tips[0].startswith(f"all threads\ntotal {reported['samples']:,} samples (100.0 %)"), tips[0])
        self.assertGreater(len(tips), 1)
        for tip in tips[1:]:
            name, module, count, share = re.match(r"(.*?)  (.*)\ntotal ([\d,]+) samples? \(([\d.]+) %\)", tip).groups()
            # As the outermost: of a stack that could not be determined whole the same function may be within another one.
            self.assertEqual(int(count.replace(",", "")), outermost[name, module], tip)
            self.assertAlmostEqual(float(share), outermost[name, module] / reported["samples"] * 100, delta=0.051)

    def test_hidden_threads_have_no_samples(self):
        self.open("#samples")
        self.browser.evaluate("document.getElementById('threads-none').click()")
        self.browser.key("2")
        self.browser.key("5")
        self.assertTrue(self.text("#samples-of").startswith("0 samples"), self.text("#samples-of"))


class ServedStatesTest(Served, StatesTest):
    """All of that of a page that asks for what it does not have."""
