// Control goes on at the right address, however a traced call comes back: twice or more; on a stack that was copied away and
// back, among others that are blocked in the same call at the same stack pointer; on another thread; by a jump; past its caller;
// with registers spoiled that its caller does not need. None of these functions bears a name that is known.
// sources: part_paths.S
// library: paths=part_paths.S -DPATHS
// library: path_steps
// build: -O1
// link: -Wl,-z,now
// case: by_a_second_return_of_a_setjmp_of_its_own twice
// case: with_two_copies_in_the_same_call copies 2 15000
// case: with_a_hundred_copies_in_the_same_call copies 100 15000
// case: with_a_hundred_copies_on_a_thread copies 100 15000 thread
// case: on_another_thread threads
// case: by_a_jump_after_its_slot_was_written_over popped
// case: to_another_return_slot pushed
// case: with_callee_saved_registers_spoiled spoils
// case: past_its_caller beyond
// disorder: * because calls end more than once, on another thread, or not at all
// tree: none the subject counts its calls
// modes: call_sites arm arm_call_sites
#include "subject.h"
long path_step(long value);
long path_run(long value, long (*leave)(long));
#ifdef LIB_path_steps
EXPORT long path_step(long value) { return value * 5 + 1; }
EXPORT long path_run(long value, long (*leave)(long)) {
    volatile long kept = value;
    value = leave(path_step(value));
    return path_step(value ^ kept) & 0xffffff;
}
#else
struct jump_point { uintptr_t words[16]; };
long path_mark(struct jump_point *) __attribute__((returns_twice));
void path_resume(struct jump_point *, long) __attribute__((noreturn));
void path_switch(void **save, void *to);
void path_exchange(void *(*exchange)(void *), void *scratch);
long path_popped(long), path_pushed(long), path_between(long), call_spoils(long);
void path_start(void);
static unsigned long steps;
static long step(long value) { steps++; return path_step(value); }
static unsigned chance(void) {
    static unsigned seed = 12345;
    seed = seed * 1103515245 + 12345;
    return seed >> 8;
}

static struct jump_point point;
static long resumed;
static NOINLINE long back(long unused) { (void)unused; path_resume(&point, ++resumed); }
static long twice(void) {
    volatile long sum = 0;
    for (volatile int round = 0; round < 3000; round++) {
        resumed = 0;
        long value = path_mark(&point);
        CHECK(value == resumed); // the first return, the second …
        sum = step(sum + value) & 0xffffff;
        if (value == 4) continue;
        if (round % 2) back(0);
        steps++; // one of path_run's two: the other is not reached
        path_run(value, back);
        CHECK(0);
    }
    return sum;
}

// Coroutines on one stack, copied away while another runs. All are left in the same call at the same stack pointer.
struct copy { char *sp, *bytes; size_t size; long value; int turns; };
enum { MOST = 100 };
static struct copy copies[MOST + 1], *now, *next; // the last one is the scheduler
static char *base, scratch[65536] __attribute__((aligned(16)));
static void *exchange(void *sp) { // no call in it is traced
    now->sp = sp;
    now->size = (size_t)(base - now->sp);
    CHECK(now->size <= 4096);
    for (size_t i = 0; i < now->size; i++) { now->bytes[i] = now->sp[i]; OPAQUE(); }
    now = next;
    for (size_t i = 0; i < now->size; i++) { now->sp[i] = now->bytes[i]; OPAQUE(); }
    return now->sp;
}
static NOINLINE void go(struct copy *to) {
    next = to;
    path_exchange(exchange, scratch + sizeof scratch);
}
static long leave_copy(long value) { go(&copies[MOST]); return value + 1; }
static long entered(long value) { return value + 1; }
struct fiber { void *sp; long value; int number, done; char *stack; };
static void fiber_main(struct fiber *self);
static int are_copies;
__attribute__((used)) void path_main(void *argument) {
    if (!are_copies) fiber_main(argument);
    for (;;) {
        struct copy *self = now;
        self->value = path_run(self->value, leave_copy);
        self->turns++;
    }
}
static int copy_count, switches;
static long total;
static NOINLINE void schedule(void) {
    for (int i = 0; i <= MOST; i++) copies[i] = (struct copy){.bytes = calloc(1, 4096), .value = i};
    for (int i = 0; i < copy_count; i++) { // entered as if it had been left: registers, then the address
#if defined __x86_64__
        copies[i].size = 7 * 8 + 16; // aligned for a call
        ((uintptr_t *)copies[i].bytes)[6] = (uintptr_t)path_start;
#else
        copies[i].size = 160;
        ((uintptr_t *)copies[i].bytes)[11] = (uintptr_t)path_start;
#endif
        copies[i].sp = base - copies[i].size;
    }
    now = &copies[MOST];
    for (int i = 0; i < copy_count; i++) go(&copies[i]);
    for (int i = 0; i < switches; i++) go(&copies[copy_count == 2 && i < 1000 ? i & 1 : chance() % (unsigned)copy_count]);
    for (int i = 0; i < copy_count; i++) {
        long expected = i; // the same without leaving
        for (int n = 0; n < copies[i].turns; n++) expected = path_run(expected, entered);
        CHECK(copies[i].value == expected);
        total += expected;
        steps += (unsigned long)copies[i].turns * 4 + 1; // here and there; one is open
    }
}
static void *run_copies(void *unused) {
    char *volatile hole = __builtin_alloca(1024); // the copies lie below it, over what the scheduler has there
    base = (char *)((uintptr_t)hole & ~15ul);
    schedule();
    return unused;
}

// Coroutines on stacks of their own, left in path_switch, which is traced, on one thread and resumed on another.
enum { FIBERS = 60, LEGS = 24, FIBER_STACK = 32768 };
static struct fiber fibers[FIBERS];
static void *thread_sp; // stack pointer of the one thread that runs
static struct fiber *running;
static long leave_fiber(long value) {
    struct fiber *self = running;
    path_switch(&self->sp, thread_sp);
    return value + 1;
}
static void fiber_main(struct fiber *self) {
    for (int i = 0; i < LEGS - 1; i++) self->value = path_run(self->value, leave_fiber);
    self->done = 1;
    leave_fiber(0);
}
static void *run_leg(void *unused) {
    for (int i = 0; i < FIBERS; i++) {
        running = &fibers[(i * 7) % FIBERS];
        if (!running->done) path_switch(&thread_sp, running->sp);
    }
    return unused;
}
static long threads(void) {
    for (int i = 0; i < FIBERS; i++) {
        fibers[i] = (struct fiber){.value = i, .number = i, .stack = malloc(FIBER_STACK)};
        uintptr_t *top = (uintptr_t *)((uintptr_t)(fibers[i].stack + FIBER_STACK) & ~15ul);
#if defined(__x86_64__)
        top -= 2; // aligned for a call
        *--top = (uintptr_t)path_start;
        for (int n = 0; n < 6; n++) *--top = 0;
        top[3] = (uintptr_t)&fibers[i]; // r12
#else
        for (int n = 0; n < 20; n++) *--top = 0;
        top[1] = (uintptr_t)&fibers[i]; // x20
        top[11] = (uintptr_t)path_start; // x30
#endif
        fibers[i].sp = top;
    }
    for (int leg = 0; leg < LEGS; leg++) {
        pthread_t thread;
        if (leg % 3 == 0) run_leg(NULL);
        else CHECK(!pthread_create(&thread, NULL, run_leg, NULL) && !pthread_join(thread, NULL));
    }
    long sum = 0;
    for (int i = 0; i < FIBERS; i++) {
        CHECK(fibers[i].done);
        long expected = i;
        for (int n = 0; n < LEGS - 1; n++) expected = path_run(expected, entered);
        CHECK(fibers[i].value == expected);
        sum += expected;
        steps += 4 * (LEGS - 1);
    }
    return sum;
}

static long many(long (*call)(long)) {
    long value = 0;
    for (int i = 0; i < 5000; i++) value = step(call(value)) & 0xffffff;
    return value;
}
int main(int argc, char **argv) {
    CHECK(argc >= 2);
    const char *how = argv[1];
    if (!strcmp(how, "twice")) total = twice();
    else if (!strcmp(how, "threads")) total = threads();
    else if (!strcmp(how, "popped")) total = many(path_popped);
    else if (!strcmp(how, "pushed")) total = many(path_pushed);
    else if (!strcmp(how, "spoils")) total = many(call_spoils);
    else if (!strcmp(how, "beyond")) total = many(path_between);
    else {
        pthread_t thread;
        are_copies = 1;
        copy_count = atoi(argv[2]), switches = atoi(argv[3]);
        CHECK(copy_count <= MOST);
        if (argc > 4) CHECK(!pthread_create(&thread, NULL, run_copies, NULL) && !pthread_join(thread, NULL));
        else run_copies(NULL);
    }
    for (int i = 0; i < 100; i++) total += step(i);
    counted("path_step", steps);
    printf("%ld\n", total);
    return 0;
}
#endif
