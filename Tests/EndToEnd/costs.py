#!/usr/bin/env python3
"""What recording takes that must not grow: system calls, counted by strace, and instructions, counted by callgrind."""
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import harness
from harness import Failed, Skipped

CALLS = """#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 20000; i++) if (syscall(SYS_getppid) < 1) return 1;
    return 0;
}
"""

# So many threads live while others, one after the other, begin, make a call and end.
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
        place = harness.Place(self.name, settings.keep)
        try:
            path = place.fresh()
            program, log = os.path.join(path, "program"), os.path.join(path, "log")
            subprocess.run(["gcc", "-x", "c", "-O1", "-", "-o", program, "-lpthread"], input=self.source, text=True, check=True)
            environment = harness.traced_environment(settings, harness.passed_on(os.environ), place)
            preload = environment.pop("LD_PRELOAD")
            run = harness.execute(["strace", "-f", "-c", "-o", log, "-e", "trace=" + self.system_call, "-E", "LD_PRELOAD=" + preload, program],
                                  path, environment)
            if run.status:
                raise Failed(f"{harness.describe(run.status)}: {run.stderr[-300:]}")
            with open(log) as file: # % time, seconds, usecs/call, calls, errors, name
                found = [line.split() for line in file if line.split()[-1:] == [self.system_call]]
            count = int(found[0][3]) if found else 0
            if count > self.most:
                raise Failed(f"{count} of {self.system_call}, at most {self.most} expected")
            return f"{count} of {self.system_call}"
        finally:
            place.done()


@dataclass
class ThreadCost:
    """Instructions of a thread that begins, makes one call and ends, beside few living ones and beside many."""
    name: str
    few: int = 8
    many: int = 400
    passing: int = 100
    most: float = 1.8

    def run(self, settings):
        if settings.bare_only:
            return None
        if not shutil.which("valgrind"):
            raise Skipped("valgrind is not installed")
        place = harness.Place(self.name, settings.keep)
        try:
            program = os.path.join(place.fresh(), "program")
            subprocess.run(["gcc", "-x", "c", "-O1", "-", "-o", program, "-lpthread"], input=THREADS, text=True, check=True)
            few, many = ((self.instructions(settings, place, program, living, self.passing)
                          - self.instructions(settings, place, program, living, 0)) / self.passing for living in (self.few, self.many))
            told = f"{few:,.0f} instructions a thread beside {self.few}, {many:,.0f} beside {self.many}"
            if many > self.most * few:
                raise Failed(told)
            return told
        finally:
            place.done()

    def instructions(self, settings, place, program, living, passing):
        environment = harness.traced_environment(settings, harness.passed_on(os.environ), place)
        log = os.path.join(place.path, "log")
        run = harness.execute(["valgrind", "--tool=callgrind", f"--log-file={log}", f"--callgrind-out-file={place.path}/callgrind",
                               "--max-threads=1000", program, str(living), str(passing)], place.path, environment, timeout=300)
        with open(log, encoding="utf-8") as file:
            told = file.read()
        counted = re.search(r"Collected : (\d+)", told)
        if run.status or not counted:
            raise Failed(f"{harness.describe(run.status)}: {told[-300:]}")
        return int(counted.group(1))


def tests():
    # Signals are blocked on the slow path.
    return [Cost("costs.syscall_is_looked_at_by_its_number", CALLS, "rt_sigprocmask", 2000),
            ThreadCost("costs.thread_costs_the_same_beside_many")]
