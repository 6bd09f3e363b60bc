"""The agent's side of `tracer attach`: a task of its own, made as the tool makes it (clone(2), without a thread block), calls tracer_attach,
tracer_detach, and tracer_attach again, while threads call through slots. What is recorded is what they count themselves, slots are as
before afterwards, and the thread whose block the task has notices nothing."""
import os
import re
import struct
import subprocess

import build
import harness
import late
import suite
import tracefile
from harness import Skipped, expect

TASK = late.COMMON + r"""
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
static int (*attach)(const char *), (*detach)(void);
struct task { const char *settings; int result, done; };
static int entered(void *given) {
    struct task *task = (struct task *)given;
    task->result = task->settings ? attach(task->settings) : detach();
    __atomic_store_n(&task->done, 1, __ATOMIC_SEQ_CST);
    /* Through no slot: a recorded call would be one of the thread whose block this is. */
#ifdef __x86_64__
    __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(0) : "memory");
#else
    register long number __asm__("x8") = SYS_exit, status __asm__("x0") = 0;
    __asm__ volatile("svc #0" : : "r"(number), "r"(status) : "memory");
#endif
    __builtin_unreachable();
}
/* As the tool does it: not a thread of libc's, and with the thread block of its maker, which runs on. */
static int in_a_task(const char *settings) {
    static char *stack;
    if (!stack) stack = (char *)mmap(0, 262144, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct task task = {settings, -1, 0};
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    int tid = clone(entered, stack + 262144, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, &task);
    sigprocmask(SIG_SETMASK, &old, 0);
    CHECK(tid > 0);
    errno = 77;
    long n = 0;
    while (!__atomic_load_n(&task.done, __ATOMIC_SEQ_CST)) n += before(n) > n;
    CHECK(errno == 77);
    while (syscall(SYS_tgkill, getpid(), tid, 0) == 0) sched_yield();
    return task.result;
}
static void find(void) {
    void *agent = load_agent();
    attach = (int (*)(const char *))dlsym(agent, "tracer_attach");
    detach = (int (*)(void))dlsym(agent, "tracer_detach");
    CHECK(attach && detach);
}
/* TRACER_OUT=…, and more. */
static char *settings_for(const char *name, const char *more) {
    static char text[8192];
    memset(text, 0, sizeof text);
    char *end = text + sprintf(text, "TRACER_OUT=%s/%s.trace", getenv("TRACES"), name) + 1;
    if (more) strcpy(end, more);
    for (; *end; end++) if (*end == ' ') *end = 0;
    return text;
}
"""


class Attach(late.Late):
    def prepare(self):
        super().prepare()
        with open(self.settings.agent, "rb") as file:
            data = bytearray(file.read())
        table = subprocess.run(["readelf", "-SW", "--dyn-syms", self.settings.agent], capture_output=True, text=True, check=True).stdout
        value, section = re.search(r"([0-9a-f]+) +4 OBJECT +GLOBAL +DEFAULT +(\d+) tracer_load_mode", table).groups()
        address, offset = re.search(rf"\[ *{section}\] \.data +PROGBITS +([0-9a-f]+) ([0-9a-f]+)", table).groups()
        place = int(value, 16) - int(address, 16) + int(offset, 16)
        expect(data[place:place + 4] == bytes(4), "not 0")
        struct.pack_into("<I", data, place, 1)
        self.agent = self.path("libtracer.so")
        suite.write(self.agent, bytes(data), 0o755)

    def bare_environment(self, **variables):
        whole = {**super().bare_environment(), "AGENT": self.agent, "TRACES": self.traces}
        return {name: value for name, value in whole.items() if not name.startswith("TRACER_")} | variables

    def program(self, source, *words, name="program", **options):
        return self.build(name, *words, "-lpart", "-lpthread", "-ldl", source=TASK + source, **options)

    def plugins(self):
        """libcaller.so needs libsecond.so, whose foo it is to call, and not that of libfirst.so."""
        self.build("libfirst.so", "-shared", "-fPIC", source="int foo(void) { return 1; }")
        self.build("libsecond.so", "-shared", "-fPIC", source="int foo(void) { return 2; }")
        self.build("libcaller.so", "-shared", "-fPIC", "-Wl,-z,lazy", "-lsecond",
                   source="int foo(void); int bar(void) { int n = foo(); __asm__ volatile(\"\"); return n; }")

    def named_any(self):
        return self.checked_traces()

    def named(self, **options):
        """Traces by name; none has a start, and each is complete."""
        found = {os.path.basename(trace.path)[:-6]: trace for trace in self.checked_traces(**options)}
        for trace in found.values():
            expect(trace.header["state"] == tracefile.FINISHED, f"{trace.path}: {trace.state}")
        return found


ONCE_MAIN = r"""
int main(void) {
    find();
    for (int n = 0; n < 50; n++) after(n);
    CHECK(detach && in_a_task(0) == %d);
    for (int n = 0; n < 50; n++) after(n);
    CHECK(in_a_task(settings_for("first", 0)) == 0);
    for (int n = 0; n < 100; n++) after(n);
    CHECK(in_a_task(settings_for("again", 0)) == %d);
    for (int n = 0; n < 10; n++) after(n);
    CHECK(in_a_task(0) == 0);
    for (int n = 0; n < 1000; n++) after(n);
    CHECK(in_a_task(0) == %d);
    CHECK(in_a_task(settings_for("second", 0)) == 0);
    for (int n = 0; n < 7; n++) after(n);
    CHECK(deep(30) == 30);
    return 0;
}
""" % (11, 1, 11)


def records_between_attach_and_detach_alone(test):
    for how in ("lazy", "now"):
        test.start(test.program(ONCE_MAIN, "-Wl,-z," + how))
        traces = test.named()
        expect(set(traces) == {"first", "second"}, sorted(traces))
        first, second = late.counts(traces["first"]), late.counts(traces["second"])
        expect(first["after"] == 110 and second["after"] == 7 and second["deep"] == 31, f"{first} {second}")
        for trace in traces.values():
            late.has_no_start(test, trace)


LOOP_MAIN = r"""
enum { THREADS = 3, TIMES = %d, CALLS = 400 };
static volatile int stop, phase;
static int in_phase;
static void *run(void *number) { /* between the phases it calls all the while */
    int seen = 0;
    long n = 0;
    while (!stop) {
        if (phase > seen) {
            seen = phase;
            for (int i = 0; i < CALLS; i++) CHECK(after(i) == i + 2);
            CHECK(deep(10) == 10);
            __atomic_fetch_add(&in_phase, 1, __ATOMIC_SEQ_CST);
        }
        CHECK(before(n) == n + 1);
        free(malloc(50));
        n++;
    }
    return number;
}
int main(void) {
    find();
    pthread_t threads[THREADS];
    for (long n = 0; n < THREADS; n++) CHECK(!pthread_create(&threads[n], 0, run, (void *)n));
    for (int time = 0; time < TIMES; time++) {
        char name[40];
        sprintf(name, "t%%d", time);
        int result = in_a_task(settings_for(name, 0));
        if (result) fprintf(stderr, "attach %%d: %%d\n", time, result);
        CHECK(result == 0);
        phase++;
        while (__atomic_load_n(&in_phase, __ATOMIC_SEQ_CST) < THREADS * (time + 1)) sched_yield();
        CHECK(in_a_task(0) == 0);
    }
    stop = 1;
    for (int n = 0; n < THREADS; n++) CHECK(!pthread_join(threads[n], 0));
    return 0;
}
"""


def records_every_call_of_each_of_many_attaches(test):
    times = 12 if not harness.EMULATOR else 4
    for how in ("now", "lazy"):
        test.start(test.program(LOOP_MAIN % times, "-Wl,-z," + how))
        traces = test.named()
        expect(len(traces) == times, sorted(traces))
        for name, trace in traces.items():
            found = late.counts(trace)
            expect(found["after"] == 3 * 400 and found["deep"] == 3 * 11, f"{how} {name}: {found}")
            late.has_no_start(test, trace)



# Functions that begin in as many ways as compilers make them begin. `inner` is called three times by each `saves` and once by each `frames`.
KINDS = r"""
APART long inner(long n) { __asm__ volatile(""); return n * 3 + 1; }
APART long leaf(long n) { __asm__ volatile(""); return n + 1; }
APART long two_bytes(long n) { __asm__ volatile("" : "+r"(n)); return n; }
APART long zero(void) { __asm__ volatile(""); return 0; }
APART long loops(long n) { long sum = 0; do { sum += n ^ (sum >> 3); __asm__ volatile("" : "+r"(sum)); } while (--n > 0); return sum; }
APART long saves(long a, long b, long c, long d, long e, long f, long g) {
    long x = inner(a + b), y = inner(c + d), z = inner(e + f);
    __asm__ volatile("" : "+r"(x), "+r"(y), "+r"(z));
    return x + 3 * y + 5 * z + 7 * g + a;
}
APART long recursive(long n) { long below = n > 0 ? recursive(n - 1) : 0; __asm__ volatile("" : "+r"(below)); return below + n; }
APART long tail(long n) { __asm__ volatile(""); return leaf(n * 3); }
APART long varied(int count, ...) {
    va_list list;
    long sum = 0;
    va_start(list, count);
    while (count-- > 0) sum += va_arg(list, long);
    va_end(list);
    return sum;
}
APART double floats(double x, double y) { __asm__ volatile("" : "+x"(x)); return x * 2 + y; }
APART long frames(long n) {
    volatile unsigned char bytes[3000];
    for (int i = 0; i < 16; i++) bytes[i * 7] = (unsigned char)(n + i);
    return inner(bytes[21]) + bytes[49];
}
static long (*volatile pointer)(long) = leaf;
static volatile long wrong;
APART void all(long n) {
    long m = n & 0xffff;
    if (leaf(n) != n + 1 || two_bytes(n) != n || zero() || tail(n) != n * 3 + 1 || pointer(n) != n + 1) wrong++;
    if (saves(m, 2, 3, 4, 5, 6, 7) != m + 7 * 7 + (m + 2) * 3 + 1 + 3 * 22 + 5 * 34) wrong++;
    if (recursive(5) != 15 || varied(3, m, 10L, 20L) != m + 30 || floats((double)m, 1) != (double)m * 2 + 1) wrong++;
    if (loops(1) != 1) wrong++;
    if (frames(m) != (long)(unsigned char)(m + 3) * 3 + 1 + (unsigned char)(m + 7)) wrong++;
}
"""
# Calls of each by one of `all`.
IN_ONE = {"all": 1, "leaf": 3, "two_bytes": 1, "zero": 1, "tail": 1, "saves": 1, "inner": 4, "recursive": 6, "varied": 1, "floats": 1, "loops": 1, "frames": 1}



def family(prefix):
    """The functions under names of their own."""
    return re.sub(r"\b(" + "|".join([*IN_ONE, "pointer", "wrong"]) + r")\b", prefix + r"\1", KINDS)


FUNCTIONS_MAIN = "#include <stdarg.h>\n" + family("busy_") + family("exact_") + r"""
enum { THREADS = 3, CALLS = 100 };
static volatile int stop, phase;
static int in_phase;
static void *run(void *number) { /* between the phases it calls all the while */
    int seen = 0;
    for (long n = (long)number; !stop; n++) {
        if (phase > seen) {
            seen = phase;
            for (int i = 0; i < CALLS; i++) exact_all(i);
            __atomic_fetch_add(&in_phase, 1, __ATOMIC_SEQ_CST);
        }
        busy_all(n);
    }
    return number;
}
static void handler(int number) { (void)number; busy_all(3); }
int main(int count, char **words) {
    find();
    CHECK(count > 2);
    signal(SIGUSR1, handler);
    pthread_t threads[THREADS];
    for (long n = 0; n < THREADS; n++) CHECK(!pthread_create(&threads[n], 0, run, (void *)n));
    for (int time = 0; time < atoi(words[1]); time++) {
        char name[40];
        sprintf(name, "t%d", time);
        int result = in_a_task(settings_for(name, words[2]));
        if (result) fprintf(stderr, "attach %d: %d\n", time, result);
        CHECK(result == 0);
        phase++;
        while (__atomic_load_n(&in_phase, __ATOMIC_SEQ_CST) < THREADS * (time + 1)) pthread_kill(threads[time % THREADS], SIGUSR1), sched_yield();
        CHECK(in_a_task(0) == 0);
        if (count > 3) {
            char path[4096];
            sprintf(path, "%s/%s.trace", getenv("TRACES"), name);
            unlink(path);
        }
    }
    stop = 1;
    for (int n = 0; n < THREADS; n++) CHECK(!pthread_join(threads[n], 0));
    CHECK(busy_wrong == 0 && exact_wrong == 0);
    return 0;
}
"""


def functions_setting(test, program, globs="*", *more):
    harness.plan(test.settings, program, test.made)
    return " ".join([f"TRACER_FUNCTIONS={globs}", f"XDG_CACHE_HOME={harness.CACHES}", *more])


def records_functions_beside_threads_that_run_them(test):
    """Every call of each attach, however the functions begin; what a handler interrupts goes on as it was."""
    times = 6 if not harness.EMULATOR else 3
    for options in (("-O0",), ("-O1",), ("-O2",), ("-Os",), ("-O2", "-fno-omit-frame-pointer"), ("-O2", "-fcf-protection")):
        if harness.EMULATOR and "-fcf-protection" in options:
            continue
        program = test.program(FUNCTIONS_MAIN, "-Wl,-z,now", *options, name="program" + "".join(options))  # each has a plan of its own
        test.start(program, str(times), functions_setting(test, program))
        traces = test.named(walk=False)
        expect(len(traces) == times, sorted(traces))
        for name, trace in traces.items():
            rows = {row["name"]: row["calls"] for row in test.json("report", trace.path)["functions"]}
            flags = test.json("info", trace.path)["flags"]
            wanted = {"exact_" + function: count * 3 * 100 for function, count in IN_ONE.items()}
            found = {function: rows.get(function, 0) for function in wanted}
            wrong = {function: (count, wanted[function]) for function, count in found.items() if count != wanted[function]}
            expect(not wrong, f"{options} {name}: {wrong} {flags}")


def leaves_the_code_of_functions_as_it_was(test):
    """Three hundred times, while threads run them."""
    program = test.program(FUNCTIONS_MAIN, "-Wl,-z,now", "-O2")
    test.start(program, "300" if not harness.EMULATOR else "20", functions_setting(test, program), "unlinks")


CHANGED_MAIN = r"""
#ifdef __x86_64__
#define OVER "jmp 1f"
#else
#define OVER "b 1f"
#endif
extern unsigned char spare[];
/* With bytes that nobody executes. */
__attribute__((noinline, noclone)) static long one(long n) {
    __asm__ volatile(OVER "\n.globl spare\nspare: .rept 16\nnop\n.endr\n1:");
    return n + 1;
}
static unsigned char *page, was[65536];
static size_t size;
static void change(unsigned char value) {
    CHECK(!mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC));
    spare[5] = value;
    CHECK(!mprotect(page, size, PROT_READ | PROT_EXEC));
    was[spare + 5 - page] = value;
}
/* Kilobytes of the program's code that are the process's own. */
static long own_code(void) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[4096];
    long sum = 0, number;
    int isCode = 0;
    CHECK(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2) isCode = (unsigned long)spare >= low && (unsigned long)spare < high;
        if (isCode && sscanf(line, "Anonymous: %ld", &number) == 1) sum += number;
    }
    fclose(file);
    return sum;
}
int main(int count, char **words) {
    find();
    CHECK(count == 3 && one(1) == 2);
    size = sysconf(_SC_PAGESIZE);
    page = (unsigned char *)((unsigned long)spare & ~(size - 1));
    memcpy(was, page, size);
    for (int time = 0; time < 6; time++) {
        char name[40];
        sprintf(name, "t%d", time);
        if (time == 2) change(0xcc); /* before */
        CHECK(in_a_task(settings_for(name, words[1])) == 0);
        for (int n = 0; n < 10; n++) CHECK(one(n) == n + 1);
        CHECK(memcmp(was, page, size));
        if (time == 3) change(0x0f); /* and while others have changed the page */
        if (time == 4) change(0x90);
        CHECK(in_a_task(0) == 0);
        CHECK(!memcmp(was, page, size) && one(1) == 2);
        if (time < 2 && !atoi(words[2])) CHECK(own_code() == 0);
    }
    return 0;
}
"""


def leaves_what_others_change_in_the_code(test):
    """Before it is attached to and while it is: all else is as it was, and the file's own pages where nobody has changed anything."""
    program = test.program(CHANGED_MAIN, "-Wl,-z,now", "-O1")
    test.start(program, functions_setting(test, program, "one"), "1" if harness.EMULATOR else "0")
    for name, trace in test.named(walk=False).items():
        rows = {row["name"]: row["calls"] for row in test.json("report", trace.path)["functions"]}
        expect(rows.get("one") == 10, f"{name}: {rows}")


REPLACED_MAIN = r"""
/* Its first three instructions are replaced; it is the third that becomes a jump, and the second that is another later. */
__asm__(".pushsection .text; .p2align 4; .globl two; .type two, @function; two: push %rbx; mov %rdi, %rbx; lea 1(%rbx), %rax; pop %rbx; ret; .size two, . - two; .popsection");
long two(long, long);
static void change(unsigned char value) {
    size_t size = sysconf(_SC_PAGESIZE);
    unsigned char *byte = (unsigned char *)two + 3, *page = (unsigned char *)((unsigned long)byte & ~(size - 1));
    CHECK(!mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC));
    *byte = value;
    CHECK(!mprotect(page, size, PROT_READ | PROT_EXEC));
}
int main(int count, char **words) {
    find();
    CHECK(count == 2 && ((unsigned char *)two)[3] == 0xfb);
    for (int time = 0; time < 4; time++) {
        char name[40];
        int is_second = time == 1 || time == 2; /* mov %rsi, %rbx */
        sprintf(name, "t%d", time);
        change(is_second ? 0xf3 : 0xfb);
        CHECK(in_a_task(settings_for(name, words[1])) == 0);
        for (long n = 0; n < 10; n++) CHECK(two(n, n + 100) == n + (is_second ? 101 : 1));
        CHECK(in_a_task(0) == 0);
        CHECK(two(1, 2) == 2 + is_second && ((unsigned char *)two)[3] == (is_second ? 0xf3 : 0xfb));
    }
    return 0;
}
"""


def leaves_functions_that_are_others_since(test):
    """What was made of a function's first bytes when it was attached to before is not what the process executes now."""
    if build.ARCHITECTURE != "x86_64":
        raise harness.Skipped("there an instruction by itself is replaced")
    program = test.program(REPLACED_MAIN, "-Wl,-z,now", "-O1")
    test.start(program, functions_setting(test, program, "two"))
    for name, trace in test.named(walk=False).items():
        rows = {row["name"]: row["calls"] for row in test.json("report", trace.path)["functions"]}
        expect(rows.get("two", 0) == (0 if name in ("t1", "t2") else 10), f"{name}: {rows}")


# What stands before the jump is undone, is interrupted in the middle, is jumped to, or is too short: each by itself. x86-64.
ENTRIES = {
    "copies": ("push %rbx; mov %rdi, %rbx; rep movsb; mov %rbx, %rax; pop %rbx", "copies(n) == n"),
    "short_sum": ("lea 1(%edi), %eax", "short_sum(n) == n + 1"),
    "short_move": ("mov %edi, %eax", "short_move(n) == n"),
    "nothing": ("xor %eax, %eax", "nothing(n) == 0"),
    "pushes_itself": ("push %rsp; pop %rax; sub %rsp, %rax", "pushes_itself(n) == 0"),
    "makes_room": ("sub $24, %rsp; xor %eax, %eax; mov %rdi, 8(%rsp); add 8(%rsp), %rax; add $24, %rsp", "makes_room(n) == n"),
    "saves_one": ("push %rbx; mov %edi, %ebx; xor %eax, %eax; add %ebx, %eax; pop %rbx", "saves_one(n) == n"),
    "turns": ("1: add %rsi, %rdx; dec %rdi; jnz 1b; mov %rdx, %rax", "turns(5, 2, 1) == 11"),
    "turns_inside": ("xor %eax, %eax; 1: add %edi, %eax; dec %edi; jnz 1b", "turns_inside(4) == 10"),
    "turns_saved": ("push %rbx; xor %ebx, %ebx; 1: add %edi, %ebx; dec %edi; jnz 1b; mov %ebx, %eax; pop %rbx", "turns_saved(4) == 10"),
    "padded": (".byte 0x90, 0x90, 0x90, 0x90, 0x90; lea 2(%rdi), %rax", "padded(n) == n + 2"),
    "framed": ("push %rbp; mov %rsp, %rbp; push %r15; push %r14; mov %rdi, %r15; lea 3(%r15), %rax; pop %r14; pop %r15; pop %rbp", "framed(n) == n + 3"),
    "marked": ("endbr64; push %r12; mov %rdi, %r12; lea 4(%r12), %rax; pop %r12", "marked(n) == n + 4"),
    "calls": ("call framed; add $1, %rax", "calls(n) == n + 4"),
    "saves_and_calls": ("push %rbx; call framed; pop %rbx", "saves_and_calls(n) == n + 3"),
    "exchanges": ("push %rdi; mov %rsi, %rdi; mov %rdi, %rax; pop %rdi; sub %rdi, %rax", "exchanges(n, n + 9) == 9"),
    "saves_result": ("push %rax; xor %eax, %eax; add %rdi, %rax; pop %rcx", "saves_result(n) == n"),
    "saves_six": ("push %r15; push %r14; push %r13; push %r12; push %rbp; push %rbx; mov %rdi, %rbx; lea 5(%rbx), %rax; pop %rbx; pop %rbp; pop %r12;"
                  " pop %r13; pop %r14; pop %r15", "saves_six(n) == n + 5"),
}
ENTRIES_MAIN = "".join(f"""
__asm__(".pushsection .text; .p2align 4; .globl {name}; .type {name}, @function; {name}: {code}; ret; .size {name}, . - {name}; .p2align 4; .popsection");
long {name}();
""" for name, (code, _) in ENTRIES.items()) + r"""
static volatile int stop;
static long moved(long n) { /* 4th argument: how many bytes are copied; interrupted in the middle again and again */
    static __thread char from[20000], to[20000];
    memset(from, (int)n, sizeof from);
    memset(to, (int)n + 1, sizeof to);
    if (copies(to, from, 0L, (long)sizeof from) != (long)to) return -1;
    return memcmp(from, to, sizeof from) ? -1 : n;
}
#define copies(n) moved(n)
static void all(long n) { CHECK(""" + " && ".join(condition for _, condition in ENTRIES.values()) + r"""); }
#undef copies
static void *run(void *number) { for (long n = (long)number; !stop; n = (n + 1) & 0xffff) all(n); return number; }
static void handler(int number) { (void)number; }
int main(int count, char **words) {
    find();
    CHECK(count == 2);
    signal(SIGUSR1, handler);
    pthread_t threads[3];
    for (long n = 0; n < 3; n++) CHECK(!pthread_create(&threads[n], 0, run, (void *)n));
    for (int time = 0; time < 200; time++) {
        CHECK(in_a_task(settings_for("a", words[1])) == 0);
        for (int n = 0; n < 50; n++) all(n), pthread_kill(threads[n % 3], SIGUSR1);
        CHECK(in_a_task(0) == 0);
        if (time < 199) {
            char path[4096];
            sprintf(path, "%s/a.trace", getenv("TRACES"));
            unlink(path);
        }
    }
    stop = 1;
    for (int n = 0; n < 3; n++) CHECK(!pthread_join(threads[n], 0));
    return 0;
}
"""


def keeps_what_functions_do_however_they_begin(test):
    if harness.EMULATOR:
        raise Skipped("the instructions are x86-64's")
    program = test.program(ENTRIES_MAIN, "-Wl,-z,now", "-w")
    test.start(program, functions_setting(test, program))
    trace, = test.checked_traces(walk=False)
    rows = {row["name"]: row["calls"] for row in test.json("report", trace.path)["functions"]}
    missing = {name for name in ENTRIES if rows.get(name, 0) < 50}
    # Its first instruction may be interrupted in the middle; a jump leads back behind the first instruction of a short one.
    expect(missing <= {"copies"}, f"{missing}: {rows}")


SLOTS_MAIN = r"""
#include <link.h>
static uint64_t sums[2];
static int which;
/* All writable pages of a module that a file was mapped for, but the agent's: relocated slots and what else the loader wrote. */
static int sum_of(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "libtracer") || strstr(info->dlpi_name, "ld-") || strstr(info->dlpi_name, "vdso")) return 0;
    for (int n = 0; n < info->dlpi_phnum; n++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[n];
        if (header->p_type != PT_GNU_RELRO) continue;
        for (uint64_t *word = (uint64_t *)(info->dlpi_addr + header->p_vaddr); word + 1 <= (uint64_t *)(info->dlpi_addr + header->p_vaddr + header->p_memsz); word++)
            sums[which] = sums[which] * 31 + *word;
    }
    return 0;
}
static void all(void) { for (int n = 0; n < 10; n++) { after(n); before(n); free(malloc(10)); deep(3); } }
int main(void) {
    find();
    unsigned char hook[16];
    memcpy(hook, (void *)_r_debug.r_brk, 16);
    all();
    dl_iterate_phdr(sum_of, 0);
    CHECK(in_a_task(settings_for("a", 0)) == 0);
    all();
    CHECK(in_a_task(0) == 0);
    which = 1;
    dl_iterate_phdr(sum_of, 0);
    CHECK(sums[0] == sums[1]);
#ifdef __x86_64__
    int ret = hook[0] == 0xc3 ? 0 : 4;
    CHECK(!memcmp(hook, (void *)_r_debug.r_brk, ret + 1)); /* behind the return is padding */
#else
    CHECK(!memcmp(hook, (void *)_r_debug.r_brk, 8));
#endif
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    while (fgets(line, sizeof line, maps)) CHECK(!strstr(line, ".trace"));
    fclose(maps);
    struct sigaction action;
    CHECK(!sigaction(SIGBUS, 0, &action) && action.sa_handler == SIG_DFL);
    return 0;
}
"""


def leaves_slots_hook_signals_and_mappings_as_they_were(test):
    for how in ("now", "lazy"):
        test.start(test.program(SLOTS_MAIN, "-Wl,-z," + how))
        found = late.counts(test.named()["a"])
        expect(found["after"] == 10 and found["deep"] == 40, found)


BLOCKED_MAIN = r"""
static int pipes[2];
static void *waits(void *number) {
    char byte;
    for (int n = 0; n < 3; n++) CHECK(read(pipes[0], &byte, 1) == 1);
    for (int n = 0; n < 20; n++) after(n);
    return number;
}
static long inner(long n) { /* open from the first attach on, while the second begins */
    CHECK(in_a_task(0) == 0);
    for (int i = 0; i < 5; i++) after(i);
    CHECK(in_a_task(settings_for("second", 0)) == 0);
    for (int i = 0; i < 3; i++) after(i);
    return n + 1;
}
int main(void) {
    find();
    CHECK(!pipe(pipes));
    pthread_t thread;
    CHECK(!pthread_create(&thread, 0, waits, 0));
    usleep(1000);
    CHECK(in_a_task(settings_for("first", 0)) == 0);
    CHECK(write(pipes[1], "x", 1) == 1);
    usleep(3000); // the thread is in a recorded read
    for (int i = 0; i < 9; i++) after(i);
    CHECK(calls_back(inner, 1) == 3);
    CHECK(write(pipes[1], "xx", 2) == 2);
    CHECK(!pthread_join(thread, 0));
    for (int i = 0; i < 2; i++) after(i);
    return 0;
}
"""


def lets_calls_return_that_were_open_when_it_was_detached(test):
    """They are open at the end of the first trace, and from the beginning of the second."""
    test.start(test.program(BLOCKED_MAIN, "-Wl,-z,now"))
    traces = test.named()
    first, second = late.counts(traces["first"]), late.counts(traces["second"])
    expect(first["after"] == 9 and second["after"] == 3 + 20 + 2, f"{first} {second}")


COMES_MAIN = r"""
static void opens(void) {
    void *caller = dlopen("libcaller.so", RTLD_LAZY);
    CHECK(caller);
    int (*bar)(void) = (int (*)(void))dlsym(caller, "bar");
    CHECK(bar() == 2 && !dlclose(caller));
}
static volatile int stop;
static void *run(void *number) { while (!stop) opens(); return number; }
int main(int count, char **words) {
    find();
    CHECK(dlopen("libfirst.so", RTLD_LAZY));
    pthread_t threads[2];
    for (long n = 0; n < 2; n++) CHECK(!pthread_create(&threads[n], 0, run, (void *)n));
    for (int time = 0; time < 10; time++) {
        char name[40];
        sprintf(name, "t%d", time);
        CHECK(in_a_task(settings_for(name, count > 1 ? words[1] : 0)) == 0);
        for (int n = 0; n < 20; n++) opens();
        CHECK(in_a_task(0) == 0);
        for (int n = 0; n < 20; n++) opens();
    }
    stop = 1;
    for (int n = 0; n < 2; n++) CHECK(!pthread_join(threads[n], 0));
    return 0;
}
"""


def follows_modules_that_come_and_go_between_attaches(test):
    test.plugins()
    test.start(test.program(COMES_MAIN, "-Wl,-z,now"))
    traces = test.named()
    expect(len(traces) == 10, sorted(traces))
    all_counts = [late.counts(trace) for trace in traces.values()]
    expect(all(found["dlopen"] >= 20 for found in all_counts), all_counts)
    # A thread that is looking foo up when the slot is bound leaves it unrecorded until the module is loaded again (process.md).
    expect(sum(found["foo"] for found in all_counts) >= 20, all_counts)


def records_functions_of_modules_that_come_and_go(test):
    """They are called by pointer: no slot leads there."""
    test.plugins()
    program = test.program(COMES_MAIN, "-Wl,-z,now")
    test.start(program, functions_setting(test, program, "libcaller.so!*:opens"))
    traces = test.named(walk=False)
    expect(len(traces) == 10, sorted(traces))
    for trace in traces.values():
        rows = {row["name"]: row["calls"] for row in test.json("report", trace.path)["functions"]}
        # 20 are the main thread's. Two others may have had one of the calls under way when recording began or ended.
        expect(rows.get("bar", 0) >= 20 and abs(rows["bar"] - rows["opens"]) <= 4, rows)


FORK_MAIN = r"""
int main(int count, char **words) {
    find();
    CHECK(in_a_task(settings_for("parent.%p", count > 1 ? words[1] : 0)) == 0);
    for (int n = 0; n < 5; n++) after(n);
    pid_t child = fork();
    if (child == 0) {
        for (int n = 0; n < 30; n++) after(n);
        if (fork() == 0) execl("/bin/true", "true", (char *)0);
        wait(0);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(in_a_task(0) == 0);
    if (fork() == 0) { for (int n = 0; n < 30; n++) after(n); CHECK(in_a_task(settings_for("never", 0)) == 8); exit(0); }
    CHECK(wait(&status) > 0 && status == 0);
    return 0;
}
"""


def records_forked_children_as_the_setting_says(test):
    program = test.program(FORK_MAIN, "-Wl,-z,now")
    for setting, wanted in ((None, [0, 5, 30]), ("TRACER_CHILDREN=off", [5])):
        test.start(program, *([setting] if setting else []))
        traces = test.named_any()
        expect(sorted(late.counts(trace)["after"] for trace in traces) == wanted, [late.counts(trace) for trace in traces])


SETTINGS_MAIN = r"""
int main(void) {
    find();
    CHECK(in_a_task(settings_for("no/such/directory", 0)) == 3);
    CHECK(in_a_task(settings_for("first", "TRACER_INCLUDE=after TRACER_FUNCTIONS=*")) == 0);
    for (int n = 0; n < 5; n++) after(n), before(n);
    CHECK(in_a_task(0) == 0);
    CHECK(in_a_task(settings_for("other", "TRACER_CALLSITES=on")) == 7);
    CHECK(in_a_task(settings_for("second", "TRACER_MINMS=1000")) == 0);
    for (int n = 0; n < 5; n++) after(n), before(n);
    CHECK(in_a_task(0) == 0);
    CHECK(in_a_task(settings_for("third", 0)) == 0);
    for (int n = 0; n < 6; n++) after(n), before(n);
    return 0;
}
"""


def takes_settings_from_the_text_and_says_nothing_on_stderr(test):
    test.start(test.program(SETTINGS_MAIN, "-Wl,-z,now"))
    traces = test.named()
    expect(set(traces) == {"first", "second", "third"}, sorted(traces))
    first, second, third = (late.counts(traces[name]) for name in ("first", "second", "third"))
    expect(first["after"] == 5 and not first["before"], first)
    expect(not second["after"], second)
    expect(third["after"] == 6 and third["before"] >= 6, third)
    expect(traces["first"].header["flags"] & tracefile.NO_START, "it says that it saw the start")


BESIDE_MAIN = r"""
#include <stdexcept>
static volatile int stop;
static void *brief(void *number) { for (int n = 0; n < 20; n++) after(n); return number; }
static void *creates(void *unused) {
    while (!stop) {
        pthread_t threads[4];
        for (int n = 0; n < 4; n++) CHECK(!pthread_create(&threads[n], 0, brief, 0));
        for (int n = 0; n < 4; n++) CHECK(!pthread_join(threads[n], 0));
    }
    return unused;
}
static void *forks(void *unused) {
    while (!stop) {
        int status;
        pid_t child = fork();
        if (child == 0) { for (int n = 0; n < 30; n++) after(n); _exit(5); }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
    return unused;
}
static void *vforks(void *unused) {
    while (!stop) {
        int status;
        pid_t child = vfork();
        if (child == 0) { execl("/bin/true", "true", (char *)0); _exit(9); }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return unused;
}
static long thrower(long n) { if (n % 3 == 0) throw std::runtime_error("third"); return n; }
static void *throws(void *unused) {
    for (long n = 0, caught = 0; !stop; n += 30) {
        CHECK(caught * 3 == n);
        for (int i = 0; i < 30; i++) try { calls_back(thrower, i); } catch (const std::runtime_error &) { caught++; }
    }
    return unused;
}
static void handler(int unused) { (void)unused; after(1); }
static void *signals(void *thread) { while (!stop) { pthread_kill(*(pthread_t *)thread, SIGUSR1); usleep(100); } return 0; }
static void *opens(void *unused) {
    while (!stop) {
        void *caller = dlopen("libcaller.so", RTLD_LAZY);
        CHECK(caller);
        int (*bar)(void) = (int (*)(void))dlsym(caller, "bar");
        CHECK(bar() == 2 && !dlclose(caller));
    }
    return unused;
}
int main(int count, char **words) {
    find();
    signal(SIGUSR1, handler);
    CHECK(dlopen("libfirst.so", RTLD_LAZY));
    void *(*bodies[])(void *) = {creates, throws, opens, signals, forks, vforks};
    pthread_t threads[6];
    for (int n = 0; n < 6; n++) CHECK(!pthread_create(&threads[n], 0, bodies[n], &threads[1]));
    for (int time = 0; time < TIMES; time++) {
        char name[40];
        sprintf(name, "t%d", time);
        CHECK(in_a_task(settings_for(name, count > 1 ? words[1] : "TRACER_CHILDREN=off")) == 0);
        usleep(500);
        CHECK(in_a_task(0) == 0);
    }
    stop = 1;
    for (int n = 0; n < 6; n++) CHECK(!pthread_join(threads[n], 0));
    return 0;
}
"""


def changes_nothing_beside_threads_that_do_what_programs_do(test):
    """They create threads, throw, load and unload, get signals, fork and vfork all the while."""
    test.plugins()
    test.start(test.program(BESIDE_MAIN, "-Wl,-z,lazy", "-DTIMES=15", driver=build.DRIVERS["gcc"][".cpp"]))
    expect(len(test.named(walk=False)) == 15, "traces")


def changes_nothing_where_all_functions_are_recorded_beside_such_threads(test):
    """Functions of the program and of every library, libc's included."""
    test.plugins()
    program = test.program(BESIDE_MAIN, "-Wl,-z,lazy", "-DTIMES=15", driver=build.DRIVERS["gcc"][".cpp"])
    for children in ("off", "on"):
        test.start(program, functions_setting(test, program, "*:*!*", "TRACER_CHILDREN=" + children, "TRACER_MODE=ring", "TRACER_MAXSIZE=8M"))
        found = test.json("info", test.trace("t3.trace"))["flags"] if children == "off" else None
        expect(found is None or any("functions recorded" in text for text in found), found)


def tests():
    return suite.tests_of(__name__, Attach)


# An emulator of user programs does not know what a page that a fork wipes is to a child of vfork.
MODES = {"slots": "*", "arm": "records* leaves* lets* follows* takes*"}
