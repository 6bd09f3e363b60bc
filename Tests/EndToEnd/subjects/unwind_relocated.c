// A signal at every instruction of functions that begin in many ways, wherever it is executed: the handler's lists of frames must have
// the program's frames. The parent is the child's debugger, single-steps a call of each function, and delivers a signal at each
// instruction of the function, and at each one that lies in no file, or between functions: where functions are patched, their stubs, relocated
// instructions, and long jumps in padding. Says nothing but how many functions it has gone through; with an argument also at how many addresses that
// are in none.
// link: -Wl,-z,now
// variant: gcc
// variant: libunwind /usr/lib/x86_64-linux-gnu/libunwind.so.8
// case: steps
// tree: none it is about what the program finds
// architecture: x86_64 its instructions
// modes: functions counts call_sites
#include "subject.h"
#include <execinfo.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <unwind.h>
// Their names, and what makes them special. rdi: a word that they may read and write.
#define FUNCTIONS(F)                                                                                                                      \
    F(framed, "push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp,-16\n mov %rsp,%rbp\n .cfi_def_cfa_register %rbp\n mov (%rdi),%rax\n" \
              " pop %rbp\n .cfi_def_cfa %rsp,8\n ret\n")                                                                                  \
    F(lowered, "sub $40,%rsp\n .cfi_def_cfa_offset 48\n mov %rdi,8(%rsp)\n mov 8(%rsp),%rax\n add $40,%rsp\n .cfi_def_cfa_offset 8\n ret\n") \
    F(leaf, "lea 5(%rdi),%rax\n sub $5,%rax\n ret\n")                                                                                     \
    F(pushing, "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx,-16\n push %r12\n .cfi_def_cfa_offset 24\n .cfi_offset %r12,-24\n"   \
               " push %r13\n .cfi_def_cfa_offset 32\n .cfi_offset %r13,-32\n xor %ebx,%ebx\n pop %r13\n .cfi_def_cfa_offset 24\n"          \
               " pop %r12\n .cfi_def_cfa_offset 16\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n")                                            \
    F(landing, "endbr64\n push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx,-16\n mov (%rdi),%rbx\n pop %rbx\n .cfi_def_cfa_offset 8\n" \
               " ret\n")                                                                                                                  \
    F(relative, "mov some_word(%rip),%rax\n ret\n")                                                                                       \
    F(branching, "test %rdi,%rdi\n je 1f\n mov (%rdi),%rax\n ret\n 1: xor %eax,%eax\n ret\n")                                              \
    F(branching_early, "cmp %al,%al\n jne 1f\n nop\n nop\n mov (%rdi),%rax\n ret\n 1: xor %eax,%eax\n ret\n")                              \
    F(calling, "call helper\n mov (%rdi),%rax\n ret\n")                                                                                    \
    F(calling_later, "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx,-16\n call helper\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n") \
    F(calling_by_word, "call *helper_word(%rip)\n nop\n ret\n")                                                                            \
    F(calling_by_register, "mov helper_word(%rip),%rax\n call *%rax\n ret\n")                                                              \
    F(jumping, "jmp helper\n")                                                                                                            \
    F(padded, ".nops 8\n mov (%rdi),%rax\n ret\n")                                                                                        \
    F(brief, "mov %edi,%eax\n ret\n")                                                                                                    \
    F(turning, "xor %eax,%eax\n 1: inc %eax\n cmp %eax,%eax\n jne 1b\n ret\n") /* its long jump is in the padding behind it */           \
    F(looping, "cmp %rdi,%rdi\n jne looping\n mov (%rdi),%rax\n ret\n")                                                                 \
    F(calling_tiny, "sub $8,%rsp\n .cfi_def_cfa_offset 16\n call tiny\n add $8,%rsp\n .cfi_def_cfa_offset 8\n ret\n")
/// At odd addresses, as code that is compiled for its size.
#define DEFINE(NAME, TEXT)                                                                                                                \
    __asm__(".text\n.p2align 5\n nop\n.globl " #NAME "\n.type " #NAME ",@function\n" #NAME ":\n.cfi_startproc\n " TEXT                           \
            ".cfi_endproc\n.size " #NAME ",.-" #NAME "\n" #NAME "_end:\n.globl " #NAME "_end\n.p2align 5\n");
#define CROWD(NAME) ".type " NAME ",@function\n" NAME ":\n.cfi_startproc\n.rept 60\n lea 1(%rax),%eax\n.endr\n ret\n.cfi_endproc\n.size " NAME ",.-" NAME "\n"
__asm__(".text\n.p2align 5\n.globl helper\n.type helper,@function\nhelper:\n.cfi_startproc\n lea 1(%rdi),%rax\n nop\n nop\n ret\n"
        ".cfi_endproc\n.size helper,.-helper\n"
        CROWD("before_tiny") // no padding near it, so that its call site leads to the agent
        ".type tiny,@function\ntiny:\n.cfi_startproc\n mov %rdi,%rax\n ret\n.cfi_endproc\n.size tiny,.-tiny\n" CROWD("after_tiny")
        "helper_end:\n.globl helper_end\n.p2align 5\n"
        ".data\n.globl some_word,helper_word\nsome_word: .quad 9\nhelper_word: .quad helper\n.text\n");
FUNCTIONS(DEFINE)
#define DECLARE(NAME, TEXT) extern char NAME[], NAME##_end[];
FUNCTIONS(DECLARE)
extern char helper[], helper_end[], functions_end[];
__asm__(".text\nfunctions_end:\n");
static const struct function { const char *name; char *begin, *end; } functions[] = {
#define ROW(NAME, TEXT) {#NAME, NAME, NAME##_end},
    FUNCTIONS(ROW)};
enum { COUNT = sizeof functions / sizeof *functions, MOST = 64 };
struct range { unsigned long low, high; };
static struct shared { volatile int current, handled, elsewhere, lost, ranges; struct range range[256]; } *shared;

/// Calls the function between two traps.
__attribute__((noinline)) static void called_from(const struct function *function) {
    long word = 3;
    __asm__ volatile("int3\n call *%1\n int3" : : "D"(&word), "b"(function->begin) : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
}
static void *expected[MOST];
static int expected_count;
__attribute__((noinline)) static void caller(const struct function *function) {
    expected_count = backtrace(expected, MOST);
    called_from(function);
    OPAQUE();
}
struct list { int count; void *frames[MOST]; };
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *argument) {
    struct list *list = argument;
    int before = 0;
    char *address = (char *)_Unwind_GetIPInfo(context, &before);
    if (address && list->count < MOST) list->frames[list->count++] = address - !before;
    return _URC_NO_REASON;
}
static int is_within(const void *address, const char *begin, const char *end) { return (char *)address >= begin && (char *)address < end; }
/// Returns 1 if the frames after the function's own (or its callee's) are its caller's as `expected` has them, but for the call site.
/// `after`: 1 if the list has return addresses, 0 if it has addresses within the calls, as `each` lists them.
static int is_right(void **frames, int count, int after) {
    const struct function *function = functions + shared->current;
    int n = 0;
    while (n < count && !is_within(frames[n], function->begin, function->end) && !is_within(frames[n], helper, helper_end)) n++;
    n++; // the one that was interrupted
    while (n < count && is_within((char *)frames[n] - after, function->begin, function->end)) n++;
    if (count - n != expected_count + 1) return 0; // called_from, caller, …
    if (!is_within(frames[n], (char *)called_from, (char *)called_from + 256)) return 0;
    if (!is_within(frames[n + 1], (char *)caller, (char *)caller + 256)) return 0;
    for (int k = 1; k < expected_count; k++) if ((char *)frames[n + 1 + k] + !after != expected[k] && frames[n + 1 + k] != expected[k]) return 0;
    return 1;
}
static void handler(int number) {
    (void)number;
    void *frames[MOST];
    struct list list = {0};
    int count = backtrace(frames, MOST);
    _Unwind_Backtrace(each, &list);
    if (!is_right(frames, count, 1) || !is_right(list.frames, list.count, 0)) {
        shared->lost++;
        if (getenv("SHOW")) {
            printf("%s:", functions[shared->current].name);
            for (int n = 0; n < count; n++) printf(" %p", frames[n]);
            printf(" |");
            for (int n = 0; n < list.count; n++) printf(" %p", list.frames[n]);
            printf("\n");
            fflush(stdout);
        }
    }
    shared->handled++;
    __asm__ volatile("int3");
}
/// Executable memory of no file, but what the agent's own image has, which adjoins its file.
static void find_ranges(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file);
    char line[512], access[8];
    struct range range;
    unsigned long inode, end = 0;
    int isAgents = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &range.low, &range.high, access, &inode) != 4) continue;
        isAgents = strstr(line, "/libtracer") || (isAgents && inode == 0 && range.low == end);
        end = range.high;
        if (access[2] == 'x' && inode == 0 && !isAgents && !strchr(line, '[') && shared->ranges < 256) shared->range[shared->ranges++] = range;
    }
    fclose(file);
}
static void child(void) {
    struct sigaction action = {.sa_handler = handler};
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    for (int n = 0; n < COUNT; n++) caller(functions + n); // its traps pass: nobody debugs yet
    CHECK(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    raise(SIGSTOP);
    for (int n = 0; n < COUNT; n++) {
        shared->current = n;
        caller(functions + n);
    }
    exit(0);
}
static pid_t pid;
/// To the next trap; 0: the child has ended.
static int resume(int request, int with) {
    int status;
    for (;;) {
        CHECK(!ptrace(request, pid, NULL, (void *)(long)with));
        CHECK(waitpid(pid, &status, 0) == pid);
        if (WIFEXITED(status)) CHECK(WEXITSTATUS(status) == 0);
        if (!WIFSTOPPED(status)) { CHECK(WIFEXITED(status)); return 0; }
        with = WSTOPSIG(status);
        if (with == SIGTRAP) return 1;
    }
}
static unsigned long pc(void) {
    struct user_regs_struct registers;
    CHECK(!ptrace(PTRACE_GETREGS, pid, NULL, &registers));
    return registers.rip;
}
/// Through one call, step by step, with a signal at each address that is to have one.
static void step_through(void) {
    unsigned long last = 0;
    for (;;) {
        CHECK(resume(PTRACE_SINGLESTEP, 0));
        unsigned long at = pc();
        if (is_within((void *)at, (char *)called_from, (char *)called_from + 256)) {
            if (!last) continue;
            CHECK(resume(PTRACE_CONT, 0)); // to the trap after the call
            return;
        }
        const struct function *function = functions + shared->current;
        int is_elsewhere = 0;
        for (int n = 0; n < shared->ranges; n++) is_elsewhere |= at >= shared->range[n].low && at < shared->range[n].high;
        // Padding, between functions.
        is_elsewhere |= is_within((void *)at, functions[0].begin, functions_end) && !is_within((void *)at, function->begin, function->end);
        if (!is_elsewhere && !is_within((void *)at, function->begin, function->end)) continue;
        last = at;
        shared->elsewhere += is_elsewhere;
        CHECK(resume(PTRACE_CONT, SIGUSR1)); // to the end of the handler
        do CHECK(resume(PTRACE_SINGLESTEP, 0));
        while (pc() != last);
    }
}
static void ignore(int number) { (void)number; }
int main(int argc, char **argv) {
    (void)argv;
    setvbuf(stdout, NULL, _IONBF, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    CHECK(signal(SIGTRAP, ignore) != SIG_ERR); // until there is a debugger
    void *warm[4];
    CHECK(backtrace(warm, 4) > 0);
    find_ranges(); // fork: the same on both sides
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child();
    int status, calls = 0;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    while (resume(PTRACE_CONT, 0)) { // to the trap before a call
        step_through();
        calls++;
    }
    printf("%d calls, %d without its callers\n", calls, shared->lost);
    if (argc > 1) printf("%d addresses elsewhere\n", shared->elsewhere);
    // If functions are only counted, the ones called before may have their original bytes again.
    const char *mode = getenv("TRACER_MODE");
    if (getenv("TRACER_FUNCTIONS") && !(mode && !strcmp(mode, "counts"))) CHECK(shared->elsewhere >= 7 * COUNT);
    CHECK(calls == COUNT && shared->handled >= 3 * calls);
    return shared->lost != 0;
}
