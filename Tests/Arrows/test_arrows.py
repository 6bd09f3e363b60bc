"""The arrows between folders of the sources: scripts/arrows finds one that points up, and nothing else, in folders made for the
purpose; in the sources it finds none."""
import pathlib
import tempfile
import unittest

import once
from script_modules import load

ROOT = pathlib.Path(once.ROOT)
arrows = load("scripts/arrows")

ORDER = """
    .
    High/One  High/Two
    Middle
    Low"""
LOW = "struct Stone { var weight = 1 }\nenum Kind { case small, large }\nfunc lift(_ stone: Stone) {}\n"


class Arrows(unittest.TestCase):
    def found(self, **files):
        """Complaints about such files, by PATH_WITHOUT_SUFFIX=source; __ stands for a slash."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, source in files.items():
                path = root / "Sources/Target" / (name.replace("__", "/") + ".swift")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(source)
            return arrows.check(root, {"Sources/Target": ORDER}) + list(arrows.processor_words(root))

    def passes(self, **files):
        self.assertEqual(self.found(**files), [])

    def fails(self, *words, **files):
        complaints = self.found(**files)
        self.assertEqual(len(complaints), 1, complaints)
        for word in words:
            self.assertIn(word, complaints[0])

    def test_an_import_from_a_folder_above(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, source in (("Reader/Pages/Page.swift", "import Files\n"), ("Binaries/Files/File.swift", "import Glibc\nimport Pages\n")):
                (root / "Sources" / name).parent.mkdir(parents=True)
                (root / "Sources" / name).write_text(source)
            self.assertEqual(list(arrows.imports(root)), ["Sources/Binaries/Files/File.swift:2: Pages is in Reader, which Binaries does not use"])

    def test_a_use_of_what_is_below_passes(self):
        self.passes(Low__Stone=LOW, Middle__Wall="struct Wall { var stones: [Stone] = []; func build() { lift(stones[0]) } }",
                    Main="let wall = Wall()")

    def test_a_type_from_above(self):
        self.fails("Low/Pit.swift:2", "Wall is declared in Middle, above Low", Middle__Wall="struct Wall {}", Low__Pit="\nvar wall: Wall?")

    def test_a_function_from_above(self):
        self.fails("build is declared in Middle", Middle__Wall="func build() {}", Low__Pit="func dig() { build() }")

    def test_a_function_that_a_header_declares(self):
        self.passes(Main="@c @implementation\npublic func build() {}", Low__Pit="func dig() { build() }")

    def test_a_variable_from_above(self):
        self.fails("agent is declared in .", Main="var agent = 1", Low__Pit="func dig() -> Int { agent + 1 }")

    def test_an_extension_of_a_type_from_above(self):
        self.fails("Wall is declared in Middle", Middle__Wall="struct Wall {}", Low__Pit="extension Wall { func fall() {} }")

    def test_a_member_that_a_folder_above_adds(self):
        self.fails("paint is declared in Middle", Low__Stone=LOW, Middle__Paint="extension Stone { func paint() {} }",
                   Low__Pit="func dig(_ stone: Stone) { stone.paint() }")

    def test_a_member_that_is_added_to_a_type_from_elsewhere(self):
        self.fails("isWet is declared in Middle", Middle__Paint="extension UnsafePointer { var isWet: Bool { true } }",
                   Low__Pit="func dig(_ p: UnsafePointer<Int>) -> Bool { p.isWet }")

    def test_a_member_of_its_own_type_that_a_folder_above_adds(self):
        self.fails("paint is declared in Middle", Middle__Paint="extension Stone { func paint() {} }",
                   Low__Stone="struct Stone { func fall() { paint() } }")

    def test_a_folder_beside(self):
        self.fails("One is declared in High/One, beside High/Two", High__One__A="enum One {}", High__Two__B="let one = One.self")

    def test_a_use_within_an_interpolation(self):
        self.fails("Wall is declared in Middle", Middle__Wall="enum Wall { static let height = 1 }",
                   Low__Pit='let text = "so high: \\(Wall.height)"')

    def test_a_folder_that_is_not_in_the_table(self):
        self.fails("not in the table", Attic__Box="struct Box {}")

    def test_words_in_comments(self):
        self.passes(Middle__Wall="struct Wall {}", Low__Pit="// Wall\n/* Wall /* Wall */ Wall */ struct Pit {} /// Wall")

    def test_words_in_strings(self):
        self.passes(Middle__Wall="struct Wall {}",
                    Low__Pit='let a = "Wall \\" Wall", b = #"Wall " \\(Wall)"#\nlet c = """\n  Wall "Wall" Wall\n  """\n')

    def test_local_names(self):
        self.passes(Main="var agent = 1\nfunc build() {}", Low__Pit="""
            func dig(by agent: Int, _ build: Int) -> Int { agent + build }
            func fill() { let agent = 2; for build in 0..<agent { print(build) } }
            func each(_ body: (Int) -> Void) { [1].forEach { agent in body(agent) } }
            struct Pit { var agent = 1; func depth() -> Int { agent } }
            func generic<Wall>(_ wall: Wall) -> Wall { wall }
            """, Middle__Wall="struct Wall {}")

    def test_labels(self):
        self.passes(Main="var agent = 1", Low__Pit="func dig(agent number: Int) {}\nfunc again() { dig(agent: 2) }")

    def test_a_name_that_a_type_has_of_its_own(self):
        self.passes(Middle__Wall="struct Kind {}", Low__Stone="struct Stone { enum Kind { case a }; var kind: Kind = .a }")

    def test_a_private_name(self):
        self.passes(Middle__Wall="private struct Wall {}\nprivate func build() {}", Low__Pit="func dig() { build() }\nstruct Wall {}\nfunc build() {}")

    def test_another_function_by_its_label(self):
        self.passes(Low__Stone=LOW, Middle__Paint="extension Stone { func first(from n: Int) {} }",
                    Low__Pit="func dig(_ all: [Int]) { _ = all.first; _ = all.first(where: { $0 > 1 }) }")

    def test_the_processor_has_one_layer(self):
        self.fails("Pit.swift:2: `#if arch`", Low__Pit="// #if arch(x86_64)\n#if arch(x86_64)\n#endif\n")

    def test_the_sources_have_none_that_points_up(self):
        self.assertEqual(arrows.check(ROOT, arrows.ORDER) + list(arrows.processor_words(ROOT)), [])

    def test_the_real_table_names_real_folders(self):
        for target, order in arrows.ORDER.items():
            for folder in arrows.rank(order):
                self.assertTrue((ROOT / target / folder).is_dir(), f"{target}/{folder}")
