"""Checks costs of recording that must not grow: system calls and instructions, both counted by valgrind."""
import os
import re
import shutil

import harness
import suite
from harness import expect
from suite import need, read

CALLS = """#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 20000; i++) if (syscall(SYS_getppid) < 1) return 1;
    return 0;
}
"""

# Opens and closes a file a thousand times.
OPENINGS = """#include <fcntl.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 1000; i++) {
        int file = open("/dev/null", O_RDONLY);
        if (file < 0 || close(file)) return 1;
    }
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

# As many coroutines as it is given wait in turn, each with calls open, and go on: as often as it is given.
TURNS = """#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
enum { STACK = 16384 };
static ucontext_t back, *all;
static int running, turns;
static int waits(const void *a, const void *b) { (void)a, (void)b; swapcontext(&all[running], &back); return 0; }
static void waiting(void) {
    for (int i = 0; i < turns; i++) bsearch(&running, &running, 1, 1, waits);
    setcontext(&back);
}
int main(int argc, char **argv) {
    int count = atoi(argv[argc - 2]);
    turns = atoi(argv[argc - 1]);
    all = calloc(count, sizeof *all);
    char *stacks = mmap(0, (size_t)count * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < count; i++) {
        getcontext(&all[i]);
        all[i].uc_stack.ss_sp = stacks + (size_t)i * STACK, all[i].uc_stack.ss_size = STACK;
        makecontext(&all[i], waiting, 0);
    }
    for (int i = 0; i <= turns; i++) for (running = 0; running < count; running++) swapcontext(&back, &all[running]);
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


def system_calls(source, name, most):
    """Counts them under valgrind. strace would stop each call, and a thread takes the slow path after each 0.8 ms, too, for a new base."""
    def check(test):
        need("valgrind")
        program, log = test.compile("program", "-O1", "-lpthread", source=source), test.path("log")
        run = harness.execute(["valgrind", "--tool=none", "--trace-syscalls=yes", f"--log-file={log}", program],
                              test.directory.fresh(), test.traced_environment())
        expect(not run.status, f"{harness.describe(run.status)}: {run.stderr[-300:]}")
        # SYSCALL[4589,1](14) sys_rt_sigprocmask ( 0, 0x48a2018, ...
        count = len(re.findall(rf" sys_{name} \(", read(log)))
        expect(0 < count <= most, f"{count} of {name}, from 1 to {most} expected")
        return f"{count} of {name}"
    return check


def cost_beside_others(source, what, many=400, passing=100):
    """Instructions of a thread that begins, makes one call and ends, or of a call: beside few living others and beside many."""
    few, most = 8, 1.8

    def check(test):
        program = test.compile("program", "-O1", "-lpthread", source=source)
        beside_few, beside_many = (passing_cost(test, test.traced_environment(), program, living, passing) for living in (few, many))
        summary = f"{beside_few:,.0f} instructions a {what} beside {few}, {beside_many:,.0f} beside {many}"
        expect(beside_many <= most * beside_few, summary)
        return summary
    return check


def cost_of_a_library(functions):
    """Instructions of a library that is loaded, called and unloaded: with the number of others they grow as those of the loader do. `functions`: those
    of all copies are recorded as well."""
    few, many, passing, most = 40, 400, 20, 4

    def check(test):
        program = test.compile("program", f'-DFOLDER="{test.made}"', "-O1", source=MODULES)
        library = test.compile("one.so", "-O1", "-shared", "-fPIC", source=LIBRARY)
        for n in range(many):
            shutil.copy(library, test.path(f"copy{n}.so"))
        variables = {}
        if functions:
            variables = {"TRACER_FUNCTIONS": "*!*", "XDG_CACHE_HOME": test.path("cache")}
            test.tool("plan", library, env=test.environment(**variables))
        growth = []
        for environment in test.environment(), test.traced_environment(**variables):
            beside_few, beside_many = (passing_cost(test, environment, program, loaded, passing) for loaded in (few, many))
            growth.append((beside_many - beside_few) / (many - few))
        summary = f"{growth[1]:,.0f} instructions for each library that is loaded, {growth[0]:,.0f} of them the loader's"
        expect(growth[1] <= most * growth[0], summary)
        return summary
    return check


def cost_of_a_turn(test):
    """Instructions of a coroutine's turn, which makes calls and leaves some open: with many others as with few."""
    few, many, turns, most = 5000, 50_000, 200_000, 1.6
    program = test.compile("program", "-O0", source=TURNS)  # an optimized bsearch is no call
    environment = test.traced_environment(TRACER_MODE="ring", TRACER_MAXSIZE="2M")
    def cost(count):
        once, more = 2, 2 + turns // count
        return (instructions(test, environment, program, count, more) - instructions(test, environment, program, count, once)) / turns
    beside_few, beside_many = cost(few), cost(many)
    summary = f"{beside_few:,.0f} instructions a turn of {few}, {beside_many:,.0f} of {many}"
    expect(beside_many <= most * beside_few, summary)
    return summary


def cost_of_a_coroutine_server(test):
    """Instructions of a request of which three of four leave calls on a coroutine's stack for good: later as at first, and a ring stays one."""
    first, later, measured, most, limit = 2000, 40_000, 2000, 1.1, 2 << 20
    program = test.compile("program", os.path.join(harness.ROOT, "Tests/Soak/fibers.cpp"), "-O1", compiler="g++")
    environment = test.traced_environment(TRACER_MODE="ring", TRACER_MAXSIZE=str(limit))
    def cost(before):
        return (instructions(test, environment, program, before + measured) - instructions(test, environment, program, before)) / measured
    at_first, then = cost(first), cost(later)
    size = max(entry.stat().st_blocks * 512 for entry in os.scandir(test.traces))
    summary = f"{at_first:,.0f} instructions a request at first, {then:,.0f} later; {size >> 10:,} KB of a ring of {limit >> 10:,}"
    expect(then <= most * at_first and size <= 2 * limit, summary)
    return summary


def passing_cost(test, environment, program, living, passing):
    """Instructions, counted by callgrind, of one of those that pass while others live."""
    return (instructions(test, environment, program, living, passing) - instructions(test, environment, program, living, 0)) / passing


def instructions(test, environment, program, *arguments):
    need("valgrind")
    log = test.path("log")
    run = harness.execute(["valgrind", "--tool=callgrind", f"--log-file={log}", f"--callgrind-out-file={test.path('callgrind')}",
                           "--max-threads=1000", program, *map(str, arguments)], test.directory.fresh(), environment, timeout=300)
    output = read(log)
    counted = re.search(r"Collected : (\d+)", output)
    expect(not run.status and counted, f"{harness.describe(run.status)}: {output[-300:]}")
    return int(counted.group(1))


def tests():
    return [suite.Test("costs." + name, check) for name, check in (
        ("syscall_is_looked_at_by_its_number", system_calls(CALLS, "rt_sigprocmask", 2000)),  # signals are blocked on the slow path
        ("open_is_asked_once_what_it_opened", system_calls(OPENINGS, "readlinkat", 1100)),
        ("open_takes_the_slow_path_twice", system_calls(OPENINGS, "rt_sigprocmask", 4 * 1000 + 2000)),
        ("thread_costs_the_same_beside_many", cost_beside_others(THREADS, "thread")),
        ("call_costs_the_same_beside_many_coroutines", cost_beside_others(COROUTINES, "call", many=20_000, passing=2000)),
        ("coroutines_turn_costs_the_same_among_many", cost_of_a_turn),
        ("coroutine_servers_requests_cost_the_same_later", cost_of_a_coroutine_server),
        ("library_costs_in_proportion_to_those_that_are_loaded", cost_of_a_library(functions=False)),
        ("recorded_library_costs_in_proportion_to_those_that_are_loaded", cost_of_a_library(functions=True)))]
