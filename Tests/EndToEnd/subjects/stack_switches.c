// Hand-written stack switches (as Boost.Context does), a thousand coroutines interleaved, each with calls open across
// the switch; some abandoned; some finished by another thread.
// compilers: gcc clang
// library: fiber
// modes: functions counts instrumented call_sites
// modes: arm_instrumented for clang
// thorough: arm_instrumented for gcc because the program alone does not end under the emulators that there are
#include "subject.h"
struct fiber { void *sp; long value; int done; char *stack; };
long fiber_step(long value);
void fiber_run(struct fiber *self, void (*leave)(struct fiber *));
#ifdef LIB_fiber
EXPORT long fiber_step(long value) { return value * 5 + 1; }
EXPORT void fiber_run(struct fiber *self, void (*leave)(struct fiber *)) {
    for (int i = 0; i < 8; i++) {
        self->value = fiber_step(self->value) & 0xffff;
        leave(self);
    }
}
#else
void *switch_stack(void **save, void *to);
#if defined(__x86_64__)
__asm__(".text\nswitch_stack:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        "fiber_start:\n mov %r12,%rdi\n call fiber_main\n ud2\n");
#else
__asm__(".text\nswitch_stack:\n"
        " sub sp, sp, #160\n stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n stp x25, x26, [sp, #48]\n"
        " stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n"
        " stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
        " mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
        " ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
        " ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n"
        " ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n add sp, sp, #160\n ret\n"
        "fiber_start:\n mov x0, x20\n bl fiber_main\n brk #0\n");
#endif
void fiber_start(void);
static _Thread_local void *scheduler;
static NOINLINE void *get_scheduler(void) { OPAQUE(); return &scheduler; } // the thread may be another after a switch
static void leave(struct fiber *self) { switch_stack(&self->sp, *(void **)get_scheduler()); }
__attribute__((used)) void fiber_main(struct fiber *self) {
    fiber_run(self, leave);
    self->done = 1;
    leave(self);
}
static void create(struct fiber *fiber, long value) {
    fiber->stack = malloc(16384);
    uintptr_t *top = (uintptr_t *)((uintptr_t)(fiber->stack + 16384) & ~15ul);
#if defined(__x86_64__)
    *--top = 0;
    *--top = (uintptr_t)fiber_start;
    for (int i = 0; i < 6; i++) *--top = 0;
    top[3] = (uintptr_t)fiber; // r12
#else
    for (int i = 0; i < 20; i++) *--top = 0;
    top[1] = (uintptr_t)fiber; // x20
    top[11] = (uintptr_t)fiber_start; // x30
#endif
    *fiber = (struct fiber){top, value, 0, fiber->stack};
}
static void enter(struct fiber *fiber) { switch_stack((void **)get_scheduler(), fiber->sp); }
enum { FIBERS = 1000 };
static struct fiber fibers[FIBERS];
static void *finish(void *unused) {
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < FIBERS / 2; i++) enter(&fibers[i]);
    return unused;
}
int main(void) {
    for (int i = 0; i < FIBERS; i++) create(&fibers[i], i);
    for (int round = 0; round < 4; round++)
        for (int i = FIBERS; i--;) enter(&fibers[i]);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, finish, NULL) && !pthread_join(thread, NULL));
    long sum = 0;
    for (int i = 0; i < FIBERS; i++) {
        CHECK(fibers[i].done == (i < FIBERS / 2)); // the other half is abandoned with fiber_run open
        sum += fibers[i].value;
        free(fibers[i].stack);
    }
    for (int i = 0; i < 1000; i++) sum += fiber_step(i);
    printf("%ld\n", sum);
    return 0;
}
#endif
