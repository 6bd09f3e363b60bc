// A trap after every instruction of traced calls. `signal`: the handler makes traced calls of its own, so that a signal
// has stood at each instruction of the agent. `unwind`: at each instruction the stack unwinds to the caller.
// library: stepped
// link: -Wl,-z,now
// case: signal signal
// case: first_call first_call
// case: unwind unwind
// timeout: 60
// tree: none the subject counts its calls
#include "subject.h"
#include <pthread.h>
#include <signal.h>
#include <unwind.h>
#include <ucontext.h>
long step_outer(long value);
long step_inner(long value);
void step_handler(void);
#ifdef LIB_stepped
EXPORT long step_inner(long value) { return value + 1; }
EXPORT long step_outer(long value) { long r = step_inner(value); OPAQUE(); return r + step_inner(value); }
EXPORT void step_handler(void) { OPAQUE(); }
#else
static volatile unsigned long steps, handled, lost;
static volatile int unwinding;
static volatile unsigned long first_lost_pc;
static char *function_begin, *function_end;
static _Unwind_Reason_Code each(struct _Unwind_Context *context, void *found) {
    char *pc = (char *)_Unwind_GetIP(context);
    if (pc >= function_begin && pc < function_end) *(int *)found = 1;
    return _URC_NO_REASON;
}
static void trap(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    steps++;
    if (unwinding) {
        int found = 0;
        _Unwind_Backtrace(each, &found);
        if (!found && !lost++) first_lost_pc = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    } else {
        handled++;
        step_handler();
    }
}
long stepped(long value, int count);
__asm__( // long stepped(long value, int count): count calls of step_outer with the trap flag set
    ".text\n.globl stepped\n.type stepped,@function\nstepped:\n.cfi_startproc\n push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
    " push %r12\n.cfi_adjust_cfa_offset 8\n.cfi_offset %r12,-24\n push %r13\n.cfi_adjust_cfa_offset 8\n.cfi_offset %r13,-32\n"
    " mov %rdi,%rbx\n mov %esi,%r12d\n"
    " pushfq\n.cfi_adjust_cfa_offset 8\n orl $0x100,(%rsp)\n popfq\n.cfi_adjust_cfa_offset -8\n"
    "1: mov %rbx,%rdi\n call step_outer@PLT\n mov %rax,%r13\n dec %r12d\n jnz 1b\n"
    " pushfq\n.cfi_adjust_cfa_offset 8\n andl $~0x100,(%rsp)\n popfq\n.cfi_adjust_cfa_offset -8\n"
    " mov %r13,%rax\n pop %r13\n.cfi_adjust_cfa_offset -8\n pop %r12\n.cfi_adjust_cfa_offset -8\n pop %rbx\n.cfi_adjust_cfa_offset -8\n ret\n"
    ".cfi_endproc\n.size stepped,.-stepped\n.globl stepped_end\nstepped_end:\n");
extern char stepped_end[];
static void *first_call(void *unused) {
    CHECK(stepped(41, 1) == 84); // the thread's first traced call: the slow path, stepped through
    return unused;
}
int main(int argc, char **argv) {
    CHECK(argc == 2);
    function_begin = (char *)stepped;
    function_end = stepped_end;
    struct sigaction action = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO};
    CHECK(step_outer(1) == 4); // the fast path is warm
    int found = 0;
    _Unwind_Backtrace(each, &found); // libgcc's caches too
    CHECK(!sigaction(SIGTRAP, &action, NULL));
    unsigned long calls = 1;
    if (!strcmp(argv[1], "first_call")) {
        for (int i = 0; i < 5; i++) {
            pthread_t thread;
            CHECK(!pthread_create(&thread, NULL, first_call, NULL) && !pthread_join(thread, NULL));
            calls++;
        }
    } else {
        unwinding = !strcmp(argv[1], "unwind");
        CHECK(stepped(41, 20) == 84);
        calls += 20;
    }
    CHECK(steps > 5 * 5);
    if (lost) fprintf(stderr, "the caller was not found at %lu of %lu instructions, first at %#lx\n", lost, steps, first_lost_pc);
    CHECK(lost == 0);
    counted("step_outer", calls);
    counted("step_inner", calls * 2);
    counted("step_handler", handled);
    puts("every instruction survived");
    return 0;
}
#endif
