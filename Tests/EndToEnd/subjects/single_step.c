// A signal at every instruction of traced calls. The parent is the child's debugger: in round k it lets k
// instructions of the call pass, then delivers SIGUSR1. `signal`: the handler makes traced calls of its own, which
// proves the agent's order of instructions. `unwind`: the handler unwinds its stack and must find the interrupted
// caller, which proves the trampolines' CFI. `first_call`: the stepped call is the first of a new thread, sampled.
// `other`, `beside`: on another stack, and on the own one, while a call is open on another stack.
// First a leaf call, to whose k-th instruction it runs at full speed, by a breakpoint. Then a call with calls inside, step by
// step: that takes so long that times do not fit into events, and the agent takes its slow paths.
// (Not with the CPU's trap flag: a trap while signals are blocked, as they are on the agent's slow path, kills.)
// library: stepped
// link: -Wl,-z,now
// case: signal signal
// case: first_call first_call
// case: unwind unwind
// case: signal_on_other_stack signal other
// case: unwind_on_other_stack unwind other
// case: signal_while_other_is_open signal beside
// case: unwind_while_other_is_open unwind beside
// case: signal_by_the_kernels_clock TRACER_CLOCK=monotonic signal
// case: unwind_by_the_kernels_clock TRACER_CLOCK=monotonic unwind
// case: unwind_on_other_stack_by_the_kernels_clock TRACER_CLOCK=monotonic unwind other
// tree: none the subject counts its calls
// architecture: x86_64 its registers and instructions
// modes: call_sites
#include "subject.h"
#include "part_other_stack.h"
#include <sys/ptrace.h>
#include <unwind.h>
long step_outer(long value);
long step_inner(long value);
void step_handler(void);
void step_around(void (*body)(void));
#ifdef LIB_stepped
EXPORT void step_around(void (*body)(void)) { body(); OPAQUE(); }
EXPORT long step_inner(long value) { return value + 1; }
EXPORT long step_outer(long value) { long r = step_inner(value); OPAQUE(); return r + step_inner(value); }
EXPORT void step_handler(void) { OPAQUE(); }
#else
struct shared { volatile unsigned long rounds, leaves, handled, lost, stepping, finished; volatile pid_t pid; };
static struct shared *shared;
static int unwinding, threads, other, beside;
static ucontext_t own_context, other_context;
long stepped(long value), stepped_leaf(long value);
extern char stepped_end[];
#define STEPPED(NAME, CALLED)                                                                                                              \
    ".globl " NAME "\n.type " NAME ",@function\n" NAME ":\n.cfi_startproc\n push %rbx\n.cfi_adjust_cfa_offset 8\n"                       \
    ".cfi_offset %rbx,-16\n int3\n call " CALLED "@PLT\n int3\n pop %rbx\n.cfi_adjust_cfa_offset -8\n ret\n"                            \
    ".cfi_endproc\n.size " NAME ",.-" NAME "\n"
__asm__(".text\n" STEPPED("stepped", "step_outer") STEPPED("stepped_leaf", "step_inner") ".globl stepped_end\nstepped_end:\n");
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *found) {
    char *pc = (char *)_Unwind_GetIP(context);
    if (pc >= (char *)stepped && pc < stepped_end) *(int *)found = 1;
    return _URC_NO_REASON;
}
static void handler(int signal) {
    (void)signal;
    shared->handled++;
    if (unwinding) {
        int found = 0;
        _Unwind_Backtrace(each, &found);
        if (!found) shared->lost++;
    } else step_handler();
}
static void *once(void *unused) {
    if (threads || shared->stepping) {
        CHECK(stepped(41) == 84);
        shared->rounds++;
    } else {
        CHECK(stepped_leaf(41) == 42);
        shared->leaves++;
    }
    return unused;
}
static void each_round(void) {
    while (!shared->finished) {
        pthread_t thread;
        if (threads) CHECK(!pthread_create(&thread, NULL, once, NULL) && !pthread_join(thread, NULL));
        else once(NULL);
    }
}
static void other_rounds(void) {
    if (other) each_round();
    CHECK(!swapcontext(&other_context, &own_context));
}
static void other_body(void) { step_around(other_rounds); }
static void child(void) {
    CHECK(step_outer(1) == 4);
    int found = 0;
    _Unwind_Backtrace(each, &found); // libgcc's caches are warm
    struct sigaction action = {.sa_handler = handler};
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    CHECK(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    raise(SIGSTOP);
    on_other_stack(&other_context, &own_context, other_body);
    if (other || beside) CHECK(!swapcontext(&own_context, &other_context));
    each_round();
    if (other || beside) CHECK(!swapcontext(&own_context, &other_context));
    counted("step_around", other || beside);
    counted("step_outer", shared->rounds + 1);
    counted("step_inner", shared->leaves + 2 * shared->rounds + 2);
    counted("step_handler", unwinding ? 0 : shared->handled);
    exit(0);
}
/// Straight to the kernel: the stepping parent's own calls are of no interest, and there are many.
static long system_call(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
static long trace(long request, pid_t pid, long data) { return system_call(SYS_ptrace, request, pid, 0, data); }
static pid_t wait_any(pid_t pid, int *status) { return (pid_t)system_call(SYS_wait4, pid, (long)status, __WALL, 0); }
/// Waits until some thread of the child stops at a marker; everything else that stops goes on. 0: the child has ended.
static pid_t next_marker(int *ended) {
    for (;;) {
        int status;
        pid_t pid = wait_any(-1, &status);
        CHECK(pid > 0);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            *ended = status;
            if (pid == shared->pid) return 0;
            continue; // a thread
        }
        int signal = WSTOPSIG(status);
        if (signal == SIGTRAP && status >> 16 == 0) return pid;
        // New threads stop with SIGSTOP; clone events are SIGTRAP with an event number.
        long result = trace(PTRACE_CONT, pid, signal == SIGTRAP || signal == SIGSTOP ? 0 : signal);
        CHECK(result == 0 || result == -ESRCH);
    }
}
static long pc_of(pid_t thread) {
    long pc = 0; // the raw request stores the word
    CHECK(!system_call(SYS_ptrace, PTRACE_PEEKUSER, thread, 16 * 8, (long)&pc));
    return pc;
}
static int is_marker(long pc) { return pc >= (long)stepped && pc < (long)stepped_end; } // fork: same addresses on both sides
/// To the next trap of this thread.
static void resume(long request, pid_t thread) {
    int status;
    do {
        CHECK(!trace(request, thread, 0));
        CHECK(wait_any(thread, &status) == thread);
        CHECK(WIFSTOPPED(status));
    } while (WSTOPSIG(status) != SIGTRAP);
}
enum { ARRIVED, AT_END, BEHIND_END };
enum { LONGEST_LEAF = 500 }; // instructions; the rest of a longer one is stepped through as a call with calls inside
/// Single-steps. Returns the number of steps: `most`, or fewer, up to the marker after the call.
static unsigned long step(pid_t thread, unsigned long most) {
    for (unsigned long steps = 0; steps < most; steps++) {
        resume(PTRACE_SINGLESTEP, thread);
        if (steps > 0 && is_marker(pc_of(thread))) return steps;
    }
    return most;
}
/// Runs `steps` instructions at full speed, but single-steps the last one: only its address is not yet known from earlier calls.
/// BEHIND_END: this call has not reached the last but one.
static int run(pid_t thread, unsigned long steps) {
    static long path[4096]; // the call's pc after its first instruction, its second, and so on
    CHECK(steps <= sizeof path / sizeof *path);
    if (steps == 0) return ARRIVED;
    long address = steps > 1 ? path[steps - 2] : 0, passes = 0, code = 0;
    for (unsigned long n = 0; n + 1 < steps; n++) passes += path[n] == address;
    if (passes > 0) CHECK(!system_call(SYS_ptrace, PTRACE_PEEKTEXT, thread, address, (long)&code));
    for (; passes > 0; passes--) {
        CHECK(!system_call(SYS_ptrace, PTRACE_POKETEXT, thread, address, (code & ~0xffL) | 0xcc));
        resume(PTRACE_CONT, thread);
        CHECK(!system_call(SYS_ptrace, PTRACE_POKETEXT, thread, address, code));
        if (pc_of(thread) != address + 1) return BEHIND_END;
        CHECK(!system_call(SYS_ptrace, PTRACE_POKEUSER, thread, 16 * 8, address));
        if (passes > 1) resume(PTRACE_SINGLESTEP, thread);
    }
    resume(PTRACE_SINGLESTEP, thread);
    path[steps - 1] = pc_of(thread);
    return steps > 1 && is_marker(path[steps - 1]) ? AT_END : ARRIVED;
}
int main(int argc, char **argv) {
    CHECK(argc == 2 || argc == 3);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    unwinding = !strcmp(argv[1], "unwind");
    threads = !strcmp(argv[1], "first_call");
    other = argc == 3 && !strcmp(argv[2], "other");
    beside = argc == 3 && !strcmp(argv[2], "beside");
    shared->stepping = threads;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) child();
    shared->pid = pid;
    int status, ended = -1;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    CHECK(!ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
    CHECK(!ptrace(PTRACE_CONT, pid, NULL, 0));
    unsigned long delivered = 0, target = 0, missed = 0, calls = 0, stride = 1;
    for (;;) {
        pid_t thread = next_marker(&ended);
        if (!thread) break;
        int where = AT_END;
        if (shared->finished) {
            CHECK(!trace(PTRACE_CONT, thread, 0));
            continue;
        } else if (!shared->stepping) {
            where = target > LONGEST_LEAF ? AT_END : run(thread, target); // each round looks at all instructions before
        } else if (calls < 3 && !threads) {
            // All steps together are half the square of a call's length, so a long one gets samples: other ones when it unwinds.
            unsigned long steps = step(thread, 60000);
            stride = 1 + steps * steps / 2 / 200000;
            target = unwinding ? stride / 2 : 0;
            calls++; // the first ones are longer
        } else {
            where = step(thread, target) < target ? AT_END : ARRIVED;
            shared->finished = where == AT_END || target > 60000;
        }
        if (where == BEHIND_END) {
            // This call or the one before lost its CPU, and took a slow path. Where all do so it goes on with those.
            target -= target < 4 ? target : 4;
            shared->stepping = ++missed > 500;
            CHECK(!trace(PTRACE_CONT, thread, 0));
            continue;
        }
        if (where == AT_END) {
            shared->stepping = 1;
            CHECK(!trace(PTRACE_CONT, thread, 0));
            CHECK(next_marker(&ended) == thread);
            CHECK(!trace(PTRACE_CONT, thread, 0));
            continue;
        }
        delivered++;
        CHECK(!trace(PTRACE_CONT, thread, SIGUSR1));
        thread = next_marker(&ended); // the one after the call
        CHECK(thread);
        CHECK(!trace(PTRACE_CONT, thread, 0));
        // The first call of a thread is long: each of its first instructions, then samples.
        target += threads && target > 60 ? 1 + target / 12 : shared->stepping ? stride : 1;
    }
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    CHECK(delivered >= 10 && shared->handled == delivered);
    if (shared->lost) fprintf(stderr, "the caller was not found from %lu of %lu instructions\n", shared->lost, delivered);
    CHECK(shared->lost == 0);
    puts("every instruction survived");
    return 0;
}
#endif
