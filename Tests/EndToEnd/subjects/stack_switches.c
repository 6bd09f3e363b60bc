// Hand-written stack switches (as Boost.Context does), a thousand coroutines interleaved, each with calls open across
// the switch; some abandoned; some finished by another thread.
// compilers: gcc clang
// library: fiber
#include "subject.h"
#include <pthread.h>
#include <stdint.h>
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
__asm__(".text\nswitch_stack:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        "fiber_start:\n mov %r12,%rdi\n call fiber_main\n ud2\n");
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
    *--top = 0;
    *--top = (uintptr_t)fiber_start;
    for (int i = 0; i < 6; i++) *--top = 0;
    top[3] = (uintptr_t)fiber; // r12
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
