"""For gdb: what the agent of a traced process knows of its threads' open calls.

    gdb -p PID -x scripts/gdb-frames.py -ex tracer-frames
    gdb PROGRAM CORE -x scripts/gdb-frames.py -ex 'thread apply all tracer-frames'

`tracer-frames [COUNT]` is about the selected thread, innermost call first: the function, where it was called, when it was entered (ticks),
its record and the stack pointer that the record is known by, and where its enter is: how many words back in the chunk. Needs the libtracer.so that the process has, with its symbols. Where
things lie is read from the headers in CSupport, so use it from the checkout that built the agent.
"""
import glob
import os
import re
import struct

import gdb

HEADERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "CSupport/*.h")
LONGEST = 1_000_000  # records of a chain; a damaged one may be a ring


def constants():
    found = {}
    for path in glob.glob(HEADERS):
        with open(path, encoding="utf-8") as file:
            for name, number in re.findall(r"^#define (\w+) (0x[0-9a-f]+|\d+)\b", file.read(), re.M):
                found[name] = int(number, 0)
    return found


class Frames(gdb.Command):
    """Open calls of the selected thread, as the agent (libtracer.so) has them, innermost first."""

    def __init__(self):
        super().__init__("tracer-frames", gdb.COMMAND_STACK)
        self.number = constants()

    def read(self, address, size=8):
        data = gdb.selected_inferior().read_memory(address, size).tobytes()
        return struct.unpack("<Q" if size == 8 else "<I", data)[0]

    def field(self, record, name, size=8):
        return self.read(record + self.number[name], size)

    @staticmethod
    def address(symbol):
        # A symbol without a type: of a thread-local one gdb asks libthread_db.
        return int(gdb.parse_and_eval(f"(unsigned long)&{symbol}"))

    @staticmethod
    def named(address):
        said = gdb.execute(f"info symbol {address:#x}", to_string=True)
        if said.startswith("No symbol"):
            space = gdb.current_progspace()
            return f"{address:#x} in {os.path.basename(space.solib_name(address) or space.filename or '?')}"
        return said.split(" in section ")[0].strip()

    def describe(self, record):
        n = self.number
        label = self.field(record, "FRAME_LABEL")
        flags = label % n["LABEL_BYTES"]
        words = [self.named(self.field(self.field(record, "FRAME_FUNCTION"), "FUNCTION_TARGET"))]
        code = label - flags
        if self.labels <= code < self.labels + self.span:
            words.append("called from " + self.named(self.read(code + n["LABEL_RETURN"]) - 1))
        words.append(f"entered {self.field(record, 'FRAME_ENTER')}")
        words.append(f"record {record:#x} for {self.field(record, 'FRAME_STACK_POINTER'):#x}")
        for flag, meaning in (("LABEL_TAIL", "a tail call"), ("LABEL_WATCHED", "its return goes to Swift"), ("LABEL_LOST", "its enter was not written")):
            if flags & n[flag]:
                words.append(meaning)
        words.append("its enter " + self.position(self.field(record, "FRAME_EVENT")))
        return ", ".join(words)

    def position(self, event):
        n = self.number
        event &= ~n["FRAME_CLOSING"]
        if event <= n["FRAME_UNWRITTEN"]:
            return {0: "is being written", n["FRAME_ELSEWHERE"]: "in an earlier chunk"}.get(event, "not written")
        return f"{(self.cursor - event) // 8 + 1} words back"

    def chain(self, record, link, last):
        records = []
        while record not in (0, last):
            if len(records) == LONGEST:
                raise gdb.GdbError(f"tracer-frames: the chain of records does not end ({record:#x})")
            records.append(record)
            record = self.field(record, link)
        return records

    def invoke(self, argument, from_tty):
        try:
            state = self.address("tracer_thread")
            area = self.address("tracer_label_area")
            self.labels, self.span = self.read(area + self.number["AREA_LOW"]), self.read(area + self.number["AREA_SPAN"])
        except gdb.error as error:
            raise gdb.GdbError(f"tracer-frames: no symbols of an agent: the process is not traced, or this is not its libtracer.so ({error})")
        n = self.number
        context = self.field(state, "THREAD_CONTEXT")
        if not context:
            print("no call was recorded on this thread")
            return
        self.cursor = self.field(self.field(state, "THREAD_POSITION"), "POSITION_CURSOR")
        top, low = self.field(state, "THREAD_TOP"), self.field(state, "THREAD_LOW")
        is_armed = low == (1 << 64) - 1
        # Other records stand in for the top: while a child of vfork runs, and while frames on other stacks are open.
        if self.field(top, "FRAME_LAST", 4) == n["LAST_CHILD"]:
            top = self.field(top, "FRAME_BELOW")
        if self.field(top, "FRAME_LAST", 4) == n["LAST_ALTERNATE_MODE"]:
            top = self.field(context, "CONTEXT_TOP")
        own = self.chain(top, "FRAME_BELOW", context)
        count = f"{len(own)} open call{'' if len(own) == 1 else 's'} on its own stack"
        print(f"thread {self.field(context, 'CONTEXT_TID', 4)}: {count}" + (", each call leaves the fast path" if is_armed else ""))
        for index, record in enumerate(own[:int(argument)] if argument else own):
            print(f"  #{index}  {self.describe(record)}")
        alternate = self.field(context, "CONTEXT_ALTERNATE")
        if not alternate:
            return
        print(f"  {alternate} on other stacks:")
        lists = self.field(context, "CONTEXT_LISTS")
        for index in range(1 << n["LIST_BITS"]):
            for record in self.chain(self.read(lists + 8 * index), "FRAME_OLDER", 0):
                if self.field(record, "FRAME_USE", 4):
                    print(f"  -  {self.describe(record)}")


Frames()
