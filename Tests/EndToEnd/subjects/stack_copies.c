// Coroutines that share one piece of stack: what is on it is copied away when one is left, and back when it goes on (as
// greenlet does). Calls are open across it, longjmps leave others for good in between, some are never resumed.
// compilers: gcc clang
// build: -O1
// library: slice
// case: few few
// case: many many
// case: thread thread
// architecture: x86_64 its stack switch is assembly
// modes: functions counts instrumented call_sites
#include "subject.h"
long slice_step(long value);
long slice_run(long value, int depth, long (*leave)(long));
long slice_jump(long value, void (*jump)(void));
extern long slice_steps;
#ifdef LIB_slice
long slice_steps;
EXPORT long slice_step(long value) { slice_steps++; return value * 5 + 1; }
EXPORT long slice_run(long value, int depth, long (*leave)(long)) {
    volatile long buffer[4] = {value, depth};
    if (depth > 0) value = slice_run(value, depth - 1, leave);
    else value = leave(value);
    return slice_step(value + buffer[1]) & 0xffff;
}
EXPORT long slice_jump(long value, void (*jump)(void)) { jump(); return value; }
#else
struct slice { char *sp, *copy; size_t size; long value; int done; };
enum { MOST = 1000 };
static struct slice slices[MOST + 1]; // the last one is the scheduler
static struct slice *now, *next;
static char *base;
__attribute__((used, aligned(16))) static char scratch[65536];
void switch_slice(void);
void slice_start(void);
// On a stack apart, since it writes over the shared one. No call in it is traced: the loops are its own.
__attribute__((used)) char *swap_slices(char *sp) {
    now->sp = sp;
    size_t size = (size_t)(base - sp);
    if (now->size < size) now->copy = realloc(now->copy, size), now->size = size;
    for (size_t i = 0; i < size; i++) { now->copy[i] = sp[i]; OPAQUE(); }
    now = next;
    for (size_t i = 0; i < (size_t)(base - now->sp); i++) { now->sp[i] = now->copy[i]; OPAQUE(); }
    return now->sp;
}
__asm__(".text\nswitch_slice:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp,%rdi\n lea scratch+65536(%rip),%rsp\n call swap_slices\n mov %rax,%rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
        "slice_start:\n call slice_main\n ud2\n");
static NOINLINE void go(struct slice *to) { next = to; switch_slice(); }
static jmp_buf back;
static void jump(void) { longjmp(back, 1); }
static long leave(long value) {
    go(&slices[MOST]);
    if (value % 3 == 0 && !setjmp(back)) slice_jump(value, jump);
    return value + 1;
}
__attribute__((used)) void slice_main(void) {
    for (int i = 0; i < 4; i++) now->value = slice_run(now->value, (int)(now - slices) % 7, leave);
    now->done = 1;
    go(&slices[MOST]);
}
static NOINLINE void schedule(int count, int kept) {
    unsigned chance = 12345;
    for (int i = 0; i < count; i++) {
        slices[i].value = i;
        slices[i].size = 256;
        slices[i].copy = calloc(1, 256);
        slices[i].sp = base - 248; // aligned after six registers and the address
        uintptr_t *words = (uintptr_t *)slices[i].copy;
        words[6] = (uintptr_t)slice_start; // entered with the stack as after a call of no one
    }
    now = &slices[MOST];
    for (int i = 0; i < count; i++) go(&slices[i]); // each is parked inside its first call
    for (int left = kept; left > 0;) {
        chance = chance * 1103515245 + 12345;
        struct slice *some = &slices[(chance >> 8) % (unsigned)kept];
        if (some->done) continue;
        go(some);
        left -= some->done;
    }
}
static void *run(void *argument) {
    char buffer[4096]; // what is above belongs to no slice
    base = (char *)((uintptr_t)buffer & ~15ul);
    int count = *(int *)argument;
    char *volatile hole = __builtin_alloca(8192); // the slices lie between base and here
    base = hole + 4096;
    base = (char *)((uintptr_t)base & ~15ul);
    schedule(count, count - count / 10);
    return argument;
}
int main(int argc, char **argv) {
    int count = argc > 1 && !strcmp(argv[1], "many") ? MOST : 20;
    if (!strcmp(argv[1], "thread")) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, run, &count) && !pthread_join(thread, NULL));
    } else run(&count);
    long sum = 0;
    for (int i = 0; i < count; i++) sum += slices[i].value;
    for (int i = 0; i < 100; i++) sum += slice_step(i);
    counted("slice_step", (unsigned long)slice_steps);
    printf("%ld\n", sum);
    return 0;
}
#endif
