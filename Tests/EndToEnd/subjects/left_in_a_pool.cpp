// Hand-written switches between stacks that lie side by side in one piece of memory, of which nobody is told where they end: exceptions on
// one leave calls, and end none of another that waits, be it above or below.
// compilers: gcc clang
// library: pool
// modes: functions call_sites
#include "subject.h"
EXPORT int pool_around(void (*wait)(void *), void *self);
EXPORT void pool_throw(int value);
EXPORT void pool_again(void);
EXPORT int pool_after(int value);
#ifdef LIB_pool
int pool_around(void (*wait)(void *), void *self) { wait(self); OPAQUE(); return 1; }
void pool_throw(int value) { throw value; }
void pool_again() { throw; }
int pool_after(int value) { OPAQUE(); return value + 1; }
#else
enum { FIBERS = 4, ROUNDS = 3, STACK = 32768 };
extern "C" {
struct fiber { void *sp; int number; bool done; };
void switch_stack(void **from, void *to);
void fiber_start(void);
}
#ifdef __x86_64__
__asm__(".text\nswitch_stack:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        "fiber_start:\n mov %r12,%rdi\n call fiber_main\n ud2\n");
enum { SAVED = 7, ARGUMENT = 3, RETURN = 6 }; // words: six registers, of which r12 is the fourth, and the address
#else
__asm__(".text\nswitch_stack:\n sub sp, sp, #112\n stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
        " stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
        " ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n"
        " ldp x29, x30, [sp, #80]\n add sp, sp, #112\n ret\n"
        "fiber_start:\n mov x0, x20\n bl fiber_main\n brk #0\n");
enum { SAVED = 14, ARGUMENT = 1, RETURN = 11 };
#endif
static void *scheduler;
static struct fiber fibers[FIBERS];
alignas(64) static char stacks[FIBERS][STACK];
static void leave(void *self) { switch_stack(&static_cast<fiber *>(self)->sp, scheduler); }
static NOINLINE int caught(int value) {
    try {
        try { pool_throw(value); } catch (int) { pool_again(); }
    } catch (int again) { return again; }
    return -1;
}
extern "C" __attribute__((used)) void fiber_main(struct fiber *self) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(pool_around(leave, self) == 1);
        CHECK(caught(i) == i);
        pool_after(i);
    }
    self->done = true;
    leave(self);
}
int main() {
    for (int i = 0; i < FIBERS; i++) {
        void **top = reinterpret_cast<void **>(stacks[i] + STACK - 256) - SAVED;
        memset(top, 0, SAVED * sizeof *top);
        top[ARGUMENT] = &fibers[i];
        top[RETURN] = reinterpret_cast<void *>(fiber_start);
        fibers[i].sp = top;
        fibers[i].number = i;
    }
    for (int round = 0; round <= ROUNDS; round++)
        for (auto &fiber : fibers) switch_stack(&scheduler, fiber.sp);
    for (auto &fiber : fibers) CHECK(fiber.done);
    pool_after(0);
    puts("pool");
    return 0;
}
#endif
