"""Checks libtracer.so as a file: what it exports, imports and contains. No program runs."""
import os
import re
import subprocess

import build
import suite
from harness import expect


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exports_only_the_public_api(test):
    names = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", test.settings.agent).splitlines()
             if line.split()[-2] in "TDBRVW"}
    header = suite.read(os.path.join(build.ROOT, "CSupport/include/tracer.h"))
    wanted = set(re.findall(r"^(?:void|int) (tracer_\w+)\(.*__attribute__\(\(weak\)\);", header, re.MULTILINE))
    wanted |= {"tracer_load_mode", "tracer_attach", "tracer_detach", "tracer_attach_task", "tracer_detach_task", "tracer_task_result", "tracer_detach_stack"}  # for tracer attach
    expect(names == wanted, f"exported: {sorted(names)}, tracer.h declares {sorted(wanted)}")


def imports_nothing_that_could_use_vectors_or_locks(test):
    allowed = {"tracer_more_labels",  # weak, of libtracer-labels.so
               "_r_debug", "__cxa_finalize", "__gmon_start__", "_ITM_registerTMCloneTable", "_ITM_deregisterTMCloneTable"}
    names = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--undefined-only", test.settings.agent).splitlines()}
    expect(not names - allowed, f"imported: {sorted(names - allowed)}")


def needs_only_libc(test):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", test.settings.agent))
    expect(needed == ["libc.so.6"], f"needed: {needed}")


def loads_with_every_glibc_that_is_promised(test):
    """2.28: a symbol of a later version would end each program before its first instruction."""
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", output("readelf", "-VW", test.settings.agent))
    late = [version for version in versions if tuple(map(int, version)) > (2, 28)]
    expect(not late and versions, f"needs glibc {late or 'of no version at all'}")


def has_the_load_mode_in_its_file(test):
    """The tool changes it in its copy of the file: it must not be in what the loader zeroes."""
    section = re.search(r"OBJECT +GLOBAL +DEFAULT +(\d+) tracer_load_mode\b", output("readelf", "--dyn-syms", "-W", test.settings.agent)).group(1)
    expect(re.search(rf"\[ *{section}\] \.data +PROGBITS", output("readelf", "-SW", test.settings.agent)), f"in section {section}")
    expect("NODELETE" in output("readelf", "-dW", test.settings.agent), "dlclose would unmap it")


def runs_before_every_other_constructor(test):
    expect("INITFIRST" in output("readelf", "-dW", test.settings.agent), "DF_1_INITFIRST is not set")


def holds_no_vex_or_evex_instruction(test):
    # The slow path saves xmm0-15 and nothing more: a VEX instruction would clear the upper halves.
    found = [line for line in output("objdump", "-d", "--no-show-raw-insn", test.settings.agent).splitlines()
             if re.search(r"\t(v[a-z0-9]+|k(mov|and|or|xor|not|test|shift)[a-z]*)\s", line)]
    expect(not found, f"{len(found)} instructions, the first: {found[:1]}")


def touches_no_vector_register_on_the_fast_path(test):
    text = output("objdump", "-d", "--no-show-raw-insn", test.settings.agent)
    for variant in ("", "_filtered"):
        begin = text.index(f"<tracer_enter{variant}>:")
        end = text.index("\tret", text.index(f"<tracer_returned{variant}>:"))
        expect(not re.search(r"%[xyz]mm", text[begin:end]), f"tracer_enter{variant} does")


def keeps_trampolines_apart(test):
    """The trampolines of slots and of patched functions share no page (x86_64): one is patched while other threads may run the other."""
    addresses = {name: int(address, 16) for address, name in re.findall(r"^(\w+) t (tracer_enter\w*)$", output("nm", test.settings.agent), re.M)}
    if "tracer_enter_patched" not in addresses:
        return
    for slots, patched in (("tracer_enter", "tracer_enter_patched"), ("tracer_enter_filtered", "tracer_enter_patched_filtered")):
        end = min(address for address in addresses.values() if address > addresses[slots])
        expect((end - 1) // 4096 < addresses[patched] // 4096, f"{slots} up to {end:#x}, {patched} at {addresses[patched]:#x}")


def is_small(test):
    """Checks how much is loaded from the file; the labels' memory is not in the file."""
    sizes = [int(found.group(1), 16) for found in re.finditer(r"^ +LOAD +\S+ +\S+ +\S+ +(0x[0-9a-f]+)", output("readelf", "-lW", test.settings.agent), re.M)]
    expect(sizes and sum(sizes) < 410_000, f"segments of {sizes} bytes in the file")


def has_no_writable_and_executable_segment(test):
    for line in output("readelf", "-lW", test.settings.agent).splitlines():
        expect(not re.match(r"\s+(LOAD|GNU_STACK)\s.*RWE", line), line.strip())


def keeps_its_reserved_area_apart(test):
    """The reserved area for labels and stubs is a segment of its own: no file holds it and nobody may write to it."""
    lines = output("readelf", "-lW", test.settings.agent).splitlines()
    headers = [line.split() for line in lines if re.match(r" +[A-Z_]+ +0x", line)]
    segments = [found.group(1) for line in lines if (found := re.match(r" +(\d+) .*\.reserved\b", line))]
    expect(len(segments) == 1, f".reserved is in {len(segments)} segments")
    kind, _, _, _, file_bytes, _, *flags, _ = headers[int(segments[0])]
    expect(kind == "LOAD" and int(file_bytes, 16) == 0 and flags == ["R"],
           f".reserved is in a segment {kind} {''.join(flags)} with {file_bytes} bytes of the file")
    loaded = sorted((int(words[2], 16), int(words[5], 16)) for words in headers if words[0] == "LOAD")
    for (start, size), (following, _) in zip(loaded, loaded[1:]):
        expect(start + size <= following, f"segments overlap at {following:#x}")


def says_nothing_of_shadow_stacks(test):
    """SECURITY.md: where glibc goes by marks, it leaves shadow stacks and guarded pages off for this library."""
    properties = output("readelf", "-nW", test.settings.agent)
    expect("NT_GNU_PROPERTY_TYPE_0" not in properties or not re.search(r"SHSTK|IBT|BTI|GCS", properties), f"marked: {properties}")


MODES = {"slots": "*", "arm": "keeps_its_reserved_area_apart"}


def tests():
    return suite.tests_of(__name__)
