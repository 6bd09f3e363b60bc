"""An independent reader of trace files.

Written from trace_layout.h and plan_layout.h of Sources/Format/CTraceLayout/include alone, so that it shares no mistake with the Swift reader:
harness.py asserts that both count the same. It favours clarity over speed, and it says what is wrong with a file
(`anomalies`) instead of repairing it, because a test wants to know.
"""
import collections
import functools
import os
import re
import struct
import subprocess
from dataclasses import dataclass, field

MAGIC = b"TRACER\x1a\n"
VERSIONS = 1, 2
HEADER_BYTES = 4096
CHUNK_MAGIC = 0x4B484354
CONTROL, ENTER, EXIT, COMPLETE = range(4)
BASE, RESUME, UNWOUND, SITE, ARGUMENT, SAMPLED, DATA, ARGUMENTS, VALUES, RESULT = range(1, 11)
FUNCTION_SHIFT = 2
CONTROL_SHIFT, CONTROL_MASK, PAYLOAD_SHIFT, PAYLOAD_MASK = 2, 0x3F, 8, (1 << 56) - 1
CLOSED, UNSETTLED, SITES = 1, 4, 8  # flags of a chunk
NO_START = 128  # flag of a file: the program already ran when the agent began
CALL_SITES = 32  # flag of the file
ENTRY_ONLY, SPAN, NAMED_MARK = 1, 2, 4
SAMPLE_WHOLE, SAMPLE_KERNEL = 1, 2  # flags of a sample
ARGUMENT_SHIFT, ARGUMENT_IS_INT = 8, 2048  # in the same flags: the argument that is recorded, from 1 on; whether it is an int
NONE = 0xFFFFFFFF
PHASES = {1: "created", 2: "exec", 3: "loader", 4: "agent", 5: "main", 6: "main returned", 7: "exit"}
INITIALIZERS = {1: "preinit_array", 2: "init", 3: "init_array", 4: "fini", 5: "fini_array"}
READY = {1: "symbol", 2: "mark", 3: "notify", 4: "output", 5: "frame"}
RECORDING, FINISHED, STOPPED = range(3)
STATE_NAMES = {RECORDING: "recording", FINISHED: "finished", STOPPED: "stopped"}

HEADER = struct.Struct("<8s10I Q 4Q Q 5Q 2I 2Q 2I 7Q 2I 5Q 2Q 2Q4I Q 4I Q Q 4I")
HEADER_FIELDS = """magic version header_bytes elf_machine page_bytes pid parent_pid clock state stop_reason mode
    ticks_per_second first_ticks first_monotonic_ns last_ticks last_monotonic_ns first_realtime_ns next_offset
    prepared_offset size_limit dropped minimum_ticks maximum_depth flags start_ticks started_ticks leaf_cost inside_cost
    exit_status collected session extended_offset boot pid_namespace unrecorded_children leaf_error inside_error stopped_ticks
    ended_ns waits waited_ticks longest_wait requests watched
    begin_ticks end_ticks thread function trigger request complete_ticks control controlled wanted is_on wanted_minimum
    wanted_names left_functions left_slots refused reserved""".split()
assert HEADER.size == 376 and len(HEADER_FIELDS) == 61, (HEADER.size, len(HEADER_FIELDS))
OPEN_FRAME = struct.Struct("<Q2I")
CHUNK = struct.Struct("<I2H4I Q 2Q 4Q 2I 16s Q 2Q")
CHUNK_FIELDS = """magic kind flags byte_count body_offset thread tid sequence opened_ticks opened_ns used_bytes
    filtered_by_time filtered_by_depth dropped open_frames stored_frames thread_name unused filtered_by_condition r1""".split()
assert CHUNK.size == 128


class Layout:
    """How the bits of an event are shared out."""
    def __init__(self, function_bits, start_bits):
        self.function_mask = (1 << function_bits) - 1
        self.time_shift = FUNCTION_SHIFT + function_bits
        self.time_bits = 64 - self.time_shift
        self.time_mask = (1 << self.time_bits) - 1
        self.start_mask, self.duration_shift = (1 << start_bits) - 1, self.time_shift + start_bits
        self.count_shift = self.time_bits  # within an unwound word's payload


LAYOUTS = {1: Layout(20, 23), 2: Layout(24, 21)}
PLANS = None  # the folder of plans, which have the names of functions that record their calls themselves


class Damaged(Exception):
    """The file is not a trace at all."""


class Node:
    """One call. `mark` is "", "unwound", "open" (never left), "tail" (entry only). `site`: where it returns to, 0 unknown.
    `object`: what it waits for, or None. `arguments`, `result`: their program and bytes where they are recorded, or None."""
    __slots__ = ("function", "name", "own", "enter", "site", "object", "exit", "mark", "inherited", "children", "arguments", "result")

    def __init__(self, function, name, own, enter, site=0):
        self.function, self.name, self.own, self.enter, self.site = function, name, own, enter, site
        self.object, self.exit, self.mark, self.inherited, self.children = None, None, "", False, []
        self.arguments = self.result = None


@dataclass
class Module:
    index: int
    path: str
    bias: int
    low: int
    high: int
    build_id: str
    loaded: list = field(default_factory=list)  # ticks


@dataclass
class Function:
    index: int
    name: str
    module: "Module | None"
    address: int
    flags: int


class Usage(collections.namedtuple("Usage", "ticks own_ticks cpu_ns minor_faults major_faults")):
    @classmethod
    def at(cls, body, offset):
        return cls(*struct.unpack_from("<3Q2I", body, offset))


@dataclass
class Initializer:
    """`end` is None when it never came back; `left` says that an exception or longjmp left it."""
    number: int
    kind: str
    parent: "int | None"
    module: "Module | None"
    index: int
    thread: int
    load: "int | None"
    address: int
    begin: Usage
    end: "Usage | None" = None
    left: bool = False


@dataclass
class Sample:
    """`addresses`, innermost first: of the kernel those that have bit 63."""
    ns: int
    tid: int
    flags: int
    addresses: list


@dataclass
class Load:
    number: int
    thread: int
    caller: "Module | None"
    initializer: "int | None"
    begin: int
    opened: int
    mapped: Usage
    path: str
    end: "Usage | None" = None


@dataclass
class Unrecorded:
    """A program that has no trace; why, as trace_layout.h numbers it. `holder`: the trace that says so."""
    reason: int
    ns: int
    pid: int
    parent: int
    count: int
    path: str
    holder: str


@dataclass
class Opened:
    """A descriptor that a call made; access: 1 read, 2 write, 4 a pipe, 8 replaced."""
    ticks: int
    thread: int
    descriptor: int
    pair: int
    access: int
    object: str
    stream: int


@dataclass
class Thread:
    index: int
    tid: int
    name: str
    roots: list = field(default_factory=list)
    calls: int = 0


def names_of_functions(module):
    """{address as linked: the first of its names}, by the plan of this module, or by the module's file."""
    path = PLANS and module.build_id and os.path.join(PLANS, module.build_id + ".plan")
    if path and os.path.exists(path):
        return names_of_plan(path, os.stat(path).st_mtime_ns)
    return names_of_file(module.path, os.stat(module.path).st_mtime_ns) if os.path.exists(module.path) else {}


@functools.lru_cache
def names_of_file(path, _):
    found = {}
    for line in subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, errors="backslashreplace", check=True).stdout.splitlines():
        fields = re.sub(r"\[\w+\]", "", line).split()  # [VARIANT_PCS] and its like are a field of their own
        if len(fields) == 8 and fields[3] in ("FUNC", "IFUNC") and fields[6] != "UND":
            address, binding, name = int(fields[1], 16), fields[4], fields[7].split("@")[0]
            underscores = 0 if name.startswith("_Z") else min(len(name) - len(name.lstrip("_")), 7)
            is_resolver = fields[3] == "IFUNC"
            if is_resolver and not name.endswith(".resolver"):
                name += ".resolver"
            rank = {"LOCAL": 32, "WEAK": 1}.get(binding, 0) + 2 * underscores + 128 * is_resolver, len(name), name
            found[address] = min(found.get(address, rank), rank)
    return {address: rank[2] for address, rank in found.items()}


@functools.lru_cache
def names_of_plan(path, _):
    with open(path, "rb") as file:
        data = file.read()
    base, _, count, _, functions, _, _, _, names, _ = struct.unpack_from("<Q9I", data, 88)
    result = {}
    for n in range(count):
        address, _, name, has_names = struct.unpack_from("<3I14xB", data, functions + 48 * n)
        if has_names:
            start = names + name
            result[base + address] = data[start:data.index(b"\0", start)].decode(errors="surrogateescape")
    return result


class Trace:
    def __init__(self, path, own=lambda module_path: False):
        self.path = path
        self.own = own
        self.anomalies = []
        self.texts, self.modules, self.functions, self.threads = {}, {}, {}, {}
        self.phases = {}  # name -> (Usage, monotonic ns, error ns, thread)
        self.initializers, self.loads = {}, {}
        self.details = {}  # module → flags of its details
        self.clock_samples = []  # (ticks, ns): the agent saw the clock's rate change
        self.ready, self.onces = [], []  # (reason, function, thread, ticks); (function, thread, ticks, code, token)
        self.calls, self.unwound, self.open, self.tail = (collections.Counter() for _ in range(4))  # function index -> count
        self.recorded = collections.Counter()  # function index → calls that are in the events: the others are counted alone
        self.counters, self.counts = {}, {}  # number → function index; thread → its counters, from number 1 on
        self.stood_for = collections.Counter()  # (thread, function index) → calls that are counted alone and for which a recorded one stands
        self.filtered_by_time = self.filtered_by_depth = self.filtered_by_condition = self.dropped = self.events = 0
        self.maximum_depth_seen = 0
        self.addressed = 0  # functions of which the file has the address alone
        self.samples, self.wait_stacks, self.kernel_names = [], [], {}  # [Sample], [Sample], address of a function of the kernel → (bytes, name)
        self.patched = {}  # module → (functions that are wanted, functions with entry patches)
        self.interleaves = False  # calls have ended while others went on that were called after them
        self.unrecorded = []
        self.opened = []
        self.switched = []  # (ticks, recording is on from then on)
        self.choices = []  # (ticks, functions, include, exclude)
        self.prototypes = {}  # program → text
        self.begun = set()  # numbers of the threads that a record says began
        self._gone = []  # ([node], what is wrong if nobody has closed one): in a chunk's list no more
        self._again = []  # (module, load)
        self._elsewhere = []  # (enter bits, function or None, time, mark, where): closed by a thread that did not open it
        with open(path, "rb") as file:
            self.data = file.read(HEADER_BYTES)
            if len(self.data) == HEADER_BYTES:  # what is after the last chunk may be a hole of a gigabyte
                used = dict(zip(HEADER_FIELDS, HEADER.unpack_from(self.data)))["next_offset"]
                self.data += file.read(used - HEADER_BYTES if used > HEADER_BYTES else -1)
        if len(self.data) < HEADER.size:
            raise Damaged(f"{path}: {len(self.data)} bytes")
        self.header = dict(zip(HEADER_FIELDS, HEADER.unpack_from(self.data)))
        if self.header["magic"] != MAGIC:
            raise Damaged(f"{path}: magic {self.header['magic']!r}")
        if self.header["version"] not in VERSIONS:
            raise Damaged(f"{path}: version {self.header['version']}")
        self.layout = LAYOUTS[self.header["version"]]
        self._planned = {}
        self.files = {}  # size, and time of the last write in nanoseconds, of modules without a build-id
        self.state = STATE_NAMES.get(self.header["state"], "unknown")
        self.dropped = self.header["dropped"]
        self.chunks = list(self._chunks())
        for offset, chunk in sorted(self.chunks, key=lambda c: (c[1]["opened_ticks"], c[0])):
            if chunk["kind"] == 2:
                self._metadata(offset, chunk)
        for initializer in self.initializers.values():
            if initializer.module not in self.modules:
                self.anomalies.append(f"initializer {initializer.number} of no module {initializer.module}")
            initializer.module = self.modules.get(initializer.module)
            if initializer.parent is not None and initializer.parent not in self.initializers and self.header["mode"] == 0:
                self.anomalies.append(f"initializer {initializer.number} ran inside {initializer.parent}, which is not there")
        for module, load in self._again:
            if module in self.modules and load in self.loads:
                self.modules[module].loaded.append(self.loads[load].opened)
        self._names = {}
        by_thread = {}
        for offset, chunk in self.chunks:
            if chunk["kind"] == 1:
                by_thread.setdefault(chunk["thread"], []).append((chunk["sequence"], offset, chunk))
        for index, chunks in by_thread.items():
            # If two chunks have one number, the closed one is a complete copy of the other.
            chosen = {}
            for sequence, offset, chunk in chunks:
                if sequence not in chosen or chunk["flags"] & CLOSED:
                    chosen[sequence] = (sequence, offset, chunk)
            by_thread[index] = list(chosen.values())
        self.by_thread = by_thread

    def trees(self):
        """Decodes the events. Separate, because a big trace is only walked by the tests of real programs."""
        for index in sorted(self.by_thread):
            chunks = sorted(self.by_thread[index], key=lambda c: c[0])
            _, _, first = chunks[0]
            name = chunks[-1][2]["thread_name"].split(b"\0")[0].decode(errors="replace")
            thread = self.threads[index] = Thread(index, first["tid"], name)
            self._walk(thread, chunks)
        self._close_elsewhere()
        self.recorded = collections.Counter(self.calls)
        for index, counts in self.counts.items():
            for number, count in enumerate(counts, 1):
                if count:
                    self._add_counted(index, number, count)
        return self

    def _add_counted(self, index, number, count):
        function = self.counters.get(number)
        if function is None or index not in self.threads:
            self.anomalies.append(f"counter {number} of thread {index}: {count} calls of nobody, or by nobody")
            return
        if self.stood_for[index, function] > count:
            self.anomalies.append(f"counter {number} of thread {index}: {count} calls, and {self.stood_for[index, function]} are stood for")
        self.calls[function] += count
        self.threads[index].calls += count

    def _close_elsewhere(self):
        """A coroutine may finish on another thread: its frames are open in one thread's events and end in another's."""
        still_open = {}
        work = [n for t in self.threads.values() for n in t.roots] if self._elsewhere else []
        while work:
            node = work.pop()
            work += node.children
            if node.mark == "open":
                still_open.setdefault(node.enter & PAYLOAD_MASK, []).append(node)
        for enter, function, time, mark, where in self._elsewhere:
            # A coarse clock gives several one moment.
            candidates = still_open.get(enter, [])
            node = next((node for node in candidates if function in (None, node.function)), None)
            if node is None:
                self.anomalies.append(f"{where}: resumes a frame entered at …{enter:x} that is open in no thread")
                continue
            candidates.remove(node)
            node.exit, node.mark = time, mark
            self.open[node.function] -= 1
            if mark == "unwound":
                self.unwound[node.function] += 1
        self.anomalies += [fault for gone, fault in self._gone if any(node.mark == "open" for node in gone)]

    # -- structure ------------------------------------------------------------------------------------------------
    def _chunks(self):
        offset = HEADER_BYTES
        is_unwritten = False  # from a magic of zero on, whatever follows: a thread was killed while it cleared a chunk
        while offset + CHUNK.size <= len(self.data):
            chunk = dict(zip(CHUNK_FIELDS, CHUNK.unpack_from(self.data, offset)))
            if chunk["magic"] != CHUNK_MAGIC:
                is_unwritten = is_unwritten or chunk["magic"] == 0
                if not is_unwritten:
                    self.anomalies.append(f"chunk at {offset}: magic {chunk['magic']:#x}")
                offset += HEADER_BYTES
                continue
            is_unwritten = False
            size = chunk["byte_count"]
            if size < CHUNK.size or size % HEADER_BYTES:
                self.anomalies.append(f"chunk at {offset}: {size} bytes")
                offset += HEADER_BYTES
                continue
            if not CHUNK.size <= chunk["body_offset"] <= size:
                self.anomalies.append(f"chunk at {offset}: body at {chunk['body_offset']}")
            elif chunk["kind"] == 3:  # a copy that was never finished
                pass
            elif chunk["kind"] not in (1, 2):
                self.anomalies.append(f"chunk at {offset}: kind {chunk['kind']}")
            else:
                if chunk["kind"] == 1:
                    self.filtered_by_time += chunk["filtered_by_time"]
                    self.filtered_by_depth += chunk["filtered_by_depth"]
                    self.filtered_by_condition += chunk["filtered_by_condition"]
                    self.dropped += chunk["dropped"]
                yield offset, chunk
            offset += size

    def _metadata(self, start, chunk):
        offset = start + chunk["body_offset"]
        end = min(start + (chunk["used_bytes"] or chunk["byte_count"]), len(self.data))
        while offset + 8 <= end:
            kind, key, size = struct.unpack_from("<HHI", self.data, offset)
            if kind == 0:
                break
            if size < 8 or size % 8 or offset + size > end:
                self.anomalies.append(f"record at {offset}: type {kind}, {size} bytes")
                break
            body = self.data[offset:offset + size]
            if kind == 1:
                length, = struct.unpack_from("<I", body, 8)
                self.texts.setdefault(key, []).append(body[16:16 + length])
            elif kind == 2:
                index, length, bias, low, high, loaded, id_bytes = struct.unpack_from("<2I4QI", body, 8)
                path = body[72:72 + length].decode(errors="surrogateescape")
                self.modules[index] = Module(index, path, bias, low, high, body[52:52 + min(id_bytes, 20)].hex(), [loaded])
            elif kind == 40:
                module, nanoseconds, seconds, count, _ = struct.unpack_from("<2Iq2Q", body, 8)
                if module not in self.modules or self.modules[module].build_id or module in self.files:
                    self.anomalies.append(f"record at {offset}: file of module {module}, which is unknown, has a build-id or had one")
                self.files[module] = count, seconds * 10 ** 9 + nanoseconds
            elif kind == 3:
                index, module, address, flags, length = struct.unpack_from("<2IQ2I", body, 8)
                name = body[32:32 + length].decode(errors="surrogateescape")
                if index in self.functions:
                    self.anomalies.append(f"function {index} is declared twice: {self.functions[index].name}, {name}")
                if module != 0xFFFFFFFF and module not in self.modules:
                    self.anomalies.append(f"function {name}: no module {module}")
                if not name and (module == 0xFFFFFFFF or flags != ENTRY_ONLY):  # else it is in the module's file
                    self.anomalies.append(f"function {index} has no name")
                self.functions[index] = Function(index, name, self.modules.get(module), address, flags)
                if not name and module in self.modules:
                    self.functions[index].name = self._planned_function(index, self.modules[module], address - self.modules[module].low).name
            elif kind == 43:
                program, length = struct.unpack_from("<2I", body, 8)
                if program in self.prototypes:
                    self.anomalies.append(f"record at {offset}: program {program} has two prototypes")
                self.prototypes[program] = body[16:16 + length].decode()
            elif kind == 4:
                self.begun.add(struct.unpack_from("<I", body, 12)[0])
            elif kind == 19:
                first, module, count, _ = struct.unpack_from("<4I", body, 8)
                if module not in self.modules or 24 + count * 4 > size:
                    self.anomalies.append(f"record at {offset}: {count} functions of module {module} in {size} bytes")
                    count = 0
                for index, distance in enumerate(struct.unpack_from(f"<{count}I", body, 24), first):
                    if distance:
                        self.addressed += 1
                        if index in self.functions:
                            self.anomalies.append(f"function {index} is declared twice")
                        self.functions[index] = self._planned_function(index, self.modules[module], distance)
            elif kind == 18:
                function, counter, _ = struct.unpack_from("<2IQ", body, 8)
                if counter:
                    if counter in self.counters and self.counters[counter] != function:
                        self.anomalies.append(f"counter {counter} is of two functions")
                    self.counters[counter] = function
            elif kind == 42:
                thread, count = struct.unpack_from("<2I", body, 8)
                if thread in self.counts:
                    self.anomalies.append(f"thread {thread} has its counters twice")
                self.counts[thread] = struct.unpack_from(f"<{count}Q", body, 16)
            elif kind == 17:
                module, wanted, patched, _ = struct.unpack_from("<4I", body, 8)
                self.patched[module] = wanted, patched
            elif kind == 30:
                ns, pid, parent, count, length = struct.unpack_from("<Q4I", body, 8)
                if not count or 32 + length > size:
                    self.anomalies.append(f"record at {offset}: {count} processes, a path of {length} bytes in {size}")
                self.unrecorded.append(Unrecorded(key, ns, pid, parent, count, body[32:32 + length].decode(errors="surrogateescape"), self.path))
            elif kind == 25:
                self._samples(offset, body, self.samples)
            elif kind == 32:
                self._samples(offset, body, self.wait_stacks)
            elif kind == 31:
                start, length, name = struct.unpack_from("<2QI", body, 8)
                self.kernel_names[start] = length, body[32:32 + name].decode(errors="surrogateescape")
            elif kind == 41:
                ticks, thread, descriptor, pair, length, stream, own = struct.unpack_from("<QI2iI2Q", body, 8)
                if descriptor < 0 or descriptor == pair or 48 + length > size or key & ~15 or not key & 3 or not own:
                    self.anomalies.append(f"record at {offset}: descriptor {descriptor}, {pair}, key {key}, a text of {length} bytes in {size}")
                object = body[48:48 + length].decode(errors="surrogateescape")
                self.opened.append(Opened(ticks, thread, descriptor, pair, key, object, stream))
            elif kind == 44:
                self.switched.append((struct.unpack_from("<Q", body, 8)[0], bool(key)))
            elif kind == 45 and key == 1:
                ticks, *counts, _ = struct.unpack_from("<Q4I", body, 8)
                ends = [32 + sum(counts[:n]) for n in range(4)]
                self.choices.append((ticks, *(body[ends[n]:ends[n + 1]].decode() for n in range(3))))
            elif kind == 16:
                self.clock_samples.append(struct.unpack_from("<2Q", body, 8))
            elif 7 <= kind <= 14:
                self._start_record(kind, key, body)
            offset += size

    def _samples(self, offset, body, found):
        count, position = struct.unpack_from("<I", body, 8)[0], 16
        for _ in range(count):
            if position + 16 > len(body):
                self.anomalies.append(f"record at {offset}: {count} samples in {len(body)} bytes")
                return
            ns, tid, depth, flags = struct.unpack_from("<QI2H", body, position)
            position += 16
            if position + depth * 8 > len(body):
                self.anomalies.append(f"record at {offset}: a sample of {depth} addresses is cut")
                return
            found.append(Sample(ns, tid, flags, list(struct.unpack_from(f"<{depth}Q", body, position))))
            position += depth * 8

    def _planned_function(self, index, module, distance):
        if module.index not in self._planned:
            self._planned[module.index] = names_of_functions(module)
        address = module.low + distance
        name = self._planned[module.index].get(address - module.bias) or f"0x{address - module.bias:x}"
        return Function(index, name, module, address, 0)

    def _start_record(self, kind, key, body):
        def none(number):
            return None if number == NONE else number
        if kind == 7:
            monotonic, error, thread = struct.unpack_from("<2QI", body, 40)
            if key not in PHASES or PHASES[key] in self.phases:
                self.anomalies.append(f"phase {key} unknown or twice")
            self.phases[PHASES.get(key, key)] = Usage.at(body, 8), monotonic, error, thread
        elif kind == 8:
            number, parent, module, index, thread, load, address = struct.unpack_from("<6IQ", body, 8)
            if number in self.initializers or key not in INITIALIZERS:
                self.anomalies.append(f"initializer {number}: twice, or of kind {key}")
            self.initializers[number] = Initializer(number, INITIALIZERS.get(key, key), none(parent), module,
                                                    index, thread, none(load), address, Usage.at(body, 40))
        elif kind == 9:
            number, _ = struct.unpack_from("<2I", body, 8)
            initializer = self.initializers.get(number)
            if initializer is not None:  # else it began in the process that forked this one
                if initializer.end is not None:
                    self.anomalies.append(f"initializer {number} ends twice")
                initializer.end, initializer.left = Usage.at(body, 16), key == 1
                if initializer.end.ticks < initializer.begin.ticks:
                    self.anomalies.append(f"initializer {number} ends before it begins")
        elif kind == 10:
            self.ready.append((READY.get(key, key), *struct.unpack_from("<2IQ", body, 8)))
        elif kind == 11:
            number, thread, caller, initializer, begin, opened = struct.unpack_from("<4I2Q", body, 8)
            length, = struct.unpack_from("<I", body, 72)
            self.loads[number] = Load(number, thread, self.modules.get(caller), none(initializer), begin, opened,
                                      Usage.at(body, 40), body[80:80 + length].decode(errors="surrogateescape"))
        elif kind == 12:
            number, _ = struct.unpack_from("<2I", body, 8)
            if number in self.loads:
                self.loads[number].end = Usage.at(body, 16)
        elif kind == 13:
            self.onces.append(struct.unpack_from("<2I3Q", body, 8))
        elif kind == 14:
            module, load, *_, flags = struct.unpack_from("<8I", body, 8)
            if module in self.details:  # loaded again
                self._again.append((module, load))
            self.details.setdefault(module, flags)

    def _describe(self, index):
        """(name, belongs to the subject, flags)"""
        known = self._names.get(index)
        if known is None:
            function = self.functions.get(index)
            if function is None:
                self.anomalies.append(f"function {index} was called and never declared")
                known = (f"?{index}", False, 0)
            else:
                own = function.module is not None and self.own(function.module.path)
                known = (function.name, own, function.flags)
            self._names[index] = known
        return known

    @staticmethod
    def object(flags, bits):
        """Returns the object of a call, by the flags of its function and the bits of its argument that the trace has before it."""
        if bits is None or not flags & ARGUMENT_IS_INT:
            return bits
        return (bits & 0xffffffff ^ 0x80000000) - 0x80000000

    # -- events ---------------------------------------------------------------------------------------------------
    def _walk(self, thread, chunks):
        stack, expected, hidden, resume = [], None, 0, None
        layout = self.layout
        calls, wrong = self.calls, self.anomalies
        where = f"thread {thread.index}"

        def push(function, enter, site=0, argument=None):
            name, own, flags = self._describe(function)
            node = Node(function, name, own, enter, site)
            node.object = self.object(flags, argument)
            (stack[-1].children if stack else thread.roots).append(node)
            stack.append(node)
            return node

        def close(node, time, mark):
            node.exit, node.mark = time, mark
            if time < node.enter:
                wrong.append(f"{where}: {node.name} left {node.enter - time} ticks before it was entered")

        def leave_open(nodes):
            for node in nodes:
                node.mark = "open"
                self.open[node.function] += 1

        def closed(time, mark, function=None):
            """The index in the stack of the innermost frame, or of the resumed one; None: that is open in another thread's events."""
            nonlocal resume
            position = len(stack) - 1 if resume is None else self._find(stack, resume, function)
            self.interleaves |= position != len(stack) - 1
            if position is None:
                self._elsewhere.append((resume, function, time, mark, where))
            resume = None
            return position

        for sequence, offset, chunk in chunks:
            stored = [OPEN_FRAME.unpack_from(self.data, offset + CHUNK.size + i * OPEN_FRAME.size)
                      for i in range(chunk["stored_frames"])
                      if offset + CHUNK.size + (i + 1) * OPEN_FRAME.size <= len(self.data)]
            sites = [0] * len(stored)
            if chunk["flags"] & SITES:
                at = offset + CHUNK.size + chunk["stored_frames"] * OPEN_FRAME.size
                sites = [int.from_bytes(self.data[at + i * 8:at + i * 8 + 8], "little") for i in range(len(stored))]
            if sequence != expected:  # the thread's first chunk, or its predecessor was overwritten in a ring
                if expected is not None and self.header["mode"] == 0:
                    wrong.append(f"{where}: chunk {sequence} follows {expected - 1}")
                counted = {(n.enter, n.function) for n in stack}
                for node in stack:
                    node.mark = "open"
                stack.clear()
                hidden = chunk["open_frames"] - len(stored)
                for (enter, function, _), site in zip(stored, sites):
                    push(function, enter, site).inherited = True
                    # Its enter was in a chunk that is gone. In chunk 0, and before this process, it is a call of the one that forked it.
                    if sequence > 0 and enter >= self.header["first_ticks"] and (enter, function) not in counted:
                        calls[function] += 1
                        thread.calls += 1
            else:
                listed = [(e, f) for e, f, _ in stored]
                if chunk["flags"] & UNSETTLED:  # a word of the chunk before may be younger than this list
                    listed = None
                elif chunk["open_frames"] < len(stack) and len(stored) == chunk["open_frames"]:
                    # Not there any more: a coroutine has finished them on another thread.
                    kept = set(listed)
                    gone = [n for n in stack if (n.enter, n.function) not in kept]
                    stack = [n for n in stack if (n.enter, n.function) in kept]
                    leave_open(gone)
                    self._gone.append((gone, f"{where}: chunk {sequence} says {len(stored)} frames are open, not "
                                             f"{len(stack) + len(gone)}"))
                if listed is None:
                    pass
                elif chunk["open_frames"] != len(stack) + hidden:
                    wrong.append(f"{where}: chunk {sequence} says {chunk['open_frames']} frames are open, not "
                                 f"{len(stack) + hidden}")
                elif len(listed) > len(stack):
                    # Frames that were open before what the file has, and that this chunk is the first to store.
                    for (enter, function, _), site in reversed(list(zip(stored, sites))[:len(listed) - len(stack)]):
                        name, own, flags = self._describe(function)
                        node = Node(function, name, own, enter, site)
                        node.inherited = True
                        thread.roots.append(node)
                        stack.insert(0, node)
                        hidden -= 1
                        if enter >= self.header["first_ticks"]:
                            calls[function] += 1
                            thread.calls += 1
                    if [(n.enter, n.function) for n in stack] != listed:
                        wrong.append(f"{where}: chunk {sequence} stores other frames than are open")
                else:
                    # Frames with the same time, by a coarse clock, may come in another order.
                    known = {}
                    for node in reversed(stack[len(stack) - len(listed):]):
                        known.setdefault((node.enter, node.function), []).append(node)
                    ordered = [known[key].pop() for key in listed if known.get(key)]
                    if len(ordered) != len(listed):
                        wrong.append(f"{where}: chunk {sequence} stores other frames than are open")
                        ordered = []
                    stack[len(stack) - len(ordered):] = ordered
                    for node, site in zip(ordered, sites if chunk["flags"] & SITES else []):
                        if node.site != site:
                            wrong.append(f"{where}: chunk {sequence} says that {node.name} was called from {site:#x}, not {node.site:#x}")
            expected = sequence + 1
            base = chunk["opened_ticks"]
            resume = site = argument = values = result = None
            data = b""
            start = offset + chunk["body_offset"]
            end = min(offset + (chunk["used_bytes"] or chunk["byte_count"]), len(self.data) & ~7)
            words = memoryview(self.data)[start:start + max(0, (end - start) & ~7)].cast("Q")
            for word_index, word in enumerate(words):
                if word == 0:
                    resume = site = argument = values = result = None
                    data = b""
                    continue
                kind, function = word & 3, (word >> FUNCTION_SHIFT) & layout.function_mask
                if kind in (CONTROL, EXIT) and (argument is not None or site is not None and word & 0xff != ARGUMENT << CONTROL_SHIFT):
                    wrong.append(f"{where}: chunk {sequence}, word {word_index}: a call site or an object before something that is no call")
                    site = argument = None
                if data and word & 0xff not in [which << CONTROL_SHIFT for which in (DATA, VALUES, RESULT)]:
                    wrong.append(f"{where}: chunk {sequence}, word {word_index}: values without a word that says whose they are")
                    data = b""
                if values and kind == EXIT:
                    wrong.append(f"{where}: chunk {sequence}, word {word_index}: arguments before an exit")
                    values = None
                if kind in (ENTER, COMPLETE):
                    name, _, flags = self._describe(function)
                    # Among system calls by number, only futex has an object.
                    if (argument is None) != (flags >> ARGUMENT_SHIFT & 7 == 0) and not (argument is None and name == "syscall"):
                        wrong.append(f"{where}: chunk {sequence}, word {word_index}: {name} with the object {argument}, and flags {flags:#x}")
                    enter = base + (word >> layout.time_shift & (layout.start_mask if kind == COMPLETE else layout.time_mask))
                    if stack and enter < stack[-1].enter:
                        wrong.append(f"{where}: {name} began {stack[-1].enter - enter} ticks before its caller {stack[-1].name}")
                    node = push(function, enter, site or 0, argument)
                    node.arguments = values
                    if kind == COMPLETE:
                        node.result = result
                    site = argument = values = result = None  # before an enter, a result is space for one
                    calls[function] += 1
                    thread.calls += 1
                    if len(stack) > self.maximum_depth_seen:
                        self.maximum_depth_seen = len(stack)
                    if kind == COMPLETE:
                        stack.pop()
                        node.exit = enter + (word >> layout.duration_shift)
                        if flags & ENTRY_ONLY:
                            node.mark = "tail"
                            self.tail[function] += 1
                            if word >> layout.duration_shift:
                                wrong.append(f"{where}: entry-only function {name} has a duration")
                elif kind == CONTROL:
                    which, payload = (word >> CONTROL_SHIFT) & CONTROL_MASK, word >> PAYLOAD_SHIFT
                    if which == BASE:
                        base = self._completed(payload, base)
                    elif which == RESUME:
                        resume = payload
                    elif which == SITE:
                        site = payload
                    elif which == ARGUMENT:
                        argument = payload
                    elif which == DATA:
                        data += payload.to_bytes(7, "little")
                    elif which in (VALUES, RESULT):
                        program, count = payload & 0xffff, payload >> 16 & 0xff
                        if count * 7 != len(data) or program not in self.prototypes:
                            wrong.append(f"{where}: chunk {sequence}, word {word_index}: {count} words of program {program}, {len(data)} bytes before it")
                        whole, data = (program, data + (payload >> 24).to_bytes(4, "little")), b""
                        values, result = (values, whole) if which == RESULT else (whole, result)
                    elif which == SAMPLED:
                        self.stood_for[thread.index, payload & layout.function_mask] += payload >> 24
                    elif which == UNWOUND:
                        time, count = base + (payload & layout.time_mask), payload >> layout.count_shift
                        if count == 0 and resume is not None:  # its frame has returned on another thread, whose events say so
                            position, resume = self._find(stack, resume), None
                            self.interleaves = True
                            if position is None:
                                wrong.append(f"{where}: a frame has departed that is not open")
                            else:
                                leave_open([stack.pop(position)])
                            continue
                        position = closed(time, "unwound")
                        if position is None:
                            continue
                        leaving = stack[max(0, position + 1 - count):position + 1]
                        passed = min(count - len(leaving), hidden)
                        hidden -= passed
                        if len(leaving) + passed != count:
                            wrong.append(f"{where}: {count} frames unwound, {len(leaving)} were open")
                        for node in leaving:
                            close(node, time, "unwound")
                            self.unwound[node.function] += 1
                            stack.remove(node) if node is not stack[-1] else stack.pop()
                    else:
                        around = " ".join(f"{near:x}" for near in words[max(0, word_index - 3):word_index + 4])
                        wrong.append(f"{where}: chunk {sequence}, word {word_index} of {len(words)}: control {which}, among {around}")
                else:
                    time = base + (word >> layout.time_shift)
                    position = closed(time, "", function)
                    if position is None:
                        continue
                    if position < 0 and hidden > 0:
                        hidden -= 1  # the file has nothing of its call
                        continue
                    if position < 0:
                        wrong.append(f"{where}: exit of {self._describe(function)[0]} and nothing is open")
                        continue
                    node = stack.pop(position)
                    if node.function != function:
                        wrong.append(f"{where}: exit of {self._describe(function)[0]} while {node.name} is innermost")
                    close(node, time, "")
                    node.result, result = result, None
        leave_open(stack)

    @staticmethod
    def _find(stack, payload, function=None):
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].enter & PAYLOAD_MASK == payload and function in (None, stack[position].function):
                return position
        return None

    @staticmethod
    def _completed(bits, reference):
        """The moment nearest to `reference` that ends in these 56 bits."""
        difference = (bits - reference) & PAYLOAD_MASK
        if difference >> 55:
            difference -= 1 << 56
        return reference + difference

    # -- what tests ask -------------------------------------------------------------------------------------------
    def text(self, key):
        return self.texts.get(key, [b""])[0]

    @property
    def program(self):
        return os.path.basename(self.text(1).decode(errors="replace"))

    def count(self, name, of=None):
        """How many calls (or, with `of`, unwound/open/tail ones) functions of this name have, all threads together. `name(object)`: with
        this object."""
        called, _, object = name.partition("(")
        if re.fullmatch(r"(0x[0-9a-f]+|-?\d+)\)", object):
            wanted = int(object[:-1], 0)
            return sum(node.name == called and node.object == wanted and not node.inherited for node in self.nodes())
        counts = self.calls if of is None else of
        return sum(n for index, n in counts.items() if self._describe(index)[0] == name)

    def nodes(self):
        """Every call, callers first."""
        work = [node for thread in self.threads.values() for node in reversed(thread.roots)]
        while work:
            node = work.pop()
            work += reversed(node.children)
            yield node

    def recorded_count(self, name):
        """How many calls of these functions are in the events: the others are counted alone."""
        return self.count(name, self.recorded)

    def count_of_thread(self, name, thread):
        """How many calls this thread made of functions of this name."""
        work, recorded = list(thread.roots), 0
        while work:
            node = work.pop()
            work += node.children
            recorded += node.name == name and not node.inherited
        counts = enumerate(self.counts.get(thread.index, ()), 1)
        return recorded + sum(count for number, count in counts if number in self.counters and self._describe(self.counters[number])[0] == name)

    def counts_by_site(self, name):
        """Address in its module's file, less its bias, and module's name -> calls of functions of this name that return there."""
        return collections.Counter(self.module_offset(node.site, node.enter) for node in self.nodes() if node.name == name and not node.inherited)

    def module_offset(self, address, ticks):
        """(module's name, offset) of the module that had this address then."""
        here = [(ticks >= loaded, loaded if ticks >= loaded else -loaded, module.index) for module in self.modules.values()
                if module.low <= address < module.high for loaded in module.loaded]
        if not here:
            return None, address
        module = self.modules[max(here)[2]]
        return os.path.basename(module.path), address - module.bias

    def counts_by_name_and_module(self):
        result = collections.Counter()
        for index, count in self.calls.items():
            if function := self.functions.get(index):
                result[function.name, os.path.basename(function.module.path) if function.module else None] += count
        return result


def read_all(directory, own=lambda module_path: False, walk=True):
    """Every trace in a directory in the order in which the processes began, forests decoded unless not to be walked."""
    traces = [Trace(os.path.join(directory, name), own)
              for name in sorted(os.listdir(directory)) if name.endswith(".trace")]
    traces.sort(key=lambda t: (t.header["first_ticks"], t.path))
    return [t.trees() for t in traces] if walk else traces
