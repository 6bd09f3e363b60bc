"""Checks the tool on traces of many calls: what reading them costs, the page that is served while it is being made, and what `report` and
`record` advise to leave out of another recording."""
import os
import re
import signal
import subprocess
import urllib.request

import harness
from harness import expect
import suite
from suite import need, read

# One thread waits for a lock once; then the other takes and releases that lock as often as it is told, among other calls.
LOCKS = """#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiter;
static void *wait_for_lock(void *unused) {
    waiter = gettid();
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    char state = 0, path[64];
    pthread_mutex_lock(&lock);
    if (pthread_create(&thread, 0, wait_for_lock, 0)) return 1;
    while (!waiter) {}
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        if (!file || fscanf(file, "%*d %*s %c", &state) != 1) return 2;
        fclose(file);
    }
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    for (long n = atol(argv[argc - 1]); n > 0; n--) {
        pthread_mutex_lock(&lock);
        if (strlen(path) + atoi("7") + memcmp(path, "/", 1) != strlen(path) + 7) return 3;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
"""

# An event loop that comes round as often as it is told. In one turn of ten thousand it waits for a lock that another thread has taken.
LOOP = """#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;
static void *hold(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&taken);
    usleep(1000);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(int argc, char **argv) {
    char text[64] = "7";
    pthread_t thread;
    pthread_barrier_init(&taken, 0, 2);
    for (long n = atol(argv[argc - 1]); n > 0; n--) {
        poll(0, 0, 0);
        for (int calls = 0; calls < 3; calls++)
            if (strlen(text) + atoi(text) + memcmp(text, "7", 1) != 8) return 3;
        if (n % 10000 == 1) {
            pthread_create(&thread, 0, hold, 0);
            pthread_barrier_wait(&taken);
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
            pthread_join(thread, 0);
        }
    }
    return 0;
}
"""

# Most calls are of two functions, most time is that of three others. What they read changes, or gcc would call each of them once.
CHEAP = """#include <stdlib.h>
#include <string.h>
static char text[] = "some text", large[1 << 24];
int main(void) {
    long sum = 0;
    for (int n = 0; n < 800000; n++) text[1] = 'a' + n % 20, sum += strlen(text) + memcmp(text, "some", 4);
    for (int n = 0; n < 250; n++) {
        memset(large, 'a' + n % 20, sizeof large - 1);
        sum += strlen(text) + (memchr(large, 0, sizeof large) != 0) + strspn(large + sizeof large / 2, "abcdefghijklmnopqrstuvw");
    }
    return sum == 0;
}
"""


def stripped(test, tool):
    """Valgrind reads no debug information of this size."""
    need("valgrind", "objcopy")
    subprocess.run(["objcopy", "--strip-debug", tool, test.path("tracer")], check=True)
    return test.path("tracer")


def instructions(test, *command):
    log = test.path("log")
    run = harness.execute(["valgrind", "--tool=callgrind", f"--log-file={log}", f"--callgrind-out-file={test.path('callgrind')}", *command],
                          test.directory.fresh(), test.environment(), timeout=600)
    counted = re.search(r"Collected : (\d+)", read(log))
    expect(not run.status and counted, f"{harness.describe(run.status)}: {read(log)[-300:]}")
    return int(counted.group(1))


def waits_and_threads_cost_at_most_three_reports(test):
    return cost_at_most_three_reports(test, LOCKS, ["waits"], ["threads"])


def stalls_cost_at_most_three_reports(test):
    return cost_at_most_three_reports(test, LOOP, ["stalls", "--min", "500us", "--top", "1"])


def cost_at_most_three_reports(test, source, *commands):
    """Instructions of reading a call, as the difference of two traces: what else the commands do costs the same for both."""
    few, many, most = 2_000, 40_000, 3
    program = test.compile("program", "-O1", "-fno-builtin", "-pthread", source=source)
    tool, calls = stripped(test, test.settings.tool), []
    cost = {command: [] for command, *_ in (["report"], *commands)}
    for times in few, many:
        trace = test.path(f"{times}.trace")
        test.tool("record", "-o", trace, "--", program, str(times))
        calls.append(test.json("report", trace)["calls"])
        for command, *options in (["report"], *commands):
            cost[command].append(instructions(test, tool, command, trace, *options))
    each = {command: (large - small) / (calls[1] - calls[0]) for command, (small, large) in cost.items()}
    summary = ", ".join(f"{command} {instructions:.0f}" for command, instructions in each.items()) + " instructions a call"
    expect(all(instructions <= most * each["report"] for instructions in each.values()), summary)
    return summary


def calls_that_are_advised_to_be_left_out_are_gone_and_no_others(test):
    def recorded(name, *options):
        trace = test.path(name + ".trace")
        said = test.tool("record", "-o", trace, *options, "--", program).stderr
        report = test.json("report", trace)
        return report, {(row["symbol"], row["module"]): row["calls"] for row in report["functions"]}, said

    program = test.compile("program", "-O1", "-fno-builtin", source=CHEAP)
    report, before, said = recorded("all")
    advice = report["exclusion"]
    expect(advice and {row["symbol"] for row in advice["functions"]} == {"strlen", "memcmp"}, f"advice: {advice}")
    shown = test.tool("report", test.path("all.trace")).stdout
    expect(all(f"--exclude {advice['exclude']} would save" in text for text in (shown, said)), f"said: {said}; shown: {shown[-300:]}")
    for options in (["--from", "1%"], ["--filter", "s*"], ["--by", "module"]):
        expect("--exclude" not in test.tool("report", test.path("all.trace"), *options).stdout, f"advice with {options}")
    fewer, after, said = recorded("fewer", "--exclude", advice["exclude"])
    gone = {(row["symbol"], row["module"]): row["calls"] for row in advice["functions"]}
    expect({**after, **gone} == before and not gone.keys() & after.keys(), f"before {before}, after {after}, advice {advice}")
    saved = [os.path.getsize(test.path("all.trace")) - os.path.getsize(test.path("fewer.trace")), report["calls"] - fewer["calls"]]
    expect(saved[1] == advice["calls"] and saved[0] >= 0.95 * advice["bytes"], f"saved {saved}, advice {advice}")
    expect(not fewer["exclusion"] and "--exclude" not in said, f"more advice: {fewer['exclusion']}, {said}")


def page_is_served_while_the_trace_is_read(test):
    need("strace")
    trace, log = test.path("synthetic.trace"), test.path("log")
    subprocess.run([os.path.join(os.path.dirname(test.settings.tool), "generate-trace"), trace, "16", "2"], check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen(["strace", "-f", "-o", log, "-e", "trace=write,pread64", test.settings.tool, "view", "--serve", trace],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=test.environment(), start_new_session=True)
    try:
        address, shares = server.stdout.readline().strip(), [0.0]
        first = urllib.request.urlopen(address).read().decode()
        while shares[-1] < 1:
            shares.append(float(urllib.request.urlopen(f"{address}progress?known={shares[-1]}").read()))
        page = urllib.request.urlopen(address).read().decode()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate()
    expect(shares == sorted(shares), f"progress goes back: {shares}")
    # The trace may have been read before the first page was asked for.
    expect('<progress id="progress"' in first or first == page, first[:300])
    expect('"served":true' in page, page[:300])
    calls = read(log).splitlines()
    said = next(n for n, call in enumerate(calls) if 'write(1, "http://' in call)
    read_before = [call for call in calls[:said] if re.search(r"pread64\(.*, (\d{6,}), \d+\) ", call)]
    expect(not read_before and len(calls) > said + 50, f"before the address: {read_before[:2]}")


def tests():
    return suite.tests_of(__name__)
