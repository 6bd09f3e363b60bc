"""The shape of a printed line: the line apart from its figures. Checks that a documented block still has the shapes that are printed.

A figure stands for any other of its kind: a number, a time with its unit, a size. Words stay, and so do the units'
spelling, the blank before a percent sign, and the number and order of the columns. How wide a column is does not matter.
"""
import functools
import re

# In this order: each takes from the line what the next must not see as a number.
REPLACEMENTS = [(re.compile(pattern), text) for pattern, text in (
    (r"\s*█+", ""),  # a bar, which short stages do not have
    (r"\b[0-9a-f]{40}\b", "ID"),
    (r"\b0x[0-9a-f]+\b", "ADDRESS"),
    (r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "MOMENT"),
    (r"\b\d{4}-\d\d-\d\d( \d\d:\d\d)?\b", "DATE"),
    (r"\.so(\.\d+)+", ".so.N"),
    (r"\bpython3\.\d+", "python3.N"),
    (r"\bcpython-\d+", "cpython-N"),
    (r"\.\d+\.trace\b", ".N.trace"),
    (r"(?<![\w.])\d[\d,]*(\.\d+)? (ns|us|ms| ?s)\b", "TIME"),  # in a column, seconds stand below milliseconds
    (r"(?<![\w.])\d[\d,]*(\.\d+)? (bytes|B|KB|MB|GB)\b", "SIZE"),
    (r"(?<![\w.])\d[\d,]*(\.\d+)?(?!\w|\.\d)", "N"),
    (r"(?<![\w.])[-+−<](?=N ?%)", ""),  # a share: its sign, and "less than", which not every run has
    (r"(?<=\s)\* (?=TIME\b)", ""),  # an average that says little: which ones do, is another thing in each run
    (r"(?<![\w.])[-+−](?=(TIME|SIZE|N)\b)", "±"),
    (r"\bcalled once\b", "called N time"),
    (r"\bN ([a-z-]+?)s\b", r"N \1"),  # one call, two calls
    (r"\bcalled N time\b", "called N times"),
)]
WORDS = re.compile(r"(?!\b(?:ID|MOMENT|DATE|TIME|SIZE|N)\b)\b[^\W\d]")
MINUS = re.compile(r"(?<![\w.)])([-−])\d")


class Rules:
    """Rules from an example's marker for its lines."""

    def __init__(self, any_of=(), may=(), instead=(), is_whole=False, keeps_indents=False):
        self.any_of, self.may, self.instead = any_of, may, instead
        self.is_whole, self.keeps_indents = is_whole, keeps_indents

    @classmethod
    def of(cls, marker):
        instead = [tuple(text.split(" => ")) for text in marker.get("or", [])]
        return cls(marker.get("any", []), marker.get("may", []), instead, "rows" in marker, "indents" in marker)

    def is_instead(self, line):
        return any(re.search(other, line) for other, _ in self.instead)

    def excuse(self, line, printed):
        """Returns True if the example's rules allow another line in place of this documented one, and that line is printed."""
        return any(re.search(documented, line) and any(re.search(other, text) for text in printed) for other, documented in self.instead)


@functools.lru_cache(maxsize=1 << 14)
def shape(line, rules=Rules()):
    for pattern in rules.may:
        line = re.sub(pattern, "", line)
    for pattern in rules.any_of:
        line = re.sub(pattern, "*", line)
    for pattern, text in REPLACEMENTS:
        line = pattern.sub(text, line)
    # A figure that fills its column has one blank before it.
    line = re.sub(r"\s+(?=[±~]?(TIME|SIZE|N)\b)", "  ", "  " + line.rstrip()).strip()
    return line if rules.keeps_indents else re.sub(r"\s{2,}", "  ", line)


def shapes(lines, rules=Rules()):
    """Shape → the first line that has it. Blank lines have none."""
    found = {}
    for line in lines:
        if line.strip():
            found.setdefault(shape(line, rules), line)
    return found


def differences(documented, printed, more=(), rules=Rules()):
    """Returns a text for each line that `documented` shows and neither `printed` nor `more` has; for a whole output also for what it lacks."""
    wrong = []
    for key, pattern in [("any", text) for text in rules.any_of] + [("or", text) for _, text in rules.instead]:
        if not any(re.search(pattern, line) for line in documented):
            wrong.append(f"`{key}: {pattern}` is in no line of the block: take it out")
    outputs = {**shapes(more, rules), **shapes(printed, rules)}
    expected = [line for line in documented if line.strip() and line.strip() != "…"]
    if not expected:
        wrong.append("shows nothing")
    wrong += [f"says nothing that could be compared: {line.strip()}" for line in expected if not WORDS.search(shape(line, rules))]
    wrong += [f"is not printed: {line.strip()}" for line in expected
              if shape(line, rules) not in outputs and not rules.excuse(line, printed)]
    if rules.is_whole and not wrong:
        left = [text for line in expected if (text := shape(line, rules)) in outputs]
        right = [(shape(line, rules), line) for line in printed if line.strip() and not rules.is_instead(line)]
        wrong += [f"is printed, and not in the document: {line.strip()}" for text, line in right if text not in left]
        if not wrong and left != [text for text, _ in right]:
            wrong.append("has the lines in another order, or another number of them")
    written = {mark for line in documented for mark in MINUS.findall(line)}
    used = {mark for line in [*printed, *more] for mark in MINUS.findall(line)}
    if used and not written <= used:
        wrong.append(f"writes a minus as {' '.join(sorted(written - used))}, and the tool as {' '.join(sorted(used))}")
    return wrong
