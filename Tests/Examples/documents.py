"""Code blocks of a Markdown document, and what the comment before one says about it.

    <!-- example                  the block below is what `run` prints
    before: mkdir traces          shell commands that prepare; what they print is not shown
    run: tracer report | head -8  bash, in a scratch directory that the examples of a document share, in their order
    also: tracer report --top 0   prints more rows of the same kinds: a documented one may be among these
                                  $EXAMPLES is Tests/Examples, for stand-ins of programs that few machines have, $PORT one of TCP that is free
    any: regular expression       differs from machine to machine, in the document and in the output alike
    may: regular expression       a part of a line that is printed on some machines only
    or: PRINTED => DOCUMENTED     where a line with PRINTED is printed, lines with DOCUMENTED need not be (two expressions)
    needs: gdb                    a program; without it the rows are looked for in the output of `also`
    rows: all                     the block is the whole of `run`, line by line, and not some rows of it
    indents: kept                 indentation within a line means something (a call tree)
    -->

    <!-- no example: why this block is not what a command prints -->

    <!-- machine -->              the line below says on which machine the figures of the document were taken

Keys may be repeated; a line that begins with blanks continues the one above it. Browsers show none of this.
"""
import re

KEYS = {"before", "run", "also", "any", "may", "or", "needs", "rows", "indents"}
COMMAND = re.compile(r"(tracer|scripts/[\w-]+|git|cp|objdump|swift|python3|export|cd|sudo|apt|docker|make)( |$)|[A-Z_]+=")
DRAWING = re.compile("[\u2500-\u257f\u25b2-\u25c4]")  # box drawing and arrow heads, which the tool does not print
TIME = re.compile(r"\d (ns|us|ms|s)\b")


class Mistake(Exception):
    """A marker that cannot be understood; the text says which and why."""


class Block:
    def __init__(self, document, first, lines, language=None, fence=None):
        self.document, self.first, self.lines, self.language, self.fence = document, first, lines, language, fence
        self.marker = None  # key → values, if it is an example
        self.reason = None  # the reason why it is no example

    @property
    def location(self):
        return f"{self.document.name}:{self.first + 1}"

    def is_commands(self):
        continued = False
        for line in self.lines:
            if line and not continued and not COMMAND.match(line):
                return False
            continued = line.endswith(("\\", "|"))
        return True

    def is_drawing(self):
        return any(DRAWING.search(line) for line in self.lines)

    def is_excused(self):
        return bool(self.marker or self.reason or self.language or self.is_commands() or self.is_drawing())

    def has_times(self):
        return any(TIME.search(line) for line in self.lines)


class Document:
    def __init__(self, name, text):
        self.name = name
        self.lines = text.split("\n")
        self.blocks = []
        self.machine = None  # number of the line that names it
        self.comments = set()  # numbers of their lines
        self._read()

    def text(self):
        return "\n".join(self.lines)

    def examples(self):
        return [block for block in self.blocks if block.marker]

    def replace(self, block, lines):
        """The block's lines by others. Blocks are replaced from the last one on, since those below move."""
        indented = [("" if block.fence or not line else "    ") + line for line in lines]
        self.lines[block.first:block.first + len(block.lines)] = indented

    def _read(self):
        number, pending = 0, None
        while number < len(self.lines):
            line = self.lines[number]
            if line.startswith("<!--"):
                end = number
                while "-->" not in self.lines[end]:
                    end += 1
                    if end == len(self.lines):
                        raise Mistake(f"{self.name}:{number + 1}: this comment has no end")
                self.comments.update(range(number, end + 1))
                if pending:
                    raise Mistake(f"{self.name}:{number + 1}: no code block follows the comment before this one")
                pending = self._comment(number, self.lines[number:end + 1])
                number = end + 1
            elif line.startswith("```"):
                end = number + 1
                while end < len(self.lines) and not self.lines[end].startswith("```"):
                    end += 1
                self._add(Block(self, number + 1, self.lines[number + 1:end], line[3:].strip() or None, fence=line), pending)
                number, pending = end + 1, None
            elif line.startswith("    ") and (number == 0 or not self.lines[number - 1].strip()):
                end = number
                while end < len(self.lines) and (self.lines[end].startswith("    ") or not self.lines[end].strip()):
                    end += 1
                while not self.lines[end - 1].strip():
                    end -= 1
                self._add(Block(self, number, [text[4:] for text in self.lines[number:end]]), pending)
                number, pending = end, None
            else:
                if line.strip() and pending:
                    raise Mistake(f"{self.name}:{number + 1}: a code block must follow the comment before this line")
                number += 1
        if pending:
            raise Mistake(f"{self.name}: no code block follows the last comment")

    def _add(self, block, pending):
        if pending:
            block.marker, block.reason = pending
        self.blocks.append(block)

    def _comment(self, number, lines):
        location = f"{self.name}:{number + 1}"
        text = "\n".join(lines)[4:].split("-->")[0]
        word = text.strip().split("\n")[0].strip()
        if word == "machine":
            self.machine = number + len(lines)
            return None
        if word.startswith("no example"):
            reason = text.strip().removeprefix("no example").removeprefix(":").strip()
            if not reason:
                raise Mistake(f"{location}: say why: <!-- no example: reason -->")
            return None, reason
        if word != "example":
            return None  # some other comment
        marker = {}
        key = None
        for line in text.strip().split("\n")[1:]:
            if line.startswith((" ", "\t")) and key:
                marker[key][-1] += "\n" + line.strip()
                continue
            key, colon, value = line.partition(":")
            if not colon or key not in KEYS or not value.strip():
                raise Mistake(f"{location}: {line!r} is not KEY: VALUE with one of {', '.join(sorted(KEYS))}")
            marker.setdefault(key, []).append(value.strip())
        if len(marker.get("run", [])) != 1:
            raise Mistake(f"{location}: an example has one `run:`")
        for key, value in (("rows", "all"), ("indents", "kept")):
            if marker.get(key, [value]) != [value]:
                raise Mistake(f"{location}: {key} can be {value!r} only")
        for pattern in marker.get("or", []):
            if pattern.count(" => ") != 1:
                raise Mistake(f"{location}: or: {pattern}: is not PRINTED => DOCUMENTED")
        for key in ("any", "may", "or"):
            for pattern in marker.get(key, []):
                try:
                    [re.compile(part) for part in pattern.split(" => ")]
                except re.error as error:
                    raise Mistake(f"{location}: {key}: {pattern}: {error}") from None
        return marker, None
