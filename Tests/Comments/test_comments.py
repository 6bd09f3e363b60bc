"""scripts/comments finds comments that begin as fragments, and nothing else; in this project it finds none."""
import os
import subprocess

import pytest
from once import ROOT
from script_modules import load

SCRIPT = os.path.join(ROOT, "scripts/comments")
comments = load(SCRIPT)

FOUND = {
    "a.swift": ["/// Of a thread.\nlet a = 1\n", "let a = 1 // its name\nlet b = 2 // of a thread\n", "let a = 1 // of a thread\n", "// A paragraph goes on, and then\n// That of another begins.\n", 'let a = "//" // By whom.\n'],
    "a.c": ["/* Whether it is */ int a;\n", "/* A text\n * Whose second line begins so */\n", "int a; // behind it\n"],
    "a.S": ["    nop // so it is aligned\n"],
    "a.py": ["# Those that are left.\n", '"""Which of them."""\n', 'def a():\n    """Where it is."""\n', "a = 1  # of a thread\n"],
    "a": ["#!/bin/sh\n# Beside it.\n", "#!/usr/bin/env python3\n# Of all.\n", "#!/bin/sh\necho a # by hand\n"],
}
PASSES = {
    "a.swift": ["/// CPU time of a thread.\nlet a = 1\n", 'let a = "// Of a string"\n', 'let a = """\n    // By a text\n    """\n', "// Officers and thatch.\n", "let of = 1\n", "// A sentence\n// that goes on.\nlet a = 1 // and another\n          // of the same kind\n"],
    "a.c": ["char a = '\"'; // Ends here\n", 'char *a = "\\"// of it";\n'],
    "a.py": ["a = '# of a string'\n", 'a = """Of a text."""\n', "by = 1\n", '"""`where` is a name."""\n'],
    "a": ["#!/bin/sh\necho '# of a text'\n", "Of a licence\n"],
}


@pytest.mark.parametrize("path, text", [(path, text) for path, texts in FOUND.items() for text in texts])
def test_a_comment_that_begins_as_a_fragment_is_found(path, text):
    assert len(comments.fragments(path, text)) == 1


@pytest.mark.parametrize("path, text", [(path, text) for path, texts in PASSES.items() for text in texts])
def test_what_has_a_subject_or_is_no_comment_passes(path, text):
    assert comments.fragments(path, text) == []


def test_no_comment_of_this_project_begins_as_a_fragment():
    done = subprocess.run([SCRIPT], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stdout[-4000:] + done.stderr


def test_one_that_does_is_named_with_its_line(tmp_path):
    (tmp_path / "a.swift").write_text("let a = 1\n/// Of a thread.\n")
    done = subprocess.run([SCRIPT, str(tmp_path / "a.swift")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, f"{tmp_path}/a.swift:2: /// Of a thread.\n")
