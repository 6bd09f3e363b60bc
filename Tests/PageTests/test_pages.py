"""The files of the pages (Sources/Reader/TracePage/Resources), without a build: eslint over the scripts and their tests, css-tree over the
styles, names that one file uses and another has, and the tests of the scripts' pure functions (*.test.mjs), in Node."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RESOURCES = os.path.join(ROOT, "Sources/Reader/TracePage/Resources")
LIMIT = 300  # seconds, of a program
# Debian's folder of packages for Node: its own Node looks there by itself, others do not.
PACKAGES = "/usr/share/nodejs"
ENVIRONMENT = {**os.environ, "NODE_PATH": os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), PACKAGES]))}


def files(*endings):
    return sorted(path for ending in endings for path in glob.glob(os.path.join(RESOURCES, "*" + ending)))


def text(paths):
    return "\n".join(pathlib.Path(path).read_text(encoding="utf-8") for path in paths)


def run(*command):
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    return done.returncode, f"{' '.join(command[:2])}: status {done.returncode}\n{done.stdout}"


class Lint(unittest.TestCase):
    @unittest.skipUnless(shutil.which("eslint"), "no eslint: scripts/setup test installs it where the system has it")
    def test_scripts(self):
        status, said = run("eslint", "--format", "unix", "--max-warnings", "0", "--ext", ".js,.mjs,.cjs", RESOURCES, HERE)
        self.assertEqual(status, 0, said)

    @unittest.skipUnless(os.path.exists(PACKAGES + "/css-tree"), "no css-tree: scripts/setup test installs it where the system has it")
    def test_styles(self):
        status, said = run("node", os.path.join(HERE, "styles.cjs"), *files(".css"))
        self.assertEqual(status, 0, said)

    @unittest.skipUnless(os.path.exists(PACKAGES + "/css-tree"), "no css-tree: scripts/setup test installs it where the system has it")
    def test_the_check_of_styles_can_fail(self):
        sheet = "a { colr: red; margin: 1px 2xx; color: var(--no) }\nb } {"
        status, said = run("sh", "-c", 'printf %s "$1" | node "$2" /dev/stdin', "sh", sheet, os.path.join(HERE, "styles.cjs"))
        self.assertEqual((status, len(said.splitlines()) - 1), (1, 5), said)

    def test_elements_that_a_script_asks_for_are_in_its_page(self):
        for page, scripts in (("view.html", files("view.mjs")), ("history.html", files("history.js")), ("unfinished.html", files("unfinished.js"))):
            there = set(re.findall(r'id="([\w-]+)"', text([os.path.join(RESOURCES, page)])))
            wanted = set(re.findall(r"""(?:\$|getElementById)\(["']([\w-]+)["']\)""", text(scripts)))
            self.assertTrue(wanted, page)
            self.assertEqual(wanted - there, set(), page)

    def test_classes_and_elements_that_styles_are_for_are_used(self):
        users = text(files(".html", ".mjs", ".js") + glob.glob(os.path.join(ROOT, "Sources/*/*Page/*.swift")))
        for sheet in files(".css"):
            selectors = " ".join(re.findall(r"([^{}]*)\{", re.sub(r"\{[^{}]*\}", "{}", text([sheet]))))
            names = set(re.findall(r"[.#]([a-zA-Z][\w-]*)", selectors))
            self.assertTrue(names, sheet)
            self.assertEqual({name for name in names if not re.search(rf"\b{name}\b", users)}, set(), sheet)

    def test_no_name_stands_in_two_files_of_a_page(self):
        # They become one script, without imports and exports.
        at = {}
        for path in files(".mjs"):
            for name in re.findall(r"^(?:export )?(?:const|let|class|function) (\w+)", text([path]), re.M):
                self.assertNotIn(name, at, f"in {path} and {at.get(name)}")
                at[name] = path


@pytest.mark.skipif(not shutil.which("node"), reason="no node: scripts/setup test installs it")
@pytest.mark.parametrize("name", sorted(os.path.basename(path) for path in glob.glob(os.path.join(HERE, "*.test.mjs"))))
def test_functions(name):
    path = pathlib.Path(HERE, name)
    status, said = run("node", "--test", str(path))
    assert status == 0, said
    cases = re.findall(r"^test\(", path.read_text(encoding="utf-8"), re.M)
    assert cases and re.findall(r"^# pass (\d+)", said, re.M) == [str(len(cases))], said
