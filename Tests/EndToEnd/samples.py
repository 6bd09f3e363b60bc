"""`tracer samples` on real processes: where recording and the kernel are in the stacks, compared with what the program did and with the
records as tracefile.py reads them."""
import collections
import os
import sys

import build
import suite
import tracefile
from harness import Skipped, expect

sys.path.insert(0, os.path.join(build.ROOT, "Tests"))
from kernel_account import kernel_reports  # noqa: E402

RECORDING, KERNEL, UNKNOWN = "(recording)", "(kernel)", "…"
LEAST = 100  # samples, of which there is one each millisecond of CPU time
MEASURE = 0.05  # the program reads its own clock at the borders of what it measures, and samples fall on either side


class Samples(suite.Test):
    def subject(self):
        return self.compile("sampled", "-O1", "-g", "-fno-builtin", os.path.join(build.SUBJECTS, "part_sampled.c"))

    def sampled(self, program, *arguments):
        """What the program printed; and the stacks of all its processes, outermost first, each with its number of samples."""
        if not kernel_reports():
            raise Skipped("the kernel does not report samples here")
        self.forget_traces()
        out = self.tool("record", "--quiet", "--sample", "-o", self.trace(), "--", program, *arguments).stdout
        files = sorted(os.path.join(self.traces, name) for name in os.listdir(self.traces))
        stacks = collections.Counter()
        for line in self.tool("samples", *files, "--folded").stdout.splitlines():
            path, count = line.rsplit(" ", 1)
            stacks[tuple(frame.split("`", 1)[1] for frame in path.split(";") if "`" in frame)] += int(count)
        expect(sum(stacks.values()) >= LEAST, f"only {sum(stacks.values())} samples")
        return out, stacks

    def need_kernel_stacks(self, stacks):
        """The trace of `stacks` says that it has them where the kernel allows it, and there alone."""
        is_granted = "kernel stacks" in self.json("info", self.trace())["kernel"]["granted"]
        expect(is_granted == kernel_reports(inside=True), f"the kernel's stacks: granted {is_granted}")
        if not is_granted:
            expect(not any(KERNEL in stack for stack in stacks), "they were not granted, and are there")
            raise Skipped("the kernel does not report its own stacks here")


def check_callers(stacks, calls, recorded):
    """`calls`: for some functions, who calls them. `recorded`: functions that make recorded calls."""
    for stack in stacks:
        for name, callers in calls.items():
            if name in stack and stack.index(name) > 0:
                expect(stack[stack.index(name) - 1] in (*callers, UNKNOWN), f"{name} has another caller: {stack}")
        if RECORDING in stack and "main" in stack:
            expect(stack[stack.index(RECORDING) - 1] in recorded, f"recording is not below a function that makes recorded calls: {stack}")
        if "main" in stack:
            expect(not {*calls, *recorded} & set(stack[:stack.index("main")]) - {"main"}, f"main is called by what it calls: {stack}")


def recording_is_below_the_function_that_calls(test):
    _, stacks = test.sampled(test.subject(), "copies")
    check_callers(stacks, {"work": ["main"], "copy": ["work"], "memcpy": ["copy"]}, ["copy", "used", "main"])
    whole = sum(count for stack, count in stacks.items() if "copy" in stack)
    below = sum(count for stack, count in stacks.items() if stack[-2:] == ("copy", RECORDING))
    expect(whole > LEAST and below > 0.2 * whole, f"recording has {below} of the {whole} samples of a loop of calls: {stacks}")


def a_forked_child_has_such_stacks_too(test):
    """Its trace does not say when main was called."""
    forking = test.compile("forking", "-O1", "-g", "-fno-builtin", source="""
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static char from[64], to[64];
        __attribute__((noinline)) void copy(void) { memcpy(to, from, 16); __asm__ volatile(""); }
        int main(void) {
            pid_t child = fork();
            if (child == 0) { for (int n = 0; n < 15000000; n++) copy(); _exit(0); }
            return waitpid(child, 0, 0) != child;
        }
        """)
    _, stacks = test.sampled(forking)
    check_callers(stacks, {"copy": ["main"], "memcpy": ["copy"]}, ["copy", "main", "fork", "waitpid"])
    expect(any(stack[-2:] == ("copy", RECORDING) for stack in stacks), f"{stacks}")


def time_in_the_kernel_is_below_the_function_that_asked(test):
    out, stacks = test.sampled(test.subject(), "reads")
    test.need_kernel_stacks(stacks)
    inside, whole = map(int, out.split())
    def count(*names):
        return sum(count for stack, count in stacks.items() if all(name in stack for name in names))
    found = count("main", "pull") / count("main")
    expect(abs(found - inside / whole) < MEASURE, f"{found:.3f} of the samples are in pull, which had {inside / whole:.3f} of the CPU time")
    expect(count("pull", KERNEL) > 0.8 * count("pull"), f"the kernel does the work of pull: {stacks}")
    expect(count("main", "spin") > 0.1 * count("main") and count("spin", KERNEL) < 0.1 * count("spin"), f"and none of spin: {stacks}")
    check_callers(stacks, {"pull": ["main"], "spin": ["main"]}, ["pull", "used", "main"])
    for stack in stacks:
        if KERNEL in stack and "pull" in stack:
            between = stack[stack.index("pull") + 1:stack.index(KERNEL)]
            expect(len(between) <= 1 and all("read" in name or name == RECORDING for name in between), f"pull calls read alone: {stack}")


def names_of_the_kernel_are_those_of_kallsyms(test):
    _, stacks = test.sampled(test.subject(), "reads")
    test.need_kernel_stacks(stacks)
    known = collections.defaultdict(set)
    with open("/proc/kallsyms", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            address, _, name = line.split()[:3]
            known[int(address, 16)].add(name)
    trace = tracefile.Trace(test.trace())
    flagged = [sample for sample in trace.samples if sample.flags & tracefile.SAMPLE_KERNEL]
    expect(len(flagged) >= LEAST, f"{len(flagged)} samples in the kernel")
    for sample in trace.samples:
        kernel = [address for address in sample.addresses if address >> 63]
        expect(bool(kernel) == bool(sample.flags & tracefile.SAMPLE_KERNEL), f"flags {sample.flags}: {sample.addresses}")
        expect(sample.addresses[:len(kernel)] == kernel, f"the kernel's addresses do not come first: {sample.addresses}")
    shown = sum(count for stack, count in stacks.items() if KERNEL in stack)
    expect(shown == len(flagged), f"{shown} stacks have the kernel, and {len(flagged)} samples were in it")
    below = {name for stack in stacks if KERNEL in stack for name in stack[stack.index(KERNEL) + 1:]}
    names = {name for _, name in trace.kernel_names.values()}
    if not any(known):  # all addresses are 0: kernel.kptr_restrict
        expect(not below and not names, f"where nobody can know names: {below}")
        return
    expect(all(name in known[start] for start, (_, name) in trace.kernel_names.items()), f"kallsyms has others: {trace.kernel_names}")
    expect(names and below - {"[unknown]"} == names, f"{below} are shown, and the trace has {names}")


def tests():
    return suite.tests_of(__name__, Samples)
