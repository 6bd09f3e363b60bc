"""Structures that calls are given by their addresses: times, addresses of sockets; and arrays of strings. What a program prints of its own calls,
against `replay`."""
import json
import re

import argument_values
import build
import suite
from harness import expect

# All that is passed is on the stack, which the agent reads itself: the emulator of aarch64 has no process_vm_readv.
SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "structures.h"
static void result(int value) {
    if (value < 0) printf(" = %d %s\n", value, strerrorname_np(errno)); else printf(" = %d\n", value);
    fflush(stdout);
}
int main(void) {
    int four = socket(AF_INET, SOCK_DGRAM, 0), six = socket(AF_INET6, SOCK_DGRAM, 0), local = socket(AF_UNIX, SOCK_DGRAM, 0), other = socket(AF_UNIX, SOCK_DGRAM, 0);
    for (int n = 0; n < 4; n++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(9 + n * 9999)};
        in.sin_addr.s_addr = htonl(0x7f000001 + (unsigned)n * 256);
        char text[64];
        printf("connect(%d, {sa_family=AF_INET, sin_port=%d, sin_addr=%s}, 16)", four, 9 + n * 9999, inet_ntop(AF_INET, &in.sin_addr, text, sizeof text));
        result(connect(four, (struct sockaddr *)&in, sizeof in));
        printf("sendto(%d, NULL, 0, 0, {sa_family=AF_INET, sin_port=%d, sin_addr=%s}, 16)", four, 9 + n * 9999, text);
        result((int)sendto(four, 0, 0, 0, (struct sockaddr *)&in, sizeof in));
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(80 + n), .sin6_scope_id = n & 1 ? 70000 + n : 0};
        memset(&in6.sin6_addr, n * 17, 16);
        printf("bind(%d, {sa_family=AF_INET6, sin6_port=%d, sin6_addr=%s", six, 80 + n, inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text));
        if (n & 1) printf(", sin6_scope_id=%d", 70000 + n);
        printf("}, 28)"), result(bind(six, (struct sockaddr *)&in6, sizeof in6));
        struct timespec time = {0, 1000 + n}, wrong = {-n, 2000000000L + n};
        printf("nanosleep({tv_sec=0, tv_nsec=%d}, NULL)", 1000 + n), result(nanosleep(&time, 0));
        printf("nanosleep({tv_sec=%d, tv_nsec=%d}, NULL)", -n, 2000000000 + n), result(nanosleep(&wrong, 0));
        printf("clock_nanosleep(CLOCK_MONOTONIC, 0, {tv_sec=0, tv_nsec=%d}, NULL)", 1000 + n), result(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, 0));
        struct timeval while_ = {0, 5 + n};
        printf("select(0, NULL, NULL, NULL, {tv_sec=0, tv_usec=%d})", 5 + n), result(select(0, 0, 0, 0, &while_));
    }
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "a socket"};
    printf("bind(%d, {sa_family=AF_UNIX, sun_path=\"a socket\"}, 110)", local), result(bind(local, (struct sockaddr *)&un, sizeof un));
    printf("connect(%d, {sa_family=AF_UNIX, sun_path=\"a s\"}, 5)", other), result(connect(other, (struct sockaddr *)&un, 5));
    memcpy(un.sun_path, "\0hidden", 7);
    printf("connect(%d, {sa_family=AF_UNIX, sun_path=\"\\000hidden\"}, 9)", other), result(connect(other, (struct sockaddr *)&un, 9));
    printf("bind(%d, {sa_family=AF_UNIX}, 2)", other), result(bind(other, (struct sockaddr *)&un, 2));
    printf("connect(%d, <unavailable>, 1)", other), result(connect(other, (struct sockaddr *)&un, 1));
    printf("connect(%d, NULL, 16)", four), result(connect(four, 0, 16));
    printf("connect(%d, 0x10?, 16)", four), result(connect(four, (struct sockaddr *)16, 16));
    printf("sendto(%d, NULL, 0, MSG_DONTWAIT, {}, 0)", four), result((int)sendto(four, 0, 0, MSG_DONTWAIT, 0, 0));
    struct sockaddr_nl link = {.nl_family = AF_NETLINK};
    printf("connect(%d, {sa_family=AF_NETLINK, sa_data={...}}, 12)", four), result(connect(four, (struct sockaddr *)&link, sizeof link));
    struct sockaddr_in cut = {.sin_family = AF_INET};
    printf("connect(%d, <unavailable>, 7)", four), result(connect(four, (struct sockaddr *)&cut, 7));
    printf("nanosleep(NULL, NULL)"), result(nanosleep(0, 0));
    printf("nanosleep(0x10?, NULL)"), result(nanosleep((struct timespec *)16, 0));

    char texts[40][8], lengthy[300], *all[41];
    for (int n = 0; n < 40; n++) sprintf(texts[n], "text %d", n), all[n] = texts[n];
    for (int count = 0; count <= 40; count += count < 3 ? 1 : 16) {
        all[count] = 0;
        printf("take_strings([");
        for (int n = 0; n < count && n < 32; n++) printf("%s\"text %d\"", n ? ", " : "", n);
        printf("%s], %d)\n", count > 32 ? ", ..." : "", count), fflush(stdout);
        take_strings(all, count);
        all[count] = texts[count % 40];
    }
    memset(lengthy, 'l', 299), lengthy[299] = 0;
    char *some[4] = {texts[0], 0, lengthy, 0};
    printf("take_strings([\"text 0\"], 1)\n"), take_strings(some, 1);
    printf("take_strings([\"%s\"], 2)\n", lengthy), take_strings(some + 2, 2);
    some[0] = (char *)16;
    printf("take_strings([0x10?], 3)\n"), take_strings(some, 3);
    printf("take_strings(NULL, 4)\n"), take_strings(0, 4);
    printf("take_strings(0x18?, 5)\n"), take_strings((char **)24, 5);
    unlink("a socket");
    return 0;
}
"""
WRITTEN = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "structures.h"
int main(void) {
    int ends[2];
    if (pipe(ends)) return 2;
    for (int n = 0; n < 40; n += 1 + n / 4) {
        char from[900], to[900], name[20];
        memset(from, 'a' + n % 26, sizeof from);
        if (write(ends[1], from, n * 17) != n * 17) return 3;
        if (n) printf("read(%d, \"%.*s\"%s, 900) = %d\n", ends[0], n * 17 < 512 ? n * 17 : 512, from, n * 17 > 512 ? "..." : "", n * 17), fflush(stdout);
        if (n && read(ends[0], to, 900) != n * 17) return 4;
        if (!n && read(-1, (void *)0x10, 900) == -1) // an emulator looks at the address first
            printf("read(-1, 0x10, 900) = -1 %s\n", errno == EBADF ? "EBADF" : "EFAULT"), fflush(stdout);
        sprintf(name, "%*s", n % 19, "name");
        printf("take_filled(\"%s\", \"%.*s\", %d) = %d\n", name, n, "filled by the function, which says how many", n, n), fflush(stdout);
        take_filled(name, to, n);
    }
    return 0;
}
"""
LIBRARY = r"""
#include <string.h>
#include "structures.h"
long take_filled(const char *name, char *to, int n) { __asm__ volatile("" ::"r"(name) : "memory"); memcpy(to, "filled by the function, which says how many", n); return n; }
void take_strings(char *const *all, int n) { __asm__ volatile("" ::"r"(all), "r"(n) : "memory"); }
"""
OURS = ("connect(", "bind(", "sendto(", "nanosleep(", "clock_nanosleep(", "select(", "take_strings(")
CHOSEN = ("connect,bind,sendto,nanosleep,clock_nanosleep,select", "take_strings(all: strings, n)")


def subject(case, text=SOURCE):
    case.write("structures.h", "void take_strings(char *const *, int);\nlong take_filled(const char *, char *, int);\n")
    compiler = argument_values.driver("gcc")
    case.compile("libstructures.so", "-O1", "-shared", "-fPIC", f"-I{case.made}", source=LIBRARY, compiler=compiler)
    return case.compile("program", "-O1", f"-I{case.made}", "-L.", "-lstructures", "-Wl,-rpath,$ORIGIN", source=text, compiler=compiler)


def values(**variables):
    def values_are_what_the_program_says(test):
        run = test.execute([subject(test)], TRACER_ARGUMENTS=test.plan(*CHOSEN), **variables)
        said, found = run.stdout.decode().splitlines(), test.lines(test.checked_trace().path, OURS)
        different = [(a, b) for a, b in zip(said, found) if a != b]
        expect(said == found and len(said) > 40, f"{len(said)} calls, {len(found)} in the trace; the first that differ: {different[:3]}")
    return values_are_what_the_program_says


def json_has_them_as_objects_and_arrays(test):
    test.execute([subject(test)], TRACER_ARGUMENTS=test.plan(*CHOSEN))
    path = test.checked_trace().path
    calls = [json.loads(line) for line in test.tool("replay", "--json", path).stdout.splitlines()]
    found = {}
    for call in calls:
        if "arguments" in call:
            found.setdefault(call["name"], []).append(call["arguments"])
    expect(found["connect"][0]["address"] == {"sa_family": "AF_INET", "sin_port": 9, "sin_addr": "127.0.0.1"}, str(found["connect"][0]))
    expect(found["nanosleep"][0]["time"] == {"tv_sec": 0, "tv_nsec": 1000}, str(found["nanosleep"][0]))
    expect(found["take_strings"][2]["all"] == ["text 0", "text 1"], str(found["take_strings"][2]))
    expect({"cut": [f"text {n}" for n in range(32)]} in [arguments["all"] for arguments in found["take_strings"]], "none is cut")
    rows = json.dumps(test.json("report", path, "--by", "argument:address"))
    expect("127.0.0.1" in rows, rows[:300])
    for condition in ("connect(address == 5)", 'connect(address ~ "127")', "take_strings(all == 5)"):
        done = test.tool("record", "--force", "-o", test.path("b.trace"), "--arguments", CHOSEN[1], "--when", condition, "--", "true", status=2)
        expect(re.search("has several values, which conditions do not compare", done.stderr), done.stderr)


def written(**variables):
    def what_a_call_has_written_is_known_at_its_end(test):
        program = subject(test, WRITTEN)
        path = test.plan("read(descriptor: fd, to: bytes[result], count: size_t) -> ssize_t errno", "take_filled(name: string, to: bytes[result], n) -> long")
        run = test.execute([program], TRACER_ARGUMENTS=path, **variables)
        said = run.stdout.decode().splitlines()
        found = test.lines(test.checked_trace().path, ("read(", "take_filled("))
        different = [(a, b) for a, b in zip(said, found) if a != b]
        expect(said == found and len(said) > 20, f"{len(said)} calls, {len(found)} in the trace; the first that differ: {different[:3]}")
    return what_a_call_has_written_is_known_at_its_end


def what_a_call_has_written_is_chosen_and_added_up(test):
    program = subject(test, WRITTEN)
    proto = "take_filled(name: string, to: bytes[result], n) -> long"
    test.execute([program], TRACER_ARGUMENTS=test.plan(proto))
    path = test.checked_trace().path
    rows = json.dumps(test.json("report", path, "--by", "argument:to"))
    expect('"fill"' in rows, rows[:300])
    calls = [json.loads(line)["arguments"] for line in test.tool("replay", "--json", path, "--where", 'take_filled(to ~ "which")').stdout.splitlines() if "take_filled" in line]
    expect(calls and all("which" in call["to"] for call in calls), str(calls))
    for choice, when, wanted in ((proto, 'take_filled(to ~ "which")', "is known when the call has ended"), ("take_filled(to: bytes[result])", None, "one parameter of a function whose result is a number")):
        done = test.tool("record", "--force", "-o", test.path("b.trace"), "--arguments", choice, *(["--when", when] if when else []), "--", "true", status=2)
        expect(wanted in done.stderr, done.stderr)


MODES = {"slots": "*", "arm": "*values* *written*"}


def tests():
    found = [argument_values.Arguments("structure_values.values.usual", values()), argument_values.Arguments("structure_values.written.usual", written())]
    if build.ARCHITECTURE == "aarch64":
        return found
    found.append(argument_values.Arguments("structure_values.values.sites", values(TRACER_CALLSITES="1")))
    found.append(argument_values.Arguments("structure_values.written.sites", written(TRACER_CALLSITES="1")))
    return found + suite.tests_of(__name__, argument_values.Arguments)
