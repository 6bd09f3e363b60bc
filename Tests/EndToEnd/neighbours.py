"""Functions of x86_64 that are shorter than the patch, in code without padding, and called by pointers: their short jump leads to bytes that the patch
of a neighbour leaves unused. Counts are those that the program itself kept, of the neighbours, too."""
import os
import re
import subprocess

import attached
import counts
import harness
import suite
from functions import Functions
from harness import expect
from short_functions import MACROS

# `lent` is before its neighbour, `below` and `third` behind theirs.
FUNCTIONS = r"""
__asm__(R"(
""" + MACROS + r"""    .globl lent, gives
    .text
    crowd a
function lent
    mov %rdi, %rax
    ret
end lent
function gives
    lea 1(%rdi), %rax
    add $2, %rax
    lea -3(%rax), %rax
    ret
end gives
    crowd b
function gives_twice
    lea 1(%rdi), %rax
    add $2, %rax
    lea -3(%rax), %rax
    mov %rax, %rax
    ret
end gives_twice
function below
    mov %rdi, %rax
    ret
end below
function third
    xor %eax, %eax
    ret
end third
    crowd c
// its jump to the first byte is one within its copy
function looped
    dec %rdi
    jg looped
    lea 5(%rdi), %rax
    ret
end looped
function beside_a_loop
    mov %rdi, %rax
    ret
end beside_a_loop
    crowd d
// where the long jump is, the stack is not as at the entry, by its description
function pushes
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    lea 1(%rdi), %rbx
    lea -1(%rbx), %rax
    lea (%rax), %rax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    ret
end pushes
function beside_a_frame
    mov %rdi, %rax
    ret
end beside_a_frame
    crowd e
function alone
    mov %rdi, %rax
    ret
end alone
    crowd f
    .p2align 4
// its first bytes cannot be replaced together; the long jump is in padding, which nothing describes
function turns
    xor %eax, %eax
1:  inc %rax
    dec %rdi
    jg 1b
    ret
end turns
    .p2align 5
function last
    mov %rdi, %rax
    ret
end last
    .p2align 4
)");
"""
CALLS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>
#define EACH(X) X(lent) X(gives) X(gives_twice) X(below) X(third) X(looped) X(beside_a_loop) X(pushes) X(beside_a_frame) X(alone) X(turns) X(last)
#define DECLARE(name) long name(long);
#define POINTER(name) name,
#define NAME(name) #name,
#define CHECK(x) do { if (!(x)) { printf("%d: not so: %s\n", __LINE__, #x); exit(9); } } while (0)
EACH(DECLARE)
enum { COUNT = 12, THIRD = 4, LOOPED = 5, TURNS = 10 };
static long (*volatile pointers[])(long) = {EACH(POINTER)};
static const char *const names[] = {EACH(NAME)};
static long kept[COUNT];
static long expected(int which, long n) { return which == THIRD ? 0 : which == LOOPED ? n > 0 ? 5 : 4 + n : which == TURNS && n < 1 ? 1 : n; }
static void *work(void *times) {
    for (long turn = 0; turn < (long)times; turn++)
        for (int k = 0; k < COUNT; k++) {
            int which = (k * 5 + turn) % COUNT;
            for (long n = 0; n <= turn % 3; n++, __atomic_fetch_add(&kept[which], 1, __ATOMIC_RELAXED))
                if (pointers[which](turn) != expected(which, turn)) printf("%s(%ld)\n", names[which], turn), exit(9);
        }
    return 0;
}

/* A signal at each instruction of a call: its handler finds who called. */
static volatile struct shared { int found, handled; } *shared;
long stepped(long (*)(long));
extern char stepped_end[];
__asm__(".text\n.type stepped, @function\nstepped:\n.cfi_startproc\n push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\n mov %rdi, %rax\n mov $41, %edi\n int3\n call *%rax\n"
        " int3\n pop %rbx\n.cfi_adjust_cfa_offset -8\n ret\n.cfi_endproc\n.size stepped, . - stepped\nstepped_end:\n");
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *nothing) {
    char *pc = (char *)_Unwind_GetIP(context);
    if (pc >= (char *)stepped && pc < stepped_end) shared->found++;
    return _URC_NO_REASON;
}
static void handle(int signal) { shared->handled++; _Unwind_Backtrace(each, 0); }
/* Lets the child go on, with each signal that it gets, until a trap. */
static void await_trap(pid_t child) {
    for (int status;; ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status))) {
        CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGTRAP) return;
    }
}
/* Goes through the first instructions, since later ones may take a slow path that is long. Returns how many of them are of other functions. */
static int step(int which) {
    pid_t child = fork();
    if (!child) {
        signal(SIGUSR1, handle);
        for (int n = 0; n < 100; n++) pointers[which](n); /* the first ones take other ways */
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        for (;;) CHECK(stepped(pointers[which]) == expected(which, 41));
    }
    int status, of_others = 0, rounds = 0, is_over = 0;
    for (; !is_over && rounds < 30; rounds++) {
        await_trap(child); /* the first int3 */
        for (int n = 0; n <= rounds && !is_over; n++) {
            ptrace(PTRACE_SINGLESTEP, child, 0, 0);
            CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
            siginfo_t why;
            ptrace(PTRACE_GETSIGINFO, child, 0, &why);
            is_over = why.si_code == SI_KERNEL; /* the second one */
        }
        if (is_over) break;
        struct user_regs_struct at;
        ptrace(PTRACE_GETREGS, child, 0, &at);
        of_others += at.rip >= (unsigned long)lent && at.rip < (unsigned long)last && at.rip - (unsigned long)pointers[which] >= 5; /* before them, too */
        ptrace(PTRACE_CONT, child, 0, SIGUSR1);
        await_trap(child);
        ptrace(PTRACE_CONT, child, 0, 0);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (!rounds || shared->handled != rounds || shared->found != rounds) printf("%s: %d rounds, %d handled, %d found\n", names[which], rounds, shared->handled, shared->found), exit(9);
    shared->handled = shared->found = 0;
    return of_others;
}
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "step")) {
        shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        FILE *steps = fopen(argv[2], "w");
        for (int which = 0; which < COUNT; which++) fprintf(steps, "%s %d\n", names[which], step(which));
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "serve")) {
        for (long turns; scanf("%ld", &turns) == 1; fflush(stdout)) {
            work((void *)turns);
            for (int n = 0; n < COUNT; n++) printf("%s %ld%c", names[n], kept[n], n < COUNT - 1 ? ' ' : '\n');
        }
        return 0;
    }
    long times = argc > 1 ? atol(argv[1]) : 50;
    pthread_t threads[3];
    work((void *)times);
    for (int n = 0; n < 3; n++) CHECK(!pthread_create(threads + n, 0, work, (void *)times));
    for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
    for (int n = 0; n < COUNT; n++) printf("%s %ld\n", names[n], kept[n]);
    return 0;
}
"""
BORROWERS = ("lent", "below", "third", "beside_a_loop", "beside_a_frame")
NEIGHBOURS = ("gives", "gives_twice", "looped", "pushes")


def built(test, *options, compiler="gcc"):
    return test.planned(compiler, "-O1", "-w", *options, source=CALLS.replace("EACH(DECLARE)", "EACH(DECLARE)\n" + FUNCTIONS, 1), name="neighbours")


def tactics(test, program):
    return {function["name"]: function["tactic"] for function in test.json("plan", program)["functions"]}


def counts_are_those_of_the_program(*options, compiler="gcc", chosen="*", **variables):
    def check(test):
        program = built(test, *options, compiler=compiler)
        planned = tactics(test, program)
        expect(all(planned[name] == "neighbour" for name in BORROWERS) and (planned["looped"], planned["alone"], planned["turns"]) == ("whole", "none", "jump2"), f"{planned}")
        kept, trace = test.counted([program], chosen, **variables)
        test.patched(trace)
        wrong = {name: (count, trace.count(name)) for name, count in kept.items() if trace.count(name) != (count if name != "alone" else 0)}
        expect(not wrong, f"called, recorded: {wrong}")
    return check


def a_neighbour_that_is_not_chosen_is_not_recorded(test):
    program = built(test)
    for chosen in (["lent"], ["third"], ["below", "third"], ["beside_a_loop", "gives"], ["gives_twice"], ["looped"]):
        kept, trace = test.counted([program], ":".join(chosen))
        wrong = {name: trace.count(name) for name, count in kept.items() if trace.count(name) != (count if name in chosen else 0)}
        expect(not wrong, f"{chosen}: {wrong} of {kept}")
        flags = test.json("info", trace.path)["flags"]
        expect(any(re.match(f"{len(chosen)} of {len(chosen)} functions? recorded", text) for text in flags), f"{chosen}: {flags}")
        test.forget_traces()


def one_that_others_call_by_slots_is_recorded_there(test):
    """The library's `gives` only makes room: the program's calls of it go through slots, which are recorded as ever."""
    library = test.planned("gcc", "-O1", "-w", "-shared", "-fPIC", source=FUNCTIONS, name="liblent.so")
    program = test.planned("gcc", "-O1", "-w", library, f"-Wl,-rpath,{os.path.dirname(library)}", name="caller", source="""
        #include <stdio.h>
        long lent(long), gives(long);
        int main(void) { long sum = 0; for (long n = 0; n < 300; n++) sum += lent(n) - gives(n); printf("lent %ld\\ngives %ld\\n", sum + 300, sum + 300); }""")
    kept, trace = test.counted([program], "liblent.so!lent")
    expect(kept == {"lent": 300, "gives": 300} and all(trace.count(name) == 300 for name in kept), f"{kept}: {trace.count('lent')}, {trace.count('gives')}")


def who_is_asked_at_the_long_jump_knows_its_caller(test):
    program, path = built(test), test.path("steps")
    _, said = test.traced([program, "step", path], "*")
    expect(not said, f"{said}")
    of_others = dict(map(str.split, suite.read_bytes(path).decode().splitlines()))
    expect(all((count == "1") == (name in (*BORROWERS, "turns")) for name, count in of_others.items()), f"instructions in a neighbour: {of_others}")


def a_neighbours_bytes_are_not_put_back(test):
    """Only which functions were called is recorded, and first bytes are put back: `gives` runs on, with a long jump of `lent` among its bytes."""
    trace, = counts.recorded(test, [built(test), "20000"])
    yes, _, _ = counts.called(test, trace.path)
    expect({*BORROWERS, *NEIGHBOURS} <= yes, f"called: {yes}")


def beside_running_threads_a_neighbour_keeps_its_bytes(test):
    """Each attach changes one instruction of each function. What it cannot change it says, and the next one finds all as it was."""
    if reason := harness.attaching_is_forbidden():
        raise harness.Skipped(reason)
    program = built(test)
    process = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=test.made, env=test.environment(), preexec_fn=harness.attachable)

    def asked():
        process.stdin.write("40\n")
        process.stdin.flush()
        words = process.stdout.readline().split()
        return dict(zip(words[::2], map(int, words[1::2])))
    try:
        for _ in range(3):
            before = asked()
            with attached.Attached.attached(test, process.pid, "--functions", "*"):
                after = asked()
            rows = {row["name"]: row["calls"] for row in test.json("report", test.trace())["functions"]}
            found = {name: (after[name] - before[name], rows.get(name, 0)) for name in before}
            expect(all(count in (0, called) for called, count in found.values()) and all(found[name][1] for name in NEIGHBOURS), f"called, recorded: {found}")
            expect(not attached.changed_code(process.pid), "code that is not as it was")
        out, _ = process.communicate(timeout=harness.HANGS)
        expect((process.returncode, out) == (0, ""), f"{harness.describe(process.returncode)}: {out}")
    finally:
        process.kill()
        process.wait()


def tests():
    ways = {"gcc": (), "gcc.static": ("-no-pie",), "gcc.cf": ("-fcf-protection",)}
    found = {"counts_are_those_of_the_program." + name: counts_are_those_of_the_program(*options) for name, options in ways.items()}
    found |= {"counts_are_those_of_the_program.clang": counts_are_those_of_the_program(compiler="clang"),
              "counts_are_those_of_the_program.of_all_modules": counts_are_those_of_the_program(chosen="*!*"),
              "counts_are_those_of_the_program.call_sites": counts_are_those_of_the_program(TRACER_CALLSITES="on")}
    return [Functions("neighbours." + name, check) for name, check in found.items()] + suite.tests_of(__name__, Functions)
