"""`tracer history --html` in a headless Chromium: charts of a history that is made here, without a complaint or a look at the
network, light and dark; what the pointer and the keys show. With TRACER_SCREENSHOTS=FOLDER it leaves pictures."""
import json
import os
import pathlib
import re

from browser import BrowserTest
from launch_history import emptied, insert
from recorded_programs import new_folder, tracer

COUNT, SLOWER, FASTER = 24, 14, 20


def make_history(path):
    """Makes series of one command, warm and cold, and of another; in the first series the constructors become slower and main faster."""
    database = emptied(path)
    number = 0
    for command, settings, count, scale in [("./app --serve", "", COUNT, 1), ("./app --serve", "--cold", 3, 5), ("./other <b>", "", 1, 2000)]:
        for i in range(count):
            number += 1
            insert(database, "series", id=number, time=1.76e9 + i * 90000, host="anna", machine="Xeon", program=command.split()[0][2:],
                   command=command, build=f"b{i}", revision=f"{i:02d}c0ffee1234", settings=settings, ready="first listen", runs=30,
                   disturbed=i % 3, libraries=12, relocations=3000, minor_faults=500, major_faults=0, overhead_ns=1e5)
            wiggle = 1 + (i * 7 % 5 - 2) / 200
            stages = [("exec → loader", 0.6), ("map and relocate libraries", 2.2), ("constructors of libraries", 3.4 if i >= SLOWER else 1.1),
                      ("constructors of the executable", 0.01), ("main → ready", 6.0 if i >= FASTER else 8.0)]
            stages = [(name, ms * scale * wiggle * 1e6) for name, ms in stages]
            for position, (name, p50) in enumerate([("launch", sum(ns for _, ns in stages))] + stages):
                # Thirty launches, of which the fastest and the slowest are twenty percent apart: more than the series wiggle.
                launches = ",".join(str(round(p50 * (0.9 + 0.2 * (n * 11 % 30) / 29))) for n in range(30))
                insert(database, "stage", series=number, position=position, name=name, p50_ns=p50, p90_ns=p50 * 1.1,
                       p95_ns=p50 * (1.2 + i % 4 / 20), spread_ns=p50 * 0.05, values_ns=launches)
    database.commit()


class HistoryTest(BrowserTest):
    size = 1100, 1000

    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.database, cls.page = os.path.join(cls.folder, "h.sqlite"), os.path.join(cls.folder, "trend.html")
        make_history(cls.database)
        tracer("history", "--history", cls.database, "--html", cls.page)
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.browser.open(self.page)
        self.browser.settle()

    def ask(self, expression):
        return self.browser.evaluate(expression)

    def position(self, chart, index):
        """Returns where a dot of the chart of that number is on the screen."""
        return self.ask(f"(() => {{ const b = document.querySelectorAll('svg')[{chart}].querySelector('[data-i=\"{index}\"]').getBoundingClientRect();"
                        " return [b.x + b.width / 2, b.y + b.height / 2]; })()")

    def move(self, x, y):
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.browser.settle()

    def test_page_is_one_file_without_links(self):
        html = pathlib.Path(self.page).read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(?:src|href)\s*=|https?://", html), [])

    def test_each_command_and_setting_has_its_own_charts(self):
        self.assertEqual(self.ask("[...document.querySelectorAll('section')].map(s => s.querySelectorAll('.dot').length / s.querySelectorAll('svg').length)"),
                         [COUNT, 3, 1])
        self.assertEqual(self.ask("[...document.querySelectorAll('section')].map(s => [...s.querySelectorAll('code')].map(c => c.textContent))"),
                         [["./app --serve"], ["./app --serve", "--cold"], ["./other <b>"]])
        self.assertEqual(self.ask("[...document.querySelector('section').querySelectorAll('figcaption')].map(f => f.firstChild.textContent.trim())"),
                         ["launch", "exec → loader", "map and relocate libraries", "constructors of libraries", "main → ready"])
        self.assertIn("constructors of the executable", self.ask("document.querySelector('section').textContent"))

    def test_dots_lie_on_the_line_and_inside_the_chart(self):
        for chart in range(3):
            dots = self.ask(f"[...document.querySelectorAll('svg')[{chart}].querySelectorAll('.dot')].map(d => [+d.getAttribute('cx'), +d.getAttribute('cy')])")
            line = self.ask(f"[...document.querySelectorAll('svg')[{chart}].querySelector('.trend').points].map(p => [p.x, p.y])")
            width, height = self.ask(f"(() => {{ const b = document.querySelectorAll('svg')[{chart}].viewBox.baseVal; return [b.width, b.height]; }})()")
            self.assertEqual(len(dots), COUNT)
            for (x, y), (u, v) in zip(dots, line):
                self.assertAlmostEqual(x, u, places=2)
                self.assertAlmostEqual(y, v, places=2)
                self.assertTrue(0 < x < width and 0 < y < height)

    def test_clear_changes_are_marked_and_no_others(self):
        marked = "[...[...document.querySelectorAll('figure')].find(f => f.textContent.startsWith(%s)).querySelectorAll('.dot.%s')].map(d => +d.dataset.i)"
        self.assertEqual(self.ask(marked % (json.dumps("constructors of libraries"), "up")), [SLOWER])
        self.assertEqual(self.ask(marked % (json.dumps("main → ready"), "down")), [FASTER])
        self.assertEqual(self.ask(marked % (json.dumps("map and relocate"), "up")), [])

    def test_pointer_shows_the_nearest_series_in_all_charts_of_the_command(self):
        self.assertTrue(self.ask("document.getElementById('tip').hidden"))
        x, y = self.position(0, SLOWER)
        self.move(x + 3, y - 20)
        tip = self.ask("document.getElementById('tip').textContent").splitlines()
        self.assertRegex(tip[0], r"^launch: 14\.\d ms \(\+\d\d\.\d%\)$")
        self.assertIn(f"commit {SLOWER}c0ffee1234", tip)
        self.assertEqual(self.ask("[...document.querySelectorAll('.dot.on')].map(d => +d.dataset.i)"), [SLOWER] * 5)
        box = self.ask("(() => { const b = document.getElementById('tip').getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })()")
        self.assertTrue(box[0] >= 0 and box[1] <= 1100 and box[2] >= 0 and box[3] <= 1000, box)
        self.picture("history-light")
        self.move(5, 5)
        self.assertTrue(self.ask("document.getElementById('tip').hidden"))
        self.assertEqual(self.ask("document.querySelectorAll('.dot.on').length"), 0)

    def test_arrow_keys_walk_through_the_series(self):
        self.ask("document.querySelector('svg').focus()")
        self.browser.key("ArrowLeft")
        self.assertIn(f"commit {COUNT - 1}c0ffee1234", self.ask("document.getElementById('tip').textContent"))
        self.browser.key("ArrowLeft")
        self.assertIn(f"commit {COUNT - 2}c0ffee1234", self.ask("document.getElementById('tip').textContent"))
        self.browser.key("Escape")
        self.assertTrue(self.ask("document.getElementById('tip').hidden"))

    def test_dark_and_narrow_are_readable(self):
        self.browser.appear(width=480, height=1000, dark=True)
        self.browser.open(self.page)
        self.browser.settle()
        self.assertEqual(self.ask("getComputedStyle(document.body).backgroundColor"), "rgb(18, 22, 31)")
        self.assertLessEqual(self.ask("document.documentElement.scrollWidth"), 480)
        self.picture("history-dark-narrow")
