"""Functions whose own first bytes cannot be replaced (TRACER_FUNCTIONS): those that are shorter than the patch are recorded by their call
sites, and loops to the first byte are moved as a whole; each with the counts that the program itself kept."""
import subprocess

import build
import counts
import harness
import suite
from functions import Functions
from harness import expect

# Functions in assembly.
FUNCTION_MACROS = r"""    .macro function name
    .type \name, %function
\name:
    .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, . - \name
    .endm
"""
# For x86_64. `crowd` keeps others apart, so that no padding is near them.
MACROS = FUNCTION_MACROS + r"""    .macro crowd name
    .type crowd_\name, @function
crowd_\name:  # of its bytes none can be lent: a jump leads into what would be moved
    .rept 2
    lea 1(%rax), %eax
    .endr
1:  .rept 60
    lea 1(%rax), %eax
    .endr
    jz 1b
    ret
    .size crowd_\name, . - crowd_\name
    .endm
"""
# Assembly, in which nothing depends on what a compiler happens to do: every call is counted where it is made, and each function returns
# what tells whether it ran. CALLED(name) is the number of calls that can be recorded, POINTED(name) that of those by pointer.
SOURCE = r"""
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#define CHECK(x) do { if (!(x)) { std::printf("%d: not so: %s\n", __LINE__, #x); std::exit(9); } } while (0)
#define FUNCTION __attribute__((noinline, noclone, used))
extern "C" {
long same(long), other(long), pointed(long), looks(long), adds(long), jumps(long), branches(long), through(long), looped(long), turned(long), counted(long), deep(long), throws_in_a_loop(long),
    with_cold(long), unnamed(long), hidden_call(long), stops(long);
FUNCTION void may_throw(long n) { if (n == 3) throw std::runtime_error("three"); }
}
#ifdef __x86_64__
__asm__(R"(
""" + MACROS + r"""    .text
    crowd a
function same
    mov %rdi, %rax
    ret
end same
    crowd b
function other
    lea (%rdi), %rax
    ret
end other
    crowd c
function pointed
    mov %rdi, %rax
    ret
end pointed
    crowd d
function hidden_call
    mov %rdi, %rax
    ret
end hidden_call
    crowd e
// its first instruction is the site
function looks
    call same
    add $1, %rax
    ret
end looks
// a site behind the replaced bytes
function adds
    lea 1(%rdi), %rdi
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call same
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
end adds
function jumps
    jmp other
end jumps
function branches
    test $1, %dil
    jz other
    mov $-1, %rax
    ret
end branches
// of the functions between two short ones
function through
    add $7, %rdi
    jmp other
end through
function looped
    dec %rdi
    jg looped
    lea 5(%rdi), %rax
    ret
end looped
function turned
    dec %rdi
    jg turned
    lea 6(%rdi), %rax
    ret
end turned
// calls itself, and jumps to itself
function counted
    dec %rdi
    js 1f
    test $1, %dil
    jz counted
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call counted
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
1:  mov $3, %eax
    ret
end counted
function deep
    lea -1(%rdi), %rdi
    test %rdi, %rdi
    jle same
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call deep
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
end deep
function throws_in_a_loop
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    mov %rdi, %rbx
    call may_throw
    mov %rbx, %rdi
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    dec %rdi
    jns throws_in_a_loop
    mov $9, %eax
    ret
end throws_in_a_loop
function with_cold
    test %rdi, %rdi
    jz with_cold.cold
    lea 1(%rdi), %rax
    ret
end with_cold
function unnamed
    jmp 7f
end unnamed
7:  sub $8, %rsp  # nothing says that this is code
    call hidden_call
    add $8, %rsp
    ret
    crowd f
    .section .text.unlikely
    .type with_cold.cold, @function
with_cold.cold:
    .cfi_startproc
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call other
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size with_cold.cold, . - with_cold.cold
    .text
)");
#else
__asm__(R"(
""" + FUNCTION_MACROS + r"""    .macro frame
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 29, -16
    .cfi_offset 30, -8
    .endm
    .macro leave
    ldp x29, x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    .endm
    .text
function same
    ret
end same
// a literal for a vector register is not relocated
function other
    ldr d0, 1f
    ret
1:  .quad 0
end other
function pointed
    ldr d0, 1f
    ret
1:  .quad 0
end pointed
function hidden_call
    ldr d0, 1f
    ret
1:  .quad 0
end hidden_call
function looks
    str x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset 30, -16
    bl same
    ldr x30, [sp], #16
    .cfi_def_cfa_offset 0
    .cfi_restore 30
    add x0, x0, #1
    ret
end looks
function adds
    frame
    add x0, x0, #1
    bl same
    leave
    ret
end adds
function jumps
    b other
end jumps
function branches
    tbnz x0, #0, 1f
    b other
1:  mov x0, #-1
    ret
end branches
function through
    add x0, x0, #7
    b other
end through
function looped
    subs x0, x0, #1
    b.gt looped
    add x0, x0, #5
    ret
end looped
function turned
    subs x0, x0, #1
    b.gt turned
    add x0, x0, #6
    ret
end turned
function counted
    subs x0, x0, #1
    b.mi 1f
    tbz x0, #0, counted
    frame
    bl counted
    leave
1:  mov x0, #3
    ret
end counted
function deep
    subs x0, x0, #1
    b.gt 1f
    b same
1:  frame
    bl deep
    leave
    ret
end deep
function throws_in_a_loop
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    str x19, [sp, #16]
    .cfi_offset 19, -16
    mov x19, x0
    bl may_throw
    mov x0, x19
    ldr x19, [sp, #16]
    .cfi_restore 19
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore 29
    .cfi_restore 30
    subs x0, x0, #1
    b.pl throws_in_a_loop
    mov x0, #9
    ret
end throws_in_a_loop
function with_cold
    cbnz x0, 1f
    b with_cold.cold
1:  add x0, x0, #1
    ret
end with_cold
function unnamed
    b 7f
end unnamed
7:  stp x29, x30, [sp, #-16]!
    bl hidden_call
    ldp x29, x30, [sp], #16
    ret
    .section .text.unlikely
    .type with_cold.cold, %function
with_cold.cold:
    .cfi_startproc
    frame
    bl other
    leave
    ret
    .cfi_endproc
    .size with_cold.cold, . - with_cold.cold
    .text
)");
#endif
static long of_same, of_other, of_pointed, of_hidden, of_looped, of_turned, of_counted, of_deep, of_throws;
static long (*volatile pointer)(long) = pointed, (*volatile loop)(long) = looped;
static long entered(long n) { // of `counted`, with n: each iteration that is no call goes on in the same one
    for (long calls = 1;; ) {
        if (--n < 0) return calls;
        if (n % 2 == 0) continue;
        return calls + entered(n);
    }
}
FUNCTION static void work(long times) {
    for (long n = 1; n <= times; n++) {
        CHECK(same(n) == n); __atomic_fetch_add(&of_same, 1, __ATOMIC_RELAXED);
        CHECK(looks(n) == n + 1 && adds(n) == n + 1); __atomic_fetch_add(&of_same, 2, __ATOMIC_RELAXED);
        CHECK(other(n) == n && jumps(n) == n && through(n) == n + 7); __atomic_fetch_add(&of_other, 3, __ATOMIC_RELAXED);
        CHECK(branches(n) == (n % 2 ? -1 : n)); __atomic_fetch_add(&of_other, n % 2 == 0, __ATOMIC_RELAXED);
        CHECK(with_cold(n) == n + 1 && with_cold(0) == 0); __atomic_fetch_add(&of_other, 1, __ATOMIC_RELAXED);
        CHECK(pointed(n) == n && pointer(n + 1) == n + 1); __atomic_fetch_add(&of_pointed, 1, __ATOMIC_RELAXED);
        CHECK(hidden_call(n) == n && unnamed(n) == n); __atomic_fetch_add(&of_hidden, 1, __ATOMIC_RELAXED);
        CHECK(looped(n % 9) == (n % 9 ? 5 : 4) && loop(n % 9) == (n % 9 ? 5 : 4)); __atomic_fetch_add(&of_looped, 2, __ATOMIC_RELAXED);
        CHECK(turned(n % 9) == (n % 9 ? 6 : 5)); __atomic_fetch_add(&of_turned, 1, __ATOMIC_RELAXED);
        CHECK(counted(n % 12) == 3); __atomic_fetch_add(&of_counted, entered(n % 12), __ATOMIC_RELAXED);
        CHECK(deep(n % 5 + 1) == 0); __atomic_fetch_add(&of_deep, n % 5 + 1, __ATOMIC_RELAXED); __atomic_fetch_add(&of_same, 1, __ATOMIC_RELAXED);
        bool is_thrown = false;
        try { CHECK(throws_in_a_loop(n % 6) == 9); } catch (const std::exception &) { is_thrown = true; }
        CHECK(is_thrown == (n % 6 >= 3)); __atomic_fetch_add(&of_throws, 1, __ATOMIC_RELAXED);
    }
}
int main(int argc, char **argv) {
    std::vector<std::thread> threads;
    for (int n = 0; n < 3; n++) threads.emplace_back(work, 200);
    for (auto &thread : threads) thread.join();
    work(100);
    if (argc > 1) {
        std::fflush(stdout);
        of_same = of_other = of_pointed = of_hidden = of_looped = of_turned = of_counted = of_deep = of_throws = 0;
        pid_t child = fork();
        work(100);
        if (child) { int status; CHECK(waitpid(child, &status, 0) == child && status == 0); return 0; }
    }
    std::printf("same %ld\nother %ld\npointed %ld\nhidden_call %ld\nlooped %ld\nturned %ld\ncounted %ld\ndeep %ld\nthrows_in_a_loop %ld\n", of_same, of_other, of_pointed, of_hidden, of_looped, of_turned,
                of_counted, of_deep, of_throws);
}
"""
NAMES = ("same", "other", "pointed", "hidden_call", "looped", "turned", "counted", "deep", "throws_in_a_loop")



def by_sites():
    """On aarch64 one instruction is replaced, and no function is shorter."""
    return {"other", "pointed", "hidden_call", "turned", "counted", "throws_in_a_loop"} | (set() if harness.EMULATOR else {"same"})


def short(test, *options, compiler=None):
    return test.planned(compiler or build.DRIVERS["gcc"][".cpp"], "-O1", "-w", *options, source=SOURCE, name="short")


def tactics(test, program):
    return {function["name"]: (function["tactic"], function.get("direct_only", False)) for function in test.json("plan", program)["functions"]}


def counts_are_those_of_the_program(*options, compiler=None, chosen="*", **variables):
    def check(test):
        program = short(test, *options, compiler=compiler)
        planned = tactics(test, program)
        expect({name for name in NAMES if planned[name][0] == "calls"} == by_sites() and planned["looped"][0] == "whole", f"{planned}")
        held = {name for name in by_sites() if planned[name][1]}
        expect(held == {"pointed", "hidden_call"}, f"may be called in other ways: {held}")
        kept, trace = test.counted([program], chosen, **variables)
        test.patched(trace)
        found = {name: trace.count(name) for name in NAMES}
        wrong = {name: (kept[name], found[name]) for name in NAMES if found[name] != kept[name]}
        expect(not wrong, f"called, recorded: {wrong}")
        left = {name: trace.count(name, trace.unwound) for name in NAMES}
        expect(left["throws_in_a_loop"] > 0 and not any(count for name, count in left.items() if name != "throws_in_a_loop"), f"left: {left}")
    return check


def only_the_chosen_ones_are_redirected(test):
    program = short(test)
    for chosen in (["same"], ["other", "looped"], ["looks", "adds", "jumps"], ["same", "looks"], ["counted"]):
        kept, trace = test.counted([program], ":".join(chosen))
        found = {name: trace.count(name) for name in NAMES}
        wrong = {name: found[name] for name in NAMES if found[name] != (kept[name] if name in chosen else 0)}
        expect(not wrong, f"{chosen}: {wrong} of {kept}")


def a_child_goes_on_with_them(test):
    program = short(test)
    run, said = test.traced([program, "fork"], "*")
    expect(not said, f"{said}")
    kept = {name: int(count) for name, count in (line.split() for line in run.stdout.decode().splitlines())}
    traces = test.checked_traces()
    child, = (trace for trace in traces if trace.header["parent_pid"] in {other.header["pid"] for other in traces})
    wrong = {name: (kept[name], child.count(name)) for name in NAMES if child.count(name) != kept[name]}
    expect(not wrong, f"of the child: called, recorded: {wrong}")


def coverage_does_not_call_what_a_pointer_leads_to_uncalled(test):
    """`never` is called by pointer alone, `missed` not at all but its address is taken; nobody has the address of `unused`."""
    source = SOURCE.replace("int main(", """extern "C" { long never(long), missed(long), unused(long); }
#ifdef __x86_64__
__asm__(".text\\n crowd g\\n function never\\n mov %rdi, %rax\\n ret\\nend never\\n crowd h\\n function missed\\n mov %rdi, %rax\\n ret\\nend missed\\n"
        " crowd i\\n function unused\\n mov %rdi, %rax\\n ret\\nend unused\\n crowd j\\n"
        " .type calls_none, @function\\ncalls_none:\\n call never\\n call missed\\n call unused\\n ret\\n.size calls_none, . - calls_none\\n");
#endif
long (*volatile pointers[])(long) = {never, missed};
int main(""").replace("work(100);\n    if", "work(100);\n    pointers[0](3);\n    if")
    program = test.planned("g++", "-O1", "-w", source=source, name="short")
    _, trace = test.counted([program], "*")
    rows = {function["name"]: function for function in test.json("coverage", trace.path)["functions"]}
    expect(rows["never"]["calls"] is None and rows["missed"]["calls"] is None and rows["unused"]["calls"] == 0,
           f"{ {name: rows[name] for name in ('never', 'missed', 'unused')} }")
    expect("not by pointer" in rows["never"]["reason"] and rows["pointed"]["at_least"] and not rows["other"]["at_least"], f"{rows['never']}, {rows['pointed']}")


# The same in a library, whose functions the program calls by slots, too.
LIBRARY = r"""
#ifdef LIBRARY
#define CROWD(name) ".type " name ", @function\n" name ":\n.rept 60\n lea 1(%rax), %eax\n.endr\n jz " name "+6\n ret\n.size " name ", . - " name "\n"
__asm__(".text\n" CROWD("before") ".globl tiny\n.type tiny, @function\ntiny:\n mov %rdi, %rax\n ret\n.size tiny, . - tiny\n" CROWD("after")
        ".globl calls_tiny\n.type calls_tiny, @function\ncalls_tiny:\n lea 1(%rdi), %rdi\n call tiny@PLT\n ret\n.size calls_tiny, . - calls_tiny\n");
#else
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    long sum = 0, by_slot = 0;
    for (int turn = 0; turn < 20; turn++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
        long (*calls_tiny)(long) = (long (*)(long))dlsym(library, "calls_tiny");
        for (long n = 0; n < 100; n++) sum += calls_tiny(n) - n;
        dlclose(library);
    }
    printf("tiny %ld\n", sum);
    return 0;
}
#endif
"""


def a_library_that_comes_again_is_redirected_again(test):
    library = test.planned("gcc", "-DLIBRARY", "-shared", "-fPIC", "-Wl,-Bsymbolic", source=LIBRARY, name="libtiny.so")
    program = test.planned("gcc", "-O1", "-w", source=LIBRARY, name="host")
    expect(tactics(test, library)["tiny"] == ("calls", True), f"{tactics(test, library)}")
    kept, trace = test.counted([program, library], "*:libtiny.so!*")
    expect(trace.count("tiny") == kept["tiny"] == 2000 and trace.count("calls_tiny") == 2000, f"{trace.count('tiny')} of {kept}, {trace.count('calls_tiny')}")


SLOTS = r"""
#include <stdio.h>
long tiny(long), calls_tiny(long);
int main(void) { long sum = 0; for (long n = 0; n < 300; n++) sum += tiny(n) - calls_tiny(n) + 1; printf("tiny %d\n", sum ? 0 : 600); }
"""


def calls_by_slots_and_by_sites_are_one_function(test):
    library = test.planned("gcc", "-DLIBRARY", "-shared", "-fPIC", "-Wl,-Bsymbolic", source=LIBRARY, name="libtiny.so")
    program = test.planned("gcc", "-O1", "-w", library, source=SLOTS, name="host")
    kept, trace = test.counted([program], "*:libtiny.so!*")
    found = [function["calls"] for function in test.json("report", trace.path)["functions"] if function["symbol"] == "tiny"]
    expect(found == [kept["tiny"]], f"rows of `tiny`: {found}, called {kept}")


def changed_sites_are_not_written_to(test):
    """A plan that does not fit the code: nothing of the module is recorded, and a line says so."""
    program = short(test)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    site = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" t adds")) + 8
    content = bytearray(suite.read_bytes(program))  # a PIE's first code segment lies in the file as in memory
    expect(content[site] == 0xe8, f"no call at {site:#x}")
    content[site + 1] ^= 1
    changed = test.write("changed", bytes(content), mode=0o755)
    run = harness.execute([changed], test.directory.fresh(), test.traced_environment(TRACER_FUNCTIONS="*"))  # it may well die of it
    expect(b"its code differs from its plan" in run.stderr, f"nothing is said: {run.stderr[-300:]}")


def which_were_called_is_all_that_counts_mode_records(test):
    trace, = counts.recorded(test, [short(test)])
    yes, no, _ = counts.called(test, trace.path)
    expect(set(NAMES) <= yes, f"not seen: {set(NAMES) - yes}")


MODES = {"slots": "*", "arm": "*"}


def tests():
    ways = {"gcc": (), "gcc.static": ("-no-pie",), "gcc.cf": ("-fcf-protection",)}
    found = {"counts_are_those_of_the_program." + name: counts_are_those_of_the_program(*options) for name, options in ways.items()}
    if harness.EMULATOR:
        return [Functions("short_functions." + name, found[name]) for name in ("counts_are_those_of_the_program.gcc",)]
    found |= {"counts_are_those_of_the_program.clang": counts_are_those_of_the_program(compiler="clang++"),
              "counts_are_those_of_the_program.of_all_modules": counts_are_those_of_the_program(chosen="*!*"),
              "counts_are_those_of_the_program.call_sites": counts_are_those_of_the_program(TRACER_CALLSITES="on")}
    return [Functions("short_functions." + name, check) for name, check in found.items()] + suite.tests_of(__name__, Functions)
