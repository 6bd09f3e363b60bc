#!/usr/bin/env python3
"""Checks costs of recording that must not grow: system calls, counted by strace, and instructions, counted by callgrind."""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import harness
from harness import Skipped, expect

CALLS = """#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 20000; i++) if (syscall(SYS_getppid) < 1) return 1;
    return 0;
}
"""

# Keeps a given number of threads alive while others, one after the other, begin, make a call and end.
THREADS = """#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t all_live, all_may_end;
static void *living(void *unused) {
    getppid();
    pthread_barrier_wait(&all_live);
    pthread_barrier_wait(&all_may_end);
    return unused;
}
static void *passing(void *unused) { return getppid() < 0 ? 0 : unused; }
int main(int argc, char **argv) {
    int count = atoi(argv[argc - 2]), passed = atoi(argv[argc - 1]);
    pthread_attr_t small;
    pthread_t id;
    if (pthread_attr_init(&small) || pthread_attr_setstacksize(&small, 65536)) return 1;
    pthread_barrier_init(&all_live, 0, count + 1);
    pthread_barrier_init(&all_may_end, 0, count + 1);
    pthread_t *ids = calloc(count, sizeof *ids);
    for (int i = 0; i < count; i++) if (pthread_create(&ids[i], &small, living, 0)) return 2;
    pthread_barrier_wait(&all_live);
    for (int i = 0; i < passed; i++) if (pthread_create(&id, &small, passing, 0) || pthread_join(id, 0)) return 3;
    pthread_barrier_wait(&all_may_end);
    for (int i = 0; i < count; i++) pthread_join(ids[i], 0);
    return 0;
}
"""


# As many coroutines as it is given wait, each with an open call, while another one makes calls.
COROUTINES = """#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
enum { STACK = 16384 };
static ucontext_t back, *all;
static int running, passed;
static int waits(const void *a, const void *b) { (void)a, (void)b; swapcontext(&all[running], &back); return 0; }
static void waiting(void) { bsearch(&running, &running, 1, 1, waits); setcontext(&back); }
static void passing(void) { for (int i = 0; i < passed; i++) getppid(); setcontext(&back); }
int main(int argc, char **argv) {
    int count = atoi(argv[argc - 2]);
    passed = atoi(argv[argc - 1]);
    all = calloc(count + 1, sizeof *all);
    char *stacks = mmap(0, (size_t)(count + 1) * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (running = 0; running <= count; running++) {
        getcontext(&all[running]);
        all[running].uc_stack.ss_sp = stacks + (size_t)running * STACK, all[running].uc_stack.ss_size = STACK;
        makecontext(&all[running], running < count ? waiting : passing, 0);
        swapcontext(&back, &all[running]);
    }
    return 0;
}
"""

# As many copies of a library as it is given are loaded while one more is loaded and unloaded again and again.
MODULES = """#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int count = atoi(argv[argc - 2]), passed = atoi(argv[argc - 1]);
    char name[sizeof FOLDER + 32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, FOLDER "/copy%d.so", i);
        if (!dlopen(name, RTLD_NOW)) return 1;
    }
    for (int i = 0; i < passed; i++) {
        void *library = dlopen(FOLDER "/one.so", RTLD_NOW);
        if (!library || ((int (*)(void))dlsym(library, "call"))() < 1 || dlclose(library)) return 2;
    }
    return 0;
}
"""
LIBRARY = """#include <unistd.h>
int call(void) { return getppid(); }
"""


@dataclass
class Cost:
    name: str
    source: str
    system_call: str
    most: int

    def run(self, settings):
        if settings.bare_only:
            return None
        if not shutil.which("strace"):
            raise Skipped("strace is not installed")
        directory = harness.Directory(self.name, settings.keep)
        try:
            path = directory.fresh()
            program, log = os.path.join(path, "program"), os.path.join(path, "log")
            subprocess.run(["gcc", "-x", "c", "-O1", "-", "-o", program, "-lpthread"], input=self.source, text=True, check=True)
            environment = harness.traced_environment(settings, harness.passed_on(os.environ), directory)
            preload = environment.pop("LD_PRELOAD")
            run = harness.execute(["strace", "-f", "-c", "-o", log, "-e", "trace=" + self.system_call, "-E", "LD_PRELOAD=" + preload, program],
                                  path, environment)
            expect(not run.status, f"{harness.describe(run.status)}: {run.stderr[-300:]}")
            with open(log) as file: # % time, seconds, usecs/call, calls, errors, name
                found = [line.split() for line in file if line.split()[-1:] == [self.system_call]]
            count = int(found[0][3]) if found else 0
            expect(count <= self.most, f"{count} of {self.system_call}, at most {self.most} expected")
            return f"{count} of {self.system_call}"
        finally:
            directory.done()


@dataclass
class Instructions:
    """Instructions, counted by callgrind; a kind's `measure` gets the settings and a directory, and returns its counts."""
    name: str

    def run(self, settings):
        if settings.bare_only:
            return None
        if not shutil.which("valgrind"):
            raise Skipped("valgrind is not installed")
        directory = harness.Directory(self.name, settings.keep)
        try:
            return self.measure(settings, directory)
        finally:
            directory.done()


@dataclass
class LivingCost(Instructions):
    """Instructions of a thread that begins, makes one call and ends, or of a call: beside few living others and beside many."""
    source: str
    what: str
    few: int = 8
    many: int = 400
    passing: int = 100
    most: float = 1.8

    def measure(self, settings, directory):
        program = os.path.join(directory.fresh(), "program")
        subprocess.run(["gcc", "-x", "c", "-O1", "-", "-o", program, "-lpthread"], input=self.source, text=True, check=True)
        few, many = (passing_cost(harness.traced_environment(settings, harness.passed_on(os.environ), directory), directory, program, living,
                                  self.passing) for living in (self.few, self.many))
        summary = f"{few:,.0f} instructions a {self.what} beside {self.few}, {many:,.0f} beside {self.many}"
        expect(many <= self.most * few, summary)
        return summary


@dataclass
class ModuleCost(Instructions):
    """Instructions of a library that is loaded, called and unloaded: with the number of others they grow as those of the loader do."""
    few: int = 40
    many: int = 400
    passing: int = 20
    most: float = 4

    def measure(self, settings, directory):
        folder = directory.fresh()
        program = os.path.join(folder, "program")
        for source, output, options in (MODULES, program, [f'-DFOLDER="{folder}"']), (LIBRARY, os.path.join(folder, "one.so"), ["-shared", "-fPIC"]):
            subprocess.run(["gcc", "-x", "c", "-O1", "-", "-o", output, *options], input=source, text=True, check=True)
        for n in range(self.many):
            shutil.copy(os.path.join(folder, "one.so"), os.path.join(folder, f"copy{n}.so"))
        bare = harness.passed_on(os.environ)
        growth = []
        for environment in bare, harness.traced_environment(settings, bare, directory):
            few, many = (passing_cost(environment, directory, program, loaded, self.passing) for loaded in (self.few, self.many))
            growth.append((many - few) / (self.many - self.few))
        summary = f"{growth[1]:,.0f} instructions for each library that is loaded, {growth[0]:,.0f} of them the loader's"
        expect(growth[1] <= self.most * growth[0], summary)
        return summary


def passing_cost(environment, directory, program, living, passing):
    """Instructions of one of those that pass while others live."""
    return (instructions(environment, directory, program, living, passing) - instructions(environment, directory, program, living, 0)) / passing


def instructions(environment, directory, program, living, passing):
    log = os.path.join(directory.path, "log")
    run = harness.execute(["valgrind", "--tool=callgrind", f"--log-file={log}", f"--callgrind-out-file={directory.path}/callgrind",
                           "--max-threads=1000", program, str(living), str(passing)], directory.path, environment, timeout=300)
    with open(log, encoding="utf-8") as file:
        output = file.read()
    counted = re.search(r"Collected : (\d+)", output)
    expect(not run.status and counted, f"{harness.describe(run.status)}: {output[-300:]}")
    return int(counted.group(1))


def tests():
    # Signals are blocked on the slow path.
    return [Cost("costs.syscall_is_looked_at_by_its_number", CALLS, "rt_sigprocmask", 2000),
            LivingCost("costs.thread_costs_the_same_beside_many", THREADS, "thread"),
            LivingCost("costs.call_costs_the_same_beside_many_coroutines", COROUTINES, "call", many=20_000, passing=2000),
            ModuleCost("costs.library_costs_in_proportion_to_those_that_are_loaded")]
