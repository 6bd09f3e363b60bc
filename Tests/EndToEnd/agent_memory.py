"""Measures the agent's memory as numbers of pages, compared with the same program without the agent. The test judges pages that
were written to and pages of the agent's own file; it only reports the whole resident set, which also has clean pages of
libraries that all processes share: the kernel maps as many around a fault as happen to be in its cache.
Pages of the trace are not counted. Processes under limits are tested by the subject agent_memory.c."""
import re
import subprocess

import build
import harness
import suite
from harness import Skipped, expect

WRITABLE = 64 << 10         # bytes: collectors take what a library can write to for roots
ONE_THREAD = 0.8 * 1024     # kilobytes over bare
EACH_THREAD = 64            # kilobytes for each further thread
THREADS = 200
MAPPINGS = 1.5              # for each further thread: a process may have 65,530, and glibc's stack is two
MANY_THREADS = 500


def writable_segments_are_a_few_pages(test):
    headers = subprocess.run(["readelf", "-lW", test.settings.agent], capture_output=True, text=True, check=True).stdout
    segments = re.findall(r"^\s+LOAD(?:\s+0x[0-9a-f]+){4}\s+(0x[0-9a-f]+)\s+R?\s?WE?\s", headers, re.M)
    total = sum(int(size, 16) for size in segments)
    expect(segments and total <= WRITABLE, f"{len(segments)} writable segments of {total:,} bytes, at most {WRITABLE:,} expected")
    return f"{total:,} bytes"


def over_bare(test, threads, what="resident"):
    """(taken, resident), in kilobytes, or (mappings,). The loader and libc touch a page more or less from run to run: the least of three."""
    if harness.EMULATOR:
        raise Skipped("the emulator's own memory counts")
    program = build.program_of("agent_memory")

    def least(environment):
        counts = []
        for _ in range(3):
            run = harness.execute([program, what, str(threads)], test.directory.fresh(), environment)
            expect(not run.status and not run.stderr, f"{harness.describe(run.status)}: {run.stderr[-300:].decode(errors='replace')}")
            counts.append([int(word) for word in run.stdout.split()])
        return [min(column) for column in zip(*counts)]
    return [traced - bare for traced, bare in zip(least(test.traced_environment()), least(test.environment()))]


def takes_little_with_one_thread(test):
    taken, resident = over_bare(test, 0)
    expect(taken <= ONE_THREAD, f"{taken} KB over bare, at most {ONE_THREAD:.0f} expected")
    return f"{taken} KB over bare, {resident} KB with what is mapped of libraries"


def takes_little_for_each_of_two_hundred_threads(test):
    taken, resident = [(many - one) / THREADS for many, one in zip(over_bare(test, THREADS), over_bare(test, 0))]
    expect(max(taken, resident) <= EACH_THREAD,
           f"{taken:.1f} and {resident:.1f} KB over bare for each thread, at most {EACH_THREAD} expected")
    return f"{taken:.1f} KB over bare for each thread"


def takes_few_mappings_for_each_of_five_hundred_threads(test):
    many, one = (over_bare(test, threads, "mappings")[0] for threads in (MANY_THREADS, 0))
    each = (many - one) / MANY_THREADS
    expect(each <= MAPPINGS, f"{each:.2f} mappings over bare for each thread, at most {MAPPINGS} expected")
    return f"{each:.2f} mappings over bare for each thread"


def tests():
    return suite.tests_of(__name__)
