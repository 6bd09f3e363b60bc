#!/usr/bin/env python3
"""Every text that a person may see, in one file: Tests/Messages/run.py [--update]

messages.txt holds the string literals of Sources and CSupport that have two words or more, file by file: messages, errors, notes, help,
headings. Whoever reads it hears the project's voice; a change of it shows in the diff of a commit. Fails when it is not what the
sources say; --update writes it.

Pieces that are joined (with +, or appended one after another within a message of the agent) are one line. What is interpolated stands
in braces, by its last name.
"""
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = pathlib.Path(__file__).with_name("messages.txt")
FOLDERS = ("Sources", "CSupport")
WORDS = re.compile(r"[A-Za-z]{2,}[,:;.)'\"]* +(\{\w+\} +)?['\"(]?[A-Za-z]{2,}")


def end_of_string(text, start, hashes=""):
    """(content, past its end) of the literal whose quotes stand at `start`."""
    quotes = '"""' if text.startswith('"""', start) else '"'
    n = start + len(quotes)
    content = []
    while n < len(text):
        if text.startswith(quotes + hashes, n):
            return "".join(content), n + len(quotes + hashes)
        if text.startswith("\\" + hashes + "(", n):
            inner, n = end_of_parentheses(text, n + len(hashes) + 2)
            content.append("{" + last_name(inner) + "}")
        elif text.startswith("\\" + hashes, n):
            after = n + 1 + len(hashes)
            content.append({"n": "\n", "\n": " ", "t": "\t", "r": ""}.get(text[after], text[after]))
            n = after + 1
        else:
            content.append(text[n])
            n += 1
    return "".join(content), n


def end_of_parentheses(text, start):
    """(what stands before the parenthesis that closes the one before `start`, past it)."""
    depth, n = 1, start
    while n < len(text):
        if text[n] == '"':
            _, n = end_of_string(text, n)
            continue
        depth += {"(": 1, ")": -1}.get(text[n], 0)
        n += 1
        if depth == 0:
            return text[start:n - 1], n
    return text[start:], n


def last_name(expression):
    """How an interpolation is shown: `a.b.name` is {name}, anything longer {…}."""
    match = re.fullmatch(r"(?:[A-Za-z_]\w*[.!?]+)*([A-Za-z_]\w*)", expression.strip())
    return match.group(1) if match else "…"


def literals(text, is_swift):
    """(start, past the end, content) of each string literal outside comments."""
    n = 0
    while match := START.search(text, n):
        n = match.start()
        if match["comment"] == "//":
            n = text.find("\n", n) % (len(text) + 1)
        elif match["comment"] == "/*":
            n = text.find("*/", n) + 2
        elif match["character"]:
            n = match.end() if not is_swift else n + 1
        else:
            hashes = match["hashes"]
            content, end = end_of_string(text, n + len(hashes), hashes)
            yield n, end, content
            n = end


START = re.compile(r"""(?P<comment>//|/\*)|(?P<hashes>\#*)"|(?P<character>'(?:\\.[^']*|[^'])')""")


# Between two pieces of one text.
JOINED = re.compile(r"\s*\+?\s*")
APPENDED = re.compile(r'\)\s*(?:\$0\.append\((?:contentsOf: |decimal: )?[^"\n]*\)\s*)*\$0\.append\(\s*')


def texts(path):
    """Whole texts of a file, in its order."""
    source = re.sub(r"_Static_assert\(.*", "", path.read_text(encoding="utf-8"))  # these are for who compiles
    found, previous = [], None
    for start, end, content in literals(source, path.suffix == ".swift"):
        between = source[previous:start] if previous is not None else None
        if between is not None and JOINED.fullmatch(between):
            found[-1] += content
        elif between is not None and APPENDED.fullmatch(between):
            values = re.findall(r"\$0\.append\((?:contentsOf: |decimal: )?([^\"\n]*)\)", between)
            found[-1] += "".join("{%s}" % last_name(value) for value in values) + content
        else:
            found.append(content)
        previous = end
    return [line for text in found for line in shown(text)]


def shown(text):
    """The lines of a text that has words for a person."""
    if not WORDS.search(text):
        return []
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


def collect():
    lines = []
    paths = sorted(path for folder in FOLDERS for suffix in ("*.swift", "*.c") for path in (ROOT / folder).rglob(suffix))
    for path in paths:
        if path.is_symlink() or "TracerAgent/TraceFormat" in path.as_posix():
            continue
        found = texts(path)
        if found:
            lines += ["", path.relative_to(ROOT).as_posix()] + ["    " + text for text in found]
    return lines[1:]


def main():
    have = GOLDEN.read_text(encoding="utf-8").splitlines() if GOLDEN.exists() else []
    want = collect()
    if len(want) < 100:
        sys.exit("no texts were found in the sources: this check reads them wrongly")
    if sys.argv[1:] == ["--update"]:
        GOLDEN.write_text("\n".join(want) + "\n", encoding="utf-8")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    elif have != want:
        print("\n".join(difflib.unified_diff(have, want, "Tests/Messages/messages.txt", "the sources", n=1, lineterm="")))
        sys.exit("FAIL: texts have changed: read the new ones, then run Tests/Messages/run.py --update")
    else:
        print(f"{len(want)} lines of text are those of messages.txt")


if __name__ == "__main__":
    main()
