"""Checks the commands and options in documents against those that the tool and the scripts accept."""
import json
import os
import pathlib
import re
import shlex
import subprocess

from script_modules import load

INLINE = re.compile(r"`+([^`\n]+)`+")
OPTION = re.compile(r"--?[a-zA-Z][\w-]*")
SCRIPT = re.compile(r"(?:python3 )?((?:scripts|Tests)/[\w./-]+)")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
SETTING = re.compile(r"^\| (?P<options>`-.*?) \| `(?P<variable>TRACER_\w+)` \| .* \| (?P<default>[^|]*) \|$")


class Tool:
    """The commands of the tool, from its own description of itself."""

    def __init__(self, path):
        said = subprocess.run([path, "--experimental-dump-help"], check=True, capture_output=True, text=True).stdout
        top = json.loads(said)["command"]
        self.commands = {}
        self._add("", top)

    def _add(self, name, command):
        options = {}
        for argument in command.get("arguments", []):
            for spelled in argument.get("names") or []:
                dashes = "-" if spelled["kind"] == "short" else "--"
                options[dashes + spelled["name"]] = argument
        self.commands[name] = options
        for below in command.get("subcommands", []):
            self._add(f"{name} {below['commandName']}".strip(), below)
        if f"{name} show" in self.commands:  # the command's own default
            options.update(self.commands[f"{name} show"])

    def options(self):
        return {option for options in self.commands.values() for option in options}


def words(text):
    text = re.split(r"\s#\s", text)[0]
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def wrong_in_command(tool, text):
    """Returns the mistakes in `tracer …` or `scripts/tracer …`, up to the program that it starts or the end of the command."""
    given = words(text)[1:]
    names = []
    while given and " ".join(names + [given[0]]) in tool.commands:
        names.append(given.pop(0))
    name = " ".join(names)
    if not names and given and re.fullmatch(r"[a-z][a-z-]*", given[0]):
        return [f"tracer has no command {given[0]!r}"]
    wrong = []
    options = tool.commands[name]
    for number, word in enumerate(given):
        if word == "--" or word[:1] in "|>&;…" or word.endswith(";"):
            break
        if not OPTION.match(word):
            continue
        option, _, value = word.partition("=")
        if option not in options:
            wrong.append(f"tracer {name} has no option {option}".replace("  ", " "))
            continue
        values = options[option].get("allValues") or []
        value = value or (given[number + 1] if number + 1 < len(given) else "")
        if values and re.fullmatch(r"[a-z]+", value) and value not in values:
            wrong.append(f"tracer {name} {option} does not take {value!r}")
    return wrong


def wrong_in_script(root, path, text):
    if not os.path.exists(os.path.join(root, path)):
        return [f"there is no {path}"]
    if not os.path.isfile(os.path.join(root, path)):
        return []
    source = pathlib.Path(root, path).read_text(encoding="utf-8")
    # Options may be read by the Python files beside it, or by those that it names.
    for folder in {os.path.dirname(path)} - {"scripts"} | set(re.findall(r"\b(?:Tests|Benchmarks)(?:/\w+)?", source)):
        full = os.path.join(root, folder)
        for name in sorted(os.listdir(full)) if os.path.isdir(full) else []:
            if name.endswith(".py"):
                source += pathlib.Path(full, name).read_text(encoding="utf-8")
    given = words(text.split(path, 1)[1])
    return [f"{path} has no option {word}" for word in (given[:given.index("--")] if "--" in given else given)
            if re.match(r"--[a-z]", word) and word.partition("=")[0] not in source]


def wrong_in(root, tool, document):
    """(line number, text) of what the document names and what is not there."""
    found = []
    inside = {}
    for block in document.blocks:
        for number in range(block.first, block.first + len(block.lines)):
            inside[number] = block
    for number, line in enumerate(document.lines):
        block = inside.get(number)
        if block:
            spans = [line.strip()] if block.is_commands() else []
        else:
            spans = INLINE.findall(line)
        for span in spans:
            path = SCRIPT.match(span)
            if re.match(r"(scripts/)?tracer [a-z-]", span):
                found += [(number, text) for text in wrong_in_command(tool, span)]
            elif path:
                found += [(number, text) for text in wrong_in_script(root, path.group(1), span)]
            elif not block and re.match(r"--[a-z]", span):
                option = words(span)[0].partition("=")[0]
                if option not in tool.options() and not is_in_scripts(root, option):
                    found.append((number, f"neither tracer nor a script has the option {option}"))
        if not block and number not in document.comments:
            for target in LINK.findall(line):
                if not os.path.exists(os.path.join(root, os.path.dirname(document.name), target)):
                    found.append((number, f"the link to {target} leads nowhere"))
    return found


def is_in_scripts(root, option):
    for folder, _, names in [*os.walk(os.path.join(root, "scripts")), *os.walk(os.path.join(root, "Tests"))]:
        for name in names:
            path = os.path.join(folder, name)
            if folder.endswith("scripts") or name.endswith(".py"):
                with open(path, encoding="utf-8", errors="replace") as file:
                    if f'"{option}"' in (source := file.read()) or f"{option})" in source or f"{option} " in source:
                        return True
    return False


def wrong_in_settings(tool, agent, document, defaults):
    """The table of settings: option, variable and default of each row, and every variable that has an option.

    `agent` is the bytes of libtracer.so; `defaults` the settings that a trace recorded without any says were in force.
    """
    found, documented = [], set()
    for number, line in enumerate(document.lines):
        row = SETTING.match(line)
        if not row:
            continue
        variable = row["variable"]
        documented.add(variable)
        of = re.search(r"` of `(\w+)`", row["options"])
        command = of.group(1) if of else "record"
        for option in re.findall(r"`(--?[\w-]+)`", row["options"]):
            argument = tool.commands[command].get(option)
            if argument is None:
                found.append((number, f"tracer {command} has no option {option}"))
            elif not of and variable not in argument.get("abstract", ""):
                found.append((number, f"{option} of tracer {command} does not set {variable}"))
        if variable.encode() not in agent:
            found.append((number, f"the agent knows no {variable}"))
        default = row["default"].strip()
        stated = re.match(r"`([^`]+)`|(\d+)", default)
        if stated and variable in defaults:
            value, real = stated.group(1) or stated.group(2), defaults[variable]
            if variable == "TRACER_OUT":
                real = os.path.basename(real)
            if value != real:
                found.append((number, f"{variable} is {real!r} unless it is set, not {value!r}"))
    have = set(re.findall(r"TRACER_[A-Z]+", " ".join(argument.get("abstract", "") for argument in tool.commands["record"].values())))
    for variable in sorted(have - documented):
        found.append((0, f"the table of settings lacks {variable}"))
    return found


def wrong_in_bench(root, document):
    """The tables of scripts/bench in a document: the rows and columns that it has, all of them."""
    bench = load(os.path.join(root, "scripts/bench"))
    titles, names = [row[1] for row in bench.ROWS], [row[0] for row in bench.ROWS]
    expected = {
        "|  | cost | two clock reads | limit |  |": (titles, False),
        "| row (`--only`) | | what is compared |": (names, True),
        "| | million calls/s | at least | bytes/call | at most | |": (bench.reading.NAMES, False),
    }
    found = []
    for number, line in enumerate(document.lines):
        if line not in expected:
            continue
        rows, are_options = expected.pop(line)
        shown = []
        for below in document.lines[number + 2:]:
            if not below.startswith("|"):
                break
            first = below.split("|")[1].strip()
            shown += re.findall(r"`([\w-]+)`", first) if are_options else [first]
        found += [(number, f"scripts/bench has no row {row!r}") for row in shown if row not in rows]
        found += [(number, f"the table lacks the row {row!r} of scripts/bench") for row in rows if row not in shown]
    return found + [(0, f"has no table with the heading {heading}") for heading in expected]
