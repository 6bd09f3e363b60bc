"""Reads a plan file (docs/internals/entry-patches.md, plan_layout.h); shares no code with the tool."""
import dataclasses
import functools
import pathlib
import re
import struct

TACTICS = ["none", "nops", "jump5", "jump2", "word", "trap", "whole", "calls", "neighbour"]
HEADER = struct.Struct("<QIIQQ24sQqIIQQIIIIIIIIIIIII4xQ")
FUNCTION = struct.Struct("<IIIIIIBBBBBBBBBB6s5sB2x")
SIGNED, RELOCATED_END, LEAF, BOUNDED, WAITS, OBJECT, HELD = 1, 2, 4, 16, 32, 64, 128


def reasons():
    """Returns name → number of the reasons in Sources/Binaries/EntryPlan/Reason.swift."""
    text = pathlib.Path(__file__).resolve().parents[2].joinpath("Sources/Binaries/EntryPlan/Reason.swift").read_text()
    listed = re.search(r"enum Reason: .*?\bcase (.*?)\n\n", text, re.S)[1]
    return {name.strip(): number for number, name in enumerate(listed.split(","))}


NOT_CODE = reasons()["notCode"]


@dataclasses.dataclass
class Function:
    names: list
    address: int       # as linked
    size: int
    tactic: str
    reason: int
    patch: int
    replaced: int
    resume: int
    relocated: bytes
    instructions: list       # (from the first byte of the relocated instructions, from the function's address)
    linked: int
    landing: int
    flags: int
    sites: list              # addresses of the words that are rewritten, as linked

    @property
    def name(self):
        return self.names[0] if self.names else hex(self.address)

    @property
    def replaces(self):
        """The addresses that are overwritten."""
        ranges = [range(self.address + self.patch, self.address + self.patch + self.replaced)]
        return ranges + ([range(self.landing, self.landing + 5)] if self.landing else [])


def read(path):
    content = pathlib.Path(path).read_bytes()
    (magic, version, _, byte_count, _, _, _, _, _, elf_machine, _, base, _, function_count, _, functions, fixups, data, data_count, names,
     names_count, keys, key_count, sites, site_count, _) = HEADER.unpack_from(content)
    assert magic == int.from_bytes(b"plantrcr", "little") and version == 3 and byte_count == len(content)
    result, name_number = [], 0
    for n in range(function_count):
        (address, size, name, relocated, _, landing, tactic, reason, name_count, patch, replaced, resume, relocated_count, instruction_count, _, flags,
         _, _, linked) = FUNCTION.unpack_from(content, functions + n * FUNCTION.size)
        texts = content[names + name:names + names_count].split(b"\0", name_count)[:name_count] if name_count else []
        for text in texts:  # none that the agent has to look at is passed over
            key, = struct.unpack_from("<I", content, keys + 4 * name_number)
            assert key & 0x3fffffff == functools.reduce(lambda hash, byte: hash * 33 + byte, text, 5381) & 0x3fffffff, text
            assert bool(key >> 31) == bool(re.search(b"jmp|context", text.lower())), text
            name_number += 1
        at = data + relocated
        assert relocated + relocated_count + 2 * instruction_count <= data_count
        instructions = content[at + relocated_count:at + relocated_count + 2 * instruction_count]
        result.append(Function([text.decode() for text in texts], base + address, size, TACTICS[tactic], reason, patch, replaced, resume,
                               content[at:at + relocated_count], list(zip(instructions[::2], instructions[1::2])), linked,
                               base + landing if landing else 0, flags, []))
    for n in range(site_count):
        function, word = struct.unpack_from("<II", content, sites + 8 * n)
        result[function].sites.append(base + word)
    assert name_number == key_count and names == max(functions, fixups, sites, data, keys, names)
    return elf_machine, result
