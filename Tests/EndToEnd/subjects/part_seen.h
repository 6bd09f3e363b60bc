// A thread fills registers with patterns and calls through a slot; an observer stops it and looks for them where whoever
// looks for pointers does: in the registers, and on the thread's own stack from its stack pointer upwards. The observer is
// a handler of signals that another thread sends at random (`signal`), a parent that stops it at random by ptrace
// (`ptrace`), or one that stops it after each instruction (`step`).
//
// The program and the callee never touch a callee-saved register, so there each must hold its pattern itself. In the agent,
// libc and the loader a pattern may also lie on the stack; when the stack pointer is on some other stack, such as the
// agent's, all of the thread's own counts. Patterns are new for each call: what an earlier one left on the stack is no use.
#include "part_held.h"
#include <link.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum { PROGRAM, CALLEE, AGENT, AGENT_APART, ELSEWHERE, REGIONS }; // AGENT_APART: signals blocked, or on another stack
static const char *const region_names[REGIONS] = {"the program", "the callee", "the agent", "the agent's slow path", "libc, the loader or a stub"};
#if defined __x86_64__
enum { SAVED = 6, ARGUMENTS = 8, RESULTS = 4, REGISTERS = 15, LOOKS = 4000 };
static const char *const register_names[REGISTERS] = {"rbx", "rbp", "r12", "r13", "r14", "r15", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "rax", "r11"};
static const int saved_registers[SAVED] = {0, 1, 2, 3, 4, 5}, argument_registers[ARGUMENTS] = {6, 7, 8, 9, 10, 11, 12, 13}, result_registers[RESULTS] = {13, 8, 9, 10};
#else
enum { SAVED = 11, ARGUMENTS = 9, RESULTS = 2, REGISTERS = 31, LOOKS = 1500 }; // an emulator takes milliseconds for one
static const char *const register_names[REGISTERS] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
                                                      "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30"};
static const int saved_registers[SAVED] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}, argument_registers[ARGUMENTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, result_registers[RESULTS] = {0, 1};
#endif

/// Shared with an observer in another process.
struct held {
    volatile uint32_t phase, spin;
    void (*volatile target)(void);
    uint64_t saved[11], arguments[9], results[4], out[4], out_saved[11];
    uintptr_t low, top; // bounds of the stack that the patterns' caller runs on
    volatile int finished;
    volatile unsigned long calls, looks, seen[REGIONS];
    char fault[300];
};
_Static_assert(offsetof(struct held, target) == HELD_TARGET && offsetof(struct held, saved) == HELD_SAVED && offsetof(struct held, arguments) == HELD_ARGUMENTS
               && offsetof(struct held, results) == HELD_RESULTS && offsetof(struct held, out) == HELD_OUT && offsetof(struct held, out_saved) == HELD_OUT_SAVED, "part_held.h");
enum { SHARED = 65536 };
union { struct held held; char space[SHARED]; } held __attribute__((aligned(SHARED), visibility("hidden")));
#define H (&held.held)

void hold(void);
void held_at(struct held *);
void held_around(void (*)(void));
void call_held_leaf(void), call_held_outer(void), call_held_tail(void), jump_held_leaf(void), call_dlopen(void), call_syscall(void), sites(void);

struct registers { uint64_t pc, sp, all[REGISTERS]; };
struct range { uintptr_t low, high; };
static struct range program, callee, agent;
static int with_arguments, many_sites; // what the callee is

static int each_module(struct dl_phdr_info *module, size_t size, void *unused) {
    (void)size, (void)unused;
    struct range range = {~0ul, 0};
    uintptr_t known[3] = {(uintptr_t)hold, (uintptr_t)dlsym(RTLD_DEFAULT, "held_at"), (uintptr_t)dlsym(RTLD_DEFAULT, "tracer_start")};
    for (int n = 0; n < module->dlpi_phnum; n++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[n];
        if (segment->p_type != PT_LOAD) continue;
        uintptr_t low = module->dlpi_addr + segment->p_vaddr, high = low + segment->p_memsz;
        if (low < range.low) range.low = low;
        if (high > range.high) range.high = high;
    }
    for (int n = 0; n < 3; n++)
        if (known[n] >= range.low && known[n] < range.high) *(struct range *[]){&program, &callee, &agent}[n] = range;
    return 0;
}
static int within(struct range range, uintptr_t address) { return address >= range.low && address < range.high; }

/// `stack`: a copy of the words from `from` to the top.
static void judge_one(const struct registers *r, const uint64_t *stack, uintptr_t from, int region, const char *what, uint64_t pattern, int number) {
    if (r->all[number] == pattern) return;
    if (region != PROGRAM && region != CALLEE) {
        for (int n = 0; n < REGISTERS; n++) if (r->all[n] == pattern) return;
        for (size_t n = 0; n < (H->top - from) / 8; n++) if (stack[n] == pattern) return;
    }
    if (!H->fault[0])
        snprintf(H->fault, sizeof H->fault, "%s of the caller's %s is nowhere: in %s (pc %#lx, the agent from %#lx), sp %ld below the top of the stack",
                 what, register_names[number], region_names[region], (long)r->pc, (long)agent.low, (long)(H->top - r->sp));
    H->finished = 1;
}
static void judge(const struct registers *r, const uint64_t *stack, uintptr_t from, int apart) {
    uint32_t phase = H->phase;
    int region = within(program, r->pc) ? PROGRAM : within(callee, r->pc) ? CALLEE
        : !within(agent, r->pc) ? ELSEWHERE : apart || r->sp < H->low || r->sp >= H->top ? AGENT_APART : AGENT;
    H->looks++;
    if (phase == PHASE_NONE) return;
    H->seen[region]++;
#ifdef JUDGE_SAVED
    for (int n = 0; n < SAVED; n++) judge_one(r, stack, from, region, "the value", H->saved[n], saved_registers[n]);
#endif
#ifdef JUDGE_ARGUMENTS
    for (int n = 0; with_arguments && phase == PHASE_ARGUMENTS && n < ARGUMENTS; n++)
        judge_one(r, stack, from, region, "the argument", H->arguments[n], argument_registers[n]);
    for (int n = 0; with_arguments && phase == PHASE_RESULTS && n < RESULTS; n++)
        judge_one(r, stack, from, region, "the result", H->results[n], result_registers[n]);
#endif
}
/// From where the stack is looked at.
static uintptr_t stack_from(uintptr_t sp) { return sp >= H->low && sp < H->top ? sp & ~7ul : H->low; }

static uint64_t pattern(uint64_t number) { // no two are alike, and none is an address
    number = (number + 1) * 0x9e3779b97f4a7c15;
    return (number ^ number >> 29) | 0x8000000000000001;
}
static void one_call(void) {
    uint64_t first = H->calls++ * 32;
    for (int n = 0; n < SAVED; n++) H->saved[n] = pattern(first + (uint64_t)n);
    for (int n = 0; with_arguments && n < ARGUMENTS; n++) H->arguments[n] = pattern(first + 11 + (uint64_t)n);
    for (int n = 0; with_arguments && n < RESULTS; n++) H->results[n] = pattern(first + 20 + (uint64_t)n);
    if (many_sites) H->target = (void (*)(void))((uintptr_t)sites + 32 * (H->calls % SITES));
    hold();
    for (int n = 0; n < SAVED; n++) CHECK(H->out_saved[n] == H->saved[n]);
    for (int n = 0; with_arguments && n < RESULTS; n++) CHECK(H->out[n] == H->results[n]);
}
enum { STACK = 49152 };
static NOINLINE void touch(void) { // for an observer that looks at all of the stack
    volatile char buffer[STACK];
    for (size_t n = 0; n < sizeof buffer; n += 1024) buffer[n] = 0;
}
static NOINLINE void calls(void) {
    touch();
    H->top = ((uintptr_t)__builtin_frame_address(0) + sizeof(void *) * 2) & ~7ul;
    H->low = H->top - STACK;
    while (!H->finished) one_call();
}

// Contexts in which the calls are made: another context, a signal stack, a second level of calls, or here.
static ucontext_t own, other;
static char other_stack[4 * STACK] __attribute__((aligned(64)));
static void on_signal_stack(int unused) { (void)unused; calls(); }
static void run(const char *where) {
    if (!strcmp(where, "context")) {
        context_on(&other, other_stack, sizeof other_stack, &own);
        makecontext(&other, calls, 0);
        CHECK(!swapcontext(&own, &other));
    } else if (!strcmp(where, "signal_stack")) {
        stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
        struct sigaction action = {.sa_handler = on_signal_stack, .sa_flags = SA_ONSTACK};
        CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR2, &action, NULL) && !raise(SIGUSR2));
    } else if (!strcmp(where, "around")) {
        held_around(calls); // the calls are the second level
    } else {
        calls();
    }
}
static void prepare(const char *what) {
    static char name[] = "libheld.so";
    const struct { const char *name; void (*target)(void); } targets[] = {
        {"leaf", call_held_leaf}, {"outer", call_held_outer}, {"tail", call_held_tail}, {"jump", jump_held_leaf},
        {"sites", call_held_leaf}, {"dlopen", call_dlopen}, {"number", call_syscall}, {"syscall", call_syscall}};
    for (size_t n = 0; n < sizeof targets / sizeof *targets; n++) if (!strcmp(what, targets[n].name)) H->target = targets[n].target;
    CHECK(H->target);
    many_sites = !strcmp(what, "sites");
    with_arguments = H->target != call_dlopen && H->target != call_syscall;
    if (!strcmp(what, "dlopen")) H->arguments[0] = (uintptr_t)name, H->arguments[1] = RTLD_NOW | RTLD_NOLOAD;
    if (!strcmp(what, "number")) H->arguments[0] = SYS_getppid; // the agent looks at its number, in the fast path
    if (!strcmp(what, "syscall")) H->arguments[0] = SYS_prctl, H->arguments[1] = PR_GET_DUMPABLE; // in its slow path
}

/// Straight to the kernel: the observer's own calls are of no interest, and there are many.
static long system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
#else
    register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f, x8 __asm__("x8") = number;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory");
    return x0;
#endif
}
/// Waits for a random time between two looks, so that no moment is skipped.
static void pass_time(void) {
    static uint32_t chance = 1;
    chance = chance * 1103515245 + 12345;
    for (volatile uint32_t n = chance >> 16 & 1023; n; n--) {}
}
static int slow_path_wanted; // one that the observer can see
static int callee_wanted;    // PTRACE_INTERRUPT stops at the end of a system call: where each call makes some (for the clock; on another stack), perhaps never in the callee
static int enough(unsigned long least) {
    if (H->finished) return 1;
    int all = H->seen[CALLEE] >= 10 || !callee_wanted;
    if (agent.high) all = all && H->seen[AGENT] >= 10 && (!slow_path_wanted || H->seen[AGENT_APART] >= 10);
    return H->looks >= (all ? least : least * 50);
}

static void look(int unused, siginfo_t *info, void *context) {
    (void)unused, (void)info;
    const mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
    struct registers r;
#if defined __x86_64__
    static const int order[REGISTERS] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15, REG_RDI, REG_RSI, REG_RDX, REG_RCX, REG_R8, REG_R9, REG_R10, REG_RAX, REG_R11};
    r.pc = (uint64_t)m->gregs[REG_RIP], r.sp = (uint64_t)m->gregs[REG_RSP];
    for (int n = 0; n < REGISTERS; n++) r.all[n] = (uint64_t)m->gregs[order[n]];
#else
    r.pc = m->pc, r.sp = m->sp;
    for (int n = 0; n < REGISTERS; n++) r.all[n] = m->regs[n];
#endif
    uintptr_t from = stack_from(r.sp);
    judge(&r, (const uint64_t *)from, from, 0);
}
static pid_t looked_at;
static void (*toggle[2])(void); // recording, off and on
static void *send(void *unused) {
    pid_t process = (pid_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    while (!enough(LOOKS)) {
        unsigned long before = H->looks;
        CHECK(!system_call(SYS_tgkill, process, looked_at, SIGUSR1, 0, 0, 0));
        for (unsigned n = 1; H->looks == before; n++) if (n % 4096 == 0) system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        if (toggle[0]) toggle[H->looks & 1]();
        pass_time();
    }
    H->finished = 1;
    return unused;
}
static void look_by_signals(const char *where) {
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
    sigaddset(&action.sa_mask, SIGUSR2); // else calls begin in a look that has just begun, with SIGUSR1 blocked, and never end
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    looked_at = (pid_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    for (int n = 0; !strcmp(where, "toggled") && n < 2; n++) *(void **)&toggle[n] = dlsym(RTLD_DEFAULT, n ? "tracer_start" : "tracer_stop");
    pthread_t sender;
    CHECK(!pthread_create(&sender, NULL, send, NULL));
    run(where);
    CHECK(!pthread_join(sender, NULL));
}
static void *in_thread(void *unused) {
    look_by_signals("here");
    return unused;
}

static void stopped(pid_t pid) {
    static uint64_t stack[STACK / 8 + 64];
    struct registers r;
    struct user_regs_struct user;
    struct iovec to = {&user, sizeof user};
    CHECK(!system_call(SYS_ptrace, PTRACE_GETREGSET, pid, 1 /* NT_PRSTATUS */, (long)&to, 0, 0));
#if defined __x86_64__
    r = (struct registers){user.rip, user.rsp, {user.rbx, user.rbp, user.r12, user.r13, user.r14, user.r15, user.rdi, user.rsi, user.rdx, user.rcx, user.r8, user.r9,
                                                user.r10, user.rax, user.r11}};
#else
    r.pc = user.pc, r.sp = user.sp;
    memcpy(r.all, user.regs, sizeof r.all);
#endif
    int apart = 0;
    uintptr_t from = stack_from(r.sp);
    if (H->phase != PHASE_NONE) {
        uint64_t mask = 0;
        if (within(agent, r.pc)) CHECK(!system_call(SYS_ptrace, 0x420a /* PTRACE_GETSIGMASK */, pid, sizeof mask, (long)&mask, 0, 0));
        apart = mask >> (SIGUSR1 - 1) & 1;
        CHECK(H->top - from <= sizeof stack);
        struct iovec here = {stack, H->top - from}, there = {(void *)from, H->top - from};
        CHECK(system_call(SYS_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) == (long)(H->top - from));
    }
    judge(&r, stack, from, apart);
}
static int wait_for(pid_t pid) {
    int status;
    CHECK(system_call(SYS_wait4, pid, (long)&status, __WALL, 0, 0, 0) == pid);
    return status;
}
static void look_by_ptrace(const char *where, int step) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        run(where);
        exit(0);
    }
    while (!H->calls) system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0); // the child's own beginning, with its signals
    CHECK(!ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_EXITKILL));
    int running = 1;
    while (!enough(step ? 25000 : LOOKS)) {
        if (running) CHECK(!system_call(SYS_ptrace, PTRACE_INTERRUPT, pid, 0, 0, 0, 0));
        int status = wait_for(pid);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            fprintf(stderr, "the child ended: %#x\n", status);
            exit(1);
        }
        int is_signal = WSTOPSIG(status) != SIGTRAP; // let through
        if (!is_signal) stopped(pid);
        CHECK(!system_call(SYS_ptrace, step ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, 0, is_signal ? WSTOPSIG(status) : 0, 0, 0));
        running = !step;
        if (!step) pass_time();
    }
    H->finished = 1;
    if (!running) {
        wait_for(pid);
        CHECK(!system_call(SYS_ptrace, PTRACE_CONT, pid, 0, 0, 0, 0));
    }
    CHECK(wait_for(pid) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    const char *how = argv[1], *what = argv[2], *where = argv[3];
    CHECK(mmap(&held, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == &held);
    held_at(H);
    dl_iterate_phdr(each_module, NULL);
    CHECK(program.high && callee.high);
    H->spin = strcmp(how, "step") ? 30 : 3;
    // There each call makes system calls, and at the end of one a signal is seen before the interrupt that a virtual machine is sent for it: the callee
    // is met only if it takes longer than that.
    if (!strcmp(how, "signal") && !strcmp(where, "signal_stack")) H->spin = 20000;
    if (!strcmp(how, "signal") && getenv("TRACER_CLOCK")) H->spin = 1000;
    prepare(what);
    callee_wanted = with_arguments && (strcmp(how, "ptrace") || !agent.high || (!getenv("TRACER_CLOCK") && strcmp(where, "signal_stack") && strcmp(where, "context")));
    slow_path_wanted = strcmp(how, "signal") && (many_sites || (!with_arguments && strcmp(what, "number")));
    pthread_t thread;
    if (!strcmp(where, "thread")) CHECK(!pthread_create(&thread, NULL, in_thread, NULL) && !pthread_join(thread, NULL));
    else if (!strcmp(how, "signal")) look_by_signals(where);
    else look_by_ptrace(where, !strcmp(how, "step"));
    int seen = (H->seen[CALLEE] || !callee_wanted) && (!agent.high || (H->seen[AGENT] && (!slow_path_wanted || H->seen[AGENT_APART])));
    if (H->fault[0] || !seen) {
        fprintf(stderr, "%s\n%lu calls, %lu looks", H->fault[0] ? H->fault : "a region was never seen", H->calls, H->looks);
        for (int n = 0; n < REGIONS; n++) fprintf(stderr, "%s %lu in %s", n ? "," : ", with patterns:", H->seen[n], region_names[n]);
        fputs("\n", stderr);
        return 1;
    }
    puts("every pattern was where a scanner looks");
    return 0;
}
