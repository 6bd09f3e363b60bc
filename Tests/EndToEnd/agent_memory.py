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


LEFT = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static sigjmp_buf again;
static volatile unsigned long calls, wanted;
static pthread_t first;
static void leave(int number) { (void)number; siglongjmp(again, 1); }
static void *interrupt(void *unused) {
    unsigned random = 1;
    while (calls < wanted) {
        random = random * 1103515245 + 12345;
        unsigned long until = calls + 50 + (random >> 16) % 200;
        while (calls < until && calls < wanted) sched_yield();
        pthread_kill(first, SIGUSR1);
    }
    return unused;
}
int main(int count, char **words) {
    wanted = strtoul(words[count - 1], NULL, 10);
    first = pthread_self();
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t other;
    if (pthread_create(&other, NULL, interrupt, NULL)) return 2;
    for (;;) {
        sigsetjmp(again, 0); // an entry-only function, and one that returns
        if (calls >= wanted) break;
        strtol("7", NULL, 10); // takes no lock that the handler would leave taken
        calls++;
    }
    action.sa_handler = SIG_IGN;
    sigaction(SIGUSR1, &action, NULL);
    pthread_join(other, NULL);
    char line[512];
    int mapped = 0;
    for (FILE *maps = fopen("/proc/self/maps", "r"); fgets(line, sizeof line, maps);) mapped += strstr(line, ".trace") != NULL;
    printf("%d\n", mapped);
}
"""


def chunks_that_handlers_have_left_are_let_go(test):
    """Each handler leaves by siglongjmp, often out of a trampoline with a word reserved in the chunk: that is kept until nothing may be written to it,
    and no longer. Some sixty chunks are filled."""
    program = test.compile("left", "-O1", "-pthread", source=LEFT)
    run = test.execute([program, "1000000" if not harness.EMULATOR else "100000"])
    expect(int(run.stdout) <= 8, f"{run.stdout.decode().strip()} parts of the trace are mapped at the end")
    return f"{run.stdout.decode().strip()} parts of the trace mapped"


def tests():
    return suite.tests_of(__name__)
