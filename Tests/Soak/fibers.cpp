// A server on coroutines, whose requests end in every way: they return, wait in the middle and go on later, are abandoned in the
// middle (their stack gets the next request), throw out of several open calls, or jump out of them. Every call of bsearch goes
// through a slot and stays open around what it calls. After each BLOCK requests it prints a line: requests, CPU time in ns.
//
//     fibers REQUESTS [BLOCK]           as many requests as are given
//     fibers SECONDSs BLOCK             for as long as that, such as 600s
#include <alloca.h>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

struct Fiber {
    ucontext_t context;
    char *stack;
    jmp_buf start;
    unsigned long request;
    bool isBusy, isUsed;
};
enum { FIBERS = 64, STACK = 65536 };
static Fiber fibers[FIBERS], *current;
static ucontext_t loop;

static int deeper(const void *key, const void *element);
static void nested(unsigned long left) { bsearch(&left, &left, 1, sizeof left, deeper); }
static int deeper(const void *key, const void *) {
    unsigned long left = *(const unsigned long *)key;
    getppid();
    if (left > 1) {
        nested(left - 1);
        return 0;
    }
    switch (current->request & 3) {
    case 0: throw current->request;
    case 1: longjmp(current->start, 1);
    case 2: swapcontext(&current->context, &loop); break;
    }
    return 0;
}

/// Calls from another depth of the stack each time, so that what is left there is seldom overwritten by the next request.
__attribute__((noinline)) static void request(unsigned long number) {
    auto *unused = static_cast<volatile char *>(alloca(number % 509 * 32 + 1));
    unused[0] = 0;
    nested(1 + number % 7);
}

static void serve() {
    for (;;) {
        Fiber *self = current;
        try {
            if (!setjmp(self->start)) request(self->request);
        } catch (unsigned long) {}
        self->isBusy = false;
        swapcontext(&self->context, &loop);
    }
}

static unsigned long clockTime(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

int main(int argc, char **argv) {
    unsigned long limit = argc > 1 ? strtoul(argv[1], nullptr, 10) : 0, block = argc > 2 ? strtoul(argv[2], nullptr, 10) : 0;
    bool isTimed = argc > 1 && strchr(argv[1], 's');
    unsigned long end = isTimed ? clockTime(CLOCK_MONOTONIC) + limit * 1000000000ul : 0;
    char *stacks = static_cast<char *>(mmap(nullptr, FIBERS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int i = 0; i < FIBERS; i++) fibers[i].stack = stacks + i * STACK;
    unsigned random = 1;
    for (unsigned long requests = 0; isTimed || requests < limit;) {
        random = random * 1103515245 + 12345;
        current = &fibers[(random >> 8) % FIBERS];
        bool isNew = !current->isUsed || (current->isBusy && (random >> 20) % 4 == 0); // one of four that wait is abandoned
        if (isNew) {
            getcontext(&current->context);
            current->context.uc_stack.ss_sp = current->stack;
            current->context.uc_stack.ss_size = STACK;
            current->isUsed = true;
            makecontext(&current->context, serve, 0);
        }
        if (isNew || !current->isBusy) {
            current->request = requests++;
            current->isBusy = true;
            if (block && requests % block == 0) {
                printf("%lu %lu\n", requests, clockTime(CLOCK_PROCESS_CPUTIME_ID));
                fflush(stdout);
                if (isTimed && clockTime(CLOCK_MONOTONIC) >= end) break;
            }
        }
        swapcontext(&loop, &current->context);
    }
}
